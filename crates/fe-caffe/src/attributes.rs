//! What a layer's parameter messages say, as attributes under plain names. Kinds come from the schema; a field that it does
//! not know is what it looks like. Messages that belong to another layer type are left out: Caffe does not look at them.

use crate::names::{plain, same};
use crate::net::{Layer, misplaced};
use crate::python;
use crate::schema::{FieldKind, FieldType, MessageType, Schema};
use carafe_frontend::Log;
use carafe_graph::{AttrMap, AttrValue, Error, Result};
use carafe_textproto::{Message, Position, Value};
use std::collections::HashMap;

/// Layer types whose message has another name than they have.
const MESSAGES: &[(&str, &[&str])] = &[
    ("BatchNormFused", &["batch_norm_param"]),
    ("Binarization", &["convolution_param"]),
    ("ConvolutionBinary", &["convolution_param"]),
    ("ConvolutionDepthwise", &["convolution_param"]),
    ("CTCGreedyDecoder", &["ctc_decoder_param"]),
    ("CuDNNBatchNorm", &["batch_norm_param", "scale_param"]),
    ("DataAugmentation", &["augmentation_param"]),
    ("Deconvolution", &["convolution_param"]),
    ("DepthwiseConvolution", &["convolution_param"]),
    ("Im2col", &["convolution_param"]),
    ("LSTM", &["recurrent_param"]),
    ("Normalize", &["norm_param"]),
    ("PriorBoxClustered", &["prior_box_param"]),
    ("RNN", &["recurrent_param"]),
    ("RegionYolo", &["region_yolo_param", "flatten_param"]),
    ("SimplerNMS", &["simpler_nms_param"]),
    ("SpatialTransformer", &["st_param"]),
    ("SyncBN", &["bn_param", "batch_norm_param"]),
];

/// Fields of a layer that are messages and hold no parameters.
const APART: &[&str] = &["param", "include", "exclude", "blobs", "python_param"];

/// No size, axis or count is larger, and rules may multiply a few of these.
const MOST_INT: u64 = 1 << 40;

/// No layer has more parameters; looking one up costs time by their number.
const MOST_ATTRIBUTES: usize = 4096;

/// The attributes of a layer.
pub(crate) fn of(layer: &Layer, schema: &Schema, log: &Log<'_>) -> Result<AttrMap> {
    let mut attrs = AttrMap::new();
    let own = own_messages(&layer.ty, schema);
    for field in layer.tree.fields.iter().filter(|f| !APART.contains(&f.name.as_str())) {
        let Value::Message(m) = &field.value else { continue };
        let known = schema.layer_field(&field.name);
        if known.is_some() && own.as_ref().is_some_and(|own| !own.contains(&field.name)) {
            log.warn(format!(
                "{}: `{}` belongs to another layer type and is not looked at",
                layer.location(),
                field.name
            ));
            continue;
        }
        let ty = match known.map(|f| &f.kind) {
            Some(FieldKind::Message(name)) => schema.message(name),
            _ => None,
        };
        let mut found = vec![];
        read(m, ty, schema, "", &mut found)?;
        for (name, value) in found {
            match attrs.get(&name) {
                None => attrs.set(name, value),
                Some(_) => attrs.set(format!("{}__{name}", field.name), value),
            }
        }
    }
    if let Some(m) = layer.message("python_param") {
        let text = m.get("param_str").and_then(Value::as_str).unwrap_or("");
        python::attributes(text).into_iter().for_each(|(name, value)| attrs.set(name, value));
    }
    Ok(attrs)
}

// The messages that a layer type reads, where that is known.
fn own_messages(layer_type: &str, schema: &Schema) -> Option<Vec<String>> {
    if let Some((_, messages)) = MESSAGES.iter().find(|(ty, _)| same(ty, layer_type)) {
        return Some(messages.iter().map(|m| m.to_string()).collect());
    }
    let wanted = format!("{}param", plain(layer_type));
    let fields = ["LayerParameter", "ForkLayerParameter"].into_iter().filter_map(|m| schema.message(m));
    let found = fields.flat_map(|m| &m.fields).find(|f| plain(&f.name) == wanted)?;
    Some(vec![found.name.clone()])
}

type Found = Vec<(String, AttrValue)>;

fn read(m: &Message, ty: Option<&MessageType>, schema: &Schema, prefix: &str, into: &mut Found) -> Result<()> {
    let mut order: Vec<&str> = vec![];
    let mut groups: HashMap<&str, Vec<(Position, &Value)>> = HashMap::new();
    for field in &m.fields {
        let values = groups.entry(&field.name).or_insert_with(|| {
            order.push(&field.name);
            vec![]
        });
        match &field.value {
            Value::List(items) => values.extend(items.iter().map(|(at, v)| (*at, v))),
            v => values.push((field.at, v)),
        }
    }
    if into.len() + order.len() > MOST_ATTRIBUTES {
        return Err(Error::invalid(format!("has more than {MOST_ATTRIBUTES} parameters")));
    }
    for field in order {
        let name = format!("{prefix}{field}");
        let known = ty.and_then(|ty| ty.named(field));
        let values = groups.remove(field).unwrap_or_default();
        if values.iter().any(|(_, v)| matches!(v, Value::Message(_))) {
            let inner = match known.map(|f| &f.kind) {
                Some(FieldKind::Message(name)) => schema.message(name),
                _ => None,
            };
            // The second of several messages is `name__1__field`.
            for (i, (at, v)) in values.into_iter().enumerate() {
                let Value::Message(inner_message) = v else {
                    return Err(misplaced(at, format!("`{name}` must be a message, found {}", v.describe())));
                };
                let prefix = if i == 0 { format!("{name}__") } else { format!("{name}__{i}__") };
                read(inner_message, inner, schema, &prefix, into)?;
            }
            continue;
        }
        let value = match known {
            Some(known) => known_value(known, &values, schema)?,
            None => unknown_value(&values),
        };
        into.extend(value.map(|v| (name, v)));
    }
    Ok(())
}

