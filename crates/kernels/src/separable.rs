//! A depthwise convolution in one go with the pointwise ones before and behind it, or a pool behind it: each thread makes some
//! rows of what lies between in its scratch and goes on with them while they are in its cache.

use crate::epilogue::SplitEpilogue;
use crate::gemm::Micro;
use crate::gemm::panels::Panels;
use crate::gemm::region::{Product, TileEpilogue};
use crate::{ConvShape, Depthwise, Epilogue, Exec, Gemm, Isa, PoolKind, PoolShape, SharedMut, SpatialPool, part_of};
use std::ops::Range;

/// Floats of rows that a thread keeps between two convolutions.
const STRIP: usize = 48 * 1024;
/// Input rows of a part of the work from which it is worth to begin anew in its middle, so that another thread may take it.
const LONG: usize = 24;

/// What comes behind the depthwise convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    Nothing,
    /// A pointwise convolution to so many channels.
    Mixed(usize),
    /// The largest numbers of windows of so many rows and columns that touch each other.
    Pooled([usize; 2]),
}

/// Two or three convolutions, or one or two and a pool.
#[derive(Debug)]
pub struct Separable {
    isa: Isa,
    micro: &'static Micro,
    spread: Option<Gemm>,
    depthwise: Depthwise,
    mixed: Option<Gemm>,
    pooled: Option<SpatialPool>,
    shape: ConvShape,
    /// Height and width of the output, and rows of the depthwise convolution under one of its rows.
    out: [usize; 2],
    tall: usize,
    /// Output rows of an image that are computed at once, and parts that its rows are shared out in.
    rows: usize,
    parts: usize,
}

/// What one of the convolutions is given.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Packed by its own kernel.
    pub weights: &'a [f32],
    pub epilogue: &'a Epilogue<'a>,
}

impl Separable {
    /// Whether the depthwise convolution can be one of them: that of flat images.
    pub fn fits(shape: &ConvShape) -> bool {
        Depthwise::fits(shape) && shape.in_spatial[0] == 1 && shape.kernel[0] == 1
    }

