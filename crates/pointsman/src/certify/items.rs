//! A cell's rows in betting order.
//!
//! Bets are valid only if the order does not depend on the labels, and results must not depend on the order of the table:
//! [`label_free::order`] gives such an order. Independent draws are exchangeable, so rows in a random order that ignores their labels are
//! again independent draws.
//!
//! Sorting by a hash of each row would not be enough: rows with equal predictions would be adjacent, and one would predict the next.

use crate::numeric::mix::mix;
use crate::partition::CellId;
use crate::router::{Router, label_free};
use crate::table::votes::Votes;

const BETTING_SEED: u64 = 0x5EED;

/// The seed of the labels that are kept where items get fewer.
const LABELS_SEED: u64 = 0x1ABE2;

/// Rows in betting order, from which statistics are computed.
#[derive(Debug, Clone)]
pub(super) struct Items {
    pub(super) classes: usize,
    /// The predictions, divided by their sums, row by row.
    probs: Vec<f64>,
    votes: Vec<u32>,
    /// Weights relative to the largest weight of the router, or one if all rows of the cell have the same weight. `None` if the router has
    /// no weights.
    weights: Option<Vec<f64>>,
    /// The answers of each other oracle, row by row; empty for oracles that are not measured.
    answers: Vec<Vec<f64>>,
    /// The range of confidences that the cell allows.
    pub(super) confidence: [f64; 2],
    /// The number of rows left out because they define an edge of the cell.
    pub(super) dropped: usize,
}

impl Items {
    /// The rows of a cell. `heaviest` is the largest weight of all rows, `answers` are those of the other oracles on all rows.
    pub(super) fn from_cell(router: &Router, cell: CellId, heaviest: f64, answers: &[&[f64]]) -> Self {
        let (table, classes) = (router.rows(), router.classes().len());
        let (rows, dropped) = order(router, cell);
        let mut probs = vec![0.0; rows.len() * classes];
        let mut votes = Vec::with_capacity(probs.len());
        for (&row, prediction) in rows.iter().zip(probs.chunks_exact_mut(classes)) {
            table.dist_into(row as usize, prediction);
            votes.extend_from_slice(table.votes(row as usize).map_or(&[], Votes::counts));
        }
        let first = rows.first().map_or(heaviest, |&row| table.weight(row as usize));
        let are_equal = rows.iter().all(|&row| table.weight(row as usize) == first);
        let unit = if are_equal { first } else { heaviest };
        let weight = |&row: &u32| table.weight(row as usize) / unit;
        let weights = table.has_weights().then(|| rows.iter().map(weight).collect());
        let answers = answers.iter().map(|all| {
            let answer = |&row: &u32| all.get(row as usize * classes..(row as usize + 1) * classes).unwrap_or(&[]);
            rows.iter().flat_map(answer).copied().collect()
        });
        let confidence = router.cells().confidence(cell);
        Self { classes, probs, votes, weights, answers: answers.collect(), confidence, dropped }
    }

    /// Items for tests.
    #[cfg(test)]
    pub(super) fn from_votes(classes: usize, probs: Vec<f64>, votes: Vec<u32>) -> Self {
        Self { classes, probs, votes, weights: None, answers: Vec::new(), confidence: [0.0, 1.0], dropped: 0 }
    }

    /// The same items with other votes.
    pub(super) fn with_votes(&self, votes: Vec<u32>) -> Self {
        Self { votes, ..self.clone() }
    }

    /// These items followed by other items of the same cell, repeated until there are `times` as many in total.
    pub(super) fn followed_by(&self, others: &Self, times: usize) -> Self {
        fn extended<T: Copy>(own: &[T], others: &[T], times: usize) -> Vec<T> {
            let more = others.iter().copied().cycle().take((times - 1) * own.len());
            own.iter().copied().chain(more).collect()
        }
        let weights = self.weights.as_deref().zip(others.weights.as_deref());
        let answers = self.answers.iter().zip(&others.answers);
        Self {
            probs: extended(&self.probs, &others.probs, times),
            votes: extended(&self.votes, &others.votes, times),
            weights: weights.map(|(own, others)| extended(own, others, times)),
            answers: answers.map(|(own, others)| extended(own, others, times)).collect(),
            ..self.clone()
        }
    }

