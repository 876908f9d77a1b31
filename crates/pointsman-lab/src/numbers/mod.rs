//! The page "What the numbers mean, and how we know": simulations with known truth, one module per topic.
//!
//! A [`Topic`] measures how far the numbers that users see are from the truth, and writes its section of the page.
//! Results are stored per topic, so that one topic can be measured again without the others: `pointsman reproduce
//! numbers:costs -o DIR --publish docs`.

mod certificates;
mod costs;
mod estimators;
mod labels;
mod levels;
mod limits;
mod partition;
mod plans;
mod promises;
mod splits;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::run::{Outcome, write_json};
use crate::settings::{Monitor, Settings};

/// The name of all topics together on the command line.
pub const NUMBERS: &str = "numbers";

/// The number of worlds is divided by this in a quick run.
const QUICK_DIVISOR: usize = 10;

/// A section of the page: a simulation and the text about its results.
struct Topic {
    /// The name of its results file, also used on the command line.
    name: &'static str,
    /// The version of its numbers, raised when their meaning changes, so that old results are not reused.
    version: u64,
    /// Worlds per setting in a full run.
    worlds: usize,
    /// Simulates this number of worlds per setting, from fixed seeds.
    measure: fn(usize) -> Result<Value>,
    /// The section in Markdown, which begins with a second-level heading.
    section: fn(&Value) -> String,
}

/// All topics, in the order of the page.
const TOPICS: &[Topic] = &[
    Topic { name: "costs", version: 3, worlds: 60, measure: costs::measure, section: costs::section },
    Topic { name: "promises", version: 2, worlds: 40, measure: promises::measure, section: promises::section },
    Topic { name: "limits", version: 1, worlds: 200, measure: limits::measure, section: limits::section },
    Topic { name: "estimators", version: 1, worlds: 4, measure: estimators::measure, section: estimators::section },
    Topic { name: "labels", version: 1, worlds: 60, measure: labels::measure, section: labels::section },
    Topic { name: "partition", version: 2, worlds: 24, measure: partition::measure, section: partition::section },
    Topic { name: "splits", version: 1, worlds: 200, measure: splits::measure, section: splits::section },
    Topic {
        name: "certificates",
        version: 1,
        worlds: 40,
        measure: certificates::measure,
        section: certificates::section,
    },
    Topic { name: "plans", version: 1, worlds: 120, measure: plans::measure, section: plans::section },
];

/// Parses a topic such as `numbers:costs`, or all topics as `numbers`; `None` if the text is not about numbers.
///
/// # Errors
/// If no topic has that name.
pub fn numbers_topics(text: &str) -> Result<Option<Vec<&'static str>>> {
    let Some(rest) = text.strip_prefix(NUMBERS) else { return Ok(None) };
    let all = || TOPICS.iter().map(|topic| topic.name);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok(Some(all().collect())),
        Some(name) => match all().find(|topic| *topic == name) {
            Some(topic) => Ok(Some(vec![topic])),
            None => {
                let known = all().collect::<Vec<_>>().join(", ");
                Err(Error::Setting(format!("unknown topic {name:?} of the numbers: use one of {known}")))
            }
        },
        None => Ok(None),
    }
}

/// Measures topics and skips those that the output folder already has. A quick run simulates a tenth of the worlds.
///
/// # Errors
/// If a simulation fails, the folder cannot be written, or the monitor stops the run. Finished topics stay.
pub fn measure_numbers(topics: &[&str], settings: &Settings, monitor: &dyn Monitor) -> Result<Outcome> {
    let folder = settings.output.join(NUMBERS);
    fs::create_dir_all(&folder).map_err(|source| Error::folder(&folder, source))?;
    let wanted: Vec<&Topic> = TOPICS.iter().filter(|topic| topics.contains(&topic.name)).collect();
    monitor.begin("numbers", wanted.len() as u64);
    let mut outcome = Outcome { files: Vec::new(), missing: None, measured: 0, kept: 0 };
    for topic in wanted {
        if !monitor.keep_going() {
            return Err(Error::Interrupted);
        }
        let worlds = if settings.is_quick() { topic.worlds.div_ceil(QUICK_DIVISOR) } else { topic.worlds };
        let parameters = json!({ "version": topic.version, "worlds": worlds });
        let path = folder.join(format!("{}.json", topic.name));
        if read(&path).is_some_and(|kept| kept["parameters"] == parameters) {
            outcome.kept += 1;
        } else {
            let numbers = (topic.measure)(worlds)?;
            write_json(&path, &json!({ "topic": topic.name, "parameters": parameters, "numbers": numbers }))?;
            outcome.measured += 1;
        }
        outcome.files.push(path);
        monitor.step();
    }
    Ok(outcome)
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Reads the results of all topics in a folder: topic → file.
///
/// # Errors
/// If a file is malformed or belongs to another topic.
pub fn load_numbers(folder: &Path) -> Result<BTreeMap<&'static str, Value>> {
    let mut out = BTreeMap::new();
    for topic in TOPICS {
        let path = folder.join(NUMBERS).join(format!("{}.json", topic.name));
        if !path.exists() {
            continue;
        }
        let value = read(&path).filter(|value| value["topic"] == topic.name);
        out.insert(
            topic.name,
            value.ok_or_else(|| Error::results(&path, format!("not the results of {}", topic.name)))?,
        );
    }
    Ok(out)
}

/// The topics without results.
#[must_use]
pub fn missing_numbers(results: &BTreeMap<&'static str, Value>) -> Vec<&'static str> {
    TOPICS.iter().map(|topic| topic.name).filter(|name| !results.contains_key(name)).collect()
}

const INTRODUCTION: &str = "\
# What the numbers mean, and how we know

<!-- Written by `pointsman reproduce numbers` from docs/results/numbers: do not edit by hand. -->

Every number that Pointsman prints is an estimate from finitely many rows with finitely many labels. This page says what each of them
estimates, and how far it was from the truth in simulated worlds whose truth is known. Seeds are fixed, so that
`pointsman reproduce numbers` gives the same figures again. Bias is the mean of estimate minus truth over worlds; coverage is the share of
worlds whose truth lies within 1.96 standard errors of the estimate (nominal: 0.95).

";

const CLOSING: &str = "\
## What is checked in other ways

**Cost matrices** are bound to class names. Tests give one matrix with its columns in several orders and expect the same decisions, and expect other names to be refused.

**The report page** shows what the terminal shows. A test compares both over tasks with one and three routes, budgets and target losses, and moves the sliders in a browser.

**The paper's claims** have rules that were fixed before their results were seen: [paper](paper.md) gives the verdicts, with a relaxed reading beside the verdict where there is one, and
[three tracks](tracks.md) compares a weak model, a measured strong one and people on real images. Differences there carry paired standard errors over seeds or random halvings.
";

/// The text of `docs/numbers.md` for the given results.
#[must_use]
pub fn numbers_page(results: &BTreeMap<&'static str, Value>) -> String {
    let mut page = String::from(INTRODUCTION);
    for topic in TOPICS {
        if let Some(file) = results.get(topic.name) {
            page += (topic.section)(&file["numbers"]).trim();
            page += "\n\n";
        }
    }
    page + CLOSING
}
