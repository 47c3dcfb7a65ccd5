//! The search for a kernel's best version at one launch: which recipes are timed next, by what was found so far.
//!
//! A recipe is a point: one value of each [`Axis`], none of them changing what the others do to the text (constants, the
//! block's shape, what loops store in registers, unrolling, hints to the caches, registers, where spills go, the order of instructions). First every
//! value is tried alone; then the neighbours of the best points, those first that their values promise, until no
//! neighbour of the best is left. What depends on each other and gains nothing alone (unrolled loops want registers) is
//! tried in pairs before that.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_pass::{Invocation, Recipe};

/// One choice of a recipe: values that exclude each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is about.
    pub name: &'static str,
    /// The passes of each value. Doing nothing is none of them, and always possible.
    pub values: Vec<Vec<Invocation>>,
    /// Do its values pay only together with those of the axis of this name?
    pub wants: Option<&'static str>,
}

/// Which value each axis has: 0 for nothing.
pub type Point = Vec<usize>;

/// Points that are extended.
const BEAM: usize = 3;
/// Of an axis, values that are tried in pairs with those of the axis that it wants.
const PAIRED: usize = 3;
/// A point is better than another where it takes less than this of its time.
const BETTER: f64 = 0.995;
/// What a value may take alone without being out of the question beside others.
const BEARABLE: f64 = 1.25;

/// How many points axes have.
pub fn points(axes: &[Axis]) -> u64 {
    let sizes = axes.iter().map(|axis| axis.values.len() as u64 + 1);
    sizes.fold(1, u64::saturating_mul)
}

/// Leaves out the last values of the longest axes until there are at most so many points.
pub fn thin(axes: &mut [Axis], most: u64) {
    while points(axes) > most {
        let longest = axes.iter_mut().max_by_key(|axis| axis.values.len());
        let Some(longest) = longest.filter(|axis| !axis.values.is_empty()) else {
            return;
        };
        longest.values.pop();
    }
}

/// One step of a search whose times are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The point that was asked for.
    pub point: Point,
    /// What the best point so far takes of the original's time.
    pub best: f64,
}

/// A search that asks for so many points at a time, where all times over the original's are known: how soon it finds what.
pub fn replay(axes: Vec<Axis>, batch: usize, time: impl Fn(&[usize]) -> Option<f64>) -> Vec<Step> {
    let (mut search, mut steps) = (Search::new(axes), Vec::new());
    loop {
        let points = search.next(batch);
        if points.is_empty() {
            return steps;
        }
        for point in points {
            search.found(point.clone(), time(&point));
            let best = search.best().1;
            steps.push(Step { point, best });
        }
    }
}

/// The search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    axes: Vec<Axis>,
    /// Is every point asked for, whatever was found?
    is_exhaustive: bool,
    /// The time of each point over the original's; none where it cannot be.
    found: BTreeMap<Point, Option<f64>>,
    /// What is being timed.
    asked: BTreeSet<Point>,
}

impl Search {
    /// A search over these axes, in the order in which their passes are applied.
    pub fn new(mut axes: Vec<Axis>) -> Search {
        axes.retain(|axis| !axis.values.is_empty());
        let nothing = vec![0; axes.len()];
        Search {
            axes,
            is_exhaustive: false,
            found: BTreeMap::from([(nothing, Some(1.0))]),
            asked: BTreeSet::new(),
        }
    }

    /// One that asks for every point: what a search could find at most.
    pub fn exhaustive(axes: Vec<Axis>) -> Search {
        Search {
            is_exhaustive: true,
            ..Search::new(axes)
        }
    }

    /// Is it one of every point?
    pub fn is_exhaustive(&self) -> bool {
        self.is_exhaustive
    }

    /// What it chooses among.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// What is known: the time of each point over the original's; none where it cannot be.
    pub fn known(&self) -> impl Iterator<Item = (&Point, Option<f64>)> {
        self.found.iter().map(|(point, ratio)| (point, *ratio))
    }

