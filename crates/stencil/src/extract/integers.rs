//! Whole numbers that are data: pixels, cells, what is counted and added up.
//!
//! An integer variable of a kernel is a place or a size, known as a polynomial, or it is a value of the point, computed
//! by the new kernel. It is a value where a value is assigned to it, and where it is counted up and never says which
//! element is meant: `int n = 0; … if (in[c] > t) n++;`.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::Machine;
use super::value::{Node, NodeKind, Operand, Val, Valued, not_understood};
use crate::ir::{BinaryOp, Element, Function};
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::ast::{self, Block, Expr, ExprKind, Ident, Init, Stmt, StmtKind, Type};
use warpwright_cudac::diag::Span;
use warpwright_cudac::{Literal, Scalar};

/// What is known of a local variable before the kernel is executed.
#[derive(Clone, Debug, Default)]
struct Local {
    /// Names in the values that it gets.
    of: BTreeSet<String>,
    /// An element is among them.
    is_loaded: bool,
    /// It gets a value behind its declaration.
    changes: bool,
    /// It is of another type than whole numbers, so what is made of it is a value.
    is_value: bool,
}

/// The variables of a kernel.
#[derive(Default)]
struct Locals {
    all: BTreeMap<String, Local>,
    /// Names in subscripts, in heads of loops, and of pointers.
    places: BTreeSet<String>,
}

