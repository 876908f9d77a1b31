//! `pointsman keys`: access keys of the service.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Context;
use pointsman_server::keys::NewKey;
use pointsman_server::store::{Change, Key, Scope, StoreError};
use serde::Serialize;

use super::run::configuration;
use crate::args::KeysCommand;
use crate::failure::Hint;
use crate::json;
use crate::render::style::{BOLD, DIM, GOOD, PLAIN};
use crate::render::table::Grid;

/// Who made a change, in the log of administration.
const BY: &str = "command line";

/// Waits for a store.
fn wait<T>(reply: impl Future<Output = Result<T, StoreError>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.context("no thread for the store")?.block_on(reply)?)
}

pub(crate) fn run(command: &KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::Add(args) => {
            let config = configuration(&args.service)?;
            let key = NewKey::random();
            let scopes: BTreeSet<Scope> = args.scope.iter().filter_map(|name| Scope::from_name(name)).collect();
            let change = Change::AddKey {
                name: args.name.clone(),
                public: key.public,
                secret_hash: key.secret_hash,
                scopes,
                rate: args.rate,
            };
            if args.new_store {
                wait(config.store.url.make())?;
            }
            let registry = wait(config.store.url.registry()).map_err(|error| match error.downcast_ref() {
                Some(StoreError::Missing(_)) => error
                    .context(Hint("a key before the first start needs --new-store, which makes the store".to_owned())),
                _ => error,
            })?;
            let is_first = registry.keys.is_empty();
            wait(config.store.url.change(change, BY))?;
            let mut err = anstream::stderr().lock();
            if is_first {
                writeln!(err, "Within a second every request needs a key, also on a loopback address.")?;
                if !args.scope.iter().any(|scope| scope == Scope::Admin.name()) {
                    writeln!(err, "No key may administer the service yet: add one with --scope admin.")?;
                }
            }
            let then = "a running service takes it within a second; the key is not shown again:";
            writeln!(err, "{GOOD}added{GOOD:#} {BOLD}{}{BOLD:#}; {then}", args.name)?;
            // The key alone goes to standard output, so that a script can keep it.
            writeln!(anstream::stdout().lock(), "{}", key.text)?;
            Ok(())
        }
        KeysCommand::List(args) => {
            let registry = wait(configuration(&args.service)?.store.url.registry())?;
            let keys: Vec<KeySummary> = registry.keys.iter().map(KeySummary::from).collect();
            if args.json { json::print(&keys) } else { Ok(print(keys)?) }
        }
        KeysCommand::Disable(args) => {
            let config = configuration(&args.service)?;
            wait(config.store.url.change(Change::DisableKey { name: args.name.clone() }, BY))?;
            let name = &args.name;
            let then = "a running service refuses it within a second";
            writeln!(anstream::stdout().lock(), "{GOOD}disabled{GOOD:#} {BOLD}{name}{BOLD:#}; {then}")?;
            if wait(config.store.url.registry())?.keys.iter().all(|key| key.disabled) {
                let mut err = anstream::stderr().lock();
                writeln!(err, "No key is left: every request is refused until `pointsman keys add` makes one.")?;
            }
            Ok(())
        }
    }
}

/// A key as it is listed.
#[derive(Debug, Serialize)]
struct KeySummary {
    name: String,
    public: String,
    scopes: Vec<&'static str>,
    rate: Option<u32>,
    disabled: bool,
}

impl From<&Key> for KeySummary {
    fn from(key: &Key) -> Self {
        Self {
            name: key.name.clone(),
            public: key.public.clone(),
            scopes: key.scopes.iter().map(|scope| scope.name()).collect(),
            rate: key.rate,
            disabled: key.disabled,
        }
    }
}

fn print(keys: Vec<KeySummary>) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    if keys.is_empty() {
        return writeln!(out, "no keys: `pointsman keys add NAME --scope decide` makes one");
    }
    let mut grid = Grid::new().text("name").text("key").text("scopes").text("requests per second").text("state");
    for key in keys {
        let rate = key.rate.map_or_else(|| "no limit".to_owned(), |rate| rate.to_string());
        let style = if key.disabled { DIM } else { PLAIN };
        let state = if key.disabled { "disabled" } else { "active" };
        let cells = [key.name, format!("pk_{}_…", key.public), key.scopes.join(", "), rate, state.to_owned()];
        grid.row(cells.map(|text| (text, style)).to_vec());
    }
    grid.write(&mut out)
}
