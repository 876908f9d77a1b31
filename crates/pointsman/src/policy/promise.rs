//! The cost and loss that a policy is expected to have on new queries like the calibration rows.

use std::collections::BTreeMap;

use super::cutoff::{Cutoff, Unit};
use super::held_out::HeldOut;
use super::{MixedAction, Policy};
use crate::estimate::{Imputation, OracleLoss, RowVotes};
use crate::numeric::weighted::WeightedSums;
use crate::task::Limit;
use crate::task::Named;

/// The weight of the jackknife's variance in standard errors, with cells and with a forest, where most queries have leaves of their own and
/// one row changes few decisions.
pub(super) const JACKKNIFE_SHARE_OF_CELLS: f64 = 0.5;
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
    /// Its standard error; not a number if there is one row.
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
    /// The same costs and losses with what each row adds to those of rows with one label, for standard errors.
    influence: Influence,
    /// The same costs as expected by the estimates that decide the rows.
    pub(super) expected: f64,
    pub(super) expected_always: Vec<f64>,
    /// The width of the bounds where labels only bound the costs: of the policy's actions, and of each action.
    pub(super) slack: f64,
    pub(super) slack_always: Vec<f64>,
    /// The weight of rows whose costs are known and not only bounded.
    pub(super) known: f64,
}

impl Judged {
    fn new(actions: usize) -> Self {
        let (cost, loss, always) =
            (WeightedSums::default(), WeightedSums::default(), vec![WeightedSums::default(); actions]);
        let [expected_always, slack_always] = [(); 2].map(|()| vec![0.0; actions]);
        let influence = Influence { cost, loss, always: always.clone() };
        Self { cost, loss, always, influence, expected: 0.0, expected_always, slack: 0.0, slack_always, known: 0.0 }
    }

    /// Adds a row, given as in [`Policy::judge`]: its cost and loss and the cost of each action, these costs as expected, and the widths
    /// of their bounds. `imputed` is what its labels add to the first of these on rows with one label.
    fn add(&mut self, weight: f64, values: &[f64], imputed: impl Fn(usize) -> f64) {
        let actions = self.always.len();
        let (own, estimates) = values.split_at(2 + actions);
        let (expected, slack) = estimates.split_at(1 + actions);
        self.cost.add(weight, own[0]);
        self.loss.add(weight, own[1]);
        self.always.iter_mut().zip(&own[2..]).for_each(|(sums, cost)| sums.add(weight, *cost));
        let influence =
            [&mut self.influence.cost, &mut self.influence.loss].into_iter().chain(&mut self.influence.always);
        influence.zip(own).enumerate().for_each(|(place, (sums, cost))| sums.add(weight, cost + imputed(place)));
        self.expected += weight * expected[0];
        self.expected_always.iter_mut().zip(&expected[1..]).for_each(|(sum, cost)| *sum += weight * cost);
        self.slack += weight * slack[0];
        self.slack_always.iter_mut().zip(&slack[1..]).for_each(|(sum, slack)| *sum += weight * slack);
    }

    /// The mean width of the bounds on the cost, if a cap assigned the action `moved`, else by the policy's own actions.
    pub(super) fn slack_of(&self, moved: Option<u8>) -> f64 {
        let of_action = moved.and_then(|code| self.slack_always.get(usize::from(code)));
        of_action.unwrap_or(&self.slack) / self.cost.weight
    }

    /// The cost of the policy's own actions or, if a cap assigned the action `moved`, of that action.
    pub(super) fn taken(&self, moved: Option<u8>) -> &WeightedSums {
        moved.and_then(|code| self.always.get(usize::from(code))).unwrap_or(&self.cost)
    }

    /// The same for standard errors.
    pub(super) fn influence(&self, moved: Option<u8>) -> &WeightedSums {
        let Influence { cost, always, .. } = &self.influence;
        moved.and_then(|code| always.get(usize::from(code))).unwrap_or(cost)
    }
}

