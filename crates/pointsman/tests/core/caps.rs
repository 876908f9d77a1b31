//! Hard caps: never exceeded, used up if wanted, and given to the queries that save most.

use pointsman::evaluate::Saving;
use pointsman::policy::{AvailableRoutes, Bid, CapRule, CapSize, CappedSummary, Caps, Tally};
use pointsman::task::Named;
use pointsman::{Action, Decisions, Loss, Oracle, Partition, Policy, Replay, Router, Table, Task};

use crate::world::{Rng, close, table};

/// A task with routes a, b, c to be capped.
fn task(routes: usize) -> Task {
    let priced = [0.02, 0.05, 0.01];
    (0..routes).fold(Task::new(Loss::brier()), |task, route| {
        task.route(["a", "b", "c"][route], Oracle::bayes(), priced[route]).unwrap()
    })
}

fn caps(task: &Task, most: &[u64]) -> Caps {
    Caps::new(task, ["a", "b", "c"].into_iter().zip(most.iter().map(|&n| CapSize::Queries(n)))).unwrap()
}

/// The action that each bid gets.
fn given(caps: &Caps, bids: &[Bid]) -> (Vec<usize>, CapRule) {
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(caps, bids.len() as u64, scan);
    let given = bids.iter().map(|bid| rule.assign(bid)).collect();
    (given, rule)
}

/// Bids of random costs; with `steps`, of few distinct costs, so that ties are common.
fn random_bids(rng: &mut Rng, n: usize, places: usize, steps: Option<usize>) -> Vec<Bid> {
    let mut draw = || steps.map_or(rng.uniform(), |steps| rng.below(steps) as f64 / 4.0);
    let mut bids: Vec<Bid> = Vec::new();
    for _ in 0..n {
        let mut bid = Bid::default();
        bid.costs[..=places].iter_mut().for_each(|cost| *cost = draw());
        // Queries that want an action without a cap do not bid.
        let best = (0..places).min_by(|&a, &b| bid.costs[a].total_cmp(&bid.costs[b])).unwrap();
        bid.costs[best] = bid.costs[best].min(bid.costs[places]);
        bid.wanted = best as u8;
        bids.push(bid);
    }
    bids.iter_mut().for_each(|bid| bid.key = rng.bits());
    bids
}

/// The smallest total cost of any assignment within the caps.
fn least_cost(bids: &[Bid], most: &[u64]) -> f64 {
    let Some((bid, rest)) = bids.split_first() else { return 0.0 };
    let places = most.len();
    let mut least = f64::INFINITY;
    for (place, cost) in bid.costs[..=places].iter().enumerate() {
        let mut left = most.to_vec();
        if let Some(left) = left.get_mut(place) {
            if *left == 0 {
                continue;
            }
            *left -= 1;
        }
        least = least.min(cost + least_cost(rest, &left));
    }
    least
}

#[test]
fn assignment_within_the_caps_has_least_cost() {
    let mut rng = Rng::new(1);
    for round in 0..600 {
        let places = 1 + round % 3;
        let n = [9, 8, 6][places - 1];
        let bids = random_bids(&mut rng, n, places, [None, Some(5)][round / 3 % 2]);
        let most: Vec<u64> = (0..places).map(|_| rng.below(4) as u64).collect();
        let (given, rule) = given(&caps(&task(places), &most), &bids);
        let cost: f64 = bids.iter().zip(&given).map(|(bid, &place)| bid.costs[place]).sum();
        let least = least_cost(&bids, &most);
        // Both are sums of at most nine costs from 0 to 2, which differ by rounding only.
        assert!((cost - least).abs() < 1e-9, "round {round}: {cost} instead of {least} with {most:?}: {bids:?}");
        for (place, &most) in most.iter().enumerate() {
            assert!(given.iter().filter(|&&given| given == place).count() as u64 <= most);
        }
        assert!(rule.is_kept());
    }
}

