//! How the spatial kernels apply an [`Epilogue`]: bias, sums and the cheap functions in registers, everything else on the
//! finished rows.

use crate::simd::{Simd, unroll};
use crate::vmath::act_in_place;
use crate::{Act, Epilogue, Isa, SharedMut, Tile};

/// A function of one number that takes a few instructions: `clamp(a * x + b, low, high) * c`, times `x` for a gate, plus `d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quick {
    kind: Kind,
    low: f32,
    high: f32,
    a: f32,
    b: f32,
    c: f32,
    d: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    Relu,
    Clamp,
    Leaky,
    Hard,
    Gate,
}

/// What is left of an epilogue for the finished rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Later {
    act: Act,
    add: bool,
}

/// An epilogue split in two.
#[derive(Clone, Copy)]
pub(crate) struct SplitEpilogue<'a> {
    pub(crate) epilogue: Epilogue<'a>,
    pub(crate) quick: Quick,
    /// The sum is made in registers, before the function.
    pub(crate) add_first: bool,
    /// The sum is made in registers, after the function.
    pub(crate) add_last: bool,
    /// The kernel does the function that is left to its sums itself; nothing may be left to add behind it.
    pub(crate) in_registers: bool,
    later: Later,
}

impl Quick {
    const NONE: Quick = Quick { kind: Kind::None, low: 0.0, high: 0.0, a: 1.0, b: 0.0, c: 1.0, d: 0.0 };

    pub(crate) fn of(act: Act) -> Option<Quick> {
        let sixth = 1.0 / 6.0;
        let none = Quick::NONE;
        Some(match act {
            Act::None => none,
            Act::Relu => Quick { kind: Kind::Relu, ..none },
            Act::Clamp { min, max } => Quick { kind: Kind::Clamp, low: min, high: max, ..none },
            Act::LeakyRelu(a) => Quick { kind: Kind::Leaky, a, ..none },
            Act::HSwish => Quick { kind: Kind::Gate, low: 0.0, high: 6.0, b: 3.0, c: sixth, ..none },
            Act::HSigmoid => Quick { kind: Kind::Hard, low: 0.0, high: 6.0, b: 3.0, c: sixth, ..none },
            Act::HardSigmoid { alpha, beta } => Quick { kind: Kind::Hard, high: 1.0, a: alpha, b: beta, ..none },
            _ => return None,
        })
    }

    /// With a factor and a term behind it, where they cost nothing.
    pub(crate) fn then(self, [factor, term]: [f32; 2]) -> Option<Quick> {
        match self.kind {
            _ if [factor, term] == [1.0, 0.0] => Some(self),
            Kind::Hard | Kind::Gate => Some(Quick { c: self.c * factor, d: self.d * factor + term, ..self }),
            _ => None,
        }
    }

    /// The function of several vectors. It is looked up once for all of them: code for each kind behind each vector would be
    /// larger than all else in a kernel.
    #[inline(always)]
    pub(crate) fn apply<S: Simd, const N: usize>(&self, xs: &mut [S; N]) {
        const { assert!(N <= 14, "as many as are unrolled") };
        let zero = S::splat(0.0);
        match self.kind {
            Kind::None => {}
            Kind::Relu => {
                unroll!(i < N, 14, {
                    xs[i] = zero.max(xs[i]);
                });
            }
            Kind::Clamp => {
                let (low, high) = (S::splat(self.low), S::splat(self.high));
                unroll!(i < N, 14, {
                    xs[i] = high.min(low.max(xs[i]));
                });
            }
            Kind::Leaky => {
                let a = S::splat(self.a);
                unroll!(i < N, 14, {
                    xs[i] = zero.min(xs[i]).mul_add(a, zero.max(xs[i]));
                });
            }
            Kind::Hard => {
                unroll!(i < N, 14, {
                    xs[i] = self.hard(xs[i]) + S::splat(self.d);
                });
            }
            Kind::Gate => {
                unroll!(i < N, 14, {
                    xs[i] = self.hard(xs[i]).mul_add(xs[i], S::splat(self.d));
                });
            }
        }
    }

