use super::*;

fn file(text: &str) -> KernelFile {
    KernelFile::with_source("v.xml", text, "__kernel void k(__global half *src, __global half *dst) {}")
}
fn strict(text: &str) -> Result<VpuFile> {
    read(&file(text), Mode::Strict)
}
fn compatible(text: &str) -> VpuFile {
    read(&file(text), Mode::Compatible).unwrap()
}
fn error(text: &str) -> String {
    strict(text).unwrap_err().to_string()
}

const PARAMETERS: &str = "<Tensor arg-name='src' type='input' port-index='0' format='BFYX'/>\
    <Tensor arg-name='dst' type='output' port-index='0' format='BFYX'/>";
const SIZES: &str = "<WorkSizes dim='input,0' global='X,Y' local='X,1'/>";

fn kernel(attributes: &str, parameters: &str, sizes: &str) -> String {
    format!(
        "<Kernel entry='k' {attributes}><Source filename='k.bin'/><Parameters>{parameters}</Parameters>{sizes}</Kernel>"
    )
}
fn layer(inside: &str) -> String {
    format!("<CustomLayer name='Op' type='MVCL' version='1'>{inside}</CustomLayer>")
}
fn with_parameters(parameters: &str) -> String {
    layer(&kernel("", parameters, SIZES))
}

#[test]
fn the_nested_schema_is_read() {
    let text = r#"<CustomLayer name="MVN" type="MVCL" version="1">
      <Where eps=">0" across="0"/>
      <Kernel entry="sums" stage="0" max-shaves="4">
        <Source filename="a.cl"/>
        <Parameters>
          <Tensor arg-name="src" type="input" port-index="0" format="BFYX"/>
          <Tensor arg-name="mean" type="output_buffer" port-index="0" dim="output,0" size="F*4"/>
          <Data arg-name="line" type="local_data" dim="input,0" size="X*2"/>
          <Scalar arg-name="width" type="int" port-index="0" source="I.X"/>
        </Parameters>
        <WorkSizes dim="output,0" global="1,Y,F" local="1,Y,1"/>
      </Kernel>
      <Kernel entry="apply" stage="1">
        <Source filename="a.cl"/>
        <Parameters>
          <Tensor arg-name="mean" type="input_buffer" port-index="0" dim="output,0" size="F*4"/>
          <Tensor arg-name="dst" type="output" port-index="0" format="yxf"/>
          <Data arg-name="w" type="data" source="weights" format="ANY"/>
          <Scalar arg-name="eps" type="float" source="eps"/>
        </Parameters>
        <WorkSizes dim="output,0" global="1,Y,F" local="1,1,1"/>
      </Kernel>
    </CustomLayer>"#;
    let found = strict(text).unwrap();
    let [mvn] = found.layers.as_slice() else { panic!("one layer") };
    assert_eq!((mvn.name.as_str(), mvn.stages.len(), mvn.conditions.len()), ("MVN", 2, 2));
    assert_eq!((mvn.stages[0].entry.as_str(), mvn.stages[0].max_shaves), ("sums", 4));
    assert_eq!(mvn.stages[0].dim, DimSource::Output(0));
    assert!(matches!(mvn.stages[0].bindings[1].value, BindingValue::Buffer { id: 0, is_output: true, .. }));
    assert!(matches!(mvn.stages[0].bindings[2].value, BindingValue::LocalData { dim: DimSource::Input(0), .. }));
    assert!(matches!(mvn.stages[1].bindings[1].value, BindingValue::Output { format: Format::Byxf, .. }));
    assert!(matches!(mvn.stages[1].bindings[3].value, BindingValue::Scalar { is_float: true, port: None, .. }));
}

#[test]
fn the_flat_schema_is_read_where_it_may_be() {
    let flat = |stage: &str| {
        format!(
            "<CustomLayer name='Op' type='mvcl' version='1' max-shaves='1' {stage}><Kernel entry='k'><Source filename='k.cl'/></Kernel>\
             <Parameters>{PARAMETERS}<Scalar arg-name='n' type='int' port-index='0' source='axis'/></Parameters>{SIZES}</CustomLayer>"
        )
    };
    assert!(error(&flat("")).contains("the element <Parameters> is missing"));
    let one = compatible(&flat(""));
    assert_eq!((one.layers.len(), one.layers[0].stages[0].max_shaves), (1, 1));
    assert!(matches!(one.layers[0].stages[0].bindings[2].value, BindingValue::Scalar { port: None, .. }));
    let staged = compatible(&format!("{}{}{}", flat("stage='0'"), flat("stage='1'"), flat("stage='0'")));
    assert_eq!(staged.layers.iter().map(|l| l.stages.len()).collect::<Vec<_>>(), [2, 1]);
    let e = read(&file(&flat("stage='1'")), Mode::Compatible).unwrap_err().to_string();
    assert!(e.contains("stage 1 of `Op` needs stage 0 right before it"), "{e}");
}

