//! Benchmarks of opening files: from a router or a policy on disk to the first decision.
//!
//! The setting is that of the requirement: five classes, 20 features, three labels per item, 200 trees. A first decision is made in a process of
//! its own, since a process that has opened a file before has memory at hand.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use pointsman::partition::forest::LeafNumbers;
use pointsman::{Loss, Oracle, Partition, Router, Task};
use pointsman_table::RouterOrPolicy;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::data;
use crate::forest::Outcome;
use crate::lines::Lines;
use crate::timing::{median_value, race};

const CLASSES: usize = 5;
const FEATURES: usize = 20;
const LABELS: usize = 3;
const TREES: usize = 200;
const ROUNDS: usize = 5;
const LOSSES: [&str; 3] = ["brier", "cross-entropy", "zero-one"];

/// The bytes of a file that the checksum of a router hashes at once.
const BYTES_PER_PIECE: usize = 1 << 18;

/// The argument that makes this program open a file, decide once and print the seconds that took.
pub(crate) const FIRST_DECISION: &str = "first-decision";

pub(crate) fn run(lines: &mut Lines, rows: usize, bar: &str) -> Outcome<()> {
    let table = data::table_with_features(rows, CLASSES, FEATURES, LABELS, 5);
    let router = Router::calibrate(&table, &Partition::forest(TREES))?;
    drop(table);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("router.safetensors");
    pointsman_table::save_router(&path, &router)?;
    for loss in LOSSES {
        let (own, peer) = alternate(&path, loss, || hash_pieces(&path))?;
        let what = format!("open a forest of {rows} rows ({}), decide by {loss} / hash its file", megabytes(&path)?);
        lines.add(what, millis(own), millis(peer), format!("{:.1} times the peer's time (bar: {bar})", own / peer));
    }
    for loss in LOSSES {
        let task = task(loss)?;
        let (own, peer) = race(
            ROUNDS,
            || -> Outcome<()> {
                black_box(router.policy(&task)?);
                Ok(())
            },
            || {
                black_box(add_once_per_row_and_tree(&router));
                Ok(())
            },
        )?;
        let what = format!("compile {loss} from {rows} rows and {TREES} trees / one addition per row and tree");
        lines.add(what, millis(own), millis(peer), format!("{:.1} times the peer's time", own / peer));
    }
    let policy = folder.path().join("policy.safetensors");
    pointsman_table::save_policy(&policy, &router.policy(&task("brier")?)?)?;
    let (own, peer) = alternate(&policy, "brier", || hash_whole(&policy))?;
    let what = format!("open a policy compiled from {rows} rows ({}), decide / hash its file", megabytes(&policy)?);
    lines.add(what, millis(own), millis(peer), format!("{:.1} times the peer's time", own / peer));
    Ok(())
}

/// Opens a router or a policy, decides one query and prints the seconds since the start.
pub(crate) fn decide_once(path: &str, loss: &str) -> Outcome<()> {
    let start = Instant::now();
    let policy = match pointsman_table::load_router_or_policy(path)? {
        RouterOrPolicy::Router(router) => router.policy(&task(loss)?)?,
        RouterOrPolicy::Policy(policy) => *policy,
        _ => return Err("neither a router nor a policy".into()),
    };
    let decision = policy.decide_with(&[1.0 / CLASSES as f64; CLASSES], &[0.5; FEATURES])?;
    black_box(decision.costs());
    println!("{}", start.elapsed().as_secs_f64());
    // Freeing the rows is no part of a first decision.
    std::process::exit(0)
}

fn task(loss: &str) -> Outcome<Task> {
    Ok(Task::new(loss.parse::<Loss>()?).route("expert", Oracle::bayes(), 0.05)?.abstain(0.3)?)
}

/// Median seconds of a first decision in a new process, and of a peer; they alternate.
fn alternate(path: &Path, loss: &str, peer: impl Fn() -> Outcome<()>) -> Outcome<(f64, f64)> {
    let (mut own, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let child = Command::new(std::env::current_exe()?).arg(FIRST_DECISION).arg(path).arg(loss).output()?;
        own.push(String::from_utf8(child.stdout)?.trim().parse()?);
        let start = Instant::now();
        peer()?;
        peers.push(start.elapsed().as_secs_f64());
    }
    Ok((median_value(own), median_value(peers)))
}

/// Reads a file piece by piece on all cores and hashes each piece.
fn hash_pieces(path: &Path) -> Outcome<()> {
    let pieces = std::fs::metadata(path)?.len().div_ceil(BYTES_PER_PIECE as u64);
    let hash = |buffer: &mut Vec<u8>, piece: u64| -> std::io::Result<()> {
        let mut file = File::open(path)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(piece * BYTES_PER_PIECE as u64))?;
        buffer.clear();
        file.take(BYTES_PER_PIECE as u64).read_to_end(buffer)?;
        black_box(Sha256::digest(&*buffer));
        Ok(())
    };
    Ok((0..pieces).into_par_iter().map_init(Vec::new, hash).collect::<std::io::Result<()>>()?)
}

/// Reads a file and hashes it in one stream.
fn hash_whole(path: &Path) -> Outcome<()> {
    black_box(Sha256::digest(std::fs::read(path)?));
    Ok(())
}

/// Adds one number per row to the sum of its leaf in each tree, on all cores.
fn add_once_per_row_and_tree(router: &Router) -> f64 {
    let Some(parts) = router.forest_parts() else { return 0.0 };
    let LeafNumbers::Short(leaves) = &*parts.leaf_of_row else { return 0.0 };
    let numbers: Vec<f64> = (0..parts.ranks.len()).map(|row| row as f64).collect();
    let sum_tree = |tree: &[u16]| {
        let mut sums = vec![0.0; 1 << u16::BITS];
        tree.iter().zip(&numbers).for_each(|(&leaf, number)| sums[usize::from(leaf)] += number);
        sums[0]
    };
    leaves.par_chunks(numbers.len()).map(sum_tree).sum()
}

fn millis(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

fn megabytes(path: &Path) -> std::io::Result<String> {
    Ok(format!("{:.0} MB", std::fs::metadata(path)?.len() as f64 / 1e6))
}
