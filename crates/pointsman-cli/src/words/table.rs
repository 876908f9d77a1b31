//! Warnings about a table: what reading it decided, and what is wrong with its labels.

use pointsman::diagnose::{AnnotatorCheck, Mismatch, Stopping, Unanimity, copies_per_label};
use pointsman::partition::{Factor, SPARSE_BELOW_ROWS};
use pointsman::{Router, Table, Votes};
use pointsman_table::{CopiedLabels, Frame, Ids, Joined, MatchedLabels, RepeatedIds, Sums};

use crate::args::VotesArgs;
use crate::flags::shell_quoted_text;
use crate::render::number::{count, counted, percent, short};

/// What reading a table decided, one sentence each: votes replaced by annotations, rows and labels left out, ids of several rows,
/// probabilities divided by their sum.
pub(crate) fn reading(frame: &Frame) -> Vec<String> {
    let mut sentences = Vec::new();
    if frame.ignored_votes {
        sentences.push("--annotations replaces the votes or labels of the table itself".to_owned());
    }
    if frame.rows_without_labels > 0 {
        let rows = counted(frame.rows_without_labels, "row has", "rows have");
        sentences.push(format!("{rows} no labels but those of annotators left out, and were dropped"));
    }
    sentences.extend(frame.numbers_as_labels());
    if !frame.decided_labels.is_empty() {
        sentences.push(decided_labels(&frame.decided_labels, &frame.label_columns));
    }
    if let Some(joined) = &frame.joined {
        sentences.extend(frame.taken_id.as_ref().map(|column| taken_id(column)));
        sentences.extend(join(joined));
    }
    sentences
        .extend(frame.without_answers.iter().map(|(column, rows)| without_answers(column, *rows, frame.table.rows())));
    sentences.extend(frame.unread_answers.iter().map(|column| unread_answers(column)));
    if let Some(RepeatedIds { ids, rows, .. }) = frame.repeated_ids() {
        sentences.push(format!(
            "{} in {} ({}): each row counts; leave copies out, since they are no further evidence",
            counted(ids.count, "id occurs", "ids occur"),
            counted(rows, "row", "rows"),
            listed(&ids)
        ));
    }
    sentences.extend(frame.sums.map(|sums| normalized_sums("the probabilities", sums)));
    sentences.extend(
        frame.other_sums.iter().map(|(columns, sums)| normalized_sums(&format!("the columns {columns}"), *sums)),
    );
    sentences.extend(divided(divided_rows(&frame.table)));
    sentences
}

/// That annotations were joined by a column with another name than was asked for, and what commands without annotations need.
fn taken_id(column: &str) -> String {
    let flag = shell_quoted_text(&format!("id={column}"));
    format!("took the column {column} of the table for id; commands that name rows by id need --columns {flag}")
}

/// That columns read as labels may hold decisions made from the other labels, and how these columns are left out.
fn decided_labels(decided: &[String], columns: &[String]) -> String {
    /// The largest number of columns named one by one.
    const MAX_NAMED: usize = 20;
    let (subject, condition, them) = match decided {
        [only] => (
            format!("the column {only} is read as one more independent label of each item"),
            "it is a majority vote or a decision made from the others, it hides noise",
            "it",
        ),
        several => (
            format!("the columns {} are read as further independent labels of each item", several.join(", ")),
            "they are majority votes or decisions made from the others, they hide noise",
            "them",
        ),
    };
    let others: Vec<&str> = columns.iter().filter(|column| !decided.contains(column)).map(String::as_str).collect();
    // A single name would be a prefix, and commas separate the entries of the flag.
    let can_be_named = (2..=MAX_NAMED).contains(&others.len()) && !others.iter().any(|name| name.contains([',', '\'']));
    let remedy = match can_be_named {
        true => format!(
            "leave {them} out by naming the others, --columns {} (in Python columns={{'labels': ['{}']}})",
            shell_quoted_text(&format!("labels={}", others.join(",labels="))),
            others.join("', '")
        ),
        false => format!("drop {them}, or give {them} a name that does not begin as those of the others do"),
    };
    format!("{subject}; if {condition}: {remedy}")
}

