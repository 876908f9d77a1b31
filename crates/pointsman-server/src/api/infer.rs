//! The Open Inference Protocol: probabilities in, actions out.
//!
//! An `infer` request has an input `probs` of shape rows × classes and, if the router uses features, `features` of shape rows × features in
//! the router's order. Numbers come as JSON, or as raw little-endian bytes after it (the protocol's binary extension).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Decider;
use super::decide::{DecideRequest, Options, active};
use super::extract::Path;
use super::object::{FromObject, Object};
use super::problem::{Kind, Problem};
use super::{json, parse_object};
use crate::answer::Answer;
use crate::app::App;
use crate::query::{Query, check_id};

/// The header that says how long the JSON part of a body is.
const JSON_LENGTH: &str = "inference-header-content-length";

/// Tensors of probabilities and features.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct InferBody {
    /// The caller's id of the request; with one row, it is the id of the query.
    #[serde(default)]
    id: Option<String>,
    /// `probs` of shape rows × classes and, if the router uses features, `features` of shape rows × features.
    #[schema(value_type = Vec<Tensor>)]
    inputs: Vec<Object<Tensor>>,
    /// The tensors that are wanted; left out or empty: all of them.
    #[serde(default)]
    #[schema(value_type = Vec<WantedOutput>)]
    outputs: Vec<Object<WantedOutput>>,
}

/// A tensor that an answer shall have.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct WantedOutput {
    /// `action`, `label`, `decision_id`, `irreducible` or `reducible`.
    name: String,
}

impl FromObject for WantedOutput {
    const EXAMPLE: &'static str = "{\"name\": \"action\"}";
}

/// The names and types of all tensors of an answer.
const OUTPUTS: [(&str, &str); 5] =
    [("action", TEXT), ("label", TEXT), ("decision_id", TEXT), ("irreducible", NUMBER), ("reducible", NUMBER)];

/// How the protocol calls texts, and numbers of 64 bits.
const TEXT: &str = "BYTES";
const NUMBER: &str = "FP64";

impl FromObject for InferBody {
    const EXAMPLE: &'static str = "{\"inputs\": [{\"name\": \"probs\", …}]}";
}

/// A tensor.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Tensor {
    /// `probs` or `features`.
    name: String,
    /// The number of rows and of columns.
    shape: Vec<usize>,
    /// `FP64` or `FP32`.
    datatype: String,
    /// Where the numbers are, if not in `data`.
    #[serde(default)]
    #[schema(value_type = TensorParameters)]
    parameters: Object<TensorParameters>,
    /// The numbers, row by row; nested lists are read in order.
    #[serde(default)]
    #[schema(value_type = Vec<f64>)]
    data: Option<serde_json::Value>,
}

impl FromObject for Tensor {
    const EXAMPLE: &'static str = "{\"name\": \"probs\", \"shape\": […], \"datatype\": \"FP64\", \"data\": […]}";
}

/// Parameters of a tensor.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct TensorParameters {
    /// The number of bytes of raw numbers after the JSON, if they are not in `data`.
    #[serde(default)]
    binary_data_size: Option<usize>,
}

impl FromObject for TensorParameters {
    const EXAMPLE: &'static str = "{\"binary_data_size\": 24}";
}

/// The answer of an inference.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InferAnswer {
    /// The deployment.
    model_name: String,
    /// The version that decided.
    model_version: String,
    /// The id of the request, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// One tensor per kind of result.
    outputs: Vec<Output>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<InferParameters>,
}

/// What is to be known of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InferParameters {
    /// False if the decisions could not be logged and are answered all the same (`on_log_failure`): their ids will find nothing.
    logged: bool,
}

/// A tensor of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Output {
    /// `action`, `label`, `decision_id`, `irreducible` or `reducible`.
    name: &'static str,
    /// The number of rows.
    shape: Vec<usize>,
    /// `BYTES` for texts, `FP64` for numbers.
    datatype: &'static str,
    /// One value per row.
    data: Values,
}

