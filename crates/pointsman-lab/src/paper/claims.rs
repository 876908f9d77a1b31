//! The seven claims, each decided from the numbers by a rule that is written down.

use std::collections::BTreeMap;

use serde_json::Value;

use super::numbers::{Numbers, fixed};
use super::{Claim, Verdict};

/// "Clearly above": a difference of gains of at least this.
const CLEAR: f64 = 0.10;
/// "Nearly equal", "close to": of at most this.
const CLOSE: f64 = 0.03;

const DATA: [&str; 4] = ["cifar10h", "cifar10h-overconfident", "snli", "chaosnli"];

/// Decides the paper's claims from the results of the experiments.
#[must_use]
pub fn claims(results: &BTreeMap<String, Value>) -> Vec<Claim> {
    let n = Numbers::new(results);
    vec![johnson(n), three_steps(n), piecewise(n), real_data(n), flexibility(n), three_way(n), few_labels(n)]
}

fn verdict(known: bool, holds: &[bool]) -> Verdict {
    match (known, holds.iter().filter(|&&holds| holds).count()) {
        (false, _) => Verdict::Unknown,
        (_, count) if count == holds.len() => Verdict::Holds,
        (_, 0) => Verdict::Not,
        _ => Verdict::Partly,
    }
}

/// Gains of a problem, for the table under a claim.
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

/// Higher-order less total uncertainty.
fn gap(n: Numbers<'_>, problem: &str, variant: &str) -> f64 {
    gain(n, problem, variant, "higher-order") - gain(n, problem, variant, "total-uncertainty")
}

fn johnson(n: Numbers<'_>) -> Claim {
    let above = gap(n, "johnson", "recalibrated");
    let short = gain(n, "johnson", "recalibrated", "cell-optimal") - gain(n, "johnson", "recalibrated", "higher-order");
    Claim {
        number: 1,
        figures: &["routing-johnson"],
        claim: "Johnson's world, re-calibrated: the higher-order router is clearly above total uncertainty and close to cell-optimal.",
        found: gains(
            n,
            "johnson",
            &["raw", "recalibrated"],
            &["total-uncertainty", "higher-order", "supervised", "cell-optimal"],
        ),
        verdict: verdict(above.is_finite(), &[above >= CLEAR, short <= CLOSE]),
        reason: format!(
            "Re-calibrated, it is {} above total uncertainty (clear means {CLEAR}) and {} below the best order of its cells (close \
             means {CLOSE}). The middle of the world is noise to the weak model and signal to the oracle, the sides are noise to both; a \
             well-calibrated prediction near ½ says neither.",
            fixed(above),
            fixed(short)
        ),
    }
}

fn three_steps(n: Numbers<'_>) -> Claim {
    let gap = gap(n, "three-steps", "recalibrated");
    let part = |problem: &str| {
        gain(n, problem, "recalibrated", "total-uncertainty") / gain(n, problem, "recalibrated", "higher-order")
    };
    let (steps, johnson) = (part("three-steps"), part("johnson"));
    Claim {
        number: 2,
        figures: &["routing-three-steps"],
        claim: "Three steps: routing by total uncertainty is nearly as good as by reducible loss.",
        found: gains(
            n,
            "three-steps",
            &["raw", "recalibrated"],
            &["total-uncertainty", "higher-order", "cell-optimal"],
        ),
        verdict: verdict(gap.is_finite(), &[gap.abs() <= CLOSE, steps >= 0.85]),
        reason: format!(
            "Re-calibrated, total uncertainty reaches {:.0} % of the higher-order gain, against {:.0} % in Johnson's world; the difference is {} \
             (nearly means {CLOSE} or, for a part, 85 %). Where the world oscillates the weak model says about ½, so what is uncertain is also what \
             an oracle would save. What remains comes from the same region: a prediction that strays from ½ there costs more, all of it \
             reducible, and looks more certain.",
            100.0 * steps,
            100.0 * johnson,
            fixed(gap)
        ),
    }
}

