//! Textures and surfaces that are named by objects: those of a device that outlives launches alone has some.

use smallvec::SmallVec;
use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::program::{Access, AccessSpace, Beyond, Op, Src, SurfaceOp, TextureOp};
use crate::texture::Geometry;

impl Decoder<'_> {
    pub(super) fn texture(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        if !self.has_textures {
            return Err("the emulator does not know this instruction".into());
        }
        let geometry = geometry(words)?;
        self.textures = true;
        match words.name {
            "tex" => self.sample(words, operands, geometry),
            _ => self.surface(words, operands, geometry),
        }
    }

    /// `tex`: what filters and rounds as the hardware does not say is approximate.
    fn sample(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
        geometry: Geometry,
    ) -> Result<(), Reason> {
        // The only level of what is no mipmap.
        let has_level = words.take("level");
        words.take("base");
        if words.vector() != 4 {
            return Err("texels of two halves".into());
        }
        let (ty, coordinate) = (words.ty()?, words.ty()?);
        if ty.bits() != 32 {
            return Err(format!("texels of type {ty}"));
        }
        let [d, place, more @ ..] = operands else {
            return Err("too few operands".into());
        };
        if more.len() != usize::from(has_level) {
            return Err("offsets and comparisons of texels".into());
        }
        let by_element = coordinate == Type::S32;
        if by_element && (geometry.dimensions, geometry.is_layered) != (1, false) {
            return Err("integer coordinates in several dimensions".into());
        }
        let (object, coordinates) = self.place(place, geometry, coordinate)?;
        let mut dsts = SmallVec::new();
        for element in self.elements(d) {
            dsts.push(self.optional_dst(&element)?);
        }
        self.approximate = !by_element;
        self.emit(Op::Texture(TextureOp {
            object,
            geometry,
            by_element,
            coordinates,
            floats: ty.is_float(),
            dsts,
        }));
        Ok(())
    }

    /// `suld.b` and `sust.b`.
    fn surface(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
        geometry: Geometry,
    ) -> Result<(), Reason> {
        if !words.take("b") {
            return Err("formatted surfaces".into());
        }
        words.hints();
        let beyond = words.find(|word| match word {
            "trap" => Some(Beyond::Trap),
            "clamp" => Some(Beyond::Clamp),
            "zero" => Some(Beyond::Zero),
            _ => None,
        });
        let (vector, ty) = (words.vector(), words.ty()?);
        let (value, place) = match (words.name, operands) {
            ("suld", [value, place]) => (value, place),
            ("sust", [place, value]) => (value, place),
            _ => return Err("an unknown number of operands".into()),
        };
        let (object, coordinates) = self.place(place, geometry, Type::S32)?;
        let elements = self.elements(value);
        if elements.len() != vector as usize || vector > 4 {
            return Err("a vector register".into());
        }
        let (mut dsts, mut srcs) = (SmallVec::new(), SmallVec::new());
        for element in &elements {
            match words.name {
                "suld" => dsts.push(self.optional_dst(element)?),
                _ => srcs.push(self.src(element, ty)?),
            }
        }
        self.emit(Op::Surface(SurfaceOp {
            object,
            geometry,
            coordinates,
            elem: ty.bytes(),
            beyond: beyond.unwrap_or(Beyond::Trap),
            dsts,
            srcs,
        }));
        Ok(())
    }

    /// The object and the coordinates of `[object, {x, y}]`, as many as count.
    fn place(
        &mut self,
        operand: &Operand,
        geometry: Geometry,
        ty: Type,
    ) -> Result<(Src, SmallVec<[Src; 4]>), Reason> {
        let Operand::MemTuple(list) = operand else {
            return Err("a texture without coordinates".into());
        };
        let [object, coordinates] = self.list(*list) else {
            return Err("a texture with a sampler of its own".into());
        };
        let Access {
            base,
            offset: 0,
            narrow: false,
            ..
        } = self.access(object, AccessSpace::Generic, 8, 1)?
        else {
            return Err("a texture that no register names".into());
        };
        let wanted = geometry.dimensions + usize::from(geometry.is_layered);
        let all = self.elements(coordinates);
        if all.len() < wanted {
            return Err("too few coordinates".into());
        }
        let mut found = SmallVec::new();
        for (at, element) in all.iter().take(wanted).enumerate() {
            let ty = match geometry.is_layered && at == 0 {
                true => Type::U32,
                false => ty,
            };
            found.push(self.src(element, ty)?);
        }
        Ok((base, found))
    }
}

fn geometry(words: &mut Words<'_>) -> Result<Geometry, Reason> {
    let found = words.find(|word| {
        let (dimensions, is_layered) = match word {
            "1d" => (1, false),
            "2d" => (2, false),
            "3d" => (3, false),
            "a1d" => (1, true),
            "a2d" => (2, true),
            _ => return None,
        };
        Some(Geometry {
            dimensions,
            is_layered,
        })
    });
    found.ok_or_else(|| "the emulator does not know this kind of texture".into())
}
