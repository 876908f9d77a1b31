//! `POST /v1/deployments/{d}/what-if`: logged traffic under another task, router or version.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use pointsman::Policy;
use pointsman::monitor::WhatIfSummary;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decisions::{names_of, time};
use super::extract::Path;
use super::object::FromObject;
use super::problem::{Kind, Problem};
use super::{json, parse_object};
use crate::app::App;
use crate::deployment::Deployment;
use crate::replay::Replay;
use crate::store::{LogQuery, Sha256};

/// Decisions read at a time.
const PAGE: usize = 20_000;

/// The period, and what to decide it by.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhatIfBody {
    /// Decisions from this time on; left out: from the first one.
    #[serde(default)]
    from: Option<String>,
    /// Decisions before this time; left out: to the last one.
    #[serde(default)]
    to: Option<String>,
    /// The whole task as the text of a task file (TOML): other prices, routes or, if the router is there, another loss. Routes that it
    /// leaves out are gone.
    #[serde(default)]
    task: Option<String>,
    /// The SHA-256 of a router that was uploaded; needs a task.
    #[serde(default)]
    router: Option<String>,
    /// The number of a version of the deployment.
    #[serde(default)]
    version: Option<u32>,
}

impl FromObject for WhatIfBody {
    const EXAMPLE: &'static str = "{\"task\": \"<text of a task file>\"}";
}

/// How logged decisions would change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhatIfAnswer {
    /// The number of decisions in the period.
    decisions: u64,
    /// How many of them change.
    changed: u64,
    /// The number of decisions from each logged action to each other one: `[{from, to, decisions}]`.
    #[schema(value_type = Vec<Object>)]
    matrix: Vec<pointsman::monitor::Flow>,
    /// The share of each action as it was logged.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    shares_before: pointsman::task::Named<f64>,
    /// The share of each action as it would be.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    shares: pointsman::task::Named<f64>,
    /// What it would cost.
    cost: WhatIfCost,
    /// What changes per cell: `[{cell, name, decisions, changed, expected_cost, difference, difference_standard_error}]`.
    #[schema(value_type = Vec<Object>)]
    cells: Vec<pointsman::monitor::CellChange>,
}

/// What it would cost per query, by the estimates and prices asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhatIfCost {
    /// The expected cost per query; null without decisions.
    expected: Option<f64>,
    /// The expected cost per query of the actions that were logged, where the task has them.
    before: Option<f64>,
    /// The mean difference of both, over the compared decisions only: negative if it would be cheaper. Null also if decisions change and none of these is compared.
    difference: Option<f64>,
    /// The standard error of the difference over queries; the error of the estimates comes on top.
    difference_standard_error: Option<f64>,
    /// The number of decisions whose action the task does not have, so that they are not compared.
    not_compared: u64,
    /// The cost measured by labels; null, since no labels are collected.
    measured: Option<f64>,
}

impl From<WhatIfSummary> for WhatIfAnswer {
    fn from(summary: WhatIfSummary) -> Self {
        let cost = WhatIfCost {
            expected: summary.cost.expected,
            before: summary.cost.before,
            difference: summary.cost.difference,
            difference_standard_error: summary.cost.difference_standard_error,
            not_compared: summary.cost.not_compared,
            measured: None,
        };
        let WhatIfSummary { decisions, changed, matrix, shares_before, shares, cells, .. } = summary;
        Self { decisions, changed, matrix, shares_before, shares, cost, cells }
    }
}

/// How logged decisions would change under another task, router or version
///
/// Queries of the period are decided by a version, by a router with a task, or by the active version with another task. Costs are the
/// estimates of that router, not measured. The last deployment of the name is meant, also if it was deleted.
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/what-if",
    tag = "decisions",
    params(("deployment" = String, Path, description = "The deployment's name")),
    request_body(content = WhatIfBody, example = json!({"from": "2026-01-01T00:00:00Z", "task": "abstain = 0.4\n[[route]]\nname = \"expert\"\ncost = 0.1\n"})),
    responses(
        (status = 200, description = "What would change", body = WhatIfAnswer),
        (status = 422, description = "The task, router or period cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn what_if(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let deployment = app.deployments.now().logged(&name, None).cloned();
    let deployment = deployment.ok_or_else(|| Problem::no_deployment(&name))?;
    let WhatIfBody { from, to, task, router, version } = parse_object(&body)?;
    let mut query = LogQuery::all(deployment.id(), PAGE);
    query.with_inputs = false;
    (query.from, query.to) = (time(from, "/from")?, time(to, "/to")?);
    let policy = asked_policy(&app, &deployment, task, router, version).await?;
    let mut replay = Replay::new(Arc::new(policy));
    loop {
        let records = app.store.decisions(query.clone()).await?;
        let Some(last) = records.last() else { break };
        query.after = Some(last.id);
        let is_last = !query.is_full(&records);
        let names = names_of(&app, &deployment, &records).await?;
        let work = move || {
            let added = replay.add(&records, &names);
            (replay, added)
        };
        let done = tokio::task::spawn_blocking(work).await.map_err(|e| Problem::new(Kind::Internal, e.to_string()))?;
        replay = done.0;
        done.1.map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
        if is_last {
            break;
        }
    }
    Ok(json(&WhatIfAnswer::from(replay.what_if.summary(&replay.policy))))
}

/// The policy to decide by: a version, or a router with a task, or the active version with another task.
async fn asked_policy(
    app: &App,
    deployment: &Deployment,
    task: Option<String>,
    router: Option<String>,
    version: Option<u32>,
) -> Result<Policy, Problem> {
    let refuse = |e: &dyn std::fmt::Display| Problem::invalid("/task", e.to_string());
    let task = task.map(|text| pointsman_table::parse_task(&text)).transpose().map_err(|e| refuse(&e))?;
    if let Some(text) = router {
        if version.is_some() {
            return Err(Problem::invalid("/router", "give a router or a version, not both"));
        }
        let hash: Sha256 = text.parse().map_err(|reason: String| Problem::invalid("/router", reason))?;
        let task = task.ok_or_else(|| Problem::invalid("/task", "a router needs a task"))?;
        let router = app.deployments.router(hash).await?;
        return compile(move || router.policy(&task)).await;
    }
    let number = version.or(deployment.stored.active()).ok_or_else(|| {
        Problem::new(Kind::Conflict, "the deployment has no active version: give a version, or a router and a task")
    })?;
    let missing = || Problem::invalid("/version", format!("the deployment has no version {number}"));
    let stored = deployment.stored.version(number).ok_or_else(missing)?;
    let loaded = app.deployments.version(deployment, number).await?.ok_or_else(missing)?;
    let Some(task) = task else { return Ok(Policy::clone(&loaded.policy)) };
    if let Ok(policy) = loaded.policy.reprice(&task) {
        return Ok(policy);
    }
    // Another loss, or a limit, needs the calibration rows.
    match stored.router {
        Some(hash) => {
            let router = app.deployments.router(hash).await?;
            compile(move || router.policy(&task)).await
        }
        None => loaded.policy.reprice(&task).map_err(|e| refuse(&e)),
    }
}

async fn compile(work: impl FnOnce() -> pointsman::Result<Policy> + Send + 'static) -> Result<Policy, Problem> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|e| Problem::new(Kind::Internal, e.to_string()))?;
    done.map_err(|e| Problem::invalid("/task", e.to_string()))
}