/// Texts or numbers, one per row.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum Values {
    Text(Vec<String>),
    Numbers(Vec<f64>),
}

/// A deployment as the protocol describes a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelMetadata {
    /// The deployment.
    name: String,
    /// `pointsman`.
    platform: &'static str,
    /// What a request gives.
    inputs: Vec<TensorMetadata>,
    /// What an answer has.
    outputs: Vec<TensorMetadata>,
}

/// A tensor that a model takes or gives.
#[derive(Debug, Serialize, ToSchema)]
struct TensorMetadata {
    /// Its name.
    name: &'static str,
    /// The type of its values.
    datatype: &'static str,
    /// The lengths of its sides; -1 is any number of rows.
    shape: Vec<i64>,
}

/// The service as the protocol describes a server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerMetadata {
    /// `pointsman`.
    name: &'static str,
    /// The version of the program.
    version: &'static str,
    /// What it understands beyond the protocol.
    extensions: Vec<&'static str>,
}

/// The server, as the Open Inference Protocol describes it
#[utoipa::path(get, path = "/v2", tag = "open inference", responses((status = 200, description = "The server", body = ServerMetadata)))]
pub(crate) async fn server() -> Response {
    json(&ServerMetadata {
        name: "pointsman",
        version: env!("CARGO_PKG_VERSION"),
        extensions: vec!["binary_tensor_data"],
    })
}

/// Whether the process runs
#[utoipa::path(get, path = "/v2/health/live", tag = "open inference", responses((status = 200, description = "It runs")))]
pub(crate) async fn live() -> StatusCode {
    StatusCode::OK
}

