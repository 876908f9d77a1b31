//! One regression tree, grown by variance reduction on binned inputs.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::bins::BinnedInputs;
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

/// The rows of one tree, copied from the training set so that they lie close together. Rows are numbered anew.
struct Sample<const N: usize> {
    /// The codes of each candidate input, one column after another.
    codes: Vec<u16>,
    sums: Vec<Sums<N>>,
}

impl<const N: usize> Sample<N> {
    fn new(inputs: &BinnedInputs, candidates: &[u32], targets: &[[f64; N]], weights: &[f64], rows: &[u32]) -> Self {
        let mut codes = Vec::with_capacity(candidates.len() * rows.len());
        for &input in candidates {
            let column = inputs.column(input as usize);
            codes.extend(rows.iter().map(|&row| column.codes[row as usize]));
        }
        let sums = rows.iter().map(|&row| {
            let weight = weights[row as usize];
            Sums { rows: 1.0, weight, targets: targets[row as usize].map(|target| weight * target) }
        });
        Self { codes, sums: sums.collect() }
    }

    fn column(&self, candidate: usize) -> &[u16] {
        &self.codes[candidate * self.sums.len()..][..self.sums.len()]
    }
}

/// The search for the best split of a node, with buffers that are reused across nodes.
struct SplitSearch<'a, const N: usize> {
    sample: &'a Sample<N>,
    rule: GrowthRule,
    /// The number of inputs to try.
    inputs: usize,
    random: Pcg64Mcg,
    /// The candidate inputs, in the order in which they were last tried.
    order: Vec<usize>,
    /// The sums of the node's rows.
    rows: Vec<Sums<N>>,
    histogram: Histogram<N>,
    right: Vec<u32>,
}

impl<'a, const N: usize> SplitSearch<'a, N> {
    fn new(sample: &'a Sample<N>, candidates: usize, rule: GrowthRule, seed: u64) -> Self {
        Self {
            sample,
            rule,
            inputs: ((candidates as f64 * rule.share_of_inputs).ceil() as usize).max(1),
            random: Pcg64Mcg::seed_from_u64(seed),
            order: (0..candidates).collect(),
            rows: Vec::new(),
            histogram: Histogram::new(),
            right: Vec::new(),
        }
    }

    /// Collects and sums the targets of a node's rows.
    fn gather(&mut self, rows: &[u32]) -> Sums<N> {
        self.rows.clear();
        self.rows.extend(rows.iter().map(|&row| self.sample.sums[row as usize]));
        let mut all = Sums::ZERO;
        self.rows.iter().for_each(|row| all.add(row));
        all
    }

    /// The best split of the gathered rows, by some inputs drawn at random.
    fn best_split(&mut self, rows: &[u32], all: &Sums<N>) -> Option<Split> {
        let mut best: Option<Split> = None;
        for drawn in 0..self.order.len() {
            // More inputs than the share are tried only until a split is found.
            if drawn >= self.inputs && best.is_some() {
                break;
            }
            let other = drawn + (self.random.next_u64() % (self.order.len() - drawn) as u64) as usize;
            self.order.swap(drawn, other);
            let candidate = self.order[drawn];
            let codes = self.sample.column(candidate);
            let coded = rows.iter().map(|&row| codes[row as usize]).zip(&self.rows);
            self.histogram.try_input(coded, candidate, all, self.rule.min_rows_per_leaf, &mut best);
        }
        best.filter(|best| best.gain > MIN_SHARE_OF_WEIGHT * all.weight)
    }

    /// Moves the rows that go right behind the others, keeping the order, and returns the index of the first.
    fn partition(&mut self, rows: &mut [u32], goes_right: impl Fn(u32) -> bool) -> usize {
        self.right.clear();
        let mut left = 0;
        for i in 0..rows.len() {
            let row = rows[i];
            if goes_right(row) {
                self.right.push(row);
            } else {
                rows[left] = row;
                left += 1;
            }
        }
        rows[left..].copy_from_slice(&self.right);
        left
    }
}

/// Grows a tree on the given rows; splits may use the `candidates` among the inputs.
pub(crate) fn grow_tree<const N: usize>(
    inputs: &BinnedInputs,
    targets: &[[f64; N]],
    weights: &[f64],
    rows: &[u32],
    candidates: &[u32],
    rule: GrowthRule,
    seed: u64,
) -> GrownTree<N> {
    let sample = Sample::new(inputs, candidates, targets, weights, rows);
    let mut search = SplitSearch::new(&sample, candidates.len(), rule, seed);
    let mut rows: Vec<u32> = (0..rows.len() as u32).collect();
    let mut tree = GrownTree { nodes: vec![Node::Leaf], means: vec![[0.0; N]], rows: vec![0], gains: vec![0.0] };
    let mut open = vec![(0_usize, 0..rows.len(), 0_usize)];
    while let Some((node, range, depth)) = open.pop() {
        let here = &mut rows[range.clone()];
        let all = search.gather(here);
        tree.means[node] = all.targets.map(|sum| if all.weight > 0.0 { sum / all.weight } else { 0.0 });
        tree.rows[node] = here.len() as u32;
        if here.len() < rule.min_rows_to_split || depth == MAX_DEPTH {
            continue;
        }
        let Some(split) = search.best_split(here, &all) else { continue };
        let codes = sample.column(split.candidate);
        let middle = range.start + search.partition(here, |row| split.goes_right(codes[row as usize]));
        let left = tree.divide(node, &split, inputs, candidates[split.candidate]);
        open.push((left + 1, middle..range.end, depth + 1));
        open.push((left, range.start..middle, depth + 1));
    }
    tree
}

impl<const N: usize> GrownTree<N> {
    /// Divides a leaf; returns the left of its two new leaves.
    fn divide(&mut self, node: usize, split: &Split, inputs: &BinnedInputs, input: u32) -> usize {
        let left = self.nodes.len();
        let thresholds = &inputs.column(input as usize).thresholds;
        let threshold = if split.only_missing_left { f64::MIN } else { thresholds[usize::from(split.last_left_code)] };
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
