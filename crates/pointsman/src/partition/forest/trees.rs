//! Binary trees as flat arrays: what is stored, checked and walked.

use rayon::prelude::*;

use super::crown::{Crown, FEW, GROUP};
use super::cuts::{Cuts, IN_STEP, NEVER};
use super::inputs::{Inputs, SIDE_BY_SIDE};
use crate::error::{Error, Result};

/// The deepest a tree may be: it bounds what a query costs, also with trees from a file.
pub(crate) const MAX_DEPTH: usize = 64;

/// The most nodes of all trees together.
const MAX_NODES: usize = 1 << 28;

/// Trees of one query, and rows of one tree, that are walked together, so that one's wait for memory is another's work.
const TREES: usize = 16;
const ROWS: usize = 16;

/// How many steps all rows of a group go beyond the first questions, and those who must then.
const FIRST: usize = 6;
const MORE: usize = 2;

/// Queries with no more codes than this are made as long: where the length is known, no step needs a check.
const SHORT: usize = 64;

/// One node as it is stored: a question, or a leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node {
    /// Where the rows end.
    Leaf,
    /// Inputs at or above the threshold go to the right child, the others to the left.
    Split {
        /// The input that is asked for: the classes' probabilities, the confidence, then the features.
        input: u32,
        /// The threshold.
        threshold: f64,
        /// The left child; the right one comes next. Counted from the first node of all trees.
        left: u32,
        /// Whether a missing value goes to the right.
        missing_right: bool,
    },
}

/// One or more binary trees over the same inputs; leaves are numbered through all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    cuts: Cuts,
    /// The first node of each tree; the nodes of a tree lie together.
    roots: Vec<u32>,
    /// The first questions of each tree.
    crowns: Vec<Crown>,
    /// As many as a power of two, so that a mask stands for a check; those beyond the nodes are never reached.
    steps: Vec<Step>,
    /// The number of each node's leaf; of a split, its place, marked. Apart, since only the end of a walk needs it.
    numbers: Vec<u32>,
    /// Leaves of the trees before each tree, and of all.
    first_leaves: Vec<u32>,
}

/// A node as it is walked, in eight bytes: the fewer they are, the more of the trees stays in the cache.
///
/// From the lowest bit: the code from which a query goes right (of a leaf, [`NEVER`]); the left child (of a leaf, itself: so trees of
/// different depth can be walked in step); the column of codes that is asked for, the low bits of which are on top: they are all of
/// it where queries are short, and one shift tells them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step(u64);

/// Marks the place of a split among the numbers of leaves: higher than either can be.
const SPLIT: u32 = 1 << 31;

impl Step {
    fn new(left: u32, column: u16, code: u16) -> Self {
        Self(u64::from(code) | u64::from(left) << 16 | u64::from(column.rotate_right(SHORT.ilog2())) << 48)
    }

    #[inline(always)]
    fn left(self) -> u32 {
        (self.0 >> 16) as u32
    }

    #[inline(always)]
    fn column(self) -> u16 {
        ((self.0 >> 48) as u16).rotate_left(SHORT.ilog2())
    }

    /// The column, if all columns are below [`SHORT`]. Whatever they are, this is.
    #[inline(always)]
    fn short_column(self) -> usize {
        (self.0 >> (64 - SHORT.ilog2())) as usize
    }

    #[inline(always)]
    fn code(self) -> u16 {
        self.0 as u16
    }
}

