//! Errors as problem documents (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pointsman::error::printable;
use serde::Serialize;
use utoipa::ToSchema;

use crate::deployment::LoadError;
use crate::keys::redact;
use crate::store::{ChangeError, StoreError};

/// How long a caller should wait before it tries again, in seconds.
const RETRY_AFTER: &str = "1";

/// The longest detail, in characters: requests choose the names in it.
const MAX_DETAIL: usize = 2_000;

/// Why a request was refused or failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem it is, as a name that programs can compare.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The kind in words.
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong this time, and what to do about it.
    pub(crate) detail: String,
    /// The field of the request that is wrong, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    /// The detail again, at addresses of the Open Inference Protocol, whose clients look for it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The body is not what the endpoint reads.
    Malformed,
    /// A value of the request is wrong.
    Invalid,
    /// The request needs a key, or another one.
    Unauthorized,
    /// The key may not do this.
    Forbidden,
    /// A browser sends the request for another site.
    OtherSite,
    /// There is no such thing.
    NotFound,
    /// The address takes other methods.
    MethodNotAllowed,
    /// The request does not fit the present state.
    Conflict,
    /// The caller's id was given before with another query.
    IdReused,
    /// The body or a batch is too large.
    TooLarge,
    /// The body is in a format that the endpoint does not read.
    UnsupportedType,
    /// The answer has none of the formats that the request accepts.
    NotAcceptable,
    /// The key has made too many requests.
    TooManyRequests,
    /// The request took too long.
    Timeout,
    /// The store cannot commit now.
    Unavailable,
    /// The service failed.
    Internal,
}

impl Kind {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Malformed => (StatusCode::BAD_REQUEST, "malformed", "The body cannot be read"),
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", "A value cannot be used"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "The request has no valid key"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "The key may not do this"),
            Self::OtherSite => (StatusCode::FORBIDDEN, "other-site", "The request comes from another site"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The address does not take this method")
            }
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "The request does not fit the present state"),
            Self::IdReused => {
                (StatusCode::UNPROCESSABLE_ENTITY, "id-reused", "The id was given before with another query")
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request is too large"),
            Self::UnsupportedType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-type", "The content type is not supported")
            }
            Self::NotAcceptable => {
                (StatusCode::NOT_ACCEPTABLE, "not-acceptable", "There is no answer in an accepted format")
            }
            Self::TooManyRequests => {
                (StatusCode::TOO_MANY_REQUESTS, "too-many-requests", "The key makes too many requests")
            }
            Self::Timeout => (StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Nothing can be committed now"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "The service failed"),
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let (status, name, title) = kind.parts();
        Self {
            kind: format!("urn:pointsman:{name}"),
            title,
            status: status.as_u16(),
            detail: short(&detail.into()),
            pointer: None,
            error: None,
        }
    }

    /// The same problem at a field of the request.
    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(bounded(&pointer.into(), str::to_owned));
        self
    }

    /// A value that is wrong, at its field.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, detail).at(pointer)
    }

    pub(crate) fn no_deployment(name: &str) -> Self {
        Self::new(Kind::NotFound, format!("there is no deployment {name:?}: GET /v1/deployments lists those there are"))
    }
}

/// The text as one printable line of bounded length, without secrets.
fn short(text: &str) -> String {
    bounded(text, printable)
}

/// The beginning of a text without secrets, written in another way.
fn bounded(text: &str, write: fn(&str) -> String) -> String {
    let text = redact(text);
    match text.char_indices().nth(MAX_DETAIL) {
        Some((end, _)) => write(&text[..end]) + "…",
        None => write(&text),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    }
}

/// A refusal with the field that the Open Inference Protocol gives to errors.
pub(crate) fn with_error_field(mut response: Response) -> Response {
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.error = Some(problem.detail.clone());
        *response.body_mut() = Json(&problem).into_response().into_body();
        // The router has set that of the body before.
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::QueueFull { .. } | StoreError::Unavailable(_) => Kind::Unavailable,
            StoreError::Refused(
                ChangeError::NoDeployment(_) | ChangeError::NoVersion { .. } | ChangeError::NoKey(_),
            ) => Kind::NotFound,
            StoreError::Refused(_) => Kind::Conflict,
            StoreError::IdReused { .. } => Kind::IdReused,
            StoreError::Damaged(_) | StoreError::Missing(_) => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Store(error) => error.into(),
            LoadError::NoFile(_) => Self::new(Kind::NotFound, error.to_string()),
            LoadError::File(_) => Self::new(Kind::Internal, error.to_string()),
        }
    }
}
