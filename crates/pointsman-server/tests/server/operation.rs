//! Keys, health, metrics and the description of the interface.

use axum::body::Body;
use axum::http::Request;
use pointsman_server::keys::NewKey;
use pointsman_server::store::{Change, Scope};
use pointsman_server::{Access, OnLogFailure, Settings};
use serde_json::json;

use crate::support::{Reply, Service, policy};

async fn with_key(service: &Service, method: &str, path: &str, key: Option<&str>) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    service.send(request.body(Body::from(r#"{"probs": [1.0, 0.0, 0.0]}"#)).unwrap()).await
}

async fn add_key(service: &Service, name: &str, scopes: &[Scope], rate: Option<u32>) -> String {
    let key = NewKey::random();
    let change = Change::AddKey {
        name: name.to_owned(),
        public: key.public,
        secret_hash: key.secret_hash,
        scopes: scopes.iter().copied().collect(),
        rate,
    };
    service.app.store.change(change, "test".to_owned()).await.unwrap();
    service.app.deployments.refresh().await.unwrap();
    key.text
}

#[tokio::test]
async fn keys_open_what_their_scopes_allow() {
    let service = Service::with(Settings::new(Access::Keys)).await;
    let admin = add_key(&service, "admin", &[Scope::Admin], None).await;
    let decide = add_key(&service, "decide", &[Scope::Decide], None).await;
    let read = add_key(&service, "read", &[Scope::Read], None).await;
    for wrong in [None, Some("pk_a_b")] {
        let reply = with_key(&service, "PUT", "/v1/deployments/d", wrong).await;
        assert_eq!(reply.problem(401)["title"], "The request has no valid key");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
    }
    with_key(&service, "PUT", "/v1/deployments/d", Some(&decide)).await.problem(403);
    let put = Request::put("/v1/deployments/d").header("authorization", format!("Bearer {admin}")).body(Body::empty());
    assert_eq!(service.send(put.unwrap()).await.status.as_u16(), 201);
    for (key, status) in [(&decide, 409), (&read, 403), (&admin, 409)] {
        with_key(&service, "POST", "/v1/deployments/d/decide", Some(key)).await.problem(status);
    }
    for (key, status) in [(&decide, 403), (&read, 200), (&admin, 200)] {
        assert_eq!(with_key(&service, "GET", "/v1/deployments", Some(key)).await.status.as_u16(), status);
    }
    for open in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert!(with_key(&service, "GET", open, None).await.status.is_success(), "{open}");
    }
    service.app.store.change(Change::DisableKey { name: "read".to_owned() }, "test".to_owned()).await.unwrap();
    service.app.deployments.refresh().await.unwrap();
    with_key(&service, "GET", "/v1/deployments", Some(&read)).await.problem(401);
}

#[tokio::test]
async fn every_address_that_is_described_with_a_key_needs_one() {
    let service = Service::with(Settings::new(Access::Keys)).await;
    let other = add_key(&service, "none", &[], None).await;
    let document = service.get("/openapi.json").await.ok();
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"].is_null() {
                continue;
            }
            // What stands in the braces does not matter: keys are checked first.
            let (method, path) = (method.to_uppercase(), path.replace(['{', '}'], ""));
            with_key(&service, &method, &path, None).await.problem(401);
            with_key(&service, &method, &path, Some(&other)).await.problem(403);
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} operations");
}

#[tokio::test]
async fn a_key_beyond_its_rate_is_told_to_wait() {
    let service = Service::with(Settings::new(Access::Keys)).await;
    let key = add_key(&service, "slow", &[Scope::Read], Some(3)).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(with_key(&service, "GET", "/v1/deployments", Some(&key)).await);
    }
    assert!(statuses[..3].iter().all(|reply| reply.status.is_success()));
    let refused =
        statuses.iter().find(|reply| reply.status.as_u16() == 429).expect("six requests at once are too many");
    refused.problem(429);
    assert_eq!(refused.headers["retry-after"], "1");
}

