//! The sections on the theorem, the partition lemma, the Bayes-dependent oracles and the estimators for few labels.

use super::numbers::{Numbers, three_decimals};
use super::pictures;

/// Names of the figures in these sections.
pub(super) const FIGURES: [&str; 4] = ["theory-johnson", "theory-three-steps", "theory-piecewise", "theory-chaosnli"];

/// The sections of `docs/paper.md` on the paper's theorems and recommendations.
pub(super) fn sections(n: Numbers<'_>) -> String {
    [theorem(n), partitions(n), oracles(n), few_labels(n)].concat()
}

fn problems(n: Numbers<'_>) -> Vec<String> {
    n.keys("theory", &[])
}

fn per_cent(x: f64) -> String {
    if x >= 0.0995 { format!("{:.0} %", 100.0 * x) } else { format!("{:.1} %", 100.0 * x) }
}

fn theorem(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## The theorem, measured\n\nA router that is ε-higher-order calibrated on the level sets of the weak model regrets at most Bε against the best \
         action per level set, for every loss with bound B and all prices. Here the weak model is re-calibrated, so that its level sets are the cells; \
         the router decides by the paper's estimate; ε is W1 between the snapshot means that a cell has stored and the truth of the test rows in it \
         (in chaosnli the mean of their hundred labels), averaged over the test rows. The regret is the largest over 42 pairs of prices (α from 0 to 0.2, β from 0.05 to \
         0.8). The last column is the lemma behind the theorem: how far a cell's simulated costs are off, as a part of the Bε/2 allowed, in the worst \
         cell.\n\n| problem | labels per item | loss | ε | Bε | largest regret | of the bound | mean regret | worst simulated cost, of Bε/2 |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let (mut within, mut of, mut most) = (0.0, 0.0, (0.0, String::new()));
    for problem in problems(n) {
        let mut labels = n.keys("theory", &[&problem, "theorem"]);
        labels.sort_by_key(|k| k.parse::<u64>().unwrap_or(u64::MAX));
        for k in labels {
            let epsilon = n.get("theory", &[&problem, "theorem", &k, "epsilon"]).unwrap_or(f64::NAN);
            for loss in n.keys("theory", &[&problem, "theorem", &k, "losses"]) {
                let get = |what| n.get("theory", &[&problem, "theorem", &k, "losses", &loss, what]).unwrap_or(f64::NAN);
                let part = get("regret_largest") / get("bound");
                let seeds = n.value("theory", &[&problem, "seeds"]).and_then(serde_json::Value::as_f64).unwrap_or(1.0);
                within += seeds * get("within");
                of += seeds * get("prices");
                if part > most.0 {
                    most = (part, format!("{problem}, {loss}, {k} labels"));
                }
                text += &format!(
                    "| {problem} | {k} | {loss} | {} | {} | {:.4} | {} | {:.5} | {} |\n",
                    three_decimals(epsilon),
                    three_decimals(get("bound")),
                    get("regret_largest"),
                    per_cent(part),
                    get("regret_mean"),
                    per_cent(get("largest_of_allowed")),
                );
            }
        }
    }
    text += &format!(
        "\nThe regret is within Bε in {within:.0} of {of:.0} cases. The largest part of the bound that is used is {} ({}).\n\n",
        per_cent(most.0),
        most.1
    );
    text + &pictures(&FIGURES)
}

fn partitions(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## The partition lemma, measured\n\nWithout abstention, the best action per cell costs at most ½E|RL − mean RL| more than the best action per \
         query, with the deviation taken within cells. Raw predictions, the loss of the routing curves; the excess is the largest over 62 prices from 0 to four \
         times the mean reducible loss. With a single cell the bound is attained (at α = mean RL); with many it cannot be attained in all of them at one \
         price.\n\n| problem | partition | cells | bound | largest excess | of the bound |\n|---|---|---|---|---|---|\n",
    );
    for problem in problems(n) {
        let mut all: Vec<(f64, String)> = n
            .keys("theory", &[&problem, "partitions"])
            .into_iter()
            .map(|name| (n.get("theory", &[&problem, "partitions", &name, "cells"]).unwrap_or(0.0), name))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (cells, partition) in all {
            let get = |what| n.get("theory", &[&problem, "partitions", &partition, what]).unwrap_or(f64::NAN);
            text += &format!(
                "| {problem} | `{partition}` | {cells:.0} | {:.4} | {:.4} | {} |\n",
                get("bound"),
                get("excess_largest"),
                per_cent(get("excess_largest") / get("bound"))
            );
        }
    }
    text + "\nThe bound falls with the excess: what divides cells by reducible loss shows in it before any router is tried.\n\n"
}