#[test]
fn more_cores_than_the_chip_has_are_refused() {
    let with = |n: &str| layer(&kernel(&format!("max-shaves='{n}'"), PARAMETERS, SIZES));
    assert_eq!(compatible(&with("16")).layers[0].stages[0].max_shaves, 16);
    let e = error(&with("17"));
    assert!(e.contains("<Kernel> attribute `max-shaves`: the chip has 16 cores, found 17"), "{e}");
    assert!(error(&with("-1")).contains("expected an index from 0 on"));
    assert!(error(&with("4x")).contains("max-shaves"));
}

#[test]
fn stages_are_complete() {
    let two = |a: &str, b: &str| error(&layer(&(kernel(a, PARAMETERS, SIZES) + &kernel(b, PARAMETERS, SIZES))));
    assert!(two("", "stage='1'").contains("attribute `stage` is required where a layer has several kernels"));
    assert!(two("stage='0'", "stage='0'").contains("stage 0 is there twice"));
    assert!(two("stage='0'", "stage='2'").contains("expected 0 to 1, found 2"));
    assert!(two("stage='0'", "stage='-1'").contains("expected an index from 0 on"));
}

#[test]
fn each_missing_or_wrong_part_is_named() {
    assert!(error("<Layer/>").contains("wrong node"));
    assert!(error("<CustomLayer name='' type='MVCL' version='1'/>").contains("attribute `name`"));
    assert!(
        error("<CustomLayer name='A' type='SimpleGPU' version='1'/>").contains("expected `MVCL`, found `SimpleGPU`")
    );
    assert!(error("<CustomLayer name='A' type='MVCL' version='3'/>").contains("expected 1, found 3"));
    assert!(error(&layer("")).contains("the element <Kernel> is missing"));
    assert!(
        error(&with_parameters("<Tensor arg-name='' type='input' port-index='0'/>")).contains("found an empty one")
    );
    assert!(error(&with_parameters("<Tensor type='input' port-index='0'/>")).contains("`arg-name` is required"));
    assert!(error(&with_parameters("<Tensor arg-name='a' type='input'/>")).contains("`port-index` is required"));
    assert!(
        error(&with_parameters("<Tensor arg-name='a' type='both' port-index='0'/>")).contains("expected input, output")
    );
    assert!(
        error(&with_parameters("<Tensor arg-name='a' type='input' port-index='0' format='BFXY'/>"))
            .contains("found `BFXY`")
    );
    assert!(
        error(&with_parameters("<Tensor arg-name='a' type='output_buffer' port-index='0'/>"))
            .contains("`size` is required")
    );
    assert!(error(&with_parameters("<Thing arg-name='a'/>")).contains("expected <Tensor>, <Data> or <Scalar>"));
    assert!(error(&with_parameters("<Scalar arg-name='a' type='half' source='1'/>")).contains("expected int or float"));
    assert!(error(&with_parameters("<Scalar arg-name='a' type='int'/>")).contains("`source` is required"));
    let twice = format!("{PARAMETERS}<Scalar arg-name='src' type='int' source='1'/>");
    assert!(error(&with_parameters(&twice)).contains("argument `src` is bound twice"));
}

#[test]
fn data_has_a_source_or_a_dim() {
    let data = |a: &str| error(&with_parameters(&format!("<Data arg-name='a' {a}/>")));
    assert!(data("type='data' source='w' dim='input,0'").contains("exclude each other"));
    assert!(data("type='data'").contains("one of `source` and `dim` is required"));
    assert!(data("type='local_data' source='w'").contains("needs `dim` and `size`"));
    assert!(data("type='local_data' dim='input,0'").contains("`size` is required"));
    assert!(data("type='blob' source='w'").contains("expected data or local_data"));
}

#[test]
fn work_sizes_are_checked_when_they_are_read() {
    let sizes = |a: &str| error(&layer(&kernel("", PARAMETERS, &format!("<WorkSizes {a}/>"))));
    assert!(sizes("dim='input,0' local='1'").contains("`global` is required"));
    assert!(sizes("dim='input,0' global='1'").contains("`local` is required"));
    assert!(sizes("global='1' local='1'").contains("`dim` is required"));
    assert!(sizes("dim='weights,0' global='1' local='1'").contains("invalid dim source"));
    assert!(sizes("dim='input' global='1' local='1'").contains("expected an index"));
    assert!(sizes("dim='input,0' global='log(X)' local='1'").contains("there is no function `log`"));
    assert!(sizes("dim='input,0' global='1,1,1,1' local='1'").contains("at most 3 sizes"));
    assert!(sizes("dim='input,0' global='1' local='1,1'").contains("at most as many sizes"));
}

#[test]
fn a_compiled_program_is_refused() {
    let text = with_parameters(PARAMETERS);
    let elf = KernelFile::with_source("v.xml", &text, "\u{7f}ELF\u{1}");
    assert!(read(&elf, Mode::Strict).unwrap_err().to_string().contains("compiled for a Myriad stick"));
    let stripped = KernelFile::with_source("v.xml", &text, "....neo_metadata...");
    assert!(read(&stripped, Mode::Compatible).unwrap_err().to_string().contains("compiled for a Myriad stick"));
}

#[test]
fn stray_text_means_nothing() {
    assert_eq!(compatible(&format!("{}  -->", with_parameters(PARAMETERS))).layers.len(), 1);
}
