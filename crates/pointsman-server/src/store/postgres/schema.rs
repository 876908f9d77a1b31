//! The tables, their migrations, and the partitions of the log: one per day.

use std::collections::BTreeSet;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};
use uuid::Uuid;

use super::super::StoreError;
use super::connection::unavailable;
use crate::clock::Time;

/// The lock that is held while tables are made, so that replicas do it one after the other.
const MAKE_LOCK: i64 = 0x706f_696e_7473_0001;

/// The lock that is held while tables are dropped, so that one replica does it.
const DROP_LOCK: i64 = 0x706f_696e_7473_0002;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// How the tables of each version are made from those of the one before.
///
/// `decisions` and `inputs` are divided by the day of the id, which contains the time. `client_ids` is not, since an id of a caller is
/// unique over all days.
const MIGRATIONS: [&str; 1] = ["
CREATE TABLE pointsman.registry (generation int8 NOT NULL, document text NOT NULL);
INSERT INTO pointsman.registry VALUES (0, '');
CREATE TABLE pointsman.files (sha256 bytea PRIMARY KEY, bytes bytea NOT NULL);
ALTER TABLE pointsman.files ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE pointsman.admin_log (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at int8 NOT NULL,
    by text NOT NULL,
    what text NOT NULL
);
CREATE TABLE pointsman.decisions (
    id uuid PRIMARY KEY,
    at int8 NOT NULL,
    deployment int8 NOT NULL,
    version int8 NOT NULL,
    key int8 NOT NULL,
    client_id text,
    tags text,
    prediction bytea NOT NULL,
    features bytea NOT NULL,
    action int2 NOT NULL,
    would int2,
    wanted int2,
    degraded int2,
    label int8 NOT NULL,
    act int8,
    cell int8 NOT NULL,
    support int2 NOT NULL,
    irreducible float8,
    reducible float8,
    costs bytea NOT NULL,
    margin float8 NOT NULL,
    reason int2 NOT NULL
) PARTITION BY RANGE (id);
CREATE TABLE pointsman.inputs (id uuid PRIMARY KEY, input text NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE pointsman.client_ids (
    deployment int8 NOT NULL,
    key int8 NOT NULL,
    client_id text NOT NULL,
    decision uuid NOT NULL,
    PRIMARY KEY (deployment, key, client_id)
);
CREATE INDEX client_ids_by_decision ON pointsman.client_ids USING brin (decision);
"];

/// The tables that are divided by days.
const DIVIDED: [&str; 2] = ["decisions", "inputs"];

/// A day, in days since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Day(i64);

impl Day {
    /// The day of a time.
    fn of(time: Time) -> Self {
        Self(time.0.div_euclid(MICROS_PER_DAY))
    }

    /// The day of an id.
    pub(super) fn of_id(id: Uuid) -> Self {
        let millis = (id.as_u128() >> 80) as i64;
        Self(millis * 1000 / MICROS_PER_DAY)
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }

    fn first_id(self) -> Uuid {
        Time(self.0 * MICROS_PER_DAY).first_id()
    }

    /// The partition of a table for this day.
    fn partition(self, table: &str) -> String {
        format!("{table}_{}", self.0)
    }

    /// The day of a partition of a table.
    fn from_partition(table: &str, name: &str) -> Option<Self> {
        name.strip_prefix(table)?.strip_prefix('_')?.parse().ok().map(Self)
    }
}

/// Whether the tables are there, of whatever version.
pub(super) async fn is_there(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let sql = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'pointsman' AND tablename = 'schema')";
    client.query_typed(sql, &[]).await?.first().map_or(Ok(false), |row| row.try_get(0))
}

/// Makes the tables, or brings them to the present version. Replicas that start together do it one after the other.
pub(super) async fn migrate(client: &mut Client) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(|e| unavailable(&e))?;
    let apply = async {
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
        transaction.execute_typed("SELECT pg_advisory_xact_lock($1)", &[(&MAKE_LOCK, Type::INT8)]).await?;
        let has = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pointsman'),
            EXISTS (SELECT FROM pg_tables WHERE schemaname = 'pointsman' AND tablename = 'schema')";
        let row = transaction.query_one(has, &[]).await?;
        if !row.try_get::<_, bool>(0)? {
            transaction.batch_execute("CREATE SCHEMA pointsman").await?;
        }
        if !row.try_get::<_, bool>(1)? {
            let first =
                "CREATE TABLE pointsman.schema (version int8 NOT NULL); INSERT INTO pointsman.schema VALUES (0)";
            transaction.batch_execute(first).await?;
        }
        transaction.query_one("SELECT version FROM pointsman.schema", &[]).await?.try_get::<_, i64>(0)
    };
    let version = apply.await.map_err(|e| unavailable(&e))?;
    let newest = MIGRATIONS.len() as i64;
    let Some(missing) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..)) else {
        return Err(StoreError::Unavailable(format!(
            "the tables of the database have format {version}, this program reads format {newest}: use a newer pointsman"
        )));
    };
    let finish = async {
        for migration in missing {
            transaction.batch_execute(migration).await?;
        }
        transaction.execute_typed("UPDATE pointsman.schema SET version = $1", &[(&newest, Type::INT8)]).await?;
        transaction.commit().await
    };
    finish.await.map_err(|e| unavailable(&e))
}

