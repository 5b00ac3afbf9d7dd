//! Copies, gathers and scatters against plain loops, at every level of instructions and with one and three threads.

use carafe_kernels::movement::*;
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};

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
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }
    fn dims(&mut self, rank: usize, most: usize) -> Vec<usize> {
        let mut left = most;
        (0..rank)
            .map(|_| {
                let n = self.pick(&[1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 23, 64, 131]).min(left.max(1));
                left /= n;
                n
            })
            .collect()
    }
}

fn everywhere(check: impl Fn(&Exec<'_>)) {
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, 1 << 16).unwrap();
        for isa in Isa::available() {
            check(&Exec::new(&pool, isa, &scratch));
        }
    }
}

/// What a view shows, element by element.
fn seen(view: &View, data: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for flat in 0..view.elements() {
        let (mut left, mut at) = (flat, view.start as isize);
        for axis in (0..view.rank()).rev() {
            at += (left % view.dims[axis]) as isize * view.strides[axis];
            left /= view.dims[axis];
        }
        out.extend_from_slice(&data[at as usize * size..(at as usize + 1) * size]);
    }
    out
}

fn check_view(exec: &Exec<'_>, view: &View, data: &[u8], size: usize) {
    let copy = StridedCopy::of(view, size);
    let mut out = vec![0xee; view.elements() * size + 64];
    copy.run(exec, data, &mut out);
    let wanted = seen(view, data, size);
    assert!(out[..wanted.len()] == wanted, "{view:?} of {size} bytes, {:?}, {copy:?}", exec.isa);
    assert!(out[wanted.len()..].iter().all(|&b| b == 0xee), "{view:?} wrote too much");
}

#[test]
fn any_permutation_of_any_element_size() {
    everywhere(|exec| {
        let mut random = Random(7);
        for round in 0..300 {
            let rank = 1 + random.below(5);
            let dims = random.dims(rank, if round % 20 == 0 { 1 << 18 } else { 1 << 12 });
            let size = random.pick(&[1, 2, 4, 4, 8, 16]);
            let order = random.order(rank);
            let data = random.bytes(dims.iter().product::<usize>() * size);
            check_view(exec, &View::whole(&dims).permuted(&order), &data, size);
        }
    });
}

#[test]
fn two_axes_of_every_small_size_are_swapped() {
    everywhere(|exec| {
        let mut random = Random(3);
        for rows in (1..20).chain([31, 64, 65, 127, 130]) {
            for columns in (1..20).chain([63, 64, 67, 129, 200]) {
                for size in [1, 2, 4, 8] {
                    let data = random.bytes(2 * rows * columns * size);
                    check_view(exec, &View::whole(&[2, rows, columns]).permuted(&[0, 2, 1]), &data, size);
                }
            }
        }
    });
}

#[test]
fn long_axes_of_two_and_three_are_woven() {
    everywhere(|exec| {
        let mut random = Random(5);
        for n in [2, 3] {
            for long in [1, 7, 8, 9, 5000, 50176] {
                let data = random.bytes(n * long * 4);
                check_view(exec, &View::whole(&[n, long]).permuted(&[1, 0]), &data, 4);
                check_view(exec, &View::whole(&[long, n]).permuted(&[1, 0]), &data, 4);
            }
        }
    });
}

#[test]
fn slices_steps_and_reversals_of_permuted_views() {
    everywhere(|exec| {
        let mut random = Random(11);
        for _ in 0..300 {
            let rank = 1 + random.below(4);
            let dims = random.dims(rank, 1 << 12);
            let size = random.pick(&[1, 2, 4, 8, 16]);
            let mut view = View::whole(&dims).permuted(&random.order(rank));
            for axis in 0..rank {
                let n = view.dims[axis];
                let (begin, step) = (random.below(n), 1 + random.below(3));
                let room = if random.below(2) == 0 { begin / step + 1 } else { (n - begin).div_ceil(step) };
                let back = room == begin / step + 1 && begin >= (room - 1) * step;
                let step = if back { -(step as isize) } else { step as isize };
                let len = 1 + random.below(room);
                view = view.sliced(axis, begin, step, len);
            }
            let data = random.bytes(dims.iter().product::<usize>() * size);
            check_view(exec, &view, &data, size);
        }
    });
}

