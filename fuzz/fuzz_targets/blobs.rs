//! Imports arbitrary bytes as an exported model of CPU, TEMPLATE or HETERO: the first byte says which, and whether the rest is
//! the whole file or the payload behind a right header, whose checksum a change could never meet by chance. What is accepted
//! can be exported again. The header of an entry of the cache is read from the same bytes.
#![no_main]

use carafe::{Core, EntryInfo, Properties, SharedBytes};
use carafe_device::{BlobHeader, write_blob};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CORE: LazyLock<Core> = LazyLock::new(carafe::core);
const DEVICES: [(&str, &str); 3] = [("CPU", "CPU"), ("TEMPLATE", "TEMPLATE"), ("HETERO", "HETERO:TEMPLATE,CPU")];

fuzz_target!(|data: &[u8]| {
    let _ = EntryInfo::of(data);
    let Some((&kind, rest)) = data.split_first() else { return };
    let (name, device) = DEVICES[usize::from(kind) % DEVICES.len()];
    let blob = if kind < 128 {
        let header = BlobHeader { device: name.into(), version: carafe::VERSION.into() };
        let mut blob = vec![];
        write_blob(&header, rest, &mut blob).expect("memory can be written to");
        blob
    } else {
        rest.to_vec()
    };
    let Ok(compiled) = CORE.import_model(SharedBytes::from_vec(blob), device, &Properties::new()) else { return };
    let _ = compiled.create_infer_request();
    compiled.export(&mut vec![]).expect("what was imported can be exported");
});
