//! Axes: the fitted factors of a partition.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Factor;
use super::edges::{Edges, single};
use crate::error::{PartitionError, Result};
use crate::parallel::prelude::*;
use crate::partition::forest::{Forest, HonestForest, Trees, inputs};
use crate::table::Table;
use crate::table::simplex::{self, Peak, Real};

/// The number of rows from which a top class has its own pooled cells; all other classes share cells.
const MIN_ROWS_FOR_OWN_CELLS: usize = 90;

/// The number of rows per pooled cell: enough not to be sparse.
const ROWS_PER_POOLED_CELL: usize = 30;

/// The largest number of pooled cells per group of classes. Twice as many lower costs by 0.0001 to 0.001 and determine fewer cells.
const MAX_POOLED_BINS: usize = 12;

/// One factor of a fitted partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Axis {
    /// Confidence edges for each top class; classes in order, bins in order.
    TopClass {
        /// One set of edges per class.
        edges: Vec<Edges>,
        /// The first cell of each class.
        first: Vec<u32>,
    },
    /// Confidence edges over all classes.
    Confidence {
        /// The edges.
        edges: Edges,
    },
    /// The distinct predictions, sorted; one more cell is for all other predictions.
    LevelSets {
        /// Distinct predictions row by row, in single precision.
        levels: Vec<f32>,
        /// The number of entries per row.
        classes: usize,
    },
    /// Edges of one feature.
    Feature {
        /// The feature's name.
        name: String,
        /// Its index among the features that the cells need.
        slot: usize,
        /// The edges.
        edges: Edges,
    },
    /// Confidence edges for groups of top classes: each class with enough rows is a group, all others form one group.
    Pooled {
        /// The group of each class.
        groups: Vec<u32>,
        /// One set of edges per group.
        edges: Vec<Edges>,
        /// The first cell of each group.
        first: Vec<u32>,
    },
    /// The leaves of one tree.
    Tree {
        /// The single tree.
        trees: Trees,
    },
    /// Bins of the score of a forest.
    Forest {
        /// The forest.
        forest: Arc<Forest>,
        /// Edges of the score.
        edges: Edges,
    },
    /// Cells of the scores of a forest that was grown and divided on other rows.
    HonestForest {
        /// The forest.
        forest: HonestForest,
    },
}

impl Axis {
    /// Fits a factor to a table; adds the features that it needs.
    pub(super) fn fit(factor: &Factor, table: &Table, features: &mut Vec<String>) -> Result<Self> {
        Ok(match factor {
            Factor::TopClass { bins } => {
                let mut counts = vec![0; table.classes().len()];
                table.peaks().iter().for_each(|peak| counts[peak.class as usize] += 1);
                let mut confidences: Vec<Vec<f64>> = counts.into_iter().map(Vec::with_capacity).collect();
                for peak in table.peaks() {
                    confidences[peak.class as usize].push(peak.confidence);
                }
                let quantiles = |values: Vec<f64>| Edges::quantiles(values.iter().copied(), *bins, single);
                Self::top_class(confidences.into_par_iter().map(quantiles).collect())
            }
            Factor::Confidence { bins } => {
                let confidences = table.peaks().iter().map(|peak| peak.confidence);
                Self::Confidence { edges: Edges::quantiles(confidences, *bins, single) }
            }
            Factor::Pooled => Self::fit_pooled(table),
            Factor::LevelSets => {
                let classes = table.classes().len();
                let mut rows: Vec<Vec<f32>> = (0..table.rows())
                    .map(|row| {
                        let row = table.prediction(row);
                        let divisor = simplex::divisor(&row);
                        row.iter().map(|x| level_key(*x, divisor)).collect()
                    })
                    .collect();
                rows.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
                rows.dedup();
                Self::LevelSets { levels: rows.concat(), classes }
            }
            Factor::Feature { name, bins } => {
                let column = table.feature_columns(std::slice::from_ref(name))?[0];
                table.check_present(column)?;
                let values = (0..table.rows()).map(|row| table.features(row)[column]);
                let edges = Edges::of_feature_values(values, *bins);
                let slot = features.iter().position(|other| other == name).unwrap_or_else(|| {
                    features.push(name.clone());
                    features.len() - 1
                });
                Self::Feature { name: name.clone(), slot, edges }
            }
            Factor::Tree | Factor::Forest { .. } | Factor::HonestForest { .. } | Factor::Auto { .. } => {
                let reason = "it learns from votes; use Router::calibrate".to_owned();
                return Err(PartitionError::Factor { partition: factor.to_string(), reason }.into());
            }
        })
    }

