//! What a task makes of a forest: losses per leaf, averaged over the trees for each query.

use std::sync::Arc;

use super::cap::STAYS;
use super::limit::content;
use super::{Decision, KEPT, MixedAction, Policy, UNDETERMINED, Verdict};
use crate::error::{Result, RouterError, TaskError};
use crate::estimate::{Decomposition, OracleLoss, PerRow, RowLosses, Scratch, Slopes, slopes_within};
use crate::loss::{Loss, SelfEstimate};
use crate::parallel::prelude::*;
use crate::partition::forest::{Forest, LeafStatistics, add_leaf_values, inputs};
use crate::partition::{CellId, Edges};
use crate::router::{Mixture, Router};
use crate::table::Table;
use crate::table::predictions::match_precision;
use crate::table::simplex::{self, Peak, Real};
use crate::task::Estimator;
use crate::task::Task;

/// The most actions of a task for a forest: their costs are each query's own and must fit into its decision.
pub(super) const MAX_ACTIONS: usize = 16;

/// Places of what every leaf and every query has: the score, the total loss and the lower end of the irreducible loss.
const SCORE: usize = 0;
const TOTAL: usize = 1;
const LOW: usize = 2;

/// Place of the upper end of a query's irreducible loss; both ends of what each other oracle loses follow.
const QUERY_HIGH: usize = 3;
const QUERY_ORACLES: usize = 4;

/// The most values of a query, and of a leaf, which also has its share of errors.
const MAX_QUERY_WIDTH: usize = QUERY_ORACLES + 2 * MAX_ACTIONS;
const MAX_LEAF_WIDTH: usize = MAX_QUERY_WIDTH + 1;

/// The most classes whose entropy a decision looks at, since it allocates nothing.
const MAX_OWN_CLASSES: usize = 256;
const FEW_CLASSES: usize = 16;

/// A forest with the losses of each leaf.
#[derive(Debug)]
pub(super) struct Leaves {
    pub(super) forest: Arc<Forest>,
    edges: Edges,
    columns: LeafColumns,
    /// Leaf by leaf, as the columns say.
    values: Vec<f64>,
    loss: Loss,
    /// What is added to a query's total loss for its prediction, and what leaves have been freed from.
    pub(super) slopes: Slopes,
    /// The rows of each leaf.
    pub(super) members: Arc<LeafStatistics>,
}

/// Where the values of a leaf are: behind [`LOW`], what some forests have and others do not.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LeafColumns {
    /// The upper end of the irreducible loss; none if it is the lower one in every leaf.
    high: Option<usize>,
    /// The share of labels that are not the top class; none if predictions say nothing of themselves.
    error_share: Option<usize>,
    /// Both ends of what each other oracle loses, to the end.
    oracles: usize,
    width: usize,
}

impl LeafColumns {
    fn new(has_bounds: bool, has_slopes: bool, oracles: usize) -> Self {
        let mut next = LOW + 1;
        let mut place = |is_there: bool| {
            is_there.then(|| {
                next += 1;
                next - 1
            })
        };
        let (high, error_share) = (place(has_bounds), place(has_slopes));
        Self { high, error_share, oracles: next, width: next + 2 * oracles }
    }

    /// How many values a query has.
    fn query_width(self) -> usize {
        QUERY_ORACLES + self.width - self.oracles
    }
}

/// What values mixtures of the calibration rows for a task.
pub(super) struct Values<'a> {
    pub(super) table: &'a Table,
    per_row: PerRow<'a>,
    loss: &'a Loss,
    estimator: Estimator,
    oracles: &'a RowLosses,
}

impl<'a> Values<'a> {
    pub(super) fn of(table: &'a Table, loss: &'a Loss, estimator: Estimator, oracles: &'a RowLosses) -> Self {
        Self { table, per_row: PerRow::of(table, loss), loss, estimator, oracles }
    }

    /// What a row's prediction is in for.
    pub(super) fn self_estimate(&self, row: u32) -> SelfEstimate {
        self.per_row.self_estimate(row as usize)
    }

    /// What those of some rows are in for on average, and the share of labels that are not their top class.
    pub(super) fn mean_self_estimate(&self, rows: &[u32]) -> (SelfEstimate, f64) {
        self.per_row.mean_self_estimate(rows)
    }

    /// How many numbers [`Losses`] are.
    pub(super) fn width(&self) -> usize {
        3 + 2 * self.oracles.columns().len()
    }

    /// Writes both ends of a leaf's irreducible loss and of what each other oracle loses there.
    fn write_leaf(&self, leaves: &LeafStatistics, leaf: usize, scratch: &mut Scratch, out: &mut [f64]) {
        let (irreducible, oracles) = out.split_at_mut(2);
        irreducible.copy_from_slice(&self.per_row.irreducible(leaves, leaf, self.loss, self.estimator, scratch));
        self.write_oracles(leaves.rows_of(leaf), scratch, oracles);
    }

