//! The fundamental types and the state spaces of PTX (PTX ISA, 'State Spaces, Types, and
//! Variables').

use std::fmt;

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $bits:literal, $kind:ident;)*) => {
        /// A fundamental, packed or opaque type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Type {
            $(#[doc = concat!("`.", $text, "`")] $(#[$doc])* $name,)*
        }

        impl Type {
            /// All types, in the order of their definition.
            pub const ALL: &[Type] = &[$(Type::$name,)*];

            /// The type's name without its dot: `b32`.
            pub const fn text(self) -> &'static str {
                match self { $(Type::$name => $text,)* }
            }

            /// The type of this name (without a dot).
            pub fn parse(text: &str) -> Option<Type> {
                match text { $($text => Some(Type::$name),)* _ => None }
            }

            /// Size in bits; 1 for a predicate, 64 for an opaque reference. Sub-byte and narrow
            /// formats give the size of one packed element group (`e2m1x2` is 8 bits).
            pub const fn bits(self) -> u32 {
                match self { $(Type::$name => $bits,)* }
            }

            /// What the bits mean.
            pub const fn kind(self) -> TypeKind {
                match self { $(Type::$name => TypeKind::$kind,)* }
            }
        }
    };
}

/// What the bits of a [`Type`] mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeKind {
    /// Untyped bits.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Floating point, packed formats included.
    Float,
    /// Predicate.
    Predicate,
    /// Opaque reference to a texture, sampler or surface.
    Opaque,
}

types! {
    /// One bit; only as a matrix element type (`mma`).
    B1 = "b1", 1, Bits;
    /// Four bits; only as a memory format (`tcgen05.cp`).
    B4 = "b4", 4, Bits;
    /// Six bits, a memory format.
    B6 = "b6", 6, Bits;
    B8 = "b8", 8, Bits;
    B16 = "b16", 16, Bits;
    B32 = "b32", 32, Bits;
    B64 = "b64", 64, Bits;
    B128 = "b128", 128, Bits;
    U4 = "u4", 4, Unsigned;
    U8 = "u8", 8, Unsigned;
    U16 = "u16", 16, Unsigned;
    U32 = "u32", 32, Unsigned;
    U64 = "u64", 64, Unsigned;
    U8x4 = "u8x4", 32, Unsigned;
    U16x2 = "u16x2", 32, Unsigned;
    S4 = "s4", 4, Signed;
    S8 = "s8", 8, Signed;
    S16 = "s16", 16, Signed;
    S32 = "s32", 32, Signed;
    S64 = "s64", 64, Signed;
    S8x4 = "s8x4", 32, Signed;
    S16x2 = "s16x2", 32, Signed;
    F16 = "f16", 16, Float;
    F16x2 = "f16x2", 32, Float;
    Bf16 = "bf16", 16, Float;
    Bf16x2 = "bf16x2", 32, Float;
    Tf32 = "tf32", 32, Float;
    F32 = "f32", 32, Float;
    F32x2 = "f32x2", 64, Float;
    F64 = "f64", 64, Float;
    E4m3 = "e4m3", 8, Float;
    E5m2 = "e5m2", 8, Float;
    E4m3x2 = "e4m3x2", 16, Float;
    E5m2x2 = "e5m2x2", 16, Float;
    E4m3x4 = "e4m3x4", 32, Float;
    E5m2x4 = "e5m2x4", 32, Float;
    E2m3 = "e2m3", 6, Float;
    E3m2 = "e3m2", 6, Float;
    E2m3x2 = "e2m3x2", 16, Float;
    E3m2x2 = "e3m2x2", 16, Float;
    E2m3x4 = "e2m3x4", 32, Float;
    E3m2x4 = "e3m2x4", 32, Float;
    E2m1 = "e2m1", 4, Float;
    E2m1x2 = "e2m1x2", 8, Float;
    E2m1x4 = "e2m1x4", 16, Float;
    Ue8m0 = "ue8m0", 8, Float;
    Ue8m0x2 = "ue8m0x2", 16, Float;
    Ue4m3 = "ue4m3", 8, Float;
    Ue5m3x2 = "ue5m3x2", 16, Float;
    S2f6x2 = "s2f6x2", 16, Float;
    Pred = "pred", 1, Predicate;
    TexRef = "texref", 64, Opaque;
    SamplerRef = "samplerref", 64, Opaque;
    SurfRef = "surfref", 64, Opaque;
}

impl Type {
    /// Size of a variable element in bytes, rounded up (a predicate has none: 0).
    pub const fn bytes(self) -> u32 {
        match self {
            Type::Pred => 0,
            _ => self.bits().div_ceil(8),
        }
    }

    /// How many 32-bit registers a value takes; 0 for predicates, 1 for narrow types.
    pub const fn units(self) -> u32 {
        match self {
            Type::Pred => 0,
            _ => self.bits().div_ceil(32),
        }
    }

    /// Is it a signed or unsigned integer?
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), TypeKind::Signed | TypeKind::Unsigned)
    }

    /// Is it a floating-point type (packed ones included)?
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), TypeKind::Float)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.text())
    }
}

/// A state space that variables live in or memory instructions name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// `.reg`
    Reg,
    /// `.sreg`
    Sreg,
    /// `.const`
    Const,
    /// `.global`
    Global,
    /// `.local`
    Local,
    /// `.param`: kernel or function parameters, and locals of that space around a call.
    Param,
    /// `.shared`
    Shared,
    /// `.tex` (deprecated)
    Tex,
}

impl Space {
    /// All state spaces.
    pub const ALL: &[Space] = &[
        Space::Reg,
        Space::Sreg,
        Space::Const,
        Space::Global,
        Space::Local,
        Space::Param,
        Space::Shared,
        Space::Tex,
    ];

    /// The name without its dot.
    pub const fn text(self) -> &'static str {
        match self {
            Space::Reg => "reg",
            Space::Sreg => "sreg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
            Space::Tex => "tex",
        }
    }

    /// The space of this name (without a dot).
    pub fn parse(text: &str) -> Option<Space> {
        Space::ALL.iter().copied().find(|s| s.text() == text)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for &ty in Type::ALL {
            assert_eq!(Type::parse(ty.text()), Some(ty));
        }
        for &space in Space::ALL {
            assert_eq!(Space::parse(space.text()), Some(space));
        }
        assert_eq!(Type::parse("b33"), None);
    }
}
