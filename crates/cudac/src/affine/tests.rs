use super::*;

fn s(symbol: Symbol) -> Poly {
    Poly::symbol(symbol)
}

#[test]
fn places_of_threads_are_found_inside_products() {
    let place = s(Symbol::BlockIdx(0))
        .times(&s(Symbol::BlockDim(0)))
        .unwrap()
        .plus(&s(Symbol::ThreadIdx(0)), 1)
        .unwrap();
    let row = place.times(&s(Symbol::Size(0))).unwrap();
    let expected = s(Symbol::Global(0)).times(&s(Symbol::Size(0))).unwrap();
    let mut places = Places::default();
    assert_eq!(places.merged(row), expected);
    assert_eq!(places.block, [None; 3]);
    // A block of 32 threads.
    let place = s(Symbol::ThreadIdx(1))
        .plus(&s(Symbol::BlockIdx(1)), 32)
        .unwrap();
    assert_eq!(places.merged(place.clone()), s(Symbol::Global(1)));
    assert_eq!(places.block, [None, Some(32), None]);
    assert_eq!(places.split(&s(Symbol::Global(1))), Some(place));
    assert!(places.merged(s(Symbol::ThreadIdx(0))).is_raw());
    // Another block of 16 threads along the same axis.
    let other = s(Symbol::ThreadIdx(1)).plus(&s(Symbol::BlockIdx(1)), 16);
    places.merged(other.unwrap());
    assert_eq!(places.conflict, Some(1));
}

#[test]
fn strides_divide() {
    let (n, m) = (s(Symbol::Size(0)), s(Symbol::Size(1)));
    let pitch = n.plus(&Poly::constant(2), 1).unwrap();
    let plane = pitch.times(&m).unwrap();
    assert_eq!(plane.divided_by(&pitch), Some(m.clone()));
    assert_eq!(plane.divided_by(&n), None);
    let (times, rest) = plane.plus(&pitch, -3).unwrap().split(&plane).unwrap();
    assert_eq!((times, rest.split(&pitch).unwrap().0), (1, -3));
    let rows = Poly::constant(512);
    let split = |v: i64| Poly::constant(v).split(&rows).unwrap();
    assert_eq!(split(-1), (0, Poly::constant(-1)));
    assert_eq!(split(1023), (2, Poly::constant(-1)));
}

#[test]
fn values_take_the_place_of_symbols() {
    let (n, k) = (s(Symbol::Size(0)), s(Symbol::Loop(0)));
    let square = k.times(&k).unwrap().times(&n).unwrap();
    let moved = k.plus(&Poly::constant(1), -1).unwrap();
    // (k - 1)² n
    let found = square.substituted(Symbol::Loop(0), &moved).unwrap();
    let value = |symbol| Some(if symbol == Symbol::Size(0) { 5 } else { 4 });
    assert_eq!(found.evaluate(value), Some(45));
    assert_eq!(found.evaluate(|_| None), None);
    assert_eq!(found.symbols(), [Symbol::Size(0), Symbol::Loop(0)]);
}
