//! `Einsum` becomes products that devices have kernels for:
//!
//! - names of one operand alone that nobody asks for are summed first;
//! - two operands with a name to be summed meet in a MatMul, `[shared, own, summed] x [shared, summed, own]`, others in a
//!   Multiply, each with 1 where it lacks a name;
//! - the result is put in order at the end.
//!
//! Several names that become one axis of a matrix need known sizes; a name twice in one operand is left alone.

use crate::shared::same_dim;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::Multiply;
use carafe_ops::linear::{Einsum, MatMul};
use carafe_ops::movement::{Reshape, Transpose, Unsqueeze};
use carafe_ops::reduce::ReduceSum;
use carafe_tensor::{Dim, Tensor};

/// Writes an Einsum as products that devices have kernels for.
#[derive(Clone, Copy, Debug)]
pub struct ExpandEinsum;

impl Rewrite for ExpandEinsum {
    fn name(&self) -> &'static str {
        "expand_einsum"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(einsum) = model.op_at::<Einsum>(root).cloned() else { return Ok(Outcome::NoMatch) };
        let inputs = model.node(root).inputs().to_vec();
        let dims = inputs.iter().map(|v| Some(model.fact(*v).shape.dims()?.to_vec())).collect::<Option<Vec<_>>>();
        let Some(dims) = dims else { return Ok(Outcome::skip("an operand has any number of axes")) };
        let (labels, output) = einsum.labels(&dims.iter().map(Vec::len).collect::<Vec<_>>())?;
        if !model.fact(inputs[0]).ty.is_float() {
            return Ok(Outcome::skip("it is of integers"));
        }
        let twice = |l: &Vec<u32>| l.iter().enumerate().any(|(i, x)| l[..i].contains(x));
        if labels.iter().any(twice) || twice(&output) {
            return Ok(Outcome::skip("a name stands twice in one operand"));
        }
        if labels == [output.clone()] {
            return Ok(Outcome::skip("it hands on what it gets"));
        }
        let named = |(value, (labels, dims))| Operand { value, labels, dims };
        let mut operands: Vec<Operand> = inputs.into_iter().zip(labels.into_iter().zip(dims)).map(named).collect();
        if let Some(why) = refusal(&operands, &output) {
            return Ok(Outcome::skip(why));
        }
        let name = model.node(root).name().to_string();
        let mut build = Build { model, name, count: 0 };
        let mut sum = build.summed(operands.remove(0), |l| output.contains(&l) || is_in(&operands, l))?;
        while !operands.is_empty() {
            let next = operands.remove(0);
            let needed = |l: u32| output.contains(&l) || is_in(&operands, l);
            let own = build.summed(next, |l| needed(l) || sum.labels.contains(&l))?;
            sum = build.summed(sum, |l| needed(l) || own.labels.contains(&l))?;
            sum = build.product(sum, own, needed)?;
        }
        let new = build.ordered(sum, &output)?.value;
        // The last node has the name that users know.
        let name = build.name;
        model.set_name(root, format!("{name}/was"));
        model.set_name(new.node, name);
        model.replace_value(root.into(), new);
        Ok(Outcome::Done)
    }
}

fn is_in(operands: &[Operand], label: u32) -> bool {
    operands.iter().any(|o| o.labels.contains(&label))
}

#[derive(Clone, Debug)]
struct Operand {
    value: Value,
    labels: Vec<u32>,
    dims: Vec<Dim>,
}

impl Operand {
    fn dim(&self, label: u32) -> Option<Dim> {
        self.labels.iter().position(|l| *l == label).map(|i| self.dims[i])
    }
    fn keep(&self, labels: impl Fn(u32) -> bool) -> Vec<u32> {
        self.labels.iter().copied().filter(|l| labels(*l)).collect()
    }
}

