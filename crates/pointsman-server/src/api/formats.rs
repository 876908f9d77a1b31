//! Queries as NDJSON or Arrow, and answers in the same format.

use std::io::Cursor;
use std::sync::Arc;

use arrow_ipc::writer::StreamWriter;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use pointsman_table::{Column, Format, Need, ReadOptions};

use super::attachments;
use super::decide::{DecideRequest, Decided, Options};
use super::problem::{Kind, Problem};
use super::{explain_more, parse_object};
use crate::deployment::Version;
use crate::query::{Query, check_id};
use crate::table;

/// One JSON object per line.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// An Arrow IPC stream.
pub(crate) const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The first bytes of an Arrow file, which a stream does not have.
const ARROW_FILE_MAGIC: &[u8] = b"ARROW1";

/// How a body with one JSON object per line is sent.
const ONE_PER_LINE: &str = "give one query per line (with curl: --data-binary, since -d leaves the line ends out)";

/// Decides the queries of a body with one JSON object per line; the answer has one per line, too.
pub(crate) async fn ndjson(request: &DecideRequest<'_>, body: &[u8], options: Options) -> Result<Response, Problem> {
    let lines =
        body.split(|byte| *byte == b'\n').enumerate().map(|(place, line)| Line { number: place + 1, text: line });
    let lines: Vec<Line<'_>> = lines.filter(|line| !line.text.trim_ascii().is_empty()).collect();
    request.app.limits.check_rows(lines.len())?;
    let query = |(row, line): (usize, &Line<'_>)| {
        let in_row = |mut problem: Problem| {
            let inner = problem.pointer.take().unwrap_or_default();
            explain_more(problem, ONE_PER_LINE).at(format!("/{row}{inner}"))
        };
        parse_object(line.text).map_err(in_row).and_then(|body| request.query(body, &format!("/{row}")))
    };
    let queries = lines.iter().enumerate().map(query).collect::<Result<Vec<_>, _>>();
    let queries = queries.map_err(|problem| in_line(problem, &lines))?;
    let decided = request.commit(queries, options, |row| format!("/{row}")).await;
    let decided = decided.map_err(|problem| in_line(problem, &lines))?;
    let mut text = Vec::new();
    for answer in decided.answers(options) {
        serde_json::to_writer(&mut text, &answer).map_err(|e| Problem::new(Kind::Internal, e.to_string()))?;
        text.push(b'\n');
    }
    Ok(([(header::CONTENT_TYPE, NDJSON)], text).into_response())
}

/// A line of a body that is not empty.
struct Line<'a> {
    /// Its place in the body, counted from 1, empty lines included.
    number: usize,
    text: &'a [u8],
}

