//! What a task makes of a forest: losses a leaf, averaged over the trees for each query.

use std::sync::Arc;

use rayon::prelude::*;

use super::limit::{Unit, content};
use super::{Course, Decision, KEPT, Policy, UNDETERMINED, Verdict, choose};
use crate::error::{Error, Result};
use crate::estimate::{Column, Decomposition, Estimator, PerRow, RowLosses, Scratch};
use crate::evaluate::Named;
use crate::forest::{Forest, inputs};
use crate::loss::Loss;
use crate::partition::{CellId, Edges};
use crate::router::{Mixture, Router};
use crate::simplex::{Peak, Real};
use crate::table::Table;
use crate::task::Task;

/// The most actions of a task for a forest: their costs are each query's own and must fit into its decision.
pub(super) const MAX_ACTIONS: usize = 16;

/// Score, total loss, both ends of the irreducible loss, and of what each other oracle loses.
const MAX_WIDTH: usize = 4 + 2 * MAX_ACTIONS;

/// Rows decided together: what is known of them stays in the cache while the trees pass by.
const BLOCK: usize = 4096;

/// A forest with the losses of each leaf.
#[derive(Debug)]
pub(super) struct Leaves {
    forest: Arc<Forest>,
    edges: Edges,
    width: usize,
    values: Vec<f64>,
    /// The scores and losses of the calibration rows and their weights: by them the price is found that a limit comes to.
    calibration: Vec<f64>,
    weights: Vec<f64>,
}

/// Expected losses of one query, side by side: total, both ends of the irreducible loss, both ends of each other oracle's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses<'a>(&'a [f64]);

impl<'a> Losses<'a> {
    /// The score, which comes first, has done its work once the cell is known.
    fn of(row: &'a [f64]) -> Self {
        Self(&row[1..])
    }

    pub(crate) fn total(self) -> f64 {
        self.0[0]
    }

    pub(crate) fn irreducible(self) -> [f64; 2] {
        [self.0[1], self.0[2]]
    }

