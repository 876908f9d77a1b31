//! `pointsman decide`: a decision per row of a table, in memory that does not grow with the table.

mod cap;
mod keep;
mod pipeline;
mod preview;
mod summary;
mod tally;
mod write;

use std::io;
use std::sync::{Arc, Mutex};

use anyhow::bail;
use pointsman::monitor::Traffic;
use pointsman::policy::{CapSize, CapUse, Caps, TallySummary};
use pointsman::{Policy, Router, Task};
use pointsman_table::{Batches, DecisionExtras, Format, Need, ReadOptions, Rereadable, RouterOrPolicy};

use crate::args::{CapArg, DecideArgs, Keep};
use crate::certified::Certified;
use crate::failure::Bug;
use crate::flags::{self, shell_quoted, shell_quoted_text};
use crate::output::Output;
use crate::progress::Progress;
use crate::render::{self, next_step, warn_all};
use crate::{errors, explain, input, json, task, words};
use keep::OutputColumns;
use pipeline::{Decider, Pipeline};
use summary::Summary;
use write::write;

/// The resolution of the progress bar.
const PROGRESS_STEPS: u64 = 1000;

pub(crate) fn run(args: &DecideArgs) -> anyhow::Result<()> {
    input::check_streams([Some(&args.router), Some(&args.table), args.task.task.first()])?;
    if !args.cap.is_empty() && !args.explain.is_empty() {
        bail!(
            "--cap with --explain: whether a query fits under a cap depends on the whole table; leave --cap out to explain the decision \
             without it, or write all decisions with --cap, whose column capped has the action it did not allow"
        );
    }
    let task = task::from_args(&args.task)?;
    let output = output(args)?;
    input::check_order("decide", &args.router, &args.table)?;
    let (policy, router) = load(args, &task)?;
    let task = policy.task().clone();
    let caps = task::caps(&args.cap, &task)?;
    let queries = Queries::new(args, &policy, &output, caps.is_some())?;
    let batches = queries.batches(caps.is_none())?;
    match &router {
        Some(router) => {
            input::check_classes(router, batches.classes(), &args.table)?;
            warn_all(words::policy::unused_answers(&task, router.rows()));
        }
        None => input::check_classes_of_policy(&policy, batches.classes(), &args.table)?,
    }
    if let Some(router) = router.as_ref().filter(|_| !args.explain.is_empty()) {
        return explain::queries(router, &policy, args, batches);
    }
    let certify = |(router, confidence)| Certified::new(router, &policy, confidence, &args.router);
    let certified = router.as_ref().zip(args.confidence).map(certify).transpose()?;
    let judgement = certified.map(|certified| Arc::new(certified.judgement));
    let traffic = router.as_ref().map(|router| Arc::new(Mutex::new(router.traffic())));
    drop(router);
    let (rule, batches) = match &caps {
        Some(caps) => (Some(cap::rule(caps, &policy, batches)?), queries.batches(true)?),
        None => (None, batches),
    };
    let with_ids = queries.writes_ids(&batches);
    if args.keep == Keep::Id && !with_ids && matches!(output, Output::Table(..)) {
        let table = args.table.display();
        render::warn(format!(
            "{table} has no column id, so nothing says which query a decision is for: name the column with --columns id=NAME"
        ));
    }
    let extras = DecisionExtras::new(judgement.as_deref(), rule.is_some());
    let mut names = pointsman_table::decision_columns(&policy, with_ids, extras);
    // Ids keep the name of their column, unless a column of the decisions has it.
    if let Some(own) = batches.id_column().filter(|own| with_ids && names.iter().all(|(name, _)| name != own)) {
        own.clone_into(&mut names[0].0);
    }
    let (inputs, left_out) = (batches.columns(), batches.left_out().to_vec());
    let progress = progress("deciding", &batches);
    let decider = Decider { policy: Arc::clone(&policy), judgement, rule, with_ids, traffic: traffic.clone() };
    let written = write(&output, &names, &inputs, &policy, Pipeline::start(batches, decider), progress)?;
    let summary = written.tally.summary(&policy);
    warn_all(words::policy::no_choice(&task));
    warn_all(words::policy::overpriced(policy.task()));
    warn_all(words::table::divided(written.divided));
    warn_all(written.sums.map(|sums| words::table::normalized_sums("the probabilities", sums)));
    warn_about_columns(&written.columns, &left_out);
    if let Some(traffic) = traffic {
        warn_about_traffic(&*traffic.lock().map_err(|_| Bug("counting"))?, &policy, &summary);
    }
    let caps = caps.as_ref().map(|caps| (caps, written.caps.as_slice()));
    match args.json {
        true => json::print(&Summary::new(&summary, &policy, &output, caps, &written.columns)),
        false => Ok(print(args, &output, &policy, &summary, caps)?),
    }
}

