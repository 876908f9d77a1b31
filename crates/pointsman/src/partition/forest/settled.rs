//! A forest settled on the rows a router keeps: who is in which leaf, and how rows rank.

use std::ops::Range;
use std::sync::Arc;

use pointsman_trees::{BootstrapSample, Trees};
use rayon::prelude::*;

use super::scorer::{Scorer, means_of_leaves};
use super::shrunk::{AllShrunk, Shrunk};
use super::{inputs, targets};
use crate::error::{Error, Result};
use crate::table::Table;

/// Rows by which leaves are compared with rows their trees were not grown on: more would hardly tell more, and another loss is to
/// cost little.
const SAMPLE: usize = 10_000;

/// Trees whose sums are added up in step: while one's is under way, so are the others'.
const IN_STEP: usize = 4;

/// How many rows a leaf has for each set of votes if it is worth to keep these.
const WORTH: usize = 4;

/// A forest: the cells are bins of its scores, and every query has costs of its own.
///
/// No task enters. Which rows a tree was grown on follows from the seed, so that it need not be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    scorer: Scorer,
    seed: u64,
}

/// The rows of each leaf, those with the same votes together. Every tree has all rows, so that a leaf's estimates rest on more than
/// the rows it was grown on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafRows {
    rows: Vec<u32>,
    /// Rows of leaf `l`: `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
    /// The same the other way round: for each tree, the leaf of each row.
    of_rows: Vec<Vec<u32>>,
    /// What the votes of each leaf are, if much shorter than its rows.
    runs: Option<Runs>,
    /// What the votes of each leaf tell together, if that can be told.
    shrunk: Option<AllShrunk>,
    /// What the rows of each leaf weigh, and the share of their labels that are not the top class of their row.
    shares: Vec<[f64; 2]>,
    /// The rank in the label-free order of each row that trees may be grown on: bags are drawn by it.
    ranks: Vec<Option<u32>>,
    /// Some rows with two labels or more.
    sample: Vec<u32>,
    /// For each tree, which of them it was not grown on, and their leaves.
    new: Vec<Vec<(u32, u32)>>,
}

/// Votes and how many rows of a leaf have them, leaf by leaf.
#[derive(Debug, Clone, PartialEq)]
struct Runs {
    list: Vec<(u32, u32)>,
    /// Those of leaf `l`: `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
}

/// What settling finds.
pub(crate) struct Settled {
    pub(crate) forest: Arc<Forest>,
    pub(crate) leaves: LeafRows,
    /// The score of each row by the trees that were not grown on it.
    pub(crate) scores: Vec<f64>,
}

impl Forest {
    /// Drops a table's rows, taken in label-free order, down the trees.
    ///
    /// # Errors
    /// If the trees do not fit the table, or a leaf stays without rows.
    pub(crate) fn settle(trees: Trees, seed: u64, table: &Table, order: &[u32], columns: &[usize]) -> Result<Settled> {
        if trees.inputs() != inputs::width(table.classes().len(), columns.len()) {
            return Err(Error::Router("the router's trees do not fit its classes and features".into()));
        }
        let encoded = trees.encode_rows(&inputs::of_rows(table, order, columns));
        let ranked = Ranked::of(table, order);
        let bags: Vec<BootstrapSample> = (0..trees.count()).map(|tree| BootstrapSample::new(seed, tree)).collect();
        let settle = |tree: usize| {
            let mut found = vec![0; order.len()];
            trees.leaves_of_rows(tree, &encoded, &mut found);
            Tree::of(&ranked, found, trees.leaves_of_tree(tree), bags[tree])
        };
        let settled: Vec<Tree> = (0..trees.count()).into_par_iter().map(settle).collect();
        if settled.iter().any(|tree| tree.counts.contains(&0)) {
            return Err(Error::Router("a leaf of the router's trees has no rows".into()));
        }
        let scores = ranked.scores(&settled, &bags);
        let all = settled.iter().flat_map(|tree| tree.all.iter().copied()).collect();
        let leaves = LeafRows::put_together(ranked, settled);
        Ok(Settled { forest: Arc::new(Self { scorer: Scorer::new(trees, 1, all)?, seed }), leaves, scores })
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        self.scorer.trees()
    }

