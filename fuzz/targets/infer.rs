//! Requests of the Open Inference Protocol, with numbers in the JSON or as raw bytes after it: one action per row, or a refusal with a reason.
#![no_main]

use std::sync::LazyLock;

use axum::http::Request;
use libfuzzer_sys::fuzz_target;
use pointsman_fuzz::prepare_service;
use pointsman_fuzz::service::{PLAIN, Service, WITH_FEATURE};
use serde_json::Value;

static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

// The first byte chooses the deployment and whether raw bytes follow the JSON. If so, the next two are the length of the JSON part, and
// another bit makes the header a text that is no number.
fuzz_target!(|data: &[u8]| {
    prepare_service();
    let [how, low, high, body @ ..] = data else { return };
    let deployment = if how & 1 == 0 { PLAIN } else { WITH_FEATURE };
    let mut request = Request::post(format!("/v2/models/{deployment}/infer"));
    if how & 2 != 0 {
        let length = u16::from_le_bytes([*low, *high]);
        let text = if how & 4 == 0 { length.to_string() } else { format!("{:+}", i32::from(length) - 7) };
        request = request.header("inference-header-content-length", text);
    }
    let reply = SERVICE.send(request.body(body.to_vec().into()).expect("a request"));
    reply.check();
    if reply.status.is_success() {
        let answer: Value = serde_json::from_slice(&reply.bytes).expect("an answer is JSON");
        for output in answer["outputs"].as_array().expect("outputs") {
            let rows = output["data"].as_array().expect("data").len();
            assert_eq!((rows, &output["shape"][0]), (reply.committed, &Value::from(rows)), "{answer}");
        }
    }
});
