//! Bodies that no honest client sends: each is refused with the right problem document, and nothing of it is logged.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use axum::body::Body;
use axum::http::Request;
use pointsman_server::{Access, Settings};
use serde_json::{Value, json};

use crate::support::{Reply, Service, policy, policy_with_features};

const DECIDE: &str = "/v1/deployments/d/decide";
const INFER: &str = "/v2/models/d/infer";
const NDJSON: &str = "application/x-ndjson";
const ARROW: &str = "application/vnd.apache.arrow.stream";

async fn send(service: &Service, kind: &str, body: impl Into<Body>) -> Reply {
    service.send(Request::post(DECIDE).header("content-type", kind).body(body.into()).unwrap()).await
}

async fn logged(service: &Service) -> usize {
    service.get("/v1/deployments/d/decisions?limit=10000").await.ok()["decisions"].as_array().unwrap().len()
}

/// Sends bodies as JSON and compares the status and the pointer of each refusal.
async fn assert_refused(service: &Service, cases: &[(&str, u16, &str)]) {
    for (body, status, pointer) in cases {
        let problem = send(service, "application/json", (*body).to_owned()).await.problem(*status);
        assert_eq!(problem["pointer"].as_str().unwrap_or("none"), *pointer, "{body}: {problem}");
    }
    assert_eq!(logged(service).await, 0, "a refused request is in the log");
}

