//! Counts and expected costs of many decisions.

use std::collections::BTreeMap;

use super::promise::{CostOfRow, Factors, Judged, Within, with_jackknife, with_slack};
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
    /// The extra cost of caps, and how much less and more it may be.
    capped: [f64; 3],
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
    /// which the caps assign to actions as well; by the estimates that decide if they move none of them. Those choose the queries whose savings they
    /// overestimate, so the sum of the differences that they see may be too high. Where labels only bound a cost, its upper bound counts.
    pub cost: f64,
    /// The standard error of the increase; `None` if caps move no held-out rows.
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
    /// The standard error of the router's cost: that of a [`Promise`](super::Promise) whose rows are weighted like the queries in their cells;
    /// of a forest, only where caps move some. NaN if there is one calibration row.
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
                capped: [0.0; 3],
                reasons: [0; Reason::ALL.len()],
            });
            for row in 0..decisions.len() {
                let decision = policy.row(decisions, row);
                own.taken[decision.code().unwrap_or(actions)] += 1;
                let [low, high] = [decision.costs(), decision.costs_high()];
                let [action, _] = decision.counted_actions(&decisions.rooms);
                own.router += high[action];
                own.slack += high[action] - low[action];
                own.always.iter_mut().zip(high).for_each(|(sum, cost)| *sum += cost);
                own.known |= low == high;
                own.capped.iter_mut().zip(decision.extra_cost(&decisions.rooms)).for_each(|(sum, extra)| *sum += extra);
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
            let of_batch = |action: usize| {
                let takes = |row: &usize| policy.row(decisions, *row).code() == Some(action);
                (0..decisions.len()).filter(takes).count() as f64 / added.max(1) as f64
            };
            // The counts include this batch.
            let taken = |action: usize| {
                let of_batch = of_batch(action);
                let before_it = self.taken(policy, action) - of_batch * added as f64;
                [before_it / before.max(1) as f64, of_batch]
            };
            self.rooms = self.rooms.beside(&decisions.rooms, before as f64 / self.rows as f64, taken);
        }
    }

    /// The number of queries that take an action.
    fn taken(&self, policy: &Policy, action: usize) -> f64 {
        match &self.own {
            Some(own) => own.taken[action] as f64,
            None => {
                let takes = |alike: &(Verdict, Option<u8>)| decided(policy, *alike).code() == Some(action);
                self.counts.iter().filter(|(alike, _)| takes(alike)).map(|(_, &n)| n as f64).sum()
            }
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
            Some(own) => self.expected_of_forest(policy, own),
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
        let of_caps = of_caps.unwrap_or_else(|| {
            let by_estimates = |place: usize| match &self.own {
                Some(own) => own.capped[place] / all,
                None => mean(&|d| d.extra_cost(&self.rooms)[place]),
            };
            let [cost, less, more] = [0, 1, 2].map(by_estimates);
            CostOfCaps { cost, error: None, open: widened(None, [less, more]), slack: [0.0; 2] }
        });
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
        let CostOfCaps { cost, error, open, .. } = of_caps;
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

    /// The decisions on the queries of a source, with their shares of all queries.
    fn decisions_of<'p>(&self, policy: &'p Policy, source: u32) -> impl Iterator<Item = (Decision<'p>, f64)> {
        let of_source = self.counts.iter().filter(move |((verdict, _), _)| policy.unfold(*verdict).1 == source);
        of_source.map(move |(&alike, &n)| (decided(policy, alike), n as f64 / self.rows as f64))
    }

    /// Expected costs from the held-out rows of each cell; `None` if the costs of all are only bounded. Caps assign held-out rows to actions,
    /// weighted like the queries, by the estimates that decide these rows. Random draws do not matter: held-out rows are evaluated with their
    /// probabilities.
    fn expected(&self, policy: &Policy) -> Option<Expected> {
        let shares = self.shares_by_source(policy);
        let uncapped = policy.judge_sources(None);
        let factors = factors_of_sources(&uncapped, &shares);
        let factor = |source: u32| factors[source as usize];
        let within = (!self.rooms.is_empty()).then_some(Within { rooms: &self.rooms, factor: &factor });
        let judged = if within.is_some() { policy.judge_sources(within) } else { uncapped.clone() };
        let mut expected = Expected::new(policy);
        // The last is what caps add where no row is held out.
        let (mut slack, mut known, mut of_caps, mut unseen) = (0.0, false, 0.0, [0.0; 3]);
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
                    for (decision, share) in self.decisions_of(policy, source) {
                        let [taken, wanted] = decision.counted_actions(&self.rooms);
                        let change = |costs: &[f64]| share * (costs[taken] - costs[wanted]);
                        expected.router += change(high);
                        slack += change(high) - change(low);
                        let extra = policy.difference([low, high], taken, wanted);
                        unseen.iter_mut().zip(extra).for_each(|(sum, extra)| *sum += share * extra);
                    }
                }
            }
        }
        if !known {
            return None;
        }
        let parts: Vec<usize> = policy.held_out().all_parts().collect();
        expected.open = with_slack(policy.open_under(&parts, within, &factor), slack);
        let [cost, less, more] = unseen;
        expected.add_errors(policy, &factor, within, [&judged, &uncapped]);
        let with_unseen = |caps: CostOfCaps| CostOfCaps {
            cost: of_caps + cost,
            open: widened(caps.open, [caps.slack[0] + less, caps.slack[1] + more]),
            ..caps
        };
        expected.caps = expected.caps.map(with_unseen);
        Some(expected)
    }

    /// The queries' own costs, which are estimated from all calibration rows, corrected by the bias of such costs on out-of-bag rows; `None` if
    /// the costs of all are only bounded. Caps assign out-of-bag rows to actions as they do queries, like which they are weighted by cells.
    /// Without caps they are not: the labels of the rows shaped the cells, so weights by cells make costs too low. In the difference that caps
    /// make, this cancels.
    fn expected_of_forest(&self, policy: &Policy, own: &OwnCosts) -> Option<Expected> {
        if !own.known {
            return None;
        }
        let all = self.rows as f64;
        let uncapped = policy.judge_sources(None);
        let factors = factors_of_sources(&uncapped, &self.shares_by_source(policy));
        // If no query is in a cell with out-of-bag rows, all of them count.
        let has_rows = factors.iter().any(|factor| *factor > 0.0);
        let is_weighted = has_rows && !self.rooms.is_empty();
        let factor = |source: u32| if is_weighted { factors[source as usize] } else { 1.0 };
        let slack = own.slack / all;
        if uncapped.iter().all(Option::is_none) {
            let always = own.always.iter().map(|sum| sum / all).collect();
            let open = with_slack(None, slack);
            return Some(Expected { router: own.router / all, always, open, ..Expected::new(policy) });
        }
        let within = (!self.rooms.is_empty()).then_some(Within { rooms: &self.rooms, factor: &factor });
        let judged = if within.is_some() { policy.judge_sources(within) } else { uncapped.clone() };
        let bias = |judged: &[Option<Judged>], factor: Factors<'_>, of: &dyn Fn(&Judged) -> (WeightedSums, f64)| {
            let (mut weight, mut sum) = (0.0, 0.0);
            for (source, judged) in (0..).zip(judged).filter_map(|(source, judged)| Some((source, judged.as_ref()?))) {
                let (observed, expected) = of(judged);
                weight += factor(source) * observed.weight;
                sum += factor(source) * (observed.sum - expected);
            }
            sum / weight
        };
        let of_router = |judged: &[Option<Judged>], factor: Factors<'_>| {
            bias(judged, factor, &|judged| (judged.cost, judged.expected))
        };
        let bias_of_caps = of_router(&judged, &factor) - of_router(&uncapped, &factor);
        let always = own.always.iter().enumerate().map(|(action, sum)| {
            sum / all + bias(&uncapped, &|_| 1.0, &|judged| (judged.always[action], judged.expected_always[action]))
        });
        let router = own.router / all + of_router(&uncapped, &|_| 1.0) + bias_of_caps;
        let mut expected = Expected { router, always: always.collect(), ..Expected::new(policy) };
        expected.open = with_slack(policy.open_under(&policy.held_out().parts(), within, &factor), slack);
        expected.add_errors(policy, &factor, within, [&judged, &uncapped]);
        let [cost, less, more] = own.capped.map(|sum| sum / all);
        let with_own =
            |caps: CostOfCaps| CostOfCaps { cost: cost + bias_of_caps, open: widened(caps.open, [less, more]), ..caps };
        expected.caps = expected.caps.map(with_own);
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
    /// The distances to the bounds if labels do not identify the irreducible loss of routed rows.
    open: Option<[f64; 2]>,
    /// How much less and more it may be where labels only bound the costs of rows.
    slack: [f64; 2],
}

