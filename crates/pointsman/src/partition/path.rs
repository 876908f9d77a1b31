//! The way to a leaf, in words.

use super::edges::short;
use crate::forest::{Node, Trees};

/// The most conditions a name has; the last ones say most about a leaf.
const SHOWN: usize = 4;

/// Who led to each node of a single tree, and where its leaves are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Paths {
    parents: Vec<u32>,
    leaves: Vec<u32>,
}

impl Paths {
    pub(super) fn of(trees: &Trees) -> Self {
        let mut paths = Self { parents: vec![0; trees.nodes().len()], leaves: Vec::with_capacity(trees.leaves()) };
        for (place, node) in trees.nodes().enumerate() {
            match node {
                Node::Leaf => paths.leaves.push(place as u32),
                Node::Split { left, .. } => paths.parents[left as usize..][..2].fill(place as u32),
            }
        }
        paths
    }

    /// What holds in a leaf: `x_length <3 × confidence 0.5–0.8`. `what` names an input.
    pub(super) fn name(&self, trees: &Trees, leaf: usize, what: impl Fn(usize) -> String) -> String {
        let mut place = self.leaves.get(leaf).copied().unwrap_or(0);
        // Conditions from the leaf upwards: of two about one input the nearer is the sharper.
        let mut conditions: Vec<(u32, Option<f64>, Option<f64>)> = Vec::new();
        while place > 0 {
            let parent = self.parents[place as usize];
            if let Node::Split { input, threshold, left, .. } = trees.node(parent as usize) {
                let known = conditions.iter().position(|(other, ..)| *other == input);
                let known = known.unwrap_or_else(|| {
                    conditions.push((input, None, None));
                    conditions.len() - 1
                });
                let (_, low, high) = &mut conditions[known];
                let end = if place > left { low } else { high };
                end.get_or_insert(threshold);
            }
            place = parent;
        }
        if conditions.is_empty() {
            return "all rows".into();
        }
        let word = |&(input, low, high): &(u32, Option<f64>, Option<f64>)| {
            let what = what(input as usize);
            match (low.filter(|low| *low > f64::MIN), high.filter(|high| *high > f64::MIN)) {
                (Some(low), Some(high)) => format!("{what} {}–{}", short(low), short(high)),
                (Some(low), None) => format!("{what} ≥{}", short(low)),
                (None, Some(high)) => format!("{what} <{}", short(high)),
                (None, None) if high.is_some() => format!("{what} missing"),
                (None, None) => format!("{what} there"),
            }
        };
        let mut words: Vec<String> = conditions.iter().take(SHOWN).map(word).collect();
        if conditions.len() > SHOWN {
            words.push("…".into());
        }
        words.join(" × ")
    }
}
