//! Faults found in reviews, each with the input that showed it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pointsman::partition::Axis;
use pointsman::router::Partial;
use pointsman::{Action, CellId, Cells, Estimator, Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, table};

/// Probabilities floored at 1e-6 upstream and renormalised: entries one unit in the last place below the floor are clipped, which scales the
/// others by 1 + 2⁻⁵², which unclips them, and so on forever.
#[test]
fn cross_entropy_terminates_on_predictions_at_its_floor() {
    let tiny = 9.999999999999997e-7;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let q = [tiny, 0.5649209896617202, 0.35496581431772645, tiny, 0.08011119602055325];
        let mut losses = [0.0; 5];
        Loss::cross_entropy().losses_into(&q, &mut losses);
        sender.send((losses, Loss::cross_entropy().entropy(&q))).unwrap();
    });
    let (losses, entropy) = receiver.recv_timeout(Duration::from_secs(5)).expect("an endless loop");
    assert!((losses[0] - Loss::cross_entropy().bound()).abs() < 1e-9);
    assert!((losses[1] + 0.5649209896617202_f64.ln()).abs() < 1e-9 && entropy > 0.0);
}

/// "Never abstain" is often written as a very large price. It must not make all other costs tie.
#[test]
fn very_large_prices_change_no_decision() {
    let calibration = table(2, &[vec![0.1, 0.9]], &[vec![4, 0]]);
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap();
    let action = |task: &Task| router.policy(task).unwrap().cell(CellId(1)).unwrap().action().to_string();
    assert_eq!(action(&task), "route:expert");
    for price in [1e3, 1e9, 1e12, 1e15] {
        assert_eq!(action(&task.clone().abstain(price).unwrap()), "route:expert", "abstain at {price}");
        let dear = task.clone().route("dear", Oracle::bayes(), price).unwrap();
        assert_eq!(action(&dear), "route:expert", "another route at {price}");
    }
}

/// A forbidden act is often written as a very large cost. It must not make all other acts tie.
#[test]
fn very_large_costs_leave_the_loss_proper() {
    for forbidden in [1e6, 1e9, 1e13] {
        let cost = vec![vec![1.0, 1.0], vec![0.0, 2.0], vec![2.0, 0.0], vec![forbidden, forbidden]];
        let loss = Loss::matrix(["hedge", "left", "right", "forbidden"], cost).unwrap();
        assert_eq!(loss.act(&[1.0, 0.0]), 1, "{forbidden}");
        for p in [[1.0, 0.0], [0.6, 0.4], [0.5 + 1e-7, 0.5 - 1e-7]] {
            assert!((loss.expected(&p, &p) - loss.entropy(&p)).abs() <= 1e-12, "{forbidden} {p:?}");
        }
    }
}

/// With one label per item and two Bayes-optimal oracles, the more expensive one is never best for any irreducible loss, so it must not make the
/// decision undetermined.
#[test]
fn more_expensive_oracle_does_not_make_decisions_undetermined() {
    // Nine labels against the prediction and one for it: TL − G(p̄) is far above both prices.
    let votes = [vec![vec![1, 0]; 9], vec![vec![0, 1]]].concat();
    let calibration = table(2, &vec![vec![0.1, 0.9]; 10], &votes);
    let router = Router::calibrate(&calibration, &Partition::confidence(1)).unwrap();
    let task = Task::new(Loss::brier()).route("cheap", Oracle::bayes(), 0.05).unwrap();
    let one = router.policy(&task).unwrap();
    assert_eq!(one.cell(CellId(0)).unwrap().action(), Action::Route("cheap"));
    let two = router.policy(&task.route("dear", Oracle::bayes(), 0.06).unwrap()).unwrap();
    assert_eq!(two.cell(CellId(0)).unwrap().action(), Action::Route("cheap"));
    assert!((two.cell(CellId(0)).unwrap().margin() - 0.01).abs() < 1e-12);
}

