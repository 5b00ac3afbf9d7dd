//! Values in their crossing form and back. What is made for the other side lies in an `Arena` that the maker keeps until
//! the call ends.

use crate::tables::*;
use crate::text::{slice, text};
use carafe_graph::{AttrKind, AttrMap, AttrValue, Error, Fact, Result, TensorAttr};
use carafe_tensor::{Dim, ElementType, PartialShape, Symbol, Tensor};
use std::any::Any;
use std::ffi::c_void;

/// Memory behind pointers that were handed out.
#[derive(Default)]
pub(crate) struct Arena {
    lists: Vec<Box<dyn Any + Send + Sync>>,
    /// Dimensions are by far the most frequent; they need no box around their list.
    dims: Vec<Vec<CarafeDim>>,
}

impl Arena {
    pub(crate) fn keep_dims(&mut self, dims: Vec<CarafeDim>) -> *const CarafeDim {
        let p = dims.as_ptr();
        self.dims.push(dims);
        p
    }
    pub(crate) fn keep<T: Send + Sync + 'static>(&mut self, list: Vec<T>) -> *const T {
        let boxed = Box::new(list);
        let p = boxed.as_ptr();
        self.lists.push(boxed);
        p
    }
    pub(crate) fn text(&mut self, s: &str) -> CarafeStr {
        let len = s.len();
        CarafeStr { data: self.keep(s.as_bytes().to_vec()).cast(), len }
    }
}

// SAFETY: the crossing forms are plain numbers and pointers; sending the list of them sends no access by itself.
unsafe impl Send for CarafeStr {}
// SAFETY: as above.
unsafe impl Sync for CarafeStr {}
// SAFETY: as above.
unsafe impl Send for CarafeAttr {}
// SAFETY: as above.
unsafe impl Sync for CarafeAttr {}
// SAFETY: as above.
unsafe impl Send for CarafeFact {}
// SAFETY: as above.
unsafe impl Sync for CarafeFact {}

const TYPES: [(u32, ElementType); 29] = [
    (CARAFE_DYNAMIC, ElementType::Dynamic),
    (CARAFE_BOOLEAN, ElementType::Boolean),
    (CARAFE_BF16, ElementType::Bf16),
    (CARAFE_F16, ElementType::F16),
    (CARAFE_F32, ElementType::F32),
    (CARAFE_F64, ElementType::F64),
    (CARAFE_I4, ElementType::I4),
    (CARAFE_I8, ElementType::I8),
    (CARAFE_I16, ElementType::I16),
    (CARAFE_I32, ElementType::I32),
    (CARAFE_I64, ElementType::I64),
    (CARAFE_U1, ElementType::U1),
    (CARAFE_U2, ElementType::U2),
    (CARAFE_U3, ElementType::U3),
    (CARAFE_U4, ElementType::U4),
    (CARAFE_U6, ElementType::U6),
    (CARAFE_U8, ElementType::U8),
    (CARAFE_U16, ElementType::U16),
    (CARAFE_U32, ElementType::U32),
    (CARAFE_U64, ElementType::U64),
    (CARAFE_NF4, ElementType::Nf4),
    (CARAFE_F8E4M3, ElementType::F8E4M3),
    (CARAFE_F8E5M2, ElementType::F8E5M2),
    (CARAFE_F8E8M0, ElementType::F8E8M0),
    (CARAFE_F4E2M1, ElementType::F4E2M1),
    (CARAFE_STRING, ElementType::String),
    (CARAFE_F8E4M3FNUZ, ElementType::F8E4M3Fnuz),
    (CARAFE_F8E5M2FNUZ, ElementType::F8E5M2Fnuz),
    (CARAFE_I2, ElementType::I2),
];

pub(crate) fn type_code(ty: ElementType) -> u32 {
    TYPES.iter().find(|(_, t)| *t == ty).map_or(CARAFE_DYNAMIC, |(c, _)| *c)
}

