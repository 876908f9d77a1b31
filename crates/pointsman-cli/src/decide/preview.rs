//! The first decisions, for a terminal.

use std::io::{self, Write};

use pointsman::{Decisions, Policy};
use pointsman_table::{Column, ColumnKind};

use crate::render::number::{count, decimals, fixed};
use crate::render::style::{self, DIM, PLAIN};
use crate::render::table::Grid;

/// Rows shown.
const ROWS: usize = 20;

/// The first rows, kept until all are counted.
#[derive(Debug)]
pub(super) struct Preview {
    names: Vec<(String, ColumnKind)>,
    rows: Vec<Vec<(String, anstyle::Style)>>,
}

impl Preview {
    pub(super) fn new(names: &[(String, ColumnKind)]) -> Self {
        Self { names: names.to_vec(), rows: Vec::new() }
    }

    pub(super) fn add(&mut self, policy: &Policy, columns: &[Column], decisions: &Decisions) {
        let wanted = (ROWS - self.rows.len()).min(decisions.len());
        let digits = decimals((0..wanted).flat_map(|row| policy.row(decisions, row).costs().to_vec()));
        for row in 0..wanted {
            let decision = policy.row(decisions, row);
            let cell = |((name, _), column): (&(String, ColumnKind), &Column)| match column {
                Column::Text(values) => {
                    let style = match name.as_str() {
                        "action" => style::action(&decision.action()),
                        "support" => style::support(decision.support()),
                        "id" => DIM,
                        _ => PLAIN,
                    };
                    (values[row].clone(), style)
                }
                Column::Real(values) => (fixed(values[row], digits), PLAIN),
                Column::Count(values) => (count(values[row] as usize), PLAIN),
                // Columns of the table are not shown.
                _ => (String::new(), PLAIN),
            };
            self.rows.push(self.names.iter().zip(columns).map(cell).collect());
        }
    }

    pub(super) fn write(self, out: &mut impl Write, total: usize) -> io::Result<()> {
        let column = |grid: Grid, (name, kind): &(String, ColumnKind)| match kind {
            ColumnKind::Real | ColumnKind::Count => grid.number(name),
            _ => grid.text(name),
        };
        let mut grid = self.names.iter().fold(Grid::new(), column);
        let shown = self.rows.len();
        self.rows.into_iter().for_each(|row| grid.row(row));
        grid.write(&mut *out)?;
        if total > shown {
            writeln!(out, "  {DIM}… and {} more{DIM:#}", count(total - shown))?;
        }
        writeln!(out)
    }
}
