//! Display names of cells: `spam, confidence 0.73–0.87`, or the rule of a tree's leaf, `x_age < 31.5 and confidence < 0.80`.
//!
//! Edges are rounded as far as neighbouring edges still differ.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::cells::{CellId, Cells};
use super::edges::Edges;
use crate::number::fixed;
use crate::partition::forest::{HonestForest, Node, Trees};

/// The largest number of conditions that are shown of a rule: those nearest to the leaf.
const MAX_CONDITIONS: usize = 12;

/// The largest number of additional decimals by which an edge is distinguished from its neighbours.
const MAX_MORE_DECIMALS: usize = 15;

/// The quantity that edges divide, which determines how values are formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// A probability, a confidence or a share of labels: from 0 to 1.
    Share,
    /// An estimated loss, negative only by noise.
    Loss,
    /// A feature: any number.
    Feature,
}

impl Quantity {
    /// A value with `more` decimals beyond the minimum.
    fn written(self, value: f64, more: usize) -> String {
        if self != Self::Feature {
            return fixed(value, 2 + more);
        }
        // Five significant digits without trailing zeros.
        let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
        if !(-5..15).contains(&exponent) {
            return format!("{value:.*e}", 3 + more).replace('-', "−");
        }
        let text = fixed(value, (4 - exponent).max(0) as usize + more);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }

    /// Values that a rounded edge must differ from.
    fn ends(self) -> &'static [f64] {
        match self {
            Self::Share => &[0.0, 1.0],
            Self::Loss => &[0.0],
            Self::Feature => &[],
        }
    }

    /// An edge with enough digits to distinguish it from its neighbours.
    fn edge(self, edges: &[f64], place: usize) -> String {
        let value = edges[place];
        let beside = [place.checked_sub(1), place.checked_add(1)].map(|place| edges.get(place?).copied());
        let others = || beside.into_iter().flatten().chain(self.ends().iter().copied()).filter(|&other| other != value);
        let differs = |&more: &usize| {
            let text = self.written(value, more);
            others().all(|other| self.written(other, more) != text)
        };
        self.written(value, (0..MAX_MORE_DECIMALS).find(differs).unwrap_or(MAX_MORE_DECIMALS))
    }

    /// The range between two edges, each given by its index: `name 0.73–0.87`, `name < 0.61`, `name ≥ 0.8`, or the name alone.
    fn between(self, name: &str, edges: &[f64], low: Option<usize>, high: Option<usize>) -> String {
        if self == Self::Loss && edges.first().is_some_and(|&edge| edge <= 0.0) {
            return loss_around_zero(name, edges, low, high);
        }
        match (low, high) {
            (None, None) => name.to_owned(),
            (None, Some(high)) => format!("{name} < {}", self.edge(edges, high)),
            (Some(low), None) => format!("{name} ≥ {}", self.edge(edges, low)),
            (Some(low), Some(high)) => {
                let dash = if edges[low] < 0.0 { " to " } else { "–" };
                format!("{name} {}{dash}{}", self.edge(edges, low), self.edge(edges, high))
            }
        }
    }
}

/// The range of a loss if some edges are not positive. No loss is negative, so all bins below zero are shown as "near 0" and numbered.
fn loss_around_zero(name: &str, edges: &[f64], low: Option<usize>, high: Option<usize>) -> String {
    let below = edges.partition_point(|&edge| edge <= 0.0);
    let positive = |place: &usize| *place >= below;
    match (low.filter(positive), high.filter(positive)) {
        // Entirely below zero: the number of the bin, if there are several.
        (None, None) if high.is_some() => {
            let (first, last) = (low.map_or(1, |low| low + 2), high.map_or(below, |high| high + 1));
            match below {
                _ if first == 1 && last == below => format!("{name} near 0"),
                _ if first == last => format!("{name} near 0, part {first} of {below}"),
                _ => format!("{name} near 0, parts {first}–{last} of {below}"),
            }
        }
        // The range starts at zero, the smallest loss.
        (None, Some(high)) => format!("{name} 0–{}", Quantity::Loss.edge(edges, high)),
        (None, None) if low.is_some() => format!("{name} > 0"),
        (None, None) => name.to_owned(),
        (Some(low), None) => format!("{name} ≥ {}", Quantity::Loss.edge(edges, low)),
        (Some(low), Some(high)) => {
            format!("{name} {}–{}", Quantity::Loss.edge(edges, low), Quantity::Loss.edge(edges, high))
        }
    }
}

