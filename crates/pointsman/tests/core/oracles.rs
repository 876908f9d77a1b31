//! Panels and measured oracles: what they lose, how that is estimated from labels, and what a policy makes of it.

use pointsman::oracle::Aggregate;
use pointsman::{Action, CellId, Estimator, Evaluation, Loss, Oracle, Partition, Policy, Router, Table, Task};
use proptest::prelude::*;

use crate::world::{CLASS_NAMES, Rng, any_loss, close, compositions, dist, multinomial, population, said, table};

fn panel(experts: u32, aggregate: Aggregate) -> Oracle {
    Oracle::panel(experts, aggregate).unwrap()
}

/// The aggregates that a loss can judge.
fn aggregates(loss: &Loss) -> Vec<Aggregate> {
    let all = [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0), Aggregate::Laplace(0.25)];
    all.into_iter().filter(|&aggregate| panel(1, aggregate).check_loss(loss).is_ok()).collect()
}

/// c(L, p) from its definition: every outcome of the panel, judged by p.
fn by_definition(loss: &Loss, experts: u32, aggregate: Aggregate, p: &[f64]) -> f64 {
    let answers = |counts: &[u32]| -> Vec<Vec<f64>> {
        let share = |add: f64| {
            let sum: f64 = counts.iter().map(|&n| f64::from(n) + add).sum();
            vec![counts.iter().map(|&n| (f64::from(n) + add) / sum).collect()]
        };
        match aggregate {
            Aggregate::Mean => share(0.0),
            Aggregate::Laplace(smoothing) => share(smoothing),
            Aggregate::Plurality => {
                let most = counts.iter().max().unwrap();
                let winners = (0..counts.len()).filter(|&class| counts[class] == *most);
                winners.map(|winner| (0..counts.len()).map(|c| f64::from(u8::from(c == winner))).collect()).collect()
            }
            other => panic!("{other} is not defined here"),
        }
    };
    let outcomes = compositions(experts, p.len());
    let outcome = |counts: &Vec<u32>| {
        let answers = answers(counts);
        let mean = answers.iter().map(|answer| loss.expected(p, answer)).sum::<f64>() / answers.len() as f64;
        multinomial(counts, p) * mean
    };
    outcomes.iter().map(outcome).sum()
}

/// The cost of routing all rows of a table, taken as one cell, to one oracle at no price.
fn estimated(table: &Table, loss: &Loss, oracle: &Oracle, estimator: Estimator) -> [f64; 2] {
    let task = Task::new(loss.clone()).estimator(estimator).route("asked", oracle.clone(), 0.0).unwrap();
    let policy = Router::calibrate(table, &Partition::confidence(1)).unwrap().policy(&task).unwrap();
    let decision = policy.cell(CellId(0)).unwrap();
    [decision.costs()[1], decision.costs_high()[1]]
}

