//! Why a query, or a cell, is decided as it is: its rows, all costs with intervals, the runner-up and what would change it.

mod human;
mod json;
mod wanted;

use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use pointsman::policy::{Flip, Level};
use pointsman::{Action, CellId, Decision, Policy, Router};
use pointsman_table::{Batches, Frame};

use crate::args::{DecideArgs, ShowArgs};
use crate::certified::Certified;
use crate::json::known;
use crate::{errors, render};
use json::{Example, Explanation, PriceChange, Priced, Query};
use wanted::Wanted;

/// The confidence of the intervals without `--confidence`.
const DEFAULT_CONFIDENCE: f64 = 0.95;

/// The number of calibration rows shown.
const EXAMPLE_ROWS: usize = 5;

/// Explains a cell, given by its number or its name.
pub(crate) fn cell(router: &Router, policy: &Policy, args: &ShowArgs, wanted: &str) -> anyhow::Result<()> {
    let count = router.cells().count() as u32;
    let name = |cell: CellId| router.cells().name(cell, router.classes());
    let by_name = || (0..count).map(CellId).find(|&cell| name(cell) == wanted);
    let Some(cell) = wanted.parse().ok().filter(|&cell| cell < count).map(CellId).or_else(by_name) else {
        bail!("--explain {wanted}: there is no such cell; cells are numbered from 0 to {}", count - 1);
    };
    let Some(decision) = policy.cell(cell) else {
        bail!(
            "cell {cell} ({}) has no calibration rows to explain: queries there are decided by rows of the same confidence; \
             explain one with pointsman decide --explain ROW",
            name(cell)
        );
    };
    let certified = certify(router, policy, args.confidence, &args.router)?;
    let examples = cell_examples(router, cell, None);
    let explained = explain(router, policy, &decision, certified.as_ref(), None, examples);
    print_all(&[explained], router, policy, args.json)
}

/// Explains queries of a table, given by ids or rows.
pub(crate) fn queries(router: &Router, policy: &Policy, args: &DecideArgs, mut batches: Batches) -> anyhow::Result<()> {
    let certified = certify(router, policy, args.confidence, &args.router)?;
    let mut wanted = Wanted::new(&args.explain);
    while let Some(frame) = batches.next().transpose()? {
        let places = wanted.find(&frame);
        if places.is_empty() {
            continue;
        }
        let mut decisions = policy.decide_batch(&frame.table).map_err(|error| errors::in_rows(error, &frame))?;
        if let Some(ids) = &frame.ids {
            decisions.draw_by_ids(policy, ids);
        }
        let answers = policy.answers(&decisions, &frame.table.predictions());
        for (text, by_id, place) in places {
            let decision = policy.row(&decisions, place);
            let query = query(router, policy, &frame, place, by_id, answers[place])?;
            let examples = match decision.trees() {
                Some(_) => {
                    let heaviest = router.heaviest_rows(&frame.table, place, EXAMPLE_ROWS)?;
                    heaviest.into_iter().map(|(row, weight)| example(router, row, Some(weight))).collect()
                }
                None => cell_examples(router, decision.cell(), Some(&query)),
            };
            let explained = explain(router, policy, &decision, certified.as_ref(), Some(query), examples);
            wanted.found.insert((text, by_id), explained);
        }
        if wanted.is_complete() {
            break;
        }
    }
    print_all(&wanted.resolve(args)?, router, policy, args.json)
}

/// A row of a table, and the class and act that predicting would answer.
fn query(
    router: &Router,
    policy: &Policy,
    frame: &Frame,
    place: usize,
    by_id: bool,
    [label, act]: [u32; 2],
) -> anyhow::Result<Query> {
    let (table, names) = (&frame.table, router.cells().features());
    let mut prediction = vec![0.0; router.classes().len()];
    table.dist_into(place, &mut prediction);
    let columns = table.feature_columns(names)?;
    let feature = |(name, column): (&String, usize)| (name.clone(), known(table.features(place)[column]));
    Ok(Query {
        asked_by: if by_id { "id" } else { "row" },
        row: frame.rows[place],
        id: frame.ids.as_ref().map(|ids| ids[place].clone()),
        prediction,
        label: router.classes()[label as usize].clone(),
        act: policy.task().loss().acts().map(|acts| acts[act as usize].clone()),
        features: (!names.is_empty()).then(|| names.iter().zip(columns).map(feature).collect()),
    })
}

