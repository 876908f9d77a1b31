//! Policy files: a loaded policy decides any query with finite costs, takes other prices, and round-trips.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::Policy;
use pointsman_fuzz::recipe::served;
use pointsman_fuzz::seal::Parts;
use pointsman_fuzz::{check_message, good_policies, prepare};
use pointsman_table::{parse_policy, policy_bytes};

/// Valid policies.
static BASES: LazyLock<Vec<Parts>> =
    LazyLock::new(|| good_policies().iter().map(|bytes| Parts::of(bytes).expect("what was just written")).collect());

fuzz_target!(|data: &[u8]| {
    prepare();
    let Some(file) = served(data, &BASES) else { return };
    match parse_policy(&file) {
        Ok(policy) => check(&policy),
        Err(error) => check_message(&error.to_string()),
    }
});

fn check(policy: &Policy) {
    let bytes = policy_bytes(policy).expect("a policy that was read can be written");
    let again = parse_policy(&bytes).expect("what was written can be read");
    assert_eq!(
        policy_bytes(&again).expect("it was written before"),
        bytes,
        "a policy changed on its way through a file"
    );
    decide(policy);
    let free = policy.task().clone().without_limit();
    match policy.reprice(&free.without_abstaining()) {
        Ok(repriced) => decide(&repriced),
        Err(error) => check_message(&error.to_string()),
    }
}

fn decide(policy: &Policy) {
    let classes = policy.classes().len();
    let mut sure = vec![0.0; classes];
    sure[classes - 1] = 1.0;
    for prediction in [vec![1.0 / classes as f64; classes], sure] {
        for value in [-1e300, 0.0, 7.0, 1e300] {
            let features = vec![value; policy.cells().features().len()];
            let decision = policy.decide_with(&prediction, &features).expect("a good row is decided");
            assert!(decision.rows() > 0 && decision.margin() >= 0.0);
            for cost in decision.costs().iter().chain(decision.costs_high()) {
                assert!(cost.is_finite(), "a cost of {cost}");
            }
            let _ = (decision.action().to_string(), decision.level(), decision.support(), decision.served());
        }
    }
}
