//! The sums of a node's rows per bin of one input, and the best split between bins.

use crate::bins::{MAX_BINS, MISSING};

/// The smallest share of a node's weight on each side of a split, and the smallest gain per unit of weight; less is rounding error.
pub(crate) const MIN_SHARE_OF_WEIGHT: f64 = 1e-9;

/// More than the relative rounding error of what a split explains.
const ROUNDING: f64 = 1e-9;

/// A split that leaves less than this share of a node's rows on one side is narrow.
const NARROW_SHARE_OF_ROWS: f64 = 0.2;

/// The divisor of the gain of a narrow split. Real rare groups survive a halved gain; noise splits, which fall near the ends of uninformative
/// inputs, do not, so trees do not grow deep without reason.
const NARROW_PENALTY: f64 = 2.0;

/// Weight, weighted sums of the targets, and number of rows.
///
/// The number of rows is stored (`R` is 1) unless all weights are one (`R` is 0): growing takes as long as these sums are large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums<const N: usize, const R: usize> {
    pub(crate) weight: f64,
    pub(crate) targets: [f64; N],
    rows: [f64; R],
}

impl<const N: usize, const R: usize> Sums<N, R> {
    pub(crate) const ZERO: Self = Self { weight: 0.0, targets: [0.0; N], rows: [0.0; R] };

    /// One row with this weight and these targets.
    pub(crate) fn of_row(weight: f64, targets: &[f64; N]) -> Self {
        Self { weight, targets: targets.map(|target| weight * target), rows: [1.0; R] }
    }

    #[inline(always)]
    fn rows(&self) -> f64 {
        self.rows.first().copied().unwrap_or(self.weight)
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, other: &Self) {
        self.weight += other.weight;
        self.targets = std::array::from_fn(|i| self.targets[i] + other.targets[i]);
        self.rows = std::array::from_fn(|i| self.rows[i] + other.rows[i]);
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        Self {
            weight: self.weight - other.weight,
            targets: std::array::from_fn(|i| self.targets[i] - other.targets[i]),
            rows: std::array::from_fn(|i| self.rows[i] - other.rows[i]),
        }
    }

    /// The sum of the squared sums of the targets.
    #[inline(always)]
    fn squares(&self) -> f64 {
        self.targets.iter().map(|sum| sum * sum).sum::<f64>()
    }

    /// The sum of squares that the mean of these rows explains: Σ_t (Σ w y_t)² / Σ w.
    #[inline(always)]
    fn explained(&self) -> f64 {
        self.squares() / self.weight
    }
}

/// A possible split of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split {
    /// The sum of squares that it explains beyond the mean of the node; for a narrow split divided by [`NARROW_PENALTY`].
    pub(crate) gain: f64,
    /// The input, by its place among the candidates.
    pub(crate) candidate: usize,
    /// The last code that goes left.
    pub(crate) last_left_code: u16,
    pub(crate) missing_right: bool,
    /// All values go right and missing ones left.
    pub(crate) only_missing_left: bool,
}

impl Split {
    #[inline(always)]
    pub(crate) fn goes_right(&self, code: u16) -> bool {
        let is_missing = code == MISSING;
        is_missing & self.missing_right | !is_missing & (self.only_missing_left | (code > self.last_left_code))
    }
}

/// The sums of some rows per bin of one input.
///
/// Most nodes have few rows and most bins none, so the bins with rows are marked: looking through all bins would take longer than adding the
/// rows.
pub(crate) struct Histogram<const N: usize, const R: usize> {
    /// All zero between inputs.
    bins: Box<[Sums<N, R>; MAX_BINS]>,
    /// One bit per bin with rows; all zero between inputs.
    filled: [u64; MAX_BINS / 64],
}

impl<const N: usize, const R: usize> Histogram<N, R> {
    pub(crate) fn new() -> Self {
        Self { bins: Box::new([Sums::ZERO; MAX_BINS]), filled: [0; MAX_BINS / 64] }
    }

    /// Replaces the best split by the best split of one input if its gain is larger. Rows are given by the code of the input and their sums;
    /// `all` are the sums of all of them. The input is called `candidate` in the split.
    pub(crate) fn try_input<'a>(
        &mut self,
        rows: impl Iterator<Item = (u16, &'a Sums<N, R>)>,
        candidate: usize,
        all: &Sums<N, R>,
        min_rows: usize,
        best: &mut Option<Split>,
    ) {
        let mut missing = Sums::ZERO;
        for (code, own) in rows {
            if code == MISSING {
                missing.add(own);
            } else {
                // The remainder is the code itself; it spares a check of bounds per row.
                let code = usize::from(code) % MAX_BINS;
                self.filled[code / 64] |= 1 << (code % 64);
                self.bins[code].add(own);
            }
        }
        scan_bins(self.drain(), candidate, all, &missing, min_rows, best);
    }

    /// The bins with rows, in order; a bin is cleared as it is passed on.
    fn drain(&mut self) -> Drain<'_, N, R> {
        Drain { bins: &mut *self.bins, filled: &mut self.filled, next_word: 0, bits: 0 }
    }
}

