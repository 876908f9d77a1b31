//! `pointsman plan`: which labels to buy next, and what they are worth.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::Router;
use pointsman::certify::{CellPlan, ItemToLabel, Offer, Plan, Purchase};
use pointsman::policy::Promise;
use pointsman_table::{Column, ColumnKind, Frame, Need, TableWriter};
use serde::Serialize;

use crate::args::{PlanArgs, VotesArgs};
use crate::json;
use crate::plan::{self, Written, shell_quoted, shell_quoted_text};
use crate::progress::Progress;
use crate::render::number::{count, counted, decimals, fixed, level, maybe, percent, plain, short};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::{self, entry, next_step, paragraph};
use crate::tables;

/// Cells that advice names.
const FIRST_CELLS: usize = 3;

/// The plan as scripts read it.
#[derive(Debug, Serialize)]
struct Report {
    confidence: f64,
    unit: &'static str,
    regret_bound: f64,
    certain_share: f64,
    /// What the policy is expected to cost now; null where the labels do not tell.
    promise: Option<Promise>,
    /// The labels that are expected to save more than they cost; only with a price and traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    purchase: Option<Bought>,
    /// The cells to begin with, if any can be settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    begin_with: Option<First>,
    /// The items to label, with --items.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    /// The undetermined cells, best first.
    cells: Vec<Open>,
}

#[derive(Debug, Serialize)]
struct Bought {
    label_price: f64,
    traffic: f64,
    cells: Vec<u32>,
    labels: usize,
    cost: f64,
    saving: f64,
}

/// The first cells to settle, what that takes, and what it is worth per thousand queries.
#[derive(Debug, Serialize)]
struct First {
    cells: Vec<u32>,
    labels: usize,
    worth: f64,
}

#[derive(Debug, Serialize)]
struct Items {
    items: usize,
    labels: usize,
    /// What new items are expected to save per thousand queries; null for more labels on items that have some.
    worth: Option<f64>,
    /// New items that the plan asks for and the table does not have.
    missing: usize,
    /// Where they were written, if they were.
    output: Option<String>,
}

/// The labels asked for: those that settle the cell or, if none do, those that bring most of what labels can save.
#[derive(Debug, Serialize)]
struct Asked {
    more_labels: Option<usize>,
    more_items: Option<usize>,
    labels: usize,
    worth: f64,
    chance: f64,
}

impl From<Offer> for Asked {
    fn from(Offer { more_labels, more_items, labels, worth, chance, .. }: Offer) -> Self {
        Self { more_labels, more_items, labels, worth, chance }
    }
}

#[derive(Debug, Serialize)]
struct Open {
    cell: u32,
    name: String,
    rows: usize,
    share: f64,
    action: String,
    rival: String,
    margin: Option<f64>,
    /// What the action may cost per thousand queries more than the best.
    at_stake: f64,
    /// What the labels that settle the cell are expected to save per thousand queries; where none do, what knowing the losses would.
    worth: f64,
    worth_per_label: Option<f64>,
    /// The chance that they settle the cell.
    chance: Option<f64>,
    /// What the labels asked for cost, what they save over the traffic, and after how many queries they have paid for themselves.
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
    /// How many labels each new item is to have.
    labels_per_new_item: usize,
    /// The labels asked for, whether or not they settle the cell; null if labels are expected to save nothing there.
    asked: Option<Asked>,
}

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([
        Some(&args.router),
        args.task.task.first(),
        args.items.as_ref(),
        args.votes.annotations.as_ref(),
    ])?;
    if args.votes.annotations.is_some() && args.items.is_none() {
        bail!("--annotations has the labels of items: add --items TABLE");
    }
    if args.output.is_some() && args.items.is_none() {
        bail!(
            "-o writes the items to label, and a router keeps no ids: add --items TABLE, the calibration table for more labels \
             per item, or a table without votes for new items"
        );
    }
    args.output.iter().try_for_each(|output| plan::refuse_to_destroy(output, Written::Items))?;
    let task = plan::task(&args.task)?;
    let router = plan::load_router(&args.router)?;
    let task = task.for_classes(router.classes());
    let task = task.map_err(|error| plan::of_task(error, args.task.task.first(), anyhow::Error::from))?;
    if task.action_names().len() < 2 {
        bail!("plan needs a task that leaves a choice: add --route COST or --abstain COST");
    }
    if let Some(price) = args.label_price.filter(|price| *price >= task.loss().bound()) {
        render::warn(format!(
            "a label costs {}, but a wrong answer costs at most {} {}: prices are in the unit of the loss",
            plain(price),
            short(task.loss().bound()),
            task.loss().unit()
        ));
    }
    let spinner = Progress::spinner("trying out labels".to_owned());
    let found = plan::label_plan(&router, &task, args.confidence, &args.router)?;
    drop(spinner);
    let unit = task.loss().unit();
    let listed = match &args.items {
        Some(path) => Some(list(args, &router, &found, path)?),
        None => None,
    };
    if args.json {
        return json::print_with_warnings(&report(&router, &found, unit, args, listed.as_ref()));
    }
    let mut out = io::BufWriter::new(render::stdout());
    print(&mut out, &router, &found, unit, args)?;
    plan::print_perfect_oracles(&mut out, &task)?;
    if let Some(listed) = &listed {
        writeln!(out)?;
        paragraph(&mut out, 2, &listed.in_words(args, unit))?;
        listed.next(&mut out, args)?;
    }
    Ok(out.flush()?)
}

