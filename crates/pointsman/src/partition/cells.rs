//! A fitted partition: which cell an input falls in.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::edges::{Edges, double, single};
use super::grid::Grid;
use super::names::Rules;
use super::{Factor, MAX_CELLS, Partition};
use crate::error::{Error, PartitionError, Result, TableError};
use crate::parallel::prelude::*;
use crate::partition::forest::{Forest, HonestForest, Trees, inputs};
use crate::table::simplex::{self, Peak, Real};
use crate::table::{MAX_CLASSES, Table};

/// A top class has pooled cells of its own if it has so many rows; the others share theirs.
const OWN_CELLS: usize = 90;

/// The rows that a pooled cell should have: enough not to be sparse.
const ROWS_PER_POOLED_CELL: usize = 30;

/// The most pooled cells of one group of classes. Twice as many lower costs by 0.0001 to 0.001 and certify less.
const MAX_POOLED_BINS: usize = 12;

/// The number of a cell, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub u32);

impl CellId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
    /// The distinct predictions, sorted; one more cell stands for predictions never seen.
    LevelSets {
        /// Distinct predictions row by row, in single precision.
        levels: Vec<f32>,
        /// Entries per row.
        classes: usize,
    },
    /// Edges of one feature.
    Feature {
        /// The feature's name.
        name: String,
        /// Its place among the features the cells need.
        slot: usize,
        /// The edges.
        edges: Edges,
    },
    /// Confidence edges of groups of top classes: a class with enough rows is a group of its own, all others are one together.
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
        /// The tree, alone.
        trees: Trees,
    },
    /// Bins of the score of a forest.
    Forest {
        /// The forest.
        forest: Arc<Forest>,
        /// Edges of the score.
        edges: Edges,
    },
    /// Cells of what a forest expects that was grown, and divided, by other rows.
    HonestForest {
        /// The forest.
        forest: HonestForest,
    },
}

/// A fitted partition: a product of axes, cells numbered with the last axis fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    classes: usize,
    axes: Vec<Axis>,
    /// By how much a bin of each axis moves the cell's number.
    strides: Vec<usize>,
    count: usize,
    features: Vec<String>,
    grid: Option<Grid>,
    /// The rules of the cells, if they are leaves.
    rules: Rules,
}

impl Cells {
    /// Fits a partition to the predictions and features of a table.
    pub(crate) fn fit(partition: &Partition, table: &Table) -> Result<Self> {
        partition.check()?;
        let mut features = Vec::new();
        let axes =
            partition.factors().iter().map(|factor| Axis::fit(factor, table, &mut features)).collect::<Result<_>>()?;
        Self::new(table.classes().len(), axes, features)
    }

