//! Traffic that has moved: how a batch of queries spreads over the cells, and over the confidences inside them, against the
//! calibration rows.
//!
//! Both shares are estimates. A share has moved if it is more than (1 + ρ) times the calibration rows' share, or less than
//! 1/(1 + ρ) of it, by more than chance explains: given x of n calibration rows and y of m queries in a cell, y is compared with a
//! binomial of x + y trials and success probability m(1 + ρ)/(m(1 + ρ) + n). That is exact for rare cells and errs on the safe
//! side for others, also where the edges of cells are quantiles of the calibration rows. The doubt δ is divided among
//! all cells and both directions, half of it for confidences.
//!
//! The cells of a forest are those of its own rows, not of traffic. Queries are then compared by bins of confidence and, with half of the
//! doubt, by quarters of each feature and by how often it is missing: a feature that broke shows nowhere else.

use std::sync::Arc;

use statrs::function::beta::checked_beta_reg;

use crate::error::{Result, TableError};
use crate::evaluate::Replay;
use crate::number::short;
use crate::partition::{CellId, Cells, Edges, double};
use crate::policy::{Decisions, Policy};
use crate::router::Router;
use crate::table::Table;

/// How often a batch like the calibration rows may be called moved.
pub const TRAFFIC_DOUBT: f64 = 0.05;

/// Shares that differ by less than this factor, less one, are not worth an alarm: ρ.
pub const TRAFFIC_TOLERANCE: f64 = 0.25;

/// Parts that the confidences of a cell are divided into.
const QUARTERS: usize = 4;

/// Cells with fewer calibration rows are not divided by confidence.
const MIN_ROWS_TO_QUARTER: f64 = 40.0;

/// How often the share routed under a limit may be called different by chance, in either direction.
const LIMIT_DOUBT: f64 = 0.01;

/// The most shares a report lists.
const MAX_LISTED: usize = 20;

/// Clopper–Pearson limits of a share of which `count` of `rows` were seen; each is wrong with probability `alpha` at most.
///
/// ```
/// let [low, high] = pointsman::monitor::share_limits(30.0, 1000.0, 0.005);
/// assert!((low - 0.0178682).abs() < 1e-7 && (high - 0.0468025).abs() < 1e-7);
/// ```
#[must_use]
pub fn share_limits(count: f64, rows: f64, alpha: f64) -> [f64; 2] {
    let (rest, known) = ((rows - count).max(0.0), rows > 0.0);
    let low = if known && count > 0.0 { beta_quantile(alpha, count, rest + 1.0) } else { 0.0 };
    let high = if known && rest > 0.0 { beta_quantile(1.0 - alpha, count + 1.0, rest) } else { 1.0 };
    [low, high]
}

/// The x at which the distribution function of a beta variable is `p`, by bisection.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if beta_tail(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function; 1 where it is not defined, so that nothing is concluded.
fn beta_tail(a: f64, b: f64, x: f64) -> f64 {
    checked_beta_reg(a, b, x).unwrap_or(1.0)
}

/// So many of so many rows. Weighted rows count as (Σw)²/Σw².
#[derive(Debug, Clone, Copy, PartialEq)]
struct Count {
    inside: f64,
    all: f64,
}

impl Count {
    fn share(self) -> f64 {
        if self.all > 0.0 { self.inside / self.all } else { 0.0 }
    }
}

/// How surprising it is that the second share is so much larger, or smaller, than the first if in truth they differ by no more than
/// a factor of 1 + tolerance.
fn surprise(before: Count, now: Count, tolerance: f64) -> f64 {
    if before.all <= 0.0 || now.all <= 0.0 {
        return 1.0;
    }
    let odds = |factor: f64| now.all * factor / (now.all * factor + before.all);
    if now.share() >= before.share() {
        beta_tail(now.inside, before.inside + 1.0, odds(1.0 + tolerance))
    } else {
        beta_tail(before.inside, now.inside + 1.0, 1.0 - odds(1.0 / (1.0 + tolerance)))
    }
}

