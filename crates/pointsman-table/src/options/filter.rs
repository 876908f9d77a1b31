//! Conditions on rows.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::cell::Cell;
use crate::date::{Moment, iso};
use crate::error::{Error, Parsed, Result, shown};

/// A condition on rows: `COL=VALUE`, `COL!=VALUE`, or a range such as `COL>=VALUE`.
///
/// `=` keeps a row if the column's value equals the filter's as text, or if both are numbers and equal (`split=0` keeps `0`, `0.0` and
/// `00`); `!=` keeps all other rows. A missing value is empty text in every format:
/// `answer!=` keeps the rows that have one. `<`, `<=`, `>` and `>=` compare numbers with numbers, and dates and times with dates and times. A date
/// alone stands for its whole day, in UTC: `date<=2024-01-31` keeps `2024-01-31T18:00:00Z`. Rows without a value are in no range; any other
/// value that is not of the filter's kind is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    column: String,
    value: String,
    condition: Condition,
}

/// What a value must be to pass.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Condition {
    /// Equal as text, or to this number.
    Equal(Option<f64>),
    /// Not so.
    Different(Option<f64>),
    /// On this side of a bound.
    InRange(Range, Bound),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Range {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The end of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    Number(f64),
    Time(Moment),
}

/// An operator as it is typed.
#[derive(Debug, Clone, Copy)]
enum Operator {
    Equal,
    Different,
    Range(Range),
}

/// The operators; those of two characters come first, since others are their beginnings.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::Different),
    (">=", Operator::Range(Range::AtLeast)),
    ("<=", Operator::Range(Range::AtMost)),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    (">", Operator::Range(Range::Above)),
    ("<", Operator::Range(Range::Below)),
];

impl Filter {
    /// A filter that keeps the rows whose `column` is `value`.
    pub fn new(column: impl Into<String>, value: impl Into<String>) -> Self {
        let (column, value) = (column.into(), value.into());
        let condition = Condition::Equal(number(&value));
        Self { column, value, condition }
    }

    /// The column it looks at.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.column
    }

    /// Whether it asks only whether there is a value, which lists and maps can answer: `answers=`, `answers!=`.
    pub(crate) fn asks_for_any_value(&self) -> bool {
        self.value.is_empty() && !matches!(self.condition, Condition::InRange(..))
    }

    /// Whether it keeps just the rows that have a value: `answers!=`, and `answers!=NaN` where missing numbers are written so.
    pub(crate) fn keeps_any_value(&self) -> bool {
        (self.value.is_empty() || is_nan(&self.value)) && matches!(self.condition, Condition::Different(_))
    }

    /// The value that it compares with.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether a row with this value passes.
    pub(crate) fn keeps(&self, cell: &Cell<'_>) -> Parsed<bool> {
        Ok(match self.condition {
            Condition::Equal(number) => self.equals(cell, number),
            Condition::Different(number) => !self.equals(cell, number),
            Condition::InRange(range, bound) => {
                self.compare(cell, bound)?.is_some_and(|ordering| range.contains(ordering))
            }
        })
    }

    fn equals(&self, cell: &Cell<'_>, number: Option<f64>) -> bool {
        /// The largest whole number up to which a double is exact.
        const MAX_EXACT: u64 = 1 << 53;
        match cell {
            Cell::Null => self.value.is_empty(),
            Cell::Bool(b) => {
                self.value.eq_ignore_ascii_case(if *b { "true" } else { "false" })
                    || number == Some(f64::from(u8::from(*b)))
            }
            Cell::Int(i) if i.unsigned_abs() <= MAX_EXACT => number == Some(*i as f64),
            Cell::Int(i) => self.value == i.to_string(),
            Cell::Real(x) if x.is_nan() => self.value.is_empty() || is_nan(&self.value),
            Cell::Text(text) if is_nan(&self.value) => is_nan(text),
            Cell::Real(x) => number == Some(*x),
            Cell::Text(text) => *text == self.value || number.is_some_and(|n| text.trim().parse() == Ok(n)),
        }
    }

    /// Compares a value with a bound; `None` if it is missing.
    fn compare(&self, cell: &Cell<'_>, bound: Bound) -> Parsed<Option<Ordering>> {
        let found = match (cell, bound) {
            (Cell::Null, _) => return Ok(None),
            (Cell::Text(text), _) if text.trim().is_empty() => return Ok(None),
            (Cell::Int(i), Bound::Number(bound)) => Some((*i as f64).partial_cmp(&bound)),
            (Cell::Real(x), Bound::Number(bound)) => Some(x.partial_cmp(&bound)),
            (Cell::Text(text), Bound::Number(bound)) => text.trim().parse::<f64>().ok().map(|x| x.partial_cmp(&bound)),
            (Cell::Text(text), Bound::Time(bound)) => iso(text.trim()).map(|time| Some(bound.compared_with(time))),
            (Cell::Bool(_), _) | (Cell::Int(_) | Cell::Real(_), Bound::Time(_)) => None,
        };
        found.ok_or_else(|| {
            /// Longer values are not repeated.
            const MAX_REPEATED: usize = 40;
            let text = cell.text().unwrap_or_default();
            let remedy = match text.len() <= MAX_REPEATED && !text.contains('\'') {
                true => format!("; leave such rows out by an earlier --where '{}!={text}'", self.column),
                false => String::new(),
            };
            let kind = match bound {
                Bound::Number(_) => "a number",
                Bound::Time(_) => "a date as in 2024-03-01 or 2024-03-01T09:30:00Z",
            };
            format!("{} is not {kind}, so it cannot be compared by {self}{remedy}", shown(&text))
        })
    }
}

