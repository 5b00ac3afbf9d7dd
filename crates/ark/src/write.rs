//! Archives as Kaldi writes them.

use crate::error::Result;
use crate::table::Entry;
use std::fmt::Write;

/// A binary archive of floats: matrices, and vectors where a tensor has one axis.
pub fn write_ark(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut out = vec![];
    for entry in entries {
        let values = entry.value.to_vec::<f32>()?;
        out.extend_from_slice(entry.key.as_bytes());
        out.extend_from_slice(b" \0B");
        let shape = sizes(entry);
        out.extend_from_slice(if shape.len() == 1 { b"FV " } else { b"FM " });
        for size in shape {
            out.push(4);
            out.extend_from_slice(&(size as i32).to_le_bytes());
        }
        values.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes()));
    }
    Ok(out)
}

/// The same as text.
pub fn write_text_ark(entries: &[Entry]) -> Result<String> {
    let mut out = String::new();
    for entry in entries {
        let values = entry.value.to_vec::<f32>()?;
        let shape = sizes(entry);
        let cols = shape.last().copied().unwrap_or(0).max(1);
        let is_vector = shape.len() == 1;
        let _ = write!(out, "{}  [", entry.key);
        for row in values.chunks(cols) {
            out.push_str(if is_vector { " " } else { "\n  " });
            row.iter().for_each(|x| {
                let _ = write!(out, "{x} ");
            });
        }
        out.push_str("]\n");
    }
    Ok(out)
}

// One size of a vector, two of anything else.
fn sizes(entry: &Entry) -> Vec<usize> {
    let shape = entry.value.shape();
    match shape {
        [n] => vec![*n],
        [first, ..] => vec![*first, entry.value.len() / (*first).max(1)],
        [] => vec![1],
    }
}
