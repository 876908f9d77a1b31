//! Honest trees: rows of the other half, shrinkage of leaves, and bounds of single leaves.

use pointsman::oracle::Aggregate;
use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::partition::forest::{Node, Trees};
use pointsman::{CellId, Cells, Loss, Oracle, Partition, Router, Table, Task};

use crate::forest::{reordered, task, world};
use crate::world::{Rng, close};

#[test]
fn honest_trees_keep_the_other_half() {
    let table = world(1_001, 3, 10);
    let router = Router::calibrate(&table, &Partition::tree()).unwrap();
    let rows = router.rows().rows();
    assert_eq!(rows, 501, "rows of the second half");
    assert!(router.cells().count() >= 3, "{} leaves", router.cells().count());
    for cell in 0..router.cells().count() as u32 {
        // At least SPARSE_BELOW_ROWS rows of the first half lead to each leaf, so hardly any leaf has half as many rows of the second.
        assert!(router.mixture(CellId(cell)).len() >= SPARSE_BELOW_ROWS / 2);
        assert!(router.cells().name(CellId(cell), router.classes()).contains("x_x"), "the way to a leaf names x");
    }
    // Leaves that differ are hardly shrunk; every estimate lies between its own and that of all rows.
    let policy = router.policy(&task()).unwrap();
    let totals: Vec<f64> =
        (0..router.cells().count() as u32).map(|c| policy.cell(CellId(c)).unwrap().total()).collect();
    let (low, high) =
        (totals.iter().copied().fold(f64::MAX, f64::min), totals.iter().copied().fold(f64::MIN, f64::max));
    assert!(low < 0.5 && high > 0.6, "{totals:?}");
}

#[test]
fn leaves_that_differ_by_chance_are_shrunk_together() {
    // One tree grown on noise: its leaves do not differ.
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

/// The rows on which the tree was grown are not kept, so a leaf may be empty: its queries fall back, and its certificate is trivial.
#[test]
fn queries_of_empty_leaves_fall_back() {
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

/// A leaf with one label per item borrows the irreducible loss; the estimates of the other leaves stay as they are.
#[test]
fn identified_leaves_stay_identified_beside_others() {
    let mut rng = Rng::new(12);
    let n = 600;
    let mut votes = Vec::new();
    for i in 0..n {
        // Items also differ within leaves; otherwise there would be nothing to shrink.
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
    let borrowed = beside.decide_with(&[0.6, 0.4], &[500.0]).unwrap();
    assert!(borrowed.irreducible().is_some_and(|loss| (0.2..0.5).contains(&loss)));
    assert_eq!(borrowed.costs(), borrowed.costs_high());
}

/// The measured loss of an oracle differs between leaves, independently of the irreducible loss.
#[test]
fn measured_oracles_are_shrunk_by_their_own_variance() {
    let mut rng = Rng::new(23);
    let n = 1_200;
    let x: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
    // Labels are equally uncertain everywhere; the weak model and the oracle are wrong on opposite sides.
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
