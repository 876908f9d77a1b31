//! Decisions as a table: the columns that `pointsman decide` writes, what the service adds, and those that it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointsman_table::{Column, ColumnKind};

use crate::answer::{Answer, Explanation};
use crate::deployment::Names;
use crate::store::Record;

/// Columns with their names.
pub(crate) type Columns = Vec<(String, Column)>;

/// The names and kinds of columns.
pub(crate) fn declared(columns: &Columns) -> Vec<(String, ColumnKind)> {
    columns.iter().map(|(name, column)| (name.clone(), column.kind())).collect()
}

/// The values of columns.
pub(crate) fn values(columns: Columns) -> Vec<Column> {
    columns.into_iter().map(|(_, column)| column).collect()
}

/// The columns of answers, with the costs of these actions.
pub(crate) fn answer_columns(answers: &[Answer<'_>], actions: &[String]) -> Columns {
    let text = |name: &str, pick: fn(&Answer<'_>) -> Option<String>| {
        let values = answers.iter().map(|answer| pick(answer).unwrap_or_default());
        (name.to_owned(), Column::Text(values.collect()))
    };
    let real = |name: String, pick: &dyn Fn(&Answer<'_>) -> Option<f64>| {
        (name, Column::Real(answers.iter().map(|answer| pick(answer).unwrap_or(f64::NAN)).collect()))
    };
    let whole = |name: &str, pick: fn(&Answer<'_>) -> u32| {
        (name.to_owned(), Column::Integer(answers.iter().map(|answer| i64::from(pick(answer))).collect()))
    };
    let mut columns = vec![
        text("decision_id", |answer| answer.decision_id.map(|id| id.to_string())),
        whole("version", |answer| answer.version),
        whole("cell", |answer| answer.cell),
        text("support", |answer| Some(answer.support.to_owned())),
        text("action", |answer| Some(answer.action.to_owned())),
        text("label", |answer| Some(answer.label.to_owned())),
        real("irreducible".to_owned(), &|answer| answer.irreducible),
        real("reducible".to_owned(), &|answer| answer.reducible),
    ];
    for action in actions {
        let column = format!("cost_{}", action.replacen(':', "_", 1));
        columns.push(real(column, &|answer| answer.costs.get(action)));
    }
    columns.push(text("reason", |answer| Some(answer.reason.to_owned())));
    columns.push(text("degraded", |answer| answer.degraded.map(str::to_owned)));
    columns.push(text("would", |answer| answer.would.map(str::to_owned)));
    columns
}

/// More columns of answers: what they are in the answer as JSON and [`answer_columns`] does not have.
pub(crate) fn answer_extras(answers: &[Answer<'_>]) -> Columns {
    let text = |pick: for<'a> fn(&Answer<'a>) -> Option<&'a str>| {
        Column::Text(answers.iter().map(|answer| pick(answer).unwrap_or_default().to_owned()).collect())
    };
    let margins = answers.iter().map(|answer| answer.margin.unwrap_or(f64::NAN));
    vec![
        ("wanted".to_owned(), text(|answer| answer.wanted)),
        ("margin".to_owned(), Column::Real(margins.collect())),
        ("id".to_owned(), text(|answer| answer.id)),
    ]
}