impl Expected {
    fn new(policy: &Policy) -> Self {
        Self { router: 0.0, always: vec![0.0; policy.actions()], error: f64::NAN, open: None, caps: None }
    }

    /// Adds the standard errors of the router's cost and, if caps move held-out rows, of what they cost, which is NaN itself. `judged` are the
    /// held-out rows of each source within the caps, and without them.
    fn add_errors(
        &mut self,
        policy: &Policy,
        factor: Factors<'_>,
        within: Option<Within<'_>>,
        [judged, uncapped]: [&[Option<Judged>]; 2],
    ) {
        let share = policy.jackknife_share();
        let error = |rows: &mut dyn Iterator<Item = CostOfRow>, means: &[f64]| {
            let mut sums = WeightedSums::default();
            rows.for_each(|row| sums.add_with(row.weight, row.cost, row.influence));
            with_jackknife(sums.standard_error(), means, share)
        };
        let own_means = means_without_groups(policy, factor, within, judged);
        let rows = policy.costs_of_rows(factor, within);
        self.error = error(&mut rows.iter().copied(), &own_means);
        let Some(within) = within else { return };
        let minus = |(own, other): (&CostOfRow, CostOfRow)| CostOfRow {
            cost: own.cost - other.cost,
            influence: own.influence - other.influence,
            slack: own.slack - other.slack,
            ..*own
        };
        let changes: Vec<CostOfRow> = rows.iter().zip(policy.costs_of_rows(factor, None)).map(minus).collect();
        let rounding = ROUNDING_OF_PARTS * rows.iter().map(|row| row.cost.abs()).fold(0.0, f64::max);
        let is_moved = |row: &CostOfRow| row.weight > 0.0 && row.cost.abs().max(row.slack.abs()) > rounding;
        if !changes.iter().any(is_moved) {
            return;
        }
        let uncapped_means = means_without_groups(policy, factor, None, uncapped);
        let differences: Vec<f64> = own_means.iter().zip(&uncapped_means).map(|(own, other)| own - other).collect();
        let error = error(&mut changes.iter().copied(), &differences);
        let part = |sign: f64| changes.iter().map(|row| row.weight * (sign * row.slack).max(0.0)).sum::<f64>();
        let parts: Vec<usize> = policy.held_out().all_parts().collect();
        self.caps = Some(CostOfCaps {
            cost: f64::NAN,
            error: Some(error).filter(|error| error.is_finite()),
            open: policy.open_difference(&parts, within, factor),
            // The upper ends of costs count: a row that caps move to bounded costs may cost less, one that they move from there more.
            slack: [part(1.0), part(-1.0)],
        });
    }
}

