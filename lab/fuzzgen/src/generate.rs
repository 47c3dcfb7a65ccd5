//! From a seed to a program.

use crate::program::{Config, Ending, Kind, Operand, Program, Stmt};
use crate::rare;
use crate::rng::Rng;

/// The program of a seed.
pub fn generate(seed: u64, config: &Config) -> Program {
    let mut rng = Rng::new(seed);
    let most = config.registers.max(4);
    let pool = [
        rng.range(4, most),
        rng.range(2, most / 2 + 2),
        rng.range(2, most / 2 + 2),
        rng.range(2, most / 2 + 2),
        rng.range(2, 6),
        rng.range(2, 5),
    ];
    let block = 32 * rng.range(1, config.warps);
    let grid = rng.range(1, config.blocks);
    let program = Program {
        seed,
        block,
        grid,
        pool,
        functions: Vec::new(),
        ending: Ending::Ret,
        body: Vec::new(),
    };
    let mut maker = Maker {
        rng,
        program: &program,
        config,
        budget: config.statements,
        functions: 0,
        is_function: false,
    };
    let (mut functions, mut ending) = (Vec::new(), Ending::Ret);
    if config.rare {
        functions = rare::functions(&mut maker, config);
        let endings = [Ending::Ret, Ending::Ret, Ending::Exit, Ending::Falls];
        ending = *maker.rng.pick(&endings);
    }
    maker.functions = functions.len();
    let body = maker.block(config.depth, true);
    Program {
        functions,
        ending,
        body,
        ..program
    }
}

pub(crate) struct Maker<'a> {
    pub(crate) rng: Rng,
    pub(crate) program: &'a Program,
    pub(crate) config: &'a Config,
    pub(crate) budget: usize,
    /// Device functions that may be called.
    pub(crate) functions: usize,
    /// Statements of a device function are made.
    pub(crate) is_function: bool,
}

