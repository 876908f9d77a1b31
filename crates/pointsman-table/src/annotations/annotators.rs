//! Annotators by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::findings::add_match;
use super::names::Names;
use crate::frame::MatchedLabels;
use crate::labels::lower_case;

/// Annotators and their numbers, in order of first appearance. Names that differ in capitals and surrounding spaces only are those of one
/// annotator: two labels of one person are not independent.
#[derive(Default)]
pub(super) struct Annotators {
    names: Names,
    /// The number and the first spelling of each name in lower case.
    spellings: HashMap<String, (u32, String), foldhash::fast::RandomState>,
    /// Other spellings of names.
    pub(super) matched: Option<MatchedLabels>,
}

impl Annotators {
    /// The number of an annotator, who is added if the name is new.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return number as u32;
        }
        match self.spellings.entry(lower_case(name)) {
            Entry::Occupied(first) => {
                let (number, spelling) = first.get();
                add_match(&mut self.matched, name, spelling);
                *number
            }
            Entry::Vacant(new) => {
                let number = self.names.number(name.trim());
                new.insert((number, name.trim().to_owned()));
                number
            }
        }
    }

    /// The number of an annotator by any spelling of the name.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.spellings.get(&lower_case(name)).map(|(number, _)| *number as usize)
    }

    /// All names with their numbers, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &String)> {
        self.names.iter()
    }

    /// All names in the order of their numbers.
    pub(super) fn into_vec(self) -> Vec<String> {
        self.names.into_vec()
    }
}
