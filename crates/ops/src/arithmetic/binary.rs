//! Shared by operations of two tensors: how their shapes meet, the loop over both, and shape arithmetic on partly known
//! integers. Under `pdpd` the second tensor is laid into the first, so swapping the inputs is not allowed there.

use crate::buffer::filled;
use crate::index::offsets;
use carafe_graph::{Content, EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, Number, PartialShape, elements, strides};

carafe_graph::attr_enum! {
    /// How two shapes meet.
    #[derive(Default)]
    pub enum AutoBroadcast {
        /// They must be equal.
        None = "none" | "explicit",
        /// Aligned at the last axis; a 1 stretches.
        #[default]
        Numpy = "numpy",
        /// The second is laid into the first at an axis; only the second stretches.
        Pdpd = "pdpd",
    }
}

/// The broadcasting attributes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    mode: AutoBroadcast,
    /// Where `b` begins in `a` under `pdpd`; -1 aligns the last axes.
    axis: i64,
}

impl Meeting {
    /// A file that says `pdpd` and no axis means axis 0.
    pub fn new(mode: AutoBroadcast, axis: Option<i64>) -> Meeting {
        Meeting { mode, axis: axis.unwrap_or(0) }
    }

    /// The common shape; `None` when the shapes do not fit.
    pub fn shape(self, a: &PartialShape, b: &PartialShape) -> Option<PartialShape> {
        match self.mode {
            AutoBroadcast::None => a.merge(b),
            AutoBroadcast::Numpy => a.broadcast(b),
            AutoBroadcast::Pdpd => {
                let (Some(into), Some(from)) = (a.dims(), b.dims()) else { return Some(PartialShape::dynamic()) };
                let start = self.start(into.len(), from.len())?;
                let mut dims = into.to_vec();
                for (d, &f) in dims[start..].iter_mut().zip(from) {
                    *d = if f.contains(1) { *d } else { d.merge(f)? };
                }
                Some(PartialShape::new(dims))
            }
        }
    }

    /// Steps of `shape` along every axis of `out`, 0 where it is repeated. `None` when it does not fit; `first` says that
    /// it is the tensor others are laid into.
    pub fn strides(self, shape: &[usize], out: &[usize], first: bool) -> Option<Vec<usize>> {
        let start = match self.mode {
            AutoBroadcast::Pdpd if !first => self.start(out.len(), shape.len())?,
            _ => out.len().checked_sub(shape.len())?,
        };
        let mut steps = vec![0; out.len()];
        for (axis, (&n, step)) in shape.iter().zip(strides(shape)).enumerate() {
            match (n, out[start + axis]) {
                (1, _) => {}
                (n, m) if n == m => steps[start + axis] = step,
                _ => return None,
            }
        }
        Some(steps)
    }

    fn start(self, into: usize, from: usize) -> Option<usize> {
        let last = into.checked_sub(from)?;
        let start = if self.axis == -1 { last } else { usize::try_from(self.axis).ok()? };
        (start <= last).then_some(start)
    }
}

