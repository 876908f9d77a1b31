//! Routers and decisions do not depend on the order of rows, the number of threads or the tasks compiled.

use pointsman::task::Ties;
use pointsman::{Estimator, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, Said, said};

/// Rows that can be put in any order.
struct Rows {
    probs: Vec<Vec<f64>>,
    votes: Vec<Vec<u32>>,
    weights: Vec<f64>,
    features: Vec<[f64; 2]>,
    oracle: Vec<Vec<f64>>,
}

impl Rows {
    /// Coarse predictions, so that many rows tie and share cells.
    fn draw(n: usize) -> Self {
        let mut rng = Rng::new(77);
        let coarse = |rng: &mut Rng| {
            let p = rng.dist(3);
            rng.votes(&p, 20).iter().map(|&n| f64::from(n) / 20.0).collect::<Vec<_>>()
        };
        let probs: Vec<Vec<f64>> = (0..n).map(|_| coarse(&mut rng)).collect();
        let votes = probs
            .iter()
            .map(|p| {
                let k = 1 + rng.below(5);
                rng.votes(p, k)
            })
            .collect();
        let weights = (0..n).map(|_| 0.1 + rng.uniform()).collect();
        let features = (0..n).map(|_| [rng.uniform(), (rng.uniform() * 4.0).floor()]).collect();
        let oracle = (0..n).map(|_| coarse(&mut rng)).collect();
        Self { probs, votes, weights, features, oracle }
    }

    fn table(&self, order: &[usize]) -> Table {
        let pick = |values: &[Vec<f64>]| order.iter().flat_map(|&i| values[i].clone()).collect::<Vec<f64>>();
        Table::new(CLASS_NAMES[..3].to_vec(), pick(&self.probs))
            .unwrap()
            .with_votes(order.iter().flat_map(|&i| self.votes[i].clone()).collect())
            .unwrap()
            .with_weights(order.iter().map(|&i| self.weights[i]).collect())
            .unwrap()
            .with_features(["a", "b"], order.iter().flat_map(|&i| self.features[i]).collect())
            .unwrap()
            .with_oracle("large", pick(&self.oracle))
            .unwrap()
    }
}

const PARTITIONS: [&str; 6] =
    ["pooled", "top-class:10", "confidence:30", "level-sets", "features:x_a=5,x_b=3", "top-class:3*features:x_b=2"];

fn tasks() -> Vec<Task> {
    let task = |loss: Loss| {
        let bound = loss.bound();
        Task::new(loss).route("a", Oracle::bayes(), 0.05 * bound).unwrap().abstain(0.3 * bound).unwrap()
    };
    vec![
        task(Loss::brier()),
        task(Loss::cross_entropy()),
        task(Loss::spherical()).ties(Ties::Paper),
        task(Loss::zero_one()).estimator(Estimator::Plugin),
        task(Loss::asymmetric(3.0).unwrap()).route("b", Oracle::bayes(), 0.1).unwrap(),
        task(Loss::matrix(["x", "y"], vec![vec![0.0, 1.0, 3.0], vec![0.5, 0.5, 0.0]]).unwrap()),
    ]
}

/// All outputs of the policy on the rows of a table.
fn answers(policy: &Policy, table: &Table) -> Vec<Said> {
    let columns = table.feature_columns(policy.cells().features()).unwrap();
    let features: Vec<f64> =
        (0..table.rows()).flat_map(|row| columns.iter().map(move |&c| table.features(row)[c])).collect();
    let decisions = policy.decide_many(&table.predictions(), &features).unwrap();
    (0..table.rows()).map(|row| said(policy.row(&decisions, row))).collect()
}

#[test]
fn routers_do_not_depend_on_row_order() {
    let rows = Rows::draw(1500);
    let mut order: Vec<usize> = (0..1500).collect();
    let queries = rows.table(&order[..400]);
    let table = rows.table(&order);
    let mut rng = Rng::new(3);
    for partition in PARTITIONS {
        let partition: Partition = partition.parse().unwrap();
        for recalibrate in [false, true] {
            let calibrate = |table: &Table| {
                let router = Router::calibrate(table, &partition).unwrap();
                if recalibrate { router.recalibrated() } else { router }
            };
            let first = calibrate(&table);
            rng.shuffle(&mut order);
            let second = calibrate(&rows.table(&order));
            assert!(first == second, "{partition}");
            for task in tasks() {
                let (a, b) = (first.policy(&task).unwrap(), second.policy(&task).unwrap());
                assert_eq!(answers(&a, &queries), answers(&b, &queries), "{partition}, {}", task.loss());
            }
        }
    }
}

#[test]
fn row_sorting_does_not_depend_on_threads() {
    // Three times the smallest share of a core; few distinct confidences, so that most rows tie.
    let n = 50_000;
    let share = |i: usize, of: usize| (i.wrapping_mul(2_654_435_761) >> 7) % of;
    let probs = (0..n).map(|i| share(i, 40) as f64 / 40.0).flat_map(|p| [p, 1.0 - p]).collect();
    let votes = (0..n).flat_map(|i| [1 + share(i, 3) as u32, share(i, 5) as u32]).collect();
    let table = Table::new(["no", "yes"], probs).and_then(|table| table.with_votes(votes)).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Router::calibrate(&table, &Partition::top_class(5)).unwrap())
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn routers_do_not_depend_on_threads() {
    // More rows than one task takes, so that work is divided.
    let rows = Rows::draw(10_000);
    let table = rows.table(&(0..10_000).collect::<Vec<_>>());
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let router = Router::calibrate(&table, &PARTITIONS[5].parse().unwrap()).unwrap();
            let task = &tasks()[1];
            let policy = router.policy(task).unwrap();
            let replay = policy.replay(&table).unwrap();
            let evaluation = serde_json::to_string(&replay.evaluate(&policy).unwrap()).unwrap();
            (router, answers(&policy, &table), evaluation)
        })
    };
    let one = run(1);
    for threads in [2, 5] {
        let many = run(threads);
        assert!(one.0 == many.0 && one.1 == many.1, "{threads} threads");
        assert_eq!(one.2, many.2, "{threads} threads");
    }
}

#[test]
fn tasks_do_not_change_a_router() {
    let rows = Rows::draw(500);
    let table = rows.table(&(0..500).collect::<Vec<_>>());
    let router = Router::calibrate(&table, &Partition::top_class(5)).unwrap();
    let before = router.clone();
    let first = answers(&router.policy(&tasks()[0]).unwrap(), &table);
    for task in tasks() {
        for price in [0.0, 0.01, 0.5, 3.0] {
            let task = task.clone().reprice_route("a", price).unwrap();
            let policy = router.policy(&task).unwrap();
            policy.replay(&table).unwrap().evaluate(&policy).unwrap();
        }
    }
    assert_eq!(router, before);
    assert_eq!(answers(&router.policy(&tasks()[0]).unwrap(), &table), first);
}

/// A router restored from its parts is the same, which files rely on.
#[test]
fn router_is_restored_from_its_parts() {
    let rows = Rows::draw(300);
    let table = rows.table(&(0..300).collect::<Vec<_>>());
    for partition in PARTITIONS {
        let router = Router::calibrate(&table, &partition.parse().unwrap()).unwrap().recalibrated();
        let again = Router::from_parts(
            router.partition().clone(),
            (**router.cells()).clone(),
            (**router.backoff()).clone(),
            router.is_recalibrated(),
            router.rows(),
        );
        assert!(again.unwrap() == router, "{partition}");
    }
}
