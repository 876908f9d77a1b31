//! Arguments as one would type them, for the command lines of next steps.

use std::path::Path;

use crate::args::{CapArg, TableArgs, TaskArgs, VotesArgs};
use crate::render::number::plain;

/// A path as a shell needs it typed.
pub(crate) fn shell_quoted(path: &Path) -> String {
    shell_quoted_text(&path.display().to_string())
}

/// Text as a shell needs it typed.
pub(crate) fn shell_quoted_text(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The flags of a task.
pub(crate) fn task(args: &TaskArgs) -> String {
    match args.task.first() {
        Some(path) => task_of_file(path, args),
        None => task_without_file(args),
    }
}

/// The flags of a task that is read from this file.
pub(crate) fn task_of_file(path: &Path, args: &TaskArgs) -> String {
    format!(" --task {}{}", shell_quoted(path), task_without_file(args))
}

fn task_without_file(args: &TaskArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: String| flags.push_str(&format!(" --{flag} {value}"));
    if let Some(loss) = &args.loss {
        push("loss", loss.to_string());
    }
    for route in &args.route {
        let name = if route.name == "oracle" { String::new() } else { format!("{}=", route.name) };
        let kind = route.oracle.as_ref().map_or(String::new(), |oracle| format!(",{oracle}"));
        push("route", shell_quoted_text(&format!("{name}{}{kind}", plain(route.cost))));
    }
    if let Some(price) = args.abstain {
        push("abstain", plain(price));
    }
    if let Some(share) = args.budget {
        push("budget", share.to_string());
    }
    if let Some(loss) = args.target_loss {
        push("target-loss", loss.to_string());
    }
    if let Some(estimator) = args.estimator {
        push("estimator", estimator.to_string());
    }
    if let Some(ties) = args.ties {
        push("ties", ties.to_string());
    }
    flags
}

/// The flags of caps.
pub(crate) fn caps(args: &[CapArg]) -> String {
    let flag = |cap: &CapArg| format!(" --cap {}", shell_quoted_text(&format!("{}={}", cap.name, cap.size)));
    args.iter().map(flag).collect()
}

/// The flags that a table is read with.
pub(crate) fn reading(args: &TableArgs, votes: Option<&VotesArgs>) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: &str| flags.push_str(&format!(" --{flag} {}", shell_quoted_text(value)));
    args.filters.iter().for_each(|filter| push("where", &filter.to_string()));
    if let Some(votes) = votes {
        votes.annotations.iter().for_each(|path| push("annotations", &path.display().to_string()));
        votes.first_labels.iter().for_each(|first| push("first-labels", &first.to_string()));
        votes.without.iter().for_each(|name| push("without", name));
        flags.push_str(if votes.strict { " --strict" } else { "" });
    }
    flags + &layout(args)
}

/// The flags that another table of the same layout needs too.
pub(crate) fn layout(args: &TableArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: String| flags.push_str(&format!(" --{flag} {}", shell_quoted_text(&value)));
    args.format.iter().for_each(|format| push("format", format.to_string()));
    args.delimiter.iter().for_each(|delimiter| push("delimiter", delimiter.to_string()));
    args.columns.iter().for_each(|columns| push("columns", columns.to_string()));
    flags + if args.normalize { " --normalize" } else { "" }
}
