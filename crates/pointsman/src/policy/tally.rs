//! Counts and expected costs of many decisions.

use std::collections::BTreeMap;

use super::promise::{Judged, Within, with_jackknife, with_slack};
use super::{Decision, Decisions, Policy, Reason, Rooms, Verdict};
use crate::numeric::weighted::WeightedSums;
use crate::router::Support;
use crate::task::Named;

/// Queries counted by their decisions. Counts do not depend on the order of the queries. With a forest, the costs of queries are summed in
/// order.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By verdict, and by the action that a cap assigned instead of the verdict's.
    counts: BTreeMap<(Verdict, Option<u8>), u64>,
    rows: u64,
    own: Option<OwnCosts>,
    /// The shares of routes that caps or missing routes left.
    rooms: Rooms,
}

/// Sums over queries with their own costs.
#[derive(Debug, Clone)]
struct OwnCosts {
    /// The number of queries per action; the last is undetermined.
    taken: Vec<u64>,
    /// The cost of the actions taken, and of each action taken always.
    router: f64,
    always: Vec<f64>,
    /// The width of the bounds on the cost where labels only bound it.
    slack: f64,
    /// Whether the costs of some query are known, not only bounded.
    known: bool,
    /// The extra cost of caps.
    capped: f64,
    /// By reason, in the order of [`Reason::ALL`].
    reasons: [u64; Reason::ALL.len()],
}

/// The effect of caps on the queries counted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CappedSummary {
    /// The number of queries that did not get their own action.
    pub moved: u64,
    /// The number of them that got each action.
    pub to: Named<u64>,
    /// The increase of the expected cost per query, over all queries. As the expected cost, it is estimated from held-out calibration rows,
    /// which the caps assign to actions as well; by the estimates that decide if there are none. Those choose the queries whose savings they
    /// overestimate, so the sum of the differences that they see may be too high.
    pub cost: f64,
    /// The standard error of the increase; `None` without held-out rows.
    pub standard_error: Option<f64>,
    /// The bounds on the increase that the labels identify; `None` if they identify it.
    pub identified: Option<[f64; 2]>,
}

/// Shares and expected costs of the queries counted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TallySummary {
    /// The number of queries.
    pub rows: u64,
    /// The share that each action gets; `undetermined` is listed only if there are any.
    pub shares: Named<f64>,
    /// The expected cost per query of `router` and of each `always-<action>`, estimated from held-out calibration rows
    /// ([`Promise`](super::Promise)) in the cells of these queries; `None` if labels give only bounds for all of them, or there were no
    /// queries. If labels give bounds for some, the upper bound counts; queries without a determined action count as the cheapest action
    /// whose cost is known.
    pub expected_cost: Option<Named<f64>>,
    /// The standard error of the router's cost: that of a [`Promise`](super::Promise) whose rows are weighted like the queries in their cells.
    /// NaN if there is one calibration row.
    pub standard_error: Option<f64>,
    /// The bounds on the router's cost that the labels identify with any number of calibration rows; the standard error comes on top. `None`
    /// if the labels identify it.
    pub identified: Option<[f64; 2]>,
    /// The number of queries per support of their cell.
    pub support: Named<u64>,
    /// The number of queries per [`Reason`].
    pub reasons: Named<u64>,
    /// The effect of caps, if any query did not get its own action.
    pub capped: Option<CappedSummary>,
}

impl Tally {
    /// Counts the queries of a batch that the policy has decided.
    pub fn add(&mut self, policy: &Policy, decisions: &Decisions) {
        if policy.has_forest() {
            let actions = policy.actions();
            let own = self.own.get_or_insert_with(|| OwnCosts {
                taken: vec![0; actions + 1],
                router: 0.0,
                always: vec![0.0; actions],
                slack: 0.0,
                known: false,
                capped: 0.0,
                reasons: [0; Reason::ALL.len()],
            });
            for row in 0..decisions.len() {
                let decision = policy.row(decisions, row);
                own.taken[decision.code().unwrap_or(actions)] += 1;
                let [low, high] = [decision.costs(), decision.costs_high()];
                let action = decision.code().unwrap_or_else(|| policy.assumed_action([low, high]));
                own.router += high[action];
                own.slack += high[action] - low[action];
                own.always.iter_mut().zip(high).for_each(|(sum, cost)| *sum += cost);
                own.known |= low == high;
                own.capped += decision.cost_of_cap();
                own.reasons[decision.reason() as usize] += 1;
            }
        }
        // Sorted, so that equal verdicts take one look-up.
        let with_move = |(row, &verdict): (usize, &Verdict)| (verdict, decisions.moved(row));
        let mut verdicts: Vec<(Verdict, Option<u8>)> = decisions.verdicts.iter().enumerate().map(with_move).collect();
        verdicts.sort_unstable();
        for alike in verdicts.chunk_by(|a, b| a == b) {
            *self.counts.entry(alike[0]).or_default() += alike.len() as u64;
        }
        let (before, added) = (self.rows, verdicts.len() as u64);
        self.rows += added;
        if self.rows > 0 {
            self.rooms = self.rooms.beside(&decisions.rooms, before as f64 / self.rows as f64);
        }
    }

