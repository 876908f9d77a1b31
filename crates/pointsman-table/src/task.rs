//! Tasks from TOML files.

use std::collections::BTreeMap;
use std::path::Path;

use pointsman::error::TaskError;
use pointsman::loss::MAX_COST;
use pointsman::oracle::Aggregate;
use pointsman::{Loss, Oracle, Task};
use serde::Deserialize;

use crate::error::{ContentError, Error, input_name};
use crate::input::read_all;
use crate::suggest::did_you_mean;

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

/// A loss by name, or a cost matrix: one row per act, one column per class.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "loss is a name such as \"brier\", or a table with acts and cost")]
enum LossFile {
    Name(String),
    Matrix(MatrixFile),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixFile {
    /// The classes of the columns, in any order.
    classes: Option<Vec<String>>,
    acts: Option<Vec<String>>,
    cost: Option<Vec<CostRow>>,
}

/// What one act costs: under the classes in order, or under each class by name.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a row of costs is a list of numbers, or a table of one number per class")]
enum CostRow {
    InOrder(Vec<f64>),
    ByName(BTreeMap<String, f64>),
}

/// The keys and places that lead to a value in the file.
type KeyPath = Vec<Step>;

/// A key of a table, or a place in an array.
#[derive(Debug)]
enum Step {
    Key(&'static str),
    Place(usize),
}

/// The path of a bad value, and what is wrong with it.
type Fault = (KeyPath, pointsman::Error);

/// Adds the path of the value to an error.
fn at(path: impl IntoIterator<Item = Step>) -> impl FnOnce(pointsman::Error) -> Fault {
    let path = path.into_iter().collect();
    move |error| (path, error)
}

/// The line of a path's value, or of the deepest table on the path that exists.
fn line_of(text: &str, path: &[Step]) -> Option<usize> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let (first, rest) = path.split_first()?;
    let Step::Key(key) = first else { return None };
    let mut value = table.get_ref().get(*key)?;
    for step in rest {
        let next = match step {
            Step::Key(key) => value.get_ref().get(*key),
            Step::Place(place) => value.get_ref().get(*place),
        };
        let Some(next) = next else { break };
        value = next;
    }
    Some(line_at(text, value.span().start))
}

fn line_at(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

impl MatrixFile {
    fn loss(self) -> Result<Loss, Fault> {
        use Step::{Key, Place};
        let missing = |what: &str| Err(at([Key("loss")])(refuse_matrix(what.to_owned())));
        let Self { classes, acts, cost } = self;
        let Some(acts) = acts else {
            return missing("acts is missing: name one act per row of cost, as in acts = [\"accept\", \"reject\"]");
        };
        let Some(cost) = cost else {
            return missing("cost is missing: give one row of costs per act, with one number per class");
        };
        let named = usual_classes(&cost);
        let (by_name, is_from_acts) = (named.is_some(), classes.is_none());
        let classes = classes.or(named);
        let in_row = |place: usize| at([Key("loss"), Key("cost"), Place(place)]);
        let row = |(place, row): (usize, CostRow)| {
            let act = acts.get(place).map_or_else(|| format!("row {}", place + 1), |act| format!("{act:?}"));
            match (row, &classes) {
                (CostRow::ByName(row), Some(classes)) => {
                    costs_by_name(&act, &row, classes, is_from_acts).map_err(in_row(place))
                }
                (CostRow::InOrder(_), _) if by_name => Err(in_row(place)(refuse_matrix(format!(
                    "the costs of {act} name no classes, those of other acts do: write every row as {{class = cost, …}}"
                )))),
                (CostRow::InOrder(row), _) => Ok(row),
                (CostRow::ByName(_), None) => Ok(Vec::new()),
            }
        };
        let cost = cost.into_iter().enumerate().map(row).collect::<Result<Vec<Vec<f64>>, Fault>>()?;
        let width = cost.first().map_or(0, Vec::len);
        let is_bad = |row: &Vec<f64>| row.len() != width || row.iter().any(|x| !(0.0..=MAX_COST).contains(x));
        let path = match cost.iter().position(is_bad) {
            Some(place) => vec![Key("loss"), Key("cost"), Place(place)],
            None if acts.len() == cost.len() && width >= 2 => vec![Key("loss"), Key("acts")],
            None => vec![Key("loss"), Key("cost")],
        };
        let loss = Loss::matrix(acts, cost).map_err(at(path))?;
        match classes {
            Some(classes) => loss.with_classes(classes).map_err(at([Key("loss"), Key("classes")])),
            None => Ok(loss),
        }
    }
}

fn refuse_matrix(reason: String) -> pointsman::Error {
    TaskError::CostMatrix(reason).into()
}

/// The classes that most acts name, the first of several such lists; `None` if no act names classes.
fn usual_classes(cost: &[CostRow]) -> Option<Vec<String>> {
    let lists: Vec<Vec<String>> = cost
        .iter()
        .filter_map(|row| match row {
            CostRow::ByName(row) => Some(row.keys().cloned().collect()),
            CostRow::InOrder(_) => None,
        })
        .collect();
    let count = |list: &Vec<String>| lists.iter().filter(|other| *other == list).count();
    let most = lists.iter().map(count).max()?;
    lists.iter().find(|list| count(list) == most).cloned()
}

/// The costs of one act in the order of the classes, which are those of the file's list or those that most acts name.
fn costs_by_name(
    act: &str,
    row: &BTreeMap<String, f64>,
    classes: &[String],
    is_from_acts: bool,
) -> pointsman::Result<Vec<f64>> {
    let found: Option<Vec<f64>> = classes.iter().map(|class| row.get(class).copied()).collect();
    found.filter(|found| found.len() == row.len()).ok_or_else(|| {
        let named: Vec<&str> = row.keys().map(String::as_str).collect();
        let others = if is_from_acts { "those of other acts are" } else { "the matrix is" };
        refuse_matrix(format!(
            "the costs of {act} are for {}, {others} for {}: give every act one cost per class",
            named.join(", "),
            classes.join(", ")
        ))
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteFile {
    #[serde(default = "unnamed")]
    name: String,
    cost: f64,
    #[serde(default = "bayes")]
    kind: String,
    /// Of a panel only: how many experts, how their labels are combined, and how much they are smoothed.
    experts: Option<u32>,
    aggregate: Option<String>,
    smoothing: Option<f64>,
}

impl RouteFile {
    fn oracle(&self) -> pointsman::Result<Oracle> {
        let refuse = |reason: &str| {
            Err(TaskError::Syntax { what: "route", text: self.name.clone(), reason: reason.to_owned() }.into())
        };
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
/// If the file cannot be read, is not TOML, is empty, has unknown keys, or its loss, oracles and prices are not those of a task.
pub fn read_task(path: impl AsRef<Path>) -> crate::error::Result<Task> {
    let path = path.as_ref();
    let name = input_name(path);
    let text = String::from_utf8(read_all(path)?)
        .map_err(|_| Error::file(&name, "is not UTF-8 text: a task is a TOML file"))?;
    parse_task(&text).map_err(Error::content(name))
}

/// Reads a task from the text of its file.
///
/// # Errors
/// If the text is not TOML, is empty, has unknown keys, or its loss, oracles and prices are not those of a task.
pub fn parse_task(text: &str) -> Result<Task, ContentError> {
    // Every key has a default, so that a file that was lost or not written yet would be a task.
    if text.parse::<toml::Table>().is_ok_and(|table| table.is_empty()) {
        let reason = "the task is empty: for the Brier score alone, write loss = \"brier\"".to_owned();
        return Err(ContentError::Toml { line: 1, reason });
    }
    let file: TaskFile = toml::from_str(text).map_err(|e| {
        if let Some((line, reason)) = cost_not_a_number(text) {
            return ContentError::Toml { line, reason };
        }
        let line = e.span().map_or(1, |span| line_at(text, span.start));
        let (message, hint) = (e.message().replace('\n', ", "), hint(text, line, e.message()));
        let message =
            message.replace("expected f64", "expected a number").replace("expected u32", "expected a whole number");
        let message = message.replace("map, expected a sequence", "a table, expected a list");
        ContentError::Toml { line, reason: format!("{message}{hint}") }
    })?;
    build(file).map_err(|(path, reason)| ContentError::Task { line: line_of(text, &path), reason })
}

/// The line and place of the first cost of a matrix that is not a number, which the parser of the loss does not say.
fn cost_not_a_number(text: &str) -> Option<(usize, String)> {
    use toml::de::DeValue;
    let table = toml::de::DeTable::parse(text).ok()?;
    let rows = table.get_ref().get("loss")?.get_ref().get("cost")?.get_ref().as_array()?;
    for (row, costs) in (1..).zip(rows) {
        let cells: Vec<(String, _)> = match costs.get_ref() {
            DeValue::Array(costs) => {
                (1..).zip(costs).map(|(column, cost)| (format!("column {column}"), cost)).collect()
            }
            DeValue::Table(costs) => {
                costs.iter().map(|(class, cost)| (format!("class {}", class.get_ref()), cost)).collect()
            }
            _ => return None,
        };
        let is_number = |value: &DeValue<'_>| matches!(value, DeValue::Integer(_) | DeValue::Float(_));
        if let Some((column, cost)) = cells.iter().find(|(_, cost)| !is_number(cost.get_ref())) {
            let span = cost.span();
            let value = &text[span.clone()];
            let hint = quoted_number(value.trim_matches(['"', '\'']));
            return Some((
                line_at(text, span.start),
                format!("cost: row {row}, {column} is {value}, not a number{hint}"),
            ));
        }
    }
    None
}

/// What to do about frequent mistakes in TOML; empty for others.
fn hint(text: &str, line: usize, message: &str) -> String {
    const TOP_LEVEL: [&str; 5] = ["abstain", "budget", "target_loss", "estimator", "ties"];
    let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
    let is_one_route = source.starts_with("route") && message.contains("expected a sequence");
    if is_one_route || source.starts_with("[route]") || source.starts_with("[route.") {
        return ": write [[route]] with name and cost, one for every route".to_owned();
    }
    if let Some(line) = with_decimal_point(source).filter(|_| message.contains("expected newline")) {
        return format!(": use a decimal point, {line}");
    }
    if let Some(number) = message.strip_prefix("invalid type: string \"").and_then(|rest| rest.split('"').next()) {
        return quoted_number(number);
    }
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let is_in_table = text.lines().take(line).any(|line| line.trim_start().starts_with('['));
    match unknown {
        Some(key) if TOP_LEVEL.contains(&key) && is_in_table => {
            format!(": {key} belongs to the whole task: move it above the first [table]")
        }
        Some("price") => ": did you mean cost?".to_owned(),
        Some("cap" | "caps") => {
            ": a cap counts the queries of a table: give it as --cap to decide, evaluate or compare; budget limits the share".to_owned()
        }
        Some(key) => {
            let known = ["loss", "route"].into_iter().chain(TOP_LEVEL);
            did_you_mean(key, known)
        }
        None => String::new(),
    }
}

/// The error of a budget; if it was meant in per cent, one that says what to write.
fn in_percent(share: f64, error: pointsman::Error) -> pointsman::Error {
    if !(2.0..=100.0).contains(&share) {
        return error;
    }
    let reason = format!("a share is from 0 to 1: for {share} % write {}", share / 100.0);
    TaskError::Syntax { what: "budget", text: share.to_string(), reason }.into()
}

/// A line `key = 0,30` with a decimal point; `None` if it is another line.
fn with_decimal_point(line: &str) -> Option<String> {
    let (key, value) = line.split('#').next()?.split_once('=')?;
    let point = value.trim().replacen(',', ".", 1);
    (value.contains(',') && point.parse::<f64>().is_ok()).then(|| format!("{} = {point}", key.trim()))
}

/// What to write instead of a number in quotes.
fn quoted_number(text: &str) -> String {
    let share = text.strip_suffix('%').and_then(|percent| format!("{}e-2", percent.trim()).parse::<f64>().ok());
    match share.or_else(|| text.trim().parse().ok()) {
        Some(number) => format!(": write {number}, without quotes"),
        None => String::new(),
    }
}

fn build(file: TaskFile) -> Result<Task, Fault> {
    use Step::{Key, Place};
    let loss = match file.loss {
        LossFile::Name(name) => name.parse().map_err(at([Key("loss")]))?,
        LossFile::Matrix(matrix) => matrix.loss()?,
    };
    let mut task = Task::new(loss);
    for (place, route) in file.route.into_iter().enumerate() {
        let in_route = |key| at([Key("route"), Place(place), Key(key)]);
        let oracle = route.oracle().map_err(in_route("kind"))?;
        let key = if (0.0..=MAX_COST).contains(&route.cost) { "name" } else { "cost" };
        task = task.route(route.name, oracle, route.cost).map_err(in_route(key))?;
    }
    if let Some(price) = file.abstain {
        task = task.abstain(price).map_err(at([Key("abstain")]))?;
    }
    if let Some(share) = file.budget {
        task = task.budget(share).map_err(|error| in_percent(share, error)).map_err(at([Key("budget")]))?;
    }
    if let Some(loss) = file.target_loss {
        task = task.target_loss(loss).map_err(at([Key("target_loss")]))?;
    }
    if let Some(estimator) = file.estimator {
        task = task.estimator(estimator.parse().map_err(at([Key("estimator")]))?);
    }
    if let Some(ties) = file.ties {
        task = task.ties(ties.parse().map_err(at([Key("ties")]))?);
    }
    Ok(task)
}
