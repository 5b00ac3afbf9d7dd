//! `ov_prepostprocess.h`: steps between what a program has and what a model takes. The handles of parts point into the one
//! processor; building changes the model itself, as the original does.

use crate::element_type::{ElementNumber, from_number};
use crate::handles::{Handle, Object, hand_out};
use crate::layout::LayoutObject;
use crate::model::{ModelHandle, ModelObject};
use crate::pointers::{List, Out, Text};
use crate::port::{Side, find, only};
use crate::status::{Failure, Outcome, Status, guard};
use crate::tensor::TensorObject;
use crate::variadic::{Words, variadic};
use carafe::preprocess::{ColorFormat, InputInfo, OutputInfo, PaddingMode, PrePostProcessor, ResizeAlgorithm};
use carafe::{PartialShape, Port};
use std::ffi::c_uint;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// `ov_preprocess_prepostprocessor_t`.
#[derive(Debug)]
pub struct Processor {
    model: Arc<ModelObject>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// `None` once it was built.
    steps: Mutex<Option<PrePostProcessor>>,
}

impl Object for Processor {
    const KIND: &'static str = "ov_preprocess_prepostprocessor_t";
}

/// A part of a processor: of one input or output. `K` says which part.
#[derive(Debug)]
pub struct Part<K> {
    processor: Arc<Processor>,
    index: usize,
    kind: PhantomData<fn(K)>,
}

macro_rules! parts {
    ($($part:ident = $name:literal;)*) => { $(
        #[doc = concat!("`", $name, "`.")]
        #[derive(Debug)]
        pub struct $part;
        impl Object for Part<$part> {
            const KIND: &'static str = $name;
        }
    )* };
}

parts! {
    Input = "ov_preprocess_input_info_t";
    InputTensor = "ov_preprocess_input_tensor_info_t";
    InputModel = "ov_preprocess_input_model_info_t";
    Steps = "ov_preprocess_preprocess_steps_t";
    Output = "ov_preprocess_output_info_t";
    OutputTensor = "ov_preprocess_output_tensor_info_t";
}

type ProcessorHandle = Handle<Processor>;

impl Processor {
    fn with<T>(&self, body: impl FnOnce(&mut PrePostProcessor) -> Outcome<T>) -> Outcome<T> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        body(steps.as_mut().ok_or_else(|| Failure::argument("the model of this processor is built already"))?)
    }
}

impl<K> Part<K> {
    fn input(&self, body: impl FnOnce(&mut InputInfo)) -> Outcome<()> {
        self.processor.with(|ppp| {
            body(ppp.input(self.index)?);
            Ok(())
        })
    }
    fn output(&self, body: impl FnOnce(&mut OutputInfo)) -> Outcome<()> {
        self.processor.with(|ppp| {
            body(ppp.output(self.index)?);
            Ok(())
        })
    }
    fn as_part<L>(&self) -> Part<L> {
        Part { processor: self.processor.clone(), index: self.index, kind: PhantomData }
    }
}

/// Begins to describe the inputs and outputs of a model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_prepostprocessor_create(
    model: ModelHandle,
    preprocess: Out<ProcessorHandle>,
) -> Status {
    guard(|| {
        preprocess.check("preprocess")?;
        let object = model.get("model")?;
        let model = object.model().clone();
        let (inputs, outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
        let steps = Mutex::new(Some(PrePostProcessor::new(model)));
        preprocess.set(hand_out(Arc::new(Processor { model: object, inputs, outputs, steps })), "preprocess")
    })
}

/// Puts everything into the model, and hands it out again.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_prepostprocessor_build(preprocess: ProcessorHandle, model: Out<ModelHandle>) -> Status {
    guard(|| {
        model.check("model")?;
        let processor = preprocess.get("preprocess")?;
        let steps = processor.steps.lock().unwrap_or_else(PoisonError::into_inner).take();
        let steps = steps.ok_or_else(|| Failure::argument("the model of this processor is built already"))?;
        *processor.model.model() = steps.build()?;
        model.set(hand_out(processor.model.clone()), "model")
    })
}

fn part<K>(
    preprocess: ProcessorHandle,
    to: Out<Handle<Part<K>>>,
    at: impl FnOnce(&Processor) -> Outcome<usize>,
) -> Status
where
    Part<K>: Object,
{
    guard(|| {
        to.check("info")?;
        let processor = preprocess.get("preprocess")?;
        let index = at(&processor)?;
        to.set(hand_out(Arc::new(Part { processor, index, kind: PhantomData })), "info")
    })
}