    /// Whether the axis is consistent with itself, with a number of classes and with the features that the cells need.
    pub(super) fn fits(&self, classes: usize, features: &[String]) -> bool {
        let has_inputs = |trees: &Trees| trees.inputs() == inputs::width(classes, features.len());
        match self {
            Self::TopClass { edges, first } => edges.len() == classes && *first == first_cells(edges),
            Self::Confidence { .. } => true,
            Self::Pooled { groups, edges, first } => {
                let mut classes_of = vec![0_usize; edges.len()];
                let known =
                    groups.iter().all(|&group| classes_of.get_mut(group as usize).map(|count| *count += 1).is_some());
                groups.len() == classes
                    && known
                    && classes_of.iter().all(|&count| count > 0)
                    && *first == first_cells(edges)
            }
            Self::LevelSets { levels, classes: width } => {
                *width == classes
                    && levels.len().is_multiple_of(classes)
                    && levels.iter().all(|x| (0.0..=1.001).contains(x))
                    && levels
                        .chunks_exact(classes)
                        .zip(levels.chunks_exact(classes).skip(1))
                        .all(|(a, b)| a.partial_cmp(b) == Some(Ordering::Less))
            }
            Self::Feature { slot, name, .. } => features.get(*slot) == Some(name),
            Self::Tree { trees } => trees.count() == 1 && has_inputs(trees),
            Self::Forest { forest, .. } => has_inputs(forest.trees()),
            Self::HonestForest { forest } => {
                has_inputs(forest.scorer().trees()) && forest.shares().iter().all(|&class| (class as usize) < classes)
            }
        }
    }

    /// Whether the axis cannot be part of a product.
    pub(super) fn stands_alone(&self) -> bool {
        matches!(self, Self::Pooled { .. } | Self::Tree { .. } | Self::Forest { .. } | Self::HonestForest { .. })
    }

    /// A top-class axis from one set of edges per class.
    #[must_use]
    pub fn top_class(edges: Vec<Edges>) -> Self {
        let first = first_cells(&edges);
        Self::TopClass { edges, first }
    }

    /// Fits edges for groups of classes: each class with [`MIN_ROWS_FOR_OWN_CELLS`] rows is a group, all others form one group.
    fn fit_pooled(table: &Table) -> Self {
        let mut counts = vec![0_usize; table.classes().len()];
        table.peaks().iter().for_each(|peak| counts[peak.class as usize] += 1);
        let mut confidences: Vec<Vec<f64>> = Vec::new();
        let (mut groups, mut others) = (Vec::with_capacity(counts.len()), None);
        for &count in &counts {
            let new = confidences.len() as u32;
            let group = if count >= MIN_ROWS_FOR_OWN_CELLS { new } else { *others.get_or_insert(new) };
            if group == new {
                confidences.push(Vec::new());
            }
            groups.push(group);
        }
        for peak in table.peaks() {
            confidences[groups[peak.class as usize] as usize].push(peak.confidence);
        }
        let quantiles = |values: Vec<f64>| {
            let bins = (values.len() / ROWS_PER_POOLED_CELL).clamp(1, MAX_POOLED_BINS);
            Edges::quantiles(values.iter().copied(), bins, single)
        };
        Self::pooled(groups, confidences.into_par_iter().map(quantiles).collect())
    }

