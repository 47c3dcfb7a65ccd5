//! Bits: values that are put together of pieces, and what is computed bit by bit.
//!
//! A piece is so many bits of a value. Values that are zeros above, shifts by constants, masks and packed values all come
//! down to pieces side by side, low ones first, and a bitwise function of such values to one for each piece. Neighbours
//! that are parts of one value, or the same function of parts, are joined again. So there is one form for a mask and a
//! truncation, for `prmt` and packing, for `lop3` and what it does at once.

use smallvec::SmallVec;

use crate::term::{Args, Head, Term, Terms, truncate};

/// So many bits, and what they are.
type Piece = (u32, Term);

pub(crate) type Pieces = SmallVec<[Piece; 8]>;

/// A value of more pieces is taken as a whole.
const MOST_PIECES: usize = 16;

/// Arguments of one bitwise function: its table has 64 entries.
const MOST_ARGUMENTS: usize = 6;

impl Terms {
    /// Pieces that a value is visibly made of. `is_argument`: of something that is computed bit by bit, for which
    /// constants and shifts are taken apart, too.
    fn pieces(&mut self, bits: u32, a: Term, is_argument: bool) -> Pieces {
        let whole = Pieces::from_slice(&[(bits, a)]);
        match self.head(a) {
            Head::ZeroExtend(from, _) if from < bits => {
                let inner = self.args(a)[0];
                let mut pieces = self.pieces(from, inner, is_argument);
                pieces.push((bits - from, self.zero()));
                pieces
            }
            Head::Concat => {
                let args = Args::from_slice(self.args(a));
                let parts = args.chunks_exact(2);
                let pieces: Pieces = parts
                    .filter_map(|part| Some((self.as_const(part[1])? as u32, part[0])))
                    .collect();
                let covered: u32 = pieces.iter().map(|piece| piece.0).sum();
                if covered == bits { pieces } else { whole }
            }
            Head::Const(value) if is_argument && bits <= u64::BITS => {
                self.runs(bits, value).unwrap_or(whole)
            }
            Head::Mul(width) if is_argument && width == bits => {
                let [x, factor] = [self.args(a)[0], self.args(a)[1]];
                match self.as_power(factor).filter(|&by| by > 0 && by < bits) {
                    Some(by) => {
                        let rest = self.extract(0, bits - by, bits, x);
                        let mut pieces = Pieces::from_slice(&[(by, self.zero())]);
                        pieces.extend(self.pieces(bits - by, rest, is_argument));
                        pieces
                    }
                    None => whole,
                }
            }
            _ => whole,
        }
    }

    /// A constant as runs of equal bits, if these are few.
    fn runs(&mut self, bits: u32, value: u64) -> Option<Pieces> {
        let mut pieces = Pieces::new();
        let mut at = 0;
        while at < bits {
            let rest = value >> at;
            let ones = rest & 1 == 1;
            let run = if ones {
                rest.trailing_ones()
            } else {
                rest.trailing_zeros()
            };
            let run = run.min(bits - at);
            let constant = self.constant(if ones { truncate(u64::MAX, run) } else { 0 });
            pieces.push((run, constant));
            at += run;
        }
        (pieces.len() <= MOST_PIECES / 2).then_some(pieces)
    }

    /// Pieces side by side, the low one first.
    pub(crate) fn join_pieces(&mut self, parts: &[Piece]) -> Term {
        let mut joined = Pieces::new();
        let mut flat = Pieces::new();
        for &(bits, part) in parts {
            flat.extend(self.pieces(bits, part, false));
        }
        for (bits, part) in flat {
            match joined.last().copied() {
                Some((before, low)) => match self.together((before, low), (bits, part)) {
                    Some(both) => {
                        *joined.last_mut().unwrap_or(&mut (0, low)) = (before + bits, both)
                    }
                    None => joined.push((bits, part)),
                },
                None => joined.push((bits, part)),
            }
        }
        self.of_pieces(&joined)
    }

