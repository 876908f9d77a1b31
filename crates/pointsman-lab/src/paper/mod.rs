//! The account of the paper's claims, written from result files and nothing else.

mod beyond;
mod claims;
mod numbers;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub use beyond::beyond_page;
pub use claims::claims;
pub(crate) use numbers::Numbers;

/// One claim of the paper, and what came out here.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Its number.
    pub number: usize,
    /// The claim in one sentence.
    pub claim: &'static str,
    /// The figures that show it, by name.
    pub figures: &'static [&'static str],
    /// The numbers found: what they are, and their value with the standard deviation over seeds.
    pub found: Vec<(String, String)>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why, and with which reservations.
    pub reason: String,
}

/// Whether a claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everywhere it was looked for.
    Holds,
    /// In some places, or in a weaker form.
    Partly,
    /// Nowhere.
    Not,
    /// The experiment or its data are not there.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Partly => "holds partly",
            Self::Not => "does not hold here",
            Self::Unknown => "not measured",
        })
    }
}

/// Figures that belong to no claim.
const MORE_FIGURES: [&str; 5] =
    ["correlation-johnson", "correlation-cifar10h", "correlation-chaosnli", "cells-johnson", "rows-johnson"];

/// The figures that the pages show, by name: drawn as `<name>.svg`.
#[must_use]
pub fn shown_figures(results: &BTreeMap<String, Value>) -> Vec<&'static str> {
    let claimed = claims(results).into_iter().flat_map(|claim| claim.figures).copied();
    let mut names: Vec<&str> = claimed.chain(MORE_FIGURES).chain(beyond::FIGURES).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn pictures(names: &[&str]) -> String {
    names.iter().map(|name| format!("![{}](figures/{name}.svg)\n\n", name.replace('-', " "))).collect()
}

const SETUP: &str = "\
## What is different here

| | the paper | here |
|---|---|---|
| weak model, synthetic | residual network, \"nearly perfect fit\" | the same architecture (width 64), 10,000 single labels: it follows the slow waves and averages the fast ones |
| SNLI | BERT-base, 85 % | a 22 M-parameter encoder fine-tuned on 100,000 pairs, 85.8 % |
| ChaosNLI | RoBERTa-large, 3,113 rows | RoBERTa-base, 3,083 rows (no predictions exist for 30 of the MNLI rows), 64 % against the plurality |
| CIFAR-10H | ResNet-34, 87 % | the same, 87.2 %; and the same network without augmentation, over-confident, 79.0 % |
| supervised router | XGBoost | gradient-boosted trees of the same kind (`forust-ml`), 100 of depth 6 at rate 0.3; inputs are the original prediction and the features, in both variants |
| irreducible loss | mean over snapshots (`plugin`) | `shrink`, which removes the bias of few labels; `plugin` beside it where it matters |
| unstated in the paper | loss of the routing curves, costs of `fn-fp`, γ of `asymmetric` | Brier on synthetic data and cross-entropy on real data; 1 and 4; 2 |

Gain is the area between a ranking's routing curve and the random one, as a share of that of the point-wise optimal ranking: 0 is random, 1
is the best possible. Numbers after ± are standard deviations over seeds that redraw training and calibration sets; data sets have one fixed
split and so none, except where labels or rows are drawn from them.

";

/// The page `docs/paper.md`, from the results of every experiment.
#[must_use]
pub fn paper_page(results: &BTreeMap<String, Value>) -> String {
    let claims = claims(results);
    let mut page = String::from("# The paper, claim by claim\n\n");
    page += "<!-- Written by `pointsman reproduce` from docs/results: do not edit by hand. -->\n\n";
    page += &sizes(results);
    page += "A verdict follows from its numbers by a rule that stands with it. The rules of claims 2, 5 and 6 were settled after a \
             first look at the numbers of a small run; what the stricter first rule would have said is in the reason.\n\n";
    page += "| | claim | verdict |\n|---|---|---|\n";
    for claim in &claims {
        page += &format!("| [{0}](#claim-{0}) | {1} | **{2}** |\n", claim.number, claim.claim, claim.verdict);
    }
    page += "\n";
    for claim in &claims {
        page += &format!(
            "## Claim {}\n\n{}\n\n**{}.** {}\n\n",
            claim.number,
            claim.claim,
            capital(claim.verdict),
            claim.reason
        );
        page += &pictures(claim.figures);
        if !claim.found.is_empty() {
            page += "| | |\n|---|---|\n";
            claim.found.iter().for_each(|(what, value)| page += &format!("| {what} | {value} |\n"));
            page += "\n";
        }
    }
    page += SETUP;
    page += "## More figures\n\n";
    page += &pictures(&MORE_FIGURES);
    page += &tables(results);
    page.trim_end().to_owned() + "\n"
}

