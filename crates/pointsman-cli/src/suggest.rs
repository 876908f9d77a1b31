//! Values that shells suggest, though others are allowed.

use std::error::Error;
use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

pub(crate) const LOSSES: &[&str] =
    &["brier", "cross-entropy", "spherical", "zero-one", "fn-fp:fp=1,fn=3", "three-part", "asymmetric:2"];
pub(crate) const PARTITIONS: &[&str] = &[
    "auto",
    "pooled",
    "tree",
    "honest-forest:200",
    "forest:200",
    "top-class:10",
    "confidence:30",
    "level-sets",
    "features:x_NAME=10",
];
pub(crate) const ESTIMATORS: &[&str] = &["auto", "shrink", "plugin", "npmle", "dirichlet"];
pub(crate) const TIES: &[&str] = &["frugal", "paper"];
pub(crate) const FORMATS: &[&str] = &["csv", "tsv", "jsonl", "parquet", "arrow", "npz"];
pub(crate) const DELIMITERS: &[&str] = &["comma", "semicolon", "tab", "pipe"];
pub(crate) const KEPT_LABELS: &[&str] = &["latest", "first"];
/// An oracle of each kind, with a price to be changed.
pub(crate) const ROUTES: &[&str] = &[
    "expert=0.05",
    "expert=0.05,bayes",
    "expert=0.05,measured",
    "experts=0.05,panel:m=3,aggregate=mean",
    "experts=0.05,panel:m=3,aggregate=plurality",
    "experts=0.05,panel:m=3,aggregate=laplace",
];

/// A parser of a type that also suggests values to shells. A misspelt name gets the value that was perhaps meant.
pub(crate) fn suggest<T>(values: &'static [&'static str]) -> Suggested<T>
where
    T: FromStr,
{
    Suggested { values, are_names: true, parse: |text| text.parse() }
}

/// As [`suggest`], of values that begin with a name of the user's own choice, so that no name is misspelt.
pub(crate) fn suggest_examples<T>(values: &'static [&'static str]) -> Suggested<T>
where
    T: FromStr,
{
    Suggested { are_names: false, ..suggest(values) }
}

/// See [`suggest`].
#[derive(Debug)]
pub(crate) struct Suggested<T: FromStr> {
    values: &'static [&'static str],
    /// Whether values begin with one of a few names.
    are_names: bool,
    parse: fn(&str) -> Result<T, T::Err>,
}

impl<T: FromStr> Clone for Suggested<T> {
    fn clone(&self) -> Self {
        Self { values: self.values, are_names: self.are_names, parse: self.parse }
    }
}

impl<T> TypedValueParser for Suggested<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let (values, own) = (if self.are_names { self.values } else { &[] }, self.parse);
        let parse = move |text: &str| {
            own(text).map_err(|error| {
                let error: Box<dyn Error + Send + Sync> = error.into();
                // Only the part before parameters is compared.
                let head = |text: &'static str| text.split([':', '=']).next().unwrap_or(text);
                let given = text.split([':', '=']).next().unwrap_or(text);
                let meant = pointsman_table::did_you_mean(given, values.iter().map(|value| head(value)));
                format!("{error}{meant}")
            })
        };
        TypedValueParser::parse_ref(&parse, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use pointsman::task::Ties;
    use pointsman::{Estimator, Loss, Partition};
    use pointsman_table::{Delimiter, Format};

    use super::*;
    use crate::args::RouteArg;

    #[test]
    fn suggested_values_are_accepted() {
        fn all<T: FromStr>(values: &[&str]) {
            for value in values {
                assert!(value.parse::<T>().is_ok(), "{value}");
            }
        }
        all::<Loss>(LOSSES);
        all::<Partition>(PARTITIONS);
        all::<Estimator>(ESTIMATORS);
        all::<Ties>(TIES);
        all::<Format>(FORMATS);
        all::<Delimiter>(DELIMITERS);
        all::<RouteArg>(ROUTES);
    }
}
