//! Table files of every format: reading them whole or in batches gives the same table or an error.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::{Partition, Router};
use pointsman_fuzz::{check_message, prepare, scratch};
use pointsman_table::{Format, Frame, Need, ReadOptions, batches, read_frame};

/// A valid table for annotations to be joined to.
const JOINED: &str = "id,prob_a,prob_b,split\n1,0.5,0.5,0\n2,0.9,0.1,0\nthree,0.2,0.8,1\n";

/// Valid annotations for the ids in the seeds.
const LABELS: &str = "id,label,annotator\n1,a,x\n1,b,y\n2,a,x\nthree,b,x\n";

struct Places {
    by_format: [PathBuf; 6],
    joined: PathBuf,
    labels: PathBuf,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let places = Places {
        by_format: Format::ALL.map(|format| scratch(&format!("table.{format}"))),
        joined: scratch("joined.csv"),
        labels: scratch("labels.csv"),
    };
    std::fs::write(&places.joined, JOINED).expect("a scratch file");
    std::fs::write(&places.labels, LABELS).expect("a scratch file");
    places
});

// The first two bytes choose the format and how to read; the rest is the file.
fuzz_target!(|data: &[u8]| {
    prepare();
    let [format, how, bytes @ ..] = data else { return };
    let path = &PLACES.by_format[usize::from(*format) % 6];
    std::fs::write(path, bytes).expect("a scratch file");
    let mut options = ReadOptions {
        need: [Need::Any, Need::Predictions, Need::Votes, Need::VotesOrTruth][usize::from(how & 3)],
        ..ReadOptions::default()
    };
    if how & 4 != 0 {
        options.filters.push("split=0".parse().expect("a filter"));
    }
    if how & 8 != 0 {
        options.columns = "probs=p_,votes=v_,features=f_,id=uid".parse().expect("columns");
    }
    let batch_rows = [1, 2, 3, 1000][usize::from(how >> 4 & 3)];
    match how >> 6 {
        // The file contains the votes of a valid table.
        2 => {
            options.annotations = Some(path.clone());
            check(&PLACES.joined, &options, batch_rows);
        }
        // The file is joined with valid votes.
        3 => {
            options.annotations = Some(PLACES.labels.clone());
            check(path, &options, batch_rows);
        }
        _ => check(path, &options, batch_rows),
    }
});

fn check(path: &Path, options: &ReadOptions, batch_rows: usize) {
    let whole = read_frame(path, options);
    let options = ReadOptions { batch_rows, ..options.clone() };
    let parts: pointsman_table::Result<Vec<Frame>> = batches(path, &options).and_then(Iterator::collect);
    for error in [whole.as_ref().err(), parts.as_ref().err()].into_iter().flatten() {
        check_message(&error.to_string());
    }
    match (whole, parts) {
        (Ok(whole), Ok(parts)) => {
            check_parts(&whole, &parts, batch_rows);
            if whole.table.has_votes() {
                let partition: Partition = "top-class:3".parse().expect("a partition");
                let router = Router::calibrate(&whole.table, &partition).expect("a table with votes calibrates");
                assert_eq!(router.rows().rows(), whole.table.rows());
            }
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("read whole, but not in batches of {batch_rows}: {error}"),
        (Err(error), Ok(_)) => panic!("read in batches of {batch_rows}, but not whole: {error}"),
    }
}

/// Asserts that the concatenated batches equal the whole table.
fn check_parts(whole: &Frame, parts: &[Frame], batch_rows: usize) {
    let table = &whole.table;
    assert_eq!(table.rows(), whole.rows.len());
    let mut next = 0;
    for (i, part) in parts.iter().enumerate() {
        let rows = part.table.rows();
        // Rows without annotations are dropped from their batch.
        let may_be_short = i + 1 == parts.len() || whole.joined.is_some();
        assert!(rows == batch_rows || may_be_short && rows < batch_rows, "a batch of {rows} rows");
        assert_eq!(part.rows, whole.rows[next..next + rows]);
        assert_eq!(part.ids.as_deref(), whole.ids.as_ref().map(|ids| &ids[next..next + rows]));
        let part = &part.table;
        assert_eq!(part.classes(), table.classes());
        assert_eq!(part.feature_names(), table.feature_names());
        assert_eq!(part.has_weights(), table.has_weights());
        // Missing values compare equal.
        let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        for row in 0..rows {
            assert_eq!(part.prediction(row), table.prediction(next + row));
            assert_eq!(part.votes(row), table.votes(next + row));
            assert_eq!(part.truth(row), table.truth(next + row));
            assert_eq!(bits(part.features(row)), bits(table.features(next + row)));
            assert_eq!(part.weight(row), table.weight(next + row));
        }
        let width = table.classes().len();
        assert_eq!(part.oracles().count(), table.oracles().count());
        for ((name, part), (other, all)) in part.oracles().zip(table.oracles()) {
            assert_eq!((name, part), (other, &all[next * width..(next + rows) * width]));
        }
        next += rows;
    }
    assert_eq!(next, table.rows());
}
