//! What leaves the tiles of a product of cells (bytes, or two numbers of 16 bits): the epilogue of a unit, sorted into what is applied to sums
//! while they are near and a program for the rest, and the form in which the result is stored.

use super::elements::act_of;
use super::tile_program::{Rest, name_of};
use super::{Io, Port, Site, half};
use carafe_kernels::{Act, Addend, Halves, Quantizer, RoundTrip, TypedEpilogue, TypedOut};
use carafe_plan::elementwise::{Binary, Elt, is_column_vector, is_scalar};
use carafe_plan::{Form, Grid, Layout, RowStrides, Source};
use carafe_tensor::ElementType;

/// How an operand or a result lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stored {
    F32,
    Half(Halves),
    Bytes(Grid),
}

impl Stored {
    /// As a value lies now.
    pub(super) fn of(port: &Port) -> Stored {
        match (half::of(port.stored), port.grid) {
            (Some(halves), _) => Stored::Half(halves),
            (None, Some(grid)) if port.stored == ElementType::U8 => Stored::Bytes(grid),
            _ => Stored::F32,
        }
    }
    pub(super) fn form(self, layout: Layout) -> Form {
        match self {
            Stored::F32 => layout.into(),
            Stored::Half(halves) => Form::typed(layout, half::type_of(halves)),
            Stored::Bytes(_) => Form::typed(layout, ElementType::U8),
        }
    }
}

/// The epilogue of sums of cells, sorted into what leaves the tiles and a program for the rest.
#[derive(Clone, Debug)]
pub(super) struct Leave {
    /// Of each column; none when all are 1.
    pub(super) scale: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) round_trip: Option<RoundTrip>,
    /// Of each column, behind the rounding; empty when there is none.
    pub(super) offset: Vec<f32>,
    /// The largest number of each column before it is stored; empty when there is none.
    most: Vec<f32>,
    pub(super) add: Option<(usize, Stored)>,
    pub(super) add_last: bool,
    pub(super) act: Act,
    /// A factor and a term behind both.
    pub(super) after: Option<[f32; 2]>,
    pub(super) rest: Option<Rest>,
    /// The result is stored as bytes.
    pub(super) to: Option<Quantizer>,
    /// The result is stored as numbers of 16 bits.
    pub(super) to_half: Option<Halves>,
    pub(super) strides: RowStrides,
    name: String,
}

// How numbers are rounded to a grid, as bytes from 0 on.
fn rounding(elt: Elt) -> Option<RoundTrip> {
    match elt {
        Elt::RoundTrip(r) => {
            let (low, high) = (r.low - r.zero, r.high - r.zero);
            let zero = (r.zero - r.low) as i32;
            let quantizer = Quantizer { inverse: 1.0 / r.scale, shift: 0.0, low, high, zero };
            Some(RoundTrip { quantizer, scale: r.scale, offset: 0.0 })
        }
        Elt::Quantize(q) => {
            let inverse = q.steps / (q.from[1] - q.from[0]);
            let quantizer = Quantizer { inverse, shift: -q.from[0] * inverse, low: 0.0, high: q.steps, zero: 0 };
            let usual = inverse.is_normal() && inverse > 0.0;
            usual.then_some(RoundTrip { quantizer, scale: (q.to[1] - q.to[0]) / q.steps, offset: q.to[0] })
        }
        _ => None,
    }
}

impl Leave {
    /// For sums of which one is worth `scale` of its column. Operands are read behind the inputs in `reads`.
    pub(super) fn of(
        site: &Site<'_>,
        axis: usize,
        layout: Layout,
        scale: Vec<f32>,
        bias: Vec<f32>,
        reads: &mut Vec<(usize, Form)>,
    ) -> Option<Leave> {
        let strides = RowStrides::default();
        let mut leave = Leave {
            scale,
            bias,
            round_trip: None,
            offset: vec![],
            most: vec![],
            add: None,
            add_last: false,
            act: Act::None,
            after: None,
            rest: None,
            to: None,
            to_half: None,
            strides,
            name: String::new(),
        };
        let mut end = site.epilogue.len();
        // The last rounding is how the result is stored.
        if let Some(last) = site.epilogue.last().filter(|_| site.outputs[0].grid.is_some()) {
            let follows = last.sources == [Source::Result(end - 1)];
            if let Some(trip) = rounding(last.elt).filter(|_| follows) {
                leave.to = Some(trip.quantizer);
                end -= 1;
            }
        }
        // Integers have a scale; sums of floats are real numbers already.
        let integers = !leave.scale.is_empty();
        let mut done = 0;
        while done < end && leave.take(site, done, axis, layout, reads) {
            done += 1;
        }
        if integers && leave.limit_columns(site, done..end, axis) {
            done = end;
        }
        if done < end {
            leave.rest = Some(Rest::of(site, done..end, axis, layout, reads)?);
        }
        leave.name = leave.told();
        if integers {
            leave.count_in_steps();
        }
        Some(leave)
    }

