//! `GET /healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::json;
use crate::app::App;

/// Whether the service can take requests, and why not.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Whether requests are taken.
    ready: bool,
    /// Why not, or what is wrong although they are.
    reasons: Vec<String>,
    /// The number of deployments with an active version.
    deployments: usize,
}

/// Whether the process runs
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "It runs", body = String)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether requests are taken, and why not
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    responses(
        (status = 200, description = "Requests are taken", body = Readiness),
        (status = 503, description = "No requests are taken", body = Readiness),
    ),
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Response {
    let mut reasons = Vec::new();
    let mut ready = true;
    if app.is_draining() {
        ready = false;
        reasons.push("the service is shutting down".to_owned());
    } else if let Err(error) = app.store.check().await {
        ready = app.answers_unlogged();
        let unlogged = if ready { "; decisions are answered without being logged" } else { "" };
        reasons.push(format!("{error}{unlogged}"));
    }
    reasons.extend(app.reload_error());
    let active = app.deployments.now().deployments.values().filter(|deployment| deployment.active.is_some()).count();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, json(&Readiness { ready, reasons, deployments: active })).into_response()
}

/// Counters and histograms in the text format of Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operation", responses((status = 200, description = "The metrics", body = String)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let text = app.metrics.render(&app.deployments.now(), app.store.waiting_rows());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}