#[test]
fn single_cap_goes_to_the_largest_savings() {
    let mut rng = Rng::new(2);
    for most in [0, 1, 37, 999, 1000, 5000] {
        let bids = random_bids(&mut rng, 1000, 1, None);
        let (given, rule) = given(&caps(&task(1), &[most]), &bids);
        let mut gaps: Vec<f64> = bids.iter().map(|bid| bid.costs[1] - bid.costs[0]).collect();
        gaps.sort_by(|a, b| b.total_cmp(a));
        let granted = given.iter().filter(|&&given| given == 0).count() as u64;
        // Some bids are ties: they want the route but lose nothing without it.
        let gaining = gaps.iter().filter(|gap| **gap > 0.0).count() as u64;
        assert!(granted <= most && granted >= most.min(gaining), "{granted} of {most}");
        let threshold = gaps.get(most as usize).copied().unwrap_or(-1.0);
        for (bid, given) in bids.iter().zip(&given) {
            let gap = bid.costs[1] - bid.costs[0];
            assert!(gap >= threshold - 1e-12 || *given == 1);
            assert!(gap <= threshold + 1e-12 || *given == 0);
        }
        assert_eq!(rule.uses()[0].wanted, 1000);
    }
}

#[test]
fn capped_actions_do_not_depend_on_row_order() {
    let mut rng = Rng::new(3);
    for steps in [None, Some(3)] {
        let bids = random_bids(&mut rng, 500, 2, steps);
        let caps = caps(&task(2), &[60, 45]);
        let by_key = |bids: &[Bid]| {
            let mut found: Vec<(u64, usize)> = bids.iter().map(|bid| bid.key).zip(given(&caps, bids).0).collect();
            found.sort_unstable();
            found
        };
        let wanted = by_key(&bids);
        for _ in 0..5 {
            let mut shuffled = bids.clone();
            rng.shuffle(&mut shuffled);
            assert_eq!(by_key(&shuffled), wanted);
        }
    }
}

/// Rows that are equal in everything, including their keys, are still counted one by one.
#[test]
fn caps_are_exact_among_equal_rows() {
    let bid = Bid { costs: [0.1, 0.3, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], key: 7, wanted: 0 };
    let bids = vec![bid; 100];
    let (given, rule) = given(&caps(&task(2), &[30, 25]), &bids);
    let count = |place: usize| given.iter().filter(|&&given| given == place).count();
    assert_eq!([count(0), count(1), count(2)], [30, 25, 45]);
    let prices: Vec<f64> = rule.uses().iter().map(|used| used.price).collect();
    assert!((prices[0] - 0.6).abs() < 1e-9 && (prices[1] - 0.4).abs() < 1e-9, "{prices:?}");
}

fn world(rows: usize, seed: u64, labels: usize) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let (truth, noise) = (rng.dist(3), rng.dist(3));
        probs.push((0..3).map(|class| 0.5 * truth[class] + 0.5 * noise[class]).collect());
        votes.push(rng.votes(&truth, labels));
    }
    table(3, &probs, &votes)
}

/// Decides a table under caps, in batches.
fn decide_capped(policy: &Policy, caps: &Caps, queries: &Table) -> (Vec<String>, Vec<Option<String>>, Tally, CapRule) {
    let mut decisions = policy.decide_batch(queries).unwrap();
    let keys = policy.cap_keys_of_table(queries, None).unwrap();
    let bids = policy.bids(caps, &decisions, &keys);
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(caps, queries.rows() as u64, scan);
    policy.apply_caps(&mut rule, &mut decisions, &keys);
    let mut tally = Tally::default();
    tally.add(policy, &decisions);
    let rows = || (0..queries.rows()).map(|row| policy.row(&decisions, row));
    let wanted = rows().map(|d| d.wanted().map(|action| action.to_string())).collect();
    (rows().map(|d| d.action().to_string()).collect(), wanted, tally, rule)
}

