//! One tile of a step: a few rows of the batch by one panel of units. The product with the state and the functions of the
//! gates stay in registers. A single row goes through all its panels in one call: reading the weights is all that matters
//! then, so it fetches those of the next panels while it computes gates.

use super::CellKind;
use super::cells::{Cell, Gru, GruGates, GruNew, Lstm, Rnn};
use crate::cast::Brain;
use crate::simd::{Cell as Cells, Entry, Kernel, Native, Shifted, Simd, dispatch, entry, prefetch};
use crate::{Act, Isa, Numbers};
use std::marker::PhantomData;
use std::ops::Range;

/// Most rows of a tile.
pub(super) const ROWS: usize = 6;

/// One row of the batch in a step.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Products with the input and the bias, gate by gate.
    pub x: *const f32,
    /// What the panel is multiplied with.
    pub factor: *const f32,
    pub h: *const f32,
    pub c: *mut f32,
    pub next: *mut f32,
    /// Null for none.
    pub y: *mut f32,
    /// The row has ended: its state stays.
    pub ended: bool,
    /// What the update gate is scaled with.
    pub update: f32,
    /// Of a GRU that resets first: the update gate and the state after the reset.
    pub z: *mut f32,
    pub reset: *mut f32,
    /// In bf16, what the next product of the state, and of the state after the reset, is multiplied with; null in f32.
    pub next_pairs: *mut Brain,
    pub reset_pairs: *mut Brain,
}

/// A tile.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub rows: &'a [Row],
    /// All panels of the product.
    pub panels: *const f32,
    /// Floats and units of a panel.
    pub floats: usize,
    pub units: usize,
    pub hidden: usize,
    pub new_bias: *const f32,
    /// Null for none.
    pub peepholes: *const f32,
    pub settings: &'a Settings,
}

/// What all tiles of a run have in common.
pub(super) struct Settings {
    pub isa: Isa,
    pub kind: CellKind,
    pub acts: [Act; 3],
    pub clip: f32,
    /// The usual functions and nothing else.
    pub usual: bool,
}

/// Computes one panel.
pub(super) type TileFn = for<'a> unsafe fn((&'a Tile<'a>, usize));

/// Computes several panels for the first row alone, the last one first if so wanted.
pub(super) type StripFn = for<'a> unsafe fn((&'a Tile<'a>, Range<usize>, bool));

/// Ends a panel whose products, of so many rows, were stored.
pub(super) type EndFn = for<'a> unsafe fn((&'a Tile<'a>, usize, usize, *const f32));

/// The functions of a stage.
pub(super) struct Functions {
    /// By rows, less one.
    pub tiles: &'static [TileFn],
    pub strip: StripFn,
    pub end: EndFn,
    /// Vectors of products of a row.
    pub vectors: usize,
}

/// One panel times the states of a few rows, in cells of pairs.
pub(super) struct Pairs {
    /// The states; the kernel reads as many as it has rows.
    pub factors: [*const f32; ROWS],
    pub panel: *const f32,
    /// Cells of a state.
    pub cells: usize,
    pub products: *mut f32,
}

/// Stores the products.
pub(super) type PairsFn = Entry<Pairs>;

/// Functions for tiles of so many vectors, by rows, less one.
pub(super) fn pair_products(isa: Isa, vectors: usize) -> [PairsFn; ROWS] {
    match (Numbers::Bf16.is_native(isa), vectors) {
        (true, 3) => products_of::<Native, 3>(isa),
        (true, _) => products_of::<Native, 4>(isa),
        (false, 3) => products_of::<Shifted, 3>(isa),
        (false, _) => products_of::<Shifted, 4>(isa),
    }
}

/// What a tile computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Rnn,
    Gru,
    /// Update and reset gate of a GRU that resets first.
    GruGates,
    /// Its new value.
    GruNew,
    Lstm,
}

/// The functions of a level.
pub(super) fn functions(isa: Isa, stage: Stage) -> Functions {
    // SAFETY: tables are looked up and nothing is run.
    unsafe { dispatch!(isa, <V>(stage: Stage) -> Functions { of_level::<V>(stage) }) }
}

fn of_level<V: Simd>(stage: Stage) -> Functions {
    match stage {
        Stage::Rnn => Table::<V, Rnn, 4>::FUNCTIONS,
        Stage::Gru => Table::<V, Gru, 3>::FUNCTIONS,
        Stage::GruGates => Table::<V, GruGates, 4>::FUNCTIONS,
        Stage::GruNew => Table::<V, GruNew, 4>::FUNCTIONS,
        Stage::Lstm => Table::<V, Lstm, 4>::FUNCTIONS,
    }
}