fn world() -> impl Strategy<Value = (Loss, Vec<f64>)> {
    (2_usize..=4).prop_flat_map(|classes| (any_loss(classes), dist(classes)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_panel_costs_what_its_definition_says((loss, p) in world(), m in 1_u32..6) {
        for aggregate in aggregates(&loss) {
            let (found, wanted) = (panel(m, aggregate).cost(&loss, &p).unwrap(), by_definition(&loss, m, aggregate, &p));
            prop_assert!((found - wanted).abs() <= 1e-12 * loss.bound().max(1.0), "{aggregate} {found} {wanted}");
            prop_assert!(found >= loss.entropy(&p) - 1e-12 * loss.bound().max(1.0), "no panel beats the truth");
        }
    }

    /// Over all labels an item can get, at their chances, the estimate is the panel's loss: more labels than experts, any
    /// loss, any estimator; and two labels for the Brier loss of shares.
    #[test]
    fn dividing_the_labels_is_unbiased((loss, p) in world(), m in 1_u32..4, more in 1_u32..3) {
        let f = vec![1.0 / p.len() as f64; p.len()];
        for aggregate in aggregates(&loss) {
            let oracle = panel(m, aggregate);
            let brier = loss == Loss::brier() && aggregate != Aggregate::Plurality;
            let mut numbers = vec![m + more];
            numbers.extend(brier.then_some(2));
            for k in numbers {
                let items = population(&[(1.0, p.clone(), f.clone())], &[(1.0, k)]);
                for estimator in [Estimator::Shrink, Estimator::Plugin, Estimator::Dirichlet] {
                    let [low, high] = estimated(&items, &loss, &oracle, estimator);
                    let wanted = oracle.cost(&loss, &p).unwrap();
                    prop_assert_eq!(low, high);
                    prop_assert!((low - wanted).abs() <= 1e-11 * loss.bound().max(1.0), "{} {} {}", oracle, low, wanted);
                }
            }
        }
    }

    #[test]
    fn an_oracle_s_loss_changes_no_faster_than_its_constant((loss, p) in world(), seed in any::<u64>(), m in 1_u32..6) {
        let q = Rng::new(seed).dist(p.len());
        let distance: f64 = p.iter().zip(&q).map(|(x, y)| (x - y).abs()).sum();
        let oracles = aggregates(&loss).into_iter().map(|aggregate| panel(m, aggregate)).chain([Oracle::bayes()]);
        for oracle in oracles {
            let constant = oracle.lipschitz(&loss, p.len());
            let change = (oracle.cost(&loss, &p).unwrap() - oracle.cost(&loss, &q).unwrap()).abs();
            prop_assert!(change <= constant * distance * (1.0 + 1e-4) + 1e-12 * loss.bound(), "{oracle} {change} {constant}");
            prop_assert!(constant <= f64::from(m + 1) * loss.bound() / 2.0 + 1e-12);
        }
    }

    /// With one label an item nothing but the mean is known. Whatever the true distributions with that mean, the costs are
    /// within their bounds, and an action that is taken is the cheapest.
    #[test]
    fn one_label_an_item_decides_only_what_it_can(
        classes in 2_usize..=3, seed in any::<u64>(), pick in any::<prop::sample::Index>(), m in 1_u32..4,
    ) {
        let mut rng = Rng::new(seed);
        let losses = ["brier", "zero-one", "spherical", "asymmetric:3"];
        let loss: Loss = losses[pick.index(losses.len())].parse().unwrap();
        let f = rng.dist(classes);
        let items: Vec<_> = (0..3).map(|_| (1.0 / 3.0, rng.dist(classes), f.clone())).collect();
        let mut task = Task::new(loss.clone()).abstain(rng.uniform()).unwrap();
        let oracles = [Oracle::bayes(), panel(m, Aggregate::Mean), panel(m + 2, Aggregate::Plurality), panel(5, Aggregate::Mean)];
        for (i, oracle) in oracles.iter().enumerate() {
            task = task.route(format!("r{i}"), oracle.clone(), 0.4 * rng.uniform().powi(2)).unwrap();
        }
        let router = Router::calibrate(&population(&items, &[(1.0, 1)]), &Partition::confidence(1)).unwrap();
        let policy = router.policy(&task).unwrap();
        let decision = policy.cell(CellId(0)).unwrap();
        let mean = |value: &dyn Fn(&[f64]) -> f64| items.iter().map(|(share, p, _)| share * value(p)).sum::<f64>();
        let mut truth = vec![mean(&|p| loss.expected(p, &f))];
        truth.extend(task.routes().iter().map(|route| mean(&|p| route.oracle().cost(&loss, p).unwrap()) + route.price()));
        truth.extend(task.abstain_price());
        for ((low, high), cost) in decision.costs().iter().zip(decision.costs_high()).zip(&truth) {
            prop_assert!(low - 1e-9 <= *cost && *cost <= high + 1e-9, "{low} {cost} {high}");
        }
        if let Some(action) = crate::world::position(&policy, decision.action()) {
            let least = truth.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(truth[action] <= least + 1e-9, "{:?} {:?}", decision.action(), truth);
        }
    }
}

/// The constants of MATHS §5, and what more experts lead to.
#[test]
fn constants_and_limits() {
    for (m, wanted) in [(3, 0.71), (5, 0.67), (25, 0.64)] {
        close(panel(m, Aggregate::Plurality).lipschitz(&Loss::zero_one(), 2), wanted, 0.006, "majority");
    }
    for m in [1, 3, 10] {
        close(panel(m, Aggregate::Mean).lipschitz(&Loss::brier(), 7), 1.0 + 1.0 / f64::from(m), 1e-12, "Brier");
    }
    let dear = Loss::fn_fp(1.0, 4.0).unwrap();
    let steepest = (1..=5).map(|m| panel(m, Aggregate::Laplace(1.0)).lipschitz(&dear, 2)).fold(0.0, f64::max);
    close(steepest, 4.5, 0.06, "false negatives are dear");
    for (loss, p) in [("brier", vec![0.2, 0.5, 0.3]), ("zero-one", vec![0.3, 0.7]), ("cross-entropy", vec![0.1, 0.9])] {
        let loss: Loss = loss.parse().unwrap();
        for aggregate in aggregates(&loss) {
            let excess = |m| panel(m, aggregate).cost(&loss, &p).unwrap() - loss.entropy(&p);
            let limit = if aggregate == Aggregate::Plurality && loss == Loss::brier() {
                // The winner alone is named, and that is not the distribution.
                loss.expected(&p, &[0.0, 1.0, 0.0]) - loss.entropy(&p)
            } else {
                0.0
            };
            assert!((excess(1000) - limit).abs() < 0.006, "{loss} {aggregate}: {}", excess(1000));
            assert!((excess(1) - limit).abs() >= (excess(1000) - limit).abs(), "{loss} {aggregate}");
        }
    }
}

#[test]
fn a_logarithm_needs_smoothing() {
    for kind in ["panel:m=3", "panel:m=3,aggregate=plurality"] {
        let error = Task::new(Loss::cross_entropy()).route("jury", kind.parse().unwrap(), 0.1).unwrap_err().to_string();
        assert!(error.contains("use aggregate=laplace"), "{error}");
    }
    Task::new(Loss::cross_entropy()).route("jury", "panel:m=3,aggregate=laplace".parse().unwrap(), 0.1).unwrap();
}

/// Items of two kinds of prediction with known truth, `k` labels each, and a model's answers that are the truth itself.
fn draw(seed: u64, rows: usize, ks: &[usize], with_truth: bool) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut truth, mut votes) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let f = if rng.uniform() < 0.5 { [0.6, 0.3, 0.1] } else { [0.1, 0.1, 0.8] };
        let noise = rng.dist(3);
        let p: Vec<f64> = f.iter().zip(&noise).map(|(f, noise)| 0.5 * f + 0.5 * noise).collect();
        votes.extend(rng.votes(&p, ks[row % ks.len()]));
        probs.extend(f);
        truth.extend(p);
    }
    let table = Table::new(CLASS_NAMES[..3].to_vec(), probs.clone()).unwrap().with_votes(votes).unwrap();
    let table = table.with_oracle("seer", truth.clone()).unwrap().with_oracle("copy", probs).unwrap();
    if with_truth { table.with_truth(truth).unwrap() } else { table }
}

