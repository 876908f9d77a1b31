//! Decisions over HTTP: equal to the core's, committed before they are answered, and refused with a reason.

use pointsman::policy::AvailableRoutes;
use pointsman::{Action, Partition, Router};
use serde_json::{Value, json};

use crate::support::{Service, policy, policy_with_features, task, world};

const DECIDE: &str = "/v1/deployments/d/decide";

#[tokio::test]
async fn answers_equal_the_core_bit_for_bit() {
    let queries = world(60, 7);
    let table = world(800, 1);
    let partitions =
        [Partition::top_class(5), "features:words=3".parse().unwrap(), Partition::tree(), Partition::forest(20)];
    for partition in partitions {
        let router = Router::calibrate(&table, &partition).unwrap();
        for task in [task(), task().budget(0.1).unwrap()] {
            let policy = router.policy(&task).unwrap();
            let service = Service::new().await;
            service.deploy(&policy).await;
            let uses_features = !policy.cells().features().is_empty();
            for row in 0..queries.rows() {
                let (prediction, features) = (queries.prediction(row), queries.features(row));
                let features = if uses_features { features } else { &[] };
                let decision = policy.decide_with(&prediction, features).unwrap();
                let mut body = json!({"probs": prediction});
                if uses_features {
                    body["features"] = json!({"words": features[0], "of no use": 1.0});
                }
                let answer = service.post(DECIDE, body).await.ok();
                assert_eq!(answer["action"], decision.action().to_string(), "{partition}");
                assert_eq!(answer["cell"], decision.cell().0);
                let costs: Vec<f64> =
                    policy.task().action_names().iter().map(|name| answer["costs"][name].as_f64().unwrap()).collect();
                let bits = |costs: &[f64]| costs.iter().map(|cost| cost.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&costs), bits(decision.costs()), "{partition}");
                assert_eq!(answer["irreducible"].as_f64(), decision.irreducible());
                assert_eq!(answer["reason"], decision.reason().name());
            }
        }
    }
}

#[tokio::test]
async fn a_decision_can_be_read_at_once_and_after_a_restart() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let body = json!({"probs": {"other thing": 0.2, "billing": 0.5, "délivery": 0.3}, "tags": {"team": "a/b\""}, "input": {"text": "héllo"}});
    let answer = service.post(DECIDE, body).await.ok();
    let id = answer["decision_id"].as_str().unwrap().to_owned();
    let check = |read: Value| {
        assert_eq!(read["probs"], json!([0.5, 0.3, 0.2]));
        assert_eq!(read["tags"], json!({"team": "a/b\""}));
        assert_eq!(read["input"], json!({"text": "héllo"}));
        assert_eq!(read["action"], answer["action"]);
        assert_eq!(read["costs"], answer["costs"]);
    };
    check(service.get(&format!("/v1/decisions/{id}")).await.ok());
    let listed = service.get("/v1/deployments/d/decisions?tag=team=a/b%22").await.ok();
    assert_eq!(listed["decisions"].as_array().unwrap().len(), 1);
    let service = service.restart().await;
    check(service.get(&format!("/v1/decisions/{id}")).await.ok());
    let later = service.post(DECIDE, json!({"probs": [0.1, 0.1, 0.8]})).await.ok();
    assert!(later["decision_id"].as_str().unwrap() > id.as_str(), "ids go on in order");
}

