//! The functions of the runtime that are answered, by topic. What they do is documented in CUDA's reference; here stands
//! only what is different: everything is done when a call returns.

mod device;
mod execution;
mod graph;
mod memory;
mod register;
mod stream;
mod texture;

/// Functions of the runtime with their bodies, each with the names of its other flavours (`_ptsz`, `_ptds`: the
/// default stream of the thread, which is the same here).
macro_rules! calls {
    ($(fn $name:ident $(| $alias:ident)* ($($args:tt)*) $body:block)*) => {
        $($crate::calls::flavours!($name [$($alias)*] ($($args)*) $body);)*
    };
}

macro_rules! flavours {
    ($name:ident [$($alias:ident)*] $args:tt $body:block) => {
        $crate::calls::call!($name $args $body);
        $($crate::calls::alias!($alias $name $args);)*
    };
}

macro_rules! call {
    ($name:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::abi::Code {
            $crate::state::answer(|| $body)
        }
    };
}

macro_rules! alias {
    ($alias:ident $name:ident ($($arg:ident: $ty:ty),* $(,)?)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $alias($($arg: $ty),*) -> $crate::abi::Code {
            // SAFETY: the same call.
            unsafe { $name($($arg),*) }
        }
    };
}

use {alias, call, calls, flavours};

use crate::abi::{Code, INVALID_VALUE};

/// Writes an output of a call.
///
/// # Safety
/// The program gave the pointer for this output, or null.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    match to.is_null() {
        true => Err(INVALID_VALUE),
        false => {
            // SAFETY: as above.
            unsafe { to.write(value) };
            Ok(())
        }
    }
}

/// Reads an input of a call.
///
/// # Safety
/// The program gave the pointer for this input, or null.
unsafe fn get<T: Copy>(from: *const T) -> Result<T, Code> {
    match from.is_null() {
        true => Err(INVALID_VALUE),
        // SAFETY: as above.
        false => Ok(unsafe { from.read() }),
    }
}
