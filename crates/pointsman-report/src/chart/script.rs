//! Text of any script in PNGs.
//!
//! The drawing library's built-in font has one glyph per character, drawn from left to right, which suffices for Latin,
//! Greek and Cyrillic. Text in other scripts (Chinese, Arabic, Devanagari, …) is ordered, shaped and drawn here with
//! system fonts; [`UsedFonts`] reports them. SVG viewers shape text themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use ab_glyph_rasterizer::{Point, Rasterizer, point};
use fontdb::{Database, ID, Style, Weight};
use kuva::render::render::{Primitive, TextAnchor};
use rustybuzz::ttf_parser::{GlyphId, OutlineBuilder};
use rustybuzz::{Direction, Face, UnicodeBuffer};
use unicode_bidi::{BidiInfo, Level};

/// The font of the figures; other fonts are used for characters that it lacks.
const PREFERRED_FAMILY: &str = "DejaVu Sans";

/// The largest number of characters listed in a remark.
const MAX_LISTED_CHARS: usize = 12;

/// The system fonts, loaded when a text first needs them.
static FONTS: OnceLock<Mutex<Fonts>> = OnceLock::new();

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

/// A positioned glyph outline, in pixels of the picture.
struct PositionedGlyph {
    outline: Outline,
    x: f32,
    y: f32,
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

/// Whether a character has no visible glyph.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Parses `translate(x,y)`, the only transformation of groups in figures.
fn translation(transform: &str) -> (f64, f64) {
    let inside = transform.trim_start_matches("translate(").trim_end_matches(')');
    let mut parts = inside.split(',').map(|part| part.trim().parse().unwrap_or(0.0));
    (parts.next().unwrap_or(0.0), parts.next().unwrap_or(0.0))
}

/// A line of glyphs: outline, distance from the start, and height above the baseline.
struct GlyphLine {
    glyphs: Vec<(Outline, f32, f32)>,
    width: f32,
}

/// Shapes a text with system fonts, in visual order; `None` if there is no system font.
fn shape_text(text: &str, size: f32) -> Option<(GlyphLine, UsedFonts)> {
    // The full-width sign stands for the dollar sign, which the drawing library reads as mathematics.
    let text = text.replace('\u{ff04}', "$");
    let mut fonts =
        FONTS.get_or_init(|| Mutex::new(Fonts::from_system())).lock().unwrap_or_else(PoisonError::into_inner);
    let first = fonts.first?;
    let (mut shaped, mut used) = (GlyphLine { glyphs: Vec::new(), width: 0.0 }, UsedFonts::default());
    let bidi = BidiInfo::new(&text, Some(Level::ltr()));
    for paragraph in &bidi.paragraphs {
        let (levels, runs) = bidi.visual_runs(paragraph, paragraph.range.clone());
        for run in runs {
            let right_to_left = levels[run.start].is_rtl();
            let mut pieces: Vec<(ID, String)> = Vec::new();
            for c in text[run].chars() {
                let before = pieces.last().map(|piece| piece.0);
                let font = match fonts.font_for(c, before.unwrap_or(first)) {
                    Some(font) => font,
                    None => {
                        used.missing.insert(c);
                        before.unwrap_or(first)
                    }
                };
                match pieces.last_mut() {
                    Some((last, piece)) if *last == font => piece.push(c),
                    _ => pieces.push((font, c.to_string())),
                }
            }
            if right_to_left {
                pieces.reverse();
            }
            for (font, piece) in pieces {
                if let Some(family) = fonts.family(font).filter(|family| family != PREFERRED_FAMILY) {
                    used.families.insert(family);
                }
                fonts.append_run(font, &piece, right_to_left, size, &mut shaped);
            }
        }
    }
    Some((shaped, used))
}

/// The system fonts.
struct Fonts {
    faces: Database,
    /// The preferred font, then all fonts in order of preference.
    first: Option<ID>,
    order: Vec<ID>,
    /// Fonts found so far, by character.
    font_of_char: BTreeMap<char, Option<ID>>,
}

impl Fonts {
    fn from_system() -> Self {
        let mut faces = Database::new();
        faces.load_system_fonts();
        Self::from_database(faces)
    }

    fn from_database(faces: Database) -> Self {
        let mut order: Vec<(bool, bool, String, ID)> = faces
            .faces()
            .filter(|face| face.style == Style::Normal && face.weight == Weight::NORMAL && !face.monospaced)
            .map(|face| {
                let family = face.families.first().map_or(String::new(), |family| family.0.clone());
                (family != PREFERRED_FAMILY, !family.contains("Sans"), family, face.id)
            })
            .collect();
        order.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        let order: Vec<ID> = order.into_iter().map(|(.., id)| id).collect();
        Self { faces, first: order.first().copied(), order, font_of_char: BTreeMap::new() }
    }

    fn has(&self, font: ID, c: char) -> bool {
        let found = self.faces.with_face_data(font, |data, index| {
            Face::from_slice(data, index).is_some_and(|face| face.glyph_index(c).is_some())
        });
        found == Some(true)
    }

