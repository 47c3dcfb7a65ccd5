//! Launch descriptions as a whole: what they resolve to, and how mistakes are reported.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_launch::{Buffer, Launch, LaunchError, LaunchFile, no_files};

/// A description with these lines of arguments, a parameter `n = 100` in `small` and 200 in `full`.
fn describe(args: &str) -> LaunchFile {
    parsed(args).unwrap_or_else(|error| panic!("{error}"))
}

fn parsed(args: &str) -> Result<LaunchFile, LaunchError> {
    let text = format!(
        "kernel = 'k'\n[sizes]\nsmall.n = 100\nfull.n = 200\n\
         [launch]\ngrid = ['ceil_div(n, 32)', 2]\nblock = [32, 4]\ndynamic_smem = '8 * n'\n{args}"
    );
    LaunchFile::parse(&text, "test.toml")
}

/// The contents of a buffer of this type, shape and `init`.
fn contents(ty: &str, shape: &str, init: &str) -> Vec<u8> {
    let args = format!("[[args]]\nname = 'x'\ntype = '{ty}'\nshape = {shape}\ninit = {init}");
    let launch = describe(&args).resolve("small", &[]).unwrap();
    first_buffer(&launch).materialize(&no_files).unwrap()
}

fn first_buffer(launch: &Launch) -> &Buffer {
    launch.buffers().next().unwrap()
}

fn numbers<const SIZE: usize, T>(bytes: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&element| read(element))
        .collect()
}

#[test]
fn mistakes_are_labelled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let bless = std::env::var_os("WARPWRIGHT_BLESS").is_some();
    let mut count = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let error = match LaunchFile::parse(&text, "") {
            Ok(_) => panic!("{} parses", path.display()),
            Err(error) => error,
        };
        let found = format!("#{}", error.to_string().replacen(':', " ", 1));
        if bless {
            std::fs::write(&path, format!("{found}\n{rest}")).unwrap();
        } else {
            assert_eq!(found, first, "{}", path.display());
        }
        count += 1;
    }
    assert!(count > 30, "only {count} files in {}", folder.display());
}

#[test]
fn launches_resolve_at_each_size() {
    let file = describe("");
    assert_eq!(file.sizes().collect::<Vec<_>>(), ["full", "small"]);
    let small = file.resolve("small", &[]).unwrap();
    assert_eq!(
        (small.grid, small.block, small.dynamic_smem),
        ([4, 2, 1], [32, 4, 1], 800)
    );
    assert_eq!(
        (small.block_threads(), small.grid_blocks(), small.cluster),
        (128, 8, None)
    );
    let more = file.resolve("small", &[("n".to_owned(), 64)]).unwrap();
    assert_eq!(
        (more.grid, more.param("n"), more.param("m")),
        ([2, 2, 1], Some(64), None)
    );
    let message = |size: &str, name: &str, value: i64| {
        file.resolve(size, &[(name.to_owned(), value)])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message("huge", "n", 1),
        "test.toml:2:1: there is no size `huge`, only full, small"
    );
    let unknown = "size `small` has no parameter `m` to override; it has n";
    assert!(message("small", "m", 1).ends_with(unknown));
    assert!(
        message("small", "n", i64::MAX)
            .contains("dynamic_smem is 73786976294838206456, outside 0 to 4294967295")
    );
}

