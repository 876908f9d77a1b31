//! Arrays of queries decided together, as they lie in memory.

use super::{Decision, Decisions, KEPT, Policy, Verdict};
use crate::error::{Error, Result, TableError, TaskError};
use crate::parallel::prelude::*;
use crate::partition::UNUSUAL;
use crate::table::Table;
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{self, Real};

/// Rows decided together: what is written for them stays in the fastest cache until it is checked.
const BLOCK: usize = 1024;

/// Rows one core takes at a time.
const PART: usize = 1 << 14;

impl Policy {
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
        let decide = |(part, out): (usize, &mut [Verdict])| {
            let (start, end) = (part * PART, part * PART + out.len());
            let decided = self.decide_rows(&predictions[start * c..end * c], &features[start * d..end * d], out);
            decided.map_err(|error| error.map_row(|row| start + row)).err()
        };
        let faults: Vec<Option<Error>> = verdicts.par_chunks_mut(PART).enumerate().map(decide).collect();
        // The first of several, whichever core was first to find one.
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(fault),
            None => Ok(Decisions { verdicts, ..Decisions::default() }),
        }
    }

    /// A value of each row of a batch. Rows that are decided alike for the same reasons share it, unless a forest has given each
    /// reasons of its own.
    ///
    /// # Panics
    /// If the batch is of another policy.
    pub fn values<T: Copy>(&self, decisions: &Decisions, value: impl Fn(Decision<'_>) -> T) -> Vec<T> {
        let verdicts = self.cells.count() + self.estimates.empty.len() * self.fall_backs();
        if decisions.width > 0 || decisions.is_capped() || verdicts > decisions.len() {
            return (0..decisions.len()).map(|row| value(self.row(decisions, row))).collect();
        }
        // With and without the mark of a lot.
        let mut known = vec![[None; 2]; verdicts];
        let of = |verdict: &Verdict| {
            let Verdict(code) = verdict;
            let (place, mark) = (code & !KEPT, usize::from(code & KEPT != 0));
            assert!((place as usize) < verdicts, "a verdict of another policy");
            *known[place as usize][mark].get_or_insert_with(|| value(self.decision(*verdict)))
        };
        decisions.verdicts.iter().map(of).collect()
    }

    /// Decides many queries, `predictions` and `features` row by row, into `out`.
    ///
    /// # Errors
    /// If the shapes do not fit, or a row is not a prediction; rows before it are decided. If the router has a forest, whose
    /// decisions a verdict cannot hold: use [`Policy::decide_batch`].
    pub fn decide_rows<T: Real>(&self, predictions: &[T], features: &[f64], out: &mut [Verdict]) -> Result<()> {
        self.check_verdicts_suffice()?;
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        if predictions.len() != out.len() * c || features.len() != out.len() * d {
            let (probabilities, values) = (predictions.len(), features.len());
            return Err(TableError::BatchShape { probabilities, values, classes: c, features: d }.into());
        }
        let (Some(grid), RawPredictions::Single(singles)) = (self.cells.grid(), T::raw(predictions)) else {
            return self.decide_carefully(predictions, features, out);
        };
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let start = block * BLOCK;
            grid.find(&singles[start * c..(start + out.len()) * c], out, Verdict);
            for (i, slot) in out.iter_mut().enumerate() {
                if slot.0 == UNUSUAL || self.cutoff.is_some() || self.is_empty(slot.0) {
                    let row = start + i;
                    *slot = self.verdict(row, &predictions[row * c..(row + 1) * c], &[])?;
                }
            }
        }
        Ok(())
    }

    /// Decides the rows of a table, whose values were checked when it was built, on all cores.
    ///
    /// # Errors
    /// If the table has other classes or lacks a feature, or `out` is not as long as the table. If the router has a forest, whose
    /// decisions a verdict cannot hold: use [`Policy::decide_batch`].
    pub fn decide_table(&self, table: &Table, out: &mut [Verdict]) -> Result<()> {
        self.check_verdicts_suffice()?;
        self.check_table(table, out.len())?;
        let columns = self.cells.columns_in(table)?;
        let together = self.cells.find_together(table, &columns);
        out.par_chunks_mut(BLOCK).enumerate().for_each(|(block, out)| {
            let mut features = Vec::with_capacity(columns.len());
            for (i, slot) in out.iter_mut().enumerate() {
                let row = block * BLOCK + i;
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
        Ok(())
    }

    fn check_verdicts_suffice(&self) -> Result<()> {
        match self.estimates.leaves {
            None => Ok(()),
            Some(_) => Err(TaskError::ForestVerdict.into()),
        }
    }

    pub(super) fn check_table(&self, table: &Table, rows: usize) -> Result<()> {
        if table.rows() != rows {
            return Err(TableError::Length { what: "decisions", found: rows, rows: table.rows() }.into());
        }
        if table.classes() == self.classes() {
            return Ok(());
        }
        Err(TableError::OtherClasses { table: table.classes().to_vec(), router: self.classes().to_vec() }.into())
    }

    fn decide_carefully<T: Real>(&self, predictions: &[T], features: &[f64], out: &mut [Verdict]) -> Result<()> {
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        for (row, (slot, prediction)) in out.iter_mut().zip(predictions.chunks_exact(c)).enumerate() {
            *slot = self.verdict(row, prediction, &features[row * d..(row + 1) * d])?;
        }
        Ok(())
    }

    /// What predicting would answer to each row of a batch: a class, and what the loss would do, which is an act if it has acts
    /// of its own.
    ///
    /// # Panics
    /// If the batch is of another policy.
    #[must_use]
    pub fn answers<T: Real>(&self, decisions: &Decisions, predictions: &[T]) -> Vec<[u32; 2]> {
        let rows = predictions.par_chunks_exact(self.cells.classes()).with_min_len(1 << 12).enumerate();
        let scratch = || vec![0.0; self.cells.classes()];
        rows.take(decisions.len())
            .map_init(scratch, |scratch, (row, prediction)| self.row(decisions, row).answer(prediction, scratch))
            .collect()
    }
}

impl Decision<'_> {
    fn answer<T: Real>(&self, prediction: &[T], scratch: &mut [f64]) -> [u32; 2] {
        let loss = self.policy.task.loss();
        let served = match self.served() {
            Some(centroid) => centroid,
            None => {
                simplex::normalise_into(prediction, scratch);
                scratch
            }
        };
        [loss.label(served) as u32, loss.act(served) as u32]
    }

    /// The costs in the order of [`Decision::costs`], NaN where items carry one label each and only bounds are known.
    pub fn known_costs(&self) -> impl Iterator<Item = f64> {
        self.costs().iter().zip(self.costs_high()).map(|(&low, &high)| if low == high { low } else { f64::NAN })
    }
}
