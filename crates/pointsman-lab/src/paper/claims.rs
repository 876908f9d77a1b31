//! The paper's claims, each decided from the numbers by a written rule.
//!
//! The rules of claims 1 to 7 were written before any numbers were known, those of 8 and 9 before their experiment was
//! run. Other readings are reported next to a verdict and named as such.

use std::collections::BTreeMap;

use serde_json::Value;

use super::numbers::{Difference, Numbers, format_difference, three_decimals};
use super::{Claim, Reading, Verdict};

/// The least difference of gains that counts as "clearly above".
const CLEAR_GAIN_DIFFERENCE: f64 = 0.10;
/// The largest difference of gains that counts as "nearly equal" or "close to".
const CLOSE_GAIN_DIFFERENCE: f64 = 0.03;
/// The least correlation that counts as "highly correlated".
const HIGH_CORRELATION: f64 = 0.8;

const DATA: [&str; 4] = ["cifar10h", "cifar10h-overconfident", "snli", "chaosnli"];
const METHODS: [&str; 3] = ["total-uncertainty", "higher-order", "supervised"];

/// The name of a reading that was written after numbers had been seen.
const RELAXED_READING: &str = "Relaxed reading, written after a first look at the numbers";

/// Decides the paper's claims from the results of the experiments.
#[must_use]
pub fn claims(results: &BTreeMap<String, Value>) -> Vec<Claim> {
    let n = Numbers::new(results);
    vec![
        johnson(n),
        three_steps(n),
        piecewise(n),
        real_data(n),
        flexibility(n),
        three_way(n),
        few_labels(n),
        convergence(n),
        correlation(n),
    ]
}

fn verdict(known: bool, holds: &[bool]) -> Verdict {
    match (known, holds.iter().filter(|&&holds| holds).count()) {
        (false, _) => Verdict::Unknown,
        (_, count) if count == holds.len() => Verdict::Holds,
        (_, 0) => Verdict::Not,
        _ => Verdict::Partly,
    }
}

/// The gains of a problem, for the table under a claim.
fn gains(n: Numbers<'_>, problem: &str, variants: &[&str], names: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for variant in variants {
        for name in names {
            let what = format!("{problem}, {variant}: gain of {name}");
            found.push((what, n.show("routing", &[problem, variant, "gain", name])));
        }
    }
    found
}

fn gain(n: Numbers<'_>, problem: &str, variant: &str, name: &str) -> f64 {
    n.get("routing", &[problem, variant, "gain", name]).unwrap_or(f64::NAN)
}

/// The paired difference of two rankings' gains.
fn gain_difference(n: Numbers<'_>, problem: &str, variant: &str, first: &str, second: &str) -> Option<Difference> {
    n.difference("routing", problem, &[variant, "gain", first], &[variant, "gain", second])
}

/// The gain of the higher-order ranking minus that of total uncertainty.
fn higher_order_gap(n: Numbers<'_>, problem: &str, variant: &str) -> Option<Difference> {
    gain_difference(n, problem, variant, "higher-order", "total-uncertainty")
}

fn mean_of(difference: Option<Difference>) -> f64 {
    difference.map_or(f64::NAN, |difference| difference.mean)
}

fn count_true(list: &[bool]) -> usize {
    list.iter().filter(|&&holds| holds).count()
}

fn johnson(n: Numbers<'_>) -> Claim {
    let above = higher_order_gap(n, "johnson", "recalibrated");
    let short = gain_difference(n, "johnson", "recalibrated", "cell-optimal", "higher-order");
    Claim {
        number: 1,
        figures: &["routing-johnson", "functions-johnson"],
        claim: "Johnson's world, re-calibrated: the higher-order router is clearly above total uncertainty and close to cell-optimal.",
        rule: format!(
            "Clearly above means at least {CLEAR_GAIN_DIFFERENCE} of gain, close means within {CLOSE_GAIN_DIFFERENCE}."
        ),
        found: gains(
            n,
            "johnson",
            &["raw", "recalibrated"],
            &["total-uncertainty", "higher-order", "supervised", "cell-optimal"],
        ),
        verdict: verdict(
            above.is_some(),
            &[mean_of(above) >= CLEAR_GAIN_DIFFERENCE, mean_of(short) <= CLOSE_GAIN_DIFFERENCE],
        ),
        reason: format!(
            "Re-calibrated, it is {} above total uncertainty and {} below the best order of its cells. The middle of the world is noise \
             to the weak model and signal to the oracle, the sides are noise to both; a well-calibrated prediction near ½ says neither.",
            format_difference(above),
            format_difference(short)
        ),
        other: None,
    }
}

