//! A diagnosis as one self-contained page: the verdict first, then its evidence.

use pointsman::Diagnosis;
use pointsman::diagnose::{Advice, Annotator, Compared, Estimate, WeakModel, Worth};
use pointsman::number::{count, counted, decimals, fixed, maybe, percent};
use pointsman::partition::SPARSE_BELOW_ROWS;
use pointsman::task::Named;
use serde::Serialize;

use crate::chart::{label, number};
use crate::page::{STYLE, advice, capitalised, escaped, fill};
use crate::report::NextStep;
use crate::words::{prices_of, ranking_label, rule_label};

const TEMPLATE: &str = include_str!("diagnosis.html");

/// The largest number of annotators and changed cells listed; `diagnosis.json` has all.
const MAX_LISTED: usize = 40;

/// Largest number of sentences in the headline.
const HEADLINE_SENTENCES: usize = 2;

/// A table with more columns is too wide for a phone, where its rows are stacked.
const MAX_PHONE_COLUMNS: usize = 4;

/// Standard errors on either side of a 95 % interval.
const Z_95_PERCENT: f64 = 1.96;

/// The heading above what is wrong with an annotator.
const UNEXPLAINED: &str = "what chance does not explain";

/// Largest length of an annotator's flags, in characters.
const MAX_FLAGS_CHARS: usize = 200;

/// Largest length of the name of a class, cell, partition or annotator, in characters.
const MAX_NAME_CHARS: usize = 80;

/// A diagnosis with warnings and next steps: what `pointsman diagnose --json` prints, and the data of its page.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DiagnosisReport {
    /// The diagnosis.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// Other reasons not to rely on the table, one sentence each.
    pub warnings: Vec<String>,
    /// What to do next, if anything.
    pub next_step: Option<NextStep>,
}

impl DiagnosisReport {
    /// A diagnosis, other reasons not to rely on the table, and what to do next, if anything.
    #[must_use]
    pub fn new(diagnosis: Diagnosis, warnings: Vec<String>, next_step: Option<NextStep>) -> Self {
        Self { diagnosis, warnings, next_step }
    }
}

/// The diagnosis as one self-contained page without scripts.
#[must_use]
pub fn diagnosis_html(report: &DiagnosisReport) -> String {
    let diagnosis = &report.diagnosis;
    fill(TEMPLATE, |name| match name {
        "style" => STYLE.to_owned(),
        "verdict" => escaped(&split_verdict(diagnosis)[0]),
        "details" => escaped(&split_verdict(diagnosis)[1]),
        "remarks" => html_list(diagnosis.verdict.remarks.iter().map(|text| replace_flags(diagnosis, text))),
        "rows" => escaped(&rows_line(diagnosis)),
        "task" => escaped(&prices_of(&diagnosis.task, diagnosis.unit)),
        "limit" => escaped(&limit_line(diagnosis)),
        "advice" => advice(&report.warnings, report.next_step.as_ref()),
        "sections" => {
            [savings_card(diagnosis), weak_model_card(diagnosis), data_card(diagnosis), independence_card(diagnosis)]
                .concat()
        }
        _ => String::new(),
    })
}

/// The verdict, split into at most two sentences and the rest.
fn split_verdict(diagnosis: &Diagnosis) -> [String; 2] {
    let sentence = &diagnosis.verdict.sentence;
    let in_words = replace_flags(diagnosis, sentence);
    if in_words != *sentence {
        let flagged = diagnosis.flagged_annotators.as_ref().map_or(0, |found| found.annotators.len());
        let headline = format!(
            "Mend the labels first: {} of {} not label independently of the others or of the model.",
            count(flagged),
            counted(diagnosis.annotators.len(), "annotator does", "annotators do")
        );
        return [headline, in_words.strip_prefix("Mend the labels first: ").unwrap_or(&in_words).to_owned()];
    }
    let ends = sentence.match_indices(". ").map(|(place, _)| place + 1);
    let mut ends = ends.filter(|&end| sentence[end..].trim_start().starts_with(char::is_uppercase));
    match ends.nth(HEADLINE_SENTENCES - 1) {
        Some(end) => [sentence[..end].to_owned(), sentence[end..].trim_start().to_owned()],
        None => [sentence.clone(), String::new()],
    }
}

