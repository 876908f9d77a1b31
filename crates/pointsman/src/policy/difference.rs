//! The expected cost of a policy less that of another one, judged by calibration rows that both routers have.
//!
//! Two promises from the same rows err alike: a row that is hard to predict is hard with any cells. Only what remains of the errors when costs
//! are subtracted row by row says which policy is cheaper.

use super::Policy;
use super::held_out::HeldOut;
use super::promise::{JudgedRow, with_jackknife};
use crate::estimate::RowVotes;
use crate::numeric::weighted::WeightedSums;
use crate::router::compare_content;
use crate::table::Table;

/// Differences of costs below this part of the costs are rounding.
const ROUNDING: f64 = 1e-9;

/// The difference of two promised costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromisedDifference {
    pub(crate) estimate: f64,
    /// That of the paired difference; not a number for one row.
    pub(crate) standard_error: f64,
    /// The distances to the bounds that labels identify; `None` if they identify the difference.
    pub(crate) open: Option<[f64; 2]>,
    /// The effective number of rows on which the costs differ.
    pub(crate) differing_rows: usize,
}

/// What both policies have on one row.
struct Pair<'a> {
    own: &'a JudgedRow,
    other: &'a JudgedRow,
    /// What the row adds to the difference on other rows.
    influence: f64,
}

impl Pair<'_> {
    fn difference(&self) -> f64 {
        self.own.taken.cost - self.other.taken.cost
    }

    fn differs(&self) -> bool {
        self.difference().abs() > ROUNDING * self.own.taken.cost.abs().max(self.other.taken.cost.abs())
    }
}

impl Policy {
    /// The expected cost of this policy less that of another one under the same task, whose router has the same rows in other cells. `None` if
    /// the cost of one of them cannot be estimated, as in [`promise`](Self::promise).
    pub(crate) fn promised_difference(&self, other: &Self) -> Option<PromisedDifference> {
        let other_row = same_rows(self.router()?.rows(), other.router()?.rows())?;
        let is_known = |policy: &Self| policy.judge_rows().is_some_and(|judged| judged.known > 0.0);
        if !is_known(self) || !is_known(other) {
            return None;
        }
        let (own, others) = (self.judged_with_influence(), other.judged_with_influence());
        let mut place_of_other = vec![None; other_row.len()];
        others.iter().enumerate().for_each(|(place, (row, _))| place_of_other[row.row as usize] = Some(place));
        let pairs = own.iter().filter_map(|(own, influence)| {
            let (other, other_influence) = &others[place_of_other[other_row[own.row as usize] as usize]?];
            Some(Pair { own, other, influence: influence - other_influence })
        });
        let pairs: Vec<Pair<'_>> = pairs.collect();
        let (mut of_rows, mut differing) = (WeightedSums::default(), WeightedSums::default());
        for pair in &pairs {
            of_rows.add_with(pair.own.weight, pair.difference(), pair.influence);
            if pair.differs() {
                differing.add(pair.own.weight, 0.0);
            }
        }
        let without = self.differences_without_groups(other, &other_row);
        let standard_error = with_jackknife(of_rows.standard_error(), &without, self.jackknife_share());
        let differing_rows = if differing.weight > 0.0 { (differing.effective_rows() + 1e-6) as usize } else { 0 };
        Some(PromisedDifference {
            estimate: of_rows.mean(),
            standard_error,
            open: self.open_between(&pairs),
            differing_rows,
        })
    }

    /// The held-out rows of cells, each with what it adds to the costs of others.
    fn judged_with_influence(&self) -> Vec<(JudgedRow, f64)> {
        let rows = self.judged_rows(self.held_out(), &self.held_out().parts(), None);
        let influence = self.imputation_influence(&rows, &|_| 1.0);
        rows.into_iter().zip(influence).collect()
    }

    /// The difference with each jackknife group of the other policy's rows deleted from both.
    fn differences_without_groups(&self, other: &Self, other_row: &[u32]) -> Vec<f64> {
        let mut own_row = vec![0; other_row.len()];
        (0..).zip(other_row).for_each(|(row, &other)| own_row[other as usize] = row);
        let mut groups = other.jackknife_groups();
        groups.iter_mut().flatten().for_each(|row| *row = own_row[*row as usize]);
        let cost = |policy: &Self, held_out: &HeldOut| {
            let judged = policy.judge(held_out, &held_out.parts(), None, |_| 0).pop();
            judged.map(|judged| judged.cost.mean())
        };
        let (own, others) = (self.held_out_without(groups), other.held_out_without_groups());
        own.iter().zip(others).filter_map(|(own, others)| Some(cost(self, own)? - cost(other, others)?)).collect()
    }

    /// The distances from the difference to its bounds. Where both route a row to a Bayes-optimal oracle, its unknown loss cancels.
    fn open_between(&self, pairs: &[Pair<'_>]) -> Option<[f64; 2]> {
        let (loss, table) = (&self.estimates.loss, self.router()?.rows());
        let all: f64 = pairs.iter().map(|pair| pair.own.weight).sum();
        let votes = self.estimates.votes.get_or_init(|| RowVotes::from_table(table, loss)).as_ref();
        let open = |beyond: fn(&Pair<'_>) -> (f64, f64)| {
            let estimate = |pair: &Pair<'_>| {
                let (routed, irreducible) = beyond(pair);
                (pair.own.row as usize, pair.own.weight * routed.max(0.0), irreducible)
            };
            votes?.open(&pairs.iter().map(estimate).collect::<Vec<_>>(), all, loss)
        };
        let more = open(|pair| (pair.own.routed - pair.other.routed, pair.own.irreducible));
        let less = open(|pair| (pair.other.routed - pair.own.routed, pair.other.irreducible));
        let slack = |of: fn(&Pair<'_>) -> f64| pairs.iter().map(|pair| pair.own.weight * of(pair)).sum::<f64>() / all;
        let (own, other) = (slack(|pair| pair.own.taken.slack), slack(|pair| pair.other.taken.slack));
        let is_open = more.or(less).is_some() || own > 0.0 || other > 0.0;
        let [more, less] = [more, less].map(Option::unwrap_or_default);
        is_open.then_some([more[0] - less[1] - own, more[1] - less[0] + other])
    }
}

/// The row of `other` that is each row of `own`, by what both have of it; `None` if they have different numbers of rows. Rows that are equal but
/// for features that cells do not use are paired in any order.
fn same_rows(own: &Table, other: &Table) -> Option<Vec<u32>> {
    let in_order = |table: &Table| {
        let mut rows: Vec<u32> = (0..table.rows() as u32).collect();
        rows.sort_unstable_by(|&a, &b| compare_content(table, &[], a as usize, b as usize).then(a.cmp(&b)));
        rows
    };
    let mut found = vec![0; own.rows()];
    for (row, other) in in_order(own).into_iter().zip(in_order(other)) {
        found[row as usize] = other;
    }
    (own.rows() == other.rows()).then_some(found)
}
