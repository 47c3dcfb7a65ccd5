//! Checks of the typed view against the source: that its statements cover every token, and that
//! two views say the same.

use std::fmt::Debug;

use thiserror::Error;

use crate::Span;
use crate::ir::{Body, Function, Init, Item, Module, TopItem};

/// What a check found.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckError {
    /// A token belongs to no statement, or to two.
    #[error("the token at bytes {token:?} belongs to {count} statements instead of one")]
    Coverage {
        /// The token.
        token: Span,
        /// Statements that hold it.
        count: usize,
    },
    /// Two modules differ.
    #[error("{what} differs: {left} against {right}")]
    Different {
        /// Which part.
        what: String,
        /// There.
        left: String,
        /// And here.
        right: String,
    },
}

/// Checks that every token belongs to exactly one statement of the view: at module scope, and
/// again within each body.
///
/// # Errors
/// [`CheckError::Coverage`], of the first such token.
pub fn coverage(module: &Module) -> Result<(), CheckError> {
    let tiles = module.syntax.tiles.iter();
    let tokens: Vec<Span> = tiles
        .filter(|t| !t.kind.is_trivia() && !t.span.is_empty())
        .map(|t| t.span)
        .collect();
    covered(
        &tokens,
        module
            .items
            .iter()
            .map(|item| top_span(module, item))
            .collect(),
    )?;
    for body in module.functions.values().filter_map(|f| f.body.as_ref()) {
        let last = body
            .scopes
            .values()
            .next()
            .map_or(body.span.end, |s| s.close.start);
        let inner = Span::new(body.span.start + 1, last);
        let from = tokens.partition_point(|t| t.start < inner.start);
        let to = tokens.partition_point(|t| t.end <= inner.end);
        let spans = body
            .items
            .iter()
            .map(|item| item_span(module, body, item))
            .collect();
        covered(tokens.get(from..to).unwrap_or(&[]), spans)?;
    }
    Ok(())
}

fn covered(tokens: &[Span], mut statements: Vec<Span>) -> Result<(), CheckError> {
    // Several names declared by one statement share its span.
    statements.retain(|span| !span.is_empty());
    statements.sort();
    statements.dedup();
    for (i, pair) in statements.windows(2).enumerate() {
        if pair[0].end > pair[1].start {
            return Err(CheckError::Coverage {
                token: statements[i + 1],
                count: 2,
            });
        }
    }
    let mut rest = statements.iter().peekable();
    for &token in tokens {
        while rest.next_if(|s| s.end <= token.start).is_some() {}
        if !rest.peek().is_some_and(|s| s.contains(token)) {
            return Err(CheckError::Coverage { token, count: 0 });
        }
    }
    Ok(())
}

fn top_span(module: &Module, item: &TopItem) -> Span {
    match item {
        TopItem::Version(span)
        | TopItem::Target(span)
        | TopItem::AddressSize(span)
        | TopItem::Section(span)
        | TopItem::Pragma(_, span)
        | TopItem::Unknown(span)
        | TopItem::Declare { span, .. }
        | TopItem::Alias { span, .. } => *span,
        TopItem::Variable(var) => module.variables[*var].span,
        TopItem::Define(func) => module.functions[*func].span,
        TopItem::File(index) => module.files.get(*index).map_or(Span::default(), |f| f.span),
    }
}

/// Where a statement of a body stands.
pub fn item_span(module: &Module, body: &Body, item: &Item) -> Span {
    match item {
        Item::Inst(inst) => body.insts[*inst].span,
        Item::Label(label) => body.labels[*label].span,
        Item::Regs(decl) => body.reg_decls[*decl].span,
        Item::Var(var) => module.variables[*var].span,
        Item::Open(scope) => {
            let start = body.scopes[*scope].span.start;
            Span::new(start, start + 1)
        }
        Item::Close(scope) => body.scopes[*scope].close,
        Item::Loc(loc) => body.locs[*loc].span,
        Item::Pragma(_, span) | Item::Unknown(span) => *span,
        Item::BranchTable(table) => body.branch_tables[*table].span,
        Item::CallTable(table) => body.call_tables[*table].span,
        Item::Prototype(prototype) => body.prototypes[*prototype].span,
    }
}

/// Checks that two modules say the same: equal views, spans left out. (What the view keeps as
/// text is compared as text, white space left out.)
///
/// # Errors
/// [`CheckError::Different`], of the first part that differs.
pub fn same(left: &Module, right: &Module) -> Result<(), CheckError> {
    let texts =
        |m: &Module| -> Vec<String> { m.opcodes.values().map(|o| o.text.to_string()).collect() };
    equal("opcodes", &texts(left), &texts(right))?;
    let (a, b) = (without_spans(left), without_spans(right));
    equal("header", &a.header, &b.header)?;
    equal("files", &a.files, &b.files)?;
    for (var, (x, y)) in a
        .variables
        .keys()
        .zip(a.variables.values().zip(b.variables.values()))
    {
        equal(&format!("variable {var:?}"), x, y)?;
    }
    equal(
        "number of variables",
        &a.variables.len(),
        &b.variables.len(),
    )?;
    equal("top-level statements", &a.items, &b.items)?;
    equal("kept text", &kept_text(left), &kept_text(right))?;
    equal(
        "number of functions",
        &a.functions.len(),
        &b.functions.len(),
    )?;
    for (x, y) in a.functions.values().zip(b.functions.values()) {
        same_function(x, y)?;
    }
    Ok(())
}

