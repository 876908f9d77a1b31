//! Versions: added, activated and rolled back while requests arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman::{Partition, Router};
use serde_json::json;

use crate::support::{Service, policy, task, world};

#[tokio::test]
async fn routers_are_compiled_with_their_task() {
    let service = Service::new().await;
    service.put("/v1/deployments/d", json!({})).await.ok();
    let router = Router::calibrate(&world(400, 1), &Partition::top_class(5)).unwrap();
    let bytes = pointsman_table::router_bytes(&router).unwrap();
    let text = pointsman_table::task_text(&task());
    let added = service.upload_parts("d", &[("router", &bytes), ("task", text.as_bytes())]).await.ok();
    assert_eq!(added["version"], 1);
    assert_eq!(added["active"], false);
    service.post("/v1/deployments/d/decide", json!({"probs": [1.0, 0.0, 0.0]})).await.problem(409);
    service.post("/v1/deployments/d/versions/1/activate", json!({})).await.ok();
    let answer = service.post("/v1/deployments/d/decide", json!({"probs": [1.0, 0.0, 0.0]})).await.ok();
    let expected = router.policy(&task()).unwrap();
    assert_eq!(answer["action"], expected.decide(&[1.0, 0.0, 0.0]).unwrap().action().to_string());
    // The file is there now, and can be used again with another task.
    let other = pointsman_table::task_text(&task().reprice_route("expert", 0.2).unwrap());
    let body = json!({"router": added["router"], "task": other, "activate": true});
    assert_eq!(service.post("/v1/deployments/d/versions", body).await.ok()["version"], 2);
    assert_eq!(service.post("/v1/deployments/d/rollback", json!({})).await.ok()["version"], 1);
    service.post("/v1/deployments/d/rollback", json!({})).await.problem(409);
}

#[tokio::test]
async fn files_that_are_no_routers_are_refused() {
    let service = Service::new().await;
    service.put("/v1/deployments/d", json!({})).await.ok();
    let policy = pointsman_table::policy_bytes(&policy()).unwrap();
    let mut damaged = policy.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    type Parts<'a> = &'a [(&'a str, &'a [u8])];
    let cases: [(Parts<'_>, &str); 6] = [
        (&[("policy", b"nonsense")], "/policy"),
        (&[("policy", &damaged)], "/policy"),
        (&[("router", &policy)], "/router"),
        (&[("policy", &policy), ("router", &policy)], "/router"),
        (&[("policy", &policy), ("task", b"loss = \"zero-one\"")], "/task"),
        (&[("policy", &policy), ("task", b"loss = ")], "/task"),
    ];
    for (parts, pointer) in cases {
        let problem = service.upload_parts("d", parts).await.problem(422);
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    let unknown = json!({"policy": "00".repeat(32)});
    service.post("/v1/deployments/d/versions", unknown).await.problem(422);
    service.post("/v1/deployments/d/versions", json!({"policy": "short"})).await.problem(422);
    service.upload_parts("nobody", &[("policy", &policy)]).await.problem(404);
    assert!(service.get("/v1/deployments/d/versions").await.ok()["versions"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activations_under_load_never_lose_or_mix_a_request() {
    const ACTIVATIONS: u32 = 1000;
    let service = Arc::new(Service::new().await);
    let first = policy();
    service.deploy(&first).await;
    let second = first.reprice(&task().reprice_route("expert", 0.01).unwrap()).unwrap();
    service.upload("d", &second).await.ok();
    let policies = [first, second];
    let is_done = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = (0..3)
        .map(|client| {
            let (service, is_done, policies) = (Arc::clone(&service), Arc::clone(&is_done), policies.clone());
            tokio::spawn(async move {
                let queries = world(40, 100 + client);
                let mut answered = [0_u64; 2];
                let mut row = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let prediction = queries.prediction(row % queries.rows());
                    row += 1;
                    let answer = service.post("/v1/deployments/d/decide", json!({"probs": prediction})).await.ok();
                    let version = answer["version"].as_u64().unwrap() as usize - 1;
                    let decision = policies[version].decide(&prediction).unwrap();
                    assert_eq!(answer["action"], decision.action().to_string());
                    assert_eq!(
                        answer["costs"]["route:expert"].as_f64().unwrap().to_bits(),
                        decision.costs()[1].to_bits()
                    );
                    answered[version] += 1;
                }
                answered
            })
        })
        .collect();
    for round in 0..ACTIVATIONS {
        let version = 1 + round % 2;
        service.post(&format!("/v1/deployments/d/versions/{version}/activate"), json!({})).await.ok();
    }
    is_done.store(true, Ordering::Relaxed);
    let mut answered = [0; 2];
    for task in asking {
        let counts = task.await.unwrap();
        answered.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(answered.iter().all(|count| *count > 0), "{answered:?}");
    let mut logged = 0;
    let mut after = String::new();
    loop {
        let page = service.get(&format!("/v1/deployments/d/decisions?limit=5000{after}")).await.ok();
        logged += page["decisions"].as_array().unwrap().len() as u64;
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(logged, answered.iter().sum::<u64>());
}
