//! What has expired is deleted from the disk, wherever it was, and does not come back; meanwhile the service goes on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointsman_server::clock::{Ids, Time};
use pointsman_server::config::ConfigSource;
use pointsman_server::store::sqlite::{SqliteStore, change_at};
use pointsman_server::store::{Change, Record, Settings, Store};
use pointsman_server::{App, serve};
use rusqlite::Connection;
use uuid::Uuid;

use crate::archives::{count, files, read_all, wait_until, with_locked_archive};
use crate::conformance::{append, record};

const DAY_MICROS: i64 = 86_400_000_000;

/// What inputs have, and nothing else.
const TEXT: &[u8] = b"an input that expires";

/// Decisions of the day before yesterday, a millisecond apart, with inputs.
fn old_records(ids: &Ids, count: i64) -> Vec<Record> {
    let first = Time::now().0 - 2 * DAY_MICROS;
    let make = |i: i64| {
        let at = Time(first + 1000 * i);
        let input = format!("\"{} {}\"", String::from_utf8_lossy(TEXT), "x".repeat(200));
        Record { id: at.first_id(), at, input: Some(input), ..record(ids, Some(&format!("old {i}"))) }
    };
    (0..count).map(make).collect()
}

/// The files of the log that have the text of inputs.
fn files_with_inputs(store: &Path) -> Vec<PathBuf> {
    let has_text = |path: &PathBuf| {
        // A journal may be deleted meanwhile.
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(TEXT.len()).any(|some| some == TEXT)
    };
    let entries = std::fs::read_dir(store.with_extension("db-log")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(has_text).collect()
}

/// Whether an archive takes no more rows.
fn is_closed(archive: &Path) -> bool {
    count(archive, "closed") == 1
}

fn yesterday() -> Option<Time> {
    Some(Time(Time::now().0 - DAY_MICROS))
}

/// A store with decisions of a day that is over, in a closed archive and nowhere else.
async fn with_old_archive(path: &Path, records: &[Record]) -> SqliteStore {
    let store = SqliteStore::open(path, Settings::default()).unwrap();
    append(&store, records).await;
    wait_until("closing the archive", || files(path, "db").first().is_some_and(|file| is_closed(file)));
    let in_journals = || files_with_inputs(path).iter().any(|file| file.extension().is_some_and(|e| e == "journal"));
    wait_until("deleting the journal", || !in_journals());
    store
}

#[tokio::test]
async fn expired_inputs_leave_the_disk_while_nothing_happens() {
    for count in [1, 200] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let ids = Ids::after(None);
        let records = old_records(&ids, count);
        let store = with_old_archive(&path, &records).await;
        assert!(!files_with_inputs(&path).is_empty());
        store.prune(None, yesterday()).await.unwrap();
        assert_eq!(files_with_inputs(&path), [] as [PathBuf; 0], "{count} inputs");
        let decision = store.decision(records[0].id).await.unwrap().unwrap();
        assert_eq!((decision.id, decision.input), (records[0].id, None));
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_deletion_of_inputs_that_was_interrupted_is_finished_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let store = with_old_archive(&path, &old_records(&ids, 200)).await;
    // As if the process had ended after the rows were deleted.
    let other = Connection::open(&files(&path, "db")[0]).unwrap();
    other.execute("DELETE FROM inputs", []).unwrap();
    assert!(!files_with_inputs(&path).is_empty());
    // A reader that still needs them.
    other.execute_batch("BEGIN; SELECT count(*) FROM decisions").unwrap();
    let refused = store.prune(None, yesterday()).await.unwrap_err().to_string();
    assert!(refused.contains("00000001.db is being read"), "{refused}");
    assert!(!files_with_inputs(&path).is_empty());
    other.execute_batch("COMMIT").unwrap();
    store.prune(None, yesterday()).await.unwrap();
    assert_eq!(files_with_inputs(&path), [] as [PathBuf; 0]);
    store.close().await.unwrap();
}

/// The number of a file of the log.
fn number(file: &Path) -> u64 {
    file.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn expired_decisions_do_not_come_back_from_a_journal_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let (store, lock) = with_locked_archive(&path, &ids).await;
    append(&store, &old_records(&ids, 5)).await;
    let left: Vec<(PathBuf, Vec<u8>)> =
        files(&path, "journal").into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
    drop(lock);
    let first = files(&path, "db")[0].clone();
    wait_until("closing the archive", || is_closed(&first));
    // The archive that follows notes which journals are archived; before, the first one is kept.
    while first.exists() {
        store.prune(Some(Time(Time::now().0 + 60_000_000)), None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(read_all(&store, &ids).await, [] as [Uuid; 0]);
    store.close().await.unwrap();
    drop(store);
    for (file, bytes) in &left {
        std::fs::write(file, bytes).unwrap();
    }
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    assert_eq!(read_all(&store, &ids).await, [] as [Uuid; 0]);
    let last = record(&ids, None);
    append(&store, std::slice::from_ref(&last)).await;
    wait_until("archiving", || files(&path, "db").iter().any(|file| count(file, "decisions") == 1));
    assert_eq!(read_all(&store, &ids).await, [last.id]);
    assert!(number(&files(&path, "db")[0]) > number(&first), "the number of an archive was used again");
    store.close().await.unwrap();
}

#[tokio::test]
async fn an_archive_that_cannot_be_read_stops_neither_deletion_nor_archiving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let old = old_records(&ids, 3);
    let store = with_old_archive(&path, &old[..1]).await;
    let first = files(&path, "db")[0].clone();
    Connection::open(&first).unwrap().execute("DROP TABLE journal", []).unwrap();
    append(&store, &old[1..]).await;
    let has_rows = |file: &&PathBuf, rows: i64| count(file, "decisions") == rows;
    let closed = |rows: i64| files(&path, "db").iter().any(|file| has_rows(&file, rows) && is_closed(file));
    wait_until("closing the next archive", || closed(2));
    let last = record(&ids, None);
    append(&store, std::slice::from_ref(&last)).await;
    wait_until("archiving", || files(&path, "db").last().is_some_and(|file| has_rows(&file, 1) && *file != first));
    let refused = store.prune(None, yesterday()).await.unwrap_err().to_string();
    assert!(refused.contains("journal"), "{refused}");
    wait_until("deleting the journals", || {
        files_with_inputs(&path).iter().all(|file| file.extension().is_some_and(|e| e == "db"))
    });
    assert_eq!(files_with_inputs(&path), [] as [PathBuf; 0]);
    let _ = store.prune(yesterday(), None).await.unwrap_err();
    assert!(!closed(2), "an expired archive stays");
    assert_eq!(count(&first, "decisions"), 1);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed_while_what_has_expired_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let store = with_old_archive(&path, &old_records(&ids, 1)).await;
    store.close().await.unwrap();
    drop(store);
    // Deleting waits five seconds for this connection.
    let lock = Connection::open(&files(&path, "db")[0]).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let configuration = folder.path().join("p.toml");
    std::fs::write(&configuration, "[retention]\ninputs = \"1d\"\n").unwrap();
    let source = ConfigSource::new(Some(configuration));
    let source = source.store(Some(format!("sqlite:{}", path.display()))).listen(Some(([127, 0, 0, 1], 0).into()));
    let (sender, app) = tokio::sync::oneshot::channel();
    let started = move |app: &Arc<App>, _: SocketAddr| drop(sender.send(Arc::clone(app)));
    let service = tokio::spawn(serve(source.load().unwrap(), source, started));
    let app = app.await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    change_at(&path, Change::PutDeployment { name: "new".to_owned(), mode: None }, "tester").unwrap();
    let is_followed = async {
        while app.deployments.find("new").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(4), is_followed).await.expect("the change is not followed");
    assert!(!files_with_inputs(&path).is_empty(), "the input was deleted although the archive was locked");
    drop(lock);
    service.abort();
}
