//! The correlation of reducible and total loss over cells.

use super::crossfit::SPLITS;
use super::halves::Ordered;
use crate::error::Result;
use crate::estimate::{BorrowedLosses, Decomposition, RowLosses, VoteGroups};
use crate::numeric::weighted::weighted_mean;
use crate::router::{Mixture, Router};
use crate::task::Task;

/// A cell's losses, estimated from each of two halves of its rows.
struct Cell {
    weight: f64,
    total: [f64; 2],
    reducible: [f64; 2],
}

/// The correlation of reducible and total loss over cells. The two factors of each moment come from different halves, so the noise of the
/// estimates cancels.
pub(super) fn correlation(ordered: &Ordered, router: &Router, task: &Task) -> Result<Option<f64>> {
    let found = router.find_cells(&ordered.rows)?;
    let (none, borrowed) = (RowLosses::default(), BorrowedLosses::fit(&ordered.rows, task.loss()));
    let (mut both, mut total, mut reducible) = (0.0, 0.0, 0.0);
    for split in 0..SPLITS as u64 {
        let [first, second] = ordered.halves(split).map(|(half, _)| {
            let mut members = vec![Vec::new(); router.cells().count()];
            half.iter().for_each(|&row| members[found[row as usize].index()].push(row));
            let is_outside = |row: usize| half.binary_search(&(row as u32)).is_err();
            let borrowed = borrowed.as_ref().map(|borrowed| borrowed.without(&ordered.rows, is_outside));
            let mut groups = VoteGroups::default();
            let estimate = |rows: &Vec<u32>| {
                Decomposition::fit(
                    Mixture::of_rows(&ordered.rows, rows),
                    task.loss(),
                    task.chosen_estimator(),
                    None,
                    &none,
                    borrowed.as_ref(),
                    &mut groups,
                )
            };
            members.iter().map(estimate).collect::<Vec<_>>()
        });
        let cell = |(a, b): (Option<Decomposition>, Option<Decomposition>)| {
            let (a, b) = (a?, b?);
            let reducible = [a.reducible()?, b.reducible()?];
            Some(Cell { weight: a.weight + b.weight, total: [a.total, b.total], reducible })
        };
        let cells: Vec<Cell> = first.into_iter().zip(second).filter_map(cell).collect();
        both += covariance(&cells, |cell| cell.total[0], |cell| cell.reducible[1]).midpoint(covariance(
            &cells,
            |cell| cell.total[1],
            |cell| cell.reducible[0],
        ));
        total += covariance(&cells, |cell| cell.total[0], |cell| cell.total[1]);
        reducible += covariance(&cells, |cell| cell.reducible[0], |cell| cell.reducible[1]);
    }
    Ok((total > 0.0 && reducible > 0.0).then(|| (both / (total * reducible).sqrt()).clamp(-1.0, 1.0)))
}

/// The weighted covariance over cells; zero without cells.
fn covariance(cells: &[Cell], x: impl Fn(&Cell) -> f64, y: impl Fn(&Cell) -> f64) -> f64 {
    let mean = |f: &dyn Fn(&Cell) -> f64| weighted_mean(cells.iter().map(|cell| (cell.weight, f(cell))));
    let (x_mean, y_mean) = (mean(&x), mean(&y));
    if cells.is_empty() { 0.0 } else { mean(&|cell| (x(cell) - x_mean) * (y(cell) - y_mean)) }
}
