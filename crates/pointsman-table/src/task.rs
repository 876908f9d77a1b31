//! Tasks from TOML files.

use std::path::Path;

use pointsman::{Aggregate, Loss, Oracle, Task};
use serde::Deserialize;

use crate::error::{Error, Result, name_of, printable};
use crate::input::read_all;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFile {
    #[serde(default = "brier")]
    loss: LossFile,
    abstain: Option<f64>,
    budget: Option<f64>,
    target_loss: Option<f64>,
    estimator: Option<String>,
    ties: Option<String>,
    #[serde(default)]
    route: Vec<RouteFile>,
}

/// A loss by name, or a cost matrix: one row an act, one column a class.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "loss is a name such as \"brier\", or a table with acts and cost")]
enum LossFile {
    Name(String),
    Matrix(MatrixFile),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixFile {
    acts: Vec<String>,
    cost: Vec<Vec<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteFile {
    #[serde(default = "unnamed")]
    name: String,
    cost: f64,
    #[serde(default = "bayes")]
    kind: String,
    /// How many, how their labels are put together and how much they are smoothed: of a panel only.
    experts: Option<u32>,
    aggregate: Option<String>,
    smoothing: Option<f64>,
}

impl RouteFile {
    fn oracle(&self) -> pointsman::Result<Oracle> {
        let refuse = |reason: &str| Err(pointsman::Error::Task(format!("route {:?}: {reason}", self.name)));
        let Self { kind, experts, aggregate, smoothing, .. } = self;
        match (kind.as_str(), experts) {
            ("panel", &Some(experts)) => {
                Oracle::panel(experts, Aggregate::new(aggregate.as_deref().unwrap_or("mean"), *smoothing)?)
            }
            ("panel", None) => refuse("a panel needs experts, as in experts = 3"),
            _ if experts.is_some() || aggregate.is_some() || smoothing.is_some() => {
                refuse("experts, aggregate and smoothing are for kind = \"panel\"")
            }
            _ => kind.parse(),
        }
    }
}

fn unnamed() -> String {
    "oracle".into()
}

fn brier() -> LossFile {
    LossFile::Name("brier".into())
}

fn bayes() -> String {
    "bayes".into()
}

/// Reads a task file; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, is not TOML, has unknown keys, or its loss, oracles and prices make no task.
pub fn read_task(path: impl AsRef<Path>) -> Result<Task> {
    let path = path.as_ref();
    let name = name_of(path);
    let text = String::from_utf8(read_all(path)?)
        .map_err(|_| Error::file(&name, "is not UTF-8 text: a task is a TOML file"))?;
    parse_task(&text).map_err(|reason| Error::file(&name, reason))
}

/// Reads a task from the text of its file; the reason if it is none.
///
/// # Errors
/// If the text is not TOML, has unknown keys, or its loss, oracles and prices make no task.
pub fn parse_task(text: &str) -> std::result::Result<Task, String> {
    let file: TaskFile = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        format!("line {line}: {}", printable(&e.message().replace('\n', ", ")))
    })?;
    build(file).map_err(|e| e.to_string())
}

fn build(file: TaskFile) -> pointsman::Result<Task> {
    let loss = match file.loss {
        LossFile::Name(name) => name.parse()?,
        LossFile::Matrix(matrix) => Loss::matrix(matrix.acts, matrix.cost)?,
    };
    let mut task = Task::new(loss);
    for route in file.route {
        let oracle = route.oracle()?;
        task = task.route(route.name, oracle, route.cost)?;
    }
    if let Some(price) = file.abstain {
        task = task.abstain(price)?;
    }
    if let Some(share) = file.budget {
        task = task.budget(share)?;
    }
    if let Some(loss) = file.target_loss {
        task = task.target_loss(loss)?;
    }
    if let Some(estimator) = file.estimator {
        task = task.estimator(estimator.parse()?);
    }
    if let Some(ties) = file.ties {
        task = task.ties(ties.parse()?);
    }
    Ok(task)
}
