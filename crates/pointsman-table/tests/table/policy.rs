//! The policy file: it decides as the router does, has no calibration rows, and anything but a policy is refused.

use std::fs;

use pointsman::oracle::Aggregate;
use pointsman::{Estimator, Loss, Oracle, Policy, Router, Task};
use pointsman_table::{
    RouterOrPolicy, load_policy, load_router_or_policy, parse_policy, parse_router, parse_router_or_policy, parse_task,
    policy_bytes, router_bytes, save_policy, task_text,
};
use safetensors::tensor::SafeTensors;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::router::table;
use crate::support::Folder;

const PARTITIONS: [&str; 9] = [
    "pooled",
    "top-class:5",
    "confidence:7",
    "level-sets",
    "features:x_age=3,x_length=2",
    "top-class:3*features:x_length=2",
    "tree",
    "honest-forest:5",
    "forest:5",
];

fn tasks() -> Vec<Task> {
    let matrix =
        Loss::matrix(["say \"a\"", "b\\c\u{7f}"], vec![vec![0.0, 1.0 / 3.0, 3.0], vec![1e-7, 0.5, 0.0]]).unwrap();
    let named = matrix.clone().with_classes(["c", "a", "b"]).unwrap();
    let panel = Oracle::panel(3, Aggregate::Laplace(1.0 / 3.0)).unwrap();
    let task = |loss: Loss| Task::new(loss).route("expert", Oracle::bayes(), 0.1 / 3.0).unwrap();
    vec![
        task(Loss::brier()).route("gpt", Oracle::measured(), 0.02).unwrap().abstain(1.0 / 7.0).unwrap(),
        task(Loss::cross_entropy()).route("jury", panel, 0.01).unwrap(),
        task(Loss::asymmetric(1.0 / 3.0).unwrap()).estimator(Estimator::Shrink),
        task(matrix).budget(0.1 / 3.0).unwrap(),
        task(named).route("gpt", Oracle::measured(), 0.0).unwrap(),
        task(Loss::zero_one()).abstain(0.3).unwrap().target_loss(0.5).unwrap(),
    ]
}

fn router(partition: &str) -> Router {
    Router::calibrate(&table(|i| i), &partition.parse().unwrap()).unwrap()
}

fn policy(partition: &str) -> Policy {
    router(partition).policy(&tasks()[0]).unwrap()
}

/// All that a policy says on the rows of a table, costs as bits.
fn said(policy: &Policy) -> Vec<String> {
    let queries = table(|i| i * 7 + 3);
    let decisions = policy.decide_batch(&queries).unwrap();
    let bits = |costs: &[f64]| costs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let row = |row: usize| {
        let decision = policy.row(&decisions, row);
        let costs = (bits(decision.costs()), bits(decision.costs_high()), decision.margin().to_bits());
        format!("{} {costs:?} {} {:?}", decision.action(), decision.cell(), (decision.reason(), decision.served()))
    };
    (0..queries.rows()).map(row).collect()
}

#[test]
fn policies_read_back_and_decide_bit_for_bit() {
    let mut read = 0;
    for partition in PARTITIONS {
        let variants = if partition.starts_with("forest") { 1 } else { 2 };
        for router in [router(partition), router(partition).recalibrated()].into_iter().take(variants) {
            for task in tasks() {
                // Some targets are out of reach.
                let Ok(policy) = router.policy(&task) else { continue };
                let bytes = policy_bytes(&policy).unwrap();
                let back = parse_policy(&bytes).unwrap_or_else(|error| panic!("{partition}, {task:?}: {error}"));
                assert_eq!(said(&back), said(&policy), "{partition}, {task:?}");
                assert_eq!(back.task(), policy.task(), "{partition}");
                assert_eq!(format!("{:?}", back.promise()), format!("{:?}", policy.promise()), "{partition}");
                assert_eq!(format!("{:?}", back.surcharge()), format!("{:?}", policy.surcharge()), "{partition}");
                assert_eq!(policy_bytes(&back).unwrap(), bytes, "{partition}, {task:?}");
                read += 1;
            }
        }
    }
    assert!(read > 80, "{read} policies");
}

