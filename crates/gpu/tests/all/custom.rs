//! Kernels of users, on whatever OpenCL device is here: each example of `examples/custom_kernels` beside the evaluation of the operation,
//! and what is wrong with a file as users hear of it.

use carafe_device::{ClKernel, Device, Properties};
use carafe_graph::{AttrMap, AttrValue, EvalEnv, Model, Parameter, Registry, Value, run};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::path::PathBuf;
use std::sync::Arc;

fn devices() -> [Arc<dyn Device>; 2] {
    carafe_gpu::devices().map(|(_, device)| device)
}

fn example(path: &str) -> String {
    format!("{}/../../examples/custom_kernels/{path}.xml", env!("CARGO_MANIFEST_DIR"))
}

fn attrs(list: &[(&str, &str)]) -> AttrMap {
    list.iter().map(|(n, v)| (n.to_string(), AttrValue::Text(v.to_string()))).collect()
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add_all(carafe_ops::factories());
    registry
}

/// An operation on parameters of these shapes and these constants.
struct Case {
    model: Model,
    inputs: Vec<Tensor>,
}

impl Case {
    fn new(
        registry: &Registry,
        op: (&str, &str),
        list: &[(&str, &str)],
        shapes: &[&[usize]],
        constants: &[Tensor],
    ) -> Case {
        let op = registry.find(op.0, op.1).unwrap().create(&attrs(list)).unwrap();
        let mut m = Model::new("case");
        let mut values: Vec<Value> = vec![];
        for (i, shape) in shapes.iter().enumerate() {
            let p = Parameter { shape: PartialShape::of(shape), element_type: ElementType::F32 };
            values.push(m.add(format!("x{i}"), p, &[]).unwrap().into());
        }
        for (i, c) in constants.iter().enumerate() {
            values.push(m.constant(&format!("c{i}"), c.clone()).unwrap());
        }
        let node = m.add_ref("node", op, &values).unwrap();
        m.result("y", node.into()).unwrap();
        m.infer().unwrap();
        Case { model: m, inputs: shapes.iter().enumerate().map(|(i, s)| numbers(s, i)).collect() }
    }

    fn expected(&self) -> Vec<f32> {
        let found = run(&self.model, &self.inputs, &mut EvalEnv::default()).unwrap();
        found[0].to_vec::<f32>().unwrap().into_owned()
    }

    fn run(&self, device: &dyn Device, properties: &Properties) -> (Vec<f32>, String) {
        let compiled = device.compile(&self.model, &properties.clone().with("PERF_COUNT", true)).unwrap();
        let mut request = compiled.create_request();
        for (i, t) in self.inputs.iter().enumerate() {
            request.set_input(i, t.clone()).unwrap();
        }
        request.infer().unwrap();
        let kernel = request.profile().iter().find(|p| p.name == "node").map(|p| p.kernel.clone()).unwrap_or_default();
        (request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned(), kernel)
    }

    fn check(&self, file: &str, bounds: [f32; 2]) {
        let [gpu, vpu] = devices();
        let wanted = self.expected();
        for (device, folder, bound) in [(gpu, "gpu", bounds[0]), (vpu, "vpu", bounds[1])] {
            let properties = Properties::new().with("CONFIG_FILE", example(&format!("{folder}/{file}")));
            let (found, kernel) = self.run(&*device, &properties);
            assert!(kernel.starts_with("custom "), "{folder}: {kernel}");
            close(&found, &wanted, bound, folder);
        }
    }
}

fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let value = |i: usize| ((i * 7919 + seed * 104_729) % 257) as f32 / 64.0 - 2.0;
    Tensor::from_vec(shape, (0..n).map(value).collect::<Vec<f32>>()).unwrap()
}

fn close(found: &[f32], wanted: &[f32], bound: f32, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= bound * y.abs().max(1.0), "{what}: element {i} is {x}, expected {y}");
    }
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

#[test]
fn leaky_relu_is_as_the_operation() {
    let slopes = floats(&[3], &[0.1, 0.25, -0.5]);
    Case::new(&registry(), ("PReLU", "opset1"), &[], &[&[2, 3, 4, 5]], &[slopes]).check("leaky_relu", [1e-6, 2e-3]);
}

