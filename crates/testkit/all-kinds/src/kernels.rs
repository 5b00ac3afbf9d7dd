//! A kernel that wants nChw8c and can do with plain memory, and the OpenCL text of another.

use carafe_sdk::prelude::*;

/// Twice the input, in nChw8c.
pub(crate) struct Blocked8;

impl Kernel for Blocked8 {
    fn device(&self) -> &str {
        "TEMPLATE"
    }
    fn op(&self) -> &str {
        "Twice"
    }
    fn opset(&self) -> Option<&str> {
        Some("kinds")
    }
    fn name(&self) -> &str {
        "twice_nchw8c"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        if site.inputs[0].shape.to_static().is_none_or(|s| s.len() != 4) {
            return Ok(vec![]); // declined
        }
        let port = |layout| vec![PortLayout::new(ElementType::F32, layout)];
        Ok(vec![
            Config::new(port(Layout::BlockedBy(8)), port(Layout::BlockedBy(8))),
            Config::new(port(Layout::Plain), vec![PortLayout::plain(ElementType::F32).in_place_of(0)]),
        ])
    }
    fn init(&self, _site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        if config > 1 {
            return Err(Error::usage(format!("configuration {config} was not offered")));
        }
        Ok(Box::new(Doubling))
    }
}

struct Doubling;

impl PreparedKernel for Doubling {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        io.map::<f32>(0, |x| x * 2.0)
    }
}

pub(crate) const CL_XML: &str = r#"<CustomLayer name="Places" type="SimpleGPU" version="1">
    <Kernel entry="places"><Source filename="places.cl"/></Kernel>
    <Buffers>
        <Tensor arg-index="0" type="input" port-index="0" format="BFYX"/>
        <Tensor arg-index="1" type="output" port-index="0" format="BFYX"/>
    </Buffers>
    <WorkSizes global="B*F*Y*X" dim="output"/>
</CustomLayer>"#;

pub(crate) const CL_SOURCE: &str = "__kernel void places(const __global INPUT0_TYPE* x, __global OUTPUT0_TYPE* y) {
    y[get_global_id(0)] = x[get_global_id(0)];
}
";