#[test]
fn values_are_laid_out_as_in_c() {
    let scalar = |text: &str| {
        let launch = describe(&format!("[[args]]\nname = 'x'\n{text}"))
            .resolve("small", &[])
            .unwrap();
        let arg = &launch.args[0];
        assert!(arg.pointers.is_empty(), "{arg:?}");
        (arg.bytes.clone(), arg.align)
    };
    assert_eq!(scalar("type = 's16'\nvalue = '-n'"), (vec![0x9C, 0xFF], 2));
    assert_eq!(
        scalar("type = 'f32'\nvalue = '50 / n'"),
        (0.5f32.to_le_bytes().to_vec(), 4)
    );
    assert_eq!(
        scalar("type = 'u64'\nvalue = '0xFFFFFFFFFFFFFFFF'"),
        (vec![0xFF; 8], 8)
    );
    assert_eq!(
        scalar("type = 'u8'\nvalue = [1, 2, 'n']\nalign = 4"),
        (vec![1, 2, 100], 4)
    );
    // struct { uint8_t a; struct { uint32_t b; uint8_t c[2]; } d; uint16_t e; double f; uint8_t g; }
    let fields = "fields = [{ name = 'a', type = 'u8', value = 1 }, \
                  { fields = [{ type = 'u32', value = 2 }, { type = 'u8', value = [3, 4] }] }, \
                  { type = 'u16', value = 5 }, { type = 'f64', value = 0 }, { type = 'u8', value = 6 }]";
    let bytes = [
        1, 0, 0, 0, 2, 0, 0, 0, 3, 4, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0,
        0, 0,
    ];
    assert_eq!(scalar(fields), (bytes.to_vec(), 8));
}

#[test]
fn buffers_aliases_and_symbols() {
    let launch = describe(
        "[[args]]\nname = 'x'\ntype = 'f64'\nshape = [2, 'n']\noutput = true\noffset = 8\nalign = 16\n\
         tolerance = { rel = 1e-12 }\n\
         [[args]]\nname = 'y'\nalias = 'x'\noffset = '8 * n'\n\
         [[symbols]]\nname = 'table'\ntype = 'f32'\nshape = [4]\ninit = { kind = 'iota', step = 0.5 }",
    )
    .resolve("full", &[])
    .unwrap();
    let names: Vec<&str> = launch.args.iter().map(|arg| &*arg.name).collect();
    assert_eq!(names, ["x", "y"]);
    let x = launch.buffer("x").unwrap();
    assert_eq!(
        (x.shape.as_slice(), x.len, x.size()),
        ([2, 200].as_slice(), 400, 3200)
    );
    assert_eq!((x.offset, x.align, x.output), (8, 16, true));
    assert_eq!(x.tolerance.map(|t| (t.rel, t.abs)), Some((1e-12, 0.0)));
    let untouched = x.materialize(&no_files).unwrap();
    assert!(
        numbers(&untouched, f64::from_le_bytes)
            .iter()
            .all(|v| v.is_nan())
    );
    let y = launch.args[1].pointers[0];
    assert_eq!((y.at, y.of, y.offset), (0, 0, 1600));
    let table = launch.buffer("table").unwrap();
    assert_eq!((table.align, table.tolerance), (256, None));
    assert!(table.materialize_into(&mut [0; 3], &no_files).is_err());
}

#[test]
fn plain_contents() {
    assert_eq!(contents("u16", "[3]", "'zeros'"), [0; 6]);
    assert_eq!(contents("u16", "[2]", "'poison'"), [0xA5; 4]);
    assert_eq!(
        contents("s8", "[3]", "{ kind = 'fill', value = -2 }"),
        [0xFE; 3]
    );
    assert_eq!(
        contents("u8", "[4]", "{ kind = 'iota', start = 254 }"),
        [254, 255, 0, 1]
    );
    assert_eq!(
        contents("s8", "[4]", "{ kind = 'values', values = [1, '-1'] }"),
        [1, 255, 1, 255]
    );
    assert_eq!(
        contents(
            "u8",
            "[2, 3]",
            "{ kind = 'expr', value = 'i / 3 * n + i % 3' }"
        ),
        [0, 1, 2, 100, 101, 102]
    );
    let halves = contents("f64", "['n']", "{ kind = 'iota', start = 1, step = -0.5 }");
    assert_eq!(numbers(&halves, f64::from_le_bytes)[..3], [1.0, 0.5, 0.0]);
    let halves = contents("f16", "[2]", "{ kind = 'expr', value = '0.5 * i' }");
    assert_eq!(halves, [0, 0, 0, 0x38]);
}