/// Replaces the flags after annotators' names by words.
#[must_use]
pub fn replace_flags(diagnosis: &Diagnosis, text: &str) -> String {
    let flagged = diagnosis.annotators.iter().filter(|one| !one.flags.is_empty());
    flagged.fold(text.to_owned(), |text, one| {
        let (name, flags) = (&one.annotator, one.flags.join(", "));
        text.replace(&format!("{name} ({flags})"), &format!("{name} ({})", flags_in_words(one)))
    })
}

/// What chance does not explain about an annotator, in words.
#[must_use]
pub fn flags_in_words(one: &Annotator) -> String {
    let in_words = |flag: &String| match flag.as_str() {
        "agreement-low" => "agrees less with the others than they do among themselves".to_owned(),
        "agreement-high" => "agrees more with the others than they do among themselves".to_owned(),
        "follows-high" => "follows the label before".to_owned(),
        "model-high" => "names the model’s top class more often than others".to_owned(),
        other => match other.strip_prefix("class-").and_then(|class| class.rsplit_once('-')) {
            Some((class, "high")) => format!("says {class} more often than others"),
            Some((class, "low")) => format!("says {class} less often than others"),
            _ => other.to_owned(),
        },
    };
    one.flags.iter().map(in_words).collect::<Vec<_>>().join(", ")
}

/// Pointsman's name with a partition, since the verdict may be about another partition than the requested one.
fn router_with_partition(partition: &str) -> String {
    format!("{} ({})", rule_label("router"), label(partition, MAX_NAME_CHARS))
}

/// The recommended partition, if it is not the requested one.
fn recommended_partition(diagnosis: &Diagnosis) -> Option<&Compared> {
    let name = Some(&diagnosis.verdict.partition).filter(|&name| *name != diagnosis.partition)?;
    diagnosis.enough.partitions.iter().find(|other| other.partition == *name)
}

fn html_list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|text| format!("<li>{}</li>", escaped(&capitalised(&text)))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

fn rows_line(diagnosis: &Diagnosis) -> String {
    let used = match diagnosis.rows_used {
        used if used < diagnosis.rows => format!(", of which {} were used", count(used)),
        _ => String::new(),
    };
    let rows = counted(diagnosis.rows, "row", "rows");
    let classes = counted(diagnosis.classes.len(), "class", "classes");
    format!("{rows}{used}, {classes}; halved {} times, each half judged by routers of the other.", diagnosis.splits)
}

fn limit_line(diagnosis: &Diagnosis) -> String {
    match (diagnosis.task.budget, diagnosis.task.target_loss) {
        (Some(share), _) => format!("Budget: at most {} of the queries are routed.", percent(share)),
        (_, Some(loss)) => format!("Target: the least routing that keeps the expected loss at {}.", number(loss, 4)),
        _ => String::new(),
    }
}

/// A card: a question, a short answer, and its evidence.
fn card(question: &str, answer: &str, body: &str) -> String {
    let answer = if answer.is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>", escaped(answer)) };
    format!("<section class=\"card\"><h2>{question}</h2>{answer}{body}</section>\n")
}

/// A table whose first column names the row.
fn html_table(name: &str, heads: &[&str], rows: &[(bool, Vec<String>)]) -> String {
    let stack = if heads.len() > MAX_PHONE_COLUMNS { " stack" } else { "" };
    let row = |(own, cells): &(bool, Vec<String>)| {
        let mut cells = heads.iter().zip(cells);
        let first = cells.next().map_or(String::new(), |(_, text)| format!("<th scope=\"row\"><bdi>{text}</bdi></th>"));
        let cell = |(head, text): (&&str, &String)| format!("<td{} data-head=\"{head}\">{text}</td>", class_of(head));
        let rest: String = cells.map(cell).collect();
        format!("<tr{}>{first}{rest}</tr>", if *own { " class=\"own\"" } else { "" })
    };
    let rows: String = rows.iter().map(row).collect();
    let heads: String = heads.iter().map(|head| format!("<th{} scope=\"col\">{head}</th>", class_of(head))).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table class=\"plain{stack}\">\
         <thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// The class of a column: sentences are broken into lines, numbers are not.
fn class_of(head: &str) -> &'static str {
    if head == UNEXPLAINED { " class=\"text\"" } else { "" }
}

