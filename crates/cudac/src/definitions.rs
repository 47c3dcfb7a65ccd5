//! What a file defines outside its functions: constants, variables, names for types, templates.
//!
//! A definition holds from where it stands, and is found by name and place of use, so that a name
//! that is defined twice means what it means to the compiler, or nothing.

use tree_sitter::Node;

use crate::ast::{Expr, ExprKind, Ident, Init, Type};
use crate::lower::Lower;

/// A variable or constant outside all functions; an enumerator is one, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// `static`, `__constant__`, `constexpr`, …
    pub storage: Vec<String>,
    /// Its value, if it has one here.
    pub init: Option<Init>,
    /// It stands inside an `#if` that nobody decided.
    pub conditional: bool,
}

impl Global {
    /// Is one of the words of its declaration `word`?
    pub fn is(&self, word: &str) -> bool {
        self.storage.iter().any(|w| w == word)
    }

    /// Can nothing change it: `const`, `constexpr`, an enumerator?
    pub fn is_fixed(&self) -> bool {
        fn fixed(ty: &Type) -> bool {
            match ty {
                Type::Const(_) => true,
                Type::Array(of, _) => fixed(of),
                Type::Named(_) | Type::Pointer(..) => false,
            }
        }
        !self.is("volatile") && (self.is("constexpr") || fixed(&self.ty))
    }
}

/// A name for a type: `typedef double real;`, `using real = double;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// The type, as written.
    pub ty: String,
    /// It stands inside an `#if` that nobody decided.
    pub conditional: bool,
}

/// A parameter of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateParameter {
    /// Its name.
    pub name: String,
    /// The type of a value; none for `typename T`.
    pub ty: Option<Type>,
    /// What it is if nothing is given: as an argument.
    pub default: Option<TemplateArgument>,
}

/// What a template is instantiated with.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateArgument {
    /// A type; also a single name, which may be that of a value.
    Type(Type),
    /// A value.
    Value(Expr),
}

/// A use of a template by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The template's name.
    pub name: Ident,
    /// What is given; none where the compiler finds out from the arguments of the call.
    pub arguments: Option<Vec<TemplateArgument>>,
}

/// The variables of a declaration outside functions. What is outside the subset is not known.
pub(crate) fn globals(lower: &mut Lower<'_>, node: Node<'_>) -> Vec<Global> {
    let conditional = is_conditional(node);
    if node.kind() == "enum_specifier" {
        return enumerators(lower, node, conditional).unwrap_or_default();
    }
    let Ok(declaration) = lower.declaration(node) else {
        return Vec::new();
    };
    let variables = declaration.variables.into_iter();
    let variables = variables.map(|variable| Global {
        name: variable.name,
        ty: variable.ty,
        storage: declaration.storage.clone(),
        init: variable.init,
        conditional,
    });
    variables.collect()
}

/// Each is the one before it plus one, if nothing else is said.
fn enumerators(lower: &mut Lower<'_>, node: Node<'_>, conditional: bool) -> Option<Vec<Global>> {
    // The names of `enum class` are not known outside it.
    let mut cursor = node.walk();
    let scoped = |n: Node<'_>| matches!(n.kind(), "class" | "struct");
    if node.children(&mut cursor).any(scoped) {
        return None;
    }
    let mut found: Vec<Global> = Vec::new();
    let body = node.child_by_field_name("body")?;
    for entry in lower.children(body) {
        if entry.kind() != "enumerator" {
            return None;
        }
        let name = lower.ident(entry.child_by_field_name("name")?);
        let at = |kind| Expr {
            kind,
            span: name.span.clone(),
        };
        let value = match (entry.child_by_field_name("value"), found.last()) {
            (Some(value), _) => lower.expr(value).ok()?,
            (None, None) => at(ExprKind::Number("0".to_owned())),
            (None, Some(before)) => {
                let before = at(ExprKind::Name(before.name.text.clone()));
                let one = at(ExprKind::Number("1".to_owned()));
                at(ExprKind::Binary(
                    "+".to_owned(),
                    Box::new(before),
                    Box::new(one),
                ))
            }
        };
        let int = Type::Named("int".to_owned());
        found.push(Global {
            name,
            ty: Type::Const(Box::new(int)),
            storage: Vec::new(),
            init: Some(Init::Value(value)),
            conditional,
        });
    }
    Some(found)
}

/// The parameters of a template; none if one of them is outside the subset.
pub(crate) fn template_parameters(
    lower: &mut Lower<'_>,
    template: Node<'_>,
) -> Option<Vec<TemplateParameter>> {
    let list = template.child_by_field_name("parameters")?;
    let mut parameters = Vec::new();
    for node in lower.children(list) {
        parameters.push(match node.kind() {
            "type_parameter_declaration" => {
                let name = lower.children(node);
                let [name] = name.as_slice() else { return None };
                TemplateParameter {
                    name: lower.ident(*name).text,
                    ty: None,
                    default: None,
                }
            }
            "optional_type_parameter_declaration" => {
                let name = node.child_by_field_name("name")?;
                let ty = node.child_by_field_name("default_type")?;
                let ty = Type::Named(lower.ident(ty).text);
                TemplateParameter {
                    name: lower.ident(name).text,
                    ty: None,
                    default: Some(TemplateArgument::Type(ty)),
                }
            }
            "parameter_declaration" | "optional_parameter_declaration" => {
                let parameter = lower.parameter(node).ok()?;
                let default = node.child_by_field_name("default_value");
                let default = default.map(|value| lower.expr(value)).transpose();
                TemplateParameter {
                    name: parameter.name.text,
                    ty: Some(parameter.ty),
                    default: default.ok()?.map(TemplateArgument::Value),
                }
            }
            _ => return None,
        });
    }
    Some(parameters)
}

/// What a template is used with; none if that is outside the subset.
pub(crate) fn template_arguments(
    lower: &mut Lower<'_>,
    function: Node<'_>,
) -> Option<Vec<TemplateArgument>> {
    let list = function.child_by_field_name("arguments")?;
    let mut arguments = Vec::new();
    for node in lower.children(list) {
        arguments.push(match node.kind() {
            "type_descriptor" => TemplateArgument::Type(lower.type_descriptor(node).ok()?),
            _ => TemplateArgument::Value(lower.expr(node).ok()?),
        });
    }
    Some(arguments)
}

/// Does it depend on a choice of the preprocessor? `#ifndef N` around a definition of `N`, and a
/// header's guard, are no choices as far as one file tells.
pub(crate) fn is_conditional(node: Node<'_>) -> bool {
    let mut inner = node;
    while let Some(outer) = inner.parent() {
        match outer.kind() {
            "preproc_if" | "preproc_elif" | "preproc_else" | "preproc_elifdef" => return true,
            "preproc_ifdef" => {
                let negated = outer.child(0).is_some_and(|word| word.kind() == "#ifndef");
                if !negated || outer.child_by_field_name("alternative").is_some() {
                    return true;
                }
            }
            _ => {}
        }
        inner = outer;
    }
    false
}
