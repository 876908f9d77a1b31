//! The decision landscape: where in the plane of irreducible and reducible loss each action is the cheapest.

use crate::chart::{Area, colour};
use crate::report::LossReport;

/// The three regions at given prices, within a box. The corners come from the report; here they are only joined.
pub(crate) fn regions(loss: &LossReport, [route, abstain]: [usize; 2], width: f64, height: f64) -> Vec<Area> {
    let grid = &loss.grid;
    let place = route * grid.abstain_prices.len() + abstain;
    let (price, decline) = (grid.decision_prices[place], grid.abstain_prices[abstain]);
    let corner = grid.corners[place];
    let area = |name: &str, action: &str, edges: Vec<(f64, f64, f64)>| {
        Area::new(name, colour::action(action), clip(&edges, width, height)).opacity(0.14)
    };
    // The height below which predicting is best, and how far right it stays so.
    let top = price.unwrap_or(f64::INFINITY).min(decline.unwrap_or(f64::INFINITY)).min(1e9);
    let Some(end) = decline else {
        let mut areas = vec![area("predict", "predict", vec![(0.0, 0.0, top), (width, 0.0, top)])];
        if price.is_some() {
            areas.push(area("route", "route", vec![(0.0, top, height), (width, top, height)]));
        }
        return areas;
    };
    let bend = corner.unwrap_or(0.0);
    let mut areas = vec![area("predict", "predict", vec![(0.0, 0.0, top), (bend, 0.0, top), (end, 0.0, 0.0)])];
    if bend > 0.0 {
        areas.push(area("route", "route", vec![(0.0, top, height), (bend, top, height)]));
    }
    areas.push(area(
        "abstain",
        "abstain",
        vec![(bend, top, height), (end, 0.0, height), (end.max(width), 0.0, height)],
    ));
    areas
}

/// Cuts edges (x, lower, upper) at the box; where an edge leaves it, a point is put in between.
fn clip(edges: &[(f64, f64, f64)], width: f64, height: f64) -> Vec<(f64, f64, f64)> {
    let mut cut = Vec::new();
    let mut add = |(x, low, high): (f64, f64, f64)| cut.push((x, low.clamp(0.0, height), high.clamp(0.0, height)));
    for pair in edges.windows(2) {
        let ((x0, low0, high0), (x1, low1, high1)) = (pair[0], pair[1]);
        if x0 > width || x1 < x0 {
            continue;
        }
        add(pair[0]);
        // Where the sloping side crosses the top or the right side of the box.
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
    fn edges_stay_in_the_box() {
        let cut = clip(&[(0.0, 0.0, 2.0), (1.0, 0.0, 2.0), (3.0, 0.0, 0.0)], 2.0, 1.5);
        assert_eq!(cut, [(0.0, 0.0, 1.5), (1.0, 0.0, 1.5), (1.5, 0.0, 1.5), (2.0, 0.0, 1.0)]);
        assert!(clip(&[(3.0, 0.0, 1.0), (4.0, 0.0, 1.0)], 2.0, 1.0).is_empty());
    }
}
