//! Charts as SVG and PNG in one style: lines with bands, grouped bars with error bars, points, areas, and sheets of
//! several charts.
//!
//! A [`Chart`] is data: axes with units, an explanatory caption, and layers. [`Chart::draw`] turns it into a
//! [`Picture`].
//!
//! ```
//! use pointsman_report::chart::{Chart, Line, colour};
//! let chart = Chart::new("Routing curves", "share routed", "mean loss (Brier points)")
//!     .caption("Lower is better.")
//!     .line(Line::new("ours", colour::BLUE, vec![(0.0, 0.4), (1.0, 0.1)]).band(vec![(0.35, 0.45), (0.1, 0.1)]));
//! let picture = chart.draw();
//! assert!(picture.svg().starts_with("<svg"));
//! ```

pub mod colour;
mod layers;
mod picture;
mod script;
mod text;

use std::sync::Arc;

use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

pub use layers::{Area, Bars, Line, Points};
pub use picture::{Picture, PngError, sheet};
pub use script::UsedFonts;
pub use text::{label, number, wrap};

use layers::{Entry, Layer};

/// A chart: axes, a caption, and layers drawn in the order in which they were added.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    caption: String,
    x: Axis,
    y: Axis,
    size: (f64, f64),
    legend: bool,
    layers: Vec<Layer>,
    notes: Vec<Note>,
}

#[derive(Debug, Clone)]
struct Axis {
    label: String,
    range: Option<(f64, f64)>,
    percent: bool,
    log: bool,
    /// The least value with a tick label; below it there is only space for circles.
    from: Option<f64>,
}

/// Text at a position of the chart.
#[derive(Debug, Clone)]
struct Note {
    text: String,
    x: f64,
    y: f64,
    colour: String,
}

impl Chart {
    /// Creates an empty chart. Axis labels name their unit.
    #[must_use]
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        let axis = |label: String| Axis { label, range: None, percent: false, log: false, from: None };
        Self {
            title: title.into(),
            caption: String::new(),
            x: axis(x.into()),
            y: axis(y.into()),
            size: (860.0, 480.0),
            legend: true,
            layers: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the caption, which says how to read the chart.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Fixes the horizontal range, which otherwise follows from the data.
    #[must_use]
    pub fn x_range(mut self, from: f64, to: f64) -> Self {
        self.x.range = Some((from, to));
        self
    }

    /// Fixes the vertical range, which otherwise follows from the data.
    #[must_use]
    pub fn y_range(mut self, from: f64, to: f64) -> Self {
        self.y.range = Some((from, to));
        self
    }

    /// Extends both fixed ranges downwards by the radius of circles, in pixels, so that they cover no tick labels.
    #[must_use]
    pub fn room_for(mut self, radius: f64) -> Self {
        for (axis, length) in [(&mut self.x, self.size.0), (&mut self.y, self.size.1)] {
            if let Some((from, to)) = axis.range {
                // About a hundred pixels are outside the axes.
                let room = (to - from) * radius / (length - 100.0 - radius).max(radius);
                (axis.range, axis.from) = (Some((from - room, to)), Some(from));
            }
        }
        self
    }

    /// The ends of the horizontal axis if fixed, otherwise `otherwise`.
    pub(crate) fn x_ends(&self, otherwise: (f64, f64)) -> (f64, f64) {
        self.x.range.unwrap_or(otherwise)
    }

    /// The ends of the vertical axis if fixed, otherwise `otherwise`.
    pub(crate) fn y_ends(&self, otherwise: (f64, f64)) -> (f64, f64) {
        self.y.range.unwrap_or(otherwise)
    }

    /// Shows the ticks of the horizontal axis, a share, in per cent.
    #[must_use]
    pub fn x_percent(mut self) -> Self {
        self.x.percent = true;
        self
    }

    /// Shows the ticks of the vertical axis, a share, in per cent.
    #[must_use]
    pub fn y_percent(mut self) -> Self {
        self.y.percent = true;
        self
    }

    /// Makes the horizontal axis logarithmic; all its values must be positive.
    #[must_use]
    pub fn x_log(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// Sets width and height in pixels, without title and caption.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = (width, height);
        self
    }

    /// Omits the legend, as in a sheet whose panels share one.
    #[must_use]
    pub fn no_legend(mut self) -> Self {
        self.legend = false;
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.layers.push(Layer::Line(line));
        self
    }

    /// Adds points.
    #[must_use]
    pub fn points(mut self, points: Points) -> Self {
        self.layers.push(Layer::Points(points));
        self
    }

    /// Adds a shaded area.
    #[must_use]
    pub fn area(mut self, area: Area) -> Self {
        self.layers.push(Layer::Area(area));
        self
    }

    /// Adds bars, grouped by category. One such layer per chart; the horizontal axis becomes its categories.
    #[must_use]
    pub fn bars(mut self, bars: Bars) -> Self {
        self.layers.push(Layer::Bars(bars));
        self
    }

    /// Adds text at a position of the chart.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>, x: f64, y: f64, colour: impl Into<String>) -> Self {
        self.notes.push(Note { text: text.into(), x, y, colour: colour.into() });
        self
    }

