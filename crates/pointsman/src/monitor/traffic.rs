//! Tests of distribution shift: the shares of queries in cells, and in quarters of the confidence within cells, against the calibration rows.
//!
//! Both shares are estimates. A share has moved if it is significantly more than (1 + ρ) times the share of the calibration rows, or less than
//! 1/(1 + ρ) of it. With x of n calibration rows and y of m queries in a cell, y is compared with a binomial of x + y trials and success
//! probability m(1 + ρ)/(m(1 + ρ) + n). The test is exact for rare cells and conservative for others, also if the edges of cells are quantiles
//! of the calibration rows. The error probability δ is divided among all cells and both directions, half of it for confidences.
//!
//! The cells of a forest are defined by its own rows, not by traffic. Queries are then compared by confidence bins and, with half of the error
//! probability, by quarters of each feature and by the share of missing values, because a broken feature shows nowhere else.

use std::sync::Arc;

use super::share::{Count, p_value, share_limits};
use crate::error::{Result, TableError};
use crate::evaluate::Replay;
use crate::number::{plain, short};
use crate::partition::{CellId, Cells, Edges, double};
use crate::policy::{Decisions, Policy};
use crate::router::Router;
use crate::table::Table;

/// The probability that a batch like the calibration rows is reported as moved.
pub const TRAFFIC_DOUBT: f64 = 0.05;

/// The tolerance ρ: shares that differ by at most a factor of 1 + ρ have not moved.
pub const TRAFFIC_TOLERANCE: f64 = 0.25;

/// The number of confidence bins per cell.
const QUARTERS: usize = 4;

/// The smallest number of calibration rows of cells that are divided by confidence.
const MIN_ROWS_TO_QUARTER: f64 = 40.0;

/// The error probability of the test of the share routed under a limit, over both directions.
const LIMIT_ERROR: f64 = 0.01;

/// The largest number of shares that a report lists.
const MAX_LISTED: usize = 20;

/// The weights of rows by cell and quarter of confidence.
#[derive(Debug, Clone, Default)]
struct Histogram {
    cells: Vec<[f64; QUARTERS]>,
    sum: f64,
    squares: f64,
    rows: usize,
}

impl Histogram {
    fn new(cells: usize) -> Self {
        Self { cells: vec![[0.0; QUARTERS]; cells], ..Self::default() }
    }

    fn add(&mut self, cell: CellId, quarter: usize, weight: f64) {
        self.cells[cell.index()][quarter.min(QUARTERS - 1)] += weight;
        self.sum += weight;
        self.squares += weight * weight;
        self.rows += 1;
    }

    /// The number of effective rows per unit of weight.
    fn scale(&self) -> f64 {
        if self.squares > 0.0 { self.sum / self.squares } else { 0.0 }
    }

    fn cell(&self, cell: usize) -> Count {
        let inside: f64 = self.cells[cell].iter().sum();
        Count { inside: inside * self.scale(), all: self.sum * self.scale() }
    }

    fn quarter(&self, cell: usize, quarter: usize) -> Count {
        Count { inside: self.cells[cell][quarter] * self.scale(), all: self.cell(cell).inside }
    }
}

/// Compares queries with the calibration rows of a router, by its cells or, for a forest, by the confidence bins that queries of empty cells
/// fall back to.
///
/// ```
/// use pointsman::{Loss, Partition, Router, Table, Task};
/// let rows = [[0.9, 0.1].repeat(200), [0.6, 0.4].repeat(200)].concat();
/// let table = Table::new(["no", "yes"], rows)?.with_votes([3, 1].repeat(400))?;
/// let router = Router::calibrate(&table, &Partition::top_class(2))?;
/// let policy = router.policy(&Task::new(Loss::brier()))?;
/// let mut traffic = router.traffic();
/// let queries = Table::new(["no", "yes"], [0.6, 0.4].repeat(500))?;
/// traffic.add(&policy, &queries, &policy.decide_batch(&queries)?)?;
/// assert!(traffic.compare().moved);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Traffic {
    cells: Arc<Cells>,
    names: Vec<String>,
    by_confidence: bool,
    quarters: Vec<Edges>,
    before: Histogram,
    now: Histogram,
    /// The features of a forest, with the edges of their quarters.
    features: Vec<(String, Edges)>,
    /// The two values of each of these features, if the calibration rows have exactly two and the queries no others.
    two_values: Vec<Option<[f64; 2]>>,
    features_before: Histogram,
    features_now: Histogram,
}

