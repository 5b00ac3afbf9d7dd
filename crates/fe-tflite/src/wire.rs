//! A TFLite file as plain structures. Indexes are as in the file: whoever uses one checks it. Bytes of tensors are not touched.

use crate::builtins::NAMES;
use crate::flatbuffer::{Buffer, Table};
use crate::options::Options;
use crate::sparse::{Level, Sparsity};
use carafe_graph::{Error, Result};

/// A whole model.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) version: u32,
    pub(crate) codes: Vec<OperatorCode>,
    pub(crate) subgraphs: Vec<SubGraph>,
    pub(crate) description: String,
    /// Where the bytes of each buffer lie in the file: offset and length.
    pub(crate) buffers: Vec<(usize, usize)>,
    pub(crate) metadata: Vec<(String, usize)>,
    pub(crate) signatures: Vec<Signature>,
}

/// What kind of operator an operator is.
#[derive(Debug)]
pub(crate) struct OperatorCode {
    /// Name of the builtin operator, or that of a custom one.
    pub(crate) name: String,
    pub(crate) is_custom: bool,
    pub(crate) version: i64,
}

#[derive(Debug)]
pub(crate) struct SubGraph {
    pub(crate) tensors: Vec<TensorInfo>,
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    pub(crate) operators: Vec<Operator>,
    pub(crate) name: String,
}

/// What the file declares of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) shape: Vec<i32>,
    /// With -1 for open dimensions; empty when none is open.
    pub(crate) shape_signature: Vec<i32>,
    pub(crate) has_rank: bool,
    pub(crate) ty: i64,
    pub(crate) buffer: usize,
    pub(crate) is_variable: bool,
    pub(crate) quantization: Option<Quantization>,
    pub(crate) sparsity: Option<Sparsity>,
}

/// How numbers of a tensor stand for real ones: `scale * (q - zero_point)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantization {
    pub(crate) scale: Vec<f32>,
    pub(crate) zero_point: Vec<i64>,
    /// The axis along which there are several scales.
    pub(crate) axis: i32,
    /// Scales in a tensor of their own, one for each block of the last axis.
    pub(crate) blockwise: Option<Blockwise>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blockwise {
    pub(crate) scales: i32,
    pub(crate) zero_points: i32,
    pub(crate) block_size: i32,
}

#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) code: usize,
    pub(crate) inputs: Vec<i32>,
    pub(crate) outputs: Vec<i32>,
    /// What is wrong with its options is reported with the node.
    pub(crate) options: Result<Options>,
    /// Where the options of a custom operator lie: offset and length.
    pub(crate) custom: Option<(usize, usize)>,
    pub(crate) intermediates: Vec<i32>,
}

#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) key: String,
    pub(crate) subgraph: usize,
    /// Name and tensor.
    pub(crate) inputs: Vec<(String, usize)>,
    pub(crate) outputs: Vec<(String, usize)>,
}

