//! Rows of tables: sums of a row from each of several tables, as at the start of a language model, with an optional layer
//! normalization; and bags, each the sum or mean of some rows of one table.
//!
//! A negative number of a row counts from the end of the table; one outside of it gives zeros.

use crate::{Exec, SharedMut, part_of};
use std::ops::Range;

/// Whole numbers as models have them.
#[derive(Clone, Copy, Debug)]
pub enum Ids<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl Ids<'_> {
    pub fn len(&self) -> usize {
        match self {
            Ids::I32(ids) => ids.len(),
            Ids::I64(ids) => ids.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn get(&self, i: usize) -> i64 {
        match self {
            Ids::I32(ids) => ids[i].into(),
            Ids::I64(ids) => ids[i],
        }
    }
    /// The first number that is no row of a table, whether or not negative ones count.
    pub fn first_outside(&self, rows: usize) -> Option<i64> {
        (0..self.len()).map(|i| self.get(i)).find(|&id| usize::try_from(id).map_or(true, |id| id >= rows))
    }
}

/// One table of a sum.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingTerm<'a> {
    pub table: &'a [f32],
    /// Which row each position takes; a shorter list starts over. `None` takes the rows one after the other.
    pub ids: Option<Ids<'a>>,
}

/// Layer normalization over a row.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingNorm<'a> {
    pub gamma: Option<&'a [f32]>,
    pub beta: Option<&'a [f32]>,
    pub epsilon: f32,
}

/// `out[t]` is the sum of a row of each table, normalized where that is asked for. Rows are `width` long.
pub fn embedding_sum(exec: &Exec, width: usize, terms: &[EmbeddingTerm], norm: Option<EmbeddingNorm>, out: &mut [f32]) {
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
    for row in norm.iter().flat_map(|n| [n.gamma, n.beta]).flatten() {
        assert!(row.len() >= width, "a normalization of {} numbers for rows of {width}", row.len());
    }
    let rows = out.len() / width;
    let out = SharedMut::new(out);
    each_row(exec, rows, width * terms.len().max(1), |range| {
        for position in range {
            // SAFETY: each row is written by one chunk.
            let to = unsafe { out.part(position * width..(position + 1) * width) };
            let mut first = true;
            for term in terms {
                let n = term.table.len() / width;
                let row = match term.ids {
                    Some(ids) => place(ids.get(position % ids.len()), n),
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
            if let Some(norm) = &norm {
                normalize(to, norm);
            }
        }
    });
}

/// How ids are put into bags.
#[derive(Clone, Copy, Debug)]
pub enum Bags<'a> {
    /// Each bag has this many.
    Size(usize),
    /// Where each bag starts; it ends where the next one does, the last one at the end. Offsets do not fall.
    Offsets(Ids<'a>),
    /// The bag of each id; the numbers do not fall.
    Segments(Ids<'a>),
}

impl Bags<'_> {
    fn range(&self, bag: usize, n_ids: usize) -> Range<usize> {
        let within = |x: i64| usize::try_from(x).unwrap_or(0).min(n_ids);
        let range = match self {
            Bags::Size(n) => (bag * n).min(n_ids)..((bag + 1) * n).min(n_ids),
            Bags::Offsets(at) if bag >= at.len() => n_ids..n_ids,
            Bags::Offsets(at) => within(at.get(bag))..if bag + 1 < at.len() { within(at.get(bag + 1)) } else { n_ids },
            Bags::Segments(of) => first_from(of, bag as i64).min(n_ids)..first_from(of, bag as i64 + 1).min(n_ids),
        };
        range.start..range.end.max(range.start)
    }
}

/// The first place whose number is not below `from`.
fn first_from(ids: &Ids, from: i64) -> usize {
    match ids {
        Ids::I32(ids) => ids.partition_point(|&id| i64::from(id) < from),
        Ids::I64(ids) => ids.partition_point(|&id| id < from),
    }
}

/// Joins the rows of each bag; an empty bag is the row `default`, which no weight touches, or zeros.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingBag<'a> {
    pub width: usize,
    pub mean: bool,
    pub table: &'a [f32],
    pub ids: Ids<'a>,
    pub bags: Bags<'a>,
    /// One for each id.
    pub weights: Option<&'a [f32]>,
    pub default: Option<i64>,
}

impl EmbeddingBag<'_> {
    /// As many bags as `out` has rows.
    pub fn run(&self, exec: &Exec, out: &mut [f32]) {
        let (width, n_ids) = (self.width, self.ids.len());
        if width == 0 || out.is_empty() {
            return;
        }
        assert!(out.len().is_multiple_of(width), "{} floats are no rows of {width}", out.len());
        let rows = self.table.len() / width;
        assert!(self.weights.is_none_or(|w| w.len() >= n_ids), "fewer weights than ids");
        let bags = out.len() / width;
        let out = SharedMut::new(out);
        let row = |id: i64| place(id, rows).map(|row| &self.table[row * width..][..width]);
        each_row(exec, bags, width * (n_ids / bags + 1), |range| {
            for bag in range {
                // SAFETY: each row is written by one chunk.
                let to = unsafe { out.part(bag * width..(bag + 1) * width) };
                let ids = self.bags.range(bag, n_ids);
                to.fill(0.0);
                if let (true, Some(default)) = (ids.is_empty(), self.default.and_then(row)) {
                    to.copy_from_slice(default);
                }
                for i in ids.clone() {
                    let Some(row) = row(self.ids.get(i)) else { continue };
                    match self.weights {
                        Some(w) => to.iter_mut().zip(row).for_each(|(y, x)| *y += x * w[i]),
                        None => to.iter_mut().zip(row).for_each(|(y, x)| *y += x),
                    }
                }
                if self.mean && !ids.is_empty() {
                    let n = ids.len() as f32;
                    to.iter_mut().for_each(|y| *y /= n);
                }
            }
        });
    }
}

/// Runs `work` over ranges of rows, on one thread when there is little to do.
fn each_row(exec: &Exec, rows: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
    let chunks = if rows * cost < 16 << 10 { 1 } else { (4 * exec.threads()).min(rows) };
    exec.each(chunks, |chunk, _| work(part_of(rows, chunks, chunk)));
}

/// The row that a number stands for.
fn place(id: i64, rows: usize) -> Option<usize> {
    let id = if id < 0 { id.checked_add(i64::try_from(rows).ok()?)? } else { id };
    usize::try_from(id).ok().filter(|&id| id < rows)
}

/// Sums in sixteen parts, which the compiler turns into vectors.
fn sum_of(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut parts = [0.0f32; 16];
    let chunks = row.chunks_exact(16);
    let rest: f32 = chunks.remainder().iter().map(|&x| f(x)).sum();
    for chunk in chunks {
        for (part, &x) in parts.iter_mut().zip(chunk) {
            *part += f(x);
        }
    }
    parts.iter().sum::<f32>() + rest
}

fn normalize(row: &mut [f32], norm: &EmbeddingNorm) {
    let n = row.len() as f32;
    let mean = sum_of(row, |x| x) / n;
    let variance = sum_of(row, |x| (x - mean) * (x - mean)) / n;
    let factor = 1.0 / (variance + norm.epsilon).sqrt();
    row.iter_mut().for_each(|x| *x = (*x - mean) * factor);
    if let Some(gamma) = norm.gamma {
        row.iter_mut().zip(gamma).for_each(|(x, g)| *x *= g);
    }
    if let Some(beta) = norm.beta {
        row.iter_mut().zip(beta).for_each(|(x, b)| *x += b);
    }
}