macro_rules! info_functions {
    ($($side:ident, $ports:ident: $one:ident, $by_name:ident, $by_index:ident;)*) => { $(
        /// The only one of this side.
        #[unsafe(no_mangle)]
        pub extern "C" fn $one(preprocess: ProcessorHandle, info: Out<Handle<Part<$side>>>) -> Status {
            part(preprocess, info, |p| only(&p.$ports, Side::$side))
        }
        /// One by a name of its tensor.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_name(preprocess: ProcessorHandle, name: Text, info: Out<Handle<Part<$side>>>) -> Status {
            part(preprocess, info, |p| find(&p.$ports, Side::$side, name.get("tensor_name")?))
        }
        /// One by its index.
        #[unsafe(no_mangle)]
        pub extern "C" fn $by_index(preprocess: ProcessorHandle, index: usize, info: Out<Handle<Part<$side>>>) -> Status {
            part(preprocess, info, |p| find(&p.$ports, Side::$side, index))
        }
    )* };
}

info_functions! {
    Input, inputs: ov_preprocess_prepostprocessor_get_input_info, ov_preprocess_prepostprocessor_get_input_info_by_name,
        ov_preprocess_prepostprocessor_get_input_info_by_index;
    Output, outputs: ov_preprocess_prepostprocessor_get_output_info, ov_preprocess_prepostprocessor_get_output_info_by_name,
        ov_preprocess_prepostprocessor_get_output_info_by_index;
}

macro_rules! sub_parts {
    ($($from:ident -> $to:ident: $get:ident;)*) => { $(
        /// A part of the description.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get(info: Handle<Part<$from>>, to: Out<Handle<Part<$to>>>) -> Status {
            guard(|| {
                to.check("info")?;
                to.set(hand_out(Arc::new(info.get("info")?.as_part::<$to>())), "info")
            })
        }
    )* };
}

sub_parts! {
    Input -> InputTensor: ov_preprocess_input_info_get_tensor_info;
    Input -> Steps: ov_preprocess_input_info_get_preprocess_steps;
    Input -> InputModel: ov_preprocess_input_info_get_model_info;
    Output -> OutputTensor: ov_preprocess_output_info_get_tensor_info;
}

macro_rules! frees {
    ($($free:ident($of:ty);)*) => { $(
        /// Frees the handle; what it points into stays.
        #[unsafe(no_mangle)]
        pub extern "C" fn $free(handle: Handle<$of>) {
            drop(handle.take());
        }
    )* };
}

frees! {
    ov_preprocess_prepostprocessor_free(Processor);
    ov_preprocess_input_info_free(Part<Input>);
    ov_preprocess_input_tensor_info_free(Part<InputTensor>);
    ov_preprocess_input_model_info_free(Part<InputModel>);
    ov_preprocess_preprocess_steps_free(Part<Steps>);
    ov_preprocess_output_info_free(Part<Output>);
    ov_preprocess_output_tensor_info_free(Part<OutputTensor>);
}

type StepsHandle = Handle<Part<Steps>>;
type InputTensorHandle = Handle<Part<InputTensor>>;

/// The element type of the program's tensor.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_element_type(
    info: InputTensorHandle,
    ty: ElementNumber,
) -> Status {
    guard(|| {
        let ty = from_number(ty)?;
        info.get("info")?.input(|i| _ = i.tensor().element_type(ty))
    })
}

fn color(number: c_uint) -> Outcome<ColorFormat> {
    const ALL: [ColorFormat; 10] = [
        ColorFormat::Undefined,
        ColorFormat::Nv12SinglePlane,
        ColorFormat::Nv12TwoPlanes,
        ColorFormat::I420SinglePlane,
        ColorFormat::I420ThreePlanes,
        ColorFormat::Rgb,
        ColorFormat::Bgr,
        ColorFormat::Gray,
        ColorFormat::Rgbx,
        ColorFormat::Bgrx,
    ];
    ALL.get(number as usize).copied().ok_or_else(|| Failure::argument(format!("there is no colour format {number}")))
}

