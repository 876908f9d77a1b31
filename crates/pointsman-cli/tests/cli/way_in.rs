//! Commands that new users type first: outputs that must not destroy files, names of columns, numbers, next steps.

use std::fs;

use tempfile::TempDir;

use crate::{line, pointsman, workshop, world};

/// The command line that is suggested last.
fn suggested(text: &str) -> String {
    let last = text.lines().rev().find(|line| line.trim_start().starts_with("pointsman ")).unwrap();
    last.trim().strip_prefix("pointsman ").unwrap().to_owned()
}

#[test]
fn outputs_replace_only_outputs_of_their_kind() {
    let folder = workshop();
    let path = |name: &str| folder.path().join(name);
    let decide = "decide router.safetensors heldout.csv --route 0.05 -o";
    let plan = "plan router.safetensors --route 0.05 --abstain 0.3 --items calibration.csv -o";
    let calibrate = "calibrate calibration.csv --partition top-class:3 -o";
    fs::write(path("precious.csv"), "id,prob_a,prob_b\n1,0.5,0.5\n").unwrap();
    fs::write(path("notes.txt"), "remember the milk\n").unwrap();
    fs::copy(path("router.safetensors"), path("other.safetensors")).unwrap();
    line(folder.path(), &format!("{decide} decisions.csv")).ok();
    line(folder.path(), &format!("{decide} decisions.parquet")).ok();
    line(folder.path(), &format!("{plan} items.csv")).ok();
    line(folder.path(), "calibrate calibration.csv --like router.safetensors --part -o a.part").ok();
    let merge = "merge a.part -o";
    for (command, output, what) in [
        (calibrate, "precious.csv", "is a table, which would be lost: a router is written here"),
        (calibrate, "decisions.csv", "is a table of decisions, which would be lost"),
        (calibrate, "decisions.parquet", "is a table of decisions"),
        (calibrate, "notes.txt", "is another kind of file"),
        (merge, "precious.csv", "is a table, which would be lost: a router is written"),
        (plan, "precious.csv", "is a table, which would be lost: items to label are written"),
        (plan, "decisions.csv", "is a table of decisions"),
    ] {
        let before = fs::read(path(output)).unwrap();
        let run = line(folder.path(), &format!("{command} {output}"));
        assert!(run.code == 2 && run.stderr.contains(&format!("{output}: {what}")), "{run:?}");
        assert!(
            run.stderr.contains("choose another output") && run.stderr.contains("or remove the file first"),
            "{run:?}"
        );
        assert_eq!(fs::read(path(output)).unwrap(), before, "{command} {output}");
    }
    for (command, output, what) in [
        (decide, "other.safetensors", "is a router, which would be lost"),
        (decide, "a.part", "is a part of a calibration"),
        (decide, "precious.csv", "is a table, which would be lost: decisions are written here"),
        (decide, "items.csv", "is a table"),
        (plan, "other.safetensors", "is a router"),
    ] {
        let format = if command == decide { " --output-format csv" } else { "" };
        let before = fs::read(path(output)).unwrap();
        let run = line(folder.path(), &format!("{command} {output}{format}"));
        assert!(run.code == 2 && run.stderr.contains(&format!("{output}: {what}")), "{run:?}");
        assert_eq!(fs::read(path(output)).unwrap(), before, "{command} {output}");
    }
    // Earlier outputs, parts where routers are written, and empty files may go.
    fs::write(path("empty.csv"), "").unwrap();
    for (command, output) in [
        (calibrate, "other.safetensors"),
        (calibrate, "a.part"),
        (decide, "decisions.csv"),
        (decide, "decisions.parquet"),
        (decide, "empty.csv"),
        (plan, "items.csv"),
    ] {
        line(folder.path(), &format!("{command} {output}")).ok();
    }
}

