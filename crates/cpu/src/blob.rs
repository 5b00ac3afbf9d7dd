//! Exported models: IR text, its weights, and the packed weights behind them, each at a multiple of 64 so that they are used
//! where they lie when the file is mapped.

use crate::compiled::Compiled;
use crate::properties::{GROUP, MODE, PRECISION, precision, rounded_group};
use crate::weights::{Exported, Weights};
use carafe_device::{BlobHeader, Kernel, PartsReader, PartsWriter, Properties, read_blob, use_kernels, write_blob};
use carafe_graph::{Error, Notes, Registry, Result};
use carafe_kernels::Isa;
use carafe_plan::{put_model, take_model};
use carafe_tensor::SharedBytes;
use std::io::Write;
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn export(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let mut parts = PartsWriter::default();
    // Packed forms of another level of instructions are of no use, so the level is part of the file.
    parts.put(Isa::best().name().as_bytes());
    put_model(&mut parts, &compiled.planner.model, &compiled.inputs, &compiled.outputs)?;
    let mut all = compiled.planner.backend.weights.exported(&compiled.planner.model);
    all.retain(|e| !e.constants.iter().any(|name| name.contains('\n')));
    parts.put(&(all.len() as u64).to_le_bytes());
    for Exported { form, constants, bytes } in all {
        parts.put(format!("{form}\n{}", constants.join("\n")).as_bytes());
        parts.put(bytes.bytes());
    }
    parts.put(precision(&compiled.properties).as_bytes());
    parts.put(rounded_group(&compiled.properties).as_bytes());
    write_blob(&BlobHeader { device: crate::NAME.into(), version: VERSION.into() }, &parts.payload, to)
}

pub(crate) fn import(
    blob: &SharedBytes,
    registry: &Registry,
    kernels: &[Arc<dyn Kernel>],
    properties: &Properties,
) -> Result<Compiled> {
    crate::properties::check(properties)?;
    let (_, payload) = read_blob(blob.as_slice(), crate::NAME, VERSION)?;
    let mut reader = PartsReader::new(blob, payload);
    let isa = reader.text()?;
    let (mut model, inputs, outputs) = take_model(&mut reader, registry)?;
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
