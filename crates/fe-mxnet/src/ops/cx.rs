//! What the rules of MXNet read of a node: settings in the notation of Python, where `None` stands for one that is not set, and
//! sizes that are taken off the data when the model runs.

use crate::attributes::{float, int, items};
use crate::types::type_by_name;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::reduce::ReduceProd;
use carafe_tensor::{ElementType, Tensor};

/// A node of a symbol being translated.
pub(super) trait MxCx {
    /// The text of a setting; `None` when it is not set.
    fn text(&self, name: &str) -> Option<String>;
    /// A word out of a few.
    fn word(&self, name: &str, default: &str) -> String;
    /// True or false.
    fn flag(&self, name: &str, default: bool) -> Result<bool>;
    /// Whether a setting is there and is `None`, where that differs from one that is left out.
    fn is_none(&self, name: &str) -> bool;
    /// A whole number that may be left out.
    fn opt_int(&self, name: &str) -> Result<Option<i64>>;
    /// A whole number with a default.
    fn int(&self, name: &str, default: i64) -> Result<i64>;
    /// A whole number that must be there.
    fn needed_int(&self, name: &str) -> Result<i64>;
    /// A number that may be left out.
    fn opt_float(&self, name: &str) -> Result<Option<f64>>;
    /// A number with a default.
    fn float(&self, name: &str, default: f64) -> Result<f64>;
    /// Whole numbers that may be left out; a single one is a list of one.
    fn opt_ints(&self, name: &str) -> Result<Option<Vec<i64>>>;
    /// Whole numbers; none when left out.
    fn ints_of(&self, name: &str) -> Result<Vec<i64>>;
    /// As many whole numbers as there are axes, or the default for each.
    fn per_axis(&self, name: &str, axes: usize, default: i64) -> Result<Vec<i64>>;
    /// Whole numbers, each of which may be `None`.
    fn bounds(&self, name: &str) -> Result<Vec<Option<i64>>>;
    /// Numbers with a default.
    fn floats_of(&self, name: &str, default: &[f64]) -> Result<Vec<f64>>;
    /// An element type by name.
    fn dtype(&self, name: &str) -> Result<Option<ElementType>>;
    /// An error about a value of a setting that is not one of those there are.
    fn unknown_word(&self, name: &str, found: &str, known: &str) -> carafe_graph::Error;

    /// A dimension where it is known.
    fn dim(&self, v: Value, axis: usize) -> Option<i64>;
    /// Some dimensions as an i64 vector.
    fn dims_at(&mut self, v: Value, axes: &[i64]) -> Result<Value>;
    /// The product of some dimensions as an i64 vector of one.
    fn product_of_dims(&mut self, v: Value, axes: &[i64]) -> Result<Value>;
    /// All elements, as many as there are, as an i64 scalar.
    fn n_elements(&mut self, v: Value) -> Result<Value>;
    /// A vector of floats.
    fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<Value>;
    /// A value of one axis, laid along one of several axes.
    fn along(&mut self, v: Value, axis: usize, rank: usize) -> Result<Value>;
    /// Filled with a number, in the shape of another value.
    fn filled_like(&mut self, v: Value, number: f64) -> Result<Value>;
    /// As whole numbers that index something.
    fn as_indices(&mut self, v: Value) -> Result<Value>;
    /// A condition as zeros and ones of the type of `like`.
    fn as_numbers(&mut self, condition: Value, like: Value) -> Result<Value>;
    /// Whether elements are not zero.
    fn as_condition(&mut self, v: Value) -> Result<Value>;
}

fn bad(n: &NodeCx<'_>, name: &str, wanted: &str, found: &AttrValue) -> carafe_graph::Error {
    n.fail(format!("attribute `{name}` must be {wanted}, found {found}"))
}

// The text of a setting that is no list; rewrites may have put a number there.
fn text_of(v: &AttrValue) -> Option<String> {
    match v {
        AttrValue::Text(s) | AttrValue::Str(s) => Some(s.clone()),
        AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Bool(_) => v.to_text(),
        _ => None,
    }
}

// The setting as it is, unless it is `None`.
fn given<'n>(n: &'n NodeCx<'_>, name: &str) -> Option<&'n AttrValue> {
    n.attr_value(name).filter(|v| text_of(v).as_deref() != Some("None"))
}