    /// A pooled axis from the group of each class and one set of edges per group.
    #[must_use]
    pub fn pooled(groups: Vec<u32>, edges: Vec<Edges>) -> Self {
        let first = first_cells(&edges);
        Self::Pooled { groups, edges, first }
    }

    /// The number of bins of this axis.
    #[must_use]
    pub fn bins(&self) -> usize {
        match self {
            Self::TopClass { edges, .. } | Self::Pooled { edges, .. } => edges.iter().map(Edges::bins).sum(),
            Self::Confidence { edges } | Self::Feature { edges, .. } => edges.bins(),
            Self::LevelSets { levels, classes } => levels.len() / classes + 1,
            Self::Tree { trees } => trees.leaves(),
            Self::Forest { edges, .. } => edges.bins(),
            Self::HonestForest { forest } => forest.cells().leaves(),
        }
    }

    #[inline]
    pub(super) fn bin<T: Real>(&self, row: &[T], peak: Peak, features: &[f64]) -> usize {
        match self {
            Self::TopClass { edges, first } => {
                let class = peak.class as usize;
                first[class] as usize + edges[class].bin(f64::from(peak.key()))
            }
            Self::Confidence { edges } => edges.bin(f64::from(peak.key())),
            Self::Pooled { groups, edges, first } => {
                let group = groups[peak.class as usize] as usize;
                first[group] as usize + edges[group].bin(f64::from(peak.key()))
            }
            Self::LevelSets { levels, classes } => find_level(levels, *classes, row),
            Self::Feature { slot, edges, .. } => edges.bin(features[*slot]),
            Self::Tree { trees } => {
                let mut found = 0;
                inputs::leaves_of_query(trees, row, peak, features, |leaf| found = leaf as usize);
                found
            }
            Self::Forest { forest, edges } => edges.bin(forest.scorer().scores(row, peak, features)[0]),
            Self::HonestForest { forest } => forest.cell(row, peak, features),
        }
    }

    /// The confidences between which a bin lies.
    pub(super) fn confidence(&self, bin: usize) -> [Option<f64>; 2] {
        match self {
            Self::TopClass { edges, first } | Self::Pooled { edges, first, .. } => {
                let part = first.partition_point(|&f| f as usize <= bin).saturating_sub(1);
                edges[part].around(bin - first[part] as usize)
            }
            Self::Confidence { edges } => edges.around(bin),
            Self::LevelSets { levels, classes } => {
                let top = levels.chunks_exact(*classes).nth(bin).map(|level| level.iter().copied().fold(0.0, f32::max));
                [top.map(f64::from); 2]
            }
            Self::Feature { .. } | Self::Tree { .. } | Self::Forest { .. } | Self::HonestForest { .. } => [None; 2],
        }
    }
}

/// The first cell of each group.
fn first_cells(edges: &[Edges]) -> Vec<u32> {
    let mut next = 0;
    let first = |edges: &Edges| {
        let first = next;
        next += edges.bins() as u32;
        first
    };
    edges.iter().map(first).collect()
}

/// The single-precision key of an entry in level sets; adding zero turns −0 into +0.
fn level_key<T: Real>(entry: T, divisor: f64) -> f32 {
    (f64::from(entry.to_f32()) / divisor) as f32 + 0.0
}

/// The index of a row among the sorted levels, by binary search.
fn find_level<T: Real>(levels: &[f32], classes: usize, row: &[T]) -> usize {
    let divisor = simplex::divisor(row);
    let compare = |level: &[f32]| {
        let key = row.iter().map(|x| level_key(*x, divisor));
        level.iter().copied().partial_cmp(key).unwrap_or(Ordering::Less)
    };
    let (mut low, mut high) = (0, levels.len() / classes);
    while low < high {
        let middle = low.midpoint(high);
        match compare(&levels[middle * classes..(middle + 1) * classes]) {
            Ordering::Equal => return middle,
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    levels.len() / classes
}
