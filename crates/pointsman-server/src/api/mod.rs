//! The HTTP interface: one file per resource. Handlers read a request, check it, call, and answer; they contain neither SQL nor
//! arithmetic on losses.

pub(crate) mod access;
pub(crate) mod admin_log;
mod attachments;
pub(crate) mod decide;
pub(crate) mod decisions;
pub(crate) mod deployments;
mod export;
mod extract;
pub(crate) mod files;
pub(crate) mod formats;
pub(crate) mod health;
pub(crate) mod infer;
pub(crate) mod object;
pub(crate) mod problem;
pub(crate) mod refusals;
pub(crate) mod request_id;
pub(crate) mod site;
pub(crate) mod versions;
pub(crate) mod what_if;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use object::{FromObject, Object};
use problem::{Kind, Problem};

/// Entries per page if the request does not say how many, and the most.
pub(crate) const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// The number of entries per page that a request asks for.
pub(crate) fn page_size(limit: Option<usize>) -> Result<usize, Problem> {
    let size = limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&size) {
        let detail = format!("{size} is not a size of a page: give from 1 to {MAX_PAGE}");
        return Err(Problem::invalid("/limit", detail));
    }
    Ok(size)
}

/// Room for the answer to one query, so that its buffer need not grow.
const USUAL_ANSWER_BYTES: usize = 512;

/// An answer as JSON.
pub(crate) fn json(value: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(USUAL_ANSWER_BYTES);
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => {
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(e) => Problem::new(Kind::Internal, format!("the answer cannot be written: {e}")).into_response(),
    }
}

/// Reads a body that is a JSON object; what is wrong is named with its place in it.
pub(crate) fn parse_object<T: FromObject>(body: &[u8]) -> Result<T, Problem> {
    parse_json(body).map(|Object(value)| value)
}

/// Reads any JSON.
pub(crate) fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|_| explain_json::<T>(body))
}

/// What is said of a body that goes on after its JSON value.
const MORE_AFTER_VALUE: &str = "there is more after the JSON value";

/// The same problem, with what to do if the body goes on after its JSON value.
pub(crate) fn explain_more(mut problem: Problem, remedy: &str) -> Problem {
    if problem.detail == MORE_AFTER_VALUE {
        problem.detail = format!("{MORE_AFTER_VALUE}: {remedy}");
    }
    problem
}

/// What is wrong with a JSON body. Looking for the place takes time, so that it is done only for bodies that are wrong.
#[cold]
fn explain_json<T: DeserializeOwned>(body: &[u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => error,
        Ok(_) => return Problem::new(Kind::Malformed, MORE_AFTER_VALUE),
    };
    let is_syntax = !error.inner().is_data();
    if is_syntax {
        let inner = error.inner();
        let about_numbers = if is_at_no_number(body, inner) { NO_JSON_NUMBERS } else { "" };
        return Problem::new(Kind::Malformed, format!("not JSON: {inner}{about_numbers}"));
    }
    Problem::invalid(pointer(error.path()), error.into_inner().to_string())
}

/// What is said of names of numbers that JSON does not have.
const NO_JSON_NUMBERS: &str =
    "; NaN and Infinity are not JSON: null stands for a missing feature, if the router takes missing values";

/// Whether an error is where the body has one of the names that some programs write for numbers that JSON does not have.
fn is_at_no_number(body: &[u8], error: &serde_json::Error) -> bool {
    const NAMES: [&[u8]; 3] = [b"NaN", b"Infinity", b"nan"];
    // The error is at the first byte of the name, or one before or after it.
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = line.get(error.column().saturating_sub(2)..).unwrap_or_default();
    (0..=2).any(|skipped| NAMES.iter().any(|name| from.get(skipped..).is_some_and(|rest| rest.starts_with(name))))
}

/// The place of a value as a JSON pointer.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let token = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
        _ => None,
    };
    path.iter().filter_map(token).collect()
}