fn known_value(ty: &FieldType, values: &[(Position, &Value)], schema: &Schema) -> Result<Option<AttrValue>> {
    let refuse = |at: Position, v: &Value, wanted: &str| {
        misplaced(at, format!("`{}` must be {wanted}, found {}", ty.name, v.describe()))
    };
    let int = |(at, v): &(Position, &Value), signed: bool, bits: u32| {
        let wanted = if signed { "a whole number" } else { "a whole number, not negative" };
        let n = v.as_i64().filter(|n| signed || *n >= 0).ok_or_else(|| refuse(*at, v, wanted))?;
        let fits = if bits == 32 { n.unsigned_abs() <= u64::from(u32::MAX) } else { n.unsigned_abs() <= MOST_INT };
        if fits { Ok(n) } else { Err(misplaced(*at, format!("`{}` = {n} is beyond any size or axis", ty.name))) }
    };
    let float = |(at, v): &(Position, &Value)| v.as_f64().ok_or_else(|| refuse(*at, v, "a number"));
    let word = |(at, v): &(Position, &Value), of: &str| match v {
        Value::Word(w) => Ok(w.clone()),
        Value::Int(n) => {
            let known = i64::try_from(*n).ok().and_then(|n| schema.word(of, n));
            known.map(str::to_string).ok_or_else(|| refuse(*at, v, "a word of its list"))
        }
        v => Err(refuse(*at, v, "a word")),
    };
    let text = |(at, v): &(Position, &Value)| match v {
        Value::Str(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        v => Err(refuse(*at, v, "a string")),
    };
    let bool = |(at, v): &(Position, &Value)| v.as_bool().ok_or_else(|| refuse(*at, v, "true or false"));
    if ty.repeated {
        let all = values.iter();
        return Ok(Some(match &ty.kind {
            FieldKind::Int { signed, bits, .. } => {
                AttrValue::Ints(all.map(|v| int(v, *signed, *bits)).collect::<Result<_>>()?)
            }
            FieldKind::Bool => AttrValue::Ints(all.map(|v| bool(v).map(i64::from)).collect::<Result<_>>()?),
            FieldKind::Float | FieldKind::Double => AttrValue::Floats(all.map(float).collect::<Result<_>>()?),
            FieldKind::Str => AttrValue::Strs(all.map(text).collect::<Result<_>>()?),
            FieldKind::Enum(of) => AttrValue::Strs(all.map(|v| word(v, of)).collect::<Result<_>>()?),
            FieldKind::Message(_) => return refuse_all(values, |at, v| refuse(at, v, "a message")),
        }));
    }
    let Some(last) = values.last() else { return Ok(None) };
    Ok(Some(match &ty.kind {
        FieldKind::Int { signed, bits, .. } => AttrValue::Int(int(last, *signed, *bits)?),
        FieldKind::Bool => AttrValue::Bool(bool(last)?),
        FieldKind::Float | FieldKind::Double => AttrValue::Float(float(last)?),
        FieldKind::Str => AttrValue::Str(text(last)?),
        FieldKind::Enum(of) => AttrValue::Str(word(last, of)?),
        FieldKind::Message(_) => return refuse_all(values, |at, v| refuse(at, v, "a message")),
    }))
}

fn refuse_all(values: &[(Position, &Value)], refuse: impl Fn(Position, &Value) -> Error) -> Result<Option<AttrValue>> {
    match values.first() {
        Some((at, v)) => Err(refuse(*at, v)),
        None => Ok(None),
    }
}

// What a field looks like that nobody declared.
fn unknown_value(values: &[(Position, &Value)]) -> Option<AttrValue> {
    let single = |v: &Value| match v {
        Value::Int(n) => i64::try_from(*n).map_or(AttrValue::Text(n.to_string()), AttrValue::Int),
        Value::Float(x) => AttrValue::Float(*x),
        v => match v.as_bool() {
            Some(b) => AttrValue::Bool(b),
            None => AttrValue::Str(shown(v)),
        },
    };
    match values {
        [] => None,
        [(_, one)] => Some(single(one)),
        many => Some(if let Some(ints) = many.iter().map(|(_, v)| v.as_i64()).collect::<Option<Vec<_>>>() {
            AttrValue::Ints(ints)
        } else if let Some(floats) = many.iter().map(|(_, v)| v.as_f64()).collect::<Option<Vec<_>>>() {
            AttrValue::Floats(floats)
        } else {
            AttrValue::Strs(many.iter().map(|(_, v)| shown(v)).collect())
        }),
    }
}

fn shown(v: &Value) -> String {
    match v {
        Value::Str(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Word(w) => w.clone(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Message(_) | Value::List(_) => v.describe(),
    }
}