/// Decodes a file.
pub(crate) fn model(bytes: &[u8]) -> Result<Model> {
    let buffer = Buffer::new(bytes);
    let root = buffer.root()?;
    let (buffers, metadata) = (root.tables(4)?, root.tables(6)?);
    let buffers =
        buffers.iter().enumerate().map(|(i, t)| span(t, bytes.len()).map_err(|e| e.at(format!("buffer {i}"))));
    let metadata = metadata.iter().map(|t| Ok((t.string(0)?, t.scalar::<u32>(1, 0)? as usize)));
    let subgraphs = root.tables(2)?;
    let read = |(i, t): (usize, &Table<'_>)| subgraph(t, bytes.len()).map_err(|e| e.at(format!("subgraph {i}")));
    Ok(Model {
        version: root.scalar(0, 0)?,
        codes: root.tables(1)?.iter().map(operator_code).collect::<Result<_>>()?,
        subgraphs: subgraphs.iter().enumerate().map(read).collect::<Result<_>>()?,
        description: root.string(3)?,
        buffers: buffers.collect::<Result<_>>()?,
        metadata: metadata.collect::<Result<_>>()?,
        signatures: root.tables(7)?.iter().map(signature).collect::<Result<_>>()?,
    })
}

// Bytes lie in the table, or behind the flatbuffer at a position in the file.
fn span(t: &Table<'_>, file: usize) -> Result<(usize, usize)> {
    let (offset, size) = (t.scalar::<u64>(1, 0)?, t.scalar::<u64>(2, 0)?);
    if offset > 1 {
        return outside(offset, size, file);
    }
    Ok(t.span(0)?.unwrap_or((0, 0)))
}

fn outside(offset: u64, size: u64, file: usize) -> Result<(usize, usize)> {
    let end = offset.checked_add(size).and_then(|e| usize::try_from(e).ok()).filter(|e| *e <= file);
    end.map(|e| (e - size as usize, size as usize))
        .ok_or_else(|| Error::invalid(format!("{size} bytes at {offset} lie beyond the {file} bytes of the file")))
}

fn operator_code(t: &Table<'_>) -> Result<OperatorCode> {
    let old = i64::from(t.scalar::<i8>(0, 0)?);
    let code = old.max(i64::from(t.scalar::<i32>(3, 0)?));
    let (custom, version) = (t.string(1)?, i64::from(t.scalar::<i32>(2, 1)?));
    let name = usize::try_from(code).ok().and_then(|c| NAMES.get(c));
    let name = name.ok_or_else(|| Error::unsupported(format!("{code} is not a known builtin operator")))?;
    let is_custom = *name == "CUSTOM";
    let name = if is_custom { custom } else { name.to_string() };
    Ok(OperatorCode { name, is_custom, version })
}

fn subgraph(t: &Table<'_>, file: usize) -> Result<SubGraph> {
    let tensors = t.tables(0)?;
    let tensors = tensors.iter().enumerate().map(|(i, t)| tensor(t).map_err(|e| e.at(format!("tensor {i}"))));
    let operators = t.tables(3)?;
    let operators =
        operators.iter().enumerate().map(|(i, t)| operator(t, file).map_err(|e| e.at(format!("operator {i}"))));
    Ok(SubGraph {
        tensors: tensors.collect::<Result<_>>()?,
        inputs: t.numbers(1)?.unwrap_or_default(),
        outputs: t.numbers(2)?.unwrap_or_default(),
        operators: operators.collect::<Result<_>>()?,
        name: t.string(4)?,
    })
}

fn tensor(t: &Table<'_>) -> Result<TensorInfo> {
    Ok(TensorInfo {
        shape: t.numbers(0)?.unwrap_or_default(),
        ty: i64::from(t.scalar::<i8>(1, 0)?),
        buffer: t.scalar::<u32>(2, 0)? as usize,
        name: t.string(3)?,
        quantization: t.table(4)?.map(|q| quantization(&q)).transpose()?.flatten(),
        is_variable: t.flag(5, false)?,
        sparsity: t.table(6)?.map(|s| sparsity(&s)).transpose()?,
        shape_signature: t.numbers(7)?.unwrap_or_default(),
        has_rank: t.flag(8, false)?,
    })
}

fn quantization(t: &Table<'_>) -> Result<Option<Quantization>> {
    let scale: Vec<f32> = t.numbers(2)?.unwrap_or_default();
    let details = t.scalar::<u8>(4, 0)?;
    let blockwise = match (details, t.table(5)?) {
        (2, Some(b)) => {
            Some(Blockwise { scales: b.scalar(0, 0)?, zero_points: b.scalar(1, 0)?, block_size: b.scalar(2, 0)? })
        }
        (1 | 3, _) => return Err(Error::unsupported("quantization in a custom form or along several axes")),
        _ => None,
    };
    if scale.is_empty() && blockwise.is_none() {
        return Ok(None);
    }
    let zero_point = t.numbers(3)?.unwrap_or_default();
    Ok(Some(Quantization { scale, zero_point, axis: t.scalar(6, 0)?, blockwise }))
}

fn sparsity(t: &Table<'_>) -> Result<Sparsity> {
    let ints = |id: usize| -> Result<Vec<i64>> {
        Ok(t.numbers::<i32>(id)?.unwrap_or_default().into_iter().map(i64::from).collect())
    };
    let level = |d: &Table<'_>| {
        Ok(match d.scalar::<i8>(0, 0)? {
            0 => Level::Dense(i64::from(d.scalar::<i32>(1, 0)?)),
            _ => Level::Csr { segments: index_vector(d, 2)?, indices: index_vector(d, 4)? },
        })
    };
    let levels = t.tables(2)?.iter().map(level).collect::<Result<_>>()?;
    Ok(Sparsity { order: ints(0)?, block_map: ints(1)?, levels })
}

// A union of vectors of i32, u16 and u8, at two fields.
fn index_vector(t: &Table<'_>, id: usize) -> Result<Vec<i64>> {
    let Some(vector) = t.table(id + 1)? else { return Ok(vec![]) };
    Ok(match t.scalar::<u8>(id, 0)? {
        1 => vector.numbers::<i32>(0)?.unwrap_or_default().into_iter().map(i64::from).collect(),
        2 => vector.numbers::<u16>(0)?.unwrap_or_default().into_iter().map(i64::from).collect(),
        3 => vector.numbers::<u8>(0)?.unwrap_or_default().into_iter().map(i64::from).collect(),
        n => return Err(Error::invalid(format!("{n} is no kind of index vector"))),
    })
}

fn operator(t: &Table<'_>, file: usize) -> Result<Operator> {
    let mut options = Options::default();
    let mut read = || {
        for (id, second) in [(3, false), (11, true)] {
            if let (union @ 1.., Some(table)) = (t.scalar::<u8>(id, 0)?, t.table(id + 1)?) {
                options.add(union, second, &table)?;
            }
        }
        Ok(())
    };
    let read: Result<()> = read();
    let (offset, size) = (t.scalar::<u64>(9, 0)?, t.scalar::<u64>(10, 0)?);
    let custom = if offset > 1 { Some(outside(offset, size, file)?) } else { t.span(5)? };
    t.spend(custom.map_or(0, |(_, length)| length))?;
    Ok(Operator {
        code: t.scalar::<u32>(0, 0)? as usize,
        inputs: t.numbers(1)?.unwrap_or_default(),
        outputs: t.numbers(2)?.unwrap_or_default(),
        options: read.map(|()| options),
        custom,
        intermediates: t.numbers(8)?.unwrap_or_default(),
    })
}

fn signature(t: &Table<'_>) -> Result<Signature> {
    let map = |id: usize| {
        let tables = t.tables(id)?;
        tables.iter().map(|m| Ok((m.string(0)?, m.scalar::<u32>(1, 0)? as usize))).collect::<Result<_>>()
    };
    let (inputs, outputs) = (map(0)?, map(1)?);
    Ok(Signature { inputs, outputs, key: t.string(2)?, subgraph: t.scalar::<u32>(4, 0)? as usize })
}
