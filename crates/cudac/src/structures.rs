//! Structures: which members they have.

use tree_sitter::Node;

use crate::File;
use crate::ast::Type;
use crate::definitions::template_parameters;
use crate::diag::Source;
use crate::lower::Lower;
use crate::macros::substitute;
use crate::types::TypeNames;

/// A structure of the file or of its headers.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Its name.
    pub name: String,
    /// Its members in order; none if something in it is not understood, such as a base or a bit field.
    pub members: Option<Vec<Member>>,
    /// What an object consists of, also where it has functions and first values, which say what it means and not how it
    /// lies.
    laid_out: Option<Vec<Part>>,
    /// Of a template: its parameters, and the braces as they are written.
    pub(crate) template: Option<(Vec<String>, String)>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A member of an object, or an array of such.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    member: Member,
    length: Option<Length>,
}

/// The length of an array as it is written.
#[derive(Clone, Debug)]
struct Length {
    text: String,
    /// Which of the file's texts it stands in, and the byte.
    place: (usize, usize),
}

impl PartialEq for Length {
    fn eq(&self, other: &Length) -> bool {
        self.text == other.text
    }
}

/// The number that an expression is at a byte of a text, if it is one above zero: what macros and constants make it.
pub type Numbers<'a> = dyn Fn(&str, &str, usize) -> Option<u32> + 'a;

/// `struct Name { int a, b; }` or `typedef struct { … } Name;`
/// in one of the file's texts.
pub(crate) fn structure(lower: &mut Lower<'_>, node: Node<'_>, part: usize) -> Option<Structure> {
    let (definition, name) = match node.kind() {
        "type_definition" => {
            let definition = node.child_by_field_name("type")?;
            (definition, node.child_by_field_name("declarator")?)
        }
        _ => (node, node.child_by_field_name("name")?),
    };
    if definition.kind() != "struct_specifier" {
        return None;
    }
    let body = definition.child_by_field_name("body")?;
    let name = lower.ident(name).text;
    let mut cursor = definition.walk();
    let mut children = definition.named_children(&mut cursor);
    let is_plain = children.all(|child| {
        matches!(
            child.kind(),
            "type_identifier" | "field_declaration_list" | "comment"
        )
    });
    let (mut own, mut laid_out) = (None, None);
    let template = node
        .parent()
        .filter(|parent| parent.kind() == "template_declaration")
        .map(|parent| {
            let parameters = template_parameters(lower, parent).filter(|_| is_plain);
            let names = parameters.into_iter().flatten().map(|p| p.name);
            (names.collect(), lower.text(body).to_owned())
        });
    // What a template's members are its arguments say.
    if is_plain && template.is_none() {
        let all = parts(lower, body, part, true);
        let plain = |all: &Vec<Part>| all.iter().map(|part| part.member.clone()).collect();
        own = all.as_ref().map(plain);
        laid_out = all.or_else(|| parts(lower, body, part, false));
    }
    Some(Structure {
        name,
        members: own,
        laid_out,
        template,
    })
}

/// Elements of an array that are members.
const MOST_ELEMENTS: usize = 64;

/// What a structure may have besides members: its objects are laid out the same.
const BESIDE: [&str; 8] = [
    "function_definition",
    "declaration",
    "template_declaration",
    "using_declaration",
    "alias_declaration",
    "type_definition",
    "friend_declaration",
    "static_assert_declaration",
];

fn parts(lower: &mut Lower<'_>, body: Node<'_>, text: usize, is_strict: bool) -> Option<Vec<Part>> {
    let mut all = Vec::new();
    let mut cursor = body.walk();
    for child in body.named_children(&mut cursor) {
        match child.kind() {
            "comment" | "access_specifier" => continue,
            "field_declaration" => {}
            kind if !is_strict && BESIDE.contains(&kind) => {
                // Those make objects larger.
                let is_virtual = lower.text(child).split_whitespace().next() == Some("virtual");
                match is_virtual {
                    true => return None,
                    false => continue,
                }
            }
            _ => return None,
        }
        let mut inner = child.walk();
        let mut parts: Vec<Node<'_>> = child.named_children(&mut inner).collect();
        if !is_strict {
            let has = |kind: &str| parts.iter().any(|part| part.kind() == kind);
            if has("virtual") || lower.text(child).contains("virtual ") {
                return None;
            }
            let is_static = |part: &Node<'_>| {
                part.kind() == "storage_class_specifier" && lower.text(*part) == "static"
            };
            if has("function_declarator") || parts.iter().any(is_static) {
                continue;
            }
            let first = child.child_by_field_name("default_value");
            parts.retain(|part| Some(*part) != first);
        }
        let ty = lower.base_type(child).ok()?;
        for part in parts {
            let mut length = None;
            let (name, ty) = match part.kind() {
                "field_identifier" => (lower.ident(part), ty.clone()),
                "pointer_declarator" => {
                    let name = part.child_by_field_name("declarator")?;
                    if name.kind() != "field_identifier" {
                        return None;
                    }
                    (
                        lower.ident(name),
                        Type::Pointer(Box::new(ty.clone()), false),
                    )
                }
                "array_declarator" if !is_strict => {
                    let name = part.child_by_field_name("declarator")?;
                    let size = part.child_by_field_name("size")?;
                    if name.kind() != "field_identifier" {
                        return None;
                    }
                    length = Some(Length {
                        text: lower.text(size).to_owned(),
                        place: (text, size.start_byte()),
                    });
                    (lower.ident(name), ty.clone())
                }
                "comment"
                | "type_qualifier"
                | "primitive_type"
                | "type_identifier"
                | "sized_type_specifier" => continue,
                // A bit field, an array, a first value.
                _ => return None,
            };
            let name = name.text;
            let member = Member { name, ty };
            all.push(Part { member, length });
        }
    }
    Some(all)
}

