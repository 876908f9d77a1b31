//! What several processes on one PostgreSQL may rely on, and what happens when it goes away.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pointsman_server::clock::{Ids, Time};
use pointsman_server::store::postgres::PostgresStore;
use pointsman_server::store::{Appended, Change, DeploymentId, LogQuery, Record, Settings, Store, StoreError};
use pointsman_testing::postgres::{self, Cluster};
use serde_json::json;
use uuid::Uuid;

use crate::conformance::record;
use crate::support::{Service, policy};

const DECIDE: &str = "/v1/deployments/d/decide";

async fn open(url: &str) -> PostgresStore {
    open_with(url, Settings::new()).await.unwrap()
}

async fn open_with(url: &str, settings: Settings) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(&url.parse().unwrap(), settings).await
}

/// All ids of callers in the log, with the ids of their decisions.
async fn logged(store: &dyn Store, deployment: DeploymentId) -> Vec<(String, Uuid)> {
    let mut query = LogQuery::all(deployment, 1000);
    let mut all = Vec::new();
    loop {
        let page = store.decisions(query.clone()).await.unwrap();
        let Some(last) = page.last() else { return all };
        query.after = Some(last.id);
        all.extend(page.into_iter().filter_map(|record| Some((record.client_id?, record.id))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_two_replicas_get_at_once_is_decided_once() {
    const IDS: usize = 300;
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let (one, two) = tokio::join!(open(&database.url), open(&database.url));
    let stores: Vec<Arc<PostgresStore>> = [one, two].into_iter().map(Arc::new).collect();
    // Each replica sends the ids in an order of its own, and some of them twice within a batch.
    let send = |store: &Arc<PostgresStore>, step: usize| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let ids = Ids::after(None);
            let mut decided = HashMap::new();
            for batch in 0..IDS / 10 {
                let name = |i: usize| format!("id-{}", (batch * 10 + i) * step % IDS);
                let records: Vec<Record> = (0..12).map(|i| record(&ids, Some(&name(i)))).collect();
                let appended = store.append(Arc::new(records.clone())).await.unwrap();
                for (asked, appended) in records.into_iter().zip(appended) {
                    let id = match appended {
                        Appended::Committed => asked.id,
                        Appended::Existing(first) => first.id,
                    };
                    let before = decided.insert(asked.client_id.unwrap(), id);
                    assert!(before.is_none_or(|before| before == id), "an id was decided twice");
                }
            }
            decided
        })
    };
    let (one, two) = tokio::join!(send(&stores[0], 1), send(&stores[1], 7));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.len(), &one), (IDS, &two));
    let log = logged(&*stores[0], DeploymentId(3)).await;
    assert_eq!(log.len(), IDS);
    assert_eq!(log.into_iter().collect::<HashMap<_, _>>(), one);
    for store in stores {
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_change_the_registry_at_once_lose_nothing() {
    const CHANGES: usize = 25;
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let (one, two) = tokio::join!(open(&database.url), open(&database.url));
    let change = async |store: &PostgresStore, name: &str| {
        for i in 0..CHANGES {
            let put = Change::PutDeployment { name: format!("{name}-{i}"), mode: None };
            store.change(put, name.to_owned()).await.unwrap();
        }
    };
    tokio::join!(change(&one, "a"), change(&two, "b"));
    let registry = one.registry().await.unwrap();
    assert_eq!(registry.deployments.len(), 2 * CHANGES);
    assert_eq!(registry.generation, 2 * CHANGES as u64);
    let ids: HashSet<DeploymentId> = registry.deployments.iter().map(|deployment| deployment.id).collect();
    assert_eq!(ids.len(), 2 * CHANGES, "two deployments have one number");
    assert_eq!(two.registry().await.unwrap(), registry);
    assert_eq!(two.admin_log(0, 1000).await.unwrap().len(), 2 * CHANGES);
}

#[tokio::test]
async fn changes_of_one_replica_are_announced_to_the_others() {
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let (one, two) = tokio::join!(open(&database.url), open(&database.url));
    let hears = || tokio::time::timeout(Duration::from_secs(1), two.changed());
    // Connecting counts as a change, since something may have changed before.
    hears().await.expect("the replica listens");
    assert!(hears().await.is_err(), "nothing has changed");
    for name in ["a", "b"] {
        one.change(Change::PutDeployment { name: name.to_owned(), mode: None }, "test".to_owned()).await.unwrap();
        hears().await.expect("a change is announced within a second");
    }
    // A connection that broke is made again.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    postgres::execute(&database.url, end);
    tokio::time::timeout(Duration::from_secs(10), two.changed()).await.expect("the replica listens again");
    one.change(Change::DeleteDeployment { name: "a".to_owned() }, "test".to_owned()).await.unwrap();
    hears().await.expect("a change is announced within a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_make_the_tables_once() {
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let opened = tokio::join!(open(&database.url), open(&database.url), open(&database.url), open(&database.url));
    assert_eq!(opened.3.generation().await.unwrap(), 0);
    let version = || postgres::query(&database.url, "SELECT version FROM pointsman.schema");
    assert_eq!(version().len(), 1);
    postgres::execute(&database.url, "UPDATE pointsman.schema SET version = 99");
    let newer = open_with(&database.url, Settings::new()).await.unwrap_err().to_string();
    assert!(newer.contains("format 99") && newer.contains("use a newer pointsman"), "{newer}");
}

#[tokio::test]
async fn expired_days_are_dropped_with_the_ids_of_their_callers() {
    const DAY: i64 = 86_400_000_000;
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let store = open(&database.url).await;
    let now = Time::now();
    let days_ago = |days: i64, name: &str| {
        let at = Time(now.0 - days * DAY);
        let id = Uuid::from_u128(at.first_id().as_u128() + 1);
        Record { id, at, ..record(&Ids::after(None), Some(name)) }
    };
    let [old, middle, new] = [days_ago(9, "old"), days_ago(5, "middle"), days_ago(0, "new")];
    let append = async |record: &Record| store.append(Arc::new(vec![record.clone()])).await.unwrap().remove(0);
    for record in [&old, &middle, &new] {
        assert_eq!(append(record).await, Appended::Committed);
    }
    store.prune(Some(Time(now.0 - 7 * DAY)), Some(Time(now.0 - 3 * DAY))).await.unwrap();
    assert!(store.decision(old.id).await.unwrap().is_none());
    assert_eq!(store.decision(middle.id).await.unwrap().unwrap().input, None);
    assert_eq!(store.decision(new.id).await.unwrap().unwrap().input, new.input);
    // What remains is found by its id; the id of what has expired is free again, also on the same day.
    let again = |record: &Record| Record { id: Uuid::from_u128(record.id.as_u128() + 1), ..record.clone() };
    assert!(matches!(append(&again(&middle)).await, Appended::Existing(first) if first.id == middle.id));
    assert_eq!(append(&again(&old)).await, Appended::Committed);
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'pointsman.decisions'::regclass";
    assert_eq!(postgres::query(&database.url, partitions)[0][0].as_deref(), Some("4"), "today, tomorrow and two days");
}

/// Asks for decisions until a flag stops it, and returns those that were answered.
async fn ask(service: Arc<Service>, client: usize, is_done: Arc<AtomicBool>) -> Vec<(String, Uuid)> {
    let mut answered = Vec::new();
    for n in 0.. {
        let id = format!("{client}-{n}");
        let reply = service.post(DECIDE, json!({"id": id, "probs": [0.5, 0.3, 0.2]})).await;
        match reply.status.as_u16() {
            200 => answered.push((id, reply.json()["decision_id"].as_str().unwrap().parse().unwrap())),
            503 => tokio::time::sleep(Duration::from_millis(20)).await,
            other => panic!("{other}"),
        }
        if is_done.load(Ordering::Relaxed) {
            break;
        }
    }
    answered
}

/// Fails unless requests are refused soon, with when to try again and why.
async fn assert_refused(service: &Service, password: &str) {
    let start = Instant::now();
    let refused = service.post(DECIDE, json!({"probs": [0.5, 0.3, 0.2]})).await;
    assert!(start.elapsed() < Duration::from_secs(5), "a refusal took {:?}", start.elapsed());
    let problem = refused.problem(503);
    assert_eq!(refused.headers["retry-after"], "1");
    let ready = service.get("/readyz").await;
    assert_eq!(ready.status.as_u16(), 503);
    for text in [problem.to_string(), ready.json().to_string()] {
        assert!(text.contains("PostgreSQL") && !text.contains(password), "{text}");
    }
    service.get("/v1/deployments/d/decisions").await.problem(503);
}

/// Stops the server under load and starts it again: requests are refused meanwhile, and nothing that was answered is missing.
async fn survives_a_stop(cluster: &Cluster, mode: &str, is_durable: bool) {
    let database = cluster.database();
    let store = open_with(&database.url, Settings::new().durable(is_durable)).await.unwrap();
    let service = Arc::new(Service::on(Arc::new(store)).await);
    service.deploy(&policy()).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let client = |client| tokio::spawn(ask(Arc::clone(&service), client, Arc::clone(&is_done)));
    let load: Vec<_> = (0..4).map(client).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    tokio::task::block_in_place(|| cluster.stop(mode));
    assert_refused(&service, database.password()).await;
    tokio::task::block_in_place(|| cluster.resume());
    let start = Instant::now();
    while service.get("/readyz").await.status.as_u16() != 200 {
        assert!(start.elapsed() < Duration::from_secs(10), "the service does not recover");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    is_done.store(true, Ordering::Relaxed);
    let mut answered: Vec<(String, Uuid)> = Vec::new();
    for client in load {
        answered.extend(client.await.unwrap());
    }
    let deployment = service.app.deployments.now().deployments["d"].id();
    let log = logged(&*service.app.store, deployment).await;
    let distinct: HashSet<&String> = log.iter().map(|(id, _)| id).collect();
    assert_eq!(distinct.len(), log.len(), "an id is logged twice");
    let log: HashSet<(String, Uuid)> = log.into_iter().collect();
    assert!(answered.len() > 20, "only {} decisions were answered", answered.len());
    for decision in &answered {
        assert!(log.contains(decision), "{decision:?} was answered and is not in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_and_starts_again_loses_nothing() {
    let Some(cluster) = postgres::private(&[]) else { return };
    survives_a_stop(&cluster, "fast", false).await;
    // As if it had crashed: only commits that wait for the disk survive for certain.
    survives_a_stop(&cluster, "immediate", true).await;
}

/// Writes an authority, and a certificate for 127.0.0.1 that it has signed.
fn certificates(folder: &Path) {
    let openssl = |arguments: &str| {
        let output = Command::new("openssl").current_dir(folder).args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -keyout {name}.key -out {name}.pem"
        ));
    }
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=server -keyout server.key -out server.pem -CA ca.pem -CAkey ca.key \
         -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE",
    );
}

#[tokio::test]
async fn encrypted_connections_check_the_certificate() {
    if Command::new("openssl").arg("version").output().is_err() {
        return pointsman_testing::skip("no openssl: encrypted connections to PostgreSQL are not tested");
    }
    let Some(cluster) = postgres::private(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    cluster.stop("fast");
    cluster.encrypt(&folder.path().join("server.pem"), &folder.path().join("server.key"));
    cluster.resume();
    let database = cluster.database();
    let with = |parameters: &str| {
        let at = |name: &str| folder.path().join(name).display().to_string().replace('/', "%2F");
        let parameters = parameters.replace("CA", &at("ca.pem")).replace("OTHER", &at("other.pem"));
        format!("{}?{parameters}", database.url)
    };
    let store = open(&with("sslmode=verify-full&sslrootcert=CA")).await;
    store.check().await.unwrap();
    let encrypted =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'pointsman'";
    assert_eq!(postgres::query(&database.url, encrypted)[0][0].as_deref(), Some("t"));
    for (parameters, reason) in [
        ("sslmode=verify-full&sslrootcert=OTHER", "certificate"),
        ("sslmode=require", "certificate"),
        ("sslmode=verify-full&sslrootcert=none.pem", "none.pem"),
    ] {
        let refused = open_with(&with(parameters), Settings::new()).await.unwrap_err().to_string();
        assert!(refused.contains(reason) && !refused.contains(database.password()), "{refused}");
    }
}

#[tokio::test]
async fn passwords_of_the_database_appear_nowhere() {
    let Some(cluster) = postgres::shared() else { return };
    let database = cluster.database();
    let service = Service::on(Arc::new(open(&database.url).await)).await;
    let password = database.password();
    assert!(!format!("{:?}", service.app).contains(password));
    let readable = service.get("/readyz").await;
    assert!(!String::from_utf8_lossy(&readable.bytes).contains(password));
    let url = &database.url;
    let wrong = [url.replace(password, "canary-wrong"), url.replace("pointsman_test", "canary_test")];
    for url in &wrong {
        let error = open_with(url, Settings::new()).await.unwrap_err().to_string();
        assert!(
            error.contains("PostgreSQL: ") && !error.contains(password) && !error.contains("canary-wrong"),
            "{error}"
        );
    }
}
