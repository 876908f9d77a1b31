//! The public data sets the project is measured on, where they are at hand.

use std::path::PathBuf;

use pointsman_table::{Filter, Need, ReadOptions, read_frame};

/// The folder of data sets: `POINTSMAN_DATA`, or `shared/data` next to the repository.
fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("POINTSMAN_DATA").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no data sets in {}: set POINTSMAN_DATA to test on them", folder.display());
    None
}

#[test]
fn data_sets_are_read() {
    let Some(folder) = folder() else { return };
    for (name, rows, classes, features) in [
        ("chaosnli", 3083, 3, 1),
        ("cifar10h", 10_000, 10, 16),
        ("cifar10h-overconfident", 10_000, 10, 0),
        ("snli", 10_000, 3, 0),
    ] {
        let path = folder.join(format!("{name}.npz"));
        let options = ReadOptions { need: Need::Votes, ..ReadOptions::default() };
        let frame = read_frame(&path, &options).unwrap();
        assert_eq!((frame.table.rows(), frame.table.classes().len()), (rows, classes), "{name}");
        assert_eq!(frame.table.feature_names().len(), features, "{name}");
        let kept = |split: &str| {
            let options = ReadOptions { filters: vec![Filter::new("split", split)], ..options.clone() };
            read_frame(&path, &options).map_or(0, |frame| frame.table.rows())
        };
        assert_eq!((0..10).map(|split| kept(&split.to_string())).sum::<usize>(), rows, "{name}");
    }
}
