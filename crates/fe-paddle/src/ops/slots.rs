//! How rules read an operator: slots by name, and attributes that may be computed.

use carafe_frontend::{Compose, Item, NodeCx, Outputs};
use carafe_graph::{AttrValue, Result, Value};
use carafe_tensor::{ElementType, Tensor};

pub(super) trait Slots {
    /// The value of a slot.
    fn slot(&mut self, name: &str) -> Result<Value>;
    /// The value of a slot that may be empty.
    fn opt_slot(&mut self, name: &str) -> Result<Option<Value>>;
    /// What a slot holds, which may be an array of tensors.
    fn slot_item(&mut self, name: &str) -> Result<Option<Item>>;
    /// Whether a slot holds something.
    fn has_slot(&self, name: &str) -> bool;
    /// Says that slots have no effect on the result.
    fn ignore_slots(&self, names: &[&str]);
    /// Whether somebody reads an output.
    fn wants(&self, slot: &str) -> bool;
    /// Outputs by their slots; those that the operator does not have are left out.
    fn give(&self, named: &[(&str, Value)]) -> Outputs;
    /// An element type; Paddle has -1 for none.
    fn dtype(&self, attribute: &str) -> Result<Option<ElementType>>;
    /// Whole numbers as an i64 vector: of one of the slots, of a slot of the attribute's name, or of the attribute.
    fn vector(&mut self, attribute: &str, slots: &[&str]) -> Result<Option<Value>>;
    /// As `vector`, for numbers that must be known now.
    fn known_ints(&mut self, attribute: &str, slots: &[&str]) -> Result<Option<Vec<i64>>>;
    /// One such number.
    fn known_int(&mut self, attribute: &str, slots: &[&str], default: i64) -> Result<i64>;
    /// A number in the type of a value: of a slot, or of the attribute.
    fn number_of(&mut self, attribute: &str, slots: &[&str], default: f64, like: Value) -> Result<Value>;
    /// Whether an attribute names a layout with the channels last.
    fn is_channels_last(&self, attribute: &str) -> Result<bool>;
    /// The value without axes: an element of a vector of one.
    fn as_scalar(&mut self, v: Value) -> Result<Value>;
    /// One number for all elements.
    fn filled(&mut self, ty: ElementType, value: f64, dims: Value) -> Result<Value>;
}

