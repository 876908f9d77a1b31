//! Secrets are not repeated: neither in answers, logs, metrics and exports nor in files, wherever a key or a password was sent or written.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::interrupt::{signal, wait_until};
use crate::serve::{Service, TASK, run_by};
use crate::{line, workshop};

/// Fails if bytes have a secret in them.
#[track_caller]
fn assert_without(secret: &str, bytes: &[u8], what: &str) {
    let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
    assert!(!found, "{what} repeats a secret: {}", String::from_utf8_lossy(bytes));
}

/// All files of a folder, of whatever depth.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// A service that writes every line of its log to the file `log`.
fn with_log(folder: &Path, arguments: &[&str]) -> Service {
    let script = "export POINTSMAN_LOG=trace; exec \"$@\" 2>>log";
    Service::start_with(run_by("sh", &["-c", script, "sh"]), folder, arguments)
}

/// The answer to bytes that are sent as they are.
fn send(service: &Service, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(service.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A connection that is ended without an answer repeats nothing either.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Requests with a key in the right place, and in wrong ones.
fn requests(key: &str) -> Vec<String> {
    const DECIDE: &str = "POST /v1/deployments/d/decide";
    let request = |start: &str, headers: &str, body: &str| {
        let length = body.len();
        format!("{start} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}")
    };
    let right = format!("authorization: Bearer {key}\r\n");
    let mut all = vec![request("GET /v1/deployments", &right, "")];
    for header in [
        format!("authorization: {key}"),
        format!("authorization: Basic {key}"),
        format!("authorization: Bearer {key}x"),
        format!("authorization: Bearer {key} {key}"),
        format!("authorization: Bearer{key}"),
        format!("authorization: Bearer {key}\u{1}"),
        format!("authorization Bearer {key}"),
        format!("authorization: Bearer x\r\nauthorization: Bearer {key}"),
        format!("x-api-key: {key}"),
        format!("cookie: key={key}"),
        format!("x-request-id: {key}"),
        format!("{key}: 1"),
    ] {
        all.push(request("GET /v1/deployments", &format!("{header}\r\n"), ""));
    }
    for path in ["/v1/decisions/KEY", "/v1/deployments/KEY", "/v1/deployments/KEY/decisions", "/KEY", "/v1/KEY?KEY"] {
        all.push(request(&format!("GET {}", path.replace("KEY", key)), &right, ""));
        all.push(request(&format!("GET {}", path.replace("KEY", key)), "", ""));
    }
    let parameters = ["key=KEY", "KEY=1", "from=KEY", "after=KEY", "limit=KEY", "tag=KEY", "action=KEY", "cell=KEY"];
    for parameters in parameters {
        let path = format!("/v1/deployments/d/decisions?{}", parameters.replace("KEY", key));
        all.push(request(&format!("GET {path}"), &right, ""));
        all.push(request(&format!("GET {path}"), "", ""));
    }
    for body in [
        "KEY",
        "\"KEY\"",
        r#"{"probs": [1, 0, 0], "KEY": 1}"#,
        r#"{"probs": "KEY"}"#,
        r#"{"probs": {"KEY": 1}}"#,
        r#"{"probs": [1, 0, 0], "explain": "KEY"}"#,
        r#"{"rows": [{"KEY": 1}]}"#,
    ] {
        let body = body.replace("KEY", key);
        for kind in ["application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream", key] {
            all.push(request(DECIDE, &format!("{right}content-type: {kind}\r\n"), &body));
        }
        all.push(request("POST /v2/models/d/infer", &right, &body));
        all.push(request(
            "POST /v1/deployments/d/what-if",
            &format!("{right}content-type: application/json\r\n"),
            &body,
        ));
    }
    let tensor =
        format!(r#"{{"inputs": [{{"name": "{key}", "shape": [1, 3], "datatype": "{key}", "data": ["{key}"]}}]}}"#);
    all.push(request("POST /v2/models/d/infer", &right, &tensor));
    let task = format!(r#"{{"task": "loss = \"{key}\""}}"#);
    all.push(request("POST /v1/deployments/d/what-if", &format!("{right}content-type: application/json\r\n"), &task));
    all.push(request(DECIDE, &format!("{right}content-encoding: {key}\r\n"), "{}"));
    all.push(request("GET /v1/deployments/d/decisions", &format!("{right}accept: {key}\r\n"), ""));
    all.push(request(&format!("{key} /v1/deployments"), &right, ""));
    all
}

#[test]
fn keys_are_repeated_nowhere_wherever_they_were_sent() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("task.toml"), TASK).unwrap();
    let key = line(path, "keys add canary --scope admin --new-store").ok().stdout.trim().to_owned();
    let secret = key.rsplit('_').next().unwrap().to_owned();
    for format in ["text", "json"] {
        let mut service = with_log(path, &["--log-format", format]);
        let client = |arguments: &str| service.client(path, &format!("{arguments} --key {key}"));
        client("deployments put d").ok();
        client("versions add d router.safetensors --task task.toml --activate").ok();
        let decide = r#"{"probs": [0.5, 0.3, 0.2], "id": "q"}"#;
        let length = decide.len();
        let good = format!(
            "POST /v1/deployments/d/decide HTTP/1.1\r\nhost: h\r\nconnection: close\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\r\n{decide}"
        );
        assert!(send(&service, &good).starts_with(b"HTTP/1.1 200"));
        let mut answered = 0;
        for request in requests(&key) {
            let answer = send(&service, &request);
            assert_without(&secret, &answer, &request);
            answered += usize::from(answer.starts_with(b"HTTP/1.1 "));
        }
        assert!(answered > 70, "{answered} answers");
        for accept in ["application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"] {
            let request = format!(
                "GET /v1/deployments/d/decisions HTTP/1.1\r\nhost: h\r\nconnection: close\r\nauthorization: Bearer {key}\r\naccept: {accept}\r\n\r\n"
            );
            let export = send(&service, &request);
            assert!(export.starts_with(b"HTTP/1.1 200"));
            assert_without(&secret, &export, accept);
        }
        for open in ["/metrics", "/readyz", "/openapi.json"] {
            assert_without(&secret, service.answer(open, None).text.as_bytes(), open);
        }
        let other = if key.ends_with('x') { 'y' } else { 'x' };
        let wrong = format!("{}{other}", &key[..key.len() - 1]);
        let refused = service.client(path, &format!("deployments list --key {wrong}"));
        assert_eq!(refused.code, 2);
        for run in [client("admin-log"), client("deployments list --json"), line(path, "keys list"), refused] {
            assert_without(&secret[..secret.len() - 1], format!("{run:?}").as_bytes(), "the command line");
        }
        line(path, &format!("backup -o copy-{format}")).ok();
        assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
        assert!(
            fs::read_to_string(path.join("log")).unwrap().contains("a request was answered"),
            "the log has all lines"
        );
    }
    for file in files(path) {
        assert_without(&secret, &fs::read(&file).unwrap(), &file.display().to_string());
    }
}

#[test]
fn passwords_of_a_store_are_repeated_nowhere_wherever_they_are_wrong() {
    const PASSWORD: &str = "canary-of-the-store";
    let folder = workshop();
    let path = folder.path();
    let addresses = [
        format!("postgres://u:{PASSWORD}@127.0.0.1:1/d"),
        format!("postgress://u:{PASSWORD}@127.0.0.1/d"),
        format!("postgres://u:{PASSWORD}@127.0.0.1:port/d"),
        format!("postgres://u:{PASSWORD}@127.0.0.1/d?sslmode={PASSWORD}"),
        format!("u:{PASSWORD}@127.0.0.1/d"),
    ];
    for address in &addresses {
        for command in ["serve --listen 127.0.0.1:0", "keys list", "keys add a --scope read", "backup -o copy"] {
            let run = line(path, &format!("{command} --store {address}"));
            assert_eq!(run.code, 2, "{run:?}");
            assert_without(PASSWORD, format!("{run:?}").as_bytes(), command);
        }
    }
    // A file that becomes wrong while the service runs shows in readiness, which everybody may read, and in the log.
    fs::write(path.join("p.toml"), "").unwrap();
    let service = with_log(path, &["--config", "p.toml"]);
    let mut texts: Vec<String> =
        addresses[1..].iter().map(|address| format!("[store]\nurl = \"{address}\"\n")).collect();
    texts.push(format!("[store]\nurl = \"{}\n", addresses[0]));
    texts.push(format!("[store]\nurl = {}\n", addresses[0]));
    texts.push(format!("[store]\npassword = \"{PASSWORD}\"\n"));
    for text in texts {
        let lines =
            || fs::read_to_string(path.join("log")).unwrap().matches("the configuration cannot be used").count();
        let before = lines();
        // As a whole, since half of a file may be a right one.
        fs::write(path.join("new.toml"), &text).unwrap();
        fs::rename(path.join("new.toml"), path.join("p.toml")).unwrap();
        wait_until(|| lines() > before);
        let ready = service.answer("/readyz", None);
        assert!(ready.text.contains("the configuration cannot be used"), "{ready:?}");
        assert_without(PASSWORD, ready.text.as_bytes(), &text);
    }
    assert_without(PASSWORD, &fs::read(path.join("log")).unwrap(), "the log");
}
