//! Counts and expected costs of many decisions.

use std::collections::BTreeMap;

use super::promise::{JACKKNIFE_SHARE_OF_CELLS, Judged, with_jackknife, with_slack};
use super::{Decision, Decisions, MixedAction, Policy, Reason, Verdict};
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
    /// The increase of the expected cost per query, over all queries.
    pub cost: f64,
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
        self.rows += verdicts.len() as u64;
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
            self.counts.iter().map(|(&alike, &n)| value(decided(policy, alike)) * (n as f64 / all)).sum()
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
            Some(own) => own.expected(policy, all),
            None => self.expected(policy),
        };
        let (mut costs, mut standard_error, mut identified) = (None, None, None);
        if let Some(Expected { router, always, error, open }) = expected {
            let named = names.iter().map(|name| format!("always-{name}")).zip(always);
            costs = Some([("router".to_owned(), router)].into_iter().chain(named).collect());
            standard_error = Some(error);
            identified = open.map(|ends| ends.map(|end| router + end));
        }
        let cost = self.own.as_ref().map_or_else(|| mean(&|d| d.cost_of_cap()), |own| own.capped / all);
        let capped = self.capped(&names, cost);
        let rows = self.rows;
        TallySummary { rows, shares, expected_cost: costs, standard_error, identified, support, reasons, capped }
    }

    fn capped(&self, names: &[String], cost: f64) -> Option<CappedSummary> {
        let mut to = vec![0; names.len()];
        for ((_, code), n) in &self.counts {
            if let Some(code) = code {
                to[usize::from(*code)] += n;
            }
        }
        let moved = to.iter().sum();
        let to = names.iter().cloned().zip(to).filter(|(_, n)| *n > 0).collect();
        (moved > 0).then_some(CappedSummary { moved, to, cost })
    }

    /// The share of the queries per source, and per action to which a cap moved them. Random draws do not matter: held-out rows are
    /// evaluated with their probabilities.
    fn shares_by_source(&self, policy: &Policy) -> BTreeMap<(u32, Option<u8>), f64> {
        let mut shares = BTreeMap::new();
        for (&(verdict, moved), &n) in &self.counts {
            *shares.entry((policy.unfold(verdict).1, moved)).or_default() += n as f64 / self.rows as f64;
        }
        shares
    }

    /// Expected costs from the held-out rows of each cell; `None` if the costs of all are only bounded.
    fn expected(&self, policy: &Policy) -> Option<Expected> {
        let judged = policy.judge_sources();
        let mut expected = Expected { router: 0.0, always: vec![0.0; policy.actions()], error: 0.0, open: None };
        let shares = self.shares_by_source(policy);
        let (mut slack, mut known) = (0.0, false);
        for (&(source, moved), share) in &shares {
            match &judged[source as usize] {
                Some(judged) => {
                    known |= judged.known > 0.0;
                    slack += share * judged.slack_of(moved);
                    expected.router += share * judged.taken(moved).mean();
                    let always = expected.always.iter_mut().zip(&judged.always);
                    always.for_each(|(sum, cost)| *sum += share * cost.mean());
                }
                // No row of the source is held out.
                None => {
                    let [low, high] = policy.costs_of(source);
                    let taken = moved.map_or_else(|| policy.taken(source), |code| MixedAction::always(code.into()));
                    known |= low == high;
                    slack += share * taken.mean(|action| high[action] - low[action]);
                    expected.router += share * taken.mean(|action| high[action]);
                    expected.always.iter_mut().zip(high).for_each(|(sum, cost)| *sum += share * cost);
                }
            }
        }
        if !known {
            return None;
        }
        // The rows of a source are weighted like its queries.
        let mut factors: Vec<Vec<(Option<u8>, f64)>> = vec![Vec::new(); judged.len()];
        for (&(source, moved), share) in &shares {
            let weight = judged[source as usize].as_ref().map_or(f64::NAN, |judged| judged.cost.weight);
            factors[source as usize].push((moved, share / weight));
        }
        let sums = |of: &[Option<Judged>]| {
            let mut sums = WeightedSums::default();
            for (source, factors) in factors.iter().enumerate() {
                let found = of[source].as_ref().or(judged[source].as_ref());
                for &(moved, factor) in factors {
                    sums.add_scaled(found.map_or(&WeightedSums::default(), |judged| judged.taken(moved)), factor);
                }
            }
            sums
        };
        let without = policy.judge_sources_without_groups();
        let means: Vec<f64> = without.iter().map(|judged| sums(judged).mean()).collect();
        let of_rows = policy.influence_of_sources(&|source| &factors[source as usize]);
        expected.error = with_jackknife(of_rows.standard_error(), &means, JACKKNIFE_SHARE_OF_CELLS);
        let parts: Vec<usize> = policy.held_out().all_parts().collect();
        let open = policy.open_under(&parts, &|source, own| {
            factors[source as usize].iter().fold([0.0; 2], |[all, routed], (moved, factor)| {
                let taken = moved.map_or(own, |code| MixedAction::always(code.into()));
                [all + factor, routed + factor * taken.mean(|action| policy.bayes_part(action))]
            })
        });
        expected.open = with_slack(open, slack);
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
}

impl OwnCosts {
    /// The queries' own costs, which are estimated from all calibration rows, corrected by the bias of such costs on out-of-bag rows; `None` if
    /// the costs of all are only bounded.
    fn expected(&self, policy: &Policy, all: f64) -> Option<Expected> {
        if !self.known {
            return None;
        }
        let Some(judged) = policy.judge_rows() else {
            let always = self.always.iter().map(|sum| sum / all).collect();
            let open = with_slack(None, self.slack / all);
            return Some(Expected { router: self.router / all, always, error: f64::NAN, open });
        };
        let bias = |observed: &WeightedSums, expected: f64| observed.mean() - expected / observed.weight;
        let always = self.always.iter().zip(judged.always.iter().zip(&judged.expected_always));
        Some(Expected {
            router: self.router / all + bias(&judged.cost, judged.expected),
            always: always.map(|(sum, (observed, expected))| sum / all + bias(observed, *expected)).collect(),
            error: policy.standard_errors()[0],
            open: with_slack(policy.open(), self.slack / all),
        })
    }
}

/// The decision on queries of one verdict, if a cap assigned the action `moved`.
fn decided(policy: &Policy, (verdict, moved): (Verdict, Option<u8>)) -> Decision<'_> {
    Decision { moved, ..policy.decision(verdict) }
}
