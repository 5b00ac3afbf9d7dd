//! How sums leave a tile whose operands or result are not floats: scaled, with the epilogue applied, and converted to the type
//! of the result. Tiles put their sums into a small buffer; the functions here take them from there.

use super::task::{Post, Simple, Target};
use crate::epilogue::{Addend, Quantizer, RoundTrip, TypedEpilogue, TypedOut};
use crate::{Act, Epilogue, Finish, Halves, Isa, Tile, vmath};

/// Floats from row to row of the buffer of sums.
pub(crate) const SUMS: usize = 32;

/// A typed epilogue with its output, checked against the size of both.
#[derive(Clone, Copy)]
pub(crate) struct Leaving<'a> {
    /// Sums are integers of 32 bits.
    pub(crate) integer: bool,
    /// Null when there is none.
    pub(crate) scale: *const f32,
    pub(crate) bias: *const f32,
    pub(crate) offset: *const f32,
    pub(crate) most: *const f32,
    pub(crate) round_trip: Option<RoundTrip>,
    pub(crate) add: Added,
    pub(crate) post: Post,
    pub(crate) to: To,
    /// Elements from row to row of the output.
    pub(crate) ldc: usize,
    later: Act,
    add_later: bool,
    /// A factor and a term behind function and sum.
    after: Option<[f32; 2]>,
    finish: Option<&'a dyn Finish>,
    isa: Isa,
    /// Sums of integers become bytes by one multiplication, with at most a rounding and a sum with bytes between: scales and bias
    /// count in steps of what follows already.
    pub(crate) in_steps: bool,
    /// The same in short, where it can be said so.
    pub(crate) short: Option<Short>,
}

/// The usual end of sums of 16 bits: `+ bias + add`, a function, stored as numbers of the same type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    pub(crate) halves: Halves,
    /// Null when there is none.
    pub(crate) add: *const u16,
    pub(crate) add_stride: usize,
    /// The function comes before the sum.
    pub(crate) add_last: bool,
    pub(crate) act: ShortAct,
    /// A factor and a term behind both.
    pub(crate) after: Option<[f32; 2]>,
    pub(crate) to: *mut u16,
}

/// Functions whose results are rounded to 16 bits, so that an error below a tenth of that rounding does not matter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ShortAct {
    /// Between two numbers.
    Limits(f32, f32),
    /// `x`, times `x * p + q` between 0 and 1.
    Hard(f32, f32),
    /// `x * sigmoid(factor * x)`.
    Swish(f32),
    /// `x * sigmoid(x * (a + b * t + c * t^2))`, where `t` is `x^2`, 25 at most.
    Gelu([f32; 3]),
}

impl ShortAct {
    fn of(post: &Post, later: Act) -> Option<ShortAct> {
        Some(match (post.simple, later) {
            (Simple::None, Act::None) => ShortAct::Limits(f32::NEG_INFINITY, f32::INFINITY),
            (Simple::Relu, _) => ShortAct::Limits(0.0, f32::INFINITY),
            (Simple::Clamp, _) => ShortAct::Limits(post.p, post.q),
            (Simple::HardSwish, _) => ShortAct::Hard(post.p, post.q),
            (_, Act::Swish(beta)) => ShortAct::Swish(beta),
            // Fitted to the logarithm of the odds of the normal distribution: off by 7e-5 at most, and by less than a fifth of what
            // rounding to bf16 costs wherever the result is above 1e-5.
            (_, Act::GeluErf) => ShortAct::Gelu([1.594_225_2, 0.074_612_96, -7.833_458e-4]),
            (_, Act::GeluTanh) => ShortAct::Gelu([1.595_769, 0.071_354_814, 0.0]),
            _ => return None,
        })
    }
}

/// An addend without its lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    None,
    F32(*const f32, usize),
    Half(Halves, *const u16, usize),
    U8 { data: *const u8, stride: usize, scale: f32, offset: f32 },
}

/// An output without its length.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    F32(*mut f32),
    Half(Halves, *mut u16),
    U8(*mut u8, Quantizer),
}

// SAFETY: it stands for slices of an epilogue, which any thread may read, and an output, of which each thread writes its own part.
unsafe impl Sync for Leaving<'_> {}
// SAFETY: as above.
unsafe impl Send for Leaving<'_> {}

