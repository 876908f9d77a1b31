//! `pointsman merge`: parts of a calibration become a router.

use std::io::{self, Write};
use std::path::PathBuf;

use pointsman::Router;

use crate::args::MergeArgs;
use crate::calibrate::json::RouterSummary;
use crate::flags::{example_prices, shell_quoted};
use crate::output::{check_router, print_beside, save_router};
use crate::render::number::counted;
use crate::render::style::{BOLD, GOOD};
use crate::render::{next_step, paragraph, warn_all};
use crate::stats::RouterStats;
use crate::{input, json, words};

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<()> {
    let parts = input::expand_patterns(&args.parts)?;
    input::check_streams(parts.iter().map(Some))?;
    check_router(&args.output, args.json, &parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    let router = merge(&parts)?;
    save_router(&args.output, &router)?;
    warn_all(words::policy::few_rows(&router));
    let stats = RouterStats::new(&router);
    if args.json {
        return json::print_with_warnings(&RouterSummary::new(router.rows(), &router, &stats, None));
    }
    print_beside(&args.output, |out| print(out, args, parts.len(), &router, &stats))
}

/// The router of all parts together.
fn merge(parts: &[PathBuf]) -> anyhow::Result<Router> {
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
    stats: &RouterStats,
) -> io::Result<()> {
    let path = shell_quoted(&args.output);
    let parts = counted(parts, "part", "parts");
    let rows = counted(router.rows().rows(), "row", "rows");
    paragraph(&mut out, 0, &format!("{GOOD}merged{GOOD:#} {BOLD}{path}{BOLD:#} from {parts}, {rows}"))?;
    stats.describe(&mut out, router)?;
    let command = format!("pointsman show {path}{}", example_prices(router));
    next_step(&mut out, "Next, see what it would do at your prices:", &[command])
}
