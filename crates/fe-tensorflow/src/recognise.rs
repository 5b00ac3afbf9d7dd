//! Files of TensorFlow by their first bytes. All three messages of it are protobuf without a mark, so what counts is that the
//! fields fit.

use crate::text::{self, Kind};

/// What a file of TensorFlow holds, and whether as text; `None` when it is none.
pub(crate) fn recognise(head: &[u8]) -> Option<(Kind, bool)> {
    if is_graph(head) {
        return Some((Kind::Graph, false));
    }
    if is_saved_model(head) {
        return Some((Kind::SavedModel, false));
    }
    if is_meta_graph(head) {
        return Some((Kind::MetaGraph, false));
    }
    text::written(head).map(|kind| (kind, true))
}

// The first field of a message: its key, its content as far as it is there, and what lies behind it.
fn field(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (key, a) = varint(bytes)?;
    let (n, b) = varint(&bytes[a..])?;
    let rest = &bytes[a + b..];
    if key & 7 == 0 {
        return Some((key, &[], rest));
    }
    let n = usize::try_from(n).unwrap_or(usize::MAX).min(rest.len());
    (key & 7 == 2).then(|| (key, &rest[..n], &rest[n..]))
}

// A version, then graphs with what is known about them.
fn is_saved_model(head: &[u8]) -> bool {
    let Some((0x08, _, rest)) = field(head) else { return false };
    matches!(field(rest), Some((0x12, meta, _)) if is_meta_graph(meta))
}

// What is known about the graph, then the graph itself.
fn is_meta_graph(head: &[u8]) -> bool {
    match field(head) {
        Some((0x0a, info, rest)) => {
            is_meta_info(info) && (rest.is_empty() || matches!(field(rest), Some((0x12 | 0x1a | 0x22 | 0x2a, _, _))))
        }
        Some((0x12, graph, _)) => is_graph(graph),
        _ => false,
    }
}

// Lists of operations, tags and versions.
fn is_meta_info(mut bytes: &[u8]) -> bool {
    let mut known = 0;
    while let Some((key, content, rest)) = field(bytes) {
        let is_text = || content.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
        let is_op = || matches!(field(content), Some((0x0a, op, _)) if op.first() == Some(&0x0a));
        match key {
            0x0a | 0x22 | 0x2a | 0x32 if is_text() => known += 1,
            0x12 if content.is_empty() || is_op() => known += 1,
            0x1a | 0x38 | 0x42 => {}
            _ => return false,
        }
        bytes = rest;
    }
    known > 0
}

// Nodes, and what may stand between them.
fn is_graph(head: &[u8]) -> bool {
    let mut at = 0;
    let mut nodes = 0;
    while at < head.len() {
        let Some((key, used)) = varint(&head[at..]) else { break };
        at += used;
        let Some((n, used)) = varint(&head[at..]) else { break };
        at += used;
        match key {
            // `version`, a number.
            0x18 => {}
            // `node`, `library`, `versions`.
            0x0a | 0x12 | 0x22 => {
                let Some(next) = usize::try_from(n).ok().and_then(|n| at.checked_add(n)) else { return false };
                if key == 0x0a {
                    if !is_node(&head[at..next.min(head.len())], next > head.len()) {
                        return false;
                    }
                    nodes += 1;
                }
                at = next;
            }
            _ => return false,
        }
    }
    nodes > 0
}

// A node has a name and a type, then inputs, a device and attributes.
fn is_node(bytes: &[u8], is_cut: bool) -> bool {
    let mut at = 0;
    let mut has_op = false;
    while at < bytes.len() {
        let Some((key, used)) = varint(&bytes[at..]) else { return is_cut };
        at += used;
        if !matches!(key, 0x0a | 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a) {
            return false;
        }
        let Some((n, used)) = varint(&bytes[at..]) else { return is_cut };
        at += used;
        let Some(next) = usize::try_from(n).ok().and_then(|n| at.checked_add(n)) else { return false };
        if next > bytes.len() {
            return is_cut;
        }
        let is_name = |b: &u8| b.is_ascii_graphic() || *b >= 0x80;
        if key == 0x12 {
            has_op = true;
            if n == 0 || !bytes[at..next].iter().all(is_name) {
                return false;
            }
        }
        at = next;
    }
    has_op || is_cut
}

/// A number and how many bytes it takes.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7f) << (7 * i as u32).min(63);
        if b & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}
