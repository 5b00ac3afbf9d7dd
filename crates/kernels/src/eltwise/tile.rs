//! A program as the last part of a matrix product or convolution: it runs on each rectangle while that is in cache.

use super::Program;
use super::apply::{Area, Source, Target};
use crate::{Finish, Isa, Tile};
use std::mem::MaybeUninit;

/// Floats on the stack for what lies between the steps.
const STACK: usize = 4096;
/// Inputs besides the rectangle.
const MANY: usize = 16;

/// What meets the rectangle.
#[derive(Clone, Copy, Debug)]
pub enum TileInput<'a> {
    /// As many rows and columns as the whole output, `stride` floats from row to row.
    Matrix {
        data: &'a [f32],
        stride: usize,
    },
    /// One number for each column of the whole output.
    Row(&'a [f32]),
    /// One number for each row of the whole output.
    Column(&'a [f32]),
    Scalar(f32),
}

/// A program whose input 0 is the rectangle, which its one output replaces. It borrows everything, so making one for each
/// run costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct TileProgram<'a> {
    program: &'a Program,
    isa: Isa,
    inputs: &'a [TileInput<'a>],
}

impl<'a> TileProgram<'a> {
    /// `inputs` are those from 1 on. Panics when the program needs the rectangle after it wrote the output.
    pub fn new(isa: Isa, program: &'a Program, inputs: &'a [TileInput<'a>]) -> TileProgram<'a> {
        assert_eq!(program.inputs(), inputs.len() + 1, "an array for every input");
        assert!(inputs.len() < MANY, "{} inputs", inputs.len());
        assert!(program.may_overwrite(0), "input 0 must not be overwritten");
        TileProgram { program, isa, inputs }
    }
}

impl Finish for TileProgram<'_> {
    fn finish(&self, tile: Tile<'_>, _thread: usize) {
        if tile.rows == 0 || tile.columns == 0 {
            return;
        }
        let ends = (tile.row + tile.rows, tile.column + tile.columns);
        assert!(
            tile.data.len() >= (tile.rows - 1) * tile.stride + tile.columns,
            "the rectangle reaches out of its data"
        );
        let mut whole = [Source::NONE; MANY];
        let data = tile.data.as_mut_ptr();
        whole[0] = Source { at: data, step: 1, row: tile.stride };
        for (source, input) in whole[1..].iter_mut().zip(self.inputs) {
            *source = match input {
                TileInput::Matrix { data, stride } => {
                    assert!(data.len() >= (ends.0 - 1) * stride + ends.1, "a matrix as large as the output");
                    Source { at: data[tile.row * stride + tile.column..].as_ptr(), step: 1, row: *stride }
                }
                TileInput::Row(data) => Source { at: data[tile.column..ends.1].as_ptr(), step: 1, row: 0 },
                TileInput::Column(data) => Source { at: data[tile.row..ends.0].as_ptr(), step: 0, row: 1 },
                TileInput::Scalar(x) => Source { at: x, step: 0, row: 0 },
            };
        }
        let mut stack = [MaybeUninit::<f32>::uninit(); STACK];
        let buffers: *mut f32 = stack.as_mut_ptr().cast();
        let block = STACK / self.program.buffers().max(1);
        let columns = tile.columns.min(block);
        let rows = (block / columns).clamp(1, tile.rows);
        for row in (0..tile.rows).step_by(rows) {
            for column in (0..tile.columns).step_by(columns) {
                let area = Area { rows: rows.min(tile.rows - row), columns: columns.min(tile.columns - column) };
                let mut inputs = whole;
                for source in &mut inputs[..=self.inputs.len()] {
                    // SAFETY: the rectangle is inside of every input, as checked above.
                    source.at = unsafe { source.at.add(row * source.row + column * source.step) };
                }
                let outputs = [Target { at: inputs[0].at.cast_mut(), row: tile.stride }];
                // SAFETY: as above; input 0 is the output itself, the others are shared slices; buffers hold the area.
                unsafe { self.program.run_block(self.isa, area, &inputs, &outputs, buffers, block) };
            }
        }
    }
}