fn html_facts(items: &[(&str, String)]) -> String {
    let one = |(name, text): &(&str, String)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(text));
    format!("<dl>{}</dl>", items.iter().map(one).collect::<String>())
}

/// An estimate and its interval, as two cells of a table.
fn estimate_cells(value: Option<&Estimate>, digits: usize, scale: f64) -> [String; 2] {
    let Some(value) = value else { return [String::new(), String::new()] };
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(|x| fixed(scale * x, digits));
    [estimate, format!("{low} to {high}")]
}

/// A common scale for drawing intervals, with zero marked.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn new<'a>(values: impl Iterator<Item = &'a Estimate>) -> Self {
        let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v.low), high.max(v.high)));
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    fn at(&self, x: f64) -> f64 {
        6.0 + 148.0 * ((x - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn draw(&self, value: Option<&Estimate>, colour: &str) -> String {
        let Some(value) = value else { return String::new() };
        let [zero, low, high, here] = [0.0, value.low, value.high, value.estimate].map(|x| self.at(x));
        format!(
            "<div class=\"interval\" aria-hidden=\"true\"><svg viewBox=\"0 0 160 14\"><line class=\"axis\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"0\" y2=\"14\"/>\
             <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"7\" y2=\"7\" stroke=\"var(--{colour})\" stroke-width=\"3\"/>\
             <circle cx=\"{here:.1}\" cy=\"7\" r=\"4.5\" fill=\"var(--{colour})\"/></svg></div>"
        )
    }
}

fn savings_card(diagnosis: &Diagnosis) -> String {
    let question = "Is decomposition worth it here?";
    let unit = escaped(diagnosis.unit);
    let Some(worth) = &diagnosis.worth else {
        let Some(bounds) = &diagnosis.bounds else { return String::new() };
        let [low, high] = bounds.reducible;
        let digits = decimals([low, high]);
        let mut items = vec![(
            "reducible loss",
            format!("between {} and {} {} per query", fixed(low, digits), fixed(high, digits), diagnosis.unit),
        )];
        items.extend(
            bounds.decided.map(|share| ("decided by these bounds", format!("{} of the traffic", percent(share)))),
        );
        let answer = "With one label per item it cannot be known: noise and error look alike.";
        return card(question, answer, &html_facts(&items));
    };
    let costs = worth.costs.as_ref().zip(worth.savings.as_ref());
    let costs = costs.map_or(String::new(), |(costs, savings)| cost_table(diagnosis, worth, costs, savings, &unit));
    let digits = decimals([worth.loss.estimate, worth.reducible.estimate]);
    let [loss, _] = estimate_cells(Some(&worth.loss), digits, 1.0);
    let [reducible, interval] = estimate_cells(Some(&worth.reducible), digits, 1.0);
    let most = fixed(worth.reducible.per_thousand().high.max(0.0), 1);
    let mut items = vec![
        ("loss per query", format!("{loss} {}", diagnosis.unit)),
        ("of which reducible", format!("{reducible}, interval {interval}")),
        ("most that routing can save", format!("{most} {} per thousand queries", diagnosis.unit)),
    ];
    if let Some(correlation) = worth.correlation {
        let mut text = fixed(correlation, 2);
        if !ranks_better(worth) {
            text += "; if it were 1, ranking by the expected loss would do as well";
        }
        items.push(("correlation of reducible and total loss", text));
    }
    card(question, "", &(costs + &gain_table(diagnosis, worth) + &html_facts(&items)))
}

/// Whether Pointsman's gain exceeds that of ranking by confidence by more than a standard error.
fn ranks_better(worth: &Worth) -> bool {
    worth.gain_over_total_uncertainty.is_some_and(|more| more.estimate > (more.high - more.low) / (2.0 * Z_95_PERCENT))
}

/// Costs per query, and Pointsman's savings or, at a target loss, its reduction in routing.
fn cost_table(
    diagnosis: &Diagnosis,
    worth: &Worth,
    costs: &Named<Estimate>,
    savings: &Named<Estimate>,
    unit: &str,
) -> String {
    let target = worth.limit.as_ref().filter(|_| diagnosis.task.target_loss.is_some());
    let digits = decimals(costs.iter().map(|(_, cost)| cost.estimate));
    let saved = target.map_or(savings, |limit| &limit.spared);
    let (saved_digits, saved_scale) = if target.is_some() { (1, 100.0) } else { (digits, 1.0) };
    let scale = Scale::new(saved.iter().map(|(_, saving)| saving));
    let cost_head = format!("cost per query, {unit}");
    let saves = if target.is_some() { "Pointsman routes less by, %" } else { "Pointsman saves" };
    let other = recommended_partition(diagnosis);
    // Of two partitions, only the savings of the requested one have intervals.
    let saves = match other {
        Some(_) => saves.replace("Pointsman", &escaped(&router_with_partition(&diagnosis.partition))),
        None => saves.to_owned(),
    };
    let mut heads = vec!["rule", &cost_head, "interval", &saves, "interval", "drawn, zero marked"];
    heads.extend(worth.limit.as_ref().map(|_| "routed"));
    let row = |(name, cost): (&str, &Estimate)| {
        let name_of_rule =
            if name == "router" { router_with_partition(&diagnosis.partition) } else { rule_label(name) };
        let mut cells = vec![escaped(&name_of_rule)];
        cells.extend(estimate_cells(Some(cost), digits, 1.0));
        cells.extend(estimate_cells(saved.get(name), saved_digits, saved_scale));
        cells.push(scale.draw(saved.get(name), "predict"));
        let routed = worth.limit.as_ref().map(|limit| limit.routed.get(name));
        cells.extend(routed.map(|routed| routed.map_or(String::new(), |routed| percent(routed.estimate))));
        (name == "router", cells)
    };
    let mut rows: Vec<_> = costs.iter().map(row).collect();
    let mut caption =
        "The best confidence threshold is the best one on the entropy of the prediction, learned from the same rows."
            .to_owned();
    if let Some((other, cost)) = other.and_then(|other| Some((other, other.cost?))) {
        let name = router_with_partition(&other.partition);
        let mut cells = vec![escaped(&name), fixed(cost, digits)];
        cells.resize(heads.len(), String::new());
        if let (Some(last), Some(routed)) = (cells.last_mut().filter(|_| worth.limit.is_some()), other.routed) {
            *last = percent(routed);
        }
        let after_own = rows.iter().position(|(own, _)| *own).map_or(0, |place| place + 1);
        rows.insert(after_own, (true, cells));
        if let Some(saves) = &other.saves {
            let [estimate, ends] = estimate_cells(Some(saves), saved_digits, saved_scale);
            let what = if target.is_some() {
                "routes less than the best simpler rule by, %:"
            } else {
                "saves over the best simpler rule"
            };
            caption += &escaped(&format!(" {name}, which is recommended, {what} {estimate}, interval {ends}."));
        }
    }
    if worth.limit.is_some() {
        caption += " Each rule routes in its own order until the limit is reached on the rows judged; rules that cannot keep the limit are left out.";
    }
    html_table("Costs and savings", &heads, &rows) + &format!("<p class=\"caption\">{caption}</p>")
}

fn gain_table(diagnosis: &Diagnosis, worth: &Worth) -> String {
    let own = router_with_partition(&diagnosis.partition);
    let intervals = || worth.gain_interval.iter().filter_map(|(_, interval)| interval.as_ref());
    let scale = Scale::new(intervals().chain(&worth.gain_over_total_uncertainty));
    let row = |(name, &gain): (&str, &Option<f64>)| {
        let interval = worth.gain_interval.get(name).and_then(Option::as_ref);
        let [_, ends] = estimate_cells(interval, 3, 1.0);
        let name_of_ranking = if name == "higher-order" { own.clone() } else { ranking_label(name) };
        let cells = vec![escaped(&name_of_ranking), maybe(gain, 3), ends, scale.draw(interval, "predict")];
        (name == "higher-order", cells)
    };
    let mut rows: Vec<_> = worth.gain.iter().map(row).collect();
    if let Some(other) = recommended_partition(diagnosis) {
        let after_own = rows.iter().position(|(own, _)| *own).map_or(0, |place| place + 1);
        let cells =
            vec![escaped(&router_with_partition(&other.partition)), maybe(other.gain, 3), String::new(), String::new()];
        rows.insert(after_own, (true, cells));
    }
    if let Some(more) = &worth.gain_over_total_uncertainty {
        let [more_by, ends] = estimate_cells(Some(more), 3, 1.0);
        let name = escaped(&format!("{own} less {}", ranking_label("total-uncertainty")));
        rows.push((false, vec![name, more_by, ends, scale.draw(Some(more), "vermilion")]));
    }
    "<h3>Routing gain: 0 is routing at random, 1 the best order known</h3>".to_owned()
        + &html_table("Routing gains", &["ranking", "gain", "interval", "drawn, zero marked"], &rows)
}

fn weak_model_card(diagnosis: &Diagnosis) -> String {
    let model = &diagnosis.weak_model;
    let answer = match (model.is_calibrated(), model.is_overconfident()) {
        (true, _) => "Yes, as far as these rows show.",
        (false, true) => "No, it is overconfident.",
        (false, false) => "No.",
    };
    let mut items = vec![
        ("mean confidence", fixed(model.confidence, 3)),
        ("labels that are its top class", fixed(model.accuracy, 3)),
        (
            "calibration error",
            format!("{}, of which chance alone explains {}", fixed(model.error, 3), fixed(model.floor, 3)),
        ),
    ];
    let saved = |saves: &Estimate| {
        let digits = decimals([saves.estimate, saves.low, saves.high]).min(5);
        let [estimate, ends] = estimate_cells(Some(saves), digits, 1.0);
        format!("{estimate} {} per query, interval {ends}", diagnosis.unit)
    };
    // A negative reduction is reported as an increase.
    let turned = |saves: &Estimate, [falls, rises]: [&'static str; 2]| match saves.estimate < 0.0 {
        true => (rises, saved(&Estimate { estimate: -saves.estimate, low: -saves.high, high: -saves.low })),
        false => (falls, saved(saves)),
    };
    match &model.recalibrating_saves {
        [_, Some(cost)] => {
            items.push(turned(
                cost,
                ["at these prices, --recalibrate saves", "at these prices, --recalibrate costs more by"],
            ));
        }
        [Some(loss), None] => {
            items.push(turned(loss, ["--recalibrate lowers the loss by", "--recalibrate raises the loss by"]));
        }
        [None, None] => {}
    }
    let rows: Vec<_> = model
        .bins
        .iter()
        .map(|bin| (false, vec![fixed(bin.confidence, 3), fixed(bin.accuracy, 3), percent(bin.share)]))
        .collect();
    let numbers =
        html_table("Reliability", &["confidence", "labels that are the top class", "share of the rows"], &rows);
    let body = format!(
        "<div class=\"two\"><figure class=\"small\">{}<figcaption>Each circle is a group of rows of like confidence, its area their share. Below the \
         dashed line the model is more confident than the labels justify.</figcaption></figure>\
         <div>{}<details><summary>The circles as numbers</summary>{numbers}</details></div></div>",
        reliability_svg(model),
        html_facts(&items)
    );
    card("Is the weak model calibrated?", answer, &body)
}

/// The reliability diagram in the colours of the page.
fn reliability_svg(model: &WeakModel) -> String {
    const SIDE: f64 = 330.0;
    const LEFT: f64 = 52.0;
    const TOP: f64 = 26.0;
    // Space that keeps circles at 0 and 1 clear of the axes and their numbers.
    const CIRCLE_MARGIN: f64 = 20.0;
    let x = |v: f64| LEFT + CIRCLE_MARGIN + v * (SIDE - 2.0 * CIRCLE_MARGIN);
    let y = |v: f64| TOP + SIDE - CIRCLE_MARGIN - v * (SIDE - 2.0 * CIRCLE_MARGIN);
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Reliability diagram\">",
        right + 16.0,
        bottom + 48.0
    );
    for step in 0..=5 {
        let v = f64::from(step) / 5.0;
        svg += &format!(
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2} %</text>\
             <line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{3:.1}\" y2=\"{3:.1}\"/>\
             <text class=\"tick\" x=\"{4:.1}\" y=\"{5:.1}\" text-anchor=\"end\">{2} %</text>",
            x(v),
            bottom + 18.0,
            20 * step,
            y(v),
            LEFT - 6.0,
            y(v) + 4.0
        );
    }
    svg += &format!(
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <line class=\"axis\" x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">confidence</text>\
         <text x=\"2\" y=\"14\">labels that are its top class</text>\
         <line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--other)\" stroke-width=\"2\" stroke-dasharray=\"8 5\"/>",
        f64::midpoint(LEFT, right),
        bottom + 42.0,
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for bin in &model.bins {
        svg += &format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"var(--predict)\" fill-opacity=\"0.65\" stroke=\"var(--predict)\">\
             <title>confidence {}, labels {}, {} of the rows</title></circle>",
            x(bin.confidence),
            y(bin.accuracy),
            (40.0 * bin.share.sqrt()).clamp(3.0, 18.0),
            fixed(bin.confidence, 3),
            fixed(bin.accuracy, 3),
            percent(bin.share)
        );
    }
    svg + "</svg>"
}

