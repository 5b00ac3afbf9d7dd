//! A program over whole arrays. The output is cut into blocks: of rows and columns where the rows are long, else of plain
//! runs of elements, for which inputs that do not lie like the output are first laid out in a buffer.

use super::apply::{Area, Source, Target};
use super::{Broadcast, Program, pieces};
use crate::cast::{Brain, Half};
use crate::simd::dispatch;
use crate::vmath::{put, take};
use crate::{Exec, Halves, Isa, part_of};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Floats on the stack of a thread for what lies between the steps.
const STACK: usize = 8192;
/// Floats of a block whose values in between should stay in the first cache.
const BLOCK: usize = 1024;
/// Floats of a block when there are none.
const DIRECT: usize = 16_384;
/// Loops an odd broadcast may need.
const RANK: usize = 16;
/// Inputs and outputs together.
const MANY: usize = 64;

/// A [`Program`] for given shapes.
#[derive(Clone, Debug)]
pub struct Elements {
    program: Program,
    broadcast: Broadcast,
    /// Inputs that are laid out in a buffer for each block: how far one may go before it repeats, or 0.
    laid_out: Vec<(usize, usize)>,
    flat: bool,
    /// Floats from buffer to buffer.
    block: usize,
    /// Rows and columns of a block; in flat mode one row.
    rows: usize,
    columns: usize,
    types: Types,
}

/// Inputs that lie as numbers of 16 bits, a bit each, and whether the output does. They are widened and rounded block by block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types {
    inputs: u64,
    output: bool,
    /// The type of those, where there are any.
    halves: Halves,
}

impl Types {
    const FLOATS: Types = Types { inputs: 0, output: false, halves: Halves::Bf16 };

    fn is_half(self, input: usize) -> bool {
        self.inputs >> input & 1 == 1
    }
    /// Which of the buffers for such inputs is that of an input.
    fn position(self, input: usize) -> usize {
        (self.inputs & ((1 << input) - 1)).count_ones() as usize
    }
    fn buffers(self) -> usize {
        self.inputs.count_ones() as usize + usize::from(self.output)
    }
}

impl Elements {
    /// Shapes are aligned at their last axes, and 1 repeats. Panics when they do not fit.
    pub fn new(program: Program, out: &[usize], inputs: &[&[usize]]) -> Elements {
        Elements::with_broadcast(program, Broadcast::new(out, inputs))
    }

    /// With inputs that may be transposed or cut, see [`Broadcast::with_steps`].
    pub fn with_broadcast(program: Program, broadcast: Broadcast) -> Elements {
        Elements::with_types(program, broadcast, Types::FLOATS)
    }

    /// The same with some inputs, which have the shape of the one output, and maybe the output as numbers of 16
    /// bits; see [`Elements::run_halves`].
    pub fn of_halves(self, halves: Halves, inputs: &[usize], output: bool) -> Elements {
        assert_eq!(self.program.outputs(), 1, "one output");
        let types = match inputs.is_empty() && !output {
            true => Types::FLOATS,
            false => Types { inputs: inputs.iter().map(|i| 1 << i).sum(), output, halves },
        };
        Elements::with_types(self.program, self.broadcast, types)
    }

