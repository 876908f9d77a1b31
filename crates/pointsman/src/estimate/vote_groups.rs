//! The rows of a mixture grouped by equal votes.

use std::collections::BTreeMap;

use crate::router::Mixture;
use crate::table::votes::Votes;

/// Groups the rows of mixtures by equal votes, so that quantities of the votes are computed once per group. The buffers are reused for
/// other mixtures of the same table.
#[derive(Debug, Default)]
pub(crate) struct VoteGroups {
    /// Weight, squared weights and rows of each distinct vote vector of the table; zero for vectors that the mixture does not contain.
    sums: Vec<[f64; 3]>,
    /// The indices of the vote vectors in the mixture, in the order of their first row.
    present: Vec<u32>,
}

/// Rows with equal votes.
#[derive(Debug, Clone, Copy)]
pub(super) struct VoteGroup<'a> {
    pub(super) votes: Votes<'a>,
    pub(super) weight: f64,
    /// The sum of the squared weights.
    pub(super) squares: f64,
    pub(super) rows: usize,
}

/// The votes and weight of each row of a mixture, in the order of its rows.
pub(super) fn weighted_votes_by_row(mixture: Mixture<'_>) -> Vec<(&[u32], f64)> {
    mixture.rows().map(|row| (mixture.votes(row).counts(), mixture.table().weight(row))).collect()
}

/// The distinct vote vectors of a mixture, sorted by their counts, and the total weight of their rows.
pub(super) fn weighted_distinct_votes(mixture: Mixture<'_>) -> Vec<(&[u32], f64)> {
    let mut weights = BTreeMap::<&[u32], f64>::new();
    for row in mixture.rows() {
        *weights.entry(mixture.votes(row).counts()).or_default() += mixture.table().weight(row);
    }
    weights.into_iter().collect()
}

impl VoteGroups {
    /// Groups the rows of a mixture; the previous groups are discarded.
    pub(super) fn group<'a>(&'a mut self, mixture: Mixture<'a>) -> impl Iterator<Item = VoteGroup<'a>> + Clone {
        let (table, distinct) = (mixture.table(), mixture.table().distinct_votes());
        self.present.drain(..).for_each(|index| self.sums[index as usize] = [0.0; 3]);
        self.sums.resize(distinct.len(), [0.0; 3]);
        for row in mixture.rows() {
            let (index, weight) = (distinct.index_of_row()[row], table.weight(row));
            let sums = &mut self.sums[index as usize];
            if sums[2] == 0.0 {
                self.present.push(index);
            }
            *sums = [sums[0] + weight, sums[1] + weight * weight, sums[2] + 1.0];
        }
        let (sums, present) = (&self.sums, &self.present);
        present.iter().map(move |&index| {
            let [weight, squares, rows] = sums[index as usize];
            VoteGroup { votes: distinct.votes(index), weight, squares, rows: rows as usize }
        })
    }
}