    /// `shape` is that of the depthwise convolution. Its input is made of `in_channels` by a pointwise convolution where they are
    /// given.
    pub fn new(isa: Isa, threads: usize, shape: ConvShape, in_channels: Option<usize>, behind: Behind) -> Separable {
        assert!(Separable::fits(&shape), "not a flat depthwise convolution: {shape:?}");
        let (threads, channels) = (threads.max(1), shape.in_channels);
        let [_, between, across] = shape.out_spatial();
        let (tall, wide) = if let Behind::Pooled([tall, wide]) = behind { (tall, wide) } else { (1, 1) };
        assert!(tall > 0 && wide > 0, "windows of {tall} by {wide} pixels");
        let (height, width) = (between / tall, across / wide);
        // Floats that one more output row takes, in the larger of both places.
        let spread = in_channels.map_or(0, |_| tall * shape.stride[1] * shape.in_spatial[2] * channels);
        let kept = if behind == Behind::Nothing { 0 } else { tall * across * channels };
        let most = (STRIP / spread.max(kept).max(1)).max(1);
        // Pairs of rows share what they load.
        let most = if most > 1 { most / 2 * 2 } else { 1 };
        let (rows, parts) = match in_channels {
            // As many strips for each thread, any of which another may take.
            None => {
                let strips = height.div_ceil(most).next_multiple_of(threads).clamp(1, height.max(1));
                let rows = height.div_ceil(strips);
                let rows = if rows > 1 { rows.next_multiple_of(2) } else { 1 };
                (rows, height.div_ceil(rows).max(1))
            }
            // Strips of a part share input rows.
            Some(_) => {
                let parts = if height * tall >= 2 * LONG * threads { 2 * threads } else { threads.min(height).max(1) };
                (most.min(height.div_ceil(parts)).max(1), parts)
            }
        };
        Separable {
            isa,
            micro: Micro::of(isa),
            spread: in_channels.map(|from| Gemm::new(isa, channels, from)),
            depthwise: Depthwise::new(isa, threads, shape),
            mixed: if let Behind::Mixed(to) = behind { Some(Gemm::new(isa, to, channels)) } else { None },
            pooled: (tall * wide > 1).then(|| {
                let (batch, window) = (shape.batch, [1, tall, wide]);
                let (in_spatial, out_spatial) = ([1, between, across], [1, height, width]);
                let (kernel, stride, dilation, pad_begin) = (window, window, [1; 3], [0; 3]);
                let shape = PoolShape { batch, channels, in_spatial, out_spatial, kernel, stride, dilation, pad_begin };
                SpatialPool::new(isa, threads, shape, PoolKind::Max)
            }),
            shape,
            out: [height, width],
            tall,
            rows,
            parts,
        }
    }
    /// The pointwise convolution before the depthwise one.
    pub fn spread(&self) -> Option<&Gemm> {
        self.spread.as_ref()
    }
    pub fn depthwise(&self) -> &Depthwise {
        &self.depthwise
    }
    /// The pointwise convolution behind the depthwise one.
    pub fn mixed(&self) -> Option<&Gemm> {
        self.mixed.as_ref()
    }
    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        let between = self.rows * self.tall * self.shape.out_spatial()[2] * self.shape.in_channels;
        self.spread_floats() + if self.mixed.is_some() || self.pooled.is_some() { between } else { 0 }
    }
    fn spread_floats(&self) -> usize {
        let s = &self.shape;
        let rows = (self.rows * self.tall - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
        self.spread.map_or(0, |_| rows * s.in_spatial[2] * s.in_channels)
    }

    /// The stages are those of the convolution before, of the depthwise one and of the one behind; a pool is none. The epilogues of the
    /// first two are a bias and a function. `in_stride` and `out_stride` are floats from pixel to pixel.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        (input, in_stride): (&[f32], usize),
        [before, depthwise, behind]: [Option<Stage<'_>>; 3],
        (out, out_stride): (&mut [f32], usize),
    ) {
        let s = &self.shape;
        let [height, width] = self.out;
        let [_, conv_height, conv_width] = s.out_spatial();
        let [_, in_height, in_width] = s.in_spatial;
        let channels = s.in_channels;
        let (ins, outs) = (self.spread.map_or(channels, |g| g.k()), self.mixed.map_or(channels, |g| g.n()));
        let (in_pixels, pixels) = (s.batch * in_height * in_width, s.batch * height * width);
        if pixels * outs == 0 {
            return;
        }
        assert!(in_stride >= ins && input.len() + in_stride >= in_pixels * in_stride + ins, "input of {s:?}");
        assert!(out_stride >= outs && out.len() + out_stride >= pixels * out_stride + outs, "output of {s:?}");
        let given = depthwise.unwrap_or_else(|| panic!("no weights of the depthwise convolution"));
        let mut epilogue = SplitEpilogue::new(given.epilogue);
        epilogue.in_registers = true;
        let plain = |e: &Epilogue<'_>| e.add.is_none() && e.finish.is_none();
        assert!(plain(given.epilogue), "{:?} behind {s:?}", given.epilogue);
        epilogue.check(s.batch * conv_height * conv_width, channels);
        let job = self.depthwise.job(given.weights, epilogue);
        let out = SharedMut::new(out);
        // What both products have in common.
        let product = |gemm: &Option<Gemm>, stage: &Option<Stage<'_>>| {
            let (gemm, stage) = (gemm.as_ref()?, stage.as_ref()?);
            assert_eq!(stage.weights.len(), gemm.packed_floats(), "packed weights");
            Some((Panels::new(self.micro, gemm.n()), gemm.k(), SharedConst(stage.weights.as_ptr())))
        };
        let (spreads, mixes) = (product(&self.spread, &before), product(&self.mixed, &behind));
        assert!(
            spreads.is_some() == self.spread.is_some() && mixes.is_some() == self.mixed.is_some(),
            "stages of {s:?}"
        );
        let none = Epilogue::default();
        let spread_end = before.as_ref().map_or(&none, |stage| stage.epilogue);
        assert!(plain(spread_end), "{spread_end:?} before {s:?}");
        let spread_end = TileEpilogue::new(self.isa, spread_end, 1.0, 0, channels);
        let mixed_end = behind.as_ref().map_or(&none, |stage| stage.epilogue);
        let mixed_end = TileEpilogue::new(self.isa, mixed_end, 1.0, pixels, outs);
        exec.each(s.batch * self.parts, |chunk, thread| {
            let (image, part) = (chunk / self.parts, chunk % self.parts);
            let part = match self.spread {
                Some(_) => part_of(height, self.parts, part),
                None => (part * self.rows).min(height)..((part + 1) * self.rows).min(height),
            };
            let mut scratch = exec.scratch.of(thread);
            let (near, between) = scratch.split_at_mut(self.spread_floats());
            let mut held = 0..0;
            for row in part.clone().step_by(self.rows) {
                let strip = row..(row + self.rows).min(part.end);
                let rows = image * height + strip.start..image * height + strip.end;
                let strip = strip.start * self.tall..strip.end * self.tall;
                let mut from = (input, 0, in_stride);
                if let Some((panels, k, weights)) = spreads {
                    let under = self.depthwise.under(strip.start).start..self.depthwise.under(strip.end - 1).end;
                    assert!(near.len() >= under.len() * in_width * channels, "room for rows {under:?}");
                    let fresh = keep(near, &held, &under, in_width * channels);
                    let first = (image * in_height + fresh.start) * in_width;
                    let product = Product {
                        micro: self.micro,
                        panels,
                        k,
                        a: input.as_ptr().wrapping_add(first * in_stride),
                        lda: in_stride,
                        b: weights.get(),
                        c: near.as_mut_ptr().wrapping_add((fresh.start - under.start) * in_width * channels),
                        ldc: channels,
                        tile_epilogue: spread_end,
                        first_row: 0,
                        first_column: 0,
                        all_columns: channels,
                        stop: exec.stop,
                    };
                    // SAFETY: the input was checked above, and there is room for the rows under a strip.
                    unsafe { product.run(0..fresh.len() * in_width, 0..panels.count(), None, thread) };
                    held = under;
                    from = (&*near, image * in_height + held.start, channels);
                }
                let conv_rows = image * conv_height + strip.start..image * conv_height + strip.end;
                if mixes.is_none() && self.pooled.is_none() {
                    self.depthwise.rows_into(&job, conv_rows, from, (out, 0, out_stride));
                    continue;
                }
                let between = &mut between[..strip.len() * conv_width * channels];
                let first = conv_rows.start;
                self.depthwise.rows_into(&job, conv_rows, from, (SharedMut::new(between), first, channels));
                if let Some(pool) = &self.pooled {
                    pool.rows_into((exec, thread), rows.clone(), (between, first, channels), (out, out_stride));
                }
                let Some((panels, k, weights)) = mixes else { continue };
                let (pixel, count) = (rows.start * width, rows.len() * width);
                let product = Product {
                    micro: self.micro,
                    panels,
                    k,
                    a: between.as_ptr(),
                    lda: k,
                    b: weights.get(),
                    c: out.as_ptr().wrapping_add(pixel * out_stride),
                    ldc: out_stride,
                    tile_epilogue: mixed_end,
                    first_row: pixel,
                    first_column: 0,
                    all_columns: outs,
                    stop: exec.stop,
                };
                // SAFETY: the slices were checked above; this thread alone writes these rows.
                unsafe { product.run(0..count, 0..panels.count(), None, thread) };
            }
        });
    }
}

/// Moves those of the rows `held` to the front that are among the `wanted`, and gives the ones that are still to be made.
fn keep(near: &mut [f32], held: &Range<usize>, wanted: &Range<usize>, row: usize) -> Range<usize> {
    if !held.contains(&wanted.start) {
        return wanted.clone();
    }
    let end = held.end.min(wanted.end);
    let first = wanted.start - held.start;
    near.copy_within(first * row..(end - held.start) * row, 0);
    end..wanted.end
}

#[derive(Clone, Copy)]
struct SharedConst(*const f32);
// SAFETY: it stands for a shared slice that outlives the run.
unsafe impl Sync for SharedConst {}
// SAFETY: as above.
unsafe impl Send for SharedConst {}
impl SharedConst {
    fn get(&self) -> *const f32 {
        self.0
    }
}
