//! Partitions learned from labels, in a simulation whose regions only a feature distinguishes.

use pointsman::{Action, CellId, Error, Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{Rng, close};

/// The weak model predicts nearly the same everywhere. For `x` below ⅓ the labels disagree as it predicts; above ⅔ they agree and it is wrong;
/// in between they agree and it is nearly right. `z` is uninformative and often missing.
pub(crate) fn world(rows: usize, k: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features, mut truth) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let (f, x) = (0.55 + 0.1 * rng.uniform(), rng.uniform());
        let p = if x < 1.0 / 3.0 { [f, 1.0 - f] } else { [1.0, 0.0] };
        let p = if x >= 2.0 / 3.0 { [0.0, 1.0] } else { p };
        probs.extend([f, 1.0 - f]);
        votes.extend(rng.votes(&p, k));
        truth.extend(p);
        features.extend([x, if rng.uniform() < 0.3 { f64::NAN } else { rng.uniform() }]);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["x", "z"], features).unwrap().with_truth(truth).unwrap()
}

pub(crate) fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap()
}

pub(crate) fn reordered(table: &Table, order: &[usize]) -> Table {
    let probs = order.iter().flat_map(|&row| table.prediction(row).into_owned()).collect();
    let votes = order.iter().flat_map(|&row| table.votes(row).unwrap().counts()).copied().collect();
    let features = order.iter().flat_map(|&row| table.features(row)).copied().collect();
    let names = table.feature_names().to_vec();
    let table = Table::new(table.classes().to_vec(), probs).unwrap().with_votes(votes).unwrap();
    table.with_features(names, features).unwrap()
}

pub(crate) fn message<T>(result: Result<T, Error>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn trees_find_regions_of_a_feature() {
    let (calibration, test) = (world(1_500, 5, 1), world(2_000, 5, 2));
    let gain = |partition: Partition, loss: Loss| {
        let router = Router::calibrate(&calibration, &partition).unwrap();
        let policy = router.policy(&Task::new(loss).route("expert", Oracle::bayes(), 0.05).unwrap()).unwrap();
        let evaluation = policy.replay(&test).unwrap().evaluate(&policy).unwrap();
        (
            evaluation.gain.get("higher-order").unwrap().unwrap(),
            evaluation.regret.get("pointwise-optimal").copied().unwrap(),
        )
    };
    // Losses that the trees were not grown for.
    for loss in [Loss::brier(), Loss::cross_entropy(), Loss::fn_fp(1.0, 4.0).unwrap()] {
        let bound = loss.bound().min(5.0);
        for partition in [Partition::tree(), Partition::honest_forest(30), Partition::forest(30)] {
            let (found, regret) = gain(partition.clone(), loss.clone());
            assert!(found > 0.9 && regret < 0.02 * bound, "{partition} {loss}: gain {found}, regret {regret}");
        }
        assert!(gain(Partition::top_class(10), loss.clone()).0 < 0.5, "{loss}: confidence says nothing here");
    }
}

#[test]
fn decision_losses_depend_on_the_act_of_each_prediction() {
    // The weak model is calibrated and items have one label only. Each prediction's own expected loss is optimal, and it depends on the act of the
    // prediction.
    let world = |rows: usize, seed: u64| {
        let mut rng = Rng::new(seed);
        let (mut probs, mut votes) = (vec![], vec![]);
        for _ in 0..rows {
            let raw: [f64; 4] = std::array::from_fn(|_| rng.uniform().powi(3));
            let sum: f64 = raw.iter().sum();
            let f = raw.map(|x| x / sum);
            votes.extend(rng.votes(&f, 1).into_iter().map(|n| 3 * n));
            probs.extend(f);
        }
        Table::new(["a", "b", "c", "d"], probs).unwrap().with_votes(votes).unwrap()
    };
    let (calibration, test) = (world(2_000, 23), world(4_000, 24));
    let router = Router::calibrate(&calibration, &Partition::forest(40)).unwrap();
    for loss in [Loss::zero_one(), Loss::asymmetric(3.0).unwrap()] {
        let policy = router.policy(&Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.05).unwrap()).unwrap();
        let gain = policy.replay(&test).unwrap().evaluate(&policy).unwrap().gain;
        let [forest, best] = ["higher-order", "total-uncertainty"].map(|name| gain.get(name).unwrap().unwrap());
        assert!(forest > best - 0.01, "{loss}: {forest} of {best}");
        // A sum that differs from one by noise changes no cost, unless it leads to another leaf.
        let total = |row: &[f64]| policy.decide(row).unwrap().total();
        let predictions = test.predictions();
        let same = predictions.chunks_exact(4).take(200).filter(|row| {
            let off: Vec<f64> = row.iter().map(|x| x * (1.0 + 5e-6)).collect();
            (total(&off) - total(row)).abs() < 1e-9
        });
        assert!(same.count() > 150, "{loss}");
    }
}

