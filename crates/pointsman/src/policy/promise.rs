//! The cost and loss that a policy is expected to have on new queries like the calibration rows.

use std::collections::BTreeMap;

use super::cutoff::{Cutoff, Unit};
use super::held_out::HeldOut;
use super::{ActionParts, MixedAction, Policy, Rooms, WantedActions};
use crate::estimate::{Imputation, OracleLoss, RowVotes};
use crate::numeric::weighted::{WeightedSums, weighted_mean};
use crate::task::Limit;
use crate::task::Named;

/// The weight of the jackknife's variance in standard errors, with cells and with a forest, where most queries have leaves of their own and
/// one row changes few decisions.
const JACKKNIFE_SHARE_OF_CELLS: f64 = 0.5;
const JACKKNIFE_SHARE_OF_FORESTS: f64 = 0.25;

/// The expected cost and loss of a policy on new queries like the calibration rows, estimated from held-out rows: by cross-fitting for
/// cells, out of bag for forests.
///
/// The costs of single decisions ([`Decision::costs`](super::Decision::costs)) are estimated from all rows. The least of several estimates
/// is too low on average (the winner's curse), so the mean cost of decisions is biased; this estimate is not.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Promise {
    /// Expected cost per query.
    pub cost: f64,
    /// Its standard error; not a number if there is one row. That losses of Bayes-optimal routes on items with one label come from other items
    /// is included; that those of panels do is not.
    pub standard_error: f64,
    /// The bounds on the cost that the labels identify with any number of rows: k labels per item do not identify the loss of a
    /// Bayes-optimal oracle, except under the Brier loss. The cost lies within; the standard error comes on top. `None` if the labels
    /// identify it.
    pub identified: Option<[f64; 2]>,
    /// Expected loss per query, prices of routes left out; abstaining loses its price.
    pub loss: f64,
    /// Its standard error.
    pub loss_standard_error: f64,
    /// The bounds on the loss that the labels identify.
    pub loss_identified: Option<[f64; 2]>,
    /// The share of the queries that each action gets; `undetermined` is listed only if there are any.
    pub shares: Named<f64>,
    /// Expected cost per query of each action taken always.
    pub always: Named<f64>,
}

/// Costs and losses of the held-out rows of one source, or of all, under a policy.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The cost and the loss of the policy's actions, by the rows' labels.
    pub(super) cost: WeightedSums,
    pub(super) loss: WeightedSums,
    /// The cost of each action, taken always.
    pub(super) always: Vec<WeightedSums>,
    /// The same costs as expected by the estimates that decide the rows.
    pub(super) expected: f64,
    pub(super) expected_always: Vec<f64>,
    /// The width of the bounds where labels only bound the costs of the policy's actions.
    pub(super) slack: f64,
    /// The weight of rows whose costs are known and not only bounded.
    pub(super) known: f64,
}

impl Judged {
    fn new(actions: usize) -> Self {
        let (cost, loss, always) =
            (WeightedSums::default(), WeightedSums::default(), vec![WeightedSums::default(); actions]);
        Self { cost, loss, always, expected: 0.0, expected_always: vec![0.0; actions], slack: 0.0, known: 0.0 }
    }

    fn add(&mut self, row: &JudgedRow) {
        let weight = row.weight;
        self.cost.add(weight, row.taken.cost);
        self.loss.add(weight, row.loss);
        self.expected += weight * row.taken.expected;
        self.slack += weight * row.taken.slack;
        self.known += weight * row.known;
        for (action, costs) in row.always.iter().enumerate() {
            self.always[action].add(weight, costs.cost);
            self.expected_always[action] += weight * costs.expected;
        }
    }

    /// The mean width of the bounds on the cost.
    pub(super) fn mean_slack(&self) -> f64 {
        self.slack / self.cost.weight
    }
}

/// The cost of an action on a row: by the row's labels, as expected by the estimates that decide it, and the width of the bounds on that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowCosts {
    pub(super) cost: f64,
    expected: f64,
    pub(super) slack: f64,
}