/// The certificate; `None` for a forest, which has none, unless a confidence was given: then it is an error.
fn certify(
    router: &Router,
    policy: &Policy,
    confidence: Option<f64>,
    path: &Path,
) -> anyhow::Result<Option<Certified>> {
    let wanted = confidence.is_some() || router.is_certifiable();
    wanted.then(|| Certified::new(router, policy, confidence.unwrap_or(DEFAULT_CONFIDENCE), path)).transpose()
}

fn explain(
    router: &Router,
    policy: &Policy,
    decision: &Decision<'_>,
    certified: Option<&Certified>,
    query: Option<Query>,
    examples: Vec<Example>,
) -> Explanation {
    let cell = decision.cell();
    let mixture = router.mixture(cell);
    let own = decision.level() == Level::Cell;
    let certified_cell = certified.filter(|_| own);
    let intervals = certified_cell.and_then(|certified| certified.certificate.costs(cell, policy.task()));
    let names = policy.task().action_names();
    let priced = |(i, (action, cost)): (usize, (String, f64))| Priced {
        action,
        cost: known(cost),
        bounds: known(cost).is_none().then(|| [decision.costs()[i], decision.costs_high()[i]]),
        interval: intervals.as_ref().map(|intervals| intervals[i]),
    };
    let judged = certified_cell.map(|certified| &certified.judgement.cells[cell.index()]);
    let change = |Flip { price_of, now, at, to, .. }| PriceChange { price_of, now, at, to };
    let decided = decision.action() != Action::Undetermined;
    let shares = if query.is_none() { policy.shares_within_cells() } else { None };
    Explanation {
        shares: shares.and_then(|mut shares| shares.get_mut(cell.index()).and_then(Option::take)),
        trees: decision.trees(),
        examples,
        query,
        classes: router.classes().to_vec(),
        cell: cell.0,
        name: router.cells().name(cell, router.classes()),
        rows: mixture.len(),
        support: decision.support().name(),
        level: decision.level().name(),
        centroid: mixture.centroid(),
        irreducible: decision.irreducible(),
        reducible: decision.reducible(),
        total: decision.total(),
        unit: policy.task().loss().unit(),
        action: decision.action().to_string(),
        actions: names.into_iter().zip(decision.known_costs()).enumerate().map(priced).collect(),
        reason: decision.reason().name(),
        runner_up: decision.runner_up().map(|(name, _)| name),
        margin: known(decision.margin()).filter(|_| decided),
        random_share: decision.marginal_share(),
        least_budget: decision.least_budget(),
        flips: decision.flips().into_iter().map(change).collect(),
        confidence: certified.map(|certified| certified.certificate.confidence()),
        certain: certified.map(|certified| certified.judgement.is_certain(decision)),
        regret: judged.map(|judged| judged.regret),
        rival: judged.and_then(|judged| judged.rival.clone()),
    }
}

/// Some of a cell's rows: those of the nearest confidence to a query, or a few from the least to the most confident.
fn cell_examples(router: &Router, cell: CellId, query: Option<&Query>) -> Vec<Example> {
    let (mixture, table) = (router.mixture(cell), router.rows());
    let rows: Vec<usize> = mixture.rows().collect();
    let shown: Vec<usize> = match query {
        None if rows.len() > EXAMPLE_ROWS => {
            (0..EXAMPLE_ROWS).map(|i| rows[i * (rows.len() - 1) / (EXAMPLE_ROWS - 1)]).collect()
        }
        None => rows,
        Some(query) => {
            let confidence = query.prediction.iter().copied().fold(0.0, f64::max);
            let mut rows = rows;
            let far = |row: usize| (table.peak(row).confidence - confidence).abs();
            rows.sort_by(|&a, &b| far(a).total_cmp(&far(b)));
            rows.truncate(EXAMPLE_ROWS);
            rows
        }
    };
    shown.into_iter().map(|row| example(router, row, None)).collect()
}

fn example(router: &Router, row: usize, weight: Option<f64>) -> Example {
    let table = router.rows();
    let votes = table.votes(row).map(|votes| votes.counts().to_vec()).unwrap_or_default();
    Example { weight, prediction: table.prediction(row).to_vec(), votes }
}

/// Prints explanations; as JSON one is an object, several are a list.
fn print_all(explained: &[Explanation], router: &Router, policy: &Policy, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return match explained {
            [one] => crate::json::print(one),
            several => crate::json::print(&several),
        };
    }
    let mut out = io::BufWriter::new(render::stdout());
    for (place, it) in explained.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        human::print(&mut out, it, router, policy)?;
    }
    out.flush()?;
    Ok(())
}
