//! Sparse tensors: values in the order of a walk over the axes, which may be split into blocks. At each level of the walk an
//! axis is dense, or lists the indexes that are there (compressed sparse rows). They are made dense when they are read.

use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;

/// Elements that a sparse tensor may have in its dense form: a few bytes can declare any size.
const MAX_DENSE: usize = 1 << 28;

/// How the values of a sparse tensor lie.
#[derive(Clone, Debug)]
pub(crate) struct Sparsity {
    /// Axes in the order of the walk; those from the rank on are blocks.
    pub(crate) order: Vec<i64>,
    /// Which axis each block is a part of.
    pub(crate) block_map: Vec<i64>,
    /// What is there at each step of the walk.
    pub(crate) levels: Vec<Level>,
}

/// One axis of a walk.
#[derive(Clone, Debug)]
pub(crate) enum Level {
    /// All of this many indexes.
    Dense(i64),
    /// Those that are listed; `segments` says which belong to which index of the level before.
    Csr { segments: Vec<i64>, indices: Vec<i64> },
}

impl Sparsity {
    /// The dense tensor of this shape, out of the values that are there.
    pub(crate) fn dense(&self, values: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let count = carafe_tensor::elements(shape).filter(|n| *n <= MAX_DENSE);
        let count =
            count.ok_or_else(|| Error::unsupported(format!("a sparse tensor of shape {shape:?} is too large")))?;
        let (rank, depth) = (shape.len(), self.levels.len());
        let is_order = self.order.len() == depth
            && (0..depth).all(|axis| self.order.contains(&(axis as i64)))
            && self.order.iter().take(rank).all(|a| *a < rank as i64);
        let is_map =
            self.block_map.len() + rank == depth && self.block_map.iter().all(|a| (0..rank as i64).contains(a));
        if !is_order || !is_map {
            return Err(Error::invalid(format!(
                "traversal order {:?} and block map {:?} do not fit {rank} axes and {depth} levels",
                self.order, self.block_map
            )));
        }
        let block_sizes = (0..self.block_map.len()).map(|b| match self.levels[rank + b] {
            Level::Dense(size) => Ok(size),
            Level::Csr { .. } => Err(Error::unsupported("a block of a sparse tensor is sparse itself")),
        });
        let mut walk = Walk {
            sparsity: self,
            shape,
            strides: carafe_tensor::strides(shape),
            block_sizes: block_sizes.collect::<Result<_>>()?,
            at: vec![0; depth],
            values,
            next: 0,
            steps: count.saturating_mul(depth + 1).saturating_add(1024),
            out: Tensor::zeros(values.element_type(), shape)?,
        };
        walk.level(0, 0)?;
        match walk.next == values.len() {
            true => Ok(walk.out),
            false => {
                let (used, found) = (walk.next, values.len());
                Err(Error::invalid(format!("a sparse tensor lists {used} elements and has {found} values")))
            }
        }
    }
}

struct Walk<'s> {
    sparsity: &'s Sparsity,
    shape: &'s [usize],
    strides: Vec<usize>,
    block_sizes: Vec<i64>,
    at: Vec<i64>,
    values: &'s Tensor,
    next: usize,
    steps: usize,
    out: Tensor,
}

impl Walk<'_> {
    // The part of the walk below `level`; `before` counts the entries of the level above.
    fn level(&mut self, level: usize, before: i64) -> Result<()> {
        self.steps =
            self.steps.checked_sub(1).ok_or_else(|| Error::invalid("a sparse tensor lists too many elements"))?;
        let Some(here) = self.sparsity.levels.get(level) else { return self.put() };
        match here {
            Level::Dense(size) => {
                for i in 0..*size {
                    self.at[level] = i;
                    let below = before.checked_mul(*size).and_then(|n| n.checked_add(i));
                    self.level(level + 1, below.ok_or_else(|| Error::invalid("a sparse tensor is too large"))?)?;
                }
            }
            Level::Csr { segments, indices } => {
                let bound = |i: i64| usize::try_from(i).ok().and_then(|i| segments.get(i)).copied();
                let (Some(start), Some(stop)) = (bound(before), bound(before + 1)) else {
                    return Err(Error::invalid(format!("a sparse tensor has no segment {before}")));
                };
                for i in start..stop {
                    let index = usize::try_from(i).ok().and_then(|i| indices.get(i));
                    self.at[level] =
                        *index.ok_or_else(|| Error::invalid(format!("a sparse tensor has no index {i}")))?;
                    self.level(level + 1, i)?;
                }
            }
        }
        Ok(())
    }

    // One value to where the walk stands.
    fn put(&mut self) -> Result<()> {
        let rank = self.shape.len();
        let mut index = vec![0i64; rank];
        for (at, axis) in self.at.iter().zip(&self.sparsity.order) {
            match usize::try_from(*axis).unwrap_or(usize::MAX) {
                axis if axis < rank => index[axis] = *at,
                block => {
                    let block = block - rank;
                    let axis = self.sparsity.block_map[block] as usize;
                    let whole = index[axis].checked_mul(self.block_sizes[block]).and_then(|n| n.checked_add(*at));
                    index[axis] = whole.unwrap_or(-1);
                }
            }
        }
        let inside = index.iter().zip(self.shape).all(|(i, d)| usize::try_from(*i).is_ok_and(|i| i < *d));
        if !inside || self.next >= self.values.len() {
            let shape = self.shape;
            return Err(Error::invalid(format!("an element of a sparse tensor is at {index:?}, outside of {shape:?}")));
        }
        let flat = index.iter().zip(&self.strides).map(|(i, s)| *i as usize * s).sum();
        self.out.copy_elements(flat, self.values, self.next, 1)?;
        self.next += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_a_list_of_columns() {
        let csr = Level::Csr { segments: vec![0, 2, 2, 3], indices: vec![0, 3, 1] };
        let sparsity = Sparsity { order: vec![0, 1], block_map: vec![], levels: vec![Level::Dense(3), csr] };
        let values = Tensor::from_slice(&[3], &[1f32, 2.0, 3.0]).unwrap();
        let dense = sparsity.dense(&values, &[3, 4]).unwrap();
        assert_eq!(dense.as_slice::<f32>().unwrap(), [1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0]);
    }

    #[test]
    fn blocks_of_two_by_two() {
        let csr = Level::Csr { segments: vec![0, 1, 1], indices: vec![1] };
        let levels = vec![Level::Dense(2), csr, Level::Dense(2), Level::Dense(2)];
        let sparsity = Sparsity { order: vec![0, 1, 2, 3], block_map: vec![0, 1], levels };
        let values = Tensor::from_slice(&[4], &[1i8, 2, 3, 4]).unwrap();
        let dense = sparsity.dense(&values, &[4, 4]).unwrap();
        assert_eq!(dense.as_slice::<i8>().unwrap(), [0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let values = Tensor::from_slice(&[1], &[1f32]).unwrap();
        let with = |segments: &[i64], indices: &[i64]| {
            let csr = Level::Csr { segments: segments.to_vec(), indices: indices.to_vec() };
            let sparsity = Sparsity { order: vec![0, 1], block_map: vec![], levels: vec![Level::Dense(2), csr] };
            sparsity.dense(&values, &[2, 2]).unwrap_err().to_string()
        };
        assert!(with(&[0, 1], &[0]).contains("no segment 1"));
        assert!(with(&[0, 1, 1], &[7]).contains("outside of [2, 2]"));
        assert!(with(&[0, 1, 2], &[0, 1]).contains("outside"));
        assert!(with(&[0, 0, 0], &[]).contains("lists 0 elements and has 1 values"));
    }
}
