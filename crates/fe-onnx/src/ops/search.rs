//! GreedySearch and BeamSearch of `com.microsoft`: a loop around a sub-graph that gives scores of the next token. A decoder
//! alone (GPT) is fed the prompt first; one with an encoder (T5, Whisper) goes on from what that one gives.

use super::contrib::MS;
use super::search_beams::{Beams, Search, Step, filled_up};
use super::search_loop::Repeat;
use super::search_scores::{Wishes, without_repeats};
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, SubModel, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::compare::NotEqual;
use carafe_ops::search::CumSum;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "BeamSearch", 1, beam_search),
    rule_in(MS, "GreedySearch", 1, greedy_search),
    rule_in(MS, "NGramRepeatBlock", 1, |n| {
        let (sequences, scores) = (n.input(0)?, n.input(1)?);
        let never = n.scalar_like(scores, f64::NEG_INFINITY)?;
        Ok(without_repeats(n, scores, sequences, n.required("ngram_size")?, never)?.into())
    }),
];

fn greedy_search(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.attr("model_type", 0i64)? != 0 {
        return Err(n.unsupported("GreedySearch of a model with an encoder (model_type 1) is not supported"));
    }
    n.ignore(&["decoder_start_token_id"]);
    let longest = length_input(n, 1)?;
    let search = Search { beams: None, ..settings(n, [2, 3, 4, 5], longest)? };
    let mask = n.opt(6)?;
    let done = decoder_alone(n, &search, longest, mask)?;
    Ok(filled_up(n, done.sequences, 1, longest, search.pad)?.into())
}

fn beam_search(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.wants_output(2) {
        return Err(n.unsupported("the scores of all words (output 2) are not supported"));
    }
    if n.has(11) {
        return Err(n.unsupported("logits_processor is not supported"));
    }
    let longest = length_input(n, 1)?;
    let count = length_input(n, 3)?;
    let wanted = length_input(n, 4)?;
    let penalty = match n.opt(5)? {
        Some(penalty) => penalty,
        None => n.scalar(ElementType::F32, 1.0)?,
    };
    let penalty = n.reshape(penalty, &[])?;
    let penalty = n.convert(penalty, ElementType::F32)?;
    let beams = Beams { count, longest, penalty, early: n.attr("early_stopping", 0i64)? != 0 };
    let mut search = Search { beams: Some(beams), ..settings(n, [2, 6, 7, 8], longest)? };
    if let Some(mask) = search.wishes.allowed_first {
        search.wishes.allowed_first = Some(repeated(n, mask, count)?);
    }
    let mask = n.opt(9)?;
    let done = match n.attr("model_type", 0i64)? {
        0 => {
            n.ignore(&["decoder_start_token_id"]);
            decoder_alone(n, &search, longest, mask)?
        }
        1 | 2 => with_encoder(n, &search, longest, mask)?,
        other => return Err(n.unsupported(format!("model_type {other} is not supported; supported: 0, 1 and 2"))),
    };
    let [sequences, scores] = search.finish(n, &beams, done.sequences, &done.states)?;
    let zero = n.i64s(&[0])?;
    let (sequences, scores) = (n.cut(sequences, zero, wanted, 1)?, n.cut(scores, zero, wanted, 1)?);
    Ok(vec![sequences, scores].into())
}

// An input of one number, as an i64 vector of one.
fn length_input(n: &mut NodeCx<'_>, input: usize) -> Result<Value> {
    let length = n.input(input)?;
    let length = n.convert(length, ElementType::I64)?;
    n.reshape(length, &[1])
}

