//! The tensor: an element type, a static shape and shared bytes. Clones share; `*_mut` copies when bytes are shared or
//! mapped. Sub-byte elements stay packed: index them through [`Tensor::to_vec`], [`Tensor::select`] or `pack`, not by byte.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::cast::{decode_all, decode_code, encode_code, is_coded, with_storage_type};
use crate::memory::{ensure_memory, try_collect};
use crate::remote::{Remote, RemoteMemory};
use crate::{Element, ElementType, Number, SharedBytes, TensorError, decode_strings, elements, pack, string_payload};

/// An element type, a static shape and the elements. Cheap to clone: clones share the elements until one is written to.
#[derive(Clone)]
pub struct Tensor {
    ty: ElementType,
    shape: Arc<[usize]>,
    data: Data,
}

#[derive(Clone)]
enum Data {
    /// `len` is exactly `ty.byte_len(elements)`, and `offset + len` lies within the store.
    Bytes { store: SharedBytes, offset: usize, len: usize, aligned: Option<AlignedCopy> },
    /// As many as the shape has elements.
    Strings(Arc<Vec<String>>),
    /// At least as many bytes as `len`.
    Remote { remote: Remote, len: usize },
}

/// The place of the aligned copy of misaligned bytes, made when somebody first asks for elements.
type AlignedCopy = Arc<OnceLock<SharedBytes>>;

/// Making tensors.
impl Tensor {
    /// Zeros (empty strings for `String`), 64-byte aligned. A size that overflows or cannot be had is an error.
    pub fn zeros(ty: ElementType, shape: &[usize]) -> Result<Tensor, TensorError> {
        let (count, len) = storage_size(ty, shape)?;
        if ty == ElementType::String {
            let mut strings = Vec::new();
            let bytes = count.saturating_mul(size_of::<String>());
            ensure_memory(bytes)?;
            strings.try_reserve_exact(count).map_err(|_| TensorError::OutOfMemory { bytes })?;
            strings.resize(count, String::new());
            return Tensor::from_strings(shape, strings);
        }
        Ok(Tensor::whole(ty, shape, zero_store(ty, count, len)?))
    }

    /// Copies the slice into aligned storage.
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Result<Tensor, TensorError> {
        check_count(T::TYPE, shape, data.len())?;
        Tensor::from_bytes(T::TYPE, shape, bytemuck::cast_slice(data))
    }

