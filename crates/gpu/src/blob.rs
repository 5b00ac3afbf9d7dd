//! Exported models: IR text and its weights. Programs are built anew, or found in the folder of built kernels.

use crate::compiled::Compiled;
use crate::custom::CustomKernels;
use crate::properties::{self, MODE, PRECISION, Settings, precision};
use crate::{Kind, VPU};
use carafe_device::{BlobHeader, PartsReader, PartsWriter, Port, Properties, read_blob, write_blob};
use carafe_graph::{Registry, Result};
use carafe_tensor::SharedBytes;
use std::io::Write;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn export(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let (xml, weights) = carafe_ir::write_to(&compiled.planner.model, &carafe_ir::WriteOptions::transfer())?;
    let mut parts = PartsWriter::default();
    parts.put(xml.as_bytes());
    parts.put(&weights);
    parts.put_names(compiled.inputs.iter().chain(&compiled.outputs));
    parts.put(precision(compiled.kind, &compiled.properties).as_bytes());
    write_blob(&BlobHeader { device: compiled.kind.name().into(), version: VERSION.into() }, &parts.payload, to)
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
    let mut reader = PartsReader::new(blob, payload);
    let xml = reader.text()?;
    let weights = reader.take()?;
    let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
    let mut registry = registry.clone();
    registry.add_all(custom.declared_ops());
    let mut model = carafe_ir::read(&xml, weights, &registry, &options)?;
    // The kernels as they are now: the blob has the model alone.
    custom.apply(&mut model)?;
    let (mut inputs, mut outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
    reader.names(inputs.iter_mut().chain(&mut outputs))?;
    // The type it was compiled for, unless the import says otherwise.
    let stored = reader.text()?;
    let said = kind.name() == VPU || [PRECISION, MODE].iter().any(|name| properties.get(name).is_some());
    let properties = if said { properties.clone() } else { properties.clone().with(PRECISION, stored) };
    let settings = Settings::of(kind, &properties)?;
    Compiled::of(kind, found, model, inputs, outputs, settings, &properties)
}
