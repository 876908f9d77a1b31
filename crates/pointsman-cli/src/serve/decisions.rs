//! `pointsman decisions export`: the log of a deployment as a file.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use pointsman_table::Format;
use serde_json::json;

use super::client::Client;
use crate::args::{DecisionsCommand, ExportArgs};
use crate::input::is_stream;
use crate::interrupt::Writing;
use crate::json;
use crate::output::{Kind, check_overwrite};
use crate::progress::Progress;
use crate::render;
use crate::render::number::count;
use crate::render::style::{BOLD, GOOD};

/// Bytes read at a time.
const PART_BYTES: usize = 1 << 16;

pub(crate) fn run(command: &DecisionsCommand) -> anyhow::Result<()> {
    let DecisionsCommand::Export(args) = command;
    let format = Format::to_write(&args.output, args.output_format).map_err(|_| {
        anyhow!("{}: unknown format: use the extension .parquet, .csv or .jsonl", args.output.display())
    })?;
    let accept = accept(format, &args.output)?;
    if is_stream(&args.output) && args.client.json {
        bail!("--json and -o - both write to standard output: give -o a file");
    }
    check_overwrite(&args.output, &[], Kind::Decisions)?;
    let client = Client::new(&args.client);
    let response = client.download(&path(args), accept)?;
    let bytes = {
        let _progress = Progress::spinner(format!("exporting {}", args.name));
        save(&args.output, response.into_body().into_reader(), &client.url)?
    };
    if args.client.json {
        return json::print(
            &json!({"output": args.output.display().to_string(), "format": format.name(), "bytes": bytes}),
        );
    }
    if !is_stream(&args.output) && !render::is_quiet() {
        let (name, size) = (args.output.display(), count(bytes as usize));
        writeln!(anstream::stdout().lock(), "{GOOD}wrote{GOOD:#} {BOLD}{name}{BOLD:#}, {size} bytes")?;
    }
    Ok(())
}

/// The content type of a format that the service writes.
fn accept(format: Format, output: &Path) -> anyhow::Result<&'static str> {
    let name = output.display();
    let is_compressed = output.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    if is_compressed {
        bail!(
            "{name}: exports are not compressed as a whole: write .parquet, which is compressed, or leave out the last extension"
        );
    }
    Ok(match format {
        Format::Csv => "text/csv",
        Format::Jsonl => "application/x-ndjson",
        Format::Parquet if is_stream(output) && io::stdout().is_terminal() => {
            bail!("Parquet is not text: give a path instead of -, or redirect standard output")
        }
        Format::Parquet => "application/vnd.apache.parquet",
        other => bail!("{name}: the service does not write {other}: use .parquet, .csv or .jsonl"),
    })
}

/// The address of the decisions that are wanted.
fn path(args: &ExportArgs) -> String {
    let ExportArgs { name, from, to, action, cell, tag, version, limit, no_inputs, number, .. } = args;
    let mut path = format!("/v1/deployments/{}/decisions?inputs={}", encoded(name), !no_inputs);
    let texts = [("from", from), ("to", to), ("action", action), ("tag", tag)];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?)));
    let numbers =
        [("cell", cell.map(u64::from)), ("version", version.map(u64::from)), ("limit", *limit), ("number", *number)];
    let numbers = numbers.into_iter().filter_map(|(key, number)| Some((key, number?.to_string())));
    for (key, value) in texts.chain(numbers) {
        path += &format!("&{key}={}", encoded(&value));
    }
    path
}

/// A text as part of an address.
pub(super) fn encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Writes a body to a file, whole or not at all, and returns its size.
fn save(output: &Path, mut body: impl Read, url: &str) -> anyhow::Result<u64> {
    let writing = Writing::start();
    let (mut bytes, mut broken) = (0, None);
    let copy = |out: &mut dyn Write| {
        let mut part = vec![0; PART_BYTES];
        loop {
            let read = match writing.check().map_err(anyhow::Error::from).and_then(|()| Ok(body.read(&mut part)?)) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) => {
                    broken = Some(error);
                    return Err(io::ErrorKind::Interrupted.into());
                }
            };
            out.write_all(&part[..read])?;
            bytes += read as u64;
        }
    };
    let written = pointsman_table::write_atomically(output, copy);
    match broken {
        Some(error) if error.is::<crate::interrupt::Interrupted>() => Err(error),
        Some(error) => Err(error).with_context(|| format!("{url}: the answer broke off; nothing was written")),
        None => Ok(written.map(|()| bytes)?),
    }
}
