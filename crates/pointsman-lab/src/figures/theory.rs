//! Regret compared with the theorem's bound, and excess cost compared with the partition lemma's bound.

use pointsman_report::chart::{Chart, Line, Picture, Points, colour, sheet};

use super::{PANEL, limit_to_values};
use crate::paper::Numbers;

pub(super) fn figure(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let caption = "Left: the largest regret over 42 pairs of prices against Bε, both as powers of ten, one point for each loss and number of labels per item; \
                   the theorem keeps points below the line. Right: what the best action per cell costs above the best per query at the worst price, and the \
                   lemma's bound, ½ of the mean absolute deviation of the reducible loss within cells.";
    let pictures = vec![regret(n, problem)?, partitions(n, problem)?];
    Some(sheet(&format!("Theorem and partition lemma: {problem}"), caption, 2, pictures))
}

fn regret(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let mut chart =
        Chart::new("Regret and its bound", "log10 of Bε", "log10 of the largest regret").size(PANEL.0, PANEL.1);
    let labels = n.keys("theory", &[problem, "theorem"]);
    let losses = n.keys("theory", &[problem, "theorem", labels.first()?, "losses"]);
    let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
    for (loss, ink) in losses.iter().zip(colour::SERIES) {
        let mut points = Vec::new();
        for k in &labels {
            let get = |what| n.get("theory", &[problem, "theorem", k, "losses", loss, what]);
            let (bound, regret) = (get("bound")?.log10(), get("regret_largest")?.max(1e-6).log10());
            ends = (ends.0.min(bound), ends.1.max(bound));
            points.push((bound, regret));
        }
        chart = chart.points(Points::new(loss.clone(), ink, points));
    }
    let line = Line::new("regret = Bε", colour::INK, vec![(ends.0, ends.0), (ends.1, ends.1)]).dashed();
    Some(chart.line(line).draw())
}

fn partitions(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let names = n.keys("theory", &[problem, "partitions"]);
    let get = |name: &str, what: &str| n.get("theory", &[problem, "partitions", name, what]);
    let mut chart = Chart::new("Excess of one action per cell", "cells", "cost per query").size(PANEL.0, PANEL.1);
    let mut all: Vec<f64> = Vec::new();
    for (family, words, ink) in
        [("top-class", "cells on predictions", colour::BLUE), ("features", "cells on x", colour::ORANGE)]
    {
        let mut found: Vec<(f64, f64, f64)> = Vec::new();
        for name in names.iter().filter(|name| name.starts_with(family)) {
            found.push((get(name, "cells")?, get(name, "excess_largest")?, get(name, "bound")?));
        }
        if found.is_empty() {
            continue;
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.extend(found.iter().map(|found| found.0));
        let line = |pick: fn(&(f64, f64, f64)) -> f64| found.iter().map(|found| (found.0, pick(found))).collect();
        chart = chart
            .line(Line::new(format!("{words}: largest excess"), ink, line(|found| found.1)))
            .line(Line::new(format!("{words}: bound"), ink, line(|found| found.2)).dashed());
    }
    all.sort_by(f64::total_cmp);
    Some(limit_to_values(chart, &all).draw())
}
