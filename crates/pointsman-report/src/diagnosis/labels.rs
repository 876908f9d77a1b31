//! The cards on labels, rows, cells and annotators.

use pointsman::Diagnosis;
use pointsman::diagnose::{Advice, Annotator, ChangedCell, Compared};
use pointsman::number::{count, decimals, fixed, maybe, percent};

use super::html::{Scale, UNEXPLAINED, card, estimate_cells, html_facts, html_table};
use super::{MAX_NAME_CHARS, annotators_answer, kind_of_cells, sparse_cells};
use crate::chart::label;
use crate::page::escaped;

/// The largest number of annotators and changed cells listed; `diagnosis.json` has all.
const MAX_LISTED: usize = 40;

/// Largest length of an annotator's flags, in characters.
const MAX_FLAGS_CHARS: usize = 200;

pub(super) fn data_card(diagnosis: &Diagnosis) -> String {
    let enough = &diagnosis.enough;
    let answer = match diagnosis.verdict.advice {
        Advice::OneLabel => "No: one label per item cannot separate noise from error.",
        Advice::MoreData => "Not yet: these rows are too few to decide.",
        Advice::MendLabels => "The number is not the problem: the labels must be corrected first.",
        _ => "Yes, for this verdict.",
    };
    let [fewest, median, most] = enough.labels;
    let labels = match fewest == most {
        true => format!("{fewest} per row"),
        false => format!("{fewest} to {most} per row, median {median}; {} have two or more", percent(enough.paired)),
    };
    let mut items = vec![("labels", labels)];
    if let Some(shortfall) = enough.plugin_shortfall {
        let shortfall = fixed(shortfall, decimals([shortfall]).min(4));
        let text = format!("{shortfall} too low, if the means of labels were taken for the truth (plugin)");
        items.push(("irreducible loss", text));
    }
    let partition = label(diagnosis.chosen.as_ref().unwrap_or(&diagnosis.partition), MAX_NAME_CHARS);
    let kind = kind_of_cells(&partition);
    items.push(("cells", format!("{} of {partition}{kind}{}", count(enough.cells), sparse_cells(enough))));
    if let Some(stability) = enough.stability {
        items.push(("routers of two halves agree on", format!("{} of the rows", percent(stability))));
    }
    card("Are labels, rows and cells enough?", answer, &(html_facts(&items) + &partition_table(diagnosis)))
}

/// Compares the partitions; the requested one comes first.
fn partition_table(diagnosis: &Diagnosis) -> String {
    let compared = &diagnosis.enough.partitions;
    if compared.len() < 2 {
        return String::new();
    }
    let prices = compared.iter().any(|partition| partition.cost.is_some());
    let targeted = prices && diagnosis.task.target_loss.is_some();
    let digits = if prices && !targeted { decimals(compared.iter().filter_map(|p| p.cost)) } else { 3 };
    let better = match (targeted, prices) {
        (true, _) => "routes less than the first row by",
        (false, true) => "saving against the first row",
        (false, false) => "gain over the first row",
    };
    let value = match (targeted, prices) {
        (true, _) => "routed",
        (false, true) => "cost per query",
        (false, false) => "",
    };
    let scale = Scale::new(compared.iter().filter_map(|partition| partition.better_by.as_ref()));
    let row = |(place, partition): (usize, &Compared)| {
        let by = partition.better_by.as_ref();
        let mut cells = vec![escaped(&label(&partition.partition, MAX_NAME_CHARS)), maybe(partition.gain, 3)];
        if prices {
            cells.push(maybe(if targeted { partition.routed } else { partition.cost }, digits));
        }
        cells.extend(estimate_cells(by, digits, 1.0));
        cells.push(scale.draw(by, "predict"));
        (place == 0, cells)
    };
    let rows: Vec<_> = compared.iter().enumerate().map(row).collect();
    let mut heads = vec!["partition", "gain"];
    heads.extend(prices.then_some(value));
    heads.extend([better, "interval", "interval (line at zero)"]);
    "<h3>Other partitions</h3>".to_owned() + &html_table("Partitions", &heads, &rows)
}

