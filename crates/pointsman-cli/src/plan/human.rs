//! A plan, for the terminal.

use std::io::{self, Write};

use pointsman::certify::{CellPlan, CoarserCells, Offer, Plan, Purchase, is_distinct, price_of_labels};
use pointsman::task::Limit;
use pointsman::{CellId, Partition, Router, Task};

use super::buying::{Buying, FirstStep};
use super::certainty::certainty_in_words;
use super::items::ListedItems;
use super::phrases::{cells_in_words, cost_in_words};
use super::ranked;
use super::way::Way;
use crate::args::PlanArgs;
use crate::flags::{self, shell_quoted};
use crate::input::is_stream;
use crate::render::number::{count, counted, decimals, exact, fixed, level, maybe, percent, plain};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::{entry, next_step, paragraph};
use crate::words;

/// How to keep both lists of one purchase alike: annotators who are named limit the labels per item, and they are named for one list only.
pub(super) const OTHER_LIMIT_PER_ITEM: &str =
    "; add --max-labels-per-item N to both, with the number of your annotators";

/// The confidence that needs no flag.
const DEFAULT_CONFIDENCE: f64 = 0.95;

/// Prints the undetermined cells, and what to do about them.
pub(super) fn print(
    out: &mut impl Write,
    router: &Router,
    found: &Plan,
    task: &Task,
    (args, buying): (&PlanArgs, Buying<'_>),
    listed: Option<&ListedItems>,
    coarser: Option<&CoarserCells>,
) -> io::Result<()> {
    let (confidence, unit) = (level(found.certificate.confidence()), task.loss().unit());
    if let Some(promise) = &found.promise {
        paragraph(&mut *out, 0, &words::policy::promised_cost(promise, unit))?;
        writeln!(out)?;
    }
    if found.cells.is_empty() {
        let text = "every cell's action is certain: no label is needed at these prices.";
        return paragraph(out, 0, &format!("With {confidence} confidence {text}"));
    }
    let text = format!(
        "{BOLD}{}{BOLD:#} undetermined with {confidence} confidence: {} of traffic like the calibration rows",
        counted(found.cells.len(), "cell is", "cells are"),
        percent(found.open()),
    );
    paragraph(&mut *out, 0, &text)?;
    writeln!(out)?;
    // A list of items says itself which labels to buy.
    let has_list = listed.is_some_and(|listed| listed.items > 0);
    if !has_list {
        paragraph(&mut *out, 2, &advice(router, found, unit, args, buying))?;
        writeln!(out)?;
    }
    // Labels that do not pay may be bought for certainty.
    if coarser.is_some() || !has_list && !is_worth_buying(found, buying) {
        paragraph(&mut *out, 2, &certainty_in_words(found, coarser, unit, args, buying))?;
        writeln!(out)?;
    }
    paragraph(&mut *out, 2, table_heading(found, buying))?;
    print_cells(out, router, found, buying)?;
    writeln!(out)?;
    print_legend(out, found, unit, buying)?;
    bias_of_worth(task, router).map_or(Ok(()), |text| paragraph(out, 2, &format!("{DIM}{text}{DIM:#}")))
}

/// How worth is biased, as far as simulations show; `None` where they show no bias.
pub(super) fn bias_of_worth(task: &Task, router: &Router) -> Option<&'static str> {
    const WITHOUT_KINKS: [&str; 3] = ["brier", "cross-entropy", "spherical"];
    if !WITHOUT_KINKS.contains(&task.loss().to_string().as_str()) {
        return Some(
            "Under losses with kinks, such as zero-one, worth is less exact: in simulations more labels on the router's items saved about \
             twice their worth on average and new items about theirs, and both were off by 1.3 to 1.7 times ± s.e.",
        );
    }
    let has_budget = matches!(task.limit(), Some(Limit::Budget(_)));
    (has_budget && *router.partition() == Partition::pooled()).then_some(
        "With pooled cells, worth under a budget is too small: in simulations labels could save up to four times as much on average.",
    )
}

