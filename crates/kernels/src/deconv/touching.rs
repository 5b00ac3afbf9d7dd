//! Transposed convolution whose windows touch without an overlap, as those that double an image do: each pixel of the input gives
//! a window of the output, so each pixel of the kernel is an ordinary product. With few output channels the pixels of a row of the
//! kernel are one product together: those of a window lie one after the other.

use super::DeconvShape;
use crate::gemm::Micro;
use crate::gemm::cells;
use crate::gemm::panels::Panels;
use crate::gemm::region::{Product, TileEpilogue};
use crate::{Act, Epilogue, Exec, Isa, SharedMut, part_of};

/// Output channels that fill a panel well enough by themselves.
const WIDE: usize = 16;
/// Bytes of input that stay near while all weights pass.
const NEAR: usize = 256 << 10;

/// A transposed convolution of floats.
#[derive(Clone, Debug)]
pub struct TouchingDeconv {
    isa: Isa,
    shape: DeconvShape,
    micro: &'static Micro,
    panels: Panels,
    act: Act,
}

impl TouchingDeconv {
    /// Whether this kernel can do it.
    pub fn fits(s: &DeconvShape) -> bool {
        s.windows_touch() && s.groups == 1 && s.in_channels > 0
    }

    /// `act` is what follows the sums and the bias.
    pub fn new(isa: Isa, shape: DeconvShape, act: Act) -> TouchingDeconv {
        assert!(TouchingDeconv::fits(&shape), "windows that touch: {shape:?}");
        let micro = Micro::of(isa);
        let mut kernel = TouchingDeconv { isa, shape, micro, panels: Panels::new(micro, shape.out_channels), act };
        // Functions that are not done in registers are done to rows without gaps.
        if shape.out_channels < WIDE || TileEpilogue::new(isa, &kernel.epilogue(None), 1.0, 0, 0).has_more() {
            kernel.panels = Panels::new(micro, shape.kernel[2] * shape.out_channels);
        }
        kernel
    }

    /// Whether the pixels of a row of the kernel are one product. Then pixels of the output lie without gaps.
    pub fn is_dense(&self) -> bool {
        self.panels.n != self.shape.out_channels || self.shape.kernel[2] == 1
    }

    fn epilogue<'a>(&self, bias: Option<&'a [f32]>) -> Epilogue<'a> {
        Epilogue { bias, act: self.act, ..Epilogue::default() }
    }

    /// Pixels of a row of the kernel that are one product.
    fn together(&self) -> usize {
        self.panels.n / self.shape.out_channels.max(1)
    }

    /// Products for each row of the input.
    fn products(&self) -> usize {
        self.shape.kernel.iter().product::<usize>() / self.together().max(1)
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        self.products() * self.panels.floats(self.shape.in_channels)
    }

    /// Packs weights of `[in, out, depth, height, width]`.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (s, taps) = (&self.shape, self.shape.kernel.iter().product::<usize>());
        assert_eq!(weights.len(), s.in_channels * s.out_channels * taps, "weights of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        let (each, together) = (self.panels.floats(s.in_channels).max(1), self.together());
        for (product, packed) in packed.chunks_exact_mut(each).enumerate() {
            cells::pack(&self.panels, 1, s.in_channels, packed, |column, _, i| {
                let (x, out) = (column / s.out_channels, column % s.out_channels);
                weights[(i * s.out_channels + out) * taps + product * together + x].to_le_bytes()
            });
        }
    }

    /// `in_stride` and `out_stride` are floats from pixel to pixel; the latter is the number of channels where the kernel
    /// [`is_dense`](Self::is_dense). `bias` has a number for each channel.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        (input, in_stride): (&[f32], usize),
        packed: &[f32],
        (out, out_stride): (&mut [f32], usize),
        bias: Option<&[f32]>,
    ) {
        let s = &self.shape;
        let [depth, height, width] = s.in_spatial;
        let (lines, pixels) = (s.batch * depth * height, s.batch * s.out_spatial.iter().product::<usize>());
        if lines * width * s.out_channels == 0 {
            return;
        }
        assert!(
            in_stride >= s.in_channels && out_stride >= s.out_channels,
            "pixels overlap: {in_stride}, {out_stride}"
        );
        assert!(!self.is_dense() || s.kernel[2] == 1 || out_stride == s.out_channels, "gaps of {out_stride}");
        assert!(input.len() >= (lines * width - 1) * in_stride + s.in_channels, "input of {s:?}");
        assert!(out.len() >= (pixels - 1) * out_stride + s.out_channels, "output of {s:?}");
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let repeated = bias.map(|b| b[..s.out_channels].repeat(self.together()));
        let end = TileEpilogue::new(self.isa, &self.epilogue(repeated.as_deref()), 1.0, width, self.panels.n);
        let out = SharedMut::new(out);
        let near = (NEAR / (width * s.in_channels * size_of::<f32>())).clamp(1, lines);
        let blocks = lines.div_ceil(near).next_multiple_of(exec.threads()).min(lines);
        // Few rows are shared out by products, too.
        let parts = if blocks >= 2 * exec.threads() { 1 } else { self.products() };
        exec.each(blocks * parts, |chunk, thread| {
            let (block, part) = (part_of(lines, blocks, chunk / parts), part_of(self.products(), parts, chunk % parts));
            for matrix in part {
                exec.stop.check();
                for line in block.clone() {
                    let to = self.first_pixel(line, matrix) * out_stride;
                    let product = Product {
                        micro: self.micro,
                        panels: self.panels,
                        k: s.in_channels,
                        a: input.as_ptr().wrapping_add(line * width * in_stride),
                        lda: in_stride,
                        b: packed.as_ptr().wrapping_add(matrix * self.panels.floats(s.in_channels)),
                        c: out.as_ptr().wrapping_add(to),
                        ldc: s.kernel[2] * out_stride,
                        tile_epilogue: end,
                        first_row: 0,
                        first_column: 0,
                        all_columns: self.panels.n,
                        stop: exec.stop,
                    };
                    // SAFETY: lengths were checked above; windows touch, so no other product writes these pixels.
                    unsafe { product.run(0..width, 0..self.panels.count(), None, thread) };
                }
            }
        });
    }

    /// The first output pixel that a product makes of a row of the input.
    fn first_pixel(&self, line: usize, matrix: usize) -> usize {
        let s = &self.shape;
        let (element, [_, height, _]) = (matrix * self.together(), s.in_spatial);
        let [x, y] = [element % s.kernel[2], element / s.kernel[2] % s.kernel[1]];
        let z = element / s.kernel[2] / s.kernel[1];
        // Planes of all images follow one another.
        let (plane, row) = (line / height * s.kernel[0] + z, line % height * s.kernel[1] + y);
        (plane * s.out_spatial[1] + row) * s.out_spatial[2] + x
    }
}
