//! One regression tree of two targets, grown by variance reduction on binned inputs.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::inputs::{Codes, Column, MISSING};
use super::targets::Targets;
use super::trees::{MAX_DEPTH, Node};

/// Nodes with fewer rows than this share of the bins are sorted instead of counted bin by bin.
const SORT_BELOW: usize = 4;

/// A side with less than this part of a node's weight weighs nothing but rounding.
const ROUNDING: f64 = 1e-9;

/// A cut that leaves less than this share of a node's rows to one side is a narrow one, and must explain so many times as much as one
/// that does not: where nothing is to be found, chance cuts near the ends, and trees grow deep and slow for nothing.
const NARROW: f64 = 0.2;
const NARROW_MUST: f64 = 2.0;

/// How trees are grown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The fewest rows of a leaf.
    pub(super) leaf: usize,
    /// The share of the inputs tried at each split.
    pub(super) share: f64,
}

/// One tree, its nodes counted from its root, with the mean targets of each leaf in order.
pub(super) struct Grown {
    pub(super) nodes: Vec<Node>,
    pub(super) means: Vec<[f64; 2]>,
}

/// Rows, weight and weighted sums of the targets.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rows: f64,
    weight: f64,
    sums: [f64; 2],
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.sums[0] += other.sums[0];
        self.sums[1] += other.sums[1];
    }

    fn less(&self, other: &Self) -> Self {
        Self {
            rows: self.rows - other.rows,
            weight: self.weight - other.weight,
            sums: [self.sums[0] - other.sums[0], self.sums[1] - other.sums[1]],
        }
    }

    /// What knowing the mean of these rows explains.
    #[inline(always)]
    fn explained(&self) -> f64 {
        (self.sums[0] * self.sums[0] + self.sums[1] * self.sums[1]) / self.weight
    }
}

/// A question, and what it explains beyond the mean of the node; of a narrow one, what counts of that.
#[derive(Debug, Clone, Copy)]
struct Question {
    gain: f64,
    input: u32,
    cut: u16,
    missing_right: bool,
    /// All values to one side, missing ones to the other.
    only_missing: bool,
}

/// Buffers that every node uses anew.
#[derive(Default)]
struct Scratch {
    gathered: Vec<Sums>,
    bins: Vec<Sums>,
    keys: Vec<u64>,
    right: Vec<u32>,
}

/// Grows a tree on the given rows. `candidates` are the inputs worth asking about.
pub(super) fn grow(
    codes: &Codes,
    targets: &Targets,
    mut rows: Vec<u32>,
    candidates: &[u32],
    rule: Rule,
    seed: u64,
) -> Grown {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut candidates = candidates.to_vec();
    let tried = ((candidates.len() as f64 * rule.share).ceil() as usize).max(1);
    let mut nodes = vec![Node::Leaf];
    let mut means = vec![[0.0; 2]];
    let mut scratch = Scratch::default();
    let mut open = vec![(0_usize, 0..rows.len(), 0_usize)];
    while let Some((place, range, depth)) = open.pop() {
        let here = &mut rows[range.clone()];
        let all = scratch.gather(targets, here);
        means[place] = all.sums.map(|sum| if all.weight > 0.0 { sum / all.weight } else { 0.0 });
        if here.len() < 2 * rule.leaf || depth == MAX_DEPTH {
            continue;
        }
        let mut best: Option<Question> = None;
        for drawn in 0..candidates.len() {
            // Beyond its share an input is tried only while no question was found.
            if drawn >= tried && best.is_some() {
                break;
            }
            let other = drawn + (random.next_u64() % (candidates.len() - drawn) as u64) as usize;
            candidates.swap(drawn, other);
            let input = candidates[drawn];
            scratch.ask(codes.column(input as usize), input, here, &all, rule.leaf, &mut best);
        }
        // What is explained must be more than rounding.
        let Some(question) = best.filter(|best| best.gain > ROUNDING * all.weight) else { continue };
        let column = codes.column(question.input as usize);
        let middle = scratch.divide(here, |row| question.goes_right(column.codes[row as usize]));
        let left = nodes.len();
        nodes[place] = Node::Split {
            input: question.input,
            threshold: if question.only_missing { f64::MIN } else { column.cuts[usize::from(question.cut)] },
            left: left as u32,
            missing_right: question.missing_right,
        };
        nodes.extend([Node::Leaf; 2]);
        means.extend([[0.0; 2]; 2]);
        let middle = range.start + middle;
        open.push((left + 1, middle..range.end, depth + 1));
        open.push((left, range.start..middle, depth + 1));
    }
    let means = nodes.iter().zip(means).filter(|(node, _)| **node == Node::Leaf).map(|(_, mean)| mean).collect();
    Grown { nodes, means }
}

impl Question {
    #[inline(always)]
    fn goes_right(&self, code: u16) -> bool {
        if code == MISSING { self.missing_right } else { self.only_missing || code > self.cut }
    }
}

impl Scratch {
    /// Puts the node's targets side by side and adds them up.
    fn gather(&mut self, targets: &Targets, rows: &[u32]) -> Sums {
        self.gathered.clear();
        self.gathered.extend(rows.iter().map(|&row| {
            let (weight, [a, b]) = (targets.weights[row as usize], targets.values[row as usize]);
            Sums { rows: 1.0, weight, sums: [weight * a, weight * b] }
        }));
        let mut all = Sums::default();
        self.gathered.iter().for_each(|one| all.add(one));
        all
    }

