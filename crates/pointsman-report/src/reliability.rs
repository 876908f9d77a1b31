//! Whether confidence can be believed, as a picture.

use pointsman::diagnose::WeakModel;

use crate::chart::{Chart, Line, Picture, Points, colour};

/// Pixels of a circle's radius for a share of all rows.
const RADIUS: f64 = 40.0;

/// How often labels name the top class against how confident the weak model is.
#[must_use]
pub fn reliability(model: &WeakModel) -> Picture {
    let points = model.bins.iter().map(|bin| (bin.confidence, bin.accuracy)).collect();
    let radii: Vec<f64> = model.bins.iter().map(|bin| (RADIUS * bin.share.sqrt()).clamp(3.0, 20.0)).collect();
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
