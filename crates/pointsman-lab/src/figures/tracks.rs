//! Three tracks: cost against the price of the strong model.

use pointsman::evaluate::rule_name;
use pointsman_report::chart::{Chart, Picture, colour, sheet};

use super::{PANEL, line, numeric_keys};
use crate::paper::Numbers;

const SHOWN: [(&str, &str); 7] = [
    ("always-route:strong", colour::GREY),
    ("booster", colour::ORANGE),
    ("two thresholds", colour::VERMILLION),
    ("top-class:10", colour::SKY),
    ("confidence:20", colour::GREEN),
    ("forest:200", colour::BLUE),
    ("pointwise-optimal", colour::INK),
];

pub(super) fn figure(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let (prices, x) = numeric_keys(n, "tracks", &[problem, "prices"]);
    let mut costs = Chart::new("Mean cost per image", "price of the strong model", "mean cost (Brier points)")
        .size(PANEL.0, PANEL.1);
    let mut above =
        Chart::new("Cost above the best pair of thresholds", "price of the strong model", "difference in cost")
            .size(PANEL.0, PANEL.1);
    for (name, ink) in SHOWN {
        let cost = |price: &String| n.get("tracks", &[problem, "prices", price, "costs", name]);
        let means: Vec<f64> = prices.iter().map(cost).collect::<Option<_>>()?;
        // The best action per image in hindsight is far below all others.
        if name != "pointwise-optimal" {
            costs = costs.line(line(&rule_name(name), ink, &x, &means, &[]));
        }
        if ["booster", "top-class:10", "confidence:20", "forest:200"].contains(&name) {
            let paired = |price: &String| {
                let at = |name| ["prices", price.as_str(), "costs", name];
                n.difference("tracks", problem, &at(name), &at("two thresholds"))
            };
            let found = prices.iter().map(paired).collect::<Option<Vec<_>>>()?;
            let (mean, error): (Vec<f64>, Vec<f64>) =
                found.iter().map(|found| (found.mean, found.error.unwrap_or(0.0))).unzip();
            above = above.line(line(&rule_name(name), ink, &x, &mean, &error));
        }
    }
    let pictures = vec![
        costs.draw(),
        above.draw(),
        shares(n, problem, "forest:200", &prices, &x)?,
        shares(n, problem, "two thresholds", &prices, &x)?,
    ];
    let caption = "A weak model, a strong model whose answers were measured, people at 0.1, declining at 0.5; Brier loss. Means over random halves of the \
                   images; bands: the standard error of the paired difference. Below: the share of the images that each action gets.";
    Some(sheet(&format!("Three tracks: {problem}"), caption, 2, pictures))
}

fn shares(n: Numbers<'_>, problem: &str, name: &str, prices: &[String], x: &[f64]) -> Option<Picture> {
    let mut chart = Chart::new(format!("What {name} does"), "price of the strong model", "share of the images")
        .y_percent()
        .y_range(0.0, 1.0)
        .size(PANEL.0, PANEL.1);
    for (action, words, ink) in [
        ("predict", "predict", colour::BLUE),
        ("route:strong", "ask the strong model", colour::ORANGE),
        ("route:people", "ask people", colour::GREEN),
        ("abstain", "abstain", colour::PURPLE),
    ] {
        let share = |price: &String| n.get("tracks", &[problem, "prices", price, "share", name, action]);
        let means: Vec<f64> = prices.iter().map(share).collect::<Option<_>>()?;
        chart = chart.line(line(words, ink, x, &means, &[]));
    }
    Some(chart.draw())
}