    /// Puts axes together, checking that they agree with each other.
    ///
    /// # Errors
    /// If there are no axes, too many cells, or an axis does not fit the classes or features.
    pub fn new(classes: usize, axes: Vec<Axis>, features: Vec<String>) -> Result<Self> {
        if classes < 2 {
            return Err(TableError::ClassCount { classes, most: MAX_CLASSES }.into());
        }
        let mut count = 1_usize;
        for axis in &axes {
            let fits = match axis {
                Axis::TopClass { edges, first } => edges.len() == classes && *first == first_cells(edges),
                Axis::Confidence { .. } => true,
                Axis::Pooled { groups, edges, first } => {
                    let mut classes_of = vec![0_usize; edges.len()];
                    let known = groups
                        .iter()
                        .all(|&group| classes_of.get_mut(group as usize).map(|count| *count += 1).is_some());
                    axes.len() == 1
                        && groups.len() == classes
                        && known
                        && classes_of.iter().all(|&count| count > 0)
                        && *first == first_cells(edges)
                }
                Axis::LevelSets { levels, classes: width } => {
                    *width == classes
                        && levels.len().is_multiple_of(classes)
                        && levels.iter().all(|x| (0.0..=1.001).contains(x))
                        && levels
                            .chunks_exact(classes)
                            .zip(levels.chunks_exact(classes).skip(1))
                            .all(|(a, b)| a.partial_cmp(b) == Some(Ordering::Less))
                }
                Axis::Feature { slot, name, .. } => features.get(*slot) == Some(name),
                Axis::Tree { trees } => {
                    axes.len() == 1 && trees.count() == 1 && trees.inputs() == inputs::width(classes, features.len())
                }
                Axis::Forest { forest, .. } => {
                    axes.len() == 1 && forest.trees().inputs() == inputs::width(classes, features.len())
                }
                Axis::HonestForest { forest } => {
                    axes.len() == 1
                        && forest.scorer().trees().inputs() == inputs::width(classes, features.len())
                        && forest.shares().iter().all(|&class| (class as usize) < classes)
                }
            };
            if !fits {
                return Err(Error::contradiction("the partition's axes do not fit the classes and features"));
            }
            count = count.saturating_mul(axis.bins());
        }
        if axes.is_empty() || count > MAX_CELLS {
            let by_level = axes.iter().any(|axis| matches!(axis, Axis::LevelSets { .. }));
            let advice = if by_level { "use top-class or confidence instead of level-sets" } else { "use fewer bins" };
            return Err(PartitionError::CellCount { cells: count, most: MAX_CELLS, advice }.into());
        }
        let mut strides = vec![1; axes.len()];
        for i in (1..axes.len()).rev() {
            strides[i - 1] = strides[i] * axes[i].bins();
        }
        let grid = Grid::of(&axes, classes);
        let rules = match axes.as_slice() {
            [Axis::Tree { trees }] => Rules::new(trees),
            [Axis::HonestForest { forest }] => Rules::new(forest.cells()),
            _ => Rules::default(),
        };
        Ok(Self { classes, axes, strides, count, features, grid, rules })
    }

    /// How many cells there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many classes a prediction has.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The axes, slowest first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// By how much a bin of each axis moves the cell's number.
    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The rules of the cells, if they are leaves.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The names of the features the cells need, in the order a decision takes them.
    #[must_use]
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// The forest whose score divides these cells, if one does.
    pub(crate) fn forest(&self) -> Option<(&Arc<Forest>, &Edges)> {
        match self.axes.as_slice() {
            [Axis::Forest { forest, edges }] => Some((forest, edges)),
            _ => None,
        }
    }

    /// The cells of each group of classes, in order of confidence, if their losses are pooled.
    pub(crate) fn pooled_groups(&self) -> Option<Vec<Range<usize>>> {
        match self.axes.as_slice() {
            [Axis::Pooled { edges, first, .. }] => {
                let group = |(edges, &first): (&Edges, &u32)| first as usize..first as usize + edges.bins();
                Some(edges.iter().zip(first).map(group).collect())
            }
            _ => None,
        }
    }

    /// Whether many trees find these cells, which many queries together pass faster than one by one.
    pub(crate) fn has_trees(&self) -> bool {
        matches!(self.axes.as_slice(), [Axis::Forest { .. } | Axis::HonestForest { .. }])
    }

    /// The cells of all rows of a table together, where that is faster than one by one; `columns` are the places of the cells'
    /// features in the table.
    pub(crate) fn find_together(&self, table: &Table, columns: &[usize]) -> Option<Vec<CellId>> {
        match self.axes.as_slice() {
            [Axis::Forest { forest, edges }] => {
                let scores = forest.scorer().of_table(table, columns);
                Some(scores.into_iter().map(|score| CellId(edges.bin(score) as u32)).collect())
            }
            [Axis::HonestForest { forest }] => Some(forest.cells_of(table, columns).into_iter().map(CellId).collect()),
            _ => None,
        }
    }

    /// Whether a feature may be missing: trees have a way for that, edges have not.
    pub(crate) fn takes_missing(&self) -> bool {
        matches!(self.axes.as_slice(), [Axis::Tree { .. } | Axis::Forest { .. } | Axis::HonestForest { .. }])
    }

