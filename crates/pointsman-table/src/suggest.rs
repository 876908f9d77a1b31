//! Names that were perhaps meant.

use crate::error::shown;

/// Names longer than this are not compared letter by letter.
const LONGEST: usize = 40;

/// `: did you mean "…"?`, if one of the names differs from what was given in case and spacing only, or in few letters; nothing otherwise.
pub(crate) fn did_you_mean<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    closest(given, names).map(|name| format!(": did you mean {}?", shown(name))).unwrap_or_default()
}

fn closest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(given);
    // One letter of three may differ: more would suggest names that have nothing in common.
    let most = wanted.len() / 3;
    let near = |name: &'a str| {
        let letters = letters(name);
        let is_short = letters.len().max(wanted.len()) <= LONGEST;
        let distance = match letters == wanted {
            true => 0,
            false if is_short && letters.len().abs_diff(wanted.len()) <= most => edits(&wanted, &letters),
            false => usize::MAX,
        };
        (distance <= most).then_some((distance, name))
    };
    names.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// A name without what is easily written in several ways.
fn letters(name: &str) -> Vec<char> {
    name.chars().filter(|c| !c.is_whitespace() && !"_-".contains(*c)).flat_map(char::to_lowercase).collect()
}

/// How many letters must be inserted, dropped or replaced to make one word of the other (Levenshtein's distance).
fn edits(one: &[char], other: &[char]) -> usize {
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            row.push(replaced.min(last[j + 1] + 1).min(row[j] + 1));
        }
        last = row;
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_spaces_or_few_letters() {
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
        assert_eq!(closest(&"x".repeat(1000), [format!("{}y", "x".repeat(999)).as_str()]), None);
    }
}