// Why it stays as it is: sizes that would have to be known, or that may be stretched.
fn refusal(operands: &[Operand], output: &[u32]) -> Option<&'static str> {
    let dims = |l: u32| operands.iter().filter_map(move |o| o.dim(l));
    let all: Vec<u32> = operands.iter().flat_map(|o| o.labels.iter().copied()).collect();
    for &label in &all {
        let mut sizes = dims(label);
        let first = sizes.next()?;
        if !sizes.all(|d| same_dim(first, d)) {
            return Some("sizes of one name may differ");
        }
        if first.get().is_none() && all.len() > 1 && !is_simple(operands, output) {
            return Some("a size is not known");
        }
    }
    output.iter().any(|l| !all.contains(l)).then_some("the result has a name of its own")
}

// Whether no axes have to be put together.
fn is_simple(operands: &[Operand], output: &[u32]) -> bool {
    let [a, b] = operands else { return operands.len() < 2 };
    let [shared, summed, left, right] = parts(a, b, &|l| output.contains(&l));
    summed.is_empty() || (summed.len() == 1 && right.len() == 1 && (left.len() == 1 || shared.is_empty()))
}

// Names of both that are needed, of both that are summed, of the first alone, of the second alone.
fn parts(a: &Operand, b: &Operand, needed: &dyn Fn(u32) -> bool) -> [Vec<u32>; 4] {
    let both = |l: &u32| b.labels.contains(l);
    [
        a.keep(|l| both(&l) && needed(l)),
        a.keep(|l| both(&l) && !needed(l)),
        a.keep(|l| !both(&l)),
        b.keep(|l| !a.labels.contains(&l)),
    ]
}

struct Build<'a> {
    model: &'a mut Model,
    name: String,
    count: usize,
}

