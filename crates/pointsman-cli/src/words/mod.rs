//! Sentences about policies and tables, for the terminal, pages and the warnings of JSON.

pub(crate) mod policy;
pub(crate) mod table;

use pointsman::number::is_wide_beside;

use crate::render::number::{decimals, fixed, short};

/// A number and its standard error, if it has one.
pub(crate) fn with_error(value: f64, standard_error: f64) -> String {
    if !standard_error.is_finite() {
        return short(value);
    }
    let digits = decimals([value]);
    format!("{} ± {}", fixed(value, digits), fixed(standard_error, digits))
}

/// The interval that labels identify an estimate to, in brackets; empty if it rounds to a point or is small beside the standard error.
pub(crate) fn identified_interval(value: f64, standard_error: f64, identified: Option<[f64; 2]>) -> String {
    let digits = decimals([value]);
    let ends = identified.filter(|ends| is_wide_beside(*ends, standard_error));
    let ends = ends.map(|ends| ends.map(|end| fixed(end, digits))).filter(|[low, high]| low != high);
    ends.map_or(String::new(), |[low, high]| format!(" (so few labels per item leave {low} to {high} open)"))
}
