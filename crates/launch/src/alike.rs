//! Do two descriptions say the same launch of every size, whatever their names and first contents?

use std::fmt::Write as _;

use toml::Spanned;

use crate::LaunchFile;
use crate::expr::Expr;
use crate::schema::{ArgTable, OneOrMany};

impl LaunchFile {
    /// Is every extent, value and shape the same function of the sizes in both? What buffers are called, hold and are
    /// compared by does not count.
    pub fn launches_alike(&self, other: &LaunchFile) -> bool {
        let common = |size: &&str| other.sizes().any(|name| name == *size);
        let mut sizes = self.sizes().filter(common);
        sizes.all(|size| self.parameters(size).eq(other.parameters(size)))
            && self.form() == other.form()
    }

    /// Integers among the arguments, and numbers within structures, that no size decides.
    pub fn constants(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for arg in &self.document.args {
            let arg = arg.get_ref();
            let is_float = arg.ty.as_ref().is_some_and(|ty| ty.get_ref().is_float());
            let is_varied = is_float && matches!(value(arg), Some(OneOrMany::One(_)));
            if let Some(name) = arg.name.as_ref().filter(|_| !is_varied && is_constant(arg)) {
                names.push(name.get_ref().as_str());
            }
        }
        names
    }

    /// What decides a launch, without places in the text.
    fn form(&self) -> String {
        let launch = &self.document.launch;
        let mut form = String::new();
        let blocks = [&launch.grid, &launch.block];
        for extents in blocks.into_iter().chain(&launch.cluster) {
            put(&mut form, "extents", extents.get_ref());
        }
        put(&mut form, "shared", &launch.dynamic_smem);
        put_args(&mut form, &self.document.args, false);
        put_args(&mut form, &self.document.symbols, true);
        form
    }
}

fn value(arg: &ArgTable) -> Option<&OneOrMany> {
    arg.value.as_ref().map(Spanned::get_ref)
}

/// Has it a value of which some part depends on no size?
fn is_constant(arg: &ArgTable) -> bool {
    let own = match value(arg) {
        Some(OneOrMany::One(expr)) => expr.names().is_empty(),
        Some(OneOrMany::Many(all)) => all.iter().any(|expr| expr.get_ref().names().is_empty()),
        None => false,
    };
    let mut fields = arg.fields.iter().flatten();
    own || fields.any(|field| is_constant(field.get_ref()))
}

fn put<'e>(form: &mut String, what: &str, all: impl IntoIterator<Item = &'e Spanned<Expr>>) {
    let all: Vec<&Expr> = all.into_iter().map(Spanned::get_ref).collect();
    let _ = write!(form, "{what} {all:?};");
}

/// Arguments by their places; symbols by their names.
fn put_args(form: &mut String, args: &[Spanned<ArgTable>], named: bool) {
    for arg in args {
        let arg = arg.get_ref();
        let name = arg.name.as_ref().filter(|_| named).map(Spanned::get_ref);
        let ty = arg.ty.as_ref().map(Spanned::get_ref);
        // An alias is the place of what it names.
        let named = arg.alias.as_ref().map(Spanned::get_ref);
        let alias = named.map(|alias| {
            let is_it = |other: &Spanned<ArgTable>| {
                let name = other.get_ref().name.as_ref();
                name.is_some_and(|name| name.get_ref() == alias)
            };
            (args.iter().position(is_it), alias.split_once('.'))
        });
        let _ = write!(form, "arg {name:?} {ty:?} {alias:?};");
        match value(arg) {
            Some(OneOrMany::One(expr)) => {
                let _ = write!(form, "value {expr:?};");
            }
            Some(OneOrMany::Many(all)) => put(form, "values", all),
            None => {}
        }
        if let Some(shape) = &arg.shape {
            put(form, "shape", shape.get_ref());
        }
        put(form, "offset", &arg.offset);
        put(form, "align", &arg.align);
        if let Some(fields) = &arg.fields {
            form.push_str("fields (");
            put_args(form, fields, false);
            form.push(')');
        }
        if let Some(each) = &arg.each {
            form.push_str("each ");
            put_args(form, std::slice::from_ref(each), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        kernel = "k"
        [sizes.small]
        n = 100
        [launch]
        grid = ["ceil_div(n, 64)"]
        block = [64]
        [[args]]
        name = "x"
        type = "f32"
        shape = ["n"]
        init = { kind = "uniform", low = -1.0, high = 1.0 }
        [[args]]
        name = "n"
        type = "s32"
        value = "n"
        [[args]]
        name = "m"
        type = "s32"
        value = 7
    "#;

    fn with(from: &str, to: &str) -> LaunchFile {
        let text = TEXT.replace(from, to);
        assert!(from == to || text != TEXT, "{from}");
        LaunchFile::parse(&text, "l.toml").unwrap()
    }

    #[test]
    fn other_functions_of_the_sizes_are_others() {
        let file = with("", "");
        for (from, to) in [
            ("\"x\"", "\"other\""),
            ("low = -1.0", "low = -2.0"),
            ("value = \"n\"", "value = \"n\" # the same"),
        ] {
            assert!(file.launches_alike(&with(from, to)), "{to}");
        }
        for (from, to) in [
            ("value = \"n\"", "value = \"min(n, 513)\""),
            ("\"ceil_div(n, 64)\"", "\"min(ceil_div(n, 64), 9)\""),
            ("shape = [\"n\"]", "shape = [100]"),
            ("value = 7", "value = 8"),
            ("n = 100", "n = 101"),
            ("block = [64]", "block = [64]\ndynamic_smem = 4"),
            ("block = [64]", "block = [64]\ncluster = [1]"),
            ("shape = [\"n\"]", "shape = [\"n\"]\noffset = 4"),
        ] {
            assert!(!file.launches_alike(&with(from, to)), "{to}");
        }
        assert_eq!(file.constants(), ["m"]);
    }
}