pub(crate) fn type_of(code: u32) -> Result<ElementType> {
    let found = TYPES.get(code as usize).filter(|(c, _)| *c == code).map(|(_, t)| *t);
    found.ok_or_else(|| Error::invalid(format!("{code} is no element type")))
}

pub(crate) fn dim_code(d: Dim) -> CarafeDim {
    CarafeDim { min: d.min(), max: d.max().unwrap_or(-1), symbol: d.symbol().map_or(0, |s| s.0), reserved: 0 }
}

pub(crate) fn dim_of(d: CarafeDim) -> Dim {
    let dim = Dim::range(d.min, (d.max != -1 || d.min == -1).then_some(d.max));
    if d.symbol == 0 { dim } else { dim.with_symbol(Symbol(d.symbol)) }
}

pub(crate) fn fact_code(ty: ElementType, shape: &PartialShape, arena: &mut Arena) -> CarafeFact {
    let dims: Option<Vec<CarafeDim>> = shape.dims().map(|d| d.iter().map(|d| dim_code(*d)).collect());
    CarafeFact {
        element_type: type_code(ty),
        rank: dims.as_ref().map_or(-1, |d| d.len() as i32),
        dims: dims.map_or(std::ptr::null(), |d| arena.keep_dims(d)),
    }
}

/// # Safety
/// `dims` must reach `rank` elements.
pub(crate) unsafe fn fact_of(fact: &CarafeFact) -> Result<Fact> {
    let ty = type_of(fact.element_type)?;
    // SAFETY: passed on from the caller.
    Ok(Fact::new(ty, unsafe { shape_of(fact.rank.into(), fact.dims)? }))
}

/// # Safety
/// `dims` must reach `rank` elements.
unsafe fn shape_of(rank: i64, dims: *const CarafeDim) -> Result<PartialShape> {
    if rank < 0 {
        return Ok(PartialShape::dynamic());
    }
    if rank > 1024 {
        return Err(Error::invalid(format!("rank {rank} cannot be")));
    }
    // SAFETY: passed on from the caller.
    let dims = unsafe { slice(dims, rank as usize, "dimensions of a shape")? };
    if let Some(d) = dims.iter().find(|d| d.max != -1 && d.max < d.min) {
        return Err(Error::invalid(format!("a dimension from {} to {} cannot be", d.min, d.max)));
    }
    Ok(PartialShape::new(dims.iter().map(|d| dim_of(*d))))
}

/// The tensor for the other side; strings need a list in the arena, numbers stay where they are, unless their address
/// does not fit their type, as in a mapped file.
pub(crate) fn tensor_code(t: &Tensor, arena: &mut Arena) -> CarafeTensor {
    let strings = if t.element_type() == ElementType::String { t.strings().ok() } else { None };
    let (data, bytes): (*const c_void, usize) = match strings {
        Some(strings) => {
            let list: Vec<CarafeStr> = strings.iter().map(|s| CarafeStr::of(s)).collect();
            let bytes = size_of_val(list.as_slice());
            (arena.keep(list).cast(), bytes)
        }
        None => {
            let bytes = t.bytes();
            let fits = bytes.as_ptr().addr().is_multiple_of(t.element_type().byte_len(1).unwrap_or(1).max(1));
            let moved = if fits { None } else { Tensor::from_bytes(t.element_type(), t.shape(), bytes).ok() };
            match moved {
                Some(moved) => {
                    let p = moved.bytes().as_ptr();
                    arena.keep(vec![moved]);
                    (p.cast(), bytes.len())
                }
                None => (bytes.as_ptr().cast(), bytes.len()),
            }
        }
    };
    CarafeTensor {
        element_type: type_code(t.element_type()),
        rank: t.rank() as u32,
        shape: t.shape().as_ptr(),
        data,
        bytes,
    }
}

