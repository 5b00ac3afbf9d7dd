//! Operations of XLA. TensorFlow runs them in compiled functions alone, so the numbers are small enough to be had by hand.

use crate::common::{Proto, check_error, dtype, evaluate, graph, node, placeholder, read};

fn ints(name: &str, dims: &[i64], values: &[i64]) -> Proto {
    let shape = dims.iter().fold(Proto::new(), |s, d| s.message(2, Proto::new().int(1, *d)));
    let tensor = values.iter().fold(Proto::new().int(1, 9).message(2, shape), |t, v| t.int(10, *v));
    node(name, "Const", &[], &[("dtype", dtype(9)), ("value", Proto::new().message(8, tensor))])
}

fn text(message: &Proto) -> Proto {
    Proto::new().bytes(2, &message.0)
}

fn dot(numbers: &Proto) -> Proto {
    let y = node(
        "y",
        "XlaDotV2",
        &["a", "b"],
        &[("dimension_numbers", text(numbers)), ("precision_config", text(&Proto::new()))],
    );
    graph(&[placeholder("a", &[2, 2, 3]), placeholder("b", &[3, 2, 2]), y])
}

#[test]
fn a_product_contracts_and_batches_any_axes() {
    // Over the last axis of a and the first of b; the first of a is in step with the last of b.
    let model = read(dot(&Proto::new().int(1, 2).int(2, 0).int(3, 0).int(4, 2)).0).unwrap();
    let a: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..12).map(|i| (i % 5) as f32).collect();
    let found = evaluate(&model, &[(&[2, 2, 3], &a), (&[3, 2, 2], &b)]);
    let mut wanted = vec![];
    for batch in 0..2 {
        for i in 0..2 {
            for j in 0..2 {
                wanted.push((0..3).map(|k| a[batch * 6 + i * 3 + k] * b[k * 4 + j * 2 + batch]).sum::<f32>());
            }
        }
    }
    assert_eq!(found, [(vec![2, 2, 2], wanted)]);
}

#[test]
fn axes_that_are_not_there_are_refused() {
    check_error(dot(&Proto::new().int(1, 7).int(2, 0)).0, "names an axis twice, or one that is not there");
    check_error(dot(&Proto::new().int(1, 2)).0, "pairs different numbers of axes");
}

// Of data [N, H, W, C] with filters [H, W, I, O]; the result is [N, H, W, C].
fn convolution(groups: i64) -> Proto {
    let channels_last = Proto::new().int(3, 2).int(4, 3).int(6, 0).int(6, 1).int(7, 0).int(8, 3);
    let channels_last = channels_last.int(9, 0).int(10, 3).int(11, 1).int(11, 2).int(12, 1).int(12, 2);
    let inputs = ["x", "w", "strides", "pads", "ones", "ones", "groups"];
    graph(&[
        placeholder("x", &[1, 3, 3, 2]),
        placeholder("w", &[2, 2, 2 / groups, 2]),
        ints("strides", &[2], &[1, 1]),
        ints("pads", &[2, 2], &[1, 0, 0, 0]),
        ints("ones", &[2], &[1, 1]),
        ints("groups", &[], &[groups]),
        node("y", "XlaConvV2", &inputs, &[("dimension_numbers", text(&channels_last))]),
    ])
}

#[test]
fn a_convolution_has_its_axes_anywhere() {
    for groups in [1, 2] {
        let model = read(convolution(groups).0).unwrap();
        let depth = 2 / groups as usize;
        let x: Vec<f32> = (0..18).map(|i| (i % 7) as f32).collect();
        let w: Vec<f32> = (0..8 * depth).map(|i| (i % 3) as f32 - 1.0).collect();
        let found = evaluate(&model, &[(&[1, 3, 3, 2], &x), (&[2, 2, depth, 2], &w)]);
        let mut wanted = vec![];
        for (row, column, out) in (0..3).flat_map(|r| (0..2).flat_map(move |c| (0..2).map(move |o| (r, c, o)))) {
            let mut sum = 0.0;
            for (i, j, k) in (0..2).flat_map(|i| (0..2).flat_map(move |j| (0..depth).map(move |k| (i, j, k)))) {
                // One row of zeros stands above.
                if row + i >= 1 {
                    let channel = if groups == 2 { out } else { k };
                    sum += x[(row + i - 1) * 6 + (column + j) * 2 + channel] * w[((i * 2 + j) * depth + k) * 2 + out];
                }
            }
            wanted.push(sum);
        }
        assert_eq!(found, [(vec![1, 3, 2, 2], wanted)], "{groups} groups");
    }
}
