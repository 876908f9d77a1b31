//! How sure the costs are: intervals for each cell, certain actions, and a bound on the regret that holds for all prices.
//!
//! Everything in a certificate holds at once with the confidence asked for, for traffic like the calibration rows: the
//! intervals of every cell, the shares of the cells, and so the regret of every policy of this loss and these oracles,
//! whatever its prices. The failure that is allowed, δ, is spent as 9/10 on the intervals, in equal parts, and 1/10 on the
//! shares.

mod approximation;
mod betting;
mod coarser;
mod difference_prior;
mod e_process;
mod forecast;
mod items;
mod plan;
mod statistics;
mod uniform;

use std::sync::Arc;

use approximation::Approximation;
pub use betting::Interval;
pub use coarser::{CoarserCells, CoarserPartition};
pub use e_process::EProcess;
use items::Items;
pub use plan::{CellPlan, FirstCells, ItemToLabel, Offer, Plan, Purchase};
use statistics::Answer;
pub use uniform::AllLosses;

use crate::error::{Result, RouterError, TableError, TaskError};
use crate::estimate::{OracleLoss, OtherOracles, answers_of};
use crate::loss::Loss;
use crate::oracle::{Oracle, Panel};
use crate::parallel::prelude::*;
use crate::partition::{CellId, Cells};
use crate::policy::{Decision, Level, Policy};
use crate::router::{Mixture, Router};
use crate::task::{Route, Task};

/// The part of δ that is spent on the shares of the cells.
const FOR_SHARES: f64 = 0.1;

/// The part of δ that is spent on the bounds for all losses where they are given together with certificates.
const FOR_ALL_LOSSES: f64 = 0.1;

/// How much heavier than the mean a row may be: beyond that one row would decide.
const HEAVIEST: f64 = 20.0;

/// More answers than this are compared with predicting item by item, but not with each other.
const PAIRED: usize = 8;

/// The most intervals, about a gigabyte of them.
const MAX_INTERVALS: usize = 1 << 26;

/// Regrets below this part of the loss's bound are rounding.
const ROUNDING: f64 = 1e-12;

/// What predicting is among the answers, and what knowing the truth is.
const PREDICT: usize = 0;
const BAYES: usize = 1;

/// Intervals for what each answer costs in each cell, before prices.
///
/// ```
/// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
/// let table = Table::new(["no", "yes"], [0.9, 0.1].repeat(400))?.with_votes([4, 1].repeat(400))?;
/// let router = Router::calibrate(&table, &Partition::top_class(1))?;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.3)?;
/// let certificate = router.certificate(&task, 0.95)?;
/// let judgement = certificate.judge(&router.policy(&task)?)?;
/// assert!(judgement.cells[0].certain); // 0.3 is more than an expert can save
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Certificate {
    confidence: f64,
    rules: Rules,
    /// Which cells these are.
    found: Arc<Cells>,
    cells: Vec<CellCertificate>,
    shares: Vec<f64>,
    /// By how much the share of any set of cells may be above what was counted.
    share_error: f64,
    /// The largest share that cells without rows may have.
    unseen: f64,
}

/// Certificates and bounds for all losses that hold all at once.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Together {
    /// One certificate per task.
    pub certificates: Vec<Certificate>,
    /// One bound per cell, where it says something.
    pub all_losses: Vec<Option<AllLosses>>,
}

/// One cell's intervals. A cell without rows has them too: they say nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct CellCertificate {
    rows: usize,
    dropped: usize,
    costs: Vec<Interval>,
    /// How much dearer answer a is than answer b: `gaps[a * answers + b]`.
    gaps: Vec<Interval>,
}

/// What a certificate says of a policy.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Judgement {
    /// Each cell.
    pub cells: Vec<CellJudgement>,
    /// What the policy may cost per query more than the best policy on these cells, in the unit of the loss.
    pub regret_bound: f64,
    /// The share of the calibration rows, by weight, in cells whose action is certain.
    pub certain: f64,
}

/// What a certificate says of a policy's action in a cell.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CellJudgement {
    /// Whether no other action is better.
    pub certain: bool,
    /// What the action may cost more than the best one; where the labels decide on none, predicting or abstaining is meant,
    /// whichever is cheaper.
    pub regret: f64,
    /// The action that may be better by so much, as it is called in [`Task::action_names`].
    pub rival: Option<String>,
}

