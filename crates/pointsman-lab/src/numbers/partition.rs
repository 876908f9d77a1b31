//! The default partition: the cost of `auto` compared with its candidates, and the expected costs of pooled cells.

use pointsman::{CellId, Loss, Oracle, Partition, Policy, Router, Table, Task};
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::random::Random;

/// Queries with known true costs.
const QUERIES: usize = 4_000;

/// Worlds: classes, what the features reveal, calibration rows.
const WORLDS: [(usize, &str, usize); 7] = [
    (3, "informative", 300),
    (3, "informative", 1_000),
    (3, "noise", 300),
    (3, "noise", 1_000),
    (2, "none", 300),
    (3, "none", 300),
    (80, "none", 300),
];

/// Labels per item.
const LABELS_PER_ITEM: usize = 2;

/// The paper's cells, the former default, followed by the candidates of `auto`.
const PARTITIONS: [&str; 5] = ["top-class:10", "pooled", "tree", "honest-forest:200", "forest:200"];

/// The number of partitions, `top-class:10` and `pooled`, for which the optimism of the cells' own estimates is
/// measured.
const PARTITIONS_WITH_CELLS: usize = 2;

/// The losses of the tasks, and the number of tasks per loss.
const LOSSES: [&str; 3] = ["brier", "zero-one", "cross-entropy"];
const TASKS_PER_LOSS: usize = 3;

pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut rows = Vec::new();
    for (classes, features, count) in WORLDS {
        let queries = draw(&mut Random::new(0, "partition queries"), classes, features, QUERIES)?;
        let mut costs = vec![Vec::new(); PARTITIONS.len()];
        let (mut auto, mut in_sample) = (Vec::new(), vec![Vec::new(); PARTITIONS_WITH_CELLS]);
        // Per loss: mean errors of the promises per world, and whether each promise covers the truth.
        let (mut promised, mut covers) = (vec![Vec::new(); LOSSES.len()], vec![Vec::new(); LOSSES.len()]);
        for seed in 0..worlds as u64 {
            let table = draw(&mut Random::new(seed, "partition rows"), classes, features, count)?;
            for (place, text) in PARTITIONS.iter().enumerate() {
                let found = Costs::measure(&Router::calibrate(&table, &text.parse::<Partition>()?)?, &queries)?;
                costs[place].push(found.truth);
                if place < PARTITIONS_WITH_CELLS {
                    in_sample[place].push(found.in_sample - found.truth);
                }
            }
            let router = Router::calibrate(&table, &Partition::auto())?;
            auto.push(Costs::measure(&router, &queries)?.truth);
            let mut errors = vec![Vec::new(); LOSSES.len()];
            for (place, task) in tasks()?.iter().enumerate() {
                let loss = place / TASKS_PER_LOSS;
                let policy = router.policy(task)?;
                let (Some(promise), truth) = (policy.promise(), true_cost(&policy, &queries)?) else { continue };
                errors[loss].push(promise.cost - truth);
                let ([low, high], error) =
                    (promise.identified.unwrap_or([promise.cost; 2]), 1.96 * promise.standard_error);
                covers[loss].push(f64::from(u8::from(low - error <= truth && truth <= high + error)));
            }
            // Worlds without a promise are skipped.
            for (errors, promised) in errors.iter().zip(&mut promised).filter(|(errors, _)| !errors.is_empty()) {
                promised.push(mean(errors)[0]);
            }
        }
        let means: Vec<f64> = costs.iter().map(|costs| mean(costs)[0]).collect();
        let best = (1..PARTITIONS.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(1);
        let in_hindsight = |world: usize| costs[1..].iter().map(|costs| costs[world]).fold(f64::INFINITY, f64::min);
        let above = |other: &dyn Fn(usize) -> f64| {
            mean(&auto.iter().enumerate().map(|(world, cost)| cost - other(world)).collect::<Vec<_>>())
        };
        let by_loss = |value: &dyn Fn(usize) -> Value| {
            (0..LOSSES.len()).map(|loss| (LOSSES[loss].into(), value(loss))).collect::<Map<_, _>>()
        };
        rows.push(json!({
            "classes": classes, "features": features, "rows": count, "costs": means, "auto": mean(&auto)[0],
            "best": PARTITIONS[best], "above_best": above(&|world| costs[best][world]),
            "above_best_in_hindsight": above(&in_hindsight),
            "own_minus_true": in_sample.iter().map(|values| mean(values)).collect::<Vec<_>>(),
            "promised_minus_true": by_loss(&|loss| json!(mean(&promised[loss]))),
            "promise_covers": by_loss(&|loss| json!(mean(&covers[loss])[0])),
        }));
    }
    Ok(json!({ "worlds": worlds, "labels": LABELS_PER_ITEM, "partitions": PARTITIONS, "settings": rows }))
}

