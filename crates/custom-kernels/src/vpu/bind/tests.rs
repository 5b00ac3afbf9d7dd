use super::*;
use crate::file::{KernelFile, Mode};
use crate::node::PortView;
use crate::vpu::{VpuLayers, read, stage_source};
use carafe_graph::{AttrMap, AttrValue};
use carafe_tensor::ElementType;

const SOURCE: &str =
    "__kernel void k(int n, __global const half *src, __local half *line, __global half *dst, float eps) {}";
const PARAMETERS: &str = "<Tensor arg-name='src' type='input' port-index='0' format='BFYX'/>
    <Tensor arg-name='dst' type='output' port-index='0' format='BYXF'/>
    <Data arg-name='line' type='local_data' dim='input,0' size='X*2'/>
    <Scalar arg-name='n' type='int' port-index='0' source='I.Y'/><Scalar arg-name='eps' type='float' source='eps'/>";
const SIZES: &str = "<WorkSizes dim='input,0' global='X,ceil(Y/2.0),F' local='X,1,1'/>";

fn layer(condition: &str, parameters: &str, sizes: &str) -> String {
    format!(
        "<CustomLayer name='Op' type='MVCL' version='1'>{condition}<Kernel entry='k'><Source filename='k.cl'/>\
         <Parameters>{parameters}</Parameters>{sizes}</Kernel></CustomLayer>"
    )
}
fn layers(text: &str, source: &str) -> VpuLayers {
    let file = KernelFile::with_source("v.xml", text, source);
    let mut layers = VpuLayers::default();
    layers.add(read(&file, Mode::Compatible).unwrap().layers);
    layers
}
fn node(attrs: &[(&str, AttrValue)]) -> NodeView {
    let port = || PortView { name: String::new(), ty: ElementType::F16, shape: vec![2, 3, 5, 7], is_constant: false };
    let attrs: AttrMap = attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    NodeView { attrs, inputs: vec![port()], outputs: vec![port()] }
}
fn bind(parameters: &str, sizes: &str, source: &str) -> Result<Bound> {
    let found = layers(&layer("", parameters, sizes), source);
    found.iter().next().unwrap().bind(&node(&[("eps", AttrValue::Float(0.5)), ("list", AttrValue::Ints(vec![4, 6]))]))
}
fn error(parameters: &str, sizes: &str, source: &str) -> String {
    bind(parameters, sizes, source).unwrap_err().to_string()
}

#[test]
fn arguments_stand_in_the_order_of_the_kernel() {
    let bound = bind(PARAMETERS, SIZES, SOURCE).unwrap();
    let stage = &bound.stages[0];
    assert_eq!(
        stage.arguments,
        [
            StageArgument::Int(5),
            StageArgument::Input { port: 0, format: Format::Bfyx },
            StageArgument::Local { bytes: 14 },
            StageArgument::Output { port: 0, format: Format::Byxf },
            StageArgument::Float(0.5),
        ]
    );
    assert_eq!((stage.global.clone(), stage.local.clone()), (vec![7, 3, 3], vec![7, 1, 1]));
}

#[test]
fn a_parameter_without_a_binding_and_the_other_way_round_are_errors() {
    let e = error(PARAMETERS, SIZES, "__kernel void k(int n, int m) {}");
    assert!(e.contains("argument `src`: the kernel has no such parameter; it has n, m"), "{e}");
    let e = error("", SIZES, "__kernel void k(int n) {}");
    assert!(e.ends_with("nothing in <Parameters> binds its parameter `n`"), "{e}");
    assert!(error("", SIZES, "void k(int n) {}").ends_with("the sources have no kernel of this name"));
    let local = "<Data arg-name='n' type='local_data' dim='input,0' size='4'/>";
    assert!(
        error(local, SIZES, "__kernel void k(int n) {}")
            .ends_with("it is local data, and the parameter of the kernel is a value")
    );
}

fn scalar(attributes: &str) -> Result<StageArgument, String> {
    let out = "<Tensor arg-name='dst' type='output' port-index='0'/>";
    let parameters = format!("{out}<Scalar arg-name='n' {attributes}/>");
    let bound = bind(&parameters, SIZES, "__kernel void k(__global half *dst, int n) {}");
    bound.map(|b| b.stages[0].arguments[1]).map_err(|e| e.to_string())
}

#[test]
fn numbers_come_from_attributes_dimensions_and_literals() {
    assert_eq!(scalar("type='float' source='eps'"), Ok(StageArgument::Float(0.5)));
    assert_eq!(scalar("type='int' port-index='1' source='list'"), Ok(StageArgument::Int(6)));
    assert_eq!(scalar("type='int' source='O.b'"), Ok(StageArgument::Int(2)));
    assert_eq!(scalar("type='float' source='1.5'"), Ok(StageArgument::Float(1.5)));
    assert_eq!(scalar("type='int' source='-3'"), Ok(StageArgument::Int(-3)));
    assert!(scalar("type='int' source='I.Z'").unwrap_err().contains("expected B, F, Y or X behind the dot, found `Z`"));
    assert!(
        scalar("type='int' port-index='3' source='I.X'")
            .unwrap_err()
            .contains("`dim` is input 3, the operation has 1 inputs")
    );
    assert!(scalar("type='int' port-index='5' source='list'").unwrap_err().contains("which has no item 5"));
    assert!(scalar("type='int' source='eps'").unwrap_err().contains("an integer; found `0.5`"));
    assert!(scalar("type='int' source='depth'").unwrap_err().contains("`source` is `depth`: expected an attribute"));
    assert!(scalar("type='int' source='99999999999'").unwrap_err().contains("a number of 32 bits"));
}

