//! What exported models of every backend have in common: the model as IR text with its weights, and the names of its ports.

use carafe_device::{PartsReader, PartsWriter, Port};
use carafe_graph::{Model, Registry, Result};

/// Puts a model that went through the passes, with the names that its ports had before.
pub fn put_model(parts: &mut PartsWriter, model: &Model, inputs: &[Port], outputs: &[Port]) -> Result<()> {
    let (xml, weights) = carafe_ir::write_to(model, &carafe_ir::WriteOptions::transfer())?;
    parts.put(xml.as_bytes());
    parts.put(&weights);
    parts.put_names(inputs.iter().chain(outputs));
    Ok(())
}

/// Takes what [`put_model`] put: the model, its inputs and outputs. Weights stay where they lie.
pub fn take_model(reader: &mut PartsReader<'_>, registry: &Registry) -> Result<(Model, Vec<Port>, Vec<Port>)> {
    let xml = reader.text()?;
    let weights = reader.take()?;
    let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
    let model = carafe_ir::read(&xml, weights, registry, &options)?;
    let (mut inputs, mut outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
    reader.names(inputs.iter_mut().chain(&mut outputs))?;
    Ok((model, inputs, outputs))
}
