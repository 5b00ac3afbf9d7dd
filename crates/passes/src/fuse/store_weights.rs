//! Weights that are stored as integers keep them, for devices that compute with integers:
//!
//! ```text
//! (Convert(stored) - zero) * scale        ->  Dequantize(stored - zero, scale)
//! whole numbers                           ->  Dequantize(integers, 1)            as the weights of a layer
//! FakeQuantize(stored, limits)            ->  Dequantize(steps, step)
//! Reshape(Dequantize(stored, scale))      ->  Dequantize(reshaped, scale)
//! Transpose(Dequantize(stored, scale))    ->  Dequantize(transposed, transposed scale)
//! ```
//!
//! Only where the integers fit i8 and there is one scale, or one for each position of one axis.

use super::look::{inputs_at, operands, stored, sweep};
use carafe_graph::{EvalEnv, Model, NodeId, Outcome, Result, Rewrite, Value, eval_node};
use carafe_ops::arithmetic::{Multiply, Subtract};
use carafe_ops::carafe::Dequantize;
use carafe_ops::convert::Convert;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Reshape, Transpose, Unsqueeze};
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};

/// Stored integers times a scale become one operation that constant folding leaves alone.
#[derive(Clone, Copy, Debug)]
pub struct StoreWeights;

impl Rewrite for StoreWeights {
    fn name(&self) -> &'static str {
        "store_weights"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if let Some(integers) = whole(model, root) {
            let name = model.node(root).name().to_string();
            let ones = vec![1; integers.shape().len()];
            let integers = model.constant(&format!("{name}/integers"), integers)?;
            let one = model.constant(&format!("{name}/one"), Tensor::from_vec(&ones, vec![1f32])?)?;
            let weights = model.add(format!("{name}/weights"), Dequantize {}, &[integers, one])?;
            model.set_input(root, 1, weights.into());
            return Ok(Outcome::Done);
        }
        let found = scaled(model, root)
            .or_else(|| rounded(model, root))
            .or_else(|| reshaped(model, root))
            .or_else(|| transposed(model, root));
        let Some((integers, scale)) = found else { return Ok(Outcome::NoMatch) };
        let name = model.node(root).name().to_string();
        let integers = model.constant(&format!("{name}/integers"), integers)?;
        let scale = model.constant(&format!("{name}/scale"), scale)?;
        let new = model.add(format!("{name}/weights"), Dequantize {}, &[integers, scale])?;
        model.replace_value(root.into(), new.into());
        model.set_name(root, format!("{name}/was"));
        model.set_name(new, name);
        sweep(model, root)?;
        Ok(Outcome::Done)
    }
}

// Integers within i8, of at least two elements.
fn as_i8(values: &[f64], shape: &[usize]) -> Option<Tensor> {
    let fits = |x: &f64| x.fract() == 0.0 && (-128.0..=127.0).contains(x);
    if values.len() < 2 || !values.iter().all(fits) {
        return None;
    }
    Tensor::from_vec(shape, values.iter().map(|x| *x as i8).collect::<Vec<_>>()).ok()
}

// A scale as wide as the rank of the data, with at most one axis of more than one element.
fn by_axis(scale: &Tensor, shape: &[usize]) -> Option<Tensor> {
    let lead = shape.len().checked_sub(scale.shape().len())?;
    let full: Vec<usize> = std::iter::repeat_n(1, lead).chain(scale.shape().iter().copied()).collect();
    let fits = full.iter().zip(shape).all(|(s, n)| *s == 1 || s == n);
    let one_axis = full.iter().filter(|n| **n > 1).count() <= 1;
    let values = scale.to_vec::<f32>().ok()?.into_owned();
    let usual = values.iter().all(|s| s.is_normal() && *s > 0.0);
    (fits && one_axis && usual).then(|| Tensor::from_vec(&full, values).ok())?
}

