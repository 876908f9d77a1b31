//! A calibrated router, for the terminal.

use std::io::{self, Write};

use pointsman::Router;
use pointsman::calibrate::{Candidate, Choice};
use pointsman_table::Frame;

use super::json::Features;
use crate::args::CalibrateArgs;
use crate::flags::{example_prices, shell_quoted};
use crate::render::number::{count, counted, fixed};
use crate::render::style::{BOLD, GOOD};
use crate::render::{next_step, paragraph};
use crate::stats::{RouterStats, describe_line, is_forest};

/// Prints a router calibrated on `tables` files.
pub(super) fn print_router(
    mut out: &mut dyn Write,
    args: &CalibrateArgs,
    tables: usize,
    frame: &Frame,
    router: &Router,
    choice: Option<&Choice>,
) -> io::Result<()> {
    // Honest trees keep the rows that they were not grown on.
    let (kept, given) = (router.rows().rows(), frame.table.rows());
    let rows = match given.saturating_sub(kept) {
        0 => counted(kept, "row", "rows"),
        others => {
            format!("{}: {} estimate, {} shaped the cells", counted(given, "row", "rows"), count(kept), count(others))
        }
    };
    print_title(out, args, &rows, tables)?;
    RouterStats::new(router).describe(&mut out, router)?;
    if let Some(choice) = choice {
        let rule = "pooled cells, unless another partition costs less by more than half a standard error";
        describe_line(&mut out, "chosen", &format!("{}; the rule: {rule}", choice.reason()))?;
        if let Some(text) = compared_in_words(choice, args) {
            describe_line(&mut out, "compared", &text)?;
        }
    }
    if let Some(text) = features_in_words(frame, router) {
        describe_line(&mut out, "features", &text)?;
    }
    if let Some(text) = answers_in_words(router) {
        describe_line(&mut out, "answers", &text)?;
    }
    if is_forest(router) {
        let text =
            "certificates and plans need cells that a forest does not have: calibrate with --certifiable for them";
        describe_line(&mut out, "note", text)?;
    }
    print_next_step(out, args, router)
}

/// Prints a router to which the rows of a table were added.
pub(super) fn print_added(
    mut out: &mut dyn Write,
    args: &CalibrateArgs,
    tables: usize,
    added: usize,
    [before, after]: [&Router; 2],
) -> io::Result<()> {
    let rows = format!(
        "{} added to the {} of {}",
        counted(added, "row", "rows"),
        count(before.rows().rows()),
        args.add_to.as_deref().map(shell_quoted).unwrap_or_default()
    );
    print_title(out, args, &rows, tables)?;
    RouterStats::new(after).describe(&mut out, after)?;
    let shares = "each cell keeps its share of the traffic: its old and new rows together weigh what the old rows did";
    describe_line(&mut out, "shares", shares)?;
    print_next_step(out, args, after)
}

/// The costs of all candidates; `None` if nothing could be compared.
fn compared_in_words(choice: &Choice, args: &CalibrateArgs) -> Option<String> {
    const DECIMALS: usize = 3;
    let candidate = |it: &Candidate| format!("{} {}", it.partition, fixed(it.cost, DECIMALS));
    let all: Vec<String> = choice.candidates.iter().map(candidate).collect();
    let (measured, left_out) = match (args.recalibrate, args.certifiable) {
        (true, _) => ("loss of what is served, as a share of the classifier's own", ""),
        (_, true) => (
            "cost as a share of always predicting",
            "; forest:200 was not compared, since its cells cannot be certified",
        ),
        _ => ("cost as a share of always predicting", ""),
    };
    (all.len() > 1).then(|| format!("{measured}: {}{left_out}", all.join(", ")))
}

/// The used and ignored features, or else the columns that could be features.
fn features_in_words(frame: &Frame, router: &Router) -> Option<String> {
    if frame.table.feature_names().is_empty() {
        /// The largest number of columns of text listed.
        const MAX_LISTED: usize = 6;
        let (numbers, texts) = (frame.unused_numeric.join(", "), &frame.unused_text);
        let numbers = (!numbers.is_empty()).then(|| {
            format!(
                "; columns of numbers that are not used: {numbers} (--columns features=NAME takes one, features=PREFIX several)"
            )
        });
        let more = if texts.len() > MAX_LISTED { ", …" } else { "" };
        let listed = texts.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
        let texts = (!texts.is_empty())
            .then(|| format!("; columns of text, whose values would need a column of 0 and 1 each: {listed}{more}"));
        let unused: String = numbers.into_iter().chain(texts).collect();
        return (!unused.is_empty()).then(|| format!("none{unused}"));
    }
    let Features { used, ignored } = Features::new(&frame.table, router);
    let list = |names: &[String]| names.iter().map(|name| format!("x_{name}")).collect::<Vec<_>>().join(", ");
    Some(match (used.is_empty(), ignored.is_empty()) {
        (true, _) => format!("none used; ignored: {}", list(&ignored)),
        (false, true) => format!("used: {}; none ignored", list(&used)),
        (false, false) => format!("used: {}; ignored: {}", list(&used), list(&ignored)),
    })
}

fn print_title(out: &mut dyn Write, args: &CalibrateArgs, rows: &str, tables: usize) -> io::Result<()> {
    let path = shell_quoted(&args.output);
    let files = match tables {
        1 => String::new(),
        n => format!(" in {}", counted(n, "table", "tables")),
    };
    paragraph(out, 0, &format!("{GOOD}learned{GOOD:#} {BOLD}{path}{BOLD:#} from {rows}{files}"))
}

/// The other models whose answers to the calibration rows are known; `None` if there are none.
fn answers_in_words(router: &Router) -> Option<String> {
    let names: Vec<&str> = router.rows().oracles().map(|(name, _)| name).collect();
    let first = names.first()?;
    Some(format!("of {}: their losses are measured by --route {first}=PRICE,measured", names.join(", ")))
}

fn print_next_step(out: &mut dyn Write, args: &CalibrateArgs, router: &Router) -> io::Result<()> {
    let command = format!("pointsman show {}{}", shell_quoted(&args.output), example_prices(router));
    next_step(out, "Next, see what it would do at your prices:", &[command])
}
