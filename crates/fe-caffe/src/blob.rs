//! Stored blobs. Floats that lie in one piece stay in the mapped file; doubles and half floats become floats, as Caffe
//! computes in them. Old files give the shape as four numbers, and a vector there is `1 x 1 x 1 x n`: whoever reads a blob
//! decides its shape.

use crate::wire::{Content, Fields, packed_varints};
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor, f16, files};
use carafe_textproto::{Message, Value};
use std::path::Path;

#[derive(Clone, Debug, Default)]
pub(crate) struct Blob {
    /// The new shape where there is one, else the old; `None` when neither is given.
    dims: Option<Vec<i64>>,
    values: Values,
    /// Numbers of fields that no Caffe known here writes.
    pub(crate) undeclared: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
enum Values {
    #[default]
    None,
    /// Bytes of a file from an offset on.
    View(SharedBytes, usize, usize),
    Own(Vec<f32>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::None => 0,
            Values::View(.., bytes) => bytes / 4,
            Values::Own(v) => v.len(),
        }
    }
    // A second piece makes the whole a copy.
    fn own(&mut self) -> &mut Vec<f32> {
        if !matches!(self, Values::Own(_)) {
            *self = Values::Own(self.to_vec());
        }
        match self {
            Values::Own(v) => v,
            _ => unreachable!("it was just made one"),
        }
    }
    fn to_vec(&self) -> Vec<f32> {
        match self {
            Values::None => vec![],
            Values::View(store, at, len) => floats(&store.as_slice()[*at..at + len]).collect(),
            Values::Own(v) => v.clone(),
        }
    }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn double(b: &[u8]) -> f32 {
    let mut eight = [0; 8];
    eight.copy_from_slice(b);
    f64::from_le_bytes(eight) as f32
}

// Numbers as NVIDIA's Caffe writes them, and OpenCV where it shrinks a model: a type beside the bytes.
fn raw_values(ty: u64, data: &[u8], at: usize, store: &SharedBytes) -> Result<Values> {
    let (bytes, name) = match ty {
        0 => (8, "doubles"),
        1 => (4, "floats"),
        2 => (2, "half floats"),
        other => return Err(Error::unsupported(format!("raw data of type {other} are not supported, floats are"))),
    };
    if !data.len().is_multiple_of(bytes) {
        return Err(Error::invalid(format!("{} bytes of {name} are not whole numbers", data.len())));
    }
    Ok(match ty {
        0 => Values::Own(data.chunks_exact(8).map(double).collect()),
        1 => Values::View(store.clone(), at, data.len()),
        _ => Values::Own(data.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()),
    })
}

impl Blob {
    /// A `BlobProto` in the bytes of a store.
    pub(crate) fn decode(bytes: &[u8], base: usize, store: &SharedBytes) -> Result<Blob> {
        let mut shape: Option<Vec<i64>> = None;
        let mut old = [0i64; 4];
        let mut has_old = false;
        let mut values = Values::None;
        let mut undeclared = vec![];
        let (mut raw_type, mut raw) = (0, None);
        for field in Fields::new(bytes, base) {
            let field = field?;
            match (field.number, field.content) {
                (1..=4, Content::Varint(n)) => {
                    old[field.number as usize - 1] = n as i64;
                    has_old = true;
                }
                (5, Content::Bytes(data, at)) => {
                    if data.len() % 4 != 0 {
                        return Err(Error::invalid(format!("{} bytes of floats are not whole numbers", data.len())));
                    }
                    match values {
                        Values::None => values = Values::View(store.clone(), at, data.len()),
                        _ => values.own().extend(floats(data)),
                    }
                }
                (5, Content::Fixed32(b)) => values.own().push(f32::from_le_bytes(b)),
                (7, Content::Bytes(data, at)) => shape.get_or_insert_default().extend(dims(data, at)?),
                (8, Content::Bytes(data, _)) => {
                    if data.len() % 8 != 0 {
                        return Err(Error::invalid(format!("{} bytes of doubles are not whole numbers", data.len())));
                    }
                    values.own().extend(data.chunks_exact(8).map(double));
                }
                (8, Content::Fixed64(b)) => values.own().push(double(&b)),
                (10, Content::Varint(n)) => raw_type = n,
                (12, Content::Bytes(data, at)) => raw = Some((data, at)),
                // Between them lie the differences of training, and the type of raw ones.
                (1..=13, _) => {}
                (number, _) if undeclared.len() < 16 && !undeclared.contains(&number) => undeclared.push(number),
                _ => {}
            }
        }
        if let (0, Some((data, at))) = (values.len(), raw) {
            values = raw_values(raw_type, data, at, store)?;
        }
        Ok(Blob { dims: shape.or(has_old.then(|| old.to_vec())), values, undeclared })
    }

