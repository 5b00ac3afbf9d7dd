//! Reads arbitrary text as a CustomLayersMapping.xml, and as the shapes of the command line.
#![no_main]

use carafe_fe_caffe::CustomLayers;
use carafe_frontend::Log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (xml, shapes) = text.split_once('\0').unwrap_or((text, text));
    let layers = CustomLayers::parse(xml, &Log::default());
    let _ = layers.unwrap_or_default().add_shapes(shapes);
});
