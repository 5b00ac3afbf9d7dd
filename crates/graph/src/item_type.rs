//! What an input or output of a model stands for. All values are tensors; one that carries a sequence or an optional of
//! tensors is a packed list (`carafe_tensor::pack_sequence`), and its Parameter or Result says so in its runtime
//! information, which files keep. The marks change nothing about how a model runs.

use crate::error::{Error, Result};
use crate::fact::Fact;
use crate::model::{Model, NodeId};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor, pack_sequence, unpack_sequence};
use std::fmt;
use std::str::FromStr;

/// Attribute of a Parameter or Result: `value` is the text of its type.
const TYPE: &str = "carafe_type";
/// Attribute of a Result that is one element of an output: `of` is the name of that.
const PART: &str = "carafe_part";
/// Types nested deeper are refused; a file must not be able to overflow the stack.
const MAX_DEPTH: usize = 8;

/// The type of a source value: a tensor, or what formats wrap tensors in. Written `sequence(f32[?,3])`.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemType {
    /// The content of something that was empty whenever it was seen.
    Unknown,
    /// A tensor.
    Tensor(ElementType, PartialShape),
    /// Any number of them.
    Sequence(Box<ItemType>),
    /// One or none.
    Optional(Box<ItemType>),
}

impl ItemType {
    /// A sequence of these.
    pub fn sequence(element: ItemType) -> ItemType {
        ItemType::Sequence(Box::new(element))
    }
    /// One of these, or none.
    pub fn optional(content: ItemType) -> ItemType {
        ItemType::Optional(Box::new(content))
    }
    /// A tensor of this type and shape.
    pub fn of(fact: &Fact) -> ItemType {
        ItemType::Tensor(fact.ty, fact.shape.clone())
    }
    /// Whether a value of this type is a packed list.
    pub fn is_packed(&self) -> bool {
        matches!(self, ItemType::Sequence(_) | ItemType::Optional(_))
    }
    /// What is known of the tensor that carries a value of this type.
    pub fn fact(&self) -> Fact {
        match self {
            ItemType::Unknown => Fact::unknown(),
            ItemType::Tensor(ty, shape) => Fact::new(*ty, shape.clone()),
            _ => Fact::new(ElementType::U8, PartialShape::new([Dim::ANY])),
        }
    }
    /// Element type of the innermost tensors.
    pub fn element_type(&self) -> ElementType {
        match self {
            ItemType::Unknown => ElementType::Dynamic,
            ItemType::Tensor(ty, _) => *ty,
            ItemType::Sequence(inner) | ItemType::Optional(inner) => inner.element_type(),
        }
    }
    /// The type that holds values of both; `shapes` joins the shapes of tensors. `None` when there is no such type.
    pub fn join(
        &self,
        other: &ItemType,
        shapes: &impl Fn(&PartialShape, &PartialShape) -> PartialShape,
    ) -> Option<ItemType> {
        use ItemType::*;
        Some(match (self, other) {
            (Unknown, x) | (x, Unknown) => x.clone(),
            (Optional(a), Optional(b)) => ItemType::optional(a.join(b, shapes)?),
            (Optional(a), b) | (b, Optional(a)) => ItemType::optional(a.join(b, shapes)?),
            (Sequence(a), Sequence(b)) => ItemType::sequence(a.join(b, shapes)?),
            (Tensor(a, s), Tensor(b, t)) => Tensor(if a == b { *a } else { ElementType::Dynamic }, shapes(s, t)),
            _ => return None,
        })
    }

    /// The tensor that carries these tensors: a list of one for a tensor, none for an optional without content.
    pub fn pack(&self, items: Option<&[Tensor]>) -> Result<Tensor> {
        match (self, items) {
            (ItemType::Optional(_), None) => Ok(pack_sequence(&[])?),
            (ItemType::Optional(inner), Some([])) if !inner.is_packed() => Ok(pack_sequence(&[])?),
            (ItemType::Optional(inner), some) => Ok(pack_sequence(&[inner.pack(some)?])?),
            (ItemType::Sequence(inner), Some(items)) if !inner.is_packed() => Ok(pack_sequence(items)?),
            (ItemType::Sequence(_), Some(_)) => {
                Err(Error::unsupported(format!("a list of tensors cannot be a {self}")))
            }
            (ItemType::Tensor(..) | ItemType::Unknown, Some([one])) => Ok(one.clone()),
            (_, Some(items)) => Err(Error::usage(format!("{self} is one tensor, found {}", items.len()))),
            (_, None) => Err(Error::usage(format!("{self} cannot be left out"))),
        }
    }
    /// The tensors that a tensor of this type carries; `None` for an optional without content.
    pub fn unpack(&self, carrier: &Tensor) -> Result<Option<Vec<Tensor>>> {
        match self {
            ItemType::Unknown | ItemType::Tensor(..) => Ok(Some(vec![carrier.clone()])),
            ItemType::Sequence(_) => Ok(Some(unpack_sequence(carrier)?)),
            ItemType::Optional(inner) => match unpack_sequence(carrier)?.as_slice() {
                [] => Ok(None),
                [one] => inner.unpack(one),
                more => Err(Error::invalid(format!("an optional holds one value, found {}", more.len()))),
            },
        }
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemType::Unknown => f.write_str("unknown"),
            ItemType::Tensor(ty, shape) => write!(f, "{ty}[{shape}]"),
            ItemType::Sequence(inner) => write!(f, "sequence({inner})"),
            ItemType::Optional(inner) => write!(f, "optional({inner})"),
        }
    }
}

