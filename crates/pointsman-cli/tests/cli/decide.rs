//! Decisions: their columns, their order, and what they do not depend on.

use std::fs;

use crate::{command, finish, line, line_with_input, parse_csv, workshop, world};

const TASK: &str = "--route expert=0.05 --route big=0.1 --abstain 0.3";

/// Columns that are found by name may stand in any order.
#[test]
fn classes_are_found_by_name() {
    let folder = workshop();
    let path = folder.path();
    let (header, rows) = parse_csv(&world::rows(200, 2).to_csv());
    // id, three probabilities, three counts of votes.
    let turned = |row: &[String]| [0, 3, 1, 2, 5, 6, 4].map(|column| row[column].clone()).join(",");
    let text: Vec<String> = [&header].into_iter().chain(&rows).map(|row| turned(row)).collect();
    fs::write(path.join("turned.csv"), text.join("\n")).unwrap();
    let task = "--route expert=0.05 --abstain 0.3";
    let decide = |table: &str| line(path, &format!("decide router.safetensors {table} {task} --keep id")).ok().stdout;
    assert_eq!(decide("turned.csv"), decide("heldout.csv"));
    let evaluate = |table: &str| line(path, &format!("evaluate router.safetensors {table} {task} --json")).ok().json();
    assert_eq!(evaluate("turned.csv")["mean_cost"], evaluate("heldout.csv")["mean_cost"]);
}

#[test]
fn decision_columns_are_stable() {
    let folder = workshop();
    let run = line(folder.path(), &format!("decide router.safetensors heldout.csv {TASK} --keep id")).ok();
    let (header, rows) = parse_csv(&run.stdout);
    let wanted = "id,cell,support,action,label,irreducible,reducible,cost_predict,cost_route_expert,cost_route_big,cost_abstain,\
         reason,next_best";
    assert_eq!(header.join(","), wanted);
    let ids: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(ids, (0..200).map(|i| format!("q{i}")).collect::<Vec<_>>());
    // The label is the top class of the prediction.
    for (row, probs) in rows.iter().zip(&world::rows(200, 2).probs) {
        let top = (0..3).max_by(|&a, &b| probs[a].total_cmp(&probs[b])).unwrap();
        assert_eq!(row[4], world::CLASSES[top]);
    }
    assert!(run.stderr.contains("200 queries") && run.stderr.contains("expected cost per query"), "{run:?}");
    assert!(run.stderr.contains("pointsman evaluate"), "{run:?}");
}

#[test]
fn decisions_match_the_cells() {
    let folder = workshop();
    let shown = line(folder.path(), &format!("show router.safetensors {TASK} --json")).ok().json();
    let run = line(folder.path(), &format!("decide router.safetensors heldout.csv {TASK} --keep id -q")).ok();
    let (_, rows) = parse_csv(&run.stdout);
    assert_eq!(run.stderr, "");
    for row in rows {
        let cell = &shown["cells"][row[1].parse::<usize>().unwrap()];
        assert_eq!(cell["action"].as_str().unwrap(), row[3]);
        assert_eq!(cell["support"].as_str().unwrap(), row[2]);
        for (column, value) in [(5, &cell["irreducible"]), (6, &cell["reducible"]), (8, &cell["costs"]["route:expert"])]
        {
            assert_eq!(value.as_f64().unwrap().to_bits(), row[column].parse::<f64>().unwrap().to_bits());
        }
    }
}

#[test]
fn neither_threads_nor_batches_change_a_byte() {
    let folder = workshop();
    let base = line(folder.path(), &format!("decide router.safetensors heldout.csv {TASK} -o -")).ok().stdout;
    for (threads, batch) in [("1", "65536"), ("4", "7"), ("2", "1"), ("3", "200")] {
        let args = format!("decide router.safetensors heldout.csv {TASK} --batch-rows {batch}");
        let run = finish(command().current_dir(folder.path()).env("RAYON_NUM_THREADS", threads).args(args.split(' ')));
        assert_eq!(run.ok().stdout, base, "{threads} threads, batches of {batch}");
    }
    line(folder.path(), &format!("decide router.safetensors heldout.csv {TASK} -o out.csv")).ok();
    assert_eq!(fs::read_to_string(folder.path().join("out.csv")).unwrap(), base);
    let piped =
        line_with_input(folder.path(), &format!("decide router.safetensors - {TASK}"), &world::rows(200, 2).to_csv());
    assert_eq!(piped.ok().stdout, base);
}

