//! The flags of a task.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pointsman::task::Ties;
use pointsman::{Estimator, Loss};

use super::values::{AbstainArg, RouteArg, budget, price};
use crate::suggest::{self, suggest, suggest_examples};

/// The end of the help of every command with a task.
pub(super) const TASK_HELP: &str = "\
Losses: brier, cross-entropy, spherical, zero-one, fn-fp:fp=1,fn=3, three-part, \
asymmetric:2; any cost matrix in a task file.
Kinds of oracles: bayes (knows the label distribution; the default); \
panel:m=3,aggregate=mean, plurality or laplace (m experts who label as the \
calibration labels do); measured (the table has its predictions in \
oracle_<name>_<class>, or its answers in oracle_<name>).
Prices are in the unit of the loss.";

/// A loss, priced oracles and a price for abstaining, as typed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Task")]
pub(crate) struct TaskArgs {
    /// What a wrong answer costs [default: brier]
    #[arg(long, value_name = "L", value_parser = suggest::<Loss>(suggest::LOSSES), hide_possible_values = true)]
    pub(crate) loss: Option<Loss>,
    /// An oracle and what asking it costs; may be given several times
    #[arg(long, value_name = "[NAME=]COST[,KIND]", allow_negative_numbers = true,
          value_parser = suggest_examples::<RouteArg>(suggest::ROUTES), hide_possible_values = true)]
    pub(crate) route: Vec<RouteArg>,
    /// What abstaining costs; without it Pointsman never abstains. none switches off the abstaining of a task file or policy
    #[arg(long, value_name = "COST|none", allow_negative_numbers = true)]
    pub(crate) abstain: Option<AbstainArg>,
    /// Route at most this share of traffic like the calibration rows, as in 0.2 or 20%. It acts as a price found on those rows, so that
    /// other traffic may get another share; decide --cap is a hard limit
    #[arg(long, value_name = "SHARE", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: Option<f64>,
    /// Route as few queries as keep the expected loss at this value. All routes count with the same price, the one that reaches it, and
    /// their own prices only break ties, so that it can cost more than your prices suggest
    #[arg(long, value_name = "LOSS", value_parser = price, allow_negative_numbers = true, conflicts_with = "budget")]
    pub(crate) target_loss: Option<f64>,
    /// How the irreducible loss is estimated: auto, shrink, plugin, npmle or dirichlet [default: auto]
    #[arg(long, value_name = "E", value_parser = suggest::<Estimator>(suggest::ESTIMATORS), hide_possible_values = true)]
    pub(crate) estimator: Option<Estimator>,
    /// Which action wins a tie: frugal (never pay) or paper [default: frugal]
    #[arg(long, value_name = "T", value_parser = suggest::<Ties>(suggest::TIES), hide_possible_values = true)]
    pub(crate) ties: Option<Ties>,
    /// Read the task from a TOML file (- is standard input); flags override it. compare and show --confidence accept several files
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) task: Vec<PathBuf>,
}

impl TaskArgs {
    /// Whether any of them was given.
    pub(crate) fn is_given(&self) -> bool {
        let Self { loss, route, abstain, budget, target_loss, estimator, ties, task } = self;
        loss.is_some()
            || !route.is_empty()
            || abstain.is_some()
            || budget.is_some()
            || target_loss.is_some()
            || estimator.is_some()
            || ties.is_some()
            || !task.is_empty()
    }
}
