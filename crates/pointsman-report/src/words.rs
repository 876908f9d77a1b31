//! A report in a sentence.

use crate::chart::{label, number};
use crate::report::Report;

/// Longest route name in a sentence.
const NAME: usize = 40;

impl Report {
    /// What happens at the task's prices, and against what: the money line.
    #[must_use]
    pub fn money_line(&self) -> String {
        let evaluation = &self.evaluation;
        let several = evaluation.task.routes.len() > 1;
        let verb = |name: &str| match name.split_once(':') {
            Some(("route", oracle)) if several => format!("routed to {}", label(oracle, NAME)),
            Some(("route", _)) => "routed".into(),
            _ if name == "predict" => "predicted".into(),
            _ if name == "abstain" => "abstained".into(),
            _ => "undetermined (counted as the cheapest action of known cost)".to_owned(),
        };
        let shares: Vec<String> =
            evaluation.shares.iter().map(|(name, &share)| format!("{} {}", percent(share), verb(name))).collect();
        let costs = evaluation.best_costs();
        let told = |name: &str, cost: f64| if evaluation.is_identified(name) { cost } else { f64::NAN };
        let always: Vec<String> = costs
            .iter()
            .filter(|(name, _)| name.starts_with("always-"))
            .map(|(name, &cost)| format!("{} {}", label(name, NAME), number(told(name, cost), 4)))
            .collect();
        let router = costs.get("router").map_or(f64::NAN, |&cost| told("router", cost));
        format!(
            "At these prices: {}; {}cost a query {} {}, against {}.",
            shares.join(", "),
            if evaluation.is_corrected() { "corrected " } else { "" },
            number(router, 4),
            evaluation.unit,
            always.join(", ")
        )
    }

    /// Between what the labels leave the router's cost open, in a sentence. `None` if they identify it, or the difference does not show.
    #[must_use]
    pub fn open_line(&self) -> Option<String> {
        let ends = self.evaluation.corrected_identified.get("router").filter(|_| self.evaluation.is_corrected())?;
        let [low, high] = ends.map(|end| number(end, 4));
        (low != high).then(|| {
            format!(
                "So few labels per item leave the router's cost open between {low} and {high}, however many rows there are; \
                 sampling error comes on top."
            )
        })
    }

    /// What the router saves against each simple rule, with intervals of 95 %. `None` if that is not known.
    #[must_use]
    pub fn savings_line(&self) -> Option<String> {
        let evaluation = &self.evaluation;
        let name_of = |name: &str| match name.strip_prefix("always-") {
            Some("predict") => "always predicting".to_owned(),
            Some("abstain") => "always abstaining".to_owned(),
            Some(action) => format!("always asking {}", label(action.trim_start_matches("route:"), NAME)),
            None => "the best confidence threshold".to_owned(),
        };
        // Always routing does not keep to a limit, so that it is no rule to compare with.
        let keeps = |name: &str| !(evaluation.task.is_limited() && name.starts_with("always-route"));
        let known = |name: &str| keeps(name) && evaluation.is_identified("router") && evaluation.is_identified(name);
        let savings = evaluation.savings.as_ref()?;
        let is_always = |name: &str| name.starts_with("always-");
        let hardest_first = savings
            .iter()
            .filter(|(name, _)| !is_always(name))
            .chain(savings.iter().filter(|(name, _)| is_always(name)));
        let told: Vec<String> = hardest_first
            .filter(|(name, _)| known(name))
            .filter_map(|(name, saving)| {
                let (share, error) = (saving.share?, saving.share_standard_error?);
                // What labels leave open is said of the hardest rule alone.
                let open = saving.share_identified.filter(|_| !is_always(name)).map_or(String::new(), |[low, high]| {
                    format!(" (so few labels leave {:.1} % to {:.1} % open)", 100.0 * low, 100.0 * high)
                });
                Some(format!("{:.1} % ± {:.1} % against {}{open}", 100.0 * share, 196.0 * error, name_of(name)))
            })
            .collect();
        (!told.is_empty()).then(|| format!("Saves {} (95 % intervals).", told.join(", ")))
    }

    /// The task in a sentence.
    #[must_use]
    pub fn task_line(&self) -> String {
        let task = &self.evaluation.task;
        let routes = task.routes.iter().map(|r| format!("asking {} costs {}", label(&r.name, NAME), number(r.cost, 4)));
        let abstain =
            task.abstain.map_or("abstaining is not allowed".to_owned(), |p| format!("abstaining {}", number(p, 4)));
        let prices: Vec<String> = routes.chain([abstain]).collect();
        let limit = self.limit_line().map_or(String::new(), |limit| format!(" {limit}"));
        format!("Loss {} in {}; {}.{limit}", label(&task.loss, 80), self.evaluation.unit, prices.join(", "))
    }

    /// The task's limit on routing in a sentence, if there is one.
    #[must_use]
    pub fn limit_line(&self) -> Option<String> {
        let evaluation = &self.evaluation;
        let surcharge = number(evaluation.surcharge?.price, 4);
        Some(match (evaluation.task.budget, evaluation.task.target_loss) {
            (Some(share), _) => format!(
                "Budget: at most {} of traffic like the calibration rows is routed, as if routing cost {surcharge} more; that \
                 is not paid.",
                percent(share)
            ),
            (_, Some(loss)) => format!(
                "Target: the least routing that keeps the expected loss at {}, as if every route cost {surcharge}; its own price \
                 is paid.",
                number(loss, 4)
            ),
            _ => return None,
        })
    }
}

/// A share as per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