    /// A font with this character; preferably the font of the previous character.
    fn font_for(&mut self, c: char, before: ID) -> Option<ID> {
        if is_invisible(c) || self.has(before, c) {
            return Some(before);
        }
        if let Some(known) = self.font_of_char.get(&c) {
            return *known;
        }
        let found = self.order.iter().copied().find(|&font| self.has(font, c));
        self.font_of_char.insert(c, found);
        found
    }

    fn family(&self, font: ID) -> Option<String> {
        self.faces.face(font)?.families.first().map(|family| family.0.clone())
    }

    /// Shapes a run of one font and direction and appends it to a line.
    fn append_run(&self, font: ID, piece: &str, right_to_left: bool, size: f32, line: &mut GlyphLine) {
        self.faces.with_face_data(font, |data, index| {
            let Some(face) = Face::from_slice(data, index) else { return };
            let scale = size / face.units_per_em() as f32;
            let mut buffer = UnicodeBuffer::new();
            buffer.push_str(piece);
            buffer.guess_segment_properties();
            buffer.set_direction(if right_to_left { Direction::RightToLeft } else { Direction::LeftToRight });
            let glyphs = rustybuzz::shape(&face, &[], buffer);
            for (info, at) in glyphs.glyph_infos().iter().zip(glyphs.glyph_positions()) {
                let mut outline = Outline { scale, ..Outline::default() };
                if let Some(id) = u16::try_from(info.glyph_id).ok()
                    && face.outline_glyph(GlyphId(id), &mut outline).is_some()
                {
                    let (x, y) = (at.x_offset as f32 * scale, at.y_offset as f32 * scale);
                    line.glyphs.push((outline, line.width + x, y));
                }
                line.width += at.x_advance as f32 * scale;
            }
        });
    }
}

/// The outline of a glyph in pixels, with the origin on the baseline and y upwards.
#[derive(Default)]
struct Outline {
    scale: f32,
    start: (f32, f32),
    last: (f32, f32),
    curves: Vec<Curve>,
}

enum Curve {
    Line([(f32, f32); 2]),
    Quad([(f32, f32); 3]),
    Cubic([(f32, f32); 4]),
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.start = (x * self.scale, y * self.scale);
        self.last = self.start;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = (x * self.scale, y * self.scale);
        self.curves.push(Curve::Line([self.last, to]));
        self.last = to;
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let to = (x * self.scale, y * self.scale);
        self.curves.push(Curve::Quad([self.last, (x1 * self.scale, y1 * self.scale), to]));
        self.last = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let s = self.scale;
        self.curves.push(Curve::Cubic([self.last, (x1 * s, y1 * s), (x2 * s, y2 * s), (x * s, y * s)]));
        self.last = (x * s, y * s);
    }

    fn close(&mut self) {
        if self.last != self.start {
            self.curves.push(Curve::Line([self.last, self.start]));
        }
        self.last = self.start;
    }
}

impl PositionedGlyph {
    /// Calls `paint` with every covered pixel and its coverage.
    fn draw(&self, mut paint: impl FnMut(i64, i64, f32)) {
        let all = || {
            self.outline.curves.iter().flat_map(|curve| match curve {
                Curve::Line(points) => points.as_slice(),
                Curve::Quad(points) => points.as_slice(),
                Curve::Cubic(points) => points.as_slice(),
            })
        };
        let [mut left, mut right, mut low, mut high] = [f32::MAX, f32::MIN, f32::MAX, f32::MIN];
        for &(x, y) in all() {
            (left, right) = (left.min(self.x + x), right.max(self.x + x));
            (low, high) = (low.min(self.y - y), high.max(self.y - y));
        }
        if left > right || right - left > 4096.0 || high - low > 4096.0 {
            return;
        }
        let (left, low) = (left.floor(), low.floor());
        let (width, height) = ((right - left).ceil() as usize + 2, (high - low).ceil() as usize + 2);
        let at = |(x, y): (f32, f32)| -> Point { point(self.x + x - left, self.y - y - low) };
        let mut rasterizer = Rasterizer::new(width, height);
        for curve in &self.outline.curves {
            match *curve {
                Curve::Line([a, b]) => rasterizer.draw_line(at(a), at(b)),
                Curve::Quad([a, b, c]) => rasterizer.draw_quad(at(a), at(b), at(c)),
                Curve::Cubic([a, b, c, d]) => rasterizer.draw_cubic(at(a), at(b), at(c), at(d)),
            }
        }
        rasterizer.for_each_pixel_2d(|x, y, coverage| {
            if coverage > 0.0 {
                paint(left as i64 + i64::from(x), low as i64 + i64::from(y), coverage.min(1.0));
            }
        });
    }
}

#[cfg(test)]
mod tests {
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
            return pointsman_testing::skip("no system font has Arabic letters");
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
            return pointsman_testing::skip("no system font found");
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
        let mut outline = Outline { scale: 1.0, ..Outline::default() };
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
