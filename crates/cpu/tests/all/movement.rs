//! Operations that move elements, in both layouts, against their evaluation.

use crate::layouts::{FRONTS, Front, Random, check, front, int, ints};
use carafe_graph::{Model, NodeId, Op, Value};
use carafe_ops::movement as ops;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_tensor::ElementType;

const TYPES: [ElementType; 5] =
    [ElementType::F32, ElementType::I64, ElementType::F16, ElementType::U8, ElementType::Boolean];

/// Many shapes, each behind both fronts; `shape` may change what it is given to what the operation takes.
fn each(ranks: std::ops::RangeInclusive<i64>, build: impl Fn(&mut Model, &mut Random, Value, &[usize]) -> NodeId) {
    let mut random = Random(88_172_645_463_325_252);
    for round in 0..60 {
        let rank = random.between(*ranks.start(), *ranks.end()) as usize;
        let shape = random.shape(rank);
        let ty = if round % 3 == 0 { TYPES[round / 3 % TYPES.len()] } else { ElementType::F32 };
        for way in FRONTS {
            let mut model = Model::new("m");
            let x = front(&mut model, &mut random, way, ty, &shape);
            let op = build(&mut model, &mut random, x, &shape);
            check(model, op, &mut random);
        }
    }
}

fn add(model: &mut Model, op: impl Op, inputs: &[Value]) -> NodeId {
    model.add("op", op, inputs).expect("a node")
}

#[test]
fn concat_joins_along_any_axis() {
    each(1..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1) as usize;
        let ty = m.fact(x).ty;
        let mut inputs = vec![x];
        for _ in 0..r.between(1, 3) {
            let mut other = shape.to_vec();
            other[axis] = r.between(1, 5) as usize;
            let way = FRONTS[r.between(0, 1) as usize];
            inputs.push(front(m, r, way, ty, &other));
        }
        add(m, ops::Concat { axis: axis as i64 - if r.between(0, 1) == 0 { shape.len() as i64 } else { 0 } }, &inputs)
    });
}

#[test]
fn concat_joins_any_number_of_inputs() {
    let mut random = Random(19);
    for (round, count) in [127, 128, 129, 200, 300, 500].into_iter().enumerate() {
        let mut shape = random.shape(3);
        let axis = round % 3;
        for way in FRONTS {
            let mut model = Model::new("m");
            let x = front(&mut model, &mut random, way, ElementType::F32, &shape);
            let inputs: Vec<Value> = (0..count)
                .map(|i| {
                    shape[axis] = random.between(1, 5) as usize;
                    if i % 50 == 7 {
                        return x;
                    }
                    let tensor = random.tensor(ElementType::F32, &shape);
                    if i % 5 == 0 {
                        return model.constant(&format!("c{i}"), tensor).expect("a constant");
                    }
                    front(&mut model, &mut random, Front::Nothing, ElementType::F32, &shape)
                })
                .collect();
            let op = add(&mut model, ops::Concat { axis: axis as i64 }, &inputs);
            check(model, op, &mut random);
        }
    }
}

#[test]
fn splits_give_all_pieces() {
    each(1..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1) as usize;
        let n = shape[axis] as i64;
        let at = int(m, "axis", axis as i64);
        if r.between(0, 1) == 0 {
            return add(m, ops::Split { num_splits: n as usize }, &[x, at]);
        }
        let first = r.between(1, n);
        let lengths: &[i64] = if first == n { &[n] } else { &[first, -1] };
        let lengths = ints(m, "lengths", lengths);
        add(m, ops::VariadicSplit, &[x, at, lengths])
    });
}

#[test]
fn slices_start_anywhere_and_go_both_ways() {
    each(1..=5, |m, r, x, shape| {
        let pick = |r: &mut Random, n: usize| {
            let (n, step) = (n as i64, r.between(1, 3));
            let (a, b) = (r.between(0, n - 1), r.between(0, n - 1));
            let (low, high) = (a.min(b), a.max(b));
            match r.between(0, 2) {
                0 => (low, high + 1, step),
                1 => (high, if low == 0 { i64::MIN } else { low - 1 }, -step),
                _ => (low - n, i64::MAX, step),
            }
        };
        let cuts: Vec<(i64, i64, i64)> = shape.iter().map(|&n| pick(r, n)).collect();
        let list = |f: fn(&(i64, i64, i64)) -> i64| cuts.iter().map(f).collect::<Vec<_>>();
        let inputs =
            [ints(m, "start", &list(|c| c.0)), ints(m, "stop", &list(|c| c.1)), ints(m, "step", &list(|c| c.2))];
        add(m, ops::Slice, &[x, inputs[0], inputs[1], inputs[2]])
    });
}

