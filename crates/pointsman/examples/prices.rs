//! One router, several prices: calibrated once, asked again and again.
//!
//! `cargo run -p pointsman --example prices`

use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

fn main() -> Result<(), pointsman::Error> {
    // Predictions of a spam filter, and how five people labelled the same messages.
    let probs = vec![0.95, 0.05, 0.90, 0.10, 0.60, 0.40, 0.55, 0.45, 0.20, 0.80, 0.10, 0.90];
    let votes = vec![5, 0, 4, 1, 1, 4, 3, 2, 1, 4, 0, 5];
    let table = Table::new(["ham", "spam"], probs)?.with_votes(votes)?;
    let router = Router::calibrate(&table, &Partition::confidence(2))?;

    for price in [0.02, 0.10, 0.30] {
        let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), price)?.abstain(0.4)?;
        let policy = router.policy(&task)?;
        let decision = policy.decide(&[0.58, 0.42])?;
        println!("expert at {price:.2}: {}, costs {:.3?}", decision.action(), decision.costs());
    }
    Ok(())
}
