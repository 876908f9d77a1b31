//! Judgements: what a certificate implies for a policy.

use super::{CellCertificate, Certificate};
use crate::error::{Result, RouterError};
use crate::partition::CellId;
use crate::policy::{Decision, Level, Policy};
use crate::task::Task;

/// What a certificate implies for a policy.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Judgement {
    /// One judgement per cell.
    pub cells: Vec<CellJudgement>,
    /// The upper bound on the regret: the cost per query above that of the best policy on these cells, in the unit of the loss.
    pub regret_bound: f64,
    /// The share of the calibration rows, by weight, in cells whose action is certain.
    pub certain: f64,
}

/// What a certificate implies for a policy's action in one cell.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CellJudgement {
    /// Whether certainly no other action is better.
    pub certain: bool,
    /// The largest possible regret of the action; of the cheaper of predicting and abstaining if the action is undetermined.
    pub regret: f64,
    /// The action that may be better by that regret, as named in [`Task::action_names`].
    pub rival: Option<String>,
}

impl Certificate {
    /// Judges a policy of the same router, loss and oracles, at any prices.
    ///
    /// The regret is bounded by Σ_b w_b r_b, where r_b is the largest possible regret in cell b. The true shares w_b differ from those of
    /// the calibration rows; in the worst case all of the difference is in the cell with the largest r_b. Cells without rows have the
    /// trivial bound, but little traffic can fall into them.
    ///
    /// A limit on routing is judged at its equivalent prices.
    ///
    /// # Errors
    /// If the policy has another loss, other oracles or other cells.
    pub fn judge(&self, policy: &Policy) -> Result<Judgement> {
        let task = &policy.priced_task();
        self.check(task)?;
        if !policy.decides_in(&self.partition) {
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
        // In the worst case all traffic of cells without rows is in one cell.
        let unseen = cells.iter().zip(&self.shares).filter(|(_, share)| **share == 0.0).map(|(cell, _)| cell.regret);
        regret_bound += self.unseen * unseen.fold(0.0, f64::max);
        let certain = cells.iter().zip(&self.shares).filter(|(cell, _)| cell.certain).fold(0.0, |sum, (_, s)| sum + s);
        Ok(Judgement { cells, regret_bound, certain })
    }

    /// The largest possible regret of any action in a cell.
    fn worst(&self, cell: &CellCertificate, task: &Task) -> f64 {
        (0..task.actions()).map(|action| self.rules.regret(cell, task, action).0).fold(0.0, f64::max)
    }
}

impl Judgement {
    /// Whether certainly no other action is better for a decided query; false if its cell has no rows.
    #[must_use]
    pub fn is_certain(&self, decision: &Decision<'_>) -> bool {
        // An action that replaced the best one because of a cap is not certain.
        let own = decision.level() == Level::Cell && decision.wanted().is_none();
        own && self.cells.get(decision.cell().index()).is_some_and(|cell| cell.certain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::oracle::Oracle;
    use crate::partition::Partition;
    use crate::router::Router;
    use crate::table::Table;

    #[test]
    fn regret_bound_puts_traffic_without_rows_into_the_worst_cell() {
        // The feature grows with the confidence, so two of four cells are empty; the more confident one can lose more.
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