#[test]
fn local_data_must_fit_on_the_chip() {
    let data = "<Data arg-name='l' type='local_data' dim='input,0' size='X*20000'/>";
    let e = error(data, SIZES, "__kernel void k(__local half *l) {}");
    assert!(
        e.ends_with("local data of 140000 bytes does not fit on the chip, where a work group has 102400 bytes"),
        "{e}"
    );
    let data = "<Data arg-name='l' type='local_data' dim='input,0' size='60000'/>";
    let e = error(data, SIZES, "__kernel void __dma_preload_k(__local half *l) {} __kernel void k(__local half *l) {}");
    assert!(e.contains("has 51200 bytes, half of it because copies run beside the kernel"), "{e}");
}

#[test]
fn sizes_are_positive_and_divide() {
    let sizes = |global: &str, local: &str| {
        let text = format!("<WorkSizes dim='input,0' global='{global}' local='{local}'/>");
        error("", &text, "__kernel void k() {}")
    };
    assert!(sizes("X-7", "1").contains("global size `X-7` is 0, expected at least 1"));
    assert!(sizes("X", "2").contains("global size [7] is not a multiple of local size [2]"));
}

#[test]
fn buffers_join_stages() {
    let kernel = |stage: usize, parameters: &str| {
        format!(
            "<Kernel entry='k{stage}' stage='{stage}'><Source filename='k.cl'/><Parameters>{parameters}</Parameters>\
             <WorkSizes dim='output,0' global='F' local='1'/></Kernel>"
        )
    };
    let both = |a: &str, b: &str| {
        format!("<CustomLayer name='Op' type='MVCL' version='1'>{}{}</CustomLayer>", kernel(0, a), kernel(1, b))
    };
    let source = "__kernel void k0(__global float *b) {} __kernel void k1(__global float *b, __global half *dst) {}";
    let write = "<Tensor arg-name='b' type='output_buffer' port-index='3' dim='output,0' size='F*4'/>";
    let read = "<Tensor arg-name='b' type='input_buffer' port-index='3' dim='output,0' size='F*8,1'/>\
                <Tensor arg-name='dst' type='output' port-index='0'/>";
    let bound = layers(&both(write, read), source).iter().next().unwrap().bind(&node(&[])).unwrap();
    assert_eq!(bound.buffers, BTreeMap::from([(3, 24)]));
    assert_eq!(bound.stages[1].arguments[0], StageArgument::Buffer { id: 3 });
    let other = read.replace("port-index='3'", "port-index='4'");
    let e = layers(&both(write, &other), source).iter().next().unwrap().bind(&node(&[])).unwrap_err().to_string();
    assert!(e.ends_with("no earlier stage writes the buffer 4"), "{e}");
}

#[test]
fn the_first_layer_that_suits_and_reads_plainly_is_chosen() {
    let format = |f: &str| PARAMETERS.replace("format='BFYX'", &format!("format='{f}'"));
    let text = [
        layer("<Where kernel='3,3'/>", &format("BFYX"), SIZES),
        layer("<Where eps='>0'/>", &format("BYXF"), SIZES),
        layer("", &format("BFYX"), &SIZES.replace("global='X", "global='depth")),
        layer("", &format("ANY"), SIZES),
    ];
    let all = layers(&text.concat(), SOURCE);
    let at = |attrs: &[(&str, AttrValue)]| {
        let chosen = all.choose("op", &node(attrs)).unwrap();
        chosen.map(|l| all.iter().position(|a| std::ptr::eq(a, l)).unwrap())
    };
    assert_eq!(at(&[("kernel", AttrValue::Ints(vec![3, 3]))]), Some(0));
    assert_eq!(at(&[("eps", AttrValue::Float(1.0))]), Some(3));
    assert_eq!(at(&[("depth", AttrValue::Int(7))]), Some(2));
    assert_eq!(all.choose("Other", &node(&[])).unwrap(), None);
    let only = layers(&layer("<Where eps='1'/>", &format("BYXF"), SIZES), SOURCE);
    assert!(only.choose("Op", &node(&[("eps", AttrValue::Int(1))])).unwrap().is_some());
    assert!(only.choose("Op", &node(&[])).unwrap().is_none());
}

#[test]
fn a_port_beyond_those_of_the_operation_is_an_error() {
    let all = layers(
        &layer("", &PARAMETERS.replace("type='input' port-index='0'", "type='input' port-index='2'"), SIZES),
        SOURCE,
    );
    let e = all.choose("Op", &node(&[])).unwrap_err().to_string();
    assert!(e.contains("`port-index` 2 is none of the inputs of the operation; it has 1"), "{e}");
}

#[test]
fn companions_are_called_around_the_kernel() {
    let source =
        "__kernel void __dma_preload_k(__global half *a, int m) {} __kernel void k(__global half *dst, int n) {}";
    let parameters =
        "<Tensor arg-name='dst' type='output' port-index='0'/><Scalar arg-name='n' type='int' source='1'/>";
    let bound = bind(parameters, SIZES, source).unwrap();
    let (text, entry) = stage_source(&bound.stages[0], false);
    assert_eq!(entry, "carafe_k");
    assert!(text.starts_with("#define half float\n"));
    let wrapper = "__kernel void carafe_k(__global half *dst, int n) {\n    __dma_preload_k(dst, n);\n    \
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n    k(dst, n);\n}\n";
    assert!(text.ends_with(wrapper), "{text}");
    let plain = bind(PARAMETERS, SIZES, SOURCE).unwrap();
    let (text, entry) = stage_source(&plain.stages[0], true);
    assert!(entry == "k" && text.starts_with("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"));
}
