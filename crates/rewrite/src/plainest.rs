//! Inputs as plain as a difference lets them be: zeros, else ones, else what showed it.

use crate::pairing::{self, Described, Paired};
use crate::standing::{AtLaunch, Why};
use crate::tested::{self, Difference, Filling, Memory, Ran, Scale, differences, run_within};
use crate::{Side, Which};

/// Runs of both sides.
const MOST: usize = 400;
/// Warp instructions of a block, and of all blocks, of each.
const BUDGET: tested::Budget = [1 << 20, 1 << 22];
/// Elements that are named.
const NAMED: usize = 4;

/// The difference that was shown at a launch, on the plainest inputs that show one; `None` where none was shown on numbers,
/// or where it is one of rounding.
pub fn plainest(a: &Side, b: &Side, paired: &Paired, found: &AtLaunch) -> Option<Why> {
    let fixed = found.why.iter().find_map(|why| match why {
        Why::Fixed(names) | Why::Stated(names) => Some(&names[..]),
        _ => None,
    });
    let all = pairing::buffers(a).into_iter();
    let data = all.filter_map(|(name, own)| {
        let is_fixed = fixed.is_some_and(|names| names.contains(&name));
        let plain = plain(&own).filter(|_| pairing::is_data(&own) && !is_fixed)?;
        let mut partners = paired.partner.iter();
        let partner = partners.find(|(_, x)| **x == name)?.0.clone();
        let size = own.buffer.ty.size();
        Some(Data {
            name,
            partner,
            size,
            plain,
            ty: own.buffer.ty,
        })
    });
    let mut search = Search {
        sides: [a, b],
        paired,
        memory: found.witness()?.clone(),
        runs: 0,
        shown: None,
    };
    search.shown = search.difference(&search.memory);
    search.shown.as_ref()?;
    let data: Vec<Data> = data.collect();
    for at in 0..2 {
        let places = search.others(&data, at);
        search.reduced(&data, &places, at);
    }
    let inputs = search.text(&data);
    let shown = search.shown?;
    Some(Why::Shown {
        output: shown.output,
        index: shown.index,
        inputs,
        values: shown.values,
        witness: Box::new(search.memory),
    })
}

/// A buffer of data, and the bits that its plainest elements have.
struct Data {
    name: String,
    partner: String,
    ty: warpwright_launch::ElemType,
    size: usize,
    plain: Vec<u64>,
}

/// Zero and one, as far as the description lets them be.
fn plain(own: &Described<'_>) -> Option<Vec<u64>> {
    let (ty, buffer) = (own.buffer.ty, own.buffer);
    let bits: Vec<u64> = match ty.is_float() {
        true => {
            let range = match &buffer.init {
                warpwright_launch::Init::UniformFloat { .. } => crate::errors::described(own),
                _ => None,
            };
            let holds = |x: f64| range.is_none_or(|range| range.low <= x && x <= range.high);
            let all = [0.0, 1.0].into_iter().filter(|&x| holds(x));
            all.map(|x| ty.float_bits(x)).collect()
        }
        false => {
            let (low, high) = tested::integers(buffer)?;
            let all = [0, 1].into_iter().filter(|x| (low..=high).contains(x));
            all.filter_map(|x| ty.int_bits(x)).collect()
        }
    };
    (!bits.is_empty()).then_some(bits)
}

struct Search<'s> {
    sides: [&'s Side; 2],
    paired: &'s Paired,
    memory: [Memory; 2],
    runs: usize,
    shown: Option<Difference>,
}

impl Search<'_> {
    fn difference(&self, memory: &[Memory; 2]) -> Option<Difference> {
        let mut after = memory.clone();
        let [first, second] = &mut after;
        run_within(self.sides[0], Which::First, first, BUDGET).ok()?;
        run_within(self.sides[1], Which::Second, second, BUDGET).ok()?;
        let ran = Ran {
            before: memory,
            after: &after,
            budget: BUDGET,
        };
        // Not as described: where the original leaves the numbers, nothing is said.
        let how = (Filling::Whole(0), &Scale::new());
        let found = differences(self.sides, self.paired, how, &ran);
        found.into_iter().find(|difference| !difference.small)
    }

    /// Elements that have none of the first plain values.
    fn others(&self, data: &[Data], at: usize) -> Vec<(usize, usize)> {
        let of = |(number, own): (usize, &Data)| {
            let bytes = self.memory[0].get(&own.name);
            let elements = bytes
                .into_iter()
                .flat_map(|bytes| bytes.chunks_exact(own.size));
            let known = own.plain.get(..=at).unwrap_or(&own.plain).to_vec();
            let ty = own.ty;
            let others = elements.enumerate();
            let others = others.filter(move |(_, e)| !known.contains(&ty.read(e)));
            others
                .map(move |(index, _)| (number, index))
                .collect::<Vec<_>>()
        };
        data.iter().enumerate().flat_map(of).collect()
    }

    /// Makes as many elements as possible plain: all at once, else either half of them.
    fn reduced(&mut self, data: &[Data], places: &[(usize, usize)], at: usize) {
        if places.is_empty() || self.runs >= MOST {
            return;
        }
        let mut memory = self.memory.clone();
        for &(number, index) in places {
            let own = &data[number];
            let Some(bits) = own.plain.get(at.min(own.plain.len() - 1)) else {
                continue;
            };
            for (side, name) in [(0, &own.name), (1, &own.partner)] {
                let place = index * own.size..(index + 1) * own.size;
                let bytes = memory[side]
                    .get_mut(name)
                    .and_then(|bytes| bytes.get_mut(place));
                if let Some(bytes) = bytes {
                    bytes.copy_from_slice(&bits.to_le_bytes()[..own.size]);
                }
            }
        }
        self.runs += 1;
        match self.difference(&memory) {
            Some(shown) => (self.memory, self.shown) = (memory, Some(shown)),
            None if places.len() > 1 => {
                let (one, other) = places.split_at(places.len() / 2);
                self.reduced(data, one, at);
                self.reduced(data, other, at);
            }
            None => {}
        }
    }

    /// `x[2]` = 1, zeros elsewhere in `x`
    fn text(&self, data: &[Data]) -> String {
        if data.is_empty() {
            return Filling::Described.text();
        }
        let others = self.others(data, 0);
        let named = others.iter().take(NAMED).filter_map(|&(number, index)| {
            let own = &data[number];
            let bytes = self.memory[0].get(&own.name)?;
            let bits = own
                .ty
                .read(bytes.get(index * own.size..(index + 1) * own.size)?);
            let value = tested::number(own.ty.to_f64(bits));
            Some(format!("`{}[{index}]` = {value}", own.name))
        });
        let mut named: Vec<String> = named.collect();
        if others.len() > NAMED {
            named.push(format!("{} more", others.len() - NAMED));
        }
        let zeros = match data.iter().all(|own| own.plain[0] == 0) {
            true => "zeros",
            false => "zeros or ones",
        };
        let names: Vec<String> = data.iter().map(|own| format!("`{}`", own.name)).collect();
        named.push(format!("{zeros} elsewhere in {}", names.join(", ")));
        named.join(", ")
    }
}
