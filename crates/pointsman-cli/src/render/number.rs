//! Numbers for humans: four significant digits, thousands apart.

/// From here on numbers are written with an exponent.
const LARGE: f64 = 1e15;

/// Digits after the point that show the largest of these with four significant digits.
///
/// A column shares them, so that its points are below each other.
pub(crate) fn decimals(values: impl IntoIterator<Item = f64>) -> usize {
    let largest = values.into_iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    if largest == 0.0 {
        return 4;
    }
    // The exponent after rounding: 0.099996 is shown as 0.1000.
    let exponent = format!("{largest:.3e}").split('e').nth(1).and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    (3 - exponent).clamp(0, 12) as usize
}

/// A number with so many digits after the point; a dash if it is not known.
pub(crate) fn fixed(x: f64, decimals: usize) -> String {
    if x.is_nan() {
        return "–".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "∞" } else { "−∞" }.into();
    }
    let text = if x.abs() < LARGE { format!("{x:.decimals$}") } else { format!("{x:.3e}") };
    // No minus before a zero.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().any(|c| c.is_ascii_digit() && c != '0') => format!("−{rest}"),
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// A number as one would type it: with all its digits, but never hundreds of zeros.
pub(crate) fn plain(x: f64) -> String {
    if x != 0.0 && !(1e-9..LARGE).contains(&x.abs()) { format!("{x:e}") } else { x.to_string() }
}

/// One number by itself, with four significant digits.
pub(crate) fn short(x: f64) -> String {
    fixed(x, decimals([x]))
}

/// A number that may not be known.
pub(crate) fn maybe(x: Option<f64>, decimals: usize) -> String {
    fixed(x.unwrap_or(f64::NAN), decimals)
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", fixed(100.0 * share, 1))
}

/// A count with its thousands apart: 12,345.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and what is counted.
pub(crate) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        for (x, text) in [
            (0.123456, "0.1235"),
            (0.0123456, "0.01235"),
            (0.00012, "0.0001200"),
            (1.23456, "1.235"),
            (12.3456, "12.35"),
            (123.456, "123.5"),
            (123456.0, "123456"),
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
        assert_eq!(decimals([0.5, 0.001, f64::NAN]), 4);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([count(0), count(999), count(1000), count(1234567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
