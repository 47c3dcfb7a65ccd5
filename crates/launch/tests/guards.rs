//! What a guard says of a launch is what each of its readers does: the compiled form, its text read again, C made of it
//! and compiled, implication, and the launches that are made to meet it. (The PTX is run in `pass`.)

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::fmt::Write;
use std::process::Command;

use warpwright_launch::{
    CNames, Condition, Disjoint, Extent, Facts, Field, Guard, Launch, LaunchFile, LaunchValues,
    Packed, Parts, Quantity, Set, Signature, Source,
};

/// The kernel `(int n, float *x, struct { int a, b; } s, double *y)`.
const SIZES: [u32; 4] = [4, 8, 8, 8];

fn signature() -> Signature {
    Signature::new(["n", "x", "s", "y"].into_iter().zip(SIZES))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn extent(&mut self) -> Extent {
        self.one(&[Extent::X, Extent::Y, Extent::Z, Extent::Size])
    }

    fn quantity(&mut self) -> Quantity {
        let extent = self.extent();
        match self.below(8) {
            0 | 1 => Quantity::Block(extent),
            2 => Quantity::Grid(extent),
            3 => Quantity::Cluster(extent),
            4 => Quantity::DynamicShared,
            5 => Quantity::Param(field(0, 0, 4)),
            6 => Quantity::Param(self.one(&[field(1, 0, 8), field(3, 0, 8)])),
            _ => Quantity::Param(self.one(&[
                field(2, 0, 8),
                field(2, 0, 4),
                field(2, 4, 4),
                field(2, 4, 2),
                field(2, 7, 1),
            ])),
        }
    }

    fn number(&mut self) -> u64 {
        self.one(&[0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 64, 1 << 33, u64::MAX])
    }

    fn condition(&mut self) -> Option<Condition> {
        if self.below(8) == 0 {
            return Some(Condition::Disjoint(Disjoint {
                pointers: [self.one(&[field(1, 0, 8), field(2, 0, 8)]), field(3, 0, 8)],
                bytes: [self.number() % 100, self.number() % 100],
            }));
        }
        let set = match self.below(3) {
            0 => Set::only(self.number()),
            1 => Set::new(self.number(), self.number(), 1)?,
            _ => Set::new(0, self.number(), self.one(&[1, 2, 3, 4, 8, 16]))?,
        };
        Some(Condition::In(self.quantity(), set))
    }

    fn guard(&mut self) -> Guard {
        let conditions = self.below(6);
        let mut guard = Guard::always();
        if self.below(4) == 0 {
            guard = guard.block([self.one(&[2, 4, 8]), self.one(&[1, 2]), 1]);
        }
        (0..conditions)
            .filter_map(|_| self.condition())
            .fold(guard, |guard, condition| {
                // Contradictions are of little interest.
                let more = guard.clone().with(condition);
                if more.is_never() { guard } else { more }
            })
    }

    fn launch(&mut self) -> Values {
        let mut dims = |of: &[u32]| [self.one(of), self.one(&[1, 2, 3]), self.one(&[1, 1, 4])];
        let (block, grid) = (dims(&[1, 2, 4, 8, 64]), dims(&[1, 3, 8, 16, 1 << 30]));
        let cluster = dims(&[1, 2]);
        let pointer = |random: &mut Random| 4096 + random.number() % 100;
        Values {
            block,
            grid,
            cluster,
            dynamic_smem: self.one(&[0, 4, 16, 24]),
            params: vec![
                (self.number() as u32).to_le_bytes().to_vec(),
                pointer(self).to_le_bytes().to_vec(),
                [self.number() as u32, self.number() as u32]
                    .map(u32::to_le_bytes)
                    .concat(),
                pointer(self).to_le_bytes().to_vec(),
            ],
        }
    }
}

fn field(param: u16, at: u32, bytes: u8) -> Field {
    Field::new(param, at, bytes).unwrap()
}

struct Values {
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    dynamic_smem: u32,
    params: Vec<Vec<u8>>,
}

impl Values {
    fn get(&self) -> LaunchValues<'_, Vec<Vec<u8>>> {
        LaunchValues {
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            dynamic_smem: self.dynamic_smem,
            params: &self.params,
        }
    }
}

#[test]
fn readers_agree() {
    let mut random = Random(7);
    let (mut holding, mut total) = (0, 0);
    for _ in 0..3000 {
        let guard = random.guard();
        let text = guard.to_string();
        assert_eq!(text.parse(), Ok(guard.clone()), "{text}");
        let named = guard.named(&signature()).to_string();
        assert_eq!(
            Guard::parse(&named, &signature()),
            Ok(guard.clone()),
            "{named}"
        );
        let compiled = guard.compile();
        for _ in 0..20 {
            let launch = random.launch();
            let holds = guard.holds(&launch.get());
            assert_eq!(compiled.holds(&launch.get()), holds, "{text}");
            let bytes = launch.params.concat();
            let places = [(0, 4), (4, 8), (12, 8), (20, 8)];
            let packed = LaunchValues {
                params: &Packed {
                    bytes: &bytes,
                    places: &places,
                },
                ..LaunchValues {
                    grid: launch.grid,
                    block: launch.block,
                    cluster: launch.cluster,
                    dynamic_smem: launch.dynamic_smem,
                    params: &Packed {
                        bytes: &[],
                        places: &[],
                    },
                }
            };
            assert_eq!(compiled.holds(&packed), holds, "{text}");
            holding += u32::from(holds);
            total += 1;
        }
    }
    assert!(
        holding * 20 > total && holding * 2 < total,
        "{holding} of {total}"
    );
}