    /// The recipe of a point.
    pub fn recipe(&self, point: &[usize]) -> Recipe {
        let chosen = self.axes.iter().zip(point);
        let passes = chosen.filter_map(|(axis, &value)| axis.values.get(value.checked_sub(1)?));
        passes
            .flatten()
            .fold(Recipe::default(), |recipe, pass| recipe.with(pass.clone()))
    }

    /// Points that are to be timed next, at most so many; none at the end.
    pub fn next(&mut self, most: usize) -> Vec<Point> {
        let mut points: Vec<Point> = match self.is_exhaustive {
            true => self.every().take(most).collect(),
            false => self.alone().take(most).collect(),
        };
        if points.is_empty() && self.asked.is_empty() {
            points = self.pairs().take(most).collect();
        }
        if points.is_empty() && self.asked.is_empty() {
            points = self.neighbours();
            points.truncate(most);
        }
        self.asked.extend(points.iter().cloned());
        points
    }

    /// What a point takes of the original's time; none where it cannot be.
    pub fn found(&mut self, point: Point, ratio: Option<f64>) {
        self.asked.remove(&point);
        self.found.insert(point, ratio);
    }

    /// A point that was asked for was not timed, and may be asked for again.
    pub fn forget(&mut self, point: &Point) {
        self.asked.remove(point);
    }

    /// The same of all of them.
    pub fn forget_asked(&mut self) {
        self.asked.clear();
    }

    /// Points that were timed.
    pub fn tried(&self) -> usize {
        self.found.len() - 1
    }

    /// The best point, and what it takes of the original's time.
    pub fn best(&self) -> (Point, f64) {
        let best = self.ranked().into_iter().next();
        best.map_or_else(
            || (vec![0; self.axes.len()], 1.0),
            |(point, ratio)| (point.clone(), ratio),
        )
    }

    fn ranked(&self) -> Vec<(&Point, f64)> {
        let known = self.found.iter();
        let mut all: Vec<(&Point, f64)> = known
            .filter_map(|(point, ratio)| Some((point, (*ratio)?)))
            .collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all
    }

    fn is_new(&self, point: &Point) -> bool {
        !self.found.contains_key(point) && !self.asked.contains(point)
    }

    fn single(&self, axis: usize, value: usize) -> Point {
        let mut point = vec![0; self.axes.len()];
        point[axis] = value;
        point
    }

    /// What a value takes alone; none where it cannot be.
    fn takes_alone(&self, axis: usize, value: usize) -> Option<f64> {
        self.found
            .get(&self.single(axis, value))
            .copied()
            .unwrap_or(Some(1.0))
    }

    /// Every value alone: first those of all axes that stand first.
    fn alone(&self) -> impl Iterator<Item = Point> {
        let deepest = self.axes.iter().map(|axis| axis.values.len()).max();
        let places = 1..=deepest.unwrap_or(0);
        let each = places.flat_map(|value| (0..self.axes.len()).map(move |axis| (axis, value)));
        each.filter(|&(axis, value)| value <= self.axes[axis].values.len())
            .map(|(axis, value)| self.single(axis, value))
            .filter(|point| self.is_new(point))
    }

    /// Every point of the space.
    fn every(&self) -> impl Iterator<Item = Point> {
        let all = (0..points(&self.axes)).map(|mut number| {
            let digit = |axis: &Axis| {
                let values = axis.values.len() as u64 + 1;
                let own = number % values;
                number /= values;
                own as usize
            };
            self.axes.iter().map(digit).collect::<Point>()
        });
        all.filter(|point| self.is_new(point))
    }

    /// The best few values of an axis, as they are alone.
    fn best_values(&self, axis: usize) -> Vec<usize> {
        let values = 1..=self.axes[axis].values.len();
        let mut all: Vec<(f64, usize)> = values
            .filter_map(|value| Some((self.takes_alone(axis, value)?, value)))
            .filter(|(ratio, _)| *ratio < BEARABLE)
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter()
            .take(PAIRED)
            .map(|(_, value)| value)
            .collect()
    }

