//! From tree-sitter's tree to ours. What the subset lacks is a labelled error.

use tree_sitter::Node;

use crate::ast::{
    Block, Declaration, Expr, ExprKind, For, Function, Ident, Init, Parameter, Stmt, StmtKind,
    Type, Variable,
};
use crate::diag::{Diagnostic, Span};

type Lowered<T> = Result<T, Diagnostic>;

/// Deepest nesting of statements and expressions.
const DEEPEST: usize = 150;

/// Most operators in a row, such as those of a sum.
const LONGEST: usize = 500;

/// Reads nodes of one text.
pub(crate) struct Lower<'a> {
    text: &'a str,
    /// The place of all nodes, if the text is an expanded macro.
    place: Option<Span>,
    depth: usize,
}

impl<'a> Lower<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Lower {
            text,
            place: None,
            depth: 0,
        }
    }

    /// For a text that stands nowhere: everything is at `place`.
    pub(crate) fn at(text: &'a str, place: Span) -> Self {
        Lower {
            place: Some(place),
            ..Lower::new(text)
        }
    }

    fn span(&self, node: Node<'_>) -> Span {
        self.place.clone().unwrap_or_else(|| node.byte_range())
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn ident(&self, node: Node<'_>) -> Ident {
        Ident {
            text: self.text(node).to_owned(),
            span: self.span(node),
        }
    }

    fn unsupported(&self, node: Node<'_>) -> Diagnostic {
        let kind = node.kind().replace('_', " ");
        let what = format!("this is outside the subset of CUDA C that is understood: {kind}");
        Diagnostic::error("cuda::subset", what).label(self.span(node), "not understood")
    }

    fn field<'t>(&self, node: Node<'t>, name: &str) -> Lowered<Node<'t>> {
        node.child_by_field_name(name)
            .ok_or_else(|| self.unsupported(node))
    }

    /// Named children without comments.
    fn children<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        let mut cursor = node.walk();
        let children = node.named_children(&mut cursor);
        children.filter(|c| c.kind() != "comment").collect()
    }

    /// A function definition. A syntax error anywhere in it is reported first.
    pub(crate) fn function(&mut self, node: Node<'_>) -> Lowered<Function> {
        if let Some(problem) = self.syntax_error(node) {
            return Err(problem);
        }
        let body = self.field(node, "body")?;
        let declarator = self.field(node, "declarator")?;
        if declarator.kind() != "function_declarator" {
            return Err(self.unsupported(declarator));
        }
        let name = self.ident(self.field(declarator, "declarator")?);
        let mut parameters = Vec::new();
        for parameter in self.children(self.field(declarator, "parameters")?) {
            parameters.push(self.parameter(parameter)?);
        }
        let result = self.base_type(node)?;
        let head = self.text.get(node.start_byte()..body.start_byte());
        Ok(Function {
            name,
            head: head.unwrap_or("").trim_end().to_owned(),
            result,
            parameters,
            body: self.block(body)?,
            span: self.span(node),
        })
    }

    /// The first place below a node that is no CUDA C.
    fn syntax_error(&self, node: Node<'_>) -> Option<Diagnostic> {
        if !node.has_error() {
            return None;
        }
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if node.is_missing() {
                let what = format!("`{}` is missing", node.kind());
                let span = self.span(node);
                return Some(Diagnostic::error("cuda::syntax", what).label(span, "here"));
            }
            if node.is_error() {
                let what = "this is no CUDA C as it is understood";
                let span = self.span(node);
                return Some(Diagnostic::error("cuda::syntax", what).label(span, "not understood"));
            }
            let mut cursor = node.walk();
            let children: Vec<_> = node.children(&mut cursor).collect();
            stack.extend(children.into_iter().rev().filter(|c| c.has_error()));
        }
        None
    }

    fn parameter(&mut self, node: Node<'_>) -> Lowered<Parameter> {
        if node.kind() != "parameter_declaration" {
            return Err(self.unsupported(node));
        }
        let base = self.base_type(node)?;
        let declarator = self.field(node, "declarator")?;
        let (name, ty) = self.declarator(declarator, base)?;
        // `double a[M][N]` as a parameter is `double (*a)[N]`.
        let ty = match ty {
            Type::Array(of, _) => Type::Pointer(of, false),
            other => other,
        };
        let span = self.span(node);
        Ok(Parameter { name, ty, span })
    }

    /// The type in front of the declarators.
    fn base_type(&mut self, node: Node<'_>) -> Lowered<Type> {
        let ty = self.field(node, "type")?;
        let name = match ty.kind() {
            "primitive_type" | "type_identifier" | "sized_type_specifier" => {
                let words: Vec<&str> = self.text(ty).split_whitespace().collect();
                words.join(" ")
            }
            "placeholder_type_specifier" => "auto".to_owned(),
            _ => return Err(self.unsupported(ty)),
        };
        let qualifiers = self.qualifiers(node);
        let named = Type::Named(name);
        Ok(if qualifiers.contains(&"const") {
            Type::Const(Box::new(named))
        } else {
            named
        })
    }

    fn qualifiers(&self, node: Node<'_>) -> Vec<&'a str> {
        let mut cursor = node.walk();
        let children = node.children(&mut cursor);
        children
            .filter(|c| matches!(c.kind(), "type_qualifier" | "storage_class_specifier"))
            .map(|c| self.text(c))
            .collect()
    }

    /// A declarator around a name: the name, and the type that it gives to it.
    fn declarator(&mut self, node: Node<'_>, base: Type) -> Lowered<(Ident, Type)> {
        match node.kind() {
            "identifier" => Ok((self.ident(node), base)),
            "parenthesized_declarator" => match self.children(node).as_slice() {
                [inner] => self.declarator(*inner, base),
                _ => Err(self.unsupported(node)),
            },
            "pointer_declarator" => {
                let ty = self.pointer_to(node, base);
                self.declarator(self.field(node, "declarator")?, ty)
            }
            "array_declarator" => {
                let ty = self.array_of(node, base)?;
                self.declarator(self.field(node, "declarator")?, ty)
            }
            _ => Err(self.unsupported(node)),
        }
    }

    fn pointer_to(&mut self, node: Node<'_>, base: Type) -> Type {
        let words = self.qualifiers(node);
        let restrict = words.iter().any(|w| w.contains("restrict"));
        let pointer = Type::Pointer(Box::new(base), restrict);
        if words.contains(&"const") {
            Type::Const(Box::new(pointer))
        } else {
            pointer
        }
    }

    fn array_of(&mut self, node: Node<'_>, base: Type) -> Lowered<Type> {
        let size = node.child_by_field_name("size");
        let size = size.map(|size| self.expr(size)).transpose()?;
        Ok(Type::Array(Box::new(base), size.map(Box::new)))
    }

    /// The type in a cast.
    fn type_descriptor(&mut self, node: Node<'_>) -> Lowered<Type> {
        let mut ty = self.base_type(node)?;
        let mut next = node.child_by_field_name("declarator");
        while let Some(declarator) = next {
            ty = match declarator.kind() {
                "abstract_pointer_declarator" => self.pointer_to(declarator, ty),
                "abstract_array_declarator" => self.array_of(declarator, ty)?,
                "abstract_parenthesized_declarator" => ty,
                _ => return Err(self.unsupported(declarator)),
            };
            next = match declarator.kind() {
                "abstract_parenthesized_declarator" => self.children(declarator).first().copied(),
                _ => declarator.child_by_field_name("declarator"),
            };
        }
        Ok(ty)
    }

    fn deeper(&mut self, node: Node<'_>) -> Lowered<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("this is nested more than {DEEPEST} deep");
            return Err(Diagnostic::error("cuda::size", what).label(self.span(node), "too deep"));
        }
        Ok(())
    }

    /// The statements of a body: in braces, or a single one.
    fn body(&mut self, node: Node<'_>) -> Lowered<Block> {
        if node.kind() == "compound_statement" {
            return self.block(node);
        }
        let statement = self.statement(node)?;
        Ok(Block {
            span: statement.span.clone(),
            statements: vec![statement],
            tail: Vec::new(),
        })
    }

    fn block(&mut self, node: Node<'_>) -> Lowered<Block> {
        self.deeper(node)?;
        let mut block = Block {
            span: self.span(node),
            ..Block::default()
        };
        let mut comments = Vec::new();
        // Where the last thing ended: its row, and how many statements there were.
        let (mut row, mut cursor) = (node.start_position().row, node.walk());
        let mut spaced = false;
        for child in node.named_children(&mut cursor) {
            let start = child.start_position().row;
            spaced |= comments.is_empty() && start > row + 1;
            if child.kind() == "comment" {
                let text = self.text(child).to_owned();
                match block.statements.last_mut() {
                    Some(before) if start == row && comments.is_empty() => {
                        before.trailing = Some(text);
                    }
                    _ => comments.push(text),
                }
                row = child.end_position().row;
                continue;
            }
            let mut statement = self.statement(child)?;
            statement.leading = std::mem::take(&mut comments);
            statement.spaced = std::mem::take(&mut spaced) && !block.statements.is_empty();
            block.statements.push(statement);
            row = child.end_position().row;
            // A preprocessor line ends at the start of the next one.
            if child.end_position().column == 0 && row > start {
                row -= 1;
            }
        }
        block.tail = comments;
        self.depth -= 1;
        Ok(block)
    }

    fn statement(&mut self, node: Node<'_>) -> Lowered<Stmt> {
        let kind = match node.kind() {
            "declaration" => StmtKind::Declare(self.declaration(node)?),
            "expression_statement" => match self.children(node).as_slice() {
                [] => StmtKind::Plain(";".to_owned()),
                [inner] => match self.pointer_to_array(*inner)? {
                    Some(declaration) => StmtKind::Declare(declaration),
                    None => StmtKind::Expr(self.expr(*inner)?),
                },
                _ => return Err(self.unsupported(node)),
            },
            "compound_statement" => StmtKind::Block(self.block(node)?),
            "if_statement" => self.if_statement(node)?,
            "for_statement" => StmtKind::For(Box::new(self.for_statement(node)?)),
            "while_statement" => {
                let cond = self.condition(node)?;
                StmtKind::While(cond, self.body(self.field(node, "body")?)?)
            }
            "return_statement" => match self.children(node).as_slice() {
                [] => StmtKind::Return(None),
                [value] => StmtKind::Return(Some(self.expr(*value)?)),
                _ => return Err(self.unsupported(node)),
            },
            "break_statement" => StmtKind::Plain("break;".to_owned()),
            "continue_statement" => StmtKind::Plain("continue;".to_owned()),
            "preproc_call" | "preproc_def" | "preproc_function_def" => {
                StmtKind::Directive(self.text(node).trim_end().to_owned())
            }
            "preproc_if" | "preproc_ifdef" => {
                let what = "a kernel with `#if` is several kernels; only one can be understood";
                let end = node.start_byte() + self.text(node).lines().next().map_or(0, str::len);
                return Err(Diagnostic::error("cuda::subset", what)
                    .label(node.start_byte()..end, "depends on the preprocessor")
                    .help("run the preprocessor first, or move the choice out of the kernel"));
            }
            _ => return Err(self.unsupported(node)),
        };
        Ok(Stmt {
            kind,
            span: self.span(node),
            leading: Vec::new(),
            trailing: None,
            spaced: false,
        })
    }

    fn declaration(&mut self, node: Node<'_>) -> Lowered<Declaration> {
        let base = self.base_type(node)?;
        let storage = self.qualifiers(node).into_iter();
        let storage = storage.filter(|w| *w != "const").map(str::to_owned);
        let storage = storage.collect();
        let mut cursor = node.walk();
        let declarators: Vec<Node<'_>> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        let mut variables = Vec::new();
        for declarator in declarators {
            let (inner, init) = if declarator.kind() == "init_declarator" {
                let value = self.field(declarator, "value")?;
                let inner = self.field(declarator, "declarator")?;
                (inner, Some(self.init(value)?))
            } else {
                (declarator, None)
            };
            let (name, ty) = self.declarator(inner, base.clone())?;
            variables.push(Variable { name, ty, init });
        }
        Ok(Declaration { storage, variables })
    }

    fn init(&mut self, node: Node<'_>) -> Lowered<Init> {
        match node.kind() {
            "initializer_list" => {
                self.deeper(node)?;
                let mut values = Vec::new();
                for value in self.children(node) {
                    values.push(self.init(value)?);
                }
                self.depth -= 1;
                Ok(Init::List(values, self.span(node)))
            }
            // `int i(0);`
            "argument_list" => match self.children(node).as_slice() {
                [value] => Ok(Init::Value(self.expr(*value)?)),
                _ => Err(self.unsupported(node)),
            },
            _ => Ok(Init::Value(self.expr(node)?)),
        }
    }

    /// `double (*p)[N] = …;`, which tree-sitter takes for an assignment to `double(*p)[N]`.
    fn pointer_to_array(&mut self, node: Node<'_>) -> Lowered<Option<Declaration>> {
        if node.kind() != "assignment_expression" {
            return Ok(None);
        }
        let mut left = self.field(node, "left")?;
        let mut lengths = Vec::new();
        while left.kind() == "subscript_expression" {
            lengths.push(self.field(left, "indices")?);
            left = self.field(left, "argument")?;
        }
        let base = left.child_by_field_name("function");
        let Some(base) = base.filter(|b| b.kind() == "primitive_type") else {
            return Ok(None);
        };
        if lengths.is_empty() || left.kind() != "call_expression" {
            return Ok(None);
        }
        let arguments = self.children(self.field(left, "arguments")?);
        let [pointer] = arguments.as_slice() else {
            return Ok(None);
        };
        if pointer.kind() != "pointer_expression" {
            return Ok(None);
        }
        let name = self.ident(self.field(*pointer, "argument")?);
        let mut ty = Type::Named(self.text(base).to_owned());
        // Found from the last to the first, which is the order to wrap them in.
        for length in lengths {
            let length = match self.children(length).as_slice() {
                [length] => self.expr(*length)?,
                _ => return Err(self.unsupported(length)),
            };
            ty = Type::Array(Box::new(ty), Some(Box::new(length)));
        }
        let ty = Type::Pointer(Box::new(ty), false);
        let init = Some(Init::Value(self.expr(self.field(node, "right")?)?));
        let variables = vec![Variable { name, ty, init }];
        let storage = Vec::new();
        Ok(Some(Declaration { storage, variables }))
    }

    fn condition(&mut self, node: Node<'_>) -> Lowered<Expr> {
        let clause = self.field(node, "condition")?;
        match clause.child_by_field_name("value") {
            Some(value) => self.expr(value),
            None => Err(self.unsupported(clause)),
        }
    }

    fn if_statement(&mut self, node: Node<'_>) -> Lowered<StmtKind> {
        let cond = self.condition(node)?;
        let then = self.body(self.field(node, "consequence")?)?;
        let otherwise = match node.child_by_field_name("alternative") {
            None => None,
            Some(clause) => match self.children(clause).as_slice() {
                [body] => Some(self.body(*body)?),
                _ => return Err(self.unsupported(clause)),
            },
        };
        Ok(StmtKind::If(cond, then, otherwise))
    }

    fn for_statement(&mut self, node: Node<'_>) -> Lowered<For> {
        let init = match node.child_by_field_name("initializer") {
            None => None,
            Some(init) if init.kind() == "declaration" => Some(self.statement(init)?),
            Some(init) => Some(Stmt {
                kind: StmtKind::Expr(self.expr(init)?),
                span: self.span(init),
                leading: Vec::new(),
                trailing: None,
                spaced: false,
            }),
        };
        let mut part = |name: &str| {
            let part = node.child_by_field_name(name);
            part.map(|part| self.expr(part)).transpose()
        };
        let (cond, step) = (part("condition")?, part("update")?);
        let body = self.body(self.field(node, "body")?)?;
        Ok(For {
            init,
            cond,
            step,
            body,
        })
    }

    /// An expression.
    pub(crate) fn expr(&mut self, node: Node<'_>) -> Lowered<Expr> {
        self.deeper(node)?;
        let kind = crate::with_stack(|| self.expr_kind(node))?;
        self.depth -= 1;
        let span = self.span(node);
        Ok(Expr { kind, span })
    }

    fn boxed(&mut self, node: Node<'_>, field: &str) -> Lowered<Box<Expr>> {
        let child = self.field(node, field)?;
        Ok(Box::new(self.expr(child)?))
    }

    fn operator(&self, node: Node<'_>) -> Lowered<String> {
        Ok(self.text(self.field(node, "operator")?).to_owned())
    }

    fn expr_kind(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        Ok(match node.kind() {
            "number_literal" => ExprKind::Number(self.text(node).to_owned()),
            "identifier" => ExprKind::Name(self.text(node).to_owned()),
            "true" | "false" => ExprKind::Bool(node.kind() == "true"),
            "parenthesized_expression" => match self.children(node).as_slice() {
                [inner] => ExprKind::Paren(Box::new(self.expr(*inner)?)),
                _ => return Err(self.unsupported(node)),
            },
            "field_expression" => {
                let base = self.boxed(node, "argument")?;
                if self.operator(node)? != "." {
                    return Err(self.unsupported(node));
                }
                ExprKind::Member(base, self.text(self.field(node, "field")?).to_owned())
            }
            "subscript_expression" => {
                let base = self.boxed(node, "argument")?;
                let indices = self.field(node, "indices")?;
                match self.children(indices).as_slice() {
                    [index] => ExprKind::Index(base, Box::new(self.expr(*index)?)),
                    _ => return Err(self.unsupported(indices)),
                }
            }
            "unary_expression" | "pointer_expression" => {
                let op = self.operator(node)?;
                ExprKind::Unary(op, self.boxed(node, "argument")?)
            }
            "update_expression" => {
                let op = self.field(node, "operator")?;
                let argument = self.field(node, "argument")?;
                let first = op.start_byte() < argument.start_byte();
                let text = self.text(op).to_owned();
                ExprKind::Update(text, first, Box::new(self.expr(argument)?))
            }
            "binary_expression" => self.operators(node)?,
            "assignment_expression" => {
                let op = self.operator(node)?;
                ExprKind::Assign(op, self.boxed(node, "left")?, self.boxed(node, "right")?)
            }
            "conditional_expression" => ExprKind::Conditional(
                self.boxed(node, "condition")?,
                self.boxed(node, "consequence")?,
                self.boxed(node, "alternative")?,
            ),
            "cast_expression" => {
                let ty = self.type_descriptor(self.field(node, "type")?)?;
                ExprKind::Cast(None, Box::new(ty), self.boxed(node, "value")?)
            }
            "call_expression" => self.call(node)?,
            _ => return Err(self.unsupported(node)),
        })
    }

    /// A row of binary operators. They group to the left, so a sum is as deep as it is long: it is
    /// walked in a loop.
    fn operators(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        let mut row = vec![node];
        let mut left = self.field(node, "left")?;
        while left.kind() == "binary_expression" {
            row.push(left);
            left = self.field(left, "left")?;
        }
        if row.len() > LONGEST {
            let what = format!("there are more than {LONGEST} operators in a row");
            return Err(Diagnostic::error("cuda::size", what)
                .label(self.span(node), "too long")
                .help("split the sum over several statements (`+=`)"));
        }
        let mut value = self.expr(left)?;
        for node in row.into_iter().rev() {
            let (op, right) = (self.operator(node)?, self.boxed(node, "right")?);
            value = Expr {
                kind: ExprKind::Binary(op, Box::new(value), right),
                span: self.span(node),
            };
        }
        Ok(value.kind)
    }

    fn call(&mut self, node: Node<'_>) -> Lowered<ExprKind> {
        let function = self.field(node, "function")?;
        let list = self.field(node, "arguments")?;
        if list.kind() != "argument_list" {
            return Err(self.unsupported(list));
        }
        let mut arguments = Vec::new();
        for argument in self.children(list) {
            arguments.push(self.expr(argument)?);
        }
        match function.kind() {
            "identifier" => Ok(ExprKind::Call(self.ident(function), arguments)),
            // `double(x)` is a cast; parentheses keep the argument together.
            "primitive_type" if arguments.len() == 1 => {
                let ty = Type::Named(self.text(function).to_owned());
                let span = self.span(list);
                let inner = arguments.swap_remove(0);
                let kind = ExprKind::Paren(Box::new(inner));
                let value = Expr { kind, span };
                Ok(ExprKind::Cast(None, Box::new(ty), Box::new(value)))
            }
            "template_function" if arguments.len() == 1 => {
                let word = self.text(self.field(function, "name")?);
                let types = self.children(self.field(function, "arguments")?);
                match (word, types.as_slice()) {
                    ("static_cast" | "reinterpret_cast" | "const_cast", [ty]) => {
                        let ty = self.type_descriptor(*ty)?;
                        let value = Box::new(arguments.swap_remove(0));
                        Ok(ExprKind::Cast(Some(word.to_owned()), Box::new(ty), value))
                    }
                    _ => Err(self.unsupported(function)),
                }
            }
            _ => Err(self.unsupported(function)),
        }
    }
}
