//! Decisions move from journals into archives: none is lost, none is read twice, and files stay few.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_server::clock::{Ids, Time};
use pointsman_server::store::sqlite::{SqliteStore, backup};
use pointsman_server::store::{Appended, LogQuery, Record, Settings, Store, StoreError, VersionAction};
use rusqlite::Connection;
use uuid::Uuid;

use crate::conformance::{append, record};

/// The files of the log with this extension, oldest first.
pub(crate) fn files(store: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.with_extension("db-log")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

#[track_caller]
pub(crate) fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Commits rows until this holds.
async fn append_until(store: &SqliteStore, ids: &Ids, written: &mut Vec<Uuid>, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() {
        let rows: Vec<_> = (0..20).map(|i| record(ids, Some(&format!("{}-{i}", written.len())))).collect();
        append(store, &rows).await;
        written.extend(rows.iter().map(|row| row.id));
        assert!(start.elapsed() < Duration::from_secs(60), "it takes too long");
    }
}

/// The ids of all decisions, read page by page.
pub(crate) async fn read_all(store: &dyn Store, ids: &Ids) -> Vec<Uuid> {
    let mut all = Vec::new();
    loop {
        let mut query = LogQuery::all(record(ids, None).deployment, 70);
        query.after = all.last().copied();
        let page = store.decisions(query).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.iter().map(|record| record.id));
    }
}

/// Fails if more than five files per archive are open, and a few more of the newest one, which the log writes and looks ids up in.
#[cfg(target_os = "linux")]
#[track_caller]
fn assert_open_files(store: &Path) {
    let folder = store.with_extension("db-log").canonicalize().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.unwrap().path().read_link().ok());
    let of_archives = open.filter(|file| file.starts_with(&folder) && !file.to_string_lossy().contains("journal"));
    let (open, archives) = (of_archives.count(), files(store, "db").len());
    assert!(open <= 5 * archives + 8, "{open} files of {archives} archives are open");
}

#[tokio::test]
async fn decisions_are_read_once_while_they_move() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path, Settings::new().segment_bytes(1 << 16)).unwrap();
    let (ids, mut written) = (Ids::after(None), Vec::new());
    for round in 2..=6 {
        append_until(&store, &ids, &mut written, || files(&path, "db").len() >= round).await;
        assert_eq!(read_all(&store, &ids).await, written, "round {round}");
        for id in written.iter().step_by(17) {
            assert!(store.decision(*id).await.unwrap().is_some(), "round {round}");
        }
    }
    #[cfg(target_os = "linux")]
    assert_open_files(&path);
    store.close().await.unwrap();
    assert!(files(&path, "journal").is_empty(), "{:?}", files(&path, "journal"));
    let rows_per_archive = written.len() / files(&path, "db").len();
    assert!(rows_per_archive > 100, "archives of {rows_per_archive} rows are too small");
    drop(store);
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    assert_eq!(read_all(&store, &ids).await, written);
    assert_eq!(store.largest_id().await.unwrap(), written.last().copied());
    store.close().await.unwrap();
}

/// A store whose decisions stay in journals as long as the connection lives.
pub(crate) async fn with_locked_archive(path: &Path, ids: &Ids) -> (SqliteStore, Connection) {
    let store = SqliteStore::open(path, Settings::default()).unwrap();
    append(&store, &[record(ids, Some("before"))]).await;
    wait_until("the first archive", || files(path, "db").first().is_some_and(|file| rows(file) == 1));
    let connection = Connection::open(&files(path, "db")[0]).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    (store, connection)
}

/// The rows in a table of an archive; none while it is being made.
pub(crate) fn count(archive: &Path, table: &str) -> i64 {
    let connection = Connection::open(archive).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap_or(0)
}

/// The decisions in an archive.
fn rows(archive: &Path) -> i64 {
    count(archive, "decisions")
}

