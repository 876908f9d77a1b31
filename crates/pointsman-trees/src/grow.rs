//! One regression tree, grown by variance reduction on binned inputs.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::bins::{BinnedColumn, BinnedInputs, MISSING};
use crate::trees::{MAX_DEPTH, Node};

/// Nodes with fewer rows than the number of bins divided by this are sorted instead of counted bin by bin.
const BINS_PER_SORTED_ROW: usize = 4;

/// The smallest share of a node's weight on each side of a split, and the smallest gain per unit of weight; less is rounding error.
const MIN_SHARE_OF_WEIGHT: f64 = 1e-9;

/// A split that leaves less than this share of a node's rows on one side is narrow.
const NARROW_SHARE_OF_ROWS: f64 = 0.2;

/// The divisor of the gain of a narrow split. Real rare groups survive a halved gain; noise splits, which fall near the ends of uninformative
/// inputs, do not, so trees do not grow deep without reason.
const NARROW_PENALTY: f64 = 2.0;

/// The rule by which nodes are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthRule {
    /// The smallest number of rows per leaf.
    pub min_rows_per_leaf: usize,
    /// The share of the inputs that is tried at each split, in \[0, 1\]; at least one is tried.
    pub share_of_inputs: f64,
}

/// One tree with the mean targets of its leaves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GrownTree<const N: usize> {
    /// The nodes, counted from the root.
    pub nodes: Vec<Node>,
    /// The weighted mean of the targets in each leaf, leaves in the order of their nodes.
    pub means: Vec<[f64; N]>,
}

/// Rows, weight and weighted sums of the targets.
#[derive(Debug, Clone, Copy)]
struct Sums<const N: usize> {
    rows: f64,
    weight: f64,
    targets: [f64; N],
}

impl<const N: usize> Sums<N> {
    const ZERO: Self = Self { rows: 0.0, weight: 0.0, targets: [0.0; N] };

    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.targets = std::array::from_fn(|i| self.targets[i] + other.targets[i]);
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            rows: self.rows - other.rows,
            weight: self.weight - other.weight,
            targets: std::array::from_fn(|i| self.targets[i] - other.targets[i]),
        }
    }

    /// The sum of squares that the mean of these rows explains: Σ_t (Σ w y_t)² / Σ w.
    #[inline(always)]
    fn explained(&self) -> f64 {
        self.targets.iter().map(|sum| sum * sum).sum::<f64>() / self.weight
    }
}

/// A possible split of a node.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// The sum of squares that it explains beyond the mean of the node; for a narrow split divided by [`NARROW_PENALTY`].
    gain: f64,
    input: u32,
    /// The last bin that goes left.
    last_left_bin: u16,
    missing_right: bool,
    /// All values go right and missing ones left.
    only_missing_left: bool,
}

impl Split {
    #[inline(always)]
    fn goes_right(&self, code: u16) -> bool {
        if code == MISSING { self.missing_right } else { self.only_missing_left || code > self.last_left_bin }
    }
}

/// Buffers reused across nodes.
struct Buffers<const N: usize> {
    rows: Vec<Sums<N>>,
    bins: Vec<Sums<N>>,
    sort_keys: Vec<u64>,
    right: Vec<u32>,
}

/// Grows a tree on the given rows; splits may use the `candidates` among the inputs.
pub(crate) fn grow_tree<const N: usize>(
    inputs: &BinnedInputs,
    targets: &[[f64; N]],
    weights: &[f64],
    mut rows: Vec<u32>,
    candidates: &[u32],
    rule: GrowthRule,
    seed: u64,
) -> GrownTree<N> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut candidates = candidates.to_vec();
    let tried = ((candidates.len() as f64 * rule.share_of_inputs).ceil() as usize).max(1);
    let mut nodes = vec![Node::Leaf];
    let mut means = vec![[0.0; N]];
    let mut buffers = Buffers { rows: Vec::new(), bins: Vec::new(), sort_keys: Vec::new(), right: Vec::new() };
    let mut open = vec![(0_usize, 0..rows.len(), 0_usize)];
    while let Some((node, range, depth)) = open.pop() {
        let here = &mut rows[range.clone()];
        let all = buffers.gather(targets, weights, here);
        means[node] = all.targets.map(|sum| if all.weight > 0.0 { sum / all.weight } else { 0.0 });
        if here.len() < 2 * rule.min_rows_per_leaf || depth == MAX_DEPTH {
            continue;
        }
        let mut best: Option<Split> = None;
        for drawn in 0..candidates.len() {
            // More inputs than the share are tried only until a split is found.
            if drawn >= tried && best.is_some() {
                break;
            }
            let other = drawn + (random.next_u64() % (candidates.len() - drawn) as u64) as usize;
            candidates.swap(drawn, other);
            let input = candidates[drawn];
            buffers.try_input(inputs.column(input as usize), input, here, &all, rule.min_rows_per_leaf, &mut best);
        }
        let Some(split) = best.filter(|best| best.gain > MIN_SHARE_OF_WEIGHT * all.weight) else { continue };
        let column = inputs.column(split.input as usize);
        let middle = buffers.partition(here, |row| split.goes_right(column.codes[row as usize]));
        let left = nodes.len();
        nodes[node] = Node::Split {
            input: split.input,
            threshold: if split.only_missing_left {
                f64::MIN
            } else {
                column.thresholds[usize::from(split.last_left_bin)]
            },
            left: left as u32,
            missing_right: split.missing_right,
        };
        nodes.extend([Node::Leaf; 2]);
        means.extend([[0.0; N]; 2]);
        let middle = range.start + middle;
        open.push((left + 1, middle..range.end, depth + 1));
        open.push((left, range.start..middle, depth + 1));
    }
    let means = nodes.iter().zip(means).filter(|(node, _)| **node == Node::Leaf).map(|(_, mean)| mean).collect();
    GrownTree { nodes, means }
}

