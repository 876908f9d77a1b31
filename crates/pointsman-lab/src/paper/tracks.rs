//! The page on three tracks: a weak model, a strong model with measured answers, and people.

use std::collections::BTreeMap;

use pointsman::evaluate::rule_name;
use serde_json::Value;

use super::numbers::{Difference, Numbers, format_difference};
use super::pictures;
use crate::experiments::tracks::{ABSTAIN_PRICE, PEOPLE_PRICE};

/// Names of the figures on the page.
pub(super) const FIGURES: [&str; 2] = ["tracks-cifar10h", "tracks-cifar10h-overconfident"];

const ROUTERS: [&str; 3] = ["top-class:10", "confidence:20", "forest:200"];
const BASELINES: [&str; 2] = ["two thresholds", "booster"];
const ALWAYS: [&str; 4] = ["always-predict", "always-route:strong", "always-route:people", "always-abstain"];
const HINDSIGHT: [&str; 3] = ["cell-optimal, top-class:10", "cell-optimal, confidence:20", "pointwise-optimal"];

/// The text of `docs/tracks.md` for the given results.
#[must_use]
pub fn tracks_page(results: &BTreeMap<String, Value>) -> String {
    let n = Numbers::new(results);
    let splits = n.value("tracks", &["cifar10h", "splits"]).and_then(Value::as_u64).unwrap_or(0);
    let mut page = String::from("# Three tracks, measured\n\n");
    page += "<!-- Written by `pointsman reproduce` from docs/results: do not edit by hand. -->\n\n";
    page += &format!(
        "A weak classifier (ResNet-34 on CIFAR-10, 87.2 %), a strong one (WideResNet-28-10, 96.6 %, over-confident) and people, whose votes are the CIFAR-10H \
         labels, about 51 per image. Nothing is assumed of the strong model: it is a route of kind `measured`, and what it costs is what its answers lost \
         on the calibration rows. Brier points; the strong model costs from 0.01 to 0.05, people cost {PEOPLE_PRICE}, abstaining costs {ABSTAIN_PRICE}. The second data set has the same \
         images and the same strong model, with a weak model trained without augmentation (79.0 %, over-confident).\n\n"
    );
    page += &format!(
        "The images are halved at random {splits} times, 5,000 to calibrate on and 5,000 to be judged on. Everything is chosen on the first half: the cells or the \
         forest of a router, the two thresholds (all pairs are tried: predict above the first, ask the strong model above the second, people or nobody below), the \
         boosted trees (one regression per action of what it loses, on prediction and features; the cheapest expected action is taken). A router is calibrated once; \
         prices enter afterwards. Costs are judged by the mean of an image's votes; fifty votes make asking people look 0.0015 cheaper than it is, for all alike.\n\n"
    );
    page += &format!("{}\n\n", tracks_headline(results));
    for problem in n.keys("tracks", &[]) {
        page += &section(n, &problem);
    }
    page += LIMITS;
    page.trim_end().to_owned() + "\n"
}

/// The result in one sentence for the README: the forest compared with the alternatives at a price of 0.02.
#[must_use]
pub fn tracks_headline(results: &BTreeMap<String, Value>) -> String {
    let n = Numbers::new(results);
    let cost = |name: &str| {
        let found = n.get("tracks", &["cifar10h", "prices", "0.02", "costs", name]);
        found.map_or_else(|| "–".into(), |cost| format!("{cost:.4}"))
    };
    let against = |peer: &str| four_decimals(cost_difference(n, "cifar10h", "0.02", "forest:200", peer));
    format!(
        "On CIFAR-10H, with the strong model at 0.02, `forest:200` costs {} Brier points per image, the best pair of confidence thresholds {} \
         (difference {}), a booster per action {} ({}), always the strong model {} and always people {}.",
        cost("forest:200"),
        cost(BASELINES[0]),
        against(BASELINES[0]),
        cost(BASELINES[1]),
        against(BASELINES[1]),
        cost("always-route:strong"),
        cost("always-route:people"),
    )
}

const LIMITS: &str = "\
## How to read it

Costs have the standard deviation over halvings after ±, differences their standard error, paired by halving. Halves of one data set overlap: the
variance of a mean difference is taken to be (1/n + 1) times that of one halving (Nadeau and Bengio 2003), so the standard error is about the spread of a single
halving. The best action per cell and the best possible per query are known in hindsight only; nobody can be charged for missing them. A hundred cells of fifty rows
(`top-class:10`) are too many for three prices that lie close together: the cheapest of four noisy estimates is taken in each. Twenty cells or a forest
lose less to that.

