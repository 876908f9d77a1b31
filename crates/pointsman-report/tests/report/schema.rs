//! The published schemas, and a validator for the part of JSON Schema that they use.

use pointsman::diagnose::diagnose;
use pointsman::diagnose::{Advice, diagnose_annotated};
use pointsman::policy::{CapSize, Caps};
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
use serde_json::{Value, json};

use crate::world::{brier, oracles_of_every_kind, report_of, table, with_names};

fn schema(name: &str) -> Value {
    let path = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other} is not known here"),
    }
}

/// Collects the violations of a schema by a value.
fn collect_violations(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    for (word, rule) in schema.as_object().unwrap() {
        let mut fail = |why: String| out.push(format!("{at}: {why}"));
        match word.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                collect_violations(root, target, value, at, out);
            }
            "type" => {
                let kinds = rule.as_array().cloned().unwrap_or(vec![rule.clone()]);
                if !kinds.iter().any(|kind| has_type(kind.as_str().unwrap(), value)) {
                    fail(format!("{value} is no {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => fail(format!("{value} is not among {rule}")),
            "minimum" if value.as_f64().is_some_and(|x| x < rule.as_f64().unwrap()) => {
                fail(format!("{value} < {rule}"));
            }
            "maximum" if value.as_f64().is_some_and(|x| x > rule.as_f64().unwrap()) => {
                fail(format!("{value} > {rule}"));
            }
            "minItems" if value.as_array().is_some_and(|a| a.len() < rule.as_u64().unwrap() as usize) => {
                fail(format!("fewer than {rule} items"));
            }
            "maxItems" if value.as_array().is_some_and(|a| a.len() > rule.as_u64().unwrap() as usize) => {
                fail(format!("more than {rule} items"));
            }
            "pattern" => {
                assert_eq!(rule, "^[pra0-9?-]*$", "the only pattern known here");
                if !value.as_str().unwrap_or("x").chars().all(|c| "pra0123456789?-".contains(c)) {
                    fail(format!("{value} does not match"));
                }
            }
            "required" if value.is_object() => {
                for name in rule.as_array().unwrap().iter().filter(|name| value.get(name.as_str().unwrap()).is_none()) {
                    fail(format!("{name} is missing"));
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    collect_violations(root, rule, item, &format!("{at}/{i}"), out);
                }
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(item) = value.get(name) {
                        collect_violations(root, rule, item, &format!("{at}/{name}"), out);
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, item) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => out.push(format!("{at}: {name} is not in the schema")),
                        rule => collect_violations(root, rule, item, &format!("{at}/{name}"), out),
                    }
                }
            }
            "enum" | "minimum" | "maximum" | "minItems" | "maxItems" | "required" => {}
            other => panic!("{other} is not known here"),
        }
    }
}

fn check_against(schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    collect_violations(schema, schema, value, "", &mut out);
    out
}

fn check(value: &Value) -> Vec<String> {
    check_against(&schema("report"), value)
}

#[test]
fn reports_satisfy_the_schema() {
    let never = Task::new(Loss::zero_one());
    let cheap =
        Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.1).unwrap().route("b", Oracle::bayes(), 0.02).unwrap();
    let matrix =
        Task::new(Loss::matrix(["ship", "hold"], vec![vec![0.0, 3.0], vec![1.0, 0.0]]).unwrap()).abstain(0.3).unwrap();
    for (classes, k, task) in [
        (&["no", "yes"][..], 5, brier()),
        (&["cat", "dog", "owl"], 5, brier()),
        (&["no", "yes"], 1, brier()),
        (&["no", "yes"], 5, never),
        (&["no", "yes"], 5, cheap),
        (&["no", "yes"], 5, matrix),
        (&["no", "yes"], 5, oracles_of_every_kind()),
        (&["no", "yes"], 5, oracles_of_every_kind().budget(0.2).unwrap()),
        (&["no", "yes"], 5, brier().target_loss(0.36).unwrap()),
        (&["cat", "dog", "owl"], 1, oracles_of_every_kind()),
    ] {
        let mut report = report_of(classes, k, &task);
        assert_eq!(check(&serde_json::to_value(&report).unwrap()), Vec::<String>::new(), "{task:?}");
        report.detail = None;
        report.calibration_error = None;
        assert_eq!(check(&serde_json::to_value(&report).unwrap()), Vec::<String>::new(), "{task:?}");
    }
}