/// See [`Histogram::drain`].
struct Drain<'a, const N: usize, const R: usize> {
    bins: &'a mut [Sums<N, R>],
    filled: &'a mut [u64],
    next_word: usize,
    /// The bits of the word before the next one that are still to come.
    bits: u64,
}

impl<const N: usize, const R: usize> Iterator for Drain<'_, N, R> {
    type Item = (u16, Sums<N, R>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        while self.bits == 0 {
            self.bits = std::mem::take(self.filled.get_mut(self.next_word)?);
            self.next_word += 1;
        }
        let code = (self.next_word - 1) * 64 + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some((code as u16, std::mem::replace(&mut self.bins[code], Sums::ZERO)))
    }
}

/// Tries every split between bins that have rows, with missing values on either side.
fn scan_bins<const N: usize, const R: usize>(
    bins: impl Iterator<Item = (u16, Sums<N, R>)>,
    candidate: usize,
    all: &Sums<N, R>,
    missing: &Sums<N, R>,
    min_rows: usize,
    best: &mut Option<Split>,
) {
    let (min_rows, known) = (min_rows as f64, all.explained());
    // What both sides must explain to be better than the best split, but for rounding.
    let enough = |best: &Option<Split>| match best {
        Some(best) if best.gain > 0.0 => (best.gain + known) * (1.0 - ROUNDING),
        _ => 0.0,
    };
    let mut least = enough(best);
    let mut offer = |left: &Sums<N, R>, last_left_code: u16, missing_right: bool, only_missing_left: bool| {
        let right = all.minus(left);
        if left.rows() < min_rows || right.rows() < min_rows {
            return;
        }
        // The sum of what both sides explain is this over the product of their weights. Most splits are excluded before the division.
        let both = left.squares() * right.weight + right.squares() * left.weight;
        let weights = left.weight * right.weight;
        if both < least * weights {
            return;
        }
        // Weights may differ so much that a difference of sums has no correct digits.
        if left.weight.min(right.weight) <= MIN_SHARE_OF_WEIGHT * all.weight {
            return;
        }
        let mut gain = both / weights - known;
        if left.rows().min(right.rows()) < NARROW_SHARE_OF_ROWS * all.rows() {
            gain /= NARROW_PENALTY;
        }
        if best.is_none_or(|best| gain > best.gain) {
            *best = Some(Split { gain, candidate, last_left_code, missing_right, only_missing_left });
            least = enough(best);
        }
    };
    let mut left = Sums::ZERO;
    let mut last_of_left: Option<u16> = None;
    for (code, sums) in bins {
        if let Some(last_of_left) = last_of_left {
            // The middle of the empty codes between the two.
            let last_left_code = last_of_left + (code - last_of_left - 1) / 2;
            if missing.rows() > 0.0 {
                let mut with_missing = left;
                with_missing.add(missing);
                offer(&with_missing, last_left_code, false, false);
                offer(&left, last_left_code, true, false);
            } else {
                // No row has a missing value: they go to the side with most rows.
                offer(&left, last_left_code, left.rows() < all.rows() - left.rows(), false);
            }
        }
        left.add(&sums);
        last_of_left = Some(code);
    }
    if missing.rows() > 0.0 {
        offer(missing, 0, false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Next to weights of 10¹⁷ a weight of five is lost in rounding, and such a side would appear to explain infinitely much.
    #[test]
    fn sides_without_weight_explain_nothing() {
        let bin = |weight: f64, targets: [f64; 2]| Sums { weight, targets, rows: [5.0] };
        let bins = [bin(1e17, [0.0, 1e17]), bin(1e17, [0.0, -1e17]), bin(5.0, [50.0, 0.0])];
        for bins in [bins, [bins[2], bins[0], bins[1]]] {
            let mut all = Sums::ZERO;
            bins.iter().for_each(|bin| all.add(bin));
            let mut best = None;
            scan_bins((0..).zip(bins), 0, &all, &Sums::ZERO, 5, &mut best);
            let best = best.expect("the heavy rows differ");
            assert!((best.gain / 2e17 - 1.0).abs() < 1e-9, "{best:?}");
        }
    }

    #[test]
    fn narrow_splits_need_a_larger_gain() {
        // Twenty bins of five rows. The first half is slightly above the rest, the first bin by more.
        let split = |more: f64| {
            let sum = |i: u16| if i < 10 { 1.0 } else { -1.0 } + if i == 0 { more } else { 0.0 };
            let bins = (0..20).map(|i| (i, Sums { weight: 5.0, targets: [sum(i), 0.0], rows: [] }));
            let all = Sums { weight: 100.0, targets: [more, 0.0], rows: [] };
            let mut best = None;
            scan_bins(bins, 0, &all, &Sums::ZERO, 5, &mut best);
            best.map(|best| best.last_left_code)
        };
        assert_eq!([0.0, 6.0, 20.0].map(split), [Some(9), Some(9), Some(0)]);
    }
}