impl FromStr for ItemType {
    type Err = Error;

    fn from_str(text: &str) -> Result<ItemType> {
        let bad = || Error::invalid(format!("`{text}` is not a type such as `sequence(f32[?,3])`"));
        let mut wraps: Vec<fn(ItemType) -> ItemType> = vec![];
        let mut rest = text.trim();
        while let Some(inner) = rest.strip_suffix(')') {
            let (word, inner) = inner.split_once('(').ok_or_else(bad)?;
            wraps.push(match word {
                "sequence" => ItemType::sequence,
                "optional" => ItemType::optional,
                _ => return Err(bad()),
            });
            rest = inner;
        }
        if wraps.len() > MAX_DEPTH {
            return Err(Error::unsupported(format!("`{text}` is nested deeper than {MAX_DEPTH}")));
        }
        let innermost = match rest.split_once('[') {
            None if rest == "unknown" => ItemType::Unknown,
            Some((ty, shape)) => {
                let shape = shape.strip_suffix(']').ok_or_else(bad)?;
                ItemType::Tensor(ty.parse()?, shape.parse()?)
            }
            None => return Err(bad()),
        };
        Ok(wraps.into_iter().rev().fold(innermost, |ty, wrap| wrap(ty)))
    }
}

impl Model {
    /// The sequence or optional that an input or output of the model carries; `None` for a plain tensor.
    pub fn packed_type(&self, id: NodeId) -> Option<ItemType> {
        let fields = &self.node(id).rt_info.get(TYPE)?.fields;
        let text = &fields.iter().find(|(key, _)| key == "value")?.1;
        text.parse().ok().filter(ItemType::is_packed)
    }
    /// Says what an input or output of the model carries.
    pub fn set_packed_type(&mut self, id: NodeId, ty: &ItemType) {
        self.rt_info_mut(id).set(TYPE, "0", vec![("value".into(), ty.to_string())]);
    }
    /// The name of the sequence that an output of the model is an element of.
    pub fn part_of(&self, result: NodeId) -> Option<&str> {
        let fields = &self.node(result).rt_info.get(PART)?.fields;
        fields.iter().find(|(key, _)| key == "of").map(|(_, name)| name.as_str())
    }
    /// Says that an output of the model is the next element of a sequence.
    pub fn set_part_of(&mut self, result: NodeId, sequence: &str) {
        self.rt_info_mut(result).set(PART, "0", vec![("of".into(), sequence.into())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> ItemType {
        text.parse().unwrap()
    }

    #[test]
    fn types_read_back_as_written() {
        for text in ["f32[?,3]", "sequence(f32[...])", "optional(sequence(string[]))", "optional(unknown)"] {
            assert_eq!(ty(text).to_string(), text);
        }
        for text in ["", "f32", "sequence(f32[)", "list(f32[])", "sequence f32[])", "sequence((f32[])"] {
            assert!(text.parse::<ItemType>().is_err(), "{text}");
        }
        let deep = format!("{}f32[]{}", "sequence(".repeat(100_000), ")".repeat(100_000));
        assert!(deep.parse::<ItemType>().is_err());
    }

    #[test]
    fn joining_keeps_what_both_know() {
        let join = |a: &str, b: &str| {
            ty(a).join(&ty(b), &|a, b| if a == b { a.clone() } else { PartialShape::dynamic() }).map(|t| t.to_string())
        };
        assert_eq!(join("sequence(unknown)", "sequence(f32[2])").unwrap(), "sequence(f32[2])");
        assert_eq!(join("sequence(f32[1])", "sequence(f32[2])").unwrap(), "sequence(f32[...])");
        assert_eq!(join("optional(unknown)", "sequence(f32[2])").unwrap(), "optional(sequence(f32[2]))");
        assert_eq!(join("f32[2]", "sequence(f32[2])"), None);
    }

    #[test]
    fn tensors_unpack_as_packed() {
        let items = [Tensor::scalar(1f32), Tensor::scalar(2f32)];
        for (text, items) in [
            ("sequence(f32[])", Some(&items[..])),
            ("sequence(f32[])", Some(&[])),
            ("optional(sequence(f32[]))", Some(&items[..])),
            ("optional(sequence(f32[]))", Some(&[])),
            ("optional(sequence(f32[]))", None),
            ("optional(f32[])", Some(&items[..1])),
            ("optional(f32[])", None),
        ] {
            let again = ty(text).unpack(&ty(text).pack(items).unwrap()).unwrap();
            let same = |a: &[Tensor], b: &[Tensor]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.content_eq(b));
            match (&again, items) {
                (Some(a), Some(b)) => assert!(same(a, b), "{text}"),
                (a, b) => assert_eq!(a.is_some(), b.is_some(), "{text}"),
            }
        }
        assert!(ty("optional(f32[])").pack(Some(&items)).is_err());
        assert!(ty("sequence(f32[])").pack(None).is_err());
    }
}
