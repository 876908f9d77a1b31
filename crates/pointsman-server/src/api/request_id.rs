//! An id for every request, by which callers and log lines speak of it.

use std::fmt::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

use crate::clock::Time;
use crate::keys::redact;

/// The header of the id, in requests and answers.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken from a caller, in bytes.
const MAX_BYTES: usize = 128;

/// Answers with the caller's request id, or with a new one, and logs requests that failed.
pub(crate) async fn identify_request<F: Future<Output = Response>>(
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let id = request.headers().get(REQUEST_ID).filter(|id| is_usable(id)).cloned().unwrap_or_else(new_id);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut response = answer(request).await;
    let status = response.status();
    // What a store cannot commit is logged once by the store, not by every request that it refuses.
    let has_failed = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
    if has_failed || tracing::enabled!(tracing::Level::DEBUG) {
        // Without the query string, and without keys that were sent in a wrong place.
        let (method, path) = (redact(method.as_str()), redact(uri.path()));
        let (request_id, status) = (id.to_str().unwrap_or_default(), status.as_u16());
        if has_failed {
            tracing::error!(request_id, %method, %path, status, "a request failed");
        } else {
            tracing::debug!(request_id, %method, %path, status, "a request was answered");
        }
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Whether an id is short, has visible characters only and is not a key that was sent in the wrong header.
fn is_usable(id: &HeaderValue) -> bool {
    let is_plain = (1..=MAX_BYTES).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
    is_plain && id.to_str().is_ok_and(|text| redact(text) == text)
}

/// The time at which the process made its first id, and a number that counts up.
fn new_id() -> HeaderValue {
    static START: LazyLock<String> = LazyLock::new(|| format!("{:x}-", Time::now().0));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut id = String::with_capacity(START.len() + u64::BITS as usize / 4);
    id.push_str(&START);
    // Writing to a string cannot fail.
    let _ = write!(id, "{:x}", COUNT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("unknown"))
}
