//! The way to a leaf, in words.

use super::edges::short;
use crate::forest::{Node, Trees};

/// The most conditions a name has; the last ones say most about a leaf.
const SHOWN: usize = 4;

/// What holds in a leaf of a single tree: `x_length <3 × confidence 0.5–0.8`. `what` names an input.
pub(super) fn name(trees: &Trees, leaf: usize, what: impl Fn(usize) -> String) -> String {
    let nodes: Vec<Node> = trees.nodes().collect();
    let mut parents = vec![None; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        if let Node::Split { left, .. } = node {
            parents[*left as usize] = Some((place, false));
            parents[*left as usize + 1] = Some((place, true));
        }
    }
    let leaves = nodes.iter().enumerate().filter(|(_, node)| **node == Node::Leaf).map(|(place, _)| place);
    let mut place = leaves.into_iter().nth(leaf).unwrap_or(0);
    // Conditions from the leaf upwards: of two about one input the nearer is the sharper.
    let mut conditions: Vec<(u32, Option<f64>, Option<f64>)> = Vec::new();
    while let Some((parent, right)) = parents[place] {
        if let Node::Split { input, threshold, .. } = nodes[parent] {
            let known = conditions.iter().position(|(other, ..)| *other == input);
            let known = known.unwrap_or_else(|| {
                conditions.push((input, None, None));
                conditions.len() - 1
            });
            let (_, low, high) = &mut conditions[known];
            let end = if right { low } else { high };
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
