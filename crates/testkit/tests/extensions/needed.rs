//! A model says which extensions it needs, and whoever reads it without them is told.

use crate::support::*;
use carafe::{Core, Model};
use carafe_testkit::libraries::Workshop;

fn saved(core: &Core, model: &Model, shop: &Workshop) -> std::path::PathBuf {
    let mut model = model.clone();
    core.record_extensions(&mut model);
    let path = shop.path("saved.xml");
    carafe::ir::write_file(&model, &path, &Default::default()).unwrap();
    path
}

#[test]
fn a_reader_without_the_extension_is_told_which() {
    for (_, library) in &*ALL_KINDS {
        let shop = Workshop::new();
        let core = core_with(library);
        let model = ir(&core, "Twice", "kinds", "", "FP32").unwrap();
        let path = saved(&core, &model, &shop);
        let file = library.file_name().unwrap().to_string_lossy();
        tells(carafe::core().read_model(&path), &["Twice", "`all kinds` 0.1.0", &file, "add_extension"]);
        // With the extension it is as before, and saying it again does not double it: one element, begun and ended.
        let again = core.read_model(&path).unwrap();
        assert_eq!(floats(&run(&core, &again, &[1.0; 4]).unwrap()), [2.0; 4]);
        saved(&core, &again, &shop);
        assert_eq!(std::fs::read_to_string(&path).unwrap().matches("carafe_extensions").count(), 2);
    }
}

#[test]
fn an_extension_that_is_loaded_is_not_what_to_load() {
    let shop = Workshop::new();
    let library = &ALL_KINDS[1].1;
    let core = core_with(library);
    let path = saved(&core, &ir(&core, "Twice", "kinds", "", "FP32").unwrap(), &shop);
    // The model of a version that had one operation more.
    let text = std::fs::read_to_string(&path).unwrap().replace("\"Twice\"", "\"Thrice\"");
    std::fs::write(&path, text).unwrap();
    let e = core.read_model(&path).unwrap_err().to_string();
    assert!(e.contains("`all kinds` 0.1.0") && e.contains("which is loaded and does not have it"), "{e}");
    assert!(!e.contains("add_extension") && !e.contains("--extension"), "{e}");
}

#[test]
fn an_extension_that_is_not_used_is_not_needed() {
    let shop = Workshop::new();
    let core = core_with(&ALL_KINDS[1].1);
    let model = ir(&core, "Abs", "opset1", "", "FP32").unwrap();
    let path = saved(&core, &model, &shop);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("carafe_extensions"));
    carafe::core().read_model(&path).unwrap();
}

#[test]
fn a_model_that_says_nothing_is_refused_as_before() {
    tells(ir(&carafe::core(), "Twice", "kinds", "", "FP32"), &["Twice", "the unknown opset `kinds`"]);
}

#[test]
fn strange_entries_do_no_harm() {
    for entry in [
        "<carafe_extensions/>",
        "<carafe_extensions value=\"x\"/>",
        "<carafe_extensions><a/><b><version value=\"\"/></b></carafe_extensions>",
    ] {
        let shop = Workshop::new();
        let text = ir_text("Twice", "kinds", "", "FP32", &format!("<rt_info>{entry}</rt_info>"));
        tells(carafe::core().read_model(shop.write("m.xml", text)), &["Twice"]);
    }
}
