//! What a cell makes of the products of one row and a run of units: the functions of its gates and its new state.

use super::CellKind;
use super::gates::{Row, Tile};
use crate::Act;
use crate::simd::Simd;
use crate::vmath::act_in_place;
use crate::vmath::functions::{exp_capped, expm1_capped, sigmoid, tanh};
use std::ops::Range;

/// One stage of a step, with `C` vectors of products for a panel of units.
pub(super) trait Cell<const C: usize> {
    /// The gates it computes.
    const GATES: Range<usize>;
    /// # Safety
    /// The caller has the level of `V`; all units of the panel that starts at `unit` have their positions in `row`.
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; C]);
}

/// A plain recurrent cell: four vectors of units.
pub(super) struct Rnn;
/// A GRU whose reset gate scales the product: the three gates of one vector of units.
pub(super) struct Gru;
/// Update and reset gate of a GRU that resets first: two vectors of units.
pub(super) struct GruGates;
/// Its new value: four vectors of units.
pub(super) struct GruNew;
/// The four gates of one vector of units.
pub(super) struct Lstm;

impl Cell<4> for Rnn {
    const GATES: Range<usize> = 0..1;
    #[inline(always)]
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            for j in 0..4 {
                let unit = unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    put(row, unit, n, t.act(0, t.enter(row, 0, unit, n, products[j])));
                }
            }
        }
    }
}

impl Cell<3> for Gru {
    const GATES: Range<usize> = 0..3;
    #[inline(always)]
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; 3]) {
        // SAFETY: the caller's promise.
        unsafe {
            let n = t.units::<V>(unit);
            let bias = load::<V>(t.new_bias.add(unit), n);
            let z = t.act(0, t.enter(row, 0, unit, n, products[0])) * V::splat(row.update);
            let r = t.act(0, t.enter(row, 1, unit, n, products[1]));
            let new = t.act(1, t.enter(row, 2, unit, n, r * (products[2] + bias)));
            let h = load::<V>(row.h.add(unit), n);
            put(row, unit, n, z.mul_add(h - new, new));
        }
    }
}

impl Cell<4> for GruGates {
    const GATES: Range<usize> = 0..2;
    #[inline(always)]
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            for j in 0..2 {
                let unit = unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    let z = t.act(0, t.enter(row, 0, unit, n, products[2 * j])) * V::splat(row.update);
                    store(z, row.z.add(unit), n);
                    let r = t.act(0, t.enter(row, 1, unit, n, products[2 * j + 1]));
                    let reset = r * load(row.h.add(unit), n);
                    match row.reset_pairs.is_null() {
                        true => store(reset, row.reset.add(unit), n),
                        false => reset.store_brains(row.reset_pairs.add(unit), n),
                    }
                }
            }
        }
    }
}

impl Cell<4> for GruNew {
    const GATES: Range<usize> = 2..3;
    #[inline(always)]
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            for j in 0..4 {
                let unit = unit + j * V::N;
                let n = t.units::<V>(unit);
                if n > 0 {
                    let new = t.act(1, t.enter(row, 2, unit, n, products[j]));
                    let (h, z) = (load::<V>(row.h.add(unit), n), load::<V>(row.z.add(unit), n));
                    put(row, unit, n, z.mul_add(h - new, new));
                }
            }
        }
    }
}

impl Cell<4> for Lstm {
    const GATES: Range<usize> = 0..4;
    #[inline(always)]
    unsafe fn end<V: Simd>(t: &Tile, row: &Row, unit: usize, products: [V; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            let n = t.units::<V>(unit);
            let mut gates = products;
            for (gate, x) in gates.iter_mut().enumerate() {
                *x = t.enter(row, gate, unit, n, *x);
            }
            let c = load::<V>(row.c.add(unit), n);
            let [c, h] = match t.settings.usual {
                true => lstm_usual(gates, c),
                false => lstm_other(t, unit, n, gates, c),
            };
            if !row.ended {
                store(c, row.c.add(unit), n);
            }
            put(row, unit, n, h);
        }
    }
}

