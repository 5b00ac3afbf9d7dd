//! JPEG, baseline and progressive, with the pixels that libjpeg gives: its accurate integer transform (`idct.rs`), its smooth
//! interpolation of colours (`upsample.rs`) and its colour tables (`colour.rs`) are integer arithmetic that JPEG itself leaves
//! open, and models are trained on what comes out of it.
//!
//! Coefficients of all scans are collected first and transformed at the end, so that sequential and progressive files take
//! one way.

mod bits;
mod colour;
mod idct;
mod scan;
mod upsample;

use crate::{Picture, Result, area, broken};
use bits::{Bits, Huffman};
use scan::Scan;

/// More scans than any encoder writes. Each one walks over all blocks, so that their number bounds the time.
const MOST_SCANS: usize = 500;

/// Where the coefficients of a block are, in the order in which they are stored.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

type QuantTable = [u16; 64];

/// One colour of the picture, before it is brought to full size.
struct Component {
    id: u8,
    /// Samples across and down for each unit of the picture.
    across: usize,
    down: usize,
    table: usize,
    /// The table as it was when the first scan of the component began.
    quant: Option<QuantTable>,
    /// Samples that belong to the picture.
    width: usize,
    height: usize,
    /// Blocks that hold them, and those in memory, which fill the last unit of a row and of a column.
    blocks: (usize, usize),
    stored: (usize, usize),
    /// 64 coefficients for each stored block, row by row.
    coefficients: Vec<i16>,
}

impl Component {
    /// The samples, `blocks * 8` in each direction.
    fn samples(&self) -> Result<Vec<u8>> {
        let (columns, rows) = self.blocks;
        let stride = columns * 8;
        let mut samples = zeros(stride * rows * 8)?;
        let quant = self.quant.ok_or_else(|| broken("a component has no scan"))?;
        for row in 0..rows {
            for column in 0..columns {
                let at = (row * self.stored.0 + column) * 64;
                let block = self.coefficients[at..at + 64].as_array().expect("64 coefficients");
                idct::block(block, &quant, &mut samples[row * 8 * stride + column * 8..], stride);
            }
        }
        Ok(samples)
    }
}

struct Frame {
    progressive: bool,
    width: usize,
    height: usize,
    /// The largest `across` and `down`.
    most: (usize, usize),
    components: Vec<Component>,
}

