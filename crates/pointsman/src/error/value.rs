//! Errors of single values.

/// Why one value of one row cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A number is not a probability.
    #[error("{value} is not a probability: give a finite number from 0 to 1")]
    Probability {
        /// The number.
        value: f64,
    },
    /// The probabilities of a row do not sum to one.
    #[error("the probabilities sum to {sum:.6}, not to 1: give softmax outputs, not scores")]
    ProbabilitySum {
        /// Their sum.
        sum: f64,
    },
    /// A row has no label in a table with votes.
    #[error("no votes: every row needs at least one label; leave the row out if it has none")]
    NoVotes,
    /// A weight is not a positive finite number.
    #[error("{value} is not a weight: give a positive finite number, best near 1")]
    Weight {
        /// The number.
        value: f64,
    },
    /// A feature is not a finite number.
    #[error("{value} is not a feature value: give a finite number")]
    Feature {
        /// The number.
        value: f64,
    },
    /// A feature is missing, and the partition has no place for missing values.
    #[error(
        "the value is missing: give a finite number, or use a partition with a place for missing values: tree, honest-forest or forest"
    )]
    MissingFeature,
    /// A score for ranking rows is not a number.
    #[error("NaN is not a score")]
    Score,
    /// The label is not a class.
    #[error("{label} is none of the {classes} classes, counted from 0")]
    Label {
        /// The label.
        label: usize,
        /// The number of classes.
        classes: usize,
    },
    /// The task does not have the action.
    #[error("action {action}: the task has {actions}, counted from 0")]
    Action {
        /// The action.
        action: usize,
        /// The number of actions.
        actions: usize,
    },
    /// The annotator of a label has no name.
    #[error("annotator {annotator} has no name: there are {names} names")]
    Annotator {
        /// The annotator.
        annotator: u32,
        /// The number of names.
        names: usize,
    },
    /// An annotator gave two labels to the same item.
    #[error("{annotator:?} labels it twice: keep one label")]
    LabelledTwice {
        /// The annotator's name.
        annotator: String,
    },
    /// A row was added to a cell without calibration rows.
    #[error(
        "cell {cell} ({name}) has no calibration rows, so that its share of the traffic is not known: calibrate anew with rows drawn from \
         traffic"
    )]
    EmptyCell {
        /// The cell.
        cell: usize,
        /// Its name.
        name: String,
    },
}
