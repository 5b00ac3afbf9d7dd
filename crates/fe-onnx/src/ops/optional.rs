//! Optionals. A tensor or a sequence counts as a full one, so most are gone when the model is translated; what only a run
//! knows to be full or empty is a packed list of one or none.

use super::sequence::element;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{ItemType, Result};
use carafe_ops::carafe::SequenceLength;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Optional", 15, |n| {
        n.ignore(&["type"]);
        Ok(n.item(0)?.unwrap_or(Item::Nothing).into())
    }),
    rule("OptionalGetElement", 15, get_element),
    rule("OptionalHasElement", 15, has_element),
];

fn get_element(n: &mut NodeCx<'_>) -> Result<Outputs> {
    match n.item(0)? {
        Some(Item::Packed { value, ty: ItemType::Optional(content) }) => {
            let first = n.i64(0)?;
            Ok(element(n, value, *content, first)?.into())
        }
        None | Some(Item::Nothing) => Err(n.fail("the optional has no content")),
        Some(item) => Ok(item.into()),
    }
}

fn has_element(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let full = match n.item(0)? {
        Some(Item::Packed { value, ty: ItemType::Optional(_) }) => {
            let length = n.emit(SequenceLength, &[value])?;
            let zero = n.i64(0)?;
            return Ok(n.greater(length, zero)?.into());
        }
        None | Some(Item::Nothing) => false,
        Some(_) => true,
    };
    Ok(n.constant(Tensor::from_i64(ElementType::Boolean, &[], &[i64::from(full)])?)?.into())
}
