//! Why a query, or a cell, is decided as it is: its rows, all costs with intervals, the runner-up and what would change it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{anyhow, bail};
use pointsman::certify::Interval;
use pointsman::policy::{Flip, Surcharge};
use pointsman::task::Named;
use pointsman::{Action, CellId, Decision, Limit, Policy, Router};
use pointsman_table::{Batches, Frame};
use serde::Serialize;

use crate::args::{DecideArgs, ShowArgs};
use crate::certified::{Certified, certain, range};
use crate::render::number::{counted, decimals, fixed, level, maybe, percent, plain, short};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::wrap::hanging;
use crate::render::{self, paragraph, printable};
use crate::{json, plan};

/// The confidence of the intervals unless another is asked for.
const CONFIDENCE: f64 = 0.95;

/// Calibration rows shown.
const EXAMPLES: usize = 5;

/// An explanation as scripts read it.
#[derive(Debug, Clone, Serialize)]
struct Explanation {
    #[serde(flatten)]
    query: Option<Query>,
    cell: u32,
    name: String,
    /// Calibration rows of the cell.
    rows: usize,
    support: &'static str,
    /// Whose rows the costs rest on: `cell`, or if that has none `confidence` or `all`.
    level: &'static str,
    centroid: Option<Vec<f64>>,
    irreducible: Option<f64>,
    reducible: Option<f64>,
    total: f64,
    unit: &'static str,
    action: String,
    actions: Vec<Priced>,
    /// Why that is, in one word.
    reason: &'static str,
    runner_up: Option<String>,
    margin: Option<f64>,
    /// The share of such queries that is routed, where a budget or target leaves it to a lot.
    #[serde(skip_serializing_if = "Option::is_none")]
    lots: Option<f64>,
    flips: Vec<Change>,
    confidence: Option<f64>,
    certain: Option<bool>,
    /// What the action may cost more than the best; unknown if the costs are not the cell's own.
    regret: Option<f64>,
    rival: Option<String>,
    /// Over how many trees of a forest the costs were averaged, if they are the query's own and not the cell's.
    #[serde(skip_serializing_if = "Option::is_none")]
    trees: Option<usize>,
    /// Some of the rows behind the costs: those of the nearest confidence if a query was asked about, those that weigh most if its
    /// costs are its own, else some of the cell's.
    examples: Vec<Example>,
}

#[derive(Debug, Clone, Serialize)]
struct Query {
    /// Whether it was asked for by its `id` or its `row`.
    asked_by: &'static str,
    row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    prediction: Vec<f64>,
    /// What predicting answers, and the act it takes under losses with acts of their own.
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<String>,
    /// The features that the decision rests on; unknown ones are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<Named<Option<f64>>>,
}

#[derive(Debug, Clone, Serialize)]
struct Priced {
    action: String,
    cost: Option<f64>,
    /// What the cost lies between, where one label per item only bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<[f64; 2]>,
    interval: Option<Interval>,
}

#[derive(Debug, Clone, Serialize)]
struct Change {
    price_of: String,
    now: f64,
    at: f64,
    to: String,
}

#[derive(Debug, Clone, Serialize)]
struct Example {
    /// The row's share of all that the costs rest on, where they are a query's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    prediction: Vec<f64>,
    votes: Vec<u32>,
}

/// Explains a cell, given by its number or its name.
pub(crate) fn cell(router: &Router, policy: &Policy, args: &ShowArgs, wanted: &str) -> anyhow::Result<()> {
    let count = router.cells().count() as u32;
    let name = |cell: CellId| router.cells().name(cell, router.classes());
    let by_name = || (0..count).map(CellId).find(|&cell| name(cell) == wanted);
    let Some(cell) = wanted.parse().ok().filter(|&cell| cell < count).map(CellId).or_else(by_name) else {
        bail!("--explain {wanted}: no such cell; they are numbered from 0 to {}", count - 1);
    };
    let Some(decision) = policy.cell(cell) else {
        bail!(
            "cell {cell} ({}) has no calibration rows to explain: queries there are decided by rows of the same confidence; \
             explain one with pointsman decide --explain ROW",
            name(cell)
        );
    };
    let certified = certified(router, policy, args.confidence, &args.router)?;
    let examples = examples(router, cell, None);
    let explained = explain(router, policy, &decision, certified.as_ref(), None, examples);
    give(&[explained], router, policy, args.json)
}