fn data_card(diagnosis: &Diagnosis) -> String {
    let enough = &diagnosis.enough;
    let answer = match diagnosis.verdict.advice {
        Advice::OneLabel => "No: one label per item cannot separate noise from error.",
        Advice::MoreData => "Not yet: the intervals are too wide to decide.",
        Advice::MendLabels => "The number is not the problem: the labels have to be mended first.",
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
        let text = format!("{shortfall} of irreducible loss, if the labels were taken at face value (plugin)");
        items.push(("what so few labels would hide", text));
    }
    let mut cells = format!("{} of {}", count(enough.cells), label(&diagnosis.partition, MAX_NAME_CHARS));
    if enough.sparse_cells + enough.empty_cells > 0 {
        cells += &format!(
            "; {} sparse (under {SPARSE_BELOW_ROWS} rows) with {} of the rows, {} empty",
            count(enough.sparse_cells),
            percent(enough.rows_in_sparse_cells),
            count(enough.empty_cells)
        );
    }
    items.push(("cells", cells));
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
        (true, _) => "routes less than the first by",
        (false, true) => "saves over the first",
        (false, false) => "gains over the first",
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
    heads.extend([better, "interval", "drawn, zero marked"]);
    "<h3>Other partitions</h3>".to_owned() + &html_table("Partitions", &heads, &rows)
}

