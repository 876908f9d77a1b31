//! Partitions that learn, in a world whose regions only a feature tells apart.

use pointsman::oracle::Aggregate;
use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::partition::forest::{Node, Trees};
use pointsman::{Action, CellId, Cells, Error, Estimator, Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{Rng, close};

/// The weak model says much the same everywhere. Below a third of `x` the labels disagree as it says; above two thirds they
/// are sure and it is wrong; between, they are sure and it is nearly right. `z` says nothing and is often missing.
fn world(rows: usize, k: usize, seed: u64) -> Table {
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

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap()
}

fn reordered(table: &Table, order: &[usize]) -> Table {
    let probs = order.iter().flat_map(|&row| table.prediction(row).into_owned()).collect();
    let votes = order.iter().flat_map(|&row| table.votes(row).unwrap().counts()).copied().collect();
    let features = order.iter().flat_map(|&row| table.features(row)).copied().collect();
    let names = table.feature_names().to_vec();
    let table = Table::new(table.classes().to_vec(), probs).unwrap().with_votes(votes).unwrap();
    table.with_features(names, features).unwrap()
}

fn message<T>(result: Result<T, Error>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn trees_find_what_only_a_feature_tells() {
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
    // Losses the trees were never grown for.
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
fn a_decision_loss_sees_the_act_a_prediction_leads_to() {
    // The weak model is calibrated and items have one label only: nothing is better than what each prediction says of itself,
    // and that depends on the act it leads to.
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
        // A sum that is off by noise changes no cost, but where it leads to another leaf.
        let total = |row: &[f64]| policy.decide(row).unwrap().total();
        let predictions = test.predictions();
        let same = predictions.chunks_exact(4).take(200).filter(|row| {
            let off: Vec<f64> = row.iter().map(|x| x * (1.0 + 5e-6)).collect();
            (total(&off) - total(row)).abs() < 1e-9
        });
        assert!(same.count() > 150, "{loss}");
    }
}

/// Where one leaf's labels do not tell the irreducible loss, the share of errors has a column of its own: both ends stay what they are,
/// and the total loss follows the prediction all the same.
#[test]
fn errors_have_room_beside_bounds() {
    let mut rng = Rng::new(36);
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for row in 0..1_200 {
        let (x, f) = (rng.uniform(), 0.05 + 0.4 * rng.uniform());
        let [p, q] =
            [f, if x < 0.5 { f } else { 0.02 }].map(|f| if row % 2 == 0 { [1.0 - f, f] } else { [f, 1.0 - f] });
        probs.extend(p);
        // Where labels are noisy, most items have one.
        votes.extend(rng.votes(&q, if x < 0.5 && row % 20 > 1 { 1 } else { 5 }));
        features.push(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    let router = Router::calibrate(&table.with_features(["x"], features).unwrap(), &Partition::forest(30)).unwrap();
    let policy = router.policy(&Task::new(Loss::asymmetric(4.0).unwrap())).unwrap();
    let decide = |f: [f64; 2], x: f64| policy.decide_with(&f, &[x]).unwrap();
    let [low, high] = decide([0.9, 0.1], 0.1).irreducible_bounds();
    assert!(low < high && high < 1.0, "{low} to {high}");
    let [low, high] = decide([0.9, 0.1], 0.9).irreducible_bounds();
    assert!(high - low < 0.05, "{low} to {high}");
    let [dear, cheap] = [[0.9, 0.1], [0.1, 0.9]].map(|f| decide(f, 0.1).total());
    assert!(dear > 1.5 * cheap, "{dear} and {cheap}");
}

/// Where a loss charges all errors alike, what a prediction loses at its leaf's error rate is the same for all, up to rounding.
#[test]
fn rounding_has_no_slope() {
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

/// Predictions are equally sure of either class, a feature tells how often they are wrong, and being wrong about one class is four
/// times as dear. Brier losses are symmetric, so that trees do not ask which class it is.
#[test]
fn a_prediction_has_its_own_price_for_its_leaf_s_errors() {
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
    // What the oracle saves: nothing where naming the other class is dearer.
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
fn neither_row_order_nor_threads_matter() {
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
fn one_query_a_batch_and_a_replay_agree() {
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
        // Another price: by the same losses.
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
        // Rows that are shown do what all rows do.
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
fn losses_of_a_forest_s_cells_hold_for_new_rows() {
    // Scores by trees that have not seen a row: what cells say of themselves holds for new rows.
    let (calibration, test) = (world(3_000, 2, 8), world(3_000, 2, 9));
    let router = Router::calibrate(&calibration, &Partition::forest(40)).unwrap();
    let policy = router.policy(&task()).unwrap();
    let cells = policy.replay(&test).unwrap().cells(&policy).unwrap();
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
fn an_honest_tree_keeps_the_other_half() {
    let table = world(1_001, 3, 10);
    let router = Router::calibrate(&table, &Partition::tree()).unwrap();
    let rows = router.rows().rows();
    assert_eq!(rows, 501, "rows of the second half");
    assert!(router.cells().count() >= 3, "{} leaves", router.cells().count());
    for cell in 0..router.cells().count() as u32 {
        // At least SPARSE_BELOW_ROWS rows of the first half have led here, so that hardly a leaf has half as many of the second.
        assert!(router.mixture(CellId(cell)).len() >= SPARSE_BELOW_ROWS / 2);
        assert!(router.cells().name(CellId(cell), router.classes()).contains("x_x"), "the way to a leaf names x");
    }
    // Leaves that differ are hardly drawn together; every estimate lies between its own and that of all.
    let policy = router.policy(&task()).unwrap();
    let totals: Vec<f64> =
        (0..router.cells().count() as u32).map(|c| policy.cell(CellId(c)).unwrap().total()).collect();
    let (low, high) =
        (totals.iter().copied().fold(f64::MAX, f64::min), totals.iter().copied().fold(f64::MIN, f64::max));
    assert!(low < 0.5 && high > 0.6, "{totals:?}");
}

#[test]
fn leaves_that_differ_by_chance_are_drawn_together() {
    // One tree forced on noise: its leaves say the same.
    let mut rng = Rng::new(11);
    let n = 600;
    let votes = (0..n).flat_map(|_| rng.votes(&[0.6, 0.4], 3)).collect();
    let table = Table::new(["a", "b"], [0.6, 0.4].repeat(n)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x"], (0..n).map(|i| i as f64).collect()).unwrap();
    let split = |threshold: f64, left: u32| Node::Split { input: 3, threshold, left, missing_right: false };
    let nodes = [split(300.0, 1), split(150.0, 3), split(450.0, 5), Node::Leaf, Node::Leaf, Node::Leaf, Node::Leaf];
    let trees = Trees::new(4, vec![0], &nodes).unwrap();
    let cells = Cells::new(2, vec![pointsman::partition::Axis::Tree { trees }], vec!["x".into()]).unwrap();
    let backoff = Router::calibrate(&table, &Partition::confidence(10)).unwrap().backoff().as_ref().clone();
    let router = Router::from_parts(Partition::tree(), cells, backoff, false, &table).unwrap();
    let policy = router.policy(&task()).unwrap();
    let all = Router::calibrate(&table, &Partition::confidence(1)).unwrap().policy(&task()).unwrap();
    let all = all.cell(CellId(0)).unwrap().total();
    for cell in 0..4 {
        let own: f64 = {
            let mixture = router.mixture(CellId(cell));
            let mean = mixture.centroid().unwrap();
            1.0 - 2.0 * (0.6 * mean[0] + 0.4 * mean[1]) + 0.52
        };
        let found = policy.cell(CellId(cell)).unwrap().total();
        assert!((found - all).abs() <= 0.7 * (own - all).abs() + 1e-12, "{found} between {own} and {all}");
    }
}

/// The rows that divided are not kept, so that a leaf may have none: its queries fall back, and its certificate says nothing.
#[test]
fn a_leaf_without_rows_falls_back() {
    let table = world(300, 3, 13);
    let split = |threshold: f64, left: u32| Node::Split { input: 3, threshold, left, missing_right: false };
    let trees = Trees::new(5, vec![0], &[split(0.5, 1), Node::Leaf, split(1.5, 3), Node::Leaf, Node::Leaf]).unwrap();
    let cells = Cells::new(2, vec![pointsman::partition::Axis::Tree { trees }], vec!["x".into(), "z".into()]).unwrap();
    let backoff = Router::calibrate(&table, &Partition::confidence(10)).unwrap().backoff().as_ref().clone();
    let router = Router::from_parts(Partition::tree(), cells, backoff, false, &table).unwrap();
    let policy = router.policy(&task()).unwrap();
    let [met, empty] = [0.7, 1.7].map(|x| policy.decide_with(&[0.6, 0.4], &[x, 0.0]).unwrap());
    assert_eq!((met.level().name(), met.support().name()), ("cell", "enough"));
    assert!(empty.level().name() != "cell" && empty.support().name() == "empty" && empty.irreducible().is_some());
    let certificate = router.certificate(&task(), 0.9).unwrap();
    assert_eq!(certificate.cells()[empty.cell().index()].rows(), 0);
    let nothing = certificate.cells()[empty.cell().index()].irreducible();
    assert!(nothing.low <= 0.0 && nothing.high >= 0.5, "{nothing:?}");
}

/// One label an item in one leaf leaves bounds there, and only there: what labels of the other leaves tell stays told.
#[test]
fn a_known_leaf_stays_known_beside_one_that_is_not() {
    let mut rng = Rng::new(12);
    let n = 600;
    let mut votes = Vec::new();
    for i in 0..n {
        // Items differ within leaves, too: otherwise there would be nothing to draw together.
        let (p, k) = [([0.95, 0.6], 3), ([0.8, 0.5], 3), ([0.9, 0.5], 1)][i / 200];
        votes.extend(rng.votes(&[p[i % 2], 1.0 - p[i % 2]], k));
    }
    let table = Table::new(["a", "b"], [0.6, 0.4].repeat(n)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x"], (0..n).map(|i| i as f64).collect()).unwrap();
    let split = |threshold: f64, left: u32| Node::Split { input: 3, threshold, left, missing_right: false };
    let nodes = [split(400.0, 1), split(200.0, 3), Node::Leaf, Node::Leaf, Node::Leaf];
    let routers = [&nodes[..], &[split(200.0, 1), Node::Leaf, Node::Leaf]].map(|nodes| {
        let trees = Trees::new(4, vec![0], nodes).unwrap();
        let cells = Cells::new(2, vec![pointsman::partition::Axis::Tree { trees }], vec!["x".into()]).unwrap();
        let backoff = Router::calibrate(&table, &Partition::confidence(10)).unwrap().backoff().as_ref().clone();
        let rows: Vec<usize> = (0..if nodes.len() == 3 { 400 } else { n }).collect();
        Router::from_parts(Partition::tree(), cells, backoff, false, &reordered(&table, &rows)).unwrap()
    });
    let task = task().route("jury", Oracle::panel(3, Aggregate::Mean).unwrap(), 0.01).unwrap();
    let [beside, alone] = routers.map(|router| router.policy(&task).unwrap());
    for x in [100.0, 300.0] {
        let [beside, alone] = [&beside, &alone].map(|policy| policy.decide_with(&[0.6, 0.4], &[x]).unwrap());
        assert!(alone.irreducible().is_some() && beside.irreducible() == alone.irreducible());
        assert_eq!(beside.costs()[1..], alone.costs()[1..]);
        assert_eq!(beside.costs()[1..], beside.costs_high()[1..], "the oracles' losses are known");
    }
    let bounded = beside.decide_with(&[0.6, 0.4], &[500.0]).unwrap();
    assert!(bounded.irreducible().is_none() && bounded.costs()[1] < bounded.costs_high()[1]);
}

/// What an oracle was seen to lose differs between leaves, whatever the irreducible loss does.
#[test]
fn a_measured_oracle_is_drawn_together_by_its_own_leaves() {
    let mut rng = Rng::new(23);
    let n = 1_200;
    let x: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
    // Labels are everywhere as uncertain; the weak model and the oracle are wrong on opposite sides.
    let votes = x.iter().flat_map(|x| rng.votes(&if *x < 0.5 { [0.9, 0.1] } else { [0.1, 0.9] }, 4)).collect();
    let table = Table::new(["a", "b"], [0.7, 0.3].repeat(n)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["x"], x.clone()).unwrap().with_oracle("gpt", [0.2, 0.8].repeat(n)).unwrap();
    let router = Router::calibrate(&table, &Partition::tree()).unwrap();
    let task = Task::new(Loss::brier()).route("gpt", Oracle::measured(), 0.0).unwrap();
    let policy = router.policy(&task).unwrap();
    for (x, wanted) in [(0.25, 0.9 * 1.28 + 0.1 * 0.08), (0.75, 0.1 * 1.28 + 0.9 * 0.08)] {
        let decision = policy.decide_with(&[0.7, 0.3], &[x]).unwrap();
        close(decision.costs()[1], wanted, 0.08, "what the oracle loses");
    }
}

/// Ambiguous where `y` is low; elsewhere the weak model is nearly right. Two more features say nothing.
fn waves(rows: usize, k: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features, mut truth) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let x = [rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform()];
        let wave = (6.0 * x[0]).sin();
        let p = 0.5 + if x[1] > 0.5 { 0.45 * wave } else { 0.0 };
        probs.extend([0.5 + 0.4 * wave, 0.5 - 0.4 * wave]);
        votes.extend(rng.votes(&[p, 1.0 - p], k));
        truth.extend([p, 1.0 - p]);
        features.extend(x);
    }
    let table = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["x", "y", "z", "w"], features).unwrap().with_truth(truth).unwrap()
}

/// Leaves are small and labels few: what is cut off at one side in each would be missing on average.
#[test]
fn the_irreducible_loss_of_a_forest_has_hardly_a_bias() {
    const SEEDS: u64 = 6;
    let mean_of =
        |table: &Table, value: &dyn Fn(usize) -> f64| (0..table.rows()).map(value).sum::<f64>() / table.rows() as f64;
    for (k, bounds) in [(2, [0.001, 0.008, 0.018]), (5, [0.001, 0.004, 0.01])] {
        let mut bias = [0.0; 3];
        for seed in 0..SEEDS {
            let table = waves(1_500, k, 100 + seed);
            let router = Router::calibrate(&table, &Partition::forest(40)).unwrap();
            let found = |loss: &Loss, others: &[Oracle]| {
                let mut task = Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.0).unwrap();
                for (i, oracle) in others.iter().enumerate() {
                    task = task.route(format!("other {i}"), oracle.clone(), 0.0).unwrap();
                }
                let policy = router.policy(&task).unwrap();
                let decided = policy.decide_batch(&table).unwrap();
                mean_of(&table, &|row| policy.row(&decided, row).costs()[1])
            };
            // For Brier the same labels tell without bias; other losses are compared with the truth.
            let differ = |row: usize| table.votes(row).unwrap().disagreement().unwrap();
            let brier = found(&Loss::brier(), &[]);
            bias[0] += (brier - mean_of(&table, &differ)) / SEEDS as f64;
            for (bias, loss) in bias[1..].iter_mut().zip([Loss::cross_entropy(), Loss::zero_one()]) {
                let truth = |row: usize| loss.entropy(table.truth(row).unwrap());
                *bias += (found(&loss, &[]) - mean_of(&table, &truth)) / SEEDS as f64;
            }
            let panel = Oracle::panel(3, Aggregate::Mean).unwrap();
            close(found(&Loss::brier(), &[panel]), brier, 1e-12, "beside a panel");
        }
        println!("{k} labels: off by {bias:.4?} (Brier, cross-entropy, zero-one)");
        assert!(bias.iter().zip(bounds).all(|(bias, bound)| bias.abs() < bound), "{k} labels: {bias:?}");
    }
}

/// More experts than anyone asks, more of them than labels: once a row, not once a leaf.
#[test]
fn large_panels_are_valued_on_a_forest() {
    let table = world(400, 3, 24);
    let router = Router::calibrate(&table, &Partition::forest(25)).unwrap();
    for (m, loss) in [(120, Loss::zero_one()), (1_000, Loss::spherical())] {
        for aggregate in [Aggregate::Plurality, Aggregate::Laplace(1.0)] {
            let jury = Oracle::panel(m, aggregate).unwrap();
            let policy = router.policy(&Task::new(loss.clone()).route("jury", jury.clone(), 0.0).unwrap()).unwrap();
            let decided = policy.decide_batch(&table).unwrap();
            let mut error = 0.0;
            for row in 0..table.rows() {
                let truth = jury.cost(&loss, table.truth(row).unwrap()).unwrap();
                error += (policy.row(&decided, row).costs()[1] - truth).abs() / table.rows() as f64;
            }
            assert!(error < 0.06, "{jury} {loss}: {error}");
        }
    }
}

/// One tree is grown as the first of many: its leaf size is chosen, too.
#[test]
fn one_tree_has_a_leaf_size_of_its_own() {
    let table = world(1_000, 5, 25);
    let nodes = |trees: usize| -> Vec<Node> {
        let router = Router::calibrate(&table, &Partition::forest(trees)).unwrap();
        let pointsman::partition::Axis::Forest { forest, .. } = &router.cells().axes()[0] else { panic!("a forest") };
        forest.trees().nodes().collect()
    };
    // As many as look for the leaf size.
    let (one, many) = (nodes(1), nodes(20));
    assert_eq!(one, many[..one.len()]);
    assert!(one.iter().filter(|node| **node == Node::Leaf).count() > 4, "leaves of 250 rows were not chosen");
}

/// Leaves of 60 rows and more cannot divide so few: smaller ones are tried.
#[test]
fn few_rows_are_divided_too() {
    let table = world(150, 5, 26);
    let router = Router::calibrate(&table, &Partition::forest(20)).unwrap();
    let policy = router.policy(&task()).unwrap();
    let total = |x: f64| policy.decide_with(&[0.6, 0.4], &[x, 0.5]).unwrap().total();
    assert!(total(0.9) > total(0.5) + 0.3, "{} and {}", total(0.9), total(0.5));
}

#[test]
fn missing_values_have_a_way_in_trees_and_none_between_edges() {
    let table = world(400, 3, 12);
    let error = message(Router::calibrate(&table, &"features:x_z=4".parse().unwrap()));
    assert!(error.contains("column x_z") && error.contains("missing") && error.contains("forest"), "{error}");
    for partition in [Partition::tree(), Partition::honest_forest(5), Partition::forest(5)] {
        let policy = Router::calibrate(&table, &partition).unwrap().policy(&task()).unwrap();
        assert!(policy.decide_with(&[0.6, 0.4], &[f64::NAN, f64::NAN]).is_ok());
        let error = message(policy.decide_with(&[0.6, 0.4], &[0.1, f64::INFINITY]));
        assert!(error.contains("x_z") && error.contains("inf"), "{error}");
        let error = message(policy.decide_with(&[0.6, 0.4], &[0.1]));
        assert!(error.contains("x_x") && error.contains("x_z"), "{error}");
        let bare = Table::new(["no", "yes"], vec![0.5, 0.5]).unwrap();
        let error = message(policy.decide_batch(&bare));
        assert!(error.contains("the feature x_x is needed"), "{error}");
    }
    // What an edge-based router meets later is refused as well.
    let whole = Router::calibrate(&table, &"features:x_x=4".parse().unwrap()).unwrap();
    let policy = whole.policy(&task()).unwrap();
    let holes = Table::new(["no", "yes"], vec![0.5, 0.5]).unwrap().with_features(["x"], vec![f64::NAN]).unwrap();
    assert!(message(policy.decide_batch(&holes)).contains("row 0, column x_x"));
    // A feature that is always missing, or always the same, is never asked for.
    let xs: Vec<f64> = (0..table.rows()).map(|row| table.features(row)[0]).collect();
    let features = xs.iter().flat_map(|&x| [x, f64::NAN, 1.0]).collect();
    let empty = Table::new(["no", "yes"], table.predictions().to_vec()).unwrap();
    let empty =
        empty.with_votes((0..400).flat_map(|row| table.votes(row).unwrap().counts()).copied().collect()).unwrap();
    let empty = empty.with_features(["x", "never", "same"], features).unwrap();
    for partition in ["forest:5", "honest-forest:5", "tree"] {
        let router = Router::calibrate(&empty, &partition.parse().unwrap()).unwrap();
        assert_eq!(router.cells().features(), ["x"], "{partition}");
        let alone =
            Router::calibrate(&empty.clone().with_features(["x"], xs.clone()).unwrap(), &partition.parse().unwrap());
        assert_eq!(alone.unwrap(), router, "{partition}");
    }
}

#[test]
fn a_missing_value_that_means_something_is_used() {
    // Whoever has no z is sure; everybody else disagrees.
    let mut rng = Rng::new(13);
    let (mut votes, mut features) = (vec![], vec![]);
    for i in 0..300 {
        votes.extend(rng.votes(if i % 2 == 0 { &[1.0, 0.0] } else { &[0.5, 0.5] }, 4));
        features.push(if i % 2 == 0 { f64::NAN } else { rng.uniform() });
    }
    let table = Table::new(["a", "b"], [0.5, 0.5].repeat(300)).unwrap().with_votes(votes).unwrap();
    let table = table.with_features(["z"], features).unwrap();
    for partition in [Partition::tree(), Partition::honest_forest(20), Partition::forest(20)] {
        let policy = Router::calibrate(&table, &partition).unwrap().policy(&task()).unwrap();
        let irreducible = |z: f64| policy.decide_with(&[0.5, 0.5], &[z]).unwrap().irreducible().unwrap();
        assert!(irreducible(f64::NAN) < 0.1 && irreducible(0.5) > 0.4, "{partition}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused_with_advice() {
    let single = world(300, 1, 14);
    for partition in [Partition::tree(), Partition::honest_forest(5), Partition::forest(5)] {
        let error = message(Router::calibrate(&single, &partition));
        assert!(error.contains("two labels") && error.contains("top-class"), "{error}");
    }
    // Not the half of it that a tree divides by is counted, but the table.
    for partition in [Partition::tree(), Partition::honest_forest(5)] {
        assert!(message(Router::calibrate(&single, &partition)).starts_with("0 of 300 rows carry two labels"));
        let error = message(Router::calibrate(&world(50, 5, 14), &partition));
        assert!(error.starts_with("50 rows are too few") && !error.contains("noise"), "{error}");
    }
    let router = Router::calibrate(&world(300, 3, 15), &Partition::forest(5)).unwrap();
    for estimator in [Estimator::Npmle, Estimator::Dirichlet] {
        let error = message(router.policy(&task().estimator(estimator)));
        assert!(error.contains("use shrink") && error.contains("calibrate TABLE --certifiable"), "{error}");
    }
    let many = (0..20).fold(task(), |task, i| task.route(format!("r{i}"), Oracle::bayes(), 0.1).unwrap());
    assert!(message(router.policy(&many)).contains("at most 16"));
    assert!(message(router.clone().recalibrated().policy(&task())).contains("weak prediction"));
    // What a forest cannot do, an honest one can.
    let centroids = router.clone().recalibrated();
    for error in
        [message(router.policy(&many)), message(centroids.policy(&task())), message(router.certificate(&task(), 0.95))]
    {
        assert!(error.contains("calibrate TABLE --certifiable"), "{error}");
    }
}

#[test]
fn trees_and_rows_make_the_same_router_again() {
    let table = world(300, 3, 16);
    let router = Router::builder().partition(Partition::forest(6)).seed(3).fit(&table).unwrap();
    let pointsman::partition::Axis::Forest { forest, .. } = &router.cells().axes()[0] else { panic!("a forest") };
    let again = |trees: Trees| {
        let backoff = router.backoff().as_ref().clone();
        Router::from_forest(router.partition().clone(), trees, forest.seed(), backoff, router.rows())
    };
    assert_eq!(again(forest.trees().clone()).unwrap(), router);
    // Trees that do not fit: too few, of other inputs, or with a leaf that no row reaches.
    let leaf = |inputs: usize, trees: u32| {
        Trees::new(inputs, (0..trees).collect(), &vec![Node::Leaf; trees as usize]).unwrap()
    };
    assert!(again(leaf(5, 5)).is_err() && again(leaf(6, 6)).is_err() && again(leaf(5, 6)).is_ok());
    let far = Node::Split { input: 3, threshold: 1e300, left: 1, missing_right: false };
    let nodes: Vec<Node> = [far, Node::Leaf, Node::Leaf].into_iter().chain([Node::Leaf; 5]).collect();
    assert!(message(again(Trees::new(5, vec![0, 3, 4, 5, 6, 7], &nodes).unwrap())).contains("no rows"));
}

#[test]
fn heaviest_rows_are_those_the_costs_depend_on() {
    // Predictions that are all alike say nothing of themselves.
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
        // A total loss is linear in the rows, so that it is their mean.
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
fn weights_count_as_rows() {
    let table = world(1_200, 3, 19);
    let weights = (0..1_200).map(|i| if i % 3 == 0 { 5.0 } else { 0.5 }).collect();
    let heavy = table.clone().with_weights(weights).unwrap();
    for partition in [Partition::tree(), Partition::honest_forest(5), Partition::forest(5)] {
        let (a, b) = (Router::calibrate(&table, &partition).unwrap(), Router::calibrate(&heavy, &partition).unwrap());
        assert!(a.cells() != b.cells() && b.policy(&task()).is_ok(), "{partition}");
    }
}

/// What `auto` compares counts by weight, as growing does.
#[test]
fn rows_of_no_weight_do_not_choose() {
    let mut rng = Rng::new(26);
    let heavy = world(600, 5, 27);
    // Beside them as many rows in which the feature says nothing.
    let (mut probs, mut votes, mut features) = (heavy.predictions().to_vec(), vec![], vec![]);
    for row in 0..600 {
        votes.extend(heavy.votes(row).unwrap().counts());
        features.extend(heavy.features(row));
    }
    for _ in 0..600 {
        let f = 0.55 + 0.1 * rng.uniform();
        probs.extend([f, 1.0 - f]);
        votes.extend(rng.votes(&[0.5, 0.5], 5));
        features.extend([rng.uniform(), rng.uniform()]);
    }
    let both = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    let both = both.with_features(["x", "z"], features).unwrap();
    let weights = (0..1_200).map(|row| if row < 600 { 1.0 } else { 1e-6 }).collect();
    let cost = |table: &Table| Router::builder().calibrate(table).unwrap().choice.unwrap().candidates[0].cost;
    close(cost(&both.with_weights(weights).unwrap()), cost(&heavy), 0.1, "cost");
}

#[test]
fn a_budget_is_kept_query_by_query() {
    let router = Router::calibrate(&world(2_000, 6, 21), &Partition::forest(20)).unwrap();
    let held_out = world(8_000, 6, 22);
    for budget in [0.0, 0.1, 0.35] {
        let policy = router.policy(&task().budget(budget).unwrap()).unwrap();
        let found = policy.surcharge().unwrap();
        let routed = |shares: &pointsman::task::Named<f64>| *shares.get("route:expert").unwrap();
        assert!((routed(&policy.shares()) - found.share).abs() < 1e-9, "{found:?}");
        assert!((found.share - budget).abs() < 1e-9, "{found:?}");
        // Two samples of rows, and a little for the forest knowing its own rows better.
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
