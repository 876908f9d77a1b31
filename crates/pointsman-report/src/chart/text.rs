//! Text and numbers in figures.

/// Text for a figure: without control characters and mathematics, at most `most` characters.
#[must_use]
pub fn label(text: &str, most: usize) -> String {
    let clean = |c: char| {
        let unprintable = c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}');
        // The drawing library reads dollar signs as mathematics; the full-width sign is the closest substitute.
        match c {
            _ if unprintable => ' ',
            '$' => '\u{ff04}',
            c => c,
        }
    };
    let mut short: String = text.chars().take(most).map(clean).collect();
    if text.chars().nth(most).is_some() {
        short.pop();
        short.push('…');
    }
    short
}

/// Breaks text into lines of at most `most` characters; longer words are cut.
#[must_use]
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(8);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = label(word, most);
        let line = lines.last_mut().expect("there is a line");
        let needed = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(&word);
        } else if needed <= most {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// A number with `digits` significant digits, without trailing zeros.
#[must_use]
pub fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    // No digit before the decimal point is rounded away.
    let rounded: f64 = match x.abs() < 10_f64.powi(digits as i32) {
        true => format!("{:.*e}", digits.saturating_sub(1), x).parse().unwrap_or(x),
        false => x.round(),
    };
    // Turns −0 into 0.
    pointsman::number::exact(rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_printable_and_truncated() {
        assert_eq!(label("a\u{1}b\n$x$", 20), "a b ＄x＄");
        assert_eq!(label("abcdef", 4), "abc…");
        assert_eq!(label("äöü", 3), "äöü");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert!(wrap("", 9).is_empty());
        assert_eq!(wrap(&"x".repeat(30), 10), [format!("{}…", "x".repeat(9))]);
    }

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!((number(0.123_456, 3), number(40.0, 3), number(-0.0, 3)), ("0.123".into(), "40".into(), "0".into()));
        assert_eq!((number(-30_012.0, 4), number(f64::NAN, 3)), ("−30,012".into(), "–".into()));
    }
}
