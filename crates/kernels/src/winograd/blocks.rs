//! How tiles are cut into blocks that stay in cache, and where the numbers of a block lie.

use super::transform::Grid;
use crate::ConvShape;

impl Grid {
    /// Tiles of `size` by `size` outputs.
    pub(super) fn new(shape: &ConvShape, size: usize) -> Grid {
        let [_, height, width] = shape.out_spatial();
        Grid {
            size: [shape.in_spatial[1], shape.in_spatial[2]],
            pad: [shape.pad_begin[1], shape.pad_begin[2]],
            out: [height, width],
            tiles: [height.div_ceil(size), width.div_ceil(size)],
        }
    }
}

/// The blocks of one convolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub(super) tiles: usize,
    pub(super) count: usize,
    /// Most tiles in a block.
    pub(super) most: usize,
    /// Parts that the output channels are cut in, each for one thread.
    pub(super) parts: usize,
}

impl Blocks {
    /// For products of at most `rows` tiles with `panels` of weights.
    pub(super) fn new(tiles: usize, rows: usize, bytes: usize, panels: usize, threads: usize) -> Blocks {
        // The larger the weights, the more tiles should share one pass over them.
        let most = rows
            * if bytes < 2 << 20 {
                1
            } else if bytes < 12 << 20 {
                2
            } else {
                4
            };
        let (parts, count) = if tiles < 2 * rows * threads && panels >= threads {
            // So few tiles that every thread takes them all and makes its own output channels.
            (threads, tiles.div_ceil(most))
        } else {
            (1, tiles.div_ceil(most).next_multiple_of(threads).min(tiles.max(1)))
        };
        Blocks { tiles, count, most: tiles.div_ceil(count.max(1)), parts }
    }
}

/// Floats from matrix to matrix; an odd number of cache lines, so that they do not compete for the same ones.
pub(super) fn matrix_step(floats: usize) -> usize {
    (floats.div_ceil(16) | 1) * 16
}
