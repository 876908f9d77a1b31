//! Whether the number of labels depends on the labels.
//!
//! Every estimate takes k as given. If annotators were asked until they agreed, items of few labels agree by construction
//! and the irreducible loss comes out far too small: "stop at two that agree, else five" makes 0.17 of a Brier loss of 0.33.
//! Two statistics are unbiased whatever k is: the disagreement of pairs Û = k/(k−1)·(1 − ‖ȳ‖²) for k ≥ 2, and the share of
//! labels that contradict the prediction. Among items of like confidence neither may go with k.

use statrs::function::erf::erfc;

use crate::error::Result;
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::table::votes::Votes;

/// Items are compared with items of like confidence: so many groups.
const STRATA: usize = 10;

/// Fewer rows of another k than the commonest tell nothing.
const FEWEST_ROWS: usize = 20;

/// Chance would make a statistic as large so rarely. Commands warn by it, so it must be rare.
const SUSPICIOUS: f64 = 1e-3;

/// Whether items of more labels agree more or less than others of like confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stopping {
    /// Rows that vary in the number of labels and were compared.
    pub rows: usize,
    /// Fewest and most labels per row.
    pub labels: [u64; 2],
    /// How far disagreement goes with the number of labels, in standard errors; above zero, where annotators disagree
    /// there are more labels.
    pub z: f64,
    /// How often chance alone would do as much.
    pub p_value: f64,
    /// How often two labels of one item differ, where labels are few and where they are many.
    pub disagreement: [f64; 2],
    /// So many labels agree on every item that has no more, which chance would not do: labelling stopped on agreement.
    pub stopped_at: Option<u64>,
}

impl Stopping {
    /// Compares the rows of a table; `None` if all have equally many labels, or too few rows differ.
    ///
    /// # Errors
    /// If the table has no votes.
    pub fn of(table: &Table) -> Result<Option<Self>> {
        let labels = |row: usize| table.votes(row).map_or(0, Votes::k);
        if (1..table.rows()).all(|row| labels(row) == labels(0)) {
            return Ok(None);
        }
        // A router has its rows sorted by cell and content: sums do not depend on the order of the table.
        let router = Router::calibrate(table, &Partition::confidence(STRATA))?;
        let items = items(&router);
        let pairs: Vec<Item> = items.iter().copied().filter(|item| item.k >= 2).collect();
        let mut found = Vec::new();
        found.extend(slope(&pairs, |item| item.disagreement));
        if pairs.len() < items.len() {
            found.extend(slope(&items, |item| item.contradiction));
        }
        let tests = found.len() as f64;
        let Some(z) = found.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())) else { return Ok(None) };
        let mut fewest_most = [u64::MAX, 0];
        for item in &items {
            fewest_most = [fewest_most[0].min(item.k), fewest_most[1].max(item.k)];
        }
        Ok(Some(Self {
            rows: items.len(),
            labels: fewest_most,
            z,
            p_value: (tests * erfc(z.abs() / std::f64::consts::SQRT_2)).min(1.0),
            disagreement: few_and_many(&pairs),
            stopped_at: stopped_at(&pairs),
        }))
    }

    /// Whether chance hardly explains it: k depends on the labels, or harder items were given more labels on purpose.
    #[must_use]
    pub fn is_suspicious(&self) -> bool {
        self.p_value < SUSPICIOUS || self.stopped_at.is_some()
    }
}

#[derive(Clone, Copy)]
struct Item {
    stratum: u32,
    k: u64,
    /// How often two of its labels differ.
    disagreement: f64,
    /// How often a label is not the predicted class.
    contradiction: f64,
}

fn items(router: &Router) -> Vec<Item> {
    let table = router.rows();
    let strata = 0..router.cells().count() as u32;
    let of = |stratum: u32| {
        router.mixture(CellId(stratum)).rows().filter_map(move |row| {
            let votes = table.votes(row)?;
            let k = votes.k();
            Some(Item {
                stratum,
                k,
                disagreement: votes.disagreement().unwrap_or(0.0),
                contradiction: 1.0 - votes.mean(table.peak(row).class as usize),
            })
        })
    };
    strata.flat_map(of).collect()
}

/// Covariance of ln k and a value within the strata, in standard errors that do not assume equal variances: the value's
/// own depends on k. `None` if too few rows differ in k.
fn slope(items: &[Item], value: impl Fn(&Item) -> f64) -> Option<f64> {
    let mut ks: Vec<u64> = items.iter().map(|item| item.k).collect();
    ks.sort_unstable();
    let commonest = ks.chunk_by(|a, b| a == b).map(<[u64]>::len).max()?;
    if ks.len() - commonest < FEWEST_ROWS || commonest < FEWEST_ROWS && ks.len() < 2 * FEWEST_ROWS {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for stratum in items.chunk_by(|a, b| a.stratum == b.stratum) {
        let mean = |f: &dyn Fn(&Item) -> f64| stratum.iter().map(f).sum::<f64>() / stratum.len() as f64;
        let (centre, middle) = (mean(&|item| (item.k as f64).ln()), mean(&|item| value(item)));
        for item in stratum {
            let product = ((item.k as f64).ln() - centre) * (value(item) - middle);
            sum += product;
            squares += product * product;
        }
    }
    (squares > 0.0).then(|| sum / squares.sqrt())
}

/// Mean disagreement of the rows below and above the mean of ln k; zero where there are none.
fn few_and_many(pairs: &[Item]) -> [f64; 2] {
    let centre = pairs.iter().map(|item| (item.k as f64).ln()).sum::<f64>() / pairs.len().max(1) as f64;
    [false, true].map(|many| {
        let side = pairs.iter().filter(|item| ((item.k as f64).ln() > centre) == many);
        let (sum, n) = side.fold((0.0, 0_usize), |(sum, n), item| (sum + item.disagreement, n + 1));
        if n > 0 { sum / n as f64 } else { 0.0 }
    })
}

/// The fewest labels, if all items that have no more agree although the others would make it next to impossible.
fn stopped_at(pairs: &[Item]) -> Option<u64> {
    let fewest = pairs.iter().map(|item| item.k).min()?;
    let (few, more): (Vec<&Item>, Vec<&Item>) = pairs.iter().partition(|item| item.k == fewest);
    let differ = more.iter().map(|item| item.disagreement).sum::<f64>() / more.len().max(1) as f64;
    let agree = few.iter().all(|item| item.disagreement == 0.0);
    (agree && few.len() >= FEWEST_ROWS && few.len() as f64 * (-differ).ln_1p() < 1e-6_f64.ln()).then_some(fewest)
}
