//! Text of any script in PNGs.
//!
//! The drawing library's built-in font has one glyph per character, drawn from left to right, which suffices for Latin,
//! Greek and Cyrillic. Text in other scripts (Chinese, Arabic, Devanagari, …) is ordered, shaped and drawn here with
//! system fonts; [`UsedFonts`] reports them. SVG viewers shape text themselves.

mod fonts;
mod outline;

use std::collections::BTreeSet;

use kuva::render::render::{Primitive, TextAnchor};

use fonts::shape_text;
use outline::{Outline, PositionedGlyph};

/// The largest number of characters listed in a remark.
const MAX_LISTED_CHARS: usize = 12;

/// The system fonts that a PNG needed, and the characters that no font has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedFonts {
    /// Font families other than the built-in one.
    pub families: BTreeSet<String>,
    /// Characters drawn as boxes, since no system font has them.
    pub missing: BTreeSet<char>,
}

impl UsedFonts {
    /// Adds the fonts and characters of another figure.
    pub fn extend(&mut self, other: Self) {
        self.families.extend(other.families);
        self.missing.extend(other.missing);
    }

    /// A sentence about the used fonts; `None` if the built-in font sufficed.
    #[must_use]
    pub fn families_in_words(&self) -> Option<String> {
        let names: Vec<&str> = self.families.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!("names that the built-in font of PNG figures cannot write are set in {}", names.join(", "))
        })
    }

    /// A sentence about the missing characters and what to do; `None` if there are none.
    #[must_use]
    pub fn missing_in_words(&self) -> Option<String> {
        let listed: String = self.missing.iter().take(MAX_LISTED_CHARS).map(|c| format!(" {c}")).collect();
        let more = if self.missing.len() > MAX_LISTED_CHARS { " …" } else { "" };
        (!self.missing.is_empty()).then(|| {
            format!(
                "PNG figures show boxes for characters that no font of this machine has:{listed}{more}; install one that has them (such as \
                 Noto Sans), or use the SVG figures and the page, which take the fonts of whoever opens them"
            )
        })
    }
}

/// A text to draw over the finished picture.
pub(super) struct Overlay {
    glyphs: Vec<PositionedGlyph>,
    ink: [u8; 3],
}

