//! Colours, which the output stream strips if they are not wanted.

use anstyle::{AnsiColor, Style};
use pointsman::{Action, Support};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// The colour of an action.
pub(crate) fn action(action: &Action<'_>) -> Style {
    match action {
        Action::Predict => AnsiColor::Green.on_default(),
        Action::Route(_) => AnsiColor::Cyan.on_default(),
        Action::Abstain => AnsiColor::Magenta.on_default(),
        Action::Undetermined => AnsiColor::Yellow.on_default(),
    }
}

/// The colour of an action by name: `predict`, `route:<name>`, `abstain` or `undetermined`.
pub(crate) fn action_named(name: &str) -> Style {
    action(&match name.split_once(':') {
        Some((_, oracle)) => Action::Route(oracle),
        None if name == "predict" => Action::Predict,
        None if name == "abstain" => Action::Abstain,
        None => Action::Undetermined,
    })
}

pub(crate) fn support(support: Support) -> Style {
    match support {
        Support::Enough => PLAIN,
        Support::Sparse => AnsiColor::Yellow.on_default(),
        Support::Empty => AnsiColor::Red.on_default(),
    }
}