    /// `clamp(a * x + b, low, high) * c`.
    #[inline(always)]
    fn hard<S: Simd>(&self, x: S) -> S {
        let t = x.mul_add(S::splat(self.a), S::splat(self.b));
        S::splat(self.high).min(S::splat(self.low).max(t)) * S::splat(self.c)
    }
}

impl<'a> SplitEpilogue<'a> {
    pub(crate) fn new(epilogue: &Epilogue<'a>) -> SplitEpilogue<'a> {
        assert!(!epilogue.add_own, "what is added lies beside the output");
        let quick = Quick::of(epilogue.act);
        let add = epilogue.add.is_some();
        SplitEpilogue {
            epilogue: *epilogue,
            quick: quick.unwrap_or(Quick::NONE),
            add_first: add && !epilogue.add_last,
            add_last: add && epilogue.add_last && quick.is_some(),
            in_registers: false,
            later: Later {
                act: if quick.is_some() { Act::None } else { epilogue.act },
                add: add && epilogue.add_last && quick.is_none(),
            },
        }
    }

    /// Checks the lengths of what is added to `rows` rows of `columns`.
    pub(crate) fn check(&self, rows: usize, columns: usize) {
        if let Some(bias) = self.epilogue.bias {
            assert_eq!(bias.len(), columns, "one bias a channel");
        }
        if let Some((add, stride)) = self.epilogue.add {
            assert!(rows == 0 || add.len() >= (rows - 1) * stride + columns, "what is added is as large as the output");
        }
    }

    /// The bias, or a null address.
    pub(crate) fn bias(&self) -> *const f32 {
        self.epilogue.bias.map_or(std::ptr::null(), |b| b.as_ptr())
    }

    /// What is added in registers before the function and behind it, null where nothing is, and its stride. Two addresses and
    /// not one with a sign: then the compiler does not make a copy of the function for each case.
    pub(crate) fn adds(&self) -> ([*const f32; 2], usize) {
        let (add, stride) = self.epilogue.add.map_or((std::ptr::null(), 0), |(add, stride)| (add.as_ptr(), stride));
        ([self.add_first, self.add_last].map(|is_there| if is_there { add } else { std::ptr::null() }), stride)
    }

    /// Whether [`Self::rest`] has anything to do.
    pub(crate) fn has_rest(&self) -> bool {
        (self.later.act != Act::None && !self.in_registers) || self.later.add || self.epilogue.finish.is_some()
    }

    /// The function that a kernel does to its sums itself besides the quick one.
    pub(crate) fn slow(&self) -> Option<Act> {
        (self.in_registers && self.later.act != Act::None).then_some(self.later.act)
    }

    /// The rest of the work on a rectangle of the output.
    ///
    /// # Safety
    /// The rectangle lies inside of `out` and nobody else uses it.
    pub(crate) unsafe fn rest(
        &self,
        isa: Isa,
        out: SharedMut<'_, f32>,
        stride: usize,
        [row, rows]: [usize; 2],
        [column, columns]: [usize; 2],
        thread: usize,
    ) {
        if !self.has_rest() || rows == 0 || columns == 0 {
            return;
        }
        let start = row * stride + column;
        if columns == stride {
            // SAFETY: the caller's promise.
            act_in_place(isa, self.later.act, unsafe { out.part(start..start + rows * stride) });
        } else {
            for r in 0..rows {
                let start = start + r * stride;
                // SAFETY: the caller's promise.
                act_in_place(isa, self.later.act, unsafe { out.part(start..start + columns) });
            }
        }
        if let (true, Some((add, add_stride))) = (self.later.add, self.epilogue.add) {
            for r in 0..rows {
                let start = start + r * stride;
                // SAFETY: the caller's promise.
                let line = unsafe { out.part(start..start + columns) };
                line.iter_mut().zip(&add[(row + r) * add_stride + column..]).for_each(|(y, x)| *y += x);
            }
        }
        if let Some(finish) = self.epilogue.finish {
            // SAFETY: the caller's promise; rows before the last are whole, the gaps between them belong to nobody who
            // reads or writes them through this rectangle.
            let data = unsafe { out.part(start..start + (rows - 1) * stride + columns) };
            finish.finish(Tile { data, stride, row, column, rows, columns }, thread);
        }
    }
}