fn route_cost(policy: &Policy, cell: u32, route: usize) -> f64 {
    policy.cell(CellId(cell)).unwrap().costs()[1 + route]
}

#[test]
fn panels_are_estimated_near_the_truth() {
    for (ks, estimators) in [
        (&[8][..], &[Estimator::Shrink][..]),
        // Fewer labels than experts, and both kinds in one cell.
        (&[3][..], &[Estimator::Shrink, Estimator::Dirichlet, Estimator::Npmle][..]),
        (&[3, 8][..], &[Estimator::Shrink, Estimator::Dirichlet][..]),
    ] {
        let table = draw(5, 6000, ks, true);
        for (loss, aggregate) in [
            ("brier", Aggregate::Mean),
            ("zero-one", Aggregate::Plurality),
            ("cross-entropy", Aggregate::Laplace(1.0)),
            ("spherical", Aggregate::Laplace(0.5)),
        ] {
            let (loss, oracle): (Loss, Oracle) = (loss.parse().unwrap(), panel(5, aggregate));
            let truth = (0..table.rows()).map(|row| oracle.cost(&loss, table.truth(row).unwrap()).unwrap());
            let truth = truth.sum::<f64>() / table.rows() as f64;
            for &estimator in estimators {
                let [found, high] = estimated(&table, &loss, &oracle, estimator);
                assert_eq!(found, high);
                close(found, truth, 0.015, &format!("{loss} {oracle} {estimator} {ks:?}"));
            }
        }
    }
}

