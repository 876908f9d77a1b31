//! The service as a value: its state, and the router of all addresses.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use pointsman::error::printable;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, ResponseBuilder};
use utoipa::{Modify, OpenApi, openapi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::access::{Access, Rates, Require, require};
use crate::api::problem::{Kind, Problem, with_error_field};
use crate::api::refusals;
use crate::api::request_id::identify_request;
use crate::api::site::{check_host, check_site};
use crate::api::{admin_log, decide, decisions, deployments, files, health, infer, versions, what_if};
use crate::clock::Ids;
use crate::deployment::{Deployments, LoadError};
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::store::{Appended, Change, Changed, Record, Scope, Store, StoreError};

/// How large requests may be, and how long they may take.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of an uploaded file.
    pub upload: usize,
    /// Queries of one request.
    pub rows: usize,
    /// Time of a request.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 8 << 20, upload: 1 << 30, rows: 10_000, time: Duration::from_secs(30) }
    }
}

impl Limits {
    pub(crate) fn check_rows(&self, rows: usize) -> Result<(), Problem> {
        if rows > self.rows {
            let detail = format!("{rows} queries in one request: send at most {} (rows of [limits])", self.rows);
            return Err(Problem::new(Kind::TooLarge, detail));
        }
        Ok(())
    }

    /// The refusal of a body that is too large.
    pub(crate) fn large_body(&self) -> Problem {
        let detail = format!("the body is larger than {}: that is body_megabytes of [limits]", megabytes(self.body));
        Problem::new(Kind::TooLarge, detail)
    }

    /// The refusal of an upload that is too large.
    pub(crate) fn large_upload(&self) -> Problem {
        let detail =
            format!("the upload is larger than {}: that is upload_megabytes of [limits]", megabytes(self.upload));
        Problem::new(Kind::TooLarge, detail)
    }
}

/// A size in words.
fn megabytes(bytes: usize) -> String {
    format!("{} MiB ({bytes} bytes)", bytes >> 20)
}

/// What is done with a decision that cannot be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLogFailure {
    /// The request fails, and can be tried again.
    #[default]
    Refuse,
    /// It is answered without being logged, and counted.
    Answer,
}

/// The state of the service.
#[derive(Debug)]
pub struct App {
    /// What it keeps.
    pub store: Arc<dyn Store>,
    /// The deployments as they decide now.
    pub deployments: Deployments,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    pub(crate) in_flight: InFlight,
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    pub(crate) loopback: Arc<str>,
    on_log_failure: OnLogFailure,
    is_draining: AtomicBool,
    reload_error: Mutex<Option<String>>,
}

/// How the service answers.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Settings {
    /// Whether keys are needed.
    pub access: Access,
    /// How large requests may be.
    pub limits: Limits,
    /// What is done with a decision that cannot be committed.
    pub on_log_failure: OnLogFailure,
}

impl Settings {
    /// The usual limits.
    #[must_use]
    pub fn new(access: Access) -> Self {
        Self { access, limits: Limits::default(), on_log_failure: OnLogFailure::default() }
    }
}