    // Where nothing but limits, a rounding and a sum of bytes lies between sums and the steps of the result, all of it counts in
    // those steps: one multiplication is left, and limits are limits of steps.
    fn count_in_steps(&mut self) {
        let Some(to) = self.to.filter(|q| q.inverse.is_normal() && q.inverse > 0.0 && q.low <= q.high) else { return };
        let limits = match self.act {
            Act::None => [f32::NEG_INFINITY, f32::INFINITY],
            Act::Relu => [0.0, f32::INFINITY],
            Act::Clamp { min, max } => [min, max],
            _ => return,
        };
        let bytes = self.add.is_none_or(|(_, stored)| matches!(stored, Stored::Bytes(_)));
        let in_order = self.add.is_none() || !self.add_last;
        if self.rest.is_some()
            || self.after.is_some()
            || !bytes
            || !in_order
            || limits[0].is_nan()
            || limits[1].is_nan()
        {
            return;
        }
        let unit = |q: &Quantizer| Quantizer { inverse: 1.0, shift: 0.0, ..*q };
        // A sum stays one of real numbers: ties of it fall as the model says.
        let result = if self.add.is_some() { (1.0, 0.0) } else { (to.inverse, to.shift) };
        let (by, plus) = match &mut self.round_trip {
            None => result,
            Some(trip) => {
                let first = (trip.quantizer.inverse, trip.quantizer.shift);
                trip.quantizer = unit(&trip.quantizer);
                (trip.scale, trip.offset) = (trip.scale * result.0, trip.offset.mul_add(result.0, result.1));
                first
            }
        };
        self.scale.iter_mut().for_each(|s| *s *= by);
        self.bias.iter_mut().for_each(|b| *b = b.mul_add(by, plus));
        self.offset.iter_mut().for_each(|x| *x *= result.0);
        self.most.iter_mut().for_each(|x| *x = x.mul_add(to.inverse, to.shift).clamp(to.low, to.high));
        let [low, high] = limits.map(|x| x.mul_add(to.inverse, to.shift).clamp(to.low, to.high));
        self.act = Act::None;
        let quantizer = if self.add.is_some() { to } else { unit(&to) };
        self.to = Some(Quantizer { low, high, ..quantizer });
    }

    /// Whether sums become bytes by scale, bias and limits alone, all in steps.
    pub(super) fn is_in_steps(&self) -> bool {
        let to = self.to.is_some_and(|q| q.inverse == 1.0 && q.shift == 0.0);
        to && self.most.is_empty()
            && self.act == Act::None
            && self.round_trip.is_none()
            && self.add.is_none()
            && self.after.is_none()
            && self.rest.is_none()
    }

    /// Repeats the numbers of columns for each tap of a kernel; `more` of tap and column is added to sums.
    pub(super) fn spread(&mut self, taps: usize, more: impl Fn(usize, usize) -> f32) {
        let columns = self.bias.len();
        for list in [&mut self.scale, &mut self.bias, &mut self.offset, &mut self.most] {
            *list = list.repeat(taps);
        }
        for (j, bias) in self.bias.iter_mut().enumerate() {
            *bias += more(j / columns, j % columns) * self.scale.get(j).unwrap_or(&1.0);
        }
    }

    // The last operations before the rounding, where they only stretch and limit columns: limits are those of columns then.
    fn limit_columns(&mut self, site: &Site<'_>, range: std::ops::Range<usize>, axis: usize) -> bool {
        let shape = &site.outputs[0].shape;
        let highest = match self.act {
            Act::None | Act::Relu => f32::INFINITY,
            Act::Clamp { min: 0.0, max } => max,
            _ => return false,
        };
        let usual = self.to.is_some_and(|q| q.inverse.is_normal() && q.inverse > 0.0 && q.low <= q.high);
        if range.is_empty() || !usual || self.round_trip.is_some() || self.add.is_some() {
            return false;
        }
        let (mut stretch, mut most) = (vec![1f32; self.scale.len()], vec![highest; self.scale.len()]);
        for k in range {
            let op = &site.epilogue[k];
            let ([Source::Result(r), Source::Input(i)] | [Source::Input(i), Source::Result(r)]) = op.sources[..] else {
                return false;
            };
            let port = &site.inputs[i];
            let fits = r == k && (is_scalar(&port.shape) || is_column_vector(&port.shape, shape, axis));
            let Some(values) = port.floats().filter(|_| fits) else { return false };
            for j in 0..most.len() {
                let x = values[if values.len() == 1 { 0 } else { j }];
                match op.elt {
                    Elt::Binary(Binary::Multiply) if x.is_normal() && x > 0.0 => {
                        stretch[j] *= x;
                        most[j] *= x;
                    }
                    Elt::Binary(Binary::Minimum) if !x.is_nan() => most[j] = most[j].min(x),
                    _ => return false,
                }
            }
        }
        for (j, x) in stretch.into_iter().enumerate() {
            self.scale[j] *= x;
            self.bias[j] *= x;
        }
        if self.act != Act::None {
            self.act = Act::Relu;
        }
        self.most = most;
        true
    }

