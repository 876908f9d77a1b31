//! Aligned tables: no boxes, a header, colours cell by cell.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// Texts are cut no shorter than this, if numbers leave that much room.
const SHORTEST: usize = 10;

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

    /// Draws the table in the room there is: texts are cut short first; then what is still too wide goes below, the first column
    /// being repeated.
    pub(crate) fn write(&self, out: impl Write) -> io::Result<()> {
        self.write_within(super::columns(), out)
    }

    fn write_within(&self, room: Option<usize>, mut out: impl Write) -> io::Result<()> {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|(text, _)| text.width());
            cells.chain([self.columns[i].0.width()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for (place, part) in self.fit(room.unwrap_or(usize::MAX), &mut widths).iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            if part.iter().any(|&column| !self.columns[column].0.is_empty()) {
                let header: Vec<(String, Style)> =
                    self.columns.iter().map(|(name, _)| (printable(name), DIM)).collect();
                self.line(&mut out, &header, part, &widths)?;
            }
            self.rows.iter().try_for_each(|row| self.line(&mut out, row, part, &widths))?;
        }
        Ok(())
    }

    /// Makes columns narrower until they fit, and says which are drawn side by side.
    fn fit(&self, room: usize, widths: &mut [usize]) -> Vec<Vec<usize>> {
        let needed = |widths: &[usize]| widths.iter().map(|width| GAP.len() + width).sum::<usize>();
        let mut narrow = widths.to_vec();
        while needed(&narrow) > room {
            let texts = (0..narrow.len()).filter(|&i| self.columns[i].1 == Side::Left && narrow[i] > SHORTEST);
            let Some(widest) = texts.max_by_key(|&i| narrow[i]) else { break };
            narrow[widest] -= 1;
        }
        if needed(&narrow) <= room {
            widths.copy_from_slice(&narrow);
            return vec![(0..widths.len()).collect()];
        }
        // Cutting short does not help enough, so that less of it will do.
        let first = GAP.len() + widths[0].min(SHORTEST.max(room / 3));
        widths[0] = first - GAP.len();
        let (mut parts, mut used) = (vec![vec![0]], first);
        for (column, width) in widths.iter_mut().enumerate().skip(1) {
            *width = (*width).min(room.saturating_sub(first + GAP.len()).max(1));
            let own = GAP.len() + *width;
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

    fn line(&self, out: &mut impl Write, row: &[(String, Style)], part: &[usize], widths: &[usize]) -> io::Result<()> {
        let mut pending = String::new();
        for &column in part {
            let Some((text, style)) = row.get(column) else { continue };
            let (text, side) = (short(text, widths[column]), self.columns[column].1);
            let blanks = " ".repeat(widths[column].saturating_sub(text.width()));
            pending.push_str(GAP);
            if side == Side::Right {
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
            if side == Side::Left {
                pending.push_str(&blanks);
            }
        }
        writeln!(out)
    }
}

/// Text that takes no more room than that, its end left out if it must be.
fn short(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if kept.width() + wide + 1 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    Cow::Owned(kept)
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

    #[test]
    fn where_room_is_short_texts_are_cut_and_numbers_move_below() {
        let mut grid = Grid::new().number("cell").text("what lies in it").numbers(["rows", "predict", "route:expert"]);
        grid.row([
            ("12", PLAIN),
            ("cat, confidence 0.84 to 0.91", PLAIN),
            ("1,000", PLAIN),
            ("0.1250", PLAIN),
            ("0.2500", PLAIN),
        ]);
        assert!(drawn(&grid, 200)[1].contains("0.91  1,000"), "all of it");
        let lines = drawn(&grid, 60);
        assert!(
            lines.len() == 2
                && lines[1].contains("cat, conf")
                && lines[1].contains('…')
                && lines[1].ends_with("0.2500"),
            "{lines:#?}"
        );
        // Two tables, each with its cells' numbers; nothing is lost.
        let lines = drawn(&grid, 40);
        assert!(
            lines.contains(&String::new())
                && lines.iter().filter(|line| line.trim_start().starts_with("12")).count() >= 2,
            "{lines:#?}"
        );
        for number in ["1,000", "0.1250", "0.2500", "cat, confidence"] {
            assert!(lines.iter().any(|line| line.contains(number)), "{number} in {lines:#?}");
        }
        for room in 30..120 {
            drawn(&grid, room);
        }
    }
}
