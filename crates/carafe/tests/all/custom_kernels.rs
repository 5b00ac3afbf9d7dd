//! Kernels of users through `Core`: by property, from memory, under every name of the device, and beside other devices.

use carafe::{Core, Extension, Properties, SharedBytes, Tensor};

const MODEL: &str = r#"<ir_version: 8, opset_import: ["": 17, "mine": 1]>
    net (float[1,2,2,3] x) => (float[1,2,2,3] y) { a = mine.LeakyReLU<alpha = 0.5>(x) y = Neg(a) }"#;

const XML: &str = r#"<CustomLayer name="LeakyReLU" type="SimpleGPU" version="1">
    <Kernel entry="leaky"><Source filename="leaky.cl"/><Define name="ALPHA" param="alpha" default="0.1"/></Kernel>
    <Buffers><Tensor arg-index="0" type="input" port-index="0"/><Tensor arg-index="1" type="output" port-index="0"/></Buffers>
    <Output/></CustomLayer>"#;

const SOURCE: &str = "__kernel void leaky(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y) {
    const float v = x[get_global_id(0)];
    y[get_global_id(0)] = v < 0 ? v * (float)(ALPHA) : v;
}";

const VPU_XML: &str = r#"<CustomLayer name="leakyrelu" type="MVCL" version="1">
    <Kernel entry="leaky"><Source filename="leaky.cl"/><Parameters>
        <Tensor arg-name="src" type="input" port-index="0" format="BFYX"/>
        <Tensor arg-name="dst" type="output" port-index="0" format="BFYX"/>
        <Scalar arg-name="alpha" type="float" source="alpha"/><Scalar arg-name="n" type="int" port-index="0" source="I.X"/>
    </Parameters><WorkSizes dim="input,0" global="Y,F" local="1,1"/></Kernel></CustomLayer>"#;

const VPU_SOURCE: &str = "__kernel void leaky(__global const half *src, __global half *dst, float alpha, int n) {
    const int start = (get_global_id(1) * get_global_size(0) + get_global_id(0)) * n;
    for (int i = start; i < start + n; i++) { const float v = src[i]; dst[i] = v < 0 ? v * alpha : v; }
}";

fn model() -> SharedBytes {
    SharedBytes::from_vec(MODEL.as_bytes().to_vec())
}

fn input() -> Tensor {
    let values: Vec<f32> = (0..12).map(|i| i as f32 - 6.0).collect();
    Tensor::from_slice(&[1, 2, 2, 3], &values).unwrap()
}

fn check(core: &Core, device: &str) {
    let model = core.read_model_from(model(), None).unwrap();
    let compiled = core.compile_model(&model, device, &Properties::new()).unwrap();
    let found = compiled.create_infer_request().infer(&[("x", input())]).unwrap();
    let wanted: Vec<f32> = (0..12).map(|i| i as f32 - 6.0).map(|v| if v < 0.0 { -0.5 * v } else { -v }).collect();
    assert_eq!(found["y"].as_slice::<f32>().unwrap(), wanted, "{device}");
}

fn with_kernels() -> Core {
    let core = carafe::core();
    let kernels = Extension::new("mine").cl_kernel("GPU", XML, SOURCE).cl_kernel("VPU", VPU_XML, VPU_SOURCE);
    core.add_extension(kernels).unwrap();
    core
}

#[test]
fn a_kernel_from_memory_declares_its_operation_and_runs_it() {
    let core = with_kernels();
    check(&core, "GPU");
    check(&core, "VPU");
    check(&core, "MYRIAD");
}

#[test]
fn a_kernel_runs_beside_other_devices() {
    let core = with_kernels();
    check(&core, "HETERO:GPU,CPU");
    check(&core, "HETERO:CPU,MYRIAD");
    let model = core.read_model_from(model(), None).unwrap();
    let query = core.query_model(&model, "CPU", &Properties::new()).unwrap();
    assert!(query.unsupported.iter().any(|u| u.type_name == "LeakyReLU"), "{query:?}");
}

#[test]
fn without_the_kernel_the_model_is_not_known() {
    let e = carafe::core().read_model_from(model(), None).unwrap_err();
    assert!(e.to_string().contains("LeakyReLU"), "{e}");
}

#[test]
fn a_wrong_kernel_of_the_program_is_an_error() {
    let core = carafe::core();
    let e = core.add_extension(Extension::new("mine").cl_kernel("GPU", "<CustomLayer name='A'/>", "")).unwrap_err();
    assert!(e.to_string().starts_with("extension `mine`, layer `A`"), "{e}");
}

#[test]
fn a_kernel_file_is_checked_when_the_property_is_set_and_declares_its_operations() {
    let dir = std::env::temp_dir().join(format!("carafe kernels {}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("leaky.xml"), XML).unwrap();
    let set =
        |core: &Core| core.set_property("GPU", &Properties::new().with("CONFIG_FILE", dir.join("leaky.xml").display()));
    let core = carafe::core();
    let e = set(&core).unwrap_err();
    assert!(e.to_string().contains("cannot open kernel file"), "{e}");
    std::fs::write(dir.join("leaky.cl"), SOURCE).unwrap();
    set(&core).unwrap();
    check(&core, "GPU");
    // With the compilation of a file, whose operations the property declares before it is read.
    std::fs::write(dir.join("m.onnxtxt"), MODEL).unwrap();
    let properties = Properties::new().with("CONFIG_FILE", dir.join("leaky.xml").display());
    let fresh = carafe::core();
    fresh.compile_model(dir.join("m.onnxtxt").to_str().unwrap(), "GPU", &properties).unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_cache_knows_kernels_by_their_content() {
    let dir = std::env::temp_dir().join(format!("carafe-kernel-cache-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("leaky.xml"), XML).unwrap();
    let properties = Properties::new()
        .with("CONFIG_FILE", dir.join("leaky.xml").display())
        .with("CACHE_DIR", dir.join("cache").display());
    let run = |source: &str| {
        std::fs::write(dir.join("leaky.cl"), source).unwrap();
        let core = carafe::core();
        core.set_property("GPU", &Properties::new().with("CONFIG_FILE", dir.join("leaky.xml").display())).unwrap();
        let model = core.read_model_from(model(), None).unwrap();
        let compiled = core.compile_model(&model, "GPU", &properties).unwrap();
        let found = compiled.create_infer_request().infer(&[("x", input())]).unwrap();
        (compiled.property("LOADED_FROM_CACHE").unwrap(), found["y"].as_slice::<f32>().unwrap()[0])
    };
    assert_eq!(run(SOURCE), ("false".to_string(), 3.0));
    assert_eq!(run(SOURCE), ("true".to_string(), 3.0));
    assert_eq!(run(&SOURCE.replace("(ALPHA)", "(0.25f)")), ("false".to_string(), 1.5));
    std::fs::remove_dir_all(dir).unwrap();
}