fn three_steps(n: Numbers<'_>) -> Claim {
    let gap = higher_order_gap(n, "three-steps", "recalibrated");
    let part = |problem: &str| {
        gain(n, problem, "recalibrated", "total-uncertainty") / gain(n, problem, "recalibrated", "higher-order")
    };
    let (steps, johnson) = (part("three-steps"), part("johnson"));
    let nearly = mean_of(gap).abs() <= CLOSE_GAIN_DIFFERENCE;
    Claim {
        number: 2,
        figures: &["routing-three-steps", "functions-three-steps"],
        claim: "Three steps: routing by total uncertainty is nearly as good as by reducible loss.",
        rule: format!("Nearly as good means within {CLOSE_GAIN_DIFFERENCE} of gain, re-calibrated."),
        found: gains(
            n,
            "three-steps",
            &["raw", "recalibrated"],
            &["total-uncertainty", "higher-order", "cell-optimal"],
        ),
        verdict: verdict(gap.is_some(), &[nearly]),
        reason: format!(
            "Re-calibrated, the difference is {}. Where the world oscillates the weak model says about ½, so what is uncertain is also \
             what an oracle would save. What remains comes from the same region: a prediction that strays from ½ there costs more, all of it \
             reducible, and looks more certain.",
            format_difference(gap)
        ),
        other: Some(Reading {
            name: RELAXED_READING,
            verdict: verdict(gap.is_some(), &[nearly, steps >= 0.85]),
            text: format!(
                "85 % of the gain counts as a part. Total uncertainty reaches {:.0} % of the higher-order gain here, {:.0} % in \
                 Johnson's world.",
                100.0 * steps,
                100.0 * johnson
            ),
        }),
    }
}

fn piecewise(n: Numbers<'_>) -> Claim {
    let over = |name: &str, level: &str| {
        n.difference("routing", "piecewise", &["raw-x", "gain", name], &[level, "gain", name])
    };
    let lower = |level: &str| {
        let at = |variant| [variant, "mean_over_shares", "cell-optimal"];
        n.difference("routing", "piecewise", &at(level), &at("recalibrated-x"))
    };
    let (optimal, router, lower_by) =
        (over("cell-optimal", "raw-30"), over("higher-order", "raw-30"), lower("recalibrated-30"));
    let holds = |all: [Option<Difference>; 3]| all.map(|difference| mean_of(difference) > 0.0);
    let mut found = gains(n, "piecewise", &["raw", "raw-30", "raw-x"], &["higher-order", "cell-optimal"]);
    for variant in ["recalibrated", "recalibrated-30", "recalibrated-x"] {
        let path = ["piecewise", variant, "mean_over_shares", "cell-optimal"];
        found.push((format!("{variant}: mean loss over all shares routed, cell-optimal"), n.show("routing", &path)));
    }
    let by_class = [over("cell-optimal", "raw"), over("higher-order", "raw"), lower("recalibrated")];
    Claim {
        number: 3,
        figures: &["routing-piecewise", "functions-piecewise"],
        claim: "Piecewise: ten equal-size cells on the input x beat thirty equal-size cells on the predictions.",
        rule: "Three comparisons: the gain of the best order of the cells and that of the router's order, over the same raw predictions, \
               and, each re-calibrated on its own cells, the mean loss over all shares routed in the best order."
            .into(),
        found,
        verdict: verdict(optimal.is_some(), &holds([optimal, router, lower_by])),
        reason: format!(
            "Cells on x gain {} more when both are ordered optimally and {} more as estimated. Regions with and without the oscillation \
             share their predictions, and no cells on predictions can tell them apart. Each re-calibrated on its own cells, the mean loss over \
             all shares routed is lower on x by {}.",
            format_difference(optimal),
            format_difference(router),
            five_decimals(lower_by)
        ),
        other: Some(Reading {
            name: "With fifteen cells per predicted class, as this page had it before",
            verdict: verdict(by_class[0].is_some(), &holds(by_class)),
            text: format!(
                "The differences are {}, {} and {}.",
                format_difference(by_class[0]),
                format_difference(by_class[1]),
                five_decimals(by_class[2])
            ),
        }),
    }
}

