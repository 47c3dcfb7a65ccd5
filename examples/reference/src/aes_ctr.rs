//! AES in counter mode, byte by byte after FIPS 197; the S-box comes from its definition.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

/// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
fn mul(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 != 0 { 0x1B } else { 0 };
        b >>= 1;
    }
    product
}

/// FIPS 197, 5.1.1: the inverse (a^254), then the affine map.
fn sbox() -> [u8; 256] {
    std::array::from_fn(|x| {
        let x = x as u8;
        let inverse = (0..254).fold(1, |power, _| mul(power, x));
        (1..5).fold(inverse ^ 0x63, |s, by| s ^ inverse.rotate_left(by))
    })
}

/// A block under round keys; byte `r + 4 c` is row r, column c.
fn encrypt(sbox: &[u8; 256], keys: &[[u8; 16]], block: [u8; 16]) -> [u8; 16] {
    let xor = |a: [u8; 16], b: &[u8; 16]| -> [u8; 16] { std::array::from_fn(|i| a[i] ^ b[i]) };
    let last = keys.len() - 1;
    let mut s = xor(block, &keys[0]);
    for (round, key) in keys.iter().enumerate().skip(1) {
        s = s.map(|byte| sbox[usize::from(byte)]);
        s = std::array::from_fn(|i| s[(i + 4 * (i % 4)) % 16]);
        if round != last {
            s = std::array::from_fn(|i| {
                let at = |k: usize| s[i / 4 * 4 + (i + k) % 4];
                mul(at(0), 2) ^ mul(at(1), 3) ^ at(2) ^ at(3)
            });
        }
        s = xor(s, key);
    }
    s
}

/// Little-endian words as the 16 bytes of each block.
fn bytes(words: &[u64]) -> Vec<[u8; 16]> {
    let byte = |block: &[u64], i: usize| (block[i / 4] >> (8 * (i % 4))) as u8;
    words
        .chunks_exact(4)
        .map(|block| std::array::from_fn(|i| byte(block, i)))
        .collect()
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let keys = bytes(&data.words("keys")?);
    let mut counter = data.words("nonce")?;
    counter.push(0);
    let [counter] = bytes(&counter)[..] else {
        return None;
    };
    let plain = bytes(&data.words("plain")?);
    let sbox = sbox();
    let cipher: Vec<[u8; 16]> = plain
        .par_iter()
        .enumerate()
        .map(|(number, text)| {
            let mut counter = counter;
            counter[12..].copy_from_slice(&(number as u32).to_be_bytes());
            let stream = encrypt(&sbox, &keys, counter);
            std::array::from_fn(|i| text[i] ^ stream[i])
        })
        .collect();
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
    let cipher = cipher
        .iter()
        .flat_map(|block| block.chunks_exact(4).map(word))
        .collect();
    Some(vec![words("cipher", cipher)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, 5.2, for a key of 16 bytes.
    fn expand(sbox: &[u8; 256], key: [u8; 16]) -> Vec<[u8; 16]> {
        let mut keys = vec![key];
        let mut constant = 1;
        for _ in 0..10 {
            let before = keys[keys.len() - 1];
            let mut next = [0; 16];
            for i in 0..16 {
                next[i] = before[i]
                    ^ match i {
                        0 => sbox[usize::from(before[13])] ^ constant,
                        1..4 => sbox[usize::from(before[12 + (i + 1) % 4])],
                        _ => next[i - 4],
                    };
            }
            constant = mul(constant, 2);
            keys.push(next);
        }
        keys
    }

    #[test]
    fn the_standards_example() {
        // FIPS 197, appendix C.1.
        let sbox = sbox();
        let keys = expand(&sbox, std::array::from_fn(|i| i as u8));
        let cipher = encrypt(&sbox, &keys, std::array::from_fn(|i| (i * 0x11) as u8));
        let hex: String = cipher.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "69c4e0d86a7b0430d8cdb78070b4c55a");
    }
}
