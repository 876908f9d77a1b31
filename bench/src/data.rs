//! Synthetic predictions and votes.

use std::path::Path;

use pointsman::Table;
use pointsman_table::{Column, ColumnKind, TableWriter};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Softmax-like rows of one clear class or several.
pub(crate) fn predictions(rows: usize, classes: usize, seed: u64) -> Vec<f32> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut probs = vec![0.0_f32; rows * classes];
    for row in probs.chunks_exact_mut(classes) {
        let mut sum = 0.0;
        for x in row.iter_mut() {
            *x = uniform(&mut random).powi(6) as f32 + 1e-6;
            sum += *x;
        }
        row.iter_mut().for_each(|x| *x /= sum);
    }
    probs
}

/// Predictions with five votes per row, drawn from a mixture of the prediction and chance.
pub(crate) fn table(rows: usize, classes: usize, seed: u64) -> Table {
    let probs: Vec<f64> = predictions(rows, classes, seed).into_iter().map(f64::from).collect();
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xABCD);
    let mut votes = vec![0_u32; rows * classes];
    for (counts, row) in votes.chunks_exact_mut(classes).zip(probs.chunks_exact(classes)) {
        for _ in 0..5 {
            let (mut draw, mut class) = (uniform(&mut random), 0);
            while class + 1 < classes && draw >= row[class] {
                draw -= row[class];
                class += 1;
            }
            counts[class] += 1;
        }
    }
    Table::new((0..classes).map(|c| c.to_string()), probs)
        .and_then(|table| table.with_votes(votes))
        .unwrap_or_else(|error| unreachable!("{error}"))
}

/// Writes a table in the wide layout.
pub(crate) fn write(path: &Path, table: &Table) -> pointsman_table::Result<()> {
    let classes = table.classes();
    let mut names: Vec<(String, ColumnKind)> = Vec::new();
    names.extend(classes.iter().map(|class| (format!("prob_{class}"), ColumnKind::Real)));
    names.extend(classes.iter().map(|class| (format!("votes_{class}"), ColumnKind::Count)));
    let rows = 0..table.rows();
    let prob = |c: usize| Column::Real(rows.clone().map(|row| table.prediction(row)[c]).collect());
    let votes = |c: usize| {
        let count = |row| table.votes(row).map_or(0, |votes| u64::from(votes.counts()[c]));
        Column::Count(rows.clone().map(count).collect())
    };
    let columns: Vec<Column> = (0..classes.len()).map(prob).chain((0..classes.len()).map(votes)).collect();
    let mut writer = TableWriter::create(path, None, &names)?;
    writer.write(&columns)?;
    writer.finish()
}

/// A table whose votes, `labels` per row, depend on some of many features.
pub(crate) fn table_with_features(rows: usize, classes: usize, features: usize, labels: usize, seed: u64) -> Table {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut probs, mut votes, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let x: Vec<f64> = (0..features).map(|_| uniform(&mut random)).collect();
        let weigh = |sharp: f64| {
            let raw: Vec<f64> = (0..classes).map(|c| (sharp * (x[c] + 0.3 * x[c + 1])).exp()).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(|weight| weight / sum).collect::<Vec<_>>()
        };
        let truth = weigh(if x[7] > 0.5 { 8.0 } else { 1.0 + 4.0 * x[8] });
        let mut counts = vec![0_u32; classes];
        for _ in 0..labels {
            let (mut draw, mut class) = (uniform(&mut random), 0);
            while class + 1 < classes && draw >= truth[class] {
                draw -= truth[class];
                class += 1;
            }
            counts[class] += 1;
        }
        probs.extend(weigh(3.0));
        votes.extend(counts);
        values.extend(x);
    }
    Table::new((0..classes).map(|c| c.to_string()), probs)
        .and_then(|table| table.with_votes(votes))
        .and_then(|table| table.with_features((0..features).map(|i| i.to_string()), values))
        .unwrap_or_else(|error| unreachable!("{error}"))
}

/// Writes the inputs and targets of tree growing, and the inputs of queries, as plain arrays for the peers in Python.
pub(crate) fn write_inputs(folder: &Path, calibration: &Table, queries: &Table) -> std::io::Result<()> {
    let inputs = |table: &Table| -> Vec<u8> {
        let row = |row: usize| {
            let confidence = table.peak(row).confidence;
            let prediction = table.prediction(row);
            let all = prediction.iter().chain([&confidence]).chain(table.features(row));
            all.flat_map(|&x| (x as f32).to_le_bytes()).collect::<Vec<u8>>()
        };
        (0..table.rows()).flat_map(row).collect()
    };
    let target = |row: usize| {
        let counts: Vec<f64> =
            calibration.votes(row).into_iter().flat_map(|v| v.counts()).map(|&n| f64::from(n)).collect();
        let k: f64 = counts.iter().sum();
        let f = &*calibration.prediction(row);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let noise = (1.0 - dot(&counts, &counts) / (k * k)) * k / (k - 1.0);
        [noise, 1.0 - 2.0 * dot(&counts, f) / k + dot(f, f) - noise]
    };
    let targets = (0..calibration.rows()).flat_map(target).flat_map(f64::to_le_bytes).collect::<Vec<u8>>();
    let width = calibration.classes().len() + 1 + calibration.feature_names().len();
    std::fs::write(folder.join("shape"), format!("{} {} {width}", calibration.rows(), queries.rows()))?;
    std::fs::write(folder.join("inputs"), inputs(calibration))?;
    std::fs::write(folder.join("targets"), targets)?;
    std::fs::write(folder.join("queries"), inputs(queries))
}
