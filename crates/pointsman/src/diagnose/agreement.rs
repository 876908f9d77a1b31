//! Votes that do not look like independent labels.
//!
//! Within a cell, items whose labels differ show how the true distributions vary: a Dirichlet law fitted to them alone says how
//! many items should be unanimous by chance, and how many tied. Adjudicated or copied labels make more of the former;
//! a majority vote counted as one more label makes none of the latter. Counts cannot tell an adjudicated item
//! from one that is simply easy, so only cells are looked at in which most items are contested.

use std::cmp::Ordering;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use statrs::function::gamma::gamma_ur;

use super::halves::Ordered;
use crate::error::Result;
use crate::estimate::draw_into;
use crate::mix::{class_at, uniform};
use crate::partition::{CellId, Partition};
use crate::router::{Mixture, Router};
use crate::votes::Votes;

/// More labels than this are not counted one by one.
const MOST_LABELS: u64 = 1000;
/// Contested items that a cell needs for a law of its own.
const CONTESTED: usize = 30;
/// Concentrations tried, evenly in the logarithm.
const STEPS: u32 = 60;
/// Draws an item for the chance of a tie.
const DRAWS: usize = 8;
/// The most rows listed.
const LISTED: usize = 10;
/// Beyond so many standard deviations and so many times what chance makes, unanimity is an excess: true laws are not quite
/// Dirichlet, and with many rows the smallest difference shows.
const EXCESS: f64 = 5.0;
const TIMES: f64 = 1.5;
/// A row is listed only if chance would make it unanimous less often.
const SUSPICIOUS: f64 = 0.05;
/// Below such a chance, ties are missing. With more labels than this a tie depends on the law's finest details.
const MISSING: f64 = 1e-4;
const MOST_FOR_TIES: u64 = 10;

/// How unanimous and how tied the votes are, beside what the contested items suggest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Labels that a row needs to be looked at: four with two classes, else three.
    pub labels_needed: u64,
    /// Rows that have fewer.
    pub rows_with_fewer: usize,
    /// Rows of cells in which most items are contested.
    pub rows: usize,
    /// How many of them are unanimous.
    pub unanimous: usize,
    /// How many would be by chance.
    pub unanimous_expected: f64,
    /// By how many standard deviations there are more.
    pub unanimous_z: f64,
    /// How many of those with at most ten labels are tied between their most frequent classes.
    pub tied: usize,
    /// How many would be by chance.
    pub tied_expected: f64,
    /// How often chance would give as few.
    pub tied_p_value: f64,
    /// All counts of contested rows are multiples of this: labels were copied.
    pub copies: Option<u32>,
    /// Rows that equal another in prediction, features and votes.
    pub identical_rows: usize,
    /// The unanimous rows that chance explains least, if there are too many of them.
    pub suspects: Vec<SuspectRow>,
}

/// A row whose votes are more unanimous than its cell suggests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuspectRow {
    /// The row of the table, from zero. A reader of files puts the file's own number here.
    pub row: u64,
    /// Its id, for a reader of files to put here.
    pub id: Option<String>,
    /// Its cell.
    pub cell: String,
    /// Its votes, one count a class.
    pub votes: Vec<u32>,
    /// How often chance would make them unanimous.
    pub chance: f64,
}

impl Agreement {
    /// Whether there are more unanimous rows than chance explains.
    #[must_use]
    pub fn is_too_unanimous(&self) -> bool {
        self.unanimous_z > EXCESS && self.unanimous as f64 > TIMES * self.unanimous_expected + 5.0
    }

    /// Whether ties are missing, as if a majority vote were counted as one more label.
    #[must_use]
    pub fn lacks_ties(&self) -> bool {
        self.tied_p_value < MISSING && (self.tied as f64) < 0.5 * self.tied_expected
    }