/// Policies of the same and of another loss, with a limit, and rows whose single label does not identify all costs.
#[test]
fn comparisons_satisfy_their_schema() {
    let schema = schema("comparison");
    let two = &["no", "yes"][..];
    let router = Router::calibrate(&table(two, 300, 5, 1), &Partition::top_class(3)).unwrap();
    let free = Task::new(Loss::zero_one()).route("expert", Oracle::bayes(), 0.0).unwrap();
    for k in [1, 5] {
        let held_out = table(two, 200, k, 2);
        let tasks =
            [("a", brier()), ("b", oracles_of_every_kind()), ("c", brier().budget(0.2).unwrap()), ("d", free.clone())];
        let mut replays = tasks.map(|(name, task)| (name, router.policy(&task).unwrap().replay(&held_out).unwrap()));
        let caps = Caps::new(&free, [("expert", CapSize::Queries(3))]).unwrap();
        replays[3].1 = replays[3].1.clone().with_caps(caps, &held_out, None).unwrap();
        let found =
            pointsman::evaluate::compare_policies(replays.iter().map(|(name, replay)| (*name, replay)), Some("b"))
                .unwrap();
        let mut value = serde_json::to_value(&found).unwrap();
        assert_eq!(check_against(&schema, &value), Vec::<String>::new(), "{k}");
        assert_eq!(
            (&value["policies"][3]["caps"][0]["most"], &value["policies"][0]["caps"]),
            (&json!(3), &json!(null))
        );
        value["policies"][0]["shares"]["predict"] = json!(2);
        value["policies"][0].as_object_mut().unwrap().remove("cost");
        value["winner"] = json!("a");
        assert_eq!(check_against(&schema, &value).len(), 3, "{:?}", check_against(&schema, &value));
    }
}

/// Diagnoses with and without prices, at limits, from one label, and from labels that stop on agreement.
#[test]
fn diagnoses_satisfy_their_schema() {
    let schema = schema("diagnosis");
    let (two, three) = (&["no", "yes"][..], &["cat", "dog", "owl"][..]);
    let budget = brier().budget(0.2).unwrap();
    // The least possible loss: some halves reach it, others do not.
    let free = || Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.0).unwrap();
    let all = Router::calibrate(&table(two, 300, 5, 1), &Partition::top_class(3)).unwrap();
    let least = all.policy(&free().budget(1.0).unwrap()).unwrap().surcharge().unwrap().loss + 1e-6;
    let stopped = {
        let (drawn, mut votes) = (table(two, 300, 2, 3), Vec::new());
        for row in 0..300 {
            let counts = drawn.votes(row).unwrap().counts();
            votes.extend(if counts[0] == 1 { [2, 3] } else { [counts[0], counts[1]] });
        }
        let probs = (0..300).flat_map(|row| drawn.prediction(row).to_vec()).collect();
        Table::new(two.iter().copied(), probs).unwrap().with_votes(votes).unwrap()
    };
    for (table, task, advice) in [
        (table(two, 300, 5, 1), brier(), None),
        (table(three, 300, 5, 1), oracles_of_every_kind(), None),
        (table(two, 300, 5, 1), Task::new(Loss::zero_one()), None),
        (table(two, 300, 5, 1), budget.clone(), None),
        (table(two, 300, 5, 1), free().target_loss(least + 0.03).unwrap(), None),
        (table(two, 300, 5, 1), free().target_loss(least).unwrap(), None),
        (table(two, 300, 1, 1), budget, Some(Advice::OneLabel)),
        (table(two, 8, 5, 1), brier(), Some(Advice::MoreData)),
        (stopped, brier(), Some(Advice::MendLabels)),
    ] {
        let found = diagnose(&table, &task, &Partition::top_class(3), || ()).unwrap();
        assert!(advice.is_none_or(|advice| advice == found.verdict.advice), "{:?}", found.verdict);
        assert_eq!(check_against(&schema, &serde_json::to_value(&found).unwrap()), Vec::<String>::new(), "{task:?}");
    }
    // Labels with annotators, one of whom always gives the same label, and votes for exchanged classes.
    let (named, annotations) = with_names(&table(two, 300, 4, 1));
    let found = diagnose_annotated(&named, Some(&annotations), &brier(), &Partition::top_class(3), || ()).unwrap();
    assert!(found.annotators.len() == 5 && found.flagged_annotators.is_some(), "{:?}", found.annotators);
    assert_eq!(check_against(&schema, &serde_json::to_value(&found).unwrap()), Vec::<String>::new());
    let exchanged = [0.9, 0.1, 0.2, 0.8].repeat(100);
    let exchanged = Table::new(two.iter().copied(), exchanged).unwrap().with_votes([0, 3, 3, 1].repeat(100)).unwrap();
    let found = diagnose(&exchanged, &brier(), &Partition::top_class(3), || ()).unwrap();
    assert!(found.mismatch.is_some() && found.verdict.advice == Advice::MendLabels, "{:?}", found.verdict);
    assert_eq!(check_against(&schema, &serde_json::to_value(&found).unwrap()), Vec::<String>::new());
    let found = diagnose(&table(two, 100, 5, 1), &brier(), &Partition::top_class(3), || ()).unwrap();
    let mut value = serde_json::to_value(&found).unwrap();
    value["verdict"]["advice"] = json!("perhaps");
    value["worth"]["costs"]["router"] = json!(0.2);
    value["enough"]["labels"] = json!([1, 2]);
    value.as_object_mut().unwrap().remove("agreement");
    assert_eq!(check_against(&schema, &value).len(), 4, "{:?}", check_against(&schema, &value));
}

