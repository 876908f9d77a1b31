//! Parts of a calibration: a loaded part round-trips, accepts rows, merges and builds a router, or reports an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::router::Partial;
use pointsman::{CellId, Loss, Oracle, Router, Task};
use pointsman_fuzz::recipe::served;
use pointsman_fuzz::seal::Parts;
use pointsman_fuzz::{check_message, good_parts, prepare};
use pointsman_table::{parse_partial, partial_bytes};

/// Valid parts, with and without a cap, and one without rows.
static BASES: LazyLock<Vec<Parts>> =
    LazyLock::new(|| good_parts().iter().map(|bytes| Parts::of(bytes).expect("what was just written")).collect());

fuzz_target!(|data: &[u8]| {
    prepare();
    let Some(file) = served(data, &BASES) else { return };
    match parse_partial(&file) {
        Ok(part) => check(&part),
        Err(error) => check_message(&error.to_string()),
    }
});

fn check(part: &Partial) {
    let bytes = partial_bytes(part).expect("a part that was read can be written");
    let again = parse_partial(&bytes).expect("what was written can be read");
    assert_eq!(
        partial_bytes(&again).expect("it was written before"),
        bytes,
        "a part changed on its way through a file"
    );
    within_cap(part);
    // All rows at once, or the rows twice: either gives a valid part.
    let mut twice = part.clone();
    match twice.merge(&again) {
        Ok(()) => {
            within_cap(&twice);
            assert!(twice.kept().rows() >= part.kept().rows());
        }
        Err(error) => check_message(&error.to_string()),
    }
    let mut more = part.clone();
    let rows = part.kept().clone();
    let ids: Vec<u64> = (0..rows.rows() as u64).collect();
    if let Err(error) = more.add_with_ids(&rows, &ids) {
        check_message(&error.to_string());
    }
    within_cap(&more);
    for part in [part, &twice, &more] {
        match part.finish() {
            Ok(router) => decide(&router),
            Err(error) => check_message(&error.to_string()),
        }
    }
}

/// Asserts that no cell keeps more rows than the cap allows.
fn within_cap(part: &Partial) {
    let Some(cap) = part.cap() else { return };
    if part.kept().rows() == 0 {
        return;
    }
    let Ok(router) = part.finish() else { return };
    for cell in (0..router.cells().count() as u32).map(CellId) {
        assert!(router.mixture(cell).len() <= cap.rows, "a cell above its cap of {}", cap.rows);
    }
}

fn decide(router: &Router) {
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).and_then(|task| task.abstain(0.3));
    let policy = router.policy(&task.expect("a task")).expect("any router knows the Brier loss");
    let rows = router.rows();
    for row in 0..rows.rows().min(20) {
        let decision = policy.decide_with(&*rows.prediction(row), rows.features(row)).expect("a good row is decided");
        assert!(decision.costs().iter().all(|cost| cost.is_finite()), "{:?}", decision.costs());
    }
}
