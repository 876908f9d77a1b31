//! Held-out costs, gains and savings from few labels, compared with the truth.

use pointsman::task::Named;
use pointsman::{Evaluation, Oracle, Partition, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;

/// Losses, and the price of routing under each.
const LOSSES: [(&str, f64); 4] = [("brier", 0.3), ("cross-entropy", 0.4), ("zero-one", 0.2), ("asymmetric:2", 0.4)];
const PARTITIONS: [&str; 2] = ["forest:30", "top-class:5"];
const LABELS_PER_ITEM: [u32; 3] = [2, 3, 5];
const ROWS: usize = 600;
const POPULATION: usize = 20_000;

/// Draws items that differ in a feature but not in the prediction: easy items, items that the model gets wrong, and
/// items that are ambiguous for everybody. The second table has the truth.
fn draw_items(random: &mut Random, rows: usize, labels: u32) -> Result<(Table, Table)> {
    let (mut probs, mut features, mut truth, mut votes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (kind, sharp) = (random.uniform(), random.uniform());
        let of_one = |p: [f64; 3]| p.map(|x| x / p.iter().sum::<f64>());
        let p = if kind < 0.45 {
            [0.96 - 0.1 * sharp, 0.03 + 0.1 * sharp, 0.01]
        } else if kind < 0.7 {
            [0.05, 0.92, 0.03]
        } else {
            of_one([0.45, 0.2 + 0.3 * sharp, 0.2])
        };
        probs.extend(of_one([0.55 + 0.3 * sharp, 0.25, 0.12]));
        features.extend([kind + 0.08 * (random.uniform() - 0.5), random.uniform()]);
        let mut counts = [0; 3];
        for _ in 0..labels {
            let place = random.uniform();
            counts[if place <= p[0] { 0 } else { usize::from(place > p[0] + p[1]) + 1 }] += 1;
        }
        votes.extend(counts);
        truth.extend(p);
    }
    let table = Table::new(["easy", "other", "rare"], probs)?.with_votes(votes)?;
    let table = table.with_features(["kind", "noise"], features)?;
    Ok((table.clone(), table.with_truth(truth)?))
}

/// An estimate with its standard error, the uncorrected estimate, and the truth.
struct EstimateWithTruth {
    corrected: f64,
    /// The interval identified by the labels; a point where the estimate is identified.
    identified: [f64; 2],
    error: f64,
    plain: f64,
    truth: f64,
}

/// The router's cost, gain, and saving against the best threshold, in one world.
fn simulate_world(
    seed: u64,
    loss: &str,
    price: f64,
    partition: &Partition,
    labels: u32,
) -> Result<[EstimateWithTruth; 3]> {
    let mut random = Random::new(seed, "numbers-costs");
    let (calibration, _) = draw_items(&mut random, ROWS, labels)?;
    let task = Task::new(loss.parse()?).route("expert", Oracle::bayes(), price)?;
    let policy = Router::calibrate(&calibration, partition)?.policy(&task)?;
    let (held_out, _) = draw_items(&mut random, ROWS, labels)?;
    let (_, population) = draw_items(&mut Random::new(0, "numbers-population"), POPULATION, 2)?;
    let evaluate = |table: &Table| policy.replay(table)?.evaluate(&policy);
    let (found, truth) = (evaluate(&held_out)?, evaluate(&population)?);
    let cost = |costs: Option<&Named<f64>>| costs.and_then(|costs| costs.get("router").copied()).unwrap_or(f64::NAN);
    let of = |gains: Option<&Named<Option<f64>>>, name: &str| {
        gains.and_then(|gains| gains.get(name).copied().flatten()).unwrap_or(f64::NAN)
    };
    let saving = |evaluation: &Evaluation| {
        let saving = evaluation.savings.as_ref().and_then(|savings| savings.get("best-threshold").copied());
        let nothing = (f64::NAN, f64::NAN, [f64::NAN; 2]);
        saving.map_or(nothing, |it| {
            (it.estimate, it.standard_error.unwrap_or(f64::NAN), it.identified.unwrap_or([it.estimate; 2]))
        })
    };
    let corrected = cost(found.corrected_cost.as_ref());
    let gain = of(found.corrected_gain.as_ref(), "higher-order");
    let (saved, saved_error, saved_identified) = saving(&found);
    Ok([
        EstimateWithTruth {
            corrected,
            identified: found.corrected_identified.get("router").copied().unwrap_or([corrected; 2]),
            error: of(found.corrected_standard_error.as_ref(), "router"),
            plain: cost(Some(&found.mean_cost)),
            truth: cost(Some(&truth.mean_cost)),
        },
        EstimateWithTruth {
            corrected: gain,
            identified: [gain; 2],
            error: of(found.corrected_gain_standard_error.as_ref(), "higher-order"),
            plain: of(Some(&found.gain), "higher-order"),
            truth: of(Some(&truth.gain), "higher-order"),
        },
        EstimateWithTruth {
            corrected: saved,
            identified: saved_identified,
            error: saved_error,
            plain: f64::NAN,
            truth: saving(&truth).0,
        },
    ])
}

fn summary(found: &[&EstimateWithTruth]) -> Value {
    let n = found.len() as f64;
    let mean = |value: &dyn Fn(&EstimateWithTruth) -> f64| found.iter().map(|it| value(it)).sum::<f64>() / n;
    let covered = mean(&|it| f64::from(u8::from((it.corrected - it.truth).abs() <= 1.96 * it.error)));
    let within = |it: &EstimateWithTruth| {
        let ([low, high], error) = (it.identified, 1.96 * it.error);
        f64::from(u8::from(low - error <= it.truth && it.truth <= high + error))
    };
    let bias = mean(&|it| it.corrected - it.truth);
    let spread = mean(&|it| (it.corrected - it.truth - bias).powi(2));
    json!({
        "truth": mean(&|it| it.truth),
        "plain_bias": mean(&|it| it.plain - it.truth),
        "bias": bias,
        "bias_error": (spread / (n - 1.0).max(1.0)).sqrt(),
        "standard_error": mean(&|it| it.error),
        "coverage": covered,
        "open": [mean(&|it| it.identified[0] - it.corrected), mean(&|it| it.identified[1] - it.corrected)],
        "range_coverage": mean(&within),
    })
}

/// Simulates every loss, partition and number of labels.
pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut settings = Vec::new();
    for (loss, price) in LOSSES {
        for partition in PARTITIONS {
            for labels in LABELS_PER_ITEM {
                let parsed: Partition = partition.parse()?;
                let found: Vec<[EstimateWithTruth; 3]> = (0..worlds as u64)
                    .into_par_iter()
                    .map(|seed| simulate_world(seed, loss, price, &parsed, labels))
                    .collect::<Result<_>>()?;
                let of = |what: usize| summary(&found.iter().map(|it| &it[what]).collect::<Vec<_>>());
                settings.push(json!({
                    "loss": loss, "partition": partition, "labels": labels,
                    "cost": of(0), "gain": of(1), "saving": of(2),
                }));
            }
        }
    }
    Ok(json!({ "rows": ROWS, "worlds": worlds, "settings": settings }))
}

