//! Descriptions that are made and not read: the tables of their arguments, and how these are written.

use std::fmt::Write;

use toml::Spanned;

use crate::element::ElemType;
use crate::expr::Expr;
use crate::facts::Source;
use crate::schema::{ArgTable, InitOptions, InitTable, OneOrMany, Sources};

/// What stands behind a line that is a guess.
pub(crate) const GUESS: &str = "# guess";

/// What is written behind a line, by who says it.
pub fn mark(source: Source) -> &'static str {
    match source {
        Source::Guessed => "  # guess",
        _ => "",
    }
}

/// A description at all its sizes.
#[derive(Clone, Debug)]
pub struct Made {
    /// The kernel's symbol.
    pub kernel: String,
    /// The sizes, each with its parameters.
    pub sizes: Vec<(String, Vec<(String, i64)>)>,
    /// Blocks.
    pub grid: Vec<Expr>,
    /// Threads per block.
    pub block: Vec<Expr>,
    /// Blocks per cluster; empty without clusters.
    pub cluster: Vec<Expr>,
    /// Bytes per block.
    pub dynamic_smem: Expr,
    /// The parameters.
    pub args: Vec<ArgTable>,
    /// Module variables.
    pub symbols: Vec<ArgTable>,
}

/// What a buffer begins with.
#[derive(Clone, Debug)]
pub enum Filled {
    /// Zeros.
    Zeros,
    /// Numbers between -1 and 1.
    Uniform,
    /// Integers below this.
    Indices(Expr),
    /// Integers from zero up to this, in order.
    Sorted(Expr),
    /// This number.
    Number(Expr),
}

/// A value that stands nowhere.
pub(crate) fn nowhere<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

pub(crate) fn list(all: Vec<Expr>) -> Vec<Spanned<Expr>> {
    all.into_iter().map(nowhere).collect()
}

impl From<Filled> for InitTable {
    fn from(filled: Filled) -> InitTable {
        let one = |expr: Expr| Some(nowhere(expr));
        let bound = |expr: Expr| Some(nowhere(OneOrMany::One(expr)));
        let (kind, options) = match filled {
            Filled::Zeros => ("zeros", InitOptions::default()),
            Filled::Uniform => {
                let (low, high) = (bound(Expr::float(-1.0)), bound(Expr::float(1.0)));
                let options = InitOptions::default();
                (
                    "uniform",
                    InitOptions {
                        low,
                        high,
                        ..options
                    },
                )
            }
            Filled::Indices(most) => {
                let bound = one(most);
                (
                    "indices",
                    InitOptions {
                        bound,
                        ..InitOptions::default()
                    },
                )
            }
            Filled::Sorted(most) => {
                let (low, high) = (bound(Expr::int(0)), bound(most));
                let options = InitOptions::default();
                (
                    "sorted",
                    InitOptions {
                        low,
                        high,
                        ..options
                    },
                )
            }
            Filled::Number(number) => {
                let value = one(number);
                (
                    "fill",
                    InitOptions {
                        value,
                        ..InitOptions::default()
                    },
                )
            }
        };
        let kind = kind.to_owned();
        InitTable(InitOptions { kind, ..options })
    }
}

impl ArgTable {
    fn named(name: &str) -> ArgTable {
        ArgTable {
            name: Some(nowhere(name.to_owned())),
            ..ArgTable::default()
        }
    }

    fn valued(name: &str, ty: ElemType, value: OneOrMany, source: Source) -> ArgTable {
        let mut table = ArgTable::named(name);
        (table.ty, table.value) = (Some(nowhere(ty)), Some(nowhere(value)));
        table.sources.value = Some(source);
        table
    }

    /// A value.
    pub fn scalar(name: &str, ty: ElemType, value: Expr, source: Source) -> ArgTable {
        ArgTable::valued(name, ty, OneOrMany::One(value), source)
    }

    /// Values one behind the other.
    pub fn vector(name: &str, ty: ElemType, values: Vec<Expr>, source: Source) -> ArgTable {
        ArgTable::valued(name, ty, OneOrMany::Many(list(values)), source)
    }

    /// A structure of these members.
    pub fn structure(name: &str, members: Vec<ArgTable>) -> ArgTable {
        let mut table = ArgTable::named(name);
        table.fields = Some(members.into_iter().map(nowhere).collect());
        table
    }

    /// A pointer to the buffer of another name.
    pub fn alias(name: &str, of: &str) -> ArgTable {
        let mut table = ArgTable::named(name);
        table.alias = Some(nowhere(of.to_owned()));
        table
    }

    /// A pointer to memory of elements, and who says how many there are and what they are.
    pub fn buffer(
        name: &str,
        ty: ElemType,
        (shape, of_shape): (Vec<Expr>, Source),
        (filled, of_init): (Filled, Source),
        is_output: bool,
    ) -> ArgTable {
        let mut table = ArgTable::named(name);
        table.ty = Some(nowhere(ty));
        table.shape = Some(nowhere(list(shape)));
        table.init = Some(nowhere(filled.into()));
        table.output = is_output;
        (table.sources.shape, table.sources.init) = (Some(of_shape), Some(of_init));
        table
    }

