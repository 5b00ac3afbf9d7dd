//! Bags of embedding rows, added up or averaged. Sums run in double precision and are rounded once.

use super::indices::{BadIndex, Index, Indices, with_indices};
use super::view::product;
use crate::simd::dispatch;
use crate::{Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// A table of rows of floats.
#[derive(Clone, Debug)]
pub struct EmbeddingBag {
    n_rows: usize,
    width: usize,
    mean: bool,
}

/// Columns that are summed at once.
const COLUMNS: usize = 64;

impl EmbeddingBag {
    /// `mean` divides each sum by the number of rows in its bag.
    pub fn new(n_rows: usize, width: usize, mean: bool) -> EmbeddingBag {
        EmbeddingBag { n_rows, width, mean }
    }

    /// `bag(i)` is the range of indices in bag `i`; the output says how many bags there are. An empty bag is row
    /// `default` or zeros. Indices do not count from the end.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        table: &[f32],
        indices: Indices<'_>,
        bag: impl Fn(usize) -> Range<usize> + Sync,
        default: Option<usize>,
        weights: Option<&[f32]>,
        out: &mut [f32],
    ) -> Result<(), BadIndex> {
        self.run_any(exec, table, indices, &bag, default, weights, out)
    }

    // Compiled in this crate, whatever says where bags are.
    fn run_any(
        &self,
        exec: &Exec<'_>,
        table: &[f32],
        indices: Indices<'_>,
        bag: &(dyn Fn(usize) -> Range<usize> + Sync),
        default: Option<usize>,
        weights: Option<&[f32]>,
        out: &mut [f32],
    ) -> Result<(), BadIndex> {
        let (n_rows, width) = (self.n_rows, self.width);
        assert_eq!(table.len(), product(&[n_rows, width]), "floats of the table");
        assert!(weights.is_none_or(|w| w.len() == indices.len()), "a weight an index");
        if width == 0 || out.is_empty() {
            return Ok(());
        }
        assert_eq!(out.len() % width, 0, "whole rows of output");
        let bags = out.len() / width;
        let outside = |index: i64| BadIndex { index, n: n_rows };
        if let Some(default) = default.filter(|&d| d >= n_rows) {
            return Err(outside(default as i64));
        }
        let mut work = 0;
        for b in 0..bags {
            let range = bag(b);
            assert!(range.end <= indices.len(), "bag {b} has indices {range:?} of {}", indices.len());
            work += range.len();
            with_indices!(indices, list => for index in &list[range] {
                if !(0..n_rows as i64).contains(&index.signed()) {
                    return Err(outside(index.signed()));
                }
            });
        }
        let chunks = if work * width < 1 << 14 { 1 } else { (exec.threads() * 4).min(bags) };
        let (isa, out) = (exec.isa, SharedMut::new(out));
        with_indices!(indices, list => exec.each(chunks, |c, _| {
            for b in part_of(bags, chunks, c) {
                // SAFETY: bags of different chunks differ.
                let row = unsafe { out.part(b * width..(b + 1) * width) };
                let range = bag(b);
                match default {
                    Some(default) if range.is_empty() => {
                        row.copy_from_slice(&table[default * width..(default + 1) * width]);
                    }
                    _ => {
                        let weights = weights.map(|w| &w[range.clone()]);
                        let n = if self.mean && !range.is_empty() { range.len() as f64 } else { 1.0 };
                        sum(isa, table, &list[range], weights, n, row);
                    }
                }
            }
        }));
        Ok(())
    }
}

fn sum<I: Index>(isa: Isa, table: &[f32], list: &[I], weights: Option<&[f32]>, n: f64, out: &mut [f32]) {
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, _S, I: Index>(table: &'a [f32], list: &'a [I], weights: Option<&'a [f32]>, n: f64, out: &'a mut [f32]) {
            sum_any(table, list, weights, n, out)
        })
    }
}

#[inline(always)]
fn sum_any<I: Index>(table: &[f32], list: &[I], weights: Option<&[f32]>, n: f64, out: &mut [f32]) {
    let width = out.len();
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        let mut sums = [0f64; COLUMNS];
        let sums = &mut sums[..out.len()];
        for (i, index) in list.iter().enumerate() {
            let row = &table[index.signed() as usize * width + block * COLUMNS..][..out.len()];
            let weight = weights.map_or(1.0, |w| w[i] as f64);
            for k in 0..sums.len() {
                sums[k] += row[k] as f64 * weight;
            }
        }
        // Dividing by 1 changes nothing.
        for k in 0..sums.len() {
            out[k] = (sums[k] / n) as f32;
        }
    }
}
