//! CUDA C: parsed by tree-sitter, lowered into a tree of our own, printed back; and what source
//! compilers ask of it: types, names, definitions and uses, integers as polynomials.
//!
//! A [`File`] keeps its text; only functions that somebody asks for are lowered, so host code and
//! kernels outside the subset disturb nobody. What is changed is replaced in the text
//! ([`File::replace`]); everything else stays as it was, to the byte.
//!
//! A file is read as it stands, or with what nvcc's preprocessor says of it
//! ([`File::parse_preprocessed`]): then headers, `-D` and `#if` count as they do for the compiler.

pub mod affine;
mod ambiguous;
pub mod ast;
mod collect;
pub mod constants;
pub mod def_use;
pub mod definitions;
mod device;
pub mod diag;
mod guards;
pub mod instance;
pub mod launcher;
pub mod launches;
mod literal;
mod locals;
mod lower;
pub mod macros;
pub mod names;
mod preprocessed;
pub mod print;
pub mod replace;
mod statements;
pub mod structures;
#[cfg(test)]
mod tests;
mod types;
pub mod words;

use std::sync::Arc;

use tree_sitter::{Node, Parser, Tree};

use crate::ast::{Expr, Function, Ident, Stmt};
use crate::definitions::{Alias, Global, Instance, TemplateParameter};
use crate::diag::{Diagnostic, Source, Span};
use crate::lower::Lower;
use crate::macros::Macros;
use crate::preprocessed::Preprocessed;
use crate::structures::Structure;

pub use device::without_host_code;
pub use literal::Literal;
pub use locals::Local;
pub use preprocessed::marked;
pub use types::{Scalar, TypeNames};

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
    /// Names for types.
    pub aliases: Vec<Alias>,
    /// Structures, in order; those of headers too.
    pub structures: Vec<Structure>,
    /// `#pragma warpwright` lines: what follows these two words, and the whole line.
    pub pragmas: Vec<(String, Span)>,
    /// The kernels (`__global__` functions with a body) of the file itself, in order.
    pub kernels: Vec<Header>,
    /// All other functions with a body, in order; those of headers too.
    pub functions: Vec<Header>,
    /// Variables and constants outside functions, in order.
    pub globals: Vec<Global>,
    /// Uses of templates.
    pub instances: Vec<Instance>,
    /// The preprocessor has been asked.
    pub is_preprocessed: bool,
    /// Parameters of templates that are types.
    type_parameters: Vec<String>,
    /// The file, then its headers.
    parts: Vec<Part>,
    /// The files of those headers.
    headers: Vec<String>,
}

/// A text with its tree.
#[derive(Clone, Debug)]
struct Part {
    text: Arc<str>,
    tree: Tree,
    /// Where a header is included.
    place: Option<Span>,
}

/// A function before anybody looked into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Its name.
    pub name: Ident,
    /// The whole definition, without `template <…>`.
    pub span: Span,
    /// Its parameters, if it is a template.
    pub template: Option<Vec<TemplateParameter>>,
    /// `template <…>` in front of it.
    pub head: Option<Span>,
    /// It is a template, or a member of something.
    pub nested: bool,
    /// It is a member of something, or a template that is not understood.
    pub is_member: bool,
    /// The place in its own text, and which text that is.
    part: (usize, Span),
}

impl File {
    /// Reads a file. Only the size can be wrong with it: errors in functions show when the
    /// function is asked for.
    pub fn parse(source: Source) -> Result<File, Diagnostic> {
        File::read(source, None)
    }

    /// The same with what the preprocessor made of the [`marked`] copy of the text, which stood in a
    /// file whose path ends in `copy`.
    pub fn parse_preprocessed(
        source: Source,
        copy: &str,
        output: &str,
    ) -> Result<File, Diagnostic> {
        let found = Preprocessed::read(&source.text, copy, output);
        File::read(source, found)
    }

