//! Levels of decision trees, as they are written out in gathers, become one walk:
//!
//! ```text
//! Select(GatherElements(x, feature[at]) <= value[at], yes[at], no[at])   ->  TreeWalk(x, at, feature, value, yes, no)
//! TreeWalk(x, TreeWalk(x, at, ...), ...)                                 ->  TreeWalk(x, at, ...) {both levels}
//! ```
//!
//! where `t[at]` is a Gather from a table. NaN may take the first way: `... or IsNaN(seen) and missing[at]`. For devices only:
//! the numbered opsets have no such operation. Tables must be constants whose nodes and features are there, since a gather
//! would count them from the end.

use super::look::{made_by, put_in_place, read_outside};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::carafe::TreeWalk;
use carafe_ops::carafe::tree_walk::Test;
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use carafe_ops::indexing::{Gather, GatherElements, Select};
use carafe_ops::logic::{LogicalAnd, LogicalOr};
use carafe_ops::math::IsNaN;
use carafe_tensor::ElementType;

/// Levels of decision trees become one walk.
#[derive(Clone, Copy, Debug)]
pub struct FuseTreeWalk;

/// Data, nodes and tables of a level: feature, value, yes, no, and missing where there is one.
struct Level {
    test: Test,
    x: Value,
    at: Value,
    tables: Vec<Value>,
}

impl Rewrite for FuseTreeWalk {
    fn name(&self) -> &'static str {
        "fuse_tree_walk"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(Level { test, x, at, tables }) = find(model, root) else { return Ok(Outcome::NoMatch) };
        let all = |at: Value| [x, at].into_iter().chain(tables.iter().copied()).collect::<Vec<Value>>();
        // The level before it, which was recognised a moment ago: producers come first.
        let before = model.producer::<TreeWalk>(at).filter(|(_, op)| op.test == test).and_then(|(id, op)| {
            let start = model.input(id, 1)?;
            let same = model.node(id).inputs() == all(start) && read_outside(model, root, &all(start)).is_none();
            same.then_some((start, op.levels))
        });
        let (start, levels) = before.unwrap_or((at, 0));
        let inputs = all(start);
        if let Some(skip) = read_outside(model, root, &inputs) {
            return Ok(skip);
        }
        let name = format!("{}/TreeWalk", model.node(root).name());
        let new = model.add(name, TreeWalk { test, levels: levels + 1 }, &inputs)?;
        put_in_place(model, root, new)
    }
}

fn find(model: &Model, root: NodeId) -> Option<Level> {
    let &[go, yes, no] = made_by::<Select>(model, root.into())? else { return None };
    let (yes, at) = looked_up(model, yes)?;
    let of = |v: Value| looked_up(model, v).filter(|(_, by)| *by == at).map(|(table, _)| table);
    let no = of(no)?;
    // `seen` first, since nothing else is read twice where NaN has its way.
    let (go, lost) = match made_by::<LogicalOr>(model, go) {
        Some(&[go, lost]) => (go, Some(lost)),
        _ => (go, None),
    };
    let (test, seen, value) = compared(model, go)?;
    let value = of(value)?;
    let &[x, feature] = made_by::<GatherElements>(model, seen)? else { return None };
    let axis = model.op_at::<GatherElements>(seen.node)?.axis;
    let feature = of(feature)?;
    let (x_rank, at_rank) = (model.fact(x).shape.rank(), model.fact(at).shape.rank());
    let typed = model.fact(x).ty == ElementType::F32 && model.fact(at).ty == ElementType::I64;
    if !(axis == 1 || axis == -1) || x_rank != Some(2) || at_rank != Some(2) || !typed {
        return None;
    }
    let mut tables = vec![feature, value, yes, no];
    if let Some(lost) = lost {
        let &[a, b] = made_by::<LogicalAnd>(model, lost)? else { return None };
        let nan = |v: Value| made_by::<IsNaN>(model, v) == Some(&[seen][..]);
        let missing = if nan(a) { b } else { a };
        (nan(a) || nan(b)).then_some(())?;
        tables.push(of(missing)?);
    }
    let count = model.constant_of(value)?.len();
    let whole = tables.iter().all(|t| model.constant_of(*t).is_some_and(|t| t.shape() == [count]));
    let within = |v: Value, most: usize| {
        let list = model.constant_of(v).and_then(|t| Some(t.to_vec::<i64>().ok()?.into_owned()));
        list.is_some_and(|list| list.iter().all(|&i| usize::try_from(i).is_ok_and(|i| i < most)))
    };
    let i64s = [feature, yes, no].iter().all(|t| model.fact(*t).ty == ElementType::I64);
    let there = within(feature, usize::MAX) && within(yes, count) && within(no, count);
    (whole && i64s && there).then_some(Level { test, x, at, tables })
}

