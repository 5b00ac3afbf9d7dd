//! A model in f16 or bf16 is computed in f32: for devices whose kernels have no smaller type. Inputs, outputs and variables
//! keep their types, with a Convert beside them; constants are widened. Operations that look at bits or know the least number
//! of a type, those with bodies and those that come from extensions see what they always saw. Roundings between two operations
//! are left out on the way, so results are nearer to the exact ones.

use carafe_graph::{Constant, Model, NodeId, Notes, Op, Parameter, Pass, Result, ResultOp, Value};
use carafe_ops::convert::Convert;
use carafe_tensor::ElementType;
use std::collections::HashMap;
use std::sync::Arc;

/// Computes a model in f16 or bf16 in f32.
#[derive(Clone, Copy, Debug)]
pub struct ComputeInF32 {
    /// Operations that keep their types, beside those named above.
    pub keeps: fn(&dyn Op) -> bool,
}

impl Pass for ComputeInF32 {
    fn name(&self) -> &'static str {
        "compute_in_f32"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let with_bodies: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().has_body()).map(|(id, _)| id).collect();
        let mut done = 0;
        for id in with_bodies {
            let mut op = model.node(id).op().clone_op();
            let mut inside = 0;
            for (_, body) in op.bodies_mut() {
                inside += self.run(&mut body.model, notes)?;
            }
            if inside > 0 {
                model.set_op(id, Arc::from(op))?;
            }
            done += inside;
        }
        if !model.nodes().any(|(_, n)| n.outputs().iter().any(|o| is_small(o.fact.ty))) {
            return Ok(done);
        }
        let mut walk = Walk { model, narrow: HashMap::new(), types: HashMap::new(), done };
        for id in walk.model.topological_order()? {
            walk.node(id, self.keeps, notes)?;
        }
        Ok(walk.done)
    }
}

fn is_small(ty: ElementType) -> bool {
    matches!(ty, ElementType::F16 | ElementType::Bf16)
}

// What must see the type that the model says.
fn is_kept(op: &dyn Op) -> bool {
    let info = op.info();
    !info.builtin || info.stateful || info.sink || op.has_body() || op.is::<Parameter>() || op.needs_own_type()
}

struct Walk<'a> {
    model: &'a mut Model,
    /// The same numbers in the type that the model said, for values that were widened.
    narrow: HashMap<Value, Value>,
    /// The type that a widened value had.
    types: HashMap<Value, ElementType>,
    done: usize,
}