#[test]
fn validator_finds_violations() {
    let mut report = serde_json::to_value(report_of(&["no", "yes"], 5, &brier())).unwrap();
    report["cells"][0]["share"] = json!(1.5);
    report["losses"][0]["grid"]["actions"][0] = json!("xyz");
    report["curves"]["random"] = json!([1.0]);
    report["extra"] = json!(1);
    report.as_object_mut().unwrap().remove("rows");
    assert_eq!(check(&report).len(), 5, "{:?}", check(&report));
}

#[test]
fn grid_agrees_with_evaluation() {
    for classes in [&["no", "yes"][..], &["cat", "dog", "owl"]] {
        let report = report_of(classes, 5, &brier());
        let grid = &report.detail.as_ref().unwrap().losses[0].grid;
        let n = grid.abstain_prices.len();
        let own = grid.own[0] * n + grid.own[1];
        assert_eq!((grid.route_prices[grid.own[0]], grid.abstain_prices[grid.own[1]]), (Some(0.05), Some(0.4)));
        let close = |a: f64, name: &str, of: &pointsman::task::Named<f64>| {
            let b = *of.get(name).unwrap();
            assert!((a - b).abs() < 1e-12, "{name}: {a} and {b}");
        };
        let evaluation = &report.evaluation;
        close(grid.router[own].unwrap(), "router", evaluation.best_costs());
        close(grid.cell_optimal[own], "cell-optimal", evaluation.best_costs());
        close(grid.always_predict, "always-predict", evaluation.best_costs());
        close(grid.always_route[grid.own[0]].unwrap(), "always-route:expert", evaluation.best_costs());
        close(grid.predicted[own].unwrap(), "predict", &evaluation.shares);
        close(grid.routed[own].unwrap(), "route:expert", &evaluation.shares);
        close(grid.abstained[own].unwrap(), "abstain", &evaluation.shares);
        close(grid.router[grid.own[0] * n + n - 1].unwrap(), "predict/route", evaluation.best_two_way());
        let never = (grid.route_prices.len() - 1) * n + grid.own[1];
        close(grid.router[never].unwrap(), "predict/abstain", evaluation.best_two_way());
        let letters: String =
            report.cells.iter().map(|cell| cell.action.as_deref().map_or('-', |a| a.chars().next().unwrap())).collect();
        assert_eq!(grid.actions[own], letters);
        assert!(grid.corners[own].is_some_and(|corner| (corner - 0.35).abs() < 1e-12));
        for (cell, cost) in report.cells.iter().zip(&grid.route_costs[grid.own[0]]) {
            assert_eq!(cell.costs.get("route:expert").copied().flatten(), *cost);
        }
    }
}

