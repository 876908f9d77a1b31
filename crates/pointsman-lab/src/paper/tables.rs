//! Tables of all numbers behind the claims.

use super::numbers::{Numbers, format_difference, method_name};

/// Tables of the gains of every problem and of the effects of cells, labels and rows.
pub(super) fn tables(n: Numbers<'_>) -> String {
    [gains(n), losses(n), cells(n), labels(n), rows(n)].concat()
}

/// A row of a Markdown table.
fn table_row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn table_head(names: &[&str]) -> String {
    format!("| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len()))
}

fn gains(n: Numbers<'_>) -> String {
    const STRATEGIES: [&str; 4] = ["total-uncertainty", "higher-order", "supervised", "cell-optimal"];
    let labels = STRATEGIES.map(method_name);
    let mut names = vec!["problem", "served", "correlation of reducible and total loss"];
    names.extend(labels.iter().map(String::as_str));
    let mut text = String::from("## Every gain\n\n") + &table_head(&names);
    let mut differences = String::from("\nDifferences of these gains, each with its paired standard error:\n\n")
        + &table_head(&[
            "problem",
            "served",
            "Pointsman − total uncertainty",
            "Pointsman − supervised",
            "best action per cell − Pointsman",
        ]);
    for problem in n.keys("routing", &[]) {
        for variant in n.keys("routing", &[&problem]) {
            if n.get("routing", &[&problem, &variant, "correlation"]).is_none() {
                continue;
            }
            let show = |name: &str| n.show("routing", &[&problem, &variant, "gain", name]);
            let mut cells = vec![problem.clone(), variant.clone()];
            cells.push(n.show("routing", &[&problem, &variant, "correlation"]));
            cells.extend(STRATEGIES.map(show));
            text += &table_row(&cells);
            let between = |first: &str, second: &str| {
                let at = |name| [variant.as_str(), "gain", name];
                format_difference(n.difference("routing", &problem, &at(first), &at(second)))
            };
            differences += &table_row(&[
                problem.clone(),
                variant.clone(),
                between("higher-order", "total-uncertainty"),
                between("higher-order", "supervised"),
                between("cell-optimal", "higher-order"),
            ]);
        }
    }
    text + &differences
}

fn losses(n: Numbers<'_>) -> String {
    const NAMES: [&str; 4] = ["higher-order", "supervised-static", "supervised-retrained", "cell-optimal"];
    let mut text = String::from("\n## Every loss\n\n")
        + &table_head(&[
            "problem",
            "served",
            "loss",
            "Pointsman",
            "supervised, trained once",
            "supervised, trained per loss",
            "best action per cell",
            "Pointsman − trained once",
            "Pointsman − trained per loss",
        ]);
    for problem in n.keys("losses", &[]) {
        for variant in ["raw", "recalibrated"] {
            for loss in n.keys("losses", &[&problem, variant]) {
                let mut cells = vec![problem.clone(), variant.to_owned(), loss.clone()];
                cells.extend(NAMES.map(|name| n.show("losses", &[&problem, variant, &loss, "gain", name])));
                for other in &NAMES[1..3] {
                    let at = |name| [variant, loss.as_str(), "gain", name];
                    cells.push(format_difference(n.difference("losses", &problem, &at(NAMES[0]), &at(other))));
                }
                text += &table_row(&cells);
            }
        }
    }
    text
}

fn cells(n: Numbers<'_>) -> String {
    let mut text = String::from("\n## Cells, labels, rows\n\n")
        + &table_head(&["problem", "cells per top class", "gain", "of the best order of the cells", "short of it by"]);
    for problem in n.keys("cells", &[]) {
        let mut bins = n.keys("cells", &[&problem, "bins"]);
        bins.sort_by_key(|bins| bins.parse::<u64>().unwrap_or(0));
        for bins in bins {
            let gain = |name: &str| n.show("cells", &[&problem, "bins", &bins, "gain", name]);
            let at = |name| ["bins", bins.as_str(), "gain", name];
            let short = format_difference(n.difference("cells", &problem, &at("cell-optimal"), &at("higher-order")));
            text += &table_row(&[problem.clone(), bins.clone(), gain("higher-order"), gain("cell-optimal"), short]);
        }
    }
    text
}

fn labels(n: Numbers<'_>) -> String {
    const ESTIMATORS: [&str; 3] = ["plugin", "shrink", "polynomial"];
    let mut text = String::from("\n")
        + &table_head(&[
            "problem",
            "loss",
            "labels per item",
            "error of the irreducible loss, `plugin`",
            "`shrink`",
            "`polynomial`",
            "over-routed, `plugin`",
            "`shrink`",
            "`polynomial`",
        ]);
    for problem in n.keys("labels", &[]) {
        for loss in n.keys("labels", &[&problem, "labels", "3"]) {
            for k in ["2", "3", "5", "10", "20", "all"] {
                let show =
                    |estimator: &str, what: &str| n.show("labels", &[&problem, "labels", k, &loss, estimator, what]);
                let mut cells = vec![problem.clone(), loss.clone(), k.to_owned()];
                for what in ["error", "over_routed"] {
                    cells.extend(ESTIMATORS.map(|estimator| show(estimator, what)));
                }
                text += &table_row(&cells);
            }
        }
    }
    text
}

fn rows(n: Numbers<'_>) -> String {
    let mut text = String::from("\n")
        + &table_head(&["problem", "calibration rows", "gain, `plugin`", "gain, `shrink`", "`shrink` − `plugin`"]);
    for problem in n.keys("rows", &[]) {
        let mut rows = n.keys("rows", &[&problem, "rows"]);
        rows.sort_by_key(|rows| rows.parse::<u64>().unwrap_or(0));
        for count in rows {
            let at = |estimator| ["rows", count.as_str(), estimator, "gain", "higher-order"];
            let show = |estimator: &str| n.show("rows", &[&problem, "rows", &count, estimator, "gain", "higher-order"]);
            let between = format_difference(n.difference("rows", &problem, &at("shrink"), &at("plugin")));
            text += &table_row(&[problem.clone(), count.clone(), show("plugin"), show("shrink"), between]);
        }
    }
    text
}
