//! Decisions as a table, as `decide` writes them.

use pointsman::certify::Judgement;
use pointsman::{Decision, Decisions, Policy};
use rayon::prelude::*;

use crate::write::{Column, ColumnKind};

/// Rows per unit of parallel work.
const MIN_CHUNK_ROWS: usize = 1 << 12;

/// Optional columns of a table of decisions.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct DecisionExtras<'a> {
    /// Which decisions are certain: the column `certain`.
    pub judgement: Option<&'a Judgement>,
    /// Whether caps were applied: the column `capped` names the action that a cap did not allow, and is empty elsewhere.
    pub capped: bool,
}

impl<'a> DecisionExtras<'a> {
    /// The column `certain` if there is a judgement, and the column `capped` if caps were applied.
    #[must_use]
    pub fn new(judgement: Option<&'a Judgement>, capped: bool) -> Self {
        Self { judgement, capped }
    }
}

/// The columns' names and kinds, which scripts rely on; `id` only with `ids`.
#[must_use]
pub fn decision_columns(policy: &Policy, ids: bool, extras: DecisionExtras<'_>) -> Vec<(String, ColumnKind)> {
    use ColumnKind::{Count, Real, Text};
    let task = policy.task();
    let mut names = Vec::new();
    if ids {
        names.push(("id".to_owned(), Text));
    }
    names.extend([("cell", Count), ("support", Text), ("action", Text), ("label", Text)].map(owned));
    names.extend([("irreducible", Real), ("reducible", Real), ("cost_predict", Real)].map(owned));
    names.extend(task.routes().iter().map(|route| (format!("cost_route_{}", route.name()), Real)));
    names.extend(task.abstain_price().map(|_| ("cost_abstain".to_owned(), Real)));
    names.extend([("reason", Text), ("next_best", Text)].map(owned));
    names.extend(task.loss().acts().map(|_| ("act".to_owned(), Text)));
    names.extend(extras.judgement.map(|_| ("certain".to_owned(), Text)));
    names.extend(extras.capped.then(|| ("capped".to_owned(), Text)));
    names
}

fn owned((name, kind): (&str, ColumnKind)) -> (String, ColumnKind) {
    (name.to_owned(), kind)
}

/// The values of [`decision_columns`]: of a batch, the [answers](Policy::answers) to it and its ids, if there are any.
#[must_use]
pub fn decision_values(
    policy: &Policy,
    decisions: &Decisions,
    answers: &[[u32; 2]],
    extras: DecisionExtras<'_>,
    ids: Option<Vec<String>>,
) -> Vec<Column> {
    let rows = || (0..decisions.len()).into_par_iter().with_min_len(MIN_CHUNK_ROWS);
    let text = |value: &(dyn Fn(Decision<'_>) -> String + Sync)| {
        Column::Text(rows().map(|row| value(policy.row(decisions, row))).collect())
    };
    let real = |value: &(dyn Fn(Decision<'_>) -> Option<f64> + Sync)| {
        Column::Real(rows().map(|row| value(policy.row(decisions, row)).unwrap_or(f64::NAN)).collect())
    };
    let named = |names: &[String], which: usize| {
        Column::Text(answers.iter().map(|answer| names[answer[which] as usize].clone()).collect())
    };
    let mut columns: Vec<Column> = ids.map(Column::Text).into_iter().collect();
    columns.extend([
        Column::Count(rows().map(|row| u64::from(policy.row(decisions, row).cell().0)).collect()),
        text(&|d| d.support().name().to_owned()),
        text(&|d| d.action().to_string()),
        named(policy.classes(), 0),
        real(&|d| d.irreducible()),
        real(&|d| d.reducible()),
    ]);
    let actions = policy.task().action_names().len();
    columns.extend((0..actions).map(|action| real(&|d| d.known_costs().nth(action))));
    columns.push(text(&|d| d.reason().name().to_owned()));
    columns.push(text(&|d| d.next_best().map(|action| action.to_string()).unwrap_or_default()));
    columns.extend(policy.task().loss().acts().map(|acts| named(acts, 1)));
    columns.extend(extras.judgement.map(|judgement| text(&|d| judgement.is_certain(&d).to_string())));
    let capped = |d: Decision<'_>| d.wanted().map(|action| action.to_string()).unwrap_or_default();
    columns.extend(extras.capped.then(|| text(&capped)));
    columns
}