/// `M` rows of a cell with `C` vectors of products.
struct Rows<K, const C: usize, const M: usize>(PhantomData<K>);
/// The gates of a tile, once for all heights.
struct End<K, const C: usize>(PhantomData<K>);
/// Panels of one row.
struct Strip<K, const C: usize>(PhantomData<K>);

impl<K: Cell<C>, const C: usize, const M: usize> Kernel for Rows<K, C, M> {
    type Args<'a> = (&'a Tile<'a>, usize);
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>((t, panel): (&Tile<'_>, usize)) {
        // SAFETY: the caller gives a tile inside of its data.
        unsafe { tile_of::<V, K, C, M>(t, panel) }
    }
}

impl<K: Cell<C>, const C: usize> Kernel for End<K, C> {
    /// The tile, the panel, the rows, and for each of them `C` vectors of products.
    type Args<'a> = (&'a Tile<'a>, usize, usize, *const f32);
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>((t, panel, rows, products): (&Tile<'_>, usize, usize, *const f32)) {
        for i in 0..rows {
            // SAFETY: the caller gives rows and a panel inside of its data, and products of this level.
            unsafe { K::end::<V>(t, &t.rows[i], panel * t.units, V::load_many(products.add(i * C * V::N))) }
        }
    }
}

impl<K: Cell<C>, const C: usize> Kernel for Strip<K, C> {
    type Args<'a> = (&'a Tile<'a>, Range<usize>, bool);
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>((t, panels, back): (&Tile<'_>, Range<usize>, bool)) {
        // SAFETY: the caller gives panels inside of its data.
        unsafe { strip_of::<V, K, C>(t, panels, back) }
    }
}

struct Table<V, K, const C: usize>(PhantomData<(V, K)>);

impl<V: Simd, K: Cell<C>, const C: usize> Table<V, K, C> {
    const FUNCTIONS: Functions =
        Functions { tiles: Self::TILES, strip: V::call::<Strip<K, C>>, end: V::call::<End<K, C>>, vectors: C };
    const TILES: &[TileFn] = match V::REGISTERS >= 32 {
        true => &[
            V::call::<Rows<K, C, 1>>,
            V::call::<Rows<K, C, 2>>,
            V::call::<Rows<K, C, 3>>,
            V::call::<Rows<K, C, 4>>,
            V::call::<Rows<K, C, 5>>,
            V::call::<Rows<K, C, 6>>,
        ],
        false => &[V::call::<Rows<K, C, 1>>, V::call::<Rows<K, C, 2>>],
    };
}

#[inline(always)]
unsafe fn tile_of<V: Simd, K: Cell<C>, const C: usize, const M: usize>(t: &Tile, panel: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let products = product::<V, M, C>(t, panel);
        V::call::<End<K, C>>((t, panel, M, products.as_ptr().cast()));
    }
}

/// Panels of a strip whose gates are computed together, so that one does not wait for the other.
const BLOCK: usize = 4;
/// Cache lines of the next panel to fetch for each of them.
const AHEAD: usize = 40;

#[inline(always)]
unsafe fn strip_of<V: Simd, K: Cell<C>, const C: usize>(t: &Tile, panels: Range<usize>, back: bool) {
    // SAFETY: the caller's promise. Fetching ahead never faults.
    unsafe {
        let count = panels.len();
        let position = |i: usize| if back { panels.end - 1 - i } else { panels.start + i };
        let mut products = [[V::splat(0.0); C]; BLOCK];
        let (mut first, x) = (0, t.rows[0].x);
        while first < count {
            let n = BLOCK.min(count - first);
            for i in 0..n {
                for gate in K::GATES {
                    for vector in 0..C / K::GATES.len() {
                        prefetch(x.wrapping_add(gate * t.hidden + position(first + i) * t.units + vector * V::N));
                    }
                }
            }
            for i in 0..n {
                products[i] = product::<V, 1, C>(t, position(first + i))[0];
            }
            // The next step begins where this one ends.
            let next = t.panels.wrapping_add(position((first + n).min(count - 1)) * t.floats);
            for i in 0..n {
                for line in i * AHEAD..(i + 1) * AHEAD {
                    prefetch(next.wrapping_add(line * 16));
                }
                K::end(t, &t.rows[0], position(first + i) * t.units, products[i]);
            }
            first += n;
        }
    }
}

/// The panel times what each row brings. One row alone is summed in two halves, or each sum would wait for the last.
#[inline(always)]
unsafe fn product<V: Simd, const M: usize, const C: usize>(t: &Tile, panel: usize) -> [[V; C]; M] {
    // SAFETY: the panel has `hidden` runs of `C` vectors, each factor `hidden` floats.
    unsafe {
        let mut acc = [[V::splat(0.0); C]; M];
        let mut other = [[V::splat(0.0); C]; M];
        let mut from = [std::ptr::null(); M];
        for i in 0..M {
            from[i] = t.rows[i].factor;
        }
        let mut panel = t.panels.add(panel * t.floats);
        let mut k = 0;
        while k + 2 <= t.hidden {
            let w: [V; C] = V::load_many(panel);
            for i in 0..M {
                let x = V::splat(*from[i].add(k));
                for j in 0..C {
                    acc[i][j] = x.mul_add(w[j], acc[i][j]);
                }
            }
            let w: [V; C] = V::load_many(panel.add(C * V::N));
            for i in 0..M {
                let x = V::splat(*from[i].add(k + 1));
                for j in 0..C {
                    if M == 1 {
                        other[i][j] = x.mul_add(w[j], other[i][j]);
                    } else {
                        acc[i][j] = x.mul_add(w[j], acc[i][j]);
                    }
                }
            }
            panel = panel.add(2 * C * V::N);
            k += 2;
        }
        if k < t.hidden {
            let w: [V; C] = V::load_many(panel);
            for i in 0..M {
                let x = V::splat(*from[i].add(k));
                for j in 0..C {
                    acc[i][j] = x.mul_add(w[j], acc[i][j]);
                }
            }
        }
        if M == 1 {
            for j in 0..C {
                acc[0][j] = acc[0][j] + other[0][j];
            }
        }
        acc
    }
}

fn products_of<P: Cells, const C: usize>(isa: Isa) -> [PairsFn; ROWS] {
    macro_rules! of {
        ($($m:literal)*) => { [$(entry::<PairRows<P, C, $m>, _>(isa)),*] };
    }
    of!(1 2 3 4 5 6)
}

/// `M` rows in cells of pairs.
struct PairRows<P, const C: usize, const M: usize>(PhantomData<P>);

impl<P: Cells, const C: usize, const M: usize> Kernel for PairRows<P, C, M> {
    type Args<'a> = &'a Pairs;
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>(job: &Pairs) {
        if const { !(P::EVERYWHERE || V::BRAINS) } {
            unreachable!("pairs are multiplied by instructions that this level has not");
        }
        // SAFETY: the panel has `cells` runs of `C` vectors, each factor `cells` cells, and there is room for the products.
        unsafe {
            // One row alone is summed in four parts, or each sum would wait for the last.
            let mut acc = [[V::splat(0.0); C]; M];
            let mut other = [[V::splat(0.0); C]; 3];
            let (from, mut panel, mut k) = (job.factors, job.panel, 0);
            if M == 1 {
                while k + 4 <= job.cells {
                    let w: [V; C] = V::load_many(panel);
                    let x = V::splat(*from[0].add(k));
                    for j in 0..C {
                        acc[0][j] = P::multiply(x, w[j], acc[0][j]);
                    }
                    for (part, other) in other.iter_mut().enumerate() {
                        let w: [V; C] = V::load_many(panel.add((part + 1) * C * V::N));
                        let x = V::splat(*from[0].add(k + part + 1));
                        for j in 0..C {
                            other[j] = P::multiply(x, w[j], other[j]);
                        }
                    }
                    panel = panel.add(4 * C * V::N);
                    k += 4;
                }
            }
            while k < job.cells {
                let w: [V; C] = V::load_many(panel);
                for i in 0..M {
                    let x = V::splat(*from[i].add(k));
                    for j in 0..C {
                        acc[i][j] = P::multiply(x, w[j], acc[i][j]);
                    }
                }
                panel = panel.add(C * V::N);
                k += 1;
            }
            for i in 0..M {
                for j in 0..C {
                    let sum = if M == 1 { (acc[i][j] + other[0][j]) + (other[1][j] + other[2][j]) } else { acc[i][j] };
                    sum.store(job.products.add((i * C + j) * V::N));
                }
            }
        }
    }
}
