//! A service on a store in a temporary folder, and requests to it.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};
use pointsman_server::store::Store;
use pointsman_server::store::sqlite::{Settings as SqliteSettings, SqliteStore};
use pointsman_server::{Access, App, Metrics, Settings, app};
use pointsman_testing::Rng;
use serde_json::Value;
use tempfile::TempDir;

/// A service and the folder of its store.
pub(crate) struct Service {
    pub(crate) app: Arc<App>,
    pub(crate) folder: TempDir,
}

/// An answer: its status, and its body if that is JSON.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// The body of a success.
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, String::from_utf8_lossy(&self.bytes));
        self.json()
    }

    /// The problem document of a refusal, which is checked to be one.
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.bytes));
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        for field in ["type", "title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {problem}");
        }
        problem
    }
}

impl Service {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::new(Access::Open)).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let app = open(&folder, settings).await;
        Self { app, folder }
    }

    /// A service on a store that is elsewhere.
    pub(crate) async fn on(store: Arc<dyn Store>) -> Self {
        let app = App::start(store, Settings::new(Access::Open), Arc::new(Metrics::default())).await.unwrap();
        Self { app, folder: tempfile::tempdir().unwrap() }
    }

    /// Ends the service and starts it again on the same store.
    pub(crate) async fn restart(self) -> Self {
        self.app.store.close().await.unwrap();
        let Self { app, folder } = self;
        drop(app);
        let app = open(&folder, Settings::new(Access::Open)).await;
        Self { app, folder }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = app(&self.app).answer(request).await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
        if let Some(length) = parts.headers.get("content-length") {
            assert_eq!(length.to_str().unwrap(), bytes.len().to_string(), "a connection would fail");
        }
        Reply { status: parts.status, headers: parts.headers, bytes }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Request::put(path).header("content-type", "application/json").body(body.to_string().into()).unwrap())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Request::post(path).header("content-type", "application/json").body(body.to_string().into()).unwrap())
            .await
    }

    /// Makes the deployment `d` with one version of this policy.
    pub(crate) async fn deploy(&self, policy: &Policy) {
        self.put("/v1/deployments/d", serde_json::json!({})).await.ok();
        self.upload("d", policy).await.ok();
    }

    /// Adds and activates a version.
    pub(crate) async fn upload(&self, deployment: &str, policy: &Policy) -> Reply {
        let bytes = pointsman_table::policy_bytes(policy).unwrap();
        self.upload_parts(deployment, &[("policy", &bytes), ("activate", b"true")]).await
    }

    pub(crate) async fn upload_parts(&self, deployment: &str, parts: &[(&str, &[u8])]) -> Reply {
        const BOUNDARY: &str = "a-boundary-that-no-file-has";
        let mut body = Vec::new();
        for (name, bytes) in parts {
            body.extend(
                format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n")
                    .bytes(),
            );
            body.extend(*bytes);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{BOUNDARY}--\r\n").bytes());
        let request = Request::post(format!("/v1/deployments/{deployment}/versions"))
            .header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        self.send(request.body(body.into()).unwrap()).await
    }
}

async fn open(folder: &TempDir, settings: Settings) -> Arc<App> {
    let sqlite = SqliteSettings::new().segment_bytes(1 << 20);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("store.db"), sqlite).unwrap());
    App::start(store, settings, Arc::new(Metrics::default())).await.unwrap()
}

/// Items of three classes whose feature tells hard ones from ambiguous ones.
pub(crate) fn world(rows: usize, seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes, mut features) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let top = 0.4 + 0.55 * rng.uniform();
        let class = rng.below(3);
        let mut row = [(1.0 - top) / 2.0; 3];
        row[class] = top;
        let is_hard = rng.uniform() < 0.5;
        let mut truth = row;
        if is_hard {
            let real = if rng.uniform() < top { class } else { (class + 1) % 3 };
            truth = [0.01; 3];
            truth[real] = 0.98;
        }
        probs.extend(row);
        votes.extend(rng.votes(&truth, 5));
        features.push(f64::from(u8::from(is_hard)) + 0.2 * rng.uniform());
    }
    let table = Table::new(["billing", "délivery", "other thing"], probs).unwrap().with_votes(votes).unwrap();
    table.with_features(["words"], features).unwrap()
}

pub(crate) fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.5).unwrap()
}

/// A policy over confidence bins, which uses no features.
pub(crate) fn policy() -> Policy {
    Router::calibrate(&world(800, 1), &Partition::top_class(5)).unwrap().policy(&task()).unwrap()
}

/// A policy that uses the feature.
pub(crate) fn policy_with_features() -> Policy {
    Router::calibrate(&world(800, 1), &Partition::forest(20)).unwrap().policy(&task()).unwrap()
}
