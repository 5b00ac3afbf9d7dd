//! A kernel for one node with exact shapes.

use super::defines::{built_in, user};
use super::work_size::every_element;
use super::{Argument, GpuLayer};
use crate::attributes;
use crate::declared::dims_of;
use crate::expression::Number;
use crate::layout::{Format, TensorLayout};
use crate::node::{NodeView, PortView};
use carafe_graph::{Error, Result};
use std::collections::BTreeSet;

/// What a device needs to run a kernel for a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// All of the source.
    pub source: String,
    /// Options of the build.
    pub options: String,
    /// Name of the kernel function.
    pub entry: String,
    /// Arguments, in order.
    pub arguments: Vec<CallArgument>,
    /// One to three sizes; a zero says that there is nothing to do.
    pub global: Vec<usize>,
    /// As many, or none when the driver chooses.
    pub local: Vec<usize>,
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallArgument {
    /// An input of the node.
    Input {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// An output of the node.
    Output {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// Memory for the kernel alone.
    Internal {
        /// So much.
        bytes: usize,
    },
}

impl GpuLayer {
    /// Binds the kernel to a node. What is wrong names the layer and its place in the file.
    pub fn bind(&self, node: &NodeView) -> Result<Call> {
        self.call(node).map_err(|e| e.at(format!("custom kernel `{}` ({})", self.name, self.location)))
    }

    fn call(&self, node: &NodeView) -> Result<Call> {
        let arguments = self.arguments.iter().map(|a| argument(a, node)).collect::<Result<Vec<_>>>()?;
        self.check_outputs(&arguments, node)?;
        let (global, local) = match &self.work_sizes {
            Some(sizes) => sizes.evaluate(node)?,
            None => (every_element(node)?, vec![]),
        };
        let layouts = |ports: &[PortView], is_output: bool| {
            let of = |(i, port): (usize, &PortView)| {
                let format = arguments.iter().find_map(|a| match *a {
                    CallArgument::Input { port, format } if !is_output && port == i => Some(format),
                    CallArgument::Output { port, format } if is_output && port == i => Some(format),
                    _ => None,
                });
                TensorLayout::new(&port.shape, format.unwrap_or_default(), port.ty)
            };
            ports.iter().enumerate().map(of).collect::<Result<Vec<_>>>()
        };
        let (inputs, outputs) = (layouts(&node.inputs, false)?, layouts(&node.outputs, true)?);
        let source = built_in(&inputs, &outputs, &global, &local)? + &user(self, &node.attrs)?;
        Ok(Call { source, options: self.options.clone(), entry: self.entry.clone(), arguments, global, local })
    }

    fn check_outputs(&self, arguments: &[CallArgument], node: &NodeView) -> Result<()> {
        let port = |a: &CallArgument| if let CallArgument::Output { port, .. } = a { Some(*port) } else { None };
        let written: BTreeSet<usize> = arguments.iter().filter_map(port).collect();
        match (0..node.outputs.len()).find(|i| !written.contains(i)) {
            None => Ok(()),
            Some(missing) => Err(Error::invalid(format!(
                "the operation has {} outputs, and no <Tensor type=\"output\"> is output {missing}",
                node.outputs.len()
            ))),
        }
    }
}

fn argument(argument: &Argument, node: &NodeView) -> Result<CallArgument> {
    let check = |port: usize, n: usize, what: &str, location: &crate::xml::Location| match port < n {
        true => Ok(port),
        false => {
            Err(Error::invalid(format!("`port-index` {port} is none of the {what}s of the operation; it has {n}"))
                .at(format!("<Tensor type=\"{what}\">"))
                .at(location.to_string()))
        }
    };
    Ok(match argument {
        Argument::Input { port, format, location } => {
            CallArgument::Input { port: check(*port, node.inputs.len(), "input", location)?, format: *format }
        }
        Argument::Output { port, format, location } => {
            CallArgument::Output { port: check(*port, node.outputs.len(), "output", location)?, format: *format }
        }
        Argument::Internal { size, location } => {
            let at = |e: Error| e.at("<Tensor type=\"internal\">").at(location.to_string());
            let count = size.value(|name| dimension(node, name)).map_err(at)?;
            let element = node.inputs.first().map_or(4, |p| p.ty.byte_len(1).unwrap_or(4).max(1));
            let bytes = usize::try_from(count).ok().filter(|n| *n > 0).and_then(|n| n.checked_mul(element));
            let bytes = bytes.ok_or_else(|| {
                at(Error::invalid(format!("the size `{}` is {count} elements, expected at least 1", size.text())))
            })?;
            CallArgument::Internal { bytes }
        }
        Argument::Data { name, location } => {
            let port = node.data_port(name).ok_or_else(|| {
                let why = format!("the operation has no constant `{name}`; it has the inputs {}", node.data_names());
                Error::invalid(why).at("<Data>").at(location.to_string())
            })?;
            CallArgument::Input { port, format: Format::Any }
        }
    })
}

// `INPUT0_DIMS[1]`, `OUTPUT0_DIMS[1]`, B, F, Y, X of output 0, or an attribute.
fn dimension(node: &NodeView, name: &str) -> Option<Number> {
    let axis = |port: Option<&PortView>, axis: usize| {
        let size = *port?.shape.get(axis)?;
        i64::try_from(size).ok().map(Number::Int)
    };
    if let Some((input, i)) = dims_of(name) {
        return axis(node.inputs.get(input), i);
    }
    if let Some((output, i)) = name.strip_prefix("OUT").and_then(|rest| dims_of(&format!("IN{rest}"))) {
        return axis(node.outputs.get(output), i);
    }
    attributes::number(&node.attrs, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{KernelFile, Mode};
    use crate::gpu::read;
    use carafe_graph::AttrValue;
    use carafe_tensor::ElementType;

    fn port(shape: &[usize]) -> PortView {
        PortView { name: String::new(), ty: ElementType::F32, shape: shape.to_vec(), is_constant: false }
    }
    fn node(inputs: &[&[usize]], outputs: &[&[usize]]) -> NodeView {
        let ports = |list: &[&[usize]]| list.iter().map(|s| port(s)).collect();
        NodeView { inputs: ports(inputs), outputs: ports(outputs), ..NodeView::default() }
    }
    fn layer(buffers: &str, rest: &str) -> GpuLayer {
        let xml = format!(
            "<CustomLayer name=\"Op\" type=\"SimpleGPU\" version=\"1\"><Kernel entry=\"k\"><Source filename=\"k.cl\"/>\
             <Define name=\"slope\" param=\"alpha\" default=\"1.0\"/></Kernel><Buffers>{buffers}</Buffers>{rest}</CustomLayer>"
        );
        let file = KernelFile::with_source("k.xml", &xml, "__kernel void k() {}");
        read(&file, Mode::Strict).unwrap().layers.remove(0)
    }
    const IN: &str = "<Tensor arg-index='0' type='input' port-index='0' format='BYXF'/>";
    const OUT: &str = "<Tensor arg-index='1' type='output' port-index='0'/>";

    #[test]
    fn a_call_has_source_arguments_and_sizes() {
        let mut node = node(&[&[1, 3, 4, 5]], &[&[1, 3, 4, 5]]);
        node.attrs.set("alpha", AttrValue::Float(0.25));
        let rest = "<CompilerOptions options='-cl-mad-enable'/><WorkSizes global='X,Y,B*F' local='5,2,1'/>";
        let call = layer(&format!("{IN}{OUT}"), rest).bind(&node).unwrap();
        assert_eq!((call.global, call.local, call.options.as_str()), (vec![5, 4, 3], vec![5, 2, 1], "-cl-mad-enable"));
        assert_eq!(call.arguments[0], CallArgument::Input { port: 0, format: Format::Byxf });
        assert_eq!(call.arguments[1], CallArgument::Output { port: 0, format: Format::Bfyx });
        assert!(call.source.contains("#define INPUT0_FORMAT_BYXF"));
        assert!(call.source.contains("#define INPUT0_PITCHES (int []){ 60,1,15,3, } "));
        assert!(
            call.source.contains(
                "#define slope 0.250000\n// Custom Layer Kernel k.cl\n#line 1 \"k.cl\"\n__kernel void k() {}"
            )
        );
    }

    #[test]
    fn without_work_sizes_every_element_of_the_output_has_a_work_item() {
        let call = layer(&format!("{IN}{OUT}"), "").bind(&node(&[&[2, 3]], &[&[2, 5]])).unwrap();
        assert_eq!((call.global, call.local), (vec![10], vec![]));
    }

    #[test]
    fn a_port_that_the_operation_does_not_have_is_named() {
        let e = layer(&format!("{IN}{OUT}<Tensor arg-index='2' type='input' port-index='3'/>"), "")
            .bind(&node(&[&[1]], &[&[1]]))
            .unwrap_err();
        let text = e.to_string();
        assert!(text.starts_with("custom kernel `Op` (k.xml:1:1), k.xml:1:"), "{text}");
        assert!(
            text.ends_with("<Tensor type=\"input\">: `port-index` 3 is none of the inputs of the operation; it has 1"),
            "{text}"
        );
    }

    #[test]
    fn every_output_must_be_written() {
        let e = layer(&format!("{IN}{OUT}"), "").bind(&node(&[&[1]], &[&[1], &[1]])).unwrap_err();
        assert!(
            e.to_string().ends_with("the operation has 2 outputs, and no <Tensor type=\"output\"> is output 1"),
            "{e}"
        );
    }

    #[test]
    fn internal_buffers_are_sized_by_shapes() {
        let internal = "<Tensor arg-index='2' type='internal' port-index='0' size='INPUT0_DIMS[1]*2+OUTPUT0_DIMS[0]'/>";
        let layer = layer(&format!("{IN}{OUT}{internal}"), "");
        let call = layer.bind(&node(&[&[1, 3]], &[&[5]])).unwrap();
        assert_eq!(call.arguments[2], CallArgument::Internal { bytes: 44 });
        let e = layer.bind(&node(&[&[1, 0]], &[&[0]])).unwrap_err();
        assert!(e.to_string().contains("the size `INPUT0_DIMS[1]*2+OUTPUT0_DIMS[0]` is 0 elements"), "{e}");
        let e = layer.bind(&node(&[&[1]], &[&[5]])).unwrap_err();
        assert!(e.to_string().contains("nothing is known of `INPUT0_DIMS[1]`"), "{e}");
    }

    #[test]
    fn data_is_an_input_by_name() {
        let layer = layer(&format!("{IN}{OUT}<Data arg-index='2' name='weights'/>"), "");
        let mut node = node(&[&[1], &[3]], &[&[1]]);
        assert!(layer.bind(&node).unwrap_err().to_string().contains("the operation has no constant `weights`"));
        node.inputs[1].is_constant = true;
        assert_eq!(layer.bind(&node).unwrap().arguments[2], CallArgument::Input { port: 1, format: Format::Any });
    }

    #[test]
    fn a_type_that_no_kernel_takes_names_the_tensor() {
        let mut node = node(&[&[1]], &[&[1]]);
        node.inputs[0].ty = ElementType::Bf16;
        let e = layer(&format!("{IN}{OUT}"), "").bind(&node).unwrap_err();
        assert!(
            e.to_string()
                .ends_with("input 0: a custom kernel takes tensors of i8, u8, i32, i64, f16 and f32, found bf16"),
            "{e}"
        );
    }
}