#[test]
fn policy_files_have_the_hash_of_the_router_and_no_rows() {
    for partition in ["top-class:5", "forest:5"] {
        let (router, policy) = (router(partition), policy(partition));
        let bytes = policy_bytes(&policy).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        for name in ["probs", "votes", "weights", "features", "oracle.gpt"] {
            assert!(file.tensor(name).is_err(), "{name}");
        }
        let hash: String = Sha256::digest(router_bytes(&router).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        let back = parse_policy(&bytes).unwrap();
        assert_eq!(back.origin(), Some(hash.as_str()));
        let repriced = back.reprice(&back.task().clone().reprice_route("gpt", 0.5).unwrap()).unwrap();
        let again = parse_policy(&policy_bytes(&repriced).unwrap()).unwrap();
        assert_eq!((again.origin(), again.promise()), (Some(hash.as_str()), None));
        assert_eq!(again.calibration_rows(), router.rows().rows());
    }
}

#[test]
fn files_are_routers_or_policies_by_their_content() {
    let folder = Folder::new();
    save_policy(folder.path("p.safetensors"), &policy("tree")).unwrap();
    fs::write(folder.path("r.safetensors"), router_bytes(&router("tree")).unwrap()).unwrap();
    assert!(matches!(load_router_or_policy(folder.path("p.safetensors")), Ok(RouterOrPolicy::Policy(_))));
    assert!(matches!(load_router_or_policy(folder.path("r.safetensors")), Ok(RouterOrPolicy::Router(_))));
    let error = load_policy(folder.path("r.safetensors")).unwrap_err().to_string();
    assert!(error.contains("it is a router") && error.contains("compile the router again"), "{error}");
    let error = parse_router(&fs::read(folder.path("p.safetensors")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("it is a policy") && error.contains("calibrate again"), "{error}");
}

#[test]
fn policy_files_cut_short_or_made_longer_are_refused() {
    let bytes = policy_bytes(&policy("forest:5")).unwrap();
    for length in (0..bytes.len()).step_by(997) {
        assert!(parse_policy(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    for length in [100, bytes.len() - 1] {
        let error = parse_router_or_policy(&bytes[..length]).unwrap_err().to_string();
        assert!(error.contains("not a policy file") && error.contains("compile the router again"), "{length}: {error}");
    }
    assert!(parse_policy(&[bytes.as_slice(), b"more"].concat()).is_err());
}

#[test]
fn any_flipped_bit_of_a_policy_is_refused() {
    let policy = policy("top-class:2");
    let bytes = policy_bytes(&policy).unwrap();
    let mut refused = 0;
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        match parse_policy(&flipped) {
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            // Only bits without meaning may differ, such as those of the header's padding.
            Ok(other) => assert_eq!(said(&other), said(&policy), "byte {position}"),
        }
    }
    assert!(refused + 16 > bytes.len(), "{refused} of {} flips refused", bytes.len());
}

#[test]
fn policies_of_a_future_version_are_refused_by_number() {
    let bytes = policy_bytes(&policy("top-class:2")).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let mut header: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["pointsman-policy"]).unwrap();
    header["version"] = 2.into();
    header["colour"] = "red".into();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let metadata = [("pointsman-policy".to_owned(), header.to_string())].into();
    let future = safetensors::serialize(file.tensors(), Some(metadata)).unwrap();
    let error = parse_policy(&future).unwrap_err().to_string();
    assert!(error.contains("policy format 2, this program reads formats 1 to 1"), "{error}");
}

#[test]
fn task_text_reads_back_exactly() {
    for task in tasks() {
        let text = task_text(&task);
        assert_eq!(parse_task(&text).unwrap(), task, "{text}");
    }
}