/// The result of a comparison.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TrafficShift {
    /// Whether any share has moved.
    pub moved: bool,
    /// The largest probability that a batch like the calibration rows is reported as moved.
    pub doubt: f64,
    /// The tolerance ρ: shares that differ by at most a factor of 1 + ρ have not moved.
    pub tolerance: f64,
    /// The number of rows compared.
    pub rows: usize,
    /// The number of calibration rows.
    pub calibration_rows: usize,
    /// The number of shares that have moved; only the most significant ones are listed.
    pub moved_shares: usize,
    /// The shares that have moved, smallest p-value first.
    pub shares: Vec<MovedShare>,
}

/// A share that has moved.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MovedShare {
    /// The cell; for a forest, the confidence bin or the index of the feature.
    pub cell: u32,
    /// The feature, if the share is of its values.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub feature: Option<String>,
    /// The display name of the cell or of the values.
    pub name: String,
    /// The range of confidences, if the share is within the cell instead of among all rows.
    pub confidence: Option<[f64; 2]>,
    /// The share of the calibration rows.
    pub calibration: f64,
    /// Clopper–Pearson limits of the true share at calibration, valid for all shares simultaneously.
    pub calibration_limits: [f64; 2],
    /// The share of these rows.
    pub share: f64,
    /// The p-value.
    pub p_value: f64,
}

impl Router {
    /// The distribution of the calibration rows over the cells, to compare queries with.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let by_confidence = self.cells().forest().is_some();
        let cells = if by_confidence { self.backoff() } else { self.cells() }.clone();
        let members: Vec<Vec<u32>> = if by_confidence {
            self.rows_by_confidence()
        } else {
            let rows = |cell: u32| self.mixture(CellId(cell)).rows().map(|row| row as u32).collect();
            (0..cells.count() as u32).map(rows).collect()
        };
        let table = self.rows();
        let mut before = Histogram::new(cells.count());
        let quarters = members.iter().enumerate().map(|(cell, rows)| {
            let confidences = rows.iter().map(|&row| table.peak(row as usize).confidence);
            let edges = Edges::quantiles(confidences, QUARTERS, |confidence| f64::from(confidence as f32));
            for &row in rows {
                let (row, cell) = (row as usize, CellId(cell as u32));
                before.add(cell, edges.bin(f64::from(table.peak(row).key())), table.weight(row));
            }
            edges
        });
        let quarters = quarters.collect();
        let names = (0..cells.count() as u32).map(|cell| cells.name(CellId(cell), self.classes())).collect();
        let used = if by_confidence { self.features_used() } else { Vec::new() };
        let quartered = |name: String| {
            let column = table.feature_names().iter().position(|other| *other == name)?;
            let value = move |row: usize| table.features(row)[column];
            let values = || (0..table.rows()).map(value).filter(|value| !value.is_nan());
            Some(((name, Edges::quantiles(values(), QUARTERS, double)), two_values(values())))
        };
        let (features, two_values): (Vec<(String, Edges)>, Vec<_>) = used.into_iter().filter_map(quartered).unzip();
        let mut features_before = Histogram::new(2 * features.len());
        // Cannot fail: the names were found among the columns.
        let _ = add_features(&mut features_before, &features, table);
        Traffic {
            now: Histogram::new(cells.count()),
            cells,
            names,
            by_confidence,
            quarters,
            before,
            features_now: Histogram::new(2 * features.len()),
            features,
            two_values,
            features_before,
        }
    }
}

/// The values in ascending order, if there are exactly two.
fn two_values(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut found: Vec<f64> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
        if found.len() > 2 {
            return None;
        }
    }
    found.sort_by(f64::total_cmp);
    found.try_into().ok()
}

