//! The parser: one pass over the tiles that builds the typed view.
//!
//! Recursive descent with recovery: an error is reported once, the statement around it is kept as
//! [`crate::ir::Item::Unknown`], and parsing goes on at the next `;`, `}` or directive. Recursion
//! is bounded by [`MAX_NESTING`], so that no input overflows the stack.

mod body;
mod decl;
mod expr;
mod function;
mod init;
mod instruction;
mod operand;
mod ranged;
mod resolve;
mod top;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Diagnostic;
use crate::Span;
use crate::ir::{FuncId, Header, Module, OpcodeId, TopItem};
use crate::names::Names;
use crate::opcode::Opcode;
use crate::syntax::{Kind, Syntax, Tile, scan};

/// Deepest nesting of scopes, operands, initialisers and expressions.
pub const MAX_NESTING: u32 = 128;

/// After so many diagnostics the rest is counted, not shown.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Largest input; half of what spans could address, so that their sums never overflow.
const MAX_BYTES: usize = 1 << 31;

/// Bytes of initial values beyond what their text can spell out (zeros skipped by braces).
const INIT_BUDGET: u64 = 64 << 20;

/// The error was reported; the caller recovers.
#[derive(Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

impl Module {
    /// Parses PTX text. `name` is the input's name in diagnostics.
    ///
    /// Always returns a module; it is usable if no diagnostic is an error.
    pub fn parse(name: &str, text: &str) -> (Module, Vec<Diagnostic>) {
        if let Some(diagnostic) = refuse(text.as_bytes()) {
            return refused(name, text, diagnostic);
        }
        let syntax = scan(text);
        let mut parser = Parser::new(text, &syntax);
        parser.module();
        let (mut module, diagnostics) = parser.finish();
        module.name = name.to_owned();
        module.syntax = syntax;
        (module, diagnostics)
    }

    /// Parses bytes. Bytes that are no UTF-8 are an error; the module then has no content.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> (Module, Vec<Diagnostic>) {
        if let Some(diagnostic) = refuse(bytes) {
            return refused(name, "", diagnostic);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Module::parse(name, text),
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                // What comes before the bad byte is valid, so the offset holds in `text` too.
                let at = error.valid_up_to() as u32;
                let diagnostic = Diagnostic::error("ptx::utf8", "the input is not UTF-8 text")
                    .label(Span::new(at, at + 3), "this byte begins no character")
                    .help("PTX is plain text; is this another kind of file?");
                refused(name, &text, diagnostic)
            }
        }
    }
}

/// Inputs that are not worth scanning.
fn refuse(bytes: &[u8]) -> Option<Diagnostic> {
    if bytes.len() >= u32::MAX as usize {
        return Some(Diagnostic::error(
            "ptx::size",
            "the input is larger than 4 GiB",
        ));
    }
    if bytes.starts_with(b"\x7fELF") {
        let message = "this is a cubin (an ELF file), not PTX text";
        return Some(Diagnostic::error("ptx::elf", message).label(Span::point(0), "ELF header"));
    }
    None
}

/// The module of a text that was not parsed: one statement that nobody understands.
fn refused(name: &str, text: &str, diagnostic: Diagnostic) -> (Module, Vec<Diagnostic>) {
    let text = if text.len() < MAX_BYTES { text } else { "" };
    let whole = Span::new(0, text.len() as u32);
    let items = vec![TopItem::Unknown(whole)];
    let module = Module {
        errors: 1,
        items,
        ..empty(name, text)
    };
    (module, vec![diagnostic])
}

fn empty(name: &str, text: &str) -> Module {
    Module {
        name: name.to_owned(),
        source: Arc::from(text),
        syntax: scan(text),
        header: Header {
            address_size: 64,
            ..Header::default()
        },
        opcodes: Default::default(),
        variables: Default::default(),
        functions: Default::default(),
        files: Vec::new(),
        items: Vec::new(),
        errors: 0,
    }
}

