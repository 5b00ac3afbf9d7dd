//! What follows an operation inside of its kernel: elementwise operations as a function of OpenCL C.

use super::{Site, elementwise};
use crate::backend::BuildCx;
use crate::launch::Arg;
use carafe_graph::Result;
use carafe_plan::elementwise::{is_column_vector, is_scalar, names};
use carafe_plan::{Form, Layout};
use carafe_tensor::{ElementType, Hash128, Tensor, f16};
use std::fmt::Write;

/// The function `epilogue(v, at, column)`, for the element `at` of the result, with what it needs besides.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// The macros of its parameters, and itself.
    pub(crate) source: String,
    /// Arguments of a kernel behind its own.
    pub(crate) args: Vec<Arg>,
    /// For reports.
    pub(crate) name: String,
}

impl Ending {
    /// Nothing follows.
    pub(crate) fn none() -> Ending {
        Ending { source: source("", "", "    return v;\n"), args: vec![], name: String::new() }
    }

    /// The epilogue of a site whose result has its columns on `axis` and lies as `layout` says. What is read besides the inputs in
    /// `reads` is added there. `None` when it cannot be done.
    pub(crate) fn of(
        site: &Site<'_>,
        axis: usize,
        layout: Layout,
        reads: &mut Vec<(usize, Form)>,
    ) -> Result<Option<Ending>> {
        if site.epilogue.is_empty() {
            return Ok(Some(Ending::none()));
        }
        if site.epilogue.iter().any(|post| post.ty != ElementType::F32) || site.out_order.is_some() {
            return Ok(None);
        }
        let (cx, shape) = (site.cx, &site.outputs[0].shape);
        let chain = elementwise::chain(site.epilogue, Some("v"), &site.inputs);
        let (mut parameters, mut passed, mut body) = (String::new(), String::new(), String::new());
        let mut args = vec![];
        for (at, &i) in chain.reads.iter().enumerate() {
            let port = &site.inputs[i];
            let index = match () {
                _ if is_scalar(&port.shape) => "0",
                _ if is_column_vector(&port.shape, shape, axis) => "column",
                _ if port.shape == *shape => "at",
                _ => return Ok(None),
            };
            match &port.constant {
                Some(tensor) => {
                    let lies = if index == "at" { layout } else { Layout::PLAIN };
                    args.push(floats(cx, tensor, lies)?);
                    let _ = write!(parameters, ", __global const float *e{at}");
                    let _ = writeln!(body, "    const float x{at} = e{at}[{index}];");
                }
                None => {
                    let lies = if port.shape == *shape { layout } else { Layout::PLAIN };
                    reads.push((i, cx.form(port, lies)));
                    args.push(Arg::Read(reads.len() - 1));
                    let _ = write!(parameters, ", __global const DATA *e{at}");
                    let _ = writeln!(body, "    const float x{at} = LOAD(e{at}, {index});");
                }
            }
            let _ = write!(passed, ", e{at}");
        }
        for (at, &number) in chain.numbers.iter().enumerate() {
            let _ = write!(parameters, ", const float c{at}");
            let _ = write!(passed, ", c{at}");
            args.push(number.into());
        }
        let _ = writeln!(body, "{}    return {};", chain.body, chain.result);
        let name = format!("+{}", names(site.epilogue).replace(' ', "+"));
        Ok(Some(Ending { source: source(&parameters, &passed, &body), args, name }))
    }
}

fn source(parameters: &str, names: &str, body: &str) -> String {
    format!(
        "#define EPILOGUE_PARAMETERS {parameters}\n#define EPILOGUE_ARGUMENTS {names}\n\
         static inline float epilogue(const float v, const int at, const int column EPILOGUE_PARAMETERS) {{\n{body}}}\n"
    )
}

/// The elements of a constant on the device, as f32 and in a layout.
pub(crate) fn floats(cx: &BuildCx, tensor: &Tensor, layout: Layout) -> Result<Arg> {
    let buffer = cx.packed(&format!("floats {}", layout.name()), &[tensor], || {
        let packed = if layout == Layout::PLAIN { tensor.clone() } else { layout.pack(tensor)? };
        Ok(bytemuck::cast_slice(&packed.to_vec::<f32>()?).to_vec())
    })?;
    Ok(buffer.into())
}

/// Numbers as elements of the device's floats.
pub(crate) fn bytes_of(cx: &BuildCx, numbers: &[f32]) -> Vec<u8> {
    match cx.half {
        true => numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        false => bytemuck::cast_slice(numbers).to_vec(),
    }
}

/// A list of small whole numbers on the device.
pub(crate) fn table(cx: &BuildCx, what: &str, numbers: &[i32]) -> Result<Arg> {
    let mut hash = Hash128::default();
    hash.bytes(bytemuck::cast_slice(numbers));
    let form = format!("{what} {} {:032x}", numbers.len(), hash.finish());
    Ok(cx.packed(&form, &[], || Ok(bytemuck::cast_slice(numbers).to_vec()))?.into())
}