impl App {
    /// Starts the service on a store: reads its deployments and goes on with its ids.
    ///
    /// # Errors
    /// If the store cannot be read, or a version cannot be loaded.
    pub async fn start(
        store: Arc<dyn Store>,
        settings: Settings,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, LoadError> {
        let Settings { access, limits, on_log_failure } = settings;
        let deployments = Deployments::new(Arc::clone(&store));
        deployments.refresh().await?;
        let in_flight = InFlight::new(Ids::after(store.largest_id().await?));
        Ok(Arc::new(Self {
            store,
            deployments,
            metrics,
            in_flight,
            limits,
            access,
            rates: Rates::default(),
            loopback: Arc::from("loopback"),
            on_log_failure,
            is_draining: AtomicBool::new(false),
            reload_error: Mutex::new(None),
        }))
    }

    /// Commits decisions; `None` if they cannot be, and are answered all the same.
    pub(crate) async fn append(
        &self,
        records: Arc<Vec<Record>>,
        alike: Arc<[u32]>,
    ) -> Result<Option<Vec<Appended>>, StoreError> {
        let rows = records.len();
        match self.store.append_alike(records, alike).await {
            Err(StoreError::Unavailable(_) | StoreError::QueueFull { .. }) if self.answers_unlogged() => {
                self.metrics.count_lost(rows);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Whether decisions that cannot be committed are answered all the same.
    pub(crate) fn answers_unlogged(&self) -> bool {
        self.on_log_failure == OnLogFailure::Answer
    }

    /// Changes the registry, and decides by it from now on.
    pub(crate) async fn change(&self, change: Change, by: &str) -> Result<Changed, Problem> {
        let asked = change.clone();
        let changed = self.store.change(change, by.to_owned()).await?;
        // What a configuration changes is logged by whoever has read it.
        if changed.is_changed && !matches!(asked, Change::Configure { .. }) {
            tracing::info!(by, "{}", printable(&asked.describe(&changed)));
        }
        self.deployments.refresh().await?;
        Ok(changed)
    }

    /// Whether requests need a key.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        self.access == Access::Keys || self.deployments.now().has_had_keys
    }

    /// From now on `/readyz` says that the service shuts down.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Notes why the configuration could not be read again; `None` if it could.
    pub fn set_reload_error(&self, error: Option<String>) {
        *self.reload_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    pub(crate) fn reload_error(&self) -> Option<String> {
        self.reload_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(OpenApi)]
#[openapi(
    modifiers(&Keys),
    info(title = "Pointsman", description = "Decides per query: predict, route to an oracle, or abstain."),
    tags(
        (name = "decisions", description = "Ask for decisions, and read them"),
        (name = "deployments", description = "Places where queries arrive"),
        (name = "versions", description = "Policies of a deployment"),
        (name = "open inference", description = "The Open Inference Protocol"),
        (name = "operation", description = "Health and metrics"),
    )
)]
struct Description;

/// The name of the keys in the description of the interface.
const KEY: &str = "key";

/// Describes that keys are sent as bearer tokens.
struct Keys;

impl Modify for Keys {
    fn modify(&self, description: &mut openapi::OpenApi) {
        let key = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        description.components.get_or_insert_default().add_security_scheme(KEY, key);
    }
}

/// Describes which scope of a key these operations need, and the refusals that do not depend on the operation.
fn describe_scope(description: &mut openapi::OpenApi, scope: Scope) {
    for (path, item) in &mut description.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.security = Some(vec![SecurityRequirement::new(KEY, [scope.name()])]);
            let of_all = [
                ("401", true, "The key is missing, unknown or disabled"),
                ("403", true, "The key lacks the scope, or a browser sends this for another site"),
                ("404", path.contains('{'), "There is no such thing"),
                ("408", true, "The request took too long"),
                ("413", operation.request_body.is_some(), "The body is too large, or has too many queries"),
                ("415", operation.request_body.is_some(), "The body is encoded, or in a format that is not read here"),
                ("429", true, "The key makes too many requests"),
                ("503", true, "The store cannot be used now"),
            ];
            for (status, _, what) in of_all.into_iter().filter(|(_, occurs, _)| *occurs) {
                let refusal = || {
                    let content = Content::new(Some(Ref::from_schema_name("Problem")));
                    ResponseBuilder::new().description(what).content("application/problem+json", content).build().into()
                };
                operation.responses.responses.entry(status.to_owned()).or_insert_with(refusal);
            }
        }
    }
}

/// All addresses of the service, and their description.
fn addresses(app: &Arc<App>) -> (axum::Router, openapi::OpenApi) {
    let described = |scope: Scope, mut routes: OpenApiRouter<Arc<App>>| {
        describe_scope(routes.get_openapi_mut(), scope);
        routes
    };
    let guarded = |scope: Scope, routes: OpenApiRouter<Arc<App>>| {
        described(scope, routes).route_layer(from_fn_with_state(Require { app: Arc::clone(app), scope }, require))
    };
    let decide = OpenApiRouter::new().routes(routes!(decide::decide)).routes(routes!(infer::infer));
    let read = OpenApiRouter::new()
        .routes(routes!(decisions::get))
        .routes(routes!(decisions::list))
        .routes(routes!(deployments::list))
        .routes(routes!(deployments::get))
        .routes(routes!(versions::list))
        .routes(routes!(what_if::what_if))
        .routes(routes!(infer::model))
        .routes(routes!(infer::model_ready));
    let admin = OpenApiRouter::new()
        .routes(routes!(deployments::put, deployments::delete))
        .routes(routes!(deployments::put_oracle))
        .routes(routes!(admin_log::list))
        .routes(routes!(versions::activate))
        .routes(routes!(versions::roll_back));
    let upload = OpenApiRouter::new()
        .routes(routes!(versions::add))
        .routes(routes!(files::add))
        .layer(DefaultBodyLimit::max(app.limits.upload));
    let open = OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(infer::server))
        .routes(routes!(infer::live))
        .routes(routes!(infer::ready));
    OpenApiRouter::with_openapi(Description::openapi())
        // These handlers check the key themselves: see `Decider`.
        .merge(described(Scope::Decide, decide))
        .merge(guarded(Scope::Read, read))
        .merge(guarded(Scope::Admin, admin))
        .merge(guarded(Scope::Admin, upload))
        .merge(open)
        .with_state(Arc::clone(app))
        .split_for_parts()
}