/// Weights of rows by cell and quarter of confidence.
#[derive(Debug, Clone, Default)]
struct Spread {
    cells: Vec<[f64; QUARTERS]>,
    sum: f64,
    squares: f64,
    rows: usize,
}

impl Spread {
    fn new(cells: usize) -> Self {
        Self { cells: vec![[0.0; QUARTERS]; cells], ..Self::default() }
    }

    fn add(&mut self, cell: CellId, quarter: usize, weight: f64) {
        self.cells[cell.index()][quarter.min(QUARTERS - 1)] += weight;
        self.sum += weight;
        self.squares += weight * weight;
        self.rows += 1;
    }

    /// What one unit of weight counts as.
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

/// Compares queries with the calibration rows of a router. Cells are the router's or, where a forest gives each query
/// costs of its own, the confidences that queries fall back to.
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
    before: Spread,
    now: Spread,
    /// The features of a forest, with the edges of their quarters.
    features: Vec<(String, Edges)>,
    features_before: Spread,
    features_now: Spread,
}

/// What a comparison found.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TrafficShift {
    /// Whether any share has moved.
    pub moved: bool,
    /// How often a batch like the calibration rows is called moved, at most.
    pub doubt: f64,
    /// Shares that differ by a smaller factor, less one, are left alone.
    pub tolerance: f64,
    /// Rows compared.
    pub rows: usize,
    /// Calibration rows they were compared with.
    pub calibration_rows: usize,
    /// How many shares have moved; the most surprising ones are listed.
    pub moved_shares: usize,
    /// The shares that have moved, the most surprising first.
    pub shares: Vec<MovedShare>,
}

/// A share that has moved.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MovedShare {
    /// The cell; with a forest, the bin of confidence or the place of the feature.
    pub cell: u32,
    /// The feature, where the share is one of its values.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub feature: Option<String>,
    /// What lies in it.
    pub name: String,
    /// Between which confidences, where the share is one of the cell's own rows instead of all rows.
    pub confidence: Option<[f64; 2]>,
    /// The share of the calibration rows.
    pub calibration: f64,
    /// Between what the true share lay when they were collected: Clopper–Pearson limits that hold for all shares at once.
    pub calibration_limits: [f64; 2],
    /// The share of these rows.
    pub share: f64,
    /// How surprising it is.
    pub p_value: f64,
}

impl Router {
    /// Where the calibration rows fall, to compare queries with.
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
        let mut before = Spread::new(cells.count());
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
            let values = (0..table.rows()).map(|row| table.features(row)[column]).filter(|value| !value.is_nan());
            Some((name, Edges::quantiles(values, QUARTERS, double)))
        };
        let features: Vec<(String, Edges)> = used.into_iter().filter_map(quartered).collect();
        let mut features_before = Spread::new(2 * features.len());
        // The columns are there: the names were found among them.
        let _ = add_features(&mut features_before, &features, table);
        Traffic {
            now: Spread::new(cells.count()),
            cells,
            names,
            by_confidence,
            quarters,
            before,
            features_now: Spread::new(2 * features.len()),
            features,
            features_before,
        }
    }
}

/// Counts the rows of a table by quarters of each feature and, one entry further, those without a value.
fn add_features(spread: &mut Spread, features: &[(String, Edges)], table: &Table) -> Result<()> {
    let names: Vec<String> = features.iter().map(|(name, _)| name.clone()).collect();
    let columns = table.feature_columns(&names)?;
    for row in 0..table.rows() {
        for (place, ((_, edges), &column)) in features.iter().zip(&columns).enumerate() {
            let value = table.features(row)[column];
            let (cell, quarter) = if value.is_nan() { (2 * place + 1, 0) } else { (2 * place, edges.bin(value)) };
            spread.add(CellId(cell as u32), quarter, table.weight(row));
        }
    }
    Ok(())
}

