//! `ov_partial_shape.h`, `ov_dimension.h`, `ov_rank.h`: shapes with open sizes.

use crate::heap;
use crate::pointers::{List, Out};
use crate::shape::{OwnedShape, Shape, checked_rank};
use crate::status::{Failure, Outcome, PARAMETER_MISMATCH, Status, guard, guard_or};
use carafe::{Dim, PartialShape};
use std::ffi::c_char;
use std::ptr;

/// `ov_dimension_t`, and `ov_rank_t`, which is the same: -1 for a bound that is not there.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    min: i64,
    max: i64,
}

/// `ov_partial_shape_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CPartialShape {
    rank: Dimension,
    dims: List<Dimension>,
}

/// The same with an array that goes to the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OwnedPartialShape {
    rank: Dimension,
    dims: *mut Dimension,
}

const ANY: Dimension = Dimension { min: -1, max: -1 };

impl Dimension {
    fn exactly(n: i64) -> Dimension {
        Dimension { min: n, max: n }
    }
    fn is_dynamic(self) -> bool {
        self.min == -1 || self.max == -1 || self.min != self.max
    }
    fn of(dim: Dim) -> Dimension {
        match (dim.get(), dim.max()) {
            (Some(n), _) => Dimension::exactly(n),
            (None, Some(max)) => Dimension { min: dim.min(), max },
            (None, None) if dim.min() == 0 => ANY,
            (None, None) => Dimension { min: dim.min(), max: -1 },
        }
    }
    fn dim(self) -> Outcome<Dim> {
        match self {
            ANY => Ok(Dim::ANY),
            Dimension { min, max: -1 } if min >= 0 => Ok(Dim::range(min, None)),
            Dimension { min: -1, max } if max >= 0 => Ok(Dim::range(0, Some(max))),
            Dimension { min, max } if min >= 0 && min == max => Ok(Dim::known(min)),
            Dimension { min, max } if min >= 0 && min < max => Ok(Dim::range(min, Some(max))),
            Dimension { min, max } => Err(Failure::argument(format!("there is no dimension from {min} to {max}"))),
        }
    }
}

impl CPartialShape {
    fn dims(&self) -> Outcome<Option<&[Dimension]>> {
        if self.rank.is_dynamic() {
            return Ok(None);
        }
        self.dims.get(checked_rank(self.rank.max, "partial_shape")?, "partial_shape.dims").map(Some)
    }
    pub(crate) fn get(&self) -> Outcome<PartialShape> {
        match self.dims()? {
            None => Ok(PartialShape::dynamic()),
            Some(dims) => Ok(PartialShape::new(dims.iter().map(|d| d.dim()).collect::<Outcome<Vec<Dim>>>()?)),
        }
    }
}

impl OwnedPartialShape {
    fn fixed_rank(dims: &[Dimension]) -> Outcome<OwnedPartialShape> {
        Ok(OwnedPartialShape { rank: Dimension::exactly(dims.len() as i64), dims: heap::list(dims)? })
    }
    pub(crate) fn of(shape: &PartialShape) -> Outcome<OwnedPartialShape> {
        match shape.dims() {
            None => Ok(OwnedPartialShape { rank: ANY, dims: ptr::null_mut() }),
            Some(dims) => OwnedPartialShape::fixed_rank(&dims.iter().map(|&d| Dimension::of(d)).collect::<Vec<_>>()),
        }
    }
}

fn create(rank: i64, dims: List<Dimension>, to: Out<OwnedPartialShape>) -> Outcome<()> {
    to.check("partial_shape_obj")?;
    if rank <= 0 {
        return Err(Failure::argument(format!("a partial shape of rank {rank} cannot be made")));
    }
    let dims = dims.get(checked_rank(rank, "rank")?, "dims")?;
    dims.iter().try_for_each(|d| d.dim().map(|_| ()))?;
    to.set(OwnedPartialShape::fixed_rank(dims)?, "partial_shape_obj")
}

/// Makes a partial shape of a known rank.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_create(rank: i64, dims: List<Dimension>, shape: Out<OwnedPartialShape>) -> Status {
    guard(|| create(rank, dims, shape))
}