/// Items of two kinds, which shrinking draws together and a plurality does not: the likeliest law keeps them apart.
#[test]
fn npmle_knows_what_a_panel_loses_on_two_kinds_of_items() {
    let two = [(0.5, vec![0.85, 0.15], vec![0.5, 0.5]), (0.5, vec![0.35, 0.65], vec![0.5, 0.5])];
    let three = [(0.6, vec![0.8, 0.1, 0.1], vec![0.4, 0.3, 0.3]), (0.4, vec![0.1, 0.5, 0.4], vec![0.4, 0.3, 0.3])];
    for items in [&two[..], &three[..]] {
        // Too few labels for the panel throughout; or on half of the items, whose own labels then say which kind they are.
        for ks in [&[(1.0, 5)][..], &[(0.5, 4), (0.5, 8)][..]] {
            let table = population(items, ks);
            for loss in [Loss::zero_one(), Loss::brier()] {
                let oracle = panel(7, Aggregate::Plurality);
                let truth: f64 = items.iter().map(|(share, p, _)| share * oracle.cost(&loss, p).unwrap()).sum();
                let [npmle, shrink] = [Estimator::Npmle, Estimator::Shrink].map(|estimator| {
                    let [low, high] = estimated(&table, &loss, &oracle, estimator);
                    assert_eq!(low, high);
                    (low - truth).abs()
                });
                assert!(npmle < 0.007 && npmle < shrink / 2.0, "{loss} {oracle} {ks:?}: off by {npmle} and {shrink}");
            }
        }
    }
}

#[test]
fn a_measured_oracle_costs_what_it_lost() {
    for k in [1, 6] {
        let table = draw(9, 4000, &[k], true);
        for loss in ["brier", "cross-entropy", "zero-one"] {
            let loss: Loss = loss.parse().unwrap();
            let task = Task::new(loss.clone()).route("copy", Oracle::measured(), 0.0).unwrap();
            let task = task.route("seer", Oracle::measured(), 0.0).unwrap();
            let policy = Router::calibrate(&table, &Partition::confidence(1)).unwrap().policy(&task).unwrap();
            let decision = policy.cell(CellId(0)).unwrap();
            assert_eq!(decision.costs(), decision.costs_high(), "known with one label per item");
            close(decision.costs()[1], decision.costs()[0], 1e-12, "an oracle that repeats the model loses as much");
            let truth = (0..table.rows()).map(|row| loss.entropy(table.truth(row).unwrap())).sum::<f64>();
            close(
                decision.costs()[2],
                truth / table.rows() as f64,
                0.03,
                "who knows the truth loses what is irreducible",
            );
        }
    }
}

#[test]
fn a_measured_oracle_without_predictions_is_named() {
    let task = Task::new(Loss::brier()).route("gpt", Oracle::measured(), 0.1).unwrap();
    let router = Router::calibrate(&draw(1, 50, &[3], false), &Partition::top_class(1)).unwrap();
    let error = router.policy(&task).unwrap_err().to_string();
    assert!(error.contains("no column oracle_gpt_ant") && error.contains("seer"), "{error}");
    // The held-out rows need it as well.
    let task = Task::new(Loss::brier()).route("seer", Oracle::measured(), 0.1).unwrap();
    let bare = table(3, &[vec![0.6, 0.3, 0.1]], &[vec![1, 1, 1]]);
    let error = router.policy(&task).unwrap().replay(&bare).unwrap_err().to_string();
    assert!(error.contains("no column oracle_seer_ant") && error.contains("calibration table"), "{error}");
}

fn jury() -> Task {
    let mut task = Task::new(Loss::brier());
    for m in [1, 3, 5, 9] {
        task = task.route(format!("jury of {m}"), panel(m, Aggregate::Mean), 0.012 * f64::from(m)).unwrap();
    }
    task
}

/// A priced list of panels is a task like any other: each cell takes the size that pays there.
#[test]
fn the_panel_size_that_pays() {
    let (calibration, known) = (draw(3, 8000, &[4], false), draw(4, 8000, &[4], true));
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let policy = router.policy(&jury()).unwrap();
    let cells = router.find_cells(&known).unwrap();
    for cell in [0, 2] {
        let rows: Vec<usize> = (0..known.rows()).filter(|&row| cells[row] == CellId(cell)).collect();
        let noise =
            rows.iter().map(|&row| Loss::brier().entropy(known.truth(row).unwrap())).sum::<f64>() / rows.len() as f64;
        for (route, m) in [1, 3, 5, 9].into_iter().enumerate() {
            let wanted = noise * (1.0 + 1.0 / f64::from(m)) + 0.012 * f64::from(m);
            close(route_cost(&policy, cell, route), wanted, 0.02, &format!("cell {cell}, {m} experts"));
        }
        let wanted = [1, 3, 5, 9].into_iter().min_by(|&a, &b| {
            let cost = |m: u32| noise / f64::from(m) + 0.012 * f64::from(m);
            cost(a).total_cmp(&cost(b))
        });
        let decision = policy.cell(CellId(cell)).unwrap();
        let costs = decision.costs();
        let least = (1..5).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).map(|route| [1, 3, 5, 9][route - 1]);
        assert_eq!(least, wanted, "cell {cell}: noise {noise}");
    }
    assert!(policy.replay(&known).unwrap().evaluate(&policy).unwrap().regret.get("cell-optimal").unwrap() < &0.005);
}

