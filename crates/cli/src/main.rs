//! The `carafe` command. All that it does is in crate `carafe-command`, which is built for size: this one is built for speed,
//! because it sets how the whole program is optimised when it is linked.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    carafe_command::main()
}