impl Trees {
    /// Checks nodes and puts them together; `roots` are the first nodes of the trees.
    ///
    /// # Errors
    /// If they are not trees: a child before its parent, outside its tree or with two parents, a threshold that is not finite,
    /// an input that does not exist; or if a tree is too deep.
    pub fn new(inputs: usize, roots: Vec<u32>, nodes: &[Node]) -> Result<Self> {
        let fault = |what: &str| Error::Router(format!("the partition's trees {what}"));
        if nodes.len() > MAX_NODES {
            return Err(fault("are too large"));
        }
        if inputs == 0 || roots.first() != Some(&0) || !roots.is_sorted_by(|a, b| a < b) {
            return Err(fault("do not begin where they should"));
        }
        let cuts = Cuts::of(inputs, nodes)?;
        let (mut steps, mut first_leaves) = (Vec::with_capacity(nodes.len()), vec![0]);
        let mut numbers = Vec::with_capacity(nodes.len());
        let mut depths: Vec<u8> = vec![u8::MAX; nodes.len()];
        for (tree, &root) in roots.iter().enumerate() {
            let end = roots.get(tree + 1).map_or(nodes.len(), |&next| next as usize);
            let mut leaves = first_leaves[tree];
            if root as usize >= end || end > nodes.len() {
                return Err(fault("do not begin where they should"));
            }
            depths[root as usize] = 0;
            for place in root as usize..end {
                let depth = depths[place];
                if depth == u8::MAX {
                    return Err(fault("have a node that no question leads to"));
                }
                match nodes[place] {
                    Node::Leaf => {
                        steps.push(Step::new(place as u32, 0, NEVER));
                        numbers.push(leaves);
                        leaves += 1;
                    }
                    Node::Split { input, threshold, left, missing_right } => {
                        if usize::from(depth) >= MAX_DEPTH {
                            return Err(fault(&format!("are deeper than {MAX_DEPTH}")));
                        }
                        let children = left as usize..left as usize + 2;
                        if children.start <= place || children.end > end {
                            return Err(fault("have a child outside its tree or before its parent"));
                        }
                        for child in children {
                            if depths[child] != u8::MAX {
                                return Err(fault("have a node with two parents"));
                            }
                            depths[child] = depth + 1;
                        }
                        let (column, code) = cuts.code(input, threshold, missing_right);
                        steps.push(Step::new(left, column, code));
                        numbers.push(SPLIT | place as u32);
                    }
                }
            }
            first_leaves.push(leaves);
        }
        let ask = |place: u32| {
            let step = steps[place as usize];
            (step.column(), step.code(), step.left())
        };
        let crowns = roots.iter().map(|&root| Crown::of(root, ask)).collect();
        steps.resize(steps.len().next_power_of_two(), Step::new(0, 0, NEVER));
        Ok(Self { cuts, roots, crowns, steps, numbers, first_leaves })
    }

