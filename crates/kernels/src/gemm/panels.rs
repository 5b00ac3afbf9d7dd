//! How the columns of `B` are cut into panels.

use super::Micro;

/// Panels of `n` columns: all of the full width but the last, which is as narrow as the level allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) n: usize,
    pub(crate) width: usize,
    last: usize,
}

impl Panels {
    pub(crate) fn new(micro: &Micro, n: usize) -> Panels {
        let rest = n % micro.width;
        let last = if rest == 0 { micro.width } else { rest.next_multiple_of(micro.grain) };
        Panels { n, width: micro.width, last }
    }
    pub(crate) fn count(&self) -> usize {
        self.n.div_ceil(self.width)
    }
    /// Columns a panel has room for.
    pub(crate) fn width_of(&self, panel: usize) -> usize {
        if panel + 1 == self.count() { self.last } else { self.width }
    }
    /// Columns of `B` in the panel.
    pub(crate) fn columns(&self, panel: usize) -> usize {
        self.width.min(self.n - panel * self.width)
    }
    /// Where a panel starts when each has `k` rows.
    pub(crate) fn start(&self, panel: usize, k: usize) -> usize {
        panel * self.width * k
    }
    /// Floats of all panels.
    pub(crate) fn floats(&self, k: usize) -> usize {
        match self.count() {
            0 => 0,
            count => ((count - 1) * self.width + self.last) * k,
        }
    }
}
