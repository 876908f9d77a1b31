//! Caps over a whole table: a first pass collects bids of the queries for capped routes, a second one decides.
//!
//! A bid is a few numbers; beyond some megabytes they go to a temporary file.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use pointsman::Policy;
use pointsman::policy::{Bid, CapRule, CapUse, Caps, TallySummary};
use pointsman_table::Batches;
use tempfile::SpooledTempFile;

use super::{PROGRESS_STEPS, progress};
use crate::errors;
use crate::interrupt::Writing;
use crate::render::number::{count, short};
use crate::render::paragraph;
use crate::words::{identified_interval, with_error};

/// The largest size of bids in memory, in bytes.
const MAX_BYTES_IN_MEMORY: usize = 64 << 20;

/// Decides which queries of a table get the capped routes.
pub(super) fn rule(caps: &Caps, policy: &Policy, mut batches: Batches) -> anyhow::Result<CapRule> {
    let writing = Writing::start();
    let progress = progress("counting queries for caps", &batches);
    let mut bids = Bids { spool: tempfile::spooled_tempfile(MAX_BYTES_IN_MEMORY), width: caps.count() + 1 };
    let mut out = BufWriter::with_capacity(1 << 20, &mut bids.spool);
    let mut rows = 0;
    while let Some(frame) = batches.next().transpose()? {
        writing.check()?;
        let mut decisions = policy.decide_batch(&frame.table).map_err(|error| errors::in_rows(error, &frame))?;
        if let Some(ids) = &frame.ids {
            decisions.draw_by_ids(policy, ids);
        }
        let keys = policy.cap_keys_of_table(&frame.table, frame.ids.as_deref())?;
        for bid in policy.bids(caps, &decisions, &keys) {
            write_bid(&mut out, &bid, bids.width)?;
        }
        rows += frame.table.rows() as u64;
        progress.set(batches.progress().fraction().map_or(rows, |share| (share * PROGRESS_STEPS as f64) as u64));
    }
    out.flush()?;
    drop(out);
    CapRule::find(caps, rows, |see| {
        writing.check()?;
        bids.scan(see)
    })
}

/// Bids on disk, or in memory while they are few.
struct Bids {
    spool: SpooledTempFile,
    /// Costs per bid.
    width: usize,
}

impl Bids {
    fn scan(&mut self, see: &mut dyn FnMut(&Bid)) -> anyhow::Result<()> {
        self.spool.rewind()?;
        let mut input = BufReader::with_capacity(1 << 20, &mut self.spool);
        let mut record = vec![0; 1 + 8 * (1 + self.width)];
        loop {
            match input.read_exact(&mut record) {
                Ok(()) => see(&read_bid(&record)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn write_bid(out: &mut impl Write, bid: &Bid, width: usize) -> io::Result<()> {
    out.write_all(&[bid.wanted])?;
    out.write_all(&bid.key.to_le_bytes())?;
    bid.costs[..width].iter().try_for_each(|cost| out.write_all(&cost.to_le_bytes()))
}

fn read_bid(record: &[u8]) -> Bid {
    let (words, _) = record[1..].as_chunks::<8>();
    let mut bid = Bid { wanted: record[0], key: u64::from_le_bytes(words[0]), ..Bid::default() };
    bid.costs.iter_mut().zip(&words[1..]).for_each(|(cost, word)| *cost = f64::from_le_bytes(*word));
    bid
}

/// Prints the use of each cap, and what the caps cost.
pub(super) fn describe(
    out: &mut impl Write,
    caps: &Caps,
    uses: &[CapUse],
    policy: &Policy,
    summary: &TallySummary,
) -> io::Result<()> {
    let savings = caps.savings(policy, uses);
    for ((name, cap), saving) in caps.names(policy.task()).into_iter().zip(uses).zip(savings) {
        let CapUse { most, wanted, granted, .. } = *cap;
        let n = |n: u64| count(n as usize);
        let further = if saving > 0.0 {
            format!(
                " One more query there would save up to {}, by the estimates that chose the actions.",
                short(saving)
            )
        } else {
            String::new()
        };
        let text = format!(
            "Cap on {name}: at most {} of these queries; routed there: {} without the cap, {} with it.{further}",
            n(most),
            n(wanted),
            n(granted)
        );
        paragraph(&mut *out, 0, &text)?;
    }
    let Some(capped) = &summary.capped else { return Ok(()) };
    let to: Vec<String> = capped.to.iter().map(|(name, &n)| format!("{name} {}", count(n as usize))).collect();
    let (cost, basis) = match capped.standard_error {
        Some(error) => {
            let open = identified_interval(capped.cost, error, capped.identified);
            (with_error(capped.cost, error) + &open, "")
        }
        // Caps move no calibration rows that could correct them.
        None => {
            let open = identified_interval(capped.cost, 0.0, capped.identified);
            (short(capped.cost) + &open, ", by the estimates that chose the actions, which may overstate it")
        }
    };
    // Held-out rows may say that it costs less than nothing.
    let difference =
        if capped.cost < 0.0 { format!("changes the cost by {cost}") } else { format!("costs {cost} more") };
    let text = format!(
        "{} take the next-best action instead ({}; column capped), which {difference} per query over all queries{basis}.",
        count(capped.moved as usize),
        to.join(", ")
    );
    paragraph(out, 0, &text)
}
