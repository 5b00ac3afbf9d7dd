//! The transition model in front of an acoustic model. A decoder needs it and a network does not, so it is passed over; exactly,
//! because its numbers may look like tokens.

use carafe_ark::{Result, Scanner};

/// Passes over `<TransitionModel> .. </TransitionModel>`.
pub(crate) fn skip(s: &mut Scanner<'_>) -> Result<()> {
    s.expect("<TransitionModel>")?;
    s.expect("<Topology>")?;
    if s.is_binary() {
        topology(s)?
    } else {
        text_topology(s)?
    }
    let wrong = s.expected("`<Triples>` or `<Tuples>`");
    let each = match s.token()? {
        "<Triples>" => 3,
        "<Tuples>" => 4,
        _ => return Err(wrong),
    };
    let count = s.int()?;
    for _ in 0..count.saturating_mul(each) {
        s.int()?;
    }
    s.expect(if each == 3 { "</Triples>" } else { "</Tuples>" })?;
    s.expect("<LogProbs>")?;
    s.array()?;
    s.expect("</LogProbs>")?;
    s.expect("</TransitionModel>")
}

fn topology(s: &mut Scanner<'_>) -> Result<()> {
    s.ints()?;
    s.ints()?;
    let mut entries = s.int()?;
    // A topology whose self loops have classes of their own says so.
    let is_plain = entries != -1;
    if !is_plain {
        entries = s.int()?;
    }
    for _ in 0..entries {
        for _ in 0..s.int()? {
            s.int()?;
            if !is_plain {
                s.int()?;
            }
            for _ in 0..s.int()? {
                s.int()?;
                s.float()?;
            }
        }
    }
    s.expect("</Topology>")
}

fn text_topology(s: &mut Scanner<'_>) -> Result<()> {
    while s.peek() != Some("</Topology>") {
        s.expect("<TopologyEntry>")?;
        s.expect("<ForPhones>")?;
        while s.peek() != Some("</ForPhones>") {
            s.int()?;
        }
        s.token()?;
        while s.peek() != Some("</TopologyEntry>") {
            s.expect("<State>")?;
            s.int()?;
            while s.peek() != Some("</State>") {
                let wrong = s.expected("a field of a state");
                match s.token()? {
                    "<PdfClass>" | "<ForwardPdfClass>" | "<SelfLoopPdfClass>" => drop(s.int()?),
                    "<Transition>" => {
                        s.int()?;
                        s.float()?;
                    }
                    _ => return Err(wrong),
                }
            }
            s.token()?;
        }
        s.token()?;
    }
    s.token().map(|_| ())
}
