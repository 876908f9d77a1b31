//! Trees and forests, from the table to the report.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{line, world};

fn demo() -> TempDir {
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o . --rows 600").ok();
    folder
}

/// Leaves a column of a CSV table out, or empties every third value of it.
fn rewrite(folder: &Path, from: &str, to: &str, column: &str, drop: bool) {
    let text = fs::read_to_string(folder.join(from)).unwrap();
    let place = text.lines().next().unwrap().split(',').position(|name| name == column).unwrap();
    let row = |(i, line): (usize, &str)| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if drop {
            cells.remove(place);
        } else if i % 3 == 1 {
            cells[place] = "";
        }
        cells.join(",") + "\n"
    };
    fs::write(folder.join(to), text.lines().enumerate().map(row).collect::<String>()).unwrap();
}

/// Constant features are left out with a warning, and queries need not have them; a forest's costs do not rest on its cells.
#[test]
fn constant_features_are_left_out() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let add = |text: String, values: &str| -> String {
        let lines = text.lines().enumerate();
        lines.map(|(i, line)| format!("{line},{}\n", if i == 0 { "x_flat,x_gone" } else { values })).collect()
    };
    fs::write(path.join("calibration.csv"), add(world::rows(120, 1).to_csv(), "7,")).unwrap();
    world::rows(50, 2).write_csv(&path.join("queries.csv"));
    for partition in ["forest:5", "honest-forest:5", "tree"] {
        let run = line(path, &format!("calibrate calibration.csv -o r.st --partition {partition}")).ok();
        assert!(run.stderr.contains("x_flat, x_gone are left out"), "{run:?}");
        assert_eq!(run.stdout.contains("costs are each query's own"), partition == "forest:5", "{run:?}");
        line(path, "decide r.st queries.csv --route 0.05 -o out.csv").ok();
    }
}

