//! A policy put together from its parts, without calibration rows, decides as the policy that was compiled from the router.

use std::sync::Arc;

use pointsman::error::{Error, TaskError};
use pointsman::oracle::Aggregate;
use pointsman::policy::{Bid, CapRule, Caps, PolicyParts, Tally};
use pointsman::task::Ties;
use pointsman::{Estimator, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, close, said};

/// Rows with two features, a measured oracle and from `least` to five labels.
fn draw(seed: u64, rows: usize, least: usize) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features, mut answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (truth, x) = (rng.dist(3), rng.uniform());
        let k = least + rng.below(6 - least);
        probs.extend(rng.dist(3).iter().zip(&truth).map(|(noise, p)| x * noise + (1.0 - x) * p));
        votes.extend(rng.votes(&truth, k));
        features.extend([x, (rng.uniform() * 4.0).floor()]);
        answers.extend(rng.dist(3).iter().zip(&truth).map(|(noise, p)| 0.1 * noise + 0.9 * p));
    }
    let weights = (0..rows).map(|_| 0.5 + rng.uniform()).collect();
    Table::new(CLASS_NAMES[..3].to_vec(), probs)
        .and_then(|table| table.with_votes(votes))
        .and_then(|table| table.with_weights(weights))
        .and_then(|table| table.with_features(["a", "b"], features))
        .and_then(|table| table.with_oracle("large", answers))
        .unwrap()
}

const PARTITIONS: [&str; 9] = [
    "pooled",
    "top-class:10",
    "confidence:30",
    "level-sets",
    "features:x_a=5,x_b=3",
    "top-class:3*features:x_b=2",
    "tree",
    "forest:12",
    "honest-forest:12",
];

fn tasks() -> Vec<Task> {
    let task = |loss: Loss| Task::new(loss).route("a", Oracle::bayes(), 0.05).unwrap();
    let matrix = Loss::matrix(["x", "y"], vec![vec![0.0, 1.0, 3.0], vec![0.5, 0.5, 0.0]]).unwrap();
    let named = matrix.clone().with_classes(["cat", "bee", "ant"]).unwrap();
    let panel = Oracle::panel(3, Aggregate::Mean).unwrap();
    vec![
        task(Loss::brier()).abstain(0.3).unwrap().route("large", Oracle::measured(), 0.02).unwrap(),
        task(Loss::brier()).route("jury", panel, 0.01).unwrap().ties(Ties::Paper),
        task(Loss::cross_entropy()).abstain(0.4).unwrap(),
        task(Loss::zero_one()).estimator(Estimator::Plugin),
        task(matrix),
        task(named).abstain(0.2).unwrap(),
        task(Loss::brier()).route("large", Oracle::measured(), 0.02).unwrap().budget(0.23).unwrap(),
        task(Loss::zero_one()).budget(0.0).unwrap(),
        task(Loss::brier()).abstain(0.9).unwrap().target_loss(0.55).unwrap(),
    ]
}

fn routers(rows: &Table, partition: &str) -> Vec<Router> {
    let router = Router::calibrate(rows, &partition.parse().unwrap()).unwrap();
    match partition.starts_with("forest") {
        true => vec![router],
        false => vec![router.clone(), router.recalibrated()],
    }
}

/// Asserts that two policies say the same about every row, one by one and as a batch.
fn assert_equal(one: &Policy, two: &Policy, queries: &Table, what: &str) {
    let (left, right) = (one.decide_batch(queries).unwrap(), two.decide_batch(queries).unwrap());
    let columns = queries.feature_columns(one.cells().features()).unwrap();
    for row in 0..queries.rows() {
        assert_eq!(said(one.row(&left, row)), said(two.row(&right, row)), "{what}, row {row}");
        let features: Vec<f64> = columns.iter().map(|&column| queries.features(row)[column]).collect();
        let prediction = &queries.predictions()[row * 3..][..3];
        let [alone, other] = [one, two].map(|policy| policy.decide_with(prediction, &features).unwrap());
        assert_eq!(said(alone), said(other), "{what}, row {row}");
        assert_eq!((alone.reason(), alone.served()), (other.reason(), other.served()), "{what}, row {row}");
        assert_eq!(alone.marginal_share(), other.marginal_share(), "{what}, row {row}");
    }
    assert_eq!(one.answers(&left, &queries.predictions()), two.answers(&right, &queries.predictions()), "{what}");
}

