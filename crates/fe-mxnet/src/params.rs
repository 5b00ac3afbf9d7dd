//! Files of arrays: `.params` and `.nd`. A list of NDArray records of any version, then their names. Values stay in the mapped
//! file; only where they lie is read here. Counts and sizes are checked against the bytes that are left before anything is
//! allocated for them.

use crate::types::element_type;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor, elements};

/// The first eight bytes of a list of arrays.
pub(crate) const LIST_MAGIC: u64 = 0x112;
const V1: u32 = 0xF993_FAC8;
const V2: u32 = 0xF993_FAC9;
const V3: u32 = 0xF993_FACA;
/// Arrays of more axes are refused; MXNet's own limit is lower.
const MAX_RANK: usize = 32;

/// An array of a file by its name.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    /// Without `arg:` or `aux:`.
    pub(crate) name: String,
    /// Whether it is an auxiliary state.
    pub(crate) is_aux: bool,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// No array was made yet when the file was written.
    Nothing,
    Dense {
        ty: ElementType,
        shape: Vec<usize>,
        at: usize,
        len: usize,
    },
    Sparse(&'static str),
}

/// The arrays of a file.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    bytes: SharedBytes,
    /// All that have a name, in order.
    pub(crate) arrays: Vec<Array>,
}

impl Params {
    /// Reads the list; no value is touched.
    pub(crate) fn decode(bytes: &SharedBytes) -> Result<Params> {
        let mut r = Reader { bytes: bytes.as_slice(), at: 0 };
        let magic = r.u64("the magic number")?;
        if magic != LIST_MAGIC {
            return Err(Error::invalid(format!(
                "begins with {magic:#x}, a list of arrays begins with {LIST_MAGIC:#x}"
            )));
        }
        r.u64("the reserved word")?;
        // The shortest record is a version and a rank.
        let n = r.count("arrays", 4)?;
        let mut contents = vec![];
        for i in 0..n {
            contents.push(r.record().map_err(|e| e.at(format!("array {i} of {n}")))?);
        }
        let k = r.count("names", 8)?;
        if k != n {
            return Err(match k {
                0 => Error::unsupported(format!("the {n} arrays have no names; save them as a dictionary")),
                k => Error::invalid(format!("has {n} arrays and {k} names")),
            });
        }
        let mut arrays = vec![];
        for (i, content) in contents.into_iter().enumerate() {
            let name = r.text().map_err(|e| e.at(format!("name {i} of {n}")))?;
            let (is_aux, name) = match (name.strip_prefix("arg:"), name.strip_prefix("aux:")) {
                (Some(name), _) => (false, name),
                (_, Some(name)) => (true, name),
                _ => (false, name),
            };
            arrays.push(Array { name: name.to_string(), is_aux, content });
        }
        Ok(Params { bytes: bytes.clone(), arrays })
    }

    /// An array as a tensor over the file; `None` for one that was never made.
    pub(crate) fn tensor(&self, array: &Array) -> Option<Result<Tensor>> {
        match &array.content {
            Content::Nothing => None,
            Content::Sparse(kind) => Some(Err(Error::unsupported(format!(
                "array `{}` is stored as {kind}; save it dense, by `array.tostype('default')`",
                array.name
            )))),
            Content::Dense { ty, shape, at, len } => {
                Some(Tensor::view(*ty, shape, &self.bytes, *at, *len).map_err(Error::from))
            }
        }
    }

    /// Type and shape of an array that has both.
    pub(crate) fn form<'p>(&'p self, array: &'p Array) -> Option<(ElementType, &'p [usize])> {
        match &array.content {
            Content::Dense { ty, shape, .. } => Some((*ty, shape)),
            _ => None,
        }
    }
}

