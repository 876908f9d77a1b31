//! Checks of a policy's parts. Every refusal says what is wrong.

use super::{Figure, FigureParts, LimitParts, SourceParts};
use crate::error::{Error, Result};
use crate::estimate::Decomposition;
use crate::loss::MAX_COST;
use crate::partition::{Cells, Partition};
use crate::policy::cutoff::Cutoff;
use crate::router::check_fits;
use crate::task::Task;

/// The largest difference of a distribution's sum from one.
const MAX_ERROR_OF_SUM: f64 = 1e-6;

fn refuse<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::contradiction(what))
}

/// Whether a number can be an estimated loss. Estimation error can make it negative. NaN is in no range.
pub(in crate::policy) fn is_loss(value: f64) -> bool {
    (-MAX_COST..=MAX_COST).contains(&value)
}

impl SourceParts {
    /// The estimates of all sources, checked against the cells.
    pub(super) fn decompositions(
        self,
        cells: &Cells,
        backoff: &Cells,
        classes: usize,
        oracles: usize,
    ) -> Result<Vec<Option<Decomposition>>> {
        let (count, width) = (self.rows.len(), 3 + 2 * oracles);
        let lengths = [self.paired_rows.len(), self.weights.len(), self.effective_rows.len()];
        let [centroids, losses] = [classes, width].map(|width| count.saturating_mul(width));
        if lengths != [count; 3] || [self.centroids.len(), self.losses.len()] != [centroids, losses] {
            return refuse("the estimates of the policy's cells differ in length");
        }
        if count < cells.count() {
            return refuse(format!("the policy has {} cells and estimates of {count}", cells.count()));
        }
        let has_empty = self.rows[..cells.count()].contains(&0);
        let wanted = cells.count() + if has_empty { backoff.count() + 1 } else { 0 };
        if count != wanted {
            return refuse(format!("the policy has {count} estimates; its cells and fall-backs need {wanted}"));
        }
        if self.rows[count - 1] == 0 || has_empty && cells.forest().is_some() {
            return refuse("the policy has no calibration rows behind a fall-back, or behind a cell of its forest");
        }
        (0..count).map(|source| self.decomposition(source, classes, width)).collect()
    }

    fn decomposition(&self, source: usize, classes: usize, width: usize) -> Result<Option<Decomposition>> {
        let (rows, paired_rows) = (self.rows[source], self.paired_rows[source]);
        if rows == 0 {
            return Ok(None);
        }
        let (weight, effective_rows) = (self.weights[source], self.effective_rows[source]);
        let centroid = &self.centroids[source * classes..][..classes];
        let losses = &self.losses[source * width..][..width];
        let in_rows = 0.0..=rows as f64 * (1.0 + 1e-9);
        if rows > u32::MAX.into() || paired_rows > rows || !in_rows.contains(&effective_rows) {
            return refuse(format!(
                "estimate {source} of the policy is from {rows} rows, {paired_rows} of them with two labels, which count as \
                 {effective_rows}: that is not possible"
            ));
        }
        if !(weight > 0.0 && weight.is_finite()) {
            return refuse(format!("the weight {weight} of estimate {source} of the policy is not a positive number"));
        }
        let sum: f64 = centroid.iter().sum();
        let is_distribution = centroid.iter().all(|p| (0.0..=1.0 + MAX_ERROR_OF_SUM).contains(p))
            && (sum - 1.0).abs() <= MAX_ERROR_OF_SUM;
        if !is_distribution {
            return refuse(format!("the centroid of estimate {source} of the policy is not a distribution"));
        }
        if let Some(&loss) = losses.iter().find(|&&loss| !is_loss(loss)) {
            return refuse(format!("the loss {loss} of estimate {source} of the policy is not a loss"));
        }
        let ends = losses[1..].as_chunks::<2>().0;
        if let Some([low, high]) = ends.iter().find(|[low, high]| low > high) {
            return refuse(format!(
                "the bounds {low} and {high} of estimate {source} of the policy are in the wrong order"
            ));
        }
        Ok(Some(Decomposition {
            rows: rows as usize,
            effective_rows,
            weight,
            paired_rows: paired_rows as usize,
            centroid: centroid.to_vec(),
            total: losses[0],
            irreducible_low: losses[1],
            irreducible_high: losses[2],
            oracles: ends[1..].to_vec(),
        }))
    }
}

/// Checks that cells and their fall-backs are those of a partition, for predictions over these classes.
pub(super) fn partition(partition: &Partition, cells: &Cells, backoff: &Cells, classes: usize) -> Result<()> {
    if cells.classes() != classes {
        return refuse(format!("the policy has {classes} classes, and its cells are for {}", cells.classes()));
    }
    check_fits(partition, cells, backoff, classes)
        .or_else(|_| refuse(format!("the policy's partition {partition} does not fit its cells and fall-backs")))
}

/// The cutoff of the task's limit: there is one if and only if the task has a limit.
pub(super) fn cutoff(task: &Task, limit: Option<&LimitParts>) -> Result<Option<Cutoff>> {
    let Some(limit) = limit else {
        return if task.limit().is_some() {
            refuse("the policy has no price for the limit of its task")
        } else {
            Ok(None)
        };
    };
    if task.limit().is_none() {
        return refuse("the policy has the price of a limit, and its task has no limit");
    }
    let LimitParts { price, marginal, at_margin, share, share_standard_error, loss } = limit;
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    let is_valid = (0.0..=MAX_COST).contains(price) && is_share(marginal) && is_share(at_margin) && is_share(share);
    if !is_valid || !is_error(*share_standard_error) || !is_figure(loss) {
        return refuse(format!(
            "the price {price} of the policy's limit, or its share {share} or marginal share {marginal}, is not possible"
        ));
    }
    Ok(Some(limit.into()))
}

/// Checks what was estimated from held-out rows.
pub(super) fn figures(parts: &FigureParts, task: &Task) -> Result<()> {
    let actions = task.action_names().len();
    let is_share = |share: &f64| (0.0..=1.0 + MAX_ERROR_OF_SUM).contains(share);
    let sum: f64 = parts.shares.iter().sum();
    if !(actions..=actions + 1).contains(&parts.shares.len())
        || !parts.shares.iter().all(is_share)
        || !(0.0..=MAX_ERROR_OF_SUM).contains(&(sum - 1.0).abs())
    {
        return refuse("the shares of the policy's actions are not shares of all queries");
    }
    let Some(promise) = &parts.promise else { return Ok(()) };
    let costs_fit = promise.always.len() == actions && promise.always.iter().all(|&cost| is_loss(cost));
    if !costs_fit || !is_figure(&promise.cost) || !is_figure(&promise.loss) {
        return refuse("the cost that the policy promises is not a cost");
    }
    Ok(())
}

fn is_figure(figure: &Figure) -> bool {
    let is_interval = |[low, high]: [f64; 2]| is_loss(low) && is_loss(high) && low <= high;
    is_loss(figure.value) && is_error(figure.standard_error) && figure.identified.is_none_or(is_interval)
}

fn is_error(error: Option<f64>) -> bool {
    error.is_none_or(|error| (0.0..=MAX_COST).contains(&error))
}
