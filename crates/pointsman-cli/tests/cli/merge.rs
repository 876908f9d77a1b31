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
        let said = pointsman(["calibrate", &csv, "--like", &like, "--part", "-o", &part]).ok().stdout;
        assert!(said.contains(&format!("pointsman merge {part}")), "{said}");
        parts.push(part);
    }
    let (whole, merged) = (at("whole.safetensors"), at("merged.safetensors"));
    pointsman(["calibrate", &at("calibration.csv"), "--like", &like, "-o", &whole]).ok();
    let said = pointsman(["merge", &parts[1], &parts[0], "-o", &merged]).ok().stdout;
    assert!(said.contains("from 2 parts"), "{said}");
    assert_eq!(fs::read(&merged).unwrap(), fs::read(&whole).unwrap());
    let summary = pointsman(["merge", &parts[0], "-o", &merged, "--json"]).ok().json();
    assert_eq!(summary["rows"], rows.len() / 3);
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let workshop = workshop();
    let at = |name: &str| workshop.path().join(name).to_str().unwrap().to_owned();
    let (router, table) = (at("router.safetensors"), at("calibration.csv"));
    let other = at("other.safetensors");
    pointsman(["calibrate", &table, "--partition", "confidence:3", "-o", &other]).ok();
    for (like, part) in [(&router, "a.part"), (&other, "b.part")] {
        pointsman(["calibrate", &table, "--like", like, "--part", "-o", &at(part)]).ok();
    }
    let out = at("merged.safetensors");
    let said = pointsman(["merge", &at("a.part"), &at("b.part"), "-o", &out]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("b.part: the parts differ in their partitions"), "{said:?}");
    let said = pointsman(["merge", &router, "-o", &out]);
    assert!(said.code == 2 && said.stderr.contains("router.safetensors"), "{said:?}");
    let said = pointsman(["merge", &at("a.part"), "-o", &at("a.part")]);
    assert!(said.code == 2 && said.stderr.contains("would be overwritten"), "{said:?}");
    let said = pointsman(["calibrate", &table, "--part", "-o", &out]);
    assert!(said.code == 2 && said.stderr.contains("--like"), "{said:?}");
    assert!(!fs::exists(&out).unwrap());
}