    fn of_pieces(&mut self, pieces: &[Piece]) -> Term {
        let total: u32 = pieces.iter().map(|piece| piece.0).sum();
        let is_zero = |terms: &Terms, term| terms.as_const(term) == Some(0);
        match *pieces {
            [] => self.zero(),
            [(_, only)] => only,
            [ref rest @ .., (bits, last)] if is_zero(self, last) => {
                let rest = self.of_pieces(rest);
                self.zero_extend(total - bits, total, rest)
            }
            [(by, first), (bits, rest)] if is_zero(self, first) && total <= 64 => {
                let whole = match self.head(rest) {
                    Head::Extract { lo: 0, of, .. } if of == total => self.args(rest)[0],
                    _ => self.zero_extend(bits, total, rest),
                };
                let factor = self.constant(1 << by);
                self.mul(total, whole, factor)
            }
            _ => {
                let mut args = Args::new();
                for &(bits, part) in pieces {
                    args.extend([part, self.constant(bits.into())]);
                }
                self.make(Head::Concat, args)
            }
        }
    }

    /// Two neighbours as one piece, the low one first.
    fn together(&mut self, (low_bits, low): Piece, (bits, high): Piece) -> Option<Term> {
        if let (Some(a), Some(b)) = (self.as_const(low), self.as_const(high)) {
            let fits = low_bits + bits <= 64;
            return fits.then(|| self.constant(a | b << low_bits));
        }
        match (self.head(low), self.head(high)) {
            // The low part of a sum may stand there as a sum of its own: the high one tells of what it is a part.
            (_, Head::Extract { lo, of, .. }) if lo >= low_bits => {
                let whole = self.args(high)[0];
                let below = self.extract(lo - low_bits, low_bits, of, whole);
                (below == low).then(|| self.extract(lo - low_bits, low_bits + bits, of, whole))
            }
            // What continues the low part does so with copies of its sign above it, too.
            (_, Head::SignExtend(from, to)) if from > 1 => {
                let inner = (from, self.args(high)[0]);
                let both = self.together((low_bits, low), inner)?;
                Some(self.sign_extend(low_bits + from, low_bits + to, both))
            }
            // Copies of a sign stand above it.
            (_, Head::SignExtend(1, _)) => {
                let sign = self.extract(low_bits - 1, 1, low_bits, low);
                (self.args(high) == [sign])
                    .then(|| self.sign_extend(low_bits, low_bits + bits, low))
            }
            (Head::Logic { table, .. }, Head::Logic { table: other, .. }) => {
                let [args, others] = [low, high].map(|part| Args::from_slice(self.args(part)));
                if args.len() != others.len() || args.len() > 3 || low_bits + bits > u64::BITS {
                    return None;
                }
                let orders: &[&[usize]] = match args.len() {
                    1 => &[&[0]],
                    2 => &[&[0, 1], &[1, 0]],
                    _ => &[
                        &[0, 1, 2],
                        &[0, 2, 1],
                        &[1, 0, 2],
                        &[1, 2, 0],
                        &[2, 0, 1],
                        &[2, 1, 0],
                    ],
                };
                orders.iter().find_map(|order| {
                    if reordered(other, order) != table {
                        return None;
                    }
                    let pairs = args.iter().zip(*order);
                    let whole: Option<Args> = pairs
                        .map(|(&arg, &at)| self.together((low_bits, arg), (bits, others[at])))
                        .collect();
                    Some(self.logic(low_bits + bits, table, &whole?))
                })
            }
            _ => None,
        }
    }

    /// Bits `lo..lo + bits` of pieces.
    pub(crate) fn extract_pieces(&mut self, lo: u32, bits: u32, of: u32, a: Term) -> Term {
        let (mut at, mut found) = (0, Pieces::new());
        let pieces = self.pieces(of, a, false);
        if pieces.len() < 2 {
            return self.make(Head::Extract { lo, bits, of }, [a]);
        }
        for (size, part) in pieces {
            let (from, to) = (lo.max(at), (lo + bits).min(at + size));
            if from < to {
                let cut = self.extract(from - at, to - from, size, part);
                found.push((to - from, cut));
            }
            at += size;
        }
        self.join_pieces(&found)
    }

