//! The `pointsman` command: predict, route or abstain, from the command line.
//!
//! Arguments as typed ([`args`]) become a checked plan ([`plan`]); one module a command carries it out; [`render`]
//! draws. All arithmetic on losses is the core's: nothing here does more than convert and draw.

mod args;
mod calibrate;
mod certified;
mod check;
mod compare;
mod decide;
mod demo;
mod diagnose;
mod evaluate;
mod explain;
mod failure;
mod interrupt;
mod json;
mod merge;
mod plan;
mod planning;
mod progress;
mod render;
mod reproduce;
mod show;
mod suggest;
mod tables;
mod task;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, TaskCommand};

fn main() -> ExitCode {
    interrupt::install();
    failure::quieten_parsers();
    let cli = Cli::parse();
    render::set_quiet(cli.quiet);
    failure::report(run(cli.command))
}

/// Carries out one command.
fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Decide(args) => decide::run(&args),
        Command::Plan(args) => planning::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Task(TaskCommand::Check(args)) => task::check(&args),
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
