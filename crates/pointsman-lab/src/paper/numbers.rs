//! Looks numbers up in result files.

use std::collections::BTreeMap;

use pointsman::evaluate::ranking_name;
use serde_json::Value;

use crate::worlds::World;

/// Results by experiment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a>(&'a BTreeMap<String, Value>);

/// The mean of differences paired by seed or by split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    /// The mean over seeds or splits.
    pub(crate) mean: f64,
    /// The standard error of the mean; `None` for a single seed or split.
    pub(crate) error: Option<f64>,
}

impl Difference {
    /// Computes mean and standard error from one difference per seed of a world or per split of a data set.
    ///
    /// Seeds are independent: the standard error is s/√n. Random halves of one data set overlap: the variance of their
    /// mean is estimated by (1/n + test rows / calibration rows) s² (Nadeau and Bengio 2003), which for halves is (1/n
    /// + 1) s².
    fn new(problem: &str, values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let overlap = if is_world(problem) { 0.0 } else { 1.0 };
        let error = (values.len() > 1).then(|| ((1.0 / n + overlap) * variance).sqrt());
        Self { mean, error }
    }

    /// Whether the mean exceeds zero by more than its standard error.
    pub(crate) fn is_positive(self) -> bool {
        self.mean > self.error.unwrap_or(0.0)
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.error {
            None => f.write_str(&three_decimals(self.mean)),
            Some(error) => write!(f, "{} ± {}", three_decimals(self.mean), three_decimals(error)),
        }
    }
}

/// Whether a problem is a synthetic world.
pub(crate) fn is_world(problem: &str) -> bool {
    World::ALL.iter().any(|world| world.name() == problem)
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(results: &'a BTreeMap<String, Value>) -> Self {
        Self(results)
    }

    /// The value at a path below an experiment's problems.
    pub(crate) fn value(self, experiment: &str, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0.get(experiment)?.get("problems")?, |value, key| value.get(key))
    }

    /// The mean at a path.
    pub(crate) fn get(self, experiment: &str, path: &[&str]) -> Option<f64> {
        self.value(experiment, path)?.get("mean")?.as_f64()
    }

    /// The standard deviation over seeds at a path; 0 for one seed.
    pub(crate) fn sd(self, experiment: &str, path: &[&str]) -> f64 {
        self.value(experiment, path).and_then(|value| value.get("sd")?.as_f64()).unwrap_or(0.0)
    }

    /// The means of the list at a path.
    pub(crate) fn list(self, experiment: &str, path: &[&str]) -> Option<Vec<f64>> {
        self.value(experiment, path)?.get("mean")?.as_array()?.iter().map(Value::as_f64).collect()
    }

    /// A weighted sum of numbers of one problem, paired by seed or split; `None` if a number is missing for some seed.
    pub(crate) fn contrast(self, experiment: &str, problem: &str, terms: &[(f64, Vec<&str>)]) -> Option<Difference> {
        let mut sums: Vec<f64> = Vec::new();
        for (factor, path) in terms {
            let path: Vec<&str> = std::iter::once(problem).chain(path.iter().copied()).collect();
            let found = self.value(experiment, &path)?;
            // Results of a single seed may have only a mean.
            let values: Vec<f64> = match found.get("values").and_then(Value::as_array) {
                Some(values) => values.iter().map(Value::as_f64).collect::<Option<_>>()?,
                None => vec![found.get("mean")?.as_f64()?],
            };
            if sums.is_empty() {
                sums = vec![0.0; values.len()];
            }
            if sums.len() != values.len() {
                return None;
            }
            sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum += factor * value);
        }
        (!sums.is_empty()).then(|| Difference::new(problem, &sums))
    }

    /// The first number minus the second, paired by seed or split.
    pub(crate) fn difference(
        self,
        experiment: &str,
        problem: &str,
        first: &[&str],
        second: &[&str],
    ) -> Option<Difference> {
        self.contrast(experiment, problem, &[(1.0, first.to_vec()), (-1.0, second.to_vec())])
    }

    /// Mean and standard deviation as text.
    pub(crate) fn show(self, experiment: &str, path: &[&str]) -> String {
        match (self.get(experiment, path), self.sd(experiment, path)) {
            (None, _) => "–".into(),
            (Some(mean), 0.0) => three_decimals(mean),
            (Some(mean), sd) => format!("{} ± {}", three_decimals(mean), three_decimals(sd)),
        }
    }

    /// The keys of the objects at a path, in the order of the file.
    pub(crate) fn keys(self, experiment: &str, path: &[&str]) -> Vec<String> {
        let map = self.value(experiment, path).and_then(Value::as_object);
        map.into_iter().flatten().filter(|(_, value)| value.is_object()).map(|(key, _)| key.clone()).collect()
    }
}

/// A number with three decimals, a minus sign (−) and no negative zero.
pub(crate) fn three_decimals(x: f64) -> String {
    let text = format!("{x:.3}");
    match text.strip_prefix('-') {
        Some("0.000") => "0.000".into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// A difference as text, or a dash.
pub(crate) fn format_difference(difference: Option<Difference>) -> String {
    difference.map_or_else(|| "–".into(), |difference| difference.to_string())
}

/// The name of a method on the pages and in the figures. Total uncertainty is the paper's own term.
pub(crate) fn method_name(key: &str) -> String {
    match key {
        "total-uncertainty" => "total uncertainty".to_owned(),
        "cells" => "the paper's cells".to_owned(),
        "forest-plugin" => "forest, plug-in estimate".to_owned(),
        "supervised-static" => "supervised, trained once".to_owned(),
        "supervised-retrained" => "supervised, trained per loss".to_owned(),
        other => ranking_name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn standard_errors_account_for_overlapping_halves() {
        let gains = json!({"gain": {
            "a": {"mean": 2.0, "sd": 1.0, "values": [1.0, 2.0, 3.0]},
            "b": {"mean": 1.0, "sd": 1.0, "values": [0.0, 1.5, 1.5]},
            "short": {"mean": 1.0, "sd": 1.0, "values": [0.0, 2.0]},
            "unknown": {"mean": 1.0, "sd": 1.0, "values": [0.0, null, 2.0]},
        }});
        let file = json!({"problems": {"johnson": gains, "snli": gains}});
        let results = BTreeMap::from([("routing".to_owned(), file)]);
        let n = Numbers::new(&results);
        let of = |problem: &str, other: &str| n.difference("routing", problem, &["gain", "a"], &["gain", other]);
        // 1, 0.5, 1.5: mean 1, variance 0.25.
        let (world, data) = (of("johnson", "b").unwrap(), of("snli", "b").unwrap());
        assert!((world.mean - 1.0).abs() < 1e-12 && (data.mean - 1.0).abs() < 1e-12);
        assert!((world.error.unwrap() - (0.25_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((data.error.unwrap() - (0.25_f64 * (1.0 / 3.0 + 1.0)).sqrt()).abs() < 1e-12);
        assert!(of("johnson", "short").is_none() && of("johnson", "unknown").is_none() && of("none", "b").is_none());
        assert_eq!(format_difference(of("johnson", "b")), "1.000 ± 0.289");
    }
}