impl RowCosts {
    fn add(&mut self, other: &Self, part: f64) {
        self.cost += part * other.cost;
        self.expected += part * other.expected;
        self.slack += part * other.slack;
    }
}

/// What a held-out row contributes to the cost of traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostOfRow {
    pub(super) weight: f64,
    pub(super) cost: f64,
    /// What the row adds to the costs of other rows.
    pub(super) influence: f64,
    /// The width of the bounds on the cost.
    pub(super) slack: f64,
}

/// A held-out row of one source.
#[derive(Debug, Clone)]
pub(super) struct JudgedRow {
    source: u32,
    pub(super) row: u32,
    pub(super) weight: f64,
    /// Of the policy's action, and of each action.
    pub(super) taken: RowCosts,
    always: Vec<RowCosts>,
    loss: f64,
    /// One if its costs are known, zero if they are only bounded.
    known: f64,
    /// The part of it that is routed to a Bayes-optimal oracle, and its irreducible loss.
    pub(super) routed: f64,
    pub(super) irreducible: f64,
}

impl JudgedRow {
    /// The mean over several decisions on one row.
    fn mean(times: &[Self]) -> Self {
        let part = 1.0 / times.len() as f64;
        let always = vec![RowCosts::default(); times[0].always.len()];
        let none = Self {
            taken: RowCosts::default(),
            always,
            loss: 0.0,
            known: 0.0,
            routed: 0.0,
            irreducible: 0.0,
            ..times[0]
        };
        times.iter().fold(none, |mut mean, other| {
            mean.taken.add(&other.taken, part);
            mean.always.iter_mut().zip(&other.always).for_each(|(sum, costs)| sum.add(costs, part));
            mean.loss += part * other.loss;
            mean.known += part * other.known;
            mean.routed += part * other.routed;
            mean.irreducible += part * other.irreducible;
            mean
        })
    }
}

impl Policy {
    /// The expected cost on new queries like the calibration rows, with standard errors; `None` if it cannot be estimated, from one label
    /// per item or from a single row.
    ///
    /// If labels only bound the cost of a route for some of the rows, the upper bound counts, and [`Promise::identified`] includes the lower
    /// one. Rows without a determined action count as the cheapest action whose cost is known.
    ///
    /// The first call estimates every cell several times, each time without some of the rows. Later calls, also of policies repriced from
    /// this one, only decide and sum.
    ///
    /// ```
    /// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
    /// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.7, 0.3])?.with_votes(vec![5, 0, 2, 3, 3, 2])?;
    /// let router = Router::calibrate(&table, &Partition::top_class(1))?;
    /// let policy = router.policy(&Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?)?;
    /// let promise = policy.promise().expect("several labels per item");
    /// println!("{:.3} ± {:.3} per query", promise.cost, promise.standard_error);
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// A policy without calibration rows gives the promise that was made when it was compiled, and none at other prices.
    #[must_use]
    pub fn promise(&self) -> Option<Promise> {
        if let Some(figures) = &self.figures {
            return figures.promise.clone();
        }
        let judged = self.judge_rows().filter(|judged| judged.known > 0.0)?;
        let always = self.task.action_names().into_iter().zip(judged.always.iter().map(WeightedSums::mean)).collect();
        let (cost, loss) = (judged.cost.mean(), judged.loss.mean());
        let open = with_slack(self.open(), judged.mean_slack());
        let [standard_error, loss_standard_error] = self.standard_errors();
        Some(Promise {
            cost,
            standard_error,
            identified: open.map(|ends| ends.map(|end| cost + end)),
            loss,
            loss_standard_error,
            loss_identified: open.map(|ends| ends.map(|end| loss + end)),
            shares: self.shares(),
            always,
        })
    }

    /// The cost of [`promise`](Self::promise) alone, without the work for its standard error.
    #[must_use]
    pub fn promised_cost(&self) -> Option<f64> {
        if let Some(figures) = &self.figures {
            return figures.promise.as_ref().map(|promise| promise.cost);
        }
        self.judge_rows().filter(|judged| judged.known > 0.0).map(|judged| judged.cost.mean())
    }

