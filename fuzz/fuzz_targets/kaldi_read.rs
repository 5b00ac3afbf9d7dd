//! Reads arbitrary bytes as a Kaldi model, and as an archive. Whatever is accepted as a model must hold its invariants and infer
//! again; while it is small, it must also come back from an IR.
#![no_main]

use carafe_fe_kaldi::Kaldi;
use carafe_frontend::Format;
use libfuzzer_sys::fuzz_target;

mod sound;

fuzz_target!(|data: &[u8]| {
    Kaldi.recognizes(data);
    sound::check(&Kaldi, data);
    if let Ok(entries) = carafe_ark::read_ark(data) {
        let written = carafe_ark::write_ark(&entries).expect("what was read can be written");
        carafe_ark::read_ark(&written).expect("what was written can be read");
    }
});
