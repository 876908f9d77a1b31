//! The irreducible loss without the annotators whose labels are not independent.

use crate::diagnose::annotators::{Annotations, AnnotatorCheck};
use crate::error::Result;
use crate::numeric::weighted::weighted_mean;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;

/// The relative difference of the irreducible loss from which the labels must be corrected first.
const MATERIAL: f64 = 0.1;

/// Annotators whose labels should be left out, and the effect on the irreducible loss.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FlaggedAnnotators {
    /// Their names, strongest evidence first.
    pub annotators: Vec<String>,
    /// The irreducible loss per query with their labels; unknown with one label per item.
    pub irreducible: Option<f64>,
    /// The irreducible loss per query without their labels.
    pub irreducible_without: Option<f64>,
}

impl FlaggedAnnotators {
    /// `None` if no annotator is to be left out. Losses are estimated in the cells of `cells`.
    pub(super) fn new(
        table: &Table,
        annotations: &Annotations,
        check: &AnnotatorCheck,
        cells: &Router,
        task: &Task,
    ) -> Result<Option<Self>> {
        if check.left_out.is_empty() {
            return Ok(None);
        }
        let classes = table.classes().len();
        let votes = annotations.votes_without(&check.left_out, classes)?;
        let has_labels = |row: &u32| votes[*row as usize * classes..][..classes].iter().any(|&n| n > 0);
        let kept: Vec<u32> = (0..table.rows() as u32).filter(has_labels).collect();
        let kept_votes = kept.iter().flat_map(|&row| &votes[row as usize * classes..][..classes]).copied().collect();
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let irreducible = |rows: &Table| -> Result<Option<f64>> {
            Ok(mean_irreducible(&Router::calibrate_like(rows, cells)?.policy(task)?))
        };
        let without =
            if kept.is_empty() { None } else { irreducible(&table.select(&kept, &columns).with_votes(kept_votes)?)? };
        Ok(Some(Self {
            annotators: check.left_out.clone(),
            irreducible: irreducible(table)?,
            irreducible_without: without,
        }))
    }

    /// Whether the irreducible loss differs by a tenth or more without their labels.
    #[must_use]
    pub fn is_material(&self) -> bool {
        self.irreducible
            .zip(self.irreducible_without)
            .is_some_and(|(with, without)| (without - with).abs() >= MATERIAL * with.abs() && without != with)
    }
}

/// The mean irreducible loss over the cells in which it is known; `None` if it is known in none.
fn mean_irreducible(policy: &Policy) -> Option<f64> {
    let cells = (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let known = cells.filter_map(|decision| Some((decision.estimate().weight, decision.irreducible()?)));
    let mean = weighted_mean(known);
    mean.is_finite().then_some(mean)
}
