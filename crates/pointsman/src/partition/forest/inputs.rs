//! What a tree may ask about a query: its probabilities, its confidence, its features.

use rayon::prelude::*;

use super::trees::Trees;
use crate::table::Table;
use crate::table::predictions::match_precision;
use crate::table::simplex::{self, Peak, Real};

/// The most bins of an input. Fine structure in one feature needs many; beyond this more make no difference.
const MAX_BINS: usize = 2048;

/// The code of a missing value.
pub(super) const MISSING: u16 = u16::MAX;

/// A query as trees see it: the classes' probabilities, the confidence, the features.
pub(crate) trait Inputs {
    /// One of them; not a number if it is missing.
    fn get(&self, input: usize) -> f64;
}

impl Inputs for &[f64] {
    #[inline(always)]
    fn get(&self, input: usize) -> f64 {
        self[input]
    }
}

/// A query read where it lies, for those with too many inputs or too few trees to put them side by side.
struct Scattered<'a, T> {
    prediction: &'a [T],
    divisor: f64,
    peak: Peak,
    features: &'a [f64],
}

impl<T: Real> Inputs for Scattered<'_, T> {
    fn get(&self, input: usize) -> f64 {
        match input.checked_sub(self.prediction.len()) {
            None => level(self.prediction[input], self.divisor),
            Some(0) => f64::from(self.peak.key()),
            Some(feature) => self.features[feature - 1],
        }
    }
}

/// The most inputs that are put side by side without allocating.
pub(super) const SIDE_BY_SIDE: usize = 64;

/// As many trees make it worth while.
const MANY: usize = 8;

/// The leaves of a query, one call a tree, in order; nothing is allocated.
#[inline]
pub(crate) fn leaves_for<T: Real>(
    trees: &Trees,
    prediction: &[T],
    peak: Peak,
    features: &[f64],
    mut visit: impl FnMut(u32),
) {
    let width = width(prediction.len(), features.len());
    if width <= SIDE_BY_SIDE && trees.count() >= MANY {
        let mut buffer = [0.0; SIDE_BY_SIDE];
        fill(prediction, peak, features, &mut buffer[..width]);
        trees.leaves_for(&buffer[..width], visit);
    } else {
        let divisor = simplex::divisor(prediction);
        let query = Scattered { prediction, divisor, peak, features };
        (0..trees.count()).for_each(|tree| visit(trees.leaf(tree, &query)));
    }
}

/// A probability as all cells compare it.
#[inline]
fn level<T: Real>(probability: T, divisor: f64) -> f64 {
    f64::from((f64::from(probability.to_f32()) / divisor) as f32)
}

/// How many inputs a query of so many classes and features has.
pub(crate) fn width(classes: usize, features: usize) -> usize {
    classes + 1 + features
}

/// Writes a query's inputs. Probabilities are taken in single precision, as all cells take them.
#[inline]
pub(crate) fn fill<T: Real>(prediction: &[T], peak: Peak, features: &[f64], out: &mut [f64]) {
    let divisor = simplex::divisor(prediction);
    let (probs, rest) = out.split_at_mut(prediction.len());
    for (slot, x) in probs.iter_mut().zip(prediction) {
        *slot = level(*x, divisor);
    }
    rest[0] = f64::from(peak.key());
    rest[1..].copy_from_slice(features);
}

/// The inputs of the given rows of a table, row by row.
pub(crate) fn of_rows(table: &Table, rows: &[u32], columns: &[usize]) -> Vec<f64> {
    let width = width(table.classes().len(), columns.len());
    let mut values = vec![0.0; rows.len() * width];
    values.par_chunks_exact_mut(width).with_min_len(1 << 10).zip(rows).for_each_init(
        || vec![0.0; columns.len()],
        |features, (out, &row)| {
            let row = row as usize;
            features.iter_mut().zip(columns).for_each(|(slot, &column)| *slot = table.features(row)[column]);
            match_precision!(table.raw_prediction(row), prediction => fill(prediction, table.peak(row), features, out));
        },
    );
    values
}