    /// A function of each bit of values of so many bits: bit i of `table` is what it gives where the bits of the
    /// arguments, the first one lowest, are i.
    pub(crate) fn logic(&mut self, bits: u32, table: u64, args: &[Term]) -> Term {
        let values: Option<SmallVec<[u64; 4]>> =
            args.iter().map(|&arg| self.as_const(arg)).collect();
        if let Some(values) = values.filter(|_| bits <= u64::BITS) {
            return self.constant(of_numbers(bits, table, &values));
        }
        let split: Vec<Pieces> = args
            .iter()
            .map(|&arg| self.pieces(bits, arg, true))
            .collect();
        let mut cuts: Vec<u32> = Vec::new();
        for pieces in &split {
            let mut at = 0;
            cuts.extend(pieces.iter().map(|piece| {
                at += piece.0;
                at
            }));
        }
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len() <= 1 || cuts.len() > MOST_PIECES {
            return self.logic_of_wholes(bits, table, args);
        }
        let (mut from, mut pieces) = (0, Pieces::new());
        for to in cuts {
            let cut: Args = args
                .iter()
                .map(|&arg| self.cut(from, to - from, bits, arg))
                .collect();
            let piece = self.logic_of_wholes(to - from, table, &cut);
            pieces.push((to - from, piece));
            from = to;
        }
        self.join_pieces(&pieces)
    }

    /// The same as [`Terms::extract`], through a shift.
    fn cut(&mut self, lo: u32, bits: u32, of: u32, a: Term) -> Term {
        let mut at = 0;
        for (size, part) in self.pieces(of, a, true) {
            if at <= lo && lo + bits <= at + size {
                return self.extract(lo - at, bits, size, part);
            }
            at += size;
        }
        self.extract(lo, bits, of, a)
    }

    fn logic_of_wholes(&mut self, bits: u32, table: u64, args: &[Term]) -> Term {
        let ones = truncate(u64::MAX, bits);
        let mut atoms = Args::new();
        for &arg in args {
            let inner: Args = match self.head(arg) {
                Head::Logic { bits: width, .. } if width == bits => {
                    Args::from_slice(self.args(arg))
                }
                Head::Const(value) if value == 0 || value == ones => Args::new(),
                _ => Args::from_slice(&[arg]),
            };
            atoms.extend(
                inner
                    .into_iter()
                    .filter(|atom| !atoms.contains(atom))
                    .collect::<Args>(),
            );
        }
        let mut is_flat = false;
        if atoms.len() > MOST_ARGUMENTS {
            atoms = Args::from_slice(args);
            is_flat = true;
        }
        atoms.sort_unstable();
        atoms.dedup();
        let mut result = 0u64;
        for row in 0..1u64 << atoms.len() {
            let bit = |term: Term| {
                atoms
                    .iter()
                    .position(|&atom| atom == term)
                    .map_or(0, |at| row >> at & 1)
            };
            let index = args.iter().enumerate().fold(0, |index, (number, &arg)| {
                let value = match self.head(arg) {
                    _ if is_flat => bit(arg),
                    Head::Logic { bits: width, table } if width == bits => {
                        let inner = self.args(arg).iter().enumerate();
                        table >> inner.fold(0, |at, (n, &atom)| at | bit(atom) << n) & 1
                    }
                    Head::Const(value) if value == 0 || value == ones => value & 1,
                    _ => bit(arg),
                };
                index | value << number
            });
            result |= (table >> index & 1) << row;
        }
        self.of_table(bits, result, atoms)
    }

    /// The function with this table, without the arguments that do not matter.
    fn of_table(&mut self, bits: u32, mut table: u64, mut atoms: Args) -> Term {
        let mut at = 0;
        while at < atoms.len() {
            let (without, with) = (
                cofactor(table, at, atoms.len(), 0),
                cofactor(table, at, atoms.len(), 1),
            );
            if without == with {
                table = without;
                atoms.remove(at);
            } else {
                at += 1;
            }
        }
        match (atoms.as_slice(), table) {
            ([], 0) => self.zero(),
            ([], _) => self.constant(truncate(u64::MAX, bits)),
            (&[only], 0b10) => only,
            _ => self.make(Head::Logic { bits, table }, atoms),
        }
    }

