//! Refusals that no handler writes: of bodies that are too large, of methods that an address does not take, and of encoded bodies.

use axum::body::to_bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem};
use crate::app::Limits;

/// The longest text of a refusal that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 10_000;

/// Refuses encoded bodies.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let detail = format!("the content encoding {encoding:?}: send the body as it is");
            Err(Problem::new(Kind::UnsupportedType, detail))
        }
        _ => Ok(()),
    }
}

/// A refusal as a problem document, unless it is one already.
pub(crate) async fn as_problem(response: Response, limits: &Limits) -> Response {
    let has_text =
        response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
    if !has_text {
        return response;
    }
    let (parts, body) = response.into_parts();
    let kind = match parts.status {
        StatusCode::BAD_REQUEST => Kind::Malformed,
        StatusCode::METHOD_NOT_ALLOWED => Kind::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Kind::UnsupportedType,
        StatusCode::UNPROCESSABLE_ENTITY => Kind::Invalid,
        _ => return Response::from_parts(parts, body),
    };
    let problem = match kind {
        Kind::MethodNotAllowed => Problem::new(kind, "this address takes other methods: the header Allow names them"),
        // Uploads are read by their handlers, which know their limit.
        Kind::TooLarge => limits.large_body(),
        _ => {
            let text = to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
            Problem::new(kind, String::from_utf8_lossy(&text).trim())
        }
    };
    let mut problem = problem.into_response();
    for (name, value) in &parts.headers {
        if *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}