impl Replay {
    /// The held-out rows, which are those of `table`, beside the calibration rows of the router.
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
        if self.features.is_empty() { Ok(()) } else { add_features(&mut self.features_now, &self.features, table) }
    }

    /// Which shares have moved.
    #[must_use]
    pub fn compare(&self) -> TrafficShift {
        let cells = self.names.len();
        let divided: Vec<usize> = (0..cells)
            .filter(|&cell| self.before.cell(cell).inside >= MIN_ROWS_TO_QUARTER && self.quarters[cell].bins() > 1)
            .collect();
        let quarters: usize = divided.iter().map(|&cell| self.quarters[cell].bins()).sum();
        let doubt = if self.features.is_empty() { TRAFFIC_DOUBT } else { TRAFFIC_DOUBT / 2.0 };
        let for_cells = if quarters > 0 { doubt / 2.0 } else { doubt };
        let mut shares: Vec<MovedShare> = (0..cells)
            .filter_map(|cell| {
                let (before, now) = (self.before.cell(cell), self.now.cell(cell));
                self.judge(cell, None, [before, now], for_cells / (2 * cells) as f64)
            })
            .collect();
        for &cell in &divided {
            shares.extend((0..self.quarters[cell].bins()).filter_map(|quarter| {
                let (before, now) = (self.before.quarter(cell, quarter), self.now.quarter(cell, quarter));
                let alpha = doubt / 2.0 / (2 * quarters) as f64;
                self.judge(cell, Some(quarter), [before, now], alpha)
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

    /// Quarters of features, and missing values, whose share has moved.
    fn moved_features(&self, doubt: f64) -> Vec<MovedShare> {
        let tests: usize = self.features.iter().map(|(_, edges)| edges.bins() + 1).sum();
        let alpha = doubt / (2 * tests.max(1)) as f64;
        let mut moved = Vec::new();
        for (place, (name, edges)) in self.features.iter().enumerate() {
            let missing = |spread: &Spread| {
                let [there, missing] = [2 * place, 2 * place + 1].map(|cell| spread.cell(cell).inside);
                Count { inside: missing, all: there + missing }
            };
            let within = |spread: &Spread, quarter: usize| spread.quarter(2 * place, quarter);
            let counts = (0..edges.bins()).map(|quarter| {
                let low = quarter.checked_sub(1).and_then(|place| edges.values().get(place));
                let what = match (low, edges.values().get(quarter)) {
                    (None, None) => format!("a value of x_{name}"),
                    (None, Some(high)) => format!("x_{name} below {}", short(*high)),
                    (Some(low), None) => format!("x_{name} from {} on", short(*low)),
                    (Some(low), Some(high)) => format!("x_{name} from {} to {}", short(*low), short(*high)),
                };
                (what, within(&self.features_before, quarter), within(&self.features_now, quarter))
            });
            let missing = (format!("no x_{name}"), missing(&self.features_before), missing(&self.features_now));
            for (what, before, now) in counts.chain([missing]) {
                let p_value = surprise(before, now, TRAFFIC_TOLERANCE);
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

    /// The share if it has moved.
    fn judge(&self, cell: usize, quarter: Option<usize>, [before, now]: [Count; 2], alpha: f64) -> Option<MovedShare> {
        let p_value = surprise(before, now, TRAFFIC_TOLERANCE);
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

    /// Whether the share of the queries that is routed differs from what a limit promised for traffic like the calibration rows
    /// by more than chance.
    #[must_use]
    pub fn departs_from(&self, promised: f64, found: f64) -> bool {
        let count = |spread: &Spread, share: f64| {
            let all = spread.sum * spread.scale();
            Count { inside: share * all, all }
        };
        surprise(count(&self.before, promised), count(&self.now, found), 0.0) < LIMIT_DOUBT / 2.0
    }
}
