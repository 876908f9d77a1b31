//! What can be wrong with a table.

use super::{columns, listed};

/// Why a table as a whole cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Fewer than two classes, or more than can be handled.
    #[error("{}", class_count(*classes, *most))]
    ClassCount {
        /// How many there are.
        classes: usize,
        /// How many there may be.
        most: usize,
    },
    /// The classes of a table are not those of the router it is used with, or in another order.
    #[error(
        "the table's classes are {}, the router's {}: {}",
        listed(table),
        listed(router),
        advice_on_classes(table, router)
    )]
    OtherClasses {
        /// The classes of the table.
        table: Vec<String>,
        /// The classes of the router.
        router: Vec<String>,
    },
    /// Stored decisions are not those of the policy.
    #[error("{what}: these decisions are of another policy")]
    OtherDecisions {
        /// What does not fit.
        what: String,
    },
    /// Two tables do not have the same columns.
    #[error("the tables differ in their {what}, {} and {}: give all the same columns", listed(first), listed(second))]
    DifferentColumns {
        /// Which columns: classes, votes, features, oracles, truth or weights.
        what: &'static str,
        /// Those of the first.
        first: Vec<String>,
        /// Those of the second.
        second: Vec<String>,
    },
    /// A class, feature, oracle or annotator has an empty name.
    #[error("a{} {what} without a name", if what.starts_with(['a', 'o']) { "n" } else { "" })]
    Unnamed {
        /// What has no name.
        what: &'static str,
    },
    /// Two classes, features, oracles or annotators have one name.
    #[error("{what} {name:?} is given twice")]
    RepeatedName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A feature is needed that the table does not have.
    #[error(
        "the feature x_{feature} is needed; the table has {}",
        if features.is_empty() { "no features: name their columns x_<name>".to_owned() } else { columns(features).join(", ") }
    )]
    NoFeature {
        /// The feature.
        feature: String,
        /// The features of the table.
        features: Vec<String>,
    },
    /// A route is measured, and the table has no answers of its oracle.
    #[error(
        "the route {route:?} is measured, but there is no column oracle_{route}_{class}: {}",
        advice_on_answers(oracles)
    )]
    NoAnswers {
        /// The route.
        route: String,
        /// The first class.
        class: String,
        /// The oracles whose answers the table has.
        oracles: Vec<String>,
    },
    /// No annotator has that name.
    #[error("no annotator is called {name:?}")]
    UnknownAnnotator {
        /// The name.
        name: String,
    },
    /// The table has no labels, which the purpose needs.
    #[error("{purpose} needs votes: columns {columns}")]
    NoVotes {
        /// What they are needed for.
        purpose: &'static str,
        /// The columns that would do.
        columns: &'static str,
    },
    /// The table has fewer rows than the purpose needs.
    #[error("{}: {purpose} needs at least {}", count_rows(*rows), if *least == 1 { "one row".to_owned() } else { count_rows(*least) })]
    TooFewRows {
        /// What they are needed for.
        purpose: &'static str,
        /// How many there are.
        rows: usize,
        /// How many are needed.
        least: usize,
    },
    /// There are more rows than can be numbered.
    #[error("{rows} rows are too many: sample the table, or give parts a cap")]
    TooManyRows {
        /// How many there are.
        rows: usize,
    },
    /// Values that go with the rows are not as many as the rows.
    #[error("{found} {what} for {rows} rows: give one per row")]
    Length {
        /// What the values are.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// Columns do not have as many rows as the predictions.
    #[error("{columns} has {found} rows, the predictions {rows}")]
    ColumnLength {
        /// The columns.
        columns: String,
        /// How many rows they have.
        found: usize,
        /// How many rows the predictions have.
        rows: usize,
    },
    /// The values of columns do not fill whole rows.
    #[error("{columns} has {values} values, not a whole number of rows of {width}")]
    IncompleteRow {
        /// The columns.
        columns: String,
        /// How many values there are.
        values: usize,
        /// How many values a row has.
        width: usize,
    },
    /// A query does not have the probabilities and features of the router.
    #[error(
        "a query has {probabilities} probabilities and {values} features; this router needs {} ({}) and {} ({})",
        classes.len(),
        classes.join(", "),
        features.len(),
        columns(features).join(", ")
    )]
    QueryShape {
        /// How many probabilities the query has.
        probabilities: usize,
        /// How many features the query has.
        values: usize,
        /// The classes of the router.
        classes: Vec<String>,
        /// The features that the router needs.
        features: Vec<String>,
    },
    /// Arrays of queries do not have the probabilities and features of the router.
    #[error(
        "{probabilities} probabilities and {values} feature values are not rows of {classes} and {features}, which this router needs"
    )]
    BatchShape {
        /// How many probabilities there are.
        probabilities: usize,
        /// How many features there are.
        values: usize,
        /// Probabilities per row.
        classes: usize,
        /// Features per row.
        features: usize,
    },
    /// The predictions, answers and labels are not those of the decisions.
    #[error(
        "{rows} decisions need {} probabilities, as many of answers, and {rows} labels; there are {probabilities}, {answers} and {labels}",
        rows * classes
    )]
    OutcomeShape {
        /// How many decisions there are.
        rows: usize,
        /// Probabilities per row.
        classes: usize,
        /// How many probabilities there are.
        probabilities: usize,
        /// How many probabilities of answers there are.
        answers: usize,
        /// How many labels there are.
        labels: usize,
    },
    /// Policies to be compared were replayed on different rows.
    #[error("{first:?} and {second:?} were replayed on different rows: use one table")]
    DifferentRows {
        /// One policy.
        first: String,
        /// The other.
        second: String,
    },
    /// Queries to be counted were not decided by a policy of the router.
    #[error("these queries were not decided by a policy of this router")]
    OtherQueries,
    /// Rows are to be capped, and have no ids.
    #[error("a cap needs ids: give each row one that no other row of any part has")]
    CapWithoutIds,
    /// A row weighs too much for a certificate.
    #[error("a row weighs {relative:.0} times the mean: certificates need weights of at most {most} times it")]
    HeavyRow {
        /// Its weight, in means.
        relative: f64,
        /// The largest possible weight, in means.
        most: f64,
    },
    /// A cell's rows give no bound that holds for all losses at once.
    #[error("no bound for all losses at once in cell {cell}: {reason}")]
    NoBound {
        /// The cell.
        cell: usize,
        /// Why, as the end of the message.
        reason: String,
    },
    /// Clouds of label distributions cannot be compared.
    #[error("{0}")]
    Clouds(pointsman_transport::Error),
    /// A distance without re-splits has nothing to be compared with.
    #[error("no floor without re-splits: give at least 1, or better {better}")]
    NoSplits {
        /// The number by default.
        better: usize,
    },
}

fn class_count(classes: usize, most: usize) -> String {
    match classes {
        0 => "0 classes: a classifier needs at least two".to_owned(),
        1 => "1 class: a classifier needs at least two".to_owned(),
        _ => format!("{classes} classes are too many: at most {most}"),
    }
}

fn count_rows(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

fn advice_on_classes(table: &[String], router: &[String]) -> &'static str {
    let [mut a, mut b] = [table, router].map(<[String]>::to_vec);
    a.sort();
    b.sort();
    if a == b { "put the table's columns in the router's order" } else { "calibrate on tables of these classes" }
}

fn advice_on_answers(oracles: &[String]) -> String {
    if oracles.is_empty() {
        "put the oracle's predictions into the calibration table and calibrate again, and into held-out tables, or give the route another kind"
            .to_owned()
    } else {
        format!("there are predictions of {}; call the route like one of them", oracles.join(", "))
    }
}
