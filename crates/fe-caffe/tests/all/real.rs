//! Nets of the wild, where they are at hand: `CARAFE_CAFFE_MODELS` names a folder with the four nets of MTCNN.

use std::path::PathBuf;

#[test]
fn the_nets_of_mtcnn_are_read_and_run() {
    let Ok(folder) = std::env::var("CARAFE_CAFFE_MODELS") else { return };
    for (name, outputs) in [("det1", 2), ("det2", 2), ("det3", 3), ("det4", 5)] {
        let path = PathBuf::from(&folder).join(format!("{name}.prototxt"));
        let model =
            carafe_frontend::read(&carafe_fe_caffe::Caffe::default(), &carafe_frontend::ReadRequest::new(&path))
                .expect(name);
        carafe_graph::verify(&model).expect(name);
        assert_eq!(model.results().len(), outputs, "{name}");
        let shape = model.fact(model.parameters()[0].into()).shape.to_static().expect(name);
        let n: usize = shape.iter().product();
        let x: Vec<f32> = (0..n).map(|i| ((i * 37 % 255) as f32 - 127.5) / 128.0).collect();
        for (shape, values) in crate::common::evaluate(&model, &[(&shape, &x)]) {
            assert!(values.iter().all(|v| v.is_finite()), "{name} {shape:?}");
            println!("{name} {shape:?} {:?}", &values[..values.len().min(6)]);
        }
    }
}
