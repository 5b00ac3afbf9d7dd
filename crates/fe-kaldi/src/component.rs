//! Components as files have them: a type and fields in any order, each a token with what follows it. In binary a number does not
//! say whether it is a whole one, so the tokens of whole numbers are listed here; everything else tells itself.

use carafe_ark::{Array, Result, Scanner};
use carafe_tensor::Tensor;

/// Components inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 16;

/// One component.
#[derive(Clone, Debug, Default)]
pub(crate) struct Component {
    /// Its name; that of a chain is made up.
    pub(crate) name: String,
    /// Its type, without brackets.
    pub(crate) kind: String,
    /// Token, without brackets, and value.
    pub(crate) fields: Vec<(String, Field)>,
    /// What a CompositeComponent is made of.
    pub(crate) parts: Vec<Component>,
}

/// What follows a token.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Array(Array),
    /// A tensor that no file holds.
    Made(Tensor),
}

impl Component {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, f)| f)
    }
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.field(name)? {
            Field::Int(i) => Some(*i),
            _ => None,
        }
    }
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.field(name)? {
            Field::Bool(b) => Some(*b),
            _ => None,
        }
    }
    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.field(name)? {
            Field::Ints(list) => Some(list),
            _ => None,
        }
    }
    /// The shape of an array.
    pub(crate) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match self.field(name)? {
            Field::Array(array) => Some(array.shape()),
            Field::Made(tensor) => Some(tensor.shape().to_vec()),
            _ => None,
        }
    }
    /// Sets a field, also one that is there.
    pub(crate) fn set(&mut self, name: &str, field: Field) {
        self.fields.retain(|(n, _)| n != name);
        self.fields.push((name.to_string(), field));
    }
}

/// What a token is followed by in binary, where that cannot be seen.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    TwoInts,
    TwoFloats,
    Ints,
    Pairs,
    Float,
    Unknown,
}

const INTS: &[&str] = &[
    "BlockDim",
    "CellDim",
    "ConstComponentDim",
    "DctDim",
    "DctKeepDim",
    "Dim",
    "FeatureDim",
    "FiltXDim",
    "FiltXStep",
    "FiltYDim",
    "FiltYStep",
    "HeightIn",
    "HeightOut",
    "HeightSubsampleOut",
    "InputDim",
    "InputPeriod",
    "InputVectorization",
    "InputXDim",
    "InputYDim",
    "InputZDim",
    "KeyDim",
    "LeftContext",
    "MaxRowsProcess",
    "NestedNnet",
    "NestedNnetCount",
    "NumBlocks",
    "NumComponents",
    "NumFiltersIn",
    "NumFiltersOut",
    "NumHeads",
    "NumLeftInputs",
    "NumLeftInputsRequired",
    "NumLogCountFeatures",
    "NumRepeats",
    "NumRightInputs",
    "NumRightInputsRequired",
    "OutputDim",
    "OutputPeriod",
    "PatchDim",
    "PatchStep",
    "PatchStride",
    "PoolSize",
    "PoolStep",
    "PoolStride",
    "PoolXSize",
    "PoolXStep",
    "PoolYSize",
    "PoolYStep",
    "PoolZSize",
    "PoolZStep",
    "Rank",
    "RankIn",
    "RankOut",
    "RecurrenceInterval",
    "RecurrentDim",
    "RightContext",
    "SpecAugmentMaxRegions",
    "TimeMaskMaxFrames",
    "TimePeriod",
    "TimeStride",
    "UpdatePeriod",
    "ValueDim",
    "ZeroingInterval",
];
const LISTS: &[&str] =
    &["ColumnMap", "Context", "FrameOffset", "Reorder", "RequiredTimeOffsets", "Sizes", "TimeOffsets"];
const FLOATS: &[&str] = &[
    "Alpha",
    "BackpropScale",
    "BiasLearnRateCoef",
    "CellClip",
    "CellDiffClip",
    "ClipGradient",
    "ClippingThreshold",
    "Count",
    "DiffClip",
    "DropoutProportion",
    "DropoutRate",
    "DropoutRetention",
    "DropoutScale",
    "Epsilon",
    "GradClip",
    "GradientBoost",
    "KeyScale",
    "L2Regularize",
    "LearnRateCoef",
    "LearningRate",
    "LearningRateFactor",
    "MaxChange",
    "MaxNorm",
    "NumSamplesHistory",
    "OrthonormalConstraint",
    "P",
    "Power",
    "Scale",
    "Shrinkage",
    "StatsCount",
    "Stddev",
    "TargetRms",
    "VarianceFloor",
    "ZeroedProportion",
    "ZeroingThreshold",
];

fn kind(token: &str) -> Kind {
    match token {
        "RankInOut" => Kind::TwoInts,
        "AlphaInOut" => Kind::TwoFloats,
        "Offsets" => Kind::Pairs,
        t if LISTS.contains(&t) => Kind::Ints,
        t if INTS.contains(&t) => Kind::Int,
        t if FLOATS.contains(&t) || t.ends_with("Coef") => Kind::Float,
        _ => Kind::Unknown,
    }
}

/// The name in a token, `<Name>`.
pub(crate) fn name_of(token: &str) -> Option<&str> {
    token.strip_prefix('<')?.strip_suffix('>')
}