// `inputs` are the positions of the least length, the penalty of repetition and the two masks.
fn settings(n: &mut NodeCx<'_>, inputs: [usize; 4], longest: Value) -> Result<Search> {
    let [min_length, repetition, allowed, allowed_first] = inputs;
    let min_length = if n.has(min_length) { Some(length_input(n, min_length)?) } else { None };
    let repetition = match n.opt(repetition)? {
        Some(penalty) => {
            let penalty = n.reshape(penalty, &[])?;
            Some(n.convert(penalty, ElementType::F32)?)
        }
        None => None,
    };
    let wishes = Wishes {
        repetition,
        ngram: n.attr("no_repeat_ngram_size", 0)?,
        allowed: n.opt(allowed)?,
        allowed_first: n.opt(allowed_first)?,
        min_length,
        eos: n.required("eos_token_id")?,
    };
    let words = n.opt_attr("vocab_size")?.filter(|&words: &i64| words > 0);
    let beams = Beams { count: longest, longest, penalty: longest, early: false };
    Ok(Search { wishes, pad: n.required("pad_token_id")?, words, beams: Some(beams) })
}

// Every row `count` times (a vector of one).
fn repeated(n: &mut NodeCx<'_>, v: Value, count: Value) -> Result<Value> {
    let rank = n.known_rank(v)? as i64;
    let wide = n.unsqueeze(v, &[1])?;
    let (one, ones) = (n.i64s(&[1])?, n.i64s(&vec![1; rank as usize - 1])?);
    let shape = n.concat(&[one, count, ones], 0)?;
    let wide = n.stretch(wide, shape)?;
    let (rows, shape) = (n.i64s(&[-1])?, n.shape_of(v)?);
    let rest = n.part(shape, 1, rank, 0)?;
    let shape = n.concat(&[rows, rest], 0)?;
    n.reshaped(wide, shape, false)
}

fn for_beams(n: &mut NodeCx<'_>, search: &Search, v: Value) -> Result<Value> {
    match &search.beams {
        Some(beams) => repeated(n, v, beams.count),
        None => Ok(v),
    }
}

// The sequences and states at the end.
struct Done {
    sequences: Value,
    states: Vec<Value>,
}

// Zeros for a parameter `[.., rows, heads, time, size]` of a sub-graph, without any time.
fn no_past(n: &mut NodeCx<'_>, sub: &SubModel, parameter: usize, rows: Value) -> Result<Value> {
    let fact = sub.model.fact(sub.model.parameters()[parameter].into()).clone();
    let dims: Vec<Option<i64>> = fact.shape.dims().map(|d| d.iter().map(|d| d.get()).collect()).unwrap_or_default();
    let n_dims = dims.len();
    let (4 | 5, Some(heads), Some(size)) =
        (n_dims, dims.get(n_dims.wrapping_sub(3)).copied().flatten(), dims.last().copied().flatten())
    else {
        return Err(n.unsupported(format!(
            "parameter {parameter} of the decoder must declare the number and size of its heads, found {}",
            fact.shape
        )));
    };
    let zero = n.scalar(fact.ty, 0.0)?;
    let tail = n.i64s(&[heads, 0, size])?;
    let shape = match n_dims {
        5 => {
            let two = n.i64s(&[2])?;
            n.concat(&[two, rows, tail], 0)?
        }
        _ => n.concat(&[rows, tail], 0)?,
    };
    n.stretch(zero, shape)
}

fn tensors(n: &NodeCx<'_>, items: Vec<Item>) -> Result<Vec<Value>> {
    let tensor = |item: Item| match item {
        Item::Tensor(v) => Ok(v),
        _ => Err(n.fail("every output of the sub-graph must be a tensor")),
    };
    items.into_iter().map(tensor).collect()
}

// How many tokens are still to come, a scalar.
fn trips(n: &mut NodeCx<'_>, longest: Value, sequences: Value) -> Result<Value> {
    let (length, zero) = (n.size(sequences, 1)?, n.i64s(&[0])?);
    let left = n.minus(longest, length)?;
    let left = n.max(left, zero)?;
    n.reshape(left, &[])
}