/// The items of a table to label.
#[derive(Debug)]
struct Listed {
    items: usize,
    labels: usize,
    /// Whether the table has votes, so that its items get more labels.
    have_votes: bool,
    /// Rows with votes that are none of the router's: labels on them would not show in its cells.
    not_of_router: usize,
    /// New items that the plan asks for and the table does not have.
    missing: usize,
    /// What new items are expected to save per thousand queries.
    worth: Option<f64>,
    /// The flags that calibrate by the router's partition again.
    partition: String,
}

impl Listed {
    fn in_words(&self, args: &PlanArgs, unit: &str) -> String {
        let priced = args.label_price.is_some() && args.traffic.is_some();
        let place = args.output.as_ref().map_or(String::new(), |path| format!(", written to {}", shell_quoted(path)));
        let mut text = match self.items {
            0 => format!("None of the items of the table to label{place}."),
            items => format!(
                "{} of the table to label, {} labels in all{place}.",
                counted(items, "item", "items"),
                count(self.labels)
            ),
        };
        if self.items == 0 && self.have_votes {
            text += match priced {
                true => " More labels on items that have some are not worth their price:",
                false => " More labels on items that have some are not asked for:",
            };
            text += " give --items a table without votes, whose items are new.";
        }
        if self.missing > 0 {
            text += &format!(" The plan asks for {} more than the table has.", counted(self.missing, "item", "items"));
            if let Some(worth) = self.worth.filter(|_| self.items > 0) {
                text += &format!(" Those listed are expected to save {} {unit} per thousand queries.", short(worth));
            }
        }
        if self.not_of_router > 0 {
            text += &format!(
                " {} labels and {} not among those that the router estimates from: labels there would not show in its cells.",
                counted(self.not_of_router, "other item has", "other items have"),
                if self.not_of_router == 1 { "is" } else { "are" }
            );
        }
        text
    }

    /// What to do when the labels are there.
    fn next(&self, out: impl Write, args: &PlanArgs) -> io::Result<()> {
        let Some(items) = args.items.as_ref().filter(|_| self.items > 0) else { return Ok(()) };
        let (items, router) = (shell_quoted(items), shell_quoted(&args.router));
        if self.have_votes {
            let kept = VotesArgs { first_labels: None, ..args.votes.clone() };
            let reading = plan::reading_flags(&args.reading, Some(&kept));
            let command = format!("pointsman calibrate {items}{reading}{} -o more.safetensors", self.partition);
            return next_step(out, "When they have their labels, calibrate again with all labels:", &[command]);
        }
        // Items of the table that nobody labelled are left out when it is joined with the labels.
        let reading = plan::reading_flags(&args.reading, None);
        let labels = " --annotations labels.csv";
        let command = format!("pointsman calibrate {items}{labels}{reading} --add-to {router} -o more.safetensors");
        next_step(out, "When they have their labels, add these items to those of the router:", &[command])
    }
}