/// Whether requests are taken
#[utoipa::path(
    get,
    path = "/v2/health/ready",
    tag = "open inference",
    responses((status = 200, description = "They are"), (status = 503, description = "They are not")),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> StatusCode {
    let is_ready = !app.is_draining() && (app.answers_unlogged() || app.store.check().await.is_ok());
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// A deployment, as the Open Inference Protocol describes a model
#[utoipa::path(
    get,
    path = "/v2/models/{deployment}",
    tag = "open inference",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses((status = 200, description = "The model", body = ModelMetadata)),
)]
pub(crate) async fn model(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Problem> {
    let (_, version) = active(&app, &name)?;
    let policy = &version.policy;
    let features = policy.cells().features().len() as i64;
    let tensor = |name, datatype, columns: i64| TensorMetadata { name, datatype, shape: vec![-1, columns] };
    let list = |(name, datatype)| TensorMetadata { name, datatype, shape: vec![-1] };
    let mut inputs = vec![tensor("probs", NUMBER, policy.classes().len() as i64)];
    if features > 0 {
        inputs.push(tensor("features", NUMBER, features));
    }
    let outputs = OUTPUTS.into_iter().map(list).collect();
    Ok(json(&ModelMetadata { name, platform: "pointsman", inputs, outputs }))
}

/// Whether a deployment has an active version
#[utoipa::path(
    get,
    path = "/v2/models/{deployment}/ready",
    tag = "open inference",
    params(("deployment" = String, Path, description = "The deployment's name")),
    responses((status = 200, description = "It has"), (status = 404, description = "It has not, or there is none")),
)]
pub(crate) async fn model_ready(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    match active(&app, &name) {
        Ok(_) => StatusCode::OK.into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// Decide queries by the Open Inference Protocol
#[utoipa::path(
    post,
    path = "/v2/models/{deployment}/infer",
    tag = "open inference",
    params(("deployment" = String, Path, description = "The deployment's name")),
    request_body(content = InferBody, example = json!({"inputs": [{"name": "probs", "shape": [1, 3], "datatype": "FP64", "data": [0.2, 0.5, 0.3]}]})),
    responses(
        (status = 200, description = "One action per row", body = InferAnswer),
        (status = 422, description = "A value cannot be used", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn infer(
    State(app): State<Arc<App>>,
    Decider(caller): Decider,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = DecideRequest::new(&app, &name, caller)?;
    let (text, raw) = split(&headers, &body)?;
    let InferBody { id, inputs, outputs } = parse_object(text)?;
    check_id(id.as_deref()).map_err(|bad| Problem::invalid(bad.pointer, bad.reason))?;
    check_outputs(&outputs)?;
    let queries = queries(&request, inputs, raw, id.as_deref())?;
    let decided = request.commit(queries, Options::default(), |row| format!("/{row}")).await.map_err(in_inputs)?;
    let answers: Vec<_> = decided.answers(Options::default()).collect();
    let is_wanted = |name: &str| outputs.is_empty() || outputs.iter().any(|Object(wanted)| wanted.name == name);
    let outputs = OUTPUTS.into_iter().filter(|(name, _)| is_wanted(name)).map(|(name, datatype)| {
        let data = match datatype {
            TEXT => Values::Text(answers.iter().map(|answer| text_of(answer, name)).collect()),
            _ => Values::Numbers(answers.iter().map(|answer| number_of(answer, name)).collect()),
        };
        Output { name, shape: vec![answers.len()], datatype, data }
    });
    Ok(json(&InferAnswer {
        model_name: name,
        model_version: request.version.number.to_string(),
        id,
        outputs: outputs.collect(),
        parameters: decided.is_lost.then_some(InferParameters { logged: false }),
    }))
}

/// A text of an answer.
fn text_of(answer: &Answer<'_>, name: &str) -> String {
    match name {
        "action" => answer.action.to_owned(),
        "label" => answer.label.to_owned(),
        _ => answer.decision_id.map(|id| id.to_string()).unwrap_or_default(),
    }
}

/// A number of an answer.
fn number_of(answer: &Answer<'_>, name: &str) -> f64 {
    let number = if name == "irreducible" { answer.irreducible } else { answer.reducible };
    number.unwrap_or(f64::NAN)
}

/// Refuses tensors that no answer has.
fn check_outputs(wanted: &[Object<WantedOutput>]) -> Result<(), Problem> {
    let is_known = |name: &str| OUTPUTS.iter().any(|(known, _)| *known == name);
    match wanted.iter().position(|Object(wanted)| !is_known(&wanted.name)) {
        None => Ok(()),
        Some(place) => {
            let known = OUTPUTS.map(|(name, _)| name).join(", ");
            let detail = format!("there is no output {:?}: there are {known}", wanted[place].0.name);
            Err(Problem::invalid(format!("/outputs/{place}/name"), detail))
        }
    }
}

/// A problem with a field of a row, which a tensor has no pointer to: the detail names both.
fn in_inputs(mut problem: Problem) -> Problem {
    let pointer = problem.pointer.take();
    match pointer.as_deref().and_then(|pointer| pointer.strip_prefix('/')?.split_once('/')) {
        Some((row, field)) => {
            problem.detail = format!("row {row}, {field}: {}", problem.detail);
            problem.at("/inputs")
        }
        None => Problem { pointer, ..problem },
    }
}

/// The JSON part of a body and the raw bytes after it.
fn split<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Problem> {
    let Some(length) = headers.get(JSON_LENGTH) else { return Ok((body, &[])) };
    let length =
        length.to_str().ok().and_then(|text| text.parse::<usize>().ok()).filter(|length| *length <= body.len());
    let length = length.ok_or_else(|| {
        Problem::new(Kind::Malformed, format!("the header {JSON_LENGTH} is not the length of the JSON part"))
    })?;
    Ok(body.split_at(length))
}

fn queries(
    request: &DecideRequest<'_>,
    inputs: Vec<Object<Tensor>>,
    mut raw: &[u8],
    id: Option<&str>,
) -> Result<Vec<Query>, Problem> {
    let policy = &request.version.policy;
    let (classes, features) = (policy.classes().len(), policy.cells().features().len());
    let (mut probs, mut values) = (None, None);
    for (place, Object(tensor)) in inputs.into_iter().enumerate() {
        let (slot, width) = match tensor.name.as_str() {
            "probs" => (&mut probs, classes),
            "features" => (&mut values, features),
            other => {
                let detail = format!("there is no input {other:?}: give probs and, if the router uses any, features");
                return Err(Problem::invalid(format!("/inputs/{place}/name"), detail));
            }
        };
        if slot.is_some() {
            let detail = format!("the input {} is given twice", tensor.name);
            return Err(Problem::invalid(format!("/inputs/{place}/name"), detail));
        }
        *slot = Some(tensor.numbers(place, width, &mut raw)?);
    }
    if !raw.is_empty() {
        let detail = format!("{} bytes after the JSON part belong to no input: see binary_data_size", raw.len());
        return Err(Problem::invalid("/inputs", detail));
    }
    let probs = probs.ok_or_else(|| Problem::invalid("/inputs", "the input probs is missing"))?;
    let rows = probs.len() / classes;
    request.app.limits.check_rows(rows).map_err(|problem| problem.at("/inputs"))?;
    let values = values.unwrap_or_default();
    if values.len() != rows * features {
        let names = policy.cells().features().join(", ");
        let detail =
            format!("the input features has {} numbers for {rows} rows of {features} features ({names})", values.len());
        return Err(Problem::invalid("/inputs", detail));
    }
    let query = |row: usize| Query {
        id: id.filter(|_| rows == 1).map(str::to_owned),
        tags: None,
        input: None,
        prediction: probs[row * classes..(row + 1) * classes].to_vec(),
        features: values[row * features..(row + 1) * features].to_vec(),
    };
    Ok((0..rows).map(query).collect())
}

impl Tensor {
    /// The numbers of a tensor with this many columns; those that are not in the JSON are taken from the raw bytes.
    fn numbers(self, place: usize, width: usize, raw: &mut &[u8]) -> Result<Vec<f64>, Problem> {
        let at = |field: &str| format!("/inputs/{place}/{field}");
        if self.shape.len() != 2 || self.shape[1] != width {
            let detail = format!("the shape of {} is {:?}: it must be rows × {width}", self.name, self.shape);
            return Err(Problem::invalid(at("shape"), detail));
        }
        let count = self.shape[0].checked_mul(width).ok_or_else(|| Problem::invalid(at("shape"), "too large"))?;
        let numbers = match (self.data, self.parameters.0.binary_data_size) {
            (Some(data), None) => {
                let mut numbers = Vec::new();
                flatten(&data, &mut numbers).map_err(|reason| Problem::invalid(at("data"), reason))?;
                numbers
            }
            (None, Some(size)) if size <= raw.len() => {
                let (own, rest) = raw.split_at(size);
                *raw = rest;
                let width = if self.datatype == "FP32" { 4 } else { 8 };
                if size % width != 0 {
                    let detail = format!("{size} bytes are no whole number of {}", self.datatype);
                    return Err(Problem::invalid(at("parameters/binary_data_size"), detail));
                }
                match self.datatype.as_str() {
                    "FP64" => own.as_chunks::<8>().0.iter().map(|word| f64::from_le_bytes(*word)).collect(),
                    "FP32" => own.as_chunks::<4>().0.iter().map(|word| f64::from(f32::from_le_bytes(*word))).collect(),
                    other => return Err(Problem::invalid(at("datatype"), format!("{other}: send FP64 or FP32"))),
                }
            }
            _ => return Err(Problem::invalid(at("data"), "there are no numbers, or fewer than binary_data_size says")),
        };
        if numbers.len() != count {
            let detail = format!("{} numbers for the shape {:?}", numbers.len(), self.shape);
            return Err(Problem::invalid(at("data"), detail));
        }
        Ok(numbers)
    }
}

fn flatten(value: &serde_json::Value, numbers: &mut Vec<f64>) -> Result<(), String> {
    match value {
        serde_json::Value::Array(list) => list.iter().try_for_each(|value| flatten(value, numbers)),
        serde_json::Value::Null => {
            numbers.push(f64::NAN);
            Ok(())
        }
        other => {
            numbers.push(other.as_f64().ok_or_else(|| format!("{other} is not a number"))?);
            Ok(())
        }
    }
}