impl File {
    /// The members of a structure, if a type is one that is understood: the file's own, or one of CUDA's vectors.
    pub fn members(&self, ty: &Type, names: &TypeNames) -> Option<Vec<Member>> {
        let Type::Named(name) = ty.bare() else {
            return None;
        };
        if let Some(own) = self.only_structure(name) {
            return own.members.clone();
        }
        match self.resolved(ty, names) {
            Type::Named(name) => vector(&name),
            _ => None,
        }
    }

    /// What an object of a structure of the file, or of an instance of a template (`View<float>`), consists of
    /// (also where it has functions and first values); an array is its elements.
    pub fn laid_out(&self, name: &str, number: &Numbers<'_>) -> Option<Vec<Member>> {
        if let Some((template, arguments)) = name.split_once('<') {
            return self.instantiated(template, arguments, number);
        }
        let mut all = Vec::new();
        for Part { member, length } in self.only_structure(name)?.laid_out? {
            let Some(length) = length else {
                all.push(member);
                continue;
            };
            let count = self.length(&length, number)?;
            all.extend((0..count).map(|at| Member {
                name: format!("{}[{at}]", member.name),
                ty: member.ty.clone(),
            }));
        }
        Some(all)
    }

    /// Elements of an array: a number, or what macros and constants make one.
    fn length(&self, length: &Length, number: &Numbers<'_>) -> Option<usize> {
        let Length { text, place } = length;
        let made = || Some(number(&self.parts[place.0].text, text, place.1)? as usize);
        let count = text.parse().ok().or_else(made)?;
        (1..=MOST_ELEMENTS).contains(&count).then_some(count)
    }

    /// The members of a template's instance: those of the structure that its text becomes with these arguments.
    fn instantiated(
        &self,
        template: &str,
        arguments: &str,
        number: &Numbers<'_>,
    ) -> Option<Vec<Member>> {
        let base = template.rsplit("::").next().unwrap_or(template).trim();
        let (names, body) = self.only_structure(base)?.template?;
        let arguments = split(arguments.trim().strip_suffix('>')?);
        if names.is_empty() || names.len() != arguments.len() {
            return None;
        }
        let body = substitute(&body, &names, &arguments);
        // A name of its own, behind the constants and types of the file.
        let own = format!("{base}_of_these_arguments");
        let text = format!("{}\nstruct {own} {body};\n", self.source.text);
        let file = File::parse(Source::new(&*self.source.name, text)).ok()?;
        file.laid_out(&own, number)
    }

    /// The structure of that name; one without members where several differ.
    fn only_structure(&self, name: &str) -> Option<Structure> {
        let name = name.strip_prefix("struct ").unwrap_or(name);
        let mut own = self.structures.iter().filter(|s| s.name == name);
        let first = own.next()?;
        Some(match own.all(|s| s == first) {
            true => first.clone(),
            false => Structure {
                name: first.name.clone(),
                members: None,
                laid_out: None,
                template: None,
            },
        })
    }
}

/// A template's arguments as a symbol has them: `float, (int)4`.
fn split(arguments: &str) -> Vec<String> {
    let (mut depth, mut all) = (0_i32, vec![String::new()]);
    for c in arguments.chars() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    let plain = |argument: String| {
        let argument = argument.trim();
        // A number without its type.
        match argument.rsplit_once(')') {
            Some((_, number)) if !number.is_empty() => number.to_owned(),
            _ => argument.to_owned(),
        }
    };
    all.into_iter().map(plain).collect()
}

/// `int3`, `dim3`, …
fn vector(name: &str) -> Option<Vec<Member>> {
    let (element, count) = match name {
        "dim3" => ("unsigned int", 3),
        _ => {
            let count = name.chars().last()?.to_digit(10)? as usize;
            let element = match &name[..name.len() - 1] {
                "int" => "int",
                "uint" => "unsigned int",
                "float" => "float",
                "double" => "double",
                "longlong" => "long long",
                _ => return None,
            };
            (element, count)
        }
    };
    let letters = ["x", "y", "z", "w"].get(..count)?.iter();
    Some(
        letters
            .map(|letter| Member {
                name: (*letter).to_owned(),
                ty: Type::Named(element.to_owned()),
            })
            .collect(),
    )
}

/// The alignment of one of CUDA's vectors, where it is more than that of its members: bytes.
pub fn vector_alignment(name: &str) -> Option<usize> {
    Some(match name {
        "int2" | "uint2" | "float2" => 8,
        "int4" | "uint4" | "float4" | "double2" | "longlong2" | "double4" | "longlong4" => 16,
        _ => return None,
    })
}
