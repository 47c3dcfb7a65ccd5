//! Options of passes: they are fields of the pass, print as `reduce(98)` or `throttle(3, by=smem)`,
//! and parse back.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// A value of an option.
pub trait Argument: Sized + PartialEq {
    /// What may be written, for messages.
    fn wanted() -> String;

    /// From text.
    fn parse(text: &str) -> Option<Self>;

    /// To text; `None` where nothing is written.
    fn print(&self) -> Option<String>;

    /// The value where nothing is written, if it may be left out.
    fn absent() -> Option<Self> {
        None
    }

    /// The value as a number, for what has a range.
    fn number(&self) -> Option<u32> {
        None
    }
}

impl Argument for u32 {
    fn wanted() -> String {
        "a number".into()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn number(&self) -> Option<u32> {
        Some(*self)
    }
}

impl Argument for bool {
    fn wanted() -> String {
        "`yes` or `no`".into()
    }

    fn parse(text: &str) -> Option<Self> {
        ["no", "yes"]
            .iter()
            .position(|w| *w == text)
            .map(|at| at == 1)
    }

    fn print(&self) -> Option<String> {
        Some(["no", "yes"][usize::from(*self)].to_owned())
    }
}

/// Numbers, one for each dimension.
impl Argument for Vec<u32> {
    fn wanted() -> String {
        "numbers as in `4x1`".into()
    }

    fn parse(text: &str) -> Option<Self> {
        text.split('x').map(|n| n.parse().ok()).collect()
    }

    fn print(&self) -> Option<String> {
        let numbers: Vec<String> = self.iter().map(u32::to_string).collect();
        (!numbers.is_empty()).then(|| numbers.join("x"))
    }
}

/// So many numbers, along x, y and z.
impl<const N: usize> Argument for [u32; N] {
    fn wanted() -> String {
        let example = ["32", "8", "1"].iter().cycle().take(N);
        let example: Vec<&str> = example.copied().collect();
        format!("{N} numbers as in `{}`", example.join("x"))
    }

    fn parse(text: &str) -> Option<Self> {
        Vec::parse(text)?.try_into().ok()
    }

    fn print(&self) -> Option<String> {
        self.to_vec().print()
    }
}

impl<T: Argument> Argument for Option<T> {
    fn wanted() -> String {
        T::wanted()
    }

    fn parse(text: &str) -> Option<Self> {
        T::parse(text).map(Some)
    }

    fn print(&self) -> Option<String> {
        self.as_ref().and_then(T::print)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// An option of a pass, for listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// What may be written.
    pub wanted: String,
    /// May it be written without its name?
    pub is_positional: bool,
}

/// Options that do not fit a pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// There is no such option.
    #[error("there is no option `{0}`")]
    Unknown(String),
    /// More values than options that go without a name.
    #[error("`{0}` is one value too many")]
    TooMany(String),
    /// It must be given.
    #[error("`{0}` is wanted")]
    Missing(&'static str),
    /// Not what it takes.
    #[error("{name}={text}: {wanted} is wanted")]
    Value {
        /// The option.
        name: &'static str,
        /// What was written.
        text: String,
        /// What may be.
        wanted: String,
    },
}

/// Options as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    positional: VecDeque<String>,
    named: BTreeMap<String, String>,
}

impl Arguments {
    /// Adds a value without a name.
    pub fn push(&mut self, value: impl Into<String>) {
        self.positional.push_back(value.into());
    }

    /// Adds a value with its option's name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.named.insert(name.into(), value.into());
    }

    /// Takes the value of an option that may go without its name.
    ///
    /// # Errors
    /// See [`ArgumentError`].
    pub fn positional<T: Argument>(&mut self, name: &'static str) -> Result<T, ArgumentError> {
        let text = match self.named.remove(name) {
            Some(text) => Some(text),
            None => self.positional.pop_front(),
        };
        match text {
            Some(text) => parse(name, text),
            None => T::absent().ok_or(ArgumentError::Missing(name)),
        }
    }

    /// Takes the value of an option that may go without its name, and holds numbers to a range.
    ///
    /// # Errors
    /// See [`ArgumentError`].
    pub fn positional_in<T: Argument>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<T, ArgumentError> {
        let value: T = self.positional(name)?;
        match value.number().filter(|number| !range.contains(number)) {
            None => Ok(value),
            Some(number) => Err(ArgumentError::Value {
                name,
                text: number.to_string(),
                wanted: number_in(&range),
            }),
        }
    }

    /// Takes the value of a named option.
    ///
    /// # Errors
    /// See [`ArgumentError`].
    pub fn named<T: Argument>(
        &mut self,
        name: &'static str,
        default: T,
    ) -> Result<T, ArgumentError> {
        let text = self.named.remove(name);
        text.map_or(Ok(default), |text| parse(name, text))
    }