/// A difference with five decimals.
fn five_decimals(difference: Option<Difference>) -> String {
    let Some(Difference { mean, error }) = difference else { return "–".into() };
    let text = |x: f64| format!("{x:.5}").replace('-', "−");
    error.map_or_else(|| text(mean), |error| format!("{} ± {}", text(mean), text(error)))
}

fn format_small(x: f64) -> String {
    if x.abs() < 0.01 { format!("{x:.5}").replace('-', "−") } else { three_decimals(x) }
}

fn real_data(n: Numbers<'_>) -> Claim {
    let known: Vec<&str> = DATA.into_iter().filter(|name| higher_order_gap(n, name, "raw").is_some()).collect();
    let (mut found, mut shrinks, mut strictly) = (Vec::new(), Vec::new(), Vec::new());
    let (mut text, mut reversed) = (Vec::new(), Vec::new());
    for name in &known {
        let (raw, served) = (higher_order_gap(n, name, "raw"), higher_order_gap(n, name, "recalibrated"));
        found.push((format!("{name}: higher-order above total uncertainty, raw"), format_difference(raw)));
        found.push((format!("{name}: the same, re-calibrated"), format_difference(served)));
        // Where there was no gap, recalibration cannot shrink it.
        let shrunk = mean_of(served).abs() <= mean_of(raw).abs().max(0.01);
        let turned = served.is_some_and(|served| served.mean < 0.0 && -served.mean > served.error.unwrap_or(0.0));
        shrinks.push(shrunk);
        strictly.push(shrunk && !turned);
        text.push(format!("{name} {} → {}", format_difference(raw), format_difference(served)));
        if turned {
            reversed.push(format!("{name} (by {})", three_decimals(-mean_of(served))));
        }
    }
    let (over, plain) = (higher_order_gap(n, "cifar10h-overconfident", "raw"), higher_order_gap(n, "cifar10h", "raw"));
    let large = mean_of(over) >= 0.05 && mean_of(over) > mean_of(plain);
    shrinks.push(large);
    strictly.push(large);
    let all = known.len() == DATA.len();
    Claim {
        number: 4,
        figures: &["routing-cifar10h", "routing-cifar10h-overconfident", "routing-snli", "routing-chaosnli"],
        claim: "Real data: the gap between the higher-order router and total uncertainty shrinks after re-calibration; for an over-confident \
                model it is large before.",
        rule: "On each data set the gap after re-calibration is no larger in size than before, or below 0.01; the over-confident network's gap \
               before it is at least 0.05 and larger than that of the same network trained with augmentation."
            .into(),
        found,
        verdict: verdict(all, &shrinks),
        reason: format!(
            "Gaps in gain on cross-entropy, raw → re-calibrated: {}. The over-confident network's gap before re-calibration is {} against \
             {} of the same network trained with augmentation. {}",
            text.join("; "),
            format_difference(over),
            format_difference(plain),
            if reversed.is_empty() {
                "Nowhere does the order turn by more than its standard error.".to_owned()
            } else {
                format!(
                    "The rule looks at sizes only. In fact the order turns on {}: re-calibrated, total uncertainty is the better ranking \
                     there, by more than the paired standard error.",
                    reversed.join(" and ")
                )
            }
        ),
        other: Some(Reading {
            name: "Stricter reading: a gap that turns by more than its standard error has not shrunk",
            verdict: verdict(all, &strictly),
            text: format!("It shrinks on {} of {} data sets.", count_true(&strictly[..known.len()]), known.len()),
        }),
    }
}

/// Gains on a problem's own loss and on its foreign losses.
struct GainsAcrossLosses {
    on_own_loss: Option<Difference>,
    on_foreign_losses: Option<Difference>,
    retrained: Option<Difference>,
    worst: f64,
}

impl GainsAcrossLosses {
    fn from_results(n: Numbers<'_>, problem: &str, own: &str) -> Self {
        let losses = n.keys("losses", &[problem, "raw"]);
        let foreign: Vec<&str> = losses.iter().map(String::as_str).filter(|loss| *loss != own).collect();
        let mean = |first: &'static str, second: &'static str, losses: &[&str]| {
            let share = 1.0 / losses.len() as f64;
            let mut terms = Vec::new();
            for &loss in losses {
                terms.push((share, vec!["raw", loss, "gain", first]));
                terms.push((-share, vec!["raw", loss, "gain", second]));
            }
            n.contrast("losses", problem, &terms)
        };
        let short = |loss: &&str| mean_of(mean("cell-optimal", "higher-order", &[loss]));
        Self {
            on_own_loss: mean("higher-order", "supervised-static", &[own]),
            on_foreign_losses: mean("higher-order", "supervised-static", &foreign),
            retrained: mean("supervised-retrained", "supervised-static", &foreign),
            worst: foreign.iter().map(short).fold(0.0, f64::max),
        }
    }
}