    /// The distances from the expected cost to its bounds, because labels do not identify the irreducible loss of routed rows. `None` if the
    /// labels identify it.
    pub(super) fn open(&self) -> Option<[f64; 2]> {
        self.open_under(&self.held_out().parts(), None, &|_| 1.0)
    }

    /// The same with other weights of the rows.
    pub(super) fn open_under(
        &self,
        parts: &[usize],
        within: Option<Within<'_>>,
        factor: Factors<'_>,
    ) -> Option<[f64; 2]> {
        let (routed, routed_means) = self.routed_parts(parts, within);
        self.open_if_routed(parts, &routed, routed_means.as_ref(), factor)
    }

    /// The distances to the bounds on what caps or missing routes add to the cost. Rows that are routed to a Bayes-optimal oracle only because of
    /// them and rows that are not routed to one because of them have independent bounds.
    pub(super) fn open_difference(&self, parts: &[usize], within: Within<'_>, factor: Factors<'_>) -> Option<[f64; 2]> {
        let [(with, means_with), (without, means_without)] =
            [Some(within), None].map(|within| self.routed_parts(parts, within));
        let beyond = |one: &[f64], other: &[f64]| -> Vec<f64> {
            one.iter().zip(other).map(|(one, other)| (one - other).max(0.0)).collect()
        };
        let more = self.open_if_routed(parts, &beyond(&with, &without), means_with.as_ref(), factor);
        let less = self.open_if_routed(parts, &beyond(&without, &with), means_without.as_ref(), factor);
        let ([more, less], is_open) = ([more, less].map(Option::unwrap_or_default), more.or(less).is_some());
        is_open.then_some([more[0] - less[1], more[1] - less[0]])
    }

    /// The part of each of these parts that is routed to a Bayes-optimal oracle.
    fn routed_parts(&self, parts: &[usize], within: Option<Within<'_>>) -> (Vec<f64>, Option<RoutedMeans<'_>>) {
        let (actions, routed_means) = self.decided(self.held_out(), parts, within);
        let routed = |(_, taken): &(bool, Taken)| taken.mean(|action| self.bayes_part(action));
        (actions.iter().map(routed).collect(), routed_means)
    }

