//! One launch of a kernel in the PTX emulator.

use std::fmt::Write as _;

use warpwright_emu::{DecodeError, EmuError, Emulator, Fault, Options, Outcome, Program};
use warpwright_launch::{LaunchError, LaunchFile};
use warpwright_ptx::{Module, Type, TypeKind};

use crate::names::is_named;
use crate::{Argument, Launch, Member};

/// Why a launch cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("it is not there")]
    Missing,
    #[error("it takes {takes} parameters, not {given}")]
    Count { takes: usize, given: usize },
    #[error("a parameter of type {0} that is not emulated")]
    Type(Type),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Emulator(#[from] EmuError),
    #[error("{0}")]
    Fault(Box<Fault>),
}

/// What the bytes behind an argument are: the words of a launch description that say type, elements and contents.
pub(crate) type Buffers<'b> = &'b dyn Fn(Option<usize>) -> (String, String);

/// A launch, its kernel, and the place of each of its buffers in memory.
pub(crate) struct Described {
    pub launch: warpwright_launch::Launch,
    pub program: Program,
    pub places: Vec<Option<usize>>,
}

/// How it is launched. The arrays miss multiples of 256 by so many bytes.
pub(crate) fn described(
    module: &Module,
    launch: &Launch,
    (arguments, offset): (&[Argument], usize),
    buffers: Buffers<'_>,
) -> Result<Described, RunError> {
    let kernel = symbol(module, &launch.kernel).ok_or(RunError::Missing)?;
    let function = module.function(&kernel).map(|id| &module.functions[id]);
    let params = function.map_or(&[][..], |function| &function.params);
    if params.len() != arguments.len() {
        return Err(RunError::Count {
            takes: params.len(),
            given: arguments.len(),
        });
    }
    let mut text = format!(
        "kernel = \"{kernel}\"\n[sizes.trial]\nq = 1\n[launch]\ngrid = {:?}\nblock = {:?}\ndynamic_smem = {}\n",
        launch.grid, launch.block, launch.shared
    );
    let mut places = Vec::new();
    for (number, (argument, param)) in arguments.iter().zip(params).enumerate() {
        let own = format!("a{number}");
        let (name, what, place) = match argument {
            Argument::Array(_) | Argument::Unused => {
                let place = match argument {
                    Argument::Array(place) => Some(*place),
                    _ => None,
                };
                let (name, what) = buffers(place);
                let name = if name.is_empty() { own } else { name };
                (name, format!("{what}\noffset = {offset}"), Some(place))
            }
            Argument::Structure(members, align) => (own, structure(members, *align), None),
            Argument::Real(_) | Argument::Integer(_) => {
                let ty = module.variables[param.var].ty;
                (own, value(ty, argument)?, None)
            }
        };
        let _ = writeln!(text, "[[args]]\nname = \"{name}\"\n{what}");
        places.extend(place);
    }
    let file = LaunchFile::parse(&text, "trial.toml")?;
    Ok(Described {
        launch: file.resolve("trial", &[])?,
        program: Emulator::new(module, &kernel)?,
        places,
    })
}

/// Runs it: what the arguments point to changes in `memory`.
pub(crate) fn run(
    module: &Module,
    launch: &Launch,
    arguments: (&[Argument], usize),
    memory: &mut [Vec<u8>],
) -> Result<(), RunError> {
    let held = |place: Option<usize>| place.and_then(|place| memory.get(place));
    let bytes = |place| {
        let len = held(place).map_or(UNUSED, Vec::len);
        let what = format!("type = \"u8\"\nshape = [{len}]\noutput = true\ninit = \"zeros\"");
        (String::new(), what)
    };
    let described = described(module, launch, arguments, &bytes)?;
    let inputs = described.places.iter().map(|&place| {
        let bytes = place.and_then(|place| Some(std::mem::take(memory.get_mut(place)?)));
        bytes.unwrap_or_else(|| vec![0; UNUSED])
    });
    let inputs = inputs.collect();
    let options = Options {
        races: true,
        ..Options::default()
    };
    let outcome = described.program.run(&described.launch, inputs, &options);
    let results = match outcome? {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => return Err(RunError::Fault(fault)),
    };
    for (place, bytes) in described.places.into_iter().zip(results.buffers) {
        if let Some(slot) = place.and_then(|place| memory.get_mut(place)) {
            *slot = bytes;
        }
    }
    Ok(())
}

/// Bytes behind a pointer that is not used.
const UNUSED: usize = 64;

/// A structure by value, in the words of launch descriptions.
fn structure(members: &[Member], align: Option<usize>) -> String {
    let fields = members.iter().map(|member| {
        let value = match &member.value {
            Argument::Real(value) => format!("{value:?}"),
            Argument::Integer(value) => value.to_string(),
            Argument::Structure(members, align) => {
                return format!("{{ {} }}", structure(members, *align).replace('\n', ", "));
            }
            Argument::Array(_) | Argument::Unused => "0".to_owned(),
        };
        format!("{{ type = \"{}\", value = {value} }}", member.ty)
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    match align {
        None => format!("fields = [{fields}]"),
        Some(align) => format!("fields = [{fields}]\nalign = {align}"),
    }
}

/// A number as a parameter of this type, in the words of launch descriptions.
fn value(ty: Type, number: &Argument) -> Result<String, RunError> {
    let bits = ty.bits();
    match (ty.kind(), number) {
        (TypeKind::Float, Argument::Real(value)) => {
            Ok(format!("type = \"f{bits}\"\nvalue = {value:?}"))
        }
        (TypeKind::Float, Argument::Integer(value)) => {
            Ok(format!("type = \"f{bits}\"\nvalue = {value}.0"))
        }
        (TypeKind::Signed, Argument::Integer(value)) => {
            Ok(format!("type = \"s{bits}\"\nvalue = {value}"))
        }
        (TypeKind::Unsigned | TypeKind::Bits, Argument::Integer(value)) => {
            // nvcc declares `signed char` without a sign, too.
            let all = u64::MAX >> 64u32.saturating_sub(bits);
            let value = value.cast_unsigned() & all;
            Ok(format!("type = \"u{bits}\"\nvalue = {value}"))
        }
        _ => Err(RunError::Type(ty)),
    }
}

/// The symbol of a kernel with this name, mangled or not.
pub fn symbol(module: &Module, name: &str) -> Option<String> {
    let mut kernels = module.kernels().map(|(_, f)| f.name.to_string());
    kernels.find(|symbol| is_named(symbol, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_sign_are_passed_where_the_parameter_has_none() {
        let text = |ty, number| value(ty, &Argument::Integer(number)).ok();
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(text(Type::U8, -57), is("type = \"u8\"\nvalue = 199"));
        assert_eq!(text(Type::U8, 199), is("type = \"u8\"\nvalue = 199"));
        assert_eq!(text(Type::S32, -57), is("type = \"s32\"\nvalue = -57"));
        let largest = format!("type = \"u64\"\nvalue = {}", u64::MAX);
        assert_eq!(text(Type::U64, -1), Some(largest));
    }
}
