//! NDJSON, Arrow and the Open Inference Protocol decide as JSON does.

use std::sync::Arc;

use arrow_array::{Float32Array, Float64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use axum::http::Request;
use pointsman::{Loss, Oracle, Task};
use serde_json::{Value, json};

use crate::support::{Service, policy, policy_with_features, world};

const DECIDE: &str = "/v1/deployments/d/decide";
const ARROW: &str = "application/vnd.apache.arrow.stream";

async fn send(service: &Service, path: &str, kind: &str, body: Vec<u8>) -> crate::support::Reply {
    service.send(Request::post(path).header("content-type", kind).body(body.into()).unwrap()).await
}

/// The answer of the JSON interface to one query, without what differs between two decisions.
async fn expected(service: &Service, probs: &[f64], words: f64) -> Value {
    let mut answer = service.post(DECIDE, json!({"probs": probs, "features": {"words": words}})).await.ok();
    answer["decision_id"] = Value::Null;
    answer
}

#[tokio::test]
async fn lines_of_json_are_answered_line_by_line() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let queries = world(30, 5);
    let line =
        |row: usize| json!({"probs": queries.prediction(row), "features": [queries.features(row)[0]]}).to_string();
    let body = (0..queries.rows()).map(line).collect::<Vec<_>>().join("\n\n");
    let reply = send(&service, DECIDE, "application/x-ndjson", body.into_bytes()).await;
    assert!(reply.status.is_success());
    let text = String::from_utf8(reply.bytes).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 30);
    for (row, mut answer) in answers.into_iter().enumerate() {
        answer["decision_id"] = Value::Null;
        assert_eq!(answer, expected(&service, &queries.prediction(row), queries.features(row)[0]).await);
    }
    let bad = format!("{}\n{{\"probs\": [1]}}\n", line(0));
    let problem = send(&service, DECIDE, "application/x-ndjson", bad.into_bytes()).await.problem(422);
    assert_eq!(problem["pointer"], "/1/probs");
}

fn arrow_body(queries: &pointsman::Table, is_single: bool, ids: Option<&str>) -> Vec<u8> {
    let mut columns: Vec<(Field, arrow_array::ArrayRef)> = Vec::new();
    let rows = 0..queries.rows();
    // The classes in another order than the policy's.
    for class in [2, 0, 1] {
        let values = rows.clone().map(|row| queries.prediction(row)[class]);
        let name = format!("prob_{}", queries.classes()[class]);
        columns.push(match is_single {
            true => (
                Field::new(name, DataType::Float32, false),
                Arc::new(values.map(|p| p as f32).collect::<Float32Array>()),
            ),
            false => (Field::new(name, DataType::Float64, false), Arc::new(values.collect::<Float64Array>())),
        });
    }
    let words = rows.clone().map(|row| queries.features(row)[0]).collect::<Float64Array>();
    columns.push((Field::new("x_words", DataType::Float64, false), Arc::new(words)));
    if let Some(prefix) = ids {
        let ids = rows.map(|row| Some(format!("{prefix}-{row}"))).collect::<StringArray>();
        columns.push((Field::new("id", DataType::Utf8, false), Arc::new(ids)));
    }
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn text_column(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = batch.column_by_name(name).unwrap().as_any().downcast_ref::<StringArray>().unwrap();
    column.iter().map(|value| value.unwrap().to_owned()).collect()
}

#[tokio::test]
async fn arrow_streams_are_answered_as_arrow() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let queries = world(40, 6);
    for is_single in [false, true] {
        let reply = send(&service, DECIDE, ARROW, arrow_body(&queries, is_single, None)).await;
        assert!(reply.status.is_success(), "{}", String::from_utf8_lossy(&reply.bytes));
        let batch = StreamReader::try_new(reply.bytes.as_slice(), None).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.num_rows(), 40);
        let (actions, ids) = (text_column(&batch, "action"), text_column(&batch, "decision_id"));
        let costs = batch.column_by_name("cost_route_expert").unwrap().as_any().downcast_ref::<Float64Array>().unwrap();
        for row in 0..queries.rows() {
            let mut probs = queries.prediction(row).to_vec();
            if is_single {
                probs.iter_mut().for_each(|p| *p = f64::from(*p as f32));
            }
            let expected = expected(&service, &probs, queries.features(row)[0]).await;
            assert_eq!(expected["action"], actions[row]);
            assert_eq!(expected["costs"]["route:expert"].as_f64().unwrap().to_bits(), costs.value(row).to_bits());
            let read = service.get(&format!("/v1/decisions/{}", ids[row])).await.ok();
            assert_eq!(read["action"], actions[row]);
        }
    }
    // Ids of the caller make a batch repeatable.
    let first = send(&service, DECIDE, ARROW, arrow_body(&queries, false, Some("arrow"))).await;
    let again = send(&service, DECIDE, ARROW, arrow_body(&queries, false, Some("arrow"))).await;
    assert_eq!(first.bytes, again.bytes);
    let long = "x".repeat(199);
    let problem = send(&service, DECIDE, ARROW, arrow_body(&queries, false, Some(&long))).await.problem(422);
    assert_eq!(problem["pointer"], "/0/id", "an id has at most 200 bytes");
    send(&service, DECIDE, ARROW, b"not arrow".to_vec()).await.problem(422);
    send(&service, DECIDE, ARROW, arrow_body(&queries, false, None)[..200].to_vec()).await.problem(422);
}

