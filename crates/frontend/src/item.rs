//! Values of a source model. A sequence whose elements are known one by one is taken apart while a model is translated
//! and leaves no trace; only where its length depends on data it becomes a packed tensor. `pack` goes from the first form
//! to the second, never back.

#[cfg(feature = "ops")]
use crate::SubModel;
use carafe_graph::{Error, Fact, ItemType, Model, Result, Value};
#[cfg(feature = "ops")]
use carafe_ops::carafe::{SequenceAt, SequencePack};
use carafe_tensor::{Dim, PartialShape};
#[cfg(feature = "ops")]
use carafe_tensor::{Tensor, pack_sequence};

/// A value of a source model: a tensor, or what formats wrap tensors in.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A tensor.
    Tensor(Value),
    /// Items that are known one by one.
    Sequence(Vec<Item>),
    /// An optional without content, or an omitted output.
    Nothing,
    /// A sequence or an optional that only a run of the model knows, as one tensor.
    Packed {
        /// The tensor.
        value: Value,
        /// What it carries.
        ty: ItemType,
    },
}

impl Item {
    /// The item that a tensor of this type carries.
    pub fn of(value: Value, ty: ItemType) -> Item {
        if ty.is_packed() { Item::Packed { value, ty } } else { Item::Tensor(value) }
    }

    /// The same structure over other values.
    pub fn map(&self, f: &mut impl FnMut(&Value) -> Result<Value>) -> Result<Item> {
        Ok(match self {
            Item::Tensor(v) => Item::Tensor(f(v)?),
            Item::Sequence(items) => Item::Sequence(items.iter().map(|i| i.map(f)).collect::<Result<_>>()?),
            Item::Nothing => Item::Nothing,
            Item::Packed { value, ty } => Item::Packed { value: f(value)?, ty: ty.clone() },
        })
    }

    /// Its type, as far as the elements agree.
    pub fn ty(&self, model: &Model) -> Result<ItemType> {
        Ok(match self {
            Item::Tensor(v) => {
                let fact = model.fact(*v);
                ItemType::of(&Fact::new(fact.ty, plain(&fact.shape)))
            }
            Item::Nothing => ItemType::optional(ItemType::Unknown),
            Item::Packed { ty, .. } => ty.clone(),
            Item::Sequence(items) => {
                let mut all = ItemType::Unknown;
                for item in items {
                    let ty = item.ty(model)?;
                    all = join(&all, &ty)?;
                }
                ItemType::sequence(all)
            }
        })
    }

    #[cfg(feature = "ops")]
    // The tensors, in order.
    pub(crate) fn values(&self, into: &mut Vec<Value>) {
        match self {
            Item::Tensor(value) | Item::Packed { value, .. } => into.push(*value),
            Item::Sequence(items) => items.iter().for_each(|i| i.values(into)),
            Item::Nothing => {}
        }
    }
}

impl From<Value> for Item {
    fn from(v: Value) -> Item {
        Item::Tensor(v)
    }
}

/// The type that holds values of both.
pub fn join(a: &ItemType, b: &ItemType) -> Result<ItemType> {
    a.join(b, &both).ok_or_else(|| Error::invalid(format!("a value is both {a} and {b}")))
}

// Dimensions are ranges over both shapes.
fn both(a: &PartialShape, b: &PartialShape) -> PartialShape {
    match (a.dims(), b.dims()) {
        (Some(a), Some(b)) if a.len() == b.len() => PartialShape::new(a.iter().zip(b).map(|(a, b)| {
            let max = a.max().and_then(|a| Some(a.max(b.max()?)));
            Dim::range(a.min().min(b.min()), max)
        })),
        _ => PartialShape::dynamic(),
    }
}

// Symbols mean something in their own model only.
fn plain(shape: &PartialShape) -> PartialShape {
    let mut shape = shape.clone();
    for d in shape.dims_mut().into_iter().flatten() {
        *d = Dim::range(d.min(), d.max());
    }
    shape
}

#[cfg(feature = "ops")]
/// The tensor that carries an item as a value of this type. An optional where its content is wanted is opened, which
/// fails in the run when there is none.
pub fn pack(model: &mut Model, name: &str, item: &Item, ty: &ItemType) -> Result<Value> {
    match (item, ty) {
        (Item::Packed { value, ty: ItemType::Optional(_) }, ItemType::Optional(_)) => Ok(*value),
        (Item::Nothing, ItemType::Optional(_)) => model.constant(name, pack_sequence(&[])?),
        (_, ItemType::Optional(inner)) => {
            let content = pack(model, name, item, inner)?;
            Ok(model.add(name, SequencePack, &[content])?.into())
        }
        (Item::Packed { value, ty: ItemType::Optional(inner) }, _) => {
            let content = element(model, name, *value, inner)?;
            pack(model, name, &Item::of(content, (**inner).clone()), ty)
        }
        (Item::Packed { value, ty: ItemType::Sequence(_) }, ItemType::Sequence(_)) => Ok(*value),
        (Item::Sequence(items), ItemType::Sequence(inner)) => {
            let values = items.iter().map(|i| pack(model, name, i, inner)).collect::<Result<Vec<_>>>()?;
            match values.is_empty() {
                true => model.constant(name, pack_sequence(&[])?),
                false => Ok(model.add(name, SequencePack, &values)?.into()),
            }
        }
        (Item::Tensor(v), ItemType::Tensor(..) | ItemType::Unknown) => Ok(*v),
        _ => Err(Error::invalid(format!("a value must be {ty}, found {}", item.ty(model)?))),
    }
}

#[cfg(feature = "ops")]
// The content of an optional.
fn element(model: &mut Model, name: &str, optional: Value, ty: &ItemType) -> Result<Value> {
    let first = model.constant(&format!("{name}/first"), Tensor::scalar(0i64))?;
    let Fact { ty: element_type, shape, .. } = ty.fact();
    Ok(model.add(name, SequenceAt { element_type, shape }, &[optional, first])?.into())
}

#[cfg(feature = "ops")]
impl SubModel {
    /// Lets each output with a type here be one tensor of that type. The results of the model are made anew.
    pub fn settle(&mut self, types: &[Option<ItemType>]) -> Result<()> {
        let mut values = vec![];
        for (i, (item, ty)) in self.outputs.iter_mut().zip(types).enumerate() {
            if let Some(ty) = ty {
                let value = pack(&mut self.model, &format!("packed/{i}"), item, ty)?;
                *item = Item::of(value, ty.clone());
            }
        }
        self.outputs.iter().for_each(|item| item.values(&mut values));
        let results = self.model.results().to_vec();
        let same = results.iter().map(|&r| self.model.result_value(r)).eq(values.iter().copied());
        if !same {
            results.into_iter().try_for_each(|r| self.model.remove(r))?;
            for (i, v) in values.into_iter().enumerate() {
                self.model.result(&format!("result/{i}"), v)?;
            }
        }
        Ok(())
    }
}
