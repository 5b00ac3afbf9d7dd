//! Rows of a block of channels by VNNI, in registers of 64 channels or of 32.

use super::{BLOCK, BytesEpilogue, DepthwiseBytes, Lines, TAPS};

/// Channels that half of a register holds.
const HALF: usize = BLOCK / 2;
/// Channels of a lane.
const LANE: usize = 16;

/// A row of the input from the first channel of a block on.
#[derive(Clone, Copy)]
struct Line {
    at: *const u8,
    /// Bytes from column to column; 0 outside of the image.
    step: usize,
}

/// A row of the output, a block of its channels.
struct Job<'a> {
    conv: &'a DepthwiseBytes,
    lines: [Line; 2 * TAPS],
    /// A pixel beside the image.
    outside: *const u8,
    channels: usize,
    weights: *const i8,
    ends: &'a [[f32; BLOCK]; 2],
    epilogue: &'a BytesEpilogue,
    to: *mut u8,
    stride: usize,
}

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
        let outside = conv.outside[start..].as_ptr();
        let job = Job {
            conv,
            lines: lines.rows.map(|row| match row {
                Some(row) => Line { at: row[start..].as_ptr(), step: lines.stride },
                None => Line { at: outside, step: 0 },
            }),
            outside,
            channels: (conv.shape.in_channels - start).min(BLOCK),
            weights: packed[block * conv.shape.kernel[2] * conv.groups * TAPS * BLOCK..].as_ptr(),
            ends: &epilogue.ends[block],
            epilogue,
            to: out[start..].as_mut_ptr(),
            stride,
        };
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match job.channels {
                BLOCK => wide::block::<true>(&job),
                HALF => narrow::block::<true>(&job),
                0..HALF => narrow::block::<false>(&job),
                _ => wide::block::<false>(&job),
            }
        }
    }
}

