//! Programs by their first bytes. A `ProgramDesc` has no mark: it begins with a block, and that with its number, the number of
//! the block around it and its variables. A program in JSON says `pir` at its start.

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A `ProgramDesc`.
    Program,
    /// A program of Paddle 3 in JSON.
    Json,
}

/// The kind of a file by its first bytes; `None` when it is no program.
pub(crate) fn recognise(head: &[u8]) -> Option<Kind> {
    if is_json(head) {
        return Some(Kind::Json);
    }
    is_program(head).then_some(Kind::Program)
}

/// How far the mark of a program in JSON may stand behind its start.
const MARK_WITHIN: usize = 512;

fn is_json(head: &[u8]) -> bool {
    let start = head.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(head.len());
    let text: Vec<u8> = head[start..].iter().take(MARK_WITHIN).filter(|b| !b.is_ascii_whitespace()).copied().collect();
    let has = |wanted: &[u8]| text.windows(wanted.len()).any(|w| w == wanted);
    text.first() == Some(&b'{') && has(b"\"base_code\":") && has(b"\"magic\":\"pir\"")
}

fn is_program(head: &[u8]) -> bool {
    let Some((0x0a, rest)) = varint(head) else { return false };
    let Some((size, rest)) = varint(rest) else { return false };
    let Some((0x08, rest)) = varint(rest) else { return false };
    let Some((0, rest)) = varint(rest) else { return false };
    let Some((0x10, rest)) = varint(rest) else { return false };
    let Some((parent, rest)) = varint(rest) else { return false };
    // Variables, operators or the number of a forward block; an empty block ends here.
    let next = varint(rest).map(|(key, _)| key);
    // -1 as 64 bits, or as the 32 bits that some writers leave.
    let is_root = parent == 0 || parent as i64 == -1 || parent == u64::from(u32::MAX);
    is_root && (matches!(next, Some(0x1a | 0x22 | 0x28)) || (size <= 13 && matches!(next, None | Some(0x22 | 0x2a))))
}

// A number and what lies behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7f) << (7 * i as u32).min(63);
        if b & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}