/// Removes the texts that the drawing library cannot draw, and shapes them as overlays.
pub(super) fn take_texts(
    elements: Vec<Primitive>,
    scale: f32,
    ink: [u8; 3],
) -> (Vec<Primitive>, Vec<Overlay>, UsedFonts) {
    let (mut kept, mut overlays, mut used) = (Vec::new(), Vec::new(), UsedFonts::default());
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for element in elements {
        match &element {
            Primitive::GroupStart { transform, .. } => {
                groups.push(transform.as_deref().map_or((0.0, 0.0), translation));
            }
            Primitive::GroupEnd => drop(groups.pop()),
            Primitive::Text { x, y, content, size, anchor, rotate: None, color, .. } if !is_plain(content) => {
                let (dx, dy) = groups.iter().fold((0.0, 0.0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
                let size = *size as f32 * scale;
                let Some((line, fonts)) = shape_text(content, size) else {
                    used.missing.extend(content.chars().filter(|&c| !is_plain_char(c)));
                    kept.push(element);
                    continue;
                };
                used.extend(fonts);
                let start = match anchor {
                    TextAnchor::Start => 0.0,
                    TextAnchor::Middle => line.width / 2.0,
                    TextAnchor::End => line.width,
                };
                let (x, y) = ((x + dx) as f32 * scale - start, (y + dy) as f32 * scale);
                let placed =
                    |(outline, at, rise): (Outline, f32, f32)| PositionedGlyph { outline, x: x + at, y: y - rise };
                let ink = match color {
                    Some(kuva::render::color::Color::Rgb(r, g, b)) => [*r, *g, *b],
                    _ => ink,
                };
                overlays.push(Overlay { glyphs: line.glyphs.into_iter().map(placed).collect(), ink });
                continue;
            }
            _ => {}
        }
        kept.push(element);
    }
    (kept, overlays, used)
}

/// Draws texts over a PNG.
pub(super) fn draw_over(png: &[u8], overlays: &[Overlay]) -> Result<Vec<u8>, String> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().map_err(|error| error.to_string())?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("the picture is too large")?];
    let info = reader.next_frame(&mut pixels).map_err(|error| error.to_string())?;
    if (info.color_type, info.bit_depth) != (png::ColorType::Rgba, png::BitDepth::Eight) {
        return Err("the picture is not in RGBA".into());
    }
    let (width, height) = (i64::from(info.width), i64::from(info.height));
    for overlay in overlays {
        for glyph in &overlay.glyphs {
            glyph.draw(|x, y, coverage| {
                if (0..width).contains(&x) && (0..height).contains(&y) {
                    let at = 4 * (y * width + x) as usize;
                    for (channel, ink) in pixels[at..at + 3].iter_mut().zip(overlay.ink) {
                        let mixed = f32::from(*channel) * (1.0 - coverage) + f32::from(ink) * coverage;
                        *channel = mixed.round() as u8;
                    }
                }
            });
        }
    }
    let mut out = Vec::with_capacity(png.len());
    let mut encoder = png::Encoder::new(&mut out, info.width, info.height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
    writer.write_image_data(&pixels).map_err(|error| error.to_string())?;
    drop(writer);
    Ok(out)
}

/// Whether the drawing library draws a text correctly.
fn is_plain(text: &str) -> bool {
    text.chars().all(is_plain_char)
}

/// Whether the built-in font has a character of a left-to-right script with one glyph per character: Latin, Greek,
/// Cyrillic, Armenian, Georgian, punctuation, arrows and signs.
fn is_plain_char(c: char) -> bool {
    matches!(c, '\0'..='\u{2ff}' | '\u{370}'..='\u{58f}' | '\u{10a0}'..='\u{10ff}' | '\u{1e00}'..='\u{1fff}' | '\u{2010}'..='\u{22ff}' | '\u{2500}'..='\u{25ff}')
}

/// Parses `translate(x,y)`, the only transformation of groups in figures.
fn translation(transform: &str) -> (f64, f64) {
    let inside = transform.trim_start_matches("translate(").trim_end_matches(')');
    let mut parts = inside.split(',').map(|part| part.trim().parse().unwrap_or(0.0));
    (parts.next().unwrap_or(0.0), parts.next().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use rustybuzz::ttf_parser::OutlineBuilder;

    use super::*;

    fn text(content: &str) -> Primitive {
        Primitive::Text {
            x: 10.0,
            y: 20.0,
            content: content.to_owned(),
            size: 13,
            anchor: TextAnchor::Start,
            rotate: None,
            bold: false,
            color: None,
        }
    }

    #[test]
    fn plain_texts_are_not_replaced() {
        let plain = ["Größe & Maß ≥0.36–0.42 …", "зависит", "ελληνικά", "±1 % × 2"].map(text).to_vec();
        let (kept, overlays, used) = take_texts(plain, 2.0, [0; 3]);
        assert_eq!((kept.len(), overlays.len(), used), (4, 0, UsedFonts::default()));
    }

    #[test]
    fn arabic_letters_are_joined_right_to_left() {
        let Some((word, _)) = shape_text("شكوى", 26.0).filter(|(_, used)| used.missing.is_empty()) else {
            return pointsman_testing::announce("no system font has Arabic letters");
        };
        let letters: f32 =
            "شكوى".chars().filter_map(|c| shape_text(&c.to_string(), 26.0)).map(|(line, _)| line.width).sum();
        assert!(word.width < 0.95 * letters, "{} joined, {letters} apart", word.width);
        // Numbers after a left-to-right mark stay to the right of the word.
        let (line, _) = shape_text("شكوى\u{200e} 0.5", 26.0).unwrap();
        assert!(line.width > word.width && line.glyphs.last().unwrap().1 > word.width);
    }

    #[test]
    fn characters_without_font_are_reported() {
        // A private-use character, which no font should have.
        let Some((_, used)) = shape_text("a\u{10fffd}", 26.0) else {
            return pointsman_testing::announce("no system font found");
        };
        assert_eq!(used.missing.iter().collect::<Vec<_>>(), [&'\u{10fffd}']);
        assert!(used.missing_in_words().unwrap().contains("no font of this machine"));
        assert_eq!(UsedFonts::default().missing_in_words(), None);
        let used = UsedFonts { families: ["Noto Sans".to_owned()].into(), missing: BTreeSet::new() };
        assert!(used.families_in_words().unwrap().ends_with("are set in Noto Sans"));
    }

    #[test]
    fn overlays_are_drawn_over_a_png() {
        let mut white = Vec::new();
        let mut encoder = png::Encoder::new(&mut white, 80, 60);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(&[255; 4 * 80 * 60]).unwrap();
        let square = [(2.0, 2.0), (12.0, 2.0), (12.0, 12.0), (2.0, 12.0)];
        let mut outline = Outline::new(1.0);
        outline.move_to(square[0].0, square[0].1);
        square[1..].iter().for_each(|&(x, y)| outline.line_to(x, y));
        outline.close();
        let overlay = Overlay { glyphs: vec![PositionedGlyph { outline, x: 10.0, y: 40.0 }], ink: [0, 0, 255] };
        let drawn = draw_over(&white, &[overlay]).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&drawn)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let at = |x: usize, y: usize| &pixels[4 * (80 * y + x)..][..3];
        assert_eq!((at(15, 33), at(5, 33)), (&[0, 0, 255][..], &[255, 255, 255][..]));
    }
}
