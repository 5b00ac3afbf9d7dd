//! LRN over the last axis: each element is divided by a power of the summed squares around it.

use crate::eltwise::pieces;
use crate::simd::dispatch;
use crate::vmath::functions as f;
use crate::{Exec, Isa, SharedMut, part_of};

/// Channels of which squares are held at once, besides those of the window.
const TILE: usize = 512;
/// Squares that are held.
const HELD: usize = 1024;

/// `x / (bias + alpha / size * sum of squares in the window) ^ beta`. An even `size` reaches as far as the odd one below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    rows: usize,
    channels: usize,
    size: usize,
    alpha: f32,
    beta: f32,
    bias: f32,
}

impl Lrn {
    /// Panics when the window is empty or wider than 513.
    pub fn new(rows: usize, channels: usize, size: usize, alpha: f32, beta: f32, bias: f32) -> Lrn {
        assert!((1..=513).contains(&size), "a window of {size}");
        Lrn { rows, channels, size, alpha, beta, bias }
    }

    pub fn run(&self, exec: &Exec<'_>, x: &[f32], out: &mut [f32]) {
        let Lrn { rows, channels, size, .. } = *self;
        assert_eq!(x.len(), rows * channels, "the input");
        assert_eq!(x.len(), out.len(), "the output");
        if x.is_empty() {
            return;
        }
        let chunks = pieces(exec, x.len() * (20 + size)).min(rows);
        let to = SharedMut::new(out);
        exec.each(chunks, |chunk, _| {
            for row in part_of(rows, chunks, chunk) {
                let at = row * channels..(row + 1) * channels;
                // SAFETY: chunks have rows of their own.
                self.row(exec.isa, &x[at.clone()], unsafe { to.part(at) });
            }
        });
    }

    fn row(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        let reach = (self.size - 1) / 2;
        for start in (0..x.len()).step_by(TILE) {
            let n = TILE.min(x.len() - start);
            // Squares from `reach` before the tile to `reach` after it, 0 outside of the row.
            let mut squares = [0.0f32; HELD + 16];
            let (from, to) = (start.saturating_sub(reach), x.len().min(start + n + reach));
            for (square, &x) in squares[reach + from - start..].iter_mut().zip(&x[from..to]) {
                *square = x * x;
            }
            let (tile, out) = (&x[start..start + n], &mut out[start..start + n]);
            let (lrn, squares, x, out) = (*self, squares.as_ptr(), tile.as_ptr(), out.as_mut_ptr());
            // SAFETY: a tile, twice the reach and one vector fit into what is held; `dispatch!` checks the machine.
            unsafe {
                dispatch!(isa, <S>(lrn: Lrn, squares: *const f32, x: *const f32, out: *mut f32, n: usize) {
                    let window = (lrn.size - 1) / 2 * 2 + 1;
                    let (alpha, bias) = (S::splat(lrn.alpha / lrn.size as f32), S::splat(lrn.bias));
                    let mut i = 0;
                    while i < n {
                        let lanes = S::N.min(n - i);
                        let mut sum = S::load(squares.add(i));
                        for k in 1..window {
                            sum = sum + S::load(squares.add(i + k));
                        }
                        let base = alpha.fma(sum, bias);
                        let factor = if lrn.beta == 0.75 {
                            // Two roots instead of a logarithm.
                            let root = base.sqrt();
                            S::splat(1.0) / (root * root.sqrt())
                        } else if lrn.beta == 0.5 {
                            S::splat(1.0) / base.sqrt()
                        } else {
                            f::pow(base, S::splat(-lrn.beta))
                        };
                        (S::load_partial(x.add(i), lanes) * factor).store_partial(out.add(i), lanes);
                        i += lanes;
                    }
                })
            }
        }
    }
}
