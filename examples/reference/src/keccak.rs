//! SHA3-256 of 64-byte messages, from FIPS 202: rotation offsets and round constants come from
//! their definitions (the walk over the lanes, and the shift register), not from tables.

use crate::data::{Data, Output, words};

/// Offset of lane (x, y): FIPS 202, 3.2.2.
fn rotations() -> [[u32; 5]; 5] {
    let mut offsets = [[0; 5]; 5];
    let (mut x, mut y) = (1, 0);
    for t in 0..24u32 {
        offsets[x][y] = (t + 1) * (t + 2) / 2 % 64;
        (x, y) = (y, (2 * x + 3 * y) % 5);
    }
    offsets
}

/// Round constants: FIPS 202, 3.2.5.
fn round_constants() -> [u64; 24] {
    let mut register = 1u32;
    let mut next_bit = || {
        let bit = u64::from(register & 1);
        // x^8 + x^6 + x^5 + x^4 + 1, the register's lowest bit leaving first.
        register <<= 1;
        if register & 0x100 != 0 {
            register ^= 0x171;
        }
        bit
    };
    std::array::from_fn(|_| (0..7).fold(0, |word, j| word | next_bit() << ((1u32 << j) - 1)))
}

/// Keccak-f[1600] on `a[x][y]`.
fn permute(mut a: [[u64; 5]; 5]) -> [[u64; 5]; 5] {
    let offsets = rotations();
    for constant in round_constants() {
        let parity: [u64; 5] = a.map(|column| column.iter().fold(0, |p, lane| p ^ lane));
        let mut b = [[0; 5]; 5];
        for x in 0..5 {
            for y in 0..5 {
                let mix = parity[(x + 4) % 5] ^ parity[(x + 1) % 5].rotate_left(1);
                b[y][(2 * x + 3 * y) % 5] = (a[x][y] ^ mix).rotate_left(offsets[x][y]);
            }
        }
        for x in 0..5 {
            for y in 0..5 {
                a[x][y] = b[x][y] ^ (!b[(x + 1) % 5][y] & b[(x + 2) % 5][y]);
            }
        }
        a[0][0] ^= constant;
    }
    a
}

/// SHA3-256 of a message of eight 64-bit words, as four words.
fn sha3_256(message: [u64; 8]) -> [u64; 4] {
    let mut bytes = [0u8; 136];
    for (to, word) in bytes.chunks_exact_mut(8).zip(message) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes[64] = 0x06;
    bytes[135] |= 0x80;
    let mut state = [[0; 5]; 5];
    for (lane, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        state[lane % 5][lane / 5] = u64::from_le_bytes(*chunk);
    }
    let state = permute(state);
    std::array::from_fn(|lane| state[lane % 5][lane / 5])
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let parents = data.param("parents")?;
    let children = data.words("children")?;
    let mut out = vec![0; 4 * parents];
    for i in 0..parents {
        let digest = sha3_256(std::array::from_fn(|k| children[k * parents + i]));
        (0..4).for_each(|k| out[k * parents + i] = digest[k]);
    }
    Some(vec![words("parent", out)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_other_implementations() {
        // SHA3-256 of the bytes 0, 1, ... 63, from Python's hashlib.
        let message =
            std::array::from_fn(|k| u64::from_le_bytes(std::array::from_fn(|b| (8 * k + b) as u8)));
        let digest: Vec<u8> = sha3_256(message)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "c8ad478f4e1dd9d47dfc3b985708d92db1f8db48fe9cddd459e63c321f490402"
        );
    }
}