#[test]
fn rows_of_every_length_keep_their_neighbours() {
    everywhere(|exec| {
        let mut random = Random(13);
        for row in (1..140).chain([191, 192, 255, 256, 257, 768, 2047, 2048, 5000]) {
            // Out of wider rows, and into wider rows.
            let data = random.bytes(7 * (row + 3));
            check_view(exec, &View::of_rows(&[7, row], row + 3), &data, 1);
            let mut out = vec![0xee; 7 * (row + 3)];
            let copy = StridedCopy::between(&View::whole(&[7, row]), &View::of_rows(&[7, row], row + 3), 1);
            copy.run(exec, &data[..7 * row], &mut out);
            for (i, line) in out.chunks(row + 3).enumerate() {
                assert_eq!(line[..row], data[i * row..(i + 1) * row]);
                assert_eq!(line[row..], [0xee; 3]);
            }
        }
    });
}

#[test]
fn broadcasts_repeat_axes() {
    everywhere(|exec| {
        let mut random = Random(17);
        for _ in 0..200 {
            let rank = 1 + random.below(4);
            let out = random.dims(rank, 1 << 12);
            let kept = random.below(rank + 1);
            let axes: Vec<usize> = (rank - kept..rank).collect();
            let own: Vec<usize> = axes.iter().map(|&a| if random.below(2) == 0 { 1 } else { out[a] }).collect();
            let size = random.pick(&[1, 2, 4, 8, 16]);
            let data = random.bytes(own.iter().product::<usize>() * size);
            check_view(exec, &View::whole(&own).stretched(&out, &axes), &data, size);
        }
    });
}