#[test]
fn features_by_name_and_prefixes_with_spaces_work_in_every_command() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, seed) in [("cal.csv", 1), ("held.csv", 2)] {
        let text = world::rows(300, seed).to_csv().replace("prob_", "score ").replace("id,", "Item ID,");
        fs::write(path(name), text.replacen("x_length", "length", 1)).unwrap();
    }
    let columns = "probs=score ,id=Item ID,features=length,features=split";
    let run = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| arg.replace("$", folder.path().to_str().unwrap())).collect();
        pointsman(args.iter().map(String::as_str).chain(["--columns", columns]))
    };
    let partition = ["--partition", "features:x_length=2"];
    let learned = run(&[&["calibrate", "$/cal.csv", "-o", "$/r.safetensors"][..], &partition].concat()).ok();
    assert!(learned.stdout.contains("used: x_length"), "{}", learned.stdout);
    let decided = run(&["decide", "$/r.safetensors", "$/held.csv", "--route", "0.05", "-o", "$/d.csv"]).ok();
    let next = "--columns 'probs=score ,id=Item ID,features=length,features=split'";
    assert!(decided.stderr.contains(next) && decided.stderr.contains("with votes=PREFIX added"), "{}", decided.stderr);
    run(&["evaluate", "$/r.safetensors", "$/held.csv", "--route", "0.05", "--no-calibration-error"]).ok();
    let plan = ["plan", "$/r.safetensors", "--route", "0.05", "--abstain", "0.3", "--items", "$/held.csv"];
    run(&plan).ok();
    let bare = pointsman(["decide", path("r.safetensors").to_str().unwrap(), path("held.csv").to_str().unwrap()]);
    assert!(bare.code == 2, "{bare:?}");
}

#[test]
fn assumed_columns_and_differing_annotators_are_reported() {
    let folder = TempDir::new().unwrap();
    let rows = world::rows(300, 3);
    let (mut items, mut labels) =
        (String::from("id,prob_cat,prob_dog,prob_owl\n"), String::from("ID,Label,Annotator\n"));
    for row in 0..300 {
        let [a, b, c] = rows.probs[row];
        items += &format!("{},{a},{b},{c}\n", rows.ids[row]);
        let own = rows.votes[row].iter().enumerate().flat_map(|(class, &n)| vec![world::CLASSES[class]; n as usize]);
        // One annotator always says the same; those before label in turns.
        for (place, label) in own.take(4).enumerate() {
            labels += &format!("{},{label},ann{}\n", rows.ids[row], (place + row) % 4);
        }
        labels += &format!("{},cat,lazy\n", rows.ids[row]);
    }
    fs::write(folder.path().join("items.csv"), items).unwrap();
    fs::write(folder.path().join("labels.csv"), &labels).unwrap();
    let calibrate = "calibrate items.csv --annotations labels.csv --partition top-class:2 -o r.safetensors";
    let run = line(folder.path(), calibrate).ok();
    assert!(run.stderr.contains("labels.csv: took ID, Label, Annotator for id, label, annotator"), "{}", run.stderr);
    assert!(run.stderr.contains("by more than chance explains (") && run.stderr.contains("lazy"), "{}", run.stderr);
    let run = line(folder.path(), "diagnose items.csv --annotations labels.csv").ok();
    assert!(
        run.stdout.contains("says cat on all 300 labels") && !run.stdout.contains("class-cat-high"),
        "{}",
        run.stdout
    );
    assert!(!run.stderr.contains("cannot be tested"), "{}", run.stderr);
    let run = line(folder.path(), "diagnose items.csv --annotations labels.csv --without lazy,ann1");
    assert!(run.code == 2 && run.stderr.contains("give --without once per annotator"), "{run:?}");
    // Sorted by annotator, the order does not tell who labelled first.
    let mut lines: Vec<&str> = labels.lines().skip(1).collect();
    lines.sort_by_key(|line| line.rsplit(',').next().map(str::to_owned));
    let sorted = format!("id,label,who\n{}\n", lines.join("\n"));
    fs::write(folder.path().join("sorted.csv"), sorted.replace("who", "worker")).unwrap();
    let run = line(folder.path(), "diagnose items.csv --annotations sorted.csv").ok();
    assert!(run.stderr.contains("sorted.csv has a column worker: add --columns annotator=worker"), "{}", run.stderr);
    let run = line(folder.path(), "diagnose items.csv --annotations sorted.csv --columns annotator=worker").ok();
    assert!(run.stderr.contains("copies the label before cannot be tested"), "{}", run.stderr);
}

