//! One tile of a step: a few rows of the batch by one panel of units. The product with the state and the functions of the
//! gates stay in registers.

use super::CellKind;
use crate::lanes::{Lanes, Plain};
use crate::vmath::act_in_place;
use crate::{Act, Isa};

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
}

/// A tile.
pub(super) struct Tile<'a> {
    pub rows: &'a [Row],
    pub panel: *const f32,
    pub hidden: usize,
    /// First unit of the panel.
    pub unit: usize,
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

pub(super) type TileFn = unsafe fn(&Tile);

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

/// The functions of a level by rows, less one.
pub(super) fn tiles(isa: Isa, stage: Stage) -> &'static [TileFn] {
    match isa.here() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::tiles(stage),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::tiles(stage),
        _ => plain::tiles(stage),
    }
}

macro_rules! level {
    ($name:ident, $lanes:ty, [$($features:literal)?], $($m:literal)*) => {
        mod $name {
            use super::*;
            level!(@ $lanes, [$($features)?], rnn rnn_tile, gru gru_tile, gru_gates gru_gates_tile, gru_new gru_new_tile,
                lstm lstm_tile);
            pub(super) fn tiles(stage: Stage) -> &'static [TileFn] {
                match stage {
                    Stage::Rnn => &[$(rnn::<$m>),*],
                    Stage::Gru => &[$(gru::<$m>),*],
                    Stage::GruGates => &[$(gru_gates::<$m>),*],
                    Stage::GruNew => &[$(gru_new::<$m>),*],
                    Stage::Lstm => &[$(lstm::<$m>),*],
                }
            }
        }
    };
    (@ $lanes:ty, [], $($name:ident $body:ident),*) => {$(
        unsafe fn $name<const M: usize>(t: &Tile) {
            // SAFETY: the caller gives a tile inside of its data.
            unsafe { $body::<$lanes, M>(t) }
        }
    )*};
    (@ $lanes:ty, [$features:literal], $($name:ident $body:ident),*) => {$(
        #[target_feature(enable = $features)]
        unsafe fn $name<const M: usize>(t: &Tile) {
            // SAFETY: the caller has this level and gives a tile inside of its data.
            unsafe { $body::<$lanes, M>(t) }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
level!(avx512, Avx512, ["avx512f,avx512bw,avx512dq,avx512vl,fma"], 1 2 3 4 5 6);
#[cfg(target_arch = "x86_64")]
level!(avx2, Avx2, ["avx2,fma"], 1 2);
level!(plain, Plain, [], 1 2);

/// The panel times what each row brings. One row alone is summed in two halves, or each sum would wait for the last.
#[inline(always)]
unsafe fn product<V: Lanes, const M: usize, const C: usize>(t: &Tile) -> [[V; C]; M] {
    // SAFETY: the panel has `hidden` runs of `C` vectors, each factor `hidden` floats.
    unsafe {
        let mut acc = [[V::splat(0.0); C]; M];
        let mut other = [[V::splat(0.0); C]; M];
        let mut from = [std::ptr::null(); M];
        for i in 0..M {
            from[i] = t.rows[i].factor;
        }
        let mut panel = t.panel;
        let mut k = 0;
        while k + 2 <= t.hidden {
            let w: [V; C] = V::load_many(panel);
            for i in 0..M {
                let x = V::splat(*from[i].add(k));
                for j in 0..C {
                    acc[i][j] = x.fma(w[j], acc[i][j]);
                }
            }
            let w: [V; C] = V::load_many(panel.add(C * V::N));
            for i in 0..M {
                let x = V::splat(*from[i].add(k + 1));
                for j in 0..C {
                    if M == 1 {
                        other[i][j] = x.fma(w[j], other[i][j]);
                    } else {
                        acc[i][j] = x.fma(w[j], acc[i][j]);
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
                    acc[i][j] = x.fma(w[j], acc[i][j]);
                }
            }
        }
        if M == 1 {
            for j in 0..C {
                acc[0][j] = acc[0][j].add(other[0][j]);
            }
        }
        acc
    }
}

impl Tile<'_> {
    /// Units of the vector that starts at `unit`; 0 when it lies beyond.
    #[inline(always)]
    fn units<V: Lanes>(&self, unit: usize) -> usize {
        self.hidden.saturating_sub(unit).min(V::N)
    }
    /// What enters a gate: the products with state and input.
    #[inline(always)]
    unsafe fn enter<V: Lanes>(&self, row: &Row, gate: usize, unit: usize, n: usize, product: V) -> V {
        // SAFETY: `n` units are there.
        unsafe { product.add(load(row.x.add(gate * self.hidden + unit), n)) }
    }
    /// A gate function behind the limit.
    #[inline(always)]
    unsafe fn act<V: Lanes>(&self, which: usize, x: V) -> V {
        // SAFETY: the caller has this level.
        unsafe { self.plain_act(which, self.clipped(x)) }
    }
    #[inline(always)]
    unsafe fn clipped<V: Lanes>(&self, x: V) -> V {
        let clip = self.settings.clip;
        // SAFETY: the caller has this level.
        unsafe { if clip > 0.0 { V::splat(-clip).max(V::splat(clip).min(x)) } else { x } }
    }
    #[inline(always)]
    unsafe fn plain_act<V: Lanes>(&self, which: usize, x: V) -> V {
        // SAFETY: the caller has this level; the array holds a vector of every level.
        unsafe {
            match self.settings.acts[which] {
                Act::Sigmoid => x.sigmoid(),
                Act::Tanh => x.tanh(),
                Act::Relu => V::splat(0.0).max(x),
                act => {
                    let mut array = [0.0; 16];
                    x.store(array.as_mut_ptr());
                    act_in_place(self.settings.isa, act, &mut array[..V::N]);
                    V::load(array.as_ptr())
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn load<V: Lanes>(from: *const f32, n: usize) -> V {
    // SAFETY: the caller's pointer is good for `n` floats.
    unsafe { if n == V::N { V::load(from) } else { V::load_first(from, n) } }
}

#[inline(always)]
unsafe fn store<V: Lanes>(x: V, to: *mut f32, n: usize) {
    // SAFETY: the caller's pointer is good for `n` floats.
    unsafe { if n == V::N { x.store(to) } else { x.store_first(to, n) } }
}

/// Writes a new state, or keeps the old one of a row that has ended.
#[inline(always)]
unsafe fn put<V: Lanes>(row: &Row, unit: usize, n: usize, h: V) {
    // SAFETY: `n` units are there.
    unsafe {
        if row.ended {
            store::<V>(load(row.h.add(unit), n), row.next.add(unit), n);
            return;
        }
        store(h, row.next.add(unit), n);
        if !row.y.is_null() {
            store(h, row.y.add(unit), n);
        }
    }
}

#[inline(always)]
unsafe fn rnn_tile<V: Lanes, const M: usize>(t: &Tile) {
    // SAFETY: the caller's promise, see `level`.
    unsafe {
        let acc = product::<V, M, 4>(t);
        for i in 0..M {
            let row = &t.rows[i];
            for j in 0..4 {
                let unit = t.unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    put(row, unit, n, t.act(0, t.enter(row, 0, unit, n, acc[i][j])));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn gru_tile<V: Lanes, const M: usize>(t: &Tile) {
    // SAFETY: the caller's promise, see `level`.
    unsafe {
        let acc = product::<V, M, 3>(t);
        let n = t.units::<V>(t.unit);
        let bias = load::<V>(t.new_bias.add(t.unit), n);
        for i in 0..M {
            let row = &t.rows[i];
            let z = t.act(0, t.enter(row, 0, t.unit, n, acc[i][0])).mul(V::splat(row.update));
            let r = t.act(0, t.enter(row, 1, t.unit, n, acc[i][1]));
            let new = t.act(1, t.enter(row, 2, t.unit, n, r.mul(acc[i][2].add(bias))));
            let h = load::<V>(row.h.add(t.unit), n);
            put(row, t.unit, n, z.fma(h.sub(new), new));
        }
    }
}

#[inline(always)]
unsafe fn gru_gates_tile<V: Lanes, const M: usize>(t: &Tile) {
    // SAFETY: the caller's promise, see `level`.
    unsafe {
        let acc = product::<V, M, 4>(t);
        for i in 0..M {
            let row = &t.rows[i];
            for j in 0..2 {
                let unit = t.unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    let z = t.act(0, t.enter(row, 0, unit, n, acc[i][2 * j])).mul(V::splat(row.update));
                    store(z, row.z.add(unit), n);
                    let r = t.act(0, t.enter(row, 1, unit, n, acc[i][2 * j + 1]));
                    store(r.mul(load(row.h.add(unit), n)), row.reset.add(unit), n);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn gru_new_tile<V: Lanes, const M: usize>(t: &Tile) {
    // SAFETY: the caller's promise, see `level`.
    unsafe {
        let acc = product::<V, M, 4>(t);
        for i in 0..M {
            let row = &t.rows[i];
            for j in 0..4 {
                let unit = t.unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    let new = t.act(1, t.enter(row, 2, unit, n, acc[i][j]));
                    let (h, z) = (load::<V>(row.h.add(unit), n), load::<V>(row.z.add(unit), n));
                    put(row, unit, n, z.fma(h.sub(new), new));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn lstm_tile<V: Lanes, const M: usize>(t: &Tile) {
    // SAFETY: the caller's promise, see `level`.
    unsafe {
        let acc = product::<V, M, 4>(t);
        let n = t.units::<V>(t.unit);
        for i in 0..M {
            let row = &t.rows[i];
            let forget = t.enter(row, 0, t.unit, n, acc[i][0]);
            let enter = t.enter(row, 1, t.unit, n, acc[i][1]);
            let new = t.enter(row, 2, t.unit, n, acc[i][2]);
            let leave = t.enter(row, 3, t.unit, n, acc[i][3]);
            let c = load::<V>(row.c.add(t.unit), n);
            let [c, h] = match t.settings.usual {
                true => lstm_usual([forget, enter, new, leave], c),
                false => lstm_other(t, n, [forget, enter, new, leave], c),
            };
            if !row.ended {
                store(c, row.c.add(t.unit), n);
            }
            put(row, t.unit, n, h);
        }
    }
}

/// The usual functions. A sigmoid times a hyperbolic tangent is one division: `e / ((1 + exp(-x)) (e + 2))` with
/// `e = exp(2 y) - 1`.
#[inline(always)]
unsafe fn lstm_usual<V: Lanes>([forget, enter, new, leave]: [V; 4], c: V) -> [V; 2] {
    // SAFETY: the caller has this level.
    unsafe {
        let (one, two) = (V::splat(1.0), V::splat(2.0));
        // 1 + exp(-x), never so large that a product of two is infinite.
        macro_rules! below {
            ($x:expr) => {
                one.add(V::splat(44.0).min(V::splat(0.0).sub($x)).exp())
            };
        }
        let e = new.add(new).exp_minus_one();
        let c = c.div(below!(forget)).add(e.div(below!(enter).mul(e.add(two))));
        let e = c.add(c).exp_minus_one();
        [c, e.div(below!(leave).mul(e.add(two)))]
    }
}

#[inline(always)]
unsafe fn lstm_other<V: Lanes>(t: &Tile, n: usize, [forget, enter, new, leave]: [V; 4], c: V) -> [V; 2] {
    // SAFETY: the caller's promise; peepholes are three blocks of `hidden`.
    unsafe {
        let peep = |block: usize, x: V, c: V| match t.peepholes.is_null() {
            true => x,
            false => load::<V>(t.peepholes.add(block * t.hidden + t.unit), n).fma(c, x),
        };
        let forget = t.act(0, peep(0, forget, c));
        let coupled = t.settings.kind == CellKind::Lstm { input_forget: true };
        let enter = if coupled { V::splat(1.0).sub(forget) } else { t.act(0, peep(1, enter, c)) };
        let c = forget.fma(c, enter.mul(t.act(1, new)));
        let leave = t.act(0, peep(2, leave, c));
        [c, leave.mul(t.plain_act(2, c))]
    }
}
