//! Number formatting for people: thousands separators, a minus sign, four significant digits.
//!
//! All text for people uses these functions; output for programs (JSON, tables) has all digits.

/// Numbers from this size are written with an exponent.
const LARGE: f64 = 1e15;

/// The number of decimals that shows the largest of these values with four significant digits.
///
/// The numbers of a column share them, so that decimal points are aligned.
#[must_use]
pub fn decimals(values: impl IntoIterator<Item = f64>) -> usize {
    let largest = values.into_iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    if largest == 0.0 {
        return 4;
    }
    // The exponent after rounding: 0.099996 is shown as 0.1000.
    let exponent = format!("{largest:.3e}").split('e').nth(1).and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    (3 - exponent).clamp(0, 12) as usize
}

/// A number with `decimals` decimals: `−1,234.50`; a dash for NaN.
#[must_use]
pub fn fixed(x: f64, decimals: usize) -> String {
    if x.is_nan() {
        return "–".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "∞" } else { "−∞" }.into();
    }
    let text = if x.abs() < LARGE { grouped(&format!("{:.decimals$}", x.abs())) } else { format!("{:.3e}", x.abs()) };
    // No minus sign before zero.
    let is_zero = !text.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    if x < 0.0 && !is_zero { format!("−{text}") } else { text }
}

/// A number with all its digits as programs read it, with an exponent if it is very large or very small.
#[must_use]
pub fn plain(x: f64) -> String {
    if x != 0.0 && !(1e-9..LARGE).contains(&x.abs()) { format!("{x:e}") } else { x.to_string() }
}

/// A number chosen by the user, such as a price, with all its digits: `30,000`, `0.05`.
#[must_use]
pub fn exact(x: f64) -> String {
    let text = plain(x.abs());
    let text = if text.contains('e') { text } else { grouped(&text) };
    if x < 0.0 { format!("−{text}") } else { text }
}

/// A single number with four significant digits.
#[must_use]
pub fn short(x: f64) -> String {
    fixed(x, decimals([x]))
}

/// A number, or a dash if it is unknown.
#[must_use]
pub fn maybe(x: Option<f64>, decimals: usize) -> String {
    fixed(x.unwrap_or(f64::NAN), decimals)
}

/// Whether an interval that labels leave open is worth showing beside a standard error: it is wider than a tenth of it. Without a finite
/// standard error, every interval is.
#[must_use]
pub fn is_wide_beside([low, high]: [f64; 2], standard_error: f64) -> bool {
    /// A narrower interval changes nothing that a reader would conclude.
    const MIN_PART: f64 = 0.1;
    high > low && (!standard_error.is_finite() || high - low > MIN_PART * standard_error)
}

/// A share as a percentage with one decimal: `12.3 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", fixed(100.0 * share, 1))
}

/// A share chosen by the user, such as a confidence, with all its digits: `95 %`, `99.9 %`.
#[must_use]
pub fn level(share: f64) -> String {
    // Rounded to remove the error of the multiplication.
    format!("{} %", plain((1e11 * share).round() / 1e9))
}

/// A count: `12,345`.
#[must_use]
pub fn count(n: usize) -> String {
    grouped(&n.to_string())
}

/// A count and what is counted: `1 row`, `12,345 rows`.
#[must_use]
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Digits with thousands separators before the decimal point.
fn grouped(digits: &str) -> String {
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut text = String::with_capacity(digits.len() + whole / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && place < whole && (whole - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        for (x, text) in [
            (0.123456, "0.1235"),
            (0.0123456, "0.01235"),
            (0.00012, "0.0001200"),
            (1.23456, "1.235"),
            (12.3456, "12.35"),
            (123.456, "123.5"),
            (123456.0, "123,456"),
            (-1234567.8, "−1,234,568"),
            (0.099_999_9, "0.1000"),
            (9.99999, "10.00"),
            (0.0, "0.0000"),
            (-0.5, "−0.5000"),
            (1e308, "1.000e308"),
            (f64::NAN, "–"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(short(x), text, "{x}");
        }
        assert_eq!(fixed(-0.00001, 4), "0.0000");
        assert_eq!([plain(0.05), plain(2.0), plain(1e308), plain(0.0)], ["0.05", "2", "1e308", "0"]);
        assert_eq!(
            [exact(0.05), exact(30_000.0), exact(-1_234.5), exact(1e308)],
            ["0.05", "30,000", "−1,234.5", "1e308"]
        );
        assert_eq!(decimals([0.5, 0.001, f64::NAN]), 4);
        assert_eq!([level(0.95), level(0.999), level(0.07)], ["95 %", "99.9 %", "7 %"]);
        assert_eq!([percent(0.1234), percent(-0.5), percent(20.0)], ["12.3 %", "−50.0 %", "2,000.0 %"]);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!([count(0), count(999), count(1000), count(1234567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(fixed(1234567.891, 2), "1,234,567.89");
        assert_eq!([counted(1, "row", "rows"), counted(2000, "row", "rows")], ["1 row", "2,000 rows"]);
    }
}