#[test]
fn evaluate_and_compare_keep_the_caps_of_decide() {
    let folder = workshop();
    let path = folder.path();
    let decide = "decide router.safetensors heldout.csv --route expert=0.02 --cap expert=15 -o decisions.csv";
    let next = suggested(&line(path, decide).ok().stderr);
    assert!(next.ends_with("--route expert=0.02 --cap expert=7.5%"), "{next}");
    let none = suggested(&line(path, &decide.replace("expert=15", "expert=0")).ok().stderr);
    assert!(none.ends_with("--route expert=0.02 --cap expert=0%"), "{none}");
    let said = line(path, &next).ok().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Cap on expert: at most 15 of these rows;") && said.contains(", 15 with it."), "{said}");
    // The cap saves here by chance, so that the words are not those of a cost.
    assert!(said.contains("the next-best action instead, which changes the cost by −0.00"), "{said}");
    assert!(said.contains("ignore the cap"), "{said}");
    let task = "--route expert=0.02 --cap expert=15 --no-calibration-error";
    let found = line(path, &format!("evaluate router.safetensors heldout.csv {task} --json")).ok().json();
    let decided =
        line(path, "decide router.safetensors heldout.csv --route expert=0.02 --cap expert=15 --json").ok().json();
    assert_eq!(found["caps"], decided["caps"]);
    assert_eq!(found["capped"]["moved"], decided["capped"]["moved"]);
    for (action, share) in decided["shares"].as_object().unwrap() {
        let own = found["shares"][action].as_f64().unwrap();
        assert!((own - share.as_f64().unwrap()).abs() < 1e-12, "{action}: {own} and {share}");
    }
    assert!(found["capped"]["standard_error"].as_f64() > Some(0.0), "{}", found["capped"]);
    // A cap that is not used up changes nothing.
    let plain = line(path, "evaluate router.safetensors heldout.csv --route expert=0.02 --no-calibration-error --json");
    let loose =
        "evaluate router.safetensors heldout.csv --route expert=0.02 --cap expert=200 --no-calibration-error --json";
    let (plain, loose) = (plain.ok().json(), line(path, loose).ok().json());
    assert_eq!((&loose["mean_cost"], &loose["capped"]), (&plain["mean_cost"], &serde_json::Value::Null));
    let ignored = |flags: &str| {
        let command =
            format!("evaluate router.safetensors heldout.csv --route expert=0.02 --no-calibration-error {flags}");
        let words = line(path, &command).ok().words();
        words.split_once("the best in hindsight ignore ").map(|(_, rest)| rest.split(',').next().unwrap().to_owned())
    };
    for (flags, wanted) in [
        ("--cap expert=200", None),
        ("--cap expert=15", Some("the cap")),
        ("--cap expert=200 --budget 0.1", Some("the limit")),
        ("--cap expert=5 --budget 0.1", Some("the limit and the cap")),
    ] {
        assert_eq!(ignored(flags).as_deref(), wanted, "{flags}");
    }
    // Two prices under one cap.
    fs::write(path.join("a.toml"), "loss = \"brier\"\n[[route]]\nname = \"expert\"\ncost = 0.02\n").unwrap();
    fs::write(path.join("b.toml"), "loss = \"brier\"\n[[route]]\nname = \"expert\"\ncost = 0.01\n").unwrap();
    let compare = "compare router.safetensors heldout.csv a.toml b.toml --cap expert=15 --json";
    for policy in line(path, compare).ok().json()["policies"].as_array().unwrap() {
        assert_eq!(policy["shares"]["route:expert"], 0.075, "{policy}");
    }
    let refused = line(path, "compare router.safetensors heldout.csv a.toml b.toml --cap nobody=15");
    assert!(refused.code == 2 && refused.stderr.contains("no task has a route of this name"), "{refused:?}");
}

/// With two routes a threshold that keeps to the number of rows may break the cap of one, so there is none to compare with.
#[test]
fn conditions_on_savings_are_refused_where_the_best_threshold_is_unknown() {
    let folder = workshop();
    let path = folder.path();
    let command = "evaluate router.safetensors heldout.csv --route expert=0.02 --route other=0.03 --no-calibration-error \
                   --fail-if saving<-1";
    line(path, command).ok();
    let capped = format!("{command} --cap expert=5%");
    let refused = line(path, &capped);
    assert!(refused.code == 2 && refused.stderr.contains("best confidence threshold is unknown"), "{refused:?}");
    let said = line(path, &capped.replace("saving<-1", "cost>5")).ok().words();
    assert!(
        said.contains("The best confidence threshold, often the rule that is hardest to beat, is left out."),
        "{said}"
    );
    let sweep = line(path, &format!("{} --sweep route=0:0.2:0.1", command.replace(" --fail-if saving<-1", ""))).ok();
    assert!(sweep.words().contains("Sweep of the price of all routes, each at this price"), "{}", sweep.stdout);
}