impl Tile<'_> {
    /// Units of the vector that starts at `unit`; 0 when it lies beyond.
    #[inline(always)]
    fn units<V: Simd>(&self, unit: usize) -> usize {
        self.hidden.saturating_sub(unit).min(V::N)
    }
    /// What enters a gate: the products with state and input.
    #[inline(always)]
    unsafe fn enter<V: Simd>(&self, row: &Row, gate: usize, unit: usize, n: usize, product: V) -> V {
        // SAFETY: `n` units are there.
        unsafe { product + load(row.x.add(gate * self.hidden + unit), n) }
    }
    /// A gate function behind the limit.
    #[inline(always)]
    unsafe fn act<V: Simd>(&self, which: usize, x: V) -> V {
        // SAFETY: the caller has this level.
        unsafe { self.plain_act(which, self.clipped(x)) }
    }
    #[inline(always)]
    fn clipped<V: Simd>(&self, x: V) -> V {
        let clip = self.settings.clip;
        if clip > 0.0 { V::splat(-clip).max(V::splat(clip).min(x)) } else { x }
    }
    #[inline(always)]
    unsafe fn plain_act<V: Simd>(&self, which: usize, x: V) -> V {
        // SAFETY: the caller has this level; the array holds a vector of every level.
        unsafe {
            match self.settings.acts[which] {
                Act::Sigmoid => sigmoid(x),
                Act::Tanh => tanh(x),
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
unsafe fn load<V: Simd>(from: *const f32, n: usize) -> V {
    // SAFETY: the caller's pointer is good for `n` floats.
    unsafe { if n == V::N { V::load(from) } else { V::load_partial(from, n) } }
}

#[inline(always)]
unsafe fn store<V: Simd>(x: V, to: *mut f32, n: usize) {
    // SAFETY: the caller's pointer is good for `n` floats.
    unsafe { if n == V::N { x.store(to) } else { x.store_partial(to, n) } }
}

/// Writes a new state, or keeps the old one of a row that has ended.
#[inline(always)]
unsafe fn put<V: Simd>(row: &Row, unit: usize, n: usize, h: V) {
    // SAFETY: `n` units are there.
    unsafe {
        let kept = if row.ended { load(row.h.add(unit), n) } else { h };
        store::<V>(kept, row.next.add(unit), n);
        if !row.next_pairs.is_null() {
            kept.store_brains(row.next_pairs.add(unit), n);
        }
        if row.ended {
            return;
        }
        if !row.y.is_null() {
            store(h, row.y.add(unit), n);
        }
    }
}

/// The usual functions. A sigmoid times a hyperbolic tangent is one division: `e / ((1 + exp(-x)) (e + 2))` with
/// `e = exp(2 y) - 1`.
#[inline(always)]
fn lstm_usual<V: Simd>([forget, enter, new, leave]: [V; 4], c: V) -> [V; 2] {
    let (one, two) = (V::splat(1.0), V::splat(2.0));
    // 1 + exp(-x), never so large that a product of two is infinite.
    macro_rules! below {
        ($x:expr) => {
            one + exp_capped(-$x)
        };
    }
    let e = expm1_capped(new + new);
    let c = c / below!(forget) + e / (below!(enter) * (e + two));
    let e = expm1_capped(c + c);
    [c, e / (below!(leave) * (e + two))]
}

#[inline(always)]
unsafe fn lstm_other<V: Simd>(t: &Tile, unit: usize, n: usize, [forget, enter, new, leave]: [V; 4], c: V) -> [V; 2] {
    // SAFETY: the caller's promise; peepholes are three blocks of `hidden`.
    unsafe {
        let peep = |block: usize, x: V, c: V| match t.peepholes.is_null() {
            true => x,
            false => load::<V>(t.peepholes.add(block * t.hidden + unit), n).mul_add(c, x),
        };
        let forget = t.act(0, peep(0, forget, c));
        let coupled = t.settings.kind == CellKind::Lstm { input_forget: true };
        let enter = if coupled { V::splat(1.0) - forget } else { t.act(0, peep(1, enter, c)) };
        let c = forget.mul_add(c, enter * t.act(1, new));
        let leave = t.act(0, peep(2, leave, c));
        [c, leave * t.plain_act(2, c)]
    }
}
