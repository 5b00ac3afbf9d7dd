//! A depthwise convolution and the pointwise one behind it, in one go: each thread computes some rows of the first into its
//! scratch and multiplies them while they are in its cache.

use crate::epilogue::{Quick, SplitEpilogue};
use crate::gemm::Micro;
use crate::gemm::panels::Panels;
use crate::gemm::region::{Product, TileEpilogue};
use crate::{Act, ConvShape, Depthwise, Epilogue, Exec, Gemm, Isa, SharedMut};

/// Floats of intermediate rows that a thread keeps.
const STRIP: usize = 48 * 1024;

/// Both convolutions.
#[derive(Debug)]
pub struct Separable {
    isa: Isa,
    micro: &'static Micro,
    first: Depthwise,
    second: Gemm,
    panels: Panels,
    shape: ConvShape,
    /// Rows of an image that are computed at once.
    rows: usize,
}

impl Separable {
    /// `shape` is that of the depthwise convolution, whose channels become `out_channels`.
    pub fn new(isa: Isa, threads: usize, shape: ConvShape, out_channels: usize) -> Separable {
        let micro = Micro::of(isa);
        let [_, height, width] = shape.out_spatial();
        let most = (STRIP / (width * shape.in_channels).max(1)).max(1);
        // Pairs of rows share what they load.
        let most = if most > 1 { most / 2 * 2 } else { 1 };
        // As many strips for each thread.
        let strips = height.div_ceil(most).next_multiple_of(threads.max(1)).clamp(1, height.max(1));
        let rows = height.div_ceil(strips);
        let rows = if rows > 1 { rows.next_multiple_of(2) } else { 1 };
        Separable {
            isa,
            micro,
            first: Depthwise::new(isa, threads, shape),
            second: Gemm::new(isa, out_channels, shape.in_channels),
            panels: Panels::new(micro, out_channels),
            shape,
            rows,
        }
    }
    /// Whether the function can stand between the two.
    pub fn does(act: Act) -> bool {
        Quick::of(act).is_some()
    }
    pub fn depthwise(&self) -> &Depthwise {
        &self.first
    }
    pub fn pointwise(&self) -> &Gemm {
        &self.second
    }
    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        self.rows * self.shape.out_spatial()[2] * self.shape.in_channels
    }

    /// `weights` are those of the depthwise and of the pointwise convolution, each packed by its own kernel. What is `between`
    /// may be a bias and a function that [`Separable::does`].
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        weights: [&[f32]; 2],
        between: &Epilogue<'_>,
        out: &mut [f32],
        epilogue: &Epilogue<'_>,
    ) {
        let s = &self.shape;
        let [depth, height, width] = s.out_spatial();
        let (k, n) = (s.in_channels, self.second.n());
        let pixels = s.batch * depth * height * width;
        assert_eq!(out.len(), pixels * n, "output of {s:?}");
        assert_eq!(weights[1].len(), self.second.packed_floats(), "packed weights");
        if pixels * n == 0 {
            return;
        }
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, pixels, n);
        let epilogue = SplitEpilogue::new(between);
        assert!(!epilogue.has_rest(), "{between:?} between");
        epilogue.check(pixels, k);
        let job = self.first.job(input, weights[0], epilogue);
        let strips = height.div_ceil(self.rows);
        let out = SharedMut::new(out);
        let b = SharedConst(weights[1].as_ptr());
        exec.each(s.batch * depth * strips, |chunk, thread| {
            let (plane, strip) = (chunk / strips, chunk % strips);
            let rows = strip * self.rows..((strip + 1) * self.rows).min(height);
            let rows = plane * height + rows.start..plane * height + rows.end;
            let mut scratch = exec.scratch.of(thread);
            let (pixel, count) = (rows.start * width, rows.len() * width);
            let between = &mut scratch[..count * k];
            self.first.rows_into(&job, rows, SharedMut::new(between));
            let product = Product {
                micro: self.micro,
                panels: self.panels,
                k,
                a: between.as_ptr(),
                lda: k,
                b: b.get(),
                c: out.as_ptr().wrapping_add(pixel * n),
                ldc: n,
                tile_epilogue,
                first_row: pixel,
                first_column: 0,
                all_columns: n,
                stop: exec.stop,
            };
            // SAFETY: the slices were checked above; this thread alone writes these rows.
            unsafe { product.run(0..count, 0..self.panels.count(), None, thread) };
        });
    }
}

#[derive(Clone, Copy)]
struct SharedConst(*const f32);
// SAFETY: it stands for a shared slice that outlives the run.
unsafe impl Sync for SharedConst {}
impl SharedConst {
    fn get(&self) -> *const f32 {
        self.0
    }
}
