//! Sorting rows by cell and content.

use std::cmp::Ordering;

use crate::parallel::{self, prelude::*};
use crate::partition::{CellId, Cells};
use crate::table::Table;
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{Peak, Real};
use crate::table::votes::Votes;

/// The number of rows per cell from which a radix sort is faster than comparing.
const MIN_ROWS_FOR_RADIX_SORT: usize = 256;

/// The smallest share of the rows that is given to a core of its own.
const MIN_ROWS_PER_CORE: usize = 1 << 14;

/// The cell of each row; `columns` are the places of the cells' features in the table.
pub(super) fn cells_of(table: &Table, cells: &Cells, columns: &[usize]) -> Vec<CellId> {
    if let Some(grid) = cells.grid() {
        return table.peaks().par_iter().with_min_len(1 << 12).map(|&peak| grid.cell(peak)).collect();
    }
    if let Some(found) = cells.find_together(table, columns) {
        return found;
    }
    (0..table.rows())
        .into_par_iter()
        .with_min_len(1 << 12)
        .map_init(Vec::new, |features: &mut Vec<f64>, row| {
            features.clear();
            features.extend(columns.iter().map(|&column| table.features(row)[column]));
            match_precision!(table.raw_prediction(row), prediction => cells.find(prediction, table.peak(row), features))
        })
        .collect()
}

/// The rows sorted by cell, then confidence, then content, and the place where each cell starts.
///
/// Sorting by content makes sums, and with them decisions and files, independent of the order of the table.
pub(super) fn sort_by_cell(table: &Table, cells: &Cells, columns: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let found = cells_of(table, cells, columns);
    // Each core sorts its share of the rows by cell. Confidence and row are packed into one number, which sorts in half the time of a
    // pair.
    let share = found.len().div_ceil(parallel::current_num_threads()).max(MIN_ROWS_PER_CORE).max(cells.count());
    let place = |(found, peaks, first): (&[CellId], &[Peak], usize)| {
        let (mut next, starts) = starts_of(found, cells.count());
        let mut order = vec![0_u64; found.len()];
        for ((cell, peak), row) in found.iter().zip(peaks).zip(first as u64..) {
            let next = &mut next[cell.index()];
            // The bits of nonnegative floats sort like their values.
            order[*next as usize] = u64::from(peak.key().to_bits()) << 32 | row;
            *next += 1;
        }
        (starts, order)
    };
    let shares = found.par_chunks(share).zip(table.peaks().par_chunks(share)).enumerate();
    let shares: Vec<(Vec<u32>, Vec<u64>)> =
        shares.map(|(i, (found, peaks))| place((found, peaks, i * share))).collect();
    let starts: Vec<u32> =
        (0..=cells.count()).map(|cell| shares.iter().map(|(starts, _)| starts[cell]).sum()).collect();
    let mut order = vec![0_u32; table.rows()];
    let (mut rest, mut runs) = (order.as_mut_slice(), Vec::with_capacity(cells.count()));
    for (cell, ends) in starts.windows(2).enumerate() {
        let (run, after) = rest.split_at_mut((ends[1] - ends[0]) as usize);
        runs.push((cell, run));
        rest = after;
    }
    runs.into_par_iter().for_each_init(Vec::new, |run, (cell, out)| {
        run.clear();
        for (starts, order) in &shares {
            run.extend_from_slice(&order[starts[cell] as usize..starts[cell + 1] as usize]);
        }
        if run.len() < MIN_ROWS_FOR_RADIX_SORT {
            run.sort_unstable();
        } else {
            radsort::sort_by_key(run, |row| (row >> 32) as u32);
        }
        for alike in run.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(|&a, &b| compare_content(table, columns, a as u32 as usize, b as u32 as usize));
        }
        out.iter_mut().zip(run.iter()).for_each(|(slot, row)| *slot = *row as u32);
    });
    (order, starts)
}

/// The place where each cell starts, in two copies: one to advance as rows are placed, one to keep.
pub(super) fn starts_of(found: &[CellId], cells: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; cells + 1];
    found.iter().for_each(|cell| starts[cell.index() + 1] += 1);
    (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
    (starts.clone(), starts)
}

/// Compares what a router stores of two rows: predictions, votes, weights, the given feature columns and oracles' answers.
pub(crate) fn compare_content(table: &Table, columns: &[usize], a: usize, b: usize) -> Ordering {
    fn reals<T: Real>(a: &[T], b: &[T]) -> Ordering {
        let orders = a.iter().zip(b).map(|(x, y)| x.to_f64().total_cmp(&y.to_f64()));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
    let predictions = match (table.raw_prediction(a), table.raw_prediction(b)) {
        (RawPredictions::Single(a), RawPredictions::Single(b)) => reals(a, b),
        (a, b) => reals(&a.doubles(), &b.doubles()),
    };
    let mut order = predictions
        .then_with(|| table.votes(a).map(Votes::counts).cmp(&table.votes(b).map(Votes::counts)))
        .then_with(|| table.weight(a).total_cmp(&table.weight(b)))
        .then_with(|| {
            let (a, b) = (table.features(a), table.features(b));
            let orders = columns.iter().map(|&column| a[column].total_cmp(&b[column]));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
    for (_, probs) in table.oracles() {
        let c = table.classes().len();
        order = order.then_with(|| reals(&probs[a * c..][..c], &probs[b * c..][..c]));
    }
    order
}
