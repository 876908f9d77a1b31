//! Tests of the core that need no files except the golden cases and the sources.

mod all_losses;
mod annotators;
mod arrays;
mod auto;
mod available;
mod caps;
mod cells;
mod certificates;
mod coarser_cells;
mod comparable_cells;
mod cost_matrices;
mod decisions;
mod diagnosis;
mod errors;
mod estimators;
mod evaluation;
mod evaluation_properties;
mod forest;
mod forest_losses;
mod forest_parts;
mod golden;
mod honest_splits;
mod honest_tree;
mod invariance;
mod judgements;
mod layering;
mod limits;
mod log_certificates;
mod losses;
mod more_rows;
mod one_label_items;
mod oracles;
mod panels;
mod partials;
mod plans;
mod policy_parts;
mod prices;
mod reasons;
mod refilled_forest;
mod regressions;
mod routing_worlds;
mod stability;
mod theorems;
mod traffic;
mod tree_inputs;
mod tree_targets;
mod what_if;
mod world;

/// Simulations in worlds with a known truth: costs, intervals and forecasts that hold on average. They take seconds each and are a step of
/// their own in `make test`.
mod reproduction {
    mod best_possible;
    mod budget_plans;
    mod caps;
    mod comparison;
    mod copied_colleagues;
    mod corrections;
    mod diagnosis_limits;
    mod estimator_choice;
    mod few_rows;
    mod forecasts;
    mod forest_limits;
    mod gain_errors;
    mod honest_forest;
    mod independence;
    mod mixed_labels;
    mod one_label_rows;
    mod pooled;
    mod promises;
    mod small_savings;
    mod worth_of_plans;
}