/// What the numbers of labels in the table are: not those to buy, which have a column of their own.
fn table_heading(found: &Plan, buying: Buying<'_>) -> &'static str {
    match buying.purchase(found) {
        Some(bought) if !bought.offers.is_empty() => {
            "Labels that would make each cell certain or are expected to show its better action, and those to buy:"
        }
        _ => "Labels that would make each cell certain or are expected to show its better action:",
    }
}

fn print_cells(out: &mut impl Write, router: &Router, found: &Plan, buying: Buying<'_>) -> io::Result<()> {
    let digits = |value: fn(&CellPlan) -> f64| decimals(found.cells.iter().map(value)).min(4);
    let (worth, at_stake) = (digits(|plan| plan.worth), digits(|plan| plan.at_stake));
    let margin = decimals(found.cells.iter().filter_map(|plan| plan.margin)).min(4);
    let mut grid = Grid::new().number("cell").text("name").number("share").text("action").text("rival");
    grid = grid.numbers(["margin over rival", "worth", "± s.e.", "at stake"]);
    grid = grid.numbers(["labels per item", "more items"]).number("labels").text("then");
    let bought = buying.purchase(found).map(|bought| bought.offers).filter(|offers| !offers.is_empty());
    grid = grid.numbers(bought.as_ref().map(|_| "to buy"));
    for plan in ranked(found, buying) {
        let offer = buying.asked(plan);
        let [more_labels, more_items] = match &offer {
            Some(offer) => [offer.more_labels, offer.more_items],
            None => [None, None],
        };
        let about = |more: Option<usize>| more.map_or("–".to_owned(), |more| format!("+{}", count(more)));
        let row = [
            (plan.cell.to_string(), DIM),
            (router.cells().name(plan.cell, router.classes()), PLAIN),
            (percent(plan.share), PLAIN),
            (plan.action.clone(), style::action_named(&plan.action)),
            (plan.rival.clone(), style::action_named(&plan.rival)),
            (maybe(plan.margin, margin), PLAIN),
            (offer.as_ref().map_or("–".to_owned(), |offer| rounded(offer.worth, worth)), BOLD),
            (offer.as_ref().map_or("–".to_owned(), |offer| rounded(offer.worth_error, worth)), PLAIN),
            (rounded(plan.at_stake, at_stake), PLAIN),
            (about(more_labels), PLAIN),
            (about(more_items), PLAIN),
            match &offer {
                Some(offer) => (format!("~{}", count(offer.labels)), PLAIN),
                None => ("–".to_owned(), DIM),
            },
            match &offer {
                Some(_) if buying.determines(plan) => ("certain".to_owned(), PLAIN),
                Some(_) => ("not certain".to_owned(), PLAIN),
                None => ("out of reach".to_owned(), DIM),
            },
        ];
        let of_cell =
            |offers: &Vec<Offer>| offers.iter().find(|offer| offer.cell == plan.cell).map(|offer| offer.labels);
        let to_buy = bought.as_ref().map(|offers| (of_cell(offers).map_or("–".to_owned(), count), BOLD));
        grid.row(row.into_iter().chain(to_buy));
    }
    grid.write(out)
}

/// A number with some decimals, or the smallest that they can show as its upper bound: a small number is not zero.
fn rounded(x: f64, decimals: usize) -> String {
    let smallest = 10_f64.powi(-(decimals as i32));
    if x > 0.0 && x < 0.5 * smallest { format!("< {}", fixed(smallest, decimals)) } else { fixed(x, decimals) }
}

fn print_legend(out: &mut impl Write, found: &Plan, unit: &str, buying: Buying<'_>) -> io::Result<()> {
    const TEXT_COLUMN: usize = 21;
    let mut line =
        |name: &str, text: &str| entry(&mut *out, TEXT_COLUMN, &format!("{DIM}{name}"), &format!("{text}{DIM:#}"));
    line("share", "of traffic like the calibration rows")?;
    line(
        "rival",
        "the other action that may still be cheaper by the largest amount; not always the second cheapest, the runner-up of show",
    )?;
    line(
        "margin over rival",
        &format!("by how much less per query the action is estimated to cost than the rival, in {unit}"),
    )?;
    line("worth", &format!("what the labels are expected to save per thousand queries, in {unit}"))?;
    line("± s.e.", "its standard error: labels save nothing unless they change the action")?;
    line("at stake", &format!("the most that the action may cost above the best per thousand queries, in {unit}"))?;
    line("labels per item", "about how many more on each of its items make it certain in three of four cases")?;
    line(
        "more items",
        "or: how many new items of the cell, each with as many labels as its present items have on average",
    )?;
    line("labels", "labels in all, by the cheaper of the two ways")?;
    if found.cells.iter().any(|plan| buying.determines(plan)) {
        line("certain", "with these labels, in three of four cases")?;
    }
    if buying.purchase(found).is_some_and(|bought| !bought.offers.is_empty()) {
        line("to buy", "labels of the purchase above: more would cost more than they save, or exceed the limit")?;
    }
    let has_dash = |plan: &CellPlan| match buying.asked(plan) {
        Some(offer) => offer.more_labels.is_none() || offer.more_items.is_none(),
        None => true,
    };
    if found.cells.iter().any(|plan| plan.margin.is_none() || has_dash(plan)) {
        line(
            "–",
            "no reasonable number in this way; for margin over rival: unknown, for worth: no saving is expected",
        )?;
    }
    let (labels, times) = (Plan::MOST_LABELS, Plan::MOST_TIMES);
    let limits = format!(
        "certain in fewer than three of four cases even with {labels} more labels per item or {times} times the items"
    );
    let is_open = |has_offer: bool| {
        let is_open = |plan: &CellPlan| !buying.determines(plan) && buying.asked(plan).is_some() == has_offer;
        found.cells.iter().any(is_open)
    };
    if is_open(true) {
        line("not certain", &format!("{limits}, but these labels are expected to show the better action"))?;
    }
    if is_open(false) {
        line("out of reach", &limits)?;
    }
    Ok(())
}

/// Whether the saving of the recommended labels exceeds their price or, if that is unknown, nothing, by more than its error.
fn is_worth_buying(found: &Plan, buying: Buying<'_>) -> bool {
    match buying.purchase(found) {
        Some(bought) => bought.is_distinct(),
        None => buying.begin_with(found).is_some_and(|first| first.is_distinct()),
    }
}

/// Advice on the labels to buy, in a sentence or two.
fn advice(router: &Router, found: &Plan, unit: &str, args: &PlanArgs, buying: Buying<'_>) -> String {
    match (buying.purchase(found), buying.begin_with(found)) {
        (None, Some(first)) => advice_to_begin(found, &first, unit, args, buying),
        (Some(bought), first) if first.is_some() || !bought.cells.is_empty() => match buying.is_priced() {
            true => advice_on_purchase((router, found), &bought, unit, args, buying),
            false => advice_within((router, found), &bought, unit, args, buying),
        },
        _ => advice_without_worth(found, unit, args, buying),
    }
}

/// The advice if neither the prices nor a largest number of labels are known.
fn advice_to_begin(found: &Plan, first: &FirstStep, unit: &str, args: &PlanArgs, buying: Buying<'_>) -> String {
    let (cells, labels) = (cells_in_words(&first.cells), counted(first.labels, "label", "labels"));
    let worth = format!(
        "{} {unit} per thousand queries{}",
        saving_in_words(first.worth, first.worth_error),
        distinction_in_words(first.worth, first.worth_error, 0.0)
    );
    let begin = match first.is_distinct() {
        true => format!("Begin with {cells}: about {labels}, worth {worth}."),
        false => format!(
            "No labels are certain to save anything here. Begin with {cells}, if you buy them anyway: about {labels}, worth {worth}."
        ),
    };
    let pays_after = |price: f64| 1000.0 * price_of_labels(first.labels, price) / first.worth;
    let pays = match args.label_price.map(pays_after) {
        Some(queries) => format!(
            " These labels{} and have paid for themselves after {}; with --traffic N, plan says whether that is worth it.",
            cost_in_words(first.labels, args, unit),
            queries_in_words(queries)
        ),
        None => unpriced_in_words(args).to_owned(),
    };
    begin
        + other_numbers_in_words(found, &first.offers, buying)
        + &pool_in_words(found.pool_for(&first.offers))
        + &uncertain_in_words(found, &first.cells, buying)
        + &pays
}

/// Why the labels of an advice are not those that the table lists for the same cells; empty if they are.
fn other_numbers_in_words(found: &Plan, offers: &[Offer], buying: Buying<'_>) -> &'static str {
    let listed =
        |offer: &Offer| found.cells.iter().find(|plan| plan.cell == offer.cell).and_then(|plan| buying.asked(plan));
    let is_same = |offer: &Offer| listed(offer).is_none_or(|listed| listed.labels == offer.labels);
    match offers.iter().all(is_same) {
        true => "",
        false => {
            " The table below lists other numbers: all labels that make a cell certain or, if none do, that bring most of what labels can save \
             there; fewer in more cells are worth more at first."
        }
    }
}

/// An expected saving with its standard error.
pub(super) fn saving_in_words(saving: f64, error: f64) -> String {
    let digits = decimals([saving, error]).saturating_sub(1);
    format!("{} ± {}", rounded(saving, digits), fixed(error, digits))
}

/// Whether an expected saving can be distinguished from nothing and, if labels must pay, from their price; as the end of a sentence.
pub(super) fn distinction_in_words(saving: f64, error: f64, price: f64) -> &'static str {
    if is_distinct(saving - price, error) {
        ""
    } else if is_distinct(saving, error) {
        ", which cannot be distinguished from what they cost"
    } else {
        ", which cannot be distinguished from nothing"
    }
}

/// That labels of unknown price cannot be said to pay; empty if the price and the traffic are known.
pub(super) fn unpriced_in_words(args: &PlanArgs) -> &'static str {
    match (args.label_price, args.traffic) {
        (Some(_), Some(_)) => "",
        (None, None) => {
            " Nobody can say whether that pays without the price of a label and the number of queries: add --label-price X and --traffic N."
        }
        (None, Some(_)) => " Nobody can say whether that pays without the price of a label: add --label-price X.",
        (Some(_), None) => " Nobody can say whether that pays without the number of queries: add --traffic N.",
    }
}

