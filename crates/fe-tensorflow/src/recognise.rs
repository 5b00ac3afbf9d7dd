//! Files of TensorFlow by their first bytes.

/// Whether these are the first bytes of a `GraphDef`: nodes, and what may stand between them.
pub(crate) fn is_graph(head: &[u8]) -> bool {
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
