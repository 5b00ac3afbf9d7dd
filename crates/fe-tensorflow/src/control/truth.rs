//! What counts as true where TensorFlow asks for a condition: a number that is not 0, a text that is not empty; a tensor with
//! axes when it has elements, whatever they are.

use carafe_frontend::Compose;
use carafe_graph::{Error, Fact, Result, Value};
use carafe_ops::compare::{Greater, NotEqual};
use carafe_ops::reduce::ReduceProd;
use carafe_ops::shape::ShapeOf;
use carafe_ops::strings::StringTensorUnpack;
use carafe_tensor::{ElementType, Tensor};

/// The condition as a boolean scalar.
pub(super) fn truth<C: Compose>(c: &mut C, fact: &Fact, v: Value) -> Result<Value> {
    match (fact.shape.rank(), fact.ty) {
        (None, _) => Err(Error::unsupported("the rank of the condition must be known")),
        (Some(0), ElementType::Boolean) => Ok(v),
        (Some(0), ElementType::String) => {
            let parts = c.put_all(StringTensorUnpack, &[v])?;
            c.put(NotEqual::default(), &[parts[0], parts[1]])
        }
        (Some(0), _) => {
            let zero = c.number(v, 0.0)?;
            c.put(NotEqual::default(), &[v, zero])
        }
        (Some(_), _) => {
            match fact.shape.dims().map(|d| (d.iter().all(|d| d.min() > 0), d.iter().any(|d| d.get() == Some(0)))) {
                Some((true, _)) => c.fixed(boolean(true)?),
                Some((_, true)) => c.fixed(boolean(false)?),
                _ => {
                    let shape = c.put(ShapeOf { output_type: ElementType::I64 }, &[v])?;
                    let axis = c.indices(&[0])?;
                    let count = c.put(ReduceProd { keep_dims: false }, &[shape, axis])?;
                    let zero = c.index(0)?;
                    c.put(Greater::default(), &[count, zero])
                }
            }
        }
    }
}

/// A boolean scalar.
pub(super) fn boolean(value: bool) -> Result<Tensor> {
    Ok(Tensor::from_f64(ElementType::Boolean, &[], &[f64::from(u8::from(value))])?)
}

/// What a condition always is, where that is known.
pub(super) fn known(fact: &Fact) -> Option<bool> {
    fact.tensor()?.to_vec::<u8>().ok()?.first().map(|&b| b != 0)
}
