//! Reads arbitrary bytes as an MXNet model: a symbol up to the first zero byte, arrays behind it. Whatever is accepted must hold
//! its invariants and infer again; while it is small, it must also come back from an IR.
#![no_main]

use carafe_fe_mxnet::Mxnet;
use carafe_frontend::Format;
use libfuzzer_sys::fuzz_target;

mod sound;

fuzz_target!(|data: &[u8]| {
    Mxnet.recognizes(data);
    let end = data.iter().position(|b| *b == 0);
    let (symbol, arrays) = end.map_or((data, None), |at| (&data[..at], Some(&data[at + 1..])));
    sound::check_parts(&Mxnet, symbol, arrays.filter(|a| !a.is_empty()));
});