/// The truth column of calibration rows is kept, so it must be part of their order.
#[test]
fn rows_that_differ_only_in_truth_have_one_order() {
    let rows = |truth: [f64; 4]| {
        table(2, &[vec![0.5, 0.5], vec![0.5, 0.5]], &[vec![1, 1], vec![1, 1]]).with_truth(truth.to_vec()).unwrap()
    };
    let router = |truth| Router::calibrate(&rows(truth), &Partition::confidence(1)).unwrap();
    assert!(router([0.2, 0.8, 0.6, 0.4]) == router([0.6, 0.4, 0.2, 0.8]));
}

/// A router restored from its parts, as from a file, is the same. Rows were ordered by all columns of the table in the table's order, but only
/// those of the partition are kept, in the partition's order.
#[test]
fn order_of_kept_rows_depends_on_kept_columns_only() {
    let again = |router: &Router| {
        let (cells, backoff) = ((**router.cells()).clone(), (**router.backoff()).clone());
        Router::from_parts(router.partition().clone(), cells, backoff, false, router.rows()).unwrap()
    };
    let rows = table(2, &vec![vec![0.5, 0.5]; 2], &vec![vec![1, 1]; 2]);
    let two = rows.clone().with_features(["a", "b"], vec![1.0, 4.0, 2.0, 3.0]).unwrap();
    let router = Router::calibrate(&two, &"features:x_b=1,x_a=1".parse().unwrap()).unwrap();
    assert!(again(&router) == router, "features in another order than the table's");
    let other = rows.with_features(["a"], vec![1.0, 2.0]).unwrap();
    let other = other.with_oracle("large", vec![0.9, 0.1, 0.1, 0.9]).unwrap();
    let router = Router::calibrate(&other, &Partition::confidence(1)).unwrap();
    assert!(again(&router) == router, "a feature the partition does not use");
}

/// Queries in an empty cell fall back by confidence, so they may get different actions. The best action in hindsight must be found for the same
/// groups, or the router beats its own optimum.
#[test]
fn router_never_beats_the_cell_optimum() {
    let calibration = table(
        3,
        &[vec![0.55, 0.45, 0.0], vec![0.45, 0.55, 0.0], vec![0.95, 0.05, 0.0], vec![0.05, 0.95, 0.0]],
        &[vec![4, 0, 0], vec![0, 4, 0], vec![0, 4, 0], vec![4, 0, 0]],
    );
    let router = Router::calibrate(&calibration, &Partition::top_class(2)).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.5).unwrap();
    let policy = router.policy(&task).unwrap();
    // Both queries are in the empty cell of the third class; one is predicted and the other routed, both correctly.
    let held_out = table(3, &[vec![0.0, 0.45, 0.55], vec![0.0, 0.05, 0.95]], &[vec![0, 0, 4], vec![0, 4, 0]]);
    let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
    let regret = *evaluation.regret.get("cell-optimal").unwrap();
    assert!(regret >= -1e-12, "regret {regret}");
}

/// A replay has the losses of one task; evaluating a policy of another loss or router is an error.
#[test]
fn replays_refuse_policies_of_other_estimates() {
    let calibration = table(2, &[vec![0.1, 0.9], vec![0.9, 0.1]], &[vec![4, 0], vec![3, 1]]);
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let brier = router.policy(&Task::new(Loss::brier())).unwrap();
    let other = router.policy(&Task::new(Loss::zero_one())).unwrap();
    let replay = brier.replay(&calibration).unwrap();
    assert!(replay.evaluate(&other).is_err(), "Brier losses reported as zero-one");
    assert!(replay.sweep(&other, &"abstain=0:1:0.5".parse().unwrap()).is_err());
    let coarse = Router::calibrate(&calibration, &Partition::confidence(1)).unwrap();
    let fewer = coarse.policy(&Task::new(Loss::brier())).unwrap();
    let result = std::panic::catch_unwind(|| replay.evaluate(&fewer).is_err());
    assert!(result.expect("a panic instead of an error"), "another router's cells");
}

