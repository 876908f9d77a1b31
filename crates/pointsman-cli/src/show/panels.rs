//! How many experts pay: what each panel of a task costs if it is the only one.

use pointsman::policy::Promise;
use pointsman::{Oracle, Policy};
use serde::Serialize;

use crate::render::number::counted;
use crate::words::{identified_interval, with_error};

/// A panel without the task's other panels.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PanelAlone {
    route: String,
    experts: u32,
    /// The expected cost per query of deciding with this panel, and with every action that is not a panel.
    cost: f64,
    standard_error: f64,
    /// The share of the queries that are routed to it then.
    share: f64,
    /// The bounds on the cost that the labels identify; `None` if they identify it.
    #[serde(skip_serializing_if = "Option::is_none")]
    identified: Option<[f64; 2]>,
}

impl PanelAlone {
    /// Whether the panel costs more than another beyond what labels leave open and the error of the difference. Both costs are estimated on
    /// the same rows, which makes that error smaller than if they were independent, as is assumed.
    fn certainly_costs_more_than(&self, other: &Self) -> bool {
        /// The 97.5 % quantile of the normal distribution.
        const QUANTILE: f64 = 1.96;
        let [low, _] = self.identified.unwrap_or([self.cost; 2]);
        let [_, high] = other.identified.unwrap_or([other.cost; 2]);
        low - high > QUANTILE * self.standard_error.hypot(other.standard_error)
    }
}

/// Each panel of the task without the others; empty if there are fewer than two, or if labels give only bounds.
pub(super) fn each_alone(policy: &Policy) -> Vec<PanelAlone> {
    let panels: Vec<(&str, u32)> = policy
        .task()
        .routes()
        .iter()
        .filter_map(|route| match route.oracle() {
            Oracle::Panel { experts, .. } => Some((route.name(), *experts)),
            _ => None,
        })
        .collect();
    if panels.len() < 2 {
        return Vec::new();
    }
    let alone = |&(route, experts): &(&str, u32)| {
        let mut others = panels.iter().filter(|(other, _)| *other != route);
        let task = others.try_fold(policy.task().clone(), |task, (other, _)| task.without_route(other)).ok()?;
        let Promise { cost, standard_error, identified, shares, .. } = policy.reprice(&task).ok()?.promise()?;
        let share = shares.get(&format!("route:{route}")).copied().unwrap_or(0.0);
        Some(PanelAlone { route: route.to_owned(), experts, cost, standard_error, share, identified })
    };
    panels.iter().map(alone).collect::<Option<_>>().unwrap_or_default()
}

/// That one panel alone seems to cost less than all panels together, if it does, which they cannot cost: each has its own error.
fn with_all(together: [f64; 2], cheapest: &PanelAlone) -> String {
    let [cost, error] = together;
    let (name, difference) = (&cheapest.route, cost - cheapest.cost);
    if difference > 0.0 && difference <= error.hypot(cheapest.standard_error) {
        format!(
            " That is less for {name} alone than with all of them ({}), but the difference is within the standard errors.",
            with_error(cost, error)
        )
    } else {
        String::new()
    }
}

/// The panels in a sentence, with the unit of their costs and the cost, with its standard error, of having all of them; `None` if there is
/// nothing to compare.
pub(super) fn in_words(panels: &[PanelAlone], unit: &str, together: Option<[f64; 2]>) -> Option<String> {
    let cheapest = panels.iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
    let one = |panel: &PanelAlone| {
        format!(
            "{} for {} ({}){}",
            with_error(panel.cost, panel.standard_error),
            panel.route,
            counted(panel.experts as usize, "expert", "experts"),
            identified_interval(panel.cost, panel.standard_error, panel.identified)
        )
    };
    let all: Vec<String> = panels.iter().map(one).collect();
    let question = match panels.iter().all(|panel| panel.experts == cheapest.experts) {
        true => "Which panel?",
        false => "How many experts?",
    };
    let near: Vec<&str> = panels
        .iter()
        .filter(|panel| !panel.certainly_costs_more_than(cheapest))
        .map(|panel| panel.route.as_str())
        .collect();
    let is_used = panels.iter().any(|panel| panel.share > 0.0);
    let verdict = match near.as_slice() {
        _ if !is_used => "no panel is worth its price, and none would be asked".to_owned(),
        [only] => format!("if you can offer one panel, offer {only}"),
        near => format!("these rows do not show which of {} costs least", near.join(", ")),
    };
    Some(format!(
        "{question} If only one of these panels could be asked, the expected cost per query would be, in {unit}, {}: {verdict}.{}",
        all.join("; "),
        together.map_or(String::new(), |together| with_all(together, cheapest))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(panels: &[(f64, f64, Option<[f64; 2]>)]) -> String {
        let alone = |(place, &(cost, standard_error, identified)): (usize, &(f64, f64, Option<[f64; 2]>))| PanelAlone {
            route: ["one", "three", "five"][place].to_owned(),
            experts: [1, 3, 5][place],
            cost,
            standard_error,
            share: if cost < 1.0 { 0.25 } else { 0.0 },
            identified,
        };
        in_words(&panels.iter().enumerate().map(alone).collect::<Vec<_>>(), "errors", None).unwrap()
    }

    #[test]
    fn one_panel_that_seems_cheaper_than_all_is_within_error() {
        let panel = |route: &str, cost: f64| PanelAlone {
            route: route.to_owned(),
            experts: 3,
            cost,
            standard_error: 0.0122,
            share: 0.2,
            identified: None,
        };
        let panels = [panel("three", 0.2278), panel("five", 0.2291)];
        let said = |cost: f64| in_words(&panels, "errors", Some([cost, 0.0126])).unwrap();
        let text = said(0.2303);
        assert!(text.contains("with all of them (0.2303 ± 0.0126), but the difference is within"), "{text}");
        assert!(!said(0.2203).contains("with all of them"), "{}", said(0.2203));
    }

    #[test]
    fn a_panel_is_recommended_only_if_its_advantage_is_beyond_error_and_bounds() {
        let exact = [(0.36, 0.001, None), (0.35, 0.001, None), (0.34, 0.001, None)];
        assert!(said(&exact).ends_with(": if you can offer one panel, offer five."), "{}", said(&exact));
        let close = [(0.38, 0.006, None), (0.3402, 0.006, None), (0.3401, 0.006, None)];
        assert!(
            said(&close).ends_with(": these rows do not show which of three, five costs least."),
            "{}",
            said(&close)
        );
        let open = [(0.36, 0.001, Some([0.33, 0.36])), (0.35, 0.001, None)];
        assert!(said(&open).ends_with(": these rows do not show which of one, three costs least."), "{}", said(&open));
        let unused = [(1.5, 0.001, None), (1.5, 0.001, None)];
        assert!(
            said(&unused).ends_with(": no panel is worth its price, and none would be asked."),
            "{}",
            said(&unused)
        );
        let unknown = [(0.36, f64::NAN, None), (0.35, 0.001, None)];
        assert!(said(&unknown).contains("do not show which of one, three"), "{}", said(&unknown));
    }
}
