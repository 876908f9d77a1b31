//! What the service and its clients tell an operator: on the terminal at the start, in the log, and in lists.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::interrupt::{signal, wait_until};
use crate::serve::{Service, TASK, configured, deployed};
use crate::{command, finish, workshop};

/// A service whose output and log are in files.
struct Watched<'a> {
    child: Child,
    folder: &'a Path,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Watched<'a> {
    fn start(folder: &'a Path, arguments: &[&str]) -> Self {
        Self::start_with(command(), folder, arguments)
    }

    fn start_with(mut serve: Command, folder: &'a Path, arguments: &[&str]) -> Self {
        let file = |name: &str| Stdio::from(File::create(folder.join(name)).unwrap());
        serve.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let child = serve.stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let service = Self { child, folder };
        wait_until(|| service.said().contains("/openapi.json"));
        service
    }

    /// What it has written to the terminal.
    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("out")).unwrap()
    }

    /// What it has written to its log.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("err")).unwrap()
    }

    /// Waits until the log has these words, and returns the line with them.
    #[track_caller]
    fn logged(&self, words: &str) -> String {
        wait_until(|| self.log().contains(words));
        self.log().lines().find(|line| line.contains(words)).unwrap().to_owned()
    }

    fn hang_up(&self) {
        assert!(Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status().unwrap().success());
    }
}

#[test]
fn a_configuration_that_is_read_again_says_what_holds_and_what_does_not() {
    let folder = configured("mode = \"shadow\"");
    let path = folder.path();
    let service = Watched::start(path, &["--config", "pointsman.toml"]);
    service.hang_up();
    service.logged("the configuration was read again: no deployment has changed");
    assert!(!service.log().contains("WARN"), "flags are no change of the configuration: {}", service.log());
    fs::write(path.join("task.toml"), TASK.replace("0.05", "0.07")).unwrap();
    service.logged("the configuration was read again: d has version 2, mode shadow");
    assert!(!service.log().contains("WARN"), "{}", service.log());
    let config = fs::read_to_string(path.join("pointsman.toml")).unwrap();
    let more = "[limits]\nrows = 5\n[store]\nqueue_rows = 7\n[retention]\ninputs = \"2h\"\n";
    fs::write(path.join("pointsman.toml"), more.to_owned() + &config.replace("shadow", "active")).unwrap();
    service.logged("d has version 2, mode active");
    let warning = service.logged("after a restart");
    assert!(warning.contains("WARN"), "{warning}");
    assert!(warning.ends_with("queue_rows of [store], rows of [limits]"), "{warning}");
}

#[test]
fn a_deployment_that_the_configuration_leaves_out_goes_on_with_a_warning() {
    let folder = configured("[deployments.b]\nrouter = \"router.safetensors\"\ntask = \"task.toml\"");
    let path = folder.path();
    let service = Watched::start(path, &["--config", "pointsman.toml"]);
    let config = fs::read_to_string(path.join("pointsman.toml")).unwrap();
    fs::write(path.join("pointsman.toml"), config.split("[deployments.b]").next().unwrap()).unwrap();
    let left_out =
        "deployment b is no longer in the configuration and goes on as it is; `pointsman deployments delete b`";
    assert!(service.logged(left_out).contains("WARN"));
    drop(service);
    // So does a start that finds it in the store.
    Watched::start(path, &["--config", "pointsman.toml"]).logged(left_out);
}

#[test]
fn without_a_configuration_file_none_is_read_again() {
    let folder = workshop();
    let service = Watched::start(folder.path(), &[]);
    service.hang_up();
    service.logged("there is no configuration file to read again");
    assert!(!service.log().contains("was read again"), "{}", service.log());
}

#[test]
fn variables_that_set_nothing_are_warned_about() {
    let folder = workshop();
    let mut serve = command();
    serve.env("POINTSMAN_LISTEN", "127.0.0.1:9").env("POINTSMAN_LOG", "info").env("POINTSMAN_LIMITS_ROWS", "9");
    let service = Watched::start_with(serve, folder.path(), &[]);
    let warnings: Vec<String> =
        service.log().lines().filter(|line| line.contains("sets nothing")).map(str::to_owned).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("POINTSMAN_LISTEN sets nothing"), "{}", service.log());
}

#[test]
fn the_start_shows_a_request_that_works() {
    let folder = workshop();
    let path = folder.path();
    let mut first = deployed(path, &[]);
    first.client(path, "deployments oracle d expert --available false").ok();
    assert_eq!(signal(&mut first.child, "-TERM"), Some(0));
    let open = Watched::start(path, &[]);
    assert!(open.said().contains("route:expert (unavailable)"), "{}", open.said());
    assert!(!open.said().contains("Bearer"), "{}", open.said());
    drop(open);
    crate::line(path, "keys add app --scope decide").ok();
    let said = Watched::start(path, &[]).said();
    assert!(said.contains("/decide -H 'authorization: Bearer pk_…' -H 'content-type"), "{said}");
    assert!(said.contains("with a key, which requests need"), "{said}");
}