/// # Safety
/// `shape` must reach `rank` elements.
pub(crate) unsafe fn static_shape<'a>(rank: u32, shape: *const usize) -> Result<&'a [usize]> {
    if rank > 1024 {
        return Err(Error::invalid(format!("rank {rank} cannot be")));
    }
    // SAFETY: passed on from the caller.
    unsafe { slice(shape, rank as usize, "shape of a tensor") }
}

/// Type, shape and the number of bytes it must have, checked against what the tensor says.
///
/// # Safety
/// `shape` must reach `rank` elements.
pub(crate) unsafe fn tensor_head<'a>(t: &CarafeTensor) -> Result<(ElementType, &'a [usize])> {
    let ty = type_of(t.element_type)?;
    // SAFETY: passed on from the caller.
    let shape = unsafe { static_shape(t.rank, t.shape)? };
    let elements =
        carafe_tensor::elements(shape).ok_or_else(|| Error::invalid(format!("shape {shape:?} is too large")))?;
    let wanted = match ty {
        ElementType::String => elements.checked_mul(size_of::<CarafeStr>()),
        ElementType::Dynamic => None,
        ty => ty.byte_len(elements),
    };
    let wanted = wanted.ok_or_else(|| Error::invalid(format!("a tensor of {ty}{shape:?} cannot be")))?;
    if wanted != t.bytes {
        return Err(Error::invalid(format!("a tensor of {ty}{shape:?} has {wanted} bytes, found {}", t.bytes)));
    }
    Ok((ty, shape))
}

/// A copy of a tensor of the other side.
///
/// # Safety
/// The pointers must reach what the tensor says.
pub(crate) unsafe fn tensor_of(t: &CarafeTensor) -> Result<Tensor> {
    // SAFETY: passed on from the caller.
    let (ty, shape) = unsafe { tensor_head(t)? };
    if ty == ElementType::String {
        let n = t.bytes / size_of::<CarafeStr>();
        // SAFETY: passed on from the caller.
        let list = unsafe { slice(t.data.cast::<CarafeStr>(), n, "strings of a tensor")? };
        // SAFETY: passed on from the caller.
        let strings = list.iter().map(|s| Ok(unsafe { text(*s, "a string")? }.to_string())).collect::<Result<_>>()?;
        return Ok(Tensor::from_strings(shape, strings)?);
    }
    // SAFETY: passed on from the caller.
    let bytes = unsafe { slice(t.data.cast::<u8>(), t.bytes, "bytes of a tensor")? };
    Ok(Tensor::from_bytes(ty, shape, bytes)?)
}

pub(crate) fn kind_code(kind: AttrKind) -> u32 {
    match kind {
        AttrKind::Bool => CARAFE_ATTR_BOOL,
        AttrKind::Int => CARAFE_ATTR_INT,
        AttrKind::Float => CARAFE_ATTR_FLOAT,
        AttrKind::Str | AttrKind::Enum(_) => CARAFE_ATTR_STR,
        AttrKind::Ints => CARAFE_ATTR_INTS,
        AttrKind::Floats => CARAFE_ATTR_FLOATS,
        AttrKind::Strs => CARAFE_ATTR_STRS,
        AttrKind::Type => CARAFE_ATTR_TYPE,
        AttrKind::Types => CARAFE_ATTR_TYPES,
        AttrKind::Shape => CARAFE_ATTR_SHAPE,
        AttrKind::Tensor => CARAFE_ATTR_TENSOR,
        AttrKind::Body => CARAFE_ATTR_TEXT,
    }
}

