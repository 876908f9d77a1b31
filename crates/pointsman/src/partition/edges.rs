//! The inner edges of quantile bins, and the bin of a value.

use crate::error::{Error, Result};

/// The largest number of slots of the counting pass.
const MAX_SLOTS: usize = 1 << 12;

/// The smallest mean number of values per slot.
const MIN_VALUES_PER_SLOT: usize = 4;

/// Strictly increasing inner edges; a value's bin is the number of edges at or below it.
///
/// Confidences are compared in single precision (see [`Peak::key`](crate::table::Peak::key)), features in double.
#[derive(Debug, Clone, PartialEq)]
pub struct Edges {
    values: Vec<f64>,
    keys: Vec<f64>,
}

impl Edges {
    /// Quantile edges `sorted[floor(i·n/bins)]`, i = 1..bins−1, without repetitions and without the smallest value, so that every bin has
    /// rows. Without values there is one bin.
    pub(crate) fn quantiles(values: impl Iterator<Item = f64> + Clone, bins: usize, key: fn(f64) -> f64) -> Self {
        let mut edges = Self { values: Vec::new(), keys: Vec::new() };
        let n = values.clone().count();
        let (smallest, largest) = values
            .clone()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if n == 0 {
            return edges;
        }
        let mut ranks: Vec<usize> = (1..bins).map(|i| (i as u128 * n as u128 / bins as u128) as usize).collect();
        ranks.dedup();
        for value in at_ranks(values, [smallest, largest], &ranks) {
            if key(value) > edges.keys.last().copied().unwrap_or(key(smallest)) {
                edges.values.push(value);
                edges.keys.push(key(value));
            }
        }
        edges
    }

    /// Edges of a feature: one bin per value if there are at most `bins` values, otherwise quantiles. Quantiles alone would put a value that
    /// few rows have into the bin of the most frequent one.
    pub(crate) fn of_feature_values(values: impl Iterator<Item = f64> + Clone, bins: usize) -> Self {
        let mut distinct: Vec<f64> = Vec::new();
        for value in values.clone() {
            // Adding zero turns −0 into +0, which is the same number.
            let (value, of) = (value + 0.0, |other: &f64| other.total_cmp(&(value + 0.0)));
            if let Err(place) = distinct.binary_search_by(of) {
                if distinct.len() == bins {
                    return Self::quantiles(values, bins, double);
                }
                distinct.insert(place, value);
            }
        }
        let values: Vec<f64> = distinct.into_iter().skip(1).collect();
        Self { keys: values.clone(), values }
    }

    /// Checks edges of confidences from a file.
    ///
    /// # Errors
    /// If they are not finite and strictly increasing.
    pub fn of_confidence(values: Vec<f64>) -> Result<Self> {
        Self::checked(values, single)
    }

    /// Checks edges of a feature from a file.
    ///
    /// # Errors
    /// If they are not finite and strictly increasing.
    pub fn of_feature(values: Vec<f64>) -> Result<Self> {
        Self::checked(values, double)
    }

    fn checked(values: Vec<f64>, key: fn(f64) -> f64) -> Result<Self> {
        let keys: Vec<f64> = values.iter().map(|&v| key(v)).collect();
        if keys.iter().any(|k| !k.is_finite()) || keys.windows(2).any(|w| w[0] >= w[1]) {
            return Err(Error::contradiction("the edges of a cell are not finite and strictly increasing"));
        }
        Ok(Self { values, keys })
    }

    /// The edges as found in the data.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn keys(&self) -> &[f64] {
        &self.keys
    }

    /// The number of bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.values.len() + 1
    }

    /// The bin of an already converted value.
    #[inline]
    pub(crate) fn bin(&self, key: f64) -> usize {
        self.keys.partition_point(|&edge| edge <= key)
    }

    /// The lower and the upper edge of a bin; none at the ends.
    pub(crate) fn around(&self, bin: usize) -> [Option<f64>; 2] {
        [bin.checked_sub(1).and_then(|below| self.keys.get(below)), self.keys.get(bin)].map(Option::<&f64>::copied)
    }

    /// Whether an already converted value is an edge.
    pub(crate) fn contains(&self, key: f64) -> bool {
        self.keys.binary_search_by(|edge| edge.total_cmp(&key)).is_ok()
    }
}

