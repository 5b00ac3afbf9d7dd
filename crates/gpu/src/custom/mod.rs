//! Kernels of users: which there are for a compilation, from files that properties name and from extensions, and which node gets one.
//! A node that gets one keeps its operation for inference and is none of the passes' business any more; `steps/custom.rs` builds its
//! step.

mod op;

pub(crate) use op::{CustomOp, Layer};

use crate::Kind;
use carafe_custom_kernels::gpu::GpuLayers;
use carafe_custom_kernels::vpu::VpuLayers;
use carafe_custom_kernels::{Declaration, KernelFile, Mode, NodeView, PortView, config_files, gpu, vpu};
use carafe_device::{ClKernel, Properties};
use carafe_graph::log::{Level, report};
use carafe_graph::{Model, NodeId, Op, OpFactory, OpRef, Result};
use carafe_tensor::{ElementType, Hash128};
use std::sync::Arc;

/// Files with kernels, of both devices.
pub(crate) const CONFIG_FILE: &str = "CONFIG_FILE";
/// The same, of the VPU alone and in front of it.
pub(crate) const VPU_LAYERS: [&str; 2] = ["MYRIAD_CUSTOM_LAYERS", "VPU_CUSTOM_LAYERS"];

/// The kernels of one compilation.
#[derive(Debug, Default)]
pub(crate) struct CustomKernels {
    gpu: GpuLayers,
    vpu: VpuLayers,
    /// Where they are from, with their sources, in order; an exported model takes them along.
    files: Vec<KernelFile>,
}

impl CustomKernels {
    /// Those of extensions, then those of the files that properties name.
    pub(crate) fn of(kind: Kind, properties: &Properties, extensions: &[ClKernel]) -> Result<CustomKernels> {
        let mut all = CustomKernels::default();
        for (i, kernel) in extensions.iter().enumerate() {
            let name = format!("kernel {i} of extensions");
            all.add(kind, &KernelFile::with_source(&name, &kernel.xml, &kernel.source))?;
        }
        for path in config_files(files_property(kind, properties)) {
            all.add(kind, &KernelFile::open(&path)?)?;
        }
        Ok(all)
    }

    /// These, and those of an exported model for operations that they are not for.
    pub(crate) fn over(self, kind: Kind, exported: &[KernelFile]) -> Result<CustomKernels> {
        let mut all = CustomKernels::default();
        for file in exported.iter().filter(|file| !self.files.contains(file)) {
            all.add(kind, file)?;
        }
        all.gpu.add(self.gpu.iter().cloned());
        // Layers of one name are tried in their order.
        let mut vpu = self.vpu;
        let older: Vec<_> = all.vpu.iter().filter(|l| vpu.candidates(&l.name).next().is_none()).cloned().collect();
        vpu.add(older);
        all.files.extend(self.files);
        Ok(CustomKernels { vpu, ..all })
    }

    /// The files that they are from.
    pub(crate) fn files(&self) -> &[KernelFile] {
        &self.files
    }

    fn add(&mut self, kind: Kind, file: &KernelFile) -> Result<()> {
        let warnings = match kind {
            Kind::Gpu => {
                let found = gpu::read(file, Mode::Compatible)?;
                self.gpu.add(found.layers);
                found.warnings
            }
            Kind::Vpu => {
                let found = vpu::read(file, Mode::Compatible)?;
                self.vpu.add(found.layers);
                found.warnings
            }
        };
        for text in &warnings {
            report(Level::Warning, text);
        }
        self.files.push(file.self_contained()?);
        Ok(())
    }

    /// Operations that the files declare.
    pub(crate) fn declared_ops(&self) -> Vec<OpFactory> {
        let gpu = self.gpu.iter().filter_map(|l| l.declaration.as_ref());
        let vpu = self.vpu.iter().filter_map(|l| l.declaration.as_ref());
        gpu.chain(vpu).map(Declaration::factory).collect()
    }

    /// A text that differs when a kernel does.
    pub(crate) fn fingerprint(&self) -> String {
        if self.gpu.is_empty() && self.vpu.is_empty() {
            return String::new();
        }
        let mut hash = Hash128::default();
        hash.bytes(format!("{:?} {:?}", self.gpu, self.vpu).as_bytes());
        format!("{:032x}", hash.finish())
    }

    /// Gives every node that a kernel is for to it, in bodies too; how many.
    pub(crate) fn apply(&self, model: &mut Model) -> Result<usize> {
        if self.gpu.is_empty() && self.vpu.is_empty() {
            return Ok(0);
        }
        let mut taken = 0;
        let ids: Vec<NodeId> = model.nodes().map(|(id, _)| id).collect();
        for id in ids {
            if model.node(id).op().has_body() {
                let mut op = model.node(id).op().clone_op();
                let mut inside = 0;
                for (_, body) in op.bodies_mut() {
                    inside += self.apply(&mut body.model)?;
                }
                if inside > 0 {
                    model.set_op(id, Arc::from(op))?;
                }
                taken += inside;
            }
            if let Some(layer) = self.layer(model, id)? {
                let inner: OpRef = model.node(id).op_ref().clone();
                model.set_op(id, Arc::new(CustomOp::new(inner, layer)))?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    fn layer(&self, model: &Model, id: NodeId) -> Result<Option<Layer>> {
        let node = model.node(id);
        let op = node.op();
        if let Some(layer) = self.gpu.find(op.type_name()) {
            return Ok(Some(Layer::Gpu(Arc::new(layer.clone()))));
        }
        if self.vpu.candidates(op.type_name()).next().is_none() {
            return Ok(None);
        }
        let port = |ty: ElementType, name: &str| PortView { name: name.into(), ty, shape: vec![], is_constant: false };
        let inputs = node.inputs().iter().enumerate();
        let view = NodeView {
            attrs: attrs_of(op),
            inputs: inputs.map(|(i, v)| port(model.fact(*v).ty, port_name(op, i))).collect(),
            outputs: node.outputs().iter().map(|o| port(o.fact.ty, "")).collect(),
        };
        let chosen = self.vpu.choose(op.type_name(), &view).map_err(|e| e.at(node.location()))?;
        Ok(chosen.map(|layer| Layer::Vpu(Arc::new(layer.clone()))))
    }
}

/// What the property says that is in force.
fn files_property(kind: Kind, properties: &Properties) -> &str {
    let names = if kind == Kind::Vpu { &VPU_LAYERS[..] } else { &[] };
    let set = names.iter().chain([&CONFIG_FILE]).filter_map(|name| properties.get(name));
    set.map(str::trim).find(|value| !value.is_empty()).unwrap_or_default()
}

pub(crate) fn attrs_of(op: &dyn Op) -> carafe_graph::AttrMap {
    op.attrs().into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
}

/// Name of an input as its operation declares it.
pub(crate) fn port_name(op: &dyn Op, input: usize) -> &'static str {
    op.info().inputs.get(input).map_or("", |p| p.name)
}
