//! The cost matrix of a loss with the names of classes, so that a wrong order of columns is seen.

use std::io::{self, Write};

use pointsman::Loss;
use pointsman::error::printable;
use pointsman::loss::CostMatrix;
use pointsman::task::TaskSummary;

use super::number::{count, exact};
use super::paragraph;
use super::style::{BOLD, DIM, PLAIN, WARN};
use super::table::Grid;

/// The largest number of classes shown of a matrix that names them; one that does not is shown whole.
const MAX_SHOWN: usize = 12;

/// Prints the costs by act and class if the loss depends on the class, and returns whether it does.
pub(crate) fn write(mut out: impl Write, task: &TaskSummary, classes: &[String]) -> io::Result<bool> {
    if let Some((class, penalty)) = task.loss.parse().ok().and_then(|loss: Loss| loss.penalised_class()) {
        let class = printable(&classes[class]);
        paragraph(&mut out, 0, &format!("Wrongly answering {class} costs {}, any other error 1.", exact(penalty)))?;
        return Ok(true);
    }
    let Some(matrix) = &task.cost_matrix else { return Ok(false) };
    grid(&mut out, matrix)?;
    // The positive class of fn-fp and three-part is part of their definition.
    if !matrix.classes_named && task.loss.parse::<Loss>().is_err() {
        let text = format!(
            "{WARN}The matrix names no classes: its columns were taken in the router's order, as shown. To bind them, write \
             classes = [{}] below [loss], in the order of the columns.{WARN:#}",
            classes.iter().map(|class| format!("{:?}", printable(class))).collect::<Vec<_>>().join(", ")
        );
        paragraph(&mut out, 2, &text)?;
    }
    Ok(true)
}

/// Prints the costs as a task file has them: one row per act, one column per class.
pub(crate) fn grid(out: &mut impl Write, matrix: &CostMatrix) -> io::Result<()> {
    let shown = if matrix.classes_named { MAX_SHOWN } else { usize::MAX };
    let classes = matrix.classes.iter().take(shown);
    let mut grid = Grid::new().text("cost of").numbers(classes.map(|class| format!("if {class}")));
    for (act, row) in matrix.acts.iter().zip(&matrix.cost) {
        let costs = row.iter().take(shown).map(|cost| (exact(*cost), PLAIN));
        grid.row([(act.clone(), BOLD)].into_iter().chain(costs));
    }
    grid.write(&mut *out)?;
    if matrix.classes.len() > shown {
        let more = count(matrix.classes.len() - shown);
        writeln!(out, "  {DIM}… and {more} more classes, found by their names{DIM:#}")?;
    }
    Ok(())
}
