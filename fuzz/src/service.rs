//! The service without a network and without a log of its own: requests go to its interface, and what they decide is counted only.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use pointsman_server::clock::Time;
use pointsman_server::store::sqlite::{Settings as SqliteSettings, SqliteStore};
use pointsman_server::store::{
    AdminEntry, Appended, Change, Changed, LogQuery, NewVersion, Record, Registry, Reply, Sha256, Store,
};
use pointsman_server::{Access, Api, App, Metrics, Settings, app};
use serde_json::Value;
use uuid::Uuid;

use crate::{check_message, good_policies, scratch};

/// A deployment whose policy uses no features.
pub const PLAIN: &str = "plain";

/// A deployment whose policy uses the feature `length`.
pub const WITH_FEATURE: &str = "featured";

const TASK: &str = "loss = \"brier\"\n[[route]]\nname = \"gpt\"\nkind = \"measured\"\ncost = 0.05\n\
    [[route]]\nname = \"expert\"\ncost = 0.1\n";

/// A store that counts new decisions instead of keeping them, once counting has begun.
#[derive(Debug)]
struct Counting {
    store: SqliteStore,
    /// The number of rows that were counted; unset as long as rows are kept.
    taken: std::sync::OnceLock<AtomicUsize>,
}

impl Store for Counting {
    fn append_alike(&self, records: Arc<Vec<Record>>, alike: Arc<[u32]>) -> Reply<'_, Vec<Appended>> {
        match self.taken.get() {
            None => self.store.append_alike(records, alike),
            Some(taken) => {
                taken.fetch_add(records.len(), Ordering::Relaxed);
                Box::pin(std::future::ready(Ok(vec![Appended::Committed; records.len()])))
            }
        }
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
        0
    }

    fn registry(&self) -> Reply<'_, Registry> {
        self.store.registry()
    }

    fn generation(&self) -> Reply<'_, u64> {
        self.store.generation()
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

/// The service, with a few decisions in its log.
#[derive(Debug)]
pub struct Service {
    runtime: tokio::runtime::Runtime,
    api: Api,
    store: Arc<Counting>,
}

/// An answer of the service.
#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// Decisions that the request asked the store to commit.
    pub committed: usize,
}

impl Service {
    /// Starts the service in a folder of its own.
    ///
    /// # Panics
    /// If the folder cannot be written.
    #[must_use]
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder: PathBuf = scratch("service");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a scratch folder");
        let store = SqliteStore::open(folder.join("store.db"), SqliteSettings::new()).expect("a store");
        let store = Arc::new(Counting { store, taken: std::sync::OnceLock::new() });
        let shared: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let state = runtime.block_on(async {
            let policies = good_policies();
            for (name, policy) in [(PLAIN, &policies[0]), (WITH_FEATURE, &policies[1])] {
                let change = async |change| store.change(change, "fuzz".to_owned()).await.expect("a change");
                change(Change::PutDeployment { name: name.to_owned(), mode: None }).await;
                let policy = store.add_file(policy.clone()).await.expect("a file");
                let version = NewVersion { router: None, policy, task: TASK.to_owned(), signature: None };
                change(Change::AddVersion { deployment: name.to_owned(), version, activate: true, force: false }).await;
            }
            App::start(shared, Settings::new(Access::Open), Arc::new(Metrics::default())).await.expect("a service")
        });
        let service = Self { runtime, api: app(&state), store };
        let body = r#"{"rows": [{"probs": [1, 0], "id": "a", "tags": {"team": "x"}, "input": {"text": "y"}}, {"probs": [0.5, 0.5]}]}"#;
        let decide = Request::post(format!("/v1/deployments/{PLAIN}/decide"));
        let reply = service.send(decide.header("content-type", "application/json").body(body.into()).expect("a body"));
        assert_eq!(reply.status, StatusCode::OK, "{}", String::from_utf8_lossy(&reply.bytes));
        service.store.taken.set(AtomicUsize::new(0)).expect("it is set once");
        service
    }

    /// Sends a body to be decided. The lowest bit of `how` chooses the deployment.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    #[must_use]
    pub fn decide(&self, how: u8, content_type: &str, body: &[u8]) -> Answered {
        let deployment = if how & 1 == 0 { PLAIN } else { WITH_FEATURE };
        let request = Request::post(format!("/v1/deployments/{deployment}/decide")).header("content-type", content_type);
        self.send(request.body(body.to_vec().into()).expect("a request"))
    }

    /// Sends a request.
    ///
    /// # Panics
    /// If the body of the answer breaks off.
    #[must_use]
    pub fn send(&self, request: Request<Body>) -> Answered {
        let taken = || self.store.taken.get().map_or(0, |taken| taken.load(Ordering::Relaxed));
        let before = taken();
        self.runtime.block_on(async {
            let response = self.api.answer(request).await;
            let (parts, body) = response.into_parts();
            let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a whole body").to_vec();
            Answered { status: parts.status, headers: parts.headers, bytes, committed: taken() - before }
        })
    }
}

impl Answered {
    /// Fails unless this is a success, or a refusal that is a problem document with a reason, after which nothing is committed.
    ///
    /// # Panics
    /// If it is neither.
    pub fn check(&self) {
        if self.status.is_success() {
            return;
        }
        let text = String::from_utf8_lossy(&self.bytes);
        assert!(self.status.is_client_error(), "{}: {text}", self.status);
        assert_eq!(self.headers["content-type"], "application/problem+json", "{text}");
        let problem: Value = serde_json::from_slice(&self.bytes).expect("a problem document");
        assert_eq!(problem["status"], self.status.as_u16(), "{text}");
        check_message(problem["detail"].as_str().expect("a detail"));
        assert!(problem["pointer"].as_str().is_none_or(|pointer| pointer.len() < 20_000), "a pointer without end");
        assert_eq!(self.committed, 0, "a refused request was committed: {text}");
    }
}
