//! What a new user meets: column names of their own, the answers of another model, limits, noisy annotators, suggested commands.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use pointsman_testing::Lcg;
use tempfile::TempDir;

use crate::{Run, finish, parse_csv};

const CLASSES: [&str; 3] = ["Billing question", "Order status", "Übriges"];
const COLUMNS: &str = "--columns 'id=Message ID,probs=p ' --columns 'oracles=llm '";

fn shell(folder: &Path, line: &str) -> Run {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("\"$POINTSMAN\" {line}")]).current_dir(folder).stdin(Stdio::null());
    finish(shell.env("POINTSMAN", env!("CARGO_BIN_EXE_pointsman")).env_remove("COLUMNS"))
}

/// Messages with the probabilities of a model, which is wrong under load, the answers of another model, and three labels each. Held-out
/// messages come under more load.
fn messages() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut random = Lcg::new(4);
    for (name, rows) in [("messages.csv", 400), ("heldout.csv", 300)] {
        let names = |prefix: &str| CLASSES.map(|class| format!("{prefix}{class}")).join(",");
        let mut text = format!("Message ID,{},f_load,{},llm_answer,{}\n", names("p "), names("llm "), names("votes_"));
        for row in 0..rows {
            let (class, mut load) = (random.below(3), random.uniform());
            if name == "heldout.csv" {
                load = load.sqrt();
            }
            let top = if load > 0.6 { (class + 1) % 3 } else { class };
            let share = |at: usize, high: f64| (0..3).map(move |c| if c == at { high } else { (1.0 - high) / 2.0 });
            let list = |values: Vec<f64>| values.iter().map(|p| format!("{p:.3}")).collect::<Vec<_>>().join(",");
            let probs = list(share(top, 0.6 + 0.3 * (1.0 - load)).collect());
            let answers = list(share(class, 0.9).collect());
            let mut votes = [0; 3];
            (0..3).for_each(|_| votes[if random.uniform() < 0.85 { class } else { random.below(3) }] += 1);
            let votes = votes.map(|n| n.to_string()).join(",");
            writeln!(text, "m{row},{probs},{load:.3},{answers},{},{votes}", CLASSES[class]).unwrap();
        }
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A folder with a router of these messages.
fn with_router() -> TempDir {
    let folder = messages();
    let calibrate = format!("calibrate messages.csv {COLUMNS} --partition confidence:4 -o r.safetensors");
    let run = shell(folder.path(), &calibrate).ok();
    // The summary and the suggested command name the measured model.
    assert!(run.words().contains("answers of llm"), "{run:?}");
    let suggested = run.stdout.lines().find_map(|line| line.trim().strip_prefix("pointsman ")).unwrap();
    assert!(suggested.contains(",measured"), "{suggested}");
    shell(folder.path(), suggested).ok();
    folder
}

#[test]
fn prefix_that_ends_in_a_space_is_suggested_as_a_shell_needs_it() {
    let folder = messages();
    let run = shell(folder.path(), "calibrate messages.csv -o r.safetensors");
    let flag = "--columns 'probs=p '";
    assert!(run.code == 2 && run.stderr.contains(flag), "{run:?}");
    shell(folder.path(), &format!("calibrate messages.csv {flag} --partition confidence:4 -o r.safetensors")).ok();
    // Several options are joined; a key given twice is refused.
    let twice = "calibrate messages.csv --columns 'probs=p ' --columns id=a --columns id=b -o r.safetensors";
    let run = shell(folder.path(), twice);
    assert!(run.code == 2 && run.stderr.contains("id is given twice"), "{run:?}");
}

/// The form that most people have: a column with the class that another model answered.
#[test]
fn answers_in_one_column_are_measured() {
    let folder = messages();
    let path = folder.path();
    let columns = "--columns 'probs=p ,oracles=llm_answer,id=Message ID'";
    let calibrate = format!("calibrate messages.csv {columns} --partition confidence:4 -o r.safetensors");
    assert!(shell(path, &calibrate).ok().words().contains("answers of llm_answer"));
    let evaluate = format!("evaluate r.safetensors heldout.csv {columns} --route llm_answer=0.02,measured --json");
    let found = shell(path, &evaluate).ok().json();
    let loss = |name: &str| found["mean_cost"][name].as_f64().unwrap();
    assert!(loss("always-route:llm_answer") < loss("always-predict"), "{found}");
}

#[test]
fn ids_keep_the_name_of_their_column() {
    let folder = with_router();
    let path = folder.path();
    for (keep, first) in [("all", "Message ID"), ("id", "Message ID"), ("none", "cell")] {
        let decide = format!("decide r.safetensors heldout.csv {COLUMNS} --route 0.1 --keep {keep} -o d.csv");
        let run = shell(path, &decide).ok();
        let (header, rows) = parse_csv(&fs::read_to_string(path.join("d.csv")).unwrap());
        assert_eq!(header[0], first, "--keep {keep}");
        assert!(!header.contains(&"id".to_owned()), "{header:?}");
        assert!(keep == "none" || rows[7][0] == "m7", "{:?}", rows[7]);
        assert!(run.stderr.contains("--annotations FILE"), "{}", run.stderr);
    }
}

#[test]
fn queries_that_a_budget_keeps_from_their_route_are_degraded() {
    let folder = with_router();
    let path = folder.path();
    let decided = |limit: &str| {
        let task = format!("--route llm=0.02,measured --abstain 0.9 {limit}");
        shell(path, &format!("decide r.safetensors heldout.csv {COLUMNS} {task} --keep id -o d.csv")).ok();
        let (header, rows) = parse_csv(&fs::read_to_string(path.join("d.csv")).unwrap());
        let place = |name: &str| header.iter().position(|other| other == name).unwrap();
        let [action, reason, next] = ["action", "reason", "next_best"].map(place);
        let of = |row: &Vec<String>| [row[action].clone(), row[reason].clone(), row[next].clone()];
        rows.iter().map(of).collect::<Vec<_>>()
    };
    let (free, limited) = (decided(""), decided("--budget 15%"));
    let kept = free.iter().zip(&limited).filter(|(free, limited)| free[0] == "route:llm" && limited[0] != "route:llm");
    let kept: Vec<_> = kept.collect();
    assert!(kept.len() > 20, "{} of {}", kept.len(), free.len());
    for (_, limited) in &kept {
        assert_eq!((limited[1].as_str(), limited[2].as_str()), ("degraded", "route:llm"));
    }
    let counted = limited.iter().filter(|row| row[1] == "degraded").count();
    assert_eq!(counted, kept.len(), "no other query is degraded");

    // The explanation says which budget would route such a query, and that budget does.
    let place = free.iter().zip(&limited).position(|(free, limited)| free[0] != limited[0]).unwrap();
    let task = "--route llm=0.02,measured --abstain 0.9";
    let explain = |limit: &str, format: &str| {
        let wanted = format!("--explain m{place} --budget {limit} {format}");
        shell(path, &format!("decide r.safetensors heldout.csv {COLUMNS} {task} {wanted}")).ok()
    };
    let words = explain("15%", "").words();
    for part in ["Reason: degraded", "Without the budget the action would be route:llm", "would route it (now 15.0 %)"]
    {
        assert!(words.contains(part), "{part} in {words}");
    }
    assert!(words.contains("surcharge of"), "{words}");
    let least = explain("15%", "--json").json()["least_budget"].as_f64().unwrap();
    assert!((0.15..1.0).contains(&least), "{least}");
    assert_eq!(explain(&format!("{}", least + 1e-9), "--json").json()["action"], "route:llm");
    let shown = shell(path, &format!("show r.safetensors {task} --budget 15%")).ok().words();
    assert!(shown.contains("next best, with the surcharge of"), "{shown}");
    assert!(shown.contains("which is so for"), "{shown}");
    let shown = shell(path, &format!("show r.safetensors {task} --budget 15% --confidence 0.9")).ok().words();
    assert!(shown.contains("Actions are certain, and regret is counted, with the surcharge of"), "{shown}");
}

#[test]
fn comparison_names_prices_and_missed_budgets() {
    let folder = with_router();
    let path = folder.path();
    shell(path, &format!("calibrate messages.csv {COLUMNS} --partition confidence:2 -o s.safetensors")).ok();
    let compare = format!("compare r.safetensors s.safetensors heldout.csv {COLUMNS} --route llm=0.02,measured");
    let printed = |budget: &str| shell(path, &format!("{compare} --budget {budget}")).ok();
    let words = printed("20%").words();
    assert!(words.contains("Prices: route llm at 0.02, a budget of 20.0 %."), "{words}");
    // Held-out rows come under more load: some budget is exceeded by one of the routers, and only then that is said.
    let mut exceeded = 0;
    for budget in ["10%", "20%", "30%"] {
        let run = printed(budget);
        let found = shell(path, &format!("{compare} --budget {budget} --json")).ok().json();
        let limit: f64 = budget.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
        for it in found["policies"].as_array().unwrap() {
            let is_over = it["shares"]["route:llm"].as_f64().unwrap() > limit;
            let sentence = format!("{} routes", it["name"].as_str().unwrap());
            assert_eq!(run.words().contains(&sentence), is_over, "{run:?}");
            exceeded += usize::from(is_over);
        }
    }
    assert!(exceeded > 0);
}

#[test]
fn report_names_the_files_it_was_made_from() {
    let folder = with_router();
    let path = folder.path();
    let filter = "'f_load>=0.1'";
    let evaluate = format!("evaluate r.safetensors heldout.csv {COLUMNS} --route 0.1 --where {filter} -o report");
    shell(path, &evaluate).ok();
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join("report/report.json")).unwrap()).unwrap();
    let made_from = &report["made_from"];
    assert_eq!((&made_from["router"], &made_from["table"]), (&"r.safetensors".into(), &"heldout.csv".into()));
    assert_eq!(made_from["filters"], serde_json::json!(["f_load>=0.1"]));
    let page = fs::read_to_string(path.join("report/report.html")).unwrap();
    assert!(page.contains("Made from the router r.safetensors and the table heldout.csv, rows with f_load&gt;=0.1."));
}

