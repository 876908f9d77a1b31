//! Bodies of requests to decide, as JSON and as one JSON object per line: each is decided and committed, or refused with a reason.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman_fuzz::prepare_service;
use pointsman_fuzz::service::Service;
use serde_json::Value;

static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

// The first byte chooses the deployment and the content type; the rest is the body.
fuzz_target!(|data: &[u8]| {
    prepare_service();
    let [how, body @ ..] = data else { return };
    let is_lines = how & 2 != 0;
    let reply = SERVICE.decide(*how, if is_lines { "application/x-ndjson" } else { "application/json" }, body);
    reply.check();
    if !reply.status.is_success() {
        return;
    }
    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("an answer is JSON");
    let answers: Vec<Value> = if is_lines {
        reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(read).collect()
    } else {
        let answer = read(&reply.bytes);
        answer["rows"].as_array().cloned().unwrap_or_else(|| vec![answer])
    };
    let logged = answers.iter().filter(|answer| answer["decision_id"].is_string()).count();
    assert_eq!(logged, reply.committed, "what is answered is what is committed");
    for answer in &answers {
        let costs = answer["costs"].as_object().expect("costs");
        assert!(costs.values().all(Value::is_number) && answer["action"].is_string(), "{answer}");
    }
});