    /// Keeps the vector; nothing is copied, and the alignment is that of `T`.
    pub fn from_vec<T: Element>(shape: &[usize], data: Vec<T>) -> Result<Tensor, TensorError> {
        check_count(T::TYPE, shape, data.len())?;
        Ok(Tensor::whole(T::TYPE, shape, SharedBytes::from_pod_vec(data)))
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(v: T) -> Tensor {
        Tensor::whole(T::TYPE, &[], SharedBytes::from_pod_vec(vec![v]))
    }

    /// Copies packed little-endian bytes as the IR has them; for `String` that is the payload of a string constant.
    /// Bytes past the needed ones are ignored, and a partial last group of u3 or u6 may be cut short.
    pub fn from_bytes(ty: ElementType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        if ty == ElementType::String {
            return Tensor::from_strings(shape, decode_strings(bytes)?);
        }
        let len = check_bytes(ty, shape, bytes.len())?;
        let mut store = SharedBytes::zeroed(len)?;
        let given = len.min(bytes.len());
        fresh_mut(&mut store)[..given].copy_from_slice(&bytes[..given]);
        Ok(Tensor::whole(ty, shape, store))
    }

    /// A tensor of texts.
    pub fn from_strings(shape: &[usize], strings: Vec<String>) -> Result<Tensor, TensorError> {
        check_count(ElementType::String, shape, strings.len())?;
        Ok(Tensor { ty: ElementType::String, shape: shape.into(), data: Data::Strings(Arc::new(strings)) })
    }

    /// A tensor over `len` bytes of a store, without a copy. Where the address is misaligned for `ty`, a copy is made when
    /// elements are first asked for; it copies at once when a u3 or u6 group is cut short, and for `String`, which is
    /// decoded. `len` may exceed what the shape needs.
    pub fn view(
        ty: ElementType,
        shape: &[usize],
        store: &SharedBytes,
        offset: usize,
        len: usize,
    ) -> Result<Tensor, TensorError> {
        let outside = || TensorError::OutsideStore { offset, len, available: store.len() };
        let end = offset.checked_add(len).ok_or_else(outside)?;
        let bytes = store.as_slice().get(offset..end).ok_or_else(outside)?;
        if ty == ElementType::String {
            return Tensor::from_bytes(ty, shape, bytes);
        }
        let needed = check_bytes(ty, shape, len)?;
        let alignment = (ty.bits() / 8).max(1);
        if needed > len {
            return Tensor::from_bytes(ty, shape, bytes);
        }
        let aligned = (!(bytes.as_ptr() as usize).is_multiple_of(alignment)).then(AlignedCopy::default);
        Ok(Tensor { ty, shape: shape.into(), data: Data::Bytes { store: store.clone(), offset, len: needed, aligned } })
    }

    /// A tensor over memory of a device, which may have more bytes than the shape needs.
    pub fn remote(ty: ElementType, shape: &[usize], memory: Arc<dyn RemoteMemory>) -> Result<Tensor, TensorError> {
        let (_, len) = storage_size(ty, shape)?;
        if ty == ElementType::String {
            return Err(TensorError::NoStorage { ty });
        }
        let found = memory.byte_len();
        if found < len {
            return Err(TensorError::ByteCount { ty, shape: shape.to_vec(), expected: len, found });
        }
        Ok(Tensor { ty, shape: shape.into(), data: Data::Remote { remote: Remote::new(memory), len } })
    }

    /// Converts into any numeric type.
    pub fn from_f64(ty: ElementType, shape: &[usize], data: &[f64]) -> Result<Tensor, TensorError> {
        Tensor::from_number_slice(ty, shape, data)
    }

    /// Converts into any numeric type.
    pub fn from_i64(ty: ElementType, shape: &[usize], data: &[i64]) -> Result<Tensor, TensorError> {
        Tensor::from_number_slice(ty, shape, data)
    }

    /// Converts and packs numbers into `ty`; when that is the type of the numbers, the vector is kept.
    pub fn from_numbers<T: Number>(ty: ElementType, shape: &[usize], data: Vec<T>) -> Result<Tensor, TensorError> {
        if ty != T::TYPE {
            return T::tensor_of(ty, shape, &data);
        }
        check_count(ty, shape, data.len())?;
        Ok(Tensor::whole(ty, shape, SharedBytes::from_pod_vec(data)))
    }

    pub(crate) fn from_number_slice<T: Number>(
        ty: ElementType,
        shape: &[usize],
        data: &[T],
    ) -> Result<Tensor, TensorError> {
        if ty == ElementType::String {
            return Err(TensorError::NoCast { from: T::TYPE, to: ty });
        }
        let len = check_count(ty, shape, data.len())?;
        let mut store = SharedBytes::zeroed(len)?;
        let bytes = fresh_mut(&mut store);
        if is_coded(ty) {
            for (i, &value) in data.iter().enumerate() {
                pack::set(ty, bytes, i, encode_code(ty, value));
            }
        } else {
            with_storage_type!(ty, S => {
                for (to, from) in bytemuck::cast_slice_mut::<u8, S>(bytes).iter_mut().zip(data) {
                    *to = from.cast::<S>();
                }
            }, _ => return Err(TensorError::NoStorage { ty }))
        }
        Ok(Tensor::whole(ty, shape, store))
    }

    /// The caller has checked that the store fits the shape.
    fn whole(ty: ElementType, shape: &[usize], store: SharedBytes) -> Tensor {
        let len = store.len();
        Tensor { ty, shape: shape.into(), data: Data::Bytes { store, offset: 0, len, aligned: None } }
    }
}

/// Looking at tensors.
impl Tensor {
    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.ty
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        // Every constructor checked that there is a count; beside a 0 the product of the others may be beyond all numbers.
        elements(&self.shape).unwrap_or(0)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Bytes in storage; for `String` the size of the payload in a file.
    pub fn byte_len(&self) -> usize {
        match &self.data {
            Data::Bytes { len, .. } | Data::Remote { len, .. } => *len,
            Data::Strings(strings) => string_payload::encoded_len(strings),
        }
    }

