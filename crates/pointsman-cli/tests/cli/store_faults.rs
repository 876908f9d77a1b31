//! Stores that cannot be written for a while: requests are refused with the reason and when to try again, and nothing that was answered is
//! lost. The service goes on by itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pointsman_testing::disk;
use rusqlite::Connection;
use serde_json::json;

use crate::faults::{DECIDE, Decided, Load, assert_intact, assert_logged_once};
use crate::interrupt::{signal, wait_until};
use crate::serve::{Service, deployed, deployed_with, run_by};
use crate::{Run, command, workshop};

/// Small files, so that the log goes on in new ones meanwhile.
const SMALL_JOURNALS: &str = "[store]\nsegment_megabytes = 1\n";

fn query() -> serde_json::Value {
    json!({"probs": [0.5, 0.3, 0.2]})
}

/// So many queries that a few requests fill a small journal.
fn many_queries() -> serde_json::Value {
    json!({"rows": vec![query(); 2000]})
}

/// Fails unless `/readyz` says no, with one of these reasons.
#[track_caller]
fn assert_not_ready(service: &Service, reasons: &[&str]) {
    let answer = service.answer("/readyz", None);
    assert_eq!(answer.status, 503, "{answer:?}");
    let ready = answer.json();
    let said = ready["reasons"][0].as_str().unwrap();
    assert!(ready["ready"] == false && reasons.iter().any(|reason| said.contains(reason)), "{answer:?}");
}