/// A row of another policy's batch panics where it is unfolded, as documented, not later.
#[test]
fn batches_of_another_policy_are_caught_at_once() {
    let calibration = table(3, &[vec![0.9, 0.1, 0.0]], &[vec![4, 0, 0]]);
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    // A cell that has no rows here, and a cell that does not exist here.
    let rows: Vec<Vec<f64>> =
        (0..30_u8).map(|i| vec![0.1 - f64::from(i) * 1e-3, 0.9 + f64::from(i) * 1e-3, 0.0]).collect();
    let elsewhere = table(3, &rows, &vec![vec![1, 1, 2]; 30]);
    let elsewhere = Router::calibrate(&elsewhere, &Partition::top_class(30)).unwrap();
    let elsewhere = elsewhere.policy(&Task::new(Loss::brier())).unwrap();
    let decisions = elsewhere.decide_many(&[0.1, 0.9, 0.0, 0.0, 1.0, 0.0], &[]).unwrap();
    for row in 0..2 {
        let caught = std::panic::catch_unwind(|| {
            let _ = policy.row(&decisions, row);
        });
        assert!(caught.is_err(), "row {row} accepted, to panic later in support() or total()");
    }
}

/// Cells from a file are checked: no axes over no classes.
#[test]
fn cells_over_no_classes_are_refused() {
    let axis = Axis::LevelSets { levels: Vec::new(), classes: 0 };
    let result = std::panic::catch_unwind(|| Cells::new(0, vec![axis], Vec::new()).is_err());
    assert!(result.expect("a panic instead of an error"));
}

/// Predictions rounded to four digits sum to 0.9999 or 1.0001. In f32, in f64 and as text they are the same table.
#[test]
fn cells_of_rounded_rows_do_not_depend_on_precision() {
    let mut rng = Rng::new(9);
    let rounded = |rng: &mut Rng| rng.dist(3).iter().map(|x| ((x * 1e4).round() / 1e4) as f32).collect::<Vec<_>>();
    let single: Vec<f32> = (0..400).flat_map(|_| rounded(&mut rng)).collect();
    let rows = |probs: Vec<f64>| {
        Table::new(CLASS_NAMES[..3].to_vec(), probs).unwrap().with_votes(vec![1; single.len()]).unwrap()
    };
    let exact = rows(single.iter().map(|&x| f64::from(x)).collect());
    let text = rows(single.iter().map(|x| x.to_string().parse().unwrap()).collect());
    for partition in ["confidence:100", "top-class:50", "level-sets"] {
        let router = Router::calibrate(&exact, &partition.parse().unwrap()).unwrap();
        let (a, b) = (router.find_cells(&exact).unwrap(), router.find_cells(&text).unwrap());
        let moved = a.iter().zip(&b).filter(|(a, b)| a != b).count();
        assert_eq!(moved, 0, "{partition}: {moved} of 400 rows are in other cells");
    }
}

/// Predictions of three classes rounded to three digits sum to 0.999, 1 or 1.001: within 1e-3 of one, in either precision.
#[test]
fn predictions_with_three_digits_are_accepted() {
    let mut rng = Rng::new(10);
    let (mut double, mut single) = (0, 0);
    for _ in 0..1000 {
        let p: Vec<f64> = rng.dist(3).iter().map(|x| (x * 1000.0).round() / 1000.0).collect();
        let narrow: Vec<f64> = p.iter().map(|&x| f64::from(x as f32)).collect();
        double += usize::from(Table::new(CLASS_NAMES[..3].to_vec(), p).is_err());
        single += usize::from(Table::new(CLASS_NAMES[..3].to_vec(), narrow).is_err());
    }
    assert_eq!((double, single), (0, 0), "refused of 1000 rows, in f64 and in f32");
}

/// The zero-one loss evaluates the class that it names.
#[test]
fn zero_one_loss_evaluates_the_named_class() {
    let q = [0.5 - 1e-13, 0.5 + 1e-13];
    let mut losses = [0.0; 2];
    Loss::zero_one().losses_into(&q, &mut losses);
    assert_eq!(losses[Loss::zero_one().act(&q)], 0.0);
}