/// Counts the rows of a table by quarters of each feature and, in the next entry, those with a missing value.
fn add_features(histogram: &mut Histogram, features: &[(String, Edges)], table: &Table) -> Result<()> {
    let names: Vec<String> = features.iter().map(|(name, _)| name.clone()).collect();
    let columns = table.feature_columns(&names)?;
    for row in 0..table.rows() {
        for (place, ((_, edges), &column)) in features.iter().zip(&columns).enumerate() {
            let value = table.features(row)[column];
            let (cell, quarter) = if value.is_nan() { (2 * place + 1, 0) } else { (2 * place, edges.bin(value)) };
            histogram.add(CellId(cell as u32), quarter, table.weight(row));
        }
    }
    Ok(())
}

impl Replay {
    /// Compares the held-out rows, which are those of `table`, with the calibration rows of the router.
    ///
    /// # Errors
    /// If the table or the router is another one.
    pub fn traffic(&self, router: &Router, table: &Table) -> Result<Traffic> {
        let mut traffic = router.traffic();
        traffic.add(self.policy(), table, self.decisions())?;
        Ok(traffic)
    }
}

impl Traffic {
    /// Adds a batch that a policy of the same router has decided.
    ///
    /// # Errors
    /// If the batch or the policy does not belong to this router.
    pub fn add(&mut self, policy: &Policy, table: &Table, decisions: &Decisions) -> Result<()> {
        let fits = decisions.len() == table.rows()
            && table.classes().len() == self.cells.classes()
            && (self.by_confidence || policy.cells().count() == self.cells.count());
        if !fits {
            return Err(TableError::OtherQueries.into());
        }
        for row in 0..table.rows() {
            let peak = table.peak(row);
            let cell = match self.by_confidence {
                true => self.cells.find(&table.prediction(row), peak, &[]),
                false => policy.cell_of(decisions, row),
            };
            let quarter = self.quarters[cell.index()].bin(f64::from(peak.key()));
            self.now.add(cell, quarter, table.weight(row));
        }
        if self.features.is_empty() {
            return Ok(());
        }
        add_features(&mut self.features_now, &self.features, table)?;
        self.forget_two_values(table)
    }

    /// A quarter of a feature is not named by its only value any more if a query has another one.
    fn forget_two_values(&mut self, table: &Table) -> Result<()> {
        let names: Vec<String> = self.features.iter().map(|(name, _)| name.clone()).collect();
        for (two_values, column) in self.two_values.iter_mut().zip(table.feature_columns(&names)?) {
            let is_other = |known: &[f64; 2], value: f64| !value.is_nan() && !known.contains(&value);
            *two_values =
                two_values.filter(|known| !(0..table.rows()).any(|row| is_other(known, table.features(row)[column])));
        }
        Ok(())
    }

