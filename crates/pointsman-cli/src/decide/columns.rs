//! The columns of decisions.

use pointsman::{Decision, Decisions, Judgement, Policy};
use pointsman_table::{Column, ColumnKind, Frame};
use rayon::prelude::*;

use crate::plan;
use crate::show::known_costs;

/// Rows one core decides at a time.
const CHUNK: usize = 1 << 12;

/// The columns' names and kinds: a contract with scripts.
pub(super) fn names(policy: &Policy, ids: bool, certain: bool) -> Vec<(String, ColumnKind)> {
    use ColumnKind::{Count, Real, Text};
    let task = policy.task();
    let mut names = Vec::new();
    if ids {
        names.push(("id".to_owned(), Text));
    }
    names.extend([("cell", Count), ("support", Text), ("action", Text), ("label", Text)].map(own));
    names.extend([("irreducible", Real), ("reducible", Real), ("cost_predict", Real)].map(own));
    names.extend(task.routes().iter().map(|route| (format!("cost_route_{}", route.name()), Real)));
    names.extend(task.abstain_price().map(|_| ("cost_abstain".to_owned(), Real)));
    names.extend(task.loss().acts().map(|_| ("act".to_owned(), Text)));
    names.extend(certain.then(|| ("certain".to_owned(), Text)));
    names
}

fn own((name, kind): (&str, ColumnKind)) -> (String, ColumnKind) {
    (name.to_owned(), kind)
}

/// Decides a batch; with a judgement, says which decisions are certain.
pub(super) fn decide(
    policy: &Policy,
    judgement: Option<&Judgement>,
    frame: Frame,
) -> anyhow::Result<(Vec<Column>, Decisions)> {
    let mut decisions = policy.decide_batch(&frame.table).map_err(|error| plan::of_rows(error, &frame))?;
    if let Some(ids) = &frame.ids {
        // Queries of the same content at the margin of a limit need not all be decided alike.
        decisions.draw_by_ids(policy, ids);
    }
    let decisions = decisions;
    let rows = || (0..decisions.len()).into_par_iter().with_min_len(CHUNK);
    let text = |value: &(dyn Fn(Decision<'_>) -> String + Sync)| {
        Column::Text(rows().map(|row| value(policy.row(&decisions, row))).collect())
    };
    let real = |value: &(dyn Fn(Decision<'_>) -> Option<f64> + Sync)| {
        Column::Real(rows().map(|row| value(policy.row(&decisions, row)).unwrap_or(f64::NAN)).collect())
    };
    let (labels, acts) = answers(policy, &frame, &decisions);
    let mut columns = vec![
        Column::Count(rows().map(|row| u64::from(policy.row(&decisions, row).cell().0)).collect()),
        text(&|d| d.support().name().to_owned()),
        text(&|d| d.action().to_string()),
        Column::Text(labels),
    ];
    columns.push(real(&|d| d.irreducible()));
    columns.push(real(&|d| d.reducible()));
    let actions = policy.task().action_names().len();
    columns.extend((0..actions).map(|action| real(&|d| known_costs(&d).nth(action))));
    columns.extend(acts.map(Column::Text));
    columns.extend(judgement.map(|judgement| text(&|d| judgement.is_certain(&d).to_string())));
    if let Some(ids) = frame.ids {
        columns.insert(0, Column::Text(ids));
    }
    Ok((columns, decisions))
}

/// What predicting would answer: the class, and the act for losses with acts of their own.
fn answers(policy: &Policy, frame: &Frame, decisions: &Decisions) -> (Vec<String>, Option<Vec<String>>) {
    let (loss, classes, table) = (policy.task().loss(), policy.classes(), &frame.table);
    let answer = |own: &mut Vec<f64>, row: usize| {
        let served = match policy.row(decisions, row).served() {
            Some(centroid) => centroid,
            None => {
                own.resize(classes.len(), 0.0);
                table.dist_into(row, own);
                own.as_slice()
            }
        };
        (loss.label(served), loss.act(served))
    };
    let found: Vec<(usize, usize)> =
        (0..decisions.len()).into_par_iter().with_min_len(CHUNK).map_init(Vec::new, answer).collect();
    let labels = found.par_iter().with_min_len(CHUNK).map(|&(label, _)| classes[label].clone()).collect();
    let acts = loss.acts().map(|acts| found.iter().map(|&(_, act)| acts[act].clone()).collect());
    (labels, acts)
}