impl Walk<'_> {
    fn node(&mut self, id: NodeId, keeps: fn(&dyn Op) -> bool, notes: &mut Notes) -> Result<()> {
        let node = self.model.node(id);
        let before: Vec<ElementType> = node.outputs().iter().map(|o| o.fact.ty).collect();
        let touched = before.iter().any(|t| is_small(*t)) || node.inputs().iter().any(|v| self.types.contains_key(v));
        if !touched {
            return Ok(());
        }
        let op = node.op_ref().clone();
        if op.is::<ResultOp>() {
            return self.result(id);
        }
        if is_kept(&*op) || keeps(&*op) {
            self.narrow_inputs(id)?;
            return self.widen_outputs(id, &before);
        }
        let in_f32: Arc<dyn Op> = if let Some(c) = op.get::<Constant>() {
            let wide = c.tensor().cast(ElementType::F32)?;
            c.tensor().release();
            Arc::new(Constant::new(wide))
        } else if op.get::<Convert>().is_some_and(|c| is_small(c.destination_type)) {
            Arc::new(Convert { destination_type: ElementType::F32 })
        } else {
            op.clone()
        };
        match self.model.set_op(id, in_f32) {
            Ok(()) => self.done += 1,
            Err(e) => {
                notes.add(|| format!("compute_in_f32: {} stays, {e}", self.model.node(id).location()));
                self.narrow_inputs(id)?;
                self.model.set_op(id, op)?;
            }
        }
        self.widen_outputs(id, &before)
    }

    // An output of the model keeps its type and its names.
    fn result(&mut self, id: NodeId) -> Result<()> {
        let wide = self.model.result_value(id);
        self.narrow_inputs(id)?;
        let narrow = self.model.result_value(id);
        if self.model.output(narrow).names.is_empty() {
            let names = self.model.output(wide).names.clone();
            self.model.set_tensor_names(wide, Default::default());
            self.model.set_tensor_names(narrow, names);
        }
        self.model.set_op(id, Arc::new(ResultOp {}))
    }

    fn narrow_inputs(&mut self, id: NodeId) -> Result<()> {
        for (i, v) in self.model.node(id).inputs().to_vec().into_iter().enumerate() {
            let Some(&ty) = self.types.get(&v) else { continue };
            let narrow = match self.narrow.get(&v) {
                Some(&narrow) => narrow,
                None => {
                    let name = format!("{}_{}_{ty}", self.model.node(v.node).name(), v.port);
                    let new: Value = self.model.add(name, Convert { destination_type: ty }, &[v])?.into();
                    self.narrow.insert(v, new);
                    new
                }
            };
            self.model.set_input(id, i, narrow);
        }
        Ok(())
    }

    fn widen_outputs(&mut self, id: NodeId, before: &[ElementType]) -> Result<()> {
        for (port, &ty) in before.iter().enumerate().filter(|(_, t)| is_small(**t)) {
            let v = Value { node: id, port };
            let now = self.model.fact(v).ty;
            if now == ElementType::F32 {
                self.types.insert(v, ty);
            } else if is_small(now) {
                let users = self.model.users(v).to_vec();
                let name = format!("{}_{port}_f32", self.model.node(id).name());
                let wide = self.model.add(name, Convert { destination_type: ElementType::F32 }, &[v])?.into();
                users.into_iter().for_each(|u| self.model.set_input(u.node, u.input, wide));
                self.types.insert(wide, ty);
                self.narrow.insert(wide, v);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_graph::AttrValue;
    use carafe_graph::Body;
    use carafe_ops::carafe::BitCast;
    use carafe_ops::control::If;
    use carafe_ops::math::Tanh;
    use carafe_tensor::{Tensor, f16};

    const PASS: ComputeInF32 = ComputeInF32 { keeps: |_| false };

    fn types(d: &Draft, ty: &str) -> Vec<ElementType> {
        let of = |n: &carafe_graph::Node| n.outputs()[0].fact.ty;
        d.model.nodes().filter(|(_, n)| n.op().info().name == ty).map(|(_, n)| of(n)).collect()
    }

    #[test]
    fn the_inside_is_f32_and_the_borders_stay() {
        let mut d = Draft::new();
        let x = d.input_of("x", ElementType::F16, &[2]);
        let k = d.model.constant("k", Tensor::from_slice(&[2], &[f16::from_f32(0.5); 2]).unwrap()).unwrap();
        let sum = d.add("sum", carafe_ops::arithmetic::Add::default(), &[x, k]);
        let y = d.add("y", Tanh, &[sum]);
        d.model.add_tensor_name(y, "answer");
        let r = d.result(y);
        d.run(&PASS);
        assert_eq!((types(&d, "Add"), types(&d, "Tanh")), (vec![ElementType::F32], vec![ElementType::F32]));
        assert_eq!((types(&d, "Parameter"), types(&d, "Result")), (vec![ElementType::F16], vec![ElementType::F16]));
        assert_eq!((d.count("Convert"), d.model.result_name(r).as_str()), (2, "answer"));
        let one = Tensor::from_slice(&[2], &[f16::ZERO, f16::ONE]).unwrap();
        let found = d.model.evaluate(&[one]).unwrap();
        let expected = [0.5f32.tanh(), 1.5f32.tanh()].map(f16::from_f32);
        assert_eq!(found[0].as_slice::<f16>().unwrap(), expected);
    }

    #[test]
    fn an_input_that_is_handed_out_is_not_converted() {
        let mut d = Draft::new();
        let x = d.input_of("x", ElementType::Bf16, &[2]);
        let r = d.result(x);
        d.run(&PASS);
        assert_eq!(d.model.result_value(r), x);
    }

    #[test]
    fn bits_are_looked_at_in_the_type_of_the_model() {
        let mut d = Draft::new();
        let x = d.input_of("x", ElementType::F16, &[2]);
        let t = d.add("t", Tanh, &[x]);
        let bits = d.add("bits", BitCast { destination_type: ElementType::I16 }, &[t]);
        d.result(bits);
        d.run(&PASS);
        assert_eq!((types(&d, "Tanh"), types(&d, "BitCast")), (vec![ElementType::F32], vec![ElementType::I16]));
    }

    #[test]
    fn a_pool_with_empty_windows_keeps_its_type() {
        for (stride, rounding, expected) in
            [("2", "ceil", ElementType::F32), ("3", "ceil", ElementType::F16), ("3", "floor", ElementType::F32)]
        {
            let mut attrs = carafe_graph::AttrMap::default();
            for (name, value) in [
                ("strides", stride),
                ("kernel", "2"),
                ("pads_begin", "0"),
                ("pads_end", "0"),
                ("rounding_type", rounding),
            ] {
                attrs.set(name, AttrValue::Text(value.into()));
            }
            let registry = carafe_ops::registry();
            let pool = registry.newest("MaxPool").unwrap().create(&attrs).unwrap();
            let mut d = Draft::new();
            let x = d.input_of("x", ElementType::F16, &[1, 1, 9]);
            let y = d.model.add_ref("y", pool, &[x]).unwrap();
            d.result(y.into());
            d.run(&PASS);
            assert_eq!(types(&d, "MaxPool"), [expected], "{stride} {rounding}");
        }
    }

    #[test]
    fn a_rounding_on_the_way_is_left_out() {
        let mut d = Draft::new();
        let x = d.input("x", &[2]);
        let small = d.add("small", Convert { destination_type: ElementType::F16 }, &[x]);
        let y = d.add("y", Tanh, &[small]);
        d.result(y);
        d.run(&PASS);
        assert_eq!(types(&d, "Tanh"), [ElementType::F32]);
        assert_eq!(types(&d, "Result"), [ElementType::F16]);
    }

    #[test]
    fn bodies_are_computed_in_f32_too() {
        let mut branch = Draft::new();
        let p = branch.input_of("p", ElementType::F16, &[2]);
        let y = branch.add("y", Tanh, &[p]);
        branch.result(y);
        let body = |m: &Model| {
            let mut b = Body::new(m.clone());
            b.inputs.push(carafe_graph::BodyInput { outer: Some(1), parameter: 0, slicing: None, back_edge: None });
            b.outputs.push(carafe_graph::BodyOutput { outer: 0, result: 0, slicing: None });
            b
        };
        let mut d = Draft::new();
        let c = d.input_of("c", ElementType::Boolean, &[]);
        let x = d.input_of("x", ElementType::F16, &[2]);
        let both = If { then_body: body(&branch.model), else_body: body(&branch.model) };
        let y = d.add("if", both, &[c, x]);
        d.result(y);
        assert_eq!(d.run(&PASS).0, 2);
        assert_eq!(types(&d, "If"), [ElementType::F16]);
    }
}