#[test]
fn caps_are_exact_for_every_partition_and_price() {
    let (calibration, queries) = (world(600, 1, 4), world(700, 2, 4));
    let few = world(600, 1, 1);
    let base = || Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.02).unwrap();
    let two = || base().route("b", Oracle::panel(1, pointsman::oracle::Aggregate::Mean).unwrap(), 0.0).unwrap();
    for (table, partition, task) in [
        (&calibration, "top-class:4", base().abstain(0.5).unwrap()),
        (&calibration, "confidence:1", base()),
        (&calibration, "forest:20", base().abstain(0.5).unwrap()),
        (&calibration, "forest:20", two().abstain(0.5).unwrap()),
        (&calibration, "top-class:4", two().budget(0.5).unwrap()),
        (&calibration, "top-class:4", base().target_loss(0.53).unwrap()),
        (&few, "top-class:4", base().abstain(0.4).unwrap()),
    ] {
        let router = Router::calibrate(table, &partition.parse::<Partition>().unwrap()).unwrap();
        let policy = router.policy(&task).unwrap();
        let plain = policy.decide_batch(&queries).unwrap();
        let asked = |name: &str, row: usize| policy.row(&plain, row).action() == Action::Route(name);
        let wanting = (0..queries.rows()).filter(|&row| asked("a", row)).count();
        for most in [0, 1, wanting / 2, wanting, 10_000] {
            let caps = Caps::new(&task, [("a", CapSize::Queries(most as u64))]).unwrap();
            let (actions, wanted, tally, rule) = decide_capped(&policy, &caps, &queries);
            let granted = actions.iter().filter(|action| *action == "route:a").count();
            assert_eq!(granted, most.min(wanting), "{partition} {task:?}");
            assert!(rule.is_kept() && rule.uses()[0].granted == granted as u64);
            for row in 0..queries.rows() {
                let before = policy.row(&plain, row).action().to_string();
                // Queries that want no capped route keep their action, and moved queries record the wanted one.
                assert!(before == actions[row] || before == "route:a" && wanted[row].as_deref() == Some("route:a"));
                assert_eq!(wanted[row].is_some(), before != actions[row]);
            }
            let summary = tally.summary(&policy);
            assert_eq!(summary.capped.as_ref().map_or(0, |capped| capped.moved) as usize, wanting - granted);
            let share = summary.shares.get("route:a").copied().unwrap_or(0.0);
            assert!((share - granted as f64 / queries.rows() as f64).abs() < 1e-12);
        }
    }
}

/// Held-out rows are evaluated with the actions that they get when the table is decided under the caps.
#[test]
fn evaluation_within_caps_is_that_of_the_decisions() {
    let (calibration, queries) = (world(600, 1, 4), world(700, 2, 4));
    let base = || Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.02).unwrap().abstain(0.5).unwrap();
    for (partition, task) in [
        ("top-class:4", base()),
        ("forest:20", base()),
        ("top-class:4", base().budget(0.1).unwrap()),
        ("forest:20", base().budget(0.1).unwrap()),
    ] {
        let router = Router::calibrate(&calibration, &partition.parse::<Partition>().unwrap()).unwrap();
        let policy = router.policy(&task).unwrap();
        let plain = policy.replay(&queries).unwrap();
        for price in [0.02, 0.03] {
            let policy = policy.reprice(&task.clone().reprice_route("a", price).unwrap()).unwrap();
            let caps = Caps::new(&task, [("a", CapSize::Queries(15))]).unwrap();
            let (actions, wanted, _, rule) = decide_capped(&policy, &caps, &queries);
            let replay = plain.clone().with_caps(caps, &queries, None).unwrap();
            let found = replay.evaluate(&policy).unwrap();
            let cost = |row: usize| {
                let votes = queries.votes(row).unwrap();
                let truth: Vec<f64> = votes.counts().iter().map(|&n| f64::from(n) / votes.k() as f64).collect();
                match actions[row].as_str() {
                    "predict" => Loss::brier().expected(&truth, &queries.prediction(row)),
                    "abstain" => 0.5,
                    _ => Loss::brier().entropy(&truth) + price,
                }
            };
            let expected = (0..queries.rows()).map(cost).sum::<f64>() / queries.rows() as f64;
            let router = *found.mean_cost.get("router").unwrap();
            assert!((router - expected).abs() < 1e-9, "{partition} {price}: {router} {expected}");
            // A further row that is routed displaces one. By that the price of the cap is saved, and the surcharge of a limit, which decides
            // but is not paid.
            let surcharge = policy.surcharge_price().unwrap_or(0.0);
            assert_eq!(surcharge > 0.0, task.limit().is_some(), "{partition} {price}");
            let used = rule.uses()[0];
            let displaced = used.price + surcharge;
            let priced = |row: usize| cost(row) + if actions[row] == "route:a" { displaced } else { 0.0 };
            let mean = (0..queries.rows()).map(priced).sum::<f64>() / queries.rows() as f64;
            let squares: f64 = (0..queries.rows()).map(|row| (priced(row) - mean).powi(2)).sum();
            let error = found.standard_error.get("router").copied().flatten().unwrap();
            assert!((error - squares.sqrt() / queries.rows() as f64).abs() < 1e-9, "{partition} {price}: {error}");
            assert!(found.regret_ignores_limit);
            assert!((found.shares.get("route:a").unwrap() - 15.0 / 700.0).abs() < 1e-12);
            let cap = &found.caps[0];
            assert_eq!((cap.most, cap.wanted, cap.granted), (15, used.wanted, used.granted));
            assert!((cap.price - displaced).abs() < 1e-12, "{partition} {price}: {} {displaced}", cap.price);
            let without = plain.evaluate(&policy).unwrap();
            let capped = found.capped.unwrap();
            let costs = [&found, &without].map(|it| *it.best_costs().get("router").unwrap());
            assert!((capped.cost - (costs[0] - costs[1])).abs() < 1e-9, "{capped:?} {costs:?}");
            assert!(capped.standard_error.is_some_and(|error| error > 0.0));
            let moved = (0..queries.rows()).filter(|&row| wanted[row].is_some()).count();
            assert!(capped.moved == moved && moved > 0, "{partition} {price}: {} of {moved}", capped.moved);
        }
        let loose = Caps::new(&task, [("a", CapSize::Queries(700))]).unwrap();
        let loose = plain.clone().with_caps(loose, &queries, None).unwrap().evaluate(&policy).unwrap();
        assert_eq!(loose.mean_cost, plain.evaluate(&policy).unwrap().mean_cost);
        assert!(loose.capped.is_none() && loose.caps.len() == 1);
        assert_eq!(loose.regret_ignores_limit, task.limit().is_some());
    }
}

