//! Every command of the README and of the book runs, in its order.

use pointsman_testing::Rng;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use tempfile::TempDir;

use crate::{line, repository};

/// The blocks of a language, in order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The files a page names, as in ```` ```csv,file=NAME ````.
fn named_blocks<'a>(text: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let fence = format!("```{language},file=");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().split_once('\n').unwrap()).collect()
}

/// Runs a page's commands in a folder, with its task file and tables if it has any, and says how many there were.
fn run_page(page: &str, folder: &Path) -> usize {
    if let Some(task) = blocks(page, "toml").first() {
        fs::write(folder.join("task.toml"), task).unwrap();
    }
    for (name, table) in named_blocks(page, "csv") {
        fs::write(folder.join(name), table).unwrap();
    }
    for (name, task) in named_blocks(page, "toml") {
        fs::write(folder.join(name), task).unwrap();
    }
    for (i, table) in blocks(page, "csv").into_iter().enumerate() {
        fs::write(folder.join(format!("own{i}.csv")), table).unwrap();
        line(folder, &format!("calibrate own{i}.csv -o own{i}.safetensors")).ok();
    }
    let lines = blocks(page, "console").into_iter().flat_map(str::lines);
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("$ ")).collect();
    for command in &commands {
        match command.strip_prefix("pointsman ").expect("only pointsman is run") {
            "demo -o world" => copy_folder(demo_world(), &folder.join("world")),
            arguments => drop(line(folder, arguments).ok()),
        }
    }
    commands.len()
}

/// A table for the README's strong model: 400 items of three classes, in two halves, with the answers of a model that errs less.
fn images() -> String {
    let mut table = String::from("id,split");
    for column in ["prob", "oracle_strong", "votes"] {
        ["cat", "dog", "frog"].iter().for_each(|class| table += &format!(",{column}_{class}"));
    }
    let mut rng = Rng::new(7);
    let mut below = |n: usize| rng.below(n);
    for id in 0..400 {
        let truth = below(3);
        // An answer: its class is right in a given share of rows, its confidence from 0.4 to 0.9.
        let mut answer = |right: usize| {
            let class = if below(100) < right { truth } else { below(3) };
            let confidence = 0.4 + 0.05 * below(11) as f64;
            let rest = (1.0 - confidence) / 2.0;
            (0..3).map(|c| format!("{:.4}", if c == class { confidence } else { rest })).collect::<Vec<_>>().join(",")
        };
        let (weak, strong) = (answer(60), answer(90));
        let mut votes = [0; 3];
        (0..5).for_each(|_| votes[if below(10) < 8 { truth } else { below(3) }] += 1);
        table += &format!("\n{id},{},{weak},{strong},{},{},{}", id % 2, votes[0], votes[1], votes[2]);
    }
    table + "\n"
}

/// Items, and their labels in a file of their own: three annotators label each of 60 items.
fn write_items_and_labels(folder: &Path) {
    let (mut items, mut labels) = ("id,prob_no,prob_yes\n".to_owned(), "id,label,annotator\n".to_owned());
    let mut rng = Rng::new(3);
    for id in 0..60 {
        let percent = 5 + rng.below(90);
        items += &format!("{id},{:.2},{:.2}\n", 1.0 - percent as f64 / 100.0, percent as f64 / 100.0);
        for annotator in ["ann", "bob", "cy"] {
            labels += &format!("{id},{},{annotator}\n", if rng.below(100) < percent { "yes" } else { "no" });
        }
    }
    fs::write(folder.join("items.csv"), items).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

#[test]
fn every_command_of_the_readme_runs() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o . --rows 2000").ok();
    for made in ["router.safetensors", "decisions.csv"] {
        fs::remove_file(folder.path().join(made)).unwrap();
    }
    fs::write(folder.path().join("images.csv"), images()).unwrap();
    write_items_and_labels(folder.path());
    assert!(run_page(&readme, folder.path()) >= 8);
    assert!(folder.path().join("images.safetensors").exists(), "the README has an oracle that was measured");
    assert!(folder.path().join("router.safetensors").exists() && folder.path().join("decisions.csv").exists());
}

#[test]
fn every_command_of_the_book_runs() {
    let source = repository().join("docs/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let run = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(summary.contains(&format!("({name})")), "{name} is not in the summary");
        let folder = TempDir::new().unwrap();
        let page = fs::read_to_string(path).unwrap();
        // What installs the program and makes its parts is for a shell; the program's own commands are run.
        let hidden = blocks(&page, "sh").into_iter().flat_map(str::lines).find(|line| line.starts_with("pointsman "));
        // Those of the service run against one: see the tests of `serve`.
        assert!(hidden.is_none() || name == "production.md", "{name}: {hidden:?}, a command that no test runs");
        run_page(&page, folder.path())
    };
    let pages = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
    let is_page =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("SUMMARY.md");
    let pages: Vec<PathBuf> = pages.filter(is_page).collect();
    // Two at a time: most commands use one core.
    let (even, odd) = (pages.iter().step_by(2), pages.iter().skip(1).step_by(2));
    let commands = thread::scope(|scope| {
        let other = scope.spawn(|| odd.map(|path| run(path)).sum::<usize>());
        even.map(|path| run(path)).sum::<usize>() + other.join().unwrap()
    });
    assert!(commands > 15, "{commands} commands");
}

#[test]
fn every_design_note_is_in_the_contents_and_in_the_summary() {
    let [contents, summary] = ["docs/design/README.md", "docs/src/SUMMARY.md"]
        .map(|page| fs::read_to_string(repository().join(page)).unwrap());
    let names = fs::read_dir(repository().join("docs/design")).unwrap();
    let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let notes: Vec<&String> = names.iter().filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert!(notes.len() > 40, "{notes:?}");
    for name in notes {
        assert!(contents.contains(&format!("({name})")), "{name} is not in the contents of the notes");
        assert!(summary.contains(&format!("(design/{name})")), "{name} is not in the summary");
    }
}

/// The folder that `demo -o world` writes, once for all pages. It has fewer rows than the book's, so that pages run faster: the test is
/// whether commands run, not what they print.
fn demo_world() -> &'static Path {
    static WORLD: OnceLock<TempDir> = OnceLock::new();
    let folder = WORLD.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        line(folder.path(), "demo -o world --rows 2000").ok();
        folder
    });
    Box::leak(folder.path().join("world").into_boxed_path())
}

/// Copies a folder with all that is in it.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_folder(&path, &target),
            false => assert!(fs::copy(&path, target).is_ok()),
        }
    }
}

#[test]
fn every_command_of_the_examples_runs() {
    let examples = repository().join("examples");
    let index = fs::read_to_string(examples.join("README.md")).unwrap();
    for name in ["support-intents", "content-moderation", "llm-judge"] {
        assert!(index.contains(&format!("({name}/README.md)")), "{name} is not in the index");
        let folder = TempDir::new().unwrap();
        copy_folder(&examples.join(name), folder.path());
        let page = fs::read_to_string(examples.join(name).join("README.md")).unwrap();
        assert_eq!(run_page(&page, folder.path()), 5, "{name}");
    }
}

#[test]
fn commands_of_the_readme_are_in_the_makefile() {
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    for target in ["demo", "test", "bench", "install"] {
        assert!(makefile.contains(&format!("\n{target}:")) && readme.contains(&format!("make {target}")), "{target}");
    }
}