#[test]
fn losses_with_acts_of_their_own_name_the_act() {
    let folder = workshop();
    let path = folder.path();
    let task = "abstain = 0.35\n[loss]\nacts = [\"ship\", \"hold\", \"ask\"]\ncost = [[0, 3, 1], [1, 0, 2], [0.4, 0.4, 0.4]]\n";
    fs::write(path.join("task.toml"), task).unwrap();
    let run = line(path, "decide router.safetensors heldout.csv --task task.toml --keep id").ok();
    let (header, rows) = parse_csv(&run.stdout);
    let wanted = "id,cell,support,action,label,irreducible,reducible,cost_predict,cost_abstain,reason,next_best,act";
    assert_eq!(header.join(","), wanted);
    assert!(rows.iter().all(|row| ["ship", "hold", "ask"].contains(&row[11].as_str())));
    assert!(rows.iter().any(|row| row[11] == "ask"));
}

#[test]
fn cost_matrices_are_bound_to_class_names_and_shown_with_them() {
    let folder = workshop();
    let path = folder.path();
    let write = |name: &str, loss: &str| {
        let text = format!("abstain = 0.9\n[loss]\nacts = [\"ship\", \"hold\"]\n{loss}\n");
        fs::write(path.join(name), text).unwrap();
    };
    write("named.toml", "classes = [\"cat\", \"dog\", \"owl\"]\ncost = [[0, 3, 1], [1, 0, 2]]");
    write("reversed.toml", "classes = [\"owl\", \"dog\", \"cat\"]\ncost = [[1, 3, 0], [2, 0, 1]]");
    write("table.toml", "cost = [{dog = 3, cat = 0, owl = 1}, {owl = 2, cat = 1, dog = 0}]");
    write("unnamed.toml", "cost = [[0, 3, 1], [1, 0, 2]]");
    write("other.toml", "classes = [\"cat\", \"dog\", \"cow\"]\ncost = [[0, 3, 1], [1, 0, 2]]");
    let decided = |task: &str| line(path, &format!("decide router.safetensors heldout.csv --task {task}")).ok();
    let wanted = decided("named.toml");
    for task in ["reversed.toml", "table.toml", "unnamed.toml"] {
        assert_eq!(decided(task).stdout, wanted.stdout, "{task}");
    }
    // The output shows which class each cost belongs to, and whether the matrix names it.
    for task in ["named.toml", "unnamed.toml"] {
        let warned = task == "unnamed.toml";
        let shown = line(path, &format!("show router.safetensors --task {task}")).ok().stdout;
        let evaluated = line(path, &format!("evaluate router.safetensors heldout.csv --task {task}")).ok().stdout;
        for text in [shown, evaluated, decided(task).stderr] {
            // As in the file: one row per act, one column per class.
            let row = |name: &str| -> Vec<&str> {
                let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
                line.split_whitespace().collect()
            };
            assert_eq!(row("cost of"), ["cost", "of", "if", "cat", "if", "dog", "if", "owl"], "{text}");
            assert_eq!(
                (row("ship"), row("hold")),
                (vec!["ship", "0", "3", "1"], vec!["hold", "1", "0", "2"]),
                "{text}"
            );
            assert!(!text.contains("\n\n\n"), "{text}");
            assert_eq!(text.contains("names no classes"), warned, "{text}");
        }
        let json = line(path, &format!("show router.safetensors --task {task} --json")).ok().json();
        let matrix = &json["task"]["cost_matrix"];
        assert_eq!(matrix["classes"], serde_json::json!(["cat", "dog", "owl"]));
        assert_eq!((matrix["cost"][0][1].as_f64(), matrix["classes_named"].as_bool()), (Some(3.0), Some(!warned)));
    }
    let refused = line(path, "decide router.safetensors heldout.csv --task other.toml");
    assert!(refused.code == 2 && refused.stderr.contains("only the matrix has cow"), "{refused:?}");
    assert!(refused.stderr.contains("only the predictions have owl"), "{refused:?}");
}