/// Reads a component of nnet2 or nnet3: `<Type> fields </Type>`.
pub(crate) fn component(s: &mut Scanner<'_>, depth: usize) -> Result<Component> {
    let wrong = s.expected("a component, `<Type>`");
    let kind = match name_of(s.token()?) {
        Some(kind) if !kind.starts_with('/') => kind.to_string(),
        _ => return Err(wrong),
    };
    if depth > MAX_DEPTH {
        return Err(s.expected(format!("components nested no deeper than {MAX_DEPTH}")));
    }
    let mut made = Component { kind, ..Component::default() };
    loop {
        let wrong = s.expected(format!("a field of {0} or `</{0}>`", made.kind));
        let token = name_of(s.token()?).ok_or(wrong)?;
        if let Some(end) = token.strip_prefix('/') {
            // Old files close a SumGroupComponent with its opening token.
            match end == made.kind {
                true => return Ok(made),
                false => continue,
            }
        }
        if token == made.kind {
            match made.fields.is_empty() {
                true => continue,
                false => return Ok(made),
            }
        }
        if made.kind == "CompositeComponent" && token == "NumComponents" {
            let count = s.int()?;
            for _ in 0..count {
                made.parts.push(component(s, depth + 1)?);
            }
            continue;
        }
        if let Some(field) = field(s, token)? {
            made.fields.push((token.to_string(), field));
        }
    }
}

/// What follows a token; a token alone that opens a part of the component is nothing.
pub(crate) fn field(s: &mut Scanner<'_>, token: &str) -> Result<Option<Field>> {
    if s.is_binary() { binary(s, token) } else { text(s, token) }
}

fn text(s: &mut Scanner<'_>, token: &str) -> Result<Option<Field>> {
    let mut numbers: Vec<Field> = vec![];
    loop {
        s.skip_space();
        match s.rest().first() {
            None => return Err(s.expected(format!("what follows `<{token}>`"))),
            Some(b'<') => break,
            // The number belongs to the token, the array to whatever is next.
            Some(b'[') if !numbers.is_empty() => break,
            Some(b'[') => {
                let end = s.rest().iter().position(|b| *b == b']').unwrap_or(0);
                let has_pairs = s.rest()[..end].contains(&b',');
                return Ok(Some(match kind(token) {
                    Kind::Pairs if has_pairs => Field::Ints(s.pairs()?),
                    Kind::Ints => Field::Ints(s.ints()?),
                    _ => Field::Array(s.array()?),
                }));
            }
            _ => {}
        }
        let word = s.peek().unwrap_or_default();
        numbers.push(match word {
            "T" | "F" => Field::Bool(s.bool()?),
            word if word.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'+') => Field::Int(s.int()?),
            _ => Field::Float(s.float()?),
        });
        if numbers.len() > 4 {
            return Err(s.expected("a token"));
        }
    }
    let floats = |list: &[Field]| {
        list.iter()
            .map(|f| match f {
                Field::Int(i) => *i as f64,
                Field::Float(x) => *x,
                _ => f64::NAN,
            })
            .collect()
    };
    Ok(match (numbers.len(), kind(token)) {
        (0, _) => flag(token),
        (1, Kind::Float) => Some(Field::Float(match numbers[0] {
            Field::Int(i) => i as f64,
            Field::Float(x) => x,
            _ => return Err(s.expected("a number")),
        })),
        (1, _) => numbers.pop(),
        _ => Some(Field::Floats(floats(&numbers))),
    })
}

// Tokens that open a part of a component say nothing; any other without a value is a switch.
fn flag(token: &str) -> Option<Field> {
    (!matches!(token, "Model" | "ConvolutionModel")).then_some(Field::Bool(true))
}

fn begins_array(bytes: &[u8]) -> bool {
    [&b"FM "[..], b"FV ", b"DM ", b"DV ", b"CM ", b"CM2 ", b"CM3 "].iter().any(|w| bytes.starts_with(w))
}

fn binary(s: &mut Scanner<'_>, token: &str) -> Result<Option<Field>> {
    let rest = s.rest();
    let is = |word: &[u8]| rest.starts_with(word);
    if begins_array(rest) {
        return Ok(Some(Field::Array(s.array()?)));
    }
    if is(b"<") {
        return Ok(flag(token));
    }
    if is(b"T") || is(b"F") {
        return Ok(Some(Field::Bool(s.bool()?)));
    }
    Ok(Some(match kind(token) {
        Kind::Int => Field::Int(s.int()?),
        Kind::TwoInts => Field::Ints(vec![s.int()?, s.int()?]),
        Kind::TwoFloats => Field::Floats(vec![s.float()?, s.float()?]),
        Kind::Ints => Field::Ints(s.ints()?),
        Kind::Pairs => Field::Ints(s.pairs()?),
        Kind::Float => Field::Float(s.float()?),
        Kind::Unknown => unknown(s)?,
    }))
}

/// Whole numbers of components are smaller; a float read as a whole number is larger, or zero.
const MAX_INT: i64 = 1 << 20;

// A field that is not listed: a number when a token follows it, else a list of whole numbers.
fn unknown(s: &mut Scanner<'_>) -> Result<Field> {
    let size = s.rest().first().map_or(0, |b| usize::from((*b as i8).unsigned_abs()));
    let behind = s.rest().get(size + 1..).unwrap_or_default();
    if behind.is_empty() || behind.starts_with(b"<") || begins_array(behind) {
        let mut ahead = s.clone();
        let int = ahead.int()?;
        if size == 8 || (int.abs() >= MAX_INT && size == 4) {
            return Ok(Field::Float(s.float()?));
        }
        *s = ahead;
        return Ok(Field::Int(int));
    }
    Ok(Field::Ints(s.ints()?))
}
