//! The tables of forms, one text file per architecture, and their syntax.
//!
//! One line per form: opcode, confirmed instances, guard (`P`, `UP` or `-`), fixed bits, hidden bits,
//! template. In a template `{R@16:8}` is a number over bits 16 to 23 (`R`, `UR`, `P`, `UP`, `B`,
//! `SB`; `~UP` where the field holds the number's complement, `UR+` for the register behind the field's; `u` unsigned, `s` signed, `rel`, `f16`, `bf16`, `f32`, `f64`; `*4` a factor; `+16:8+34:48`
//! further bits; a leading `+` a summand that is left out when zero) and `{@78:2 0= 1=.RM}` a choice.
//! `{{` is a brace.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::ParseIntError;
use std::sync::LazyLock;

use super::float::Float;
use super::form::{Choice, Field, File, Form, Guard, Kind, Number, Piece, Segment};

/// What is known of one architecture's instructions.
#[derive(Debug, Clone, Default)]
pub struct Table {
    forms: Vec<Form>,
    masks: Vec<u128>,
    /// Range of forms by opcode.
    by_opcode: Vec<(u32, u32)>,
    by_mnemonic: BTreeMap<String, Vec<usize>>,
}

/// A table's file is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TableError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: FormError,
}

/// Why a line is no form of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Too few columns.
    #[error("six columns are needed")]
    Columns,
    /// A number that does not parse.
    #[error("{text}: {why}")]
    Number {
        /// What stands there.
        text: String,
        /// Why it is no number.
        why: ParseIntError,
    },
    /// A guard of no known kind.
    #[error("no guard: {0}")]
    Guard(String),
    /// `{` without `}`.
    #[error("a brace is open")]
    OpenBrace,
    /// A field without `@`.
    #[error("a field needs its bits")]
    NoBits,
    /// A choice with too many values.
    #[error("a choice over {0} bits")]
    Choice(u32),
    /// A value of a choice without its text.
    #[error("value=text is needed")]
    NoText,
    /// A value that does not fit its field.
    #[error("a value beyond its field")]
    Value,
    /// A factor that is no power of two.
    #[error("{0} is no power of two")]
    Factor(u64),
    /// A number of no known kind.
    #[error("no kind: {0}")]
    Kind(String),
    /// Bits that are no bits of an instruction.
    #[error("no bits: {0}")]
    Bits(String),
    /// A field of more than 64 bits.
    #[error("too wide: {0}")]
    Wide(String),
    /// A bit with two meanings.
    #[error("two fields share a bit")]
    Shared,
    /// A fixed bit that a field holds, too.
    #[error("a fixed bit lies in a field")]
    Fixed,
    /// Fixed bits without the opcode.
    #[error("the opcode is not among the fixed bits")]
    Opcode,
}

impl FormError {
    fn number(text: &str) -> impl FnOnce(ParseIntError) -> FormError {
        move |why| FormError::Number {
            text: text.to_owned(),
            why,
        }
    }
}

