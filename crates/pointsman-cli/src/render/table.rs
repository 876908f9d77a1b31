//! Aligned tables: no boxes, a header, colours cell by cell.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::printable;
use super::style::{DIM, PLAIN};

/// Which side of a column its values stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A table being put together.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<(String, Style)>>,
}

/// What separates columns, and what stands before the first.
const GAP: &str = "  ";

impl Grid {
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new(), rows: Vec::new() }
    }

    /// A further column of text.
    pub(crate) fn text(mut self, name: impl Into<String>) -> Self {
        self.columns.push((name.into(), Side::Left));
        self
    }

    /// A further column of numbers.
    pub(crate) fn number(mut self, name: impl Into<String>) -> Self {
        self.columns.push((name.into(), Side::Right));
        self
    }

    /// A further column of numbers, if it is wanted.
    pub(crate) fn numbers<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        names.into_iter().fold(self, |grid, name| grid.number(name))
    }

    /// A further row; what is missing stays blank.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = (S, Style)>) {
        self.rows.push(cells.into_iter().map(|(text, style)| (printable(&text.into()), style)).collect());
    }

    pub(crate) fn write(&self, mut out: impl Write) -> io::Result<()> {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|(text, _)| text.width());
            cells.chain([self.columns[i].0.width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        if self.columns.iter().any(|(name, _)| !name.is_empty()) {
            let header: Vec<(String, Style)> = self.columns.iter().map(|(name, _)| (printable(name), DIM)).collect();
            self.line(&mut out, &header, &widths)?;
        }
        self.rows.iter().try_for_each(|row| self.line(&mut out, row, &widths))
    }

    fn line(&self, out: &mut impl Write, row: &[(String, Style)], widths: &[usize]) -> io::Result<()> {
        let mut pending = String::new();
        for ((cell, (_, side)), width) in row.iter().zip(&self.columns).zip(widths) {
            let (text, style) = cell;
            let blanks = " ".repeat(width.saturating_sub(text.width()));
            pending.push_str(GAP);
            if *side == Side::Right {
                pending.push_str(&blanks);
            }
            // Blanks wait until something follows them: no line ends in spaces.
            if !text.is_empty() {
                if *style == PLAIN {
                    write!(out, "{pending}{text}")?;
                } else {
                    write!(out, "{pending}{style}{text}{style:#}")?;
                }
                pending.clear();
            }
            if *side == Side::Left {
                pending.push_str(&blanks);
            }
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_whatever_the_script() {
        let mut grid = Grid::new().text("cell").number("rows");
        grid.row([("猫 ≥ 0.9", PLAIN), ("1,000", PLAIN)]);
        grid.row([("cat\u{1b}[2J", PLAIN), ("7", PLAIN)]);
        let mut out = Vec::new();
        grid.write(&mut out).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert_eq!(text, "  cell       rows\n  猫 ≥ 0.9  1,000\n  cat\u{fffd}[2J       7\n");
    }
}
