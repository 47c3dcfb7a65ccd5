//! Which buffer of one side is which of the other.

use std::collections::BTreeMap;

use warpwright_launch::{Buffer, Init};

use crate::Side;

/// A buffer by name, as the first launch that has it describes it.
#[derive(Clone)]
pub struct Described<'s> {
    /// Its description.
    pub buffer: &'s Buffer,
    /// Its contents before the first launch that has it.
    pub bytes: &'s [u8],
    /// Any launch says that it is an output.
    pub output: bool,
}

/// The buffers of a side by name, in the order in which launches name them.
pub fn buffers(side: &Side) -> Vec<(String, Described<'_>)> {
    let mut all: Vec<(String, Described<'_>)> = Vec::new();
    for step in &side.steps {
        for (buffer, bytes) in step.launch.buffers().zip(&step.contents) {
            match all.iter_mut().find(|(name, _)| *name == buffer.name) {
                Some((_, known)) => known.output |= buffer.output,
                None => {
                    let output = buffer.output;
                    let described = Described {
                        buffer,
                        bytes,
                        output,
                    };
                    all.push((buffer.name.clone(), described));
                }
            }
        }
    }
    all
}

/// Why the buffers of two sides cannot be paired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// A statement names a buffer that there is not.
    #[error("`{0}`: no launch has such a buffer")]
    Unknown(String),
    /// An output of one side has no partner.
    #[error(
        "the output `{0}` has no partner: name it as the other side does, or state `--pair {0}=…`"
    )]
    Alone(String),
    /// Data of one side have no partner that begins as they do.
    #[error(
        "nothing says which data of the original the rewritten kernel's `{0}` are: name them alike, or state `--pair …={0}`"
    )]
    Unsaid(String),
    /// A launch of one side uses a buffer in another size than one before it.
    #[error("`{0}` has {1} bytes in one launch and {2} in another")]
    Resized(String, usize, usize),
    /// Nothing is compared.
    #[error("neither side has an output: set `output = true` for the buffers that count")]
    NoOutput,
}

/// The second side's buffers with their partners in the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paired {
    /// Second side's name to first side's.
    pub partner: BTreeMap<String, String>,
}

impl Paired {
    /// Do two buffers stand for each other, and do they begin alike: as data of whatever kind, or with the same bytes?
    pub fn is_same(&self, (x, held): (&Buffer, &[u8]), (y, other): (&Buffer, &[u8])) -> bool {
        let [one, another] = [(x, held), (y, other)].map(|(buffer, bytes)| Described {
            buffer,
            bytes,
            output: buffer.output,
        });
        let is_given = is_given(&one) || is_given(&another);
        self.partner.get(&y.name) == Some(&x.name)
            && is_alike(&one, &another)
            && (!is_given || held == other)
    }