/// The functions over registers of one width, whose instructions are known by the names that follow. With `FULL` all channels
/// are there.
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
            mask: Mask,
            channels: usize,
        }

        /// # Safety
        /// AVX-512 with VNNI; all of the job is there.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
        pub(super) unsafe fn block<const FULL: bool>(job: &Job<'_>) {
            let s = &job.conv.shape;
            let ends = ends(job);
            let sliding = s.stride[2] == 1 && s.dilation[2] == 1 && job.conv.groups == 1;
            let halved = s.stride[2] == 2 && s.dilation[2] == 1 && job.conv.groups == 1;
            // SAFETY: the caller's promise is passed on.
            unsafe {
                match (s.kernel[2], s.kernel[1]) {
                    (3, 3) if sliding => slide::<3, 3, FULL>(job, &ends),
                    (3, _) if sliding => slide::<3, 0, FULL>(job, &ends),
                    (5, _) if sliding => slide::<5, 0, FULL>(job, &ends),
                    (3, 3) if halved => skip::<FULL>(job, &ends),
                    _ => jump::<FULL>(job, &ends),
                }
            }
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn ends(job: &Job<'_>) -> Ends {
            let e = job.epilogue;
            // SAFETY: four sums of sixteen numbers.
            let load = |list: &[f32; BLOCK], sum: usize| unsafe { loadu_ps(list.as_ptr().add(sum * LANE)) };
            let all = |list: &[f32; BLOCK]| [load(list, 0), load(list, 1), load(list, 2), load(list, 3)];
            Ends {
                scale: all(&job.ends[0]),
                bias: all(&job.ends[1]),
                low: set1_ps(e.low),
                high: set1_ps(e.high),
                zero: set1_epi32(e.zero),
                mask: if job.channels == WIDTH { !0 } else { (1 << job.channels) - 1 },
                channels: job.channels,
            }
        }

        /// Up to four rows of a column, four bytes of a channel beside one another. `H` is the height of the filter where it is
        /// known beforehand, or 0.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        #[inline]
        unsafe fn woven<const H: usize, const FULL: bool>(
            job: &Job<'_>,
            ends: &Ends,
            group: usize,
            column: usize,
        ) -> Sums {
            let mut rows = [setzero(); TAPS];
            let inside = column < job.conv.shape.in_spatial[2];
            let count = if H > 0 { H } else { (job.conv.shape.kernel[1] - group * TAPS).min(TAPS) };
            for k in 0..count {
                let line = &job.lines[group * TAPS + k];
                let pixel = if inside { line.at.wrapping_add(column * line.step) } else { job.outside };
                // SAFETY: the pixel has the channels of the mask.
                rows[k] = unsafe { if FULL { loadu(pixel.cast()) } else { maskz_loadu_epi8(ends.mask, pixel.cast()) } };
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
        unsafe fn store<const FULL: bool>(sums: &Sums, ends: &Ends, to: *mut u8) {
            let mut steps = *sums;
            for j in 0..4 {
                let x = fmadd_ps(cvtepi32_ps(sums[j]), ends.scale[j], ends.bias[j]);
                let x = min_ps(max_ps(x, ends.low), ends.high);
                steps[j] = add_epi32(cvtps_epi32(x), ends.zero);
            }
            let bytes = packus_epi16(packs_epi32(steps[0], steps[1]), packs_epi32(steps[2], steps[3]));
            // SAFETY: the output has the channels of the mask.
            unsafe {
                match (FULL, ends.channels) {
                    (true, _) => storeu(to.cast(), bytes),
                    // Stores of some bytes take many times as long.
                    (_, LANE) => _mm_storeu_si128(to.cast(), first_lane(bytes)),
                    _ => mask_storeu_epi8(to.cast(), ends.mask, bytes),
                }
            }
        }

        /// Windows that follow one another: each woven column is added to all outputs above it.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
        unsafe fn slide<const W: usize, const H: usize, const FULL: bool>(job: &Job<'_>, ends: &Ends) {
            let columns = job.conv.shape.out_spatial()[2];
            let mut sums = [[setzero(); 4]; W];
            for i in 0..columns + W - 1 {
                let column = i.wrapping_sub(job.conv.shape.pad_begin[2]);
                // SAFETY: pixels, weights and outputs are there, as `run` has checked.
                unsafe {
                    let woven = woven::<H, FULL>(job, ends, 0, column);
                    // The column is tap `W - 1 - j` of the j-th window that is open.
                    for j in 0..W {
                        add(&mut sums[j], &woven, job.weights.add((W - 1 - j) * TAPS * BLOCK));
                    }
                    if i + 1 >= W {
                        store::<FULL>(&sums[0], ends, job.to.add((i + 1 - W) * job.stride));
                    }
                }
                for j in 1..W {
                    sums[j - 1] = sums[j];
                }
                sums[W - 1] = [setzero(); 4];
            }
        }

        /// Windows of 3 by 3 that lie two columns apart: the last column of one is the first of the next.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
        unsafe fn skip<const FULL: bool>(job: &Job<'_>, ends: &Ends) {
            let s = &job.conv.shape;
            // SAFETY: as above.
            unsafe {
                let mut last = woven::<3, FULL>(job, ends, 0, 0usize.wrapping_sub(s.pad_begin[2]));
                for x in 0..s.out_spatial()[2] {
                    let column = (2 * x).wrapping_sub(s.pad_begin[2]);
                    let mut sums = [setzero(); 4];
                    add(&mut sums, &last, job.weights);
                    add(
                        &mut sums,
                        &woven::<3, FULL>(job, ends, 0, column.wrapping_add(1)),
                        job.weights.add(TAPS * BLOCK),
                    );
                    last = woven::<3, FULL>(job, ends, 0, column.wrapping_add(2));
                    add(&mut sums, &last, job.weights.add(2 * TAPS * BLOCK));
                    store::<FULL>(&sums, ends, job.to.add(x * job.stride));
                }
            }
        }

        /// Windows that lie apart.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
        unsafe fn jump<const FULL: bool>(job: &Job<'_>, ends: &Ends) {
            let s = &job.conv.shape;
            for x in 0..s.out_spatial()[2] {
                let mut sums = [setzero(); 4];
                for kx in 0..s.kernel[2] {
                    let column = (x * s.stride[2] + kx * s.dilation[2]).wrapping_sub(s.pad_begin[2]);
                    for group in 0..job.conv.groups {
                        // SAFETY: as above.
                        unsafe {
                            let woven = woven::<0, FULL>(job, ends, group, column);
                            add(&mut sums, &woven, job.weights.add((kx * job.conv.groups + group) * TAPS * BLOCK));
                        }
                    }
                }
                // SAFETY: as above.
                unsafe { store::<FULL>(&sums, ends, job.to.add(x * job.stride)) };
            }
        }
    };
}

mod wide {
    use super::super::{BLOCK, TAPS};
    use super::{Job, LANE};
    use std::arch::x86_64::{
        __m512 as Floats, __m512i as Ints, __mmask64 as Mask, _mm_storeu_si128, _mm512_add_epi32 as add_epi32,
        _mm512_castsi512_si128 as first_lane, _mm512_cvtepi32_ps as cvtepi32_ps, _mm512_cvtps_epi32 as cvtps_epi32,
        _mm512_dpbusd_epi32 as dpbusd_epi32, _mm512_fmadd_ps as fmadd_ps, _mm512_loadu_ps as loadu_ps,
        _mm512_loadu_si512 as loadu, _mm512_mask_storeu_epi8 as mask_storeu_epi8,
        _mm512_maskz_loadu_epi8 as maskz_loadu_epi8, _mm512_max_ps as max_ps, _mm512_min_ps as min_ps,
        _mm512_packs_epi32 as packs_epi32, _mm512_packus_epi16 as packus_epi16, _mm512_set1_epi32 as set1_epi32,
        _mm512_set1_ps as set1_ps, _mm512_setzero_si512 as setzero, _mm512_storeu_si512 as storeu,
        _mm512_unpackhi_epi8 as unpackhi_epi8, _mm512_unpackhi_epi16 as unpackhi_epi16,
        _mm512_unpacklo_epi8 as unpacklo_epi8, _mm512_unpacklo_epi16 as unpacklo_epi16,
    };

    const WIDTH: usize = BLOCK;
    functions!();
}

mod narrow {
    use super::super::{BLOCK, TAPS};
    use super::{HALF, Job, LANE};
    use std::arch::x86_64::{
        __m256 as Floats, __m256i as Ints, __mmask32 as Mask, _mm_storeu_si128, _mm256_add_epi32 as add_epi32,
        _mm256_castsi256_si128 as first_lane, _mm256_cvtepi32_ps as cvtepi32_ps, _mm256_cvtps_epi32 as cvtps_epi32,
        _mm256_dpbusd_epi32 as dpbusd_epi32, _mm256_fmadd_ps as fmadd_ps, _mm256_loadu_ps as loadu_ps,
        _mm256_loadu_si256 as loadu, _mm256_mask_storeu_epi8 as mask_storeu_epi8,
        _mm256_maskz_loadu_epi8 as maskz_loadu_epi8, _mm256_max_ps as max_ps, _mm256_min_ps as min_ps,
        _mm256_packs_epi32 as packs_epi32, _mm256_packus_epi16 as packus_epi16, _mm256_set1_epi32 as set1_epi32,
        _mm256_set1_ps as set1_ps, _mm256_setzero_si256 as setzero, _mm256_storeu_si256 as storeu,
        _mm256_unpackhi_epi8 as unpackhi_epi8, _mm256_unpackhi_epi16 as unpackhi_epi16,
        _mm256_unpacklo_epi8 as unpacklo_epi8, _mm256_unpacklo_epi16 as unpacklo_epi16,
    };

    const WIDTH: usize = HALF;
    functions!();
}
