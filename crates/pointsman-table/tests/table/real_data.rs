//! The public data sets of the project's measurements, if they are available.

use pointsman_testing::Lcg;
use std::path::PathBuf;

use pointsman::{CellId, Estimator, Oracle, Partition, Router, Table, Task};
use pointsman_table::{Filter, Need, ReadOptions, read_frame};

/// The folder of data sets: `POINTSMAN_TEST_DATA`, or `shared/data` next to the repository.
fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("POINTSMAN_TEST_DATA").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    pointsman_testing::announce(&format!(
        "no data sets in {}: set POINTSMAN_TEST_DATA to test on them",
        folder.display()
    ));
    None
}

#[test]
fn public_data_sets_are_read() {
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

/// `k` of each row's labels, drawn without replacement by a seeded generator.
fn fewer_labels(table: &Table, k: usize, seed: u64) -> Table {
    let mut rng = Lcg::new(seed);
    let mut votes = Vec::new();
    for row in 0..table.rows() {
        let counts = table.votes(row).unwrap().counts();
        let mut labels: Vec<usize> =
            counts.iter().enumerate().flat_map(|(class, &n)| vec![class; n as usize]).collect();
        let mut drawn = vec![0; counts.len()];
        for _ in 0..k.min(labels.len()) {
            drawn[labels.swap_remove((rng.bits() >> 33) as usize % labels.len())] += 1;
        }
        votes.extend(drawn);
    }
    Table::new(table.classes().to_vec(), table.predictions().to_vec()).unwrap().with_votes(votes).unwrap()
}

/// The estimated loss of a panel of five, from three or eight labels per item, against the unbiased estimate from all hundred labels: the
/// root mean square error of cells, weighted by rows.
#[test]
fn panels_are_estimated_from_few_real_labels() {
    let Some(folder) = folder() else { return };
    let path = folder.join("chaosnli.npz");
    let table = read_frame(&path, &ReadOptions { need: Need::Votes, ..ReadOptions::default() }).unwrap().table;
    for (loss, aggregate) in [("brier", "mean"), ("zero-one", "plurality"), ("cross-entropy", "laplace")] {
        let costs = |table: &Table, estimator: Estimator| -> Vec<(f64, f64)> {
            let jury: Oracle = format!("panel:m=5,aggregate={aggregate}").parse().unwrap();
            let task = Task::new(loss.parse().unwrap()).estimator(estimator).route("jury", jury, 0.0).unwrap();
            let router = Router::calibrate(table, &Partition::top_class(10)).unwrap();
            let policy = router.policy(&task).unwrap();
            let cells = (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
            cells.map(|cell| (cell.rows() as f64, cell.costs()[1])).collect()
        };
        let truth = costs(&table, Estimator::Shrink);
        let error = |k: usize, estimator: Estimator| {
            let found = costs(&fewer_labels(&table, k, 7), estimator);
            let square = |((rows, cost), (_, truth)): (&(f64, f64), &(f64, f64))| rows * (cost - truth).powi(2);
            let squares: f64 = found.iter().zip(&truth).map(square).sum();
            (squares / found.iter().map(|(rows, _)| rows).sum::<f64>()).sqrt()
        };
        let (shrink, plugin) = (error(3, Estimator::Shrink), error(3, Estimator::Plugin));
        let unbiased = error(8, Estimator::Plugin);
        let row = format!("| {loss}, {aggregate} | {plugin:.4} | {shrink:.4} | {unbiased:.4} |");
        eprintln!("{row}");
        assert!(include_str!("../../../../docs/src/oracles.md").contains(&row), "the book lacks: {row}");
        assert!(shrink < 0.06 && unbiased < 0.04, "{loss}: {shrink} {unbiased}");
        // The Brier loss of shares is unbiased from two labels on, for both estimators.
        assert!(if loss == "brier" { shrink == plugin } else { shrink < 0.5 * plugin }, "{loss}: {shrink} {plugin}");
    }
}