/// The service as requests meet it: the router of all addresses, and what is done for every request.
///
/// That is done here and not in layers of the router: each layer allocates a copy of its routes and a future per request.
#[derive(Debug, Clone)]
pub struct Api {
    router: TowerToHyperService<axum::Router>,
    state: Arc<App>,
}

impl Api {
    /// Answers a request.
    pub async fn answer(&self, request: Request) -> Response {
        let answer = async |request: Request| {
            let is_open_inference = request.uri().path().starts_with("/v2/");
            let response = self.answer_in_time(request).await.into_response();
            if is_open_inference { with_error_field(response) } else { response }
        };
        identify_request(request, answer).await
    }

    /// Ends a request that takes too long, and sees to it that every refusal is a problem document.
    async fn answer_in_time(&self, mut request: Request) -> Result<Response, Problem> {
        let limits = &self.state.limits;
        check_site(request.method(), request.headers())?;
        // Whether the process runs is asked from elsewhere, too.
        if !self.state.needs_key() && request.uri().path() != "/healthz" {
            check_host(request.headers())?;
        }
        refusals::check_encoding(request.headers())?;
        // Uploads have a layer with a limit of their own.
        DefaultBodyLimit::max(limits.body).apply(&mut request);
        let limit = limits.time;
        let answer = without_panic(self.router.call(request));
        let response = tokio::time::timeout(limit, answer).await.map_err(|_| {
            let detail = format!(
                "the request took longer than {} s; nothing says whether it was carried out",
                limit.as_secs_f64()
            );
            Problem::new(Kind::Timeout, detail)
        })?;
        Ok(if response.status().is_client_error() { refusals::as_problem(response, limits).await } else { response })
    }
}

/// The answer of the router, or a problem if making it panics.
async fn without_panic(answer: impl Future<Output = Result<Response, Infallible>>) -> Response {
    let mut answer = pin!(answer);
    std::future::poll_fn(|context| {
        // After a panic, the request is not polled again.
        match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
            Ok(answer) => answer.map(|Ok(response)| response),
            Err(_) => {
                let detail = "an error of the service itself: its log says more";
                Poll::Ready(Problem::new(Kind::Internal, detail).into_response())
            }
        }
    })
    .await
}

/// The service of all addresses.
pub fn app(state: &Arc<App>) -> Api {
    let (router, description) = addresses(state);
    let document = description.to_json().unwrap_or_default();
    let answer = move || std::future::ready(([("content-type", "application/json")], document.clone()));
    let router = router.route("/openapi.json", get(answer)).fallback(|| {
        std::future::ready(Problem::new(Kind::NotFound, "there is nothing at this address: see /openapi.json"))
    });
    Api { router: TowerToHyperService::new(router), state: Arc::clone(state) }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};

    use super::*;
    use crate::store::sqlite::{Settings as SqliteSettings, SqliteStore};

    /// The refusal of a service with these addresses.
    async fn refusal_of(router: axum::Router) -> serde_json::Value {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("store.db"), SqliteSettings::new()).unwrap();
        let mut settings = Settings::new(Access::Open);
        settings.limits.time = Duration::from_millis(20);
        let state = App::start(Arc::new(store), settings, Arc::new(Metrics::default())).await.unwrap();
        let api = Api { router: TowerToHyperService::new(router), state };
        let response = api.answer(Request::new(Body::empty())).await;
        assert!(response.headers().contains_key("x-request-id"));
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn panics_are_answered_with_a_problem() {
        async fn panicking() -> String {
            tokio::task::yield_now().await;
            panic!("of a handler")
        }
        let problem = refusal_of(axum::Router::new().route("/", get(panicking))).await;
        assert_eq!(problem["status"], 500);
    }

    #[tokio::test]
    async fn requests_that_take_too_long_are_ended() {
        let problem = refusal_of(axum::Router::new().route("/", get(std::future::pending::<()>))).await;
        assert!(problem["detail"].as_str().unwrap().contains("longer than 0.02 s"), "{problem}");
    }
}