    /// The shares that have moved.
    #[must_use]
    pub fn compare(&self) -> TrafficShift {
        let cells = self.names.len();
        let divided: Vec<usize> = (0..cells)
            .filter(|&cell| self.before.cell(cell).inside >= MIN_ROWS_TO_QUARTER && self.quarters[cell].bins() > 1)
            .collect();
        let quarters: usize = divided.iter().map(|&cell| self.quarters[cell].bins()).sum();
        let error = if self.features.is_empty() { TRAFFIC_DOUBT } else { TRAFFIC_DOUBT / 2.0 };
        let for_cells = if quarters > 0 { error / 2.0 } else { error };
        let mut shares: Vec<MovedShare> = (0..cells)
            .filter_map(|cell| {
                let (before, now) = (self.before.cell(cell), self.now.cell(cell));
                self.moved_share(cell, None, [before, now], for_cells / (2 * cells) as f64)
            })
            .collect();
        for &cell in &divided {
            shares.extend((0..self.quarters[cell].bins()).filter_map(|quarter| {
                let (before, now) = (self.before.quarter(cell, quarter), self.now.quarter(cell, quarter));
                let alpha = error / 2.0 / (2 * quarters) as f64;
                self.moved_share(cell, Some(quarter), [before, now], alpha)
            }));
        }
        shares.extend(self.moved_features(TRAFFIC_DOUBT / 2.0));
        shares.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(a.cell.cmp(&b.cell)));
        let moved_shares = shares.len();
        shares.truncate(MAX_LISTED);
        TrafficShift {
            moved: moved_shares > 0,
            doubt: TRAFFIC_DOUBT,
            tolerance: TRAFFIC_TOLERANCE,
            rows: self.now.rows,
            calibration_rows: self.before.rows,
            moved_shares,
            shares,
        }
    }

    /// The quarters of features, and the missing values, whose share has moved.
    fn moved_features(&self, error: f64) -> Vec<MovedShare> {
        let tests: usize = self.features.iter().map(|(_, edges)| edges.bins() + 1).sum();
        let alpha = error / (2 * tests.max(1)) as f64;
        let mut moved = Vec::new();
        for (place, (name, edges)) in self.features.iter().enumerate() {
            let missing = |histogram: &Histogram| {
                let [there, missing] = [2 * place, 2 * place + 1].map(|cell| histogram.cell(cell).inside);
                Count { inside: missing, all: there + missing }
            };
            let within = |histogram: &Histogram, quarter: usize| histogram.quarter(2 * place, quarter);
            let two_values = self.two_values[place].filter(|_| edges.bins() == 2);
            let counts = (0..edges.bins()).map(|quarter| {
                let low = quarter.checked_sub(1).and_then(|place| edges.values().get(place));
                let what = match (two_values, low, edges.values().get(quarter)) {
                    (Some(values), ..) => format!("x_{name} = {}", plain(values[quarter])),
                    (None, None, None) => format!("a value of x_{name}"),
                    (None, None, Some(high)) => format!("x_{name} below {}", short(*high)),
                    (None, Some(low), None) => format!("x_{name} from {} on", short(*low)),
                    (None, Some(low), Some(high)) => format!("x_{name} from {} to {}", short(*low), short(*high)),
                };
                (what, within(&self.features_before, quarter), within(&self.features_now, quarter))
            });
            let missing = (format!("no x_{name}"), missing(&self.features_before), missing(&self.features_now));
            for (what, before, now) in counts.chain([missing]) {
                let p_value = p_value(before, now, TRAFFIC_TOLERANCE);
                if p_value < alpha {
                    moved.push(MovedShare {
                        cell: place as u32,
                        feature: Some(name.clone()),
                        name: what,
                        confidence: None,
                        calibration: before.share(),
                        calibration_limits: share_limits(before.inside, before.all, alpha),
                        share: now.share(),
                        p_value,
                    });
                }
            }
        }
        moved
    }

    /// The share of a cell, or of a quarter of it, if it has moved.
    fn moved_share(
        &self,
        cell: usize,
        quarter: Option<usize>,
        [before, now]: [Count; 2],
        alpha: f64,
    ) -> Option<MovedShare> {
        let p_value = p_value(before, now, TRAFFIC_TOLERANCE);
        let confidence = |quarter: usize| {
            let edges = self.quarters[cell].values();
            let low = quarter.checked_sub(1).and_then(|place| edges.get(place));
            [low.copied().unwrap_or(0.0), edges.get(quarter).copied().unwrap_or(1.0)]
        };
        (p_value < alpha).then(|| MovedShare {
            cell: cell as u32,
            feature: None,
            name: self.names[cell].clone(),
            confidence: quarter.map(confidence),
            calibration: before.share(),
            calibration_limits: share_limits(before.inside, before.all, alpha),
            share: now.share(),
            p_value,
        })
    }

    /// Whether the share of queries routed differs significantly from the share promised for traffic like the calibration rows under a limit.
    #[must_use]
    pub fn departs_from(&self, promised: f64, found: f64) -> bool {
        let count = |histogram: &Histogram, share: f64| {
            let all = histogram.sum * histogram.scale();
            Count { inside: share * all, all }
        };
        p_value(count(&self.before, promised), count(&self.now, found), 0.0) < LIMIT_ERROR / 2.0
    }
}