    /// The number of queries.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Shares and expected costs under the policy that decided the queries, or one repriced from it.
    #[must_use]
    pub fn summary(&self, policy: &Policy) -> TallySummary {
        let mean = |value: &dyn Fn(Decision<'_>) -> f64| -> f64 {
            let all = self.rows.max(1) as f64;
            let parts = self.counts.iter().map(|(&alike, &n)| value(decided(policy, alike)) * (n as f64 / all));
            // A sum of nothing is a negative zero, which adding zero makes positive.
            parts.sum::<f64>() + 0.0
        };
        let all = self.rows.max(1) as f64;
        let names = policy.task().action_names();
        let (mut shares, mut support) = (Named::new(), Named::new());
        let share = |code: Option<usize>| match &self.own {
            None => mean(&|d| f64::from(u8::from(d.code() == code))),
            Some(own) => own.taken[code.unwrap_or(names.len())] as f64 / all,
        };
        for (action, name) in names.iter().enumerate() {
            shares.push(name.clone(), share(Some(action)));
        }
        let undetermined = share(None);
        if undetermined > 0.0 {
            shares.push("undetermined", undetermined);
        }
        for wanted in [Support::Enough, Support::Sparse, Support::Empty] {
            let with = self.counts.iter().filter(|(alike, _)| decided(policy, **alike).support() == wanted);
            support.push(wanted.name(), with.map(|(_, n)| n).sum());
        }
        let mut by_reason = self.own.as_ref().map(|own| own.reasons).unwrap_or_default();
        if self.own.is_none() {
            for (&alike, n) in &self.counts {
                by_reason[decided(policy, alike).reason() as usize] += n;
            }
        }
        let reasons =
            Reason::ALL.into_iter().map(|reason| (reason.name().to_owned(), by_reason[reason as usize])).collect();
        let expected = match &self.own {
            _ if self.rows == 0 => None,
            Some(own) => own.expected(policy, &self.rooms, all),
            None => self.expected(policy),
        };
        let (mut costs, mut standard_error, mut identified, mut of_caps) = (None, None, None, None);
        if let Some(Expected { router, always, error, open, caps }) = expected {
            of_caps = caps;
            let named = names.iter().map(|name| format!("always-{name}")).zip(always);
            costs = Some([("router".to_owned(), router)].into_iter().chain(named).collect());
            standard_error = Some(error);
            identified = open.map(|ends| ends.map(|end| router + end));
        }
        let by_estimates = || self.own.as_ref().map_or_else(|| mean(&|d| d.cost_of_cap()), |own| own.capped / all);
        let of_caps = of_caps.unwrap_or_else(|| CostOfCaps { cost: by_estimates(), error: None, open: None });
        let capped = self.capped(&names, of_caps);
        let rows = self.rows;
        TallySummary { rows, shares, expected_cost: costs, standard_error, identified, support, reasons, capped }
    }

    fn capped(&self, names: &[String], of_caps: CostOfCaps) -> Option<CappedSummary> {
        let mut to = vec![0; names.len()];
        for ((_, code), n) in &self.counts {
            if let Some(code) = code {
                to[usize::from(*code)] += n;
            }
        }
        let moved = to.iter().sum();
        let to = names.iter().cloned().zip(to).filter(|(_, n)| *n > 0).collect();
        let CostOfCaps { cost, error, open } = of_caps;
        let identified = open.map(|ends| ends.map(|end| cost + end));
        (moved > 0).then_some(CappedSummary { moved, to, cost, standard_error: error, identified })
    }

    /// The share of the queries per source.
    fn shares_by_source(&self, policy: &Policy) -> BTreeMap<u32, f64> {
        let mut shares = BTreeMap::new();
        for (&(verdict, _), &n) in &self.counts {
            *shares.entry(policy.unfold(verdict).1).or_default() += n as f64 / self.rows as f64;
        }
        shares
    }

