//! `POST /v1/deployments/{d}/decide`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use pointsman::Policy;
use pointsman::policy::AvailableRoutes;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::{Caller, Decider};
use super::extract::{self, ContentType, Path};
use super::object::{FromObject, Object};
use super::problem::{Kind, Problem};
use super::{explain_more, formats, json, parse_object};
use crate::answer::{Answer, outcome};
use crate::app::App;
use crate::clock::Time;
use crate::deployment::{Deployment, Version};
use crate::query::{self, Numbers, Query, QueryBody, Tags, bad_field};
use crate::store::{Appended, Outcome, Record, StoreError, StoredDeployment};

/// What a request to decide contains: one query, or `rows` of queries.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecideBody {
    /// The caller's own id: the same id gives the first decision again. An id names one query: with other probabilities or features it is
    /// refused.
    #[serde(default)]
    id: Option<String>,
    /// The classifier's probabilities: a list in the order of the classes, or an object of class names.
    #[serde(default)]
    #[schema(schema_with = query::probs_schema)]
    probs: Option<Numbers>,
    /// The features that the router uses, by name, or as a list in the router's order. Null is a value that is missing.
    #[serde(default)]
    #[schema(schema_with = query::features_schema)]
    features: Option<Numbers>,
    /// Names and values to find the decision by.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    tags: Option<Tags>,
    /// The input itself, any JSON; it is kept with the decision until it expires.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    input: Option<Box<serde_json::value::RawValue>>,
    /// Several queries, which are decided together, all or none.
    #[serde(default)]
    #[schema(value_type = Option<Vec<QueryBody>>)]
    rows: Option<Vec<Object<QueryBody>>>,
    /// Whether the answer has an explanation.
    #[serde(default)]
    explain: bool,
    /// Whether the decision is not logged.
    #[serde(default)]
    dry_run: bool,
}

impl FromObject for DecideBody {
    const EXAMPLE: &'static str = "{\"probs\": […]}; several queries go into rows";
}

impl FromObject for QueryBody {
    const EXAMPLE: &'static str = "{\"probs\": […]}";
}

/// How a request wants its queries decided, whatever the format of its body.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DecideParams {
    /// Whether answers have an explanation.
    #[serde(default)]
    explain: bool,
    /// Whether decisions are not logged.
    #[serde(default)]
    dry_run: bool,
}

/// The answers to several queries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answers<'a> {
    /// One answer per query, in order.
    rows: Vec<Answer<'a>>,
}

/// How queries are decided and answered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) explain: bool,
    pub(crate) dry_run: bool,
}

/// Queries of one request, decided by one version.
pub(crate) struct Decided {
    version: Arc<Version>,
    deployment: Arc<Deployment>,
    records: Arc<Vec<Record>>,
    /// Earlier decisions on the same ids, by row, with the versions that made them.
    earlier: HashMap<usize, (Record, Arc<Version>)>,
    is_dry_run: bool,
    /// Whether the decisions could not be logged and are answered all the same.
    pub(crate) is_lost: bool,
}

impl Decided {
    /// The decisions to be answered, with the versions that made them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Record, &Version)> {
        self.records.iter().enumerate().map(|(row, record)| match self.earlier.get(&row) {
            Some((record, version)) => (record, &**version),
            None => (record, &*self.version),
        })
    }

    /// The routes of a version that can be taken. Those of an earlier one are not known.
    fn available(&self, version: &Version) -> AvailableRoutes {
        if version.number == self.version.number { self.deployment.available } else { AvailableRoutes::all() }
    }

    /// The answers.
    pub(crate) fn answers(&self, options: Options) -> impl Iterator<Item = Answer<'_>> {
        self.iter().map(move |(record, version)| {
            let mut answer = Answer::new(record, &version.names, !self.is_dry_run);
            answer.logged = self.is_lost.then_some(false);
            if options.explain { answer.explained(record, version, &self.available(version)) } else { answer }
        })
    }
}