/// That rows without another model's answer were left out, and what the others stand for.
fn without_answers(column: &str, rows: u64, kept: usize) -> String {
    format!(
        "{} no answer in column {column} and {} left out, as --where asks; {} left: they stand for all rows only if the model was asked \
         about a random sample; if it was asked about chosen rows, such as hard ones, ask it about the others too, or drop its columns and \
         calibrate on all rows",
        counted(rows as usize, "row has", "rows have"),
        if rows == 1 { "was" } else { "were" },
        counted(kept, "row is", "rows are"),
    )
}

/// That a column may have another model's answers, which are not read since they could be any numbers.
fn unread_answers(column: &str) -> String {
    format!(
        "column {column} was not read: it has numbers, which may be classes or something else; if it has the classes that a model \
         answered, add --columns oracles=oracle_, otherwise rename it"
    )
}

/// The columns and labels that a join assumed, and the ids that only one of the two tables has.
fn join(joined: &Joined) -> Vec<String> {
    let Joined {
        file,
        rows,
        not_annotated,
        not_in_table,
        taken,
        copied,
        matched,
        matched_annotators,
        absent_without,
        unused_annotator,
        ignored,
        superseded,
        rows_with_few_labels,
        differ_in_capitals,
        ..
    } = joined;
    let mut sentences = Vec::new();
    if !taken.is_empty() {
        let (keys, names): (Vec<_>, Vec<_>) = taken.iter().map(|(key, name)| (*key, name.as_str())).unzip();
        sentences.push(format!("{file}: took {} for {}", names.join(", "), keys.join(", ")));
    }
    if let Some(column) = unused_annotator {
        let flag = shell_quoted_text(&format!("annotator={column}"));
        sentences.push(format!("{file} has a column {column}: add --columns {flag} if it names the annotators"));
    }
    if *ignored > 0 {
        let labels = counted(*ignored, "label was", "labels were");
        sentences.push(format!("{file}: {labels} left out, as --ignore-label asks"));
    }
    if *rows_with_few_labels > 0 {
        let rows = counted(*rows_with_few_labels, "row has", "rows have");
        sentences.push(format!("{rows} fewer labels than --min-labels asks for, and were left out"));
    }
    if *superseded > 0 {
        let labels = counted(*superseded, "label was", "labels were");
        sentences.push(format!(
            "{file}: {labels} left out, since the annotator has another label on the same item, as --keep-label asks"
        ));
    }
    if let Some(CopiedLabels { rows, id, annotator, row, of_row, .. }) = copied {
        sentences.push(format!(
            "{file}: {} an earlier label of the same annotator on the same item, and {} counted once (first row {row}, which repeats row \
             {of_row}: {annotator} on {id})",
            counted(*rows, "row repeats", "rows repeat"),
            if *rows == 1 { "was" } else { "were" },
        ));
    }
    if let Some(MatchedLabels { rows, labels, .. }) = matched {
        let pairs: Vec<String> = labels.iter().map(|(label, class)| format!("{label:?} as {class}")).collect();
        sentences.push(format!(
            "{file}: {} from the name of a class in capitals or spaces only and {} counted: {}",
            counted(*rows, "label differs", "labels differ"),
            if *rows == 1 { "was" } else { "were" },
            pairs.join(", ")
        ));
    }
    if let Some(MatchedLabels { rows, labels, .. }) = matched_annotators {
        let pairs: Vec<String> = labels.iter().map(|(name, first)| format!("{name:?} as {first}")).collect();
        sentences.push(format!(
            "{file}: {} an annotator by a name that differs from an earlier one in capitals or spaces only, taken for one annotator: {}",
            counted(*rows, "row has", "rows have"),
            pairs.join(", ")
        ));
    }
    if !absent_without.is_empty() {
        let names: Vec<String> = absent_without.iter().map(|name| format!("--without {name:?}")).collect();
        sentences.push(format!("{file}: no annotator has the name of {}", names.join(", ")));
    }
    if not_annotated.count > 0 {
        sentences.push(format!(
            "{} no annotation in {file} ({}) and {} left out; {} joined (--strict refuses this)",
            counted(not_annotated.count, "row has", "rows have"),
            listed(not_annotated),
            if not_annotated.count == 1 { "was" } else { "were" },
            counted(*rows, "row is", "rows are"),
        ));
    }
    if not_in_table.count > 0 {
        let is = if not_in_table.count == 1 { "is" } else { "are" };
        sentences.push(format!(
            "{} of {file} {is} not in the table ({}): their labels were left out (--strict refuses this){}",
            counted(not_in_table.count, "id", "ids"),
            listed(not_in_table),
            match differ_in_capitals {
                Some(MatchedLabels { rows, labels, .. }) => format!(
                    "; {} from {} of the table in capitals or spaces only ({}): write ids the same way in both tables",
                    counted(*rows, "differs", "differ"),
                    if *rows == 1 { "an id" } else { "ids" },
                    labels.iter().map(|(id, other)| format!("{id:?} for {other:?}")).collect::<Vec<_>>().join(", ")
                ),
                None => String::new(),
            }
        ));
    }
    sentences
}

