//! The columns of the table that are written beside its decisions.

use std::collections::HashSet;

use pointsman_table::{Column, ColumnKind, InputColumn, TableWriter};

use crate::render::printable;

/// The prefix of input columns whose name is taken.
const PREFIX: &str = "input_";

/// The columns of the output: those of the input, as far as they are known, and those of the decisions.
#[derive(Debug)]
pub(super) struct OutputColumns {
    decisions: Vec<(String, ColumnKind)>,
    /// Columns of the input: the name there, and the name in the output.
    inputs: Vec<(String, String)>,
    /// The number of them that come before the decisions; later batches may bring others.
    before: usize,
    taken: HashSet<String>,
}

impl OutputColumns {
    /// The columns of an output that begins with these columns of the input.
    pub(super) fn new(decisions: &[(String, ColumnKind)], first: &[(String, InputColumn)]) -> Self {
        let own: HashSet<&String> = decisions.iter().map(|(name, _)| name).collect();
        // A column keeps its name unless the decisions or an earlier column have it; renamed columns avoid all names.
        let mut taken: HashSet<String> = decisions.iter().map(|(name, _)| name.clone()).collect();
        taken.extend(first.iter().map(|(name, _)| name.clone()));
        let mut columns = Self { decisions: decisions.to_vec(), inputs: Vec::new(), before: first.len(), taken };
        let mut seen = HashSet::new();
        for (name, _) in first {
            let keeps = !own.contains(name) && seen.insert(name);
            let written = if keeps { name.clone() } else { columns.free(name) };
            columns.inputs.push((name.clone(), written));
        }
        columns
    }

    /// A name that no column has.
    fn free(&mut self, name: &str) -> String {
        let mut free = format!("{PREFIX}{name}");
        while !self.taken.insert(free.clone()) {
            free.insert_str(0, PREFIX);
        }
        free
    }

    /// The names and kinds, in order, for the kinds of the first batch.
    pub(super) fn declared(&self, first: &[(String, InputColumn)]) -> Vec<(String, ColumnKind)> {
        let kinds = first.iter().map(|(_, column)| ColumnKind::Input(column.kind()));
        let inputs = self.inputs.iter().map(|(_, written)| written.clone()).zip(kinds);
        inputs.chain(self.decisions.iter().cloned()).collect()
    }

    /// The columns of a batch in the order of the output. Rows of JSONL may lack a column, and bring new ones.
    pub(super) fn arrange(
        &mut self,
        inputs: Vec<(String, InputColumn)>,
        decisions: Vec<Column>,
        writer: &mut TableWriter,
    ) -> anyhow::Result<Vec<Column>> {
        let rows = decisions.first().map_or(0, Column::len);
        let as_before = inputs.len() == self.inputs.len()
            && inputs.iter().zip(&self.inputs).all(|((name, _), (known, _))| name == known);
        let mut arranged: Vec<Column> = if as_before {
            inputs.into_iter().map(|(_, column)| Column::Input(column)).collect()
        } else {
            let mut arranged: Vec<InputColumn> = self.inputs.iter().map(|_| InputColumn::absent(rows)).collect();
            for (name, column) in inputs {
                match self.inputs.iter().position(|(known, _)| *known == name) {
                    Some(place) => arranged[place] = column,
                    None => {
                        let written = if self.taken.insert(name.clone()) { name.clone() } else { self.free(&name) };
                        writer.add_column(written.clone(), ColumnKind::Input(column.kind()))?;
                        self.inputs.push((name, written));
                        arranged.push(column);
                    }
                }
            }
            arranged.into_iter().map(Column::Input).collect()
        };
        let later = arranged.split_off(self.before);
        arranged.extend(decisions);
        arranged.extend(later);
        Ok(arranged)
    }

    /// Columns of the input that go by another name in the output.
    pub(super) fn renamed(&self) -> impl Iterator<Item = &(String, String)> {
        self.inputs.iter().filter(|(name, written)| name != written)
    }

    /// A warning about renamed columns; `None` if there are none.
    pub(super) fn renamed_in_words(&self) -> Option<String> {
        const MOST: usize = 8;
        let pairs: Vec<String> = self
            .renamed()
            .map(|(name, written)| format!("{} is written as {}", printable(name), printable(written)))
            .collect();
        let more = if pairs.len() > MOST { format!(" and {} more", pairs.len() - MOST) } else { String::new() };
        let shown = pairs[..pairs.len().min(MOST)].join(", ");
        (!pairs.is_empty()).then(|| {
            format!("columns of the table have names of decision columns: {shown}{more}; --keep id leaves them out")
        })
    }
}
