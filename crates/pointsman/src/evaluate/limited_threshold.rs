//! Confidence thresholds under a limit on routing: between two of them no more than a share of the traffic is routed.

use crate::task::Task;

/// Places where a threshold may be, as shares of the traffic.
const CUTS: usize = 100;

const NEGLIGIBLE: f64 = 1e-9;

/// Which part of each row gets which action.
#[derive(Debug)]
pub(crate) struct Parts {
    actions: usize,
    /// Row by row, one part per action.
    parts: Vec<f64>,
}

impl Parts {
    /// `parts` has one number per action, row by row.
    pub(crate) fn new(actions: usize, parts: Vec<f64>) -> Self {
        Self { actions, parts }
    }

    /// One action per row.
    pub(crate) fn of_actions(actions: usize, taken: impl Iterator<Item = usize>) -> Self {
        let one = |taken: usize| (0..actions).map(move |action| f64::from(u8::from(action == taken)));
        Self { actions, parts: taken.flat_map(one).collect() }
    }

    /// The actions that a row gets, and which part of it each gets.
    pub(crate) fn of_row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let parts = &self.parts[row * self.actions..][..self.actions];
        parts.iter().copied().enumerate().filter(|(_, part)| *part > 0.0)
    }
}

/// Thresholds as quantiles of the uncertainty: the most certain part of the traffic is predicted, the rest routed or abstained on. A rule
/// learned from one half of the rows then routes the same share of the other half.
#[derive(Debug)]
pub(crate) struct Quantiles {
    /// Costs of each action over the most certain 0 %, 1 %, … of the traffic that rules are learned from, one list per share.
    sums: Vec<Vec<f64>>,
    /// What the routes cost, which settles ties.
    prices: Vec<f64>,
}

/// What is done between two quantiles.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    action: usize,
    routed: f64,
}

impl Quantiles {
    /// Learns from rows with these scores and costs, at the prices that rules go by.
    pub(crate) fn of(scores: &[f64], costs: &[Vec<f64>], weights: &[f64], task: &Task) -> Self {
        let spans = spans(scores, weights);
        let mut sums = vec![vec![0.0; task.actions()]; CUTS + 1];
        for (row, &span) in spans.iter().enumerate() {
            let weight = weights[row];
            // All cuts beyond a row hold it whole; the few within its ties hold a part.
            for (cut, sum) in sums.iter_mut().enumerate().rev() {
                let part = part_before(cut as f64 / CUTS as f64, span);
                if part == 0.0 {
                    break;
                }
                sum.iter_mut().zip(&costs[row]).for_each(|(sum, cost)| *sum += part * weight * cost);
            }
        }
        Self { sums, prices: task.routes().iter().map(|route| route.price()).collect() }
    }

    /// The cost of an action over the most certain share.
    fn sum(&self, share: f64, action: usize) -> f64 {
        let place = (share * CUTS as f64).clamp(0.0, CUTS as f64);
        let (below, part) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(CUTS);
        (1.0 - part) * self.sums[below][action] + part * self.sums[above][action]
    }

    /// The cheapest route between two quantiles, and abstaining, each with the share it routes.
    fn ways(&self, from: f64, to: f64) -> [Option<Way>; 2] {
        let cost = |action: usize| self.sum(to, action) - self.sum(from, action);
        let routes = (1..=self.prices.len()).map(|action| (cost(action), action));
        let price = |action: usize| self.prices[action - 1];
        let cheapest = routes.min_by(|a, b| a.0.total_cmp(&b.0).then(price(a.1).total_cmp(&price(b.1))));
        let abstaining = Some(self.prices.len() + 1).filter(|&action| action < self.sums[0].len());
        [
            cheapest.map(|(cost, action)| Way { cost, action, routed: to - from }),
            abstaining.map(|action| Way { cost: cost(action), action, routed: 0.0 }),
        ]
    }

    /// Two cuts and the actions before, between and behind them: of those that route no more than a share, the cheapest.
    fn rule(&self, share: f64) -> ([f64; 2], [usize; 3]) {
        let mut best = (self.sum(1.0, 0), ([1.0; 2], [0; 3]));
        let cuts: Vec<f64> = (0..=CUTS).map(|cut| cut as f64 / CUTS as f64).chain([1.0 - share]).collect();
        let behind: Vec<[Option<Way>; 2]> = cuts.iter().map(|&cut| self.ways(cut, 1.0)).collect();
        let abstains = self.prices.len() + 1 < self.sums[0].len();
        // Above the first cut nothing is predicted: what may not be routed is abstained on.
        for &first in cuts.iter().filter(|&&first| abstains || 1.0 - first <= share + NEGLIGIBLE) {
            let predicted = self.sum(first, 0);
            let used_up = (first + share).min(1.0);
            let seconds = cuts.iter().copied().zip(behind.iter().copied());
            for (second, behind) in seconds.chain([(used_up, self.ways(used_up, 1.0))]).filter(|way| way.0 >= first) {
                for middle in self.ways(first, second).into_iter().flatten() {
                    for top in behind.into_iter().flatten() {
                        let cost = predicted + middle.cost + top.cost;
                        let kept = middle.routed + top.routed <= share + NEGLIGIBLE;
                        if kept && cost < best.0 - 1e-12 * best.0.abs() {
                            best = (cost, ([first, second], [0, middle.action, top.action]));
                        }
                    }
                }
            }
        }
        best.1
    }

    /// What the best rule that routes no more than a share does with rows of these [`spans`].
    pub(crate) fn parts(&self, share: f64, spans: &[[f64; 2]]) -> Parts {
        let ([first, second], taken) = self.rule(share);
        let actions = self.sums[0].len();
        let mut parts = vec![0.0; spans.len() * actions];
        for (slots, &span) in parts.chunks_exact_mut(actions).zip(spans) {
            let mut before = 0.0;
            for (end, action) in [first, second, f64::INFINITY].into_iter().zip(taken) {
                let until = part_before(end, span);
                slots[action] += until - before;
                before = until;
            }
        }
        Parts::new(actions, parts)
    }
}

/// Which part of an interval of quantiles lies before a cut.
fn part_before(cut: f64, [from, to]: [f64; 2]) -> f64 {
    // A weight may be too small beside the others to take up any of the traffic.
    if to > from { ((cut - from) / (to - from)).clamp(0.0, 1.0) } else { f64::from(u8::from(cut >= to)) }
}

/// The quantiles between which each row lies in order of the scores, lowest first; ties share theirs.
pub(crate) fn spans(scores: &[f64], weights: &[f64]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let all: f64 = weights.iter().sum();
    let (mut spans, mut before) = (vec![[0.0; 2]; scores.len()], 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let after = before + tied.iter().map(|&row| weights[row]).sum::<f64>();
        tied.iter().for_each(|&row| spans[row] = [before / all, after / all]);
        before = after;
    }
    spans
}