    fn read(source: Source, preprocessed: Option<Preprocessed>) -> Result<File, Diagnostic> {
        let is_preprocessed = preprocessed.is_some();
        let known = preprocessed.unwrap_or_default();
        let mut hidden = known.hidden;
        hidden.extend(unrolling(&source.text));
        let text = without(&source.text, &hidden);
        let text = statements::separated(&text, &statements::words_of(&text));
        let mut texts = vec![(text, None)];
        for (at, header) in known.headers {
            texts.push((collect::qualified(&header).into(), Some(at)));
        }
        let mut file = File {
            source,
            macros: Macros::default(),
            aliases: Vec::new(),
            structures: Vec::new(),
            pragmas: Vec::new(),
            kernels: Vec::new(),
            functions: Vec::new(),
            globals: Vec::new(),
            instances: Vec::new(),
            is_preprocessed,
            type_parameters: Vec::new(),
            parts: Vec::new(),
            headers: known.files,
        };
        for (text, place) in texts {
            let tree = if text.len() > LARGEST {
                None
            } else {
                tree(&text)
            };
            let Some(tree) = tree else {
                let what = format!("`{}` is too large to be understood", file.source.name);
                return Err(Diagnostic::error("cuda::size", what));
            };
            file.parts.push(Part { text, tree, place });
        }
        // Headers come first: what they define holds where they are included.
        for part in (1..file.parts.len()).chain([0]) {
            file.collect(part);
        }
        if is_preprocessed {
            file.macros = Macros::new(known.macros);
        }
        // Now the names of types are known.
        for part in 0..file.parts.len() {
            let text = Arc::clone(&file.parts[part].text);
            let all = file.kernels.iter().chain(&file.functions);
            let bodies = all.filter(|header| header.part.0 == part);
            let bodies: Vec<Span> = bodies.map(|header| header.part.1.clone()).collect();
            let is_type = |word: &str| file.is_type(word);
            if let Some(clear) =
                ambiguous::resolved(&text, &bodies, is_type, |word| file.is_template(word))
                && let Some(tree) = self::tree(&clear)
            {
                file.parts[part].tree = tree;
            }
        }
        Ok(file)
    }

    /// What a name or a call means if it is a macro, expanded once.
    pub fn expand(&self, expr: &Expr) -> macros::Expanded {
        self.macros
            .expand(expr, print::expr, |word| self.is_type(word))
    }

    /// The statements that a name stands for, if it is a macro of some.
    pub fn expand_statements(&self, expr: &Expr) -> Option<Vec<Stmt>> {
        let body = self.macros.body_of(expr)?;
        statements::parsed(body, expr.span.clone(), &self.macros, |w| self.is_type(w))
    }

    /// Does a word name a type, as far as this file tells?
    fn is_type(&self, word: &str) -> bool {
        let meaning = self.type_named(word);
        let first = meaning.split_whitespace().next().unwrap_or("");
        let known = [
            "void", "bool", "char", "short", "int", "long", "unsigned", "signed", "float",
            "double", "const", "dim3",
        ];
        known.contains(&first)
            || first.ends_with("_t")
            || self.type_parameters.iter().any(|name| name == word)
    }

    /// Does a word name a template, as far as this file tells?
    fn is_template(&self, word: &str) -> bool {
        let mut all = self.kernels.iter().chain(&self.functions);
        all.any(|header| header.template.is_some() && header.name.text == word)
            || word.starts_with(|c: char| c.is_ascii_uppercase())
                && self.macros.object(word).is_none()
                && self.global(word, usize::MAX).is_none()
    }

    /// The whole of a function.
    pub fn kernel(&self, header: &Header) -> Result<Function, Diagnostic> {
        if let Some(node) = self.definition(header) {
            return self.parts[header.part.0].lower().function(node);
        }
        let what = format!("`{}` is not understood", header.name.text);
        Err(Diagnostic::error("cuda::syntax", what).label(header.name.span.clone(), "this kernel"))
    }