fn decoder_alone(n: &mut NodeCx<'_>, search: &Search, longest: Value, mask: Option<Value>) -> Result<Done> {
    let prompt = n.input(0)?;
    let pad = n.scalar_like(prompt, search.pad as f64)?;
    let real = n.emit(NotEqual::default(), &[prompt, pad])?;
    let real = n.convert(real, ElementType::I32)?;
    let time = n.i64(1)?;
    let before = n.emit(CumSum { exclusive: true, reverse: false }, &[real, time])?;
    let positions = n.times(before, real)?;
    let count = n.sum_over(real, &[1], true)?;
    let mask = mask.unwrap_or(real);
    let (prompt, positions) = (for_beams(n, search, prompt)?, for_beams(n, search, positions)?);
    let (mask, count) = (for_beams(n, search, mask)?, for_beams(n, search, count)?);

    let decoder = n.body("decoder", &[])?;
    let (declared, layers) = (decoder.model.parameters().len() - decoder.captured.len(), decoder.outputs.len() - 1);
    if declared != layers + 3 {
        return Err(n.unsupported(format!(
            "a decoder of {layers} layers takes ids, positions, mask and {layers} pasts here, found {declared} inputs"
        )));
    }
    let rows = n.size(prompt, 0)?;
    let pasts = (0..layers).map(|i| no_past(n, &decoder, i + 3, rows)).collect::<Result<Vec<_>>>()?;
    let first = n.scalar(ElementType::Boolean, 1.0)?;
    let states = search.starts(n, prompt)?;
    let mut feeds = Feeds { ids: prompt, positions, mask, pasts, count, sequences: prompt, states };
    let mut goes_on = first;
    let begun = n.has_graph("init_decoder");
    if begun {
        let start = n.body("init_decoder", &[])?;
        let given = [&[feeds.ids, feeds.positions, feeds.mask], &feeds.pasts[..]].concat();
        let outputs = n.inline(&start, &given)?;
        let outputs = tensors(n, outputs)?;
        let step = search.step(n, outputs[0], feeds.sequences, &feeds.states, Some(first))?;
        goes_on = step.goes_on;
        feeds = feeds.after(n, step, &outputs[1..])?;
    }
    let trips = trips(n, longest, feeds.sequences)?;

    let mut repeat = Repeat::new(decoder, trips, goes_on)?;
    let inside = search.moved(|v| repeat.read(n, v))?;
    let head = [feeds.ids, feeds.positions, feeds.mask];
    let mut carried = vec![];
    for (i, &start) in head.iter().chain(&feeds.pasts).enumerate() {
        carried.push(repeat.declared(i, start));
    }
    for &start in [feeds.count, feeds.sequences].iter().chain(&feeds.states) {
        carried.push(repeat.beside(n, start)?);
    }
    let is_first = if begun { None } else { Some(repeat.beside(n, first)?) };
    let now: Vec<Value> = carried.iter().map(|c| c.now).collect();
    let beside = 3 + layers;
    let body = Feeds {
        ids: now[0],
        positions: now[1],
        mask: now[2],
        pasts: now[3..beside].to_vec(),
        count: now[beside],
        sequences: now[beside + 1],
        states: now[beside + 2..].to_vec(),
    };
    let outputs = repeat.outputs.clone();
    let model = repeat.model();
    let step = inside.step(model, outputs[0], body.sequences, &body.states, is_first.map(|c| c.now))?;
    let goes_on = step.goes_on;
    let next = body.after(model, step, &outputs[1..])?;
    let no = model.fixed(carafe_tensor::Tensor::from_f64(ElementType::Boolean, &[], &[0.0])?)?;
    let values = [&[next.ids, next.positions, next.mask], &next.pasts[..], &[next.count, next.sequences], &next.states].concat();
    for (carried, value) in carried.into_iter().zip(values) {
        repeat.becomes(carried, value)?;
    }
    if let Some(is_first) = is_first {
        repeat.becomes(is_first, no)?;
    }
    let end = repeat.finish(n, goes_on)?;
    let n_states = feeds.states.len();
    Ok(Done { sequences: end[beside + 1], states: end[beside + 2..beside + 2 + n_states].to_vec() })
}

