//! Measures the parts of experiments and stores each when it is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::aggregate::aggregate;
use crate::datasets::{DataFolder, Dataset};
use crate::error::{Error, Result};
use crate::problem::{Problem, Source, model_path, weak_model};
use crate::settings::{Experiment, Monitor, Settings};
use crate::worlds::World;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The result files written.
    pub files: Vec<PathBuf>,
    /// How to get the data sets that were skipped because they are missing.
    pub missing: Option<String>,
    /// Number of parts measured in this run.
    pub measured: usize,
    /// Number of parts found in the output folder.
    pub kept: usize,
}

/// One problem and seed of one experiment.
#[derive(Debug, Clone)]
struct Part {
    experiment: Experiment,
    source: Source,
    seed: u64,
    /// The split of a data set: 0 for the halves named in its file, otherwise the seed of random halves.
    split: u64,
    path: PathBuf,
    parameters: Value,
}

impl Part {
    /// The stored numbers, if they were measured with the same parameters.
    fn numbers(&self) -> Option<Value> {
        let mut kept: Value = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (kept["parameters"] == self.parameters).then(|| kept["numbers"].take())
    }

    fn store(&self, numbers: Value) -> Result<()> {
        write_json(&self.path, &json!({ "parameters": self.parameters, "numbers": numbers }))
    }
}

/// Runs experiments and skips the parts that the output folder already has.
///
/// Data sets missing from the default folder are skipped and reported in the outcome.
///
/// # Errors
/// If a setting is invalid, a data set is malformed or missing from a folder that the user named, the output folder
/// cannot be written, or the monitor stops the run. Finished parts stay, and a later run continues from them.
pub fn reproduce(experiments: &[Experiment], settings: &Settings, monitor: &dyn Monitor) -> Result<Outcome> {
    settings.check()?;
    let parts_folder = settings.output.join("parts");
    fs::create_dir_all(&parts_folder).map_err(|source| Error::folder(&parts_folder, source))?;
    let folder = DataFolder::find(settings.data.as_deref());
    let (data, missing) = load_data_sets(experiments, &folder)?;
    let parts = list_parts(experiments, settings, &folder, &data, &parts_folder)?;
    let (kept, pending): (Vec<Part>, Vec<Part>) = parts.iter().cloned().partition(|part| part.numbers().is_some());
    let run =
        train_models(&pending, settings, monitor).and_then(|()| measure_parts(&pending, &data, settings, monitor));
    // Complete experiments are written even if the run was interrupted.
    let files = write_complete_experiments(experiments, settings, &parts, missing.as_deref())?;
    run?;
    Ok(Outcome { files, missing, measured: pending.len(), kept: kept.len() })
}

/// Loads the data sets that the experiments need; for missing ones, says how to get them.
fn load_data_sets(
    experiments: &[Experiment],
    folder: &DataFolder,
) -> Result<(BTreeMap<&'static str, Problem>, Option<String>)> {
    let mut needed: Vec<Dataset> = Vec::new();
    for source in experiments.iter().flat_map(|experiment| experiment.sources()) {
        if let Source::Data(dataset) = source
            && !needed.contains(&dataset)
        {
            needed.push(dataset);
        }
    }
    let missing = folder.missing(&needed);
    let advice = (!missing.is_empty()).then(|| folder.advice(&missing));
    if let Some(advice) = advice.as_ref().filter(|_| folder.is_named()) {
        return Err(Error::MissingData(advice.clone()));
    }
    let there = needed.into_iter().filter(|dataset| !missing.contains(dataset));
    let loaded: Result<_> = there.map(|dataset| Ok((dataset.name(), folder.load(dataset)?))).collect();
    Ok((loaded?, advice))
}

fn list_parts(
    experiments: &[Experiment],
    settings: &Settings,
    folder: &DataFolder,
    data: &BTreeMap<&'static str, Problem>,
    parts: &Path,
) -> Result<Vec<Part>> {
    let mut fingerprints = BTreeMap::new();
    for dataset in Dataset::ALL.into_iter().filter(|dataset| data.contains_key(dataset.name())) {
        fingerprints.insert(dataset.name(), folder.fingerprint(dataset)?);
    }
    let mut out = Vec::new();
    for &experiment in experiments {
        for source in experiment.sources() {
            let mut parameters = match source {
                Source::World(_) => settings.parameters(),
                Source::Data(dataset) => match fingerprints.get(dataset.name()) {
                    Some(fingerprint) => json!({ "data": fingerprint, "trees": settings.trees }),
                    None => continue,
                },
            };
            parameters["version"] = json!(experiment.version());
            for (seed, split) in experiment.seeds(source, settings) {
                let path = parts.join(format!("{experiment}-{}-{}.json", source.name(), seed.max(split)));
                out.push(Part { experiment, source, seed, split, path, parameters: parameters.clone() });
            }
        }
    }
    Ok(out)
}

