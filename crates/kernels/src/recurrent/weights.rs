//! Packed weights of the state. They lie in panels: for each element of the state, one vector for each gate of a run of
//! units, so that one pass yields all that a unit needs. A product of few gates takes several runs of units together. In bf16 two
//! elements of the state are a cell of four bytes; the last cell of an odd state ends with 0.

use super::{CellKind, RecurrentParams, RecurrentWeights};
use crate::Isa;
use crate::cast::f32_to_brain;

/// One product with the state: which gates, and how many vectors of units of each a panel holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) first_gate: usize,
    pub(super) gates: usize,
    pub(super) vectors: usize,
    /// Units of a panel.
    pub(super) units: usize,
    pub(super) panels: usize,
    /// Floats of a panel.
    pub(super) floats: usize,
    at: usize,
}

/// Where everything lies in the packed weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// What a step multiplies with: one product, or for a GRU that resets before it multiplies, two.
    pub(super) products: [Option<Product>; 2],
    lanes: usize,
    /// Elements of the state in a cell: 1, or 2 of bf16.
    pub(super) per_cell: usize,
    /// Of one direction.
    direction_floats: usize,
    state: usize,
    bias: usize,
    bias_floats: usize,
    new_bias: usize,
    peepholes: usize,
    pub(super) hidden: usize,
    pub(super) has_peepholes: usize,
    pub(super) floats: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) layout: &'a Layout,
    pub(super) packed: &'a [f32],
}

impl Layout {
    pub(super) fn new(isa: Isa, p: &RecurrentParams, gemm: usize, per_cell: usize) -> Layout {
        let lanes = isa.lanes();
        let line = |n: usize| n.next_multiple_of(16);
        let mut at = 0;
        let mut product = |first_gate: usize, gates: usize| {
            let vectors = (4 / gates).max(1);
            let units = vectors * lanes;
            let (panels, floats) = (p.hidden.div_ceil(units), p.hidden.div_ceil(per_cell) * gates * units);
            let product = Product { first_gate, gates, vectors, units, panels, floats, at };
            at += line(panels * floats);
            product
        };
        let products = match p.kind {
            CellKind::Rnn => [Some(product(0, 1)), None],
            CellKind::Gru { linear_before_reset: true } => [Some(product(0, 3)), None],
            CellKind::Gru { linear_before_reset: false } => [Some(product(0, 2)), Some(product(2, 1))],
            CellKind::Lstm { .. } => [Some(product(0, 4)), None],
        };
        let direction_floats = at;
        let directions = p.directions();
        let state = line(gemm);
        let bias = state + directions * direction_floats;
        let bias_floats = directions * p.kind.gates() * p.hidden;
        let new_bias = bias + line(bias_floats);
        let peepholes = new_bias + line(directions * p.hidden);
        // One float at the end tells whether there are peepholes.
        let has_peepholes = peepholes + line(directions * 3 * p.hidden);
        Layout {
            products,
            lanes,
            per_cell,
            direction_floats,
            state,
            bias,
            bias_floats,
            new_bias,
            peepholes,
            hidden: p.hidden,
            has_peepholes,
            floats: has_peepholes + 16,
        }
    }

    /// What is added to the products with the input.
    pub(super) fn x_bias<'a>(&self, packed: &'a [f32]) -> &'a [f32] {
        &packed[self.bias..][..self.bias_floats]
    }

    /// Everything but the weights of the input.
    pub(super) fn pack(&self, p: &RecurrentParams, from: &RecurrentWeights, packed: &mut [f32]) {
        let (n, gates, blocks) = (p.hidden, p.kind.gates(), p.kind.bias_blocks());
        packed[self.state..self.floats].fill(0.0);
        for d in 0..p.directions() {
            let r = &from.r[d * gates * n * n..][..gates * n * n];
            for product in self.products.iter().flatten() {
                for panel in 0..product.panels {
                    let at = self.state + d * self.direction_floats + product.at + panel * product.floats;
                    self.pack_panel(product, panel, r, &mut packed[at..at + product.floats]);
                }
            }
            if let Some(b) = from.b {
                let b = &b[d * blocks * n..][..blocks * n];
                packed[self.bias + d * gates * n..][..gates * n].copy_from_slice(&b[..gates * n]);
                if blocks > gates {
                    packed[self.new_bias + d * n..][..n].copy_from_slice(&b[gates * n..]);
                }
            }
            if let Some(peepholes) = from.peepholes {
                packed[self.peepholes + d * 3 * n..][..3 * n].copy_from_slice(&peepholes[d * 3 * n..][..3 * n]);
                packed[self.has_peepholes] = 1.0;
            }
        }
    }

    fn pack_panel(&self, product: &Product, panel: usize, r: &[f32], to: &mut [f32]) {
        let n = self.hidden;
        for vector in 0..product.vectors {
            for gate in 0..product.gates {
                let first = panel * product.units + vector * self.lanes;
                for unit in first..n.min(first + self.lanes) {
                    let row = &r[((product.first_gate + gate) * n + unit) * n..][..n];
                    let column = (vector * product.gates + gate) * self.lanes + unit - first;
                    for (k, x) in row.chunks(self.per_cell).enumerate() {
                        to[k * product.gates * product.units + column] = cell(x, self.per_cell);
                    }
                }
            }
        }
    }
}

// A float, or two bf16 of which the first lies in the lower half.
fn cell(numbers: &[f32], per_cell: usize) -> f32 {
    if per_cell == 1 {
        return numbers[0];
    }
    let bits = |i: usize| numbers.get(i).map_or(0, |x| u32::from(f32_to_brain(*x).0));
    f32::from_bits(bits(0) | bits(1) << 16)
}

impl<'a> Weights<'a> {
    pub(super) fn panels(&self, direction: usize, product: &Product) -> &'a [f32] {
        let at = self.layout.state + direction * self.layout.direction_floats + product.at;
        &self.packed[at..][..product.panels * product.floats]
    }
    /// Added to the product of a GRU's new value before the reset.
    pub(super) fn new_bias(&self, direction: usize) -> &'a [f32] {
        &self.packed[self.layout.new_bias + direction * self.layout.hidden..][..self.layout.hidden]
    }
    pub(super) fn peepholes(&self, direction: usize) -> Option<&'a [f32]> {
        let n = 3 * self.layout.hidden;
        let all = &self.packed[self.layout.peepholes + direction * n..][..n];
        (self.packed[self.layout.has_peepholes] != 0.0).then_some(all)
    }
}
