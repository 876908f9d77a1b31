//! A plan, as scripts read it.

use pointsman::certify::{CellPlan, CoarserCells, Offer, Plan, price_of_labels};
use pointsman::policy::Promise;
use pointsman::task::TaskSummary;
use pointsman::{CellId, Router, Task};
use serde::Serialize;

use super::buying::Buying;
use super::human::bias_of_worth;
use super::items::ListedItems;
use super::ranked;
use super::way::Way;
use crate::args::PlanArgs;
use crate::certified::Coarser;

/// A plan.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    confidence: f64,
    task: TaskSummary,
    unit: &'static str,
    regret_bound: f64,
    certain_share: f64,
    /// The labels that would make actions certain, each in three of four cases, of the kind of `--only`; null if none would.
    to_certainty: Option<ToCertainty>,
    /// Coarser partitions: those tried, and those that would make more actions certain, a forecast. Only if most of the traffic is
    /// undetermined.
    #[serde(skip_serializing_if = "Option::is_none")]
    coarser: Option<Coarser>,
    /// How worth is biased, as far as simulations show; null where they show no bias.
    bias_of_worth: Option<&'static str>,
    /// The expected cost of the policy now; null if labels give only bounds.
    promise: Option<Promise>,
    /// The labels that are expected to save more than they cost; only with a price and traffic, or a largest number of labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    purchase: Option<PurchaseReport>,
    /// The cells to begin with, if labels are expected to save anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    begin_with: Option<FirstCells>,
    /// The items to label, with --items.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<ItemsReport>,
    /// The undetermined cells, best first.
    cells: Vec<OpenCell>,
}

/// The labels that would make actions certain, over all cells where a reasonable number does.
#[derive(Debug, Serialize)]
struct ToCertainty {
    cells: Vec<u32>,
    labels: usize,
    /// The share of the traffic in these cells.
    share: f64,
}

/// The labels that are worth their price.
#[derive(Debug, Serialize)]
struct PurchaseReport {
    label_price: Option<f64>,
    traffic: Option<f64>,
    /// The largest number of labels, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_labels: Option<usize>,
    cells: Vec<u32>,
    labels: usize,
    /// Their price, if that of one label is known.
    cost: Option<f64>,
    /// What they are expected to save over the traffic or, if that is unknown, per thousand queries.
    saving: f64,
    saving_error: f64,
    /// Whether the price of a label and the traffic are known, so that the labels are worth it.
    pays: Option<bool>,
    /// The size of a pool of items like the traffic in which the new items are found; null if none are new.
    pool: Option<f64>,
    /// The labels that would be worth their price without the limit; with a limit, a price and traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels_without_limit: Option<usize>,
    /// The labels to buy in each cell.
    ways: Vec<Way>,
}

/// The first cells to label, the number of labels, and their worth per thousand queries.
#[derive(Debug, Serialize)]
struct FirstCells {
    cells: Vec<u32>,
    labels: usize,
    worth: f64,
    worth_error: f64,
    /// The size of a pool of items like the traffic in which the new items are found; null if none are new.
    pool: Option<f64>,
}

/// The items to label.
#[derive(Debug, Serialize)]
struct ItemsReport {
    items: usize,
    labels: usize,
    /// Their expected saving per thousand queries.
    worth: f64,
    worth_error: f64,
    /// Recommended labels of the other kind, which are not in this list: on new items or on those that the router has.
    labels_elsewhere: usize,
    /// New items that the plan needs and the table does not have.
    missing: usize,
    /// The size of a pool of items like the traffic in which the recommended new items are found; null if none are new.
    pool: Option<f64>,
    /// Items of the table that have labels elsewhere, and are left off the list.
    labelled: usize,
    /// Rows with labels that are not the router's, on which more labels would not show in its cells.
    not_of_router: usize,
    /// The router's rows that a table with labels does not have.
    rows_elsewhere: usize,
    /// The items of each cell.
    cells: Vec<ItemsOfCell>,
    /// The cells that the plan recommends such labels for, and of which the table has no items that it can use.
    cells_without_items: Vec<u32>,
    /// The cells of `labels_elsewhere`.
    cells_elsewhere: Vec<u32>,
    /// The price of the labels, and their expected saving over the traffic; only with a price, and traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saving: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saving_error: Option<f64>,
    /// The file they were written to, if any.
    output: Option<String>,
}

/// The items to label of one cell.
#[derive(Debug, Serialize)]
struct ItemsOfCell {
    cell: u32,
    items: usize,
    /// The fewest and most labels of one item.
    labels: [usize; 2],
}

/// The recommended labels: those that make the action certain or, if none do, those that bring most of what labels can save.
#[derive(Debug, Serialize)]
struct Recommended {
    more_labels: Option<usize>,
    more_items: Option<usize>,
    labels: usize,
    worth: f64,
    worth_error: f64,
    chance: f64,
}

impl From<Offer> for Recommended {
    fn from(Offer { more_labels, more_items, labels, worth, worth_error, chance, .. }: Offer) -> Self {
        Self { more_labels, more_items, labels, worth, worth_error, chance }
    }
}