#[test]
fn label_is_the_predicted_class() {
    let folder = workshop();
    let path = folder.path();
    let table = "prob_no,prob_yes,votes_no,votes_yes\n0.6,0.4,3,2\n0.9,0.1,5,0\n0.2,0.8,1,4\n";
    fs::write(path.join("two.csv"), table).unwrap();
    line(path, "calibrate two.csv --partition top-class:10 -o two.st").ok();
    let (header, rows) = parse_csv(&line(path, "decide two.st two.csv --keep id --loss fn-fp:fp=1,fn=3").ok().stdout);
    assert_eq!((header[3].as_str(), header.last().unwrap().as_str()), ("label", "act"));
    let named: Vec<(&str, &str)> = rows.iter().map(|row| (row[3].as_str(), row.last().unwrap().as_str())).collect();
    assert_eq!(named, [("yes", "positive"), ("no", "negative"), ("yes", "positive")]);
    let (_, rows) = parse_csv(&line(path, "decide two.st two.csv --keep id --loss asymmetric:3").ok().stdout);
    assert_eq!(rows.iter().map(|row| row[3].as_str()).collect::<Vec<_>>(), ["yes", "no", "yes"]);
}

#[test]
fn recalibrated_router_answers_with_its_centroids() {
    let folder = workshop();
    let path = folder.path();
    line(path, "calibrate calibration.csv -o r.st --partition confidence:2 --recalibrate").ok();
    let shown = line(path, "show r.st --abstain 0.3 --json").ok().json();
    assert_eq!(shown["recalibrated"], true);
    let (_, rows) = parse_csv(&line(path, "decide r.st heldout.csv --keep id --abstain 0.3").ok().stdout);
    for row in rows {
        let centroid = shown["cells"][row[1].parse::<usize>().unwrap()]["centroid"].as_array().unwrap().clone();
        let share = |class: usize| centroid[class].as_f64().unwrap();
        let top = (0..3).rev().max_by(|&a, &b| share(a).total_cmp(&share(b))).unwrap();
        assert_eq!(row[4], world::CLASSES[top]);
    }
}

#[test]
fn unknown_costs_are_left_empty() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("one.csv"), "prob_a,prob_b,votes_a,votes_b\n0.6,0.4,1,0\n0.6,0.4,0,1\n").unwrap();
    line(path, "calibrate one.csv --partition top-class:10 -o one.st").ok();
    let run = line(path, "decide one.st one.csv --keep id --route 0.1").ok();
    let (header, rows) = parse_csv(&run.stdout);
    assert_eq!(
        header.join(","),
        "cell,support,action,label,irreducible,reducible,cost_predict,cost_route_oracle,reason,next_best"
    );
    assert_eq!(rows[0][2..6], ["undetermined", "a", "", ""]);
    assert_eq!(rows[0][7], "");
}

#[test]
fn features_are_found_by_name() {
    let folder = workshop();
    let path = folder.path();
    line(path, "calibrate calibration.csv -o f.st --partition confidence:2*features:x_length=3").ok();
    let (_, rows) = parse_csv(&line(path, "decide f.st heldout.csv --keep id --abstain 0.3").ok().stdout);
    let cells: std::collections::BTreeSet<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(cells.len(), 6);
}

#[test]
fn closed_pipe_is_a_success() {
    use std::io::Read;
    let folder = workshop();
    world::rows(50_000, 3).write_csv(&folder.path().join("many.csv"));
    let args = format!("decide router.safetensors many.csv {TASK}");
    let mut child = command()
        .current_dir(folder.path())
        .args(args.split(' '))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn unused_columns_may_be_invalid() {
    let folder = workshop();
    let path = folder.path();
    let text = "prob_cat,prob_dog,prob_owl,x_age,oracle_big_cat,weight,oracle_version\n0.2,0.3,0.5,,,,v3\n";
    fs::write(path.join("traffic.csv"), text).unwrap();
    line(path, "decide router.safetensors traffic.csv --abstain 0.3").ok();
    line(path, "calibrate calibration.csv -o f.st --partition features:x_length=3").ok();
    let run = line(path, "decide f.st traffic.csv --abstain 0.3");
    assert!(run.code == 2 && run.stderr.contains("no column x_length"), "{run:?}");
}

#[test]
fn sums_other_than_one_are_reported_once() {
    let folder = workshop();
    let path = folder.path();
    let mut text = "prob_cat,prob_dog,prob_owl,votes_cat,votes_dog,votes_owl\n".to_owned();
    text += &"0.2,0.3,0.5005,1,1,2\n0.2,0.3,0.5,1,1,2\n".repeat(10);
    fs::write(path.join("off.csv"), text).unwrap();
    for command in ["decide", "evaluate"] {
        let batches = if command == "decide" { " --batch-rows 3" } else { "" };
        let run = line(path, &format!("{command} router.safetensors off.csv --abstain 0.3{batches}")).ok();
        let displayed =
            run.stderr.lines().filter(|line| line.contains("the probabilities of 10 rows do not sum to one"));
        assert_eq!(displayed.count(), 1, "{run:?}");
    }
}
