//! What a file has, found in its tree: macros, pragmas, names for types, globals, functions.

use tree_sitter::Node;

use crate::ast::Ident;
use crate::definitions::{
    Alias, Instance, globals, is_conditional, template_arguments, template_parameters,
};
use crate::diag::Span;
use crate::macros::Macro;
use crate::structures::structure;
use crate::words::plain;
use crate::{File, Header, Part};

/// The text of a header as its author wrote it, where the preprocessor replaced qualifiers.
pub(crate) fn qualified(text: &str) -> String {
    let mut out = text.to_owned();
    for word in ["global", "device", "host", "constant", "shared", "managed"] {
        let attribute = format!("__attribute__(({word}))");
        out = out.replace(&attribute, &format!("__{word}__"));
    }
    out.replace("__attribute__((always_inline))", "")
        .replace("__inline__", "inline")
}

impl File {
    /// Finds everything in one of the texts, in order.
    pub(crate) fn collect(&mut self, part: usize) {
        let Part { text, tree, place } = self.parts[part].clone();
        let mut stack = vec![(tree.root_node(), false)];
        while let Some((node, inside)) = stack.pop() {
            match node.kind() {
                "preproc_def" | "preproc_function_def" => {
                    self.macros.extend(definition(&text, node));
                }
                "preproc_call" => self.directive(&text, node),
                "type_definition" => {
                    self.aliases.extend(alias(&text, node, "declarator"));
                    let found = structure(&mut self.parts[part].lower(), node, part);
                    self.structures.extend(found);
                }
                "struct_specifier" if !inside => {
                    let found = structure(&mut self.parts[part].lower(), node, part);
                    self.structures.extend(found);
                }
                "alias_declaration" => self.aliases.extend(alias(&text, node, "name")),
                "declaration" | "enum_specifier" if !inside => {
                    let lower = &mut self.parts[part].lower();
                    let found = globals(lower, node);
                    self.globals.extend(found);
                }
                "type_parameter_declaration" | "optional_type_parameter_declaration" => {
                    let mut cursor = node.walk();
                    let names = node.named_children(&mut cursor);
                    let names = names.filter(|n| n.kind() == "type_identifier");
                    let names = names.filter_map(|n| text.get(n.byte_range()));
                    self.type_parameters.extend(names.map(str::to_owned));
                }
                "template_function" | "call_expression" => self.instance(part, node),
                "function_definition" => self.function(part, node, place.as_ref()),
                _ => {}
            }
            let hides = matches!(
                node.kind(),
                "function_definition" | "class_specifier" | "struct_specifier" | "declaration"
            );
            let mut cursor = node.walk();
            let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            let children = children.into_iter().rev();
            stack.extend(children.map(|child| (child, inside || hides)));
        }
    }

    fn function(&mut self, part: usize, node: Node<'_>, place: Option<&Span>) {
        let mut cursor = node.walk();
        let kernel = node.children(&mut cursor).any(|c| c.kind() == "__global__");
        let found = self.header(part, node, place);
        match (kernel, place) {
            (true, None) => self.kernels.extend(found),
            // A kernel of a header belongs to another file.
            (true, Some(_)) => {}
            (false, _) => self.functions.extend(found),
        }
    }

