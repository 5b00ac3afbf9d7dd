//! Builds the XML text. Line ends and tabs inside attribute values become character references, since a reader turns the
//! plain ones into blanks; other control characters cannot be in XML at all and are an error.

use crate::xml::MAX_ATTRIBUTES_OF_ONE;
use carafe_graph::{Error, Result};

#[derive(Debug)]
pub(crate) struct Emitter {
    out: String,
    depth: usize,
}

impl Emitter {
    pub(crate) fn new() -> Emitter {
        Emitter { out: "<?xml version=\"1.0\"?>\n".to_string(), depth: 0 }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// `<name attributes>`, closed later by `close`.
    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<()> {
        self.start(name, attributes)?;
        self.out.push_str(">\n");
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.indent();
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
    }

    /// `<name attributes />`
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<()> {
        self.start(name, attributes)?;
        self.out.push_str(" />\n");
        Ok(())
    }

    /// `<name>text</name>`
    pub(crate) fn text(&mut self, name: &str, text: &str) -> Result<()> {
        self.start(name, &[])?;
        self.out.push('>');
        escape(text, &mut self.out)?;
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
        Ok(())
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &str)]) -> Result<()> {
        self.indent();
        self.out.push('<');
        self.out.push_str(name);
        if attributes.len() > MAX_ATTRIBUTES_OF_ONE {
            let n = attributes.len();
            return Err(Error::unsupported(format!("`{name}` has {n} attributes, more than {MAX_ATTRIBUTES_OF_ONE}")));
        }
        for (i, (key, value)) in attributes.iter().enumerate() {
            if !is_attribute_name(key) {
                return Err(Error::unsupported(format!("`{key}` cannot be the name of an XML attribute")));
            }
            if attributes[..i].iter().any(|(earlier, _)| earlier == key) {
                return Err(Error::unsupported(format!("XML cannot hold two attributes `{key}`")));
            }
            self.out.push(' ');
            self.out.push_str(key);
            self.out.push_str("=\"");
            escape(value, &mut self.out)?;
            self.out.push('"');
        }
        Ok(())
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n('\t', self.depth));
    }
}

/// Whether a key can be a tag; stricter than XML, as OpenVINO is.
pub(crate) fn is_tag(key: &str) -> bool {
    key.is_ascii() && is_attribute_name(key) && !key.get(..3).is_some_and(|s| s.eq_ignore_ascii_case("xml"))
}

// The names of XML 1.0 without the colon; `xmlns` would declare a namespace.
fn is_attribute_name(key: &str) -> bool {
    let first = |c: char| {
        matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
            | '\u{10000}'..='\u{effff}')
    };
    let rest = |c: char| {
        let more = matches!(c, '0'..='9' | '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}' | '\u{2040}');
        first(c) || more
    };
    key.starts_with(first) && key.chars().all(rest) && key != "xmlns"
}

fn escape(text: &str, out: &mut String) -> Result<()> {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push_str(&format!("&#{};", c as u32)),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {
                let shown = text.escape_debug().take(60).collect::<String>();
                return Err(Error::unsupported(format!("XML cannot hold the character {c:?} of \"{shown}\"")));
            }
            c => out.push(c),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_read_back() {
        let value = "a<b>&\"c'\n\td\r é";
        let mut emitter = Emitter::new();
        emitter.empty("e", &[("v", value)]).unwrap();
        let text = emitter.finish();
        let document = crate::xml::parse(&text).unwrap();
        assert_eq!(document.root_element().attribute("v"), Some(value));
    }

    #[test]
    fn a_control_character_is_an_error() {
        assert!(Emitter::new().empty("e", &[("v", "\u{1}")]).is_err());
        assert!(Emitter::new().empty("e", &[("v", "\u{fffe}")]).is_err());
    }

    #[test]
    fn an_attribute_name_that_would_break_the_text_is_an_error() {
        for bad in ["", "a b", "a=", "a>", "a:b", "1", "xmlns", "ª", "×", "a\u{2010}", "\u{f0000}"] {
            assert!(Emitter::new().empty("e", &[(bad, "")]).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_attribute_name_that_is_written_reads_back() {
        for c in (0..0x11_0000).step_by(7).filter_map(char::from_u32) {
            for key in [format!("{c}"), format!("a{c}")] {
                let mut emitter = Emitter::new();
                if emitter.empty("e", &[(&key, "v")]).is_ok() {
                    let text = emitter.finish();
                    let document = crate::xml::parse(&text).unwrap_or_else(|e| panic!("{key:?}: {e}"));
                    assert_eq!(document.root_element().attribute(key.as_str()), Some("v"), "{key:?}");
                }
            }
        }
    }

    #[test]
    fn two_attributes_of_one_name_are_an_error() {
        assert!(Emitter::new().empty("e", &[("a", "1"), ("b", "2"), ("a", "1")]).is_err());
    }

    #[test]
    fn more_attributes_than_a_reader_takes_are_an_error() {
        let names: Vec<String> = (0..1001).map(|i| format!("a{i}")).collect();
        let attributes: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "")).collect();
        assert!(Emitter::new().empty("e", &attributes).is_err());
        assert!(Emitter::new().empty("e", &attributes[1..]).is_ok());
    }

    #[test]
    fn tags_are_checked() {
        for good in ["a", "_x-1.b", "Runtime_version"] {
            assert!(is_tag(good), "{good}");
        }
        for bad in ["", "1a", "a b", "xmlish", "é", "a:b"] {
            assert!(!is_tag(bad), "{bad}");
        }
    }
}
