//! Finding numbers in result files.

use std::collections::BTreeMap;

use serde_json::Value;

/// Results by experiment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a>(&'a BTreeMap<String, Value>);

impl<'a> Numbers<'a> {
    pub(crate) fn new(results: &'a BTreeMap<String, Value>) -> Self {
        Self(results)
    }

    /// What stands at a path below an experiment's problems.
    pub(crate) fn value(self, experiment: &str, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0.get(experiment)?.get("problems")?, |value, key| value.get(key))
    }

    /// The mean there.
    pub(crate) fn get(self, experiment: &str, path: &[&str]) -> Option<f64> {
        self.value(experiment, path)?.get("mean")?.as_f64()
    }

    /// Its standard deviation over seeds, 0 if there was one.
    pub(crate) fn sd(self, experiment: &str, path: &[&str]) -> f64 {
        self.value(experiment, path).and_then(|value| value.get("sd")?.as_f64()).unwrap_or(0.0)
    }

    /// The means of a list.
    pub(crate) fn list(self, experiment: &str, path: &[&str]) -> Option<Vec<f64>> {
        self.value(experiment, path)?.get("mean")?.as_array()?.iter().map(Value::as_f64).collect()
    }

    /// Mean and standard deviation as text.
    pub(crate) fn show(self, experiment: &str, path: &[&str]) -> String {
        match (self.get(experiment, path), self.sd(experiment, path)) {
            (None, _) => "–".into(),
            (Some(mean), 0.0) => fixed(mean),
            (Some(mean), sd) => format!("{} ± {}", fixed(mean), fixed(sd)),
        }
    }

    /// The keys at a path that lead further, in the file's order.
    pub(crate) fn keys(self, experiment: &str, path: &[&str]) -> Vec<String> {
        let map = self.value(experiment, path).and_then(Value::as_object);
        map.into_iter().flatten().filter(|(_, value)| value.is_object()).map(|(key, _)| key.clone()).collect()
    }
}

/// Three decimals, with a real minus sign and no negative zero.
pub(super) fn fixed(x: f64) -> String {
    let text = format!("{x:.3}");
    match text.strip_prefix('-') {
        Some("0.000") => "0.000".into(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}
