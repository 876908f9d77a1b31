//! `pointsman diagnose`: whether Pointsman pays on a table, and whether its labels are good enough.

mod human;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use pointsman::diagnose::{Advice, DIAGNOSIS_STEPS, Stopping};
use pointsman::{Diagnosis, Partition, Policy, Router, Table, Task};
use pointsman_report::{DiagnosisReport, Inputs, NextStep, Report, diagnosis_html, reliability};
use pointsman_table::{Need, write_atomically};

use crate::args::{DiagnoseArgs, VotesArgs};
use crate::flags::{self, shell_quoted, shell_quoted_text};
use crate::output::check_folder;
use crate::progress::Progress;
use crate::render::number::plain;
use crate::render::warn_all;
use crate::{errors, evaluate, input, json, task, words};

pub(crate) fn run(args: &DiagnoseArgs) -> anyhow::Result<()> {
    input::check_streams([Some(&args.table), args.votes.annotations.as_ref(), args.task.task.first()])?;
    args.output.iter().try_for_each(|folder| check_folder(folder))?;
    if let Some(budget) = args.task.budget.filter(|budget| *budget > 1.0) {
        let budget = plain(budget);
        bail!(
            "--budget {budget}: is not a share of the queries, which is from 0 to 1; plan --max-labels N limits labels"
        );
    }
    let task = task::from_args(&args.task)?;
    let options = input::read_options(&args.reading, Some(&args.votes), Need::Votes)?;
    let frame = input::read_frame(&args.table, &options)?;
    let diagnosis = {
        let progress = Progress::bar("diagnosis", DIAGNOSIS_STEPS as u64);
        let annotations = frame.annotations.as_ref();
        pointsman::diagnose::diagnose_annotated(&frame.table, annotations, &task, &args.partition, || progress.step())
            .map_err(|error| errors::in_task(error, args.task.task.first(), |error| errors::in_rows(error, &frame)))?
    };
    let mut warnings = words::table::reading(&frame);
    warnings.extend(words::table::annotation_order(&frame));
    warnings.extend(words::policy::overpriced(&task.for_classes(frame.table.classes())?));
    warnings.extend(words::policy::unused_answers(&task, &frame.table));
    warnings.extend(words::table::labels(&frame, &args.votes, None)?);
    // The order of the labels matters for annotators and for which labels are kept, but one warning is enough.
    let mut seen = std::collections::BTreeSet::new();
    warnings.retain(|warning| seen.insert(warning.clone()));
    let halves = args.output.as_ref().map(|_| Halves::new(&frame.table, &task, args, &mut warnings)).transpose()?;
    let next_step = next_step(args, &diagnosis);
    let report = DiagnosisReport::new(diagnosis, warnings, next_step);
    let page = args.output.as_ref().zip(halves).map(|(folder, halves)| write(&report, &halves, folder)).transpose()?;
    warn_all(report.warnings.clone());
    if args.json { json::print(&report) } else { Ok(human::print(args, &task, &report, page.as_deref())?) }
}

