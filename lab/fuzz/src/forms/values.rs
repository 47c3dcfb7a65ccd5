//! The operands of the campaign: special and random words, the same ones in every run.

use warpwright_ptx::Type;

/// Threads that run a form, each with operands of its own.
pub const THREADS: usize = 1024;

/// Different operands of a thread, for each sort.
pub const PLACES: usize = 8;

/// What an operand's bits are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Integers, masks, shift amounts, packed narrow numbers.
    Bits,
    /// Two `.f32`.
    Single,
    /// One `.f64`.
    Double,
    /// Four `.f16`.
    Half,
    /// Four `.bf16`.
    Brain,
    /// Small whole numbers: sums of products are exact in whatever order.
    WholeSingle,
    /// The same in `.f64`.
    WholeDouble,
    /// The same in `.f16`.
    WholeHalf,
    /// The same in `.bf16`.
    WholeBrain,
    /// The same in `.e4m3`.
    WholeE4m3,
    /// The same in `.e5m2`.
    WholeE5m2,
}

use Sort::*;

const SORTS: [Sort; 11] = [
    Bits,
    Single,
    Double,
    Half,
    Brain,
    WholeSingle,
    WholeDouble,
    WholeHalf,
    WholeBrain,
    WholeE4m3,
    WholeE5m2,
];

impl Sort {
    /// Special and random values of a type.
    pub fn of(ty: Type) -> Sort {
        match ty {
            Type::F32 | Type::Tf32 | Type::F32x2 => Single,
            Type::F64 => Double,
            Type::F16 | Type::F16x2 => Half,
            Type::Bf16 | Type::Bf16x2 => Brain,
            _ => Bits,
        }
    }

    /// Values of a matrix element whose products add up exactly.
    pub fn whole(ty: Type) -> Sort {
        match ty {
            Type::F32 | Type::Tf32 => WholeSingle,
            Type::F64 => WholeDouble,
            Type::F16 => WholeHalf,
            Type::Bf16 => WholeBrain,
            Type::E4m3 => WholeE4m3,
            Type::E5m2 => WholeE5m2,
            _ => Bits,
        }
    }

    /// Where the word of thread 0 stands in the table, in bytes; that of thread `t` stands `8 * t` behind it.
    pub fn offset(self, place: usize) -> usize {
        let sort = SORTS.iter().position(|&s| s == self).unwrap_or(0);
        (sort * PLACES + place % PLACES) * THREADS * 8
    }
}

/// The sort of a name.
pub fn named(name: &str) -> Option<Sort> {
    SORTS.into_iter().find(|sort| format!("{sort:?}") == name)
}

