//! Initial contents: from the `init` table to an [`Init`].

use std::ops::Range;

use toml::Spanned;

use crate::element::ElemType;
use crate::error::LaunchError;
use crate::expr::Expr;
use crate::init::{FileFormat, Init};
use crate::resolve::{Resolver, Result};
use crate::schema::{InitOptions, OneOrMany};

/// The kinds of initial contents and the options that each takes.
const KINDS: [(&str, &[&str]); 13] = [
    ("zeros", &[]),
    ("poison", &[]),
    ("fill", &["value"]),
    ("iota", &["start", "step"]),
    ("uniform", &["low", "high", "seed"]),
    ("normal", &["mean", "deviation", "seed"]),
    ("bits", &["seed"]),
    ("indices", &["bound", "seed"]),
    ("permutation", &["seed"]),
    ("sorted", &["low", "high", "seed"]),
    ("values", &["values"]),
    ("expr", &["value", "noise", "seed"]),
    ("file", &["path"]),
];

impl Resolver<'_> {
    /// The initial contents of a buffer of this type and shape.
    pub(crate) fn init(
        &self,
        ty: ElemType,
        shape: &[u64],
        table: &Spanned<InitOptions>,
    ) -> Result<Init> {
        let span = table.span();
        check_options(ty, table.get_ref())
            .map_err(|wrong| self.error(span.clone(), wrong.to_string()))?;
        let resolver = InitResolver {
            resolver: self,
            ty,
            shape,
            options: table.get_ref(),
            span,
        };
        resolver.init()
    }
}

/// Why an `init` table has the wrong options.
#[derive(Debug, thiserror::Error)]
enum OptionError {
    #[error("unknown kind `{0}`; there are {known}", known = kinds())]
    Kind(String),
    #[error("`{kind}` takes no `{key}`")]
    Takes { kind: String, key: &'static str },
    #[error("`{what}` is not for {ty}")]
    Type { what: String, ty: ElemType },
}

fn kinds() -> String {
    let known: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
    known.join(", ")
}

/// Refuses unknown kinds, options that a kind does not take, and kinds that a type does not.
fn check_options(ty: ElemType, options: &InitOptions) -> std::result::Result<(), OptionError> {
    let kind = options.kind.as_str();
    let Some((_, takes)) = KINDS.iter().find(|entry| entry.0 == kind) else {
        return Err(OptionError::Kind(kind.to_owned()));
    };
    let given = [
        ("value", options.value.is_some()),
        ("values", options.values.is_some()),
        ("start", options.start.is_some()),
        ("step", options.step.is_some()),
        ("low", options.low.is_some()),
        ("high", options.high.is_some()),
        ("bound", options.bound.is_some()),
        ("mean", options.mean.is_some()),
        ("deviation", options.deviation.is_some()),
        ("noise", options.noise.is_some()),
        ("seed", options.seed.is_some()),
        ("path", options.path.is_some()),
    ];
    if let Some((key, _)) = given
        .iter()
        .find(|(key, given)| *given && !takes.contains(key))
    {
        let kind = kind.to_owned();
        return Err(OptionError::Takes { kind, key });
    }
    let wrong = match kind {
        "normal" => !ty.is_float(),
        "indices" | "permutation" => ty.is_float(),
        "expr" => !ty.is_float() && options.noise.is_some(),
        _ => false,
    };
    let what = if kind == "expr" { "noise" } else { kind };
    match wrong {
        true => Err(OptionError::Type {
            what: what.to_owned(),
            ty,
        }),
        false => Ok(()),
    }
}

/// One `init` table, the options checked.
struct InitResolver<'a> {
    resolver: &'a Resolver<'a>,
    ty: ElemType,
    shape: &'a [u64],
    options: &'a InitOptions,
    span: Range<usize>,
}