#[test]
fn a_tile_repeats_whole_axes() {
    everywhere(|exec| {
        let data: Vec<u8> = (0..12).collect();
        let mut out = [0; 48];
        StridedCopy::tile(&[3, 4], &[2, 2], 1).run(exec, &data, &mut out);
        for i in 0..6 {
            for j in 0..8 {
                assert_eq!(out[i * 8 + j], data[i % 3 * 4 + j % 4]);
            }
        }
        StridedCopy::tile(&[4], &[3, 1], 1).run(exec, &data[..4], &mut out[..12]);
        assert_eq!(out[..12], [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        StridedCopy::tile(&[3, 4], &[0, 2], 1).run(exec, &data, &mut []);
    });
}

#[test]
fn depth_to_space_is_a_permutation_of_a_split() {
    everywhere(|exec| {
        let mut random = Random(19);
        // [n, h, w, (b, b, c)] becomes [n, h, b, w, b, c].
        for (h, w, b, c) in [(5, 7, 2, 3), (4, 4, 3, 8), (3, 9, 2, 1)] {
            let data = random.bytes(h * w * b * b * c * 4);
            let view = View::whole(&[h, w, b * b * c]).split(2, &[b, b, c]).permuted(&[0, 2, 1, 3, 4]);
            check_view(exec, &view, &data, 4);
        }
    });
}

#[test]
fn nothing_is_moved_where_an_axis_is_empty() {
    everywhere(|exec| {
        StridedCopy::permute(&[3, 0, 2], &[2, 1, 0], 4).run(exec, &[], &mut []);
        Concat::new(&[2, 1], 1, &[0, 0], 4).run(exec, |_| &[], &mut []);
        Pad::new(&[0], &[2], &[1], PadMode::Constant, 1).run(exec, &[], Some(&[9]), &mut [0; 3]);
        Gather::new(&[0, 3], &[0], 0, 0, 4).run(exec, &[], Indices::I32(&[]), &mut []);
        Roll::new(&[0, 2], &[1, 1], 4).run(exec, &[], &mut []);
        // More would not fit, were there any.
        let much = usize::MAX / 2;
        StridedCopy::permute(&[much, much, 0], &[2, 1, 0], 4).run(exec, &[], &mut []);
        Gather::new(&[much, 0, much], &[0], 1, 0, 4).run(exec, &[], Indices::I32(&[]), &mut []);
    });
}

#[test]
#[should_panic(expected = "overlap")]
fn elements_that_share_a_place_are_refused() {
    StridedCopy::new(&[3, 4], &[4, 1], &[2, 1], 4);
}

#[test]
#[should_panic(expected = "before its array")]
fn a_view_that_begins_before_its_array_is_refused() {
    StridedCopy::new(&[3], &[-1], &[1], 4);
}

#[test]
#[should_panic(expected = "are read")]
fn a_short_source_is_refused() {
    everywhere(|exec| StridedCopy::new(&[3, 3], &[3, 1], &[3, 1], 4).run(exec, &[0; 32], &mut [0; 36]));
}

#[test]
fn concat_and_split_are_inverse() {
    everywhere(|exec| {
        let mut random = Random(23);
        for round in 0..60 {
            let rank = 1 + random.below(3);
            let dims = random.dims(rank, if round % 10 == 0 { 1 << 15 } else { 1 << 9 });
            let axis = random.below(rank);
            let lengths: Vec<usize> =
                (0..random.pick(&[1, 2, 5, 18])).map(|_| random.pick(&[0, 1, 3, 4, 16])).collect();
            let size = random.pick(&[1, 2, 4, 8]);
            let piece = |n: usize| -> usize { dims.iter().product::<usize>() / dims[axis] * n * size };
            let inputs: Vec<Vec<u8>> = lengths.iter().map(|&n| random.bytes(piece(n))).collect();
            let mut joined = vec![0; lengths.iter().map(|&n| piece(n)).sum()];
            Concat::new(&dims, axis, &lengths, size).run(exec, |i| &inputs[i], &mut joined);
            let inner = dims[axis + 1..].iter().product::<usize>() * size;
            let outer: usize = dims[..axis].iter().product();
            let line = |input: &[u8], n: usize, o: usize| input[o * n * inner..(o + 1) * n * inner].to_vec();
            let wanted: Vec<u8> = (0..outer)
                .flat_map(|o| (0..inputs.len()).flat_map(move |i| [(i, o)]))
                .flat_map(|(i, o)| line(&inputs[i], lengths[i], o))
                .collect();
            assert!(joined == wanted);
            let mut whole = dims.clone();
            whole[axis] = lengths.iter().sum();
            let mut pieces: Vec<Vec<u8>> = inputs.iter().map(|i| vec![0; i.len()]).collect();
            let mut outputs: Vec<&mut [u8]> = pieces.iter_mut().map(|p| &mut p[..]).collect();
            Split::new(&whole, axis, &lengths, size).run(exec, &joined, &mut outputs);
            assert!(pieces == inputs);
        }
    });
}

#[test]
fn pads_of_every_mode_widen_and_crop() {
    everywhere(|exec| {
        let mut random = Random(29);
        for _ in 0..300 {
            let rank = 1 + random.below(3);
            let dims: Vec<usize> = (0..rank).map(|_| 1 + random.below(9)).collect();
            let mode = random.pick(&[PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Symmetric]);
            let (mut begins, mut ends, mut out) = (vec![], vec![], vec![]);
            for &n in &dims {
                let most = match mode {
                    PadMode::Constant | PadMode::Edge => 12,
                    PadMode::Reflect => n as i64 - 1,
                    PadMode::Symmetric => n as i64,
                };
                let begin = random.below((most + n as i64) as usize + 1) as i64 - n as i64;
                let least = (-(n as i64) - begin).max(-(n as i64));
                let end = random.below((most - least) as usize + 1) as i64 + least;
                out.push((n as i64 + begin + end) as usize);
                begins.push(begin);
                ends.push(end);
            }
            let size = random.pick(&[1, 2, 4, 8]);
            let data = random.bytes(dims.iter().product::<usize>() * size);
            let value = random.bytes(size);
            let mut padded = vec![0; out.iter().product::<usize>() * size];
            Pad::new(&dims, &begins, &ends, mode, size).run(exec, &data, Some(&value), &mut padded);
            for flat in 0..out.iter().product() {
                let (mut left, mut at, mut step, mut inside) = (flat, 0, 1, true);
                for axis in (0..rank).rev() {
                    let (n, c) = (dims[axis] as i64, (left % out[axis]) as i64 - begins[axis]);
                    left /= out[axis];
                    let from = match mode {
                        PadMode::Constant => c,
                        PadMode::Edge => c.clamp(0, n - 1),
                        PadMode::Reflect if c < 0 => -c,
                        PadMode::Reflect if c >= n => 2 * (n - 1) - c,
                        PadMode::Symmetric if c < 0 => -1 - c,
                        PadMode::Symmetric if c >= n => 2 * n - 1 - c,
                        _ => c,
                    };
                    inside &= (0..n).contains(&from);
                    at += from * step;
                    step *= n;
                }
                let wanted = if inside { &data[at as usize * size..][..size] } else { &value };
                assert_eq!(&padded[flat * size..][..size], wanted, "{dims:?} {begins:?} {ends:?} {mode:?}");
            }
        }
    });
}

#[test]
fn a_roll_brings_back_what_leaves() {
    everywhere(|exec| {
        let data: Vec<u8> = (0..35).collect();
        let mut out = vec![0; 35];
        for (a, b) in [(0, 0), (1, -2), (-6, 9), (5, 7), (4, 3)] {
            Roll::new(&[5, 7], &[a, b], 1).run(exec, &data, &mut out);
            for i in 0..5i64 {
                for j in 0..7i64 {
                    let from = (i - a).rem_euclid(5) * 7 + (j - b).rem_euclid(7);
                    assert_eq!(out[(i * 7 + j) as usize], data[from as usize]);
                }
            }
        }
    });
}

#[test]
fn gathered_rows_may_count_from_the_end_and_outside_is_zero() {
    everywhere(|exec| {
        let mut random = Random(31);
        for round in 0..100 {
            let (batch, outer, n, m) =
                (1 + random.below(3), 1 + random.below(4), 1 + random.below(9), random.below(12));
            let inner = random.pick(&[1, 2, 3, 5, 16, 33, 200, if round == 0 { 9000 } else { 7 }]);
            let size = random.pick(&[1, 2, 4, 8]);
            let data = random.bytes(batch * outer * n * inner * size);
            let indices: Vec<i64> = (0..batch * m).map(|_| random.below(2 * n + 3) as i64 - n as i64 - 1).collect();
            let gather = Gather::new(&[batch, outer, n, inner], &[batch, m], 2, 1, size);
            let mut out = vec![0xee; gather.out_len()];
            gather.run(exec, &data, Indices::I64(&indices), &mut out);
            let row = inner * size;
            for (r, got) in out.chunks(row).enumerate() {
                let (b, o, i) = (r / m / outer, r / m % outer, r % m);
                let index = indices[b * m + i];
                let index = if index < 0 { index + n as i64 } else { index };
                if (0..n as i64).contains(&index) {
                    assert_eq!(got, &data[((b * outer + o) * n + index as usize) * row..][..row]);
                } else {
                    assert!(got.iter().all(|&x| x == 0));
                }
            }
        }
    });
}

#[test]
fn gathered_elements_follow_their_indices() {
    everywhere(|exec| {
        let mut random = Random(37);
        for _ in 0..100 {
            let (outer, n, m, inner) =
                (1 + random.below(4), 1 + random.below(9), random.below(12), random.pick(&[1, 1, 2, 40]));
            let size = random.pick(&[1, 2, 4, 8, 16]);
            let data = random.bytes(outer * n * inner * size);
            let indices: Vec<i32> = (0..outer * m * inner).map(|_| random.below(2 * n) as i32 - n as i32).collect();
            let mut out = vec![0; indices.len() * size];
            let gather = GatherElements::new(&[outer, n, inner], &[outer, m, inner], 1, size);
            gather.run(exec, &data, Indices::I32(&indices), &mut out).unwrap();
            for (flat, got) in out.chunks(size).enumerate() {
                let i = indices[flat].rem_euclid(n as i32) as usize;
                let at = (flat / inner / m * n + i) * inner + flat % inner;
                assert_eq!(got, &data[at * size..][..size]);
            }
        }
        let bad = GatherElements::new(&[3], &[2], 0, 1).run(exec, &[0; 3], Indices::I64(&[0, 3]), &mut [0; 2]);
        assert_eq!(bad, Err(BadIndex { index: 3, n: 3 }));
    });
}

#[test]
fn gathered_tuples_point_into_leading_axes() {
    everywhere(|exec| {
        let mut random = Random(41);
        for _ in 0..60 {
            let (batch, m) = (1 + random.below(3), random.below(9));
            let dims = [batch, 1 + random.below(5), 1 + random.below(5), random.pick(&[1, 3, 20])];
            let tuple = random.below(4);
            let data = random.bytes(dims.iter().product::<usize>() * 4);
            let indices: Vec<i64> = (0..batch * m * tuple)
                .map(|k| {
                    let n = dims[1 + k % tuple];
                    random.below(2 * n) as i64 - n as i64
                })
                .collect();
            let row: usize = dims[1 + tuple..].iter().product::<usize>() * 4;
            let mut out = vec![0; batch * m * row];
            GatherNd::new(&dims, &[batch, m, tuple], 1, 4).run(exec, &data, Indices::I64(&indices), &mut out).unwrap();
            for (t, got) in out.chunks(row).enumerate() {
                let mut at = t / m;
                for k in 0..tuple {
                    let n = dims[1 + k];
                    at = at * n + indices[t * tuple + k].rem_euclid(n as i64) as usize;
                }
                assert_eq!(got, &data[at * row..][..row]);
            }
        }
    });
}

#[test]
fn the_last_of_several_scattered_slices_stays() {
    everywhere(|exec| {
        let mut random = Random(43);
        for round in 0..40 {
            let dims = [1 + random.below(5), 1 + random.below(7), random.pick(&[1, 3, 20, 3000])];
            let tuple = 1 + random.below(2);
            let m = if round == 0 { 3000 } else { random.below(20) };
            let data = random.bytes(dims.iter().product::<usize>() * 2);
            let indices: Vec<i32> = (0..m * tuple)
                .map(|k| {
                    let n = dims[k % tuple];
                    random.below(2 * n) as i32 - n as i32
                })
                .collect();
            let row: usize = dims[tuple..].iter().product::<usize>() * 2;
            let updates = random.bytes(m * row);
            let mut out = vec![0; data.len()];
            let scatter = ScatterNd::new(&dims, &[m, tuple], 2);
            scatter.run(exec, &data, Indices::I32(&indices), &updates, &mut out).unwrap();
            let mut wanted = data.clone();
            for t in 0..m {
                let at = (0..tuple)
                    .fold(0, |at, k| at * dims[k] + indices[t * tuple + k].rem_euclid(dims[k] as i32) as usize);
                wanted[at * row..(at + 1) * row].copy_from_slice(&updates[t * row..(t + 1) * row]);
            }
            assert!(out == wanted);
        }
    });
}

#[test]
fn a_scatter_in_place_leaves_everything_on_error() {
    everywhere(|exec| {
        let mut out = vec![1u8; 12];
        let rows = ScatterNd::new(&[4, 3], &[2, 1], 1);
        assert!(rows.run_in_place(exec, Indices::I32(&[0, 4]), &[7; 6], &mut out).is_err());
        assert_eq!(out, [1; 12]);
        rows.run_in_place(exec, Indices::I32(&[-1, 1]), &[7; 6], &mut out).unwrap();
        assert_eq!(out, [1, 1, 1, 7, 7, 7, 1, 1, 1, 7, 7, 7]);
        let update = ScatterUpdate::new(&[4, 3], 1, 0, 1);
        update.run_in_place(exec, Indices::I64(&[0]), &[5; 3], &mut out).unwrap();
        let single = ScatterElements::new(&[4, 3], &[1, 2], 0, 1);
        single.run_in_place(exec, Indices::I64(&[2, 1]), &[8, 9], &mut out).unwrap();
        assert_eq!(out, [5, 5, 5, 7, 9, 7, 8, 1, 1, 7, 7, 7]);
    });
}

#[test]
fn scattered_slices_are_joined_in_double_precision() {
    everywhere(|exec| {
        let mut random = Random(47);
        for how in [Reduction::Sum, Reduction::Sub, Reduction::Prod, Reduction::Min, Reduction::Max] {
            let dims = [9000, 3];
            let data: Vec<f32> = (0..27000).map(|_| random.below(1000) as f32 / 7.0).collect();
            let indices: Vec<i64> = (0..500).map(|_| random.below(40) as i64 * 200).collect();
            let updates: Vec<f32> = (0..1500).map(|_| random.below(1000) as f32 / 9.0).collect();
            let mut out = vec![0f32; 27000];
            let scatter = ScatterNd::new(&dims, &[500, 1], 4);
            let mut work = vec![7; scatter.workspace_words().unwrap()];
            scatter.run_joined(exec, &data, Indices::I64(&indices), &updates, how, &mut work, &mut out).unwrap();
            let mut wanted: Vec<f64> = data.iter().map(|&x| x as f64).collect();
            for (i, &u) in updates.iter().enumerate() {
                let w = &mut wanted[indices[i / 3] as usize * 3 + i % 3];
                let u = u as f64;
                *w = match how {
                    Reduction::Sum => *w + u,
                    Reduction::Sub => *w - u,
                    Reduction::Prod => *w * u,
                    Reduction::Min => w.min(u),
                    _ => w.max(u),
                };
            }
            assert!(out.iter().zip(&wanted).all(|(x, w)| *x == *w as f32), "{how:?}");
        }
    });
}

#[test]
fn scattered_slices_of_every_length_are_joined_in_order() {
    everywhere(|exec| {
        let mut random = Random(49);
        for round in 0..60 {
            let big = if round % 20 == 0 { 300 } else { 1 };
            let dims = [1 + random.below(5), 1 + random.below(7) * big, random.pick(&[0, 1, 2, 20, 300, 3000])];
            let tuple = random.below(4);
            let m = if round % 20 == 0 { 20_000 } else { random.below(20) };
            let m = if tuple < 2 { m.min(30) } else { m };
            let data: Vec<i32> = (0..dims.iter().product()).map(|_| random.below(99) as i32 - 50).collect();
            if dims[2] == 0 && tuple == 3 {
                continue;
            }
            let indices: Vec<i32> = (0..m * tuple)
                .map(|k| {
                    let n = dims[k % tuple];
                    random.below(2 * n) as i32 - n as i32
                })
                .collect();
            let row: usize = dims[tuple..].iter().product();
            let m = if row > 100 { m.min(50) } else { m };
            let indices = &indices[..m * tuple];
            let updates: Vec<i32> = (0..m * row).map(|_| random.below(99) as i32 - 50).collect();
            let how = random.pick(&[Reduction::Sum, Reduction::Sub, Reduction::Prod, Reduction::Max, Reduction::Xor]);
            let scatter = ScatterNd::new(&dims, &[m, tuple], 4);
            let mut work = vec![7; scatter.workspace_words().unwrap()];
            let mut out = vec![0; data.len()];
            scatter.run_joined(exec, &data, Indices::I32(indices), &updates, how, &mut work, &mut out).unwrap();
            let mut wanted = data.clone();
            for t in 0..m {
                let at = (0..tuple)
                    .fold(0, |at, k| at * dims[k] + indices[t * tuple + k].rem_euclid(dims[k] as i32) as usize);
                for (w, u) in wanted[at * row..][..row].iter_mut().zip(&updates[t * row..]) {
                    *w = match how {
                        Reduction::Sum => w.wrapping_add(*u),
                        Reduction::Sub => w.wrapping_sub(*u),
                        Reduction::Prod => w.wrapping_mul(*u),
                        Reduction::Max => (*w).max(*u),
                        _ => *w ^ *u,
                    };
                }
            }
            assert!(out == wanted, "{dims:?}, {m} tuples of {tuple}, {how:?}");
        }
    });
}

#[test]
fn scattered_rows_do_not_count_from_the_end() {
    everywhere(|exec| {
        let (data, updates) = (vec![0u8; 2 * 5 * 3000], vec![7u8; 2 * 2 * 3000]);
        let mut out = vec![1; data.len()];
        let scatter = ScatterUpdate::new(&[2, 5, 3000], 2, 1, 1);
        scatter.run(exec, &data, Indices::I32(&[4, 1]), &updates, &mut out).unwrap();
        let marked = |row: usize| if [1, 4].contains(&(row % 5)) { 7 } else { 0 };
        assert!(out.chunks(3000).enumerate().all(|(row, line)| line.iter().all(|&x| x == marked(row))));
        let bad = scatter.run(exec, &data, Indices::I32(&[4, -1]), &updates, &mut out);
        assert_eq!(bad, Err(BadIndex { index: -1, n: 5 }));
    });
}

#[test]
fn scattered_elements_keep_their_order_along_the_axis() {
    everywhere(|exec| {
        let mut random = Random(53);
        for round in 0..80 {
            let big = if round == 0 { 60 } else { 1 };
            let data_dims = [1 + random.below(5) * big, 1 + random.below(6), 1 + random.below(5) * big, 2];
            let axis = random.below(3);
            let mut dims = data_dims.map(|n| 1 + random.below(n));
            dims[axis] = random.below(9);
            let data: Vec<i32> = (0..data_dims.iter().product()).map(|_| random.below(99) as i32 - 50).collect();
            let n = data_dims[axis];
            let count = dims.iter().product();
            let indices: Vec<i64> = (0..count).map(|_| random.below(2 * n) as i64 - n as i64).collect();
            let updates: Vec<i32> = (0..count).map(|_| random.below(99) as i32 - 50).collect();
            let how = random.pick(&[Reduction::None, Reduction::Sum, Reduction::Max, Reduction::Mean]);
            let keep = random.below(2) == 0;
            let scatter = ScatterElements::new(&data_dims, &dims, axis, 4);
            let mut out = vec![0; data.len()];
            scatter.run_joined(exec, &data, Indices::I64(&indices), &updates, how, keep, &mut out).unwrap();
            let target = |flat: usize| {
                let (mut left, mut at, mut step) = (flat, 0, 1);
                for a in (0..4).rev() {
                    let i = if a == axis { indices[flat].rem_euclid(n as i64) as usize } else { left % dims[a] };
                    left /= dims[a];
                    at += i * step;
                    step *= data_dims[a];
                }
                at
            };
            let mut wanted = data.clone();
            let mut counts = vec![0; data.len()];
            if !keep && how != Reduction::None {
                (0..count).for_each(|i| wanted[target(i)] = if how == Reduction::Max { i32::MIN } else { 0 });
            }
            for (i, &u) in updates.iter().enumerate() {
                let at = target(i);
                counts[at] += 1;
                wanted[at] = match how {
                    Reduction::None => u,
                    Reduction::Max => wanted[at].max(u),
                    _ => wanted[at] + u,
                };
            }
            if how == Reduction::Mean {
                let mean = |(w, &n): (&mut i32, &i32)| {
                    if n > 0 {
                        *w = w.div_euclid(n + i32::from(keep))
                    }
                };
                wanted.iter_mut().zip(&counts).for_each(mean);
            }
            assert_eq!(out, wanted, "{data_dims:?} {dims:?} {axis} {how:?} {keep}");
        }
    });
}

#[test]
fn bags_are_sums_of_weighted_rows() {
    everywhere(|exec| {
        let mut random = Random(59);
        for width in [1, 5, 64, 100, 768] {
            let table: Vec<f32> = (0..50 * width).map(|_| random.below(1000) as f32 / 7.0).collect();
            let indices: Vec<i32> = (0..40).map(|_| random.below(50) as i32).collect();
            let weights: Vec<f32> = (0..40).map(|_| random.below(10) as f32 / 3.0).collect();
            let bounds = [0, 7, 7, 30, 40];
            for (weights, mean) in [(Some(&weights[..]), false), (None, false), (None, true)] {
                let mut out = vec![0f32; 4 * width];
                let bag = |b: usize| bounds[b]..bounds[b + 1];
                EmbeddingBag::new(50, width, mean)
                    .run(exec, &table, Indices::I32(&indices), bag, Some(3), weights, &mut out)
                    .unwrap();
                for (b, row) in out.chunks(width).enumerate() {
                    for (k, &x) in row.iter().enumerate() {
                        let at = |i: usize| {
                            table[indices[i] as usize * width + k] as f64 * weights.map_or(1.0, |w| w[i] as f64)
                        };
                        let mut sum = bag(b).fold(0.0, |s, i| s + at(i));
                        if bag(b).is_empty() {
                            sum = table[3 * width + k] as f64;
                        } else if mean {
                            sum /= bag(b).len() as f64;
                        }
                        assert_eq!(x, sum as f32);
                    }
                }
            }
        }
    });
}
