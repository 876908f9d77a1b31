//! The paper's experiments: how to get them, and the errors if they cannot be run.

use tempfile::TempDir;

use crate::line;

#[cfg(not(feature = "lab"))]
#[test]
fn without_the_lab_the_error_tells_how_to_build_it() {
    let folder = TempDir::new().unwrap();
    let run = line(folder.path(), "reproduce all --quick");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("cargo install --path crates/pointsman-cli --features lab"), "{run:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[cfg(feature = "lab")]
#[test]
fn invalid_experiments_are_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), b"").unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for (arguments, words) in [
        ("reproduce figures", &["unknown experiment \"figures\"", "three-way"][..]),
        ("reproduce all --seeds 0", &["seeds"]),
        ("reproduce all --seeds x", &["--seeds"]),
        ("reproduce routing --data data -o out", &["snli.npz", "https://", "CC BY", "probs", "votes", "split"]),
        ("reproduce cells --quick -o file", &["file"]),
    ] {
        let run = line(folder.path(), arguments);
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        words.iter().for_each(|word| assert!(run.stderr.contains(word), "{arguments}: {word} in {run:?}"));
    }
    std::fs::write(folder.path().join("data/snli.npz"), b"not an archive").unwrap();
    for name in ["cifar10h", "cifar10h-overconfident", "chaosnli"] {
        std::fs::write(folder.path().join(format!("data/{name}.npz")), b"PK").unwrap();
    }
    // Advice of several lines is printed as several lines.
    let run = line(folder.path(), "reproduce routing --data nowhere -o out");
    assert!(run.stderr.lines().filter(|line| line.starts_with("      ")).count() >= 4, "{run:?}");
    let run = line(folder.path(), "reproduce routing --data data -o out");
    assert!(run.code == 2 && run.stderr.contains(".npz"), "{run:?}");
}

#[cfg(feature = "lab")]
#[test]
fn interrupted_run_keeps_its_results() {
    use std::process::Stdio;
    let folder = TempDir::new().unwrap();
    let args = "reproduce cells --quick -o out";
    let mut child =
        crate::command().current_dir(folder.path()).args(args.split(' ')).stderr(Stdio::piped()).spawn().unwrap();
    crate::interrupt::wait_until(|| folder.path().join("out/parts").is_dir());
    assert_eq!(crate::interrupt::signal(&mut child, "-INT"), Some(2));
    let printed = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(printed.contains("run the same command again to continue"), "{printed}");
    // A model is there whole or not at all.
    let models = std::fs::read_dir(folder.path().join("out/models")).into_iter().flatten();
    assert!(models.into_iter().all(|file| file.unwrap().path().extension().is_some_and(|it| it == "safetensors")));
}
