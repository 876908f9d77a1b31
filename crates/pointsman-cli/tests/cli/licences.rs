//! The licence of every dependency built on this platform is one that `deny.toml` allows; `make audit` looks at all platforms.

use std::process::Command;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::repository;

/// `deny.toml`, as far as licences are concerned.
struct Allowed {
    licences: Vec<Licensee>,
    /// Crates whose manifest names no licence, and what they are under.
    clarified: Vec<(String, String)>,
}

impl Allowed {
    fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("deny.toml")).unwrap();
        let file: toml::Table = text.parse().unwrap();
        let licences = file["licenses"].as_table().unwrap();
        let text_of = |value: &toml::Value| value.as_str().unwrap().to_owned();
        Self {
            licences: licences["allow"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| Licensee::parse(name.as_str().unwrap()).unwrap())
                .collect(),
            clarified: licences["clarify"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| (text_of(&entry["crate"]), text_of(&entry["expression"])))
                .collect(),
        }
    }

    fn permits(&self, expression: &str) -> bool {
        let parsed = Expression::parse_mode(expression, ParseMode::LAX);
        parsed.is_ok_and(|parsed| parsed.evaluate(|needed| self.licences.iter().any(|own| own.satisfies(needed))))
    }
}

fn run(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = Allowed::read();
    let version = String::from_utf8(run("rustc", &["-vV"])).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Crates of other platforms are not there where nothing but this test was ever built.
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let metadata = run(&cargo, &["metadata", "--format-version", "1", "--locked", "--filter-platform", host]);
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50);
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let clarified =
            || allowed.clarified.iter().find(|(known, _)| known == name).map(|(_, licence)| licence.as_str());
        let licence = package["license"].as_str().or_else(clarified).unwrap_or("none");
        assert!(allowed.permits(licence), "{name} is under {licence}: not in deny.toml");
    }
}

#[test]
fn licences_outside_the_list_are_refused() {
    let allowed = Allowed::read();
    for met in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR GPL-3.0) AND Zlib", "MIT AND Zlib"] {
        assert!(allowed.permits(met), "{met}");
    }
    for unmet in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-3.0", "none", ""] {
        assert!(!allowed.permits(unmet), "{unmet}");
    }
}