fn independence_card(diagnosis: &Diagnosis) -> String {
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
        let cell = |cell: &pointsman::diagnose::ChangedCell| {
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
    let answer = "Counts cannot show it: a copied label looks like an item on which everybody agrees.";
    let remark = "<p class=\"caption\">Annotators who are named can be tested: <code>--annotations</code> with columns id, label and annotator, in the \
                  order of labelling.</p>";
    card(question, answer, &(html_facts(&items) + &changed + remark + &identical))
}

/// Compares the annotators; those with flags come first.
fn annotator_table(diagnosis: &Diagnosis) -> (String, String) {
    let mut all: Vec<_> = diagnosis.annotators.iter().collect();
    all.sort_by_key(|one| one.flags.is_empty());
    let flagged = all.iter().filter(|one| !one.flags.is_empty()).count();
    let answer = match flagged {
        0 => format!(
            "As far as these labels show, none of {} differs from the others beyond chance.",
            counted(all.len(), "annotator", "annotators")
        ),
        _ => format!(
            "No: {} of {} by more than chance explains if labels are independent.",
            count(flagged),
            counted(all.len(), "annotator differs", "annotators differ")
        ),
    };
    let row = |one: &&Annotator| {
        let flags = escaped(&label(&flags_in_words(one), MAX_FLAGS_CHARS));
        let cells = vec![
            escaped(&label(&one.annotator, MAX_NAME_CHARS)),
            count(one.votes),
            maybe(one.agreement, 3),
            maybe(one.follows, 3),
            maybe(one.model, 3),
            flags,
        ];
        (!one.flags.is_empty(), cells)
    };
    let rows: Vec<_> = all.iter().take(MAX_LISTED).map(row).collect();
    let mut body =
        html_table("Annotators", &["annotator", "labels", "agreement", "follows", "model", UNEXPLAINED], &rows);
    if all.len() > MAX_LISTED {
        body += &format!("<p class=\"caption\">{MAX_LISTED} of {} annotators, those with flags first.</p>", all.len());
    }
    body += "<p class=\"caption\">Means over the items, zero up to chance if labels are independent: how much more often than others the annotator agrees \
             with another (agreement), repeats the label before (follows), or names the model’s top class (model).</p>";
    (answer, body)
}