/// Makes a partial shape; where the rank is not known there are no dimensions.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_create_dynamic(
    rank: Dimension,
    dims: List<Dimension>,
    shape: Out<OwnedPartialShape>,
) -> Status {
    guard(|| match rank.is_dynamic() {
        true => shape.set(OwnedPartialShape { rank, dims: ptr::null_mut() }, "partial_shape_obj"),
        false => create(rank.max, dims, shape),
    })
}

/// Makes a partial shape whose sizes are all known.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_create_static(rank: i64, dims: List<i64>, shape: Out<OwnedPartialShape>) -> Status {
    guard(|| {
        shape.check("partial_shape_obj")?;
        if rank < 0 {
            return Err(Failure::argument(format!("a partial shape of rank {rank} cannot be made")));
        }
        let dims = dims.get(checked_rank(rank, "rank")?, "dims")?;
        if let Some(n) = dims.iter().find(|n| **n <= 0) {
            return Err(Failure::argument(format!("a size must be above 0, found {n}")));
        }
        let dims: Vec<Dimension> = dims.iter().map(|&n| Dimension::exactly(n)).collect();
        shape.set(OwnedPartialShape::fixed_rank(&dims)?, "partial_shape_obj")
    })
}

/// Frees the array of a partial shape.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_free(shape: Out<OwnedPartialShape>) {
    if let Ok(old) = shape.get("partial_shape") {
        heap::release(old.dims);
        let _ = shape.set(OwnedPartialShape { rank: Dimension::exactly(0), dims: ptr::null_mut() }, "partial_shape");
    }
}

/// A shape of a partial one; an open size or rank is a mismatch.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_to_shape(partial_shape: CPartialShape, shape: Out<OwnedShape>) -> Status {
    guard(|| {
        shape.check("shape")?;
        let given = partial_shape.get()?;
        let sizes = given.to_static().ok_or_else(|| {
            Failure::new(PARAMETER_MISMATCH, format!("[{given}] has sizes that are not known, so it is no shape"))
        })?;
        shape.set(OwnedShape::of(&sizes)?, "shape")
    })
}

/// A partial shape of a shape.
#[unsafe(no_mangle)]
pub extern "C" fn ov_shape_to_partial_shape(shape: Shape, partial_shape: Out<OwnedPartialShape>) -> Status {
    guard(|| {
        partial_shape.check("partial_shape")?;
        let sizes = shape.sizes("shape")?;
        partial_shape.set(OwnedPartialShape::of(&PartialShape::of(&sizes))?, "partial_shape")
    })
}

/// Whether the rank or a size is open.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_is_dynamic(partial_shape: CPartialShape) -> bool {
    guard_or(false, || Ok(partial_shape.dims()?.is_none_or(|dims| dims.iter().any(|d| d.is_dynamic()))))
}

/// Such as `{1,?,3..5}`, or `?` where the rank is open; to be freed with `ov_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_partial_shape_to_string(partial_shape: CPartialShape) -> *const c_char {
    guard_or(ptr::null(), || {
        let one = |d: &Dimension| match d {
            &ANY => "?".to_string(),
            Dimension { min, max: -1 } => format!("{min}.."),
            Dimension { min: -1, max } => format!("..{max}"),
            Dimension { min, max } if min == max => min.to_string(),
            Dimension { min, max } => format!("{min}..{max}"),
        };
        let text = match partial_shape.dims()? {
            None => "?".to_string(),
            Some(dims) => format!("{{{}}}", dims.iter().map(one).collect::<Vec<_>>().join(",")),
        };
        Ok(heap::text(&text)?.cast_const())
    })
}

/// Whether a size is open.
#[unsafe(no_mangle)]
pub extern "C" fn ov_dimension_is_dynamic(dim: Dimension) -> bool {
    dim.is_dynamic()
}

/// Whether a rank is open.
#[unsafe(no_mangle)]
pub extern "C" fn ov_rank_is_dynamic(rank: Dimension) -> bool {
    rank.is_dynamic()
}
