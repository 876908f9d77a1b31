//! Aligned tables with a header and a colour per cell, without boxes.

use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::printable;
use super::style::{DIM, PLAIN};
use super::wrap::{lines, unbroken};

/// The side that a column is aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A table under construction.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<(String, Style)>>,
}

/// The space before each column.
const GAP: &str = "  ";

/// Columns of text are not made narrower than this if that can be avoided, nor are shorter words of headers broken.
const NARROWEST: usize = 16;

impl Grid {
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column of text.
    pub(crate) fn text(mut self, name: impl Into<String>) -> Self {
        self.columns.push((name.into(), Side::Left));
        self
    }

    /// Adds a column of numbers.
    pub(crate) fn number(mut self, name: impl Into<String>) -> Self {
        self.columns.push((name.into(), Side::Right));
        self
    }

    /// Adds columns of numbers.
    pub(crate) fn numbers<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        names.into_iter().fold(self, |grid, name| grid.number(name))
    }

    /// Adds a row; missing cells stay blank.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = (S, Style)>) {
        self.rows.push(cells.into_iter().map(|(text, style)| (printable(&text.into()), style)).collect());
    }

    /// Draws the table in the width there is: first texts and headers are broken into lines; columns that still do not fit are drawn
    /// below, after a copy of the first column. Nothing is left out.
    pub(crate) fn write(&self, out: impl Write) -> io::Result<()> {
        self.write_within(super::columns(), out)
    }

    fn write_within(&self, room: Option<usize>, mut out: impl Write) -> io::Result<()> {
        let mut widths: Vec<usize> =
            (0..self.columns.len()).map(|i| self.cell_width(i).max(self.columns[i].0.width())).collect();
        for (place, part) in self.fit(room.unwrap_or(usize::MAX), &mut widths).iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            if part.iter().any(|&column| !self.columns[column].0.is_empty()) {
                let header: Vec<(String, Style)> =
                    self.columns.iter().map(|(name, _)| (printable(name), DIM)).collect();
                self.row_lines(&mut out, &header, part, &widths, Stand::Bottom)?;
            }
            self.rows.iter().try_for_each(|row| self.row_lines(&mut out, row, part, &widths, Stand::Top))?;
        }
        Ok(())
    }

    /// The widest cell of a column, its header left out.
    fn cell_width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.width()).max().unwrap_or(0)
    }

    /// The least width of a column: numbers are never broken, texts and headers are.
    fn least_width(&self, column: usize) -> usize {
        let (header, side) = &self.columns[column];
        let word = |text: &str| {
            let words = unbroken(text);
            words.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0).min(NARROWEST)
        };
        match side {
            Side::Right => self.cell_width(column).max(word(header)),
            Side::Left => self.cell_width(column).min(NARROWEST).max(word(header)),
        }
    }

    /// Makes columns narrower until they fit, and returns which are drawn side by side. Of the ways to do that, the one with the fewest lines
    /// is taken: long texts in a narrow column take more lines than a further part of the table.
    fn fit(&self, room: usize, widths: &mut [usize]) -> Vec<Vec<usize>> {
        if needed(widths) <= room {
            return vec![(0..widths.len()).collect()];
        }
        let least: Vec<usize> = (0..widths.len()).map(|column| self.least_width(column)).collect();
        let side_by_side = self.side_by_side(room, widths, &least);
        let one_part = |widths: Vec<usize>| (vec![(0..widths.len()).collect()], widths);
        let mut layouts: Vec<(Vec<Vec<usize>>, Vec<usize>)> = side_by_side.map(one_part).into_iter().collect();
        // In several parts there is more room for each column.
        let first = widths[0].min(NARROWEST.max(room / 3));
        let beside = room.saturating_sub(first + 2 * GAP.len()).max(1);
        let wide = |column: usize| widths[column].min(least[column].max(room / 2));
        let narrow = |column: usize| least[column];
        for width in [&wide as &dyn Fn(usize) -> usize, &narrow] {
            let widths: Vec<usize> =
                (0..widths.len()).map(|column| if column == 0 { first } else { width(column).min(beside) }).collect();
            // The smallest number of parts, as even as possible.
            let parts = divided(&widths, room);
            let even = (first..room).map(|less| divided(&widths, less)).find(|even| even.len() == parts.len());
            layouts.push((even.unwrap_or(parts), widths));
        }
        let fewest_lines = layouts.into_iter().min_by_key(|(parts, widths)| self.height(parts, widths));
        let Some((parts, chosen)) = fewest_lines else { return Vec::new() };
        widths.copy_from_slice(&chosen);
        parts
    }

    /// The widths with which all columns fit side by side, the widest made narrower first; `None` if they cannot.
    fn side_by_side(&self, room: usize, widths: &[usize], least: &[usize]) -> Option<Vec<usize>> {
        let mut narrow = widths.to_vec();
        while needed(&narrow) > room {
            let broken = (0..narrow.len()).filter(|&i| narrow[i] > least[i]);
            let widest = broken.max_by_key(|&i| narrow[i])?;
            narrow[widest] -= 1;
        }
        Some(narrow)
    }

    /// The lines that a layout takes, without the headers.
    fn height(&self, parts: &[Vec<usize>], widths: &[usize]) -> usize {
        let row_height = |row: &[(String, Style)], part: &[usize]| {
            let height = |&i: &usize| row.get(i).map_or(0, |cell| lines(&cell.0, widths[i], widths[i]).len());
            part.iter().map(height).max().unwrap_or(0)
        };
        parts.iter().map(|part| 1 + self.rows.iter().map(|row| row_height(row, part)).sum::<usize>()).sum()
    }

    /// A row, over as many lines as its longest text needs.
    fn row_lines(
        &self,
        out: &mut impl Write,
        row: &[(String, Style)],
        part: &[usize],
        widths: &[usize],
        stand: Stand,
    ) -> io::Result<()> {
        let wrapped: Vec<Vec<String>> = part
            .iter()
            .map(|&i| row.get(i).map_or_else(Vec::new, |cell| lines(&cell.0, widths[i], widths[i])))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut pending = String::new();
            for (&column, texts) in part.iter().zip(&wrapped) {
                let Some((_, style)) = row.get(column) else { continue };
                let above = if stand == Stand::Bottom { height - texts.len() } else { 0 };
                let text = line.checked_sub(above).and_then(|line| texts.get(line)).map_or("", String::as_str);
                let blanks = " ".repeat(widths[column].saturating_sub(text.width()));
                let side = self.columns[column].1;
                pending.push_str(GAP);
                if side == Side::Right {
                    pending.push_str(&blanks);
                }
                // Blanks are written only before text, so that no line ends in spaces.
                if !text.is_empty() {
                    if *style == PLAIN {
                        write!(out, "{pending}{text}")?;
                    } else {
                        write!(out, "{pending}{style}{text}{style:#}")?;
                    }
                    pending.clear();
                }
                if side == Side::Left {
                    pending.push_str(&blanks);
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The room that columns take side by side.
fn needed(widths: &[usize]) -> usize {
    widths.iter().map(|width| GAP.len() + width).sum()
}

/// Divides columns into parts that fit side by side; each part begins with the first column.
fn divided(widths: &[usize], room: usize) -> Vec<Vec<usize>> {
    let first = GAP.len() + widths[0];
    let (mut parts, mut used) = (vec![vec![0]], first);
    for (column, width) in widths.iter().enumerate().skip(1) {
        let own = GAP.len() + width;
        if used + own > room && used > first {
            parts.push(vec![0]);
            used = first;
        }
        used += own;
        if let Some(part) = parts.last_mut() {
            part.push(column);
        }
    }
    parts
}

/// The vertical alignment of a text beside longer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Top,
    Bottom,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_in_every_script() {
        let mut grid = Grid::new().text("cell").number("rows");
        grid.row([("猫 ≥ 0.9", PLAIN), ("1,000", PLAIN)]);
        grid.row([("cat\u{1b}[2J", PLAIN), ("7", PLAIN)]);
        let mut out = Vec::new();
        grid.write_within(None, &mut out).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert_eq!(text, "  cell       rows\n  猫 ≥ 0.9  1,000\n  cat\u{fffd}[2J       7\n");
    }

    fn drawn(grid: &Grid, room: usize) -> Vec<String> {
        let mut out = Vec::new();
        grid.write_within(Some(room), &mut out).unwrap();
        let text = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        assert!(lines.iter().all(|line| line.width() <= room && !line.ends_with(' ')), "{room}: {lines:#?}");
        lines
    }

    fn sample() -> Grid {
        let mut grid = Grid::new().number("cell").text("name").numbers(["rows", "predict", "route:expert"]);
        grid.row([
            ("12", PLAIN),
            ("cat, confidence 0.84–0.91 and x_length < 31.5", PLAIN),
            ("1,000", PLAIN),
            ("0.1250", PLAIN),
            ("0.2500", PLAIN),
        ]);
        grid
    }

    #[test]
    fn texts_are_broken_in_a_narrow_table() {
        assert!(drawn(&sample(), 200)[1].contains("31.5  1,000"), "all of it on one line");
        assert_eq!(
            drawn(&sample(), 60),
            [
                "  cell  name                     rows  predict  route:expert",
                "    12  cat, confidence         1,000   0.1250        0.2500",
                "        0.84–0.91 and x_length",
                "        < 31.5",
            ]
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_drawn_below() {
        let lines = drawn(&sample(), 40);
        assert!(lines.contains(&String::new()), "{lines:#?}");
        assert!(lines.iter().filter(|line| line.trim_start().starts_with("12")).count() >= 2, "{lines:#?}");
    }

    #[test]
    fn long_texts_are_not_squeezed_to_save_a_part_of_the_table() {
        let mut grid =
            Grid::new().number("cell").text("name").text("action").text("rival").numbers(["worth", "labels"]);
        for cell in 0..8 {
            let name =
                "expected reducible loss < 0.10 and expected share of yes < 0.31 and expected irreducible loss ≥ 0.32";
            let number = cell.to_string();
            let texts = [number.as_str(), name, "route:expert", "predict", "0.0206", "~5,200, not certain"];
            grid.row(texts.map(|text| (text, PLAIN)));
        }
        let lines = drawn(&grid, 80);
        assert!(lines.len() < 8 * 5 + 3, "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("expected reducible loss < 0.10 and")), "{lines:#?}");
    }

    #[test]
    fn nothing_is_lost_at_any_width() {
        let mut grid = sample();
        grid.row([("7", PLAIN), ("非常に長いクラスの名前, confidence < 0.25", PLAIN), ("3", PLAIN), ("–", PLAIN)]);
        for room in 30..120 {
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let all = letters(&drawn(&grid, room).concat());
            for text in ["1,000", "0.1250", "0.2500", "0.84–0.91", "0.25"] {
                assert!(all.contains(text), "{text} at {room}: {all}");
            }
        }
    }

    #[test]
    fn signs_of_headers_stay_whole() {
        let mut grid = Grid::new().text("name").numbers(["cost", "± s.e."]);
        grid.row([("a long name of a policy", PLAIN), ("0.358", PLAIN), ("0.012", PLAIN)]);
        for room in 28..40 {
            let lines = drawn(&grid, room);
            assert!(lines.iter().any(|line| line.contains("± s.e.")), "{room}: {lines:#?}");
        }
    }

    #[test]
    fn long_headers_of_numbers_are_broken_at_words() {
        let mut grid =
            Grid::new().text("").numbers(["mean sehr dringende Überweisung", "mean account closed by owner"]);
        grid.row([("a", PLAIN), ("0.5000", PLAIN), ("0.2500", PLAIN)]);
        let lines = drawn(&grid, 36);
        assert!(lines.len() > 2 && lines.last().is_some_and(|line| line.contains("0.5000") && line.contains("0.2500")));
    }
}
