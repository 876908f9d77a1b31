//! One regression tree, grown by variance reduction on binned inputs.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::bins::{BinnedColumn, BinnedInputs, MISSING, Resolution};
use crate::histogram::{Histogram, MIN_SHARE_OF_WEIGHT, Split, Sums};
use crate::trees::{MAX_DEPTH, Node};

/// The rule by which nodes are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthRule {
    /// The smallest number of rows of a node that is divided.
    pub min_rows_to_split: usize,
    /// The smallest number of rows per leaf.
    pub min_rows_per_leaf: usize,
    /// The share of the inputs that is tried at each split, in \[0, 1\]; at least one is tried.
    pub share_of_inputs: f64,
}

/// One tree with the mean targets of its leaves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GrownTree<const N: usize> {
    /// The nodes, counted from the root.
    pub nodes: Vec<Node>,
    /// The weighted mean of the targets in each node.
    pub means: Vec<[f64; N]>,
    /// The number of rows of each node.
    pub rows: Vec<u32>,
    /// The sum of squares that each node's split explains; zero for leaves.
    pub gains: Vec<f64>,
}

/// The rows of a training set, as trees see them.
#[derive(Clone, Copy)]
pub(crate) struct TrainingRows<'a, const N: usize> {
    pub(crate) inputs: &'a BinnedInputs,
    /// The inputs that splits may use.
    pub(crate) candidates: &'a [u32],
    pub(crate) targets: &'a [[f64; N]],
    pub(crate) weights: &'a [f64],
}

/// The rows of one tree, copied from the training set so that they lie close together. Rows are numbered anew.
struct Sample<const N: usize, const R: usize> {
    /// The codes of each candidate input, one column after another.
    codes: Vec<u16>,
    sums: Vec<Sums<N, R>>,
}

impl<const N: usize, const R: usize> Sample<N, R> {
    fn fill(&mut self, all: TrainingRows<'_, N>, rows: &[u32], resolution: Resolution) {
        self.codes.clear();
        self.codes.reserve(all.candidates.len() * rows.len());
        for &input in all.candidates {
            let column = all.inputs.column(input as usize);
            let shift = column.shift(resolution);
            let code = |code: u16| if code == MISSING { MISSING } else { code >> shift };
            self.codes.extend(rows.iter().map(|&row| code(column.codes[row as usize])));
        }
        self.sums.clear();
        let sums = |&row: &u32| Sums::of_row(all.weights[row as usize], &all.targets[row as usize]);
        self.sums.extend(rows.iter().map(sums));
    }

    fn column(&self, candidate: usize) -> &[u16] {
        &self.codes[candidate * self.sums.len()..][..self.sums.len()]
    }
}

/// The search for the best split of a node.
struct SplitSearch<const N: usize, const R: usize> {
    rule: GrowthRule,
    /// The number of inputs to try.
    inputs: usize,
    random: Pcg64Mcg,
    /// The candidate inputs, in the order in which they were last tried.
    order: Vec<usize>,
}

impl<const N: usize, const R: usize> SplitSearch<N, R> {
    fn new(candidates: usize, rule: GrowthRule, seed: u64) -> Self {
        Self {
            rule,
            inputs: ((candidates as f64 * rule.share_of_inputs).ceil() as usize).max(1),
            random: Pcg64Mcg::seed_from_u64(seed),
            order: (0..candidates).collect(),
        }
    }

    /// The best split of a node's rows, whose sums are `sums`, by some inputs drawn at random; `all` is the sum of them.
    fn best_split(
        &mut self,
        sample: &Sample<N, R>,
        rows: &[u32],
        sums: &[Sums<N, R>],
        all: &Sums<N, R>,
        histogram: &mut Histogram<N, R>,
    ) -> Option<Split> {
        let mut best: Option<Split> = None;
        for drawn in 0..self.order.len() {
            // More inputs than the share are tried only until a split is found.
            if drawn >= self.inputs && best.is_some() {
                break;
            }
            let other = drawn + (self.random.next_u64() % (self.order.len() - drawn) as u64) as usize;
            self.order.swap(drawn, other);
            let candidate = self.order[drawn];
            let codes = sample.column(candidate);
            let coded = rows.iter().map(|&row| codes[row as usize]).zip(sums);
            histogram.try_input(coded, candidate, all, self.rule.min_rows_per_leaf, &mut best);
        }
        best.filter(|best| best.gain > MIN_SHARE_OF_WEIGHT * all.weight)
    }
}

/// Moves the rows that go right behind the others, keeping the order, and returns the index of the first. `right` is a buffer.
fn partition(rows: &mut [u32], right: &mut Vec<u32>, goes_right: impl Fn(u32) -> bool) -> usize {
    right.resize(rows.len(), 0);
    let (mut left, mut behind) = (0, 0);
    // Each row is written to both sides and counted on one: a branch would often be predicted wrongly.
    for i in 0..rows.len() {
        let row = rows[i];
        let goes_right = usize::from(goes_right(row));
        rows[left] = row;
        right[behind] = row;
        left += 1 - goes_right;
        behind += goes_right;
    }
    rows[left..].copy_from_slice(&right[..behind]);
    left
}

