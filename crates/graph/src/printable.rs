//! Text for people and their terminals. Names come out of files, and a terminal obeys what lies in them: control characters can hide lines,
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

/// A number as a person reads it: at most six significant digits, no zeros at the end, and a power of ten where it is tiny or
/// huge. Whole numbers up to a billion keep all of their digits.
pub fn short_number(x: f64) -> String {
    const DIGITS: i32 = 6;
    let size = x.abs();
    if x == 0.0 || !x.is_finite() || (x.fract() == 0.0 && size < 1e9) {
        return x.to_string();
    }
    // Rounded first: 0.99999996 has the exponent of what it is rounded to.
    let text = format!("{x:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent {
        -4..DIGITS => trimmed(&format!("{x:.*}", (DIGITS - 1 - exponent) as usize)),
        _ => format!("{}e{exponent}", trimmed(mantissa)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_six_digits_at_most() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1f32 as f64, "0.1"),
            (0.970246136188507, "0.970246"),
            (0.00000000000011738768, "1.17388e-13"),
            (0.000123456789, "0.000123457"),
            (0.0000123456789, "1.23457e-5"),
            (0.99999996, "1"),
            (999999.7, "1e6"),
            (123456.7, "123457"),
            (-1234.5678, "-1234.57"),
            (16777216.0, "16777216"),
            (3.4028234663852886e38, "3.40282e38"),
            (1e-45f32 as f64, "1.4013e-45"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (x, text) in cases {
            assert_eq!(short_number(x), text, "{x:e}");
        }
    }

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
