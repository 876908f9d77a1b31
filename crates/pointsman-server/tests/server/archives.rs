//! Rows of finished log segments move into archives: none is lost, none is read twice, and files stay few.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pointsman_server::clock::Ids;
use pointsman_server::store::sqlite::{SqliteStore, backup};
use pointsman_server::store::{LogQuery, Settings, Store};
use uuid::Uuid;

use crate::conformance::{append, record};

/// The databases of the log: archives if `is_archive`, otherwise segments.
fn files(store: &Path, is_archive: bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.with_extension("db-log")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.filter(|path| name(path).ends_with(".db") && name(path).contains("-archive") == is_archive).collect()
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
async fn read_all(store: &dyn Store, ids: &Ids) -> Vec<Uuid> {
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

#[tokio::test]
async fn decisions_are_read_once_while_they_move() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path, Settings::new().segment_bytes(1 << 16)).unwrap();
    let (ids, mut written) = (Ids::after(None), Vec::new());
    for round in 1..=5 {
        append_until(&store, &ids, &mut written, || files(&path, true).len() >= round).await;
        assert_eq!(read_all(&store, &ids).await, written, "round {round}");
        for id in written.iter().step_by(17) {
            assert!(store.decision(*id).await.unwrap().is_some(), "round {round}");
        }
    }
    store.close().await.unwrap();
    // The one that is written, and the one that comes next.
    assert!(files(&path, false).len() <= 2, "{:?}", files(&path, false));
    let rows_per_archive = written.len() / files(&path, true).len();
    assert!(rows_per_archive > 100, "archives of {rows_per_archive} rows are too small");
    drop(store);
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    assert_eq!(read_all(&store, &ids).await, written);
    store.close().await.unwrap();
}

/// As if the process had ended after the rows were copied and before the segment was deleted.
#[tokio::test]
async fn a_segment_that_was_copied_and_not_deleted_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (ids, mut written) = (Ids::after(None), Vec::new());
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    let rows: Vec<_> = (0..50).map(|i| record(&ids, Some(&i.to_string()))).collect();
    append(&store, &rows).await;
    written.extend(rows.iter().map(|row| row.id));
    store.close().await.unwrap();
    drop(store);
    let first = files(&path, false).into_iter().min().unwrap();
    let bytes = std::fs::read(&first).unwrap();
    let store = SqliteStore::open(&path, Settings::new().segment_bytes(1)).unwrap();
    append_until(&store, &ids, &mut written, || !first.exists()).await;
    store.close().await.unwrap();
    drop(store);
    std::fs::write(&first, bytes).unwrap();
    // What is left if deleting is interrupted.
    let remains = path.with_extension("db-log").join("00000000.db-wal");
    std::fs::write(&remains, "rows").unwrap();
    let copied = backup(&path, folder.path().join("copy")).unwrap();
    assert_eq!(copied.decisions, written.len() as u64);
    let store = SqliteStore::open(&path, Settings::default()).unwrap();
    assert_eq!(read_all(&store, &ids).await, written);
    store.close().await.unwrap();
    assert!(!first.exists() && !remains.exists());
    let restored = SqliteStore::open(folder.path().join("copy/s.db"), Settings::default()).unwrap();
    let found: HashSet<Uuid> = read_all(&restored, &ids).await.into_iter().collect();
    assert_eq!(found, written.iter().copied().collect());
    restored.close().await.unwrap();
}
