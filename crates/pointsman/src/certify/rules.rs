//! From a cell's items to the intervals of its answers and actions.

use std::sync::Arc;

use super::approximation::Approximation;
use super::items::Items;
use super::statistics::{self, Answer};
use super::{CellCertificate, DELTA_FOR_SHARES, Interval};
use crate::error::{Result, TaskError};
use crate::estimate::{OracleLoss, OtherOracles, answers_of};
use crate::loss::Loss;
use crate::oracle::{Oracle, Panel};
use crate::router::Router;
use crate::task::{Route, Task};

/// The largest number of answers that are all compared item by item; with more, each is compared with predicting only.
const MAX_PAIRED_ANSWERS: usize = 8;

/// The largest number of intervals, about a gigabyte.
const MAX_INTERVALS: usize = 1 << 26;

/// Regrets below this part of the loss's bound are rounding errors.
const ROUNDING: f64 = 1e-12;

/// The index of predicting among the answers.
pub(super) const PREDICT: usize = 0;

/// The index of the Bayes-optimal oracle among the answers.
pub(super) const BAYES: usize = 1;

/// The loss, the oracles and the error probability per interval.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) loss: Loss,
    /// Polynomials that enclose its entropy, if there are any.
    approximation: Option<Arc<Approximation>>,
    /// The oracles that are not Bayes-optimal; their answers come after [`PREDICT`] and [`BAYES`].
    pub(super) other_oracles: OtherOracles,
    /// The error probability of one end of one interval.
    alpha: f64,
}

impl Rules {
    /// The rules for a task; `delta` is the error probability, divided among `tasks` tasks.
    pub(super) fn new(router: &Router, task: &Task, delta: f64, tasks: usize) -> Result<Self> {
        let classes = router.classes().len();
        let task = &task.for_classes(router.classes())?;
        let other_oracles = OtherOracles::from_task(task);
        // The cost of each answer, and differences of pairs.
        let answers = 2 + other_oracles.oracles().count();
        let cells = router.cells().count();
        if cells.saturating_mul(answers * answers) > MAX_INTERVALS {
            return Err(TaskError::CertificateSize { cells, answers, most: MAX_INTERVALS }.into());
        }
        let pairs = if answers <= MAX_PAIRED_ANSWERS { answers * (answers - 1) / 2 } else { answers - 1 };
        let intervals = (answers + pairs) * cells * tasks.max(1);
        let alpha = (1.0 - DELTA_FOR_SHARES) * delta / intervals as f64 / 2.0;
        let loss = task.loss().certified(classes);
        let approximation = Approximation::new(&loss, classes).map(Arc::new);
        Ok(Self { loss, approximation, other_oracles, alpha })
    }

