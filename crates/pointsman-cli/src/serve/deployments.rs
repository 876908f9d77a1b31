//! `pointsman deployments` and `pointsman versions`.

use std::io::Write;
use std::path::Path;

use pointsman_server::clock::Time;
use serde_json::{Value, json};

use super::client::{Client, Refusal};
use super::decisions::encoded;
use crate::args::{DeploymentsCommand, ModeArg, VersionsCommand};
use crate::failure::Hint;
use crate::json;
use crate::render::printable;
use crate::render::style::{BOLD, DIM, GOOD, PLAIN};
use crate::render::table::Grid;

pub(crate) fn deployments(command: &DeploymentsCommand) -> anyhow::Result<()> {
    match command {
        DeploymentsCommand::List(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("GET", &format!("/v1/deployments?deleted={}", args.deleted), &Value::Null)?;
            match (client.json, args.deleted) {
                (true, _) => json::print(&answer),
                (false, false) => Ok(list_deployments(&answer)?),
                (false, true) => Ok(list_deleted(&answer)?),
            }
        }
        DeploymentsCommand::Put(args) => {
            let client = Client::new(&args.client);
            let mode = args.mode.map(|mode| if mode == ModeArg::Shadow { "shadow" } else { "active" });
            let answer = client.send("PUT", &deployment(&args.name), &json!({"mode": mode}))?;
            let mode = answer["mode"].as_str().unwrap_or_default();
            client.report(&answer, format!("{GOOD}ok{GOOD:#} {BOLD}{}{BOLD:#}, {mode}", args.name))
        }
        DeploymentsCommand::Oracle(args) => {
            let client = Client::new(&args.client);
            let path = format!("{}/oracles/{}", deployment(&args.name), encoded(&args.oracle));
            let answer = client.send("PUT", &path, &json!({"available": args.available}))?;
            let state = if args.available { "available" } else { "not available" };
            client
                .report(&answer, format!("{GOOD}ok{GOOD:#} {BOLD}{}{BOLD:#} of {} is {state}", args.oracle, args.name))
        }
        DeploymentsCommand::Delete(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("DELETE", &deployment(&args.name), &Value::Null)?;
            let kept = "its decisions can be exported until they expire";
            client.report(&answer, format!("{GOOD}deleted{GOOD:#} {BOLD}{}{BOLD:#}; {kept}", args.name))
        }
    }
}

pub(crate) fn versions(command: &VersionsCommand) -> anyhow::Result<()> {
    match command {
        VersionsCommand::List(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("GET", &format!("{}/versions", deployment(&args.name)), &Value::Null)?;
            if client.json { json::print(&answer) } else { Ok(list_versions(&answer)?) }
        }
        VersionsCommand::Add(args) => {
            let client = Client::new(&args.client);
            let path = &args.file;
            let bytes = std::fs::read(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let task = args.task.as_ref().map(|task| {
                std::fs::read_to_string(task).map_err(|error| anyhow::anyhow!("{}: {error}", task.display()))
            });
            let file = client.call("POST", "/v1/files", "application/octet-stream", bytes);
            let file = file.map_err(|error| match error.downcast_ref::<Refusal>() {
                Some(refusal) => anyhow::anyhow!("{}: {refusal}", path.display()),
                None => error,
            })?;
            let kind = file["kind"].as_str().unwrap_or("router");
            if kind == "router" && args.task.is_none() {
                let hint = Hint("a task file names the loss and the prices, as in `abstain = 0.3`".to_owned());
                return Err(anyhow::anyhow!("{} is a router, which needs a task: add --task FILE", path.display())
                    .context(hint));
            }
            let (activate, force) = (args.activate, args.force);
            let body = json!({kind: file["sha256"], "task": task.transpose()?, "activate": activate, "force": force});
            let answer = client.send("POST", &format!("{}/versions", deployment(&args.name)), &body);
            let answer = answer.map_err(|error| in_files(error, path, args.task.as_deref()))?;
            client.report(&answer, described(&args.name, &answer))
        }
        VersionsCommand::Activate(args) => {
            let client = Client::new(&args.client);
            let (name, version, force) = (deployment(&args.name), args.version, args.force);
            let path = format!("{name}/versions/{version}/activate?force={force}");
            let answer = client.send("POST", &path, &json!({}))?;
            client.report(&answer, described(&args.name, &answer))
        }
        VersionsCommand::Rollback(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("POST", &format!("{}/rollback", deployment(&args.name)), &json!({}))?;
            client.report(&answer, described(&args.name, &answer))
        }
    }
}

/// A refusal of a version: it names the file that it is about instead of the field of the request.
fn in_files(error: anyhow::Error, version: &Path, task: Option<&Path>) -> anyhow::Error {
    let Some(Refusal { pointer: Some(pointer), detail }) = error.downcast_ref() else { return error };
    let file = match pointer.as_str() {
        "/task" => task,
        "/router" | "/policy" => Some(version),
        _ => None,
    };
    match file {
        Some(file) => anyhow::anyhow!("{}: {detail}", file.display()),
        None => error,
    }
}

/// The address of a deployment.
fn deployment(name: &str) -> String {
    format!("/v1/deployments/{}", encoded(name))
}

fn described(name: &str, version: &Value) -> String {
    let state = if version["active"] == true { "active" } else { "not active" };
    format!("{GOOD}ok{GOOD:#} {BOLD}{name}{BOLD:#} version {}, {state}", version["version"])
}

fn words(list: &Value) -> String {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}

fn list_deployments(answer: &Value) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let all = answer["deployments"].as_array().cloned().unwrap_or_default();
    if all.is_empty() {
        return writeln!(out, "no deployments: `pointsman deployments put NAME` creates one");
    }
    let mut grid = Grid::new().text("deployment").text("mode").text("version").text("actions").text("unavailable");
    for deployment in all {
        let version = deployment["active"].as_u64().map_or_else(|| "none".to_owned(), |version| version.to_string());
        let text = |field: &str| deployment[field].as_str().unwrap_or_default().to_owned();
        let cells =
            [text("name"), text("mode"), version, words(&deployment["actions"]), words(&deployment["unavailable"])];
        grid.row(cells.map(|text| (text, PLAIN)).to_vec());
    }
    grid.write(&mut out)
}

