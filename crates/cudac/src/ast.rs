//! A subset of CUDA C as a tree, with the place of every node in the source.
//!
//! Macros stand in the tree as they were written; [`crate::macros`] expands them for whoever needs
//! to know what they mean. Parentheses and comments are kept, so that printing gives back what a
//! person wrote.

use crate::diag::Span;

/// A name and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Ident,
    /// Everything in front of the body, as written.
    pub head: String,
    /// The type of its value.
    pub result: Type,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its statements.
    pub body: Block,
    /// From the first qualifier to the closing brace.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: Ident,
    /// Its type; an array is a pointer to its first element.
    pub ty: Type,
    /// It is passed by reference.
    pub is_reference: bool,
    /// The whole declaration.
    pub span: Span,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `void`, `double`, `unsigned int`, `float4`, …; words in the order of the text.
    Named(String),
    /// `const T`
    Const(Box<Type>),
    /// `T *` or `T *__restrict__`
    Pointer(Box<Type>, bool),
    /// `T [n]`; the length may be left out.
    Array(Box<Type>, Option<Box<Expr>>),
}

/// Statements in braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Stmt>,
    /// Comments after the last statement.
    pub tail: Vec<String>,
    /// With the braces.
    pub span: Span,
}

/// A statement with the comments that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands, without comments.
    pub span: Span,
    /// Comments in front of it, each with its marks.
    pub leading: Vec<String>,
    /// A comment behind it on its last line.
    pub trailing: Option<String>,
    /// An empty line stands in front of it.
    pub spaced: bool,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `const double a = 1, *p;`
    Declare(Declaration),
    /// `expression;`
    Expr(Expr),
    /// `if (cond) … else …`
    If(Expr, Block, Option<Block>),
    /// `for (init; cond; step) …`
    For(Box<For>),
    /// `while (cond) …`
    While(Expr, Block),
    /// `return value;`
    Return(Option<Expr>),
    /// `{ … }`
    Block(Block),
    /// A preprocessor line inside a function: `#pragma unroll`, `#define …`.
    Directive(String),
    /// `break;`, `continue;` or nothing but `;`
    Plain(String),
}

/// The parts of a `for`.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// A declaration or an expression statement.
    pub init: Option<Stmt>,
    /// The condition.
    pub cond: Option<Expr>,
    /// What is done after each iteration.
    pub step: Option<Expr>,
    /// What is repeated.
    pub body: Block,
}

/// Variables declared together.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// `__shared__`, `static` and other words that are not part of the type.
    pub storage: Vec<String>,
    /// The variables.
    pub variables: Vec<Variable>,
}

/// A declared variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// Its first value.
    pub init: Option<Init>,
}

/// A first value.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// `= value`
    Value(Expr),
    /// `= { a, b, … }`
    List(Vec<Init>, Span),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands; inside an expanded macro, where the macro is used.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number as written, such as `0.5f` or `1u`.
    Number(String),
    /// `true` or `false`
    Bool(bool),
    /// A variable, a function or a macro.
    Name(String),
    /// `base.field`
    Member(Box<Expr>, String),
    /// `base[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `name(arguments)`: a function or a macro.
    Call(Ident, Vec<Expr>),
    /// `-x`, `+x`, `!x`, `~x`, `*x`, `&x`
    Unary(String, Box<Expr>),
    /// `++x`, `x++`, `--x`, `x--`; whether the operator stands in front.
    Update(String, bool, Box<Expr>),
    /// `a + b`, `a && b`, …
    Binary(String, Box<Expr>, Box<Expr>),
    /// `a = b`, `a += b`, …
    Assign(String, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(T)x`, or `static_cast<T>(x)` with its word.
    Cast(Option<String>, Box<Type>, Box<Expr>),
    /// `(x)`
    Paren(Box<Expr>),
    /// `a, b`
    Comma(Box<Expr>, Box<Expr>),
}

impl Block {
    /// Calls `see` for its statements and for all statements in them, in their order; heads of loops are none.
    pub fn walk<'b>(&'b self, see: &mut dyn FnMut(&'b Stmt)) {
        for statement in &self.statements {
            see(statement);
            let blocks = statement.blocks();
            crate::with_stack(|| blocks.into_iter().for_each(|block| block.walk(see)));
        }
    }
}

impl Stmt {
    /// The blocks in it: branches, and bodies of loops.
    pub fn blocks(&self) -> Vec<&Block> {
        match &self.kind {
            StmtKind::If(_, then, otherwise) => {
                let otherwise = otherwise.iter();
                std::iter::once(then).chain(otherwise).collect()
            }
            StmtKind::For(parts) => vec![&parts.body],
            StmtKind::While(_, body) | StmtKind::Block(body) => vec![body],
            _ => Vec::new(),
        }
    }
}

impl Expr {
    /// The expression without parentheses around it.
    pub fn bare(&self) -> &Expr {
        match &self.kind {
            ExprKind::Paren(inner) => inner.bare(),
            _ => self,
        }
    }
}

impl Type {
    /// The type without `const`.
    pub fn bare(&self) -> &Type {
        match self {
            Type::Const(inner) => inner.bare(),
            _ => self,
        }
    }

    /// Is it one of the integer types?
    pub fn is_integer(&self) -> bool {
        match self.bare() {
            Type::Named(name) => {
                matches!(
                    &**name,
                    "size_t" | "ptrdiff_t" | "int64_t" | "int32_t" | "uint32_t" | "uint64_t"
                ) || name
                    .split(' ')
                    .all(|w| matches!(w, "int" | "long" | "short" | "unsigned" | "signed"))
            }
            _ => false,
        }
    }
}