impl Table {
    /// The table of architecture `sm` (75, 80, 86, 89, 90, 100, 120), or `None` for others.
    pub fn of(sm: u32) -> Option<&'static Table> {
        macro_rules! tables {
            ($($sm:literal)*) => {
                match sm {
                    $($sm => {
                        static TABLE: LazyLock<Table> = LazyLock::new(|| {
                            const TEXT: &str =
                                include_str!(concat!("../../tables/isa/sm_", $sm, ".txt"));
                            // The files are part of the program and a test reads them all.
                            Table::parse(TEXT).unwrap_or_default()
                        });
                        Some(&TABLE)
                    })*
                    _ => None,
                }
            };
        }
        tables!(75 80 86 89 90 100 120)
    }

    /// A table of these forms. Within an opcode the more specific form comes first: it is tried first.
    pub fn new(mut forms: Vec<Form>) -> Self {
        forms.sort_by_key(|f| (f.opcode, std::cmp::Reverse(f.mask().count_ones())));
        let mut by_opcode = vec![(0, 0); 1 << 12];
        let mut by_mnemonic: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, form) in forms.iter().enumerate() {
            let range: &mut (u32, u32) = &mut by_opcode[usize::from(form.opcode) & 0xfff];
            if range.1 == 0 {
                range.0 = at as u32;
            }
            range.1 = at as u32 + 1;
            let name = form.mnemonic().to_owned();
            by_mnemonic.entry(name).or_default().push(at);
        }
        let masks = forms.iter().map(Form::mask).collect();
        Table {
            forms,
            masks,
            by_opcode,
            by_mnemonic,
        }
    }

    /// All forms, by opcode, the more specific first.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The form of an instruction, or `None` if a bit is not understood.
    pub fn find(&self, bits: u128) -> Option<&Form> {
        let (start, end) = *self.by_opcode.get(bits as usize & 0xfff)?;
        (start as usize..end as usize).find_map(|at| {
            let form = &self.forms[at];
            (bits & self.masks[at] == form.value && form.has_texts(bits)).then_some(form)
        })
    }

    /// The forms whose text begins with this mnemonic (without modifiers).
    pub fn named<'a>(&'a self, mnemonic: &str) -> impl Iterator<Item = &'a Form> {
        let list = self.by_mnemonic.get(mnemonic).map_or(&[][..], |l| l);
        list.iter().map(|&at| &self.forms[at])
    }

    /// Reads a table's file.
    ///
    /// # Errors
    /// [`TableError`], of the first line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let mut forms = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let form = parse_form(line).map_err(|reason| TableError {
                line: at + 1,
                reason,
            })?;
            forms.push(form);
        }
        Ok(Table::new(forms))
    }

    /// The table's file, without its heading.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for form in &self.forms {
            print_form(form, &mut out);
        }
        out
    }
}

fn print_form(form: &Form, out: &mut String) {
    let guard = match form.guard {
        Guard::None => "-",
        Guard::Predicate => "P",
        Guard::Uniform => "UP",
    };
    let Form {
        opcode,
        confirmed,
        value,
        hidden,
        ..
    } = form;
    let _ = write!(
        out,
        "{opcode:03x} {confirmed} {guard} {value:x} {hidden:x} "
    );
    for piece in &form.pieces {
        match piece {
            Piece::Text(text) => out.push_str(&text.replace('{', "{{")),
            Piece::Number(n) => print_number(n, &form.fields[n.field], out),
            Piece::Choice(c) => {
                out.push('{');
                print_field(&form.fields[c.field], out);
                for (value, text) in c.texts.iter().enumerate() {
                    if let Some(text) = text {
                        let _ = write!(out, " {value}={text}");
                    }
                }
                out.push('}');
            }
        }
    }
    out.push('\n');
}

fn print_number(n: &Number, field: &Field, out: &mut String) {
    out.push_str(if n.term { "{+" } else { "{" });
    out.push_str(kind_name(n.kind));
    print_field(field, out);
    if n.scale > 0 {
        let _ = write!(out, "*{}", 1u64 << n.scale);
    }
    out.push('}');
}

fn print_field(field: &Field, out: &mut String) {
    for (i, s) in field.0.iter().enumerate() {
        out.push(if i == 0 { '@' } else { '+' });
        let _ = write!(out, "{}:{}", s.lo, s.width);
    }
}

const KINDS: [(&str, Kind); 15] = [
    ("R", Kind::Register(File::General)),
    ("UR", Kind::Register(File::Uniform)),
    ("P", Kind::Register(File::Predicate)),
    ("UP", Kind::Register(File::UniformPredicate)),
    ("~UP", Kind::Complement(File::UniformPredicate)),
    ("UR+", Kind::Next(File::Uniform)),
    ("B", Kind::Register(File::Barrier)),
    ("SB", Kind::Register(File::Scoreboard)),
    ("u", Kind::Unsigned),
    ("s", Kind::Signed),
    ("rel", Kind::Relative),
    ("f16", Kind::Float(Float::F16)),
    ("bf16", Kind::Float(Float::Bf16)),
    ("f32", Kind::Float(Float::F32)),
    ("f64", Kind::Float(Float::F64)),
];

fn kind_name(kind: Kind) -> &'static str {
    KINDS.iter().find(|k| k.1 == kind).map_or("?", |k| k.0)
}

