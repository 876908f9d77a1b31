//! `pointsman deployments` and `pointsman versions`: calls of a service that runs.

use std::io::Write;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use ureq::http::Request;

use crate::args::{ClientArgs, DeploymentsCommand, ModeArg, VersionsCommand};
use crate::failure::Hint;
use crate::json;
use crate::render::style::{BOLD, DIM, GOOD, PLAIN};
use crate::render::table::Grid;

const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// A service and the key to it.
struct Client {
    agent: ureq::Agent,
    url: String,
    key: Option<String>,
    json: bool,
}

impl Client {
    fn new(args: &ClientArgs) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = args.url.clone().or_else(|| variable("POINTSMAN_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let key = args.key.clone().or_else(|| variable("POINTSMAN_KEY"));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        Self { agent, url: url.trim_end_matches('/').to_owned(), key, json: args.json }
    }

    fn call(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> anyhow::Result<Value> {
        let mut request =
            Request::builder().method(method).uri(format!("{}{path}", self.url)).header("content-type", kind);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let answer = self.agent.run(request.body(body).context("the address cannot be used")?);
        let mut response = answer.map_err(|error| {
            let hint = "is the service running? `pointsman serve` starts it; --url or POINTSMAN_URL names another one";
            anyhow!("{}: {error}", self.url).context(Hint(hint.to_owned()))
        })?;
        let text =
            response.body_mut().read_to_string().with_context(|| format!("{}: the answer cannot be read", self.url))?;
        let value: Value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) };
        if response.status().is_success() {
            return Ok(value);
        }
        let detail = value["detail"].as_str().map_or_else(|| response.status().to_string(), str::to_owned);
        let place = value["pointer"].as_str().map_or_else(String::new, |pointer| format!("{pointer}: "));
        Err(anyhow!("{place}{detail}"))
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(method, path, "application/json", body.to_string().into_bytes())
    }

    /// Prints an answer as JSON, or a sentence.
    fn report(&self, answer: &Value, sentence: String) -> anyhow::Result<()> {
        if self.json {
            return json::print(answer);
        }
        writeln!(anstream::stdout().lock(), "{sentence}")?;
        Ok(())
    }
}

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
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            let task = args
                .task
                .as_ref()
                .map(|task| std::fs::read_to_string(task).with_context(|| task.display().to_string()));
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
