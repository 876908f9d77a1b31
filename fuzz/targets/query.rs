//! Addresses with their query parameters, and the header that names the wanted format: an answer, or a refusal with a reason.
#![no_main]

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, Request, Uri};
use libfuzzer_sys::fuzz_target;
use pointsman_fuzz::prepare_service;
use pointsman_fuzz::service::{PLAIN, Service};

static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

// The first byte chooses the address, the text up to a line end completes it, and the rest is the header Accept.
fuzz_target!(|data: &[u8]| {
    prepare_service();
    let [how, rest @ ..] = data else { return };
    let (text, accept) = match rest.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&rest[..end], Some(&rest[end + 1..])),
        None => (rest, None),
    };
    let address = match how % 4 {
        0 | 1 => format!("/v1/deployments/{PLAIN}/decisions?"),
        2 => "/v1/admin/log?".to_owned(),
        _ => "/v1/decisions/".to_owned(),
    };
    let Ok(uri) = Uri::try_from([address.as_bytes(), text].concat()) else { return };
    let mut request = Request::get(uri);
    if let Some(accept) = accept {
        let Ok(value) = HeaderValue::from_bytes(accept) else { return };
        request = request.header("accept", value);
    }
    SERVICE.send(request.body(Body::empty()).expect("a request")).check();
});