/// Costs and losses as in [`Judged`] whose spread over rows is that of a mean in which some values are imputed.
///
/// A row with one label has the mean irreducible loss of the n rows with several labels in its group, so the labels of each of these count
/// for 1/n of every such row that is routed as well. Taking these rows as independent would understate the error, the more so the fewer
/// rows have several labels.
#[derive(Debug, Clone)]
struct Influence {
    cost: WeightedSums,
    loss: WeightedSums,
    always: Vec<WeightedSums>,
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
        let open = with_slack(self.open(), judged.slack_of(None));
        let [standard_error, loss_standard_error] = self.standard_errors(&judged);
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
        self.open_under(&self.held_out().parts(), &|_, taken| [1.0, taken.mean(|action| self.bayes_part(action))])
    }

    /// The same with other weights of the rows. From the source and the action of rows, `weigh` gives the factor of their weight, and the
    /// factor of the weight that is routed to a Bayes-optimal oracle.
    pub(super) fn open_under(&self, parts: &[usize], weigh: &dyn Fn(u32, MixedAction) -> [f64; 2]) -> Option<[f64; 2]> {
        let (held_out, table) = (self.held_out(), self.router()?.rows());
        let votes = self.estimates.votes.get_or_init(|| RowVotes::from_table(table, &self.estimates.loss)).as_ref()?;
        // Source, row, both factors and irreducible loss; a row may be decided several times.
        let mut decided = Vec::new();
        for (&part, (_, taken)) in parts.iter().zip(self.mixed_actions(held_out, parts)) {
            let source = held_out.source(part);
            let [all, routed] = weigh(source, taken);
            let rows = held_out.numbers(part).iter().zip(held_out.rows(part));
            decided.extend(rows.map(|(&row, (_, losses))| (source, row, all, routed, losses.irreducible[1])));
        }
        decided.sort_by_key(|&(source, row, ..)| (row, source));
        let (mut sum, mut estimates) = (0.0, Vec::new());
        for times in decided.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (row, weight) = (times[0].1 as usize, table.weight(times[0].1 as usize));
            let mean = |value: fn(&(u32, u32, f64, f64, f64)) -> f64| {
                times.iter().map(value).sum::<f64>() / times.len() as f64
            };
            sum += weight * mean(|it| it.2);
            estimates.push((row, weight * mean(|it| it.3), times[times.len() - 1].4));
        }
        votes.open(&estimates, sum, &self.estimates.loss)
    }

    /// The standard errors of the mean cost and the mean loss.
    ///
    /// The variance over rows ignores that decisions depend on the rows, and one row can change the decision on its whole cell. The
    /// delete-a-group jackknife decides anew each time, but overstates the variance of a statistic that is not smooth. The truth lies between
    /// them, so a weighted mean of both variances is used.
    pub(super) fn standard_errors(&self, judged: &Judged) -> [f64; 2] {
        let without: Vec<Judged> = self
            .held_out_without_groups()
            .iter()
            .filter_map(|held_out| self.judge(held_out, &held_out.parts(), |_| 0).pop())
            .collect();
        let share = if self.has_forest() { JACKKNIFE_SHARE_OF_FORESTS } else { JACKKNIFE_SHARE_OF_CELLS };
        let of = |sums: fn(&Judged) -> &WeightedSums, influence: &WeightedSums| {
            let means: Vec<f64> = without.iter().map(|judged| sums(judged).mean()).collect();
            with_jackknife(influence.standard_error(), &means, share)
        };
        [of(|judged| &judged.cost, &judged.influence.cost), of(|judged| &judged.loss, &judged.influence.loss)]
    }

    /// [`judge_sources`](Self::judge_sources) with each jackknife group deleted in turn; without fall-backs.
    pub(super) fn judge_sources_without_groups(&self) -> Vec<Vec<Option<Judged>>> {
        let of = |held_out: &HeldOut| self.judge_sources_of(held_out, &held_out.parts());
        self.held_out_without_groups().iter().map(of).collect()
    }

    /// One if an action is a route to a Bayes-optimal oracle, else zero.
    pub(crate) fn bayes_part(&self, action: usize) -> f64 {
        let routes = 1..=self.task.routes().len();
        f64::from(u8::from(routes.contains(&action) && self.oracle_loss(action - 1) == OracleLoss::Irreducible))
    }

    /// The costs and losses of the held-out calibration rows; `None` if no row is held out.
    pub(super) fn judge_rows(&self) -> Option<Judged> {
        self.judge(self.held_out(), &self.held_out().parts(), |_| 0).pop()
    }

    /// The costs and losses of the held-out rows of each source, cells and fall-backs; `None` for sources without held-out rows.
    pub(super) fn judge_sources(&self) -> Vec<Option<Judged>> {
        self.judge_sources_of(self.held_out(), &self.held_out().all_parts().collect::<Vec<usize>>())
    }

    fn judge_sources_of(&self, held_out: &HeldOut, parts: &[usize]) -> Vec<Option<Judged>> {
        let mut judged = self.judge(held_out, parts, |part| held_out.source(part) as usize);
        judged.resize_with(self.codes.len(), || Judged::new(self.actions()));
        judged.into_iter().map(|judged| (judged.cost.weight > 0.0).then_some(judged)).collect()
    }

    /// Decides held-out parts and evaluates them by their labels, group by group.
    fn judge(&self, held_out: &HeldOut, parts: &[usize], group: impl Fn(usize) -> usize) -> Vec<Judged> {
        let actions = self.actions();
        let actions_of_parts = self.mixed_actions(held_out, parts);
        let routed_means = held_out.imputation.as_ref().map(|imputation| {
            let routed = |(_, taken): &(bool, MixedAction)| taken.mean(|action| self.bayes_part(action));
            RoutedMeans::new(imputation, held_out, parts.iter().copied().zip(actions_of_parts.iter().map(routed)))
        });
        let mut judged: Vec<Judged> = Vec::new();
        // Per row: cost, loss and the cost of each action by labels; cost and the cost of each action as expected; the widths of their bounds; the
        // part that is routed to a Bayes-optimal oracle, and the irreducible loss.
        let width = 6 + 3 * actions;
        let (mut values, mut places) = (Vec::new(), Vec::new());
        let [mut low, mut high] = [(); 2].map(|()| vec![0.0; actions]);
        for (&part, (known, taken)) in parts.iter().zip(actions_of_parts) {
            let at = group(part);
            if judged.len() <= at {
                judged.resize_with(at + 1, || Judged::new(actions));
            }
            self.fill_costs(&self.task, held_out.expected(part), &mut low, &mut high);
            let slack = |action: usize| high[action] - low[action];
            let routed_part = taken.mean(|action| self.bayes_part(action));
            for (&row, (weight, losses)) in held_out.numbers(part).iter().zip(held_out.rows(part)) {
                let cost = |action: usize| {
                    self.cost_of(action, losses.total, losses.irreducible[1], |place| losses.oracles[place][1])
                };
                let paid = |action: usize| self.task.routes().get(action.wrapping_sub(1)).map_or(0.0, |r| r.price());
                // A routed row with one label has the mean of routed rows with several, which may have less noise than the others.
                let imputed = routed_means.as_ref().and_then(|means| means.of_row(row, held_out.fold(part)));
                let change = imputed.map_or(0.0, |mean| routed_part * (mean - losses.irreducible[1]));
                places.push((at, row, weight, values.len()));
                values.extend([taken.mean(cost) + change, taken.mean(|action| cost(action) - paid(action)) + change]);
                values.extend((0..actions).map(cost));
                values.push(taken.mean(|action| high[action]));
                values.extend_from_slice(&high);
                values.push(taken.mean(slack));
                values.extend((0..actions).map(slack));
                values.extend([routed_part, losses.irreducible[1]]);
                judged[at].known += if known { weight } else { 0.0 };
            }
        }
        // A row that is decided several times counts once, with the mean.
        places.sort_by_key(|&(at, row, ..)| (at, row));
        let mut means = Vec::with_capacity(places.len());
        for times in places.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let mut mean = vec![0.0; width];
            for &(.., start) in times {
                mean.iter_mut().zip(&values[start..]).for_each(|(sum, value)| *sum += value / times.len() as f64);
            }
            let (at, row, weight, _) = times[0];
            means.push((at, row as usize, weight, mean));
        }
        let multiples = held_out.imputation.as_ref().map(|imputation| {
            let rows =
                means.iter().map(|(at, row, weight, mean)| (*at, *row, *weight, [mean[width - 2], mean[width - 1]]));
            ImputedMultiples::new(imputation, judged.len(), rows)
        });
        for (at, row, weight, mean) in &means {
            let [always, taken] = multiples
                .as_ref()
                .map_or([0.0; 2], |multiples| multiples.of_row(*at, *row, [mean[width - 2], mean[width - 1]]));
            let imputed = |place: usize| match place {
                0 | 1 => taken,
                action => always * self.bayes_part(action - 2),
            };
            judged[*at].add(*weight, &mean[..width - 2], imputed);
        }
        judged
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

