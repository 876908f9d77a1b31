//! A batch of decisions.

use super::decision::KEPT;
use super::limit::uniform_draw;
use super::{Policy, Rooms, Verdict};
use crate::estimate::LossTable;

/// The code of a row that keeps its own action.
pub(super) const NOT_MOVED: u8 = u8::MAX;

/// Many rows decided together; [`Policy::row`] unfolds one.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    pub(super) verdicts: Vec<Verdict>,
    /// The rows' own losses, if the router has a forest.
    pub(super) losses: Option<LossTable>,
    /// The actions of rows whose own cannot be taken, if caps were applied or a route is not available.
    pub(super) moved: Vec<u8>,
    /// The largest shares of the routes that rows were moved from.
    pub(super) rooms: Rooms,
}

impl Decisions {
    /// Decisions by the cells of the rows.
    pub(super) fn from_verdicts(verdicts: Vec<Verdict>) -> Self {
        Self { verdicts, ..Self::default() }
    }

    /// Whether caps were applied, or a route that a row wants is not available.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        !self.moved.is_empty()
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.verdicts.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }

    /// The action that a row gets because its own cannot be taken.
    pub(super) fn moved(&self, row: usize) -> Option<u8> {
        self.moved.get(row).copied().filter(|&code| code != NOT_MOVED)
    }

    /// The row's verdict before any random draw.
    pub(crate) fn verdict(&self, row: usize) -> Verdict {
        Verdict(self.verdicts[row].0 & !KEPT)
    }

    /// Seeds the random draws at the margin of a limit by the rows' ids instead of their content.
    pub fn draw_by_ids(&mut self, policy: &Policy, ids: &[String]) {
        for (row, id) in ids.iter().enumerate().take(self.len()) {
            self.draw_by_id(policy, row, id);
        }
    }

    /// Seeds the random draw of one row at the margin of a limit by its id instead of its content.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn draw_by_id(&mut self, policy: &Policy, row: usize, id: &str) {
        if policy.has_limit() {
            self.verdicts[row] = policy.draw_row(self, row, || draw_by_id(id));
        }
    }
}

/// The random draw of a query with an id.
pub(super) fn draw_by_id(id: &str) -> f64 {
    uniform_draw(id.bytes().map(u64::from))
}
