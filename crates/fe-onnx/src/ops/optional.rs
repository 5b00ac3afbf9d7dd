//! Optionals. Whether one has content is known while the model is translated; a tensor counts as a full one.

use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
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
        Some(item @ (Item::Tensor(_) | Item::Sequence(_))) => Ok(item.into()),
        _ => Err(n.fail("the optional has no content")),
    }
}

fn has_element(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let full = matches!(n.item(0)?, Some(Item::Tensor(_) | Item::Sequence(_)));
    Ok(n.constant(Tensor::from_i64(ElementType::Boolean, &[], &[i64::from(full)])?)?.into())
}