    /// The seed they were grown with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What ranks queries.
    pub(crate) fn scorer(&self) -> &Scorer {
        &self.scorer
    }
}

/// What settling needs to know of rows, by their rank.
struct Ranked {
    /// The reducible loss of rows with two labels or more; the others do not say.
    reducible: Vec<Option<f64>>,
    weights: Vec<f64>,
    /// The ranks, those with the same votes together.
    by_votes: Vec<u32>,
    /// As in [`LeafRows`].
    sample: Vec<u32>,
}

impl Ranked {
    fn of(table: &Table, order: &[u32]) -> Self {
        let mut dist = vec![0.0; table.classes().len()];
        let reducible: Vec<Option<f64>> =
            order.iter().map(|&row| targets::split(table, row as usize, &mut dist).map(|[_, r]| r)).collect();
        let some = (0..order.len()).step_by(order.len().div_ceil(SAMPLE).max(1));
        let sample = some.filter(|&rank| reducible[rank].is_some()).map(|rank| rank as u32).collect();
        let weights = order.iter().map(|&row| table.weight(row as usize)).collect();
        Self { reducible, weights, by_votes: by_votes(table, order), sample }
    }

    /// The mean reducible loss of the rows in each of a tree's leaves that count.
    fn means(&self, found: &[u32], leaves: usize, counts: impl Fn(u32) -> bool) -> Vec<f64> {
        let rows = (0..found.len()).filter(|&rank| self.reducible[rank].is_some() && counts(rank as u32));
        let of_row = |rank: usize| (found[rank], self.weights[rank], self.reducible[rank].as_slice());
        means_of_leaves(leaves, 1, rows.map(of_row))
    }

    /// The score of each row by the trees that were not grown on it.
    fn scores(&self, settled: &[Tree], bags: &[BootstrapSample]) -> Vec<f64> {
        let score = |rank: usize| {
            let (mut n, mut sum, mut whole) = (0.0, 0.0, 0.0);
            for (tree, bag) in settled.iter().zip(bags) {
                let leaf = tree.found[rank] as usize - tree.first;
                whole += tree.all[leaf];
                if self.reducible[rank].is_none() || !bag.contains(rank as u32) {
                    n += 1.0;
                    sum += tree.grown_on[leaf];
                }
            }
            // A row that every tree was grown on has no other score than the one of a query.
            if n > 0.0 { sum / n } else { whole / settled.len() as f64 }
        };
        (0..self.weights.len()).into_par_iter().with_min_len(256).map(score).collect()
    }
}

/// One tree with the rows in it.
struct Tree {
    /// Its first leaf, and each row's, counted through all trees.
    first: usize,
    found: Vec<u32>,
    /// The rows, leaf by leaf, and how many each leaf has.
    rows: Vec<u32>,
    counts: Vec<usize>,
    /// Each leaf's mean reducible loss, of all rows and of those the tree was grown on.
    all: Vec<f64>,
    grown_on: Vec<f64>,
    /// As in [`LeafRows`].
    new: Vec<(u32, u32)>,
}

impl Tree {
    /// The tree of a bag, whose rows were found in so many leaves.
    fn of(ranked: &Ranked, mut found: Vec<u32>, leaves: Range<usize>, bag: BootstrapSample) -> Self {
        let (first, leaves) = (leaves.start, leaves.len());
        found.iter_mut().for_each(|leaf| *leaf -= first as u32);
        let all = ranked.means(&found, leaves, |_| true);
        let grown_on = ranked.means(&found, leaves, |rank| bag.contains(rank));
        let mut counts = vec![0_usize; leaves];
        found.iter().for_each(|&leaf| counts[leaf as usize] += 1);
        let mut next: Vec<usize> =
            counts.iter().scan(0, |start, n| Some(std::mem::replace(start, *start + n))).collect();
        let mut rows = vec![0_u32; found.len()];
        for &rank in &ranked.by_votes {
            let next = &mut next[found[rank as usize] as usize];
            rows[*next] = rank;
            *next += 1;
        }
        found.iter_mut().for_each(|leaf| *leaf += first as u32);
        let new = ranked.sample.iter().enumerate().filter(|(_, rank)| !bag.contains(**rank));
        let new = new.map(|(place, &rank)| (place as u32, found[rank as usize])).collect();
        Self { first, found, rows, counts, all, grown_on, new }
    }
}