/// The advice if labels are expected to save nothing.
fn advice_without_worth(found: &Plan, unit: &str, args: &PlanArgs, buying: Buying<'_>) -> String {
    let within = limit_in_words(unit, args, buying).map_or(String::new(), |most| format!("within {most} "));
    let kind = args.only.map_or(String::new(), |only| format!(" of --only {}", only.name()));
    let unless = if buying.determining(found).is_empty() { "" } else { ", unless for certainty" };
    // Some may be expected to save a little that does not count.
    let is_expected_to_save = found.cells.iter().any(|plan| buying.asked(plan).is_some_and(|offer| offer.worth > 0.0));
    match is_expected_to_save {
        true => format!(
            "Not worth it: {within}no labels{kind} are worth their price{unless}. What they are expected to save is next to nothing."
        ),
        false => format!("Not worth it: {within}no labels{kind} are expected to change an action{unless}."),
    }
}

/// The limit on the labels to buy, as in "200 cost units (500 labels)"; `None` without a limit.
fn limit_in_words(unit: &str, args: &PlanArgs, buying: Buying<'_>) -> Option<String> {
    let labels = counted(buying.most_labels()?, "label", "labels");
    Some(match args.spend {
        Some(most) => format!("{} {unit} ({labels})", exact(most)),
        None => labels,
    })
}