    /// Improves on the best question with the best one about this input.
    fn ask(&mut self, column: &Column, input: u32, rows: &[u32], all: &Sums, leaf: usize, best: &mut Option<Question>) {
        let Self { gathered, bins, keys, .. } = self;
        let mut missing = Sums::default();
        if rows.len() * SORT_BELOW < column.cuts.len() {
            keys.clear();
            for (i, (&row, one)) in rows.iter().zip(gathered.iter()).enumerate() {
                match column.codes[row as usize] {
                    MISSING => missing.add(one),
                    code => keys.push(u64::from(code) << 32 | i as u64),
                }
            }
            keys.sort_unstable();
            let groups = keys.chunk_by(|a, b| a >> 32 == b >> 32).map(|group| {
                let mut sums = Sums::default();
                group.iter().for_each(|&key| sums.add(&gathered[key as u32 as usize]));
                ((group[0] >> 32) as u16, sums)
            });
            scan(groups, input, all, &missing, leaf, best);
        } else {
            bins.clear();
            bins.resize(column.cuts.len() + 1, Sums::default());
            for (&row, one) in rows.iter().zip(gathered.iter()) {
                match column.codes[row as usize] {
                    MISSING => missing.add(one),
                    code => bins[usize::from(code)].add(one),
                }
            }
            let full = bins.iter().enumerate().filter(|(_, sums)| sums.rows > 0.0);
            scan(full.map(|(code, sums)| (code as u16, *sums)), input, all, &missing, leaf, best);
        }
    }

    /// Puts the rows that go right behind the others, both in order, and says where they begin.
    fn divide(&mut self, rows: &mut [u32], goes_right: impl Fn(u32) -> bool) -> usize {
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

/// Tries every cut between bins that have rows, with missing values on either side.
fn scan(
    bins: impl Iterator<Item = (u16, Sums)>,
    input: u32,
    all: &Sums,
    missing: &Sums,
    leaf: usize,
    best: &mut Option<Question>,
) {
    let (leaf, known) = (leaf as f64, all.explained());
    let mut offer = |left: &Sums, cut: u16, missing_right: bool, only_missing: bool| {
        let right = all.less(left);
        if left.rows < leaf || right.rows < leaf {
            return;
        }
        // Weights may differ by so much that what is left of the sum has no digit of the truth.
        if left.weight.min(right.weight) <= ROUNDING * all.weight {
            return;
        }
        let mut gain = left.explained() + right.explained() - known;
        if left.rows.min(right.rows) < NARROW * all.rows {
            gain /= NARROW_MUST;
        }
        if best.is_none_or(|best| gain > best.gain) {
            *best = Some(Question { gain, input, cut, missing_right, only_missing });
        }
    };
    let mut left = Sums::default();
    let mut last: Option<u16> = None;
    for (code, sums) in bins {
        if let Some(last) = last {
            // Between the two bins, in the middle of those without rows.
            let cut = last + (code - last - 1) / 2;
            if missing.rows > 0.0 {
                let mut with = left;
                with.add(missing);
                offer(&with, cut, false, false);
                offer(&left, cut, true, false);
            } else {
                // No row says where missing values belong: with most.
                offer(&left, cut, left.rows < all.rows - left.rows, false);
            }
        }
        left.add(&sums);
        last = Some(code);
    }
    if missing.rows > 0.0 {
        offer(missing, 0, false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside weights of 10¹⁷ one of five is nothing: a side of such rows would explain infinitely much.
    #[test]
    fn a_side_that_weighs_nothing_explains_nothing() {
        let bin = |weight: f64, sums: [f64; 2]| Sums { rows: 5.0, weight, sums };
        let bins = [bin(1e17, [0.0, 1e17]), bin(1e17, [0.0, -1e17]), bin(5.0, [50.0, 0.0])];
        for bins in [bins, [bins[2], bins[0], bins[1]]] {
            let mut all = Sums::default();
            bins.iter().for_each(|bin| all.add(bin));
            let mut best = None;
            scan((0..).zip(bins), 0, &all, &Sums::default(), 5, &mut best);
            let best = best.expect("the heavy rows differ");
            assert!((best.gain / 2e17 - 1.0).abs() < 1e-9, "{best:?}");
        }
    }

    #[test]
    fn a_narrow_cut_must_explain_more() {
        // Twenty bins of five rows. Those of the first half are above the others by a little, the first bin by more.
        let cut = |more: f64| {
            let sum = |i: u16| if i < 10 { 1.0 } else { -1.0 } + if i == 0 { more } else { 0.0 };
            let bins = (0..20).map(|i| (i, Sums { rows: 5.0, weight: 5.0, sums: [sum(i), 0.0] }));
            let all = Sums { rows: 100.0, weight: 100.0, sums: [more, 0.0] };
            let mut best = None;
            scan(bins, 0, &all, &Sums::default(), 5, &mut best);
            best.map(|best| best.cut)
        };
        assert_eq!([0.0, 6.0, 20.0].map(cut), [Some(9), Some(9), Some(0)]);
    }
}
