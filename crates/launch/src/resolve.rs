//! From the document to a launch: evaluates every expression and checks every combination.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use crate::compare::Tolerance;
use crate::element::ElemType;
use crate::error::{LaunchError, Source};
use crate::expr::{Expr, ExprError};
use crate::init::Init;
use crate::launch::{Alias, Arg, Buffer, Launch, Origin, Scalar};
use crate::schema::{ArgTable, Document, FieldTable, OneOrMany, ToleranceTable};

/// What `cudaMalloc` guarantees, in bytes (CUDA C++ Programming Guide, 'Device Memory Accesses').
const DEFAULT_ALIGN: usize = 256;

/// Most bytes that a kernel's parameters may take (PTX ISA, 'Kernel Function Parameters').
const MAX_PARAMETER_BYTES: usize = 32764;

/// Largest alignments in bytes that a description can ask for: no hardware instruction needs more
/// than the first, no allocation more than the second.
const MAX_VALUE_ALIGN: i128 = 256;
const MAX_BUFFER_ALIGN: i128 = 1 << 30;

/// Most bytes of a name: with an ending it is still a file's name.
const MAX_NAME_BYTES: usize = 200;

/// Most bytes of a buffer: more than any device's memory, and far from overflowing an address.
const MAX_BUFFER_BYTES: u64 = 1 << 48;

pub(crate) type Result<T> = std::result::Result<T, LaunchError>;

/// A document at one size.
pub(crate) struct Resolver<'a> {
    document: &'a Document,
    source: &'a Arc<Source>,
    size: &'a str,
    pub(crate) params: BTreeMap<String, i64>,
}