struct Parser<'s> {
    source: &'s str,
    tiles: &'s [Tile],
    /// Index of the current tile, which is no trivia.
    at: usize,
    /// End of the last tile consumed.
    last_end: u32,
    module: Module,
    names: Names<'s>,
    opcodes: FxHashMap<&'s str, OpcodeId>,
    /// Opcodes whose modifiers were set off by white space.
    spaced_opcodes: FxHashMap<String, OpcodeId>,
    diagnostics: Vec<Diagnostic>,
    /// Diagnostics beyond [`MAX_DIAGNOSTICS`].
    hidden: usize,
    /// Operands whose name no scope of their function declares, to be looked up at the end.
    unresolved: Vec<(FuncId, resolve::Deferred)>,
    /// What is being built of the current function.
    work: body::Work,
    /// Bytes that initial values may still take.
    init_budget: u64,
    /// Tiles that may still be counted ahead.
    count_budget: usize,
    /// Depth of the recursion over operands, initialisers and expressions.
    nesting: u32,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, syntax: &'s Syntax) -> Self {
        let mut parser = Parser {
            source,
            tiles: &syntax.tiles,
            at: 0,
            last_end: 0,
            module: empty("", ""),
            names: Names::default(),
            opcodes: FxHashMap::default(),
            spaced_opcodes: FxHashMap::default(),
            diagnostics: Vec::new(),
            hidden: 0,
            unresolved: Vec::new(),
            work: body::Work::default(),
            init_budget: INIT_BUDGET + 16 * source.len() as u64,
            count_budget: 2 * syntax.tiles.len(),
            nesting: 0,
        };
        parser.skip_trivia();
        parser
    }

    fn finish(mut self) -> (Module, Vec<Diagnostic>) {
        self.resolve_late_names();
        if self.hidden > 0 {
            let message = format!("{} more problems are not shown", self.hidden);
            self.diagnostics
                .push(Diagnostic::error("ptx::many", message));
        }
        let mut module = self.module;
        module.errors = self.diagnostics.iter().filter(|d| d.is_error()).count();
        module.source = Arc::from(self.source);
        (module, self.diagnostics)
    }

    // The cursor.

    fn tile(&self) -> Tile {
        self.tiles[self.at]
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.tiles[self.at].kind
    }

    fn span(&self) -> Span {
        self.tiles[self.at].span
    }

    fn text(&self) -> &'s str {
        self.span().text(self.source)
    }

    fn at_dotted(&self, text: &str) -> bool {
        self.kind() == Kind::Dotted && self.text() == text
    }

    /// The kind of the tile after the current one, trivia left out.
    fn kind_after(&self) -> Kind {
        let mut rest = self.tiles[self.at..].iter().skip(1);
        rest.find(|t| !t.kind.is_trivia())
            .map_or(Kind::Eof, |t| t.kind)
    }

    /// Consumes the current tile. At the end of the file it stays where it is.
    #[inline]
    fn bump(&mut self) -> Tile {
        let tile = self.tile();
        self.last_end = tile.span.end;
        if tile.kind != Kind::Eof {
            self.at += 1;
            self.skip_trivia();
        }
        tile
    }

    #[inline]
    fn skip_trivia(&mut self) {
        while self.kind().is_trivia() {
            self.at += 1;
        }
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    /// From `start` to the end of the last tile consumed.
    fn since(&self, start: u32) -> Span {
        Span::new(start, self.last_end.max(start))
    }

    // Errors.

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        } else {
            self.hidden += 1;
        }
    }

    /// Reports that something else was expected at the current tile.
    fn expected<T>(&mut self, what: &str) -> Parse<T> {
        let tile = self.tile();
        let found = match tile.kind {
            Kind::Eof => "the file ends here".to_owned(),
            Kind::Error => self.describe_junk(tile.span),
            _ => format!("found `{}`", shorten(tile.span.text(self.source))),
        };
        let diagnostic = Diagnostic::error("ptx::syntax", format!("expected {what}"));
        self.report(diagnostic.label(tile.span, found));
        Err(Failed)
    }

    fn describe_junk(&self, span: Span) -> String {
        let text = span.text(self.source);
        match text.as_bytes() {
            [b'"', ..] => "this string does not end on its line".to_owned(),
            [b'/', b'*', ..] => "this comment does not end".to_owned(),
            _ => {
                let shown = shorten(text).replace(char::is_control, "\u{fffd}");
                format!("`{shown}` has no meaning in PTX")
            }
        }
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parse<Tile> {
        match self.kind() == kind {
            true => Ok(self.bump()),
            false => self.expected(what),
        }
    }

    /// Reports an error at a place.
    fn fail<T>(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Parse<T> {
        self.report(Diagnostic::error(code, message).label(span, label));
        Err(Failed)
    }

    /// Runs `parse` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= MAX_NESTING {
            return self.fail(
                "ptx::nesting",
                format!("nested more than {MAX_NESTING} levels deep"),
                self.span(),
                "this level is too deep",
            );
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Skips to the end of a statement: past the next `;` of the same level, or up to a `}` that
    /// closes a level outside. Braces in between are skipped in pairs.
    fn recover(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.kind() {
                Kind::Eof => return,
                Kind::Semi if depth == 0 => {
                    self.bump();
                    return;
                }
                Kind::LBrace => depth += 1,
                Kind::RBrace if depth == 0 => return,
                Kind::RBrace => depth -= 1,
                Kind::Dotted if self.at_top_level_directive() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Does a function or module directive begin here, which no statement can contain?
    fn at_top_level_directive(&self) -> bool {
        matches!(
            self.text(),
            ".entry" | ".func" | ".visible" | ".version" | ".target"
        )
    }

    /// The id of an opcode text.
    fn intern_opcode(&mut self, text: &'s str) -> OpcodeId {
        if let Some(&id) = self.spaced_opcodes.get(text) {
            return id;
        }
        let opcodes = &mut self.module.opcodes;
        *self
            .opcodes
            .entry(text)
            .or_insert_with(|| opcodes.push(Opcode::parse(text)))
    }
}

/// The beginning of a text, for a message.
fn shorten(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() {
        format!("{head}…")
    } else {
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_message(bytes: &[u8]) -> String {
        let (module, diagnostics) = Module::parse_bytes("x.ptx", bytes);
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(module.errors, 1);
        diagnostics[0].one_line(&module)
    }

    #[test]
    fn inputs_that_are_no_text() {
        assert_eq!(
            only_message(b"\x7fELF\x02\x01"),
            "x.ptx:1:1: error: this is a cubin (an ELF file), not PTX text"
        );
        assert_eq!(
            only_message(b".version 8.0\n// \xff\n"),
            "x.ptx:2:4: error: the input is not UTF-8 text"
        );
    }

    #[test]
    fn problems_beyond_the_limit_are_counted() {
        let lines = "add.s32 %x, 1, 2;\n".repeat(MAX_DIAGNOSTICS + 7);
        let text = format!(".version 8.0\n.target sm_90\n.func f()\n{{\n{lines}ret;\n}}\n");
        let (_, diagnostics) = Module::parse("x.ptx", &text);
        assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS + 1);
        let last = diagnostics.last().map(|d| &*d.message);
        assert_eq!(last, Some("7 more problems are not shown"));
    }
}
