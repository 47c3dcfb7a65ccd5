//! Tokens to the tree, by recursive descent.

use super::ast::{Assign, Call, Function, Name, Node, NodeKind, Op, Program, Sum, Variable};
use super::lex::{Kind, Token, tokens};
use crate::ir::{BinaryOp, Element};
use crate::names::reserved;
use warpwright_cudac::diag::{Diagnostic, Span};

/// Deepest nesting of parentheses and signs.
const DEEPEST: usize = 200;

/// Most operators in a row, such as those of a sum.
const LONGEST: usize = 450;

type Parsed<T> = Result<T, Diagnostic>;

/// Parses a file up to its first error.
pub(super) fn parse(text: &str) -> Parsed<Program> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
    };
    let mut program = Program::default();
    while parser.peek().kind != Kind::End {
        parser.item(&mut program)?;
    }
    Ok(program)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// The next token; the last one is the end.
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    /// Where the last token read ends.
    fn end(&self) -> usize {
        let last = self.at.saturating_sub(1).min(self.tokens.len() - 1);
        self.tokens[last].span.end
    }

    fn is(&self, punct: &str) -> bool {
        matches!(self.peek().kind, Kind::Punct(p) if p == punct)
    }

    fn eat(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, punct: &str) -> Parsed<Span> {
        if self.is(punct) {
            return Ok(self.next().span);
        }
        Err(self.unexpected(&format!("`{punct}`")))
    }

    /// The next token is not what may stand there.
    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let token = self.peek();
        let found = match &token.kind {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Integer(_) | Kind::Real(..) => "a number".to_owned(),
            Kind::Punct(punct) => format!("`{punct}`"),
            Kind::End => "the end of the file".to_owned(),
        };
        let what = format!("{wanted} is expected, not {found}");
        Diagnostic::error("stencil::syntax", what)
            .label(token.span.clone(), format!("{wanted} goes here"))
    }

    fn word(&mut self, wanted: &str) -> Parsed<Name> {
        match &self.peek().kind {
            Kind::Word(text) => {
                let text = text.clone();
                let span = self.next().span;
                Ok(Name { text, span })
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// A name that is new or known, but no word of C++ or CUDA: kernels are made of these names.
    fn name(&mut self, wanted: &str) -> Parsed<Name> {
        let name = self.word(wanted)?;
        if reserved(&name.text) {
            let what = format!("`{}` is a word of CUDA C", name.text);
            return Err(
                Diagnostic::error("stencil::name", what).label(name.span, "cannot name anything")
            );
        }
        Ok(name)
    }

    /// `first separator first … close`, possibly empty.
    fn list<T>(
        &mut self,
        close: &str,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut all = Vec::new();
        if self.eat(close) {
            return Ok(all);
        }
        loop {
            all.push(one(self)?);
            if !self.eat(",") {
                self.expect(close)?;
                return Ok(all);
            }
        }
    }

    fn item(&mut self, program: &mut Program) -> Parsed<()> {
        let word = self.word("`function`, a declaration, `unroll`, a call or `return`")?;
        match &*word.text {
            "function" => program.functions.push(self.function()?),
            "parameter" => {
                let names = self.list(";", |p| p.name("the name of a size"))?;
                program.parameters.extend(names);
            }
            "iterator" => {
                let names = self.list(";", |p| p.name("the name of an iterator"))?;
                program.iterators.extend(names);
            }
            declared if let Some(element) = element(declared) => {
                let variables = self.list(";", |p| p.variable(element))?;
                program.variables.extend(variables);
            }
            "points" if !self.is("(") => {
                let points = self.list(";", Self::points)?;
                program.points.extend(points);
            }
            "unroll" => {
                let factors = self.list(";", Self::unroll)?;
                program.unrolls.extend(factors);
            }
            "return" => {
                let names = self.list(";", |p| p.name("the name of an array"))?;
                program.returns.extend(names);
            }
            "reassociate" => {
                self.expect(";")?;
                program.reassociate = true;
            }
            _ if self.is("(") => {
                self.expect("(")?;
                let actuals = self.list(")", |p| p.name("the name of an array or scalar"))?;
                self.expect(";")?;
                let function = word;
                program.calls.push(Call { function, actuals });
            }
            _ => {
                let what = format!("`{}` begins nothing that this language has", word.text);
                return Err(Diagnostic::error("stencil::syntax", what)
                    .label(word.span, "here")
                    .help(
                        "a file holds `function`, `parameter`, `iterator`, `double`, `float`, \
                         `points`, `unroll`, `reassociate`, calls and `return`",
                    ));
            }
        }
        Ok(())
    }

    fn variable(&mut self, element: Element) -> Parsed<Variable> {
        let name = self.name("a name")?;
        let mut extents = Vec::new();
        while self.eat("[") {
            extents.push(self.sum("a size")?);
            self.expect("]")?;
        }
        let value = if extents.is_empty() && self.eat("=") {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Variable {
            element,
            name,
            extents,
            value,
        })
    }

    /// `i = 2 : N-2`
    fn points(&mut self) -> Parsed<(Name, Sum, Sum)> {
        let name = self.name("an iterator")?;
        self.expect("=")?;
        let low = self.sum("the first point")?;
        self.expect(":")?;
        let end = self.sum("one past the last point")?;
        Ok((name, low, end))
    }

    fn unroll(&mut self) -> Parsed<(Name, u32)> {
        let name = self.name("an iterator")?;
        self.expect("=")?;
        let token = self.peek().clone();
        match token.kind {
            Kind::Integer(factor @ 1..=64) => {
                self.at += 1;
                Ok((name, factor as u32))
            }
            Kind::Integer(_) => {
                let what = "an unroll factor is a number from 1 to 64";
                Err(Diagnostic::error("stencil::unroll", what).label(token.span, "not this"))
            }
            _ => Err(self.unexpected("an unroll factor")),
        }
    }

    fn function(&mut self) -> Parsed<Function> {
        let name = self.name("the name of the function")?;
        self.expect("(")?;
        let formals = self.list(")", |p| p.name("an argument"))?;
        self.expect("{")?;
        let mut body = Vec::new();
        while !self.eat("}") {
            body.push(self.assign()?);
        }
        Ok(Function {
            name,
            formals,
            body,
        })
    }

    fn assign(&mut self) -> Parsed<Assign> {
        let start = self.peek().span.start;
        let declared = match &self.peek().kind {
            Kind::Word(word) => element(word),
            _ => None,
        };
        self.at += usize::from(declared.is_some());
        let name = self.name("a statement or `}`")?;
        let subscripts = self.subscripts()?;
        let place = name.span.start..self.end();
        let op = match (declared, self.peek().kind.clone()) {
            (_, Kind::Punct("=")) => Op::Set,
            (None, Kind::Punct("+=")) => Op::Add,
            (None, Kind::Punct("-=")) => Op::Subtract,
            (None, _) => return Err(self.unexpected("`=`, `+=` or `-=`")),
            (Some(_), _) => return Err(self.unexpected("`=`")),
        };
        self.at += 1;
        let value = self.expression()?;
        self.expect(";")?;
        Ok(Assign {
            declared,
            name,
            subscripts,
            place,
            op,
            value,
            span: start..self.end(),
        })
    }

    fn subscripts(&mut self) -> Parsed<Vec<Sum>> {
        let mut all = Vec::new();
        while self.eat("[") {
            all.push(self.sum("a subscript")?);
            self.expect("]")?;
        }
        Ok(all)
    }

    /// `name`, `name + 1`, `1 + name`, `-1` or so.
    fn sum(&mut self, wanted: &str) -> Parsed<Sum> {
        let start = self.peek().span.start;
        let mut sum = Sum {
            name: None,
            add: 0,
            span: start..start,
        };
        let mut minus = self.eat("-");
        loop {
            let token = self.peek().clone();
            match token.kind {
                Kind::Integer(value) if value < 1 << 40 => {
                    self.at += 1;
                    sum.add += if minus { -value } else { value };
                    if sum.add.abs() > 1 << 40 {
                        return Err(self.unexpected(wanted));
                    }
                }
                Kind::Word(_) if !minus && sum.name.is_none() => {
                    sum.name = Some(self.name(wanted)?);
                }
                _ => return Err(self.not_affine(wanted, &token)),
            }
            if self.is("*") || self.is("/") {
                let token = self.peek().clone();
                return Err(self.not_affine(wanted, &token));
            }
            minus = self.is("-");
            if !self.eat("+") && !self.eat("-") {
                sum.span.end = self.end();
                return Ok(sum);
            }
        }
    }

    fn not_affine(&self, wanted: &str, token: &Token) -> Diagnostic {
        let what = format!("{wanted} is a name plus a constant, or a constant");
        Diagnostic::error("stencil::affine", what).label(token.span.clone(), "not this")
    }

    fn expression(&mut self) -> Parsed<Node> {
        self.operations(&[("+", BinaryOp::Add), ("-", BinaryOp::Sub)], |p| {
            p.operations(&[("*", BinaryOp::Mul), ("/", BinaryOp::Div)], Self::unary)
        })
    }

    /// Operators of one precedence, all grouping to the left.
    fn operations(
        &mut self,
        ops: &[(&str, BinaryOp)],
        mut operand: impl FnMut(&mut Self) -> Parsed<Node>,
    ) -> Parsed<Node> {
        let mut left = operand(self)?;
        for _ in 0..LONGEST {
            let Some(&(_, op)) = ops.iter().find(|(punct, _)| self.is(punct)) else {
                return Ok(left);
            };
            self.at += 1;
            let right = operand(self)?;
            let span = left.span.start..right.span.end;
            let kind = NodeKind::Binary(op, Box::new(left), Box::new(right));
            left = Node { kind, span };
        }
        let what = format!("there are more than {LONGEST} operators in a row");
        Err(Diagnostic::error("stencil::size", what)
            .label(self.peek().span.clone(), "too long here")
            .help("split the sum over several statements (`+=`)"))
    }

    fn unary(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("parentheses are nested more than {DEEPEST} deep");
            return Err(Diagnostic::error("stencil::size", what)
                .label(self.peek().span.clone(), "too deep here"));
        }
        let start = self.peek().span.start;
        let node = if self.eat("-") {
            let kind = NodeKind::Neg(Box::new(self.unary()?));
            let span = start..self.end();
            Node { kind, span }
        } else {
            crate::with_stack(|| self.operand())?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn operand(&mut self) -> Parsed<Node> {
        if self.eat("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let token = self.peek().clone();
        let kind = match token.kind {
            Kind::Integer(value) => {
                self.at += 1;
                NodeKind::Integer(value)
            }
            Kind::Real(value, float) => {
                self.at += 1;
                let element = if float { Element::F32 } else { Element::F64 };
                NodeKind::Real(value, element)
            }
            Kind::Word(_) => {
                let name = self.word("an operand")?;
                if self.eat("(") {
                    let arguments = self.list(")", Self::expression)?;
                    NodeKind::Call(name, arguments)
                } else if self.is("[") {
                    NodeKind::Element(name, self.subscripts()?)
                } else {
                    NodeKind::Name(name.text)
                }
            }
            _ => return Err(self.unexpected("an operand")),
        };
        let span = token.span.start..self.end();
        Ok(Node { kind, span })
    }
}

fn element(word: &str) -> Option<Element> {
    Element::ALL.into_iter().find(|e| e.word() == word)
}
