//! `docs/api.md` is written from the description of the interface.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::support::Service;

/// What writes the page anew.
const RENEW: &str = "POINTSMAN_TEST_WRITE_API=1 cargo test -p pointsman-server --test server api_page";

const INTRODUCTION: &str = "\
# The HTTP interface

Every address of `pointsman serve`, as `/openapi.json` describes it. The chapter *In production* of the book says how to run the service.

- Bodies and answers are JSON unless an endpoint says otherwise.
- What is refused has the status of its reason and a problem document (RFC 9457, `application/problem+json`): `type`, `title`, `status`,
  `detail`, and `pointer`, the field that is wrong.
- Callers send `Authorization: Bearer pk_…`. On a loopback address no key is needed until there is one; disabling the last key
  opens nothing. 401 (with `WWW-Authenticate: Bearer`) means that the key is missing or unknown, 403 that it lacks the scope or that a
  browser sends the request for another site, 429 that it makes too many requests. `admin` includes all scopes.
- 503 has the header `Retry-After`: nothing was committed, and the request can be sent again.
- Unknown fields of a body are refused (422), and unknown parameters of an address that takes some: a mistyped one is not ignored.

<!-- Written by a test of crates/pointsman-server, which says how if the page is stale. -->
";

/// Values of path parameters in the examples.
const PATH_VALUES: [(&str, &str); 4] = [
    ("{deployment}", "intents"),
    ("{version}", "2"),
    ("{oracle}", "expert"),
    ("{id}", "019a8b5e-7c3f-7d21-9a4e-2f6d1c0b8e55"),
];

#[tokio::test]
async fn the_page_of_the_interface_is_current() {
    let document = Service::new().await.get("/openapi.json").await.ok();
    let page = Page { document: &document, text: String::new() }.render();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    if std::env::var_os("POINTSMAN_TEST_WRITE_API").is_some() {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(current == page, "docs/api.md is not what /openapi.json describes; write it anew:\n    {RENEW}");
}

/// Whether a value is what a schema allows, as far as this interface uses schemas.
fn fits(value: &Value, schema: &Value, document: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return fits(value, &document["components"]["schemas"][name], document);
    }
    for choice in ["oneOf", "anyOf"] {
        if schema[choice].is_array() {
            return items(&schema[choice]).any(|one| fits(value, one, document));
        }
    }
    let is_kind = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        kind => kind == "null" && value.is_null(),
    };
    let is_allowed = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is_kind),
        kind => is_kind(kind),
    };
    let has_fields = items(&schema["required"]).all(|name| !value[name.as_str().unwrap_or_default()].is_null());
    let fields = entries(value).all(|(name, field)| match &schema["properties"][name] {
        Value::Null if schema["additionalProperties"].is_object() => {
            fits(field, &schema["additionalProperties"], document)
        }
        // A type with fields has no others; one without may have any.
        Value::Null => !schema["properties"].is_object(),
        known => fits(field, known, document),
    });
    is_allowed && has_fields && fields && items(value).all(|item| fits(item, &schema["items"], document))
}

