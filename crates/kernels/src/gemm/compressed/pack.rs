//! From a matrix as a model stores it to panels.

use super::{Codes, Form};
use crate::gemm::panels::Panels;
use crate::{Exec, SharedMut};

/// A matrix as it is stored: numbers of 8 bits, or of 4 with the first one in the low half of a byte.
pub struct Stored<'a> {
    pub bytes: &'a [u8],
    /// The bits of each number that are turned over: the highest one makes an unsigned integer a signed one.
    pub flip: u8,
    /// Whether it is `n x k`, not `k x n`.
    pub transposed: bool,
    /// The scale of a column and a group.
    pub scale: &'a (dyn Fn(usize, usize) -> f32 + Sync),
    /// The zero point of a column and a group.
    pub zero: &'a (dyn Fn(usize, usize) -> i8 + Sync),
}

impl std::fmt::Debug for Stored<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stored({} bytes, transposed {})", self.bytes.len(), self.transposed)
    }
}

/// Rows that are put in order at once.
const ROWS: usize = 64;
/// Most columns of a panel.
const COLUMNS: usize = 32;

pub(super) fn pack(form: &Form, panels: &Panels, exec: Option<&Exec<'_>>, from: &Stored<'_>, packed: &mut [u8]) {
    let (n, k, each) = (panels.n, form.k, form.panel_bytes());
    let bits = form.compression.codes.bits();
    assert!(from.bytes.len() >= (n * k * bits).div_ceil(8), "{} bytes for a {k} x {n} matrix", from.bytes.len());
    let unit = match &form.compression.codes {
        Codes::Table(table) if form.cells => Steps::of(table).map_or(1.0, |steps| steps.unit),
        _ => 1.0,
    };
    let out = SharedMut::new(packed);
    let one = |panel: usize, _: usize| {
        // SAFETY: each panel is written once.
        let to = unsafe { out.part(panel * each..(panel + 1) * each) };
        let columns = panel * panels.width..panel * panels.width + panels.columns(panel);
        for (g, group) in to.chunks_mut(form.group_bytes()).enumerate() {
            let (head, rows) = group.split_at_mut(form.head());
            head.fill(0);
            let (scales, zeros) = head.split_at_mut(4 * form.width);
            for (j, column) in columns.clone().enumerate() {
                scales[4 * j..4 * j + 4].copy_from_slice(&((from.scale)(column, g) * unit).to_ne_bytes());
                if form.compression.zeros {
                    zeros[j] = (from.zero)(column, g) as u8;
                }
            }
            for (b, rows) in rows.chunks_mut(ROWS * form.row()).enumerate() {
                let first = g * form.compression.group + b * ROWS;
                let count = rows.len() / form.row();
                let mut codes = [[0u8; COLUMNS]; ROWS];
                for (j, column) in columns.clone().enumerate() {
                    for (i, line) in codes[..count].iter_mut().enumerate() {
                        let at = if from.transposed { column * k + first + i } else { (first + i) * n + column };
                        line[j] = match bits {
                            8 => from.bytes[at] ^ from.flip,
                            _ => (from.bytes[at / 2] >> (4 * (at % 2)) & 15) ^ from.flip,
                        };
                    }
                }
                match form.cells {
                    true => put_cells(form, &codes[..count], rows),
                    false => rows.chunks_mut(form.row()).zip(&codes).for_each(|(row, codes)| put(form, codes, row)),
                }
            }
        }
    };
    match exec {
        Some(exec) => exec.each(panels.count(), one),
        None => (0..panels.count()).for_each(|p| one(p, 0)),
    }
}

// One row of codes.
fn put(form: &Form, codes: &[u8; COLUMNS], row: &mut [u8]) {
    if form.compression.codes.bits() == 8 {
        return row.copy_from_slice(&codes[..form.width]);
    }
    for (codes, row) in codes[..form.width].chunks(2 * form.lanes).zip(row.chunks_mut(form.lanes)) {
        let (low, high) = codes.split_at(form.lanes);
        row.iter_mut().zip(low.iter().zip(high)).for_each(|(to, (low, high))| *to = low | high << 4);
    }
}

/// A table whose numbers lie on equal steps, as bytes that count from the lowest one.
pub(super) struct Steps {
    pub(super) bytes: [u8; 16],
    pub(super) center: u8,
    pub(super) unit: f32,
}

impl Steps {
    /// `None` where numbers lie otherwise, as those of nf4 do.
    pub(super) fn of(table: &[f32; 16]) -> Option<Steps> {
        let unit = table.iter().map(|x| x.abs()).filter(|x| *x > 0.0).fold(f32::INFINITY, f32::min);
        let steps = table.map(|x| x / unit);
        let lowest = steps.iter().copied().fold(0.0, f32::min);
        let whole = |x: &f32| x.fract() == 0.0 && (0.0..=255.0).contains(&(x - lowest));
        let bytes = || steps.map(|x| (x - lowest) as u8);
        steps.iter().all(whole).then(|| Steps { bytes: bytes(), center: -lowest as u8, unit })
    }
}

/// What zero is as a byte that counts from zero.
pub(super) fn center(form: &Form) -> u8 {
    match &form.compression.codes {
        Codes::I8 => 128,
        Codes::I4 => 8,
        Codes::Table(table) => Steps::of(table).map_or(0, |steps| steps.center),
    }
}

// Rows of codes, four or eight of them in a cell.
fn put_cells(form: &Form, codes: &[[u8; COLUMNS]], rows: &mut [u8]) {
    let (bits, flip) = match form.compression.codes {
        Codes::I8 => (8, 128),
        Codes::I4 => (4, 8),
        Codes::Table(_) => (4, 0),
    };
    let of_cell = 32 / bits;
    for (codes, cells) in codes.chunks(of_cell).zip(rows.chunks_mut(4 * form.width)) {
        for (j, cell) in cells.chunks_mut(4).enumerate() {
            for (t, to) in cell.iter_mut().enumerate() {
                *to = codes[t][j] ^ flip;
                if bits == 4 {
                    *to |= (codes[4 + t][j] ^ flip) << 4;
                }
            }
        }
    }
}
