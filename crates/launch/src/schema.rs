//! The TOML document as serde sees it: every value with its place, nothing evaluated yet.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use crate::element::ElemType;
use crate::expr::Expr;
use crate::facts::Source;
use crate::made::list;

/// One size: parameters and their values.
pub(crate) type Params = BTreeMap<String, Spanned<i64>>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub source: Option<String>,
    #[serde(default)]
    pub nvcc: Vec<String>,
    pub kernel: Spanned<String>,
    pub about: Option<String>,
    pub sizes: Spanned<BTreeMap<String, Spanned<Params>>>,
    pub launch: LaunchTable,
    #[serde(default)]
    pub args: Vec<Spanned<ArgTable>>,
    #[serde(default)]
    pub symbols: Vec<Spanned<ArgTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchTable {
    pub grid: Spanned<Vec<Spanned<Expr>>>,
    pub block: Spanned<Vec<Spanned<Expr>>>,
    pub cluster: Option<Spanned<Vec<Spanned<Expr>>>>,
    pub dynamic_smem: Option<Spanned<Expr>>,
}

/// An entry of `[[args]]` or `[[symbols]]`, or a member of a structure; which keys go together is checked when it is
/// resolved.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgTable {
    pub(crate) name: Option<Spanned<String>>,
    #[serde(rename = "type")]
    pub(crate) ty: Option<Spanned<ElemType>>,
    pub(crate) value: Option<Spanned<OneOrMany>>,
    pub(crate) fields: Option<Vec<Spanned<ArgTable>>>,
    pub(crate) shape: Option<Spanned<Vec<Spanned<Expr>>>>,
    pub(crate) init: Option<Spanned<InitTable>>,
    #[serde(default)]
    pub(crate) output: bool,
    pub(crate) tolerance: Option<Spanned<ToleranceTable>>,
    pub(crate) offset: Option<Spanned<Expr>>,
    pub(crate) align: Option<Spanned<Expr>>,
    pub(crate) alias: Option<Spanned<String>>,
    pub(crate) each: Option<Box<Spanned<ArgTable>>>,
    /// Who says it, of a table that was made; and what a line in front of its type says.
    #[serde(skip)]
    pub(crate) sources: Sources,
    #[serde(skip)]
    pub(crate) remark: Option<String>,
}

/// Who says the parts of a table, where anybody is known to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sources {
    pub value: Option<Source>,
    pub shape: Option<Source>,
    pub init: Option<Source>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToleranceTable {
    #[serde(default)]
    pub rel: f64,
    #[serde(default)]
    pub abs: f64,
}

/// `init`: a table with a `kind`, or the kind alone as a string.
#[derive(Clone, Debug)]
pub struct InitTable(pub(crate) InitOptions);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InitOptions {
    pub kind: String,
    pub value: Option<Spanned<Expr>>,
    pub values: Option<Spanned<Vec<Spanned<Expr>>>>,
    pub start: Option<Spanned<Expr>>,
    pub step: Option<Spanned<Expr>>,
    pub low: Option<Spanned<OneOrMany>>,
    pub high: Option<Spanned<OneOrMany>>,
    pub bound: Option<Spanned<Expr>>,
    pub noise: Option<Spanned<Expr>>,
    pub mean: Option<Spanned<Expr>>,
    pub deviation: Option<Spanned<Expr>>,
    pub seed: Option<Spanned<u64>>,
    pub path: Option<Spanned<String>>,
}

/// One expression, or a list of them: the elements of an array, or one for each row.
#[derive(Clone, Debug)]
pub enum OneOrMany {
    /// One expression.
    One(Expr),
    /// A list.
    Many(Vec<Spanned<Expr>>),
}

impl From<Vec<Expr>> for OneOrMany {
    fn from(all: Vec<Expr>) -> OneOrMany {
        OneOrMany::Many(list(all))
    }
}

impl<'de> Deserialize<'de> for ElemType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        ElemType::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = ElemType::ALL.iter().map(|t| t.name()).collect();
            de::Error::custom(format!(
                "unknown type `{name}`; there are {}",
                known.join(", ")
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(ValueVisitor { lists: false })? {
            OneOrMany::One(expr) => Ok(expr),
            OneOrMany::Many(_) => Err(de::Error::custom("a list is not expected here")),
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor { lists: true })
    }
}

struct ValueVisitor {
    lists: bool,
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or an expression in quotes")?;
        if self.lists {
            f.write_str(", or a list of them")
        } else {
            Ok(())
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(Expr::int(value.into())))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(Expr::int(value.into())))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(Expr::float(value)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
        let expr = Expr::parse(text).map_err(|error| match error.span {
            Some(ref span) => E::custom(format!("{error}, at character {}", span.start + 1)),
            None => E::custom(error),
        })?;
        Ok(OneOrMany::One(expr))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany, A::Error> {
        if !self.lists {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        }
        let mut list = Vec::new();
        while let Some(item) = seq.next_element::<Spanned<Expr>>()? {
            list.push(item);
        }
        Ok(OneOrMany::Many(list))
    }
}

impl<'de> Deserialize<'de> for InitTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InitVisitor;
        impl<'de> Visitor<'de> for InitVisitor {
            type Value = InitTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kind of initial contents, or a table with a `kind`")
            }

            fn visit_str<E: de::Error>(self, kind: &str) -> Result<InitTable, E> {
                Ok(InitTable(InitOptions {
                    kind: kind.to_owned(),
                    ..InitOptions::default()
                }))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<InitTable, A::Error> {
                InitOptions::deserialize(de::value::MapAccessDeserializer::new(map)).map(InitTable)
            }
        }
        deserializer.deserialize_any(InitVisitor)
    }
}