/// The ranks of rows, those with the same votes together, in the order in which votes are first met.
fn by_votes(table: &Table, order: &[u32]) -> Vec<u32> {
    let ballots = table.distinct_votes();
    let mut first = vec![u32::MAX; ballots.len()];
    let ballot = |rank: u32| ballots.index_of_row()[order[rank as usize] as usize] as usize;
    for rank in 0..order.len() as u32 {
        first[ballot(rank)] = first[ballot(rank)].min(rank);
    }
    let mut ranks: Vec<u32> = (0..order.len() as u32).collect();
    ranks.sort_by_key(|&rank| first[ballot(rank)]);
    ranks
}

impl LeafRows {
    fn put_together(ranked: Ranked, settled: Vec<Tree>) -> Self {
        let grown_on = |(rank, reducible): (usize, &Option<f64>)| reducible.map(|_| rank as u32);
        let ranks = ranked.reducible.iter().enumerate().map(grown_on).collect();
        let rows = Vec::with_capacity(ranked.weights.len() * settled.len());
        let (of_rows, new) = (Vec::with_capacity(settled.len()), Vec::with_capacity(settled.len()));
        let (starts, sample) = (vec![0], ranked.sample);
        let (runs, shrunk, shares) = (None, None, Vec::new());
        let mut leaves = Self { rows, starts, of_rows, runs, shrunk, shares, ranks, sample, new };
        for tree in settled {
            for count in tree.counts {
                leaves.starts.push(leaves.starts[leaves.starts.len() - 1] + count);
            }
            leaves.rows.extend(tree.rows);
            leaves.of_rows.push(tree.found);
            leaves.new.push(tree.new);
        }
        leaves
    }

    /// How many leaves all trees have together.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many rows they have, each once per tree.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The rows of a leaf.
    pub(crate) fn of(&self, leaf: usize) -> &[u32] {
        &self.rows[self.starts[leaf]..self.starts[leaf + 1]]
    }

    /// The votes of a leaf's rows, by their number in the table, and how many rows have them; `None` if they are not kept.
    pub(crate) fn runs(&self, leaf: usize) -> Option<&[(u32, u32)]> {
        self.runs.as_ref().map(|runs| &runs.list[runs.starts[leaf]..runs.starts[leaf + 1]])
    }

    /// Keeps the votes of each leaf by their numbers in `table`, whose rows are now counted, if rows weigh the same and many share
    /// their votes: otherwise it would take more room than it saves time.
    pub(crate) fn keep_runs(&mut self, table: &Table) {
        let ballots = table.distinct_votes().index_of_row();
        let of_leaf = |leaf: usize| {
            let runs = self.of(leaf).chunk_by(|&a, &b| ballots[a as usize] == ballots[b as usize]);
            runs.map(|run| (ballots[run[0] as usize], run.len() as u32))
        };
        let leaves = self.len();
        let counts: Vec<usize> = (0..leaves).into_par_iter().map(|leaf| of_leaf(leaf).count()).collect();
        if table.has_weights() || counts.iter().sum::<usize>() > self.rows.len() / WORTH {
            return;
        }
        let mut starts = vec![0; leaves + 1];
        counts.iter().enumerate().for_each(|(leaf, count)| starts[leaf + 1] = starts[leaf] + count);
        let list = (0..leaves).flat_map(of_leaf).collect();
        self.runs = Some(Runs { list, starts });
    }

    /// Keeps what the votes of each leaf tell together, before there is a loss.
    pub(crate) fn keep_shrunk(&mut self, table: &Table) {
        self.shrunk = AllShrunk::of(table, self);
    }

