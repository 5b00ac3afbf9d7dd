//! Text for terminals. Names come out of files, and a terminal obeys what lies in them: control characters can hide lines,
//! change titles or type for the user. Whoever prints for people prints this.

use std::borrow::Cow;

/// The text with every control character but line feed and tab, and those that turn the direction of writing, spelt out as
/// `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{7f}\u{9b}1m\u{202e}c"), r"a\u{1b}[2Jb\u{d}\u{7f}\u{9b}1m\u{202e}c");
    }

    #[test]
    fn lines_tabs_and_letters_of_all_scripts_stay() {
        let text = "conv\t1\nслой 层 é 🙂";
        assert!(matches!(printable(text), Cow::Borrowed(t) if t == text));
    }
}