/// Whether a table has items that shaped the cells of a router and are not among its rows: the partition was learned from half of the rows,
/// and the table has most of the others.
pub(crate) fn has_items_that_shaped_cells(router: &Router, table: &Table) -> bool {
    learned_from_other_items(router) && router.has_most_items_in(table)
}

/// Whether the cells of a router were learned from labels of items that are not among its rows.
pub(crate) fn learned_from_other_items(router: &Router) -> bool {
    let is_honest = |factor: &Factor| factor.learns() && !matches!(factor, Factor::Forest { .. });
    router.partition().factors().iter().any(is_honest)
}

/// The columns that the rows of a router have and a table lacks, without which its rows cannot be added; `None` if it has all.
pub(crate) fn columns_missing(router: &Router, table: &Table) -> Option<String> {
    /// The largest number of columns listed.
    const MAX_LISTED: usize = 6;
    let lacks_oracle = |name: &str| !table.oracles().any(|(own, _)| own == name);
    let oracles = router.rows().oracles().map(|(name, _)| name).filter(|name| lacks_oracle(name));
    let answers = oracles.flat_map(|name| router.classes().iter().map(move |class| format!("oracle_{name}_{class}")));
    let features = router.rows().feature_names().iter().filter(|name| !table.feature_names().contains(name));
    let missing: Vec<String> = features.map(|name| format!("x_{name}")).chain(answers).collect();
    let more = missing.len().saturating_sub(MAX_LISTED);
    let listed = missing.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match (missing.len(), more) {
        (0, _) => None,
        (1, _) => Some(format!("column {listed}")),
        (_, 0) => Some(format!("columns {listed}")),
        _ => Some(format!("columns {listed} and {more} more")),
    }
}

/// The first ids, and whether there are more.
fn listed(ids: &Ids) -> String {
    let more = if ids.count > ids.first.len() { ", …" } else { "" };
    ids.first.join(", ") + more
}

/// The sums that `--normalize` divided probabilities by.
pub(crate) fn normalized_sums(values: &str, sums: Sums) -> String {
    /// Sums of rounded probabilities are closer to each other than this factor; sums of scores are not.
    const MAX_RATIO: f64 = 1.5;
    let Sums { rows, least, largest, .. } = sums;
    let range = match [least, largest].map(short) {
        [least, largest] if least == largest => least,
        [least, largest] => format!("between {least} and {largest}"),
    };
    let doubt = match largest > MAX_RATIO * least {
        true => "; sums that far apart suggest scores, which dividing does not make probabilities",
        false => "",
    };
    let rows = counted(rows, "row", "rows");
    format!("--normalize: {values} of {rows} summed to {range} and were divided by it{doubt}")
}

/// A warning that probabilities were divided by their sum; `None` if no rows were.
pub(crate) fn divided(rows: usize) -> Option<String> {
    let rows_counted = counted(rows, "row", "rows");
    (rows > 0).then(|| format!("the probabilities of {rows_counted} do not sum to one and were divided by their sum"))
}

