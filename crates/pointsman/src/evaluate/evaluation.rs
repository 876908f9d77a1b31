//! What a policy costs on held-out rows, as data.

use super::Saving;
use crate::policy::Surcharge;
use crate::task::{Named, TaskSummary};

/// What held-out rows are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum Truth {
    /// The mean of each row's labels.
    #[cfg_attr(feature = "serde", serde(rename = "votes"))]
    Votes,
    /// Label distributions that are known, as in synthetic worlds.
    #[cfg_attr(feature = "serde", serde(rename = "true"))]
    Known,
}

/// What a policy costs on held-out rows. Costs are means per query, in the loss's unit.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Evaluation {
    /// Held-out rows.
    pub rows: usize,
    /// The loss.
    pub loss: String,
    /// Its unit.
    pub unit: &'static str,
    /// What the rows are judged by.
    pub truth: Truth,
    /// The task.
    pub task: TaskSummary,
    /// What the task's limit on routing comes to, if it has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub surcharge: Option<Surcharge>,
    /// The loss that the router reaches on these rows, if the task has a target loss.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub loss_reached: Option<LossReached>,
    /// Mean cost of `router`, `always-predict`, `always-route:<name>`, `always-abstain`, `cell-optimal` and
    /// `pointwise-optimal`.
    pub mean_cost: Named<f64>,
    /// Standard errors of the mean costs; one row has none.
    pub standard_error: Named<Option<f64>>,
    /// The mean costs with the bias of few labels taken out. A truth of few labels agrees with itself too well, so that
    /// routing looks cheaper in `mean_cost` than it is. Unknown where items carry one label each.
    pub corrected_cost: Option<Named<f64>>,
    /// Standard errors of the corrected costs: of the rows and their labels and, where no unbiased estimate exists, of how far two
    /// corrections differ. One row has none.
    pub corrected_standard_error: Option<Named<Option<f64>>>,
    /// Between what the corrected costs lie as far as the labels identify them, however many rows there are: k labels per item do not
    /// tell what a Bayes-optimal oracle loses under any other loss than Brier. The corrected cost is within; standard errors come on
    /// top. Only costs of which something is left open are named; not `pointwise-optimal`.
    pub corrected_identified: Named<[f64; 2]>,
    /// What the router saves per query against each simple rule: `always-<action>`, and `best-threshold`, the best thresholds on the
    /// uncertainty of the prediction, halfway between those chosen on these rows and those chosen on others. It has the same actions as the
    /// router and keeps the same limit: within a budget, and with a target loss as much routed as the router does. From corrected costs;
    /// unknown where these are.
    pub savings: Option<Named<Saving>>,
    /// The mean costs that the labels do not tell: with one label per item nobody knows what an oracle who knows the truth would
    /// lose. They are then as if each label were the whole truth, and so are regrets and curves; gains are unknown.
    pub unidentified: Vec<String>,
    /// Cost above the best action per cell and above the best action per row. A forest decides row by row and may be below the
    /// first.
    pub regret: Named<f64>,
    /// There if the task limits routing: always routing and the best in hindsight do not keep to the limit.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub regret_ignores_limit: bool,
    /// The same with the bias of few labels taken out; unknown where that cannot be. The best action per cell is known in hindsight
    /// from these very rows: where cells have few of them, chance lets it look cheaper than it is.
    pub corrected_regret: Option<Named<f64>>,
    /// Standard errors of the corrected regrets.
    pub corrected_regret_standard_error: Option<Named<Option<f64>>>,
    /// Share of the rows that each action gets.
    pub shares: Named<f64>,
    /// Mean cost of the same router when it may only predict or route, or only predict or abstain; left out where a target loss
    /// cannot be reached so.
    pub two_way: Named<f64>,
    /// The same with the bias of few labels taken out; unknown where that cannot be.
    pub corrected_two_way: Option<Named<f64>>,
    /// Normalised gain of each ranking if a perfect oracle were asked: 0 random, 1 point-wise optimal; unknown if routing gains nothing, or if items carry one
    /// label each.
    pub gain: Named<Option<f64>>,
    /// The gains with the bias of few labels taken out, which is what rankings are compared by; unknown where that cannot be. What
    /// the best possible order saves is the mean of two estimates, by shrunken snapshots and by draws of the rows' true distributions (by the
    /// first alone where few rows have two labels); the best of the rankings counts if that saves more.
    pub corrected_gain: Option<Named<Option<f64>>>,
    /// Standard errors of the corrected gains: of the rows, and half of the difference between those two estimates.
    pub corrected_gain_standard_error: Option<Named<Option<f64>>>,
    /// Mean loss when the first 0 %, 1 %, … 100 % of each ranking are routed to a perfect oracle, prices left out.
    pub curves: Named<Vec<f64>>,
    /// The curves with the bias of few labels taken out; unknown where that cannot be.
    pub corrected_curves: Option<Named<Vec<f64>>>,
    /// Correlation of reducible and total loss over the rows: near 1, ranking by total uncertainty is as good. Unknown if items
    /// carry one label each.
    pub correlation: Option<f64>,
    /// Share of the rows whose own cell is empty, and of those whose cell is sparse.
    pub support: Named<f64>,
}

/// What a router loses per held-out row, prices of routes left out; abstaining loses its price.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LossReached {
    /// By the labels as they are.
    pub mean: f64,
    /// Its standard error; one row has none.
    pub standard_error: Option<f64>,
    /// With the bias of few labels taken out; unknown where that cannot be.
    pub corrected: Option<f64>,
    /// The standard error of that.
    pub corrected_standard_error: Option<f64>,
}

impl LossReached {
    /// The loss to conclude from and its standard error: the corrected one if there is one.
    #[must_use]
    pub fn best(&self) -> (f64, Option<f64>) {
        match self.corrected {
            Some(corrected) => (corrected, self.corrected_standard_error),
            None => (self.mean, self.standard_error),
        }
    }
}

impl Evaluation {
    /// Whether what is concluded is concluded from corrected costs: with the truth known there is nothing to correct.
    #[must_use]
    pub fn is_corrected(&self) -> bool {
        self.truth == Truth::Votes && self.corrected_cost.is_some()
    }

    /// Whether the labels tell a cost.
    #[must_use]
    pub fn is_identified(&self, name: &str) -> bool {
        !self.unidentified.iter().any(|other| other == name)
    }

    /// The costs to conclude from: the corrected ones if there are any, else the mean costs.
    #[must_use]
    pub fn best_costs(&self) -> &Named<f64> {
        self.corrected_cost.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.mean_cost)
    }

    /// The same of the regrets.
    #[must_use]
    pub fn best_regret(&self) -> &Named<f64> {
        self.corrected_regret.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.regret)
    }

    /// The same of the standard errors of the costs.
    #[must_use]
    pub fn best_standard_error(&self) -> &Named<Option<f64>> {
        self.corrected_standard_error.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.standard_error)
    }

    /// The same of the gains.
    #[must_use]
    pub fn best_gain(&self) -> &Named<Option<f64>> {
        self.corrected_gain.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.gain)
    }

    /// The same of the routing curves.
    #[must_use]
    pub fn best_curves(&self) -> &Named<Vec<f64>> {
        self.corrected_curves.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.curves)
    }

    /// The same of the costs of two actions only.
    #[must_use]
    pub fn best_two_way(&self) -> &Named<f64> {
        self.corrected_two_way.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.two_way)
    }
}