/// A list of arrays as a file, in records of version 2.
pub(crate) fn encode(arrays: &[(String, Tensor)]) -> Result<Vec<u8>> {
    let mut out = vec![];
    let word = |out: &mut Vec<u8>, n: u64| out.extend(n.to_le_bytes());
    word(&mut out, LIST_MAGIC);
    word(&mut out, 0);
    word(&mut out, arrays.len() as u64);
    for (name, tensor) in arrays {
        let flag = crate::types::type_flag(tensor.element_type())
            .ok_or_else(|| Error::unsupported(format!("array `{name}` is of {}", tensor.element_type())))?;
        out.extend(V2.to_le_bytes());
        out.extend(0i32.to_le_bytes());
        out.extend((tensor.rank() as i32).to_le_bytes());
        tensor.shape().iter().for_each(|d| out.extend((*d as i64).to_le_bytes()));
        if tensor.rank() == 0 {
            return Err(Error::unsupported(format!(
                "array `{name}` is a scalar, which files of this version cannot hold"
            )));
        }
        [1i32, 0, flag].iter().for_each(|n| out.extend(n.to_le_bytes()));
        out.extend(tensor.bytes());
    }
    word(&mut out, arrays.len() as u64);
    for (name, _) in arrays {
        word(&mut out, name.len() as u64);
        out.extend(name.as_bytes());
    }
    Ok(out)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'b [u8]> {
        let left = self.bytes.len() - self.at;
        if n > left {
            return Err(Error::invalid(format!(
                "the file ends within {what}: {n} bytes are needed at byte {}, {left} are left",
                self.at
            )));
        }
        self.at += n;
        Ok(&self.bytes[self.at - n..self.at])
    }
    fn u64(&mut self, what: &str) -> Result<u64> {
        let b = self.take(8, what)?;
        Ok(u64::from_le_bytes(std::array::from_fn(|i| b[i])))
    }
    fn u32(&mut self, what: &str) -> Result<u32> {
        let b = self.take(4, what)?;
        Ok(u32::from_le_bytes(std::array::from_fn(|i| b[i])))
    }
    fn i32(&mut self, what: &str) -> Result<i32> {
        Ok(self.u32(what)? as i32)
    }
    // A number of things of at least so many bytes each.
    fn count(&mut self, what: &str, least: usize) -> Result<usize> {
        let n = self.u64(&format!("the number of {what}"))?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(n) {
            Ok(n) if n <= left / least => Ok(n),
            _ => Err(Error::invalid(format!("declares {n} {what}, {left} bytes are left"))),
        }
    }
    fn text(&mut self) -> Result<&'b str> {
        let n = self.count("letters", 1)?;
        let bytes = self.take(n, "a name")?;
        std::str::from_utf8(bytes).map_err(|_| Error::invalid("a name is no UTF-8"))
    }

    fn record(&mut self) -> Result<Content> {
        let version = self.u32("the version")?;
        match version {
            V2 | V3 => self.typed_record(version),
            V1 => {
                let rank = self.u32("the rank")?;
                let shape = self.dims(i64::from(rank), 8)?;
                self.dense(shape)
            }
            // The oldest has no version: the number is the rank.
            rank => {
                let shape = self.dims(i64::from(rank), 4).map_err(|e| e.at(format!("version {version:#x}")))?;
                self.dense(shape)
            }
        }
    }

    fn typed_record(&mut self, version: u32) -> Result<Content> {
        let (kind, n_aux) = match self.i32("the storage type")? {
            -1 | 0 => ("dense", 0),
            1 => ("row_sparse", 1),
            2 => ("csr", 2),
            other => {
                return Err(Error::invalid(format!("has the storage type {other}; 0 is dense, 1 and 2 are sparse")));
            }
        };
        let stored = if n_aux > 0 { Some(self.shape(version)?.unwrap_or_default()) } else { None };
        let Some(shape) = self.shape(version)? else { return Ok(Content::Nothing) };
        let Some(stored) = stored else { return self.values(shape) };
        self.take(8, "the device")?;
        let ty = self.element_type()?;
        let mut rest = byte_len(ty, &stored)?;
        for _ in 0..n_aux {
            let ty = self.element_type()?;
            let shape = self.shape(version)?.unwrap_or_default();
            rest = rest.checked_add(byte_len(ty, &shape)?).ok_or_else(|| Error::invalid("sizes overflow"))?;
        }
        self.take(rest, "the values")?;
        Ok(Content::Sparse(kind))
    }

    // `None` for an array without a shape: none was made.
    fn shape(&mut self, version: u32) -> Result<Option<Vec<usize>>> {
        match (self.i32("the rank")?, version) {
            (-1, V3) | (0, V2) => Ok(None),
            (rank, _) => self.dims(i64::from(rank), 8).map(Some),
        }
    }

    fn dims(&mut self, rank: i64, width: usize) -> Result<Vec<usize>> {
        let rank = usize::try_from(rank).ok().filter(|r| *r <= MAX_RANK);
        let rank = rank.ok_or_else(|| Error::invalid(format!("has a rank that is none; 0 to {MAX_RANK} are")))?;
        let bytes = self.take(rank * width, "a shape")?;
        let dim = |b: &[u8]| {
            let n = i64::from_le_bytes(std::array::from_fn(|i| b.get(i).copied().unwrap_or(0)));
            usize::try_from(n).map_err(|_| Error::invalid(format!("has the dimension {n}")))
        };
        bytes.chunks_exact(width).map(dim).collect()
    }

    // What the first two versions hold behind the shape.
    fn dense(&mut self, shape: Vec<usize>) -> Result<Content> {
        if shape.is_empty() { Ok(Content::Nothing) } else { self.values(shape) }
    }

    fn values(&mut self, shape: Vec<usize>) -> Result<Content> {
        self.take(8, "the device")?;
        let ty = self.element_type()?;
        let len = byte_len(ty, &shape)?;
        self.take(len, "the values")?;
        Ok(Content::Dense { ty, shape, at: self.at - len, len })
    }

    fn element_type(&mut self) -> Result<ElementType> {
        let flag = self.i32("the element type")?;
        element_type(flag.into()).ok_or_else(|| Error::invalid(format!("has the element type {flag}, which is none")))
    }
}

fn byte_len(ty: ElementType, shape: &[usize]) -> Result<usize> {
    let len = elements(shape).and_then(|n| ty.byte_len(n));
    len.ok_or_else(|| Error::invalid(format!("has the shape {shape:?}, more than memory holds")))
}
