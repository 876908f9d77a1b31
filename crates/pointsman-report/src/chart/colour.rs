//! Colours that colour-blind readers can distinguish (Okabe and Ito), used consistently in all figures.

/// Text and axes.
pub const INK: &str = "#222222";
/// Secondary text and lines.
pub const GREY: &str = "#777777";
/// Okabe–Ito blue.
pub const BLUE: &str = "#0072B2";
/// Okabe–Ito vermillion.
pub const VERMILLION: &str = "#D55E00";
/// Okabe–Ito bluish green.
pub const GREEN: &str = "#009E73";
/// Okabe–Ito orange.
pub const ORANGE: &str = "#E69F00";
/// Okabe–Ito sky blue.
pub const SKY: &str = "#56B4E9";
/// Okabe–Ito reddish purple.
pub const PURPLE: &str = "#CC79A7";
/// Okabe–Ito yellow.
pub const YELLOW: &str = "#F0E442";

/// Colours for series without a fixed colour.
pub const SERIES: [&str; 8] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, GREY, INK];

/// Colours of several routes, in the task's order: shades of the colour of a single route.
pub const ROUTES: [&str; 5] = [ORANGE, "#A65E00", "#F6CF71", "#6B3D00", YELLOW];

/// The colour of a route, by its position among the task's routes.
#[must_use]
pub fn route(place: usize, routes: usize) -> &'static str {
    if routes > 1 { ROUTES[place % ROUTES.len()] } else { ORANGE }
}

/// The colour of an action: `predict`, `route:<name>`, `abstain`, anything else.
#[must_use]
pub fn action(name: &str) -> &'static str {
    match name.split(':').next().unwrap_or(name) {
        "predict" => BLUE,
        "route" => ORANGE,
        "abstain" => PURPLE,
        _ => GREY,
    }
}

/// The colour of a ranking.
#[must_use]
pub fn strategy(name: &str) -> &'static str {
    match name {
        "higher-order" => BLUE,
        "total-uncertainty" => VERMILLION,
        "cell-optimal" => GREEN,
        "pointwise-optimal" => INK,
        "supervised" | "supervised-static" => PURPLE,
        _ => GREY,
    }
}