pub(crate) fn kind_of(code: u32) -> Result<AttrKind> {
    Ok(match code {
        CARAFE_ATTR_BOOL => AttrKind::Bool,
        CARAFE_ATTR_INT => AttrKind::Int,
        CARAFE_ATTR_FLOAT => AttrKind::Float,
        CARAFE_ATTR_STR | CARAFE_ATTR_TEXT => AttrKind::Str,
        CARAFE_ATTR_INTS => AttrKind::Ints,
        CARAFE_ATTR_FLOATS => AttrKind::Floats,
        CARAFE_ATTR_STRS => AttrKind::Strs,
        CARAFE_ATTR_TYPE => AttrKind::Type,
        CARAFE_ATTR_TYPES => AttrKind::Types,
        CARAFE_ATTR_SHAPE => AttrKind::Shape,
        CARAFE_ATTR_TENSOR => AttrKind::Tensor,
        other => return Err(Error::invalid(format!("{other} is no kind of attribute"))),
    })
}

impl CarafeAttr {
    pub const EMPTY: CarafeAttr = CarafeAttr {
        name: CarafeStr::EMPTY,
        kind: CARAFE_ATTR_TEXT,
        reserved: 0,
        i: 0,
        f: 0.0,
        s: CarafeStr::EMPTY,
        n: 0,
        ints: std::ptr::null(),
        floats: std::ptr::null(),
        strs: std::ptr::null(),
        types: std::ptr::null(),
        dims: std::ptr::null(),
        tensor: CarafeTensor { element_type: 0, rank: 0, shape: std::ptr::null(), data: std::ptr::null(), bytes: 0 },
    };
}

impl CarafeAttrs {
    pub const EMPTY: CarafeAttrs = CarafeAttrs { list: std::ptr::null(), n: 0 };
}

/// An attribute for the other side. A body has no crossing form.
pub(crate) fn attr_code(name: &str, value: &AttrValue, arena: &mut Arena) -> Result<CarafeAttr> {
    let mut a = CarafeAttr { name: arena.text(name), ..CarafeAttr::EMPTY };
    match value {
        AttrValue::Text(s) => (a.kind, a.s) = (CARAFE_ATTR_TEXT, arena.text(s)),
        AttrValue::Str(s) => (a.kind, a.s) = (CARAFE_ATTR_STR, arena.text(s)),
        AttrValue::Bool(b) => (a.kind, a.i) = (CARAFE_ATTR_BOOL, i64::from(*b)),
        AttrValue::Int(i) => (a.kind, a.i) = (CARAFE_ATTR_INT, *i),
        AttrValue::Float(f) => (a.kind, a.f) = (CARAFE_ATTR_FLOAT, *f),
        AttrValue::Ints(v) => (a.kind, a.n, a.ints) = (CARAFE_ATTR_INTS, v.len(), arena.keep(v.clone())),
        AttrValue::Floats(v) => (a.kind, a.n, a.floats) = (CARAFE_ATTR_FLOATS, v.len(), arena.keep(v.clone())),
        AttrValue::Strs(v) => {
            let list: Vec<CarafeStr> = v.iter().map(|s| arena.text(s)).collect();
            (a.kind, a.n, a.strs) = (CARAFE_ATTR_STRS, v.len(), arena.keep(list));
        }
        AttrValue::Type(t) => (a.kind, a.i) = (CARAFE_ATTR_TYPE, i64::from(type_code(*t))),
        AttrValue::Types(v) => {
            let list: Vec<u32> = v.iter().map(|t| type_code(*t)).collect();
            (a.kind, a.n, a.types) = (CARAFE_ATTR_TYPES, v.len(), arena.keep(list));
        }
        AttrValue::Shape(s) => {
            a.kind = CARAFE_ATTR_SHAPE;
            match s.dims() {
                Some(dims) => {
                    let list: Vec<CarafeDim> = dims.iter().map(|d| dim_code(*d)).collect();
                    (a.n, a.dims) = (list.len(), arena.keep(list));
                }
                None => a.i = -1,
            }
        }
        AttrValue::Tensor(t) => {
            // The tensor is kept, so that its bytes and shape stay where they are.
            let kept = arena.keep(vec![t.0.clone()]);
            // SAFETY: the arena holds the one element behind `kept`.
            let t = unsafe { &*kept };
            (a.kind, a.tensor) = (CARAFE_ATTR_TENSOR, tensor_code(t, arena));
        }
        AttrValue::Body(_) => {
            return Err(Error::unsupported(format!("attribute `{name}` is a sub-graph, which stays on its side")));
        }
    }
    Ok(a)
}

