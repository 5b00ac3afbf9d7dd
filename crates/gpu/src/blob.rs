//! Exported models: IR text and its weights. Programs are built anew, or found in the folder of built kernels.

use crate::compiled::Compiled;
use crate::custom::CustomKernels;
use crate::properties::{self, MODE, PRECISION, Settings, precision};
use crate::{Kind, VPU};
use carafe_device::{BlobHeader, Port, Properties, read_blob, write_blob};
use carafe_graph::{Error, Registry, Result};
use carafe_tensor::SharedBytes;
use std::io::Write;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn export(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let (xml, weights) = carafe_ir::write_to(&compiled.planner.model, &carafe_ir::WriteOptions::transfer())?;
    let mut payload = vec![];
    put(&mut payload, xml.as_bytes());
    put(&mut payload, &weights);
    // Passes may have given a value more names than the model's input or output has.
    for port in compiled.inputs.iter().chain(&compiled.outputs) {
        put(&mut payload, port.name.as_bytes());
        put(&mut payload, port.names.iter().map(String::as_str).collect::<Vec<_>>().join("\n").as_bytes());
    }
    put(&mut payload, precision(compiled.kind, &compiled.properties).as_bytes());
    write_blob(&BlobHeader { device: compiled.kind.name().into(), version: VERSION.into() }, &payload, to)
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
    kind: Kind,
    blob: &SharedBytes,
    registry: &Registry,
    properties: &Properties,
    custom: &CustomKernels,
) -> Result<Compiled> {
    Settings::of(kind, properties)?;
    let found = properties::device(properties)?;
    let (_, payload) = read_blob(blob.as_slice(), kind.name(), VERSION)?;
    let mut reader = Reader { blob, start: payload.start, at: payload.start, end: payload.end };
    let xml = reader.text()?;
    let weights = reader.take()?;
    let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
    let mut registry = registry.clone();
    registry.add_all(custom.declared_ops());
    let mut model = carafe_ir::read(&xml, weights, &registry, &options)?;
    // The kernels as they are now: the blob has the model alone.
    custom.apply(&mut model)?;
    let (mut inputs, mut outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
    for port in inputs.iter_mut().chain(&mut outputs) {
        port.name = reader.text()?;
        port.names = reader.text()?.split('\n').filter(|n| !n.is_empty()).map(str::to_string).collect();
    }
    // The type it was compiled for, unless the import says otherwise.
    let stored = reader.text()?;
    let said = kind.name() == VPU || [PRECISION, MODE].iter().any(|name| properties.get(name).is_some());
    let properties = if said { properties.clone() } else { properties.clone().with(PRECISION, stored) };
    let settings = Settings::of(kind, &properties)?;
    Compiled::of(kind, found, model, inputs, outputs, settings, &properties)
}
