//! Cost matrices with class names: the order of their columns has no effect, and other classes are refused.

use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, table};

fn world(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let truth = rng.dist(3);
        let noise = rng.dist(3);
        probs.push((0..3).map(|class| 0.6 * truth[class] + 0.4 * noise[class]).collect());
        votes.push(rng.votes(&truth, 4));
    }
    table(3, &probs, &votes)
}

const COST: [[f64; 3]; 2] = [[0.0, 3.0, 1.0], [1.0, 0.0, 2.0]];

/// The matrix with its columns in this order, with their names.
fn named(order: [usize; 3]) -> Loss {
    let cost = COST.iter().map(|row| order.map(|class| row[class]).to_vec()).collect();
    Loss::matrix(["ship", "hold"], cost).unwrap().with_classes(order.map(|class| CLASS_NAMES[class])).unwrap()
}

fn task(loss: Loss) -> Task {
    Task::new(loss).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.6).unwrap()
}

#[test]
fn any_order_of_named_columns_gives_the_same_policy() {
    let (calibration, queries) = (world(300, 1), world(200, 2));
    let router = Router::calibrate(&calibration, &Partition::top_class(3)).unwrap();
    let unnamed = Loss::matrix(["ship", "hold"], COST.map(|row| row.to_vec()).to_vec()).unwrap();
    let wanted = router.policy(&task(unnamed)).unwrap();
    let decided = wanted.decide_batch(&queries).unwrap();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let task = task(named(order));
        let policy = router.policy(&task).unwrap();
        let decisions = policy.decide_batch(&queries).unwrap();
        for row in 0..queries.rows() {
            let (ours, theirs) = (policy.row(&decisions, row), wanted.row(&decided, row));
            assert_eq!((ours.action(), ours.costs()), (theirs.action(), theirs.costs()), "{order:?}");
        }
        // Certificates, plans, other prices and the diagnosis bind the task's matrix to the classes.
        router.certificate(&task, 0.9).unwrap().judge(&policy).unwrap();
        router.plan(&task, 0.9).unwrap();
        policy.reprice(&task.clone().abstain(0.4).unwrap()).unwrap();
        let costs = pointsman::diagnose::diagnose(&calibration, &task, &Partition::top_class(3), || ())
            .unwrap()
            .task
            .cost_matrix;
        let costs = costs.unwrap();
        assert_eq!((costs.cost, costs.classes_named), (COST.map(|row| row.to_vec()).to_vec(), true));
    }
}

#[test]
fn other_classes_are_refused_by_name() {
    let router = Router::calibrate(&world(60, 1), &Partition::top_class(2)).unwrap();
    let cost = COST.map(|row| row.to_vec()).to_vec();
    let loss = Loss::matrix(["ship", "hold"], cost).unwrap().with_classes(["ant", "bee", "cow"]).unwrap();
    let reason = router.policy(&task(loss)).unwrap_err().to_string();
    assert!(reason.contains("only the matrix has cow, only the predictions have cat"), "{reason}");
    let loss = Loss::matrix(["ship"], vec![vec![0.0, 1.0]]).unwrap().with_classes(["ant", "bee"]).unwrap();
    let reason = router.policy(&task(loss)).unwrap_err().to_string();
    assert!(reason.contains("only the matrix has none, only the predictions have cat"), "{reason}");
}

#[test]
fn only_matrices_can_name_their_classes() {
    assert!(Loss::brier().with_classes(["a", "b"]).is_err());
    assert!(Loss::fn_fp(1.0, 3.0).unwrap().with_classes(["a", "b"]).is_err());
    let loss = || Loss::matrix(["x"], vec![vec![0.0, 1.0]]).unwrap();
    for classes in [vec!["a"], vec!["a", "a"], vec!["a", ""], vec!["a", "b", "c"]] {
        assert!(loss().with_classes(classes.clone()).is_err(), "{classes:?}");
    }
}