fn set_color(info: InputTensorHandle, format: c_uint, names: &[String]) -> Outcome<()> {
    let format = color(format)?;
    if !names.is_empty() && names.len() != format.planes() {
        return Err(Failure::argument(format!(
            "found {} names, {format:?} has {} planes",
            names.len(),
            format.planes()
        )));
    }
    info.get("info")?.input(|i| _ = i.tensor().color_planes(format, names))
}

/// What the channels of the program's tensor are.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_color_format(info: InputTensorHandle, format: c_uint) -> Status {
    guard(|| set_color(info, format, &[]))
}

/// The same, with a name behind that of the input for each plane.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_color_format_with_subnames(
    info: InputTensorHandle,
    format: c_uint,
    sub_names_size: usize,
    sub_names: List<Text>,
) -> Status {
    guard(|| {
        let name = |t: &Text| Ok(t.get("sub_names")?.to_string());
        let names = sub_names.get(sub_names_size, "sub_names")?.iter().map(name).collect::<Outcome<Vec<_>>>()?;
        set_color(info, format, &names)
    })
}

fn set_color_words(words: &mut Words) -> Outcome<()> {
    let info = InputTensorHandle::of_word(words.next());
    // An enum is half a word.
    let format = words.next() as u32;
    let planes = color(format)?.planes();
    let count = words.next();
    if count > planes {
        return Err(Failure::argument(format!("found {count} names for {planes} planes")));
    }
    let names = (0..count).map(|_| Ok(Text::of_word(words.pointer()).get("sub_names")?.to_string()));
    let names = names.collect::<Outcome<Vec<_>>>()?;
    set_color(info, format, &names)
}
variadic!(ov_preprocess_input_tensor_info_set_color_format_with_subname, set_color_entry, set_color_words);

/// Height and width of the program's tensor.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_spatial_static_shape(
    info: InputTensorHandle,
    input_height: usize,
    input_width: usize,
) -> Status {
    guard(|| info.get("info")?.input(|i| _ = i.tensor().spatial_static_shape(input_height, input_width)))
}

/// Where the program's tensor lies. Devices here read the memory of the host, so there is nothing to note.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_memory_type(info: InputTensorHandle, mem_type: Text) -> Status {
    guard(|| {
        mem_type.get("mem_type")?;
        info.get("info").map(drop)
    })
}

/// Type and shape of a tensor that the program has.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_from(
    info: InputTensorHandle,
    tensor: Handle<TensorObject>,
) -> Status {
    guard(|| {
        let part = info.get("info")?;
        let tensor = tensor.get("tensor")?;
        let (ty, shape) = (tensor.element_type(), PartialShape::of(&tensor.shape()));
        part.input(|i| _ = i.tensor().element_type(ty).shape(shape))
    })
}

/// What the axes of the program's tensor are.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_tensor_info_set_layout(
    info: InputTensorHandle,
    layout: Handle<LayoutObject>,
) -> Status {
    guard(|| {
        let layout = layout.get("layout")?.0.clone();
        info.get("info")?.input(|i| _ = i.tensor().layout(layout))
    })
}

/// What the axes are inside of the model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_input_model_info_set_layout(
    info: Handle<Part<InputModel>>,
    layout: Handle<LayoutObject>,
) -> Status {
    guard(|| {
        let layout = layout.get("layout")?.0.clone();
        info.get("info")?.input(|i| _ = i.model().layout(layout))
    })
}

/// The element type that the program gets.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_output_set_element_type(info: Handle<Part<OutputTensor>>, ty: ElementNumber) -> Status {
    guard(|| {
        let ty = from_number(ty)?;
        info.get("info")?.output(|o| _ = o.tensor().element_type(ty))
    })
}

/// Resizes to height and width of the model.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_resize(steps: StepsHandle, algorithm: c_uint) -> Status {
    guard(|| {
        let algorithm = match algorithm {
            0 => ResizeAlgorithm::Linear,
            1 => ResizeAlgorithm::Cubic,
            2 => ResizeAlgorithm::Nearest,
            n => return Err(Failure::argument(format!("there is no resize algorithm {n}"))),
        };
        steps.get("steps")?.input(|i| _ = i.preprocess().resize(algorithm))
    })
}

fn channels(values: List<f32>, len: i32) -> Outcome<Vec<f64>> {
    let len = usize::try_from(len).ok().filter(|n| *n > 0);
    let len = len.ok_or_else(|| Failure::argument("no value is given"))?;
    Ok(values.get(len, "values")?.iter().map(|v| f64::from(*v)).collect())
}

