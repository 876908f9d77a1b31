//! A business decision as a loss: what each act costs under each true class, and two oracles of different quality.
//!
//! `cargo run -p pointsman --example cost_matrix`

use pointsman::oracle::Aggregate;
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

fn main() -> Result<(), pointsman::Error> {
    let probs = vec![0.9, 0.1, 0.7, 0.3, 0.6, 0.4, 0.4, 0.6, 0.3, 0.7, 0.1, 0.9];
    let votes = vec![3, 0, 2, 1, 1, 2, 1, 2, 1, 2, 0, 3];
    let table = Table::new(["fine", "broken"], probs)?.with_votes(votes)?;
    let router = Router::calibrate(&table, &Partition::confidence(2))?;

    // Shipping a broken part costs 10, checking a fine one costs 1.
    let loss = Loss::matrix(["ship", "check"], vec![vec![0.0, 10.0], vec![1.0, 1.0]])?;
    let panel = Oracle::panel(3, Aggregate::Plurality)?;
    let task = Task::new(loss).route("panel", panel, 0.6)?.route("laboratory", Oracle::bayes(), 2.0)?;
    let policy = router.policy(&task)?;
    for p in [0.05, 0.35, 0.65, 0.95] {
        let decision = policy.decide(&[1.0 - p, p])?;
        println!("broken with probability {p:.2}: {} ({:?})", decision.action(), decision.reason());
    }
    Ok(())
}