    fn at(self, column: Column) -> [f64; 2] {
        match column {
            Column::Irreducible => self.irreducible(),
            Column::Own(place) => [self.0[3 + 2 * place], self.0[4 + 2 * place]],
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
}

impl Decisions {
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
        if policy.surcharge().is_none() {
            return;
        }
        for (row, id) in ids.iter().enumerate().take(self.len()) {
            let own = self.losses(row).map(|losses| policy.own(losses));
            self.verdicts[row] = match own {
                Some(own) => self.verdict(row).unless(policy.own_lot_falls(&own, id.bytes().map(u64::from))),
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
    pub(super) fn of(
        router: &Router,
        loss: &Loss,
        estimator: Estimator,
        oracles: &RowLosses,
        limited: bool,
    ) -> Result<Option<Self>> {
        let Some(((forest, edges), rows)) = router.cells().forest().zip(router.leaves()) else { return Ok(None) };
        if router.is_recalibrated() {
            return Err(Error::Router(
                "a forest serves the weak prediction: its cells have no distribution worth serving; calibrate without \
                 centroids, or by tree"
                    .into(),
            ));
        }
        if !matches!(estimator, Estimator::Shrink | Estimator::Plugin) {
            return Err(Error::Task(format!(
                "the estimator {estimator} needs more rows than a leaf of a forest has: use shrink"
            )));
        }
        let width = 4 + 2 * oracles.columns().len();
        let mut values = vec![0.0; forest.trees().leaves() * width];
        let per_row = PerRow::of(router.all_rows(), loss);
        values.par_chunks_exact_mut(width).enumerate().for_each_init(Scratch::default, |scratch, (leaf, out)| {
            out[0] = forest.leaf_scores()[leaf];
            let rows = rows.of(leaf);
            if width == 4 {
                out[1..].copy_from_slice(&per_row.losses(rows, loss, estimator, scratch));
            } else if let Some(d) =
                Decomposition::of(Mixture::of_rows(router.rows(), rows), loss, estimator, None, oracles)
            {
                out[1..4].copy_from_slice(&[d.total, d.irreducible_low, d.irreducible_high]);
                out[4..].copy_from_slice(d.oracles.as_flattened());
            }
        });
        let (calibration, weights) = (Vec::new(), Vec::new());
        let mut leaves = Self { forest: forest.clone(), edges: edges.clone(), width, values, calibration, weights };
        if limited {
            let columns = router.cells().columns_in(router.rows())?;
            leaves.calibration = leaves.of_rows(router.rows(), &columns);
            leaves.weights = (0..router.rows().rows()).map(|row| router.rows().weight(row)).collect();
        }
        Ok(Some(leaves))
    }

    /// Adds up a query's leaves into `out` and divides: the score, then the losses.
    #[inline]
    fn average<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64], out: &mut [f64]) {
        inputs::leaves_for(self.forest.trees(), prediction, peak, features, |leaf| self.add(leaf, out));
        self.divide(out);
    }

    #[inline(always)]
    fn add(&self, leaf: u32, out: &mut [f64]) {
        let leaf = &self.values[leaf as usize * self.width..][..self.width];
        out.iter_mut().zip(leaf).for_each(|(sum, value)| *sum += value);
    }

    fn divide(&self, out: &mut [f64]) {
        let trees = self.forest.trees().count() as f64;
        out.iter_mut().for_each(|sum| *sum /= trees);
    }

    fn cell(&self, score: f64) -> CellId {
        CellId(self.edges.bin(score) as u32)
    }

    /// The scores and losses of many rows of a table, row by row.
    fn of_rows(&self, table: &Table, columns: &[usize]) -> Vec<f64> {
        let trees = self.forest.trees();
        let mut out = vec![0.0; table.rows() * self.width];
        out.par_chunks_mut(BLOCK * self.width).enumerate().for_each_init(
            || vec![0_u32; BLOCK],
            |leaves, (block, out)| {
                let n = out.len() / self.width;
                let rows: Vec<u32> = (block * BLOCK..block * BLOCK + n).map(|row| row as u32).collect();
                let rows = trees.coded(&inputs::of_rows(table, &rows, columns));
                for tree in 0..trees.count() {
                    trees.leaves_of_rows(tree, &rows, &mut leaves[..n]);
                    for (out, &leaf) in out.chunks_exact_mut(self.width).zip(leaves.iter()) {
                        self.add(leaf, out);
                    }
                }
                out.chunks_exact_mut(self.width).for_each(|out| self.divide(out));
            },
        );
        out
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
            return Ok(Decisions { verdicts, losses: Vec::new(), width: 0 });
        };
        self.check_table(table, table.rows())?;
        let losses = leaves.of_rows(table, &self.cells.columns_in(table)?);
        for (slot, row) in verdicts.iter_mut().zip(losses.chunks_exact(leaves.width)) {
            *slot = Verdict(leaves.cell(row[0]).0);
        }
        let mut decisions = Decisions { verdicts, losses, width: leaves.width };
        if self.surcharge.is_some() {
            let columns = self.cells.columns_in(table)?;
            let mut features = Vec::with_capacity(columns.len());
            for row in 0..table.rows() {
                features.clear();
                features.extend(columns.iter().map(|&column| table.features(row)[column]));
                let own = decisions.losses(row).map(|losses| self.own(losses));
                let falls = own.is_some_and(|own| self.own_lot_falls(&own, content(table.prediction(row), &features)));
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
        Decision { own: decisions.losses(row).map(|losses| self.own(losses)), ..decision }
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
        let mut buffer = [0.0; MAX_WIDTH];
        let found = &mut buffer[..leaves.width];
        leaves.average(prediction, peak, features, found);
        let CellId(cell) = leaves.cell(found[0]);
        let own = self.own(Losses::of(found));
        let kept = self.own_lot_falls(&own, content(prediction, features));
        Ok(Decision { own: Some(own), kept, ..self.decision(Verdict(cell)) })
    }

    /// Prices a query's own losses.
    pub(super) fn own(&self, losses: Losses<'_>) -> Own {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (code, kept, margin) = self.price_into(losses, &mut low[..actions], &mut high[..actions]);
        Own { total: losses.total(), irreducible: losses.irreducible(), low, high, code, kept, margin }
    }

    fn price_into(&self, losses: Losses<'_>, low: &mut [f64], high: &mut [f64]) -> (u8, u8, f64) {
        self.fill(losses, low, high);
        let (code, margin) = choose(low, high, &self.task);
        self.within(high, code, margin)
    }

    /// The costs of a query's losses.
    fn fill(&self, losses: Losses<'_>, low: &mut [f64], high: &mut [f64]) {
        for (end, costs) in [&mut *low, &mut *high].into_iter().enumerate() {
            let routes = self.task.routes().iter().zip(&self.columns);
            let routes = routes.map(|(route, &column)| losses.at(column)[end] + route.price());
            let all = [losses.total()].into_iter().chain(routes).chain(self.task.abstain_price());
            costs.iter_mut().zip(all).for_each(|(slot, cost)| *slot = cost);
        }
    }

    /// The calibration rows, each by itself: what a limit on routing is found by.
    pub(super) fn units_of(&self, leaves: &Leaves) -> Result<Vec<Unit>> {
        if leaves.calibration.is_empty() {
            return Err(Error::Task(
                "with a forest, a limit on routing needs a policy of its own: Router::policy".into(),
            ));
        }
        let unit = |(losses, &weight): (&[f64], &f64)| {
            let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
            let actions = self.actions();
            self.fill(Losses::of(losses), &mut low[..actions], &mut high[..actions]);
            self.unit(weight, &high[..actions])
        };
        Ok(leaves.calibration.chunks_exact(leaves.width).zip(&leaves.weights).map(unit).collect())
    }

    /// Which share of the calibration rows each action gets, where every row has costs of its own and they are known.
    pub(super) fn shares_of_rows(&self) -> Option<Named<f64>> {
        let leaves = self.estimates.leaves.as_ref().filter(|leaves| !leaves.calibration.is_empty())?;
        let rows = leaves.calibration.chunks_exact(leaves.width).zip(&leaves.weights);
        let all: f64 = leaves.weights.iter().sum();
        let (mut parts, mut open) = (vec![0.0; self.actions()], 0.0);
        for (losses, weight) in rows {
            match self.act_on(Losses::of(losses)) {
                (true, course) => {
                    parts
                        .iter_mut()
                        .enumerate()
                        .for_each(|(action, part)| *part += weight * course.part_of(action) / all);
                }
                (false, _) => open += weight / all,
            }
        }
        let mut shares: Named<f64> = self.task.action_names().into_iter().zip(parts).collect();
        if open > 0.0 {
            shares.push("undetermined", open);
        }
        Some(shares)
    }

    /// What is done with a row that has losses of its own; where the labels do not decide, what counts as done.
    pub(crate) fn act_on(&self, losses: Losses<'_>) -> (bool, Course) {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (low, high) = (&mut low[..actions], &mut high[..actions]);
        match self.price_into(losses, low, high) {
            (UNDETERMINED, ..) => (false, Course::always(super::cheapest_known(low, high))),
            (code, kept, _) => {
                let part = self.surcharge.map_or(1.0, |surcharge| surcharge.marginal);
                (true, Course::by_lot(code.into(), kept.into(), part))
            }
        }
    }
}

/// Refuses tasks with more actions than a decision of a forest has room for.
pub(super) fn check_task(task: &Task) -> Result<()> {
    let actions = task.action_names().len();
    if actions > MAX_ACTIONS {
        return Err(Error::Task(format!(
            "{actions} actions; with a forest at most {MAX_ACTIONS} are possible: leave out routes, or use another partition"
        )));
    }
    Ok(())
}