fn oracles(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## Bayes-dependent oracles, measured\n\nThe loss of a panel of experts is a function of the truth with a Lipschitz constant γ. Worked out from the stored \
         snapshot means (all labels), it is off by at most γε in every cell; a router that may ask panels of 1, 3 and 9 (0.01 per label) or abstain regrets at most \
         max{Bε, 2γε}.\n\n| problem | loss | panel | cost by stored means | cost by the truth | off by, mean over cells | γε | worst cell, of γε |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut regrets = String::from("\n| problem | loss | largest regret over β | max{Bε, 2γε} |\n|---|---|---|---|\n");
    for problem in problems(n) {
        for loss in n.keys("theory", &[&problem, "oracles"]) {
            let mut panels = n.keys("theory", &[&problem, "oracles", &loss, "panels"]);
            panels.sort_by_key(|experts| experts.parse::<u64>().unwrap_or(0));
            for experts in panels {
                let get =
                    |what| n.get("theory", &[&problem, "oracles", &loss, "panels", &experts, what]).unwrap_or(f64::NAN);
                text += &format!(
                    "| {problem} | {loss} | {experts} | {} | {} | {:.4} | {} | {} |\n",
                    three_decimals(get("simulated")),
                    three_decimals(get("met")),
                    get("off_by"),
                    three_decimals(get("allowed")),
                    per_cent(get("largest_of_allowed"))
                );
            }
            let get = |what| n.get("theory", &[&problem, "oracles", &loss, what]).unwrap_or(f64::NAN);
            regrets +=
                &format!("| {problem} | {loss} | {:.5} | {} |\n", get("regret_largest"), three_decimals(get("bound")));
        }
    }
    text + &regrets + "\n"
}

fn few_labels(n: Numbers<'_>) -> String {
    let mut text = String::from(
        "## Few labels: the paper's own estimators\n\nFor small k the paper recommends unbiased estimates after Ahdritz et al. (2024), Theorem 4.3. As we read it: k \
         labels estimate every polynomial of degree k in the truth without bias, so the entropy is replaced by the polynomial of that degree closest to it \
         everywhere (`polynomial`). For the Brier loss that is the entropy itself, estimated without bias; for others the bias is at most the \
         distance of the polynomial, whatever the cell. The closest polynomial of a high degree has a huge variance, so its values are drawn towards the plug-in's as \
         far as that lowers the largest mean square error of a cell (squared bias plus variance over its rows). Root mean square error of a cell's irreducible loss against the one that all labels give, and bias; a dash where the \
         polynomial has too many unknowns.\n\n| problem | loss | labels | error, `plugin` | `shrink` | `polynomial` | bias, `plugin` | `shrink` | `polynomial` | largest bias of `polynomial` |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let (mut better, mut of) = (0, 0);
    for problem in n.keys("labels", &[]) {
        for loss in n.keys("labels", &[&problem, "labels", "3"]) {
            for k in ["2", "3", "5", "10"] {
                let path = |estimator, what| [problem.as_str(), "labels", k, loss.as_str(), estimator, what];
                let show = |estimator, what| {
                    n.get("labels", &path(estimator, what))
                        .map_or_else(|| "–".into(), |x| format!("{x:.4}").replace('-', "−"))
                };
                let mut cells = Vec::new();
                for what in ["error", "bias"] {
                    cells.extend(["plugin", "shrink", "polynomial"].map(|estimator| show(estimator, what)));
                }
                cells.push(show("polynomial", "distance"));
                text += &format!("| {problem} | {loss} | {k} | {} |\n", cells.join(" | "));
                let error = |estimator| n.get("labels", &path(estimator, "error"));
                if let (Some(shrink), Some(polynomial)) = (error("shrink"), error("polynomial")) {
                    of += 1;
                    better += usize::from(shrink <= polynomial);
                }
            }
        }
    }
    text += &match of {
        0 => "\nThe paper's unbiased estimators (–) have not been measured yet.\n\n".to_owned(),
        _ => format!("\n`shrink` has the smaller error, or the same, in {better} of {of} cases.\n\n"),
    };
    text
}
