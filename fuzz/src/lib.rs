//! Shared by the fuzz targets: a panic hook, a scratch file, files with a valid checksum, and the service without a network.

pub mod recipe;
pub mod seal;
pub mod service;

use std::backtrace::Backtrace;
use std::path::PathBuf;
use std::sync::Once;

use pointsman::router::{Cap, Partial};
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

/// Prepares this process for fuzzing: one thread, and a panic hook that aborts on panics of our own code.
///
/// pointsman-table turns panics of its parser dependencies into errors. The hook ignores such panics; if one is not
/// caught, it still reaches the fuzzer by unwinding. A panic of our own code is a bug even if it is caught, so it ends
/// the process at once.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        one.build_global().expect("no pool was built before");
        abort_on_own_panics();
    });
}

/// Prepares this process for requests to the service, which reads some files on other threads: the pool has a thread of its own, since
/// one that waits for another thread would do no work for it.
pub fn prepare_service() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("no pool was built before");
        abort_on_own_panics();
    });
}

fn abort_on_own_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if is_dependency(file) || is_std(file) && !called_by_us(&Backtrace::force_capture().to_string()) {
            return;
        }
        tell(panic);
        std::process::abort();
    }));
}

/// Whether a source file belongs to a dependency, which is compiled from a registry's folder.
fn is_dependency(file: &str) -> bool {
    file.contains("/registry/src/")
}

fn is_std(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/library/")
}

/// Whether the innermost caller outside the standard library is one of our crates.
///
/// Most panics in the standard library name the caller's location; for the others, the backtrace is used.
fn called_by_us(stack: &str) -> bool {
    let frames = stack.lines().filter_map(|line| line.trim().split_once(": ").map(|(_, name)| name));
    let past_hook = frames.skip_while(|name| !name.contains("panicking::panic") && !name.contains("capacity_overflow"));
    let standard = |name: &&str| {
        let name = name.trim_start_matches(['<', '&']);
        ["core::", "alloc::", "std::", "__rust"].iter().any(|start| name.starts_with(start))
            || name.contains("rust_begin")
    };
    past_hook.into_iter().find(|name| !standard(name)).is_none_or(|name| name.contains("pointsman"))
}

/// The path of a scratch file of this process, in memory if the system supports it.
#[must_use]
pub fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("pointsman-fuzz-{}-{name}", std::process::id()))
}

/// Asserts that a message is one printable line: files choose names and values, and messages go to terminals and logs.
pub fn check_message(message: &str) {
    assert!(!message.is_empty(), "an empty message");
    let control = message.chars().find(|c| c.is_control());
    assert!(control.is_none(), "a control character {control:?} in the message {message:?}");
    assert!(message.len() < 20_000, "a message of {} bytes", message.len());
}

/// A table with `classes` classes, votes and one feature.
#[must_use]
pub fn table(classes: usize, rows: usize) -> Table {
    let mut state = 1_u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut probs, mut votes, mut features) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let raw: Vec<f64> = (0..classes).map(|_| 1.0 + next(40) as f64).collect();
        let sum: f64 = raw.iter().sum();
        probs.extend(raw.iter().map(|x| x / sum));
        votes.extend((0..classes).map(|class| next(3) as u32 + u32::from(class == row % classes)));
        features.push(next(20) as f64);
    }
    let build = || -> pointsman::Result<Table> {
        let names = ["cat", "dog", "eel", "fox"].into_iter().take(classes);
        Table::new(names, probs)?.with_votes(votes)?.with_features(["length"], features)
    };
    build().expect("a table made by hand")
}

/// Valid parts of a calibration as bytes: without a cap, with a cap that drops rows, of several partitions, and one
/// without rows.
#[must_use]
pub fn good_parts() -> Vec<Vec<u8>> {
    let part = |(partition, cap, rows): (&str, Option<usize>, usize)| -> pointsman::Result<Partial> {
        let sample = if partition.starts_with("forest") { 80 } else { 12 };
        let partition: Partition = partition.parse()?;
        let like = Router::calibrate(&table(2, sample), &partition)?;
        let mut part = Partial::like(&like)?;
        if let Some(rows) = cap {
            part = part.capped(Cap { rows, seed: 7 })?;
        }
        let ids: Vec<u64> = (0..rows as u64).collect();
        part.add_with_ids(&table(2, rows).with_weights((1..=rows).map(|i| i as f64).collect())?, &ids)?;
        Ok(part)
    };
    let parts = [
        ("top-class:2", None, 6),
        ("top-class:2", Some(2), 9),
        ("confidence:3", Some(50), 6),
        ("level-sets", None, 6),
        ("features:x_length=3", Some(3), 12),
        ("top-class:2", Some(2), 0),
        ("forest:2", Some(20), 50),
    ];
    let bytes = |part| pointsman_table::partial_bytes(&part).expect("a part that can be written");
    parts.map(|made| bytes(part(made).expect("a part made by hand"))).into()
}

/// Valid policies as bytes: of cells, some of them empty, of a tree and of forests, with a limit, and with a measured oracle.
#[must_use]
pub fn good_policies() -> Vec<Vec<u8>> {
    let policy = |(partition, rows, budget): (&str, usize, Option<f64>)| -> pointsman::Result<pointsman::Policy> {
        let table = table(2, rows);
        let answers = table.predictions().to_vec();
        let router = Router::calibrate(&table.with_oracle("gpt", answers)?, &partition.parse::<Partition>()?)?;
        let task =
            Task::new(Loss::brier()).route("gpt", Oracle::measured(), 0.05)?.route("expert", Oracle::bayes(), 0.1)?;
        router.policy(&budget.map_or(Ok(task.clone()), |share| task.clone().budget(share))?)
    };
    let policies = [
        ("top-class:2", 12, None),
        ("forest:2", 80, Some(0.2)),
        ("top-class:3*features:x_length=4", 12, Some(0.3)),
        ("tree", 100, None),
        ("honest-forest:2", 100, None),
    ];
    let bytes = |policy| pointsman_table::policy_bytes(&policy).expect("a policy that can be written");
    policies.map(|made| bytes(policy(made).expect("a policy made by hand"))).into()
}