/// Inputs as the numbers of quantile bins, column by column: what trees are grown on.
pub(super) struct Codes {
    columns: Vec<Column>,
}

/// One input's bins.
pub(super) struct Column {
    /// Each row's bin, or [`MISSING`].
    pub(super) codes: Vec<u16>,
    /// A value is in a bin above `i` if it is at or above `cuts[i]`.
    pub(super) cuts: Vec<f64>,
    /// Whether any row lacks a value.
    pub(super) has_missing: bool,
}

impl Codes {
    /// Bins of every input of `width`; `values` row by row.
    pub(super) fn of(values: &[f64], width: usize) -> Self {
        let column = |input: usize| Column::of(values.iter().skip(input).step_by(width).copied().collect());
        Self { columns: (0..width).into_par_iter().map(column).collect() }
    }

    pub(super) fn column(&self, input: usize) -> &Column {
        &self.columns[input]
    }

    /// The inputs worth asking about. Of two classes the first says what the second does.
    pub(super) fn candidates(&self, classes: usize) -> Vec<u32> {
        let varies = |&input: &usize| {
            let column = &self.columns[input];
            !column.cuts.is_empty() || column.has_missing && column.codes.iter().any(|&code| code != MISSING)
        };
        (0..self.columns.len()).filter(|&input| classes > 2 || input > 0).filter(varies).map(|i| i as u32).collect()
    }
}

impl Column {
    fn of(values: Vec<f64>) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let mut cuts = Vec::new();
        // A bin ends where its share of the rows is reached and the value changes.
        let (mut wanted, mut bins) = (1, MAX_BINS);
        let distinct = sorted.windows(2).filter(|pair| pair[0] < pair[1]).count() + usize::from(n > 0);
        if distinct <= MAX_BINS {
            bins = n;
        }
        for (i, pair) in sorted.windows(2).enumerate() {
            if pair[0] < pair[1] && (i + 1) * bins >= wanted * n {
                cuts.push(between(pair[0], pair[1]));
                wanted = (i + 1) * bins / n + 1;
            }
        }
        let code = |x: &f64| if x.is_nan() { MISSING } else { cuts.partition_point(|cut| cut <= x) as u16 };
        let codes: Vec<u16> = values.iter().map(code).collect();
        Self { has_missing: n < values.len(), codes, cuts }
    }
}

/// A number above `low` and not above `high`, in the middle if there is one.
pub(super) fn between(low: f64, high: f64) -> f64 {
    let middle = low / 2.0 + high / 2.0;
    if middle > low && middle <= high { middle } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_distinct_values_have_a_bin_each() {
        let column = Column::of(vec![3.0, 1.0, f64::NAN, 1.0, 2.0]);
        assert_eq!(column.cuts, [1.5, 2.5]);
        assert_eq!(column.codes, [2, 0, MISSING, 0, 1]);
        assert!(column.has_missing);
        assert!(Column::of(vec![7.0; 9]).cuts.is_empty());
        assert!(Column::of(vec![f64::NAN; 3]).cuts.is_empty());
        assert_eq!(between(1.0, 1.0_f64.next_up()), 1.0_f64.next_up());
        assert!(between(f64::MIN, f64::MAX).is_finite());
    }

    #[test]
    fn many_distinct_values_share_bins_evenly() {
        let n = 10 * MAX_BINS;
        let column = Column::of((0..n).map(|i| ((i * 7919) % n) as f64).collect());
        assert_eq!(column.cuts.len(), MAX_BINS - 1);
        let mut counts = vec![0; MAX_BINS];
        column.codes.iter().for_each(|&code| counts[usize::from(code)] += 1);
        assert!(counts.iter().all(|&count| count == 10));
        // A value that most rows share takes one bin, and the others keep theirs.
        let column = Column::of((0..n).map(|i| if i % 2 == 0 { 0.0 } else { i as f64 }).collect());
        assert!(column.cuts.len() > MAX_BINS / 2 - 2 && column.cuts.len() < MAX_BINS);
    }
}