#[tokio::test]
async fn examples_are_what_their_schemas_allow() {
    let service = Service::new().await;
    let document = service.get("/openapi.json").await.ok();
    let mut examples = 0;
    for (path, methods) in entries(&document["paths"]) {
        for (method, operation) in entries(methods) {
            let body = &operation["requestBody"]["content"]["application/json"];
            if !body.is_null() {
                assert!(fits(&body["example"], &body["schema"], &document), "{method} {path}: {body}");
                examples += 1;
            }
        }
    }
    assert!(examples >= 6, "{examples}");
    let probs = &document["components"]["schemas"]["DecideBody"]["properties"]["probs"];
    for (value, is_allowed) in [("[0.5, 0.5]", true), (r#"{"a": 0.5}"#, true), ("[\"a\"]", false), ("0.5", false)] {
        assert_eq!(fits(&serde_json::from_str(value).unwrap(), probs, &document), is_allowed, "{value}: {probs}");
    }
    let file = &document["paths"]["/v1/files"]["post"]["requestBody"]["content"]["application/octet-stream"]["schema"];
    assert_eq!((&file["type"], &file["format"]), (&Value::from("string"), &Value::from("binary")), "{file}");
}

struct Page<'a> {
    document: &'a Value,
    text: String,
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// What a field means; where it refers to a type or to nothing, the description is that of the reference.
fn meaning(field: &Value) -> &str {
    let described = |value: &&Value| value["description"].is_string();
    text(items(&field["oneOf"]).find(described).unwrap_or(field), "description")
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The kind of values that a schema allows, in words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`").replace('"', "")).collect::<Vec<_>>().join(", ");
    }
    for choice in ["oneOf", "anyOf"] {
        if schema[choice].is_array() {
            return items(&schema[choice]).map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        several => items(several).filter_map(Value::as_str).collect(),
    };
    let word = |name: &&str| match *name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "string" if schema["format"] == "binary" => "bytes".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    };
    if types.is_empty() { "any".to_owned() } else { types.iter().map(word).collect::<Vec<_>>().join(" or ") }
}

impl Page<'_> {
    fn render(mut self) -> String {
        self.text.push_str(INTRODUCTION);
        for tag in items(&self.document["tags"]) {
            let name = text(tag, "name");
            let (first, rest) = name.split_at(1);
            let _ = write!(self.text, "\n## {}{rest}\n\n{}.\n", first.to_uppercase(), text(tag, "description"));
            for (path, methods) in entries(&self.document["paths"]) {
                for (method, operation) in entries(methods) {
                    if items(&operation["tags"]).any(|other| other == name) {
                        self.operation(path, &method.to_uppercase(), operation);
                    }
                }
            }
        }
        self.text.push_str("\n## Types\n");
        for (name, schema) in entries(&self.document["components"]["schemas"]) {
            let _ = write!(self.text, "\n### {name}\n\n{}\n", text(schema, "description"));
            self.fields(schema);
        }
        self.text
    }

    fn operation(&mut self, path: &str, method: &str, operation: &Value) {
        let scopes: Vec<String> = items(&operation["security"])
            .flat_map(entries)
            .flat_map(|(_, scopes)| items(scopes))
            .map(|scope| format!("`{}`", scope.as_str().unwrap_or_default()))
            .collect();
        let scope = if scopes.is_empty() { "no key".to_owned() } else { format!("scope {}", scopes.join(", ")) };
        let _ = write!(self.text, "\n### {}\n\n`{method} {path}` · {scope}\n", text(operation, "summary"));
        let description = text(operation, "description").trim();
        if !description.is_empty() {
            let _ = write!(self.text, "\n{description}\n");
        }
        if items(&operation["parameters"]).next().is_some() {
            self.text.push_str("\n| parameter | in | type | meaning |\n|---|---|---|---|\n");
        }
        for parameter in items(&operation["parameters"]) {
            let (name, place, meaning) =
                (text(parameter, "name"), text(parameter, "in"), text(parameter, "description"));
            let kind = kind(&parameter["schema"]).replace(" or null", "");
            let _ = writeln!(self.text, "| `{name}` | {place} | {} | {} |", cell(&kind), cell(meaning));
        }
        for (content_type, content) in entries(&operation["requestBody"]["content"]) {
            let _ = write!(self.text, "\nBody, `{content_type}`: {}\n", kind(&content["schema"]));
        }
        self.text.push_str("\n| status | answer | |\n|---|---|---|\n");
        for (status, response) in entries(&operation["responses"]) {
            let answers: Vec<String> = entries(&response["content"])
                .map(|(content_type, content)| match content_type.as_str() {
                    "application/json" | "application/problem+json" => kind(&content["schema"]),
                    other => format!("`{other}`"),
                })
                .collect();
            let meaning = cell(text(response, "description"));
            let _ = writeln!(self.text, "| {status} | {} | {meaning} |", cell(&answers.join(", ")));
        }
        let _ = write!(self.text, "\n```sh\n{}\n```\n", curl(path, method, operation));
    }

    /// The fields of a type, those of its parts included.
    fn fields(&mut self, schema: &Value) {
        let mut rows = Vec::new();
        collect(schema, self.document, &mut rows);
        if rows.is_empty() {
            if schema["enum"].is_array() || schema["type"].is_string() {
                let _ = write!(self.text, "\n{}\n", kind(schema));
            }
            for choice in items(&schema["oneOf"]) {
                let _ = write!(self.text, "\n- {}: {}", kind(choice), cell(text(choice, "description")));
            }
            self.text.push_str(if schema["oneOf"].is_array() { "\n" } else { "" });
            return;
        }
        self.text.push_str("\n| field | type | meaning |\n|---|---|---|\n");
        self.text.extend(rows);
    }
}

/// The rows of a type's fields.
fn collect(schema: &Value, document: &Value, rows: &mut Vec<String>) {
    for part in items(&schema["allOf"]) {
        let name = part["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        collect(name.map_or(part, |name| &document["components"]["schemas"][name]), document, rows);
    }
    for (name, field) in entries(&schema["properties"]) {
        let is_required = items(&schema["required"]).any(|other| other == name);
        let kind = kind(field);
        let kind = if is_required || kind.contains("null") { kind } else { format!("{kind}, optional") };
        rows.push(format!("| `{name}` | {} | {} |\n", cell(&kind), cell(meaning(field))));
    }
}

/// The request as a command.
fn curl(path: &str, method: &str, operation: &Value) -> String {
    let address = PATH_VALUES.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let content = entries(&operation["requestBody"]["content"]).next();
    let verb = match (method, content.is_some()) {
        ("GET", _) | ("POST", true) => String::new(),
        _ => format!("-X {method} "),
    };
    let mut command = format!("curl {verb}localhost:7070{address}");
    match content {
        Some((kind, content)) if kind == "application/json" => {
            let example = &content["example"];
            assert!(!example.is_null(), "{method} {path} has no example of its body");
            let example = example.to_string().replace('\'', "'\\''");
            let _ = write!(command, " \\\n    -H 'content-type: application/json' -d '{example}'");
        }
        Some((kind, _)) => {
            let _ = write!(command, " \\\n    -H 'content-type: {kind}' --data-binary @router.safetensors");
        }
        None => {}
    }
    let formats = &operation["responses"]["200"]["content"];
    for (kind, extension) in [("text/csv", "csv"), ("application/vnd.apache.parquet", "parquet")] {
        if !formats[kind].is_null() {
            let _ = write!(command, "\ncurl localhost:7070{address} -H 'accept: {kind}' -o log.{extension}");
        }
    }
    command
}
