//! Attributes of every kind come back from a file as they were, whatever they hold, or the file is not written.

use carafe_graph::{Attr, InferCx, Model, Op, OpFactory, OpNew, Registry, Result};
use carafe_ir::{ReadOptions, WriteOptions};
use carafe_tensor::{Dim, ElementType, PartialShape, SharedBytes, TensorError};

/// One attribute of each kind that has a text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test")]
struct Odd {
    #[attr(default = String::new())]
    word: String,
    #[attr(default = vec![])]
    words: Vec<String>,
    #[attr(default = 0.0)]
    single: f32,
    #[attr(default = 0.0)]
    double: f64,
    #[attr(default = vec![])]
    singles: Vec<f32>,
    #[attr(default = vec![])]
    doubles: Vec<f64>,
    #[attr(default = 0)]
    int: i64,
    #[attr(default = 0)]
    natural: u64,
    #[attr(default = vec![])]
    ints: Vec<i64>,
    #[attr(default = vec![])]
    naturals: Vec<u64>,
    #[attr(default = vec![])]
    types: Vec<ElementType>,
    #[attr(default = PartialShape::dynamic())]
    shape: PartialShape,
}

impl Op for Odd {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// `used` is written, `hidden` is not.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test")]
struct Private {
    #[attr(default = 1)]
    used: i64,
    #[attr(default = 7, internal)]
    hidden: i64,
    #[attr(default = None, internal)]
    table: Option<carafe_graph::TensorAttr>,
}

impl Op for Private {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add_all([OpFactory::of::<Odd>(), OpFactory::of::<Private>()]);
    registry
}

fn model_of(op: impl Op, node: &str) -> Model {
    let mut model = Model::new("m");
    let x = model.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
    let y = model.add(node, op, &[x]).unwrap();
    model.result("y", y.into()).unwrap();
    model
}

fn written(model: &Model, options: &WriteOptions) -> Result<String> {
    Ok(carafe_ir::write_to(model, options)?.0)
}

fn again<T: OpNew + Clone>(text: &str, node: &str) -> T {
    let nothing = SharedBytes::from_vec(vec![]);
    let model =
        carafe_ir::read(text, nothing, &registry(), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    model.node(model.find_node(node).expect("the node")).op().get::<T>().expect("the operation").clone()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
    fn list<T>(&mut self, mut item: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| item(self)).collect()
    }
    /// Text that a line of XML can hold: everything but control characters, with those that mean something more often.
    fn word(&mut self) -> String {
        const SPECIAL: [char; 20] = [
            ',',
            ' ',
            '"',
            '\'',
            '\\',
            '[',
            ']',
            '<',
            '>',
            '&',
            ';',
            '\n',
            '\t',
            '\r',
            '\u{a0}',
            '\u{85}',
            '\u{2028}',
            'é',
            '\u{1f600}',
            '#',
        ];
        (0..self.below(6))
            .map(|_| match self.below(3) {
                0 => 'a',
                1 => SPECIAL[self.below(SPECIAL.len())],
                _ => char::from_u32(self.below(0x11_0000) as u32)
                    .filter(|c| *c >= ' ' && !matches!(*c, '\u{fffe}' | '\u{ffff}'))
                    .unwrap_or('b'),
            })
            .collect()
    }
    /// As `word`, with control characters.
    fn wild_word(&mut self) -> String {
        let mut word = self.word();
        if self.below(3) == 0 {
            word.push(char::from(self.below(32) as u8));
        }
        word
    }
    fn double(&mut self) -> f64 {
        match self.below(8) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -0.0,
            4 => (self.below(2001) as f64 - 1000.0) / 8.0,
            _ => f64::from_bits(self.next()),
        }
    }
    fn single(&mut self) -> f32 {
        match self.below(3) {
            0 => self.double() as f32,
            _ => f32::from_bits(self.next() as u32),
        }
    }
    fn shape(&mut self) -> PartialShape {
        match self.below(4) {
            0 => PartialShape::dynamic(),
            _ => {
                let dims = self.list(|r| match r.below(3) {
                    0 => Dim::ANY,
                    1 => Dim::known(r.below(9) as i64),
                    _ => Dim::range(r.below(4) as i64, Some(4 + r.below(4) as i64)),
                });
                PartialShape::new(dims)
            }
        }
    }
    fn odd(&mut self) -> Odd {
        Odd {
            word: self.word(),
            words: self.list(Random::wild_word),
            single: self.single(),
            double: self.double(),
            singles: self.list(Random::single),
            doubles: self.list(Random::double),
            int: self.next() as i64,
            natural: self.next(),
            ints: self.list(|r| r.next() as i64),
            naturals: self.list(Random::next),
            types: self.list(|r| ElementType::ALL[r.below(ElementType::ALL.len())]),
            shape: self.shape(),
        }
    }
}

