//! A PostgreSQL server of the tests' own: made in a temporary folder, and stopped when the test program ends.

use std::ffi::OsString;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// The variable that names a server to use instead, as `postgres://user:password@host:5432/postgres`.
pub const VARIABLE: &str = "POINTSMAN_TEST_POSTGRES";

/// The password of the only user of a server that was started here.
const PASSWORD: &str = "canary-of-the-database";

const USER: &str = "pointsman";

/// A server.
#[derive(Debug)]
pub struct Cluster {
    /// The address without the name of a database.
    base: String,
    /// What comes after the name of the database.
    parameters: String,
    /// The server that was started here, if it was.
    own: Option<Own>,
}

/// A server that was started here.
#[derive(Debug)]
struct Own {
    folder: TempDir,
    tools: PathBuf,
    /// Stops the server and deletes its files when its standard input ends: also if this process is killed.
    guard: Child,
}

/// A database of a cluster, dropped with this value.
#[derive(Debug)]
pub struct Database {
    /// Its address, with the password.
    pub url: String,
    name: String,
    admin: String,
}

/// The server that the tests of one program share; `None`, after saying so, if there can be none.
///
/// # Panics
/// If a server is there and does not start, or if there is none and the variable `CI` is `true`.
pub fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = SHARED.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(url) => Some(Cluster::at(&url)),
        Err(_) => Cluster::start(&[]),
    });
    if cluster.is_none() {
        crate::skip(&format!("no PostgreSQL: install it, or set {VARIABLE} to the address of a server"));
    }
    cluster.as_ref()
}

/// A server that this test alone uses, with these settings, since it stops it or changes it; `None`, after saying so, if there can be none.
///
/// # Panics
/// As [`shared`].
pub fn private(settings: &[&str]) -> Option<Cluster> {
    let cluster = Cluster::start(settings);
    if cluster.is_none() {
        // A server that is named by its address cannot be stopped.
        match std::env::var_os(VARIABLE) {
            Some(_) => crate::announce("no PostgreSQL on this machine: what happens when it stops is not tested"),
            None => crate::skip("no PostgreSQL on this machine: what happens when it stops is not tested"),
        }
    }
    cluster
}

/// The folder of PostgreSQL's programs: the newest of Debian's, or the one where `postgres` is found.
fn tools() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .filter(|(_, path)| path.join("initdb").is_file())
        .collect();
    found.sort();
    let newest = found.pop().map(|(_, path)| path);
    newest.or_else(|| {
        let search = std::env::var_os("PATH")?;
        std::env::split_paths(&search).find(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())
    })
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The user who runs the server, if it cannot be the present one.
fn other_user() -> Option<&'static str> {
    let exists =
        |user: &&str| Command::new("id").args(["-u", user]).output().is_ok_and(|output| output.status.success());
    is_root().then(|| ["postgres", "nobody"].into_iter().find(exists)).flatten()
}

/// A command that runs as the server's user.
fn as_user(program: impl Into<OsString>) -> Command {
    match other_user() {
        None => Command::new(program.into()),
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", user, "--"]).arg(program.into());
            command
        }
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = || String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}", said());
}

fn append(path: &Path, lines: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
}

fn chown(path: &Path) {
    if let Some(user) = other_user() {
        run(Command::new("chown").arg(user).arg(path));
    }
}

impl Cluster {
    /// The server of an address.
    fn at(url: &str) -> Self {
        let (address, parameters) = url.split_once('?').map_or((url, String::new()), |(a, p)| (a, format!("?{p}")));
        let scheme = address.find("://").map_or(0, |place| place + 3);
        let end = address[scheme..].find('/').map_or(address.len(), |place| scheme + place);
        Self { base: address[..end].to_owned(), parameters, own: None }
    }

    /// Makes and starts a server; `None` if PostgreSQL is not installed.
    fn start(settings: &[&str]) -> Option<Self> {
        let tools = tools()?;
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path());
        let data = folder.path().join("data");
        let password = folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        chown(&password);
        run(as_user(tools.join("initdb"))
            .current_dir("/")
            .args(["-A", "scram-sha-256", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", "--pwfile"])
            .arg(&password)
            .arg("-D")
            .arg(&data));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut lines = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\nshared_buffers = '32MB'\n"
        );
        lines.extend(settings.iter().map(|line| format!("{line}\n")));
        append(&data.join("postgresql.conf"), &lines);
        let guard = guard(&tools, folder.path());
        let base = format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{port}");
        let own = Own { folder, tools, guard };
        let cluster = Self { base, parameters: String::new(), own: Some(own) };
        cluster.resume();
        Some(cluster)
    }

    /// Takes a certificate and its key into the settings of a server that is stopped; it offers encryption from its next start.
    ///
    /// # Panics
    /// If the files cannot be copied.
    pub fn encrypt(&self, certificate: &Path, key: &Path) {
        let Some(own) = &self.own else { return };
        let data = own.folder.path().join("data");
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            std::fs::copy(from, &to).unwrap();
            run(Command::new("chmod").arg("600").arg(&to));
            chown(&to);
        }
        append(&data.join("postgresql.conf"), "ssl = on\n");
    }

    fn control(&self, arguments: &[&str]) {
        let Some(own) = &self.own else { return };
        run(as_user(own.tools.join("pg_ctl"))
            .current_dir("/")
            .arg("-D")
            .arg(own.folder.path().join("data"))
            .arg("-l")
            .arg(own.folder.path().join("log"))
            .args(["-w", "-t", "60"])
            .args(arguments));
    }

    /// Stops the server: `fast`, or `immediate` as if it had crashed.
    pub fn stop(&self, mode: &str) {
        self.control(&["stop", "-m", mode]);
    }

    /// Starts the server again after it was stopped.
    pub fn resume(&self) {
        self.control(&["start"]);
    }

    fn url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.base, self.parameters)
    }

    /// A new, empty database.
    #[must_use]
    pub fn database(&self) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("pointsman_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let admin = self.url("postgres");
        execute(&admin, &format!("CREATE DATABASE {name}"));
        Database { url: self.url(&name), name, admin }
    }
}

/// Starts the process that stops the server when this one ends, however it ends.
fn guard(tools: &Path, folder: &Path) -> Child {
    let script = "trap '' INT TERM HUP; read -r _; \"$1/pg_ctl\" -D \"$2/data\" -m immediate stop; rm -rf \"$2\"";
    let mut command = as_user("sh");
    command.current_dir("/").args(["-c", script, "guard"]).arg(tools).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

impl Database {
    /// The password in its address, which tests look for where it must not be.
    #[must_use]
    pub fn password(&self) -> &str {
        let credentials =
            self.url.split_once("://").and_then(|(_, rest)| rest.split_once('@')).map(|(before, _)| before);
        credentials.and_then(|credentials| credentials.split_once(':')).map_or("no password", |(_, password)| password)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A server that has gone took it along.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = std::panic::catch_unwind(|| execute(&self.admin, &drop));
    }
}

/// Runs SQL commands at an address.
///
/// # Panics
/// If they fail.
pub fn execute(url: &str, sql: &str) {
    query(url, sql);
}

/// The rows that SQL commands give, as text.
///
/// # Panics
/// If they fail.
pub fn query(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let work = async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let carrier = tokio::spawn(connection);
        let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        drop(client);
        let _ = carrier.await;
        let row = |message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    };
    // A thread of its own, so that tests with a runtime may call it.
    std::thread::scope(|scope| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        scope.spawn(move || runtime.block_on(work)).join().unwrap()
    })
}
