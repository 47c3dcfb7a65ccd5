//! Constant expressions and immediates of the PTX front end, held against ptxas.
//!
//! Of initial values the bytes are read back out of the cubin. Of immediates two kernels are built, one
//! with the expressions and one with what the front end makes of them as plain literals: ptxas must
//! write the same code for both. What the front end refuses, ptxas must refuse, too.

use warpwright_fuzzgen::Rng;
use warpwright_ptx::{Diagnostic, Imm, Init, Inst, Module, Operand, Type, TypeKind};
use warpwright_sass::{Elf, ElfError};
use warpwright_toolkit::{Ptxas, PtxasJob, ToolError};

/// Initial values of one seed, and as many immediates.
pub const BATCH: usize = 500;

/// Refused expressions of one seed that ptxas is asked about, one by one.
const REFUSED: usize = 2;

const GPU: &str = "sm_90";
const HEADER: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// What was compared and found equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Initial values with the same bytes.
    pub initial_values: u64,
    /// Immediates with the same machine code.
    pub immediates: u64,
    /// Expressions that both refuse.
    pub refused: u64,
}

/// A difference.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// ptxas did not run, or refused what the front end accepts.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The cubin cannot be read.
    #[error(transparent)]
    Cubin(#[from] ElfError),
    /// Other bytes.
    #[error("{what}: the front end says {ours}, ptxas {theirs}")]
    Different {
        /// The type and the expression.
        what: String,
        /// What the front end makes of it.
        ours: String,
        /// What ptxas makes of it.
        theirs: String,
    },
    /// The front end refuses it and ptxas does not.
    #[error("{0}: only the front end refuses it")]
    OnlyWeRefuse(String),
}

