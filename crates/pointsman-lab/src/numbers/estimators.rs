//! How far the estimators of the irreducible loss are from the truth, and what labels identify of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use pointsman::{CellId, Estimator, Loss, Partition, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;

const CLASSES: [usize; 4] = [2, 3, 10, 30];
const LABELS: [usize; 6] = [2, 3, 5, 10, 20, 50];
const ROWS: [usize; 4] = [50, 200, 500, 2000];

/// The estimators compared; the first is the default.
const ESTIMATORS: [Estimator; 5] =
    [Estimator::Auto, Estimator::Shrink, Estimator::Plugin, Estimator::Npmle, Estimator::Dirichlet];

/// What the table shows of all settings measured.
const SHOWN_LABELS: [u64; 4] = [2, 3, 5, 20];
const SHOWN_ROWS: u64 = 200;

/// A law of p*: what it is, and how to draw from it.
type Law = (&'static str, fn(&mut Random, &[f64]) -> Vec<f64>);

const LAWS: [Law; 9] = [
    ("one point", |_, mean| mean.to_vec()),
    ("two atoms", |random, mean| {
        let share = if random.uniform() < 0.5 { 0.2 } else { 0.8 };
        let mut p = edge(mean.len(), 1, share);
        if p.len() > 2 {
            let rest = 0.1 / (p.len() - 2) as f64;
            p.iter_mut().enumerate().for_each(|(class, x)| *x = if class < 2 { 0.9 * *x } else { rest });
        }
        p
    }),
    ("atoms on kinks", |random, mean| match random.uniform() {
        u if u < 0.35 => edge(mean.len(), 1, 0.8),
        u if u < 0.65 => edge(mean.len(), other_class(random, mean), 0.5),
        _ => edge(mean.len(), 1, 1.0),
    }),
    ("smooth Dirichlet", |random, mean| dirichlet(random, mean.iter().map(|x| 6.0 * x))),
    ("sparse Dirichlet", |random, mean| dirichlet(random, mean.iter().map(|x| 0.7 * x))),
    ("edges", |random, mean| {
        let other = other_class(random, mean);
        edge(mean.len(), other, random.uniform())
    }),
    ("easy and ambiguous", |random, mean| {
        if random.uniform() < 0.75 {
            return peak(mean.len(), 0, 0.97);
        }
        let mut p = edge(mean.len(), 1, 0.45);
        if p.len() > 2 {
            p[..3].copy_from_slice(&[0.4, 0.35, 0.25]);
        }
        p
    }),
    ("near vertices", |random, mean| peak(mean.len(), class_of(random, mean), 0.95)),
    ("wide Dirichlet", |random, mean| dirichlet(random, mean.iter().map(|_| if mean.len() > 3 { 0.5 } else { 1.0 }))),
];

/// `share` on the first class, the rest on another.
fn edge(classes: usize, other: usize, share: f64) -> Vec<f64> {
    let mut p = vec![0.0; classes];
    p[0] = share;
    p[other] += 1.0 - share;
    p
}

/// `share` on one class, the rest spread evenly.
fn peak(classes: usize, class: usize, share: f64) -> Vec<f64> {
    let mut p = vec![(1.0 - share) / (classes - 1) as f64; classes];
    p[class] = share;
    p
}

fn class_of(random: &mut Random, p: &[f64]) -> usize {
    let mut left = random.uniform();
    for (class, share) in p.iter().enumerate() {
        if left < *share {
            return class;
        }
        left -= share;
    }
    0
}

fn other_class(random: &mut Random, mean: &[f64]) -> usize {
    loop {
        let class = class_of(random, mean);
        if class != 0 {
            return class;
        }
    }
}

fn dirichlet(random: &mut Random, parameters: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut p: Vec<f64> = parameters.map(|a| gamma(random, a).max(1e-300)).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|x| *x /= sum);
    p
}

