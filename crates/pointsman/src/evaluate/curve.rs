//! Routing curves: the mean loss as a function of the share routed, highest score first.

/// The routing curve of a score: the mean loss at each of n + 1 shares routed. Gains are averaged over ties.
#[derive(Debug, Clone)]
pub(super) struct Ranking {
    /// Share routed, from 0 to 1.
    shares: Vec<f64>,
    /// Mean loss at each share.
    losses: Vec<f64>,
}

impl Ranking {
    /// The curve for routing rows by decreasing score. `gains` are the savings of routing each row, `base` is the mean loss without routing.
    pub(super) fn new(scores: &[f64], gains: &[f64], weights: &[f64], base: f64) -> Self {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let all: f64 = weights.iter().sum();
        let (mut shares, mut losses) = (vec![0.0], vec![base]);
        shares.reserve(order.len());
        losses.reserve(order.len());
        let (mut routed, mut saved) = (0.0, 0.0);
        for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
            let weight: f64 = tied.iter().map(|&row| weights[row]).sum();
            let gain = tied.iter().map(|&row| weights[row] * gains[row]).sum::<f64>() / weight;
            for &row in tied {
                routed += weights[row];
                saved += weights[row] * gain;
                shares.push(routed / all);
                losses.push(base - saved / all);
            }
        }
        Self { shares, losses }
    }

    /// The area under the curve, by the trapezoidal rule.
    pub(super) fn area(&self) -> f64 {
        let strip = |i: usize| (self.shares[i] - self.shares[i - 1]) * (self.losses[i] + self.losses[i - 1]) / 2.0;
        (1..self.shares.len()).map(strip).sum()
    }

    /// The mean loss at 0 %, 1 %, … 100 % routed.
    pub(super) fn percentiles(&self) -> Vec<f64> {
        let last = self.shares.len() - 1;
        let at = |percent: u32| {
            let share = f64::from(percent) / 100.0;
            let right = self.shares.partition_point(|&x| x < share).clamp(1, last);
            let (left, width) = (right - 1, self.shares[right] - self.shares[right - 1]);
            let part = if width > 0.0 { ((share - self.shares[left]) / width).clamp(0.0, 1.0) } else { 0.0 };
            self.losses[left] + part * (self.losses[right] - self.losses[left])
        };
        (0..=100).map(at).collect()
    }
}

/// The nearest curve between the same ends that does not rise, by least squares; the curve itself if its end is not below its start.
///
/// A perfect oracle takes no loss back, so the true curve of no order rises. Its estimate from few labels may, where the loss of the oracle
/// happens to look larger than that of the prediction.
pub(super) fn not_rising(curve: Vec<f64>) -> Vec<f64> {
    let (Some(&start), Some(&end)) = (curve.first(), curve.last()) else { return curve };
    if end >= start {
        return curve;
    }
    // Runs of rising values are replaced by their mean: each pool has a mean and a number of values.
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(curve.len());
    for value in curve {
        let mut pool = (value.clamp(end, start), 1);
        while let Some((mean, count)) = pools.pop_if(|(mean, _)| *mean < pool.0) {
            let both = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / both as f64, both);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_that_rise_are_replaced_by_the_nearest_that_do_not() {
        assert_eq!(not_rising(vec![1.0, 0.75, 0.5, 0.75, 0.5]), [1.0, 0.75, 0.625, 0.625, 0.5]);
        // Nothing is above the start or below the end.
        assert_eq!(not_rising(vec![1.0, 1.5, 0.25, 0.5]), [1.0, 1.0, 0.5, 0.5]);
        for kept in [vec![1.0, 0.5, 0.5, 0.0], vec![0.5, 0.25, 0.75], vec![]] {
            assert_eq!(not_rising(kept.clone()), kept);
        }
    }

    #[test]
    fn perfect_ranking_has_the_least_area() {
        let gains = [0.0, 1.0, 0.0, 1.0];
        let best = Ranking::new(&gains, &gains, &[1.0; 4], 0.5);
        assert_eq!(best.losses, [0.5, 0.25, 0.0, 0.0, 0.0]);
        assert!((best.area() - 0.125).abs() < 1e-15);
        let random = Ranking::new(&[0.0; 4], &gains, &[1.0; 4], 0.5);
        assert!((random.area() - 0.25).abs() < 1e-15);
        let percentiles = best.percentiles();
        assert_eq!((percentiles.len(), percentiles[0], percentiles[25], percentiles[100]), (101, 0.5, 0.25, 0.0));
        assert!((percentiles[10] - 0.4).abs() < 1e-12);
    }

    #[test]
    fn weighted_rows_equal_repeated_rows() {
        let twice = Ranking::new(&[2.0, 2.0, 1.0], &[0.3, 0.3, 0.1], &[1.0; 3], 0.6);
        let heavy = Ranking::new(&[2.0, 1.0], &[0.3, 0.1], &[2.0, 1.0], 0.6);
        assert!((twice.area() - heavy.area()).abs() < 1e-15);
    }
}