    /// The distances to the bounds if these parts of the parts are routed to a Bayes-optimal oracle.
    fn open_if_routed(
        &self,
        parts: &[usize],
        routed: &[f64],
        routed_means: Option<&RoutedMeans<'_>>,
        factor: Factors<'_>,
    ) -> Option<[f64; 2]> {
        let (held_out, table) = (self.held_out(), self.router()?.rows());
        let votes = self.estimates.votes.get_or_init(|| RowVotes::from_table(table, &self.estimates.loss)).as_ref()?;
        // Source, row, both factors and irreducible loss if routed; a row may be decided several times.
        let mut decided = Vec::new();
        for (&part, &routed) in parts.iter().zip(routed) {
            let source = held_out.source(part);
            let all = factor(source);
            let routed = all * routed;
            for (&row, (_, losses)) in held_out.numbers(part).iter().zip(held_out.rows(part)) {
                let own = losses.irreducible[1];
                let found = routed_means.map_or(own, |means| means.irreducible(row, held_out.fold(part), own));
                decided.push((source, row, all, routed, found));
            }
        }
        decided.sort_by_key(|&(source, row, ..)| (row, source));
        let (mut sum, mut estimates) = (0.0, Vec::new());
        for times in decided.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (row, count) = (times[0].1 as usize, times.len() as f64);
            let weight = table.weight(row) / count;
            let of_routed = weighted_mean(times.iter().map(|&(.., routed, found)| (routed, found)));
            sum += weight * times.iter().map(|it| it.2).sum::<f64>();
            let routed: f64 = times.iter().map(|it| it.3).sum();
            estimates.push((row, weight * routed, if routed > 0.0 { of_routed } else { 0.0 }));
        }
        votes.open(&estimates, sum, &self.estimates.loss)
    }

    /// The standard errors of the mean cost and the mean loss.
    ///
    /// The variance over rows ignores that decisions depend on the rows, and one row can change the decision on its whole cell. The
    /// delete-a-group jackknife decides anew each time, but overstates the variance of a statistic that is not smooth. The truth lies between
    /// them, so a weighted mean of both variances is used.
    pub(super) fn standard_errors(&self) -> [f64; 2] {
        let without: Vec<Judged> = self
            .held_out_without_groups()
            .iter()
            .filter_map(|held_out| self.judge(held_out, &held_out.parts(), None, |_| 0).pop())
            .collect();
        let share = self.jackknife_share();
        let rows = self.judged_rows(self.held_out(), &self.held_out().parts(), None);
        let influence = self.imputation_influence(&rows, &|_| 1.0);
        let of = |sums: fn(&Judged) -> &WeightedSums, value: fn(&JudgedRow) -> f64| {
            let mut of_rows = WeightedSums::default();
            rows.iter()
                .zip(&influence)
                .for_each(|(row, influence)| of_rows.add_with(row.weight, value(row), *influence));
            let means: Vec<f64> = without.iter().map(|judged| sums(judged).mean()).collect();
            with_jackknife(of_rows.standard_error(), &means, share)
        };
        [of(|judged| &judged.cost, |row| row.taken.cost), of(|judged| &judged.loss, |row| row.loss)]
    }

    /// The weight of the jackknife's variance in standard errors.
    pub(super) fn jackknife_share(&self) -> f64 {
        if self.has_forest() { JACKKNIFE_SHARE_OF_FORESTS } else { JACKKNIFE_SHARE_OF_CELLS }
    }

    /// The held-out rows' costs for the standard error of the cost of traffic. `factor` is that of the weights of a source's rows.
    pub(super) fn costs_of_rows(&self, factor: Factors<'_>, within: Option<Within<'_>>) -> Vec<CostOfRow> {
        let rows = self.judged_rows(self.held_out(), &self.held_out().all_parts().collect::<Vec<usize>>(), within);
        let influence = self.imputation_influence(&rows, factor);
        // A row of a source without queries has no weight and counts through the others.
        let of_row = |(row, influence): (&JudgedRow, f64)| CostOfRow {
            weight: factor(row.source) * row.weight,
            cost: row.taken.cost,
            influence,
            slack: row.taken.slack,
        };
        rows.iter().zip(influence).map(of_row).collect()
    }

    /// What each row adds to the weighted sum of costs because rows with one label take their irreducible loss from it, from whatever source.
    ///
    /// A row with one label has the mean irreducible loss of the n rows with several labels in its group, so the labels of each of these count
    /// for 1/n of every such row that is routed as well. Taking these rows as independent would understate the error, the more so the fewer
    /// rows have several labels.
    pub(super) fn imputation_influence(&self, rows: &[JudgedRow], factor: Factors<'_>) -> Vec<f64> {
        let held_out = self.held_out();
        let Some(imputation) = &held_out.imputation else { return vec![0.0; rows.len()] };
        let mut groups = vec![GroupWeights::default(); imputation.groups()];
        let is_donor = |row: &JudgedRow| held_out.is_of_cell(row.source) && !imputation.is_single(row.row as usize);
        // What remains of a loss when its shift by features is subtracted.
        let rest = |row: &JudgedRow| row.irreducible - imputation.shift(row.row as usize);
        for row in rows {
            let group = &mut groups[imputation.group(row.row as usize)];
            if is_donor(row) {
                group.donors.add(row.weight, rest(row));
                group.routed_donors.add(row.weight * row.routed, rest(row));
            } else if imputation.is_single(row.row as usize) {
                group.routed += factor(row.source) * row.weight * row.routed;
            }
        }
        let of_row = |row: &JudgedRow| {
            let group = &groups[imputation.group(row.row as usize)];
            let share_of = |donors: &WeightedSums, weight: f64| weight / donors.weight * (rest(row) - donors.mean());
            row.weight
                * match group.routed_donors.weight > 0.0 {
                    true => row.routed * share_of(&group.routed_donors, group.routed),
                    false => share_of(&group.donors, group.routed),
                }
        };
        rows.iter().map(|row| if is_donor(row) { of_row(row) } else { 0.0 }).collect()
    }

    /// [`judge_sources`](Self::judge_sources) with each jackknife group deleted in turn; without fall-backs.
    pub(super) fn judge_sources_without_groups(&self, within: Option<Within<'_>>) -> Vec<Vec<Option<Judged>>> {
        let of = |held_out: &HeldOut| self.judge_sources_of(held_out, &held_out.parts(), within);
        self.held_out_without_groups().iter().map(of).collect()
    }

    /// One if an action is a route to a Bayes-optimal oracle, else zero.
    pub(crate) fn bayes_part(&self, action: usize) -> f64 {
        let routes = 1..=self.task.routes().len();
        f64::from(u8::from(routes.contains(&action) && self.oracle_loss(action - 1) == OracleLoss::Irreducible))
    }

    /// The costs and losses of the held-out calibration rows; `None` if no row is held out.
    pub(super) fn judge_rows(&self) -> Option<Judged> {
        self.judge(self.held_out(), &self.held_out().parts(), None, |_| 0).pop()
    }

    /// The costs and losses of the held-out rows of each source, cells and fall-backs; `None` for sources without held-out rows.
    pub(super) fn judge_sources(&self, within: Option<Within<'_>>) -> Vec<Option<Judged>> {
        self.judge_sources_of(self.held_out(), &self.held_out().all_parts().collect::<Vec<usize>>(), within)
    }

    fn judge_sources_of(&self, held_out: &HeldOut, parts: &[usize], within: Option<Within<'_>>) -> Vec<Option<Judged>> {
        let mut judged = self.judge(held_out, parts, within, |source| source as usize);
        judged.resize_with(self.codes.len(), || Judged::new(self.actions()));
        judged.into_iter().map(|judged| (judged.cost.weight > 0.0).then_some(judged)).collect()
    }

    /// Decides held-out parts and evaluates them by their labels, for each group of sources.
    pub(super) fn judge(
        &self,
        held_out: &HeldOut,
        parts: &[usize],
        within: Option<Within<'_>>,
        group: impl Fn(u32) -> usize,
    ) -> Vec<Judged> {
        let mut judged: Vec<Judged> = Vec::new();
        for row in self.judged_rows(held_out, parts, within) {
            let at = group(row.source);
            if judged.len() <= at {
                judged.resize_with(at + 1, || Judged::new(self.actions()));
            }
            judged[at].add(&row);
        }
        judged
    }

    /// The rows of held-out parts by source, each with its mean over the decisions on it.
    pub(super) fn judged_rows(
        &self,
        held_out: &HeldOut,
        parts: &[usize],
        within: Option<Within<'_>>,
    ) -> Vec<JudgedRow> {
        let actions = self.actions();
        let (actions_of_parts, routed_means) = self.decided(held_out, parts, within);
        let mut decided: Vec<JudgedRow> = Vec::new();
        let [mut low, mut high] = [(); 2].map(|()| vec![0.0; actions]);
        for (&part, (known, taken)) in parts.iter().zip(actions_of_parts) {
            self.fill_costs(&self.task, held_out.expected(part), &mut low, &mut high);
            let slack = |action: usize| high[action] - low[action];
            let routed = taken.mean(|action| self.bayes_part(action));
            for (&row, (weight, losses)) in held_out.numbers(part).iter().zip(held_out.rows(part)) {
                let cost = |action: usize| {
                    self.cost_of(action, losses.total, losses.irreducible[1], |place| losses.oracles[place][1])
                };
                let paid = |action: usize| self.task.routes().get(action.wrapping_sub(1)).map_or(0.0, |r| r.price());
                // A routed row with one label has the mean of routed rows with several, which may have less noise than the others.
                let own = losses.irreducible[1];
                let found = routed_means.as_ref().map_or(own, |means| means.irreducible(row, held_out.fold(part), own));
                let change = routed * (found - own);
                decided.push(JudgedRow {
                    source: held_out.source(part),
                    row,
                    weight,
                    taken: RowCosts {
                        cost: taken.mean(cost) + change,
                        expected: taken.mean(|action| high[action]),
                        slack: taken.mean(slack),
                    },
                    always: (0..actions)
                        .map(|a| RowCosts { cost: cost(a), expected: high[a], slack: slack(a) })
                        .collect(),
                    loss: taken.mean(|action| cost(action) - paid(action)) + change,
                    known: f64::from(u8::from(known)),
                    routed,
                    irreducible: own,
                });
            }
        }
        decided.sort_by_key(|it| (it.source, it.row));
        decided.chunk_by(|a, b| (a.source, a.row) == (b.source, b.row)).map(JudgedRow::mean).collect()
    }

    /// The action on each part, and where routed rows with one label take their irreducible loss from, if there are such rows.
    fn decided<'h>(
        &self,
        held_out: &'h HeldOut,
        parts: &[usize],
        within: Option<Within<'_>>,
    ) -> (Vec<(bool, Taken)>, Option<RoutedMeans<'h>>) {
        let own = self.mixed_actions(held_out, parts);
        let actions: Vec<(bool, Taken)> = match within {
            None => own.into_iter().map(|(known, action)| (known, Taken::Own(action))).collect(),
            Some(within) => self.actions_within(held_out, parts, own, within),
        };
        let routed = |(_, taken): &(bool, Taken)| taken.mean(|action| self.bayes_part(action));
        let means = held_out.imputation.as_ref().map(|imputation| {
            RoutedMeans::new(imputation, held_out, parts.iter().copied().zip(actions.iter().map(routed)))
        });
        (actions, means)
    }

    /// The actions on each part if caps or missing routes leave rooms: those of least total cost by the estimates that decide the parts, for rows
    /// that are weighted like traffic.
    fn actions_within(
        &self,
        held_out: &HeldOut,
        parts: &[usize],
        own: Vec<(bool, MixedAction)>,
        within: Within<'_>,
    ) -> Vec<(bool, Taken)> {
        let rows = |(&part, (_, wanted)): (&usize, &(bool, MixedAction))| {
            let weight = held_out.rows(part).map(|(weight, _)| weight).sum::<f64>();
            let costs = self.costs_at(&self.task, held_out.expected(part));
            // With a limit, rows without a determined action are not routed.
            let is_determined = self.has_limit() || self.action_at(costs.each_ref().map(Vec::as_slice)).0;
            let weight = (within.factor)(held_out.source(part)) * weight;
            WantedActions { weight, costs, wanted: *wanted, is_determined }
        };
        let rows: Vec<WantedActions> = parts.iter().zip(&own).map(rows).collect();
        let assigned = self.assign_within(within.rooms, &rows).into_iter().map(Taken::Assigned);
        own.into_iter().zip(assigned).map(|((known, _), taken)| (known, taken)).collect()
    }

    /// The action on each part, and whether its costs are known. With a limit, the same share is routed as by the policy.
    fn mixed_actions(&self, held_out: &HeldOut, parts: &[usize]) -> Vec<(bool, MixedAction)> {
        let costs = |part: &usize| self.costs_at(&self.task, held_out.expected(*part));
        let Some(found) = self.cutoff else {
            let unlimited = |[low, high]: [Vec<f64>; 2]| (low == high, self.action_at([&low, &high]).1);
            return parts.iter().map(|part| unlimited(costs(part))).collect();
        };
        let task = self.at_no_price();
        let all = self.all_units(&task, held_out);
        // A budget can always be kept.
        let at = all.and_then(|all| Cutoff::find(Limit::Budget(found.share), &all, self.tie).ok()).unwrap_or(found);
        let units = self.units(&task, held_out, parts);
        let routed = |(part, unit): (&usize, &Unit)| {
            let [kept, route] = unit.actions;
            let [low, high] = costs(part);
            (low == high, MixedAction::either(route, kept, at.part_of(unit, self.tie)))
        };
        parts.iter().zip(&units).map(routed).collect()
    }
}

