//! Decisions as rows of the log.

use pointsman::policy::Reason;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use uuid::Uuid;

use super::super::codes::{SUPPORTS, bytes, place, reals};
use super::super::record::ClientId;
use super::super::{Degradation, DeploymentId, Outcome, Record, StoreError};
use crate::clock::Time;

/// Commits decisions in one statement, and so in one transaction and one round trip. Its result is the decisions whose caller's id is new.
///
/// Where the id of a caller is taken, also by a replica that commits at the same time, nothing is written. Ids are taken in their order,
/// so that replicas wait for each other, but never in a circle.
pub(super) const APPEND: &str = "
WITH asked AS (
    SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::text[], $7::text[], $8::bytea[], $9::bytea[],
        $10::int2[], $11::int2[], $12::int2[], $13::int2[], $14::int8[], $15::int8[], $16::int8[], $17::int2[], $18::float8[],
        $19::float8[], $20::bytea[], $21::float8[], $22::int2[], $23::text[])
    AS rows (id, at, deployment, version, key, client_id, tags, prediction, features, action, would, wanted, degraded, label, act, cell,
        support, irreducible, reducible, costs, margin, reason, input)
), taken AS (
    INSERT INTO pointsman.client_ids (deployment, key, client_id, decision)
    SELECT deployment, key, client_id, id FROM asked WHERE client_id IS NOT NULL ORDER BY deployment, key, client_id, id
    ON CONFLICT DO NOTHING RETURNING decision
), new AS MATERIALIZED (
    SELECT * FROM asked WHERE client_id IS NULL OR id IN (SELECT decision FROM taken)
), logged AS (
    INSERT INTO pointsman.decisions SELECT id, at, deployment, version, key, client_id, tags, prediction, features, action, would, wanted,
        degraded, label, act, cell, support, irreducible, reducible, costs, margin, reason FROM new
), kept AS (
    INSERT INTO pointsman.inputs SELECT id, input FROM new WHERE input IS NOT NULL
)
SELECT decision FROM taken";

/// The columns that [`read`] expects, in its order, but for the last one.
macro_rules! columns {
    () => {
        "SELECT decisions.id, at, decisions.deployment, version, decisions.key, decisions.client_id, tags, prediction, features, action, \
         would, wanted, degraded, label, act, cell, support, irreducible, reducible, costs, margin, reason"
    };
}

/// Decisions, without a condition.
pub(super) const SELECT: &str = concat!(
    columns!(),
    ", inputs.input FROM pointsman.decisions LEFT JOIN pointsman.inputs ON inputs.id = decisions.id"
);

/// The same without their inputs.
pub(super) const SELECT_WITHOUT_INPUTS: &str = concat!(columns!(), ", NULL FROM pointsman.decisions");

/// The first decisions on ids of callers.
pub(super) const FIND_CLIENT_IDS: &str = concat!(
    columns!(),
    ", inputs.input FROM unnest($1::int8[], $2::int8[], $3::text[]) AS asked (deployment, key, client_id)
     JOIN pointsman.client_ids USING (deployment, key, client_id)
     JOIN pointsman.decisions ON decisions.id = client_ids.decision
     LEFT JOIN pointsman.inputs ON inputs.id = client_ids.decision"
);