    fn header(&self, part: usize, node: Node<'_>, place: Option<&Span>) -> Option<Header> {
        let text = &self.parts[part].text;
        let mut declarator = node.child_by_field_name("declarator")?;
        while matches!(
            declarator.kind(),
            "pointer_declarator" | "reference_declarator"
        ) {
            declarator =
                declarator.named_child(declarator.named_child_count().checked_sub(1)? as u32)?;
        }
        let name = declarator.child_by_field_name("declarator")?;
        let parent = node.parent();
        let template = parent
            .filter(|p| p.kind() == "template_declaration")
            .and_then(|p| template_parameters(&mut self.parts[part].lower(), p));
        let mut around = parent;
        if template.is_some() {
            around = around.and_then(|p| p.parent());
        }
        // A choice that the preprocessor has made leaves nothing around a function.
        let free = |n: Node<'_>| {
            matches!(
                n.kind(),
                "translation_unit"
                    | "linkage_specification"
                    | "declaration_list"
                    | "namespace_definition"
            )
        };
        let at = |range: Span| place.cloned().unwrap_or(range);
        let head = parent.filter(|_| template.is_some());
        Some(Header {
            head: head.map(|p| at(p.start_byte()..node.start_byte())),
            name: Ident {
                text: text.get(name.byte_range())?.to_owned(),
                span: at(name.byte_range()),
            },
            span: at(node.byte_range()),
            nested: parent.is_some_and(|n| !free(n)),
            is_member: around.is_some_and(|n| !free(n)),
            template,
            part: (part, node.byte_range()),
        })
    }

    /// `f<float, 4>`, or a launch of `f` alone.
    fn instance(&mut self, part: usize, node: Node<'_>) {
        let mut lower = self.parts[part].lower();
        if node.kind() == "template_function" {
            let Some(name) = node.child_by_field_name("name") else {
                return;
            };
            let name = lower.ident(name);
            // What is not understood is an instance of which nothing is known.
            let arguments = template_arguments(&mut lower, node);
            self.instances.push(Instance { name, arguments });
            return;
        }
        let mut cursor = node.walk();
        let launch = |n: Node<'_>| n.kind() == "kernel_call_syntax";
        if !node.children(&mut cursor).any(launch) {
            return;
        }
        if let Some(function) = node.child_by_field_name("function")
            && function.kind() == "identifier"
        {
            let name = lower.ident(function);
            self.instances.push(Instance {
                name,
                arguments: None,
            });
        }
    }

    fn directive(&mut self, text: &str, node: Node<'_>) {
        let word = |name: &str| {
            let node = node.child_by_field_name(name)?;
            text.get(node.byte_range())
        };
        let (Some(directive), Some(argument)) = (word("directive"), word("argument")) else {
            return;
        };
        let line = text.get(node.byte_range()).unwrap_or("").trim_end().len();
        let span = node.start_byte()..node.start_byte() + line;
        let argument = argument.trim();
        if directive.ends_with("undef") {
            self.macros.extend(Some(Macro {
                name: argument.to_owned(),
                parameters: None,
                body: None,
                span,
                conditional: is_conditional(node),
                foreign: false,
            }));
        } else if directive.ends_with("pragma")
            && let Some(rest) = argument.strip_prefix("warpwright")
        {
            self.pragmas.push((rest.trim().to_owned(), span));
        }
    }
}

/// A name for a type, and the type.
fn alias(text: &str, node: Node<'_>, name: &str) -> Option<Alias> {
    let name = text.get(node.child_by_field_name(name)?.byte_range())?;
    let ty = text.get(node.child_by_field_name("type")?.byte_range())?;
    Some(Alias {
        name: name.to_owned(),
        ty: ty.trim().to_owned(),
        conditional: is_conditional(node),
    })
}

fn definition(text: &str, node: Node<'_>) -> Option<Macro> {
    let name = text.get(node.child_by_field_name("name")?.byte_range())?;
    let value = node.child_by_field_name("value");
    let body = value.and_then(|v| text.get(v.byte_range())).unwrap_or("");
    let parameters = node.child_by_field_name("parameters").map(|list| {
        let mut cursor = list.walk();
        let names = list.named_children(&mut cursor);
        let names = names.filter_map(|n| text.get(n.byte_range()));
        names.map(str::to_owned).collect()
    });
    let line = text.get(node.byte_range())?.trim_end().len();
    Some(Macro {
        name: name.to_owned(),
        parameters,
        body: Some(plain(body)),
        span: node.start_byte()..node.start_byte() + line,
        conditional: is_conditional(node),
        foreign: false,
    })
}
