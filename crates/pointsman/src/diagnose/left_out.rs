//! The irreducible loss without the annotators whose labels are not independent.

use super::estimate::mean;
use crate::diagnose::annotators::{Annotations, AnnotatorCheck};
use crate::error::Result;
use crate::estimate::RowEstimates;
use crate::loss::Loss;
use crate::table::Table;
use crate::table::votes::Votes;

/// The relative difference of the irreducible loss from which the labels must be corrected first.
const MATERIAL: f64 = 0.1;

/// The share of the labels from which those of annotators to leave out must be left out first.
const MATERIAL_SHARE: f64 = 0.1;

/// Annotators whose labels should be left out, and the effect on the irreducible loss.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FlaggedAnnotators {
    /// Their names, strongest evidence first.
    pub annotators: Vec<String>,
    /// The share of all labels that they gave.
    pub label_share: f64,
    /// The irreducible loss per query with their labels; unknown with one label per item.
    pub irreducible: Option<f64>,
    /// The irreducible loss per query without their labels.
    pub irreducible_without: Option<f64>,
}

/// The rows with the labels of annotators who are not to be left out; `None` if nobody else labelled.
pub(super) fn without_left_out(
    table: &Table,
    annotations: &Annotations,
    check: &AnnotatorCheck,
) -> Result<Option<Table>> {
    let classes = table.classes().len();
    let votes = annotations.votes_without(&check.left_out, classes)?;
    let has_labels = |row: &u32| votes[*row as usize * classes..][..classes].iter().any(|&n| n > 0);
    let kept: Vec<u32> = (0..table.rows() as u32).filter(has_labels).collect();
    let kept_votes = kept.iter().flat_map(|&row| &votes[row as usize * classes..][..classes]).copied().collect();
    let columns: Vec<usize> = (0..table.feature_names().len()).collect();
    (!kept.is_empty()).then(|| table.select(&kept, &columns).with_votes(kept_votes)).transpose()
}

impl FlaggedAnnotators {
    /// Those whom the check leaves out of a table's annotations; `others` has the rows with the labels of the others, if there are any.
    pub(super) fn new(
        table: &Table,
        annotations: &Annotations,
        check: &AnnotatorCheck,
        others: Option<&Table>,
        loss: &Loss,
    ) -> Self {
        let labels = |rows: &Table| (0..rows.rows()).filter_map(|row| rows.votes(row)).map(Votes::k).sum::<u64>();
        Self {
            annotators: check.left_out.clone(),
            label_share: 1.0 - others.map_or(0, labels) as f64 / annotations.total().max(1) as f64,
            irreducible: mean_irreducible(table, loss),
            irreducible_without: others.and_then(|others| mean_irreducible(others, loss)),
        }
    }

    /// Replaces the irreducible loss with all labels by the one that the diagnosis reports, and the one without theirs in proportion.
    pub(super) fn rescale(&mut self, irreducible: f64) {
        let (Some(with), Some(without)) = (self.irreducible, self.irreducible_without) else { return };
        if with > 0.0 && irreducible > 0.0 {
            self.irreducible = Some(irreducible);
            self.irreducible_without = Some(without * irreducible / with);
        }
    }

    /// Whether they gave more than a tenth of the labels, or the irreducible loss differs by a tenth or more without their labels. Faults that
    /// cancel in that mean do not cancel in every cell.
    #[must_use]
    pub fn is_material(&self) -> bool {
        let changes = self
            .irreducible
            .zip(self.irreducible_without)
            .is_some_and(|(with, without)| (without - with).abs() >= MATERIAL * with.abs() && without != with);
        changes || self.label_share > MATERIAL_SHARE
    }
}

/// The mean irreducible loss of the rows, by the measure of the costs; `None` if the labels do not identify it.
fn mean_irreducible(table: &Table, loss: &Loss) -> Option<f64> {
    let weights: Vec<f64> = (0..table.rows()).map(|row| table.weight(row)).collect();
    Some(mean(&RowEstimates::fit(table, loss)?.irreducible, &weights))
}
