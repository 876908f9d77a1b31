//! Batches of decisions as plain numbers, to store or send them.

use super::decision::KEPT;
use super::decisions::NOT_MOVED;
use super::{Decisions, Policy, Rooms, Verdict};
use crate::error::{Result, TableError};
use crate::estimate::{GroupLosses, LossTable};

/// The contents of a batch of decisions. [`Policy::restore`] checks them and makes a batch of them.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredDecisions {
    /// One number per row: its cell or fall-back, and its random draw.
    pub codes: Vec<u32>,
    /// The total loss of each row; empty unless the router has a forest.
    pub totals: Vec<f64>,
    /// Both ends of the irreducible loss of each row; empty unless the router has a forest.
    pub irreducible: Vec<[f64; 2]>,
    /// Both ends of each other oracle's loss, row by row; empty unless the router has a forest and the task such oracles.
    pub oracles: Vec<[f64; 2]>,
    /// The action that a cap assigned to each row, 255 for its own; empty unless caps were applied.
    pub moved: Vec<u8>,
}

impl Decisions {
    /// The contents of the batch.
    #[must_use]
    pub fn store(&self) -> StoredDecisions {
        let mut stored = StoredDecisions {
            codes: self.verdicts.iter().map(|verdict| verdict.0).collect(),
            moved: self.moved.clone(),
            ..StoredDecisions::default()
        };
        for losses in self.losses.iter().flat_map(LossTable::rows) {
            stored.totals.push(losses.total);
            stored.irreducible.push(losses.irreducible);
            stored.oracles.extend_from_slice(losses.oracles);
        }
        stored
    }
}

impl Policy {
    /// Makes a batch of decisions from the contents of one that an equal policy has decided.
    ///
    /// # Errors
    /// If the contents cannot be those of a batch of this policy.
    pub fn restore(&self, stored: StoredDecisions) -> Result<Decisions> {
        let StoredDecisions { codes, totals, irreducible, oracles, moved } = stored;
        let rows = codes.len();
        let refuse = |what: String| Err(TableError::OtherDecisions { what }.into());
        let pairs = self.estimates.empty.len() * self.fall_backs();
        let is_known = |code: &u32| {
            let place = (code & !KEPT) as usize;
            let is_drawn = code & KEPT != 0;
            place < self.cells.count() + pairs
                && self.estimates.sources[self.unfold(Verdict(*code)).1 as usize].is_some()
                && (self.has_limit() || !is_drawn)
        };
        if let Some(row) = codes.iter().position(|code| !is_known(code)) {
            return refuse(format!("row {row} has the code {}", codes[row]));
        }
        let is_action = |code: &u8| *code == NOT_MOVED || usize::from(*code) < self.actions();
        if !(moved.is_empty() || moved.len() == rows && moved.iter().all(is_action)) {
            return refuse("the actions that caps assigned do not fit".into());
        }
        let width = if self.has_forest() { self.estimates.other_oracles.count() } else { 0 };
        let with_losses = if self.has_forest() { rows } else { 0 };
        if [totals.len(), irreducible.len(), oracles.len()] != [with_losses, with_losses, with_losses * width] {
            return refuse("the losses do not fit the rows".into());
        }
        let mut ends = irreducible.iter().chain(&oracles).flatten().chain(&totals);
        if !ends.all(|loss| loss.is_finite()) {
            return refuse("a loss is not finite".into());
        }
        let losses = self.has_forest().then(|| {
            let mut losses = LossTable::new(width);
            for (row, (&total, &irreducible)) in totals.iter().zip(&irreducible).enumerate() {
                losses.push(GroupLosses { total, irreducible, oracles: &oracles[row * width..(row + 1) * width] });
            }
            losses
        });
        let verdicts = codes.into_iter().map(Verdict).collect();
        let mut decisions = Decisions { verdicts, losses, moved, rooms: Rooms::default() };
        decisions.rooms = Rooms::from_moves(self, &decisions);
        Ok(decisions)
    }
}