impl Machine<'_> {
    /// The type of an element or a value, whole numbers included.
    pub(super) fn data_element(&self, ty: &Type) -> Option<Element> {
        if let Some(element) = self.element(ty) {
            return Some(element);
        }
        match self.file.scalar(ty, &self.types) {
            Some(Scalar::Integer(16, true)) => return Some(Element::I16),
            Some(Scalar::Integer(16, false)) => return Some(Element::U16),
            Some(Scalar::Integer(32, true)) => return Some(Element::I32),
            Some(Scalar::Integer(32, false)) => return Some(Element::U32),
            Some(_) => return None,
            None => {}
        }
        let Type::Named(name) = self.resolved(ty) else {
            return None;
        };
        // Whether `char` alone has a sign is the host compiler's choice.
        let mut words: Vec<&str> = name.split_whitespace().collect();
        words.sort_unstable();
        match words.as_slice() {
            ["char", "unsigned"] | ["uint8_t" | "std::uint8_t" | "uchar"] => Some(Element::U8),
            ["char", "signed"] | ["int8_t" | "std::int8_t"] => Some(Element::I8),
            _ => None,
        }
    }

    /// A value as an operand of arithmetic; a size that is no place and no length is one, too.
    pub(super) fn as_operand(&mut self, value: Val, span: &Span) -> Valued<Operand> {
        if let Val::Int(value) = &value
            && let Some(scalar) = self.size_as_value(value)
        {
            let (_, element) = self.trace.scalars[scalar];
            return Ok(Operand::Node(Node {
                kind: NodeKind::Scalar(scalar),
                element,
                span: span.clone(),
            }));
        }
        super::value::operand(value, span)
    }

    fn size_as_value(&mut self, value: &Poly) -> Option<usize> {
        let [Symbol::Size(size)] = value.symbols()[..] else {
            return None;
        };
        if *value != Poly::symbol(Symbol::Size(size)) {
            return None;
        }
        let element = self.size_types.get(size).copied().flatten()?;
        if let Some(scalar) = self.trace.valued.get(&size) {
            return Some(*scalar);
        }
        let name = self.trace.sizes[size].clone();
        self.trace.scalars.push((name, element));
        let scalar = self.trace.scalars.len() - 1;
        self.trace.valued.insert(size, scalar);
        Some(scalar)
    }

    /// A size in another type. Places and lengths are the same number there; as a value it may be another one, which nobody
    /// here keeps apart from the size itself, so that the size is no value any more.
    pub(super) fn retype(&mut self, ty: &Type, value: &Poly) {
        let element = self.data_element(ty);
        for symbol in value.symbols() {
            if let Symbol::Size(size) = symbol
                && !self.is_wide_type(ty)
                && let Some(own) = self.size_types.get_mut(size)
                && *own != element
            {
                *own = None;
            }
        }
    }

    /// Is the type of an expression one of 64 bits, as far as it matters?
    fn is_wide(&self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Name(name) => self.wide.contains(name),
            ExprKind::Number(text) => type_of_number(text).1,
            ExprKind::Index(base, _) => self.is_wide(base),
            ExprKind::Cast(_, ty, _) => self.is_wide_type(ty),
            ExprKind::Unary(_, inner) => self.is_wide(inner),
            ExprKind::Binary(_, a, b) | ExprKind::Conditional(_, a, b) => {
                self.is_wide(a) || self.is_wide(b)
            }
            ExprKind::Call(_, arguments) => arguments.iter().any(|a| self.is_wide(a)),
            _ => false,
        }
    }

    pub(super) fn is_wide_type(&self, ty: &Type) -> bool {
        let scalar = self.file.scalar(ty, &self.types);
        matches!(scalar, Some(Scalar::Integer(64, _)))
    }

    /// A known number beside a value of whole numbers has a type of its own: only `int` is understood.
    pub(super) fn is_int(&self, value: &Val, expr: &Expr) -> bool {
        let Val::Int(value) = value else {
            return true;
        };
        let known = value.as_constant();
        let fits = known.is_none_or(|known| i32::try_from(known).is_ok());
        fits && !self.is_unsigned(expr) && !self.is_wide(expr)
    }

    /// A known number brought to the type of the variable that gets it.
    pub(super) fn cut_off(&self, ty: &Type, value: Poly) -> Poly {
        let element = self.data_element(ty).filter(|e| e.is_integer());
        match (element, value.as_constant()) {
            (Some(element), Some(known)) => Poly::constant(element.wrapped(known) as i64),
            _ => value,
        }
    }

    /// What a variable holds of a place or number: one of 8 or 16 bits less than all of it.
    pub(super) fn held(&self, name: &str, value: Poly, span: &Span) -> Valued<Poly> {
        match (self.narrow.get(name), value.as_constant()) {
            (None, _) => Ok(value),
            (Some(element), Some(known)) => Ok(Poly::constant(element.wrapped(known) as i64)),
            (Some(element), None) => {
                let bits = 8 * element.size();
                Err(not_understood(
                    &format!("a place or size in a variable of {bits} bits"),
                    span,
                ))
            }
        }
    }

    /// An operation of which whole numbers have a part; none on floating-point numbers alone.
    pub(super) fn on_integers(
        &mut self,
        op: &str,
        a: &Operand,
        b: &Operand,
        span: &Span,
    ) -> Valued<Option<Node>> {
        let types: Vec<Element> = [a, b].into_iter().filter_map(type_of).collect();
        if !types.iter().any(|element| element.is_integer()) {
            return Ok(None);
        }
        let element = types.iter().copied().fold(Element::I32, Element::wider);
        let all = vec![a.clone(), b.clone()];
        let call = |function| Ok(Some(called(function, all.clone(), element, span)));
        if !element.is_integer() {
            return Ok(None);
        }
        for known in [a, b] {
            if let Operand::Integer(value) = known
                && i32::try_from(*value).is_err()
            {
                return Err(not_understood("a number that `int` does not hold", span));
            }
        }
        match op {
            "/" | "%" => {
                let is_safe = match b {
                    Operand::Integer(by) => *by != 0 && *by != -1,
                    // It is done once the new kernel comes to it, whatever the conditions say.
                    Operand::Node(_) => self.choices.is_empty() && self.doubtful == 0,
                };
                if !is_safe {
                    return Err(not_understood("a division by this under a condition", span));
                }
                call(if op == "/" {
                    Function::Quotient
                } else {
                    Function::Remainder
                })
            }
            "<<" | ">>" => {
                let Operand::Integer(0..=31) = b else {
                    return Err(not_understood("a shift by this", span));
                };
                let Some(own) = type_of(a) else {
                    return Err(not_understood("this shift", span));
                };
                let function = match op {
                    "<<" => Function::ShiftLeft,
                    _ => Function::ShiftRight,
                };
                Ok(Some(called(function, all, own.promoted(), span)))
            }
            "&" => call(Function::BitAnd),
            "|" => call(Function::BitOr),
            "^" => call(Function::BitXor),
            "+" | "-" | "*" => {
                let op = match op {
                    "+" => BinaryOp::Add,
                    "-" => BinaryOp::Sub,
                    _ => BinaryOp::Mul,
                };
                Ok(Some(Node {
                    kind: NodeKind::Binary(op, Box::new(a.clone()), Box::new(b.clone())),
                    element,
                    span: span.clone(),
                }))
            }
            _ => Ok(None),
        }
    }

    /// `min`, `max` and `abs` of whole numbers.
    pub(super) fn call_on_integers(
        &self,
        name: &str,
        operands: &[Operand],
        span: &Span,
    ) -> Valued<Option<Node>> {
        let function = match name {
            "min" => Function::Min,
            "max" => Function::Max,
            "abs" => Function::Abs,
            _ => return Ok(None),
        };
        let types: Vec<Element> = operands.iter().filter_map(type_of).collect();
        if !types.iter().any(|element| element.is_integer()) {
            return Ok(None);
        }
        let element = types.iter().copied().fold(Element::I32, Element::wider);
        let is_one_kind = element.is_integer() && !(name == "abs" && element == Element::U32);
        if !is_one_kind || operands.len() != function.arity() {
            let what = format!("`{name}` of these types");
            return Err(not_understood(&what, span));
        }
        Ok(Some(called(function, operands.to_vec(), element, span)))
    }

    /// The integer variables that are values of the point.
    pub(super) fn find_counts(&mut self, function: &ast::Function) {
        let mut found = Locals::default();
        for parameter in &function.parameters {
            let local = Local {
                is_value: self.element(&parameter.ty).is_some(),
                ..Local::default()
            };
            found.all.insert(parameter.name.text.clone(), local);
        }
        self.locals_of(&function.body, &mut found);
        // What a place is made of is one.
        loop {
            let all = found.places.iter().filter_map(|name| found.all.get(name));
            let all = all.filter(|local| !local.is_value);
            let more: BTreeSet<String> = all.flat_map(|local| local.of.iter().cloned()).collect();
            let before = found.places.len();
            found.places.extend(more);
            if found.places.len() == before {
                break;
            }
        }
        let mut data: BTreeSet<String> = BTreeSet::new();
        loop {
            let before = data.len();
            for (name, local) in &found.all {
                let is_value = |name: &String| {
                    data.contains(name) || found.all.get(name).is_some_and(|l| l.is_value)
                };
                let counts = local.changes
                    && !found.places.contains(name)
                    && local.of.iter().all(|of| of == name || is_value(of));
                if local.is_loaded || local.of.iter().any(is_value) || counts {
                    data.insert(name.clone());
                }
            }
            if data.len() == before {
                break;
            }
        }
        self.counts = data;
    }

    fn locals_of(&self, block: &Block, found: &mut Locals) {
        for statement in &block.statements {
            crate::with_stack(|| self.locals_of_one(statement, found));
        }
    }

    fn locals_of_one(&self, statement: &Stmt, found: &mut Locals) {
        match &statement.kind {
            StmtKind::Declare(declaration) => {
                for variable in &declaration.variables {
                    let name = &variable.name.text;
                    let ty = self.resolved(&variable.ty);
                    let is_pointer = matches!(ty, Type::Pointer(..));
                    let local = found.all.entry(name.clone()).or_default();
                    local.is_value |= self.element(&ty).is_some();
                    if let Some(Init::Value(value)) = &variable.init {
                        self.assigned(name, value, is_pointer, found);
                    }
                }
            }
            StmtKind::Expr(expr) => self.effect_of(expr, found),
            StmtKind::If(_, then, otherwise) => {
                self.locals_of(then, found);
                otherwise.iter().for_each(|b| self.locals_of(b, found));
            }
            StmtKind::For(parts) => {
                parts.init.iter().for_each(|s| self.locals_of_one(s, found));
                for expr in parts.cond.iter().chain(&parts.step) {
                    let mut names = BTreeSet::new();
                    self.names_in(expr, &mut names, &mut BTreeSet::new());
                    found.places.extend(names);
                    self.effect_of(expr, found);
                }
                self.locals_of(&parts.body, found);
            }
            StmtKind::While(_, body) | StmtKind::Block(body) => self.locals_of(body, found),
            StmtKind::Return(_) | StmtKind::Directive(_) | StmtKind::Plain(_) => {}
        }
    }

    fn effect_of(&self, expr: &Expr, found: &mut Locals) {
        let Ok(expr) = self.expanded(expr) else {
            return;
        };
        match &expr.bare().kind {
            ExprKind::Assign(_, left, right) => {
                let mut read = BTreeSet::new();
                match &left.bare().kind {
                    ExprKind::Name(name) => {
                        if let Some(local) = found.all.get_mut(name) {
                            local.changes = true;
                        }
                        self.assigned(&name.clone(), right, false, found);
                    }
                    _ => {
                        self.names_in(left, &mut BTreeSet::new(), &mut found.places);
                        self.names_in(right, &mut read, &mut found.places);
                    }
                }
            }
            ExprKind::Update(_, _, target) => {
                if let ExprKind::Name(name) = &target.bare().kind
                    && let Some(local) = found.all.get_mut(name)
                {
                    local.changes = true;
                }
            }
            _ => {}
        }
    }

    fn assigned(&self, name: &str, value: &Expr, is_pointer: bool, found: &mut Locals) {
        let mut read = BTreeSet::new();
        let is_loaded = self.names_in(value, &mut read, &mut found.places);
        if is_pointer {
            found.places.extend(read);
            return;
        }
        if let Some(local) = found.all.get_mut(name) {
            local.of.extend(read);
            local.is_loaded |= is_loaded;
        }
    }

    /// The names whose values an expression uses, and those that say which element is meant; whether it reads one.
    fn names_in(
        &self,
        expr: &Expr,
        values: &mut BTreeSet<String>,
        places: &mut BTreeSet<String>,
    ) -> bool {
        crate::with_stack(|| {
            let Ok(expr) = self.expanded(expr) else {
                return false;
            };
            let mut both = |a: &Expr, b: &Expr| {
                self.names_in(a, values, places) | self.names_in(b, values, places)
            };
            match &expr.bare().kind {
                ExprKind::Name(name) => {
                    values.insert(name.clone());
                    false
                }
                ExprKind::Index(base, index) => {
                    let mut inner = BTreeSet::new();
                    self.names_in(index, &mut inner, places);
                    places.extend(inner);
                    let mut base = base.bare();
                    while let ExprKind::Index(inner, index) = &base.kind {
                        let mut names = BTreeSet::new();
                        self.names_in(index, &mut names, places);
                        places.extend(names);
                        base = inner.bare();
                    }
                    // Lists of numbers are known.
                    match &base.kind {
                        ExprKind::Name(name) => !self.is_list(name),
                        _ => true,
                    }
                }
                ExprKind::Unary(op, inner) if op == "*" => {
                    let mut names = BTreeSet::new();
                    self.names_in(inner, &mut names, places);
                    places.extend(names);
                    true
                }
                ExprKind::Unary(_, inner) | ExprKind::Cast(_, _, inner) => {
                    self.names_in(inner, values, places)
                }
                ExprKind::Binary(_, a, b) => both(a, b),
                // `x > 0 ? x - 1 : 0` is a place; `in[c] > 0 ? 1 : 0` is none.
                ExprKind::Conditional(cond, a, b) => both(cond, a) | both(a, b),
                ExprKind::Call(name, arguments) => {
                    let mut is_loaded = name.text == "__ldg";
                    for argument in arguments {
                        is_loaded |= self.names_in(argument, values, places);
                    }
                    is_loaded
                }
                _ => false,
            }
        })
    }

    /// Is it an array of the kernel or the file whose numbers are known?
    fn is_list(&self, name: &str) -> bool {
        self.lists.contains(name)
            || self.file.globals.iter().any(|global| {
                let words = ["__constant__", "__device__", "__managed__"];
                global.name.text == name && !words.into_iter().any(|word| global.is(word))
            })
    }

    /// The thread's own arrays with a list of numbers.
    pub(super) fn find_lists(&mut self, block: &Block) {
        block.walk(&mut |statement| {
            if let StmtKind::Declare(declaration) = &statement.kind {
                let lists = declaration.variables.iter();
                let lists = lists.filter(|v| matches!(v.init, Some(Init::List(..))));
                self.lists.extend(lists.map(|v| v.name.text.clone()));
            }
        });
    }

    /// Is an integer variable of this name and with this first value a value of the point?
    pub(super) fn is_count(&self, name: &str, value: Option<&Val>) -> bool {
        match value {
            Some(Val::Real(_)) => true,
            Some(Val::Int(value)) if value.as_constant().is_none() => {
                self.calls == 0 && self.counts.contains(name) && value.points().is_empty()
            }
            Some(Val::Int(_)) | None => self.calls == 0 && self.counts.contains(name),
            Some(Val::Pointer(_)) => false,
        }
    }
}

