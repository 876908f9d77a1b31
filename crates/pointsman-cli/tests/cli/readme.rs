//! Every command of the README runs, in its order, on the demo's tables.

use tempfile::TempDir;

use crate::{line, repository};

/// The blocks of a language, in order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_command_of_the_readme_runs() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o . --rows 2000").ok();
    for made in ["router.safetensors", "decisions.csv"] {
        std::fs::remove_file(folder.path().join(made)).unwrap();
    }
    let tasks = blocks(&readme, "toml");
    assert_eq!(tasks.len(), 1);
    std::fs::write(folder.path().join("task.toml"), tasks[0]).unwrap();
    let commands: Vec<&str> = blocks(&readme, "console")
        .iter()
        .flat_map(|block| block.lines())
        .filter_map(|l| l.strip_prefix("$ "))
        .collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let arguments = command.strip_prefix("pointsman ").expect("only pointsman is run");
        let run = line(folder.path(), arguments).ok();
        assert!(!run.stdout.is_empty() || folder.path().join("decisions.csv").exists(), "{command}: {run:?}");
    }
    assert!(folder.path().join("router.safetensors").exists() && folder.path().join("decisions.csv").exists());
}

#[test]
fn the_table_of_the_readme_is_read() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("own.csv"), blocks(&readme, "csv")[0]).unwrap();
    line(folder.path(), "calibrate own.csv -o own.safetensors").ok();
}

#[test]
fn the_commands_of_the_readme_are_those_of_the_makefile() {
    let makefile = std::fs::read_to_string(repository().join("Makefile")).unwrap();
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    for target in ["demo", "test", "bench", "install"] {
        assert!(makefile.contains(&format!("\n{target}:")) && readme.contains(&format!("make {target}")), "{target}");
    }
}