#[test]
fn plan_prints_the_command_that_adds_new_items() {
    let folder = workshop();
    let pool: String = {
        let text = world::rows(400, 9).to_csv();
        let keep = |line: &str| line.split(',').take(4).collect::<Vec<_>>().join(",") + "\n";
        text.lines().map(keep).collect()
    };
    fs::write(folder.path().join("pool.csv"), pool).unwrap();
    let run = line(
        folder.path(),
        "plan router.safetensors --route 0.15 --abstain 0.4 --items pool.csv --columns label=Label -o new.csv",
    )
    .ok();
    if fs::read_to_string(folder.path().join("new.csv")).unwrap().lines().count() > 1 {
        assert!(
            suggested(&run.stdout).starts_with("calibrate pool.csv --annotations new-labels.csv"),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn numbers_are_parsed_or_refused_with_advice() {
    let folder = workshop();
    let show = |flags: &str| line(folder.path(), &format!("show router.safetensors {flags}"));
    for (flags, words) in [
        ("--route 0.1 --budget 20", "for 20 % write 0.2 or 20%"),
        ("--route llm=0,05", "use a decimal point, llm=0.05"),
        ("--route 0.1 --abstain 0,4", "use a decimal point: 0.4"),
        ("--route panel:m=3", "has no price: write NAME=PRICE,panel:m=3"),
        ("--route 0.1 --confidence 95", "for 95 % write 0.95 or 95%"),
        ("--route 0.1 --loss zero_one", "did you mean \"zero-one\"?"),
    ] {
        let run = show(flags);
        assert!(run.code == 2 && run.stderr.contains(words), "{flags}: {run:?}");
    }
    show("--route 0.1 --confidence 95%").ok();
    let plan = "plan router.safetensors --route 0.1 --abstain 0.4";
    let run = line(folder.path(), &format!("{plan} --label-price 0.01 --traffic 1M --json")).ok();
    assert_eq!(run.json()["purchase"]["traffic"], 1e6, "{run:?}");
    line(folder.path(), &format!("{plan} --max-labels 5,000")).ok();
    let run = line(folder.path(), &format!("{plan} --max-labels 5e2"));
    assert!(run.code == 2 && run.stderr.contains("write 5000, 5,000 or 5k"), "{run:?}");
    let run = line(folder.path(), &format!("{plan} --label-price 5")).ok();
    assert!(run.stderr.contains("a label costs 5, but a wrong answer costs at most"), "{}", run.stderr);
    let run = line(folder.path(), "diagnose calibration.csv --route expert=5 --abstain 30").ok();
    assert!(run.stderr.contains("route:expert costs 5, but a wrong answer costs at most"), "{}", run.stderr);
    for (text, words) in [
        ("[route]\nname = \"llm\"\ncost = 0.3\n", "line 1: "),
        (
            "[[route]]\nname = \"llm\"\ncost = 0.3\nbudget = 0.2\n",
            "budget belongs to the whole task: move it above the first [table]",
        ),
        ("[[route]]\nprice = 0.3\n", "did you mean cost?"),
        ("[[route]]\ncost = 0,30  # per query\n", "line 2: "),
        ("[[route]]\ncost = 0,30  # per query\n", "use a decimal point, cost = 0.30"),
        ("abstian = 1.5\n", "did you mean \"abstain\"?"),
    ] {
        fs::write(folder.path().join("t.toml"), text).unwrap();
        let run = line(folder.path(), "task check t.toml");
        assert!(run.code == 2 && run.stderr.contains(words), "{text}: {run:?}");
        assert!(!text.starts_with("[route]") || run.stderr.contains("write [[route]]"), "{run:?}");
    }
}

#[test]
fn decimal_commas_are_parsed_with_semicolons_as_delimiter() {
    let folder = workshop();
    let text = fs::read_to_string(folder.path().join("calibration.csv")).unwrap();
    let commas = text.replace(',', ";").replace('.', ",");
    fs::write(folder.path().join("export.csv"), &commas).unwrap();
    let calibrate = |table: &str, flags: &str, out: &str| {
        line(folder.path(), &format!("calibrate {table} {flags} --partition top-class:3 -o {out}"))
    };
    calibrate("export.csv", "--delimiter semicolon", "commas.safetensors").ok();
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("commas.safetensors") == bytes("router.safetensors"));
    let decide = "decide router.safetensors export.csv --delimiter semicolon --route 0.05 -o d.parquet";
    let run = line(folder.path(), decide).ok();
    assert!(run.stderr.contains("evaluate router.safetensors heldout.csv --delimiter ';' --route"), "{run:?}");
    let mixed = commas.replacen("0,", "0.", 40).replacen("0.", "0,", 1);
    fs::write(folder.path().join("export.csv"), mixed).unwrap();
    let run = calibrate("export.csv", "--delimiter semicolon", "mixed.safetensors");
    assert!(
        run.code == 2 && run.stderr.contains("has a point, but other numbers of the file have decimal commas"),
        "{run:?}"
    );
}

#[test]
fn only_sums_beyond_rounding_are_warned_of() {
    let folder = workshop();
    let header = "id,prob_cat,prob_dog,prob_owl\n";
    let decide = |row: &str| {
        fs::write(folder.path().join("q.csv"), format!("{header}1,{row}\n")).unwrap();
        line(folder.path(), "decide router.safetensors q.csv --route 0.05").ok().stderr
    };
    assert!(!decide("0.3333,0.3333,0.3333").contains("do not sum to one"));
    assert!(decide("0.33313579,0.33313579,0.33313579").contains("do not sum to one"));
}

#[test]
fn calibration_rows_are_not_called_held_out() {
    let folder = workshop();
    let evaluate = |table: &str| {
        line(folder.path(), &format!("evaluate router.safetensors {table} --route 0.05 --no-calibration-error"))
    };
    assert!(evaluate("heldout.csv").ok().stdout.contains("on 200 held-out rows"));
    let own = evaluate("calibration.csv -o report").ok();
    let warning = "these are rows that the router was calibrated on";
    assert!(own.stdout.contains("on 300 calibration rows;") && own.stderr.contains(warning), "{own:?}");
    let report = folder.path().join("report");
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    let summary = fs::read_to_string(report.join("figures/summary.svg")).unwrap();
    assert!(page.contains(&format!("Warning: {warning}")) && page.contains("Shares of the calibration rows"));
    assert!(summary.contains("300 calibration rows") && summary.contains("that the router was calibrated"));
    for figure in fs::read_dir(report.join("figures")).unwrap().map(|entry| entry.unwrap().path()) {
        let is_svg = figure.extension().is_some_and(|extension| extension == "svg");
        let text = if is_svg { fs::read_to_string(&figure).unwrap() } else { own.stdout.clone() };
        assert!(!text.contains("held-out") && !text.contains("held out"), "{}", figure.display());
    }
}

#[test]
fn calibration_rows_among_held_out_rows_are_counted() {
    let folder = workshop();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (calibration, held_out) = (read("calibration.csv"), read("heldout.csv"));
    let (_, rows) = held_out.split_once('\n').unwrap();
    fs::write(folder.path().join("all.csv"), calibration + rows).unwrap();
    let run = line(folder.path(), "evaluate router.safetensors all.csv --route 0.05 --no-calibration-error").ok();
    assert!(run.words().contains("on 500 rows, 300 of them calibration rows;"), "{run:?}");
    assert!(run.stderr.contains("300 of the 500 rows") && run.stderr.contains("--where COLUMN=VALUE"), "{run:?}");
}

#[test]
fn only_differing_classes_are_listed() {
    let folder = workshop();
    fs::write(folder.path().join("q.csv"), "prob_cat,prob_dgo,prob_owl\n0.5,0.2,0.3\n").unwrap();
    let run = line(folder.path(), "decide router.safetensors q.csv --route 0.05");
    let words = "only the table has dgo, only the router has dog";
    assert!(run.code == 2 && run.stderr.contains(words) && !run.stderr.contains("owl"), "{run:?}");
}