/// Fails unless requests are refused with one of these reasons and with when to try again.
#[track_caller]
fn assert_refused(service: &Service, reasons: &[&str]) {
    let answer = service.answer(DECIDE, Some(&query()));
    assert_eq!((answer.status, answer.retry_after.as_deref()), (503, Some("1")), "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["type"], "urn:pointsman:unavailable");
    assert!(reasons.iter().any(|reason| problem["detail"].as_str().unwrap().contains(reason)), "{answer:?}");
    assert_not_ready(service, reasons);
    assert_eq!(service.answer("/healthz", None).status, 200);
    // What is there can still be read.
    assert_eq!(service.answer("/v1/deployments/d/decisions?limit=1", None).status, 200);
}

/// A service under load meets a fault, which `begin` starts and `end` ends. Gives the decisions that were answered.
#[track_caller]
fn assert_survives(service: &mut Service, reasons: &[&str], begin: impl FnOnce(), end: impl FnOnce()) -> Vec<Decided> {
    let load = Load::start("load", 2, &[&service.url]);
    std::thread::sleep(Duration::from_millis(200));
    begin();
    // Where there is no room for many, there may still be some for one.
    let is_refused = |body| service.answer(DECIDE, Some(&body)).status == 503;
    wait_until(|| is_refused(many_queries()) && is_refused(query()));
    assert_refused(service, reasons);
    end();
    wait_until(|| service.answer("/readyz", None).status == 200);
    wait_until(|| service.answer(DECIDE, Some(&query())).status == 200);
    std::thread::sleep(Duration::from_millis(200));
    let answered = load.stop();
    assert!(service.child.try_wait().unwrap().is_none(), "the service has ended");
    let clients = |client: &str| answered.iter().filter(|(id, _)| id.starts_with(client)).count();
    assert!(clients("load-0-") > 5 && clients("load-1-") > 5, "only {} decisions were answered", answered.len());
    answered
}

/// Fails unless everything that was answered is in the log once, now and after a restart, and all files are whole.
#[track_caller]
fn assert_kept(mut service: Service, folder: &Path, answered: &[Decided]) {
    assert_logged_once(answered, &service);
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
    assert_intact(folder);
    let mut service = Service::start(folder, &[]);
    assert_logged_once(answered, &service);
    let (id, decision) = &answered[answered.len() / 2];
    let again = service.post(DECIDE, &json!({"id": id, "probs": [0.5, 0.3, 0.2]})).unwrap();
    assert_eq!(again["decision_id"], *decision);
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
}

/// A copy of the router in another folder.
fn furnish(folder: &Path) {
    let workshop = workshop();
    fs::copy(workshop.path().join("router.safetensors"), folder.join("router.safetensors")).unwrap();
    fs::write(folder.join("p.toml"), SMALL_JOURNALS).unwrap();
}

#[test]
fn a_full_disk_refuses_requests_and_loses_nothing() {
    let Some(disk) = disk::mount(24) else { return };
    let folder = disk.path();
    furnish(folder);
    let mut service = deployed(folder, &["--config", "p.toml"]);
    // Readiness writes, so that it notices before the first decision is refused.
    assert_eq!(service.answer("/readyz", None).status, 200);
    disk.fill();
    assert_not_ready(&service, &["No space left"]);
    disk.empty();
    assert_eq!(service.answer("/readyz", None).status, 200);
    let reasons = ["disk is full", "No space left"];
    let answered = assert_survives(&mut service, &reasons, || disk.fill(), || disk.empty());
    // Changes of the registry are refused likewise.
    disk.fill();
    let refused = service.client(folder, "deployments put e");
    assert!(refused.code == 2 && refused.stderr.contains("full"), "{refused:?}");
    disk.empty();
    service.client(folder, "deployments put e").ok();
    assert_kept(service, folder, &answered);
}

/// Sets the limit of the size of files of a process, whose writes beyond it then fail.
fn limit_sizes(pid: u32, bytes: &str) -> bool {
    let run = Command::new("prlimit").args(["--pid", &pid.to_string(), &format!("--fsize={bytes}")]).status();
    run.is_ok_and(|status| status.success())
}

/// A command that runs a program which goes on when a write fails because of this limit; `None` if that cannot be tested.
fn bound_by_sizes() -> Option<Command> {
    if !limit_sizes(std::process::id(), "unlimited:unlimited") {
        pointsman_testing::skip("no prlimit, or a limit of the size of files: writes that fail are not tested");
        return None;
    }
    Some(run_by("sh", &["-c", "trap '' XFSZ; exec \"$@\"", "sh"]))
}

/// There is room for the few bytes of a check, and none for a decision.
#[test]
fn readiness_waits_until_there_is_room_for_what_failed() {
    let folder = workshop();
    let path = folder.path();
    let Some(serve) = bound_by_sizes() else { return };
    let service = deployed_with(serve, path, &[]);
    let rows = json!({"rows": vec![query(); 100]});
    assert!(service.post(DECIDE, &rows).is_some());
    let length = files(path, "journal").iter().map(|file| fs::metadata(file).unwrap().len()).max().unwrap();
    assert!(length > 4096, "a check writes a file of this size");
    assert!(limit_sizes(service.child.id(), &format!("{}:unlimited", length + 20)));
    assert_eq!(service.answer("/readyz", None).status, 200, "nothing has failed yet");
    for _ in 0..3 {
        assert_eq!(service.answer(DECIDE, Some(&query())).status, 503);
        assert_not_ready(&service, &["File too large"]);
    }
    assert!(limit_sizes(service.child.id(), "unlimited:unlimited"));
    assert_eq!(service.answer("/readyz", None).status, 200);
    assert!(service.post(DECIDE, &query()).is_some());
}

#[test]
fn files_that_cannot_grow_refuse_requests_and_lose_nothing() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("p.toml"), SMALL_JOURNALS).unwrap();
    let Some(serve) = bound_by_sizes() else { return };
    let mut service = deployed_with(serve, path, &["--config", "p.toml"]);
    let pid = service.child.id();
    let [begin, end] = ["1:unlimited", "unlimited:unlimited"].map(|bytes| move || assert!(limit_sizes(pid, bytes)));
    begin();
    assert_not_ready(&service, &["File too large"]);
    end();
    assert_eq!(service.answer("/readyz", None).status, 200);
    let answered = assert_survives(&mut service, &["disk I/O error", "File too large"], begin, end);
    assert_kept(service, path, &answered);
}

/// The files of the log with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("pointsman.db-log")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|other| other == extension)).collect()
}

/// The number of the newest journal.
pub(crate) fn newest_journal(folder: &Path) -> u64 {
    let number = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    files(folder, "journal").into_iter().map(number).max().unwrap()
}

#[test]
fn a_database_that_another_process_locks_refuses_requests_and_loses_nothing() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("p.toml"), SMALL_JOURNALS).unwrap();
    let mut service = deployed(path, &["--config", "p.toml"]);
    let lock = |file: &Path| {
        let connection = Connection::open(file).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    };
    // The registry is a file of its own: whoever locks it stops changes, not decisions.
    let registry = lock(&path.join("pointsman.db"));
    let changed = std::thread::scope(|scope| {
        let change = scope.spawn(|| service.client(path, "deployments put e"));
        for _ in 0..20 {
            assert_eq!(service.answer(DECIDE, Some(&query())).status, 200);
        }
        change.join().unwrap()
    });
    assert!(changed.code == 2 && changed.stderr.contains("locked"), "{changed:?}");
    drop(registry);
    service.client(path, "deployments put e").ok();
    let locks = std::cell::RefCell::new(Vec::new());
    // Decisions are answered until as much waits to be archived as may wait.
    let begin = || locks.borrow_mut().extend(files(path, "db").iter().map(|file| lock(file)));
    let answered = assert_survives(&mut service, &["database is locked"], begin, || locks.borrow_mut().clear());
    assert_kept(service, path, &answered);
}