    /// How many inputs a query has.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.cuts.inputs()
    }

    /// How many trees there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.roots.len()
    }

    /// How many leaves all trees have together.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.first_leaves[self.roots.len()] as usize
    }

    /// The leaves of one tree.
    pub(crate) fn leaves_of(&self, tree: usize) -> std::ops::Range<usize> {
        self.first_leaves[tree] as usize..self.first_leaves[tree + 1] as usize
    }

    /// The first node of each tree.
    #[must_use]
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// The nodes, tree by tree.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + '_ {
        (0..self.numbers.len()).map(|place| self.node(place))
    }

    /// One of them.
    pub(crate) fn node(&self, place: usize) -> Node {
        let step = self.steps[place];
        match step.code() {
            NEVER => Node::Leaf,
            code => {
                let (input, threshold, missing_right) = self.cuts.question(step.column(), code);
                Node::Split { input, threshold, left: step.left(), missing_right }
            }
        }
    }

    /// The leaf of one tree that a query falls in.
    #[inline]
    pub(crate) fn leaf(&self, tree: usize, inputs: &impl Inputs) -> u32 {
        let mut place = self.roots[tree];
        loop {
            let step = self.steps[place as usize];
            if step.code() == NEVER {
                return self.numbers[place as usize];
            }
            let (input, threshold, missing_right) = self.cuts.question(step.column(), step.code());
            let x = inputs.get(input as usize);
            place = step.left() + u32::from(x >= threshold || x.is_nan() && missing_right);
        }
    }

    /// Calls `visit` with the query's leaf of every tree, in order; for at most [`SIDE_BY_SIDE`] inputs.
    #[inline]
    pub(crate) fn leaves_for(&self, inputs: &[f64], mut visit: impl FnMut(u32)) {
        const CODES: usize = 2 * SIDE_BY_SIDE;
        let mut codes = [0; CODES];
        self.cuts.encode(inputs, &mut codes);
        let (short, is_short) = (codes.as_chunks::<SHORT>().0[0], self.cuts.columns() <= SHORT);
        for roots in self.roots.chunks(TREES) {
            let mut places = [roots[0]; TREES];
            places[..roots.len()].copy_from_slice(roots);
            if is_short {
                self.walk(&mut places, |step| short[step.short_column()]);
            } else {
                self.walk(&mut places, |step| codes[usize::from(step.column()) % CODES]);
            }
            places[..roots.len()].iter().for_each(|&place| visit(self.numbers[place as usize]));
        }
    }

    /// Queries, `inputs` row by row, as these trees compare them.
    pub(crate) fn coded(&self, inputs: &[f64]) -> Coded {
        let stride = self.cuts.columns().max(SHORT);
        let mut codes = vec![0; inputs.len() / self.inputs() * stride];
        // Queries with many codes lie too far apart to be taken together.
        let together = if stride == SHORT { GROUP } else { IN_STEP };
        let rows = codes.par_chunks_mut(together * stride).zip(inputs.par_chunks(together * self.inputs()));
        rows.with_min_len(GROUP / together).for_each(|(codes, inputs)| self.cuts.encode_all(inputs, stride, codes));
        let (width, rows) = (self.cuts.columns(), codes.len() / stride);
        let groups = rows / GROUP + usize::from(rows % GROUP >= FEW);
        let mut columns = vec![[0; GROUP]; groups * width];
        columns.par_chunks_exact_mut(width).zip(codes.par_chunks(GROUP * stride)).for_each(|(columns, codes)| {
            for (row, codes) in codes.chunks_exact(stride).enumerate() {
                columns.iter_mut().zip(codes).for_each(|(column, &code)| column[row] = code);
            }
        });
        Coded { codes, stride, columns, width }
    }

    /// The leaves of the first tree for many queries, `inputs` row by row.
    pub(crate) fn leaves_of_all(&self, inputs: &[f64]) -> Vec<u32> {
        let mut leaves = vec![0; inputs.len() / self.inputs()];
        self.leaves_of_rows(0, &self.coded(inputs), &mut leaves);
        leaves
    }

    /// Writes the leaves of one tree for many queries.
    pub(crate) fn leaves_of_rows(&self, tree: usize, rows: &Coded, out: &mut [u32]) {
        let (crown, stride) = (&self.crowns[tree], rows.stride);
        let mut columns = rows.columns.chunks_exact(rows.width);
        let mut ways = [0; GROUP];
        for (rows, out) in rows.codes.chunks(GROUP * stride).zip(out.chunks_mut(GROUP)) {
            if let Some(columns) = columns.next() {
                crown.enter(columns, out.len(), &mut ways);
                out.iter_mut().zip(ways).for_each(|(place, way)| *place = crown.place(way));
            } else {
                out.fill(self.roots[tree]);
            }
            if stride == SHORT {
                self.lead(rows.as_chunks::<SHORT>().0, |row, step| row[step.short_column()], out);
            } else {
                let rows: Vec<&[u16]> = rows.chunks_exact(stride).collect();
                self.lead(&rows, |row, step| row[usize::from(step.column())], out);
            }
        }
    }

    /// Leads at most [`GROUP`] queries from their places to their leaves: all of them some way, then again and again those that are
    /// not yet there, so that nobody waits long for the deepest.
    #[inline(always)]
    fn lead<R>(&self, rows: &[R], code: impl Fn(&R, Step) -> u16, out: &mut [u32]) {
        let mask = self.steps.len() - 1;
        let next = |place: u32, row: &R| {
            let step = self.steps[place as usize & mask];
            step.left() + u32::from(code(row, step) >= step.code())
        };
        for (rows, places) in rows.as_chunks::<ROWS>().0.iter().zip(out.as_chunks_mut::<ROWS>().0) {
            // One address: what is known of its origin would make the compiler put it together at every step.
            let rows = std::hint::black_box(rows);
            let mut own = *places;
            for _ in 0..FIRST {
                own.iter_mut().zip(rows).for_each(|(place, row)| *place = next(*place, row));
            }
            *places = own;
        }
        // Who is not yet at a leaf.
        let (mut left, mut n) = ([0_u16; GROUP], 0);
        for (row, place) in out.iter_mut().enumerate() {
            *place = self.numbers[*place as usize];
            left[n] = row as u16;
            n += usize::from(*place >= SPLIT);
        }
        while n > 0 {
            // A group that is not full walks its last query more than once.
            let full = n.next_multiple_of(ROWS);
            let last = left[n - 1];
            left[n..full].fill(last);
            for lanes in left[..full].as_chunks::<ROWS>().0 {
                let rows = lanes.map(|lane| &rows[usize::from(lane)]);
                let mut own = lanes.map(|lane| out[usize::from(lane)] & !SPLIT);
                for _ in 0..MORE {
                    own.iter_mut().zip(rows).for_each(|(place, row)| *place = next(*place, row));
                }
                lanes.iter().zip(own).for_each(|(&lane, place)| out[usize::from(lane)] = self.numbers[place as usize]);
            }
            let mut still = 0;
            for i in 0..n {
                let row = left[i];
                left[still] = row;
                still += usize::from(out[usize::from(row)] >= SPLIT);
            }
            n = still;
        }
    }

    /// Leads places to their leaves. `code` is what a query answers.
    #[inline(always)]
    fn walk<const LANES: usize>(&self, places: &mut [u32; LANES], code: impl Fn(Step) -> u16) {
        let mask = self.steps.len() - 1;
        let next = |place: u32| {
            let step = self.steps[place as usize & mask];
            step.left() + u32::from(code(step) >= step.code())
        };
        loop {
            // Who has moved is asked at every second step only.
            places.iter_mut().for_each(|place| *place = next(*place));
            let mut moved = 0;
            for place in places.iter_mut() {
                let from = std::mem::replace(place, next(*place));
                moved |= from ^ *place;
            }
            if moved == 0 {
                return;
            }
        }
    }
}

