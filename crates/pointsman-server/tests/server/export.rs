//! Logged decisions as pages and as tables: every decision once, found by what it is, and decided again in the same way.

use std::collections::HashSet;
use std::future::poll_fn;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Body as _;
use pointsman::{Oracle, Policy};
use pointsman_server::app;
use pointsman_server::store::{Outcome, Record};
use pointsman_table::{Format, Frame, ReadOptions};
use serde_json::{Value, json};

use crate::support::{Reply, Service, policy, policy_with_features, task, world};

const DECIDE: &str = "/v1/deployments/d/decide";
const DECISIONS: &str = "/v1/deployments/d/decisions";
const FORMATS: [(&str, Format); 3] = [
    ("text/csv", Format::Csv),
    ("application/x-ndjson", Format::Jsonl),
    ("application/vnd.apache.parquet", Format::Parquet),
];

fn request(query: &str, accept: &str) -> Request<Body> {
    Request::get(format!("{DECISIONS}{query}")).header("accept", accept).body(Body::empty()).unwrap()
}

async fn export(service: &Service, query: &str, accept: &str) -> Reply {
    let reply = service.send(request(query, accept)).await;
    assert!(reply.status.is_success(), "{}", String::from_utf8_lossy(&reply.bytes));
    assert_eq!(reply.headers["content-type"], accept);
    reply
}

/// Sends the first rows of a world as queries, some with an id of their own, and returns the answers.
async fn ask(service: &Service, rows: usize, seed: u64) -> Vec<Value> {
    let queries = world(rows, seed);
    let query = |row: usize| {
        let mut query = json!({"probs": queries.prediction(row), "features": {"words": queries.features(row)[0]}});
        if row.is_multiple_of(3) {
            query["id"] = json!(format!("{seed}-{row}"));
            query["tags"] = json!({"part": (row % 2).to_string()});
            query["input"] = json!({"text": format!("a, \"quoted\"\nline {row}")});
        }
        query
    };
    let body = json!({"rows": (0..rows).map(query).collect::<Vec<_>>()});
    service.post(DECIDE, body).await.ok()["rows"].as_array().unwrap().clone()
}

fn read(bytes: Vec<u8>, format: Format, policy: &Policy) -> Frame {
    let options = ReadOptions {
        classes: Some(policy.classes().to_vec()),
        features: Some(policy.cells().features().to_vec()),
        ..ReadOptions::default()
    };
    let mut frames = pointsman_table::batches_from("export", Cursor::new(bytes), format, &options).unwrap();
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none(), "one batch is enough for this test");
    frame
}

#[tokio::test]
async fn exported_tables_are_decided_again_in_the_same_way() {
    for policy in [policy(), policy_with_features()] {
        let service = Service::new().await;
        service.deploy(&policy).await;
        let answers = ask(&service, 150, 8).await;
        for (accept, format) in FORMATS {
            let frame = read(export(&service, "", accept).await.bytes, format, &policy);
            let decisions = policy.decide_batch(&frame.table).unwrap();
            assert_eq!(frame.table.rows(), answers.len());
            for (row, answer) in answers.iter().enumerate() {
                let decision = policy.row(&decisions, row);
                assert_eq!(answer["action"], decision.action().to_string());
                let bits: Vec<u64> = decision.costs().iter().map(|cost| cost.to_bits()).collect();
                let costs = policy.task().action_names();
                let logged: Vec<u64> =
                    costs.iter().map(|name| answer["costs"][name].as_f64().unwrap().to_bits()).collect();
                assert_eq!(bits, logged, "{format}");
                let id = answer["id"].as_str().unwrap_or(answer["decision_id"].as_str().unwrap());
                assert_eq!(frame.ids.as_ref().unwrap()[row], id);
            }
        }
    }
}

#[tokio::test]
async fn columns_have_what_was_answered() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    service.put("/v1/deployments/d", json!({"mode": "shadow"})).await.ok();
    let answers = ask(&service, 30, 9).await;
    let text = String::from_utf8(export(&service, "", "application/x-ndjson").await.bytes).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), answers.len());
    for (row, (line, answer)) in lines.iter().zip(&answers).enumerate() {
        for field in ["decision_id", "version", "action", "label", "cell", "support", "irreducible", "reason", "would"]
        {
            assert_eq!(line[field], answer[field], "{field}");
        }
        assert_eq!(line["cost_route_expert"], answer["costs"]["route:expert"]);
        assert_eq!(line["deployment"], "d");
        assert!(line["at"].as_str().unwrap().parse::<pointsman_server::clock::Time>().is_ok(), "{line}");
        assert!(line["x_words"].is_f64());
        let has_input = row.is_multiple_of(3);
        assert_eq!(line["input"]["text"].as_str().is_some(), has_input);
        assert_eq!(line["tags"]["part"].as_str().is_some(), has_input);
    }
    let text = String::from_utf8(export(&service, "?inputs=false", "text/csv").await.bytes).unwrap();
    assert!(!text.contains("quoted"), "{text}");
    assert!(text.starts_with("id,at,deployment,decision_id,version,cell,support,action,label,"), "{text}");
}