    /// Nothing must be left.
    ///
    /// # Errors
    /// [`ArgumentError::Unknown`], [`ArgumentError::TooMany`].
    pub fn finish(mut self) -> Result<(), ArgumentError> {
        match (self.named.pop_first(), self.positional.pop_front()) {
            (Some((name, _)), _) => Err(ArgumentError::Unknown(name)),
            (None, Some(value)) => Err(ArgumentError::TooMany(value)),
            (None, None) => Ok(()),
        }
    }
}

/// What may be written where a number has a range.
pub fn number_in(range: &RangeInclusive<u32>) -> String {
    format!("a number from {} to {}", range.start(), range.end())
}

fn parse<T: Argument>(name: &'static str, text: String) -> Result<T, ArgumentError> {
    let wanted = T::wanted;
    T::parse(&text).ok_or_else(|| ArgumentError::Value {
        name,
        wanted: wanted(),
        text,
    })
}

/// Options as they print: those that differ from what they are by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Values without names.
    pub positional: Vec<String>,
    /// Values with names.
    pub named: Vec<(&'static str, String)>,
}

impl Written {
    /// Adds a value without a name.
    pub fn positional<T: Argument>(&mut self, value: &T) {
        self.positional.extend(value.print());
    }

    /// Adds a named value unless it is the default.
    pub fn named<T: Argument>(&mut self, name: &'static str, value: &T, default: &T) {
        if value != default {
            self.named.extend(value.print().map(|text| (name, text)));
        }
    }
}

/// Options of one pass, as a type.
pub trait Options: Sized {
    /// What they are.
    fn parameters() -> Vec<Parameter>;

    /// From text.
    ///
    /// # Errors
    /// See [`ArgumentError`].
    fn read(arguments: &mut Arguments) -> Result<Self, ArgumentError>;

    /// To text.
    fn write(&self, written: &mut Written);
}

/// Writes [`Options`] for a struct: first the fields that may go without their names, with the range of a number where
/// it has one, then those with names and defaults.
///
/// ```
/// # use warpwright_pass::options;
/// #[derive(Debug)]
/// struct Clamp { most: u32, least: u32 }
/// options!(Clamp: [most "the largest value" in 1..=8]; [least: u32 = 0, "the smallest"]);
/// ```
#[macro_export]
macro_rules! options {
    (@wanted $pass:ident $field:ident) => {
        wanted(|pass: &$pass| &pass.$field)
    };
    (@wanted $pass:ident $field:ident $range:expr) => {
        $crate::options::number_in(&$range)
    };
    (@read $arguments:ident $field:ident) => {
        $arguments.positional(stringify!($field))?
    };
    (@read $arguments:ident $field:ident $range:expr) => {
        $arguments.positional_in(stringify!($field), $range)?
    };
    ($pass:ident: [$($field:ident $about:literal $(in $range:expr)?),*]; [$($name:ident: $ty:ty = $default:expr, $text:literal);*]) => {
        impl $crate::options::Options for $pass {
            fn parameters() -> Vec<$crate::options::Parameter> {
                #[allow(unused_imports)]
                use $crate::options::Argument;
                #[allow(dead_code)]
                fn wanted<P, T: Argument>(_: fn(&P) -> &T) -> String {
                    T::wanted()
                }
                vec![
                    $($crate::options::Parameter {
                        name: stringify!($field),
                        about: $about,
                        wanted: $crate::options!(@wanted $pass $field $($range)?),
                        is_positional: true,
                    },)*
                    $($crate::options::Parameter {
                        name: stringify!($name),
                        about: $text,
                        wanted: <$ty as Argument>::wanted(),
                        is_positional: false,
                    },)*
                ]
            }

            #[allow(unused_variables)]
            fn read(
                arguments: &mut $crate::options::Arguments,
            ) -> Result<Self, $crate::options::ArgumentError> {
                Ok($pass {
                    $($field: $crate::options!(@read arguments $field $($range)?),)*
                    $($name: arguments.named::<$ty>(stringify!($name), $default)?,)*
                })
            }

            #[allow(unused_variables)]
            fn write(&self, written: &mut $crate::options::Written) {
                $(written.positional(&self.$field);)*
                $(written.named::<$ty>(stringify!($name), &self.$name, &$default);)*
            }
        }
    };
}

/// Writes [`Argument`] for an enum of words.
#[macro_export]
macro_rules! words {
    ($ty:ty: $($variant:path = $word:literal),+) => {
        impl $crate::options::Argument for $ty {
            fn wanted() -> String {
                [$(concat!("`", $word, "`")),+].join(" or ")
            }

            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some($variant),)+
                    _ => None,
                }
            }

            fn print(&self) -> Option<String> {
                Some(match self {
                    $($variant => $word,)+
                }.to_owned())
            }
        }
    };
}
