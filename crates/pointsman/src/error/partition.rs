//! Errors of partitions.

/// Why a partition cannot be used.
///
/// Reasons that callers need not distinguish are text, the end of a message about a named partition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The text is not a partition.
    #[error(
        "unknown partition {text:?}: use top-class:B, confidence:B, level-sets or features:x_a=B,x_b=B, joined by * for products; or \
         pooled, tree, honest-forest:T, forest:T or auto"
    )]
    Unknown {
        /// The text.
        text: String,
    },
    /// The text of a known partition has a syntax error.
    #[error("partition {text:?}: {reason}")]
    Syntax {
        /// The text.
        text: String,
        /// What is wrong with it, as the end of the message.
        reason: String,
    },
    /// A factor has a number out of range, or cannot be combined with the others or used for this purpose.
    #[error("partition {partition}: {reason}")]
    Factor {
        /// The partition, or the factor with the error.
        partition: String,
        /// What is wrong with it, as the end of the message.
        reason: String,
    },
    /// The partition has no factors.
    #[error("the partition has no factors: try top-class:10")]
    Empty,
    /// The partition has no cells or too many.
    #[error("the partition has {cells} cells; at least 1 and at most {most} are possible: {advice}")]
    CellCount {
        /// The number of cells.
        cells: usize,
        /// The largest possible number of cells.
        most: usize,
        /// What to do.
        advice: &'static str,
    },
    /// Too few rows have two labels or more to learn a partition.
    #[error("{}", too_few(*rows, *paired, *least, *halved))]
    TooFewRows {
        /// The number of rows.
        rows: usize,
        /// The number of rows with two labels or more.
        paired: usize,
        /// The smallest number of rows with two labels or more on which trees are grown.
        least: usize,
        /// Whether trees are grown on half of the rows only.
        halved: bool,
    },
    /// The rows in the leaves of all trees would take gigabytes of memory.
    #[error(
        "{trees} trees over {rows} rows: trees times rows must not be above {most}; use fewer trees, sample the table, or give parts a cap"
    )]
    ForestSize {
        /// The number of trees.
        trees: usize,
        /// The number of rows.
        rows: usize,
        /// The largest possible product of both.
        most: usize,
    },
    /// The cells of a forest cannot be filled with other rows.
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
