//! A kernel's parameters as tables of a launch description, as far as their types say. What is guessed says so.

use warpwright_cudac::ast::{Expr, ExprKind, Parameter, Type};
use warpwright_cudac::{File, TypeNames};
use warpwright_launch::ElemType;

use crate::error::{Error, Strange};
use crate::number;

/// What a parameter is laid out like.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// An element, or a vector of CUDA's: how many, and its alignment in bytes.
    Elements(ElemType, usize, usize),
    /// A structure: its members by name.
    Structure(Vec<(String, Layout)>),
    /// A pointer, as a member.
    Pointer(Box<Pointed>),
}

/// What a member that is a pointer points to.
#[derive(Clone, Debug, PartialEq)]
pub struct Pointed {
    pub layout: Layout,
    /// The type of its elements as it is written.
    pub written: String,
    /// Can the kernel write it?
    pub is_output: bool,
}

/// Bytes of a pointer.
const POINTER: usize = 8;

/// Why something has no layout here.
pub enum NoLayout {
    /// A structure with pointers to what no description has.
    Pointers,
    /// A type that is not understood.
    Unknown,
}

impl Layout {
    /// In bytes.
    pub fn align(&self) -> usize {
        match self {
            Layout::Elements(_, _, align) => *align,
            Layout::Pointer(_) => POINTER,
            Layout::Structure(all) => all.iter().map(|(_, m)| m.align()).max().unwrap_or(1),
        }
    }

    /// In bytes, as C lays it out.
    pub fn size(&self) -> usize {
        match self {
            Layout::Elements(element, count, align) => {
                (element.size() * count).next_multiple_of(*align)
            }
            Layout::Pointer(_) => POINTER,
            Layout::Structure(all) => {
                let end = all.iter().fold(0_usize, |end, (_, member)| {
                    end.next_multiple_of(member.align()) + member.size()
                });
                end.next_multiple_of(self.align())
            }
        }
    }

    /// The element and the number of them that it is made of, if it is of one kind and has no gaps.
    pub fn uniform(&self) -> Option<(ElemType, usize)> {
        let (element, count) = match self {
            Layout::Elements(element, count, _) => (*element, *count),
            Layout::Pointer(_) => return None,
            Layout::Structure(all) => {
                let mut all = all.iter().map(|(_, member)| member.uniform());
                let (first, mut count) = all.next()??;
                for member in all {
                    let (element, more) = member?;
                    if element != first {
                        return None;
                    }
                    count += more;
                }
                (first, count)
            }
        };
        (element.size() * count == self.size()).then_some((element, count))
    }

    /// The names of a structure's members that are numbers, vectors or pointers.
    pub fn members(&self) -> Vec<String> {
        match self {
            Layout::Elements(..) | Layout::Pointer(_) => Vec::new(),
            Layout::Structure(all) => {
                let is_one = |(_, member): &&(String, Layout)| {
                    matches!(member, Layout::Elements(..) | Layout::Pointer(_))
                };
                let all = all.iter().filter(is_one);
                all.map(|(name, _)| name.clone()).collect()
            }
        }
    }

    /// The pointers in it, by the way to each (`a.b`).
    pub fn pointers(&self) -> Vec<(String, &Pointed)> {
        let Layout::Structure(all) = self else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, member) in all {
            if let Layout::Pointer(to) = member {
                found.push((name.clone(), &**to));
            }
            let inner = member.pointers().into_iter();
            found.extend(inner.map(|(way, to)| (format!("{name}.{way}"), to)));
        }
        found
    }

    /// Is the member of a name, or the whole by no name, a floating-point number?
    pub fn is_float(&self, name: &str) -> bool {
        match self {
            Layout::Elements(element, ..) => name.is_empty() && element.is_float(),
            Layout::Pointer(_) => false,
            Layout::Structure(all) => {
                let found = all.iter().find(|(own, _)| own == name);
                found.is_some_and(|(_, member)| member.is_float(""))
            }
        }
    }
}

/// Structures may hold structures; that deep they do not.
pub const DEEPEST: u32 = 8;

/// A length as it is written.
fn literal(extent: &Expr) -> Option<usize> {
    match &extent.kind {
        ExprKind::Number(text) => text.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok(),
        _ => None,
    }
}

