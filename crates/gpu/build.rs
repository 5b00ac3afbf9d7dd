//! Packs the kernels in OpenCL C, so that they are part of the program.

use carafe_packed::{Folder, pack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", pack("kernels.deflate", &[Folder { name: "kernels", else_at: "", ends: &["cl"] }])?);
    Ok(())
}
