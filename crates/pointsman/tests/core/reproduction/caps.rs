//! What caps cost, in simulations with known truth: expected when a table is decided, and found on held-out rows.

use pointsman::policy::{Bid, CapRule, CapSize, Caps, Tally, TallySummary};
use pointsman::{Decisions, Loss, Oracle, Partition, Policy, Router, Table, Task};

use super::promises::{draw, mean_and_error, true_costs};
use crate::world::Rng;

/// Decides a table under caps.
fn decide(policy: &Policy, caps: &Caps, queries: &Table) -> Decisions {
    let mut decisions = policy.decide_batch(queries).unwrap();
    let keys = policy.cap_keys_of_table(queries, None).unwrap();
    let bids = policy.bids(caps, &decisions, &keys);
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(caps, queries.rows() as u64, scan);
    policy.apply_caps(&mut rule, &mut decisions, &keys);
    decisions
}

fn summary(policy: &Policy, decisions: &Decisions) -> TallySummary {
    let mut tally = Tally::default();
    tally.add(policy, decisions);
    tally.summary(policy)
}

/// The true mean cost of decisions.
fn true_cost(policy: &Policy, decisions: &Decisions, costs: &[Vec<f64>]) -> f64 {
    let cost = |(row, costs): (usize, &Vec<f64>)| costs[policy.row(decisions, row).code().unwrap()];
    costs.iter().enumerate().map(cost).sum::<f64>() / costs.len() as f64
}

fn task(loss: Loss, price: f64) -> Task {
    Task::new(loss).route("expert", Oracle::bayes(), price).unwrap()
}

/// A price at which routing saves little on many queries, so that estimates often choose wrong ones.
const PRICE: f64 = 0.2;

/// Worlds per setting.
const WORLDS: u64 = 40;