/// How a cell's items become intervals.
#[derive(Debug, Clone)]
struct Rules {
    loss: Loss,
    /// Polynomials near its entropy, if there are any.
    approximation: Option<Arc<Approximation>>,
    /// The oracles that do not know the truth: their answers come after predicting and who does.
    other_oracles: OtherOracles,
    /// How often one end of one interval may fail.
    alpha: f64,
}

impl Router {
    /// Intervals for the loss and the oracles of a task; its prices do not matter.
    ///
    /// # Errors
    /// If the confidence is not between 0 and 1, the loss does not fit the classes, some rows weigh too much, or the router has no
    /// predictions of a measured oracle.
    pub fn certificate(&self, task: &Task, confidence: f64) -> Result<Certificate> {
        self.certify(task, confidence, 1, 1.0)
    }

    /// Certificates for several tasks that hold all at once: slightly wider than each by itself.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn certificates(&self, tasks: &[Task], confidence: f64) -> Result<Vec<Certificate>> {
        tasks.iter().map(|task| self.certify(task, confidence, tasks.len(), 1.0)).collect()
    }

    /// As [`Router::certificates`], with bounds for every proper loss in the cells where [`Router::all_losses`] has them:
    /// certificates and bounds hold all at once.
    ///
    /// Nine tenths of the failures that the confidence allows are spent on the certificates and a tenth on the bounds; if
    /// no cell can have a bound, which does not depend on labels, the certificates have all of it.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn certify_together(&self, tasks: &[Task], confidence: f64) -> Result<Together> {
        check(self, confidence)?;
        let cells = || (0..self.cells().count() as u32).map(CellId);
        let bounded = cells().any(|cell| self.check_all_losses(cell).is_ok());
        let part = if bounded { 1.0 - FOR_ALL_LOSSES } else { 1.0 };
        let certify = |task: &Task| self.certify(task, confidence, tasks.len(), part);
        let certificates = tasks.iter().map(certify).collect::<Result<_>>()?;
        let rest = 1.0 - FOR_ALL_LOSSES * (1.0 - confidence);
        let all_losses = cells().map(|cell| self.all_losses(cell, rest).ok()).collect();
        Ok(Together { certificates, all_losses })
    }

    /// Whether the router's cells were found without the labels of its rows: not if they are a forest's.
    #[must_use]
    pub fn is_certifiable(&self) -> bool {
        self.cells().forest().is_none()
    }

    /// One of several tasks, with so large a part of the failures that the confidence allows.
    fn certify(&self, task: &Task, confidence: f64, tasks: usize, part: f64) -> Result<Certificate> {
        check(self, confidence)?;
        let delta = part * (1.0 - confidence);
        let rules = Rules::new(self, task, delta, tasks)?;
        let cells = self.cells().count();
        let (all, heaviest) = self.weights();
        let relative = heaviest * self.rows().rows() as f64 / all;
        if relative > HEAVIEST {
            return Err(TableError::HeavyRow { relative, most: HEAVIEST }.into());
        }
        let answers = rules.measured(self)?;
        let cell = |cell: u32| {
            let mixture = self.mixture(CellId(cell));
            let served = self.is_recalibrated().then(|| mixture.centroid());
            let items = Items::from_cell(self, CellId(cell), heaviest, &answers);
            (rules.certify(&items, served.as_ref().map(|served| served.as_deref())), weight(mixture) / all)
        };
        let (cells, shares): (Vec<_>, Vec<_>) = (0..cells as u32).into_par_iter().map(cell).unzip();
        // The union over all sets of cells; half of the failures for each of the two claims. Between quantiles of the rows
        // themselves the share of a set is beta distributed, with tails no heavier than those of counting.
        let n = self.rows().rows() as f64;
        let doubt = cells.len() as f64 * 2_f64.ln() - (FOR_SHARES / 2.0 * delta).ln();
        Ok(Certificate {
            confidence,
            rules,
            found: self.cells().clone(),
            cells,
            shares,
            share_error: (relative * (doubt / (2.0 * n)).sqrt()).min(1.0),
            unseen: (relative * doubt / n).min(1.0),
        })
    }

    /// The weight of all rows, and of the heaviest.
    fn weights(&self) -> (f64, f64) {
        let weights = (0..self.rows().rows()).map(|row| self.rows().weight(row));
        weights.fold((0.0, 0.0), |(all, heaviest), weight| (all + weight, f64::max(heaviest, weight)))
    }
}

