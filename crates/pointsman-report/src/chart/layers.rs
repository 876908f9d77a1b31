//! The layers of a chart.

use kuva::plot::{BandPlot, BarPlot, LinePlot, LineStyle, ScatterPlot};
use kuva::render::plots::Plot;

use super::label;

/// Largest length of a name in a legend, in characters.
const MAX_NAME_CHARS: usize = 40;

/// A line, optionally with a band.
#[derive(Debug, Clone)]
pub struct Line {
    name: String,
    colour: String,
    points: Vec<(f64, f64)>,
    band: Option<Vec<(f64, f64)>>,
    dash: Option<&'static str>,
    width: f64,
    fill: bool,
}

impl Line {
    /// Creates a line through points; points that are not finite are skipped.
    #[must_use]
    pub fn new(name: impl Into<String>, colour: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (name, colour) = (name.into(), colour.into());
        Self { name, colour, points, band: None, dash: None, width: 2.4, fill: false }
    }

    /// Adds a band: its lower and upper end at each point, such as one standard deviation to both sides.
    #[must_use]
    pub fn band(mut self, ends: Vec<(f64, f64)>) -> Self {
        self.band = Some(ends);
        self
    }

    /// Dashes the line.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dash = Some("8 5");
        self
    }

    /// Dots the line.
    #[must_use]
    pub fn dotted(mut self) -> Self {
        self.dash = Some("2 4");
        self
    }

    /// Sets the width in pixels.
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// Shades the area below the line.
    #[must_use]
    pub fn filled(mut self) -> Self {
        self.fill = true;
        self
    }
}

/// Points, with one radius for all or one per point.
#[derive(Debug, Clone)]
pub struct Points {
    name: String,
    colour: String,
    points: Vec<(f64, f64)>,
    radii: Option<Vec<f64>>,
}

impl Points {
    /// Creates points of one colour.
    #[must_use]
    pub fn new(name: impl Into<String>, colour: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour: colour.into(), points, radii: None }
    }

    /// Sets the radius of each point in pixels.
    #[must_use]
    pub fn radii(mut self, radii: Vec<f64>) -> Self {
        self.radii = Some(radii);
        self
    }
}

/// A shaded area between two heights.
#[derive(Debug, Clone)]
pub struct Area {
    name: String,
    colour: String,
    edges: Vec<(f64, f64, f64)>,
    opacity: f64,
}

impl Area {
    /// Creates an area from edges (x, lower y, upper y).
    #[must_use]
    pub fn new(name: impl Into<String>, colour: impl Into<String>, edges: Vec<(f64, f64, f64)>) -> Self {
        Self { name: name.into(), colour: colour.into(), edges, opacity: 0.16 }
    }

    /// Sets the opacity, from 0 to 1.
    #[must_use]
    pub fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = opacity;
        self
    }
}

/// Bars grouped by category, side by side or stacked.
#[derive(Debug, Clone)]
pub struct Bars {
    categories: Vec<String>,
    series: Vec<(String, String, Vec<f64>)>,
    errors: Option<Vec<Vec<f64>>>,
    stacked: bool,
}

impl Bars {
    /// Creates bars with these categories on the horizontal axis.
    #[must_use]
    pub fn new(categories: Vec<String>) -> Self {
        Self { categories, series: Vec::new(), errors: None, stacked: false }
    }

    /// Adds a series: one value per category.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, colour: impl Into<String>, values: Vec<f64>) -> Self {
        self.series.push((name.into(), colour.into(), values));
        self
    }

    /// Adds error bars by their half-lengths: one list per series, one number per category.
    #[must_use]
    pub fn errors(mut self, errors: Vec<Vec<f64>>) -> Self {
        self.errors = Some(errors);
        self
    }

    /// Stacks the series.
    #[must_use]
    pub fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    fn plot(&self) -> BarPlot {
        let finite = |values: &[f64], i: usize| values.get(i).copied().filter(|x| x.is_finite()).unwrap_or(0.0);
        let mut plot = BarPlot::new().with_width(0.75);
        for (i, category) in self.categories.iter().enumerate() {
            let bars = self.series.iter().map(|(_, colour, values)| (finite(values, i), colour.clone()));
            plot = plot.with_group(label(category, 24), bars.collect::<Vec<_>>());
        }
        if let Some(errors) = &self.errors {
            let flat = (0..self.categories.len()).flat_map(|i| errors.iter().map(move |series| finite(series, i)));
            plot = plot.with_error(flat.collect::<Vec<f64>>());
        }
        if self.stacked { plot.with_stacked() } else { plot }
    }
}