fn flexibility(n: Numbers<'_>) -> Claim {
    let (mut found, mut behind, mut further, mut ours, mut ahead) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for problem in n.keys("losses", &[]) {
        let own = n.value("losses", &[&problem, "static"]).and_then(Value::as_str).unwrap_or_default();
        let GainsAcrossLosses { on_own_loss, on_foreign_losses, retrained, worst } =
            GainsAcrossLosses::from_results(n, &problem, own);
        found.push((
            format!("{problem}: ours above the static router on its own loss ({own})"),
            format_difference(on_own_loss),
        ));
        found.push((format!("{problem}: the same, mean of the other losses"), format_difference(on_foreign_losses)));
        found.push((
            format!("{problem}: retrained above static, mean of the other losses"),
            format_difference(retrained),
        ));
        found.push((format!("{problem}: ours below cell-optimal, worst of the other losses"), three_decimals(worst)));
        further.push(mean_of(on_foreign_losses) > mean_of(on_own_loss));
        behind.push(mean_of(on_foreign_losses) > mean_of(on_own_loss) && mean_of(on_foreign_losses) > 0.0);
        if mean_of(on_foreign_losses) <= 0.0 {
            ahead.push(problem.clone());
        }
        ours.push(worst <= 2.0 * CLOSE_GAIN_DIFFERENCE);
    }
    let of = behind.len();
    let (stays, late, later) = (count_true(&ours), count_true(&behind), count_true(&further));
    Claim {
        number: 5,
        figures: &["losses-johnson", "losses-cifar10h", "losses-snli", "losses-chaosnli"],
        claim: "A supervised router trained on one loss falls behind on losses it was not trained on; the higher-order router does not.",
        rule: format!(
            "On each problem, on average over the foreign losses, the static router is behind ours, and further than on its own loss; ours \
             is within {} of the best order of its cells on every foreign loss.",
            2.0 * CLOSE_GAIN_DIFFERENCE
        ),
        verdict: verdict(of > 0, &[behind, ours.clone()].concat()),
        reason: format!(
            "The static router is behind ours on foreign losses, and further than on its own, on {late} of {of} problems; ours stays within {} \
             of the best order of its cells on {stays} of {of}.{}",
            2.0 * CLOSE_GAIN_DIFFERENCE,
            if ahead.is_empty() {
                String::new()
            } else {
                format!(
                    " On {} it is still ahead of ours on foreign losses: it sees the input x, our cells see predictions only.",
                    ahead.join(", ")
                )
            }
        ),
        other: Some(Reading {
            name: RELAXED_READING,
            verdict: verdict(of > 0, &[further, ours].concat()),
            text: format!(
                "It is enough that the static router loses more of its lead, or falls further behind, on foreign losses than on its own: so it is \
                 on {later} of {of} problems."
            ),
        }),
        found,
    }
}