/// The number of rows whose probabilities were divided by a sum that differs from one by more than rounding.
pub(crate) fn divided_rows(table: &Table) -> usize {
    const SINGLE_PRECISION: f64 = 1e-5;
    let is_off = |&row: &usize| {
        let prediction = table.prediction(row);
        let off = (prediction.iter().sum::<f64>() - 1.0).abs();
        off > SINGLE_PRECISION && off > rounding_error(&prediction)
    };
    (0..table.rows()).filter(is_off).count()
}

/// The largest distance from one of a sum of probabilities written with few decimals; zero if they were not.
fn rounding_error(probabilities: &[f64]) -> f64 {
    /// The largest distance, in units of the last decimal, of a number in single precision from its decimals.
    const MAX_DISTANCE: f64 = 2e-2;
    let is_written_with =
        |unit: f64| probabilities.iter().all(|p| (p / unit - (p / unit).round()).abs() < MAX_DISTANCE);
    let unit = [1e-2, 1e-3, 1e-4, 1e-5].into_iter().find(|&unit| is_written_with(unit));
    // Half a unit per number, and the error of binary fractions.
    unit.map_or(0.0, |unit| 0.5 * unit * probabilities.len() as f64 + 1e-9)
}

/// A warning that the classes of votes and probabilities seem to be matched wrongly.
pub(crate) fn mismatch(table: &Table) -> anyhow::Result<Option<String>> {
    const MAX_LISTED: usize = 5;
    let sentence = |found: Mismatch| {
        format!(
            "the classes of votes and probabilities seem to be matched wrongly: {}. Where the model predicts one of these classes, labels \
             agree with it in {} of cases, less than the {} of pure chance; matched like that, in {}; compare the names and order of the \
             columns",
            found.matches_in_words(MAX_LISTED),
            percent(found.agreement),
            percent(found.chance),
            percent(found.agreement_if_matched)
        )
    };
    Ok(Mismatch::detect(table)?.map(sentence))
}

/// Warnings about labels: fewer than `--first-labels`, copied, or collected until annotators agreed. The number of labels may differ from
/// cell to cell of `planned`, since a plan asks for as many as each cell needs.
pub(crate) fn labels(frame: &Frame, votes: &VotesArgs, planned: Option<&Router>) -> anyhow::Result<Vec<String>> {
    let (table, mut sentences) = (&frame.table, Vec::new());
    let labels = |row: usize| table.votes(row).map_or(0, Votes::k);
    if votes.keep_label.is_some() {
        sentences.extend(order_by_row(frame));
    }
    if let Some(first) = votes.first_labels.filter(|_| table.has_votes()) {
        sentences.extend(order_by_row(frame).filter(|_| votes.keep_label.is_none()));
        let first = u64::from(first.get());
        let fewer = (0..table.rows()).filter(|&row| labels(row) < first).count();
        if fewer > 0 {
            let fewest = (0..table.rows()).map(labels).min().unwrap_or(0);
            let remedy = match fewest {
                0 | 1 => {
                    let flag = if votes.annotations.is_some() { ", with --min-labels 2" } else { "" };
                    format!("leave these rows out of the table{flag}, since one label shows nothing of the noise")
                }
                fewest => format!("choose as few labels as every row has, --first-labels {fewest}"),
            };
            sentences.push(format!(
                "{} fewer than {first} labels and {} all: {remedy}, or their number may depend on what they say",
                counted(fewer, "row has", "rows have"),
                if fewer == 1 { "keeps" } else { "keep" }
            ));
        }
    }
    if let Some(found) = Unanimity::detect(table)? {
        sentences.push(format!(
            "the labels of every row agree, though {} of {} rows contradict the others of like prediction: either nothing is ambiguous \
             here, or each label was copied; copies hide all noise, so count each independent label once",
            count(found.contradicting),
            count(found.rows)
        ));
    }
    // Copies make the labels of every row with the fewest labels agree, which is no sign of labelling until annotators agree.
    if let Some(copies) = copies_per_label(table) {
        sentences.push(format!(
            "all counts are multiples of {copies}: each label was counted {copies} times, which hides noise and makes every estimate look \
             more certain than it is; divide all counts by {copies} or, in a table of annotations, drop the rows that repeat others"
        ));
        return Ok(sentences);
    }
    let stopping = Stopping::detect_annotated(table, frame.annotations.as_ref())?;
    let Some(stopping) = stopping.filter(Stopping::is_suspicious) else { return Ok(sentences) };
    // Cells of a few rows each would hide what the labels say.
    let has_rows = |router: &&Router| router.rows().rows() >= SPARSE_BELOW_ROWS * router.cells().count();
    if let Some(router) = planned.filter(has_rows)
        && let Ok(within_cells) = Stopping::detect_within_cells(table, router)
        && !within_cells.is_some_and(|found| found.is_suspicious())
    {
        return Ok(sentences);
    }
    let Stopping { z, disagreement: [few, many], labels: [fewest, most], .. } = stopping;
    let why = match stopping.stopped_at {
        Some(k) => format!("every row with {k} labels is unanimous: labelling went on until annotators agreed"),
        None => "the number of labels depends on the labels, or harder items were given more on purpose (chance alone gives this \
                 warning for one table in a thousand)"
            .to_owned(),
    };
    sentences.push(format!(
        "rows carry {fewest} to {most} labels, and among rows of like confidence more labels go with {} disagreement (two labels \
         of a row differ in {} of cases where labels are few, in {} where they are many): {why}; if the number depends on the labels, \
         every estimate is biased: keep the first labels only (--first-labels, with --annotations, lists of labels or a column per label)",
        if z > 0.0 { "more" } else { "less" },
        percent(few),
        percent(many)
    ));
    Ok(sentences)
}

