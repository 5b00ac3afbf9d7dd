//! Sums of embeddings, as language models begin with, against the operations' own evaluation.

use crate::nets::{Numbers, assert_like_eval, compile, weights};
use carafe_device::Properties;
use carafe_graph::{Model, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::indexing::Gather;
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn bert(shape: &str, ty: ElementType, kinds: &str, stored: bool) -> Model {
    let mut m = Model::new("bert");
    let n = &mut Numbers(3);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let mut gather = |m: &mut Model, name: &str, rows: usize, shape: &str| -> Value {
        let table = weights(m, n, &[rows, 40]);
        let ids = m.parameter(name, ty, shape.parse::<PartialShape>().unwrap()).unwrap();
        m.add(format!("{name}_rows"), Gather { batch_dims: 0 }, &[table, ids, axis]).unwrap().into()
    };
    let (words, types) = (gather(&mut m, "words", 50, shape), gather(&mut m, "types", 2, kinds));
    let positions = if stored { weights(&mut m, n, &[1, 7, 40]) } else { gather(&mut m, "positions", 12, "1,?") };
    let y: Value = m.add("some", Add::default(), &[words, types]).unwrap().into();
    let y = m.add("all", Add::default(), &[y, positions]).unwrap();
    m.result("y", y.into()).unwrap();
    m
}

fn ids(n: &mut Numbers, ty: ElementType, shape: &[usize], rows: usize) -> Tensor {
    let list: Vec<i64> = (0..shape.iter().product()).map(|_| n.below(rows) as i64).collect();
    Tensor::from_i64(ty, shape, &list).unwrap()
}

#[test]
fn three_tables_are_one_step() {
    for (ty, stored) in [(ElementType::I64, false), (ElementType::I32, true)] {
        for shape in ["2,7", "?,?"] {
            let model = bert(shape, ty, shape, stored);
            let n = &mut Numbers(4);
            let mut inputs = vec![ids(n, ty, &[2, 7], 60), ids(n, ty, &[2, 7], 2)];
            if !stored {
                inputs.push(ids(n, ty, &[1, 7], 12));
            }
            assert_like_eval(&model, &inputs, 1e-6);
            let compiled = compile(&model, &Properties::new().with("PERF_COUNT", "YES"));
            let mut request = compiled.create_request();
            inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
            request.infer().unwrap();
            let kernels: Vec<String> =
                request.profile().into_iter().map(|p| p.kernel).filter(|k| k != "none").collect();
            assert_eq!(kernels, ["embedding_sum_f32"]);
        }
    }
}

#[test]
fn ids_that_repeat_along_the_last_axis_give_what_they_should() {
    let n = &mut Numbers(4);
    let model = bert("2,7", ElementType::I64, "2,1", false);
    let ty = ElementType::I64;
    assert_like_eval(&model, &[ids(n, ty, &[2, 7], 50), ids(n, ty, &[2, 1], 2), ids(n, ty, &[1, 7], 12)], 1e-6);
}