#[tokio::test]
async fn once_there_is_a_key_it_is_needed_on_loopback_too() {
    let service = Service::new().await;
    assert!(service.get("/v1/deployments").await.status.is_success());
    add_key(&service, "app", &[Scope::Decide], None).await;
    service.get("/v1/deployments").await.problem(401);
    // Disabling the last key opens nothing, not even after a restart.
    service.app.store.change(Change::DisableKey { name: "app".to_owned() }, "test".to_owned()).await.unwrap();
    service.app.deployments.refresh().await.unwrap();
    service.get("/v1/deployments").await.problem(401);
    service.restart().await.get("/v1/deployments").await.problem(401);
}

#[tokio::test]
async fn secrets_appear_nowhere() {
    let service = Service::with(Settings::new(Access::Keys)).await;
    let key = add_key(&service, "canary", &[Scope::Admin], None).await;
    let secret = key.rsplit('_').next().unwrap();
    let paths = ["/v1/deployments", "/metrics", "/readyz", "/openapi.json", "/v1/deployments/none", "/nowhere"];
    // The key in the wrong place besides.
    let wrong =
        [format!("/v1/deployments/{key}"), format!("/v1/decisions/{key}"), format!("/v1/admin/log?after={key}")];
    for path in paths.into_iter().chain(wrong.iter().map(String::as_str)) {
        let reply = with_key(&service, "GET", path, Some(&key)).await;
        assert!(!String::from_utf8_lossy(&reply.bytes).contains(secret), "{path}");
    }
    let log = service.app.store.admin_log(0, 10).await.unwrap();
    assert!(!format!("{log:?}").contains(secret));
    assert!(!format!("{:?}", service.app).contains(secret));
    for entry in std::fs::read_dir(service.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn metrics_count_decisions() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    for _ in 0..3 {
        service.post("/v1/deployments/d/decide", json!({"probs": [0.98, 0.01, 0.01]})).await.ok();
    }
    let text = String::from_utf8(service.get("/metrics").await.bytes).unwrap();
    let names = [
        "decisions_total",
        "overhead_seconds_bucket",
        "log_commit_seconds",
        "log_queue_rows 0",
        "lost_log_total 0",
        "cost_total",
        "policy_info",
    ];
    for name in names {
        assert!(text.contains(&format!("pointsman_{name}")), "{name} is missing:\n{text}");
    }
    assert_eq!(total(&text, "pointsman_decisions_total"), 3);
    assert!(text.ends_with("# EOF\n"));
}

/// The sum of a counter over its labels.
fn total(metrics: &str, name: &str) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn decisions_that_are_answered_without_being_logged_are_marked_and_not_counted_as_committed() {
    let mut settings = Settings::new(Access::Open);
    settings.on_log_failure = OnLogFailure::Answer;
    let service = Service::with(settings).await;
    service.deploy(&policy()).await;
    let decide = "/v1/deployments/d/decide";
    assert!(service.post(decide, json!({"probs": [0.98, 0.01, 0.01]})).await.ok()["logged"].is_null());
    // Nothing can be committed from now on.
    service.app.store.close().await.unwrap();
    let answer = service.post(decide, json!({"probs": [0.98, 0.01, 0.01]})).await.ok();
    assert_eq!((&answer["logged"], &answer["action"]), (&json!(false), &json!("predict")));
    let rows = service.post(decide, json!({"rows": [{"probs": [1, 0, 0]}, {"probs": [0, 1, 0]}]})).await.ok();
    assert!(rows["rows"].as_array().unwrap().iter().all(|row| row["logged"] == false), "{rows}");
    let dry = service.post(decide, json!({"probs": [1, 0, 0], "dry_run": true})).await.ok();
    assert!(dry["logged"].is_null() && dry["decision_id"].is_null(), "{dry}");
    let tensor = json!({"name": "probs", "shape": [1, 3], "datatype": "FP64", "data": [1, 0, 0]});
    let inferred = service.post("/v2/models/d/infer", json!({"inputs": [tensor]})).await.ok();
    assert_eq!(inferred["parameters"], json!({"logged": false}));
    let metrics = String::from_utf8(service.get("/metrics").await.bytes).unwrap();
    assert_eq!(total(&metrics, "pointsman_decisions_total"), 1);
    assert_eq!(total(&metrics, "pointsman_lost_log_total"), 4);
    // The service answers, so that it is ready, and says what is wrong.
    let ready = service.get("/readyz").await.ok();
    assert_eq!(ready["ready"], true);
    assert!(ready["reasons"][0].as_str().unwrap().ends_with("decisions are answered without being logged"), "{ready}");
    assert!(service.get("/v2/health/ready").await.status.is_success());
}

#[tokio::test]
async fn readiness_writes_to_the_folder_of_the_log() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    assert_eq!(service.get("/readyz").await.ok()["ready"], true);
    let log = service.folder.path().join("store.db-log");
    let names = || {
        let entries = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.filter(|name| !name.starts_with("0000")).collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0], "something was left behind");
    // The files that are open can be written, but no new one can be made: the log could not go on for long.
    let elsewhere = service.folder.path().join("elsewhere");
    std::fs::rename(&log, &elsewhere).unwrap();
    let reply = service.get("/readyz").await;
    assert_eq!(reply.status.as_u16(), 503);
    assert!(reply.json()["reasons"][0].as_str().unwrap().contains("store.db-log"), "{:?}", reply.json());
    assert_eq!(service.get("/v2/health/ready").await.status.as_u16(), 503);
    std::fs::rename(&elsewhere, &log).unwrap();
    assert_eq!(service.get("/readyz").await.ok()["ready"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_readiness_do_not_disturb_each_other() {
    let service = std::sync::Arc::new(Service::new().await);
    let check = || {
        let service = std::sync::Arc::clone(&service);
        tokio::spawn(async move { service.get("/readyz").await.status.as_u16() })
    };
    let checks: Vec<_> = (0..200).map(|_| check()).collect();
    for check in checks {
        assert_eq!(check.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn draining_shows_in_readiness() {
    let service = Service::new().await;
    assert_eq!(service.get("/readyz").await.ok()["ready"], true);
    service.app.set_reload_error(Some("line 3 is wrong".to_owned()));
    let ready = service.get("/readyz").await.ok();
    assert_eq!(ready["reasons"][0], "line 3 is wrong");
    service.app.drain();
    let reply = service.get("/readyz").await;
    assert_eq!(reply.status.as_u16(), 503);
    assert!(reply.json()["reasons"][0].as_str().unwrap().contains("shutting down"));
    assert!(service.get("/healthz").await.status.is_success());
}

#[tokio::test]
async fn the_interface_is_described() {
    let service = Service::new().await;
    let document = service.get("/openapi.json").await.ok();
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/v1/deployments/{deployment}/decide",
        "/v1/decisions/{id}",
        "/v1/deployments/{deployment}/what-if",
        "/v2/models/{deployment}/infer",
        "/v1/files",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    let decide = &paths["/v1/deployments/{deployment}/decide"]["post"]["responses"];
    for status in ["200", "400", "401", "403", "404", "408", "409", "413", "415", "422", "429", "503"] {
        assert!(decide[status]["content"].is_object(), "{status} of {decide}");
    }
    let mut ids = std::collections::HashSet::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(operation["summary"].as_str().is_some(), "{method} {path} has no summary");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{method} {path}: another operation is called {id}");
        }
    }
}

#[tokio::test]
async fn what_is_no_id_in_an_address_is_named() {
    let service = Service::new().await;
    for (path, named) in [
        ("/v1/decisions/one", "\"one\" is not a decision_id"),
        ("/v1/deployments/d/versions/first/activate", "\"first\" is not a version's number"),
    ] {
        let request = if path.ends_with("activate") { Request::post(path) } else { Request::get(path) };
        let detail = service.send(request.body(Body::empty()).unwrap()).await.problem(404)["detail"].clone();
        assert!(detail.as_str().unwrap().contains(named), "{detail}");
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let service = Service::new().await;
    let ask = async |path: &str, id: Option<&str>| {
        let request = Request::get(path);
        let request = if let Some(id) = id { request.header("x-request-id", id) } else { request };
        let reply = service.send(request.body(Body::empty()).unwrap()).await;
        reply.headers["x-request-id"].to_str().unwrap().to_owned()
    };
    for path in ["/healthz", "/v1/deployments", "/v1/deployments/none", "/nowhere"] {
        assert_eq!(ask(path, Some("from-the-caller")).await, "from-the-caller", "{path}");
        let made = ask(path, None).await;
        assert!(!made.is_empty() && made != ask(path, None).await, "{path}");
        for unusable in ["", "two words", &"x".repeat(129)] {
            assert_ne!(ask(path, Some(unusable)).await, unusable, "{path}");
        }
    }
}

#[tokio::test]
async fn changes_are_listed_to_administrators() {
    let service = Service::with(Settings::new(Access::Keys)).await;
    let admin = add_key(&service, "admin", &[Scope::Admin], None).await;
    let read = add_key(&service, "read", &[Scope::Read, Scope::Decide], None).await;
    for name in ["a", "b", "c"] {
        let put = Request::put(format!("/v1/deployments/{name}")).header("authorization", format!("Bearer {admin}"));
        assert!(service.send(put.body(Body::empty()).unwrap()).await.status.is_success());
    }
    with_key(&service, "GET", "/v1/admin/log", None).await.problem(401);
    with_key(&service, "GET", "/v1/admin/log", Some(&read)).await.problem(403);
    let page = with_key(&service, "GET", "/v1/admin/log", Some(&admin)).await.ok();
    let entries = page["entries"].as_array().unwrap();
    let what: Vec<&str> = entries.iter().map(|entry| entry["what"].as_str().unwrap()).collect();
    assert_eq!(what[2..], ["put deployment a", "put deployment b", "put deployment c"]);
    assert_eq!(entries[2]["by"], "admin");
    assert!(entries[0]["time"].as_str().unwrap().ends_with('Z'));
    assert!(page["next"].is_null());
    let first = with_key(&service, "GET", "/v1/admin/log?limit=3", Some(&admin)).await.ok();
    let rest = with_key(&service, "GET", &format!("/v1/admin/log?after={}", first["next"]), Some(&admin)).await.ok();
    assert_eq!(rest["entries"].as_array().unwrap()[..], entries[3..]);
    with_key(&service, "GET", "/v1/admin/log?limit=0", Some(&admin)).await.problem(422);
}

/// Sends a request as a browser does, with these headers.
async fn browse(service: &Service, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    service.send(request.body(Body::from("{}")).unwrap()).await
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let service = Service::new().await;
    let (host, site) = (("host", "localhost:7070"), "sec-fetch-site");
    let foreign: [&[(&str, &str)]; 6] = [
        &[host, (site, "cross-site")],
        &[host, (site, "same-site")],
        &[host, (site, "cross-site"), ("origin", "http://localhost:7070")],
        &[host, ("origin", "http://evil.example")],
        &[host, ("origin", "http://localhost:7071")],
        &[host, ("origin", "null")],
    ];
    for headers in foreign {
        for (method, path) in [("PUT", "/v1/deployments/d"), ("POST", "/v2/models/d/infer"), ("DELETE", "/nowhere")] {
            let problem = browse(&service, method, path, headers).await.problem(403);
            assert_eq!(problem["type"], "urn:pointsman:other-site", "{headers:?}");
        }
        assert!(
            browse(&service, "GET", "/v1/deployments", headers).await.ok()["deployments"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    let own: [&[(&str, &str)]; 4] = [
        &[host],
        &[host, (site, "same-origin")],
        &[host, (site, "none")],
        &[host, ("origin", "http://localhost:7070")],
    ];
    for headers in own {
        browse(&service, "PUT", "/v1/deployments/d", headers).await.ok();
    }
}

#[tokio::test]
async fn without_keys_only_hosts_of_this_machine_are_answered() {
    let service = Service::new().await;
    let of_host = async |path: &str, host: &str| browse(&service, "GET", path, &[("host", host)]).await;
    for path in ["/v1/deployments", "/readyz", "/metrics", "/openapi.json", "/nowhere"] {
        let problem = of_host(path, "evil.example:7070").await.problem(403);
        assert!(problem["detail"].as_str().unwrap().contains("evil.example:7070"), "{problem}");
    }
    for host in ["localhost", "127.0.0.1:7070", "[::1]:7070"] {
        of_host("/v1/deployments", host).await.ok();
    }
    assert!(of_host("/healthz", "evil.example").await.status.is_success());
    // With keys, a page of another site knows none.
    add_key(&service, "app", &[Scope::Read], None).await;
    of_host("/v1/deployments", "points.example.org").await.problem(401);
    of_host("/readyz", "points.example.org").await.ok();
}
