//! OpenCL: arguments of the kernels for GPU and VPU, and their descriptions in XML. Texts have no form there, and lists none on VPU:
//! they are left out.

use crate::answers::{Answers, Attribute, Kind};
use crate::names::field;
use crate::template::Values;

pub(crate) fn opencl_values(answers: &Answers, values: Values) -> Values {
    let (n, m) = (answers.inputs.len(), answers.outputs.len());
    let defined: Vec<&Attribute> =
        answers.attributes.iter().filter(|a| !matches!(a.kind, Kind::Str | Kind::Strs)).collect();
    let scalars: Vec<&Attribute> =
        answers.attributes.iter().filter(|a| matches!(a.kind, Kind::Int | Kind::Float | Kind::Bool)).collect();
    let names: Vec<String> = defined.iter().map(|a| define_name(a)).collect();
    let list = match names.is_empty() {
        true => String::new(),
        false => format!(
            "; {} {} attributes of the node",
            names.join(", "),
            if names.len() == 1 { "is one of the" } else { "are" }
        ),
    };

    let gpu_arguments = (0..n).map(|i| format!("__global const INPUT{i}_TYPE *input{i}"));
    let gpu_arguments = gpu_arguments.chain((0..m).map(|i| format!("__global OUTPUT{i}_TYPE *output{i}")));
    let tensor = |arg: usize, ty: &str, port: usize| {
        format!("<Tensor arg-index=\"{arg}\" type=\"{ty}\" port-index=\"{port}\" format=\"BFYX\"/>")
    };
    let buffers = (0..n).map(|i| tensor(i, "input", i)).chain((0..m).map(|i| tensor(n + i, "output", i)));

    let vpu_arguments = (0..n).map(|i| format!("__global const half *input{i}"));
    let vpu_arguments = vpu_arguments.chain((0..m).map(|i| format!("__global half *output{i}")));
    let scalar_type = |a: &Attribute| if a.kind == Kind::Float { "float" } else { "int" };
    let vpu_arguments = vpu_arguments.chain(scalars.iter().map(|a| format!("{} {}", scalar_type(a), argument(a))));
    let named = |ty: &str, port: usize| {
        format!("<Tensor arg-name=\"{ty}{port}\" type=\"{ty}\" port-index=\"{port}\" format=\"BFYX\"/>")
    };
    let parameters = (0..n).map(|i| named("input", i)).chain((0..m).map(|i| named("output", i)));
    let parameters =
        parameters.chain(scalars.iter().map(|a| {
            format!("<Scalar arg-name=\"{}\" type=\"{}\" source=\"{}\"/>", argument(a), scalar_type(a), a.name)
        }));

    let join = |items: Vec<String>, by: &str| items.join(by);
    values
        .text("define_list", list)
        .text("gpu_arguments", join(gpu_arguments.collect(), ", "))
        .text("gpu_copies", join((0..m).map(|i| format!("output{i}[i] = input0[i];")).collect(), "\n"))
        .text("gpu_defines", join(defined.iter().map(|a| define(a)).collect(), "\n"))
        .text("gpu_buffers", join(buffers.collect(), "\n"))
        .text("vpu_arguments", join(vpu_arguments.collect(), ", "))
        .text("vpu_copies", join((0..m).map(|i| format!("output{i}[i] = input0[i];")).collect(), "\n"))
        .text("vpu_parameters", join(parameters.collect(), "\n"))
}

// A name of its own: a macro hides everything of its name in the source.
fn define_name(a: &Attribute) -> String {
    field(&a.name).trim_end_matches('_').to_ascii_uppercase()
}

fn argument(a: &Attribute) -> String {
    let name = field(&a.name);
    if ["half", "kernel", "global", "local", "constant", "i"].contains(&name.as_str()) {
        format!("{name}_")
    } else {
        name
    }
}

fn define(a: &Attribute) -> String {
    let ty = match a.kind {
        Kind::Float => "float",
        Kind::Ints => "int[]",
        Kind::Floats => "float[]",
        _ => "int",
    };
    let default = match a.kind {
        Kind::Bool => i32::from(a.sample() == crate::answers::Literal::Bool(true)).to_string(),
        _ => a.sample().to_string(),
    };
    format!("<Define name=\"{}\" param=\"{}\" type=\"{ty}\" default=\"{default}\"/>", define_name(a), a.name)
}
