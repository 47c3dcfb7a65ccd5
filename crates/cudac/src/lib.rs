//! CUDA C: parsed by tree-sitter, lowered into a tree of our own, printed back.
//!
//! A [`File`] keeps its text; only functions that somebody asks for are lowered, so host code and
//! kernels outside the subset disturb nobody. What is changed is replaced in the text
//! ([`File::replace`]); everything else stays as it was, to the byte.

mod ambiguous;
pub mod ast;
pub mod diag;
mod lower;
pub mod macros;
pub mod print;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tree_sitter::{Node, Parser, Tree};

use crate::ast::{Expr, Function, Ident};
use crate::diag::{Diagnostic, Source, Span};
use crate::lower::Lower;
use crate::macros::{Macro, Macros};

/// Runs one level of a recursion over nested input; the stack grows with the nesting, which the
/// parsers limit.
pub fn with_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 2 << 20, level)
}

/// Largest source, in bytes.
const LARGEST: usize = 16 << 20;

/// A source file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name and text.
    pub source: Source,
    /// Its macros.
    pub macros: Macros,
    /// Names for types: `typedef double real;`, `using real = double;`.
    pub aliases: Vec<(String, String)>,
    /// `#pragma warpwright` lines: what follows these two words, and the whole line.
    pub pragmas: Vec<(String, Span)>,
    /// The kernels (`__global__` functions with a body), in order.
    pub kernels: Vec<Header>,
    /// All other functions with a body, in order.
    pub functions: Vec<Header>,
    tree: Tree,
}

/// A function before anybody looked into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: Ident,
    /// The whole definition.
    pub span: Span,
    /// It is a template, or a member of something.
    pub nested: bool,
}

impl File {
    /// Reads a file. Only the size can be wrong with it: errors in functions show when the
    /// function is asked for.
    pub fn parse(source: Source) -> Result<File, Diagnostic> {
        let text = Arc::clone(&source.text);
        let tree = if text.len() > LARGEST {
            None
        } else {
            tree(&text)
        };
        let Some(tree) = tree else {
            let what = format!("`{}` is too large to be understood", source.name);
            return Err(Diagnostic::error("cuda::size", what));
        };
        let mut file = File {
            source,
            macros: Macros::default(),
            aliases: Vec::new(),
            pragmas: Vec::new(),
            kernels: Vec::new(),
            functions: Vec::new(),
            tree: tree.clone(),
        };
        file.collect(&text, tree.root_node());
        // Now the names of types are known.
        if let Some(clear) = ambiguous::resolved(&text, |word| file.is_type(word))
            && let Some(tree) = self::tree(&clear)
        {
            file.tree = tree;
        }
        Ok(file)
    }

    /// What a name or a call means if it is a macro, expanded once.
    pub fn expand(&self, expr: &Expr) -> macros::Expanded {
        self.macros
            .expand(expr, print::expr, |word| self.is_type(word))
    }

    /// Does a word name a type, as far as this file tells?
    fn is_type(&self, word: &str) -> bool {
        let meaning = self.type_named(word);
        let first = meaning.split_whitespace().next().unwrap_or("");
        let known = [
            "void", "bool", "char", "short", "int", "long", "unsigned", "signed", "float",
            "double", "const", "dim3",
        ];
        known.contains(&first) || first.ends_with("_t")
    }

    /// The whole of a function.
    pub fn kernel(&self, header: &Header) -> Result<Function, Diagnostic> {
        let node = self.tree.root_node();
        let range = &header.span;
        let mut node = node.descendant_for_byte_range(range.start, range.end);
        // The smallest node of the range may be inside or around the definition.
        while let Some(n) = node {
            if n.kind() == "function_definition" && n.byte_range() == *range {
                return Lower::new(&self.source.text).function(n);
            }
            node = n.parent();
        }
        let what = format!("`{}` is not understood", header.name.text);
        Err(Diagnostic::error("cuda::syntax", what).label(header.name.span.clone(), "this kernel"))
    }

    /// What a name of a type stands for; names that the file does not define stand for themselves.
    pub fn type_named(&self, name: &str) -> String {
        let mut name = name.to_owned();
        // Each definition is followed once, so a name that means itself ends the search.
        for _ in 0..self.aliases.len() + self.macros.iter().count() {
            let alias = self.aliases.iter().find(|(n, _)| *n == name);
            let object = self
                .macros
                .iter()
                .find(|m| m.name == name && m.parameters.is_none());
            let meaning = alias
                .map(|a| a.1.clone())
                .or(object.and_then(|m| m.body.clone()));
            match meaning {
                Some(meaning) => name = meaning,
                None => break,
            }
        }
        name
    }

    /// The text with some parts replaced; parts that overlap an earlier one are left out.
    pub fn replace(&self, mut edits: Vec<(Span, String)>) -> String {
        edits.sort_by_key(|(span, _)| (span.start, span.end));
        let (mut out, mut at) = (String::new(), 0);
        for (span, new) in edits {
            if let Some(kept) = self.source.text.get(at..span.start) {
                out.push_str(kept);
                out.push_str(&new);
                at = span.end;
            }
        }
        out.push_str(self.source.text.get(at..).unwrap_or(""));
        out
    }

