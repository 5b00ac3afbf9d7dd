//! Values without elements beside operations that are fused: the device gives what the operations give.

use crate::nets::{Numbers, compile};
use carafe_device::Properties;
use carafe_graph::{AttrMap, AttrValue, Model, Value};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn op(m: &mut Model, kind: &str, attrs: &[(&str, &str)], inputs: &[Value]) -> Value {
    let mut map = AttrMap::default();
    attrs.iter().for_each(|(name, value)| map.set(*name, AttrValue::Text(value.to_string())));
    let made = carafe_ops::registry().newest(kind).expect(kind).create(&map).expect(kind);
    let name = format!("{kind}{}", m.len());
    m.add_ref(name, made, inputs).expect(kind).into()
}

fn weights(m: &mut Model, shape: &[usize]) -> Value {
    crate::nets::weights(m, &mut Numbers(5), shape)
}

const PRODUCT: [(&str, &str); 2] = [("transpose_a", "false"), ("transpose_b", "false")];
const WINDOW: [(&str, &str); 4] =
    [("strides", "1,1"), ("pads_begin", "1,1"), ("pads_end", "1,1"), ("dilations", "1,1")];

// Elementwise work of every form behind a value.
fn behind(m: &mut Model, y: Value, columns: usize, axis_from_end: usize) -> Value {
    let bias: Vec<usize> = std::iter::once(columns).chain(vec![1; axis_from_end]).collect();
    let bias = weights(m, &bias);
    let y = op(m, "Add", &[], &[y, bias]);
    let y = op(m, "Relu", &[], &[y]);
    let two = m.constant(&format!("two{}", m.len()), Tensor::scalar(2f32)).unwrap();
    op(m, "Multiply", &[], &[y, two])
}

// With the shapes as they are, and with all dimensions open.
fn check(what: &str, shapes: &[&[usize]], make: impl Fn(&mut Model, &[Value]) -> Value) {
    for open in [false, true] {
        let mut m = Model::new("m");
        let parameter = |m: &mut Model, i: usize, shape: &[usize]| {
            let any = PartialShape::any_of_rank(shape.len());
            let shape = if open { any } else { PartialShape::of(shape) };
            m.parameter(&format!("x{i}"), ElementType::F32, shape).unwrap()
        };
        let xs: Vec<Value> = shapes.iter().enumerate().map(|(i, s)| parameter(&mut m, i, s)).collect();
        let y = make(&mut m, &xs);
        m.result("y", y).unwrap();
        let inputs: Vec<Tensor> = shapes.iter().map(|s| Numbers(9).tensor(s)).collect();
        let wanted = m.evaluate(&inputs).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut request = compile(&m, &Properties::new()).create_request();
        for _ in 0..2 {
            inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
            request.infer().unwrap_or_else(|e| panic!("{what}, open {open}: {e}"));
            let found = request.output(0).unwrap();
            assert_eq!(found.shape(), wanted[0].shape(), "{what}");
            let (a, b) = (found.to_vec::<f32>().unwrap(), wanted[0].to_vec::<f32>().unwrap());
            for (a, b) in a.iter().zip(b.iter()) {
                assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{what}, open {open}: {a}, expected {b}");
            }
        }
    }
}

#[test]
fn a_product_over_nothing_is_zero_and_what_follows_is_done() {
    check("weights", &[&[2, 0]], |m, x| {
        let w = weights(m, &[0, 3]);
        let y = op(m, "MatMul", &PRODUCT, &[x[0], w]);
        behind(m, y, 3, 0)
    });
    check("two computed", &[&[4, 2, 0], &[4, 0, 3]], |m, x| {
        let y = op(m, "MatMul", &PRODUCT, &[x[0], x[1]]);
        behind(m, y, 3, 0)
    });
    check("no rows", &[&[0, 4]], |m, x| {
        let w = weights(m, &[4, 3]);
        let y = op(m, "MatMul", &PRODUCT, &[x[0], w]);
        behind(m, y, 3, 0)
    });
}

