//! Recognizes an IR by its first bytes. The file name is never asked.

/// Whether a file that starts with these bytes is an IR of a version that can be read. 512 bytes are usually enough; a
/// longer comment in front of the root needs more.
pub fn is_ir(head: &[u8]) -> bool {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    // Skips the declaration, comments and a document type, which reading refuses with a reason.
    while let Some(end) = SKIPPED.iter().find(|(start, _)| rest.starts_with(start)).map(|(_, end)| *end) {
        let Some(at) = rest.windows(end.len()).position(|w| w == end) else { return false };
        rest = rest[at + end.len()..].trim_ascii_start();
    }
    let Some(tag) = rest.strip_prefix(b"<") else { return false };
    let (name, tag) = tag.split_at(tag.len().min(3));
    if !name.eq_ignore_ascii_case(b"net") || !tag.first().is_some_and(u8::is_ascii_whitespace) {
        return false;
    }
    matches!(version(tag), Some(b"10" | b"11"))
}

const SKIPPED: [(&[u8], &[u8]); 3] = [(b"<?", b"?>"), (b"<!--", b"-->"), (b"<!DOCTYPE", b"]>")];

// The `version` attribute of a start tag.
fn version(tag: &[u8]) -> Option<&[u8]> {
    let mut rest = tag.trim_ascii_start();
    while !rest.is_empty() && !rest.starts_with(b">") && !rest.starts_with(b"/") {
        let equals = rest.iter().position(|b| *b == b'=')?;
        let name = rest[..equals].trim_ascii();
        rest = rest[equals + 1..].trim_ascii_start();
        let quote = *rest.first().filter(|q| matches!(q, b'"' | b'\''))?;
        let end = rest[1..].iter().position(|b| *b == quote)? + 1;
        if name == b"version" {
            return Some(rest[1..end].trim_ascii());
        }
        rest = rest[end + 1..].trim_ascii_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_recognized_in_any_case_of_the_root() {
        assert!(is_ir(br#"<?xml version="1.0"?> <net name="a" version="11">"#));
        assert!(is_ir(b"\xef\xbb\xbf<NET version='10' name='x'/>"));
        assert!(is_ir(b"<!-- made by hand -->\n<Net\n version = \"11\">"));
    }

    #[test]
    fn other_versions_and_other_xml_are_not() {
        for text in [&br#"<net version="7">"#[..], b"<network version='11'>", b"<a version='11'/>", b"<net name='11'>"]
        {
            assert!(!is_ir(text), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn bytes_cut_anywhere_do_not_panic() {
        let text = b"<?xml version=\"1.0\"?><!-- c --><net name=\"a>\" version=\"11\">";
        for len in 0..text.len() {
            is_ir(&text[..len]);
        }
        assert!(is_ir(text));
        assert!(!is_ir(b"\x08\x07\x12\x00binary"));
    }
}
