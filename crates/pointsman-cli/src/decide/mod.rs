//! `pointsman decide`: every row of a table becomes a decision, in memory that does not grow with the table.
//!
//! One thread reads batches, one decides them (on all cores), this one writes; the channels between them hold a few
//! batches. Order is the input's.

mod cap;
mod keep;
mod preview;
mod summary;
mod tally;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::bail;
use pointsman::certify::Judgement;
use pointsman::monitor::Traffic;
use pointsman::policy::{CapRule, CapUse, Tally, TallySummary};
use pointsman::{Decisions, Policy};
use pointsman_table::{
    Batches, Column, ColumnKind, DecisionExtras, Frame, InputColumn, Need, ReadOptions, Rereadable, Sums, TableWriter,
};

use crate::args::{DecideArgs, Keep};
use crate::certified::Certified;
use crate::failure::Bug;
use crate::interrupt::Writing;
use crate::plan::{self, Output, shell_quoted};
use crate::progress::Progress;
use crate::render::number::plain;
use crate::render::{self, next_step};
use crate::{explain, json, tables};
use keep::OutputColumns;
use preview::Preview;
use summary::Summary;

/// Batches a channel holds.
const AHEAD: usize = 2;
/// How often an interrupt is looked for while nothing happens.
const PATIENCE: Duration = Duration::from_millis(100);
/// The resolution of the progress bar.
const STEPS: u64 = 1000;

/// A batch as read, and the share of the file read so far.
type Read = anyhow::Result<(Frame, Option<f64>)>;

/// A batch as decided.
#[derive(Debug)]
struct Decided {
    /// The columns of the table, if they are kept.
    inputs: Vec<(String, InputColumn)>,
    columns: Vec<Column>,
    decisions: Decisions,
    /// What the caps came to so far.
    caps: Vec<CapUse>,
    /// Rows whose probabilities did not sum to one.
    divided: usize,
    /// What those that were normalized summed to.
    sums: Option<Sums>,
    read: Option<f64>,
}

pub(crate) fn run(args: &DecideArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([Some(&args.router), Some(&args.table), args.task.task.first()])?;
    if !args.cap.is_empty() && !args.explain.is_empty() {
        bail!(
            "--cap with --explain: a cap is spent over the whole table, so it is no property of one query; leave --cap out to see what a \
             query would do without it, or write all decisions with --cap, whose column capped says what it changed"
        );
    }
    let task = plan::task(&args.task)?;
    let output = output(args)?;
    let router = plan::load_router(&args.router)?;
    let policy = Arc::new(plan::policy(&router, &task, &args.router, args.task.task.first())?);
    let mut options = plan::read_options(&args.reading, None, Need::Predictions);
    options.batch_rows = args.batch_rows as usize;
    options.features = Some(router.cells().features().to_vec());
    options.classes = Some(router.classes().to_vec());
    options.allow_empty = true;
    let caps = plan::caps(&args.cap, &task)?;
    // Caps are over the whole table, which is read twice for their sake.
    let table = caps.as_ref().map(|_| Rereadable::open(&args.table, options.format)).transpose()?;
    let open = |options: &ReadOptions| match &table {
        Some(table) => table.batches(options),
        None => pointsman_table::batches(&args.table, options),
    };
    let keeps_all = args.keep == Keep::All && matches!(output, Output::Table(..)) && args.explain.is_empty();
    let keeping = ReadOptions { keep_columns: keeps_all, ..options.clone() };
    let mut batches = open(if caps.is_some() { &options } else { &keeping })?;
    plan::check_classes(&router, batches.classes(), &args.table)?;
    if !args.explain.is_empty() {
        return explain::queries(&router, &policy, args, batches);
    }
    let certified =
        args.confidence.map(|confidence| Certified::new(&router, &policy, confidence, &args.router)).transpose()?;
    let judgement = certified.map(|certified| Arc::new(certified.judgement));
    let traffic = Arc::new(Mutex::new(router.traffic()));
    drop(router);
    let rule = match &caps {
        Some(caps) => {
            let rule = cap::rule(caps, &policy, batches)?;
            batches = open(&keeping)?;
            Some(rule)
        }
        None => None,
    };
    let extras = DecisionExtras::new(judgement.as_deref(), rule.is_some());
    // Ids that are kept as they are need not be there twice.
    let with_ids = match args.keep {
        Keep::None => false,
        Keep::All if keeps_all => batches.id_column().is_some_and(|column| column != "id"),
        Keep::Id | Keep::All => batches.has_ids(),
    };
    let names = pointsman_table::decision_columns(&policy, with_ids, extras);
    let (inputs, left_out) = (batches.columns(), batches.left_out().to_vec());

    let progress = match batches.progress().fraction() {
        Some(_) => Progress::bar("deciding", STEPS),
        None => Progress::rows("deciding"),
    };
    let pipeline = Pipeline::start(
        batches,
        Decider { policy: Arc::clone(&policy), judgement, rule, with_ids, traffic: Arc::clone(&traffic) },
    );
    let Written { tally, divided, sums, caps: uses, columns } =
        write(&output, &names, &inputs, &policy, pipeline, progress)?;
    plan::warn_if_no_choice(&task);
    plan::prices_in_words(policy.task()).iter().for_each(render::warn);
    plan::warn_if_divided(divided);
    tables::report_sums(sums);
    warn_about_columns(&columns, &left_out);
    let summary = tally.summary(&policy);
    warn_about_traffic(&*traffic.lock().map_err(|_| Bug("counting"))?, &policy, &summary);
    if args.json {
        let caps = caps.as_ref().map(|caps| (caps, uses.as_slice()));
        return json::print(&Summary::new(&summary, &policy, &output, caps, &columns));
    }
    if !render::is_quiet() {
        let mut err = io::BufWriter::new(anstream::stderr().lock());
        tally::write(&mut err, &summary, &policy)?;
        if let Some(caps) = &caps {
            cap::describe(&mut err, caps, &uses, &policy, &summary)?;
        }
        let (router, table) = (shell_quoted(&args.router), shell_quoted(&args.table));
        let flags = format!("{}{}", plan::task_flags(&args.task), plan::cap_flags(&args.cap));
        let (remark, command) = match &output {
            Output::Preview => {
                let reading = plan::reading_flags(&args.reading, None);
                let command = format!("pointsman decide {router} {table}{reading}{flags} -o decisions.csv");
                ("Next, write them all:".to_owned(), command)
            }
            Output::Table(..) | Output::None => {
                let (remark, budget) = prove(args, &policy, &summary);
                let flags = plan::column_flags(&args.reading) + &plan::task_flags(&args.task) + &budget;
                (remark, format!("pointsman evaluate {router} heldout.csv{flags}"))
            }
        };
        next_step(&mut err, &remark, &[command])?;
        io::Write::flush(&mut err)?;
    }
    Ok(())
}