fn check(router: &Router, confidence: f64) -> Result<()> {
    if !router.is_certifiable() {
        return Err(RouterError::NotCertifiable.into());
    }
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    let wanted = "is not between 0 and 1, both excluded; give a number such as 0.95".to_owned();
    Err(TaskError::OutOfRange { what: "confidence".to_owned(), value: confidence, wanted }.into())
}

fn weight(mixture: Mixture<'_>) -> f64 {
    mixture.rows().map(|row| mixture.table().weight(row)).sum()
}

impl Rules {
    /// `delta` is how often something may fail.
    fn new(router: &Router, task: &Task, delta: f64, tasks: usize) -> Result<Self> {
        let classes = router.classes().len();
        let task = &task.for_classes(router.classes())?;
        let other_oracles = OtherOracles::from_task(task);
        // Each answer's cost, and differences of pairs.
        let answers = 2 + other_oracles.oracles().count();
        let cells = router.cells().count();
        if cells.saturating_mul(answers * answers) > MAX_INTERVALS {
            return Err(TaskError::CertificateSize { cells, answers, most: MAX_INTERVALS }.into());
        }
        let pairs = if answers <= PAIRED { answers * (answers - 1) / 2 } else { answers - 1 };
        let intervals = (answers + pairs) * cells * tasks.max(1);
        let alpha = (1.0 - FOR_SHARES) * delta / intervals as f64 / 2.0;
        let loss = task.loss().certified(classes);
        let approximation = Approximation::new(&loss, classes).map(Arc::new);
        Ok(Self { loss, approximation, other_oracles, alpha })
    }