    /// `count` bits from the `at`-th on, below `bits`: as many as there are, with zeros or copies of the highest one above.
    pub(crate) fn field(&mut self, bits: u32, signed: bool, a: Term, at: u32, count: u32) -> Term {
        match count.min(bits - at) {
            0 => self.zero(),
            count => {
                let part = self.extract(at, count, bits, a);
                match signed {
                    _ if count == bits => part,
                    true => self.sign_extend(count, bits, part),
                    false => self.zero_extend(count, bits, part),
                }
            }
        }
    }

    /// `b` with the low bits of `a` in it, `count` of them from the `at`-th on: as many as there are places.
    pub(crate) fn insert(&mut self, bits: u32, a: Term, b: Term, at: u32, count: u32) -> Term {
        let count = count.min(bits - at);
        let end = at + count;
        let parts = [(b, 0, at), (a, 0, count), (b, end, bits - end)];
        let mut pieces = Pieces::new();
        for (from, low, size) in parts.into_iter().filter(|part| part.2 > 0) {
            pieces.push((size, self.extract(low, size, bits, from)));
        }
        self.join_pieces(&pieces)
    }

    /// x >> by, zeros coming in.
    pub(crate) fn shift_right(&mut self, bits: u32, a: Term, by: u64) -> Term {
        match u32::try_from(by).ok().filter(|&by| by < bits) {
            Some(by) => {
                let high = self.extract(by, bits - by, bits, a);
                self.zero_extend(bits - by, bits, high)
            }
            None => self.zero(),
        }
    }
}

/// The function of numbers.
pub(crate) fn of_numbers(bits: u32, table: u64, values: &[u64]) -> u64 {
    (0..bits).fold(0, |found, at| {
        let arguments = values.iter().enumerate();
        let row = arguments.fold(0, |row, (n, value)| row | (value >> at & 1) << n);
        found | (table >> row & 1) << at
    })
}

/// The table where an argument has this value.
fn cofactor(table: u64, at: usize, count: usize, value: u64) -> u64 {
    let rows = 0..1u64 << (count - 1);
    rows.fold(0, |found, row| {
        let low = row & ((1 << at) - 1);
        let index = low | value << at | (row >> at) << (at + 1);
        found | (table >> index & 1) << row
    })
}