    fn with_types(program: Program, broadcast: Broadcast, types: Types) -> Elements {
        assert_eq!(program.inputs(), broadcast.inputs(), "a shape for every input");
        assert!(
            broadcast.dims().len() <= RANK && program.inputs() + program.outputs() <= MANY,
            "too many loops or inputs"
        );
        let (rows, columns) = broadcast.inner();
        assert!(columns == 1 || broadcast.out_inner_steps().1 == 1, "rows of the output have elements side by side");
        let plain = |i: usize| match broadcast.inner_steps(i) {
            (0, 0) | (_, 1) if broadcast.outer() == 1 && rows == 1 => true,
            (r, c) => broadcast.outer() == 1 && ((r, c) == (0, 0) || (r, c) == (columns, 1)),
        };
        let odd = (0..program.inputs()).filter(|&i| !plain(i));
        let gathered = (0..program.inputs()).filter(|&i| broadcast.inner_steps(i).1 > 1);
        let long = columns >= 64 || (columns >= 16 && columns % 16 == 0);
        let small = rows * columns < 512 && broadcast.outer() > 1;
        let flat = odd.clone().next().is_some() && (!long || small) && broadcast.out_is_dense();
        let laid_out: Vec<usize> = if flat { odd.collect() } else { gathered.collect() };
        let laid_out: Vec<usize> = laid_out.into_iter().filter(|&i| !types.is_half(i)).collect();
        let like_output = |i: usize| !types.is_half(i) || (broadcast.inner_steps(i).1 <= 1 && broadcast.is_dense(i));
        assert!((0..program.inputs()).all(like_output), "an input of 16 bits lies like the output");
        let buffers = laid_out.len() + program.buffers() + types.buffers();
        let block = match buffers {
            0 => DIRECT,
            n => (STACK / n / 16 * 16).min(BLOCK),
        };
        assert!(block > 0, "a program with {buffers} values at once");
        let laid_out: Vec<(usize, usize)> = laid_out.into_iter().map(|i| (i, broadcast.period(i))).collect();
        let (rows, columns) = if flat {
            // Blocks that hold whole periods need the repeated inputs only once.
            let period = laid_out.iter().map(|&(_, p)| p).filter(|&p| p > 0 && p <= block).max().unwrap_or(1);
            (1, block / period * period)
        } else {
            let columns = columns.min(block);
            let wide = broadcast.inner().1 > block;
            (if wide { 1 } else { (block / columns.max(1)).clamp(1, rows.max(1)) }, columns)
        };
        Elements { program, broadcast, laid_out, flat, block, rows, columns, types }
    }

