//! Decisions as they are written.

use pointsman::Policy;
use pointsman::policy::{CapUse, Tally};
use pointsman_table::{ColumnKind, InputColumn, Sums, TableWriter};

use super::PROGRESS_STEPS;
use super::keep::OutputColumns;
use super::pipeline::{Decided, Pipeline};
use super::preview::Preview;
use crate::interrupt::Writing;
use crate::output::Output;
use crate::progress::Progress;

/// The tally of written decisions.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) tally: Tally,
    /// Rows whose probabilities did not sum to one.
    pub(super) divided: usize,
    /// The sums that `--normalize` divided by.
    pub(super) sums: Option<Sums>,
    pub(super) caps: Vec<CapUse>,
    pub(super) columns: OutputColumns,
}

/// Writes and counts decisions in order. `inputs` are the columns of the table, as far as they are known beforehand.
pub(super) fn write(
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
                // Created with the first batch, so that an unreadable input leaves no file.
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
        progress.set(read.map_or(written.tally.rows(), |share| (share * PROGRESS_STEPS as f64) as u64));
    }
    drop(progress);
    match output {
        Output::None => {}
        Output::Preview => preview.write(&mut anstream::stdout().lock(), written.tally.rows() as usize)?,
        Output::Table(path, format) => match writer {
            Some(writer) => writer.finish()?,
            // Without rows the table has columns only.
            None => TableWriter::create(path, Some(*format), &written.columns.declared(inputs))?.finish()?,
        },
    }
    Ok(written)
}