/// The name of a bin of an axis.
fn bin_name(quantity: Quantity, name: &str, edges: &Edges, bin: usize) -> String {
    let high = Some(bin).filter(|&bin| bin < edges.values().len());
    quantity.between(name, edges.values(), bin.checked_sub(1), high)
}

/// The name of a confidence bin of one or more classes.
fn class_name(class: &str, edges: &Edges, bin: usize) -> String {
    if edges.values().is_empty() {
        return class.to_owned();
    }
    format!("{class}, {}", bin_name(Quantity::Share, "confidence", edges, bin))
}

/// The name of a confidence bin over all classes.
fn confidence_name(edges: &Edges, bin: usize) -> String {
    if edges.values().is_empty() {
        "any confidence".into()
    } else {
        bin_name(Quantity::Share, "confidence", edges, bin)
    }
}

/// The name of a bin by its rank among all bins of a quantity.
fn rank_name(quantity: &str, bin: usize, bins: usize) -> String {
    let place = match bin + 1 {
        _ if bins == 1 => return "all rows".into(),
        1 => "lowest".to_owned(),
        last if last == bins => "highest".to_owned(),
        place => {
            let ending = match (place % 10, place % 100) {
                (_, 11..=13) => "th",
                (1, _) => "st",
                (2, _) => "nd",
                (3, _) => "rd",
                _ => "th",
            };
            format!("{place}{ending} lowest")
        }
    };
    format!("{quantity} {place} of {bins}")
}

impl Cells {
    /// The display name of a cell.
    #[must_use]
    pub fn name(&self, cell: CellId, classes: &[String]) -> String {
        let part = |(axis, stride): (&Axis, &usize)| axis.name(cell.index() / stride % axis.bins(), classes, self);
        self.axes().iter().zip(self.strides()).map(part).collect::<Vec<_>>().join(" and ")
    }
}

impl Axis {
    fn name(&self, bin: usize, classes: &[String], cells: &Cells) -> String {
        match self {
            Self::TopClass { edges, first } => {
                let class = first.partition_point(|&f| f as usize <= bin).saturating_sub(1);
                class_name(&classes[class], &edges[class], bin - first[class] as usize)
            }
            Self::Confidence { edges } => confidence_name(edges, bin),
            Self::Pooled { groups, edges, first } => {
                let group = first.partition_point(|&f| f as usize <= bin).saturating_sub(1);
                let (edges, is_only, bin) = (&edges[group], edges.len() == 1, bin - first[group] as usize);
                let mut own = groups.iter().zip(classes).filter(|(other, _)| **other as usize == group);
                match (own.next(), own.next()) {
                    (Some((_, class)), None) => class_name(class, edges, bin),
                    _ if is_only => confidence_name(edges, bin),
                    _ => class_name("other classes", edges, bin),
                }
            }
            Self::Feature { name, edges, .. } => bin_name(Quantity::Feature, &format!("x_{name}"), edges, bin),
            Self::LevelSets { levels, classes: width } => match levels.chunks_exact(*width).nth(bin) {
                Some(level) => {
                    let shown: Vec<String> = level.iter().take(6).map(f32::to_string).collect();
                    format!("prediction ({}{})", shown.join(", "), if *width > 6 { ", …" } else { "" })
                }
                None => "predictions never seen".into(),
            },
            Self::Tree { trees } => cells.rules().name(trees, bin, |input| match input.checked_sub(classes.len()) {
                None => (Quantity::Share, format!("prob_{}", classes[input])),
                Some(0) => (Quantity::Share, "confidence".into()),
                Some(feature) => (Quantity::Feature, format!("x_{}", cells.features()[feature - 1])),
            }),
            Self::HonestForest { forest } => {
                cells.rules().name(forest.cells(), bin, |score| match score.checked_sub(HonestForest::LOSSES) {
                    None => {
                        (Quantity::Loss, ["expected reducible loss", "expected irreducible loss"][score].to_owned())
                    }
                    Some(share) => {
                        let class = &classes[forest.shares()[share] as usize];
                        (Quantity::Share, format!("expected share of {class}"))
                    }
                })
            }
            // By rank, not by edges: scores are noisy, so rows with low scores lose more than their score and rows with high scores less.
            Self::Forest { edges, .. } => rank_name("reducible loss", bin, edges.bins()),
        }
    }
}