/// Finds the items to label and writes them, if that is asked for.
fn list(args: &PlanArgs, router: &Router, found: &Plan, path: &std::path::Path) -> anyhow::Result<Listed> {
    let frame = read_items(args, router, path)?;
    plan::check_classes(router, frame.table.classes(), path)?;
    tables::warn_about_reading(&frame);
    let is_offered = |offer: &Offer| match frame.table.has_votes() {
        true => offer.more_labels.is_some(),
        false => offer.more_items.is_some(),
    };
    let offers = match args.label_price.zip(args.traffic) {
        Some((price, traffic)) => found.purchase_of(price, traffic, is_offered).offers,
        None => found.asked(),
    };
    let items = found.items_of(router, &frame.table, &offers).map_err(|error| plan::of_rows(error, &frame))?;
    let have_votes = frame.table.has_votes();
    if !have_votes {
        warn_if_labelled(router, &frame.table, &items);
    }
    if let Some(output) = &args.output {
        plan::refuse_to_overwrite(output, &[path, &args.router])?;
        let Some(ids) = &frame.ids else {
            bail!("{}: has no column id: items to label are named by their ids", path.display());
        };
        let names = [
            ("id", ColumnKind::Text),
            ("cell", ColumnKind::Count),
            ("labels", ColumnKind::Count),
            ("worth", ColumnKind::Real),
        ];
        let mut writer = TableWriter::create(output, None, &names.map(|(name, kind)| (name.to_owned(), kind)))?;
        writer.write(&[
            Column::Text(items.iter().map(|item| ids[item.row].clone()).collect()),
            Column::Count(items.iter().map(|item| u64::from(item.cell.0)).collect()),
            Column::Count(items.iter().map(|item| item.labels as u64).collect()),
            Column::Real(items.iter().map(|item| item.worth).collect()),
        ])?;
        writer.finish()?;
    }
    let served = if router.is_recalibrated() { " --recalibrate" } else { "" };
    let partition = format!(" --partition {}{served}", shell_quoted_text(&router.partition().to_string()));
    let of_router = if have_votes { router.rows_in_common(&frame.table) } else { Vec::new() };
    Ok(Listed {
        items: items.len(),
        labels: items.iter().map(|ItemToLabel { labels, .. }| labels).sum(),
        have_votes,
        not_of_router: of_router.into_iter().filter(|is_common| !is_common).count(),
        missing: if have_votes { 0 } else { found.items_missing(&items, &offers) },
        worth: (!have_votes).then(|| found.worth_of_listed(&items)),
        partition,
    })
}

/// Warns of items listed as new that have the prediction of a calibration row; where predictions repeat, only if most of the table does.
fn warn_if_labelled(router: &Router, table: &pointsman::Table, listed: &[ItemToLabel]) {
    let advice = "these items have labels, which --annotations or columns of votes would give: more of them tell less than new items";
    match router.items_seen(table) {
        Some(seen) => {
            let known = listed.iter().filter(|item| seen[item.row]).count();
            if known > 0 {
                let listed = counted(listed.len(), "item listed", "items listed");
                render::warn(format!(
                    "{} of the {listed} have the prediction of a calibration row: {advice}",
                    count(known)
                ));
            }
        }
        None => {
            let known = router.items_in_common(table);
            if 2 * known > table.rows() {
                let rows = counted(table.rows(), "item", "items");
                render::warn(format!(
                    "{} of the {rows} to choose from have the prediction of a calibration row: {advice}",
                    count(known)
                ));
            }
        }
    }
}

/// Reads a table of items, with their votes if it has any.
fn read_items(args: &PlanArgs, router: &Router, path: &std::path::Path) -> anyhow::Result<Frame> {
    let mut options = plan::read_options(&args.reading, Some(&args.votes), Need::VotesIfAny);
    options.classes = Some(router.classes().to_vec());
    plan::read_frame(path, &options)
}

/// What is worth its price, if there is a price and traffic.
fn purchase(found: &Plan, args: &PlanArgs) -> Option<Purchase> {
    args.label_price.zip(args.traffic).map(|(price, traffic)| found.purchase(price, traffic))
}

