//! Benchmarks of forests: growing, valuing another loss, deciding.
//!
//! The peers in Python (`forest_peer.py`) run if `POINTSMAN_PYTHON` names an interpreter with their packages; the
//! supervised router runs here.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use pointsman::partition::Axis;
use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};
use pointsman_lab::Supervised;

use crate::data;
use crate::lines::Lines;
use crate::opening;
use crate::timing::{median, median_value, race};

const ROWS: usize = 50_000;
const FEATURES: usize = 20;
const CLASSES: usize = 3;
const LABELS: usize = 5;
const TREES: usize = 200;
const FEW_ROWS: usize = 25_000;
const MANY_ROWS: usize = 200_000;
const QUERIES: usize = 100_000;
const RACE_ROUNDS: usize = 15;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

pub(crate) fn run(lines: &mut Lines) -> Outcome<()> {
    let (calibration, queries) = (
        data::table_with_features(ROWS, CLASSES, FEATURES, LABELS, 5),
        data::table_with_features(QUERIES, CLASSES, FEATURES, LABELS, 6),
    );
    let mut router = None;
    let partition = Partition::forest(TREES);
    let grown = median(1, || -> Outcome<()> {
        router = Some(Router::calibrate(&calibration, &partition)?);
        Ok(())
    })?;
    let router = router.ok_or("no router")?;
    let leaf = estimate_leaf_size(&router);
    let task = |loss: Loss| Task::new(loss).route("expert", Oracle::bayes(), 0.05)?.abstain(0.3);
    let policy = router.policy(&task(Loss::brier())?)?;
    let folder = tempfile::tempdir()?;
    let mut peer = start_peer(folder.path(), &router, &calibration, &queries)?;
    let peer_s = peer.as_mut().map(|peer| peer.seconds("grow")).transpose()?;
    add_line(
        lines,
        &format!("grow and prune {partition} on {ROWS} × {FEATURES} / scikit-learn, leaf {leaf}"),
        format!("{grown:.1} s"),
        peer_s.map(|peer| (format!("{peer:.1} s"), format!("{:.2} times the peer's time (bar: 2)", grown / peer))),
    );
    for (name, trees) in [("predict", "trees of depth 6"), ("predict_as_large", "trees with as many leaves")] {
        // Subject and peer alternate, since the load of the machine changes from second to second.
        let (mut own, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RACE_ROUNDS {
            // A pause, since the other's threads may spin for a while after their turn.
            thread::sleep(PAUSE);
            own.push(median(1, || policy.decide_batch(black_box(&queries)).map(|all| drop(black_box(all))))?);
            if let Some(peer) = &mut peer {
                thread::sleep(PAUSE);
                peers.push(peer.seconds(name)?);
                ratios.push(peers[peers.len() - 1] / own[own.len() - 1]);
            }
        }
        let row = |seconds: f64| format!("{:.2} µs/row", seconds / QUERIES as f64 * 1e6);
        add_line(
            lines,
            &format!("decide {QUERIES} rows together / XGBoost predicts as many {trees}"),
            row(median_value(own)),
            peer.is_some().then(|| {
                (row(median_value(peers)), format!("{:.2} of the peer's speed (bar: 1)", median_value(ratios)))
            }),
        );
    }
    drop(peer);
    growth(lines)?;
    opening::run(lines, ROWS, "150 ms")?;
    value_loss(lines, &router, &calibration, task)?;
    single_decision(lines, &policy, &queries)
}

/// The time to calibrate a forest: how it grows with the number of rows, and against peers that grow trees on the same rows.
fn growth(lines: &mut Lines) -> Outcome<()> {
    let seconds = |table: &Table| {
        median(1, || {
            Router::calibrate(black_box(table), &Partition::forest(TREES)).map(|router| drop(black_box(router)))
        })
    };
    let table = |rows: usize| data::table_with_features(rows, CLASSES, FEATURES, LABELS, 7);
    let few = seconds(&table(FEW_ROWS))?;
    let table = table(MANY_ROWS);
    let many = seconds(&table)?;
    add_line(
        lines,
        &format!("calibrate a forest on {MANY_ROWS} rows / on {FEW_ROWS}"),
        format!("{many:.1} s"),
        Some((format!("{few:.1} s"), format!("{:.1} times as long (bar: 9)", many / few))),
    );
    let folder = tempfile::tempdir()?;
    let router = Router::calibrate(&table, &Partition::forest(TREES))?;
    let mut peer = start_peer(folder.path(), &router, &table, &table.keep_rows(|row| row < FEW_ROWS))?;
    let grown = peer.as_mut().map(|peer| peer.seconds("grow")).transpose()?;
    add_line(
        lines,
        &format!("calibrate a forest on {MANY_ROWS} rows / scikit-learn, leaf {}", estimate_leaf_size(&router)),
        format!("{many:.1} s"),
        grown.map(|peer| (format!("{peer:.1} s"), format!("{:.1} times faster (bar: 3)", peer / many))),
    );
    let boosted = peer.as_mut().map(|peer| peer.seconds("boost")).transpose()?;
    add_line(
        lines,
        &format!("calibrate a forest on {MANY_ROWS} rows / LightGBM trains {TREES} trees for one loss"),
        format!("{many:.1} s"),
        boosted.map(|peer| (format!("{peer:.1} s"), format!("{:.1} times the peer's time (bar: 3)", many / peer))),
    );
    drop(peer);
    for (partition, bar) in [("forest:200", "bar: 120 s, 1.5 GB"), ("auto", "bar: 180 s")] {
        let child = Command::new(std::env::current_exe()?).args([CALIBRATE, partition]).output()?;
        let printed = String::from_utf8(child.stdout)?;
        let [seconds, gigabytes] = printed.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("{partition}: {}", String::from_utf8_lossy(&child.stderr)).into());
        };
        add_line(
            lines,
            &format!("calibrate {partition} on 1,000,000 × {FEATURES}"),
            format!("{seconds} s, {gigabytes} GB"),
            Some((String::new(), bar.to_owned())),
        );
    }
    Ok(())
}

