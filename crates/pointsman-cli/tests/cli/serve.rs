//! The service as a process: started without configuration, used by its clients, stopped, killed and started again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::interrupt::{signal, wait_until};
use crate::{Run, command, finish, parse_csv, workshop};

pub(crate) const TASK: &str = "abstain = 0.3\n[[route]]\nname = \"expert\"\ncost = 0.05\n";

/// A service in a folder, on a port of its own.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(command(), folder, arguments)
    }

    /// Starts a service with a command whose last argument so far is the program.
    pub(crate) fn start_with(mut serve: Command, folder: &Path, arguments: &[&str]) -> Self {
        serve.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let url = first.split_whitespace().find(|word| word.starts_with("http://")).unwrap().trim_end_matches(',');
        let service = Self { child, url: url.to_owned() };
        // The rest is read, so that the service never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        service
    }

    pub(crate) fn client(&self, folder: &Path, arguments: &str) -> Run {
        let arguments = arguments.split(' ').chain(["--url", &self.url]);
        finish(command().current_dir(folder).args(arguments))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Option<Value> {
        post(&self.url, path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.answer(path, None).json()
    }

    /// The answer to a request, whatever it is: with a body it is posted.
    pub(crate) fn answer(&self, path: &str, body: Option<&Value>) -> Answer {
        let url = format!("{}{path}", self.url);
        let response = match body {
            None => agent().get(url).call(),
            Some(body) => agent().post(url).header("content-type", "application/json").send(body.to_string()),
        };
        let mut response = response.unwrap();
        let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let text = response.body_mut().read_to_string().unwrap();
        Answer { status: response.status().as_u16(), retry_after, text }
    }
}

/// An answer of the service.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The program, run by another one with these arguments, which runs what comes after them.
pub(crate) fn run_by(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(env!("CARGO_BIN_EXE_pointsman")).stdin(Stdio::null());
    command
}

pub(crate) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .new_agent()
}

/// The answer, if there is one and it is a success.
pub(crate) fn post(url: &str, path: &str, body: &Value) -> Option<Value> {
    let request = agent().post(format!("{url}{path}")).header("content-type", "application/json");
    let mut response = request.send(body.to_string()).ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    response.status().is_success().then(|| serde_json::from_str(&text).unwrap())
}

/// A service with the deployment `d`.
pub(crate) fn deployed(folder: &Path, arguments: &[&str]) -> Service {
    deployed_with(command(), folder, arguments)
}

/// The same, started with a command whose last argument so far is the program.
pub(crate) fn deployed_with(serve: Command, folder: &Path, arguments: &[&str]) -> Service {
    fs::write(folder.join("task.toml"), TASK).unwrap();
    let service = Service::start_with(serve, folder, arguments);
    service.client(folder, "deployments put d").ok();
    service.client(folder, "versions add d router.safetensors --task task.toml --activate").ok();
    service
}

#[test]
fn answers_equal_the_command_line() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    let decided =
        crate::line(path, "decide router.safetensors heldout.csv --task task.toml --keep none -o -").ok().stdout;
    let (names, rows) = parse_csv(&decided);
    let (columns, queries) = parse_csv(&fs::read_to_string(path.join("heldout.csv")).unwrap());
    let place = |names: &[String], name: &str| names.iter().position(|other| other == name).unwrap();
    let probs: Vec<usize> =
        columns.iter().enumerate().filter(|(_, name)| name.starts_with("prob_")).map(|(i, _)| i).collect();
    let query = |row: &Vec<String>| {
        let numbers = probs.iter().map(|&i| row[i].parse::<f64>().unwrap()).collect::<Vec<_>>();
        json!({"probs": numbers})
    };
    let body = json!({"rows": queries.iter().map(query).collect::<Vec<_>>()});
    let answers = service.post("/v1/deployments/d/decide", &body).unwrap();
    for (row, answer) in rows.iter().zip(answers["rows"].as_array().unwrap()) {
        assert_eq!(answer["action"], row[place(&names, "action")]);
        assert_eq!(answer["label"], row[place(&names, "label")]);
        for (name, cost) in [("cost_predict", "predict"), ("cost_route_expert", "route:expert"), ("irreducible", "")] {
            let written: f64 = row[place(&names, name)].parse().unwrap();
            let answered = if cost.is_empty() { &answer["irreducible"] } else { &answer["costs"][cost] };
            assert_eq!(answered.as_f64().unwrap().to_bits(), written.to_bits(), "{name}");
        }
    }
    assert_eq!(rows.len(), answers["rows"].as_array().unwrap().len());
}

