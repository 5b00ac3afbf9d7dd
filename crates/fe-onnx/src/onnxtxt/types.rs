//! Types and tensors of the language: `float` is a scalar, `float[]` of any rank, `float[N,3]` as it says. Half floats are
//! written as the numbers of their bits.

use super::Result;
use super::parser::{Literal, Parser};
use crate::wire::{
    DimensionProto, ElementTypeProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

const ELEMENTS: &[(&str, i32)] = &[
    ("float", 1),
    ("uint8", 2),
    ("int8", 3),
    ("uint16", 4),
    ("int16", 5),
    ("int32", 6),
    ("int64", 7),
    ("string", 8),
    ("bool", 9),
    ("float16", 10),
    ("double", 11),
    ("uint32", 12),
    ("uint64", 13),
    ("complex64", 14),
    ("complex128", 15),
    ("bfloat16", 16),
    ("float8e4m3fn", 17),
    ("float8e4m3fnuz", 18),
    ("float8e5m2", 19),
    ("float8e5m2fnuz", 20),
    ("uint4", 21),
    ("int4", 22),
    ("float4e2m1", 23),
    ("float8e8m0", 24),
    ("uint2", 25),
    ("int2", 26),
];

fn element(word: &str) -> Option<i32> {
    ELEMENTS.iter().find(|(w, _)| *w == word).map(|(_, n)| *n)
}

impl Parser<'_> {
    pub(super) fn next_is_type(&mut self) -> bool {
        let word = self.peek_word();
        element(word).is_some() || matches!(word, "seq" | "map" | "optional" | "sparse_tensor" | "opaque")
    }

    /// A type, where there is one, and a name.
    pub(super) fn value_info(&mut self) -> Result<ValueInfoProto> {
        let r#type = if self.next_is_type() { Some(self.type_proto()?) } else { None };
        Ok(ValueInfoProto { name: Some(self.name()?), r#type })
    }

    pub(super) fn type_proto(&mut self) -> Result<TypeProto> {
        let at = self.position();
        let word = self.word()?;
        let mut found = TypeProto::default();
        if let Some(n) = element(&word) {
            found.tensor_type = Some(TensorTypeProto { elem_type: Some(n), shape: self.shape()? });
            return Ok(found);
        }
        self.expect("(")?;
        let inner = |p: &mut Self| {
            let elem_type = Some(Box::new(p.deeper(Parser::type_proto)?));
            Ok(Some(Box::new(ElementTypeProto { elem_type })))
        };
        match word.as_str() {
            "seq" => found.sequence_type = inner(self)?,
            "optional" => found.optional_type = inner(self)?,
            "sparse_tensor" => drop(self.deeper(Parser::type_proto)?),
            "map" => {
                self.word()?;
                self.expect(",")?;
                self.deeper(Parser::type_proto)?;
            }
            "opaque" => drop(self.names()?),
            _ => return Err(at.error(format!("`{word}` is not a type"))),
        }
        self.expect(")")?;
        Ok(found)
    }

    fn shape(&mut self) -> Result<Option<TensorShapeProto>> {
        let mut shape = TensorShapeProto::default();
        if !self.eat("[") {
            return Ok(Some(shape));
        }
        if self.eat("]") {
            return Ok(None);
        }
        self.list("]", |p| {
            let mut dim = DimensionProto::default();
            match p.peek() {
                Some('?') => drop(p.eat("?")),
                Some('0'..='9' | '-') => dim.dim_value = Some(p.int()?),
                _ => dim.dim_param = Some(p.name()?),
            }
            shape.dim.push(dim);
            Ok(())
        })?;
        Ok(Some(shape))
    }

    /// The data of a tensor behind its type and name.
    pub(super) fn tensor_of(&mut self, info: &ValueInfoProto) -> Result<TensorProto> {
        let at = self.position();
        let refuse = |what: &str| at.error(format!("a tensor with data needs {what}"));
        let Some(ty) = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()) else {
            return Err(refuse("a tensor type"));
        };
        let Some(shape) = &ty.shape else { return Err(refuse("a known rank")) };
        let dims = shape.dim.iter().map(|d| d.dim_value).collect::<Option<_>>();
        let mut tensor = TensorProto {
            dims: dims.ok_or_else(|| refuse("known dimensions"))?,
            data_type: ty.elem_type,
            name: info.name.clone(),
            ..TensorProto::default()
        };
        match self.peek() {
            Some('{') => {
                self.expect("{")?;
                self.list("}", |p| p.element_of(&mut tensor))?;
            }
            Some('[') => {
                tensor.data_location = Some(1);
                tensor.external_data = self.brackets(super::entry)?;
            }
            Some('.') => return Err(at.error("whoever printed this tensor left out its data")),
            _ => return Err(self.expected("`{` or `[`")),
        }
        Ok(tensor)
    }

    fn element_of(&mut self, tensor: &mut TensorProto) -> Result<()> {
        let at = self.position();
        let wrong = |what: &str| at.error(format!("expected {what}"));
        match (tensor.data_type.unwrap_or(0), self.literal()?) {
            (1 | 14, value) => tensor.float_data.push(value.real().ok_or_else(|| wrong("a number"))? as f32),
            (11 | 15, value) => tensor.double_data.push(value.real().ok_or_else(|| wrong("a number"))?),
            (8, Literal::Str(text)) => tensor.string_data.push(text.into_bytes().into()),
            (8, _) => return Err(wrong("a string")),
            (12 | 13, Literal::Int(n)) => {
                tensor.uint64_data.push(n.try_into().map_err(|_| wrong("a number of 64 bits, not negative"))?);
            }
            (7, Literal::Int(n)) => tensor.int64_data.push(n.try_into().map_err(|_| wrong("a number of 64 bits"))?),
            (_, Literal::Int(n)) => tensor.int32_data.push(n.try_into().map_err(|_| wrong("a number of 32 bits"))?),
            _ => return Err(wrong("a whole number")),
        }
        Ok(())
    }
}

impl Literal {
    /// The value as a float, unless it is a string.
    pub(super) fn real(&self) -> Option<f64> {
        match self {
            Literal::Int(n) => Some(*n as f64),
            Literal::Float(x) => Some(*x),
            Literal::Str(_) => None,
        }
    }
}