/// At the usual prices one action may take all rows: then the suggested prices come from the rows.
#[test]
fn suggested_prices_leave_a_choice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(9);
    let mut text = "prob_a,prob_b,votes_a,votes_b\n".to_owned();
    for _ in 0..600 {
        // The model is never sure and the labels are noisy: abstaining at 0.3 is cheaper than anything else.
        let p = 0.5 + 0.1 * random.uniform();
        let truth = if p > 0.55 { 0.5 } else { 0.35 };
        let votes = (0..5).filter(|_| random.uniform() < truth).count();
        writeln!(text, "{p:.3},{:.3},{votes},{}", 1.0 - p, 5 - votes).unwrap();
    }
    fs::write(path.join("t.csv"), text).unwrap();
    let run = shell(path, "calibrate t.csv --partition confidence:4 -o r.safetensors").ok();
    let suggested = run.stdout.lines().find_map(|line| line.trim().strip_prefix("pointsman ")).unwrap();
    assert!(!suggested.contains("--abstain"), "{suggested}");
    let shares = shell(path, &format!("{suggested} --json")).ok().json()["shares"].clone();
    let largest = shares.as_object().unwrap().values().filter_map(serde_json::Value::as_f64).fold(0.0, f64::max);
    assert!(largest < 1.0, "{suggested}: {shares}");
}