/// Weights are positive and finite, but their sum need not be.
#[test]
fn extreme_weights_give_finite_results() {
    let rows = || table(2, &vec![vec![0.9, 0.1]; 3], &[vec![3, 2], vec![4, 1], vec![1, 4]]);
    for weight in [1e308, 1.1e100, 0.9e-100, 5e-324] {
        assert!(rows().with_weights(vec![weight; 3]).is_err(), "{weight}");
    }
    for weight in [1e100, 1e-100] {
        let rows = rows().with_weights(vec![weight; 3]).unwrap();
        let router = Router::calibrate(&rows, &Partition::confidence(1)).unwrap();
        let policy = router.policy(&Task::new(Loss::brier()).estimator(Estimator::Plugin)).unwrap();
        let decision = policy.cell(CellId(0)).expect("a cell with rows");
        assert!(decision.total().is_finite(), "weights of {weight}: total {}", decision.total());
        let sum: f64 = decision.estimate().centroid.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "weights of {weight}: the centroid sums to {sum}");
    }
}

/// A sweep of small prices keeps them distinct.
#[test]
fn small_prices_of_a_sweep_stay_distinct() {
    let sweep: pointsman::evaluate::Sweep = "route=0:1e-12:2.5e-13".parse().unwrap();
    assert!(sweep.prices.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", sweep.prices);
}

/// Rows that save the same up to rounding cannot be ranked: there is no gain, not noise divided by noise.
#[test]
fn equal_savings_have_no_gain() {
    // Permutations of one prediction and one truth: the losses differ only in the last place.
    let (p, y) = ([0.3, 0.1, 0.6], [1, 2, 4]);
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let probs: Vec<Vec<f64>> = orders.iter().map(|o| o.iter().map(|&i| p[i]).collect()).collect();
    let votes: Vec<Vec<u32>> = orders.iter().map(|o| o.iter().map(|&i| y[i]).collect()).collect();
    let rows = table(3, &probs, &votes);
    let router = Router::calibrate(&rows, &Partition::level_sets()).unwrap();
    for loss in [Loss::brier(), Loss::cross_entropy(), Loss::spherical()] {
        let policy = router.policy(&Task::new(loss.clone())).unwrap();
        let evaluation = policy.replay(&rows).unwrap().evaluate(&policy).unwrap();
        let gains: Vec<_> = evaluation.gain.iter().map(|(_, gain)| *gain).collect();
        assert_eq!(gains, [None; 5], "{loss}");
        assert_eq!(evaluation.correlation, None, "{loss}");
    }
}

/// One forbidden act does not make all costs equal.
#[test]
fn forbidden_acts_change_no_other_decision() {
    let rows: Vec<Vec<f64>> = vec![vec![0.5, 0.5, 0.0]; 200];
    let votes: Vec<Vec<u32>> = (0..200).map(|i| if i % 2 == 0 { vec![10, 0, 0] } else { vec![0, 10, 0] }).collect();
    let router = Router::calibrate(&table(3, &rows, &votes), &Partition::confidence(1)).unwrap();
    for forbidding in [1e3, 1e10, 1e12, 1e30, 1e100] {
        let loss = Loss::matrix(["ship", "hold"], vec![vec![0.0, forbidding, 0.0], vec![1.0, 0.0, 0.0]]).unwrap();
        let task = Task::new(loss).route("expert", Oracle::bayes(), 0.05).unwrap();
        let policy = router.policy(&task).unwrap();
        assert_eq!(policy.decide(&[0.5, 0.5, 0.0]).unwrap().action(), Action::Route("expert"), "{forbidding}");
    }
    assert!(Loss::matrix(["a", "b"], vec![vec![0.0, 1.7e308], vec![1.0, 0.0]]).is_err());
    assert!(Task::new(Loss::brier()).abstain(1e200).is_err());
}

/// One item with two labels among hundreds with one does not represent the cell.
#[test]
fn one_pair_does_not_identify_a_cell() {
    let mut votes: Vec<Vec<u32>> = (0..200).map(|i| if i % 4 == 0 { vec![0, 1, 0] } else { vec![1, 0, 0] }).collect();
    let undetermined = |votes: &[Vec<u32>]| {
        let table = table(3, &vec![vec![0.8, 0.1, 0.1]; votes.len()], votes);
        let router = Router::calibrate(&table, &Partition::confidence(1)).unwrap();
        let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap();
        router.policy(&task).unwrap().decide(&[0.8, 0.1, 0.1]).unwrap().action() == Action::Undetermined
    };
    assert!(undetermined(&votes));
    votes.push(vec![2, 0, 0]);
    assert!(undetermined(&votes));
    votes.extend(vec![vec![1, 1, 0]; 29]);
    assert!(!undetermined(&votes), "thirty pairs are enough");
}

/// The shares of the calibration rows are shares of their weight.
#[test]
fn shares_are_weighted() {
    let rows = [vec![0.9, 0.1, 0.0], vec![0.1, 0.9, 0.0]];
    let table = table(3, &rows, &[vec![5, 0, 0], vec![5, 0, 0]]).with_weights(vec![99.0, 1.0]).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.5).unwrap();
    let shares = router.policy(&task).unwrap().shares();
    assert_eq!(shares.iter().collect::<Vec<_>>(), [("predict", &0.99), ("route:expert", &0.01)]);
}

