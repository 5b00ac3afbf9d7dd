//! Exported models: IR text, its weights, and the users' kernels with their sources. Programs are built anew, or found in the folder of
//! built kernels.

use crate::compiled::Compiled;
use crate::custom::CustomKernels;
use crate::properties::{self, MODE, PRECISION, Settings, precision};
use crate::{Kind, VPU};
use carafe_custom_kernels::KernelFile;
use carafe_device::{BlobHeader, PartsReader, PartsWriter, Properties, read_blob, write_blob};
use carafe_graph::{Error, Registry, Result};
use carafe_plan::{put_model, take_model};
use carafe_tensor::SharedBytes;
use std::io::Write;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn export(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let mut parts = PartsWriter::default();
    put_kernels(&mut parts, &compiled.kernels);
    put_model(&mut parts, &compiled.planner.model, &compiled.inputs, &compiled.outputs)?;
    parts.put(precision(compiled.kind, &compiled.properties).as_bytes());
    write_blob(&BlobHeader { device: compiled.kind.name().into(), version: VERSION.into() }, &parts.payload, to)
}

pub(crate) fn import(
    kind: Kind,
    blob: &SharedBytes,
    registry: &Registry,
    properties: &Properties,
    custom: CustomKernels,
) -> Result<Compiled> {
    Settings::of(kind, properties)?;
    let found = properties::device(properties)?;
    let (_, payload) = read_blob(blob.as_slice(), kind.name(), VERSION)?;
    let mut reader = PartsReader::new(blob, payload);
    // Kernels that are given now stand before those that the model was compiled with.
    let custom = custom.over(kind, &take_kernels(&mut reader)?)?;
    let mut registry = registry.clone();
    registry.add_all(custom.declared_ops());
    let (mut model, inputs, outputs) = take_model(&mut reader, &registry)?;
    custom.apply(&mut model)?;
    // The type it was compiled for, unless the import says otherwise.
    let stored = reader.text()?;
    let said = kind.name() == VPU || [PRECISION, MODE].iter().any(|name| properties.get(name).is_some());
    let properties = if said { properties.clone() } else { properties.clone().with(PRECISION, stored) };
    let settings = Settings::of(kind, &properties)?;
    let compiled = Compiled::of(kind, found, model, inputs, outputs, settings, &properties)?;
    Ok(compiled.with_kernels(&custom))
}

fn put_kernels(parts: &mut PartsWriter, files: &[KernelFile]) {
    parts.put(&(files.len() as u64).to_le_bytes());
    for file in files {
        parts.put(file.name.as_bytes());
        parts.put(file.text.as_bytes());
        parts.put(&(file.sources().count() as u64).to_le_bytes());
        for (name, text) in file.sources() {
            parts.put(name.as_bytes());
            parts.put(text.as_bytes());
        }
    }
}

fn take_kernels(reader: &mut PartsReader<'_>) -> Result<Vec<KernelFile>> {
    let mut files = vec![];
    for _ in 0..count(reader)? {
        let (name, text) = (reader.text()?, reader.text()?);
        let mut sources = vec![];
        for _ in 0..count(reader)? {
            sources.push((reader.text()?, reader.text()?));
        }
        files.push(KernelFile::from_memory(&name, &text, sources));
    }
    Ok(files)
}

fn count(reader: &mut PartsReader<'_>) -> Result<u64> {
    let number = reader.take()?.as_slice().try_into().map(u64::from_le_bytes);
    number.map_err(|_| Error::invalid("the exported model is cut short"))
}
