//! Loads, stores and atomic operations.

use smallvec::SmallVec;
use warpwright_ptx::ir::Operand;
use warpwright_ptx::{Type, TypeKind};

use super::arithmetic::for_int;
use super::floating;
use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::Lane;
use crate::arith::int::{self, Int};
use crate::program::{AccessSpace, Atomic, AtomicFn, Load, Op};

impl Decoder<'_> {
    pub(super) fn memory(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "ld" | "ldu" => self.load(words, operands),
            "st" => self.store(words, operands),
            "atom" | "red" => self.atomic(words, operands),
            // Hints about caches have no meaning here. Their addresses are not checked: prefetching
            // past the end of an array is common and harmless.
            "prefetch" | "prefetchu" | "applypriority" => {
                while words.next().is_some() {}
                self.emit(Op::Nop);
                Ok(())
            }
            "createpolicy" => {
                while words.next().is_some() {}
                let zero = self.constant(0);
                let d = operands.first().ok_or("too few operands")?;
                self.alu(
                    d,
                    smallvec::smallvec![zero],
                    crate::lanes::unary(|x: u64| x),
                )
            }
            _ => Err("the emulator does not know this instruction".into()),
        }
    }

    /// Takes the state space of an access.
    fn space(&mut self, words: &mut Words<'_>) -> AccessSpace {
        let space = words.find(|w| {
            Some(match w {
                "global" | "const" => AccessSpace::Global,
                "shared" | "shared::cta" | "shared::cluster" => AccessSpace::Shared,
                "local" => AccessSpace::Local,
                "param" | "param::entry" | "param::func" => AccessSpace::Param,
                _ => return None,
            })
        });
        space.unwrap_or(AccessSpace::Generic)
    }

    /// Takes the ordering of an access; one that reaches other blocks makes their order matter.
    fn ordering(&mut self, words: &mut Words<'_>, space: AccessSpace) {
        let strong = ["volatile", "acquire", "release", "acq_rel", "mmio"];
        let ordered = strong.iter().any(|w| words.has(w))
            || words.has("relaxed") && (words.has("gpu") || words.has("sys"));
        let reaches = matches!(space, AccessSpace::Generic | AccessSpace::Global);
        self.ordered |= ordered && reaches && !words.has("cta");
        self.is_fence(words);
        words.skip(&strong);
        words.skip(&["relaxed"]);
        words.hints();
    }

    /// Takes it down if an access orders others, beyond its own block.
    fn is_fence(&mut self, words: &Words<'_>) {
        let orders = ["acquire", "release", "acq_rel"];
        self.fenced |= orders.iter().any(|word| words.has(word)) && !words.has("cta");
    }

    fn load(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let space = self.space(words);
        self.ordering(words, space);
        let (vector, ty) = (words.vector(), words.ty()?);
        let [d, address, ..] = operands else {
            return Err("too few operands".into());
        };
        let wide = ty.bits() == 128;
        let (elem, count) = if wide {
            (8, 2 * vector)
        } else {
            (ty.bytes(), vector)
        };
        is_vector(ty, vector, count)?;
        let access = self.access(address, space, elem, count)?;
        let elements = self.elements(d);
        if elements.len() != vector as usize {
            return Err("a vector register".into());
        }
        let mut dsts = SmallVec::new();
        for element in &elements {
            let dst = self.optional_dst(element)?;
            dsts.push(dst);
            if wide {
                dsts.push(dst.map(|d| d + 1));
            }
        }
        let mask = elements.first().map_or(u64::MAX, |e| self.register_mask(e));
        let signed = ty.kind() == TypeKind::Signed;
        self.emit(Op::Load(Load {
            access,
            dsts,
            signed,
            mask,
        }));
        Ok(())
    }

    fn store(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if words.has("async") || words.has("bulk") {
            return Err("asynchronous stores".into());
        }
        let space = self.space(words);
        self.ordering(words, space);
        let (vector, ty) = (words.vector(), words.ty()?);
        let [address, value, ..] = operands else {
            return Err("too few operands".into());
        };
        let wide = ty.bits() == 128;
        let (elem, count) = if wide {
            (8, 2 * vector)
        } else {
            (ty.bytes(), vector)
        };
        is_vector(ty, vector, count)?;
        let access = self.access(address, space, elem, count)?;
        let elements = self.elements(value);
        if elements.len() != vector as usize {
            return Err("a vector register".into());
        }
        if elements.contains(&Operand::Sink) {
            return Err("a store that leaves elements out".into());
        }
        let mut srcs = SmallVec::new();
        for element in &elements {
            match wide {
                true => srcs.extend(self.src128(element)?),
                false => srcs.push(self.src(element, ty)?),
            }
        }
        self.emit(Op::Store { access, srcs });
        Ok(())
    }

    fn atomic(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if words.has("async") {
            return Err("asynchronous reductions".into());
        }
        let returns = words.name == "atom";
        let space = self.space(words);
        self.is_fence(words);
        words.skip(&["relaxed", "acquire", "release", "acq_rel", "noftz"]);
        words.hints();
        let (vector, ty) = (words.vector(), words.ty()?);
        let name = words.next().ok_or("an atomic operation without a name")?;
        let (d, rest) = match (returns, operands) {
            (true, [d, rest @ ..]) => (Some(d), rest),
            (false, rest) => (None, rest),
            _ => return Err("too few operands".into()),
        };
        let [address, value, more @ ..] = rest else {
            return Err("too few operands".into());
        };
        // Integer reductions commute: their order between blocks does not matter, unless someone
        // looks at the old value.
        let commutes = !ty.is_float() && !matches!(name, "exch" | "cas" | "inc" | "dec");
        let observed = d.is_some_and(|d| *d != Operand::Sink);
        self.ordered |= space != AccessSpace::Shared && (observed || !commutes);
        if ty.bits() == 128 {
            return self.atomic128(d, address, value, more, space, name);
        }
        let access = self.access(address, space, ty.bytes(), vector)?;
        let value = self.elements(value);
        let value = self.srcs(&value, ty)?;
        let second = match (name, more) {
            ("cas", [c, ..]) => Some(self.src(c, ty)?),
            ("cas", []) => return Err("too few operands".into()),
            _ => None,
        };
        let mut dsts = SmallVec::new();
        if let Some(d) = d {
            for element in self.elements(d) {
                dsts.push(self.optional_dst(&element)?);
            }
        }
        let f = operation(name, ty, false)?;
        let f_global = match (name, ty) {
            ("add", Type::F32 | Type::F64) => Some(operation(name, ty, true)?),
            _ => None,
        };
        self.emit(Op::Atomic(Atomic {
            access,
            f,
            f_global,
            dsts,
            value,
            second,
            combines: commutes,
        }));
        Ok(())
    }

    fn atomic128(
        &mut self,
        d: Option<&Operand>,
        address: &Operand,
        value: &Operand,
        more: &[Operand],
        space: AccessSpace,
        name: &str,
    ) -> Result<(), Reason> {
        let access = self.access(address, space, 8, 2)?;
        let first = self.src128(value)?;
        let (compare, value) = match (name, more) {
            ("exch", _) => (None, first),
            ("cas", [new, ..]) => (Some(first), self.src128(new)?),
            _ => return Err(format!("128-bit .{name}")),
        };
        let dst = match d {
            Some(Operand::Sink) | None => [self.temporary(), self.temporary()],
            Some(d) => {
                let low = self.dst(d)?;
                [low, low + 1]
            }
        };
        self.emit(Op::Atomic128 {
            access,
            dst,
            compare,
            value,
        });
        Ok(())
    }
}