fn same_function(x: &Function, y: &Function) -> Result<(), CheckError> {
    let what = |part: &str| format!("{part} of `{}`", x.name);
    equal(&what("name"), &x.name, &y.name)?;
    let head = |f: &Function| {
        let params = (f.params.clone(), f.returns.clone());
        (
            f.kind,
            f.linkage,
            f.attributes.clone(),
            params,
            f.directives.clone(),
        )
    };
    equal(&what("head"), &head(x), &head(y))?;
    equal(
        &what("existence of a body"),
        &x.body.is_some(),
        &y.body.is_some(),
    )?;
    let (Some(x), Some(y)) = (&x.body, &y.body) else {
        return Ok(());
    };
    equal(&what("registers"), &x.regs, &y.regs)?;
    equal(&what("register declarations"), &x.reg_decls, &y.reg_decls)?;
    equal(&what("variables"), &x.vars, &y.vars)?;
    equal(&what("statements"), &x.items, &y.items)?;
    equal(&what("operands"), &x.operands, &y.operands)?;
    for (inst, (p, q)) in x.insts.keys().zip(x.insts.values().zip(y.insts.values())) {
        equal(&what(&format!("instruction {inst:?}")), p, q)?;
    }
    equal(&what("labels"), &x.labels, &y.labels)?;
    equal(&what("scopes"), &x.scopes, &y.scopes)?;
    equal(&what("branch tables"), &x.branch_tables, &y.branch_tables)?;
    equal(&what("call tables"), &x.call_tables, &y.call_tables)?;
    equal(&what("prototypes"), &x.prototypes, &y.prototypes)?;
    equal(&what("lines"), &x.locs, &y.locs)?;
    equal(&what("opaque instructions"), &x.opaque, &y.opaque)
}

fn equal<T: PartialEq + Debug>(what: &str, left: &T, right: &T) -> Result<(), CheckError> {
    if left == right {
        return Ok(());
    }
    let show = |value: &T| format!("{value:?}").chars().take(400).collect::<String>();
    let (left, right) = (show(left), show(right));
    Err(CheckError::Different {
        what: what.to_owned(),
        left,
        right,
    })
}

/// The texts that the view points to instead of understanding them.
fn kept_text(module: &Module) -> Vec<String> {
    let squeeze = |span: Span| -> String {
        module
            .text(span)
            .split_ascii_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let top = module.items.iter().filter_map(|item| match item {
        TopItem::Section(span) | TopItem::Unknown(span) => Some(*span),
        _ => None,
    });
    let bodies = module.functions.values().filter_map(|f| f.body.as_ref());
    let inner = bodies.flat_map(|b| &b.items).filter_map(|item| match item {
        Item::Unknown(span) => Some(*span),
        _ => None,
    });
    let inits = module.variables.values().filter_map(|v| match v.init {
        Some(Init::Opaque(span)) => Some(span),
        _ => None,
    });
    top.chain(inner).chain(inits).map(squeeze).collect()
}

/// A copy in which every span is empty.
fn without_spans(module: &Module) -> Module {
    let mut m = module.clone();
    let none = Span::default();
    let header = &mut m.header;
    (
        header.version_span,
        header.target_span,
        header.address_size_span,
    ) = (none, none, none);
    m.files.iter_mut().for_each(|f| f.span = none);
    for var in m.variables.values_mut() {
        (var.span, var.name_span) = (none, none);
        match &mut var.init {
            Some(Init::Data(data)) => data.span = none,
            Some(Init::Opaque(span)) => *span = none,
            None => {}
        }
    }
    for item in &mut m.items {
        match item {
            TopItem::Declare {
                span, directives, ..
            } => {
                *span = none;
                directives.iter_mut().for_each(|d| d.span = none);
            }
            TopItem::Version(span)
            | TopItem::Target(span)
            | TopItem::AddressSize(span)
            | TopItem::Section(span)
            | TopItem::Pragma(_, span)
            | TopItem::Unknown(span)
            | TopItem::Alias { span, .. } => *span = none,
            TopItem::Variable(_) | TopItem::Define(_) | TopItem::File(_) => {}
        }
    }
    for function in m.functions.values_mut() {
        function.directives.iter_mut().for_each(|d| d.span = none);
        if let Some(body) = &mut function.body {
            erase_body(body);
        }
    }
    m
}

fn erase_body(body: &mut Body) {
    let none = Span::default();
    body.span = none;
    body.reg_decls
        .values_mut()
        .for_each(|d| (d.span, d.name_span) = (none, none));
    body.insts
        .values_mut()
        .for_each(|i| (i.span, i.opcode_span) = (none, none));
    body.labels.values_mut().for_each(|l| l.span = none);
    body.scopes
        .values_mut()
        .for_each(|s| (s.span, s.close) = (none, none));
    body.branch_tables.values_mut().for_each(|t| t.span = none);
    body.call_tables.values_mut().for_each(|t| t.span = none);
    body.locs.values_mut().for_each(|l| l.span = none);
    for prototype in body.prototypes.values_mut() {
        prototype.span = none;
        prototype.directives.iter_mut().for_each(|d| d.span = none);
    }
    for item in &mut body.items {
        if let Item::Pragma(_, span) | Item::Unknown(span) = item {
            *span = none;
        }
    }
}