    // One operation into the tiles, if it comes at the right time.
    fn take(&mut self, site: &Site<'_>, k: usize, axis: usize, layout: Layout, reads: &mut Vec<(usize, Form)>) -> bool {
        let (op, shape) = (&site.epilogue[k], &site.outputs[0].shape);
        if self.after.is_some() {
            return self.take_after(site, k);
        }
        let bare = self.add.is_none() && self.act == Act::None;
        let untouched = bare && self.round_trip.is_none();
        if let Some(trip) = rounding(op.elt) {
            let first = untouched && op.sources == [Source::Result(k)];
            if first {
                self.round_trip = Some(trip);
            }
            return first;
        }
        let (input, negative) = match (op.elt, &op.sources[..]) {
            (Elt::Act(act), [Source::Result(r)]) if *r == k => {
                if self.act != Act::None || self.add_last {
                    return false;
                }
                self.act = act_of(act);
                return true;
            }
            (
                Elt::Binary(Binary::Add),
                [Source::Result(r), Source::Input(i)] | [Source::Input(i), Source::Result(r)],
            ) if *r == k => (*i, false),
            (Elt::Binary(Binary::Subtract), [Source::Result(r), Source::Input(i)]) if *r == k => (*i, true),
            (
                Elt::Binary(Binary::Multiply),
                [Source::Result(r), Source::Input(i)] | [Source::Input(i), Source::Result(r)],
            ) if *r == k && untouched => return self.scaled(&site.inputs[*i], shape, axis),
            (Elt::Binary(Binary::Multiply), _) if !bare => return self.take_after(site, k),
            (
                Elt::Binary(Binary::Multiply),
                [Source::Result(r), Source::Input(i)] | [Source::Input(i), Source::Result(r)],
            ) if *r == k && bare && self.offset.is_empty() => {
                // Steps of another width behind the rounding.
                let factor = site.inputs[*i].floats().filter(|v| v.len() == 1).map(|v| v[0]);
                let (Some(trip), Some(x)) = (&mut self.round_trip, factor) else { return false };
                (trip.scale, trip.offset) = (trip.scale * x, trip.offset * x);
                return true;
            }
            _ => return false,
        };
        let port = &site.inputs[input];
        if !bare && is_scalar(&port.shape) {
            return self.take_after(site, k);
        }
        if is_scalar(&port.shape) || is_column_vector(&port.shape, shape, axis) {
            let Some(values) = port.floats().filter(|_| bare) else { return false };
            if !untouched {
                self.offset.resize(self.bias.len(), 0.0);
            }
            let column = if untouched { &mut self.bias } else { &mut self.offset };
            for (j, b) in column.iter_mut().enumerate() {
                let x = values[if values.len() == 1 { 0 } else { j }];
                *b += if negative { -x } else { x };
            }
            return true;
        }
        if port.shape != *shape || self.add.is_some() || negative {
            return false;
        }
        let stored = Stored::of(port);
        reads.push((input, stored.form(layout)));
        self.add = Some((reads.len() - 1, stored));
        self.add_last = self.act != Act::None;
        true
    }

    // A number that the result is multiplied by, or that is added to it, behind function and sum. Bytes count such numbers in
    // their steps.
    fn take_after(&mut self, site: &Site<'_>, k: usize) -> bool {
        let op = &site.epilogue[k];
        let (Elt::Binary(function), [a, b]) = (op.elt, &op.sources[..]) else { return false };
        let input = match (a, b) {
            (Source::Result(r), Source::Input(i)) | (Source::Input(i), Source::Result(r)) if *r == k => *i,
            _ => return false,
        };
        let number = site.inputs[input].floats().filter(|v| v.len() == 1 && self.to.is_none()).map(|v| v[0]);
        let Some(x) = number else { return false };
        let [factor, term] = self.after.unwrap_or([1.0, 0.0]);
        self.after = Some(match function {
            Binary::Multiply => [factor * x, term * x],
            Binary::Add => [factor, term + x],
            Binary::Subtract if matches!(a, Source::Result(_)) => [factor, term - x],
            _ => return false,
        });
        true
    }

