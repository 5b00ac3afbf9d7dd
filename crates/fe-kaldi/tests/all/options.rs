//! Options of mo that belong to Kaldi.

use crate::common::{case, compare, row};
use carafe::{FormatOptions, Model, ReadRequest, Result, SharedBytes, Tensor};

const CHAIN: &str = "<Nnet> <AffineTransform> 3 2 [\n 1 2\n 3 4\n 5 6 ] [ 1 2 3 ] <Softmax> 3 3 </Nnet>";

fn read(text: &[u8], options: &[(&str, &str)]) -> Result<Model> {
    let mut all = FormatOptions::default();
    for (name, value) in options {
        all.set(*name, *value);
    }
    let bytes = SharedBytes::from_vec(text.to_vec());
    carafe::core().read(&ReadRequest { options: Some(&all), ..ReadRequest::from_bytes(&bytes) })
}

fn run(model: &Model, x: &[f32]) -> Vec<f32> {
    let y = model.evaluate(&[Tensor::from_slice(&[1, x.len()], x).unwrap()]).unwrap();
    y[0].to_vec::<f32>().unwrap().into_owned()
}

fn counts(text: &str) -> (std::path::PathBuf, impl Drop) {
    struct Gone(std::path::PathBuf);
    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("carafe-counts-{}-{number}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    (path.clone(), Gone(path))
}

#[test]
fn a_softmax_that_is_an_output_is_left_out() {
    let model = read(CHAIN.as_bytes(), &[("remove_output_softmax", "true")]).unwrap();
    assert_eq!(run(&model, &[1.0, 1.0]), [4.0, 9.0, 14.0]);
    let inside = "<Nnet> <Softmax> 2 2 <!EndOfComponent> <Tanh> 2 2 <!EndOfComponent> </Nnet>";
    let model = read(inside.as_bytes(), &[("remove_output_softmax", "true")]).unwrap();
    assert!(model.find_node("softmax").is_some());
}

#[test]
fn logarithms_of_the_shares_of_counts_are_subtracted_in_front_of_the_softmax() {
    let (path, _gone) = counts("[ 10 0 30 ]\n");
    let path = path.display().to_string();
    let model = read(CHAIN.as_bytes(), &[("counts", &path), ("remove_output_softmax", "true")]).unwrap();
    let y = run(&model, &[1.0, 1.0]);
    compare(&[4.0 - 0.25f64.ln(), f64::from(y[1]), 14.0 - 0.75f64.ln()], &y).unwrap();
    // What was never seen is out of the question.
    assert!(y[1] < -1e38, "{}", y[1]);
    let model = read(CHAIN.as_bytes(), &[("counts", &path)]).unwrap();
    assert_eq!(run(&model, &[1.0, 1.0])[1], 0.0);
}

#[test]
fn counts_must_be_a_line_of_numbers() {
    let failed = |text: &str| {
        let (path, _gone) = counts(text);
        read(CHAIN.as_bytes(), &[("counts", &path.display().to_string())]).unwrap_err().to_string()
    };
    assert!(failed("1 2 x").contains("expected a number, found `x`"));
    assert!(failed("1 2\n3").contains("expected one line"));
    assert!(failed("").contains("no numbers"));
    let missing = read(CHAIN.as_bytes(), &[("counts", "/nowhere/at/all")]).unwrap_err();
    assert_eq!(missing.kind(), carafe::ErrorKind::NotFound);
}

#[test]
fn the_priors_of_a_model_are_used_on_demand() {
    let model = "<TransitionModel> <Topology> </Topology> <Triples> 0 </Triples> <LogProbs> [ ] </LogProbs> </TransitionModel> \
                 <Nnet> <NumComponents> 1 <Components> <FixedBiasComponent> <Bias> [ 1 2 ] </FixedBiasComponent> </Components> </Nnet> \
                 [ 1 3 ]";
    let plain = read(model.as_bytes(), &[]).unwrap();
    assert_eq!(run(&plain, &[0.0, 0.0]), [1.0, 2.0]);
    let with = read(model.as_bytes(), &[("counts", "")]).unwrap();
    compare(&[1.0 - 0.25f64.ln(), 2.0 - 0.75f64.ln()], &run(&with, &[0.0, 0.0])).unwrap();
    let e = read(CHAIN.as_bytes(), &[("counts", "")]).unwrap_err().to_string();
    assert!(e.contains("no priors of its own"), "{e}");
}

#[test]
fn counts_belong_to_one_output() {
    let (path, _gone) = counts("1 1 1 1");
    let two = case("descriptors", "two-outputs-of-different-delay");
    let e = read(two.binary.as_slice(), &[("counts", &path.display().to_string())]).unwrap_err().to_string();
    assert!(e.contains("one output, the network has `output`, `output-xent`"), "{e}");
}

// Memories as inputs and outputs: what one step gives, the next one takes.
#[test]
fn without_memory_the_state_goes_through_inputs_and_outputs() {
    for (family, name) in [("recurrent", "tdnn-lstm"), ("nnet1", "two-Lstm-behind-a-Splice"), ("descriptors", "Round")]
    {
        let case = case(family, name);
        let model = read(case.binary.as_slice(), &[("remove_memory", "true")]).unwrap();
        let types: Vec<&str> = model.nodes().map(|(_, n)| n.op().info().name).collect();
        assert!(!types.contains(&"ReadValue") && !types.contains(&"Assign"), "{name}");
        let names =
            |ids: &[carafe::NodeId]| ids.iter().map(|id| model.node(*id).name().to_string()).collect::<Vec<_>>();
        let (inputs, outputs) = (names(model.parameters()), names(model.results()));
        let memory = |input: &str| {
            let variable = input.split_once("_for_").unwrap().1;
            outputs.iter().position(|o| *o == format!("Result_for_{variable}/sink_port_0")).unwrap()
        };
        let mut state: Vec<Tensor> = model.parameters()[1..]
            .iter()
            .map(|p| {
                let fact = model.fact((*p).into());
                Tensor::zeros(fact.ty, &fact.shape.to_static().unwrap()).unwrap()
            })
            .collect();
        let (frames, dim) = (case.inputs[0].shape()[0], case.outputs[0].shape()[1]);
        let mut found = vec![];
        for step in 0..case.steps() {
            let at = step.saturating_sub(case.context.0).min(frames - 1);
            let given: Vec<Tensor> = std::iter::once(row(&case.inputs[0], at)).chain(state.clone()).collect();
            let all = model.evaluate(&given).unwrap();
            state = inputs[1..].iter().map(|i| all[memory(i)].clone()).collect();
            if step >= case.context.0 + case.context.1 {
                found.extend_from_slice(&all[0].to_vec::<f32>().unwrap());
            }
        }
        assert_eq!(found.len(), frames * dim);
        compare(&case.outputs[0].to_vec::<f64>().unwrap(), &found).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn an_option_of_another_format_is_refused() {
    let e = read(CHAIN.as_bytes(), &[("input_proto", "x")]).unwrap_err().to_string();
    assert!(e.contains("means nothing for a model of format Kaldi"), "{e}");
}
