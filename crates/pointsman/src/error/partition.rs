//! What can be wrong with a partition.

/// Why a partition cannot be used.
///
/// Reasons that a caller would not tell apart are text: the end of a message about a named partition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// No partition is written like this.
    #[error(
        "unknown partition {text:?}: use top-class:B, confidence:B, level-sets or features:x_a=B,x_b=B, joined by * for products; or \
         pooled, tree, honest-forest:T, forest:T or auto"
    )]
    Unknown {
        /// The text.
        text: String,
    },
    /// A known partition is written wrongly.
    #[error("partition {text:?}: {reason}")]
    Syntax {
        /// The text.
        text: String,
        /// What is wrong with it, as the end of the message.
        reason: String,
    },
    /// A factor has a number out of range, or cannot be used with the others or in this place.
    #[error("partition {partition}: {reason}")]
    Factor {
        /// The partition, or the factor to blame.
        partition: String,
        /// What is wrong with it, as the end of the message.
        reason: String,
    },
    /// There are no factors.
    #[error("the partition has no factors: try top-class:10")]
    Empty,
    /// There are no cells, or more than can be handled.
    #[error("the partition has {cells} cells; at least 1 and at most {most} are possible: {advice}")]
    CellCount {
        /// How many there would be.
        cells: usize,
        /// How many there may be.
        most: usize,
        /// What to do.
        advice: &'static str,
    },
    /// There are too few rows with two labels to learn a partition from.
    #[error("{}", too_few(*rows, *paired, *least, *halved))]
    TooFewRows {
        /// How many rows there are.
        rows: usize,
        /// How many of them have two labels or more.
        paired: usize,
        /// How many rows with two labels are needed among those that divide.
        least: usize,
        /// Whether only half of the rows divide.
        halved: bool,
    },
    /// The rows in all leaves would take gigabytes.
    #[error(
        "{trees} trees over {rows} rows: trees times rows must not be above {most}; use fewer trees, sample the table, or give parts a cap"
    )]
    ForestSize {
        /// How many trees.
        trees: usize,
        /// How many rows.
        rows: usize,
        /// The largest product of both.
        most: usize,
    },
    /// Other rows are to fill the cells of a forest.
    #[error(
        "{partition}: a forest's cells are made of its own rows; to get cells that other rows can fill, run {}",
        super::COMMAND_FOR_CELLS
    )]
    ForestCells {
        /// The partition.
        partition: String,
    },
}

fn too_few(rows: usize, paired: usize, least: usize, halved: bool) -> String {
    let needed = if halved {
        format!("at least {least} of them in the half of the rows that divides, about {} in all", 2 * least)
    } else {
        format!("at least {least} of them")
    };
    if 2 * paired >= rows {
        let found = if rows == 1 { "one row is".to_owned() } else { format!("{rows} rows are") };
        format!(
            "{found} too few to learn a partition from, which needs {needed}; use top-class:10 with fewer bins, or collect more rows"
        )
    } else {
        format!(
            "{paired} of {rows} rows carry two labels or more, and a partition that learns needs {needed}: one label per item does not \
             tell noise from error; use top-class:10, or collect second labels"
        )
    }
}