impl MxCx for NodeCx<'_> {
    fn text(&self, name: &str) -> Option<String> {
        given(self, name).map(|v| text_of(v).unwrap_or_else(|| v.to_string()))
    }
    fn word(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or_else(|| default.to_string())
    }
    fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match given(self, name) {
            None => Ok(default),
            Some(v) => match text_of(v).as_deref().map(str::to_ascii_lowercase).as_deref() {
                Some("true" | "1") => Ok(true),
                Some("false" | "0") => Ok(false),
                _ => Err(bad(self, name, "True or False", v)),
            },
        }
    }
    fn is_none(&self, name: &str) -> bool {
        self.attr_value(name).is_some() && given(self, name).is_none()
    }
    fn opt_int(&self, name: &str) -> Result<Option<i64>> {
        match given(self, name) {
            None => Ok(None),
            Some(AttrValue::Ints(one)) if one.len() == 1 => Ok(Some(one[0])),
            Some(v) => {
                let whole = |t: &str| int(t).or_else(|| float(t).filter(|x| x.fract() == 0.0).map(|x| x as i64));
                let number = text_of(v).as_deref().and_then(whole);
                number.map(Some).ok_or_else(|| bad(self, name, "a whole number", v))
            }
        }
    }
    fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.opt_int(name)?.unwrap_or(default))
    }
    fn needed_int(&self, name: &str) -> Result<i64> {
        self.opt_int(name)?.ok_or_else(|| self.fail(format!("attribute `{name}` is required and missing")))
    }
    fn opt_float(&self, name: &str) -> Result<Option<f64>> {
        match given(self, name) {
            None => Ok(None),
            Some(v) => text_of(v).as_deref().and_then(float).map(Some).ok_or_else(|| bad(self, name, "a number", v)),
        }
    }
    fn float(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.opt_float(name)?.unwrap_or(default))
    }
    fn opt_ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match given(self, name) {
            None => Ok(None),
            Some(AttrValue::Ints(all)) => Ok(Some(all.clone())),
            Some(v) => match text_of(v).as_deref().and_then(int) {
                Some(one) => Ok(Some(vec![one])),
                None => Err(bad(self, name, "whole numbers", v)),
            },
        }
    }
    fn ints_of(&self, name: &str) -> Result<Vec<i64>> {
        Ok(self.opt_ints(name)?.unwrap_or_default())
    }
    fn per_axis(&self, name: &str, axes: usize, default: i64) -> Result<Vec<i64>> {
        let found = self.ints_of(name)?;
        match found.len() {
            0 => Ok(vec![default; axes]),
            n if n == axes => Ok(found),
            n => Err(self.fail(format!("attribute `{name}` has {n} numbers, the window has {axes} axes"))),
        }
    }
    fn bounds(&self, name: &str) -> Result<Vec<Option<i64>>> {
        match self.attr_value(name) {
            None => Ok(vec![]),
            Some(AttrValue::Ints(all)) => Ok(all.iter().map(|i| Some(*i)).collect()),
            Some(v) => {
                let text = text_of(v).unwrap_or_default();
                let parts = items(&text).unwrap_or_else(|| vec![text.as_str()]);
                let bound = |t: &&str| if *t == "None" { Some(None) } else { int(t).map(Some) };
                parts.iter().map(bound).collect::<Option<_>>().ok_or_else(|| bad(self, name, "whole numbers", v))
            }
        }
    }
    fn floats_of(&self, name: &str, default: &[f64]) -> Result<Vec<f64>> {
        match given(self, name) {
            None => Ok(default.to_vec()),
            Some(AttrValue::Ints(all)) => Ok(all.iter().map(|i| *i as f64).collect()),
            Some(AttrValue::Floats(all)) => Ok(all.clone()),
            Some(v) => match text_of(v).as_deref().and_then(float) {
                Some(one) => Ok(vec![one]),
                None => Err(bad(self, name, "numbers", v)),
            },
        }
    }
    fn dtype(&self, name: &str) -> Result<Option<ElementType>> {
        match given(self, name) {
            None => Ok(None),
            Some(v) => {
                let ty = text_of(v).filter(|t| t != "-1").map(|t| type_by_name(&t));
                match ty {
                    None => Ok(None),
                    Some(ty) => ty.map(Some).ok_or_else(|| bad(self, name, "an element type", v)),
                }
            }
        }
    }
    fn unknown_word(&self, name: &str, found: &str, known: &str) -> carafe_graph::Error {
        self.unsupported(format!("attribute `{name}` is `{found}`; supported: {known}"))
    }

    fn dim(&self, v: Value, axis: usize) -> Option<i64> {
        self.shape(v).dims().and_then(|d| d.get(axis)).and_then(|d| d.get())
    }
    fn dims_at(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let shape = self.shape_of(v)?;
        let axes = self.i64s(axes)?;
        self.gather(shape, axes, 0)
    }
    fn product_of_dims(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let dims = self.dims_at(v, axes)?;
        let axis = self.i64s(&[0])?;
        self.emit(ReduceProd { keep_dims: true }, &[dims, axis])
    }
    fn n_elements(&mut self, v: Value) -> Result<Value> {
        let shape = self.shape_of(v)?;
        let axis = self.i64s(&[0])?;
        self.emit(ReduceProd { keep_dims: false }, &[shape, axis])
    }
    fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<Value> {
        self.constant(Tensor::from_slice(shape, values)?)
    }
    fn along(&mut self, v: Value, axis: usize, rank: usize) -> Result<Value> {
        let mut pattern = vec![1; rank];
        pattern[axis] = -1;
        if rank == 1 { Ok(v) } else { self.reshape(v, &pattern) }
    }
    fn filled_like(&mut self, v: Value, number: f64) -> Result<Value> {
        let shape = self.shape_of(v)?;
        let number = self.scalar_like(v, number)?;
        self.stretch(number, shape)
    }
    fn as_indices(&mut self, v: Value) -> Result<Value> {
        match self.ty(v) {
            ElementType::I32 | ElementType::I64 => Ok(v),
            _ => self.convert(v, ElementType::I32),
        }
    }
    fn as_numbers(&mut self, condition: Value, like: Value) -> Result<Value> {
        self.convert_like(condition, like)
    }
    fn as_condition(&mut self, v: Value) -> Result<Value> {
        match self.ty(v) {
            ElementType::Boolean => Ok(v),
            _ => {
                let zero = self.scalar_like(v, 0.0)?;
                self.emit(carafe_ops::compare::NotEqual::default(), &[v, zero])
            }
        }
    }
}
