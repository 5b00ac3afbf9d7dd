//! Fills in templates. `%{name}` stands for a text; alone on its line it takes that line's indentation for all its lines, and an
//! empty text removes the line. Lines `%if name`, `%else`, `%end` keep or drop what is between them. A name that is not given, or
//! a block that does not end, is a mistake in the template and an error.

use carafe_graph::{Error, Result};
use carafe_packed::Files;
use std::collections::BTreeMap;

static FILES: Files = Files::new(include_bytes!(concat!(env!("OUT_DIR"), "/templates.deflate")));

/// The text of a file that `build.rs` packed.
pub(crate) fn packed(name: &str) -> &'static str {
    FILES.text(name)
}

/// What the names of a template stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    texts: BTreeMap<&'static str, String>,
    flags: BTreeMap<&'static str, bool>,
}

impl Values {
    pub(crate) fn text(mut self, name: &'static str, text: impl Into<String>) -> Values {
        self.texts.insert(name, text.into());
        self
    }
    pub(crate) fn flag(mut self, name: &'static str, holds: bool) -> Values {
        self.flags.insert(name, holds);
        self
    }

    /// The template with everything filled in.
    pub(crate) fn fill(&self, template: &str) -> Result<String> {
        let mut out = String::with_capacity(template.len());
        // Whether each open block is kept.
        let mut blocks: Vec<bool> = vec![];
        for (number, line) in template.lines().enumerate() {
            let wrong = |what: String| Error::invalid(format!("line {} of a template: {what}", number + 1));
            let word = line.trim();
            if let Some(name) = word.strip_prefix("%if ") {
                let flag = self.flags.get(name).ok_or_else(|| wrong(format!("there is no condition `{name}`")))?;
                blocks.push(*flag);
            } else if word == "%else" {
                let block = blocks.last_mut().ok_or_else(|| wrong("%else without %if".into()))?;
                *block = !*block;
            } else if word == "%end" {
                blocks.pop().ok_or_else(|| wrong("%end without %if".into()))?;
            } else if blocks.iter().all(|kept| *kept) {
                self.line(line, &mut out).map_err(wrong)?;
            }
        }
        if !blocks.is_empty() {
            return Err(Error::invalid("a template: %if without %end"));
        }
        Ok(out)
    }

    fn line(&self, line: &str, out: &mut String) -> Result<(), String> {
        let alone = line.trim().strip_prefix("%{").and_then(|l| l.strip_suffix('}')).filter(|n| !n.contains('}'));
        if let Some(name) = alone {
            let indent = &line[..line.len() - line.trim_start().len()];
            for text in self.get(name)?.lines() {
                if !text.is_empty() {
                    out.push_str(indent);
                }
                out.push_str(text);
                out.push('\n');
            }
            return Ok(());
        }
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("%{") {
            let (name, after) = after.split_once('}').ok_or("`%{` without `}`")?;
            out.push_str(before);
            out.push_str(self.get(name)?);
            rest = after;
        }
        out.push_str(rest);
        out.push('\n');
        Ok(())
    }

    fn get(&self, name: &str) -> Result<&str, String> {
        self.texts.get(name).map(String::as_str).ok_or_else(|| format!("there is no text `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values::default().text("name", "Mix").text("list", "a\nb").text("none", "").flag("yes", true).flag("no", false)
    }

    #[test]
    fn names_lists_and_blocks_are_filled_in() {
        let template = "struct %{name} {\n    %{list}\n    %{none}\n}\n%if no\nx\n%else\ny %{name}%{none}\n%end\n";
        assert_eq!(values().fill(template).unwrap(), "struct Mix {\n    a\n    b\n}\ny Mix\n");
    }

    #[test]
    fn blocks_stand_in_blocks() {
        let template = "%if yes\n%if no\na\n%end\nb\n%end\n%if no\n%if yes\nc\n%end\n%end\n";
        assert_eq!(values().fill(template).unwrap(), "b\n");
    }

    #[test]
    fn a_mistake_in_a_template_is_an_error() {
        for (template, wanted) in [
            ("%{nam}", "line 1 of a template: there is no text `nam`"),
            ("a %{name", "without `}`"),
            ("%if maybe\n%end", "there is no condition `maybe`"),
            ("%if yes", "%if without %end"),
            ("%end", "%end without %if"),
            ("%else", "%else without %if"),
        ] {
            let e = values().fill(template).unwrap_err().to_string();
            assert!(e.contains(wanted), "{template}: {e}");
        }
    }
}