impl<'a> Leaving<'a> {
    /// For an output of `rows x columns`. Panics when a slice is too short for it.
    pub(crate) fn new(
        isa: Isa,
        integer: bool,
        epilogue: &TypedEpilogue<'a>,
        out: TypedOut<'a>,
        ldc: usize,
        rows: usize,
        columns: usize,
    ) -> Leaving<'a> {
        let fits = |len: usize, stride: usize| rows == 0 || len >= (rows - 1) * stride + columns;
        let columnwise = [(epilogue.scale, "scales"), (epilogue.bias, "biases"), (epilogue.offset, "offsets")];
        for (list, what) in columnwise.into_iter().chain([(epilogue.most, "limits")]) {
            assert!(list.is_none_or(|l| l.len() >= columns), "too few {what} for {columns} columns");
        }
        let pointer = |list: Option<&[f32]>| list.map_or(std::ptr::null(), <[f32]>::as_ptr);
        let (to, len) = match out {
            TypedOut::F32(data) => (To::F32(data.as_mut_ptr()), data.len()),
            TypedOut::Half(halves, data) => (To::Half(halves, data.as_mut_ptr()), data.len()),
            TypedOut::U8(data, quantizer) => (To::U8(data.as_mut_ptr(), quantizer), data.len()),
        };
        let add = match epilogue.add {
            None => Added::None,
            Some(Addend::F32(data, stride)) => {
                assert!(fits(data.len(), stride), "the added matrix is too small");
                Added::F32(data.as_ptr(), stride)
            }
            Some(Addend::Half(halves, data, stride)) => {
                assert!(fits(data.len(), stride), "the added matrix is too small");
                Added::Half(halves, data.as_ptr(), stride)
            }
            Some(Addend::U8 { data, stride, scale, zero }) => {
                assert!(fits(data.len(), stride), "the added matrix is too small");
                Added::U8 { data: data.as_ptr(), stride, scale, offset: -(zero as f32) * scale }
            }
            // Each number is read before it is written, by whoever writes it.
            Some(Addend::Own { scale, zero }) => match to {
                To::F32(c) => Added::F32(c, ldc),
                To::Half(halves, c) => Added::Half(halves, c, ldc),
                To::U8(c, _) => Added::U8 { data: c, stride: ldc, scale, offset: -(zero as f32) * scale },
            },
        };
        assert!(rows < 2 || ldc >= columns, "rows overlap: {ldc} for {columns}");
        assert!(fits(len, ldc), "{len} elements for {rows} rows of {columns}");
        let plain = Epilogue { add_last: epilogue.add_last, act: epilogue.act, ..Epilogue::default() };
        let (post, later) = Post::of(&plain, 1.0);
        let add_later = epilogue.add.is_some() && epilogue.add_last && later != Act::None;
        let (scale, bias, offset) = (pointer(epilogue.scale), pointer(epilogue.bias), pointer(epilogue.offset));
        let (round_trip, finish) = (epilogue.round_trip, epilogue.finish);
        let most = pointer(epilogue.most);
        let mut leaving = Leaving {
            integer,
            scale,
            bias,
            offset,
            most,
            round_trip,
            add,
            post,
            to,
            ldc,
            later,
            add_later,
            after: epilogue.after,
            finish,
            isa,
            in_steps: false,
            short: None,
        };
        leaving.short = leaving.in_short();
        leaving.in_steps = leaving.is_in_steps();
        assert!(most.is_null() || leaving.in_steps, "limits of columns are in steps");
        leaving
    }

    /// The same with the numbers of columns that lie `columns` further.
    ///
    /// # Safety
    /// Lists of the epilogue have so many more.
    pub(crate) unsafe fn behind(&self, columns: usize) -> Leaving<'a> {
        let moved = |list: *const f32| if list.is_null() { list } else { list.wrapping_add(columns) };
        let [scale, bias, offset, most] = [self.scale, self.bias, self.offset, self.most].map(moved);
        Leaving { scale, bias, offset, most, ..*self }
    }

    fn in_short(&self) -> Option<Short> {
        let act = ShortAct::of(&self.post, self.later)?;
        let To::Half(halves, to) = self.to else { return None };
        let (add, add_stride) = match self.add {
            Added::None => (std::ptr::null(), 0),
            Added::Half(of, data, stride) if of == halves => (data, stride),
            _ => return None,
        };
        let plain = !self.integer
            && self.scale.is_null()
            && self.offset.is_null()
            && self.round_trip.is_none()
            && self.finish.is_none();
        // Functions in short are off by more than a tenth of what rounding to f16 costs.
        let native = match halves {
            Halves::Bf16 => crate::Numbers::Bf16.is_native(self.isa),
            Halves::F16 => self.isa.is_avx512() && matches!(act, ShortAct::Limits(..) | ShortAct::Hard(..)),
        };
        let add_last = self.post.add_last || self.add_later;
        (plain && native).then_some(Short { halves, add, add_stride, add_last, act, after: self.after, to })
    }

    /// Whether work of others is left, which must not find a tile half done.
    pub(crate) fn is_foreign(&self) -> bool {
        self.finish.is_some()
    }
    /// Whether work is left that does not fit in registers.
    pub(crate) fn is_deferred(&self) -> bool {
        self.later != Act::None || self.finish.is_some()
    }
    /// The factor and the term that a vector in a register meets: those behind work that is left come later.
    pub(crate) fn after(&self) -> Option<[f32; 2]> {
        self.after.filter(|_| self.later == Act::None)
    }
    fn is_in_steps(&self) -> bool {
        let unit = |trip: &RoundTrip| trip.quantizer.is_unit();
        let add = matches!(self.add, Added::None | Added::U8 { .. });
        // A sum is one of real numbers: only then is it rounded as the model says.
        let to = matches!(self.to, To::U8(_, q) if q.is_unit() || matches!(self.add, Added::U8 { .. }));
        let given = !self.scale.is_null() && !self.bias.is_null();
        let plain = self.post.simple == Simple::None && !self.is_deferred() && self.after.is_none();
        let given = given && (self.offset.is_null() || self.round_trip.is_some());
        self.integer && to && add && given && plain && self.round_trip.as_ref().is_none_or(unit)
    }
    /// Whether the addend meets a vector before the function, and whether behind it.
    pub(crate) fn adds(&self) -> [bool; 2] {
        let now = !matches!(self.add, Added::None) && !self.add_later;
        [now && !self.post.add_last, now && self.post.add_last]
    }

    /// The work that does not fit in registers, on real numbers in the buffer.
    ///
    /// # Safety
    /// The buffer has `rows` rows, and they are the target's.
    pub(crate) unsafe fn deferred(&self, target: &Target, buffer: *mut f32, rows: usize) {
        // SAFETY: the caller's promise.
        let data = unsafe { std::slice::from_raw_parts_mut(buffer, (rows - 1) * SUMS + target.columns) };
        if self.later != Act::None && target.columns == SUMS && !self.add_later && self.after.is_none() {
            vmath::act_in_place(self.isa, self.later, data);
        } else if self.later != Act::None {
            for (i, line) in data.chunks_mut(SUMS).enumerate() {
                let line = &mut line[..target.columns];
                vmath::act_in_place(self.isa, self.later, line);
                for (j, x) in line.iter_mut().enumerate().filter(|_| self.add_later) {
                    // SAFETY: the addend is as large as the output.
                    *x += unsafe { self.add.at(target.row + i, target.column + j) };
                }
                if let Some([factor, term]) = self.after {
                    line.iter_mut().for_each(|x| *x = x.mul_add(factor, term));
                }
            }
        }
        if let Some(finish) = self.finish {
            let (row, column, columns) = (target.row, target.column, target.columns);
            finish.finish(Tile { data, stride: SUMS, row, column, rows, columns }, target.thread);
        }
    }
}

