//! `pointsman diagnose`: a table before anyone relies on it.

mod human;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use pointsman::{DIAGNOSIS_STEPS, Diagnosis, Router, Table, Task};
use pointsman_report::{Inputs, Report, reliability};
use pointsman_table::{Need, write_atomically};

use crate::args::DiagnoseArgs;
use crate::progress::Progress;
use crate::{evaluate, json, plan, render, tables};

pub(crate) fn run(args: &DiagnoseArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([Some(&args.table), args.votes.annotations.as_ref(), args.task.task.first()])?;
    args.output.iter().try_for_each(|folder| plan::refuse_stdout(folder))?;
    let task = plan::task(&args.task)?;
    let options = plan::read_options(&args.reading, Some(&args.votes), Need::Votes);
    let frame = plan::read_frame(&args.table, &options)?;
    let diagnosis = {
        let progress = Progress::bar("diagnosis", DIAGNOSIS_STEPS as u64);
        let annotations = frame.annotations.as_ref();
        pointsman::diagnose_annotated(&frame.table, annotations, &task, &args.partition, || progress.step())
            .map_err(|error| plan::of_task(error, args.task.task.first(), |error| plan::of_rows(error, &frame)))?
    };
    let page = args.output.as_ref().map(|folder| write(&diagnosis, &frame.table, &task, args, folder)).transpose()?;
    tables::warn_about_reading(&frame);
    plan::warn_about_labels(&frame.table, &args.votes)?;
    if args.json { json::print(&diagnosis) } else { Ok(human::print(args, &diagnosis, page.as_deref())?) }
}

/// Writes diagnosis.json, and the report and figures of a router of one half judged on the other; gives the page's path.
fn write(
    diagnosis: &Diagnosis,
    table: &Table,
    task: &Task,
    args: &DiagnoseArgs,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let [calibration, held_out] = pointsman::halves(table)?;
    let router = Router::calibrate(&calibration, &args.partition)?;
    let policy = match router.policy(task) {
        Ok(policy) => policy,
        Err(error) if task.limit().is_some() => {
            render::warn(format!(
                "the report leaves the limit out, since one half by itself cannot keep to it: {error}"
            ));
            router.policy(&task.clone().without_limit())?
        }
        Err(error) => return Err(error.into()),
    };
    let replay = policy.replay(&held_out)?;
    let inputs = Inputs { router: &router, policy: &policy, table: &held_out, replay: &replay };
    let (_, page) = evaluate::write::all(Report::new(&inputs, &[], None)?, &inputs, folder)?;
    let picture = reliability(&diagnosis.weak_model);
    let path = folder.join("figures").join("reliability");
    let png = picture.png().map_err(|error| anyhow!("figure reliability: {error}"))?;
    write_atomically(path.with_extension("svg"), |out| out.write_all(picture.svg().as_bytes()))?;
    write_atomically(path.with_extension("png"), |out| out.write_all(&png))?;
    write_atomically(folder.join("diagnosis.json"), |out| json::write_pretty(out, diagnosis))?;
    Ok(page)
}