/// The mean irreducible loss of routed rows with several labels, in each group of similar confidence of each fold.
struct RoutedMeans<'a> {
    imputation: &'a Imputation,
    /// By fold and group: the routed weight of rows with several labels, and the sum of their irreducible losses.
    sums: BTreeMap<(u32, usize), [f64; 2]>,
}

impl<'a> RoutedMeans<'a> {
    /// `parts` are parts of the held-out rows, each once, and the part of their rows that is routed.
    fn new(imputation: &'a Imputation, held_out: &HeldOut, parts: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut found = Self { imputation, sums: BTreeMap::new() };
        for (part, routed) in parts.filter(|(_, routed)| *routed > 0.0) {
            for (&row, (weight, losses)) in held_out.numbers(part).iter().zip(held_out.rows(part)) {
                if let (group, Some(_)) = imputation.of_row(row as usize) {
                    let sums = found.sums.entry((held_out.fold(part), group)).or_default();
                    *sums = [sums[0] + weight * routed, sums[1] + weight * routed * losses.irreducible[1]];
                }
            }
        }
        found
    }

    /// The mean for a row with one label; `None` for other rows, or if there is no row to take it from.
    fn of_row(&self, row: u32, fold: u32) -> Option<f64> {
        let (group, None) = self.imputation.of_row(row as usize) else { return None };
        let &[weight, sum] = self.sums.get(&(fold, group))?;
        (weight > 0.0).then(|| sum / weight)
    }
}

