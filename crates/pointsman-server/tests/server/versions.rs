//! Versions: added, activated and rolled back while requests arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman::{Partition, Router};
use serde_json::json;

use crate::support::{Service, policy, policy_with_features, task, world};

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
    let table = b"prob_a,prob_b\n0.5,0.5\n";
    let messages: [(Parts<'_>, &str); 4] = [
        (&[("router", table), ("task", b"abstain = 0.3")], "this is not a router file"),
        (&[("policy", table)], "this is not a compiled policy"),
        (&[("router", b"router.safetensors")], "this is not a router file: with curl, write router=@FILE"),
        (&[("policy", &damaged)], "damaged"),
    ];
    for (parts, words) in messages {
        let problem = service.upload_parts("d", parts).await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{words}: {problem}");
    }
    let post = async |path: &str, kind: &str, body: &[u8]| {
        let request = axum::http::Request::post(path).header("content-type", kind);
        service.send(request.body(body.to_vec().into()).unwrap()).await
    };
    let problem = post("/v1/files", "application/octet-stream", table).await.problem(422);
    assert_eq!(problem["detail"], "this is neither a router file nor a compiled policy");
    let problem = post("/v1/deployments/d/versions", "application/x-www-form-urlencoded", &policy).await.problem(415);
    for words in ["multipart/form-data", "-F router=@FILE", "application/json"] {
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    let unknown = json!({"policy": "00".repeat(32)});
    service.post("/v1/deployments/d/versions", unknown).await.problem(422);
    service.post("/v1/deployments/d/versions", json!({"policy": "short"})).await.problem(422);
    service.upload_parts("nobody", &[("policy", &policy)]).await.problem(404);
    assert!(service.get("/v1/deployments/d/versions").await.ok()["versions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn versions_that_read_requests_differently_are_activated_by_force_only() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let table = world(400, 1);
    let renamed = {
        let probs: Vec<f64> = (0..table.rows()).flat_map(|row| table.prediction(row).to_vec()).collect();
        let votes: Vec<u32> =
            (0..table.rows()).flat_map(|row| if row % 2 == 0 { [3, 1, 1] } else { [1, 3, 1] }).collect();
        let classes = ["délivery", "billing", "other thing"];
        let table = pointsman::Table::new(classes, probs).unwrap().with_votes(votes).unwrap();
        Router::calibrate(&table, &Partition::top_class(5)).unwrap().policy(&task()).unwrap()
    };
    let query = json!({"probs": [1.0, 0.0, 0.0]});
    let label = async || service.post("/v1/deployments/d/decide", query.clone()).await.ok()["label"].clone();
    let problem = service.upload("d", &renamed).await.problem(409);
    for text in ["délivery, billing, other thing instead of billing, délivery, other thing", "force=true", "--force"]
    {
        assert!(problem["detail"].as_str().unwrap().contains(text), "{problem}");
    }
    let problem = service.upload("d", &crate::support::policy_with_features()).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("the features words instead of none"), "{problem}");
    assert_eq!(service.get("/v1/deployments/d").await.ok()["versions"], json!([1]), "nothing was added");
    // Adding is not activating.
    let bytes = pointsman_table::policy_bytes(&renamed).unwrap();
    let added = service.upload_parts("d", &[("policy", &bytes)]).await.ok();
    assert_eq!((&added["version"], &added["warning"]), (&json!(2), &json!(null)));
    let activate = "/v1/deployments/d/versions/2/activate";
    let problem = service.post(activate, json!({})).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("instead of"), "{problem}");
    assert_eq!(label().await, "billing");
    let activated = service.post(&format!("{activate}?force=true"), json!({})).await.ok();
    assert!(activated["warning"].as_str().unwrap().contains("read differently"), "{activated}");
    assert_eq!(label().await, "délivery");
    // Going back is always possible, and says the same.
    let back = service.post("/v1/deployments/d/rollback", json!({})).await.ok();
    assert!(back["warning"].as_str().unwrap().contains("instead of délivery"), "{back}");
    let again = service.post("/v1/deployments/d/versions/1/activate", json!({})).await.ok();
    assert!(again["warning"].is_null(), "{again}");
    let forced = service.upload_parts("d", &[("policy", &bytes), ("activate", b"true"), ("force", b"true")]).await.ok();
    assert!(forced["active"] == true && forced["warning"].is_string(), "{forced}");
    let problem = service.upload_parts("d", &[("policy", &bytes), ("activate", b"yes")]).await.problem(422);
    assert_eq!(problem["pointer"], "/activate");
}

#[tokio::test]
async fn decisions_of_a_deleted_deployment_can_be_read() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let decide = async |service: &Service, probs: [f64; 3]| {
        let answer = service.post("/v1/deployments/d/decide", json!({"probs": probs})).await.ok();
        answer["decision_id"].as_str().unwrap().to_owned()
    };
    let first = decide(&service, [0.9, 0.05, 0.05]).await;
    let delete = || axum::http::Request::delete("/v1/deployments/d").body(axum::body::Body::empty()).unwrap();
    assert_eq!(service.send(delete()).await.status.as_u16(), 204);
    let list = "/v1/deployments/d/decisions";
    let listed = async |service: &Service, path: &str| -> Vec<String> {
        let page = service.get(path).await.ok();
        let decisions = page["decisions"].as_array().unwrap().iter();
        decisions.map(|one| one["decision_id"].as_str().unwrap().to_owned()).collect()
    };
    let service = service.restart().await;
    let read = service.get(&format!("/v1/decisions/{first}")).await.ok();
    assert_eq!((&read["deployment"], &read["label"]), (&json!("d"), &json!("billing")));
    assert_eq!(listed(&service, list).await, std::slice::from_ref(&first));
    assert_eq!(
        listed(&service, &format!("{list}?action=predict")).await.len(),
        usize::from(read["action"] == "predict")
    );
    let replayed = service.post("/v1/deployments/d/what-if", json!({})).await.ok();
    assert_eq!((&replayed["decisions"], &replayed["changed"]), (&json!(1), &json!(0)));
    service.get("/v1/deployments/d").await.problem(404);
    service.post("/v1/deployments/d/decide", json!({"probs": [1.0, 0.0, 0.0]})).await.problem(404);
    // A new one of the same name begins anew; the number tells them apart.
    service.deploy(&policy()).await;
    let second = decide(&service, [0.2, 0.3, 0.5]).await;
    assert_eq!(listed(&service, list).await, [second]);
    let deleted = service.get("/v1/deployments?deleted=true").await.ok();
    let deleted = &deleted["deployments"][0];
    assert!(deleted["name"] == "d" && deleted["deleted"].as_str().unwrap().ends_with('Z'), "{deleted}");
    let path = format!("{list}?number={}", deleted["number"]);
    assert_eq!(listed(&service, &path).await, std::slice::from_ref(&first));
    let export = axum::http::Request::get(&path).header("accept", "text/csv").body(axum::body::Body::empty()).unwrap();
    let export = String::from_utf8(service.send(export).await.bytes).unwrap();
    assert!(export.contains(&first) && export.lines().count() == 2, "{export}");
    service.get(&format!("/v1/decisions/{first}")).await.ok();
    service.get(&format!("{list}?number=99")).await.problem(404);
    let other = service.get("/v1/deployments").await.ok();
    assert!(other["deployments"].as_array().unwrap().len() == 1 && other["deployments"][0]["deleted"].is_null());
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

#[tokio::test]
async fn what_changes_nothing_is_not_in_the_log_of_administration() {
    let service = Service::new().await;
    let policy = policy();
    service.deploy(&policy).await;
    let log = async || {
        let log = service.get("/v1/admin/log").await.ok();
        let entries = log["entries"].as_array().unwrap().iter().map(|entry| entry["what"].as_str().unwrap().to_owned());
        entries.collect::<Vec<String>>()
    };
    assert!(log().await[1].starts_with("add version 1 to d and activate it: policy "), "{:?}", log().await);
    assert_eq!(service.upload("d", &policy).await.status.as_u16(), 200);
    service.put("/v1/deployments/d", json!({"mode": "active"})).await.ok();
    service.put("/v1/deployments/d/oracles/expert", json!({"available": true})).await.ok();
    service.post("/v1/deployments/d/versions/1/activate", json!({})).await.ok();
    assert_eq!(log().await.len(), 2, "{:?}", log().await);
    let other = Router::calibrate(&world(800, 1), &Partition::top_class(3)).unwrap().policy(&task()).unwrap();
    service.upload("d", &other).await.ok();
    service.post("/v1/deployments/d/rollback", json!({})).await.ok();
    let log = log().await;
    assert!(log[2].starts_with("add version 2 to d and activate it (before: version 1): policy "), "{log:?}");
    assert_eq!(log[3..], ["roll d back from version 2 to version 1"]);
    let problem = service.post("/v1/deployments/d/rollback", json!({})).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().starts_with("there is nothing further back"), "{problem}");
}

