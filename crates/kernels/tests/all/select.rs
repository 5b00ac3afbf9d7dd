//! Selections, sums and fills against plain loops, at every level of instructions and with one and three threads.

use carafe_kernels::movement::{Indices, IndicesMut};
use carafe_kernels::select::*;
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};
use std::cmp::Ordering;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n.max(1)
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
    /// Floats with ties, both zeros, infinities and NaN.
    fn float(&mut self, kinds: usize) -> f32 {
        match self.below(40) {
            0 => f32::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => f32::INFINITY,
            4 => f32::NEG_INFINITY,
            _ => self.below(kinds) as f32 / 16.0 - 10.0,
        }
    }
}

fn everywhere(check: impl Fn(&Exec<'_>)) {
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, 1 << 18).unwrap();
        for isa in Isa::available() {
            check(&Exec::new(&pool, isa, &scratch));
        }
    }
}

fn order(a: f64, b: f64, max: bool) -> Ordering {
    let by_value = if max { b.partial_cmp(&a) } else { a.partial_cmp(&b) };
    by_value.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Places of the best along the middle axis.
fn best(at: impl Fn(usize) -> f64, [outer, n, inner]: [usize; 3], k: usize, max: bool, sort: Sort) -> Vec<usize> {
    let mut positions = vec![0; outer * k * inner];
    for o in 0..outer {
        for i in 0..inner {
            let mut row: Vec<usize> = (0..n).collect();
            row.sort_by(|&a, &b| order(at((o * n + a) * inner + i), at((o * n + b) * inner + i), max));
            row.truncate(k);
            if sort == Sort::Index {
                row.sort_unstable();
            }
            row.iter().enumerate().for_each(|(r, &p)| positions[(o * k + r) * inner + i] = p);
        }
    }
    positions
}

fn check_top_k<T: Number>(
    exec: &Exec<'_>,
    data: &[T],
    wide: impl Fn(T) -> f64,
    dims: [usize; 3],
    k: usize,
    random: &mut Random,
) {
    let (max, sort) = (random.below(2) == 0, random.pick(&[Sort::Value, Sort::Index]));
    let top = TopK::new(&dims, 1, k, max, sort);
    let mut values = vec![T::narrow(T::ZERO); top.out_len()];
    let mut indices = vec![-1i64; top.out_len()];
    top.run(exec, data, &mut values, IndicesMut::I64(&mut indices));
    let wanted = best(|i| wide(data[i]), dims, k, max, sort);
    let [_, n, inner] = dims;
    for (flat, &position) in wanted.iter().enumerate() {
        assert_eq!(indices[flat], position as i64, "{dims:?} k {k} max {max} {sort:?} at {flat}");
        let from = data[(flat / inner / k * n + position) * inner + flat % inner];
        assert_eq!(bytemuck::bytes_of(&values[flat]), bytemuck::bytes_of(&from));
    }
}

#[test]
fn the_best_floats_with_ties_and_nan() {
    everywhere(|exec| {
        let mut random = Random(7);
        for round in 0..150 {
            let n = random.pick(&[1, 2, 7, 31, 32, 33, 100, 1000, if round % 30 == 0 { 40_000 } else { 64 }]);
            let dims = [1 + random.below(5), n, random.pick(&[1, 1, 2, 70])];
            let dims = if n > 5000 { [1, n, 1] } else { dims };
            let k = random.pick(&[0, 1, 2, 10, n / 2, n]).min(n);
            let kinds = random.pick(&[10, 100_000]);
            let data: Vec<f32> = (0..dims.iter().product()).map(|_| random.float(kinds)).collect();
            check_top_k(exec, &data, |x| x as f64, dims, k, &mut random);
        }
    });
}

#[test]
fn rows_of_nothing_but_nan_keep_their_order() {
    everywhere(|exec| {
        for k in [1, 3, 600] {
            let data = vec![f32::NAN; 2000];
            check_top_k(exec, &data, |x| x as f64, [1, 2000, 1], k, &mut Random(9));
        }
        let mut data = vec![f32::NAN; 5000];
        data[4990] = f32::NEG_INFINITY;
        check_top_k(exec, &data, |x| x as f64, [1, 5000, 1], 5, &mut Random(10));
        check_top_k(exec, &data, |x| x as f64, [1, 5000, 1], 1, &mut Random(11));
    });
}

#[test]
fn the_best_integers_of_every_width() {
    everywhere(|exec| {
        let mut random = Random(13);
        for _ in 0..40 {
            let dims = [1 + random.below(3), random.pick(&[1, 40, 3000]), random.pick(&[1, 3])];
            let (k, n) = (random.pick(&[1, 5, 1000]).min(dims[1]), dims.iter().product::<usize>());
            let wide: Vec<i64> = (0..n).map(|_| random.next() as i64 - (1 << 52)).collect();
            let narrow = |shift: u32| wide.iter().map(move |x| x << shift >> shift);
            check_top_k(exec, &wide, |x| x as f64, dims, k, &mut random);
            check_top_k(exec, &narrow(32).map(|x| x as i32).collect::<Vec<_>>(), |x| x as f64, dims, k, &mut random);
            check_top_k(exec, &narrow(56).map(|x| x as u8).collect::<Vec<_>>(), |x| x as f64, dims, k, &mut random);
            check_top_k(exec, &narrow(56).map(|x| x as i8).collect::<Vec<_>>(), |x| x as f64, dims, k, &mut random);
        }
    });
}

#[test]
fn running_sums_are_rounded_once() {
    everywhere(|exec| {
        let mut random = Random(17);
        for _ in 0..100 {
            let dims = [1 + random.below(40), random.pick(&[0, 1, 7, 300]), random.pick(&[1, 1, 5, 33])];
            let (exclusive, reverse) = (random.below(2) == 0, random.below(2) == 0);
            let data: Vec<f32> = (0..dims.iter().product()).map(|_| random.below(1000) as f32 / 7.0).collect();
            let whole: Vec<i32> = data.iter().map(|x| (x * 1e7) as i32).collect();
            let (mut out, mut whole_out) = (vec![0f32; data.len()], vec![0i32; data.len()]);
            let sums = CumSum::new(&dims, 1, exclusive, reverse);
            sums.run(exec, &data, &mut out);
            sums.run(exec, &whole, &mut whole_out);
            let [outer, n, inner] = dims;
            for row in 0..outer * inner {
                let (mut sum, mut whole_sum) = (0f64, 0i32);
                for i in 0..n {
                    let i = if reverse { n - 1 - i } else { i };
                    let at = (row / inner * n + i) * inner + row % inner;
                    let (next, whole_next) = (sum + data[at] as f64, whole_sum.wrapping_add(whole[at]));
                    assert_eq!(out[at], if exclusive { sum } else { next } as f32);
                    assert_eq!(whole_out[at], if exclusive { whole_sum } else { whole_next });
                    (sum, whole_sum) = (next, whole_next);
                }
            }
        }
    });
}

#[test]
fn places_that_are_not_zero() {
    everywhere(|exec| {
        let mut random = Random(19);
        for dims in [vec![], vec![0], vec![7], vec![3, 5, 2], vec![200, 331], vec![2, 3, 0]] {
            let n: usize = dims.iter().product();
            let data: Vec<f32> = (0..n).map(|_| random.pick(&[0.0, -0.0, 0.0, 1.0, f32::NAN])).collect();
            let rank = dims.len().max(1);
            let non_zero = NonZero::new(&dims);
            let counts = non_zero.count(exec, &data);
            let wanted: Vec<usize> = (0..n).filter(|&i| data[i] != 0.0).collect();
            assert_eq!(counts.total(), wanted.len());
            let mut out = vec![0i32; rank * wanted.len()];
            non_zero.fill(exec, &data, &counts, IndicesMut::I32(&mut out));
            for (column, &position) in wanted.iter().enumerate() {
                let mut left = position;
                for axis in (0..dims.len()).rev() {
                    assert_eq!(out[axis * wanted.len() + column] as usize, left % dims[axis]);
                    left /= dims[axis];
                }
            }
        }
    });
}

#[test]
fn marked_places_and_indices_that_mark_nothing() {
    everywhere(|exec| {
        let mut random = Random(23);
        for (dims, axis) in [(vec![3, 4], 2), (vec![3, 4], 0), (vec![2, 3, 4], 1), (vec![300, 7], 1), (vec![], 0)] {
            let n: usize = dims.iter().product();
            let inner: usize = dims[axis..].iter().product();
            let indices: Vec<i64> = (0..n).map(|_| random.below(16) as i64 - 8).collect();
            for from_end in [false, true] {
                let (depth, on, off) = (6, 9u16, 4u16);
                let mut out = vec![0u16; n * depth];
                let mark = OneHot::new(&dims, axis, depth, 2);
                let bytes = |x: &u16| x.to_ne_bytes();
                mark.run(
                    exec,
                    Indices::I64(&indices),
                    &bytes(&on),
                    &bytes(&off),
                    from_end,
                    bytemuck::cast_slice_mut(&mut out),
                );
                for (flat, &x) in out.iter().enumerate() {
                    let (rest, k) = (flat / inner, flat % inner);
                    let index = indices[rest / depth * inner + k];
                    let index = if from_end && index < 0 { index + depth as i64 } else { index };
                    assert_eq!(x, if index == (rest % depth) as i64 { on } else { off });
                }
            }
        }
    });
}

#[test]
fn a_sequence_is_computed_from_its_numbers() {
    everywhere(|exec| {
        let mut floats = vec![0f32; 40_001];
        range(exec, 0.5, 0.1, &mut floats);
        assert!(floats.iter().enumerate().all(|(i, &x)| x == 0.5 + i as f32 * 0.1));
        let mut bytes = [0u8; 300];
        range(exec, 250u8, 3, &mut bytes);
        assert!(bytes.iter().enumerate().all(|(i, &x)| x == 250u8.wrapping_add((i as u8).wrapping_mul(3))));
    });
}

#[test]
fn different_slices_in_either_order() {
    let mut random = Random(29);
    let mut found = Unique::default();
    for _ in 0..100 {
        let [outer, n, inner] = [1 + random.below(3), random.below(30), 1 + random.below(2)];
        let data: Vec<f32> = (0..outer * n * inner).map(|_| random.pick(&[0.0, -0.0, 1.0, f32::NAN])).collect();
        let sorted = random.below(2) == 0;
        found.find(&data, [outer, n, inner], sorted);
        let slice =
            |k: usize| -> Vec<f32> { (0..outer).flat_map(|o| data[(o * n + k) * inner..][..inner].to_vec()).collect() };
        let compare = |a: usize, b: usize| {
            let by = |(x, y): (f32, f32)| order(x as f64, y as f64, false);
            slice(a).into_iter().zip(slice(b)).map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        let mut first: Vec<usize> = (0..n).filter(|&k| (0..k).all(|j| compare(j, k).is_ne())).collect();
        if sorted {
            first.sort_by(|&a, &b| compare(a, b));
        }
        assert_eq!(found.first, first);
        assert!((0..n).all(|k| compare(first[found.inverse[k]], k).is_eq()));
        let count = |number: usize| found.inverse.iter().filter(|&&i| i == number).count();
        assert!((0..first.len()).all(|number| found.counts[number] == count(number)));
    }
}

/// The queue that defines the selection.
fn suppressed(boxes: &[[f32; 4]], scores: &[f32], limits: NmsLimits, center: bool, from: bool) -> Vec<(u32, f32)> {
    let corners = |b: [f32; 4]| match center {
        false => [b[1].min(b[3]), b[0].min(b[2]), b[1].max(b[3]), b[0].max(b[2])],
        true => [b[0] - b[2] / 2.0, b[1] - b[3] / 2.0, b[0] + b[2] / 2.0, b[1] + b[3] / 2.0],
    };
    let iou = |a: usize, b: usize| {
        let (a, b) = (corners(boxes[a]), corners(boxes[b]));
        let (w, h) = (a[2].min(b[2]) - a[0].max(b[0]), a[3].min(b[3]) - a[1].max(b[1]));
        let both = w.max(0.0) * h.max(0.0);
        let area = |b: [f32; 4]| (b[2] - b[0]) * (b[3] - b[1]);
        if both <= 0.0 { 0.0 } else { both / (area(a) + area(b) - both) }
    };
    let soft = limits.sigma > 0.0;
    let scale = if soft { -0.5 / limits.sigma } else { 0.0 };
    let mut queue: Vec<(usize, f32, usize)> =
        (0..scores.len()).filter(|&i| scores[i] > limits.score).map(|i| (i, scores[i], 0)).collect();
    let mut selected: Vec<(u32, f32)> = vec![];
    while selected.len() < limits.most && !queue.is_empty() {
        queue.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        let mut next = queue.remove(0);
        let (before, mut dropped) = (next.1, false);
        for &(other, _) in selected[next.2..].iter().rev() {
            let overlap = iou(next.0, other as usize);
            if if from { overlap >= limits.iou } else { !soft && overlap > limits.iou } {
                dropped = true;
            } else {
                next.1 *= (scale * overlap * overlap).exp();
            }
            if dropped || next.1 <= limits.score {
                break;
            }
        }
        next.2 = selected.len();
        if dropped {
            continue;
        }
        if next.1 == before {
            selected.push((next.0 as u32, next.1));
        } else if next.1 > limits.score {
            queue.push(next);
        }
    }
    selected
}

#[test]
fn suppression_is_that_of_the_queue() {
    everywhere(|exec| {
        let mut random = Random(31);
        let (mut work, mut selected) = (NmsWork::new(exec.threads()), vec![]);
        for round in 0..60 {
            let (images, classes) = (1 + random.below(2), 1 + random.below(4));
            let n = random.pick(&[0, 1, 5, 60, 200, if round == 0 { 3000 } else { 17 }]);
            let special = |random: &mut Random, x: f32| {
                if random.below(200) == 0 { random.pick(&[f32::NAN, f32::INFINITY]) } else { x }
            };
            let boxes: Vec<[f32; 4]> = (0..images * n)
                .map(|_| {
                    [0; 4].map(|_: i32| {
                        let x = random.below(50) as f32 / 4.0;
                        special(&mut random, x)
                    })
                })
                .collect();
            let kinds = random.pick(&[20, 1 << 20]);
            let scores: Vec<f32> = (0..images * classes * n)
                .map(|_| {
                    let x = random.below(kinds) as f32 / kinds as f32;
                    special(&mut random, x)
                })
                .collect();
            let limits = NmsLimits {
                candidates: usize::MAX,
                most: random.pick(&[0, 1, 10, 100, usize::MAX]),
                iou: random.pick(&[0.0, 0.3, 0.5, 1.0]),
                score: random.pick(&[-1.0, 0.0, 0.5]),
                sigma: random.pick(&[0.0, 0.0, 0.5]),
            };
            let (center, from_threshold, by_score) = (random.below(2) == 0, random.below(2) == 0, random.below(2) == 0);
            let encoding = if center { BoxEncoding::Center } else { BoxEncoding::Corner };
            let nms = Nms { images, classes, boxes: n, encoding, from_threshold, by_score };
            nms.run(exec, bytemuck::cast_slice(&boxes), &scores, limits, &mut work, &mut selected);
            let mut wanted = vec![];
            for image in 0..images {
                for class in 0..classes {
                    let scores = &scores[(image * classes + class) * n..][..n];
                    let rows = suppressed(&boxes[image * n..][..n], scores, limits, center, from_threshold);
                    wanted.extend(rows.into_iter().map(|(index, score)| Selected {
                        image: image as u32,
                        class: class as u32,
                        index,
                        score,
                    }));
                }
            }
            if by_score {
                wanted.sort_by(|a, b| {
                    b.score
                        .partial_cmp(&a.score)
                        .unwrap()
                        .then_with(|| (a.image, a.class, a.index).cmp(&(b.image, b.class, b.index)))
                });
            }
            assert_eq!(selected, wanted, "{nms:?} {limits:?}");
        }
    });
}