/// How decisions are proved on held-out rows, and the budget that comes nearest to caps, which only decisions have.
fn prove(args: &DecideArgs, policy: &Policy, summary: &TallySummary) -> (String, String) {
    let mut remark = "Next, prove it on held-out rows".to_owned();
    let columns = args.reading.columns.as_ref();
    if columns.is_some_and(|columns| columns.has_name("probs") && !columns.has_name("votes")) {
        remark += ", with votes=PREFIX added to --columns unless their votes are called votes_<class>";
    }
    let mut budget = String::new();
    if !args.cap.is_empty() && policy.task().limit().is_none() {
        let routed: f64 =
            summary.shares.iter().filter(|(name, _)| name.starts_with("route:")).map(|(_, share)| share).sum();
        let share = plain((1e4 * routed).round() / 1e2);
        remark += &format!("; evaluate has no cap, the nearest is a budget of {share} %");
        budget = format!(" --budget {share}%");
    }
    (remark + ":", budget)
}

/// Where decisions go; with `--json` only where they are told to.
fn output(args: &DecideArgs) -> anyhow::Result<Output> {
    if args.json && args.output.is_none() {
        return Ok(Output::None);
    }
    if args.json && args.output.as_deref().is_some_and(plan::is_stream) {
        bail!("--json and -o -: both would go to standard output; give -o a file");
    }
    match Output::new(args.output.as_ref(), args.output_format, &[&args.router, &args.table])? {
        // Nobody asked for the first rows.
        Output::Preview if render::is_quiet() => Ok(Output::None),
        output => Ok(output),
    }
}

/// Says so if columns of the table go by other names, or nowhere.
fn warn_about_columns(columns: &OutputColumns, left_out: &[String]) {
    if let Some(text) = columns.renamed_in_words() {
        render::warn(text);
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        render::warn(format!("arrays without one value or one list per row are left out: {names}"));
    }
}

/// Says so if the queries are not like the calibration rows, and if a limit on routing is missed for that.
fn warn_about_traffic(traffic: &Traffic, policy: &Policy, summary: &TallySummary) {
    if let Some(text) = plan::traffic_in_words(&traffic.compare()) {
        render::warn(text);
    }
    // What a cap leaves is not what the limit asked for.
    if summary.capped.is_none() {
        plan::warn_if_limit_is_missed(policy, traffic, &summary.shares);
    }
}

/// The threads that read and decide, and where their results arrive.
#[derive(Debug)]
struct Pipeline {
    decided: Receiver<anyhow::Result<Decided>>,
    threads: Vec<(&'static str, JoinHandle<()>)>,
}

/// What decides batches.
#[derive(Debug)]
struct Decider {
    policy: Arc<Policy>,
    judgement: Option<Arc<Judgement>>,
    rule: Option<CapRule>,
    /// Whether ids are among the decisions' columns.
    with_ids: bool,
    /// The cells that queries fall into.
    traffic: Arc<Mutex<Traffic>>,
}

impl Pipeline {
    fn start(batches: Batches, decider: Decider) -> Self {
        let (read, frames) = sync_channel(AHEAD);
        let (decide, decided) = sync_channel(AHEAD);
        // Threads of their own: when this one gives up they may be waiting for input that never comes.
        let threads = vec![
            ("reading", thread::spawn(move || read_all(batches, &read))),
            ("deciding", thread::spawn(move || decider.decide_all(frames, &decide))),
        ];
        Self { decided, threads }
    }