/// A warning that the order of annotations is that of the annotators, or that a column may show the order of labelling.
pub(crate) fn annotation_order(frame: &Frame) -> Option<String> {
    let joined = frame.joined.as_ref()?;
    let (file, date) = (&joined.file, joined.unused_date.as_ref());
    if joined.is_sorted_by_annotator {
        let column = match date {
            Some(date) => format!("name the column {date} if it has the time of each label, {}", date_flag(date)),
            None => "a column with the time of each label, --columns date=NAME".to_owned(),
        };
        return Some(format!(
            "{file}: the annotators of every item are in the same order, so the rows are sorted by annotator and do not show who \
             labelled first: whether somebody copies the label before cannot be tested; give the rows in the order of labelling, or \
             {column}"
        ));
    }
    // Who labelled first matters only where annotators are named.
    date.filter(|_| frame.annotations.is_some()).map(|date| assumed_order(file, date))
}

/// A warning that the first or latest labels are found by the order of rows, although a column may show when labels were given.
fn order_by_row(frame: &Frame) -> Option<String> {
    let joined = frame.joined.as_ref()?;
    joined.unused_date.as_ref().map(|date| assumed_order(&joined.file, date))
}

fn assumed_order(file: &str, date: &str) -> String {
    format!(
        "{file} has a column {date} of dates or times that is not used, and its rows are taken to be in the order of labelling: add {} if \
         it has the time of each label",
        date_flag(date)
    )
}

fn date_flag(column: &str) -> String {
    format!("--columns {}", shell_quoted_text(&format!("date={column}")))
}

/// A warning that annotators differ by more than chance explains.
pub(crate) fn annotators(frame: &Frame) -> anyhow::Result<Option<String>> {
    /// The largest number of annotators listed.
    const MAX_LISTED: usize = 5;
    let Some(annotations) = &frame.annotations else { return Ok(None) };
    let check = AnnotatorCheck::new(&frame.table, annotations)?;
    let flagged: Vec<&str> =
        check.annotators.iter().filter(|one| !one.flags.is_empty()).map(|one| one.annotator.as_str()).collect();
    let names = flagged.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
    let more = if flagged.len() > MAX_LISTED { ", …" } else { "" };
    let who = counted(flagged.len(), "annotator differs", "annotators differ");
    Ok((!flagged.is_empty()).then(|| {
        format!("{who} by more than chance explains ({names}{more}): run diagnose on this table before relying on it")
    }))
}