impl Build<'_> {
    fn next(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{}/{what}_{}", self.name, self.count)
    }
    fn ints(&mut self, list: &[i64]) -> Result<Value> {
        let name = self.next("const");
        self.model.constant(&name, Tensor::from_slice(&[list.len()], list)?)
    }
    /// Without the names that are not needed.
    fn summed(&mut self, x: Operand, needed: impl Fn(u32) -> bool) -> Result<Operand> {
        let axes: Vec<i64> = (0..x.labels.len()).filter(|&i| !needed(x.labels[i])).map(|i| i as i64).collect();
        if axes.is_empty() {
            return Ok(x);
        }
        let list = self.ints(&axes)?;
        let name = self.next("ReduceSum");
        let value = self.model.add(name, ReduceSum { keep_dims: false }, &[x.value, list])?.into();
        let labels = x.keep(&needed);
        let dims = labels.iter().filter_map(|l| x.dim(*l)).collect();
        Ok(Operand { value, labels, dims })
    }

    /// With its axes in this order.
    fn ordered(&mut self, x: Operand, order: &[u32]) -> Result<Operand> {
        if x.labels == order {
            return Ok(x);
        }
        let at = |l: &u32| x.labels.iter().position(|m| m == l).unwrap_or(0) as i64;
        let list = self.ints(&order.iter().map(at).collect::<Vec<_>>())?;
        let name = self.next("Transpose");
        let value = self.model.add(name, Transpose, &[x.value, list])?.into();
        let dims = order.iter().filter_map(|l| x.dim(*l)).collect();
        Ok(Operand { value, labels: order.to_vec(), dims })
    }

    fn shaped(&mut self, v: Value, dims: &[Dim]) -> Result<Value> {
        let sizes: Vec<i64> = dims.iter().map(|d| d.get().unwrap_or(-1)).collect();
        let list = self.ints(&sizes)?;
        let name = self.next("Reshape");
        Ok(self.model.add(name, Reshape { special_zero: false }, &[v, list])?.into())
    }

    /// Both joined; names that are not needed are summed.
    fn product(&mut self, a: Operand, b: Operand, needed: impl Fn(u32) -> bool) -> Result<Operand> {
        let [shared, summed, left, right] = parts(&a, &b, &needed);
        if summed.is_empty() {
            return self.multiplied(a, b);
        }
        let join = |lists: &[&[u32]]| lists.concat();
        let dims = |x: &Operand, list: &[u32]| list.iter().filter_map(|l| x.dim(*l)).collect::<Vec<_>>();
        // A matrix may lie either way.
        let (a_turned, b_turned) = (join(&[&shared, &summed, &left]), join(&[&shared, &right, &summed]));
        let turn_a = a.labels == a_turned && left.len() == 1;
        let turn_b = b.labels == b_turned;
        let a = self.ordered(a, &if turn_a { a_turned } else { join(&[&shared, &left, &summed]) })?;
        let b = self.ordered(b, &if turn_b { b_turned } else { join(&[&shared, &summed, &right]) })?;
        // Rows of the first may have many axes when the second is one matrix.
        let loose = shared.is_empty() && !left.is_empty() && !turn_a && summed.len() == 1;
        let one = |x: &Operand, list: &[u32]| match dims(x, list).as_slice() {
            [d] => *d,
            all => Dim::known(all.iter().map(|d| d.get().unwrap_or(1)).product()),
        };
        let matrix = |x: &Operand, own: &[u32], turned: bool| {
            let (rows, depth) = (one(x, own), one(x, &summed));
            let last = if turned { [depth, rows] } else { [rows, depth] };
            dims(x, &shared).into_iter().chain(last).collect::<Vec<_>>()
        };
        let (a_dims, b_dims) = (matrix(&a, &left, turn_a), matrix(&b, &right, !turn_b));
        let plain = |own: &[u32]| own.len() == 1 && summed.len() == 1;
        let a_value = if loose || plain(&left) { a.value } else { self.shaped(a.value, &a_dims)? };
        let b_value = if plain(&right) { b.value } else { self.shaped(b.value, &b_dims)? };
        let name = self.next("MatMul");
        let op = MatMul { transpose_a: turn_a, transpose_b: turn_b };
        let mut value: Value = self.model.add(name, op, &[a_value, b_value])?.into();
        let labels = join(&[&shared, &left, &right]);
        let all = [dims(&a, &shared), dims(&a, &left), dims(&b, &right)].concat();
        if right.len() != 1 || (left.len() != 1 && !loose) {
            value = self.shaped(value, &all)?;
        }
        Ok(Operand { value, labels, dims: all })
    }

    // The axes of the first as they are, then those of the second alone; each has a 1 where it lacks a name.
    fn multiplied(&mut self, a: Operand, b: Operand) -> Result<Operand> {
        let right = b.keep(|l| !a.labels.contains(&l));
        let labels = [a.labels.as_slice(), &right].concat();
        let order: Vec<u32> = labels.iter().copied().filter(|l| b.labels.contains(l)).collect();
        let b = self.ordered(b, &order)?;
        let dims = labels.iter().filter_map(|l| a.dim(*l).or(b.dim(*l))).collect();
        let (x, y) = (self.grown(&a, &labels)?, self.grown(&b, &labels)?);
        let name = self.next("Multiply");
        let value = self.model.add(name, Multiply::default(), &[x, y])?.into();
        Ok(Operand { value, labels, dims })
    }

    fn grown(&mut self, x: &Operand, labels: &[u32]) -> Result<Value> {
        let missing = (0..labels.len()).filter(|&i| !x.labels.contains(&labels[i]));
        let missing: Vec<i64> = missing.map(|i| i as i64).collect();
        if missing.is_empty() {
            return Ok(x.value);
        }
        let list = self.ints(&missing)?;
        let name = self.next("Unsqueeze");
        Ok(self.model.add(name, Unsqueeze, &[x.value, list])?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;

    // Expands an einsum of these shapes; checks the numbers; names of the operations that come out of it.
    fn expanded(equation: &str, shapes: &[&[usize]]) -> Vec<&'static str> {
        let mut d = Draft::new();
        let mut values = vec![];
        let mut inputs = vec![];
        for (i, shape) in shapes.iter().enumerate() {
            let sizes: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
            values.push(d.input(&format!("x{i}"), &sizes));
            let n: usize = shape.iter().product();
            let data: Vec<f32> = (0..n).map(|k| ((k * 7 + i * 3) % 11) as f32 - 5.0).collect();
            inputs.push(Tensor::from_vec(shape, data).unwrap());
        }
        let y = d.add("y", Einsum { equation: equation.into() }, &values);
        d.model.add_tensor_name(y, "answer");
        let r = d.result(y);
        let expected = d.model.evaluate(&inputs).unwrap();
        assert_eq!(d.run(&ExpandEinsum).0, 1, "{equation}");
        d.model.prune();
        assert_eq!(d.model.result_name(r), "answer");
        let found = d.model.evaluate(&inputs).unwrap();
        assert_eq!(found[0].as_slice::<f32>().unwrap(), expected[0].as_slice::<f32>().unwrap(), "{equation}");
        let kinds = d.model.nodes().map(|(_, n)| n.op().info().name);
        kinds.filter(|k| !matches!(*k, "Parameter" | "Constant" | "Result")).collect()
    }

    #[test]
    fn products_of_matrices_are_one_operation() {
        assert_eq!(expanded("bhid,bhjd->bhij", &[&[2, 3, 4, 5], &[2, 3, 6, 5]]), ["MatMul"]);
        assert_eq!(expanded("bik,kn->bin", &[&[2, 3, 4], &[4, 5]]), ["MatMul"]);
        assert_eq!(expanded("ki,kj->ij", &[&[4, 3], &[4, 5]]), ["MatMul"]);
        assert_eq!(expanded("...ij,...jk->...ik", &[&[2, 2, 3, 4], &[2, 2, 4, 5]]), ["MatMul"]);
    }

    #[test]
    fn axes_are_put_in_order_and_together() {
        assert_eq!(expanded("bqnd,bknd->bnqk", &[&[2, 3, 4, 5], &[2, 6, 4, 5]]), ["Transpose", "Transpose", "MatMul"]);
        for (equation, a, b) in [
            ("bwhc,whcd->bd", vec![2, 3, 4, 5], vec![3, 4, 5, 6]),
            ("nctkv,kvw->nctw", vec![2, 3, 2, 4, 5], vec![4, 5, 3]),
            ("abc,cd->dba", vec![2, 3, 4], vec![4, 5]),
            ("abc,acde->abde", vec![2, 3, 4], vec![2, 4, 5, 6]),
            ("i,i->", vec![4], vec![4]),
            ("bi,bi->b", vec![2, 4], vec![2, 4]),
            ("bi,bij->bj", vec![2, 4], vec![2, 4, 3]),
            ("ij,j->i", vec![3, 4], vec![4]),
        ] {
            let kinds = expanded(equation, &[&a, &b]);
            assert!(kinds.contains(&"MatMul") && !kinds.contains(&"Einsum"), "{equation}: {kinds:?}");
        }
    }

    #[test]
    fn outer_products_are_multiplications() {
        assert_eq!(expanded("i,j->ij", &[&[3], &[4]]), ["Unsqueeze", "Unsqueeze", "Multiply"]);
        assert_eq!(expanded("bij,bj->bij", &[&[2, 3, 4], &[2, 4]]), ["Unsqueeze", "Multiply"]);
    }

    #[test]
    fn names_that_nobody_needs_are_summed_first() {
        assert_eq!(expanded("ijk,jm->jm", &[&[2, 3, 4], &[3, 5]]), ["ReduceSum", "Unsqueeze", "Multiply"]);
        assert_eq!(expanded("ij->j", &[&[2, 3]]), ["ReduceSum"]);
        assert_eq!(expanded("ij->ji", &[&[2, 3]]), ["Transpose"]);
    }

    #[test]
    fn more_than_two_operands_follow_one_another() {
        let kinds = expanded("bi,ij,bj->b", &[&[2, 3], &[3, 4], &[2, 4]]);
        assert_eq!(kinds.iter().filter(|k| **k == "MatMul").count(), 2, "{kinds:?}");
    }

    #[test]
    fn a_diagonal_and_sizes_that_may_stretch_stay() {
        let mut d = Draft::new();
        let x = d.input("x", &[3, 3]);
        let y = d.add("y", Einsum { equation: "ii->i".into() }, &[x]);
        d.result(y);
        let (a, b) = (d.input("a", &[2, -1]), d.input("b", &[-1, 3]));
        let z = d.add("z", Einsum { equation: "ij,jk->ik".into() }, &[a, b]);
        d.result(z);
        let (fired, why) = d.run(&ExpandEinsum);
        assert!(fired == 0 && why.len() == 2, "{why:?}");
    }
}
