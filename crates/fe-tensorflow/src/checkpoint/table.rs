//! The table format of LevelDB: sorted keys with values in blocks, an index of the blocks, and a footer.

use super::{crc32c, snappy};
use crate::recognise::varint;
use crate::store::Store;
use bytes::Bytes;
use carafe_graph::{Error, Result};

const FOOTER: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Kind of compression and checksum behind a block.
const TRAILER: usize = 5;
/// Blocks larger than this hold tensors; their checksums are not looked at.
const MOST_CHECKED: usize = 1 << 20;

/// Whether bytes end like a table.
pub(crate) fn is_table(bytes: &[u8]) -> bool {
    bytes.len() >= FOOTER && bytes[bytes.len() - 8..] == MAGIC.to_le_bytes()
}

/// All keys and values of a table, in order. Values are slices of the file where blocks are not compressed.
pub(crate) fn entries(store: &Store) -> Result<Vec<(Vec<u8>, Bytes)>> {
    let file = store.bytes();
    if !is_table(&file) {
        return Err(broken("it does not end with the footer of a table"));
    }
    let footer = &file[file.len() - FOOTER..];
    let (_, rest) = handle(footer).ok_or_else(|| broken("its footer"))?;
    let (index, _) = handle(rest).ok_or_else(|| broken("its footer"))?;
    let mut reader = Reader { all: vec![], budget: file.len().saturating_mul(64).saturating_add(1 << 20) };
    let blocks = reader.block(&block(&file, index)?)?;
    for (_, value) in blocks {
        let (at, _) = handle(&value).ok_or_else(|| broken("its index"))?;
        let found = reader.block(&block(&file, at)?)?;
        reader.all.extend(found);
    }
    Ok(reader.all)
}

fn broken(what: &str) -> Error {
    Error::invalid(format!("the table is damaged: {what}"))
}

/// Where a block lies.
#[derive(Clone, Copy, Debug)]
struct Handle {
    offset: usize,
    size: usize,
}

fn handle(bytes: &[u8]) -> Option<(Handle, &[u8])> {
    let (offset, a) = varint(bytes)?;
    let (size, b) = varint(&bytes[a..])?;
    let number = |n: u64| usize::try_from(n).ok();
    Some((Handle { offset: number(offset)?, size: number(size)? }, &bytes[a + b..]))
}

// The content of a block.
fn block(file: &Bytes, at: Handle) -> Result<Bytes> {
    let end = at.offset.checked_add(at.size).filter(|e| e.checked_add(TRAILER).is_some_and(|e| e <= file.len()));
    let end = end.ok_or_else(|| broken("a block lies behind its end"))?;
    let (content, trailer) = (file.slice(at.offset..end), &file[end..end + TRAILER]);
    if content.len() <= MOST_CHECKED {
        let wanted = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        if !crc32c::is_right(&[&content, &trailer[..1]], wanted) {
            return Err(broken("the checksum of a block is wrong"));
        }
    }
    match trailer[0] {
        0 => Ok(content),
        1 => snappy::decompress(&content).map(Bytes::from).ok_or_else(|| broken("a compressed block")),
        n => Err(Error::unsupported(format!("compression {n} of a table is not supported"))),
    }
}

struct Reader {
    all: Vec<(Vec<u8>, Bytes)>,
    /// Bytes of keys that may still be made: a key repeats parts of the one before it.
    budget: usize,
}

impl Reader {
    fn block(&mut self, block: &Bytes) -> Result<Vec<(Vec<u8>, Bytes)>> {
        let bad = || broken("a block");
        let restarts = block.len().checked_sub(4).ok_or_else(bad)?;
        let n = u32::from_le_bytes([block[restarts], block[restarts + 1], block[restarts + 2], block[restarts + 3]]);
        let n = usize::try_from(n).ok().and_then(|n| n.checked_mul(4)).ok_or_else(bad)?;
        let end = restarts.checked_sub(n).ok_or_else(bad)?;
        let (mut at, mut key, mut found) = (0, Vec::<u8>::new(), vec![]);
        while at < end {
            let mut next = || -> Option<usize> {
                let (n, used) = varint(&block[at..end])?;
                at += used;
                usize::try_from(n).ok()
            };
            let (Some(shared), Some(fresh), Some(value)) = (next(), next(), next()) else { return Err(bad()) };
            let middle = at.checked_add(fresh).filter(|m| *m <= end && shared <= key.len()).ok_or_else(bad)?;
            let stop = middle.checked_add(value).filter(|s| *s <= end).ok_or_else(bad)?;
            key.truncate(shared);
            key.extend_from_slice(&block[at..middle]);
            self.budget = self.budget.checked_sub(key.len() + 32).ok_or_else(|| broken("its keys never end"))?;
            found.push((key.clone(), block.slice(middle..stop)));
            at = stop;
        }
        Ok(found)
    }
}
