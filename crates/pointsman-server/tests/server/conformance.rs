//! What every store must do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointsman::Support;
use pointsman::policy::Reason;
use pointsman_server::clock::{Ids, Time};
use pointsman_server::store::postgres::PostgresStore;
use pointsman_server::store::sqlite::SqliteStore;
use pointsman_server::store::{
    Appended, Change, ChangeError, Degradation, DeploymentId, LogQuery, NewVersion, Outcome, Record, Scope, Settings,
    Sha256, Store, StoreError, VersionAction,
};
use pointsman_testing::postgres;
use uuid::Uuid;

/// A decision with something in every field.
pub(crate) fn record(ids: &Ids, client_id: Option<&str>) -> Record {
    let (id, at) = ids.next();
    Record {
        id,
        at,
        deployment: DeploymentId(3),
        version: 2,
        key: 1,
        client_id: client_id.map(str::to_owned),
        tags: Some(r#"{"team":"a","quote\"d":"x"}"#.to_owned()),
        input: Some(r#"{"text":"héllo"}"#.to_owned()),
        prediction: vec![0.25, 0.5, 0.1 + 0.15],
        features: vec![1.0, f64::NAN],
        outcome: Outcome {
            action: 1,
            would: Some(2),
            degraded: Some((1, Degradation::Limit)),
            label: 1,
            act: Some(0),
            cell: 17,
            support: Support::Sparse,
            irreducible: Some(0.1 + 0.2),
            reducible: None,
            costs: vec![0.5, f64::NAN, 0.3],
            margin: f64::INFINITY,
            reason: Reason::Degraded,
        },
    }
}

/// Equal also where numbers are NaN.
fn same(one: &Record, two: &Record) -> bool {
    format!("{one:?}") == format!("{two:?}")
}

/// Appends as callers do: again, if the store says that decisions wait to be archived, as on a machine that is busy with other things.
pub(crate) async fn append(store: &dyn Store, records: &[Record]) -> Vec<Appended> {
    let records = Arc::new(records.to_vec());
    for _ in 0..1200 {
        match store.append(records.clone()).await {
            Err(StoreError::Unavailable(why)) if why.contains("wait to be archived") => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            appended => return appended.unwrap(),
        }
    }
    panic!("the store refuses decisions for longer than two minutes");
}

async fn records_come_back_as_they_were(store: &dyn Store) {
    let ids = Ids::after(None);
    let records = [record(&ids, None), record(&ids, Some("q"))];
    assert_eq!(append(store, &records).await, [Appended::Committed, Appended::Committed]);
    for record in &records {
        let found = store.decision(record.id).await.unwrap().unwrap();
        assert!(same(&found, record), "{found:?}");
    }
    assert!(store.decision(Uuid::from_u128(1)).await.unwrap().is_none());
    assert_eq!(store.largest_id().await.unwrap(), Some(records[1].id));
}

async fn ids_of_callers_are_written_once(store: &dyn Store) {
    let ids = Ids::after(store.largest_id().await.unwrap());
    let first = record(&ids, Some("once"));
    append(store, std::slice::from_ref(&first)).await;
    let again = [record(&ids, Some("once")), record(&ids, Some("other")), record(&ids, Some("other"))];
    let appended = append(store, &again).await;
    let existing =
        |appended: &Appended, wanted: &Record| matches!(appended, Appended::Existing(found) if same(found, wanted));
    assert!(existing(&appended[0], &first), "{appended:?}");
    assert_eq!(appended[1], Appended::Committed);
    assert!(existing(&appended[2], &again[1]), "{appended:?}");
    assert!(store.decision(again[0].id).await.unwrap().is_none());
    // Another key or deployment has ids of its own.
    let others = [
        Record { key: 9, ..record(&ids, Some("once")) },
        Record { deployment: DeploymentId(4), ..record(&ids, Some("once")) },
    ];
    assert_eq!(append(store, &others).await, [Appended::Committed, Appended::Committed]);
}

async fn ids_with_another_query_are_refused(store: &dyn Store) {
    let ids = Ids::after(store.largest_id().await.unwrap());
    let other = |name: &str| Record { prediction: vec![0.5, 0.25, 0.25], ..record(&ids, Some(name)) };
    let other_feature = |name: &str| Record { features: vec![1.0, 2.0], ..record(&ids, Some(name)) };
    let is_refused = |reply: Result<Vec<Appended>, StoreError>, place: usize, name: &str| {
        assert!(matches!(&reply, Err(StoreError::IdReused { row, id }) if *row == place && id == name), "{reply:?}");
    };
    let first = record(&ids, Some("used"));
    append(store, std::slice::from_ref(&first)).await;
    is_refused(store.append(Arc::new(vec![other("used")])).await, 0, "used");
    is_refused(store.append(Arc::new(vec![other_feature("used")])).await, 0, "used");
    // All rows of the request or none.
    let batch = vec![record(&ids, Some("fresh")), record(&ids, None), other("used"), record(&ids, Some("used"))];
    let (fresh, nameless) = (batch[0].id, batch[1].id);
    is_refused(store.append(Arc::new(batch)).await, 2, "used");
    assert!(store.decision(fresh).await.unwrap().is_none() && store.decision(nameless).await.unwrap().is_none());
    is_refused(store.append(Arc::new(vec![record(&ids, Some("twice")), other("twice")])).await, 1, "twice");
    assert_eq!(append(store, &[other("fresh"), other("twice")]).await, [Appended::Committed, Appended::Committed]);
    // The same query again is no mistake, whatever else is in the request.
    let mixed = append(store, &[record(&ids, None), record(&ids, Some("used")), record(&ids, Some("more"))]).await;
    assert!(matches!(&mixed[1], Appended::Existing(found) if found.id == first.id), "{mixed:?}");
    assert_eq!((&mixed[0], &mixed[2]), (&Appended::Committed, &Appended::Committed));
    // Versions are compared if they have the same classes and features.
    let later = |version: u32| vec![Record { version, ..other("used") }];
    let reply = store.append_alike(Arc::new(later(3)), Arc::from([2, 3])).await;
    is_refused(reply, 0, "used");
    let reply = store.append_alike(Arc::new(later(3)), Arc::from([3])).await.unwrap();
    assert!(matches!(&reply[0], Appended::Existing(found) if found.id == first.id), "{reply:?}");
    // Requests that are committed together do not depend on each other.
    let good = |n: usize| vec![record(&ids, Some(&format!("good {n}"))), record(&ids, None)];
    let bad = |n: usize| vec![record(&ids, Some(&format!("bad {n}"))), other("used")];
    let mut replies = Vec::new();
    for n in 0..20 {
        replies.push((n, store.append(Arc::new(good(n))), store.append(Arc::new(bad(n)))));
    }
    for (n, good, bad) in replies {
        let (good, bad) = tokio::join!(good, bad);
        assert_eq!(good.unwrap(), [Appended::Committed, Appended::Committed], "request {n}");
        is_refused(bad, 1, "used");
    }
    let free: Vec<Record> = (0..20).map(|n| other(&format!("bad {n}"))).collect();
    assert!(append(store, &free).await.iter().all(|appended| *appended == Appended::Committed));
    // An id that only a refused request has is free for another one, also in the same commit.
    let refused = store.append(Arc::new(vec![record(&ids, Some("shared")), other("used")]));
    let taker = store.append(Arc::new(vec![other("shared"), record(&ids, None)]));
    let (refused, taker) = tokio::join!(refused, taker);
    is_refused(refused, 1, "used");
    assert_eq!(taker.unwrap(), [Appended::Committed, Appended::Committed]);
}

async fn pages_have_every_decision_once(store: &dyn Store) {
    let ids = Ids::after(store.largest_id().await.unwrap());
    let deployment = DeploymentId(50);
    let make = |i: u32| {
        let mut record = Record { deployment, version: 1 + i % 2, ..record(&ids, None) };
        record.outcome.cell = i % 3;
        record.outcome.action = (i % 7) as u8;
        record.tags = Some(format!(r#"{{"part":"{}"}}"#, i % 5));
        record
    };
    let records: Vec<Record> = (0..250).map(make).collect();
    for part in records.chunks(40) {
        append(store, part).await;
    }
    let read = async |query: LogQuery| {
        let (mut all, mut query) = (Vec::new(), query);
        loop {
            let page = store.decisions(query.clone()).await.unwrap();
            let Some(last) = page.last() else { break };
            query.after = Some(last.id);
            assert!(page.len() <= query.limit);
            all.extend(page.iter().map(|record| record.id));
        }
        all
    };
    let wanted = |keep: &dyn Fn(usize) -> bool| -> Vec<Uuid> {
        records.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, record)| record.id).collect()
    };
    for limit in [1, 7, 250, 1000] {
        assert_eq!(read(LogQuery::all(deployment, limit)).await, wanted(&|_| true), "pages of {limit}");
    }
    let mut query = LogQuery::all(deployment, 16);
    query.version = Some(2);
    assert_eq!(read(query.clone()).await, wanted(&|i| i % 2 == 1));
    query.cell = Some(1);
    assert_eq!(read(query.clone()).await, wanted(&|i| i % 2 == 1 && i % 3 == 1));
    query.tag = Some(("part".to_owned(), "4".to_owned()));
    assert_eq!(read(query).await, wanted(&|i| i % 2 == 1 && i % 3 == 1 && i % 5 == 4));
    let mut query = LogQuery::all(deployment, 16);
    query.actions = Some(vec![VersionAction { version: 1, action: 4 }, VersionAction { version: 2, action: 3 }]);
    assert_eq!(read(query.clone()).await, wanted(&|i| i % 7 == if i % 2 == 0 { 4 } else { 3 }));
    query.actions = Some(Vec::new());
    assert!(read(query).await.is_empty());
    // Pages end where they are large, and inputs are left out if they are not wanted.
    let mut query = LogQuery::all(deployment, 100);
    query.max_bytes = 5 * records[0].bytes();
    let page = store.decisions(query.clone()).await.unwrap();
    assert!((2..20).contains(&page.len()) && query.is_full(&page), "{} records", page.len());
    assert_eq!(read(query.clone()).await, wanted(&|_| true));
    query.with_inputs = false;
    assert!(store.decisions(query).await.unwrap().iter().all(|record| record.input.is_none()));
    let mut query = LogQuery::all(deployment, 100);
    query.to = Some(Time(0));
    assert!(read(query.clone()).await.is_empty());
    (query.from, query.to) = (Some(Time(0)), Some(Time(Time::now().0 + 60_000_000)));
    assert_eq!(read(query).await.len(), 250);
    assert!(read(LogQuery::all(DeploymentId(51), 100)).await.is_empty());
}

async fn changes_are_logged_or_refused(store: &dyn Store) {
    let change = async |change: Change| store.change(change, "tester".to_owned()).await;
    let put = || Change::PutDeployment { name: "shop".to_owned(), mode: None };
    let before = store.generation().await.unwrap();
    assert!(change(put()).await.unwrap().created);
    assert_eq!(store.generation().await.unwrap(), before + 1);
    let hash = store.add_file(b"a file".to_vec()).await.unwrap();
    assert_eq!(hash, Sha256::of(b"a file"));
    assert_eq!(store.add_file(b"a file".to_vec()).await.unwrap(), hash);
    assert_eq!(store.file(hash).await.unwrap().unwrap(), b"a file");
    assert!(store.file(Sha256::of(b"none")).await.unwrap().is_none());
    let version = |classes: &[u8]| NewVersion {
        router: None,
        policy: hash,
        task: "loss = \"brier\"".to_owned(),
        signature: Some(Sha256::of(classes)),
    };
    let add = |classes: &[u8], force: bool| Change::AddVersion {
        deployment: "shop".to_owned(),
        version: version(classes),
        activate: true,
        force,
    };
    let added = change(add(b"no, yes", false)).await.unwrap();
    assert_eq!(added.version, Some(1));
    let before = store.generation().await.unwrap();
    let again = change(add(b"no, yes", false)).await.unwrap();
    assert_eq!((again.version, again.is_changed), (Some(1), false));
    assert_eq!(store.generation().await.unwrap(), before);
    let refused = change(Change::Activate { deployment: "shop".to_owned(), version: 7, force: true }).await;
    assert!(matches!(refused, Err(StoreError::Refused(ChangeError::NoVersion { version: 7, .. }))), "{refused:?}");
    let refused = change(add(b"yes, no", false)).await;
    assert!(matches!(refused, Err(StoreError::Refused(ChangeError::OtherSignature(_)))), "{refused:?}");
    let key = Change::AddKey {
        name: "app".to_owned(),
        public: "abc".to_owned(),
        secret_hash: Sha256::of(b"canary-secret"),
        scopes: BTreeSet::from([Scope::Decide]),
        rate: None,
    };
    change(key).await.unwrap();
    let registry = store.registry().await.unwrap();
    assert_eq!(registry.deployment("shop").unwrap().active(), Some(1));
    assert_eq!(registry.keys[0].name, "app");
    let log = store.admin_log(0, 100).await.unwrap();
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log.iter().all(|entry| entry.by == "tester"));
    assert_eq!(store.admin_log(log[1].number, 100).await.unwrap(), log[2..]);
    change(Change::DeleteDeployment { name: "shop".to_owned() }).await.unwrap();
    let registry = store.registry().await.unwrap();
    assert!(registry.deployment("shop").is_none());
    assert_eq!((registry.deleted[0].name.as_str(), registry.deleted[0].versions.len()), ("shop", 1));
    let later = Time(Time::now().0 + 1_000_000);
    change(Change::ForgetDeleted { before: later }).await.unwrap();
    assert!(store.registry().await.unwrap().deleted.is_empty());
}

/// Every promise of a store, in an order in which later ones see what earlier ones left.
async fn conforms(store: &dyn Store) {
    records_come_back_as_they_were(store).await;
    ids_of_callers_are_written_once(store).await;
    ids_with_another_query_are_refused(store).await;
    pages_have_every_decision_once(store).await;
    changes_are_logged_or_refused(store).await;
    store.check().await.unwrap();
    store.close().await.unwrap();
    let ids = Ids::after(None);
    let closed = store.append(Arc::new(vec![record(&ids, None)])).await;
    assert!(matches!(closed, Err(StoreError::Unavailable(_))), "{closed:?}");
}

#[tokio::test]
async fn sqlite_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conforms(&SqliteStore::open(folder.path().join("s.db"), Settings::default()).unwrap()).await;
}