/// A cell whose action is undetermined.
#[derive(Debug, Serialize)]
struct OpenCell {
    cell: u32,
    name: String,
    rows: usize,
    share: f64,
    action: String,
    rival: String,
    margin: Option<f64>,
    /// The most that the action may cost above the best, per thousand queries.
    at_stake: f64,
    /// The expected saving per thousand queries of the labels that make the action certain; if none do, of knowing the losses.
    worth: f64,
    worth_per_label: Option<f64>,
    /// The probability that they make it certain.
    chance: Option<f64>,
    /// The price of the recommended labels, their saving over the traffic, and the number of queries after which they have paid for
    /// themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saving: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pays_after: Option<f64>,
    more_labels: Option<usize>,
    chance_by_labels: Option<f64>,
    more_items: Option<usize>,
    chance_by_items: Option<f64>,
    /// Labels in all, by the cheaper of the two ways.
    labels: Option<usize>,
    /// The number of labels per new item.
    labels_per_new_item: usize,
    /// The recommended labels, whether or not they make the action certain; null if labels that can be bought are expected to save nothing.
    #[serde(rename = "asked")]
    recommended: Option<Recommended>,
}

impl OpenCell {
    fn new(plan: &CellPlan, router: &Router, args: &PlanArgs, buying: Buying<'_>) -> Self {
        let offer = buying.asked(plan);
        Self {
            cell: plan.cell.0,
            name: router.cells().name(plan.cell, router.classes()),
            rows: router.mixture(plan.cell).len(),
            share: plan.share,
            action: plan.action.clone(),
            rival: plan.rival.clone(),
            margin: plan.margin,
            at_stake: plan.at_stake,
            worth: plan.worth,
            worth_per_label: plan.worth_per_label(),
            chance: plan.chance,
            cost: args.label_price.zip(offer.as_ref()).map(|(price, offer)| offer.price(price)),
            saving: args.traffic.zip(offer.as_ref()).map(|(traffic, offer)| offer.saving(traffic)),
            pays_after: args.label_price.zip(offer.as_ref()).and_then(|(price, offer)| offer.pays_after(price)),
            more_labels: plan.more_labels,
            chance_by_labels: plan.chance_by_labels,
            more_items: plan.more_items,
            chance_by_items: plan.chance_by_items,
            labels: plan.labels,
            labels_per_new_item: plan.labels_per_new_item,
            recommended: offer.map(Recommended::from),
        }
    }
}

/// The numbers of some cells.
fn numbers(cells: &[CellId]) -> Vec<u32> {
    cells.iter().map(|cell| cell.0).collect()
}

/// The plan as data.
pub(super) fn report(
    router: &Router,
    found: &Plan,
    task: &Task,
    args: &PlanArgs,
    buying: Buying<'_>,
    listed: Option<&ListedItems>,
    coarser: Option<&CoarserCells>,
) -> Report {
    Report {
        confidence: found.certificate.confidence(),
        task: TaskSummary::new(task, router.classes()),
        unit: task.loss().unit(),
        regret_bound: found.judgement.regret_bound,
        certain_share: found.judgement.certain,
        to_certainty: buying.certainty(found).map(|all| ToCertainty {
            cells: numbers(&all.cells),
            labels: all.labels,
            share: all.share,
        }),
        coarser: coarser.map(Coarser::new),
        bias_of_worth: bias_of_worth(task, router),
        promise: found.promise.clone(),
        purchase: buying.purchase(found).map(|bought| PurchaseReport {
            label_price: args.label_price,
            traffic: args.traffic,
            max_labels: buying.most_labels(),
            cells: numbers(&bought.cells),
            labels: bought.labels,
            cost: args.label_price.map(|price| price_of_labels(bought.labels, price)),
            saving: bought.saving,
            saving_error: bought.saving_error,
            pays: buying.is_priced().then_some(!bought.cells.is_empty()),
            pool: found.pool_for(&bought.offers),
            labels_without_limit: (buying.is_priced() && buying.most_labels().is_some())
                .then(|| buying.purchase_without_limit(found).labels),
            ways: bought.offers.iter().map(|offer| Way::new(offer, found, router)).collect(),
        }),
        begin_with: buying.begin_with(found).map(|first| FirstCells {
            cells: numbers(&first.cells),
            labels: first.labels,
            worth: first.worth,
            worth_error: first.worth_error,
            pool: found.pool_for(&first.offers),
        }),
        items: listed.map(|listed| ItemsReport {
            items: listed.items,
            labels: listed.labels,
            worth: listed.worth,
            worth_error: listed.worth_error,
            labels_elsewhere: listed.labels_of_other_way,
            missing: listed.missing,
            pool: listed.pool,
            labelled: listed.labelled,
            not_of_router: listed.not_of_router,
            rows_elsewhere: listed.rows_elsewhere,
            cells: listed
                .cells
                .iter()
                .map(|of| ItemsOfCell { cell: of.cell.0, items: of.items, labels: of.labels })
                .collect(),
            cells_without_items: numbers(&listed.cells_without_items),
            cells_elsewhere: numbers(&listed.cells_of_other_way),
            cost: listed.cost(args),
            saving: listed.saving(args).map(|[saving, _]| saving),
            saving_error: listed.saving(args).map(|[_, error]| error),
            output: args.output.as_ref().map(|path| path.display().to_string()),
        }),
        cells: ranked(found, buying).into_iter().map(|plan| OpenCell::new(plan, router, args, buying)).collect(),
    }
}
