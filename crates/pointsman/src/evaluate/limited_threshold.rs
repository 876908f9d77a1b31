//! The best confidence thresholds under a limit on the share routed.

use crate::task::Task;

/// The number of candidate thresholds, as quantiles of the traffic.
const CUTS: usize = 100;

const NEGLIGIBLE: f64 = 1e-9;

/// A rule as parts: which part of each row gets which action.
#[derive(Debug)]
pub(crate) struct Parts {
    actions: usize,
    /// One part per action, row by row.
    parts: Vec<f64>,
    /// Where the routed rows begin, if some are routed and some that are more certain are not.
    first_routed: Option<FirstRouted>,
}

/// Where the rows begin that a threshold rule routes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstRouted {
    /// The quantile of the uncertainty.
    pub(crate) cut: f64,
    /// The action below it, and the route above it.
    pub(crate) actions: [usize; 2],
}

impl Parts {
    /// A rule from one part per action, row by row.
    pub(crate) fn new(actions: usize, parts: Vec<f64>) -> Self {
        Self { actions, parts, first_routed: None }
    }

    /// Where the routed rows begin.
    pub(crate) fn first_routed(&self) -> Option<FirstRouted> {
        self.first_routed
    }

    /// A rule with one action per row.
    pub(crate) fn from_actions(actions: usize, taken: impl Iterator<Item = usize>) -> Self {
        let one = |taken: usize| (0..actions).map(move |action| f64::from(u8::from(action == taken)));
        Self::new(actions, taken.flat_map(one).collect())
    }

    /// The actions of a row, with the part of each.
    pub(crate) fn of_row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let parts = &self.parts[row * self.actions..][..self.actions];
        parts.iter().copied().enumerate().filter(|(_, part)| *part > 0.0)
    }
}

/// Thresholds as quantiles of the uncertainty: the most certain part of the traffic is predicted, the rest is routed or abstained on. A
/// rule learned from some rows then routes the same share of other rows.
#[derive(Debug)]
pub(crate) struct Quantiles {
    /// The cost of each action over the most certain 0 %, 1 %, … of the traffic, one list per share.
    sums: Vec<Vec<f64>>,
    /// The prices of the routes, which break ties.
    prices: Vec<f64>,
}

/// One action between two quantiles.
#[derive(Clone, Copy)]
struct Segment {
    cost: f64,
    action: usize,
    routed: f64,
}

impl Quantiles {
    /// Learns from rows with these scores and costs. Shares of the traffic are by weight.
    pub(crate) fn fit(scores: &[f64], costs: &[Vec<f64>], weights: &[f64], task: &Task) -> Self {
        Self::fit_with_spans(&spans(scores, weights), costs, weights, task)
    }

    /// Learns from rows with these [`spans`] and costs.
    pub(crate) fn fit_with_spans(spans: &[[f64; 2]], costs: &[Vec<f64>], weights: &[f64], task: &Task) -> Self {
        let mut sums = vec![vec![0.0; task.actions()]; CUTS + 1];
        for (row, &span) in spans.iter().enumerate() {
            let weight = weights[row];
            // Cuts beyond a row include it fully; cuts within its ties include a part.
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

    /// The cost of an action over the most certain share of the traffic.
    fn sum(&self, share: f64, action: usize) -> f64 {
        let place = (share * CUTS as f64).clamp(0.0, CUTS as f64);
        let (below, part) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(CUTS);
        (1.0 - part) * self.sums[below][action] + part * self.sums[above][action]
    }

    /// The cheapest route between two quantiles, and abstaining, each with its cost and the share it routes.
    fn segments(&self, from: f64, to: f64) -> [Option<Segment>; 2] {
        let cost = |action: usize| self.sum(to, action) - self.sum(from, action);
        let routes = (1..=self.prices.len()).map(|action| (cost(action), action));
        let price = |action: usize| self.prices[action - 1];
        let cheapest = routes.min_by(|a, b| a.0.total_cmp(&b.0).then(price(a.1).total_cmp(&price(b.1))));
        let abstaining = Some(self.prices.len() + 1).filter(|&action| action < self.sums[0].len());
        [
            cheapest.map(|(cost, action)| Segment { cost, action, routed: to - from }),
            abstaining.map(|action| Segment { cost: cost(action), action, routed: 0.0 }),
        ]
    }

    /// The cheapest rule that routes no more than a share: two cuts, and the actions before, between and after them.
    fn rule(&self, share: f64) -> ([f64; 2], [usize; 3]) {
        let mut best = (self.sum(1.0, 0), ([1.0; 2], [0; 3]));
        let cuts: Vec<f64> = (0..=CUTS).map(|cut| cut as f64 / CUTS as f64).chain([1.0 - share]).collect();
        let behind: Vec<[Option<Segment>; 2]> = cuts.iter().map(|&cut| self.segments(cut, 1.0)).collect();
        let abstains = self.prices.len() + 1 < self.sums[0].len();
        // Above the first cut nothing is predicted: what cannot be routed is abstained on.
        for &first in cuts.iter().filter(|&&first| abstains || 1.0 - first <= share + NEGLIGIBLE) {
            let predicted = self.sum(first, 0);
            let used_up = (first + share).min(1.0);
            let seconds = cuts.iter().copied().zip(behind.iter().copied());
            for (second, behind) in
                seconds.chain([(used_up, self.segments(used_up, 1.0))]).filter(|segment| segment.0 >= first)
            {
                for middle in self.segments(first, second).into_iter().flatten() {
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

    /// Applies the best rule that routes no more than a share to rows with these [`spans`].
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
        let is_route = |action: usize| (1..=self.prices.len()).contains(&action);
        let [bottom, middle, top] = taken;
        let cuts = match first < second {
            true => [(first, [bottom, middle]), (second, [middle, top])],
            false => [(first, [bottom, top]); 2],
        };
        let first_routed = cuts
            .into_iter()
            .find(|(cut, [below, above])| *cut > 0.0 && *cut < 1.0 && !is_route(*below) && is_route(*above));
        let first_routed = first_routed.map(|(cut, actions)| FirstRouted { cut, actions });
        Parts { first_routed, ..Parts::new(actions, parts) }
    }
}

/// The part of an interval of quantiles before a cut.
pub(crate) fn part_before(cut: f64, [from, to]: [f64; 2]) -> f64 {
    // A very small weight may have an interval of length zero.
    if to > from { ((cut - from) / (to - from)).clamp(0.0, 1.0) } else { f64::from(u8::from(cut >= to)) }
}

/// The interval of quantiles that each row occupies in the order of increasing scores; ties share theirs.
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