/// All expressions of a seed.
///
/// # Errors
/// The first one on which the front end and ptxas differ.
pub fn check(seed: u64, ptxas: &Ptxas<'_>) -> Result<Totals, Failure> {
    let mut rng = Rng::new(seed);
    let mut totals = Totals::default();
    let mut refused = Vec::new();
    let mut values = Vec::new();
    while values.len() < BATCH {
        let (ty, text) = typed(&mut rng, &INITIAL);
        match initial(ty, &text) {
            Some(bytes) => values.push((ty, text, bytes)),
            None => refused.push((ty, text)),
        }
    }
    initial_values(&values, ptxas)?;
    totals.initial_values += BATCH as u64;
    for (ty, text) in refused.iter().take(REFUSED) {
        match build(&declaration(0, *ty, text), ptxas) {
            Ok(_) => return Err(Failure::OnlyWeRefuse(format!("{ty} = {text}"))),
            // It divides the least number by -1 and is ended by a signal.
            Err(ToolError::Rejected { .. } | ToolError::Signal { .. }) => totals.refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let mut immediates = Vec::new();
    while immediates.len() < BATCH {
        let (ty, text) = typed(&mut rng, &OPERANDS);
        if let Some(imm) = immediate(ty, &text) {
            immediates.push((ty, text, literal(imm, ty), rng.below(4)));
        }
    }
    same_code(&immediates, ptxas)?;
    totals.immediates += BATCH as u64;
    Ok(totals)
}

type Value = (Type, String, Vec<u8>);
/// Type, expression, literal, and the instruction that holds it.
type Immediate = (Type, String, String, usize);

const INITIAL: [Type; 14] = [
    Type::U8,
    Type::S8,
    Type::B8,
    Type::U16,
    Type::S16,
    Type::B16,
    Type::U32,
    Type::S32,
    Type::B32,
    Type::U64,
    Type::S64,
    Type::B64,
    Type::F32,
    Type::F64,
];

const OPERANDS: [Type; 12] = [
    Type::Pred,
    Type::U16,
    Type::S16,
    Type::B16,
    Type::U32,
    Type::S32,
    Type::B32,
    Type::U64,
    Type::S64,
    Type::B64,
    Type::F32,
    Type::F64,
];

/// An expression for one of these types.
fn typed(rng: &mut Rng, types: &[Type]) -> (Type, String) {
    let ty = *rng.pick(types);
    let is_float = match ty.kind() {
        TypeKind::Float => rng.chance(98),
        TypeKind::Bits => rng.chance(10),
        _ => rng.chance(1),
    };
    let depth = rng.below(5);
    let text = match is_float {
        true if rng.chance(15) => format!("0f{:08X}", rng.word() as u32),
        true => float(rng, depth),
        false => integer(rng, depth),
    };
    (ty, text)
}

fn integer(rng: &mut Rng, depth: usize) -> String {
    const BINARY: [&str; 18] = [
        "+", "-", "*", "/", "%", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&", "^", "|", "&&",
        "||",
    ];
    if depth == 0 {
        return whole(rng);
    }
    let part = |rng: &mut Rng| integer(rng, depth - 1);
    match rng.below(20) {
        0..=11 => {
            let (a, op, b) = (part(rng), *rng.pick(&BINARY), part(rng));
            match rng.chance(50) {
                true => format!("({a} {op} {b})"),
                false => format!("{a} {op} {b}"),
            }
        }
        12..=15 => format!("{}({})", rng.pick(&["-", "~", "!", "+"]), part(rng)),
        16 => format!("(({}){})", rng.pick(&[".s64", ".u64"]), whole(rng)),
        17 => format!("({} ? {} : {})", part(rng), part(rng), part(rng)),
        18 => {
            let (a, b) = (float(rng, 1), float(rng, 1));
            format!(
                "({a} {} {b})",
                rng.pick(&["<", "<=", ">", ">=", "==", "!="])
            )
        }
        _ => part(rng),
    }
}

/// A number, often at the edge of a type.
fn whole(rng: &mut Rng) -> String {
    let bits = *rng.pick(&[1, 7, 8, 15, 16, 31, 32, 33, 63, 64]);
    let value = match rng.below(3) {
        0 => rng.below(70) as u64,
        1 => (u64::MAX >> (64 - bits)).wrapping_add(rng.below(3) as u64),
        _ => rng.word() >> rng.below(64),
    };
    let suffix = if rng.chance(20) { "U" } else { "" };
    match rng.below(12) {
        0 => "WARP_SZ".to_owned(),
        1..=3 => format!("0x{value:X}{suffix}"),
        4 => format!("0{value:o}{suffix}"),
        5 => format!("0b{value:b}{suffix}"),
        6..=7 => format!("-{value}{suffix}"),
        _ => format!("{value}{suffix}"),
    }
}

fn float(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 {
        let value = (rng.below(2_000_001) as f64 - 1e6) * 10f64.powi(rng.below(13) as i32 - 6);
        return match rng.below(4) {
            0 => format!("0d{:016X}", rng.word()),
            1 => format!("0d{:016X}", value.to_bits()),
            2 => format!("{:?}", value.abs()),
            _ => format!("{:e}", value.abs())
                .replace('e', ".0e")
                .replace("..", "."),
        };
    }
    let (a, b) = (float(rng, depth - 1), float(rng, depth - 1));
    match rng.below(6) {
        0 => format!("-({a})"),
        1 => a,
        _ => format!("({a} {} {b})", rng.pick(&["+", "-", "*", "/"])),
    }
}

fn parse(text: &str) -> Option<Module> {
    let (module, diagnostics) = Module::parse("constants.ptx", &format!("{HEADER}{text}"));
    (!diagnostics.iter().any(Diagnostic::is_error)).then_some(module)
}

fn declaration(index: usize, ty: Type, text: &str) -> String {
    format!(".visible .global .align 8 {ty} g{index} = {text};\n")
}

/// The bytes that the front end gives a variable.
fn initial(ty: Type, text: &str) -> Option<Vec<u8>> {
    let module = parse(&declaration(0, ty, text))?;
    let variable = module.variables.values().next()?;
    match &variable.init {
        Some(Init::Data(data)) => Some(data.bytes.clone()),
        _ => None,
    }
}

/// What the front end makes of an operand.
fn immediate(ty: Type, text: &str) -> Option<Imm> {
    let module = parse(&format!(
        ".entry k() {{ .reg {ty} %x; mov{ty} %x, {text}; ret; }}\n"
    ))?;
    warpwright_ptx::verify(&module).ok()?;
    let (_, kernel) = module.kernels().next()?;
    match kernel.body.as_ref()?.operands(Inst::from_u32(0)) {
        [_, Operand::Imm(imm)] => Some(*imm),
        _ => None,
    }
}

fn literal(imm: Imm, ty: Type) -> String {
    let bits = imm.seen_as(ty);
    match (imm, ty) {
        (_, Type::F32) => format!("0f{bits:08X}"),
        (_, Type::F64) | (Imm::F64(_), _) => format!("0d{bits:016X}"),
        _ => format!("0x{bits:X}"),
    }
}

fn build(text: &str, ptxas: &Ptxas<'_>) -> Result<Vec<u8>, ToolError> {
    let text = format!("{HEADER}{text}");
    let text = match text.contains(".entry") {
        true => text,
        false => text + ".visible .entry k() { ret; }\n",
    };
    Ok(ptxas.run(&PtxasJob::new(&text, GPU))?.cubin)
}

fn initial_values(values: &[Value], ptxas: &Ptxas<'_>) -> Result<(), Failure> {
    let lines = values.iter().enumerate();
    let text: String = lines
        .map(|(index, (ty, text, _))| declaration(index, *ty, text))
        .collect();
    let elf = Elf::parse(&build(&text, ptxas)?)?;
    for symbol in elf.symbols()? {
        let index = symbol.name.strip_prefix('g').and_then(|n| n.parse().ok());
        let Some((ty, text, ours)) = index.and_then(|index: usize| values.get(index)) else {
            continue;
        };
        let start = symbol.value as usize;
        let section = elf.sections.get(usize::from(symbol.section));
        let data = section.map_or(&[][..], |section| &section.data);
        let zeros = vec![0; ours.len()];
        let theirs = data.get(start..start + ours.len()).unwrap_or(&zeros);
        if theirs != &ours[..] {
            return Err(Failure::Different {
                what: format!("{ty} = {text}"),
                ours: format!("{ours:02X?}"),
                theirs: format!("{theirs:02X?}"),
            });
        }
    }
    Ok(())
}

/// A kernel with one instruction for each immediate, as an expression or as a literal.
fn kernel(immediates: &[Immediate], is_literal: bool) -> String {
    let mut text = ".visible .entry k(.param .u64 p) {\n.reg .b64 %d<3>; .reg .b32 %r<2>; \
                    .reg .b16 %h<2>; .reg .f32 %f<2>; .reg .f64 %e<2>; .reg .pred %q<2>;\n\
                    ld.param.u64 %d1, [p];\n"
        .to_owned();
    for (index, (ty, expression, literal, way)) in immediates.iter().enumerate() {
        let value = if is_literal { literal } else { expression };
        let register = match ty {
            Type::Pred => "%q1",
            Type::F32 => "%f1",
            Type::F64 => "%e1",
            _ => ["%h1", "%r1", "%d2"][ty.bits() as usize / 32],
        };
        let at = format!("[%d1+{}]", 8 * index);
        let is_integer = matches!(ty.kind(), TypeKind::Unsigned | TypeKind::Signed);
        text += &match (ty, way) {
            (Type::Pred, _) => format!(
                "mov.pred %q1, {value}; selp.u32 %r1, 5, 6, %q1; st.volatile.global.u32 {at}, %r1;\n"
            ),
            (_, 0) => format!("st.volatile.global{ty} {at}, {value};\n"),
            (_, 1) if is_integer => format!(
                "ld.volatile.global{ty} {register}, {at}; add{ty} {register}, {register}, {value}; \
                 st.volatile.global{ty} {at}, {register};\n"
            ),
            (_, 2) if is_integer => format!(
                "ld.volatile.global{ty} {register}, {at}; setp.lt{ty} %q1, {register}, {value}; \
                 selp.u32 %r1, 5, 6, %q1; st.volatile.global.u32 {at}, %r1;\n"
            ),
            _ => format!("mov{ty} {register}, {value}; st.volatile.global{ty} {at}, {register};\n"),
        };
    }
    text + "ret; }\n"
}

fn same_code(immediates: &[Immediate], ptxas: &Ptxas<'_>) -> Result<(), Failure> {
    let code = |is_literal| -> Result<Vec<u8>, Failure> {
        let elf = Elf::parse(&build(&kernel(immediates, is_literal), ptxas)?)?;
        let section = elf.section(".text.k");
        Ok(section.map_or_else(Vec::new, |section| section.data.clone()))
    };
    if code(false)? == code(true)? {
        return Ok(());
    }
    match immediates {
        [(ty, expression, literal, _)] => Err(Failure::Different {
            what: format!("{ty} {expression}"),
            ours: literal.clone(),
            theirs: "something else".to_owned(),
        }),
        _ => {
            let (first, second) = immediates.split_at(immediates.len() / 2);
            same_code(first, ptxas)?;
            same_code(second, ptxas)
        }
    }
}