/// Queries as trees compare them.
pub(crate) struct Coded {
    codes: Vec<u16>,
    /// Codes from one query to the next.
    stride: usize,
    /// The same group by group, so many columns each; not of a last group of few.
    columns: Vec<[u16; GROUP]>,
    width: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(input: u32, threshold: f64, left: u32) -> Node {
        Node::Split { input, threshold, left, missing_right: true }
    }

    #[test]
    fn queries_find_their_leaves() {
        let nodes = [split(0, 0.5, 1), Node::Leaf, split(1, -1.0, 3), Node::Leaf, Node::Leaf, Node::Leaf];
        let trees = Trees::new(2, vec![0, 5], &nodes).unwrap();
        assert_eq!((trees.count(), trees.leaves(), trees.leaves_of(1)), (2, 4, 3..4));
        let rows = [[0.4, 0.0], [0.5, -2.0], [0.5, -1.0], [f64::NAN, -2.0], [f64::NAN, f64::NAN]];
        let mut out = [0; 5];
        trees.leaves_of_rows(0, &trees.coded(rows.as_flattened()), &mut out);
        assert_eq!(out, [0, 1, 2, 1, 2]);
        for (row, leaf) in rows.iter().zip(out) {
            let row = row.as_slice();
            assert_eq!(trees.leaf(0, &row), leaf);
            let mut all = Vec::new();
            trees.leaves_for(row, |leaf| all.push(leaf));
            assert_eq!(all, [leaf, 3]);
        }
        assert_eq!(trees.nodes().collect::<Vec<_>>(), nodes);
    }

