//! The real binary on small tables, and on real data if available.

mod attacks;
mod bad_input;
mod browser;
mod budget;
mod buying_labels;
mod calibrate;
mod certificates;
mod compare;
mod decide;
mod demo;
mod diagnose;
mod evaluate;
#[cfg(all(unix, feature = "serve"))]
mod faults;
#[cfg(unix)]
mod first_hour;
mod forest;
mod formats;
#[cfg(unix)]
mod interrupt;
mod keep;
mod licences;
#[cfg(all(unix, feature = "serve"))]
mod log;
mod merge;
mod mistakes;
mod narrow;
#[cfg(unix)]
mod new_user;
mod oracles;
mod output;
mod policy;
mod readme;
#[cfg(all(unix, feature = "serve"))]
mod replicas;
mod report_page;
mod reproduce;
mod second_round;
#[cfg(all(unix, feature = "serve"))]
mod secrets;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod serve_messages;
mod show;
#[cfg(all(unix, feature = "serve"))]
mod slow_clients;
#[cfg(all(unix, feature = "serve"))]
mod store_faults;
mod tables;
mod task;
mod way_in;
mod what_if;
mod wording;
mod world;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the binary gave.
#[derive(Debug)]
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    /// The run, which must have ended well.
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// What was printed, lines joined.
    fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman"));
    command.env_remove("CLICOLOR_FORCE").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs `pointsman` with these arguments.
fn pointsman<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    finish(command().args(args))
}

/// Runs `pointsman` with a line of arguments, split at spaces, in a folder.
fn line(folder: &Path, line: &str) -> Run {
    finish(command().current_dir(folder).args(line.split(' ')))
}

/// The same with text on standard input.
fn line_with_input(folder: &Path, line: &str, input: &str) -> Run {
    let mut child = command()
        .current_dir(folder)
        .args(line.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A reader that refuses the input early closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A folder with `calibration.csv`, `heldout.csv` and a router of three cells per class.
fn workshop() -> TempDir {
    static ROUTER: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = TempDir::new().unwrap();
    world::rows(300, 1).write_csv(&folder.path().join("calibration.csv"));
    world::rows(200, 2).write_csv(&folder.path().join("heldout.csv"));
    let router = folder.path().join("router.safetensors");
    let bytes = ROUTER.get_or_init(|| {
        line(folder.path(), "calibrate calibration.csv -o router.safetensors --partition top-class:3").ok();
        fs::read(&router).unwrap()
    });
    fs::write(&router, bytes).unwrap();
    folder
}

/// The folder of the whole project.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the real data; `None`, after [`pointsman_testing::announce`], if it is missing.
fn real_data(file: &str) -> Option<PathBuf> {
    let beside = repository().join("../shared/data");
    let folder = std::env::var_os("POINTSMAN_TEST_DATA").map_or(beside, PathBuf::from);
    let path = folder.join(file);
    if path.exists() {
        return Some(path);
    }
    pointsman_testing::announce(&format!(
        "{} is missing: set POINTSMAN_TEST_DATA to the folder of the data sets",
        path.display()
    ));
    None
}

/// The header and rows of a CSV file without quoted fields.
fn parse_csv(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// That these keys are there, whatever else is.
#[track_caller]
fn has_keys(value: &Value, wanted: &[&str]) {
    let keys = keys(value);
    for key in wanted {
        assert!(keys.contains(key), "{key} is not among {keys:?}");
    }
}
