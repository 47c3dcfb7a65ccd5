//! Matrix instructions.

use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::matrix::{Element, MatrixOp, Mma, Tile};
use crate::program::{AccessSpace, CollectiveOp, Members, Op};

impl Decoder<'_> {
    pub(super) fn tensor(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        if words.has("sp") || words.has("block_scale") || words.has("kind::mxf8f6f4") {
            return Err("sparse and scaled matrices".into());
        }
        let op = match words.name {
            "mma" => self.mma(words, operands)?,
            "ldmatrix" | "stmatrix" => self.matrix_memory(words, operands)?,
            "movmatrix" => {
                words.skip(&["sync", "aligned", "m8n8", "trans", "b16"]);
                let [d, a] = operands else {
                    return Err("too few operands".into());
                };
                let src = self.src(a, Type::B32)?;
                MatrixOp::Move {
                    dst: self.dst(d)?,
                    src,
                }
            }
            _ => self.wmma(words, operands)?,
        };
        self.emit(Op::Collective {
            members: Members::All,
            op: CollectiveOp::Matrix(op),
        });
        Ok(())
    }

    fn mma(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<MatrixOp, Reason> {
        words.skip(&["sync", "aligned", "row", "col", "popc", "rn"]);
        let saturate = words.take("satfinite");
        let xor = words.take("xor");
        words.skip(&["and"]);
        let (m, n, k) = words.find(shape).ok_or("a matrix of this shape")?;
        let mut element = || -> Result<Element, Reason> {
            let ty = words.ty()?;
            Element::of(ty).ok_or_else(|| format!("elements of type {ty}"))
        };
        let (d_type, a_type, b_type, c_type) = (element()?, element()?, element()?, element()?);
        let [d, a, b, c] = operands else {
            return Err("too few operands".into());
        };
        let mma = self.build(
            Mma {
                m,
                n,
                k,
                a_type,
                b_type,
                c_type,
                d_type,
                a: Vec::new(),
                b: Vec::new(),
                c: Vec::new(),
                d: Vec::new(),
                saturate,
                xor,
                wmma: false,
            },
            [d, a, b, c],
        )?;
        if !mma.is_consistent() {
            return Err("a matrix of this shape".into());
        }
        Ok(MatrixOp::Mma(Box::new(mma)))
    }

    /// Adds the operands D, A, B and C.
    fn build(&mut self, mut mma: Mma, [d, a, b, c]: [&Operand; 4]) -> Result<Mma, Reason> {
        let mut sources = |operand: &Operand, element: Element| {
            let ty = if element == Element::F64 {
                Type::B64
            } else {
                Type::B32
            };
            let elements = self.elements(operand);
            self.srcs(&elements, ty).map(|srcs| srcs.to_vec())
        };
        mma.a = sources(a, mma.a_type)?;
        mma.b = sources(b, mma.b_type)?;
        mma.c = sources(c, mma.c_type)?;
        for element in self.elements(d) {
            mma.d.push(self.dst(&element)?);
        }
        self.approximate |= !mma.a_type.is_int();
        Ok(mma)
    }

    fn matrix_memory(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<MatrixOp, Reason> {
        words.skip(&["sync", "aligned"]);
        let transposed = words.take("trans");
        let shared = ["shared", "shared::cta"];
        let space = words.find(|w| shared.contains(&w).then_some(AccessSpace::Shared));
        let space = space.unwrap_or(AccessSpace::Generic);
        let (shape, ty) = (words.take("m8n8"), words.ty()?);
        let count = words.find(|w| match w {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        if !shape || ty != Type::B16 {
            return Err("a matrix of this shape".into());
        }
        let (address, registers) = match (words.name, operands) {
            ("ldmatrix", [d, address]) => (address, d),
            ("stmatrix", [address, value]) => (address, value),
            _ => return Err("these operands".into()),
        };
        let access = self.access(address, space, 2, 8)?;
        let registers = self.elements(registers);
        if Some(registers.len()) != count {
            return Err("a list of registers of another length".into());
        }
        if words.name == "stmatrix" {
            let srcs = self.srcs(&registers, Type::B32)?.to_vec();
            return Ok(MatrixOp::Store {
                access,
                srcs,
                transposed,
            });
        }
        let dsts = registers
            .iter()
            .map(|r| self.dst(r))
            .collect::<Result<_, _>>()?;
        Ok(MatrixOp::Load {
            access,
            dsts,
            transposed,
        })
    }

    fn wmma(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<MatrixOp, Reason> {
        let what = words
            .next()
            .ok_or("a matrix instruction without an operation")?;
        words.skip(&["sync", "aligned"]);
        let (m, n, k) = words.find(shape).ok_or("a matrix of this shape")?;
        let element = |ty: Type| Element::of(ty).ok_or_else(|| format!("elements of type {ty}"));
        if what == "mma" {
            words.skip(&["row", "col", "popc", "rn"]);
            let (saturate, xor) = (words.take("satfinite"), words.take("xor"));
            let mut types = Vec::new();
            while words.peek_type().is_some() {
                types.push(element(words.ty()?)?);
            }
            // Of halves only the types of D and C are written.
            let (d_type, a_type, b_type, c_type) = match types[..] {
                [d, c] => (d, Element::F16, Element::F16, c),
                [d, a, b, c] => (d, a, b, c),
                _ => return Err("a matrix product of these types".into()),
            };
            let [d, a, b, c] = operands else {
                return Err("too few operands".into());
            };
            let mma = self.build(
                Mma {
                    m,
                    n,
                    k,
                    a_type,
                    b_type,
                    c_type,
                    d_type,
                    a: Vec::new(),
                    b: Vec::new(),
                    c: Vec::new(),
                    d: Vec::new(),
                    saturate,
                    xor,
                    wmma: true,
                },
                [d, a, b, c],
            )?;
            if (m * n) % 32 != 0 || mma.a_type.bits() < 8 {
                return Err("a matrix of this shape".into());
            }
            return Ok(MatrixOp::Mma(Box::new(mma)));
        }
        let (rows, cols) = match words.next() {
            Some("a") => (m, k),
            Some("b") => (k, n),
            Some("c" | "d") => (m, n),
            _ => return Err("a matrix of this name".into()),
        };
        let row_major = match words.next() {
            Some("row") => true,
            Some("col") => false,
            _ => return Err("a matrix without a layout".into()),
        };
        let space = words.find(|w| match w {
            "shared" | "shared::cta" => Some(AccessSpace::Shared),
            "global" => Some(AccessSpace::Global),
            _ => None,
        });
        let space = space.unwrap_or(AccessSpace::Generic);
        let tile = Tile {
            rows,
            cols,
            element: element(words.ty()?)?,
            row_major,
        };
        if tile.element.bits() < 8 {
            return Err("elements of less than a byte".into());
        }
        let (registers, address, stride) = match (what, operands) {
            ("load", [d, address, stride]) => (d, address, Some(stride)),
            ("load", [d, address]) => (d, address, None),
            ("store", [address, value, stride]) => (value, address, Some(stride)),
            ("store", [address, value]) => (value, address, None),
            _ => return Err("these operands".into()),
        };
        let access = self.access(address, space, (tile.element.bits() / 8) as u32, 1)?;
        let stride = match stride {
            Some(stride) => self.src(stride, Type::U32)?,
            None => self.constant(if row_major { cols } else { rows } as u64),
        };
        let registers = self.elements(registers);
        if what == "load" {
            let dsts = registers
                .iter()
                .map(|r| self.dst(r))
                .collect::<Result<_, _>>()?;
            return Ok(MatrixOp::WmmaLoad {
                access,
                stride,
                tile,
                dsts,
            });
        }
        let srcs = self.srcs(&registers, Type::B32)?.to_vec();
        Ok(MatrixOp::WmmaStore {
            access,
            stride,
            tile,
            srcs,
        })
    }
}

/// `m16n8k8` and its like.
fn shape(word: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let extent = |text: &str| text.parse().ok().filter(|n| (1..=256).contains(n));
    Some((extent(m)?, extent(n)?, extent(k)?))
}
