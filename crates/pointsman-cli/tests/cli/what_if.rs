//! `what-if` on tables that `decide` wrote.

use std::fs;
use std::path::Path;

use crate::{Run, line, parse_csv, workshop};

const OLD: &str = "--route expert=0.05 --abstain 0.55";

/// A log: the held-out rows as decided under the old task.
fn log(folder: &Path) {
    line(folder, &format!("decide router.safetensors heldout.csv {OLD} -o log.csv")).ok();
}

fn actions(folder: &Path, task: &str) -> Vec<String> {
    let text = line(folder, &format!("decide router.safetensors heldout.csv {task} --keep none -o -")).ok().stdout;
    let (names, rows) = parse_csv(&text);
    let place = names.iter().position(|name| name == "action").unwrap();
    rows.iter().map(|row| row[place].clone()).collect()
}

fn refused(run: &Run, words: &str) {
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains(words), "{words}: {run:?}");
}

#[test]
fn changes_are_those_of_two_runs_of_decide() {
    let folder = workshop();
    let path = folder.path();
    log(path);
    let before = actions(path, OLD);
    fs::write(path.join("old.toml"), "abstain = 0.55\n[[route]]\nname = \"expert\"\ncost = 0.05\n").unwrap();
    for new in ["--route expert=0.1 --abstain 0.55", "--route expert=0.03", "--route other=0.02 --abstain 0.45"] {
        let after = actions(path, new);
        let changed = before.iter().zip(&after).filter(|(from, to)| from != to).count();
        assert!(changed > 0);
        for against in ["", " --against old.toml"] {
            let found = line(path, &format!("what-if log.csv router.safetensors {new}{against} --json")).ok().json();
            assert_eq!(found["decisions"], before.len());
            assert_eq!(found["changed"], changed, "{new}{against}");
            for flow in found["matrix"].as_array().unwrap() {
                let is_flow = |(from, to): &(&String, &String)| flow["from"] == **from && flow["to"] == **to;
                assert_eq!(flow["decisions"], before.iter().zip(&after).filter(is_flow).count(), "{flow}");
            }
            assert_eq!(found["against"].is_null(), against.is_empty());
        }
    }
    let same = line(path, &format!("what-if log.csv router.safetensors {OLD} --json")).ok().json();
    assert_eq!((&same["changed"], &same["cost"]["difference"]), (&0.into(), &0.0.into()));
}

#[test]
fn a_task_file_may_stand_behind_the_router() {
    let folder = workshop();
    let path = folder.path();
    log(path);
    fs::write(path.join("new.toml"), "abstain = 0.55\n[[route]]\nname = \"expert\"\ncost = 0.1\n").unwrap();
    let what_if = |task: &str| line(path, &format!("what-if log.csv router.safetensors {task} --json"));
    let by_flag = what_if("--task new.toml").ok().json();
    assert_eq!(what_if("new.toml").ok().json(), by_flag);
    let dearer = what_if("new.toml --route expert=0.2").ok().json();
    assert_eq!(dearer["task"], what_if("--task new.toml --route expert=0.2").ok().json()["task"]);
    refused(&what_if("new.toml --task new.toml"), "cannot be used with");
}

#[test]
fn a_policy_file_takes_the_place_of_a_router() {
    let folder = workshop();
    let path = folder.path();
    log(path);
    line(path, &format!("compile router.safetensors {OLD} -o policy.safetensors")).ok();
    let of = |file: &str, task: &str| {
        line(path, &format!("what-if log.csv {file} {task} --json")).ok().json()["cost"].clone()
    };
    assert_eq!(
        of("policy.safetensors", "--route expert=0.1"),
        of("router.safetensors", "--route expert=0.1 --abstain 0.55")
    );
    refused(&line(path, "what-if log.csv policy.safetensors --loss zero-one"), "pointsman compile");
}

#[test]
fn a_terminal_shows_costs_flows_and_cells() {
    let folder = workshop();
    let path = folder.path();
    log(path);
    let words = line(path, "what-if log.csv router.safetensors --route expert=0.1 --abstain 0.55").ok().words();
    for part in [
        "would change",
        "Expected cost per query",
        "share before",
        "route:expert",
        "Cells whose decisions change",
        "favours the new task",
        "± over queries",
        ", judged by rows left out: a difference smaller",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let one =
        line(path, "what-if log.csv router.safetensors --route expert=0.2 --where action=abstain --json").ok().json();
    assert_eq!(one["shares_before"]["abstain"], 1.0);
    assert_eq!(one["cost"]["not_compared"], one["decisions"]);
}

#[test]
fn a_route_under_another_name_is_pointed_out_before_the_costs() {
    let folder = workshop();
    let path = folder.path();
    log(path);
    let what_if = "what-if log.csv router.safetensors --route people=0.05 --abstain 0.55";
    let found = line(path, &format!("{what_if} --json")).ok().json();
    assert!(found["cost"]["not_compared"] == found["changed"] && found["changed"].as_u64() > Some(0), "{found}");
    assert!(found["cost"]["difference"].is_null() && found["cost"]["difference_standard_error"].is_null(), "{found}");
    let words = line(path, what_if).ok().words();
    let note = "an action that the new task lacks (route:expert), whose cost is unknown: no decision that changes is among the others, so that \
                the difference is unknown (–). If people is what the log calls expert, give it that name: --route expert=0.05.";
    let (at, table) = (words.find(note), words.find("before what if difference"));
    assert!(at.is_some() && at < table && !words.contains("0.0000 0.0000"), "{words}");
    let named = line(path, &what_if.replace("people", "expert")).ok().words();
    assert!(!named.contains("lacks"), "{named}");
}

#[test]
fn tables_that_are_no_logs_are_refused() {
    let folder = workshop();
    let path = folder.path();
    refused(&line(path, &format!("what-if heldout.csv router.safetensors {OLD}")), "has no column action");
    refused(&line(path, &format!("what-if router.safetensors heldout.csv {OLD}")), "the log comes first");
    line(path, &format!("decide router.safetensors heldout.csv {OLD} --keep id -o ids.csv")).ok();
    refused(&line(path, &format!("what-if ids.csv router.safetensors {OLD}")), "with --keep all");
    let text = fs::read_to_string(path.join("heldout.csv")).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let odd: String = rows.lines().map(|row| format!("guess,{row}\n")).collect();
    fs::write(path.join("odd.csv"), format!("action,{header}\n{odd}")).unwrap();
    refused(&line(path, &format!("what-if odd.csv router.safetensors {OLD}")), "row 1, column action: \"guess\"");
    // Without rows there is nothing to compare, which is no mistake.
    fs::write(path.join("empty.csv"), format!("action,{header}\n")).unwrap();
    let words = line(path, &format!("what-if empty.csv router.safetensors {OLD}")).ok().words();
    assert!(words.starts_with("0 decisions"), "{words}");
}
