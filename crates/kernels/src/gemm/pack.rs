//! Packing `B` into panels: copied where its rows lie in memory, transposed in squares of 16 where its columns do.

use crate::Isa;
use crate::simd::{Block, Simd, dispatch};

/// One panel from a matrix with `k` rows of which this panel takes `columns`; `b` points to the first of them.
///
/// # Safety
/// `b` holds `k` rows `ldb` apart, `out` holds `k * width`, and `isa` is a level of this machine.
pub(crate) unsafe fn rows(b: *const f32, ldb: usize, k: usize, columns: usize, out: *mut f32, width: usize) {
    for i in 0..k {
        // SAFETY: inside both, as the caller promises.
        unsafe {
            let (from, to) = (b.add(i * ldb), out.add(i * width));
            if columns == 32 && width == 32 {
                *to.cast::<[f32; 32]>() = *from.cast::<[f32; 32]>();
            } else {
                std::ptr::copy_nonoverlapping(from, to, columns);
                std::ptr::write_bytes(to.add(columns), 0, width - columns);
            }
        }
    }
}

/// One panel from a matrix that lies transposed: `columns` runs of `k` numbers, `ldb` apart. Number `e` of every run goes to
/// row `(e % inner) * outer + e / inner` of the panel; plain matrices have `inner` 1.
///
/// # Safety
/// As for [`rows`], with `b` holding `columns` runs and `inner * outer == k`.
pub(crate) unsafe fn columns(
    isa: Isa,
    b: *const f32,
    ldb: usize,
    k: usize,
    columns: usize,
    inner: usize,
    out: *mut f32,
    width: usize,
) {
    debug_assert!(inner > 0);
    let outer = k / inner;
    let mut from = 0;
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() {
        // SAFETY: the level was asked for; the sizes are the caller's promise.
        unsafe {
            for start in (0..width).step_by(16) {
                let (runs, lanes) = (columns.saturating_sub(start).min(16), (width - start).min(16));
                avx512::transpose(
                    b.wrapping_add(start.min(columns) * ldb),
                    ldb,
                    k,
                    [runs, lanes],
                    inner,
                    outer,
                    out.add(start),
                    width,
                );
            }
        }
        return;
    }
    if inner == 1 {
        // SAFETY: the sizes are the caller's promise.
        unsafe {
            dispatch!(isa, <S>(b: *const f32, ldb: usize, k: usize, columns: usize, out: *mut f32, width: usize) {
                transpose::<S>(b, ldb, k, columns, out, width)
            })
        }
        return;
    }
    while from < k {
        let to = (from + 16).min(k);
        for e in from..to {
            let row = (e % inner) * outer + e / inner;
            // SAFETY: inside both, as the caller promises.
            unsafe {
                let line = out.add(row * width);
                for j in 0..columns {
                    *line.add(j) = *b.add(j * ldb + e);
                }
                for j in columns..width {
                    *line.add(j) = 0.0;
                }
            }
        }
        from = to;
    }
}

/// `columns` runs of `k` numbers into rows of `width`, the rest of which is 0.
#[inline(always)]
unsafe fn transpose<S: Simd>(b: *const f32, ldb: usize, k: usize, columns: usize, out: *mut f32, width: usize) {
    for e in (0..k).step_by(S::N) {
        let count = (k - e).min(S::N);
        for j in (0..columns).step_by(S::N) {
            let rows = (columns - j).min(S::N);
            // SAFETY: the block lies within the runs and the rows that the caller promises.
            unsafe {
                S::transpose(Block {
                    from: b.add(j * ldb + e),
                    from_stride: ldb,
                    to: out.add(e * width + j),
                    to_stride: width,
                    rows,
                    width: count,
                    to_width: rows,
                });
            }
        }
        for row in e..e + count {
            // SAFETY: the end of a row.
            unsafe { std::ptr::write_bytes(out.add(row * width + columns), 0, width - columns) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    /// Up to 16 runs of `k` numbers into a column of vectors of as many lanes, `width` floats apart, rows ordered as [`super::columns`] says.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn transpose(
        b: *const f32,
        ldb: usize,
        k: usize,
        [runs, lanes]: [usize; 2],
        inner: usize,
        outer: usize,
        out: *mut f32,
        width: usize,
    ) {
        // Where the next number goes: it walks `inner` steps of `outer` rows, then starts one row further down.
        let (mut at, mut step) = (0, 0);
        let mut e = 0;
        while e < k {
            let count = (k - e).min(16);
            let mask = ((1u32 << count) - 1) as u16;
            let stored = ((1u32 << lanes) - 1) as u16;
            let mut v = [_mm512_setzero_ps(); 16];
            // SAFETY: `runs` runs of `k` numbers may be read, and only they are; `out` holds `k` rows.
            unsafe {
                if runs == 16 && count == 16 {
                    for j in 0..16 {
                        v[j] = _mm512_loadu_ps(b.add(j * ldb + e));
                    }
                } else {
                    for j in 0..16 {
                        if j < runs {
                            v[j] = _mm512_maskz_loadu_ps(mask, b.add(j * ldb + e));
                        }
                    }
                }
                square(&mut v);
                if inner == 1 && count == 16 && lanes == 16 {
                    for j in 0..16 {
                        _mm512_storeu_ps(out.add((e + j) * width), v[j]);
                    }
                    at += 16;
                } else {
                    for x in v.iter().take(count) {
                        _mm512_mask_storeu_ps(out.add(at * width), stored, *x);
                        step += 1;
                        at += outer;
                        if step == inner {
                            step = 0;
                            at = at + 1 - inner * outer;
                        }
                    }
                }
            }
            e += count;
        }
    }

    /// Transposes 16 vectors of 16.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    pub(crate) fn square(v: &mut [__m512; 16]) {
        let mut t = [_mm512_setzero_ps(); 16];
        for i in 0..8 {
            t[2 * i] = _mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]);
        }
        let pd = |x| _mm512_castps_pd(x);
        let ps = |x| _mm512_castpd_ps(x);
        for i in 0..4 {
            v[4 * i] = ps(_mm512_unpacklo_pd(pd(t[4 * i]), pd(t[4 * i + 2])));
            v[4 * i + 1] = ps(_mm512_unpackhi_pd(pd(t[4 * i]), pd(t[4 * i + 2])));
            v[4 * i + 2] = ps(_mm512_unpacklo_pd(pd(t[4 * i + 1]), pd(t[4 * i + 3])));
            v[4 * i + 3] = ps(_mm512_unpackhi_pd(pd(t[4 * i + 1]), pd(t[4 * i + 3])));
        }
        for i in 0..4 {
            t[i] = _mm512_shuffle_f32x4::<0x88>(v[i], v[i + 4]);
            t[i + 4] = _mm512_shuffle_f32x4::<0xdd>(v[i], v[i + 4]);
            t[i + 8] = _mm512_shuffle_f32x4::<0x88>(v[i + 8], v[i + 12]);
            t[i + 12] = _mm512_shuffle_f32x4::<0xdd>(v[i + 8], v[i + 12]);
        }
        for i in 0..4 {
            v[i] = _mm512_shuffle_f32x4::<0x88>(t[i], t[i + 8]);
            v[i + 8] = _mm512_shuffle_f32x4::<0xdd>(t[i], t[i + 8]);
            v[i + 4] = _mm512_shuffle_f32x4::<0x88>(t[i + 4], t[i + 12]);
            v[i + 12] = _mm512_shuffle_f32x4::<0xdd>(t[i + 4], t[i + 12]);
        }
    }
}