// Equal but for the bits of NaN, which no text keeps.
fn told(op: &Odd) -> String {
    format!("{op:?}").replace("-NaN", "NaN")
}

#[test]
fn attributes_of_every_kind_survive_a_file() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3000 {
        let op = random.odd();
        let name = format!("n{}", random.word());
        let text = written(&model_of(op.clone(), &name), &WriteOptions::default()).unwrap();
        assert_eq!(told(&again::<Odd>(&text, &name)), told(&op), "{text}");
    }
}

#[test]
fn strings_of_a_list_keep_commas_blanks_and_emptiness() {
    for words in [&["a,b", "c"][..], &[""], &["", ""], &[" a ", "b"], &["a", "", "b"], &["\u{1}", "\n"], &["[x]"], &[]]
    {
        let op = Odd {
            words: words.iter().map(|w| w.to_string()).collect(),
            ..Odd::from_attrs(&Default::default()).unwrap()
        };
        let text = written(&model_of(op.clone(), "n"), &WriteOptions::default()).unwrap();
        assert_eq!(again::<Odd>(&text, "n").words, op.words);
    }
}

#[test]
fn ordinary_strings_of_a_list_are_written_as_openvino_writes_them() {
    let words = ["one", "two words", "c:\\three"].map(String::from).to_vec();
    let op = Odd { words, ..Odd::from_attrs(&Default::default()).unwrap() };
    let text = written(&model_of(op, "n"), &WriteOptions::default()).unwrap();
    assert!(text.contains(r#"words="one, two words, c:\three""#), "{text}");
}

#[test]
fn a_string_with_a_control_character_is_refused_by_name() {
    let op = Odd { word: "a\u{2}".into(), ..Odd::from_attrs(&Default::default()).unwrap() };
    let error = written(&model_of(op, "n"), &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("'\\u{2}'") && error.contains("`n`"), "{error}");
}

#[test]
fn a_number_list_holds_what_its_type_holds() {
    assert_eq!(Vec::<u64>::read(&vec![u64::MAX, 0].write().unwrap()), Ok(vec![u64::MAX, 0]));
    assert!(Vec::<i64>::read(&vec![u64::MAX].write().unwrap()).is_err());
}

#[test]
fn an_internal_attribute_is_left_out_of_files_and_has_its_default_when_read() {
    let table = carafe_graph::TensorAttr(carafe_tensor::Tensor::scalar(1f32));
    let op = Private { used: 2, hidden: 3, table: Some(table) };
    let text = written(&model_of(op, "n"), &WriteOptions::default()).unwrap();
    assert!(text.contains("used=\"2\"") && !text.contains("hidden") && !text.contains("table"), "{text}");
    assert_eq!(again::<Private>(&text, "n"), Private { used: 2, hidden: 7, table: None });
}

#[test]
fn an_internal_attribute_travels_with_a_model_that_goes_on_running() {
    let op = Private { used: 2, hidden: 3, table: None };
    let text = written(&model_of(op.clone(), "n"), &WriteOptions::transfer()).unwrap();
    assert_eq!(again::<Private>(&text, "n"), op);
}

#[test]
fn types_of_onnx_alone_have_names_in_files() {
    let name = |ty: ElementType| ty.name().parse::<ElementType>() as std::result::Result<_, TensorError>;
    for ty in [ElementType::F8E4M3Fnuz, ElementType::F8E5M2Fnuz, ElementType::I2] {
        assert_eq!(name(ty), Ok(ty));
        assert!(!ty.is_in_openvino());
    }
}
