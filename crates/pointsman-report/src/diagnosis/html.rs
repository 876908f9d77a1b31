//! Cards, tables and drawn intervals of the page.

use pointsman::diagnose::Estimate;
use pointsman::number::fixed;

use crate::page::{capitalised, escaped};

/// A table with more columns is too wide for a phone, where its rows are stacked.
const MAX_PHONE_COLUMNS: usize = 3;

/// The heading above what is wrong with an annotator.
pub(super) const UNEXPLAINED: &str = "what chance does not explain";

pub(super) fn html_list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|text| format!("<li>{}</li>", escaped(&capitalised(&text)))).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

/// A card: a question, a short answer, and its evidence.
pub(super) fn card(question: &str, answer: &str, body: &str) -> String {
    let answer = if answer.is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>", escaped(answer)) };
    format!("<section class=\"card\"><h2>{question}</h2>{answer}{body}</section>\n")
}

/// A table whose first column names the row.
pub(super) fn html_table(name: &str, heads: &[&str], rows: &[(bool, Vec<String>)]) -> String {
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

pub(super) fn html_facts(items: &[(&str, String)]) -> String {
    let one = |(name, text): &(&str, String)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(text));
    format!("<dl>{}</dl>", items.iter().map(one).collect::<String>())
}

/// An estimate and its interval, as two cells of a table.
pub(super) fn estimate_cells(value: Option<&Estimate>, digits: usize, scale: f64) -> [String; 2] {
    let Some(value) = value else { return [String::new(), String::new()] };
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(|x| fixed(scale * x, digits));
    [estimate, format!("{low} to {high}")]
}

/// A common scale for drawing intervals, with zero marked.
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a Estimate>) -> Self {
        let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v.low), high.max(v.high)));
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    fn at(&self, x: f64) -> f64 {
        6.0 + 148.0 * ((x - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    pub(super) fn draw(&self, value: Option<&Estimate>, colour: &str) -> String {
        let Some(value) = value else { return String::new() };
        let [zero, low, high, here] = [0.0, value.low, value.high, value.estimate].map(|x| self.at(x));
        format!(
            "<div class=\"interval\" aria-hidden=\"true\"><svg viewBox=\"0 0 160 14\"><line class=\"axis\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"0\" y2=\"14\"/>\
             <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"7\" y2=\"7\" stroke=\"var(--{colour})\" stroke-width=\"3\"/>\
             <circle cx=\"{here:.1}\" cy=\"7\" r=\"4.5\" fill=\"var(--{colour})\"/></svg></div>"
        )
    }
}