    /// Writes the losses of some rows; false if there are none.
    pub(super) fn write(&self, rows: &[u32], scratch: &mut Scratch, out: &mut [f64]) -> bool {
        if rows.is_empty() {
            return false;
        }
        out[..3].copy_from_slice(&self.per_row.losses(rows, self.loss, self.estimator, scratch));
        self.write_oracles(rows, scratch, &mut out[3..]);
        true
    }

    /// Writes what oracles lose that are not Bayesian, if there are any.
    fn write_oracles(&self, rows: &[u32], scratch: &mut Scratch, out: &mut [f64]) {
        if out.is_empty() {
            return;
        }
        let mixture = Mixture::of_rows(self.table, rows);
        let d = Decomposition::fit(mixture, self.loss, self.estimator, None, self.oracles, &mut scratch.groups);
        if let Some(d) = d {
            out.copy_from_slice(d.oracles.as_flattened());
        }
    }
}

/// Expected losses of one query, side by side: total, both ends of the irreducible loss, both ends of each other oracle's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses<'a>(pub(super) &'a [f64]);

impl<'a> Losses<'a> {
    /// The score, which comes first, has done its work once the cell is known.
    fn of(row: &'a [f64]) -> Self {
        Self(&row[TOTAL..])
    }

    pub(crate) fn total(self) -> f64 {
        self.0[0]
    }

    pub(crate) fn irreducible(self) -> [f64; 2] {
        [self.0[1], self.0[2]]
    }

    fn at(self, column: OracleLoss) -> [f64; 2] {
        match column {
            OracleLoss::Irreducible => self.irreducible(),
            OracleLoss::Other(place) => [self.0[3 + 2 * place], self.0[4 + 2 * place]],
        }
    }
}

/// A query's own costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub(super) total: f64,
    pub(super) irreducible: [f64; 2],
    pub(super) low: [f64; MAX_ACTIONS],
    pub(super) high: [f64; MAX_ACTIONS],
    pub(super) code: u8,
    /// At the margin of a limit, what is done if the lot falls against routing; the same otherwise.
    pub(super) kept: u8,
    pub(super) margin: f64,
}

impl Verdict {
    /// Marked as one whose lot fell against routing, if it did.
    fn unless(self, falls: bool) -> Self {
        if falls { Self(self.0 | KEPT) } else { self }
    }
}

/// Many rows decided together; [`Policy::row`] unfolds one.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    pub(super) verdicts: Vec<Verdict>,
    /// The rows' own scores and losses, if the router has a forest.
    pub(super) losses: Vec<f64>,
    pub(super) width: usize,
    /// The actions of rows that a cap kept from theirs, if caps were applied.
    pub(super) moved: Vec<u8>,
}

impl Decisions {
    /// Whether caps were applied.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        !self.moved.is_empty()
    }

    /// The action that a cap gave a row instead of its own.
    pub(super) fn moved(&self, row: usize) -> Option<u8> {
        self.moved.get(row).copied().filter(|&code| code != STAYS)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.verdicts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }

    /// The row's verdict before any lot was drawn.
    pub(crate) fn verdict(&self, row: usize) -> Verdict {
        Verdict(self.verdicts[row].0 & !KEPT)
    }

    /// Draws the lots at the margin of a limit by the rows' ids instead of their content.
    pub fn draw_by_ids(&mut self, policy: &Policy, ids: &[String]) {
        if policy.cutoff.is_none() {
            return;
        }
        for (row, id) in ids.iter().enumerate().take(self.len()) {
            let own = self.losses(row).map(|losses| policy.own(losses));
            self.verdicts[row] = match own {
                Some(own) => self.verdict(row).unless(policy.draw_falls_against(&own, id.bytes().map(u64::from))),
                None => policy.draw_by_id(self.verdicts[row], id),
            };
        }
    }

    /// A row's own losses; `None` if its cell's count.
    pub(crate) fn losses(&self, row: usize) -> Option<Losses<'_>> {
        (self.width > 0).then(|| Losses::of(&self.losses[row * self.width..][..self.width]))
    }
}

