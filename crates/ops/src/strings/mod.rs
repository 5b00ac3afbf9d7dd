//! String tensors from and to bytes.

opset! { string_tensor_pack::{StringTensorPack}, string_tensor_unpack::{StringTensorUnpack} }