    #[test]
    fn many_queries_find_the_leaves_that_one_does() {
        // Leaves of every depth, more queries than are led together, and more inputs than are looked at without a check.
        for inputs in [2, 5, 40] {
            let question = |i: u32| split(i * 7 % inputs, f64::from(i * 37 % 101) / 101.0, 2 * i + 1);
            let mut nodes = vec![question(0)];
            for i in 1..40 {
                nodes.extend(if i % 3 == 0 { [Node::Leaf, question(i)] } else { [question(i), Node::Leaf] });
            }
            nodes.extend([Node::Leaf; 2]);
            let trees = Trees::new(inputs as usize, vec![0], &nodes).unwrap();
            assert_eq!(trees.nodes().collect::<Vec<_>>(), nodes);
            let share = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
            let (together, group) = (ROWS as u32, GROUP as u32);
            for rows in [1, together - 1, together, together + 1, group, 2 * group + 3] {
                let values: Vec<f64> = (0..rows * inputs).map(share).collect();
                let mut found = vec![0; rows as usize];
                trees.leaves_of_rows(0, &trees.coded(&values), &mut found);
                let wanted: Vec<u32> = values.chunks_exact(inputs as usize).map(|row| trees.leaf(0, &row)).collect();
                assert_eq!(found, wanted);
                for (row, leaf) in values.chunks_exact(inputs as usize).zip(wanted) {
                    trees.leaves_for(row, |found| assert_eq!(found, leaf));
                }
            }
        }
    }

    #[test]
    fn steps_keep_what_they_are_told() {
        for column in [0, 1, 63, 64, 1023, 1024, u16::MAX - 1] {
            for (left, code) in [(0, 1), (MAX_NODES as u32 - 1, NEVER), (12_345, 54_321)] {
                let step = Step::new(left, column, code);
                assert_eq!((step.left(), step.column(), step.code()), (left, column, code));
                assert_eq!(step.short_column(), usize::from(column) % SHORT);
            }
        }
    }

    /// Two different questions side by side on every level, and missing values that go either way.
    #[test]
    fn the_first_questions_are_told_apart() {
        let inputs = 5;
        let question = |i: u32| Node::Split {
            input: (i + 1).ilog2() % inputs,
            threshold: f64::from(30 + i * 37 % 41) / 101.0,
            left: 2 * i + 1,
            missing_right: i.is_multiple_of(3),
        };
        let nodes: Vec<Node> = (0..63).map(question).chain([Node::Leaf; 64]).collect();
        let trees = Trees::new(inputs as usize, vec![0], &nodes).unwrap();
        let share = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
        let value = |i: u32| if i % 7 == 3 { f64::NAN } else { share(i) };
        for rows in [1, FEW as u32 - 1, FEW as u32, 65, 700] {
            let values: Vec<f64> = (0..rows * inputs).map(value).collect();
            let mut found = vec![0; rows as usize];
            trees.leaves_of_rows(0, &trees.coded(&values), &mut found);
            let wanted: Vec<u32> = values.chunks_exact(inputs as usize).map(|row| trees.leaf(0, &row)).collect();
            assert_eq!(found, wanted);
            let leaves = wanted.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert!(rows < 700 || leaves > 20, "{leaves}");
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let leaf = Node::Leaf;
        for (what, nodes, roots) in [
            ("a cycle", vec![split(0, 0.0, 0), leaf, leaf], vec![0]),
            ("a child outside", vec![split(0, 0.0, 2), leaf, leaf], vec![0]),
            ("a huge child", vec![split(0, 0.0, u32::MAX - 1), leaf, leaf], vec![0]),
            ("a child in another tree", vec![split(0, 0.0, 2), leaf, leaf, leaf], vec![0, 2]),
            ("two parents", vec![split(0, 0.0, 1), split(0, 0.0, 3), split(0, 0.0, 3), leaf, leaf], vec![0]),
            ("an orphan", vec![leaf, leaf], vec![0]),
            ("no number", vec![split(0, f64::NAN, 1), leaf, leaf], vec![0]),
            ("infinite", vec![split(0, f64::INFINITY, 1), leaf, leaf], vec![0]),
            ("no such input", vec![split(1, 0.0, 1), leaf, leaf], vec![0]),
            ("no roots", vec![leaf], vec![]),
            ("a root outside", vec![leaf], vec![0, 1]),
            ("roots twice", vec![leaf, leaf], vec![0, 0]),
            ("too deep", (0..200).flat_map(|i| [split(0, 0.0, 2 * i + 1), leaf]).chain([leaf]).collect(), vec![0]),
        ] {
            assert!(Trees::new(1, roots, &nodes).is_err(), "{what}");
        }
    }
}