/// # Safety
/// The pointers of the field that `kind` names must reach what it says.
pub(crate) unsafe fn attr_of(a: &CarafeAttr) -> Result<(String, AttrValue)> {
    // SAFETY: passed on from the caller, here and for every list below.
    let name = unsafe { text(a.name, "the name of an attribute")? }.to_string();
    let what = format!("attribute `{name}`");
    let type_at = |code: i64| type_of(u32::try_from(code).unwrap_or(u32::MAX)).map_err(|e| e.at(what.clone()));
    let value = match a.kind {
        // SAFETY: as above.
        CARAFE_ATTR_TEXT => AttrValue::Text(unsafe { text(a.s, &what)? }.to_string()),
        // SAFETY: as above.
        CARAFE_ATTR_STR => AttrValue::Str(unsafe { text(a.s, &what)? }.to_string()),
        CARAFE_ATTR_BOOL => AttrValue::Bool(a.i != 0),
        CARAFE_ATTR_INT => AttrValue::Int(a.i),
        CARAFE_ATTR_FLOAT => AttrValue::Float(a.f),
        // SAFETY: as above.
        CARAFE_ATTR_INTS => AttrValue::Ints(unsafe { slice(a.ints, a.n, &what)? }.to_vec()),
        // SAFETY: as above.
        CARAFE_ATTR_FLOATS => AttrValue::Floats(unsafe { slice(a.floats, a.n, &what)? }.to_vec()),
        CARAFE_ATTR_STRS => {
            // SAFETY: as above.
            let list = unsafe { slice(a.strs, a.n, &what)? };
            // SAFETY: as above.
            let list = list.iter().map(|s| Ok(unsafe { text(*s, &what)? }.to_string())).collect::<Result<_>>()?;
            AttrValue::Strs(list)
        }
        CARAFE_ATTR_TYPE => AttrValue::Type(type_at(a.i)?),
        CARAFE_ATTR_TYPES => {
            // SAFETY: as above.
            let list = unsafe { slice(a.types, a.n, &what)? };
            AttrValue::Types(list.iter().map(|t| type_at((*t).into())).collect::<Result<_>>()?)
        }
        CARAFE_ATTR_SHAPE => {
            let rank = if a.i == -1 { -1 } else { i64::try_from(a.n).unwrap_or(i64::MAX) };
            // SAFETY: as above.
            AttrValue::Shape(unsafe { shape_of(rank, a.dims)? })
        }
        // SAFETY: as above.
        CARAFE_ATTR_TENSOR => AttrValue::Tensor(TensorAttr(unsafe { tensor_of(&a.tensor)? })),
        other => return Err(Error::invalid(format!("{what} has kind {other}, which does not exist"))),
    };
    Ok((name, value))
}

/// # Safety
/// The list and what it points to must be there.
pub(crate) unsafe fn attrs_of(attrs: CarafeAttrs) -> Result<AttrMap> {
    // SAFETY: passed on from the caller.
    let list = unsafe { crate::text::items(attrs.list, attrs.n, "attributes")? };
    // SAFETY: passed on from the caller.
    list.iter().map(|a| unsafe { attr_of(a) }).collect()
}

/// Attributes for the other side; bodies are left out.
pub(crate) fn attrs_code<'a>(
    list: impl Iterator<Item = (&'a str, &'a AttrValue)>,
    arena: &mut Arena,
) -> Result<CarafeAttrs> {
    let mut codes = Vec::new();
    for (name, value) in list {
        if !matches!(value, AttrValue::Body(_)) {
            codes.push(attr_code(name, value, arena)?);
        }
    }
    let n = codes.len();
    Ok(CarafeAttrs { list: arena.keep(codes), n })
}