/// Whether the type of a literal has no sign, and whether it has 64 bits: decimal ones without a suffix have a sign.
pub(super) fn type_of_number(text: &str) -> (bool, bool) {
    let Some(Literal::Integer(value)) = Literal::parse(text) else {
        return (false, false);
    };
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let has = |letter: char| text[digits.len()..].to_ascii_lowercase().contains(letter);
    // The sign stands before the literal.
    let (digits, value) = (
        digits.trim_start_matches(['-', '+']),
        value.saturating_abs(),
    );
    let in_bits = digits.len() > 1 && digits.starts_with('0');
    let fits = i32::try_from(value).is_ok();
    let fits_without_sign = u32::try_from(value).is_ok();
    let is_unsigned = has('u') || in_bits && !fits && fits_without_sign && !has('l');
    let is_short = fits || is_unsigned && fits_without_sign;
    (is_unsigned, has('l') || !is_short)
}

fn type_of(operand: &Operand) -> Option<Element> {
    match operand {
        Operand::Integer(_) => None,
        Operand::Node(node) => Some(node.element),
    }
}

/// A function by its name in the compact language.
pub(super) fn called(
    function: Function,
    operands: Vec<Operand>,
    element: Element,
    span: &Span,
) -> Node {
    let name = Ident {
        text: function.name().to_owned(),
        span: span.clone(),
    };
    Node {
        kind: NodeKind::Call(name, operands),
        element,
        span: span.clone(),
    }
}

/// `(T)x`
pub(super) fn converted(value: Operand, element: Element, span: &Span) -> Operand {
    match value {
        Operand::Node(node)
            if node.element != element && (node.element.is_integer() || element.is_integer()) =>
        {
            let all = vec![Operand::Node(node)];
            Operand::Node(called(Function::To(element), all, element, span))
        }
        Operand::Integer(value) if element.is_integer() => {
            Operand::Integer(element.wrapped(value) as i64)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::type_of_number;

    #[test]
    fn numbers_have_the_types_of_c() {
        let (int, unsigned, long) = ((false, false), (true, false), (false, true));
        for (text, ty) in [
            ("2147483647", int),
            ("2147483648", long),
            ("-2147483648", long),
            ("0x7fffffff", int),
            ("0x80000000", unsigned),
            ("-0x80000000", unsigned),
            ("037777777777", unsigned),
            ("0x100000000", long),
            ("5u", unsigned),
            ("0xffU", unsigned),
            ("-1u", unsigned),
            ("5L", long),
            ("5ul", (true, true)),
            ("4294967296u", (true, true)),
            ("0", int),
            ("1.5f", int),
        ] {
            assert_eq!(type_of_number(text), ty, "{text}");
        }
    }
}