#[test]
fn clients_list_activate_and_roll_back() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    fs::write(path.join("dear.toml"), TASK.replace("0.05", "0.5")).unwrap();
    service.client(path, "versions add d router.safetensors --task dear.toml").ok();
    let listed = service.client(path, "versions list d --json").ok().json();
    assert_eq!(listed["versions"].as_array().unwrap().len(), 2);
    let words = service.client(path, "versions activate d 2").ok().words();
    assert!(words.contains("version 2, active"), "{words}");
    let words = service.client(path, "versions rollback d").ok().words();
    assert!(words.contains("version 1, active"), "{words}");
    service.client(path, "deployments oracle d expert --available false").ok();
    let list = service.client(path, "deployments list").ok().stdout;
    assert!(list.contains("expert") && list.contains("active"), "{list}");
    let missing = service.client(path, "versions activate d 9");
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("has no version 9"), "{missing:?}");
    service.client(path, "deployments delete d").ok();
    assert_eq!(service.client(path, "versions list d").code, 2);
}

#[test]
fn without_a_service_the_client_says_how_to_start_one() {
    let folder = workshop();
    let run = finish(command().current_dir(folder.path()).args(["deployments", "list", "--url", "http://127.0.0.1:1"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("pointsman serve"), "{run:?}");
}

/// A folder with a configuration of the deployment `d`, and the files that it names.
pub(crate) fn configured(setting: &str) -> TempDir {
    let folder = workshop();
    let config = format!("[deployments.d]\nrouter = \"router.safetensors\"\ntask = \"task.toml\"\n{setting}\n");
    fs::write(folder.path().join("task.toml"), TASK).unwrap();
    fs::write(folder.path().join("pointsman.toml"), config).unwrap();
    folder
}

#[test]
fn configured_deployments_follow_their_files() {
    let folder = configured("mode = \"shadow\"");
    let path = folder.path();
    let service = Service::start(path, &["--config", "pointsman.toml"]);
    let version = || service.get("/v1/deployments/d")["active"].as_u64().unwrap();
    assert_eq!((version(), service.get("/v1/deployments/d")["mode"].as_str().unwrap()), (1, "shadow"));
    fs::write(path.join("task.toml"), TASK.replace("0.05", "0.07")).unwrap();
    wait_until(|| version() == 2);
    // A bad file keeps what runs, and readiness says why.
    fs::write(path.join("task.toml"), "loss = \"nonsense\"").unwrap();
    wait_until(|| service.get("/readyz")["reasons"][0].as_str().is_some_and(|reason| reason.contains("task.toml")));
    assert_eq!(version(), 2);
    assert!(service.post("/v1/deployments/d/decide", &json!({"probs": [0.5, 0.3, 0.2]})).is_some());
    fs::write(path.join("task.toml"), TASK).unwrap();
    wait_until(|| version() == 3);
    assert!(service.get("/readyz")["reasons"].as_array().unwrap().is_empty());
}

#[test]
fn a_file_is_read_once_it_is_complete() {
    let folder = configured("");
    let path = folder.path();
    let service = Service::start(path, &["--config", "pointsman.toml"]);
    // Each step gives a task that could be used, and the service looks several times.
    let mut text = "abstain = 0.3\n".to_owned();
    for _ in 0..40 {
        fs::write(path.join("task.toml"), &text).unwrap();
        std::thread::sleep(Duration::from_millis(40));
        text += "# more follows\n";
    }
    fs::write(path.join("task.toml"), text + "[[route]]\nname = \"expert\"\ncost = 0.07\n").unwrap();
    let versions = || service.get("/v1/deployments/d/versions")["versions"].as_array().unwrap().clone();
    wait_until(|| versions().len() == 2);
    assert!(versions()[1]["task"].as_str().unwrap().contains("0.07"), "{:?}", versions());
    // An empty file is refused, not read as a task of defaults.
    fs::write(path.join("task.toml"), "").unwrap();
    wait_until(|| {
        service.get("/readyz")["reasons"][0].as_str().is_some_and(|reason| reason.contains("the task is empty"))
    });
    assert_eq!(versions().len(), 2);
}

/// A file that cannot be used keeps every deployment as it is, not only its own.
#[test]
fn one_bad_file_changes_no_deployment() {
    let folder = configured("[deployments.a]\nrouter = \"router.safetensors\"\ntask = \"other.toml\"");
    let path = folder.path();
    fs::write(path.join("other.toml"), TASK).unwrap();
    let service = Service::start(path, &["--config", "pointsman.toml"]);
    let versions =
        || ["a", "d"].map(|name| service.get(&format!("/v1/deployments/{name}"))["active"].as_u64().unwrap());
    assert_eq!(versions(), [1, 1]);
    // The bad one comes first, so that both have changed whenever the service looks.
    fs::write(path.join("task.toml"), TASK.replace("0.05", "-1")).unwrap();
    fs::write(path.join("other.toml"), TASK.replace("0.05", "0.07")).unwrap();
    let reason = || service.get("/readyz")["reasons"][0].as_str().map(str::to_owned);
    wait_until(|| reason().is_some_and(|reason| reason.contains("deployment d: task.toml")));
    // The service has looked twice since.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(versions(), [1, 1]);
    fs::write(path.join("task.toml"), TASK.replace("0.05", "0.06")).unwrap();
    wait_until(|| versions() == [2, 2]);
    assert_eq!(reason(), None);
}

/// Compiling takes the longest part of a start.
#[test]
fn a_start_with_the_same_files_compiles_nothing() {
    let folder = configured("");
    let path = folder.path();
    let changes = || {
        let service = Service::start(path, &["--config", "pointsman.toml"]);
        assert!(service.post("/v1/deployments/d/decide", &json!({"probs": [0.5, 0.3, 0.2]})).is_some());
        service.get("/v1/admin/log")["entries"].as_array().unwrap().len()
    };
    let first = changes();
    assert_eq!(changes(), first);
    // The same task in other words is compiled again, and gives no new version.
    fs::write(path.join("task.toml"), format!("# a remark\n{TASK}")).unwrap();
    assert_eq!(changes(), first + 1);
    let service = Service::start(path, &["--config", "pointsman.toml"]);
    assert_eq!(service.get("/v1/deployments/d")["active"], 1);
}

#[test]
fn keys_are_made_shown_once_and_disabled() {
    let folder = workshop();
    let path = folder.path();
    let exposed = finish(command().current_dir(path).args(["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(exposed.code, 2);
    assert!(exposed.stderr.contains("pointsman keys add"), "{exposed:?}");
    let service = deployed(path, &[]);
    let key = crate::line(path, "keys add app --scope read --rate 100").ok().stdout.trim().to_owned();
    assert!(key.starts_with("pk_"));
    // The running service follows.
    wait_until(|| service.client(path, "deployments list").code == 2);
    service.client(path, &format!("deployments list --key {key}")).ok();
    assert_eq!(service.client(path, &format!("deployments put e --key {key}")).code, 2);
    let list = crate::line(path, "keys list").ok().stdout;
    assert!(list.contains("app") && !list.contains(&key), "{list}");
    let disabled = crate::line(path, "keys disable app").ok();
    assert!(disabled.stderr.contains("No key is left"), "{disabled:?}");
    assert_eq!(crate::line(path, "keys disable app").code, 2);
    // Disabling the last key opens nothing.
    wait_until(|| service.client(path, &format!("deployments list --key {key}")).stderr.contains("disabled"));
    let closed = service.client(path, "deployments list");
    assert!(
        closed.code == 2 && closed.stderr.contains("--key") && closed.stderr.contains("POINTSMAN_KEY"),
        "{closed:?}"
    );
}

#[test]
fn a_mistyped_store_is_neither_read_nor_made() {
    let folder = workshop();
    let path = folder.path();
    for arguments in ["keys list", "keys add app --scope read", "keys disable app", "backup -o copy"] {
        let run = crate::line(path, &format!("{arguments} --store sqlite:mistyped.db"));
        assert!(run.code == 2 && run.stderr.contains("mistyped.db: there is no store"), "{run:?}");
        assert!(!path.join("mistyped.db").exists() && !path.join("copy").exists(), "{arguments}");
    }
    let hint = crate::line(path, "keys add app --scope read --store sqlite:mistyped.db").stderr;
    assert!(hint.contains("--new-store"), "{hint}");
    // A key before the first start is asked for in so many words.
    crate::line(path, "keys add app --scope admin --store sqlite:first.db --new-store").ok();
    assert!(crate::line(path, "keys list --store sqlite:first.db").ok().stdout.contains("app"));
    for store in ["sqlite:", "sqlite::memory:", "sqlite://pointsman.db"] {
        let run = finish(command().current_dir(path).args(["serve", "--listen", "127.0.0.1:0", "--store", store]));
        assert!(run.code == 2 && run.stderr.contains("sqlite:pointsman.db"), "{run:?}");
    }
    fs::write(path.join("file"), "").unwrap();
    for (store, wanted) in [
        ("sqlite:.", "this is a folder: give the path of a file, such as ./pointsman.db"),
        ("sqlite:file/pointsman.db", "file is a file and no folder"),
    ] {
        for arguments in ["serve --listen 127.0.0.1:0", "keys list", "keys add app --scope read --new-store"] {
            let run = crate::line(path, &format!("{arguments} --store {store}"));
            assert!(run.code == 2 && run.stderr.contains(wanted), "{arguments}: {run:?}");
        }
    }
    for listen in ["localhost:7171", "7171"] {
        let run = finish(command().current_dir(path).args(["serve", "--listen", listen]));
        assert!(run.code == 2 && run.stderr.contains("127.0.0.1:7070"), "{run:?}");
    }
}

#[test]
fn the_first_start_says_that_the_store_is_new() {
    let folder = workshop();
    for is_new in [true, false] {
        let mut serve = command();
        serve.current_dir(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = serve.stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.contains("/openapi.json")).collect();
        assert_eq!(signal(&mut child, "-TERM"), Some(0));
        assert_eq!(said.iter().any(|line| line.contains("a new store")), is_new, "{said:?}");
    }
}

#[test]
fn versions_with_other_classes_need_force() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    let table = fs::read_to_string(path.join("calibration.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    // The same columns under names in another order.
    let first = header.split(',').find_map(|name| name.strip_prefix("prob_")).unwrap();
    let renamed = header.replace(&format!("_{first}"), "_another");
    fs::write(path.join("other.csv"), format!("{renamed}\n{rows}")).unwrap();
    crate::line(path, "calibrate other.csv -o other.safetensors --partition top-class:3").ok();
    let add = "versions add d other.safetensors --task task.toml --activate";
    let refused = service.client(path, add);
    assert!(
        refused.code == 2 && refused.stderr.contains("another") && refused.stderr.contains("--force"),
        "{refused:?}"
    );
    assert_eq!(service.get("/v1/deployments/d")["active"], 1);
    let forced = service.client(path, &format!("{add} --force")).ok();
    assert!(forced.words().contains("version 2, active") && forced.stderr.contains("read differently"), "{forced:?}");
    let back = service.client(path, "versions rollback d").ok();
    assert!(back.stderr.contains("read differently"), "{back:?}");
    let refused = service.client(path, "versions activate d 2");
    assert!(refused.code == 2 && refused.stderr.contains("instead of"), "{refused:?}");
    let quiet = service.client(path, "versions activate d 2 --force -q").ok();
    assert!(quiet.stdout.is_empty(), "{quiet:?}");
}

#[test]
fn mistakes_of_clients_are_named() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    let refused = |arguments: &[&str], words: &[&str]| {
        let run = finish(command().current_dir(path).args(arguments).args(["--url", &service.url]));
        assert!(run.code == 2 && words.iter().all(|word| run.stderr.contains(word)), "{arguments:?}: {run:?}");
    };
    refused(&["versions", "add", "d", "router.safetensors"], &["router.safetensors", "--task FILE"]);
    refused(&["versions", "add", "d", "heldout.csv", "--task", "task.toml"], &["heldout.csv"]);
    refused(&["deployments", "put", "bad name"], &["cannot be a deployment's name"]);
    refused(&["versions", "list", "a/b"], &["no deployment \"a/b\""]);
    refused(&["decisions", "export", "d", "-o", "log.xlsx"], &[".parquet, .csv or .jsonl"]);
}

#[test]
fn decisions_of_a_deleted_deployment_are_exported() {
    let folder = workshop();
    let path = folder.path();
    let service = deployed(path, &[]);
    let ask = || service.post("/v1/deployments/d/decide", &json!({"probs": [0.5, 0.3, 0.2]})).unwrap();
    let first = ask()["decision_id"].as_str().unwrap().to_owned();
    let deleted = service.client(path, "deployments delete d").ok();
    assert!(deleted.words().contains("can be exported"), "{deleted:?}");
    service.client(path, "decisions export d -o gone.csv").ok();
    assert!(fs::read_to_string(path.join("gone.csv")).unwrap().contains(&first));
    service.client(path, "deployments put d").ok();
    service.client(path, "versions add d router.safetensors --task task.toml --activate").ok();
    ask();
    service.client(path, "decisions export d -o new.csv").ok();
    assert!(!fs::read_to_string(path.join("new.csv")).unwrap().contains(&first));
    assert!(service.client(path, "deployments list --deleted").ok().stdout.contains(" d "));
    let listed = service.client(path, "deployments list --deleted --json").ok().json();
    let number = listed["deployments"][0]["number"].as_u64().unwrap();
    service.client(path, &format!("decisions export d -o old.csv --number {number}")).ok();
    assert!(fs::read_to_string(path.join("old.csv")).unwrap().contains(&first));
}

#[test]
fn a_signal_to_stop_finishes_what_was_asked() {
    let folder = workshop();
    let path = folder.path();
    let mut service = deployed(path, &[]);
    let answer = service.post("/v1/deployments/d/decide", &json!({"probs": [0.5, 0.3, 0.2]})).unwrap();
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
    // Everything was moved into the database files.
    let wal = fs::read_dir(path.join("pointsman.db-log")).unwrap().filter(|entry| {
        let entry = entry.as_ref().unwrap();
        entry.path().to_string_lossy().ends_with("-wal") && entry.metadata().unwrap().len() > 0
    });
    assert_eq!(wal.count(), 0);
    let service = Service::start(path, &[]);
    let id = answer["decision_id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/v1/decisions/{id}"))["action"], answer["action"]);
}

#[test]
fn a_service_that_is_told_to_stop_says_so_before_it_does() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("p.toml"), "[server]\ndrain = \"50s\"\n").unwrap();
    let mut service = deployed(path, &["--config", "p.toml"]);
    assert_eq!(service.answer("/readyz", None).status, 200);
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    // Each of these requests has a connection of its own.
    wait_until(|| service.answer("/readyz", None).status == 503);
    assert_eq!(service.get("/readyz")["reasons"], json!(["the service is shutting down"]));
    let answer = service.post("/v1/deployments/d/decide", &json!({"probs": [0.5, 0.3, 0.2]})).unwrap();
    // A second signal does not wait, nor does that of a terminal.
    let start = Instant::now();
    assert_eq!(signal(&mut service.child, "-TERM"), Some(0));
    let mut service = Service::start(path, &["--config", "p.toml"]);
    let id = answer["decision_id"].as_str().unwrap();
    assert_eq!(service.get(&format!("/v1/decisions/{id}"))["action"], answer["action"]);
    assert_eq!(signal(&mut service.child, "-INT"), Some(0));
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}

/// The commands of the blocks for a shell, with continued lines joined.
fn shell_commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap().replace("\\\n", " ");
        commands.extend(block.lines().map(|line| line.split("  #").next().unwrap().trim().to_owned()));
    }
    commands.retain(|line| line.starts_with("pointsman ") || line.starts_with("curl "));
    commands
}

