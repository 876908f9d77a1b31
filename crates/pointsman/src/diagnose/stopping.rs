//! Tests whether the number of labels depends on the labels.
//!
//! Every estimate takes k as given. If annotators were asked until they agreed, items with few labels agree by construction and the
//! irreducible loss is far too small: "stop at two that agree, otherwise five" turns a Brier loss of 0.33 into 0.17. Two statistics are
//! unbiased for any k: the disagreement of pairs Û = k/(k−1)·(1 − ‖ȳ‖²) for k ≥ 2, and the share of labels that contradict the prediction.
//! Among items of similar confidence neither may be correlated with k.

use statrs::function::erf::erfc;

use super::annotators::{Annotations, AnnotatorCheck};
use super::left_out::without_left_out;
use crate::error::Result;
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::table::votes::Votes;

/// The number of confidence bins within which items are compared.
const STRATA: usize = 10;

/// The smallest number of rows whose k is not the most frequent one.
const MIN_ROWS: usize = 20;

/// The smallest share of the rows with several labels in which some of these differ. Otherwise labels are copies, or no item is ambiguous.
const MIN_SHARE_OF_CONTESTED_ROWS: f64 = 0.01;

/// The significance level below which commands warn.
const SIGNIFICANCE: f64 = 1e-3;

/// Whether items with more labels agree more or less than others of similar confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stopping {
    /// The number of rows compared.
    pub rows: usize,
    /// The minimum and maximum number of labels per row.
    pub labels: [u64; 2],
    /// The covariance of disagreement and the number of labels, in standard errors; positive if items with more labels disagree more.
    pub z: f64,
    /// The probability of a covariance this large by chance.
    pub p_value: f64,
    /// The share of label pairs that differ, among items with few and with many labels.
    pub disagreement: [f64; 2],
    /// The smallest number of labels, if all items with that number are unanimous beyond chance: labelling stopped on agreement.
    pub stopped_at: Option<u64>,
}

impl Stopping {
    /// Compares the rows of a table; `None` if all have the same number of labels, or too few differ in it, or the labels of a row hardly ever
    /// differ.
    ///
    /// # Errors
    /// If the table has no votes.
    pub fn detect(table: &Table) -> Result<Option<Self>> {
        let labels = |row: usize| table.votes(row).map_or(0, Votes::k);
        if (1..table.rows()).all(|row| labels(row) == labels(0)) {
            return Ok(None);
        }
        // A router sorts its rows by cell and content, so sums do not depend on the order of the table.
        let router = Router::calibrate(table, &Partition::confidence(STRATA))?;
        Ok(Self::of_items(&items(&router)))
    }

    /// As [`detect`](Self::detect) and, if that is [suspicious](Self::is_suspicious), again without the labels of annotators who should be left
    /// out: a majority vote among the labels makes those of items with few labels agree, too.
    ///
    /// # Errors
    /// If the table has no votes, or the annotations are of other rows.
    pub fn detect_annotated(table: &Table, annotations: Option<&Annotations>) -> Result<Option<Self>> {
        let found = Self::detect(table)?;
        let Some(annotations) = annotations.filter(|_| found.is_some_and(|found| found.is_suspicious())) else {
            return Ok(found);
        };
        let check = AnnotatorCheck::new(table, annotations)?;
        match without_left_out(table, annotations, &check)? {
            Some(others) if !check.left_out.is_empty() => Self::detect(&others),
            _ => Ok(found),
        }
    }

    /// As [`detect`](Self::detect), but compares items within the cells of a router, and only in cells whose items differ in their number of
    /// labels: a plan asks for more labels in some cells than in others, which depends on no item's own labels.
    ///
    /// # Errors
    /// If the table has no votes, other classes or not the features of the router, or the router is a forest.
    pub fn detect_within_cells(table: &Table, router: &Router) -> Result<Option<Self>> {
        let items = items(&Router::calibrate_like(table, router)?);
        let differ = |cell: &&[Item]| cell.iter().any(|item| item.k != cell[0].k);
        let cells = items.chunk_by(|a, b| a.stratum == b.stratum).filter(differ);
        Ok(Self::of_items(&cells.flatten().copied().collect::<Vec<Item>>()))
    }

