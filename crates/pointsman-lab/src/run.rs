//! Working through the parts of experiments, keeping each as it is done.

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

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The result files written.
    pub files: Vec<PathBuf>,
    /// Data sets that were left out because they are not there, and what to do about it.
    pub missing: Option<String>,
    /// Parts that were measured now.
    pub measured: usize,
    /// Parts that were there already.
    pub kept: usize,
}

/// One problem and seed of one experiment.
#[derive(Debug, Clone)]
struct Part {
    experiment: Experiment,
    source: Source,
    seed: u64,
    /// Which halves of a data set: 0 those that its file names, else drawn with this number.
    split: u64,
    path: PathBuf,
    parameters: Value,
}

impl Part {
    /// The numbers, if they were measured before with the same parameters.
    fn numbers(&self) -> Option<Value> {
        let mut kept: Value = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (kept["parameters"] == self.parameters).then(|| kept["numbers"].take())
    }

    fn keep(&self, numbers: Value) -> Result<()> {
        write_json(&self.path, &json!({ "parameters": self.parameters, "numbers": numbers }))
    }
}

/// Runs experiments, leaving out what the output folder has already. Data sets that nobody named and that are not there
/// are left out and reported in the outcome.
///
/// # Errors
/// If a setting is unusable, a data set malformed or, in a folder the user named, missing; if the folder cannot be written;
/// if the monitor says stop. Parts finished before stay, and a later run continues from them.
pub fn reproduce(experiments: &[Experiment], settings: &Settings, monitor: &dyn Monitor) -> Result<Outcome> {
    settings.check()?;
    let parts_folder = settings.output.join("parts");
    fs::create_dir_all(&parts_folder).map_err(|source| Error::folder(&parts_folder, source))?;
    let folder = DataFolder::find(settings.data.as_deref());
    let (data, missing) = data_sets(experiments, &folder)?;
    let parts = parts(experiments, settings, &folder, &data, &parts_folder)?;
    let (kept, pending): (Vec<Part>, Vec<Part>) = parts.iter().cloned().partition(|part| part.numbers().is_some());
    let run = train(&pending, settings, monitor).and_then(|()| measure(&pending, &data, settings, monitor));
    // What is complete is worth a file, however the run ended.
    let files = assemble(experiments, settings, &parts, missing.as_deref())?;
    run?;
    Ok(Outcome { files, missing, measured: pending.len(), kept: kept.len() })
}

/// The data sets the experiments need, and what to say about those that are not there.
fn data_sets(
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

fn parts(
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

/// Trains the weak models that parts need and that are not there, side by side.
fn train(pending: &[Part], settings: &Settings, monitor: &dyn Monitor) -> Result<()> {
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

/// Measures parts, those of one problem and seed together: drawing a world and predicting its test rows takes as long as
/// some experiments.
fn measure(
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
                drawn = Problem::of_world(world, seed, settings)?;
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
            part.keep(part.experiment.measure(problem, seed, settings)?)?;
            monitor.step();
        }
    }
    Ok(())
}

/// Writes the file of every experiment whose parts are all there.
fn assemble(
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
/// If a file is there and is not a results file.
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
