//! The page `docs/beyond.md`, generated from result files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::numbers::{Numbers, format_difference, method_name, three_decimals};
use super::pictures;

/// Figures of the page, by name.
pub(super) const FIGURES: [&str; 9] = [
    "forest-johnson",
    "forest-piecewise",
    "forest-chaosnli",
    "forest-cifar10h",
    "labels-chaosnli",
    "oracles-chaosnli",
    "budgets-johnson",
    "budgets-snli",
    "budgets-chaosnli",
];

/// The text of `docs/beyond.md` for the given results.
#[must_use]
pub fn beyond_page(results: &BTreeMap<String, Value>) -> String {
    let n = Numbers::new(results);
    let mut page = String::from("# Beyond the paper, measured\n\n");
    page += "<!-- Written by `pointsman reproduce` from docs/results: do not edit by hand. -->\n\n";
    page += "The paper's cells see the prediction, its oracle knows the truth, its prices are given and its estimate wants many labels. Here is what \
             learned partitions, real panels, budgets and few labels come to. Numbers after ± are standard deviations over seeds or random halves, after a \
             difference its paired standard error; the set-up is that of [the paper's claims](paper.md).\n\n";
    page += &forests(n);
    page += &few_labels(n);
    page += &panels(n);
    page += &budgets(n);
    page.trim_end().to_owned() + "\n"
}

fn forests(n: Numbers<'_>) -> String {
    const NAMES: [&str; 8] = [
        "total-uncertainty",
        "cells",
        "supervised-static",
        "supervised-retrained",
        "tree",
        "honest-forest",
        "forest",
        "forest-plugin",
    ];
    let mut text = String::from(
        "## Partitions that learn\n\nGain of the routing curve, 0 random, 1 the best order of the queries. One forest, grown once on no loss in particular, \
         against a supervised router trained anew for each loss.\n\n",
    );
    text += "| problem | loss |";
    NAMES.iter().for_each(|name| text += &format!(" {} |", method_name(name)));
    text += " forest − the paper's cells | forest − trained per loss |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    let (mut ahead, mut of, mut behind) = (0, 0, Vec::new());
    for problem in n.keys("forest", &[]) {
        for loss in n.keys("forest", &[&problem, "losses"]) {
            let path = |name| [problem.as_str(), "losses", loss.as_str(), "gain", name];
            text += &format!("| {problem} | {loss} |");
            NAMES.iter().for_each(|name| text += &format!(" {} |", n.show("forest", &path(name))));
            for other in ["cells", "supervised-retrained"] {
                let found = n.difference("forest", &problem, &path("forest")[1..], &path(other)[1..]);
                text += &format!(" {} |", format_difference(found));
            }
            text += "\n";
            let gain = |name| n.get("forest", &path(name)).unwrap_or(f64::NAN);
            of += 1;
            if gain("forest") >= gain("supervised-retrained") - 0.01 {
                ahead += 1;
            } else {
                behind.push(format!("{problem}, {loss}"));
            }
        }
    }
    text += &format!(
        "\nThe forest is at least as good as the supervised router on that router's own loss, less 0.01, in {ahead} of {of} pairs{}.\n\n",
        if behind.is_empty() { String::new() } else { format!("; not on {}", behind.join("; ")) }
    );
    text += "`tree` and `honest-forest` keep half of the rows, and can be certified.\n\n";
    text += "`forest-plugin` is the same forest valued by the paper's estimate: data sets are judged by the mean of the labels a row has, and that judge shares its bias.\n\n";
    text + &pictures(&FIGURES[..4])
}

fn few_labels(n: Numbers<'_>) -> String {
    const NAMES: [&str; 4] = ["plugin", "shrink", "npmle", "dirichlet"];
    let mut text = String::from(
        "## Few labels\n\nThree labels per item, drawn from all there are: root mean square over all rows that carry labels, of a data set both halves together, of a \
         cell's irreducible loss against the one that all labels give.\n\n| problem | loss | plugin | shrink | npmle | dirichlet | shrink / plugin |\n|---|---|---|---|---|---|---|\n",
    );
    for problem in n.keys("labels", &[]) {
        for loss in n.keys("labels", &[&problem, "labels", "3"]) {
            let path = |name| [problem.as_str(), "labels", "3", loss.as_str(), name, "error"];
            text += &format!("| {problem} | {loss} |");
            NAMES.iter().for_each(|name| text += &format!(" {} |", n.show("labels", &path(name))));
            let ratio = n.get("labels", &path("shrink")).zip(n.get("labels", &path("plugin"))).map(|(a, b)| a / b);
            text += &format!(" {} |\n", ratio.map_or("–".into(), three_decimals));
        }
    }
    text + "\n" + &pictures(&FIGURES[4..5])
}

fn panels(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## Panels\n\nWhat a panel's answer loses, estimated on calibration labels and met on test rows, and what Pointsman costs per query when an expert's label costs \
         0.01.\n\n| problem | loss | experts | estimated | met | router with that size | router with all sizes |\n|---|---|---|---|---|---|---|\n",
    );
    for problem in n.keys("oracles", &[]) {
        for loss in n.keys("oracles", &[&problem]) {
            let mut sizes = n.keys("oracles", &[&problem, &loss, "sizes"]);
            sizes.sort_by_key(|size| size.parse::<u64>().unwrap_or(0));
            let all = n.show("oracles", &[&problem, &loss, "router_all_sizes"]);
            for size in sizes {
                let show = |what| n.show("oracles", &[&problem, &loss, "sizes", &size, what]);
                let (estimated, met, router) = (show("estimated"), show("met"), show("router"));
                text += &format!("| {problem} | {loss} | {size} | {estimated} | {met} | {router} | {all} |\n");
            }
        }
    }
    text + "\n" + &pictures(&FIGURES[5..6])
}

fn budgets(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## Budgets\n\nThe price that keeps a budget is found on the calibration rows. Largest difference over budgets from 0 to 90 % between what is promised there and \
         what test rows give, few labels corrected. Both are averaged over seeds or random halvings, so that what is left is bias; a single half differs by more.\n\n| problem | loss | share routed | loss |\n|---|---|---|---|\n",
    );
    for problem in n.keys("budgets", &[]) {
        for loss in n.keys("budgets", &[&problem]).into_iter().filter(|key| key != "budgets") {
            let list = |what| n.list("budgets", &[&problem, &loss, what]).unwrap_or_default();
            let most = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let share = most(list("share_promised"), list("share_met"));
            let lost = most(list("loss_promised"), list("loss_met_corrected"));
            text += &format!("| {problem} | {loss} | {} | {} |\n", three_decimals(share), three_decimals(lost));
        }
    }
    text + "\n" + &pictures(&FIGURES[6..])
}