    /// The pairs of wanted and given actions of the queries of a source that were moved, with their shares of all queries.
    fn moves_of(&self, policy: &Policy, source: u32) -> impl Iterator<Item = ([usize; 2], f64)> {
        let of_source = self.counts.iter().filter(move |((verdict, _), _)| policy.unfold(*verdict).1 == source);
        of_source.filter_map(move |(&(verdict, moved), &n)| {
            let wanted = policy.decision(verdict).code();
            let wanted = wanted.unwrap_or_else(|| policy.assumed_action(policy.costs_of(source)));
            Some(([wanted, moved?.into()], n as f64 / self.rows as f64))
        })
    }

    /// Expected costs from the held-out rows of each cell; `None` if the costs of all are only bounded. Caps assign held-out rows to actions,
    /// weighted like the queries, by the estimates that decide these rows. Random draws do not matter: held-out rows are evaluated with their
    /// probabilities.
    fn expected(&self, policy: &Policy) -> Option<Expected> {
        let shares = self.shares_by_source(policy);
        let uncapped = policy.judge_sources(None);
        // The rows of a source are weighted like its queries.
        let mut factors = vec![0.0; uncapped.len()];
        for (&source, share) in &shares {
            factors[source as usize] =
                uncapped[source as usize].as_ref().map_or(f64::NAN, |own| share / own.cost.weight);
        }
        let factor = |source: u32| factors[source as usize];
        let within = (!self.rooms.is_empty()).then_some(Within { rooms: &self.rooms, factor: &factor });
        let judged = if within.is_some() { policy.judge_sources(within) } else { uncapped.clone() };
        let mut expected = Expected::new(policy);
        let (mut slack, mut known, mut of_caps) = (0.0, false, 0.0);
        for (&source, share) in &shares {
            match (&judged[source as usize], &uncapped[source as usize]) {
                (Some(judged), Some(uncapped)) => {
                    known |= judged.known > 0.0;
                    slack += share * judged.mean_slack();
                    expected.router += share * judged.cost.mean();
                    of_caps += share * (judged.cost.mean() - uncapped.cost.mean());
                    let always = expected.always.iter_mut().zip(&judged.always);
                    always.for_each(|(sum, cost)| *sum += share * cost.mean());
                }
                // No row of the source is held out.
                _ => {
                    let [low, high] = policy.costs_of(source);
                    let taken = policy.taken(source);
                    known |= low == high;
                    slack += share * taken.mean(|action| high[action] - low[action]);
                    expected.router += share * taken.mean(|action| high[action]);
                    expected.always.iter_mut().zip(high).for_each(|(sum, cost)| *sum += share * cost);
                    // Its queries show which actions caps or missing routes gave instead.
                    for (moved, share) in self.moves_of(policy, source) {
                        let change = |costs: &[f64]| share * (costs[moved[1]] - costs[moved[0]]);
                        expected.router += change(high);
                        of_caps += change(high);
                        slack += change(high) - change(low);
                    }
                }
            }
        }
        if !known {
            return None;
        }
        let means = |within: Option<Within<'_>>, all: &[Option<Judged>]| -> Vec<f64> {
            let mean = |of: &Vec<Option<Judged>>| {
                let mut sums = WeightedSums::default();
                for &source in shares.keys() {
                    let found = of[source as usize].as_ref().or(all[source as usize].as_ref());
                    sums.add_scaled(found.map_or(&WeightedSums::default(), |judged| &judged.cost), factor(source));
                }
                sums.mean()
            };
            policy.judge_sources_without_groups(within).iter().map(mean).collect()
        };
        let parts: Vec<usize> = policy.held_out().all_parts().collect();
        let weigh = |source: u32, routed: f64| [factor(source), factor(source) * routed];
        expected.open = with_slack(policy.open_under(&parts, within, &weigh), slack);
        expected.add_errors(policy, &factor, within, &|within| match within {
            Some(_) => means(within, &judged),
            None => means(None, &uncapped),
        });
        expected.caps = within.and(expected.caps).map(|error| CostOfCaps { cost: of_caps, ..error });
        Some(expected)
    }
}

/// Expected costs of queries: of the actions taken, and of each action taken always.
struct Expected {
    router: f64,
    always: Vec<f64>,
    error: f64,
    /// The distances to the bounds if labels do not identify the cost.
    open: Option<[f64; 2]>,
    /// What caps cost, if there are any.
    caps: Option<CostOfCaps>,
}