/// What to do next, by the verdict; `None` if other labels or prices are needed first.
fn next_step(args: &DiagnoseArgs, diagnosis: &Diagnosis) -> Option<NextStep> {
    let (table, task) = (shell_quoted(&args.table), flags::task(&args.task));
    let reading = flags::reading(&args.reading, Some(&args.votes));
    let partition = diagnosis.enough.better_partition().unwrap_or(&diagnosis.verdict.partition);
    // The default partition needs no flag.
    let named = match *partition == Partition::auto().to_string() {
        true => String::new(),
        false => format!(" --partition {}", shell_quoted_text(partition)),
    };
    let calibrate = |cells: &str| format!("pointsman calibrate {table}{reading}{cells} -o router.safetensors");
    let has_choice = !(diagnosis.task.routes.is_empty() && diagnosis.task.abstain.is_none());
    let flagged = diagnosis.flagged_annotators.as_ref().filter(|_| args.votes.annotations.is_some());
    // The number of labels must not depend on the labels.
    let with_equal_numbers = diagnosis.stopping.filter(Stopping::is_suspicious).and_then(|found| {
        let votes = with_equal_numbers(&args.votes, &found)?;
        Some((votes.min_labels > args.votes.min_labels, flags::reading(&args.reading, Some(&votes))))
    });
    let corrected = with_equal_numbers.as_ref().map_or(&reading, |(_, corrected)| corrected);
    let again = flagged.map(|flagged| {
        let flag = |name: &String| format!(" --without {}", shell_quoted_text(name));
        let without: String = flagged.annotators.iter().map(flag).collect();
        format!("pointsman diagnose {table}{corrected}{without}{task}")
    });
    // Plans need cells that can be certified, which a forest's cannot.
    let is_certain_to_have_cells = !named.is_empty() && !partition.starts_with("forest");
    // The second command, if there are prices: a router that plans and certificates can use.
    let certified = (has_choice && !is_certain_to_have_cells)
        .then(|| format!("pointsman calibrate {table}{reading} --certifiable -o certifiable.safetensors"));
    let for_plans = match (&certified, is_certain_to_have_cells) {
        (Some(_), _) => "; the last command learns one for certificates and plans",
        (None, false) => " (add --certifiable if you want certificates or plans)",
        (None, true) => "",
    };
    let learn_and_show = || {
        let show = format!("pointsman show router.safetensors{task}");
        [calibrate(&named), show].into_iter().chain(certified.clone()).collect()
    };
    let next = match diagnosis.verdict.advice {
        Advice::UseIt => Some(NextStep {
            remark: format!("Next, learn a router and see what it does{for_plans}:"),
            commands: learn_and_show(),
        }),
        Advice::MoreData if has_choice => {
            let cells = if is_certain_to_have_cells { named.as_str() } else { " --certifiable" };
            Some(NextStep {
                remark: "Next, see which labels would make single actions certain:".to_owned(),
                commands: vec![calibrate(cells), format!("pointsman plan router.safetensors{task}")],
            })
        }
        Advice::NoNeed | Advice::SmallSaving => Some(NextStep {
            remark: format!("To try it all the same, learn a router and see what it does{for_plans}:"),
            commands: learn_and_show(),
        }),
        Advice::MendLabels => with_equal_numbers.as_ref().map(|(leaves_out, corrected)| NextStep {
            remark: match leaves_out {
                true => "Next, look again with the first labels of every item only, without the items that have fewer:"
                    .to_owned(),
                false => "Next, look again with the first labels of every item only:".to_owned(),
            },
            commands: vec![format!("pointsman diagnose {table}{corrected}{task}")],
        }),
        _ => None,
    };
    // Annotators who differ come first, since all else depends on the labels.
    match again {
        None => next,
        Some(again) => Some(NextStep {
            remark: "Next, look again without the annotators who differ:".to_owned(),
            commands: vec![again],
        }),
    }
}

/// The options that keep equally many labels of every item, so that their number does not depend on what they say: as many as the item with
/// the fewest has or, without the items that have one label, two. `None` if labels have no order, or if the options do so already.
fn with_equal_numbers(votes: &VotesArgs, found: &Stopping) -> Option<VotesArgs> {
    votes.annotations.as_ref()?;
    let k = found.first_labels().unwrap_or(2);
    let kept = NonZeroU32::new(u32::try_from(k).ok()?);
    let first_labels = votes.first_labels.or(kept);
    let min_labels = if found.labels[0] < k { votes.min_labels.max(kept) } else { votes.min_labels };
    let is_new = first_labels != votes.first_labels || min_labels != votes.min_labels;
    is_new.then(|| VotesArgs { first_labels, min_labels, ..votes.clone() })
}

/// A router of one half, and the other half to evaluate it on.
struct Halves {
    router: Router,
    policy: Policy,
    held_out: Table,
}

impl Halves {
    /// If one half cannot keep the task's limit, the limit is left out with a warning.
    fn new(table: &Table, task: &Task, args: &DiagnoseArgs, warnings: &mut Vec<String>) -> anyhow::Result<Self> {
        let [calibration, held_out] = pointsman::diagnose::halves(table)?;
        let router = Router::calibrate(&calibration, &args.partition)?;
        let policy = match router.policy(task) {
            Ok(policy) => policy,
            Err(error) if task.limit().is_some() => {
                let text = format!("the report leaves the limit out, since one half by itself cannot keep it: {error}");
                warnings.push(text);
                router.policy(&task.clone().without_limit())?
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { router, policy, held_out })
    }
}

/// Writes diagnosis.json and diagnosis.html, and the report and figures of one half evaluated on the other, and returns the page's
/// path.
fn write(report: &DiagnosisReport, halves: &Halves, folder: &Path) -> anyhow::Result<PathBuf> {
    let Halves { router, policy, held_out } = halves;
    let replay = policy.replay(held_out)?;
    let inputs = Inputs { router, policy, table: held_out, replay: &replay };
    evaluate::write::all(Report::new(&inputs, &[], None)?, &inputs, folder)?;
    let picture = reliability(&report.diagnosis.weak_model);
    let path = folder.join("figures").join("reliability");
    let png = picture.png().map_err(|error| anyhow!("figure reliability: {error}"))?;
    write_atomically(path.with_extension("svg"), |out| out.write_all(picture.svg().as_bytes()))?;
    write_atomically(path.with_extension("png"), |out| out.write_all(&png))?;
    write_atomically(folder.join("diagnosis.json"), |out| json::write_pretty(out, report))?;
    let page = folder.join("diagnosis.html");
    write_atomically(&page, |out| out.write_all(diagnosis_html(report).as_bytes()))?;
    Ok(page)
}
