//! Aggregates results over seeds: numbers become means and standard deviations.

use serde_json::{Map, Value, json};

/// Objects whose numbers are compared with each other. Their values per seed are kept, so that differences can be
/// paired by seed or split.
const COMPARED_KEYS: [&str; 3] = ["gain", "mean_over_shares", "costs"];

/// Aggregates values of the same structure.
///
/// A number becomes `{"mean", "sd"}`, a list of numbers the same with lists. Nulls are ignored; the standard deviation
/// of one value is null. Texts, and lists of unequal lengths, are taken from the first value. Numbers under
/// [`COMPARED_KEYS`] keys also have `"values"`, one per seed or split, null where unknown.
pub(crate) fn aggregate(values: &[&Value]) -> Value {
    aggregate_in(values, false)
}

fn aggregate_in(values: &[&Value], compared: bool) -> Value {
    let Some(first) = values.first() else { return Value::Null };
    match first {
        Value::Object(map) => {
            let at = |key: &str| values.iter().filter_map(|value| value.get(key)).collect::<Vec<_>>();
            let one = |key: &String| aggregate_in(&at(key), compared || COMPARED_KEYS.contains(&key.as_str()));
            Value::Object(map.keys().map(|key| (key.clone(), one(key))).collect())
        }
        Value::Array(items) => {
            let lists: Vec<&Vec<Value>> =
                values.iter().filter_map(|value| value.as_array()).filter(|list| list.len() == items.len()).collect();
            let lists = if lists.len() == values.len() { lists } else { vec![items] };
            let each =
                (0..items.len()).map(|i| aggregate_in(&lists.iter().map(|list| &list[i]).collect::<Vec<_>>(), false));
            let each: Vec<Value> = each.collect();
            if each.is_empty() || !items.iter().all(|item| item.is_number() || item.is_null()) {
                return Value::Array(each);
            }
            let pick = |key: &str| each.iter().map(|item| item.get(key).cloned().unwrap_or(Value::Null)).collect();
            let list = |key: &str| Value::Array(pick(key));
            json!({ "mean": list("mean"), "sd": list("sd") })
        }
        Value::Number(_) | Value::Null => {
            let numbers: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
            if numbers.is_empty() {
                return Value::Null;
            }
            let n = numbers.len() as f64;
            let mean = numbers.iter().sum::<f64>() / n;
            let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
            let sd = (numbers.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
            if compared {
                json!({ "mean": mean, "sd": sd, "values": values })
            } else {
                json!({ "mean": mean, "sd": sd })
            }
        }
        other => (*other).clone(),
    }
}

/// Rounds every number to `digits` significant digits and keeps every `every`-th point of routing curves, to keep
/// results in a repository small.
pub(crate) fn shorten(value: &Value, digits: usize, every: usize) -> Value {
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), shorten(value, digits, every));
            Value::Object(map.iter().map(entry).collect::<Map<_, _>>())
        }
        // Routing curves have 101 points.
        Value::Array(items) if items.len() == 101 => {
            Value::Array(items.iter().step_by(every).map(|item| shorten(item, digits, every)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| shorten(item, digits, every)).collect()),
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or(0.0);
            json!(format!("{exact:.*e}", digits.saturating_sub(1)).parse::<f64>().unwrap_or(exact))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_means_and_deviations() {
        let (a, b) =
            (json!({"x": 1.0, "c": [1, 2], "s": "t", "u": null}), json!({"x": 3.0, "c": [3, 2], "s": "t", "u": 5}));
        let found = aggregate(&[&a, &b]);
        assert_eq!(found["x"], json!({"mean": 2.0, "sd": 2.0_f64.sqrt()}));
        assert_eq!(found["c"], json!({"mean": [2.0, 2.0], "sd": [2.0_f64.sqrt(), 0.0]}));
        assert_eq!((found["s"].as_str(), found["u"]["mean"].as_f64()), (Some("t"), Some(5.0)));
        assert_eq!(aggregate(&[&a])["x"], json!({"mean": 1.0, "sd": null}));
        let (a, b) = (json!({"gain": {"p": 1.0, "q": 4.0}}), json!({"gain": {"p": 2.0, "q": null}}));
        let found = aggregate(&[&a, &b]);
        assert_eq!(found["gain"]["p"]["values"], json!([1.0, 2.0]));
        assert_eq!(found["gain"]["q"]["values"], json!([4.0, null]));
        assert_eq!(aggregate(&[&json!([{"y": 1.0}]), &json!([{"y": 2.0}])])[0]["y"]["mean"], json!(1.5));
    }

    #[test]
    fn short_numbers_are_close() {
        let list: Vec<f64> = (0..101).map(f64::from).collect();
        let short = shorten(&json!({"a": 0.123456, "n": 7, "curve": list}), 4, 5);
        assert_eq!(
            (short["a"].as_f64(), short["n"].as_u64(), short["curve"].as_array().unwrap().len()),
            (Some(0.1235), Some(7), 21)
        );
    }
}
