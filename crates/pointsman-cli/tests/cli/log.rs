//! What comes out of the log of a service: exports, what-if, the log of administration.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::interrupt::wait_until;
use crate::serve::{Service, deployed, post};
use crate::store_faults::newest_journal;
use crate::{Run, command, finish, line, parse_csv, workshop};

/// Prices at which every action is taken.
const PRICES: &str = "abstain = 0.55\n[[route]]\nname = \"expert\"\ncost = 0.05\n";

/// A service that has decided the held-out rows, some with an id of the caller's, and the answers.
fn with_traffic(folder: &Path) -> (Service, Vec<Value>) {
    let service = deployed(folder, &[]);
    fs::write(folder.join("task.toml"), PRICES).unwrap();
    service.client(folder, "versions add d router.safetensors --task task.toml --activate").ok();
    let (columns, rows) = parse_csv(&fs::read_to_string(folder.join("heldout.csv")).unwrap());
    let probs: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].starts_with("prob_")).collect();
    let query = |(place, row): (usize, &Vec<String>)| {
        let probs: Vec<f64> = probs.iter().map(|&i| row[i].parse().unwrap()).collect();
        let id = place.is_multiple_of(2).then(|| format!("q{place}"));
        json!({"probs": probs, "id": id, "tags": {"half": (place % 2).to_string()}})
    };
    let body = json!({"rows": rows.iter().enumerate().map(query).collect::<Vec<_>>()});
    let answers = service.post("/v1/deployments/d/decide", &body).unwrap()["rows"].as_array().unwrap().clone();
    (service, answers)
}

fn refused(run: &Run, words: &str) {
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains(words), "{words}: {run:?}");
}

#[test]
fn exports_are_decided_again_with_the_same_numbers() {
    let folder = workshop();
    let path = folder.path();
    let (service, answers) = with_traffic(path);
    for name in ["log.parquet", "log.csv", "log.jsonl"] {
        let words = service.client(path, &format!("decisions export d -o {name}")).ok().words();
        assert!(words.contains(&format!("wrote {name}")), "{words}");
        let decided =
            line(path, &format!("decide router.safetensors {name} --task task.toml --keep none -o -")).ok().stdout;
        let (names, rows) = parse_csv(&decided);
        let place = |name: &str| names.iter().position(|other| other == name).unwrap();
        assert_eq!(rows.len(), answers.len());
        for (row, answer) in rows.iter().zip(&answers) {
            assert_eq!(answer["action"], row[place("action")]);
            let cost: f64 = row[place("cost_route_expert")].parse().unwrap();
            assert_eq!(cost.to_bits(), answer["costs"]["route:expert"].as_f64().unwrap().to_bits());
        }
    }
    let wanted = answers.iter().filter(|answer| answer["action"] == "route:expert").count();
    assert!(wanted > 10, "{wanted} queries are routed");
    let routed = service.client(path, "decisions export d -o - --action route:expert").ok().stdout;
    assert_eq!(parse_csv(&routed).1.len(), wanted);
    let half = service.client(path, "decisions export d -o - --tag half=1 --limit 3 --output-format jsonl").ok().stdout;
    assert_eq!(half.lines().count(), 3);
    // The exported ids join labels: every id is there once.
    fs::write(path.join("labels.csv"), labels(&answers)).unwrap();
    line(path, "evaluate router.safetensors log.parquet --annotations labels.csv --strict --task task.toml").ok();
}

/// Two labels per decision, by the id that its export has.
fn labels(answers: &[Value]) -> String {
    let mut text = "id,label\n".to_owned();
    for answer in answers {
        let id = answer["id"].as_str().unwrap_or(answer["decision_id"].as_str().unwrap());
        text += &format!("{id},{0}\n{id},{0}\n", answer["label"].as_str().unwrap());
    }
    text
}

#[test]
fn exports_never_replace_other_files_and_are_whole() {
    let folder = workshop();
    let path = folder.path();
    let (service, _) = with_traffic(path);
    refused(&service.client(path, "decisions export d -o heldout.csv"), "is a table, which would be lost");
    refused(&service.client(path, "decisions export d -o log.npz"), "the service does not write npz");
    refused(&service.client(path, "decisions export d -o log.csv.gz"), "not compressed");
    refused(&service.client(path, "decisions export e -o log.csv"), "there is no deployment");
    refused(&service.client(path, "decisions export d -o log.csv --action guess"), "no version has the action");
    refused(&service.client(path, "decisions export d -o log.csv --from soon"), "is not a time");
    assert!(!path.join("log.csv").exists());
    service.client(path, "decisions export d -o log.csv").ok();
    let whole = fs::read(path.join("log.csv")).unwrap();
    // An export replaces an export; one that breaks off leaves the old one.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let broken = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}8\r\nid,at\n1,\r\n").as_bytes()).unwrap();
    });
    let run = finish(command().current_dir(path).args(["decisions", "export", "d", "-o", "log.csv", "--url", &url]));
    broken.join().unwrap();
    refused(&run, "broke off");
    assert_eq!(fs::read(path.join("log.csv")).unwrap(), whole);
    let left =
        fs::read_dir(path).unwrap().filter(|entry| entry.as_ref().unwrap().path().to_string_lossy().ends_with(".part"));
    assert_eq!(left.count(), 0);
}