// A table, and what is looked up in it.
fn looked_up(model: &Model, v: Value) -> Option<(Value, Value)> {
    let &[table, at, axis] = made_by::<Gather>(model, v)? else { return None };
    let plain = model.op_at::<Gather>(v.node)?.batch_dims == 0;
    let first = model.constant_of(axis)?.to_vec::<i64>().ok()?.iter().all(|&a| a == 0);
    (plain && first).then_some((table, at))
}

fn compared(model: &Model, v: Value) -> Option<(Test, Value, Value)> {
    macro_rules! tests {
        ($($op:ident)*) => {
            $(if let Some(&[a, b]) = made_by::<$op>(model, v) {
                return Some((Test::$op, a, b));
            })*
        };
    }
    tests!(LessEqual Less GreaterEqual Greater Equal NotEqual);
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;
    use super::*;
    use carafe_graph::{Notes, Pass};
    use carafe_tensor::Tensor;

    // A tree of seven nodes in which rows of 3 features go down some levels.
    fn trees(levels: usize, missing: bool, last_yes: i64) -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, "?,3".parse().unwrap()).unwrap();
        let mut at = m.parameter("at", ElementType::I64, "?,2".parse().unwrap()).unwrap();
        let ints = |m: &mut Model, name: &str, list: &[i64]| {
            m.constant(name, Tensor::from_slice(&[list.len()], list).unwrap()).unwrap()
        };
        let feature = ints(&mut m, "feature", &[0, 2, 1, 0, 0, 0, 0]);
        let yes = ints(&mut m, "yes", &[1, 3, 5, 3, 4, 5, last_yes]);
        let no = ints(&mut m, "no", &[2, 4, 6, 3, 4, 5, 6]);
        let values = Tensor::from_slice(&[7], &[0.5f32, -1.0, 2.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        let values = m.constant("value", values).unwrap();
        let lost = Tensor::from_i64(ElementType::Boolean, &[7], &[1, 0, 1, 0, 0, 0, 0]).unwrap();
        let lost = m.constant("missing", lost).unwrap();
        let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
        for k in 0..levels {
            let gather = |m: &mut Model, table: Value, what: &str| {
                let node = m.add(format!("{what}{k}"), Gather { batch_dims: 0 }, &[table, at, axis]);
                Value::from(node.unwrap())
            };
            let f = gather(&mut m, feature, "f");
            let v = gather(&mut m, values, "v");
            let (y, n) = (gather(&mut m, yes, "y"), gather(&mut m, no, "n"));
            let l = gather(&mut m, lost, "l");
            let seen = m.add(format!("seen{k}"), GatherElements { axis: 1 }, &[x, f]).unwrap();
            let mut go = m.add(format!("go{k}"), LessEqual::default(), &[seen.into(), v]).unwrap();
            if missing {
                let nan = m.add(format!("nan{k}"), IsNaN, &[seen.into()]).unwrap();
                let both = m.add(format!("both{k}"), LogicalAnd::default(), &[nan.into(), l]).unwrap();
                go = m.add(format!("or{k}"), LogicalOr::default(), &[go.into(), both.into()]).unwrap();
            }
            let choice = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
            at = m.add(format!("at{k}"), choice, &[go.into(), y, n]).unwrap().into();
        }
        m.result("r", at).unwrap();
        m.prune();
        m
    }

    #[test]
    fn all_levels_become_one_walk() {
        for (levels, missing) in [(1, false), (2, false), (3, true)] {
            let before = trees(levels, missing, 6);
            let mut after = before.clone();
            assert_eq!(FuseTreeWalk.run(&mut after, &mut Notes::default()).unwrap(), levels);
            assert_eq!(kinds(&after), "TreeWalk");
            let x = Tensor::from_slice(&[2, 3], &[0.0f32, 9.0, 0.0, f32::NAN, f32::NAN, -5.0]).unwrap();
            let at = Tensor::from_slice(&[2, 2], &[0i64, 2, 0, 1]).unwrap();
            let (a, b) = (before.evaluate(&[x.clone(), at.clone()]).unwrap(), after.evaluate(&[x, at]).unwrap());
            assert!(a[0].content_eq(&b[0]));
        }
    }

    #[test]
    fn nodes_counted_from_the_end_stay() {
        let mut m = trees(2, false, -1);
        assert_eq!(FuseTreeWalk.run(&mut m, &mut Notes::default()).unwrap(), 0);
    }

    #[test]
    fn a_level_that_others_read_ends_a_walk() {
        let mut m = trees(2, false, 6);
        let middle = m.find_node("at0").unwrap();
        m.result("middle", middle.into()).unwrap();
        FuseTreeWalk.run(&mut m, &mut Notes::default()).unwrap();
        assert_eq!(kinds(&m), "TreeWalk TreeWalk");
    }
}