/// Explains queries of a table, given by ids or rows.
pub(crate) fn queries(router: &Router, policy: &Policy, args: &DecideArgs, mut batches: Batches) -> anyhow::Result<()> {
    let certified = certified(router, policy, args.confidence, &args.router)?;
    let mut wanted = Wanted::new(&args.explain);
    while let Some(frame) = batches.next().transpose()? {
        let places = wanted.find(&frame);
        if places.is_empty() {
            continue;
        }
        let mut decisions = policy.decide_batch(&frame.table).map_err(|error| plan::of_rows(error, &frame))?;
        if let Some(ids) = &frame.ids {
            decisions.draw_by_ids(policy, ids);
        }
        let answers = policy.answers(&decisions, &frame.table.predictions());
        for (text, by_id, place) in places {
            let decision = policy.row(&decisions, place);
            let mut prediction = vec![0.0; router.classes().len()];
            frame.table.dist_into(place, &mut prediction);
            let id = frame.ids.as_ref().map(|ids| ids[place].clone());
            let asked_by = if by_id { "id" } else { "row" };
            let [label, act] = answers[place];
            let label = router.classes()[label as usize].clone();
            let act = policy.task().loss().acts().map(|acts| acts[act as usize].clone());
            let columns = frame.table.feature_columns(router.cells().features())?;
            let features = router.cells().features().iter().zip(columns);
            let feature =
                |(name, column): (&String, usize)| (name.clone(), json::known(frame.table.features(place)[column]));
            let features = Some(features.map(feature).collect()).filter(|_| !router.cells().features().is_empty());
            let query = Query { asked_by, row: frame.rows[place], id, prediction, label, act, features };
            let examples = if decision.trees().is_some() {
                let heaviest = router.heaviest_rows(&frame.table, place, EXAMPLES)?;
                heaviest.into_iter().map(|(row, weight)| example(router, row, Some(weight))).collect()
            } else {
                examples(router, decision.cell(), Some(&query))
            };
            let explained = explain(router, policy, &decision, certified.as_ref(), Some(query), examples);
            wanted.found.insert((text, by_id), explained);
        }
        if wanted.is_complete() {
            break;
        }
    }
    give(&wanted.resolve(args)?, router, policy, args.json)
}

/// What was asked for, and what of it was found.
#[derive(Debug)]
struct Wanted {
    /// Ids and rows as typed, each with its parts between commas.
    asked: Vec<(String, Vec<String>)>,
    /// Explanations by text, and by whether it is an id or a row.
    found: HashMap<(String, bool), Explanation>,
    has_ids: bool,
    /// Whether some id is a number, so that numbers are ids and not rows.
    has_numbers: bool,
}

impl Wanted {
    fn new(asked: &[String]) -> Self {
        let parts = |text: &String| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
            (text.clone(), parts.collect())
        };
        Self { asked: asked.iter().map(parts).collect(), found: HashMap::new(), has_ids: false, has_numbers: false }
    }

    /// Rows of a batch that are asked for and were not found before: the text, whether it is an id, and the place.
    fn find(&mut self, frame: &Frame) -> Vec<(String, bool, usize)> {
        let texts = self.asked.iter().flat_map(|(whole, parts)| parts.iter().chain([whole]));
        let open = |text: &&String, by_id: bool| !self.found.contains_key(&((*text).clone(), by_id));
        let mut places = Vec::new();
        if let Some(ids) = &frame.ids {
            self.has_ids = true;
            self.has_numbers |= ids.iter().any(|id| id.parse::<u64>().is_ok());
            let texts: HashSet<&String> = texts.clone().filter(|text| open(text, true)).collect();
            let mut seen = HashSet::new();
            for (place, id) in ids.iter().enumerate().filter(|(_, id)| texts.contains(id)) {
                if seen.insert(id) {
                    places.push((id.clone(), true, place));
                }
            }
        }
        let rows: BTreeSet<(u64, &String)> =
            texts.filter(|text| open(text, false)).filter_map(|text| Some((text.parse().ok()?, text))).collect();
        for (row, text) in rows {
            if let Ok(place) = frame.rows.binary_search(&row) {
                places.push((text.clone(), false, place));
            }
        }
        places
    }

    /// Whether nothing that follows can change what is shown.
    fn is_complete(&self) -> bool {
        // A later id may be the one that was meant by a text with commas.
        let found = |text: &String| self.found.contains_key(&(text.clone(), self.has_ids));
        self.asked.iter().all(|(whole, parts)| found(whole) || !self.has_ids && parts.iter().all(found))
    }

    /// What is explained, in the order it was asked for.
    fn resolve(mut self, args: &DecideArgs) -> anyhow::Result<Vec<Explanation>> {
        let mut explained = Vec::new();
        for (whole, parts) in std::mem::take(&mut self.asked) {
            if let Some(found) = self.found.get(&(whole.clone(), true)) {
                explained.push(found.clone());
                continue;
            }
            if parts.is_empty() {
                bail!("--explain needs an id, or the number of a row");
            }
            for part in parts {
                let by_id = self.found.get(&(part.clone(), true));
                let by_row = || self.found.get(&(part.clone(), false)).filter(|_| !self.has_numbers);
                match by_id.or_else(by_row) {
                    Some(found) => explained.push(found.clone()),
                    None => return Err(self.missing(&part, args)),
                }
            }
        }
        Ok(explained)
    }

    fn missing(&self, part: &str, args: &DecideArgs) -> anyhow::Error {
        let kept = if args.reading.filters.is_empty() { "" } else { " among those that --where keeps" };
        let file = args.table.display();
        if self.has_numbers {
            anyhow!("{file}: no row has the id {part:?}{kept}; its ids are numbers, so that no row is meant by one")
        } else {
            anyhow!("{file}: no row has the id {part:?}, nor is there a row of that number (from 1){kept}")
        }
    }
}