/// If a policy is judged by a router or certificate, it must have the same cells.
#[test]
fn policies_of_other_routers_are_not_judged() {
    let f: Vec<f64> = (0..40_u8).map(|i| 0.5 + f64::from(i) * 0.01).collect();
    let rows =
        |f: &[f64]| table(2, &f.iter().map(|f| vec![*f, 1.0 - f]).collect::<Vec<_>>(), &vec![vec![3, 1]; f.len()]);
    let calibration = rows(&f);
    let task = Task::new(Loss::brier()).route("jury", "panel:m=2".parse().unwrap(), 0.01).unwrap();
    let router = Router::calibrate(&calibration, &Partition::confidence(4)).unwrap().recalibrated();
    let own = router.policy(&task).unwrap();
    let certificate = router.certificate(&task, 0.9).unwrap();
    assert!(router.calibration_error(&calibration, &own, 2, 0, || ()).is_ok() && certificate.judge(&own).is_ok());
    // A restored router is the same one.
    let (cells, backoff) = ((**router.cells()).clone(), (**router.backoff()).clone());
    let again = Router::from_parts(router.partition().clone(), cells, backoff, true, router.rows()).unwrap();
    assert!(certificate.judge(&again.policy(&task).unwrap()).is_ok());
    assert!(router.calibration_error(&calibration, &again.policy(&task).unwrap(), 2, 0, || ()).is_ok());
    // Fewer cells, as many other cells, and the same cells of which some have no rows.
    let fewer = Router::calibrate(&calibration, &Partition::confidence(2)).unwrap();
    let others = Router::calibrate(&rows(&f[..20]), &Partition::confidence(4)).unwrap();
    assert_eq!(others.cells().count(), router.cells().count());
    let half_empty = Router::calibrate_like(&rows(&f[..20]), &router).unwrap();
    for (other, is_judged) in [(fewer, false), (others, false), (half_empty, true)] {
        let policy = other.recalibrated().policy(&task).unwrap();
        let error = router.calibration_error(&calibration, &policy, 2, 0, || ());
        assert!(error.unwrap_err().to_string().contains("another router"));
        assert_eq!(certificate.judge(&policy).is_ok(), is_judged);
    }
}