/// How much the irreducible losses of rows with one label depend on rows with several, in each group of rows of similar confidence.
struct ImputedMultiples<'a> {
    imputation: &'a Imputation,
    /// For each group of each source.
    weights: Vec<GroupWeights>,
}

/// The weights of a group's rows with one label and with several, and the sum of the irreducible losses of routed rows with several.
#[derive(Debug, Clone, Copy, Default)]
struct GroupWeights {
    single: f64,
    routed_single: f64,
    paired: f64,
    routed_paired: f64,
    routed_loss: f64,
}

impl<'a> ImputedMultiples<'a> {
    /// `rows` are the source, row and weight of all held-out rows, the part of them that is routed, and their irreducible losses.
    fn new(
        imputation: &'a Imputation,
        sources: usize,
        rows: impl Iterator<Item = (usize, usize, f64, [f64; 2])>,
    ) -> Self {
        let mut found = Self { imputation, weights: vec![GroupWeights::default(); sources * imputation.groups()] };
        for (at, row, weight, [routed, loss]) in rows {
            let (group, deviation) = imputation.of_row(row);
            let weights = &mut found.weights[at * imputation.groups() + group];
            if deviation.is_some() {
                weights.paired += weight;
                weights.routed_paired += weight * routed;
                weights.routed_loss += weight * routed * loss;
            } else {
                weights.single += weight;
                weights.routed_single += weight * routed;
            }
        }
        found
    }

    /// What a row adds to the irreducible losses of rows with one label of its source: to all of them, and to those that are routed.
    fn of_row(&self, at: usize, row: usize, [routed, loss]: [f64; 2]) -> [f64; 2] {
        let (group, Some(deviation)) = self.imputation.of_row(row) else { return [0.0; 2] };
        let weights = self.weights[at * self.imputation.groups() + group];
        let all = weights.single / weights.paired * deviation;
        if weights.routed_paired == 0.0 {
            return [all, weights.routed_single / weights.paired * deviation];
        }
        let deviation = routed * (loss - weights.routed_loss / weights.routed_paired);
        [all, weights.routed_single / weights.routed_paired * deviation]
    }
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
