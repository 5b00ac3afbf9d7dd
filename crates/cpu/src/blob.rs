//! Exported models: IR text, its weights, and the packed weights behind them, each at a multiple of 64 so that they are used
//! where they lie when the file is mapped.

use crate::compiled::Compiled;
use crate::properties::{GROUP, MODE, PRECISION, precision, rounded_group};
use crate::weights::{Exported, Weights};
use carafe_device::{BlobHeader, Kernel, Port, Properties, read_blob, use_kernels, write_blob};
use carafe_graph::{Error, Notes, Registry, Result};
use carafe_kernels::Isa;
use carafe_tensor::SharedBytes;
use std::io::Write;
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn export(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let (xml, weights) = carafe_ir::write_to(&compiled.planner.model, &carafe_ir::WriteOptions::transfer())?;
    let mut payload = vec![];
    // Packed forms of another level of instructions are of no use, so the level is part of the file.
    put(&mut payload, Isa::best().name().as_bytes());
    put(&mut payload, xml.as_bytes());
    put(&mut payload, &weights);
    // Passes may have given a value more names than the model's input or output has.
    for port in compiled.inputs.iter().chain(&compiled.outputs) {
        put(&mut payload, port.name.as_bytes());
        put(&mut payload, port.names.iter().map(String::as_str).collect::<Vec<_>>().join("\n").as_bytes());
    }
    let mut all = compiled.planner.backend.weights.exported(&compiled.planner.model);
    all.retain(|e| !e.constants.iter().any(|name| name.contains('\n')));
    put(&mut payload, &(all.len() as u64).to_le_bytes());
    for Exported { form, constants, bytes } in all {
        put(&mut payload, format!("{form}\n{}", constants.join("\n")).as_bytes());
        put(&mut payload, bytes.bytes());
    }
    put(&mut payload, precision(&compiled.properties).as_bytes());
    put(&mut payload, rounded_group(&compiled.properties).as_bytes());
    write_blob(&BlobHeader { device: crate::NAME.into(), version: VERSION.into() }, &payload, to)
}

// A length, blanks up to a boundary, the bytes, blanks up to a boundary.
fn put(payload: &mut Vec<u8>, bytes: &[u8]) {
    payload.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    payload.resize(payload.len().next_multiple_of(64), 0);
    payload.extend_from_slice(bytes);
    payload.resize(payload.len().next_multiple_of(64), 0);
}

struct Reader<'a> {
    blob: &'a SharedBytes,
    start: usize,
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn take(&mut self) -> Result<SharedBytes> {
        let cut = || Error::invalid("the exported model is cut short");
        let bytes = self.blob.as_slice();
        let round = |n: usize| Some(self.start + n.checked_sub(self.start)?.checked_next_multiple_of(64)?);
        let head = self.at.checked_add(8).filter(|e| *e <= self.end).ok_or_else(cut)?;
        let len = u64::from_le_bytes(bytes[self.at..head].try_into().map_err(|_| cut())?);
        let from = round(head).ok_or_else(cut)?;
        let to = usize::try_from(len).ok().and_then(|n| from.checked_add(n)).filter(|e| *e <= self.end);
        let to = to.ok_or_else(cut)?;
        self.at = round(to).ok_or_else(cut)?.min(self.end);
        self.blob.part(from..to).ok_or_else(cut)
    }
    fn text(&mut self) -> Result<String> {
        let bytes = self.take()?;
        let text = std::str::from_utf8(bytes.as_slice());
        Ok(text.map_err(|_| Error::invalid("the exported model is damaged: its text is not UTF-8"))?.to_string())
    }
}

pub(crate) fn import(
    blob: &SharedBytes,
    registry: &Registry,
    kernels: &[Arc<dyn Kernel>],
    properties: &Properties,
) -> Result<Compiled> {
    crate::properties::check(properties)?;
    let (_, payload) = read_blob(blob.as_slice(), crate::NAME, VERSION)?;
    let mut reader = Reader { blob, start: payload.start, at: payload.start, end: payload.end };
    let isa = reader.text()?;
    let xml = reader.text()?;
    let weights = reader.take()?;
    let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
    let mut model = carafe_ir::read(&xml, weights, registry, &options)?;
    let (mut inputs, mut outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
    for port in inputs.iter_mut().chain(&mut outputs) {
        port.name = reader.text()?;
        port.names = reader.text()?.split('\n').filter(|n| !n.is_empty()).map(str::to_string).collect();
    }
    let count = reader.take()?;
    let count = count.as_slice().try_into().map(u64::from_le_bytes);
    let count = count.map_err(|_| Error::invalid("the exported model is cut short"))?;
    let mut found = vec![];
    for _ in 0..count {
        let (key, bytes) = (reader.text()?, reader.take()?);
        // Bytes that do not lie on a boundary, or belong to other instructions, are packed anew.
        if isa == Isa::best().name() && (bytes.as_slice().as_ptr() as usize).is_multiple_of(64) {
            let mut parts = key.split('\n').map(str::to_string);
            let form = parts.next().unwrap_or_default();
            found.push(Exported { form, constants: parts.collect(), bytes });
        }
    }
    // The types it was compiled for, unless the import says otherwise.
    let (stored, group) = (reader.text()?, reader.text()?);
    let said = [PRECISION, MODE].iter().any(|name| properties.get(name).is_some());
    let mut properties = properties.clone();
    if !said {
        properties.set(PRECISION, &stored);
    }
    if !said && properties.get(GROUP).is_none() {
        properties.set(GROUP, &group);
    }
    crate::properties::check(&properties)?;
    use_kernels(&mut model, crate::NAME, crate::LAYOUTS, kernels, &mut Notes::default())?;
    let weights = Weights::with(&model, found);
    Compiled::of(model, inputs, outputs, weights, &properties)
}