#[test]
fn commands_of_the_book_and_the_readme_run_against_a_service() {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    if !has_curl {
        pointsman_testing::announce("curl is missing: the requests of the book are not sent");
    }
    for page in ["README.md", "docs/src/production.md"] {
        let page = fs::read_to_string(crate::repository().join(page)).unwrap();
        let folder = workshop();
        let path = folder.path();
        fs::write(path.join("task.toml"), TASK).unwrap();
        let service = Service::start(path, &[]);
        let binary = Path::new(env!("CARGO_BIN_EXE_pointsman")).parent().unwrap();
        let search = std::env::join_paths(
            [binary.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let commands: Vec<String> = shell_commands(&page)
            .into_iter()
            .filter(|line| ["localhost", "intents", "keys ", "log.parquet"].iter().any(|part| line.contains(part)))
            .collect();
        assert!(commands.len() >= 4, "{commands:?}");
        for line in commands.iter().filter(|line| has_curl || !line.starts_with("curl")) {
            let sent = line
                .replace("curl ", "curl -sS --fail-with-body ")
                .replace("http://", "")
                .replace("localhost:7070", &service.url);
            let output = Command::new("sh")
                .args(["-c", &sent])
                .current_dir(path)
                .env("PATH", search.as_ref().unwrap())
                .env("POINTSMAN_URL", &service.url)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {said}");
        }
    }
}
