//! The sums of a step: what a plane adds to the outputs around it.
//!
//! Values with the same weight are added before they are multiplied, pairs in a row first, so that
//! neighbouring points and the outputs of other planes share the sums. A weighted sum that several
//! planes need is computed once; others are fused into the partial sum they belong to.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::NodeId;
use super::kernel::{PlaneStep, Point};
use super::names::name;
use super::plan::Refusal;
use super::terms::Vector;

/// Values that enter a sum with one weight each: where they come from, and their sign.
type Items = Vec<(usize, Vector, bool)>;

/// By the factors in front: by weight, what it multiplies.
type Sum = BTreeMap<Vec<NodeId>, Vec<(f64, Items)>>;

/// By the factors in front: the terms of the output's own point, and their weights.
type Direct = BTreeMap<Vec<NodeId>, Vec<(NodeId, f64)>>;

impl PlaneStep<'_> {
    /// Adds what this plane gives to the outputs `plane` planes before it.
    ///
    /// What outputs share is close together: factors by factors, and within them the places from
    /// the middle outwards, each for all outputs.
    pub(super) fn contribute(&mut self, plane: i32, given: bool, high: i32) -> Result<(), Refusal> {
        let outputs = self.terms.direct.len();
        let sums: Vec<Sum> = (0..outputs).map(|o| self.sum_of(o, plane, given)).collect();
        let own: Vec<Direct> = (0..outputs)
            .map(|o| self.direct_of(o, plane == 0 && !given))
            .collect();
        let mut factors: BTreeSet<Vec<NodeId>> = BTreeSet::new();
        factors.extend(sums.iter().flat_map(|s| s.keys().cloned()));
        factors.extend(own.iter().flat_map(|s| s.keys().cloned()));
        // A partial sum is continued; the output of this plane starts with its first term.
        let started = plane != 0 || given;
        for point in self.all_points() {
            let target = |step: &Self, output| step.target(output, point, plane, high);
            let mut totals: Vec<Option<String>> = (0..outputs)
                .map(|o| started.then(|| target(self, o)))
                .collect();
            for factors in &factors {
                self.weigh(&mut totals, factors, &sums, plane, point)?;
                self.add_direct(&mut totals, factors, &own, point)?;
            }
            for (output, total) in totals.into_iter().enumerate() {
                let target = target(self, output);
                if let Some(total) = total.filter(|t| *t != target) {
                    self.code.line(format!("{target} = {total};"));
                }
            }
        }
        Ok(())
    }

    /// Where a contribution goes: a sum that other planes complete, or the output of this plane.
    pub(super) fn target(&self, output: usize, point: Point, plane: i32, high: i32) -> String {
        if plane == 0 {
            name("s", output, point)
        } else {
            format!("{}_{}", name("a", output, point), high - plane)
        }
    }

    /// The items of one sum. `given` selects those that come from neighbours' shared memory.
    pub(super) fn sum_of(&self, output: usize, plane: i32, given: bool) -> Sum {
        let mut sum: BTreeMap<Vec<NodeId>, BTreeMap<u64, Items>> = BTreeMap::new();
        for (number, field) in self.terms.fields.iter().enumerate() {
            let Some(places) = field.uses.get(&output) else {
                continue;
            };
            for (place, coefficient) in places {
                let [at, y, x] = self.split(*place);
                let elsewhere = self.staged[number].is_some() && [y, x] != [0, 0];
                if at != plane || elsewhere != given {
                    continue;
                }
                for (factors, weight) in coefficient {
                    let by_weight = sum.entry(factors.clone()).or_default();
                    let items = by_weight.entry(weight.0.abs().to_bits()).or_default();
                    items.push((number, *place, weight.0 < 0.0));
                }
            }
        }
        let unpack = |(bits, items)| (f64::from_bits(bits), items);
        sum.into_iter()
            .map(|(factors, by_weight)| (factors, by_weight.into_iter().map(unpack).collect()))
            .collect()
    }

    /// How often each weighted sum occurs, whatever its sign: those of several planes are computed
    /// once, the others are fused into the partial sum.
    pub(super) fn count_sums(&mut self) {
        let [low, high] = self.span();
        for output in 0..self.terms.direct.len() {
            for plane in low..=high {
                for given in [false, true] {
                    for weighted in self.sum_of(output, plane, given).values() {
                        let key = self.key(weighted);
                        *self.sums.entry(key).or_default() += 1;
                    }
                }
            }
        }
    }

    pub(super) fn key(&self, weighted: &[(f64, Items)]) -> String {
        let flip = flipped(weighted);
        let mut text = String::new();
        for (weight, items) in weighted {
            text.push_str(&format!("{weight:?}:"));
            for (field, place, negative) in items {
                let [_, y, x] = self.split(*place);
                text.push_str(&format!("{field}/{y}/{x}/{},", *negative != flip));
            }
        }
        text
    }

    /// `total + factors * (w1 * (…) + w2 * (…))` for all outputs that have these factors.
    pub(super) fn weigh(
        &mut self,
        totals: &mut [Option<String>],
        factors: &[NodeId],
        sums: &[Sum],
        plane: i32,
        point: Point,
    ) -> Result<(), Refusal> {
        let mut order: BTreeSet<(Vec<i32>, usize, usize)> = BTreeSet::new();
        let mut running: Vec<Option<(String, bool)>> = vec![None; sums.len()];
        for (output, sum) in sums.iter().enumerate() {
            let Some(weighted) = sum.get(factors) else {
                continue;
            };
            for (number, (_, items)) in weighted.iter().enumerate() {
                order.insert((self.distance(items), number, output));
            }
        }
        for (_, number, output) in order {
            let Some(weighted) = sums[output].get(factors) else {
                continue;
            };
            let alone = self.is_alone(factors, weighted);
            let flip = !alone && flipped(weighted);
            let (weight, items) = &weighted[number];
            let (value, negative) = self.add_up(items, point)?;
            let negative = negative != flip;
            if alone {
                let total = totals[output].take();
                totals[output] = Some(self.multiply_add(total, *weight, &value, negative));
            } else {
                let before = running[output].take().map(|r| r.0);
                let sum = self.multiply_add(before, *weight, &value, negative);
                running[output] = Some((sum, flip));
            }
        }
        // The factors belong to the output, which lies `plane` planes before this one.
        let back = self.join([-plane, 0, 0]);
        for (output, running) in running.into_iter().enumerate() {
            let Some((sum, flip)) = running else { continue };
            let product = self.factor_product(factors, back, point)?;
            let total = totals[output].take();
            totals[output] = Some(self.scaled_add(total, product, &sum, flip));
        }
        Ok(())
    }

    /// How far from the point the items stand.
    pub(super) fn distance(&self, items: &Items) -> Vec<i32> {
        let mut all: Vec<i32> = Vec::new();
        for (_, place, _) in items {
            let [_, y, x] = self.split(*place);
            all.push(y.abs().max(x.abs()));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The sum has no factors and occurs once: it can be fused into the output's.
    pub(super) fn is_alone(&self, factors: &[NodeId], weighted: &[(f64, Items)]) -> bool {
        factors.is_empty() && self.sums.get(&self.key(weighted)).is_none_or(|n| *n <= 1)
    }

    pub(super) fn factor_product(
        &mut self,
        factors: &[NodeId],
        offset: Vector,
        point: Point,
    ) -> Result<Option<String>, Refusal> {
        let mut product: Option<String> = None;
        for factor in factors {
            let value = self.value(*factor, offset, point)?;
            product = Some(match product {
                None => value,
                Some(before) => self.product(factors, &before, &value),
            });
        }
        Ok(product)
    }

    /// `total ± product * sum`, each of which may be missing.
    pub(super) fn scaled_add(
        &mut self,
        total: Option<String>,
        product: Option<String>,
        sum: &str,
        negative: bool,
    ) -> String {
        let value = match product {
            Some(product) => format!("{product} * {sum}"),
            None => sum.to_owned(),
        };
        match total {
            Some(total) if negative => self.code.operation(format!("{total} - {value}")),
            Some(total) => self.code.operation(format!("{total} + {value}")),
            None if negative => self.code.operation(format!("-{value}")),
            None if value == sum => value,
            None => self.code.operation(value),
        }
    }

    pub(super) fn product(&mut self, factors: &[NodeId], a: &str, b: &str) -> String {
        let text = format!("{a} * {b}");
        if factors.iter().all(|f| self.early[*f]) {
            self.before.operation(text)
        } else {
            self.code.operation(text)
        }
    }

    pub(super) fn multiply_add(
        &mut self,
        sum: Option<String>,
        weight: f64,
        value: &str,
        negative: bool,
    ) -> String {
        let sign = if negative { "-" } else { "+" };
        let product = if weight == 1.0 {
            value.to_owned()
        } else {
            format!("{} * {value}", self.number(weight))
        };
        match sum {
            Some(sum) => self.code.operation(format!("{sum} {sign} {product}")),
            None if negative => self.code.operation(format!("-{product}")),
            None if weight == 1.0 => product,
            None => self.code.operation(product),
        }
    }

    /// The sum of items of one weight, and whether it is to be subtracted. Items that stand
    /// opposite each other in a row first, then rows: other points and planes use the same sums.
    pub(super) fn add_up(
        &mut self,
        items: &Items,
        point: Point,
    ) -> Result<(String, bool), Refusal> {
        let mut rows: BTreeMap<(usize, i32, i32), BTreeMap<i32, Items>> = BTreeMap::new();
        for (field, place, negative) in items {
            let [_, y, x] = self.split(*place);
            let row = rows.entry((*field, y.abs(), y)).or_default();
            row.entry(x.abs())
                .or_default()
                .push((*field, *place, *negative));
        }
        let mut total: Option<(String, bool)> = None;
        let mut band: Option<((usize, i32), (String, bool))> = None;
        for ((field, distance, _), row) in rows {
            let mut sum: Option<(String, bool)> = None;
            for pair in row.into_values() {
                let mut inner: Option<(String, bool)> = None;
                for (field, place, negative) in pair {
                    let value = self.field_value(field, place, point)?;
                    inner = Some(self.join_signs(inner, (value, negative)));
                }
                if let Some(inner) = inner {
                    sum = Some(self.join_signs(sum, inner));
                }
            }
            let Some(sum) = sum else { continue };
            band = match band {
                Some((key, before)) if key == (field, distance) => {
                    Some((key, self.join_signs(Some(before), sum)))
                }
                Some((_, before)) => {
                    total = Some(self.join_signs(total, before));
                    Some(((field, distance), sum))
                }
                None => Some(((field, distance), sum)),
            };
        }
        if let Some((_, last)) = band {
            total = Some(self.join_signs(total, last));
        }
        Ok(total.unwrap_or_else(|| ("0".to_owned(), false)))
    }

    /// The sum of two signed values; the first one's sign stands in front.
    pub(super) fn join_signs(
        &mut self,
        a: Option<(String, bool)>,
        b: (String, bool),
    ) -> (String, bool) {
        let Some((a, negative)) = a else {
            return b;
        };
        let sign = if b.1 == negative { '+' } else { '-' };
        (self.code.operation(format!("{a} {sign} {}", b.0)), negative)
    }

    /// Terms of an output's own point by their factors.
    pub(super) fn direct_of(&self, output: usize, wanted: bool) -> Direct {
        let mut by_factors = Direct::new();
        for (node, coefficient) in &self.terms.direct[output] {
            for (factors, weight) in coefficient.iter().filter(|_| wanted) {
                let nodes = by_factors.entry(factors.clone()).or_default();
                nodes.push((*node, weight.0));
            }
        }
        by_factors
    }

    pub(super) fn add_direct(
        &mut self,
        totals: &mut [Option<String>],
        factors: &[NodeId],
        own: &[Direct],
        point: Point,
    ) -> Result<(), Refusal> {
        for (output, direct) in own.iter().enumerate() {
            let Some(nodes) = direct.get(factors) else {
                continue;
            };
            // Inside the parentheses all weights are divided by the first one's size.
            let common = match nodes.first() {
                // Terms that cancel leave a weight of zero.
                Some((_, first)) if !factors.is_empty() && *first != 0.0 => first.abs(),
                _ => 1.0,
            };
            let mut sum = None;
            if factors.is_empty() {
                sum = totals[output].take();
            }
            for (node, weight) in nodes {
                let value = self.value(*node, [0; 3], point)?;
                let weight = weight / common;
                sum = Some(self.multiply_add(sum, weight.abs(), &value, weight < 0.0));
            }
            let Some(sum) = sum else { continue };
            if factors.is_empty() {
                totals[output] = Some(sum);
                continue;
            }
            let mut product = self.factor_product(factors, [0; 3], point)?;
            if let Some(before) = product.take_if(|_| common != 1.0) {
                let number = self.number(common);
                product = Some(self.product(factors, &before, &number));
            }
            let total = totals[output].take();
            totals[output] = Some(self.scaled_add(total, product, &sum, false));
        }
        Ok(())
    }
}

/// The first item is subtracted: the sum is written with all signs turned.
fn flipped(weighted: &[(f64, Items)]) -> bool {
    let first = weighted.first().and_then(|(_, items)| items.first());
    first.is_some_and(|(_, _, negative)| *negative)
}