    /// The items with at least this number of labels.
    pub(super) fn with_at_least(&self, labels: u64) -> Self {
        let kept: Vec<usize> = (0..self.len()).filter(|&item| self.votes(item).k() >= labels).collect();
        fn rows<T: Copy>(values: &[T], kept: &[usize], width: usize) -> Vec<T> {
            kept.iter().flat_map(|&item| &values[item * width..(item + 1) * width]).copied().collect()
        }
        let of_measured = |answers: &Vec<f64>| match answers.is_empty() {
            true => Vec::new(),
            false => rows(answers, &kept, self.classes),
        };
        Self {
            probs: rows(&self.probs, &kept, self.classes),
            votes: rows(&self.votes, &kept, self.classes),
            weights: self.weights.as_ref().map(|weights| rows(weights, &kept, 1)),
            answers: self.answers.iter().map(of_measured).collect(),
            ..self.clone()
        }
    }

    /// The items with at most this number of labels, drawn from their own without replacement.
    pub(super) fn with_at_most(&self, labels: u64) -> Self {
        let mut votes = Vec::with_capacity(self.votes.len());
        for item in 0..self.len() {
            let mut rest = self.votes(item).counts().to_vec();
            let mut left = self.votes(item).k();
            if left <= labels {
                votes.extend(rest);
                continue;
            }
            let kept = votes.len();
            votes.resize(kept + self.classes, 0);
            for draw in 0..labels {
                let mut place = mix(mix(LABELS_SEED, item as u64), draw) % left;
                let class = rest.iter().position(|&count| {
                    let is_here = place < u64::from(count);
                    place = place.saturating_sub(u64::from(count));
                    is_here
                });
                let class = class.unwrap_or(0);
                rest[class] -= 1;
                votes[kept + class] += 1;
                left -= 1;
            }
        }
        self.with_votes(votes)
    }

    /// The items with several labels; `None` if all items have several, or none.
    pub(super) fn with_several_labels(&self) -> Option<Self> {
        let several = self.iter().filter(|(_, votes)| votes.k() > 1).count();
        (several > 0 && several < self.len()).then(|| self.with_at_least(2))
    }

    /// One item's votes.
    pub(super) fn votes(&self, item: usize) -> Votes<'_> {
        Votes::new(&self.votes[item * self.classes..][..self.classes])
    }

    pub(super) fn len(&self) -> usize {
        self.votes.len() / self.classes
    }

    pub(super) fn weight(&self, item: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[item])
    }

    pub(super) fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// A measured oracle's answers, row by row.
    pub(super) fn answers(&self, oracle: usize) -> impl Iterator<Item = &[f64]> {
        self.answers[oracle].chunks_exact(self.classes)
    }

    /// Prediction and votes, row by row.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[f64], Votes<'_>)> {
        self.probs.chunks_exact(self.classes).zip(self.votes.chunks_exact(self.classes).map(Votes::new))
    }
}

/// A cell's rows in betting order, and the number of rows left out.
///
/// Quantile edges are values of rows. Given the edges, the other rows are still independent draws; the rows that define the edges are not.
/// One row per edge is left out, the first in betting order if several have its value.
fn order(router: &Router, cell: CellId) -> (Vec<u32>, usize) {
    let (table, cells) = (router.rows(), router.cells());
    let rows = router.mixture(cell).rows().map(|row| row as u32);
    let mut rows = label_free::order(table, rows, BETTING_SEED ^ u64::from(cell.0));
    let mut left_out = vec![false; cells.axes().len()];
    let before = rows.len();
    rows.retain(|&row| {
        let row = row as usize;
        let mut defines_edge = false;
        for (left_out, hit) in left_out.iter_mut().zip(cells.on_edge(table.peak(row), table.features(row))) {
            defines_edge |= hit && !*left_out;
            *left_out |= hit;
        }
        !defines_edge
    });
    let dropped = before - rows.len();
    (rows, dropped)
}