/// The rules of the leaves of a single tree: the parent of each node, the nodes of the leaves, and the thresholds of each input.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rules {
    parents: Vec<u32>,
    leaves: Vec<u32>,
    thresholds: BTreeMap<u32, Vec<f64>>,
}

/// The condition of a leaf on one input: the thresholds between which it lies.
#[derive(Debug, Clone, Copy, Default)]
struct Condition {
    input: u32,
    low: Option<f64>,
    high: Option<f64>,
}

/// A split at this threshold separates missing values from all others.
const ANY_VALUE: f64 = f64::MIN;

impl Rules {
    pub(super) fn new(trees: &Trees) -> Self {
        let mut rules = Self {
            parents: vec![0; trees.nodes().len()],
            leaves: Vec::with_capacity(trees.leaves()),
            thresholds: BTreeMap::new(),
        };
        for (place, node) in trees.nodes().enumerate() {
            match node {
                Node::Leaf => rules.leaves.push(place as u32),
                Node::Split { input, threshold, left, .. } => {
                    rules.parents[left as usize..][..2].fill(place as u32);
                    if threshold > ANY_VALUE {
                        rules.thresholds.entry(input).or_default().push(threshold);
                    }
                }
            }
        }
        for thresholds in rules.thresholds.values_mut() {
            thresholds.sort_by(f64::total_cmp);
            thresholds.dedup();
        }
        rules
    }

    /// The conditions of a leaf in words, from the root. `what` gives the quantity and the name of an input.
    fn name(&self, trees: &Trees, leaf: usize, what: impl Fn(usize) -> (Quantity, String)) -> String {
        let conditions = self.conditions(trees, leaf);
        if conditions.is_empty() {
            return "all rows".into();
        }
        let left_out = conditions.len().saturating_sub(MAX_CONDITIONS);
        let word = |condition: &Condition| {
            let (quantity, name) = what(condition.input as usize);
            self.word(condition, quantity, &name)
        };
        let mut words: Vec<String> = conditions.iter().take(MAX_CONDITIONS).rev().map(word).collect();
        if left_out > 0 {
            words.insert(0, "…".into());
        }
        words.join(" and ")
    }

    /// One condition per input, that of the root last. Of two splits of one input, the one nearer to the leaf is tighter.
    fn conditions(&self, trees: &Trees, leaf: usize) -> Vec<Condition> {
        let mut place = self.leaves.get(leaf).copied().unwrap_or(0);
        let mut conditions: Vec<Condition> = Vec::new();
        while place > 0 {
            let parent = self.parents[place as usize];
            if let Node::Split { input, threshold, left, .. } = trees.node(parent as usize) {
                let known = conditions.iter().position(|condition| condition.input == input);
                let mut condition =
                    known.map_or(Condition { input, ..Condition::default() }, |known| conditions.remove(known));
                let end = if place > left { &mut condition.low } else { &mut condition.high };
                end.get_or_insert(threshold);
                // Ordered by the split nearest to the root.
                conditions.push(condition);
            }
            place = parent;
        }
        conditions
    }