    /// Values of axes that want another one, with the best of that.
    fn pairs(&self) -> impl Iterator<Item = Point> {
        let wanting = (0..self.axes.len()).filter_map(|axis| {
            let wanted = self.axes[axis].wants?;
            let other = self.axes.iter().position(|axis| axis.name == wanted)?;
            Some((axis, other))
        });
        wanting
            .flat_map(move |(axis, other)| {
                let others = self.best_values(other);
                let pairs = self.best_values(axis).into_iter().flat_map(move |value| {
                    others.clone().into_iter().map(move |with| (value, with))
                });
                pairs.map(move |(value, with)| {
                    let mut point = self.single(axis, value);
                    point[other] = with;
                    point
                })
            })
            .filter(|point| self.is_new(point))
    }

    /// Points that differ from one of the best in one axis, the most promising first; of the others only where the best
    /// has none left.
    fn neighbours(&self) -> Vec<Point> {
        let ranked = self.ranked();
        let beam: Vec<&(&Point, f64)> = ranked.iter().take(BEAM).collect();
        for (place, (point, ratio)) in beam.iter().enumerate() {
            if place > 0 && ranked[0].1 / ratio < BETTER * BETTER {
                break;
            }
            let mut next = self.beside(point, *ratio);
            next.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !next.is_empty() {
                return next.into_iter().map(|(_, point)| point).collect();
            }
        }
        Vec::new()
    }

