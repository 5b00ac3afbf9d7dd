//! A program over arrays some of which are bytes that stand for numbers: blocks become floats in a buffer, the program runs on
//! them there, and the result becomes bytes again, so that memory is walked once.

use super::apply::{Area, Source, Target};
use super::{Broadcast, Program, pieces};
use crate::quantize::{numbers_of, steps_of};
use crate::{Exec, Isa, Quantizer, SharedMut, part_of};
use std::mem::MaybeUninit;

/// Floats on the stack of a thread.
const STACK: usize = 8192;
/// Elements of a block at most.
const BLOCK: usize = 1024;
/// Inputs at most.
const MANY: usize = 30;

/// An array that a program reads.
#[derive(Clone, Copy, Debug)]
pub enum BytesInput<'a> {
    F32(&'a [f32]),
    /// `(x - zero) * scale`.
    U8 {
        data: &'a [u8],
        scale: f32,
        zero: u8,
    },
}

/// The array that it writes.
#[derive(Debug)]
pub enum BytesOutput<'a> {
    F32(&'a mut [f32]),
    U8(&'a mut [u8], Quantizer),
}

/// A [`Program`] of one output for given shapes.
#[derive(Clone, Debug)]
pub struct BytesElements {
    program: Program,
    broadcast: Broadcast,
    /// Elements of a block: whole periods of what repeats.
    block: usize,
    /// Floats from buffer to buffer.
    room: usize,
}

impl BytesElements {
    /// Shapes are aligned at their last axes, and 1 repeats. `None` for more inputs than it takes. Panics when shapes do not fit.
    pub fn new(program: Program, out: &[usize], inputs: &[&[usize]]) -> Option<BytesElements> {
        let broadcast = Broadcast::new(out, inputs);
        if inputs.len() > MANY || broadcast.dims().len() > 16 {
            return None;
        }
        let room = (STACK / (program.buffers() + inputs.len() + 1) / 16 * 16).min(BLOCK);
        let periods = (0..inputs.len()).map(|i| broadcast.period(i)).filter(|&p| p > 0 && p <= room);
        let period = periods.max().unwrap_or(1);
        (room > 0).then(|| BytesElements { program, broadcast, block: room / period * period, room })
    }

    /// Inputs are as long as their shapes say, or longer; the output exactly as long.
    pub fn run(&self, exec: &Exec<'_>, inputs: &[BytesInput<'_>], out: BytesOutput<'_>) {
        assert_eq!(inputs.len(), self.program.inputs(), "as many arrays as inputs");
        for (i, input) in inputs.iter().enumerate() {
            let len = match input {
                BytesInput::F32(data) => data.len(),
                BytesInput::U8 { data, .. } => data.len(),
            };
            assert!(len >= self.broadcast.input_len(i), "input {i} has {len} elements");
        }
        let len = self.broadcast.len();
        let blocks = len.div_ceil(self.block);
        let chunks = pieces(exec, len * (self.program.cost() + 2)).min(blocks);
        let each = |run: &(dyn Fn(&mut Buffers, usize, usize) + Sync)| {
            exec.each(chunks, |chunk, _| {
                let mut buffers = Buffers { floats: [MaybeUninit::uninit(); STACK], held: 0 };
                for block in part_of(blocks, chunks, chunk) {
                    let start = block * self.block;
                    run(&mut buffers, start, self.block.min(len - start));
                }
            });
        };
        match out {
            BytesOutput::F32(data) => {
                assert_eq!(data.len(), len, "the output");
                let out = SharedMut::new(data);
                each(&|buffers, start, n| {
                    // SAFETY: blocks are disjoint.
                    let to = unsafe { out.part(start..start + n) };
                    self.block(exec.isa, inputs, buffers, start, n, to.as_mut_ptr());
                });
            }
            BytesOutput::U8(data, quantizer) => {
                assert_eq!(data.len(), len, "the output");
                let out = SharedMut::new(data);
                each(&|buffers, start, n| {
                    let last = self.program.buffers() + self.program.inputs();
                    let result = buffers.at(last * self.room);
                    self.block(exec.isa, inputs, buffers, start, n, result);
                    // SAFETY: the buffer was filled just now, and blocks are disjoint.
                    let (from, to) = unsafe { (std::slice::from_raw_parts(result, n), out.part(start..start + n)) };
                    steps_of(exec.isa, &quantizer, from, to);
                });
            }
        }
    }

    // Elements `start..start + n` of the result, which go to `to`.
    fn block(&self, isa: Isa, inputs: &[BytesInput<'_>], buffers: &mut Buffers, start: usize, n: usize, to: *mut f32) {
        let mut sources = [Source::NONE; MANY];
        for (i, (source, input)) in sources.iter_mut().zip(inputs).enumerate() {
            let dense = self.broadcast.is_dense(i);
            let period = self.broadcast.period(i);
            let buffer = buffers.at((self.program.buffers() + i) * self.room);
            *source = Source { at: buffer, step: 1, row: n };
            // What repeats with the blocks lies there still.
            if period > 0 && self.block.is_multiple_of(period) && buffers.held >= n {
                continue;
            }
            // SAFETY: buffers have room for a block; inputs are as long as their shapes say, as `run` has checked.
            unsafe {
                match input {
                    BytesInput::F32(data) if dense => *source = Source { at: data[start..].as_ptr(), step: 1, row: n },
                    BytesInput::F32(data) => self.broadcast.lay_out(i, data.as_ptr(), start, buffer, n),
                    BytesInput::U8 { data, scale, zero } => {
                        let mut bytes = [0u8; BLOCK];
                        let from = match dense {
                            true => &data[start..start + n],
                            false => {
                                self.broadcast.lay_out(i, data.as_ptr(), start, bytes.as_mut_ptr(), n);
                                &bytes[..n]
                            }
                        };
                        let to = std::slice::from_raw_parts_mut(buffer.cast::<MaybeUninit<f32>>(), n);
                        to.fill(MaybeUninit::new(0.0));
                        numbers_of(isa, *scale, *zero, from, std::slice::from_raw_parts_mut(buffer, n));
                    }
                }
            }
        }
        buffers.held = n;
        let (area, outputs) = (Area { rows: 1, columns: n }, [Target { at: to, row: n }]);
        // SAFETY: all of it was set up above; the output is this block's own, and no input overlaps it.
        unsafe { self.program.run_block(isa, area, &sources, &outputs, buffers.at(0), self.room) };
    }
}

/// What lies between the steps, then the inputs as floats, then the result.
struct Buffers {
    floats: [MaybeUninit<f32>; STACK],
    /// Elements of the last block.
    held: usize,
}

impl Buffers {
    fn at(&mut self, start: usize) -> *mut f32 {
        self.floats[start..].as_mut_ptr().cast()
    }
}

impl Program {
    /// What becomes of each byte: the program of one input on the number that it stands for, as a step of the result.
    pub fn table(&self, isa: Isa, scale: f32, zero: u8, to: &Quantizer) -> [u8; 256] {
        assert!(self.inputs() == 1 && self.outputs() == 1, "a function of one number");
        let mut bytes = [0u8; 256];
        bytes.iter_mut().enumerate().for_each(|(i, x)| *x = i as u8);
        let (mut numbers, mut results, mut table) = ([0f32; 256], [0f32; 256], [0u8; 256]);
        numbers_of(isa, scale, zero, &bytes, &mut numbers);
        let mut buffers = vec![0f32; self.buffers().max(1) * 256];
        let sources = [Source { at: numbers.as_ptr(), step: 1, row: 256 }];
        let targets = [Target { at: results.as_mut_ptr(), row: 256 }];
        let area = Area { rows: 1, columns: 256 };
        // SAFETY: arrays of 256 numbers, none of which overlaps another.
        unsafe { self.run_block(isa, area, &sources, &targets, buffers.as_mut_ptr(), 256) };
        steps_of(isa, to, &results, &mut table);
        table
    }
}
