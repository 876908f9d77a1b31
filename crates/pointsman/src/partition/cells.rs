//! Fitted partitions: the cell of each input.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::axis::Axis;
use super::edges::Edges;
use super::grid::Grid;
use super::names::Rules;
use super::{MAX_CELLS, Partition};
use crate::error::{Error, PartitionError, Result, TableError};
use crate::partition::forest::Forest;
use crate::table::simplex::{Peak, Real};
use crate::table::{MAX_CLASSES, Table};

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

/// A fitted partition: a product of axes, cells numbered with the last axis fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    classes: usize,
    axes: Vec<Axis>,
    /// The difference of cell numbers between neighbouring bins of each axis.
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

    /// Creates a partition from axes, after checking that they fit each other.
    ///
    /// # Errors
    /// If there are no axes, too many cells, or an axis does not fit the classes or features.
    pub fn new(classes: usize, axes: Vec<Axis>, features: Vec<String>) -> Result<Self> {
        if classes < 2 {
            return Err(TableError::ClassCount { classes, most: MAX_CLASSES }.into());
        }
        let mut count = 1_usize;
        for axis in &axes {
            if !axis.fits(classes, &features) || axis.stands_alone() && axes.len() > 1 {
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
        let grid = Grid::new(&axes, classes);
        let rules = match axes.as_slice() {
            [Axis::Tree { trees }] => Rules::new(trees),
            [Axis::HonestForest { forest }] => Rules::new(forest.cells()),
            _ => Rules::default(),
        };
        Ok(Self { classes, axes, strides, count, features, grid, rules })
    }

    /// The number of cells.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of classes of a prediction.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The axes, slowest first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The difference of cell numbers between neighbouring bins of each axis.
    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The rules of the cells, if they are leaves.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The names of the features that the cells need, in the order in which decisions expect them.
    #[must_use]
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// The forest whose scores define these cells, and the edges of the scores, if there is one.
    pub(crate) fn forest(&self) -> Option<(&Arc<Forest>, &Edges)> {
        match self.axes.as_slice() {
            [Axis::Forest { forest, edges }] => Some((forest, edges)),
            _ => None,
        }
    }

    /// The cells of each group of classes, in order of confidence, if the cells are pooled.
    pub(crate) fn pooled_groups(&self) -> Option<Vec<Range<usize>>> {
        match self.axes.as_slice() {
            [Axis::Pooled { edges, first, .. }] => {
                let group = |(edges, &first): (&Edges, &u32)| first as usize..first as usize + edges.bins();
                Some(edges.iter().zip(first).map(group).collect())
            }
            _ => None,
        }
    }

    /// Whether cells are found by many trees, which are faster for many queries together than one by one.
    pub(crate) fn has_trees(&self) -> bool {
        matches!(self.axes.as_slice(), [Axis::Forest { .. } | Axis::HonestForest { .. }])
    }

    /// The cells of all rows of a table together, if that is faster than one by one; `columns` are the columns of the cells' features in the
    /// table.
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

    /// Whether features may be missing: trees have a branch for missing values, edges do not.
    pub(crate) fn takes_missing(&self) -> bool {
        matches!(self.axes.as_slice(), [Axis::Tree { .. } | Axis::Forest { .. } | Axis::HonestForest { .. }])
    }

    /// The columns of the features that these cells need.
    ///
    /// # Errors
    /// If the table lacks one, or a value is missing and the cells do not allow that.
    pub(crate) fn columns_in(&self, table: &Table) -> Result<Vec<usize>> {
        let columns = table.feature_columns(&self.features)?;
        if !self.takes_missing() {
            columns.iter().try_for_each(|&column| table.check_present(column))?;
        }
        Ok(columns)
    }

    /// The grid for fast lookup, if these cells have one.
    pub(crate) fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    /// The cell of an input, given its prediction, the prediction's peak and the features that the cells need.
    #[inline]
    pub(crate) fn find<T: Real>(&self, row: &[T], peak: Peak, features: &[f64]) -> CellId {
        let place = |(axis, stride): (&Axis, &usize)| axis.bin(row, peak, features) * stride;
        CellId(self.axes.iter().zip(&self.strides).map(place).sum::<usize>() as u32)
    }

    /// For each axis, whether the input's value equals an edge: such a row may define the edge.
    pub(crate) fn on_edge<'a>(&'a self, peak: Peak, features: &'a [f64]) -> impl Iterator<Item = bool> + 'a {
        self.axes.iter().map(move |axis| match axis {
            Axis::TopClass { edges, .. } => edges[peak.class as usize].contains(f64::from(peak.key())),
            Axis::Confidence { edges } => edges.contains(f64::from(peak.key())),
            Axis::Pooled { groups, edges, .. } => {
                edges[groups[peak.class as usize] as usize].contains(f64::from(peak.key()))
            }
            Axis::Feature { slot, edges, .. } => edges.contains(features[*slot]),
            // Thresholds of trees lie between values, and the rows of a router do not define them.
            Axis::LevelSets { .. } | Axis::Tree { .. } | Axis::Forest { .. } | Axis::HonestForest { .. } => false,
        })
    }

    /// The range of confidences that the definition of a cell allows.
    pub(crate) fn confidence(&self, cell: CellId) -> [f64; 2] {
        let bounds = |(axis, stride): (&Axis, &usize)| axis.confidence(cell.index() / stride % axis.bins());
        self.axes
            .iter()
            .zip(&self.strides)
            .map(bounds)
            .fold([0.0, 1.0], |[low, high], [from, to]| [low.max(from.unwrap_or(low)), high.min(to.unwrap_or(high))])
    }
}
