//! Images sampled at points that are data, columns added back and positions of the largest: against the operations' own
//! evaluation, of random shapes.

use crate::nets::{Numbers, assert_like_eval, compile, conv, ints, weights};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::activation::Relu;
use carafe_ops::arithmetic::Add;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::convolution::{DeformableConvolution, DeformableConvolutionV1};
use carafe_ops::movement::Col2Im;
use carafe_ops::pooling::MaxPool;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn kernels(model: &Model, inputs: &[Tensor]) -> Vec<String> {
    let mut request = compile(model, &Properties::new().with("PERF_COUNT", "YES")).create_request();
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
    request.infer().unwrap();
    request.profile().into_iter().map(|p| p.kernel).collect()
}

fn check(model: &Model, inputs: &[Tensor], kernel: &str) {
    assert_like_eval(model, inputs, 2e-5);
    let found = kernels(model, inputs);
    assert!(found.iter().any(|k| k.starts_with(kernel)), "no {kernel} in {found:?}");
}

fn input(m: &mut Model, name: &str, shape: &[usize]) -> Value {
    m.parameter(name, ElementType::F32, PartialShape::of(shape)).unwrap()
}

#[test]
fn grids_of_every_kind() {
    let n = &mut Numbers(11);
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e30, 1e18, -1e12, 3e7, -1.0, 1.0, 0.0];
    for mode in [SampleMode::Nearest, SampleMode::Bilinear, SampleMode::Bicubic] {
        for padding_mode in [PaddingMode::Zeros, PaddingMode::Border, PaddingMode::Reflection] {
            for align_corners in [false, true] {
                for (channels, behind) in [(3, false), (5, true), (21, false), (40, true)] {
                    let shape = [2, channels, 1 + n.below(9), 1 + n.below(9)];
                    let points = [2, 1 + n.below(12), 1 + n.below(12), 2];
                    let mut m = Model::new("m");
                    let mut x = input(&mut m, "x", &shape);
                    if behind {
                        x = conv(&mut m, n, x, [channels, channels], 3, 1);
                    }
                    let grid = input(&mut m, "grid", &points);
                    let y = m.add("y", GridSample { align_corners, mode, padding_mode }, &[x, grid]).unwrap();
                    m.result("r", y.into()).unwrap();
                    let grid: Vec<f32> = (0..points.iter().product())
                        .map(|_| if n.below(8) == 0 { odd[n.below(odd.len())] } else { n.float() * 2.5 })
                        .collect();
                    let inputs = [n.tensor(&shape), Tensor::from_vec(&points, grid).unwrap()];
                    check(&m, &inputs, if channels == 3 { "grid_sample_planes" } else { "grid_sample_pixels" });
                }
            }
        }
    }
}