fn three_way(n: Numbers<'_>) -> Claim {
    let (mut found, mut never, mut somewhere) = (Vec::new(), Vec::new(), Vec::new());
    let (mut relaxed_never, mut relaxed_somewhere, mut plugin_never) = (Vec::new(), Vec::new(), Vec::new());
    for problem in n.keys("three-way", &[]) {
        for loss in n.keys("three-way", &[&problem, "raw-plugin"]) {
            for variant in ["raw", "raw-plugin"] {
                let list = |key: &str| n.list("three-way", &[&problem, variant, &loss, key]);
                let (Some(above), Some(error), Some(paired)) =
                    (list("above_better_two_way"), list("standard_error"), list("above_standard_error"))
                else {
                    continue;
                };
                let within = |errors: &[f64]| above.iter().zip(errors).all(|(above, error)| *above <= error + 1e-9);
                let below = above.iter().zip(&paired).any(|(above, error)| *above < -error);
                if variant == "raw" {
                    never.push(within(&paired));
                    somewhere.push(below);
                } else {
                    relaxed_never.push(within(&error));
                    relaxed_somewhere.push(below);
                    plugin_never.push(within(&paired));
                }
                let most = above.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let least = above.iter().copied().fold(f64::INFINITY, f64::min);
                let estimator = if variant == "raw" { "shrink" } else { "plugin" };
                found.push((
                    format!(
                        "{problem}, {loss}, `{estimator}`: three-way less the better two-way cost, least / most over β"
                    ),
                    format!("{} / {}", format_small(least), format_small(most)),
                ));
            }
        }
    }
    let of = never.len();
    let (kept, below, by_plugin) = (count_true(&never), count_true(&somewhere), count_true(&plugin_never));
    let (relaxed_kept, relaxed_below) = (count_true(&relaxed_never), count_true(&relaxed_somewhere));
    Claim {
        number: 6,
        figures: &["three-way-johnson", "three-way-cifar10h", "three-way-snli", "three-way-chaosnli"],
        claim: "Predict, route or abstain is never above the better of predict/route and predict/abstain by more than its standard error, \
                and below both somewhere.",
        rule: "With the default estimate of the time, `shrink`, on raw predictions: at every β from 0.1 to 0.8 (α = 0.05, Brier and cross-entropy) \
               the three-way cost exceeds the better two-way cost by at most the standard error of that difference over test rows; at some β it is \
               lower than both by more than one."
            .into(),
        verdict: verdict(of > 0, &[never, somewhere].concat()),
        reason: format!(
            "Never above in {kept} of {of} sweeps, below both somewhere in {below} of {of}; with the paper's estimate, never above in \
             {by_plugin} of {of}. A cell or two near a tie is decided wrongly for want of calibration rows. And data sets are judged by the mean \
             of the few labels a row has, as the paper does: that judge shares the bias of the plug-in estimate, and five labels per row (snli) \
             make it large. In the synthetic world, where the truth is known, the two estimates agree."
        ),
        other: Some(Reading {
            name: RELAXED_READING,
            verdict: verdict(of > 0, &[relaxed_never, relaxed_somewhere].concat()),
            text: format!(
                "With the paper's estimate and the standard error of the cost itself, which is several times larger than that of the \
                 difference: never above in {relaxed_kept} of {of} sweeps, below both somewhere in {relaxed_below} of {of}."
            ),
        }),
        found,
    }
}

fn few_labels(n: Numbers<'_>) -> Claim {
    let (mut found, mut over, mut right) = (Vec::new(), Vec::new(), Vec::new());
    for problem in n.keys("labels", &[]) {
        for loss in n.keys("labels", &[&problem, "labels", "3"]) {
            let at = |estimator: &str, what: &str| {
                n.get("labels", &[&problem, "labels", "3", &loss, estimator, what]).unwrap_or(f64::NAN)
            };
            let net = |estimator: &str| at(estimator, "over_routed") - at(estimator, "under_routed");
            let polynomial = net("polynomial");
            found.push((
                format!("{problem}, {loss}, k = 3: share over-routed less under-routed, plugin / shrink / polynomial"),
                format!(
                    "{} / {} / {}",
                    three_decimals(net("plugin")),
                    three_decimals(net("shrink")),
                    if polynomial.is_finite() { three_decimals(polynomial) } else { "–".into() }
                ),
            ));
            over.push(net("plugin") > 0.02);
            right.push(net("shrink").abs() <= 0.05 && net("shrink") < net("plugin").max(0.02));
        }
    }
    let (too_many, just, of) = (count_true(&over), count_true(&right), over.len());
    Claim {
        number: 7,
        figures: &["labels-johnson", "labels-chaosnli"],
        claim: "With three labels per item the paper's plug-in estimate over-routes; `shrink` does not.",
        rule: "Prices at the quartiles of the reducible loss that all labels give. Over-routes means more than 2 % of the rows too many, net; does \
               not means within 5 % of the right share, and below the plug-in."
            .into(),
        verdict: verdict(of > 0, &[over, right].concat()),
        reason: format!(
            "`plugin` routes more than 2 % of the rows too many in {too_many} of {of} cases; `shrink` is within 5 % of the right share, and below \
             `plugin`, in {just} of {of}. The exceptions are decision losses: their kinks hide the bias where annotators nearly agree \
             (cifar10h), and two moments do not see them all (`fn-fp`). `polynomial` is what the paper recommends for few labels: unbiased \
             estimates through the closest polynomial of degree k (see [few labels](#few-labels-the-papers-own-estimators))."
        ),
        found,
        other: None,
    }
}