    fn word(&self, &Condition { input, low, high }: &Condition, quantity: Quantity, name: &str) -> String {
        let thresholds = self.thresholds.get(&input).map(Vec::as_slice).unwrap_or_default();
        let place = |end: f64| thresholds.binary_search_by(|other| other.total_cmp(&end)).ok();
        match (low.and_then(place), high.and_then(place)) {
            (None, None) if high.is_some() => format!("{name} missing"),
            (None, None) => format!("{name} not missing"),
            (low, high) => quantity.between(name, thresholds, low, high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(quantity: Quantity, name: &str, edges: &[f64]) -> Vec<String> {
        let edges = Edges::of_feature(edges.to_vec()).unwrap();
        (0..edges.bins()).map(|bin| bin_name(quantity, name, &edges, bin)).collect()
    }

    #[test]
    fn edges_are_rounded_as_far_as_neighbours_differ() {
        assert_eq!(
            names(Quantity::Share, "confidence", &[0.730_12, 0.871_99]),
            ["confidence < 0.73", "confidence 0.73–0.87", "confidence ≥ 0.87"]
        );
        // Rounded edges differ from their neighbours and from the ends of the scale.
        assert_eq!(
            names(Quantity::Share, "confidence", &[0.001, 0.8751, 0.8759, 0.9999, 1.0]),
            [
                "confidence < 0.001",
                "confidence 0.001–0.875",
                "confidence 0.875–0.876",
                "confidence 0.876–0.9999",
                "confidence 0.9999–1.0000",
                "confidence ≥ 1.0000"
            ]
        );
    }

    #[test]
    fn features_keep_digits_and_sign() {
        assert_eq!(
            names(Quantity::Feature, "x_age", &[-12.5, -3.0, 31.5, 1234.5, 1e20]),
            [
                "x_age < −12.5",
                "x_age −12.5 to −3",
                "x_age −3 to 31.5",
                "x_age 31.5–1,234.5",
                "x_age 1,234.5–1.000e20",
                "x_age ≥ 1.000e20"
            ]
        );
        assert_eq!(
            names(Quantity::Feature, "x_t", &[1_000_000.01, 1_000_000.02]),
            ["x_t < 1,000,000.01", "x_t 1,000,000.01–1,000,000.02", "x_t ≥ 1,000,000.02"]
        );
    }

    #[test]
    fn forest_bins_are_named_by_rank() {
        let names = [0, 1, 2, 10, 20, 23, 24].map(|bin| rank_name("reducible loss", bin, 25));
        assert_eq!(names[0], "reducible loss lowest of 25");
        let place = |name: &String| name["reducible loss ".len()..].trim_end_matches(" of 25").to_owned();
        let words = ["lowest", "2nd lowest", "3rd lowest", "11th lowest", "21st lowest", "24th lowest", "highest"];
        assert_eq!(names.each_ref().map(place), words);
        assert_eq!(rank_name("reducible loss", 0, 1), "all rows");
    }

    #[test]
    fn losses_are_never_shown_as_negative() {
        assert_eq!(
            names(Quantity::Loss, "reducible loss", &[-0.001_582, -0.000_736_16, 0.0312, 0.0533]),
            [
                "reducible loss near 0, part 1 of 2",
                "reducible loss near 0, part 2 of 2",
                "reducible loss 0–0.03",
                "reducible loss 0.03–0.05",
                "reducible loss ≥ 0.05"
            ]
        );
        assert_eq!(names(Quantity::Loss, "reducible loss", &[-0.1]), ["reducible loss near 0", "reducible loss > 0"]);
        assert_eq!(
            names(Quantity::Loss, "reducible loss", &[0.03, 0.05])[..2],
            ["reducible loss < 0.03", "reducible loss 0.03–0.05"]
        );
    }

    #[test]
    fn names_of_neighbouring_bins_always_differ() {
        let edges: Vec<f64> = (0..400).map(|i| 1.0 - 0.9_f64.powi(i)).collect();
        let mut edges: Vec<f64> = edges.into_iter().filter(|edge| *edge < 1.0).collect();
        edges.dedup();
        let mut names = names(Quantity::Share, "confidence", &edges);
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
