//! Suggestions for misspelt names.

use unicode_normalization::UnicodeNormalization;

use crate::error::shown;

/// Names longer than this are not compared letter by letter.
const MAX_LETTERS: usize = 40;

/// `: did you mean "…"?`, if one of the names differs from the given one in case and spacing only, or in few letters; empty otherwise.
#[must_use]
pub fn did_you_mean<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match closest(given, names) {
        // They look the same on a screen.
        Some(name) if name.nfc().eq(given.nfc()) => {
            ": the same letters in another Unicode form, composed in one place and decomposed in the other; write both in the same form (NFC)".to_owned()
        }
        Some(name) => format!(": did you mean {}?", shown(name)),
        None => String::new(),
    }
}

/// The name that differs from the given one in case and spacing only, or in few letters.
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
                strsim::generic_levenshtein(&wanted, &letters)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_spaces_or_few_letters_are_suggested() {
        let names = ["cat", "big dog", "eel"];
        for (given, meant) in [
            ("Cat ", Some("cat")),
            ("BIG_DOG", Some("big dog")),
            ("bigdgo", Some("big dog")),
            ("cta", None),
            ("car", Some("cat")),
            ("", None),
            ("bird", None),
        ] {
            assert_eq!(closest(given, names), meant, "{given}");
        }
        assert_eq!(did_you_mean("Eel", names), ": did you mean \"eel\"?");
        let decomposed = "Ru\u{308}ckgabe";
        let hint = did_you_mean(decomposed, ["Rückgabe"]);
        assert!(hint.contains("another Unicode form"), "{hint}");
        assert_eq!(closest(&"x".repeat(1000), [format!("{}y", "x".repeat(999)).as_str()]), None);
    }
}
