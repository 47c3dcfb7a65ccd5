//! Names that generated kernels cannot use, and the functions of CUDA's mathematical library.

use super::ir::{BinaryOp, Element, Function};

/// Words of C++ and CUDA C that name nothing else, sorted.
const RESERVED: [&str; 92] = [
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "function",
    "goto",
    "gridDim",
    "if",
    "inline",
    "int",
    "iterator",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "parameter",
    "private",
    "protected",
    "public",
    "reassociate",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unroll",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// May nothing have this name? The DSL's own words count: a stencil is printed in it as well.
pub(super) fn reserved(name: &str) -> bool {
    RESERVED.binary_search(&name).is_ok() || name.starts_with("__")
}

impl Function {
    /// All functions.
    pub const ALL: [Function; 12] = [
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
        }
    }

    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        match self {
            Function::Sqrt | Function::Abs | Function::Exp | Function::Log => 1,
            Function::Min | Function::Max | Function::Pow | Function::When => 2,
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
    pub fn text(self, arguments: &[String], is_float: bool) -> String {
        match (self, self.comparison(), arguments) {
            (_, Some(op), [x, y, a, b]) => format!("({x} {op} {y} ? {a} : {b})"),
            (Function::When, _, [_, value]) => value.clone(),
            _ => {
                let suffix = if is_float { "f" } else { "" };
                format!("{}{suffix}({})", self.name(), arguments.join(", "))
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
    fn reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
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
