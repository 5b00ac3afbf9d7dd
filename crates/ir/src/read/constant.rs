//! Tensors of Const layers: views of the weights without a copy.

use super::Reader;
use crate::xml::{Xml, required, required_number, shorten};
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, Tensor};

pub(crate) fn tensor(reader: &Reader<'_>, data: Xml<'_>) -> Result<Tensor> {
    let ty: ElementType = required(data, "element_type")?.parse().map_err(|e| Error::from(e).at("`element_type`"))?;
    let shape = static_shape(required(data, "shape")?)?;
    if data.attribute("offset").is_none()
        && let Some(value) = data.attribute("value")
    {
        return Ok(Tensor::from_bytes(ty, &shape, value.as_bytes())?);
    }
    slice(reader, ty, &shape, required_number(data, "offset")?, required_number(data, "size")?)
}

/// A tensor over a part of the weights.
pub(crate) fn slice(reader: &Reader<'_>, ty: ElementType, shape: &[usize], offset: u64, size: u64) -> Result<Tensor> {
    let Some((bytes, begin)) = reader.weights.find(offset, size) else {
        let missing = match &reader.missing_weights {
            Some(path) => format!("; file `{}` does not exist", path.display()),
            None => String::new(),
        };
        let available = reader.weights.len();
        return Err(Error::invalid(format!(
            "offset {offset} and size {size} reach past the weights, which have {available} bytes{missing}"
        )));
    };
    Ok(Tensor::view(ty, shape, bytes, begin, size as usize)?)
}

fn static_shape(text: &str) -> Result<Vec<usize>> {
    let dims = text.split(',').map(str::trim).filter(|d| !d.is_empty());
    dims.map(|d| {
        d.parse().map_err(|_| Error::invalid(format!("`shape`: expected sizes from 0 on, found `{}`", shorten(text))))
    })
    .collect()
}