fn piecewise(n: Numbers<'_>) -> Claim {
    let by = |name: &str, x: &str, level: &str| gain(n, "piecewise", x, name) - gain(n, "piecewise", level, name);
    let height = |variant: &str| {
        n.get("routing", &["piecewise", variant, "mean_over_shares", "cell-optimal"]).unwrap_or(f64::NAN)
    };
    let (optimal, router) = (by("cell-optimal", "raw-x", "raw"), by("higher-order", "raw-x", "raw"));
    let lower = height("recalibrated") - height("recalibrated-x");
    let mut found = gains(n, "piecewise", &["raw", "raw-x"], &["higher-order", "cell-optimal"]);
    for variant in ["recalibrated", "recalibrated-x"] {
        let path = ["piecewise", variant, "mean_over_shares", "cell-optimal"];
        found.push((format!("{variant}: mean loss over all shares routed, cell-optimal"), n.show("routing", &path)));
    }
    Claim {
        number: 3,
        figures: &["routing-piecewise"],
        claim: "Piecewise: ten cells on the input x beat thirty cells on the predictions.",
        found,
        verdict: verdict(optimal.is_finite(), &[optimal > 0.0, router > 0.0, lower > 0.0]),
        reason: format!(
            "Cells on x gain {} more when both are ordered optimally and {} more as estimated, over the same raw predictions. Regions with \
             and without the oscillation share their predictions, and no cells on predictions can tell them apart. Each re-calibrated on its \
             own cells, the mean loss over all shares routed is {} {} on x{}.",
            fixed(optimal),
            fixed(router),
            format_small(lower.abs()),
            if lower > 0.0 { "lower" } else { "higher" },
            if lower > 0.0 {
                ""
            } else {
                ": one mean for a tenth of the inputs serves worse than one for a thirtieth of the predictions, and that outweighs the \
                 better order"
            }
        ),
    }
}

fn format_small(x: f64) -> String {
    if x.abs() < 0.01 { format!("{x:.5}").replace('-', "−") } else { fixed(x) }
}

fn real_data(n: Numbers<'_>) -> Claim {
    let known: Vec<&str> = DATA.into_iter().filter(|name| gap(n, name, "raw").is_finite()).collect();
    let mut found = Vec::new();
    let (mut shrinks, mut text) = (Vec::new(), Vec::new());
    for name in &known {
        let (raw, served) = (gap(n, name, "raw"), gap(n, name, "recalibrated"));
        found.push((format!("{name}: higher-order above total uncertainty, raw"), fixed(raw)));
        found.push((format!("{name}: the same, re-calibrated"), fixed(served)));
        // A gap that was never there cannot shrink.
        shrinks.push(served.abs() <= raw.abs().max(0.01));
        text.push(format!("{name} {} → {}", fixed(raw), fixed(served)));
    }
    let over = gap(n, "cifar10h-overconfident", "raw");
    let plain = gap(n, "cifar10h", "raw");
    let large = over >= 0.05 && over > plain;
    shrinks.push(large);
    Claim {
        number: 4,
        figures: &["routing-cifar10h", "routing-cifar10h-overconfident", "routing-snli", "routing-chaosnli"],
        claim: "Real data: the gap between the higher-order router and total uncertainty shrinks after re-calibration; for an over-confident \
                model it is large before.",
        found,
        verdict: verdict(known.len() == DATA.len(), &shrinks),
        reason: format!(
            "Gaps in gain on cross-entropy, raw → re-calibrated: {}. The over-confident network's gap before re-calibration is {} against \
             {} of the same network trained with augmentation (large means 0.05 and more than that). So here too most of the advantage \
             over confidence is an advantage over mis-calibration.",
            text.join("; "),
            fixed(over),
            fixed(plain)
        ),
    }
}

