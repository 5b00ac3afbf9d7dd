//! Options of `carafe c-api`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Install the C library under the names of OpenVINO's, so that programs written for it run on this engine.
#[derive(Args, Debug)]
pub(crate) struct CApiArgs {
    #[command(subcommand)]
    pub action: CApiAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum CApiAction {
    Install(CApiInstallArgs),
}

/// Write libopenvino_c.so with its names, headers, pkg-config and CMake files under a folder.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  carafe c-api install /opt/carafe
  carafe c-api install /opt/carafe --as 2641,2520     also for programs built with OpenVINO 2025.2.0
  LD_LIBRARY_PATH=/opt/carafe/lib ./program
  PKG_CONFIG_PATH=/opt/carafe/lib/pkgconfig pkg-config --cflags --libs openvino")]
pub(crate) struct CApiInstallArgs {
    /// Folder to install to; it gets lib/ and include/
    pub dir: PathBuf,
    /// Releases of OpenVINO whose programs it serves: year, minor and patch, as 2641 for 2026.4.1
    #[arg(long = "as", value_name = "RELEASES", value_delimiter = ',', default_value = "2641")]
    pub releases: Vec<String>,
    /// The library, when it lies neither beside this program nor in ../lib
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}
