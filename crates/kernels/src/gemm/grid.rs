//! How a product is shared out: rows and panels are first cut among the threads, evenly, then each thread's part in a few
//! pieces that others may take over when it is held up.

use super::Micro;
use super::region::{MANY, STRIP};
use crate::part_of;
use std::ops::Range;

/// Parts of rows times parts of panels. Chunks of one thread follow one another, those of the same rows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    rows: Cut,
    panels: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    threads: usize,
    pieces: usize,
}

/// A product as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Rows of the product.
    pub(crate) m: usize,
    /// What rows are handed out in: single ones, or whole rows of an image.
    pub(crate) units: usize,
    pub(crate) panels: usize,
    pub(crate) k: usize,
    /// Whether rows are copied before they are multiplied, or worked on when they are whole: then all panels of some rows rather
    /// stay together.
    pub(crate) copied: bool,
}

/// Products below this many multiplications stay on one thread.
const ALONE: usize = 32 * 1024;
/// Floats of weights that are large.
const LARGE: usize = 256 * 1024;
/// Pieces of a thread.
const PIECES: usize = 4;

impl Grid {
    pub(crate) fn new(micro: &Micro, threads: usize, size: Size) -> Grid {
        let (m, units, panels) = (size.m.max(1), size.units.max(1), size.panels.max(1));
        let weights = panels * micro.width * size.k;
        if threads == 1 || m * panels * micro.width * size.k < ALONE {
            return Grid { rows: Cut::ONE, panels: Cut::ONE };
        }
        let tiles = m.div_ceil(micro.rows);
        // Each thread reads its part of large weights once, rather than all of them, where that costs less than the rows do.
        let large = micro.resumes && units == m && weights >= LARGE && panels * micro.width > m;
        // Tile registers multiply faster than weights come from far away, of which there are more than rows here.
        let waiting = micro.has_tiles() && panels >= 2 * threads && panels * micro.width > m;
        let by_panels = panels >= threads
            && (tiles < 2 * threads
                || (large && panels >= 2 * PIECES * threads)
                || waiting
                || waste(units, threads) > waste(panels, threads) + 4);
        let rows = if by_panels { 1 } else { threads.min(tiles).min(units) };
        let columns = (threads / rows).min(panels);
        let (row_pieces, panel_pieces) = if by_panels {
            // Every piece copies all rows.
            (1, if size.copied { PIECES / 2 } else { PIECES })
        } else if weights <= STRIP || size.copied {
            // Weights that the cache holds cost nothing to read again, and others little with many rows.
            let tiles = tiles / rows / if weights <= STRIP { 1 } else { MANY };
            let pieces = tiles.clamp(1, PIECES);
            (pieces, PIECES / pieces)
        } else {
            (1, PIECES)
        };
        Grid { rows: Cut::new(units, rows, row_pieces), panels: Cut::new(panels, columns, panel_pieces) }
    }

    pub(crate) fn chunks(&self) -> usize {
        self.rows.count() * self.panels.count()
    }

    /// Units and panels of a chunk.
    pub(crate) fn part(&self, chunk: usize, units: usize, panels: usize) -> (Range<usize>, Range<usize>) {
        let (piece, thread) = (chunk % (self.rows.pieces * self.panels.pieces), chunk / self.rows.pieces);
        let thread = thread / self.panels.pieces;
        (
            self.rows.part(units, thread / self.panels.threads, piece / self.panels.pieces),
            self.panels.part(panels, thread % self.panels.threads, piece % self.panels.pieces),
        )
    }
}

impl Cut {
    const ONE: Cut = Cut { threads: 1, pieces: 1 };

    fn new(total: usize, threads: usize, pieces: usize) -> Cut {
        Cut { threads, pieces: pieces.min(total / threads).max(1) }
    }
    fn count(&self) -> usize {
        self.threads * self.pieces
    }
    fn part(&self, total: usize, thread: usize, piece: usize) -> Range<usize> {
        let mine = part_of(total, self.threads, thread);
        let piece = part_of(mine.len(), self.pieces, piece);
        mine.start + piece.start..mine.start + piece.end
    }
}

/// How much of the time of `threads` is lost when they share `total` things, in percent.
fn waste(total: usize, threads: usize) -> usize {
    let even = total.next_multiple_of(threads);
    (even - total) * 100 / even
}
