//! What can be wrong with a task.

use super::{COMMAND_FOR_CELLS, listed};

/// Why a loss, oracles, prices and limits make no task, or none for this router.
///
/// Reasons that a caller would not tell apart are text: the end of a message about something named.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A name that is none of those known.
    #[error("unknown {what} {text:?}: use {known}")]
    Unknown {
        /// What it should name: loss, kind of oracle, aggregate, estimator or tie rule.
        what: &'static str,
        /// The text.
        text: String,
        /// What can be used.
        known: &'static str,
    },
    /// Something known is written wrongly.
    #[error("{what} {text:?}: {reason}")]
    Syntax {
        /// What it should be: loss, oracle, cap or sweep.
        what: &'static str,
        /// The text.
        text: String,
        /// What is wrong with it, as the end of the message.
        reason: String,
    },
    /// A price, limit or parameter is out of its range.
    #[error("{what}: {} {wanted}", number(*value))]
    OutOfRange {
        /// What the number is for.
        what: String,
        /// The number.
        value: f64,
        /// The range, as the end of the message.
        wanted: String,
    },
    /// A route's name is empty, too long, or has characters with another meaning.
    #[error("route name {name:?}: use 1 to 64 characters without commas, colons, equal signs or quotes")]
    RouteName {
        /// The name.
        name: String,
    },
    /// Two routes or policies have one name.
    #[error("two {what} are called {name:?}: give each a name of its own")]
    RepeatedName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No route or policy has that name.
    #[error("no {what} is called {name:?}; there are: {}", listed(known))]
    UnknownName {
        /// What should have the name.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// There is no route of that number.
    #[error("route {route}: the task has {routes}, counted from 0")]
    NoSuchRoute {
        /// The number.
        route: usize,
        /// How many routes there are.
        routes: usize,
    },
    /// There are more routes than can be numbered.
    #[error("more than {most} routes")]
    TooManyRoutes {
        /// How many there may be.
        most: usize,
    },
    /// Routing is limited, and there is no route.
    #[error("a budget or target loss limits routing: give the task a route")]
    LimitWithoutRoute,
    /// The price of routing is to be varied, and there is no route.
    #[error("the task has no route to sweep: add a route with its price")]
    SweepWithoutRoute,
    /// Both limits at once.
    #[error("a budget and a target loss: one decides how much is routed, give one of them")]
    MixedLimits,
    /// Two caps of one route.
    #[error("the route {route:?} has two caps: give one")]
    TwoCaps {
        /// The route.
        route: String,
    },
    /// The acts and costs are no cost matrix; why, as the end of the message.
    #[error("cost matrix: {0}")]
    CostMatrix(String),
    /// The loss has no columns that could be named.
    #[error("the loss {loss} is no cost matrix whose columns could be named")]
    NotAMatrix {
        /// The loss.
        loss: String,
    },
    /// The named columns of a cost matrix are not the classes of the predictions.
    #[error(
        "the classes of the cost matrix are not those of the predictions: only the matrix has {}, only the predictions have {}: give one \
         column for each class of the predictions",
        only(matrix, predictions),
        only(predictions, matrix)
    )]
    MatrixClasses {
        /// The columns of the matrix.
        matrix: Vec<String>,
        /// The classes of the predictions.
        predictions: Vec<String>,
    },
    /// A cost matrix has not as many columns as the predictions have classes.
    #[error("the loss {loss} is for {columns} classes, the predictions have {classes}")]
    LossClasses {
        /// The loss.
        loss: String,
        /// How many columns it has.
        columns: usize,
        /// How many classes the predictions have.
        classes: usize,
    },
    /// The loss of a panel's answer is not bounded.
    #[error(
        "{oracle}: labels that nobody gave get no probability, so the {loss} is that of the one label missed; use aggregate=laplace"
    )]
    UnboundedLoss {
        /// The oracle.
        oracle: String,
        /// The loss.
        loss: String,
    },
    /// The estimator is not defined for so many classes.
    #[error("the estimator {estimator} is for at most {most} classes, there are {classes}: use shrink or dirichlet")]
    EstimatorClasses {
        /// The estimator.
        estimator: String,
        /// How many classes there are.
        classes: usize,
        /// How many there may be.
        most: usize,
    },
    /// The estimator cannot value the leaves of a forest.
    #[error(
        "the estimator {estimator} needs more rows than a leaf of a forest has: use shrink, or run {COMMAND_FOR_CELLS}"
    )]
    EstimatorOfForest {
        /// The estimator.
        estimator: String,
    },
    /// A policy was compiled for another loss or estimator.
    #[error("another loss or estimator needs a policy of its own: Router::policy")]
    OtherPolicy,
    /// A policy was compiled without the oracle of a route.
    #[error("the oracle {oracle} of the route {route:?} needs a policy of its own: Router::policy")]
    OtherOracle {
        /// The route.
        route: String,
        /// Its oracle.
        oracle: String,
    },
    /// A certificate was made for another loss or other oracles.
    #[error("another loss or other oracles need a certificate of their own: Router::certificate")]
    OtherCertificate,
    /// Rows were replayed with another policy.
    #[error("the rows were replayed with another router, loss, estimator or oracles: replay them again")]
    OtherReplay,
    /// Fewer than two policies are to be compared.
    #[error("one policy cannot be compared: give two or more")]
    OnePolicy,
    /// The costs of all cells would take gigabytes.
    #[error(
        "a policy of {cells} cells and {actions} actions: cells times actions must not be above {most}; use fewer bins or fewer routes"
    )]
    PolicySize {
        /// How many cells.
        cells: usize,
        /// How many actions.
        actions: usize,
        /// The largest product of both.
        most: usize,
    },
    /// There are more actions than a decision of a forest has room for.
    #[error(
        "{actions} actions; with a forest at most {most} are possible: leave out routes, or run {COMMAND_FOR_CELLS}"
    )]
    ForestActions {
        /// How many actions.
        actions: usize,
        /// How many there may be.
        most: usize,
    },
    /// A certificate would have more intervals than can be handled.
    #[error(
        "a certificate of {cells} cells and {answers} answers (predicting, knowing the truth and each other oracle): cells times the \
         square of answers must not be above {most}; use fewer bins or fewer oracles"
    )]
    CertificateSize {
        /// How many cells.
        cells: usize,
        /// How many answers.
        answers: usize,
        /// The largest product of cells and squared answers.
        most: usize,
    },
    /// No tree of a forest is out-of-bag for any row, so that a limit cannot be turned into a price.
    #[error(
        "no calibration row is out of bag for any tree, so that a limit on routing cannot be turned into a price: grow more trees"
    )]
    NoHeldOutTrees,
}

/// A number that may be huge.
fn number(value: f64) -> String {
    if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") }
}

/// The names that the others do not have.
fn only(own: &[String], others: &[String]) -> String {
    let own: Vec<String> = own.iter().filter(|name| !others.contains(name)).cloned().collect();
    listed(&own)
}