fn list_deleted(answer: &Value) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let all = answer["deployments"].as_array().cloned().unwrap_or_default();
    if all.is_empty() {
        return writeln!(out, "no deleted deployments");
    }
    let mut grid = Grid::new().number("number").text("deployment").text("deleted");
    for deployment in all {
        let text = |field: &str| deployment[field].as_str().unwrap_or_default().to_owned();
        grid.row([deployment["number"].to_string(), text("name"), text("deleted")].map(|text| (text, PLAIN)).to_vec());
    }
    grid.write(&mut out)
}

fn list_versions(answer: &Value) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let mut grid = Grid::new()
        .number("version")
        .text("state")
        .text("added")
        .text("loss")
        .text("prices")
        .text("router")
        .text("policy");
    for version in answer["versions"].as_array().into_iter().flatten() {
        let is_active = version["active"] == true;
        let short =
            |field: &str| version[field].as_str().map_or_else(String::new, |hash| hash.chars().take(12).collect());
        let state = if is_active { "active" } else { "" };
        let style = if is_active { GOOD } else { DIM };
        let [loss, prices] = task_in_short(version["task"].as_str().unwrap_or_default());
        let cells = [
            version["version"].to_string(),
            state.to_owned(),
            version["created"].as_i64().map_or_else(String::new, minute),
            loss,
            prices,
            short("router"),
            short("policy"),
        ];
        grid.row(cells.map(|text| (text, style)).to_vec());
    }
    grid.write(&mut out)
}

/// The minute of a time in microseconds since 1970, as in `2026-01-31 12:00`, in UTC.
fn minute(created: i64) -> String {
    let time = Time(created).to_string();
    time.get(..16).unwrap_or(&time).replace('T', " ")
}

/// The longest loss of a task in a list, in characters.
const MAX_LOSS_CHARACTERS: usize = 30;

/// The loss of a task, and the prices of its routes and of abstaining.
fn task_in_short(text: &str) -> [String; 2] {
    let Ok(task) = pointsman_table::parse_task(text) else { return ["unreadable".to_owned(), String::new()] };
    let routes = task.routes().iter().map(|route| format!("{} {}", printable(route.name()), route.price()));
    let abstain = task.abstain_price().map(|price| format!("abstain {price}"));
    // A cost matrix is as long as it has numbers.
    let (loss, width) = (printable(&task.loss().to_string()), MAX_LOSS_CHARACTERS);
    let loss = match loss.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &loss[..end]),
        None => loss,
    };
    [loss, routes.chain(abstain).collect::<Vec<_>>().join(", ")]
}
