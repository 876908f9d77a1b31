//! Outlines of glyphs, and how they cover pixels.

use ab_glyph_rasterizer::{Point, Rasterizer, point};
use rustybuzz::ttf_parser::OutlineBuilder;

/// The outline of a glyph in pixels, with the origin on the baseline and y upwards.
#[derive(Default)]
pub(super) struct Outline {
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

impl Outline {
    /// An empty outline of a font with this number of pixels per unit.
    pub(super) fn new(scale: f32) -> Self {
        Self { scale, ..Self::default() }
    }
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

/// A positioned glyph outline, in pixels of the picture.
pub(super) struct PositionedGlyph {
    pub(super) outline: Outline,
    pub(super) x: f32,
    pub(super) y: f32,
}

impl PositionedGlyph {
    /// Calls `paint` with every covered pixel and its coverage.
    pub(super) fn draw(&self, mut paint: impl FnMut(i64, i64, f32)) {
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
