//! Packs the templates, and the files of others that generated projects begin with, so that they are part of the program.

use carafe_packed::{Folder, pack};

/// Folders below `templates`.
const TEMPLATES: [&str; 7] = [
    "templates/c",
    "templates/common",
    "templates/cpp",
    "templates/kernels",
    "templates/plugin-rust",
    "templates/python",
    "templates/rust",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut folders: Vec<Folder<'_>> =
        TEMPLATES.iter().map(|name| Folder { name, else_at: "", ends: &["in"] }).collect();
    // The device that plugins in Rust begin with, and the one in C.
    folders.push(Folder { name: "from/template", else_at: "../template/src", ends: &["rs"] });
    let in_c = "../../examples/template-plugin-c";
    folders.push(Folder { name: "from/template-plugin-c", else_at: in_c, ends: &["c", "txt"] });
    print!("{}", pack("templates.deflate", &folders)?);
    Ok(())
}
