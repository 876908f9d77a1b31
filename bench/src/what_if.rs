//! Logged queries under another task, against only deciding them.

use std::error::Error;
use std::hint::black_box;

use pointsman::monitor::WhatIf;
use pointsman::{Loss, Oracle, Partition, Router, Task};

use crate::data;
use crate::lines::Lines;
use crate::timing::race;

/// The word that runs this part alone.
pub(crate) const ALONE: &str = "what-if";

const ROWS: usize = 1_000_000;
const CLASSES: usize = 10;

/// A log of a million decisions, once it is read.
pub(crate) fn run(lines: &mut Lines) -> Result<(), Box<dyn Error>> {
    let queries = data::table(ROWS, CLASSES, 6);
    let calibration = data::table(10_000, CLASSES, 1);
    for (partition, repeats) in [(Partition::top_class(10), 11), (Partition::forest(200), 3)] {
        let router = Router::calibrate(&calibration, &partition)?;
        let task = |price| Task::new(Loss::brier()).route("expert", Oracle::bayes(), price)?.abstain(0.3);
        let (logged, policy) = (router.policy(&task(0.05)?)?, router.policy(&task(0.02)?)?);
        let before = logged.decide_batch(&queries)?;
        let before: Vec<Option<usize>> = (0..ROWS).map(|row| logged.row(&before, row).code()).collect();
        let actions = logged.task().action_names();
        let (subject, peer) = race(
            repeats,
            || -> Result<(), Box<dyn Error>> {
                let mut what_if = WhatIf::new(&policy);
                what_if.add(&policy, &policy.decide_batch(black_box(&queries))?, &actions, &before);
                black_box(what_if.summary(&policy));
                Ok(())
            },
            || {
                black_box(policy.decide_batch(black_box(&queries))?);
                Ok(())
            },
        )?;
        lines.add(
            format!("what if of {ROWS} logged decisions × {CLASSES}, {partition} / decide them"),
            format!("{:.0} ms", subject * 1e3),
            format!("{:.0} ms", peer * 1e3),
            format!("{:.2} times the peer's time (bar: 1 s)", subject / peer),
        );
    }
    Ok(())
}
