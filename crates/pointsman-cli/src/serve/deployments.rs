//! `pointsman deployments` and `pointsman versions`.

use std::io::Write;

use serde_json::{Value, json};

use super::client::Client;
use crate::args::{DeploymentsCommand, ModeArg, VersionsCommand};
use crate::json;
use crate::render::style::{BOLD, DIM, GOOD, PLAIN};
use crate::render::table::Grid;

pub(crate) fn deployments(command: &DeploymentsCommand) -> anyhow::Result<()> {
    match command {
        DeploymentsCommand::List(args) => {
            let client = Client::new(args);
            let answer = client.send("GET", "/v1/deployments", &Value::Null)?;
            if client.json { json::print(&answer) } else { Ok(list_deployments(&answer)?) }
        }
        DeploymentsCommand::Put(args) => {
            let client = Client::new(&args.client);
            let mode = args.mode.map(|mode| if mode == ModeArg::Shadow { "shadow" } else { "active" });
            let answer = client.send("PUT", &format!("/v1/deployments/{}", args.name), &json!({"mode": mode}))?;
            let mode = answer["mode"].as_str().unwrap_or_default();
            client.report(&answer, format!("{GOOD}ok{GOOD:#} {BOLD}{}{BOLD:#}, {mode}", args.name))
        }
        DeploymentsCommand::Oracle(args) => {
            let client = Client::new(&args.client);
            let path = format!("/v1/deployments/{}/oracles/{}", args.name, args.oracle);
            let answer = client.send("PUT", &path, &json!({"available": args.available}))?;
            let state = if args.available { "available" } else { "not available" };
            client
                .report(&answer, format!("{GOOD}ok{GOOD:#} {BOLD}{}{BOLD:#} of {} is {state}", args.oracle, args.name))
        }
        DeploymentsCommand::Delete(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("DELETE", &format!("/v1/deployments/{}", args.name), &Value::Null)?;
            client.report(&answer, format!("{GOOD}deleted{GOOD:#} {BOLD}{}{BOLD:#}", args.name))
        }
    }
}

pub(crate) fn versions(command: &VersionsCommand) -> anyhow::Result<()> {
    match command {
        VersionsCommand::List(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("GET", &format!("/v1/deployments/{}/versions", args.name), &Value::Null)?;
            if client.json { json::print(&answer) } else { Ok(list_versions(&answer)?) }
        }
        VersionsCommand::Add(args) => {
            let client = Client::new(&args.client);
            let path = &args.file;
            let bytes = std::fs::read(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let task = args.task.as_ref().map(|task| {
                std::fs::read_to_string(task).map_err(|error| anyhow::anyhow!("{}: {error}", task.display()))
            });
            let file = client.call("POST", "/v1/files", "application/octet-stream", bytes)?;
            let kind = file["kind"].as_str().unwrap_or("router");
            let body = json!({kind: file["sha256"], "task": task.transpose()?, "activate": args.activate});
            let answer = client.send("POST", &format!("/v1/deployments/{}/versions", args.name), &body)?;
            client.report(&answer, described(&args.name, &answer))
        }
        VersionsCommand::Activate(args) => {
            let client = Client::new(&args.client);
            let path = format!("/v1/deployments/{}/versions/{}/activate", args.name, args.version);
            let answer = client.send("POST", &path, &json!({}))?;
            client.report(&answer, described(&args.name, &answer))
        }
        VersionsCommand::Rollback(args) => {
            let client = Client::new(&args.client);
            let answer = client.send("POST", &format!("/v1/deployments/{}/rollback", args.name), &json!({}))?;
            client.report(&answer, described(&args.name, &answer))
        }
    }
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

fn list_versions(answer: &Value) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let mut grid = Grid::new().number("version").text("state").text("router").text("policy");
    for version in answer["versions"].as_array().into_iter().flatten() {
        let is_active = version["active"] == true;
        let short =
            |field: &str| version[field].as_str().map_or_else(String::new, |hash| hash.chars().take(12).collect());
        let state = if is_active { "active" } else { "" };
        let style = if is_active { GOOD } else { DIM };
        let cells = [version["version"].to_string(), state.to_owned(), short("router"), short("policy")];
        grid.row(cells.map(|text| (text, style)).to_vec());
    }
    grid.write(&mut out)
}