#[test]
fn policy_from_parts_decides_and_promises_bit_for_bit() {
    let queries = draw(2, 40, 1);
    let mut limited = 0;
    for (least, rows) in [(2, 120), (1, 100)] {
        let table = draw(1, rows, least);
        for partition in PARTITIONS {
            for router in routers(&table, partition) {
                for task in tasks() {
                    // Some targets are out of reach.
                    let Ok(policy) = router.policy(&task) else { continue };
                    let what = format!("{partition}, recalibrated {}, {task:?}", router.is_recalibrated());
                    let alone = Policy::from_parts(policy.to_parts()).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_equal(&policy, &alone, &queries, &what);
                    assert!(alone.router().is_none());
                    // Unknown standard errors are NaN, which equals nothing.
                    assert_eq!(format!("{:?}", alone.promise()), format!("{:?}", policy.promise()), "{what}");
                    assert_eq!(format!("{:?}", alone.surcharge()), format!("{:?}", policy.surcharge()), "{what}");
                    assert_eq!(alone.shares(), policy.shares(), "{what}");
                    limited += usize::from(policy.surcharge_price().is_some_and(|price| price > 0.0));
                }
            }
        }
    }
    assert!(limited > 20, "only {limited} limits were binding");
}

#[test]
fn policy_without_rows_takes_other_prices_routes_and_caps() {
    let (table, queries) = (draw(3, 600, 2), draw(4, 200, 1));
    let task = |price: f64| {
        let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), price).unwrap();
        task.route("large", Oracle::measured(), 0.03).unwrap()
    };
    for partition in ["top-class:10", "forest:12"] {
        let router = Router::calibrate(&table, &partition.parse().unwrap()).unwrap();
        let alone = Policy::from_parts(router.policy(&task(0.05)).unwrap().to_parts()).unwrap();
        let without = Task::new(Loss::brier()).route("large", Oracle::measured(), 0.01).unwrap();
        for other in [task(0.2), task(0.05).abstain(0.2).unwrap(), without.clone(), without.without_routes()] {
            let repriced = alone.reprice(&other).unwrap();
            assert_equal(&repriced, &router.policy(&other).unwrap(), &queries, partition);
            assert!(repriced.promise().is_none());
        }
        let mut decided = alone.decide_batch(&queries).unwrap();
        let caps = Caps::new(alone.task(), [("large", "5%".parse().unwrap())]).unwrap();
        let keys = alone.cap_keys_of_table(&queries, None).unwrap();
        let bids = alone.bids(&caps, &decided, &keys);
        let scan = |each: &mut dyn FnMut(&Bid)| {
            bids.iter().for_each(each);
            Ok::<(), Error>(())
        };
        let mut rule = CapRule::find(&caps, queries.rows() as u64, scan).unwrap();
        alone.apply_caps(&mut rule, &mut decided, &keys);
        let sent = (0..200).filter(|&row| alone.row(&decided, row).action().to_string() == "route:large").count();
        assert!((1..=10).contains(&sent), "{sent}");
        // Without held-out rows, the queries show what the cap costs.
        let [plain, capped] = [&alone.decide_batch(&queries).unwrap(), &decided].map(|decisions| {
            let mut tally = Tally::default();
            tally.add(&alone, decisions);
            tally.summary(&alone)
        });
        let of_cap = capped.capped.unwrap();
        let by_estimates: f64 = (0..200).map(|row| alone.row(&decided, row).cost_of_cap()).sum();
        close(of_cap.cost, by_estimates / 200.0, 1e-12, "cost of the cap");
        assert!(of_cap.cost > 0.0 && of_cap.standard_error.is_none(), "{partition}: {of_cap:?}");
        let [plain, capped] =
            [plain.expected_cost, capped.expected_cost].map(|costs| *costs.unwrap().get("router").unwrap());
        close(capped - plain, of_cap.cost, 1e-12, "increase of the expected cost");
    }
}

#[test]
fn policy_without_rows_refuses_what_needs_rows() {
    let table = draw(5, 400, 2);
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.05).unwrap();
    for partition in ["top-class:10", "forest:12"] {
        let router = Router::calibrate(&table, &partition.parse().unwrap()).unwrap();
        let alone = Policy::from_parts(router.policy(&task).unwrap().to_parts()).unwrap();
        let error = alone.reprice(&Task::new(Loss::zero_one())).unwrap_err();
        assert!(matches!(&error, Error::Task(TaskError::OtherPolicyFile { .. })), "{error}");
        let text = error.to_string();
        assert!(text.contains("brier") && text.contains("zero-one") && text.contains("pointsman compile"), "{text}");
        let error = alone.reprice(&task.clone().estimator(Estimator::Plugin)).unwrap_err().to_string();
        assert!(error.contains("plugin"), "{error}");
        let error = alone.reprice(&task.clone().route("large", Oracle::measured(), 0.1).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Task(TaskError::OtherOracle { .. })), "{error}");
        let error = alone.reprice(&task.clone().target_loss(0.5).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Task(TaskError::LimitNeedsRows)), "{error}");
        let budget = alone.reprice(&task.clone().budget(0.1).unwrap());
        assert_eq!(budget.is_ok(), partition != "forest:12", "the weights of cells give a budget its price");
    }
}

