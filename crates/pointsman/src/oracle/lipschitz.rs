//! The Lipschitz constant of a panel's expected loss in the true distribution.

use super::Aggregate;
use super::panel::Panel;
use super::urn::Urn;
use crate::loss::{LOG_FLOOR, Loss, Shape};
use crate::table::votes::Votes;

/// Steps of the grid on which derivatives are evaluated: fine compared with 1/√m, the scale on which they change.
const GRID_STEPS: u32 = 1000;

/// The Lipschitz constant γ of a panel, in the ℓ1 norm.
///
/// The loss is an expectation over m + 1 labels, and the total variation distance of m + 1 labels is at most m + 1 times that of
/// one label: γ ≤ (m + 1)B/2. Under the Brier loss of shares the loss is linear in ‖p‖². With two classes, and for the cross-entropy
/// class by class, it is a polynomial of degree m + 1 whose derivative is evaluated on a grid.
pub(super) fn panel_constant(panel: Panel, loss: &Loss, classes: usize) -> f64 {
    if panel.depends_on_agreement_only(loss) {
        return (panel.brier(0.0, classes) - panel.brier(1.0, classes)).abs();
    }
    let m = panel.experts;
    let labels = m + 1;
    let logarithmic = match (loss.shape(), panel.aggregate) {
        (Shape::Log, Aggregate::Laplace(smoothing)) if panel.least_share(smoothing, classes) >= LOG_FLOOR => {
            Some(smoothing)
        }
        _ => None,
    };
    let largest = logarithmic.map_or(loss.bound(), |smoothing| -panel.least_share(smoothing, classes).ln());
    let by_total_variation = f64::from(labels) * largest / 2.0;
    let slopes = if classes == 2 {
        // The Bernstein coefficients are the losses given the number of labels of the second class among m + 1.
        let of = |second: u32| panel.cost(loss, &Urn::from_votes(Votes::new(&[labels - second, second])));
        let [least, greatest] = derivative(&(0..=labels).map(of).collect::<Vec<_>>());
        least.abs().max(greatest.abs()) / 2.0
    } else if let Some(smoothing) = logarithmic {
        let sum = f64::from(m) + classes as f64 * smoothing;
        let of = |own: u32| {
            let others = f64::from(own.saturating_sub(1));
            -f64::from(own) / f64::from(labels) * ((others + smoothing) / sum).ln()
        };
        let [least, greatest] = derivative(&(0..=labels).map(of).collect::<Vec<_>>());
        (greatest - least) / 2.0
    } else {
        f64::INFINITY
    };
    slopes.min(by_total_variation)
}

/// The least and the greatest derivative on [0, 1] of the polynomial with these Bernstein coefficients.
fn derivative(coefficients: &[f64]) -> [f64; 2] {
    let n = coefficients.len() - 1;
    let steps: Vec<f64> = coefficients.windows(2).map(|pair| n as f64 * (pair[1] - pair[0])).collect();
    let at = |step: u32| -> f64 {
        let p = f64::from(step) / f64::from(GRID_STEPS);
        let mut chances = vec![0.0; steps.len()];
        Urn::from_distribution(&[1.0 - p, p])
            .for_each_outcome(n as u32 - 1, &mut |counts, chance| chances[counts[1] as usize] = chance);
        chances.iter().zip(&steps).map(|(chance, step)| chance * step).sum()
    };
    (0..=GRID_STEPS).map(at).fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], x| [a.min(x), b.max(x)])
}