#[test]
fn prices_change_at_once_and_oracles_do_not() {
    let router = Router::calibrate(&draw(3, 500, &[4], false), &Partition::top_class(3)).unwrap();
    let task = jury().route("seer", Oracle::measured(), 0.2).unwrap();
    let policy = router.policy(&task).unwrap();
    let other =
        task.clone().reprice_route("jury of 5", 0.001).unwrap().reprice_route("seer", 0.3).unwrap().abstain(0.4);
    let other = other.unwrap();
    let (repriced, compiled) = (policy.reprice(&other).unwrap(), router.policy(&other).unwrap());
    for cell in (0..router.cells().count() as u32).map(CellId) {
        assert_eq!(repriced.cell(cell).map(said), compiled.cell(cell).map(said));
    }
    // Fewer routes, another order, a Bayes-optimal oracle: all of that is known already.
    let fewer = Task::new(Loss::brier()).route("seer", Oracle::measured(), 0.0).unwrap();
    let fewer = fewer.route("three", panel(3, Aggregate::Mean), 0.0).unwrap().route("b", Oracle::bayes(), 0.0).unwrap();
    let (found, all) = (policy.reprice(&fewer).unwrap(), policy.cell(CellId(0)).unwrap());
    let all = all.costs();
    close(route_cost(&found, 0, 0), all[5] - 0.2, 1e-12, "seer");
    close(route_cost(&found, 0, 1), all[2] - 0.036, 1e-12, "three");
    assert_eq!(Some(route_cost(&found, 0, 2)), found.cell(CellId(0)).unwrap().irreducible());
    for (name, oracle) in
        [("a", panel(4, Aggregate::Mean)), ("b", panel(3, Aggregate::Plurality)), ("copy", Oracle::Measured)]
    {
        let error =
            policy.reprice(&Task::new(Loss::brier()).route(name, oracle, 0.0).unwrap()).unwrap_err().to_string();
        assert!(error.contains("policy of its own"), "{error}");
    }
}

