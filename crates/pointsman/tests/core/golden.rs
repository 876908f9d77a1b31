//! Cells, losses and decisions of an independent implementation, to 1e-9.

use pointsman::partition::Axis;
use pointsman::{Estimator, Loss, Oracle, Partition, Policy, Router, Table, Task};
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

fn reals(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().flat_map(reals).collect()
}

fn loss_of(spec: &Value) -> Loss {
    match spec {
        Value::String(text) => text.parse().unwrap(),
        _ => {
            let acts = spec["acts"].as_array().unwrap().iter().map(|act| act.as_str().unwrap());
            Loss::matrix(acts, spec["cost"].as_array().unwrap().iter().map(reals).collect()).unwrap()
        }
    }
}

fn policy(router: &Router, loss: &Loss, estimator: Estimator) -> Policy {
    router.policy(&Task::new(loss.clone()).estimator(estimator)).unwrap()
}

fn code(action: &str) -> usize {
    ["predict", "route", "abstain"].iter().position(|name| action.starts_with(name)).unwrap()
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= TOLERANCE, "{what}: found {found}, expected {expected}");
}

fn check(text: &str) {
    let case: Value = serde_json::from_str(text).unwrap();
    let name = case["name"].as_str().unwrap();
    let classes: Vec<&str> = case["classes"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let votes = matrix(&case["calibration"]["votes"]).into_iter().map(|n| n as u32).collect();
    let table = Table::new(classes.clone(), matrix(&case["calibration"]["probs"])).unwrap().with_votes(votes).unwrap();
    let queries = Table::new(classes, matrix(&case["queries"]["probs"])).unwrap();

    let mut router = Router::calibrate(&table, &Partition::top_class(case["bins"].as_u64().unwrap() as usize)).unwrap();
    if case["recalibrate"].as_bool().unwrap() {
        router = router.recalibrated();
    }
    let expected = &case["expected"];
    let [Axis::TopClass { edges, .. }] = router.cells().axes() else { panic!("{name}: one axis") };
    for (class, wanted) in expected["edges"].as_array().unwrap().iter().enumerate() {
        let wanted = reals(wanted);
        assert_eq!(edges[class].values().len(), wanted.len(), "{name}: edges of class {class}");
        for (found, wanted) in edges[class].values().iter().zip(wanted) {
            close(*found, wanted, &format!("{name}: edge of class {class}"));
        }
    }
    for (table, key) in [(&table, "calibration_cells"), (&queries, "query_cells")] {
        let found: Vec<f64> = router.find_cells(table).unwrap().iter().map(|cell| f64::from(cell.0)).collect();
        assert_eq!(found, reals(&expected[key]), "{name}: {key}");
    }

    for (label, wanted) in expected["losses"].as_object().unwrap() {
        let loss = loss_of(&wanted["spec"]);
        for (estimator, key) in [(Estimator::Plugin, "irreducible_plugin"), (Estimator::Shrink, "irreducible_shrink")] {
            let policy = policy(&router, &loss, estimator);
            for (cell, (irreducible, total)) in reals(&wanted[key]).into_iter().zip(reals(&wanted["total"])).enumerate()
            {
                let decision = policy.cell(pointsman::CellId(cell as u32)).unwrap();
                close(decision.irreducible().unwrap(), irreducible, &format!("{name}, {label}: {key} of cell {cell}"));
                close(decision.total(), total, &format!("{name}, {label}: total of cell {cell}"));
            }
        }
        let (plugins, totals) = (reals(&wanted["irreducible_plugin"]), reals(&wanted["total"]));
        let plugin = policy(&router, &loss, Estimator::Plugin);
        for prices in wanted["decisions_plugin"].as_array().unwrap() {
            let (route, abstain) = (prices["route"].as_f64().unwrap(), prices["abstain"].as_f64().unwrap());
            let task = plugin.task().clone().route("oracle", Oracle::bayes(), route).unwrap().abstain(abstain).unwrap();
            let policy = plugin.reprice(&task).unwrap();
            for (row, action) in prices["action"].as_array().unwrap().iter().enumerate() {
                let decision = policy.decide(&queries.prediction(row)).unwrap();
                let found = code(&decision.action().to_string());
                let wanted = code(action.as_str().unwrap());
                // The cases compare costs bit by bit, so at prices like 0.30 + 0.05 against 0.35 rounding decided. Only there may we differ, and then by not
                // paying.
                let cell = decision.cell().index();
                let costs = [totals[cell], plugins[cell] + route, abstain];
                let tie = (costs[found] - costs[wanted]).abs() <= TOLERANCE;
                assert!(
                    found == wanted || tie && found < wanted,
                    "{name}, {label}: route {route}, abstain {abstain}, row {row}: {found} instead of {wanted}, {costs:?}"
                );
            }
        }
    }
}

macro_rules! cases {
    ($($test:ident: $file:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            check(include_str!(concat!("../golden/", $file, ".json")));
        })*
    };
}

cases! {
    binary: "binary",
    binary_saturated_recalibrated: "binary-saturated-recalibrated",
    saturated_varying_k: "saturated-varying-k",
    three_classes: "three-classes",
    three_classes_recalibrated: "three-classes-recalibrated",
}