/// Cells times routes can need gigabytes; this is refused before allocating.
#[test]
fn very_many_cells_and_routes_are_refused() {
    let n = 100_u32;
    let values: Vec<f64> = (0..n).flat_map(|i| [f64::from(i); 3]).collect();
    let rows = Table::new(["a", "b"], [0.6, 0.4].repeat(n as usize)).unwrap().with_votes([2, 1].repeat(n as usize));
    let rows = rows.unwrap().with_features(["a", "b", "c"], values).unwrap();
    let wide = |task: Task, kind: fn(u32) -> Oracle| {
        (0..200).fold(task, |task, i| task.route(format!("r{i}"), kind(i), 0.1).unwrap())
    };
    let router = Router::calibrate(&rows, &"features:x_a=100,x_b=100,x_c=100".parse().unwrap()).unwrap();
    let error = router.policy(&wide(Task::new(Loss::brier()), |_| Oracle::bayes())).unwrap_err().to_string();
    assert!(error.contains("1000000 cells and 201 actions") && error.contains("fewer routes"), "{error}");
    let few = Task::new(Loss::brier()).route("one", Oracle::bayes(), 0.1).unwrap();
    let policy = router.policy(&few).unwrap();
    assert!(policy.reprice(&wide(Task::new(Loss::brier()), |_| Oracle::bayes())).is_err());
    let router = Router::calibrate(&rows, &"features:x_a=100,x_b=100".parse().unwrap()).unwrap();
    let panels = wide(Task::new(Loss::brier()), |i| format!("panel:m={}", i + 1).parse().unwrap());
    let error = router.certificate(&panels, 0.9).unwrap_err().to_string();
    assert!(error.contains("10000 cells and 202 answers") && error.contains("fewer oracles"), "{error}");
    assert!(router.plan(&panels, 0.9).is_err());
}

/// Rows are equal up to their weights, and missing values are equal.
#[test]
fn identical_rows_are_counted() {
    let (mut probs, mut votes, mut features, mut weights) = (vec![], vec![], vec![], vec![]);
    for i in 0..60_u32 {
        // Each row twice, with weights that put other rows between the two.
        for weight in [1.0, 2.0] {
            probs.push(vec![0.6, 0.4]);
            votes.push(vec![2, 1]);
            features.push(if i == 7 { f64::NAN } else { f64::from(i) });
            weights.push(weight);
        }
    }
    let rows = table(2, &probs, &votes).with_features(["x"], features).unwrap().with_weights(weights).unwrap();
    let diagnosis =
        pointsman::diagnose::diagnose(&rows, &Task::new(Loss::brier()), &Partition::confidence(3), || ()).unwrap();
    assert_eq!(diagnosis.agreement.identical_rows, 60);
}

/// The stored router does not depend on the order of columns.
#[test]
fn routers_do_not_depend_on_the_order_of_oracles() {
    let mut rng = Rng::new(41);
    let n = 60;
    let [one, two]: [Vec<f64>; 2] = std::array::from_fn(|_| (0..n).flat_map(|_| rng.dist(2)).collect());
    let rows = |range: std::ops::Range<usize>, swapped: bool| {
        let rows = table(2, &vec![vec![0.6, 0.4]; range.len()], &vec![vec![2, 1]; range.len()]);
        let mut answers = [("one", &one), ("two", &two)];
        if swapped {
            answers.reverse();
        }
        answers.into_iter().fold(rows, |rows, (name, probs)| {
            rows.with_oracle(name, probs[2 * range.start..2 * range.end].to_vec()).unwrap()
        })
    };
    let router = Router::calibrate(&rows(0..n, false), &Partition::confidence(3)).unwrap();
    assert!(Router::calibrate(&rows(0..n, true), &Partition::confidence(3)).unwrap() == router);
    let merged = |first: bool, second: bool| {
        let mut part = Partial::like(&router).unwrap();
        part.add(&rows(0..n / 2, first)).unwrap();
        let mut other = Partial::like(&router).unwrap();
        other.add(&rows(n / 2..n, second)).unwrap();
        part.merge(&other).unwrap();
        part.finish().unwrap()
    };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        assert!(merged(first, second) == router, "{first} {second}");
    }
}
