//! Parses the XML of kernel files. Such a file has several elements at its top, one after another, which XML forbids: the text is
//! put into an element of our own, on a line before it, so that columns stay. Limits are checked on the raw text first, because
//! the parser compares every attribute of an element with every other one.

use crate::expression::shorten;
use crate::file::{KernelFile, Mode};
use carafe_graph::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// The largest file known has 50 KB.
pub(crate) const MOST_BYTES: usize = 1 << 20;
const MOST_ATTRIBUTES: usize = 256;
const ROOT: &str = "<kernels>\n";

/// A place in a file, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the file.
    pub file: Arc<str>,
    /// Line, from 1 on.
    pub line: usize,
    /// Character in the line, from 1 on.
    pub column: usize,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What the elements of one file share.
pub(crate) struct Reading<'f> {
    pub(crate) file: &'f KernelFile,
    pub(crate) mode: Mode,
    name: Arc<str>,
    /// Offsets of the beginnings of lines in the wrapped text.
    lines: Vec<usize>,
    wrapped: String,
    warnings: RefCell<Vec<String>>,
}

impl<'f> Reading<'f> {
    pub(crate) fn new(file: &'f KernelFile, mode: Mode) -> Result<Reading<'f>> {
        let name: Arc<str> = file.name.as_str().into();
        let wrapped = wrap(&file.text).map_err(|(offset, why)| {
            let before = file.text.get(..offset).unwrap_or(&file.text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            Error::invalid(why).at(Location { file: name.clone(), line, column }.to_string())
        })?;
        let lines = wrapped.match_indices('\n').map(|(i, _)| i + 1).collect();
        Ok(Reading { file, mode, name, lines, wrapped, warnings: RefCell::default() })
    }

    pub(crate) fn parse(&self) -> Result<roxmltree::Document<'_>> {
        let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
        roxmltree::Document::parse_with_options(&self.wrapped, options).map_err(|e| {
            let at = e.pos();
            // A file that ends too early is noticed behind it, in the line that we added.
            let line = (at.row as usize).saturating_sub(1).clamp(1, self.lines.len().saturating_sub(1).max(1));
            let location = Location { file: self.name.clone(), line, column: at.col as usize };
            // The text of the parser ends with its own idea of the position.
            let text = e.to_string();
            let text = text.split(" at ").next().unwrap_or_default();
            Error::invalid(format!("not well-formed XML: {text}")).at(location.to_string())
        })
    }

    pub(crate) fn location(&self, offset: usize) -> Location {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |i| self.lines[i]);
        let before = self.wrapped.get(start..offset).unwrap_or_default();
        // Characters of a very long line are not counted for each of its elements.
        let column = if before.len() < 4096 { before.chars().count() } else { before.len() } + 1;
        Location { file: self.name.clone(), line: line.max(1), column }
    }