impl InitResolver<'_> {
    fn init(&self) -> Result<Init> {
        let options = self.options;
        let seed = options.seed.as_ref().map_or(0, |seed| *seed.get_ref());
        Ok(match options.kind.as_str() {
            "zeros" => Init::Zeros,
            "poison" => Init::Poison,
            "bits" => Init::Bits { seed },
            "fill" => Init::Fill(
                self.resolver
                    .element(self.ty, need(self, &options.value, "value")?)?,
            ),
            "iota" => self.iota()?,
            "uniform" if self.ty.is_float() => Init::UniformFloat {
                ranges: self.float_ranges()?,
                seed,
            },
            "uniform" => {
                let (low, high) = self.int_range()?;
                Init::UniformInt { low, high, seed }
            }
            "sorted" if self.ty.is_float() => match *self.float_ranges()? {
                [(low, high)] => Init::SortedFloat { low, high, seed },
                _ => return Err(self.error("`sorted` takes one range")),
            },
            "sorted" => {
                let (low, high) = self.int_range()?;
                Init::SortedInt { low, high, seed }
            }
            "normal" => Init::Normal {
                mean: self.float_or(&options.mean, 0.0)?,
                deviation: self.float_or(&options.deviation, 1.0)?,
                seed,
            },
            "indices" => {
                let bound = need(self, &options.bound, "bound")?;
                let most = self.ty.int_range().1 + 1;
                let high = self.resolver.ranged("bound", bound, 1, most)? - 1;
                Init::UniformInt { low: 0, high, seed }
            }
            "permutation" if i128::from(self.len()) - 1 > self.ty.int_range().1 => {
                let message = format!("{} cannot number {} elements", self.ty, self.len());
                return Err(self.error(message));
            }
            "permutation" => Init::Permutation { seed },
            "values" => self.values()?,
            "expr" => self.expr(seed)?,
            _ => self.file()?,
        })
    }

    fn error(&self, message: impl Into<String>) -> LaunchError {
        self.resolver.error(self.span.clone(), message)
    }

    fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    fn float_or(&self, expr: &Option<Spanned<Expr>>, default: f64) -> Result<f64> {
        expr.as_ref()
            .map_or(Ok(default), |expr| self.resolver.float(expr))
    }

    fn iota(&self) -> Result<Init> {
        let (start, step) = (&self.options.start, &self.options.step);
        if self.ty.is_float() {
            return Ok(Init::IotaFloat {
                start: self.float_or(start, 0.0)?,
                step: self.float_or(step, 1.0)?,
            });
        }
        let int = |expr: &Option<Spanned<Expr>>, default: i128, (low, high)| {
            expr.as_ref().map_or(Ok(default), |e| {
                self.resolver.ranged("the value", e, low, high)
            })
        };
        Ok(Init::IotaInt {
            start: int(start, 0, self.ty.int_range())?,
            step: int(step, 1, (i64::MIN.into(), i64::MAX.into()))?,
        })
    }

    fn int_range(&self) -> Result<(i128, i128)> {
        let (min, max) = self.ty.int_range();
        let end = |expr: &Option<Spanned<OneOrMany>>, key: &str| {
            let expr = need(self, expr, key)?;
            match expr.get_ref() {
                OneOrMany::One(e) => self.resolver.ranged(
                    "the value",
                    &Spanned::new(expr.span(), e.clone()),
                    min,
                    max,
                ),
                OneOrMany::Many(_) => {
                    let message = "one range for each row is only for floating-point types";
                    Err(self.resolver.error(expr.span(), message))
                }
            }
        };
        let (low, high) = (
            end(&self.options.low, "low")?,
            end(&self.options.high, "high")?,
        );
        match low <= high {
            true => Ok((low, high)),
            false => Err(self.error(format!("{low} to {high} is no range"))),
        }
    }

    /// One range, or one for each index of the first dimension.
    fn float_ranges(&self) -> Result<Vec<(f64, f64)>> {
        let ends = |expr: &Option<Spanned<OneOrMany>>, key: &str| -> Result<Vec<f64>> {
            let expr = need(self, expr, key)?;
            match expr.get_ref() {
                OneOrMany::One(e) => Ok(vec![
                    self.resolver.float(&Spanned::new(expr.span(), e.clone()))?,
                ]),
                OneOrMany::Many(list) => list.iter().map(|e| self.resolver.float(e)).collect(),
            }
        };
        let (low, high) = (
            ends(&self.options.low, "low")?,
            ends(&self.options.high, "high")?,
        );
        let rows = self.shape.first().copied().unwrap_or(1);
        if low.len() != high.len() || (low.len() != 1 && low.len() as u64 != rows) {
            let (low, high) = (low.len(), high.len());
            let message = format!("{low} low and {high} high ends for {rows} rows");
            return Err(self.error(message));
        }
        let ranges: Vec<(f64, f64)> = low.into_iter().zip(high).collect();
        for (low, high) in &ranges {
            if !(low <= high && (high - low).is_finite()) {
                return Err(self.error(format!("{low} to {high} is no range")));
            }
        }
        Ok(ranges)
    }

    fn values(&self) -> Result<Init> {
        let values = need(self, &self.options.values, "values")?;
        let bits = values
            .get_ref()
            .iter()
            .map(|v| self.resolver.element(self.ty, v));
        let bits: Vec<u64> = bits.collect::<Result<_>>()?;
        let len = self.len();
        if bits.is_empty() || !len.is_multiple_of(bits.len() as u64) {
            let message = format!("{} values do not divide {len} elements", bits.len());
            return Err(self.resolver.error(values.span(), message));
        }
        Ok(Init::Values(bits))
    }

    fn expr(&self, seed: u64) -> Result<Init> {
        let expr = need(self, &self.options.value, "value")?;
        let params = &self.resolver.params;
        let unknown = |name: &&str| *name != "i" && !params.contains_key(*name);
        if let Some(name) = expr.get_ref().names().into_iter().find(unknown) {
            return Err(self
                .resolver
                .error(expr.span(), format!("unknown parameter `{name}`")));
        }
        Ok(Init::Expr {
            expr: expr.get_ref().clone(),
            params: params.clone(),
            noise: self.float_or(&self.options.noise, 0.0)?,
            seed,
        })
    }

    fn file(&self) -> Result<Init> {
        let path = need(self, &self.options.path, "path")?;
        let format = match path.get_ref().rsplit_once('.') {
            Some((_, "npy")) => FileFormat::Npy,
            Some((_, "raw" | "bin")) => FileFormat::Raw,
            _ => {
                let message = "a file of initial contents ends in .npy, .raw or .bin";
                return Err(self.resolver.error(path.span(), message));
            }
        };
        Ok(Init::File {
            path: path.get_ref().clone(),
            format,
        })
    }
}

/// An option that the kind cannot do without.
fn need<'a, T>(init: &InitResolver<'_>, option: &'a Option<T>, key: &str) -> Result<&'a T> {
    let kind = &init.options.kind;
    option
        .as_ref()
        .ok_or_else(|| init.error(format!("`{kind}` needs `{key}`")))
}
