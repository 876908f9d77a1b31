//! What `decide` writes beside its decisions: columns of the table, a summary, explanations of several queries.

use std::fs;

use crate::{has_keys, keys, line, line_with_input, parse_csv, repository, workshop, world};

const TASK: &str = "--route expert=0.05 --abstain 0.3";

#[test]
fn every_column_of_the_table_comes_before_the_decisions() {
    let folder = workshop();
    let path = folder.path();
    let decide = |keep: &str| line(path, &format!("decide router.safetensors heldout.csv {TASK}{keep}")).ok().stdout;
    let (all, id, none) = (decide(""), decide(" --keep id"), decide(" --keep none"));
    assert_eq!(decide(" --keep all"), all);
    let input = fs::read_to_string(path.join("heldout.csv")).unwrap();
    for (place, line) in all.lines().enumerate() {
        let (input, none) = (input.lines().nth(place).unwrap(), none.lines().nth(place).unwrap());
        assert_eq!(line, format!("{input},{none}"));
        assert_eq!(id.lines().nth(place).unwrap(), format!("{},{none}", input.split(',').next().unwrap()));
    }
    assert!(none.starts_with("cell,support,action,label,irreducible,"), "{none}");
}

/// What was written can be decided again, whatever the formats were: predictions stay predictions.
#[test]
fn kept_columns_can_be_decided_again_in_every_format() {
    let folder = workshop();
    let path = folder.path();
    let decide =
        |from: &str, flags: &str| line(path, &format!("decide router.safetensors {from} {TASK} {flags}")).ok().stdout;
    let wanted = decide("heldout.csv", "--keep id");
    for wide in ["heldout.csv", "a.tsv", "a.jsonl.gz", "a.parquet", "a.arrow", "a.npz"] {
        if wide != "heldout.csv" {
            decide("heldout.csv", &format!("-o {wide}"));
        }
        for out in ["b.csv.zst", "b.tsv", "b.jsonl", "b.parquet", "b.arrow", "b.npz"] {
            decide(wide, &format!("--batch-rows 64 -o {out}"));
            assert_eq!(decide(out, "--keep id"), wanted, "{wide} to {out}");
        }
    }
}

#[test]
fn columns_with_names_of_decision_columns_are_renamed() {
    let folder = workshop();
    let path = folder.path();
    let text = "id,prob_cat,prob_dog,prob_owl,label,input_label,note,note\na,0.2,0.3,0.5,owl,x,1,2\n";
    fs::write(path.join("q.csv"), text).unwrap();
    let run = line(path, &format!("decide router.safetensors q.csv {TASK} -o out.csv --json")).ok();
    let (header, rows) = parse_csv(&fs::read_to_string(path.join("out.csv")).unwrap());
    let kept = "id,prob_cat,prob_dog,prob_owl,input_input_label,input_label,note,input_note,cell,support,action,label";
    assert_eq!(header[..12].join(","), kept);
    assert_eq!(rows[0][..8].join(","), "a,0.2,0.3,0.5,owl,x,1,2");
    let printed = run.json();
    assert_eq!(printed["renamed_columns"]["label"], "input_input_label");
    assert!(printed["warnings"][0].as_str().unwrap().contains("label is written as input_input_label"), "{printed}");
    assert!(run.stderr.contains("warning: columns of the table have names of decision columns"), "{}", run.stderr);
    // Ids under another name keep it, and another column may be called id.
    let text = "uid,id,prob_cat,prob_dog,prob_owl\na,7,0.2,0.3,0.5\n";
    fs::write(path.join("q.csv"), text).unwrap();
    let run = line(path, &format!("decide router.safetensors q.csv {TASK} --columns id=uid")).ok();
    let (header, rows) = parse_csv(&run.stdout);
    assert_eq!(header[..6].join(","), "uid,id,prob_cat,prob_dog,prob_owl,cell");
    assert_eq!(rows[0][..5].join(","), "a,7,0.2,0.3,0.5");
}

