//! `pointsman evaluate`: proof on held-out rows.

pub(crate) mod fail_if;
mod human;
pub(crate) mod write;

use pointsman::{CalibrationError, Evaluation, Router, Table};
use pointsman_report::{Inputs, Report};
use pointsman_table::Need;

use crate::args::EvaluateArgs;
use crate::failure::ConditionHeld;
use crate::progress::Progress;
use crate::{calibrate, json, plan, render};

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
    let mut written = None;
    if let Some(folder) = &args.output {
        let (detailed, page) = write::all(report, &inputs, folder)?;
        (report, written) = (detailed, Some(page));
    }
    plan::warn_if_no_choice(&task);
    plan::warn_if_divided(plan::divided_rows(table));
    plan::warn_if_votes_are_ignored(&frame);
    plan::warn_about_labels(table, &args.votes)?;
    warn(table, &report);
    let traffic = replay.traffic(&router, table)?;
    plan::warn_if_limit_is_missed(&policy, &traffic, &report.evaluation.shares);
    let failed = fail_if::judge(&args.fail_if, &report)?;
    if args.json {
        json::print(&report)?;
    } else {
        human::print(args, &report, plan::limit_in_words(&policy).as_deref(), written.as_deref())?;
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
    Ok(Some(router.calibration_error(table, policy, pointsman::DEFAULT_SPLITS, args.seed, || progress.step())?))
}

/// Whether few labels make some cost look other than it is: under some losses they do not, and never for measured oracles.
fn is_biased(evaluation: &Evaluation) -> bool {
    let Some(corrected) = &evaluation.corrected_cost else { return true };
    let differs = |(name, cost): (&str, &f64)| {
        name.starts_with("always-") && corrected.get(name).is_none_or(|other| (other - cost).abs() > 1e-9 * cost.abs())
    };
    evaluation.mean_cost.iter().any(differs)
}

fn warn(table: &Table, report: &Report) {
    let [_, median, most] = calibrate::labels(table);
    match report.evaluation.truth {
        "true" => {}
        _ if most == 1 => render::warn(
            "each held-out row has one label, taken as its truth: the irreducible loss of such a truth is zero, so \
             routing looks as if it removed all loss; trust only the costs of predicting, abstaining and measured oracles",
        ),
        _ if median < FEW_LABELS && is_biased(&report.evaluation) => render::warn(format!(
            "truth is the mean of {median} labels per row: so few understate the irreducible loss, and routing looks \
             cheaper here than it is; see the corrected costs"
        )),
        _ => {}
    }
    if let Some(error) = &report.calibration_error {
        if error.raw == 0.0 && error.floor > 0.0 {
            render::warn("these are the rows that the router was calibrated on: they prove nothing");
        }
        let [stored, met] = error.labels;
        if (stored - met).abs() > 0.1 * stored.max(met) {
            render::warn(format!(
                "calibration rows have {stored:.1} labels on average, held-out rows {met:.1}: the calibration error \
                 compares means of different numbers of labels and is too large"
            ));
        }
    }
}