#[tokio::test]
async fn the_same_id_gives_the_first_decision_again() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let first = service.post(DECIDE, json!({"id": "q1", "probs": [0.9, 0.05, 0.05]})).await.ok();
    let by_name = json!({"délivery": 0.05, "other thing": 0.05, "billing": 0.9});
    let other = service.post(DECIDE, json!({"id": "q1", "probs": by_name, "tags": {"try": "2"}})).await.ok();
    assert_eq!(first, other);
    let service = service.restart().await;
    let again = service.post(DECIDE, json!({"rows": [{"id": "q1", "probs": [0.9, 0.05, 0.05]}, {"id": "q2", "probs": [0.3, 0.3, 0.4]}, {"id": "q2", "probs": [0.3, 0.3, 0.4]}]}));
    let again = again.await.ok();
    assert_eq!(again["rows"][0], first);
    assert_eq!(again["rows"][1], again["rows"][2], "the same id twice in one batch");
    let log = service.get("/v1/deployments/d/decisions").await.ok();
    assert_eq!(log["decisions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_id_with_another_query_is_refused() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let query = |id: &str, probs: [f64; 3], words: f64| json!({"id": id, "probs": probs, "features": {"words": words}});
    let asked = query("q1", [0.9, 0.05, 0.05], 0.5);
    let first = service.post(DECIDE, asked.clone()).await.ok();
    let refused = async |service: &Service, body: Value, pointer: &str| {
        let problem = service.post(DECIDE, body).await.problem(422);
        assert_eq!(
            (problem["type"].as_str(), problem["pointer"].as_str()),
            (Some("urn:pointsman:id-reused"), Some(pointer))
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("the id \"q1\" was given before with another query"), "{problem}");
    };
    let (other, moved) = (query("q1", [0.1, 0.1, 0.8], 0.5), query("q1", [0.9, 0.05, 0.05], 0.6));
    refused(&service, other.clone(), "/id").await;
    refused(&service, moved, "/id").await;
    refused(&service, json!({"rows": [query("q2", [0.9, 0.05, 0.05], 0.5), other]}), "/rows/1/id").await;
    let twice = json!({"rows": [query("q3", [0.9, 0.05, 0.05], 0.5), query("q3", [0.1, 0.1, 0.8], 0.5)]});
    let problem = service.post(DECIDE, twice).await.problem(422);
    assert_eq!(problem["type"], "urn:pointsman:id-reused");
    assert!(problem["detail"].as_str().unwrap().contains("\"q3\" is given twice in this request"), "{problem}");
    let service = service.restart().await;
    refused(&service, other.clone(), "/id").await;
    assert_eq!(service.post(DECIDE, asked.clone()).await.ok(), first);
    // Under another version as well, and with other prices.
    let dearer = policy_with_features().reprice(&task().reprice_route("expert", 0.3).unwrap()).unwrap();
    service.upload("d", &dearer).await.ok();
    refused(&service, other.clone(), "/id").await;
    assert_eq!(service.post(DECIDE, asked).await.ok(), first);
    // Nothing of a refused request is logged; dry runs are not repeated.
    assert_eq!(service.get("/v1/deployments/d/decisions").await.ok()["decisions"].as_array().unwrap().len(), 1);
    let mut dry = other;
    dry["dry_run"] = json!(true);
    service.post(DECIDE, dry).await.ok();
}

#[tokio::test]
async fn parameters_of_the_address_are_obeyed_or_refused() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let query = json!({"probs": [0.9, 0.05, 0.05]});
    let path = format!("{DECIDE}?dry_run=true&explain=true");
    let answer = service.post(&path, query.clone()).await.ok();
    assert!(answer["decision_id"].is_null() && answer["explanation"]["rows"].is_number(), "{answer}");
    let answers = service.post(&path, json!({"rows": [query]})).await.ok();
    assert!(answers["rows"][0]["decision_id"].is_null() && answers["rows"][0]["explanation"].is_object());
    for (parameters, pointer) in [("dryrun=true", "/dryrun"), ("dry_run=perhaps", "/dry_run")] {
        let problem = service.post(&format!("{DECIDE}?{parameters}"), query.clone()).await.problem(422);
        assert_eq!(problem["pointer"], pointer, "{problem}");
    }
    assert!(service.get("/v1/deployments/d/decisions").await.ok()["decisions"].as_array().unwrap().is_empty());
    let problem = service.get("/v1/deployments/d/decisions?tags=a=b").await.problem(422);
    assert_eq!(problem["pointer"], "/tags");
    let problem = service.get("/v1/decisions/abc").await.problem(404);
    assert!(problem["detail"].as_str().unwrap().contains("abc"), "{problem}");
    for day in ["2020-01-01", "2020-01-01T00:00:00Z"] {
        service.get(&format!("/v1/deployments/d/decisions?from={day}")).await.ok();
    }
    service.get("/v1/deployments/d/decisions?from=2020-01-01T00:00:00").await.problem(422);
}

