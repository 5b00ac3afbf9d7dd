//! How the files of a model are found, and what mo's options make of them.

use crate::common::{Folder, SCALE, file, floats, read_file, run};

fn weights(values: &[f32]) -> Vec<u8> {
    file(&[("arg:w", floats(values))])
}

#[test]
fn a_symbol_finds_the_arrays_of_the_latest_epoch() {
    let folder = Folder::new("latest");
    let symbol = folder.write("net-symbol.json", SCALE);
    folder.write("net-0002.params", weights(&[1.0, 1.0]));
    folder.write("net-0010.params", weights(&[2.0, 3.0]));
    folder.write("net-best.params", weights(&[9.0, 9.0]));
    folder.write("other-0099.params", weights(&[9.0, 9.0]));
    let model = read_file(&carafe::core(), &symbol, &[]).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
}

#[test]
fn arrays_find_their_symbol() {
    let folder = Folder::new("symbol");
    folder.write("net-symbol.json", SCALE);
    let params = folder.write("net-0012.params", weights(&[2.0, 3.0]));
    let model = read_file(&carafe::core(), &params, &[]).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
}

#[test]
fn a_symbol_under_another_name_is_given_by_the_option() {
    let folder = Folder::new("option");
    let symbol = folder.write("topology.json", SCALE);
    let params = folder.write("net-0012.params", weights(&[2.0, 3.0]));
    let core = carafe::core();
    let e = read_file(&core, &params, &[]).unwrap_err().to_string();
    assert!(e.contains("net-symbol.json") && e.contains("--input_symbol"), "{e}");
    let model = read_file(&core, &params, &[("input_symbol", symbol.to_str().unwrap())]).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
}

#[test]
fn arrays_of_a_tuned_model_lie_over_the_pretrained_ones_and_can_be_saved() {
    let folder = Folder::new("tuned");
    let text = SCALE.replace(
        r#"{"op": "elemwise_mul", "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]]}"#,
        r#"{"op": "elemwise_mul", "name": "m", "inputs": [[0, 0, 0], [1, 0, 0]]},
           {"op": "null", "name": "b", "inputs": []},
           {"op": "elemwise_add", "name": "y", "inputs": [[2, 0, 0], [3, 0, 0]]}"#,
    );
    let text = text.replace(r#""heads": [[2, 0, 0]]"#, r#""heads": [[4, 0, 0]]"#);
    let symbol = folder.write("tuned-symbol.json", &text);
    let pretrained = file(&[("arg:w", floats(&[1.0, 1.0])), ("arg:b", floats(&[5.0, 6.0])), ("arg:x", floats(&[0.0]))]);
    let pretrained = folder.write("base-0003.params", pretrained);
    folder.write("tuned_args.nd", file(&[("w", floats(&[2.0, 3.0]))]));
    folder.write("tuned_auxs.nd", file(&[]));
    let prefix = folder.path("tuned");
    let prefix = prefix.to_str().unwrap();
    let options = [("nd_prefix_name", prefix), ("pretrained_model_name", pretrained.to_str().unwrap())];
    let core = carafe::core();
    // The pretrained file also has a value for the input, which would hide it.
    let e = read_file(&core, &symbol, &options).unwrap();
    assert_eq!(e.parameters().len(), 0);
    let pretrained = file(&[("arg:w", floats(&[1.0, 1.0])), ("arg:b", floats(&[5.0, 6.0]))]);
    folder.write("base-0003.params", pretrained);
    let model = read_file(&core, &symbol, &[&options[..], &[("save_params_from_nd", "true")]].concat()).unwrap();
    assert_eq!(run(&model, [1.0, 10.0]), [7.0, 36.0]);
    let saved = read_file(&core, &folder.path("tuned-0000.params"), &[]).unwrap();
    assert_eq!(run(&saved, [1.0, 10.0]), [7.0, 36.0]);
}

#[test]
fn options_that_need_each_other_are_refused_alone() {
    let folder = Folder::new("alone");
    let symbol = folder.write("net-symbol.json", SCALE);
    let core = carafe::core();
    for option in ["nd_prefix_name", "pretrained_model_name", "save_params_from_nd"] {
        let value = if option.starts_with("save") { "true" } else { "x" };
        let e = read_file(&core, &symbol, &[(option, value)]).unwrap_err().to_string();
        assert!(e.contains("--nd_prefix_name"), "{option}: {e}");
    }
}

#[test]
fn switches_of_mo_that_change_nothing_are_taken() {
    let folder = Folder::new("switches");
    let symbol = folder.write("net-symbol.json", SCALE);
    folder.write("net-0000.params", weights(&[2.0, 3.0]));
    for option in ["legacy_mxnet_model", "enable_ssd_gluoncv"] {
        let model = read_file(&carafe::core(), &symbol, &[(option, "true")]).unwrap();
        assert_eq!(run(&model, [1.0, 10.0]), [2.0, 30.0]);
    }
}
