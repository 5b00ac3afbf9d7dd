//! From a level that was detected to code that is compiled for it. [`dispatch!`] and [`entry`] are the only ways to a
//! vector type: no other module can name one, so a function that has `S: Simd` runs on a machine with its instructions.

use super::Simd;
#[cfg(not(target_arch = "x86_64"))]
use super::scalar as baseline;
#[cfg(target_arch = "x86_64")]
use super::sse2 as baseline;
use crate::Isa;

/// A piece of work written once for all levels.
///
/// `run` and all that it calls are `#[inline(always)]` and use no closures that the compiler keeps as functions: what is
/// not inlined is not compiled for the level.
pub(crate) trait Kernel {
    type Args<'a>;
    type Out;
    /// Safe code that the compiler makes vectors of and that waits for memory: half of an AVX-512 register does as well there,
    /// so that machines with AVX-512 run what is compiled for AVX2.
    const PLAIN: bool = false;
    /// # Safety
    /// As the implementor says.
    unsafe fn run<S: Simd>(args: Self::Args<'_>) -> Self::Out;
}

/// The machine code of a kernel that takes a job.
pub(crate) type Entry<J> = unsafe fn(&J);

/// Runs a kernel at a level.
///
/// # Safety
/// As the kernel says.
pub(crate) unsafe fn run<K: Kernel>(isa: Isa, args: K::Args<'_>) -> K::Out {
    // SAFETY: the token in `isa` proves that the machine has the level; the rest is the caller's promise.
    unsafe {
        match isa {
            Isa::Scalar | Isa::TileTwin => baseline::F32x4::call::<K>(args),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => super::neon::F32x4::call::<K>(args),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => super::avx2::F32x8::call::<K>(args),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) | Isa::Amx(_) => {
                // Only one of both is compiled.
                if const { K::PLAIN } {
                    super::avx2::F32x8::call::<K>(args)
                } else {
                    super::avx512::F32x16::call::<K>(args)
                }
            }
        }
    }
}

/// The function that runs `K` at a level, to be kept and called often.
pub(crate) fn entry<K, J>(isa: Isa) -> Entry<J>
where
    K: for<'a> Kernel<Args<'a> = &'a J, Out = ()>,
{
    match isa {
        Isa::Scalar | Isa::TileTwin => baseline::F32x4::call::<K>,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon(_) => super::neon::F32x4::call::<K>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(_) => super::avx2::F32x8::call::<K>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(_) | Isa::Amx(_) => {
            if const { K::PLAIN } {
                super::avx2::F32x8::call::<K>
            } else {
                super::avx512::F32x16::call::<K>
            }
        }
    }
}

/// Runs `$body` with `$S` bound to the vector type of the level, inside a function compiled for it. The arguments are passed
/// by name with their types, references with the lifetime that stands in front of `$S`. `$body` is unsafe code, and so is
/// the call. With `plain` in front of the rest it is [`Kernel::PLAIN`].
macro_rules! dispatch {
    ($isa:expr, plain $($rest:tt)*) => { $crate::simd::dispatch!(@any true, $isa, $($rest)*) };
    (@any $plain:literal, $isa:expr, <$a:lifetime, $S:ident $(, $G:ident: $Bound:path)*> ($($name:ident: $ty:ty),* $(,)?) $(-> $Out:ty)? { $($body:tt)* }) => {{
        struct Body<$($G),*>(std::marker::PhantomData<($($G,)*)>);
        impl<$($G: $Bound),*> $crate::simd::Kernel for Body<$($G),*> {
            type Args<$a> = ($($ty,)*);
            type Out = $crate::simd::dispatch!(@out $($Out)?);
            const PLAIN: bool = $plain;
            #[inline(always)]
            #[allow(unused_unsafe)]
            unsafe fn run<$S: $crate::simd::Simd>(($($name,)*): Self::Args<'_>) -> Self::Out {
                // SAFETY: the caller of `dispatch!` promises what the body needs.
                unsafe { $($body)* }
            }
        }
        $crate::simd::run::<Body<$($G),*>>($isa, ($($name,)*))
    }};
    (@any $plain:literal, $isa:expr, <$S:ident $(, $G:ident: $Bound:path)*> $($rest:tt)*) => {
        $crate::simd::dispatch!(@any $plain, $isa, <'args, $S $(, $G: $Bound)*> $($rest)*)
    };
    (@out) => { () };
    (@out $Out:ty) => { $Out };
    ($isa:expr, $($rest:tt)*) => { $crate::simd::dispatch!(@any false, $isa, $($rest)*) };
}
pub(crate) use dispatch;
