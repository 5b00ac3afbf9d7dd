//! Prints the levels of instructions that the tests of kernels run on this machine, and why tile instructions are not among
//! them when they are not.

use carafe_kernels::Isa;

fn main() {
    let names: Vec<_> = Isa::tested().map(Isa::name).collect();
    println!("levels: {}", names.join(", "));
    #[cfg(target_arch = "x86_64")]
    if let Err(why) = carafe_kernels::Amx::detect() {
        println!("no amx: {why}");
    }
}
