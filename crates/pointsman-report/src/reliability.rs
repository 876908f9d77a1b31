//! The reliability diagram of the weak model.

use pointsman::diagnose::WeakModel;

use crate::chart::{Chart, Line, Picture, Points, colour};

/// Radius in pixels of a circle for all rows.
const ALL_ROWS_RADIUS: f64 = 40.0;

/// Draws how often labels name the top class against the weak model's confidence.
#[must_use]
pub fn reliability(model: &WeakModel) -> Picture {
    let points = model.bins.iter().map(|bin| (bin.confidence, bin.accuracy)).collect();
    let radii: Vec<f64> = model.bins.iter().map(|bin| (ALL_ROWS_RADIUS * bin.share.sqrt()).clamp(3.0, 20.0)).collect();
    Chart::new("Reliability of the weak model", "confidence", "share of the labels that are its top class")
        .caption(
            "Each circle is a group of rows of like confidence, its area their share. Below the line the model is more confident than \
             the labels justify.",
        )
        .x_range(0.0, 1.0)
        .x_percent()
        .y_range(0.0, 1.0)
        .y_percent()
        .room_for(radii.iter().copied().fold(0.0, f64::max))
        .line(Line::new("calibrated", colour::GREY, vec![(0.0, 0.0), (1.0, 1.0)]).dashed())
        .points(Points::new("weak model", colour::BLUE, points).radii(radii))
        .draw()
}