    /// The memory of a device that it lies in, if it does.
    pub fn remote_memory(&self) -> Option<&Arc<dyn RemoteMemory>> {
        match &self.data {
            Data::Remote { remote, .. } => Some(&remote.memory),
            _ => None,
        }
    }

    /// The same elements in memory of the host; a clone unless it lies in memory of a device.
    pub fn to_host(&self) -> Result<Tensor, TensorError> {
        match &self.data {
            Data::Remote { remote, len } => {
                let mut store = SharedBytes::zeroed(*len)?;
                remote.memory.read(0, fresh_mut(&mut store))?;
                Ok(Tensor::whole(self.ty, &self.shape, store))
            }
            _ => Ok(self.clone()),
        }
    }

    /// The packed bytes, at any address; those of a device are copied to the host when first asked for. Panics for `String`: use
    /// [`Tensor::strings`], and when a device does not give its bytes: [`Tensor::to_host`] tells why.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Remote { remote, len } => remote.host(*len).unwrap_or_else(|error| panic!("{error}")),
            Data::Bytes { store, offset, len, .. } => &store.as_slice()[*offset..*offset + *len],
            Data::Strings(_) => panic!("a string tensor has no bytes; use strings()"),
        }
    }

    /// The packed bytes at an address that fits the element type; where they lie elsewhere, a copy is made and kept. Panics
    /// for `String`.
    pub fn aligned_bytes(&self) -> Result<&[u8], TensorError> {
        if let Data::Remote { remote, len } = &self.data {
            return remote.host(*len);
        }
        let Data::Bytes { len, aligned: Some(position), .. } = &self.data else { return Ok(self.bytes()) };
        if position.get().is_none() {
            let mut copy = SharedBytes::zeroed(*len)?;
            fresh_mut(&mut copy).copy_from_slice(self.bytes());
            // Another thread may have been quicker; then its copy stays.
            let _ = position.set(copy);
        }
        Ok(position.get().map_or(&[], SharedBytes::as_slice))
    }

    /// Lets the system take back the memory of bytes that are mapped from a file; they are read again on the next use.
    pub fn release(&self) {
        if let Data::Bytes { store, offset, len, .. } = &self.data {
            store.release(*offset, *len);
        }
    }

    /// The packed bytes for writing, copied first when shared or mapped. Panics for `String`, and when the copy cannot be
    /// allocated ([`Tensor::as_slice_mut`] reports that).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.try_bytes_mut().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The packed bytes for writing, when nobody shares them and they can be written; nothing is copied.
    pub fn unique_bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.data {
            Data::Bytes { store, offset, len, aligned: None } => store.unique_mut()?.get_mut(*offset..*offset + *len),
            _ => None,
        }
    }

    /// Whether the bytes are mapped from a file.
    pub fn is_mapped(&self) -> bool {
        matches!(&self.data, Data::Bytes { store, .. } if store.is_mapped())
    }

    /// The address of the first element: equal for tensors that share bytes, so it tells duplicates.
    pub fn storage_ptr(&self) -> usize {
        match &self.data {
            Data::Bytes { .. } => self.bytes().as_ptr() as usize,
            Data::Strings(strings) => Arc::as_ptr(strings) as usize,
            Data::Remote { remote, .. } => Arc::as_ptr(&remote.memory).cast::<u8>() as usize,
        }
    }

    /// The elements, when `T` is exactly their type; u8 reads Boolean too.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        self.expect_type(T::TYPE)?;
        bytemuck::try_cast_slice(self.aligned_bytes()?).map_err(|_| TensorError::Misaligned { ty: self.ty })
    }

    /// As [`Tensor::as_slice`], copied first when shared or mapped.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        self.expect_type(T::TYPE)?;
        let ty = self.ty;
        bytemuck::try_cast_slice_mut(self.try_bytes_mut()?).map_err(|_| TensorError::Misaligned { ty })
    }

    /// The texts of a tensor of type `String`.
    pub fn strings(&self) -> Result<&[String], TensorError> {
        match &self.data {
            Data::Strings(strings) => Ok(strings),
            _ => Err(TensorError::TypeMismatch { expected: ElementType::String, found: self.ty }),
        }
    }

    /// The texts for writing, copied first when shared.
    pub fn strings_mut(&mut self) -> Result<&mut [String], TensorError> {
        match &mut self.data {
            Data::Strings(strings) => Ok(Arc::make_mut(strings).as_mut_slice()),
            _ => Err(TensorError::TypeMismatch { expected: ElementType::String, found: self.ty }),
        }
    }

    /// The elements as numbers: borrowed when `T` is exactly their type, otherwise converted one by one.
    pub fn to_vec<T: Number>(&self) -> Result<Cow<'_, [T]>, TensorError> {
        T::all_of(self)
    }

    pub(crate) fn numbers<T: Number>(&self) -> Result<Cow<'_, [T]>, TensorError> {
        if self.ty == ElementType::String {
            return Err(TensorError::NoCast { from: self.ty, to: T::TYPE });
        }
        if self.ty == T::TYPE {
            return bytemuck::try_cast_slice(self.aligned_bytes()?)
                .map(Cow::Borrowed)
                .map_err(|_| TensorError::Misaligned { ty: self.ty });
        }
        if is_coded(self.ty) {
            return decode_all(self.ty, self.bytes(), self.len()).map(Cow::Owned);
        }
        with_storage_type!(self.ty,
            S => try_collect(self.as_slice::<S>()?.iter().map(|v| v.cast::<T>())).map(Cow::Owned),
            _ => Err(TensorError::NoStorage { ty: self.ty }))
    }

    /// Calls `f` with every element as a number, in order; nothing is copied. For those who only look.
    pub fn for_each<T: Number>(&self, mut f: impl FnMut(T)) -> Result<(), TensorError> {
        const PART: usize = 4096;
        if self.ty == ElementType::String {
            return Err(TensorError::NoCast { from: self.ty, to: T::TYPE });
        }
        if is_coded(self.ty) {
            let bytes = self.bytes();
            (0..self.len()).for_each(|i| f(decode_code(self.ty, pack::get(self.ty, bytes, i))));
            return Ok(());
        }
        with_storage_type!(self.ty, S => {
            // Bytes at an odd address would be copied as a whole to be looked at as elements.
            let mut part = [<S as bytemuck::Zeroable>::zeroed(); PART];
            for bytes in self.bytes().chunks(PART * size_of::<S>()) {
                let part = &mut part[..bytes.len() / size_of::<S>()];
                bytemuck::cast_slice_mut::<S, u8>(part).copy_from_slice(bytes);
                part.iter().for_each(|v| f(v.cast::<T>()));
            }
            Ok(())
        }, _ => Err(TensorError::NoStorage { ty: self.ty }))
    }

    /// The first `n` elements as numbers, or all when there are fewer.
    pub fn first<T: Number>(&self, n: usize) -> Result<Vec<T>, TensorError> {
        let n = n.min(self.len());
        Ok(self.select(&[n], Some)?.to_vec::<T>()?.into_owned())
    }

    /// True when type, shape and elements are equal bit by bit, so -0.0 differs from 0.0 and a NaN equals itself.
    pub fn content_eq(&self, other: &Tensor) -> bool {
        if self.ty != other.ty || self.shape != other.shape {
            return false;
        }
        match (&self.data, &other.data) {
            (Data::Strings(a), Data::Strings(b)) => a == b,
            // The unused bits of the last byte are undefined.
            _ if self.ty.is_sub_byte() => {
                let (a, b) = (self.bytes(), other.bytes());
                a == b || (0..self.len()).all(|i| pack::get(self.ty, a, i) == pack::get(self.ty, b, i))
            }
            _ => self.bytes() == other.bytes(),
        }
    }

    fn expect_type(&self, expected: ElementType) -> Result<(), TensorError> {
        if self.ty == expected || (self.ty == ElementType::Boolean && expected == ElementType::U8) {
            Ok(())
        } else {
            Err(TensorError::TypeMismatch { expected, found: self.ty })
        }
    }

    fn try_bytes_mut(&mut self) -> Result<&mut [u8], TensorError> {
        if let Data::Bytes { store, aligned, .. } = &mut self.data
            && (aligned.is_some() || store.unique_mut().is_none())
        {
            *self = Tensor::from_bytes(self.ty, &self.shape, self.bytes())?;
        }
        if let Data::Remote { .. } = &self.data {
            *self = self.to_host()?;
        }
        match &mut self.data {
            Data::Remote { .. } => unreachable!("it was just brought to the host"),
            Data::Bytes { store, offset, len, .. } => Ok(&mut fresh_mut(store)[*offset..*offset + *len]),
            Data::Strings(_) => panic!("a string tensor has no bytes; use strings_mut()"),
        }
    }
}