#[test]
fn implication_is_true_of_launches() {
    let mut random = Random(11);
    let mut covered = 0;
    for _ in 0..4000 {
        let (a, b) = (random.guard(), random.guard());
        let both = a.and(&b);
        assert!(a.covers(&both) && b.covers(&both), "{a} and {b}: {both}");
        assert!(a.covers(&a) && Guard::always().covers(&a) && a.covers(&Guard::never()));
        let covers = a.covers(&b);
        covered += u32::from(covers && !a.is_always());
        for _ in 0..20 {
            let launch = random.launch();
            let [one, other, all] = [&a, &b, &both].map(|guard| guard.holds(&launch.get()));
            assert_eq!(all, one && other, "{a} and {b}: {both}");
            assert!(!covers || !other || one, "{a} does not cover {b}");
        }
    }
    assert!(covered > 20, "{covered}");
}

#[test]
fn one_of_a_guard_and_its_opposites_holds() {
    let mut random = Random(13);
    let mut opposites = 0;
    for _ in 0..1000 {
        let guard = random.guard();
        let Some(others) = guard.complement() else {
            continue;
        };
        opposites += others.len();
        for _ in 0..20 {
            let launch = random.launch();
            let any = others.iter().any(|other| other.holds(&launch.get()));
            assert_ne!(guard.holds(&launch.get()), any, "{guard}");
        }
    }
    assert!(opposites > 500, "{opposites}");
}

#[test]
fn implication_knows_products_and_parts() {
    let guard = |text: &str| -> Guard { text.parse().unwrap() };
    let covers = |a: &str, b: &str| guard(a).covers(&guard(b));
    assert!(covers("block.size<=1024", "block=256,2,1"));
    assert!(covers("block.size%32=0", "block=64,3,1"));
    assert!(covers("block.x<=256", "block.size<=256"));
    assert!(!covers("block.x<=255", "block.size<=256"));
    assert!(covers("param0+4:4=1", "param0:8=4294967298"));
    assert!(covers("param0:8=4294967298", "param0:4=2; param0+4:4=1"));
    assert!(covers(
        "disjoint(param0[4],param1[8])",
        "disjoint(param1[9],param0[4])"
    ));
    assert!(!covers(
        "disjoint(param0[4],param1[8])",
        "disjoint(param1[7],param0[4])"
    ));
    assert!(guard("block=256,1,1; block.size<=255").is_never());
    assert!(guard("param0:8=5; param0:4=6").is_never());
    assert!(guard("smem<=4294967295; block.z>=1").is_always());
}

#[test]
fn texts_and_errors() {
    let signature = Signature::new([("n", 4), ("x", 8), ("args", 24), ("block", 4), ("alpha", 4)]);
    let shown = |text: &str| {
        let guard = Guard::parse(text, &signature).unwrap_or_else(|e| panic!("{text}: {e}"));
        (guard.to_string(), guard.named(&signature).to_string())
    };
    assert_eq!(
        shown("n=4096; block = 256 ; args+8:4<=7; align(x)=16; n%2=0"),
        (
            "block=256,1,1; param0:4=4096; align(param1)=16; param2+8:4<=7".to_owned(),
            "block=256,1,1; n=4096; align(x)=16; args+8:4<=7".to_owned(),
        )
    );
    assert_eq!(shown("n=-1").1, "n=4294967295");
    assert_eq!(shown("alpha=1.5").1, format!("alpha={}", 1.5f32.to_bits()));
    assert_eq!(shown("n=0x10").1, "n=16");
    assert_eq!(shown("param3=5").1, "param3=5");
    assert_eq!(
        shown("block.size<=256; grid.x>=2").1,
        "block.size<=256; grid.x>=2"
    );
    assert_eq!(shown("").1, "always");
    assert_eq!(shown("n=1;n=2").1, "never");
    assert_eq!(
        shown("disjoint(x[16],args+16[4])").1,
        "disjoint(x[16],args+16[4])"
    );
    let error = |text: &str| {
        let error = Guard::parse(text, &signature).unwrap_err();
        format!("{error} at {:?}", error.span)
    };
    assert_eq!(error("m=1"), "the kernel has no parameter `m` at 0..1");
    assert_eq!(error("n=1; args=3").split(" at ").nth(1), Some("5..9"));
    assert_eq!(error("n=4294967296"), "4294967296 does not fit at 2..12");
    assert_eq!(error("block=0x1"), "expected a number at 6..9");
    assert_eq!(error("n=1 n=2"), "expected `;` or the end at 4..4");
    assert_eq!(error("n!1"), "expected `=`, `<=`, `>=` or `%` at 1..1");
    assert_eq!(
        error("param9=1"),
        "the kernel has no parameter `param9` at 0..6"
    );
    assert_eq!(error("n+4:4=1").split(" at ").nth(1), Some("0..5"));
    assert!("param0=1".parse::<Guard>().is_err(), "without a size");
}

