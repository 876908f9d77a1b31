//! The queries that `--explain` names, by id or by row.

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::{anyhow, bail};
use pointsman_table::Frame;

use super::json::Explanation;
use crate::args::DecideArgs;

/// The queries to explain, and the explanations found so far.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Ids and rows as typed, each with its parts between commas.
    typed: Vec<(String, Vec<String>)>,
    /// Explanations by text, and by whether the text is an id or a row.
    pub(super) found: HashMap<(String, bool), Explanation>,
    has_ids: bool,
    /// Whether some id is a number, so that numbers are ids and not rows.
    has_numbers: bool,
}

impl Wanted {
    pub(super) fn new(typed: &[String]) -> Self {
        let parts = |text: &String| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
            (text.clone(), parts.collect())
        };
        Self { typed: typed.iter().map(parts).collect(), found: HashMap::new(), has_ids: false, has_numbers: false }
    }

    /// The wanted rows of a batch that were not found before: the text, whether it is an id, and the place.
    pub(super) fn find(&mut self, frame: &Frame) -> Vec<(String, bool, usize)> {
        let texts = self.typed.iter().flat_map(|(whole, parts)| parts.iter().chain([whole]));
        let is_new = |text: &&String, by_id: bool| !self.found.contains_key(&((*text).clone(), by_id));
        let mut places = Vec::new();
        if let Some(ids) = &frame.ids {
            self.has_ids = true;
            self.has_numbers |= ids.iter().any(|id| id.parse::<u64>().is_ok());
            let texts: HashSet<&String> = texts.clone().filter(|text| is_new(text, true)).collect();
            let mut seen = HashSet::new();
            for (place, id) in ids.iter().enumerate().filter(|(_, id)| texts.contains(id)) {
                if seen.insert(id) {
                    places.push((id.clone(), true, place));
                }
            }
        }
        let rows: BTreeSet<(u64, &String)> =
            texts.filter(|text| is_new(text, false)).filter_map(|text| Some((text.parse().ok()?, text))).collect();
        for (row, text) in rows {
            if let Ok(place) = frame.rows.binary_search(&row) {
                places.push((text.clone(), false, place));
            }
        }
        places
    }

    /// Whether no later batch can change the result.
    pub(super) fn is_complete(&self) -> bool {
        // A text with commas may be a later id.
        let found = |text: &String| self.found.contains_key(&(text.clone(), self.has_ids));
        self.typed.iter().all(|(whole, parts)| found(whole) || !self.has_ids && parts.iter().all(found))
    }

    /// The explanations in the order of the arguments.
    pub(super) fn resolve(mut self, args: &DecideArgs) -> anyhow::Result<Vec<Explanation>> {
        let mut explained = Vec::new();
        for (whole, parts) in std::mem::take(&mut self.typed) {
            if let Some(found) = self.found.get(&(whole.clone(), true)) {
                explained.push(found.clone());
                continue;
            }
            if parts.is_empty() {
                bail!("--explain needs an id, or the number of a row");
            }
            for part in parts {
                let by_id = self.found.get(&(part.clone(), true));
                let by_row = || self.found.get(&(part.clone(), false)).filter(|_| !self.has_numbers);
                match by_id.or_else(by_row) {
                    Some(found) => explained.push(found.clone()),
                    None => return Err(self.missing(&part, args)),
                }
            }
        }
        Ok(explained)
    }

    /// The error on an id or row that is not in the table.
    fn missing(&self, part: &str, args: &DecideArgs) -> anyhow::Error {
        let kept = if args.reading.filters.is_empty() { "" } else { " among those that --where keeps" };
        let file = args.table.display();
        if !self.has_ids {
            return anyhow!(
                "{file}: no row has the number {part:?} (from 1){kept}, and the table has no column id: name its column of ids with \
                 --columns id=NAME"
            );
        }
        if self.has_numbers {
            anyhow!("{file}: no row has the id {part:?}{kept}; its ids are numbers, so a number is not taken for a row")
        } else {
            anyhow!("{file}: no row has the id {part:?} or that row number (from 1){kept}")
        }
    }
}