    /// The new neighbours of a point with the time that their values promise.
    fn beside(&self, point: &Point, ratio: f64) -> Vec<(f64, Point)> {
        let mut all = Vec::new();
        for axis in 0..self.axes.len() {
            let own = match point[axis] {
                0 => 1.0,
                value => self.takes_alone(axis, value).unwrap_or(1.0),
            };
            for value in 0..=self.axes[axis].values.len() {
                let alone = match value {
                    0 => Some(1.0),
                    value => self.takes_alone(axis, value),
                };
                let mut other = point.clone();
                other[axis] = value;
                let Some(alone) = alone.filter(|alone| *alone < BEARABLE) else {
                    continue;
                };
                if value != point[axis] && self.is_new(&other) {
                    all.push((ratio * alone / own, other));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_pass::passes::MaxNReg;

    fn axes(sizes: &[usize]) -> Vec<Axis> {
        const NAMES: [&str; 6] = [
            "constants",
            "shape",
            "unroll",
            "cache",
            "registers",
            "order",
        ];
        let value = |at: usize| {
            vec![Invocation::from(MaxNReg {
                registers: 24 + at as u32,
            })]
        };
        sizes
            .iter()
            .enumerate()
            .map(|(axis, &size)| Axis {
                name: NAMES[axis],
                values: (0..size).map(value).collect(),
                wants: (NAMES[axis] == "unroll").then_some("registers"),
            })
            .collect()
    }

    /// Times that are products of what values do alone, with pairs that do something else together.
    struct Landscape {
        alone: Vec<Vec<f64>>,
        together: BTreeMap<(usize, usize, usize, usize), f64>,
    }

    impl Landscape {
        fn random(sizes: &[usize], seed: &mut u64) -> Landscape {
            let mut next = || {
                *seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (*seed >> 33) as f64 / f64::from(u32::MAX >> 1)
            };
            // Most values do next to nothing, some gain, some lose.
            let mut factor = || match next() {
                n if n < 0.55 => 0.99 + 0.02 * next(),
                n if n < 0.75 => 0.75 + 0.24 * next(),
                _ => 1.0 + 0.6 * next(),
            };
            let alone: Vec<Vec<f64>> = sizes
                .iter()
                .map(|&size| (0..size).map(|_| factor()).collect())
                .collect();
            let mut together = BTreeMap::new();
            for value in 0..sizes[2] {
                for with in 0..sizes[4] {
                    together.insert((2, value + 1, 4, with + 1), 0.85 + 0.3 * next());
                }
            }
            Landscape { alone, together }
        }

        fn time(&self, point: &[usize]) -> f64 {
            let own = point.iter().enumerate().map(|(axis, &value)| match value {
                0 => 1.0,
                value => self.alone[axis][value - 1],
            });
            let pair = self.together.get(&(2, point[2], 4, point[4]));
            own.product::<f64>() * pair.copied().unwrap_or(1.0)
        }

        fn best(&self, sizes: &[usize]) -> f64 {
            let mut points: Vec<Point> = vec![Vec::new()];
            for &size in sizes {
                points = points
                    .into_iter()
                    .flat_map(|point| (0..=size).map(move |v| [&point[..], &[v]].concat()))
                    .collect();
            }
            points
                .iter()
                .map(|point| self.time(point))
                .fold(1.0, f64::min)
        }
    }

    #[test]
    fn most_of_what_an_exhaustive_search_gains_is_found() {
        let sizes = [2, 4, 4, 5, 6, 2];
        let (mut seed, mut gained, mut possible) = (7, 0.0, 0.0);
        for _ in 0..40 {
            let landscape = Landscape::random(&sizes, &mut seed);
            let steps = replay(axes(&sizes), 8, |point| Some(landscape.time(point)));
            gained += steps[steps.len().min(90) - 1].best.ln();
            possible += landscape.best(&sizes).ln();
        }
        assert!(gained / possible > 0.95, "{} of it", gained / possible);
    }

    #[test]
    fn an_exhaustive_search_asks_for_every_point_once() {
        let mut search = Search::exhaustive(axes(&[2, 0, 3]));
        assert_eq!(points(search.axes()), 12);
        let mut seen = BTreeSet::new();
        while let points @ [_, ..] = &search.next(5)[..] {
            for point in points {
                assert!(seen.insert(point.clone()), "{point:?} again");
                search.found(
                    point.clone(),
                    (point[0] != 1).then_some(0.5 + point[1] as f64),
                );
            }
        }
        // All but the original.
        assert_eq!((seen.len(), search.tried()), (11, 11));
        assert_eq!(search.best(), (vec![2, 0], 0.5));
        assert_eq!(
            search.known().filter(|(_, ratio)| ratio.is_none()).count(),
            4
        );
    }

    #[test]
    fn axes_lose_their_last_values_the_longest_first() {
        let mut all = axes(&[2, 5, 6]);
        let first = all[2].values[0].clone();
        thin(&mut all, 60);
        let sizes: Vec<usize> = all.iter().map(|axis| axis.values.len()).collect();
        assert_eq!(sizes, [2, 4, 3]);
        assert_eq!(all[2].values[0], first);
        thin(&mut all, 0);
        assert_eq!(points(&all), 1);
    }

    #[test]
    fn nothing_is_asked_for_twice_and_what_cannot_be_is_left_alone() {
        let mut search = Search::new(axes(&[1, 0, 2, 0, 3]));
        let mut seen = BTreeSet::new();
        loop {
            let points = search.next(3);
            if points.is_empty() {
                break;
            }
            for point in points {
                assert!(seen.insert(point.clone()), "{point:?} again");
                // The second limit cannot be.
                let is_possible = point[2] != 2;
                search.found(point, is_possible.then_some(1.1));
            }
        }
        let beside = |point: &&Point| point[2] == 2;
        assert_eq!(seen.iter().filter(beside).count(), 1, "{seen:?}");
        assert_eq!(search.best().1, 1.0);
        assert!(search.recipe(&search.best().0).is_default());
        assert_eq!(Search::new(Vec::new()).next(8), Vec::<Point>::new());
    }
}
