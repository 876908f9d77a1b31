//! `pointsman check`: whether a file can be used, and what it is.

use std::io::{self, Write};

use anyhow::bail;

use crate::args::CheckArgs;
use crate::calibrate::{Learned, Summary, describe, describe_line};
use crate::plan::{self, shell_quoted};
use crate::render::number::counted;
use crate::render::style::{BOLD, GOOD};
use crate::{json, render, task};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    if args.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return task::check(args);
    }
    let router = plan::load_router(&args.file)?;
    if !args.classes.is_empty() && args.classes != router.classes() {
        bail!(
            "{}: is for the classes {}, not {}",
            args.file.display(),
            router.classes().join(", "),
            args.classes.join(", ")
        );
    }
    let learned = Learned::of(&router);
    if args.json {
        return json::print_with_warnings(&Summary::new(router.rows(), &router, &learned, None));
    }
    let mut out = io::BufWriter::new(render::stdout());
    let rows = counted(router.rows().rows(), "calibration row", "calibration rows");
    let path = shell_quoted(&args.file);
    writeln!(
        out,
        "{BOLD}{path}{BOLD:#} {GOOD}can be used{GOOD:#}: a router of {rows}, checksum and contents verified"
    )?;
    describe(&mut out, &router, &learned)?;
    let features: Vec<String> = router.features_used().iter().map(|name| format!("x_{name}")).collect();
    let needed = if features.is_empty() { "the prediction alone".to_owned() } else { features.join(", ") };
    describe_line(&mut out, "decides by", &needed)?;
    let oracles: Vec<&str> = router.rows().oracles().map(|(name, _)| name).collect();
    if !oracles.is_empty() {
        describe_line(&mut out, "measured", &format!("answers of {}", oracles.join(", ")))?;
    }
    Ok(out.flush()?)
}