    pub(crate) fn warn(&self, text: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < 100 {
            warnings.push(text);
        }
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}

/// The files that `Source` elements name, wherever they stand.
pub(crate) fn source_names(file: &KernelFile) -> Result<Vec<String>> {
    let reading = Reading::new(file, Mode::Compatible)?;
    let document = reading.parse()?;
    let sources = document.descendants().filter(|n| n.has_tag_name("Source"));
    Ok(sources.filter_map(|n| n.attribute("filename")).map(str::to_string).collect())
}

// The text inside of one element, without declarations; or where it is refused, and why.
fn wrap(text: &str) -> Result<String, (usize, String)> {
    if text.len() > MOST_BYTES {
        return Err((
            0,
            format!("the file has {} bytes, more than {MOST_BYTES}, which no kernel file needs", text.len()),
        ));
    }
    let mut out = String::with_capacity(text.len() + 32);
    out.push_str(ROOT);
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let skipped = text.len() - body.len();
    let bytes = body.as_bytes();
    let (mut at, mut copied) = (0, 0);
    while let Some(start) = body[at..].find('<').map(|i| at + i) {
        let rest = &body[start..];
        let end_of = |mark: &str| rest.find(mark).map_or(body.len(), |i| start + i + mark.len());
        at = if rest.starts_with("<!--") {
            end_of("-->")
        } else if rest.starts_with("<![CDATA[") {
            end_of("]]>")
        } else if rest.starts_with("<?") {
            let end = end_of("?>");
            if rest.starts_with("<?xml") {
                out.push_str(&body[copied..start]);
                // Blanks in its place keep columns and lines.
                out.extend(body[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
                copied = end;
            }
            end
        } else if rest.len() >= 9 && rest.as_bytes()[..9].eq_ignore_ascii_case(b"<!DOCTYPE") {
            return Err((skipped + start, "a document type (DTD) is not part of a kernel file".into()));
        } else {
            let tag = scan_tag(bytes, start + 1);
            if tag.attributes > MOST_ATTRIBUTES {
                return Err((skipped + start, format!("the element has more than {MOST_ATTRIBUTES} attributes")));
            }
            if tag.has_namespace {
                return Err((skipped + start, "a namespace is not part of a kernel file".into()));
            }
            tag.end
        };
    }
    out.push_str(&body[copied..]);
    out.push_str("\n</kernels>");
    Ok(out)
}

struct Tag {
    end: usize,
    attributes: usize,
    has_namespace: bool,
}

// From behind `<` to behind `>`, which in quotes is text.
fn scan_tag(text: &[u8], start: usize) -> Tag {
    let mut tag = Tag { end: text.len(), attributes: 0, has_namespace: false };
    let mut quote = None;
    for (i, &b) in text.iter().enumerate().skip(start) {
        match (quote, b) {
            (Some(q), b) if b == q => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(b),
            (None, b'=') => tag.attributes += 1,
            (None, b'x') => tag.has_namespace |= text[i..].starts_with(b"xmlns"),
            (None, b'>') => {
                tag.end = i + 1;
                break;
            }
            _ => {}
        }
    }
    tag
}

/// An element with the file it is of.
#[derive(Clone, Copy)]
pub(crate) struct Element<'d> {
    node: roxmltree::Node<'d, 'd>,
    pub(crate) cx: &'d Reading<'d>,
}

impl<'d> Element<'d> {
    pub(crate) fn root(document: &'d roxmltree::Document<'d>, cx: &'d Reading<'d>) -> Element<'d> {
        Element { node: document.root_element(), cx }
    }
    pub(crate) fn name(&self) -> &'d str {
        self.node.tag_name().name()
    }
    pub(crate) fn children(self) -> impl Iterator<Item = Element<'d>> {
        let cx = self.cx;
        self.node.children().filter(|c| c.is_element()).map(move |node| Element { node, cx })
    }
    pub(crate) fn all(self, name: &'static str) -> impl Iterator<Item = Element<'d>> {
        self.children().filter(move |c| c.name() == name)
    }
    pub(crate) fn child(self, name: &'static str) -> Option<Element<'d>> {
        self.all(name).next()
    }
    pub(crate) fn required_child(self, name: &'static str) -> Result<Element<'d>> {
        self.child(name).ok_or_else(|| self.fail(format!("the element <{name}> is missing")))
    }
    /// Text between elements, which means nothing.
    pub(crate) fn has_stray_text(&self) -> bool {
        self.node.children().any(|c| c.is_text() && c.text().is_some_and(|t| !t.trim().is_empty()))
    }
    pub(crate) fn attributes(self) -> impl Iterator<Item = (&'d str, &'d str)> {
        self.node.attributes().filter(|a| a.namespace().is_none()).map(|a| (a.name(), a.value()))
    }
    pub(crate) fn get(&self, name: &str) -> Option<&'d str> {
        self.node.attribute(name)
    }
    /// An attribute that must be there and must not be empty.
    pub(crate) fn required(&self, name: &str) -> Result<&'d str> {
        match self.get(name) {
            Some(value) if !value.trim().is_empty() => Ok(value),
            Some(_) => Err(self.fail_at(name, "expected a text, found an empty one")),
            None => Err(self.fail(format!("attribute `{name}` is required and missing"))),
        }
    }
    /// An integer in decimal digits and nothing else.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let plain = text.strip_prefix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit());
        let value = text.parse::<i32>().ok().filter(|_| plain);
        value.map(|n| Some(n.into())).ok_or_else(|| {
            self.fail_at(name, &format!("expected an integer in decimal digits, found `{}`", shorten(text)))
        })
    }
    /// An index from 0 on.
    pub(crate) fn index(&self, name: &str) -> Result<usize> {
        let value = self.number(name)?;
        let value = value.ok_or_else(|| self.fail(format!("attribute `{name}` is required and missing")))?;
        usize::try_from(value).map_err(|_| self.fail_at(name, &format!("expected an index from 0 on, found `{value}`")))
    }
    pub(crate) fn location(&self) -> Location {
        self.cx.location(self.node.range().start)
    }
    pub(crate) fn location_of(&self, attribute: &str) -> Location {
        let found = self.node.attribute_node(attribute);
        found.map_or_else(|| self.location(), |a| self.cx.location(a.range().start))
    }
    /// An error of this element.
    pub(crate) fn fail(&self, why: impl Into<String>) -> Error {
        Error::invalid(why).at(format!("<{}>", self.name())).at(self.location().to_string())
    }
    /// An error of one of its attributes.
    pub(crate) fn fail_at(&self, attribute: &str, why: &str) -> Error {
        self.wrap(attribute, Error::invalid(why))
    }
    /// An error that happened with the value of an attribute.
    pub(crate) fn wrap(&self, attribute: &str, error: Error) -> Error {
        let at = format!("<{}> attribute `{attribute}`", self.name());
        error.at(at).at(self.location_of(attribute).to_string())
    }
    /// What is accepted though the format forbids it: a warning, or an error in strict mode.
    pub(crate) fn quirk(&self, attribute: Option<&str>, why: &str) -> Result<()> {
        let error = match attribute {
            Some(attribute) => self.fail_at(attribute, why),
            None => self.fail(why),
        };
        match self.cx.mode {
            Mode::Strict => Err(error),
            Mode::Compatible => {
                self.cx.warn(error.to_string());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let file = KernelFile::from_memory("k.xml", text, []);
        let parse = || Reading::new(&file, Mode::Strict)?.parse().map(|_| ());
        parse().unwrap_err().to_string()
    }

    #[test]
    fn a_document_type_is_refused() {
        let bomb =
            "<?xml version='1.0'?>\n<!DOCTYPE a [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><CustomLayer name='&b;'/>";
        assert_eq!(error(bomb), "k.xml:2:1: a document type (DTD) is not part of a kernel file");
        assert!(error("<a name='&b;'/>").contains("not well-formed"));
    }

    #[test]
    fn what_is_not_well_formed_has_a_position() {
        assert!(error("<a>\n  <b x='1'></c>\n</a>").starts_with("k.xml:2:"), "{}", error("<a>\n  <b x='1'></c>\n</a>"));
        assert!(error("<a").starts_with("k.xml:1:"), "{}", error("<a"));
        assert!(error("</kernels><kernels>").contains("not well-formed XML"));
    }

    #[test]
    fn too_many_attributes_and_bytes_are_refused() {
        let attributes: String = (0..300).map(|i| format!(" a{i}=''")).collect();
        assert!(error(&format!("<a{attributes}/>")).contains("more than 256 attributes"));
        assert!(error(&" ".repeat(MOST_BYTES + 1)).contains("more than 1048576"));
        assert!(error("<a xmlns:b='c'/>").contains("a namespace"));
    }

    #[test]
    fn a_declaration_and_a_mark_of_byte_order_keep_columns() {
        let file = KernelFile::from_memory("k.xml", "\u{feff}<?xml version='1.0' encoding='utf-8'?><a/>\n <b/>", []);
        let cx = Reading::new(&file, Mode::Strict).unwrap();
        let document = cx.parse().unwrap();
        let found: Vec<String> = Element::root(&document, &cx).children().map(|e| e.location().to_string()).collect();
        assert_eq!(found, ["k.xml:1:39", "k.xml:2:2"]);
    }

    #[test]
    fn deep_nesting_is_parsed_without_recursion() {
        let text = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        let file = KernelFile::from_memory("k.xml", &text, []);
        assert!(Reading::new(&file, Mode::Strict).unwrap().parse().is_ok());
    }
}