/// Decide one query, or several together
///
/// The decision is committed to the log before it is answered. The same `id` from the same key gives the first decision again; with other
/// probabilities or features it is refused (422, `urn:pointsman:id-reused`), and nothing of the request is logged. Give `probs` for one
/// query, or `rows` of queries, which are decided together, all or none.
///
/// A body may also be `application/x-ndjson`, one query per line, or an Arrow IPC stream (`application/vnd.apache.arrow.stream`) with the
/// columns of a table: `prob_<class>`, or a list `probs` in the order of the classes, `x_<feature>`, and optionally `id`, `tags` (a map, or
/// text with a JSON object) and `input` (text with JSON). The answer has the same format. In Arrow, texts that are left out in JSON are
/// empty, and an explanation is the columns `cell_name`, `rows`, `level` and `next_best`.
#[utoipa::path(
    post,
    path = "/v1/deployments/{deployment}/decide",
    tag = "decisions",
    params(("deployment" = String, Path, description = "The deployment's name"), DecideParams),
    request_body(content(
        (DecideBody = "application/json", example = json!({"id": "q17", "probs": [0.2, 0.5, 0.3], "features": {"words": 12}, "tags": {"team": "shop"}})),
        (String = "application/x-ndjson"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses(
        (status = 200, description = "The decision, or `rows` of them, in the format of the body", content(
            (Answer = "application/json"),
            (String = "application/x-ndjson"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        )),
        (status = 400, description = "The body cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such deployment", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The deployment has no active version", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A value cannot be used", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nothing can be committed now", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    Decider(caller): Decider,
    Path(name): Path<String>,
    extract::Query(params): extract::Query<DecideParams>,
    ContentType(content_type): ContentType,
    body: Bytes,
) -> Result<Response, Problem> {
    let options = Options { explain: params.explain, dry_run: params.dry_run };
    let timer = app.metrics.start_decision();
    let content_type = content_type.as_ref().map_or("", |value| value.to_str().unwrap_or("unreadable"));
    let request = DecideRequest::new(&app, &name, caller)?;
    let kind = content_type.split(';').next().unwrap_or("").trim();
    let response = match kind {
        "application/json" | "" => json_body(&request, &body, options).await?,
        formats::NDJSON => formats::ndjson(&request, &body, options).await?,
        formats::ARROW => formats::arrow(&request, body, options).await?,
        other => {
            let detail = format!("{other:?}: send application/json, {} or {}", formats::NDJSON, formats::ARROW);
            return Err(Problem::new(Kind::UnsupportedType, detail));
        }
    };
    timer.observe();
    Ok(response)
}

/// A deployment and its active version.
pub(crate) fn active(app: &App, name: &str) -> Result<(Arc<Deployment>, Arc<Version>), Problem> {
    let now = app.deployments.now();
    let deployment = now.deployments.get(name).ok_or_else(|| Problem::no_deployment(name))?;
    let version = deployment
        .active
        .as_ref()
        .ok_or_else(|| Problem::new(Kind::Conflict, how_to_activate(name, &deployment.stored)))?;
    Ok((Arc::clone(deployment), Arc::clone(version)))
}

/// Says that a deployment has no active version, and how to get one.
fn how_to_activate(name: &str, deployment: &StoredDeployment) -> String {
    let numbers: Vec<String> = deployment.versions.iter().map(|version| version.number.to_string()).collect();
    let Some(newest) = numbers.last() else {
        return format!("deployment {name:?} has no version yet: add one with POST /v1/deployments/{name}/versions");
    };
    let has = if numbers.len() == 1 { "a version" } else { "versions" };
    format!(
        "deployment {name:?} has {has} ({}), and none is active: activate one with POST \
         /v1/deployments/{name}/versions/{newest}/activate (`pointsman versions activate {name} {newest}`)",
        numbers.join(", ")
    )
}

/// How a request states several queries.
const SEVERAL_QUERIES: &str =
    "give several queries as rows, or one per line as application/x-ndjson (with curl: --data-binary)";

async fn json_body(request: &DecideRequest<'_>, body: &[u8], asked: Options) -> Result<Response, Problem> {
    let body: DecideBody = parse_object(body).map_err(|problem| explain_more(problem, SEVERAL_QUERIES))?;
    let DecideBody { id, probs, features, tags, input, rows, explain, dry_run } = body;
    let options = Options { explain: explain || asked.explain, dry_run: dry_run || asked.dry_run };
    match (probs, rows) {
        (Some(probs), None) => {
            let query = request.query(QueryBody { id, probs, features, tags, input }, "")?;
            let decided = request.commit(vec![query], options, |_| String::new()).await?;
            let answer = decided.answers(options).next();
            answer.map(|answer| json(&answer)).ok_or_else(|| Problem::new(Kind::Internal, "a query has no answer"))
        }
        (None, Some(rows)) => {
            if id.is_some() || features.is_some() || tags.is_some() || input.is_some() {
                let detail = "with rows, id, features, tags and input belong into each row";
                return Err(Problem::invalid("/rows", detail));
            }
            request.app.limits.check_rows(rows.len()).map_err(|problem| problem.at("/rows"))?;
            let query = |(row, Object(body))| request.query(body, &format!("/rows/{row}"));
            let queries = rows.into_iter().enumerate().map(query).collect::<Result<Vec<_>, _>>()?;
            let decided = request.commit(queries, options, |row| format!("/rows/{row}")).await?;
            Ok(json(&Answers { rows: decided.answers(options).collect() }))
        }
        (Some(_), Some(_)) => Err(Problem::invalid("/rows", "give probs for one query, or rows for several, not both")),
        (None, None) => Err(Problem::invalid("/probs", "probs is missing: give one probability per class")),
    }
}

/// A request to decide: who asks, and what decides.
pub(crate) struct DecideRequest<'a> {
    pub(crate) app: &'a App,
    pub(crate) version: Arc<Version>,
    deployment: Arc<Deployment>,
    caller: Caller,
}

impl<'a> DecideRequest<'a> {
    /// A request to the active version of a deployment.
    pub(crate) fn new(app: &'a App, deployment: &str, caller: Caller) -> Result<Self, Problem> {
        let (deployment, version) = active(app, deployment)?;
        Ok(Self { app, version, deployment, caller })
    }

    /// A query that stands at this place of the body.
    pub(crate) fn query(&self, body: QueryBody, at: &str) -> Result<Query, Problem> {
        let query = body.for_policy(&self.version.policy);
        query.map_err(|bad| Problem::invalid(format!("{at}{}", bad.pointer), bad.reason))
    }

    /// Decides queries and commits them, all or none.
    pub(crate) async fn commit(
        &self,
        queries: Vec<Query>,
        options: Options,
        pointer: impl Fn(usize) -> String,
    ) -> Result<Decided, Problem> {
        let Self { app, version, deployment, caller } = self;
        let records = decide_queries(app, deployment, version, caller, queries, &pointer)?;
        let mut decided = Decided {
            version: Arc::clone(version),
            deployment: Arc::clone(deployment),
            records,
            earlier: HashMap::new(),
            is_dry_run: options.dry_run,
            is_lost: false,
        };
        if options.dry_run {
            return Ok(decided);
        }
        let appended = app.append(Arc::clone(&decided.records), Arc::clone(&deployment.alike)).await;
        let appended = appended.map_err(|error| match error {
            StoreError::IdReused { row, .. } => id_reused(&decided.records, error).at(format!("{}/id", pointer(row))),
            other => other.into(),
        })?;
        let Some(appended) = appended else {
            decided.is_lost = true;
            return Ok(decided);
        };
        // A batch that is sent again may consist of decisions of one earlier version.
        let mut loaded: HashMap<u32, Arc<Version>> = HashMap::new();
        for (row, appended) in appended.into_iter().enumerate() {
            match appended {
                Appended::Committed => {
                    app.metrics.count_decision(deployment, &decided.records[row].outcome, version);
                }
                Appended::Existing(first) => {
                    let number = first.version;
                    let version = match loaded.get(&number) {
                        Some(version) => Arc::clone(version),
                        None => app.deployments.version(deployment, number).await?.ok_or_else(|| {
                            Problem::new(Kind::Internal, format!("version {number} of an earlier decision is gone"))
                        })?,
                    };
                    loaded.insert(number, Arc::clone(&version));
                    decided.earlier.insert(row, (*first, version));
                }
            }
        }
        Ok(decided)
    }
}

/// Says which query had the same id before: one of the same request, or one of an earlier request.
fn id_reused(records: &[Record], error: StoreError) -> Problem {
    let StoreError::IdReused { row, id } = &error else { return error.into() };
    let is_same = |record: &Record| record.client_id.as_ref() == Some(id);
    if !records.iter().take(*row).any(is_same) {
        return error.into();
    }
    let detail = format!(
        "the id {id:?} is given twice in this request, with different queries: an id names one query; give this query an id \
         of its own"
    );
    Problem::new(Kind::IdReused, detail)
}

/// Decides queries without logging them.
fn decide_queries(
    app: &App,
    deployment: &Deployment,
    version: &Version,
    caller: &Caller,
    queries: Vec<Query>,
    pointer: impl Fn(usize) -> String,
) -> Result<Arc<Vec<Record>>, Problem> {
    let policy = &version.policy;
    let refuse = |row: usize, error: &pointsman::Error| {
        let bad = bad_field(error, policy);
        Problem::invalid(format!("{}{}", pointer(row), bad.pointer), bad.reason)
    };
    let outcomes = match queries.as_slice() {
        [query] => vec![decide_one(deployment, policy, query).map_err(|e| refuse(0, &e))?],
        // At the margin of a limit, the random draw is that of the query's id, if it has one.
        several if policy.task().limit().is_some() => {
            let one = |(row, query)| decide_one(deployment, policy, query).map_err(|e| refuse(row, &e));
            several.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?
        }
        several => decide_together(deployment, policy, several).map_err(|e| {
            let row = if let pointsman::Error::Value { row, .. } = &e { *row } else { 0 };
            refuse(row, &e)
        })?,
    };
    let record = |(id, at): (Uuid, Time), query: Query, outcome: Outcome| {
        let Query { id: client_id, tags, input, prediction, features } = query;
        let (deployment, version, key) = (deployment.id(), version.number, caller.key);
        Record { id, at, deployment, version, key, client_id, tags, input, prediction, features, outcome }
    };
    let decided = queries.into_iter().zip(outcomes);
    Ok(app.in_flight.make(|ids| decided.map(|(query, outcome)| record(ids.next(), query, outcome)).collect()))
}

fn decide_one(deployment: &Deployment, policy: &Policy, query: &Query) -> pointsman::Result<Outcome> {
    let Query { id, prediction, features, .. } = query;
    match id {
        // The random draw at the margin of a limit is that of the id, as on the command line.
        Some(id) if policy.task().limit().is_some() => {
            let mut batch = policy.decide_many(prediction, features)?;
            batch.draw_by_ids(policy, std::slice::from_ref(id));
            let decision = policy.row(&batch, 0).among(&deployment.available);
            Ok(outcome(&decision, policy, prediction, deployment.mode()))
        }
        _ => {
            let decision = policy.decide_with(prediction, features)?.among(&deployment.available);
            Ok(outcome(&decision, policy, prediction, deployment.mode()))
        }
    }
}

fn decide_together(deployment: &Deployment, policy: &Policy, queries: &[Query]) -> pointsman::Result<Vec<Outcome>> {
    let predictions: Vec<f64> = queries.iter().flat_map(|query| query.prediction.iter().copied()).collect();
    let features: Vec<f64> = queries.iter().flat_map(|query| query.features.iter().copied()).collect();
    let mut batch = policy.decide_many(&predictions, &features)?;
    batch.keep_available(policy, &deployment.available);
    let of_row =
        |(row, query): (usize, &Query)| outcome(&policy.row(&batch, row), policy, &query.prediction, deployment.mode());
    Ok(queries.iter().enumerate().map(of_row).collect())
}
