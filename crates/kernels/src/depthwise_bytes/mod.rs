//! Depthwise convolutions of bytes: each channel with its own filter, sums in integers, results as bytes again. Rows under one
//! column of the filter are woven together, four bytes of a channel beside one another, so that one instruction multiplies and
//! sums four taps of sixteen channels; a woven column serves every output that it lies under.

#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::conv::ConvShape;
use crate::{Exec, Isa, Numbers, Quantizer, SharedMut, part_of};

/// Channels that are taken together.
const BLOCK: usize = 64;
/// Taps of a channel in one multiplication.
const TAPS: usize = 4;
/// Most columns of a filter.
const MOST_COLUMNS: usize = 7;

/// A depthwise convolution of channels-last images of bytes.
#[derive(Clone, Debug)]
pub struct DepthwiseBytes {
    isa: Isa,
    shape: ConvShape,
    /// Multiplications of a column of the filter.
    groups: usize,
    /// A pixel outside of the image.
    outside: Vec<u8>,
}

/// What happens to the sums: `sum * scale + bias` of the channel counts steps, is kept between `low` and `high`, rounded, and `zero`
/// is added.
#[derive(Clone, Debug)]
pub struct BytesEpilogue {
    scale: Vec<f32>,
    bias: Vec<f32>,
    low: f32,
    high: f32,
    zero: i32,
    /// Scales and biases of each block of channels, as its sums lie.
    ends: Vec<[[f32; BLOCK]; 2]>,
}

impl BytesEpilogue {
    /// Of a scale and a bias a channel.
    pub fn new(scale: Vec<f32>, bias: Vec<f32>, [low, high]: [f32; 2], zero: i32) -> BytesEpilogue {
        assert_eq!(scale.len(), bias.len(), "a scale and a bias a channel");
        let mut ends = vec![[[0.0; BLOCK]; 2]; scale.len().div_ceil(BLOCK)];
        for (which, list) in [&scale, &bias].into_iter().enumerate() {
            for (c, x) in list.iter().enumerate() {
                let [lane, sum, quarter] = position(c % BLOCK);
                ends[c / BLOCK][which][sum * 16 + lane * 4 + quarter] = *x;
            }
        }
        BytesEpilogue { scale, bias, low, high, zero, ends }
    }
}

/// Where a channel of a block is: sixteen channels of a lane lie in four sums, four in each.
fn position(channel: usize) -> [usize; 3] {
    [channel / 16, channel % 16 / 4, channel % 4]
}

impl DepthwiseBytes {
    /// `None` for what it does not do: more than one filter a channel, volumes, wide filters.
    pub fn new(isa: Isa, shape: ConvShape, zero: u8) -> Option<DepthwiseBytes> {
        shape.check();
        let depthwise = shape.groups == shape.in_channels && shape.groups == shape.out_channels;
        let flat = shape.in_spatial[0] == 1 && shape.kernel[0] == 1;
        if !depthwise || !flat || shape.kernel[2] > MOST_COLUMNS || shape.kernel[1] > 2 * TAPS {
            return None;
        }
        let outside = vec![zero; shape.in_channels.next_multiple_of(BLOCK)];
        Some(DepthwiseBytes { isa, shape, groups: shape.kernel[1].div_ceil(TAPS), outside })
    }

    /// Whether it is faster than a convolution of floats: only AVX-512 has it in vectors.
    pub fn is_fast(&self) -> bool {
        self.isa.is_avx512() && Numbers::U8I8.is_fast(self.isa)
    }

    fn blocks(&self) -> usize {
        self.shape.in_channels.div_ceil(BLOCK)
    }

    /// Bytes of the packed weights.
    pub fn packed_bytes(&self) -> usize {
        self.blocks() * self.shape.kernel[2] * self.groups * TAPS * BLOCK
    }

    /// Packs weights of `[channels][height][width]`.
    pub fn pack(&self, weights: &[i8], packed: &mut [i8]) {
        let [_, height, width] = self.shape.kernel;
        let channels = self.shape.in_channels;
        assert!(weights.len() >= channels * height * width, "{} weights", weights.len());
        assert!(packed.len() >= self.packed_bytes(), "{} bytes for packed weights", packed.len());
        packed.fill(0);
        for channel in 0..channels {
            let (block, inside) = (channel / BLOCK, channel % BLOCK);
            let [lane, sum, quarter] = position(inside);
            for y in 0..height {
                for x in 0..width {
                    let at = ((block * width + x) * self.groups + y / TAPS) * TAPS * BLOCK;
                    let at = at + sum * BLOCK + lane * 16 + quarter * 4 + y % TAPS;
                    packed[at] = weights[(channel * height + y) * width + x];
                }
            }
        }
    }