/// A model that answers equally well everywhere costs the same in all cells of a tree; the legend says so, and only then.
#[test]
fn equal_costs_in_all_cells_are_explained() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut seen = [false; 2];
    for seed in 0..8 {
        let mut random = Lcg::new(seed);
        let mut text = "prob_a,prob_b,x_load,oracle_llm_a,oracle_llm_b,votes_a,votes_b\n".to_owned();
        for _ in 0..400 {
            let load = random.uniform();
            let truth = if load < 0.5 { 0.8 } else { 0.2 };
            let votes = (0..3).filter(|_| random.uniform() < truth).count();
            let rest = 1.0 - truth;
            writeln!(text, "0.7,0.3,{load:.3},{truth},{rest:.1},{votes},{}", 3 - votes).unwrap();
        }
        fs::write(path.join("t.csv"), text).unwrap();
        shell(path, "calibrate t.csv --partition tree -o r.safetensors").ok();
        let found = shell(path, "show r.safetensors --route llm=0.1,measured --json").ok().json();
        let costs: Vec<f64> = found["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["costs"]["route:llm"].as_f64().unwrap())
            .collect();
        assert!(costs.len() > 1, "{costs:?}");
        let are_equal = costs.iter().all(|cost| (cost - costs[0]).abs() < 1e-9);
        let shown = shell(path, "show r.safetensors --route llm=0.1,measured").ok().words();
        assert_eq!(shown.contains("route:llm costs the same in all cells"), are_equal, "{shown}");
        seen[usize::from(are_equal)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

/// Somebody who labels at random depends on nobody.
#[test]
fn noisy_annotator_is_not_said_to_depend_on_others() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(6);
    let mut items = "id,prob_a,prob_b\n".to_owned();
    let mut labels = "id,label,annotator\n".to_owned();
    for row in 0..500 {
        let p = 0.1 + 0.8 * random.uniform();
        writeln!(items, "i{row},{p:.3},{:.3}", 1.0 - p).unwrap();
        let class = usize::from(random.uniform() >= p);
        for who in ["ann", "ben", "cem", "noisy"] {
            let is_random = who == "noisy" || random.uniform() < 0.1;
            writeln!(labels, "i{row},{},{who}", ["a", "b"][if is_random { random.below(2) } else { class }]).unwrap();
        }
    }
    fs::write(path.join("items.csv"), items).unwrap();
    fs::write(path.join("labels.csv"), labels).unwrap();
    let run = shell(path, "diagnose items.csv --annotations labels.csv --route 0.1 --json").ok();
    assert_eq!(run.json()["flagged_annotators"]["annotators"], serde_json::json!(["noisy"]));
    let sentence = run.json()["verdict"]["sentence"].as_str().unwrap().to_owned();
    assert!(sentence.contains("noisy agrees less with the others than they do among themselves"), "{sentence}");
    assert!(!run.stdout.contains("independently"), "{}", run.stdout);
}

/// A model was asked about some rows only: the message has the filter that keeps these, in text and in Parquet.
#[test]
fn rows_without_answers_are_left_out_by_the_filter_that_the_message_gives() {
    let folder = messages();
    let path = folder.path();
    let text = fs::read_to_string(path.join("messages.csv")).unwrap();
    let mut lines = text.lines();
    let mut partial = lines.next().unwrap().replace("llm ", "oracle_llm_").replace("p ", "prob_") + "\n";
    for (n, line) in lines.enumerate() {
        let mut cells: Vec<&str> = line.split(',').collect();
        if n % 3 != 0 {
            cells[5..8].fill("");
        }
        partial += &(cells.join(",") + "\n");
    }
    fs::write(path.join("partial.csv"), partial).unwrap();
    let run = shell(path, "calibrate partial.csv --partition confidence:4 -o r.safetensors");
    let flag = "--where 'oracle_llm_Billing question!='";
    assert!(run.code == 2 && run.stderr.contains(flag) && run.stderr.contains("random sample"), "{run:?}");
    let rows = |table: &str| {
        let calibrate = format!("calibrate {table} {flag} --partition confidence:4 -o r.safetensors --json");
        shell(path, &calibrate).ok().json()["rows"].as_u64()
    };
    assert_eq!(rows("partial.csv"), Some(134));
    // How many rows were left out, why, and what to do, in every command that measures.
    let said = "266 rows have no answer in column oracle_llm_Billing question and were left out, as --where asks; 134 rows are left: they \
                stand for all rows only if the model was asked about a random sample";
    for command in [
        format!("calibrate partial.csv {flag} --partition confidence:4 -o r.safetensors"),
        format!("evaluate r.safetensors partial.csv {flag} --route llm=0.1,measured --no-calibration-error"),
        format!("diagnose partial.csv {flag} --route llm=0.1,measured"),
    ] {
        let run = shell(path, &command).ok();
        assert!(
            run.stderr.contains(said) && run.stderr.contains("drop its columns and calibrate on all rows"),
            "{run:?}"
        );
        let warnings = shell(path, &format!("{command} --json")).ok().json()["warnings"].to_string();
        assert!(warnings.contains(said), "{command}: {warnings}");
    }
    let evaluate = format!("evaluate r.safetensors partial.csv {} --route llm=0.1,measured", "--where 'Message ID!='");
    let run = shell(path, &evaluate);
    assert!(run.code == 2 && run.stderr.contains(flag), "{run:?}");
    // The same rows as Parquet, where a missing value is null.
    shell(path, "decide r.safetensors partial.csv --route 0.1 -o partial.parquet").ok();
    let run = shell(path, "calibrate partial.parquet --partition confidence:4 -o r.safetensors");
    assert!(run.code == 2 && run.stderr.contains(flag), "{run:?}");
    assert_eq!(rows("partial.parquet"), Some(134));
}

#[test]
fn counts_left_empty_and_labels_in_one_text_are_refused_with_the_way_to_give_them() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::write(path.join("empty.csv"), "id,prob_a,prob_b,votes_a,votes_b\n1,0.7,0.3,2,\n").unwrap();
    let run = shell(path, "calibrate empty.csv -o r.safetensors");
    assert!(run.code == 2 && run.stderr.contains("column votes_b: no value: write 0 where nobody"), "{run:?}");
    fs::write(path.join("joined.csv"), "id,prob_a,prob_b,labels\n1,0.7,0.3,a|a|b\n").unwrap();
    let run = shell(path, "calibrate joined.csv -o r.safetensors");
    assert!(run.code == 2 && run.stderr.contains("column labels holds text and not a list"), "{run:?}");
    assert!(run.stderr.contains("--annotations FILE"), "{run:?}");
}

#[test]
fn decisions_that_should_keep_ids_and_have_none_are_reported() {
    let folder = with_router();
    let path = folder.path();
    let decide = "decide r.safetensors heldout.csv --columns 'probs=p ,oracles=llm ' --route 0.1 -o d.csv";
    let run = shell(path, &format!("{decide} --keep id")).ok();
    assert!(run.stderr.contains("heldout.csv has no column id") && run.stderr.contains("--columns id=NAME"), "{run:?}");
    for other in ["--keep all", "--keep none", "--keep id --columns 'id=Message ID'"] {
        let run = shell(path, &format!("{decide} {other}")).ok();
        assert!(!run.stderr.contains("has no column id"), "{run:?}");
    }
}