/// Panels too many to enumerate are drawn, by what the items are and not by where they stand.
#[test]
fn row_order_changes_no_bit() {
    let mut rng = Rng::new(8);
    let rows: Vec<(Vec<f64>, Vec<u32>)> = (0..60)
        .map(|row| {
            let p = rng.dist(5);
            let votes = rng.votes(&p, if row % 2 == 0 { 3 } else { 60 });
            (p, votes)
        })
        .collect();
    let policy = |order: &[usize]| {
        let (probs, votes): (Vec<_>, Vec<_>) = order.iter().map(|&row| rows[row].clone()).unzip();
        let router = Router::calibrate(&table(5, &probs, &votes), &Partition::top_class(1)).unwrap();
        let task = Task::new(Loss::spherical()).route("crowd", panel(45, Aggregate::Mean), 0.0).unwrap();
        router.policy(&task.route("vote", panel(45, Aggregate::Plurality), 0.0).unwrap()).unwrap()
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let first = policy(&order);
    rng.shuffle(&mut order);
    let second = policy(&order);
    let alone = rayon_of_one(|| policy(&order));
    for cell in (0..5).map(CellId) {
        assert_eq!(first.cell(cell).map(said), second.cell(cell).map(said));
        assert_eq!(first.cell(cell).map(said), alone.cell(cell).map(said));
    }
}

fn rayon_of_one<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

fn evaluated(policy: &Policy, table: &Table) -> Evaluation {
    policy.replay(table).unwrap().evaluate(policy).unwrap()
}

#[test]
fn held_out_costs_are_those_of_each_oracle() {
    let task = Task::new(Loss::zero_one()).route("jury", panel(5, Aggregate::Plurality), 0.01).unwrap();
    let task = task.route("seer", Oracle::measured(), 0.02).unwrap().route("expert", Oracle::bayes(), 0.03).unwrap();
    let router = Router::calibrate(&draw(3, 3000, &[4], false), &Partition::top_class(2)).unwrap();
    let policy = router.policy(&task).unwrap();
    let cost = |evaluation: &Evaluation, name: &str| *evaluation.mean_cost.get(name).unwrap();
    let truth = evaluated(&policy, &draw(6, 8000, &[4], true));
    close(cost(&truth, "always-route:seer") - 0.02, cost(&truth, "always-route:expert") - 0.03, 1e-12, "both know");
    assert!(cost(&truth, "always-route:jury") - 0.01 > cost(&truth, "always-route:expert") - 0.03 + 0.02);
    // Eight labels judge a panel of five without bias, four do not; the correction mends that.
    let jury = "always-route:jury";
    let eight = evaluated(&policy, &draw(6, 8000, &[8], false));
    close(cost(&eight, jury), cost(&truth, jury), 0.015, "eight labels");
    close(*eight.corrected_cost.as_ref().unwrap().get(jury).unwrap(), cost(&truth, jury), 0.015, "eight labels");
    let four = evaluated(&policy, &draw(6, 8000, &[4], false));
    assert!(cost(&four, jury) < cost(&truth, jury) - 0.03, "four labels agree with themselves too well");
    close(*four.corrected_cost.as_ref().unwrap().get(jury).unwrap(), cost(&truth, jury), 0.015, "corrected");
    // The grid of prices is about the route that costs least here; at the task's own prices it is the evaluation.
    let replay = policy.replay(&draw(6, 300, &[4], true)).unwrap();
    let grid = replay.price_grid(&policy, &[CellId(0)], 5).unwrap();
    assert_eq!(grid.route, "seer");
    assert!(!grid.bayes && grid.corners.iter().all(Option::is_none));
    let here = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
    close(
        grid.router[here].unwrap(),
        *replay.evaluate(&policy).unwrap().best_costs().get("router").unwrap(),
        1e-12,
        "grid",
    );
}

/// Whatever the prices, held-out regret against the best action a cell stays below the bound.
#[test]
fn the_regret_bound_holds_for_every_oracle() {
    let mut rng = Rng::new(17);
    for (k, seed) in [(4, 1), (7, 2)] {
        let router = Router::calibrate(&draw(seed, 300, &[k], false), &Partition::top_class(2)).unwrap().recalibrated();
        let held_out = draw(seed + 10, 300, &[k], false);
        for (loss, aggregate) in [("zero-one", Aggregate::Plurality), ("brier", Aggregate::Laplace(0.5))] {
            let task = Task::new(loss.parse().unwrap()).estimator(Estimator::Shrink);
            let task = task.route("jury", panel(5, aggregate), 0.0).unwrap();
            let task = task.route("seer", Oracle::measured(), 0.0).unwrap().abstain(0.5).unwrap();
            let policy = router.policy(&task).unwrap();
            let replay = policy.replay(&held_out).unwrap();
            let bound = router.calibration_error(&held_out, &policy, 2, 0, || ()).unwrap().regret_bound.unwrap();
            for _ in 0..200 {
                let mut task = task.clone().abstain(rng.uniform()).unwrap();
                for name in ["jury", "seer"] {
                    task = task.reprice_route(name, 0.5 * rng.uniform()).unwrap();
                }
                let evaluation = replay.evaluate(&policy.reprice(&task).unwrap()).unwrap();
                let regret = *evaluation.regret.get("cell-optimal").unwrap();
                assert!(regret <= bound + 1e-12, "{loss} {k}: {regret} above {bound}");
            }
        }
    }
}

/// An oracle may cost more than predicting, and then is not asked.
#[test]
fn a_bad_oracle_is_not_asked_even_for_nothing() {
    let probs = vec![vec![0.5, 0.5]; 40];
    let votes: Vec<Vec<u32>> = (0..40).map(|row| if row % 2 == 0 { vec![3, 2] } else { vec![2, 3] }).collect();
    let table = table(2, &probs, &votes).with_oracle("fool", [1.0, 0.0].repeat(40)).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::brier()).route("fool", Oracle::measured(), 0.0).unwrap();
    let policy = router.policy(&task.route("one", panel(1, Aggregate::Mean), 0.0).unwrap()).unwrap();
    let decision = policy.decide(&[0.5, 0.5]).unwrap();
    assert_eq!(decision.action(), Action::Predict);
    assert!(
        decision.costs()[1] > 0.9 && decision.costs()[2] > 0.9 && decision.costs()[0] < 0.51,
        "{:?}",
        decision.costs()
    );
}