/// The policy, and the router from which it is compiled, unless the file has a policy.
fn load(args: &DecideArgs, task: &Task) -> anyhow::Result<(Arc<Policy>, Option<Router>)> {
    let without = |task: Task| args.without_route.iter().try_fold(task, |task, name| task.without_route(name));
    match input::load_router_or_policy(&args.router)? {
        RouterOrPolicy::Policy(policy) => {
            refuse_rows(args)?;
            let task = without(task::beside_policy(&policy, task, &args.task)?)?;
            Ok((
                Arc::new(
                    policy
                        .reprice(&task)
                        .map_err(|error| errors::other_policy(error, &task, &args.router, &args.task))?,
                ),
                None,
            ))
        }
        RouterOrPolicy::Router(router) => {
            let task = without(task.clone())?;
            let policy = errors::compile(&router, &task, &args.router, args.task.task.first())?;
            Ok((Arc::new(policy), Some(router)))
        }
        _ => bail!("{}: is neither a router nor a policy", args.router.display()),
    }
}

/// Refuses flags that need calibration rows.
fn refuse_rows(args: &DecideArgs) -> anyhow::Result<()> {
    let flag = match (args.confidence, args.explain.is_empty()) {
        (Some(_), _) => "--confidence",
        (None, false) => "--explain",
        (None, true) => return Ok(()),
    };
    bail!(
        "{}: is a policy, which has no calibration rows, and {flag} needs them: give the router from which it was compiled",
        args.router.display()
    )
}

/// The table of queries, and how it is read.
struct Queries<'a> {
    args: &'a DecideArgs,
    options: ReadOptions,
    /// Whether all columns of the table are written beside the decisions.
    keeps_columns: bool,
    /// The table in a form that can be read twice, which caps need.
    rereadable: Option<Rereadable>,
}

impl<'a> Queries<'a> {
    fn new(args: &'a DecideArgs, policy: &Policy, output: &Output, is_read_twice: bool) -> anyhow::Result<Self> {
        let mut options = input::read_options(&args.reading, None, Need::Predictions)?;
        options.batch_rows = args.batch_rows as usize;
        options.features = Some(policy.cells().features().to_vec());
        options.classes = Some(policy.classes().to_vec());
        options.allow_empty = true;
        let rereadable = is_read_twice.then(|| Rereadable::open(&args.table, options.format)).transpose()?;
        let keeps_columns = args.keep == Keep::All && matches!(output, Output::Table(..)) && args.explain.is_empty();
        Ok(Self { args, options, keeps_columns, rereadable })
    }

    /// The batches of the table; their columns are kept only if decisions are written from them.
    fn batches(&self, are_written: bool) -> anyhow::Result<Batches> {
        let options = ReadOptions { keep_columns: self.keeps_columns && are_written, ..self.options.clone() };
        Ok(match &self.rereadable {
            Some(table) => table.batches(&options)?,
            None => pointsman_table::batches(&self.args.table, &options)?,
        })
    }

    /// Whether decisions have a column of ids, in addition to the columns kept.
    fn writes_ids(&self, batches: &Batches) -> bool {
        match self.args.keep {
            Keep::None => false,
            // They are among the columns kept.
            Keep::All if self.keeps_columns => false,
            Keep::Id | Keep::All => batches.has_ids(),
        }
    }
}

/// A progress bar over the table, or a count of rows if its length is unknown.
fn progress(what: &str, batches: &Batches) -> Progress {
    match batches.progress().fraction() {
        Some(_) => Progress::bar(what, PROGRESS_STEPS),
        None => Progress::rows(what),
    }
}

