//! The rows of a mixture, put together where they share their votes.

use std::collections::BTreeMap;

use crate::router::Mixture;
use crate::table::distinct_votes::DistinctVotes;
use crate::table::votes::Votes;

/// Rows of one mixture after the other, in groups of the same votes: what labels tell is worked out once a group.
#[derive(Debug, Default)]
pub(crate) struct VoteGroups {
    /// Weight, squared weights and rows of each set of votes of the table; zero but for those met.
    sums: Vec<[f64; 3]>,
    /// In the order in which rows have them.
    met: Vec<u32>,
}

/// Some rows with the same votes.
#[derive(Debug, Clone, Copy)]
pub(super) struct VoteGroup<'a> {
    pub(super) votes: Votes<'a>,
    pub(super) weight: f64,
    /// Sum of the squared weights.
    pub(super) squares: f64,
    pub(super) rows: usize,
}

/// The votes of each row of a mixture and its weight, in the order of its rows.
pub(super) fn weighted_votes_by_row(mixture: Mixture<'_>) -> Vec<(&[u32], f64)> {
    mixture.rows().map(|row| (mixture.votes(row).counts(), mixture.table().weight(row))).collect()
}

/// The distinct votes of a mixture in the order of their counts, and what the rows with them weigh together.
pub(super) fn weighted_distinct_votes(mixture: Mixture<'_>) -> Vec<(&[u32], f64)> {
    let mut weights = BTreeMap::<&[u32], f64>::new();
    for row in mixture.rows() {
        *weights.entry(mixture.votes(row).counts()).or_default() += mixture.table().weight(row);
    }
    weights.into_iter().collect()
}

impl VoteGroups {
    /// VoteGroups up the rows of a mixture in place of those before.
    pub(super) fn of<'a>(&'a mut self, mixture: Mixture<'a>) -> impl Iterator<Item = VoteGroup<'a>> + Clone {
        let (table, ballots): (_, &DistinctVotes) = (mixture.table(), mixture.table().distinct_votes());
        self.met.drain(..).for_each(|ballot| self.sums[ballot as usize] = [0.0; 3]);
        self.sums.resize(ballots.len(), [0.0; 3]);
        for row in mixture.rows() {
            let (ballot, weight) = (ballots.of_rows()[row], table.weight(row));
            let sums = &mut self.sums[ballot as usize];
            if sums[2] == 0.0 {
                self.met.push(ballot);
            }
            *sums = [sums[0] + weight, sums[1] + weight * weight, sums[2] + 1.0];
        }
        let (sums, met) = (&self.sums, &self.met);
        met.iter().map(move |&ballot| {
            let [weight, squares, rows] = sums[ballot as usize];
            VoteGroup { votes: ballots.votes(ballot), weight, squares, rows: rows as usize }
        })
    }
}
