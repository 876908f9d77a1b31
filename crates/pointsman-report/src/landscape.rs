//! The decision landscape: the cheapest action at each point of the plane of irreducible and reducible loss.

use crate::chart::{Area, colour};
use crate::report::LossReport;

/// The drawn part of the plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The horizontal range; below zero there is only space for circles.
    pub(crate) x: (f64, f64),
    /// The vertical range; below zero there is only space for circles.
    pub(crate) y: (f64, f64),
}

/// The regions of the three actions at given prices, clipped to a frame. Their corners come from the report.
pub(crate) fn regions(loss: &LossReport, [route, abstain]: [usize; 2], frame: Frame) -> Vec<Area> {
    let grid = &loss.grid;
    let place = route * grid.abstain_prices.len() + abstain;
    let (price, abstain_price) = (grid.decision_prices[place], grid.abstain_prices[abstain]);
    let corner = grid.corners[place];
    let ((left, right), (low, high)) = (frame.x, frame.y);
    // Circles have the regions' colours and are named in the legend.
    let area = |action: &str, edges: Vec<(f64, f64, f64)>| {
        Area::new("", colour::action(action), clip(&edges, frame)).opacity(0.14)
    };
    // The upper limit of predicting on the vertical axis.
    let top = price.unwrap_or(f64::INFINITY).min(abstain_price.unwrap_or(f64::INFINITY)).min(1e9);
    let Some(end) = abstain_price else {
        let mut areas = vec![area("predict", vec![(left, low, top), (right, low, top)])];
        if price.is_some() {
            areas.push(area("route", vec![(left, top, high), (right, top, high)]));
        }
        return areas;
    };
    let bend = corner.unwrap_or(0.0);
    let mut areas = vec![area("predict", vec![(left, low, top), (bend, low, top), (end, low, 0.0)])];
    if bend > 0.0 {
        areas.push(area("route", vec![(left, top, high), (bend, top, high)]));
    }
    areas.push(area(
        "abstain",
        vec![(bend, top, high), (end, 0.0, high), (end, low, high), (end.max(right), low, high)],
    ));
    areas
}

/// Clips edges (x, lower, upper) to the frame and adds points where an edge crosses it.
fn clip(edges: &[(f64, f64, f64)], frame: Frame) -> Vec<(f64, f64, f64)> {
    let (width, (bottom, height)) = (frame.x.1, frame.y);
    let mut cut = Vec::new();
    let mut add =
        |(x, low, high): (f64, f64, f64)| cut.push((x, low.clamp(bottom, height), high.clamp(bottom, height)));
    for pair in edges.windows(2) {
        let ((x0, low0, high0), (x1, low1, high1)) = (pair[0], pair[1]);
        if x0 > width || x1 < x0 {
            continue;
        }
        add(pair[0]);
        // Where the sloping side crosses the top or the right side of the frame.
        let mut stops: Vec<f64> = [(low0, low1), (high0, high1)]
            .iter()
            .filter(|(a, b)| (a - height) * (b - height) < 0.0)
            .map(|(a, b)| (a - height) / (a - b))
            .collect();
        if x1 > width && x1 > x0 {
            stops.push((width - x0) / (x1 - x0));
        }
        stops.sort_by(f64::total_cmp);
        for t in stops {
            let at = |a: f64, b: f64| a + t * (b - a);
            if at(x0, x1) <= width {
                add((at(x0, x1), at(low0, low1), at(high0, high1)));
            }
        }
    }
    if let Some(&last) = edges.last().filter(|edge| edge.0 <= width) {
        add(last);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_clipped_to_the_frame() {
        let frame = Frame { x: (0.0, 2.0), y: (0.0, 1.5) };
        let cut = clip(&[(0.0, 0.0, 2.0), (1.0, 0.0, 2.0), (3.0, 0.0, 0.0)], frame);
        assert_eq!(cut, [(0.0, 0.0, 1.5), (1.0, 0.0, 1.5), (1.5, 0.0, 1.5), (2.0, 0.0, 1.0)]);
        assert!(clip(&[(3.0, 0.0, 1.0), (4.0, 0.0, 1.0)], frame).is_empty());
    }
}