    /// The tree of a function.
    fn definition(&self, header: &Header) -> Option<Node<'_>> {
        let (part, range) = &header.part;
        let root = self.parts[*part].tree.root_node();
        let mut node = root.descendant_for_byte_range(range.start, range.end);
        // The smallest node of the range may be inside or around the definition.
        while let Some(n) = node {
            if n.kind() == "function_definition" && n.byte_range() == *range {
                return Some(n);
            }
            node = n.parent();
        }
        None
    }

    /// The definition outside functions that a name means at a place; none where it is not known
    /// which one the compiler sees.
    pub fn global(&self, name: &str, at: usize) -> Option<&Global> {
        let before = self.globals.iter();
        let mut before = before.filter(|g| g.name.text == name && g.name.span.start <= at);
        let found = before.next()?;
        // A declaration and its definition, or two choices of the preprocessor.
        (before.next().is_none() && !found.conditional).then_some(found)
    }

    /// Another kernel of this file that is called like this one: an overload, or one of another namespace.
    pub fn namesake(&self, header: &Header) -> Option<&Header> {
        let mut all = self.kernels.iter();
        all.find(|other| other.name.text == header.name.text && other.span != header.span)
    }

    /// Why the launches of a kernel cannot be rewritten, if several are called like it.
    pub fn is_ambiguous(&self, header: &Header) -> Option<Diagnostic> {
        let other = self.namesake(header)?;
        let what = format!(
            "several kernels are called `{}`: which of them is launched cannot be told",
            header.name.text
        );
        let problem = Diagnostic::error("cuda::overloaded", what)
            .label(header.name.span.clone(), "this kernel")
            .label(other.name.span.clone(), "and this one");
        Some(problem.help("give each a name of its own"))
    }

    /// The uses of a template.
    pub fn instances_of<'a>(&'a self, header: &'a Header) -> impl Iterator<Item = &'a Instance> {
        let name = &header.name.text;
        self.instances.iter().filter(move |i| i.name.text == *name)
    }

    /// What a name of a type stands for; names that the file does not define stand for themselves,
    /// and so do those for which the preprocessor would have to choose.
    pub fn type_named(&self, name: &str) -> String {
        let mut name = name.to_owned();
        // Each definition is followed once, so a name that means itself ends the search.
        for _ in 0..=self.aliases.len() + 32 {
            let mut aliases = self.aliases.iter().filter(|a| a.name == name);
            let meaning = match (aliases.next(), aliases.next()) {
                (Some(alias), None) if !alias.conditional => Some(alias.ty.clone()),
                (Some(_), _) => None,
                (None, _) => self.macros.object(&name).map(str::to_owned),
            };
            match meaning {
                Some(meaning) if meaning != name => name = meaning,
                _ => break,
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
}

impl Part {
    fn lower(&self) -> Lower<'_> {
        match &self.place {
            None => Lower::new(&self.text),
            Some(place) => Lower::at(&self.text, place.clone()),
        }
    }
}

/// The lines `#pragma unroll …` where the grammar has no place for a line of the preprocessor: between a loop's head and
/// its body. They change no meaning.
fn unrolling(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let own = at..at + line.len();
        at = own.end;
        let mut words = line.split_whitespace().peekable();
        let first = match words.next() {
            Some("#") => words.next().map(|word| format!("#{word}")),
            word => word.map(str::to_owned),
        };
        let what = words.next().unwrap_or("");
        let is_unroll = matches!(what, "unroll" | "nounroll") || what.starts_with("unroll(");
        let inside = text[..own.start].trim_end().ends_with(')');
        let is_whole = !line.trim_end().ends_with('\\');
        if first.as_deref() == Some("#pragma") && is_unroll && inside && is_whole {
            found.push(own);
        }
    }
    found
}

/// A text with blanks in place of some parts of it; its lines stay.
fn without(text: &Arc<str>, hidden: &[Span]) -> Arc<str> {
    if hidden.is_empty() {
        return Arc::clone(text);
    }
    let mut bytes = text.as_bytes().to_vec();
    for byte in hidden.iter().flat_map(|span| span.clone()) {
        if !matches!(bytes[byte], b'\n' | b'\r') {
            bytes[byte] = b' ';
        }
    }
    // Whole lines became blanks, so this is text as before.
    String::from_utf8(bytes).map_or_else(|_| Arc::clone(text), Arc::from)
}

/// tree-sitter's tree of a text.
fn tree(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_cuda::LANGUAGE.into())
        .ok()?;
    parser.parse(&*without_attributes(text), None)
}

/// A text with blanks for the attributes of kernels that the grammar does not know.
fn without_attributes(text: &str) -> std::borrow::Cow<'_, str> {
    const UNKNOWN: [&str; 3] = ["__cluster_dims__", "__block_size__", "__maxnreg__"];
    let mut out = std::borrow::Cow::Borrowed(text);
    for name in UNKNOWN {
        let mut from = 0;
        while let Some(start) = text[from..].find(name).map(|at| from + at) {
            from = start + name.len();
            let all = words::tokens(&text[from..]);
            let is_open = all
                .first()
                .is_some_and(|t| &text[from..][t.at.clone()] == "(");
            let close = is_open
                .then(|| words::closed(&text[from..], &all, 0))
                .flatten();
            if let Some(close) = close {
                let end = from + all[close].at.end;
                out.to_mut()
                    .replace_range(start..end, &" ".repeat(end - start));
            }
        }
    }
    out
}

/// An expression that stands nowhere in a file.
pub fn parse_expr(text: &str, place: Span, is_type: impl Fn(&str) -> bool) -> Option<Expr> {
    // Parentheses decide between an expression and a declaration.
    let whole = format!("void f() {{ return ({text}\n); }}");
    let all = 0..whole.len();
    let clear = ambiguous::resolved(&whole, &[all], is_type, |_| false);
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