impl Leaves {
    /// Values every leaf; `None` if the router has no forest.
    pub(super) fn of(router: &Router, loss: &Loss, estimator: Estimator, oracles: &RowLosses) -> Result<Option<Self>> {
        let Some(((forest, edges), members)) = router.cells().forest().zip(router.leaves()) else { return Ok(None) };
        if router.is_recalibrated() {
            return Err(RouterError::NotServable.into());
        }
        let estimator = crate::estimate::estimator_for_leaves(estimator);
        if !matches!(estimator, Estimator::Shrink | Estimator::Plugin) {
            return Err(TaskError::EstimatorOfForest { estimator: estimator.to_string() }.into());
        }
        let write = Values::of(router.rows(), loss, estimator, oracles);
        let oracles = oracles.columns().len();
        let mut ends = vec![[0.0; 2]; forest.trees().leaves() * (1 + oracles)];
        let leaves = ends.par_chunks_exact_mut(1 + oracles).enumerate();
        leaves.for_each_init(Scratch::default, |scratch, (leaf, out)| {
            write.write_leaf(members, leaf, scratch, out.as_flattened_mut());
        });
        let mut slopes = Slopes::default();
        if router.classes().len() <= MAX_OWN_CLASSES {
            let noise = |leaf: usize| {
                let [low, high] = ends[leaf * (1 + oracles)];
                (low == high).then_some(low)
            };
            slopes = slopes_within(&write.per_row, forest.trees(), members, noise);
        }
        let has_bounds = ends.chunks_exact(1 + oracles).any(|leaf| leaf[0][0] != leaf[0][1]);
        let columns = LeafColumns::new(has_bounds, !slopes.are_none(), oracles);
        let totals = write.per_row.freed(slopes, forest.trees(), members);
        let mut values = Vec::with_capacity(totals.len() * columns.width);
        for (leaf, (ends, total)) in ends.chunks_exact(1 + oracles).zip(totals).enumerate() {
            let [low, high] = ends[0];
            values.extend([forest.scorer().leaf_scores()[leaf], total, low]);
            values.extend(columns.high.map(|_| high));
            values.extend(columns.error_share.map(|_| members.error_share(leaf)));
            values.extend(ends[1..].as_flattened());
        }
        let (forest, edges, members, loss) = (forest.clone(), edges.clone(), members.clone(), loss.clone());
        Ok(Some(Self { forest, edges, columns, values, loss, slopes, members }))
    }

    /// Writes the score and the losses of a query: the means over its leaves, and what its prediction says of itself.
    #[inline]
    fn average<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64], out: &mut [f64]) {
        let mut buffer = [0.0; MAX_LEAF_WIDTH];
        let sums = &mut buffer[..self.columns.width];
        inputs::leaves_of_query(self.forest.trees(), prediction, peak, features, |leaf| {
            add_leaf_values(&self.values, leaf, sums);
        });
        self.finish(prediction, sums, out);
    }

    /// Makes a query's score and losses of the sums over its leaves.
    fn finish<T: Real>(&self, prediction: &[T], sums: &[f64], out: &mut [f64]) {
        let LeafColumns { high, error_share, oracles, .. } = self.columns;
        let trees = self.forest.trees().count() as f64;
        let mean = |place: usize| sums[place] / trees;
        out[SCORE] = mean(SCORE);
        out[TOTAL] = mean(TOTAL);
        out[LOW] = mean(LOW);
        out[QUERY_HIGH] = mean(high.unwrap_or(LOW));
        out[QUERY_ORACLES..].iter_mut().zip(oracles..).for_each(|(end, place)| *end = mean(place));
        if let Some(place) = error_share {
            // Most have few classes, and clearing room for many takes its time.
            let account = if prediction.len() <= FEW_CLASSES {
                self.self_estimate::<FEW_CLASSES>(prediction)
            } else {
                self.self_estimate::<MAX_OWN_CLASSES>(prediction)
            };
            out[TOTAL] = (out[TOTAL] + self.slopes.of(account, mean(place))).max(0.0);
        }
    }

    /// What a prediction of at most so many classes is in for.
    fn self_estimate<const MOST: usize>(&self, prediction: &[impl Real]) -> SelfEstimate {
        let (mut buffer, mut room) = ([0.0; MOST], [0.0; MOST]);
        let served = &mut buffer[..prediction.len()];
        simplex::normalise_into(prediction, served);
        self.loss.self_estimate_into(served, &mut room[..prediction.len()])
    }

    fn cell(&self, score: f64) -> CellId {
        CellId(self.edges.bin(score) as u32)
    }

    /// The scores and losses of many rows of a table, row by row.
    fn of_rows(&self, table: &Table, columns: &[usize]) -> Vec<f64> {
        let finish = |row: usize, sums: &[f64], out: &mut [f64]| {
            match_precision!(table.raw_prediction(row), prediction => self.finish(prediction, sums, out));
        };
        let rows: Vec<u32> = (0..table.rows() as u32).collect();
        inputs::sum_leaf_values(
            self.forest.trees(),
            &self.values,
            table,
            &rows,
            columns,
            self.columns.query_width(),
            finish,
        )
    }
}

