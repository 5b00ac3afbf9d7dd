//! Reads arbitrary bytes as a program of Paddle: a `ProgramDesc` or JSON. Whatever is accepted must hold its invariants and infer again;
//! while it is small, it must also come back from an IR. A program with parameters takes them from the bytes behind a mark.
#![no_main]

use carafe_fe_paddle::Paddle;
use carafe_frontend::{Content, Format, ReadRequest};
use carafe_tensor::SharedBytes;
use libfuzzer_sys::fuzz_target;

mod sound;

/// Between a program and its parameters.
const MARK: &[u8] = b"\0params\0";

fuzz_target!(|data: &[u8]| {
    Paddle.recognizes(data);
    let at = data.windows(MARK.len()).position(|w| w == MARK);
    let Some(at) = at else { return sound::check(&Paddle, data) };
    let model = SharedBytes::from_vec(data[..at].to_vec());
    let weights = SharedBytes::from_vec(data[at + MARK.len()..].to_vec());
    let mut request = ReadRequest::from_bytes(&model);
    request.weights = Some(Content::Bytes(&weights));
    if let Ok(model) = carafe_frontend::read(&Paddle, &request) {
        carafe_graph::verify(&model).unwrap_or_else(|e| panic!("not a sound model: {e}"));
    }
});
