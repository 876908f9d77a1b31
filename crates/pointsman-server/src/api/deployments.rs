//! Deployments: create, change, list and delete them, and mark their oracles.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::Caller;
use super::extract::{Path, Query};
use super::object::FromObject;
use super::problem::{Kind, Problem};
use super::{json, parse_object};
use crate::app::App;
use crate::deployment::{Deployment, Names};
use crate::store::{Change, Mode};

/// The longest name of a deployment.
const MAX_NAME: usize = 64;

/// A deployment as it is described to callers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeploymentView {
    /// Its name.
    name: String,
    /// Its number, which no other deployment gets, even if it is deleted.
    number: i64,
    /// When it was deleted, as in `2026-01-31T12:00:00Z`; left out if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<String>,
    /// Whether its decisions are answered.
    mode: Mode,
    /// The number of the active version; null if there is none yet.
    active: Option<u32>,
    /// The numbers of all versions.
    versions: Vec<u32>,
    /// The classes of the active version, in order.
    classes: Vec<String>,
    /// The features that the active version uses, in order.
    features: Vec<String>,
    /// The actions of the active version, in the order of costs.
    actions: Vec<String>,
    /// Oracles that are marked as unavailable.
    unavailable: Vec<String>,
}

impl From<&Deployment> for DeploymentView {
    fn from(deployment: &Deployment) -> Self {
        let Deployment { stored, active, .. } = deployment;
        let of_active = |list: fn(&Names) -> &Vec<String>| {
            active.as_deref().map(|version| list(&version.names).clone()).unwrap_or_default()
        };
        Self {
            name: stored.name.clone(),
            number: stored.id.0,
            deleted: stored.deleted.map(|time| time.to_string()),
            mode: stored.mode,
            active: stored.active(),
            versions: stored.versions.iter().map(|version| version.number).collect(),
            classes: of_active(|names| &names.classes),
            features: of_active(|names| &names.features),
            actions: of_active(|names| &names.actions),
            unavailable: stored.unavailable.iter().cloned().collect(),
        }
    }
}

/// All deployments.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeploymentList {
    /// The deployments, by name.
    deployments: Vec<DeploymentView>,
}

/// The settings of a deployment.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeploymentBody {
    /// `active` answers decisions, `shadow` always answers `predict`. Left out: unchanged, or active for a new deployment.
    #[serde(default)]
    mode: Option<Mode>,
}

/// Whether an oracle can be asked.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OracleBody {
    /// If not, it leaves the choice: queries get the best of the other actions.
    available: bool,
}

impl FromObject for DeploymentBody {
    const EXAMPLE: &'static str = "{\"mode\": \"shadow\"}";
}

impl FromObject for OracleBody {
    const EXAMPLE: &'static str = "{\"available\": false}";
}

/// Which deployments to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Whether to list those that were deleted and whose decisions may still be in the log, instead of those there are.
    #[serde(default)]
    deleted: bool,
}

/// The deployments
#[utoipa::path(
    get,
    path = "/v1/deployments",
    operation_id = "list_deployments",
    tag = "deployments",
    params(ListParams),
    responses((status = 200, description = "The deployments", body = DeploymentList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, Query(ListParams { deleted }): Query<ListParams>) -> Response {
    let now = app.deployments.now();
    let view = |deployment: &Arc<Deployment>| DeploymentView::from(&**deployment);
    let mut deployments: Vec<DeploymentView> =
        if deleted { now.deleted.iter().map(view).collect() } else { now.deployments.values().map(view).collect() };
    deployments.sort_by(|a, b| (&a.name, a.number).cmp(&(&b.name, b.number)));
    json(&DeploymentList { deployments })
}

/// One deployment
#[utoipa::path(
    get,
    path = "/v1/deployments/{deployment}",
    operation_id = "get_deployment",
    tag = "deployments",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses(
        (status = 200, description = "The deployment", body = DeploymentView),
        (status = 404, description = "There is none of this name", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Problem> {
    let now = app.deployments.now();
    let deployment = now.deployments.get(&name).ok_or_else(|| Problem::no_deployment(&name))?;
    Ok(json(&DeploymentView::from(&**deployment)))
}

/// Create a deployment, or change its settings
#[utoipa::path(
    put,
    path = "/v1/deployments/{deployment}",
    operation_id = "put_deployment",
    tag = "deployments",
    params(("deployment" = String, Path, description = "The deployment's name: up to 64 ASCII letters, digits, `-`, `_` and `.`; the first one is not `.`")),
    request_body(content = DeploymentBody, example = json!({"mode": "shadow"})),
    responses(
        (status = 200, description = "It was changed", body = DeploymentView),
        (status = 201, description = "It was created", body = DeploymentView),
        (status = 422, description = "The name or a setting cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    check_name(&name)?;
    let DeploymentBody { mode } = if body.is_empty() { DeploymentBody::default() } else { parse_object(&body)? };
    let changed = app.change(Change::PutDeployment { name: name.clone(), mode }, &caller.name).await?;
    let status = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
    let response = get(State(app), Path(name)).await?;
    Ok((status, response).into_response())
}

/// Delete a deployment; its decisions stay in the log until they expire
///
/// They can be read as before, by their ids and by the deployment's name. If there is a new deployment of the same name, give the
/// `number` of the deleted one, which `GET /v1/deployments?deleted=true` lists.
#[utoipa::path(
    delete,
    path = "/v1/deployments/{deployment}",
    operation_id = "delete_deployment",
    tag = "deployments",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 404, description = "There is none of this name", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    caller: Caller,
) -> Result<StatusCode, Problem> {
    app.change(Change::DeleteDeployment { name }, &caller.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Mark an oracle of a deployment as available or not
#[utoipa::path(
    put,
    path = "/v1/deployments/{deployment}/oracles/{oracle}",
    tag = "deployments",
    params(
        ("deployment" = String, Path, description = "The deployment's name"),
        ("oracle" = String, Path, description = "The name of the task's route"),
    ),
    request_body(content = OracleBody, example = json!({"available": false})),
    responses(
        (status = 200, description = "It is marked", body = OracleBody),
        (status = 404, description = "There is no such deployment or route", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put_oracle(
    State(app): State<Arc<App>>,
    Path((name, oracle)): Path<(String, String)>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let OracleBody { available } = parse_object(&body)?;
    let (_, version) = super::decide::active(&app, &name)?;
    let routes = version.policy.task().routes();
    if !routes.iter().any(|route| route.name() == oracle) {
        let known: Vec<&str> = routes.iter().map(|route| route.name()).collect();
        let detail = format!("the task has no route {oracle:?}: it has {}", known.join(", "));
        return Err(Problem::new(Kind::NotFound, detail));
    }
    app.change(Change::SetOracle { deployment: name, oracle, available }, &caller.name).await?;
    Ok(json(&OracleBody { available }))
}

/// Refuses names that could not be part of an address or a file name.
pub(crate) fn check_name(name: &str) -> Result<(), Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.chars().all(is_plain) {
        let detail = format!(
            "{name:?} cannot be a deployment's name: give up to {MAX_NAME} ASCII letters, digits, -, _ and ., the first one not ."
        );
        return Err(Problem::new(Kind::Invalid, detail));
    }
    Ok(())
}