#[test]
fn random_contents_keep_their_bounds() {
    let dice = contents("s32", "[1000]", "{ kind = 'uniform', low = -1, high = 4 }");
    let dice = numbers(&dice, i32::from_le_bytes);
    assert!((-1..=4).all(|face| dice.contains(&face)) && dice.iter().all(|v| (-1..=4).contains(v)));
    let floats = contents(
        "f32",
        "[1000]",
        "{ kind = 'uniform', low = 2.0, high = 3.0 }",
    );
    assert!(
        numbers(&floats, f32::from_le_bytes)
            .iter()
            .all(|v| (2.0..=3.0).contains(v))
    );
    let rows = contents(
        "f64",
        "[2, 100]",
        "{ kind = 'uniform', low = [0, 5], high = [1, 5.5] }",
    );
    let (low, high) = rows.split_at(800);
    assert!(
        numbers(low, f64::from_le_bytes)
            .iter()
            .all(|v| (0.0..1.0).contains(v))
    );
    assert!(
        numbers(high, f64::from_le_bytes)
            .iter()
            .all(|v| (5.0..5.5).contains(v))
    );
    let noisy = contents(
        "f64",
        "[100]",
        "{ kind = 'expr', value = 'i', noise = 0.25 }",
    );
    let noisy = numbers(&noisy, f64::from_le_bytes);
    assert!(
        noisy
            .iter()
            .zip(0..)
            .all(|(v, i)| (v - f64::from(i)).abs() <= 0.25)
    );
    assert!(noisy.iter().any(|v| v.fract() != 0.0));
    let indices = contents("u8", "[1000]", "{ kind = 'indices', bound = 'n' }");
    assert_eq!(
        (indices.iter().max(), indices.iter().min()),
        (Some(&99), Some(&0))
    );
    let mut shuffled = contents("u8", "[200]", "{ kind = 'permutation', seed = 3 }");
    assert_ne!(shuffled, (0..200).collect::<Vec<u8>>());
    shuffled.sort_unstable();
    assert_eq!(shuffled, (0..200).collect::<Vec<u8>>());
    let whole = contents(
        "u64",
        "[64]",
        "{ kind = 'uniform', low = 0, high = '0xFFFFFFFFFFFFFFFF' }",
    );
    assert!(
        numbers(&whole, u64::from_le_bytes)
            .iter()
            .any(|v| v >> 63 == 1)
    );
    let normal = contents(
        "f64",
        "[1000]",
        "{ kind = 'normal', mean = 5, deviation = 0.1 }",
    );
    assert!(
        numbers(&normal, f64::from_le_bytes)
            .iter()
            .all(|v| (v - 5.0).abs() < 0.5)
    );
}

#[test]
fn sorted_rows_run_from_low_to_high() {
    let rows = contents(
        "u32",
        "[3, 51]",
        "{ kind = 'sorted', low = 0, high = 1000 }",
    );
    let rows = numbers(&rows, u32::from_le_bytes);
    for row in rows.chunks_exact(51) {
        assert!(row.is_sorted() && (row[0], row[50]) == (0, 1000), "{row:?}");
    }
    assert_ne!(rows[..51], rows[51..102]);
    let one = contents(
        "f32",
        "[5, 100]",
        "{ kind = 'sorted', low = -1.5, high = 2.5 }",
    );
    for row in numbers(&one, f32::from_le_bytes).chunks_exact(100) {
        assert!(
            row.is_sorted() && (row[0], row[99]) == (-1.5, 2.5),
            "{row:?}"
        );
    }
    // Fewer values than places: plateaus, still monotone.
    let flat = contents("u8", "[101]", "{ kind = 'sorted', low = 7, high = 10 }");
    assert!(flat.is_sorted() && (flat[0], flat[100]) == (7, 10));
}

#[test]
fn any_part_of_a_buffer_is_independent_of_its_length() {
    let long = contents(
        "f32",
        "[200000]",
        "{ kind = 'uniform', low = 0, high = 1, seed = 9 }",
    );
    let short = contents(
        "f32",
        "[70000]",
        "{ kind = 'uniform', low = 0, high = 1, seed = 9 }",
    );
    assert_eq!(long[..short.len()], short);
}