#[test]
fn grn_is_as_the_operation() {
    Case::new(&registry(), ("GRN", "opset1"), &[("bias", "0.5")], &[&[2, 5, 4, 6]], &[]).check("grn", [1e-5, 2e-3]);
}

#[test]
fn mvn_is_as_the_operation() {
    let axes = Tensor::from_slice(&[2], &[2i64, 3]).unwrap();
    let list = [("eps", "0.001"), ("normalize_variance", "true"), ("eps_mode", "inside_sqrt")];
    Case::new(&registry(), ("MVN", "opset6"), &list, &[&[2, 3, 5, 7]], &[axes]).check("mvn", [1e-4, 4e-3]);
}

#[test]
fn reorg_is_as_the_operation() {
    Case::new(&registry(), ("ReorgYolo", "opset2"), &[("stride", "2")], &[&[2, 8, 4, 6]], &[])
        .check("reorg", [0.0, 2e-3]);
}

#[test]
fn region_is_as_the_operation() {
    let list = [
        ("axis", "1"),
        ("coords", "4"),
        ("classes", "3"),
        ("end_axis", "3"),
        ("num", "2"),
        ("do_softmax", "true"),
        ("mask", "0,1"),
    ];
    Case::new(&registry(), ("RegionYolo", "opset1"), &list, &[&[1, 16, 3, 4]], &[]).check("region", [1e-5, 3e-3]);
    let list = list.map(|(n, v)| (n, if n == "do_softmax" { "false" } else { v }));
    Case::new(&registry(), ("RegionYolo", "opset1"), &list, &[&[2, 16, 3, 4]], &[]).check("region", [1e-5, 3e-3]);
}

#[test]
fn shuffle_channels_is_as_the_operation() {
    Case::new(&registry(), ("ShuffleChannels", "opset1"), &[("axis", "1"), ("group", "3")], &[&[2, 6, 3, 4]], &[])
        .check("shuffle_channels", [0.0, 2e-3]);
}

#[test]
fn fake_quantize_is_as_the_operation() {
    let limits = [-1.5f32, 1.5, -2.0, 2.0].map(|x| floats(&[1, 1, 1, 1], &[x]));
    let case = Case::new(&registry(), ("FakeQuantize", "opset1"), &[("levels", "16")], &[&[1, 3, 4, 5]], &limits);
    case.check("fake_quantize", [1e-5, 4e-3]);
}

#[test]
fn ctc_decoder_is_as_the_operation() {
    let mask: Vec<f32> = (0..12).map(|i| if i / 2 < 4 || i % 2 == 0 { 1.0 } else { 0.0 }).collect();
    let mask = floats(&[6, 2], &mask);
    let case = Case::new(&registry(), ("CTCGreedyDecoder", "opset1"), &[], &[&[6, 2, 5]], &[mask]);
    case.check("ctc_decoder", [0.0, 0.0]);
}

#[test]
fn resample_is_as_the_operation() {
    let sizes = Tensor::from_slice(&[2], &[7i64, 10]).unwrap();
    let axes = Tensor::from_slice(&[2], &[2i64, 3]).unwrap();
    let list = [("mode", "linear_onnx"), ("shape_calculation_mode", "sizes")];
    Case::new(&registry(), ("Interpolate", "opset11"), &list, &[&[2, 3, 4, 5]], &[sizes, axes])
        .check("resample", [1e-5, 4e-3]);
}

#[test]
fn an_operation_that_only_the_file_declares_runs() {
    let [gpu, _] = devices();
    let properties = Properties::new().with("CONFIG_FILE", example("gpu/leaky_relu_declared"));
    let mut registry = registry();
    registry.add_all(gpu.declared_ops(&properties).unwrap());
    let case = Case::new(&registry, ("LeakyReLU", "extension"), &[("alpha", "0.5")], &[&[2, 3, 7]], &[]);
    let (found, kernel) = case.run(&*gpu, &properties);
    assert_eq!(kernel, "custom leaky_relu");
    let wanted: Vec<f32> =
        case.inputs[0].as_slice::<f32>().unwrap().iter().map(|x| if *x < 0.0 { 0.5 * x } else { *x }).collect();
    close(&found, &wanted, 0.0, "declared");
    // What was exported has the operation and finds the kernel again.
    let mut blob = vec![];
    gpu.compile(&case.model, &properties).unwrap().export(&mut blob).unwrap();
    let mut request = gpu.import(blob.into(), &Registry::new(), &properties).map(|c| c.create_request());
    let request = request.as_mut().unwrap();
    request.set_input(0, case.inputs[0].clone()).unwrap();
    request.infer().unwrap();
    close(request.output(0).unwrap().as_slice::<f32>().unwrap(), &wanted, 0.0, "imported");
}

