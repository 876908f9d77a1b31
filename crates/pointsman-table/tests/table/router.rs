//! The router file: the same router gives the same bytes, and anything but a router is refused.

use std::fs;

use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
use pointsman_table::{load_router, parse_router, save_router};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;

use crate::support::Folder;

pub(crate) const ROWS: usize = 120;

/// A table with everything a router keeps: three classes, two features, weights, another model.
pub(crate) fn table(order: impl Fn(usize) -> usize) -> Table {
    let rows: Vec<usize> = (0..ROWS).map(order).collect();
    let probs = rows.iter().flat_map(|&i| {
        let top = 0.4 + (i % 20) as f64 * 0.029;
        let mut row = [(1.0 - top) * 0.6, (1.0 - top) * 0.4, top];
        row.rotate_right(i % 3);
        row
    });
    let votes = rows.iter().flat_map(|&i| [(i % 4) as u32, 1 + (i % 3) as u32, (i % 2) as u32]);
    let features = rows.iter().flat_map(|&i| [(i * 7 % 13) as f64, (i * 5 % 11) as f64]);
    let oracle = rows.iter().flat_map(|&i| [0.1 + (i % 5) as f64 * 0.1, 0.2, 0.7 - (i % 5) as f64 * 0.1]);
    Table::new(["a", "b", "c"], probs.collect())
        .and_then(|t| t.with_votes(votes.collect()))
        .and_then(|t| t.with_features(["length", "age"], features.collect()))
        .and_then(|t| t.with_weights(rows.iter().map(|&i| 1.0 + (i % 3) as f64).collect()))
        .and_then(|t| t.with_oracle("gpt", oracle.collect()))
        .unwrap()
}

const PARTITIONS: [&str; 10] = [
    "pooled",
    "top-class:5",
    "confidence:7",
    "level-sets",
    "features:x_age=3,x_length=2",
    "top-class:3*features:x_length=2",
    "confidence:2*level-sets",
    "tree",
    "honest-forest:5",
    "forest:5",
];

fn bytes_of(router: &Router) -> Vec<u8> {
    let folder = Folder::new();
    save_router(folder.path("r.safetensors"), router).unwrap();
    assert_eq!(folder.names(), ["r.safetensors"]);
    fs::read(folder.path("r.safetensors")).unwrap()
}

fn router(partition: &str) -> Router {
    Router::calibrate(&table(|i| i), &partition.parse::<Partition>().unwrap()).unwrap()
}

#[test]
fn routers_remember_rows_that_were_added_later() {
    let before = router("top-class:5");
    let router = before.with_more_rows(&table(|i| i)).unwrap();
    let read = parse_router(&bytes_of(&router)).unwrap();
    assert_eq!((before.added_rows(), read.added_rows()), (0, ROWS));
    assert_eq!(read, router);
    assert!(!String::from_utf8_lossy(&bytes_of(&before)).contains("added_rows"));
    assert!(before.with_added_rows(ROWS).is_err());
}

#[test]
fn routers_read_back_unchanged() {
    for partition in PARTITIONS {
        // A forest does not serve centroids.
        let variants = if partition.starts_with("forest") { 1 } else { 2 };
        for router in [router(partition), router(partition).recalibrated()].into_iter().take(variants) {
            let bytes = bytes_of(&router);
            let back = parse_router(&bytes).unwrap();
            assert_eq!(back, router, "{partition}");
            assert_eq!(bytes_of(&back), bytes, "{partition}");
        }
    }
}

#[test]
fn bytes_do_not_depend_on_row_order_or_tasks() {
    for partition in PARTITIONS {
        let router = router(partition);
        let bytes = bytes_of(&router);
        let shuffled = table(|i| i * 17 % ROWS);
        assert_eq!(bytes_of(&Router::calibrate(&shuffled, &partition.parse().unwrap()).unwrap()), bytes, "{partition}");
        for loss in ["brier", "cross-entropy", "zero-one", "asymmetric:3"] {
            let loss: Loss = loss.parse().unwrap();
            let task = Task::new(loss).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.3).unwrap();
            router.policy(&task).unwrap();
        }
        assert_eq!(bytes_of(&router), bytes, "{partition}");
    }
}