    /// Keeps what the rows of each leaf weigh and how often their labels are not their top class; `table` has the rows as they are now
    /// counted.
    pub(crate) fn keep_shares(&mut self, table: &Table) {
        let of_row = |row: usize| [table.weight(row), table.weight(row) * table.top_error(row)];
        let of_rows: Vec<[f64; 2]> = (0..table.rows()).map(of_row).collect();
        let of_leaf = |leaf: usize| {
            let add = |sums: [f64; 2], &row: &u32| std::array::from_fn(|i| sums[i] + of_rows[row as usize][i]);
            let [weight, wrong] = self.of(leaf).iter().fold([0.0; 2], add);
            [weight, wrong / weight]
        };
        self.shares = (0..self.len()).into_par_iter().with_min_len(64).map(of_leaf).collect();
    }

    /// The share of labels in a leaf that are not the top class of their row.
    pub(crate) fn error(&self, leaf: usize) -> f64 {
        self.shares[leaf][1]
    }

    /// What the rows of a leaf weigh.
    pub(crate) fn weight(&self, leaf: usize) -> f64 {
        self.shares[leaf][0]
    }

    /// Adds up numbers of each row over the rows of each leaf of the first trees, and makes of a leaf's sums what is wanted.
    pub(crate) fn add_up<const N: usize, T: Copy + Send>(
        &self,
        trees: &Trees,
        count: usize,
        of_rows: &[[f64; N]],
        make: impl Fn(usize, &[f64; N]) -> T + Sync,
    ) -> Vec<T> {
        let of_some = |first: usize| {
            let last = (first + IN_STEP).min(count);
            let start = trees.leaves_of_tree(first).start;
            let mut sums = vec![[0.0; N]; trees.leaves_of_tree(last - 1).end - start];
            let mut add = |leaf: u32, own: &[f64; N]| {
                let sum = &mut sums[leaf as usize - start];
                // All at once, not one after the other.
                *sum = std::array::from_fn(|i| sum[i] + own[i]);
            };
            if let Some([a, b, c, d]) = self.of_rows[first..last].first_chunk::<IN_STEP>() {
                for ((((&a, &b), &c), &d), own) in a.iter().zip(b).zip(c).zip(d).zip(of_rows) {
                    [a, b, c, d].into_iter().for_each(|leaf| add(leaf, own));
                }
            } else {
                let rows = self.of_rows[first..last].iter().flat_map(|leaves| leaves.iter().zip(of_rows));
                rows.for_each(|(&leaf, own)| add(leaf, own));
            }
            (start..).zip(&sums).map(|(leaf, sums)| make(leaf, sums)).collect()
        };
        let firsts: Vec<usize> = (0..count).step_by(IN_STEP).collect();
        let made: Vec<Vec<T>> = firsts.into_par_iter().map(of_some).collect();
        made.concat()
    }

    /// What the votes of a leaf tell together; `None` if items have different numbers of labels, or one.
    pub(crate) fn shrunk(&self, leaf: usize) -> Option<Shrunk<'_>> {
        self.shrunk.as_ref().map(|shrunk| shrunk.at(leaf))
    }

    /// Some rows with two labels or more.
    pub(crate) fn sample(&self) -> &[u32] {
        &self.sample
    }

    /// The rows of the sample that a tree was not grown on: their places in it, and their leaves.
    pub(crate) fn new_to(&self, tree: usize) -> &[(u32, u32)] {
        &self.new[tree]
    }

    /// Whether the tree of this bag was not grown on a row.
    #[inline]
    pub(crate) fn is_new(&self, bag: BootstrapSample, row: u32) -> bool {
        self.ranks[row as usize].is_none_or(|rank| !bag.contains(rank))
    }

    /// Gives the rows other numbers.
    pub(crate) fn renumber(&mut self, numbers: &[u32]) {
        let ranks = std::mem::replace(&mut self.ranks, vec![None; numbers.len()]);
        numbers.iter().zip(ranks).for_each(|(&row, rank)| self.ranks[row as usize] = rank);
        self.sample.iter_mut().for_each(|row| *row = numbers[*row as usize]);
        self.of_rows.par_iter_mut().for_each(|leaves| {
            let mut moved = vec![0; leaves.len()];
            numbers.iter().zip(leaves.iter()).for_each(|(&row, &leaf)| moved[row as usize] = leaf);
            *leaves = moved;
        });
        self.rows.par_iter_mut().with_min_len(1 << 14).for_each(|row| *row = numbers[*row as usize]);
    }
}
