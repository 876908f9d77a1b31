//! Decisions as rows of an archive.

use pointsman::policy::Reason;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::super::codes::{self, SUPPORTS, bytes, place};
use super::super::{Degradation, DeploymentId, Outcome, Record};
use crate::clock::{Time, stamp};

/// The tables of an archive.
///
/// Ids are ordered by their time stamps, so that rows are appended at the end of the one tree that holds them. Callers' ids are unique
/// because they are looked up before decisions are committed.
pub(super) const SCHEMA: &str = "
CREATE TABLE decisions (
    stamp INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    deployment INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key INTEGER NOT NULL,
    client_id TEXT,
    tags TEXT,
    prediction BLOB NOT NULL,
    features BLOB NOT NULL,
    action INTEGER NOT NULL,
    would INTEGER,
    wanted INTEGER,
    degraded INTEGER,
    label INTEGER NOT NULL,
    act INTEGER,
    cell INTEGER NOT NULL,
    support INTEGER NOT NULL,
    irreducible REAL,
    reducible REAL,
    costs BLOB NOT NULL,
    margin BLOB NOT NULL,
    reason INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_by_client_id ON decisions (deployment, key, client_id) WHERE client_id IS NOT NULL;
CREATE TABLE inputs (stamp INTEGER PRIMARY KEY, input TEXT NOT NULL) STRICT;
CREATE TABLE closed (ids BLOB) STRICT;
CREATE TABLE journal (number INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
";

/// The columns that [`read`] expects, in its order, but for the last one.
const COLUMNS: &str = "id, at, deployment, version, key, client_id, tags, prediction, features, action, would, wanted, \
     degraded, label, act, cell, support, irreducible, reducible, costs, margin, reason";

/// The beginning of a statement whose rows [`read`] reads, with or without inputs. A condition comes next.
pub(super) fn select(with_inputs: bool) -> String {
    match with_inputs {
        true => {
            format!("SELECT {COLUMNS}, inputs.input FROM decisions LEFT JOIN inputs ON inputs.stamp = decisions.stamp")
        }
        false => format!("SELECT {COLUMNS}, NULL FROM decisions"),
    }
}

const INSERT: &str = "INSERT INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
     ?19, ?20, ?21, ?22, ?23)";

/// Writes a record, within a transaction.
pub(super) fn insert(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    let Record { id, at, deployment, version, key, client_id, tags, input, prediction, features, outcome } = record;
    let mut statement = connection.prepare_cached(INSERT)?;
    let stamp = stamp(*id) as i64;
    statement.execute(params![
        stamp,
        id.as_bytes(),
        at.0,
        deployment.0,
        version,
        key,
        client_id,
        tags,
        bytes(prediction),
        bytes(features),
        outcome.action,
        outcome.would,
        outcome.degraded.map(|(wanted, _)| wanted),
        outcome.degraded.map(|(_, why)| place(&Degradation::ALL, &why)),
        outcome.label,
        outcome.act,
        outcome.cell,
        place(&SUPPORTS, &outcome.support),
        outcome.irreducible,
        outcome.reducible,
        bytes(&outcome.costs),
        outcome.margin.to_le_bytes(),
        place(&Reason::ALL, &outcome.reason),
    ])?;
    if let Some(input) = input {
        connection.prepare_cached("INSERT INTO inputs VALUES (?1, ?2)")?.execute(params![stamp, input])?;
    }
    Ok(())
}

/// Reads the record of a row of [`select`].
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Record> {
    let degraded = match (row.get(11)?, row.get::<_, Option<u8>>(12)?) {
        (Some(wanted), Some(why)) => Some((wanted, pick(&Degradation::ALL, why, 12)?)),
        _ => None,
    };
    let outcome = Outcome {
        action: row.get(9)?,
        would: row.get(10)?,
        degraded,
        label: row.get(13)?,
        act: row.get(14)?,
        cell: row.get(15)?,
        support: pick(&SUPPORTS, row.get(16)?, 16)?,
        irreducible: row.get(17)?,
        reducible: row.get(18)?,
        costs: reals(row, 19)?,
        margin: reals(row, 20)?.first().copied().unwrap_or(f64::NAN),
        reason: pick(&Reason::ALL, row.get(21)?, 21)?,
    };
    Ok(Record {
        id: Uuid::from_bytes(row.get(0)?),
        at: Time(row.get(1)?),
        deployment: DeploymentId(row.get(2)?),
        version: row.get(3)?,
        key: row.get(4)?,
        client_id: row.get(5)?,
        tags: row.get(6)?,
        input: row.get(22)?,
        prediction: reals(row, 7)?,
        features: reals(row, 8)?,
        outcome,
    })
}

fn reals(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<f64>> {
    let value = row.get_ref(column)?;
    let bytes = value
        .as_blob()
        .map_err(|_| rusqlite::Error::InvalidColumnType(column, "numbers".to_owned(), value.data_type()))?;
    Ok(codes::reals(bytes))
}

fn pick<T: Copy>(all: &[T], place: u8, column: usize) -> rusqlite::Result<T> {
    all.get(usize::from(place)).copied().ok_or(rusqlite::Error::IntegralValueOutOfRange(column, i64::from(place)))
}
