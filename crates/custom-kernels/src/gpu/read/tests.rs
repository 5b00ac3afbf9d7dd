use super::*;
use carafe_tensor::{Dim, ElementType, PartialShape};

fn file(text: &str) -> KernelFile {
    KernelFile::from_memory("k.xml", text, [("a.cl".into(), "// a".into()), ("b.cl".into(), "// b".into())])
}
fn strict(text: &str) -> Result<GpuFile> {
    read(&file(text), Mode::Strict)
}
fn error(text: &str) -> String {
    strict(text).unwrap_err().to_string()
}

const KERNEL: &str = r#"<Kernel entry="relu"><Source filename="a.cl"/></Kernel>"#;
const TENSORS: &str =
    r#"<Tensor arg-index="0" type="input" port-index="0"/><Tensor arg-index="1" type="output" port-index="0"/>"#;

fn layer_with(kernel: &str, buffers: &str, rest: &str) -> String {
    format!(
        r#"<CustomLayer name="ReLU" type="SimpleGPU" version="1">{kernel}<Buffers>{buffers}</Buffers>{rest}</CustomLayer>"#
    )
}
fn sizes(attributes: &str) -> String {
    layer_with(KERNEL, TENSORS, &format!("<WorkSizes {attributes}/>"))
}

#[test]
fn a_whole_layer_is_read() {
    let text = r#"<?xml version="1.0"?>
<!-- two layers, no root -->
<CustomLayer name="ReLU" type="SimpleGPU" version="1" unknown="left alone">
  <Kernel entry="relu">
    <Source filename="a.cl"/>
    <Source filename="b.cl"/>
    <Define name="neg_slope" type="float" param="negative_slope" default="0.0"/>
    <Define name="mask" type="int[]" param="mask"/>
    <Define name="TILE 16"/>
  </Kernel>
  <Buffers>
    <Tensor arg-index="1" type="output" port-index="0" format="bfyx"/>
    <Tensor arg-index="0" type="input" port-index="0" format="BYXF"/>
    <Tensor arg-index="2" type="internal" port-index="0" size="INPUT0_DIMS[1]"/>
    <Data arg-index="3" name="weights"/>
  </Buffers>
  <CompilerOptions options="-cl-mad-enable"/>
  <WorkSizes global="X,Y,B*F" local="" dim="input,0"/>
</CustomLayer>
<CustomLayer name="Other" type="SimpleGPU" version="1">
  <Kernel entry="other"><Source filename="b.cl"/></Kernel>
  <Buffers><Tensor arg-index="0" type="output" port-index="0"/></Buffers>
</CustomLayer>"#;
    let found = strict(text).unwrap();
    let [relu, other] = found.layers.as_slice() else { panic!("two layers") };
    assert_eq!((relu.name.as_str(), relu.entry.as_str(), relu.options.as_str()), ("ReLU", "relu", "-cl-mad-enable"));
    assert_eq!(relu.location.to_string(), "k.xml:3:1");
    assert_eq!(relu.sources.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a.cl", "b.cl"]);
    assert_eq!(relu.defines[0].default, "0.0");
    assert_eq!(relu.defines[1].array, Some(ArrayType::Int));
    assert_eq!(relu.defines[2].name, "TILE 16");
    assert!(matches!(relu.arguments[0], Argument::Input { port: 0, format: Format::Byxf, .. }));
    assert!(matches!(relu.arguments[1], Argument::Output { port: 0, format: Format::Bfyx, .. }));
    assert!(
        matches!(relu.arguments[2], Argument::Internal { .. }) && matches!(relu.arguments[3], Argument::Data { .. })
    );
    let work = relu.work_sizes.as_ref().unwrap();
    assert_eq!((work.input, work.global.len(), work.local.len()), (Some(0), 3, 0));
    assert_eq!((other.work_sizes.clone(), other.declaration.clone()), (None, None));
    assert!(found.warnings.is_empty());
}

#[test]
fn each_missing_or_wrong_part_is_named_with_its_place() {
    assert_eq!(error("<Layer/>"), "k.xml:1:1, <Layer>: wrong node: expected <CustomLayer>, found <Layer>");
    assert!(
        error("<CustomLayer type='SimpleGPU' version='1'/>")
            .ends_with("missing layer name: attribute `name` is required")
    );
    let kind = "<CustomLayer name='A' type='simplegpu' version='1'/>";
    assert_eq!(
        error(kind),
        "layer `A`, k.xml:1:23, <CustomLayer> attribute `type`: expected `SimpleGPU`, found `simplegpu`"
    );
    assert!(error("<CustomLayer name='A' type='SimpleGPU' version='2'/>").ends_with("expected 1, found 2"));
    assert!(error("<CustomLayer name='A' type='SimpleGPU' version='1x'/>").ends_with("found `1x`"));
    assert!(error("<CustomLayer name='A' type='SimpleGPU'/>").contains("attribute `version` is required"));
    assert!(error("<CustomLayer name='A' type='SimpleGPU' version='1'/>").ends_with("the element <Kernel> is missing"));
    assert!(error(&layer_with("<Kernel/>", TENSORS, "")).contains("no kernel entry"));
    assert!(error(&layer_with("<Kernel entry='k'/>", TENSORS, "")).contains("no source"));
    let no_file = "<Kernel entry='k'><Source filename='c.cl'/></Kernel>";
    assert!(
        error(&layer_with(no_file, TENSORS, "")).contains("there is no source `c.cl` in memory; given: a.cl, b.cl")
    );
    let no_name = "<Kernel entry='k'><Source filename='a.cl'/><Define param='x'/></Kernel>";
    assert!(error(&layer_with(no_name, TENSORS, "")).contains("missing define name"));
    let no_buffers = format!("<CustomLayer name='A' type='SimpleGPU' version='1'>{KERNEL}</CustomLayer>");
    assert!(error(&no_buffers).ends_with("the element <Buffers> is missing"));
}

#[test]
fn each_wrong_buffer_is_named() {
    let buffers = |text: &str| error(&layer_with(KERNEL, text, ""));
    assert!(
        buffers("<Tensor type='input' port-index='0'/>").ends_with("attribute `arg-index` is required and missing")
    );
    assert!(
        buffers("<Tensor type='input' arg-index='0'/>").ends_with("attribute `port-index` is required and missing")
    );
    assert!(
        buffers("<Tensor type='input' arg-index='-1' port-index='0'/>")
            .ends_with("expected an index from 0 on, found `-1`")
    );
    assert!(buffers("<Tensor type='input' arg-index='0x1' port-index='0'/>").contains("decimal digits, found `0x1`"));
    assert!(buffers("<Tensor type='input' arg-index='4000' port-index='0'/>").contains("below 1024"));
    assert!(buffers("<Tensor type='both' arg-index='0' port-index='0'/>").contains("expected a tensor type"));
    assert!(buffers("<Tensor type='input' arg-index='0' port-index='0' format='NCHW'/>").contains("found `NCHW`"));
    assert!(buffers("<Tensor type='internal' arg-index='0' port-index='0'/>").contains("needs the attribute `size`"));
    assert!(
        buffers("<Tensor type='internal' arg-index='0' port-index='0' size='1+'/>")
            .contains("attribute `size`: expression `1+`")
    );
    assert!(buffers("<Data name='w'/>").contains("`arg-index` is required"));
    assert!(buffers("<Data arg-index='0'/>").contains("`name` is required"));
    assert!(buffers("").contains("no output"));
    let twice =
        "<Tensor type='output' arg-index='0' port-index='0'/><Tensor type='input' arg-index='0' port-index='0'/>";
    assert!(buffers(twice).contains("argument 0 is given twice"));
    let gap = "<Tensor type='output' arg-index='0' port-index='0'/><Tensor type='input' arg-index='2' port-index='0'/>";
    assert!(buffers(gap).ends_with("argument 1 is missing: `arg-index` goes from 0 to 2 without a gap"));
}

#[test]
fn work_sizes_are_checked_when_they_are_read() {
    assert!(error(&sizes("global='X,Y,Q'")).contains("attribute `global`: invalid WorkSize: `Q`"));
    assert!(error(&sizes("global='X/0'")).contains("a division by zero"));
    assert!(error(&sizes("global='X,'")).contains("found the end"));
    assert!(error(&sizes("global='X,Y,B,F'")).contains("expected at most 3 sizes, found 4"));
    assert!(error(&sizes("global='X' local='1,1'")).contains("expected at most as many sizes"));
    assert!(error(&sizes("global='X' dim='weights'")).contains("invalid WG dim source"));
    assert!(error(&sizes("global='X' dim='input,-1'")).contains("invalid input index -1"));
    assert!(error(&sizes("global='X' dim='input,x'")).contains("invalid WG dim source"));
    assert_eq!(strict(&sizes("dim='input'")).unwrap().layers[0].work_sizes.as_ref().unwrap().input, Some(0));
}

#[test]
fn what_the_documentation_writes_is_accepted_with_a_warning() {
    let text = sizes("global='X' dim='input 1'");
    assert!(strict(&text).is_err());
    let found = read(&file(&text), Mode::Compatible).unwrap();
    assert_eq!(found.layers[0].work_sizes.as_ref().unwrap().input, Some(1));
    assert!(found.warnings[0].contains("behind a comma"), "{:?}", found.warnings);
}

#[test]
fn a_port_has_one_format_the_first() {
    let buffers = format!("{TENSORS}<Tensor arg-index='2' type='input' port-index='0' format='YXFB'/>");
    let text = layer_with(KERNEL, &buffers, "");
    assert!(error(&text).contains("input 0 is asked for in BFYX before"));
    let found = read(&file(&text), Mode::Compatible).unwrap();
    assert!(matches!(found.layers[0].arguments[2], Argument::Input { format: Format::Bfyx, .. }));
}

#[test]
fn all_wrong_layers_are_reported_at_once() {
    let text = format!("<A/>\n{}\n<B/>", layer_with(KERNEL, TENSORS, ""));
    let lines = error(&text);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains("k.xml:1:1, <A>") && lines.contains("k.xml:3:1, <B>"), "{lines}");
}