    pub fn program(&self) -> &Program {
        &self.program
    }
    /// Elements of each output.
    pub fn len(&self) -> usize {
        self.broadcast.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inputs are as long as their shapes say, or longer; outputs exactly as long, with what lies between their rows.
    pub fn run(&self, exec: &Exec<'_>, inputs: &[&[f32]], outputs: &mut [&mut [f32]]) {
        assert_eq!(inputs.len(), self.program.inputs(), "as many arrays as inputs");
        assert_eq!(outputs.len(), self.program.outputs(), "as many arrays as outputs");
        assert_eq!(self.types, Types::FLOATS, "arrays of floats");
        let (mut from, mut to) = ([std::ptr::null(); MANY], [std::ptr::null_mut(); MANY]);
        for (i, input) in inputs.iter().enumerate() {
            assert!(input.len() >= self.broadcast.input_len(i), "input {i} has {} elements", input.len());
            from[i] = input.as_ptr();
        }
        for (i, output) in outputs.iter_mut().enumerate() {
            assert_eq!(output.len(), self.broadcast.out_len(), "output {i}");
            to[i] = output.as_mut_ptr();
        }
        // SAFETY: lengths were checked; inputs are shared and outputs exclusive slices, so they do not overlap.
        unsafe { self.run_raw(exec, from, to) }
    }

    /// As [`Elements::run`] over the bytes of arrays, whose types [`Elements::of_halves`] was told.
    pub fn run_halves(&self, exec: &Exec<'_>, inputs: &[&[u8]], output: &mut [u8]) {
        assert_eq!(inputs.len(), self.program.inputs(), "as many arrays as inputs");
        let (mut from, mut to) = ([std::ptr::null(); MANY], [std::ptr::null_mut(); MANY]);
        for (i, input) in inputs.iter().enumerate() {
            let floats = match self.types.is_half(i) {
                true => bytemuck::cast_slice::<u8, u16>(input).len(),
                false => bytemuck::cast_slice::<u8, f32>(input).len(),
            };
            assert!(floats >= self.broadcast.input_len(i), "input {i} has {floats} elements");
            from[i] = input.as_ptr().cast();
        }
        let len = match self.types.output {
            true => bytemuck::cast_slice::<u8, u16>(output).len(),
            false => bytemuck::cast_slice::<u8, f32>(output).len(),
        };
        assert_eq!(len, self.broadcast.out_len(), "the output");
        to[0] = output.as_mut_ptr().cast();
        // SAFETY: lengths and addresses were checked; inputs are shared and the output is an exclusive slice.
        unsafe { self.run_raw(exec, from, to) }
    }

    /// Input 0 is the output too; `inputs` are the others. Panics when the program reads input 0 after it wrote the output,
    /// or input 0 does not have the shape of the output.
    pub fn run_in_place(&self, exec: &Exec<'_>, data: &mut [f32], inputs: &[&[f32]]) {
        let mut all: [&[f32]; MANY] = [&[]; MANY];
        all[1..=inputs.len()].copy_from_slice(inputs);
        self.run_over(exec, &all[..=inputs.len()], 0, data);
    }

    /// Whether an input may lie where the output goes: it has the same shape, and nothing reads it after that is written.
    pub fn may_run_over(&self, input: usize) -> bool {
        self.types == Types::FLOATS
            && self.program.may_overwrite(input)
            && self.broadcast.is_dense(input)
            && self.broadcast.out_is_dense()
    }

    /// With the output over one of the inputs, whose slice is not looked at. Panics when that may not be.
    pub fn run_over(&self, exec: &Exec<'_>, inputs: &[&[f32]], over: usize, data: &mut [f32]) {
        assert_eq!(inputs.len(), self.program.inputs(), "as many arrays as inputs");
        assert!(self.may_run_over(over), "input {over} must not be overwritten");
        assert_eq!(data.len(), self.len(), "the output");
        let (mut from, mut to) = ([std::ptr::null(); MANY], [std::ptr::null_mut(); MANY]);
        for (i, input) in inputs.iter().enumerate().filter(|(i, _)| *i != over) {
            assert!(input.len() >= self.broadcast.input_len(i), "input {i} has {} elements", input.len());
            from[i] = input.as_ptr();
        }
        to[0] = data.as_mut_ptr();
        from[over] = to[0];
        // SAFETY: lengths were checked; that input lies exactly as the output does, the others do not overlap it.
        unsafe { self.run_raw(exec, from, to) }
    }

    // SAFETY: the caller promises lengths, and that an input is an output itself or overlaps none.
    unsafe fn run_raw(&self, exec: &Exec<'_>, from: [*const f32; MANY], to: [*mut f32; MANY]) {
        let blocks = self.blocks();
        if blocks == 0 || self.is_empty() {
            return;
        }
        let chunks = pieces(exec, self.len() * self.program.cost()).min(blocks);
        let (isa, arrays) = (exec.isa, Arrays { from, to });
        exec.each(chunks, |chunk, _| {
            let arrays = &arrays;
            let mine = part_of(blocks, chunks, chunk);
            // SAFETY: the caller's promise; chunks have blocks of their own.
            unsafe { if self.flat { self.run_flat(isa, arrays, mine) } else { self.run_rows(isa, arrays, mine) } }
        });
    }

    fn blocks(&self) -> usize {
        if self.flat {
            return self.len().div_ceil(self.columns);
        }
        let (rows, columns) = self.broadcast.inner();
        self.broadcast.outer() * rows.div_ceil(self.rows) * columns.div_ceil(self.columns.max(1))
    }

    unsafe fn run_flat(&self, isa: Isa, arrays: &Arrays, mine: Range<usize>) {
        let mut stack = [MaybeUninit::<f32>::uninit(); STACK];
        let buffers: *mut f32 = stack.as_mut_ptr().cast();
        let mut held = 0;
        for block in mine {
            let start = block * self.columns;
            let n = self.columns.min(self.len() - start);
            let mut inputs = [Source::NONE; MANY];
            for i in 0..self.program.inputs() {
                let step = usize::from(self.broadcast.is_dense(i));
                // A dense input is as long as the output, another is one number or laid out below.
                inputs[i] = Source { at: arrays.from[i].wrapping_add(start * step), step, row: n };
                if step == 0 {
                    inputs[i].row = 0;
                }
            }
            for (k, &(i, period)) in self.laid_out.iter().enumerate() {
                // SAFETY: every buffer has room for a block.
                let buffer = unsafe { buffers.add((self.program.buffers() + k) * self.block) };
                if !(period > 0 && self.columns.is_multiple_of(period) && held >= n) {
                    // SAFETY: as above; the input reaches as far as the shape says.
                    unsafe { self.broadcast.lay_out(i, arrays.from[i], start, buffer, n) };
                }
                inputs[i] = Source { at: buffer, step: 1, row: n };
            }
            held = n;
            let mut outputs = arrays.to.map(|to| Target { at: to.wrapping_add(start), row: n });
            let area = Area { rows: 1, columns: n };
            // SAFETY: all of it was set up above.
            unsafe {
                self.widen(isa, area, &mut inputs, |i| (arrays.from[i].cast::<u16>().add(start), n), buffers);
                let to = self.own_output(&mut outputs, area, buffers);
                self.program.run_block(isa, area, &inputs, &outputs, buffers, self.block);
                self.narrow(isa, area, to, (arrays.to[0].cast::<u16>().wrapping_add(start), n));
            }
        }
    }

    unsafe fn run_rows(&self, isa: Isa, arrays: &Arrays, mine: Range<usize>) {
        let mut stack = [MaybeUninit::<f32>::uninit(); STACK];
        let buffers: *mut f32 = stack.as_mut_ptr().cast();
        let (rows, columns) = self.broadcast.inner();
        let (down, across) = (rows.div_ceil(self.rows), columns.div_ceil(self.columns));
        for block in mine {
            let (outer, rest) = (block / (down * across), block % (down * across));
            let (row, column) = (rest / across * self.rows, rest % across * self.columns);
            let area = Area { rows: self.rows.min(rows - row), columns: self.columns.min(columns - column) };
            let mut inputs = [Source::NONE; MANY];
            for i in 0..self.program.inputs() {
                let (r, c) = self.broadcast.inner_steps(i);
                let at = self.broadcast.offset(i, outer) + row * r + column * c;
                // The shape of the input reaches as far.
                inputs[i] = Source { at: arrays.from[i].wrapping_add(at), step: c, row: r };
            }
            for (k, &(i, _)) in self.laid_out.iter().enumerate() {
                let source = inputs[i];
                // SAFETY: every buffer has room for a block.
                let buffer = unsafe { buffers.add((self.program.buffers() + k) * self.block) };
                for r in 0..area.rows {
                    for c in 0..area.columns {
                        // SAFETY: as above, and inside of the input.
                        unsafe { *buffer.add(r * area.columns + c) = *source.at.add(r * source.row + c * source.step) };
                    }
                }
                inputs[i] = Source { at: buffer, step: 1, row: area.columns };
            }
            let (r, c) = self.broadcast.out_inner_steps();
            let at = self.broadcast.out_offset(outer) + row * r + column * c;
            let mut outputs = arrays.to.map(|to| Target { at: to.wrapping_add(at), row: r });
            let narrow = |i: usize| {
                let (r, c) = self.broadcast.inner_steps(i);
                let at = self.broadcast.offset(i, outer) + row * r + column * c;
                (arrays.from[i].cast::<u16>().wrapping_add(at), r)
            };
            // SAFETY: all of it was set up above.
            unsafe {
                self.widen(isa, area, &mut inputs, narrow, buffers);
                let to = self.own_output(&mut outputs, area, buffers);
                self.program.run_block(isa, area, &inputs, &outputs, buffers, self.block);
                self.narrow(isa, area, to, (arrays.to[0].cast::<u16>().wrapping_add(at), r));
            }
        }
    }

    // Puts inputs of 16 bits into buffers as floats. `narrow` gives the address of an input in the block and its distance from row
    // to row.
    unsafe fn widen(
        &self,
        isa: Isa,
        area: Area,
        inputs: &mut [Source; MANY],
        narrow: impl Fn(usize) -> (*const u16, usize),
        buffers: *mut f32,
    ) {
        for i in (0..self.program.inputs()).filter(|&i| self.types.is_half(i)) {
            let at = self.program.buffers() + self.laid_out.len() + self.types.position(i);
            let (buffer, (from, row)) = (buffers.wrapping_add(at * self.block), narrow(i));
            let (rows, columns) = runs(area, row);
            for r in 0..rows {
                let (from, to) = (from.wrapping_add(r * row), buffer.wrapping_add(r * columns));
                // SAFETY: every buffer has room for a block; the input reaches as far as the shape says.
                unsafe { widen(isa, self.types.halves, from, to, columns) };
            }
            inputs[i] = Source { at: buffer, step: 1, row: area.columns };
        }
    }

    // Lets the output go to a buffer first when it is of 16 bits.
    fn own_output(&self, outputs: &mut [Target; MANY], area: Area, buffers: *mut f32) -> *const f32 {
        let at = self.program.buffers() + self.laid_out.len() + self.types.buffers();
        if self.types.output {
            outputs[0] = Target { at: buffers.wrapping_add((at - 1) * self.block), row: area.columns };
        }
        outputs[0].at
    }

    unsafe fn narrow(&self, isa: Isa, area: Area, from: *const f32, (to, row): (*mut u16, usize)) {
        if !self.types.output {
            return;
        }
        let (rows, columns) = runs(area, row);
        for r in 0..rows {
            // SAFETY: the buffer holds the block, and the output has room for it.
            unsafe { narrow(isa, self.types.halves, from.add(r * columns), to.wrapping_add(r * row), columns) };
        }
    }
}

// Rows and columns of a block; rows without gaps are one.
fn runs(area: Area, row: usize) -> (usize, usize) {
    if row == area.columns { (1, area.rows * area.columns) } else { (area.rows, area.columns) }
}

// SAFETY: `n` numbers can be read and written.
unsafe fn widen(isa: Isa, halves: Halves, from: *const u16, to: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        dispatch!(isa, <S>(halves: Halves, from: *const u16, to: *mut f32, n: usize) {
            let mut i = 0;
            while i < n {
                let count = (n - i).min(S::N);
                let x = match halves {
                    Halves::Bf16 => S::load_brains(from.add(i).cast::<Brain>(), count),
                    Halves::F16 => S::load_halves(from.add(i).cast::<Half>(), count),
                };
                put(x, to, i, n - i);
                i += S::N;
            }
        })
    }
}

// SAFETY: `n` numbers can be read and written.
unsafe fn narrow(isa: Isa, halves: Halves, from: *const f32, to: *mut u16, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        dispatch!(isa, <S>(halves: Halves, from: *const f32, to: *mut u16, n: usize) {
            let mut i = 0;
            while i < n {
                let (x, count) = (take::<S>(from, i, n - i), (n - i).min(S::N));
                match halves {
                    Halves::Bf16 => x.store_brains(to.add(i).cast::<Brain>(), count),
                    Halves::F16 => x.store_halves(to.add(i).cast::<Half>(), count),
                }
                i += S::N;
            }
        })
    }
}

struct Arrays {
    from: [*const f32; MANY],
    to: [*mut f32; MANY],
}

// SAFETY: they stand for slices that the caller of `run` holds; threads write disjoint blocks.
unsafe impl Sync for Arrays {}