#[test]
fn a_slice_of_listed_axes_keeps_the_others() {
    each(3..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1);
        let begin = r.between(0, shape[axis as usize] as i64 - 1);
        let lists = [[begin], [i64::MAX], [1], [axis]].map(|v| ints(m, &format!("v{v:?}"), &v));
        add(m, ops::Slice, &[x, lists[0], lists[1], lists[2], lists[3]])
    });
}

#[test]
fn strided_slices_pick_insert_and_leave_axes() {
    each(2..=5, |m, r, x, shape| {
        let entries = r.between(1, shape.len() as i64) as usize;
        let mut masks = vec![vec![0; entries]; 5];
        let (mut begins, mut ends, mut axis) = (vec![], vec![], 0);
        let ellipsis = r.between(0, 2 * entries as i64) as usize;
        for i in 0..entries {
            let n = shape[axis.min(shape.len() - 1)] as i64;
            let (mut begin, mut end) = (0, n);
            if i == ellipsis {
                masks[4][i] = 1;
            } else if ellipsis >= entries {
                match r.between(0, 3) {
                    0 => masks[2][i] = 1,
                    1 => {
                        masks[3][i] = 1;
                        begin = r.between(-n, n - 1);
                        axis += 1;
                    }
                    _ => {
                        begin = r.between(0, n - 1);
                        end = r.between(begin + 1, n);
                        masks[0][i] = r.between(0, 1);
                        masks[1][i] = r.between(0, 1);
                        axis += 1;
                    }
                }
            }
            begins.push(begin);
            ends.push(end);
        }
        let inputs = [ints(m, "begin", &begins), ints(m, "end", &ends), ints(m, "strides", &vec![1; entries])];
        let [begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask] = masks.try_into().expect("five");
        let op = ops::StridedSlice { begin_mask, end_mask, new_axis_mask, shrink_axis_mask, ellipsis_mask };
        add(m, op, &[x, inputs[0], inputs[1], inputs[2]])
    });
}

#[test]
fn pads_fill_repeat_mirror_and_crop() {
    for pad_mode in [PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Symmetric] {
        each(1..=5, |m, r, x, shape| {
            let most = |n: usize| match pad_mode {
                PadMode::Reflect => (n as i64 - 1).min(3),
                PadMode::Symmetric => (n as i64).min(3),
                _ => 3,
            };
            let mut list = |n: &usize| {
                let low = if *n > 2 { -1 } else { 0 };
                r.between(low, most(*n))
            };
            let begins: Vec<i64> = shape.iter().map(&mut list).collect();
            let ends: Vec<i64> = shape.iter().map(&mut list).collect();
            let (begins, ends) = (ints(m, "begins", &begins), ints(m, "ends", &ends));
            let value = r.tensor(m.fact(x).ty, &[]);
            let value = m.constant("value", value).expect("a constant");
            let op = ops::Pad { pad_mode };
            if r.between(0, 1) == 0 { add(m, op, &[x, begins, ends, value]) } else { add(m, op, &[x, begins, ends]) }
        });
    }
}

#[test]
fn tiles_repeat_every_axis() {
    each(1..=5, |m, r, x, shape| {
        let count = (shape.len() as i64 + r.between(-1, 1)).max(1) as usize;
        let repeats: Vec<i64> = (0..count).map(|_| r.between(1, 3)).collect();
        let repeats = ints(m, "repeats", &repeats);
        add(m, ops::Tile, &[x, repeats])
    });
}

