//! Whether reducible and total loss go together.

use super::crossfit::SPLITS;
use super::halves::Ordered;
use crate::error::Result;
use crate::estimate::{Decomposition, RowLosses, VoteGroups};
use crate::router::{Mixture, Router};
use crate::task::Task;

/// A cell's losses as two halves of the rows give them.
struct Cell {
    weight: f64,
    total: [f64; 2],
    reducible: [f64; 2],
}

/// Correlation of reducible and total loss over cells. Each moment takes its two factors from different halves, so that the
/// noise of the estimates drops out.
pub(super) fn correlation(ordered: &Ordered, router: &Router, task: &Task) -> Result<Option<f64>> {
    let found = router.find_cells(&ordered.rows)?;
    let none = RowLosses::default();
    let (mut both, mut total, mut reducible) = (0.0, 0.0, 0.0);
    for split in 0..SPLITS as u64 {
        let [first, second] = ordered.halves(split).map(|(half, _)| {
            let mut members = vec![Vec::new(); router.cells().count()];
            half.iter().for_each(|&row| members[found[row as usize].index()].push(row));
            let mut groups = VoteGroups::default();
            let estimate = |rows: &Vec<u32>| {
                Decomposition::fit(
                    Mixture::of_rows(&ordered.rows, rows),
                    task.loss(),
                    task.chosen_estimator(),
                    None,
                    &none,
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

/// Covariance over cells by their weight; zero if there are none.
fn covariance(cells: &[Cell], x: impl Fn(&Cell) -> f64, y: impl Fn(&Cell) -> f64) -> f64 {
    let all: f64 = cells.iter().map(|cell| cell.weight).sum();
    let mean = |f: &dyn Fn(&Cell) -> f64| cells.iter().map(|cell| cell.weight * f(cell)).sum::<f64>() / all;
    let (centre, middle) = (mean(&x), mean(&y));
    if all > 0.0 { mean(&|cell| (x(cell) - centre) * (y(cell) - middle)) } else { 0.0 }
}
