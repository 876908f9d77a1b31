//! Pages of the log.

use std::future::poll_fn;
use std::pin::pin;

use futures_core::Stream;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::super::{LogQuery, Record, StoreError, VersionAction};
use super::connection::unavailable;
use super::{Typed, rows};

/// Rows that are asked for at a time, so that few are sent in vain if a page ends because of its size.
const ROWS_PER_STATEMENT: usize = 1000;

const CONDITION: &str = "WHERE decisions.id >= $1 AND decisions.id < $2 AND deployment = $3 AND ($4 IS NULL OR version = $4) \
     AND ($5 IS NULL OR cell = $5) AND ($6 IS NULL OR tags::json ->> $6 = $7) \
     AND ($8 IS NULL OR (version, action) IN (SELECT * FROM unnest($8, $9))) ORDER BY decisions.id LIMIT $10";

/// Reads a page, a few rows at a time. Each becomes a record as it arrives, so that the page is in memory once.
pub(super) async fn read(client: &Client, mut query: LogQuery) -> Result<Vec<Record>, StoreError> {
    // PostgreSQL has no text with this character, and so no such tag.
    if query.tag.as_ref().is_some_and(|(name, value)| name.contains('\0') || value.contains('\0')) {
        return Ok(Vec::new());
    }
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < query.limit && bytes < query.max_bytes {
        let wanted = ROWS_PER_STATEMENT.min(query.limit - page.len());
        let before = page.len();
        read_rows(client, &query, wanted, &mut page, &mut bytes).await?;
        if page.len() < before + wanted {
            break;
        }
        query.after = page.last().map(|record| record.id);
    }
    Ok(page)
}

/// Reads at most `wanted` rows, and fewer if the page is large enough with them.
async fn read_rows(
    client: &Client,
    query: &LogQuery,
    wanted: usize,
    page: &mut Vec<Record>,
    bytes: &mut usize,
) -> Result<(), StoreError> {
    let (first, end) = query.ids();
    let end = end.unwrap_or(Uuid::max());
    let select = if query.with_inputs { rows::SELECT } else { rows::SELECT_WITHOUT_INPUTS };
    let (tag, value) = query.tag.clone().unzip();
    let (version, cell) = (query.version.map(i64::from), query.cell.map(i64::from));
    let answered = |actions: &Vec<_>| actions.iter().map(version_and_code).unzip::<i64, i16, Vec<_>, Vec<_>>();
    let (versions, codes) = query.actions.as_ref().map(answered).unzip();
    let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
    let parameters: [Typed<'_>; 10] = [
        (&first, Type::UUID),
        (&end, Type::UUID),
        (&query.deployment.0, Type::INT8),
        (&version, Type::INT8),
        (&cell, Type::INT8),
        (&tag, Type::TEXT),
        (&value, Type::TEXT),
        (&versions, Type::INT8_ARRAY),
        (&codes, Type::INT2_ARRAY),
        (&limit, Type::INT8),
    ];
    let stream = client.query_typed_raw(&format!("{select} {CONDITION}"), parameters).await;
    let mut stream = pin!(stream.map_err(|e| unavailable(&e))?);
    while let Some(row) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        let record = rows::read(&row.map_err(|e| unavailable(&e))?)?;
        *bytes += record.bytes();
        page.push(record);
        if *bytes >= query.max_bytes {
            break;
        }
    }
    Ok(())
}

fn version_and_code(action: &VersionAction) -> (i64, i16) {
    (i64::from(action.version), i16::from(action.action))
}