/// The advice if there is a largest number of labels, and nothing by which they must pay.
fn advice_within(
    (router, found): (&Router, &Plan),
    bought: &Purchase,
    unit: &str,
    args: &PlanArgs,
    buying: Buying<'_>,
) -> String {
    let most = limit_in_words(unit, args, buying).unwrap_or_default();
    if bought.cells.is_empty() {
        return format!("Within {most} nothing can be bought that is expected to save anything.");
    }
    let (ways, list) = ways_in_words((router, found), bought);
    let best = match bought.is_distinct() {
        true => format!("Best within {most}: {list}."),
        false => format!("The best within {most}, if you buy them anyway: {list}."),
    };
    let cost = cost_in_words(bought.labels, args, unit);
    let cost = if cost.is_empty() { cost } else { format!("{cost} and") };
    let per = args.traffic.map_or("per thousand queries".to_owned(), over_queries);
    format!(
        "{best} They{cost} are expected to save {} {unit} {per}{}.{}{}{}{}{}",
        saving_in_words(bought.saving, bought.saving_error),
        distinction_in_words(bought.saving, bought.saving_error, bought.cost),
        other_numbers_in_words(found, &bought.offers, buying),
        pool_in_words(found.pool_for(&bought.offers)),
        uncertain_in_words(found, &bought.cells, buying),
        unpriced_in_words(args),
        annotators_in_words(&ways, args)
    )
}