fn parse_form(line: &str) -> Result<Form, FormError> {
    let columns: Vec<&str> = line.splitn(6, ' ').collect();
    let [opcode, confirmed, guard, value, hidden, template] = columns[..] else {
        return Err(FormError::Columns);
    };
    let bits = |text| u128::from_str_radix(text, 16).map_err(FormError::number(text));
    let mut form = Form {
        opcode: bits(opcode)? as u16,
        confirmed: confirmed.parse().map_err(FormError::number(confirmed))?,
        guard: match guard {
            "-" => Guard::None,
            "P" => Guard::Predicate,
            "UP" => Guard::Uniform,
            _ => return Err(FormError::Guard(guard.to_owned())),
        },
        value: bits(value)?,
        hidden: bits(hidden)?,
        fields: Vec::new(),
        pieces: Vec::new(),
    };
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (text, tail) = rest.split_at(open);
        push_text(&mut form.pieces, text);
        if let Some(after) = tail.strip_prefix("{{") {
            push_text(&mut form.pieces, "{");
            rest = after;
            continue;
        }
        let (body, tail) = tail[1..].split_once('}').ok_or(FormError::OpenBrace)?;
        let piece = parse_piece(body, &mut form.fields)?;
        form.pieces.push(piece);
        rest = tail;
    }
    push_text(&mut form.pieces, rest);
    check(&form)?;
    Ok(form)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(last)) => last.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn parse_piece(body: &str, fields: &mut Vec<Field>) -> Result<Piece, FormError> {
    let (kind, rest) = body.split_once('@').ok_or(FormError::NoBits)?;
    let mut words = rest.split(' ');
    let place = words.next().unwrap_or("");
    if kind.is_empty() {
        let field = intern(parse_field(place)?, fields);
        let width = fields[field].width();
        if width > 12 {
            return Err(FormError::Choice(width));
        }
        let mut texts = vec![None; 1 << width];
        for word in words {
            let (value, text) = word.split_once('=').ok_or(FormError::NoText)?;
            let value: usize = value.parse().map_err(FormError::number(value))?;
            let place = texts.get_mut(value).ok_or(FormError::Value)?;
            *place = Some(text.to_owned());
        }
        return Ok(Piece::Choice(Choice { field, texts }));
    }
    let (place, factor) = place.split_once('*').unwrap_or((place, "1"));
    let factor: u64 = factor.parse().map_err(FormError::number(factor))?;
    if !factor.is_power_of_two() {
        return Err(FormError::Factor(factor));
    }
    let name = kind.trim_start_matches('+');
    let known = KINDS.iter().find(|k| k.0 == name);
    Ok(Piece::Number(Number {
        field: intern(parse_field(place)?, fields),
        kind: known.ok_or_else(|| FormError::Kind(kind.to_owned()))?.1,
        scale: factor.trailing_zeros() as u8,
        term: kind.starts_with('+'),
    }))
}

fn parse_field(text: &str) -> Result<Field, FormError> {
    let segment = |part: &str| {
        let (lo, width) = part.split_once(':')?;
        let (lo, width): (u8, u8) = (lo.parse().ok()?, width.parse().ok()?);
        let known = width > 0 && width <= 64 && u32::from(lo) + u32::from(width) <= 128;
        known.then_some(Segment { lo, width })
    };
    let segments: Option<Vec<_>> = text.split('+').map(segment).collect();
    let field = Field(segments.ok_or_else(|| FormError::Bits(text.to_owned()))?);
    if field.width() > 64 {
        return Err(FormError::Wide(text.to_owned()));
    }
    Ok(field)
}

pub(super) fn intern(field: Field, fields: &mut Vec<Field>) -> usize {
    fields.iter().position(|f| *f == field).unwrap_or_else(|| {
        fields.push(field);
        fields.len() - 1
    })
}

/// No bit may have two meanings.
fn check(form: &Form) -> Result<(), FormError> {
    let mut seen = form.hidden;
    for field in &form.fields {
        if seen & field.mask() != 0 {
            return Err(FormError::Shared);
        }
        seen |= field.mask();
    }
    if form.value & !form.mask() != 0 {
        return Err(FormError::Fixed);
    }
    if form.value & 0xfff != u128::from(form.opcode) {
        return Err(FormError::Opcode);
    }
    Ok(())
}
