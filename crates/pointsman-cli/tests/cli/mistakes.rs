//! Mistakes that are easily made, and what the messages say about them.

use std::fs;
use std::path::Path;

use crate::world::{CLASSES, Rows};
use crate::{line, workshop, world};

/// What is said of a command that is refused, in one line.
#[track_caller]
fn refused(folder: &Path, text: &str) -> String {
    let run = line(folder, text);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{text}: {run:?}");
    run.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The warnings of a command, in one line.
#[track_caller]
fn warnings(folder: &Path, text: &str) -> String {
    line(folder, text).ok().stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn missing_probabilities_are_refused_with_the_filter_that_leaves_them_out() {
    let folder = workshop();
    let text = fs::read_to_string(folder.path().join("calibration.csv")).unwrap();
    let header = text.lines().next().unwrap();
    let place = header.split(',').position(|name| name == "prob_dog").unwrap();
    let mut rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
    rows[3][place] = "n/a";
    let text: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    fs::write(folder.path().join("gaps.csv"), text).unwrap();
    let said = refused(folder.path(), "calibrate gaps.csv --partition top-class:3 -o g.safetensors");
    assert!(said.contains(r#""n/a" is not a number; to leave such rows out, add --where 'prob_dog!=n/a'"#), "{said}");
    line(folder.path(), "calibrate gaps.csv --partition top-class:3 -o g.safetensors --where prob_dog!=n/a").ok();
}

#[test]
fn bad_routes_get_hints_about_routes_only() {
    let folder = workshop();
    let decide =
        |route: &str| refused(folder.path(), &format!("decide router.safetensors heldout.csv --route {route}"));
    for (route, part) in [
        ("expert=5%", r#""5%" is not a price: write expert=0.05"#),
        ("8%", r#""8%" is not a price: write 0.08"#),
        ("expert", r#""expert" is not a price"#),
        ("expert=0,15", "use a decimal point, expert=0.15"),
        ("exprt=x", r#""x" is not a price"#),
        ("-0.1", "'--route <[NAME=]COST[,KIND]>': -0.1 is not a price"),
        ("expert=0.1,panel", "say how many experts"),
        ("expert=0.1,pannel:m=3", r#"did you mean "panel"?"#),
    ] {
        let text = decide(route);
        assert!(text.contains(part) && !text.contains("Unicode"), "{route}: {text}");
        assert!(part.contains("did you mean") || !text.contains("did you mean"), "{route}: {text}");
    }
    let budget = refused(folder.path(), "decide router.safetensors heldout.csv --route human=0.1 --budget human=20%");
    assert!(budget.contains("all routes together") && budget.contains("--cap human=20%"), "{budget}");
    let budget = refused(folder.path(), "decide router.safetensors heldout.csv --route human=0.1 --budget human=0.2");
    assert!(budget.contains("--cap human=20%"), "{budget}");
    assert!(refused(folder.path(), "show router.safetensors --loss brierr").contains(r#"did you mean "brier"?"#));
}

#[test]
fn the_hint_of_a_policy_keeps_its_task_and_its_file() {
    let folder = workshop();
    let path = folder.path();
    line(
        path,
        "compile router.safetensors --route llm=0.05,panel:m=1 --route expert=0.15 --abstain 0.5 -o policy.safetensors",
    )
    .ok();
    let hint = |flags: &str| {
        let text = refused(path, &format!("decide policy.safetensors heldout.csv {flags}"));
        text.split_once("hint: pointsman ").map(|(_, hint)| hint.to_owned()).unwrap_or_else(|| panic!("{text}"))
    };
    let task = "--route llm=0.05,panel:m=1,aggregate=mean --route expert=0.15 --abstain 0.5";
    // Prices in the unit of another loss are to be given anew.
    let unpriced = "--route llm=PRICE,panel:m=1,aggregate=mean --route expert=PRICE --abstain PRICE";
    let own = hint("--loss zero-one");
    assert_eq!(own, format!("compile ROUTER --loss zero-one {unpriced} -o policy-2.safetensors"));
    let some = hint("--loss zero-one --route expert=0.2");
    let unpriced = "--route expert=0.2 --route llm=PRICE,panel:m=1,aggregate=mean --abstain PRICE";
    assert_eq!(some, format!("compile ROUTER --loss zero-one {unpriced} -o policy-2.safetensors"));
    assert_eq!(hint("--target-loss 0.3"), format!("compile ROUTER {task} --target-loss 0.3 -o policy-2.safetensors"));
    // The command of the hint works, and leaves the policy as it is.
    let before = fs::read(path.join("policy.safetensors")).unwrap();
    line(path, &own.replace("ROUTER", "router.safetensors").replace("PRICE", "0.1")).ok();
    assert_eq!(fs::read(path.join("policy.safetensors")).unwrap(), before);
    line(path, "decide policy-2.safetensors heldout.csv --route llm=0.04 -o decisions.csv").ok();
}

#[test]
fn a_misspelt_route_is_refused_and_a_new_one_is_added() {
    let folder = workshop();
    let path = folder.path();
    line(path, "compile router.safetensors --route expert=0.15 -o policy.safetensors").ok();
    fs::write(path.join("task.toml"), "[[route]]\nname = \"people\"\ncost = 0.05\nkind = \"panel:m=3\"\n").unwrap();
    for (command, meant) in [
        ("decide policy.safetensors heldout.csv --route exprt=0.1 -o -", r#"no route "exprt": did you mean "expert"?"#),
        ("decide policy.safetensors heldout.csv --route Expert=0.1 -o -", r#"did you mean "expert"?"#),
        ("decide router.safetensors heldout.csv --task task.toml --route peple=0.1 -o -", r#"did you mean "people"?"#),
        ("show router.safetensors --task task.toml --route peple=0.1", r#"did you mean "people"?"#),
        ("evaluate router.safetensors heldout.csv --task task.toml --route poeple=0.1", r#"did you mean "people"?"#),
        ("decide policy.safetensors heldout.csv --route expret=0.1 -o -", r#"did you mean "expert"?"#),
    ] {
        let text = refused(path, command);
        assert!(text.contains(meant) && text.contains(",bayes"), "{command}: {text}");
    }
    for flags in
        ["--route llm=0.1", "--route exprt=0.1,bayes", "--route expert=0.1 --route expert2=0.2", "--route expert=0.1"]
    {
        line(path, &format!("decide policy.safetensors heldout.csv {flags} -o decisions.csv")).ok();
    }
}

#[test]
fn an_added_route_is_pointed_out_once() {
    let folder = workshop();
    let path = folder.path();
    line(path, "compile router.safetensors --route agent=0.15 --route jury=0.1,panel:m=3 -o policy.safetensors").ok();
    let said = "--route llm=0.1 adds an oracle to the task's, which has agent, jury: it is taken to know the label distribution; if that is \
                meant, write --route llm=0.1,bayes";
    let decide = "decide policy.safetensors heldout.csv -o decisions.csv";
    assert_eq!(warnings(path, &format!("{decide} --route llm=0.1")).matches(said).count(), 1);
    for flags in ["--route llm=0.1,bayes", "--route agent=0.1", "--abstain 0.3"] {
        let text = warnings(path, &format!("{decide} {flags}"));
        assert!(!text.contains("adds an oracle"), "{flags}: {text}");
    }
    // Without a file there is nothing to add to.
    let text = warnings(path, "show router.safetensors --route llm=0.1 --route agent=0.2");
    assert!(!text.contains("adds an oracle"), "{text}");
}

#[test]
fn a_price_without_a_name_is_that_of_the_only_route() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("one.toml"), "[[route]]\nname = \"agent\"\ncost = 0.05\n").unwrap();
    fs::write(
        path.join("two.toml"),
        "[[route]]\nname = \"agent\"\ncost = 0.05\n[[route]]\nname = \"jury\"\ncost = 0.1\n",
    )
    .unwrap();
    line(path, "compile router.safetensors --task one.toml -o one.safetensors").ok();
    line(path, "compile router.safetensors --task two.toml -o two.safetensors").ok();
    for command in ["decide one.safetensors heldout.csv", "decide router.safetensors heldout.csv --task one.toml"] {
        let routed = |route: &str| line(path, &format!("{command} --route {route} -o -")).ok();
        let (unnamed, named) = (routed("0.12"), routed("agent=0.12"));
        assert_eq!(unnamed.stdout, named.stdout, "{command}");
        assert!(!unnamed.stdout.contains("route_oracle") && !unnamed.stderr.contains("adds"), "{command}");
    }
    for command in ["decide two.safetensors heldout.csv -o -", "show router.safetensors --task two.toml"] {
        let text = refused(path, &format!("{command} --route 0.4"));
        assert!(
            text.contains("--route 0.4: says no name, and the task has the routes agent, jury: write one"),
            "{text}"
        );
        assert!(text.contains("--route agent=0.4"), "{text}");
    }
    let shown = line(path, "show router.safetensors --route 0.12 --confidence 0.9").ok().words();
    assert!(shown.contains("plan router.safetensors --route 0.12"), "{shown}");
}

#[test]
fn a_router_without_a_place_is_asked_for_with_an_example() {
    let folder = workshop();
    let text = refused(folder.path(), "calibrate calibration.csv");
    assert!(text.contains("as in 'pointsman calibrate calibration.csv -o router.safetensors'"), "{text}");
}

#[test]
fn a_column_of_labels_may_be_named_exactly() {
    let folder = workshop();
    let path = folder.path();
    let rows = world::rows(60, 1);
    let label = |votes: &[u32; 3]| CLASSES[votes.iter().position(|n| *n > 0).unwrap()];
    let row = |(p, votes): (&[f64; 3], &[u32; 3])| format!("{},{},{},{}\n", p[0], p[1], p[2], label(votes));
    let text: String = rows.probs.iter().zip(&rows.votes).map(row).collect();
    fs::write(path.join("single.csv"), format!("prob_cat,prob_dog,prob_owl,label_1\n{text}")).unwrap();
    let calibrate = "calibrate single.csv --partition pooled -o r.st --columns labels=label_";
    let text = warnings(path, &format!("{calibrate}1"));
    assert!(text.contains("one label per item"), "{text}");
    let exact = fs::read(path.join("r.st")).unwrap();
    line(path, calibrate).ok();
    assert_eq!(fs::read(path.join("r.st")).unwrap(), exact);
}

#[test]
fn a_sweep_of_a_route_by_its_name_alone_is_explained() {
    let folder = workshop();
    let text =
        refused(folder.path(), "evaluate router.safetensors heldout.csv --route expert=0.1 --sweep expert=0:0.3:0.1");
    assert!(text.contains("write route:expert=0:0.3:0.1"), "{text}");
}

#[test]
fn routers_and_policies_are_not_written_under_the_name_of_a_table() {
    let folder = workshop();
    let path = folder.path();
    for (command, what) in [
        ("calibrate calibration.csv --partition pooled -o out.csv", "a router is not a table"),
        ("compile router.safetensors --route 0.1 -o out.parquet", "a policy is not a table"),
    ] {
        let text = refused(path, command);
        assert!(text.contains(what) && text.contains("-o out.safetensors"), "{text}");
    }
    assert!(!path.join("out.csv").exists() && !path.join("out.parquet").exists());
}

#[test]
fn categories_as_features_are_explained() {
    let folder = workshop();
    let path = folder.path();
    let with = |value: &str| {
        let text = world::rows(40, 1).to_csv();
        let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        lines[3] = lines[3].rsplitn(3, ',').last().unwrap().to_owned() + &format!(",{value},0");
        fs::write(path.join("words.csv"), lines.join("\n") + "\n").unwrap();
        refused(path, "calibrate words.csv -o out.safetensors")
    };
    let text = with("email");
    assert!(
        text.contains("x_length") && text.contains("one column per value, 1 on rows that have the value"),
        "{text}"
    );
    let text = with("N/A");
    assert!(text.contains("if the value is missing, leave it empty") && !text.contains("category"), "{text}");
    let row = r#"{"probs": {"a": 0.5, "b": 0.5}, "votes": {"a": 1, "b": 2}, "features": {"source": "fax"}}"#;
    fs::write(path.join("words.jsonl"), row).unwrap();
    let text = refused(path, "calibrate words.jsonl -o out.safetensors");
    assert!(text.contains("features.source") && text.contains("one column per value"), "{text}");
}

#[test]
fn a_model_with_one_answer_lists_one_class_in_jsonl() {
    let folder = workshop();
    let path = folder.path();
    let rows = world::rows(60, 5);
    let mut text = String::new();
    for row in 0..60 {
        let probs: Vec<String> =
            CLASSES.iter().zip(rows.probs[row]).map(|(class, p)| format!("{class:?}: {p}")).collect();
        let votes: Vec<String> =
            CLASSES.iter().zip(rows.votes[row]).map(|(class, n)| format!("{class:?}: {n}")).collect();
        text += &format!(
            "{{\"probs\": {{{}}}, \"votes\": {{{}}}, \"oracles\": {{\"llm\": {{{:?}: 1.0}}}}}}\n",
            probs.join(", "),
            votes.join(", "),
            CLASSES[row % 3]
        );
    }
    fs::write(path.join("answers.jsonl"), &text).unwrap();
    line(path, "calibrate answers.jsonl --partition pooled -o answers.safetensors").ok();
    line(path, "show answers.safetensors --route llm=0.05,measured").ok();
    // A class that does not exist, and an answer that is no distribution, are still refused.
    fs::write(path.join("wrong.jsonl"), text.replacen("\"llm\": {\"dog\": 1.0}", "\"llm\": {\"cow\": 1.0}", 1))
        .unwrap();
    assert!(refused(path, "calibrate wrong.jsonl --partition pooled -o wrong.safetensors").contains("oracles.llm.cow"));
    fs::write(path.join("wrong.jsonl"), text.replacen("\"llm\": {\"dog\": 1.0}", "\"llm\": {\"dog\": 0.6}", 1))
        .unwrap();
    assert!(refused(path, "calibrate wrong.jsonl --partition pooled -o wrong.safetensors").contains("llm"));
}

#[test]
fn a_feature_keeps_its_name_if_its_column_is_named() {
    let folder = workshop();
    let path = folder.path();
    let run =
        line(path, "calibrate calibration.csv --partition tree --columns features=x_length -o tree.safetensors").ok();
    assert!(!(run.stdout + &run.stderr).contains("x_x_length"));
    // The same router, with and without the flag.
    line(path, "calibrate calibration.csv --partition tree -o plain.safetensors").ok();
    assert_eq!(fs::read(path.join("tree.safetensors")).unwrap(), fs::read(path.join("plain.safetensors")).unwrap());
    line(path, "decide tree.safetensors heldout.csv --route 0.05 -o decisions.csv").ok();
}

#[test]
fn labels_counted_twice_are_not_called_labelling_until_agreement() {
    let folder = workshop();
    let path = folder.path();
    // One to five labels, each counted twice: every row with two counts is unanimous.
    let mut rows = world::rows(300, 7);
    for (row, votes) in rows.votes.iter_mut().enumerate() {
        let mut kept = row as u32 % 5 + 1;
        for n in votes.iter_mut() {
            *n = (*n).min(kept);
            kept -= *n;
            *n *= 2;
        }
    }
    let sum = |votes: &[u32; 3]| votes.iter().sum::<u32>();
    let keep = |rows: &Rows, fewest: u32| {
        let mut kept = rows.clone();
        let wanted: Vec<usize> = (0..rows.ids.len()).filter(|&row| sum(&rows.votes[row]) >= fewest).collect();
        kept.ids = wanted.iter().map(|&row| rows.ids[row].clone()).collect();
        kept.probs = wanted.iter().map(|&row| rows.probs[row]).collect();
        kept.votes = wanted.iter().map(|&row| rows.votes[row]).collect();
        kept.length = wanted.iter().map(|&row| rows.length[row]).collect();
        kept
    };
    for fewest in [2, 4] {
        keep(&rows, fewest).write_csv(&path.join("double.csv"));
        for command in
            ["calibrate double.csv --partition pooled -o double.safetensors", "diagnose double.csv --route 0.1"]
        {
            let run = line(path, command).ok();
            let text = (run.stdout + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("multiples of 2") && text.contains("counted 2 times"), "{command}: {text}");
            assert!(!text.contains("until annotators agreed") && !text.contains("--first-labels"), "{command}: {text}");
            assert!(!text.contains("Counts cannot show it"), "{command}: {text}");
        }
    }
}

#[test]
fn swapped_votes_are_compared_with_chance_where_they_matter() {
    let folder = workshop();
    let path = folder.path();
    // Sure predictions; the votes for dog and owl are swapped.
    let mut rows = world::rows(300, 9);
    for row in 0..300 {
        let class = if row % 2 == 0 { 0 } else { 1 + row / 2 % 2 };
        rows.probs[row] = [0.02; 3];
        rows.probs[row][class] = 0.96;
        rows.votes[row] = [0; 3];
        rows.votes[row][[0, 2, 1][class]] = 5;
    }
    rows.write_csv(&path.join("swapped.csv"));
    let text = warnings(path, "calibrate swapped.csv --partition pooled -o swapped.safetensors");
    let wanted = "votes for owl fit dog, votes for dog fit owl. Where the model predicts one of these classes, labels agree with it in \
                  0.0 % of cases, less than the 50.0 % of pure chance; matched like that, in 100.0 %";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn few_rows_are_said_to_be_few() {
    let folder = workshop();
    let path = folder.path();
    world::rows(5, 3).write_csv(&path.join("five.csv"));
    let run = line(path, "evaluate router.safetensors five.csv --route expert=0.05 --abstain 0.3 -o report").ok();
    let warning = "5 held-out rows: from fewer than 30 rows, 95 % intervals are too narrow";
    let text = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(warning) && !run.stdout.contains("Saves "), "{run:?}");
    let page = fs::read_to_string(path.join("report/report.html")).unwrap();
    assert!(page.contains(warning) && page.contains("too few to say what Pointsman saves"), "{page}");
    let json = line(path, "evaluate router.safetensors five.csv --route expert=0.05 --json").ok().json();
    assert!(json["warnings"].to_string().contains(warning), "{}", json["warnings"]);
    assert!(json["savings"]["always-predict"]["differing_rows"].as_u64().is_some_and(|rows| rows <= 5), "{json}");
    // Enough rows: the warning is about rules that differ on few of them.
    let mut outcomes = [false; 2];
    for price in ["0.01", "0.05", "0.1", "0.15", "0.2", "0.3"] {
        let command = format!("evaluate router.safetensors heldout.csv --route expert={price}");
        let text = warnings(path, &command);
        let json = line(path, &format!("{command} --json")).ok().json();
        let differing = |saving: &serde_json::Value| saving["differing_rows"].as_u64().unwrap();
        let is_open = json["savings"].as_object().unwrap().values().any(|saving| (1..30).contains(&differing(saving)));
        assert_eq!(text.contains("the 95 % interval of a saving is too narrow"), is_open, "{price}: {text}");
        outcomes[usize::from(is_open)] = true;
    }
    assert!(outcomes[1], "no price has few rows that differ");
    // Calibration.
    for command in ["calibrate five.csv -o five.safetensors", "show five.safetensors --route 0.05"] {
        let text = warnings(path, command);
        assert!(text.contains("5 calibration rows: fewer than 30"), "{command}: {text}");
    }
}

#[test]
fn spending_without_a_price_is_refused_with_what_to_add() {
    let folder = workshop();
    let text = refused(folder.path(), "plan router.safetensors --route 0.1 --spend 10");
    assert!(text.contains("--spend 10: how many labels that buys") && text.contains("--label-price X"), "{text}");
}

/// The default loss is named too if it was asked for.
#[test]
fn the_hint_of_a_policy_names_the_loss_that_was_asked_for() {
    let folder = workshop();
    let path = folder.path();
    line(path, "compile router.safetensors --loss zero-one --route 0.05 -o policy.safetensors").ok();
    let text = refused(path, "decide policy.safetensors heldout.csv --loss brier");
    assert!(text.contains("hint: pointsman compile ROUTER --loss brier --route PRICE -o"), "{text}");
    assert!(text.contains("give --route and --abstain anew"), "{text}");
}

#[test]
fn sparse_cells_are_counted_and_limits_are_one_sentence() {
    let folder = workshop();
    let path = folder.path();
    let text = warnings(path, "calibrate calibration.csv --partition top-class:8 -o fine.safetensors");
    assert!(text.contains(" of the 24 cells ha") && !text.contains("% of the cells"), "{text}");
    let text = line(path, "show router.safetensors --route 0.01 --budget 0.15").ok().words();
    let sentence = text.split_once("Budget: 15.0 % of traffic").unwrap_or_else(|| panic!("{text}")).1;
    assert!(!sentence.split_once(" of such traffic is routed").unwrap().0.contains(':'), "{sentence}");
}

/// The next step of `decide` speaks of the labels and the format that were given.
#[test]
fn the_next_step_of_decide_fits_the_table() {
    let folder = workshop();
    let path = folder.path();
    let rows = world::rows(20, 5);
    let row = |place: usize| {
        let [cat, dog, owl] = rows.probs[place];
        format!("{{\"p\":{{\"cat\":{cat},\"dog\":{dog},\"owl\":{owl}}},\"said\":[\"cat\",\"dog\"]}}\n")
    };
    fs::write(path.join("q.jsonl"), (0..20).map(row).collect::<String>()).unwrap();
    let text = warnings(path, "decide router.safetensors q.jsonl --columns probs=p,labels=said --route 0.05 -o d.csv");
    assert!(text.contains("heldout.jsonl") && !text.contains("votes=PREFIX"), "{text}");
}

/// Writes a table with the answers of a model in the column `llm_answer`.
fn write_answers(path: &Path, rows: usize, seed: u64) {
    let text = world::rows(rows, seed).to_csv();
    let with_answer = |(row, line): (usize, &str)| match row {
        0 => format!("{line},llm_answer\n"),
        _ => format!("{line},{}\n", CLASSES[row % 3]),
    };
    fs::write(path, text.lines().enumerate().map(with_answer).collect::<String>()).unwrap();
}

#[test]
fn answers_whose_column_was_not_named_are_found() {
    let folder = workshop();
    let path = folder.path();
    write_answers(&path.join("cal.csv"), 200, 1);
    write_answers(&path.join("held.csv"), 100, 2);
    let named = "calibrate cal.csv --columns oracles=llm_answer --partition";
    line(path, &format!("{named} pooled -o llm.safetensors")).ok();
    line(path, &format!("{named} top-class:2 -o other.safetensors")).ok();
    let route = "--route llm_answer=0.05,measured";
    for command in
        ["evaluate llm.safetensors held.csv", "compare llm.safetensors other.safetensors held.csv", "diagnose cal.csv"]
    {
        let text = refused(path, &format!("{command} {route}"));
        let wanted = "were not read: there is a column llm_answer: give --columns oracles=llm_answer,";
        assert!(text.contains(wanted), "{text}");
        line(path, &format!("{command} {route} --columns oracles=llm_answer")).ok();
    }
    // The prefix `llm_` would give a model called `answer`.
    let text = refused(path, "calibrate cal.csv --columns oracles=llm -o new.safetensors");
    assert!(text.contains("give the whole name, --columns oracles=llm_answer;"), "{text}");
    let text = refused(path, &format!("show router.safetensors {route}"));
    assert!(text.contains("calibrate again with --columns oracles=NAME"), "{text}");
}

#[test]
fn a_file_of_annotations_in_the_place_of_the_table_is_recognised() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("labels.csv"), "item_id,annotator,label\nq1,ann,cat\nq1,bob,dog\n").unwrap();
    for command in [
        "diagnose labels.csv --annotations calibration.csv --route 0.1",
        "calibrate labels.csv calibration.csv -o new.safetensors",
        "plan router.safetensors --route 0.1 --abstain 0.4 --items labels.csv",
    ] {
        let text = refused(path, command);
        assert!(
            text.contains("this looks like a file of annotations") && text.contains("--annotations FILE"),
            "{text}"
        );
    }
}

#[test]
fn columns_of_labels_beside_annotations_are_refused_as_such() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("sheet.csv"), "id,prob_a,prob_b,label_1,label_2\n1,1,0,a,b\n2,0,1,b,b\n").unwrap();
    fs::write(path.join("labels.csv"), "id,label\n1,a\n2,b\n").unwrap();
    let text = refused(path, "calibrate sheet.csv --annotations labels.csv --columns labels=label_ -o new.safetensors");
    assert!(text.contains("labels=label_ cannot be used with --annotations"), "{text}");
}

#[test]
fn a_column_of_final_labels_is_pointed_out() {
    let folder = workshop();
    let path = folder.path();
    let rows = "1,0,a,a,b,a\n0.4,0.6,b,a,b,b\n0,1,b,b,b,b\n";
    fs::write(path.join("sheet.csv"), format!("prob_a,prob_b,label_1,label_2,label_3,label_final\n{rows}")).unwrap();
    let calibrate = "calibrate sheet.csv --partition pooled --columns";
    let text = warnings(path, &format!("{calibrate} labels=label_ -o all.safetensors"));
    let names = "labels=label_1,labels=label_2,labels=label_3";
    assert!(text.contains("the column label_final is read as one more independent label of each item"), "{text}");
    assert!(text.contains(&format!("--columns {names} (in Python columns={{'labels': ['label_1', ")), "{text}");
    let text = warnings(path, &format!("{calibrate} {names} -o named.safetensors"));
    assert!(!text.contains("independent label of each item"), "{text}");
}

#[test]
fn actions_can_be_switched_off_and_the_next_step_says_what_it_leaves_out() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("task.toml"), "abstain = 0.3\n[[route]]\nname = \"team\"\ncost = 0.05\n").unwrap();
    let shown = line(path, "show router.safetensors --task task.toml --abstain none --json").ok().json();
    assert!(shown["task"]["abstain"].is_null() && shown["task"]["routes"][0]["name"] == "team", "{shown}");
    line(path, "compile router.safetensors --task task.toml -o policy.safetensors").ok();
    let decided = line(path, "decide policy.safetensors heldout.csv --abstain none --json").ok().json();
    assert!(decided["task"]["abstain"].is_null(), "{decided}");
    let text = warnings(path, "decide router.safetensors heldout.csv --task task.toml --abstain none -o d.csv");
    assert!(text.contains("--abstain none") && !text.contains("--without-route"), "{text}");
    let text = warnings(path, "decide router.safetensors heldout.csv --task task.toml --without-route team -o d.csv");
    assert!(text.contains("--without-route is left out, since evaluate has all routes of the task"), "{text}");
}

#[test]
fn labels_that_are_numbers_are_said_to_count_from_zero() {
    let folder = workshop();
    let path = folder.path();
    let numbered = |first: usize| {
        let labels: String = (0..300).map(|row| format!("q{row},{}\nq{row},{}\n", row % 3 + first, first)).collect();
        fs::write(path.join("labels.csv"), format!("id,label\n{labels}")).unwrap();
        format!("calibrate calibration.csv --annotations labels.csv --partition pooled -o numbered-{first}.safetensors")
    };
    let text = warnings(path, &numbered(0));
    assert!(
        text.contains("labels 0 to 2 were read as numbers of the classes, from 0: 0 is cat, 1 is dog, 2 is owl"),
        "{text}"
    );
    let text = refused(path, &numbered(1));
    assert!(text.contains("whose numbers count from 0: if the labels count the classes from 1"), "{text}");
    assert!(!text.contains("--ignore-label"), "{text}");
}

#[test]
fn explaining_by_id_without_a_column_of_ids_names_the_flag() {
    let folder = workshop();
    let path = folder.path();
    let text = world::rows(20, 3).to_csv().replacen("id,", "ticket,", 1);
    fs::write(path.join("tickets.csv"), text).unwrap();
    let explain = "decide router.safetensors tickets.csv --route 0.05 --explain q3";
    let text = refused(path, explain);
    assert!(text.contains("the table has no column id") && text.contains("--columns id=NAME"), "{text}");
    line(path, &format!("{explain} --columns id=ticket")).ok();
}

#[test]
fn files_of_settings_without_a_flag_get_it_named() {
    let folder = workshop();
    for (command, tip) in [
        ("compile router.safetensors prices.toml -o p.safetensors", "a task is given as '--task prices.toml'"),
        ("decide router.safetensors heldout.csv prices.toml", "a task is given as '--task prices.toml'"),
        ("show router.safetensors --route 0.1 --cap oracle=5", "give it to decide, evaluate or compare"),
        ("plan heldout.csv router.safetensors --route 0.1", "the router comes first"),
        ("plan router.safetensors heldout.csv --route 0.1", "items are given as '--items heldout.csv'"),
        ("task prices.toml", "a task file is verified by 'pointsman task check prices.toml'"),
        ("serve service.toml", "a configuration is given as '--config service.toml'"),
        ("-q serve service.toml", "a configuration is given as '--config service.toml'"),
    ] {
        let text = refused(folder.path(), command);
        assert!(text.contains(tip), "{command}: {text}");
    }
}