#[test]
fn convolutions_with_moved_taps() {
    let n = &mut Numbers(12);
    for (group, moves, masked, pad, auto_pad) in [
        (1, 1, false, false, PadType::Explicit),
        (1, 2, true, true, PadType::Explicit),
        (2, 1, true, false, PadType::SameUpper),
        (3, 2, false, true, PadType::SameLower),
        (1, 1, true, false, PadType::Valid),
    ] {
        let (ins, outs) = (6 * (1 + n.below(3)), group * (1 + n.below(20)));
        let shape = [2, ins, 7 + n.below(5), 7 + n.below(5)];
        let op = DeformableConvolution {
            strides: vec![1 + n.below(2) as i64, 1],
            pads_begin: vec![1, 0],
            pads_end: vec![1, 2],
            dilations: vec![1, 2],
            auto_pad,
            group: group as i64,
            deformable_group: moves as i64,
            bilinear_interpolation_pad: pad,
        };
        let out: Vec<usize> = (0..2)
            .map(|i| {
                let (size, reach) = (shape[2 + i], 2 * op.dilations[i] as usize + 1);
                let stride = op.strides[i] as usize;
                match auto_pad {
                    PadType::Explicit => (size + (op.pads_begin[i] + op.pads_end[i]) as usize - reach) / stride + 1,
                    PadType::Valid => (size - reach) / stride + 1,
                    _ => size.div_ceil(stride),
                }
            })
            .collect();
        let mut m = Model::new("m");
        let x = input(&mut m, "x", &shape);
        let offsets_shape = [2, 18 * moves, out[0], out[1]];
        let mask_shape = [2, 9 * moves, out[0], out[1]];
        let mut offsets = input(&mut m, "offsets", &offsets_shape);
        if masked {
            // As networks have them: made by a convolution.
            offsets = conv(&mut m, n, offsets, [18 * moves, 18 * moves], 1, 1);
        }
        let filters = weights(&mut m, n, &[outs, ins / group, 3, 3]);
        let mut values = vec![x, offsets, filters];
        let mut inputs = vec![n.tensor(&shape)];
        let odd = [f32::NAN, f32::INFINITY, 1e30, -1e9, 0.0, 1.0];
        let some = (0..offsets_shape.iter().product::<usize>()).map(|_| match n.below(9) {
            0 if !masked => odd[n.below(odd.len())],
            _ => n.float() * 4.0,
        });
        inputs.push(Tensor::from_vec(&offsets_shape, some.collect()).unwrap());
        let y: Value = if masked {
            values.push(input(&mut m, "mask", &mask_shape));
            inputs.push(n.tensor(&mask_shape));
            m.add("y", op, &values).unwrap().into()
        } else if pad {
            m.add("y", op, &values).unwrap().into()
        } else {
            let op = DeformableConvolutionV1 {
                strides: op.strides,
                pads_begin: op.pads_begin,
                pads_end: op.pads_end,
                dilations: op.dilations,
                auto_pad,
                group: op.group,
                deformable_group: op.deformable_group,
            };
            m.add("y", op, &values).unwrap().into()
        };
        let bias = weights(&mut m, n, &[1, outs, 1, 1]);
        let y = m.add("bias", Add::default(), &[y, bias]).unwrap().into();
        let y = m.add("relu", Relu, &[y]).unwrap().into();
        m.result("r", y).unwrap();
        check(&m, &inputs, "conv_deformable_f32+bias+relu");
    }
}

#[test]
fn columns_back_to_an_image() {
    let n = &mut Numbers(13);
    for step in [1, 2, 3] {
        let (size, kernel) = ([9 + n.below(9), 9 + n.below(9)], [1 + n.below(3), 1 + n.below(3)]);
        let (pad, dilation) = (n.below(3), 1 + n.below(2));
        let positions = |i: usize| (size[i] + 2 * pad - (kernel[i] - 1) * dilation - 1) / step + 1;
        let shape = [2, 3 * kernel[0] * kernel[1], positions(0) * positions(1)];
        let mut m = Model::new("m");
        let x = input(&mut m, "x", &shape);
        let size = ints(&mut m, &size.map(|v| v as i64));
        let kernel = ints(&mut m, &kernel.map(|v| v as i64));
        let op = Col2Im {
            strides: vec![step as i64; 2],
            dilations: vec![dilation as i64; 2],
            pads_begin: vec![pad as i64; 2],
            pads_end: vec![pad as i64; 2],
        };
        let y = m.add("y", op, &[x, size, kernel]).unwrap();
        m.result("r", y.into()).unwrap();
        check(&m, &[n.tensor(&shape)], "col2im");
    }
}

#[test]
fn largest_numbers_with_their_places() {
    let n = &mut Numbers(14);
    for (stride, axis, index) in [(2, 0, ElementType::I64), (1, 2, ElementType::I32), (3, -1, ElementType::I64)] {
        let shape = [2, 3, 8 + n.below(9), 8 + n.below(9)];
        let mut m = Model::new("m");
        let x = input(&mut m, "x", &shape);
        let op = MaxPool {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads_begin: vec![1; 2],
            pads_end: vec![0, 1],
            kernel: vec![2, 3],
            rounding_type: Rounding::Ceil,
            auto_pad: PadType::Explicit,
            index_element_type: index,
            axis,
        };
        let y = m.add("y", op, &[x]).unwrap();
        m.result("values", Value { node: y, port: 0 }).unwrap();
        m.result("places", Value { node: y, port: 1 }).unwrap();
        check(&m, &[n.tensor(&shape)], "pool_max_places");
    }
}
