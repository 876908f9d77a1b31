//! How fast a panel's expected loss can change with the truth.

use super::Aggregate;
use super::panel::Panel;
use super::urn::Urn;
use crate::loss::{LOG_FLOOR, Loss, Shape};
use crate::table::votes::Votes;

/// Steps of the grid that derivatives are looked for on: fine beside 1/√m, the scale they change on.
const STEPS: u32 = 1000;

/// γ of a panel, in the ℓ1 norm.
///
/// The loss is an expectation over m + 1 labels, and the total variation of m + 1 labels is at most m + 1 times that of one:
/// γ ≤ (m + 1)B/2. Under the Brier loss of shares it is proportional to ‖p‖², whose constant is one. With two classes, and
/// for the cross-entropy class by class, it is a polynomial of degree m + 1 whose derivative is looked up on a grid.
pub(super) fn of_panel(panel: Panel, loss: &Loss, classes: usize) -> f64 {
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
    let always = f64::from(labels) * largest / 2.0;
    let slopes = if classes == 2 {
        // In Bernstein's form the coefficients are the losses given how many of the m + 1 labels are of the second class.
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
    slopes.min(always)
}

/// The least and the greatest derivative on [0, 1] of the polynomial with these coefficients in Bernstein's form.
fn derivative(coefficients: &[f64]) -> [f64; 2] {
    let n = coefficients.len() - 1;
    let steps: Vec<f64> = coefficients.windows(2).map(|pair| n as f64 * (pair[1] - pair[0])).collect();
    let at = |step: u32| -> f64 {
        let p = f64::from(step) / f64::from(STEPS);
        let mut chances = vec![0.0; steps.len()];
        Urn::from_distribution(&[1.0 - p, p])
            .for_each_outcome(n as u32 - 1, &mut |counts, chance| chances[counts[1] as usize] = chance);
        chances.iter().zip(&steps).map(|(chance, step)| chance * step).sum()
    };
    (0..=STEPS).map(at).fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], x| [a.min(x), b.max(x)])
}
