//! Fields that no `.proto` declares: what is lost with them is told, and stops the conversion where a user's code handles the
//! layer.

use crate::common::{Proto, evaluate, read_as, request};
use carafe_fe_caffe::{Caffe, Schema};
use carafe_frontend::{FormatOptions, Level, Log, Mapping, ReadRequest, Rule};
use carafe_graph::{Model, Result};
use carafe_tensor::SharedBytes;
use std::cell::RefCell;

/// A net with one layer on an input `x` of two elements, in bytes.
fn binary(layer: Proto) -> Vec<u8> {
    let shape = Proto::new().message(1, Proto::new().packed_ints(1, &[2]));
    let input = Proto::new().bytes(1, "x").bytes(2, "Input").bytes(4, "x").message(143, shape);
    Proto::new().bytes(1, "net").message(100, input).message(100, layer).0
}

fn layer(ty: &str) -> Proto {
    Proto::new().bytes(1, "the layer").bytes(2, ty).bytes(3, "x").bytes(4, "y")
}

fn read(bytes: Vec<u8>, rules: &[Rule], schema: &Schema) -> (Result<Model>, Vec<String>) {
    let heard = RefCell::new(vec![]);
    let hear = |_: Level, text: &str| heard.borrow_mut().push(text.to_string());
    let bytes = SharedBytes::from_vec(bytes);
    let request = ReadRequest { log: Log::to(&hear, false), rules, ..ReadRequest::from_bytes(&bytes) };
    let model = carafe_frontend::read(&Caffe::with_schema(schema.clone()), &request);
    (model, heard.into_inner())
}

fn own(proto: &str) -> Schema {
    Schema::built_in().with(Schema::parse(proto).unwrap())
}

fn passes_on(ty: &str) -> Rule {
    Rule::new(ty, |n| Ok(n.input(0)?.into()))
}

#[test]
fn a_standard_layer_with_a_field_of_a_fork_is_read_with_a_warning() {
    // Power: scale 2, and a field 77 that no .proto has.
    let power = layer("Power").message(122, Proto::new().float(2, 2.0).float(77, 0.5));
    let (model, heard) = read(binary(power), &[], Schema::built_in());
    assert_eq!(evaluate(&model.unwrap(), &[(&[2], &[1.0, 2.0])])[0].1, [2.0, 4.0]);
    assert_eq!(
        heard,
        [
            "layer `the layer` (Power): field 77 of `power_param` is declared by no .proto, so its value is lost; give the \
          caffe.proto of the Caffe that made the model with --caffe_parser_path"
        ]
    );
}

#[test]
fn a_layer_of_an_extension_with_a_lost_field_is_an_error() {
    let (model, _) = read(binary(layer("Acme").int(500, 3)), &[passes_on("Acme")], Schema::built_in());
    let e = model.unwrap_err().to_string();
    assert!(e.contains("layer `the layer` (Acme): field 500 is declared by no .proto"), "{e}");
    assert!(e.contains("--caffe_parser_path") && e.contains("handled by the program"), "{e}");
}

#[test]
fn a_proto_that_declares_the_field_gives_its_value() {
    let schema =
        own("message LayerParameter { optional string name = 1; optional string type = 2; repeated string bottom = 3;
        repeated string top = 4; optional InputParameter input_param = 143; optional AcmeParameter acme_param = 500; }
        message AcmeParameter { optional float by = 1; }");
    let scale = Rule::new("Acme", |n| {
        let (x, by) = (n.input(0)?, n.required::<f32>("by")?);
        let by = n.scalar_like(x, by.into())?;
        n.emit(carafe_ops::arithmetic::Multiply::default(), &[x, by]).map(Into::into)
    });
    let acme = layer("Acme").message(500, Proto::new().float(1, 15.5));
    let (model, heard) = read(binary(acme), &[scale], &schema);
    assert_eq!(evaluate(&model.unwrap(), &[(&[2], &[1.0, 2.0])])[0].1, [15.5, 31.0]);
    assert!(heard.is_empty(), "{heard:?}");
}

