//! How many experts pay: what each panel of a task costs if it is the only one.

use pointsman::{Oracle, Policy};
use serde::Serialize;

use crate::render::number::{counted, short};

/// A panel without the task's other panels.
#[derive(Debug, Serialize)]
pub(super) struct PanelAlone {
    route: String,
    experts: u32,
    /// The expected cost per query of deciding with this panel, and with every action that is not a panel.
    cost: f64,
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
        let others = panels.iter().filter(|(other, _)| *other != route);
        let task = others.fold(Ok(policy.task().clone()), |task, (other, _)| task?.without_route(other)).ok()?;
        let cost = policy.reprice(&task).ok()?.promised_cost()?;
        Some(PanelAlone { route: route.to_owned(), experts, cost })
    };
    panels.iter().map(alone).collect::<Option<_>>().unwrap_or_default()
}

/// The panels in a sentence; `None` if there is nothing to compare.
pub(super) fn in_words(panels: &[PanelAlone]) -> Option<String> {
    let cheapest = panels.iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
    let one = |panel: &PanelAlone| {
        format!("{} for {} ({})", short(panel.cost), panel.route, counted(panel.experts as usize, "expert", "experts"))
    };
    let all: Vec<String> = panels.iter().map(one).collect();
    Some(format!(
        "How many experts? With one of the panels only, the expected cost would be {}: if you can offer one, offer {}.",
        all.join(", "),
        cheapest.route
    ))
}