fn convergence(n: Numbers<'_>) -> Claim {
    let (mut found, mut converges, mut close) = (Vec::new(), Vec::new(), Vec::new());
    let known: Vec<&str> = DATA.into_iter().filter(|name| higher_order_gap(n, name, "raw").is_some()).collect();
    for problem in &known {
        let short = |variant, method| gain_difference(n, problem, variant, "cell-optimal", method);
        let closer = |method| {
            let at = |variant, name| vec![variant, "gain", name];
            let terms = [
                (1.0, at("raw", "cell-optimal")),
                (-1.0, at("raw", method)),
                (-1.0, at("recalibrated", "cell-optimal")),
                (1.0, at("recalibrated", method)),
            ];
            n.contrast("routing", problem, &terms)
        };
        for method in METHODS {
            let (before, after) = (short("raw", method), short("recalibrated", method));
            let what = format!("{problem}: {method} below cell-optimal, raw → re-calibrated; closer by");
            found.push((
                what,
                format!(
                    "{} → {}; {}",
                    format_difference(before),
                    format_difference(after),
                    format_difference(closer(method))
                ),
            ));
        }
        converges.push(count_true(&METHODS.map(|method| closer(method).is_some_and(Difference::is_positive))) >= 2);
        close.push(
            count_true(&METHODS.map(|method| mean_of(short("recalibrated", method)) <= CLOSE_GAIN_DIFFERENCE)) >= 2,
        );
    }
    let (moves, near, of) = (count_true(&converges), count_true(&close), known.len());
    Claim {
        number: 8,
        figures: &[],
        claim: "Real data: after re-calibration most methods converge towards the bucket-optimal routing curve.",
        rule: format!(
            "Methods are total uncertainty, higher-order and supervised; most means two of three. On each data set most come closer to the gain of \
             the best order of the cells, by more than the paired standard error, and most end within {CLOSE_GAIN_DIFFERENCE} of it. The rule was written when the \
             gains of one split were known, not those of the twenty."
        ),
        verdict: verdict(of == DATA.len(), &[converges, close].concat()),
        reason: format!(
            "Most methods come closer on {moves} of {of} data sets and end within {CLOSE_GAIN_DIFFERENCE} on {near} of {of}. The best order of the cells is found on \
             the test rows themselves, and with fifty rows per cell it profits from their noise: no method can reach it."
        ),
        found,
        other: None,
    }
}

fn correlation(n: Numbers<'_>) -> Claim {
    let at = |problem: &str, variant: &str| {
        let loss = n.value("correlation", &[problem, "loss"]).and_then(Value::as_str).unwrap_or_default();
        let path = [problem, variant, loss, "correlation", "irreducible-total-cells"];
        (n.get("correlation", &path), n.show("correlation", &path))
    };
    let mut found = Vec::new();
    for problem in n.keys("correlation", &[]) {
        let what = format!("{problem}: correlation of total and irreducible loss over cells, raw / re-calibrated");
        found.push((what, format!("{} / {}", at(&problem, "raw").1, at(&problem, "recalibrated").1)));
    }
    let data: Vec<f64> = DATA.into_iter().filter_map(|problem| at(problem, "raw").0).collect();
    let johnson = at("johnson", "raw").0.unwrap_or(f64::NAN);
    let high: Vec<bool> = data.iter().map(|r| *r >= HIGH_CORRELATION).collect();
    let above = data.iter().all(|r| *r > johnson);
    Claim {
        number: 9,
        figures: &["correlation-johnson", "correlation-cifar10h", "correlation-snli", "correlation-chaosnli"],
        claim: "Real data: total and irreducible loss are highly correlated across the level sets of standard models.",
        rule: format!(
            "Level sets are the router's cells, weighted by traffic; predictions as trained; highly means a correlation of at least {HIGH_CORRELATION} on each data \
             set, and more than in Johnson's world, where decomposition matters."
        ),
        verdict: verdict(data.len() == DATA.len(), &[high.clone(), vec![above]].concat()),
        reason: format!(
            "It is at least {HIGH_CORRELATION} on {} of {} data sets; in Johnson's world it is {}. A correlation of total with *irreducible* loss says that cells \
             which lose much are also noisy; whether total loss ranks as *reducible* loss does is another question, whose correlation is under \
             [every gain](#every-gain).",
            count_true(&high),
            data.len(),
            three_decimals(johnson)
        ),
        found,
        other: None,
    }
}
