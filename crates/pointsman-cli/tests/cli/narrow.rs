//! Narrow terminals: no line is wider than the terminal, and nothing of what a wide one shows is missing.

use pointsman_testing::Rng;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

use crate::{Run, command, finish};

/// Columns of a narrow terminal.
const NARROW: usize = 60;

/// What a line of an example begins with.
const COMMANDS: [&str; 2] = ["pointsman ", "cat "];

/// Names as people have them: with spaces, in several scripts, and one that no line can hold.
const CLASSES: [&str; 12] = [
    "spam",
    "refund",
    "Überweisung dringend",
    "Kündigung des Vertrags wegen Umzugs ins Ausland",
    "アカウントの解約に関するお問い合わせ",
    "Donaudampfschifffahrtsgesellschaftskapitänsmützenangelegenheit",
    "заявка на возврат",
    "κλείσιμο λογαριασμού",
    "delivery",
    "praise",
    "complaint",
    "other things",
];

/// Writes rows with a number of classes, three votes and two features each.
fn write_table(path: &Path, classes: &[&str], rows: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut uniform = || rng.uniform();
    let named = |prefix: &str| classes.iter().map(|class| format!("{prefix}_{class}")).collect::<Vec<_>>().join(",");
    let mut text = format!("id,x_age,x_session length,{},{}\n", named("prob"), named("votes"));
    for row in 0..rows {
        let (age, length) = (18.0 + (60.0 * uniform()).floor(), 5_000.0 * uniform());
        let scores: Vec<f64> = classes.iter().map(|_| uniform().powi(if age < 40.0 { 8 } else { 2 }) + 0.01).collect();
        let total: f64 = scores.iter().sum();
        let mut votes = vec![0; classes.len()];
        for _ in 0..3 {
            // Long sessions are labelled at random.
            let mut left = uniform() * total;
            let drawn = scores.iter().position(|score| {
                left -= score;
                left < 0.0
            });
            let random = (uniform() * classes.len() as f64) as usize;
            votes[if length > 3_000.0 { random } else { drawn.unwrap_or(0) }] += 1;
        }
        let probs: Vec<String> = scores.iter().map(|score| format!("{:.6}", score / total)).collect();
        let votes: Vec<String> = votes.iter().map(ToString::to_string).collect();
        writeln!(text, "item-{row},{age},{length:.1},{},{}", probs.join(","), votes.join(",")).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// A folder with tables of twelve classes and of two, a router of each kind and two tasks; the tests share it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(new_folder).path()
}

fn new_folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, price) in [("cheap", 0.02), ("dear", 0.2)] {
        let task = format!("abstain = 0.3\n[[route]]\nname = \"people of the second line\"\ncost = {price}\n");
        fs::write(folder.path().join(format!("{name}.toml")), task).unwrap();
    }
    for (name, classes) in [("twelve", &CLASSES[..]), ("two", &["ham", "spam"])] {
        write_table(&folder.path().join(format!("{name}.csv")), classes, 900, 1);
        write_table(&folder.path().join(format!("{name}-heldout.csv")), classes, 300, 2);
    }
    for (table, partition, router) in [
        ("twelve", "tree", "tree"),
        ("twelve", "honest-forest:10", "honest"),
        ("two", "forest:10", "forest"),
        ("two", "top-class:3*features:x_age=2", "product"),
    ] {
        let line = format!("-q calibrate {table}.csv -o {router}.st --partition {partition}");
        run(folder.path(), &line, None);
    }
    folder
}

#[track_caller]
fn run(folder: &Path, line: &str, columns: Option<usize>) -> Run {
    let mut command = command();
    command.current_dir(folder).args(line.split(' '));
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    finish(&mut command).ok()
}

/// That a command says the same in a narrow terminal as in a wide one, within its columns.
#[track_caller]
fn fits(folder: &Path, line: &str) {
    let (wide, narrow) = (run(folder, line, None), run(folder, line, Some(NARROW)));
    for text in [&narrow.stdout, &narrow.stderr] {
        // Warnings are one line each where nobody looks at a terminal.
        for line in text.lines().filter(|line| !line.starts_with("warning:")) {
            assert!(line.width() <= NARROW, "{} columns of {NARROW}: {line}", line.width());
        }
    }
    let (all, shown) = (printed(&wide), printed(&narrow));
    let missing: Vec<&str> = all.difference(&shown).copied().collect();
    assert!(missing.is_empty(), "{line} in {NARROW} columns leaves out {missing:?}:\n{}", narrow.stdout);
    assert_eq!(dots(&narrow), dots(&wide), "{line} in {NARROW} columns cuts something short:\n{}", narrow.stdout);
}

/// Words that fit on a line, and numbers: whatever may be broken is left out.
fn printed(run: &Run) -> BTreeSet<&str> {
    let is_text = |word: &&str| word.width() <= 16 && word.chars().any(char::is_alphanumeric);
    run.stdout.split_whitespace().chain(run.stderr.split_whitespace()).filter(is_text).collect()
}