/// Divides by a value.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_scale(steps: StepsHandle, value: f32) -> Status {
    guard(|| steps.get("steps")?.input(|i| _ = i.preprocess().scale([f64::from(value)])))
}

/// Divides by a value for each channel.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_scale_multi_channels(
    steps: StepsHandle,
    values: List<f32>,
    value_size: i32,
) -> Status {
    guard(|| {
        let values = channels(values, value_size)?;
        steps.get("steps")?.input(|i| _ = i.preprocess().scale(values))
    })
}

/// Subtracts a value.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_mean(steps: StepsHandle, value: f32) -> Status {
    guard(|| steps.get("steps")?.input(|i| _ = i.preprocess().mean([f64::from(value)])))
}

/// Subtracts a value for each channel.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_mean_multi_channels(
    steps: StepsHandle,
    values: List<f32>,
    value_size: i32,
) -> Status {
    guard(|| {
        let values = channels(values, value_size)?;
        steps.get("steps")?.input(|i| _ = i.preprocess().mean(values))
    })
}

fn numbers(list: List<i32>, len: usize, what: &str) -> Outcome<Vec<i64>> {
    if list.is_null() {
        return Err(Failure::argument(format!("`{what}` is null")));
    }
    Ok(list.get(len, what)?.iter().map(|n| i64::from(*n)).collect())
}

/// Keeps a range of every axis.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_crop(
    steps: StepsHandle,
    begin: List<i32>,
    begin_size: i32,
    end: List<i32>,
    end_size: i32,
) -> Status {
    guard(|| {
        let len = |n: i32| usize::try_from(n).map_err(|_| Failure::argument(format!("found {n} numbers")));
        let begin = numbers(begin, len(begin_size)?, "begin")?;
        let end = numbers(end, len(end_size)?, "end")?;
        if begin.len() != end.len() {
            return Err(Failure::argument(format!("{} numbers begin and {} end", begin.len(), end.len())));
        }
        steps.get("steps")?.input(|i| _ = i.preprocess().crop(begin, end))
    })
}

/// Adds elements before and after every axis; negative numbers take away.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_pad(
    steps: StepsHandle,
    pads_begin: List<i32>,
    pads_begin_size: usize,
    pads_end: List<i32>,
    pads_end_size: usize,
    value: f32,
    mode: c_uint,
) -> Status {
    guard(|| {
        let begin = numbers(pads_begin, pads_begin_size, "pads_begin")?;
        let end = numbers(pads_end, pads_end_size, "pads_end")?;
        if begin.len() != end.len() {
            return Err(Failure::argument(format!("{} pads begin and {} end", begin.len(), end.len())));
        }
        let mode = match mode {
            0 => PaddingMode::Constant,
            1 => PaddingMode::Edge,
            2 => PaddingMode::Reflect,
            3 => PaddingMode::Symmetric,
            n => return Err(Failure::argument(format!("there is no padding mode {n}"))),
        };
        steps.get("steps")?.input(|i| _ = i.preprocess().pad(begin, end, value, mode))
    })
}

/// Puts the axes into another order.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_convert_layout(
    steps: StepsHandle,
    layout: Handle<LayoutObject>,
) -> Status {
    guard(|| {
        let layout = layout.get("layout")?.0.clone();
        steps.get("steps")?.input(|i| _ = i.preprocess().convert_layout(layout))
    })
}

/// Swaps the first and the last channel.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_reverse_channels(steps: StepsHandle) -> Status {
    guard(|| steps.get("steps")?.input(|i| _ = i.preprocess().reverse_channels()))
}

/// Converts to another element type.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_convert_element_type(steps: StepsHandle, ty: ElementNumber) -> Status {
    guard(|| {
        let ty = from_number(ty)?;
        steps.get("steps")?.input(|i| _ = i.preprocess().convert_element_type(ty))
    })
}

/// Converts between colours.
#[unsafe(no_mangle)]
pub extern "C" fn ov_preprocess_preprocess_steps_convert_color(steps: StepsHandle, format: c_uint) -> Status {
    guard(|| {
        let to = color(format)?;
        steps.get("steps")?.input(|i| _ = i.preprocess().convert_color(to))
    })
}