impl Added {
    /// # Safety
    /// The element is inside.
    pub(crate) unsafe fn at(&self, row: usize, column: usize) -> f32 {
        // SAFETY: the caller's promise.
        unsafe {
            match *self {
                Added::None => 0.0,
                Added::F32(data, stride) => *data.add(row * stride + column),
                Added::Half(halves, data, stride) => halves.wide(*data.add(row * stride + column)),
                Added::U8 { data, stride, scale, offset } => {
                    f32::from(*data.add(row * stride + column)).mul_add(scale, offset)
                }
            }
        }
    }
}

/// Takes rows of sums out of a buffer.
///
/// # Safety
/// As [`leave_plain`]; the buffer is aligned to cache lines.
pub(crate) type LeaveFn = unsafe fn(&Target, *mut f32, usize);

/// The function of a level.
pub(crate) fn leave_of(isa: Isa) -> LeaveFn {
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() {
        return super::leave_avx512::leave;
    }
    let _ = isa;
    leave_plain
}

/// Takes `rows` of sums out of the buffer, one number at a time.
///
/// # Safety
/// The target's `leaving` is set, the buffer holds the sums, and the rectangle is this thread's own.
pub(crate) unsafe fn leave_plain(target: &Target, sums: *mut f32, rows: usize) {
    // SAFETY: the caller's promise; `Leaving::new` has checked the lengths.
    unsafe {
        let l = &*target.leaving;
        let [before, behind] = l.adds();
        for i in 0..rows {
            for j in 0..target.columns {
                let at = sums.add(i * SUMS + j);
                let (row, column) = (target.row + i, target.column + j);
                let mut x = if l.integer { (*at).to_bits() as i32 as f32 } else { *at };
                let scale = if l.scale.is_null() { 1.0 } else { *l.scale.add(column) };
                x = x.mul_add(scale, if l.bias.is_null() { 0.0 } else { *l.bias.add(column) });
                if let Some(trip) = &l.round_trip {
                    x = trip.apply(x);
                }
                if !l.offset.is_null() {
                    x += *l.offset.add(column);
                }
                if before {
                    x += l.add.at(row, column);
                }
                if l.post.simple != Simple::None {
                    x = l.post.apply(x);
                }
                if behind {
                    x += l.add.at(row, column);
                }
                if let Some([factor, term]) = l.after() {
                    x = x.mul_add(factor, term);
                }
                *at = x;
            }
        }
        if l.is_deferred() {
            l.deferred(target, sums, rows);
        }
        for i in 0..rows {
            for j in 0..target.columns {
                let (x, to) = (*sums.add(i * SUMS + j), (target.row + i) * l.ldc + target.column + j);
                match l.to {
                    To::F32(c) => *c.add(to) = x,
                    To::Half(halves, c) => *c.add(to) = halves.bits(x),
                    To::U8(c, q) => {
                        let most = if l.most.is_null() { f32::INFINITY } else { *l.most.add(target.column + j) };
                        *c.add(to) = q.step(x.min(most)) as u8;
                    }
                }
            }
        }
    }
}