    /// Convolves; pixels are `in_stride` and `out_stride` bytes apart.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        (input, in_stride): (&[u8], usize),
        packed: &[i8],
        (out, out_stride): (&mut [u8], usize),
        epilogue: &BytesEpilogue,
    ) {
        let s = &self.shape;
        let (channels, pixels) = (s.in_channels, s.out_pixels());
        if pixels == 0 || channels == 0 {
            return;
        }
        assert!(in_stride >= channels && out_stride >= channels, "pixels overlap");
        assert!(input.len() >= (s.in_pixels().max(1) - 1) * in_stride + channels, "{} bytes of input", input.len());
        assert!(out.len() >= (pixels - 1) * out_stride + channels, "{} bytes for {pixels} pixels", out.len());
        assert!(packed.len() >= self.packed_bytes(), "{} bytes of packed weights", packed.len());
        assert!(epilogue.scale.len() >= channels && epilogue.bias.len() >= channels, "numbers for {channels} channels");
        let [_, out_h, out_w] = s.out_spatial();
        let rows = s.batch * out_h;
        let parts = (exec.threads() * 4).min(rows);
        let out = SharedMut::new(out);
        exec.each(parts, |part, _| {
            for row in part_of(rows, parts, part) {
                let lines = Lines::new(self, input, in_stride, row / out_h, row % out_h);
                let start = row * out_w * out_stride;
                // SAFETY: rows of the output are disjoint.
                let to = unsafe { out.part(start..start + (out_w - 1) * out_stride + channels) };
                self.row(&lines, packed, (to, out_stride), epilogue);
            }
        });
    }

    fn row(&self, lines: &Lines<'_>, packed: &[i8], out: (&mut [u8], usize), epilogue: &BytesEpilogue) {
        #[cfg(target_arch = "x86_64")]
        if self.is_fast() {
            // SAFETY: the instructions were detected, and `run` has checked the lengths.
            return unsafe { avx512::row(self, lines, packed, out.0, out.1, epilogue) };
        }
        self.plain_row(lines, packed, out, epilogue);
    }

    // One number at a time, from the same packed weights.
    fn plain_row(&self, lines: &Lines<'_>, packed: &[i8], (out, stride): (&mut [u8], usize), epilogue: &BytesEpilogue) {
        let [_, height, width] = self.shape.kernel;
        for x in 0..self.shape.out_spatial()[2] {
            for channel in 0..self.shape.in_channels {
                let (block, inside) = (channel / BLOCK, channel % BLOCK);
                let [lane, sum, quarter] = position(inside);
                let lanes = sum * BLOCK + lane * 16 + quarter * 4;
                let mut sum = 0i32;
                for kx in 0..width {
                    for y in 0..height {
                        let weights = ((block * width + kx) * self.groups + y / TAPS) * TAPS * BLOCK;
                        let w = packed[weights + lanes + y % TAPS];
                        sum += i32::from(lines.pixel(self, y, x, kx)[channel]) * i32::from(w);
                    }
                }
                let steps = (sum as f32).mul_add(epilogue.scale[channel], epilogue.bias[channel]);
                let (low, high) = (epilogue.low, epilogue.high);
                out[x * stride + channel] = (Quantizer::rounded_within(steps, low, high) as i32 + epilogue.zero) as u8;
            }
        }
    }
}

/// The rows of the input under a row of the output.
struct Lines<'a> {
    /// Pixels of a row; `None` outside of the image.
    rows: [Option<&'a [u8]>; 2 * TAPS],
    stride: usize,
}

impl<'a> Lines<'a> {
    fn new(conv: &DepthwiseBytes, input: &'a [u8], stride: usize, image: usize, y: usize) -> Lines<'a> {
        let s = &conv.shape;
        let [_, in_h, in_w] = s.in_spatial;
        let mut rows = [None; 2 * TAPS];
        for (k, row) in rows.iter_mut().enumerate().take(s.kernel[1]) {
            let at = (y * s.stride[1] + k * s.dilation[1]).wrapping_sub(s.pad_begin[1]);
            *row = (at < in_h && in_w > 0).then(|| {
                let start = (image * in_h + at) * in_w * stride;
                &input[start..start + (in_w - 1) * stride + s.in_channels]
            });
        }
        Lines { rows, stride }
    }

    /// The pixel under tap `(k, kx)` of output column `x`; bytes of zero outside.
    fn pixel(&self, conv: &'a DepthwiseBytes, k: usize, x: usize, kx: usize) -> &'a [u8] {
        let s = &conv.shape;
        let column = (x * s.stride[2] + kx * s.dilation[2]).wrapping_sub(s.pad_begin[2]);
        match self.rows[k] {
            Some(row) if column < s.in_spatial[2] => &row[column * self.stride..],
            _ => &conv.outside,
        }
    }
}