#[derive(Default)]
struct Decoder {
    quant: [Option<QuantTable>; 4],
    dc: [Option<Huffman>; 4],
    ac: [Option<Huffman>; 4],
    restart: usize,
    jfif: bool,
    /// How colours were transformed, as an Adobe marker says.
    adobe: Option<u8>,
    frame: Option<Frame>,
    scans: usize,
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Picture> {
    let mut decoder = Decoder::default();
    let mut at = 2;
    // What stands between segments is skipped, as every reader does.
    while let Some(marker) = next_marker(bytes, &mut at) {
        match marker {
            0xd9 => break,
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let short = || broken("a segment is cut short");
        let length = bytes.get(at..at + 2).map(word).ok_or_else(short)?;
        let segment = bytes.get(at + 2..at + length.max(2)).ok_or_else(short)?;
        at += length.max(2);
        match marker {
            0xc0..=0xc2 => decoder.frame(segment, marker == 0xc2, bytes.len())?,
            0xc4 => decoder.huffman_tables(segment)?,
            0xda => at = decoder.scan(segment, bytes, at)?,
            0xdb => decoder.quant_tables(segment)?,
            0xdd => decoder.restart = segment.get(..2).map(word).ok_or_else(short)?,
            0xe0 => decoder.jfif |= segment.starts_with(b"JFIF\0"),
            0xee if segment.starts_with(b"Adobe") => decoder.adobe = segment.get(11).copied(),
            0xc3 | 0xc5..=0xcf => return Err(broken("the coding is lossless, hierarchical or arithmetic")),
            _ => {}
        }
    }
    decoder.picture()
}

fn word(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

/// The next marker, and its place behind it.
fn next_marker(bytes: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        *at += bytes.get(*at..)?.iter().position(|b| *b == 0xff)? + 1;
        *at += bytes.get(*at..)?.iter().position(|b| *b != 0xff)?;
        let marker = bytes[*at];
        if marker != 0 {
            *at += 1;
            return Some(marker);
        }
    }
}

fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>> {
    let mut all = vec![];
    all.try_reserve_exact(count).map_err(|_| broken("there is not enough memory"))?;
    all.resize(count, T::default());
    Ok(all)
}

impl Decoder {
    fn quant_tables(&mut self, mut segment: &[u8]) -> Result<()> {
        while let Some((&head, rest)) = segment.split_first() {
            let wide = head >> 4 != 0;
            let size = if wide { 128 } else { 64 };
            let entries = rest.get(..size).ok_or_else(|| broken("a quantization table is cut short"))?;
            let table =
                self.quant.get_mut(usize::from(head & 15)).ok_or_else(|| broken("quantization tables are 0 to 3"))?;
            let table = table.insert([0; 64]);
            for (i, position) in ZIGZAG.iter().enumerate() {
                table[usize::from(*position)] =
                    if wide { word(&entries[2 * i..]) as u16 } else { u16::from(entries[i]) };
            }
            segment = &rest[size..];
        }
        Ok(())
    }

    fn huffman_tables(&mut self, mut segment: &[u8]) -> Result<()> {
        while !segment.is_empty() {
            let short = || broken("a code table is cut short");
            let (head, rest) = segment.split_at_checked(17).ok_or_else(short)?;
            let counts = head[1..].as_array().expect("16 counts");
            let total = counts.iter().map(|n| usize::from(*n)).sum();
            let (values, rest) = rest.split_at_checked(total).ok_or_else(short)?;
            let tables = if head[0] >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            let table = tables.get_mut(usize::from(head[0] & 15)).ok_or_else(|| broken("code tables are 0 to 3"))?;
            *table = Some(Huffman::new(counts, values)?);
            segment = rest;
        }
        Ok(())
    }

    fn frame(&mut self, segment: &[u8], progressive: bool, bytes: usize) -> Result<()> {
        let &[precision, h1, h0, w1, w0, n, ref list @ ..] = segment else {
            return Err(broken("the frame is cut short"));
        };
        let (width, height) = (word(&[w1, w0]), word(&[h1, h0]));
        area(width, height)?;
        if self.frame.is_some() || precision != 8 || !matches!(n, 1 | 3 | 4) || list.len() < 3 * usize::from(n) {
            return Err(broken(format!(
                "{n} components of {precision} bits; read are 1, 3 or 4 of 8 bits in one frame"
            )));
        }
        let heads = list.as_chunks::<3>().0[..usize::from(n)].iter();
        let heads: Vec<(u8, usize, usize, usize)> =
            heads.map(|c| (c[0], usize::from(c[1] >> 4), usize::from(c[1] & 15), usize::from(c[2]))).collect();
        let most = heads.iter().fold((1, 1), |most, c| (most.0.max(c.1), most.1.max(c.2)));
        let units = (width.div_ceil(8 * most.0), height.div_ceil(8 * most.1));
        let fits = |c: &(u8, usize, usize, usize)| (1..=4).contains(&c.1) && (1..=4).contains(&c.2) && c.3 < 4;
        let stored: usize = heads.iter().map(|c| units.0 * c.1 * units.1 * c.2).sum();
        if !heads.iter().all(fits) {
            return Err(broken("a component has a sampling factor or table that does not exist"));
        }
        // A block takes one bit at least, so that a few bytes cannot ask for all memory.
        if stored > bytes.saturating_mul(8) {
            return Err(broken("the data is cut short"));
        }
        let mut components = vec![];
        for (id, across, down, table) in heads {
            let (own_width, own_height) = ((width * across).div_ceil(most.0), (height * down).div_ceil(most.1));
            let stored = (units.0 * across, units.1 * down);
            components.push(Component {
                id,
                across,
                down,
                table,
                quant: None,
                width: own_width,
                height: own_height,
                blocks: (own_width.div_ceil(8), own_height.div_ceil(8)),
                stored,
                coefficients: zeros(stored.0 * stored.1 * 64)?,
            });
        }
        self.frame = Some(Frame { progressive, width, height, most, components });
        Ok(())
    }

    /// Reads a scan; returns where its data ends.
    fn scan(&mut self, segment: &[u8], bytes: &[u8], at: usize) -> Result<usize> {
        self.scans += 1;
        if self.scans > MOST_SCANS {
            return Err(broken(format!("more than {MOST_SCANS} scans")));
        }
        let frame = self.frame.as_mut().ok_or_else(|| broken("a scan without a frame"))?;
        let mut bits = Bits::new(bytes, at);
        let scan = Scan::read(segment, frame, [&self.dc, &self.ac], self.restart)?;
        for component in scan.components() {
            let component = &mut frame.components[component];
            if component.quant.is_none() {
                let table = self.quant[component.table];
                component.quant = Some(table.ok_or_else(|| broken("a quantization table is missing"))?);
            }
        }
        scan.decode(frame, &mut bits)?;
        Ok(bits.position())
    }

    fn picture(self) -> Result<Picture> {
        let frame = self.frame.ok_or_else(|| broken("no frame"))?;
        let model = colour::model(&frame, self.jfif, self.adobe);
        let (width, height) = (frame.width, frame.height);
        let planes = frame.components.iter().map(|c| upsample::plane(c, &frame)).collect::<Result<Vec<_>>>()?;
        let mut data = zeros(width * height * if planes.len() == 1 { 1 } else { 3 })?;
        colour::convert(model, &planes, &mut data);
        Picture::new(width, height, data)
    }
}
