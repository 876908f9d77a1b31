//! Logged decisions as a table in the body of an answer, made while it is sent.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use pointsman_table::{Format, TableWriter};
use tokio::sync::mpsc;

use super::formats::NDJSON;
use super::problem::{Kind, Problem};
use crate::app::App;
use crate::deployment::Deployment;
use crate::store::{LogQuery, Record, Store};
use crate::table::{LogTable, values};

/// The formats of exports with their content types.
const FORMATS: [(&str, Format); 3] =
    [(NDJSON, Format::Jsonl), ("text/csv", Format::Csv), ("application/vnd.apache.parquet", Format::Parquet)];

/// Decisions read at a time, and the size at which reading stops before, in bytes.
const PAGE_ROWS: usize = 8192;
const PAGE_BYTES: usize = 8 << 20;

/// Parts of the body that wait to be sent.
const WAITING_PARTS: usize = 2;

/// The format that a request asks for; `None` for pages of JSON.
pub(crate) fn wanted_format(headers: &HeaderMap) -> Result<Option<Format>, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    let mut best: Option<(f32, Option<Format>)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse).unwrap_or(0.0);
        let format = match kind {
            "application/json" | "application/*" | "*/*" | "" => None,
            other => match FORMATS.iter().find(|(name, _)| *name == other) {
                Some((_, format)) => Some(*format),
                None => continue,
            },
        };
        if quality > 0.0 && best.is_none_or(|(other, _)| quality > other) {
            best = Some((quality, format));
        }
    }
    let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
    let refused = || format!("{accept:?}: accept application/json, {}", names.join(", "));
    best.map(|(_, format)| format).ok_or_else(|| Problem::new(Kind::NotAcceptable, refused()))
}

/// Answers all decisions of a query as a table. At most `limit` of them, if there is a limit.
pub(crate) async fn export(
    app: &App,
    deployment: &Deployment,
    mut query: LogQuery,
    limit: Option<usize>,
    format: Format,
) -> Result<Response, Problem> {
    let table = log_table(app, deployment, query.version).await?;
    let left = limit.unwrap_or(usize::MAX);
    (query.limit, query.max_bytes) = (PAGE_ROWS.min(left), PAGE_BYTES);
    // The first page is read before the answer begins, so that a failure has its own status.
    let first = app.store.decisions(query.clone()).await?;
    let (sender, receiver) = mpsc::channel(WAITING_PARTS);
    let export = Export { store: Arc::clone(&app.store), table: Arc::new(table), query, left, format, sender };
    tokio::spawn(export.run(first));
    let content_type = FORMATS.iter().find(|(_, other)| *other == format).map_or(NDJSON, |(name, _)| *name);
    let extension = if format == Format::Jsonl { "ndjson" } else { format.name() };
    let disposition = format!("attachment; filename=\"{}.{extension}\"", deployment.stored.name);
    let headers = [(header::CONTENT_TYPE, content_type.to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, Body::new(Parts(receiver))).into_response())
}

/// The table of a deployment's decisions, or of those of one version.
async fn log_table(app: &App, deployment: &Deployment, version: Option<u32>) -> Result<LogTable, Problem> {
    let mut versions = BTreeMap::new();
    let numbers = deployment.stored.versions.iter().map(|stored| stored.number);
    for number in numbers.filter(|number| version.is_none_or(|version| version == *number)) {
        if let Some(names) = app.deployments.names(deployment, number).await? {
            versions.insert(number, names);
        }
    }
    Ok(LogTable::new(&deployment.stored.name, versions))
}

/// An export under way.
struct Export {
    store: Arc<dyn Store>,
    table: Arc<LogTable>,
    query: LogQuery,
    /// Decisions that may still be written.
    left: usize,
    format: Format,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Export {
    async fn run(self, first: Vec<Record>) {
        let sender = self.sender.clone();
        if let Err(error) = self.write(first).await {
            tracing::warn!(%error, "an export of decisions was broken off");
            // The body ends without its end, which the client notices.
            let _ = sender.send(Err(error)).await;
        }
    }

    async fn write(mut self, first: Vec<Record>) -> io::Result<()> {
        let written = Written::default();
        let mut page = first;
        let mut writer = TableWriter::stream("the answer", written.clone(), self.format, &self.table.declared())
            .map_err(io::Error::other)?;
        loop {
            let is_last = !self.query.is_full(&page);
            self.left -= page.len();
            self.query.after = page.last().map(|record| record.id).or(self.query.after);
            let table = Arc::clone(&self.table);
            let encode = move || {
                (!page.is_empty()).then(|| writer.write(&values(table.columns(&page)))).transpose().map(|_| writer)
            };
            writer = blocking(encode).await?;
            if !self.send(&written).await {
                return Ok(());
            }
            if is_last || self.left == 0 {
                break;
            }
            self.query.limit = self.query.limit.min(self.left);
            page = self.store.decisions(self.query.clone()).await.map_err(io::Error::other)?;
        }
        blocking(move || writer.finish()).await?;
        self.send(&written).await;
        Ok(())
    }

    /// Sends what was written; false if nobody waits for it any more.
    async fn send(&self, written: &Written) -> bool {
        let part = written.take();
        part.is_empty() || self.sender.send(Ok(part.into())).await.is_ok()
    }
}

/// Runs work that takes time on a thread where it stops nobody else.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, pointsman_table::Error> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?.map_err(io::Error::other)
}

/// Bytes that were written and not sent yet.
#[derive(Debug, Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A body whose parts arrive one after another.
#[derive(Debug)]
struct Parts(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| part.map(Frame::data)))
    }
}
