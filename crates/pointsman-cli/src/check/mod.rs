//! `pointsman check`: verifies a router, a policy or a task file and describes it.

pub(crate) mod policy;
pub(crate) mod task;

use std::io::{self, Write};

use anyhow::bail;
use pointsman_table::RouterOrPolicy;

use crate::args::CheckArgs;
use crate::calibrate::json::RouterSummary;
use crate::flags::shell_quoted;
use crate::render::number::counted;
use crate::render::style::{BOLD, GOOD};
use crate::stats::{RouterStats, describe_line};
use crate::{input, json, render};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    if args.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return task::run(&args.of_task());
    }
    let router = match input::load_router_or_policy(&args.file)? {
        RouterOrPolicy::Router(router) => router,
        RouterOrPolicy::Policy(policy) => return policy::run(args, &policy),
        _ => bail!("{}: is neither a router nor a policy", args.file.display()),
    };
    if !args.classes.is_empty() && args.classes != router.classes() {
        match input::differing_classes(["router", "list of --classes"], [router.classes(), &args.classes]) {
            Some(text) => bail!("{}: has other classes: {text}", args.file.display()),
            None => bail!("{}: has another order of classes: {}", args.file.display(), router.classes().join(", ")),
        }
    }
    if let Err(error) = router.verify_leaves() {
        bail!("{}: {error}: calibrate again, or use the file from before it was changed", args.file.display());
    }
    let stats = RouterStats::new(&router);
    if args.json {
        return json::print_with_warnings(&RouterSummary::new(router.rows(), &router, &stats, None));
    }
    let mut out = io::BufWriter::new(render::stdout());
    let rows = counted(router.rows().rows(), "calibration row", "calibration rows");
    let path = shell_quoted(&args.file);
    let verified = match router.forest_parts() {
        Some(_) => "checksum, contents and the leaf of each row",
        None => "checksum and contents",
    };
    let text = format!("{BOLD}{path}{BOLD:#} {GOOD}can be used{GOOD:#}: a router of {rows}, {verified} verified");
    render::paragraph(&mut out, 0, &text)?;
    stats.describe(&mut out, &router)?;
    let features: Vec<String> = router.features_used().iter().map(|name| format!("x_{name}")).collect();
    let needed = if features.is_empty() { "the prediction alone".to_owned() } else { features.join(", ") };
    describe_line(&mut out, "decides by", &needed)?;
    let oracles: Vec<&str> = router.rows().oracles().map(|(name, _)| name).collect();
    if !oracles.is_empty() {
        describe_line(&mut out, "measured", &format!("answers of {}", oracles.join(", ")))?;
    }
    Ok(out.flush()?)
}
