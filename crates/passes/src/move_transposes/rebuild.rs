//! Carries a choice out: nodes that move are made again with their values in the order, those that stay read Transposes.

use super::region::{Choice, Form, Role, takes};
use crate::reordered::{DEPTH, add_laid_out, add_transpose, inverse, is_laid_out, is_single, rebuild, with_rank};
use crate::shared::{feeds_result, forward, transpose_order};
use carafe_graph::{Model, NodeId, Outcome, Result, Use, Value};
use carafe_ops::indexing::Gather;
use carafe_tensor::Tensor;
use std::collections::{HashMap, HashSet};

pub(super) fn carry_out(model: &mut Model, choice: Choice) -> Result<()> {
    let back = inverse(&choice.order);
    let mut roles = choice.roles;
    let outside = roles.iter().filter(|(_, role)| matches!(role, Role::OutOf)).map(|(&id, _)| id).collect();
    let mut all = Rebuild { order: choice.order, back, moved: choice.moved, outside, stored: HashMap::new() };
    // Users are those of the model as it was: what is made on the way is not asked again.
    let mut sites = vec![];
    for id in choice.sequence {
        if all.moves(id) || all.outside.contains(&id) {
            let ports = 0..model.node(id).outputs().len();
            let users = ports.map(|port| model.users(Value { node: id, port }).to_vec()).collect();
            sites.push((id, Site { users, named: feeds_any_result(model, id) }));
        }
    }
    let reads: HashMap<NodeId, Reads> = roles.iter().map(|(&id, role)| (id, Reads::of(role))).collect();
    for (id, site) in sites {
        let moves = all.moves(id);
        if let (true, Some(role)) = (moves, roles.remove(&id)) {
            all.make(model, id, role, site.named)?;
        }
        all.spread(model, id, &site, &reads, moves)?;
    }
    Ok(())
}

struct Site {
    users: Vec<Vec<Use>>,
    named: bool,
}

// What a node with a role reads in the order.
enum Reads {
    First(usize),
    Into,
    Turns,
    Nothing,
}

impl Reads {
    fn of(role: &Role) -> Reads {
        match role {
            Role::Through(new) => Reads::First(new.data),
            Role::Into => Reads::Into,
            Role::Turns => Reads::Turns,
            Role::OutOf | Role::Gives(_) => Reads::Nothing,
        }
    }
}

struct Rebuild {
    order: Vec<usize>,
    back: Vec<usize>,
    moved: HashMap<NodeId, bool>,
    // Transposes out of the order: what they read is the value in the order.
    outside: HashSet<NodeId>,
    // Values that are there in the order.
    stored: HashMap<Value, Value>,
}

impl Rebuild {
    fn moves(&self, id: NodeId) -> bool {
        self.moved.get(&id).copied().unwrap_or(false)
    }

    // The value in the order.
    fn in_order(&mut self, model: &mut Model, v: Value) -> Result<Value> {
        if let Some(&there) = self.stored.get(&v) {
            return Ok(there);
        }
        if self.outside.contains(&v.node) {
            return Ok(model.node(v.node).inputs()[0]);
        }
        if is_single(model, v) {
            return Ok(v);
        }
        let made = if model.constant_of(v).is_some() {
            add_laid_out(model, v, &self.order)?
        } else if is_laid_out(model, v, DEPTH) {
            // Weights that are stored in a smaller type.
            let inputs = model.node(v.node).inputs().to_vec();
            let inputs = inputs.into_iter().map(|i| self.in_order(model, i)).collect::<Result<Vec<_>>>()?;
            let name = format!("{}/transposed", model.node(v.node).name());
            let op = model.node(v.node).op_ref().clone();
            let info = model.node(v.node).rt_info.clone();
            let new = model.add_ref(name, op, &inputs)?;
            *model.rt_info_mut(new) = info;
            new.into()
        } else {
            let wide = with_rank(model, v, self.order.len())?;
            add_transpose(model, wide, &self.order)?
        };
        self.stored.insert(v, made);
        Ok(made)
    }

    // A node made again with its outputs in the order.
    fn make(&mut self, model: &mut Model, id: NodeId, role: Role, named: bool) -> Result<()> {
        let name = model.node(id).name().to_string();
        let new = match role {
            Role::Through(new) => {
                // As they are now: a Transpose before one may be gone.
                let inputs = model.node(id).inputs()[..new.data].to_vec();
                let inputs = inputs.into_iter().map(|v| self.in_order(model, v)).collect::<Result<Vec<_>>>()?;
                rebuild(model, id, new, inputs)?
            }
            Role::Gives(form) => {
                let (x, list) = (model.node(id).inputs()[0], model.node(id).inputs()[1]);
                let list = match form {
                    Form::Axes(axes) => ints_of(model, &format!("{name}/axes"), &axes)?,
                    _ => picked(model, list, &self.order)?,
                };
                let op = model.node(id).op_ref().clone();
                let info = model.node(id).rt_info.clone();
                let new = model.add_ref(&name, op, &[x, list])?;
                model.set_name(id, format!("{name}/was"));
                *model.rt_info_mut(new) = info;
                new
            }
            Role::Turns => {
                let x = model.node(id).inputs()[0];
                let Some(own) = transpose_order(model, id) else { return Ok(()) };
                let both: Vec<usize> = self.order.iter().map(|&a| own[a]).collect();
                add_transpose(model, x, &both)?.node
            }
            Role::Into | Role::OutOf => return Ok(()),
        };
        if named {
            model.set_name(id, name.clone());
            model.set_name(new, format!("{name}/reordered"));
        }
        for port in 0..model.node(id).outputs().len() {
            self.stored.insert(Value { node: id, port }, Value { node: new, port });
        }
        Ok(())
    }

