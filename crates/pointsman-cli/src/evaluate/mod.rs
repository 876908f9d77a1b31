//! `pointsman evaluate`: a router's costs on held-out rows.

pub(crate) mod fail_if;
pub(crate) mod human;
pub(crate) mod write;

use std::cmp::Ordering;

use pointsman::evaluate::{CalibrationError, Truth};
use pointsman::{Policy, Router, Table, Task};
use pointsman_report::{Inputs, MadeFrom, NextStep, Report};
use pointsman_table::{Frame, Need};

use crate::args::EvaluateArgs;
use crate::failure::ConditionHeld;
use crate::flags::{self, shell_quoted};
use crate::output::check_folder;
use crate::progress::Progress;
use crate::render::number::count;
use crate::render::warn_all;
use crate::stats::labels_per_row;
use crate::{errors, input, json, task, words};

/// With a smaller median of labels per row, their mean is a poor truth.
const MIN_LABELS_FOR_TRUTH: u64 = 10;

pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    input::check_streams([
        Some(&args.router),
        Some(&args.table),
        args.votes.annotations.as_ref(),
        args.task.task.first(),
    ])?;
    args.output.iter().try_for_each(|folder| check_folder(folder))?;
    let task = task::from_args(&args.task)?;
    let caps = task::caps(&args.cap, &task)?;
    input::check_order("evaluate", &args.router, &args.table)?;
    let router = input::load_router(&args.router)?;
    let policy = errors::compile(&router, &task, &args.router, args.task.task.first())?;
    let mut options = input::read_options(&args.reading, Some(&args.votes), Need::VotesOrTruth)?;
    options.classes = Some(router.classes().to_vec());
    let frame = input::read_frame(&args.table, &options)?;
    let table = &frame.table;
    input::check_classes(&router, table.classes(), &args.table)?;
    let mut replay = policy.replay(table).map_err(|error| errors::in_rows(error, &frame))?;
    if let Some(caps) = caps {
        replay = replay.with_caps(caps, table, frame.ids.as_deref())?;
    }
    let inputs = Inputs { router: &router, policy: &policy, table, replay: &replay };
    let mut report = Report::new(&inputs, &args.sweep, None)?;
    report.calibration_error = calibration_error(args, &router, table, &policy)?;
    report.warnings.extend(warnings(args, &task, &frame, &report)?);
    report.warnings.extend(words::policy::overpriced(policy.task()));
    report.warnings.extend(words::policy::unused_answers(&task, router.rows()));
    let traffic = replay.traffic(&router, table)?;
    // With caps the routed share is not the limit's.
    if report.evaluation.capped.is_none() {
        report.warnings.extend(words::policy::limit_missed(&policy, &traffic, &report.evaluation.shares));
    }
    report.made_from = Some(made_from(args));
    report.next_step = Some(next_step(args, &report, table.has_votes()));
    let mut written = None;
    if let Some(folder) = &args.output {
        let (detailed, page) = write::all(report, &inputs, folder)?;
        (report, written) = (detailed, Some(page));
    }
    warn_all(report.warnings.clone());
    let failed = fail_if::judge(&args.fail_if, &report)?;
    if args.json {
        json::print(&report)?;
    } else {
        human::print(args, &report, &policy, written.as_deref())?;
    }
    match failed {
        Some(conditions) => Err(ConditionHeld(conditions).into()),
        None => Ok(()),
    }
}