#[test]
fn an_empty_file_is_an_error() {
    for text in ["", "  \n", "<!-- nothing -->", "<?xml version='1.0'?>"] {
        assert_eq!(error(text), "k.xml: there is no <CustomLayer> in it");
    }
}

#[test]
fn stray_text_is_ignored() {
    let found = read(&file(&format!("{} -->", layer_with(KERNEL, TENSORS, ""))), Mode::Compatible).unwrap();
    assert_eq!((found.layers.len(), found.warnings.len()), (1, 1));
}

#[test]
fn a_later_layer_of_the_same_name_replaces_the_earlier() {
    let of = |kernel: &str| strict(&layer_with(kernel, TENSORS, "")).unwrap().layers;
    let mut all = crate::gpu::GpuLayers::default();
    all.add(of(KERNEL));
    all.add(of("<Kernel entry='second'><Source filename='b.cl'/></Kernel>"));
    assert_eq!(all.find("ReLU").unwrap().entry, "second");
    assert_eq!((all.find("relu"), all.iter().count()), (None, 1));
}

fn declared(outputs: &str) -> Result<crate::Declaration> {
    let kernel = "<Kernel entry='k'><Source filename='a.cl'/><Define name='S' param='stride' default='2'/></Kernel>";
    Ok(strict(&layer_with(kernel, TENSORS, outputs))?.layers.remove(0).declaration.unwrap())
}
fn infer(outputs: &str, shape: &str, attrs: &[(&str, &str)]) -> String {
    let declaration = declared(outputs).unwrap();
    let mut all = declaration.defaults.clone();
    attrs.iter().for_each(|(n, v)| all.set(*n, AttrValue::Text(v.to_string())));
    let inputs = [(ElementType::F16, shape.parse::<PartialShape>().unwrap())];
    declaration.outputs[0].infer(&inputs, &all).map_or_else(|e| e.to_string(), |f| f.to_string())
}

