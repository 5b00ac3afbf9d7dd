//! Variables that live from one inference to the next. A reader sees the value from before the assignment of the same
//! inference; the graph's order takes care of that.

opset! {
    assign::{Assign, AssignV3},
    read_value::{ReadValue, ReadValueV3},
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::{EvalEnv, Model, Value, run};
    use carafe_tensor::{ElementType, PartialShape, Tensor};

    // Reads, hands the input to the variable, and gives what was read.
    fn delay(read: impl carafe_graph::Op, init: Option<Tensor>) -> Model {
        let mut m = Model::new("delay");
        let x = m.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
        let init: Vec<Value> = init.map(|t| m.constant("init", t).unwrap()).into_iter().collect();
        let before = m.add("read", read, &init).unwrap();
        m.add("assign", Assign { variable_id: "v".into() }, &[x]).unwrap();
        m.result("before", before.into()).unwrap();
        m
    }

    fn feed(m: &Model, env: &mut EvalEnv, x: &[f32]) -> Vec<f32> {
        let out = run(m, &[Tensor::from_slice(&[x.len()], x).unwrap()], env).unwrap();
        out[0].as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn a_run_reads_what_the_run_before_stored() {
        let shape = PartialShape::any_of_rank(1);
        let read = ReadValue { variable_id: "v".into(), variable_type: ElementType::F32, variable_shape: shape };
        let m = delay(read, Some(Tensor::from_slice(&[1], &[7f32]).unwrap()));
        let mut env = EvalEnv::default();
        assert_eq!(feed(&m, &mut env, &[1.0, 2.0]), [7.0]);
        assert_eq!(feed(&m, &mut env, &[3.0]), [1.0, 2.0]);
        env.variables.clear();
        assert_eq!(feed(&m, &mut env, &[4.0]), [7.0]);
    }

    #[test]
    fn the_first_version_does_the_same_with_values_of_other_shapes() {
        let m = delay(ReadValueV3 { variable_id: "v".into() }, Some(Tensor::from_slice(&[0], &[0f32; 0]).unwrap()));
        let mut env = EvalEnv::default();
        assert_eq!(feed(&m, &mut env, &[1.0, 2.0]), []);
        assert_eq!(feed(&m, &mut env, &[3.0]), [1.0, 2.0]);
    }

    #[test]
    fn a_value_that_the_variable_cannot_hold_is_an_error_when_read() {
        let shape = PartialShape::of(&[1]);
        let m = delay(ReadValue { variable_id: "v".into(), variable_type: ElementType::F32, variable_shape: shape }, None);
        let mut env = EvalEnv::default();
        assert_eq!(feed(&m, &mut env, &[1.0, 2.0]), [0.0]);
        let x = Tensor::from_slice(&[1], &[1f32]).unwrap();
        assert!(run(&m, &[x], &mut env).unwrap_err().to_string().contains("inferred as f32[1]"));
    }
}
