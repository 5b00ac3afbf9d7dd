//! How products are cut up: the tile of a group, the part of it that an item makes, and into how many parts the sums are cut.
//! The choice is by sizes and by the kind of device, so the same machine chooses the same.

use carafe_opencl::{DeviceInfo, DeviceKind};

/// Rows, columns and depth of a tile, and who works on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Rows and columns of an item; of tensor cores, the warps along rows and columns.
    pub(crate) by: [usize; 2],
    /// Tiles that are in local memory at a time where copies run ahead.
    pub(crate) stages: usize,
    /// Nanoseconds that a group alone takes for one depth, and those that a group takes of a busy unit; seen on an H200.
    cost: [usize; 2],
}

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Items, with loads through registers.
    Plain,
    /// Items, with copies that run ahead (`cp.async`).
    Ahead,
    /// Tensor cores.
    Tensor,
}

const fn tile(m: usize, n: usize, k: usize, by: [usize; 2], stages: usize, cost: [usize; 2]) -> Tile {
    Tile { m, n, k, by, stages, cost }
}

const LARGE: &[Tile] = &[
    tile(64, 128, 16, [8, 8], 3, [908, 736]),
    tile(128, 64, 16, [8, 8], 3, [908, 736]),
    tile(64, 64, 16, [8, 4], 4, [622, 405]),
    tile(64, 32, 32, [4, 4], 3, [684, 494]),
    tile(32, 64, 32, [4, 4], 3, [684, 494]),
    tile(32, 32, 32, [4, 4], 3, [622, 272]),
];
const TENSOR: &[Tile] = &[
    tile(128, 128, 32, [2, 2], 3, [566, 405]),
    tile(64, 128, 32, [2, 2], 3, [469, 223]),
    tile(64, 64, 64, [2, 2], 3, [566, 223]),
    tile(32, 64, 64, [1, 2], 3, [515, 182]),
    tile(32, 32, 64, [2, 2], 4, [353, 135]),
];
/// For devices that were not measured.
const MIDDLE: &[Tile] = &[tile(64, 64, 16, [8, 4], 2, [622, 405]), tile(32, 32, 16, [4, 4], 2, [622, 272])];
/// For the host's own processors, and where groups are small.
const SMALL: &[Tile] = &[tile(32, 32, 16, [4, 4], 2, [622, 272])];

/// What a launch costs, and what joining parts does besides, in nanoseconds.
const LAUNCH: usize = 5_000;
const JOIN: usize = 10_000;
/// Depths until a group is at full speed.
const FILL: usize = 3;
/// Least depth of a part.
const LEAST_DEPTH: usize = 64;

impl Tile {
    /// Items of a group.
    pub(crate) fn items(&self, method: Method) -> usize {
        match method {
            Method::Tensor => 32 * self.by[0] * self.by[1],
            _ => (self.m / self.by[0]) * (self.n / self.by[1]),
        }
    }
    /// Bytes of local memory.
    fn local_bytes(&self, method: Method) -> usize {
        match method {
            Method::Tensor => 2 * self.stages * (self.m + self.n) * self.k,
            Method::Ahead => 4 * self.stages * (self.m * (self.k + 4) + self.n * self.k),
            Method::Plain => 4 * 2 * (self.m * (self.k + 4) + self.n * self.k),
        }
    }
    fn cost(&self, size: [usize; 3], batch: usize, splits: usize, units: usize) -> usize {
        let [m, n, k] = size;
        let groups = m.div_ceil(self.m) * n.div_ceil(self.n) * batch * splits;
        let depths = k.div_ceil(splits).div_ceil(self.k) + FILL;
        let each = self.cost[0].max(self.cost[1].saturating_mul(groups.div_ceil(units)));
        // Parts are written and read again: so many elements go through memory in a microsecond.
        let join = if splits > 1 { JOIN + splits * m * n * batch / 250 } else { 0 };
        LAUNCH + depths.saturating_mul(each) + join
    }
}

/// A tile, and into how many parts sums are cut.
pub(crate) type Way = (Tile, usize);

/// The ways to compute products of `m x n x k`, the one that seems the quickest first. There is at least one.
pub(crate) fn ranked(info: &DeviceInfo, method: Method, size: [usize; 3], batch: usize) -> Vec<Way> {
    let host = info.kind == DeviceKind::Cpu;
    let tiles = match method {
        Method::Tensor => TENSOR,
        _ if host || info.group_size < 128 => SMALL,
        Method::Ahead => LARGE,
        Method::Plain if info.vendor.contains("NVIDIA") => LARGE,
        Method::Plain => MIDDLE,
    };
    let units = info.compute_units.max(1);
    let splits: &[usize] = if host { &[1, 2] } else { &[1, 2, 4, 8, 16] };
    let fits = |t: &&Tile| t.items(method) <= info.group_size && t.local_bytes(method) <= info.local_memory;
    let deep = |s: usize| s == 1 || size[2] / s >= LEAST_DEPTH;
    let all = tiles.iter().filter(fits).flat_map(|t| splits.iter().filter(|s| deep(**s)).map(move |&s| (*t, s)));
    let mut all: Vec<Way> = all.collect();
    carafe_graph::sort_by_key(&mut all, |(t, s)| t.cost(size, batch, *s, units));
    if all.is_empty() {
        all.push((SMALL[0], 1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_cut_into_whole_reads() {
        for t in LARGE.iter().chain(MIDDLE).chain(SMALL) {
            let items = t.items(Method::Plain);
            assert!((t.m * t.k / 4).is_multiple_of(items) && (t.n * t.k / 4).is_multiple_of(items), "{t:?}");
            assert!(t.local_bytes(Method::Ahead) <= 48 << 10, "{t:?}");
        }
        for t in TENSOR {
            let items = t.items(Method::Tensor);
            assert!((t.m * t.k / 8).is_multiple_of(items) && (t.n * t.k / 8).is_multiple_of(items), "{t:?}");
            assert!(t.local_bytes(Method::Tensor) <= 48 << 10, "{t:?}");
        }
    }

    #[test]
    fn few_rows_over_long_sums_are_cut_into_parts() {
        let cost = |splits| LARGE[5].cost([49, 512, 4608], 1, splits, 132);
        assert!(cost(8) < cost(1));
    }
}