    /// Pairs by statement (`first`, `second`), by name, then by order among those of one element type that are left.
    ///
    /// # Errors
    /// [`PairingError`].
    pub fn of(a: &Side, b: &Side, stated: &[(String, String)]) -> Result<Paired, PairingError> {
        let (first, second) = (buffers(a), buffers(b));
        let has = |all: &[(String, Described<'_>)], name: &str| all.iter().any(|(n, _)| n == name);
        let mut partner = BTreeMap::new();
        for (x, y) in stated {
            for (all, name) in [(&first, x), (&second, y)] {
                if !has(all, name) {
                    return Err(PairingError::Unknown(name.clone()));
                }
            }
            partner.insert(y.clone(), x.clone());
        }
        let is_free = |partner: &BTreeMap<String, String>, name: &String| {
            !partner.values().any(|taken| taken == name)
        };
        for (name, _) in &second {
            if !partner.contains_key(name) && has(&first, name) && is_free(&partner, name) {
                partner.insert(name.clone(), name.clone());
            }
        }
        for (name, described) in &second {
            if partner.contains_key(name) {
                continue;
            }
            let alike = first.iter().find(|(x, other)| {
                is_free(&partner, x)
                    && other.buffer.ty == described.buffer.ty
                    && other.output == described.output
                    && (described.output || is_alike(other, described))
                    && may_be_one(other, described)
                    && other.buffer.size() == described.buffer.size()
            });
            if let Some((x, _)) = alike {
                partner.insert(name.clone(), x.clone());
            }
        }
        let is_open = |x: &(String, Described<'_>)| is_free(&partner, &x.0) && is_data(&x.1);
        if first.iter().any(is_open)
            && let Some((name, _)) = second
                .iter()
                .find(|(name, own)| !partner.contains_key(name) && is_data(own))
        {
            return Err(PairingError::Unsaid(name.clone()));
        }
        let paired = Paired { partner };
        paired.check(a, &first)?;
        paired.check_sizes(b)?;
        Ok(paired)
    }

    fn check(&self, a: &Side, first: &[(String, Described<'_>)]) -> Result<(), PairingError> {
        let mut outputs = first
            .iter()
            .filter(|(_, described)| described.output)
            .peekable();
        if outputs.peek().is_none() {
            return Err(PairingError::NoOutput);
        }
        for (name, _) in outputs {
            if !self.partner.values().any(|x| x == name) {
                return Err(PairingError::Alone(name.clone()));
            }
        }
        self.check_sizes(a)
    }

    fn check_sizes(&self, side: &Side) -> Result<(), PairingError> {
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for buffer in side.steps.iter().flat_map(|step| step.launch.buffers()) {
            let known = *sizes.entry(&buffer.name).or_insert(buffer.size());
            if known != buffer.size() {
                return Err(PairingError::Resized(
                    buffer.name.clone(),
                    known,
                    buffer.size(),
                ));
            }
        }
        Ok(())
    }
}

/// Contents that are part of the program rather than of its data: zeros, and what an output begins with.
pub fn is_given(described: &Described<'_>) -> bool {
    let fixed = matches!(
        described.buffer.init,
        Init::Fill(_) | Init::Values(_) | Init::IotaInt { .. } | Init::IotaFloat { .. }
    );
    matches!(described.buffer.init, Init::Zeros) || described.output && fixed
}

/// Nobody has written it.
pub fn is_unset(described: &Described<'_>) -> bool {
    matches!(described.buffer.init, Init::Poison)
}

/// Contents that stand for any others.
pub fn is_data(described: &Described<'_>) -> bool {
    !is_given(described) && !is_unset(described) && described.buffer.table.is_none()
}

/// Data of another description are other data.
fn may_be_one(one: &Described<'_>, other: &Described<'_>) -> bool {
    !is_data(one) || !is_data(other) || one.buffer.init == other.buffer.init
}

/// Both are data, both are given, or neither is written before the first launch: scratch memory is no input.
fn is_alike(one: &Described<'_>, other: &Described<'_>) -> bool {
    let kind = |described| (is_given(described), is_unset(described));
    kind(one) == kind(other)
}

/// What the first side says of a buffer's contents holds for its partner: but for nothing at all, where the rewritten
/// kernel's description says more (zeros, for a sum by atomic operations), and but for an output of which that says nothing.
pub fn leads(first: &Described<'_>, second: &Described<'_>) -> bool {
    let is_said = match (is_unset(first), is_unset(second)) {
        (true, false) => false,
        (false, true) => !first.output,
        _ => true,
    };
    first.buffer.size() == second.buffer.size() && is_said
}

/// What is known of contents: of these buffers they are as described, of those they are data whatever is described.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// As described.
    pub fixed: &'k [String],
    /// Any.
    pub open: &'k [String],
    /// Between two numbers, whatever is tried.
    pub ranges: &'k [(String, f64, f64)],
}

impl Known<'_> {
    /// Are a buffer's contents part of the program?
    pub fn is_given(self, name: &str, described: &Described<'_>) -> bool {
        is_given(described) && !self.open.iter().any(|open| open == name)
    }

    /// Are they as the description says, for whatever reason?
    pub fn is_kept(self, name: &str, described: &Described<'_>) -> bool {
        let is_fixed = self.fixed.iter().any(|fixed| fixed == name);
        is_fixed || described.buffer.table.is_some() || self.is_given(name, described)
    }
}
