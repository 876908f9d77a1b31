//! The losses of a forest's leaves under a task, and their means over the leaves of a query.

use std::sync::Arc;

use super::choose::MAX_ACTIONS;
use super::parts::{LeafParts, is_loss};
use crate::error::{Error, Result, RouterError, TaskError};
use crate::estimate::{GroupLosses, LeafBuffers, LossTable, Slopes, Valuation, estimator_for_leaves, fit_slopes};
use crate::loss::{Loss, SelfEstimate};
use crate::partition::forest::{Forest, TreeLeaves, add_leaf_values, inputs};
use crate::partition::{CellId, Cells, Edges};
use crate::table::Table;
use crate::table::predictions::match_precision;
use crate::table::simplex::{self, Peak, Real};
use crate::task::{Estimator, Task};

/// The largest number of classes for which the own part of predictions is estimated: its buffers are on the stack.
const MAX_CLASSES_FOR_OWN_PART: usize = 256;

/// Tasks with at most this many classes use smaller buffers, which are cleared faster.
const FEW_CLASSES: usize = 16;

/// By how much rounding can make a share exceed one.
const ROUNDING_OF_SHARES: f64 = 1e-9;

/// The largest number of values per leaf.
const MAX_LEAF_WIDTH: usize = 5 + 2 * MAX_ACTIONS;

/// A forest with the losses of each leaf.
#[derive(Debug)]
pub(super) struct LeafLosses {
    pub(super) forest: Arc<Forest>,
    edges: Edges,
    columns: LeafColumns,
    /// The values of each leaf, leaf by leaf.
    values: Vec<f64>,
    loss: Loss,
    /// The slopes of the own part of a query's prediction, which the total losses of leaves do not include.
    pub(super) slopes: Slopes,
}

/// The columns of leaf values. Trees sum all of a leaf's values at once, so columns that a forest does not need are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LeafColumns {
    score: usize,
    total: usize,
    irreducible_low: usize,
    /// The upper end of the irreducible loss; none if it equals the lower one in every leaf.
    irreducible_high: Option<usize>,
    /// The share of labels that are not the top class; none if the slopes are zero.
    error_share: Option<usize>,
    /// Both ends of each other oracle's loss, up to the last column.
    oracles: usize,
    width: usize,
}

impl LeafColumns {
    fn new(has_bounds: bool, has_slopes: bool, oracles: usize) -> Self {
        let mut columns = 0..;
        let mut next = || columns.next().unwrap_or_default();
        let [score, total, irreducible_low] = [(); 3].map(|()| next());
        let irreducible_high = has_bounds.then(&mut next);
        let error_share = has_slopes.then(&mut next);
        let first = next();
        let width = first + 2 * oracles;
        Self { score, total, irreducible_low, irreducible_high, error_share, oracles: first, width }
    }
}

impl LeafColumns {
    /// Checks the values of a leaf from a file.
    fn check_leaf(&self, leaf: usize, values: &[f64]) -> Result<()> {
        if let Some(loss) = values.iter().find(|&&loss| !is_loss(loss)) {
            return Err(Error::contradiction(format!("the loss {loss} of leaf {leaf} of the policy is not a loss")));
        }
        let irreducible = self.irreducible_high.map(|high| [values[self.irreducible_low], values[high]]);
        let mut ends = irreducible.iter().chain(values[self.oracles..].as_chunks::<2>().0);
        let is_ordered = ends.all(|[low, high]| low <= high);
        if !is_ordered
            || self.error_share.is_some_and(|column| !(0.0..=1.0 + ROUNDING_OF_SHARES).contains(&values[column]))
        {
            return Err(Error::contradiction(format!(
                "the bounds or the share of errors of leaf {leaf} of the policy are not possible"
            )));
        }
        Ok(())
    }
}

/// A query's cell and expected losses.
pub(super) struct QueryLosses {
    pub(super) cell: CellId,
    total: f64,
    irreducible: [f64; 2],
    oracles: [[f64; 2]; MAX_ACTIONS],
    oracle_count: usize,
}

impl QueryLosses {
    pub(super) fn losses(&self) -> GroupLosses<'_> {
        let oracles = &self.oracles[..self.oracle_count];
        GroupLosses { total: self.total, irreducible: self.irreducible, oracles }
    }
}