#[test]
fn forest_is_shown_decides_and_is_evaluated() {
    let folder = demo();
    let path = folder.path();
    for partition in ["tree", "honest-forest:20", "forest:20"] {
        let run = line(path, &format!("calibrate calibration.csv --partition {partition} -o r.st --seed 3")).ok();
        assert!(run.stdout.contains(partition), "{run:?}");
        line(path, &format!("calibrate calibration.csv --partition {partition} -o again.st --seed 3")).ok();
        assert_eq!(fs::read(path.join("r.st")).unwrap(), fs::read(path.join("again.st")).unwrap());
        let legend = line(path, "show r.st --route 0.05").ok().words();
        assert_eq!(
            legend.contains("rank by the reducible loss that the forest estimates"),
            partition == "forest:20",
            "{legend}"
        );
        let show = line(path, "show r.st --route 0.05 --abstain 0.3 --json").ok().json();
        assert_eq!(show["partition"], partition);
        assert!(show["cells"].as_array().unwrap().len() > 1, "{partition}");
        line(path, "show r.st").ok();
        line(path, "decide r.st heldout.csv --route 0.05 --abstain 0.3 -o d.csv").ok();
        let decided = fs::read_to_string(path.join("d.csv")).unwrap();
        let rows = decided.lines().count() - 1;
        let evaluation = line(path, "evaluate r.st heldout.csv --route 0.05 --abstain 0.3 --json").ok().json();
        assert_eq!(evaluation["rows"], rows);
        // Rows of a forest's cell take several actions.
        let cells = evaluation["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell["actions"].is_object() == (partition == "forest:20")), "{cells:?}");
        let mixed =
            |cell: &Value| cell["actions"].as_object().is_some_and(|shares| shares["predict"].as_f64() < Some(1.0));
        assert_eq!(cells.iter().any(mixed), partition == "forest:20", "{cells:?}");
        // What was decided is what was evaluated.
        let share = |action: &str| {
            let place = decided.lines().next().unwrap().split(',').position(|name| name == "action").unwrap();
            let taken = decided.lines().skip(1).filter(|line| line.split(',').nth(place) == Some(action));
            taken.count() as f64 / rows as f64
        };
        for action in ["predict", "route:oracle", "abstain"] {
            let evaluated = evaluation["shares"][action].as_f64().unwrap();
            assert!(
                (share(action) - evaluated).abs() < 1e-9,
                "{partition} {action}: {} and {evaluated}",
                share(action)
            );
        }
    }
    // Queries of one cell have costs of their own.
    let decided = fs::read_to_string(path.join("d.csv")).unwrap();
    let costs: std::collections::HashSet<&str> = decided.lines().skip(1).filter_map(|l| l.rsplit(',').nth(4)).collect();
    assert!(costs.len() > 100, "{} distinct costs", costs.len());
    line(path, "evaluate r.st heldout.csv --route 0.05 -o report").ok();
    assert!(path.join("report/report.html").exists());
}

#[test]
fn forest_is_evaluated_per_row() {
    let folder = demo();
    let path = folder.path();
    line(path, "calibrate calibration.csv --partition forest:30 -o r.st").ok();
    // Shares as they are decided, not of cells as wholes: each within four standard errors of 600 and of the held-out rows.
    let task = "--route 0.05 --abstain 0.3";
    let proof = line(path, &format!("evaluate r.st heldout.csv {task} --json")).ok().json();
    let printed = line(path, &format!("show r.st {task}")).ok().stdout;
    let printed = printed.lines().find(|line| line.contains("On traffic like")).unwrap().to_owned();
    for action in ["predict", "route:oracle", "abstain"] {
        let shown = printed.split(&format!("{action} ")).nth(1).map_or(0.0, |rest| {
            rest.split([' ', '\u{a0}', '%']).next().unwrap().parse::<f64>().unwrap_or_else(|_| panic!("{printed}"))
                / 100.0
        });
        let met = proof["shares"][action].as_f64().unwrap();
        assert!((shown - met).abs() < 0.1, "{action}: {shown} and {met}; {printed}");
    }
    // The best action a cell is no measure for what decides by row.
    let words = line(path, &format!("evaluate r.st heldout.csv {task}")).ok().stdout;
    assert!(!words.contains("best action per cell") && words.contains("above the best possible per query."), "{words}");
    assert!(proof["regret"]["cell-optimal"].is_number() && proof["gain"]["cell-optimal"].is_number());
    // An explanation shows the rows that the costs rest on.
    let why = line(path, &format!("decide r.st heldout.csv {task} --explain 3 --json")).ok().json();
    let weights: Vec<f64> =
        why["examples"].as_array().unwrap().iter().map(|row| row["weight"].as_f64().unwrap()).collect();
    assert!(why["trees"] == 30 && weights.len() == 5 && weights.windows(2).all(|w| w[0] >= w[1]), "{why}");
    let why = line(path, &format!("decide r.st heldout.csv {task} --explain 3")).ok().stdout;
    assert!(why.contains("leaves of 30 trees") && why.contains("trees were grown"), "{why}");
    // A cell as a whole is explained by its rows.
    let cell = line(path, &format!("show r.st {task} --explain 3 --json")).ok().json();
    assert!(cell["trees"].is_null() && cell["examples"][0]["weight"].is_null(), "{cell}");
    let met = line(path, "evaluate r.st heldout.csv --route 0.01 --budget 0.2 --json").ok().json();
    assert!((met["shares"]["route:oracle"].as_f64().unwrap() - 0.2).abs() < 0.1, "{}", met["shares"]);
}

#[test]
fn auto_gives_its_reason() {
    let folder = demo();
    let run = line(folder.path(), "calibrate calibration.csv --partition auto -o r.st").ok();
    assert!(run.stdout.contains("chosen") && run.stdout.contains("forest:200"), "{run:?}");
    for candidate in ["pooled 0.", "tree 0.", "honest-forest:200 0.", ", forest:200 0."] {
        assert!(run.words().replace(": forest", ", forest").contains(candidate), "{candidate} in {}", run.stdout);
    }
    let json = line(folder.path(), "calibrate calibration.csv --partition auto -o r.st --json").ok().json();
    let candidates = json["choice"]["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &candidates[0]["partition"]), (4, &json["partition"]));
    let reason = json["choice"]["reason"].as_str().unwrap();
    assert!(reason.contains("less than pooled cells") && run.words().contains(reason), "{reason}");
    assert_eq!(json["features"]["used"], serde_json::json!(["position"]));
    let run = line(folder.path(), "calibrate calibration.csv --certifiable -o c.st").ok();
    assert!(run.stdout.contains("features") && !run.stdout.contains("; costs are each query"), "{run:?}");
    for candidate in ["compared", "pooled 0.", "tree 0.", "honest-forest:200 0.", "forest:200 was not compared"] {
        assert!(run.words().contains(candidate), "{candidate} in {}", run.stdout);
    }
    line(folder.path(), "show c.st --route 0.05 --confidence 0.9").ok();
    let run = line(folder.path(), "show r.st --route 0.05 --confidence 0.9");
    assert!(run.code == 2 && run.stderr.contains("pointsman calibrate TABLE --certifiable -o ROUTER"), "{run:?}");
}

#[test]
fn only_trees_accept_missing_features() {
    let folder = demo();
    let path = folder.path();
    rewrite(path, "calibration.csv", "holes.csv", "x_position", false);
    rewrite(path, "heldout.csv", "queries.csv", "x_position", false);
    rewrite(path, "heldout.csv", "without.csv", "x_position", true);
    line(path, "calibrate holes.csv --partition forest:5 -o r.st").ok();
    line(path, "decide r.st queries.csv --route 0.05 -o d.csv").ok();
    let run = line(path, "decide r.st without.csv --route 0.05 -o e.csv");
    assert!(run.code == 2 && run.stderr.contains("x_position") && !path.join("e.csv").exists(), "{run:?}");
    let run = line(path, "calibrate holes.csv --partition features:x_position=5 -o e.st");
    assert!(run.code == 2 && run.stderr.contains("x_position") && run.stderr.contains("missing"), "{run:?}");
}

/// What the core refuses is named as the readers name it: file, data row and line.
#[test]
fn missing_value_is_reported_by_file_and_row() {
    let folder = demo();
    let path = folder.path();
    let rows: String = (0..80).map(|i| format!("{i},0.{},0.{},2,1,{}\n", 51 + i % 40, 49 - i % 40, i % 7)).collect();
    let header = "id,prob_a,prob_b,votes_a,votes_b,x_a\n";
    fs::write(path.join("whole.csv"), header.to_owned() + &rows).unwrap();
    let holed = rows.replacen("0.52,0.48,2,1,1", "0.52,0.48,2,1,", 1);
    fs::write(path.join("nn.csv"), header.to_owned() + &holed).unwrap();
    line(path, "calibrate whole.csv --partition features:x_a=2 -o r.st").ok();
    for command in [
        "calibrate nn.csv --partition features:x_a=2 -o e.st",
        "calibrate nn.csv --partition features:x_a=2 --where id=1 -o e.st",
        "diagnose nn.csv --partition features:x_a=2",
        "decide r.st nn.csv --route 0.05 -o e.csv",
        "evaluate r.st nn.csv --route 0.05",
    ] {
        let run = line(path, command);
        assert!(run.code == 2 && run.stderr.contains("nn.csv: row 2 (line 3), column x_a"), "{command}: {run:?}");
    }
}

#[test]
fn tree_reports_the_rows_it_keeps() {
    let folder = demo();
    let run = line(folder.path(), "calibrate calibration.csv --partition tree -o r.st").ok();
    assert!(run.stdout.contains("from 5,000 rows: 2,500 estimate, 2,500 shaped the cells"), "{run:?}");
    let shown = line(folder.path(), "show r.st --route 0.05").ok();
    assert!(shown.words().contains("cells shaped by other rows, costs in"), "{shown:?}");
    let run = line(folder.path(), "calibrate calibration.csv --partition top-class:10 -o r.st").ok();
    assert!(run.stdout.contains("from 5,000 rows\n"), "{run:?}");
}

/// More experts than labels, on every tree: it comes back.
#[test]
fn forest_prices_panels() {
    let folder = demo();
    line(folder.path(), "calibrate calibration.csv --partition forest:20 -o r.st").ok();
    let crowd = "show r.st --loss zero-one --route crowd=0.1,panel:m=300,aggregate=plurality --json";
    let cells = line(folder.path(), crowd).ok().json()["cells"].clone();
    assert!(cells.as_array().unwrap().iter().all(|cell| cell["costs"]["route:crowd"].as_f64().is_some()), "{cells}");
}

#[test]
fn impossible_forests_are_refused() {
    let folder = demo();
    let path = folder.path();
    let single = "prob_a,prob_b,votes_a,votes_b\n".to_owned() + &"0.6,0.4,1,0\n0.7,0.3,0,1\n".repeat(50);
    fs::write(path.join("single.csv"), single).unwrap();
    for (command, printed) in [
        ("calibrate calibration.csv --partition tree*confidence:3 -o e.st", "product"),
        ("calibrate calibration.csv --partition forest:0 -o e.st", "number of trees"),
        ("calibrate calibration.csv --partition honest-forest:5*confidence:3 -o e.st", "product"),
        ("calibrate single.csv --partition honest-forest:3 -o e.st", "two labels"),
    ] {
        let run = line(path, command);
        assert!(run.code == 2 && run.stderr.contains(printed) && !path.join("e.st").exists(), "{command}: {run:?}");
    }
    line(path, "calibrate calibration.csv --partition forest:3 -o r.st").ok();
    // Each of these names what can do it.
    let many = (0..17).map(|i| format!(" --route r{i}=0.1")).collect::<String>();
    for (command, printed) in [
        ("show r.st --route 0.1 --estimator npmle", "use shrink"),
        ("show r.st --route 0.1 --confidence 0.9", "certify"),
        (&format!("show r.st{many}"), "at most 16"),
        ("calibrate calibration.csv --partition forest:3 --recalibrate -o e.st", "--recalibrate"),
    ] {
        let run = line(path, command);
        let names = run.stderr.contains(printed) && run.stderr.contains("pointsman calibrate TABLE --certifiable");
        assert!(run.code == 2 && names, "{command}: {run:?}");
    }
}

/// Cells like all others: what a forest refuses works.
#[test]
fn honest_forest_is_certified() {
    let folder = demo();
    let path = folder.path();
    let run = line(path, "calibrate calibration.csv --partition honest-forest:20 --recalibrate -o served.st").ok();
    assert!(
        run.stdout.contains("from 5,000 rows: 2,500 estimate, 2,500 shaped the cells")
            && run.stdout.contains("mean label"),
        "{run:?}"
    );
    line(path, "calibrate calibration.csv --partition honest-forest:20 -o r.st").ok();
    let task = "--route 0.05 --abstain 0.3";
    for router in ["r.st", "served.st"] {
        let shown = line(path, &format!("show {router} {task} --confidence 0.9 --json")).ok().json();
        let cells = shown["cells"].as_array().unwrap();
        assert!((15..=25).contains(&cells.len()) && cells.iter().any(|cell| cell["certain"] == true), "{shown}");
        line(path, &format!("plan {router} {task} --confidence 0.9")).ok();
        line(path, &format!("evaluate {router} heldout.csv {task}")).ok();
        line(path, &format!("decide {router} heldout.csv {task} --confidence 0.9 -o d.csv")).ok();
    }
    for estimator in ["npmle", "dirichlet", "plugin"] {
        line(path, &format!("show r.st {task} --estimator {estimator}")).ok();
    }
    let why = line(path, &format!("decide r.st heldout.csv {task} --explain 3 --json")).ok().json();
    assert!(why["trees"].is_null() && why["certain"].is_boolean(), "{why}");
    let many = (0..30).map(|i| format!(" --route r{i}=0.1")).collect::<String>();
    line(path, &format!("show r.st{many}")).ok();
    let like = line(path, "calibrate heldout.csv --like r.st -o like.st").ok();
    assert!(!like.stderr.contains("--like keeps"), "{like:?}");
    let again = line(path, "calibrate calibration.csv --like r.st -o again.st").ok();
    assert!(again.stderr.contains("that --like keeps are in this table too"), "{again:?}");
    // The same items with another label each are the same items.
    let table = fs::read_to_string(path.join("calibration.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let more = |row: &str| {
        let mut values: Vec<String> = row.split(',').map(str::to_owned).collect();
        values[3] = (values[3].parse::<u32>().unwrap() + 1).to_string();
        values.join(",") + "\n"
    };
    fs::write(path.join("more.csv"), format!("{header}\n{}", rows.lines().map(more).collect::<String>())).unwrap();
    let more = line(path, "calibrate more.csv --like r.st -o more.st").ok();
    assert!(more.stderr.contains("that --like keeps are in this table too"), "{more:?}");
    let met = line(path, "evaluate r.st heldout.csv --route 0.01 --budget 0.2 --json").ok().json();
    assert!((met["shares"]["route:oracle"].as_f64().unwrap() - 0.2).abs() < 0.1, "{}", met["shares"]);
}