#[test]
fn a_start_that_fails_leaves_no_store_behind() {
    let folder = workshop();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for listen in [address.as_str(), "0.0.0.0:0"] {
        let run = finish(command().current_dir(folder.path()).args(["serve", "--listen", listen]));
        assert!(run.code != 0 && run.stderr.contains(listen), "{run:?}");
        let is_open = listen == "0.0.0.0:0";
        assert_eq!(run.stderr.contains("make a key first"), is_open, "{run:?}");
        assert_eq!(run.stderr.contains("POINTSMAN_SERVER_PUBLIC_URL"), is_open, "{run:?}");
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.starts_with("pointsman.db")).collect::<Vec<_>>(), [""; 0], "{listen}");
    }
    // A configuration whose files cannot be used, in part.
    let folder = configured("[deployments.e]\nrouter = \"router.safetensors\"\ntask = \"other.toml\"");
    let path = folder.path();
    for (task, wanted) in
        [(None, "other.toml: No such file"), (Some("# nothing"), "other.toml: line 1: the task is empty")]
    {
        task.into_iter().for_each(|text| fs::write(path.join("other.toml"), text).unwrap());
        let run = crate::line(path, "serve --listen 127.0.0.1:0 --config pointsman.toml");
        assert!(run.code == 2 && run.stderr.contains(wanted), "{run:?}");
        let left = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name.starts_with("pointsman.db")).collect::<Vec<_>>(), [""; 0], "{wanted}");
    }
}

#[test]
fn changes_of_keys_are_promised_within_a_second() {
    let folder = workshop();
    let path = folder.path();
    let added = crate::line(path, "keys add app --scope admin --new-store").ok();
    assert!(added.stderr.contains("Within a second every request needs a key"), "{added:?}");
    let second = crate::line(path, "keys add other --scope read").ok();
    assert!(second.stderr.contains("a running service takes it within a second"), "{second:?}");
    crate::line(path, "keys disable other").ok();
    let disabled = crate::line(path, "keys disable app").ok();
    assert!(disabled.words().contains("a running service refuses it within a second"), "{disabled:?}");
}

#[test]
fn versions_are_listed_with_their_date_loss_and_prices() {
    let folder = workshop();
    let path = folder.path();
    let service: Service = deployed(path, &[]);
    fs::write(path.join("dear.toml"), format!("loss = \"zero-one\"\n{}", TASK.replace("0.05", "0.25"))).unwrap();
    service.client(path, "versions add d router.safetensors --task dear.toml").ok();
    let listed = service.client(path, "versions list d").ok().stdout;
    for words in ["brier", "expert 0.05, abstain 0.3", "zero-one", "expert 0.25, abstain 0.3", " 20"] {
        assert!(listed.contains(words), "{words}:\n{listed}");
    }
}

#[test]
fn changes_by_clients_are_logged() {
    let folder = workshop();
    let path = folder.path();
    let service = Watched::start(path, &[]);
    let said = service.said();
    let url = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap().trim_end_matches(',');
    fs::write(path.join("task.toml"), TASK).unwrap();
    for arguments in [
        "deployments put d --mode shadow",
        "versions add d router.safetensors --task task.toml --activate",
        "deployments oracle d expert --available false",
        "deployments delete d",
    ] {
        crate::line(path, &format!("{arguments} --url {url}")).ok();
    }
    let changes = [
        "put deployment d, mode shadow",
        "add version 1 to d and activate it",
        "mark oracle expert of d as unavailable",
        "delete deployment d",
    ];
    for change in changes {
        let line = service.logged(change);
        assert!(line.contains("INFO") && line.contains("by=\"loopback\""), "{line}");
    }
}

#[test]
fn mistakes_of_clients_name_files_and_what_to_write() {
    let folder = workshop();
    let path = folder.path();
    let service: Service = deployed(path, &[]);
    fs::write(path.join("bad.toml"), "abstain = 0.3\nsurprise = 1\n").unwrap();
    let refused = |arguments: &str, words: &str| {
        let run = crate::line(path, arguments);
        assert!(run.code == 2 && run.stderr.contains(words), "{arguments}: {run:?}");
    };
    let url = &service.url;
    refused(&format!("versions add d router.safetensors --task bad.toml --url {url}"), "error: bad.toml: ");
    refused(&format!("versions add d heldout.csv --url {url}"), "heldout.csv: this is neither a router file nor");
    refused("deployments list --url 127.0.0.1:7070", "write http://127.0.0.1:7070");
    refused("versions add d router.safetensors --task task.toml --url localhost:7070", "write http://localhost:7070");
    refused("deployments list --url ftp://localhost", "it begins with http:// or https://");
    refused("serve --listen localhost:7072", "give an IP address and a port, as in 127.0.0.1:7070");
    refused(&format!("deployments put .b --url {url}"), "the first one not .");
}

#[test]
fn the_help_says_that_files_are_watched_and_shows_a_configuration() {
    let help = finish(command().args(["serve", "--help"])).ok().stdout;
    for words in ["[deployments.intents]", "are watched", "need a restart", "POINTSMAN_LOG"] {
        assert!(help.contains(words), "{words}:\n{help}");
    }
}
