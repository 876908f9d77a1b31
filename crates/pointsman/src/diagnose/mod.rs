//! Diagnosis of a table before calibration: does decomposition help on this data, and are the labels good enough to show it?
//!
//! [`diagnose`] splits a table into random halves several times, calibrates on one half and evaluates on the other, in both directions.
//! Every cost and gain is therefore measured on held-out rows. Intervals are ± 1.96 standard errors, from the variance over rows plus the
//! variance between splits. Routers learn from only half of the rows, so a router of the whole table does a little better than reported
//! here. With `auto` each half chooses its own partition, so no partition is evaluated on the rows it was chosen on.

mod advice;
mod agreement;
mod annotators;
mod correlation;
mod crossfit;
mod enough;
mod estimate;
mod halves;
mod left_out;
mod limited;
mod mismatch;
mod remarks;
mod stopping;
mod unanimity;
mod weak_model;
mod worth;

use crate::error::{Error, Result, TableError};
use crate::estimate::RowEstimates;
use crate::numeric::weighted::weighted_mean;
use crate::partition::{CellId, Factor, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::task::{Task, TaskSummary};
pub use advice::{Advice, Recommendation};
pub use agreement::{Agreement, ChangedCell, Sensitivity, copies_per_label};
pub use annotators::{
    AgreeingPair, Annotations, Annotator, AnnotatorCheck, AnnotatorStatistics, NamedLabel, Suspicion, UsualClass,
};
use correlation::correlation;
use crossfit::{Crossfit, Plan};
pub use enough::{Compared, Enough, LeftOut};
pub use estimate::Estimate;
use halves::Ordered;
pub use halves::halves;
pub use left_out::FlaggedAnnotators;
use left_out::without_left_out;
pub use mismatch::{ClassMatch, Mismatch};
pub use stopping::Stopping;
pub use unanimity::Unanimity;
pub use weak_model::{ConfidenceBin, Miscalibration, WeakModel};
pub use worth::{AtLimit, Worth};

/// The number of times that [`diagnose`] calls `done`.
pub const DIAGNOSIS_STEPS: usize = crossfit::SPLITS;

/// Partitions that are compared if they can be fitted.
const PARTITIONS: [&str; 4] = ["top-class:5", "top-class:10", "top-class:20", "confidence:30"];

/// The number of trees of a forest that is also compared: large enough for a reliable result, small enough to be fast.
const FOREST_TREES: usize = 25;

/// The smallest number of rows from which a forest is compared.
const MIN_ROWS_FOR_FOREST: usize = 1000;

/// The number of features that are compared, each together with the top class.
const MAX_FEATURES_COMPARED: usize = 4;

/// The diagnosis of a table for a task and a partition.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Diagnosis {
    /// The number of rows of the table.
    pub rows: usize,
    /// The number of rows used: very long tables are sampled.
    pub rows_used: usize,
    /// The classes, in order.
    pub classes: Vec<String>,
    /// The loss's unit.
    pub unit: &'static str,
    /// The task.
    pub task: TaskSummary,
    /// The partition.
    pub partition: String,
    /// The partition that `auto` chooses on all rows used, if `auto` was asked for.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub chosen: Option<String>,
    /// The number of splits into halves.
    pub splits: usize,
    /// The verdict.
    pub verdict: Recommendation,
    /// The worth of decomposition; unknown with one label per item, or if a half of the rows has too few with several labels.
    pub worth: Option<Worth>,
    /// Bounds on the reducible loss, if the labels only bound it.
    pub bounds: Option<Bounds>,
    /// The calibration of the weak model's confidence.
    pub weak_model: WeakModel,
    /// Whether there are enough labels, rows and cells.
    pub enough: Enough,
    /// Whether the number of labels depends on the labels themselves, without those of annotators to leave out; unknown if it does not vary
    /// or the labels of an item hardly ever differ.
    pub stopping: Option<Stopping>,
    /// Set if all labels of each row agree although similar rows differ: labels may be copies.
    pub unanimity: Option<Unanimity>,
    /// The share of unanimous rows, and which results depend on labels being independent.
    pub agreement: Agreement,
    /// Set if the classes of votes and predictions seem to be matched wrongly.
    pub mismatch: Option<Mismatch>,
    /// All annotators, if labels come with names.
    pub annotators: Vec<Annotator>,
    /// Pairs of annotators who agree with each other more often than chance explains.
    pub agreeing_pairs: Vec<AgreeingPair>,
    /// The annotators to leave out and the effect of leaving them out; none if there are none, or labels come without names.
    pub flagged_annotators: Option<FlaggedAnnotators>,
}