/// The factor of the weights of a source's rows.
pub(super) type Factors<'a> = &'a dyn Fn(u32) -> f64;

/// The rooms that caps or missing routes leave for routes, as shares of traffic in which the rows of sources have other weights.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) rooms: &'a Rooms,
    pub(super) factor: Factors<'a>,
}

/// The actions on the rows of a part.
enum Taken {
    /// The policy's own.
    Own(MixedAction),
    /// Those assigned within rooms.
    Assigned(ActionParts),
}

impl Taken {
    /// The expectation of a value that depends on the action.
    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Own(action) => action.mean(value),
            Self::Assigned(parts) => parts.iter().map(|&(action, part)| part * value(action)).sum(),
        }
    }
}

/// The mean irreducible loss of routed rows with several labels, less their shifts by features, in each group of similar confidence of each
/// fold.
struct RoutedMeans<'a> {
    imputation: &'a Imputation,
    /// By fold and group.
    sums: BTreeMap<(u32, usize), WeightedSums>,
}

impl<'a> RoutedMeans<'a> {
    /// `parts` are parts of the held-out rows, and the part of their rows that is routed. Those of fall-backs, whose rows are in cells as well,
    /// do not count.
    fn new(imputation: &'a Imputation, held_out: &HeldOut, parts: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut sums = BTreeMap::<_, WeightedSums>::new();
        let of_cells = parts.filter(|&(part, routed)| routed > 0.0 && held_out.is_of_cell(held_out.source(part)));
        for (part, routed) in of_cells {
            for (&row, (weight, losses)) in held_out.numbers(part).iter().zip(held_out.rows(part)) {
                let row = row as usize;
                if !imputation.is_single(row) {
                    let sums = sums.entry((held_out.fold(part), imputation.group(row))).or_default();
                    sums.add(weight * routed, losses.irreducible[1] - imputation.shift(row));
                }
            }
        }
        Self { imputation, sums }
    }

