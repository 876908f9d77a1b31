//! Dates and times as exports write them, to sort labels and to filter rows by.

use std::cmp::Ordering;

use crate::cell::Cell;
use crate::error::{Parsed, shown};

/// What to write instead of a value that is not a date.
const WRITE: &str = "write dates as 2024-03-01 or 2024-03-01T09:30:00Z, or seconds as a number";

/// What to do if dates cannot be written like that.
const INSTEAD: &str = "or sort the file by time and leave date= out";

/// Microseconds per day.
const DAY: i128 = 86_400 * 1_000_000;

/// A date alone, which stands for the whole day, or a date with a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    /// Days since 1970.
    Day(i128),
    /// Microseconds since 1970.
    Instant(i128),
}

impl Moment {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        /// The length of `2024-03-01`.
        const DATE_LENGTH: usize = 10;
        let micros = iso(text)?;
        Some(if text.len() == DATE_LENGTH { Self::Day(micros.div_euclid(DAY)) } else { Self::Instant(micros) })
    }

    /// How a time, in microseconds since 1970, compares with this moment.
    pub(crate) fn compared_with(self, time: i128) -> Ordering {
        match self {
            Self::Day(day) => time.div_euclid(DAY).cmp(&day),
            Self::Instant(instant) => time.cmp(&instant),
        }
    }
}

/// A moment to sort by: microseconds since 1970 for ISO dates and times, and a number times a million.
pub(crate) fn moment(cell: &Cell<'_>) -> Parsed<i128> {
    /// Numbers are compared to the millionth.
    const MICRO: f64 = 1e6;
    match cell {
        Cell::Int(number) => Ok(i128::from(*number) * 1_000_000),
        Cell::Real(number) if number.is_finite() => Ok((number * MICRO) as i128),
        Cell::Text(text) if text.trim().is_empty() => Err(format!("no date: {WRITE}, in every row; {INSTEAD}")),
        Cell::Text(text) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((number * MICRO) as i128),
            _ => iso(text.trim()).ok_or_else(|| format!("{} is not a date: {WRITE}; {INSTEAD}", shown(text))),
        },
        Cell::Null => Err(format!("no date: {WRITE}, in every row; {INSTEAD}")),
        other => Err(format!("{} is not a date: {WRITE}; {INSTEAD}", shown(&other.text().unwrap_or_default()))),
    }
}

/// Whether a value is a date or a time, in a form that is read or in another, such as `24.09.2026`. A plain number may be anything else.
pub(crate) fn is_time(cell: &Cell<'_>) -> bool {
    matches!(cell, Cell::Text(text) if iso(text.trim()).is_some() || resembles_date(text.trim()))
}

/// Whether a text begins with a day, a month and a year in any order with the year at one end, as in `24.09.2026`, `9/24/2026 10:15` or
/// `2026/9/24`.
fn resembles_date(text: &str) -> bool {
    let date = text.split([' ', 'T', ',']).next().unwrap_or_default();
    ['.', '/', '-'].into_iter().any(|separator| {
        let parts: Vec<&str> = date.split(separator).collect();
        let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        parts.iter().all(is_number) && matches!(lengths.as_slice(), [1 | 2, 1 | 2, 4] | [4, 1 | 2, 1 | 2])
    })
}

/// `2024-03-01`, with a time behind a T or a space, fractions of a second, and Z or an offset such as +02:00. Without an offset a time
/// counts as UTC. Microseconds since 1970.
pub(crate) fn iso(text: &str) -> Option<i128> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let [year, month, day] = [digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?];
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let midnight = days_since_1970(year, month, day) * DAY;
    Some(match time {
        Some(time) => midnight + time_of_day(time)?,
        None => midnight,
    })
}

/// Microseconds since midnight, UTC.
fn time_of_day(text: &str) -> Option<i128> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text).trim_end();
    let (clock, offset) = match text.rfind(['+', '-']) {
        Some(place) => (text[..place].trim_end(), signed_offset(&text[place..])?),
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, fraction) = match parts.next() {
        Some(seconds) => match seconds.split_once(['.', ',']) {
            Some((second, fraction)) => (digits(second, 2)?, micros(fraction)?),
            None => (digits(seconds, 2)?, 0),
        },
        None => (0, 0),
    };
    // A leap second is the 61st of its minute.
    if parts.next().is_some() || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    Some((hour * 3600 + minute * 60 + second - offset) * 1_000_000 + fraction)
}

/// Seconds that `+02:00`, `+0200` or `-05` are ahead of UTC.
fn signed_offset(text: &str) -> Option<i128> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let plain = rest.replace(':', "");
    let (hours, minutes) = plain.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2)? };
    Some(sign * (digits(hours, 2)? * 3600 + minutes * 60))
}

/// Fractions of a second, in microseconds.
fn micros(text: &str) -> Option<i128> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.bytes().chain(std::iter::repeat(b'0')).take(6).fold(0, |n, b| n * 10 + i128::from(b - b'0')))
}

/// A number of exactly `width` digits.
fn digits(text: &str, width: usize) -> Option<i128> {
    let is_number = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn days_in(year: i128, month: i128) -> i128 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, by counting years from March so that a leap day comes last.
fn days_since_1970(year: i128, month: i128, day: i128) -> i128 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_as_iso_8601_writes_them() {
        let seconds = |text: &str| iso(text).map(|micros| micros as f64 / 1e6);
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("2000-02-29", 951_782_400.0),
            ("2024-03-01T09:30:00Z", 1_709_285_400.0),
            ("2024-03-01 09:30", 1_709_285_400.0),
            ("2024-03-01T11:30:00+02:00", 1_709_285_400.0),
            ("2024-03-01T04:30:00.25-0500", 1_709_285_400.25),
            ("1969-12-31T23:59:59", -1.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for bad in ["", "01.03.2024", "2024-3-1", "2024-02-30", "2024-13-01", "2024-03-01T9", "2024-03-01Txx:00", "é"]
        {
            assert_eq!(iso(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_in_other_forms_are_noticed_and_refused() {
        for text in ["24.09.2026", "24/09/2026", "9/24/2026 10:15", "2026/09/24", "24-09-2026T08:00"] {
            let cell = Cell::Text(text.into());
            assert!(is_time(&cell), "{text}");
            let error = moment(&cell).unwrap_err();
            assert!(error.contains(&format!("{text:?} is not a date: write dates as 2024-03-01")), "{error}");
            assert!(error.contains("sort the file by time and leave date= out"), "{error}");
        }
        for text in ["soon", "1.2.3", "10.0.0.1", "555/1234", "12:30", "1/2"] {
            assert!(!is_time(&Cell::Text(text.into())), "{text}");
        }
    }

    #[test]
    fn numbers_stand_for_themselves_and_others_are_refused() {
        assert!(moment(&Cell::Int(5)).unwrap() < moment(&Cell::Real(5.5)).unwrap());
        assert_eq!(moment(&Cell::Text("5.5".into())), moment(&Cell::Real(5.5)));
        assert!(
            moment(&Cell::Text("yesterday".into()))
                .unwrap_err()
                .contains("\"yesterday\" is not a date: write dates as")
        );
        assert!(moment(&Cell::Null).is_err() && moment(&Cell::Real(f64::NAN)).is_err());
    }
}
