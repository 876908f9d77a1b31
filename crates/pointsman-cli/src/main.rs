//! The `pointsman` command: predict, route or abstain, from the command line.
//!
//! Arguments as typed ([`args`]) become checked values of the library: tasks ([`task`]), inputs ([`input`]) and outputs
//! ([`output`]). One module per command calls the core; of each, `json` is for scripts and `human` for the terminal, with
//! sentences from [`words`], drawn by [`render`]. All arithmetic on losses is the core's.

mod args;
mod calibrate;
mod certified;
mod check;
mod compare;
mod compile;
mod decide;
mod demo;
mod diagnose;
mod errors;
mod evaluate;
mod explain;
mod failure;
mod flags;
mod input;
mod interrupt;
mod json;
mod merge;
mod output;
mod plan;
mod progress;
mod render;
mod reproduce;
mod serve;
mod show;
mod stats;
mod suggest;
mod task;
mod what_if;
mod words;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, TaskCommand};

/// The service allocates on several threads at once, for which the allocator of the system is slow.
#[cfg(feature = "serve")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    failure::silence_parser_panics();
    let cli = Cli::try_parse().unwrap_or_else(|error| with_better_tip(error).exit());
    // The service handles signals itself: it finishes open requests before it ends.
    if !matches!(cli.command, Command::Serve(_)) {
        interrupt::install();
    }
    render::set_quiet(cli.quiet);
    failure::report(run(cli.command))
}

/// The error with what to do instead, if it is a file without its flag or command, a router without a place, or a cap where there are no queries
/// to count.
fn with_better_tip(mut error: clap::Error) -> clap::Error {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(file))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
        && file.ends_with(".toml")
    {
        let tip = format!("a task file is verified by 'pointsman task check {file}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && missing.iter().any(|argument| argument == "--output <ROUTER>")
    {
        let mut words = std::env::args().skip(1).skip_while(|word| word.starts_with('-'));
        let (command, table) = (words.next().unwrap_or_default(), words.next().filter(|word| !word.starts_with('-')));
        let table = table.map_or("TABLE".to_owned(), |table| flags::shell_quoted_text(&table));
        let tip = format!("say where to write the router, as in 'pointsman {command} {table} -o router.safetensors'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    let tip = if argument == "--cap" {
        "a cap counts the queries of a table: give it to decide, evaluate or compare; '--budget' limits the share that is routed"
            .to_owned()
    } else {
        // Flags such as --quiet may come before the command.
        let mut words = std::env::args_os().skip(1);
        let command = words.find(|word| !word.to_string_lossy().starts_with('-')).unwrap_or_default();
        let is_file = !argument.starts_with('-');
        match argument.ends_with(".toml") {
            true if command == "serve" => format!("a configuration is given as '--config {argument}'"),
            true => format!("a task is given as '--task {argument}'"),
            false if command == "plan" && argument.ends_with(".safetensors") => {
                "the router comes first, and items are given as '--items TABLE'".to_owned()
            }
            false if command == "plan" && is_file => format!("items are given as '--items {argument}'"),
            false => return error,
        }
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Carries out one command.
fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Decide(args) => decide::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Task(TaskCommand::Check(args)) => check::task::run(&args),
        Command::WhatIf(args) => what_if::run(args),
        Command::Serve(args) => serve::run(&args),
        Command::Deployments(command) => serve::deployments(&command),
        Command::Versions(command) => serve::versions(&command),
        Command::Decisions(command) => serve::decisions(&command),
        Command::AdminLog(args) => serve::admin_log(&args),
        Command::Keys(command) => serve::keys(&command),
        Command::Backup(args) => serve::backup(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Completions { shell } => {
            // Generated into memory first: the generator panics if its writer fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pointsman", &mut script);
            std::io::Write::write_all(&mut std::io::stdout(), &script)?;
            Ok(())
        }
    }
}