    // Lets the users of a node's outputs read what there is now. `replaced`: the node itself goes.
    fn spread(
        &mut self,
        model: &mut Model,
        id: NodeId,
        site: &Site,
        reads: &HashMap<NodeId, Reads>,
        replaced: bool,
    ) -> Result<()> {
        for (port, users) in site.users.iter().enumerate() {
            let v = Value { node: id, port };
            let there = self.in_order(model, v)?;
            let mut left = vec![];
            for &u in users {
                if model.fact(v).shape.rank() != Some(self.order.len())
                    || !self.reads_in_order(model, u, v, there, reads)?
                {
                    left.push(u);
                }
            }
            if left.is_empty() || !replaced {
                continue;
            }
            let old = if is_single(model, v) { there } else { add_transpose(model, there, &self.back)? };
            if site.named && model.node(id).outputs().len() == 1 {
                let name = model.node(id).name().to_string();
                model.set_name(id, format!("{name}/was"));
                model.set_name(old.node, name);
            }
            left.iter().for_each(|u| model.set_input(u.node, u.input, old));
            let names = model.output(v).names.clone();
            model.set_tensor_names(v, Default::default());
            model.set_tensor_names(old, names);
        }
        Ok(())
    }

    // Whether a user needs the value as it was no longer.
    fn reads_in_order(
        &mut self,
        model: &mut Model,
        u: Use,
        v: Value,
        there: Value,
        reads: &HashMap<NodeId, Reads>,
    ) -> Result<bool> {
        if model.get(u.node).is_none() {
            return Ok(true);
        }
        match reads.get(&u.node) {
            Some(Reads::First(n)) if u.input < *n => return Ok(self.moves(u.node)),
            Some(Reads::Into) if u.input == 0 => {
                return Ok(forward(model, u.node.into(), there) == Outcome::Done);
            }
            Some(Reads::Turns) if u.input == 0 => {
                let Some(own) = transpose_order(model, u.node) else { return Ok(false) };
                let both: Vec<i64> = own.iter().map(|&a| self.back[a] as i64).collect();
                let list = ints_of(model, &format!("{}/order", model.node(u.node).name()), &both)?;
                model.set_input(u.node, 0, there);
                model.set_input(u.node, 1, list);
                return Ok(true);
            }
            _ if u.input != 0 => return Ok(false),
            _ => {}
        }
        match takes(model, u.node, &self.order) {
            None => Ok(false),
            Some(Form::Reshape) => {
                model.set_input(u.node, 0, there);
                Ok(true)
            }
            Some(Form::Axes(axes)) => {
                let list = ints_of(model, &format!("{}/axes", model.node(u.node).name()), &axes)?;
                model.set_input(u.node, 0, there);
                model.set_input(u.node, 1, list);
                Ok(true)
            }
            Some(Form::Shape) => {
                let op = model.node(u.node).op_ref().clone();
                let name = format!("{}/shape", model.node(v.node).name());
                let sizes = model.add_ref(name, op, &[there])?;
                let sizes = picked(model, sizes.into(), &self.back)?;
                Ok(forward(model, u.node.into(), sizes) == Outcome::Done)
            }
        }
    }
}

fn feeds_any_result(model: &Model, id: NodeId) -> bool {
    (0..model.node(id).outputs().len()).any(|port| feeds_result(model, Value { node: id, port }))
}

fn ints_of(model: &mut Model, name: &str, list: &[i64]) -> Result<Value> {
    model.constant(name, Tensor::from_slice(&[list.len()], list)?)
}

// The entries of a list in another order.
fn picked(model: &mut Model, list: Value, order: &[usize]) -> Result<Value> {
    let name = format!("{}/reordered", model.node(list.node).name());
    let at: Vec<i64> = order.iter().map(|&a| a as i64).collect();
    let at = ints_of(model, &format!("{name}/places"), &at)?;
    let axis = model.constant(&format!("{name}/axis"), Tensor::scalar(0i64))?;
    Ok(model.add(name, Gather { batch_dims: 0 }, &[list, at, axis])?.into())
}