/// Two queries of the policy without features, with more columns.
fn with_columns(more: Vec<(Field, arrow_array::ArrayRef)>) -> Vec<u8> {
    let mut columns: Vec<(Field, arrow_array::ArrayRef)> = Vec::new();
    for (class, values) in [("billing", [0.9, 0.2]), ("délivery", [0.05, 0.3]), ("other thing", [0.05, 0.5])] {
        let field = Field::new(format!("prob_{class}"), DataType::Float64, false);
        columns.push((field, Arc::new(Float64Array::from(values.to_vec()))));
    }
    columns.extend(more);
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn texts(name: &str, values: [Option<&str>; 2]) -> (Field, arrow_array::ArrayRef) {
    (Field::new(name, DataType::Utf8, true), Arc::new(StringArray::from(values.to_vec())))
}

fn maps(rows: [&[(&str, &str)]; 2]) -> (Field, arrow_array::ArrayRef) {
    use arrow_array::builder::{MapBuilder, StringBuilder};
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in rows {
        for (name, value) in row {
            maps.keys().append_value(name);
            maps.values().append_value(value);
        }
        maps.append(!row.is_empty()).unwrap();
    }
    let maps = maps.finish();
    (Field::new("tags", arrow_array::Array::data_type(&maps).clone(), true), Arc::new(maps))
}

#[tokio::test]
async fn arrow_streams_have_tags_and_inputs() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let read = |reply: crate::support::Reply| {
        assert!(reply.status.is_success(), "{}", String::from_utf8_lossy(&reply.bytes));
        StreamReader::try_new(reply.bytes.as_slice(), None).unwrap().next().unwrap().unwrap()
    };
    let tags =
        [maps([&[("team", "a"), ("shop", "ø")], &[]]), texts("tags", [Some(r#"{"team":"a","shop":"ø"}"#), None])];
    for tags in tags {
        let input = texts("input", [None, Some(r#"{"text": "héllo"}"#)]);
        let batch = read(send(&service, DECIDE, ARROW, with_columns(vec![tags, input])).await);
        let ids = text_column(&batch, "decision_id");
        let first = service.get(&format!("/v1/decisions/{}", ids[0])).await.ok();
        assert_eq!((&first["tags"], &first["input"]), (&json!({"team": "a", "shop": "ø"}), &Value::Null));
        let second = service.get(&format!("/v1/decisions/{}", ids[1])).await.ok();
        assert_eq!((&second["tags"], &second["input"]), (&Value::Null, &json!({"text": "héllo"})));
    }
    let logged = async || service.get("/v1/deployments/d/decisions").await.ok()["decisions"].as_array().unwrap().len();
    assert_eq!(logged().await, 4);
    let cases = [
        (texts("tags", [None, Some("[1]")]), "/1/tags"),
        (texts("tags", [None, Some(r#"{"a": 1}"#)]), "/1/tags/a"),
        (texts("tags", [Some("{"), None]), "/0/tags"),
        (maps([&[("a", "1"), ("a", "2")], &[]]), "/0/tags"),
        (texts("input", [Some("no JSON"), None]), "/0/input"),
        ((Field::new("tags", DataType::Float64, false), Arc::new(Float64Array::from(vec![1.0, 2.0])) as _), "/tags"),
    ];
    for (column, pointer) in cases {
        let reply = send(&service, DECIDE, ARROW, with_columns(vec![column])).await;
        let problem = reply.problem(reply.status.as_u16());
        assert!(reply.status.is_client_error() && problem["pointer"] == pointer, "{problem}");
    }
    assert_eq!(logged().await, 4);
    // A row that cannot be used is named; flags, which a request does not have, are not.
    let ids = (Field::new("id", DataType::Utf8, true), Arc::new(StringArray::from(vec![Some("a"), None])) as _);
    let problem = send(&service, DECIDE, ARROW, with_columns(vec![ids])).await.problem(422);
    assert_eq!(problem["pointer"], "/1/id", "{problem}");
    let halves = Float64Array::from(vec![0.5, 0.5]);
    let other = (Field::new("prob_more", DataType::Float64, false), Arc::new(halves) as _);
    let problem = send(&service, DECIDE, ARROW, with_columns(vec![other])).await.problem(422);
    assert!(!problem["detail"].as_str().unwrap().contains("--"), "{problem}");
    // Parameters of the address hold for every format.
    let path = format!("{DECIDE}?explain=true&dry_run=true");
    let batch = read(send(&service, &path, ARROW, with_columns(vec![texts("id", [Some("x"), Some("y")])])).await);
    assert!(text_column(&batch, "decision_id").iter().all(String::is_empty));
    assert_eq!(text_column(&batch, "id"), ["x", "y"]);
    assert!(text_column(&batch, "cell_name")[0].contains("billing"));
    assert!(batch.column_by_name("margin").is_some() && batch.column_by_name("next_best").is_some());
    let line = json!({"probs": [0.9, 0.05, 0.05]}).to_string();
    let reply = send(&service, &path, "application/x-ndjson", line.into_bytes()).await.ok();
    assert!(reply["decision_id"].is_null() && reply["explanation"].is_object(), "{reply}");
    assert_eq!(logged().await, 4);
    // An id with another query is refused, at its row.
    let ids = || texts("id", [Some("one"), Some("two")]);
    read(send(&service, DECIDE, ARROW, with_columns(vec![ids()])).await);
    let again = service.post(DECIDE, json!({"id": "two", "probs": [0.2, 0.3, 0.5]})).await.ok();
    assert_eq!(again["id"], "two", "the same query in another format");
    let line = json!({"id": "two", "probs": [0.9, 0.05, 0.05]}).to_string();
    let problem = send(&service, DECIDE, "application/x-ndjson", line.into_bytes()).await.problem(422);
    assert_eq!((&problem["type"], &problem["pointer"]), (&json!("urn:pointsman:id-reused"), &json!("/0/id")));
    service.post(DECIDE, json!({"id": "three", "probs": [0.9, 0.05, 0.05]})).await.ok();
    let reused = with_columns(vec![texts("id", [Some("four"), Some("three")])]);
    let problem = send(&service, DECIDE, ARROW, reused).await.problem(422);
    assert_eq!(problem["pointer"], "/1/id", "{problem}");
    assert_eq!(logged().await, 7);
}

#[tokio::test]
async fn costs_of_an_earlier_version_are_not_those_of_other_routes() {
    let service = Service::new().await;
    let first_policy = policy_with_features();
    service.deploy(&first_policy).await;
    let body = arrow_body(&world(20, 9), false, Some("kept"));
    let read = |reply: crate::support::Reply| {
        StreamReader::try_new(reply.bytes.as_slice(), None).unwrap().next().unwrap().unwrap()
    };
    let first = read(send(&service, DECIDE, ARROW, body.clone()).await);
    let task = Task::new(Loss::brier()).route("other", Oracle::bayes(), 0.2).unwrap().abstain(0.5).unwrap();
    service.upload("d", &first_policy.reprice(&task).unwrap()).await.ok();
    let again = read(send(&service, DECIDE, ARROW, body).await);
    for name in ["decision_id", "version", "action", "cost_predict", "cost_abstain"] {
        assert_eq!(first.column_by_name(name), again.column_by_name(name), "{name}");
    }
    let other = again.column_by_name("cost_route_other").unwrap();
    let other = other.as_any().downcast_ref::<Float64Array>().unwrap();
    assert!(other.iter().all(|cost| cost.is_none_or(f64::is_nan)), "the first version has no route `other`");
}

#[tokio::test]
async fn open_inference_requests_are_decided() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let infer = "/v2/models/d/infer";
    let queries = world(3, 8);
    let probs: Vec<f64> = (0..3).flat_map(|row| queries.prediction(row).to_vec()).collect();
    let body = json!({"id": "r", "inputs": [{"name": "probs", "shape": [3, 3], "datatype": "FP64", "data": probs}]});
    let answer = service.post(infer, body).await.ok();
    assert_eq!(answer["model_name"], "d");
    assert_eq!(answer["model_version"], "1");
    let output = |name: &str| {
        answer["outputs"].as_array().unwrap().iter().find(|output| output["name"] == name).unwrap().clone()
    };
    for row in 0..3 {
        let expected = service.post(DECIDE, json!({"probs": queries.prediction(row)})).await.ok();
        assert_eq!(output("action")["data"][row], expected["action"]);
        assert_eq!(output("label")["data"][row], expected["label"]);
        let id = output("decision_id")["data"][row].as_str().unwrap().to_owned();
        service.get(&format!("/v1/decisions/{id}")).await.ok();
    }
    // The binary extension: numbers after the JSON.
    let raw: Vec<u8> = probs.iter().flat_map(|p| p.to_le_bytes()).collect();
    let header = json!({"inputs": [{"name": "probs", "shape": [3, 3], "datatype": "FP64", "parameters": {"binary_data_size": raw.len()}}]}).to_string();
    let request = Request::post(infer).header("inference-header-content-length", header.len().to_string());
    let body: Vec<u8> = header.into_bytes().into_iter().chain(raw).collect();
    let binary = service.send(request.body(body.into()).unwrap()).await.ok();
    assert_eq!(binary["outputs"][0], answer["outputs"][0]);
    for path in ["/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/d", "/v2/models/d/ready"] {
        assert!(service.get(path).await.status.is_success(), "{path}");
    }
    service.get("/v2/models/nobody/ready").await.problem(404);
    let cases = [
        (json!({"inputs": []}), "/inputs"),
        (json!({"id": "", "inputs": []}), "/id"),
        (json!({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP64", "data": [1, 0, 0]}]}), "/inputs/0/name"),
        (
            json!({"inputs": [{"name": "probs", "shape": [1, 2], "datatype": "FP64", "data": [1, 0]}]}),
            "/inputs/0/shape",
        ),
        (
            json!({"inputs": [{"name": "probs", "shape": [2, 3], "datatype": "FP64", "data": [1, 0, 0]}]}),
            "/inputs/0/data",
        ),
        (
            json!({"inputs": [{"name": "probs", "shape": [1, 3], "datatype": "FP64", "data": ["a", 0, 0]}]}),
            "/inputs/0/data",
        ),
        (json!({"inputs": [], "outputs": [{"name": "action"}, {"name": "nothing"}]}), "/outputs/1/name"),
    ];
    for (body, pointer) in cases {
        let problem = service.post(infer, body).await.problem(422);
        assert_eq!(problem["pointer"], pointer, "{problem}");
        assert_eq!(problem["error"], problem["detail"], "clients of the protocol show this field");
    }
    let missing = service.get("/v2/models/nobody").await.problem(404);
    assert_eq!(missing["error"], missing["detail"]);
    assert!(service.get("/v1/deployments/nobody").await.problem(404)["error"].is_null());
    // Only what is wanted is answered.
    let probs = json!([{"name": "probs", "shape": [1, 3], "datatype": "FP64", "data": [1, 0, 0]}]);
    let body = json!({"inputs": probs, "outputs": [{"name": "reducible"}, {"name": "action", "parameters": {"binary_data": true}}]});
    let answer = service.post(infer, body).await.ok();
    let names: Vec<&str> =
        answer["outputs"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["action", "reducible"]);
    assert_eq!(answer["outputs"][0]["data"], json!(["predict"]));
    assert!(answer["parameters"].is_null());
}