/// The table of all operands.
pub fn table() -> Vec<u8> {
    let words = SORTS.iter().flat_map(|&sort| {
        (0..PLACES).flat_map(move |place| (0..THREADS).map(move |t| word(sort, place, t)))
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// A word of a table's bytes.
pub fn read(table: &[u8], sort: Sort, place: usize, thread: usize) -> u64 {
    let at = sort.offset(place) + 8 * thread;
    let bytes = table.get(at..at + 8).and_then(|b| b.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

fn word(sort: Sort, place: usize, thread: usize) -> u64 {
    // Every sixteenth thread has the same value in the first two places: comparisons see equal operands.
    let place = if thread % 16 == 7 && place == 1 {
        0
    } else {
        place
    };
    let seed = scramble((sort as u64) << 40 | (place as u64) << 20 | thread as u64);
    let part = |i: u64| scramble(seed ^ (i + 1) << 52);
    let is_special = thread < THREADS / 2;
    let pack = |bits: u32, specials: &[u64]| {
        (0..64 / bits).fold(0, |word, i| {
            let value = match is_special {
                true => specials[part(i.into()) as usize % specials.len()],
                false => random_float(bits, part(i.into())),
            };
            word | value << (bits * i) as u64
        })
    };
    match sort {
        Bits => integer(is_special, seed, part(0)),
        Single => pack(32, SINGLES),
        Double => match is_special {
            true => DOUBLES[part(0) as usize % DOUBLES.len()],
            false => random_double(part(0)),
        },
        Half => pack(16, HALVES),
        Brain => pack(16, BRAINS),
        WholeDouble => (whole(part(0)) as f64).to_bits(),
        WholeSingle => {
            let one = |i| u64::from((whole(part(i)) as f32).to_bits());
            one(0) | one(1) << 32
        }
        WholeHalf => packed(
            16,
            &[0, 0x3c00, 0x4000, 0x4200, 0xbc00, 0xc000, 0xc200],
            part,
        ),
        WholeBrain => packed(
            16,
            &[0, 0x3f80, 0x4000, 0x4040, 0xbf80, 0xc000, 0xc040],
            part,
        ),
        WholeE4m3 => packed(8, &[0, 0x38, 0x40, 0x44, 0xb8, 0xc0, 0xc4], part),
        WholeE5m2 => packed(8, &[0, 0x3c, 0x40, 0x42, 0xbc, 0xc0, 0xc2], part),
    }
}

fn whole(random: u64) -> i64 {
    (random % 7) as i64 - 3
}

fn packed(bits: u32, codes: &[u64], part: impl Fn(u64) -> u64) -> u64 {
    (0..64 / bits).fold(0, |word, i| {
        word | codes[part(i.into()) as usize % codes.len()] << (bits * i) as u64
    })
}

/// A special integer, or random bits: all of them, few, or only low ones.
fn integer(is_special: bool, seed: u64, random: u64) -> u64 {
    match (is_special, seed % 4) {
        (true, 0) => random % 72,
        (true, _) => INTEGERS[random as usize % INTEGERS.len()],
        (false, 0) => random >> ((seed >> 8) % 64),
        (false, 1) => random & scramble(random),
        (false, _) => random,
    }
}

/// A float of 16 or 32 bits: any bits, or in every second case an ordinary size.
fn random_float(bits: u32, random: u64) -> u64 {
    let mask = (1u64 << bits) - 1;
    match (bits, random >> 62) {
        (32, 0 | 1) => random & 0x8fff_ffff & mask | 0x3800_0000,
        _ => random & mask,
    }
}

fn random_double(random: u64) -> u64 {
    match random & 3 {
        0 | 1 => random & 0x80ff_ffff_ffff_ffff | 0x3f00_0000_0000_0000,
        _ => random,
    }
}

/// The finaliser of MurmurHash3: bits that look random.
pub fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    3,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_fffe,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    u64::MAX,
    u64::MAX - 1,
    0x0123_4567_89ab_cdef,
    0x8080_8080_8080_8080,
    0x7f7f_7f7f_7f7f_7f7f,
    0x8000_8000_8000_8000,
    0x7fff_7fff_7fff_7fff,
    0xffff_ffff_0000_0000,
    0xff00_ff00_ff00_ff00,
    0x8000_0000_7fff_ffff,
    0x5555_5555_aaaa_aaaa,
];

const SINGLES: &[u64] = &[
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x7f_ffff,
    0x807f_ffff,
    0x80_0000,
    0x8080_0000,
    0x80_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x4040_0000,
    0xc020_0000,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0001,
    0xffc1_2345,
    0x7f80_0001,
    0xff80_0001,
    0x7fff_ffff,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x4eff_ffff,
    0x4f80_0000,
    0x5f00_0000,
    0xdf00_0000,
    0x5f80_0000,
    0x477f_e000,
    0x477f_f000,
    0x3880_0000,
    0x3300_0000,
    0x3380_0000,
    0x43e0_0000,
    0x43e8_0000,
    0x4760_0000,
    0x3f80_1000,
    0x3f80_8000,
    0x3f81_8000,
    0x42fe_0000,
    0x437f_0000,
    0x4b80_0001,
];

const DOUBLES: &[u64] = &[
    0,
    0x8000_0000_0000_0000,
    1,
    0x8000_0000_0000_0001,
    0xf_ffff_ffff_ffff,
    0x10_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x4008_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0001,
    0xfff8_1234_5678_9abc,
    0x7ff0_0000_0000_0001,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x41df_ffff_ffc0_0000,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0000_0000,
    0x41ef_ffff_ffe0_0000,
    0x43e0_0000_0000_0000,
    0xc3e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_f000_0000,
    0x3810_0000_0000_0000,
    0x36a0_0000_0000_0000,
    0x3690_0000_0000_0000,
    0x40ef_fc00_0000_0000,
    0x40ef_fe00_0000_0000,
];

const HALVES: &[u64] = &[
    0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x4200, 0xc100,
    0x3800, 0xb800, 0x3e00, 0x7c00, 0xfc00, 0x7e01, 0xfe12, 0x7c01, 0xfc01, 0x7fff, 0x7bff, 0xfbff,
    0x5bf8, 0x57e0, 0x77ff,
];

const BRAINS: &[u64] = &[
    0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x4040, 0xc020,
    0x3f00, 0xbf00, 0x3fc0, 0x7f80, 0xff80, 0x7fc1, 0xffc2, 0x7f81, 0xff81, 0x7fff, 0x7f7f, 0xff7f,
    0x4f00, 0xcf00, 0x5f00,
];