#[tokio::test]
async fn sqlite_conforms_with_small_journals_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new().segment_bytes(1).durable(true);
    conforms(&SqliteStore::open(folder.path().join("s.db"), settings).unwrap()).await;
}

#[tokio::test]
async fn postgres_conforms() {
    let Some(cluster) = postgres::shared() else { return };
    for is_durable in [false, true] {
        let database = cluster.database();
        let settings = Settings::new().durable(is_durable);
        let store = PostgresStore::open(&database.url.parse().unwrap(), settings).await.unwrap();
        conforms(&store).await;
    }
}

#[tokio::test]
async fn ids_of_callers_are_found_in_closed_archives() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new().segment_bytes(1 << 16);
    let store = SqliteStore::open(folder.path().join("s.db"), settings.clone()).unwrap();
    let ids = Ids::after(None);
    let count = || {
        std::fs::read_dir(folder.path().join("s.db-log"))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "db"))
            .count()
    };
    let mut written = Vec::new();
    while count() < 6 {
        let next: Vec<Record> = (0..20).map(|i| record(&ids, Some(&format!("{}-{i}", written.len())))).collect();
        append(&store, &next).await;
        written.extend(next);
        assert!(written.len() < 100_000, "archives are not closed");
    }
    let check = async |store: &SqliteStore| {
        for first in written.iter().step_by(37) {
            let again = Record { id: ids.next().0, ..first.clone() };
            let appended = append(store, &[again]).await;
            assert!(matches!(&appended[0], Appended::Existing(found) if same(found, first)), "{appended:?}");
            assert!(store.decision(first.id).await.unwrap().is_some());
        }
    };
    check(&store).await;
    store.close().await.unwrap();
    drop(store);
    let store = SqliteStore::open(folder.path().join("s.db"), settings).unwrap();
    check(&store).await;
    // What has expired is deleted file by file; the newest file stays.
    let before = count();
    store.prune(Some(Time(Time::now().0 + 60_000_000)), None).await.unwrap();
    assert!(count() < before);
    store.close().await.unwrap();
}