/// The advice if the price of a label and the traffic are known.
fn advice_on_purchase(
    (router, found): (&Router, &Plan),
    bought: &Purchase,
    unit: &str,
    args: &PlanArgs,
    buying: Buying<'_>,
) -> String {
    let over = over_queries(args.traffic.unwrap_or(0.0));
    let within = limit_in_words(unit, args, buying).map_or(String::new(), |most| format!(" within {most}"));
    if bought.cells.is_empty() {
        let pays = |offer: Offer| offer.pays_after(args.label_price?);
        let asked = found.asked_of(|offer| buying.can_be_bought(offer));
        let pays = asked.into_iter().filter_map(pays).min_by(f64::total_cmp);
        let from = pays.map_or(String::new(), |pays| {
            format!(" The best of them would have paid for themselves after {}.", queries_in_words(pays))
        });
        return format!("Not worth it: no labels{within} save {over} what they cost.{from}");
    }
    let (ways, list) = ways_in_words((router, found), bought);
    let rest = if within.is_empty() { "; the rest is not worth it" } else { "" };
    let verdict = match bought.is_distinct() {
        true => format!("Worth buying{within}"),
        false => format!("Pays in expectation{within}, but uncertain"),
    };
    format!(
        "{verdict}: {list}. They{} and are expected to save {} {unit} {over}{}{rest}.{}{}{}{}",
        cost_in_words(bought.labels, args, unit),
        saving_in_words(bought.saving, bought.saving_error),
        distinction_in_words(bought.saving, bought.saving_error, bought.cost),
        pool_in_words(found.pool_for(&bought.offers)),
        limit_ends_in_words(found, bought, buying),
        uncertain_in_words(found, &bought.cells, buying),
        annotators_in_words(&ways, args)
    )
}

/// The size of a pool in which new items are likely to be found; empty if there are none.
pub(super) fn pool_in_words(size: Option<f64>) -> String {
    match size {
        Some(size) => format!(" The new items take a pool of {} items like your traffic.", about(size)),
        None => String::new(),
    }
}

/// What to buy in each cell, and in words.
fn ways_in_words((router, found): (&Router, &Plan), bought: &Purchase) -> (Vec<Way>, String) {
    let mut offers: Vec<&Offer> = bought.offers.iter().collect();
    offers.sort_by_key(|offer| offer.cell);
    let ways: Vec<Way> = offers.into_iter().map(|offer| Way::new(offer, found, router)).collect();
    let each = ways.iter().map(Way::in_words).collect::<Vec<_>>().join("; ");
    (ways, format!("{} ({each})", counted(bought.labels, "label", "labels")))
}

fn over_queries(traffic: f64) -> String {
    format!("over {} queries", count(traffic as usize))
}

/// How to keep to the annotators there are, if items get more labels than a plan knows annotators for.
fn annotators_in_words(ways: &[Way], args: &PlanArgs) -> String {
    match ways.iter().filter_map(Way::more_labels_per_item).max() {
        Some(most) if args.max_labels_per_item.is_none() && args.votes.annotations.is_none() => format!(
            " {most} more labels on one item need as many more annotators: with fewer add --max-labels-per-item N, all labels of an item \
             counted."
        ),
        _ => String::new(),
    }
}

/// That a limit leaves out labels that are worth buying; empty if it does not.
fn limit_ends_in_words(found: &Plan, bought: &Purchase, buying: Buying<'_>) -> String {
    let unlimited = buying.purchase_without_limit(found).labels;
    if buying.most_labels().is_none() || unlimited <= bought.labels {
        return String::new();
    }
    let labels = counted(unlimited, "label", "labels");
    format!(" The limit ends here: without it {labels} would be worth buying.")
}

/// A number of queries, rounded up to two digits, since it is a forecast.
fn queries_in_words(queries: f64) -> String {
    /// More queries than anyone sends.
    const MAX_SHOWN: f64 = 1e10;
    if queries > MAX_SHOWN {
        return format!("more than {} queries", count(MAX_SHOWN as usize));
    }
    format!("{} queries", about(queries))
}

/// A number, rounded up to two digits.
fn about(number: f64) -> String {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    format!("about {}", count(((number / unit).ceil() * unit) as usize))
}