#[test]
fn only_routers_with_trees_or_groups_have_a_newer_version() {
    let version = |partition: &str| {
        let bytes = bytes_of(&router(partition));
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let header: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["pointsman"]).unwrap();
        (header["version"].as_u64().unwrap(), header.get("seed").is_some())
    };
    let versions = ["top-class:5", "tree", "forest:5", "honest-forest:5", "pooled"].map(version);
    assert_eq!(versions, [(1, false), (2, false), (5, true), (3, false), (3, false)]);
}

#[test]
fn missing_features_read_back() {
    let features = (0..ROWS).flat_map(|i| [i as f64, if i % 3 == 0 { f64::NAN } else { 1.0 }]).collect();
    let table = Table::new(["a", "b", "c"], table(|i| i).predictions().to_vec())
        .and_then(|t| t.with_votes([1, 2, 0].repeat(ROWS)))
        .and_then(|t| t.with_features(["length", "age"], features))
        .unwrap();
    let router = Router::calibrate(&table, &Partition::forest(3)).unwrap();
    assert_eq!(parse_router(&bytes_of(&router)).unwrap(), router);
}

#[test]
fn files_cut_short_or_made_longer_are_refused() {
    let bytes = bytes_of(&router("top-class:2"));
    for length in (0..bytes.len()).step_by(37) {
        assert!(parse_router(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    assert!(parse_router(&[bytes.as_slice(), b"more"].concat()).is_err());
}

#[test]
fn any_flipped_bit_of_a_router_is_refused() {
    let router = router("top-class:2");
    let bytes = bytes_of(&router);
    let mut refused = 0;
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        match parse_router(&flipped) {
            Err(error) => {
                refused += 1;
                let reason = error.to_string();
                assert!(!reason.contains('\n'), "{reason}");
            }
            // Only bits without meaning may differ, such as those of the header's padding.
            Ok(other) => assert_eq!(other, router, "byte {position}"),
        }
    }
    assert!(refused + 16 > bytes.len(), "{refused} of {} flips refused", bytes.len());
}

/// Rewrites a router's header and tensors, and keeps or empties the checksum.
fn rewrite(bytes: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let mut header: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["pointsman"]).unwrap();
    change(&mut header);
    let file = SafeTensors::deserialize(bytes).unwrap();
    let metadata = [("pointsman".to_owned(), header.to_string())].into();
    safetensors::serialize(file.tensors(), Some(metadata)).unwrap()
}

#[test]
fn messages_say_what_to_do() {
    let folder = Folder::new();
    let bytes = bytes_of(&router("top-class:2"));
    let message = |name: &str, bytes: &[u8]| load_router(folder.file(name, bytes)).unwrap_err().to_string();

    let future = message("future.safetensors", &rewrite(&bytes, |header| header["version"] = 6.into()));
    assert!(future.contains("future.safetensors: router format 6") && future.contains("newer pointsman"), "{future}");
    // A future header may have other keys: the version is read first.
    let richer = rewrite(&bytes, |header| {
        header["version"] = 7.into();
        header["trees"] = 200.into();
    });
    assert!(message("richer.safetensors", &richer).contains("router format 7"));

    let tampered = message("tampered.safetensors", &rewrite(&bytes, |header| header["recalibrated"] = true.into()));
    assert!(tampered.contains("checksum"), "{tampered}");
    let unknown = message("unknown.safetensors", &rewrite(&bytes, |header| header["colour"] = "red".into()));
    assert!(unknown.contains("damaged"), "{unknown}");

    let data = 1.0_f64.to_le_bytes();
    let view = TensorView::new(Dtype::F64, vec![1], &data).unwrap();
    let foreign = safetensors::serialize([("weights", view)], None).unwrap();
    assert!(message("model.safetensors", &foreign).contains("no pointsman header"));

    let mut oversized = bytes.clone();
    oversized[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(message("oversized.safetensors", &oversized).contains("not a router file"));
    assert!(message("empty.safetensors", &[]).contains("not a router file"));
    assert!(message("junk.safetensors", &[7; 999]).contains("not a router file"));
    let missing = load_router(folder.path("missing.safetensors")).unwrap_err().to_string();
    assert!(missing.contains("missing.safetensors") && missing.contains("no such file"), "{missing}");
}