    /// The columns of the features these cells need.
    ///
    /// # Errors
    /// If the table lacks one, or a value is missing where that cannot be.
    pub(crate) fn columns_in(&self, table: &Table) -> Result<Vec<usize>> {
        let columns = table.feature_columns(&self.features)?;
        if !self.takes_missing() {
            columns.iter().try_for_each(|&column| table.check_present(column))?;
        }
        Ok(columns)
    }

    /// The fast way to cells, if these cells have one.
    pub(crate) fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    /// The cell of an input: its prediction, the prediction's peak and the features the cells need.
    #[inline]
    pub(crate) fn find<T: Real>(&self, row: &[T], peak: Peak, features: &[f64]) -> CellId {
        let place = |(axis, stride): (&Axis, &usize)| axis.bin(row, peak, features) * stride;
        CellId(self.axes.iter().zip(&self.strides).map(place).sum::<usize>() as u32)
    }

    /// Axis by axis, whether the input's value is itself an edge: such a row may be what an edge was taken from.
    pub(crate) fn on_edge<'a>(&'a self, peak: Peak, features: &'a [f64]) -> impl Iterator<Item = bool> + 'a {
        self.axes.iter().map(move |axis| match axis {
            Axis::TopClass { edges, .. } => edges[peak.class as usize].contains(f64::from(peak.key())),
            Axis::Confidence { edges } => edges.contains(f64::from(peak.key())),
            Axis::Pooled { groups, edges, .. } => {
                edges[groups[peak.class as usize] as usize].contains(f64::from(peak.key()))
            }
            Axis::Feature { slot, edges, .. } => edges.contains(features[*slot]),
            // Thresholds of trees lie between values, and are not taken from the rows that are kept.
            Axis::LevelSets { .. } | Axis::Tree { .. } | Axis::Forest { .. } | Axis::HonestForest { .. } => false,
        })
    }

    /// Between what the confidence of a cell's inputs lies, as far as the cell's definition says.
    pub(crate) fn confidence(&self, cell: CellId) -> [f64; 2] {
        let bounds = |(axis, stride): (&Axis, &usize)| axis.confidence(cell.index() / stride % axis.bins());
        self.axes
            .iter()
            .zip(&self.strides)
            .map(bounds)
            .fold([0.0, 1.0], |[low, high], [from, to]| [low.max(from.unwrap_or(low)), high.min(to.unwrap_or(high))])
    }
}

impl Axis {
    fn fit(factor: &Factor, table: &Table, features: &mut Vec<String>) -> Result<Self> {
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
                let edges = Edges::quantiles(values, *bins, double);
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

    /// A top-class axis from one set of edges per class.
    #[must_use]
    pub fn top_class(edges: Vec<Edges>) -> Self {
        let first = first_cells(&edges);
        Self::TopClass { edges, first }
    }

    /// Groups of classes with edges of their own: a class with [`OWN_CELLS`] rows by itself, all others together.
    fn fit_pooled(table: &Table) -> Self {
        let mut counts = vec![0_usize; table.classes().len()];
        table.peaks().iter().for_each(|peak| counts[peak.class as usize] += 1);
        let mut confidences: Vec<Vec<f64>> = Vec::new();
        let (mut groups, mut others) = (Vec::with_capacity(counts.len()), None);
        for &count in &counts {
            let new = confidences.len() as u32;
            let group = if count >= OWN_CELLS { new } else { *others.get_or_insert(new) };
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

    /// How many bins there are along this axis.
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
    fn bin<T: Real>(&self, row: &[T], peak: Peak, features: &[f64]) -> usize {
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

    fn confidence(&self, bin: usize) -> [Option<f64>; 2] {
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

fn first_cells(edges: &[Edges]) -> Vec<u32> {
    let mut next = 0;
    let first = |edges: &Edges| {
        let first = next;
        next += edges.bins() as u32;
        first
    };
    edges.iter().map(first).collect()
}

/// An entry as level sets compare it; adding zero leaves no negative zero.
fn level_key<T: Real>(entry: T, divisor: f64) -> f32 {
    (f64::from(entry.to_f32()) / divisor) as f32 + 0.0
}

/// Binary search among the sorted levels, without building the key.
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
