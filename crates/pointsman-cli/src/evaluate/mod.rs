//! `pointsman evaluate`: proof on held-out rows.

pub(crate) mod fail_if;
mod human;
pub(crate) mod write;

use anyhow::bail;
use pointsman::evaluate::{CalibrationError, Truth};
use pointsman::{Router, Table, Task};
use pointsman_report::{Inputs, NextStep, Report};
use pointsman_table::{Frame, Need};

use crate::args::EvaluateArgs;
use crate::failure::ConditionHeld;
use crate::plan::shell_quoted;
use crate::progress::Progress;
use crate::render::number::{count, counted};
use crate::{calibrate, json, plan, render, tables};

/// With fewer labels per row than this their mean is a poor truth.
const FEW_LABELS: u64 = 10;

pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([
        Some(&args.router),
        Some(&args.table),
        args.votes.annotations.as_ref(),
        args.task.task.first(),
    ])?;
    args.output.iter().try_for_each(|folder| plan::refuse_stdout(folder))?;
    if let Some(cap) = args.cap.first() {
        let share = cap.rsplit_once('=').map(|(_, size)| size.trim()).filter(|size| size.ends_with('%'));
        bail!(
            "--cap {cap}: evaluate has no cap, which is spent on the queries of one table by decide; the nearest is a budget, the same \
             share of all traffic: {}",
            share.map_or("--budget P%, the cap in per cent of the queries".to_owned(), |share| format!(
                "--budget {share}"
            ))
        );
    }
    let task = plan::task(&args.task)?;
    let router = plan::load_router(&args.router)?;
    let policy = plan::policy(&router, &task, &args.router, args.task.task.first())?;
    let mut options = plan::read_options(&args.reading, Some(&args.votes), Need::VotesOrTruth);
    options.classes = Some(router.classes().to_vec());
    let frame = plan::read_frame(&args.table, &options)?;
    let table = &frame.table;
    plan::check_classes(&router, table.classes(), &args.table)?;
    let replay = plan::replay(&policy, &frame)?;
    let inputs = Inputs { router: &router, policy: &policy, table, replay: &replay };
    let mut report = Report::new(&inputs, &args.sweep, None)?;
    report.calibration_error = calibration_error(args, &router, table, &policy)?;
    report.warnings = warnings(args, &task, &frame, &report)?;
    report.warnings.extend(seen_in_words(&router, table));
    report.warnings.extend(plan::prices_in_words(policy.task()));
    report.warnings.extend(plan::limit_missed_in_words(
        &policy,
        &replay.traffic(&router, table)?,
        &report.evaluation.shares,
    ));
    report.next_step = Some(next_step(args, &report));
    let mut written = None;
    if let Some(folder) = &args.output {
        let (detailed, page) = write::all(report, &inputs, folder)?;
        (report, written) = (detailed, Some(page));
    }
    report.warnings.iter().for_each(render::warn);
    let failed = fail_if::judge(&args.fail_if, &report)?;
    if args.json {
        json::print(&report)?;
    } else {
        let title = human::Title { policy: &policy, is_held_out: !router.has_seen(table) };
        human::print(args, &report, &title, written.as_deref())?;
    }
    match failed {
        Some(conditions) => Err(ConditionHeld(conditions).into()),
        None => Ok(()),
    }
}

/// An error of the operating system that names what it is about.
pub(crate) fn named(path: &std::path::Path, error: std::io::Error) -> anyhow::Error {
    pointsman_table::Error::Io { file: path.display().to_string(), source: error }.into()
}

/// A sentence on rows that the router was calibrated on, if there are any to speak of: a prediction in a few hundred repeats by chance.
fn seen_in_words(router: &Router, table: &Table) -> Option<String> {
    const REPEATED_BY_CHANCE: f64 = 0.25;
    let seen = router.items_seen(table).map_or(0, |seen| seen.into_iter().filter(|seen| *seen).count());
    let rows = table.rows();
    if router.has_seen(table) || seen == rows {
        return Some("these are rows that the router was calibrated on: they prove nothing".to_owned());
    }
    (seen as f64 > REPEATED_BY_CHANCE * rows as f64).then(|| {
        format!(
            "{} of the {} have the prediction of a calibration row: what the router was calibrated on proves nothing; leave these items out",
            count(seen),
            counted(rows, "row", "rows")
        )
    })
}

fn calibration_error(
    args: &EvaluateArgs,
    router: &Router,
    table: &Table,
    policy: &pointsman::Policy,
) -> anyhow::Result<Option<CalibrationError>> {
    if args.no_calibration_error || !table.has_votes() {
        return Ok(None);
    }
    let progress = Progress::bar("calibration error", router.cells().count() as u64);
    Ok(Some(
        router
            .calibration_error(table, policy, pointsman::wasserstein::DEFAULT_SPLITS, args.seed, || progress.step())?,
    ))
}

/// What speaks against relying on the numbers, a sentence each.
fn warnings(args: &EvaluateArgs, task: &Task, frame: &Frame, report: &Report) -> anyhow::Result<Vec<String>> {
    let table = &frame.table;
    let mut sentences: Vec<String> = plan::no_choice_in_words(task).into_iter().collect();
    sentences.extend(tables::reading_in_words(frame));
    sentences.extend(plan::labels_in_words(table, &args.votes)?);
    sentences.extend(tables::annotators_in_words(frame)?);
    let [_, median, most] = calibrate::labels(table);
    match report.evaluation.truth {
        Truth::Known => {}
        _ if most == 1 => sentences.push(
            "each held-out row has one label, taken as its truth: the irreducible loss of such a truth is zero, so \
             routing looks as if it removed all loss; trust only the costs of predicting, abstaining and measured oracles"
                .to_owned(),
        ),
        _ if median < FEW_LABELS && !report.evaluation.is_corrected() => sentences.push(format!(
            "truth is the mean of {median} labels per row, and too few rows have two labels to correct for that: the \
             irreducible loss is understated, and routing looks cheaper here than it is"
        )),
        _ => {}
    }
    if let Some(error) = &report.calibration_error {
        let [stored, met] = error.labels;
        if (stored - met).abs() > 0.1 * stored.max(met) {
            sentences.push(format!(
                "calibration rows have {stored:.1} labels on average, held-out rows {met:.1}: the calibration error \
                 compares means of different numbers of labels and is too large"
            ));
        }
    }
    Ok(sentences)
}

/// What to do next, by what was found.
fn next_step(args: &EvaluateArgs, report: &Report) -> NextStep {
    let (router, columns) = (shell_quoted(&args.router), plan::column_flags(&args.reading));
    let flags = columns.clone() + &plan::task_flags(&args.task);
    let gain = |name| report.evaluation.best_gain().get(name).copied().flatten();
    let usual_is_better = gain("higher-order").zip(gain("total-uncertainty")).is_some_and(|(ours, usual)| ours < usual);
    if usual_is_better {
        let cells = match report.router.decides_by_row() {
            true => "this forest".to_owned(),
            false => format!("these {} cells", count(report.router.cells)),
        };
        return NextStep {
            remark: format!(
                "The confidence threshold ranks better than {cells}: try others, or cells on features, then evaluate again:"
            ),
            commands: vec![format!(
                "pointsman calibrate calibration.csv{columns} --partition confidence:100 -o other.safetensors"
            )],
        };
    }
    NextStep {
        remark: "Next, decide queries at these prices:".to_owned(),
        commands: vec![format!("pointsman decide {router} queries.csv{flags} -o decisions.csv")],
    }
}
