//! Policy versions: add, list, activate, roll back.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pointsman::Policy;
use pointsman_table::RouterOrPolicy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Caller;
use super::problem::{Kind, Problem};
use super::{json, parse_json};
use crate::app::App;
use crate::store::{Change, NewVersion, Sha256, StoredDeployment, StoredVersion};

/// A version as it is described to callers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionView {
    /// Its number in the deployment.
    version: u32,
    /// Whether it decides now.
    active: bool,
    /// The SHA-256 of the router; null if a compiled policy was uploaded.
    router: Option<String>,
    /// The SHA-256 of the compiled policy.
    policy: String,
    /// The task, as the text of a task file.
    task: String,
    /// When it was added, in microseconds since 1970.
    created: i64,
}

/// The versions of a deployment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionList {
    /// The versions, oldest first.
    versions: Vec<VersionView>,
}

/// A version to be added: a router and a task, or a compiled policy. Files are named by the SHA-256 of one that is there already;
/// `multipart/form-data` uploads them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionBody {
    /// The SHA-256 of a router file.
    #[serde(default)]
    router: Option<String>,
    /// The SHA-256 of a compiled policy file.
    #[serde(default)]
    policy: Option<String>,
    /// The text of a task file (TOML). Left out with a compiled policy, its own task is used.
    #[serde(default)]
    task: Option<String>,
    /// Whether it becomes the active version at once.
    #[serde(default)]
    activate: bool,
}

/// What a request to add a version contains.
#[derive(Debug, Default)]
struct Parts {
    router: Option<Vec<u8>>,
    policy: Option<Vec<u8>>,
    task: Option<String>,
    activate: bool,
}

fn view(deployment: &StoredDeployment, version: &StoredVersion) -> VersionView {
    VersionView {
        version: version.number,
        active: deployment.active() == Some(version.number),
        router: version.router.map(|hash| hash.to_string()),
        policy: version.policy.to_string(),
        task: version.task.clone(),
        created: version.created.0,
    }
}

fn one(app: &App, name: &str, number: u32) -> Result<VersionView, Problem> {
    let now = app.deployments.now();
    let deployment = now.deployments.get(name).ok_or_else(|| Problem::no_deployment(name))?;
    let version = deployment
        .stored
        .version(number)
        .ok_or_else(|| Problem::new(Kind::NotFound, format!("deployment {name:?} has no version {number}")))?;
    Ok(view(&deployment.stored, version))
}

/// The versions of a deployment
#[utoipa::path(
    get,
    path = "/v1/deployments/{deployment}/versions",
    operation_id = "list_versions",
    tag = "versions",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses((status = 200, description = "The versions, oldest first", body = VersionList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Problem> {
    let now = app.deployments.now();
    let stored = &now.deployments.get(&name).ok_or_else(|| Problem::no_deployment(&name))?.stored;
    Ok(json(&VersionList { versions: stored.versions.iter().map(|version| view(stored, version)).collect() }))
}

/// Add a version: a router with a task, or a compiled policy
///
/// Files are named by the hash of one that was stored, or uploaded as `multipart/form-data` with the fields `router` or `policy`, `task`
/// and `activate`.
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/versions",
    operation_id = "add_version",
    tag = "versions",
    params(("deployment" = String, Path, description = "The deployment's name")),
    request_body(content = VersionBody, example = json!({"router": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "task": "abstain = 0.3", "activate": true})),
    responses(
        (status = 201, description = "It was added", body = VersionView),
        (status = 200, description = "The newest version is the same", body = VersionView),
        (status = 422, description = "A file or the task cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    if !app.deployments.now().deployments.contains_key(&name) {
        return Err(Problem::no_deployment(&name));
    }
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let parts = if content_type.starts_with("multipart/form-data") {
        multipart(request).await?
    } else {
        let body = Bytes::from_request(request, &()).await.map_err(unreadable)?;
        by_hash(&app, parse_json(&body)?).await?
    };
    let activate = parts.activate;
    let version = app.compile(parts.router, parts.policy, parts.task).await?;
    let changed = app.change(Change::AddVersion { deployment: name.clone(), version, activate }, &caller.name).await?;
    let number = changed.version.ok_or_else(|| Problem::new(Kind::Internal, "the version has no number"))?;
    let status = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, json(&one(&app, &name, number)?)).into_response())
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::new(Kind::Malformed, error.to_string())
}

async fn multipart(request: Request) -> Result<Parts, Problem> {
    let mut form = Multipart::from_request(request, &()).await.map_err(unreadable)?;
    let mut parts = Parts::default();
    while let Some(field) = form.next_field().await.map_err(unreadable)? {
        let name = field.name().unwrap_or("").to_owned();
        let too_large = |e: axum::extract::multipart::MultipartError| match e.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Kind::TooLarge, e.body_text()),
            _ => unreadable(e),
        };
        match name.as_str() {
            "router" => parts.router = Some(field.bytes().await.map_err(too_large)?.to_vec()),
            "policy" => parts.policy = Some(field.bytes().await.map_err(too_large)?.to_vec()),
            "task" => parts.task = Some(field.text().await.map_err(too_large)?),
            "activate" => parts.activate = field.text().await.map_err(too_large)?.trim() == "true",
            other => {
                let detail = format!("there is no field {other:?}: give router or policy, task, activate");
                return Err(Problem::invalid(format!("/{other}"), detail));
            }
        }
    }
    Ok(parts)
}