/// A draw of the Gamma distribution, by Marsaglia and Tsang.
fn gamma(random: &mut Random, shape: f64) -> f64 {
    if shape < 1.0 {
        return gamma(random, shape + 1.0) * (1.0 - random.uniform()).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    loop {
        let x = random.normal();
        let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
        if v > 0.0 && (1.0 - random.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// The first class has 0.6, the others share the rest, ever less.
fn mean_of(classes: usize) -> Vec<f64> {
    let others: Vec<f64> = (1..classes).map(|class| (class as f64).powf(-1.2)).collect();
    let sum: f64 = others.iter().sum();
    [0.6].into_iter().chain(others.into_iter().map(|x| 0.4 * x / sum)).collect()
}

fn losses(classes: usize) -> Vec<&'static str> {
    let mut all = vec!["brier", "cross-entropy", "spherical", "zero-one"];
    all.extend_from_slice(if classes == 2 { &["fn-fp:fp=1,fn=4", "three-part"] } else { &["asymmetric:4"] });
    all
}

/// Rows of a law with k labels each, as a router of one cell, and their true distributions.
fn world(random: &mut Random, (_, draw): Law, mean: &[f64], rows: usize, k: usize) -> Result<(Router, Vec<Vec<f64>>)> {
    let classes = mean.len();
    let truth: Vec<Vec<f64>> = (0..rows).map(|_| draw(random, mean)).collect();
    let mut votes = vec![0; rows * classes];
    for (counts, p) in votes.chunks_exact_mut(classes).zip(&truth) {
        (0..k).for_each(|_| counts[class_of(random, p)] += 1);
    }
    let names = (0..classes).map(|class| format!("c{class}"));
    let table = Table::new(names, vec![1.0 / classes as f64; rows * classes])?.with_votes(votes)?;
    Ok((Router::calibrate(&table, &Partition::confidence(1))?, truth))
}

fn mean_entropy(loss: &Loss, truth: &[Vec<f64>]) -> f64 {
    truth.iter().map(|p| loss.entropy(p)).sum::<f64>() / truth.len() as f64
}

/// How many worlds are drawn: fewer where each takes long.
fn worlds_for(worlds: usize, classes: usize, rows: usize) -> usize {
    let share = match classes {
        2 => 4.0,
        3 => 1.5,
        _ => 1.0,
    };
    let share = if rows >= 2000 { share / 2.0 } else { share };
    ((worlds as f64 * share) as usize).max(1)
}

/// Mean square error and bias of each estimator for each loss, in worlds of one law and setting.
fn errors_of(law: Law, classes: usize, k: usize, rows: usize, worlds: usize) -> Result<Vec<[[f64; 2]; 5]>> {
    let (mean, losses) = (mean_of(classes), losses(classes));
    let mut random = Random::new((classes * 1_000_000 + k * 10_000 + rows) as u64, law.0);
    let mut sums = vec![[[0.0; 2]; 5]; losses.len()];
    for _ in 0..worlds {
        let (router, truth) = world(&mut random, law, &mean, rows, k)?;
        for (sums, loss) in sums.iter_mut().zip(&losses) {
            let loss: Loss = loss.parse()?;
            let wanted = mean_entropy(&loss, &truth);
            for (sums, estimator) in sums.iter_mut().zip(ESTIMATORS) {
                if estimator.check_classes(classes).is_err() {
                    *sums = [f64::NAN; 2];
                    continue;
                }
                let policy = router.policy(&Task::new(loss.clone()).estimator(estimator))?;
                let found = policy.cell(CellId(0)).and_then(|decision| decision.irreducible()).unwrap_or(f64::NAN);
                sums[0] += (found - wanted).powi(2) / worlds as f64;
                sums[1] += (found - wanted) / worlds as f64;
            }
        }
    }
    Ok(sums)
}

/// The errors of every estimator in every setting, and the intervals that labels identify.
pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut settings = Vec::new();
    for classes in CLASSES {
        for k in LABELS {
            settings.extend(ROWS.map(|rows| (classes, k, rows)));
        }
    }
    let one = |&(classes, k, rows): &(usize, usize, usize)| -> Result<Vec<Value>> {
        let worlds = worlds_for(worlds, classes, rows);
        let of_laws = LAWS.map(|law| errors_of(law, classes, k, rows, worlds));
        let of_laws = of_laws.into_iter().collect::<Result<Vec<_>>>()?;
        let describe = |(place, loss): (usize, &&str)| {
            let of_estimator = |e: usize| {
                let per_law = LAWS.iter().zip(&of_laws).map(|((name, _), sums)| {
                    let [square, bias] = sums[place][e];
                    ((*name).to_owned(), json!([rounded(square.sqrt()), rounded(bias)]))
                });
                (ESTIMATORS[e].to_string(), Value::Object(per_law.collect()))
            };
            let usable = (0..ESTIMATORS.len()).filter(|&e| ESTIMATORS[e].check_classes(classes).is_ok());
            let errors: serde_json::Map<String, Value> = usable.map(of_estimator).collect();
            json!({ "classes": classes, "loss": loss, "labels": k, "rows": rows, "errors": errors })
        };
        Ok(losses(classes).iter().enumerate().map(describe).collect())
    };
    let measured = settings.par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let settings: Vec<Value> = measured.into_iter().flatten().collect();
    Ok(json!({ "settings": settings, "identified": measure_identified(worlds)? }))
}

/// Width of the interval that labels identify, and how often it holds the truth, with 2,000 rows.
fn measure_identified(worlds: usize) -> Result<Vec<Value>> {
    let settings: Vec<(usize, usize)> =
        [2, 3, 10].into_iter().flat_map(|classes| [2, 3, 5, 20].map(|k| (classes, k))).collect();
    let one = |&(classes, k): &(usize, usize)| -> Result<Vec<Value>> {
        let mean = mean_of(classes);
        let mut random = Random::new((classes * 100 + k) as u64, "identified");
        let losses = losses(classes);
        let mut sums = vec![[0.0; 3]; losses.len()];
        for law in LAWS {
            for _ in 0..worlds {
                let (router, truth) = world(&mut random, law, &mean, 2000, k)?;
                for (sums, loss) in sums.iter_mut().zip(&losses) {
                    let loss: Loss = loss.parse()?;
                    let policy = router.policy(&Task::new(loss.clone()))?;
                    let [low, high] = policy.identified(&router)?[0].unwrap_or([f64::NAN; 2]);
                    let wanted = mean_entropy(&loss, &truth);
                    let beyond = (low - wanted).max(wanted - high).max(0.0);
                    *sums = [sums[0] + high - low, sums[1] + f64::from(u8::from(beyond > 0.0)), sums[2].max(beyond)];
                }
            }
        }
        let all = (LAWS.len() * worlds) as f64;
        let describe = |(loss, [width, missed, beyond]): (&&str, [f64; 3])| {
            json!({
                "classes": classes, "labels": k, "loss": loss, "width": rounded(width / all),
                "missed": rounded(missed / all), "farthest": rounded(beyond),
            })
        };
        Ok(losses.iter().zip(sums).map(describe).collect())
    };
    Ok(settings.par_iter().map(one).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Five digits are more than the worlds can tell apart.
fn rounded(x: f64) -> Value {
    json!((x * 1e5).round() / 1e5)
}

/// One setting: root mean square errors by estimator and law.
struct Setting<'a> {
    classes: u64,
    loss: &'a str,
    labels: u64,
    rows: u64,
    errors: BTreeMap<&'a str, BTreeMap<&'a str, f64>>,
}

impl<'a> Setting<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let errors = value["errors"].as_object()?.iter().map(|(estimator, laws)| {
            let laws = laws.as_object()?.iter().map(|(law, numbers)| Some((law.as_str(), numbers[0].as_f64()?)));
            Some((estimator.as_str(), laws.collect::<Option<BTreeMap<_, _>>>()?))
        });
        Some(Self {
            classes: value["classes"].as_u64()?,
            loss: value["loss"].as_str()?,
            labels: value["labels"].as_u64()?,
            rows: value["rows"].as_u64()?,
            errors: errors.collect::<Option<_>>()?,
        })
    }

    /// The error averaged over laws.
    fn mean(&self, estimator: &str) -> Option<f64> {
        let laws = self.errors.get(estimator)?;
        Some(laws.values().sum::<f64>() / laws.len() as f64)
    }

    fn singles(&self) -> impl Iterator<Item = &'a str> {
        self.errors.keys().copied().filter(|estimator| *estimator != "auto").collect::<Vec<_>>().into_iter()
    }

    /// The error of `auto` over that of the best single estimator, averaged over laws.
    fn ratio(&self) -> f64 {
        let best = self.singles().filter_map(|e| self.mean(e)).fold(f64::INFINITY, f64::min);
        self.mean("auto").unwrap_or(f64::NAN) / best
    }

    /// The same law by law, for laws on which the best error is not rounding.
    fn ratios_by_law(&self) -> Vec<(&'a str, f64)> {
        let Some(auto) = self.errors.get("auto") else { return Vec::new() };
        let best =
            |law: &str| self.singles().filter_map(|e| self.errors[e].get(law)).copied().fold(f64::INFINITY, f64::min);
        auto.iter().map(|(&law, &error)| (law, error / best(law).max(1e-3))).collect()
    }
}