/// In independent worlds per setting, the mean error of the expected cost within a cap is chance. That of what the cap costs is not (three of
/// eight are more than three standard errors of the mean too high), but it is below the standard error stated for one table.
#[test]
fn expected_costs_within_caps_hold_and_costs_of_caps_err_by_less_than_their_error() {
    let (mut failed, mut setting) = (Vec::new(), 0);
    for (loss, labels) in [(Loss::brier(), 3), (Loss::zero_one(), 10)] {
        for (partition, rows) in [(Partition::top_class(10), 600), (Partition::forest(30), 600)] {
            for percent in [5.0, 20.0] {
                let task = task(loss.clone(), PRICE);
                let mut errors = [(); 4].map(|()| Vec::new());
                let (mut costs_of_cap, mut stated, mut by_estimates) = (Vec::new(), Vec::new(), Vec::new());
                setting += 1;
                for world in 0..WORLDS {
                    let mut rng = Rng::new(1_000_003 * setting + 7_919 * world);
                    let (table, queries) = (draw(rows, labels, &mut rng), draw(2_000, 2, &mut rng));
                    let costs = true_costs(&queries, &task);
                    let policy = Router::calibrate(&table, &partition).unwrap().policy(&task).unwrap();
                    let caps = Caps::new(&task, [("expert", CapSize::Percent(percent))]).unwrap();
                    let (plain, capped) = (policy.decide_batch(&queries).unwrap(), decide(&policy, &caps, &queries));
                    let [without, with] = [&plain, &capped].map(|it| true_cost(&policy, it, &costs));
                    let all = 0..queries.rows();
                    by_estimates.push(
                        all.map(|row| policy.row(&capped, row).cost_of_cap()).sum::<f64>() / 2e3 - (with - without),
                    );
                    let [plain, capped] = [&plain, &capped].map(|it| summary(&policy, it));
                    let expected = |it: &TallySummary| *it.expected_cost.as_ref().unwrap().get("router").unwrap();
                    let of_cap = capped.capped.as_ref();
                    errors[0].push(expected(&plain) - without);
                    let predicting = *capped.expected_cost.as_ref().unwrap().get("always-predict").unwrap();
                    errors[3].push(predicting - costs.iter().map(|costs| costs[0]).sum::<f64>() / 2e3);
                    errors[1].push(expected(&capped) - with);
                    errors[2].push(of_cap.map_or(0.0, |of_cap| of_cap.cost) - (with - without));
                    costs_of_cap.push(with - without);
                    stated.push([
                        capped.standard_error.unwrap(),
                        of_cap.and_then(|of_cap| of_cap.standard_error).unwrap_or(0.0),
                    ]);
                }
                let what = format!("{loss} {partition} {percent} %");
                let [plain, cost, of_cap, predicting] = errors.each_ref().map(|errors| mean_and_error(errors));
                let spread = |errors: &[f64]| mean_and_error(errors).1 * (WORLDS as f64).sqrt();
                let mean_stated =
                    |place: usize| stated.iter().map(|errors: &[f64; 2]| errors[place]).sum::<f64>() / WORLDS as f64;
                println!(
                    "{what}: predicting {:+.4} ± {:.4}, without {:+.4} ± {:.4}, with the cap {:+.4} ± {:.4} (spread {:.4}, stated {:.4}), of the cap {:+.4} ± {:.4} \
                     (spread {:.4}, stated {:.4}), which is {:.4}; by the estimates {:+.4} ± {:.4}",
                    predicting.0,
                    predicting.1,
                    plain.0,
                    plain.1,
                    cost.0,
                    cost.1,
                    spread(&errors[1]),
                    mean_stated(0),
                    of_cap.0,
                    of_cap.1,
                    spread(&errors[2]),
                    mean_stated(1),
                    mean_and_error(&costs_of_cap).0,
                    mean_and_error(&by_estimates).0,
                    mean_and_error(&by_estimates).1
                );
                // Of eight means, three standard errors are exceeded by chance in one run of forty.
                for (name, (mean, error), most) in
                    [("cost", cost, 3.0 * cost.1), ("cost of the cap", of_cap, mean_stated(1))]
                {
                    if mean.abs() > most {
                        failed.push(format!("{what}: {name} {mean:+.4} ± {error:.4}"));
                    }
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// On held-out rows, the standard errors of a capped policy's cost and of what the cap costs are the spread over tables, although whether a row
/// is routed depends on all others.
#[test]
fn standard_errors_within_caps_are_the_spread_over_tables() {
    for loss in [Loss::brier(), Loss::zero_one()] {
        let task = task(loss.clone(), 0.02);
        let mut rng = Rng::new(8_000);
        let policy =
            Router::calibrate(&draw(600, 5, &mut rng), &Partition::top_class(10)).unwrap().policy(&task).unwrap();
        for percent in [5.0, 20.0] {
            let found: Vec<[[f64; 2]; 2]> = (0..150)
                .map(|_| {
                    let held_out = draw(400, 1, &mut rng);
                    let caps = Caps::new(&task, [("expert", CapSize::Percent(percent))]).unwrap();
                    let replay = policy.replay(&held_out).unwrap().with_caps(caps, &held_out, None).unwrap();
                    let evaluation = replay.evaluate(&policy).unwrap();
                    let router = evaluation.mean_cost.get("router").copied().unwrap();
                    let error = evaluation.standard_error.get("router").copied().flatten().unwrap();
                    let capped = evaluation.capped.unwrap();
                    [[router, error], [capped.cost, capped.standard_error.unwrap()]]
                })
                .collect();
            for (place, what) in ["cost", "cost of the cap"].into_iter().enumerate() {
                let of = |value: usize| found.iter().map(|found| found[place][value]).collect::<Vec<f64>>();
                let spread = mean_and_error(&of(0)).1 * 150_f64.sqrt();
                let stated = mean_and_error(&of(1)).0;
                println!("{loss} {percent} %: {what} spread {spread:.5}, stated {stated:.5}");
                // The spread of 150 values is known to 6 %.
                assert!((0.85..1.15).contains(&(stated / spread)), "{loss} {percent} %: {what} {spread} {stated}");
            }
        }
    }
}