    fn scaled(&mut self, port: &Port, shape: &[usize], axis: usize) -> bool {
        let fits = is_scalar(&port.shape) || is_column_vector(&port.shape, shape, axis);
        let Some(values) = port.floats().filter(|_| fits) else { return false };
        for (j, (s, b)) in self.scale.iter_mut().zip(&mut self.bias).enumerate() {
            let x = values[if values.len() == 1 { 0 } else { j }];
            *s *= x;
            *b *= x;
        }
        true
    }

    /// Whether the result may be written over a read: over what is added to it, if that lies in the same type.
    pub(super) fn runs_in_place(&self, read: usize) -> bool {
        let same = |stored| match stored {
            Stored::F32 => self.to.is_none() && self.to_half.is_none(),
            Stored::Half(halves) => self.to.is_none() && self.to_half == Some(halves),
            Stored::Bytes(_) => self.to.is_some(),
        };
        self.rest.is_none() && self.add.is_some_and(|(i, stored)| i == read && same(stored))
    }

    pub(super) fn is_matrix(&self, read: usize) -> bool {
        self.add.is_some_and(|(i, _)| i == read) || self.rest.as_ref().is_some_and(|rest| rest.is_matrix(read))
    }

    /// The form of the result.
    pub(super) fn form(&self, layout: Layout) -> Form {
        Form { layout, ty: self.to.map(|_| ElementType::U8).or(self.to_half.map(half::type_of)) }
    }

    /// Calls the kernel with the epilogue and the output over the memory of a run.
    pub(super) fn with(
        &self,
        io: &mut Io<'_>,
        stride: usize,
        kernel: impl FnOnce(&Io<'_>, &TypedEpilogue<'_>, TypedOut<'_>),
    ) {
        let (bytes, io) = io.take_output::<u8>(0);
        let out = match (self.to, self.to_half) {
            (Some(quantizer), _) => TypedOut::U8(bytes, quantizer),
            (None, Some(halves)) => TypedOut::Half(halves, bytemuck::cast_slice_mut(bytes)),
            (None, None) => TypedOut::F32(bytemuck::cast_slice_mut(bytes)),
        };
        let add = self.add.map(|(i, stored)| {
            let stride = self.strides.read(i, stride);
            match stored {
                Stored::Bytes(g) if io.in_place == Some(i) => Addend::Own { scale: g.scale, zero: g.zero.into() },
                _ if io.in_place == Some(i) => Addend::Own { scale: 1.0, zero: 0 },
                Stored::Bytes(g) => Addend::U8 { data: io.inputs[i], stride, scale: g.scale, zero: g.zero.into() },
                Stored::Half(halves) => Addend::Half(halves, bytemuck::cast_slice(io.inputs[i]), stride),
                Stored::F32 => Addend::F32(bytemuck::cast_slice(io.inputs[i]), stride),
            }
        });
        let epilogue = TypedEpilogue {
            scale: (!self.scale.is_empty()).then_some(&self.scale),
            bias: Some(&self.bias),
            round_trip: self.round_trip,
            offset: Some(&self.offset[..]).filter(|o| !o.is_empty()),
            most: Some(&self.most[..]).filter(|m| !m.is_empty()),
            add,
            add_last: self.add_last,
            act: self.act,
            after: self.after,
            finish: None,
        };
        let Some(rest) = &self.rest else { return kernel(&io, &epilogue, out) };
        rest.with(&io, &self.strides, stride, |tiles| {
            let epilogue = TypedEpilogue { finish: Some(tiles), ..epilogue };
            kernel(&io, &epilogue, out);
        });
    }

    /// What it does, as the end of a kernel's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn told(&self) -> String {
        let mut name = String::new();
        if self.round_trip.is_some() {
            name += "+round";
        }
        if !self.offset.is_empty() {
            name += "+bias";
        }
        if self.add.is_some() {
            name += "+add";
        }
        name += &name_of(self.act, None);
        if self.after.is_some() {
            name += "+scale";
        }
        name += &name_of(Act::None, self.rest.as_ref());
        if self.to.is_some() {
            name += "+quantize";
        }
        name
    }
}