/// Leaves in which most items have one label borrow the irreducible loss, and the total loss still follows the prediction.
#[test]
fn leaves_of_one_label_items_borrow_the_irreducible_loss() {
    let mut rng = Rng::new(36);
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for row in 0..1_200 {
        let (x, f) = (rng.uniform(), 0.05 + 0.4 * rng.uniform());
        let [p, q] =
            [f, if x < 0.5 { f } else { 0.02 }].map(|f| if row % 2 == 0 { [1.0 - f, f] } else { [f, 1.0 - f] });
        probs.extend(p);
        // Where labels are noisy, most items have one label.
        votes.extend(rng.votes(&q, if x < 0.5 && row % 20 > 1 { 1 } else { 5 }));
        features.push(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    let router = Router::calibrate(&table.with_features(["x"], features).unwrap(), &Partition::forest(30)).unwrap();
    let policy = router.policy(&Task::new(Loss::asymmetric(4.0).unwrap())).unwrap();
    let decide = |f: [f64; 2], x: f64| policy.decide_with(&f, &[x]).unwrap();
    let [low, high] = decide([0.9, 0.1], 0.1).irreducible_bounds();
    assert!(low == high && (0.05..1.0).contains(&low), "{low} to {high}");
    let [low, high] = decide([0.9, 0.1], 0.9).irreducible_bounds();
    assert!(high - low < 0.05, "{low} to {high}");
    let [dear, cheap] = [[0.9, 0.1], [0.1, 0.9]].map(|f| decide(f, 0.1).total());
    assert!(dear > 1.5 * cheap, "{dear} and {cheap}");
}

/// If a loss charges all errors alike, the expected loss at the leaf's error rate is the same for all predictions, up to rounding.
#[test]
fn rounding_does_not_create_a_slope() {
    let table = world(600, 5, 34);
    let weights = (0..600).map(|i| 0.1 + 0.01 * f64::from(i % 17)).collect();
    let router = Router::calibrate(&table.with_weights(weights).unwrap(), &Partition::forest(20)).unwrap();
    let queries = world(50, 5, 35);
    let totals = |loss: Loss, unit: f64| -> Vec<f64> {
        let policy = router.policy(&Task::new(loss)).unwrap();
        let total = |row: usize| policy.decide_with(&queries.prediction(row), queries.features(row)).unwrap().total();
        (0..queries.rows()).map(|row| total(row) / unit).collect()
    };
    let plain = totals(Loss::zero_one(), 1.0);
    for price in [7.5, 0.3, 1e-3] {
        for (found, plain) in totals(Loss::fn_fp(price, price).unwrap(), price).into_iter().zip(&plain) {
            close(found, *plain, 1e-9, "a total loss in units of the price");
        }
    }
}

/// Predictions are equally confident in either class, a feature determines the error rate, and one kind of error costs four times as much. Brier
/// losses are symmetric, so trees do not split by class.
#[test]
fn predictions_price_the_errors_of_their_leaf() {
    let error = |x: f64| 0.1 + 0.4 * (6.0 * x).floor() / 5.0;
    let mut rng = Rng::new(33);
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for row in 0..4_000 {
        let x = rng.uniform();
        let [wrong, right] = [error(x), 1.0 - error(x)];
        let (f, p) = if row % 2 == 0 { ([0.9, 0.1], [right, wrong]) } else { ([0.1, 0.9], [wrong, right]) };
        probs.extend(f);
        votes.extend(rng.votes(&p, 10));
        features.push(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x"], features).unwrap();
    let router = Router::calibrate(&table, &Partition::forest(50)).unwrap();
    let policy = router.policy(&Task::new(Loss::asymmetric(4.0).unwrap())).unwrap();
    // The saving of the oracle: none where predicting the other class costs more.
    let truth = |dear: bool, x: f64| if dear { (5.0 * error(x) - 1.0).max(0.0) } else { 0.0 };
    let queries = || (0..60).map(|step| (f64::from(step) + 0.5) / 60.0).flat_map(|x| [(true, x), (false, x)]);
    let off: f64 = queries()
        .map(|(dear, x)| {
            let f = if dear { [0.9, 0.1] } else { [0.1, 0.9] };
            let decision = policy.decide_with(&f, &[x]).unwrap();
            (decision.total() - decision.irreducible().unwrap() - truth(dear, x)).powi(2)
        })
        .sum::<f64>()
        / 120.0;
    let apart = queries().map(|(dear, x)| truth(dear, x).powi(2)).sum::<f64>() / 120.0;
    println!("{off} of {apart}");
    assert!(off < 0.1 * apart, "{off} of {apart}");
}

#[test]
fn forests_do_not_depend_on_row_order_or_threads() {
    let table = world(400, 3, 3);
    let mut order: Vec<usize> = (0..table.rows()).collect();
    Rng::new(4).shuffle(&mut order);
    let shuffled = reordered(&table, &order);
    let pools = [1, 2].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for partition in [Partition::tree(), Partition::honest_forest(13), Partition::forest(13), Partition::auto()] {
        let learn = |table: &Table, threads: usize| {
            pools[threads - 1]
                .install(|| Router::builder().partition(partition.clone()).seed(7).calibrate(table).unwrap())
        };
        let (found, same) = (learn(&table, 2), learn(&shuffled, 1));
        assert_eq!(found, same, "{partition}");
        let (router, same) = (found.router, same.router);
        let acts = Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.05).unwrap();
        for task in [task(), acts] {
            let a = pools[1].install(|| router.policy(&task).unwrap());
            let b = pools[0].install(|| same.policy(&task).unwrap());
            for row in 0..50 {
                let decide = |policy: &pointsman::Policy| {
                    let features: &[f64] = if policy.cells().features().is_empty() { &[] } else { table.features(row) };
                    policy.decide_with(&table.prediction(row), features).unwrap().costs().to_vec()
                };
                assert_eq!(decide(&a), decide(&b), "{partition}");
            }
        }
        let other = Router::builder().partition(partition.clone()).seed(8).fit(&table).unwrap();
        assert!(router != other || !router.partition().factors()[0].learns(), "{partition}: the seed matters");
    }
}

#[test]
fn queries_batches_and_replays_agree() {
    let (calibration, test) = (world(500, 3, 5), world(300, 3, 6));
    let router = Router::calibrate(&calibration, &Partition::forest(17)).unwrap();
    for task in [
        task(),
        Task::new(Loss::zero_one()).route("a", "panel:m=3,aggregate=plurality".parse().unwrap(), 0.02).unwrap(),
    ] {
        let policy = router.policy(&task).unwrap();
        let batch = policy.decide_batch(&test).unwrap();
        let replay = policy.replay(&test).unwrap();
        let (mut shares, n) = ([0.0; 3], test.rows() as f64);
        for row in 0..test.rows() {
            let (one, many) =
                (policy.decide_with(&test.prediction(row), test.features(row)).unwrap(), policy.row(&batch, row));
            assert_eq!((one.costs(), one.action(), one.cell()), (many.costs(), many.action(), many.cell()));
            assert_eq!((one.irreducible(), one.total()), (many.irreducible(), many.total()));
            let least = one.costs().iter().copied().fold(f64::INFINITY, f64::min);
            let place = one.costs().iter().position(|&cost| cost == least).unwrap();
            assert_eq!(one.action(), [Action::Predict, Action::Route(task.routes()[0].name()), Action::Abstain][place]);
            shares[place] += 1.0 / n;
        }
        let evaluation = replay.evaluate(&policy).unwrap();
        for ((name, share), expected) in evaluation.shares.iter().zip(shares) {
            close(*share, expected, 1e-9, name);
        }
        // Other prices use the same losses.
        let dearer = policy.reprice(&task.clone().reprice_route(task.routes()[0].name(), 0.2).unwrap()).unwrap();
        let (cheap, dear) = (policy.row(&batch, 0), dearer.row(&batch, 0));
        close(dear.costs()[1] - cheap.costs()[1], 0.2 - task.routes()[0].price(), 1e-12, "the route");
        assert!(replay.evaluate(&dearer).unwrap().shares.get("predict") >= evaluation.shares.get("predict"));
        let grid = replay.price_grid(&policy, &[CellId(0)], 5).unwrap();
        let own = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
        close(
            grid.router[own].unwrap(),
            *evaluation.best_costs().get("router").unwrap(),
            1e-12,
            "the grid at the task's prices",
        );
        // The sampled rows have the same actions as all rows.
        let (rows, letters) = (replay.sample_rows(), &grid.row_actions[own]);
        assert_eq!((rows.len(), letters.len()), (test.rows().min(400), rows.len()));
        for (row, letter) in rows.iter().zip(letters.chars()) {
            let action = policy.row(&batch, *row).action().to_string();
            let routes = task.routes().iter().position(|route| action == format!("route:{}", route.name()));
            let wanted = match routes {
                Some(place) if task.routes().len() > 1 => char::from_digit(place as u32, 10).unwrap(),
                _ => action.chars().next().unwrap(),
            };
            assert_eq!(letter, wanted, "row {row}");
        }
    }
}

#[test]
fn cell_losses_of_forests_hold_for_new_rows() {
    // Out-of-bag scores: the losses of the cells hold for new rows.
    let (calibration, test) = (world(3_000, 2, 8), world(3_000, 2, 9));
    let router = Router::calibrate(&calibration, &Partition::forest(40)).unwrap();
    let policy = router.policy(&task()).unwrap();
    let cells = policy.replay(&test).unwrap().cells(&policy, &test).unwrap();
    assert!((10..=25).contains(&cells.len()), "{} cells", cells.len());
    let off = |share: f64, a: Option<f64>, b: Option<f64>| share * (a.unwrap() - b.unwrap());
    let mut bias = 0.0;
    for cell in cells.iter().filter(|cell| cell.held_out.rows > 0) {
        bias += off(cell.share, cell.total, cell.held_out.total).abs();
    }
    assert!(bias < 0.05, "mean difference {bias}");
    assert!(router.cells().name(CellId(0), router.classes()).starts_with("reducible loss lowest of "));
}

#[test]
fn heaviest_rows_determine_the_costs() {
    // Predictions are all equal, so they carry no information.
    let alike = |table: Table| {
        let (votes, features): (Vec<_>, Vec<_>) =
            (0..table.rows()).map(|row| (table.votes(row).unwrap().counts(), table.features(row))).unzip();
        let plain = Table::new(["no", "yes"], [0.3, 0.7].repeat(table.rows())).unwrap();
        plain.with_votes(votes.concat()).and_then(|t| t.with_features(["x", "z"], features.concat())).unwrap()
    };
    let (table, queries) = (alike(world(400, 6, 31)), alike(world(20, 6, 32)));
    let router = Router::calibrate(&table, &Partition::forest(15)).unwrap();
    let policy = router.policy(&Task::new(Loss::brier())).unwrap();
    for row in 0..queries.rows() {
        let all = router.heaviest_rows(&queries, row, usize::MAX).unwrap();
        close(all.iter().map(|(_, share)| share).sum(), 1.0, 1e-9, "shares");
        assert!(all.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert_eq!(router.heaviest_rows(&queries, row, 3).unwrap(), all[..3]);
        // The total loss is linear in the rows, so it is their weighted mean.
        let loss = |row: usize| {
            let mut mean = [0.0; 2];
            router.rows().votes(row).unwrap().mean_into(&mut mean);
            Loss::brier().expected(&mean, &router.rows().prediction(row))
        };
        let decision = policy.decide_with(&queries.prediction(row), queries.features(row)).unwrap();
        close(all.iter().map(|&(row, share)| share * loss(row)).sum(), decision.total(), 1e-9, "total loss");
        assert_eq!(decision.trees(), Some(15));
    }
    let cells = Router::calibrate(&table, &Partition::top_class(3)).unwrap();
    assert!(cells.heaviest_rows(&queries, 0, 9).unwrap().is_empty());
}

#[test]
fn forests_keep_a_budget() {
    let router = Router::calibrate(&world(2_000, 6, 21), &Partition::forest(20)).unwrap();
    let held_out = world(8_000, 6, 22);
    for budget in [0.0, 0.1, 0.35] {
        let policy = router.policy(&task().budget(budget).unwrap()).unwrap();
        let found = policy.surcharge().unwrap();
        let routed = |shares: &pointsman::task::Named<f64>| *shares.get("route:expert").unwrap();
        assert!((routed(&policy.shares()) - found.share).abs() < 1e-9, "{found:?}");
        assert!((found.share - budget).abs() < 1e-9, "{found:?}");
        // Two samples of rows, and a little because the forest fits its own rows better.
        let error = 5.0 * (0.25_f64 / 8_000.0 + 0.25 / 2_000.0).sqrt();
        let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
        assert!((routed(&evaluation.shares) - budget).abs() < error, "{budget}: {:?}", evaluation.shares);
        let mut decided = policy.decide_batch(&held_out).unwrap();
        let actions = |decided: &pointsman::Decisions| -> Vec<String> {
            (0..held_out.rows()).map(|row| policy.row(decided, row).action().to_string()).collect()
        };
        let batch = actions(&decided);
        for (row, action) in batch.iter().enumerate().take(200) {
            let alone = policy.decide_with(&held_out.prediction(row), held_out.features(row)).unwrap();
            assert_eq!(alone.action().to_string(), *action, "row {row}");
        }
        let ids: Vec<String> = (0..held_out.rows()).map(|row| row.to_string()).collect();
        decided.draw_by_ids(&policy, &ids);
        let share = actions(&decided).iter().filter(|action| *action == "route:expert").count() as f64 / 8_000.0;
        assert!((share - budget).abs() < error, "{budget}: {share}");
    }
}
