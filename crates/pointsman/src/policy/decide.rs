//! Decisions on queries: one by one, as arrays, or as a table.
//!
//! A query's expected losses are those of its cell or, with a forest, the means over its leaves. The losses of cells are known when the
//! policy is compiled, so their costs and actions are, too, and a decision only finds the cell. With a forest a decision also prices the
//! query's own losses. A batch takes the same steps as a single query and gives the same bits.

use super::choose::MAX_ACTIONS;
use super::decision::{KEPT, QueryCosts};
use super::limit::{content, uniform_draw};
use super::{Decision, Decisions, MixedAction, Policy, Verdict};
use crate::error::{Error, Result, TableError, ValueError};
use crate::estimate::GroupLosses;
use crate::parallel::prelude::*;
use crate::partition::{CellId, UNUSUAL};
use crate::table::Table;
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{self, Peak, Real};

/// Rows per block: the verdicts of a block stay in the first-level cache until they are checked.
const ROWS_PER_BLOCK: usize = 1024;

/// Rows per parallel task.
const ROWS_PER_TASK: usize = 1 << 14;

impl Policy {
    /// Decides one query from its prediction.
    ///
    /// # Errors
    /// If the row is not a prediction over the router's classes, or the router needs features.
    #[inline]
    pub fn decide<T: Real>(&self, prediction: &[T]) -> Result<Decision<'_>> {
        self.decide_with(prediction, &[])
    }

    /// Decides one query from its prediction and the features of [`Cells::features`](crate::Cells::features), in that order.
    ///
    /// # Errors
    /// If the row is not a prediction over the router's classes, or a feature is missing or not finite.
    #[inline]
    pub fn decide_with<T: Real>(&self, prediction: &[T], features: &[f64]) -> Result<Decision<'_>> {
        let peak = self.check_query(0, prediction, features)?;
        let Some(leaves) = &self.estimates.leaves else {
            return Ok(self.decision(self.draw(self.locate(prediction, peak, features), prediction, features)));
        };
        // The cells of a forest are quantiles of its rows' scores and never empty, so that queries need not fall back.
        let query = leaves.query(prediction, peak, features);
        let own = self.price(query.losses());
        let kept = self.draw_falls_against(&own, || uniform_draw(content(prediction, features)));
        Ok(Decision { own: Some(own), kept, ..self.decision(Verdict(query.cell.0)) })
    }

    /// Decides the rows of a table on all cores.
    ///
    /// # Errors
    /// If the table has other classes or lacks a feature.
    pub fn decide_batch(&self, table: &Table) -> Result<Decisions> {
        self.check_classes(table)?;
        let columns = self.cells.columns_in(table)?;
        let Some(leaves) = &self.estimates.leaves else {
            return Ok(Decisions::from_verdicts(self.find_verdicts(table, &columns)));
        };
        let (cells, losses) = leaves.queries(table, &columns);
        let verdicts = cells.into_iter().map(|CellId(cell)| Verdict(cell)).collect();
        let mut decisions = Decisions { verdicts, losses: Some(losses), ..Decisions::default() };
        if self.has_limit() {
            let draw = |row: usize| self.draw_row(&decisions, row, || draw_by_content(table, row, &columns));
            decisions.verdicts = (0..table.rows()).into_par_iter().with_min_len(ROWS_PER_BLOCK).map(draw).collect();
        }
        Ok(decisions)
    }

    /// Decides many queries, `predictions` and `features` row by row, on all cores. Predictions are not copied unless the router
    /// has a forest, honest or not.
    ///
    /// ```
    /// use pointsman::{Action, Loss, Oracle, Partition, Router, Table, Task};
    /// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
    /// let router = Router::calibrate(&table, &Partition::top_class(1))?;
    /// let policy = router.policy(&Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?)?;
    /// let decisions = policy.decide_many(&[0.85_f32, 0.15, 0.3, 0.7], &[])?;
    /// assert_eq!(policy.row(&decisions, 0).action(), Action::Route("expert"));
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit, or a row is not a prediction; the first such row is named.
    pub fn decide_many<T: Real>(&self, predictions: &[T], features: &[f64]) -> Result<Decisions> {
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        let rows = predictions.len() / c;
        if predictions.len() != rows * c || features.len() != rows * d {
            let (probabilities, values) = (predictions.len(), features.len());
            return Err(TableError::BatchShape { probabilities, values, classes: c, features: d }.into());
        }
        if self.cells.has_trees() {
            let table = Table::from_rows(self.classes().iter().map(String::as_str), predictions)?;
            return self.decide_batch(&table.with_features(self.cells.features().to_vec(), features.to_vec())?);
        }
        let mut verdicts = vec![Verdict::default(); rows];
        let decide = |(task, out): (usize, &mut [Verdict])| {
            let (start, end) = (task * ROWS_PER_TASK, task * ROWS_PER_TASK + out.len());
            let decided = self.decide_rows(&predictions[start * c..end * c], &features[start * d..end * d], out);
            decided.map_err(|error| error.map_row(|row| start + row)).err()
        };
        let faults: Vec<Option<Error>> = verdicts.par_chunks_mut(ROWS_PER_TASK).enumerate().map(decide).collect();
        // The first fault by row, not by time.
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(fault),
            None => Ok(Decisions::from_verdicts(verdicts)),
        }
    }

    /// One row of a batch that this policy, or one it was repriced from, has decided.
    ///
    /// Random draws at the margin of a limit are those of the policy that decided the batch: decide anew after a limit was added or changed.
    ///
    /// # Panics
    /// If there is no such row, or a row's cell does not exist in this policy, as in a batch of another router.
    #[must_use]
    pub fn row(&self, decisions: &Decisions, row: usize) -> Decision<'_> {
        let decision = self.decision(decisions.verdicts[row]);
        let own = decisions.losses.as_ref().map(|losses| self.price(losses.row(row)));
        Decision { own, moved: decisions.moved(row), ..decision }
    }

    /// A value of each row of a batch, computed once per verdict unless rows have their own losses or caps were applied.
    ///
    /// # Panics
    /// If the batch is of another policy.
    pub fn values<T: Copy>(&self, decisions: &Decisions, value: impl Fn(Decision<'_>) -> T) -> Vec<T> {
        let verdicts = self.cells.count() + self.estimates.empty.len() * self.fall_backs();
        if decisions.losses.is_some() || decisions.is_capped() || verdicts > decisions.len() {
            return (0..decisions.len()).map(|row| value(self.row(decisions, row))).collect();
        }
        // With and without the mark of a random draw.
        let mut known = vec![[None; 2]; verdicts];
        let of = |verdict: &Verdict| {
            let Verdict(code) = verdict;
            let (place, mark) = (code & !KEPT, usize::from(code & KEPT != 0));
            assert!((place as usize) < verdicts, "a verdict of another policy");
            *known[place as usize][mark].get_or_insert_with(|| value(self.decision(*verdict)))
        };
        decisions.verdicts.iter().map(of).collect()
    }

    /// The answer of predicting for each row of a batch: the class, and the act of least expected loss, which differs from the class if the
    /// loss has acts of its own.
    ///
    /// # Panics
    /// If the batch is of another policy.
    #[must_use]
    pub fn answers<T: Real>(&self, decisions: &Decisions, predictions: &[T]) -> Vec<[u32; 2]> {
        let rows = predictions.par_chunks_exact(self.cells.classes()).with_min_len(1 << 12).enumerate();
        let buffer = || vec![0.0; self.cells.classes()];
        rows.take(decisions.len())
            .map_init(buffer, |buffer, (row, prediction)| self.row(decisions, row).answer(prediction, buffer))
            .collect()
    }

    /// The expected losses of a row of a batch: its own or, without a forest, those of its source.
    pub(crate) fn losses_of<'a>(&'a self, decisions: &'a Decisions, row: usize) -> GroupLosses<'a> {
        match &decisions.losses {
            Some(losses) => losses.row(row),
            None => self.estimate(self.unfold(decisions.verdict(row)).1).losses(),
        }
    }

    /// The action on a row of a batch, and whether it is determined; if not, the action that is assumed.
    pub(crate) fn action_on(&self, decisions: &Decisions, row: usize) -> (bool, MixedAction) {
        match &decisions.losses {
            Some(losses) => self.action_for(losses.row(row)),
            None => self.action_of_source(self.unfold(decisions.verdict(row)).1),
        }
    }

    /// The cell of a row of a batch.
    pub(crate) fn cell_of(&self, decisions: &Decisions, row: usize) -> CellId {
        self.unfold(decisions.verdict(row)).0
    }

    #[inline]
    fn verdict<T: Real>(&self, row: usize, prediction: &[T], features: &[f64]) -> Result<Verdict> {
        let peak = self.check_query(row, prediction, features)?;
        Ok(self.draw(self.locate(prediction, peak, features), prediction, features))
    }

    #[inline]
    fn check_query<T: Real>(&self, row: usize, prediction: &[T], features: &[f64]) -> Result<Peak> {
        if prediction.len() != self.cells.classes() || features.len() != self.cells.features().len() {
            return Err(self.wrong_shape(prediction.len(), features.len()));
        }
        let peak = Peak::find(prediction).map_err(|fault| fault.at(row, "prob_", self.classes()))?;
        let missing = self.cells.takes_missing();
        if let Some(slot) = features.iter().position(|x| !(x.is_finite() || missing && x.is_nan())) {
            let reason = ValueError::Feature { value: features[slot] };
            return Err(Error::value(row, format!("x_{}", self.cells.features()[slot]), reason));
        }
        Ok(peak)
    }

    #[cold]
    fn wrong_shape(&self, prediction: usize, features: usize) -> Error {
        TableError::QueryShape {
            probabilities: prediction,
            values: features,
            classes: self.classes().to_vec(),
            features: self.cells.features().to_vec(),
        }
        .into()
    }

    fn check_classes(&self, table: &Table) -> Result<()> {
        if table.classes() == self.classes() {
            return Ok(());
        }
        Err(TableError::OtherClasses { table: table.classes().to_vec(), router: self.classes().to_vec() }.into())
    }

    /// The verdict on a query of a router without a forest.
    #[inline]
    pub(crate) fn locate<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> Verdict {
        self.locate_in(self.cells.find(prediction, peak, features), prediction, peak)
    }

    /// The verdict on a query whose cell is known.
    #[inline]
    fn locate_in<T: Real>(&self, CellId(cell): CellId, prediction: &[T], peak: Peak) -> Verdict {
        match self.estimates.empty.binary_search(&cell) {
            Err(_) => Verdict(cell),
            Ok(rank) => self.fall_back(rank, prediction, peak),
        }
    }

    /// The verdict on a query of an empty cell: decided by rows of the same confidence, else by all rows.
    #[cold]
    fn fall_back<T: Real>(&self, rank: usize, prediction: &[T], peak: Peak) -> Verdict {
        let (cells, fall_backs) = (self.cells.count(), self.fall_backs());
        let bin = self.backoff.find(prediction, peak, &[]).index();
        // A bin of a stored router may have no rows; the last source has all rows.
        let place = if self.estimates.sources[cells + bin].is_some() { bin } else { fall_backs - 1 };
        Verdict((cells + rank * fall_backs + place) as u32)
    }

    /// The verdicts on the rows of a table, whose values were checked when it was built.
    fn find_verdicts(&self, table: &Table, columns: &[usize]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::default(); table.rows()];
        let together = self.cells.find_together(table, columns);
        verdicts.par_chunks_mut(ROWS_PER_BLOCK).enumerate().for_each(|(block, out)| {
            let mut features = Vec::with_capacity(columns.len());
            for (i, slot) in out.iter_mut().enumerate() {
                let row = block * ROWS_PER_BLOCK + i;
                features.clear();
                features.extend(columns.iter().map(|&column| table.features(row)[column]));
                let peak = table.peak(row);
                *slot = match_precision!(table.raw_prediction(row), prediction => {
                    let found = match &together {
                        Some(cells) => self.locate_in(cells[row], prediction, peak),
                        None => self.locate(prediction, peak, &features),
                    };
                    self.draw(found, prediction, &features)
                });
            }
        });
        verdicts
    }

    /// Decides rows of a router without a forest, honest or not.
    fn decide_rows<T: Real>(&self, predictions: &[T], features: &[f64], out: &mut [Verdict]) -> Result<()> {
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        let (Some(grid), RawPredictions::Single(singles)) = (self.cells.grid(), T::raw(predictions)) else {
            for (row, (slot, prediction)) in out.iter_mut().zip(predictions.chunks_exact(c)).enumerate() {
                *slot = self.verdict(row, prediction, &features[row * d..(row + 1) * d])?;
            }
            return Ok(());
        };
        for (block, out) in out.chunks_mut(ROWS_PER_BLOCK).enumerate() {
            let start = block * ROWS_PER_BLOCK;
            grid.find(&singles[start * c..(start + out.len()) * c], out, Verdict);
            for (i, slot) in out.iter_mut().enumerate() {
                if slot.0 == UNUSUAL || self.has_limit() || self.is_cell_empty(slot.0) {
                    let row = start + i;
                    *slot = self.verdict(row, &predictions[row * c..(row + 1) * c], &[])?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn is_cell_empty(&self, cell: u32) -> bool {
        self.estimates.empty.binary_search(&cell).is_ok()
    }

    /// The costs of a query with its own losses.
    pub(super) fn price(&self, losses: GroupLosses<'_>) -> QueryCosts {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (code, kept, margin) = self.price_into(losses, &mut low[..actions], &mut high[..actions]);
        if self.has_limit() {
            // Decided at prices that include the limit's, shown at the task's own.
            self.fill_costs(&self.task, losses, &mut low[..actions], &mut high[..actions]);
        }
        QueryCosts { total: losses.total, irreducible: losses.irreducible, low, high, code, kept, margin }
    }

    fn price_into(&self, losses: GroupLosses<'_>, low: &mut [f64], high: &mut [f64]) -> (u8, u8, f64) {
        self.fill_costs(self.priced(), losses, low, high);
        self.decide_costs(low, high)
    }

    /// The action on a query with its own losses, and whether it is determined; if not, the action that is assumed.
    pub(crate) fn action_for(&self, losses: GroupLosses<'_>) -> (bool, MixedAction) {
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let actions = self.actions();
        let (low, high) = (&mut low[..actions], &mut high[..actions]);
        self.fill_costs(self.priced(), losses, low, high);
        self.action_at([low, high])
    }
}

/// The random draw of a table's row by its content, with the features of these columns.
pub(super) fn draw_by_content(table: &Table, row: usize, columns: &[usize]) -> f64 {
    let features: Vec<f64> = columns.iter().map(|&column| table.features(row)[column]).collect();
    match_precision!(table.raw_prediction(row), prediction => uniform_draw(content(prediction, &features)))
}

impl Decision<'_> {
    /// The answer of predicting: the class, and the act of least expected loss, which differs from the class if the loss has acts of its own.
    /// The buffer has one number per class.
    ///
    /// # Panics
    /// If the prediction or the buffer is of another length.
    #[must_use]
    pub fn answer<T: Real>(&self, prediction: &[T], buffer: &mut [f64]) -> [u32; 2] {
        let loss = self.policy.task.loss();
        let served = match self.served() {
            Some(centroid) => centroid,
            None => {
                simplex::normalise_into(prediction, buffer);
                buffer
            }
        };
        [loss.label(served) as u32, loss.act(served) as u32]
    }
}