// What a decoder is fed, and what is carried beside.
struct Feeds {
    ids: Value,
    positions: Value,
    mask: Value,
    pasts: Vec<Value>,
    /// The position of the next token; `[row, 1]`.
    count: Value,
    sequences: Value,
    states: Vec<Value>,
}

impl Feeds {
    fn after<C: Compose>(&self, c: &mut C, step: Step, presents: &[Value]) -> Result<Feeds> {
        let ids = c.with_axes(step.tokens, &[1])?;
        let one = c.number(self.mask, 1.0)?;
        let shape = c.put(carafe_ops::shape::ShapeOf { output_type: ElementType::I64 }, &[ids])?;
        let ones = c.stretch(one, shape)?;
        let mask = super::search_scores::joined(c, &[self.mask, ones], 1)?;
        let pasts = match step.rows {
            Some(rows) => presents.iter().map(|&p| c.gather(p, rows, 1)).collect::<Result<Vec<_>>>()?,
            None => presents.to_vec(),
        };
        let (positions, count) = (self.count, c.plus_number(self.count, 1.0)?);
        Ok(Feeds { ids, positions, mask, pasts, count, sequences: step.sequences, states: step.states })
    }
}

fn with_encoder(n: &mut NodeCx<'_>, search: &Search, longest: Value, mask: Option<Value>) -> Result<Done> {
    let Some(beams) = search.beams else { return Err(n.unsupported("an encoder needs beams")) };
    let source = n.input(0)?;
    let mask = match mask {
        Some(mask) => Some(mask),
        None if n.ty(source).is_float() => None,
        None => Some(without_left_padding(n, source, search.pad)?),
    };
    let start = match n.opt(10)? {
        Some(start) => start,
        None => {
            let token: i64 = n.required("decoder_start_token_id")?;
            let token = n.scalar(ElementType::I32, token as f64)?;
            let (rows, one) = (n.size(source, 0)?, n.i64s(&[1])?);
            let shape = n.concat(&[rows, one], 0)?;
            n.stretch(token, shape)?
        }
    };
    n.ignore(&["decoder_start_token_id"]);
    let encoder = n.body("encoder", &[])?;
    let decoder = n.body("decoder", &[])?;
    let declared = decoder.model.parameters().len() - decoder.captured.len();
    let kept = decoder.outputs.len() - 1;
    let named = [("encoder_input_ids", Some(source)), ("encoder_attention_mask", mask), ("decoder_input_ids", Some(start))];
    let mut given = vec![];
    for &p in &encoder.model.parameters()[..encoder.model.parameters().len() - encoder.captured.len()] {
        let name = encoder.model.parameter_name(p);
        let found = named.iter().find(|(n, _)| *n == name).and_then(|(_, v)| *v);
        given.push(found.ok_or_else(|| n.unsupported(format!("the encoder takes `{name}`, which is not known here")))?);
    }
    let outputs = n.inline(&encoder, &given)?;
    let outputs = tensors(n, outputs)?;
    let sequences = repeated(n, start, beams.count)?;
    let states = search.starts(n, sequences)?;
    let yes = n.scalar(ElementType::Boolean, 1.0)?;
    let ids_at_once = decoder.model.fact(decoder.model.parameters()[0].into()).shape.dim(1).get() != Some(1);

    // An encoder that gives scores has taken the first step; else the decoder begins with nothing.
    let begun = outputs.len() == 2 * kept + 2;
    let (hidden, selfs, cross, sequences, states, ids, goes_on) = if begun {
        let logits = repeated(n, outputs[0], beams.count)?;
        let step = search.step(n, logits, sequences, &states, Some(yes))?;
        let ids = if ids_at_once { step.sequences } else { n.unsqueeze(step.tokens, &[1])? };
        let mut pasts = vec![];
        for &v in &outputs[2..] {
            pasts.push(repeated(n, v, beams.count)?);
        }
        let cross = pasts.split_off(kept);
        (Some(outputs[1]), pasts, cross, step.sequences, step.states, ids, step.goes_on)
    } else if outputs.len() == kept {
        let rows = n.size(sequences, 0)?;
        let first = declared - 2 * kept;
        let selfs = (0..kept).map(|i| no_past(n, &decoder, first + i, rows)).collect::<Result<Vec<_>>>()?;
        let mut cross = vec![];
        for &v in &outputs {
            cross.push(repeated(n, v, beams.count)?);
        }
        (None, selfs, cross, sequences, states, sequences, yes)
    } else {
        let found = outputs.len();
        return Err(n.unsupported(format!(
            "a decoder that keeps {kept} values needs an encoder with {kept} or {} outputs, found {found}",
            2 * kept + 2
        )));
    };
    if declared < 2 * kept + 1 {
        return Err(n.fail(format!("a decoder that keeps {kept} values has at least {} inputs, found {declared}", 2 * kept + 1)));
    }
    let trips = trips(n, longest, sequences)?;
    let mut fixed = vec![];
    for at in 1..declared - 2 * kept {
        let name = decoder.model.parameter_name(decoder.model.parameters()[at]);
        let value = match name.as_str() {
            "encoder_input_ids" => Some(source),
            "encoder_attention_mask" => mask,
            "encoder_hidden_states" => hidden,
            _ => None,
        };
        let value = value.ok_or_else(|| n.unsupported(format!("the decoder takes `{name}`, which is not known here")))?;
        fixed.push((at, repeated(n, value, beams.count)?));
    }

    let mut repeat = Repeat::new(decoder, trips, goes_on)?;
    let inside = search.moved(|v| repeat.read(n, v))?;
    let first = declared - 2 * kept;
    for (at, value) in fixed {
        repeat.give(at, value);
    }
    for (i, &value) in cross.iter().enumerate() {
        repeat.give(first + kept + i, value);
    }
    let mut carried = vec![repeat.declared(0, ids)];
    for (i, &start) in selfs.iter().enumerate() {
        carried.push(repeat.declared(first + i, start));
    }
    for &start in [sequences].iter().chain(&states) {
        carried.push(repeat.beside(n, start)?);
    }
    let is_first = if begun { None } else { Some(repeat.beside(n, yes)?) };
    let now: Vec<Value> = carried.iter().map(|c| c.now).collect();
    let outputs = repeat.outputs.clone();
    let model = repeat.model();
    let step = inside.step(model, outputs[0], now[1 + kept], &now[2 + kept..], is_first.map(|c| c.now))?;
    let ids = if ids_at_once { step.sequences } else { model.with_axes(step.tokens, &[1])? };
    let mut values = vec![ids];
    for &present in &outputs[1..] {
        values.push(match step.rows {
            Some(rows) => model.gather(present, rows, 0)?,
            None => present,
        });
    }
    values.push(step.sequences);
    values.extend(&step.states);
    let no = model.fixed(carafe_tensor::Tensor::from_f64(ElementType::Boolean, &[], &[0.0])?)?;
    for (carried, value) in carried.into_iter().zip(values) {
        repeat.becomes(carried, value)?;
    }
    if let Some(is_first) = is_first {
        repeat.becomes(is_first, no)?;
    }
    let end = repeat.finish(n, step.goes_on)?;
    Ok(Done { sequences: end[1 + kept], states: end[2 + kept..2 + kept + states.len()].to_vec() })
}

// 0 for padding in front, 1 from the first other token on.
fn without_left_padding(n: &mut NodeCx<'_>, ids: Value, pad: i64) -> Result<Value> {
    let pad = n.scalar_like(ids, pad as f64)?;
    let real = n.emit(NotEqual::default(), &[ids, pad])?;
    let real = n.convert(real, ElementType::I32)?;
    let time = n.i64(1)?;
    let seen = n.emit(CumSum { exclusive: false, reverse: false }, &[real, time])?;
    let zero = n.scalar(ElementType::I32, 0.0)?;
    let begun = n.greater(seen, zero)?;
    n.convert(begun, ElementType::I32)
}