    pub(super) fn of(ordered: &Ordered, cells: &Partition) -> Result<Self> {
        let router = Router::calibrate(&ordered.rows, cells)?;
        let labels = |row: usize| ordered.rows.votes(row).map_or(0, Votes::k);
        let labels_needed = fewest_labels(ordered.rows.classes().len());
        let mut found = Self {
            labels_needed,
            rows_with_fewer: (0..ordered.rows.rows()).filter(|&row| labels(row) < labels_needed).count(),
            rows: 0,
            unanimous: 0,
            unanimous_expected: 0.0,
            unanimous_z: 0.0,
            tied: 0,
            tied_expected: 0.0,
            tied_p_value: 1.0,
            copies: copies(ordered),
            identical_rows: identical_rows(ordered),
            suspects: Vec::new(),
        };
        // Rows of the table cell by cell, so that suspects can be named.
        let mut members = vec![Vec::new(); router.cells().count()];
        for (row, cell) in router.find_cells(&ordered.rows)?.into_iter().enumerate() {
            members[cell.index()].push(row as u32);
        }
        let mut variance = 0.0;
        let mut random = Pcg64::seed_from_u64(0x71E5);
        for (cell, rows) in members.iter().enumerate() {
            let counts = |row: &u32| (labels_needed..=MOST_LABELS).contains(&labels(*row as usize));
            let rows: Vec<u32> = rows.iter().copied().filter(counts).collect();
            let mixture = Mixture::of_rows(&ordered.rows, &rows);
            let Some(law) = Law::fit(mixture) else { continue };
            let name = router.cells().name(CellId(cell as u32), router.classes());
            let mut point = vec![0.0; law.parameters.len()];
            for row in mixture.rows() {
                let votes = mixture.votes(row);
                let chance = law.unanimous(votes.k());
                found.rows += 1;
                found.unanimous_expected += chance;
                variance += chance * (1.0 - chance);
                found.unanimous += usize::from(is_unanimous(votes));
                if is_unanimous(votes) && chance < SUSPICIOUS {
                    let (row, votes) = (u64::from(ordered.origin[row]), votes.counts().to_vec());
                    found.suspects.push(SuspectRow { row, id: None, cell: name.clone(), votes, chance });
                }
                if votes.k() > MOST_FOR_TIES {
                    continue;
                }
                found.tied += usize::from(is_tied(votes.counts()));
                for _ in 0..DRAWS {
                    draw_into(&law.parameters, &mut random, &mut point);
                    let tied = is_tied(&draw_votes(&point, votes.k(), &mut random));
                    found.tied_expected += f64::from(u8::from(tied)) / DRAWS as f64;
                }
            }
        }
        if variance > 0.0 {
            found.unanimous_z = (found.unanimous as f64 - found.unanimous_expected) / variance.sqrt();
        }
        if found.tied_expected > 0.0 {
            found.tied_p_value = gamma_ur(found.tied as f64 + 1.0, found.tied_expected);
        }
        found
            .suspects
            .sort_by(|a, b| a.chance.total_cmp(&b.chance).then(b.votes.cmp(&a.votes)).then(a.row.cmp(&b.row)));
        found.suspects.truncate(if found.is_too_unanimous() { LISTED } else { 0 });
        Ok(found)
    }
}

/// Labels that an item needs to count: contested items of fewer look all alike, two against one with two classes, and say nothing of
/// how the true distributions vary.
fn fewest_labels(classes: usize) -> u64 {
    if classes == 2 { 4 } else { 3 }
}

fn is_unanimous(votes: Votes<'_>) -> bool {
    votes.counts().iter().filter(|&&n| n > 0).count() == 1
}

fn is_tied(counts: &[u32]) -> bool {
    let most = counts.iter().max();
    counts.iter().filter(|&n| Some(n) == most).count() > 1
}

fn draw_votes(p: &[f64], k: u64, random: &mut Pcg64) -> Vec<u32> {
    let mut counts = vec![0; p.len()];
    for _ in 0..k {
        counts[class_at(p, uniform(random.next_u64()))] += 1;
    }
    counts
}

