//! Logged traffic under other prices, losses and routers.

use pointsman::{Partition, Router};
use serde_json::json;

use crate::support::{Service, policy, task, world};

const WHAT_IF: &str = "/v1/deployments/d/what-if";

/// A service with a router and a hundred logged decisions.
async fn with_traffic() -> (Service, Router) {
    let service = Service::new().await;
    service.put("/v1/deployments/d", json!({})).await.ok();
    let router = Router::calibrate(&world(800, 1), &Partition::top_class(5)).unwrap();
    let bytes = pointsman_table::router_bytes(&router).unwrap();
    let text = pointsman_table::task_text(&task());
    service.upload_parts("d", &[("router", &bytes), ("task", text.as_bytes()), ("activate", b"true")]).await.ok();
    let queries = world(100, 4);
    let rows: Vec<_> = (0..100).map(|row| json!({"probs": queries.prediction(row)})).collect();
    service.post("/v1/deployments/d/decide", json!({"rows": rows})).await.ok();
    (service, router)
}

#[tokio::test]
async fn the_same_version_changes_nothing() {
    let (service, _) = with_traffic().await;
    let answer = service.post(WHAT_IF, json!({})).await.ok();
    assert_eq!(answer["decisions"], 100);
    assert_eq!(answer["changed"], 0);
    assert_eq!(answer["cost"]["difference"], 0.0);
}

#[tokio::test]
async fn other_prices_and_losses_are_those_of_the_core() {
    let (service, router) = with_traffic().await;
    let queries = world(100, 4);
    let logged = router.policy(&task()).unwrap();
    let tasks = [
        task().reprice_route("expert", 0.01).unwrap(),
        task().without_abstaining(),
        task().budget(0.05).unwrap(),
        "zero-one".parse().map(pointsman::Task::new).unwrap().abstain(0.2).unwrap(),
    ];
    for task in tasks {
        let policy = router.policy(&task).unwrap();
        let answer = service.post(WHAT_IF, json!({"task": pointsman_table::task_text(&task)})).await.ok();
        let changed = (0..100).filter(|&row| {
            let prediction = queries.prediction(row);
            let (before, after) = (logged.decide(&prediction).unwrap(), policy.decide(&prediction).unwrap());
            before.action().to_string() != after.action().to_string()
        });
        assert_eq!(answer["changed"], changed.count(), "{task:?}");
        let shares: f64 = answer["shares"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-12);
    }
}

#[tokio::test]
async fn periods_and_versions_are_chosen() {
    let (service, _) = with_traffic().await;
    assert_eq!(service.post(WHAT_IF, json!({"to": "2001-01-01T00:00:00Z"})).await.ok()["decisions"], 0);
    assert_eq!(service.post(WHAT_IF, json!({"from": "2001-01-01T00:00:00Z"})).await.ok()["decisions"], 100);
    service.upload("d", &policy().reprice(&task().reprice_route("expert", 0.0).unwrap()).unwrap()).await.ok();
    let other = service.post(WHAT_IF, json!({"version": 2})).await.ok();
    assert!(other["changed"].as_u64().unwrap() > 0);
    assert_eq!(service.post(WHAT_IF, json!({"version": 1})).await.ok()["changed"], 0);
    let cases = [
        (json!({"from": "yesterday"}), 422),
        (json!({"version": 9}), 422),
        (json!({"router": "00"}), 422),
        (json!({"task": "loss = \"none\""}), 422),
        (json!({"surprise": 1}), 422),
    ];
    for (body, status) in cases {
        service.post(WHAT_IF, body).await.problem(status);
    }
}

#[tokio::test]
async fn policies_without_rows_refuse_another_loss() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let problem = service.post(WHAT_IF, json!({"task": "loss = \"zero-one\"\nabstain = 0.2"})).await.problem(422);
    assert_eq!(problem["pointer"], "/task");
}