    /// The next batch, or `None` when all are there.
    fn next(&mut self, writing: &Writing) -> anyhow::Result<Option<Decided>> {
        loop {
            writing.check()?;
            match self.decided.recv_timeout(PATIENCE) {
                Ok(decided) => return decided.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // A thread that panicked hangs up too; its rows are missing.
        for (what, thread) in self.threads.drain(..) {
            thread.join().map_err(|_| Bug(what))?;
        }
        Ok(None)
    }
}

/// Reads until the end, the first error, or nobody listens.
fn read_all(mut batches: Batches, read: &SyncSender<Read>) {
    while let Some(frame) = batches.next() {
        let share = batches.progress().fraction();
        let frame = frame.map(|frame| (frame, share)).map_err(anyhow::Error::from);
        let failed = frame.is_err();
        if read.send(frame).is_err() || failed {
            return;
        }
    }
}

impl Decider {
    /// Decides until the end, the first error, or nobody listens.
    fn decide_all(mut self, frames: Receiver<Read>, decide: &SyncSender<anyhow::Result<Decided>>) {
        for read in frames {
            let decided = read.and_then(|(frame, read)| self.decide(frame, read));
            let failed = decided.is_err();
            if decide.send(decided).is_err() || failed {
                return;
            }
        }
    }

    fn decide(&mut self, frame: Frame, read: Option<f64>) -> anyhow::Result<Decided> {
        let policy = &self.policy;
        let (divided, sums) = (plan::divided_rows(&frame.table), frame.sums);
        let mut decisions = policy.decide_batch(&frame.table).map_err(|error| plan::of_rows(error, &frame))?;
        let Frame { table, ids, columns: inputs, .. } = frame;
        if let Some(ids) = &ids {
            // Queries of the same content at the margin of a limit need not all be decided alike.
            decisions.draw_by_ids(policy, ids);
        }
        self.traffic.lock().map_err(|_| Bug("counting"))?.add(policy, &table, &decisions)?;
        if let Some(rule) = &mut self.rule {
            let keys = policy.cap_keys_of_table(&table, ids.as_deref())?;
            policy.apply_caps(rule, &mut decisions, &keys);
            if !rule.is_kept() {
                bail!("the table changed while it was read: --cap reads it twice; decide a copy of it");
            }
        }
        let answers = policy.answers(&decisions, &table.predictions());
        let extras = DecisionExtras::new(self.judgement.as_deref(), self.rule.is_some());
        let ids = ids.filter(|_| self.with_ids);
        let columns = pointsman_table::decision_values(policy, &decisions, &answers, extras, ids);
        let caps = self.rule.as_ref().map(CapRule::uses).unwrap_or_default();
        Ok(Decided { inputs, columns, decisions, caps, divided, sums, read })
    }
}

/// What was written.
#[derive(Debug)]
struct Written {
    tally: Tally,
    /// Rows whose probabilities did not sum to one.
    divided: usize,
    /// What those that were normalized summed to.
    sums: Option<Sums>,
    caps: Vec<CapUse>,
    columns: OutputColumns,
}

/// Writes what arrives, in order, and counts it. `inputs` are the columns of the table, as far as they are known beforehand.
fn write(
    output: &Output,
    names: &[(String, ColumnKind)],
    inputs: &[(String, InputColumn)],
    policy: &Policy,
    mut pipeline: Pipeline,
    progress: Progress,
) -> anyhow::Result<Written> {
    let writing = Writing::start();
    let columns = OutputColumns::new(names, inputs);
    let mut written = Written { tally: Tally::default(), divided: 0, sums: None, caps: Vec::new(), columns };
    let mut preview = Preview::new(names);
    let mut writer = None;
    while let Some(decided) = pipeline.next(&writing)? {
        let Decided { inputs, columns, decisions, caps, divided, sums, read } = decided;
        match output {
            Output::None => {}
            Output::Preview => preview.add(policy, &columns, &decisions),
            Output::Table(path, format) => {
                // Opened late: an input that cannot be read leaves no header behind.
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => {
                        written.columns = OutputColumns::new(names, &inputs);
                        none.insert(TableWriter::create(path, Some(*format), &written.columns.declared(&inputs))?)
                    }
                };
                let columns = written.columns.arrange(inputs, columns, writer)?;
                writer.write(&columns)?;
            }
        }
        written.tally.add(policy, &decisions);
        written.divided += divided;
        written.sums = Sums::merged(written.sums, sums);
        written.caps = caps;
        progress.set(read.map_or(written.tally.rows(), |share| (share * STEPS as f64) as u64));
    }
    drop(progress);
    match output {
        Output::None => {}
        Output::Preview => preview.write(&mut anstream::stdout().lock(), written.tally.rows() as usize)?,
        Output::Table(path, format) => match writer {
            Some(writer) => writer.finish()?,
            // No rows: a table of columns only.
            None => TableWriter::create(path, Some(*format), &written.columns.declared(inputs))?.finish()?,
        },
    }
    Ok(written)
}