fn flexibility(n: Numbers<'_>) -> Claim {
    let (mut found, mut behind, mut ours, mut ahead) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for problem in n.keys("losses", &[]) {
        let own = n.value("losses", &[&problem, "static"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        let at = |loss: &str, name: &str| n.get("losses", &[&problem, "raw", loss, "gain", name]).unwrap_or(f64::NAN);
        let foreign: Vec<String> =
            n.keys("losses", &[&problem, "raw"]).into_iter().filter(|loss| *loss != own).collect();
        let mean = |first: &str, second: &str, losses: &[String]| {
            losses.iter().map(|loss| at(loss, first) - at(loss, second)).sum::<f64>() / losses.len() as f64
        };
        let abroad = mean("higher-order", "supervised-static", &foreign);
        let home = mean("higher-order", "supervised-static", std::slice::from_ref(&own));
        let worst = foreign.iter().map(|loss| at(loss, "cell-optimal") - at(loss, "higher-order")).fold(0.0, f64::max);
        found.push((
            format!("{problem}: ours above the static router, on its own loss ({own}) / mean of the others"),
            format!("{} / {}", fixed(home), fixed(abroad)),
        ));
        found.push((
            format!("{problem}: retrained above static on the other losses"),
            fixed(mean("supervised-retrained", "supervised-static", &foreign)),
        ));
        found.push((format!("{problem}: ours below cell-optimal, worst of the other losses"), fixed(worst)));
        behind.push(abroad > home);
        if abroad <= 0.0 {
            ahead.push(problem.clone());
        }
        ours.push(worst <= 2.0 * CLOSE);
    }
    let count = behind.iter().filter(|&&behind| behind).count();
    let stays = ours.iter().filter(|&&stays| stays).count();
    Claim {
        number: 5,
        figures: &["losses-johnson", "losses-cifar10h", "losses-chaosnli"],
        claim: "A supervised router trained on one loss falls behind on losses it was not trained on; the higher-order router does not.",
        verdict: verdict(!behind.is_empty(), &[behind, ours].concat()),
        reason: format!(
            "On {count} of {0} problems the static router is further behind ours on foreign losses than on its own; on {stays} of {0} ours \
             stays within {1} of the best order of its cells on every foreign loss. {2}",
            found.len() / 3,
            2.0 * CLOSE,
            if ahead.is_empty() {
                String::new()
            } else {
                format!(
                    "On {} it falls behind itself retrained but not behind ours: it sees the input x, our cells see predictions only.",
                    ahead.join(", ")
                )
            }
        ),
        found,
    }
}

fn three_way(n: Numbers<'_>) -> Claim {
    let (mut found, mut never, mut somewhere) = (Vec::new(), Vec::new(), Vec::new());
    let (mut strictly, mut shrunk) = (Vec::new(), Vec::new());
    for problem in n.keys("three-way", &[]) {
        for loss in n.keys("three-way", &[&problem, "raw-plugin"]) {
            for variant in ["raw-plugin", "raw"] {
                let list = |key: &str| n.list("three-way", &[&problem, variant, &loss, key]);
                let (Some(above), Some(error), Some(paired)) =
                    (list("above_better_two_way"), list("standard_error"), list("above_standard_error"))
                else {
                    continue;
                };
                let most = above.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let least = above.iter().copied().fold(f64::INFINITY, f64::min);
                let kept = above.iter().zip(&error).all(|(above, error)| *above <= error + 1e-9);
                if variant == "raw" {
                    shrunk.push(kept);
                } else {
                    never.push(kept);
                    strictly.push(above.iter().zip(&paired).all(|(above, error)| *above <= error + 1e-9));
                    somewhere.push(above.iter().zip(&paired).any(|(above, error)| *above < -error));
                }
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
    let count = |list: &[bool]| list.iter().filter(|&&holds| holds).count();
    let (kept, below, also, of) = (count(&never), count(&somewhere), count(&shrunk), never.len());
    let strict = count(&strictly);
    Claim {
        number: 6,
        figures: &["three-way-johnson", "three-way-snli", "three-way-chaosnli"],
        claim: "Predict, route or abstain is never above the better of predict/route and predict/abstain by more than its standard error, \
                and below both somewhere.",
        verdict: verdict(of > 0, &[never, somewhere].concat()),
        reason: format!(
            "α = 0.05, β from 0.1 to 0.8, Brier and cross-entropy, raw predictions. With the paper's estimate: never above in {kept} of {of} sweeps, \
             below both somewhere in {below} of {of}. (By the standard error of the paired difference, which is several times smaller: {strict} of \
             {of}; a cell or two near a tie is decided wrongly for want of calibration rows.) With `shrink`, never above in {also} of {of}: data sets are judged by the mean of the few labels a row has, as the paper does, and that judge \
             shares the bias of the plug-in estimate; five labels a row (snli) make it large. In the synthetic world, where the truth is \
             known, the two agree."
        ),
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
            found.push((
                format!("{problem}, {loss}, k = 3: share over-routed less under-routed, plugin / shrink"),
                format!("{} / {}", fixed(net("plugin")), fixed(net("shrink"))),
            ));
            over.push(net("plugin") > 0.02);
            right.push(net("shrink").abs() <= 0.05 && net("shrink") < net("plugin").max(0.02));
        }
    }
    let count = |list: &[bool]| list.iter().filter(|&&holds| holds).count();
    let (too_many, just, of) = (count(&over), count(&right), over.len());
    Claim {
        number: 7,
        figures: &["labels-johnson", "labels-chaosnli"],
        claim: "With three labels an item the paper's plug-in estimate over-routes; `shrink` does not.",
        verdict: verdict(of > 0, &[over, right].concat()),
        reason: format!(
            "Prices at the quartiles of the reducible loss that all labels give. `plugin` routes at least 2 % of the rows too many in \
             {too_many} of {of} cases; `shrink` is within 5 % of the right share, and below `plugin`, in {just} of {of}. The exceptions are decision losses: their \
             kinks hide the bias where annotators nearly agree (cifar10h), and two moments do not see them all (`fn-fp`)."
        ),
        found,
    }
}
