//! Rewrites that look at one node and its surroundings. A rewrite says where it fired and, where the shape of the
//! graph was nearly right, why it did not; the walk over all nodes and bodies is here, once.

use crate::error::Result;
use crate::model::{Model, NodeId, Value};
use crate::op::Op;
use crate::pass::{Notes, Pass};
use crate::structural::Constant;
use carafe_tensor::Tensor;
use std::borrow::Cow;
use std::sync::Arc;

/// What became of one node.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pattern does not begin here: not worth a word.
    NoMatch,
    /// The pattern is here, but something forbids the rewrite.
    Skip(Cow<'static, str>),
    /// The model was changed.
    Done,
}

impl Outcome {
    /// Nothing was done, for this reason.
    pub fn skip(why: impl Into<Cow<'static, str>>) -> Outcome {
        Outcome::Skip(why.into())
    }
}

/// A rewrite with one root node. Every implementor is a `Pass` that tries each node once, producers first, bodies
/// included. The root may be replaced or removed; other nodes that become unused are pruned afterwards.
pub trait Rewrite: Send + Sync {
    /// Verb and object, e.g. `fuse_gelu`.
    fn name(&self) -> &'static str;
    /// Looks at one node and rewrites what is around it, or says why not.
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome>;
}

impl<R: Rewrite> Pass for R {
    fn name(&self) -> &'static str {
        Rewrite::name(self)
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        everywhere(self, model, notes)
    }
}

// Tries a rewrite at every node; compiled once for all of them.
fn everywhere(rewrite: &dyn Rewrite, model: &mut Model, notes: &mut Notes) -> Result<usize> {
    let fired = in_bodies(model, &mut |body| everywhere(rewrite, body, notes))?;
    let mut changed = 0;
    for id in model.topological_order()? {
        let Some(location) = model.get(id).map(|n| n.location()) else { continue };
        match rewrite.at(model, id).map_err(|e| e.at(location.clone()))? {
            Outcome::NoMatch => {}
            Outcome::Skip(why) => notes.add(|| format!("{}: {location} stays: {why}", rewrite.name())),
            Outcome::Done => {
                notes.add(|| format!("{}: fired at {location}", rewrite.name()));
                changed += 1;
            }
        }
    }
    if changed > 0 {
        model.prune();
    }
    Ok(fired + changed)
}

/// Runs `f` on every body of every node and puts changed bodies back; the sum of what `f` counts.
pub fn in_bodies(model: &mut Model, f: &mut dyn FnMut(&mut Model) -> Result<usize>) -> Result<usize> {
    let with_bodies: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().has_body()).map(|(id, _)| id).collect();
    let mut total = 0;
    for id in with_bodies {
        let mut op = model.node(id).op().clone_op();
        let mut here = 0;
        for (_, body) in op.bodies_mut() {
            here += f(&mut body.model)?;
        }
        if here > 0 {
            model.set_op(id, Arc::from(op))?;
        }
        total += here;
    }
    Ok(total)
}

/// What rewrites ask of the surroundings of a node.
impl Model {
    /// The operation that makes the value, if it is a `T`.
    pub fn producer<T: Op>(&self, v: Value) -> Option<(NodeId, &T)> {
        Some((v.node, self.node(v.node).op().get::<T>()?))
    }
    /// The operation of the node, if it is a `T`.
    pub fn op_at<T: Op>(&self, id: NodeId) -> Option<&T> {
        self.get(id)?.op().get()
    }
    /// The value of a constant.
    pub fn constant_of(&self, v: Value) -> Option<&Tensor> {
        Some(self.producer::<Constant>(v)?.1.tensor())
    }
    /// The number, if the value is a floating or integer constant whose elements are all this number.
    pub fn splat_of(&self, v: Value) -> Option<f64> {
        let tensor = self.constant_of(v)?;
        if !(1..=4096).contains(&tensor.len()) || tensor.element_type() == carafe_tensor::ElementType::String {
            return None;
        }
        let all = tensor.to_vec::<f64>().ok()?;
        all.iter().all(|x| x.to_bits() == all[0].to_bits()).then_some(all[0])
    }
    /// Whether nothing but one input of one node reads the value.
    pub fn has_one_user(&self, v: Value) -> bool {
        self.users(v).len() == 1
    }
    /// Input `i` of a node.
    pub fn input(&self, id: NodeId, i: usize) -> Option<Value> {
        self.get(id)?.inputs().get(i).copied()
    }
    /// Puts `new` in the place of output 0 of `old`: users, tensor names, friendly name and runtime information move.
    /// `old` is left without users.
    pub fn supersede(&mut self, old: NodeId, new: NodeId) {
        let name = self.node(old).name().to_string();
        let info = self.node(old).rt_info.clone();
        self.set_name(old, format!("{name}/was"));
        self.set_name(new, name);
        self.rt_info_mut(new).extend_missing(&info);
        self.replace_value(old.into(), new.into());
    }
}
