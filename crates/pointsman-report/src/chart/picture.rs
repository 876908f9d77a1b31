//! A drawn figure, as SVG or PNG.

use std::fmt;

use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::layers::{Entry, Mark};
use super::script::{UsedFonts, draw_over, take_texts};
use super::{colour, wrap};

const MARGIN: f64 = 16.0;
const TITLE_SIZE: u32 = 19;
const CAPTION_SIZE: u32 = 13;
/// Mean width of a character, as a share of the font size.
const CHARACTER_WIDTH: f64 = 0.57;
/// PNG pixels per SVG pixel, for print and dense screens.
const PNG_SCALE: f32 = 2.0;
/// [`colour::INK`] as RGB.
const INK: [u8; 3] = [0x22; 3];

/// Why a figure could not be encoded as PNG, as the encoder says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PngError(String);

impl fmt::Display for PngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PngError {}

/// A drawn figure.
#[derive(Debug)]
pub struct Picture {
    scene: Scene,
}

impl Picture {
    /// Creates a figure from a chart with its title and caption. The vertical axis is labelled above the chart, where
    /// the text is horizontal.
    pub(super) fn from_chart(mut scene: Scene, title: &str, legend: &[Entry], vertical: &str, caption: &str) -> Self {
        let mut elements = Vec::with_capacity(scene.elements.len());
        for element in std::mem::take(&mut scene.elements) {
            match element {
                // Clipping of one panel would affect its neighbours on a sheet; charts stay within their axes.
                Primitive::ClipStart { .. } | Primitive::ClipEnd => {}
                // PNGs would restart the dash pattern at every point of the line.
                Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray: Some(pattern) } => {
                    let strokes = cut_into_dashes(&points, &pattern).into_iter();
                    elements.extend(strokes.map(|points| Primitive::PolyLine {
                        points,
                        stroke: stroke.clone(),
                        stroke_width,
                        stroke_dasharray: None,
                    }));
                }
                element => elements.push(element),
            }
        }
        scene.elements = elements;
        compose(title, legend, vertical, caption, 1, vec![Self { scene }], 0.0)
    }

    /// The figure as SVG, without the font embedded.
    #[must_use]
    pub fn svg(&self) -> String {
        let svg = SvgBackend::new().render_scene(&self.scene);
        // With a view box, the figure scales with the page.
        let view = format!("<svg viewBox=\"0 0 {} {}\" ", self.scene.width, self.scene.height);
        svg.replacen("<svg ", &view, 1)
    }

    /// The figure as PNG, at twice the size in pixels.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn png(&self) -> Result<Vec<u8>, PngError> {
        Ok(self.png_and_fonts()?.0)
    }

    /// The figure as PNG, and the system fonts that it needed.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn png_and_fonts(&self) -> Result<(Vec<u8>, UsedFonts), PngError> {
        let render = |scene: &Scene| PngBackend::new().with_scale(PNG_SCALE).render_scene(scene).map_err(PngError);
        let (elements, overlays, fonts) = take_texts(self.scene.elements.clone(), PNG_SCALE, INK);
        if overlays.is_empty() {
            return Ok((render(&self.scene)?, fonts));
        }
        let mut scene = Scene::new(self.scene.width, self.scene.height);
        scene.background_color.clone_from(&self.scene.background_color);
        scene.text_color.clone_from(&self.scene.text_color);
        scene.font_family.clone_from(&self.scene.font_family);
        scene.defs.clone_from(&self.scene.defs);
        scene.elements = elements;
        Ok((draw_over(&render(&scene)?, &overlays).map_err(PngError)?, fonts))
    }

    /// Width and height in pixels.
    #[must_use]
    pub fn size(&self) -> (f64, f64) {
        (self.scene.width, self.scene.height)
    }
}

/// Arranges several figures on one sheet, row by row, with a common title and caption.
#[must_use]
pub fn sheet(title: &str, caption: &str, columns: usize, pictures: Vec<Picture>) -> Picture {
    compose(title, &[], "", caption, columns.max(1), pictures, MARGIN)
}

fn compose(
    title: &str,
    legend: &[Entry],
    vertical: &str,
    caption: &str,
    columns: usize,
    pictures: Vec<Picture>,
    gap: f64,
) -> Picture {
    let rows: Vec<Vec<Picture>> = {
        let mut rest = pictures.into_iter().peekable();
        std::iter::from_fn(|| rest.peek().is_some().then(|| rest.by_ref().take(columns).collect())).collect()
    };
    let widths = |row: &Vec<Picture>| row.iter().map(|p| p.scene.width + gap).sum::<f64>();
    let width = rows.iter().map(widths).fold(200.0, f64::max) + 2.0 * gap;
    let mut scene = Scene::new(width, 0.0);
    scene.font_family = Some("DejaVu Sans, Verdana, Liberation Sans, Arial, sans-serif".into());
    scene.text_color = Some(colour::INK.into());
    let mut y = 0.0;
    let write = |scene: &mut Scene, y: &mut f64, text: &str, size: u32, bold: bool, ink: &str| {
        let most = ((width - 2.0 * MARGIN) / (CHARACTER_WIDTH * f64::from(size))) as usize;
        for line in wrap(text, most) {
            *y += f64::from(size) * 1.35;
            scene.add(Primitive::Text {
                x: MARGIN,
                y: *y,
                content: line,
                size,
                anchor: TextAnchor::Start,
                rotate: None,
                bold,
                color: Some(Color::from(ink)),
            });
        }
    };
    if !title.is_empty() {
        y = MARGIN / 2.0;
        // Titles of panels are smaller than the title of the sheet.
        let size = if width < 700.0 { 15 } else { TITLE_SIZE };
        write(&mut scene, &mut y, title, size, true, colour::INK);
        y += MARGIN / 2.0;
    }
    if !legend.is_empty() {
        write_legend(&mut scene, &mut y, legend, width);
    }
    write(&mut scene, &mut y, vertical, CAPTION_SIZE, false, colour::INK);
    y += if vertical.is_empty() { 0.0 } else { 5.0 };
    for row in rows {
        y += add_row(&mut scene, row, y, gap) + gap;
    }
    if !caption.is_empty() {
        write(&mut scene, &mut y, caption, CAPTION_SIZE, false, "#444444");
        y += MARGIN;
    }
    scene.height = y.ceil();
    Picture { scene }
}

