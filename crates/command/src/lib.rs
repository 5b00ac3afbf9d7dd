//! What the `carafe` command does. Exit codes: 0 success, 1 bad input or model or a device that fails its checks, 2 wrong
//! usage.

#![forbid(unsafe_code)]

mod args;
mod bench_args;
mod c_api_args;
mod calibration;
mod commands;
mod explain;
mod extension_args;
mod inputs;
mod log;
mod operations_args;
mod outputs;
mod progress;
mod quantize_args;
mod utterances;
mod view_args;

use carafe::ErrorKind;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Does what the arguments of the process ask for.
pub fn main() -> ExitCode {
    if cfg!(panic = "abort") {
        std::panic::set_hook(Box::new(|panic| {
            eprintln!("carafe: this is a fault of Carafe itself, please report it: {panic}");
            std::process::exit(1);
        }));
    }
    ExitCode::from(run(std::env::args_os()))
}

/// Does what arguments ask for, the first of which is the name of the program, and gives the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    carafe::report_crashes();
    carafe::log::set_hook(carafe::log::Level::Info, log::print);
    let cli = match args::Cli::try_parse_from(bench_args::two_dashes(arguments)) {
        Ok(cli) => cli,
        Err(e) => {
            // Where the text cannot be written there is nobody to tell.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    match commands::run(cli) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(e) => {
            let text = e.to_string();
            eprintln!("carafe: {}", carafe::printable(&text));
            // A text that names the command itself needs no second pointer.
            if let Some(code) = e.code().filter(|_| !text.contains("carafe explain")) {
                eprintln!("carafe: `carafe explain E{code:04}` tells more");
            }
            if e.kind() == ErrorKind::Usage { 2 } else { 1 }
        }
    }
}