async fn by_hash(app: &App, body: VersionBody) -> Result<Parts, Problem> {
    let VersionBody { router, policy, task, activate } = body;
    let mut parts = Parts { task, activate, ..Parts::default() };
    for (field, hash, slot) in [("/router", router, &mut parts.router), ("/policy", policy, &mut parts.policy)] {
        let Some(text) = hash else { continue };
        let hash: Sha256 = text.parse().map_err(|reason: String| Problem::invalid(field, reason))?;
        let bytes = app.store.file(hash).await?.ok_or_else(|| {
            Problem::invalid(field, format!("there is no file {hash}: upload it as multipart/form-data"))
        })?;
        *slot = Some(bytes);
    }
    Ok(parts)
}

impl App {
    /// Checks the files of a version, compiles it and stores them.
    pub(crate) async fn compile(
        &self,
        router: Option<Vec<u8>>,
        policy: Option<Vec<u8>>,
        task: Option<String>,
    ) -> Result<NewVersion, Problem> {
        let (bytes, field) = match (router, policy) {
            (Some(bytes), None) => (bytes, "/router"),
            (None, Some(bytes)) => (bytes, "/policy"),
            _ => return Err(Problem::invalid("/router", "give a router and a task, or a compiled policy")),
        };
        let work = move || compile_files(&bytes, field, task.as_deref()).map(|compiled| (bytes, compiled));
        let done = tokio::task::spawn_blocking(work).await;
        let (given, (compiled, task)) = done.map_err(|e| Problem::new(Kind::Internal, e.to_string()))??;
        let router = if field == "/router" { Some(self.store.add_file(given).await?) } else { None };
        let policy = self.store.add_file(compiled).await?;
        Ok(NewVersion { router, policy, task })
    }
}

/// The compiled policy of a router and a task, or of a compiled policy and, if there is one, a task with other prices.
fn compile_files(bytes: &[u8], field: &'static str, task: Option<&str>) -> Result<(Vec<u8>, String), Problem> {
    let parsed = pointsman_table::parse_router_or_policy(bytes).map_err(|e| Problem::invalid(field, e.to_string()))?;
    let task =
        task.map(pointsman_table::parse_task).transpose().map_err(|e| Problem::invalid("/task", e.to_string()))?;
    let refuse = |e: pointsman::Error| Problem::invalid("/task", e.to_string());
    let policy: Policy = match (parsed, field) {
        (RouterOrPolicy::Router(router), "/router") => {
            let task =
                task.ok_or_else(|| Problem::invalid("/task", "a router needs a task: give the text of a task file"))?;
            router.policy(&task).map_err(refuse)?
        }
        (RouterOrPolicy::Policy(policy), "/policy") => match task {
            Some(task) => policy.reprice(&task).map_err(refuse)?,
            None => *policy,
        },
        (RouterOrPolicy::Router(_), _) => {
            return Err(Problem::invalid(field, "this is a router: give it as router, with a task"));
        }
        _ => return Err(Problem::invalid(field, "this is a compiled policy: give it as policy")),
    };
    let compiled = pointsman_table::policy_bytes(&policy).map_err(|e| Problem::invalid(field, e.to_string()))?;
    Ok((compiled, pointsman_table::task_text(policy.task())))
}

/// Make a version the active one
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/versions/{version}/activate",
    tag = "versions",
    params(
        ("deployment" = String, Path, description = "The deployment's name"),
        ("version" = u32, Path, description = "The version's number"),
    ),
    responses(
        (status = 200, description = "It decides now", body = VersionView),
        (status = 404, description = "There is no such version", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn activate(
    State(app): State<Arc<App>>,
    Path((name, version)): Path<(String, u32)>,
    caller: Caller,
) -> Result<Response, Problem> {
    app.change(Change::Activate { deployment: name.clone(), version }, &caller.name).await?;
    Ok(json(&one(&app, &name, version)?))
}

/// Activate the version that was active before
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/rollback",
    tag = "versions",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses(
        (status = 200, description = "The version that decides now", body = VersionView),
        (status = 409, description = "No version was active before", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn roll_back(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
) -> Result<Response, Problem> {
    let changed = app.change(Change::RollBack { deployment: name.clone() }, &caller.name).await?;
    let number = changed.version.ok_or_else(|| Problem::new(Kind::Internal, "no version is active"))?;
    Ok(json(&one(&app, &name, number)?))
}
