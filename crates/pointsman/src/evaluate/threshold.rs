//! The threshold rule: predict certain queries, route or abstain above a threshold of total uncertainty.

/// The number of candidate thresholds.
const CUTS: usize = 100;

/// Two thresholds, with an action below the first, between them and above the second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Thresholds {
    cuts: [f64; 2],
    actions: [usize; 3],
}

impl Thresholds {
    /// The rule of least cost on the given rows: `costs` has one list per row, one cost per action. Below the first threshold the rule
    /// predicts; above it the other actions are used, in the cheaper order.
    pub(crate) fn fit(scores: &[f64], costs: &[Vec<f64>], weights: &[f64]) -> Self {
        let actions = costs.first().map_or(1, Vec::len);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        // Sums of each action's cost up to each cut; a cut never separates equal scores.
        let mut sums = vec![vec![0.0; actions]];
        let mut cuts = vec![f64::NEG_INFINITY];
        let mut running = vec![0.0; actions];
        for (i, &row) in order.iter().enumerate() {
            running.iter_mut().zip(&costs[row]).for_each(|(sum, cost)| *sum += weights[row] * cost);
            let next = order.get(i + 1).map(|&next| scores[next]);
            let due = (i + 1) * CUTS / order.len() >= cuts.len();
            match next {
                Some(next) if due && next > scores[row] => {
                    sums.push(running.clone());
                    cuts.push(scores[row].midpoint(next));
                }
                None => {
                    sums.push(running.clone());
                    cuts.push(f64::INFINITY);
                }
                _ => {}
            }
        }
        let last = cuts.len() - 1;
        // Predict everything unless another rule is cheaper.
        let mut best = (sums[last][0], Self { cuts: [f64::INFINITY; 2], actions: [0; 3] });
        let least = |from: usize, to: usize| {
            let cost = |action: usize| (sums[to][action] - sums[from][action], action);
            (1..actions).map(cost).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
        };
        let above: Vec<(f64, usize)> = (0..=last).map(|from| least(from, last)).collect();
        for first in 0..=last {
            for second in first..=last {
                let middle = least(first, second);
                let cost = sums[first][0] + middle.0 + above[second].0;
                if cost < best.0 - 1e-12 * best.0.abs() {
                    let rule = Self { cuts: [cuts[first], cuts[second]], actions: [0, middle.1, above[second].1] };
                    best = (cost, rule);
                }
            }
        }
        best.1
    }

    pub(crate) fn action(&self, score: f64) -> usize {
        self.actions[self.cuts.iter().filter(|&&cut| score > cut).count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_finds_the_cheapest_thresholds() {
        let scores: Vec<f64> = (0..300).map(f64::from).collect();
        // Predicting is best up to 99, the second action up to 199, then the third.
        let costs: Vec<Vec<f64>> =
            (0..300).map(|i| vec![if i < 100 { 0.0 } else { 1.0 }, if i < 200 { 0.3 } else { 2.0 }, 0.5]).collect();
        let rule = Thresholds::fit(&scores, &costs, &[1.0; 300]);
        for (score, action) in [(0.0, 0), (95.0, 0), (105.0, 1), (195.0, 1), (205.0, 2), (1e9, 2)] {
            assert_eq!(rule.action(score), action, "{score} {rule:?}");
        }
        // Equal scores get one action, and ties are predicted.
        let flat = Thresholds::fit(&[0.5; 300], &costs, &[1.0; 300]);
        assert_eq!(flat.action(0.5), 2);
        let same = Thresholds::fit(&scores, &vec![vec![0.2, 0.2]; 300], &[1.0; 300]);
        assert_eq!([same.action(0.0), same.action(299.0)], [0, 0]);
    }
}