/// Tensors from tensors.
impl Tensor {
    /// Converts every element as OpenVINO's Convert does; the same type gives a clone.
    pub fn cast(&self, ty: ElementType) -> Result<Tensor, TensorError> {
        if ty == self.ty {
            return Ok(self.clone());
        }
        if ty == ElementType::String || self.ty == ElementType::String {
            return Err(TensorError::NoCast { from: self.ty, to: ty });
        }
        // The narrowest number that holds every value of the coded types.
        let source = match self.ty {
            ElementType::I2 | ElementType::I4 => ElementType::I8,
            _ if is_coded(self.ty) && self.ty.is_float() => ElementType::F32,
            _ if is_coded(self.ty) => ElementType::U8,
            other => other,
        };
        with_storage_type!(source,
            S => Tensor::from_number_slice(ty, &self.shape, &self.to_vec::<S>()?),
            _ => Err(TensorError::NoStorage { ty: self.ty }))
    }

    /// The same bytes under another shape of as many elements.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Tensor, TensorError> {
        check_count(self.ty, shape, self.len())?;
        Ok(Tensor { shape: shape.into(), ..self.clone() })
    }

    /// Moves elements of any type: `out[i] = self[f(i)]` over row-major positions; `None` gives zero or "".
    pub fn select(&self, shape: &[usize], mut f: impl FnMut(usize) -> Option<usize>) -> Result<Tensor, TensorError> {
        // Only this loop is compiled for each caller.
        self.select_parts(shape, &mut |start, sources| {
            for (i, source) in sources.iter_mut().enumerate() {
                *source = f(start + i);
            }
        })
    }

    fn select_parts(
        &self,
        shape: &[usize],
        fill: &mut dyn FnMut(usize, &mut [Option<usize>]),
    ) -> Result<Tensor, TensorError> {
        const PART: usize = 256;
        let (count, len) = storage_size(self.ty, shape)?;
        let available = self.len();
        let mut each = |copy: &mut dyn FnMut(usize, &[Option<usize>])| {
            let mut sources = [None; PART];
            for start in (0..count).step_by(PART) {
                let sources = &mut sources[..PART.min(count - start)];
                fill(start, sources);
                if let Some(&start) = sources.iter().flatten().find(|from| **from >= available) {
                    return Err(TensorError::OutsideTensor { start, count: 1, available });
                }
                copy(start, sources);
            }
            Ok(())
        };
        if let Data::Strings(strings) = &self.data {
            ensure_memory(count.saturating_mul(size_of::<String>()))?;
            let mut picked = Vec::with_capacity(count);
            each(&mut |_, sources| {
                picked.extend(sources.iter().map(|from| from.map(|from| strings[from].clone()).unwrap_or_default()));
            })?;
            return Tensor::from_strings(shape, picked);
        }
        let mut store = zero_store(self.ty, count, len)?;
        let (out, bytes) = (fresh_mut(&mut store), self.bytes());
        match self.ty.bits() {
            8 => each(&mut |start, sources| select_units::<1>(out, bytes, start, sources))?,
            16 => each(&mut |start, sources| select_units::<2>(out, bytes, start, sources))?,
            32 => each(&mut |start, sources| select_units::<4>(out, bytes, start, sources))?,
            64 => each(&mut |start, sources| select_units::<8>(out, bytes, start, sources))?,
            _ => each(&mut |start, sources| {
                for (i, from) in sources.iter().enumerate() {
                    if let Some(from) = *from {
                        pack::set(self.ty, out, start + i, pack::get(self.ty, bytes, from));
                    }
                }
            })?,
        }
        Ok(Tensor::whole(self.ty, shape, store))
    }

    /// Overwrites `n` elements from `dst` on with those of `src` from `src_start` on. Both have the same element type. Memory of a
    /// device is written where it lies, whoever shares it.
    pub fn copy_elements(&mut self, dst: usize, src: &Tensor, src_start: usize, n: usize) -> Result<(), TensorError> {
        if self.ty != src.ty {
            return Err(TensorError::TypeMismatch { expected: self.ty, found: src.ty });
        }
        check_range(dst, n, self.len())?;
        check_range(src_start, n, src.len())?;
        if let Data::Strings(from) = &src.data {
            self.strings_mut()?[dst..dst + n].clone_from_slice(&from[src_start..src_start + n]);
            return Ok(());
        }
        let ty = self.ty;
        if let Data::Remote { remote, len } = &mut self.data
            && !ty.is_sub_byte()
        {
            let size = ty.bits() / 8;
            let bytes = &src.aligned_bytes()?[src_start * size..(src_start + n) * size];
            remote.memory.write(dst * size, bytes)?;
            *self =
                Tensor { data: Data::Remote { remote: Remote::new(remote.memory.clone()), len: *len }, ..self.clone() };
            return Ok(());
        }
        let (to, from) = (self.try_bytes_mut()?, src.bytes());
        if ty.is_sub_byte() {
            for i in 0..n {
                pack::set(ty, to, dst + i, pack::get(ty, from, src_start + i));
            }
        } else {
            let size = ty.bits() / 8;
            to[dst * size..(dst + n) * size].copy_from_slice(&from[src_start * size..(src_start + n) * size]);
        }
        Ok(())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}{:?}", self.ty, self.shape)?;
        if self.is_mapped() {
            f.write_str(", mapped")?;
        }
        if let Some(memory) = self.remote_memory() {
            write!(f, ", on {}", memory.device())?;
        }
        f.write_str(")")
    }
}