/// The best threshold is held to the same share as the router, so that a row that is routed displaces another under both rules.
#[test]
fn savings_within_caps_over_a_threshold_that_acts_alike_are_certainly_zero() {
    // Three confidences; the least sure rows gain most. Labels agree, so that an oracle loses nothing.
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for (confidence, rows) in [(0.95, 300), (0.75, 60), (0.6, 40)] {
        for row in 0..rows {
            let is_first = f64::from(row) < confidence * f64::from(rows);
            probs.push(vec![confidence, 1.0 - confidence]);
            votes.push(if is_first { vec![3, 0] } else { vec![0, 3] });
        }
    }
    let rows = table(2, &probs, &votes);
    let task = task(1);
    let policy = Router::calibrate(&rows, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
    let replay = policy.replay(&rows).unwrap().with_caps(caps(&task, &[40]), &rows, None).unwrap();
    let found = replay.evaluate(&policy).unwrap();
    assert!(found.caps[0].wanted > 100 && found.caps[0].price > 0.1, "{:?}", found.caps);
    let saving = *found.savings.unwrap().get("best-threshold").unwrap();
    assert_eq!((saving.estimate, saving.differing_rows), (0.0, 0));
    for error in [saving.standard_error, saving.share_standard_error] {
        assert!(error.unwrap() < 1e-9, "{saving:?}");
    }
    let own = found.corrected_standard_error.unwrap().get("router").copied().flatten();
    close(saving.cost_standard_error.unwrap(), own.unwrap(), 1e-12, "both rules displace the same rows");
}

/// Rows of three confidences: 300 predicted rightly at 0.95, 60 wrongly at 0.75 and 40 rightly at 0.6. Labels agree, so that an oracle loses
/// nothing. Under the Brier loss predictions lose 0.005, 1.125 and 0.32, and routing costs 0.02.
fn three_confidences() -> Table {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for (confidence, is_right, rows) in [(0.95, true, 300), (0.75, false, 60), (0.6, true, 40)] {
        for _ in 0..rows {
            probs.push(vec![confidence, 1.0 - confidence]);
            votes.push(if is_right { vec![3, 0] } else { vec![0, 3] });
        }
    }
    table(2, &probs, &votes)
}

/// The saving of the router over the best threshold within a cap.
fn saving_over_threshold(rows: &Table, most: u64) -> Saving {
    let task = task(1);
    let policy = Router::calibrate(rows, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
    let found = policy.replay(rows).unwrap().with_caps(caps(&task, &[most]), rows, None).unwrap();
    *found.evaluate(&policy).unwrap().savings.unwrap().get("best-threshold").unwrap()
}

/// Within a cap of 40 rows, whose weights are small, a threshold routes those at 0.6, while the router routes heavier ones at 0.75.
#[test]
fn best_threshold_keeps_caps_where_rows_have_weights() {
    let rows = three_confidences();
    let weights = (0..400).map(|row| if (300..360).contains(&row) { 3.0 } else { 1.0 }).collect();
    let saving = saving_over_threshold(&rows.with_weights(weights).unwrap(), 40);
    let wanted = (300.0 * 0.005 + 180.0 * 1.125 + 40.0 * 0.02) / 520.0;
    close(saving.cost, wanted, 1e-9, "cost of the threshold");
}

/// Within a cap of 60 of 400 rows, a threshold routes the 40 rows at 0.6 and a third of those at 0.75. If n of N rows are at 0.95 and m at 0.6,
/// its cost is [0.005 n + 0.02 · 0.15 N + 1.125 (N − n − 0.15 N)] / N, whatever m is: 0.005 for a row at 0.95, 1.125 for others, and a constant.
#[test]
fn standard_error_of_the_best_threshold_has_the_saving_of_the_rows_that_it_displaces() {
    let saving = saving_over_threshold(&three_confidences(), 60);
    close(saving.cost, (300.0 * 0.005 + 60.0 * 0.02 + 40.0 * 1.125) / 400.0, 1e-9, "cost of the threshold");
    let spread = 1.12 * (0.75_f64 * 0.25).sqrt();
    close(saving.cost_standard_error.unwrap(), spread / 20.0, 1e-9, "standard error of this cost");
}

#[test]
fn two_capped_routes_keep_their_caps() {
    let (calibration, queries) = (world(600, 1, 4), world(700, 2, 4));
    let task = Task::new(Loss::brier())
        .route("a", Oracle::bayes(), 0.05)
        .and_then(|task| task.route("b", Oracle::panel(2, pointsman::oracle::Aggregate::Mean)?, 0.0))
        .and_then(|task| task.abstain(0.55))
        .unwrap();
    for partition in ["top-class:4", "forest:20"] {
        let router = Router::calibrate(&calibration, &partition.parse::<Partition>().unwrap()).unwrap();
        let policy = router.policy(&task).unwrap();
        let caps = Caps::new(&task, [("b", CapSize::Percent(10.0)), ("a", CapSize::Queries(30))]).unwrap();
        let (actions, _, tally, rule) = decide_capped(&policy, &caps, &queries);
        let count = |name: &str| actions.iter().filter(|action| *action == name).count();
        assert!(count("route:a") <= 30 && count("route:b") <= 70, "{partition}");
        // A route has a price if and only if its cap is used up.
        for (used, most) in rule.uses().iter().zip([30, 70]) {
            assert_eq!(used.most, most);
            assert!(used.price == 0.0 || used.granted == used.most, "{partition}: {used:?}");
        }
        let cost = tally.summary(&policy).expected_cost.unwrap();
        assert!(cost.get("router") <= cost.get("always-predict"));
        // A threshold that routes as many rows in all might break one of the caps.
        let replay = policy.replay(&queries).unwrap();
        let threshold =
            |replay: &Replay| replay.evaluate(&policy).unwrap().savings.unwrap().get("best-threshold").copied();
        assert!(threshold(&replay).is_some(), "{partition}");
        assert!(threshold(&replay.with_caps(caps, &queries, None).unwrap()).is_none(), "{partition}");
    }
}

/// The standard error is the spread of the cost over tables whose rows have weights of 1, 3 and 20, of which a share is routed.
#[test]
fn standard_errors_within_caps_are_the_spread_over_tables_of_weighted_rows() {
    let task = task(1);
    let policy = Router::calibrate(&world(600, 1, 4), &Partition::top_class(4)).unwrap().policy(&task).unwrap();
    let weight = |row: usize| [1.0, 3.0, 20.0][row % 3];
    let found: Vec<[f64; 2]> = (0..400)
        .map(|seed| {
            let rows = world(150, 100 + seed, 4).with_weights((0..150).map(weight).collect()).unwrap();
            let replay = policy.replay_uncorrected(&rows).unwrap().with_caps(caps(&task, &[45]), &rows, None).unwrap();
            let found = replay.evaluate(&policy).unwrap();
            let error = found.standard_error.get("router").copied().flatten().unwrap();
            [*found.mean_cost.get("router").unwrap(), error]
        })
        .collect();
    let mean = |value: &dyn Fn(&[f64; 2]) -> f64| found.iter().map(value).sum::<f64>() / 400.0;
    let centre = mean(&|[cost, _]| *cost);
    let spread = mean(&|[cost, _]| (cost - centre).powi(2)).sqrt();
    let ratio = mean(&|[_, error]| *error) / spread;
    // The spread of 400 values is known to 4 %.
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// Decisions on a table within a cap of the first route.
fn decisions_within(policy: &Policy, queries: &Table, most: u64) -> Decisions {
    let caps = caps(policy.task(), &[most]);
    let mut decisions = policy.decide_batch(queries).unwrap();
    let keys = policy.cap_keys_of_table(queries, None).unwrap();
    let bids = policy.bids(&caps, &decisions, &keys);
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(&caps, queries.rows() as u64, scan);
    policy.apply_caps(&mut rule, &mut decisions, &keys);
    decisions
}

fn cost_of_cap(policy: &Policy, batches: &[&Decisions]) -> (CappedSummary, f64) {
    let mut tally = Tally::default();
    batches.iter().for_each(|batch| tally.add(policy, batch));
    let summary = tally.summary(policy);
    (summary.capped.unwrap(), *summary.expected_cost.unwrap().get("router").unwrap())
}

/// One in twenty calibration rows is like the queries, of which a tenth gets the route. What the cap costs is as uncertain with a forest as
/// with two cells that separate these rows.
#[test]
fn costs_of_caps_of_forests_are_estimated_from_rows_like_the_queries() {
    let mut rng = Rng::new(5);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for row in 0..4000 {
        let confidence = if row % 20 == 0 { 0.6 } else { 0.95 } + 0.02 * rng.uniform();
        let is_right = rng.uniform() < confidence;
        probs.push(vec![confidence, 1.0 - confidence]);
        votes.push(if is_right { vec![3, 0] } else { vec![0, 3] });
    }
    let rows = table(2, &probs, &votes);
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.2).unwrap();
    let queries = (0..500).map(|_| 0.6 + 0.02 * rng.uniform()).flat_map(|p| [p, 1.0 - p]).collect();
    let queries = Table::new(["ant", "bee"], queries).unwrap();
    let [cells, forest] = [Partition::confidence(20), Partition::forest(40)].map(|partition| {
        let policy = Router::calibrate(&rows, &partition).unwrap().policy(&task).unwrap();
        let (capped, _) = cost_of_cap(&policy, &[&decisions_within(&policy, &queries, 50)]);
        assert_eq!(capped.moved, 450, "{partition}");
        (capped.cost, capped.standard_error.unwrap())
    });
    assert!((forest.0 - cells.0).abs() < 2.0 * cells.1, "{forest:?} {cells:?}");
    assert!((0.4..1.6).contains(&(forest.1 / cells.1)), "{forest:?} {cells:?}");
}

/// Queries of one cell of a forest want the route more often than its calibration rows, of which a cap moves none.
#[test]
fn costs_of_caps_that_move_no_calibration_rows_have_no_standard_error() {
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.1).unwrap();
    let policy = Router::calibrate(&world(600, 1, 4), &Partition::forest(20)).unwrap().policy(&task).unwrap();
    let queries = world(6000, 2, 4);
    let decisions = policy.decide_batch(&queries).unwrap();
    let share = |shares: &Option<Named<f64>>| shares.as_ref().and_then(|shares| shares.get("route:a").copied());
    let shares: Vec<Option<f64>> = policy.shares_within_cells().unwrap().iter().map(share).collect();
    let mut found = false;
    for (cell, _) in shares.iter().enumerate().filter(|(_, share)| share.is_some_and(|share| share < 0.45)) {
        let of_cell = |row: &usize| policy.row(&decisions, *row).cell().index() == cell;
        let wants = |row: &usize| policy.row(&decisions, *row).code() == Some(1);
        let (wanting, others): (Vec<usize>, Vec<usize>) = (0..queries.rows()).filter(of_cell).partition(wants);
        if wanting.len() < 60 || others.len() < 40 {
            continue;
        }
        found = true;
        let rows = wanting[..60].iter().chain(&others[..40]);
        let batch = rows.flat_map(|&row| queries.prediction(row).to_vec()).collect();
        let batch = Table::new(queries.classes().to_vec(), batch).unwrap();
        let decisions = decisions_within(&policy, &batch, 50);
        let (capped, _) = cost_of_cap(&policy, &[&decisions]);
        let by_estimates = (0..100).map(|row| policy.row(&decisions, row).cost_of_cap()).sum::<f64>() / 100.0;
        assert_eq!((capped.moved, capped.standard_error), (10, None));
        close(capped.cost, by_estimates, 1e-12, "by the estimates that decide");
    }
    assert!(found);
}

/// A quarter of the queries wants the route and saves 0.72 − 0.02 by it. In the first of two equal batches it is missing, in the second not.
#[test]
fn batches_in_which_a_route_is_missing_lose_what_they_would_have_saved_by_it() {
    let is_wrong = |row: usize| row % 4 == 3;
    let probs: Vec<Vec<f64>> =
        (0..200).map(|row| if is_wrong(row) { vec![0.6, 0.4] } else { vec![0.95, 0.05] }).collect();
    let votes: Vec<Vec<u32>> = (0..200).map(|row| if is_wrong(row) { vec![0, 3] } else { vec![3, 0] }).collect();
    let rows = table(2, &probs, &votes);
    let task = task(1);
    let policy = Router::calibrate(&rows, &Partition::top_class(10)).unwrap().policy(&task).unwrap();
    let free = policy.decide_batch(&rows).unwrap();
    let mut missing = free.clone();
    missing.keep_available(&policy, &AvailableRoutes::all().without(&task, "a").unwrap());
    let restored = policy.restore(missing.store()).unwrap();
    let capped = decisions_within(&policy, &rows, 0);
    for batches in [[&missing, &free], [&free, &missing], [&restored, &free], [&capped, &free]] {
        let (found, router) = cost_of_cap(&policy, &batches);
        // 0.005 where the prediction is right.
        close(found.cost, 0.25 * 0.70 / 2.0, 1e-9, "cost of the missing route");
        close(router, 0.75 * 0.005 + 0.25 * (0.72 + 0.02) / 2.0, 1e-9, "expected cost");
        assert_eq!(found.moved, 50);
    }
}

/// One label per item bounds the cost of the route, at whose upper end queries are moved.
#[test]
fn costs_of_caps_have_the_bounds_of_one_label() {
    // Predictions near 0.9 of which half are right: predicting loses about 0.82, and the oracle 0.5 at most.
    let probs: Vec<Vec<f64>> = (0..300).map(|row| 0.88 + f64::from(row) * 1e-4).map(|p| vec![p, 1.0 - p]).collect();
    let votes: Vec<Vec<u32>> = (0..300).map(|row| vec![row % 2, 1 - row % 2]).collect();
    let rows = table(2, &probs, &votes);
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.02).unwrap().abstain(0.7).unwrap();
    for partition in [Partition::top_class(1), Partition::confidence(4)] {
        let policy = Router::calibrate(&rows, &partition).unwrap().policy(&task).unwrap();
        let decisions = decisions_within(&policy, &rows, 0);
        let (mut low, mut high) = (0.0, 0.0);
        for row in (0..300).filter(|&row| policy.row(&decisions, row).wanted().is_some()) {
            // Predicting and abstaining have known costs.
            let decision = policy.row(&decisions, row);
            let taken = decision.costs()[decision.code().unwrap()];
            low += (taken - decision.costs_high()[1]) / 300.0;
            high += (taken - decision.costs()[1]) / 300.0;
        }
        let mut tally = Tally::default();
        tally.add(&policy, &decisions);
        let found = tally.summary(&policy).capped.unwrap();
        let identified = found.identified.unwrap();
        assert!(high > low + 0.01, "{partition}: {low} {high}");
        close(found.cost, low, 1e-12, "cost by upper ends");
        close(identified[0], low, 1e-12, "lower bound");
        close(identified[1], high, 1e-12, "upper bound");
    }
}

