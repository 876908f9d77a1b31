//! Services that are killed under load: whatever they answered is in the log, exactly once.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pointsman_testing::{Rng, postgres};
use rusqlite::Connection;
use serde_json::json;

use crate::interrupt::{signal, wait_until};
use crate::serve::{Service, deployed, post};
use crate::workshop;

const ROUNDS: usize = 50;

/// The promise on how long a service takes to start again after it was killed.
const LONGEST_START: Duration = Duration::from_secs(2);

pub(crate) const DECIDE: &str = "/v1/deployments/d/decide";

/// The id of a caller, and the decision that was answered.
pub(crate) type Decided = (String, String);

/// Clients that ask for decisions until a flag stops them.
pub(crate) struct Load {
    is_done: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Decided>>>,
}

impl Load {
    /// Starts clients, each with ids of its own, that send to these services in turn.
    pub(crate) fn start(name: &str, clients: usize, urls: &[&str]) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let start = |client: usize| {
            let (url, is_done) = (urls[client % urls.len()].to_owned(), Arc::clone(&is_done));
            let name = name.to_owned();
            std::thread::spawn(move || {
                let mut answered = Vec::new();
                for n in 0.. {
                    let id = format!("{name}-{client}-{n}");
                    match post(&url, DECIDE, &json!({"id": id, "probs": [0.5, 0.3, 0.2]})) {
                        Some(answer) => answered.push((id, answer["decision_id"].as_str().unwrap().to_owned())),
                        None => std::thread::sleep(Duration::from_millis(2)),
                    }
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                answered
            })
        };
        let clients = (0..clients).map(start).collect();
        Self { is_done, clients }
    }

    /// Stops the clients, and gives the decisions that were answered.
    pub(crate) fn stop(self) -> Vec<Decided> {
        self.is_done.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}

/// All decisions in the log, with the decision's own id where the caller gave none.
pub(crate) fn logged(service: &Service) -> Vec<Decided> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = service.get(&format!("/v1/deployments/d/decisions?limit=1000&inputs=false{after}"));
        all.extend(page["decisions"].as_array().unwrap().iter().map(|decision| {
            let own = decision["decision_id"].as_str().unwrap();
            (decision["id"].as_str().unwrap_or(own).to_owned(), own.to_owned())
        }));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// Fails unless every answered decision is in the log, and no id twice.
pub(crate) fn assert_logged_once(answered: &[Decided], service: &Service) {
    let log = logged(service);
    let distinct: HashSet<&String> = log.iter().map(|(id, _)| id).collect();
    assert_eq!(distinct.len(), log.len(), "an id is logged twice");
    let log: HashSet<&Decided> = log.iter().collect();
    for decision in answered {
        assert!(log.contains(decision), "{decision:?} was answered and is not in the log");
    }
}

/// Fails unless every file of a store in a folder is whole.
pub(crate) fn assert_intact(folder: &Path) {
    let log = fs::read_dir(folder.join("pointsman.db-log")).unwrap().map(|entry| entry.unwrap().path());
    let files = log.filter(|path| path.extension().is_some_and(|extension| extension == "db"));
    for file in files.chain([folder.join("pointsman.db")]) {
        let connection = Connection::open(&file).unwrap();
        let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok", "{}", file.display());
    }
}

/// Kills a service at random moments. `store` are lines of the section `[store]`.
fn keeps_decisions_when_killed(path: &Path, store: &str) {
    let configure = |round: usize| {
        let durability = ["process", "disk"][round % 2];
        fs::write(path.join("p.toml"), format!("[store]\ndurability = \"{durability}\"\n{store}")).unwrap();
    };
    configure(0);
    drop(deployed(path, &["--config", "p.toml"]));
    let mut rng = Rng::new(11);
    let mut answered: Vec<Decided> = Vec::new();
    let mut starts = Vec::new();
    for round in 0..ROUNDS {
        configure(round);
        let start = Instant::now();
        let mut service = Service::start(path, &["--config", "p.toml"]);
        starts.push(start.elapsed());
        let load = Load::start(&round.to_string(), 3, &[&service.url]);
        std::thread::sleep(Duration::from_millis(10 + rng.below(120) as u64));
        service.child.kill().unwrap();
        service.child.wait().unwrap();
        answered.extend(load.stop());
    }
    // A start reads what is in journals only, so that each is short, whenever the one before was killed.
    assert!(starts.iter().all(|start| *start < LONGEST_START), "starting took {starts:?}");
    assert!(answered.len() > ROUNDS, "only {} decisions were answered", answered.len());
    let mut service = Service::start(path, &["--config", "p.toml"]);
    assert_logged_once(&answered, &service);
    // The same ids give the first decisions again.
    for (id, decision) in answered.iter().step_by(1 + answered.len() / 20) {
        let again = service.post(DECIDE, &json!({"id": id, "probs": [0.5, 0.3, 0.2]})).unwrap();
        assert_eq!(again["decision_id"], *decision);
    }
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
}

#[test]
fn restarts_with_a_full_file_of_the_log_are_short() {
    let folder = workshop();
    let path = folder.path();
    let mut service = deployed(path, &[]);
    service.post(DECIDE, &json!({"probs": [0.5, 0.3, 0.2]})).unwrap();
    let archive = path.join("pointsman.db-log/00000001.db");
    wait_until(|| archive.exists());
    // A journal just below the size at which a new one is begun, nothing of which is archived.
    let lock = Connection::open(&archive).unwrap();
    lock.busy_timeout(Duration::from_secs(30)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let journal = || fs::metadata(path.join("pointsman.db-log/00000001.journal")).unwrap().len();
    while journal() < 62 << 20 {
        service.post(DECIDE, &json!({"probs": [0.5, 0.3, 0.2], "input": "x".repeat(1 << 20)})).unwrap();
    }
    let rows = logged(&service).len();
    assert!(rows > 60, "{rows} rows");
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    drop(lock);
    assert!(journal() >= 62 << 20, "there is nothing to archive");
    let start = Instant::now();
    let service = Service::start(path, &[]);
    let took = start.elapsed();
    assert!(took < LONGEST_START, "starting took {took:?}");
    assert_eq!(logged(&service).len(), rows);
}

mod reproduction {
    use super::*;

    #[test]
    fn services_killed_on_sqlite_keep_every_answered_decision_once() {
        let folder = workshop();
        keeps_decisions_when_killed(folder.path(), "segment_megabytes = 1\n");
        assert_intact(folder.path());
    }

    #[test]
    fn services_killed_on_postgres_keep_every_answered_decision_once() {
        let Some(cluster) = postgres::shared() else { return };
        let (folder, database) = (workshop(), cluster.database());
        keeps_decisions_when_killed(folder.path(), &format!("url = \"{}\"\n", database.url));
    }
}