#[test]
fn shapes_that_only_the_run_knows_get_kernels_of_their_own() {
    let [gpu, _] = devices();
    let registry = registry();
    let grn = registry.find("GRN", "opset1").unwrap().create(&attrs(&[("bias", "0.5")])).unwrap();
    let mut m = Model::new("dynamic");
    let p = Parameter { shape: "?,?,?,?".parse().unwrap(), element_type: ElementType::F32 };
    let x = m.add("x", p, &[]).unwrap();
    let node = m.add_ref("node", grn, &[x.into()]).unwrap();
    m.result("y", node.into()).unwrap();
    m.infer().unwrap();
    let properties = Properties::new().with("CONFIG_FILE", example("gpu/grn")).with("PERF_COUNT", true);
    let mut request = gpu.compile(&m, &properties).unwrap().create_request();
    for shape in [[1, 3, 4, 4], [2, 5, 3, 7], [1, 3, 4, 4]] {
        let input = numbers(&shape, 3);
        request.set_input(0, input.clone()).unwrap();
        request.infer().unwrap();
        let wanted = run(&m, &[input], &mut EvalEnv::default()).unwrap();
        close(
            request.output(0).unwrap().as_slice::<f32>().unwrap(),
            wanted[0].as_slice::<f32>().unwrap(),
            1e-5,
            "dynamic",
        );
        assert!(request.profile().iter().any(|p| p.kernel == "custom grn"), "{:?}", request.profile());
    }
}

fn relu(device: usize, kernels: &[ClKernel]) -> Result<Vec<f32>, String> {
    let device = devices()[device].clone();
    device.set_cl_kernels(kernels);
    let case = Case::new(&registry(), ("ReLU", "opset1"), &[], &[&[1, 2, 2, 3]], &[]);
    let compiled = device.compile(&case.model, &Properties::new()).map_err(|e| e.to_string())?;
    let mut request = compiled.create_request();
    request.set_input(0, case.inputs[0].clone()).unwrap();
    request.infer().map_err(|e| e.to_string())?;
    Ok(request.output(0).unwrap().as_slice::<f32>().unwrap().to_vec())
}

fn gpu_kernel(buffers: &str, rest: &str, source: &str) -> ClKernel {
    let xml = format!(
        "<CustomLayer name='ReLU' type='SimpleGPU' version='1'>\n<Kernel entry='k'><Source filename='mine.cl'/></Kernel>\n\
         <Buffers>{buffers}</Buffers>{rest}</CustomLayer>"
    );
    ClKernel { device: "GPU".into(), xml, source: source.into() }
}

const BOTH: &str =
    "<Tensor arg-index='0' type='input' port-index='0'/><Tensor arg-index='1' type='output' port-index='0'/>";

#[test]
fn a_kernel_of_an_extension_stands_before_the_native_one() {
    let source = "__kernel void k(__global const float *x, __global float *y) { y[get_global_id(0)] = 7.0f; }";
    assert_eq!(relu(0, &[gpu_kernel(BOTH, "", source)]).unwrap(), [7.0; 12]);
    assert!(relu(0, &[]).unwrap().iter().all(|x| *x != 7.0));
}

#[test]
fn the_log_of_a_failed_build_has_the_lines_of_the_user() {
    let source = "// one\n// two\n__kernel void k(__global const float *x, __global float *y) { y[0] = nonsense; }";
    let e = relu(0, &[gpu_kernel(BOTH, "", source)]).unwrap_err();
    assert!(e.contains("mine.cl:3:") || e.contains("mine.cl, line 3"), "{e}");
    assert!(e.contains("nonsense") && e.contains("custom kernel `ReLU`"), "{e}");
}