/// A partition of a table.
struct Partition {
    table: &'static str,
    day: Day,
    name: String,
}

/// The partitions of these days that are not there.
async fn missing(client: &impl GenericClient, days: &BTreeSet<Day>) -> Result<Vec<Partition>, tokio_postgres::Error> {
    let of_day = |day: &Day| DIVIDED.map(|table| Partition { table, day: *day, name: day.partition(table) });
    let mut wanted: Vec<Partition> = days.iter().flat_map(of_day).collect();
    let names: Vec<&str> = wanted.iter().map(|partition| partition.name.as_str()).collect();
    // Read from the table: `to_regclass` may remember that there was none.
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'pointsman' AND tablename::text = ANY ($1)";
    let there = client.query(sql, &[&names]).await?;
    let there = there.iter().map(|row| row.try_get(0)).collect::<Result<BTreeSet<String>, _>>()?;
    wanted.retain(|partition| !there.contains(&partition.name));
    Ok(wanted)
}

/// Makes the partitions of these days, unless they are there.
///
/// A partition is made as a table first and attached then, which stops neither readers nor writers of the others.
pub(super) async fn make_partitions(client: &mut Client, days: &BTreeSet<Day>) -> Result<(), tokio_postgres::Error> {
    if missing(client, days).await?.is_empty() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute_typed("SELECT pg_advisory_xact_lock($1)", &[(&MAKE_LOCK, Type::INT8)]).await?;
    for Partition { table, day, name } in missing(&transaction, days).await? {
        let (first, end) = (day.first_id(), day.next().first_id());
        let sql = format!(
            "CREATE TABLE pointsman.{name} (LIKE pointsman.{table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
             ALTER TABLE pointsman.{table} ATTACH PARTITION pointsman.{name} FOR VALUES FROM ('{first}') TO ('{end}')"
        );
        transaction.batch_execute(&sql).await?;
    }
    transaction.commit().await
}

/// The partitions that are soon needed: today's and tomorrow's.
pub(super) fn next_days() -> BTreeSet<Day> {
    let today = Day::of(Time::now());
    BTreeSet::from([today, today.next()])
}

/// Drops the partitions of days before these times, and with decisions the ids of their callers.
pub(super) async fn drop_partitions(
    client: &mut Client,
    decisions_before: Option<Time>,
    inputs_before: Option<Time>,
) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let free = "SELECT pg_try_advisory_xact_lock($1)";
    let row = transaction.query_typed(free, &[(&DROP_LOCK, Type::INT8)]).await?;
    if row.first().map(|row| row.try_get::<_, bool>(0)).transpose()? != Some(true) {
        // Another replica is at it.
        return Ok(());
    }
    // Dropping waits for readers, and writers would wait behind it: rather try again later.
    transaction.batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '1s'").await?;
    let limits = [decisions_before, inputs_before.max(decisions_before)].map(|limit| limit.map(Day::of));
    for (table, limit) in DIVIDED.into_iter().zip(limits) {
        let Some(limit) = limit else { continue };
        let sql = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = $1::text::regclass";
        let parent = format!("pointsman.{table}");
        let names = transaction.query_typed(sql, &[(&parent, Type::TEXT)]).await?;
        let mut expired = Vec::new();
        for row in names {
            let name: String = row.try_get(0)?;
            if Day::from_partition(table, &name).is_some_and(|day| day < limit) {
                expired.push(format!("pointsman.{name}"));
            }
        }
        if expired.is_empty() {
            continue;
        }
        if table == "decisions" {
            let sql = "DELETE FROM pointsman.client_ids WHERE decision < $1";
            transaction.execute_typed(sql, &[(&limit.first_id(), Type::UUID)]).await?;
        }
        transaction.batch_execute(&format!("DROP TABLE {}", expired.join(", "))).await?;
    }
    transaction.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ids;

    #[test]
    fn ids_lie_within_their_day() {
        let (id, time) = Ids::after(None).next();
        let day = Day::of_id(id);
        assert_eq!(day, Day::of(time));
        assert!(day.first_id() <= id && id < day.next().first_id());
        assert_eq!(Day::of_id(day.first_id()), day);
        assert_eq!(Day::from_partition("decisions", &day.partition("decisions")), Some(day));
        assert_eq!(Day::from_partition("inputs", &day.partition("decisions")), None);
    }
}
