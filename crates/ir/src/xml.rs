//! Parses the XML text under limits, and reads attributes with errors that say what was expected. The limits are checked
//! on the raw text first: the parser compares every attribute of an element with every other one, and takes memory for
//! each `<` and `=` before it knows what they are.

use carafe_graph::{Error, Result};
use roxmltree::{Document, ParsingOptions};
use std::fmt::Display;
use std::str::FromStr;

pub(crate) type Xml<'a> = roxmltree::Node<'a, 'a>;

/// Larger texts are refused; the largest models known have some 100 MB.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
const MAX_TAGS: usize = 20_000_000;
const MAX_ATTRIBUTES: usize = 50_000_000;
pub(crate) const MAX_ATTRIBUTES_OF_ONE: usize = 1000;
const MAX_DEPTH: usize = 256;

/// Parses without document type, entities or namespaces.
pub(crate) fn parse(text: &str) -> Result<Document<'_>> {
    check_limits(text.as_bytes())?;
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|e| match e {
        roxmltree::Error::DtdDetected => Error::invalid("a document type (DTD) is not part of an IR"),
        e => Error::invalid(format!("not well-formed XML: {e}")),
    })
}

fn check_limits(text: &[u8]) -> Result<()> {
    let refuse = |what: String| Err(Error::invalid(format!("{what}, which no IR needs")));
    let limit = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    if text.len() > limit {
        return refuse(format!("the XML has {} bytes, more than {limit}", text.len()));
    }
    let count = |byte: u8| text.iter().filter(|b| **b == byte).count();
    if count(b'<') > MAX_TAGS {
        return refuse(format!("the XML has more than {MAX_TAGS} tags"));
    }
    if count(b'=') > MAX_ATTRIBUTES {
        return refuse(format!("the XML has more than {MAX_ATTRIBUTES} attributes"));
    }
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(start) = find(text, at, b"<") {
        let rest = &text[start..];
        if let Some((_, end)) = OPAQUE.iter().find(|(begin, _)| rest.starts_with(begin)) {
            at = find(text, start, end).map_or(text.len(), |i| i + end.len());
            continue;
        }
        let tag = scan_tag(text, start + 1);
        if tag.attributes > MAX_ATTRIBUTES_OF_ONE {
            return refuse(format!("one element has more than {MAX_ATTRIBUTES_OF_ONE} attributes"));
        }
        if tag.has_namespace {
            return refuse("the XML declares a namespace".into());
        }
        if rest.starts_with(b"</") {
            depth = depth.saturating_sub(1);
        } else if !tag.is_empty && !rest.starts_with(b"<!") {
            depth += 1;
        }
        if depth > MAX_DEPTH {
            return refuse(format!("elements are nested deeper than {MAX_DEPTH}"));
        }
        at = tag.end;
    }
    Ok(())
}

/// Sections whose inside is not markup.
const OPAQUE: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];

fn find(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|b| *b == first)?;
        if text[at..].starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
}

struct Tag {
    end: usize,
    attributes: usize,
    is_empty: bool,
    has_namespace: bool,
}

// From behind `<` to behind `>`; a `>` inside quotes is text.
fn scan_tag(text: &[u8], start: usize) -> Tag {
    let mut tag = Tag { end: text.len(), attributes: 0, is_empty: false, has_namespace: false };
    let mut quote = None;
    for (i, &b) in text.iter().enumerate().skip(start) {
        match (quote, b) {
            (Some(q), b) if b == q => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(b),
            (None, b'=') => tag.attributes += 1,
            (None, b'x') => tag.has_namespace |= text[i..].starts_with(b"xmlns"),
            (None, b'>') => {
                tag.is_empty = text[i - 1] == b'/';
                tag.end = i + 1;
                break;
            }
            _ => {}
        }
    }
    tag
}

pub(crate) fn elements<'a>(node: Xml<'a>) -> impl Iterator<Item = Xml<'a>> {
    node.children().filter(|c| c.is_element())
}

pub(crate) fn named<'a>(node: Xml<'a>, name: &'a str) -> impl Iterator<Item = Xml<'a>> {
    elements(node).filter(move |c| c.tag_name().name() == name)
}

pub(crate) fn child<'a>(node: Xml<'a>, name: &str) -> Option<Xml<'a>> {
    elements(node).find(|c| c.tag_name().name() == name)
}

/// Attributes without a prefix; `xml:lang` and its like are nothing to an IR.
pub(crate) fn plain_attributes<'a>(node: Xml<'a>) -> impl Iterator<Item = roxmltree::Attribute<'a, 'a>> {
    node.attributes().filter(|a| a.namespace().is_none())
}

/// The attribute, or an error that names it and the element.
pub(crate) fn required<'a>(node: Xml<'a>, name: &str) -> Result<&'a str> {
    node.attribute(name).ok_or_else(|| {
        Error::invalid(format!("attribute `{name}` of <{}> is required and missing", node.tag_name().name()))
    })
}

/// An integer attribute, if it is there.
pub(crate) fn number<T: FromStr>(node: Xml<'_>, name: &str) -> Result<Option<T>> {
    node.attribute(name).map(|text| parse_number(text, name)).transpose()
}

/// An integer attribute that must be there.
pub(crate) fn required_number<T: FromStr>(node: Xml<'_>, name: &str) -> Result<T> {
    parse_number(required(node, name)?, name)
}

fn parse_number<T: FromStr>(text: &str, name: impl Display) -> Result<T> {
    text.trim().parse().map_err(|_| {
        let signed = "-1".parse::<T>().is_ok();
        let wanted = if signed { "an integer" } else { "an integer from 0 on" };
        Error::invalid(format!("attribute `{name}`: expected {wanted}, found `{}`", shorten(text)))
    })
}

/// At most 60 characters of a text out of a file, for messages.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_document_type_is_refused() {
        let bomb = r#"<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><net name="&b;"/>"#;
        assert!(error(bomb).contains("document type"));
    }

    #[test]
    fn an_entity_that_nobody_declared_is_an_error() {
        assert!(error(r#"<net name="&b;"/>"#).contains("not well-formed"));
    }

    #[test]
    fn nesting_is_bounded_before_the_tree_is_built() {
        let deep = "<a>".repeat(100_000);
        assert!(error(&deep).contains("nested deeper than 256"));
        let fine = format!("{}{}", "<a>".repeat(256), "</a>".repeat(256));
        assert!(parse(&fine).is_ok());
    }

    #[test]
    fn siblings_do_not_count_as_nesting() {
        assert!(parse(&format!("<a>{}</a>", r#"<b x="/>"><c/></b>"#.repeat(1000))).is_ok());
    }

    #[test]
    fn markup_inside_comments_does_not_count() {
        let text = format!("<a><!-- {} --><![CDATA[{}]]></a>", "<b>".repeat(300), "<c>".repeat(300));
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn an_element_with_thousands_of_attributes_is_refused() {
        let attributes: String = (0..2000).map(|i| format!(" a{i}=''")).collect();
        assert!(error(&format!("<net{attributes}/>")).contains("more than 1000 attributes"));
    }

    #[test]
    fn a_namespace_is_refused() {
        assert!(error("<net xmlns:a='b'/>").contains("namespace"));
    }

    #[test]
    fn a_negative_number_where_none_can_be_is_named() {
        let document = parse("<a id='-1'/>").unwrap();
        let found = required_number::<u64>(document.root_element(), "id").unwrap_err();
        assert_eq!(found.to_string(), "attribute `id`: expected an integer from 0 on, found `-1`");
    }
}