#[test]
fn broadcasts_stretch_ones() {
    for mode in [BroadcastMode::Numpy, BroadcastMode::Bidirectional, BroadcastMode::Explicit] {
        each(1..=4, |m, r, x, shape| {
            let ty = m.fact(x).ty;
            // Some axes of the data become 1 first.
            let mut small = shape.to_vec();
            let axis = r.between(0, shape.len() as i64 - 1) as usize;
            small[axis] = 1;
            let x = front(m, r, Front::Convolution, ty, &small);
            let mut target: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
            let mut inputs = vec![x];
            match mode {
                BroadcastMode::Explicit => {
                    target.push(3);
                    inputs.push(ints(m, "target", &target));
                    inputs.push(ints(m, "axes", &(0..shape.len() as i64).collect::<Vec<_>>()));
                }
                _ => {
                    target.insert(0, r.between(1, 3));
                    inputs.push(ints(m, "target", &target));
                }
            }
            add(m, ops::Broadcast { mode }, &inputs)
        });
    }
}

#[test]
fn blocks_move_between_channels_and_space() {
    for mode in [BlockOrder::BlocksFirst, BlockOrder::DepthFirst] {
        each(3..=5, |m, r, x, shape| {
            let ty = m.fact(x).ty;
            let block = r.between(1, 3);
            let mut blocked = shape.to_vec();
            if r.between(0, 1) == 0 {
                blocked[1] = blocked[1].min(3) * block.pow(shape.len() as u32 - 2) as usize;
                let x = front(m, r, Front::Convolution, ty, &blocked);
                return add(m, ops::DepthToSpace { block_size: block, mode }, &[x]);
            }
            blocked[2..].iter_mut().for_each(|n| *n *= block as usize);
            let x = front(m, r, Front::Convolution, ty, &blocked);
            add(m, ops::SpaceToDepth { block_size: block, mode }, &[x])
        });
    }
}

#[test]
fn blocks_move_between_batch_and_space() {
    each(2..=5, |m, r, x, shape| {
        let ty = m.fact(x).ty;
        let blocks: Vec<i64> = (0..shape.len()).map(|a| if a == 0 { 1 } else { r.between(1, 2) }).collect();
        let crops: Vec<i64> = (0..shape.len()).map(|a| if a == 0 { 0 } else { r.between(0, 1) }).collect();
        let block = ints(m, "block", &blocks);
        let begin = ints(m, "begin", &crops);
        if r.between(0, 1) == 0 {
            let mut data = shape.to_vec();
            data[0] *= blocks.iter().product::<i64>() as usize;
            data[1..].iter_mut().for_each(|n| *n += 1);
            let x = front(m, r, Front::Convolution, ty, &data);
            let end = ints(m, "end", &vec![0; shape.len()]);
            return add(m, ops::BatchToSpace, &[x, block, begin, end]);
        }
        let end = |a: usize| (blocks[a] - (shape[a] as i64 + crops[a]) % blocks[a]) % blocks[a];
        let end = ints(m, "end", &(0..shape.len()).map(end).collect::<Vec<_>>());
        add(m, ops::SpaceToBatch, &[x, block, begin, end])
    });
}

#[test]
fn shuffles_reversals_and_rolls_keep_the_shape() {
    each(2..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1);
        match r.between(0, 2) {
            0 => {
                let n = shape[axis as usize] as i64;
                let group = (1..=n).rev().find(|g| n % g == 0 && *g < n).unwrap_or(1);
                add(m, ops::ShuffleChannels { axis, group }, &[x])
            }
            1 => {
                let axes = ints(m, "axes", &[axis]);
                add(m, ops::Reverse { mode: ReverseMode::Index }, &[x, axes])
            }
            _ => {
                let shift = ints(m, "shift", &[r.between(-9, 9), r.between(-9, 9)]);
                let axes = ints(m, "axes", &[axis, -1]);
                add(m, ops::Roll, &[x, shift, axes])
            }
        }
    });
}

#[test]
fn a_scattered_slice_lies_over_the_data() {
    each(1..=5, |m, r, x, shape| {
        let axis = r.between(0, shape.len() as i64 - 1) as usize;
        let n = shape[axis] as i64;
        let (begin, step) = (r.between(0, n - 1), r.between(1, 2));
        let mut part = shape.to_vec();
        part[axis] = ((n - begin) as usize).div_ceil(step as usize);
        let ty = m.fact(x).ty;
        let updates = front(m, r, FRONTS[r.0 as usize % 2], ty, &part);
        let lists =
            [("start", begin), ("stop", n), ("step", step), ("axes", axis as i64)].map(|(k, v)| ints(m, k, &[v]));
        add(m, ops::SliceScatter, &[x, updates, lists[0], lists[1], lists[2], lists[3]])
    });
}