fn select_units<const SIZE: usize>(out: &mut [u8], bytes: &[u8], start: usize, sources: &[Option<usize>]) {
    let (out, _) = out.as_chunks_mut::<SIZE>();
    let (units, _) = bytes.as_chunks::<SIZE>();
    for (unit, from) in out[start..].iter_mut().zip(sources) {
        if let Some(from) = *from {
            *unit = units[from];
        }
    }
}

/// Storage full of the number zero, which is not code 0 in nf4. f8e8m0 has no zero and gets its smallest power.
fn zero_store(ty: ElementType, count: usize, len: usize) -> Result<SharedBytes, TensorError> {
    let mut store = SharedBytes::zeroed(len)?;
    if ty == ElementType::Nf4 {
        let bytes = fresh_mut(&mut store);
        let zero = encode_code(ty, 0f32);
        bytes.fill(zero << 4 | zero);
        if count % 2 == 1 {
            pack::set(ty, bytes, count, 0);
        }
    }
    Ok(store)
}

/// A store that nobody else holds yet.
fn fresh_mut(store: &mut SharedBytes) -> &mut [u8] {
    store.unique_mut().expect("the store was just made, or just found to be unshared")
}

/// Elements and bytes of a shape; the bytes are 0 for `String`.
fn storage_size(ty: ElementType, shape: &[usize]) -> Result<(usize, usize), TensorError> {
    if ty.is_dynamic() {
        return Err(TensorError::NoStorage { ty });
    }
    let too_large = || TensorError::TooLarge { ty, shape: shape.to_vec() };
    let count = elements(shape).ok_or_else(too_large)?;
    let len = if ty == ElementType::String { 0 } else { ty.byte_len(count).ok_or_else(too_large)? };
    Ok((count, len))
}

/// Checks that the shape has `found` elements, and gives its bytes.
fn check_count(ty: ElementType, shape: &[usize], found: usize) -> Result<usize, TensorError> {
    let (expected, len) = storage_size(ty, shape)?;
    if expected != found {
        return Err(TensorError::ElementCount { shape: shape.to_vec(), expected, found });
    }
    Ok(len)
}

/// Checks that `found` bytes are enough for the shape, and gives the bytes it takes in storage.
fn check_bytes(ty: ElementType, shape: &[usize], found: usize) -> Result<usize, TensorError> {
    let (count, len) = storage_size(ty, shape)?;
    let expected = ty.least_byte_len(count).unwrap_or(len);
    if found < expected {
        return Err(TensorError::ByteCount { ty, shape: shape.to_vec(), expected, found });
    }
    Ok(len)
}

fn check_range(start: usize, count: usize, available: usize) -> Result<(), TensorError> {
    match start.checked_add(count) {
        Some(end) if end <= available => Ok(()),
        _ => Err(TensorError::OutsideTensor { start, count, available }),
    }
}

#[cfg(test)]
mod tests;
