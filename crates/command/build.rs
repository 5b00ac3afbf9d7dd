//! Packs the headers and the files for build tools that `carafe c-api install` writes.

use carafe_packed::{Folder, pack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let headers = |name, else_at| Folder { name, else_at, ends: &["h", "hpp"] };
    let folders = [
        headers("c-api/include/carafe", "../capi/include/carafe"),
        headers("c-api/include/openvino/c", "../capi/include/openvino/c"),
        headers("c-api/include/openvino/c/auto", "../capi/include/openvino/c/auto"),
        headers("c-api/include/openvino/c/gpu", "../capi/include/openvino/c/gpu"),
        Folder { name: "c-api/package", else_at: "../capi/package", ends: &["cmake", "in"] },
    ];
    print!("{}", pack("c_api.deflate", &folders)?);
    Ok(())
}
