//! A kernel that wants nChw8c and can do with plain memory, and the OpenCL text of another.

use carafe_sdk::prelude::*;

fn port(blocked: Option<Blocked>, in_place: Option<usize>) -> PortLayout {
    PortLayout { ty: ElementType::F32, blocked, in_place, constant: false }
}

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
        let Some([n, c, h, w]) = site.inputs[0].shape.to_static().and_then(|s| <[usize; 4]>::try_from(s).ok()) else {
            return Ok(vec![]); // declined
        };
        let form = Blocked { blocks: vec![n, c.div_ceil(8), h, w, 8], order: vec![0, 1, 2, 3, 1] };
        Ok(vec![
            Config { inputs: vec![port(Some(form.clone()), None)], outputs: vec![port(Some(form), None)] },
            Config { inputs: vec![port(None, None)], outputs: vec![port(None, Some(0))] },
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
    fn execute(&mut self, inputs: &[Tensor], _outputs: &[Fact]) -> Result<Vec<Tensor>> {
        let y: Vec<f32> = inputs[0].as_slice::<f32>()?.iter().map(|x| x * 2.0).collect();
        Ok(vec![Tensor::from_vec(inputs[0].shape(), y)?])
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
