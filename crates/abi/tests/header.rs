//! `include/carafe.h` is what `tables.rs` says. `CARAFE_BLESS=1 cargo test -p carafe-abi --test header` prints it anew.

use std::path::Path;

fn printed() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is good");
    let bindings = cbindgen::Builder::new().with_config(config).with_src(root.join("src/tables.rs")).generate();
    let mut text = Vec::new();
    bindings.expect("tables.rs is plain").write(&mut text);
    String::from_utf8(text).expect("the header is text")
}

#[test]
fn the_header_says_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/carafe.h");
    let printed = printed();
    if std::env::var_os("CARAFE_BLESS").is_some() {
        std::fs::write(&path, &printed).expect("the header can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == printed, "include/carafe.h is old; run with CARAFE_BLESS=1 to print it anew");
}