pub(super) fn independence_card(diagnosis: &Diagnosis) -> String {
    let question = "Are the labels independent?";
    let found = &diagnosis.agreement;
    let identical = match found.identical_rows {
        0 => String::new(),
        rows => format!(
            "<p class=\"caption\">Rows that equal another in prediction, features and votes: {}. Copies count twice.</p>",
            count(rows)
        ),
    };
    if !diagnosis.annotators.is_empty() {
        let (answer, body) = annotator_table(diagnosis);
        return card(question, &answer, &(body + &identical));
    }
    if found.rows == 0 {
        return card(question, "With one label per item there is nothing to compare.", &identical);
    }
    let mut items =
        vec![("rows with several labels", count(found.rows)), ("of which unanimous", count(found.unanimous))];
    let mut changed = String::new();
    if let Some(sensitivity) = &found.sensitivity {
        let (own, copied) = (sensitivity.irreducible, sensitivity.irreducible_if_copied);
        let digits = decimals([own, copied]);
        items.push((
            "irreducible loss",
            format!(
                "{}; {} if {} of the unanimous rows were copies",
                fixed(own, digits),
                fixed(copied, digits),
                percent(sensitivity.share)
            ),
        ));
        let cell = |cell: &ChangedCell| {
            (
                false,
                [&cell.cell, &cell.action, &cell.action_if_copied]
                    .map(|text| escaped(&label(text, MAX_NAME_CHARS)))
                    .to_vec(),
            )
        };
        let rows: Vec<_> = sensitivity.cells.iter().take(MAX_LISTED).map(cell).collect();
        if !rows.is_empty() {
            changed = html_table("Cells whose action would change", &["cell", "action", "if copied"], &rows);
        }
    }
    let answer = match found.copies {
        Some(copies) => format!("No: all counts are multiples of {copies}, so each label was counted {copies} times."),
        None => "Counts cannot show it: a copied label looks like an item on which everybody agrees.".to_owned(),
    };
    let remark = "<p class=\"caption\">Annotators who are named can be tested: <code>--annotations</code> with columns id, label and annotator, in the \
                  order of labelling.</p>";
    card(question, &answer, &(html_facts(&items) + &changed + remark + &identical))
}

/// Compares the annotators; those with flags come first.
fn annotator_table(diagnosis: &Diagnosis) -> (String, String) {
    let mut all: Vec<_> = diagnosis.annotators.iter().collect();
    all.sort_by_key(|one| one.flags.is_empty());
    let has_flags = all.first().is_some_and(|one| !one.flags.is_empty());
    let answer = if has_flags { "No: " } else { "" }.to_owned() + &annotators_answer(diagnosis);
    let row = |one: &&Annotator| {
        let flags = escaped(&label(&one.flags_in_words(), MAX_FLAGS_CHARS));
        let cells = vec![
            escaped(&label(&one.annotator, MAX_NAME_CHARS)),
            count(one.votes),
            maybe(one.agreement, 3),
            maybe(one.agreement_standard_error, 3),
            maybe(one.follows, 3),
            maybe(one.model, 3),
            flags,
        ];
        (!one.flags.is_empty(), cells)
    };
    let rows: Vec<_> = all.iter().take(MAX_LISTED).map(row).collect();
    let mut body = html_table(
        "Annotators",
        &["annotator", "labels", "agreement", "± s.e.", "follows", "model", UNEXPLAINED],
        &rows,
    );
    if all.len() > MAX_LISTED {
        body += &format!("<p class=\"caption\">{MAX_LISTED} of {} annotators, those with flags first.</p>", all.len());
    }
    body += "<p class=\"caption\">Means over the items, zero up to chance if labels are independent: how much more often than others the annotator agrees \
             with another (agreement), repeats the label before (follows), or names the model’s top class (model).</p>";
    (answer, body)
}
