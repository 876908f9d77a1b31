//! `pointsman merge`: parts of a calibration become a router.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use pointsman::Router;

use crate::args::MergeArgs;
use crate::calibrate::{Learned, Summary, describe};
use crate::interrupt::Writing;
use crate::json;
use crate::plan::{self, Written, shell_quoted};
use crate::render::number::counted;
use crate::render::style::{BOLD, GOOD};
use crate::render::{self, next_step};
use crate::tables;

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<()> {
    let parts = tables::expanded(&args.parts)?;
    plan::one_from_stdin(parts.iter().map(Some))?;
    let to_stdout = plan::is_stream(&args.output);
    if to_stdout && io::stdout().is_terminal() {
        bail!("a router is not text: give a path instead of -, or redirect standard output");
    }
    if to_stdout && args.json {
        bail!("--json and -o - both write to standard output: give the router a path");
    }
    plan::refuse_to_overwrite(&args.output, &parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    plan::refuse_to_destroy(&args.output, Written::Router)?;
    let router = merged(&parts)?;
    {
        let writing = Writing::start();
        pointsman_table::save_router(&args.output, &router)?;
        writing.check()?;
    }
    let learned = Learned::of(&router);
    if args.json {
        return json::print_with_warnings(&Summary::new(router.rows(), &router, &learned, None));
    }
    let print = |out: &mut dyn Write| print(out, args, parts.len(), &router, &learned);
    match (render::is_quiet(), to_stdout) {
        (true, _) => Ok(()),
        (false, true) => Ok(print(&mut anstream::stderr().lock())?),
        (false, false) => Ok(print(&mut anstream::stdout().lock())?),
    }
}

/// The router of all parts together.
fn merged(parts: &[PathBuf]) -> anyhow::Result<Router> {
    let (first, others) = parts.split_first().ok_or_else(|| anyhow::anyhow!("there are no parts to merge"))?;
    let mut whole = pointsman_table::load_partial(first)?;
    for path in others {
        let part = pointsman_table::load_partial(path)?;
        whole.merge(&part).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    }
    Ok(whole.finish()?)
}

fn print(
    mut out: &mut dyn Write,
    args: &MergeArgs,
    parts: usize,
    router: &Router,
    learned: &Learned,
) -> io::Result<()> {
    let path = shell_quoted(&args.output);
    let parts = counted(parts, "part", "parts");
    let rows = counted(router.rows().rows(), "row", "rows");
    writeln!(out, "{GOOD}merged{GOOD:#} {BOLD}{path}{BOLD:#} from {parts}, {rows}")?;
    describe(&mut out, router, learned)?;
    let command = format!("pointsman show {path} --route 0.05 --abstain 0.3");
    next_step(&mut out, "Next, see what it would do at your prices:", &[command])
}
