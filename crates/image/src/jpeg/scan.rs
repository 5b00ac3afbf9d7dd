//! One scan: which components and coefficients it brings, and the reading of their blocks.

use super::bits::{Bits, Huffman};
use super::{Frame, ZIGZAG};
use crate::{Result, broken};

pub(super) struct Scan<'t> {
    parts: Vec<Part<'t>>,
    progressive: bool,
    /// First and last coefficient, in stored order.
    band: (usize, usize),
    /// The bit of a coefficient that was read before, 0 for none, and the one that is read now.
    high: u32,
    low: u32,
    restart: usize,
}

struct Part<'t> {
    component: usize,
    dc: Option<&'t Huffman>,
    ac: Option<&'t Huffman>,
}

/// What goes on from block to block.
#[derive(Default)]
struct State {
    previous: [i32; 4],
    /// Blocks that bring nothing new.
    empty: u32,
}

impl<'t> Scan<'t> {
    pub(super) fn read(
        segment: &[u8],
        frame: &Frame,
        tables: [&'t [Option<Huffman>; 4]; 2],
        restart: usize,
    ) -> Result<Scan<'t>> {
        let wrong = || broken("the head of a scan is wrong");
        let (&n, rest) = segment.split_first().ok_or_else(wrong)?;
        let (list, rest) = rest.split_at_checked(2 * usize::from(n)).ok_or_else(wrong)?;
        let &[first, last, bits, ..] = rest else { return Err(wrong()) };
        let mut parts: Vec<Part<'t>> = vec![];
        for &[id, choice] in list.as_chunks::<2>().0 {
            let component = frame.components.iter().position(|c| c.id == id).ok_or_else(wrong)?;
            if parts.iter().any(|p| p.component == component) {
                return Err(wrong());
            }
            let table =
                |of: &'t [Option<Huffman>; 4], position: u8| of.get(usize::from(position)).and_then(Option::as_ref);
            parts.push(Part { component, dc: table(tables[0], choice >> 4), ac: table(tables[1], choice & 15) });
        }
        let progressive = frame.progressive;
        let (band, high, low) = match progressive {
            true => ((usize::from(first), usize::from(last)), u32::from(bits >> 4), u32::from(bits & 15)),
            false => ((0, 63), 0, 0),
        };
        let size = |p: &Part<'_>| frame.components[p.component].across * frame.components[p.component].down;
        let blocks: usize = parts.iter().map(size).sum();
        let fits = match band {
            (0, last) => !progressive || last == 0,
            (first, last) => first <= last && last < 64 && parts.len() == 1,
        };
        let fits = fits && (1..=4).contains(&parts.len()) && (parts.len() == 1 || blocks <= 10);
        if !fits || low > 13 || (high > 0 && high != low + 1) {
            return Err(wrong());
        }
        let (needs_dc, needs_ac) = (band.0 == 0 && high == 0, band.1 > 0);
        if parts.iter().any(|p| (needs_dc && p.dc.is_none()) || (needs_ac && p.ac.is_none())) {
            return Err(broken("a code table is missing"));
        }
        Ok(Scan { parts, progressive, band, high, low, restart })
    }

