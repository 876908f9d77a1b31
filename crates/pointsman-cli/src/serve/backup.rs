//! `pointsman backup`: a copy of the store, also while the service runs.

use std::io::Write;

use anyhow::anyhow;
use pointsman_server::store::{StoreUrl, sqlite};
use serde_json::json;

use super::run::configuration;
use crate::args::BackupArgs;
use crate::failure::Hint;
use crate::json;
use crate::progress::Progress;
use crate::render;
use crate::render::number::{count, counted};
use crate::render::style::{BOLD, GOOD};

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<()> {
    let config = configuration(&args.service)?;
    let StoreUrl::Sqlite(path) = &config.store.url else {
        let hint = Hint("back it up as your other databases, with pg_dump for example".to_owned());
        return Err(anyhow!("{} is not in files of its own", config.store.url).context(hint));
    };
    let done = {
        let _progress = Progress::spinner("copying the store");
        sqlite::backup(path, &args.output)?
    };
    let folder = args.output.display();
    if args.json {
        return json::print(
            &json!({"output": folder.to_string(), "log_files": done.files, "decisions": done.decisions}),
        );
    }
    if !render::is_quiet() {
        let (files, decisions) = (counted(done.files, "file", "files"), count(done.decisions as usize));
        let mut out = anstream::stdout().lock();
        writeln!(out, "{GOOD}wrote{GOOD:#} {BOLD}{folder}{BOLD:#}: {decisions} decisions in {files} of the log")?;
    }
    Ok(())
}
