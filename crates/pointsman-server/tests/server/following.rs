//! Readers who follow the log by ids while decisions are made: each decision is read once, in whatever order they are committed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_server::clock::Time;
use pointsman_server::store::sqlite::{Settings, SqliteStore};
use pointsman_server::store::{
    AdminEntry, Appended, Change, Changed, LogQuery, Record, Registry, Reply, Sha256, Store,
};
use serde_json::json;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::support::{Service, policy};

const DECIDE: &str = "/v1/deployments/d/decide";

/// A store that holds the decision on the caller's id `late` back until a permit is added.
#[derive(Debug)]
struct Late {
    store: SqliteStore,
    permits: Semaphore,
}

impl Store for Late {
    fn append_alike(&self, records: Arc<Vec<Record>>, alike: Arc<[u32]>) -> Reply<'_, Vec<Appended>> {
        Box::pin(async move {
            if records.iter().any(|record| record.client_id.as_deref() == Some("late")) {
                self.permits.acquire().await.unwrap().forget();
            }
            self.store.append_alike(records, alike).await
        })
    }

    fn decision(&self, id: Uuid) -> Reply<'_, Option<Record>> {
        self.store.decision(id)
    }

    fn decisions(&self, query: LogQuery) -> Reply<'_, Vec<Record>> {
        self.store.decisions(query)
    }

    fn largest_id(&self) -> Reply<'_, Option<Uuid>> {
        self.store.largest_id()
    }

    fn waiting_rows(&self) -> usize {
        self.store.waiting_rows()
    }

    fn registry(&self) -> Reply<'_, Registry> {
        self.store.registry()
    }

    fn generation(&self) -> Reply<'_, u64> {
        self.store.generation()
    }

    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.store.changed()
    }

    fn change(&self, change: Change, by: String) -> Reply<'_, Changed> {
        self.store.change(change, by)
    }

    fn add_file(&self, bytes: Vec<u8>) -> Reply<'_, Sha256> {
        self.store.add_file(bytes)
    }

    fn file(&self, hash: Sha256) -> Reply<'_, Option<Vec<u8>>> {
        self.store.file(hash)
    }

    fn admin_log(&self, after: u64, limit: usize) -> Reply<'_, Vec<AdminEntry>> {
        self.store.admin_log(after, limit)
    }

    fn prune(&self, decisions_before: Option<Time>, inputs_before: Option<Time>) -> Reply<'_, ()> {
        self.store.prune(decisions_before, inputs_before)
    }

    fn check(&self) -> Reply<'_, ()> {
        self.store.check()
    }

    fn close(&self) -> Reply<'_, ()> {
        self.store.close()
    }
}

/// The next decisions after the last ones that were read.
async fn follow(service: &Service, read: &mut Vec<Uuid>) {
    let after = read.last().map_or_else(String::new, |id| format!("&after={id}"));
    let page = service.get(&format!("/v1/deployments/d/decisions?limit=1000{after}")).await.ok();
    let ids = page["decisions"].as_array().unwrap().iter().map(|decision| decision["decision_id"].as_str().unwrap());
    read.extend(ids.map(|id| id.parse::<Uuid>().unwrap()));
}

async fn decide(service: &Service, id: &str) -> Uuid {
    let answer = service.post(DECIDE, json!({"id": id, "probs": [0.5, 0.3, 0.2]})).await.ok();
    answer["decision_id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_decision_that_is_committed_late_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("s.db"), Settings::default()).unwrap();
    let late = Arc::new(Late { store, permits: Semaphore::new(0) });
    let service = Arc::new(Service::on(Arc::clone(&late) as Arc<dyn Store>).await);
    service.deploy(&policy()).await;
    let mut read = Vec::new();
    let first = decide(&service, "first").await;
    follow(&service, &mut read).await;
    assert_eq!(read, [first], "what was answered can be read at once");
    let slow = {
        let service = Arc::clone(&service);
        tokio::spawn(async move { decide(&service, "late").await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let second = decide(&service, "second").await;
    follow(&service, &mut read).await;
    assert_eq!(read, [first], "a decision with a smaller id may still come");
    // The decision itself is there, and so is its export once nothing is missing before it.
    assert!(service.get(&format!("/v1/decisions/{second}")).await.status.is_success());
    late.permits.add_permits(1);
    let slow = slow.await.unwrap();
    assert!(slow < second);
    follow(&service, &mut read).await;
    assert_eq!(read, [first, slow, second]);
    // Requests that are given up, or refused, keep nobody waiting.
    let gone = {
        let service = Arc::clone(&service);
        tokio::spawn(async move { decide(&service, "late").await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    gone.abort();
    let _ = gone.await;
    let third = decide(&service, "third").await;
    follow(&service, &mut read).await;
    assert_eq!(read, [first, slow, second, third]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_reads_every_decision_once_while_many_are_made() {
    const CLIENTS: usize = 8;
    const EACH: usize = 150;
    let service = Arc::new(Service::new().await);
    service.deploy(&policy()).await;
    let running = Arc::new(AtomicUsize::new(CLIENTS));
    let client = |client: usize| {
        let (service, running) = (Arc::clone(&service), Arc::clone(&running));
        tokio::spawn(async move {
            let mut made = Vec::new();
            for n in 0..EACH {
                made.push(decide(&service, &format!("{client}-{n}")).await);
            }
            running.fetch_sub(1, Ordering::Release);
            made
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let mut read = Vec::new();
    while running.load(Ordering::Acquire) > 0 {
        follow(&service, &mut read).await;
    }
    follow(&service, &mut read).await;
    follow(&service, &mut read).await;
    let mut made = Vec::new();
    for client in clients {
        made.extend(client.await.unwrap());
    }
    made.sort();
    assert_eq!(read, made);
}
