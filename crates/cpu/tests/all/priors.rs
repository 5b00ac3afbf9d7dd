//! Anchors of known sizes are made when a model is compiled.

use crate::nets::{Numbers, assert_like_eval, compile, conv, ints};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::detection::{PriorBox, PriorBoxClustered};
use carafe_ops::movement::StridedSlice;
use carafe_ops::shape::ShapeOf;
use carafe_tensor::{ElementType, PartialShape};

// Height and width of a value.
fn size(m: &mut Model, x: Value) -> Value {
    let shape = ShapeOf { output_type: ElementType::I64 };
    let shape = m.add(format!("shape{}", m.len()), shape, &[x]).unwrap().into();
    let (begin, end, step) = (ints(m, &[2]), ints(m, &[4]), ints(m, &[1]));
    let op = StridedSlice {
        begin_mask: vec![0],
        end_mask: vec![0],
        new_axis_mask: vec![],
        shrink_axis_mask: vec![],
        ellipsis_mask: vec![],
    };
    m.add(format!("size{}", m.len()), op, &[shape, begin, end, step]).unwrap().into()
}

#[test]
fn nothing_is_left_of_anchors_at_run_time() {
    for shape in ["1,3,32,24", "?,3,?,?"] {
        let mut m = Model::new("m");
        let n = &mut Numbers(3);
        let x = m.parameter("x", ElementType::F32, shape.parse::<PartialShape>().unwrap()).unwrap();
        let y = conv(&mut m, n, x, [3, 8], 3, 2);
        let (layer, image) = (size(&mut m, y), size(&mut m, x));
        let anchors = PriorBox {
            min_size: vec![10.0],
            max_size: vec![20.0],
            aspect_ratio: vec![2.0],
            flip: true,
            clip: false,
            step: 2.0,
            offset: 0.5,
            variance: vec![0.1, 0.1, 0.2, 0.2],
            scale_all_sizes: true,
            fixed_ratio: vec![],
            fixed_size: vec![],
            density: vec![],
            min_max_aspect_ratios_order: true,
        };
        let anchors = m.add("anchors", anchors, &[layer, image]).unwrap();
        let clustered = PriorBoxClustered {
            width: vec![8.0, 16.0],
            height: vec![9.0, 12.0],
            clip: true,
            step: 0.0,
            step_w: 2.0,
            step_h: 2.0,
            offset: 0.5,
            variance: vec![0.1],
        };
        let clustered = m.add("clustered", clustered, &[layer, image]).unwrap();
        [y, anchors.into(), clustered.into()].iter().zip(["y", "a", "c"]).for_each(|(&v, name)| {
            m.result(name, v).unwrap();
        });
        let input = [n.tensor(&[1, 3, 32, 24])];
        assert_like_eval(&m, &input, 1e-5);
        let mut request = compile(&m, &Properties::new().with("PERF_COUNT", "YES")).create_request();
        request.set_input(0, input[0].clone()).unwrap();
        request.infer().unwrap();
        let run: Vec<String> = request.profile().into_iter().map(|p| p.kernel).filter(|k| k != "none").collect();
        assert!(run.iter().all(|k| k.contains("conv") || k.contains("reorder")), "{run:?}");
    }
}