/// The mean over worlds and its standard error.
fn mean(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    [mean, (squares / (n * (n - 1.0).max(1.0))).sqrt()]
}

pub(super) fn section(numbers: &Value) -> String {
    let number = |value: &Value| format!("{:.4}", value.as_f64().unwrap_or(f64::NAN));
    let signed = |value: &Value| match [0, 1].map(|place| value[place].as_f64()) {
        [Some(mean), Some(error)] => format!("{mean:+.4} ± {error:.4}"),
        _ => "–".to_owned(),
    };
    let mut page = format!(
        "## The default partition\n\n\
         `auto` takes the partition that costs least on rows left out (five folds, twelve standard tasks of its own). Here true costs per query are known: means over nine \
         other tasks (Brier, zero-one and cross-entropy, with two prices of the oracle and with abstention), {} worlds per line, {} labels per item. \
         `top-class:10` was the default before.\n\n\
         | classes | features | rows | top-class:10 | pooled | tree | honest-forest:200 | forest:200 | auto | auto above the best candidate | above the best in hindsight |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
        numbers["worlds"], numbers["labels"]
    );
    let settings = || numbers["settings"].as_array().into_iter().flatten();
    let kind = |row: &Value| {
        format!("| {} | {} | {} |", row["classes"], row["features"].as_str().unwrap_or_default(), row["rows"])
    };
    for row in settings() {
        let costs: Vec<String> = row["costs"].as_array().into_iter().flatten().map(&number).collect();
        let above = ["above_best", "above_best_in_hindsight"].map(|key| signed(&row[key]));
        page += &format!("{} {} | {} | {} |\n", kind(row), costs.join(" | "), number(&row["auto"]), above.join(" | "));
    }
    page += "\nThe best candidate is the one with the lowest mean over the worlds of a line; the best in hindsight is the cheapest in each single world, which nobody can \
             know. ± is one standard error over worlds.\n\n\
             Small cells flatter themselves, since the cheapest of several noisy costs is too cheap: the mean of the cells' own cheapest costs minus the true cost, over all \
             nine tasks. The same of what `auto` promises (cross-fitted or out of bag, as `show` prints it), loss by loss, and how often the true cost is within the range that the labels \
             leave open, widened by 1.96 standard errors:\n\n\
             | classes | features | rows | own costs: top-class:10 | own costs: pooled | promise of auto: brier | covers | zero-one | covers | cross-entropy | covers |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in settings() {
        let [cells, pooled] = [0, 1].map(|place| signed(&row["own_minus_true"][place]));
        let promised = LOSSES.map(|loss| {
            let covers = row["promise_covers"][loss].as_f64().map_or("–".to_owned(), |share| format!("{share:.2}"));
            format!("{} | {covers}", signed(&row["promised_minus_true"][loss]))
        });
        page += &format!("{} {cells} | {pooled} | {} |\n", kind(row), promised.join(" | "));
    }
    page + "\nPromises under Brier have no bias to speak of, and those under the cross-entropy have what two labels per item do not identify: among 80 classes two labels hardly ever show \
            a rare one, and laws of p\\* that agree in all pairs of labels differ by more than a nat in the entropy. That is why the range is printed beside the \
            promise. The choice itself is not part of a promise: the rows that chose the partition also judge it.\n"
}