/// What caps cost per query.
#[derive(Clone, Copy)]
struct CostOfCaps {
    cost: f64,
    error: Option<f64>,
    /// The distances to the bounds if labels do not identify the cost.
    open: Option<[f64; 2]>,
}

impl Expected {
    fn new(policy: &Policy) -> Self {
        Self { router: 0.0, always: vec![0.0; policy.actions()], error: f64::NAN, open: None, caps: None }
    }

    /// Adds the standard errors of the router's cost and of what caps cost. `means` are the mean costs without each jackknife group.
    fn add_errors(
        &mut self,
        policy: &Policy,
        factor: &dyn Fn(u32) -> f64,
        within: Option<Within<'_>>,
        means: &dyn Fn(Option<Within<'_>>) -> Vec<f64>,
    ) {
        let share = policy.jackknife_share();
        let error = |rows: &mut dyn Iterator<Item = [f64; 3]>, means: &[f64]| {
            let mut sums = WeightedSums::default();
            rows.for_each(|[weight, cost, influence]| sums.add_with(weight, cost, influence));
            with_jackknife(sums.standard_error(), means, share)
        };
        let (rows, own_means) = (policy.costs_of_rows(factor, within), means(within));
        self.error = error(&mut rows.iter().copied(), &own_means);
        if within.is_none() {
            return;
        }
        let (uncapped, uncapped_means) = (policy.costs_of_rows(factor, None), means(None));
        let minus = |([weight, cost, influence], other): (&[f64; 3], &[f64; 3])| {
            [*weight, cost - other[1], influence - other[2]]
        };
        let differences: Vec<f64> = own_means.iter().zip(&uncapped_means).map(|(own, other)| own - other).collect();
        let error = error(&mut rows.iter().zip(&uncapped).map(minus), &differences);
        // Caps move some rows away from Bayes-optimal oracles, and may move others to them.
        let parts: Vec<usize> = policy.held_out().all_parts().collect();
        let open = |within: Option<Within<'_>>| {
            let weigh = |source: u32, routed: f64| [factor(source), factor(source) * routed];
            policy.open_under(&parts, within, &weigh)
        };
        let open = open(None).map(|[low, high]| {
            let [with_low, with_high] = open(within).unwrap_or_default();
            let ends = [with_low - low, with_high - high];
            [ends[0].min(ends[1]).min(0.0), ends[0].max(ends[1]).max(0.0)]
        });
        self.caps = Some(CostOfCaps { cost: f64::NAN, error: Some(error).filter(|error| error.is_finite()), open });
    }
}

impl OwnCosts {
    /// The queries' own costs, which are estimated from all calibration rows, corrected by the bias of such costs on out-of-bag rows; `None` if
    /// the costs of all are only bounded. Caps assign out-of-bag rows to actions as they do queries.
    fn expected(&self, policy: &Policy, rooms: &Rooms, all: f64) -> Option<Expected> {
        if !self.known {
            return None;
        }
        let within = (!rooms.is_empty()).then_some(Within { rooms, factor: &|_| 1.0 });
        let Some((judged, uncapped)) = policy.judge_rows_within(within).zip(policy.judge_rows()) else {
            let always = self.always.iter().map(|sum| sum / all).collect();
            let open = with_slack(None, self.slack / all);
            return Some(Expected { router: self.router / all, always, open, ..Expected::new(policy) });
        };
        let bias = |observed: &WeightedSums, expected: f64| observed.mean() - expected / observed.weight;
        let always = self.always.iter().zip(judged.always.iter().zip(&judged.expected_always));
        let of_router = bias(&judged.cost, judged.expected);
        let mut expected = Expected {
            router: self.router / all + of_router,
            always: always.map(|(sum, (observed, expected))| sum / all + bias(observed, *expected)).collect(),
            ..Expected::new(policy)
        };
        let parts = policy.held_out().parts();
        expected.open = with_slack(policy.open_under(&parts, within, &|_, routed| [1.0, routed]), self.slack / all);
        expected.add_errors(policy, &|_| 1.0, within, &|within| policy.mean_costs_without_groups(within));
        let of_caps = self.capped / all + of_router - bias(&uncapped.cost, uncapped.expected);
        expected.caps = expected.caps.map(|error| CostOfCaps { cost: of_caps, ..error });
        Some(expected)
    }
}

/// The decision on queries of one verdict, if a cap assigned the action `moved`.
fn decided(policy: &Policy, (verdict, moved): (Verdict, Option<u8>)) -> Decision<'_> {
    Decision { moved, ..policy.decision(verdict) }
}