/// With several kinds of oracles too, the page starts at the task's prices, and the menu has no loss that cannot be
/// applied.
#[test]
fn grid_starts_at_the_tasks_prices() {
    let report = report_of(&["no", "yes"], 5, &oracles_of_every_kind());
    let losses = &report.detail.as_ref().unwrap().losses;
    assert!(losses.len() > 4 && losses.iter().all(|loss| loss.loss != "cross-entropy"));
    let (grid, evaluation) = (&losses[0].grid, &report.evaluation);
    let own = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
    assert!(!grid.bayes && (grid.router[own].unwrap() - evaluation.best_costs().get("router").unwrap()).abs() < 1e-12);
    assert!((grid.cell_optimal[own] - evaluation.best_costs().get("cell-optimal").unwrap()).abs() < 1e-12);
    let routed: f64 =
        evaluation.shares.iter().filter(|(name, _)| name.starts_with("route:")).map(|(_, share)| share).sum();
    assert!((grid.routed[own].unwrap() - routed).abs() < 1e-12);
    for (cell, cost) in report.cells.iter().zip(&grid.route_costs[grid.own[0]]) {
        let routes = cell.costs.iter().filter(|(name, _)| name.starts_with("route:"));
        assert_eq!(routes.filter_map(|(_, cost)| *cost).reduce(f64::min), *cost);
    }
}

/// With one and several routes, with a budget and with a target loss: at the task's prices the page agrees with the
/// evaluation.
#[test]
fn grid_covers_limits_and_every_route() {
    let one = || Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap();
    let three = || one().route("gpt", Oracle::measured(), 0.01).unwrap().route("slow", Oracle::bayes(), 0.02).unwrap();
    for task in [one(), three(), one().abstain(0.4).unwrap(), three().abstain(0.4).unwrap()] {
        let budget = report_of(&["no", "yes"], 5, &task.clone().budget(0.15).unwrap());
        let target = budget.evaluation.surcharge.unwrap().loss;
        let target = report_of(&["no", "yes"], 5, &task.clone().target_loss(target).unwrap());
        for report in [report_of(&["no", "yes"], 5, &task), budget, target] {
            assert_agrees_with_evaluation(&report);
        }
    }
}

fn assert_agrees_with_evaluation(report: &pointsman_report::Report) {
    let (evaluation, losses) = (&report.evaluation, &report.detail.as_ref().unwrap().losses);
    let grid = &losses[0].grid;
    let own = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
    let close = |a: Option<f64>, b: Option<&f64>, what: &str| {
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-12, "{what}: {a:?} and {b:?} of {:?}", evaluation.task);
    };
    close(grid.router[own], evaluation.best_costs().get("router"), "router");
    close(grid.predicted[own], evaluation.shares.get("predict"), "predicted");
    assert_eq!(grid.routes.len(), evaluation.task.routes.len());
    for (route, task_route) in grid.routes.iter().zip(&evaluation.task.routes) {
        assert_eq!(route.prices[grid.own[0]], Some(task_route.cost));
        close(route.shares[own], evaluation.shares.get(&format!("route:{}", route.name)), &route.name);
        let always = evaluation.best_costs().get(&format!("always-route:{}", route.name));
        close(route.always[grid.own[0]], always, &route.name);
    }
    assert_eq!(grid.surcharge[own], evaluation.surcharge.map(|surcharge| surcharge.price));
    // The deciding price includes the surcharge; the paid price does not.
    let price = grid.route_prices[grid.own[0]].unwrap();
    let counted = match (evaluation.task.budget, evaluation.surcharge) {
        (Some(_), Some(found)) => price + found.price,
        (None, Some(found)) => found.price,
        _ => price,
    };
    close(grid.decision_prices[own], Some(&counted), "decision price");
    assert_eq!(report.limit_line().is_some(), evaluation.task.is_limited());
    // A budget is a share of the queries under any loss; a target loss has the unit of one loss.
    let kept = |loss: &pointsman_report::LossReport| loss.grid.surcharge.iter().any(Option::is_some);
    assert!(losses[1..].iter().all(|loss| kept(loss) == evaluation.task.budget.is_some()), "{:?}", evaluation.task);
}
