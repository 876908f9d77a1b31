//! Claims 4, 8 and 9: the public data sets.

use serde_json::Value;

use super::{CLOSE_GAIN_DIFFERENCE, count_true, gain_difference, higher_order_gap, mean_of, verdict};
use crate::paper::numbers::{Difference, Numbers, format_difference, method_name, three_decimals};
use crate::paper::{Claim, Reading};

/// The least correlation that counts as "highly correlated".
const HIGH_CORRELATION: f64 = 0.8;

const DATA: [&str; 4] = ["cifar10h", "cifar10h-overconfident", "snli", "chaosnli"];
const METHODS: [&str; 3] = ["total-uncertainty", "higher-order", "supervised"];

pub(super) fn real_data(n: Numbers<'_>) -> Claim {
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

pub(super) fn convergence(n: Numbers<'_>) -> Claim {
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
            let name = method_name(method);
            let what = format!("{problem}: {name} below the best action per cell, raw → re-calibrated; closer by");
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

pub(super) fn correlation(n: Numbers<'_>) -> Claim {
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
