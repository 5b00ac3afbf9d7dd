//! Attributes of operators. One whose value is a variable becomes an input slot of its name, a block a number, and what says
//! nothing about the result is left out.

use crate::program::{Operator, Slot};
use crate::wire::{OpAttr, Scalar};
use carafe_frontend::Held;
use carafe_graph::{AttrValue, Error};

/// Attributes that any operator may have: who made it, in which pass, and for which library it was tuned.
const WITHOUT_MEANING: &[&str] = &[
    "op_callstack",
    "op_device",
    "op_namescope",
    "op_role",
    "op_role_var",
    "struct_name",
    "sym_shape_str",
    "with_quant_attr",
    "use_mkldnn",
    "use_onednn",
    "use_cudnn",
    "use_quantizer",
    "mkldnn_data_type",
    "onednn_data_type",
    "is_test",
    "name",
];

/// Whether an attribute of any operator says nothing about its result.
pub(crate) fn is_without_meaning(name: &str) -> bool {
    WITHOUT_MEANING.contains(&name)
}

/// Puts an attribute where it belongs.
pub(crate) fn attribute(a: OpAttr, op: &mut Operator) {
    if is_without_meaning(&a.name) {
        return;
    }
    let list = |v: &[i32]| AttrValue::Ints(v.iter().map(|i| i64::from(*i)).collect());
    let floats = |v: &[f32]| AttrValue::Floats(v.iter().map(|f| f64::from(*f)).collect());
    let text = |s: Vec<u8>| String::from_utf8_lossy(&s).into_owned();
    let value = match a.r#type {
        0 => AttrValue::Int(i64::from(a.i)),
        1 => AttrValue::Float(f64::from(a.f)),
        2 => AttrValue::Str(text(a.s)),
        3 => list(&a.ints),
        4 => floats(&a.floats),
        5 => AttrValue::Strs(a.strings.into_iter().map(text).collect()),
        6 => AttrValue::Bool(a.b),
        7 => AttrValue::Ints(a.bools.iter().map(|b| i64::from(*b)).collect()),
        8 => return block(a.name, a.block_idx, op),
        9 => AttrValue::Int(a.l),
        10 => {
            let all = a.blocks_idx.into_iter().enumerate();
            return all.for_each(|(i, b)| block(format!("{}/{i}", a.name), b, op));
        }
        11 => AttrValue::Ints(a.longs),
        12 => AttrValue::Floats(a.float64s),
        13 => return op.inputs.push(Slot { name: a.name, vars: vec![a.var_name] }),
        14 => return op.inputs.push(Slot { name: a.name, vars: a.vars_name }),
        15 => AttrValue::Float(a.float64),
        16 => match scalar(&a.scalar.unwrap_or_default()) {
            Some(value) => value,
            None => return broken(a.name, "is a complex number", op),
        },
        17 => {
            let all: Option<Vec<AttrValue>> = a.scalars.iter().map(scalar).collect();
            match all.as_deref().map(scalars) {
                Some(value) => value,
                None => return broken(a.name, "holds complex numbers", op),
            }
        }
        kind => return broken(a.name, &format!("is of kind {kind}, which is not known"), op),
    };
    op.attrs.set(&a.name, value);
}

fn block(name: String, index: i32, op: &mut Operator) {
    match usize::try_from(index) {
        Ok(index) => op.blocks.push((name, index)),
        Err(_) => broken(name, &format!("is block {index}"), op),
    }
}

fn broken(name: String, what: &str, op: &mut Operator) {
    let error = Error::unsupported(format!("attribute `{name}` {what}"));
    op.broken.push((name, Held::Broken(error)));
}

fn scalar(s: &Scalar) -> Option<AttrValue> {
    Some(match s.r#type {
        1 => AttrValue::Bool(s.b),
        2 => AttrValue::Int(s.i),
        3 => AttrValue::Float(s.r),
        _ => return None,
    })
}

/// Numbers as one list: of whole numbers where all are.
pub(crate) fn scalars(list: &[AttrValue]) -> AttrValue {
    let whole: Option<Vec<i64>> = list
        .iter()
        .map(|v| match v {
            AttrValue::Int(i) => Some(*i),
            AttrValue::Bool(b) => Some(i64::from(*b)),
            _ => None,
        })
        .collect();
    let number = |v: &AttrValue| match v {
        AttrValue::Int(i) => *i as f64,
        AttrValue::Bool(b) => f64::from(u8::from(*b)),
        AttrValue::Float(x) => *x,
        _ => 0.0,
    };
    whole.map_or_else(|| AttrValue::Floats(list.iter().map(number).collect()), AttrValue::Ints)
}
