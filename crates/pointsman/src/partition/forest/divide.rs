//! A small regression tree over points, grown best-first up to a number of leaves.

use pointsman_trees::{Node, threshold_between};

use crate::parallel::prelude::*;

/// Gains and weights below this share of a leaf's weight are rounding errors.
const ROUNDING: f64 = 1e-9;

/// Weighted points. Their coordinates are both the inputs and the targets of the tree.
pub(super) struct Points<'a> {
    /// The coordinates, point by point.
    pub(super) values: &'a [f64],
    pub(super) width: usize,
    pub(super) weights: &'a [f64],
    /// The factor of each coordinate in squared distances.
    pub(super) scales: &'a [f64],
}

/// A possible split of a leaf.
struct Split {
    gain: f64,
    input: usize,
    threshold: f64,
}

/// A leaf with its points and its best split.
struct OpenLeaf {
    place: usize,
    points: Vec<u32>,
    split: Option<Split>,
}

impl Points<'_> {
    /// Grows a tree of at most `most` leaves with at least `least` points each. The next leaf to be split is the one whose best split
    /// reduces the squared distances to the leaf means most.
    pub(super) fn grow_tree(&self, most: usize, least: usize) -> Vec<Node> {
        let mut nodes = vec![Node::Leaf];
        let open = |place: usize, points: Vec<u32>| {
            let split = self.best_split(&points, least);
            OpenLeaf { place, points, split }
        };
        let mut leaves = vec![open(0, (0..self.weights.len() as u32).collect())];
        while leaves.len() < most {
            // Ties go to the first leaf.
            let gain = |leaf: &OpenLeaf| leaf.split.as_ref().map_or(0.0, |split| split.gain);
            let Some(best) = (0..leaves.len()).rev().max_by(|&a, &b| gain(&leaves[a]).total_cmp(&gain(&leaves[b])))
            else {
                break;
            };
            let Some(Split { input, threshold, .. }) = leaves[best].split.take() else { break };
            let OpenLeaf { place, points, .. } = leaves.swap_remove(best);
            let left = nodes.len();
            nodes[place] = Node::Split { input: input as u32, threshold, left: left as u32, missing_right: false };
            nodes.extend([Node::Leaf; 2]);
            let (below, above): (Vec<u32>, Vec<u32>) =
                points.into_iter().partition(|&point| self.at(point)[input] < threshold);
            leaves.extend([open(left, below), open(left + 1, above)]);
        }
        nodes
    }

    /// The coordinates of a point.
    fn at(&self, point: u32) -> &[f64] {
        &self.values[point as usize * self.width..][..self.width]
    }

    /// The best split of some points; `None` if no split reduces the squared distances.
    fn best_split(&self, points: &[u32], least: usize) -> Option<Split> {
        if points.len() < 2 * least {
            return None;
        }
        let found: Vec<Option<Split>> =
            (0..self.width).into_par_iter().map(|input| self.best_split_on(input, points, least)).collect();
        // Ties go to the first input, whatever the order of the threads.
        found.into_iter().flatten().reduce(|best, other| if other.gain > best.gain { other } else { best })
    }

    /// The best split of some points on one input.
    fn best_split_on(&self, input: usize, points: &[u32], least: usize) -> Option<Split> {
        let mut points = points.to_vec();
        points.sort_by(|&a, &b| self.at(a)[input].total_cmp(&self.at(b)[input]));
        let add = |sums: &mut [f64], point: u32| {
            let weight = self.weights[point as usize];
            for ((sum, x), scale) in sums.iter_mut().zip(self.at(point)).zip(self.scales) {
                *sum += weight * x * scale;
            }
            weight
        };
        let mut all = vec![0.0; self.width];
        let weight: f64 = points.iter().map(|&point| add(&mut all, point)).sum();
        let mut below = vec![0.0; self.width];
        let (mut under, mut best) = (0.0, None::<Split>);
        for (i, pair) in points.windows(2).enumerate() {
            under += add(&mut below, pair[0]);
            let [low, high] = [0, 1].map(|side| self.at(pair[side])[input]);
            if i + 1 < least || points.len() - i - 1 < least || low >= high {
                continue;
            }
            let over = weight - under;
            // Weights may differ so much that one side has a weight of zero up to rounding.
            if under <= ROUNDING * weight || over <= ROUNDING * weight {
                continue;
            }
            let part = |(below, all): (&f64, &f64)| {
                below * below / under + (all - below) * (all - below) / over - all * all / weight
            };
            let gain: f64 = below.iter().zip(&all).map(part).sum();
            if gain > best.as_ref().map_or(ROUNDING * weight, |best| best.gain) {
                best = Some(Split { gain, input, threshold: threshold_between(low, high) });
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use pointsman_trees::Trees;

    use super::*;

    #[test]
    fn clusters_are_found() {
        // Four clusters. The second coordinate has scale zero, but splits on it are possible.
        let n = 400;
        let values: Vec<f64> =
            (0..n).flat_map(|i| [f64::from(i % 4) + f64::from(i % 7) / 100.0, f64::from(i)]).collect();
        let (weights, scales) = (vec![1.0; n as usize], [1.0, 0.0]);
        let points = Points { values: &values, width: 2, weights: &weights, scales: &scales };
        let trees = Trees::new(2, vec![0], &points.grow_tree(4, 30)).unwrap();
        let leaf = |i: i32| trees.leaf_of_row(0, &values[2 * i as usize..][..2]);
        assert_eq!(trees.leaves(), 4);
        assert!((0..n).all(|i| leaf(i) == leaf(i % 4)) && (1..4).all(|i| leaf(i) != leaf(0)));
        // The fewest points per leaf limit the number of leaves.
        let trees = Trees::new(2, vec![0], &points.grow_tree(25, 90)).unwrap();
        assert_eq!(trees.leaves(), 4);
        let alike = Points { values: &[0.5; 200], width: 1, weights: &[1.0; 200], scales: &[1.0] };
        assert_eq!(alike.grow_tree(25, 30), [Node::Leaf]);
    }
}