/// Prints the summary and the next step on standard error.
fn print(
    args: &DecideArgs,
    output: &Output,
    policy: &Policy,
    summary: &TallySummary,
    caps: Option<(&Caps, &[CapUse])>,
) -> io::Result<()> {
    if render::is_quiet() {
        return Ok(());
    }
    let mut err = io::BufWriter::new(anstream::stderr().lock());
    tally::write(&mut err, summary, policy)?;
    if let Some((caps, uses)) = caps {
        cap::describe(&mut err, caps, uses, policy, summary)?;
    }
    let (router, table, task) = (shell_quoted(&args.router), shell_quoted(&args.table), flags::task(&args.task));
    let (remark, command) = match output {
        Output::Preview => {
            let (reading, caps) = (flags::reading(&args.reading, None), flags::caps(&args.cap));
            let without: String =
                args.without_route.iter().map(|name| format!(" --without-route {}", shell_quoted_text(name))).collect();
            let command = format!("pointsman decide {router} {table}{reading}{task}{without}{caps} -o decisions.csv");
            ("Next, write them all:".to_owned(), command)
        }
        // Evaluating needs the router.
        Output::Table(..) | Output::None if policy.router().is_none() => return io::Write::flush(&mut err),
        Output::Table(..) | Output::None => {
            let (remark, caps) = (evaluation_step(args), flags::caps(&shares_of_caps(args, summary.rows)));
            let layout = flags::layout(&args.reading);
            // The held-out rows most likely have the format of the queries.
            let format = Format::from_path(&args.table).filter(|_| args.reading.format.is_none());
            let extension = format.or(args.reading.format).map_or("csv".to_owned(), |format| format.to_string());
            (remark, format!("pointsman evaluate {router} heldout.{extension}{layout}{task}{caps}"))
        }
    };
    next_step(&mut err, &remark, &[command])?;
    io::Write::flush(&mut err)
}

/// The remark on evaluating decisions on held-out rows.
fn evaluation_step(args: &DecideArgs) -> String {
    let mut remark = "Next, evaluate it on held-out rows".to_owned();
    let has_name = |key: &str| args.reading.columns.iter().any(|columns| columns.has_name(key));
    if has_name("probs") && !has_name("votes") && !has_name("labels") {
        remark += ", with votes=PREFIX added to --columns, or labels=PREFIX if columns hold one label each, unless their votes are called votes_<class>";
    }
    remark += "; labels in a long table need --annotations FILE";
    if args.cap.iter().any(|cap| matches!(cap.size, CapSize::Queries(_))) {
        remark += "; a cap is given as its share of the queries";
    }
    if !args.without_route.is_empty() {
        remark += "; --without-route is left out, since evaluate has all routes of the task";
    }
    remark + ":"
}

/// The caps as shares of the queries, which other tables can keep as well.
fn shares_of_caps(args: &DecideArgs, rows: u64) -> Vec<CapArg> {
    let share = |cap: &CapArg| match cap.size {
        CapSize::Queries(most) if rows > 0 => {
            // Rounded up, so that as many queries fit in a table of this size; the difference is rounding of an exact share. Adding zero
            // makes a negative zero positive.
            let percent = (1e6 * most.min(rows) as f64 / rows as f64 - 1e-6).ceil() / 1e4 + 0.0;
            CapArg { size: CapSize::Percent(percent), ..cap.clone() }
        }
        _ => cap.clone(),
    };
    args.cap.iter().map(share).collect()
}

/// Where decisions go; with `--json` only to `-o`.
fn output(args: &DecideArgs) -> anyhow::Result<Output> {
    if args.json && args.output.is_none() {
        return Ok(Output::None);
    }
    if args.json && args.output.as_deref().is_some_and(input::is_stream) {
        bail!("--json and -o -: both would go to standard output; give -o a file");
    }
    match Output::new(args.output.as_ref(), args.output_format, &[&args.router, &args.table])? {
        // With --quiet there is no preview.
        Output::Preview if render::is_quiet() => Ok(Output::None),
        output => Ok(output),
    }
}

/// Warns about columns of the table that are renamed or left out.
fn warn_about_columns(columns: &OutputColumns, left_out: &[String]) {
    warn_all(columns.renamed_in_words());
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        render::warn(format!("arrays without one value or one list per row are left out: {names}"));
    }
}

/// Warns if the queries differ from the calibration rows, and if a limit on routing is missed therefore.
fn warn_about_traffic(traffic: &Traffic, policy: &Policy, summary: &TallySummary) {
    warn_all(words::policy::traffic(&traffic.compare()));
    // With caps the routed share is not the limit's.
    if summary.capped.is_none() {
        warn_all(words::policy::limit_missed(policy, traffic, &summary.shares));
    }
}