/// The columns of explanations.
pub(crate) fn explanation_columns(answers: &[Answer<'_>]) -> Columns {
    let text = |pick: fn(&Explanation<'_>) -> Option<String>| {
        let values = answers.iter().map(|answer| answer.explanation.as_ref().and_then(pick).unwrap_or_default());
        Column::Text(values.collect())
    };
    let rows =
        answers.iter().map(|answer| answer.explanation.as_ref().map_or(0, |explanation| explanation.rows as u64));
    vec![
        ("cell_name".to_owned(), text(|explanation| Some(explanation.cell_name.clone()))),
        ("rows".to_owned(), Column::Count(rows.collect())),
        ("level".to_owned(), text(|explanation| Some(explanation.level.to_owned()))),
        ("next_best".to_owned(), text(|explanation| explanation.next_best.clone())),
    ]
}

/// Logged decisions as a table that can be decided again.
///
/// It has the columns of all versions of a deployment. Where a version lacks a class, a feature or an action, the value is unknown.
#[derive(Debug)]
pub(crate) struct LogTable {
    deployment: String,
    versions: BTreeMap<u32, Arc<Names>>,
    classes: Vec<String>,
    features: Vec<String>,
    actions: Vec<String>,
    has_acts: bool,
}

impl LogTable {
    /// The table of decisions that these versions made. Names are in the order of the newest version.
    pub(crate) fn new(deployment: &str, versions: BTreeMap<u32, Arc<Names>>) -> Self {
        let union = |pick: fn(&Names) -> &Vec<String>| {
            let mut all: Vec<String> = Vec::new();
            for name in versions.values().rev().flat_map(|names| pick(names)) {
                if !all.contains(name) {
                    all.push(name.clone());
                }
            }
            all
        };
        Self {
            deployment: deployment.to_owned(),
            classes: union(|names| &names.classes),
            features: union(|names| &names.features),
            actions: union(|names| &names.actions),
            has_acts: versions.values().any(|names| names.acts.is_some()),
            versions,
        }
    }

    /// The names and kinds of the columns.
    pub(crate) fn declared(&self) -> Vec<(String, ColumnKind)> {
        declared(&self.columns(&[]))
    }

    /// The columns of some decisions; those of unknown versions are passed over.
    pub(crate) fn columns(&self, records: &[Record]) -> Columns {
        let known = records.iter().filter_map(|record| Some((record, &**self.versions.get(&record.version)?)));
        let rows: Vec<(&Record, &Names)> = known.collect();
        let answers: Vec<Answer<'_>> = rows.iter().map(|(record, names)| Answer::new(record, names, true)).collect();
        let id = |record: &Record| record.client_id.clone().unwrap_or_else(|| record.id.to_string());
        let mut columns = vec![
            ("id".to_owned(), Column::Text(rows.iter().map(|(record, _)| id(record)).collect())),
            ("at".to_owned(), Column::Time(rows.iter().map(|(record, _)| record.at.0).collect())),
            ("deployment".to_owned(), Column::Text(vec![self.deployment.clone(); rows.len()])),
        ];
        columns.extend(answer_columns(&answers, &self.actions));
        let text = |pick: for<'a> fn(&Answer<'a>) -> Option<&'a str>| {
            Column::Text(answers.iter().map(|answer| pick(answer).unwrap_or_default().to_owned()).collect())
        };
        columns.push(("wanted".to_owned(), text(|answer| answer.wanted)));
        if self.has_acts {
            columns.push(("act".to_owned(), text(|answer| answer.act)));
        }
        let margins = answers.iter().map(|answer| answer.margin.unwrap_or(f64::NAN));
        columns.push(("margin".to_owned(), Column::Real(margins.collect())));
        let numbers = |name: &String, all: fn(&Names) -> &Vec<String>, values: fn(&Record) -> &Vec<f64>| {
            let value = |(record, names): &(&Record, &Names)| {
                let place = all(names).iter().position(|other| other == name)?;
                values(record).get(place).copied()
            };
            Column::Real(rows.iter().map(|row| value(row).unwrap_or(f64::NAN)).collect())
        };
        for class in &self.classes {
            columns
                .push((format!("prob_{class}"), numbers(class, |names| &names.classes, |record| &record.prediction)));
        }
        for feature in &self.features {
            columns
                .push((format!("x_{feature}"), numbers(feature, |names| &names.features, |record| &record.features)));
        }
        columns.push(("tags".to_owned(), Column::Json(rows.iter().map(|(record, _)| record.tags.clone()).collect())));
        columns.push(("input".to_owned(), Column::Json(rows.iter().map(|(record, _)| record.input.clone()).collect())));
        columns
    }
}
