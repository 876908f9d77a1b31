//! `GET /v1/admin/log`: who changed deployments, versions and keys.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::Query;
use super::problem::Problem;
use super::{json, page_size};
use crate::app::App;
use crate::clock::Time;
use crate::store::AdminEntry;

/// Which entries to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AdminLogParams {
    /// Entries after the one with this number; left out: from the first one.
    after: Option<u64>,
    /// At most this many: 100 unless given, up to 10,000.
    limit: Option<usize>,
}

/// An entry, with its time as text.
#[derive(Debug, Serialize, ToSchema)]
struct AdminEntryView {
    /// When, as in `2026-01-31T12:00:00Z`.
    time: String,
    #[serde(flatten)]
    entry: AdminEntry,
}

/// A page of the log of administration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdminLogPage {
    /// The entries, oldest first.
    entries: Vec<AdminEntryView>,
    /// The number to give as `after` for the next page; null if this is the last one.
    next: Option<u64>,
}

/// Who changed deployments, versions and keys, and when
///
/// Entries are only ever added. An entry is committed together with the change that it describes.
#[utoipa::path(
    get,
    path = "/v1/admin/log",
    tag = "operation",
    params(AdminLogParams),
    responses(
        (status = 200, description = "Entries, oldest first", body = AdminLogPage),
        (status = 422, description = "A parameter cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<AdminLogParams>,
) -> Result<Response, Problem> {
    let limit = page_size(params.limit)?;
    let mut entries = app.store.admin_log(params.after.unwrap_or(0), limit + 1).await?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|entry| entry.number);
    let view = |entry: AdminEntry| AdminEntryView { time: Time(entry.at).to_string(), entry };
    Ok(json(&AdminLogPage { entries: entries.into_iter().map(view).collect(), next }))
}