#[test]
fn an_operation_is_declared_by_the_shapes_of_its_outputs() {
    let reorg = "<Output shape='B,F*stride*stride,Y/stride,X/stride'/>";
    assert_eq!(infer(reorg, "1,64,26,26", &[]), "f16[1,256,13,13]");
    assert_eq!(infer(reorg, "1,64,26,26", &[("stride", "13")]), "f16[1,10816,2,2]");
    assert_eq!(infer("<Output/>", "1,?,7", &[]), "f16[1,?,7]");
    assert_eq!(infer("<Output type='i32' shape='INPUT0_DIMS[1], 4'/>", "1,3", &[]), "i32[3,4]");
    assert_eq!(infer("<Output shape='size[0],size[1]'/>", "1,3", &[("size", "5, 6")]), "f16[5,6]");
    assert_eq!(infer("<Output shape=''/>", "1,3", &[]), "f16[]");
}

#[test]
fn unknown_sizes_give_unknown_ones() {
    assert_eq!(infer("<Output shape='B,F*2'/>", "?,?", &[]), "f16[?,?]");
    assert_eq!(infer("<Output shape='B,F*2'/>", "1..4,3", &[]), "f16[1..4,6]");
    assert_eq!(infer("<Output shape='B,2'/>", "...", &[]), "f16[?,2]");
    assert_eq!(Dim::ANY.get(), None);
}

#[test]
fn a_wrong_declaration_is_refused() {
    let wrong = |text: &str| declared(text).unwrap_err().to_string();
    assert!(wrong("<Output type='float'/>").contains("expected an element type such as f32"));
    assert!(wrong("<Output shape='B,,F'/>").contains("attribute `shape`: expression ``"));
    assert!(wrong("<Output dim='output'/>").contains("expected `input,N`, found `output`"));
    assert!(wrong("<Output/><Output/>").contains("output 0 is declared twice"));
    assert!(wrong("<Output port-index='1'/>").contains("but not output 0"));
    assert!(infer("<Output shape='F-5'/>", "1,3", &[]).contains("gives the size -2"));
    assert!(infer("<Output shape='F/size'/>", "1,3", &[("size", "0")]).contains("a division by zero"));
    assert!(infer("<Output shape='F/depth'/>", "1,3", &[]).contains("nothing is known of `depth`"));
    assert!(infer("<Output shape='INPUT0_DIMS[2]'/>", "1,3", &[]).contains("the input has 2 axes"));
}
