//! Sums of a row from each of several tables, as at the start of a language model.
//!
//! A negative number of a row counts from the end of the table; one outside of it gives zeros.

use crate::movement::Indices;
use crate::{Exec, SharedMut, part_of};

/// One table of a sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddingTerm<'a> {
    pub table: &'a [f32],
    /// Which row each position takes; a shorter list starts over. `None` takes the rows one after the other.
    pub ids: Option<Indices<'a>>,
}

/// `out[t]` is the sum of a row of each table. Rows are `width` long.
pub fn embedding_sum(exec: &Exec, width: usize, terms: &[EmbeddingTerm], out: &mut [f32]) {
    if width == 0 || out.is_empty() {
        return;
    }
    assert!(out.len().is_multiple_of(width), "{} floats are no rows of {width}", out.len());
    for term in terms {
        assert!(
            term.table.len().is_multiple_of(width),
            "a table of {} floats has no rows of {width}",
            term.table.len()
        );
        assert!(term.ids.map_or(term.table.len(), |ids| ids.len()) > 0, "a term of an embedding is empty");
    }
    let rows = out.len() / width;
    let out = SharedMut::new(out);
    let chunks = if rows * width * terms.len().max(1) < 16 << 10 { 1 } else { (4 * exec.threads()).min(rows) };
    exec.each(chunks, |chunk, _| {
        for position in part_of(rows, chunks, chunk) {
            // SAFETY: each row is written by one chunk.
            let to = unsafe { out.part(position * width..(position + 1) * width) };
            let mut first = true;
            for term in terms {
                let n = term.table.len() / width;
                let row = match term.ids {
                    Some(Indices::I32(ids)) => row_of(ids[position % ids.len()].into(), n),
                    Some(Indices::I64(ids)) => row_of(ids[position % ids.len()], n),
                    None => Some(position % n),
                };
                let row = row.map(|row| &term.table[row * width..][..width]);
                match (row, first) {
                    (Some(row), true) => to.copy_from_slice(row),
                    (Some(row), false) => to.iter_mut().zip(row).for_each(|(y, x)| *y += x),
                    (None, true) => to.fill(0.0),
                    (None, false) => {}
                }
                first = false;
            }
            if first {
                to.fill(0.0);
            }
        }
    });
}

/// The row that a number stands for.
fn row_of(id: i64, rows: usize) -> Option<usize> {
    let id = if id < 0 { id.checked_add(i64::try_from(rows).ok()?)? } else { id };
    usize::try_from(id).ok().filter(|&id| id < rows)
}
