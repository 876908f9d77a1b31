//! `pointsman decide`: every row of a table becomes a decision, in memory that does not grow with the table.
//!
//! One thread reads batches, one decides them (on all cores), this one writes; the channels between them hold a few
//! batches. Order is the input's.

mod preview;
mod tally;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pointsman::{Decisions, Judgement, Policy, Tally};
use pointsman_table::{Batches, Column, ColumnKind, Frame, Need, TableWriter};

use crate::args::DecideArgs;
use crate::certified::Certified;
use crate::explain;
use crate::failure::Bug;
use crate::interrupt::Writing;
use crate::plan::{self, Output, shell_quoted};
use crate::progress::Progress;
use crate::render::{self, next_step};
use preview::Preview;

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
    columns: Vec<Column>,
    decisions: Decisions,
    /// Rows whose probabilities did not sum to one.
    divided: usize,
    read: Option<f64>,
}

pub(crate) fn run(args: &DecideArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([Some(&args.router), Some(&args.table), args.task.task.first()])?;
    let task = plan::task(&args.task)?;
    let output = Output::new(args.output.as_ref(), args.output_format, &[&args.router, &args.table])?;
    let router = plan::load_router(&args.router)?;
    let policy = Arc::new(plan::policy(&router, &task, &args.router, args.task.task.first())?);
    let mut options = plan::read_options(&args.reading, None, Need::Predictions);
    options.batch_rows = args.batch_rows as usize;
    options.features = Some(router.cells().features().to_vec());
    options.classes = Some(router.classes().to_vec());
    let batches = pointsman_table::batches(&args.table, &options)?;
    plan::check_classes(&router, batches.classes(), &args.table)?;
    if let Some(wanted) = &args.explain {
        return explain::query(&router, &policy, args, wanted, batches);
    }
    let certified =
        args.confidence.map(|confidence| Certified::new(&router, &policy, confidence, &args.router)).transpose()?;
    let judgement = certified.map(|certified| Arc::new(certified.judgement));
    drop(router);
    let names = pointsman_table::decision_columns(&policy, batches.has_ids(), judgement.is_some());

    let progress = match batches.progress().fraction() {
        Some(_) => Progress::bar("deciding", STEPS),
        None => Progress::rows("deciding"),
    };
    let pipeline = Pipeline::start(batches, Arc::clone(&policy), judgement);
    let (tally, divided) = write(&output, &names, &policy, pipeline, progress)?;
    plan::warn_if_no_choice(&task);
    plan::warn_if_divided(divided);
    if !render::is_quiet() {
        let mut err = io::BufWriter::new(anstream::stderr().lock());
        tally::write(&mut err, &tally, &policy)?;
        let (router, table) = (shell_quoted(&args.router), shell_quoted(&args.table));
        let flags = plan::task_flags(&args.task);
        let (remark, command) = match &output {
            Output::Preview => {
                ("Next, write them all:", format!("pointsman decide {router} {table}{flags} -o decisions.csv"))
            }
            Output::Table(..) => {
                ("Next, prove it on held-out rows:", format!("pointsman evaluate {router} heldout.csv{flags}"))
            }
        };
        next_step(&mut err, remark, &[command])?;
        io::Write::flush(&mut err)?;
    }
    Ok(())
}

/// The threads that read and decide, and where their results arrive.
#[derive(Debug)]
struct Pipeline {
    decided: Receiver<anyhow::Result<Decided>>,
    threads: Vec<(&'static str, JoinHandle<()>)>,
}

impl Pipeline {
    fn start(batches: Batches, policy: Arc<Policy>, judgement: Option<Arc<Judgement>>) -> Self {
        let (read, frames) = sync_channel(AHEAD);
        let (decide, decided) = sync_channel(AHEAD);
        // Threads of their own: when this one gives up they may be waiting for input that never comes.
        let threads = vec![
            ("reading", thread::spawn(move || read_all(batches, &read))),
            ("deciding", thread::spawn(move || decide_all(&policy, judgement.as_deref(), frames, &decide))),
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

fn decide_all(
    policy: &Policy,
    judgement: Option<&Judgement>,
    frames: Receiver<Read>,
    decide: &SyncSender<anyhow::Result<Decided>>,
) {
    for read in frames {
        let decided = read.and_then(|(frame, read)| {
            let divided = plan::divided_rows(&frame.table);
            let mut decisions = policy.decide_batch(&frame.table).map_err(|error| plan::of_rows(error, &frame))?;
            let Frame { table, ids, .. } = frame;
            if let Some(ids) = &ids {
                // Queries of the same content at the margin of a limit need not all be decided alike.
                decisions.draw_by_ids(policy, ids);
            }
            let answers = policy.answers(&decisions, &table.predictions());
            let columns = pointsman_table::decision_values(policy, &decisions, &answers, judgement, ids);
            Ok(Decided { columns, decisions, divided, read })
        });
        let failed = decided.is_err();
        if decide.send(decided).is_err() || failed {
            return;
        }
    }
}

/// Writes what arrives, in order, and counts it, and the rows whose probabilities did not sum to one.
fn write(
    output: &Output,
    names: &[(String, ColumnKind)],
    policy: &Policy,
    mut pipeline: Pipeline,
    progress: Progress,
) -> anyhow::Result<(Tally, usize)> {
    let writing = Writing::start();
    let (mut tally, mut all_divided) = (Tally::default(), 0);
    let mut preview = Preview::new(names);
    let mut writer = None;
    while let Some(Decided { columns, decisions, divided, read }) = pipeline.next(&writing)? {
        match output {
            Output::Preview => preview.add(policy, &columns, &decisions),
            Output::Table(path, format) => {
                // Opened late: an input that cannot be read leaves no header behind.
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(TableWriter::create(path, Some(*format), names)?),
                };
                writer.write(&columns)?;
            }
        }
        tally.add(policy, &decisions);
        all_divided += divided;
        progress.set(read.map_or(tally.rows(), |share| (share * STEPS as f64) as u64));
    }
    drop(progress);
    match output {
        Output::Preview => preview.write(&mut anstream::stdout().lock(), tally.rows() as usize)?,
        // The reader refuses tables without rows, so there is a writer.
        Output::Table(..) => writer.map_or(Ok(()), TableWriter::finish)?,
    }
    Ok((tally, all_divided))
}
