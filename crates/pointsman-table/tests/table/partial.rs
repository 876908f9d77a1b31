//! Parts of a calibration as bytes: they read back unchanged, and anything else is refused.

use pointsman::router::{Cap, Partial};
use pointsman::{Partition, Router};
use pointsman_table::{load_partial, parse_partial, parse_router, partial_bytes, router_bytes, save_partial};

use crate::router::{ROWS, table};
use crate::support::Folder;

/// A part with few rows per cell, or all rows.
fn part(partition: &str, capped: bool) -> Partial {
    let like = Router::calibrate(&table(|i| i), &partition.parse::<Partition>().unwrap()).unwrap();
    let mut part = Partial::like(&like).unwrap();
    if capped {
        // Leaves are not filled with fewer than thirty rows.
        let rows = if partition.starts_with("forest") { 12 } else { 2 };
        part = part.capped(Cap { rows, seed: 9 }).unwrap();
    }
    part.add_with_ids(&table(|i| i), &(0..ROWS as u64).collect::<Vec<_>>()).unwrap();
    part
}

#[test]
fn parts_read_back_unchanged() {
    for partition in [
        "top-class:5",
        "level-sets",
        "features:x_age=3,x_length=2",
        "confidence:3*features:x_age=2",
        "tree",
        "honest-forest:3",
        "forest:3",
        "pooled",
    ] {
        for capped in [false, true] {
            let part = part(partition, capped);
            let bytes = partial_bytes(&part).unwrap();
            let mut back = parse_partial(&bytes).unwrap();
            assert_eq!(partial_bytes(&back).unwrap(), bytes, "{partition}");
            let router = router_bytes(&part.finish().unwrap()).unwrap();
            assert_eq!(router_bytes(&back.finish().unwrap()).unwrap(), router, "{partition}");
            // An empty shard is a part like any other.
            let like = Router::calibrate(&table(|i| i), &partition.parse::<Partition>().unwrap()).unwrap();
            let mut empty = Partial::like(&like).unwrap();
            if let Some(cap) = part.cap() {
                empty = empty.capped(cap).unwrap();
            }
            back.merge(&parse_partial(&partial_bytes(&empty).unwrap()).unwrap()).unwrap();
            assert_eq!(router_bytes(&back.finish().unwrap()).unwrap(), router, "{partition}");
        }
    }
}

#[test]
fn any_flipped_bit_of_a_part_is_refused() {
    let bytes = partial_bytes(&part("top-class:2", true)).unwrap();
    let router = part("top-class:2", true).finish().unwrap();
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        if let Ok(other) = parse_partial(&flipped) {
            assert_eq!(other.finish().unwrap(), router, "byte {position}");
        }
    }
    for length in (0..bytes.len()).step_by(37) {
        assert!(parse_partial(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn parts_are_not_loaded_as_routers() {
    let folder = Folder::new();
    let part = part("top-class:2", false);
    save_partial(folder.path("part.safetensors"), &part).unwrap();
    assert_eq!(load_partial(folder.path("part.safetensors")).unwrap().finish().unwrap(), part.finish().unwrap());
    assert!(parse_router(&partial_bytes(&part).unwrap()).unwrap_err().to_string().contains("not a router file"));
    let reason = parse_partial(&router_bytes(&part.finish().unwrap()).unwrap()).unwrap_err().to_string();
    assert!(reason.contains("not a part of a calibration"), "{reason}");
}