#[test]
fn limit_stays_if_nothing_changes() {
    let table = draw(6, 400, 2);
    let router = Router::calibrate(&table, &Partition::confidence(5)).unwrap();
    let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.0).unwrap().target_loss(0.6).unwrap();
    let alone = Policy::from_parts(router.policy(&task).unwrap().to_parts()).unwrap();
    let same = alone.reprice(&task).unwrap();
    assert_eq!(same.surcharge_price(), alone.surcharge_price());
    assert!(same.promise().is_some());
}

/// What refuses the parts of a policy after a change; the policy itself must be accepted.
fn refusal(parts: &PolicyParts, change: impl FnOnce(&mut PolicyParts)) -> String {
    assert!(Policy::from_parts(parts.clone()).is_ok());
    let mut parts = parts.clone();
    change(&mut parts);
    Policy::from_parts(parts).err().map_or_else(|| "accepted".to_owned(), |error| error.to_string())
}

#[test]
fn impossible_parts_are_refused_by_name() {
    type Change = fn(&mut PolicyParts);
    let table = draw(7, 400, 2);
    let task = Task::new(Loss::brier()).route("large", Oracle::measured(), 0.05).unwrap().budget(0.2).unwrap();
    let parts_of = |partition: &str| {
        Router::calibrate(&table, &partition.parse().unwrap()).unwrap().policy(&task).unwrap().to_parts()
    };
    let (cells, forest) = (parts_of("top-class:5"), parts_of("forest:12"));
    let changes: [(&str, Change); 22] = [
        ("not a loss", |parts| parts.sources.losses[0] = f64::NAN),
        ("not a loss", |parts| parts.sources.losses[3] = f64::INFINITY),
        ("wrong order", |parts| parts.sources.losses[2] = parts.sources.losses[1] - 1.0),
        ("differ in length", |parts| _ = parts.sources.losses.pop()),
        ("differ in length", |parts| _ = parts.sources.weights.pop()),
        ("not a distribution", |parts| parts.sources.centroids[0] = -0.5),
        ("not a distribution", |parts| parts.sources.centroids[0] += 0.1),
        ("positive number", |parts| parts.sources.weights[0] = 0.0),
        ("positive number", |parts| parts.sources.weights[0] = f64::NAN),
        ("not possible", |parts| parts.sources.effective_rows[0] = f64::NAN),
        ("not possible", |parts| parts.sources.paired_rows[0] = u64::MAX),
        ("not possible", |parts| parts.sources.rows[0] = u64::MAX),
        ("need", |parts| parts.sources.rows[0] = 0),
        ("distinct", |parts| parts.oracles.push(parts.oracles[0].clone())),
        ("distinct", |parts| parts.oracles[0].1 = Oracle::bayes()),
        ("limit", |parts| parts.figures.limit = None),
        ("limit", |parts| parts.task = parts.task.clone().without_limit()),
        ("limit", |parts| parts.figures.limit.as_mut().unwrap().marginal = 1.5),
        ("limit", |parts| parts.figures.limit.as_mut().unwrap().price = f64::NAN),
        ("shares", |parts| parts.figures.shares[0] = f64::NAN),
        ("promises", |parts| parts.figures.promise.as_mut().unwrap().cost.value = f64::NAN),
        ("does not fit", |parts| parts.partition = Partition::confidence(3)),
    ];
    for (expected, change) in changes {
        for parts in [&cells, &forest] {
            let found = refusal(parts, change);
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }
    let in_forests: [(&str, Change); 7] = [
        ("not a loss", |parts| parts.leaves.as_mut().unwrap().losses[0] = f64::NAN),
        ("do not fit", |parts| _ = parts.leaves.as_mut().unwrap().losses.pop()),
        ("slope", |parts| parts.leaves.as_mut().unwrap().slopes[0] = f64::NAN),
        ("belong to a forest", |parts| parts.leaves = None),
        ("forest", |parts| parts.recalibrated = true),
        ("class", |parts| drop(parts.classes.pop())),
        ("does not fit", |parts| parts.backoff = Arc::clone(&parts.cells)),
    ];
    for (expected, change) in in_forests {
        let found = refusal(&forest, change);
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let found = refusal(&cells, |parts| parts.leaves = forest.leaves.clone());
    assert!(found.contains("belong to a forest"), "{found}");
}
