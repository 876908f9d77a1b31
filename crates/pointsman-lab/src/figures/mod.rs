//! Draws the figures from result files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pointsman::evaluate::rule_name;
use pointsman_report::chart::{Bars, Chart, Line, Picture, Points, colour, sheet};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::experiments::oracles::LABEL_PRICE;
use crate::paper::{Numbers, method_name};

mod functions;
mod theory;
mod tracks;

const STRATEGIES: [&str; 6] =
    ["random", "total-uncertainty", "supervised", "higher-order", "cell-optimal", "pointwise-optimal"];
const ESTIMATORS: [(&str, &str); 5] = [
    ("plugin", colour::VERMILLION),
    ("polynomial", colour::PURPLE),
    ("npmle", colour::GREEN),
    ("dirichlet", colour::ORANGE),
    ("shrink", colour::BLUE),
];
/// Width and height in pixels of a chart on a sheet.
const PANEL: (f64, f64) = (620.0, 400.0);
const VARIANTS: [&str; 2] = ["raw", "recalibrated"];

/// Draws the figures of all results into a folder, as SVG and PNG.
///
/// # Errors
/// If a figure cannot be encoded or written.
pub fn draw(results: &BTreeMap<String, Value>, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|source| Error::folder(folder, source))?;
    let mut files = Vec::new();
    for (name, picture) in figures(results) {
        let stem = folder.join(name);
        let (svg, png) = (stem.with_extension("svg"), stem.with_extension("png"));
        let bytes = picture.png().map_err(|error| Error::results(&png, error.to_string()))?;
        pointsman_table::write_atomically(&svg, |out| out.write_all(picture.svg().as_bytes()))?;
        pointsman_table::write_atomically(&png, |out| out.write_all(&bytes))?;
        files.extend([svg, png]);
    }
    Ok(files)
}

/// The figures of all results, with their names.
pub(crate) fn figures(results: &BTreeMap<String, Value>) -> Vec<(String, Picture)> {
    let n = Numbers::new(results);
    let figures = [
        ("routing", draw_sheets(n, "routing", routing)),
        ("losses", draw_sheets(n, "losses", losses)),
        ("three-way", draw_sheets(n, "three-way", three_way)),
        ("correlation", draw_sheets(n, "correlation", correlation)),
        ("cells", draw_sheets(n, "cells", cells)),
        ("labels", draw_sheets(n, "labels", labels)),
        ("rows", draw_sheets(n, "rows", rows)),
        ("forest", draw_sheets(n, "forest", forest)),
        ("oracles", draw_sheets(n, "oracles", oracles)),
        ("budgets", draw_sheets(n, "budgets", budgets)),
        ("functions", draw_sheets(n, "functions", functions::figure)),
        ("theory", draw_sheets(n, "theory", theory::figure)),
        ("tracks", draw_sheets(n, "tracks", tracks::figure)),
    ];
    let of_experiment = |(experiment, figures): (&str, Vec<(String, Picture)>)| {
        figures.into_iter().map(|(problem, picture)| (format!("{experiment}-{problem}"), picture)).collect::<Vec<_>>()
    };
    figures.into_iter().flat_map(of_experiment).collect()
}