/// An entry of a legend, drawn with the mark of its layer.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) colour: String,
    pub(super) mark: Mark,
}

/// The mark of a legend entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    Line { dash: Option<&'static str>, width: f64 },
    Circle,
    Area { opacity: f64 },
}

#[derive(Debug, Clone)]
pub(super) enum Layer {
    Line(Line),
    Points(Points),
    Area(Area),
    Bars(Bars),
}

fn finite(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

impl Layer {
    pub(super) fn plots(&self) -> Vec<Plot> {
        match self {
            Self::Line(line) => {
                let mut plots = Vec::new();
                if let Some(ends) = &line.band {
                    let edges = line.points.iter().zip(ends).map(|(p, e)| (p.0, e.0, e.1));
                    plots.extend(Self::Area(Area::new("", line.colour.clone(), edges.collect()).opacity(0.2)).plots());
                }
                let mut plot = LinePlot::new()
                    .with_data(finite(&line.points).collect::<Vec<_>>())
                    .with_color(line.colour.clone())
                    .with_stroke_width(line.width);
                if let Some(dash) = line.dash {
                    plot = plot.with_line_style(LineStyle::Custom(dash.into()));
                }
                if line.fill {
                    plot = plot.with_fill().with_fill_opacity(0.3);
                }
                plots.push(plot.into());
                plots
            }
            Self::Points(points) => {
                let mut plot = ScatterPlot::new()
                    .with_color(points.colour.clone())
                    .with_size(4.0)
                    .with_marker_opacity(0.65)
                    .with_marker_stroke_width(1.2);
                let kept: Vec<usize> = (0..points.points.len())
                    .filter(|&i| points.points[i].0.is_finite() && points.points[i].1.is_finite())
                    .collect();
                plot = plot.with_data(kept.iter().map(|&i| points.points[i]).collect::<Vec<_>>());
                if let Some(radii) = &points.radii {
                    plot =
                        plot.with_sizes(kept.iter().map(|&i| radii.get(i).copied().unwrap_or(4.0)).collect::<Vec<_>>());
                }
                if kept.is_empty() { Vec::new() } else { vec![plot.into()] }
            }
            Self::Area(area) => {
                let edges = area.edges.iter().filter(|(x, a, b)| x.is_finite() && a.is_finite() && b.is_finite());
                let (mut x, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
                for &(at, from, to) in edges {
                    x.push(at);
                    low.push(from);
                    high.push(to);
                }
                if x.len() < 2 {
                    return Vec::new();
                }
                let plot = BandPlot::new(x, low, high).with_color(area.colour.clone()).with_opacity(area.opacity);
                vec![plot.into()]
            }
            Self::Bars(bars) => vec![bars.plot().into()],
        }
    }

    pub(super) fn legend(&self) -> Vec<Entry> {
        let entry = |name: &str, colour: &str, mark: Mark| {
            (!name.is_empty()).then(|| Entry { name: label(name, MAX_NAME_CHARS), colour: colour.to_owned(), mark })
        };
        match self {
            Self::Line(line) => {
                let mark = Mark::Line { dash: line.dash, width: line.width };
                entry(&line.name, &line.colour, mark).into_iter().collect()
            }
            Self::Points(points) => entry(&points.name, &points.colour, Mark::Circle).into_iter().collect(),
            Self::Area(area) => {
                // A faint shade would not be visible in the small field.
                let mark = Mark::Area { opacity: area.opacity.max(0.3) };
                entry(&area.name, &area.colour, mark).into_iter().collect()
            }
            Self::Bars(bars) => {
                let mark = Mark::Area { opacity: 1.0 };
                bars.series.iter().filter_map(|(name, colour, _)| entry(name, colour, mark)).collect()
            }
        }
    }
}
