//! Parts of a calibration, made and merged on the command line.

use std::fs;

use crate::{pointsman, workshop};

#[test]
fn merged_parts_are_the_router_of_all_rows() {
    let workshop = workshop();
    let at = |name: &str| workshop.path().join(name).to_str().unwrap().to_owned();
    let table = fs::read_to_string(at("calibration.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let like = at("router.safetensors");
    let mut parts = Vec::new();
    for (name, rows) in [("one", &rows[..rows.len() / 3]), ("two", &rows[rows.len() / 3..])] {
        let (csv, part) = (at(&format!("{name}.csv")), at(&format!("{name}.part")));
        fs::write(&csv, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
        let printed = pointsman(["calibrate", &csv, "--like", &like, "--part", "-o", &part]).ok().stdout;
        assert!(printed.contains(&format!("pointsman merge {part}")), "{printed}");
        parts.push(part);
    }
    let (whole, merged) = (at("whole.safetensors"), at("merged.safetensors"));
    pointsman(["calibrate", &at("calibration.csv"), "--like", &like, "-o", &whole]).ok();
    let printed = pointsman(["merge", &parts[1], &parts[0], "-o", &merged]).ok().stdout;
    assert!(printed.contains("from 2 parts"), "{printed}");
    assert_eq!(fs::read(&merged).unwrap(), fs::read(&whole).unwrap());
    let summary = pointsman(["merge", &parts[0], "-o", &merged, "--json"]).ok().json();
    assert_eq!(summary["rows"], rows.len() / 3);
}

#[test]
fn parts_of_other_routers_are_refused_by_name() {
    let workshop = workshop();
    let at = |name: &str| workshop.path().join(name).to_str().unwrap().to_owned();
    let (router, table) = (at("router.safetensors"), at("calibration.csv"));
    let other = at("other.safetensors");
    pointsman(["calibrate", &table, "--partition", "confidence:3", "-o", &other]).ok();
    for (like, part) in [(&router, "a.part"), (&other, "b.part")] {
        pointsman(["calibrate", &table, "--like", like, "--part", "-o", &at(part)]).ok();
    }
    let out = at("merged.safetensors");
    let printed = pointsman(["merge", &at("a.part"), &at("b.part"), "-o", &out]);
    assert_eq!(printed.code, 2, "{printed:?}");
    assert!(printed.stderr.contains("b.part: the parts differ in their partitions"), "{printed:?}");
    let printed = pointsman(["merge", &router, "-o", &out]);
    assert!(printed.code == 2 && printed.stderr.contains("router.safetensors"), "{printed:?}");
    let printed = pointsman(["merge", &at("a.part"), "-o", &at("a.part")]);
    assert!(printed.code == 2 && printed.stderr.contains("would be overwritten"), "{printed:?}");
    let printed = pointsman(["calibrate", &table, "--part", "-o", &out]);
    assert!(printed.code == 2 && printed.stderr.contains("--like"), "{printed:?}");
    assert!(!fs::exists(&out).unwrap());
}
