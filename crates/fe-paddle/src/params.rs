//! Stored parameters. A record is the same in a file of all parameters and in a file of one: version, levels of sequences, version,
//! size and message of a `TensorDesc`, then the elements. In a file of all, records follow one another without names: they are those
//! of the persistable variables, sorted by the bytes of their names.

use crate::types;
use crate::wire::TensorDesc;
use carafe_frontend::SourceTensor;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use prost::Message;

/// More levels of sequences nobody has.
const MOST_LEVELS: u64 = 64;

/// The elements of a parameter in a file.
#[derive(Clone, Debug)]
struct Record {
    ty: ElementType,
    shape: Vec<usize>,
    offset: usize,
    len: usize,
}

/// The tensors of a file that holds all parameters; `names` are sorted.
pub(crate) fn combined(file: &SharedBytes, names: &[String]) -> Result<Vec<SourceTensor>> {
    let mut at = 0;
    let mut all = vec![];
    for (i, name) in names.iter().enumerate() {
        if at == file.len() {
            return Err(Error::invalid(format!(
                "the file of parameters ends behind {i} of {} parameters, `{name}` is missing; is it the file of this model?",
                names.len()
            )));
        }
        let (record, end) = record(file.as_slice(), at).map_err(|e| e.at(format!("parameter {i} `{name}`")))?;
        all.push(tensor(name, file, record));
        at = end;
    }
    match at == file.len() {
        true => Ok(all),
        false => Err(Error::invalid(format!(
            "{} bytes follow behind the {} parameters of the program; is it the file of this model?",
            file.len() - at,
            names.len()
        ))),
    }
}

/// The tensor of a file that holds one parameter.
pub(crate) fn single(file: &SharedBytes, name: &str) -> Result<SourceTensor> {
    let (record, end) = record(file.as_slice(), 0)?;
    match end == file.len() {
        true => Ok(tensor(name, file, record)),
        false => Err(Error::invalid(format!("{} bytes follow behind the parameter", file.len() - end))),
    }
}

fn tensor(name: &str, file: &SharedBytes, record: Record) -> SourceTensor {
    let file = file.clone();
    SourceTensor::lazy(name, move || Ok(Tensor::view(record.ty, &record.shape, &file, record.offset, record.len)?))
}

// The record that begins at an offset, and where it ends.
fn record(bytes: &[u8], mut at: usize) -> Result<(Record, usize)> {
    fn number<const N: usize>(bytes: &[u8], at: &mut usize) -> Result<[u8; N]> {
        let cut = || Error::invalid(format!("the file ends at byte {} inside of a record", bytes.len()));
        let found = bytes.get(*at..).and_then(|b| b.first_chunk::<N>()).ok_or_else(cut)?;
        *at += N;
        Ok(*found)
    }
    let version = |found: [u8; 4], what: &str| match u32::from_le_bytes(found) {
        0 => Ok(()),
        v => Err(Error::invalid(format!("version {v} of the {what}, expected 0; is this a file of parameters?"))),
    };
    version(number(bytes, &mut at)?, "record")?;
    let levels = u64::from_le_bytes(number(bytes, &mut at)?);
    if levels > MOST_LEVELS {
        return Err(Error::invalid(format!("{levels} levels of sequences; is this a file of parameters?")));
    }
    let skip = |at: usize, n: u64| {
        let end = usize::try_from(n).ok().and_then(|n| at.checked_add(n)).filter(|end| *end <= bytes.len());
        end.ok_or_else(|| Error::invalid(format!("{n} bytes at byte {at} exceed the file of {} bytes", bytes.len())))
    };
    for _ in 0..levels {
        let size = u64::from_le_bytes(number(bytes, &mut at)?);
        at = skip(at, size)?;
    }
    version(number(bytes, &mut at)?, "tensor")?;
    let size = i32::from_le_bytes(number(bytes, &mut at)?);
    let size = u64::try_from(size).map_err(|_| Error::invalid(format!("a description of {size} bytes")))?;
    let end = skip(at, size)?;
    let desc = TensorDesc::decode(&bytes[at..end]).map_err(|e| Error::invalid(format!("its description: {e}")))?;
    at = end;
    let ty = types::known(i64::from(desc.data_type))?;
    let dim = |d: &i64| usize::try_from(*d).map_err(|_| Error::invalid(format!("dimension {d} of a stored tensor")));
    let shape = desc.dims.iter().map(dim).collect::<Result<Vec<_>>>()?;
    let len = carafe_tensor::elements(&shape).and_then(|n| ty.least_byte_len(n));
    let len = len.ok_or_else(|| Error::invalid(format!("{ty}{shape:?} is too large")))?;
    let end = skip(at, len as u64).map_err(|e| e.at(format!("{ty}{shape:?}")))?;
    Ok((Record { ty, shape, offset: at, len }, end))
}
