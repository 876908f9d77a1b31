//! A diagnosis, for the terminal.

mod labels;
mod worth;

use std::io::{self, Write};
use std::path::Path;

use pointsman::diagnose::{Advice, Estimate};
use pointsman::{Diagnosis, Task};
use pointsman_report::{DiagnosisReport, calibration_answer};

use crate::args::DiagnoseArgs;
use crate::flags::shell_quoted;
use crate::render::number::{count, counted, decimals, fixed};
use crate::render::style::{BAD, BOLD, DIM, GOOD, WARN};
use crate::render::wrap::hanging;
use crate::render::{self, heading, next_step, paragraph};
use crate::words;

/// Prints a diagnosis; `page` is the page, if one was written.
pub(super) fn print(args: &DiagnoseArgs, task: &Task, report: &DiagnosisReport, page: Option<&Path>) -> io::Result<()> {
    let diagnosis = &report.diagnosis;
    let mut out = io::BufWriter::new(render::stdout());
    let rows = counted(diagnosis.rows, "row", "rows");
    let sampled = match diagnosis.rows_used {
        used if used < diagnosis.rows => format!(", of which {} were used", count(used)),
        _ => String::new(),
    };
    let (table, splits) = (shell_quoted(&args.table), diagnosis.splits);
    let title = format!(
        "{BOLD}{table}{BOLD:#}: {rows}{sampled}; halved {splits} times, the router of each half evaluated on the other"
    );
    paragraph(&mut out, 0, &title)?;
    if let Some(chosen) = &diagnosis.chosen {
        let text = format!("{} chooses {chosen} on all rows, and chooses again in each half", diagnosis.partition);
        paragraph(&mut out, 0, &format!("{DIM}{text}{DIM:#}"))?;
    }
    writeln!(out)?;
    let style = match diagnosis.verdict.advice {
        Advice::UseIt => GOOD.bold(),
        Advice::OneLabel | Advice::MoreData => WARN,
        Advice::MendLabels => BAD,
        _ => BOLD,
    };
    let sentence = &diagnosis.verdict.sentence;
    paragraph(&mut out, 0, &format!("{style}{sentence}{style:#}"))?;
    for remark in &diagnosis.verdict.remarks {
        hanging(&mut out, 2, 4, &format!("• {remark}"))?;
    }
    words::policy::print_perfect_oracles(&mut out, task)?;
    worth::print(&mut out, diagnosis)?;
    print_weak_model(&mut out, diagnosis)?;
    labels::print_counts(&mut out, diagnosis)?;
    labels::print_independence(&mut out, diagnosis)?;
    if let Some(next) = &report.next_step {
        next_step(&mut out, &next.remark, &next.commands)?;
    }
    if let Some(page) = page {
        let folder = shell_quoted(page.parent().unwrap_or(Path::new(".")));
        let text = format!(
            "Written into {folder}: diagnosis.json and its page; report.html is the report of one half evaluated on the other. Open it:"
        );
        writeln!(out)?;
        paragraph(&mut out, 0, &text)?;
        writeln!(out, "  {BOLD}{}{BOLD:#}", shell_quoted(page))?;
    }
    out.flush()
}

/// The ends of an interval.
fn between(interval: &Estimate, digits: usize) -> String {
    format!("{} to {}", fixed(interval.low, digits), fixed(interval.high, digits))
}

fn print_weak_model(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(&mut *out, "Is the weak model calibrated?")?;
    let model = &diagnosis.weak_model;
    let mut text = format!(
        "{}: its calibration error is {}, of which chance alone explains {}; mean confidence {}, and {} of the labels are its top class.",
        calibration_answer(model),
        fixed(model.error, 3),
        fixed(model.floor, 3),
        fixed(model.confidence, 3),
        fixed(model.accuracy, 3)
    );
    let saved = |saves: &Estimate| {
        let digits = decimals([saves.estimate, saves.low, saves.high]).min(5);
        format!("{} (95 % {})", fixed(saves.estimate, digits), between(saves, digits))
    };
    let by = model.recalibrated_partition.as_ref().map_or(String::new(), |by| format!(" --partition {by}"));
    match &model.recalibrating_saves {
        [_, Some(cost)] if cost.estimate < 0.0 => {
            text +=
                &format!(" At these prices --recalibrate{by} would cost {} more per query.", saved(&cost.negated()));
        }
        [_, Some(cost)] => text += &format!(" At these prices --recalibrate{by} would save {} per query.", saved(cost)),
        [Some(loss), None] if loss.estimate < 0.0 => {
            text += &format!(" --recalibrate{by} would raise its loss by {}.", saved(&loss.negated()));
        }
        [Some(loss), None] => text += &format!(" --recalibrate{by} would lower its loss by {}.", saved(loss)),
        [None, None] => {}
    }
    paragraph(out, 2, &text)
}