/// The table of a function whose n-th argument is the `order[n]`-th one of the given function.
fn reordered(table: u64, order: &[usize]) -> u64 {
    (0..1u64 << order.len()).fold(0, |found, row| {
        let index = order
            .iter()
            .enumerate()
            .fold(0, |index, (n, &at)| index | (row >> n & 1) << at);
        found | (table >> index & 1) << row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AND: u64 = 0b1000;
    const OR: u64 = 0b1110;
    const XOR: u64 = 0b0110;
    const NOT: u64 = 0b01;

    #[test]
    fn constants_take_part_bit_by_bit() {
        let mut t = Terms::default();
        let x = t.unknown("x");
        let [zero, ones, low] = [0, 0xffff_ffff, 0xffff].map(|value| t.constant(value));
        assert_eq!(t.logic(32, AND, &[x, zero]), zero);
        assert_eq!(t.logic(32, AND, &[x, ones]), x);
        assert_eq!(t.logic(32, OR, &[x, x]), x);
        let not = t.logic(32, NOT, &[x]);
        assert_eq!(t.logic(32, NOT, &[not]), x);
        let masked = t.logic(32, AND, &[x, low]);
        let cut = t.extract(0, 16, 32, x);
        assert_eq!(masked, t.zero_extend(16, 32, cut));
        let high = t.constant(0xffff_0000);
        let rest = t.logic(32, AND, &[x, high]);
        assert_eq!(t.logic(32, OR, &[rest, masked]), x);
        assert_eq!(t.logic(32, XOR, &[masked, rest]), x);
        assert_ne!(t.logic(32, OR, &[rest, rest]), x);
    }

    #[test]
    fn functions_of_functions_are_one() {
        let mut t = Terms::default();
        let [x, y, z] = ["x", "y", "z"].map(|name| t.unknown(name));
        let both = t.logic(32, AND, &[x, y]);
        let found = t.logic(32, OR, &[both, z]);
        // The first argument counts 1.
        assert_eq!(t.logic(32, 0xf8, &[x, y, z]), found);
        assert_ne!(t.logic(32, 0xf8, &[x, z, y]), found);
        let mask = t.constant(0xff);
        let low = t.logic(32, AND, &[found, mask]);
        let parts = [x, y, z].map(|part| t.logic(32, AND, &[part, mask]));
        assert_eq!(t.logic(32, 0xf8, &parts), low);
    }

    #[test]
    fn shifts_and_packing_meet() {
        let mut t = Terms::default();
        let [x, y] = ["x", "y"].map(|name| t.unknown(name));
        let power = t.constant(1 << 16);
        let shifted = t.mul(32, x, power);
        let mask = t.constant(0xffff);
        let low = t.logic(32, AND, &[y, mask]);
        let packed = t.logic(32, OR, &[shifted, low]);
        let [a, b] = [y, x].map(|part| t.extract(0, 16, 32, part));
        assert_eq!(packed, t.concat(16, &[a, b]));
        assert_ne!(packed, t.concat(16, &[b, a]));
        assert_eq!(t.shift_right(32, packed, 16), t.zero_extend(16, 32, b));
    }

    #[test]
    fn signs_and_fields_are_pieces() {
        let mut t = Terms::default();
        let [x, y] = ["x", "y"].map(|name| t.unknown(name));
        let byte = t.extract(0, 8, 32, x);
        let wide = t.sign_extend(8, 32, byte);
        assert_eq!(t.extract(0, 8, 32, wide), byte);
        let (sign, high) = (t.extract(7, 1, 32, x), t.extract(9, 8, 32, wide));
        assert_eq!(high, t.sign_extend(1, 8, sign));
        let copies = (8, t.sign_extend(1, 8, sign));
        assert_eq!(t.join_pieces(&[(8, byte), copies, copies, copies]), wide);
        // The low bits of a sum are a sum of their own.
        let short = [x, y].map(|part| t.extract(0, 16, 32, part));
        let sum = t.add(16, short[0], short[1]);
        let wide_sum = t.sign_extend(16, 32, sum);
        let cut = [(0, 2), (2, 30)].map(|(lo, bits)| (bits, t.extract(lo, bits, 32, wide_sum)));
        assert_eq!(t.join_pieces(&cut), wide_sum);
        let early = (30, t.extract(1, 30, 32, wide_sum));
        assert_ne!(t.join_pieces(&[cut[0], early]), wide_sum);
        let other = t.extract(6, 1, 32, x);
        let wrong = (8, t.sign_extend(1, 8, other));
        assert_ne!(t.join_pieces(&[(8, byte), wrong, copies, copies]), wide);
        let middle = t.extract(4, 8, 32, x);
        let shown = t.extract(4, 8, 32, wide);
        assert_ne!(shown, middle, "its sign stands there");
        // What is put in is what was put in, and the rest is left.
        let put = t.insert(32, x, y, 4, 8);
        assert_eq!(t.extract(4, 8, 32, put), byte);
        assert_eq!(t.extract(12, 20, 32, put), t.extract(12, 20, 32, y));
        assert_eq!(t.insert(32, y, y, 0, 31), y);
        assert_eq!(t.insert(32, x, y, 30, 9), t.insert(32, x, y, 30, 2));
        assert_ne!(t.insert(32, x, y, 4, 8), t.insert(32, x, y, 5, 8));
        assert_eq!(t.shift_right(32, x, 0), x);
    }

    /// All that is said here is true of numbers.
    #[test]
    fn tables_agree_with_numbers() {
        let mut t = Terms::default();
        let values = [0u64, 0xffff_ffff, 0x1234_5678, 0x00ff_0ff0, 0x8000_0001];
        for a in values {
            for b in values {
                let args = [t.constant(a), t.constant(b)];
                for (table, expected) in [(AND, a & b), (OR, a | b), (XOR, a ^ b), (0b0010, a & !b)]
                {
                    let found = t.logic(32, table, &args);
                    assert_eq!(
                        t.as_const(found),
                        Some(expected & 0xffff_ffff),
                        "{a:x} {b:x} {table:b}"
                    );
                }
            }
        }
    }
}