/// Declares an operation whose only attributes are the broadcasting ones, and its `meeting()`.
macro_rules! broadcasting {
    ($(#[$meta:meta])* pub struct $name:ident;) => {
        #[derive(::carafe_graph::Op, Clone, Debug, Default, PartialEq)]
        $(#[$meta])*
        pub struct $name {
            /// How the two shapes meet.
            #[attr(default = $crate::arithmetic::AutoBroadcast::Numpy)]
            pub auto_broadcast: $crate::arithmetic::AutoBroadcast,
            /// Axis of the first input where the second begins, with `pdpd` only: 0 when left out, -1 aligns the last axes.
            #[attr(name = "auto_broadcast.auto_broadcast_axis", default = None)]
            pub auto_broadcast_axis: Option<i64>,
        }

        impl $name {
            fn meeting(&self) -> $crate::arithmetic::Meeting {
                $crate::arithmetic::Meeting::new(self.auto_broadcast, self.auto_broadcast_axis)
            }
        }
    };
}
pub(crate) use broadcasting;

/// The common shape of the first two inputs.
pub(crate) fn infer_shape(cx: &InferCx<'_>, meeting: Meeting) -> Result<PartialShape> {
    let (a, b) = (cx.shape(0), cx.shape(1));
    meeting.shape(a, b).ok_or_else(|| {
        let rule = match meeting.mode {
            AutoBroadcast::Pdpd => format!("pdpd at axis {}", meeting.axis),
            mode => mode.text().to_string(),
        };
        cx.fail(format!("shapes [{a}] and [{b}] do not broadcast ({rule})"))
    })
}

/// Two inputs of one numeric type, output alike.
pub(crate) fn infer(cx: &mut InferCx<'_>, meeting: Meeting) -> Result<()> {
    cx.require_number(0)?;
    cx.require_number(1)?;
    let ty = cx.same_type(&[0, 1])?;
    let shape = infer_shape(cx, meeting)?;
    cx.set(0, ty, shape);
    Ok(())
}

/// As [`infer`], and says what is known of each element when one of the inputs is a partly known shape.
pub(crate) fn infer_dims(cx: &mut InferCx<'_>, meeting: Meeting, f: impl Fn(Dim, Dim) -> Dim) -> Result<()> {
    infer(cx, meeting)?;
    let contents = [&cx.fact(0).content, &cx.fact(1).content];
    let partial = contents.iter().any(|c| matches!(c, Content::Partial(_)));
    // Two exact values are evaluated instead, which is exact about overflow too.
    if !partial || contents.iter().any(|c| matches!(c, Content::Unknown)) {
        return Ok(());
    }
    let out = meeting.shape(cx.shape(0), cx.shape(1)).and_then(|s| s.to_static());
    let (Some(sa), Some(sb), Some(out)) = (cx.shape(0).to_static(), cx.shape(1).to_static(), out) else {
        return Ok(());
    };
    let steps = (meeting.strides(&sa, &out, true), meeting.strides(&sb, &out, false));
    if let (Some(a), Some(b), (Some(ta), Some(tb))) = (cx.dims_value(0), cx.dims_value(1), steps) {
        let dims = offsets(&out, &ta).zip(offsets(&out, &tb)).map(|(i, j)| f(a[i], b[j])).collect();
        cx.set_dims_value(0, dims);
    }
    Ok(())
}

/// Applies `f` to every pair of elements and stores the results.
pub(crate) fn map<T: Number, U: Number>(cx: &mut EvalCx<'_>, meeting: Meeting, f: impl Fn(T, T) -> U) -> Result<()> {
    map_rows(cx, meeting, &|out, a, b, steps| row(out, a, b, steps, |x, y| f(*x, *y)))
}

/// A function of a row of the output and where the rows of both tensors begin, with the steps along them.
type RowOf<'a, A, B, U> = &'a dyn Fn(&mut [U], &[A], &[B], [usize; 2]);

// Knows types and no function, so that each function is compiled as the loops over a row and nothing else.
fn map_rows<T: Number, U: Number>(cx: &mut EvalCx<'_>, meeting: Meeting, row: RowOf<'_, T, T, U>) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let data = {
        let (a, b) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
        each_row(cx, meeting, &shape, &a, &b, row)?
    };
    cx.put(0, &shape, data)
}

/// `f` of every pair of elements, in the order of the output.
pub(crate) fn pairs<A, B, U: Clone + Default>(
    cx: &EvalCx<'_>,
    meeting: Meeting,
    shape: &[usize],
    a: &[A],
    b: &[B],
    f: impl Fn(&A, &B) -> U,
) -> Result<Vec<U>> {
    each_row(cx, meeting, shape, a, b, &|out, a, b, steps| row(out, a, b, steps, &f))
}

fn row<A, B, U>(out: &mut [U], a: &[A], b: &[B], steps: [usize; 2], f: impl Fn(&A, &B) -> U) {
    let n = out.len();
    if steps == [1, 1] {
        let (a, b) = (&a[..n], &b[..n]);
        for k in 0..n {
            out[k] = f(&a[k], &b[k]);
        }
    } else {
        for k in 0..n {
            out[k] = f(&a[k * steps[0]], &b[k * steps[1]]);
        }
    }
}

fn each_row<A, B, U: Clone + Default>(
    cx: &EvalCx<'_>,
    meeting: Meeting,
    shape: &[usize],
    a: &[A],
    b: &[B],
    row: RowOf<'_, A, B, U>,
) -> Result<Vec<U>> {
    let rows = Rows::of(cx, meeting, shape)?;
    // Two small tensors can span an absurd one.
    let mut out = filled(shape, U::default())?;
    let mut left = &mut out[..];
    rows.each(&mut |i, j| {
        let (now, rest) = std::mem::take(&mut left).split_at_mut(rows.len);
        left = rest;
        row(now, &a[i..], &b[j..], rows.steps);
    });
    Ok(out)
}

/// How two tensors are walked through: rows of the output, where each begins in both, and the steps along a row. It knows no
/// element type, so that the code of a function over elements is its loop over a row and nothing else.
struct Rows {
    /// All axes but the last, with the strides of both tensors.
    outer: Vec<usize>,
    strides: [Vec<usize>; 2],
    len: usize,
    steps: [usize; 2],
}

impl Rows {
    fn of(cx: &EvalCx<'_>, meeting: Meeting, shape: &[usize]) -> Result<Rows> {
        if cx.shape(0) == shape && cx.shape(1) == shape {
            let len = elements(shape).unwrap_or(0);
            return Ok(Rows { outer: vec![], strides: [vec![], vec![]], len, steps: [1, 1] });
        }
        let strides = (meeting.strides(cx.shape(0), shape, true), meeting.strides(cx.shape(1), shape, false));
        let (Some(mut a), Some(mut b)) = strides else {
            return Err(
                cx.fail(format!("shapes {:?} and {:?} do not broadcast to {shape:?}", cx.shape(0), cx.shape(1)))
            );
        };
        // Equal shapes were handled above, so at least one axis exists.
        let steps = [a.pop().unwrap_or(0), b.pop().unwrap_or(0)];
        let (outer, len) = (shape[..a.len()].to_vec(), shape[a.len()]);
        Ok(Rows { outer, strides: [a, b], len, steps })
    }

    fn each(&self, row: &mut dyn FnMut(usize, usize)) {
        let [a, b] = &self.strides;
        offsets(&self.outer, a).zip(offsets(&self.outer, b)).for_each(|(i, j)| row(i, j));
    }
}

/// Refuses an integer division by zero.
pub(crate) fn refuse_zero_divisor(cx: &EvalCx<'_>) -> Result<()> {
    let ty = cx.ty(1);
    if ty.is_float() || cx.input(0).is_empty() {
        return Ok(());
    }
    let zero = match ty {
        ElementType::U64 => cx.get::<u64>(1)?.contains(&0),
        _ => cx.get::<i64>(1)?.contains(&0),
    };
    if zero { Err(cx.fail(format!("division of {ty} by zero"))) } else { Ok(()) }
}

/// A partly known integer about which nothing is known.
pub(crate) fn any_integer() -> Dim {
    Dim::range(i64::MIN, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::{Add, Divide, FloorMod, Maximum, Minimum, Mod, Multiply, Subtract};
    use crate::convert::Convert;
    use crate::reduce::{ReduceMax, ReduceProd, ReduceSum};
    use carafe_graph::{Fact, NodeId, Op, infer_op};
    use carafe_tensor::Tensor;

    /// What is known of the output when the first input is a shape read from `dims` and the second a constant.
    fn known(op: &dyn Op, dims: &str, second: &[i64]) -> String {
        let dims = dims.parse::<PartialShape>().unwrap().dims().unwrap().to_vec();
        let mut first = Fact::new(ElementType::I64, PartialShape::of(&[dims.len()]));
        first.content = Content::Partial(dims);
        let second = Fact::of(&Tensor::from_slice(&[second.len()], second).unwrap());
        let inputs = [&first, &second];
        let inputs = &inputs[..op.info().inputs.len()];
        let out = infer_op("", NodeId(0), op, inputs, false).unwrap();
        PartialShape::new(out[0].dims().unwrap()).to_string()
    }

    #[test]
    fn shape_arithmetic_keeps_what_is_known() {
        assert_eq!(known(&Add::default(), "?,2..5,7", &[1]), "1..,3..6,8");
        assert_eq!(known(&Subtract::default(), "5..9,7", &[2, 3]), "3..7,4");
        assert_eq!(known(&Multiply::default(), "?,2..5,7", &[2]), "?,4..10,14");
        assert_eq!(known(&Divide::default(), "?,2..5,7", &[2]), "?,1..2,3");
        assert_eq!(known(&Mod::default(), "?,2..3,7", &[4]), "..3,2..3,3");
        assert_eq!(known(&FloorMod::default(), "?,2..3,7", &[4]), "..3,2..3,3");
        assert_eq!(known(&Maximum::default(), "?,2..5,7", &[3]), "3..,3..5,7");
        assert_eq!(known(&Minimum::default(), "?,2..5,7", &[3]), "..3,2..3,3");
    }

    #[test]
    fn shapes_stay_known_through_conversion_and_reduction() {
        assert_eq!(known(&Convert { destination_type: ElementType::I32 }, "?,2..5", &[]), "?,2..5");
        assert_eq!(known(&ReduceProd { keep_dims: true }, "2..5,7", &[0]), "14..35");
        assert_eq!(known(&ReduceSum { keep_dims: false }, "2..5,7", &[0]), "9..12");
        assert_eq!(known(&ReduceMax { keep_dims: false }, "2..5,3", &[0]), "3..5");
    }

    fn meet(mode: AutoBroadcast, axis: i64, a: &str, b: &str) -> Option<String> {
        let shape = |text: &str| text.parse::<PartialShape>().unwrap();
        Meeting::new(mode, Some(axis)).shape(&shape(a), &shape(b)).map(|s| s.to_string())
    }

    #[test]
    fn pdpd_lays_the_second_into_the_first() {
        let pdpd = |axis, a, b| meet(AutoBroadcast::Pdpd, axis, a, b);
        assert_eq!(pdpd(1, "2,3,4,5", "3,4").as_deref(), Some("2,3,4,5"));
        assert_eq!(pdpd(-1, "2,3,4", "3,1").as_deref(), Some("2,3,4"));
        assert_eq!(pdpd(1, "?,?,4", "3").as_deref(), Some("?,3,4"));
        assert_eq!(pdpd(1, "2,1,4", "3"), None);
        assert_eq!(pdpd(2, "2,3,4", "1,1"), None);
        assert_eq!(pdpd(-1, "3,4", "1,3,4"), None);
        assert_eq!(pdpd(-2, "2,3,4", "4"), None);
    }

    #[test]
    fn none_wants_equal_shapes() {
        assert_eq!(meet(AutoBroadcast::None, 0, "?,3", "2,?").as_deref(), Some("2,3"));
        assert_eq!(meet(AutoBroadcast::None, 0, "2,3", "1,3"), None);
    }
}