#[tokio::test]
async fn journals_of_large_inputs_are_replaced_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new().segment_bytes(1 << 20);
    let store = SqliteStore::open(folder.path().join("s.db"), settings).unwrap();
    let ids = Ids::after(None);
    let large = || Record { input: Some(format!("\"{}\"", "x".repeat(2 << 20))), ..record(&ids, None) };
    let sizes = || {
        let entries = std::fs::read_dir(folder.path().join("s.db-log")).unwrap().map(|entry| entry.unwrap());
        entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).collect::<Vec<_>>()
    };
    for _ in 0..12 {
        append(&store, &[large()]).await;
        // Time for the other thread, which makes the next file.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(sizes().iter().all(|size| *size < 16 << 20), "{:?}", sizes());
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn one_process_at_a_time_opens_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    let second = SqliteStore::open(&path, Settings::default()).unwrap_err().to_string();
    assert!(second.contains("in use by another process"), "{second}");
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_store_in_use_is_found_through_links() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("data")).unwrap();
    symlink(path("data"), path("linked")).unwrap();
    // The file of the first link is not there yet; a relative link is relative to its own folder.
    symlink("data/s.db", path("relative.db")).unwrap();
    symlink(path("relative.db"), path("chain.db")).unwrap();
    let store = SqliteStore::open(path("chain.db"), Settings::default()).unwrap();
    for name in ["data/s.db", "linked/s.db", "relative.db", "chain.db", "data/../data/s.db"] {
        let second = SqliteStore::open(path(name), Settings::default()).unwrap_err().to_string();
        assert!(second.contains("in use by another process") && second.contains(name), "{second}");
    }
    let ids = Ids::after(None);
    let written = record(&ids, None);
    append(&store, std::slice::from_ref(&written)).await;
    store.close().await.unwrap();
    drop(store);
    let copied = pointsman_server::store::sqlite::backup(path("relative.db"), path("copy")).unwrap();
    assert_eq!(copied.decisions, 1);
    for name in ["data/s.db", "copy/relative.db"] {
        let store = SqliteStore::open(path(name), Settings::default()).unwrap();
        assert!(store.decision(written.id).await.unwrap().is_some(), "{name}");
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_is_not_there_is_neither_read_nor_made() {
    use pointsman_server::store::StoreUrl;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    let mut urls: Vec<StoreUrl> = vec![format!("sqlite:{}", path.display()).parse().unwrap()];
    let database = postgres::shared().map(|cluster| cluster.database());
    urls.extend(database.iter().map(|database| database.url.parse::<StoreUrl>().unwrap()));
    for url in urls {
        let put = || Change::PutDeployment { name: "d".to_owned(), mode: None };
        assert!(!url.exists().await.unwrap());
        assert!(matches!(url.registry().await, Err(StoreError::Missing(_))), "{url}");
        assert!(matches!(url.change(put(), "tester").await, Err(StoreError::Missing(_))), "{url}");
        assert!(!url.exists().await.unwrap(), "{url}");
        url.make().await.unwrap();
        url.make().await.unwrap();
        assert!(url.exists().await.unwrap() && url.change(put(), "tester").await.unwrap().created);
        assert_eq!(url.registry().await.unwrap().deployments.len(), 1);
    }
}

#[tokio::test]
async fn a_full_queue_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new().queue_rows(4);
    let store = SqliteStore::open(folder.path().join("s.db"), settings).unwrap();
    let ids = Ids::after(None);
    let many: Vec<Record> = (0..5).map(|_| record(&ids, None)).collect();
    let full = store.append(Arc::new(many)).await;
    assert!(matches!(full, Err(StoreError::QueueFull { limit: 4 })), "{full:?}");
    append(&store, &[record(&ids, None)]).await;
    assert_eq!(store.waiting_rows(), 0);
    store.close().await.unwrap();
}
