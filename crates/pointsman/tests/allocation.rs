//! The decision path does not allocate.

use pointsman::{Loss, Oracle, Partition, Router, Table, Task, Verdict};

#[test]
fn deciding_allocates_nothing() {
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
    let single: Vec<f32> = table.predictions().iter().map(|&x| x as f32).collect();
    let mut verdicts = vec![Verdict::default(); table.rows()];
    let (mut seen, mut batch) = (0, Ok(()));
    let counted = allocation_counter::measure(|| {
        for query in table.predictions().chunks_exact(3).chain([[0.1, 0.1, 0.8].as_slice()]) {
            if let Ok(decision) = policy.decide(query) {
                seen += decision.costs().len() + decision.rows() + usize::from(decision.margin() > 0.1);
            }
        }
        batch = policy.decide_rows(&single, &[], &mut verdicts);
    });
    assert!(seen > 0 && batch.is_ok());
    assert_eq!(counted.count_total, 0, "allocations on the decision path");
}