    /// Finds macros, pragmas and kernels, in the order of the text.
    fn collect(&mut self, text: &str, root: Node<'_>) {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            match node.kind() {
                "preproc_def" | "preproc_function_def" => {
                    self.macros.0.extend(definition(text, node));
                }
                "preproc_call" => self.directive(text, node),
                "type_definition" => self.aliases.extend(alias(text, node, "declarator")),
                "alias_declaration" => self.aliases.extend(alias(text, node, "name")),
                "function_definition" => self.function(text, node),
                _ => {}
            }
            let mut cursor = node.walk();
            let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            stack.extend(children.into_iter().rev());
        }
    }

    fn function(&mut self, text: &str, node: Node<'_>) {
        let mut cursor = node.walk();
        let kernel = node.children(&mut cursor).any(|c| c.kind() == "__global__");
        let list = match kernel {
            true => &mut self.kernels,
            false => &mut self.functions,
        };
        list.extend(header(text, node));
    }

    fn directive(&mut self, text: &str, node: Node<'_>) {
        let word = |name: &str| {
            let node = node.child_by_field_name(name)?;
            text.get(node.byte_range())
        };
        let (Some(directive), Some(argument)) = (word("directive"), word("argument")) else {
            return;
        };
        let line = text.get(node.byte_range()).unwrap_or("").trim_end().len();
        let span = node.start_byte()..node.start_byte() + line;
        let argument = argument.trim();
        if directive.ends_with("undef") {
            self.macros.0.push(Macro {
                name: argument.to_owned(),
                parameters: None,
                body: None,
                span,
            });
        } else if directive.ends_with("pragma")
            && let Some(rest) = argument.strip_prefix("warpwright")
        {
            self.pragmas.push((rest.trim().to_owned(), span));
        }
    }
}

/// tree-sitter's tree of a text.
fn tree(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_cuda::LANGUAGE.into())
        .ok()?;
    parser.parse(text, None)
}

/// An expression that stands nowhere in a file.
fn parse_expr(text: &str, place: Span, is_type: impl Fn(&str) -> bool) -> Option<Expr> {
    // Parentheses decide between an expression and a declaration.
    let whole = format!("void f() {{ return ({text}\n); }}");
    let clear = ambiguous::resolved(&whole, is_type);
    let tree = tree(clear.as_deref().unwrap_or(&whole))?;
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let body = root.named_child(0)?.child_by_field_name("body")?;
    let statement = body.named_child(0)?;
    let paren = statement.named_child(0)?;
    let alone = body.named_child_count() == 1 && statement.named_child_count() == 1;
    if !alone
        || statement.kind() != "return_statement"
        || paren.kind() != "parenthesized_expression"
    {
        return None;
    }
    let inner = paren.named_child(0).filter(|n| n.kind() != "comment")?;
    Lower::at(&whole, place).expr(inner).ok()
}

/// A name for a type, and the type.
fn alias(text: &str, node: Node<'_>, name: &str) -> Option<(String, String)> {
    let name = text.get(node.child_by_field_name(name)?.byte_range())?;
    let ty = text.get(node.child_by_field_name("type")?.byte_range())?;
    Some((name.to_owned(), ty.trim().to_owned()))
}

fn definition(text: &str, node: Node<'_>) -> Option<Macro> {
    let name = text.get(node.child_by_field_name("name")?.byte_range())?;
    let value = node.child_by_field_name("value");
    let body = value.and_then(|v| text.get(v.byte_range())).unwrap_or("");
    let parameters = node.child_by_field_name("parameters").map(|list| {
        let mut cursor = list.walk();
        let names = list.named_children(&mut cursor);
        let names = names.filter_map(|n| text.get(n.byte_range()));
        names.map(str::to_owned).collect()
    });
    let line = text.get(node.byte_range())?.trim_end().len();
    Some(Macro {
        name: name.to_owned(),
        parameters,
        body: Some(
            without_comments(&body.replace("\\\n", " "))
                .trim()
                .to_owned(),
        ),
        span: node.start_byte()..node.start_byte() + line,
    })
}

/// The body of a macro without what the preprocessor removes.
fn without_comments(body: &str) -> String {
    let (mut out, mut rest) = (String::new(), body);
    while let Some(at) = rest.find("/*") {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at..]
            .find("*/")
            .map_or("", |end| &rest[at + end + 2..]);
    }
    let line = rest.find("//").map_or(rest, |at| &rest[..at]);
    out.push_str(line);
    out
}

fn header(text: &str, node: Node<'_>) -> Option<Header> {
    let declarator = node.child_by_field_name("declarator")?;
    let name = declarator.child_by_field_name("declarator")?;
    let nested = node.parent().is_some_and(|p| {
        !matches!(
            p.kind(),
            "translation_unit"
                | "linkage_specification"
                | "declaration_list"
                | "namespace_definition"
        )
    });
    Some(Header {
        name: Ident {
            text: text.get(name.byte_range())?.to_owned(),
            span: name.byte_range(),
        },
        span: node.byte_range(),
        nested,
    })
}