    /// A blob written as text.
    pub(crate) fn of_tree(m: &Message) -> Result<Blob> {
        let bad = |what: &str, v: &Value| {
            Error::invalid(format!("`{what}` of a blob must be a number, found {}", v.describe()))
        };
        let int = |what: &str, v: &Value| v.as_i64().ok_or_else(|| bad(what, v));
        let mut shape = None;
        for (_, v) in m.all("shape") {
            let s = v.as_message().ok_or_else(|| bad("shape", v))?;
            let dims = s.all("dim").map(|(_, v)| int("dim", v)).collect::<Result<Vec<_>>>()?;
            shape.get_or_insert_with(Vec::new).extend(dims);
        }
        let old = ["num", "channels", "height", "width"];
        if shape.is_none() && old.iter().any(|n| m.get(n).is_some()) {
            shape = Some(old.iter().map(|n| m.get(n).map_or(Ok(0), |v| int(n, v))).collect::<Result<_>>()?);
        }
        let mut values = vec![];
        for name in ["data", "double_data"] {
            for (_, v) in m.all(name) {
                values.push(v.as_f64().ok_or_else(|| bad(name, v))? as f32);
            }
        }
        Ok(Blob { dims: shape, values: Values::Own(values), undeclared: vec![] })
    }

    /// Whether two blobs hold the same bits.
    pub(crate) fn same_values(&self, other: &Blob) -> bool {
        let is_view_of_same = match (&self.values, &other.values) {
            (Values::View(a, at, len), Values::View(b, other_at, other_len)) => {
                a.as_slice().as_ptr() == b.as_slice().as_ptr() && (at, len) == (other_at, other_len)
            }
            _ => false,
        };
        let bits = |b: &Blob| b.values.to_vec().into_iter().map(f32::to_bits).collect::<Vec<_>>();
        is_view_of_same || (self.len() == other.len() && bits(self) == bits(other))
    }

    /// The same values as a vector.
    pub(crate) fn without_shape(&self) -> Blob {
        Blob { dims: None, values: self.values.clone(), undeclared: vec![] }
    }

    /// How many values are stored.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The tensor in the shape the file gives; without one it is a vector.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        let shape = match &self.dims {
            None => vec![self.len()],
            Some(dims) => dims
                .iter()
                .map(|d| usize::try_from(*d).map_err(|_| Error::invalid(format!("has the negative dimension {d}"))))
                .collect::<Result<_>>()?,
        };
        let wanted = carafe_tensor::elements(&shape);
        if wanted != Some(self.len()) {
            let wanted = wanted.map_or("more than memory holds".to_string(), |n| n.to_string());
            return Err(Error::invalid(format!("has {} values, its shape {shape:?} takes {wanted}", self.len())));
        }
        Ok(match &self.values {
            Values::None => Tensor::zeros(ElementType::F32, &shape)?,
            Values::View(store, at, len) => Tensor::view(ElementType::F32, &shape, store, *at, *len)?,
            Values::Own(v) => Tensor::from_slice(&shape, v)?,
        })
    }
}

fn dims(bytes: &[u8], base: usize) -> Result<Vec<i64>> {
    let mut all = vec![];
    for field in Fields::new(bytes, base) {
        let field = field?;
        match (field.number, field.content) {
            (1, Content::Varint(n)) => all.push(n as i64),
            (1, Content::Bytes(data, at)) => all.extend(packed_varints(data, at)?.into_iter().map(|n| n as i64)),
            _ => {}
        }
    }
    Ok(all)
}

/// The mean image of a `.binaryproto` file: channels, height and width, and the values.
pub fn read_mean(path: &Path) -> Result<(Vec<usize>, Vec<f32>)> {
    let failed = |e: &std::io::Error| Error::io(format!("cannot open `{}`", path.display()), e);
    let store = files::map(path).map_err(|e| failed(&e))?;
    mean(&store).map_err(|e| e.at(format!("mean file `{}`", path.display())))
}

/// The mean image of the bytes of a `.binaryproto` file.
pub fn read_mean_bytes(bytes: Vec<u8>) -> Result<(Vec<usize>, Vec<f32>)> {
    mean(&SharedBytes::from_vec(bytes))
}

fn mean(store: &SharedBytes) -> Result<(Vec<usize>, Vec<f32>)> {
    let mut blob = Blob::decode(store.as_slice(), 0, store)?;
    if blob.len() == 0 {
        return Err(Error::invalid("holds no values; is it a mean image?"));
    }
    // A mean image stands for itself: the number of images says nothing.
    if let Some(dims) = &mut blob.dims
        && dims.len() == 4
    {
        dims.remove(0);
    }
    let t = blob.tensor()?;
    Ok((t.shape().to_vec(), t.to_vec::<f32>()?.into_owned()))
}