impl Range {
    /// Whether the range has values that compare so with its end.
    fn contains(self, ordering: Ordering) -> bool {
        match self {
            Self::Below => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::Above => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }
}

impl Bound {
    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Number);
        number.or_else(|| Moment::parse(text).map(Self::Time))
    }
}

fn is_nan(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("nan")
}

/// The number that a text is. NaN does not equal itself as a number, but does as text.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| !number.is_nan())
}

/// The column, the operator and the value of a condition as it is typed.
fn split(text: &str) -> Option<(&str, &'static str, Operator, &str)> {
    let at = |place: usize| OPERATORS.into_iter().find(|(typed, _)| text[place..].starts_with(typed));
    let (place, (typed, operator)) = text.char_indices().find_map(|(place, _)| Some((place, at(place)?)))?;
    Some((text[..place].trim(), typed, operator, text[place + typed.len()..].trim()))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.condition {
            Condition::Equal(_) => "=",
            Condition::Different(_) => "!=",
            Condition::InRange(Range::Below, _) => "<",
            Condition::InRange(Range::AtMost, _) => "<=",
            Condition::InRange(Range::Above, _) => ">",
            Condition::InRange(Range::AtLeast, _) => ">=",
        };
        write!(f, "{}{operator}{}", self.column, self.value)
    }
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((column, typed, operator, value)) = split(text).filter(|(column, ..)| !column.is_empty()) else {
            return Err(Error::Option(format!(
                "filter {text:?}: write COLUMN=VALUE, for example split=0, or a range such as date>=2024-01-31 or score<0.5"
            )));
        };
        let condition = match operator {
            Operator::Equal => Condition::Equal(number(value)),
            Operator::Different => Condition::Different(number(value)),
            Operator::Range(range) => match (Bound::parse(value), text.split_once('=')) {
                (Some(bound), _) => Condition::InRange(range, bound),
                // The name of a column may have such a sign: `age<30=yes`.
                (None, Some((column, value))) if !column.ends_with(['<', '>']) => {
                    return Ok(Self::new(column.trim(), value.trim()));
                }
                (None, _) => {
                    return Err(Error::Option(format!(
                        "filter {text:?}: {typed} compares with a number or a date, and {} is neither: write 0.5, 2024-01-31 or \
                         2024-01-31T09:30:00Z",
                        shown(value)
                    )));
                }
            },
        };
        Ok(Self { column: column.to_owned(), value: value.to_owned(), condition })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(filter: &str, value: &str) -> bool {
        filter.parse::<Filter>().unwrap().keeps(&Cell::Text(value.into())).unwrap()
    }

    #[test]
    fn ranges_compare_numbers_as_numbers_and_dates_as_dates() {
        for (filter, inside, outside) in [
            ("a<9", "8.5", "10"),
            ("a <= 9", "9.0", "9.1"),
            ("a>-1", "-0.5", "-1"),
            ("a>=1e3", "1000", "999"),
            ("a!=9", "10", "9.0"),
            ("a==9", "9", "10"),
            ("a>=2024-01-31", "2024-01-31T00:00:00+00:00", "2024-01-31T00:30:00+02:00"),
            // A date alone is the whole day.
            ("a<=2024-01-31", "2024-01-31T23:59:59Z", "2024-02-01"),
            ("a>2024-01-31", "2024-02-01", "2024-01-31T23:59:59Z"),
            ("a<2024-01-31T12:00:00Z", "2024-01-31", "2024-01-31T12:00:00Z"),
        ] {
            assert!(keeps(filter, inside) && !keeps(filter, outside), "{filter}");
            let parsed: Filter = filter.parse().unwrap();
            assert_eq!(parsed.to_string().parse::<Filter>().unwrap(), parsed);
        }
        assert!(!keeps("a>=0", "") && !keeps("a<0", "") && !keeps("a<=0", "nan"), "missing values are in no range");
        assert!(keeps("a!=0", ""), "and they are not zero");
        for missing in [Cell::Null, Cell::Real(f64::NAN), Cell::Text("".into())] {
            let filter = |text: &str| text.parse::<Filter>().unwrap().keeps(&missing).unwrap();
            assert!(filter("a=") && !filter("a!=") && filter("a!=0"), "{missing:?} is empty");
        }
        // The first operator ends the name of the column.
        assert!(keeps("a=b>c", "b>c"));
        assert_eq!("age<30=yes".parse::<Filter>().unwrap(), Filter::new("age<30", "yes"));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for (filter, value) in [("a<9", "many"), ("a>=2024-01-31", "5"), ("a>=2024-01-31", "31.1.2024")] {
            let error = filter.parse::<Filter>().unwrap().keeps(&Cell::Text(value.into())).unwrap_err();
            assert!(
                error.contains(&format!("{value:?} is not a ")) && error.contains(&format!("a!={value}")),
                "{error}"
            );
        }
        assert!("a<9".parse::<Filter>().unwrap().keeps(&Cell::Bool(true)).is_err());
        for text in ["a<b", "a>=", "=3", "<3", "a", "a!b"] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }
}