    /// Draws the chart.
    #[must_use]
    pub fn draw(&self) -> Picture {
        let mut plots: Vec<Plot> = self.layers.iter().flat_map(Layer::plots).collect();
        if plots.is_empty() {
            // An axis without data still needs a range.
            plots = Layer::Line(Line::new("", colour::GREY, vec![(0.0, 0.0), (1.0, 1.0)]).width(0.0)).plots();
        }
        let mut legend: Vec<Entry> = self.layers.iter().flat_map(Layer::legend).collect();
        if !self.legend || legend.len() < 2 {
            legend.clear();
        }
        let scene = render_multiple(plots, self.layout());
        Picture::from_chart(scene, &self.title, &legend, &label(&self.y.label, 110), &self.caption)
    }

    fn layout(&self) -> Layout {
        let plots: Vec<Plot> = self.layers.iter().flat_map(Layer::plots).collect();
        let mut layout = Layout::auto_from_plots(&plots)
            .with_width(self.size.0)
            .with_height(self.size.1)
            .with_theme(theme())
            .with_label_size(15)
            .with_tick_size(13)
            .with_body_size(14)
            .with_grid_line_width(0.6)
            .with_x_label(label(&self.x.label, 110))
            .with_legend_box(false);
        if let Some((from, to)) = self.x.range {
            layout = layout.with_x_axis_min(from).with_x_axis_max(to);
        }
        if let Some((from, to)) = self.y.range {
            layout = layout.with_y_axis_min(from).with_y_axis_max(to);
        }
        if self.x.log {
            layout = layout.with_log_x();
        }
        if self.x.percent || self.x.from.is_some() {
            layout = layout.with_x_tick_format(self.x.ticks());
        }
        if self.y.percent || self.y.from.is_some() {
            layout = layout.with_y_tick_format(self.y.ticks());
        }
        layout.show_legend = false;
        for note in &self.notes {
            let text = kuva::plot::annotations::TextAnnotation::new(label(&note.text, 60), note.x, note.y)
                .with_color(note.colour.clone())
                .with_font_size(14);
            layout = layout.with_annotation(text);
        }
        layout
    }
}

impl Axis {
    /// The format of the tick labels.
    fn ticks(&self) -> TickFormat {
        let (percent, from) = (self.percent, self.from.unwrap_or(f64::NEG_INFINITY));
        TickFormat::Custom(Arc::new(move |x| match percent {
            _ if x < from - 1e-12 => String::new(),
            true => format!("{} %", number(100.0 * x, 3)),
            false => number(x, 3),
        }))
    }
}

fn theme() -> Theme {
    Theme {
        axis_color: colour::INK.into(),
        tick_color: colour::INK.into(),
        text_color: colour::INK.into(),
        grid_color: "#dddddd".into(),
        legend_border: "none".into(),
        ..Theme::light()
    }
}
