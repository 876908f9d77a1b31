//! The pages on the paper's claims, generated from result files.

mod beyond;
mod claims;
mod numbers;
mod tables;
mod theory;
mod tracks;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub use beyond::beyond_page;
pub use claims::claims;
pub(crate) use numbers::{Numbers, method_name};
pub use tracks::{tracks_headline, tracks_page};

/// A claim of the paper and its result here.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The number of the claim.
    pub number: usize,
    /// The claim in one sentence.
    pub claim: &'static str,
    /// The condition under which the claim holds.
    pub rule: String,
    /// The names of the figures that show it.
    pub figures: &'static [&'static str],
    /// The measured numbers: their descriptions, and values with the standard deviation over seeds.
    pub found: Vec<(String, String)>,
    /// The verdict by the rule.
    pub verdict: Verdict,
    /// The reason for the verdict, with reservations.
    pub reason: String,
    /// The verdict by another rule, if there is one.
    pub other: Option<Reading>,
}

/// The verdict of a rule other than the claim's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The name of the rule, and when it was written.
    pub name: &'static str,
    /// The verdict by this rule.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub text: String,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds on every problem measured.
    Holds,
    /// It holds on some problems, or in a weaker form.
    Partly,
    /// It holds nowhere.
    Not,
    /// The experiment or its data are missing.
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

/// Names of the figures that belong to no claim.
const MORE_FIGURES: [&str; 2] = ["cells-johnson", "rows-johnson"];

/// The names of the figures on the pages, drawn as `<name>.svg`.
#[must_use]
pub fn shown_figures(results: &BTreeMap<String, Value>) -> Vec<&'static str> {
    let claimed = claims(results).into_iter().flat_map(|claim| claim.figures).copied();
    let more = MORE_FIGURES.into_iter().chain(beyond::FIGURES).chain(theory::FIGURES).chain(tracks::FIGURES);
    let mut names: Vec<&str> = claimed.chain(more).collect();
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

Gain is the area between a ranking's routing curve and the random one, as a share of that of the best possible per query: 0 is random, 1
is the best possible. Data sets are judged, as in the paper, by the mean of the labels that a row has.

Two kinds of numbers stand after ±. After a gain it is the standard deviation: over seeds that redraw training and calibration sets of a world, over
random halvings of a data set. After a *difference* it is its standard error, paired: the difference is taken within each seed or halving. Seeds
are independent, so that is s/√n. Halves of one data set overlap, and the variance of their mean is taken to be (1/n + 1) s² (Nadeau and Bengio 2003): about
the spread of a single halving, since twenty of them do not make twenty data sets.

";

const NAMES: &str = "\
*Total uncertainty* is the paper's score of a query, the expected loss of its prediction by the prediction itself (under cross-entropy its
entropy); routing by it is a confidence threshold. *Pointsman* is the paper's higher-order router. The *best action per cell* stands for the best order of the
router's own cells, the *best possible per query* for the best order of the queries; both are known in hindsight only.

";

/// The text of `docs/paper.md` for the given results.
#[must_use]
pub fn paper_page(results: &BTreeMap<String, Value>) -> String {
    let claims = claims(results);
    let mut page = String::from("# The paper, claim by claim\n\n");
    page += "<!-- Written by `pointsman reproduce` from docs/results: do not edit by hand. -->\n\n";
    page += &sizes(results);
    page += "A verdict follows from its numbers by a rule that stands with it and was written before them. For claims 2, 5 and 6 a weaker rule was \
             written after a first look at the numbers; what it says stands beside the verdict, named as such.\n\n";
    page += NAMES;
    page += "| | claim | verdict | another reading |\n|---|---|---|---|\n";
    for claim in &claims {
        let other = claim.other.as_ref().map_or_else(String::new, |reading| reading.verdict.to_string());
        page += &format!("| [{0}](#claim-{0}) | {1} | **{2}** | {other} |\n", claim.number, claim.claim, claim.verdict);
    }
    page += "\n";
    for claim in &claims {
        page += &format!(
            "## Claim {}\n\n{}\n\n*Rule.* {}\n\n**{}.** {}\n\n",
            claim.number,
            claim.claim,
            claim.rule,
            capital(claim.verdict),
            claim.reason
        );
        if let Some(Reading { name, verdict, text }) = &claim.other {
            page += &format!("*{name}: {verdict}.* {text}\n\n");
        }
        page += &pictures(claim.figures);
        if !claim.found.is_empty() {
            page += "| | |\n|---|---|\n";
            claim.found.iter().for_each(|(what, value)| page += &format!("| {what} | {value} |\n"));
            page += "\n";
        }
    }
    page += &theory::sections(Numbers::new(results));
    page += SETUP;
    page += "## More figures\n\n";
    page += &pictures(&MORE_FIGURES);
    page += &tables::tables(Numbers::new(results));
    page.trim_end().to_owned() + "\n"
}

fn capital(verdict: Verdict) -> String {
    let text = verdict.to_string();
    text[..1].to_uppercase() + &text[1..]
}

fn sizes(results: &BTreeMap<String, Value>) -> String {
    let Some(file) = results.get("routing") else { return "No results.\n\n".into() };
    let number = |key: &str| file["parameters"][key].as_u64().map_or_else(|| "?".into(), |n| n.to_string());
    format!(
        "Synthetic worlds: {} seeds; {} training samples, {} calibration inputs with {} labels, {} test inputs. Data sets: a calibration \
         half and a test half, drawn {} times.\n\n",
        number("seeds"),
        number("training_rows"),
        number("calibration_rows"),
        number("labels"),
        number("test_rows"),
        number("splits")
    )
}