#[test]
fn wrong_kernels_are_told_before_they_run() {
    let source = "__kernel void k(__global const float *x, __global float *y) {}";
    let one = "<Tensor arg-index='0' type='output' port-index='0'/>";
    let e = relu(0, &[gpu_kernel(one, "", source)]).unwrap_err();
    assert!(e.contains("kernel `k` has 2 parameters, and <Buffers> gives 1 arguments"), "{e}");
    let port =
        "<Tensor arg-index='0' type='input' port-index='4'/><Tensor arg-index='1' type='output' port-index='0'/>";
    let e = relu(0, &[gpu_kernel(port, "", source)]).unwrap_err();
    assert!(e.contains("`port-index` 4 is none of the inputs of the operation; it has 1"), "{e}");
    let e = relu(0, &[gpu_kernel(BOTH, "<WorkSizes global='X' local='2'/>", source)]).unwrap_err();
    assert!(e.contains("global size [3] is not a multiple of local size [2]"), "{e}");
    let e = relu(0, &[gpu_kernel(BOTH, "<WorkSizes global='X-3'/>", source)]).unwrap_err();
    assert!(e.contains("global size `X-3` is 0"), "{e}");
    let e = relu(0, &[gpu_kernel(BOTH, "", "__kernel void other() {}")]).unwrap_err();
    assert!(e.contains("kernel `k`"), "{e}");
}

#[test]
fn files_that_are_missing_or_wrong_are_named() {
    let [gpu, vpu] = devices();
    let e = gpu.declared_ops(&Properties::new().with("CONFIG_FILE", "nowhere.xml")).unwrap_err();
    assert!(e.to_string().contains("cannot read the kernel file `nowhere.xml`"), "{e}");
    let e = vpu.declared_ops(&Properties::new().with("MYRIAD_CUSTOM_LAYERS", example("gpu/grn"))).unwrap_err();
    assert!(e.to_string().contains("expected `MVCL`, found `SimpleGPU`"), "{e}");
}