    /// A table of so many pointers to memory like this.
    #[must_use]
    pub fn repeated(mut self, rows: Expr) -> ArgTable {
        let mut table = ArgTable {
            name: self.name.take(),
            remark: self.remark.take(),
            shape: Some(nowhere(list(vec![rows]))),
            ..ArgTable::default()
        };
        table.sources.shape = self.sources.shape;
        table.each = Some(Box::new(nowhere(self)));
        table
    }

    /// At a multiple of so many bytes.
    #[must_use]
    pub fn aligned(mut self, bytes: usize) -> ArgTable {
        self.align = Some(nowhere(Expr::int(bytes as i128)));
        self
    }

    /// With a line that says something.
    #[must_use]
    pub fn remarked(mut self, remark: String) -> ArgTable {
        self.remark = Some(remark);
        self
    }

    /// The table without its head, a line for each key, with marks behind what is guessed.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(name) = &self.name {
            let _ = writeln!(text, "name = {:?}", name.get_ref());
        }
        if let Some(remark) = &self.remark {
            let _ = writeln!(text, "# {remark}");
        }
        for (key, source) in self.keys() {
            let _ = writeln!(text, "{key}{}", source.map_or("", mark));
        }
        if let Some(fields) = &self.fields {
            text += "fields = [\n";
            for field in fields {
                let (inner, source) = field.get_ref().inline();
                let _ = writeln!(text, "    {inner},{}", source.map_or("", mark));
            }
            text += "]\n";
        }
        text
    }

    /// The keys but the name and the members, each with who says it.
    fn keys(&self) -> Vec<(String, Option<Source>)> {
        let Sources { value, shape, init } = self.sources;
        let part = self.each.as_ref().map(|each| each.get_ref().inline());
        let of_part = part.as_ref().and_then(|(_, source)| *source);
        let keys = [
            (
                self.ty
                    .as_ref()
                    .map(|ty| format!("type = {:?}", ty.get_ref().name())),
                None,
            ),
            (
                self.value
                    .as_ref()
                    .map(|own| format!("value = {}", own.get_ref().text())),
                value,
            ),
            (
                self.align
                    .as_ref()
                    .map(|own| format!("align = {}", own.get_ref().quoted())),
                None,
            ),
            (
                self.alias
                    .as_ref()
                    .map(|own| format!("alias = {:?}", own.get_ref())),
                None,
            ),
            (
                self.shape
                    .as_ref()
                    .map(|own| format!("shape = {}", listed(own.get_ref()))),
                shape,
            ),
            (part.map(|(each, _)| format!("each = {each}")), of_part),
            (
                self.init
                    .as_ref()
                    .map(|own| format!("init = {}", own.get_ref().text())),
                init,
            ),
            (self.output.then(|| "output = true".to_owned()), None),
        ];
        keys.into_iter()
            .filter_map(|(key, source)| Some((key?, source)))
            .collect()
    }

    /// On one line, with the least certain of who says its parts.
    fn inline(&self) -> (String, Option<Source>) {
        let name = self.name.as_ref();
        let name = name.map(|name| (format!("name = {:?}", name.get_ref()), None));
        let fields = self.fields.as_ref().map(|fields| {
            let all = fields.iter().map(|field| field.get_ref().inline());
            let (texts, sources): (Vec<String>, Vec<Option<Source>>) = all.unzip();
            let text = format!("fields = [{}]", texts.join(", "));
            (text, sources.into_iter().max().flatten())
        });
        let all = name.into_iter().chain(self.keys()).chain(fields);
        let (texts, sources): (Vec<String>, Vec<Option<Source>>) = all.unzip();
        let text = format!("{{ {} }}", texts.join(", "));
        (text, sources.into_iter().max().flatten())
    }
}

fn listed(all: &[Spanned<Expr>]) -> String {
    let all = all.iter().map(|expr| expr.get_ref().quoted());
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

impl OneOrMany {
    fn text(&self) -> String {
        match self {
            OneOrMany::One(expr) => expr.quoted(),
            OneOrMany::Many(all) => listed(all),
        }
    }
}

impl InitTable {
    /// Of those that are [`Filled`].
    fn text(&self) -> String {
        let InitOptions {
            kind,
            value,
            bound,
            low,
            high,
            ..
        } = &self.0;
        let one = |key: &str, expr: &Option<Spanned<Expr>>| {
            let expr = expr.as_ref()?.get_ref().quoted();
            Some(format!(", {key} = {expr}"))
        };
        let of = |key: &str, expr: &Option<Spanned<OneOrMany>>| {
            let expr = expr.as_ref()?.get_ref().text();
            Some(format!(", {key} = {expr}"))
        };
        let options = [
            one("bound", bound),
            one("value", value),
            of("low", low),
            of("high", high),
        ];
        let options: String = options.into_iter().flatten().collect();
        match options.is_empty() {
            true => format!("\"{kind}\""),
            false => format!("{{ kind = \"{kind}\"{options} }}"),
        }
    }
}
