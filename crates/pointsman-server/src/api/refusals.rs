//! Refusals that no handler writes: of bodies that are too large, of methods that an address does not take, and of encoded bodies.

use axum::body::to_bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem};

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
pub(crate) async fn as_problem(response: Response) -> Response {
    let has_text =
        response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
    let Some((kind, detail)) = known(response.status()).filter(|_| has_text) else { return response };
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = if detail.is_empty() { text.trim() } else { detail };
    let mut problem = Problem::new(kind, text).into_response();
    for (name, value) in &parts.headers {
        if *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH {
            problem.headers_mut().insert(name, value.clone());
        }
    }
    problem
}

/// The kind of a refusal, and what it says; nothing if its own text does.
fn known(status: StatusCode) -> Option<(Kind, &'static str)> {
    match status {
        StatusCode::BAD_REQUEST => Some((Kind::Malformed, "")),
        StatusCode::METHOD_NOT_ALLOWED => {
            Some((Kind::MethodNotAllowed, "this address takes other methods: the header Allow names them"))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            Some((Kind::TooLarge, "the body is larger than body_megabytes or upload_megabytes of [limits] allows"))
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some((Kind::UnsupportedType, "")),
        StatusCode::UNPROCESSABLE_ENTITY => Some((Kind::Invalid, "")),
        _ => None,
    }
}