/// The certificate; a forest has none, which is no reason to refuse an explanation unless it was asked for.
fn certified(router: &Router, policy: &Policy, asked: Option<f64>, path: &Path) -> anyhow::Result<Option<Certified>> {
    let wanted = asked.is_some() || router.is_certifiable();
    wanted.then(|| Certified::new(router, policy, asked.unwrap_or(CONFIDENCE), path)).transpose()
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
    let own = decision.level() == pointsman::policy::Level::Cell;
    let certified_cell = certified.filter(|_| own);
    let intervals = certified_cell.and_then(|certified| certified.certificate.costs(cell, policy.task()));
    let names = policy.task().action_names();
    let priced = |(i, (action, cost)): (usize, (String, f64))| Priced {
        action,
        cost: json::known(cost),
        bounds: json::known(cost).is_none().then(|| [decision.costs()[i], decision.costs_high()[i]]),
        interval: intervals.as_ref().map(|intervals| intervals[i]),
    };
    let judged = certified_cell.map(|certified| &certified.judgement.cells[cell.index()]);
    let change = |Flip { price_of, now, at, to }| Change { price_of, now, at, to };
    let decided = decision.action() != Action::Undetermined;
    Explanation {
        trees: decision.trees(),
        examples,
        query,
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
        margin: json::known(decision.margin()).filter(|_| decided),
        lots: decision.marginal_share(),
        flips: decision.flips().into_iter().map(change).collect(),
        confidence: certified.map(|certified| certified.certificate.confidence()),
        certain: certified.map(|certified| certified.judgement.is_certain(decision)),
        regret: judged.map(|judged| judged.regret),
        rival: judged.and_then(|judged| judged.rival.clone()),
    }
}