/// Without the cap, all queries take a route of known loss; with it, one whose loss few labels do not identify.
#[test]
fn costs_of_caps_have_the_bounds_of_the_route_that_they_lead_to() {
    let calibration = world(600, 1, 3);
    let answers: Vec<f64> = (0..600)
        .flat_map(|row| calibration.votes(row).unwrap().counts().to_vec())
        .map(|n| (f64::from(n) + 0.1) / 3.3)
        .collect();
    let calibration = calibration.with_oracle("a", answers).unwrap();
    let task = Task::new(Loss::cross_entropy()).route("a", Oracle::measured(), 0.0).unwrap();
    let task = task.route("b", Oracle::bayes(), 0.01).unwrap();
    let policy = Router::calibrate(&calibration, &Partition::top_class(4)).unwrap().policy(&task).unwrap();
    let plain = policy.decide_batch(&calibration).unwrap();
    assert!((0..600).all(|row| policy.row(&plain, row).code() == Some(1)));
    let mut tally = Tally::default();
    tally.add(&policy, &decisions_within(&policy, &calibration, 0));
    let summary = tally.summary(&policy);
    let (capped, router) = (summary.capped.unwrap(), *summary.expected_cost.unwrap().get("router").unwrap());
    assert_eq!(capped.to.get("route:b"), Some(&600));
    let (found, wanted) = (capped.identified.unwrap(), summary.identified.unwrap());
    assert!(wanted[1] > wanted[0] + 0.01);
    for end in [0, 1] {
        close(found[end] - capped.cost, wanted[end] - router, 1e-9, "only the second route is open");
    }
}

