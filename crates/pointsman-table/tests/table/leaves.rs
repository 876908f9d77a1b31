//! The stored leaves of a forest: read back from memory and from files, derived if a file has none, and checked.

use std::fs;

use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
use pointsman_table::{load_router, parse_router, router_bytes, save_router};
use pointsman_testing::Rng;
use safetensors::tensor::{SafeTensors, TensorView};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::Folder;

/// The arrays that version 5 added.
const LEAVES: [&str; 9] = [
    "axis.0.edges",
    "axis.0.rows",
    "leaves.error_shares",
    "leaves.scores",
    "leaves.vote_pairs",
    "leaves.votes",
    "leaves.weights",
    "rows.leaves",
    "rows.ranks",
];

/// Three labels per item, which depend on a feature.
fn table(rows: usize) -> Table {
    let mut rng = Rng::new(3);
    let (mut probs, mut votes, mut features) = (vec![], vec![], vec![]);
    for _ in 0..rows {
        let (f, x) = (0.2 + 0.6 * rng.uniform(), rng.uniform());
        probs.extend([f, 1.0 - f]);
        votes.extend(rng.votes(&[x, 1.0 - x], 3));
        features.extend([x, rng.uniform()]);
    }
    let table = Table::new(["no", "yes"], probs).and_then(|table| table.with_votes(votes));
    table.and_then(|table| table.with_features(["x", "z"], features)).unwrap()
}

fn forest(rows: usize, trees: usize) -> Router {
    Router::calibrate(&table(rows), &Partition::forest(trees)).unwrap()
}

/// The same router without the arrays of version 5, as older programs wrote it.
fn as_version_2(bytes: &[u8]) -> Vec<u8> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let text = &metadata.metadata().as_ref().unwrap()["pointsman"];
    let header: Value = serde_json::from_str(text).unwrap();
    let [version, hash] = ["version", "sha256"].map(|key| format!("\"{key}\":{}", header[key]));
    let unsealed = text.replace(&version, "\"version\":2").replace(&hash, "\"sha256\":\"\"");
    let file = SafeTensors::deserialize(bytes).unwrap();
    let mut tensors: Vec<(String, TensorView<'_>)> = file.tensors();
    tensors.retain(|(name, _)| !LEAVES.contains(&name.as_str()));
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut sum = Sha256::new_with_prefix(&unsealed);
    for (name, view) in &tensors {
        sum.update(format!("\n{name} {:?} {:?}\n", view.dtype(), view.shape()));
        sum.update(view.data());
    }
    let sum: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let sealed = unsealed.replace("\"sha256\":\"\"", &format!("\"sha256\":\"{sum}\""));
    safetensors::serialize(tensors, Some([("pointsman".to_owned(), sealed)].into())).unwrap()
}

#[test]
fn arrays_of_many_pieces_read_back_from_memory_and_from_a_file() {
    // Leaves, features and predictions take more than 256 KiB each.
    let router = forest(20_000, 10);
    let bytes = router_bytes(&router).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert!(["probs", "features", "rows.leaves"].iter().all(|name| file.tensor(name).unwrap().data().len() > 1 << 18));
    let folder = Folder::new();
    let path = folder.file("router.safetensors", &bytes);
    let (from_file, from_memory) = (load_router(&path).unwrap(), parse_router(&bytes).unwrap());
    assert!(from_file == router && from_memory == router);
    save_router(folder.path("again.safetensors"), &from_file).unwrap();
    assert!(fs::read(folder.path("again.safetensors")).unwrap() == bytes);
    // The checksum covers every piece.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for place in (header..bytes.len()).step_by(1 << 17).chain([bytes.len() - 1]) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        assert!(parse_router(&flipped).unwrap_err().to_string().contains("checksum"), "byte {place}");
    }
}

#[test]
fn older_files_give_the_same_router_and_decisions() {
    let router = forest(400, 8);
    let bytes = router_bytes(&router).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert!(LEAVES.iter().all(|name| file.tensor(name).is_ok()));
    let old = as_version_2(&bytes);
    let derived = parse_router(&old).unwrap();
    assert_eq!(derived, router);
    assert!(router_bytes(&derived).unwrap() == bytes);
    let stored = parse_router(&bytes).unwrap();
    let queries = table(100);
    for loss in ["brier", "cross-entropy", "zero-one", "asymmetric:2"] {
        let task = Task::new(loss.parse::<Loss>().unwrap()).route("expert", Oracle::bayes(), 0.05).unwrap();
        let [stored, derived] = [&stored, &derived].map(|router| router.policy(&task).unwrap());
        for row in 0..queries.rows() {
            let costs = [&stored, &derived].map(|policy| {
                let decision = policy.decide_with(&queries.prediction(row), queries.features(row)).unwrap();
                (decision.costs().iter().map(|cost| cost.to_bits()).collect::<Vec<_>>(), decision.cell())
            });
            assert_eq!(costs[0], costs[1], "{loss}, row {row}");
        }
    }
}

#[test]
fn any_flipped_bit_of_the_leaves_is_refused() {
    let bytes = router_bytes(&forest(100, 3)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let sizes: Vec<usize> = LEAVES.iter().map(|name| file.tensor(name).unwrap().data().len()).collect();
    assert!(sizes.iter().all(|size| *size > 0));
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for place in (header..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let reason = parse_router(&flipped).unwrap_err().to_string();
        assert!(reason.contains("checksum"), "{reason}");
    }
}
