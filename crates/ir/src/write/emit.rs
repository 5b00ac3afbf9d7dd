//! Builds the XML text. Line ends and tabs inside attribute values become character references, since a reader turns the
//! plain ones into blanks; other control characters cannot be in XML at all and are an error.

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
        for (key, value) in attributes {
            if !is_attribute_name(key) {
                return Err(Error::unsupported(format!("`{key}` cannot be the name of an XML attribute")));
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

fn is_attribute_name(key: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_' || (c > '\u{bf}' && !c.is_whitespace());
    let rest = |c: char| first(c) || c.is_ascii_digit() || matches!(c, '-' | '.' | '\u{b7}');
    key.starts_with(first) && key.chars().all(rest)
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
        for bad in ["", "a b", "a=", "a>", "a:b", "1"] {
            assert!(Emitter::new().empty("e", &[(bad, "")]).is_err(), "{bad}");
        }
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
