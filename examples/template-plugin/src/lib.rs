//! A device as a library. The device itself is a type that implements `Device`; here it is the reference device, whose
//! source in `crates/template` is the part to copy. `carafe run model.xml -d MINE --plugin MINE=libtemplate_plugin.so`
//! uses it.

use carafe_template::TemplateDevice;

carafe_sdk::export_plugin! { name: "TEMPLATE_PLUGIN", device: TemplateDevice::default() }