#[tokio::test]
async fn dry_runs_are_not_logged() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let answer = service.post(DECIDE, json!({"probs": [0.9, 0.05, 0.05], "dry_run": true, "explain": true})).await.ok();
    assert!(answer["decision_id"].is_null());
    assert!(answer["explanation"]["cell_name"].as_str().unwrap().contains("billing"));
    let log = service.get("/v1/deployments/d/decisions").await.ok();
    assert!(log["decisions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn batches_are_all_or_nothing() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let good = json!({"probs": [0.9, 0.05, 0.05]});
    let problem = service.post(DECIDE, json!({"rows": [good, {"probs": [0.9, 0.5, 0.05]}]})).await.problem(422);
    assert!(problem["pointer"].as_str().unwrap().starts_with("/rows/1/probs"), "{problem}");
    let log = service.get("/v1/deployments/d/decisions").await.ok();
    assert!(log["decisions"].as_array().unwrap().is_empty());
    let answers = service.post(DECIDE, json!({"rows": [good, good]})).await.ok();
    assert_eq!(answers["rows"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_unavailable_oracle_leaves_the_choice() {
    let service = Service::new().await;
    let policy = policy();
    service.deploy(&policy).await;
    let down = AvailableRoutes::all().without(policy.task(), "expert").unwrap();
    let queries = world(200, 9);
    let routed = (0..queries.rows())
        .map(|row| queries.prediction(row))
        .find(|prediction| policy.decide(prediction).unwrap().action() == Action::Route("expert"));
    let prediction = routed.expect("some query is routed");
    let oracle = "/v1/deployments/d/oracles/expert";
    service.put(oracle, json!({"available": false})).await.ok();
    let answer = service.post(DECIDE, json!({"probs": prediction})).await.ok();
    let expected = policy.decide(&prediction).unwrap().among(&down);
    assert_eq!(answer["action"], expected.action().to_string());
    assert_eq!(answer["degraded"], "unavailable");
    assert_eq!(answer["wanted"], "route:expert");
    service.put(oracle, json!({"available": true})).await.ok();
    let answer = service.post(DECIDE, json!({"probs": prediction})).await.ok();
    assert_eq!(answer["action"], "route:expert");
    assert!(answer["degraded"].is_null());
    service.put("/v1/deployments/d/oracles/nobody", json!({"available": true})).await.problem(404);
}

#[tokio::test]
async fn shadow_mode_always_predicts_and_says_what_it_would_do() {
    let service = Service::new().await;
    let policy = policy();
    service.deploy(&policy).await;
    service.put("/v1/deployments/d", json!({"mode": "shadow"})).await.ok();
    let queries = world(50, 3);
    let mut seen = std::collections::BTreeSet::new();
    for row in 0..queries.rows() {
        let prediction = queries.prediction(row);
        let answer = service.post(DECIDE, json!({"probs": prediction})).await.ok();
        assert_eq!(answer["action"], "predict");
        assert_eq!(answer["would"], policy.decide(&prediction).unwrap().action().to_string());
        seen.insert(answer["would"].as_str().unwrap().to_owned());
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[tokio::test]
async fn bad_requests_are_refused_with_the_field() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let good = json!({"words": 0.5});
    let cases = [
        (json!({"features": good}), 422, "/probs"),
        (json!({"probs": [0.5, 0.5], "features": good}), 422, "/probs"),
        (json!({"probs": [0.5, 0.7, 0.3], "features": good}), 422, "/probs"),
        (json!({"probs": [0.5, -0.2, 0.7], "features": good}), 422, "/probs/1"),
        (json!({"probs": [0.5, null, 0.5], "features": good}), 422, "/probs/1"),
        (json!({"probs": [0.5, "x", 0.5], "features": good}), 422, "/probs/1"),
        (json!({"probs": {"billing": 1.0}, "features": good}), 422, "/probs"),
        (json!({"probs": {"billing": 0.5, "a/b": 0.5}, "features": good}), 422, "/probs/a~1b"),
        (json!({"probs": [0.5, 0.3, 0.2]}), 422, "/features"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": [1.0, 2.0]}), 422, "/features"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "tags": {"a": 1}}), 422, "/tags/a"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "id": ""}), 422, "/id"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "id": "a\u{0}b"}), 422, "/id"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "tags": {"a": "\u{0}"}}), 422, "/tags"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "surprise": 1}), 422, "/surprise"),
        (json!({"probs": [0.5, 0.3, 0.2], "features": good, "rows": []}), 422, "/rows"),
        (json!("probs"), 422, ""),
    ];
    for (body, status, pointer) in cases {
        let problem = service.post(DECIDE, body.clone()).await.problem(status);
        assert_eq!(problem["pointer"].as_str().unwrap_or(""), pointer, "{body}: {problem}");
    }
    service.post("/v1/deployments/nobody/decide", json!({"probs": [1.0]})).await.problem(404);
    service.get("/v1/decisions/00000000-0000-7000-8000-000000000000").await.problem(404);
    service.get("/nowhere").await.problem(404);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    use axum::http::Request;
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let deep = format!("{{\"probs\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let send = |kind: &'static str, body: Vec<u8>| {
        service.send(Request::post(DECIDE).header("content-type", kind).body(body.into()).unwrap())
    };
    for body in [&b"{"[..], b"", b"\xff\xfe", b"{\"probs\": [NaN, 0.5, 0.5]}", b"{\"probs\": [1.0, 0, 0]} x"] {
        send("application/json", body.to_vec()).await.problem(400);
    }
    let deep = send("application/json", deep.into_bytes()).await;
    assert!(deep.status.is_client_error(), "{}", deep.status);
    send("text/plain", b"{}".to_vec()).await.problem(415);
    let large = vec![b' '; 9 << 20];
    assert_eq!(send("application/json", large).await.status.as_u16(), 413);
    let rows = json!({"rows": vec![json!({"probs": [1.0, 0.0, 0.0]}); 10_001]});
    service.post(DECIDE, rows).await.problem(413);
}

#[tokio::test]
async fn lists_are_refused_where_objects_are_expected() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let query = json!(["q9", [0.5, 0.3, 0.2]]);
    let cases = [
        (DECIDE, query.clone(), "", "several queries go into rows"),
        (DECIDE, json!([{"probs": [0.5, 0.3, 0.2]}]), "", "several queries go into rows"),
        (DECIDE, json!([]), "", "{\"probs\": […]}"),
        (DECIDE, json!({"rows": [{"probs": [0.5, 0.3, 0.2]}, query]}), "/rows/1", "{\"probs\": […]}"),
        (DECIDE, json!({"rows": [[0.5, 0.3, 0.2]]}), "/rows/0", "{\"probs\": […]}"),
        ("/v1/deployments/d/what-if", json!(["2026-01-01"]), "", "{\"task\""),
        ("/v1/deployments/d/versions", json!([null, null, "abstain = 0.3"]), "", "{\"router\""),
        ("/v2/models/d/infer", json!([null, []]), "", "{\"inputs\""),
        ("/v2/models/d/infer", json!({"inputs": [["probs", [1, 3], "FP64", [], [1, 0, 0]]]}), "/inputs/0", "\"probs\""),
    ];
    for (path, body, pointer, words) in cases {
        let problem = service.post(path, body.clone()).await.problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(problem["pointer"], pointer, "{body}: {problem}");
        assert!(detail.contains("give an object, such as") && detail.contains(words), "{body}: {problem}");
    }
    let puts = [("/v1/deployments/d", json!(["shadow"])), ("/v1/deployments/d/oracles/expert", json!([false]))];
    for (path, body) in puts {
        let problem = service.put(path, body).await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains("give an object"), "{problem}");
    }
    let deployment = service.get("/v1/deployments/d").await.ok();
    assert_eq!((&deployment["mode"], &deployment["unavailable"]), (&json!("active"), &json!([])));
    assert_eq!(service.get("/v1/deployments/d/decisions").await.ok()["decisions"], json!([]), "nothing was logged");
}

#[tokio::test]
async fn the_next_best_action_can_be_taken_and_is_another_one() {
    let service = Service::new().await;
    let policy = policy();
    service.deploy(&policy).await;
    let queries = world(200, 9);
    let action = |row: usize| policy.decide(&queries.prediction(row)).unwrap().action();
    let routed = (0..queries.rows()).find(|row| action(*row) == Action::Route("expert")).expect("a query is routed");
    let predicted = (0..queries.rows()).find(|row| action(*row) == Action::Predict).expect("a query is predicted");
    let next_of = async |row: usize, id: &str| {
        let body = json!({"id": id, "probs": queries.prediction(row), "explain": true});
        let answer = service.post(DECIDE, body).await.ok();
        let [action, next] =
            [&answer["action"], &answer["explanation"]["next_best"]].map(|name| name.as_str().unwrap());
        (action.to_owned(), next.to_owned())
    };
    let (first, _) = next_of(routed, "before").await;
    assert_eq!(first, "route:expert");
    service.put("/v1/deployments/d/oracles/expert", json!({"available": false})).await.ok();
    for (row, id) in [(routed, "after"), (predicted, "predicted")] {
        let (taken, next) = next_of(row, id).await;
        let mut both = [taken.as_str(), next.as_str()];
        both.sort_unstable();
        assert_eq!(both, ["abstain", "predict"], "the only two that are left");
    }
    // The first decision again, under other circumstances.
    let (taken, next) = next_of(routed, "before").await;
    assert_eq!(taken, "route:expert");
    assert_ne!(next, "route:expert");
}

#[tokio::test]
async fn features_may_have_the_name_of_their_column() {
    let service = Service::new().await;
    service.deploy(&policy_with_features()).await;
    let ask = async |features: Value| {
        let reply = service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2], "features": features, "dry_run": true}));
        reply.await
    };
    let plain = ask(json!({"words": 0.5})).await.ok();
    assert_eq!(ask(json!({"x_words": 0.5, "x_other": 7})).await.ok(), plain);
    let problem = ask(json!({"words": 0.5, "x_words": 0.5})).await.problem(422);
    assert!(problem["detail"].as_str().unwrap().contains("given twice"), "{problem}");
}