fn report(router: &Router, found: &Plan, unit: &'static str, args: &PlanArgs, listed: Option<&Listed>) -> Report {
    let open = |plan: &CellPlan| {
        let offer = plan.asked();
        Open {
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
            asked: offer.map(Asked::from),
        }
    };
    Report {
        confidence: found.certificate.confidence(),
        unit,
        regret_bound: found.judgement.regret_bound,
        certain_share: found.judgement.certain,
        promise: found.promise.clone(),
        purchase: purchase(found, args).zip(args.label_price.zip(args.traffic)).map(
            |(bought, (label_price, traffic))| Bought {
                label_price,
                traffic,
                cells: bought.cells.iter().map(|cell| cell.0).collect(),
                labels: bought.labels,
                cost: bought.cost,
                saving: bought.saving,
            },
        ),
        begin_with: found.begin_with(FIRST_CELLS).map(|first| First {
            cells: first.cells.iter().map(|cell| cell.0).collect(),
            labels: first.labels,
            worth: first.worth,
        }),
        items: listed.map(|listed| Items {
            items: listed.items,
            labels: listed.labels,
            worth: listed.worth,
            missing: listed.missing,
            output: args.output.as_ref().map(|path| path.display().to_string()),
        }),
        cells: found.cells.iter().map(open).collect(),
    }
}

fn print(out: &mut impl Write, router: &Router, found: &Plan, unit: &str, args: &PlanArgs) -> io::Result<()> {
    let confidence = level(found.certificate.confidence());
    if let Some(promise) = &found.promise {
        paragraph(&mut *out, 0, &plan::expected_cost_in_words(promise, unit))?;
        writeln!(out)?;
    }
    if found.cells.is_empty() {
        return paragraph(
            out,
            0,
            &format!(
                "With {confidence} confidence every cell's action is certain: no label is needed at these prices."
            ),
        );
    }
    let text = format!(
        "{BOLD}{}{BOLD:#} undetermined with {confidence} confidence: {} of traffic like the calibration rows",
        counted(found.cells.len(), "cell is", "cells are"),
        percent(found.open()),
    );
    paragraph(&mut *out, 0, &text)?;
    writeln!(out)?;
    let digits = |value: fn(&CellPlan) -> f64| decimals(found.cells.iter().map(value)).min(4);
    let (worth, at_stake) = (digits(|plan| plan.worth), digits(|plan| plan.at_stake));
    let margin = decimals(found.cells.iter().filter_map(|plan| plan.margin)).min(4);
    let mut grid = Grid::new().number("cell").text("name").number("share").text("action").text("rival");
    grid = grid.numbers(["margin", "worth", "at stake"]);
    grid = grid.numbers(["labels per item", "more items"]).number("labels");
    for plan in &found.cells {
        let offer = plan.asked();
        let [more_labels, more_items] = match &offer {
            Some(offer) => [offer.more_labels, offer.more_items],
            None => [plan.more_labels, plan.more_items],
        };
        let about = |more: Option<usize>| more.map_or("–".to_owned(), |more| format!("+{}", count(more)));
        grid.row([
            (plan.cell.to_string(), DIM),
            (router.cells().name(plan.cell, router.classes()), PLAIN),
            (percent(plan.share), PLAIN),
            (plan.action.clone(), style::action_named(&plan.action)),
            (plan.rival.clone(), style::action_named(&plan.rival)),
            (maybe(plan.margin, margin), PLAIN),
            (maybe(offer.as_ref().map(|offer| offer.worth), worth), BOLD),
            (fixed(plan.at_stake, at_stake), PLAIN),
            (about(more_labels), PLAIN),
            (about(more_items), PLAIN),
            match (&offer, plan.labels) {
                (_, Some(labels)) => (format!("~{}", count(labels)), PLAIN),
                (Some(offer), None) => (format!("~{}, not certain", count(offer.labels)), PLAIN),
                (None, None) => ("out of reach".to_owned(), DIM),
            },
        ]);
    }
    grid.write(&mut *out)?;
    writeln!(out)?;
    const TEXT_FROM: usize = 19;
    let mut line =
        |name: &str, text: &str| entry(&mut *out, TEXT_FROM, &format!("{DIM}{name}"), &format!("{text}{DIM:#}"));
    line("rival", "what might be better than the action")?;
    line("worth", &format!("what the labels are expected to save per thousand queries, in {unit}"))?;
    line(
        "at stake",
        &format!("what its action may cost per thousand queries more than the best, at worst, in {unit}"),
    )?;
    line("labels per item", "about how many more on each of its items make it certain in three of four cases")?;
    line(
        "more items",
        "or about how many more items of the cell, with about as many labels per item as now, two at least where it matters",
    )?;
    line("labels", "labels in all, by the cheaper of the two ways")?;
    let (labels, times) = (Plan::MOST_LABELS, Plan::MOST_TIMES);
    let limits = format!(
        "certain in fewer than three of four cases even with {labels} more labels per item or {times} times the items"
    );
    let is_open = |asked: bool| found.cells.iter().any(|plan| plan.labels.is_none() && plan.asked().is_some() == asked);
    if is_open(true) {
        line("not certain", &format!("{limits}, but these labels are expected to show the better action"))?;
    }
    if is_open(false) {
        line("out of reach", &limits)?;
    }
    writeln!(out)?;
    paragraph(out, 2, &advice(found, unit, args))
}

