//! Pruning grown trees.

use std::ops::Range;

use crate::grow::GrownTree;
use crate::trees::Node;

/// Which splits of a grown tree are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PruningRule {
    /// The smallest number of rows of a node that is divided.
    pub(crate) min_rows_to_split: usize,
    /// The smallest sum of squares that a subtree explains per split, in units of the variance of a standardised target.
    pub(crate) min_gain: f64,
}

impl<const N: usize> GrownTree<N> {
    /// The tree in which nodes with fewer rows are not divided, and for each node of this tree the node of that one in which its rows end.
    pub(crate) fn divided_from(&self, min_rows_to_split: usize) -> (Self, Vec<u32>) {
        let mut tree = Self { nodes: Vec::new(), means: Vec::new(), rows: Vec::new(), gains: Vec::new() };
        tree.copy_leaves(self, 0..1);
        let mut ends = vec![0; self.nodes.len()];
        // Children follow their parents. The rows of a node whose parent is not divided end where those of the parent end.
        let mut has_end = vec![false; self.nodes.len()];
        has_end[0] = true;
        for (place, node) in self.nodes.iter().enumerate() {
            let Node::Split { left, .. } = *node else { continue };
            let (children, end) = (left as usize..left as usize + 2, ends[place]);
            if has_end[place] && self.rows[place] as usize >= min_rows_to_split {
                let new = tree.nodes.len() as u32;
                tree.nodes[end as usize] = node.with_children_at(new);
                tree.gains[end as usize] = self.gains[place];
                tree.copy_leaves(self, children.clone());
                ends[children.clone()].copy_from_slice(&[new, new + 1]);
                has_end[children].fill(true);
            } else {
                ends[children].fill(end);
            }
        }
        (tree, ends)
    }

    /// Appends nodes of another tree as leaves.
    fn copy_leaves(&mut self, other: &Self, nodes: Range<usize>) {
        self.nodes.extend(nodes.clone().map(|_| Node::Leaf));
        self.means.extend_from_slice(&other.means[nodes.clone()]);
        self.rows.extend_from_slice(&other.rows[nodes.clone()]);
        self.gains.extend(nodes.map(|_| 0.0));
    }

    /// For each node, the node in which its rows end if each split must explain `min_gain`: itself or, if it is pruned, the leaf that replaces
    /// it.
    ///
    /// The pruned tree is the one whose gains exceed `min_gain` per split by most: cost-complexity pruning with a fixed price per split.
    pub(crate) fn ends(&self, min_gain: f64) -> Vec<u32> {
        // What the subtree below a node explains, less the price of its splits; zero if it is pruned. Children follow their parents.
        let mut net = vec![0.0_f64; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if let Node::Split { left, .. } = *node {
                let below = net[left as usize] + net[left as usize + 1];
                net[place] = (self.gains[place] - min_gain + below).max(0.0);
            }
        }
        let mut ends: Vec<u32> = (0..self.nodes.len() as u32).collect();
        for (place, node) in self.nodes.iter().enumerate() {
            if let Node::Split { left, .. } = *node
                && (net[place] <= 0.0 || ends[place] != place as u32)
            {
                ends[left as usize] = ends[place];
                ends[left as usize + 1] = ends[place];
            }
        }
        ends
    }

    /// The nodes of the tree under a rule.
    pub(crate) fn prune(&self, rule: PruningRule) -> Vec<Node> {
        let (tree, _) = self.divided_from(rule.min_rows_to_split);
        let ends = tree.ends(rule.min_gain);
        let mut pruned = vec![Node::Leaf];
        let mut open = vec![(0, 0)];
        while let Some((from, to)) = open.pop() {
            if let Node::Split { left, .. } = tree.nodes[from]
                && ends[left as usize] == left
            {
                let (left, new) = (left as usize, pruned.len());
                pruned[to] = tree.nodes[from].with_children_at(new as u32);
                pruned.extend([Node::Leaf; 2]);
                open.push((left + 1, new + 1));
                open.push((left, new));
            }
        }
        pruned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{draw, unit};

    /// A complete tree of four levels with gains and row counts that fall from level to level.
    fn tree(seed: u64) -> GrownTree<1> {
        let split = |place: usize| Node::Split {
            input: 0,
            threshold: place as f64,
            left: 2 * place as u32 + 1,
            missing_right: false,
        };
        let nodes: Vec<Node> = (0..15).map(|place| if place < 7 { split(place) } else { Node::Leaf }).collect();
        let gains = (0..15).map(|place| if place < 7 { 10.0 * unit(draw(seed, place)) } else { 0.0 }).collect();
        let rows = (0..15_usize).map(|place| 64 >> (place + 1).ilog2()).collect();
        GrownTree { nodes, means: vec![[0.0]; 15], rows, gains }
    }

    /// The net gain of the best pruning below a node, by trying both.
    fn best_net(tree: &GrownTree<1>, place: usize, price: f64) -> f64 {
        match tree.nodes[place] {
            Node::Leaf => 0.0,
            Node::Split { left, .. } => {
                let below: f64 = [0, 1].map(|side| best_net(tree, left as usize + side, price)).iter().sum();
                (tree.gains[place] - price + below).max(0.0)
            }
        }
    }

    #[test]
    fn pruned_trees_have_the_largest_net_gain() {
        for seed in 0..50 {
            let tree = tree(seed);
            for price in [0.0, 2.0, 5.0, 9.0] {
                let ends = tree.ends(price);
                let kept = (0..7).filter(|&place| ends[2 * place + 1] == 2 * place as u32 + 1);
                let net: f64 = kept.map(|place| tree.gains[place] - price).sum();
                assert!((net - best_net(&tree, 0, price)).abs() < 1e-12, "{net} at {price}");
            }
        }
    }

    #[test]
    fn rows_of_a_pruned_tree_end_where_it_says() {
        for seed in 0..50 {
            let tree = tree(seed);
            for rule in [(0, 0.0), (32, 0.0), (0, 4.0), (32, 6.0), (100, 0.0)] {
                let rule = PruningRule { min_rows_to_split: rule.0, min_gain: rule.1 };
                let (divided, of_divided) = tree.divided_from(rule.min_rows_to_split);
                let ends = divided.ends(rule.min_gain);
                let pruned = tree.prune(rule);
                let pruned = GrownTree::<1> {
                    means: vec![[0.0]; pruned.len()],
                    rows: vec![0; pruned.len()],
                    gains: vec![0.0; pruned.len()],
                    nodes: pruned,
                };
                let leaves = (0..20).map(|x| (tree.leaf_node(&[f64::from(x)]), pruned.leaf_node(&[f64::from(x)])));
                let mut of_end = std::collections::HashMap::new();
                for (leaf, of_pruned) in leaves {
                    assert_eq!(pruned.nodes[of_pruned], Node::Leaf);
                    let end = ends[of_divided[leaf] as usize];
                    assert_eq!(*of_end.entry(end).or_insert(of_pruned), of_pruned);
                }
                assert!(
                    divided
                        .nodes
                        .iter()
                        .zip(&divided.rows)
                        .all(|(node, rows)| { *node == Node::Leaf || *rows as usize >= rule.min_rows_to_split })
                );
            }
        }
    }
}
