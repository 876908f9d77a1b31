//! Suggestions for misspelt names.

use unicode_normalization::UnicodeNormalization;

use crate::error::shown;

/// Names longer than this are not compared letter by letter.
const MAX_LETTERS: usize = 40;

/// `: did you mean "…"?`, if one of the names differs from the given one in case and spacing only, or in few letters; empty otherwise, and
/// if one of the names is the given one.
#[must_use]
pub fn did_you_mean<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match closest(given, names) {
        // Nothing is wrong with the name.
        Some(name) if name == given => String::new(),
        // They look the same on a screen.
        Some(name) if name.nfc().eq(given.nfc()) => {
            ": the same letters in another Unicode form, composed in one place and decomposed in the other; write both in the same form (NFC)".to_owned()
        }
        Some(name) => format!(": did you mean {}?", shown(name)),
        None => String::new(),
    }
}

/// The name that differs from the given one in case and spacing only, or in few letters; two neighbours that are exchanged are one difference.
pub(crate) fn closest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(given);
    // At most one letter in three may differ.
    let max_distance = wanted.len() / 3;
    let near = |name: &'a str| {
        let letters = letters(name);
        let is_short = letters.len().max(wanted.len()) <= MAX_LETTERS;
        let distance = match letters == wanted {
            true => 0,
            false if is_short && letters.len().abs_diff(wanted.len()) <= max_distance => {
                strsim::generic_damerau_levenshtein(&wanted, &letters)
            }
            false => usize::MAX,
        };
        (distance <= max_distance).then_some((distance, name))
    };
    names.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The letters of a name in lower case, without spaces, underscores and hyphens.
fn letters(name: &str) -> Vec<char> {
    name.nfc().filter(|c| !c.is_whitespace() && !"_-".contains(*c)).flat_map(char::to_lowercase).collect()
}

/// Whether a column's name is one that the ids of items often go by: `item_id`, `ticketId`, `uid`.
pub(crate) fn seems_to_be_id(column: &str) -> bool {
    const IDS: [&str; 4] = ["id", "uid", "uuid", "guid"];
    const ITEMS: [&str; 2] = ["item", "itemid"];
    /// Ids of labels, of those who give them, and of rows.
    const OTHERS: [&str; 5] = ["label", "annotation", "row", "batch", "class"];
    let words = words(column);
    let is_id = words.last().is_some_and(|last| IDS.contains(&last.as_str()));
    (is_id || matches!(words.as_slice(), [only] if ITEMS.contains(&only.as_str())))
        && !words.iter().any(|word| OTHERS.contains(&word.as_str()))
        && !seems_to_name_annotators(column)
}

/// Whether a column's name is one that annotators' names often go by.
pub(crate) fn seems_to_name_annotators(column: &str) -> bool {
    const WORDS: [&str; 9] =
        ["annotator", "worker", "rater", "labeler", "labeller", "labelled by", "coder", "reviewer", "user"];
    let column = column.to_lowercase().replace(['_', '-'], " ");
    WORDS.iter().any(|word| column.contains(word))
}

/// The words of a name in lower case: `ticketId` and `ticket_id` have the same two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins_word = c.is_uppercase() && was_lower;
        if begins_word || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ids_are_recognised() {
        for name in ["id", "ID", "item_id", "ticketId", "Item ID", "uid", "item", "doc.uuid"] {
            assert!(seems_to_be_id(name), "{name}");
        }
        for name in
            ["worker_id", "annotation_id", "label_id", "row_id", "user_id", "paid", "grid", "items left", "", "_"]
        {
            assert!(!seems_to_be_id(name), "{name}");
        }
    }

    #[test]
    fn names_that_differ_in_case_spaces_or_few_letters_are_suggested() {
        let names = ["cat", "big dog", "eel"];
        for (given, meant) in [
            ("Cat ", Some("cat")),
            ("BIG_DOG", Some("big dog")),
            ("bigdgo", Some("big dog")),
            ("cta", Some("cat")),
            ("tca", None),
            ("car", Some("cat")),
            ("", None),
            ("bird", None),
        ] {
            assert_eq!(closest(given, names), meant, "{given}");
        }
        assert_eq!(did_you_mean("Eel", names), ": did you mean \"eel\"?");
        assert_eq!(did_you_mean("eel", names), "");
        let decomposed = "Ru\u{308}ckgabe";
        let hint = did_you_mean(decomposed, ["Rückgabe"]);
        assert!(hint.contains("another Unicode form"), "{hint}");
        assert_eq!(closest(&"x".repeat(1000), [format!("{}y", "x".repeat(999)).as_str()]), None);
    }
}
