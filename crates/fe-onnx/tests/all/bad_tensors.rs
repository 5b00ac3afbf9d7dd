//! Tensors whose bytes do not fit what they declare, inside of the file or beside it.

use crate::common::{Folder, check_error, error, proto};

fn initializer(content: &str) -> String {
    proto(&format!("initializer {{ name: 'w' {content} }} output {{ name: 'w' }}"))
}

#[test]
fn raw_bytes_too_few_are_refused_with_the_name_of_the_tensor() {
    let found = error(initializer("dims: 2 data_type: FLOAT raw_data: '1234'"));
    assert!(found.contains("tensor `w`: f32[2] takes 8 bytes, found 4"), "{found}");
}

#[test]
fn raw_bytes_too_many_are_refused() {
    check_error(initializer("dims: 1 data_type: FLOAT raw_data: '12345678'"), "f32[1] takes 4 bytes, found 8");
}

#[test]
fn typed_values_too_few_are_refused() {
    check_error(initializer("dims: 3 data_type: INT64 int64_data: [1, 2]"), "i64[3] takes 3 values, found 2");
}

#[test]
fn values_in_the_field_of_another_type_are_refused() {
    check_error(initializer("dims: 1 data_type: FLOAT int64_data: 1"), "f32[1] takes 1 values, found 0");
}

#[test]
fn a_negative_dimension_is_refused() {
    check_error(initializer("dims: -2 data_type: FLOAT"), "dimension -2 is negative");
}

#[test]
fn a_size_beyond_all_memory_is_refused() {
    let huge = "dims: 4611686018427387904 dims: 4611686018427387904 data_type: FLOAT raw_data: ''";
    check_error(initializer(huge), "is too large");
}

#[test]
fn a_tensor_without_element_type_is_refused() {
    check_error(initializer("dims: 1 raw_data: '1234'"), "the tensor has no element type");
}

#[test]
fn an_unknown_element_type_is_refused() {
    check_error(initializer("dims: 1 data_type: 99 raw_data: '1234'"), "99 is not an element type of ONNX");
}

#[test]
fn complex_numbers_are_refused() {
    check_error(
        initializer("dims: 1 data_type: COMPLEX64 float_data: [1, 2]"),
        "complex element types are not supported",
    );
}

#[test]
fn a_sparse_tensor_of_a_size_nobody_can_hold_is_refused() {
    let sparse = "sparse_initializer { values { name: 'w' dims: 1 data_type: FLOAT float_data: 1 }
                  indices { dims: 1 data_type: INT64 int64_data: 0 } dims: 1099511627776 } output { name: 'w' }";
    check_error(proto(sparse), "a sparse tensor f32[1099511627776] is not supported");
}

#[test]
fn an_index_outside_of_a_sparse_tensor_is_refused() {
    let sparse = "sparse_initializer { values { name: 'w' dims: 1 data_type: FLOAT float_data: 1 }
                  indices { dims: 1 dims: 2 data_type: INT64 int64_data: [0, 9223372036854775807] } dims: 2 dims: 3 }";
    check_error(proto(sparse), "index 0 of a sparse tensor is outside of [2, 3]");
}

#[test]
fn external_data_of_a_model_in_memory_is_refused() {
    check_error(external("w.bin", ""), "external data `w.bin` needs the model as a file");
}

fn external(location: &str, more: &str) -> String {
    initializer(&format!(
        "dims: 2 data_type: FLOAT data_location: EXTERNAL external_data {{ key: 'location' value: '{location}' }} {more}"
    ))
}

fn entry(key: &str, value: &str) -> String {
    format!("external_data {{ key: '{key}' value: '{value}' }}")
}

#[track_caller]
fn check_external(name: &str, model: &str, data: &[u8], wanted: &str) {
    let folder = Folder::new(name);
    folder.write("m.pbtxt", model);
    folder.write("w.bin", data);
    let found = folder.read("m.pbtxt").expect_err("the model must be refused");
    assert!(found.contains("tensor `w`") && found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

#[test]
fn external_data_is_read_at_its_offset() {
    let folder = Folder::new("good");
    folder.write("m.pbtxt", external("w.bin", &(entry("offset", "4") + &entry("length", "8"))));
    folder.write("w.bin", [0u8; 12]);
    assert!(folder.read("m.pbtxt").is_ok());
}

#[test]
fn external_data_that_is_not_there_is_refused() {
    check_external("absent", &external("other.bin", ""), &[0; 8], "external data `other.bin`");
}

#[test]
fn external_data_without_location_is_refused() {
    let model = initializer("dims: 2 data_type: FLOAT data_location: EXTERNAL");
    check_external("nowhere", &model, &[0; 8], "external data has no `location`");
}

#[test]
fn external_data_that_is_too_short_is_refused() {
    let model = external("w.bin", &entry("length", "8"));
    check_external("short", &model, &[0; 4], "external data `w.bin` is too short: 8 bytes at 0 needed, the file has 4");
}

#[test]
fn external_data_of_another_length_than_its_shape_is_refused() {
    let model = external("w.bin", &entry("length", "4"));
    check_external("length", &model, &[0; 8], "f32[2] takes 8 bytes, found 4");
}

#[test]
fn an_offset_past_the_end_is_refused() {
    check_external("past", &external("w.bin", &entry("offset", "9")), &[0; 8], "offset 9 is past its end");
}

#[test]
fn a_negative_offset_is_refused() {
    let model = external("w.bin", &entry("offset", "-8"));
    check_external("negative", &model, &[0; 8], "`offset` must be a number, found `-8`");
}

#[test]
fn an_offset_and_length_that_overflow_are_refused() {
    let model = external("w.bin", &(entry("offset", "8") + &entry("length", "18446744073709551615")));
    check_external("overflow", &model, &[0; 8], "is too short");
}

#[test]
fn external_data_above_the_folder_is_refused() {
    let wanted = "lies outside of the model's folder";
    check_external("above", &external("../w.bin", ""), &[0; 8], wanted);
    check_external("above2", &external("a/../../w.bin", ""), &[0; 8], wanted);
}

#[test]
fn external_data_at_an_absolute_path_is_refused() {
    check_external("absolute", &external("/etc/hostname", ""), &[0; 8], "lies outside of the model's folder");
}

#[cfg(unix)]
#[test]
fn external_data_behind_a_link_out_of_the_folder_is_refused() {
    let folder = Folder::new("link");
    let outside = Folder::new("link-outside");
    std::os::unix::fs::symlink(outside.write("w.bin", [0; 8]), folder.0.join("w.bin")).unwrap();
    folder.write("m.pbtxt", external("w.bin", ""));
    let found = folder.read("m.pbtxt").expect_err("the model must be refused");
    assert!(found.contains("lies outside of the model's folder"), "{found}");
}

#[test]
fn external_data_that_is_a_folder_is_refused() {
    let folder = Folder::new("folder");
    std::fs::create_dir(folder.0.join("w.bin")).unwrap();
    folder.write("m.pbtxt", external("w.bin", ""));
    assert!(folder.read("m.pbtxt").is_err());
}