/// The argument that makes this program calibrate a million rows and print the seconds and the most memory that took.
pub(crate) const CALIBRATE: &str = "calibrate";

/// Calibrates a million rows of five classes with three labels; a process of its own shows the memory.
pub(crate) fn calibrate_million(partition: &str) -> Outcome<()> {
    let table = data::table_with_features(1_000_000, 5, FEATURES, 3, 7);
    let seconds = median(1, || -> Outcome<()> {
        black_box(match partition {
            "auto" => Router::builder().fit(&table)?,
            named => Router::calibrate(&table, &named.parse()?)?,
        });
        Ok(())
    })?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    println!("{seconds:.1} {:.2}", peak.unwrap_or(f64::NAN) * 1024.0 / 1e9);
    Ok(())
}

/// The peer's process on these tables, if there is an interpreter for it.
fn start_peer(folder: &Path, router: &Router, calibration: &Table, queries: &Table) -> Outcome<Option<Peer>> {
    let Some(python) = std::env::var_os("POINTSMAN_PYTHON") else { return Ok(None) };
    data::write_inputs(folder, calibration, queries)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("forest_peer.py");
    let sizes = [TREES, estimate_leaf_size(router), count_leaves(router) / TREES].map(|n| n.to_string());
    Ok(Some(Peer::start(Command::new(python).arg(script).arg(folder).args(sizes))?))
}

/// A process that times tasks on request.
struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &mut Command) -> Outcome<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take().ok_or("no output")?);
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    fn seconds(&mut self, task: &str) -> Outcome<f64> {
        writeln!(self.input.as_mut().ok_or("no input")?, "{task}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().parse().map_err(|_| format!("the peer does not say how long it took: {line}"))?)
    }
}

impl Drop for Peer {
    /// Closes the input, which ends the process.
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

/// Valuing another loss, against training a supervised router for it.
fn value_loss(
    lines: &mut Lines,
    router: &Router,
    calibration: &Table,
    task: impl Fn(Loss) -> pointsman::Result<Task>,
) -> Outcome<()> {
    let plain = Router::calibrate(calibration, &Partition::top_class(10))?;
    for loss in ["brier", "cross-entropy", "zero-one"] {
        let task = task(loss.parse()?)?;
        let replay = plain.policy(&task)?.replay(calibration)?;
        let (subject, peer) = race(
            3,
            || -> Outcome<()> {
                black_box(router.policy(&task)?);
                Ok(())
            },
            || {
                black_box(Supervised::fit(calibration, &replay, 100)?);
                Ok(())
            },
        )?;
        add_line(
            lines,
            &format!("value the forest for {loss} / train the supervised router"),
            format!("{:.0} ms", subject * 1e3),
            Some((format!("{:.0} ms", peer * 1e3), format!("{:.1} times faster (bar: 10)", peer / subject))),
        );
    }
    Ok(())
}

fn single_decision(lines: &mut Lines, policy: &Policy, queries: &Table) -> Outcome<()> {
    let n = 2_000;
    let mut failures = 0;
    let decide = |row: usize| policy.decide_with(&queries.prediction(row), queries.features(row));
    let allocations = allocation_counter::measure(|| failures = (0..n).filter(|&row| decide(row).is_err()).count());
    let seconds = median(7, || -> pointsman::Result<()> {
        for row in 0..n {
            black_box(decide(black_box(row))?.costs());
        }
        Ok(())
    })?;
    let bar = format!("bar: 10 µs; {} allocations, {failures} failures", allocations.count_total);
    add_line(
        lines,
        &format!("one decision by {TREES} trees"),
        format!("{:.0} ns", seconds / n as f64 * 1e9),
        Some((String::new(), bar)),
    );
    Ok(())
}

fn add_line(lines: &mut Lines, what: &str, subject: String, peer: Option<(String, String)>) {
    let (peer, bar) = peer.unwrap_or_else(|| ("–".into(), "no peer: set POINTSMAN_PYTHON".into()));
    lines.add(what, subject, peer, bar);
}

/// The number of leaves of all trees.
fn count_leaves(router: &Router) -> usize {
    let [Axis::Forest { forest, .. }] = router.cells().axes() else { return 0 };
    forest.trees().leaves()
}

/// An estimate of the smallest allowed leaf size, since leaves have between one and two times as many rows.
fn estimate_leaf_size(router: &Router) -> usize {
    let mean = 0.6 * (router.rows().rows() * TREES) as f64 / count_leaves(router) as f64;
    [250, 120, 60, 30, 15, 8, 4].into_iter().find(|&leaf| leaf as f64 <= mean).unwrap_or(4)
}
