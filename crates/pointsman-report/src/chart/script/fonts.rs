//! Shaping with system fonts.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use fontdb::{Database, ID, Style, Weight};
use rustybuzz::ttf_parser::GlyphId;
use rustybuzz::{Direction, Face, UnicodeBuffer};
use unicode_bidi::{BidiInfo, Level};

use super::UsedFonts;
use super::outline::Outline;

/// The font of the figures; other fonts are used for characters that it lacks.
const PREFERRED_FAMILY: &str = "DejaVu Sans";

/// The system fonts, loaded when a text first needs them.
static FONTS: OnceLock<Mutex<Fonts>> = OnceLock::new();

/// A line of glyphs: outline, distance from the start, and height above the baseline.
pub(super) struct GlyphLine {
    pub(super) glyphs: Vec<(Outline, f32, f32)>,
    pub(super) width: f32,
}

/// Shapes a text with system fonts, in visual order; `None` if there is no system font.
pub(super) fn shape_text(text: &str, size: f32) -> Option<(GlyphLine, UsedFonts)> {
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

/// Whether a character has no visible glyph.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
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
                let mut outline = Outline::new(scale);
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