#[test]
fn an_adapter_of_rank_zero_adds_nothing() {
    check("adapter", &[&[2, 4]], |m, x| {
        let (w, a, b) = (weights(m, &[4, 5]), weights(m, &[4, 0]), weights(m, &[0, 5]));
        let main = op(m, "MatMul", &PRODUCT, &[x[0], w]);
        let low = op(m, "MatMul", &PRODUCT, &[x[0], a]);
        let low = op(m, "MatMul", &PRODUCT, &[low, b]);
        let y = op(m, "Add", &[], &[main, low]);
        behind(m, y, 5, 0)
    });
    check("two products of nothing", &[&[2, 0], &[2, 0]], |m, x| {
        let (a, b) = (weights(m, &[0, 5]), weights(m, &[0, 5]));
        let a = op(m, "MatMul", &PRODUCT, &[x[0], a]);
        let b = op(m, "MatMul", &PRODUCT, &[x[1], b]);
        let y = op(m, "Add", &[], &[a, b]);
        behind(m, y, 5, 0)
    });
    check("transposed", &[&[0, 2], &[3, 0]], |m, x| {
        let y = op(m, "MatMul", &[("transpose_a", "true"), ("transpose_b", "true")], &[x[0], x[1]]);
        behind(m, y, 3, 0)
    });
}

#[test]
fn convolutions_over_no_channels_or_no_images() {
    check("no images", &[&[0, 3, 5, 5]], |m, x| {
        let w = weights(m, &[4, 3, 3, 3]);
        let y = op(m, "Convolution", &WINDOW, &[x[0], w]);
        behind(m, y, 4, 2)
    });
    check("no channels", &[&[1, 0, 5, 5]], |m, x| {
        let w = weights(m, &[4, 0, 3, 3]);
        let y = op(m, "Convolution", &WINDOW, &[x[0], w]);
        behind(m, y, 4, 2)
    });
    check("backwards, no channels", &[&[1, 0, 5, 5]], |m, x| {
        let w = weights(m, &[0, 4, 3, 3]);
        let y = op(m, "ConvolutionBackpropData", &WINDOW, &[x[0], w]);
        behind(m, y, 4, 2)
    });
    check("depthwise, no images", &[&[0, 4, 5, 5]], |m, x| {
        let w = weights(m, &[4, 1, 1, 3, 3]);
        let y = op(m, "GroupConvolution", &WINDOW, &[x[0], w]);
        behind(m, y, 4, 2)
    });
}

#[test]
fn reductions_of_nothing() {
    for kind in ["ReduceSum", "ReduceProd"] {
        check(kind, &[&[3, 0]], |m, x| {
            let axes = crate::nets::ints(m, &[1]);
            let y = op(m, kind, &[("keep_dims", "true")], &[x[0], axes]);
            behind(m, y, 1, 0)
        });
    }
    check("softmax of nothing", &[&[3, 0]], |m, x| {
        let y = op(m, "Softmax", &[("axis", "1")], &[x[0]]);
        let axes = crate::nets::ints(m, &[1]);
        let y = op(m, "ReduceSum", &[("keep_dims", "true")], &[y, axes]);
        behind(m, y, 1, 0)
    });
}

#[test]
fn a_join_with_an_empty_part_and_work_behind_it() {
    check("concat", &[&[2, 3], &[2, 0]], |m, x| {
        let y = op(m, "Concat", &[("axis", "1")], &[x[0], x[1]]);
        behind(m, y, 3, 0)
    });
    check("normalization of no rows", &[&[0, 6]], |m, x| {
        let axes = crate::nets::ints(m, &[1]);
        let attrs = [("normalize_variance", "true"), ("eps", "1e-5"), ("eps_mode", "inside_sqrt")];
        let y = op(m, "MVN", &attrs, &[x[0], axes]);
        behind(m, y, 6, 0)
    });
}

#[test]
fn more_work_behind_a_product_than_one_step_takes() {
    // Each operand is another tensor, so that neither the step of the product nor one group holds them all.
    let shapes: Vec<&[usize]> = vec![&[2, 4]; 40];
    for k in [4, 0] {
        check("many sums", &shapes, |m, x| {
            let w = weights(m, &[4, k]);
            let v = weights(m, &[k, 4]);
            let y = op(m, "MatMul", &PRODUCT, &[x[0], w]);
            let mut y = op(m, "MatMul", &PRODUCT, &[y, v]);
            for (i, other) in x[1..].iter().enumerate() {
                y = op(m, ["Add", "Multiply", "Maximum"][i % 3], &[], &[y, *other]);
            }
            y
        });
    }
}
