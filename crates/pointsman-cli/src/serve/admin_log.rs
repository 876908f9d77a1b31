//! `pointsman admin-log`: who changed what of a service.

use std::io::Write;

use serde_json::Value;

use super::client::Client;
use crate::args::AdminLogArgs;
use crate::json;
use crate::render::style::{DIM, PLAIN};
use crate::render::table::Grid;

pub(crate) fn run(args: &AdminLogArgs) -> anyhow::Result<()> {
    let client = Client::new(&args.client);
    let path = format!("/v1/admin/log?after={}&limit={}", args.after, args.limit);
    let answer = client.send("GET", &path, &Value::Null)?;
    if client.json { json::print(&answer) } else { Ok(print(&answer)?) }
}

fn print(answer: &Value) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let mut grid = Grid::new().number("number").text("time").text("who").text("what");
    for entry in answer["entries"].as_array().into_iter().flatten() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let cells =
            [(entry["number"].to_string(), DIM), (text("time"), DIM), (text("by"), PLAIN), (text("what"), PLAIN)];
        grid.row(cells);
    }
    grid.write(&mut out)?;
    if let Some(next) = answer["next"].as_u64() {
        writeln!(out, "{DIM}more: pointsman admin-log --after {next}{DIM:#}")?;
    }
    Ok(())
}
