//! A small plot in characters.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use super::number;
use super::style::DIM;

/// The widest and the narrowest that curves are drawn.
const WIDEST: usize = 61;
const NARROWEST: usize = 21;
const HEIGHT: usize = 13;

/// Columns besides the curves and labels: two blanks on the left, a blank and the axis, and one on the right.
const MARGIN: usize = 5;

/// A curve over 0 … 100 %, its sign and its colour.
#[derive(Debug)]
pub(crate) struct Curve<'a> {
    pub(crate) name: String,
    pub(crate) sign: char,
    pub(crate) style: Style,
    pub(crate) values: &'a [f64],
}

/// Signs that differ with and without colours; later curves are drawn over earlier ones.
pub(crate) const SIGNS: [(char, Style); 4] = [
    ('·', Style::new().dimmed()),
    ('○', AnsiColor::Yellow.on_default()),
    ('▫', AnsiColor::Blue.on_default()),
    ('●', AnsiColor::Green.on_default()),
];

/// Draws curves over a common axis, from 0 to 100 %.
pub(crate) fn write(mut out: impl Write, curves: &[Curve<'_>], x_axis: &str, y_axis: &str) -> io::Result<()> {
    let values = || curves.iter().flat_map(|curve| curve.values.iter().copied()).filter(|y| y.is_finite());
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
    if low > high {
        return Ok(());
    }
    // Constant curves are drawn in the middle.
    let (low, high) = if high - low > 1e-12 * high.abs() { (low, high) } else { (low - 0.5, low + 0.5) };
    let decimals = number::decimals([low, high]);
    let labels = [
        number::fixed(high, decimals),
        number::fixed(f64::midpoint(low, high), decimals),
        number::fixed(low, decimals),
    ];
    let margin = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let room = super::columns().map_or(WIDEST, |room| room.saturating_sub(margin + MARGIN));
    // An odd number, so that one column is the middle.
    let width = (room.clamp(NARROWEST, WIDEST) - 1) / 2 * 2 + 1;
    let mut canvas = vec![vec![None::<usize>; width]; HEIGHT];
    for (i, curve) in curves.iter().enumerate() {
        let heights = (0..width).map(|x| at(curve.values, x as f64 / (width - 1) as f64));
        for (x, y) in heights.enumerate().filter_map(|(x, y)| Some((x, y?))) {
            let height = ((y - low) / (high - low) * (HEIGHT - 1) as f64).round().clamp(0.0, (HEIGHT - 1) as f64);
            canvas[HEIGHT - 1 - height as usize][x] = Some(i);
        }
    }
    super::paragraph(&mut out, 2, &format!("{DIM}{y_axis}{DIM:#}"))?;
    for (line, cells) in canvas.iter().enumerate() {
        let label = match line {
            0 => &labels[0],
            _ if line == HEIGHT / 2 => &labels[1],
            _ if line == HEIGHT - 1 => &labels[2],
            _ => "",
        };
        write!(out, "  {DIM}{label:>margin$} ┤{DIM:#}")?;
        let last = cells.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        for cell in &cells[..last] {
            match cell {
                Some(curve) => {
                    let Curve { sign, style, .. } = &curves[*curve];
                    write!(out, "{style}{sign}{style:#}")?;
                }
                None => write!(out, " ")?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "  {DIM}{:margin$} └{}{DIM:#}", "", "─".repeat(width))?;
    writeln!(out, "  {DIM}{:margin$}  0 %{x_axis:^between$}100 %{DIM:#}", "", between = width - 8)?;
    legend(out, margin + MARGIN - 1, curves)
}

/// Prints each curve's sign and name, as many per line as fit.
fn legend(mut out: impl Write, indent: usize, curves: &[Curve<'_>]) -> io::Result<()> {
    const GAP: &str = "   ";
    let room = super::columns().unwrap_or(usize::MAX).saturating_sub(indent);
    let (mut line, mut used) = (String::new(), 0);
    for Curve { name, sign, style, .. } in curves.iter().rev() {
        let wide = 2 + name.width();
        if used > 0 && used + GAP.len() + wide > room {
            writeln!(out, "{:indent$}{line}", "")?;
            (line, used) = (String::new(), 0);
        }
        if used > 0 {
            line.push_str(GAP);
            used += GAP.len();
        }
        line.push_str(&format!("{style}{sign}{style:#} {name}"));
        used += wide;
    }
    writeln!(out, "{:indent$}{line}", "")
}

/// The curve's height at a share of its length.
fn at(values: &[f64], share: f64) -> Option<f64> {
    let place = share * values.len().checked_sub(1)? as f64;
    let left = place.floor() as usize;
    let right = (left + 1).min(values.len() - 1);
    let y = values[left] + (place - left as f64) * (values[right] - values[left]);
    y.is_finite().then_some(y)
}
