//! Logged decisions: one by its id, or pages of them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Path, Query};
use super::problem::{Kind, Problem};
use super::{DEFAULT_PAGE, export, json, page_size};
use crate::answer::Answer;
use crate::app::App;
use crate::clock::Time;
use crate::deployment::{Deployment, Names, UNDETERMINED_NAME};
use crate::store::{DeploymentId, LogQuery, Record, UNDETERMINED, VersionAction};

/// A logged decision: the answer, and what was asked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecisionView<'a> {
    /// When it was decided, in microseconds since 1970.
    at: i64,
    /// Where it was decided.
    deployment: &'a str,
    /// The probabilities, in the order of the classes.
    probs: &'a [f64],
    /// The features that the router uses, by name.
    features: std::collections::BTreeMap<&'a str, f64>,
    /// The caller's tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    tags: Option<&'a RawValue>,
    /// The input, if the caller sent it and it has not expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    input: Option<&'a RawValue>,
    #[serde(flatten)]
    answer: Answer<'a>,
}

impl<'a> DecisionView<'a> {
    pub(crate) fn new(record: &'a Record, names: &'a Names, deployment: &'a str) -> Self {
        let raw = |text: &'a Option<String>| text.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self {
            at: record.at.0,
            deployment,
            probs: &record.prediction,
            features: names.features.iter().map(String::as_str).zip(record.features.iter().copied()).collect(),
            tags: raw(&record.tags),
            input: raw(&record.input),
            answer: Answer::new(record, names, true),
        }
    }
}

/// A page of decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<'a> {
    /// The decisions, in the order of their ids.
    decisions: Vec<DecisionView<'a>>,
    /// The id to give as `after` for the next page; null if this is the last one now. To follow the log, give the last `decision_id` instead.
    next: Option<Uuid>,
}

/// Which decisions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Decisions from this time on: seconds or microseconds since 1970, or RFC 3339.
    from: Option<String>,
    /// Decisions before this time.
    to: Option<String>,
    /// Decisions after the one with this id. To follow the log, give the last id that was read, and the same again if there was none.
    after: Option<Uuid>,
    /// Decisions of this version.
    version: Option<u32>,
    /// Decisions with this action, as it was answered.
    action: Option<String>,
    /// Decisions of this cell.
    cell: Option<u32>,
    /// Decisions with this tag: `name=value`.
    tag: Option<String>,
    /// At most this many: per page 100 unless given and up to 10,000, of a table all unless given.
    limit: Option<usize>,
    /// Whether inputs are included, as they are unless this is false.
    inputs: Option<bool>,
    /// The deployment's number, to read the decisions of one that was deleted while there is another one of the same name.
    number: Option<i64>,
}