/// The factors of the weights of held-out rows by which the rows of each source are weighted like its queries; zero without queries, not a
/// number without rows.
fn factors_of_sources(judged: &[Option<Judged>], shares: &BTreeMap<u32, f64>) -> Vec<f64> {
    let mut factors = vec![0.0; judged.len()];
    for (&source, share) in shares {
        factors[source as usize] = judged[source as usize].as_ref().map_or(f64::NAN, |own| share / own.cost.weight);
    }
    factors
}

/// Parts of held-out rows are assigned in units of 2⁻⁴⁰; smaller changes, in relation to the largest cost, are rounding.
const ROUNDING_OF_PARTS: f64 = 1e-9;

/// The mean cost with each jackknife group of rows deleted in turn. A source that has no other rows keeps them.
fn means_without_groups(
    policy: &Policy,
    factor: Factors<'_>,
    within: Option<Within<'_>>,
    all: &[Option<Judged>],
) -> Vec<f64> {
    let mean = |rest: Vec<Option<Judged>>| {
        let mut sums = WeightedSums::default();
        for (source, (rest, all)) in (0..).zip(rest.iter().zip(all)).filter(|(source, _)| factor(*source) > 0.0) {
            if let Some(judged) = rest.as_ref().or(all.as_ref()) {
                sums.add_scaled(&judged.cost, factor(source));
            }
        }
        sums.mean()
    };
    policy.judge_sources_without_groups(within).into_iter().map(mean).collect()
}

/// The distances to the bounds, further apart by some amounts.
fn widened(open: Option<[f64; 2]>, [less, more]: [f64; 2]) -> Option<[f64; 2]> {
    if less <= 0.0 && more <= 0.0 {
        return open;
    }
    let [low, high] = open.unwrap_or_default();
    Some([low - less, high + more])
}

/// The decision on queries of one verdict, if a cap assigned the action `moved`.
fn decided(policy: &Policy, (verdict, moved): (Verdict, Option<u8>)) -> Decision<'_> {
    Decision { moved, ..policy.decision(verdict) }
}
