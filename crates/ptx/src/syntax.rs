//! The concrete syntax: the source cut into tiles that cover every byte.
//!
//! A tile is a token or a piece of trivia (white space, a comment, a preprocessor line). The
//! scanner never fails: bytes that begin no token become [`Kind::Error`] tiles, so that
//! [`Syntax::print`] gives back any input byte by byte.

use thiserror::Error;

use crate::Span;

/// What a tile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// White space (and NUL bytes at the very end of the file).
    Space,
    /// `// …` up to the end of the line.
    LineComment,
    /// `/* … */`
    BlockComment,
    /// A line that begins with `#`.
    Preprocessor,
    /// An identifier, with the modifiers or selectors that follow it without white space:
    /// `foo`, `%tid.x`, `ld.global.L2::128B.f32`, `_`.
    Word,
    /// One dotted word that begins with its dot: `.reg`, `.f32`.
    Dotted,
    /// A numeric constant.
    Number,
    /// `"…"`
    Str,
    /// `,`
    Comma,
    /// `;`
    Semi,
    /// `:`
    Colon,
    /// `{`
    LBrace,
    /// `}`
    RBrace,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `[`
    LBracket,
    /// `]`
    RBracket,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%` that begins no register name
    Percent,
    /// `&`
    Amp,
    /// `|`
    Pipe,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `!`
    Bang,
    /// `?`
    Question,
    /// `@`
    At,
    /// `=`
    Equal,
    /// Bytes that begin no token, an unterminated comment or string.
    Error,
    /// The end of the file: the last tile, empty.
    Eof,
}

impl Kind {
    /// Does the parser skip it?
    pub const fn is_trivia(self) -> bool {
        (self as u8) <= Kind::Preprocessor as u8
    }
}

/// A piece of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub span: Span,
}

/// Tiles that do not cover the source, each byte once and in order.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the tiles of the source leave a gap or overlap at byte {at}")]
pub struct TileError {
    /// Byte offset of the first gap or overlap.
    pub at: u32,
}

/// The tiles of one source text.
#[derive(Clone, Debug, Default)]
pub struct Syntax {
    /// In order; the last is [`Kind::Eof`].
    pub tiles: Vec<Tile>,
}

impl Syntax {
    /// Puts the text together again from its tiles, and checks that they cover it: each byte in
    /// exactly one tile.
    ///
    /// # Errors
    /// The first byte that stands in no tile, or in two.
    pub fn print(&self, source: &str) -> Result<String, TileError> {
        let mut out = String::with_capacity(source.len());
        for tile in &self.tiles {
            let at = out.len() as u32;
            if tile.span.start != at {
                return Err(TileError { at });
            }
            out.push_str(source.get(tile.span.range()).ok_or(TileError { at })?);
        }
        match out.len() == source.len() {
            true => Ok(out),
            false => Err(TileError {
                at: out.len() as u32,
            }),
        }
    }
}

/// Byte classes of [`CLASS`].
const SPACE: u8 = 1;
const WORD: u8 = 2; // letter, digit, `_`, `$`
const DIGIT: u8 = 4;
const START: u8 = 8; // begins an identifier

static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = match b {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => SPACE,
            b'0'..=b'9' => WORD | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => WORD | START,
            _ => 0,
        };
        i += 1;
    }
    table
};

fn is(b: u8, class: u8) -> bool {
    CLASS[b as usize] & class != 0
}

/// Cuts `source` into tiles. At most 2 GiB; the caller checks.
pub fn scan(source: &str) -> Syntax {
    let tail = source.bytes().rev().take_while(|&b| b == 0).count();
    let mut scanner = Scanner {
        bytes: source.as_bytes(),
        at: 0,
        nul_tail: source.len() - tail,
    };
    // Real PTX has about one tile for every three bytes.
    let mut tiles = Vec::with_capacity(source.len() / 3 + 1);
    while scanner.at < scanner.bytes.len() {
        let start = scanner.at;
        let kind = scanner.next();
        let span = Span::new(start as u32, scanner.at as u32);
        match tiles.last_mut() {
            // Junk is one tile for each run, not one for each byte.
            Some(Tile {
                kind: Kind::Error,
                span: last,
            }) if kind == Kind::Error => {
                last.end = span.end;
            }
            _ => tiles.push(Tile { kind, span }),
        }
    }
    tiles.push(Tile {
        kind: Kind::Eof,
        span: Span::point(source.len() as u32),
    });
    Syntax { tiles }
}

struct Scanner<'s> {
    bytes: &'s [u8],
    at: usize,
    /// Where the NUL bytes at the end of the file begin (drivers want PTX as a C string).
    nul_tail: usize,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, class: u8) {
        while self.bytes.get(self.at).is_some_and(|&b| is(b, class)) {
            self.at += 1;
        }
    }

    /// Consumes one tile of at least one byte.
    #[inline]
    fn next(&mut self) -> Kind {
        let first = self.peek(0);
        if is(first, SPACE) {
            self.at += 1;
            self.skip_while(SPACE);
            return Kind::Space;
        }
        if is(first, START) {
            return self.word();
        }
        if is(first, DIGIT) {
            return self.number();
        }
        match first {
            b'%' if is(self.peek(1), WORD) => {
                self.at += 1;
                self.word()
            }
            b'.' if is(self.peek(1), WORD) => self.dotted(),
            b'/' if self.peek(1) == b'/' => self.line_end(Kind::LineComment),
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'#' if self.at_line_start() => self.line_end(Kind::Preprocessor),
            b'"' => self.string(),
            0 if self.at == self.nul_tail => {
                self.at = self.bytes.len();
                Kind::Space
            }
            _ => self.punctuation(first),
        }
    }

    fn word(&mut self) -> Kind {
        self.at += 1;
        self.skip_while(WORD);
        while self.peek(0) == b'.' && is(self.peek(1), WORD) {
            self.at += 1;
            self.modifier();
        }
        Kind::Word
    }

    fn dotted(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        self.modifier();
        // The exponent of a fraction such as `.5e-3`.
        let exponent = matches!(self.peek(0), b'+' | b'-') && is(self.peek(1), DIGIT);
        let text = self.bytes.get(start + 1..self.at).unwrap_or(&[]);
        if exponent
            && let [digits @ .., b'e' | b'E'] = text
            && digits.iter().all(u8::is_ascii_digit)
            && !digits.is_empty()
        {
            self.at += 1;
            self.skip_while(DIGIT);
            return Kind::Number;
        }
        Kind::Dotted
    }

    /// A modifier after its dot, such as `f32` or `L2::128B`.
    fn modifier(&mut self) {
        self.skip_while(WORD);
        while self.peek(0) == b':' && self.peek(1) == b':' && is(self.peek(2), WORD) {
            self.at += 2;
            self.skip_while(WORD);
        }
    }

    /// Everything that may belong to a number; what it says is looked at when it is used.
    fn number(&mut self) -> Kind {
        let radix_mark = matches!(self.peek(1), b'x' | b'X' | b'f' | b'F' | b'd' | b'D');
        let decimal = !(self.peek(0) == b'0' && radix_mark);
        while self.at < self.bytes.len() {
            let b = self.peek(0);
            let exponent =
                decimal && matches!(b, b'e' | b'E') && matches!(self.peek(1), b'+' | b'-');
            if exponent && is(self.peek(2), DIGIT) {
                self.at += 2;
            } else if !(is(b, WORD) || (decimal && b == b'.')) {
                break;
            }
            self.at += 1;
        }
        Kind::Number
    }

    fn line_end(&mut self, kind: Kind) -> Kind {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        kind
    }

    fn block_comment(&mut self) -> Kind {
        let rest = &self.bytes[self.at + 2..];
        match memchr::memmem::find(rest, b"*/") {
            Some(n) => {
                self.at += n + 4;
                Kind::BlockComment
            }
            None => {
                self.at = self.bytes.len();
                Kind::Error
            }
        }
    }

    fn at_line_start(&self) -> bool {
        let before = self.bytes[..self.at].iter().rev();
        let mut before = before.take_while(|&&b| b != b'\n');
        before.all(|&b| is(b, SPACE))
    }

    /// A string ends at its quote; a line break ends it too, as an error.
    fn string(&mut self) -> Kind {
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let Some(n) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
                self.at = self.bytes.len();
                return Kind::Error;
            };
            self.at += n;
            match self.peek(0) {
                b'"' => {
                    self.at += 1;
                    return Kind::Str;
                }
                b'\n' => return Kind::Error,
                // The escaped byte may begin a longer character, whose rest is no quote.
                _ => self.at = (self.at + 2).min(self.bytes.len()),
            }
        }
    }

    fn punctuation(&mut self, first: u8) -> Kind {
        self.at += 1;
        match first {
            b',' => Kind::Comma,
            b';' => Kind::Semi,
            b':' => Kind::Colon,
            b'{' => Kind::LBrace,
            b'}' => Kind::RBrace,
            b'(' => Kind::LParen,
            b')' => Kind::RParen,
            b'[' => Kind::LBracket,
            b']' => Kind::RBracket,
            b'<' => Kind::Less,
            b'>' => Kind::Greater,
            b'+' => Kind::Plus,
            b'-' => Kind::Minus,
            b'*' => Kind::Star,
            b'/' => Kind::Slash,
            b'%' => Kind::Percent,
            b'&' => Kind::Amp,
            b'|' => Kind::Pipe,
            b'^' => Kind::Caret,
            b'~' => Kind::Tilde,
            b'!' => Kind::Bang,
            b'?' => Kind::Question,
            b'@' => Kind::At,
            b'=' => Kind::Equal,
            _ => {
                // Never cut a character in two.
                while self.peek(0) & 0xC0 == 0x80 {
                    self.at += 1;
                }
                Kind::Error
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(Kind, &str)> {
        let syntax = scan(source);
        assert_eq!(syntax.print(source).unwrap(), source);
        let tiles = syntax
            .tiles
            .iter()
            .filter(|t| !t.kind.is_trivia() && t.kind != Kind::Eof);
        tiles.map(|t| (t.kind, t.span.text(source))).collect()
    }

    #[test]
    fn opcodes_are_one_word_and_directives_are_cut_at_dots() {
        let want = [
            (Kind::At, "@"),
            (Kind::Bang, "!"),
            (Kind::Word, "%p1"),
            (Kind::Word, "ld.global.L2::128B.v4.f32"),
            (Kind::Word, "%r1.x"),
            (Kind::Dotted, ".reg"),
            (Kind::Dotted, ".b32"),
        ];
        assert_eq!(
            kinds("@!%p1 ld.global.L2::128B.v4.f32 %r1.x .reg.b32"),
            want
        );
        assert_eq!(
            kinds("a: b"),
            [(Kind::Word, "a"), (Kind::Colon, ":"), (Kind::Word, "b")]
        );
    }

    #[test]
    fn numbers_keep_their_exponent_sign_and_hex_digits_do_not() {
        assert_eq!(kinds("1.5e-3"), [(Kind::Number, "1.5e-3")]);
        let want = [
            (Kind::Number, "0x1e"),
            (Kind::Minus, "-"),
            (Kind::Number, "3"),
        ];
        assert_eq!(kinds("0x1e-3"), want);
    }

    #[test]
    fn trivia_and_broken_trivia() {
        assert_eq!(
            kinds("// a\n/* b */ # not a line\n"),
            [
                (Kind::Error, "#"),
                (Kind::Word, "not"),
                (Kind::Word, "a"),
                (Kind::Word, "line"),
            ]
        );
        assert_eq!(kinds("#line 1\n x"), [(Kind::Word, "x")]);
        assert_eq!(kinds("/* open"), [(Kind::Error, "/* open")]);
        assert_eq!(
            kinds("\"open\nx"),
            [(Kind::Error, "\"open"), (Kind::Word, "x")]
        );
        assert_eq!(kinds(r#""a\"b""#), [(Kind::Str, r#""a\"b""#)]);
        assert_eq!(kinds("x\0\0"), [(Kind::Word, "x")]);
        assert_eq!(kinds("\u{e9}\u{e9}"), [(Kind::Error, "\u{e9}\u{e9}")]);
    }

    #[test]
    fn a_gap_between_tiles_is_an_error() {
        let source = "add.s32 %r1;";
        let mut syntax = scan(source);
        syntax.tiles.remove(1);
        assert_eq!(syntax.print(source), Err(TileError { at: 7 }));
        let mut syntax = scan(source);
        syntax.tiles.truncate(2);
        assert_eq!(syntax.print(source), Err(TileError { at: 8 }));
    }
}
