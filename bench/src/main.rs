//! Benchmarks as ratios to a peer in the same run, since ratios are less noisy than times.
//!
//! `make bench` runs everything, `make bench ROWS=1000000` with fewer rows, `make bench ROWS=forest` only forests, `make bench ROWS=opening`
//! only the opening of files, also of a million rows, `make bench ROWS=what-if` only logged decisions under another task. Each figure is the
//! median of repeated runs in which peer and subject alternate. No result is treated as a failure.

mod batches;
mod data;
mod forest;
mod lines;
mod opening;
mod timing;
mod what_if;

use std::error::Error;
use std::fs::File;
use std::hint::black_box;

use lines::Lines;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pointsman::{Loss, Oracle, Partition, Policy, Router, Task};
use timing::{median, race};

const CLASSES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1).unwrap_or_else(|| "10000000".into());
    if let [_, command, path, loss] = std::env::args().collect::<Vec<_>>().as_slice()
        && command == opening::FIRST_DECISION
    {
        return opening::decide_once(path, loss);
    }
    if let [_, command, router, table] = std::env::args().collect::<Vec<_>>().as_slice()
        && command == batches::BATCHES
    {
        return batches::run(router, table);
    }
    if let [_, command, partition] = std::env::args().collect::<Vec<_>>().as_slice()
        && command == forest::CALIBRATE
    {
        return forest::calibrate_million(partition);
    }
    let mut lines = Lines::new();
    if rows == "opening" {
        opening::run(&mut lines, 50_000, "150 ms")?;
        return opening::run(&mut lines, 1_000_000, "1 s");
    }
    if rows == what_if::ALONE {
        return what_if::run(&mut lines);
    }
    if rows == "forest" {
        return forest::run(&mut lines);
    }
    let rows: usize = rows.parse()?;
    let calibration = data::table(10_000, CLASSES, 1);
    let router = Router::calibrate(&calibration, &Partition::top_class(10))?;
    let task = |loss: Loss| Task::new(loss).route("expert", Oracle::bayes(), 0.05)?.abstain(0.3);
    let policy = router.policy(&task(Loss::brier())?)?;

    batch(&mut lines, &policy, rows)?;
    single(&mut lines, &policy)?;
    compile(&mut lines, &router, task)?;
    calibrate(&mut lines)?;
    what_if::run(&mut lines)?;
    forest::run(&mut lines)?;
    opening::run(&mut lines, 1_000_000, "1 s")?;
    lines.write()
}

/// Batch decisions, against a pass that only takes each row's maximum.
fn batch(lines: &mut Lines, policy: &Policy, rows: usize) -> Result<(), Box<dyn Error>> {
    let probs = data::predictions(rows, CLASSES, 2);
    let mut maxima = vec![0.0_f32; rows];
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (subject, peer) = one.install(|| {
        race(
            7,
            || policy.decide_many(black_box(&probs), &[]).map(|decisions| drop(black_box(decisions))),
            || {
                for (slot, row) in maxima.iter_mut().zip(black_box(&probs).chunks_exact(CLASSES)) {
                    *slot = row.iter().copied().fold(f32::MIN, f32::max);
                }
                black_box(&mut maxima);
                Ok(())
            },
        )
    })?;
    let each = |seconds: f64| format!("{:.2} ns/row", seconds / rows as f64 * 1e9);
    let verdict = format!("{:.2} of the peer's speed (bar: 0.5)", peer / subject);
    lines.add(format!("decide {rows} × {CLASSES} f32, one core / row maximum"), each(subject), each(peer), verdict);
    Ok(())
}

/// Single decisions: time, and allocations, of which there are none.
fn single(lines: &mut Lines, policy: &Policy) -> Result<(), Box<dyn Error>> {
    let n = 1 << 16;
    let singles = data::predictions(n, CLASSES, 3);
    let doubles: Vec<f64> = singles.iter().map(|&x| f64::from(x)).collect();
    let mut failures = 0;
    let allocations = allocation_counter::measure(|| {
        for row in doubles.chunks_exact(CLASSES) {
            failures += usize::from(black_box(policy.decide(row)).is_err());
        }
    });
    let (subject, peer) = race(
        21,
        || {
            for row in doubles.chunks_exact(CLASSES) {
                black_box(policy.decide(black_box(row))?.costs());
            }
            Ok::<(), pointsman::Error>(())
        },
        || {
            for row in doubles.chunks_exact(CLASSES) {
                black_box(black_box(row).iter().copied().fold(f64::MIN, f64::max));
            }
            Ok(())
        },
    )?;
    lines.add(
        "one decision, 10 classes f64 / row maximum",
        format!("{:.1} ns", subject / n as f64 * 1e9),
        format!("{:.1} ns", peer / n as f64 * 1e9),
        format!("bar: 100 ns; {} allocations, {failures} failures", allocations.count_total),
    );
    Ok(())
}

/// Compiling another loss and another price, with 10,000 calibration rows.
fn compile(
    lines: &mut Lines,
    router: &Router,
    task: impl Fn(Loss) -> pointsman::Result<Task>,
) -> Result<(), Box<dyn Error>> {
    let probs: Vec<f64> = router.rows().predictions().to_vec();
    for loss in ["brier", "cross-entropy", "zero-one", "asymmetric:2"] {
        let task = task(loss.parse()?)?;
        let (subject, peer) = race(
            21,
            || router.policy(black_box(&task)).map(|policy| drop(black_box(policy))),
            || {
                black_box(black_box(&probs).iter().map(|x| x * (x + 1e-9).ln()).sum::<f64>());
                Ok(())
            },
        )?;
        lines.add(
            format!("compile {loss} from 10,000 × 10 / one logarithm per entry"),
            format!("{:.2} ms", subject * 1e3),
            format!("{:.2} ms", peer * 1e3),
            "bar: 5 ms".into(),
        );
    }
    let policy = router.policy(&task(Loss::brier())?)?;
    let repriced = policy.task().clone().reprice_route("expert", 0.07)?;
    let seconds = median(101, || policy.reprice(black_box(&repriced)).map(|policy| drop(black_box(policy))))?;
    lines.add("another price", format!("{:.1} µs", seconds * 1e6), "", "bar: 50 µs".into());
    Ok(())
}

/// Calibrating a million rows from Parquet, against only reading the file.
fn calibrate(lines: &mut Lines) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("calibration.parquet");
    data::write(&path, &data::table(1_000_000, CLASSES, 4))?;
    let partition = Partition::top_class(10);
    let (subject, peer) = race(
        5,
        || -> Result<(), Box<dyn Error>> {
            let table = pointsman_table::read(&path)?;
            black_box(Router::calibrate(&table, &partition)?);
            Ok(())
        },
        || {
            for batch in
                ParquetRecordBatchReaderBuilder::try_new(File::open(&path)?)?.with_batch_size(1 << 16).build()?
            {
                black_box(batch?);
            }
            Ok(())
        },
    )?;
    lines.add(
        "calibrate 1,000,000 × 10 from Parquet / read the file",
        format!("{:.0} ms", subject * 1e3),
        format!("{:.0} ms", peer * 1e3),
        format!("{:.2} times the peer's time (bar: 3)", subject / peer),
    );
    Ok(())
}