fn scaled(model: &Model, root: NodeId) -> Option<(Tensor, Tensor)> {
    let narrow = |v: Value| {
        let (convert, _) = model.producer::<Convert>(v)?;
        let t = model.constant_of(model.input(convert, 0)?)?;
        let ty = t.element_type();
        let small = matches!(ty, ElementType::I8 | ElementType::U8) || (ty.is_sub_byte() && ty.is_integer());
        small.then_some((t, None))
    };
    let centred = |v: Value| {
        let (id, _) = model.producer::<Subtract>(v)?;
        let &[data, zero] = inputs_at::<Subtract>(model, id)? else { return None };
        narrow(data).map(|(t, _)| (t, Some(zero)))
    };
    let ((data, zero), scale) = operands::<Multiply, _>(model, root.into(), |v| narrow(v).or_else(|| centred(v)))?;
    if model.fact(root.into()).ty != ElementType::F32 {
        return None;
    }
    let shape = data.shape().to_vec();
    let scale = by_axis(&*stored(model, scale)?, &shape)?;
    let integers = match zero {
        None if data.element_type() == ElementType::I8 => data.clone(),
        None => as_i8(&data.to_vec::<f64>().ok()?, &shape)?,
        Some(zero) => {
            let zero = stored(model, zero)?;
            let zeros = zero.to_vec::<f64>().ok()?;
            let values = data.to_vec::<f64>().ok()?;
            let per = spread(zero.shape(), &shape)?;
            as_i8(&values.iter().enumerate().map(|(i, x)| x - zeros[per(i)]).collect::<Vec<_>>(), &shape)?
        }
    };
    (integers.len() > 1).then_some((integers, scale))
}

// Weights of a layer that are whole numbers: those of operations on integers, whose scales come behind.
fn whole(model: &Model, root: NodeId) -> Option<Tensor> {
    let op = model.node(root).op();
    if !(op.is::<Convolution>() || op.is::<GroupConvolution>() || op.is::<MatMul>()) {
        return None;
    }
    let data = model.constant_of(model.input(root, 1)?)?;
    if data.element_type() != ElementType::F32 || data.len() < 2 {
        return None;
    }
    // Most weights end at their first number. At an odd address they would be copied to be looked at as floats, for good.
    let values = || data.bytes().as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
    let fits = |x: f32| x.fract() == 0.0 && (-128.0..=127.0).contains(&x);
    if !values().all(fits) {
        return None;
    }
    Tensor::from_vec(data.shape(), values().map(|x| x as i8).collect::<Vec<_>>()).ok()
}

// Which element of a small tensor meets each of the data, when it has at most one axis of more than one element.
fn spread(small: &[usize], shape: &[usize]) -> Option<impl Fn(usize) -> usize + use<>> {
    let lead = shape.len().checked_sub(small.len())?;
    let long = small.iter().position(|n| *n > 1);
    if small.iter().filter(|n| **n > 1).count() > 1 {
        return None;
    }
    let (inner, count) = match long {
        None => (1, 1),
        Some(axis) if shape[lead + axis] == small[axis] => (shape[lead + axis + 1..].iter().product(), small[axis]),
        Some(_) => return None,
    };
    Some(move |i: usize| i / inner % count)
}

fn rounded(model: &Model, root: NodeId) -> Option<(Tensor, Tensor)> {
    let levels = model.op_at::<FakeQuantize>(root)?.levels;
    let inputs = model.node(root).inputs().to_vec();
    let tensors: Vec<Tensor> = inputs.iter().map(|v| Some(stored(model, *v)?.into_owned())).collect::<Option<_>>()?;
    let [data, _, _, low, high] = &tensors[..] else { return None };
    if data.element_type() != ElementType::F32 || levels > 256 || low.shape() != high.shape() {
        return None;
    }
    let shape = data.shape().to_vec();
    let (lows, highs) = (low.to_vec::<f32>().ok()?, high.to_vec::<f32>().ok()?);
    let steps: Vec<f32> = lows.iter().zip(&*highs).map(|(l, h)| (h - l) / (levels - 1) as f32).collect();
    let scale = by_axis(&Tensor::from_vec(low.shape(), steps.clone()).ok()?, &shape)?;
    let per = spread(low.shape(), &shape)?;
    let rounded = eval_node(model, root, tensors.clone(), &mut EvalEnv::default()).ok()?;
    let mut integers = Vec::with_capacity(rounded[0].len());
    for (i, y) in rounded[0].to_vec::<f32>().ok()?.iter().enumerate() {
        let exact = f64::from(*y) / f64::from(steps[per(i)]);
        if (exact - exact.round()).abs() > 1e-3 {
            return None;
        }
        integers.push(exact.round());
    }
    Some((as_i8(&integers, &shape)?, scale))
}

