//! Normalised gains of rankings and their standard errors.

/// The saving of a ranking over a random one, over all shares routed: Σ w r (½ − rank), the area between their routing curves.
#[derive(Debug, Clone)]
pub(super) struct GainArea {
    pub(super) area: f64,
    /// The influence function of the area at each row, with mean zero.
    influence: Vec<f64>,
}

impl GainArea {
    /// The gain of routing rows by decreasing score, if routing a row saves its entry of `gains`. Tied rows share their rank.
    pub(super) fn new(scores: &[f64], gains: &[f64], weights: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let all: f64 = weights.iter().sum();
        let saved = |row: usize| weights[row] / all * gains[row];
        let mut below: f64 = order.iter().map(|&row| saved(row)).sum();
        let (mut before, mut area, mut ranked) = (0.0, 0.0, 0.0);
        let mut influence = vec![0.0; scores.len()];
        for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
            let weight = tied.iter().map(|&row| weights[row]).sum::<f64>() / all;
            let own: f64 = tied.iter().map(|&row| saved(row)).sum();
            let rank = before + weight / 2.0;
            area += own * (0.5 - rank);
            ranked += own * rank;
            for &row in tied {
                // The row's own term, and its effect on the ranks of all rows below it.
                influence[row] = gains[row] * (0.5 - rank) - (below - own / 2.0);
            }
            before += weight;
            below -= own;
        }
        let centre = area - ranked;
        influence.iter_mut().for_each(|value| *value -= centre);
        Self { area, influence }
    }

    /// The area plus its influence function at each row.
    pub(super) fn by_row(&self) -> Vec<f64> {
        self.influence.iter().map(|influence| self.area + influence).collect()
    }

    /// This area as a part of another, and the standard error of the ratio.
    pub(super) fn part_of(&self, best: &Self, weights: &[f64]) -> (f64, f64) {
        let area = best.area;
        let part = self.area / area;
        let moved = self.influence.iter().zip(&best.influence).map(|(own, best)| (own - part * best) / area);
        let all: f64 = weights.iter().sum();
        (part, moved.zip(weights).map(|(x, w)| (w / all * x).powi(2)).sum::<f64>().sqrt())
    }
}

/// Numbers of the rows whose mean is the area that routing them by decreasing score wins over a random order, and whose variance is that of the
/// estimate. Routing a row saves its entry of `gains`.
pub(crate) fn area_by_row(scores: &[f64], gains: &[f64], weights: &[f64]) -> Vec<f64> {
    GainArea::new(scores, gains, weights).by_row()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn influence_is_the_derivative_of_the_area() {
        let (scores, gains) = ([3.0, 1.0, 2.0, 2.0], [0.4, -0.1, 0.3, 0.2]);
        let weights = [1.0, 2.0, 0.5, 1.5];
        let found = GainArea::new(&scores, &gains, &weights);
        let all: f64 = weights.iter().sum();
        for row in 0..4 {
            let mut heavier = weights;
            heavier[row] += 1e-6 * all;
            let slope = (GainArea::new(&scores, &gains, &heavier).area - found.area) / 1e-6;
            assert!((slope - found.influence[row]).abs() < 1e-5, "{row}: {slope} {}", found.influence[row]);
        }
        let total: f64 = found.influence.iter().zip(&weights).map(|(x, w)| w * x).sum();
        assert!(total.abs() < 1e-12);
    }

    #[test]
    fn best_ranking_has_normalised_gain_one() {
        let (scores, weights) = ([0.3, 0.1, 0.2], [1.0; 3]);
        let best = GainArea::new(&scores, &scores, &weights);
        let (part, error) = best.part_of(&best, &weights);
        assert!((part - 1.0).abs() < 1e-15 && error < 1e-15);
        assert_eq!(GainArea::new(&[0.0; 3], &scores, &weights).area, 0.0);
    }
}