#[test]
fn files_are_checked() {
    let read = |extension: &str, file: Vec<u8>| {
        let args = format!(
            "[[args]]\nname = 'x'\ntype = 'u16'\nshape = [3]\n\
             init = {{ kind = 'file', path = 'data.{extension}' }}"
        );
        let launch = describe(&args).resolve("small", &[]).unwrap();
        let files = |path: &str| {
            assert_eq!(path, format!("data.{extension}"));
            Ok(file.clone())
        };
        first_buffer(&launch)
            .materialize(&files)
            .map_err(|e| e.message)
    };
    let data = vec![1, 2, 3, 4, 5, 6];
    let npy = |ty: &str| {
        let ty = warpwright_launch::ElemType::from_name(ty).unwrap();
        warpwright_launch::write_npy(ty, &[data.len() as u64 / ty.size() as u64], &data)
    };
    assert_eq!(read("raw", data.clone()), Ok(data.clone()));
    assert_eq!(read("npy", npy("u16")), Ok(data.clone()));
    assert_eq!(
        read("npy", npy("s16")),
        Err("`data.npy` holds s16 elements, not u16".to_owned())
    );
    assert_eq!(
        read("raw", vec![0; 7]),
        Err("`data.raw` holds 7 bytes of elements, not 6".to_owned())
    );
    assert_eq!(
        read("npy", vec![0; 7]),
        Err("`data.npy`: not an .npy file".to_owned())
    );
}

#[test]
fn damaged_descriptions_are_errors_not_panics() {
    let text = "kernel = 'k'\n[sizes.s]\nn = 3\n[launch]\ngrid = ['ceil_div(n, 2)']\nblock = [4]\n\
                [[args]]\nname = 'x'\ntype = 'f16'\nshape = [2, 'n']\noutput = true\n\
                init = { kind = 'uniform', low = [0, 1], high = [1, '2 * n'] }\n\
                [[args]]\nname = 'y'\nfields = [{ type = 'u8', value = [1, '0x2'] }]\n";
    assert!(LaunchFile::parse(text, "").is_ok());
    let mut errors = 0;
    let mut attempt = |text: &str| {
        let Err(error) = LaunchFile::parse(text, "") else {
            return;
        };
        errors += 1;
        assert!(error.line() <= text.lines().count().max(1) + 1, "{error}");
    };
    for at in 0..text.len() {
        attempt(&text[..at]);
        for with in [
            "",
            "0",
            "-",
            "'",
            "\"",
            "(",
            "]",
            "}",
            "=",
            "\n",
            "9999999999",
            "\u{e9}",
        ] {
            attempt(&format!("{}{with}{}", &text[..at], &text[at + 1..]));
        }
    }
    assert!(errors > 1000);
}

#[test]
fn the_documented_example_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/launch.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut blocks = page
        .split("```toml\n")
        .skip(1)
        .map(|b| b.split("```").next().unwrap());
    let whole = blocks.next().unwrap();
    let file = LaunchFile::parse(whole, "docs/launch.md").unwrap_or_else(|e| panic!("{e}"));
    let launch = file.resolve("small", &[]).unwrap();
    assert_eq!((launch.grid, launch.args.len()), ([8, 1, 1], 3));
    describe(&blocks.next().unwrap().replace("\"steps\"", "\"n\""));
    assert_eq!(blocks.next(), None);
}

