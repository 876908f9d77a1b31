//! The library's speed on small batches, which the benchmark of the service is compared with.

use std::error::Error;
use std::hint::black_box;

use pointsman::{Loss, Oracle, Task};

use crate::timing::median;

/// The argument that makes this program print the rows per second of a router on batches of a table.
pub(crate) const BATCHES: &str = "batches";

const ROWS_PER_BATCH: usize = 1_000;
const REPEATS: usize = 501;

/// Decides the first rows of a table as one batch, again and again, and prints the rows per second.
pub(crate) fn run(router: &str, table: &str) -> Result<(), Box<dyn Error>> {
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.08)?.abstain(0.47)?;
    let policy = pointsman_table::load_router(router)?.policy(&task)?;
    let table = pointsman_table::read(table)?.keep_rows(|row| row < ROWS_PER_BATCH);
    if table.rows() < ROWS_PER_BATCH {
        return Err(format!("a batch has {ROWS_PER_BATCH} rows, the table only {}", table.rows()).into());
    }
    let seconds = median(REPEATS, || policy.decide_batch(black_box(&table)).map(|batch| drop(black_box(batch))))?;
    println!("{}", ROWS_PER_BATCH as f64 / seconds);
    Ok(())
}
