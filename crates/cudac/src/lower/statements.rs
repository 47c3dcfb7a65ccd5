//! Statements, with the comments that belong to them.

use tree_sitter::Node;

use super::{Lower, Lowered};
use crate::ast::{Block, Declaration, Expr, For, Init, Stmt, StmtKind, Type, Variable};
use crate::diag::Diagnostic;

impl Lower<'_> {
    /// The statements of a body: in braces, or a single one.
    pub(super) fn body(&mut self, node: Node<'_>) -> Lowered<Block> {
        if node.kind() == "compound_statement" {
            return self.block(node);
        }
        Ok(Block {
            span: self.span(node),
            statements: self.statements(node)?,
            tail: Vec::new(),
        })
    }

    pub(crate) fn block(&mut self, node: Node<'_>) -> Lowered<Block> {
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
            let mut statements = self.statements(child)?;
            if let Some(first) = statements.first_mut() {
                first.leading = std::mem::take(&mut comments);
                first.spaced = std::mem::take(&mut spaced) && !block.statements.is_empty();
            }
            block.statements.extend(statements);
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

    /// `a = 1, b = 2;` is a statement for each of its parts, anything else one.
    fn statements(&mut self, node: Node<'_>) -> Lowered<Vec<Stmt>> {
        if node.kind() != "expression_statement" {
            return Ok(vec![self.statement(node)?]);
        }
        let mut waiting = self.children(node);
        let mut parts = Vec::new();
        while let Some(part) = waiting.pop() {
            if part.kind() == "comma_expression" {
                waiting.extend([self.field(part, "right")?, self.field(part, "left")?]);
            } else {
                parts.push(part);
            }
        }
        if parts.len() < 2 {
            return Ok(vec![self.statement(node)?]);
        }
        let part = |part| {
            let kind = StmtKind::Expr(self.expr(part)?);
            Ok(self.bare(kind, part))
        };
        parts.into_iter().map(part).collect()
    }

    fn bare(&self, kind: StmtKind, node: Node<'_>) -> Stmt {
        Stmt {
            kind,
            span: self.span(node),
            leading: Vec::new(),
            trailing: None,
            spaced: false,
        }
    }

    pub(super) fn statement(&mut self, node: Node<'_>) -> Lowered<Stmt> {
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
        Ok(self.bare(kind, node))
    }

    pub(crate) fn declaration(&mut self, node: Node<'_>) -> Lowered<Declaration> {
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
            let init = match init {
                // `int i{0};`
                Some(Init::List(mut values, _))
                    if values.len() == 1
                        && !matches!(ty.bare(), Type::Array(..))
                        && matches!(values[0], Init::Value(_)) =>
                {
                    values.pop()
                }
                init => init,
            };
            variables.push(Variable { name, ty, init });
        }
        Ok(Declaration { storage, variables })
    }

    pub(super) fn init(&mut self, node: Node<'_>) -> Lowered<Init> {
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

    /// `double (*p)[N] = …;`, which tree-sitter takes for an assignment to `double(*p)[N]`. Another name than a basic
    /// type's is one if a cast to such a pointer stands on the right: `real (*p)[N] = (real (*)[N])q;`
    pub(super) fn pointer_to_array(&mut self, node: Node<'_>) -> Lowered<Option<Declaration>> {
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
        let right = self.field(node, "right")?;
        let is_type = |base: &Node<'_>| {
            let cast = right.child_by_field_name("type");
            let cast = cast.filter(|_| right.kind() == "cast_expression");
            let same = |ty: Node<'_>| {
                self.text(ty)
                    .starts_with(&format!("{} (*)", self.text(*base)))
            };
            base.kind() == "primitive_type" || cast.is_some_and(same)
        };
        let Some(base) = base.filter(is_type) else {
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
        let init = Some(Init::Value(self.expr(right)?));
        let variables = vec![Variable { name, ty, init }];
        let storage = Vec::new();
        Ok(Some(Declaration { storage, variables }))
    }

    pub(super) fn condition(&mut self, node: Node<'_>) -> Lowered<Expr> {
        let clause = self.field(node, "condition")?;
        match clause.child_by_field_name("value") {
            Some(value) => self.expr(value),
            None => Err(self.unsupported(clause)),
        }
    }

    pub(super) fn if_statement(&mut self, node: Node<'_>) -> Lowered<StmtKind> {
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

    pub(super) fn for_statement(&mut self, node: Node<'_>) -> Lowered<For> {
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
}