#[test]
fn exported_logs_give_what_the_service_answers() {
    let folder = workshop();
    let path = folder.path();
    let (service, answers) = with_traffic(path);
    for name in ["log.parquet", "log.csv", "log.jsonl"] {
        service.client(path, &format!("decisions export d -o {name} --no-inputs")).ok();
    }
    let tasks =
        [PRICES.replace("0.05", "0.1"), PRICES.replace("abstain = 0.55\n", ""), format!("budget = 0.1\n{PRICES}")];
    for task in tasks {
        fs::write(path.join("new.toml"), &task).unwrap();
        let online = service.post("/v1/deployments/d/what-if", &json!({"task": task})).unwrap();
        assert_eq!(online["decisions"], answers.len());
        assert!(online["changed"].as_u64().unwrap() > 0);
        for name in ["log.parquet", "log.csv", "log.jsonl"] {
            let offline = line(path, &format!("what-if {name} router.safetensors --task new.toml --json")).ok().json();
            for field in ["decisions", "changed", "matrix", "shares", "shares_before", "cells"] {
                assert_eq!(offline[field], online[field], "{name}: {field}");
            }
            for field in ["expected", "before", "difference", "difference_standard_error", "not_compared"] {
                assert_eq!(offline["cost"][field], online["cost"][field], "{name}: {field}");
            }
        }
    }
}

/// All decisions of a service: the caller's id and the decision's.
fn logged(service: &Service) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/v1/deployments/d/decisions?limit=5000{after}"));
        all.extend(page["decisions"].as_array().unwrap().iter().map(|d| (text(&d["id"]), text(&d["decision_id"]))));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

#[test]
fn backups_under_load_have_every_acknowledged_decision_once() {
    let folder = workshop();
    let path = folder.path();
    // Small files, so that the log goes on in new ones meanwhile.
    fs::write(path.join("p.toml"), "[store]\nsegment_megabytes = 1\n").unwrap();
    let mut service = deployed(path, &["--config", "p.toml"]);
    let is_done = Arc::new(AtomicBool::new(false));
    let answered: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let clients: Vec<_> = (0..3)
        .map(|client| {
            let (url, is_done, answered) = (service.url.clone(), Arc::clone(&is_done), Arc::clone(&answered));
            std::thread::spawn(move || {
                for request in (0..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                    let id = |row: usize| format!("{client}-{request}-{row}");
                    let rows =
                        (0..40).map(|row| json!({"probs": [0.5, 0.3, 0.2], "id": id(row), "input": "x".repeat(200)}));
                    let body = json!({"rows": rows.collect::<Vec<_>>()});
                    let Some(answer) = post(&url, "/v1/deployments/d/decide", &body) else { continue };
                    let pair =
                        |(row, answer): (usize, &Value)| (id(row), answer["decision_id"].as_str().unwrap().to_owned());
                    answered.lock().unwrap().extend(answer["rows"].as_array().unwrap().iter().enumerate().map(pair));
                }
            })
        })
        .collect();
    let mut backups = Vec::new();
    for round in 0..3 {
        let before = answered.lock().unwrap().len();
        wait_until(|| answered.lock().unwrap().len() > before + 2_000);
        let acknowledged = answered.lock().unwrap().clone();
        let words = line(path, &format!("backup -o copy{round} --config p.toml")).ok().words();
        assert!(words.contains(&format!("wrote copy{round}")), "{words}");
        backups.push(acknowledged);
    }
    is_done.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    let journals = newest_journal(path);
    assert!(journals > 2, "the log had {journals} journals: too few for this test");
    for (round, acknowledged) in backups.iter().enumerate() {
        let restored = Service::start(path, &["--store", &format!("sqlite:copy{round}/pointsman.db")]);
        let found = logged(&restored);
        let distinct: HashSet<&(String, String)> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "a decision is there twice");
        assert_eq!(found.iter().map(|(id, _)| id).collect::<HashSet<_>>().len(), found.len(), "an id is there twice");
        let lost = acknowledged.iter().filter(|decision| !distinct.contains(decision)).count();
        assert_eq!(lost, 0, "of {} decisions answered before the backup", acknowledged.len());
        // It is a store like any other: ids are known, and it goes on.
        let (id, decision) = &acknowledged[0];
        let decide =
            |id: &str| restored.post("/v1/deployments/d/decide", &json!({"id": id, "probs": [0.5, 0.3, 0.2]})).unwrap();
        assert_eq!(decide(id)["decision_id"], *decision);
        decide("new");
        assert_eq!(logged(&restored).len(), found.len() + 1);
    }
}

#[test]
fn backups_need_a_store_and_a_new_folder() {
    let folder = workshop();
    let path = folder.path();
    refused(&line(path, "backup -o copy"), "there is no store");
    let (service, answers) = with_traffic(path);
    drop(service);
    let copied = line(path, "backup -o copy --json").ok().json();
    assert_eq!(copied["decisions"], answers.len());
    refused(&line(path, "backup -o copy"), "a backup needs a new folder");
    refused(&line(path, "backup -o none/copy"), "none");
    let left = fs::read_dir(path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".pointsman-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn changes_of_administration_are_listed() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    let list = service.client(path, "admin-log").ok().words();
    assert!(list.contains("put deployment d") && list.contains("loopback"), "{list}");
    let answer = service.client(path, "admin-log --after 1 --limit 1 --json").ok().json();
    assert!(answer["entries"][0]["what"].as_str().unwrap().starts_with("add version 1 to d"), "{answer}");
}