// The integers and scales that a node works on, when those are its first input.
fn weights_of(model: &Model, root: NodeId) -> Option<(&Tensor, &Tensor)> {
    let (id, _) = model.producer::<Dequantize>(model.input(root, 0)?)?;
    Some((model.constant_of(model.input(id, 0)?)?, model.constant_of(model.input(id, 1)?)?))
}

fn transposed(model: &Model, root: NodeId) -> Option<(Tensor, Tensor)> {
    model.op_at::<Transpose>(root)?;
    let (integers, scale) = weights_of(model, root)?;
    let order = stored(model, model.input(root, 1)?)?.into_owned();
    let moved = |t: &Tensor| {
        let inputs = vec![t.clone(), order.clone()];
        Some(eval_node(model, root, inputs, &mut EvalEnv::default()).ok()?.swap_remove(0))
    };
    Some((moved(integers)?, moved(scale)?))
}

fn reshaped(model: &Model, root: NodeId) -> Option<(Tensor, Tensor)> {
    if model.op_at::<Reshape>(root).is_none() && model.op_at::<Unsqueeze>(root).is_none() {
        return None;
    }
    let (integers, scale) = weights_of(model, root)?;
    let shape = model.fact(root.into()).shape.to_static()?;
    // Scales of the first axis, which may be cut in two: a group and the channels of it.
    let count = scale.len();
    let mut full = vec![1; shape.len()];
    let mut taken = 1;
    for (to, n) in full.iter_mut().zip(&shape) {
        if taken >= count {
            break;
        }
        *to = *n;
        taken *= n;
    }
    let first = count == 1 || scale.shape().first() == Some(&count);
    if taken != count || !first {
        return None;
    }
    Some((integers.reshaped(&shape).ok()?, scale.reshaped(&full).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, run_passes};
    use carafe_ops::arithmetic::Add;
    use carafe_tensor::PartialShape;

    // The weights added to data, before and after the pass; the numbers stay.
    fn check(build: impl Fn(&mut Model) -> Value) -> Model {
        let mut m = Model::new("m");
        let w = build(&mut m);
        let shape = m.fact(w).shape.to_static().unwrap();
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
        let y = m.add("y", Add::default(), &[x, w]).unwrap();
        m.result("r", y.into()).unwrap();
        let before = m.clone();
        run_passes(&mut m, &[&StoreWeights], &mut Notes::default()).unwrap();
        let zeros = [Tensor::from_vec(&shape, vec![0f32; shape.iter().product()]).unwrap()];
        let (a, b) = (before.evaluate(&zeros).unwrap(), m.evaluate(&zeros).unwrap());
        let (a, b) = (a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6), "{a:?} {b:?}");
        m
    }

    fn c<T: carafe_tensor::Element>(m: &mut Model, shape: &[usize], values: &[T]) -> Value {
        m.constant("c", Tensor::from_slice(shape, values).unwrap()).unwrap()
    }

    fn widened(m: &mut Model, v: Value) -> Value {
        m.add("wide", Convert { destination_type: ElementType::F32 }, &[v]).unwrap().into()
    }

    #[test]
    fn integers_with_scales_of_rows() {
        let m = check(|m| {
            let w = c(m, &[2, 2], &[1i8, -128, 127, 4]);
            let (w, s) = (widened(m, w), c(m, &[2, 1], &[0.5f32, 0.25]));
            m.add("w", Multiply::default(), &[w, s]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Dequantize Add");
    }

    #[test]
    fn a_zero_point_is_taken_away_beforehand() {
        let m = check(|m| {
            let (w, z) = (c(m, &[2, 2], &[1u8, 255, 127, 4]), c(m, &[], &[128u8]));
            let (w, z) = (widened(m, w), widened(m, z));
            let (w, s) = (m.add("minus", Subtract::default(), &[w, z]).unwrap().into(), c(m, &[], &[0.5f32]));
            m.add("w", Multiply::default(), &[s, w]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Dequantize Add");
    }

    #[test]
    fn what_does_not_fit_stays() {
        let m = check(|m| {
            let w = c(m, &[2, 2], &[1u8, 255, 127, 4]);
            let (w, s) = (widened(m, w), c(m, &[], &[0.5f32]));
            m.add("w", Multiply::default(), &[w, s]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Convert Multiply Add");
    }

    #[test]
    fn scales_of_two_axes_stay() {
        let m = check(|m| {
            let w = c(m, &[2, 2], &[1i8, 2, 127, 4]);
            let (w, s) = (widened(m, w), c(m, &[2, 2], &[0.5f32, 1.0, 2.0, 3.0]));
            m.add("w", Multiply::default(), &[w, s]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Convert Multiply Add");
    }

    #[test]
    fn rounded_weights_become_their_steps() {
        let m = check(|m| {
            let w = c(m, &[2, 2], &[0.3f32, -1.0, 2.0, 0.4]);
            let (low, high) = (c(m, &[2, 1], &[-1f32, -2.0]), c(m, &[2, 1], &[1f32, 2.0]));
            let op = FakeQuantize { levels: 255, auto_broadcast: Default::default(), auto_broadcast_axis: None };
            m.add("w", op, &[w, low, high, low, high]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Dequantize Add");
    }

    #[test]
    fn whole_numbers_are_integers_as_the_weights_of_a_layer() {
        for (last, kind) in [(4f32, "Dequantize MatMul"), (4.5, "MatMul"), (200.0, "MatMul")] {
            let mut m = Model::new("m");
            let x = m.parameter("x", ElementType::F32, PartialShape::of(&[3, 2])).unwrap();
            let w = c(&mut m, &[2, 2], &[1f32, -128.0, 127.0, last]);
            let y = m.add("y", MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap();
            m.result("r", y.into()).unwrap();
            let before = m.clone();
            run_passes(&mut m, &[&StoreWeights], &mut Notes::default()).unwrap();
            assert_eq!(kinds(&m), kind);
            let data = [Tensor::from_slice(&[3, 2], &[1f32, 2.0, 3.0, -4.0, 0.5, 0.0]).unwrap()];
            let (a, b) = (before.evaluate(&data).unwrap(), m.evaluate(&data).unwrap());
            assert_eq!(a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        }
    }

    #[test]
    fn channels_are_cut_into_groups() {
        let m = check(|m| {
            let w = c(m, &[4, 1], &[1i8, -128, 127, 4]);
            let (w, s) = (widened(m, w), c(m, &[4, 1], &[0.5f32, 0.25, 1.0, 2.0]));
            let w = m.add("w", Multiply::default(), &[w, s]).unwrap().into();
            let to = c(m, &[3], &[2i64, 2, 1]);
            m.add("cut", Reshape { special_zero: false }, &[w, to]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Dequantize Add");
    }

    #[test]
    fn scales_go_with_the_axis_that_they_belong_to() {
        let m = check(|m| {
            let w = c(m, &[1, 2, 3], &[1i8, -128, 127, 4, 5, 6]);
            let (w, s) = (widened(m, w), c(m, &[1, 1, 3], &[0.5f32, 0.25, 1.0]));
            let w = m.add("w", Multiply::default(), &[w, s]).unwrap().into();
            let order = c(m, &[3], &[2i64, 0, 1]);
            let w = m.add("turned", Transpose, &[w, order]).unwrap().into();
            let axis = c(m, &[1], &[2i64]);
            m.add("longer", Unsqueeze {}, &[w, axis]).unwrap().into()
        });
        assert_eq!(kinds(&m), "Dequantize Add");
    }

    #[test]
    fn scales_that_are_not_above_zero_stay() {
        for bad in [0.0, -1.0, 1e-42] {
            let m = check(|m| {
                let w = c(m, &[2], &[0i8, 0]);
                let (w, s) = (widened(m, w), c(m, &[], &[bad as f32]));
                m.add("w", Multiply::default(), &[w, s]).unwrap().into()
            });
            assert!(!kinds(&m).contains("Dequantize"), "{bad}");
        }
    }
}