#[test]
fn later_keys_of_jsonl_are_kept_or_reported() {
    let folder = workshop();
    let path = folder.path();
    let row = |more: &str| format!("{{\"id\":1,\"probs\":{{\"cat\":0.2,\"dog\":0.3,\"owl\":0.5}}{more}}}\n");
    fs::write(path.join("q.jsonl"), [row(""), row(",\"tags\":[\"x\"]"), row(",\"late\":{\"a\":null}")].concat())
        .unwrap();
    let decide = |flags: &str| line(path, &format!("decide router.safetensors q.jsonl {TASK} --batch-rows 2 {flags}"));
    decide("-o out.jsonl").ok();
    let rows: Vec<serde_json::Value> = fs::read_to_string(path.join("out.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&rows[0]["id"], &rows[1]["tags"], &rows[2]["late"]),
        (&1.into(), &serde_json::json!(["x"]), &serde_json::json!({"a": null}))
    );
    assert!(rows[0].get("late").is_none() && rows[2].get("tags").is_none());
    for out in ["out.csv", "out.parquet"] {
        let run = decide(&format!("-o {out}"));
        assert!(run.code == 2 && run.stderr.contains("column \"late\" is not in the first 2 rows"), "{run:?}");
        assert!(!path.join(out).exists());
    }
    decide("--keep id -o out.csv").ok();
}

#[test]
fn empty_table_gives_an_empty_table() {
    let folder = workshop();
    let path = folder.path();
    let header = "id,prob_cat,prob_dog,prob_owl,note";
    fs::write(path.join("none.csv"), format!("{header}\n")).unwrap();
    fs::write(path.join("none.jsonl"), "").unwrap();
    let columns =
        "cell,support,action,label,irreducible,reducible,cost_predict,cost_route_expert,cost_abstain,reason,next_best";
    let run = line(path, &format!("decide router.safetensors none.csv {TASK}")).ok();
    assert_eq!(run.stdout, format!("{header},{columns}\n"));
    assert!(run.stderr.contains("0 queries"), "{}", run.stderr);
    let piped =
        line_with_input(path, &format!("decide router.safetensors - {TASK} --cap expert=5"), &format!("{header}\n"));
    assert_eq!(piped.ok().stdout, format!("{header},{columns},capped\n"));
    for out in ["out.parquet", "out.arrow", "out.npz", "out.tsv"] {
        line(path, &format!("decide router.safetensors none.csv {TASK} -o {out}")).ok();
        let again = line(path, &format!("decide router.safetensors {out} {TASK} --keep none")).ok();
        assert_eq!(again.stdout, format!("{columns}\n"), "{out}");
    }
    let run = line(path, &format!("decide router.safetensors none.jsonl {TASK} -o out.csv --json")).ok();
    assert_eq!(fs::read_to_string(path.join("out.csv")).unwrap(), format!("{columns}\n"));
    let printed = run.json();
    assert_eq!((&printed["rows"], &printed["expected_cost"]), (&0.into(), &serde_json::Value::Null));
    assert!(run.stdout.contains("\"predict\": 0.0") && !run.stdout.contains("-0.0"), "{}", run.stdout);
    // A wrong header is still wrong, and so is a filter that keeps nothing.
    fs::write(path.join("wrong.csv"), "id,prob_cat,prob_cow\n").unwrap();
    assert_eq!(line(path, &format!("decide router.safetensors wrong.csv {TASK}")).code, 2);
    assert_eq!(line(path, &format!("decide router.safetensors heldout.csv {TASK} --where id=nobody")).code, 2);
}

#[test]
fn summary_has_the_numbers_of_the_terminal() {
    let folder = workshop();
    let path = folder.path();
    let task = "--route expert=0.02 --abstain 0.6";
    let run = line(path, &format!("decide router.safetensors heldout.csv {task} --cap expert=10 --json")).ok();
    let printed = run.json();
    has_keys(
        &printed,
        &["rows", "task", "unit", "shares", "expected_cost", "standard_error", "support", "reasons", "warnings"],
    );
    assert_eq!((&printed["rows"], &printed["output"]), (&200.into(), &serde_json::Value::Null));
    assert_eq!(printed["caps"][0]["most"], 10);
    let (header, rows) =
        parse_csv(&line(path, &format!("decide router.safetensors heldout.csv {task} --cap expert=10")).ok().stdout);
    let column = |name: &str| header.iter().position(|other| other == name).unwrap();
    let (action, reason, next) = (column("action"), column("reason"), column("next_best"));
    for (name, n) in printed["reasons"].as_object().unwrap() {
        let there = rows.iter().filter(|row| row[reason] == *name).count();
        assert_eq!(n.as_u64().unwrap() as usize, there, "{name}");
    }
    for (name, share) in printed["shares"].as_object().unwrap() {
        let there = rows.iter().filter(|row| row[action] == *name).count() as f64 / 200.0;
        assert!((share.as_f64().unwrap() - there).abs() < 1e-12, "{name}");
    }
    assert!(printed["capped"]["moved"].as_u64() > Some(0));
    assert_eq!(printed["capped"]["moved"], printed["reasons"]["degraded"]);
    assert!(printed["capped"]["standard_error"].as_f64() > Some(0.0), "{}", printed["capped"]);
    assert!(
        rows.iter().all(|row| row[next] != row[action] && (row[reason] != "degraded" || row[next] == "route:expert"))
    );
    // What the schema says is there is all there is.
    let schema = fs::read_to_string(repository().join("docs/decide.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    for (value, schema) in [
        (&printed, &schema),
        (&printed["caps"][0], &schema["properties"]["caps"]["items"]),
        (&printed["capped"], &schema["properties"]["capped"]),
    ] {
        let known = keys(&schema["properties"]);
        assert!(keys(value).iter().all(|key| known.contains(key)), "{value}");
        has_keys(
            value,
            &schema["required"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect::<Vec<_>>(),
        );
    }
    let refused = line(path, &format!("decide router.safetensors heldout.csv {task} -o - --json"));
    assert!(refused.code == 2 && refused.stderr.contains("both would go to standard output"), "{refused:?}");
}

#[test]
fn several_queries_are_explained_by_id_or_row() {
    let folder = workshop();
    let path = folder.path();
    let explain = |table: &str, ids: &str| line(path, &format!("decide router.safetensors {table} {TASK} {ids}"));
    let run = explain("heldout.csv", "--explain q3,5 --explain q0 --json").ok().json();
    let rows: Vec<(u64, &str)> = run
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["row"].as_u64().unwrap(), it["asked_by"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [(4, "id"), (5, "row"), (1, "id")]);
    let text = explain("heldout.csv", "--explain q3,5").ok().stdout;
    assert!(text.contains("id q3 (row 4): ") && text.contains("row 5 (id q4): "), "{text}");
    assert!(text.contains("Reason: "), "{text}");
    // Ids that are numbers, and one with a comma.
    let (_, rows) = parse_csv(&world::rows(6, 2).to_csv());
    let mut table = "id,prob_cat,prob_dog,prob_owl\n".to_owned();
    for (row, id) in rows.iter().zip(["3", "2", "1", "\"2,1\"", "\"a,b\"", "a"]) {
        table += &format!("{id},{}\n", row[1..4].join(","));
    }
    fs::write(path.join("n.csv"), &table).unwrap();
    let rows = |ids: &str| -> Vec<u64> {
        let json = explain("n.csv", &format!("{ids} --json")).ok().json();
        let one = || vec![json["row"].as_u64().unwrap()];
        json.as_array().map_or_else(one, |all| all.iter().map(|it| it["row"].as_u64().unwrap()).collect())
    };
    assert_eq!(rows("--explain 1"), [3]);
    assert_eq!(rows("--explain 1,3"), [3, 1]);
    // Taken whole where there is such an id.
    assert_eq!(rows("--explain 2,1"), [4]);
    assert_eq!(rows("--explain a,b --explain a"), [5, 6]);
    let run = explain("n.csv", "--explain 1,5");
    assert!(
        run.code == 2 && run.stderr.contains("no row has the id \"5\"") && run.stderr.contains("are numbers"),
        "{run:?}"
    );
    // Without ids numbers are rows.
    let bare: String = table
        .lines()
        .map(|line| {
            format!(
                "{}\n",
                line.rsplitn(4, ',').take(3).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(",")
            )
        })
        .collect();
    fs::write(path.join("bare.csv"), bare).unwrap();
    let text = explain("bare.csv", "--explain 2").ok().stdout;
    assert!(text.starts_with("row 2: "), "{text}");
}
