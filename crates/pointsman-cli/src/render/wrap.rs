//! Text broken into lines at spaces, and inside a word only if it is wider than a line.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The largest width of a paragraph.
const WIDEST: usize = 96;

/// The number of columns of a text, without escape codes.
pub(crate) fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// The lines of a text, the first of them at most `first` wide and the others `rest`.
pub(crate) fn lines(text: &str, first: usize, rest: usize) -> Vec<String> {
    let (mut done, mut line, mut used) = (Vec::new(), String::new(), 0);
    for mut word in unbroken(text).split(' ') {
        let room = |done: &Vec<String>| if done.is_empty() { first } else { rest }.max(1);
        if used > 0 && used + 1 + width(word) > room(&done) {
            done.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        // A word wider than a line is broken where the line ends.
        while width(word) > room(&done) {
            let (head, tail) = split_at_width(word, room(&done));
            if width(tail) == 0 {
                break;
            }
            done.push(head.to_owned());
            word = tail;
        }
        line.push_str(word);
        used += width(word);
    }
    done.push(line);
    done.iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Text in which spaces that must not end a line are unbreakable: a number is not separated from its sign or its per cent, nor a flag from its
/// placeholder.
pub(crate) fn unbroken(text: &str) -> String {
    let mut text = text.replace(" %", "\u{a0}%");
    for sign in ["± ", "< ", "≥ "] {
        text = text.replace(sign, &sign.replace(' ', "\u{a0}"));
    }
    with_flags_whole(&text)
}

/// Text in which a flag and its placeholder, as in `--traffic N`, are one word.
fn with_flags_whole(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        whole.push_str(word);
        let is_value = |next: &&str| next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
        let is_flag = word.starts_with("--") && word.len() > 2 && !word.ends_with([',', ';', '.', ':']);
        match words.peek() {
            Some(next) if is_flag && is_value(next) => whole.push('\u{a0}'),
            Some(_) => whole.push(' '),
            None => {}
        }
    }
    whole
}

/// Splits a word after the characters that fit, at least one: behind the last `/`, `.`, `_` or `-` of them, as in paths. Escape codes and
/// decimals are not split.
fn split_at_width(word: &str, room: usize) -> (&str, &str) {
    let (mut used, mut escaped, mut behind_sign) = (0, false, None);
    for (place, c) in word.char_indices() {
        if word[..place].ends_with(['/', '.', '_', '-']) && !c.is_ascii_digit() {
            behind_sign = Some(place);
        }
        if c == '\u{1b}' {
            escaped = true;
        }
        let wide = if escaped { 0 } else { c.width().unwrap_or(0) };
        if used > 0 && used + wide > room {
            return word.split_at(behind_sign.unwrap_or(place));
        }
        used += wide;
        escaped &= c != 'm';
    }
    (word, "")
}

/// The width of a paragraph here.
fn widest() -> usize {
    super::columns().map_or(WIDEST, |room| room.min(WIDEST))
}

/// Prints an indented paragraph.
pub(crate) fn paragraph(out: impl Write, indent: usize, text: &str) -> io::Result<()> {
    hanging(out, indent, indent, text)
}

/// Prints a paragraph whose first line has another indent than the rest.
pub(crate) fn hanging(mut out: impl Write, first: usize, rest: usize, text: &str) -> io::Result<()> {
    let room = |indent: usize| widest().saturating_sub(indent);
    for (place, line) in lines(text, room(first), room(rest)).iter().enumerate() {
        let indent = if place == 0 { first } else { rest };
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// Prints a term and its meaning, whose lines begin at `column`, as wide as a paragraph.
pub(crate) fn entry(out: impl Write, column: usize, term: &str, meaning: &str) -> io::Result<()> {
    let pad = column.saturating_sub(2 + width(term)).max(1);
    hanging(out, 2, column, &format!("{term}{:pad$}{meaning}", ""))
}

/// Prints an indented command line, continued with backslashes if it is too long.
pub(crate) fn command(mut out: impl Write, indent: usize, command: &str) -> io::Result<()> {
    const CONTINUED: usize = 4;
    let Some(room) = super::columns() else { return writeln!(out, "{:indent$}{command}", "") };
    let mut line = String::new();
    let mut lines = Vec::new();
    // A flag and its value stay together.
    for part in parts(command) {
        let own = indent + if lines.is_empty() { 0 } else { CONTINUED };
        if !line.is_empty() && own + width(&line) + 1 + width(&part) + 2 > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&part);
    }
    lines.push(line);
    let last = lines.len() - 1;
    for (place, line) in lines.iter().enumerate() {
        let own = indent + if place == 0 { 0 } else { CONTINUED };
        writeln!(out, "{:own$}{line}{}", "", if place < last { r" \" } else { "" })?;
    }
    Ok(())
}

/// The parts of a command line that stay together: words, a flag with what follows it, quoted text whole.
fn parts(command: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut quoted = false;
    for word in command.split(' ') {
        let after_flag = parts.last().is_some_and(|part| part.starts_with('-') && !part.contains(' '));
        match parts.last_mut() {
            Some(part) if quoted || after_flag && !word.starts_with('-') => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        quoted ^= word.matches('\'').count() % 2 == 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_where_the_line_ends() {
        assert_eq!(lines("one two three four", 9, 9), ["one two", "three", "four"]);
        assert_eq!(lines("one two three four", 3, 20), ["one", "two three four"]);
        assert_eq!(lines("", 9, 9), [""]);
        assert_eq!(lines("about 12.5 % more ± 0.1", 10, 10), ["about", "12.5 %", "more ± 0.1"]);
        assert_eq!(lines("see --traffic N or more", 13, 13), ["see", "--traffic N", "or more"]);
        assert_eq!(lines("ab 猫猫猫猫 c", 5, 5), ["ab", "猫猫", "猫猫", "c"]);
        assert_eq!(lines("x abcdefghij", 4, 4), ["x", "abcd", "efgh", "ij"]);
        assert_eq!(lines("tasks/cheap.toml", 8, 8), ["tasks/", "cheap.", "toml"]);
        assert_eq!(lines("tasks/v1.25", 10, 10), ["tasks/", "v1.25"]);
        let green = "\u{1b}[32mgreen\u{1b}[0m";
        assert_eq!(lines(&format!("{green} {green}"), 11, 11), [format!("{green} {green}")]);
    }

    #[test]
    fn nothing_is_lost_and_nothing_sticks_out_at_any_width() {
        let text = "Überweisung dringend, confidence 0.73–0.87 and prob_非常に長いクラスの名前 < 0.25 and x_age ≥ 31.5";
        for room in 2..100 {
            let lines = lines(text, room, room);
            assert!(lines.iter().all(|line| width(line) <= room), "{room}: {lines:#?}");
            let kept = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(kept(&lines.concat()), kept(text));
        }
    }

    #[test]
    fn flags_stay_with_their_values() {
        let command = "pointsman decide r.safetensors 'my queries.csv' --route expert=0.05 --json -o out.csv";
        assert_eq!(
            parts(command),
            ["pointsman", "decide", "r.safetensors", "'my queries.csv'", "--route expert=0.05", "--json", "-o out.csv"]
        );
    }
}
