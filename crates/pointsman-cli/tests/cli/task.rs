//! Task files, verified and described.

use std::fs;

use tempfile::TempDir;

use crate::{line, line_with_input};

const TASK: &str = r#"abstain = 0.35
estimator = "shrink"

[loss]
classes = ["fine", "broken"]
acts = ["ship", "ship late", "hold", "ask"]
cost = [[0, 4], [1, 5], [4, 0], [3, 3]]

[[route]]
name = "expert"
cost = 0.05
[[route]]
name = "jury"
cost = 0.02
kind = "panel"
experts = 3
[[route]]
name = "gpt"
cost = 0.01
kind = "measured"
"#;

fn with_task(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("task.toml"), text).unwrap();
    folder
}

#[test]
fn task_is_described_in_words() {
    let folder = with_task(TASK);
    let run = line(folder.path(), "task check task.toml --classes broken,fine").ok();
    for text in [
        "task.toml can be used with the classes broken, fine",
        "if broken",
        "If the class were certain: broken → hold, fine → ship.",
        "ship late can never be chosen: ship costs no more under any class.",
        "ask can never be chosen: whatever the prediction, another act costs less.",
        "route:expert: costs 0.05 and what the answer loses; an oracle that knows the label distribution (bayes)",
        "a panel of 3 who label as the calibration labels do",
        "oracle_gpt_broken …, or one column oracle_gpt with the class",
        "abstain: costs 0.35",
        "No limit",
        "Estimator shrink",
        "never pay on a tie",
    ] {
        assert!(
            run.stdout.replace('\n', " ").replace("  ", " ").replace("  ", " ").contains(text),
            "{text}: {}",
            run.stdout
        );
    }
    assert_eq!(run.stderr, "");
    let piped = line_with_input(folder.path(), "task check - --json", TASK).ok().json();
    let found = line(folder.path(), "task check task.toml --json").ok().json();
    assert_eq!(found["classes"], serde_json::json!(["fine", "broken"]));
    assert_eq!(found["if_certain"][1], serde_json::json!({ "class": "broken", "act": "hold" }));
    assert_eq!(found["never_chosen"][0], serde_json::json!({ "act": "ship late", "dominated_by": "ship" }));
    assert_eq!(found["never_chosen"][1]["dominated_by"], serde_json::Value::Null);
    assert_eq!(found["actions"], serde_json::json!(["predict", "route:expert", "route:jury", "route:gpt", "abstain"]));
    assert_eq!(found["needs_columns"], serde_json::json!(["oracle_gpt_fine", "oracle_gpt_broken"]));
    assert_eq!((&found["routes"], &found["estimator"]), (&piped["routes"], &piped["estimator"]));
}

#[test]
fn named_losses_and_limits_are_described() {
    for (text, printed) in [
        ("loss = \"fn-fp:fp=1,fn=3\"\nabstain = 1\n", &["positive", "class 2", "cost units"][..]),
        ("loss = \"asymmetric:2\"\n", &["Wrongly answering the first class costs 2", "only action is to predict"]),
        ("budget = 0.2\n[[route]]\ncost = 0.1\n", &["Budget: at most 20.0 %", "Brier points", "route:oracle"]),
        (
            "target_loss = 0.2\nties = \"paper\"\n[[route]]\ncost = 0.1\n",
            &["keep the expected loss at 0.2000", "as in the paper"],
        ),
    ] {
        let run = line(with_task(text).path(), "task check task.toml").ok();
        assert!(printed.iter().all(|part| run.stdout.contains(part)), "{printed:?}: {}", run.stdout);
    }
    let run = line(with_task("loss = \"asymmetric:2\"\n").path(), "task check task.toml --classes spam,ham").ok();
    assert!(run.stdout.contains("Wrongly answering spam costs 2"), "{run:?}");
}

/// Errors have the line and an exit code.
#[test]
fn bad_tasks_are_refused_by_line() {
    for (text, classes, reasons) in [
        ("abstain = 0.1\nloss = \"bier\"\n", "", &["task.toml: line 2", "unknown loss \"bier\""][..]),
        ("abstian = 0.1\n", "", &["line 1", "abstian"]),
        ("abstain = -1\n", "", &["line 1", "-1 is not a price"]),
        ("[[route]]\ncost = 0.1\n\n[[route]]\nname = \"b\"\ncost = -2\n", "", &["line 6", "-2 is not a price"]),
        ("[[route]]\nname = \"b\"\ncost = 0.1\nkind = \"panel:m=0\"\n", "", &["line 4", "from 1 to 1000"]),
        ("[loss]\nacts = [\"a\", \"b\"]\ncost = [[0, 1],\n  [1, -3]]\n", "", &["line 4", "has -3"]),
        ("[loss]\nacts = [\"a\", \"a\"]\ncost = [[0, 1], [1, 0]]\n", "", &["line 2", "given twice"]),
        ("[loss]\ncost = [[0, 1], [1, 0]]\n", "", &["line 1", "acts is missing: name one act per row of cost"]),
        ("[loss]\nacts = [\"a\", \"b\"]\n", "", &["line 1", "cost is missing: give one row of costs per act"]),
        ("estimator = \"shrunk\"\n", "", &["line 1", "unknown estimator"]),
        ("budget = 0.2\n", "", &["task.toml: a budget or target loss limits routing"]),
        (
            TASK,
            " --classes fine,broken,lost",
            &["task.toml: the classes of the cost matrix are not those", "only the predictions have lost"],
        ),
        (TASK, " --classes fine,fine", &["given twice"]),
        (TASK, " --classes fine", &["1 class"]),
        ("loss = \"three-part\"\n", " --classes a,b,c", &["is for 2 classes"]),
        ("estimator = \"npmle\"\n", " --classes a,b,c,d", &["npmle is for at most 3 classes"]),
    ] {
        let run = line(with_task(text).path(), &format!("task check task.toml{classes}"));
        assert!(run.code == 2 && run.stdout.is_empty(), "{text}: {run:?}");
        assert!(reasons.iter().all(|reason| run.stderr.contains(reason)), "{reasons:?}: {run:?}");
    }
    let run = line(TempDir::new().unwrap().path(), "task check none.toml");
    assert!(run.code == 2 && run.stderr.contains("none.toml: no such file"), "{run:?}");
}

#[test]
fn prices_that_never_pay_are_warned_of() {
    let folder =
        with_task("abstain = 3\n[[route]]\nname = \"expert\"\ncost = 8\n[[route]]\nname = \"llm\"\ncost = 0.1\n");
    let run = line(folder.path(), "task check task.toml").ok();
    let found = line(folder.path(), "task check task.toml --json").ok().json();
    let warnings = found["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{found}");
    for (action, price) in [("route:expert", "8"), ("abstain", "3")] {
        let said = format!("{action} costs {price}, but a wrong answer costs at most 2");
        assert!(run.stderr.contains(&said), "{said}: {run:?}");
        assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains(&said)), "{said}: {found}");
    }
    assert_eq!(
        line(with_task(TASK).path(), "task check task.toml --json").ok().json()["warnings"],
        serde_json::json!([])
    );
}

#[test]
fn a_table_in_place_of_a_task_is_recognised() {
    let folder = with_task("");
    fs::write(folder.path().join("cal.csv"), "id,prob_a,prob_b\n").unwrap();
    let run = line(folder.path(), "task check cal.csv");
    assert!(run.code == 2 && run.stderr.contains("cal.csv: is a table, not a task file"), "{run:?}");
    let help = line(folder.path(), "task check --help").ok().stdout;
    assert!(help.contains("<TASK>") && !help.contains("router"), "{help}");
}