#[tokio::test]
async fn pages_are_full_whatever_the_condition() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let mut answers = ask(&service, 150, 3).await;
    // In the second version the action has another place.
    let other = pointsman::Task::new(task().loss().clone()).route("crowd", Oracle::bayes(), 0.3).unwrap();
    let other = other.route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.5).unwrap();
    let table = world(800, 1);
    let router = pointsman::Router::calibrate(&table, &pointsman::Partition::top_class(5)).unwrap();
    service.upload("d", &router.policy(&other).unwrap()).await.ok();
    answers.extend(ask(&service, 150, 4).await);
    for action in ["predict", "route:expert", "route:crowd", "abstain", "undetermined"] {
        let wanted: Vec<&Value> = answers.iter().filter(|answer| answer["action"] == action).collect();
        assert!(wanted.len() > 20 || ["route:crowd", "undetermined", "abstain"].contains(&action), "{action} is rare");
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = service.get(&format!("{DECISIONS}?limit=10&action={action}{after}")).await.ok();
            let decisions = page["decisions"].as_array().unwrap();
            found.extend(decisions.iter().map(|decision| decision["decision_id"].clone()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
            assert_eq!(decisions.len(), 10, "a page that is not the last is full");
        }
        let ids: Vec<Value> = wanted.iter().map(|answer| answer["decision_id"].clone()).collect();
        assert_eq!(found, ids, "{action}");
        let table = export(&service, &format!("?action={action}"), "application/x-ndjson").await;
        assert_eq!(String::from_utf8(table.bytes).unwrap().lines().count(), ids.len());
    }
    // Both versions' columns are there.
    let header = String::from_utf8(export(&service, "?limit=1", "text/csv").await.bytes).unwrap();
    assert!(header.contains("cost_route_crowd") && header.contains("cost_route_expert"), "{header}");
    assert_eq!(header.lines().count(), 2);
    let own = String::from_utf8(export(&service, "?version=1", "text/csv").await.bytes).unwrap();
    assert!(!own.contains("cost_route_crowd"));
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let refused = service.send(request("", "image/png")).await.problem(406);
    assert!(refused["detail"].as_str().unwrap().contains("text/csv"), "{refused}");
    for accept in ["*/*", "image/png, application/json;q=0.1", "application/json, text/csv;q=0.9"] {
        assert_eq!(service.send(request("", accept)).await.headers["content-type"], "application/json", "{accept}");
    }
    assert_eq!(service.send(request("", "application/json;q=0.5, text/csv")).await.headers["content-type"], "text/csv");
    let unknown = service.get(&format!("{DECISIONS}?action=guess")).await.problem(422);
    assert!(unknown["detail"].as_str().unwrap().contains("route:expert"), "{unknown}");
    assert_eq!(unknown["pointer"], "/action");
    for query in ["?limit=0", "?limit=10001", "?tag=none", "?from=yesterday"] {
        service.get(&format!("{DECISIONS}{query}")).await.problem(422);
    }
    // A deployment without decisions is a table without rows.
    for (accept, _) in FORMATS {
        export(&service, "", accept).await;
    }
}

/// Commits copies of one decision with inputs of this many bytes.
async fn fill(service: &Service, rows: usize, input_bytes: usize) -> Vec<String> {
    let answer = service.post(DECIDE, json!({"probs": [0.98, 0.01, 0.01]})).await.ok();
    let id = answer["decision_id"].as_str().unwrap().parse().unwrap();
    let first = service.app.store.decision(id).await.unwrap().unwrap();
    let ids = pointsman_server::clock::Ids::after(Some(id));
    let input = (input_bytes > 0).then(|| format!("\"{}\"", "x".repeat(input_bytes)));
    let mut all = vec![id.to_string()];
    for start in (0..rows).step_by(1000) {
        let make = |_| {
            let (id, at) = ids.next();
            let outcome = Outcome { ..first.outcome.clone() };
            Record { id, at, input: input.clone(), outcome, ..first.clone() }
        };
        let records: Vec<Record> = (start..rows.min(start + 1000)).map(make).collect();
        all.extend(records.iter().map(|record| record.id.to_string()));
        service.app.store.append(Arc::new(records)).await.unwrap();
    }
    all
}

#[tokio::test]
async fn long_logs_are_sent_in_parts_with_every_decision_once() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let ids = fill(&service, 20_000, 0).await;
    let text = String::from_utf8(export(&service, "", "application/x-ndjson").await.bytes).unwrap();
    let found: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["decision_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(found, ids);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
    for limit in [8192, 8193, 20_001, 30_000] {
        let text = export(&service, &format!("?limit={limit}"), "application/x-ndjson").await.bytes;
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), limit.min(ids.len()), "limit {limit}");
    }
}

#[tokio::test]
async fn no_part_of_an_export_is_large() {
    const INPUT_BYTES: usize = 1 << 18;
    let service = Service::new().await;
    service.deploy(&policy()).await;
    fill(&service, 200, INPUT_BYTES).await;
    let response = app(&service.app).answer(request("", "application/x-ndjson")).await;
    let mut body = response.into_body();
    let (mut parts, mut largest, mut total) = (0, 0, 0);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let bytes = frame.unwrap().into_data().unwrap().len();
        (parts, largest, total) = (parts + 1, largest.max(bytes), total + bytes);
    }
    assert!(total > 200 * INPUT_BYTES, "{total} bytes");
    assert!(largest < 12 << 20 && parts > 4, "{parts} parts, the largest of {largest} bytes");
}
