//! A small plot in characters.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::number;
use super::style::DIM;

const WIDTH: usize = 61;
const HEIGHT: usize = 13;

/// A curve over 0 … 100 %, its sign and its colour.
#[derive(Debug)]
pub(crate) struct Curve<'a> {
    pub(crate) name: String,
    pub(crate) sign: char,
    pub(crate) style: Style,
    pub(crate) values: &'a [f64],
}

/// Signs and colours that are told apart with and without colours; later curves are drawn over earlier ones.
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
    // A flat picture is drawn in its middle.
    let (low, high) = if high - low > 1e-12 * high.abs() { (low, high) } else { (low - 0.5, low + 0.5) };
    let mut canvas = vec![[None::<usize>; WIDTH]; HEIGHT];
    for (i, curve) in curves.iter().enumerate() {
        let heights = (0..WIDTH).map(|x| at(curve.values, x as f64 / (WIDTH - 1) as f64));
        for (x, y) in heights.enumerate().filter_map(|(x, y)| Some((x, y?))) {
            let height = ((y - low) / (high - low) * (HEIGHT - 1) as f64).round().clamp(0.0, (HEIGHT - 1) as f64);
            canvas[HEIGHT - 1 - height as usize][x] = Some(i);
        }
    }
    let decimals = number::decimals([low, high]);
    let labels = [
        number::fixed(high, decimals),
        number::fixed(f64::midpoint(low, high), decimals),
        number::fixed(low, decimals),
    ];
    let margin = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    writeln!(out, "  {DIM}{y_axis}{DIM:#}")?;
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
    writeln!(out, "  {DIM}{:margin$} └{}{DIM:#}", "", "─".repeat(WIDTH))?;
    let half = WIDTH / 2;
    writeln!(out, "  {DIM}{:margin$}  0 %{:^width$}100 %{DIM:#}", "", x_axis, width = 2 * half - 7)?;
    let legend: Vec<String> =
        curves.iter().rev().map(|Curve { name, sign, style, .. }| format!("{style}{sign}{style:#} {name}")).collect();
    writeln!(out, "  {:margin$}  {}", "", legend.join("   "))
}

/// The curve's height at a share of its length.
fn at(values: &[f64], share: f64) -> Option<f64> {
    let place = share * values.len().checked_sub(1)? as f64;
    let left = place.floor() as usize;
    let right = (left + 1).min(values.len() - 1);
    let y = values[left] + (place - left as f64) * (values[right] - values[left]);
    y.is_finite().then_some(y)
}
