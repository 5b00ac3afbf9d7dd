//! A model ready to run: common passes applied, ports listed. Exported as IR text and weights behind the checked header.

use crate::properties::{TABLE, check, metric};
use crate::request::Request;
use carafe_device::{
    BlobHeader, CompiledModel, InferRequest, Kernel, KernelOp, Port, Properties, read_blob, tell_kernel_troubles,
    use_kernels, write_blob,
};
use carafe_graph::{Error, FrameworkNode, Model, NodeId, Notes, Registry, Result, run_passes};
use carafe_tensor::SharedBytes;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) model: Model,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) profiled: bool,
    properties: Properties,
}

impl Compiled {
    pub(crate) fn new(mut model: Model, kernels: &[Arc<dyn Kernel>], properties: &Properties) -> Result<Compiled> {
        check(properties)?;
        refuse_unknown(&model)?;
        run_passes(&mut model, carafe_passes::COMMON_WIDENED, &mut Notes::default())?;
        model.infer()?;
        use_kernels(&mut model, crate::NAME, crate::LAYOUTS, kernels, &mut Notes::default())?;
        Ok(Compiled {
            inputs: Port::inputs_of(&model),
            outputs: Port::outputs_of(&model),
            profiled: properties.is_on(TABLE, "PERF_COUNT"),
            properties: properties.clone(),
            model,
        })
    }

    pub(crate) fn import(
        blob: &SharedBytes,
        registry: &Registry,
        kernels: &[Arc<dyn Kernel>],
        properties: &Properties,
    ) -> Result<Compiled> {
        let bytes = blob.as_slice();
        let (_, payload) = read_blob(bytes, crate::NAME, VERSION)?;
        let cut = || Error::invalid("the exported model is cut short");
        let head = bytes.get(payload.start..payload.start + 8).ok_or_else(cut)?;
        let xml_len = u64::from_le_bytes(head.try_into().map_err(|_| cut())?) as usize;
        let xml_end = (payload.start + 8).checked_add(xml_len).filter(|e| *e <= payload.end).ok_or_else(cut)?;
        let xml = std::str::from_utf8(&bytes[payload.start + 8..xml_end])
            .map_err(|_| Error::invalid("the exported model is damaged: its text is not UTF-8"))?;
        let weights = blob.part(xml_end..payload.end).ok_or_else(cut)?;
        let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
        Compiled::new(carafe_ir::read(xml, weights, registry, &options)?, kernels, properties)
    }
}

/// Which kernel runs a node.
pub(crate) fn kernel_of(model: &Model, id: NodeId) -> String {
    model.op_at::<KernelOp>(id).map_or_else(|| "reference".into(), KernelOp::kernel)
}

// All of them in one list, with counts.
fn refuse_unknown(model: &Model) -> Result<()> {
    let mut unknown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (_, node) in model.nodes().filter(|(_, n)| n.op().is::<FrameworkNode>()) {
        unknown.entry(format!("{} ({})", node.op().type_name(), node.op().opset())).or_default().push(node.name());
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        unknown.iter().map(|(t, names)| format!("{} x {t}: `{}`", names.len(), names.join("`, `"))).collect();
    Err(Error::unsupported(format!("device TEMPLATE cannot run {}", list.join("; "))))
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        let mut model = self.model.clone();
        tell_kernel_troubles(&mut model);
        for (position, id) in model.topological_order().unwrap_or_default().into_iter().enumerate() {
            let kernel = kernel_of(&model, id);
            let info = model.rt_info_mut(id);
            for (key, value) in [("execOrder", position.to_string()), ("primitiveType", kernel)] {
                info.set(key, "0", vec![("value".into(), value)]);
            }
        }
        model
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        let (mut xml, weights) = carafe_ir::write_to(&self.model, &carafe_ir::WriteOptions::transfer())?;
        // Blanks, until the weights start on a boundary and can be used where they lie.
        let blanks = (8 + xml.len()).next_multiple_of(64) - (8 + xml.len());
        xml.extend(std::iter::repeat_n(' ', blanks));
        let mut payload = (xml.len() as u64).to_le_bytes().to_vec();
        payload.extend_from_slice(xml.as_bytes());
        payload.extend_from_slice(&weights);
        write_blob(&BlobHeader { device: crate::NAME.into(), version: VERSION.into() }, &payload, to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.model.name.clone()),
            "EXECUTION_DEVICES" => Ok(crate::NAME.into()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            _ => match self.properties.or_default(TABLE, name) {
                Some(value) if !value.is_empty() => Ok(value.to_string()),
                _ => metric(name),
            },
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request::new(self))
    }
}
