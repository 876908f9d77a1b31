//! The best possible order of routing, estimated from few labels.
//!
//! It routes the row of largest reducible loss first. What it saves depends on how the reducible loss varies over rows, about which a row's own
//! labels say little: ranked by its own labels, noise would count as saving. The reducible loss of each row is therefore evaluated under the law
//! of p* given what predicts it, the mixture of predictions that is closest to the labels of rows with a similar score of the router
//! ([`PredictedLaw::fit_in_groups`](crate::estimate::PredictedLaw::fit_in_groups)): at its snapshot mean, shrunk so that it varies as p* does.

use super::corrected::Corrected;
use super::gain::GainArea;
use super::replay::Replay;

/// What the best possible order saves over a random one.
#[derive(Debug, Clone)]
pub(crate) struct BestOrder {
    pub(super) won: GainArea,
    /// Half of the difference to a second estimate, from posterior draws of p*: what the shape of the law leaves open.
    pub(crate) open: f64,
    /// The reducible loss by which each row is ranked.
    pub(super) reducible: Vec<f64>,
}

impl BestOrder {
    /// Numbers of the rows whose mean is the area that the order wins over a random one, and whose variance is that of the estimate.
    pub(crate) fn area_by_row(&self) -> Vec<f64> {
        self.won.by_row()
    }
}

impl Replay {
    /// The best possible order, if a perfect oracle is asked; by the rows' truth if that is known.
    pub(crate) fn best_order(&self) -> BestOrder {
        let weights = &self.weights;
        match &self.corrected {
            Some(Corrected { reducible, .. }) => {
                let points = &reducible.at_points;
                let won = GainArea::new(points, points, weights);
                let draws = reducible.at_draws.len() / weights.len().max(1);
                let spread: Vec<f64> = weights.iter().flat_map(|&weight| std::iter::repeat_n(weight, draws)).collect();
                let by_draws = GainArea::new(&reducible.at_draws, &reducible.at_draws, &spread);
                let open = (by_draws.area - won.area).abs() / 2.0;
                BestOrder { won, open, reducible: points.clone() }
            }
            None => {
                let reducible = self.reducible();
                BestOrder { won: GainArea::new(&reducible, &reducible, weights), open: 0.0, reducible }
            }
        }
    }
}
