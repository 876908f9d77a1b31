//! The parts of an address. What is wrong with them is a problem document, as it is for bodies.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::extract;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;

use super::pointer;
use super::problem::{Kind, Problem};
use crate::app::Limits;

/// The parameters after the question mark.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = parts.uri.query().unwrap_or_default().as_bytes();
        let pairs = || serde_urlencoded::Deserializer::new(form_urlencoded::parse(text));
        // Keeping the place in mind takes time, so that it is done only if something is wrong.
        let read = T::deserialize(pairs()).or_else(|_| serde_path_to_error::deserialize(pairs()));
        read.map(Self)
            .map_err(|error| Problem::invalid(pointer(error.path()), format!("the parameters of the address: {error}")))
    }
}

/// The names and numbers before it.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match extract::Path::from_request_parts(parts, state).await {
            Ok(extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                use extract::path::ErrorKind::{DeserializeError, ParseError, ParseErrorAtIndex, ParseErrorAtKey};
                // A version stands behind its deployment, and a decision_id alone; all other parts are texts.
                let what = match error.kind() {
                    ParseErrorAtIndex { value, .. } => format!("{value:?} is not a version's number"),
                    ParseErrorAtKey { value, .. } | ParseError { value, .. } | DeserializeError { value, .. } => {
                        format!("{value:?} is not a decision_id")
                    }
                    other => other.to_string(),
                };
                let detail = format!("there is nothing at this address: {what}");
                Err(Problem::new(Kind::NotFound, detail))
            }
            Err(other) => Err(Problem::new(Kind::Internal, other.body_text())),
        }
    }
}

/// The media type of the body, if it is given.
#[derive(Debug)]
pub(crate) struct ContentType(pub(crate) Option<HeaderValue>);

impl<S: Sync> FromRequestParts<S> for ContentType {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.get(header::CONTENT_TYPE).cloned()))
    }
}

/// The body of an upload.
pub(crate) async fn upload(request: Request, limits: &Limits) -> Result<Bytes, Problem> {
    Bytes::from_request(request, &()).await.map_err(|error| {
        let detail = error.body_text();
        match error.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => limits.large_upload(),
            _ => Problem::new(Kind::Malformed, detail),
        }
    })
}
