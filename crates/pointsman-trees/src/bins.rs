//! Inputs as numbers of quantile bins, on which trees are grown.

use crate::parallel::prelude::*;

/// The largest number of bins per input. Fine structure needs many bins; more than this make no difference.
pub(crate) const MAX_BINS: usize = 2048;

/// The largest number of coarse bins per input. Counting rows in as few bins takes much less time, and most tables lose nothing.
const MAX_COARSE_BINS: usize = 256;

/// How finely inputs are binned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// At most [`MAX_BINS`] bins.
    Fine,
    /// At most [`MAX_COARSE_BINS`] bins, each made of neighbouring fine ones.
    Coarse,
}

/// The code of a missing value.
pub(crate) const MISSING: u16 = u16::MAX;

/// All inputs of some rows as bin numbers, column by column.
#[derive(Debug, Clone)]
pub(crate) struct BinnedInputs {
    columns: Vec<BinnedColumn>,
}

/// One input of all rows as bin numbers.
#[derive(Debug, Clone)]
pub(crate) struct BinnedColumn {
    /// The bin of each row, or [`MISSING`].
    pub(crate) codes: Vec<u16>,
    /// A value is in a bin above `i` if it is at or above `thresholds[i]`.
    pub(crate) thresholds: Vec<f64>,
    /// Whether some value is missing.
    has_missing: bool,
}

impl BinnedInputs {
    /// Bins each of `width` inputs; `inputs` are given row by row.
    pub(crate) fn new(inputs: &[f64], width: usize) -> Self {
        let column =
            |input: usize| BinnedColumn::new(&inputs.iter().skip(input).step_by(width).copied().collect::<Vec<_>>());
        Self { columns: (0..width).into_par_iter().map(column).collect() }
    }

    pub(crate) fn column(&self, input: usize) -> &BinnedColumn {
        &self.columns[input]
    }

    /// Whether an input differs between rows, so that it can be split.
    pub(crate) fn varies(&self, input: usize) -> bool {
        let column = &self.columns[input];
        !column.thresholds.is_empty() || column.has_missing && column.codes.iter().any(|&code| code != MISSING)
    }
}

impl BinnedColumn {
    /// The number of lowest bits of a code that a resolution leaves out.
    pub(crate) fn shift(&self, resolution: Resolution) -> u32 {
        match resolution {
            Resolution::Fine => 0,
            Resolution::Coarse => {
                let bins = self.thresholds.len() + 1;
                bins.div_ceil(MAX_COARSE_BINS).next_power_of_two().trailing_zeros()
            }
        }
    }

    fn new(values: &[f64]) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let mut thresholds = Vec::new();
        // A bin ends where its share of the rows is reached and the value changes.
        let (mut wanted, mut bins) = (1, MAX_BINS);
        let distinct = sorted.windows(2).filter(|pair| pair[0] < pair[1]).count() + usize::from(n > 0);
        if distinct <= MAX_BINS {
            bins = n;
        }
        for (i, pair) in sorted.windows(2).enumerate() {
            if pair[0] < pair[1] && (i + 1) * bins >= wanted * n {
                thresholds.push(threshold_between(pair[0], pair[1]));
                wanted = (i + 1) * bins / n + 1;
            }
        }
        let code = |x: &f64| {
            if x.is_nan() { MISSING } else { thresholds.partition_point(|threshold| threshold <= x) as u16 }
        };
        let codes: Vec<u16> = values.iter().map(code).collect();
        Self { has_missing: n < values.len(), codes, thresholds }
    }
}

/// A number above `low` and at most `high`: the midpoint, if it is representable.
#[must_use]
pub fn threshold_between(low: f64, high: f64) -> f64 {
    let middle = low / 2.0 + high / 2.0;
    if middle > low && middle <= high { middle } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_distinct_values_have_one_bin_each() {
        let column = BinnedColumn::new(&[3.0, 1.0, f64::NAN, 1.0, 2.0]);
        assert_eq!(column.thresholds, [1.5, 2.5]);
        assert_eq!(column.codes, [2, 0, MISSING, 0, 1]);
        assert!(column.has_missing);
        assert!(BinnedColumn::new(&[7.0; 9]).thresholds.is_empty());
        assert!(BinnedColumn::new(&[f64::NAN; 3]).thresholds.is_empty());
        assert_eq!(threshold_between(1.0, 1.0_f64.next_up()), 1.0_f64.next_up());
        assert!(threshold_between(f64::MIN, f64::MAX).is_finite());
    }

    #[test]
    fn many_distinct_values_share_bins_evenly() {
        let n = 10 * MAX_BINS;
        let column = BinnedColumn::new(&(0..n).map(|i| ((i * 7919) % n) as f64).collect::<Vec<_>>());
        assert_eq!(column.thresholds.len(), MAX_BINS - 1);
        let mut counts = vec![0; MAX_BINS];
        column.codes.iter().for_each(|&code| counts[usize::from(code)] += 1);
        assert!(counts.iter().all(|&count| count == 10));
        // A value that most rows share takes one bin, and the others keep their bins.
        let column = BinnedColumn::new(&(0..n).map(|i| if i % 2 == 0 { 0.0 } else { i as f64 }).collect::<Vec<_>>());
        assert!(column.thresholds.len() > MAX_BINS / 2 - 2 && column.thresholds.len() < MAX_BINS);
    }

    #[test]
    fn coarse_bins_are_few_and_made_of_fine_ones() {
        for (distinct, shift) in [(1, 0), (256, 0), (257, 1), (512, 1), (513, 2), (MAX_BINS, 3)] {
            let column = BinnedColumn::new(&(0..distinct).map(|i| i as f64).collect::<Vec<_>>());
            assert_eq!(column.shift(Resolution::Coarse), shift, "{distinct} values");
            assert!(column.codes.iter().all(|code| usize::from(code >> shift) < MAX_COARSE_BINS));
            assert_eq!(column.shift(Resolution::Fine), 0);
        }
    }

    #[test]
    fn constant_inputs_do_not_vary() {
        let nan = f64::NAN;
        let rows = [[1.0, 1.0, nan, nan], [1.0, 2.0, nan, 3.0], [1.0, 1.0, nan, 3.0]];
        let bins = BinnedInputs::new(rows.as_flattened(), 4);
        assert_eq!([0, 1, 2, 3].map(|input| bins.varies(input)), [false, true, false, true]);
    }
}