/// A further row that is routed displaces one, which loses more by the price of the cap and that of the route.
#[test]
fn loss_reached_within_caps_varies_with_the_loss_of_displaced_rows() {
    let (calibration, queries, price) = (world(600, 1, 4), world(700, 2, 4), 0.3);
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), price).unwrap();
    let router = Router::calibrate(&calibration, &Partition::top_class(4)).unwrap();
    let always = router.policy(&task).unwrap().promise().unwrap().always;
    let [predicting, routing] = ["predict", "route:a"].map(|name| *always.get(name).unwrap());
    let task = task.target_loss(f64::midpoint(predicting, routing - price)).unwrap();
    let policy = router.policy(&task).unwrap();
    let caps = Caps::new(&task, [("a", CapSize::Queries(15))]).unwrap();
    let (actions, ..) = decide_capped(&policy, &caps, &queries);
    let found = policy.replay(&queries).unwrap().with_caps(caps, &queries, None).unwrap().evaluate(&policy).unwrap();
    let loss = |row: usize| {
        let votes = queries.votes(row).unwrap();
        let truth: Vec<f64> = votes.counts().iter().map(|&n| f64::from(n) / votes.k() as f64).collect();
        match actions[row].as_str() {
            "predict" => Loss::brier().expected(&truth, &queries.prediction(row)),
            _ => Loss::brier().entropy(&truth),
        }
    };
    let mean_over = |value: &dyn Fn(usize) -> f64| (0..700).map(value).sum::<f64>() / 700.0;
    let displaced = found.caps[0].price + price;
    let varies = |row: usize| loss(row) + if actions[row] == "route:a" { displaced } else { 0.0 };
    let (mean, centre) = (mean_over(&loss), mean_over(&varies));
    let error = (mean_over(&|row| (varies(row) - centre).powi(2)) / 700.0).sqrt();
    let reached = found.loss_reached.unwrap();
    assert!((reached.mean - mean).abs() < 1e-9 && displaced > 0.0, "{reached:?} {mean} {displaced}");
    assert!((reached.standard_error.unwrap() - error).abs() < 1e-9, "{reached:?} {error}");
}

#[test]
fn percentages_are_rounded_down_and_invalid_caps_are_refused() {
    let of = |text: &str, rows: u64| text.parse::<CapSize>().unwrap().of(rows);
    assert_eq!([of("29%", 100), of("5%", 199), of("0.1 %", 999), of("100%", 7), of("12", 5)], [29, 9, 0, 7, 12]);
    for text in ["", "-1", "5.5", "101%", "-1%", "nan%", "%", "5 per cent", "1e3"] {
        let reason = text.parse::<CapSize>().unwrap_err().to_string();
        assert!(reason.contains("give a whole number of queries"), "{reason}");
    }
    let task = task(1);
    let one = || CapSize::Queries(1);
    for (given, word) in [
        (vec![("nobody", one())], "no route is called \"nobody\""),
        (vec![("a", one()), ("a", one())], "two caps"),
        (vec![], "from 1 to"),
    ] {
        let reason = Caps::new(&task, given).unwrap_err().to_string();
        assert!(reason.contains(word), "{reason}");
    }
}
