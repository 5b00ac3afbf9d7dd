//! Files that are cut, changed, wrong or meant to hurt: each ends soon, with an error that says what is wrong, or gives a sound
//! model.

use crate::common::{FAMILIES, case, cases};
use carafe::{Model, ReadRequest, SharedBytes};
use carafe_fe_kaldi::Kaldi;
use carafe_frontend::{Format, read};

fn model(bytes: &[u8]) -> Result<Model, String> {
    Kaldi.recognizes(bytes);
    let bytes = SharedBytes::from_vec(bytes.to_vec());
    let found = read(&Kaldi, &ReadRequest::from_bytes(&bytes)).map_err(|e| e.to_string());
    if let Ok(model) = &found {
        carafe::verify(model).unwrap();
    }
    found
}

fn refused(bytes: &[u8], wanted: &str) {
    let found = model(bytes).expect_err(&format!("`{wanted}` was expected"));
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

// An nnet3 of these lines and of one component, `c`, that does nothing.
fn net3(lines: &str) -> Vec<u8> {
    format!(
        "<Nnet3> \n{lines}\n\n<NumComponents> 1 <ComponentName> c <NoOpComponent> <Dim> 2 <BackpropScale> 1 </NoOpComponent> </Nnet3> "
    )
    .into_bytes()
}

#[test]
fn the_files_that_are_changed_below_are_good() {
    for case in FAMILIES.iter().flat_map(|f| cases(f)) {
        assert!(Kaldi.recognizes(case.binary.as_slice()) && Kaldi.recognizes(case.text.as_slice()), "{}", case.name);
    }
    model(&net3(
        "input-node name=input dim=2\ncomponent-node name=a component=c input=input\noutput-node name=output input=a",
    ))
    .unwrap();
}

#[test]
fn a_file_cut_anywhere_is_refused_or_sound() {
    for (family, name) in SAMPLES {
        let case = case(family, name);
        for whole in [case.binary.as_slice(), case.text.as_slice()] {
            (0..whole.len()).step_by(1 + whole.len() / 400).for_each(|end| drop(model(&whole[..end])));
        }
    }
}

#[test]
fn a_changed_byte_is_refused_or_sound() {
    for (family, name) in SAMPLES {
        let case = case(family, name);
        for whole in [case.binary.as_slice(), case.text.as_slice()] {
            for at in (0..whole.len()).step_by(1 + whole.len() / 300) {
                for change in [0x01, 0x04, 0x80, 0xff] {
                    let mut bytes = whole.to_vec();
                    bytes[at] ^= change;
                    drop(model(&bytes));
                }
            }
        }
    }
}

const SAMPLES: &[(&str, &str)] = &[
    ("nnet1", "ParallelComponent"),
    ("nnet1", "two-Lstm-behind-a-Splice"),
    ("nnet2", "SpliceComponent-constant"),
    ("nnet3", "TimeHeightConvolutionComponent"),
    ("nnet3", "transition-model-extended"),
    ("nnet3", "CompositeComponent"),
    ("recurrent", "lstm"),
    ("statistics", "pool-with-counts"),
];

#[test]
fn what_is_no_kaldi_model_says_so() {
    refused(b"", "not a Kaldi model");
    refused(b"\0B", "not a Kaldi model");
    refused(b"<Something> ", "not a Kaldi model");
    let mixtures = "<TransitionModel> <Topology> </Topology> <Triples> 0 </Triples> <LogProbs> [ ] </LogProbs> </TransitionModel> \
                    <DIMENSION> 39 <NUMPDFS> 3 ";
    refused(mixtures.as_bytes(), "Gaussian mixtures");
    assert!(!Kaldi.recognizes(b"<?xml version=\"1.0\"?><net name=\"x\">"));
    assert!(!Kaldi.recognizes(b"\0BFM \x04"));
    assert!(!Kaldi.recognizes(b""));
}

#[test]
fn lines_of_the_graph_are_checked() {
    let input = "input-node name=input dim=2\n";
    let with = |rest: &str| net3(&format!("{input}{rest}"));
    refused(
        &with("component-node name=a component=d input=input\noutput-node name=output input=a"),
        "there is no component `d`",
    );
    refused(&with("component-node name=a component=c\noutput-node name=output input=a"), "`input=` is missing");
    refused(
        &with("component-node name=a component=c input=b\noutput-node name=output input=a"),
        "it reads `b`, which is no node",
    );
    refused(&with("output-node name=output input=Frob(input)"), "a function of descriptors, found `Frob`");
    refused(&with("somewhat name=a"), "`somewhat` is no node");
    refused(&with("input-node name=input dim=2\noutput-node name=output input=input"), "two nodes are named `input`");
    refused(&net3("input-node name=input dim=0\noutput-node name=output input=input"), "cannot have 0 columns");
    refused(&net3("input-node name=input dim=many\noutput-node name=output input=input"), "`dim` must be a number");
    refused(
        &with("dim-range-node name=a input-node=input dim-offset=1 dim=2\noutput-node name=output input=a"),
        "2 columns from 1 on",
    );
    refused(&with(""), "no output-node");
    refused(b"<Nnet3> \ninput-node name=input dim=2", "ends inside of the lines");
}

#[test]
fn networks_that_cannot_be_fed_frame_by_frame_say_why() {
    let with = |input: &str| {
        net3(&format!(
            "input-node name=input dim=2\ncomponent-node name=a component=c input={input}\noutput-node name=output input=a"
        ))
    };
    refused(&with("Sum(input, IfDefined(Offset(a, 1)))"), "depends on its own future");
    refused(&with("Sum(input, Offset(a, -1))"), "reads its own past without IfDefined");
    refused(&with("Sum(input, IfDefined(a))"), "cycle");
    refused(&with("Offset(input, 2000000000)"), "looks farther than 10000 frames");
    refused(&with("Sum(input, IfDefined(Offset(a, -2000000000)))"), "more than can be remembered");
    refused(&with("Offset(Offset(input, 9223372036854775807), 1)"), "out of range");
    refused(&with("ReplaceIndex(input, t, 0)"), "at one fixed time");
    let turns: Vec<String> = [997, 991, 983].iter().map(|n| format!("Round(input, {n})")).collect();
    refused(
        &with(&format!("Sum({}, {})", turns[0], format_args!("Sum({}, {})", turns[1], turns[2]))),
        "come together after",
    );
    let blstm = b"<Nnet> <BlstmProjected> 2 2 <CellDim> 2 <!EndOfComponent> </Nnet>";
    refused(blstm, "BlstmProjected needs all frames of an utterance at once");
}

#[test]
fn sizes_that_are_not_there_take_no_memory() {
    let chain = |data: &[u8]| [b"\0B<Nnet> <AffineTransform> \x04\x02\0\0\0\x04\x02\0\0\0", data].concat();
    refused(&chain(b"FM \x04\xff\xff\xff\x7f\x04\xff\xff\xff\x7f"), "the file ends early");
    refused(&chain(b"FM \x04\xff\xff\xff\xff\x04\x01\0\0\0"), "expected a size");
    refused(&chain(b"DV \x04\xff\xff\xff\x7f"), "the file ends early");
    refused(&chain(b"CM \0\0\0\0\0\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f"), "the file ends early");
    refused(&chain(b"SM \x04\x01\0\0\0"), "sparse matrices are not supported");
    let splice = b"\0B<Nnet> <Splice> \x04\x02\0\0\0\x04\x02\0\0\0\x04\xff\xff\xff\x7f";
    refused(splice, "the file ends early");
    refused(b"\0B<Nnet> <Sigmoid> \x04\0\0\0\0\x04\x02\0\0\0", "cannot have 2 inputs and 0 outputs");
    refused(b"<Nnet3> \ninput-node name=a dim=1\n\n<NumComponents> 2000000000 ", "has 2000000000 components");
    refused(b"<Nnet> <Splice> 2 2 [ ] <!EndOfComponent> <Tanh> 2 2 <!EndOfComponent> </Nnet>", "");
    let wide = |component: &str| {
        format!(
            "<Nnet3> \ninput-node name=input dim=2147483647\ncomponent-node name=a component=c input=input\n\
             output-node name=output input=a\n\n<NumComponents> 1 <ComponentName> c {component} </Nnet3> "
        )
    };
    let norm = "<BatchNormComponent> <Dim> 2147483647 <BlockDim> 1 <Epsilon> 0.1 <TargetRms> 1 <TestMode> T <Count> 1 <StatsMean> [ 1 ] \
                <StatsVar> [ 1 ] </BatchNormComponent>";
    refused(wide(norm).as_bytes(), "it reads 2147483647 columns, 16777216 are the most");
    model(
        wide("<DropoutMaskComponent> <OutputDim> 2147483647 <DropoutProportion> 0 </DropoutMaskComponent>").as_bytes(),
    )
    .unwrap();
    let triples = b"\0B<TransitionModel> <Topology> \x04\0\0\0\0\x04\0\0\0\0\x04\0\0\0\0</Topology> <Triples> \x04\xff\xff\xff\x7f";
    refused(triples, "transition model");
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let nets = "<ParallelComponent> 1 1 <NestedNnetCount> 1 <NestedNnet> 1 <Nnet> ".repeat(10_000);
    refused(format!("<Nnet> {nets}").as_bytes(), "nested deeper");
    let parts = "<CompositeComponent> <NumComponents> 1 ".repeat(10_000);
    refused(format!("<Nnet3> \n\n<NumComponents> 1 <ComponentName> c {parts}").as_bytes(), "nested no deeper");
    refused(&net3(&format!("output-node name=output input={}", "Sum(".repeat(50_000))), "nested deeper");
}

#[test]
fn components_that_do_not_fit_together_name_the_node() {
    let chain = b"<Nnet> <AffineTransform> 2 3 [\n 1 2 3\n 4 5 6 ] [ 1 2 ] <Rescale> 3 2 [ 1 2 3 ] </Nnet>";
    refused(chain, "component-node `rescale` (Rescale)");
    let copy = b"<Nnet> <Copy> 2 2 [ 1 9 ] </Nnet>";
    refused(copy, "there is no column 8, the input has 2");
    refused(
        b"<Nnet> <Frob> 2 2 <Some> 3 <!EndOfComponent> </Nnet>",
        "1 node of 1 operation cannot be translated: 1 x `Frob`",
    );
}