#[test]
fn fields_inside_of_messages_are_told_with_their_way() {
    let filler = Proto::new().bytes(1, "constant").int(99, 1);
    let inner = layer("InnerProduct").message(117, Proto::new().int(1, 1).int(2, 0).message(3, filler));
    let (_, heard) = read(binary(inner), &[], Schema::built_in());
    assert!(heard.iter().any(|h| h.contains("field 99 of `inner_product_param.weight_filler`")), "{heard:?}");
}

#[test]
fn a_field_whose_bytes_are_of_another_kind_is_told() {
    // `scale` of Power is a float; here it is a text.
    let power = layer("Power").message(122, Proto::new().bytes(2, "two"));
    let (model, heard) = read(binary(power), &[], Schema::built_in());
    assert!(model.is_ok());
    assert!(heard[0].contains("field 2 of `power_param` (its bytes are not of the kind"), "{heard:?}");
}

#[test]
fn fields_of_old_layers_and_of_the_net_are_told() {
    let relu = Proto::new().bytes(2, "x").bytes(3, "y").bytes(4, "old").int(5, 18).int(444, 1);
    let net = Proto::new().bytes(1, "net").bytes(3, "x").packed_ints(4, &[1, 1, 1, 2]).message(2, relu).int(300, 1);
    let (model, heard) = read(net.0, &[], Schema::built_in());
    assert!(model.is_ok(), "{model:?}");
    assert!(heard.iter().any(|h| h.contains("layer `old` (ReLU): field 444 is declared by no .proto")), "{heard:?}");
    assert!(heard.iter().any(|h| h.contains("the net: field 300")), "{heard:?}");
}

#[test]
fn a_value_that_stands_in_a_layer_of_text_by_itself_is_told() {
    let text = crate::common::net(&[2], "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' steepness: 3 }");
    let (model, heard) = read(text.clone().into_bytes(), &[], Schema::built_in());
    assert!(model.is_ok());
    assert!(heard[0].contains("layer `r` (ReLU, line 2): `steepness` in line 2 is declared by no .proto"), "{heard:?}");
    let (model, _) = read(text.into_bytes(), &[passes_on("ReLU")], Schema::built_in());
    assert!(model.unwrap_err().to_string().contains("`steepness` in line 2"));
}

#[test]
fn text_that_the_users_proto_does_not_declare_is_told() {
    let schema = own("message LayerParameter { optional string name = 1; optional string type = 2; repeated string bottom = 3;
        repeated string top = 4; optional AcmeParameter acme_param = 500; } message AcmeParameter { optional float by = 1; }");
    let text = crate::common::net(
        &[2],
        "layer { name: 'a' type: 'Acme' bottom: 'x' top: 'y' acme_param { by: 1 bye: 2 } other_param { z: 1 } }",
    );
    let (model, heard) = read(text.into_bytes(), &[passes_on("Acme")], &schema);
    assert!(model.is_ok(), "{model:?}");
    assert!(
        heard
            .iter()
            .any(|h| h.contains("`acme_param` has no field `bye`") && h.contains("a layer has no field `other_param`")),
        "{heard:?}"
    );
}

#[test]
fn a_custom_layer_with_a_lost_field_is_an_error() {
    let xml = r#"<CustomKernelsMapping><CustomLayer NativeType="Acme" hasParam="false" outputShape="in"/></CustomKernelsMapping>"#;
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("undeclared_custom.caffemodel");
    std::fs::write(&dir, binary(layer("Acme").int(500, 3))).unwrap();
    let custom = dir.with_extension("xml");
    std::fs::write(&custom, xml).unwrap();
    let mut options = FormatOptions::default();
    options.set("custom_layers", custom.display().to_string());
    let request = ReadRequest { options: Some(&options), ..ReadRequest::new(&dir) };
    let e = carafe_frontend::read(&Caffe::default(), &request).unwrap_err().to_string();
    assert!(e.contains("field 500") && e.contains("handled by CustomLayersMapping.xml"), "{e}");
}

#[test]
fn weights_alone_say_nothing_of_parameters() {
    let weights = crate::common::weights(&[layer("ReLU").int(500, 3)]);
    let text = crate::common::net(&[2], "layer { name: 'the layer' type: 'ReLU' bottom: 'x' top: 'y' }");
    let rules = [Mapping::new("Relu").into_rule().unwrap()];
    let read = read_as(text, Some(weights), &ReadRequest { rules: &rules, ..request() });
    assert!(read.is_ok(), "{read:?}");
}