/// The values at the given ascending ranks in sorted order; `smallest` and `largest` are the range of the values.
///
/// Values are first counted in slots of equal width, so that only slots that contain a rank have to be sorted.
fn at_ranks(values: impl Iterator<Item = f64> + Clone, [smallest, largest]: [f64; 2], ranks: &[usize]) -> Vec<f64> {
    let slots = (values.clone().count() / MIN_VALUES_PER_SLOT).clamp(1, MAX_SLOTS);
    let scale = slots as f64 / (largest - smallest);
    // Rounding is monotone: a larger value is never in a lower slot.
    let slot = |value: f64| (((value - smallest) * scale) as usize).min(slots - 1);
    let mut ends = vec![0; slots];
    values.clone().for_each(|value| ends[slot(value)] += 1);
    (1..slots).for_each(|i| ends[i] += ends[i - 1]);
    let mut held: Vec<Option<Vec<f64>>> = vec![None; slots];
    let place = |rank: usize| ends.partition_point(|&end| end <= rank);
    let wanted = ranks.chunk_by(|&a, &b| place(a) == place(b));
    wanted.clone().for_each(|ranks| held[place(ranks[0])] = Some(Vec::new()));
    for value in values {
        if let Some(own) = &mut held[slot(value)] {
            own.push(value);
        }
    }
    let found = wanted.flat_map(|ranks| {
        let mut own = held[place(ranks[0])].take().unwrap_or_default();
        let start = ends[place(ranks[0])] - own.len();
        select(&mut own, start, ranks);
        ranks.iter().map(|rank| own[rank - start]).collect::<Vec<f64>>()
    });
    found.collect()
}

/// Partially sorts `values`, which start at rank `start`, so that the values at the given ascending ranks are in place.
fn select(values: &mut [f64], start: usize, ranks: &[usize]) {
    let Some(&rank) = ranks.get(ranks.len() / 2) else { return };
    let (left, _, right) = values.select_nth_unstable_by(rank - start, f64::total_cmp);
    select(left, start, &ranks[..ranks.len() / 2]);
    select(right, rank + 1, &ranks[ranks.len() / 2 + 1..]);
}

/// The precision in which confidences are compared.
pub(crate) fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

/// The precision in which features are compared.
pub(crate) fn double(value: f64) -> f64 {
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_do_not_create_empty_bins() {
        let mut sorted = vec![0.5, 0.6, 0.7];
        sorted.extend([0.9999; 7]);
        let edges = Edges::quantiles(sorted.iter().copied().rev(), 10, single);
        assert_eq!(edges.values(), [0.6, 0.7, 0.9999]);
        let mut filled = vec![0; edges.bins()];
        sorted.iter().for_each(|&x| filled[edges.bin(single(x))] += 1);
        assert_eq!(filled, [1, 1, 1, 7]);
    }

    #[test]
    fn selection_matches_sorting() {
        let mixed = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) % 337) / 337.0;
        // Uniform, skewed, on both sides of zero, and with differences that overflow.
        let spreads: [fn(f64) -> f64; 4] =
            [|x| x, |x| (60.0 * x).exp(), |x| x - 0.5, |x| if x < 0.3 { -f64::MAX } else { f64::MAX * x }];
        for spread in spreads {
            let values: Vec<f64> = (0..1000_u32).map(|i| spread(mixed(i))).collect();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            for bins in [1, 2, 3, 7, 10, 64, 999, 1000, 5000] {
                let mut wanted: Vec<f64> = (1..bins).map(|i| sorted[i * 1000 / bins]).collect();
                wanted.dedup();
                wanted.retain(|&x| x > sorted[0]);
                assert_eq!(Edges::quantiles(values.iter().copied(), bins, double).values(), wanted, "{bins} bins");
            }
        }
    }

    #[test]
    fn few_values_of_a_feature_have_a_bin_each() {
        let flags = [0.0, 0.0, 0.0, 0.0, 1.0, -0.0];
        assert_eq!(Edges::quantiles(flags.into_iter(), 2, double).bins(), 1, "the median is the smallest value");
        let edges = Edges::of_feature_values(flags.into_iter(), 2);
        assert_eq!((edges.values(), edges.bin(0.0), edges.bin(-0.0), edges.bin(1.0)), (&[1.0][..], 0, 0, 1));
        let stars = [5.0, 1.0, 5.0, 3.0, 5.0, 5.0];
        assert_eq!(Edges::of_feature_values(stars.into_iter(), 10).values(), [3.0, 5.0]);
        // More values than bins are quantiles.
        assert_eq!(Edges::of_feature_values(stars.into_iter(), 2), Edges::quantiles(stars.into_iter(), 2, double));
        assert_eq!(Edges::of_feature_values(std::iter::repeat_n(2.0, 9), 3).bins(), 1);
    }

    #[test]
    fn constant_values_give_one_bin() {
        let edges = Edges::quantiles([0.5; 4].into_iter(), 10, single);
        assert_eq!(edges.bins(), 1);
        assert_eq!(Edges::quantiles(std::iter::empty(), 10, single).bins(), 1);
    }

    #[test]
    fn values_outside_the_range_fall_into_the_outer_bins() {
        let edges = Edges::quantiles([4.0, 2.0, 3.0, 1.0].into_iter(), 2, double);
        assert_eq!((edges.bin(-1e300), edges.bin(2.9), edges.bin(3.0), edges.bin(1e300)), (0, 0, 1, 1));
    }
}