/// Some of a cell's rows: those of the nearest confidence, or a few from the least confident to the most.
fn examples(router: &Router, cell: CellId, query: Option<&Query>) -> Vec<Example> {
    let (mixture, table) = (router.mixture(cell), router.rows());
    let rows: Vec<usize> = mixture.rows().collect();
    let shown: Vec<usize> = match query {
        None if rows.len() > EXAMPLES => (0..EXAMPLES).map(|i| rows[i * (rows.len() - 1) / (EXAMPLES - 1)]).collect(),
        None => rows,
        Some(query) => {
            let confidence = query.prediction.iter().copied().fold(0.0, f64::max);
            let mut rows = rows;
            let far = |row: usize| (table.peak(row).confidence - confidence).abs();
            rows.sort_by(|&a, &b| far(a).total_cmp(&far(b)));
            rows.truncate(EXAMPLES);
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

/// One explanation is one object of JSON, several are a list.
fn give(explained: &[Explanation], router: &Router, policy: &Policy, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return match explained {
            [one] => json::print(one),
            several => json::print(&several),
        };
    }
    let mut out = io::BufWriter::new(render::stdout());
    for (place, it) in explained.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        print(&mut out, it, router, policy)?;
    }
    out.flush()?;
    Ok(())
}

fn print(out: &mut impl Write, it: &Explanation, router: &Router, policy: &Policy) -> io::Result<()> {
    let classes = router.classes();
    if let Some(query) = &it.query {
        let row = format!("row {}", query.row);
        let id = query.id.as_ref().map(|id| format!("id {}", printable(id)));
        let name = match (id, query.asked_by) {
            (None, _) => row,
            (Some(id), "id") => format!("{id} ({row})"),
            (Some(id), _) => format!("{row} ({id})"),
        };
        let prediction = largest(classes, &query.prediction);
        paragraph(&mut *out, 0, &format!("{BOLD}{name}{BOLD:#}: {prediction}"))?;
        let act = query.act.as_ref().map_or(String::new(), |act| format!(", act {}", printable(act)));
        paragraph(&mut *out, 0, &format!("predict would answer {}{act}", printable(&query.label)))?;
        if let Some(features) = &query.features {
            let value = |(name, value): (&str, &Option<f64>)| {
                format!("x_{} {}", printable(name), value.map_or("missing".to_owned(), plain))
            };
            let features: Vec<String> = features.iter().map(value).collect();
            paragraph(&mut *out, 0, &format!("features: {}", features.join(", ")))?;
        }
    }
    let rows = counted(it.rows, "calibration row", "calibration rows");
    let name = printable(&it.name);
    paragraph(&mut *out, 0, &format!("{BOLD}cell {}{BOLD:#}: {name}; {rows}, support {}", it.cell, it.support))?;
    if it.level != "cell" {
        let whose = if it.level == "confidence" { "rows of the same confidence" } else { "all rows" };
        let text = format!("the cell is empty: costs are those of {whose}, and nothing about them is certain");
        paragraph(&mut *out, 0, &text)?;
    }
    match (it.trees, &it.centroid) {
        (Some(trees), _) => {
            let trees = counted(trees, "tree", "trees");
            let text = format!(
                "costs are the query's own, averaged over the leaves of {trees}; the calibration rows with the largest weights:"
            );
            paragraph(&mut *out, 0, &text)?;
        }
        (None, Some(centroid)) => {
            paragraph(&mut *out, 0, &format!("mean labels: {}", largest(classes, centroid)))?;
        }
        (None, None) => {}
    }
    if it.trees.is_none() && !it.examples.is_empty() {
        let near = if it.query.is_some() { " of the nearest confidence" } else { "" };
        paragraph(&mut *out, 0, &format!("some of its calibration rows{near}, prediction → labels:"))?;
    }
    for example in &it.examples {
        let votes: Vec<String> = example.votes.iter().zip(classes).filter(|(n, _)| **n > 0).map(labels).collect();
        let weight = example.weight.map(|weight| format!("  ({})", percent(weight))).unwrap_or_default();
        let text = format!("{DIM}{} → {}{weight}{DIM:#}", largest(classes, &example.prediction), votes.join(", "));
        hanging(&mut *out, 2, 4, &text)?;
    }
    writeln!(out)?;
    print_costs(out, it)?;
    writeln!(out)?;
    for sentence in sentences(it, policy) {
        paragraph(&mut *out, 2, &sentence)?;
    }
    Ok(())
}

fn labels((n, class): (&u32, &String)) -> String {
    format!("{} {n}", printable(class))
}

/// The largest shares of a distribution.
fn largest(classes: &[String], shares: &[f64]) -> String {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
    let shown =
        order.iter().take(3).map(|&class| format!("{} {}", printable(&classes[class]), fixed(shares[class], 3)));
    let rest = if classes.len() > 3 { ", …" } else { "" };
    format!("{}{rest}", shown.collect::<Vec<_>>().join(", "))
}

/// Every action's cost, cheapest first.
fn print_costs(out: &mut impl Write, it: &Explanation) -> io::Result<()> {
    let most = |priced: &Priced| priced.cost.or(priced.bounds.map(|[_, high]| high)).unwrap_or(f64::INFINITY);
    let digits = decimals(it.actions.iter().map(most));
    let mut order: Vec<&Priced> = it.actions.iter().collect();
    order.sort_by(|a, b| most(a).total_cmp(&most(b)));
    let within = it.confidence.map_or("interval".to_owned(), |c| format!("with {} confidence", level(c)));
    let has_intervals = it.actions.iter().any(|priced| priced.interval.is_some());
    let mut grid = Grid::new().text("action").number("cost").numbers(has_intervals.then_some(within)).text("");
    for priced in order {
        let taken = if priced.action == it.action {
            "taken"
        } else if Some(&priced.action) == it.runner_up.as_ref() {
            "runner-up"
        } else {
            ""
        };
        let mut row = vec![(priced.action.clone(), style::action_named(&priced.action)), (cost(priced, digits), PLAIN)];
        if has_intervals {
            row.push((priced.interval.map_or("–".to_owned(), |interval| range(interval, digits)), PLAIN));
        }
        row.push((taken.to_owned(), BOLD));
        grid.row(row);
    }
    grid.write(out)
}

/// A cost, or what it lies between.
fn cost(priced: &Priced, digits: usize) -> String {
    match (priced.cost, priced.bounds) {
        (None, Some([low, high])) => format!("{}…{}", fixed(low, digits), fixed(high, digits)),
        (cost, _) => maybe(cost, digits),
    }
}

fn reason_in_words(reason: &str) -> &'static str {
    match reason {
        "easy" => "the model is good enough",
        "hard" => "an oracle would help",
        "ambiguous" => "nobody can know: the labels themselves disagree",
        "degraded" => "a cap forced the next-best action",
        _ => "there is too little support to say more",
    }
}

