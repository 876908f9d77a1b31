//! Every dependency's licence is one that `deny.toml` allows.

use std::process::Command;

use serde_json::Value;

use crate::repository;

/// Whether a licence expression can be met with the allowed licences: one side of an OR, both sides of an AND.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let bare = expression.trim();
    for (word, any) in [(" OR ", true), ("/", true), (" AND ", false)] {
        if let Some(parts) = split_outside(bare, word) {
            return if any {
                parts.iter().any(|part| is_met(part, allowed))
            } else {
                parts.iter().all(|part| is_met(part, allowed))
            };
        }
    }
    match bare.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_met(inner, allowed),
        None => allowed.iter().any(|licence| licence == bare),
    }
}

/// The parts between `word`, if it occurs outside parentheses.
fn split_outside<'a>(text: &'a str, word: &str) -> Option<Vec<&'a str>> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 0 && i >= start && text[i..].starts_with(word) => {
                parts.push(&text[start..i]);
                start = i + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (parts.len() > 1).then_some(parts)
}

/// What `deny.toml` says of a crate whose manifest names no licence.
fn clarified<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let block =
        text.split("[[licenses.clarify]]").skip(1).find(|block| block.contains(&format!("crate = \"{name}\"")))?;
    block.split("expression = \"").nth(1)?.split('"').next()
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let text = std::fs::read_to_string(repository().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(allowed.contains(&"MIT".to_owned()));
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50);
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().or_else(|| clarified(&text, name)).unwrap_or("none");
        assert!(is_met(licence, &allowed), "{} is under {licence}: not in deny.toml", package["name"]);
    }
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = ["MIT".to_owned(), "Zlib".to_owned()];
    for met in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR GPL-3.0) AND Zlib", "MIT AND Zlib"] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-3.0", "none", ""] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
}