/// One decision by its id
#[utoipa::path(
    get,
    path = "/v1/decisions/{id}",
    operation_id = "get_decision",
    tag = "decisions",
    params(("id" = Uuid, Path, description = "The id that was answered as decision_id")),
    responses(
        (status = 200, description = "The decision", body = DecisionView),
        (status = 404, description = "There is none with this id", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let missing = || Problem::new(Kind::NotFound, format!("there is no decision {id}, or it has expired"));
    let record = app.store.decision(id).await?.ok_or_else(missing)?;
    let now = app.deployments.now();
    let deployment = now.by_number(record.deployment).ok_or_else(missing)?;
    let names = app.deployments.names(deployment, record.version).await?.ok_or_else(missing)?;
    Ok(json(&DecisionView::new(&record, &names, &deployment.stored.name)))
}

/// Decisions of a deployment, page by page, or all of them as a table
///
/// Decisions come in the order of their ids, up to the first one that this service has made and not committed yet, so that nothing appears
/// later before what was read. Another service on the same PostgreSQL may commit a decision a moment after one with a larger id: whoever
/// follows the log of several services gives a `to` some seconds ago.
///
/// JSON comes in pages. Accepting `application/x-ndjson`, `text/csv` or `application/vnd.apache.parquet` gives all decisions at once as a
/// table that `pointsman decide` reads: `id` (the caller's, or else the decision's), `at`, the columns of decisions, `prob_<class>` and
/// `x_<feature>`.
#[utoipa::path(
    get,
    path = "/v1/deployments/{deployment}/decisions",
    operation_id = "list_decisions",
    tag = "decisions",
    params(("deployment" = String, Path, description = "The deployment's name"), ListParams),
    responses(
        (status = 200, description = "Decisions in the order of their ids", content(
            (Page = "application/json"),
            (String = "application/x-ndjson"),
            (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.parquet"),
        )),
        (status = 406, description = "No accepted format is known", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A parameter cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(params): Query<ListParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let number = params.number.map(DeploymentId);
    let deployment = app.deployments.now().logged(&name, number).cloned();
    let deployment = deployment.ok_or_else(|| Problem::no_deployment(&name))?;
    let limit = params.limit;
    let mut query = params.query(&deployment)?;
    // Whoever follows the log by ids misses nothing that is committed late.
    query.before = Some(app.in_flight.first_open_id());
    if let Some(format) = export::wanted_format(&headers)? {
        return export::export(&app, &deployment, query, limit, format).await;
    }
    query.limit = page_size(limit)?;
    let records = app.store.decisions(query.clone()).await?;
    let next = match records.last().filter(|_| query.is_full(&records)) {
        Some(last) => has_more(&app, &query, last.id).await?.then_some(last.id),
        None => None,
    };
    let names = names_of(&app, &deployment, &records).await?;
    let views = records.iter().filter_map(|record| Some(DecisionView::new(record, names.get(&record.version)?, &name)));
    Ok(json(&Page { decisions: views.collect(), next }))
}

/// Whether there are decisions after this one.
async fn has_more(app: &App, query: &LogQuery, after: Uuid) -> Result<bool, Problem> {
    let mut next = query.clone();
    (next.after, next.limit, next.with_inputs) = (Some(after), 1, false);
    Ok(!app.store.decisions(next).await?.is_empty())
}

/// The names of the versions that made these decisions, by number.
pub(crate) async fn names_of(
    app: &App,
    deployment: &Deployment,
    records: &[Record],
) -> Result<HashMap<u32, Arc<Names>>, Problem> {
    let mut names = HashMap::new();
    for number in records.iter().map(|record| record.version) {
        if let Entry::Vacant(place) = names.entry(number)
            && let Some(found) = app.deployments.names(deployment, number).await?
        {
            place.insert(found);
        }
    }
    Ok(names)
}

/// A time of a request, at its field.
pub(crate) fn time(text: Option<String>, pointer: &str) -> Result<Option<Time>, Problem> {
    text.map(|text| text.parse().map_err(|reason: String| Problem::invalid(pointer, reason))).transpose()
}

impl ListParams {
    fn query(self, deployment: &Deployment) -> Result<LogQuery, Problem> {
        let tag = self.tag.map(|tag| {
            let pair = tag.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            pair.ok_or_else(|| Problem::invalid("/tag", format!("{tag:?} is not a tag: give name=value")))
        });
        if self.limit == Some(0) {
            return Err(Problem::invalid("/limit", "0 decisions are none: give at least 1"));
        }
        let mut query = LogQuery::all(deployment.id(), DEFAULT_PAGE);
        query.from = time(self.from, "/from")?;
        query.to = time(self.to, "/to")?;
        query.after = self.after;
        query.version = self.version;
        query.actions = self.action.map(|action| versions_with(&action, deployment)).transpose()?;
        query.cell = self.cell;
        query.tag = tag.transpose()?;
        query.with_inputs = self.inputs.unwrap_or(true);
        Ok(query)
    }
}

/// An action of all versions that have it.
fn versions_with(name: &str, deployment: &Deployment) -> Result<Vec<VersionAction>, Problem> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::from([UNDETERMINED_NAME.to_owned()]));
    for stored in &deployment.stored.versions {
        let damaged = |e: &dyn std::fmt::Display| {
            Problem::new(Kind::Internal, format!("the task of version {} cannot be read: {e}", stored.number))
        };
        let actions = pointsman_table::parse_task(&stored.task).map_err(|e| damaged(&e))?.action_names();
        let place = actions.iter().position(|action| action == name).and_then(|place| u8::try_from(place).ok());
        let code = if name == UNDETERMINED_NAME { Some(UNDETERMINED) } else { place };
        found.extend(code.map(|action| VersionAction { version: stored.number, action }));
        known.extend(actions);
    }
    if !known.contains(name) {
        let known: Vec<String> = known.into_iter().collect();
        let detail = format!("no version has the action {name:?}: there are {}", known.join(", "));
        return Err(Problem::invalid("/action", detail));
    }
    Ok(found)
}
