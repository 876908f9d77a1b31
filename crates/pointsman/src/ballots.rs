//! Which rows of a table have the same votes.

use std::collections::HashMap;

/// Rows that share their votes share all that their labels tell: it is worked out once for them.
#[derive(Debug, Clone)]
pub(crate) struct Ballots {
    of_rows: Vec<u32>,
    examples: Vec<u32>,
}

impl Ballots {
    /// Numbers the distinct rows of `votes`, which are so many numbers wide, as they come.
    pub(crate) fn of(votes: &[u32], width: usize) -> Self {
        let mut numbers: HashMap<&[u32], u32, foldhash::fast::RandomState> = HashMap::default();
        let mut examples = Vec::new();
        let of_rows = votes.chunks_exact(width).enumerate().map(|(row, votes)| {
            *numbers.entry(votes).or_insert_with(|| {
                examples.push(row as u32);
                examples.len() as u32 - 1
            })
        });
        let of_rows = of_rows.collect();
        Self { of_rows, examples }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.examples.len()
    }

    /// The number of each row's.
    pub(crate) fn of_rows(&self) -> &[u32] {
        &self.of_rows
    }

    /// A row that has each.
    pub(crate) fn examples(&self) -> &[u32] {
        &self.examples
    }
}
