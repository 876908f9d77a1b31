//! Policy versions: add, list, activate, roll back.

use std::sync::Arc;

use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pointsman::Policy;
use pointsman_table::RouterOrPolicy;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::Caller;
use super::extract::{Path, Query, upload};
use super::files::is_safetensors;
use super::object::FromObject;
use super::problem::{Kind, Problem};
use super::{json, parse_object};
use crate::app::{App, Limits};
use crate::deployment::Names;
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
    /// What callers must know, if requests are read differently since it was activated: its classes or features are not those of the
    /// version before.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
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
    /// Whether it becomes the active version even if it has other classes or features, so that requests are read differently.
    #[serde(default)]
    force: bool,
}

impl FromObject for VersionBody {
    const EXAMPLE: &'static str = "{\"router\": \"<SHA-256>\", \"task\": \"abstain = 0.3\"}";
}

/// How a version is activated.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivateParams {
    /// Whether it is activated even if it has other classes or features, so that requests are read differently.
    #[serde(default)]
    force: bool,
}

/// What a request to add a version contains.
#[derive(Debug, Default)]
struct Parts {
    router: Option<Vec<u8>>,
    policy: Option<Vec<u8>>,
    task: Option<String>,
    activate: bool,
    force: bool,
}

fn view(deployment: &StoredDeployment, version: &StoredVersion) -> VersionView {
    VersionView {
        version: version.number,
        active: deployment.active() == Some(version.number),
        router: version.router.map(|hash| hash.to_string()),
        policy: version.policy.to_string(),
        task: version.task.clone(),
        created: version.created.0,
        warning: None,
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

/// A version that decides now, with a warning if it reads requests differently from the one before.
fn activated(app: &App, name: &str, number: u32, before: Option<Arc<Names>>) -> Result<VersionView, Problem> {
    let mut view = one(app, name, number)?;
    let now = app.deployments.active_names(name).filter(|_| view.active);
    view.warning = now.zip(before).and_then(|(now, before)| now.difference(&before)).map(|difference| {
        format!("requests are read differently from now on: there are {difference}; callers that send lists must change them")
    });
    Ok(view)
}

/// Says why a version is not activated, if it is because of its classes or features.
fn explained(problem: Problem, name: &str, new: Option<&Names>, active: Option<&Names>) -> Problem {
    match new.zip(active).and_then(|(new, active)| new.difference(active)) {
        Some(difference) if problem.status == StatusCode::CONFLICT.as_u16() => {
            let detail = format!(
                "the version has {difference}, so that requests to {name:?} would be read differently: lists of numbers would be \
                 misread or refused. If callers know, activate it with force=true (`--force`)"
            );
            Problem::new(Kind::Conflict, detail)
        }
        _ => problem,
    }
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
/// Files are named by the hash of one that was stored, or uploaded as `multipart/form-data` with the fields `router` or `policy`, `task`,
/// `activate` and `force`. A version whose classes or features are not those of the active one would change what the numbers of a request
/// mean: it is activated only with `force`, and the answer then has a `warning`.
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
        (status = 409, description = "It has other classes or features than the active version; nothing was added", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is neither JSON nor a form", body = Problem, content_type = "application/problem+json"),
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
    let kind = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let parts = match kind.as_str() {
        "multipart/form-data" => multipart(request, &app.limits).await?,
        "application/json" | "" => {
            let body = upload(request, &app.limits).await?;
            by_hash(&app, parse_object(&body)?).await?
        }
        other => {
            // A caller that is still sending might not see the answer.
            upload(request, &app.limits).await?;
            let detail = format!(
                "{other:?}: upload files as multipart/form-data (with curl: -F router=@FILE -F task=@task.toml), or send \
                 application/json that names stored files by their SHA-256, such as {}",
                VersionBody::EXAMPLE
            );
            return Err(Problem::new(Kind::UnsupportedType, detail));
        }
    };
    let Parts { router, policy, task, activate, force } = parts;
    let Compiled { version, names } = app.compile(router, policy, task).await?;
    let before = app.deployments.active_names(&name);
    let change = Change::AddVersion { deployment: name.clone(), version, activate, force };
    let changed = app.change(change, &caller.name).await;
    let changed = changed.map_err(|problem| explained(problem, &name, Some(&names), before.as_deref()))?;
    let number = changed.version.ok_or_else(|| Problem::new(Kind::Internal, "the version has no number"))?;
    let status = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, json(&activated(&app, &name, number, before)?)).into_response())
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::new(Kind::Malformed, error.to_string())
}

async fn multipart(request: Request, limits: &Limits) -> Result<Parts, Problem> {
    let mut form = Multipart::from_request(request, &()).await.map_err(unreadable)?;
    let mut parts = Parts::default();
    let too_large = |e: axum::extract::multipart::MultipartError| match e.status() {
        StatusCode::PAYLOAD_TOO_LARGE => limits.large_upload(),
        _ => unreadable(e),
    };
    while let Some(field) = form.next_field().await.map_err(too_large)? {
        let name = field.name().unwrap_or("").to_owned();
        match name.as_str() {
            "router" => parts.router = Some(field.bytes().await.map_err(too_large)?.to_vec()),
            "policy" => parts.policy = Some(field.bytes().await.map_err(too_large)?.to_vec()),
            "task" => parts.task = Some(field.text().await.map_err(too_large)?),
            "activate" => parts.activate = flag("/activate", &field.text().await.map_err(too_large)?)?,
            "force" => parts.force = flag("/force", &field.text().await.map_err(too_large)?)?,
            other => {
                let detail = format!("there is no field {other:?}: give router or policy, task, activate, force");
                return Err(Problem::invalid(format!("/{other}"), detail));
            }
        }
    }
    for (name, bytes) in [("router", &parts.router), ("policy", &parts.policy)] {
        bytes.as_deref().map_or(Ok(()), |bytes| check_is_no_path(name, bytes))?;
    }
    Ok(parts)
}

/// The longest text that is taken for the path of a file, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Refuses the path of a file where the file itself belongs.
fn check_is_no_path(name: &str, bytes: &[u8]) -> Result<(), Problem> {
    let is_line = bytes.len() <= MAX_PATH_BYTES && !bytes.contains(&b'\n') && std::str::from_utf8(bytes).is_ok();
    if is_line && !is_safetensors(bytes) {
        let detail = format!("this is not a {name} file: with curl, write {name}=@FILE");
        return Err(Problem::invalid(format!("/{name}"), detail));
    }
    Ok(())
}

/// A field of a form that is true or false.
fn flag(pointer: &str, text: &str) -> Result<bool, Problem> {
    let text = text.trim();
    text.parse().map_err(|_| Problem::invalid(pointer, format!("{text:?} is neither true nor false")))
}

async fn by_hash(app: &App, body: VersionBody) -> Result<Parts, Problem> {
    let VersionBody { router, policy, task, activate, force } = body;
    let mut parts = Parts { task, activate, force, ..Parts::default() };
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

/// A version that is ready to be added.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) version: NewVersion,
    /// What the numbers in its requests and its log stand for.
    pub(crate) names: Names,
}

/// The files of a version, checked and compiled, and not stored.
pub(crate) struct CompiledFiles {
    /// The router or the compiled policy that was given.
    given: Vec<u8>,
    is_router: bool,
    policy: Vec<u8>,
    task: String,
    names: Names,
}

/// Checks the files of a version and compiles them.
pub(crate) async fn compile_files(
    router: Option<Vec<u8>>,
    policy: Option<Vec<u8>>,
    task: Option<String>,
) -> Result<CompiledFiles, Problem> {
    let (given, field) = match (router, policy) {
        (Some(bytes), None) => (bytes, "/router"),
        (None, Some(bytes)) => (bytes, "/policy"),
        _ => return Err(Problem::invalid("/router", "give a router and a task, or a compiled policy")),
    };
    let work = move || {
        let (policy, task, names) = compile_bytes(&given, field, task.as_deref())?;
        Ok(CompiledFiles { given, is_router: field == "/router", policy, task, names })
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| Problem::new(Kind::Internal, e.to_string()))?
}

impl App {
    /// Checks the files of a version, compiles it and stores them.
    pub(crate) async fn compile(
        &self,
        router: Option<Vec<u8>>,
        policy: Option<Vec<u8>>,
        task: Option<String>,
    ) -> Result<Compiled, Problem> {
        self.keep(compile_files(router, policy, task).await?).await
    }

    /// Stores the files of a version.
    pub(crate) async fn keep(&self, compiled: CompiledFiles) -> Result<Compiled, Problem> {
        let CompiledFiles { given, is_router, policy, task, names } = compiled;
        let router = if is_router { Some(self.store.add_file(given).await?) } else { None };
        let policy = self.store.add_file(policy).await?;
        Ok(Compiled { version: NewVersion { router, policy, task, signature: Some(names.signature()) }, names })
    }
}

/// The compiled policy of a router and a task, or of a compiled policy and, if there is one, a task with other prices.
fn compile_bytes(bytes: &[u8], field: &'static str, task: Option<&str>) -> Result<(Vec<u8>, String, Names), Problem> {
    if !is_safetensors(bytes) {
        let what = if field == "/router" { "router file" } else { "compiled policy" };
        return Err(Problem::invalid(field, format!("this is not a {what}")));
    }
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
    Ok((compiled, pointsman_table::task_text(policy.task()), Names::new(&policy)))
}

/// Make a version the active one
///
/// A version whose classes or features are not those of the active one would change what the numbers of a request mean: it is activated
/// only with `force`, and the answer then has a `warning`.
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/versions/{version}/activate",
    tag = "versions",
    params(
        ("deployment" = String, Path, description = "The deployment's name"),
        ("version" = u32, Path, description = "The version's number"),
        ActivateParams,
    ),
    responses(
        (status = 200, description = "It decides now", body = VersionView),
        (status = 409, description = "It has other classes or features than the active version", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such version", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn activate(
    State(app): State<Arc<App>>,
    Path((name, version)): Path<(String, u32)>,
    Query(ActivateParams { force }): Query<ActivateParams>,
    caller: Caller,
) -> Result<Response, Problem> {
    let before = app.deployments.active_names(&name);
    if let Err(problem) = app.change(Change::Activate { deployment: name.clone(), version, force }, &caller.name).await
    {
        let new = match app.deployments.find(&name) {
            Some(deployment) => app.deployments.names(&deployment, version).await?,
            None => None,
        };
        return Err(explained(problem, &name, new.as_deref(), before.as_deref()));
    }
    Ok(json(&activated(&app, &name, version, before)?))
}

/// Activate the version that was active before
///
/// The answer has a `warning` if that one has other classes or features.
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
    let before = app.deployments.active_names(&name);
    let changed = app.change(Change::RollBack { deployment: name.clone() }, &caller.name).await?;
    let number = changed.version.ok_or_else(|| Problem::new(Kind::Internal, "no version is active"))?;
    Ok(json(&activated(&app, &name, number, before)?))
}
