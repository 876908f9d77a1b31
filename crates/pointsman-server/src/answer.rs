//! Decisions as they are answered and logged.

use pointsman::policy::AvailableRoutes;
use pointsman::{Decision, Policy};
use serde::ser::{Serialize, SerializeMap, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::deployment::{Names, Version};
use crate::store::{Degradation, Mode, Outcome, Record, UNDETERMINED};

/// The answer to a query.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct Answer<'a> {
    /// The id of the decision; null if it was a dry run, which is not logged.
    pub(crate) decision_id: Option<Uuid>,
    /// The caller's own id, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a str>,
    /// The policy version that decided.
    pub(crate) version: u32,
    /// What to do: `predict`, `route:<name>`, `abstain`, or `undetermined` if the labels do not decide.
    pub(crate) action: &'a str,
    /// The class that predicting answers.
    pub(crate) label: &'a str,
    /// The act of least expected loss, if the loss has acts of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act: Option<&'a str>,
    /// The query's cell.
    pub(crate) cell: u32,
    /// Whether the cell has `enough` calibration rows, is `sparse`, or `empty`.
    pub(crate) support: &'a str,
    /// The part of the expected loss that nobody can avoid; null if labels only bound it.
    pub(crate) irreducible: Option<f64>,
    /// The part of the expected loss that an oracle would save; null if labels only bound it.
    pub(crate) reducible: Option<f64>,
    /// The expected cost of each action; null where labels only bound it.
    #[schema(value_type = std::collections::BTreeMap<String, Option<f64>>)]
    pub(crate) costs: Costs<'a>,
    /// The expected cost of the next-best action minus that of the action: by how much it is cheaper. Null if there is no other. Negative if
    /// the oracle of the best action is unavailable: what taking this action instead of the one `wanted` costs, with a minus sign. In shadow
    /// mode it is that of `would`.
    pub(crate) margin: Option<f64>,
    /// Why: `easy`, `hard`, `ambiguous`, `sparse` or `degraded`.
    pub(crate) reason: &'a str,
    /// Why the best action could not be taken, if so: `unavailable` or `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) degraded: Option<&'a str>,
    /// The action that could not be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<&'a str>,
    /// In shadow mode, what would have been done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would: Option<&'a str>,
    /// Whether the decision is audited by people. This version has no audits: always false.
    pub(crate) audited: bool,
    /// False if the decision could not be logged and is answered all the same (`on_log_failure`): its id will find nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) logged: Option<bool>,
    /// More about the decision, if the request asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<Explanation<'a>>,
}

/// The cost of each action by its name.
#[derive(Debug)]
pub(crate) struct Costs<'a> {
    names: &'a [String],
    costs: &'a [f64],
}

impl Costs<'_> {
    /// The cost of an action, if it is known.
    pub(crate) fn get(&self, action: &str) -> Option<f64> {
        let place = self.names.iter().position(|name| name == action)?;
        self.costs.get(place).copied()
    }
}

impl Serialize for Costs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.costs.len()))?;
        for (name, cost) in self.names.iter().zip(self.costs) {
            map.serialize_entry(name, cost)?;
        }
        map.end()
    }
}

/// More about a decision.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct Explanation<'a> {
    /// The cell in words.
    pub(crate) cell_name: String,
    /// The number of calibration rows that the costs were estimated from.
    pub(crate) rows: usize,
    /// Where these rows come from: the `cell`, rows of the same `confidence`, or `all` rows.
    pub(crate) level: &'a str,
    /// The action that comes next: the best of those that can be taken, without the one that was. In shadow mode it comes after `would`.
    pub(crate) next_best: Option<String>,
    /// The number of trees that the costs were averaged over, if the router has a forest.
    pub(crate) trees: Option<usize>,
    /// The unit of losses and costs.
    pub(crate) unit: &'a str,
}

impl<'a> Answer<'a> {
    /// The answer of a logged decision, with the names of the version that decided it.
    pub(crate) fn new(record: &'a Record, names: &'a Names, is_logged: bool) -> Self {
        let outcome = &record.outcome;
        let label = names.classes.get(outcome.label as usize).map_or("", String::as_str);
        let acts = names.acts.as_ref();
        let act = outcome.act.zip(acts).and_then(|(act, acts)| acts.get(act as usize)).map(String::as_str);
        Self {
            decision_id: is_logged.then_some(record.id),
            id: record.client_id.as_deref(),
            version: record.version,
            action: names.action(outcome.action),
            label,
            act,
            cell: outcome.cell,
            support: outcome.support.name(),
            irreducible: outcome.irreducible,
            reducible: outcome.reducible,
            costs: Costs { names: &names.actions, costs: &outcome.costs },
            margin: Some(outcome.margin).filter(|margin| margin.is_finite()),
            reason: outcome.reason.name(),
            degraded: outcome.degraded.map(|(_, why)| why.name()),
            wanted: outcome.degraded.map(|(wanted, _)| names.action(wanted)),
            would: outcome.would.map(|code| names.action(code)),
            audited: false,
            logged: None,
            explanation: None,
        }
    }

    /// The same answer with an explanation, while these routes can be taken.
    pub(crate) fn explained(mut self, record: &Record, version: &'a Version, available: &AvailableRoutes) -> Self {
        self.explanation = explanation(record, &version.policy, available);
        self
    }
}

fn explanation<'a>(record: &Record, policy: &'a Policy, available: &AvailableRoutes) -> Option<Explanation<'a>> {
    let decision = policy.decide_with(&record.prediction, &record.features).ok()?.among(available);
    let taken = record.outcome.would.unwrap_or(record.outcome.action);
    // What was taken may differ from what would be taken now: by a random draw at the margin of a limit, or because other routes could be
    // taken then. The best action of now comes next in that case.
    let next_best = match decision.code() {
        _ if taken == UNDETERMINED => None,
        Some(code) if code == usize::from(taken) => decision.next_best_among(available),
        Some(_) => Some(decision.action()),
        None => None,
    };
    Some(Explanation {
        cell_name: policy.cells().name(decision.cell(), policy.classes()),
        rows: decision.rows(),
        level: decision.level().name(),
        next_best: next_best.map(|action| action.to_string()),
        trees: decision.trees(),
        unit: policy.task().loss().unit(),
    })
}

/// What is logged of a decision.
pub(crate) fn outcome(decision: &Decision<'_>, policy: &Policy, prediction: &[f64], mode: Mode) -> Outcome {
    let mut buffer = vec![0.0; prediction.len()];
    let [label, act] = decision.answer(prediction, &mut buffer);
    let code = decision.code().map_or(UNDETERMINED, |code| code as u8);
    let is_degraded = decision.reason() == pointsman::policy::Reason::Degraded;
    let cause = if decision.wanted().is_some() { Degradation::Unavailable } else { Degradation::Limit };
    let wanted = decision.next_best_code().filter(|_| is_degraded).map(|wanted| (wanted as u8, cause));
    Outcome {
        action: if mode == Mode::Shadow { 0 } else { code },
        would: (mode == Mode::Shadow).then_some(code),
        degraded: wanted,
        label,
        act: policy.task().loss().acts().map(|_| act),
        cell: decision.cell().0,
        support: decision.support(),
        irreducible: decision.irreducible(),
        reducible: decision.reducible(),
        costs: decision.known_costs().collect(),
        margin: decision.margin(),
        reason: decision.reason(),
    }
}
