//! Walks through trees against a plain loop.

use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch, TreeNodes, TreeTest, TreeWalk};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

const TESTS: [TreeTest; 6] = [
    TreeTest::LessEqual,
    TreeTest::Less,
    TreeTest::GreaterEqual,
    TreeTest::Greater,
    TreeTest::Equal,
    TreeTest::NotEqual,
];

#[test]
fn every_row_ends_where_its_features_lead() {
    for threads in [1, 3] {
        let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 0).unwrap());
        let exec = Exec::new(&pool, Isa::available().next().unwrap(), &scratch);
        let mut random = Random(91);
        for round in 0..60 {
            let big = if round % 10 == 0 { 20 } else { 1 };
            let (rows, trees) = (random.below(21) * big, 1 + random.below(5) * big);
            let (width, count, levels) = (1 + random.below(4), 1 + random.below(40), random.below(7));
            let mut small = |n: usize| (0..n).map(|_| random.below(5) as f32).collect::<Vec<f32>>();
            let (values, mut x) = (small(count), small(rows * width));
            x.iter_mut().step_by(7).for_each(|x| *x = f32::NAN);
            let mut list = |n: usize, below: usize| (0..n).map(|_| random.below(below) as i64).collect::<Vec<i64>>();
            let (features, yes, no) = (list(count, width), list(count, count), list(count, count));
            let from = list(rows * trees, count);
            let missing: Vec<u8> = if round % 2 == 0 { vec![] } else { (0..count).map(|i| (i % 2) as u8).collect() };
            let test = TESTS[round % 6];
            let tables = TreeNodes { features: &features, values: &values, yes: &yes, no: &no, missing: &missing };
            let walk = TreeWalk::new(test, tables, levels, width, trees).unwrap();
            let mut out = vec![-1; from.len()];
            walk.run(&exec, &x, &from, &mut out).unwrap();
            for (i, (&from, &found)) in from.iter().zip(&out).enumerate() {
                let mut at = from as usize;
                for _ in 0..levels {
                    let (seen, value) = (x[i / trees * width + features[at] as usize], values[at]);
                    let go = match test {
                        TreeTest::LessEqual => seen <= value,
                        TreeTest::Less => seen < value,
                        TreeTest::GreaterEqual => seen >= value,
                        TreeTest::Greater => seen > value,
                        TreeTest::Equal => seen == value,
                        TreeTest::NotEqual => seen != value,
                    };
                    let lost = seen.is_nan() && missing.get(at).is_some_and(|m| *m != 0);
                    at = if go || lost { yes[at] as usize } else { no[at] as usize };
                }
                assert_eq!(found, at as i64, "{rows} rows, {trees} trees, {levels} levels, {test:?}");
            }
        }
    }
}

#[test]
fn nodes_that_are_not_there_are_refused() {
    let tables =
        |yes: &'static [i64]| TreeNodes { features: &[0, 1], values: &[0.0; 2], yes, no: &[1, 1], missing: &[] };
    let new = |yes, width| TreeWalk::new(TreeTest::Less, tables(yes), 2, width, 1);
    assert!(new(&[2, 1], 2).is_none() && new(&[-1, 1], 2).is_none() && new(&[1, 1], 1).is_none());
    let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, 0).unwrap());
    let exec = Exec::new(&pool, Isa::available().next().unwrap(), &scratch);
    let walk = new(&[1, 1], 2).unwrap();
    assert_eq!(walk.run(&exec, &[0.0; 2], &[2], &mut [0]), Err(2));
}
