//! A batch of a log: its queries, and the actions that were taken.

use anyhow::{anyhow, bail};
use pointsman_table::Frame;

use crate::failure::Hint;

/// The columns of a log beside those of queries.
const ACTION: &str = "action";
const WOULD: &str = "would";
const DECISION_ID: &str = "decision_id";

/// The name of no action.
const UNDETERMINED: &str = "undetermined";

/// Rows of a log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) frame: Frame,
    /// The names of the logged actions.
    pub(super) actions: Vec<String>,
    /// The place of each row's action among them; `None` if it is undetermined.
    pub(super) taken: Vec<Option<usize>>,
    /// The ids that the service gave.
    decision_ids: Option<Vec<String>>,
}

impl Log {
    /// Finds the columns of a log; that of the actions must be there if `needs_actions`.
    pub(super) fn new(frame: Frame, needs_actions: bool) -> anyhow::Result<Self> {
        let decision_ids = texts(&frame, DECISION_ID)?;
        let mut log = Self { frame, actions: Vec::new(), taken: Vec::new(), decision_ids };
        if !needs_actions {
            return Ok(log);
        }
        let file = log.frame.file_of(0).to_owned();
        let Some(actions) = texts(&log.frame, ACTION)? else {
            let hint = "pointsman decisions export writes a log with it; --against TASK.toml compares with another task instead";
            return Err(anyhow!("{file}: has no column action, so that nothing says what was decided")
                .context(Hint(hint.into())));
        };
        // In shadow mode every query is answered with predict.
        let would = texts(&log.frame, WOULD)?.unwrap_or_default();
        for (row, action) in actions.iter().enumerate() {
            let action = would.get(row).filter(|would| !would.is_empty()).unwrap_or(action);
            let code = log.code(action);
            log.taken
                .push(code.map_err(|reason| anyhow!("{file}: row {}, column action: {reason}", log.frame.rows[row]))?);
        }
        Ok(log)
    }

    pub(super) fn rows(&self) -> usize {
        self.frame.table.rows()
    }

    /// The place of an action among those seen so far, to which it is added.
    fn code(&mut self, action: &str) -> anyhow::Result<Option<usize>> {
        if action == UNDETERMINED {
            return Ok(None);
        }
        if let Some(place) = self.actions.iter().position(|other| other == action) {
            return Ok(Some(place));
        }
        if !(action == "predict" || action == "abstain" || action.starts_with("route:")) {
            bail!("{action:?} is not an action: predict, route:NAME, abstain or undetermined are");
        }
        self.actions.push(action.to_owned());
        Ok(Some(self.actions.len() - 1))
    }

    /// The rows whose id is one of the caller's, with these ids. Without one, the id of the decision stands in its place.
    pub(super) fn ids_of_callers(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_given = |row: usize, id: &str| self.decision_ids.as_ref().is_none_or(|ids| ids[row] != id);
        let ids = self.frame.ids.iter().flatten().map(String::as_str).enumerate();
        ids.filter(move |(row, id)| is_given(*row, id))
    }
}

/// The texts of a column, if there is one of this name.
fn texts(frame: &Frame, name: &str) -> anyhow::Result<Option<Vec<String>>> {
    let Some((_, column)) = frame.columns.iter().find(|(other, _)| other == name) else { return Ok(None) };
    let refuse = |(row, reason): (usize, String)| {
        anyhow!("{}: row {}, column {name}: {reason}", frame.file_of(row), frame.rows.get(row).copied().unwrap_or(0))
    };
    Ok(Some(column.texts().map_err(refuse)?))
}
