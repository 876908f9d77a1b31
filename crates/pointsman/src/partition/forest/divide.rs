//! One small tree over points, grown where it tells them apart best, until it has as many leaves as are wanted.

use pointsman_trees::{Node, threshold_between};

use crate::parallel::prelude::*;

/// Gains below this part of a point's weight are rounding.
const ROUNDING: f64 = 1e-9;

/// Points to divide, and to tell apart: of both, the coordinates.
pub(super) struct Points<'a> {
    /// Point by point.
    pub(super) values: &'a [f64],
    pub(super) width: usize,
    pub(super) weights: &'a [f64],
    /// What a unit of each coordinate counts.
    pub(super) scales: &'a [f64],
}

/// A question that a leaf could ask.
struct Split {
    gain: f64,
    input: usize,
    threshold: f64,
}

/// A leaf with its points.
struct Open {
    place: usize,
    points: Vec<u32>,
    split: Option<Split>,
}

impl Points<'_> {
    /// A tree of at most `most` leaves with at least `least` points each: always that leaf is divided next whose division
    /// explains most of the squared distances to the leaves' means.
    pub(super) fn divide(&self, most: usize, least: usize) -> Vec<Node> {
        let mut nodes = vec![Node::Leaf];
        let open = |place: usize, points: Vec<u32>| {
            let split = self.best(&points, least);
            Open { place, points, split }
        };
        let mut leaves = vec![open(0, (0..self.weights.len() as u32).collect())];
        while leaves.len() < most {
            // The first of equals.
            let gain = |leaf: &Open| leaf.split.as_ref().map_or(0.0, |split| split.gain);
            let Some(best) = (0..leaves.len()).rev().max_by(|&a, &b| gain(&leaves[a]).total_cmp(&gain(&leaves[b])))
            else {
                break;
            };
            let Some(Split { input, threshold, .. }) = leaves[best].split.take() else { break };
            let Open { place, points, .. } = leaves.swap_remove(best);
            let left = nodes.len();
            nodes[place] = Node::Split { input: input as u32, threshold, left: left as u32, missing_right: false };
            nodes.extend([Node::Leaf; 2]);
            let (below, above): (Vec<u32>, Vec<u32>) =
                points.into_iter().partition(|&point| self.at(point)[input] < threshold);
            leaves.extend([open(left, below), open(left + 1, above)]);
        }
        nodes
    }

    fn at(&self, point: u32) -> &[f64] {
        &self.values[point as usize * self.width..][..self.width]
    }

    /// The best question to ask about some points, if any is worth it.
    fn best(&self, points: &[u32], least: usize) -> Option<Split> {
        if points.len() < 2 * least {
            return None;
        }
        let found: Vec<Option<Split>> =
            (0..self.width).into_par_iter().map(|input| self.best_of(input, points, least)).collect();
        // The first of equals, whichever core was first.
        found.into_iter().flatten().reduce(|best, other| if other.gain > best.gain { other } else { best })
    }

    fn best_of(&self, input: usize, points: &[u32], least: usize) -> Option<Split> {
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
            // Weights may differ by so much that one side weighs nothing.
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
        // Four clusters; the second coordinate counts for nothing but is where one may ask, too.
        let n = 400;
        let values: Vec<f64> =
            (0..n).flat_map(|i| [f64::from(i % 4) + f64::from(i % 7) / 100.0, f64::from(i)]).collect();
        let (weights, scales) = (vec![1.0; n as usize], [1.0, 0.0]);
        let points = Points { values: &values, width: 2, weights: &weights, scales: &scales };
        let trees = Trees::new(2, vec![0], &points.divide(4, 30)).unwrap();
        let leaf = |i: i32| trees.leaf_of_row(0, &values[2 * i as usize..][..2]);
        assert_eq!(trees.leaves(), 4);
        assert!((0..n).all(|i| leaf(i) == leaf(i % 4)) && (1..4).all(|i| leaf(i) != leaf(0)));
        // As many leaves as points allow, each with enough of them.
        let trees = Trees::new(2, vec![0], &points.divide(25, 90)).unwrap();
        assert_eq!(trees.leaves(), 4);
        let alike = Points { values: &[0.5; 200], width: 1, weights: &[1.0; 200], scales: &[1.0] };
        assert_eq!(alike.divide(25, 30), [Node::Leaf]);
    }
}
