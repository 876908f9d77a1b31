//! Errors of tasks.

use super::{COMMAND_FOR_CELLS, listed};

/// Why a task is invalid, or cannot be used with this router.
///
/// Reasons that callers need not distinguish are text, the end of a message that names the input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The name is unknown.
    #[error("unknown {what} {text:?}: use {known}")]
    Unknown {
        /// What the text should name: loss, kind of oracle, aggregate, estimator or tie rule.
        what: &'static str,
        /// The text.
        text: String,
        /// The known names.
        known: &'static str,
    },
    /// The text has a syntax error.
    #[error("{what} {text:?}: {reason}")]
    Syntax {
        /// What the text should be: loss, oracle, cap or sweep.
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
    /// The name of a route is empty, too long, or has reserved characters.
    #[error("route name {name:?}: use 1 to 64 characters without commas, colons, equal signs or quotes")]
    RouteName {
        /// The name.
        name: String,
    },
    /// Two routes or policies have the same name.
    #[error("two {what} are called {name:?}: give each a name of its own")]
    RepeatedName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// No route or policy has this name.
    #[error("no {what} is called {name:?}; there are: {}", listed(known))]
    UnknownName {
        /// What should have the name.
        what: &'static str,
        /// The name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// No route has this number.
    #[error("route {route}: the task has {routes}, counted from 0")]
    NoSuchRoute {
        /// The number.
        route: usize,
        /// The number of routes.
        routes: usize,
    },
    /// The task has too many routes.
    #[error("more than {most} routes")]
    TooManyRoutes {
        /// The largest possible number.
        most: usize,
    },
    /// The task limits routing but has no route.
    #[error("a budget or target loss limits routing: give the task a route")]
    LimitWithoutRoute,
    /// The price of routing cannot be varied, since the task has no route.
    #[error("the task has no route to sweep: add a route with its price")]
    SweepWithoutRoute,
    /// The task has both a budget and a target loss.
    #[error("a budget and a target loss: one decides how much is routed, give one of them")]
    MixedLimits,
    /// A route has two caps.
    #[error("the route {route:?} has two caps: give one")]
    TwoCaps {
        /// The route.
        route: String,
    },
    /// The acts and costs do not form a cost matrix. The text is the end of the message.
    #[error("cost matrix: {0}")]
    CostMatrix(String),
    /// The loss is not a cost matrix, so it has no columns to name.
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
    /// The number of columns of a cost matrix is not the number of classes.
    #[error("the loss {loss} is for {columns} classes, the predictions have {classes}")]
    LossClasses {
        /// The loss.
        loss: String,
        /// The number of its columns.
        columns: usize,
        /// The number of classes of the predictions.
        classes: usize,
    },
    /// The loss of a panel's answer is unbounded.
    #[error(
        "{oracle}: labels that nobody gave get no probability, so the {loss} is that of the one label missed; use aggregate=laplace"
    )]
    UnboundedLoss {
        /// The oracle.
        oracle: String,
        /// The loss.
        loss: String,
    },
    /// The estimator is not defined for this number of classes.
    #[error("the estimator {estimator} is for at most {most} classes, there are {classes}: use shrink or dirichlet")]
    EstimatorClasses {
        /// The estimator.
        estimator: String,
        /// The number of classes.
        classes: usize,
        /// The largest possible number.
        most: usize,
    },
    /// The estimator cannot be used for the leaves of a forest.
    #[error(
        "the estimator {estimator} needs more rows than a leaf of a forest has: use shrink, or run {COMMAND_FOR_CELLS}"
    )]
    EstimatorOfForest {
        /// The estimator.
        estimator: String,
    },
    /// A policy was compiled for another loss or estimator.
    #[error("another loss or estimator needs a policy of its own, compiled from the router")]
    OtherPolicy,
    /// A policy without calibration rows was compiled for another loss or estimator.
    #[error(
        "the policy was compiled for {compiled} and has no calibration rows to estimate {asked}: compile the router anew, pointsman \
         compile ROUTER with the task's flags"
    )]
    OtherPolicyFile {
        /// What the policy was compiled for.
        compiled: String,
        /// What the task asks for.
        asked: String,
    },
    /// A policy was compiled without the oracle of a route.
    #[error("the oracle {oracle} of the route {route:?} needs a policy of its own, compiled from the router")]
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
    /// The costs of all cells would take gigabytes of memory.
    #[error(
        "a policy of {cells} cells and {actions} actions: cells times actions must not be above {most}; use fewer bins or fewer routes"
    )]
    PolicySize {
        /// The number of cells.
        cells: usize,
        /// The number of actions.
        actions: usize,
        /// The largest possible product of both.
        most: usize,
    },
    /// The task has more actions than a decision of a forest can store.
    #[error(
        "{actions} actions; with a forest at most {most} are possible: leave out routes, or run {COMMAND_FOR_CELLS}"
    )]
    ForestActions {
        /// The number of actions.
        actions: usize,
        /// The largest possible number.
        most: usize,
    },
    /// A certificate would have too many intervals.
    #[error(
        "a certificate of {cells} cells and {answers} answers (predicting, knowing the truth and each other oracle): cells times the \
         square of answers must not be above {most}; use fewer bins or fewer oracles"
    )]
    CertificateSize {
        /// The number of cells.
        cells: usize,
        /// The number of answers.
        answers: usize,
        /// The largest possible product of cells and squared answers.
        most: usize,
    },
    /// No row is out of bag for any tree of a forest, so a limit cannot be turned into a price.
    #[error(
        "no calibration row is out of bag for any tree, so that a limit on routing cannot be turned into a price: grow more trees"
    )]
    NoHeldOutTrees,
    /// A limit's price has to be found from calibration rows, and the policy has none.
    #[error(
        "the price of this limit on routing is found from calibration rows, and a policy file has none: use the router, or give \
         routes a price instead of a limit"
    )]
    LimitNeedsRows,
}

/// A number, in scientific notation if it is very large.
fn number(value: f64) -> String {
    if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") }
}

/// The names in `own` that are not in `others`.
fn only(own: &[String], others: &[String]) -> String {
    let own: Vec<String> = own.iter().filter(|name| !others.contains(name)).cloned().collect();
    listed(&own)
}
