//! A way to compute the points, and its text: what is printed is read back.

use std::fmt;
use std::str::FromStr;

use crate::across::{self, Across};
use crate::emit::{self, Generated};
use crate::explain;
use crate::fours::{self, Fours};
use crate::ir::Kernel;
use crate::prefix::{self, Prefix};
use crate::schedule::{Schedule, Stage};
use crate::team::{self, Lanes, Team};

/// A way to compute the points.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// Tiles of points, operands in shared memory.
    Tiles(Schedule),
    /// The turns of a loop over a team of threads.
    Team(Team),
    /// Squares that are turned in shared memory.
    Across(Across),
    /// Runs of neighbours, 16 bytes at a time.
    Fours(Fours),
    /// Prefixes: what lies in front of a block is added up once.
    Prefix(Prefix),
}

/// A text that is no way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not understood; for example `threads 16x16, points 8x8, stage 16 by 4`")]
pub struct NoWay(String);

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Tiles(of) => of.fmt(f),
            Way::Team(of) => of.fmt(f),
            Way::Across(of) => of.fmt(f),
            Way::Fours(of) => of.fmt(f),
            Way::Prefix(of) => of.fmt(f),
        }
    }
}

/// Whole numbers of a part of the text, where its other words are these.
fn numbers<const N: usize>(part: &str, words: &str) -> Option<[u32; N]> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for word in part.split(' ') {
        match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => {
                for number in word.split('x') {
                    found.push(number.parse().ok()?);
                }
            }
            false => left.push(word),
        }
    }
    (left.join(" ") == words).then_some(())?;
    found.try_into().ok()
}

impl FromStr for Way {
    type Err = NoWay;

    fn from_str(text: &str) -> Result<Way, NoWay> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or("");
        let rest: Vec<&str> = parts.collect();
        let kind = first.split(' ').next().unwrap_or("");
        let way = match kind {
            "threads" => tiles(first, &rest).map(Way::Tiles),
            "team" => team(first, &rest).map(Way::Team),
            "across" => across(first, &rest).map(Way::Across),
            "fours" => fours(first, &rest).map(Way::Fours),
            "prefix" => prefix(first, &rest).map(Way::Prefix),
            _ => None,
        };
        // Numbers that are printed otherwise were given in an order of their own.
        way.filter(|way| way.to_string() == text)
            .ok_or_else(|| NoWay(text.to_owned()))
    }
}

fn tiles(first: &str, rest: &[&str]) -> Option<Schedule> {
    let mut of = Schedule {
        threads: numbers(first, "threads")?,
        ..Schedule::identity(2)
    };
    for part in rest {
        match part.split(' ').next()? {
            "points" => of.points = numbers(part, "points")?,
            "run" => of.run = numbers(part, "run")?,
            "lanes" => [of.lanes] = numbers(part, "lanes")?,
            "stage" => {
                let [turns, unroll] = numbers(part, "stage by")?;
                of.stage = Some(Stage {
                    turns,
                    unroll,
                    buffers: 1,
                    turn: false,
                });
            }
            "buffers" => [of.stage.as_mut()?.buffers] = numbers(part, "buffers")?,
            "turned" => of.stage.as_mut()?.turn = true,
            "order" => [of.order] = numbers(part, "order")?,
            "resident" => [of.resident] = numbers(part, "resident")?,
            "sizes" => of.specialise = true,
            _ => return None,
        }
    }
    Some(of)
}

fn team(first: &str, rest: &[&str]) -> Option<Team> {
    let (second, more) = rest.split_first()?;
    let mut of = match numbers(first, "team warps") {
        Some([warps]) => Team {
            threads: warps.checked_mul(32)?,
            lanes: Lanes::Points,
            unroll: 1,
            blocks: 0,
        },
        None => {
            let [size] = numbers(first, "team threads a point")?;
            let [points] = numbers(second, "points a block")?;
            Team {
                threads: size.checked_mul(points)?,
                lanes: Lanes::Turns { points },
                unroll: 1,
                blocks: 0,
            }
        }
    };
    for part in more {
        match part.split(' ').next()? {
            "unroll" => [of.unroll] = numbers(part, "unroll")?,
            _ => [of.blocks] = numbers(part, "in parts for blocks")?,
        }
    }
    Some(of)
}

fn across(first: &str, rest: &[&str]) -> Option<Across> {
    let ([side, _], [rows]) = (
        numbers(first, "across")?,
        numbers(rest.first()?, "rows at once")?,
    );
    Some(Across { side, rows })
}

fn fours(first: &str, rest: &[&str]) -> Option<Fours> {
    let ([threads], [rows]) = (
        numbers(first, "fours threads")?,
        numbers(rest.first()?, "rows")?,
    );
    Some(Fours { threads, rows })
}

fn prefix(first: &str, rest: &[&str]) -> Option<Prefix> {
    let ([threads], [points]) = (
        numbers(first, "prefix threads")?,
        numbers(rest.first()?, "points each")?,
    );
    Some(Prefix { threads, points })
}

impl Way {
    /// Its kernels. `shared` is how many bytes of shared memory a block may have.
    ///
    /// # Errors
    /// It is not one for this kernel: why not.
    pub fn kernels(&self, kernel: &Kernel, shared: u32) -> Result<Generated, Unfit> {
        Ok(match self {
            Way::Tiles(of) => emit::generate(kernel, of, shared)?,
            Way::Team(of) => team::generate(kernel, of)?,
            Way::Across(of) => across::generate(kernel, of)?,
            Way::Fours(of) => fours::generate(kernel, of)?,
            Way::Prefix(of) => prefix::generate(kernel, of)?,
        })
    }

    /// Its kernels; none where it is not one for this kernel.
    pub fn generate(&self, kernel: &Kernel, shared: u32) -> Option<Generated> {
        self.kernels(kernel, shared).ok()
    }

    /// What is done, a sentence a step.
    pub fn steps(&self, kernel: &Kernel) -> Vec<String> {
        match self {
            Way::Tiles(of) => explain::steps(kernel, of),
            _ => self.generate(kernel, 0).map_or(Vec::new(), |g| g.notes),
        }
    }
}

/// Why a way is not one for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Of tiles.
    #[error(transparent)]
    Tiles(#[from] emit::Unfit),
    /// Of a team.
    #[error(transparent)]
    Team(#[from] team::Unfit),
    /// Of squares.
    #[error(transparent)]
    Across(#[from] across::Unfit),
    /// Of runs of four.
    #[error(transparent)]
    Fours(#[from] fours::Unfit),
    /// Of prefixes.
    #[error(transparent)]
    Prefix(#[from] prefix::Unfit),
}