/// Draws one figure per problem.
fn draw_sheets(
    n: Numbers<'_>,
    experiment: &str,
    figure: fn(Numbers<'_>, &str) -> Option<Picture>,
) -> Vec<(String, Picture)> {
    let problems = n.keys(experiment, &[]);
    problems.into_iter().filter_map(|problem| figure(n, &problem).map(|picture| (problem, picture))).collect()
}

/// A phrase for the prediction that the router served.
fn served_phrase(variant: &str) -> String {
    match variant {
        "raw" => "predictions as trained".into(),
        "recalibrated" => "re-calibrated on the cells".into(),
        "raw-x" => "as trained, 10 cells on x".into(),
        "recalibrated-x" => "re-calibrated, 10 cells on x".into(),
        "raw-30" => "as trained, 30 equal cells on predictions".into(),
        "recalibrated-30" => "re-calibrated, 30 equal cells on predictions".into(),
        other => other.into(),
    }
}

/// Limits a logarithmic axis to the range of its values.
fn limit_to_values(chart: Chart, x: &[f64]) -> Chart {
    match x {
        [first, .., last] => chart.x_range(*first, *last),
        _ => chart,
    }
    .x_log()
}

/// A line through means with a band of one standard deviation.
fn line(name: &str, ink: &str, x: &[f64], mean: &[f64], sd: &[f64]) -> Line {
    let line = Line::new(name, ink, x.iter().copied().zip(mean.iter().copied()).collect());
    if sd.iter().any(|sd| *sd > 0.0) {
        line.band(mean.iter().zip(sd).map(|(mean, sd)| (mean - sd, mean + sd)).collect())
    } else {
        line
    }
}

fn means_and_deviations(n: Numbers<'_>, experiment: &str, path: &[&str]) -> Option<(Vec<f64>, Vec<f64>)> {
    let mean = n.list(experiment, path)?;
    let sd = n.value(experiment, path)?.get("sd")?.as_array()?.iter().map(|x| x.as_f64().unwrap_or(0.0)).collect();
    Some((mean, sd))
}

fn routing(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let mut pictures = Vec::new();
    for variant in n.keys("routing", &[problem]) {
        let loss = n.value("routing", &[problem, &variant, "loss"]).and_then(Value::as_str).unwrap_or("loss");
        let mut chart = Chart::new(served_phrase(&variant), "share routed", format!("mean loss ({loss})"))
            .x_range(0.0, 1.0)
            .x_percent()
            .size(PANEL.0, PANEL.1);
        for name in STRATEGIES {
            let Some((mean, sd)) = means_and_deviations(n, "routing", &[problem, &variant, "curve", name]) else {
                continue;
            };
            let x: Vec<f64> = (0..mean.len()).map(|i| i as f64 / (mean.len() - 1) as f64).collect();
            let line = line(&method_name(name), colour::strategy(name), &x, &mean, &sd);
            chart = chart.line(if name.ends_with("optimal") { line.dashed() } else { line });
        }
        pictures.push(chart.draw());
    }
    let caption = "Mean loss when a share of the queries is routed, in the order of each strategy; lower is better. Bands: one standard deviation \
                   over seeds or random halves. Best action per cell: the best order of the router's own cells; best possible per query: the best order of the queries.";
    Some(sheet(&format!("Routing curves: {problem}"), caption, 2, pictures))
}

fn losses(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    const SHOWN: [(&str, &str); 5] = [
        ("total-uncertainty", colour::VERMILLION),
        ("supervised-static", colour::PURPLE),
        ("supervised-retrained", colour::ORANGE),
        ("higher-order", colour::BLUE),
        ("cell-optimal", colour::GREEN),
    ];
    let mut pictures = Vec::new();
    for variant in VARIANTS {
        let losses = n.keys("losses", &[problem, variant]);
        let mut bars = Bars::new(losses.clone());
        let mut errors = Vec::new();
        for (name, ink) in SHOWN {
            let path = |loss: &str| [problem.to_owned(), variant.into(), loss.into(), "gain".into(), name.into()];
            let each = |f: &dyn Fn(&[&str]) -> f64| -> Vec<f64> {
                losses.iter().map(|loss| f(&path(loss).each_ref().map(String::as_str))).collect()
            };
            bars = bars.series(method_name(name), ink, each(&|path| n.get("losses", path).unwrap_or(f64::NAN)));
            errors.push(each(&|path| n.sd("losses", path)));
        }
        let bars = if errors.iter().flatten().any(|sd| *sd > 0.0) { bars.errors(errors) } else { bars };
        pictures.push(Chart::new(served_phrase(variant), "loss", "gain").bars(bars).draw());
    }
    let own = n.value("losses", &[problem, "static"]).and_then(Value::as_str).unwrap_or("its loss");
    let caption = format!(
        "Gain of the routing curve: 0 is random, 1 the best order of the queries. One supervised router was trained on {own} only, \
                           the other anew for each loss; Pointsman was calibrated once. Error bars, where there are several seeds: one standard deviation."
    );
    Some(sheet(&format!("Loss flexibility: {problem}"), &caption, 1, pictures))
}

fn three_way(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    const SHOWN: [(&str, &str); 4] = [
        ("predict/route", colour::ORANGE),
        ("predict/abstain", colour::GREEN),
        ("router", colour::BLUE),
        ("pointwise-optimal", colour::INK),
    ];
    let prices = n.value("three-way", &[problem, "abstain", "prices"])?.as_array()?;
    let prices: Vec<f64> = prices.iter().filter_map(|price| price.as_str()?.parse().ok()).collect();
    let mut pictures = Vec::new();
    for variant in VARIANTS {
        for loss in n.keys("three-way", &[problem, variant]) {
            let mut chart =
                Chart::new(format!("{loss}, {}", served_phrase(variant)), "price of abstaining, β", "mean cost")
                    .size(PANEL.0, PANEL.1);
            for (name, ink) in SHOWN {
                let (mean, sd) = means_and_deviations(n, "three-way", &[problem, variant, &loss, "cost", name])?;
                let line = line(&rule_name(name), ink, &prices, &mean, &sd);
                chart = chart.line(if name == "pointwise-optimal" { line.dashed() } else { line });
            }
            pictures.push(chart.draw());
        }
    }
    let caption = "Mean cost per query, prices included, when routing costs 0.05; lower is better. Pointsman should follow the lower \
                   envelope of the routers that may only do two things. Data sets are judged by the mean of the labels a row has: where these are \
                   few (five in snli) the judge takes some noise for something an oracle knows, and routing looks cheaper than it is.";
    Some(sheet(&format!("Predict, route or abstain: {problem}"), caption, 2, pictures))
}

fn correlation(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let loss = n.value("correlation", &[problem, "loss"])?.as_str()?;
    let mut pictures = Vec::new();
    for variant in VARIANTS {
        let column = |name: &str| n.list("correlation", &[problem, variant, loss, "cells", name]);
        let (share, total, irreducible) = (column("share")?, column("total")?, column("irreducible")?);
        let points = total.iter().zip(&irreducible).map(|(total, irreducible)| (*total, total - irreducible)).collect();
        let radii = share.iter().map(|share| 3.0 + 40.0 * share.sqrt()).map(|r| r.min(20.0)).collect();
        let points = Points::new("one cell, area by traffic", colour::BLUE, points).radii(radii);
        let show = |what| n.show("correlation", &[problem, variant, loss, "correlation", what]);
        let title = format!(
            "{}: correlation of total with reducible {}, with irreducible {}",
            served_phrase(variant),
            show("reducible-total-cells"),
            show("irreducible-total-cells")
        );
        pictures.push(
            Chart::new(title, format!("total loss ({loss})"), "reducible loss")
                .size(PANEL.0, PANEL.1)
                .points(points)
                .draw(),
        );
    }
    let caption = "Held-out losses of the router's cells. On a rising line, ranking by total loss is as good as ranking by what an oracle would save, \
                   and decomposition does not matter.";
    Some(sheet(&format!("Reducible and total loss: {problem}"), caption, 2, pictures))
}

/// The means at numeric keys, in ascending order.
fn series(
    n: Numbers<'_>,
    experiment: &str,
    keys: &[String],
    path: &dyn Fn(&str) -> Vec<String>,
) -> (Vec<f64>, Vec<f64>) {
    let at = |key: &String| path(key);
    let mean = keys.iter().map(|key| n.get(experiment, &to_str_path(&at(key))).unwrap_or(f64::NAN)).collect();
    let sd = keys.iter().map(|key| n.sd(experiment, &to_str_path(&at(key)))).collect();
    (mean, sd)
}

fn to_str_path(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn to_owned_path(path: &[&str]) -> Vec<String> {
    path.iter().map(|&key| key.to_owned()).collect()
}

fn numeric_keys(n: Numbers<'_>, experiment: &str, path: &[&str]) -> (Vec<String>, Vec<f64>) {
    let mut keys: Vec<(f64, String)> =
        n.keys(experiment, path).into_iter().filter_map(|key| Some((key.parse().ok()?, key))).collect();
    keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    (keys.iter().map(|(_, key)| key.clone()).collect(), keys.iter().map(|(x, _)| *x).collect())
}

fn cells(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let (keys, x) = numeric_keys(n, "cells", &[problem, "bins"]);
    let mut chart = Chart::new(format!("Number of cells: {problem}"), "cells per top class", "gain").caption(
        "Gain of the routing curve, 0 random, 1 best. The best action per cell can only rise with more cells; the router falls away from it where cells are too \
         thin to be estimated.",
    );
    for name in ["higher-order", "cell-optimal"] {
        let (mean, sd) = series(n, "cells", &keys, &|key| to_owned_path(&[problem, "bins", key, "gain", name]));
        chart = chart.line(line(&method_name(name), colour::strategy(name), &x, &mean, &sd));
    }
    Some(limit_to_values(chart, &x).draw())
}

fn rows(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let (keys, x) = numeric_keys(n, "rows", &[problem, "rows"]);
    let mut chart = Chart::new(format!("Number of calibration rows: {problem}"), "calibration rows", "gain")
        .caption("Gain of the routing curve, 0 random, 1 best, with both estimators of the irreducible loss. Bands: one standard deviation over draws.");
    for (name, ink) in [("plugin", colour::VERMILLION), ("shrink", colour::BLUE)] {
        let (mean, sd) =
            series(n, "rows", &keys, &|key| to_owned_path(&[problem, "rows", key, name, "gain", "higher-order"]));
        chart = chart.line(line(name, ink, &x, &mean, &sd));
    }
    Some(limit_to_values(chart, &x).draw())
}

fn labels(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let (keys, x) = numeric_keys(n, "labels", &[problem, "labels"]);
    let mut pictures = Vec::new();
    for loss in n.keys("labels", &[problem, "labels", "3"]) {
        for (what, axis) in [("error", "error of the irreducible loss"), ("over_routed", "share routed without need")] {
            let mut chart = Chart::new(loss.clone(), "labels per item", axis).size(PANEL.0, PANEL.1);
            for (name, ink) in ESTIMATORS {
                if n.get("labels", &[problem, "labels", "3", &loss, name, what]).is_none() {
                    continue;
                }
                let (mean, sd) =
                    series(n, "labels", &keys, &|key| to_owned_path(&[problem, "labels", key, &loss, name, what]));
                chart = chart.line(line(name, ink, &x, &mean, &sd));
            }
            pictures.push(limit_to_values(chart, &x).draw());
        }
    }
    let caption = "Left: root mean square over rows of a cell's irreducible loss against the one all labels give. Right: share of rows routed that all \
                   labels would not route, at prices that route a quarter, half and three quarters.";
    Some(sheet(&format!("Number of labels per item: {problem}"), caption, 2, pictures))
}

fn oracles(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let mut pictures = Vec::new();
    for loss in n.keys("oracles", &[problem]) {
        let (keys, x) = numeric_keys(n, "oracles", &[problem, &loss, "sizes"]);
        let at = |what: &str| series(n, "oracles", &keys, &|key| to_owned_path(&[problem, &loss, "sizes", key, what]));
        let flat = |what: &str| vec![n.get("oracles", &[problem, &loss, what]).unwrap_or(f64::NAN); x.len()];
        let level = |name: &str, ink: &str, what: &str| line(name, ink, &x, &flat(what), &[]).dashed();
        let aggregate = n.value("oracles", &[problem, &loss, "aggregate"]).and_then(Value::as_str).unwrap_or("panel");
        let mut chart = Chart::new(format!("{loss}: what a panel loses ({aggregate})"), "experts", "mean loss");
        for (name, ink, what) in [("estimated", colour::BLUE, "estimated"), ("on test rows", colour::VERMILLION, "met")]
        {
            let (mean, sd) = at(what);
            chart = chart.line(line(name, ink, &x, &mean, &sd));
        }
        chart = chart.line(level("knows the truth", colour::INK, "irreducible"));
        pictures.push(limit_to_values(chart.size(PANEL.0, PANEL.1), &x).draw());
        let (mean, sd) = at("router");
        let chart = Chart::new(format!("{loss}: what the router costs"), "experts", "mean cost")
            .line(line("one size for all", colour::ORANGE, &x, &mean, &sd))
            .line(level("all sizes as routes", colour::BLUE, "router_all_sizes"))
            .line(level("always predict", colour::GREY, "predict"))
            .size(PANEL.0, PANEL.1);
        pictures.push(limit_to_values(chart, &x).draw());
    }
    let caption = format!(
        "Left: the loss of a panel's answer, estimated from the calibration labels and met on test rows. Right: cost per query on test rows when an \
         expert's label costs {LABEL_PRICE}; with all sizes as routes every cell takes the one that pays there."
    );
    (!pictures.is_empty()).then(|| sheet(&format!("Panels of experts: {problem}"), &caption, 2, pictures))
}

fn budgets(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let shares = n.value("budgets", &[problem, "budgets", "shares"])?.as_array()?;
    let x: Vec<f64> = shares.iter().filter_map(|share| share.as_str()?.parse().ok()).collect();
    let mut pictures = Vec::new();
    for loss in n.keys("budgets", &[problem]).into_iter().filter(|key| key != "budgets") {
        let at = |what: &str| means_and_deviations(n, "budgets", &[problem, &loss, what]);
        let (promised, _) = at("share_promised")?;
        let (met, sd) = at("share_met")?;
        let chart = Chart::new(format!("{loss}: share routed"), "budget", "share routed").x_percent().y_percent();
        let chart = chart
            .line(line("on test rows", colour::BLUE, &x, &met, &sd))
            .line(line("promised", colour::INK, &x, &promised, &[]).dashed());
        pictures.push(chart.size(PANEL.0, PANEL.1).draw());
        let mut chart = Chart::new(format!("{loss}: loss"), "budget", format!("mean loss ({loss})")).x_percent();
        for (name, ink, what) in [
            ("on test rows", colour::BLUE, "loss_met"),
            ("the same, few labels corrected", colour::SKY, "loss_met_corrected"),
            ("total uncertainty", colour::VERMILLION, "loss_total_uncertainty"),
        ] {
            let (mean, sd) = at(what)?;
            chart = chart.line(line(name, ink, &x, &mean, &sd));
        }
        let (mean, _) = at("loss_promised")?;
        chart = chart.line(line("promised", colour::INK, &x, &mean, &[]).dashed());
        pictures.push(chart.size(PANEL.0, PANEL.1).draw());
    }
    let caption = "A budget is met by a price found on the calibration rows. Left: the share it routes there and on test rows; it routes less than allowed \
                   where more would not pay. Right: the expected loss. Total uncertainty routes the same share of the least certain predictions.";
    Some(sheet(&format!("Budgets as prices: {problem}"), caption, 2, pictures))
}

fn forest(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    const SHOWN: [(&str, &str); 7] = [
        ("total-uncertainty", colour::VERMILLION),
        ("cells", colour::SKY),
        ("supervised-static", colour::PURPLE),
        ("supervised-retrained", colour::ORANGE),
        ("tree", colour::GREEN),
        ("honest-forest", colour::GREY),
        ("forest", colour::BLUE),
    ];
    let losses = n.keys("forest", &[problem, "losses"]);
    let mut bars = Bars::new(losses.clone());
    let mut errors = Vec::new();
    for (name, ink) in SHOWN {
        let at = |loss: &String| to_owned_path(&[problem, "losses", loss, "gain", name]);
        let gain = |loss: &String| n.get("forest", &to_str_path(&at(loss))).unwrap_or(f64::NAN);
        bars = bars.series(method_name(name), ink, losses.iter().map(gain).collect());
        errors.push(losses.iter().map(|loss| n.sd("forest", &to_str_path(&at(loss)))).collect::<Vec<f64>>());
    }
    let bars = if errors.iter().flatten().any(|sd| *sd > 0.0) { bars.errors(errors) } else { bars };
    let own = n.value("forest", &[problem, "static"]).and_then(Value::as_str).unwrap_or("one loss");
    let caption = format!(
        "Gain of the routing curve: 0 is random, 1 the best order of the queries. Trees and forests were grown once, on \
         no loss in particular; one supervised router was trained on {own}, the other anew for each loss."
    );
    Some(Chart::new(format!("Partitions that learn: {problem}"), "loss", "gain").caption(caption).bars(bars).draw())
}
