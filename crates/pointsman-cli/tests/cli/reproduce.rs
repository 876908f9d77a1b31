//! The paper's experiments: how to get them, and what is said when they cannot be run.

use tempfile::TempDir;

use crate::line;

#[cfg(not(feature = "lab"))]
#[test]
fn without_the_lab_it_says_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let run = line(folder.path(), "reproduce all --quick");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("cargo install --path crates/pointsman-cli --features lab"), "{run:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[cfg(feature = "lab")]
#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
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
    let run = line(folder.path(), "reproduce routing --data data -o out");
    assert!(run.code == 2 && run.stderr.contains(".npz"), "{run:?}");
}