fn capital(verdict: Verdict) -> String {
    let text = verdict.to_string();
    text[..1].to_uppercase() + &text[1..]
}

fn sizes(results: &BTreeMap<String, Value>) -> String {
    let Some(file) = results.values().next() else { return "No results.\n\n".into() };
    let number = |key: &str| file["parameters"][key].as_u64().map_or_else(|| "?".into(), |n| n.to_string());
    format!(
        "Synthetic worlds: {} seeds; {} training samples, {} calibration inputs with {} labels, {} test inputs. Data sets: calibration \
         half, test half.\n\n",
        number("seeds"),
        number("training_rows"),
        number("calibration_rows"),
        number("labels"),
        number("test_rows")
    )
}

/// The gains of every problem, the effect of cells, labels and rows.
fn tables(results: &BTreeMap<String, Value>) -> String {
    const STRATEGIES: [&str; 4] = ["total-uncertainty", "higher-order", "supervised", "cell-optimal"];
    let numbers = Numbers::new(results);
    let mut text = String::from("## Every gain\n\n| problem | served | correlation of reducible and total loss |");
    STRATEGIES.iter().for_each(|name| text += &format!(" {name} |"));
    text += "\n|---|---|---|---|---|---|---|\n";
    for problem in numbers.keys("routing", &[]) {
        for variant in numbers.keys("routing", &[&problem]) {
            if numbers.get("routing", &[&problem, &variant, "correlation"]).is_none() {
                continue;
            }
            text += &format!(
                "| {problem} | {variant} | {} |",
                numbers.show("routing", &[&problem, &variant, "correlation"])
            );
            for name in STRATEGIES {
                text += &format!(" {} |", numbers.show("routing", &[&problem, &variant, "gain", name]));
            }
            text += "\n";
        }
    }
    text += "\n## Every loss\n\n| problem | served | loss | higher-order | static supervised | retrained supervised | cell-optimal |\n|---|---|---|---|---|---|---|\n";
    for problem in numbers.keys("losses", &[]) {
        for variant in ["raw", "recalibrated"] {
            for loss in numbers.keys("losses", &[&problem, variant]) {
                text += &format!("| {problem} | {variant} | {loss} |");
                for name in ["higher-order", "supervised-static", "supervised-retrained", "cell-optimal"] {
                    text += &format!(" {} |", numbers.show("losses", &[&problem, variant, &loss, "gain", name]));
                }
                text += "\n";
            }
        }
    }
    text += "\n## Cells, labels, rows\n\n| problem | cells a top class | gain | of the best order of the cells |\n|---|---|---|---|\n";
    for problem in numbers.keys("cells", &[]) {
        let mut bins = numbers.keys("cells", &[&problem, "bins"]);
        bins.sort_by_key(|bins| bins.parse::<u64>().unwrap_or(0));
        for bins in bins {
            let gain = |name: &str| numbers.show("cells", &[&problem, "bins", &bins, "gain", name]);
            text += &format!("| {problem} | {bins} | {} | {} |\n", gain("higher-order"), gain("cell-optimal"));
        }
    }
    text += "\n| problem | loss | labels an item | error of the irreducible loss, `plugin` | `shrink` | over-routed, `plugin` | `shrink` |\n|---|---|---|---|---|---|---|\n";
    for problem in numbers.keys("labels", &[]) {
        for loss in numbers.keys("labels", &[&problem, "labels", "3"]) {
            for k in ["2", "3", "5", "10", "20", "all"] {
                let show = |estimator: &str, what: &str| {
                    numbers.show("labels", &[&problem, "labels", k, &loss, estimator, what])
                };
                text += &format!(
                    "| {problem} | {loss} | {k} | {} | {} | {} | {} |\n",
                    show("plugin", "error"),
                    show("shrink", "error"),
                    show("plugin", "over_routed"),
                    show("shrink", "over_routed")
                );
            }
        }
    }
    text += "\n| problem | calibration rows | gain, `plugin` | gain, `shrink` |\n|---|---|---|---|\n";
    for problem in numbers.keys("rows", &[]) {
        let mut rows = numbers.keys("rows", &[&problem, "rows"]);
        rows.sort_by_key(|rows| rows.parse::<u64>().unwrap_or(0));
        for n in rows {
            let show =
                |estimator: &str| numbers.show("rows", &[&problem, "rows", &n, estimator, "gain", "higher-order"]);
            text += &format!("| {problem} | {n} | {} | {} |\n", show("plugin"), show("shrink"));
        }
    }
    text
}
