//! Made-up predictions and votes.

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

/// Predictions with five votes a row, drawn from a mixture of the prediction and chance.
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