    pub(super) fn components(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|p| p.component)
    }

    pub(super) fn decode(&self, frame: &mut Frame, bits: &mut Bits<'_>) -> Result<()> {
        let mut state = State::default();
        let mut done = 0;
        let mut unit = |bits: &mut Bits<'_>, state: &mut State| {
            if self.restart > 0 && done > 0 && done % self.restart == 0 {
                bits.restart();
                *state = State::default();
            }
            done += 1;
        };
        if let [part] = &self.parts[..] {
            // A component alone has no units: its own blocks follow each other.
            let component = &mut frame.components[part.component];
            let ((columns, rows), stride) = (component.blocks, component.stored.0);
            for row in 0..rows {
                for column in 0..columns {
                    unit(bits, &mut state);
                    let at = (row * stride + column) * 64;
                    self.block(part, 0, &mut component.coefficients[at..at + 64], bits, &mut state)?;
                }
                bits.check()?;
            }
            return Ok(());
        }
        let units = (frame.width.div_ceil(8 * frame.most.0), frame.height.div_ceil(8 * frame.most.1));
        for y in 0..units.1 {
            for x in 0..units.0 {
                unit(bits, &mut state);
                for (i, part) in self.parts.iter().enumerate() {
                    let component = &mut frame.components[part.component];
                    for down in 0..component.down {
                        for across in 0..component.across {
                            let row = y * component.down + down;
                            let at = (row * component.stored.0 + x * component.across + across) * 64;
                            self.block(part, i, &mut component.coefficients[at..at + 64], bits, &mut state)?;
                        }
                    }
                }
            }
            bits.check()?;
        }
        Ok(())
    }

    fn block(&self, part: &Part<'_>, i: usize, out: &mut [i16], bits: &mut Bits<'_>, state: &mut State) -> Result<()> {
        if self.band.0 == 0 {
            match self.high {
                0 => self.first_dc(part, i, out, bits, state)?,
                _ if bits.take(1) != 0 => out[0] |= 1 << self.low,
                _ => {}
            }
        }
        match part.ac {
            Some(ac) if !self.progressive => sequential_ac(ac, out, bits),
            Some(ac) if self.band.1 > 0 && self.high == 0 => self.first_ac(ac, out, bits, state),
            Some(ac) if self.band.1 > 0 => self.refine_ac(ac, out, bits, state),
            _ => Ok(()),
        }
    }

    fn first_dc(
        &self,
        part: &Part<'_>,
        i: usize,
        out: &mut [i16],
        bits: &mut Bits<'_>,
        state: &mut State,
    ) -> Result<()> {
        let size = part.dc.map_or(Ok(0), |dc| dc.next(bits))?;
        if size > 15 {
            return Err(broken("a difference has more than 15 bits"));
        }
        state.previous[i] = state.previous[i].wrapping_add(bits.signed(u32::from(size)));
        out[0] = (state.previous[i] << self.low) as i16;
        Ok(())
    }

    fn first_ac(&self, ac: &Huffman, out: &mut [i16], bits: &mut Bits<'_>, state: &mut State) -> Result<()> {
        if state.empty > 0 {
            state.empty -= 1;
            return Ok(());
        }
        let mut k = self.band.0;
        while k <= self.band.1 {
            let (run, size) = split(ac.next(bits)?);
            match (run, size) {
                (15, 0) => k += 16,
                (run, 0) => {
                    state.empty = (1 << run) - 1 + bits.take(run as u32) as u32;
                    break;
                }
                _ => {
                    k += run;
                    let position = ZIGZAG.get(k).ok_or_else(outside)?;
                    out[usize::from(*position)] = (bits.signed(size) << self.low) as i16;
                    k += 1;
                }
            }
        }
        Ok(())
    }

    // Coefficients that are not zero yet get one more bit each, between those that become so.
    fn refine_ac(&self, ac: &Huffman, out: &mut [i16], bits: &mut Bits<'_>, state: &mut State) -> Result<()> {
        let one = 1i16 << self.low;
        let mut k = self.band.0;
        while k <= self.band.1 && state.empty == 0 {
            let (mut run, size) = split(ac.next(bits)?);
            let mut new = 0;
            match size {
                0 if run < 15 => {
                    state.empty = (1 << run) + bits.take(run as u32) as u32;
                    break;
                }
                0 => {}
                1 => new = if bits.take(1) != 0 { one } else { -one },
                _ => return Err(broken("a refined coefficient has more than one bit")),
            }
            while k <= self.band.1 {
                let coefficient = &mut out[usize::from(ZIGZAG[k])];
                k += 1;
                if *coefficient != 0 {
                    refine(coefficient, one, bits);
                } else if run == 0 {
                    *coefficient = new;
                    break;
                } else {
                    run -= 1;
                }
            }
        }
        if state.empty > 0 {
            for position in &ZIGZAG[k..=self.band.1.max(k - 1)] {
                let coefficient = &mut out[usize::from(*position)];
                if *coefficient != 0 {
                    refine(coefficient, one, bits);
                }
            }
            state.empty -= 1;
        }
        Ok(())
    }
}

fn refine(coefficient: &mut i16, one: i16, bits: &mut Bits<'_>) {
    if bits.take(1) != 0 && *coefficient & one == 0 {
        *coefficient = coefficient.wrapping_add(if *coefficient >= 0 { one } else { -one });
    }
}

fn sequential_ac(ac: &Huffman, out: &mut [i16], bits: &mut Bits<'_>) -> Result<()> {
    let mut k = 1;
    while k < 64 {
        let (run, size) = split(ac.next(bits)?);
        match (run, size) {
            (15, 0) => k += 16,
            (_, 0) => break,
            _ => {
                k += run;
                let position = ZIGZAG.get(k).ok_or_else(outside)?;
                out[usize::from(*position)] = bits.signed(size) as i16;
                k += 1;
            }
        }
    }
    Ok(())
}

fn split(code: u8) -> (usize, u32) {
    (usize::from(code >> 4), u32::from(code & 15))
}

fn outside() -> crate::ImageError {
    broken("a coefficient lies outside of its block")
}
