//! Numbers of files as the numbers of tables.

use crate::error::{Parsed, shown};

/// A count of votes from a number that may be stored as a float.
pub(crate) fn count_from_real(value: f64) -> Parsed<u32> {
    if value.is_nan() || value.is_infinite() {
        Err(format!("{value} is not a number of votes: give a whole number from 0"))
    } else if value < 0.0 {
        Err(format!("{value} votes: a count cannot be negative"))
    } else if value.fract() != 0.0 {
        Err(format!("{value} votes: give whole counts, not shares"))
    } else if value > f64::from(u32::MAX) {
        Err(format!("{value} votes: at most {} can be counted", u32::MAX))
    } else {
        Ok(value as u32)
    }
}

/// A count of votes from an integer.
pub(crate) fn count_from_integer(value: i128) -> Parsed<u32> {
    u32::try_from(value).map_err(|_| {
        if value < 0 {
            format!("{value} votes: a count cannot be negative")
        } else {
            format!("{value} votes: at most {} can be counted", u32::MAX)
        }
    })
}

/// The message about a missing number in a format with nulls.
pub(crate) const NULL_NUMBER: &str = "null: a number is needed";

/// A number from text.
pub(crate) fn real_from_text(bytes: &[u8]) -> Parsed<f64> {
    let text = text(bytes)?.trim();
    text.parse().map_err(|_| {
        if text.is_empty() {
            "no value: a number is needed".to_owned()
        } else if text.contains(',') && text.replacen(',', ".", 1).parse::<f64>().is_ok() {
            format!("{} is not a number: use a decimal point", shown(text))
        } else {
            format!("{} is not a number", shown(text))
        }
    })
}

/// The message about a row that another model gave no answer to.
pub(crate) const NO_ANSWER: &str = "no answer: a route is measured on rows that have answers; if a column tells them from \
                                    the others, keep those with --where COLUMN=VALUE, or drop the columns of the oracle";

/// A feature from text: NaN if the text is empty.
pub(crate) fn feature_from_text(bytes: &[u8]) -> Parsed<f64> {
    if bytes.trim_ascii().is_empty() {
        return Ok(f64::NAN);
    }
    real_from_text(bytes).map_err(|reason| {
        let is_word = !bytes.iter().any(u8::is_ascii_digit);
        if is_word { not_a_feature(&reason, &String::from_utf8_lossy(bytes), "leave it empty") } else { reason }
    })
}

/// Words for a missing value.
const MISSING: [&str; 11] = ["na", "n/a", "#n/a", "null", "nil", "none", "missing", "unknown", "undefined", "-", "?"];

/// Whether a word stands for a missing value.
pub(crate) fn is_missing(word: &str) -> bool {
    MISSING.contains(&word.trim().to_lowercase().as_str())
}

/// The message on a word in place of a feature: it is a category or, if it says so, a missing value, for which `remedy` says what to write.
pub(crate) fn not_a_feature(reason: &str, word: &str, remedy: &str) -> String {
    match is_missing(word) {
        true => format!("{reason}: if the value is missing, {remedy}"),
        false => format!(
            "{reason}: features are numbers; give a category as one column per value, 1 on rows that have the value and 0 on others; if the \
             value is missing, {remedy}"
        ),
    }
}

/// A count of votes from text.
pub(crate) fn count_from_text(bytes: &[u8]) -> Parsed<u32> {
    // Nearly all counts are short plain integers.
    if (1..=9).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit) {
        return Ok(bytes.iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0')));
    }
    if bytes.trim_ascii().is_empty() {
        return Err("no value: write 0 where nobody gave this label".to_owned());
    }
    count_from_real(real_from_text(bytes)?)
}

/// Text from bytes.
pub(crate) fn text(bytes: &[u8]) -> Parsed<&str> {
    std::str::from_utf8(bytes)
        .map_err(|_| format!("{} is not UTF-8: save the file as UTF-8", shown(&String::from_utf8_lossy(bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers_of_32_bits() {
        assert_eq!(count_from_real(3.0), Ok(3));
        assert_eq!(count_from_real(f64::from(u32::MAX)), Ok(u32::MAX));
        for bad in [-1.0, 2.5, 4_294_967_296.0, f64::NAN, f64::INFINITY] {
            assert!(count_from_real(bad).unwrap_err().contains(&bad.to_string()));
        }
        assert_eq!(count_from_text(b"12"), Ok(12));
        assert_eq!(count_from_text(b" 12.0 "), Ok(12));
        assert_eq!(count_from_text(b"4294967295"), Ok(u32::MAX));
        assert!(count_from_text(b"4294967296").is_err());
        assert!(count_from_text(b"").is_err());
    }

    #[test]
    fn a_decimal_comma_is_recognised() {
        assert_eq!(real_from_text(b"0,3"), Err("\"0,3\" is not a number: use a decimal point".to_owned()));
        assert_eq!(real_from_text(b" 1e-3"), Ok(1e-3));
        assert!(real_from_text(b"\xff").unwrap_err().contains("UTF-8"));
    }
}