fn dots(run: &Run) -> usize {
    run.stdout.matches('…').count()
}

#[test]
fn tables_of_cells_fit_the_terminal() {
    let folder = folder();
    let five =
        "--route a=0.01 --route b=0.02,panel:m=3 --route c=0.03 --route d=0.04 --route people=0.05 --abstain 0.3";
    for line in [
        "show tree.st".to_owned(),
        "show product.st".to_owned(),
        format!("show tree.st {five}"),
        format!("show forest.st {five}"),
        "show honest.st --route expert=0.05 --abstain 0.8 --confidence 0.9".to_owned(),
        "plan product.st --route expert=0.05 --abstain 0.3".to_owned(),
    ] {
        fits(folder, &line);
    }
}

#[test]
fn explanations_fit_the_terminal() {
    let folder = folder();
    for line in [
        "show honest.st --route expert=0.05 --abstain 0.8 --explain 0",
        "decide tree.st twelve-heldout.csv --route expert=0.05 --abstain 0.8 --explain item-7",
        "decide forest.st two-heldout.csv --route expert=0.05 --explain item-7",
    ] {
        fits(folder, line);
    }
}

#[test]
fn summaries_and_reports_fit_the_terminal() {
    let folder = folder();
    for line in [
        "calibrate twelve.csv -o x.st --partition top-class:2",
        "decide tree.st twelve-heldout.csv --route expert=0.05 --abstain 0.8 -o decisions.csv",
        "evaluate product.st two-heldout.csv --route expert=0.05 --abstain 0.3 --sweep abstain=0.1:0.5:0.1",
        "evaluate forest.st two-heldout.csv --route expert=0.05 --route people=0.04,panel:m=3",
        "diagnose twelve.csv --route expert=0.05 --abstain 0.8",
        "diagnose two.csv",
        "compare product.st two-heldout.csv --task cheap.toml --task dear.toml",
        "compare forest.st product.st two-heldout.csv --route expert=0.01 --cap expert=5",
        "task check cheap.toml",
        "task check cheap.toml --classes one-long-name,another-long-name,a-third-long-name",
        "compile tree.st --route expert=0.05 -o policy-of-a-long-name-for-one-line.st",
        "check policy-of-a-long-name-for-one-line.st",
        "check forest.st",
    ] {
        fits(folder, line);
    }
}

/// Help is broken by the terminal's width alone: no word stands alone because a line was broken twice.
#[test]
fn help_fits_the_terminal() {
    for name in ["calibrate", "merge", "show", "decide", "plan", "evaluate", "compare", "diagnose", "demo", "reproduce"]
    {
        let text = run(Path::new("."), &format!("{name} --help"), Some(80)).stdout;
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = [pair[0], pair[1]];
            assert!(line.width() <= 80, "{name}: {line}");
            // A line that ends early although the next word would have fitted was broken by hand.
            let indent = |line: &str| line.len() - line.trim_start().len();
            let prose = |line: &str| indent(line) == 0 && line.contains(' ') && !line.ends_with(['.', ':']);
            let word = next.split_whitespace().next().unwrap_or_default();
            if prose(line) && indent(next) == 0 && !next.is_empty() && !line.contains("Usage") {
                assert!(line.width() + 1 + word.width() > 80, "{name}: {line:?} is broken before {word:?}");
            }
        }
        examples_are_whole(name, &lines);
    }
}

/// That no line of an example is broken by the terminal: each is a command, or goes on from a line that ends in a backslash.
#[track_caller]
fn examples_are_whole(name: &str, lines: &[&str]) {
    let examples = lines.iter().skip_while(|line| !line.starts_with("Example")).skip(1);
    let examples: Vec<&str> = examples.copied().take_while(|line| line.is_empty() || line.starts_with(' ')).collect();
    let mut goes_on = false;
    for line in examples.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        assert!(goes_on || COMMANDS.iter().any(|command| line.starts_with(command)), "{name}: {line:?} is no command");
        goes_on = line.ends_with('\\');
    }
    assert!(!goes_on, "{name}: the last example goes on nowhere");
}

/// A cell is named as people would say it, wherever it is shown.
#[test]
fn names_of_cells_are_readable() {
    let folder = folder();
    let names = |router: &str| -> Vec<String> {
        let shown = run(folder, &format!("show {router} --json"), None).json();
        shown["cells"].as_array().unwrap().iter().map(|cell| cell["name"].as_str().unwrap().to_owned()).collect()
    };
    let product = names("product.st");
    assert!(product[0].starts_with("ham, confidence < 0.") && product[0].contains(" and x_age < "), "{product:?}");
    for name in names("forest.st") {
        assert!(name.starts_with("reducible loss ") && !name.contains(['-', '−']), "{name}");
    }
    let tree = names("tree.st");
    assert!(tree.iter().all(|name| name.contains(" < ") || name.contains(" ≥ ") || name.contains('–')), "{tree:?}");
    for router in ["product.st", "forest.st", "tree.st", "honest.st"] {
        let mut names = names(router);
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}
