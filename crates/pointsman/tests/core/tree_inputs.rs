//! Inputs of learned partitions: few rows, missing values, weights, and tables that cannot be learned from.

use pointsman::partition::forest::{Node, Trees};
use pointsman::{Estimator, Oracle, Partition, Router, Table};

use crate::forest::{message, task, world};
use crate::world::{Rng, close};

/// The leaf size of a single tree is chosen as for the first tree of many.
#[test]
fn leaf_size_of_a_single_tree_is_chosen() {
    let table = world(1_000, 5, 25);
    let nodes = |trees: usize| -> Vec<Node> {
        let router = Router::calibrate(&table, &Partition::forest(trees)).unwrap();
        let pointsman::partition::Axis::Forest { forest, .. } = &router.cells().axes()[0] else { panic!("a forest") };
        forest.trees().nodes().collect()
    };
    // As many trees as choose the leaf size.
    let (one, many) = (nodes(1), nodes(20));
    assert_eq!(one, many[..one.len()]);
    assert!(one.iter().filter(|node| **node == Node::Leaf).count() > 4, "leaves of 250 rows were not chosen");
}

/// Leaves of 60 rows and more cannot divide so few rows: smaller sizes are tried.
#[test]
fn few_rows_are_divided() {
    let table = world(150, 5, 26);
    let router = Router::calibrate(&table, &Partition::forest(20)).unwrap();
    let policy = router.policy(&task()).unwrap();
    let total = |x: f64| policy.decide_with(&[0.6, 0.4], &[x, 0.5]).unwrap().total();
    assert!(total(0.9) > total(0.5) + 0.3, "{} and {}", total(0.9), total(0.5));
}

#[test]
fn trees_accept_missing_values_and_edges_do_not() {
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
    // Later queries with missing values are refused by routers with edges as well.
    let whole = Router::calibrate(&table, &"features:x_x=4".parse().unwrap()).unwrap();
    let policy = whole.policy(&task()).unwrap();
    let holes = Table::new(["no", "yes"], vec![0.5, 0.5]).unwrap().with_features(["x"], vec![f64::NAN]).unwrap();
    assert!(message(policy.decide_batch(&holes)).contains("row 0, column x_x"));
    // A feature that is always missing or constant is never used.
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
fn informative_missing_values_are_used() {
    // Labels agree if z is missing and disagree otherwise.
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
fn invalid_training_tables_are_refused_with_advice() {
    let single = world(300, 1, 14);
    for partition in [Partition::tree(), Partition::honest_forest(5), Partition::forest(5)] {
        let error = message(Router::calibrate(&single, &partition));
        assert!(error.contains("two labels") && error.contains("top-class"), "{error}");
    }
    // The rows of the table count, not the half that grows the tree.
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
    // An honest forest supports what a forest does not.
    let centroids = router.clone().recalibrated();
    for error in
        [message(router.policy(&many)), message(centroids.policy(&task())), message(router.certificate(&task(), 0.95))]
    {
        assert!(error.contains("calibrate TABLE --certifiable"), "{error}");
    }
}

#[test]
fn trees_and_rows_restore_the_router() {
    let table = world(300, 3, 16);
    let router = Router::builder().partition(Partition::forest(6)).seed(3).fit(&table).unwrap();
    let pointsman::partition::Axis::Forest { forest, .. } = &router.cells().axes()[0] else { panic!("a forest") };
    let again = |trees: Trees| {
        let backoff = router.backoff().as_ref().clone();
        Router::from_forest(router.partition().clone(), trees, forest.bootstrap(), backoff, router.rows())
    };
    assert_eq!(again(forest.trees().clone()).unwrap(), router);
    // Trees that do not fit: too few, with other inputs, or with a leaf that no row reaches.
    let leaf = |inputs: usize, trees: u32| {
        Trees::new(inputs, (0..trees).collect(), &vec![Node::Leaf; trees as usize]).unwrap()
    };
    assert!(again(leaf(5, 5)).is_err() && again(leaf(6, 6)).is_err() && again(leaf(5, 6)).is_ok());
    let far = Node::Split { input: 3, threshold: 1e300, left: 1, missing_right: false };
    let nodes: Vec<Node> = [far, Node::Leaf, Node::Leaf].into_iter().chain([Node::Leaf; 5]).collect();
    assert!(message(again(Trees::new(5, vec![0, 3, 4, 5, 6, 7], &nodes).unwrap())).contains("no rows"));
}

#[test]
fn weight_two_equals_a_repeated_row() {
    let table = world(1_200, 3, 19);
    let weights = (0..1_200).map(|i| if i % 3 == 0 { 5.0 } else { 0.5 }).collect();
    let heavy = table.clone().with_weights(weights).unwrap();
    for partition in [Partition::tree(), Partition::honest_forest(5), Partition::forest(5)] {
        let (a, b) = (Router::calibrate(&table, &partition).unwrap(), Router::calibrate(&heavy, &partition).unwrap());
        assert!(a.cells() != b.cells() && b.policy(&task()).is_ok(), "{partition}");
    }
}

/// The comparison of `auto` is weighted, like growing.
#[test]
fn rows_of_negligible_weight_do_not_affect_the_choice() {
    let mut rng = Rng::new(26);
    let heavy = world(600, 5, 27);
    // As many other rows in which the feature is uninformative.
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
