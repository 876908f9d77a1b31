//! The true function of a synthetic world and the predictions.

use pointsman_report::chart::{Chart, Line, Picture, colour};
use serde_json::Value;

use crate::paper::Numbers;

pub(super) fn figure(n: Numbers<'_>, problem: &str) -> Option<Picture> {
    let x = n.list("functions", &[problem, "x"])?;
    let line = |name: &str, ink: &str, key: &str| -> Option<Line> {
        let y = n.value("functions", &[problem, key])?.get("mean")?.as_array()?;
        let points = x.iter().zip(y).filter_map(|(x, y)| Some((*x, Value::as_f64(y)?))).collect();
        Some(Line::new(name, ink, points))
    };
    let chart = Chart::new(format!("The world {problem}"), "x", "probability of the positive class")
        .x_range(-3.0, 3.0)
        .y_range(0.0, 1.0)
        .caption(
            "The true conditional probability, what a weak model trained on 10,000 single labels predicts, and the centroids that are served instead \
             after re-calibration on the router's cells. Inputs are standard normal. First seed.",
        )
        .line(line("truth", colour::GREY, "truth")?.width(1.0))
        .line(line("weak model", colour::BLUE, "predicted")?)
        .line(line("re-calibrated", colour::VERMILLION, "recalibrated")?);
    Some(chart.draw())
}