/// What decides, how surely, and what would change it.
fn sentences(it: &Explanation, policy: &Policy) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(irreducible), Some(reducible)) = (it.irreducible, it.reducible) {
        said.push(format!(
            "Predicting loses {} {}: {} is irreducible, and {} would be saved by an oracle that knows the distribution of the labels.",
            short(it.total),
            it.unit,
            short(irreducible),
            short(reducible)
        ));
    }
    said.push(format!("Reason: {}, {}.", it.reason, reason_in_words(it.reason)));
    match (&it.runner_up, it.margin) {
        (Some(next), Some(margin)) => {
            let action = style::action_named(&it.action);
            // Bounds tell the least that it can be.
            let by = if it.actions.iter().any(|priced| priced.bounds.is_some()) { "by at least" } else { "by" };
            said.push(format!("{action}{}{action:#} beats {next} {by} {}.", it.action, short(margin)));
        }
        _ if it.action == "undetermined" => {
            said.push(
                "One label per item only bounds the costs, and the bounds overlap: no action is known to be the best."
                    .into(),
            );
        }
        _ => {}
    }
    if let Some(part) = it.lots {
        said.push(format!("The limit on routing draws lots here: {} of such queries are routed.", percent(part)));
    }
    for Change { price_of, now, at, to } in &it.flips {
        let whose = price_of.strip_prefix("route:").map_or_else(|| "abstaining".to_owned(), str::to_owned);
        said.push(if *price_of == it.action {
            format!(
                "It does so until the price of {whose} rises above {} (now {}); then {to}.",
                short(*at),
                plain(*now)
            )
        } else {
            format!("It would be {to} if the price of {whose} fell below {} (now {}).", short(*at), plain(*now))
        });
    }
    match policy.task().limit().zip(policy.surcharge()) {
        Some((Limit::Budget(_), Surcharge { price, .. })) if price > 0.0 => said.push(format!(
            "A limit on routing adds {} to its price, beyond the costs above; it moves with the other prices.",
            short(price)
        )),
        Some((Limit::TargetLoss(_), Surcharge { price, .. })) => said.push(format!(
            "To reach the target loss, routing counts as if it cost {}, whatever its price in the costs above.",
            short(price)
        )),
        _ => {}
    }
    let (Some(confidence), Some(is_certain)) = (it.confidence.map(level), it.certain) else {
        let found = if it.trees.is_some() { "trees were grown" } else { "cells were found" };
        said.push(format!("A forest has no certificate: its {found} with the labels of these rows."));
        return said;
    };
    let (word, style) = certain(is_certain);
    said.push(match (&it.rival, it.regret) {
        (Some(rival), Some(regret)) => format!(
            "{style}{word}{style:#} with {confidence} confidence: {rival} may be better by up to {}.",
            short(regret)
        ),
        (_, None) => format!("{style}{word}{style:#}: the cell has no rows of its own."),
        _ if is_certain => format!("{style}{word}{style:#} with {confidence} confidence: no other action is better."),
        _ => format!("{style}{word}{style:#} with {confidence} confidence."),
    });
    said
}
