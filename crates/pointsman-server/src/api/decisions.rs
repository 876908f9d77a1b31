//! Logged decisions: one by its id, or pages of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::json;
use super::problem::{Kind, Problem};
use crate::answer::Answer;
use crate::app::App;
use crate::clock::Time;
use crate::deployment::{Deployment, Version};
use crate::store::{LogQuery, Record};

/// Decisions per page if the request does not say how many.
const DEFAULT_PAGE: usize = 100;

/// The most decisions per page.
const MAX_PAGE: usize = 10_000;

/// A logged decision: the answer, and what was asked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecisionView<'a> {
    /// When it was decided, in microseconds since 1970.
    at: i64,
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
    pub(crate) fn new(record: &'a Record, version: &'a Version, deployment: &'a str) -> Self {
        let raw = |text: &'a Option<String>| text.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let names = version.policy.cells().features().iter().map(String::as_str);
        Self {
            at: record.at.0,
            deployment,
            probs: &record.prediction,
            features: names.zip(record.features.iter().copied()).collect(),
            tags: raw(&record.tags),
            input: raw(&record.input),
            answer: Answer::new(record, version, true),
        }
    }
}

/// A page of decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<'a> {
    decisions: Vec<DecisionView<'a>>,
    /// The id to give as `after` for the next page; null if this is the last one.
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
    /// Decisions after the one with this id.
    after: Option<Uuid>,
    /// Decisions of this version.
    version: Option<u32>,
    /// Decisions with this action, as it was answered.
    action: Option<String>,
    /// Decisions of this cell.
    cell: Option<u32>,
    /// Decisions with this tag: `name=value`.
    tag: Option<String>,
    /// At most this many, 100 unless given.
    limit: Option<usize>,
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
    let deployment = now.deployments.values().find(|deployment| deployment.id() == record.deployment);
    let deployment = deployment.ok_or_else(missing)?;
    let version = app.deployments.version(deployment, record.version).await?.ok_or_else(missing)?;
    Ok(json(&DecisionView::new(&record, &version, &deployment.stored.name)))
}

/// Decisions of a deployment, page by page
#[utoipa::path(
    get,
    path = "/v1/deployments/{deployment}/decisions",
    operation_id = "list_decisions",
    tag = "decisions",
    params(("deployment" = String, Path, description = "The deployment's name"), ListParams),
    responses(
        (status = 200, description = "Decisions in the order of their ids", body = Page),
        (status = 422, description = "A parameter cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(params): Query<ListParams>,
) -> Result<Response, Problem> {
    let now = app.deployments.now();
    let deployment = now.deployments.get(&name).ok_or_else(|| Problem::no_deployment(&name))?;
    let action = params.action.clone();
    let query = params.query(deployment)?;
    let limit = query.limit;
    let records = app.store.decisions(query).await?;
    let next = records.last().filter(|_| records.len() == limit).map(|record| record.id);
    let versions = versions_of(&app, deployment, &records).await?;
    let views = records.iter().filter_map(|record| {
        let version = versions.get(&record.version)?;
        Some(DecisionView::new(record, version, &name))
    });
    let wanted = |view: &DecisionView<'_>| action.as_ref().is_none_or(|action| view.answer.action == action);
    Ok(json(&Page { decisions: views.filter(wanted).collect(), next }))
}

/// The versions that made these decisions, by number.
pub(crate) async fn versions_of(
    app: &App,
    deployment: &Deployment,
    records: &[Record],
) -> Result<HashMap<u32, Arc<Version>>, Problem> {
    let mut versions = HashMap::new();
    for number in records.iter().map(|record| record.version) {
        if let Entry::Vacant(place) = versions.entry(number)
            && let Some(version) = app.deployments.version(deployment, number).await?
        {
            place.insert(version);
        }
    }
    Ok(versions)
}

impl ListParams {
    fn query(self, deployment: &Deployment) -> Result<LogQuery, Problem> {
        let time = |text: Option<String>, field: &str| {
            text.map(|text| text.parse::<Time>().map_err(|reason| Problem::invalid(format!("/{field}"), reason)))
                .transpose()
        };
        let tag = self.tag.map(|tag| {
            let pair = tag.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            pair.ok_or_else(|| Problem::invalid("/tag", format!("{tag:?} is not a tag: give name=value")))
        });
        let limit = self.limit.unwrap_or(DEFAULT_PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(Problem::invalid(
                "/limit",
                format!("{limit} is not a size of a page: give from 1 to {MAX_PAGE}"),
            ));
        }
        let mut query = LogQuery::all(deployment.id(), limit);
        query.from = time(self.from, "from")?;
        query.to = time(self.to, "to")?;
        query.after = self.after;
        query.version = self.version;
        query.cell = self.cell;
        query.tag = tag.transpose()?;
        Ok(query)
    }
}