pub(super) fn section(numbers: &Value) -> String {
    let mut page = format!(
        "## Held-out costs, gains and savings\n\n\
         `evaluate` judges a policy by the labels of held-out rows. A truth made of two or three labels agrees with itself too well, so the \
         mean by the labels is too low wherever rows are routed. `corrected_cost` takes that out row by row: under the Brier loss by \
         Û = k/(k − 1)·(1 − ‖ȳ‖²), which is unbiased for every row, under other losses by a polynomial in the row's labels that \
         follows the bias of its group; there a part of the bias stays. `corrected_standard_error` is that of the rows and, where no \
         unbiased estimate exists, of how far two corrections differ. `corrected_identified` is the range \
         that k labels leave open, however many rows there are: *open* in the table, below and above the estimate; *covers* is how often it holds the truth if widened by 1.96 standard \
         errors. `corrected_gain` is what rankings are compared by; what the best possible order saves is estimated at shrunken snapshots, and half of the \
         difference to posterior draws from the same law is part of the standard error. `savings` compares \
         with the mean of the best thresholds chosen on the rows themselves, which look too cheap, and chosen on other held-out rows, \
         which are too dear by about as much.\n\n\
         {} worlds of three classes, {} calibration and {} held-out rows, in which a feature tells items that are ambiguous for everybody \
         from items that the model gets wrong.\n\n\
         | loss | partition | labels | true cost | bias by the labels | bias corrected | coverage | open | covers | gain: bias by the labels | corrected | coverage | \
         saving: bias | coverage | covers |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        numbers["worlds"], numbers["rows"], numbers["rows"]
    );
    let at = |value: &Value, places: usize| value.as_f64().map_or("–".to_owned(), |x| format!("{x:.places$}"));
    for row in numbers["settings"].as_array().into_iter().flatten() {
        let (cost, gain, saving) = (&row["cost"], &row["gain"], &row["saving"]);
        page += &format!(
            "| {} | {} | {} | {} | {} | {} ± {} | {} | {} to {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row["loss"].as_str().unwrap_or_default(),
            row["partition"].as_str().unwrap_or_default(),
            row["labels"],
            at(&cost["truth"], 3),
            at(&cost["plain_bias"], 4),
            at(&cost["bias"], 4),
            at(&cost["bias_error"], 4),
            at(&cost["coverage"], 2),
            at(&cost["open"][0], 3),
            at(&cost["open"][1], 3),
            at(&cost["range_coverage"], 2),
            at(&gain["plain_bias"], 3),
            at(&gain["bias"], 3),
            at(&gain["coverage"], 2),
            at(&saving["bias"], 4),
            at(&saving["coverage"], 2),
            at(&saving["range_coverage"], 2),
        );
    }
    page
}