impl Maker<'_> {
    pub(crate) fn reg(&mut self, kind: Kind) -> usize {
        self.rng.below(self.program.pool(kind))
    }

    fn operand(&mut self, kind: Kind) -> Operand {
        if self.rng.chance(15) {
            return Operand::Text(self.constant(kind));
        }
        Operand::Reg(kind, self.reg(kind))
    }

    fn constant(&mut self, kind: Kind) -> String {
        let special = self.rng.chance(40);
        match kind {
            Kind::B16 => format!("{}", self.rng.word() as u16 >> 1),
            Kind::B32 if special => {
                (*self
                    .rng
                    .pick(&["0", "1", "-1", "2147483647", "-2147483648", "31", "32"]))
                .into()
            }
            Kind::B32 => format!("{}", self.rng.word() as i32),
            Kind::B64 if special => {
                (*self
                    .rng
                    .pick(&["0", "1", "-1", "9223372036854775807", "63", "64"]))
                .into()
            }
            Kind::B64 => format!("{}", self.rng.word() as i64 >> self.rng.below(40)),
            Kind::F32 => {
                let specials = [
                    0,
                    0x8000_0000,
                    0x3f80_0000,
                    0x7f80_0000,
                    0x0000_0001,
                    0x7f7f_ffff,
                ];
                let random = (self.rng.below(8_000_000) as f32 / 1000.0 - 4000.0).to_bits();
                let bits = if special {
                    *self.rng.pick(&specials)
                } else {
                    random
                };
                format!("0f{bits:08X}")
            }
            Kind::F64 => {
                let specials: [u64; 5] =
                    [0, 1 << 63, 0x3ff0_0000_0000_0000, 0x7ff0_0000_0000_0000, 1];
                let random = (self.rng.below(8_000_000) as f64 / 1000.0 - 4000.0).to_bits();
                let bits = if special {
                    *self.rng.pick(&specials)
                } else {
                    random
                };
                format!("0d{bits:016X}")
            }
            Kind::Pred => "1".into(),
        }
    }

    /// A list of statements. `uniform` says that all threads of the block come here together.
    pub(crate) fn block(&mut self, depth: usize, uniform: bool) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let wanted = self.rng.range(3, 24);
        while stmts.len() < wanted && self.budget > 0 {
            self.budget -= 1;
            let stmt = self.statement(depth, uniform);
            stmts.push(stmt);
        }
        stmts
    }

    fn statement(&mut self, depth: usize, uniform: bool) -> Stmt {
        if self.config.rare && self.rng.chance(30) {
            return match uniform && depth > 0 && self.rng.chance(4) {
                true => Stmt::Fewer(self.block(0, false)),
                false => self.rare(uniform),
            };
        }
        match self.rng.below(100) {
            0..10 if depth > 0 => Stmt::If {
                pred: self.reg(Kind::Pred),
                negated: self.rng.chance(50),
                then: self.block(depth - 1, false),
                otherwise: if self.rng.chance(60) {
                    self.block(depth - 1, false)
                } else {
                    vec![]
                },
            },
            10..17 if depth > 0 => Stmt::Loop {
                count: self.rng.range(1, 5),
                body: self.block(depth - 1, uniform),
            },
            17..22 if uniform => Stmt::Exchange {
                kind: *self.rng.pick(&[Kind::B32, Kind::B64]),
                reg: self.rng.below(
                    self.program
                        .pool(Kind::B32)
                        .min(self.program.pool(Kind::B64)),
                ),
                flip: self.rng.below(self.program.block),
            },
            22..26 if uniform => Stmt::Shuffle {
                mode: self
                    .rng
                    .pick::<&'static str>(&["up", "down", "bfly", "idx"]),
                reg: self.reg(Kind::B32),
                lane: self.rng.below(32),
                pred: self.reg(Kind::Pred),
            },
            26..29 if uniform => {
                let mode = *self.rng.pick(&["ballot", "any", "all", "uni"]);
                let dst = self.reg(if mode == "ballot" {
                    Kind::B32
                } else {
                    Kind::Pred
                });
                Stmt::Vote {
                    mode,
                    pred: self.reg(Kind::Pred),
                    dst,
                }
            }
            22.. if self.is_function => self.operation(),
            29..36 => self.load(),
            36..39 => Stmt::Local {
                value: self.reg(Kind::B32),
                store: self.reg(Kind::B32),
                load: self.reg(Kind::B32),
                dst: self.reg(Kind::B32),
            },
            39..41 => Stmt::Reduce {
                value: self.reg(Kind::B32),
                cell: self.reg(Kind::B32),
            },
            _ => self.operation(),
        }
    }

    fn load(&mut self) -> Stmt {
        let kind = *self.rng.pick(&[Kind::B32, Kind::B64, Kind::F32, Kind::F64]);
        let most = self.program.pool(kind);
        let widths: &[usize] = match kind {
            Kind::B32 | Kind::F32 => &[1, 2, 4],
            _ => &[1, 2],
        };
        let width = (*self.rng.pick(widths))
            .min(if most >= 4 { 4 } else { 2 })
            .min(most);
        let width = if width == 3 { 2 } else { width };
        Stmt::Load {
            kind,
            dst: self.rng.below(most - width + 1),
            index: self.reg(Kind::B32),
            width,
        }
    }

    fn operation(&mut self) -> Stmt {
        let shape = self.shape();
        let dst = vec![Operand::Reg(shape.dst, self.reg(shape.dst))];
        let mut src: Vec<Operand> = shape
            .src
            .iter()
            .map(|&kind| self.source(&shape, kind))
            .collect();
        if let Some(Operand::Text(amount)) = src.last_mut()
            && shape.opcode.starts_with("sh")
        {
            // Immediate shift amounts beyond the width: ptxas departs from the ISA's clamping.
            *amount = self.rng.below(32).to_string();
        }
        src.extend(shape.last.map(Operand::Text));
        let guard = self
            .rng
            .chance(12)
            .then(|| (self.reg(Kind::Pred), self.rng.chance(50)));
        Stmt::Op {
            opcode: shape.opcode,
            dst,
            src,
            guard,
        }
    }

    /// Predicate sources must be registers; so must the sources of conversions, which PTX types
    /// by the register.
    fn source(&mut self, shape: &Shape, kind: Kind) -> Operand {
        let register_only = kind == Kind::Pred || shape.src.len() == 1;
        if register_only {
            Operand::Reg(kind, self.reg(kind))
        } else {
            self.operand(kind)
        }
    }

    fn shape(&mut self) -> Shape {
        use Kind::{B16, B32, B64, F32, F64, Pred};
        let rounding = *self.rng.pick(&["rn", "rn", "rz", "rm", "rp"]);
        let ftz = *self.rng.pick(&["", "", ".ftz"]);
        let sat = *self.rng.pick(&["", "", "", ".sat"]);
        let sign = *self.rng.pick(&["s", "u"]);
        let lut = self.rng.below(256);
        // Fields that reach beyond the register are left out: for an immediate length of 32 and
        // more ptxas departs from the ISA's text (lab/fuzz/README.md).
        let position = self.rng.below(32);
        let field = format!("{position}, {}", self.rng.range(1, 31).min(32 - position));
        let compare = *self.rng.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let unordered = *self
            .rng
            .pick(&["eq", "ne", "lt", "ge", "equ", "neu", "ltu", "num", "nan"]);
        let all = if self.config.rare { 48 } else { 46 };
        match self.rng.below(all) {
            0 => Shape::new("add.s32", B32, &[B32, B32]),
            1 => Shape::new("sub.s32", B32, &[B32, B32]),
            2 => Shape::new(format!("mul.lo.{sign}32"), B32, &[B32, B32]),
            3 => Shape::new(format!("mul.hi.{sign}32"), B32, &[B32, B32]),
            4 => Shape::new(format!("mad.lo.{sign}32"), B32, &[B32, B32, B32]),
            5 => Shape::new(format!("mul.wide.{sign}32"), B64, &[B32, B32]),
            6 => Shape::new(format!("min.{sign}32"), B32, &[B32, B32]),
            7 => Shape::new(format!("max.{sign}32"), B32, &[B32, B32]),
            8 => Shape::new("and.b32", B32, &[B32, B32]),
            9 => Shape::new("xor.b32", B32, &[B32, B32]),
            10 => Shape::new("shl.b32", B32, &[B32, B32]),
            11 => Shape::new(format!("shr.{sign}32"), B32, &[B32, B32]),
            12 => {
                let shape = Shape::new("lop3.b32", B32, &[B32, B32, B32]);
                Shape {
                    last: Some(lut.to_string()),
                    ..shape
                }
            }
            13 => Shape::new("prmt.b32", B32, &[B32, B32, B32]),
            14 => Shape::new(
                format!(
                    "shf.{}.{}.b32",
                    self.rng.pick(&["l", "r"]),
                    self.rng.pick(&["clamp", "wrap"])
                ),
                B32,
                &[B32, B32, B32],
            ),
            15 => Shape {
                last: Some(field),
                ..Shape::new(format!("bfe.{sign}32"), B32, &[B32])
            },
            16 => Shape {
                last: Some(field),
                ..Shape::new("bfi.b32", B32, &[B32, B32])
            },
            17 => Shape::new("popc.b32", B32, &[B32]),
            18 => Shape::new("clz.b32", B32, &[B32]),
            19 => Shape::new("brev.b32", B32, &[B32]),
            20 => Shape::new(format!("sad.{sign}32"), B32, &[B32, B32, B32]),
            21 => Shape::new("add.s64", B64, &[B64, B64]),
            22 => Shape::new(format!("mul.lo.{sign}64"), B64, &[B64, B64]),
            23 => Shape::new("xor.b64", B64, &[B64, B64]),
            24 => Shape::new("shl.b64", B64, &[B64, B32]),
            25 => Shape::new(format!("shr.{sign}64"), B64, &[B64, B32]),
            26 => Shape::new(format!("setp.{compare}.{sign}32"), Pred, &[B32, B32]),
            27 => Shape::new(format!("setp.{compare}.{sign}64"), Pred, &[B64, B64]),
            28 => Shape::new(format!("setp.{unordered}.f32"), Pred, &[F32, F32]),
            29 => Shape::new(format!("setp.{unordered}.f64"), Pred, &[F64, F64]),
            30 => Shape::new("selp.b32", B32, &[B32, B32, Pred]),
            31 => Shape::new("selp.f64", F64, &[F64, F64, Pred]),
            32 => Shape::new(
                format!(
                    "{}.{rounding}{ftz}{sat}.f32",
                    self.rng.pick(&["add", "sub", "mul"])
                ),
                F32,
                &[F32, F32],
            ),
            33 => Shape::new(
                format!("fma.{rounding}{ftz}{sat}.f32"),
                F32,
                &[F32, F32, F32],
            ),
            34 => Shape::new(
                format!("{}.{rounding}.f64", self.rng.pick(&["add", "sub", "mul"])),
                F64,
                &[F64, F64],
            ),
            35 => Shape::new(format!("fma.{rounding}.f64"), F64, &[F64, F64, F64]),
            36 => Shape::new(format!("div.{rounding}{ftz}.f32"), F32, &[F32, F32]),
            37 => Shape::new(format!("sqrt.{rounding}{ftz}.f32"), F32, &[F32]),
            38 => Shape::new(
                format!("{}{ftz}.f32", self.rng.pick(&["min", "max"])),
                F32,
                &[F32, F32],
            ),
            39 => Shape::new(format!("cvt.rni.{sign}32.f32"), B32, &[F32]),
            40 => Shape::new(format!("cvt.{rounding}.f32.{sign}32"), F32, &[B32]),
            41 => Shape::new(format!("cvt.{rounding}.f32.f64"), F32, &[F64]),
            42 => Shape::new("cvt.f64.f32", F64, &[F32]),
            43 => Shape::new(format!("cvt.{sign}32.{sign}16"), B32, &[B16]),
            44 => Shape::new("add.s16", B16, &[B16, B16]),
            46 => Shape::new(format!("div.{rounding}.f64"), F64, &[F64, F64]),
            47 => Shape::new(
                format!("{}.{rounding}.f64", self.rng.pick(&["sqrt", "rcp"])),
                F64,
                &[F64],
            ),
            _ if self.config.approximate => {
                let op = *self
                    .rng
                    .pick(&["ex2", "lg2", "rcp", "rsqrt", "sin", "cos", "sqrt"]);
                Shape::new(format!("{op}.approx{ftz}.f32"), F32, &[F32])
            }
            _ => Shape::new(
                format!("{}.pred", self.rng.pick(&["and", "or", "xor"])),
                Pred,
                &[Pred, Pred],
            ),
        }
    }
}

/// An opcode with the pools of its destination and sources.
struct Shape {
    opcode: String,
    dst: Kind,
    src: Vec<Kind>,
    /// An immediate that follows the sources: the look-up table of `lop3`.
    last: Option<String>,
}

impl Shape {
    fn new(opcode: impl Into<String>, dst: Kind, src: &[Kind]) -> Self {
        Shape {
            opcode: opcode.into(),
            dst,
            src: src.to_vec(),
            last: None,
        }
    }
}