impl Slots for NodeCx<'_> {
    fn slot(&mut self, name: &str) -> Result<Value> {
        let found = self.opt_slot(name)?;
        found.ok_or_else(|| self.fail(format!("slot `{name}` is empty")))
    }

    fn opt_slot(&mut self, name: &str) -> Result<Option<Value>> {
        match self.inputs_named(name)?[..] {
            [] => Ok(None),
            [v] => Ok(Some(v)),
            ref all => Err(self.fail(format!("slot `{name}` has {} values, expected 1", all.len()))),
        }
    }

    fn slot_item(&mut self, name: &str) -> Result<Option<Item>> {
        match self.input_ports().iter().position(|p| p == name) {
            Some(at) => self.item(at),
            None => Ok(None),
        }
    }

    fn has_slot(&self, name: &str) -> bool {
        self.input_ports().iter().any(|p| p == name)
    }

    fn ignore_slots(&self, names: &[&str]) {
        let all = self.input_ports().iter().enumerate().filter(|(_, p)| names.contains(&p.as_str()));
        all.for_each(|(i, _)| self.ignore_inputs(i));
    }

    fn wants(&self, slot: &str) -> bool {
        self.output_ports().iter().position(|p| p == slot).is_some_and(|at| self.wants_output(at))
    }

    fn give(&self, named: &[(&str, Value)]) -> Outputs {
        let of = |port: &String| {
            named.iter().find(|(name, _)| name == port).map_or(Item::Nothing, |(_, v)| Item::Tensor(*v))
        };
        Outputs(self.output_ports().iter().map(of).collect())
    }

    fn dtype(&self, attribute: &str) -> Result<Option<ElementType>> {
        match self.attr_value(attribute) {
            None | Some(AttrValue::Int(-1)) => Ok(None),
            Some(AttrValue::Type(ty)) => Ok(Some(*ty)),
            Some(AttrValue::Int(code)) => {
                let ty = self.element_type(*code);
                ty.map(Some).ok_or_else(|| self.unsupported(format!("`{attribute}` is element type {code}")))
            }
            Some(AttrValue::Str(name)) => {
                let ty = crate::types::named(name);
                ty.map(Some).ok_or_else(|| self.unsupported(format!("`{attribute}` is element type `{name}`")))
            }
            Some(other) => Err(self.fail(format!("`{attribute}` must be an element type, found {other}"))),
        }
    }

    fn vector(&mut self, attribute: &str, slots: &[&str]) -> Result<Option<Value>> {
        for slot in slots.iter().chain([&attribute]) {
            let all = self.inputs_named(slot)?;
            if all.is_empty() {
                continue;
            }
            self.ignore(&[attribute]);
            let mut parts = vec![];
            for v in all {
                let v = self.convert(v, ElementType::I64)?;
                parts.push(if self.rank(v) == Some(1) { v } else { self.reshape(v, &[-1])? });
            }
            return Ok(Some(self.concat(&parts, 0)?));
        }
        // Paddle 3 writes whole numbers as floats where an attribute was a tensor of floats.
        let list = match self.attr_value(attribute) {
            None => return Ok(None),
            Some(AttrValue::Float(x)) if x.fract() == 0.0 => vec![*x as i64],
            Some(AttrValue::Floats(list)) if list.iter().all(|x| x.fract() == 0.0) => {
                list.iter().map(|x| *x as i64).collect()
            }
            Some(_) => self.required::<Vec<i64>>(attribute)?,
        };
        Ok(Some(self.i64s(&list)?))
    }

    fn known_ints(&mut self, attribute: &str, slots: &[&str]) -> Result<Option<Vec<i64>>> {
        match self.vector(attribute, slots)? {
            None => Ok(None),
            Some(v) => match self.ints(v) {
                Some(list) => Ok(Some(list)),
                None => {
                    Err(self.unsupported(format!("`{attribute}` is computed; it must be known when the model is read")))
                }
            },
        }
    }

    fn known_int(&mut self, attribute: &str, slots: &[&str], default: i64) -> Result<i64> {
        match self.known_ints(attribute, slots)?.as_deref() {
            None => Ok(default),
            Some([one]) => Ok(*one),
            Some(list) => Err(self.fail(format!("`{attribute}` must be one number, found {list:?}"))),
        }
    }

    fn number_of(&mut self, attribute: &str, slots: &[&str], default: f64, like: Value) -> Result<Value> {
        for slot in slots.iter().chain([&attribute]) {
            if let Some(v) = self.opt_slot(slot)? {
                self.ignore(&[attribute]);
                let v = self.as_scalar(v)?;
                return self.convert_like(v, like);
            }
        }
        let value = self.attr(attribute, default)?;
        self.scalar_like(like, value)
    }

    fn is_channels_last(&self, attribute: &str) -> Result<bool> {
        let layout: String = self.attr(attribute, "NCHW".to_string())?;
        match layout.as_str() {
            "NCHW" | "NCDHW" | "NCL" | "NCW" | "NCT" | "AnyLayout" | "ANY" | "Undefined(AnyLayout)" => Ok(false),
            "NHWC" | "NDHWC" | "NLC" | "NWC" | "NTC" => Ok(true),
            other => Err(self.unsupported(format!("`{attribute}` is `{other}`; known are NCHW and NHWC"))),
        }
    }

    fn as_scalar(&mut self, v: Value) -> Result<Value> {
        if self.rank(v) == Some(0) { Ok(v) } else { self.reshape(v, &[]) }
    }

    fn filled(&mut self, ty: ElementType, value: f64, dims: Value) -> Result<Value> {
        let one = self.constant(Tensor::from_f64(ty, &[], &[value])?)?;
        if self.ints(dims).is_some_and(|d| d.is_empty()) {
            return Ok(one);
        }
        self.put(
            carafe_ops::movement::Broadcast { mode: carafe_ops::movement::broadcast::BroadcastMode::Numpy },
            &[one, dims],
        )
    }
}

/// The order of axes that brings the last one behind the first.
pub(super) fn channels_first(rank: usize) -> Vec<i64> {
    let mut order: Vec<i64> = vec![0, rank as i64 - 1];
    order.extend(1..rank as i64 - 1);
    order
}

/// The order of axes that brings the second one to the end.
pub(super) fn channels_last(rank: usize) -> Vec<i64> {
    let mut order: Vec<i64> = vec![0];
    order.extend(2..rank as i64);
    order.push(1);
    order
}

/// Applies a function to a value with its channels first, and gives the result in the layout of the value.
pub(super) fn in_channels_first(
    n: &mut NodeCx<'_>,
    x: Value,
    is_last: bool,
    f: impl FnOnce(&mut NodeCx<'_>, Value) -> Result<Value>,
) -> Result<Value> {
    if !is_last {
        return f(n, x);
    }
    let rank = n.known_rank(x)?;
    let x = n.transpose(x, &channels_first(rank))?;
    let y = f(n, x)?;
    let rank = n.known_rank(y)?;
    n.transpose(y, &channels_last(rank))
}