/// The calibration error, unless it is left out or the table has no votes.
fn calibration_error(
    args: &EvaluateArgs,
    router: &Router,
    table: &Table,
    policy: &Policy,
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

/// Reasons not to rely on the numbers, one sentence each.
fn warnings(args: &EvaluateArgs, task: &Task, frame: &Frame, report: &Report) -> anyhow::Result<Vec<String>> {
    let table = &frame.table;
    let mut sentences: Vec<String> = words::policy::no_choice(task).into_iter().collect();
    sentences.extend(words::table::reading(frame));
    if table.has_votes() {
        sentences.extend(words::table::mismatch(table)?);
    }
    sentences.extend(words::table::labels(frame, &args.votes, None)?);
    sentences.extend(words::table::annotators(frame)?);
    if (1..table.rows()).contains(&report.calibration_rows) && args.reading.filters.is_empty() {
        sentences.push("--where COLUMN=VALUE keeps only the held-out rows, if a column tells them apart".to_owned());
    }
    let [_, median, most] = labels_per_row(table);
    match report.evaluation.truth {
        Truth::Known => {}
        _ if most == 1 => sentences.push(
            "each held-out row has one label, taken as its truth: the irreducible loss of such a truth is zero, so \
             routing looks as if it removed all loss; trust only the costs of predicting, abstaining and measured oracles"
                .to_owned(),
        ),
        _ if median < MIN_LABELS_FOR_TRUTH && !report.evaluation.is_corrected() => sentences.push(format!(
            "truth is the mean of {median} labels per row, and too few rows have two labels to correct for that: the \
             irreducible loss is understated, and routing looks cheaper here than it is"
        )),
        _ => {}
    }
    if let Some(error) = &report.calibration_error {
        let [stored, held_out] = error.labels;
        if (stored - held_out).abs() > 0.1 * stored.max(held_out) {
            sentences.push(format!(
                "calibration rows have {stored:.1} labels on average, held-out rows {held_out:.1}: the calibration error \
                 compares means of different numbers of labels and is too large"
            ));
        }
    }
    Ok(sentences)
}

/// The files of the report.
fn made_from(args: &EvaluateArgs) -> MadeFrom {
    MadeFrom {
        router: args.router.display().to_string(),
        table: args.table.display().to_string(),
        filters: args.reading.filters.iter().map(ToString::to_string).collect(),
        annotations: args.votes.annotations.as_ref().map(|path| path.display().to_string()),
    }
}

/// What to do next.
fn next_step(args: &EvaluateArgs, report: &Report, has_votes: bool) -> NextStep {
    let (router, layout) = (shell_quoted(&args.router), flags::layout(&args.reading));
    let task = flags::task(&args.task);
    let (table, reading) = (shell_quoted(&args.table), flags::reading(&args.reading, Some(&args.votes)));
    let is_dearer = report.best_threshold().is_some_and(|saving| saving.certain_sign() == Some(Ordering::Less));
    if is_dearer && !report.router.decides_by_row() {
        let caps = flags::caps(&args.cap);
        return NextStep {
            remark: "The best confidence threshold costs less than this router, by more than chance explains: let auto choose among other \
                     cells and forests on the calibration table, and compare both on these rows:"
                .to_owned(),
            commands: vec![
                "pointsman calibrate calibration.csv --partition auto -o auto.safetensors".to_owned(),
                format!("pointsman compare {router} auto.safetensors {table}{reading}{task}{caps}"),
            ],
        };
    }
    let gain = |name| report.evaluation.best_gain().get(name).copied().flatten();
    let gains = gain("higher-order").zip(gain("total-uncertainty"));
    if gains.is_some_and(|(pointsman, threshold)| pointsman < threshold) {
        let cells = match report.router.decides_by_row() {
            true => "this forest".to_owned(),
            false if report.router.cells == 1 => "one cell".to_owned(),
            false => format!("these {} cells", count(report.router.cells)),
        };
        // diagnose compares partitions on halves of the same rows, which needs labels.
        let command = has_votes.then(|| format!("pointsman diagnose {table}{reading}{task}"));
        let commands: Vec<String> = command.into_iter().collect();
        let how = if commands.is_empty() { "." } else { "; diagnose compares some on halves of these rows:" };
        return NextStep {
            remark: format!(
                "The confidence threshold ranks better than {cells}: try other cells, or cells on features{how}"
            ),
            commands,
        };
    }
    let caps = flags::caps(&args.cap);
    NextStep {
        remark: "Next, decide queries at these prices:".to_owned(),
        commands: vec![format!("pointsman decide {router} queries.csv{layout}{task}{caps} -o decisions.csv")],
    }
}