impl<'a> Resolver<'a> {
    pub fn new(
        document: &'a Document,
        source: &'a Arc<Source>,
        size: &'a str,
        overrides: &[(String, i64)],
    ) -> Result<Resolver<'a>> {
        let sizes = document.sizes.get_ref();
        let table = sizes.get(size).ok_or_else(|| {
            let known: Vec<&str> = sizes.keys().map(String::as_str).collect();
            let message = format!("there is no size `{size}`, only {}", known.join(", "));
            LaunchError::new(source, document.sizes.span(), message)
        })?;
        let mut params: BTreeMap<String, i64> = table
            .get_ref()
            .iter()
            .map(|(name, v)| (name.clone(), *v.get_ref()))
            .collect();
        if let Some(value) = table.get_ref().get("i") {
            let message = "`i` stands for the element's index and cannot be a parameter";
            return Err(LaunchError::new(source, value.span(), message));
        }
        for (name, value) in overrides {
            let slot = params.get_mut(name).ok_or_else(|| {
                let message = format!("size `{size}` has no parameter `{name}` to override");
                LaunchError::new(source, table.span(), message)
            })?;
            *slot = *value;
        }
        Ok(Resolver {
            document,
            source,
            size,
            params,
        })
    }

    pub fn launch(&self) -> Result<Launch> {
        let table = &self.document.launch;
        let cluster = table
            .cluster
            .as_ref()
            .map(|c| self.extents("cluster", c))
            .transpose()?;
        let dynamic_smem = match &table.dynamic_smem {
            Some(bytes) => self.ranged("dynamic_smem", bytes, 0, u32::MAX.into())? as u32,
            None => 0,
        };
        let mut args: Vec<Arg> = Vec::new();
        for table in &self.document.args {
            let arg = self.arg(table, &args)?;
            args.push(arg);
        }
        let symbols = self
            .document
            .symbols
            .iter()
            .map(|s| self.symbol(s))
            .collect::<Result<_>>()?;
        let launch = Launch {
            kernel: self.document.kernel.get_ref().clone(),
            size: self.size.to_owned(),
            params: self.params.clone(),
            grid: self.extents("grid", &table.grid)?,
            block: self.extents("block", &table.block)?,
            cluster,
            dynamic_smem,
            args,
            symbols,
        };
        self.check_names(&launch)?;
        Ok(launch)
    }

    // Errors and numbers

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> LaunchError {
        LaunchError::new(self.source, span, message)
    }

    fn lookup(&self) -> impl Fn(&str) -> Option<i128> + '_ {
        |name| self.params.get(name).map(|&value| value.into())
    }

    fn explain<T>(
        &self,
        expr: &Spanned<Expr>,
        value: std::result::Result<T, ExprError>,
    ) -> Result<T> {
        value.map_err(|error| self.error(expr.span(), error.to_string()))
    }

    pub(crate) fn int(&self, expr: &Spanned<Expr>) -> Result<i128> {
        self.explain(expr, expr.get_ref().eval_int(&self.lookup()))
    }

    pub(crate) fn float(&self, expr: &Spanned<Expr>) -> Result<f64> {
        self.explain(expr, expr.get_ref().eval_float(&self.lookup()))
    }

    /// An integer within bounds, both included.
    pub(crate) fn ranged(
        &self,
        what: &str,
        expr: &Spanned<Expr>,
        low: i128,
        high: i128,
    ) -> Result<i128> {
        let value = self.int(expr)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        let message = format!("{what} is {value}, outside {low} to {high}");
        Err(self.error(expr.span(), message))
    }

    /// The bits of an element of type `ty`.
    pub(crate) fn element(&self, ty: ElemType, expr: &Spanned<Expr>) -> Result<u64> {
        if ty.is_float() {
            return Ok(ty.float_bits(self.float(expr)?));
        }
        let (low, high) = ty.int_range();
        let value = self.ranged("the value", expr, low, high)?;
        Ok(ty.int_bits(value).unwrap_or(0))
    }

    /// Grid, block or cluster: one to three extents; the missing ones are 1.
    fn extents(&self, what: &str, list: &Spanned<Vec<Spanned<Expr>>>) -> Result<[u32; 3]> {
        let given = list.get_ref();
        if given.is_empty() || given.len() > 3 {
            let message = format!("{what} has one to three extents, not {}", given.len());
            return Err(self.error(list.span(), message));
        }
        let mut extents = [1; 3];
        for (extent, expr) in extents.iter_mut().zip(given) {
            *extent =
                self.ranged(&format!("an extent of {what}"), expr, 1, i32::MAX.into())? as u32;
        }
        let product = extents.iter().try_fold(1u32, |n, &e| n.checked_mul(e));
        if what != "grid" && product.is_none() {
            return Err(self.error(list.span(), format!("the extents of {what} overflow")));
        }
        Ok(extents)
    }

    fn align(&self, expr: Option<&Spanned<Expr>>, default: usize, most: i128) -> Result<usize> {
        let Some(expr) = expr else { return Ok(default) };
        let align = self.ranged("align", expr, 1, most)?;
        if align & (align - 1) != 0 {
            return Err(self.error(expr.span(), format!("align is {align}: no power of two")));
        }
        Ok(align as usize)
    }

    // Arguments

    fn arg(&self, table: &Spanned<ArgTable>, before: &[Arg]) -> Result<Arg> {
        let arg = table.get_ref();
        if arg.alias.is_some() {
            self.alias(table, before).map(Arg::Alias)
        } else if arg.value.is_some() || arg.fields.is_some() {
            self.scalar(table).map(Arg::Scalar)
        } else {
            self.buffer(table).map(Arg::Buffer)
        }
    }

    /// Refuses keys that mean nothing for this sort of argument.
    fn refuse(&self, table: &Spanned<ArgTable>, what: &str, keys: &[(&str, bool)]) -> Result<()> {
        match keys.iter().find(|(_, present)| *present) {
            Some((key, _)) => {
                let message = format!("`{key}` makes no sense for {what}");
                Err(self.error(table.get_ref().name.span(), message))
            }
            None => Ok(()),
        }
    }

    fn alias(&self, table: &Spanned<ArgTable>, before: &[Arg]) -> Result<Alias> {
        let arg = table.get_ref();
        let keys = [
            ("type", arg.ty.is_some()),
            ("value", arg.value.is_some()),
            ("fields", arg.fields.is_some()),
            ("shape", arg.shape.is_some()),
            ("init", arg.init.is_some()),
            ("output", arg.output),
            ("tolerance", arg.tolerance.is_some()),
            ("align", arg.align.is_some()),
        ];
        self.refuse(table, "an alias", &keys)?;
        let (target, span) = arg
            .alias
            .as_ref()
            .map_or(("", 0..0), |a| (a.get_ref().as_str(), a.span()));
        let found = before.iter().enumerate().find_map(|(of, arg)| match arg {
            Arg::Buffer(buffer) if buffer.name == target => Some((of, buffer.size())),
            _ => None,
        });
        let (of, size) = found.ok_or_else(|| {
            self.error(
                span,
                format!("there is no buffer `{target}` before this argument"),
            )
        })?;
        let offset = match &arg.offset {
            Some(offset) => self.ranged("offset", offset, 0, size as i128)? as usize,
            None => 0,
        };
        Ok(Alias {
            name: arg.name.get_ref().clone(),
            of,
            offset,
        })
    }

    fn scalar(&self, table: &Spanned<ArgTable>) -> Result<Scalar> {
        let arg = table.get_ref();
        let keys = [
            ("shape", arg.shape.is_some()),
            ("init", arg.init.is_some()),
            ("output", arg.output),
            ("tolerance", arg.tolerance.is_some()),
            ("offset", arg.offset.is_some()),
        ];
        self.refuse(table, "an argument that is passed by value", &keys)?;
        let mut bytes = Vec::new();
        let member = Member {
            span: table.span(),
            ty: arg.ty.as_ref(),
            value: arg.value.as_ref(),
            fields: arg.fields.as_deref(),
            align: arg.align.as_ref(),
        };
        let align = self.lay_out(&member, &mut bytes)?;
        if bytes.len() > MAX_PARAMETER_BYTES {
            let message = format!("{} bytes do not fit in a kernel's parameters", bytes.len());
            return Err(self.error(arg.name.span(), message));
        }
        let ty = arg.ty.as_ref().map(|ty| *ty.get_ref());
        Ok(Scalar {
            name: arg.name.get_ref().clone(),
            ty,
            bytes,
            align,
        })
    }

    /// Appends a scalar, array or structure as C lays it out (every member at a multiple of its
    /// alignment, the whole padded to its own) and gives its alignment.
    fn lay_out(&self, member: &Member<'_>, bytes: &mut Vec<u8>) -> Result<usize> {
        match (member.ty, member.value, member.fields) {
            (Some(ty), Some(value), None) => {
                let ty = *ty.get_ref();
                let align = self.align(member.align, ty.size(), MAX_VALUE_ALIGN)?;
                pad(bytes, align);
                let start = bytes.len();
                let mut push = |expr: &Spanned<Expr>| -> Result<()> {
                    let bits = self.element(ty, expr)?.to_le_bytes();
                    bytes.extend(bits.iter().take(ty.size()));
                    Ok(())
                };
                match value.get_ref() {
                    OneOrMany::One(expr) => push(&Spanned::new(value.span(), expr.clone()))?,
                    OneOrMany::Many(list) => list.iter().try_for_each(push)?,
                }
                if bytes.len() == start {
                    return Err(self.error(value.span(), "the list of values is empty"));
                }
                Ok(align)
            }
            (None, None, Some(fields)) => {
                // Alignment first: the structure's start depends on all of its members.
                let mut inner = Vec::new();
                let mut align = 1;
                for field in fields {
                    align = align.max(self.lay_out(&Member::of(field), &mut inner)?);
                }
                if inner.is_empty() {
                    return Err(self.error(member.span.clone(), "the structure has no fields"));
                }
                let align = self.align(member.align, align, MAX_VALUE_ALIGN)?.max(align);
                pad(&mut inner, align);
                pad(bytes, align);
                bytes.extend(inner);
                Ok(align)
            }
            _ => {
                let message = "a value has either `type` and `value`, or `fields`";
                Err(self.error(member.span.clone(), message))
            }
        }
    }

    fn symbol(&self, table: &Spanned<ArgTable>) -> Result<Buffer> {
        let arg = table.get_ref();
        let keys = [
            ("alias", arg.alias.is_some()),
            ("value", arg.value.is_some()),
            ("fields", arg.fields.is_some()),
            ("offset", arg.offset.is_some()),
            ("align", arg.align.is_some()),
        ];
        self.refuse(table, "a module variable", &keys)?;
        self.buffer(table)
    }

    fn buffer(&self, table: &Spanned<ArgTable>) -> Result<Buffer> {
        let arg = table.get_ref();
        let name = arg.name.get_ref().clone();
        let needs = |key: &str| {
            let message = format!("`{name}` has no `{key}` (nor a `value`, `fields` or `alias`)");
            self.error(table.span(), message)
        };
        let ty = *arg.ty.as_ref().ok_or_else(|| needs("type"))?.get_ref();
        let extents = arg.shape.as_ref().ok_or_else(|| needs("shape"))?;
        let (shape, len) = self.shape(extents, ty)?;
        let init = match &arg.init {
            Some(init) => self.init(
                ty,
                &shape,
                &Spanned::new(init.span(), init.get_ref().0.clone()),
            )?,
            None if arg.output => Init::Poison,
            None => {
                return Err(self.error(table.span(), format!("the input `{name}` has no `init`")));
            }
        };
        let tolerance = arg
            .tolerance
            .as_ref()
            .map(|t| self.tolerance(t))
            .transpose()?;
        if tolerance.is_some() && !arg.output {
            let message = "`tolerance` makes no sense for a buffer that is no output";
            return Err(self.error(arg.name.span(), message));
        }
        let offset = match &arg.offset {
            Some(offset) => self.ranged("offset", offset, 0, 1 << 30)? as usize,
            None => 0,
        };
        Ok(Buffer {
            ty,
            shape,
            len,
            init,
            output: arg.output,
            tolerance,
            offset,
            align: self.align(arg.align.as_ref(), DEFAULT_ALIGN, MAX_BUFFER_ALIGN)?,
            origin: Origin {
                source: Arc::clone(self.source),
                span: arg.name.span(),
            },
            name,
        })
    }

    /// Extents and number of elements, whose bytes fit in an `isize`.
    fn shape(
        &self,
        extents: &Spanned<Vec<Spanned<Expr>>>,
        ty: ElemType,
    ) -> Result<(Vec<u64>, usize)> {
        let mut shape = Vec::new();
        let mut bytes = ty.size() as u64;
        for expr in extents.get_ref() {
            let extent = self.ranged("an extent of shape", expr, 1, i64::MAX.into())? as u64;
            bytes = bytes
                .checked_mul(extent)
                .filter(|&bytes| bytes <= MAX_BUFFER_BYTES)
                .ok_or_else(|| self.error(extents.span(), "the buffer's size overflows"))?;
            shape.push(extent);
        }
        Ok((shape, bytes as usize / ty.size()))
    }

    fn tolerance(&self, table: &Spanned<ToleranceTable>) -> Result<Tolerance> {
        let ToleranceTable { rel, abs } = *table.get_ref();
        if !(rel >= 0.0 && abs >= 0.0) {
            return Err(self.error(table.span(), "a tolerance is at least 0"));
        }
        Ok(Tolerance { rel, abs })
    }

    /// Names are keys for references and reports, so no two arguments or symbols share one.
    fn check_names(&self, launch: &Launch) -> Result<()> {
        let arg_names = launch.args.iter().map(Arg::name);
        let names = arg_names.chain(launch.symbols.iter().map(|s| s.name.as_str()));
        let tables = self.document.args.iter().chain(&self.document.symbols);
        let mut seen = std::collections::BTreeSet::new();
        for (name, table) in names.zip(tables) {
            // A name becomes a file's (`run --save`), so it is not to lead anywhere else.
            let is_plain = !name.is_empty()
                && name.len() <= MAX_NAME_BYTES
                && !name.starts_with('.')
                && !name.contains(|c: char| c == '/' || c == '\\' || c.is_control());
            if !is_plain {
                let message = "a name is not empty, begins with no dot and has no slash and no control character";
                return Err(self.error(table.get_ref().name.span(), message));
            }
            if !seen.insert(name) {
                let message = format!("there are two arguments `{name}`");
                return Err(self.error(table.get_ref().name.span(), message));
            }
        }
        Ok(())
    }
}

/// What an argument passed by value and a field of a structure have in common.
struct Member<'a> {
    span: Range<usize>,
    ty: Option<&'a Spanned<ElemType>>,
    value: Option<&'a Spanned<OneOrMany>>,
    fields: Option<&'a [Spanned<FieldTable>]>,
    align: Option<&'a Spanned<Expr>>,
}

impl<'a> Member<'a> {
    fn of(field: &'a Spanned<FieldTable>) -> Member<'a> {
        let table = field.get_ref();
        Member {
            span: field.span(),
            ty: table.ty.as_ref(),
            value: table.value.as_ref(),
            fields: table.fields.as_deref(),
            align: table.align.as_ref(),
        }
    }
}

fn pad(bytes: &mut Vec<u8>, align: usize) {
    bytes.resize(bytes.len().next_multiple_of(align), 0);
}
