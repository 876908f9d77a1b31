//! The decision path does not allocate, and cells need no more memory than their edges.

use pointsman::partition::forest::{Node, Trees};
use pointsman::partition::{Axis, Edges};
use pointsman::{CellId, Cells, Loss, Oracle, Partition, Router, Table, Task};

#[test]
fn decisions_do_not_allocate() {
    let classes = ["a", "b", "c"];
    let rows: Vec<f64> = (0..300_u32)
        .flat_map(|i| {
            let top = 0.4 + f64::from(i % 100) * 0.006;
            let mut row = [(1.0 - top) / 2.0; 3];
            // The class c has no calibration rows, so its queries fall back.
            row[(i % 2) as usize] = top;
            row
        })
        .collect();
    let votes = (0..300_u32).flat_map(|i| [1 + i % 3, 1, i % 2]).collect();
    let table = Table::new(classes, rows).unwrap().with_votes(votes).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(5)).unwrap();
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.5).unwrap();
    let policy = router.policy(&task).unwrap();
    let mut seen = 0;
    let counted = allocation_counter::measure(|| {
        for query in table.predictions().chunks_exact(3).chain([[0.1, 0.1, 0.8].as_slice()]) {
            if let Ok(decision) = policy.decide(query) {
                seen += decision.costs().len() + decision.rows() + usize::from(decision.margin() > 0.1);
            }
        }
    });
    assert!(seen > 0);
    assert_eq!(counted.count_total, 0, "allocations on the decision path");
}

#[test]
fn decisions_by_forests_do_not_allocate() {
    // Few inputs, whose codes fit on the stack, and more inputs than fit there.
    for features in [1, 80] {
        let n = 200_u32;
        let rows = (0..n).flat_map(|i| [0.5 + f64::from(i % 50) * 0.01, 0.5 - f64::from(i % 50) * 0.01]).collect();
        let votes = (0..n).flat_map(|i| [1 + i % 3, 2]).collect();
        let names = (0..features).map(|i| i.to_string());
        let values: Vec<f64> = (0..n * features).map(|i| f64::from(i * 37 % 101)).collect();
        let table = Table::new(["a", "b"], rows).unwrap().with_votes(votes).unwrap();
        let table = table.with_features(names, values).unwrap();
        let asked = [
            (Partition::tree(), Loss::brier()),
            (Partition::honest_forest(20), Loss::brier()),
            (Partition::forest(20), Loss::brier()),
            (Partition::forest(20), Loss::zero_one()),
        ];
        for (partition, loss) in asked {
            let router = Router::calibrate(&table, &partition).unwrap();
            let task = Task::new(loss).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.5).unwrap();
            let policy = router.policy(&task).unwrap();
            let mut seen = 0;
            let counted = allocation_counter::measure(|| {
                for row in 0..table.rows() {
                    if let Ok(decision) = policy.decide_with(&table.prediction(row), table.features(row)) {
                        seen += decision.costs().len() + decision.rows() + usize::from(decision.margin() > 0.1);
                    }
                }
            });
            assert!(seen > 0);
            assert_eq!(counted.count_total, 0, "allocations on the decision path of {partition}");
        }
    }
}

/// Where hardly any item has two labels, costs are bounded, and routes are compared by the form of their loss.
#[test]
fn deciding_between_bounds_allocates_nothing() {
    let n = 600_u32;
    let rows = (0..n).flat_map(|i| [0.5 + f64::from(i % 50) * 0.01, 0.5 - f64::from(i % 50) * 0.01]).collect();
    let votes = (0..n).flat_map(|i| [u32::from(i % 3 > 0) + u32::from(i % 40 == 0), u32::from(i % 3 == 0)]).collect();
    let table = Table::new(["a", "b"], rows).unwrap().with_votes(votes).unwrap();
    let panel = Oracle::panel(3, pointsman::oracle::Aggregate::Plurality).unwrap();
    let task = Task::new(Loss::asymmetric(3.0).unwrap()).route("expert", Oracle::bayes(), 0.1).unwrap();
    let task = task.route("panel", panel, 0.05).unwrap();
    let policy = Router::calibrate(&table, &Partition::confidence(5)).unwrap().policy(&task).unwrap();
    let mut seen = 0;
    let counted = allocation_counter::measure(|| {
        for row in 0..table.rows() {
            let decision = policy.decide(&table.prediction(row));
            seen += usize::from(decision.is_ok_and(|decision| !decision.is_known()));
        }
    });
    assert!(seen > 0);
    assert_eq!(counted.count_total, 0, "allocations on the decision path");
}

/// A file of some megabytes may claim 65,536 classes and a million confidence edges; the edges are stored once, not once per class.
#[test]
fn confidence_edges_are_not_copied_for_every_class() {
    let (classes, edges) = (4_000, 2_000_u32);
    let values: Vec<f64> = (0..edges).map(|i| f64::from(i) / f64::from(edges)).collect();
    let axes = vec![Axis::Confidence { edges: Edges::of_confidence(values).unwrap() }];
    let mut count = 0;
    let counted = allocation_counter::measure(|| count = Cells::new(classes, axes, vec![]).unwrap().count());
    assert_eq!(count, 2_001);
    assert!(counted.bytes_total < 1 << 20, "{} bytes for {edges} edges", counted.bytes_total);
}

/// A report names all cells, so the paths to the leaves are computed once, not once per cell.
#[test]
fn naming_a_leaf_does_not_visit_all_nodes() {
    let splits = 2_000_u32;
    let split = |i: u32| Node::Split { input: 0, threshold: f64::from(i), left: 2 * i + 1, missing_right: false };
    let nodes: Vec<Node> = (0..splits).map(split).chain((0..=splits).map(|_| Node::Leaf)).collect();
    let trees = Trees::new(3, vec![0], &nodes).unwrap();
    let cells = Cells::new(2, vec![Axis::Tree { trees }], vec![]).unwrap();
    let classes = ["a".to_owned(), "b".to_owned()];
    let mut name = String::new();
    let counted = allocation_counter::measure(|| name = cells.name(CellId(splits), &classes));
    assert!(name.starts_with("prob_a") && counted.bytes_total < 2_000, "{} bytes for {name:?}", counted.bytes_total);
}
