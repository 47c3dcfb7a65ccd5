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

/// A value that stands nowhere.
pub(crate) fn nowhere<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

pub(crate) fn list(all: Vec<Expr>) -> Vec<Spanned<Expr>> {
    all.into_iter().map(nowhere).collect()
}

impl InitTable {
    /// Contents of a kind, with its options `bound`, `value`, `low` and `high`.
    pub fn of<const N: usize>(kind: &str, given: [(&str, Expr); N]) -> InitTable {
        let mut options = InitOptions {
            kind: kind.to_owned(),
            ..InitOptions::default()
        };
        for (key, expr) in given {
            match key {
                "bound" => options.bound = Some(nowhere(expr)),
                "value" => options.value = Some(nowhere(expr)),
                "low" => options.low = Some(nowhere(OneOrMany::One(expr))),
                _ => options.high = Some(nowhere(OneOrMany::One(expr))),
            }
        }
        InitTable(options)
    }

    /// The same as text.
    fn text(&self) -> String {
        let own = &self.0;
        let expr = |of: &Option<Spanned<Expr>>| Some(of.as_ref()?.get_ref().quoted());
        let bound = |of: &Option<Spanned<OneOrMany>>| Some(of.as_ref()?.get_ref().text());
        let options = [
            ("bound", expr(&own.bound)),
            ("value", expr(&own.value)),
            ("low", bound(&own.low)),
            ("high", bound(&own.high)),
        ];
        let option = |(key, text): (&str, Option<String>)| Some(format!(", {key} = {}", text?));
        let options: String = options.into_iter().filter_map(option).collect();
        match options.is_empty() {
            true => format!("\"{}\"", own.kind),
            false => format!("{{ kind = \"{}\"{options} }}", own.kind),
        }
    }
}

impl ArgTable {
    fn named(name: &str) -> ArgTable {
        ArgTable {
            name: Some(nowhere(name.to_owned())),
            ..ArgTable::default()
        }
    }

    /// A value, or values one behind the other.
    pub fn value(name: &str, ty: ElemType, value: OneOrMany, source: Source) -> ArgTable {
        let mut table = ArgTable::named(name);
        (table.ty, table.value) = (Some(nowhere(ty)), Some(nowhere(value)));
        table.sources.value = Some(source);
        table
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
        (init, of_init): (InitTable, Source),
        is_output: bool,
    ) -> ArgTable {
        let mut table = ArgTable::named(name);
        table.ty = Some(nowhere(ty));
        table.shape = Some(nowhere(list(shape)));
        table.init = Some(nowhere(init));
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
        if let Some(name) = get(&self.name) {
            let _ = writeln!(text, "name = {name:?}");
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
                "type",
                get(&self.ty).map(|ty| format!("{:?}", ty.name())),
                None,
            ),
            ("value", get(&self.value).map(OneOrMany::text), value),
            ("align", get(&self.align).map(Expr::quoted), None),
            ("alias", get(&self.alias).map(|of| format!("{of:?}")), None),
            ("shape", get(&self.shape).map(|all| listed(all)), shape),
            ("each", part.map(|(each, _)| each), of_part),
            ("init", get(&self.init).map(InitTable::text), init),
            ("output", self.output.then(|| "true".to_owned()), None),
        ];
        let key = |(key, text, source): (&str, Option<String>, _)| {
            Some((format!("{key} = {}", text?), source))
        };
        keys.into_iter().filter_map(key).collect()
    }

    /// On one line, with the least certain of who says its parts.
    fn inline(&self) -> (String, Option<Source>) {
        let name = get(&self.name).map(|name| (format!("name = {name:?}"), None));
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

fn get<T>(of: &Option<Spanned<T>>) -> Option<&T> {
    of.as_ref().map(Spanned::get_ref)
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