/// The bounds that one label per item gives.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Bounds {
    /// The bounds on the reducible loss.
    pub reducible: [f64; 2],
    /// The share of the traffic whose action is determined by the bounds; unknown if the task has only one action.
    pub decided: Option<f64>,
}

/// Diagnoses a table for a task and a partition. Use [`Partition::auto`], the default of `calibrate`, if no partition is meant in
/// particular. A task without routes and abstention is evaluated by the order of routing alone. `done` is called [`DIAGNOSIS_STEPS`] times.
///
/// ```
/// use pointsman::{Loss, Partition, Table, Task};
/// use pointsman::diagnose::diagnose;
/// use pointsman::diagnose::Advice;
/// let probs = (0..400).flat_map(|i| [0.2 + 0.0015 * f64::from(i), 0.8 - 0.0015 * f64::from(i)]).collect();
/// let table = Table::new(["no", "yes"], probs)?.with_votes([1, 0, 0, 1].repeat(200))?;
/// let diagnosis = diagnose(&table, &Task::new(Loss::brier()), &Partition::top_class(5), || ())?;
/// assert_eq!(diagnosis.verdict.advice, Advice::OneLabel);
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If the table has no votes or fewer than four rows, the task or the partition does not fit the table, or no routing reaches
/// the task's target loss on it.
pub fn diagnose(table: &Table, task: &Task, partition: &Partition, done: impl Fn() + Sync) -> Result<Diagnosis> {
    diagnose_annotated(table, None, task, partition, done)
}

/// As [`diagnose`], and checks whether each annotator labels independently, if annotations with names are given.
///
/// # Errors
/// As there, and if the annotations are not those of the table's rows.
pub fn diagnose_annotated(
    table: &Table,
    annotations: Option<&Annotations>,
    task: &Task,
    partition: &Partition,
    done: impl Fn() + Sync,
) -> Result<Diagnosis> {
    if table.rows() < 4 {
        return Err(TableError::TooFewRows { purpose: "a diagnosis", rows: table.rows(), least: 4 }.into());
    }
    let task = &task.for_classes(table.classes())?;
    let ordered = Ordered::for_partition(table, partition)?;
    let in_table = |error: Error| error.map_row(|row| ordered.origin[row] as usize);
    let (router, chosen) = Router::calibrate_for_diagnosis(&ordered.rows, partition).map_err(in_table)?;
    let left_out = LeftOut::from_table(&ordered.rows, MAX_FEATURES_COMPARED);
    let plans = plans(&ordered.rows, partition, &left_out);
    let crossfit = Crossfit::fit(&ordered, task, &plans, done)?;
    if task.limit().is_some() && crossfit.is_some() {
        // A limit that the whole table cannot keep is refused; the error says what it can keep.
        router.policy(task)?;
    }
    let unlimited = task.clone().without_limit();
    let cells = fixed_cells(&ordered.rows, router.clone())?;
    let checked = annotations.map(|named| AnnotatorCheck::new(table, named).map(|check| (named, check))).transpose()?;
    let (mut flagged_annotators, mut labels_of_others) = (None, None);
    if let Some((named, check)) = checked.as_ref().filter(|(_, check)| !check.left_out.is_empty()) {
        labels_of_others = without_left_out(table, named, check)?;
        flagged_annotators = Some(FlaggedAnnotators::new(table, named, check, labels_of_others.as_ref(), task.loss()));
    }
    let (annotators, agreeing_pairs) = checked.map(|(_, check)| (check.annotators, check.pairs)).unwrap_or_default();
    let mut diagnosis = Diagnosis {
        rows: table.rows(),
        rows_used: ordered.rows.rows(),
        classes: table.classes().to_vec(),
        unit: task.loss().unit(),
        task: TaskSummary::new(task, table.classes()),
        partition: partition.to_string(),
        chosen: (chosen != *partition).then(|| chosen.to_string()),
        splits: crossfit::SPLITS,
        verdict: Recommendation::default(),
        worth: None,
        bounds: None,
        weak_model: WeakModel::fit(&ordered.rows)?,
        enough: Enough::new(&ordered.rows, &router, &unlimited)?,
        // A majority vote among the labels makes those of items with few labels agree, as stopping at agreement does.
        stopping: Stopping::detect(labels_of_others.as_ref().unwrap_or(table))?,
        unanimity: Unanimity::detect(table)?,
        agreement: Agreement::new(&ordered, &cells, &unlimited)?,
        mismatch: Mismatch::detect(table)?,
        annotators,
        agreeing_pairs,
        flagged_annotators,
    };
    diagnosis.enough.features_left_out = left_out;
    match crossfit {
        Some(crossfit) => {
            let negligible = 1e-12 * task.loss().rounding();
            diagnosis.add_crossfit(&crossfit, &plans, task.actions() > 1, negligible);
            diagnosis.add_correlation(correlation(&ordered, &router, &unlimited)?, &ordered.rows);
        }
        // The labels of the whole table may separate noise from error where those of a half of its few rows do not.
        None if RowEstimates::fit(&ordered.rows, task.loss()).is_some() => {}
        None => diagnosis.bounds = Some(bounds(&router, task)?),
    }
    diagnosis.verdict = advice::recommend(&diagnosis);
    Ok(diagnosis)
}