/// One program of C with all guards and launches says the same.
#[test]
fn c_says_the_same() {
    let mut random = Random(5);
    let guards: Vec<Guard> = (0..150).map(|_| random.guard()).collect();
    let launches: Vec<Values> = (0..40).map(|_| random.launch()).collect();
    let names = CNames {
        block: "block",
        grid: "grid",
        cluster: "cluster",
        dynamic_smem: "smem",
    };
    let param = |field: Field| {
        let ty = match field.bytes() {
            1 => "unsigned char",
            2 => "unsigned short",
            4 => "unsigned int",
            _ => "unsigned long long",
        };
        let base = field.param() * 8 + field.at();
        Some(format!("(unsigned long long)*(const {ty} *)(p + {base})"))
    };
    let mut code = "#include <stdio.h>\ntypedef struct { unsigned x, y, z; } dim3;\n\
        static int test(int which, dim3 grid, dim3 block, dim3 cluster, unsigned smem, const char *p) {\nswitch (which) {\n"
        .to_owned();
    for (which, guard) in guards.iter().enumerate() {
        let expression = guard.to_c(names, &param).unwrap();
        writeln!(code, "case {which}: return {expression};").unwrap();
    }
    code += "}\nreturn 2;\n}\nint main(void) {\n";
    for launch in &launches {
        let dims = |d: [u32; 3]| format!("(dim3){{{}u,{}u,{}u}}", d[0], d[1], d[2]);
        let bytes: Vec<String> = (launch.params.iter())
            .flat_map(|param| param.iter().copied().chain(std::iter::repeat(0)).take(8))
            .map(|byte| byte.to_string())
            .collect();
        writeln!(
            code,
            "{{ _Alignas(8) static const unsigned char p[] = {{{}}};\nfor (int i = 0; i < {}; i++) putchar('0' + test(i, {}, {}, {}, {}u, (const char *)p)); }}",
            bytes.join(","),
            guards.len(),
            dims(launch.grid),
            dims(launch.block),
            dims(launch.cluster),
            launch.dynamic_smem
        )
        .unwrap();
    }
    code += "return 0;\n}\n";
    let folder = std::env::temp_dir().join(format!("warpwright-guards-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("guards.c"), code).unwrap();
    let built = Command::new("cc")
        .args(["-w", "-o", "guards", "guards.c"])
        .current_dir(&folder)
        .status();
    assert!(built.unwrap().success());
    let said = Command::new(folder.join("guards")).output().unwrap().stdout;
    std::fs::remove_dir_all(&folder).unwrap();
    let expected: String = (launches.iter())
        .flat_map(|launch| guards.iter().map(|guard| guard.holds(&launch.get())))
        .map(|holds| if holds { '1' } else { '0' })
        .collect();
    assert_eq!(String::from_utf8(said).unwrap(), expected);
    assert!(expected.contains('1') && expected.contains('0'));
}

fn described() -> Launch {
    let text = r#"
        kernel = "k"
        [sizes.small]
        n = 100
        [launch]
        grid = [7, 1, 1]
        block = [96, 2, 1]
        [[args]]
        name = "n"
        type = "u32"
        value = "n"
        [[args]]
        name = "x"
        type = "f32"
        shape = ["n"]
        init = { kind = "zeros" }
        [[args]]
        name = "s"
        type = "u64"
        value = "n + 3"
        [[args]]
        name = "y"
        type = "f32"
        shape = ["n"]
        init = { kind = "zeros" }
        offset = 4
    "#;
    LaunchFile::parse(text, "k.toml")
        .unwrap()
        .resolve("small", &[])
        .unwrap()
}

#[test]
fn launches_are_made_to_meet_guards() {
    let launch = described();
    let facts = Facts::of(&launch, Source::Described);
    let own = facts.guard(Parts::ALL);
    assert!(launch.is_met(&own));
    assert_eq!(
        own.named(&signature()).to_string(),
        "block=96,2,1; grid=7,1,1; cluster=1,1,1; smem=0; n=100; s=103"
    );
    let mut random = Random(3);
    let mut met = 0;
    for _ in 0..2000 {
        let guard = random.guard();
        if let Some(made) = guard.satisfied(&launch) {
            assert!(made.is_met(&guard), "{guard}");
            met += 1;
        }
    }
    assert!(met > 1000, "{met}");
    let aligned: Guard = "align(param3)=16; block.size<=64; param0:4=8"
        .parse()
        .unwrap();
    let made = aligned.satisfied(&launch).unwrap();
    assert!(!launch.is_met(&aligned));
    assert_eq!((made.block, made.args[0].bytes[0]), ([32, 2, 1], 8));
    assert_eq!(
        own.satisfied(&launch).map(|made| made.block),
        Some([96, 2, 1])
    );
    assert!(
        "param3:8=4096"
            .parse::<Guard>()
            .unwrap()
            .satisfied(&launch)
            .is_none()
    );
}