/// Adds figures side by side and returns the height of the tallest.
fn add_row(scene: &mut Scene, row: Vec<Picture>, y: f64, gap: f64) -> f64 {
    let height = row.iter().map(|p| p.scene.height).fold(0.0, f64::max);
    let mut x = gap;
    for Picture { scene: part } in row {
        let transform = Some(format!("translate({x},{y})"));
        scene.add(Primitive::GroupStart { transform, title: None, extra_attrs: None });
        scene.defs.extend(part.defs);
        scene.elements.extend(part.elements);
        scene.add(Primitive::GroupEnd);
        x += part.width + gap;
    }
    height
}

/// Width of a mark in a legend, in pixels: room for two dashes of the longest pattern.
const MARK_WIDTH: f64 = 34.0;

/// Writes the legend in as many lines as it needs.
fn write_legend(scene: &mut Scene, y: &mut f64, legend: &[Entry], width: f64) {
    let step = f64::from(CAPTION_SIZE) * 1.5;
    let mut x = MARGIN;
    *y += step;
    for Entry { name, colour, mark } in legend {
        let needed = MARK_WIDTH
            + 6.0
            + CHARACTER_WIDTH * f64::from(CAPTION_SIZE) * name.chars().map(character_width).sum::<f64>();
        if x > MARGIN && x + needed > width - MARGIN {
            (x, *y) = (MARGIN, *y + step);
        }
        let (middle, stroke) = (*y - 0.35 * f64::from(CAPTION_SIZE), Color::from(colour.as_str()));
        match *mark {
            Mark::Line { dash, width } => {
                let strokes = cut_into_dashes(&[(x, middle), (x + MARK_WIDTH, middle)], dash.unwrap_or_default());
                scene.elements.extend(strokes.into_iter().map(|points| Primitive::PolyLine {
                    points,
                    stroke: stroke.clone(),
                    stroke_width: width,
                    stroke_dasharray: None,
                }));
            }
            Mark::Circle => scene.add(Primitive::Circle {
                cx: x + MARK_WIDTH - 7.0,
                cy: middle,
                r: 5.5,
                fill: stroke,
                fill_opacity: None,
                stroke: None,
                stroke_width: None,
            }),
            Mark::Area { opacity } => scene.add(Primitive::Rect {
                x: x + MARK_WIDTH - 22.0,
                y: middle - 5.0,
                width: 22.0,
                height: 10.0,
                fill: stroke,
                stroke: None,
                stroke_width: None,
                opacity: Some(opacity),
            }),
        }
        scene.add(Primitive::Text {
            x: x + MARK_WIDTH + 6.0,
            y: *y,
            content: name.clone(),
            size: CAPTION_SIZE,
            anchor: TextAnchor::Start,
            rotate: None,
            bold: false,
            color: Some(Color::from(colour::INK)),
        });
        x += needed + 16.0;
    }
    *y += 6.0;
}

/// The width of a character in mean characters; East Asian characters are wider.
fn character_width(c: char) -> f64 {
    if ('\u{1100}'..='\u{115f}').contains(&c) || c >= '\u{2e80}' { 1.8 } else { 1.0 }
}

/// Cuts a line into the dashes of a pattern such as `8 5`.
fn cut_into_dashes(points: &[(f64, f64)], pattern: &str) -> Vec<Vec<(f64, f64)>> {
    let lengths: Vec<f64> = pattern.split_whitespace().filter_map(|x| x.parse().ok()).filter(|x| *x > 0.0).collect();
    if lengths.is_empty() {
        return vec![points.to_vec()];
    }
    let (mut out, mut stroke, mut turn) = (Vec::new(), Vec::new(), 0);
    let mut left = lengths[0];
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let rest = (to.0 - from.0).hypot(to.1 - from.1);
            if turn % 2 == 0 && stroke.is_empty() {
                stroke.push(from);
            }
            let t = if rest > left { left / rest } else { 1.0 };
            let end = (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1));
            if turn % 2 == 0 {
                stroke.push(end);
            }
            if rest <= left {
                left -= rest;
                break;
            }
            if turn % 2 == 0 {
                out.push(std::mem::take(&mut stroke));
            }
            turn += 1;
            left = lengths[turn % lengths.len()];
            from = end;
        }
    }
    if stroke.len() > 1 {
        out.push(stroke);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dash_pattern_continues_across_points() {
        let straight = cut_into_dashes(&[(0.0, 0.0), (20.0, 0.0)], "8 5");
        assert_eq!(straight, [[(0.0, 0.0), (8.0, 0.0)], [(13.0, 0.0), (20.0, 0.0)]]);
        let dense: Vec<(f64, f64)> = (0..=20).map(|x| (f64::from(x), 0.0)).collect();
        let ends =
            |strokes: Vec<Vec<(f64, f64)>>| -> Vec<_> { strokes.iter().map(|s| (s[0], s[s.len() - 1])).collect() };
        assert_eq!(ends(cut_into_dashes(&dense, "8 5")), ends(straight));
        assert_eq!(cut_into_dashes(&[(1.0, 1.0)], "8 5").len(), 0);
    }
}
