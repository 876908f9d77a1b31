//! Every figure is drawn and well-formed.

use pointsman::{Loss, Task};
use pointsman_report::FIGURES;

use crate::world::{brier, hostile, oracles_of_every_kind, report_of};

/// Asserts that tags nest, attributes are quoted and all characters are printable.
#[track_caller]
fn assert_well_formed(xml: &str) {
    let (mut open, mut rest) = (Vec::new(), xml);
    assert!(xml.chars().all(|c| !c.is_control() || c == '\n'), "control characters");
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare > in text");
        for entity in rest[..start].split('&').skip(1) {
            assert!(entity.find(';').is_some_and(|end| end <= 6), "a bare &: {entity:.20}");
        }
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").expect("comments end").1;
            continue;
        }
        let end = rest.find('>').expect("tags end");
        let tag = &rest[..end];
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap().to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_ref(), Some(&name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?} stay open");
}

#[test]
fn every_figure_is_drawn() {
    let names = hostile();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for classes in [&["no", "yes"][..], &names] {
        let report = report_of(classes, 5, &brier());
        for figure in FIGURES {
            let picture = (figure.draw)(&report).unwrap_or_else(|| panic!("{} is not drawn", figure.name));
            let (svg, png) = (picture.svg(), picture.png().unwrap());
            assert!(svg.len() > 2_000 && svg.len() < 400_000, "{}: {} bytes", figure.name, svg.len());
            assert_well_formed(&svg);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", figure.name);
            assert!(!svg.contains("<script"), "{}", figure.name);
            assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 5_000, "{}", figure.name);
        }
    }
}

#[test]
fn tasks_without_routes_and_single_labels_are_drawn() {
    for (k, task) in [
        (5, Task::new(Loss::zero_one())),
        (1, brier()),
        (5, Task::new(Loss::brier()).abstain(0.0).unwrap()),
        (5, oracles_of_every_kind()),
    ] {
        let report = report_of(&["no", "yes"], k, &task);
        for figure in FIGURES {
            if let Some(picture) = (figure.draw)(&report) {
                assert_well_formed(&picture.svg());
                picture.png().unwrap();
            }
        }
    }
}

#[test]
fn without_detail_there_are_no_figures() {
    let mut report = report_of(&["no", "yes"], 5, &brier());
    report.detail = None;
    assert!(FIGURES.iter().all(|figure| (figure.draw)(&report).is_none()));
}

/// Class names of any script are drawn with a system font or reported as missing.
#[test]
fn names_of_every_script_are_drawn_or_reported_missing() {
    let report = report_of(&["缺货通知", "شكوى", "हिन्दी"], 5, &brier());
    for figure in FIGURES {
        let picture = (figure.draw)(&report).unwrap();
        assert_well_formed(&picture.svg());
        let (png, used) = picture.png_and_fonts().unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{}", figure.name);
        if figure.name == "mixtures" {
            assert!(!used.families.is_empty() || used.missing.contains(&'缺'), "{used:?}");
        }
    }
}