impl LeafLosses {
    /// Estimates the losses of every leaf; `None` if the router has no forest.
    ///
    /// # Errors
    /// If the router is recalibrated, or the estimator needs larger groups than leaves.
    pub(super) fn compile(valuation: Valuation<'_>) -> Result<Option<Self>> {
        let Valuation { router, loss, .. } = valuation;
        let Some(((forest, edges), statistics)) = router.cells().forest().zip(router.leaves()) else { return Ok(None) };
        check(router.is_recalibrated(), valuation.estimator)?;
        let leaves = valuation.leaves();
        let oracles = valuation.oracles.columns().len();
        let estimate = |buffers: &mut LeafBuffers, tree: &TreeLeaves<'_>, leaf: usize| {
            let irreducible = leaves.estimator().irreducible(statistics, tree, leaf, buffers);
            (irreducible, leaves.oracles(|| tree.rows_of(leaf), buffers).to_vec())
        };
        let estimates: Vec<([f64; 2], Vec<[f64; 2]>)> = statistics.rows().map_leaves(LeafBuffers::default, estimate);
        let mut slopes = Slopes::default();
        if router.classes().len() <= MAX_CLASSES_FOR_OWN_PART {
            let known = |leaf: usize| {
                let [low, high] = estimates[leaf].0;
                (low == high).then_some(low)
            };
            slopes = fit_slopes(leaves.estimator(), statistics, known);
        }
        let has_bounds = estimates.iter().any(|([low, high], _)| low != high);
        let columns = LeafColumns::new(has_bounds, !slopes.are_zero(), oracles);
        let totals = leaves.estimator().totals_without_own_part(slopes, statistics);
        let mut values = Vec::with_capacity(estimates.len() * columns.width);
        for (leaf, (([low, high], oracles), total)) in estimates.iter().zip(totals).enumerate() {
            values.extend([forest.scorer().leaf_scores()[leaf], total, *low]);
            values.extend(columns.irreducible_high.map(|_| *high));
            values.extend(columns.error_share.map(|_| statistics.error_share(leaf)));
            values.extend(oracles.as_flattened());
        }
        Ok(Some(Self { forest: forest.clone(), edges: edges.clone(), columns, values, loss: loss.clone(), slopes }))
    }

    /// The losses without the scores, which the forest has.
    pub(super) fn to_parts(&self) -> LeafParts {
        let losses = self.values.chunks_exact(self.columns.width).flat_map(|leaf| &leaf[1..]).copied().collect();
        LeafParts { losses, slopes: self.slopes.values() }
    }

    /// Checks the losses of a forest's leaves; `None` if the cells are not those of a forest.
    ///
    /// # Errors
    /// If there are losses and no forest, or the losses do not fit it; or for reasons of [`LeafLosses::compile`].
    pub(super) fn from_parts(
        parts: Option<LeafParts>,
        cells: &Cells,
        is_recalibrated: bool,
        task: &Task,
        oracles: usize,
    ) -> Result<Option<Self>> {
        let (LeafParts { losses, slopes }, (forest, edges)) = match (parts, cells.forest()) {
            (None, None) => return Ok(None),
            (Some(parts), Some(forest)) => (parts, forest),
            _ => return Err(Error::contradiction("losses of leaves belong to a forest, and a forest has them")),
        };
        check(is_recalibrated, estimator_for_leaves(task.chosen_estimator()))?;
        let slopes = Slopes::from_values(slopes).filter(|_| slopes.iter().all(|&slope| is_loss(slope)));
        let Some(slopes) = slopes else { return Err(Error::contradiction("a slope of the policy is not finite")) };
        let has_slopes = !slopes.are_zero();
        if oracles > MAX_ACTIONS || has_slopes && cells.classes() > MAX_CLASSES_FOR_OWN_PART {
            return Err(Error::contradiction("the policy has more oracles or classes than a forest can have"));
        }
        let (count, scores) = (forest.trees().leaves(), forest.scorer().leaf_scores());
        let fitting = [false, true].map(|has_bounds| LeafColumns::new(has_bounds, has_slopes, oracles));
        let fits = |columns: &LeafColumns| losses.len() == count.saturating_mul(columns.width - 1);
        let Some(columns) = fitting.into_iter().find(fits) else {
            let losses = losses.len();
            return Err(Error::contradiction(format!(
                "the policy's trees have {count} leaves, and {losses} losses do not fit them"
            )));
        };
        let mut values = Vec::with_capacity(count * columns.width);
        for (leaf, (score, own)) in scores.iter().zip(losses.chunks_exact(columns.width - 1)).enumerate() {
            values.push(*score);
            values.extend_from_slice(own);
            columns.check_leaf(leaf, &values[leaf * columns.width..])?;
        }
        let (forest, edges, loss) = (forest.clone(), edges.clone(), task.loss().clone());
        Ok(Some(Self { forest, edges, columns, values, loss, slopes }))
    }

    /// The losses of one query.
    #[inline]
    pub(super) fn query<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> QueryLosses {
        let mut buffer = [0.0; MAX_LEAF_WIDTH];
        let sums = &mut buffer[..self.columns.width];
        inputs::leaves_of_query(self.forest.trees(), prediction, peak, features, |leaf| {
            add_leaf_values(&self.values, leaf, sums);
        });
        self.query_from_sums(prediction, sums)
    }

    /// The cells and losses of all rows of a table, whose features are in the given columns.
    pub(super) fn queries(&self, table: &Table, columns: &[usize]) -> (Vec<CellId>, LossTable) {
        let oracles = (self.columns.width - self.columns.oracles) / 2;
        let make_block = |rows: &[u32], sums: &[f64]| {
            let (mut cells, mut losses) = (Vec::with_capacity(rows.len()), LossTable::new(oracles));
            for (&row, sums) in rows.iter().zip(sums.chunks_exact(self.columns.width)) {
                let query = match_precision!(table.raw_prediction(row as usize), prediction => self.query_from_sums(prediction, sums));
                cells.push(query.cell);
                losses.push(query.losses());
            }
            (cells, losses)
        };
        let rows: Vec<u32> = (0..table.rows() as u32).collect();
        let blocks = inputs::sum_leaf_values(self.forest.trees(), &self.values, table, &rows, columns, make_block);
        let mut all = (Vec::with_capacity(rows.len()), LossTable::new(oracles));
        for (mut cells, mut losses) in blocks {
            all.0.append(&mut cells);
            all.1.append(&mut losses);
        }
        all
    }

    /// The losses of a query from the sums over its leaves: the means, and the own part of its prediction.
    fn query_from_sums<T: Real>(&self, prediction: &[T], sums: &[f64]) -> QueryLosses {
        let LeafColumns { score, total, irreducible_low, irreducible_high, error_share, oracles, .. } = self.columns;
        let trees = self.forest.trees().count() as f64;
        let mean = |column: usize| sums[column] / trees;
        let irreducible = [mean(irreducible_low), mean(irreducible_high.unwrap_or(irreducible_low))];
        let mut total = mean(total);
        if let Some(error_share) = error_share {
            let self_estimate = if prediction.len() <= FEW_CLASSES {
                self.self_estimate::<FEW_CLASSES>(prediction)
            } else {
                self.self_estimate::<MAX_CLASSES_FOR_OWN_PART>(prediction)
            };
            // A negative loss is impossible; the irreducible loss is not clamped, so that its error stays unbiased.
            total = (total + self.slopes.own_part(self_estimate, mean(error_share))).max(0.0);
        }
        let ends = sums[oracles..].as_chunks::<2>().0;
        let mut query = QueryLosses {
            cell: CellId(self.edges.bin(mean(score)) as u32),
            total,
            irreducible,
            oracles: [[0.0; 2]; MAX_ACTIONS],
            oracle_count: ends.len(),
        };
        query.oracles.iter_mut().zip(ends).for_each(|(mean, sums)| *mean = sums.map(|sum| sum / trees));
        query
    }

    /// The self-estimate of a prediction over at most `MAX` classes.
    fn self_estimate<const MAX: usize>(&self, prediction: &[impl Real]) -> SelfEstimate {
        let (mut normalised, mut buffer) = ([0.0; MAX], [0.0; MAX]);
        let normalised = &mut normalised[..prediction.len()];
        simplex::normalise_into(prediction, normalised);
        self.loss.self_estimate_into(normalised, &mut buffer[..prediction.len()])
    }
}

fn check(is_recalibrated: bool, estimator: Estimator) -> Result<()> {
    if is_recalibrated {
        return Err(RouterError::NotServable.into());
    }
    if !matches!(estimator, Estimator::Shrink | Estimator::Plugin) {
        return Err(TaskError::EstimatorOfForest { estimator: estimator.to_string() }.into());
    }
    Ok(())
}
