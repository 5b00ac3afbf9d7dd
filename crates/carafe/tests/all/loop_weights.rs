//! Weights in the body of a Loop that depend on a shape which changes from turn to turn.

use carafe::{Properties, Tensor};

const PRODUCT: &str = "
<ir_version: 8, opset_import: [\"\": 17]>
net (float[n,4] x) => (float[k] y, float[a,4] z)
<float[4,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}, int64 trip = {3}, bool yes = {1}>
{
  z, y = Loop (trip, yes, x) <body = b (int64 i, bool c, float[r,4] xi) => (bool co, float[r2,4] xo, float s)
  {
    co = Identity (c)
    xo = Concat <axis = 0> (xi, xi)
    sh = Shape (xi)
    zero = Constant <value = int64 {0}> ()
    rows = Gather <axis = 0> (sh, zero)
    rf = Cast <to = 1> (rows)
    w2 = Mul (w, rf)
    p = MatMul (xi, w2)
    s = ReduceSum <keepdims = 0> (p)
  }>
}
";

const CONVOLUTION: &str = "
<ir_version: 8, opset_import: [\"\": 17]>
net (float[n,1,4] x) => (float[k] y, float[a,1,4] z)
<float[1,1,1] w = {2}, int64 trip = {3}, bool yes = {1}>
{
  z, y = Loop (trip, yes, x) <body = b (int64 i, bool c, float[r,1,4] xi) => (bool co, float[r2,1,4] xo, float s)
  {
    co = Identity (c)
    xo = Concat <axis = 0> (xi, xi)
    sh = Shape (xi)
    zero = Constant <value = int64 {0}> ()
    rows = Gather <axis = 0> (sh, zero)
    rf = Cast <to = 1> (rows)
    w2 = Mul (w, rf)
    p = Conv (xi, w2)
    s = ReduceSum <keepdims = 0> (p)
  }>
}
";

// The sums of all turns, of one compiled model for inputs of these numbers of rows.
fn sums(name: &str, text: &str, rest: &[usize], batches: &[usize]) -> Vec<Vec<f32>> {
    let path = std::env::temp_dir().join(format!("carafe-{name}-{}.onnxtxt", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let core = carafe::core();
    let model = core.read_model(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let compiled = core.compile_model(&model, "CPU", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    let mut all = vec![];
    for &batch in batches {
        let shape: Vec<usize> = std::iter::once(batch).chain(rest.iter().copied()).collect();
        let ones = vec![1f32; shape.iter().product()];
        request.set_input(0, Tensor::from_vec(&shape, ones).unwrap()).unwrap();
        request.infer(()).unwrap();
        all.push(request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned());
    }
    all
}

#[test]
fn a_product_in_a_loop_has_the_weights_of_its_turn() {
    let found = sums("loop-product", PRODUCT, &[4], &[1, 2, 1]);
    assert_eq!(found, [[210., 840., 3360.], [840., 3360., 13440.], [210., 840., 3360.]]);
}

#[test]
fn a_convolution_in_a_loop_has_the_weights_of_its_turn() {
    assert_eq!(sums("loop-convolution", CONVOLUTION, &[1, 4], &[1, 2]), [[8., 32., 128.], [32., 128., 512.]]);
}