/// The cells that no reasonable number of labels that can be bought makes certain, in a sentence; empty if there are none.
fn uncertain_in_words(found: &Plan, cells: &[CellId], buying: Buying<'_>) -> String {
    let uncertain = found.cells.iter().filter(|plan| !buying.determines(plan) && cells.contains(&plan.cell));
    let uncertain: Vec<_> = uncertain.map(|plan| plan.cell).collect();
    if uncertain.is_empty() {
        return String::new();
    }
    let mut which = cells_in_words(&uncertain);
    which[..1].make_ascii_uppercase();
    let are = if uncertain.len() == 1 { "is" } else { "are" };
    format!(
        " {which} {are} likely to stay undetermined even then: labels there may show the better action, but not prove it."
    )
}

/// Prints the commands that list the items to label, new ones and those that the router has, if labels are worth it.
pub(super) fn print_next_step(
    out: &mut impl Write,
    found: &Plan,
    args: &PlanArgs,
    buying: Buying<'_>,
) -> io::Result<()> {
    if is_stream(&args.router) {
        return Ok(());
    }
    let (first, purchase) = (buying.begin_with(found), buying.purchase(found));
    let is_first_distinct = first.as_ref().is_some_and(FirstStep::is_distinct);
    let is_distinct = buying.is_priced() || purchase.as_ref().map_or(is_first_distinct, |bought| bought.is_distinct());
    let flag =
        |name: &str, value: Option<f64>| value.map_or(String::new(), |value| format!(" --{name} {}", plain(value)));
    let most = |name: &str, value: Option<usize>| flag(name, value.map(|value| value as f64));
    // The labels of the advice are listed, and not all that the table has.
    let only_first = first.as_ref().and_then(|first| first.most);
    let prices = flag("label-price", args.label_price)
        + &flag("traffic", args.traffic)
        + &flag("spend", args.spend)
        + &most("max-labels", args.max_labels.or(only_first))
        + &most("max-labels-per-item", args.max_labels_per_item)
        + &args.only.map_or(String::new(), |only| format!(" --only {}", only.name()));
    let confidence = flag("confidence", Some(args.confidence).filter(|confidence| *confidence != DEFAULT_CONFIDENCE));
    let list = |items: &str, output: &str| {
        format!(
            "pointsman plan {}{}{confidence}{prices} --items {items}{} -o {output}",
            shell_quoted(&args.router),
            flags::task(&args.task),
            flags::layout(&args.reading)
        )
    };
    let recommended = match (&purchase, first) {
        (None, None) => return Ok(()),
        (None, Some(first)) if first.most.is_some() => first.offers,
        _ => buying.recommended(found),
    };
    let (new, present): (Vec<Offer>, Vec<Offer>) =
        recommended.into_iter().partition(|offer| offer.more_items.is_some());
    let next = match only_first {
        Some(most) if !is_distinct => {
            format!("To buy the best labels within {} anyway", counted(most, "label", "labels"))
        }
        _ if is_distinct => "Next".to_owned(),
        _ => "To buy them anyway".to_owned(),
    };
    if !present.is_empty() {
        let both = match (new.is_empty(), args.max_labels_per_item) {
            (true, _) => String::new(),
            (false, limit) => {
                let same = if limit.is_none() { OTHER_LIMIT_PER_ITEM } else { "" };
                format!(" It and the list of new items below are bought together{same}.")
            }
        };
        let remark = format!(
            "{next}, for {}, list the items that the router has and that should get more labels, out of the calibration table and its \
             labels (--annotations FILE if they are in a file of their own).{both}",
            cells_in_words(&cells_of(&present))
        );
        next_step(&mut *out, &remark, &[list("calibration.csv", "more-labels.csv")])?;
    }
    if new.is_empty() {
        return Ok(());
    }
    let remark = format!(
        "{next}, for {}, set a random sample of new items aside for a test, since items that a plan lists are not a random sample. Then \
         list the items to label, out of a table of the others, without labels:",
        cells_in_words(&cells_of(&new))
    );
    next_step(out, &remark, &[list("pool.csv", "to-label.csv")])
}

fn cells_of(offers: &[Offer]) -> Vec<CellId> {
    offers.iter().map(|offer| offer.cell).collect()
}