/// Trains the missing weak models of the pending parts in parallel.
fn train_models(pending: &[Part], settings: &Settings, monitor: &dyn Monitor) -> Result<()> {
    let mut models: Vec<(World, u64)> = Vec::new();
    for part in pending {
        if let Source::World(world) = part.source
            && !models.contains(&(world, part.seed))
            && !model_path(world, part.seed, settings).is_file()
        {
            models.push((world, part.seed));
        }
    }
    if models.is_empty() {
        return Ok(());
    }
    monitor.begin("training weak models", models.len() as u64);
    models.par_iter().try_for_each(|&(world, seed)| {
        if !monitor.keep_going() {
            return Err(Error::Interrupted);
        }
        weak_model(world, seed, settings)?;
        monitor.step();
        Ok(())
    })
}

/// Measures pending parts, grouped by problem and seed: drawing a world and predicting its test rows takes as long as
/// some experiments.
fn measure_parts(
    pending: &[Part],
    data: &BTreeMap<&'static str, Problem>,
    settings: &Settings,
    monitor: &dyn Monitor,
) -> Result<()> {
    if pending.is_empty() {
        return Ok(());
    }
    monitor.begin("experiments", pending.len() as u64);
    let mut left: Vec<&Part> = pending.iter().collect();
    while let Some(first) = left.first() {
        let (source, seed, split) = (first.source, first.seed, first.split);
        let (now, later): (Vec<&Part>, Vec<&Part>) =
            left.into_iter().partition(|part| (part.source, part.seed, part.split) == (source, seed, split));
        left = later;
        if !monitor.keep_going() {
            return Err(Error::Interrupted);
        }
        let drawn;
        let problem = match source {
            Source::World(world) => {
                drawn = Problem::from_world(world, seed, settings)?;
                &drawn
            }
            Source::Data(dataset) => match data.get(dataset.name()) {
                Some(problem) => {
                    drawn = problem.resplit(split)?;
                    &drawn
                }
                None => continue,
            },
        };
        for part in now {
            if !monitor.keep_going() {
                return Err(Error::Interrupted);
            }
            part.store(part.experiment.measure(problem, seed, settings)?)?;
            monitor.step();
        }
    }
    Ok(())
}

/// Writes the file of every experiment whose parts are all measured.
fn write_complete_experiments(
    experiments: &[Experiment],
    settings: &Settings,
    parts: &[Part],
    missing: Option<&str>,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for &experiment in experiments {
        let own: Vec<&Part> = parts.iter().filter(|part| part.experiment == experiment).collect();
        let Some(numbers) = own.iter().map(|part| part.numbers()).collect::<Option<Vec<Value>>>() else { continue };
        let mut problems = Map::new();
        for source in experiment.sources() {
            let seeds: Vec<&Value> =
                own.iter().zip(&numbers).filter(|(part, _)| part.source == source).map(|(_, value)| value).collect();
            if !seeds.is_empty() {
                let mut problem = aggregate(&seeds);
                problem["seeds"] = json!(seeds.len());
                problem["splits"] = json!(own.iter().filter(|part| part.source == source && part.split > 0).count());
                problems.insert(source.name().into(), problem);
            }
        }
        let mut parameters = settings.parameters();
        parameters["seeds"] = json!(settings.seeds);
        parameters["splits"] = json!(settings.splits);
        parameters["version"] = json!(experiment.version());
        let file = json!({
            "experiment": experiment.name(),
            "parameters": parameters,
            "incomplete": missing.is_some(),
            "problems": problems,
        });
        let path = settings.output.join(format!("{experiment}.json"));
        write_json(&path, &file)?;
        files.push(path);
    }
    Ok(files)
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| Error::results(path, error.to_string()))?;
    Ok(pointsman_table::write_atomically(path, |out| {
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")
    })?)
}

/// Reads the result files of a folder: experiment → file.
///
/// # Errors
/// If a file is malformed or belongs to another experiment.
pub fn load_results(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut out = BTreeMap::new();
    for experiment in Experiment::ALL {
        let path = folder.join(format!("{experiment}.json"));
        let Ok(bytes) = fs::read(&path) else { continue };
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| Error::results(&path, error.to_string()))?;
        if value["experiment"] != experiment.name() {
            return Err(Error::results(&path, format!("not the results of {experiment}")));
        }
        out.insert(experiment.name().to_owned(), value);
    }
    Ok(out)
}