/// The program without root's right to write where permissions forbid it; `None`, after saying so, if that cannot be had.
fn bound_by_permissions() -> Option<Command> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    let may_write = |command: &mut Command| {
        let status =
            command.args(["sh", "-c", "echo >\"$1/probe\" && rm \"$1/probe\"", "sh"]).arg(folder.path()).status();
        status.map(|status| status.success()).unwrap_or(true)
    };
    if !may_write(Command::new("env").stderr(std::process::Stdio::null())) {
        return Some(command());
    }
    let without = ["--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"];
    if may_write(Command::new("setpriv").args(without).stderr(std::process::Stdio::null())) {
        pointsman_testing::skip("no setpriv: root writes whatever is read-only, which is not tested");
        return None;
    }
    Some(run_by("setpriv", &without))
}

/// The same command, whose messages go to the file `messages` of its folder.
fn with_messages(command: &Command) -> Command {
    let mut with_messages = Command::new("sh");
    with_messages.args(["-c", "exec \"$@\" 2>messages", "sh"]).arg(command.get_program()).args(command.get_args());
    with_messages
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_becomes_read_only_is_named_and_loses_nothing() {
    let Some(serve) = bound_by_permissions() else { return };
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("p.toml"), SMALL_JOURNALS).unwrap();
    let service = deployed_with(with_messages(&serve), path, &["--config", "p.toml"]);
    let messages = |what: &str| fs::read_to_string(path.join("messages")).unwrap().matches(what).count();
    let log = path.join("pointsman.db-log");
    let load = Load::start("load", 2, &[&service.url]);
    // Requests of many queries fill journals sooner than the load does.
    let reaches = |number: u64| {
        service.answer(DECIDE, Some(&many_queries()));
        newest_journal(path) > number
    };
    wait_until(|| reaches(3));
    set_mode(&log, 0o555);
    assert_not_ready(&service, &["Permission denied", "readonly database", "unable to open"]);
    // A file that is open can be written.
    for _ in 0..50 {
        let answer = service.answer(DECIDE, Some(&query()));
        assert!(answer.status == 200 || answer.status == 503 && answer.retry_after.is_some(), "{answer:?}");
    }
    // Files cannot be made; decisions move on, and nobody is told again and again.
    wait_until(|| {
        service.answer(DECIDE, Some(&many_queries()));
        messages("decisions cannot be archived yet") > 0
    });
    std::thread::sleep(Duration::from_secs(3));
    let newest = newest_journal(path);
    set_mode(&log, 0o755);
    wait_until(|| service.answer("/readyz", None).status == 200);
    wait_until(|| reaches(newest));
    wait_until(|| messages("decisions are archived again") > 0);
    assert_eq!(messages("decisions cannot be archived yet"), 1);
    assert_eq!(messages("decisions are archived again"), 1);
    let answered = load.stop();
    assert_kept(service, path, &answered);
}

/// Starts a service that must end by itself.
#[track_caller]
fn start_in_vain(mut serve: Command, folder: &Path) -> Run {
    let (out, err) = (folder.join("out"), folder.join("err"));
    serve.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0"]);
    serve.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
    let mut service = Service { child: serve.spawn().unwrap(), url: String::new() };
    wait_until(|| service.child.try_wait().unwrap().is_some());
    let text = |path| fs::read_to_string(path).unwrap();
    Run { code: service.child.wait().unwrap().code().unwrap(), stdout: text(out), stderr: text(err) }
}

#[test]
fn a_store_that_cannot_be_written_is_named_at_the_start() {
    if bound_by_permissions().is_none() {
        return;
    }
    let folder = workshop();
    let path = folder.path();
    let mut service = deployed(path, &[]);
    let answered = service.post(DECIDE, &json!({"id": "q", "probs": [0.5, 0.3, 0.2]})).unwrap();
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
    let mut files = vec![path.join("pointsman.db"), path.join("pointsman.db-lock"), path.join("pointsman.db-log")];
    files.extend(self::files(path, "db"));
    for file in &files {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        set_mode(file, mode & 0o555);
        let run = start_in_vain(bound_by_permissions().unwrap(), path);
        assert_eq!(run.code, 2, "{}: {run:?}", file.display());
        assert!(run.stderr.contains("pointsman.db"), "{}: {run:?}", file.display());
        set_mode(file, mode);
    }
    let service = Service::start(path, &[]);
    let again = service.post(DECIDE, &json!({"id": "q", "probs": [0.5, 0.3, 0.2]})).unwrap();
    assert_eq!(again["decision_id"], answered["decision_id"]);
}
