//! The pricer's paths with the same random words (Philox is exact) and everything else in f64.

use crate::data::{Data, Output, floats};

const ASSETS: usize = 8;

/// Philox4x32-10: ten rounds of two 32 x 32 bit products.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let left = u64::from(counter[0]) * 0xD251_1F53;
        let right = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (right >> 32) as u32 ^ counter[1] ^ key[0],
            right as u32,
            (left >> 32) as u32 ^ counter[3] ^ key[1],
            left as u32,
        ];
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    counter
}

/// Box and Muller's transform of the upper 24 bits of two words.
fn normals(a: u32, b: u32) -> [f64; 2] {
    let u = (f64::from(a >> 8) + 0.5) / 2f64.powi(24);
    let angle = 2.0 * std::f64::consts::PI * f64::from(b >> 8) / 2f64.powi(24);
    let radius = (-2.0 * u.ln()).sqrt();
    [radius * angle.cos(), radius * angle.sin()]
}

struct Market {
    spot: Vec<f64>,
    weight: Vec<f64>,
    drift: Vec<f64>,
    /// Lower triangle, row by row.
    factor: Vec<f64>,
    strike: f64,
    discount: f64,
}

impl Market {
    fn new(structure: &[f64]) -> Option<Market> {
        let (arrays, scalars) =
            structure.split_at_checked(3 * ASSETS + ASSETS * (ASSETS + 1) / 2)?;
        let &[strike, discount] = scalars else {
            return None;
        };
        Some(Market {
            spot: arrays[..ASSETS].to_vec(),
            weight: arrays[ASSETS..2 * ASSETS].to_vec(),
            drift: arrays[2 * ASSETS..3 * ASSETS].to_vec(),
            factor: arrays[3 * ASSETS..].to_vec(),
            strike,
            discount,
        })
    }

    /// The discounted payoff of one path.
    fn payoff(&self, path: u32, steps: u32, seed: u32) -> f64 {
        let mut log_price = [0.0; ASSETS];
        let mut total = 0.0;
        for step in 0..steps {
            let mut normal = Vec::new();
            for half in 0..2 {
                let [a, b, c, d] = philox([path, step, half, 0], [seed, 0x5EED]);
                normal.extend(normals(a, b));
                normal.extend(normals(c, d));
            }
            for (asset, log_price) in log_price.iter_mut().enumerate() {
                let row = &self.factor[asset * (asset + 1) / 2..][..=asset];
                let diffusion: f64 = row.iter().zip(&normal).map(|(f, z)| f * z).sum();
                *log_price += self.drift[asset] + diffusion;
                total += self.weight[asset] * self.spot[asset] * log_price.exp();
            }
        }
        self.discount * (total / f64::from(steps) - self.strike).max(0.0)
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (blocks, steps) = (
        data.param("blocks")?,
        u32::try_from(data.param("steps")?).ok()?,
    );
    let seed = u32::try_from(data.int_scalar("seed")?).ok()?;
    let market = Market::new(&data.structure("market")?)?;
    let threads = data.block_threads();
    let mut sums = vec![0.0; 2 * blocks];
    for block in 0..blocks {
        for thread in 0..threads {
            let payoff = market.payoff((block * threads + thread) as u32, steps, seed);
            sums[block] += payoff;
            sums[blocks + block] += payoff * payoff;
        }
    }
    Some(vec![floats("sums", sums)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_words() {
        // Known answers published with the generator (Random123, kat_vectors).
        let zero = philox([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
        let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]);
    }
}