    /// The answers of each measured oracle on a router's rows; empty for other oracles.
    ///
    /// # Errors
    /// If the router has no answers of a measured oracle.
    pub(super) fn measured<'a>(&self, router: &'a Router) -> Result<Vec<&'a [f64]>> {
        let answers = |(oracle, name): (&Oracle, &str)| match oracle {
            Oracle::Measured => answers_of(router.rows(), name),
            _ => Ok(&[][..]),
        };
        self.other_oracles.iter().map(answers).collect()
    }

    /// The statistics of each answer; `None` for predicting if a centroid of these items is served.
    pub(super) fn answers(&self, items: &Items, served: bool) -> Vec<Option<Answer>> {
        let mut answers = vec![(!served).then(|| Answer::predict(items, &self.loss))];
        let bayes = Answer::bayes(items, &self.loss, self.approximation.as_deref());
        let asked = self.other_oracles.oracles().enumerate().map(|(place, oracle)| {
            Some(match Panel::from_oracle(oracle) {
                Some(panel) => Answer::panel(panel, items, &self.loss, &bayes),
                None => Answer::given(items.answers(place), items, &self.loss),
            })
        });
        let asked: Vec<Option<Answer>> = asked.collect();
        answers.push(Some(bayes));
        answers.extend(asked);
        answers
    }

    /// Whether only items with several labels identify the loss of an answer.
    pub(super) fn needs_several_labels(&self, answer: usize) -> bool {
        let other =
            |place: usize| self.other_oracles.oracles().nth(place).is_some_and(|oracle| *oracle != Oracle::Measured);
        answer == BAYES || answer.checked_sub(BAYES + 1).is_some_and(other)
    }

    /// The intervals of a cell. `served` is set if the router serves centroids, with the cell's centroid if it has rows.
    ///
    /// If some items have one label and others several, the intervals of all items and those of the items with several labels both count,
    /// each with half of the error probability ([`views`](super::views)).
    pub(super) fn certify(&self, items: &Items, served: Option<Option<&[f64]>>) -> CellCertificate {
        let Some(several) = items.with_several_labels() else { return self.certify_items(items, served, self.alpha) };
        let [mut all, several] = [items, &several].map(|items| self.certify_items(items, served, self.alpha / 2.0));
        let intervals = all.costs.iter_mut().chain(&mut all.gaps).zip(several.costs.iter().chain(&several.gaps));
        intervals.for_each(|(of_all, of_several)| *of_all = of_all.and(*of_several));
        all
    }

    /// The intervals of a cell from some of its items, each end of which fails with probability at most `alpha`.
    fn certify_items(&self, items: &Items, served: Option<Option<&[f64]>>, alpha: f64) -> CellCertificate {
        let whole = Interval::new(0.0, self.loss.bound());
        let answers = self.answers(items, served.is_some());
        let interval = |answer: &Option<Answer>| match (answer, served) {
            (Some(answer), _) => answer.interval(items, alpha),
            (None, Some(Some(centroid))) if items.len() > 0 => statistics::served(centroid, items, &self.loss, alpha),
            _ => whole,
        };
        let mut costs: Vec<Interval> = answers.iter().map(interval).collect();
        let n = answers.len();
        let mut gaps = vec![Interval::new(0.0, 0.0); n * n];
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            let mut gap = costs[a].minus(costs[b]);
            if let (Some(x), Some(y)) = (&answers[a], &answers[b]) {
                if (a, b) == (PREDICT, BAYES) {
                    gap = statistics::reducible(x, y, items, &self.loss, alpha).and(gap);
                } else if a == PREDICT || n <= MAX_PAIRED_ANSWERS {
                    gap = statistics::difference(x, y, items, alpha).and(gap);
                }
            }
            // No answer is better than the Bayes-optimal one.
            if b == BAYES {
                gap = gap.and(Interval::new(0.0, f64::INFINITY));
            } else if a == BAYES {
                gap = gap.and(Interval::new(f64::NEG_INFINITY, 0.0));
            }
            gaps[a * n + b] = gap;
            gaps[b * n + a] = Interval::new(-gap.high, -gap.low);
        }
        // Intervals of differences narrow those of costs.
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            let (other, gap) = (costs[b], gaps[a * n + b]);
            costs[a] = costs[a].and(Interval::new(other.low + gap.low, other.high + gap.high));
        }
        CellCertificate { rows: items.len(), dropped: items.dropped, costs, gaps }
    }

    /// The index of a route's answer.
    fn place(&self, route: &Route) -> usize {
        match self.other_oracles.loss_of(route) {
            Some(OracleLoss::Other(place)) => BAYES + 1 + place,
            _ => BAYES,
        }
    }

    /// The answer of an action, none for abstaining, and its price.
    pub(super) fn answer(&self, task: &Task, action: usize) -> (Option<usize>, f64) {
        match action.checked_sub(1) {
            None => (Some(PREDICT), 0.0),
            Some(route) => match task.routes().get(route) {
                Some(priced) => (Some(self.place(priced)), priced.price()),
                None => (None, task.abstain_price().unwrap_or(f64::INFINITY)),
            },
        }
    }

    /// The interval of an action's cost.
    pub(super) fn cost(&self, cell: &CellCertificate, task: &Task, action: usize) -> Interval {
        let (answer, price) = self.answer(task, action);
        answer.map_or(Interval::new(0.0, 0.0), |answer| cell.costs[answer]).shifted(price)
    }

    /// The interval of the cost of an action minus that of another.
    pub(super) fn gap(&self, cell: &CellCertificate, task: &Task, action: usize, other: usize) -> Interval {
        let ((a, price), (b, other_price)) = (self.answer(task, action), self.answer(task, other));
        match (a, b) {
            (Some(a), Some(b)) => cell.gaps[a * cell.costs.len() + b].shifted(price - other_price),
            _ => self.cost(cell, task, action).minus(self.cost(cell, task, other)),
        }
    }

    /// The largest possible regret of an action, and the action that would be better.
    pub(super) fn regret(&self, cell: &CellCertificate, task: &Task, action: usize) -> (f64, Option<usize>) {
        let rounding = ROUNDING * self.loss.bound();
        let mut worst = (0.0, None);
        for other in (0..task.actions()).filter(|&other| other != action) {
            let regret = self.gap(cell, task, action, other).high;
            if regret > f64::max(worst.0, rounding) {
                worst = (regret, Some(other));
            }
        }
        worst
    }
}