/// The section of the page.
pub(super) fn section(numbers: &Value) -> String {
    let settings: Vec<Setting<'_>> =
        numbers["settings"].as_array().into_iter().flatten().filter_map(Setting::read).collect();
    let mut text = String::from(
        "## The irreducible loss from few labels\n\n\
         The mean entropy of the labels' shares (`plugin`, the paper's estimate) is too small; how much too small depends on the law of p\\* within a \
         cell, of which k labels per item show k moments. The default estimator, `auto`, is a rule:\n\n\
         | loss | classes | `auto` is |\n|---|---|---|\n\
         | Brier | any | `shrink`, which is exact for it |\n\
         | cross-entropy | any | `npmle` stopped early, class by class: its entropy is a sum over classes |\n\
         | any other | 2, 3 | `npmle` stopped early |\n\
         | any other | 4 or more | `shrink` |\n\
         | any, in the leaves of a forest | any | `shrink` |\n\n\
         `npmle` starts at a Dirichlet law fitted to the cell and takes 300 steps of expectation maximisation towards the likeliest law. `auto` takes one \
         per 50 labels (with three classes one per 10 rows), from 5 to 300: with few it stays near the Dirichlet law, with many it sees atoms and kinks.\n\n",
    );
    let _ = write!(
        text,
        "Checked with 2, 3, 10 and 30 classes, 2 to 50 labels per item, 50 to 2,000 rows per cell, nine laws of p\\* ({}) and five or six losses: {} \
         settings, all in `docs/results/numbers/estimators.json`. ",
        LAWS.map(|(name, _)| name).join(", "),
        settings.len(),
    );
    text += &met(&settings);
    text += &errors_table(&settings);
    text += &identified_section(numbers);
    text
}

