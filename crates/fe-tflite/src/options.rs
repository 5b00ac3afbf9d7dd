//! Option tables of operators as attributes: named as in the schema, with the schema's defaults. Enums are words, types are
//! element types, and indexes of sub-graphs are kept apart.

use crate::builtins::{OPTIONS, OPTIONS_2};
use crate::flatbuffer::Table;
use crate::types::element_type;
use carafe_graph::{AttrMap, AttrValue, Error, Result};

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Bool,
    Int(Width),
    Ints(Width),
    Float,
    Floats,
    Str,
    /// An element type by its number.
    Type,
    /// One of these words by its number.
    Word(&'static [&'static str]),
    /// Index of a sub-graph.
    Graph,
    /// Indexes of sub-graphs.
    Graphs,
}

/// How wide the numbers of a field are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Width {
    I8,
    U8,
    I32,
    U32,
    I64,
}

/// A field of an option table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    id: usize,
    name: &'static str,
    kind: Kind,
    default: f64,
}

/// For tables of fields.
pub(crate) const fn field(id: usize, name: &'static str, kind: Kind, default: f64) -> Field {
    Field { id, name, kind, default }
}

/// Options of an operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) attrs: AttrMap,
    /// Sub-graphs by attribute.
    pub(crate) graphs: Vec<(String, i64)>,
}

impl Options {
    /// Adds the fields of a table: `union` is its number in the first list of option tables, or the second.
    pub(crate) fn add(&mut self, union: u8, second: bool, table: &Table<'_>) -> Result<()> {
        let list = if second { OPTIONS_2 } else { OPTIONS };
        let fields = list
            .get(usize::from(union))
            .ok_or_else(|| Error::unsupported(format!("option table {union} is newer than the schema known here")))?;
        for field in *fields {
            field.read(table, self).map_err(|e| e.at(format!("option `{}`", field.name)))?;
        }
        Ok(())
    }
}

impl Field {
    fn read(&self, table: &Table<'_>, into: &mut Options) -> Result<()> {
        let id = self.id;
        let value = match self.kind {
            Kind::Bool => AttrValue::Bool(table.flag(id, self.default != 0.0)?),
            Kind::Int(width) => AttrValue::Int(self.int(table, width)?),
            Kind::Float => AttrValue::Float(f64::from(table.scalar(id, self.default as f32)?)),
            Kind::Floats => {
                let list = table.numbers::<f32>(id)?.unwrap_or_default();
                AttrValue::Floats(list.into_iter().map(f64::from).collect())
            }
            // A list that is absent is not an empty one.
            Kind::Ints(width) => match ints(table, id, width)? {
                Some(list) => AttrValue::Ints(list),
                None => return Ok(()),
            },
            Kind::Str => AttrValue::Str(table.string(id)?),
            Kind::Type => AttrValue::Type(element_type(self.int(table, Width::I8)?)?),
            Kind::Word(words) => {
                let number = self.int(table, Width::I8)?;
                let word = usize::try_from(number).ok().and_then(|n| words.get(n));
                let word = word.ok_or_else(|| Error::invalid(format!("{number} is none of {}", words.join(", "))))?;
                AttrValue::Str(word.to_string())
            }
            Kind::Graph => {
                let index = self.int(table, Width::I32)?;
                into.graphs.push((self.name.to_string(), index));
                return Ok(());
            }
            Kind::Graphs => {
                let list = ints(table, id, Width::I32)?.unwrap_or_default();
                into.graphs.extend(list.into_iter().enumerate().map(|(i, g)| (format!("{}.{i}", self.name), g)));
                return Ok(());
            }
        };
        into.attrs.set(self.name, value);
        Ok(())
    }

    fn int(&self, table: &Table<'_>, width: Width) -> Result<i64> {
        let (id, default) = (self.id, self.default as i64);
        Ok(match width {
            Width::I8 => i64::from(table.scalar(id, default as i8)?),
            Width::U8 => i64::from(table.scalar(id, default as u8)?),
            Width::I32 => i64::from(table.scalar(id, default as i32)?),
            Width::U32 => i64::from(table.scalar(id, default as u32)?),
            Width::I64 => table.scalar(id, default)?,
        })
    }
}

fn ints(table: &Table<'_>, id: usize, width: Width) -> Result<Option<Vec<i64>>> {
    fn wide<T: Into<i64>>(list: Option<Vec<T>>) -> Option<Vec<i64>> {
        list.map(|l| l.into_iter().map(Into::into).collect())
    }
    Ok(match width {
        Width::I8 => wide(table.numbers::<i8>(id)?),
        Width::U8 => wide(table.numbers::<u8>(id)?),
        Width::I32 => wide(table.numbers::<i32>(id)?),
        Width::U32 => wide(table.numbers::<u32>(id)?),
        Width::I64 => table.numbers::<i64>(id)?,
    })
}
