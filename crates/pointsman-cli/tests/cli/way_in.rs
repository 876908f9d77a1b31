//! What new users type first: outputs that must not destroy files, names of columns, numbers, and what is suggested next.

use std::fs;

use crate::{line, workshop};

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