/// The Dirichlet law of the true distributions in a cell.
struct Law {
    parameters: Vec<f64>,
}

impl Law {
    /// The likeliest concentration given that an item is contested: unanimous items have no say. `None` unless most
    /// items are contested.
    fn fit(mixture: Mixture<'_>) -> Option<Self> {
        let mean = mixture.centroid()?;
        // How many contested items have more than j votes for a class, and labels in all; how many have k labels.
        let mut above = vec![Vec::<f64>::new(); mean.len() + 1];
        let mut with = std::collections::BTreeMap::<u64, f64>::new();
        let mut contested = 0;
        for row in mixture.rows() {
            let votes = mixture.votes(row);
            if is_unanimous(votes) {
                continue;
            }
            contested += 1;
            *with.entry(votes.k()).or_default() += 1.0;
            let counts = votes.counts().iter().map(|&n| n as usize).chain([votes.k() as usize]);
            for (above, n) in above.iter_mut().zip(counts) {
                if above.len() < n {
                    above.resize(n, 0.0);
                }
                above[..n].iter_mut().for_each(|x| *x += 1.0);
            }
        }
        if contested < CONTESTED || 2 * contested < mixture.len() {
            return None;
        }
        let rising = |class: usize, start: f64| -> f64 {
            above[class].iter().enumerate().map(|(j, n)| n * (start + j as f64).ln()).sum()
        };
        let scaled = |a: f64| Self { parameters: mean.iter().map(|share| a * share).collect() };
        let likelihood = |a: f64| {
            let law = scaled(a);
            let classes: f64 = law.parameters.iter().enumerate().map(|(class, &start)| rising(class, start)).sum();
            let conditions: f64 = with.iter().map(|(&k, n)| n * (-law.unanimous(k)).ln_1p()).sum();
            classes - rising(mean.len(), a) - conditions
        };
        let candidate = |step: u32| 0.05 * (3000.0_f64 / 0.05).powf(f64::from(step) / f64::from(STEPS));
        let best = (0..=STEPS).map(candidate).map(|a| (likelihood(a), a)).max_by(|x, y| x.0.total_cmp(&y.0));
        best.filter(|(likelihood, _)| likelihood.is_finite()).map(|(_, a)| scaled(a))
    }

    /// The chance that k labels agree.
    fn unanimous(&self, k: u64) -> f64 {
        let all: f64 = self.parameters.iter().sum();
        let agree = |a: f64| (0..k).map(|j| (a + j as f64) / (all + j as f64)).product::<f64>();
        self.parameters.iter().map(|&a| agree(a)).sum::<f64>().min(1.0 - 1e-12)
    }
}

/// What divides every count of every contested row, if there are enough of them and it is more than one.
fn copies(ordered: &Ordered) -> Option<u32> {
    let (mut common, mut rows) = (0_u32, 0);
    for row in 0..ordered.rows.rows() {
        let Some(votes) = ordered.rows.votes(row).filter(|votes| votes.k() >= 4 && !is_unanimous(*votes)) else {
            continue;
        };
        common = votes.counts().iter().fold(common, |common, &n| greatest_divisor(common, n));
        rows += 1;
        if common == 1 {
            return None;
        }
    }
    (rows >= CONTESTED && common > 1).then_some(common)
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// Rows that are another one again, whatever they weigh; missing values are alike.
fn identical_rows(ordered: &Ordered) -> usize {
    let rows = &ordered.rows;
    let compare = |a: &usize, b: &usize| {
        let (a, b) = (*a, *b);
        let votes = |row: usize| rows.votes(row).map(Votes::counts);
        let reals = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        votes(a)
            .cmp(&votes(b))
            .then_with(|| reals(&rows.prediction(a), &rows.prediction(b)))
            .then_with(|| reals(rows.features(a), rows.features(b)))
    };
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_unstable_by(compare);
    order.windows(2).filter(|pair| compare(&pair[0], &pair[1]).is_eq()).count()
}
