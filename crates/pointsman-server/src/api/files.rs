//! `POST /v1/files`: routers and compiled policies, stored under their hash.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pointsman_table::RouterOrPolicy;
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::upload;
use super::json;
use super::problem::{Kind, Problem};
use crate::app::App;

/// A stored file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileView {
    /// The SHA-256 that versions name it by.
    sha256: String,
    /// `router` or `policy`.
    kind: &'static str,
}

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "it stands in the description of the interface")]
struct Binary(Vec<u8>);

/// Whether bytes begin as router files and compiled policies do: with the length of a header in eight bytes, the last of which is zero,
/// and the brace of that header.
pub(crate) fn is_safetensors(bytes: &[u8]) -> bool {
    bytes.get(7..9).is_some_and(|part| part == b"\0{")
}

/// Store a router or a compiled policy file; versions name it by its hash
#[utoipa::path(
    post,
    path = "/v1/files",
    operation_id = "add_file",
    tag = "versions",
    request_body(content = inline(Binary), content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "It is stored", body = FileView),
        (status = 422, description = "It is neither a router nor a policy, or damaged", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn add(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let body = upload(request, &app.limits).await?;
    if !is_safetensors(&body) {
        return Err(Problem::new(Kind::Invalid, "this is neither a router file nor a compiled policy"));
    }
    let check = move || {
        let parsed = pointsman_table::parse_router_or_policy(&body);
        parsed.map(|parsed| (body, parsed)).map_err(|e| Problem::new(Kind::Invalid, e.to_string()))
    };
    let done = tokio::task::spawn_blocking(check).await.map_err(|e| Problem::new(Kind::Internal, e.to_string()))?;
    let (bytes, parsed) = done?;
    let kind = if matches!(parsed, RouterOrPolicy::Router(_)) { "router" } else { "policy" };
    let sha256 = app.store.add_file(bytes.to_vec()).await?.to_string();
    Ok((StatusCode::CREATED, json(&FileView { sha256, kind })).into_response())
}