impl<const N: usize> Buffers<N> {
    /// Collects and sums the targets of a node's rows.
    fn gather(&mut self, targets: &[[f64; N]], weights: &[f64], rows: &[u32]) -> Sums<N> {
        self.rows.clear();
        self.rows.extend(rows.iter().map(|&row| {
            let weight = weights[row as usize];
            Sums { rows: 1.0, weight, targets: targets[row as usize].map(|target| weight * target) }
        }));
        let mut all = Sums::ZERO;
        self.rows.iter().for_each(|row| all.add(row));
        all
    }

    /// Replaces the best split by the best split of this input if its gain is larger.
    fn try_input(
        &mut self,
        column: &BinnedColumn,
        input: u32,
        rows: &[u32],
        all: &Sums<N>,
        min_rows: usize,
        best: &mut Option<Split>,
    ) {
        let Self { rows: gathered, bins, sort_keys, .. } = self;
        let mut missing = Sums::ZERO;
        if rows.len() * BINS_PER_SORTED_ROW < column.thresholds.len() {
            sort_keys.clear();
            for (i, (&row, own)) in rows.iter().zip(gathered.iter()).enumerate() {
                match column.codes[row as usize] {
                    MISSING => missing.add(own),
                    code => sort_keys.push(u64::from(code) << 32 | i as u64),
                }
            }
            sort_keys.sort_unstable();
            let bins = sort_keys.chunk_by(|a, b| a >> 32 == b >> 32).map(|bin| {
                let mut sums = Sums::ZERO;
                bin.iter().for_each(|&key| sums.add(&gathered[key as u32 as usize]));
                ((bin[0] >> 32) as u16, sums)
            });
            scan_bins(bins, input, all, &missing, min_rows, best);
        } else {
            bins.clear();
            bins.resize(column.thresholds.len() + 1, Sums::ZERO);
            for (&row, own) in rows.iter().zip(gathered.iter()) {
                match column.codes[row as usize] {
                    MISSING => missing.add(own),
                    code => bins[usize::from(code)].add(own),
                }
            }
            let filled = bins.iter().enumerate().filter(|(_, sums)| sums.rows > 0.0);
            scan_bins(filled.map(|(code, sums)| (code as u16, *sums)), input, all, &missing, min_rows, best);
        }
    }

    /// Moves the rows that go right behind the others, keeping the order, and returns the index of the first.
    fn partition(&mut self, rows: &mut [u32], goes_right: impl Fn(u32) -> bool) -> usize {
        self.right.clear();
        let mut left = 0;
        for i in 0..rows.len() {
            let row = rows[i];
            if goes_right(row) {
                self.right.push(row);
            } else {
                rows[left] = row;
                left += 1;
            }
        }
        rows[left..].copy_from_slice(&self.right);
        left
    }
}

/// Tries every split between bins that have rows, with missing values on either side.
fn scan_bins<const N: usize>(
    bins: impl Iterator<Item = (u16, Sums<N>)>,
    input: u32,
    all: &Sums<N>,
    missing: &Sums<N>,
    min_rows: usize,
    best: &mut Option<Split>,
) {
    let (min_rows, known) = (min_rows as f64, all.explained());
    let mut offer = |left: &Sums<N>, last_left_bin: u16, missing_right: bool, only_missing_left: bool| {
        let right = all.minus(left);
        if left.rows < min_rows || right.rows < min_rows {
            return;
        }
        // Weights may differ so much that a difference of sums has no correct digits.
        if left.weight.min(right.weight) <= MIN_SHARE_OF_WEIGHT * all.weight {
            return;
        }
        let mut gain = left.explained() + right.explained() - known;
        if left.rows.min(right.rows) < NARROW_SHARE_OF_ROWS * all.rows {
            gain /= NARROW_PENALTY;
        }
        if best.is_none_or(|best| gain > best.gain) {
            *best = Some(Split { gain, input, last_left_bin, missing_right, only_missing_left });
        }
    };
    let mut left = Sums::ZERO;
    let mut last: Option<u16> = None;
    for (code, sums) in bins {
        if let Some(last) = last {
            // The middle of the empty bins between the two.
            let last_left_bin = last + (code - last - 1) / 2;
            if missing.rows > 0.0 {
                let mut with_missing = left;
                with_missing.add(missing);
                offer(&with_missing, last_left_bin, false, false);
                offer(&left, last_left_bin, true, false);
            } else {
                // No row has a missing value: they go to the side with most rows.
                offer(&left, last_left_bin, left.rows < all.rows - left.rows, false);
            }
        }
        left.add(&sums);
        last = Some(code);
    }
    if missing.rows > 0.0 {
        offer(missing, 0, false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Next to weights of 10¹⁷ a weight of five is lost in rounding, and such a side would appear to explain infinitely much.
    #[test]
    fn sides_without_weight_explain_nothing() {
        let bin = |weight: f64, targets: [f64; 2]| Sums { rows: 5.0, weight, targets };
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
            let bins = (0..20).map(|i| (i, Sums { rows: 5.0, weight: 5.0, targets: [sum(i), 0.0] }));
            let all = Sums { rows: 100.0, weight: 100.0, targets: [more, 0.0] };
            let mut best = None;
            scan_bins(bins, 0, &all, &Sums::ZERO, 5, &mut best);
            best.map(|best| best.last_left_bin)
        };
        assert_eq!([0.0, 6.0, 20.0].map(split), [Some(9), Some(9), Some(0)]);
    }
}