    fn of_items(items: &[Item]) -> Option<Self> {
        let pairs: Vec<Item> = items.iter().copied().filter(|item| item.k >= 2).collect();
        let contested = pairs.iter().filter(|item| item.disagreement > 0.0).count();
        if (contested as f64) < MIN_SHARE_OF_CONTESTED_ROWS * pairs.len() as f64 {
            return None;
        }
        let mut found = Vec::new();
        found.extend(covariance_in_errors(&pairs, |item| item.disagreement));
        if pairs.len() < items.len() {
            found.extend(covariance_in_errors(items, |item| item.contradiction));
        }
        let tests = found.len() as f64;
        let z = found.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        let mut fewest_most = [u64::MAX, 0];
        for item in items {
            fewest_most = [fewest_most[0].min(item.k), fewest_most[1].max(item.k)];
        }
        Some(Self {
            rows: items.len(),
            labels: fewest_most,
            z,
            p_value: (tests * erfc(z.abs() / std::f64::consts::SQRT_2)).min(1.0),
            disagreement: few_and_many(&pairs),
            stopped_at: stopped_at(&pairs),
        })
    }

    /// The number of first labels to keep of every item, so that it does not depend on the labels: the smallest number that an item has.
    /// `None` if some items have one label only, from which nothing about noise can be estimated.
    #[must_use]
    pub fn first_labels(&self) -> Option<u64> {
        self.stopped_at.or(Some(self.labels[0])).filter(|k| *k >= 2)
    }

    /// Whether chance is an unlikely explanation: k depends on the labels, or harder items were given more labels on purpose.
    #[must_use]
    pub fn is_suspicious(&self) -> bool {
        self.p_value < SIGNIFICANCE || self.stopped_at.is_some()
    }
}

/// One item with its labels summarised.
#[derive(Clone, Copy)]
struct Item {
    stratum: u32,
    k: u64,
    /// The share of its label pairs that differ.
    disagreement: f64,
    /// The share of its labels that are not the predicted class.
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

/// The covariance of ln k and a value within the bins, in standard errors that do not assume equal variances, because the value's variance
/// depends on k. `None` if too few rows differ in k.
fn covariance_in_errors(items: &[Item], value: impl Fn(&Item) -> f64) -> Option<f64> {
    let mut ks: Vec<u64> = items.iter().map(|item| item.k).collect();
    ks.sort_unstable();
    let commonest = ks.chunk_by(|a, b| a == b).map(<[u64]>::len).max()?;
    if ks.len() - commonest < MIN_ROWS || commonest < MIN_ROWS && ks.len() < 2 * MIN_ROWS {
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

/// The mean disagreement of rows below and above the mean of ln k; zero without rows.
fn few_and_many(pairs: &[Item]) -> [f64; 2] {
    let centre = pairs.iter().map(|item| (item.k as f64).ln()).sum::<f64>() / pairs.len().max(1) as f64;
    [false, true].map(|many| {
        let side = pairs.iter().filter(|item| ((item.k as f64).ln() > centre) == many);
        let (sum, n) = side.fold((0.0, 0_usize), |(sum, n), item| (sum + item.disagreement, n + 1));
        if n > 0 { sum / n as f64 } else { 0.0 }
    })
}

/// The smallest k, if all items with it are unanimous although the disagreement of the others makes that nearly impossible.
fn stopped_at(pairs: &[Item]) -> Option<u64> {
    let fewest = pairs.iter().map(|item| item.k).min()?;
    let (few, more): (Vec<&Item>, Vec<&Item>) = pairs.iter().partition(|item| item.k == fewest);
    let differ = more.iter().map(|item| item.disagreement).sum::<f64>() / more.len().max(1) as f64;
    let agree = few.iter().all(|item| item.disagreement == 0.0);
    (agree && few.len() >= MIN_ROWS && few.len() as f64 * (-differ).ln_1p() < 1e-6_f64.ln()).then_some(fewest)
}
