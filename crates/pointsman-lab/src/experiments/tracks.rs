//! Three tracks on real answers: a weak model, a strong model with measured answers, and people; or abstaining.
//!
//! The price of the strong model is swept. Routers are compared with the usual alternatives, all tuned on the
//! calibration half: the best pair of confidence thresholds (predict above the first, strong model above the second,
//! people or abstention below), a boosted regression of the cost of each action, and a constant action.

use pointsman::evaluate::{Sweep, SweepAxis};
use pointsman::partition::Factor;
use pointsman::{Loss, Oracle, Partition, Replay, Router, Table, Task};
use serde_json::{Map, Value, json};

use super::task;
use crate::baselines::Regression;
use crate::error::Result;
use crate::problem::Problem;
use crate::settings::Settings;

/// Numbers at one price: costs and shares by rule.
type CostsAndShares = (Map<String, Value>, Map<String, Value>);

/// Prices of the strong model, of people and of abstaining, in Brier points.
pub(crate) const STRONG_PRICES: [f64; 5] = [0.01, 0.02, 0.03, 0.04, 0.05];
pub(crate) const PEOPLE_PRICE: f64 = 0.1;
pub(crate) const ABSTAIN_PRICE: f64 = 0.5;
const TREES: usize = 200;

fn three_tracks(price: f64) -> Result<Task> {
    let loss = Loss::brier();
    Ok(task(&loss)
        .route("strong", Oracle::measured(), price)?
        .route("people", Oracle::bayes(), PEOPLE_PRICE)?
        .abstain(ABSTAIN_PRICE)?)
}

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let sweep = Sweep::new(SweepAxis::Route(Some("strong".into())), STRONG_PRICES.to_vec());
    let mut by_price: Vec<(Map<String, Value>, Map<String, Value>)> = vec![Default::default(); STRONG_PRICES.len()];
    for partition in [Partition::top_class(10), Partition::confidence(20), Partition::forest(TREES)] {
        let policy = Router::calibrate(&problem.calibration, &partition)?.policy(&three_tracks(STRONG_PRICES[0])?)?;
        let points = policy.replay_uncorrected(&problem.test)?.sweep(&policy, &sweep)?;
        for (point, (costs, shares)) in points.iter().zip(&mut by_price) {
            for (name, cost) in point.mean_cost.iter() {
                match name {
                    "router" => costs.insert(partition.to_string(), json!(cost)),
                    "cell-optimal" if !partition.factors().iter().any(Factor::learns) => {
                        costs.insert(format!("cell-optimal, {partition}"), json!(cost))
                    }
                    "pointwise-optimal" => costs.insert(name.into(), json!(cost)),
                    _ if name.starts_with("always-") => costs.insert(name.into(), json!(cost)),
                    _ => None,
                };
            }
            let own: Map<String, Value> =
                point.shares.iter().map(|(name, share)| (name.to_owned(), json!(share))).collect();
            shares.insert(partition.to_string(), Value::Object(own));
        }
    }
    add_baselines(problem, settings, &mut by_price)?;
    let prices = STRONG_PRICES
        .iter()
        .zip(by_price)
        .map(|(price, (costs, shares))| (price.to_string(), json!({ "costs": costs, "share": shares })));
    Ok(json!({ "prices": prices.collect::<Map<String, Value>>() }))
}

/// Adds the costs and shares of the thresholds and of the booster at each price.
fn add_baselines(problem: &Problem, settings: &Settings, by_price: &mut [CostsAndShares]) -> Result<()> {
    let (calibration, test) = (&problem.calibration, &problem.test);
    // The partition does not affect the costs of the rows, so one cell is used.
    let policy = Router::calibrate(calibration, &Partition::confidence(1))?.policy(&three_tracks(0.0)?)?;
    let (calibration_replay, test_replay): (Replay, Replay) =
        (policy.replay_uncorrected(calibration)?, policy.replay_uncorrected(test)?);
    let booster = Booster::fit(calibration, &calibration_replay.action_costs(&policy)?, settings.trees)?;
    let boosted = booster.costs(test);
    for (price, (costs, shares)) in STRONG_PRICES.into_iter().zip(by_price) {
        let priced = policy.reprice(&three_tracks(price)?)?;
        let thresholds = Thresholds::tune(calibration, &calibration_replay.action_costs(&priced)?);
        let chosen = [
            ("two thresholds", thresholds.actions(test)),
            ("booster", cheapest_actions(&boosted, &priced.task().clone())),
        ];
        for (name, actions) in chosen {
            costs.insert(name.into(), json!(test_replay.cost_of_actions(&priced, &actions)?.mean));
            let names = priced.task().action_names();
            let share =
                |action: usize| actions.iter().filter(|&&taken| taken == action).count() as f64 / actions.len() as f64;
            let own: Map<String, Value> =
                names.into_iter().enumerate().map(|(action, name)| (name, json!(share(action)))).collect();
            shares.insert(name.into(), Value::Object(own));
        }
    }
    Ok(())
}

/// Positions of the actions in the task.
const PREDICT: usize = 0;
const ROUTE_STRONG: usize = 1;
const LAST_RESORTS: [usize; 2] = [2, 3];