fn tasks() -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for (loss, unit) in [(Loss::brier(), 0.3), (Loss::zero_one(), 0.25), (Loss::cross_entropy(), 0.5)] {
        let routed = |price: f64| Task::new(loss.clone()).route("expert", Oracle::bayes(), price * unit);
        tasks.extend([routed(0.3)?, routed(0.8)?, routed(0.4)?.abstain(2.0 * unit)?]);
    }
    Ok(tasks)
}

/// Costs per query, averaged over all tasks.
struct Costs {
    truth: f64,
    /// By the cells' own estimates; not meaningful for a forest.
    in_sample: f64,
}

impl Costs {
    fn measure(router: &Router, queries: &Table) -> Result<Self> {
        let tasks = tasks()?;
        let (mut costs, part) = (Self { truth: 0.0, in_sample: 0.0 }, 1.0 / tasks.len() as f64);
        for task in &tasks {
            let policy = router.policy(task)?;
            costs.truth += part * true_cost(&policy, queries)?;
            costs.in_sample += part * in_sample_cost(&policy);
        }
        Ok(costs)
    }
}

fn true_cost(policy: &Policy, queries: &Table) -> Result<f64> {
    let (task, mut sum) = (policy.task(), 0.0);
    let taken = policy.values(&policy.decide_batch(queries)?, |decision| decision.code());
    for (row, action) in taken.into_iter().enumerate() {
        let truth = queries.truth(row).unwrap_or_default();
        sum += match action {
            Some(1) => task.loss().entropy(truth) + task.routes()[0].price(),
            Some(2) => task.abstain_price().unwrap_or(f64::NAN),
            _ => task.loss().expected(truth, &queries.prediction(row)),
        };
    }
    Ok(sum / queries.rows() as f64)
}

/// The expected cost by the cells' own estimates.
fn in_sample_cost(policy: &Policy) -> f64 {
    let (mut cost, mut weight) = (0.0, 0.0);
    for decision in (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))) {
        let rows = decision.estimate().weight;
        cost += rows * decision.costs().iter().copied().fold(f64::INFINITY, f64::min);
        weight += rows;
    }
    cost / weight
}

/// Draws items on which the model is wrong or annotators disagree, as revealed by the first two features or by
/// confidence and class.
fn draw(random: &mut Random, classes: usize, features: &str, rows: usize) -> Result<Table> {
    let (mut probs, mut truth, mut votes, mut values) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let spread = if classes > 10 { 2.5 } else { 1.5 };
        let logits: Vec<f64> = (0..classes).map(|_| spread * random.normal()).collect();
        let prediction = softmax(&logits, 1.2);
        let x: Vec<f64> = (0..10).map(|_| random.uniform()).collect();
        let top = prediction.iter().copied().fold(0.0, f64::max);
        let (wrong, scale) = if features == "informative" {
            (x[0] > 0.7, if x[1] > 0.5 { 0.3 } else { 1.5 })
        } else {
            let often = if prediction[0] == top { 0.7 } else { 0.3 };
            (random.uniform() < often * (1.2 - top).min(1.0), 0.3 + 0.9 * top * top)
        };
        let mut moved = logits;
        if wrong {
            moved.rotate_right(1 + random.below(classes - 1));
        }
        let law = softmax(&moved, if wrong { 1.5 } else { scale });
        let mut counts = vec![0; classes];
        for _ in 0..LABELS_PER_ITEM {
            let (place, mut sum) = (random.uniform(), 0.0);
            let class = law.iter().position(|p| {
                sum += p;
                place <= sum
            });
            counts[class.unwrap_or(classes - 1)] += 1;
        }
        probs.extend(prediction);
        truth.extend(law);
        votes.extend(counts);
        values.extend(x);
    }
    let table = Table::new((0..classes).map(|class| format!("c{class}")), probs);
    let table = table?.with_votes(votes)?.with_truth(truth)?;
    Ok(match features {
        "none" => table,
        _ => table.with_features((0..10).map(|i| format!("f{i}")), values)?,
    })
}

fn softmax(logits: &[f64], scale: f64) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let p: Vec<f64> = logits.iter().map(|x| (scale * (x - most)).exp()).collect();
    let sum: f64 = p.iter().sum();
    p.into_iter().map(|x| x / sum).collect()
}
