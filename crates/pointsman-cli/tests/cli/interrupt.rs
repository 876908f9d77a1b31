//! Interrupts: the run ends at once and leaves no half-written file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{command, workshop, world};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Waits until it is so; a minute is plenty on any machine.
#[track_caller]
pub(crate) fn wait_until(mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal and gives the exit code.
#[track_caller]
pub(crate) fn signal(child: &mut Child, name: &str) -> Option<i32> {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
    wait_until(|| child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

#[test]
fn interrupted_decide_leaves_no_file() {
    for name in ["-INT", "-TERM"] {
        let folder = workshop();
        let before = names(folder.path());
        let args = "decide router.safetensors - -o out.csv --abstain 0.3 --batch-rows 10";
        let mut child =
            command().current_dir(folder.path()).args(args.split(' ')).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More rows may come: it waits for them, with its temporary file open.
        stdin.write_all(world::rows(100, 5).to_csv().as_bytes()).unwrap();
        wait_until(|| names(folder.path()).len() > before.len());
        assert_eq!(signal(&mut child, name), Some(130), "{name}");
        assert_eq!(names(folder.path()), before, "{name}");
        drop(stdin);
    }
}

#[test]
fn interrupted_demo_ends() {
    let folder = TempDir::new().unwrap();
    let mut child = command()
        .current_dir(folder.path())
        .args(["demo", "--rows", "10000000", "-o", "tour"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let tour = folder.path().join("tour");
    // The second table is being written.
    wait_until(|| {
        names(&tour).iter().filter(|name| *name == "calibration.csv" || name.ends_with(".part")).count() == 2
    });
    assert_eq!(signal(&mut child, "-INT"), Some(130));
    assert_eq!(names(&tour), [".pointsman-demo", "calibration.csv"]);
}
