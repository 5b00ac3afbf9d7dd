//! Transposed convolution of cells (two numbers of 16 bits, or four bytes) whose windows touch without an overlap, as those that double an
//! image do: each pixel of the input gives a window of the output, whose rows lie one after the other for pixels of a row. So
//! each row of the kernel is an ordinary product, with a column for each of its pixels and channels.

use super::DeconvShape;
use crate::gemm::Micro;
use crate::gemm::cells;
use crate::gemm::leave::Leaving;
use crate::gemm::panels::Panels;
use crate::gemm::region::{Product, TileEpilogue};
use crate::{Exec, Isa, Numbers, TypedEpilogue, TypedOut, part_of};

/// Bytes of input rows that stay near while all weights pass.
const NEAR: usize = 256 << 10;

/// A transposed convolution of cells.
#[derive(Clone, Debug)]
pub struct DeconvCells {
    isa: Isa,
    numbers: Numbers,
    shape: DeconvShape,
    micro: &'static Micro,
    panels: Panels,
}

impl DeconvCells {
    /// Whether this kernel can do it.
    pub fn fits(s: &DeconvShape, numbers: Numbers) -> bool {
        s.windows_touch() && s.groups == 1 && s.in_channels > 0 && s.in_channels.is_multiple_of(numbers.per_cell())
    }

    pub fn new(isa: Isa, shape: DeconvShape, numbers: Numbers) -> DeconvCells {
        assert!(DeconvCells::fits(&shape, numbers), "windows of cells that touch: {shape:?}");
        let micro = numbers.micro(isa);
        let panels = Panels::new(micro, shape.kernel[2] * shape.out_channels);
        DeconvCells { isa, numbers, shape, micro, panels }
    }

    /// Columns of all products: pixels of the kernel, each with all channels. Epilogues have a number for each.
    pub fn columns(&self) -> usize {
        self.matrices() * self.panels.n
    }

    fn cells(&self) -> usize {
        self.shape.in_channels / self.numbers.per_cell()
    }

    /// Rows of the kernel.
    fn matrices(&self) -> usize {
        self.shape.kernel[0] * self.shape.kernel[1]
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        self.matrices() * self.panels.floats(self.cells())
    }

    /// Packs weights of `[in, out, depth, height, width]` given as bits of bf16 or f16.
    pub fn pack_halves(&self, weights: &[u16], packed: &mut [f32]) {
        assert_eq!(self.numbers.per_cell(), 2, "pairs");
        self.pack(weights.len(), packed, |at| {
            let [a, b] = [0, 1].map(|i| weights[at(i)].to_le_bytes());
            [a[0], a[1], b[0], b[1]]
        });
    }

    /// Packs weights of `[in, out, depth, height, width]`.
    pub fn pack_i8(&self, weights: &[i8], packed: &mut [f32]) {
        assert_eq!(self.numbers, Numbers::U8I8, "bytes");
        self.pack(weights.len(), packed, |at| std::array::from_fn(|i| weights[at(i)] as u8));
    }

    // `cell` gets the positions of the weights of a cell.
    fn pack(&self, len: usize, packed: &mut [f32], cell: impl Fn(&dyn Fn(usize) -> usize) -> [u8; 4]) {
        let (s, taps) = (&self.shape, self.shape.kernel.iter().product::<usize>());
        assert_eq!(len, s.in_channels * s.out_channels * taps, "weights of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        let each = self.panels.floats(self.cells()).max(1);
        for (matrix, packed) in packed.chunks_exact_mut(each).enumerate() {
            cells::pack(&self.panels, 1, self.cells(), packed, |column, _, i| {
                let (x, out) = (column / s.out_channels, column % s.out_channels);
                let first = i * self.numbers.per_cell();
                cell(&|j| ((first + j) * s.out_channels + out) * taps + matrix * s.kernel[2] + x)
            });
        }
    }

    /// Over pixels of cells without gaps. The output lies without gaps, too.
    pub fn run(&self, exec: &Exec<'_>, input: &[f32], packed: &[f32], out: TypedOut<'_>, epilogue: &TypedEpilogue<'_>) {
        let (s, cells, columns) = (&self.shape, self.cells(), self.panels.n);
        let [depth, height, width] = s.in_spatial;
        let lines = s.batch * depth * height;
        if lines * width * columns == 0 {
            return;
        }
        assert!(input.len() >= lines * width * cells, "{} cells of input", input.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let rows = lines * self.matrices() * width;
        let integer = self.numbers == Numbers::U8I8;
        let whole = Leaving::new(self.isa, integer, epilogue, out, columns, rows, columns);
        let lists = [epilogue.scale, epilogue.bias, epilogue.offset, epilogue.most];
        assert!(lists.iter().flatten().all(|l| l.len() >= self.columns()), "numbers for {} columns", self.columns());
        // SAFETY: lists have a number for each column of all matrices.
        let leaving: Vec<_> = (0..self.matrices()).map(|i| unsafe { whole.behind(i * columns) }).collect();
        // Lines stay near while weights pass, or panels of weights while all lines do.
        let near = (NEAR / (width * cells * size_of::<f32>())).clamp(1, lines);
        let blocks = lines.div_ceil(near).next_multiple_of(exec.threads()).min(lines);
        let items = self.matrices() * self.panels.count();
        let parts = if blocks >= 2 * exec.threads() { 1 } else { items };
        exec.each(blocks * parts, |chunk, thread| {
            let (block, part) = (part_of(lines, blocks, chunk / parts), part_of(items, parts, chunk % parts));
            let work = || {
                for item in part.clone() {
                    exec.stop.check();
                    let (matrix, panel) = (item / self.panels.count(), item % self.panels.count());
                    for line in block.clone() {
                        let product = self.product(&leaving[matrix], exec, input, packed, line, matrix);
                        // SAFETY: the input and the weights were checked above; chunks are rectangles of their own.
                        unsafe { product.run(0..width, panel..panel + 1, None, thread) };
                    }
                }
            };
            // SAFETY: the table is that of a level of this machine, and all that tasks point to lives on.
            unsafe { self.micro.around(work) };
        });
    }

    /// A line of input pixels times a row of the kernel.
    fn product<'a>(
        &self,
        leaving: &'a Leaving<'a>,
        exec: &Exec<'a>,
        input: &[f32],
        packed: &[f32],
        line: usize,
        matrix: usize,
    ) -> Product<'a> {
        let (s, cells) = (&self.shape, self.cells());
        let [_, height, width] = s.in_spatial;
        let (image, y) = (line / height, line % height);
        // Lines of the output, counted in windows.
        let (kz, ky) = (matrix / s.kernel[1], matrix % s.kernel[1]);
        let to = ((image * s.kernel[0] + kz) * height + y) * s.kernel[1] + ky;
        Product {
            micro: self.micro,
            panels: self.panels,
            k: cells,
            a: input[line * width * cells..].as_ptr(),
            lda: cells,
            b: packed[matrix * self.panels.floats(cells)..].as_ptr(),
            c: std::ptr::null_mut(),
            ldc: self.panels.n,
            tile_epilogue: TileEpilogue::leaving(self.isa, leaving),
            first_row: to * width,
            first_column: 0,
            all_columns: self.panels.n,
            stop: exec.stop,
        }
    }
}
