//! The command line as typed.

mod calibrate;
mod client;
mod compile;
mod decide;
mod evaluate;
mod inspect;
mod serve;
mod simulate;
mod table;
mod task;
mod values;
mod what_if;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

pub(crate) use calibrate::{CalibrateArgs, KnownItems, MergeArgs};
pub(crate) use client::{
    AdminLogArgs, ClientArgs, DecisionsCommand, DeploymentsCommand, ExportArgs, ModeArg, VersionsCommand,
};
pub(crate) use compile::CompileArgs;
pub(crate) use decide::{DecideArgs, Keep, OnlyLabels, PlanArgs};
pub(crate) use evaluate::{CompareArgs, DiagnoseArgs, EvaluateArgs};
pub(crate) use inspect::{CheckArgs, ShowArgs, SortKey, TaskCheckArgs};
pub(crate) use serve::{BackupArgs, KeysCommand, LogFormat, ServeArgs, ServiceArgs};
pub(crate) use simulate::{DemoArgs, ReproduceArgs};
pub(crate) use table::{TableArgs, VotesArgs};
pub(crate) use task::TaskArgs;
pub(crate) use values::{AbstainArg, CapArg, OwnTable, RouteArg, UNNAMED_ROUTE};
pub(crate) use what_if::WhatIfArgs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Predict, route or abstain: decides per query between a cheap classifier, an expensive oracle and no answer
#[derive(Debug, Parser)]
#[command(name = "pointsman", version, styles = STYLES, max_term_width = 100, after_help = "\
To try it without data:
  pointsman demo

On your own table of prob_<class> and votes_<class> columns:
  pointsman diagnose calibration.csv --route 0.05 --abstain 0.3
  pointsman calibrate calibration.csv -o router.safetensors
  pointsman show router.safetensors --route 0.05 --abstain 0.3
  pointsman decide router.safetensors queries.csv --route 0.05 --abstain 0.3 \\
      -o decisions.csv
  pointsman evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.3")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print errors only; requested files, JSON and tables are still written
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Learn a router from a table of predictions and votes; no loss or price is involved
    Calibrate(CalibrateArgs),
    /// Merge parts of a calibration into a router
    Merge(MergeArgs),
    /// Show a router's cells and, for a task, the action in each and why
    Show(ShowArgs),
    /// Compile a router for a task: a file that decides without the calibration rows
    Compile(CompileArgs),
    /// Decide every row of a table: predict, route or abstain
    Decide(DecideArgs),
    /// List the cells that need more labels before their action is certain, and what that is worth
    Plan(PlanArgs),
    /// Evaluate a router on held-out rows: costs, regret, routing curves, calibration error
    Evaluate(EvaluateArgs),
    /// Compare routers or tasks on one held-out table: costs, paired differences, shares
    Compare(CompareArgs),
    /// Check whether Pointsman pays on a table, and whether its labels and rows are good enough to decide that
    Diagnose(DiagnoseArgs),
    /// Verify a router, a policy or a task file and describe it in words
    Check(CheckArgs),
    /// Verify task files and describe them in words
    #[command(subcommand, after_help = "Example:\n  pointsman task check triage.toml")]
    Task(TaskCommand),
    /// Decide logged queries by another task or router: what would change, and what that is expected to cost
    WhatIf(WhatIfArgs),
    /// Decide over HTTP: every decision is committed before it is answered
    Serve(ServeArgs),
    /// List, create and change the deployments of a service that runs
    #[command(subcommand, after_help = "Example:\n  pointsman deployments put intents --mode shadow")]
    Deployments(DeploymentsCommand),
    /// List, add, activate and roll back the policy versions of a deployment
    #[command(subcommand, after_help = "Example:\n  pointsman versions add intents policy.safetensors --activate")]
    Versions(VersionsCommand),
    /// Export the logged decisions of a deployment
    #[command(subcommand, after_help = "Example:\n  pointsman decisions export intents -o log.parquet")]
    Decisions(DecisionsCommand),
    /// List who changed deployments, versions and keys of a service, and when
    AdminLog(AdminLogArgs),
    /// Make, list and disable access keys of the service
    #[command(subcommand, after_help = "Example:\n  pointsman keys add website --scope decide")]
    Keys(KeysCommand),
    /// Copy the service's store into a folder, also while the service runs
    Backup(BackupArgs),
    /// Calibrate, decide and evaluate on simulated data, explaining each step
    Demo(DemoArgs),
    /// Repeat the paper's experiments (needs a build with the feature lab)
    Reproduce(ReproduceArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  pointsman completions bash > /etc/bash_completion.d/pointsman")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What can be done with a task file.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Verify a task file and describe it in words: loss, acts, routes, prices, limits, estimator
    Check(TaskCheckArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path}{} ", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("pointsman "), "{path}");
            command.get_subcommands().for_each(|one| check(one, &path));
        }
        check(&Cli::command(), "");
    }
}
