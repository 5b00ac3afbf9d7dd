//! Rows of a compressed table, which become floats when they are read.

use crate::gemm::{Codes, Compression};
use crate::movement::Indices;
use crate::movement::indices::{Index, with_indices};
use crate::{Exec, SharedMut, part_of};

/// Takes rows of a table of `count x width` numbers. A negative index counts from the end, one outside gives zeros.
#[derive(Clone, Copy, Debug)]
pub struct CompressedRows {
    count: usize,
    width: usize,
    compression: Compression,
    flip: u8,
    /// What codes stand for, where they count into a table.
    table: [f32; 16],
}

impl CompressedRows {
    /// `None` when groups do not divide a row. `flip` is that of [`crate::Stored`].
    pub fn new(count: usize, width: usize, compression: Compression, flip: u8) -> Option<CompressedRows> {
        let table = match compression.codes {
            Codes::Table(table) => table,
            _ => std::array::from_fn(|code| f32::from((code << 4) as u8 as i8 >> 4)),
        };
        let fits = compression.group > 0 && width.is_multiple_of(compression.group);
        fits.then_some(CompressedRows { count, width, compression, flip, table })
    }
    pub fn groups(&self) -> usize {
        self.width / self.compression.group
    }

    /// `bytes` is the table as it is stored; scales and zero points are those of each group of each row.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        bytes: &[u8],
        scales: &[f32],
        zeros: &[i8],
        indices: Indices<'_>,
        out: &mut [f32],
    ) {
        let (numbers, groups) = (self.count * self.width, self.count * self.groups());
        let bits = if self.compression.codes == Codes::I8 { 8 } else { 4 };
        assert!(bytes.len() >= (numbers * bits).div_ceil(8), "{} bytes for {numbers} numbers", bytes.len());
        assert!(scales.len() >= groups, "{} scales for {groups} groups", scales.len());
        assert!(!self.compression.zeros || zeros.len() >= groups, "{} zero points for {groups} groups", zeros.len());
        assert_eq!(out.len(), indices.len() * self.width, "floats of the output");
        let rows = indices.len();
        if out.is_empty() {
            return;
        }
        let chunks = if out.len() < 16 << 10 { 1 } else { (4 * exec.threads()).min(rows) };
        let out = SharedMut::new(out);
        with_indices!(indices, list => exec.each(chunks, |chunk, _| {
            for i in part_of(rows, chunks, chunk) {
                // SAFETY: each row is written by one chunk.
                let to = unsafe { out.part(i * self.width..(i + 1) * self.width) };
                match list[i].in_axis(self.count) {
                    Some(row) => self.row(row, bytes, scales, zeros, to),
                    None => to.fill(0.0),
                }
            }
        }));
    }

    fn row(&self, row: usize, bytes: &[u8], scales: &[f32], zeros: &[i8], to: &mut [f32]) {
        let group = self.compression.group;
        for (g, to) in to.chunks_mut(group).enumerate() {
            let of = row * self.groups() + g;
            let (first, scale) = (row * self.width + g * group, scales[of]);
            let zero = if self.compression.zeros { f32::from(zeros[of]) } else { 0.0 };
            if self.compression.codes == Codes::I8 {
                for (y, x) in to.iter_mut().zip(&bytes[first..]) {
                    *y = (f32::from((x ^ self.flip) as i8) - zero) * scale;
                }
                continue;
            }
            for (at, y) in (first..).zip(to) {
                let code = (bytes[at / 2] >> (4 * (at % 2)) & 15) ^ self.flip;
                *y = (self.table[usize::from(code)] - zero) * scale;
            }
        }
    }
}