/// Where `auto` keeps within a quarter of the best single estimator, and where not.
fn met(settings: &[Setting<'_>]) -> String {
    let over: Vec<&Setting<'_>> = settings.iter().filter(|setting| setting.ratio() > 1.25).collect();
    let largest = settings.iter().map(Setting::ratio).fold(0.0, f64::max);
    let mut text = format!(
        "Averaged over the laws, the root mean square error of `auto` is at most {largest:.2} times that of the best single estimator of the \
         setting; above 1.25 in {} of {} settings",
        over.len(),
        settings.len(),
    );
    let name = |s: &&Setting<'_>| {
        format!("{}, {} classes, k = {}, {} rows: {:.2}", s.loss, s.classes, s.labels, s.rows, s.ratio())
    };
    if over.is_empty() {
        text += ". ";
    } else {
        let _ = write!(text, " ({}). ", over.iter().map(name).collect::<Vec<_>>().join("; "));
    }
    let mut by_law = BTreeMap::<&str, [usize; 2]>::new();
    for (law, ratio) in settings.iter().flat_map(Setting::ratios_by_law) {
        let counts = by_law.entry(law).or_default();
        counts[0] += usize::from(ratio > 1.25);
        counts[1] += 1;
    }
    let counts: Vec<String> = by_law.iter().map(|(law, [over, all])| format!("{law} {over} of {all}")).collect();
    let _ = write!(
        text,
        "Law by law no rule can do that, since which estimator is best depends on the law, which few labels do not show (`shrink` is \
         exact on one point, `plugin` where labels never differ). Settings above 1.25 by law (errors below 0.001 count as 0.001): {}.\n\n",
        counts.join(", ")
    );
    text
}

fn errors_table(settings: &[Setting<'_>]) -> String {
    let mut text = format!(
        "Root mean square error × 1000, mean over the laws, {SHOWN_ROWS} rows per cell; before, the default was `shrink`:\n\n\
         | classes | loss | labels | auto | shrink | plugin | npmle | dirichlet |\n|---|---|---|---|---|---|---|---|\n"
    );
    for s in settings.iter().filter(|s| s.rows == SHOWN_ROWS && SHOWN_LABELS.contains(&s.labels)) {
        let _ = write!(text, "| {} | `{}` | {} |", s.classes, s.loss, s.labels);
        for estimator in ESTIMATORS.map(|estimator| estimator.to_string()) {
            let shown = s.mean(&estimator).map_or("–".to_owned(), |error| format!("{:.0}", 1000.0 * error));
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn identified_section(numbers: &Value) -> String {
    let mut text = String::from(
        "**What k labels identify.** However many rows there are, k labels per item show the moments of p\\* up to order k and nothing else: laws that agree \
         in them may differ in the irreducible loss. `show` prints that interval (`irreducible_identified` in the JSON): a point for Brier from two labels on; \
         for two classes the least and largest value among all laws with the fitted law of votes (a linear program), for the cross-entropy the sum of such \
         intervals over classes or the polynomial enclosure, else T⁻ to T⁺ and what the Brier loss leaves open. It says nothing about the error of few rows: \
         `--confidence` does. With 2,000 rows, over the nine laws: mean width, share of worlds whose truth lies outside, and how far outside at most \
         (sampling error included).\n\n\
         | classes | loss | labels | mean width | truth outside | by at most |\n|---|---|---|---|---|---|\n",
    );
    for row in numbers["identified"].as_array().into_iter().flatten() {
        if row["loss"] == "brier" {
            continue;
        }
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {:.3} | {:.2} | {:.3} |",
            row["classes"],
            row["loss"].as_str().unwrap_or(""),
            row["labels"],
            number("width"),
            number("missed"),
            number("farthest"),
        );
    }
    text
}
