//! Names that generated kernels cannot use, and the functions of CUDA's mathematical library.

use super::ir::{BinaryOp, Element, Function};
use super::sweep::c_type;
use warpwright_cudac::names::among;

/// Words of C++ and CUDA C that name nothing else.
const RESERVED: &str = "\
     alignas alignof and asm auto bitand bitor blockDim blockIdx bool break case catch char class compl concept const \
     const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum \
     explicit export extern false float for friend function goto gridDim if inline int iterator long mutable \
     namespace new noexcept not nullptr operator or parameter private protected public reassociate register \
     reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template \
     this threadIdx throw true try typedef typeid typename union unroll unsigned using virtual void volatile warpSize \
     wchar_t while xor xor_eq";

/// May nothing have this name? The DSL's own words count: a stencil is printed in it as well.
pub(super) fn reserved(name: &str) -> bool {
    let is_type = || Element::ALL.iter().any(|element| element.word() == name);
    among(RESERVED, name) || is_type() || name.starts_with("__")
}

impl Function {
    /// All functions.
    pub const ALL: [Function; 27] = [
        Function::Sqrt,
        Function::Abs,
        Function::Min,
        Function::Max,
        Function::Fma,
        Function::Exp,
        Function::Log,
        Function::Pow,
        Function::IfLess,
        Function::IfAtMost,
        Function::IfEqual,
        Function::When,
        Function::To(Element::F32),
        Function::To(Element::F64),
        Function::To(Element::I8),
        Function::To(Element::U8),
        Function::To(Element::I16),
        Function::To(Element::U16),
        Function::To(Element::I32),
        Function::To(Element::U32),
        Function::Quotient,
        Function::Remainder,
        Function::ShiftLeft,
        Function::ShiftRight,
        Function::BitAnd,
        Function::BitOr,
        Function::BitXor,
    ];

    /// The name of the `double` function; that of `float` ends in `f`.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sqrt => "sqrt",
            Function::Abs => "fabs",
            Function::Min => "fmin",
            Function::Max => "fmax",
            Function::Fma => "fma",
            Function::Exp => "exp",
            Function::Log => "log",
            Function::Pow => "pow",
            Function::IfLess => "if_less",
            Function::IfAtMost => "if_at_most",
            Function::IfEqual => "if_equal",
            Function::When => "when",
            Function::To(Element::F32) => "to_float",
            Function::To(Element::F64) => "to_double",
            Function::To(Element::I8) => "to_schar",
            Function::To(Element::U8) => "to_uchar",
            Function::To(Element::I16) => "to_short",
            Function::To(Element::U16) => "to_ushort",
            Function::To(Element::I32) => "to_int",
            Function::To(Element::U32) => "to_uint",
            Function::Quotient => "quotient",
            Function::Remainder => "remainder_of",
            Function::ShiftLeft => "shift_left",
            Function::ShiftRight => "shift_right",
            Function::BitAnd => "bit_and",
            Function::BitOr => "bit_or",
            Function::BitXor => "bit_xor",
        }
    }

    /// Is it something of whole numbers that C writes in another way than a call?
    pub fn is_of_integers(self) -> bool {
        matches!(self, Function::To(_)) || self.sign().is_some()
    }

    /// The sign of an operation on two whole numbers.
    fn sign(self) -> Option<&'static str> {
        match self {
            Function::Quotient => Some("/"),
            Function::Remainder => Some("%"),
            Function::ShiftLeft => Some("<<"),
            Function::ShiftRight => Some(">>"),
            Function::BitAnd => Some("&"),
            Function::BitOr => Some("|"),
            Function::BitXor => Some("^"),
            _ => None,
        }
    }

    /// The type of its value, from those of its arguments.
    pub fn element(self, arguments: impl Iterator<Item = Element>) -> Option<Element> {
        match self {
            Function::To(element) => Some(element),
            _ => arguments.skip(self.first_of_value()).reduce(Element::wider),
        }
    }

    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        match self {
            Function::Sqrt | Function::Abs | Function::Exp | Function::Log | Function::To(_) => 1,
            Function::Min | Function::Max | Function::Pow | Function::When => 2,
            Function::Quotient
            | Function::Remainder
            | Function::ShiftLeft
            | Function::ShiftRight
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor => 2,
            Function::Fma => 3,
            Function::IfLess | Function::IfAtMost | Function::IfEqual => 4,
        }
    }

    /// The comparison by which it chooses between its last two arguments, if it does.
    pub fn comparison(self) -> Option<&'static str> {
        match self {
            Function::IfLess => Some("<"),
            Function::IfAtMost => Some("<="),
            Function::IfEqual => Some("=="),
            _ => None,
        }
    }

    /// The first argument from which on the types of arguments are that of the value.
    pub fn first_of_value(self) -> usize {
        match self {
            Function::IfLess | Function::IfAtMost | Function::IfEqual => 2,
            Function::When => 1,
            _ => 0,
        }
    }

    /// A call in C.
    pub fn text(self, arguments: &[String], element: Element) -> String {
        match (self, self.comparison(), arguments) {
            (_, Some(op), [x, y, a, b]) => format!("({x} {op} {y} ? {a} : {b})"),
            (Function::When, _, [_, value]) => value.clone(),
            (Function::To(element), _, [value]) => format!("({})({value})", c_type(element)),
            // What is shifted out of the sign is no error of the arithmetic.
            (Function::ShiftLeft, _, [a, b]) if element == Element::I32 => {
                format!("(int)((unsigned)({a}) << ({b}))")
            }
            (_, _, [a, b]) if self.sign().is_some() => {
                format!("(({a}) {} ({b}))", self.sign().unwrap_or_default())
            }
            _ => {
                let name = match (self, element) {
                    (_, Element::F64) => self.name().to_owned(),
                    (Function::Min, _) if element.is_integer() => "min".to_owned(),
                    (Function::Max, _) if element.is_integer() => "max".to_owned(),
                    (Function::Abs, _) if element.is_integer() => "abs".to_owned(),
                    _ => format!("{}f", self.name()),
                };
                format!("{name}({})", arguments.join(", "))
            }
        }
    }

    /// The function with this name, and the type of its result.
    pub fn named(name: &str) -> Option<(Function, Element)> {
        let find = |base: &str| Function::ALL.into_iter().find(|f| f.name() == base);
        let float = || Some((find(name.strip_suffix('f')?)?, Element::F32));
        find(name).map(|f| (f, Element::F64)).or_else(float)
    }
}

