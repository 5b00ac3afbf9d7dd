//! Depthwise convolutions of bytes: each channel with its own filter, sums in integers, results as bytes again. Rows under one
//! column of the filter are woven together, four bytes of a channel beside one another, so that one instruction multiplies and
//! sums four taps of sixteen channels; a woven column serves every output that it lies under.

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
    pub scale: Vec<f32>,
    pub bias: Vec<f32>,
    pub low: f32,
    pub high: f32,
    pub zero: i32,
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
        #[cfg(target_arch = "x86_64")]
        return self.isa.avx512().is_some() && Numbers::U8I8.is_fast(self.isa);
        #[cfg(not(target_arch = "x86_64"))]
        false
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
            // Sixteen channels of a lane lie in four sums, four in each.
            let (lane, sum, quarter) = (inside / 16, inside % 16 / 4, inside % 4);
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
                let lanes = inside % 16 / 4 * BLOCK + inside / 16 * 16 + inside % 4 * 4;
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

    /// The pixel under tap `(k, kx)` of output column `x`.
    fn pixel(&self, conv: &'a DepthwiseBytes, k: usize, x: usize, kx: usize) -> &'a [u8] {
        let s = &conv.shape;
        self.at(conv, k, (x * s.stride[2] + kx * s.dilation[2]).wrapping_sub(s.pad_begin[2]))
    }

    /// A pixel of a row; bytes of zero outside.
    fn at(&self, conv: &'a DepthwiseBytes, k: usize, column: usize) -> &'a [u8] {
        match self.rows[k] {
            Some(row) if column < conv.shape.in_spatial[2] => &row[column * self.stride..],
            _ => &conv.outside,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{BLOCK, BytesEpilogue, DepthwiseBytes, Lines, TAPS};

    /// Channels that half of a register holds.
    const HALF: usize = BLOCK / 2;

    /// # Safety
    /// AVX-512 with VNNI; the lengths are as `run` checks them.
    pub(super) unsafe fn row(
        conv: &DepthwiseBytes,
        lines: &Lines<'_>,
        packed: &[i8],
        out: &mut [u8],
        stride: usize,
        epilogue: &BytesEpilogue,
    ) {
        for block in 0..conv.blocks() {
            let start = block * BLOCK;
            let channels = (conv.shape.in_channels - start).min(BLOCK);
            let weights = &packed[block * conv.shape.kernel[2] * conv.groups * TAPS * BLOCK..];
            // SAFETY: the caller's promise is passed on.
            unsafe {
                match channels <= HALF {
                    true => narrow::block(conv, lines, weights, [start, channels], epilogue, out, stride),
                    false => wide::block(conv, lines, weights, [start, channels], epilogue, out, stride),
                }
            }
        }
    }

    /// The functions over registers of one width, whose instructions are known by the names that follow.
    macro_rules! functions {
        () => {
            /// Four sums of lanes of sixteen channels; sum `j` has channels `4 j` to `4 j + 3` of each.
            type Sums = [Ints; 4];

            /// Scale, bias and limits of a block of channels.
            struct Ends {
                scale: [Floats; 4],
                bias: [Floats; 4],
                low: Floats,
                high: Floats,
                zero: Ints,
            }

            /// Channels of a row from `start` on.
            ///
            /// # Safety
            /// AVX-512 with VNNI; the lengths are as `run` checks them.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
            pub(super) unsafe fn block(
                conv: &DepthwiseBytes,
                lines: &Lines<'_>,
                weights: &[i8],
                [start, channels]: [usize; 2],
                epilogue: &BytesEpilogue,
                out: &mut [u8],
                stride: usize,
            ) {
                let mask = if channels == WIDTH { !0 } else { (1 << channels) - 1 };
                let ends = ends(epilogue, start, channels);
                let sliding = conv.shape.stride[2] == 1 && conv.shape.dilation[2] == 1 && conv.groups == 1;
                // SAFETY: the caller's promise is passed on.
                unsafe {
                    match (conv.shape.kernel[2], conv.shape.kernel[1]) {
                        (3, 3) if sliding => slide::<3, 3>(conv, lines, weights, start, mask, &ends, out, stride),
                        (3, _) if sliding => slide::<3, 0>(conv, lines, weights, start, mask, &ends, out, stride),
                        (5, _) if sliding => slide::<5, 0>(conv, lines, weights, start, mask, &ends, out, stride),
                        (_, 3) => jump::<3>(conv, lines, weights, start, mask, &ends, out, stride),
                        _ => jump::<0>(conv, lines, weights, start, mask, &ends, out, stride),
                    }
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn ends(e: &BytesEpilogue, start: usize, channels: usize) -> Ends {
                let (mut scale, mut bias) = ([[0f32; 16]; 4], [[0f32; 16]; 4]);
                for c in 0..channels {
                    let (lane, sum, quarter) = (c / 16, c % 16 / 4, c % 4);
                    scale[sum][lane * 4 + quarter] = e.scale[start + c];
                    bias[sum][lane * 4 + quarter] = e.bias[start + c];
                }
                // SAFETY: arrays of as many numbers, or more.
                let load = |a: &[f32; 16]| unsafe { loadu_ps(a.as_ptr()) };
                Ends {
                    scale: [load(&scale[0]), load(&scale[1]), load(&scale[2]), load(&scale[3])],
                    bias: [load(&bias[0]), load(&bias[1]), load(&bias[2]), load(&bias[3])],
                    low: set1_ps(e.low),
                    high: set1_ps(e.high),
                    zero: set1_epi32(e.zero),
                }
            }

            /// Up to four rows of a column, four bytes of a channel beside one another. `H` is the height of the filter where it is
            /// known beforehand, or 0.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            #[inline]
            unsafe fn woven<const H: usize>(
                conv: &DepthwiseBytes,
                lines: &Lines<'_>,
                group: usize,
                column: usize,
                start: usize,
                mask: Mask,
            ) -> Sums {
                let mut rows = [setzero(); TAPS];
                let count = if H > 0 { H } else { (conv.shape.kernel[1] - group * TAPS).min(TAPS) };
                for (k, row) in rows.iter_mut().enumerate().take(count) {
                    let pixel = lines.at(conv, group * TAPS + k, column);
                    // SAFETY: the pixel has the channels of the mask.
                    *row = unsafe { maskz_loadu_epi8(mask, pixel.as_ptr().add(start).cast()) };
                }
                let (low, high) = (unpacklo_epi8(rows[0], rows[1]), unpackhi_epi8(rows[0], rows[1]));
                let (low2, high2) = (unpacklo_epi8(rows[2], rows[3]), unpackhi_epi8(rows[2], rows[3]));
                [
                    unpacklo_epi16(low, low2),
                    unpackhi_epi16(low, low2),
                    unpacklo_epi16(high, high2),
                    unpackhi_epi16(high, high2),
                ]
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
            #[inline]
            unsafe fn add(sums: &mut Sums, woven: &Sums, weights: *const i8) {
                for j in 0..4 {
                    // SAFETY: the weights of a column follow.
                    let w = unsafe { loadu(weights.add(j * BLOCK).cast()) };
                    sums[j] = dpbusd_epi32(sums[j], woven[j], w);
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            #[inline]
            unsafe fn store(sums: &Sums, ends: &Ends, mask: Mask, to: *mut u8) {
                let mut steps = *sums;
                for j in 0..4 {
                    let x = fmadd_ps(cvtepi32_ps(sums[j]), ends.scale[j], ends.bias[j]);
                    let x = min_ps(max_ps(x, ends.low), ends.high);
                    steps[j] = add_epi32(cvtps_epi32(x), ends.zero);
                }
                let bytes = packus_epi16(packs_epi32(steps[0], steps[1]), packs_epi32(steps[2], steps[3]));
                // SAFETY: the output has the channels of the mask.
                unsafe {
                    match mask {
                        Mask::MAX => storeu(to.cast(), bytes),
                        _ => mask_storeu_epi8(to.cast(), mask, bytes),
                    }
                }
            }

            /// Windows that follow one another: each woven column is added to all outputs above it.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
            unsafe fn slide<const W: usize, const H: usize>(
                conv: &DepthwiseBytes,
                lines: &Lines<'_>,
                weights: &[i8],
                start: usize,
                mask: Mask,
                ends: &Ends,
                out: &mut [u8],
                stride: usize,
            ) {
                let columns = conv.shape.out_spatial()[2];
                let mut sums = [[setzero(); 4]; W];
                for i in 0..columns + W - 1 {
                    let column = i.wrapping_sub(conv.shape.pad_begin[2]);
                    // SAFETY: pixels, weights and outputs are there, as `run` has checked.
                    unsafe {
                        let woven = woven::<H>(conv, lines, 0, column, start, mask);
                        // The column is tap `W - 1 - j` of the j-th window that is open.
                        for j in 0..W {
                            add(&mut sums[j], &woven, weights.as_ptr().add((W - 1 - j) * TAPS * BLOCK));
                        }
                        if i + 1 >= W {
                            store(&sums[0], ends, mask, out.as_mut_ptr().add((i + 1 - W) * stride + start));
                        }
                    }
                    for j in 1..W {
                        sums[j - 1] = sums[j];
                    }
                    sums[W - 1] = [setzero(); 4];
                }
            }

            /// Windows that lie apart.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
            unsafe fn jump<const H: usize>(
                conv: &DepthwiseBytes,
                lines: &Lines<'_>,
                weights: &[i8],
                start: usize,
                mask: Mask,
                ends: &Ends,
                out: &mut [u8],
                stride: usize,
            ) {
                let s = &conv.shape;
                for x in 0..s.out_spatial()[2] {
                    let mut sums = [setzero(); 4];
                    for kx in 0..s.kernel[2] {
                        let column = (x * s.stride[2] + kx * s.dilation[2]).wrapping_sub(s.pad_begin[2]);
                        for group in 0..conv.groups {
                            // SAFETY: as above.
                            unsafe {
                                let woven = woven::<H>(conv, lines, group, column, start, mask);
                                add(&mut sums, &woven, weights.as_ptr().add((kx * conv.groups + group) * TAPS * BLOCK));
                            }
                        }
                    }
                    // SAFETY: as above.
                    unsafe { store(&sums, ends, mask, out.as_mut_ptr().add(x * stride + start)) };
                }
            }
        };
    }

    mod wide {
        use super::super::{BLOCK, BytesEpilogue, DepthwiseBytes, Lines, TAPS};
        use std::arch::x86_64::{
            __m512 as Floats, __m512i as Ints, __mmask64 as Mask, _mm512_add_epi32 as add_epi32,
            _mm512_cvtepi32_ps as cvtepi32_ps, _mm512_cvtps_epi32 as cvtps_epi32, _mm512_dpbusd_epi32 as dpbusd_epi32,
            _mm512_fmadd_ps as fmadd_ps, _mm512_loadu_ps as loadu_ps, _mm512_loadu_si512 as loadu,
            _mm512_mask_storeu_epi8 as mask_storeu_epi8, _mm512_maskz_loadu_epi8 as maskz_loadu_epi8,
            _mm512_max_ps as max_ps, _mm512_min_ps as min_ps, _mm512_packs_epi32 as packs_epi32,
            _mm512_packus_epi16 as packus_epi16, _mm512_set1_epi32 as set1_epi32, _mm512_set1_ps as set1_ps,
            _mm512_setzero_si512 as setzero, _mm512_storeu_si512 as storeu, _mm512_unpackhi_epi8 as unpackhi_epi8,
            _mm512_unpackhi_epi16 as unpackhi_epi16, _mm512_unpacklo_epi8 as unpacklo_epi8,
            _mm512_unpacklo_epi16 as unpacklo_epi16,
        };

        const WIDTH: usize = BLOCK;
        functions!();
    }

    mod narrow {
        use super::super::{BLOCK, BytesEpilogue, DepthwiseBytes, Lines, TAPS};
        use super::HALF;
        use std::arch::x86_64::{
            __m256 as Floats, __m256i as Ints, __mmask32 as Mask, _mm256_add_epi32 as add_epi32,
            _mm256_cvtepi32_ps as cvtepi32_ps, _mm256_cvtps_epi32 as cvtps_epi32, _mm256_dpbusd_epi32 as dpbusd_epi32,
            _mm256_fmadd_ps as fmadd_ps, _mm256_loadu_ps as loadu_ps, _mm256_loadu_si256 as loadu,
            _mm256_mask_storeu_epi8 as mask_storeu_epi8, _mm256_maskz_loadu_epi8 as maskz_loadu_epi8,
            _mm256_max_ps as max_ps, _mm256_min_ps as min_ps, _mm256_packs_epi32 as packs_epi32,
            _mm256_packus_epi16 as packus_epi16, _mm256_set1_epi32 as set1_epi32, _mm256_set1_ps as set1_ps,
            _mm256_setzero_si256 as setzero, _mm256_storeu_si256 as storeu, _mm256_unpackhi_epi8 as unpackhi_epi8,
            _mm256_unpackhi_epi16 as unpackhi_epi16, _mm256_unpacklo_epi8 as unpacklo_epi8,
            _mm256_unpacklo_epi16 as unpacklo_epi16,
        };

        const WIDTH: usize = HALF;
        functions!();
    }
}