#[test]
fn tables_point_to_parts_of_one_buffer() {
    let launch = describe(
        "[[args]]\nname = 'x'\ntype = 'f32'\nshape = [4]\ninit = 'zeros'\n\
         [[args]]\nname = 'rows'\nshape = [3]\n\
         each = { type = 'f32', shape = ['n', 2], output = true }\n\
         [[args]]\nname = 's'\nfields = [{ name = 't', shape = [2], each = { type = 'u8', shape = [5], init = 'zeros' } }]",
    )
    .resolve("small", &[])
    .unwrap();
    let names: Vec<&str> = launch.buffers().map(|b| &*b.name).collect();
    assert_eq!(names, ["x", "rows.each", "rows", "s.t.each", "s.t"]);
    let [_, each, rows, _, inner] = &launch.memory[..] else {
        panic!("{names:?}");
    };
    assert_eq!(each.shape, [3, 100, 2]);
    assert!(each.output && !rows.output);
    let table = rows.table.unwrap();
    assert_eq!((table.of, table.stride, rows.size()), (1, 800, 24));
    let bytes = table.bytes(4096, rows.len);
    assert_eq!(numbers(&bytes, u64::from_le_bytes), [4096, 4896, 5696]);
    assert_eq!(inner.table.map(|t| (t.of, t.stride)), Some((3, 5)));
    assert_eq!(launch.args[1].points_to(), Some(2));
    let mut both = launch.clone();
    both.append(launch);
    assert_eq!(both.memory[7].table.map(|t| t.of), Some(6));
}

#[test]
fn structures_hold_pointers() {
    let launch = describe(
        "[[args]]\nname = 'x'\ntype = 'f32'\nshape = [4]\ninit = 'zeros'\n\
         [[args]]\nname = 's'\nfields = [\n\
           { name = 'n', type = 's32', value = 3 },\n\
           { name = 'a', type = 'f64', shape = ['n'], output = true },\n\
           { name = 'in', fields = [{ name = 'b', type = 'u8', shape = [2], init = 'zeros' }, \
                                    { name = 'again', alias = 'x', offset = 8 }] },\n\
           { name = 'c', alias = 's.a' },\n\
           { type = 'u8', value = 1 } ]\n\
         [[symbols]]\nname = 'table'\nfields = [{ type = 's32', value = 'n' }, { type = 'f64', value = 1 }]",
    )
    .resolve("small", &[])
    .unwrap();
    let names: Vec<&str> = launch.buffers().map(|b| &*b.name).collect();
    assert_eq!(names, ["x", "s.a", "s.in.b", "table"]);
    let s = &launch.args[1];
    let pointers: Vec<(usize, usize, usize)> = (s.pointers.iter())
        .map(|p| (p.at, p.of, p.offset))
        .collect();
    assert_eq!(pointers, [(8, 1, 0), (16, 2, 0), (24, 0, 8), (32, 1, 0)]);
    assert_eq!((s.bytes.len(), s.align, s.points_to()), (48, 8, None));
    let bytes = s.with_pointers(|of| 1000 * (of as u64 + 1));
    assert_eq!(
        numbers(&bytes[8..40], u64::from_le_bytes),
        [2000, 3000, 1008, 2000]
    );
    assert_eq!((bytes[0], bytes[40]), (3, 1));
    let table = launch.symbols[0].materialize(&no_files).unwrap();
    assert_eq!(table[..4], 100_i32.to_le_bytes());
    assert_eq!(table[8..], 1.0_f64.to_le_bytes());
}

#[test]
fn members_that_make_no_sense_are_refused() {
    let refused = |fields: &str, what: &str| {
        let text = format!("[[args]]\nname = 's'\nfields = [{fields}]");
        let error = parsed(&text).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    let a = "{ name = 'a', type = 'f32', shape = [4], init = 'zeros' }";
    refused(
        "{ type = 'f32', shape = [4], init = 'zeros' }",
        "wants a `name`",
    );
    refused("{ name = 'a', type = 'f32' }", "`s.a` has no `shape`");
    refused(&format!("{a}, {a}"), "there are two arguments `s.a`");
    refused(&format!("{a}, {{ alias = 'a' }}"), "no buffer `a` before");
    refused(
        "{ name = 'a', type = 'f32', value = 1, shape = [4] }",
        "`shape` makes no sense",
    );
    refused(
        &format!("{a}, {{ alias = 's.a', offset = 17 }}"),
        "outside 0 to 16",
    );
    refused(
        "{ name = 'a/b', type = 'f32', shape = [4], init = 'zeros' }",
        "no slash",
    );
    let text = format!("[[symbols]]\nname = 's'\nfields = [{a}]");
    let error = parsed(&text).unwrap_err().to_string();
    assert!(error.contains("cannot hold pointers"), "{error}");
}