impl Element {
    /// All types, in the order in which a text declares them.
    pub const ALL: [Element; 8] = [
        Element::F64,
        Element::F32,
        Element::U8,
        Element::I8,
        Element::U16,
        Element::I16,
        Element::I32,
        Element::U32,
    ];

    /// Its name in the compact language.
    pub fn word(self) -> &'static str {
        match self {
            Element::F32 => "float",
            Element::F64 => "double",
            Element::I8 => "schar",
            Element::U8 => "uchar",
            Element::I16 => "short",
            Element::U16 => "ushort",
            Element::I32 => "int",
            Element::U32 => "uint",
        }
    }
}

impl BinaryOp {
    /// Its sign in C.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
        }
    }

    /// Its value on `double`.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
        }
    }

    /// An operation in C on two texts of a type: whole numbers wrap, which is no error of the new kernel where the
    /// source computes what it does not use, or computes only under a condition.
    pub(crate) fn text(self, a: &str, b: &str, element: Element) -> String {
        let op = self.symbol();
        match element {
            Element::I32 => format!("(int)((unsigned)({a}) {op} (unsigned)({b}))"),
            _ => format!("{a} {op} {b}"),
        }
    }

    /// Its value in a type.
    pub fn apply_in(self, element: Element, a: f64, b: f64) -> f64 {
        match (element.is_integer(), self) {
            (true, BinaryOp::Mul) => element.wrapped((a as i64).wrapping_mul(b as i64)),
            _ => element.round(self.apply(a, b)),
        }
    }

    /// Its value on integers as in C, if there is one.
    pub fn apply_integer(self, a: i64, b: i64) -> Option<i64> {
        match self {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Sub => a.checked_sub(b),
            BinaryOp::Mul => a.checked_mul(b),
            BinaryOp::Div => a.checked_div(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_whole_words() {
        assert!(reserved("while") && reserved("__x") && !reserved("whale"));
    }

    #[test]
    fn functions_have_a_name_in_each_type() {
        for function in Function::ALL {
            let name = function.name();
            assert_eq!(Function::named(name), Some((function, Element::F64)));
            let float = format!("{name}f");
            assert_eq!(Function::named(&float), Some((function, Element::F32)));
        }
        assert_eq!(Function::named("sin"), None);
    }
}
