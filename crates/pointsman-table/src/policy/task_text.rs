//! Tasks as the text of a task file.

use std::fmt::Write as _;

use pointsman::{Limit, Loss, Task};

/// The text of a task file for a task: reading it gives an equal task.
///
/// ```
/// use pointsman::{Loss, Oracle, Task};
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.30)?;
/// assert_eq!(pointsman_table::parse_task(&pointsman_table::task_text(&task))?, task);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn task_text(task: &Task) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("loss", loss_text(task.loss()));
    line("estimator", quoted(&task.chosen_estimator().to_string()));
    line("ties", quoted(&task.chosen_ties().to_string()));
    if let Some(price) = task.abstain_price() {
        line("abstain", number(price));
    }
    match task.limit() {
        Some(Limit::Budget(share)) => line("budget", number(share)),
        Some(Limit::TargetLoss(loss)) => line("target_loss", number(loss)),
        None => {}
    }
    for route in task.routes() {
        let (name, kind) = (quoted(route.name()), quoted(&route.oracle().to_string()));
        let _ = writeln!(text, "\n[[route]]\nname = {name}\nkind = {kind}\ncost = {}", number(route.price()));
    }
    text
}

/// A loss by its name, or as a table of acts and costs.
fn loss_text(loss: &Loss) -> String {
    let name = loss.to_string();
    let (Some(acts), Some(costs)) = (loss.acts(), loss.costs()) else { return quoted(&name) };
    if name.parse::<Loss>().is_ok_and(|named| named == *loss) {
        return quoted(&name);
    }
    let names = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let row = |row: &&[f64]| format!("[{}]", row.iter().map(|cost| number(*cost)).collect::<Vec<_>>().join(", "));
    let classes = loss.class_names().map_or(String::new(), |classes| format!("classes = [{}], ", names(classes)));
    let costs = costs.iter().map(row).collect::<Vec<_>>().join(", ");
    format!("{{ {classes}acts = [{}], cost = [{costs}] }}", names(acts))
}

/// A number with all its digits.
fn number(value: f64) -> String {
    format!("{value:?}")
}

/// A basic string of TOML. The escapes of JSON are among those of TOML, which also forbids a bare delete character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