/// So many queries, to the two digits that a forecast is good for; more than anyone sends have no number.
fn queries_in_words(queries: f64) -> String {
    const MOST: f64 = 1e10;
    if queries > MOST {
        return format!("more than {} queries", count(MOST as usize));
    }
    let unit = 10_f64.powf((queries.max(1.0).log10().floor() - 1.0).max(0.0));
    format!("about {} queries", count(((queries / unit).ceil() * unit) as usize))
}

/// Cells by their numbers.
fn cells_in_words(cells: &[pointsman::CellId]) -> String {
    let which: Vec<String> = cells.iter().map(ToString::to_string).collect();
    format!("{} {}", if which.len() == 1 { "cell" } else { "cells" }, which.join(", "))
}

/// Which of some cells no number of labels within reason settles, in a sentence; nothing if there are none.
fn uncertain_in_words(found: &Plan, cells: &[pointsman::CellId]) -> String {
    let unsettled = found.cells.iter().filter(|plan| plan.labels.is_none() && cells.contains(&plan.cell));
    let unsettled: Vec<_> = unsettled.map(|plan| plan.cell).collect();
    if unsettled.is_empty() {
        return String::new();
    }
    let mut which = cells_in_words(&unsettled);
    which[..1].make_ascii_uppercase();
    let its = if unsettled.len() == 1 { "its" } else { "their" };
    format!(" {which} cannot be made certain within reason, but {its} labels are expected to save that.")
}

/// What to buy, in a sentence or two.
fn advice(found: &Plan, unit: &str, args: &PlanArgs) -> String {
    let Some(first) = found.begin_with(FIRST_CELLS) else {
        let settling: Vec<Offer> = found.cells.iter().filter_map(CellPlan::determining).collect();
        if settling.is_empty() {
            return "No cell can be made certain within reason, nor are labels expected to change an action: not worth it."
                .to_owned();
        }
        let labels = settling.iter().map(|offer| offer.labels).sum::<usize>();
        let price = args.label_price.map_or(String::new(), |price| {
            let cost = settling.iter().map(|offer| offer.price(price)).sum::<f64>();
            format!(", which cost {}", short(cost))
        });
        return format!(
            "About {} would make {} certain{price}, but are expected to change no action: not worth it, unless for certainty.",
            counted(labels, "label", "labels"),
            cells_in_words(&settling.iter().map(|offer| offer.cell).collect::<Vec<_>>())
        );
    };
    if let Some((bought, traffic)) = purchase(found, args).zip(args.traffic) {
        let queries = count(traffic as usize);
        if bought.cells.is_empty() {
            let pays = |offer: Offer| offer.pays_after(args.label_price?);
            let pays = found.asked().into_iter().filter_map(pays).min_by(f64::total_cmp);
            let from = pays.map_or(String::new(), |pays| {
                format!(" The best of them would have paid for themselves after {}.", queries_in_words(pays))
            });
            return format!("Not worth it: no labels save over {queries} queries what they cost.{from}");
        }
        return format!(
            "Worth buying: {} for {}. That costs {} and is expected to save {} over {queries} queries, in {unit}; the rest is \
             not worth it.{}",
            counted(bought.labels, "label", "labels"),
            cells_in_words(&bought.cells),
            short(bought.cost),
            short(bought.saving),
            uncertain_in_words(found, &bought.cells)
        );
    }
    let mut text = format!(
        "Begin with {}: about {} labels, worth about {} {unit} per thousand queries.{}",
        cells_in_words(&first.cells),
        count(first.labels),
        short(first.worth),
        uncertain_in_words(found, &first.cells)
    );
    match args.label_price.and_then(|price| Some((first.price(price), first.pays_after(price)?))) {
        Some((price, queries)) => {
            let pays = queries_in_words(queries);
            text += &format!(
                " These labels cost {} and have paid for themselves after {pays}; --traffic N says whether that is worth it.",
                short(price)
            );
        }
        None => text += " Whether that is worth it, --label-price X and --traffic N say.",
    }
    text
}