/// May so many elements be loaded or stored at once? ptxas 13.5 crashes on eight narrow ones, or stores words in their
/// place.
fn is_vector(ty: Type, vector: u32, count: u32) -> Result<(), Reason> {
    match ty == Type::Pred || count > 8 || (count == 8 && ty.bits() < 32) {
        true => Err(format!("a vector of {vector} elements of type {ty}")),
        false => Ok(()),
    }
}

/// The function of an atomic operation: old value, operand, second operand.
fn operation(name: &str, ty: Type, global: bool) -> Result<AtomicFn, Reason> {
    let unknown = || format!("atomic .{name} of type {ty}");
    if ty.is_float() && matches!(name, "add" | "min" | "max") {
        return match name {
            "add" => {
                let add = floating::atomic_add(ty, global).ok_or_else(unknown)?;
                Ok(Box::new(move |old, b, _| add(old, b)))
            }
            _ => {
                let f = floating::atomic_extreme(ty, name == "max").ok_or_else(unknown)?;
                Ok(Box::new(move |old, b, _| f(old, b)))
            }
        };
    }
    let mask = u64::MAX >> (64 - ty.bits().clamp(1, 64));
    match name {
        "exch" => return Ok(Box::new(|_, b, _| b)),
        "cas" => {
            return Ok(Box::new(
                move |old, b, c| if old == b & mask { c } else { old },
            ));
        }
        _ => {}
    }
    macro_rules! op {
        ($f:expr) => {
            for_int!(ty, T => {
                let f: fn(T, T) -> T = $f;
                let lifted: AtomicFn = Box::new(move |old, b, _| {
                    f(T::from_lane(old), T::from_lane(b)).to_lane()
                });
                lifted
            })
        };
    }
    match name {
        "add" => op!(Int::add),
        "and" => op!(|a, b| a & b),
        "or" => op!(|a, b| a | b),
        "xor" => op!(|a, b| a ^ b),
        "min" => op!(int::min),
        "max" => op!(int::max),
        "inc" if ty == Type::U32 => Ok(Box::new(
            |old, b, _| {
                if old as u32 >= b as u32 { 0 } else { old + 1 }
            },
        )),
        "dec" if ty == Type::U32 => Ok(Box::new(|old, b, _| {
            let (old, b) = (old as u32, b as u32);
            (if old == 0 || old > b { b } else { old - 1 }) as u64
        })),
        _ => Err(unknown()),
    }
}