impl Diagnosis {
    /// Adds the correlation of reducible and total loss. The irreducible loss of all rows together replaces those of other estimates.
    fn add_correlation(&mut self, correlation: Option<f64>, rows: &Table) {
        let Some(worth) = &mut self.worth else { return };
        worth.correlation = correlation;
        let irreducible = worth.loss.estimate - worth.reducible.estimate;
        if let Some(sensitivity) = &mut self.agreement.sensitivity {
            sensitivity.rescale(irreducible, rows);
        }
        if let Some(flagged) = &mut self.flagged_annotators {
            flagged.rescale(irreducible);
        }
    }
}

/// The router or, if its cells were learned from the labels, one with fixed cells, in which the losses of other labels can be estimated.
fn fixed_cells(rows: &Table, router: Router) -> Result<Router> {
    let learned = router.partition().factors().iter().any(Factor::learns);
    if learned { Router::calibrate(rows, &crossfit::correction_cells(rows)) } else { Ok(router) }
}

/// The partition asked for, the same with centroids served, and others to compare it with.
fn plans(rows: &Table, partition: &Partition, left_out: &[LeftOut]) -> Vec<Plan> {
    let is_tried = |name: &&String| left_out.iter().all(|left| left.feature != **name);
    let features = rows.feature_names().iter().filter(is_tried);
    let with_feature = |name: &String| Partition::top_class(5).times(Partition::features([(name.clone(), 4)]));
    let forest = (rows.rows() >= MIN_ROWS_FOR_FOREST).then(|| Partition::forest(FOREST_TREES));
    let others = PARTITIONS.iter().filter_map(|text| text.parse().ok()).chain(features.map(with_feature)).chain(forest);
    let plan = |partition: Partition, recalibrated: bool| Plan { partition, recalibrated };
    // `auto` may choose a forest, whose cells have no centroids.
    let is_auto = matches!(partition.factors(), [Factor::Auto { .. }]);
    let served = if is_auto { Partition::pooled() } else { partition.clone() };
    let mut plans = vec![plan(partition.clone(), false), plan(served, true)];
    plans.extend(others.filter(|other| other != partition).map(|other| plan(other, false)));
    plans
}

/// Bounds on the reducible loss over all cells.
fn bounds(router: &Router, task: &Task) -> Result<Bounds> {
    let policy = router.policy(&task.clone().without_limit())?;
    // Bounds may not show whether a target loss can be reached.
    let decided = |task: &Task| Some(1.0 - policy.reprice(task).ok()?.shares().get("undetermined").unwrap_or(&0.0));
    let cells = || (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let bound = |end: usize| {
        weighted_mean(cells().map(|cell| (cell.estimate().weight, cell.estimate().reducible_bounds()[end])))
    };
    Ok(Bounds {
        reducible: [bound(0), bound(1)],
        decided: Some(task).filter(|task| task.actions() > 1).and_then(decided),
    })
}