#[test]
fn several_files_in_a_folder_with_a_blank_are_read() {
    let dir = std::env::temp_dir().join(format!("carafe custom-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let copy = |name: &str| {
        for ending in ["xml", "cl"] {
            let from = PathBuf::from(example(&format!("gpu/{name}"))).with_extension(ending);
            std::fs::copy(from, dir.join(format!("{name}.{ending}"))).unwrap();
        }
        dir.join(format!("{name}.xml")).display().to_string()
    };
    let files = format!("{};{}", copy("grn"), copy("reorg"));
    let [gpu, _] = devices();
    let case = Case::new(&registry(), ("GRN", "opset1"), &[("bias", "0.5")], &[&[1, 3, 2, 2]], &[]);
    let (found, kernel) = case.run(&*gpu, &Properties::new().with("CONFIG_FILE", files));
    assert_eq!(kernel, "custom grn");
    close(&found, &case.expected(), 1e-5, "blanks");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_exported_model_takes_its_kernels_along() {
    let [gpu, _] = devices();
    let with = |file: &str| Properties::new().with("CONFIG_FILE", example(&format!("gpu/{file}")));
    let mut known = registry();
    known.add_all(gpu.declared_ops(&with("leaky_relu_declared")).unwrap());
    // Nothing but the file knows the operation.
    let case = Case::new(&known, ("LeakyReLU", "extension"), &[("alpha", "0.5")], &[&[2, 3]], &[]);
    let mut blob = vec![];
    gpu.compile(&case.model, &with("leaky_relu_declared")).unwrap().export(&mut blob).unwrap();
    let properties = Properties::new().with("PERF_COUNT", true);
    let imported = gpu.import(blob.clone().into(), &registry(), &properties).unwrap();
    let mut request = imported.clone().create_request();
    request.set_input(0, case.inputs[0].clone()).unwrap();
    request.infer().unwrap();
    assert!(request.profile().iter().any(|p| p.kernel.starts_with("custom ")), "{:?}", request.profile());
    let wanted: Vec<f32> = case.inputs[0].as_slice::<f32>().unwrap().iter().map(|x| x.max(0.5 * x)).collect();
    close(request.output(0).unwrap().as_slice::<f32>().unwrap(), &wanted, 1e-6, "imported");
    // What is imported is exported with them again.
    let mut again = vec![];
    imported.export(&mut again).unwrap();
    assert_eq!(blob, again);
}

#[test]
fn a_kernel_that_is_given_now_stands_before_the_exported_one() {
    let [gpu, _] = devices();
    let writes = |n: u32| {
        let source =
            format!("__kernel void k(__global const float *x, __global float *y) {{ y[get_global_id(0)] = {n}.0f; }}");
        gpu_kernel(BOTH, "", &source)
    };
    gpu.set_cl_kernels(&[writes(7)]);
    let case = Case::new(&registry(), ("ReLU", "opset1"), &[], &[&[1, 2, 2, 3]], &[]);
    let mut blob = vec![];
    gpu.compile(&case.model, &Properties::new()).unwrap().export(&mut blob).unwrap();
    let first = |kernels: &[ClKernel]| {
        gpu.set_cl_kernels(kernels);
        let imported = gpu.import(blob.clone().into(), &registry(), &Properties::new()).unwrap();
        let mut request = imported.create_request();
        request.set_input(0, case.inputs[0].clone()).unwrap();
        request.infer().unwrap();
        request.output(0).unwrap().as_slice::<f32>().unwrap()[0]
    };
    assert_eq!((first(&[]), first(&[writes(8)])), (7.0, 8.0));
}

#[test]
fn a_group_larger_than_the_device_has_is_told_with_the_kernel() {
    let source = "__kernel void k(__global const float *x, __global float *y) { y[0] = 1.0f; }";
    let sizes = "<WorkSizes global='1048576' local='1048576'/>";
    let e = relu(0, &[gpu_kernel(BOTH, sizes, source)]).unwrap_err();
    assert!(e.contains("kernel `k`") && e.contains("CL_INVALID_WORK_GROUP_SIZE"), "{e}");
}

#[test]
fn local_data_beyond_the_chip_is_refused() {
    let xml = "<CustomLayer name='ReLU' type='MVCL' version='1'><Kernel entry='k'><Source filename='k.cl'/><Parameters>
        <Tensor arg-name='src' type='input' port-index='0'/><Tensor arg-name='dst' type='output' port-index='0'/>
        <Data arg-name='l' type='local_data' dim='input,0' size='X*50000'/></Parameters>
        <WorkSizes dim='input,0' global='X' local='1'/></Kernel></CustomLayer>";
    let source = "__kernel void k(__global half *src, __global half *dst, __local half *l) {}";
    let e = relu(1, &[ClKernel { device: "VPU".into(), xml: xml.into(), source: source.into() }]).unwrap_err();
    assert!(e.contains("local data of 150000 bytes does not fit on the chip"), "{e}");
}

#[test]
fn query_counts_nodes_with_a_kernel_as_supported() {
    let [gpu, _] = devices();
    let properties = Properties::new().with("CONFIG_FILE", example("gpu/leaky_relu_declared"));
    let mut registry = registry();
    registry.add_all(gpu.declared_ops(&properties).unwrap());
    let case = Case::new(&registry, ("LeakyReLU", "extension"), &[], &[&[2, 3]], &[]);
    let query = gpu.query(&case.model, &properties).unwrap();
    assert!(query.supported.contains(&"node".to_string()), "{query:?}");
}

#[test]
fn a_kernel_for_halves_refuses_a_tensor_of_another_width() {
    let xml = "<CustomLayer name='ReLU' type='MVCL' version='1'><Kernel entry='k'><Source filename='k.cl'/><Parameters>
        <Tensor arg-name='src' type='input' port-index='0'/><Tensor arg-name='dst' type='output' port-index='0'/></Parameters>
        <WorkSizes dim='input,0' global='X' local='1'/></Kernel></CustomLayer>";
    let source = "__kernel void k(__global half *src, __global half *dst) {}";
    let [_, vpu] = devices();
    vpu.set_cl_kernels(&[ClKernel { device: "VPU".into(), xml: xml.into(), source: source.into() }]);
    let mut m = Model::new("f64");
    let p = Parameter { shape: "1,2,2,3".parse().unwrap(), element_type: ElementType::F64 };
    let x = m.add("x", p, &[]).unwrap();
    let relu = registry().find("ReLU", "opset1").unwrap().create(&Default::default()).unwrap();
    let node = m.add_ref("node", relu, &[x.into()]).unwrap();
    m.result("y", node.into()).unwrap();
    m.infer().unwrap();
    let e = vpu.compile(&m, &Properties::new()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(e.contains("parameter `src` is of type `half*`, and the tensor of f64"), "{e}");
}
