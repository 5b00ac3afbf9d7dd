//! TreeWalk: from the nodes of decision trees a number of levels down, by comparing features of the row. Made by devices, not
//! meant for files.

use carafe_graph::{EvalCx, InferCx, Op, Result};

carafe_graph::attr_enum! {
    /// How a feature must stand to a node's number for the walk to take the first way.
    pub enum Test {
        LessEqual = "less_equal",
        Less = "less",
        GreaterEqual = "greater_equal",
        Greater = "greater",
        Equal = "equal",
        NotEqual = "not_equal",
    }
}

/// `at = test(x[row, feature[at]], value[at]) ? yes[at] : no[at]`, as often as there are levels.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, at, feature, value, yes, no, missing?")]
pub struct TreeWalk {
    /// The comparison.
    pub test: Test,
    /// Steps of the walk.
    pub levels: usize,
}

impl Op for TreeWalk {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.same_type(&[0, 3])?;
        cx.require_rank(0, &[2])?;
        cx.require_rank(1, &[2])?;
        for integers in [1, 2, 4, 5] {
            cx.require_integer(integers)?;
        }
        for table in 2..cx.n_inputs() {
            cx.require_rank(table, &[1])?;
        }
        cx.output_like(0, 1);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (x, values) = (cx.get::<f64>(0)?, cx.get::<f64>(3)?);
        let (features, yes, no) = (cx.ints(2)?, cx.ints(4)?, cx.ints(5)?);
        let missing = if cx.has(6) { cx.ints(6)? } else { vec![] };
        let shape = cx.shape(1).to_vec();
        let width = cx.shape(0)[1];
        if cx.shape(0)[0] != shape[0] {
            return Err(cx.fail(format!("data has {} rows, the nodes have {}", cx.shape(0)[0], shape[0])));
        }
        let below = |i: i64, n: usize, what: &str| {
            let fail = || cx.fail(format!("{what} {i} is not within 0..{n}"));
            usize::try_from(i).ok().filter(|&i| i < n).ok_or_else(fail)
        };
        let nodes = values.len().min(features.len()).min(yes.len()).min(no.len());
        let mut ends = cx.ints(1)?;
        for (i, end) in ends.iter_mut().enumerate() {
            let row = i / shape[1];
            for _ in 0..self.levels {
                let at = below(*end, nodes, "node")?;
                let seen = x[row * width + below(features[at], width, "feature")?];
                let go = match self.test {
                    Test::LessEqual => seen <= values[at],
                    Test::Less => seen < values[at],
                    Test::GreaterEqual => seen >= values[at],
                    Test::Greater => seen > values[at],
                    Test::Equal => seen == values[at],
                    Test::NotEqual => seen != values[at],
                };
                let lost = seen.is_nan() && missing.get(at).is_some_and(|m| *m != 0);
                *end = if go || lost { yes[at] } else { no[at] };
            }
        }
        drop((x, values));
        cx.put(0, &shape, ends)
    }
}
