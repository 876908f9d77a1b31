//! From files to decisions: calibrate on one table, decide another, write what to do.
//!
//! `cargo run -p pointsman-table --example decide_table -- calibration.csv queries.csv`

use std::error::Error;

use pointsman::{Loss, Oracle, Router, Task};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [calibration, queries] = arguments.as_slice() else {
        return Err("give two tables: one with votes, one of queries".into());
    };
    let router = Router::builder().fit(&pointsman_table::read(calibration)?)?;
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.30)?;
    let policy = router.policy(&task)?;
    let table = pointsman_table::read(queries)?;
    let decisions = policy.decide_batch(&table)?;
    for row in 0..decisions.len() {
        let decision = policy.row(&decisions, row);
        println!("{row}\t{}\t{}", decision.action(), decision.reason());
    }
    Ok(())
}