impl Policy {
    /// Decides the rows of a table on all cores; also those of a forest, whose costs are each row's own.
    ///
    /// # Errors
    /// If the table has other classes or lacks a feature.
    pub fn decide_batch(&self, table: &Table) -> Result<Decisions> {
        let mut verdicts = vec![Verdict::default(); table.rows()];
        let Some(leaves) = &self.estimates.leaves else {
            self.decide_table(table, &mut verdicts)?;
            return Ok(Decisions { verdicts, ..Decisions::default() });
        };
        self.check_table(table, table.rows())?;
        let (losses, width) = (leaves.of_rows(table, &self.cells.columns_in(table)?), leaves.columns.query_width());
        let rows = verdicts.par_iter_mut().zip(losses.par_chunks_exact(width)).with_min_len(1 << 12);
        rows.for_each(|(slot, row)| *slot = Verdict(leaves.cell(row[SCORE]).0));
        let mut decisions = Decisions { verdicts, losses, width, moved: Vec::new() };
        if self.cutoff.is_some() {
            let columns = self.cells.columns_in(table)?;
            let mut features = Vec::with_capacity(columns.len());
            for row in 0..table.rows() {
                features.clear();
                features.extend(columns.iter().map(|&column| table.features(row)[column]));
                let own = decisions.losses(row).map(|losses| self.own(losses));
                let prediction = table.prediction(row);
                let falls = own.is_some_and(|own| self.draw_falls_against(&own, content(&prediction, &features)));
                decisions.verdicts[row] = decisions.verdicts[row].unless(falls);
            }
        }
        Ok(decisions)
    }

    /// One row of a batch that this policy, or one it was repriced from, has decided.
    ///
    /// # Panics
    /// If there is no such row, or the batch is of another policy.
    #[must_use]
    pub fn row(&self, decisions: &Decisions, row: usize) -> Decision<'_> {
        let decision = self.decision(decisions.verdicts[row]);
        let own = decisions.losses(row).map(|losses| self.own(losses));
        Decision { own, moved: decisions.moved(row), ..decision }
    }

    /// The cell of a row of a batch.
    pub(crate) fn cell_of(&self, decisions: &Decisions, row: usize) -> CellId {
        self.unfold(decisions.verdict(row)).0
    }

    /// Decides one query by the forest.
    pub(super) fn decide_by(
        &self,
        leaves: &Leaves,
        row: usize,
        prediction: &[impl Real],
        features: &[f64],
    ) -> Result<Decision<'_>> {
        let peak = self.check_query(row, prediction, features)?;
        let mut buffer = [0.0; MAX_QUERY_WIDTH];
        let found = &mut buffer[..leaves.columns.query_width()];
        leaves.average(prediction, peak, features, found);
        let CellId(cell) = leaves.cell(found[SCORE]);
        let own = self.own(Losses::of(found));
        let kept = self.draw_falls_against(&own, content(prediction, features));
        Ok(Decision { own: Some(own), kept, ..self.decision(Verdict(cell)) })
    }

    /// Prices a query's own losses.
    pub(super) fn own(&self, losses: Losses<'_>) -> Own {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (code, kept, margin) = self.price_into(losses, &mut low[..actions], &mut high[..actions]);
        if self.cutoff.is_some() {
            // Decided with the limit as prices, shown at the task's own.
            self.fill_own(&self.task, losses, &mut low[..actions], &mut high[..actions]);
        }
        Own { total: losses.total(), irreducible: losses.irreducible(), low, high, code, kept, margin }
    }

    fn price_into(&self, losses: Losses<'_>, low: &mut [f64], high: &mut [f64]) -> (u8, u8, f64) {
        self.fill_own(self.priced(), losses, low, high);
        self.decide_costs(low, high)
    }

    /// The costs of a query's losses at a task's prices.
    pub(super) fn fill_own(&self, task: &Task, losses: Losses<'_>, low: &mut [f64], high: &mut [f64]) {
        self.fill(task, losses.total(), |column| losses.at(column), low, high);
    }

    /// What is done with a row that has losses of its own; where the labels do not decide, what counts as done.
    pub(crate) fn act_on(&self, losses: Losses<'_>) -> (bool, MixedAction) {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (low, high) = (&mut low[..actions], &mut high[..actions]);
        match self.price_into(losses, low, high) {
            (UNDETERMINED, ..) => (false, MixedAction::always(super::cheapest_known(low, high))),
            (code, kept, _) => {
                let part = self.cutoff.map_or(1.0, |stop| stop.marginal);
                (true, MixedAction::either(code.into(), kept.into(), part))
            }
        }
    }
}

/// Refuses tasks with more actions than a decision of a forest has room for.
pub(super) fn check_task(task: &Task) -> Result<()> {
    let actions = task.actions();
    if actions > MAX_ACTIONS {
        return Err(TaskError::ForestActions { actions, most: MAX_ACTIONS }.into());
    }
    Ok(())
}
