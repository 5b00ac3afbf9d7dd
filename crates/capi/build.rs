//! Gives the library the name under which programs ask for it: that of OpenVINO 2026.4.1.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libopenvino_c.so.2641");
        // Calls of the library to itself stay inside of it, also where the original is loaded beside it.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    }
}
