//! Errors of tables.

use super::{columns, listed};

/// Why a table as a whole cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table has fewer than two classes, or too many.
    #[error("{}", class_count(*classes, *most))]
    ClassCount {
        /// The number of classes.
        classes: usize,
        /// The largest possible number of classes.
        most: usize,
    },
    /// The classes of a table are not those of the router, or are in another order.
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
    /// Two tables have different columns.
    #[error("the tables differ in their {what}, {} and {}: give all the same columns", listed(first), listed(second))]
    DifferentColumns {
        /// Which columns: classes, votes, features, oracles, truth or weights.
        what: &'static str,
        /// The columns of the first table.
        first: Vec<String>,
        /// The columns of the second table.
        second: Vec<String>,
    },
    /// A class, feature, oracle or annotator has an empty name.
    #[error("a{} {what} without a name", if what.starts_with(['a', 'o']) { "n" } else { "" })]
    Unnamed {
        /// What has no name.
        what: &'static str,
    },
    /// Two classes, features, oracles or annotators have the same name.
    #[error("{what} {name:?} is given twice")]
    RepeatedName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The table does not have a feature that is needed.
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
    /// The table has no answers of the oracle of a measured route.
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
    /// No annotator has this name.
    #[error("no annotator is called {name:?}")]
    UnknownAnnotator {
        /// The name.
        name: String,
    },
    /// The table has no labels, and the purpose needs them.
    #[error("{purpose} needs votes: columns {columns}")]
    NoVotes {
        /// What they are needed for.
        purpose: &'static str,
        /// The columns that would give labels.
        columns: &'static str,
    },
    /// The table has fewer rows than the purpose needs.
    #[error("{}: {purpose} needs at least {}", count_rows(*rows), if *least == 1 { "one row".to_owned() } else { count_rows(*least) })]
    TooFewRows {
        /// What they are needed for.
        purpose: &'static str,
        /// The number of rows.
        rows: usize,
        /// The smallest number of rows for the purpose.
        least: usize,
    },
    /// The table has more rows than the largest row number.
    #[error("{rows} rows are too many: sample the table, or give parts a cap")]
    TooManyRows {
        /// The number of rows.
        rows: usize,
    },
    /// There is not exactly one value per row.
    #[error("{found} {what} for {rows} rows: give one per row")]
    Length {
        /// What the values are.
        what: &'static str,
        /// The number of values.
        found: usize,
        /// The number of rows.
        rows: usize,
    },
    /// Columns have another number of rows than the predictions.
    #[error("{columns} has {found} rows, the predictions {rows}")]
    ColumnLength {
        /// The columns.
        columns: String,
        /// The number of their rows.
        found: usize,
        /// The number of rows of the predictions.
        rows: usize,
    },
    /// The values of columns do not fill whole rows.
    #[error("{columns} has {values} values, not a whole number of rows of {width}")]
    IncompleteRow {
        /// The columns.
        columns: String,
        /// The number of values.
        values: usize,
        /// The number of values per row.
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
        /// The number of probabilities of the query.
        probabilities: usize,
        /// The number of features of the query.
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
        /// The number of probabilities.
        probabilities: usize,
        /// The number of features.
        values: usize,
        /// The number of probabilities per row.
        classes: usize,
        /// The number of features per row.
        features: usize,
    },
    /// The numbers of predictions, answers and labels do not fit the number of decisions.
    #[error(
        "{rows} decisions need {} probabilities, as many of answers, and {rows} labels; there are {probabilities}, {answers} and {labels}",
        rows * classes
    )]
    OutcomeShape {
        /// The number of decisions.
        rows: usize,
        /// The number of probabilities per row.
        classes: usize,
        /// The number of probabilities.
        probabilities: usize,
        /// The number of probabilities of answers.
        answers: usize,
        /// The number of labels.
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
    /// The queries were decided by a policy of another router.
    #[error("these queries were not decided by a policy of this router")]
    OtherQueries,
    /// A cap was given for rows without ids.
    #[error("a cap needs ids: give each row one that no other row of any part has")]
    CapWithoutIds,
    /// The weight of a row is too large for a certificate.
    #[error("a row weighs {relative:.0} times the mean: certificates need weights of at most {most} times it")]
    HeavyRow {
        /// Its weight divided by the mean weight.
        relative: f64,
        /// The largest possible weight divided by the mean weight.
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
    /// The distance between two point clouds of label distributions is not defined.
    #[error("{0}")]
    Clouds(pointsman_transport::Error),
    /// No re-splits were asked for, from which the noise floor of a distance is estimated.
    #[error("no floor without re-splits: give at least 1, or better {better}")]
    NoSplits {
        /// The default number of re-splits.
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
