//! Detection of classes of votes and predictions that are matched wrongly.
//!
//! If the columns of votes are in another order than those of probabilities, labels agree with the top class less often than by chance, and
//! with a permuted class far more often. A bad model alone does neither: at worst it agrees as often as by chance.

use super::halves::Ordered;
use crate::error::Result;
use crate::numeric::weighted::WeightedMean;
use crate::table::Table;

/// With more classes nothing is checked: the matrix of all pairs of classes would be too large.
const MAX_CLASSES: usize = 1024;

/// With more classes the permutation is found greedily, most frequent pair of classes first.
const MAX_CLASSES_FOR_EXACT_ASSIGNMENT: usize = 256;

/// The smallest number of rows whose class the permutation changes.
const MIN_ROWS: usize = 20;

/// The number of standard errors by which agreement under the permutation must exceed agreement as given.
const STANDARD_ERRORS: f64 = 5.0;

/// Agreement as given must be below this multiple of agreement by chance.
const MAX_RATIO_TO_CHANCE: f64 = 0.5;

/// Classes of votes and predictions that seem to be matched wrongly.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Mismatch {
    /// The share of labels that name the prediction's top class, among rows whose top class seems to be matched wrongly.
    pub agreement: f64,
    /// The share that chance alone would give on these rows.
    pub chance: f64,
    /// The share of labels that would name the top class on these rows if votes were matched by `matches`.
    pub agreement_if_matched: f64,
    /// The classes that seem to be matched wrongly.
    pub matches: Vec<ClassMatch>,
}

/// A class of the predictions and the class of the votes that seems to mean it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClassMatch {
    /// The class of the predictions.
    pub class: String,
    /// The class of the votes that fits it.
    pub votes: String,
}

impl Mismatch {
    /// Checks a table; `None` if it has no votes, or the classes seem to be matched correctly.
    ///
    /// # Errors
    /// If the table has too many rows to be sorted.
    pub fn detect(table: &Table) -> Result<Option<Self>> {
        let classes = table.classes().len();
        if !table.has_votes() || !(2..=MAX_CLASSES).contains(&classes) || table.rows() < MIN_ROWS {
            return Ok(None);
        }
        // A quick check in table order: nearly always the classes fit as given.
        if Confusion::from_table(table).best_permutation().iter().enumerate().all(|(class, &votes)| class == votes) {
            return Ok(None);
        }
        // The full check uses an order that does not depend on that of the table.
        let ordered = Ordered::new(table)?;
        let confusion = Confusion::from_table(&ordered.rows);
        let permutation = confusion.best_permutation();
        let moved: Vec<bool> = permutation.iter().enumerate().map(|(class, &votes)| class != votes).collect();
        let (agreement, chance) = confusion.agreement_and_chance(&moved);
        let is_below_chance = agreement < MAX_RATIO_TO_CHANCE * chance;
        if !is_below_chance || !is_confirmed(&ordered) {
            return Ok(None);
        }
        let class_match = |(class, &votes): (usize, &usize)| ClassMatch {
            class: table.classes()[class].clone(),
            votes: table.classes()[votes].clone(),
        };
        Ok(Some(Self {
            agreement,
            chance,
            agreement_if_matched: confusion.agreement_if_matched(&permutation, &moved),
            matches: permutation.iter().enumerate().filter(|(class, votes)| class != *votes).map(class_match).collect(),
        }))
    }

    /// The matches in words, "votes for a fit b, …", at most `most` of them.
    #[must_use]
    pub fn matches_in_words(&self, most: usize) -> String {
        let words = |one: &ClassMatch| format!("votes for {} fit {}", one.votes, one.class);
        let mut text = self.matches.iter().take(most).map(words).collect::<Vec<_>>().join(", ");
        if self.matches.len() > most {
            text += &format!(", and so on for {} more classes", self.matches.len() - most);
        }
        text
    }
}

/// Whether the permutation fitted to one half of the rows fits the other half far better than the classes as given, in both directions. The
/// best of many permutations fits its own rows by chance.
fn is_confirmed(ordered: &Ordered) -> bool {
    let halves = ordered.halves(0).map(|(_, half)| half);
    let fitted = [&halves[0], &halves[1]].map(|half| Confusion::from_table(half).best_permutation());
    let mut differences = Vec::new();
    for (half, permutation) in halves.iter().zip(fitted.iter().rev()) {
        for row in 0..half.rows() {
            let class = half.peak(row).class as usize;
            if let Some(votes) = half.votes(row).filter(|_| permutation[class] != class) {
                differences.push((half.weight(row), votes.mean(permutation[class]) - votes.mean(class)));
            }
        }
    }
    let difference = WeightedMean::new(differences.iter().copied());
    differences.len() >= MIN_ROWS && difference.mean > STANDARD_ERRORS * difference.standard_error()
}

/// The weight of labels of each class on rows of each top class.
struct Confusion {
    classes: usize,
    /// By top class and label; the labels of a row sum to its weight.
    shares: Vec<f64>,
}

impl Confusion {
    fn from_table(rows: &Table) -> Self {
        let classes = rows.classes().len();
        let mut shares = vec![0.0; classes * classes];
        for row in 0..rows.rows() {
            let Some(votes) = rows.votes(row) else { continue };
            let (top, scale) = (rows.peak(row).class as usize, rows.weight(row) / votes.k() as f64);
            let own = &mut shares[top * classes..][..classes];
            for (share, &n) in own.iter_mut().zip(votes.counts()).filter(|(_, n)| **n > 0) {
                *share += scale * f64::from(n);
            }
        }
        Self { classes, shares }
    }

