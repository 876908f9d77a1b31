//! A panel's loss as a polynomial in the label probabilities, for many items.
//!
//! The loss depends on m + 1 labels, so c(L, p) = Σ_T P(T) β_T over the outcomes T of m + 1 labels. The coefficients β_T depend on
//! the panel and the loss alone and are computed once; an item then costs one multiplication per coefficient.

use super::panel::Panel;
use super::urn::Urn;
use crate::loss::Loss;

/// The coefficients, by the count of the first class, then of the second, and so on.
#[derive(Debug, Clone)]
pub(crate) struct Polynomial {
    labels: usize,
    classes: usize,
    coefficients: Vec<f64>,
    /// The number of outcomes: entry `[classes][labels]`.
    sizes: Vec<Vec<usize>>,
}

impl Polynomial {
    /// The polynomial of a panel; `None` if it has more than `most` coefficients.
    pub(super) fn new(panel: Panel, loss: &Loss, classes: usize, most: usize) -> Option<Self> {
        let labels = panel.experts + 1;
        if classes > most {
            return None;
        }
        // Pascal's rule: the last class has no label, or one label and an outcome of the rest.
        let mut sizes = vec![vec![0; labels as usize + 1]; classes + 1];
        sizes[0][0] = 1_usize;
        for class in 1..=classes {
            for n in 0..=labels as usize {
                let one_more = if n > 0 { sizes[class][n - 1] } else { 0 };
                sizes[class][n] = sizes[class - 1][n].saturating_add(one_more).min(most + 1);
            }
        }
        if sizes[classes][labels as usize] > most {
            return None;
        }
        let mut coefficients = Vec::with_capacity(sizes[classes][labels as usize]);
        let given = |counts: &mut [u32]| panel.loss_given(loss, counts);
        fill(&mut vec![0; classes], 0, labels, &mut |counts| coefficients.push(given(counts)));
        Some(Self { labels: labels as usize, classes, coefficients, sizes })
    }

    /// The loss if labels are drawn from an urn.
    pub(crate) fn at(&self, urn: &Urn) -> f64 {
        let classes: Vec<usize> = (0..self.classes).collect();
        let (weights, scale) = urn.probabilities(&classes, self.labels as u32);
        scale * self.sum(&weights, self.labels, &self.coefficients)
    }

    /// The sum over the outcomes of `left` labels among the classes of `weights`.
    fn sum(&self, weights: &[Vec<f64>], left: usize, coefficients: &[f64]) -> f64 {
        match weights {
            [] => 0.0,
            [last] => last[left] * coefficients[0],
            [first, last] => (0..=left).map(|n| first[n] * last[left - n] * coefficients[n]).sum(),
            [first, rest @ ..] => {
                let (mut total, mut start) = (0.0, 0);
                for (n, weight) in first[..=left].iter().enumerate() {
                    if *weight > 0.0 {
                        total += weight * self.sum(rest, left - n, &coefficients[start..]);
                    }
                    start += self.sizes[rest.len()][left - n];
                }
                total
            }
        }
    }
}

/// Visits every outcome of `left` labels among the classes from `class` on.
fn fill(counts: &mut [u32], class: usize, left: u32, visit: &mut dyn FnMut(&mut [u32])) {
    if class + 1 == counts.len() {
        counts[class] = left;
        visit(counts);
        return;
    }
    for n in 0..=left {
        counts[class] = n;
        fill(counts, class + 1, left - n, visit);
    }
}
