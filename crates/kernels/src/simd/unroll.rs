//! Loops over registers.

/// Repeats a block with a literal index while it is below a bound that is known when compiling. Unlike a loop it is gone
/// before arrays are split into registers, and what lies beyond the bound is not even handed to the optimiser.
macro_rules! unroll {
    ($i:ident < $n:expr, [$($k:literal)*] $body:block) => {
        $(if const { $k < $n } {
            #[allow(unused_variables)]
            let $i: usize = $k;
            $body
        })*
    };
    ($i:ident < $n:expr, 4, $body:block) => { unroll!($i < $n, [0 1 2 3] $body) };
    ($i:ident < $n:expr, 8, $body:block) => { unroll!($i < $n, [0 1 2 3 4 5 6 7] $body) };
    ($i:ident < $n:expr, 14, $body:block) => { unroll!($i < $n, [0 1 2 3 4 5 6 7 8 9 10 11 12 13] $body) };
}
pub(crate) use unroll;
