//! Several services on one PostgreSQL: they decide as one.

use std::fs;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use pointsman_testing::postgres;
use serde_json::json;

use crate::faults::{DECIDE, Load, assert_logged_once, logged};
use crate::interrupt::{signal, wait_until};
use crate::serve::{Service, TASK, deployed};
use crate::{command, finish, workshop};

#[test]
fn an_activation_on_one_replica_is_served_by_the_other_within_a_second() {
    let Some(cluster) = postgres::shared() else { return };
    let (folder, database) = (workshop(), cluster.database());
    let path = folder.path();
    let store = ["--store", &database.url];
    let one = deployed(path, &store);
    let two = Service::start(path, &store);
    fs::write(path.join("dear.toml"), TASK.replace("0.05", "0.5")).unwrap();
    one.client(path, "versions add d router.safetensors --task dear.toml").ok();
    let decide = |service: &Service| service.post(DECIDE, &json!({"probs": [0.4, 0.3, 0.3]})).unwrap();
    assert_eq!(decide(&two)["version"], 1);
    for round in 0..6 {
        let version = 2 - round % 2;
        let (here, there) = if round % 3 == 0 { (&two, &one) } else { (&one, &two) };
        here.post(&format!("/v1/deployments/d/versions/{version}/activate"), &json!({})).unwrap();
        let start = Instant::now();
        while decide(there)["version"] != version {
            assert!(start.elapsed() < Duration::from_secs(1), "version {version} is not served by the other replica");
        }
    }
    // Keys that the command line makes are followed, too.
    let add = ["keys", "add", "app", "--scope", "admin", "--store", &database.url];
    let key = finish(command().current_dir(path).args(add)).ok().stdout.trim().to_owned();
    for service in [&one, &two] {
        wait_until(|| service.client(path, "deployments list").code == 2);
        service.client(path, &format!("deployments list --key {key}")).ok();
    }
}

#[test]
fn an_id_sent_to_two_replicas_at_once_is_decided_once() {
    const IDS: usize = 60;
    let Some(cluster) = postgres::shared() else { return };
    let (folder, database) = (workshop(), cluster.database());
    let store = ["--store", &database.url];
    let services = [deployed(folder.path(), &store), Service::start(folder.path(), &store)];
    let barrier = Barrier::new(2);
    let ask = |service: &Service| -> Vec<String> {
        let ask_one = |n: usize| {
            barrier.wait();
            let answer = service.post(DECIDE, &json!({"id": format!("q{n}"), "probs": [0.5, 0.3, 0.2]})).unwrap();
            answer["decision_id"].as_str().unwrap().to_owned()
        };
        (0..IDS).map(ask_one).collect()
    };
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = services.iter().map(|service| scope.spawn(|| ask(service))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(logged(&services[0]).len(), IDS);
}

#[test]
fn killing_a_replica_loses_and_doubles_nothing() {
    let Some(cluster) = postgres::shared() else { return };
    let (folder, database) = (workshop(), cluster.database());
    let path = folder.path();
    let store = ["--store", &database.url];
    let one = deployed(path, &store);
    let mut two = Service::start(path, &store);
    let mut answered = Vec::new();
    for round in 0..4 {
        let load = Load::start(&format!("r{round}"), 4, &[&one.url, &two.url]);
        std::thread::sleep(Duration::from_millis(100 + 70 * round));
        two.child.kill().unwrap();
        two.child.wait().unwrap();
        // The other one goes on alone for a while.
        std::thread::sleep(Duration::from_millis(100));
        let decided = load.stop();
        for client in ["0", "1"] {
            assert!(decided.iter().any(|(id, _)| id.starts_with(&format!("r{round}-{client}-"))), "a replica was idle");
        }
        answered.extend(decided);
        two = Service::start(path, &store);
    }
    assert_logged_once(&answered, &two);
    // What the killed one decided, the other one knows.
    for (id, decision) in answered.iter().step_by(1 + answered.len() / 30) {
        let again = one.post(DECIDE, &json!({"id": id, "probs": [0.5, 0.3, 0.2]})).unwrap();
        assert_eq!(again["decision_id"], *decision);
    }
}

#[test]
fn passwords_of_the_database_are_not_printed() {
    let Some(cluster) = postgres::shared() else { return };
    let (folder, database) = (workshop(), cluster.database());
    let path = folder.path();
    let serve = |url: &str| {
        let mut serve = command();
        serve.current_dir(path).args(["serve", "--listen", "127.0.0.1:0"]);
        serve.env("POINTSMAN_STORE_URL", url).env("POINTSMAN_LOG", "trace");
        serve
    };
    let files = ["out", "err"].map(|name| fs::File::create(path.join(name)).unwrap());
    let [out, err] = files;
    let mut child = serve(&database.url).stdout(out).stderr(err).spawn().unwrap();
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    wait_until(|| read("out").contains("openapi.json"));
    assert_eq!(signal(&mut child, "-TERM"), Some(0));
    assert!(read("out").contains("store postgres://"), "{}", read("out"));
    let wrong = finish(&mut serve(&database.url.replace("/pointsman_test", "/none")));
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("does not exist"), "{wrong:?}");
    let unreadable = finish(&mut serve(&database.url.replace("postgres:", "postgress:")));
    assert_eq!(unreadable.code, 2);
    for text in [read("out"), read("err"), wrong.stderr, unreadable.stderr] {
        assert!(!text.contains(database.password()), "{text}");
    }
}

#[test]
fn backups_of_postgres_are_left_to_its_own_tools() {
    let folder = workshop();
    let run = crate::line(folder.path(), "backup -o copy --store postgres://u:canary@localhost/points");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("pg_dump") && !run.stderr.contains("canary"), "{run:?}");
    assert!(!folder.path().join("copy").exists());
}