/// Grows trees, one after another, in buffers that are reused. `R` is that of [`Sums`].
pub(crate) struct Grower<'a, const N: usize, const R: usize> {
    training: TrainingRows<'a, N>,
    sample: Sample<N, R>,
    /// The rows of the sample, those of a node together.
    rows: Vec<u32>,
    /// The sums of a node's rows.
    sums: Vec<Sums<N, R>>,
    histogram: Histogram<N, R>,
    right: Vec<u32>,
}

impl<'a, const N: usize, const R: usize> Grower<'a, N, R> {
    pub(crate) fn new(training: TrainingRows<'a, N>) -> Self {
        let sample = Sample { codes: Vec::new(), sums: Vec::new() };
        let histogram = Histogram::new();
        Self { training, sample, rows: Vec::new(), sums: Vec::new(), histogram, right: Vec::new() }
    }

    /// Grows a tree on the rows that `is_wanted` accepts; splits may use the candidates among the inputs.
    pub(crate) fn grow(
        &mut self,
        is_wanted: impl Fn(usize) -> bool,
        rule: GrowthRule,
        resolution: Resolution,
        seed: u64,
    ) -> GrownTree<N> {
        let Self { training, sample, rows, sums, histogram, right } = self;
        rows.clear();
        rows.extend((0..training.targets.len() as u32).filter(|&row| is_wanted(row as usize)));
        sample.fill(*training, rows, resolution);
        rows.iter_mut().zip(0..).for_each(|(row, place)| *row = place);
        let candidates = training.candidates;
        let mut search = SplitSearch::new(candidates.len(), rule, seed);
        let mut tree = GrownTree { nodes: vec![Node::Leaf], means: vec![[0.0; N]], rows: vec![0], gains: vec![0.0] };
        let mut open = vec![(0_usize, 0..rows.len(), 0_usize)];
        while let Some((node, range, depth)) = open.pop() {
            let here = &mut rows[range.clone()];
            sums.clear();
            sums.extend(here.iter().map(|&row| sample.sums[row as usize]));
            let mut all = Sums::ZERO;
            sums.iter().for_each(|row| all.add(row));
            tree.means[node] = all.targets.map(|sum| if all.weight > 0.0 { sum / all.weight } else { 0.0 });
            tree.rows[node] = here.len() as u32;
            if here.len() < rule.min_rows_to_split || depth == MAX_DEPTH {
                continue;
            }
            let Some(split) = search.best_split(sample, here, sums, &all, histogram) else { continue };
            let codes = sample.column(split.candidate);
            let middle = range.start + partition(here, right, |row| split.goes_right(codes[row as usize]));
            let input = candidates[split.candidate];
            let left = tree.divide(node, &split, input, training.inputs.column(input as usize), resolution);
            open.push((left + 1, middle..range.end, depth + 1));
            open.push((left, range.start..middle, depth + 1));
        }
        tree
    }
}

impl<const N: usize> GrownTree<N> {
    /// Divides a leaf by an input, whose codes have this resolution; returns the left of its two new leaves.
    fn divide(
        &mut self,
        node: usize,
        split: &Split,
        input: u32,
        column: &BinnedColumn,
        resolution: Resolution,
    ) -> usize {
        let left = self.nodes.len();
        let threshold = if split.only_missing_left {
            f64::MIN
        } else {
            // The first bin that goes right begins at the threshold before it.
            let first_right = (usize::from(split.last_left_code) + 1) << column.shift(resolution);
            column.thresholds[first_right - 1]
        };
        self.nodes[node] = Node::Split { input, threshold, left: left as u32, missing_right: split.missing_right };
        self.gains[node] = split.gain;
        self.nodes.extend([Node::Leaf; 2]);
        self.means.extend([[0.0; N]; 2]);
        self.rows.extend([0; 2]);
        self.gains.extend([0.0; 2]);
        left
    }

    /// The mean targets of the leaf of a row.
    ///
    /// # Panics
    /// If the row has fewer inputs than the tree.
    #[must_use]
    pub fn mean_of_row(&self, row: &[f64]) -> &[f64; N] {
        &self.means[self.leaf_node(row)]
    }

    /// The leaf of a row, as a node.
    pub(crate) fn leaf_node(&self, row: &[f64]) -> usize {
        let mut node = 0;
        while let Node::Split { input, threshold, left, missing_right } = self.nodes[node] {
            let x = row[input as usize];
            node = left as usize + usize::from(x >= threshold || x.is_nan() && missing_right);
        }
        node
    }
}
