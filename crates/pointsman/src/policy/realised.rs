//! The realised cost of decisions once labels are known.

use super::{Decisions, Policy};
use crate::error::{Error, Result, TableError, ValueError};
use crate::table::simplex::{self, Peak, Real};

impl Policy {
    /// The realised cost of each decision of a batch, given one label per row: the loss of the prediction, or the loss of the oracle's answer
    /// plus its price, or the price of abstaining. Undetermined rows count as predicted.
    ///
    /// `predictions` and `answers` are row by row; answers to rows that are not routed are ignored.
    ///
    /// ```
    /// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
    /// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 0, 5, 0, 5])?;
    /// let router = Router::calibrate(&table, &Partition::top_class(1))?;
    /// let policy = router.policy(&Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.05)?)?;
    /// let queries = [0.85, 0.15, 0.3, 0.7];
    /// let decisions = policy.decide_many(&queries, &[])?;
    /// let costs = policy.realised(&decisions, &queries, &[1, 1], &[0.0, 1.0, 0.0, 1.0])?;
    /// assert_eq!(costs, [0.05, 0.0]); // the expert was asked and right; the prediction was right
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit, a label is no class, or an answer to a routed row is no prediction.
    ///
    /// # Panics
    /// If the batch is of another policy.
    pub fn realised<T: Real>(
        &self,
        decisions: &Decisions,
        predictions: &[T],
        labels: &[u32],
        answers: &[f64],
    ) -> Result<Vec<f64>> {
        let (rows, c) = (decisions.len(), self.cells.classes());
        if predictions.len() != rows * c || answers.len() != rows * c || labels.len() != rows {
            let (probabilities, answers, labels) = (predictions.len(), answers.len(), labels.len());
            return Err(TableError::OutcomeShape { rows, classes: c, probabilities, answers, labels }.into());
        }
        let (mut served, mut losses) = (vec![0.0; c], vec![0.0; c]);
        let mut costs = Vec::with_capacity(rows);
        for (row, &label) in labels.iter().enumerate() {
            let label = label as usize;
            if label >= c {
                return Err(Error::value(row, "label", ValueError::Label { label, classes: c }));
            }
            let decision = self.row(decisions, row);
            let action = decision.code().unwrap_or(0);
            let route = action.checked_sub(1).map(|route| self.task.routes().get(route));
            costs.push(match route {
                None => {
                    match decision.served() {
                        Some(centroid) => served.copy_from_slice(centroid),
                        None => simplex::normalise_into(&predictions[row * c..][..c], &mut served),
                    }
                    self.task.loss().losses_into(&served, &mut losses);
                    losses[label]
                }
                Some(Some(route)) => {
                    let answer = &answers[row * c..][..c];
                    let prefix = format!("oracle_{}_", route.name());
                    Peak::find(answer).map_err(|fault| fault.at(row, &prefix, self.classes()))?;
                    simplex::normalise_into(answer, &mut served);
                    self.task.loss().losses_into(&served, &mut losses);
                    losses[label] + route.price()
                }
                Some(None) => self.task.abstain_price().unwrap_or(f64::INFINITY),
            });
        }
        Ok(costs)
    }
}