    /// The irreducible loss of a row if it is routed: `own`, or from routed rows with several labels if it has one and there are any.
    fn irreducible(&self, row: u32, fold: u32, own: f64) -> f64 {
        let row = row as usize;
        let sums = self.sums.get(&(fold, self.imputation.group(row))).filter(|sums| sums.weight > 0.0);
        match sums.filter(|_| self.imputation.is_single(row)) {
            Some(sums) => sums.mean() + self.imputation.shift(row),
            None => own,
        }
    }
}

/// Rows of similar confidence.
#[derive(Debug, Clone, Copy, Default)]
struct GroupWeights {
    /// The rows with several labels, and those of them that are routed.
    donors: WeightedSums,
    routed_donors: WeightedSums,
    /// The weight of routed rows with one label.
    routed: f64,
}

/// The distances to the bounds, the lower one extended by the width of the bounds on costs.
pub(super) fn with_slack(open: Option<[f64; 2]>, slack: f64) -> Option<[f64; 2]> {
    if slack <= 0.0 {
        return open;
    }
    let [low, high] = open.unwrap_or_default();
    Some([low - slack, high])
}

/// The root of the mean of two variances: that over rows, and with weight `share` the jackknife's from the means without each group, if there
/// are any.
pub(super) fn with_jackknife(of_rows: f64, means: &[f64], share: f64) -> f64 {
    let groups = means.len() as f64;
    let centre = means.iter().sum::<f64>() / groups;
    let jackknife = means.iter().map(|mean| (mean - centre).powi(2)).sum::<f64>() * (groups - 1.0) / groups;
    if means.is_empty() { of_rows } else { ((1.0 - share) * of_rows * of_rows + share * jackknife).sqrt() }
}
