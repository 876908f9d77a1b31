//! The inputs of trees: a query's probabilities, its confidence and its features.

use pointsman_trees::Trees;

use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::predictions::match_precision;
use crate::table::simplex::{self, Peak, Real};

/// A query whose inputs are computed one by one, because it has too many inputs, or the forest too few trees, to compute all of them.
struct Scattered<'a, T> {
    prediction: &'a [T],
    divisor: f64,
    peak: Peak,
    features: &'a [f64],
}

impl<T: Real> Scattered<'_, T> {
    /// One of the inputs; NaN if it is missing.
    fn get(&self, input: usize) -> f64 {
        match input.checked_sub(self.prediction.len()) {
            None => level(self.prediction[input], self.divisor),
            Some(0) => f64::from(self.peak.key()),
            Some(feature) => self.features[feature - 1],
        }
    }
}

/// The largest number of inputs that are computed at once, on the stack.
const MAX_INPUTS_ON_STACK: usize = 64;

/// The fewest trees for which it pays to compute all inputs at once.
const MIN_TREES_FOR_ROW: usize = 8;

/// Calls `visit` with the query's leaf of every tree, in order. Nothing is allocated.
#[inline]
pub(crate) fn leaves_of_query<T: Real>(
    trees: &Trees,
    prediction: &[T],
    peak: Peak,
    features: &[f64],
    mut visit: impl FnMut(u32),
) {
    let width = width(prediction.len(), features.len());
    if width <= MAX_INPUTS_ON_STACK && trees.count() >= MIN_TREES_FOR_ROW {
        let mut buffer = [0.0; MAX_INPUTS_ON_STACK];
        fill(prediction, peak, features, &mut buffer[..width]);
        trees.leaves_of_row(&buffer[..width], visit);
    } else {
        let divisor = simplex::divisor(prediction);
        let query = Scattered { prediction, divisor, peak, features };
        (0..trees.count()).for_each(|tree| visit(trees.leaf_by(tree, |input| query.get(input))));
    }
}

/// Sums leaf values for rows of a table: see [`Trees::sum_leaf_values`]. `make_block` gets some of `rows` and their sums.
pub(crate) fn sum_leaf_values<B: Send>(
    trees: &Trees,
    values: &[f64],
    table: &Table,
    rows: &[u32],
    columns: &[usize],
    make_block: impl Fn(&[u32], &[f64]) -> B + Sync,
) -> Vec<B> {
    let inputs_of_rows = |range: std::ops::Range<usize>| of_rows(table, &rows[range], columns);
    trees.sum_leaf_values(values, rows.len(), inputs_of_rows, |range, sums| make_block(&rows[range], sums))
}

/// A probability in single precision, as all partitions compare it.
#[inline]
fn level<T: Real>(probability: T, divisor: f64) -> f64 {
    f64::from((f64::from(probability.to_f32()) / divisor) as f32)
}

/// The number of inputs of a query.
pub(crate) fn width(classes: usize, features: usize) -> usize {
    classes + 1 + features
}

/// Writes a query's inputs.
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