#[tokio::test]
async fn features_that_are_missing_or_of_no_use_are_explained() {
    let service = Service::new().await;
    let router = Router::calibrate(&world(800, 1), &"features:words=3".parse().unwrap()).unwrap();
    service.deploy(&router.policy(&task()).unwrap()).await;
    let ask =
        async |features: Value| service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2], "features": features})).await;
    for features in [json!({"words": null}), json!([null])] {
        let problem = ask(features).await.problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("the value is missing") && !detail.contains("NaN"), "{problem}");
        assert_eq!(problem["pointer"], "/features/words");
    }
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let problem = service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2], "features": [1]})).await.problem(422);
    assert_eq!(problem["detail"], "the router uses no features: leave the list out");
    assert_eq!(problem["pointer"], "/features");
    for features in [json!({"anything": 1}), json!([]), json!(null)] {
        service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2], "features": features})).await.ok();
    }
}

#[tokio::test]
async fn pages_end_with_the_last_decision() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let answer = service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2]})).await.ok();
        ids.push(answer["decision_id"].as_str().unwrap().to_owned());
    }
    let page = async |parameters: &str| service.get(&format!("/v1/deployments/d/decisions?{parameters}")).await.ok();
    let first = page("limit=2").await;
    assert_eq!(first["next"], *ids[1]);
    let last = page(&format!("limit=2&after={}", ids[1])).await;
    assert_eq!(
        (last["decisions"].as_array().unwrap().len(), &last["next"]),
        (2, &Value::Null),
        "full, and the last one"
    );
    assert!(page("limit=4").await["next"].is_null());
    // Whoever follows the log goes on from the last decision.
    let later = service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2]})).await.ok();
    let more = page(&format!("limit=2&after={}", ids[3])).await;
    assert_eq!(more["decisions"][0]["decision_id"], later["decision_id"]);
    let entries = service.get("/v1/admin/log").await.ok()["entries"].as_array().unwrap().len();
    assert!(service.get(&format!("/v1/admin/log?limit={entries}")).await.ok()["next"].is_null());
    assert!(service.get(&format!("/v1/admin/log?limit={}", entries - 1)).await.ok()["next"].is_number());
}