/// The layout of a type by one of its names, the nearest first.
pub fn layout(names: &[&str], file: &File, depth: u32) -> Result<Layout, NoLayout> {
    for name in names {
        if let Some(element) = ElemType::from_name(name) {
            return Ok(Layout::Elements(element, 1, element.size()));
        }
        if let Some((element, count, align)) = ElemType::vector_from_name(name) {
            return Ok(Layout::Elements(element, count, align));
        }
    }
    let known = |name: &&str| {
        let own = file.members(&Type::Named((*name).to_owned()), &TypeNames::new());
        own.or_else(|| file.laid_out(name, &number))
    };
    let members = names.iter().find_map(known).filter(|_| depth > 0);
    let members = members.ok_or(NoLayout::Unknown)?;
    let member = |member: &warpwright_cudac::structures::Member| match member.ty.bare() {
        Type::Named(name) => {
            let own = file.type_named(name);
            let inner = layout(&[name, &own], file, depth - 1)?;
            Ok((member.name.clone(), inner))
        }
        Type::Pointer(to, _) => {
            let is_output = !matches!(**to, Type::Const(_));
            let Type::Named(written) = to.bare() else {
                return Err(NoLayout::Pointers);
            };
            let own = file.type_named(written);
            let layout = layout(&[written, &own], file, depth - 1);
            let layout = layout.ok().filter(|of| of.pointers().is_empty());
            let to = Pointed {
                layout: layout.ok_or(NoLayout::Pointers)?,
                written: (**written).to_owned(),
                is_output,
            };
            Ok((member.name.clone(), Layout::Pointer(Box::new(to))))
        }
        Type::Array(inner, Some(extent)) => {
            let Type::Named(name) = inner.bare() else {
                return Err(NoLayout::Unknown);
            };
            let own = file.type_named(name);
            let of = layout(&[name, &own], file, depth - 1)?;
            let count = literal(extent).unwrap_or(0);
            match (of, count) {
                (_, 0) => Err(NoLayout::Unknown),
                (Layout::Elements(element, 1, align), count) => {
                    Ok((member.name.clone(), Layout::Elements(element, count, align)))
                }
                _ => Err(NoLayout::Unknown),
            }
        }
        _ => Err(NoLayout::Unknown),
    };
    let all: Result<Vec<_>, NoLayout> = members.iter().map(member).collect();
    match all? {
        all if all.is_empty() => Err(NoLayout::Unknown),
        all => Ok(Layout::Structure(all)),
    }
}

/// Words that change how a structure is laid out.
const LAID_OUT: [&str; 5] = [
    "alignas",
    "__align__",
    "__attribute__",
    "pragma pack",
    "__builtin_align__",
];

/// What else is known of a parameter.
pub struct Known<'a> {
    /// Its type in the instance of the kernel, without pointers and `const`.
    pub instance: Option<&'a str>,
    /// Its size and its alignment in bytes, as the compiler has them.
    pub bytes: Option<(usize, usize)>,
}

/// What a parameter is.
pub enum Sort {
    /// Memory of such elements.
    Memory(Pointed),
    /// A table of pointers to such memory.
    Table(Pointed),
    /// A value.
    Scalar(Layout),
    /// A value of which only the compiler knows the size.
    Bytes(Opaque),
}

/// A value of a type that is not understood.
#[derive(Clone, Debug)]
pub struct Opaque {
    pub name: String,
    /// Its type as it is written.
    pub written: String,
    /// In bytes.
    pub size: usize,
    pub align: usize,
}

/// The layout of elements that are not understood: their bytes.
const BYTES: Layout = Layout::Elements(ElemType::U8, 1, 1);

impl Pointed {
    /// Are its elements not understood, so that it counts bytes?
    pub fn is_opaque(&self) -> bool {
        is_opaque(&self.layout, &self.written)
    }
}

/// The same of a layout and the type that it stands for.
pub fn is_opaque(layout: &Layout, written: &str) -> bool {
    *layout == BYTES && ElemType::from_name(written).is_none()
}