/// Records as one list per column.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    id: Vec<Uuid>,
    at: Vec<i64>,
    deployment: Vec<i64>,
    version: Vec<i64>,
    key: Vec<i64>,
    client_id: Vec<Option<&'a str>>,
    tags: Vec<Option<&'a str>>,
    prediction: Vec<Vec<u8>>,
    features: Vec<Vec<u8>>,
    action: Vec<i16>,
    would: Vec<Option<i16>>,
    wanted: Vec<Option<i16>>,
    degraded: Vec<Option<i16>>,
    label: Vec<i64>,
    act: Vec<Option<i64>>,
    cell: Vec<i64>,
    support: Vec<i16>,
    irreducible: Vec<Option<f64>>,
    reducible: Vec<Option<f64>>,
    costs: Vec<Vec<u8>>,
    margin: Vec<f64>,
    reason: Vec<i16>,
    input: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(records: &[&'a Record]) -> Self {
        let mut columns = Self::default();
        for record in records {
            columns.push(record);
        }
        columns
    }

    fn push(&mut self, record: &'a Record) {
        let Record { id, at, deployment, version, key, client_id, tags, input, prediction, features, outcome } = record;
        self.id.push(*id);
        self.at.push(at.0);
        self.deployment.push(deployment.0);
        self.version.push(i64::from(*version));
        self.key.push(*key);
        self.client_id.push(client_id.as_deref());
        self.tags.push(tags.as_deref());
        self.prediction.push(bytes(prediction));
        self.features.push(bytes(features));
        self.action.push(i16::from(outcome.action));
        self.would.push(outcome.would.map(i16::from));
        self.wanted.push(outcome.degraded.map(|(wanted, _)| i16::from(wanted)));
        self.degraded.push(outcome.degraded.map(|(_, why)| i16::from(place(&Degradation::ALL, &why))));
        self.label.push(i64::from(outcome.label));
        self.act.push(outcome.act.map(i64::from));
        self.cell.push(i64::from(outcome.cell));
        self.support.push(i16::from(place(&SUPPORTS, &outcome.support)));
        self.irreducible.push(outcome.irreducible);
        self.reducible.push(outcome.reducible);
        self.costs.push(bytes(&outcome.costs));
        self.margin.push(outcome.margin);
        self.reason.push(i16::from(place(&Reason::ALL, &outcome.reason)));
        self.input.push(input.as_deref());
    }

    /// The parameters of [`APPEND`].
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 23] {
        [
            &self.id,
            &self.at,
            &self.deployment,
            &self.version,
            &self.key,
            &self.client_id,
            &self.tags,
            &self.prediction,
            &self.features,
            &self.action,
            &self.would,
            &self.wanted,
            &self.degraded,
            &self.label,
            &self.act,
            &self.cell,
            &self.support,
            &self.irreducible,
            &self.reducible,
            &self.costs,
            &self.margin,
            &self.reason,
            &self.input,
        ]
    }
}

/// Ids of callers as one list per column, the parameters of [`FIND_CLIENT_IDS`].
pub(super) fn client_id_columns<'a>(ids: &[ClientId<'a>]) -> (Vec<i64>, Vec<i64>, Vec<&'a str>) {
    let deployments = ids.iter().map(|id| id.deployment).collect();
    (deployments, ids.iter().map(|id| id.key).collect(), ids.iter().map(|id| id.id).collect())
}

/// Reads the record of a row of [`SELECT`].
pub(super) fn read(row: &Row) -> Result<Record, StoreError> {
    let degraded = match (get::<Option<i16>>(row, 11)?, get::<Option<i16>>(row, 12)?) {
        (Some(wanted), Some(why)) => Some((narrow(wanted, 11)?, pick(&Degradation::ALL, why, 12)?)),
        _ => None,
    };
    let outcome = Outcome {
        action: narrow(get::<i16>(row, 9)?, 9)?,
        would: get::<Option<i16>>(row, 10)?.map(|code| narrow(code, 10)).transpose()?,
        degraded,
        label: narrow(get::<i64>(row, 13)?, 13)?,
        act: get::<Option<i64>>(row, 14)?.map(|act| narrow(act, 14)).transpose()?,
        cell: narrow(get::<i64>(row, 15)?, 15)?,
        support: pick(&SUPPORTS, get(row, 16)?, 16)?,
        irreducible: get(row, 17)?,
        reducible: get(row, 18)?,
        costs: reals(get(row, 19)?),
        margin: get(row, 20)?,
        reason: pick(&Reason::ALL, get(row, 21)?, 21)?,
    };
    Ok(Record {
        id: get(row, 0)?,
        at: Time(get(row, 1)?),
        deployment: DeploymentId(get(row, 2)?),
        version: narrow(get::<i64>(row, 3)?, 3)?,
        key: get(row, 4)?,
        client_id: get(row, 5)?,
        tags: get(row, 6)?,
        input: get(row, 22)?,
        prediction: reals(get(row, 7)?),
        features: reals(get(row, 8)?),
        outcome,
    })
}

/// A value of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Damaged(format!("a row of the database: {error}")))
}

/// A number that was stored in a wider type.
fn narrow<W: Copy + std::fmt::Display, N: TryFrom<W>>(number: W, column: usize) -> Result<N, StoreError> {
    N::try_from(number).map_err(|_| impossible(number, column))
}

fn pick<T: Copy>(all: &[T], code: i16, column: usize) -> Result<T, StoreError> {
    let place = usize::try_from(code).ok();
    place.and_then(|place| all.get(place)).copied().ok_or_else(|| impossible(code, column))
}

fn impossible(value: impl std::fmt::Display, column: usize) -> StoreError {
    StoreError::Damaged(format!("a decision has {value} in column {column}, which cannot be"))
}