    /// The answers of each oracle asked to all of a router's rows; none of those that are not measured.
    ///
    /// # Errors
    /// If the router has no answers of a measured oracle.
    fn measured<'a>(&self, router: &'a Router) -> Result<Vec<&'a [f64]>> {
        let answers = |(oracle, name): (&Oracle, &str)| match oracle {
            Oracle::Measured => answers_of(router.rows(), name),
            _ => Ok(&[][..]),
        };
        self.other_oracles.iter().map(answers).collect()
    }

    /// What the items say about each answer; nothing about predicting if that is a centroid made from them.
    fn answers(&self, items: &Items, served: bool) -> Vec<Option<Answer>> {
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

    /// The intervals of a cell; `served` if the router serves centroids, with the cell's own if it has one.
    fn certify(&self, items: &Items, served: Option<Option<&[f64]>>) -> CellCertificate {
        let whole = Interval::new(0.0, self.loss.bound());
        let answers = self.answers(items, served.is_some());
        let interval = |answer: &Option<Answer>| match (answer, served) {
            (Some(answer), _) => answer.interval(items, self.alpha),
            (None, Some(Some(centroid))) if items.len() > 0 => {
                statistics::served(centroid, items, &self.loss, self.alpha)
            }
            _ => whole,
        };
        let mut costs: Vec<Interval> = answers.iter().map(interval).collect();
        let n = answers.len();
        let mut gaps = vec![Interval::new(0.0, 0.0); n * n];
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            let mut gap = costs[a].minus(costs[b]);
            if let (Some(x), Some(y)) = (&answers[a], &answers[b]) {
                if (a, b) == (PREDICT, BAYES) {
                    gap = statistics::reducible(x, y, items, &self.loss, self.alpha).and(gap);
                } else if a == PREDICT || n <= PAIRED {
                    gap = statistics::difference(x, y, items, self.alpha).and(gap);
                }
            }
            // Nobody does better than who knows the truth.
            if b == BAYES {
                gap = gap.and(Interval::new(0.0, f64::INFINITY));
            } else if a == BAYES {
                gap = gap.and(Interval::new(f64::NEG_INFINITY, 0.0));
            }
            gaps[a * n + b] = gap;
            gaps[b * n + a] = Interval::new(-gap.high, -gap.low);
        }
        // What is known of the differences tells about the costs.
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            let (other, gap) = (costs[b], gaps[a * n + b]);
            costs[a] = costs[a].and(Interval::new(other.low + gap.low, other.high + gap.high));
        }
        CellCertificate { rows: items.len(), dropped: items.dropped, costs, gaps }
    }

    /// Where a route's answer is among all.
    fn place(&self, route: &Route) -> usize {
        match self.other_oracles.loss_of(route) {
            Some(OracleLoss::Other(place)) => BAYES + 1 + place,
            _ => BAYES,
        }
    }

    /// What a route or predicting costs before its price: the answer, and the price. Abstaining is all price.
    fn answer(&self, task: &Task, action: usize) -> (Option<usize>, f64) {
        match action.checked_sub(1) {
            None => (Some(PREDICT), 0.0),
            Some(route) => match task.routes().get(route) {
                Some(priced) => (Some(self.place(priced)), priced.price()),
                None => (None, task.abstain_price().unwrap_or(f64::INFINITY)),
            },
        }
    }

    /// Between what an action's cost lies.
    fn cost(&self, cell: &CellCertificate, task: &Task, action: usize) -> Interval {
        let (answer, price) = self.answer(task, action);
        answer.map_or(Interval::new(0.0, 0.0), |answer| cell.costs[answer]).shifted(price)
    }

    /// By how much one action is dearer than another.
    fn gap(&self, cell: &CellCertificate, task: &Task, action: usize, other: usize) -> Interval {
        let ((a, price), (b, other_price)) = (self.answer(task, action), self.answer(task, other));
        match (a, b) {
            (Some(a), Some(b)) => cell.gaps[a * cell.costs.len() + b].shifted(price - other_price),
            _ => self.cost(cell, task, action).minus(self.cost(cell, task, other)),
        }
    }

    /// What an action may cost more than the best, and which that would be.
    fn regret(&self, cell: &CellCertificate, task: &Task, action: usize) -> (f64, Option<usize>) {
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

impl Certificate {
    /// The confidence asked for.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// The loss that the intervals are about: the task's, but for the cross-entropy with a higher floor.
    #[must_use]
    pub fn loss(&self) -> &Loss {
        &self.rules.loss
    }

    /// The cells, in order.
    #[must_use]
    pub fn cells(&self) -> &[CellCertificate] {
        &self.cells
    }

    /// The cells' shares of the calibration rows, by weight.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Between what the cost of each action of a task lies in a cell, in the order of [`Task::action_names`]. `None` if there is
    /// no such cell or the task's oracles are others.
    #[must_use]
    pub fn costs(&self, cell: CellId, task: &Task) -> Option<Vec<Interval>> {
        self.check(task).ok()?;
        let cell = self.cells.get(cell.index())?;
        Some((0..task.actions()).map(|action| self.rules.cost(cell, task, action)).collect())
    }

    fn check(&self, task: &Task) -> Result<()> {
        let known = task.routes().iter().all(|route| self.rules.other_oracles.loss_of(route).is_some());
        if known && task.loss().certified_like(&self.rules.loss) {
            Ok(())
        } else {
            Err(TaskError::OtherCertificate.into())
        }
    }

    /// What this says of a policy of the same router, loss and oracles, whatever its prices.
    ///
    /// The regret is bounded by Σ_b w_b r_b, r_b what the action of cell b may cost more than the best. The true shares
    /// w_b differ from those of the calibration rows; at worst all the difference is in the cell of the largest r_b. In a
    /// cell without rows anything may happen, but little traffic can fall into such cells.
    ///
    /// A limit on routing is judged as the prices it comes to.
    ///
    /// # Errors
    /// If the policy has another loss, other oracles or other cells.
    pub fn judge(&self, policy: &Policy) -> Result<Judgement> {
        let task = &policy.priced_task();
        self.check(task)?;
        if !policy.decides_in(&self.found) {
            return Err(RouterError::OtherRouter.into());
        }
        let names = task.action_names();
        let judge = |(index, cell): (usize, &CellCertificate)| match policy.cell(CellId(index as u32)) {
            Some(_) => {
                let regrets = policy.taken(index as u32).actions().map(|action| self.rules.regret(cell, task, action));
                let [(regret, rival), other] = regrets;
                let (regret, rival) = if other.0 > regret { other } else { (regret, rival) };
                CellJudgement { certain: rival.is_none(), regret, rival: rival.map(|rival| names[rival].clone()) }
            }
            None => CellJudgement { certain: names.len() == 1, regret: self.worst(cell, task), rival: None },
        };
        let cells: Vec<CellJudgement> = self.cells.iter().enumerate().map(judge).collect();
        let seen: Vec<(f64, f64)> =
            cells.iter().zip(&self.shares).filter(|(_, share)| **share > 0.0).map(|(c, &s)| (c.regret, s)).collect();
        let (least, most) =
            seen.iter().fold((f64::INFINITY, 0.0), |(l, m), &(regret, _)| (f64::min(l, regret), f64::max(m, regret)));
        let mut regret_bound: f64 = seen.iter().map(|(regret, share)| regret * share).sum();
        regret_bound += (most - least).max(0.0) * self.share_error;
        // Traffic of cells without rows may all be in the worst of them.
        let unseen = cells.iter().zip(&self.shares).filter(|(_, share)| **share == 0.0).map(|(cell, _)| cell.regret);
        regret_bound += self.unseen * unseen.fold(0.0, f64::max);
        let certain = cells.iter().zip(&self.shares).filter(|(cell, _)| cell.certain).fold(0.0, |sum, (_, s)| sum + s);
        Ok(Judgement { cells, regret_bound, certain })
    }

    /// The largest regret that any action may have in a cell.
    fn worst(&self, cell: &CellCertificate, task: &Task) -> f64 {
        (0..task.actions()).map(|action| self.rules.regret(cell, task, action).0).fold(0.0, f64::max)
    }
}

impl Judgement {
    /// Whether no other action is better for a query that was decided so; never if its cell has no rows.
    #[must_use]
    pub fn is_certain(&self, decision: &Decision<'_>) -> bool {
        // What a cap put in the place of the best action is not the best.
        let own = decision.level() == Level::Cell && decision.wanted().is_none();
        own && self.cells.get(decision.cell().index()).is_some_and(|cell| cell.certain)
    }
}

impl CellCertificate {
    /// How many rows the intervals rest on.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many more there are, left out because an edge of the cell was taken from them.
    #[must_use]
    pub fn rows_left_out(&self) -> usize {
        self.dropped
    }

    /// Between what the loss of predicting lies.
    #[must_use]
    pub fn total(&self) -> Interval {
        self.costs[PREDICT]
    }

    /// Between what the irreducible loss lies.
    #[must_use]
    pub fn irreducible(&self) -> Interval {
        self.costs[BAYES]
    }

    /// Between what the reducible loss lies.
    #[must_use]
    pub fn reducible(&self) -> Interval {
        self.gaps[PREDICT * self.costs.len() + BAYES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Oracle;
    use crate::partition::Partition;
    use crate::table::Table;

    #[test]
    fn traffic_without_rows_is_in_the_worst_cell() {
        // The feature grows with the confidence, so that two of four cells are empty; the surer one can lose more.
        let n = 200;
        let f = |i: usize| 0.5 + 0.5 * i as f64 / n as f64;
        let table = Table::new(["a", "b"], (0..n).flat_map(|i| [f(i), 1.0 - f(i)]).collect()).unwrap();
        let table = table.with_votes([3, 1].repeat(n)).unwrap().with_features(["x"], (0..n).map(f).collect()).unwrap();
        let cells = Partition::confidence(2).times(Partition::features([("x".to_owned(), 2)]));
        let router = Router::calibrate(&table, &cells).unwrap();
        let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
        let certificate = router.certificate(&task, 0.95).unwrap();
        let judged = certificate.judge(&router.policy(&task).unwrap()).unwrap();
        let regrets = |empty: bool| {
            let cells = judged.cells.iter().zip(certificate.shares());
            cells.filter(|(_, share)| (**share == 0.0) == empty).map(|(cell, _)| cell.regret).collect::<Vec<_>>()
        };
        let (empty, seen) = (regrets(true), regrets(false));
        assert!(empty.len() == 2 && empty[1] > empty[0] && seen.len() == 2, "{empty:?} {seen:?}");
        let known = (seen[0] + seen[1]) / 2.0 + (seen[0] - seen[1]).abs() * certificate.share_error;
        assert!((judged.regret_bound - known - certificate.unseen * empty[1]).abs() < 1e-12);
    }
}