/// What a parameter is, by its type.
///
/// # Errors
/// A launch description cannot say what it is, or nobody knows.
pub(crate) fn sort(parameter: &Parameter, file: &File, known: &Known<'_>) -> Result<Sort, Error> {
    let name = &parameter.name.text;
    let strange = |why: Strange| why.of(name);
    let (mut ty, mut pointers, mut is_const) = (&parameter.ty, 0, false);
    loop {
        match ty {
            Type::Const(inner) => {
                is_const = true;
                ty = inner;
            }
            Type::Pointer(inner, _) if pointers < 2 => {
                pointers += 1;
                // What is const is the pointer so far.
                is_const = false;
                ty = inner;
            }
            // Rows of an array lie one behind the other.
            Type::Array(inner, _) if pointers > 0 => ty = inner,
            Type::Named(_) => break,
            _ => return Err(strange(Strange::Type)),
        }
    }
    let Type::Named(written) = ty else {
        return Err(strange(Strange::Type));
    };
    if ["cudaTextureObject_t", "cudaSurfaceObject_t"].contains(&&**written) {
        return Err(strange(Strange::Texture(written.clone())));
    }
    let meaning = file.type_named(written);
    let own = [Some(&**written), Some(&*meaning)];
    // `View<T>` is what the instance makes of it.
    let names: Vec<&str> = match written.contains('<') {
        true => [&[known.instance][..], &own].concat(),
        false => [&own[..], &[known.instance]].concat(),
    }
    .into_iter()
    .flatten()
    .collect();
    let found = layout(&names, file, DEEPEST);
    match (pointers > 0, found) {
        (_, Err(NoLayout::Pointers)) => Err(strange(Strange::Pointers(written.clone()))),
        (true, Ok(found)) if !found.pointers().is_empty() => {
            Err(strange(Strange::Deep(written.clone())))
        }
        (false, Ok(found))
            if known
                .bytes
                .is_none_or(|b| b == (found.size(), found.align())) =>
        {
            Ok(Sort::Scalar(found))
        }
        (false, _) => {
            // The compiler knows its size all the same.
            let (size, align) = known.bytes.ok_or_else(|| strange(Strange::Type))?;
            Ok(Sort::Bytes(Opaque {
                name: name.clone(),
                written: written.clone(),
                size,
                align,
            }))
        }
        (true, found) => {
            let is_stated = LAID_OUT.iter().any(|word| file.source.text.contains(word));
            let layout = found.ok().filter(|found| {
                let is_own = matches!(found, Layout::Structure(_));
                !(is_own && is_stated)
            });
            let to = Pointed {
                layout: layout.unwrap_or(BYTES),
                written: (**written).to_owned(),
                is_output: !is_const,
            };
            Ok(match pointers {
                1 => Sort::Memory(to),
                _ => Sort::Table(to),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_c() {
        let element = |ty: ElemType| Layout::Elements(ty, 1, ty.size());
        let named = |all: Vec<Layout>| {
            Layout::Structure(all.into_iter().map(|m| ("m".to_owned(), m)).collect())
        };
        let vector = |name: &str| {
            let (ty, count, align) = ElemType::vector_from_name(name).expect("a vector");
            Layout::Elements(ty, count, align)
        };
        for (layout, size, align, uniform) in [
            (element(ElemType::F64), 8, 8, Some((ElemType::F64, 1))),
            (vector("float4"), 16, 16, Some((ElemType::F32, 4))),
            (vector("float3"), 12, 4, Some((ElemType::F32, 3))),
            (vector("uchar2"), 2, 2, Some((ElemType::U8, 2))),
            (
                named(vec![element(ElemType::U8), element(ElemType::F32)]),
                8,
                4,
                None,
            ),
            (
                named(vec![vector("int2"), element(ElemType::S32)]),
                16,
                8,
                None,
            ),
            (
                named(vec![vector("int2"), vector("int2")]),
                16,
                8,
                Some((ElemType::S32, 4)),
            ),
            (
                named(vec![element(ElemType::F64), element(ElemType::S16)]),
                16,
                8,
                None,
            ),
        ] {
            assert_eq!((layout.size(), layout.align()), (size, align), "{layout:?}");
            assert_eq!(layout.uniform(), uniform, "{layout:?}");
        }
    }
}