#[tokio::test]
async fn pages_and_ids_are_the_same_before_and_after_decisions_are_archived() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let (store, lock) = with_locked_archive(&path, &ids).await;
    let make = |i: u32| {
        let mut record = Record { version: 1 + i % 2, ..record(&ids, Some(&i.to_string())) };
        record.outcome.cell = i % 3;
        record.outcome.action = (i % 7) as u8;
        record.input = i.is_multiple_of(3).then(|| format!("\"{}\"", "x".repeat(20_000)));
        record.tags = (!i.is_multiple_of(4)).then(|| format!(r#"{{"part":"{}","quote\"d":"x"}}"#, i % 5));
        record
    };
    let records: Vec<Record> = (0..300).map(make).collect();
    for part in records.chunks(40) {
        append(&store, part).await;
    }
    let deployment = records[0].deployment;
    let all = || LogQuery::all(deployment, 25);
    let mut queries = vec![all(), LogQuery::all(deployment, 1000)];
    let mut add = |change: &dyn Fn(&mut LogQuery)| {
        let mut query = all();
        change(&mut query);
        queries.push(query);
    };
    add(&|query| query.version = Some(2));
    add(&|query| query.cell = Some(1));
    add(&|query| query.tag = Some(("part".to_owned(), "4".to_owned())));
    add(&|query| query.tag = Some((r#"quote"d"#.to_owned(), "x".to_owned())));
    add(&|query| query.tag = Some(("none".to_owned(), "x".to_owned())));
    add(&|query| query.actions = Some(vec![VersionAction { version: 1, action: 4 }]));
    add(&|query| query.actions = Some(Vec::new()));
    add(&|query| query.after = Some(records[120].id));
    add(&|query| query.before = Some(records[10].id));
    add(&|query| query.from = Some(Time(records[0].at.0)));
    add(&|query| query.to = Some(Time(0)));
    add(&|query| query.with_inputs = false);
    add(&|query| query.max_bytes = 5 * records[0].bytes());
    // Inputs that are not read do not end a page.
    add(&|query| (query.with_inputs, query.max_bytes) = (false, 5 * records[0].bytes()));
    let read = async || {
        let mut pages = Vec::new();
        for query in &queries {
            pages.push(format!("{:?}", store.decisions(query.clone()).await.unwrap()));
        }
        for record in records.iter().step_by(50) {
            pages.push(format!("{:?}", store.decision(record.id).await.unwrap().unwrap()));
            let again = append(&store, &[Record { id: ids.next().0, ..record.clone() }]).await;
            assert!(matches!(&again[0], Appended::Existing(_)), "{again:?}");
            pages.push(format!("{again:?}"));
        }
        pages
    };
    let in_journals = read().await;
    assert_eq!(rows(&files(&path, "db")[0]), 1, "the archive has taken rows while it was locked");
    drop(lock);
    wait_until("archiving", || rows(&files(&path, "db")[0]) == records.len() as i64 + 1);
    let in_archives = read().await;
    for (journal, archive) in in_journals.iter().zip(&in_archives) {
        assert_eq!(journal, archive);
    }
    store.close().await.unwrap();
}

/// As if the process had ended after decisions were archived and before the journal was deleted; and before they were archived.
#[tokio::test]
async fn journals_that_are_left_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (ids, mut written) = (Ids::after(None), Vec::new());
    let (store, lock) = with_locked_archive(&path, &ids).await;
    written.extend(read_all(&store, &ids).await);
    let rows: Vec<_> = (0..50).map(|i| record(&ids, Some(&format!("more {i}")))).collect();
    append(&store, &rows).await;
    written.extend(rows.iter().map(|row| row.id));
    let copied = backup(&path, folder.path().join("early")).unwrap();
    assert_eq!(copied.decisions, written.len() as u64);
    // The journal that comes next is empty.
    assert_eq!(copied.files, 2);
    let copies = ["db", "journal"].map(|extension| files(&folder.path().join("early/s.db"), extension).len());
    assert_eq!(copies, [1, 1]);
    let left: Vec<(PathBuf, Vec<u8>)> =
        files(&path, "journal").into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
    drop(lock);
    store.close().await.unwrap();
    drop(store);
    assert!(files(&path, "journal").is_empty());
    for (file, bytes) in &left {
        std::fs::write(file, bytes).unwrap();
    }
    // What is left if deleting a database is interrupted.
    let remains = path.with_extension("db-log").join("00000000.db-wal");
    std::fs::write(&remains, "rows").unwrap();
    let copied = backup(&path, folder.path().join("late")).unwrap();
    assert_eq!(copied.decisions, written.len() as u64);
    for store in [path.clone(), folder.path().join("early/s.db"), folder.path().join("late/s.db")] {
        let log = store.clone();
        let store = SqliteStore::open(&store, Settings::default()).unwrap();
        assert_eq!(read_all(&store, &ids).await, written, "{}", log.display());
        assert_eq!(store.largest_id().await.unwrap(), written.last().copied());
        let again = append(&store, &[Record { id: ids.next().0, ..rows[7].clone() }]).await;
        assert!(matches!(&again[0], Appended::Existing(first) if first.id == rows[7].id), "{again:?}");
        store.close().await.unwrap();
        assert!(files(&log, "journal").is_empty());
    }
    assert!(!remains.exists());
}

#[tokio::test]
async fn commits_wait_for_an_archive_that_is_locked_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let (store, lock) = with_locked_archive(&path, &ids).await;
    store.close().await.unwrap();
    drop((store, lock));
    let store = SqliteStore::open(&path, Settings::new().segment_bytes(1 << 14)).unwrap();
    let lock = Connection::open(&files(&path, "db")[0]).unwrap();
    lock.busy_timeout(Duration::from_secs(30)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut written = read_all(&store, &ids).await;
    let refused = loop {
        let row = record(&ids, None);
        match store.append(std::sync::Arc::new(vec![row.clone()])).await {
            Ok(_) => written.push(row.id),
            Err(refused) => break refused.to_string(),
        }
        assert!(written.len() < 10_000, "the journals grow without end");
    };
    assert!(refused.contains("wait to be archived"), "{refused}");
    check_until(&store, |checked| checked.is_err_and(|error| error.to_string().contains("database is locked"))).await;
    assert_eq!(read_all(&store, &ids).await, written);
    drop(lock);
    check_until(&store, |checked| checked.is_ok()).await;
    append_until(&store, &ids, &mut written, {
        let end = Instant::now() + Duration::from_millis(200);
        move || Instant::now() > end
    })
    .await;
    assert_eq!(read_all(&store, &ids).await, written);
    store.close().await.unwrap();
}

/// Asks whether decisions can be committed until the answer is this one.
async fn check_until(store: &SqliteStore, is_wanted: impl Fn(Result<(), StoreError>) -> bool) {
    let start = Instant::now();
    while !is_wanted(store.check().await) {
        assert!(start.elapsed() < Duration::from_secs(30), "it takes too long");
    }
}

#[tokio::test]
async fn a_damaged_journal_is_read_up_to_the_damage_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let (store, lock) = with_locked_archive(&path, &ids).await;
    let journal = files(&path, "journal")[0].clone();
    let mut written = read_all(&store, &ids).await;
    let mut ends = Vec::new();
    for i in 0..5 {
        let row = record(&ids, Some(&format!("row {i}")));
        append(&store, std::slice::from_ref(&row)).await;
        written.push(row.id);
        ends.push(std::fs::metadata(&journal).unwrap().len());
    }
    let mut bytes = std::fs::read(&journal).unwrap();
    drop(lock);
    store.close().await.unwrap();
    // The third of the five rows; the first decision of all is before them.
    bytes[ends[1] as usize + 30] ^= 0x55;
    let damaged = folder.path().join("d.db");
    std::fs::create_dir(damaged.with_extension("db-log")).unwrap();
    std::fs::write(damaged.with_extension("db-log").join(journal.file_name().unwrap()), &bytes).unwrap();
    for _ in 0..2 {
        let store = SqliteStore::open(&damaged, Settings::default()).unwrap();
        // At once: if this process is killed, the next one may find all of the journal archived, and delete it unread.
        let kept = &files(&damaged, "damaged")[0];
        assert_eq!((kept.file_stem(), std::fs::read(kept).unwrap()), (journal.file_stem(), bytes.clone()));
        assert_eq!(read_all(&store, &ids).await, written[..3]);
        wait_until("deleting the journal", || {
            !files(&damaged, "journal").iter().any(|file| file.file_stem() == journal.file_stem())
        });
        assert_eq!(files(&damaged, "damaged").len(), 1);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn ids_are_found_in_an_archive_that_was_noted_as_closed_too_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let ids = Ids::after(None);
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    append(&store, &[record(&ids, Some("first"))]).await;
    wait_until("archiving", || files(&path, "db").first().is_some_and(|file| rows(file) == 1));
    // As if the note had been written and closing had failed afterwards: no id is noted.
    let first = files(&path, "db")[0].clone();
    Connection::open(&first).unwrap().execute("INSERT INTO closed VALUES (NULL)", []).unwrap();
    let second = record(&ids, Some("second"));
    append(&store, std::slice::from_ref(&second)).await;
    wait_until("archiving", || rows(&first) == 2);
    store.close().await.unwrap();
    drop(store);
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    append(&store, &[record(&ids, Some("third"))]).await;
    let total = || files(&path, "db").iter().map(|file| rows(file)).sum::<i64>();
    wait_until("archiving", || total() == 3);
    let again = append(&store, &[Record { id: ids.next().0, ..second.clone() }]).await;
    assert!(matches!(&again[0], Appended::Existing(found) if found.id == second.id), "{again:?}");
    store.close().await.unwrap();
}