    fn at(&self, top: usize, label: usize) -> f64 {
        self.shares[top * self.classes + label]
    }

    /// The weight of labels on rows of a top class.
    fn of_top(&self, top: usize) -> f64 {
        (0..self.classes).map(|label| self.at(top, label)).sum()
    }

    /// Among rows whose top class is within a set: the share of labels that a permutation maps to it.
    fn agreement_if_matched(&self, permutation: &[usize], within: &[bool]) -> f64 {
        let tops = || (0..self.classes).filter(|&top| within[top]);
        let agreeing: f64 = tops().map(|top| self.at(top, permutation[top])).sum();
        agreeing / tops().map(|top| self.of_top(top)).sum::<f64>()
    }

    /// Among rows whose top class is within a set: the share of labels that name it, and that share if labels were independent of the top
    /// class.
    fn agreement_and_chance(&self, within: &[bool]) -> (f64, f64) {
        let tops = || (0..self.classes).filter(|&top| within[top]);
        let all: f64 = tops().map(|top| self.of_top(top)).sum();
        let given = |label: usize| tops().map(|top| self.at(top, label)).sum::<f64>();
        let agreement = tops().map(|top| self.at(top, top)).sum::<f64>() / all;
        (agreement, tops().map(|top| self.of_top(top) * given(top)).sum::<f64>() / (all * all))
    }

    /// The label of each top class in the permutation of largest agreement; ties keep the classes as given.
    fn best_permutation(&self) -> Vec<usize> {
        let all: f64 = self.shares.iter().sum();
        let bonus = 1e-9 * all;
        let value = |top: usize, label: usize| self.at(top, label) + if top == label { bonus } else { 0.0 };
        let fits = |class: usize| {
            (0..self.classes).all(|other| value(class, other).max(value(other, class)) <= value(class, class))
        };
        if (0..self.classes).all(fits) {
            (0..self.classes).collect()
        } else if self.classes <= MAX_CLASSES_FOR_EXACT_ASSIGNMENT {
            assign(self.classes, |top, label| -value(top, label))
        } else {
            self.greedy_permutation()
        }
    }

    /// The commonest pairs of classes first.
    fn greedy_permutation(&self) -> Vec<usize> {
        let n = self.classes;
        let mut pairs: Vec<usize> = (0..n * n).filter(|&pair| self.shares[pair] > 0.0).collect();
        pairs.sort_by(|&a, &b| self.shares[b].total_cmp(&self.shares[a]));
        let (mut label_of, mut taken) = (vec![usize::MAX; n], vec![false; n]);
        for (top, label) in pairs.into_iter().map(|pair| (pair / n, pair % n)).chain((0..n).map(|class| (class, class)))
        {
            if label_of[top] == usize::MAX && !taken[label] {
                (label_of[top], taken[label]) = (label, true);
            }
        }
        let mut free = (0..n).filter(|&label| !taken[label]);
        label_of.iter_mut().filter(|label| **label == usize::MAX).for_each(|label| *label = free.next().unwrap_or(0));
        label_of
    }
}

/// The assignment of rows to columns of least cost, by shortest augmenting paths with potentials (Hungarian method).
fn assign(n: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    // Column n is a placeholder for the row that is being assigned.
    let (mut row_potential, mut column_potential) = (vec![0.0; n], vec![0.0; n + 1]);
    let mut row_of: Vec<Option<usize>> = vec![None; n + 1];
    for start in 0..n {
        row_of[n] = Some(start);
        let (mut column, mut visited) = (n, vec![false; n + 1]);
        let (mut distance, mut before) = (vec![f64::INFINITY; n], vec![n; n]);
        while let Some(row) = row_of[column] {
            visited[column] = true;
            let (mut least, mut next) = (f64::INFINITY, n);
            for other in (0..n).filter(|&other| !visited[other]) {
                let through = cost(row, other) - row_potential[row] - column_potential[other];
                if through < distance[other] {
                    (distance[other], before[other]) = (through, column);
                }
                if distance[other] < least {
                    (least, next) = (distance[other], other);
                }
            }
            for other in 0..=n {
                match row_of[other].filter(|_| visited[other]) {
                    Some(reached) => {
                        row_potential[reached] += least;
                        column_potential[other] -= least;
                    }
                    None if other < n => distance[other] -= least,
                    None => {}
                }
            }
            column = next;
        }
        while column < n {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let mut column_of = vec![0; n];
    for (column, row) in row_of[..n].iter().enumerate() {
        row.iter().for_each(|&row| column_of[row] = column);
    }
    column_of
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;

    use super::*;

    #[test]
    fn the_cheapest_assignment_is_found() {
        let mut rng = Rng::new(1);
        let mut draw = || rng.uniform();
        for n in 1..=6 {
            for _ in 0..50 {
                let cost: Vec<f64> = (0..n * n).map(|_| draw()).collect();
                let total =
                    |columns: &[usize]| columns.iter().enumerate().map(|(row, c)| cost[row * n + c]).sum::<f64>();
                let found = assign(n, |row, column| cost[row * n + column]);
                let mut least = f64::INFINITY;
                permute(&mut (0..n).collect::<Vec<_>>(), 0, &mut |columns| least = least.min(total(columns)));
                assert!((total(&found) - least).abs() < 1e-12, "{n}: {found:?}");
            }
        }
    }

    fn permute(items: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
        if from == items.len() {
            return visit(items);
        }
        for place in from..items.len() {
            items.swap(from, place);
            permute(items, from + 1, visit);
            items.swap(from, place);
        }
    }
}