The commands for a table of your own, with columns `oracle_strong_<class>`, are in [Oracles as they are](oracles.md).
";

fn prices(n: Numbers<'_>, problem: &str) -> Vec<String> {
    n.keys("tracks", &[problem, "prices"])
}

fn cost_difference(n: Numbers<'_>, problem: &str, price: &str, first: &str, second: &str) -> Option<Difference> {
    let at = |name| ["prices", price, "costs", name];
    n.difference("tracks", problem, &at(first), &at(second))
}

/// A row of a Markdown table.
fn table_row(cells: Vec<String>) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn section(n: Numbers<'_>, problem: &str) -> String {
    let prices = prices(n, problem);
    let cost = |price: &str, name: &str| n.get("tracks", &[problem, "prices", price, "costs", name]);
    let mut text = format!("## {problem}\n\n");
    text += &summary(n, problem, &prices);
    text += &pictures(&FIGURES.into_iter().filter(|name| *name == format!("tracks-{problem}")).collect::<Vec<_>>());
    text += "Mean cost per image:\n\n";
    let head = |first: &str| format!("| {first} | {} |\n|---|{}\n", prices.join(" | "), "---|".repeat(prices.len()));
    text += &head("strong model at");
    for name in ROUTERS.iter().chain(&BASELINES).chain(&ALWAYS).chain(&HINDSIGHT) {
        let mut cells = vec![row_label(name)];
        cells.extend(prices.iter().map(|price| {
            let path = [problem, "prices", price, "costs", name];
            match (cost(price, name), n.sd("tracks", &path)) {
                (None, _) => "–".into(),
                (Some(mean), sd) if sd > 0.0 => format!("{mean:.4} ± {sd:.4}"),
                (Some(mean), _) => format!("{mean:.4}"),
            }
        }));
        text += &table_row(cells);
    }
    text += "\nCost above a peer's, paired (below zero is better):\n\n";
    text += &head("strong model at");
    for router in ROUTERS {
        for peer in BASELINES {
            let mut cells = vec![format!("`{router}` − {peer}")];
            cells.extend(prices.iter().map(|price| four_decimals(cost_difference(n, problem, price, router, peer))));
            text += &table_row(cells);
        }
    }
    text += "\nWhat each does with the images at 0.02:\n\n| | predict | strong model | people | abstain |\n|---|---|---|---|---|\n";
    for name in ROUTERS.iter().chain(&BASELINES) {
        let share = |action: &str| {
            let found = n.get("tracks", &[problem, "prices", "0.02", "share", name, action]);
            found.map_or_else(|| "–".into(), |share| format!("{:.1} %", 100.0 * share))
        };
        let mut cells = vec![row_label(name)];
        cells.extend(["predict", "route:strong", "route:people", "abstain"].map(share));
        text += &table_row(cells);
    }
    text + "\n"
}

fn row_label(name: &str) -> String {
    match name.split_once(", ") {
        _ if ROUTERS.contains(&name) => format!("router, `{name}`"),
        Some((rule, partition)) => format!("{}, `{partition}`", rule_name(rule)),
        None => rule_name(name),
    }
}

fn four_decimals(difference: Option<Difference>) -> String {
    let Some(Difference { mean, error }) = difference else { return format_difference(None) };
    let text = |x: f64| format!("{x:.4}").replace('-', "−");
    error.map_or_else(|| text(mean), |error| format!("{} ± {}", text(mean), text(error)))
}

/// Which router is ahead, and whether by more than the standard error.
fn summary(n: Numbers<'_>, problem: &str, prices: &[String]) -> String {
    let mut text = String::new();
    for router in ROUTERS {
        let counted = |peer: &str| {
            let all: Vec<Difference> =
                prices.iter().filter_map(|price| cost_difference(n, problem, price, router, peer)).collect();
            let beyond = |sign: f64| all.iter().filter(|found| sign * found.mean > found.error.unwrap_or(0.0)).count();
            format!("cheaper than {peer} at {} of {} prices, dearer at {}", beyond(-1.0), all.len(), beyond(1.0))
        };
        text += &format!("`{router}` is {}, and {}. ", counted(BASELINES[0]), counted(BASELINES[1]));
    }
    format!("Beyond one standard error: {}\n\n", text.trim_end())
}
