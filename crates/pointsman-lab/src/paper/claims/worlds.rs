//! Claims 1 to 3: the synthetic worlds.

use super::{CLOSE_GAIN_DIFFERENCE, RELAXED_READING, gain, gain_difference, gains, higher_order_gap, mean_of, verdict};
use crate::paper::numbers::{Difference, Numbers, format_difference};
use crate::paper::{Claim, Reading};

/// The least difference of gains that counts as "clearly above".
const CLEAR_GAIN_DIFFERENCE: f64 = 0.10;

pub(super) fn johnson(n: Numbers<'_>) -> Claim {
    let above = higher_order_gap(n, "johnson", "recalibrated");
    let short = gain_difference(n, "johnson", "recalibrated", "cell-optimal", "higher-order");
    Claim {
        number: 1,
        figures: &["routing-johnson", "functions-johnson"],
        claim: "Johnson's world, re-calibrated: the higher-order router is clearly above total uncertainty and close to the best action per cell.",
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

pub(super) fn three_steps(n: Numbers<'_>) -> Claim {
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

pub(super) fn piecewise(n: Numbers<'_>) -> Claim {
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
        found.push((
            format!("{variant}: mean loss over all shares routed, best action per cell"),
            n.show("routing", &path),
        ));
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