/// Two thresholds on the weak model's confidence, and the action (people or abstention) below both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Thresholds {
    predict_from: f64,
    strong_from: f64,
    last_resort: usize,
}

impl Thresholds {
    /// The pair of least cost on calibration rows, over all pairs.
    fn tune(calibration: &Table, costs: &[Vec<f64>]) -> Self {
        let mut order: Vec<usize> = (0..calibration.rows()).collect();
        let confidence = |row: usize| calibration.peak(row).confidence;
        order.sort_by(|&a, &b| confidence(a).total_cmp(&confidence(b)));
        // Candidate thresholds are the confidences of the rows, and infinity.
        let at = |place: usize| order.get(place).map_or(f64::INFINITY, |&row| confidence(row));
        let is_cut = |place: usize| place == 0 || place == order.len() || at(place) > at(place - 1);
        let mut best = (f64::INFINITY, Self { predict_from: 0.0, strong_from: 0.0, last_resort: LAST_RESORTS[0] });
        for last_resort in LAST_RESORTS {
            // Costs of all rows before a position, by action; the least (last resort − strong) so far.
            let (mut last, mut strong, mut predict) = (0.0, 0.0, 0.0);
            let all: f64 = costs.iter().map(|costs| costs[PREDICT]).sum();
            let mut lowest = (f64::INFINITY, 0);
            for place in 0..=order.len() {
                if is_cut(place) {
                    if last - strong < lowest.0 {
                        lowest = (last - strong, place);
                    }
                    let cost = lowest.0 + strong + (all - predict);
                    if cost < best.0 {
                        let found = Self { predict_from: at(place), strong_from: at(lowest.1), last_resort };
                        best = (cost, found);
                    }
                }
                if let Some(&row) = order.get(place) {
                    last += costs[row][last_resort];
                    strong += costs[row][ROUTE_STRONG];
                    predict += costs[row][PREDICT];
                }
            }
        }
        best.1
    }

    fn actions(self, table: &Table) -> Vec<usize> {
        let action = |row: usize| match table.peak(row).confidence {
            confidence if confidence >= self.predict_from => PREDICT,
            confidence if confidence >= self.strong_from => ROUTE_STRONG,
            _ => self.last_resort,
        };
        (0..table.rows()).map(action).collect()
    }
}

/// One regression of the cost per action that has a loss.
struct Booster(Vec<Regression>);

impl Booster {
    fn fit(calibration: &Table, costs: &[Vec<f64>], trees: usize) -> Result<Self> {
        let regressions = [PREDICT, ROUTE_STRONG, LAST_RESORTS[0]].map(|action| {
            let target: Vec<f64> = costs.iter().map(|costs| costs[action]).collect();
            Regression::fit(calibration, &target, trees)
        });
        Ok(Self(regressions.into_iter().collect::<Result<_>>()?))
    }

    /// Expected costs: one list per action, one number per row.
    fn costs(&self, table: &Table) -> Vec<Vec<f64>> {
        self.0.iter().map(|regression| regression.scores(table)).collect()
    }
}

/// The action of least expected cost per row. The booster was trained with a free strong model, so its price is added
/// here.
fn cheapest_actions(boosted: &[Vec<f64>], task: &Task) -> Vec<usize> {
    let strong = task.routes()[0].price();
    let abstain = task.abstain_price().unwrap_or(f64::INFINITY);
    let rows = boosted[PREDICT].len();
    let choose = |row: usize| {
        let costs = [boosted[0][row], boosted[1][row] + strong, boosted[2][row], abstain];
        (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(PREDICT)
    };
    (0..rows).map(choose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn tuned_thresholds_are_the_best_of_all_pairs() {
        let mut random = Random::new(5, "tracks");
        for _ in 0..20 {
            // Few distinct confidences, so that some rows tie.
            let probs: Vec<f64> = (0..40).flat_map(|_| [0.5 + 0.05 * random.below(9) as f64, 0.0]).collect();
            let probs: Vec<f64> = probs.chunks(2).flat_map(|pair| [pair[0], 1.0 - pair[0]]).collect();
            let table = Table::new(["a", "b"], probs).unwrap();
            let costs: Vec<Vec<f64>> = (0..40).map(|_| (0..4).map(|_| random.uniform()).collect()).collect();
            let total = |thresholds: Thresholds| -> f64 {
                thresholds.actions(&table).iter().zip(&costs).map(|(&action, costs)| costs[action]).sum()
            };
            let cuts: Vec<f64> = (0..40).map(|row| table.peak(row).confidence).chain([f64::INFINITY]).collect();
            let mut least = f64::INFINITY;
            for &predict_from in &cuts {
                for &strong_from in cuts.iter().filter(|&&cut| cut <= predict_from) {
                    for last_resort in LAST_RESORTS {
                        least = least.min(total(Thresholds { predict_from, strong_from, last_resort }));
                    }
                }
            }
            let found = total(Thresholds::tune(&table, &costs));
            assert!((found - least).abs() < 1e-12, "{found}, not {least}");
        }
    }
}
