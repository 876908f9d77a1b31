//! `pointsman plan`: which labels to buy next, and what they are worth.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::Router;
use pointsman::certify::{CellPlan, ItemToLabel, Plan, Purchase};
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
    /// Where they were written, if they were.
    output: Option<String>,
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
    /// What the labels asked for are expected to save per thousand queries.
    worth: f64,
    worth_per_label: Option<f64>,
    /// The chance that they settle the cell.
    chance: Option<f64>,
    /// What they cost, what they save over the traffic, and after how many queries they have paid for themselves.
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
    if let Some(listed) = &listed {
        writeln!(out)?;
        paragraph(&mut out, 2, &listed.in_words(args))?;
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
    /// The flags that calibrate by the router's partition again.
    partition: String,
}

impl Listed {
    fn in_words(&self, args: &PlanArgs) -> String {
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
            text += " More labels on items that have some would change no action that is worth their price: give --items a table \
                     without votes, whose items are new.";
        }
        if self.missing > 0 {
            text += &format!(
                " The plan asks for {} more: the table is too small to make these cells certain.",
                counted(self.missing, "item", "items")
            );
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
    let bought = purchase(found, args);
    let cells = match &bought {
        Some(bought) => bought.cells.clone(),
        None => found.begin_with(usize::MAX).map(|first| first.cells).unwrap_or_default(),
    };
    let wanted = |cell: &CellPlan| cells.contains(&cell.cell);
    let items = found.items(router, &frame.table, wanted).map_err(|error| plan::of_rows(error, &frame))?;
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
    let have_votes = frame.table.has_votes();
    let known = router.items_in_common(&frame.table);
    if !have_votes && 2 * known > frame.table.rows() {
        render::warn(format!(
            "{} of the {} to choose from have the prediction of a calibration row: these items have labels, which --annotations or \
             columns of votes would give",
            count(known),
            counted(frame.table.rows(), "item", "items")
        ));
    }
    let served = if router.is_recalibrated() { " --recalibrate" } else { "" };
    let partition = format!(" --partition {}{served}", shell_quoted_text(&router.partition().to_string()));
    let of_router = if have_votes { router.rows_in_common(&frame.table) } else { Vec::new() };
    Ok(Listed {
        items: items.len(),
        labels: items.iter().map(|ItemToLabel { labels, .. }| labels).sum(),
        have_votes,
        not_of_router: of_router.into_iter().filter(|is_common| !is_common).count(),
        missing: if have_votes { 0 } else { found.items_missing(&items, wanted) },
        partition,
    })
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
    let open = |plan: &CellPlan| Open {
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
        cost: args.label_price.and_then(|price| plan.price(price)),
        saving: args.traffic.filter(|_| plan.labels.is_some()).map(|traffic| plan.saving(traffic)),
        pays_after: args.label_price.and_then(|price| plan.pays_after(price)),
        more_labels: plan.more_labels,
        chance_by_labels: plan.chance_by_labels,
        more_items: plan.more_items,
        chance_by_items: plan.chance_by_items,
        labels: plan.labels,
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
        let about = |more: Option<usize>| more.map_or("–".to_owned(), |more| format!("+{}", count(more)));
        grid.row([
            (plan.cell.to_string(), DIM),
            (router.cells().name(plan.cell, router.classes()), PLAIN),
            (percent(plan.share), PLAIN),
            (plan.action.clone(), style::action_named(&plan.action)),
            (plan.rival.clone(), style::action_named(&plan.rival)),
            (maybe(plan.margin, margin), PLAIN),
            (maybe(plan.labels.map(|_| plan.worth), worth), BOLD),
            (fixed(plan.at_stake, at_stake), PLAIN),
            (about(plan.more_labels), PLAIN),
            (about(plan.more_items), PLAIN),
            plan.labels.map_or(("out of reach".to_owned(), DIM), |labels| (format!("~{}", count(labels)), PLAIN)),
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
    line("more items", "or about how many more items of the cell, with as many labels per item as now")?;
    line("labels", "labels in all, by the cheaper of the two ways")?;
    if found.cells.iter().any(|plan| plan.labels.is_none()) {
        let (labels, times) = (Plan::MOST_LABELS, Plan::MOST_TIMES);
        line("out of reach", &format!("not within {labels} labels per item or {times} times the items"))?;
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

/// What to buy, in a sentence or two.
fn advice(found: &Plan, unit: &str, args: &PlanArgs) -> String {
    let Some(first) = found.begin_with(FIRST_CELLS) else {
        return match found.cells.iter().any(|plan| plan.labels.is_some()) {
            true => "Labels would make cells certain, but are expected to change no action: not worth it.".to_owned(),
            false => "No cell can be made certain within reason: not worth it.".to_owned(),
        };
    };
    let listed = |cells: &[pointsman::CellId]| {
        let which: Vec<String> = cells.iter().map(ToString::to_string).collect();
        format!("{} {}", if which.len() == 1 { "cell" } else { "cells" }, which.join(", "))
    };
    if let Some((bought, traffic)) = purchase(found, args).zip(args.traffic) {
        let queries = count(traffic as usize);
        if bought.cells.is_empty() {
            let pays = found.cells.iter().filter_map(|plan| plan.pays_after(args.label_price?)).min_by(f64::total_cmp);
            let from = pays.map_or(String::new(), |pays| {
                format!(" The best of them would have paid for themselves after {}.", queries_in_words(pays))
            });
            return format!("Not worth it: no labels save over {queries} queries what they cost.{from}");
        }
        return format!(
            "Worth buying: {} for {}. That costs {} and is expected to save {} over {queries} queries, in {unit}; the rest is \
             not worth it.",
            counted(bought.labels, "label", "labels"),
            listed(&bought.cells),
            short(bought.cost),
            short(bought.saving)
        );
    }
    let mut text = format!(
        "Begin with {}: about {} labels, worth about {} {unit} per thousand queries.",
        listed(&first.cells),
        count(first.labels),
        short(first.worth)
    );
    match args.label_price.and_then(|price| first.pays_after(price)) {
        Some(queries) => {
            let pays = queries_in_words(queries);
            text += &format!(" They have paid for themselves after {pays}; --traffic N says whether that is worth it.");
        }
        None => text += " Whether that is worth it, --label-price X and --traffic N say.",
    }
    text
}
