//! The result of an evaluation on held-out rows.

use super::{CostOfCaps, EvaluatedCap, Saving};
use crate::number::is_wide_beside;
use crate::policy::Surcharge;
use crate::task::{Named, TaskSummary};

/// The truth that held-out costs are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum Truth {
    /// The mean of each row's labels.
    #[cfg_attr(feature = "serde", serde(rename = "votes"))]
    Votes,
    /// Known label distributions, as in synthetic data.
    #[cfg_attr(feature = "serde", serde(rename = "true"))]
    Known,
}

/// The costs of a policy on held-out rows. Costs are means per query, in the loss's unit.
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
    /// The truth that costs are computed from.
    pub truth: Truth,
    /// The task.
    pub task: TaskSummary,
    /// The surcharge that is equivalent to the task's limit on routing, if it has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub surcharge: Option<Surcharge>,
    /// The loss that the router reaches on these rows, if the task has a target loss.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub loss_reached: Option<LossReached>,
    /// The use of each cap, if the rows were evaluated under caps.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub caps: Vec<EvaluatedCap>,
    /// What the caps cost, if rows take other actions because of them.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub capped: Option<CostOfCaps>,
    /// Mean cost of `router`, `always-predict`, `always-route:<name>`, `always-abstain`, `cell-optimal` and
    /// `pointwise-optimal`.
    pub mean_cost: Named<f64>,
    /// Standard errors of the mean costs; none for one row.
    pub standard_error: Named<Option<f64>>,
    /// The mean costs corrected for the bias of few labels. Under a truth estimated from few labels, routing appears cheaper in `mean_cost`
    /// than it is. Unknown if items have one label each.
    pub corrected_cost: Option<Named<f64>>,
    /// Standard errors of the corrected costs, from the variance over rows and, if there is no unbiased estimate, the difference of two
    /// corrections. None for one row, and for `pointwise-optimal` if it is more than four standard errors above its lower bound in
    /// `corrected_identified`: the cost is a model's guess then.
    pub corrected_standard_error: Option<Named<Option<f64>>>,
    /// The bounds on the corrected costs that labels identify with infinitely many rows; standard errors come on top. Under losses other than
    /// Brier, k labels per item do not identify the loss of a Bayes-optimal oracle. The corrected cost is within the bounds. Costs that are
    /// identified exactly are left out. The bounds of `pointwise-optimal` are the mean of the least corrected cost of each row, which is too
    /// low on average, and the least cost of any other rule.
    pub corrected_identified: Named<[f64; 2]>,
    /// The router's saving per query over each simple rule: `always-<action>`, and `best-threshold`, the best thresholds on the uncertainty of
    /// the prediction. Its cost is the midpoint between thresholds chosen on these rows and thresholds chosen on other rows. It has the same
    /// actions and the same limit as the router: it routes at most the budget or, with a target loss, as much as the router. From corrected
    /// costs; unknown if these are.
    pub savings: Option<Named<Saving>>,
    /// The mean costs that the labels do not identify: one label per item does not identify the loss of a Bayes-optimal oracle. These costs,
    /// regrets and curves are computed as if each label were the truth; gains are unknown.
    pub unidentified: Vec<String>,
    /// Cost above the best action per cell and above the best action per row. The first may be negative for a forest, which decides row by
    /// row.
    pub regret: Named<f64>,
    /// Set if the task limits routing, or rows take other actions because of caps: always routing and the best actions in hindsight do not
    /// keep the limit.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub regret_ignores_limit: bool,
    /// The regrets corrected for the bias of few labels; unknown if that is impossible. The best action per cell is chosen on these rows, so in
    /// cells with few rows it appears cheaper than it is.
    pub corrected_regret: Option<Named<f64>>,
    /// Standard errors of the corrected regrets; none where the corrected costs have none.
    pub corrected_regret_standard_error: Option<Named<Option<f64>>>,
    /// The share of the rows that gets each action.
    pub shares: Named<f64>,
    /// Mean cost of the same router restricted to predicting and routing, or to predicting and abstaining; left out if it cannot reach a
    /// target loss.
    pub two_way: Named<f64>,
    /// These costs corrected for the bias of few labels; unknown if that is impossible.
    pub corrected_two_way: Option<Named<f64>>,
    /// Normalised gain of each ranking with a perfect oracle: 0 is random, 1 is point-wise optimal. Unknown if routing gains nothing, or if
    /// items have one label each.
    pub gain: Named<Option<f64>>,
    /// The gains corrected for the bias of few labels, by which rankings should be compared; unknown if that is impossible. The saving of the
    /// best possible ranking is estimated from the law of p* given what predicts it, and is at least that of the best ranking compared.
    pub corrected_gain: Option<Named<Option<f64>>>,
    /// Standard errors of the corrected gains, from the variance over rows and half of the difference of two estimates of the best possible
    /// ranking: at shrunk snapshot means, which is used, and at draws of the true distributions.
    pub corrected_gain_standard_error: Option<Named<Option<f64>>>,
    /// Mean loss if the first 0 %, 1 %, … 100 % of each ranking are routed to a perfect oracle, without prices.
    pub curves: Named<Vec<f64>>,
    /// The curves corrected for the bias of few labels; unknown if that is impossible.
    pub corrected_curves: Option<Named<Vec<f64>>>,
    /// Correlation of reducible and total loss over the rows: near 1, ranking by total uncertainty is as good. The noise of few labels is in
    /// both and raises it. Unknown if items have one label each.
    pub correlation: Option<f64>,
    /// The shares of the rows in cells with enough rows, in sparse and in empty cells.
    pub support: Named<f64>,
}