#[tokio::test]
async fn a_deployment_without_an_active_version_says_which_can_be_activated() {
    let service = Service::new().await;
    service.put("/v1/deployments/d", json!({})).await.ok();
    let ask = async || {
        let problem = service.post("/v1/deployments/d/decide", json!({"probs": [1.0, 0.0, 0.0]})).await.problem(409);
        problem["detail"].as_str().unwrap().to_owned()
    };
    let none = ask().await;
    assert!(none.contains("has no version yet: add one with POST /v1/deployments/d/versions"), "{none}");
    for bins in [3, 5] {
        let policy = Router::calibrate(&world(800, 1), &Partition::top_class(bins)).unwrap().policy(&task()).unwrap();
        let bytes = pointsman_table::policy_bytes(&policy).unwrap();
        service.upload_parts("d", &[("policy", &bytes)]).await.ok();
    }
    let inactive = ask().await;
    for words in ["versions (1, 2), and none is active", "POST /v1/deployments/d/versions/2/activate"] {
        assert!(inactive.contains(words), "{inactive}");
    }
    service.post("/v1/deployments/d/versions/2/activate", json!({})).await.ok();
    service.post("/v1/deployments/d/decide", json!({"probs": [1.0, 0.0, 0.0]})).await.ok();
}

#[tokio::test]
async fn a_version_without_features_is_described_in_a_sentence() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let problem = service.upload("d", &policy()).await.problem(409);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("the version has no features instead of words, so that"), "{problem}");
}
