//! Errors as one line and an exit code.
//!
//! 0: success. 1: the machine failed (disk full, a bug). 2: the input or the command line cannot be used. 3: a condition of `--fail-if`
//! holds. A closed pipe (`| head`) is a success.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use crate::interrupt::Interrupted;
use crate::render::style::{BAD, BOLD, DIM};
use crate::render::{self, printable};

/// Advice attached to an error as context.
#[derive(Debug, Clone)]
pub(crate) struct Hint(pub(crate) String);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The conditions of `--fail-if` that hold, as an error.
#[derive(Debug)]
pub(crate) struct ConditionHeld(pub(crate) String);

impl std::fmt::Display for ConditionHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConditionHeld {}

/// A failure inside the program.
#[derive(Debug)]
pub(crate) struct Bug(pub(crate) &'static str);

impl std::fmt::Display for Bug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed unexpectedly; this is a bug in pointsman", self.0)
    }
}

impl std::error::Error for Bug {}

/// Suppresses the messages of panics in parsers, which become errors.
pub(crate) fn silence_parser_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pointsman_table::is_guarded() {
            print(panic);
        }
    }));
}

/// Prints an error and gives the exit code.
pub(crate) fn report(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Interrupted>() {
        return ExitCode::from(130);
    }
    if let Some(ConditionHeld(conditions)) = error.downcast_ref() {
        let text = format!("{BAD}failed{BAD:#}{BOLD}:{BOLD:#} {}", printable(conditions));
        render::write_message(&text, "failed: ".len());
        return ExitCode::from(3);
    }
    let hint = error.downcast_ref::<Hint>().cloned();
    // A hint is the outermost context; below it is the message.
    let message: Vec<String> =
        error.chain().map(ToString::to_string).skip(usize::from(hint.is_some())).take(1).collect();
    // Messages may contain text of files.
    let text = format!("{BAD}error{BAD:#}{BOLD}:{BOLD:#} {}", printable(&message.join(": ")));
    render::write_message(&text, "error: ".len());
    let mut err = anstream::stderr().lock();
    // A closed standard error is ignored.
    if let Some(Hint(hint)) = hint {
        let mut head = "hint:";
        for line in hint.lines() {
            let _ = writeln!(err, "{DIM}{head:5}{DIM:#} {}", printable(line));
            head = "";
        }
    }
    ExitCode::from(if is_machine_failure(&error) { 1 } else { 2 })
}

fn io_errors(error: &anyhow::Error) -> impl Iterator<Item = &io::Error> {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    // Writers of other crates wrap the system's error and lose its kind, but not its text.
    let words = io::Error::from(ErrorKind::BrokenPipe).to_string();
    let has_words = |error: &io::Error| error.to_string().to_lowercase().contains(&words);
    io_errors(error).any(|error| error.kind() == ErrorKind::BrokenPipe || has_words(error))
}

fn is_machine_failure(error: &anyhow::Error) -> bool {
    use ErrorKind::{
        AlreadyExists, InvalidData, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
        PermissionDenied, ReadOnlyFilesystem, UnexpectedEof,
    };
    if error.is::<Bug>() {
        return true;
    }
    // These kinds are errors of the user; the others are the machine's.
    io_errors(error).next().is_some_and(|error| {
        !matches!(
            error.kind(),
            AlreadyExists
                | InvalidData
                | InvalidFilename
                | InvalidInput
                | IsADirectory
                | NotADirectory
                | NotFound
                | PermissionDenied
                | ReadOnlyFilesystem
                | UnexpectedEof
        )
    })
}