/// The loss of a router per held-out row, without the prices of routes; abstaining loses its price.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LossReached {
    /// The mean under the truth of the table.
    pub mean: f64,
    /// Its standard error; none for one row.
    pub standard_error: Option<f64>,
    /// The mean corrected for the bias of few labels; unknown if that is impossible.
    pub corrected: Option<f64>,
    /// The standard error of the corrected mean.
    pub corrected_standard_error: Option<f64>,
}

impl LossReached {
    /// The corrected loss if there is one, otherwise the mean, with its standard error.
    #[must_use]
    pub fn best(&self) -> (f64, Option<f64>) {
        match self.corrected {
            Some(corrected) => (corrected, self.corrected_standard_error),
            None => (self.mean, self.standard_error),
        }
    }
}

impl Evaluation {
    /// Whether conclusions are drawn from corrected costs; a known truth needs no correction.
    #[must_use]
    pub fn is_corrected(&self) -> bool {
        self.truth == Truth::Votes && self.corrected_cost.is_some()
    }

    /// Whether the labels identify a cost.
    #[must_use]
    pub fn is_identified(&self, name: &str) -> bool {
        !self.unidentified.iter().any(|other| other == name)
    }

    /// The corrected costs if there are any, otherwise the mean costs.
    #[must_use]
    pub fn best_costs(&self) -> &Named<f64> {
        self.corrected_cost.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.mean_cost)
    }

    /// The bounds on a rule's corrected cost that labels identify, if they are wide beside its standard error.
    #[must_use]
    pub fn open_interval(&self, name: &str) -> Option<[f64; 2]> {
        let ends = self.corrected_identified.get(name).copied().filter(|_| self.is_corrected())?;
        let error = self.best_standard_error().get(name).copied().flatten().unwrap_or(f64::NAN);
        Some(ends).filter(|ends| self.is_identified(name) && is_wide_beside(*ends, error))
    }

    /// The bounds on the corrected regret against the best possible per query that labels identify with infinitely many rows: the policy's
    /// cost minus the bounds of `pointwise-optimal`. No policy costs less than the best possible, so a negative end is zero. `None` if the
    /// bounds of the best possible cost are not known.
    #[must_use]
    pub fn identified_regret(&self) -> Option<[f64; 2]> {
        let &[least, most] = self.corrected_identified.get("pointwise-optimal").filter(|_| self.is_corrected())?;
        let &cost = self.best_costs().get("router")?;
        let [low, high] = self.corrected_identified.get("router").copied().unwrap_or([cost; 2]);
        Some([low - most, high - least].map(|end| end.max(0.0)))
    }

    /// Whether the cost of the best possible decisions, and the regret against them, are a model's guess: labels leave so much open that no
    /// standard error is given.
    #[must_use]
    pub fn best_possible_is_guess(&self) -> bool {
        let errors = self.corrected_regret_standard_error.as_ref();
        self.identified_regret().is_some()
            && errors.and_then(|errors| errors.get("pointwise-optimal").copied().flatten()).is_none()
    }

    /// The corrected regrets if there are any, otherwise the plain ones.
    #[must_use]
    pub fn best_regret(&self) -> &Named<f64> {
        self.corrected_regret.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.regret)
    }

    /// The standard errors of [`Self::best_costs`].
    #[must_use]
    pub fn best_standard_error(&self) -> &Named<Option<f64>> {
        self.corrected_standard_error.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.standard_error)
    }

    /// The corrected gains if there are any, otherwise the plain ones.
    #[must_use]
    pub fn best_gain(&self) -> &Named<Option<f64>> {
        self.corrected_gain.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.gain)
    }

    /// The corrected routing curves if there are any, otherwise the plain ones.
    #[must_use]
    pub fn best_curves(&self) -> &Named<Vec<f64>> {
        self.corrected_curves.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.curves)
    }

    /// The corrected costs with two actions if there are any, otherwise the plain ones.
    #[must_use]
    pub fn best_two_way(&self) -> &Named<f64> {
        self.corrected_two_way.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.two_way)
    }
}
