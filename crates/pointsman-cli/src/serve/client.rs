//! A client of a service that runs.

use std::io::Write;

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use ureq::Body;
use ureq::http::{Request, Response, StatusCode};

use crate::args::ClientArgs;
use crate::failure::Hint;
use crate::json;
use crate::render;
use crate::render::style::WARN;

const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// A refusal of the service.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The field of the request that is wrong, as a JSON pointer.
    pub(super) pointer: Option<String>,
    /// What is wrong.
    pub(super) detail: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.pointer {
            Some(pointer) => write!(f, "{pointer}: {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Refusal {}

/// A service and the key to it.
pub(super) struct Client {
    agent: ureq::Agent,
    pub(super) url: String,
    key: Option<String>,
    pub(super) json: bool,
}

impl Client {
    pub(super) fn new(args: &ClientArgs) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = args.url.clone().or_else(|| variable("POINTSMAN_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
        let key = args.key.clone().or_else(|| variable("POINTSMAN_KEY"));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        Self { agent, url: url.trim_end_matches('/').to_owned(), key, json: args.json }
    }

    /// Sends a request with a header of this name, and returns a success with its body, which is not read yet.
    fn request(&self, method: &str, path: &str, header: [&str; 2], body: Vec<u8>) -> anyhow::Result<Response<Body>> {
        if !self.url.contains("://") {
            bail!("{url} is not the address of a service: write http://{url}", url = self.url);
        }
        if !["http://", "https://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            bail!("{} is not the address of a service: it begins with http:// or https://", self.url);
        }
        let [name, value] = header;
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url)).header(name, value);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let unusable = || format!("{}: the address or the key cannot be used", self.url);
        let answer = self.agent.run(request.body(body).with_context(unusable)?);
        let mut response = answer.map_err(|error| {
            let hint = "is the service running? `pointsman serve` starts it; --url or POINTSMAN_URL names another one";
            anyhow!("{}: {error}", self.url).context(Hint(hint.to_owned()))
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let value: Value = self.read(&mut response)?;
        let detail = value["detail"].as_str().map_or_else(|| response.status().to_string(), str::to_owned);
        if response.status() == StatusCode::UNAUTHORIZED {
            let hint =
                "give one with --key or POINTSMAN_KEY; `pointsman keys add NAME --scope admin` makes one".to_owned();
            let error = if self.key.is_some() { detail } else { "the service needs a key".to_owned() };
            return Err(anyhow!(error).context(Hint(hint)));
        }
        let pointer = value["pointer"].as_str().filter(|pointer| !pointer.is_empty()).map(str::to_owned);
        Err(Refusal { pointer, detail }.into())
    }

    /// The body of an answer: JSON, or else text.
    fn read(&self, response: &mut Response<Body>) -> anyhow::Result<Value> {
        let text =
            response.body_mut().read_to_string().with_context(|| format!("{}: the answer cannot be read", self.url))?;
        Ok(if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// Sends a body of this content type.
    pub(super) fn call(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> anyhow::Result<Value> {
        self.read(&mut self.request(method, path, ["content-type", kind], body)?)
    }

    /// Sends JSON.
    pub(super) fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(method, path, "application/json", body.to_string().into_bytes())
    }

    /// Asks for an answer in a format, to be read as it arrives.
    pub(super) fn download(&self, path: &str, accept: &str) -> anyhow::Result<Response<Body>> {
        self.request("GET", path, ["accept", accept], Vec::new())
    }

    /// Prints an answer as JSON, or a sentence.
    pub(super) fn report(&self, answer: &Value, sentence: String) -> anyhow::Result<()> {
        if self.json {
            return json::print(answer);
        }
        if !render::is_quiet() {
            writeln!(anstream::stdout().lock(), "{sentence}")?;
        }
        if let Some(warning) = answer["warning"].as_str() {
            writeln!(anstream::stderr().lock(), "{WARN}warning{WARN:#}: {}", render::printable(warning))?;
        }
        Ok(())
    }
}