#[tokio::test]
async fn numbers_that_json_does_not_have_are_refused() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let cases = [
        (r#"{"probs": [NaN, 0.5, 0.5], "features": [1]}"#, 400, "none"),
        (r#"{"probs": [Infinity, 0.5, 0.5], "features": [1]}"#, 400, "none"),
        (r#"{"probs": [-Infinity, 0.5, 0.5], "features": [1]}"#, 400, "none"),
        (r#"{"probs": [1e999, 0, 0], "features": [1]}"#, 400, "none"),
        (r#"{"probs": ["NaN", 0.5, 0.5], "features": [1]}"#, 422, "/probs/0"),
        (r#"{"probs": [0.5, 0.3, 0.2], "features": [1e999]}"#, 400, "none"),
        (r#"{"probs": [0.5, 0.3, 0.2], "features": {"words": "NaN"}}"#, 422, "/features/words"),
        (r#"{"probs": [1e308, 1e308, 0], "features": [1]}"#, 422, "/probs"),
        (r#"{"probs": [01, 0, 0], "features": [1]}"#, 400, "none"),
    ];
    assert_refused(&service, &cases).await;
}

#[tokio::test]
async fn names_that_are_missing_wrong_or_twice_are_refused() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let probs = r#""probs": [0.5, 0.3, 0.2]"#;
    let cases = [
        (
            r#"{"probs": {"billing": 0.5, "billing": 0.5, "délivery": 0.3, "other thing": 0.2}, "features": [1]}"#,
            "/probs/billing",
        ),
        (r#"{"probs": {"billing": 0.5, "délivery": 0.3, "spam": 0.2}, "features": [1]}"#, "/probs/spam"),
        (r#"{"probs": {"billing": 0.5, "délivery": 0.5}, "features": [1]}"#, "/probs"),
        (r#"{"probs": {}, "features": [1]}"#, "/probs"),
        (r#"{"probs": [], "features": [1]}"#, "/probs"),
        (r#"{"probs": [0.5, 0.3, 0.2, 0.0], "features": [1]}"#, "/probs"),
        (r#"{"probs": [[0.5, 0.3, 0.2]], "features": [1]}"#, "/probs/0"),
        (&format!(r#"{{{probs}, "features": {{"words": 1, "words": 2}}}}"#), "/features/words"),
        (&format!(r#"{{{probs}, "features": {{"length": 1}}}}"#), "/features"),
        (&format!(r#"{{{probs}, "features": []}}"#), "/features"),
        (&format!(r#"{{{probs}, {probs}, "features": [1]}}"#), ""),
        (&format!(r#"{{{probs}, "features": [1], "tags": {{"a": "1", "a": "2"}}}}"#), "/tags"),
        (&format!(r#"{{{probs}, "features": [1], "id": "a\u0000b"}}"#), "/id"),
        (&format!(r#"{{{probs}, "features": [1], "id": 7}}"#), "/id"),
        (
            r#"{"rows": [{"probs": [1, 0, 0], "features": [1]}, {"probs": [1, 0, 0], "features": [1], "dry_run": true}]}"#,
            "/rows/1/dry_run",
        ),
        (r#"{"rows": [{"probs": [1, 0, 0], "features": [1]}, {"probs": [1, 0, 0]}]}"#, "/rows/1/features"),
        (r#"{"rows": {}}"#, "/rows"),
        ("7", ""),
        ("null", ""),
    ];
    let cases: Vec<_> = cases.iter().map(|(body, pointer)| (*body, 422, *pointer)).collect();
    assert_refused(&service, &cases).await;
}

#[tokio::test]
async fn nesting_of_any_depth_is_refused_or_kept_as_text() {
    const DEPTH: usize = 100_000;
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let open = "[".repeat(DEPTH);
    let objects = r#"{"a":"#.repeat(DEPTH);
    for body in [&deep, &open, &objects, &format!(r#"{{"probs": {deep}}}"#), &format!(r#"{{"rows": {deep}}}"#)] {
        let reply = send(&service, "application/json", body.clone()).await;
        reply.problem(if reply.status.as_u16() == 422 { 422 } else { 400 });
        send(&service, NDJSON, body.clone()).await.problem(if reply.status.as_u16() == 422 { 422 } else { 400 });
        let reply = service.send(Request::post(INFER).body(body.clone().into()).unwrap()).await;
        assert!(reply.status.is_client_error(), "{}", reply.status);
    }
    send(&service, "application/json", format!(r#"{{"probs": [1, 0, 0], "input": {open}}}"#)).await.problem(400);
    assert_eq!(logged(&service).await, 0);
    // The input is never looked into.
    let answer = send(&service, "application/json", format!(r#"{{"probs": [1, 0, 0], "input": {deep}}}"#)).await.ok();
    let read = service.get(&format!("/v1/decisions/{}", answer["decision_id"].as_str().unwrap())).await;
    assert!(String::from_utf8(read.bytes).unwrap().contains(&deep));
}

#[tokio::test]
async fn every_refusal_is_a_problem_document() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let good = r#"{"probs": [1, 0, 0]}"#;
    for kind in ["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/jsonp", "\u{e9}"] {
        let request = Request::post(DECIDE).header("content-type", kind.as_bytes());
        service.send(request.body(good.into()).unwrap()).await.problem(415);
    }
    for encoding in ["gzip", "br", "deflate, gzip"] {
        let request = Request::post(DECIDE).header("content-encoding", encoding);
        let problem = service.send(request.body(good.into()).unwrap()).await.problem(415);
        assert!(problem["detail"].as_str().unwrap().contains("content encoding"), "{problem}");
    }
    for path in [DECIDE, INFER] {
        let large = vec![b' '; (8 << 20) + 1];
        service.send(Request::post(path).body(large.into()).unwrap()).await.problem(413);
    }
    let refused = service.send(Request::delete(DECIDE).body(Body::empty()).unwrap()).await;
    refused.problem(405);
    assert_eq!(refused.headers["allow"], "POST");
    for path in ["/v1/decisions/not-a-uuid", "/v1/deployments/d/decisions?limit=many", "/v1/deployments/%ff/decisions"]
    {
        let reply = service.get(path).await;
        let status = reply.status.as_u16();
        assert!(matches!(status, 400 | 404 | 422), "{path}: {status}");
        reply.problem(status);
    }
    // A name that a request chooses neither forges lines nor fills the answer.
    let name = "x\u{1b}[2J\n".repeat(100_000);
    let problem = service.post(DECIDE, json!({"probs": [1, 0, 0], name: 1})).await.problem(422);
    let detail = problem["detail"].as_str().unwrap();
    assert!(!detail.contains(char::is_control) && detail.len() < 20_000, "{} bytes", detail.len());
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn names_of_any_length_leave_answers_short() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let name = "n".repeat(1 << 20);
    let tag = "t".repeat(1 << 20);
    let bodies = [
        json!({"probs": {(name.clone()): 1.0}, "features": [1]}),
        json!({"probs": [1, 0, 0], "features": {(name.clone()): "x"}}),
        json!({"probs": [1, 0, 0], "features": [1], "tags": {(tag): "x"}}),
        json!({"rows": [{"probs": {(name.clone()): 1.0}, "features": [1]}]}),
        json!({"probs": [1, 0, 0], "features": [1], (name): 1}),
    ];
    for body in bodies {
        let reply = service.post(DECIDE, body.clone()).await;
        reply.problem(422);
        assert!(reply.bytes.len() < 20_000, "an answer of {} bytes", reply.bytes.len());
        let reply = send(&service, NDJSON, body.to_string()).await;
        reply.problem(422);
        assert!(reply.bytes.len() < 20_000, "an answer of {} bytes", reply.bytes.len());
    }
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn text_that_is_not_unicode_is_refused_everywhere() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let broken: [&[u8]; 5] = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\ud800"];
    for broken in broken {
        for field in ["id", "input", "unknown"] {
            let body = [br#"{"probs": [1, 0, 0], ""#, field.as_bytes(), br#"": ""#, broken, br#""}"#].concat();
            for kind in ["application/json", NDJSON] {
                // The input is never looked into, and half of a pair is written in ASCII.
                if (field, broken) == ("input", b"\\ud800".as_slice()) {
                    continue;
                }
                let reply = send(&service, kind, body.clone()).await;
                assert!(matches!(reply.status.as_u16(), 400 | 422), "{field} {broken:?}: {}", reply.status);
                reply.problem(reply.status.as_u16());
            }
        }
        let body =
            [br#"{"inputs": [{"name": ""#, broken, br#"", "shape": [1, 3], "datatype": "FP64", "data": [1, 0, 0]}]}"#]
                .concat();
        let reply = service.send(Request::post(INFER).body(body.into()).unwrap()).await;
        assert!(matches!(reply.status.as_u16(), 400 | 422), "{broken:?}: {}", reply.status);
        reply.problem(reply.status.as_u16());
    }
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn tags_of_any_name_can_be_asked_for() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let names = ["plain", "a b", "\"", "\\", "a\\", "\\\"", "$.x", "a.b[0]", "\u{1}", "é", "'", "x\ny"];
    for name in names {
        let tags = json!({name: "v"});
        let answer = service.post(DECIDE, json!({"probs": [0.98, 0.01, 0.01], "tags": tags})).await.ok();
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let page = service.get(&format!("/v1/deployments/d/decisions?tag={encoded}%3Dv")).await.ok();
        let found: Vec<&Value> = page["decisions"].as_array().unwrap().iter().map(|d| &d["decision_id"]).collect();
        assert_eq!(found, [&answer["decision_id"]], "{name:?}");
    }
    let page = service.get("/v1/deployments/d/decisions?tag=%00%3Dv").await.ok();
    assert!(page["decisions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn bodies_in_pieces_are_read_and_their_limit_holds() {
    struct Pieces(std::collections::VecDeque<Vec<u8>>);

    impl futures_core::Stream for Pieces {
        type Item = Result<Vec<u8>, std::io::Error>;

        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Ready(self.0.pop_front().map(Ok))
        }
    }

    let service = Service::new().await;
    service.deploy(&policy()).await;
    let body = br#"{"probs": [0.98, 0.01, 0.01]}"#;
    let pieces = Pieces(body.iter().map(|byte| vec![*byte]).collect());
    send(&service, "application/json", Body::from_stream(pieces)).await.ok();
    let endless = Pieces(std::iter::repeat_n(vec![b' '; 1 << 20], 9).collect());
    send(&service, "application/json", Body::from_stream(endless)).await.problem(413);
    assert_eq!(logged(&service).await, 1);
}

#[tokio::test]
async fn one_bad_line_refuses_all_lines() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let good = r#"{"probs": [0.98, 0.01, 0.01]}"#;
    let cases: [(&[u8], u16, &str); 7] = [
        (b"{", 400, "/1"),
        (b"\xff", 400, "/1"),
        (b"7", 422, "/1"),
        (br#"{"probs": [0.98, 0.01]}"#, 422, "/1/probs"),
        (br#"{"probs": [0.98, 0.01, 0.02]}"#, 422, "/1/probs"),
        (br#"{"probs": [0.98, 0.01, 0.01], "id": ""}"#, 422, "/1/id"),
        (br#"{"probs": [0.98, 0.01, 0.01]} {"probs": [0.98, 0.01, 0.01]}"#, 400, "/1"),
    ];
    for (bad, status, pointer) in cases {
        let body = [good.as_bytes(), b"\n", bad, b"\n", good.as_bytes()].concat();
        let problem = send(&service, NDJSON, body).await.problem(status);
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    send(&service, NDJSON, vec![good; 10_001].join("\n")).await.problem(413);
    assert_eq!(logged(&service).await, 0);
    let reply = send(&service, NDJSON, "\n \n").await;
    assert!(reply.status.is_success() && reply.bytes.is_empty(), "no lines are no decisions");
}

/// A column of an Arrow body.
type Column = (&'static str, DataType, arrow_array::ArrayRef);

fn arrow_body(columns: Vec<Column>) -> Vec<u8> {
    let fields: Vec<_> = columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns.into_iter().map(|(_, _, array)| array).collect());
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&batch.unwrap()).unwrap();
    writer.into_inner().unwrap()
}

fn reals(name: &'static str, values: &[f64]) -> Column {
    (name, DataType::Float64, Arc::new(Float64Array::from(values.to_vec())))
}

#[tokio::test]
async fn arrow_streams_with_other_columns_or_damage_are_refused() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let [a, b, c] = [("prob_billing", 0.98), ("prob_délivery", 0.01), ("prob_other thing", 0.01)];
    let column = |(name, value): (&'static str, f64)| reals(name, &[value, value]);
    let texts: arrow_array::ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let bad: [(&str, Vec<Column>); 6] = [
        ("no probabilities", vec![reals("other", &[1.0, 2.0])]),
        ("a class is missing", vec![column(a), column(b)]),
        ("another class", vec![column(a), column(b), reals("prob_spam", &[0.01, 0.01])]),
        ("text", vec![column(a), column(b), (c.0, DataType::Utf8, texts)]),
        ("not a number", vec![column(a), column(b), reals(c.0, &[0.01, f64::NAN])]),
        ("a sum of two", vec![column(a), column(b), reals(c.0, &[0.01, 1.01])]),
    ];
    for (what, columns) in bad {
        let reply = send(&service, ARROW, arrow_body(columns)).await;
        assert_eq!(reply.status.as_u16(), 422, "{what}: {}", String::from_utf8_lossy(&reply.bytes));
        reply.problem(422);
    }
    let good = arrow_body(vec![column(a), column(b), column(c)]);
    for length in (0..good.len()).step_by(7) {
        let reply = send(&service, ARROW, good[..length].to_vec()).await;
        // Without its mark of the end, a stream is whole after any batch.
        if !reply.status.is_success() {
            reply.problem(422);
            assert_eq!(logged(&service).await % 2, 0, "half of a batch is logged");
        }
    }
    // Every length in the stream becomes huge or negative, one at a time.
    let before = logged(&service).await;
    for place in 0..good.len().saturating_sub(8) {
        for length in [i64::MAX, -1, 1 << 40] {
            let mut body = good.clone();
            body[place..place + 8].copy_from_slice(&length.to_le_bytes());
            let reply = send(&service, ARROW, body).await;
            assert!(reply.status.is_success() || reply.status.as_u16() == 422, "{}", reply.status);
        }
    }
    assert_eq!((logged(&service).await - before) % 2, 0, "half of a batch is logged");
}

#[tokio::test]
async fn tensors_that_do_not_fit_are_refused() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let probs = json!({"name": "probs", "shape": [1, 3], "datatype": "FP64", "data": [0.5, 0.3, 0.2]});
    let words = json!({"name": "features", "shape": [1, 1], "datatype": "FP64", "data": [1.0]});
    let with = |field: &str, value: Value| {
        let mut tensor = probs.clone();
        tensor[field] = value;
        json!({"inputs": [tensor, words]})
    };
    let cases = [
        (json!({"inputs": [probs]}), "/inputs"),
        (json!({"inputs": [words]}), "/inputs"),
        (json!({"inputs": [probs, probs, words]}), "/inputs/1/name"),
        (with("shape", json!([u64::MAX, 3])), "/inputs/0/shape"),
        (with("shape", json!([3])), "/inputs/0/shape"),
        (with("shape", json!([-1, 3])), "/inputs/0/shape/0"),
        (with("data", json!([0.5, 0.3, null])), "/inputs"),
        (with("data", json!([0.5, 0.3, 0.9])), "/inputs"),
        (with("data", json!({"a": 1})), "/inputs/0/data"),
        (with("parameters", json!({"binary_data_size": 24})), "/inputs/0/data"),
        (json!({"id": "", "inputs": [probs, words]}), "/id"),
        (json!({"inputs": {}}), "/inputs"),
        (json!([]), ""),
    ];
    for (body, pointer) in cases {
        let problem = service.post(INFER, body.clone()).await.problem(422);
        assert_eq!(problem["pointer"], pointer, "{body}: {problem}");
    }
    let binary = |size: u64, kind: &str, raw: usize, length: Option<&str>| {
        let tensor =
            json!({"name": "probs", "shape": [1, 3], "datatype": kind, "parameters": {"binary_data_size": size}});
        let text = json!({"inputs": [tensor, words]}).to_string();
        let length = length.map_or(text.len().to_string(), str::to_owned);
        let body = [text.into_bytes(), vec![0; raw]].concat();
        Request::post(INFER).header("inference-header-content-length", length).body(Body::from(body)).unwrap()
    };
    let cases = [
        (binary(24, "FP64", 23, None), 422, "/inputs/0/data"),
        (binary(u64::MAX, "FP64", 24, None), 422, "/inputs/0/data"),
        (binary(27, "FP64", 27, None), 422, "/inputs/0/parameters/binary_data_size"),
        (binary(24, "FP64", 32, None), 422, "/inputs"),
        (binary(24, "INT8", 24, None), 422, "/inputs/0/datatype"),
        (binary(24, "FP64", 24, Some("9999")), 400, "none"),
        (binary(24, "FP64", 24, Some("-1")), 400, "none"),
        (binary(24, "FP64", 24, Some("18446744073709551616")), 400, "none"),
    ];
    for (request, status, pointer) in cases {
        let problem = service.send(request).await.problem(status);
        assert_eq!(problem["pointer"].as_str().unwrap_or("none"), pointer, "{problem}");
    }
    // Numbers that JSON does not have, as raw bytes.
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.1, f64::MAX] {
        let text = r#"{"inputs": [{"name": "probs", "shape": [1, 3], "datatype": "FP64", "parameters": {"binary_data_size": 24}},
            {"name": "features", "shape": [1, 1], "datatype": "FP64", "data": [1]}]}"#;
        let raw = [bad, 0.5, 0.5].into_iter().flat_map(f64::to_le_bytes);
        let body: Vec<u8> = text.bytes().chain(raw).collect();
        let request = Request::post(INFER).header("inference-header-content-length", text.len().to_string());
        let problem = service.send(request.body(body.into()).unwrap()).await.problem(422);
        assert_eq!(problem["pointer"], "/inputs", "{bad}: {problem}");
    }
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn arrow_streams_without_the_features_are_refused() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let probs =
        || [reals("prob_billing", &[0.98]), reals("prob_délivery", &[0.01]), reals("prob_other thing", &[0.01])];
    let text: arrow_array::ArrayRef = Arc::new(StringArray::from(vec!["many"]));
    let bad: [Option<Column>; 4] = [
        None,
        Some(reals("x_letters", &[1.0])),
        Some(("x_words", DataType::Utf8, text)),
        Some(reals("x_words", &[f64::INFINITY])),
    ];
    for feature in bad {
        let what = format!("{feature:?}");
        let columns = probs().into_iter().chain(feature).collect();
        let reply = send(&service, ARROW, arrow_body(columns)).await;
        assert_eq!(reply.status.as_u16(), 422, "{what}: {}", String::from_utf8_lossy(&reply.bytes));
        reply.problem(422);
    }
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn lines_are_named_by_their_number_in_the_body() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let good = r#"{"id": "q1", "probs": [0.98, 0.01, 0.01]}"#;
    let cases = [
        (r#"{"probs": [0.98, 0.01"#, 400, "line 5: not JSON: EOF while parsing a list at column 21"),
        (r#"  {"probs": 7}"#, 422, "line 5: "),
        ("[0.98, 0.01, 0.01]", 422, "line 5: this is a list: give an object, such as {\"probs\": […]}"),
        (r#"{"probs": [0.98, 0.01]}"#, 422, "line 5: 2 numbers for 3 classes"),
        (r#"{"probs": [0.98, 0.01, 0.02]}"#, 422, "line 5: the probabilities sum to"),
        (r#"{"id": "q1", "probs": [0.01, 0.98, 0.01]}"#, 422, "line 5: the id \"q1\" is given twice in this request"),
    ];
    for (bad, status, words) in cases {
        let problem = send(&service, NDJSON, format!("\n{good}\n\n\r\n{bad}\n")).await.problem(status);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(words) && !detail.contains("line 1 "), "{problem}");
        assert!(problem["pointer"].as_str().unwrap().starts_with("/1"), "the second query: {problem}");
    }
    let many = send(&service, NDJSON, vec![good; 10_001].join("\n")).await.problem(413);
    assert!(many["pointer"].is_null(), "{many}");
    assert!(many["detail"].as_str().unwrap().contains("at most 10000 (rows of [limits])"), "{many}");
    assert_eq!(logged(&service).await, 0);
}

#[tokio::test]
async fn names_of_numbers_that_json_does_not_have_are_explained() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    for name in ["NaN", "Infinity", "-Infinity", "nan"] {
        for body in [format!("{{\"probs\": [{name}, 0.5, 0.5]}}"), format!("{{\n \"probs\": [\n0.5,{name},\n0.5]}}")] {
            let problem = send(&service, "application/json", body).await.problem(400);
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.contains("NaN and Infinity are not JSON: null stands for a missing feature"),
                "{name}: {problem}"
            );
        }
    }
    for other in ["{\"probs\": [x, 0.5, 0.5], \"id\": \"NaN\"}", "{\"id\": \"NaN\", \"probs\": [0.5,"] {
        let problem = send(&service, "application/json", other).await.problem(400);
        assert!(!problem["detail"].as_str().unwrap().contains("Infinity"), "{problem}");
    }
}

#[tokio::test]
async fn several_queries_in_the_wrong_format_are_told_how_to_be_sent() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let query = r#"{"probs": [0.98, 0.01, 0.01]}"#;
    let cases = [
        (NDJSON, [query, query].concat(), "line 1: there is more after the JSON value: give one query per line"),
        ("application/json", [query, query].join("\n"), "one per line as application/x-ndjson"),
    ];
    for (kind, body, words) in cases {
        let problem = send(&service, kind, body).await.problem(400);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words) && detail.contains("--data-binary"), "{problem}");
    }
}

#[tokio::test]
async fn rounded_probabilities_are_told_from_scores() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    for (probs, is_rounded) in [("[0.57, 0.42, 0.0]", true), ("[0.9, 0.9, 0.9]", false)] {
        let problem = send(&service, "application/json", format!("{{\"probs\": {probs}}}")).await.problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("not to 1: give softmax outputs"), "{problem}");
        assert_eq!(detail.contains("within 0.001 of 1: send them unrounded"), is_rounded, "{problem}");
    }
}

#[tokio::test]
async fn refusals_of_large_requests_name_the_limit() {
    let mut settings = Settings::new(Access::Open);
    (settings.limits.body, settings.limits.upload, settings.limits.rows) = (1 << 20, 2 << 20, 3);
    let service = Service::with(settings).await;
    service.deploy(&policy()).await;
    let detail = |reply: Reply| reply.problem(413)["detail"].as_str().unwrap().to_owned();
    let body = detail(send(&service, "application/json", vec![b' '; (1 << 20) + 1]).await);
    assert!(body.contains("1 MiB") && body.contains("body_megabytes of [limits]"), "{body}");
    let rows = json!({"rows": vec![json!({"probs": [1.0, 0.0, 0.0]}); 4]});
    let rows = detail(service.post(DECIDE, rows).await);
    assert!(rows.contains("4 queries") && rows.contains("at most 3 (rows of [limits])"), "{rows}");
    let large = vec![b' '; (2 << 20) + 1];
    let versions = "/v1/deployments/d/versions";
    let post =
        |path: &str, kind: &str| Request::post(path).header("content-type", kind).body(large.clone().into()).unwrap();
    let uploads = [
        service.send(post("/v1/files", "application/octet-stream")).await,
        service.send(post(versions, "application/json")).await,
        service.upload_parts("d", &[("router", &large)]).await,
    ];
    for upload in uploads {
        let upload = detail(upload);
        assert!(upload.contains("2 MiB") && upload.contains("upload_megabytes of [limits]"), "{upload}");
    }
}

#[tokio::test]
async fn arrow_files_are_told_from_streams() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let columns = [("prob_billing", 0.98), ("prob_délivery", 0.01), ("prob_other thing", 0.01)];
    let arrays: Vec<arrow_array::ArrayRef> =
        columns.iter().map(|(_, value)| Arc::new(Float64Array::from(vec![*value])) as arrow_array::ArrayRef).collect();
    let fields: Vec<_> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Float64, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&RecordBatch::try_new(schema, arrays).unwrap()).unwrap();
    let problem = send(&service, ARROW, writer.into_inner().unwrap()).await.problem(422);
    assert!(problem["detail"].as_str().unwrap().contains("send a stream"), "{problem}");
}
