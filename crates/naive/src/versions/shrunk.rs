//! The same kernel with smaller constants: where a file fixes its sizes, no launch of it is small.

use warpwright_cudac::constants::{constants, with_values};
use warpwright_cudac::diag::Source;
use warpwright_ladder::Read;

use super::Problem;

/// Values for the constants of a file, one after the other: odd ones, whole vectors, whole tiles. All are above those
/// that a generated kernel has written out.
const ROUNDS: [[i64; 3]; 5] = [
    [67, 69, 71],
    [132, 76, 68],
    [256, 128, 96],
    [96, 256, 128],
    [128, 96, 256],
];

impl Problem {
    /// The kernel with smaller constants, where these make no other kernel of it.
    pub fn shrunk<'a>(&'a self, read: &'a Read<'_>) -> impl Iterator<Item = Problem> + 'a {
        let found = constants(&self.file);
        let rounds = if found.is_empty() {
            &[][..]
        } else {
            &ROUNDS[..]
        };
        rounds.iter().filter_map(move |round| {
            let values = found.iter().zip(round.iter().cycle());
            let values: Vec<i64> = values.map(|(own, value)| own.value.min(*value)).collect();
            let text = with_values(&self.file, &found, &values);
            let file = read(Source::new(&*self.file.source.name, text))?;
            let mut kernels = file.kernels.iter();
            let header = kernels.find(|header| header.name.text == self.header.name.text);
            let header = header?.clone();
            let small = Problem::new(file, &header).ok()?;
            let shape = |of: &Problem| {
                let kernel = &of.kernel;
                let mut statements = 0;
                for statement in &kernel.body {
                    statement.walk(&mut |_| statements += 1);
                }
                [
                    kernel.dims.len(),
                    kernel.loops.len(),
                    kernel.arrays.len(),
                    kernel.accesses.len(),
                    statements,
                ]
            };
            (shape(&small) == shape(self)).then_some(small)
        })
    }
}