/// A problem with a row, with the number of its line.
fn in_line(mut problem: Problem, lines: &[Line<'_>]) -> Problem {
    let row = problem.pointer.as_ref().and_then(|pointer| pointer.split('/').nth(1)?.parse::<usize>().ok());
    if let Some(line) = row.and_then(|row| lines.get(row)) {
        // The reader of JSON has seen this line alone.
        problem.detail =
            format!("line {}: {}", line.number, problem.detail.replace(" at line 1 column ", " at column "));
    }
    problem
}

/// Decides the queries of an Arrow IPC stream with the columns of a table, `prob_<class>` or `probs`; the answer is one, too.
pub(crate) async fn arrow(request: &DecideRequest<'_>, body: Bytes, options: Options) -> Result<Response, Problem> {
    if body.starts_with(ARROW_FILE_MAGIC) {
        let detail = "this is an Arrow file: send a stream, as pyarrow.ipc.new_stream and ArrowStreamWriter write it";
        return Err(Problem::new(Kind::Invalid, detail));
    }
    let policy = Arc::clone(&request.version.policy);
    let most = request.app.limits.rows;
    let read = tokio::task::spawn_blocking(move || read_queries(&policy, body, most)).await;
    // Arrow's reader panics on some damaged streams.
    let queries = read.map_err(|e| match e.is_panic() {
        true => Problem::new(Kind::Invalid, "the body: the Arrow stream is damaged"),
        false => Problem::new(Kind::Internal, e.to_string()),
    })??;
    request.app.limits.check_rows(queries.len())?;
    let decided = request.commit(queries, options, |row| format!("/{row}")).await?;
    let bytes = write_answers(&decided, &request.version, options)?;
    Ok(([(header::CONTENT_TYPE, ARROW)], bytes).into_response())
}

/// Queries of an Arrow stream, a few more at most than are allowed.
fn read_queries(policy: &pointsman::Policy, body: Bytes, most: usize) -> Result<Vec<Query>, Problem> {
    let options = ReadOptions {
        classes: Some(policy.classes().to_vec()),
        features: Some(policy.cells().features().to_vec()),
        need: Need::Predictions,
        allow_empty: true,
        ..ReadOptions::default()
    };
    let batches = pointsman_table::batches_from("the body", Cursor::new(body.clone()), Format::Arrow, &options)
        .map_err(refuse)?;
    // A list of probabilities has no names: it is in the order of the deployment's classes.
    let is_numbered = batches.classes().iter().enumerate().all(|(place, name)| *name == place.to_string());
    let is_in_order = is_numbered && batches.classes().len() == policy.classes().len();
    if batches.classes() != policy.classes() && !is_in_order {
        let (given, wanted) = (batches.classes().join(", "), policy.classes().join(", "));
        return Err(Problem::new(Kind::Invalid, format!("the classes are {given}: the deployment has {wanted}")));
    }
    let mut queries = Vec::new();
    for frame in batches {
        let frame = frame.map_err(refuse)?;
        let table = &frame.table;
        let columns: Option<Vec<usize>> = policy
            .cells()
            .features()
            .iter()
            .map(|name| table.feature_names().iter().position(|other| other == name))
            .collect();
        let columns = columns.ok_or_else(|| {
            Problem::new(
                Kind::Invalid,
                format!("the router uses the features {}", policy.cells().features().join(", ")),
            )
        })?;
        for row in 0..table.rows() {
            let id = frame.ids.as_ref().map(|ids| ids[row].clone());
            let place = queries.len();
            check_id(id.as_deref()).map_err(|bad| Problem::invalid(format!("/{place}{}", bad.pointer), bad.reason))?;
            queries.push(Query {
                id,
                tags: None,
                input: None,
                prediction: table.prediction(row).to_vec(),
                features: columns.iter().map(|&column| table.features(row)[column]).collect(),
            });
        }
        if queries.len() > most {
            break;
        }
    }
    attachments::attach(&body, &mut queries)?;
    Ok(queries)
}

/// Why a stream cannot be used, at its row if it is about one. What is said of flags and of Python is left out: a request has neither.
fn refuse(error: pointsman_table::Error) -> Problem {
    let without_flags = |reason: &str| {
        let parts: Vec<&str> = reason.split("; ").filter(|part| !part.contains("--")).collect();
        if parts.is_empty() { reason.to_owned() } else { parts.join("; ") }
    };
    match error {
        pointsman_table::Error::Row { row, column, reason, .. } => {
            let column = column.filter(|name| !name.contains('*')).map_or_else(String::new, |name| format!("/{name}"));
            Problem::invalid(format!("/{}{column}", row.saturating_sub(1)), without_flags(&reason))
        }
        other => Problem::new(Kind::Invalid, without_flags(&other.to_string())),
    }
}

/// The answers with the columns that `pointsman decide` writes, and the decisions' ids and version.
fn write_answers(decided: &Decided, version: &Version, options: Options) -> Result<Vec<u8>, Problem> {
    let answers: Vec<_> = decided.answers(options).collect();
    let mut columns = table::answer_columns(&answers, &version.names.actions);
    columns.extend(table::answer_extras(&answers));
    if decided.is_lost {
        columns.push(("logged".to_owned(), Column::Text(vec!["false".to_owned(); answers.len()])));
    }
    if options.explain {
        columns.extend(table::explanation_columns(&answers));
    }
    let (declared, values) = (table::declared(&columns), table::values(columns));
    let failed = |e: &dyn std::fmt::Display| Problem::new(Kind::Internal, format!("the answer cannot be written: {e}"));
    let batch = pointsman_table::record_batch(&declared, &values).map_err(|e| failed(&e))?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(|e| failed(&e))?;
    writer.write(&batch).map_err(|e| failed(&e))?;
    writer.into_inner().map_err(|e| failed(&e))
}
