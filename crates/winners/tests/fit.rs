//! What does not lead where it says does not reach a driver.

use warpwright_sass::Elf;
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};
use warpwright_winners::fit::{Original, Unfit};
use warpwright_winners::{LaunchClass, Shape, Standing, Winner};

/// A kernel with static shared memory, a bound on its blocks and code enough to cut.
fn build(sm: &str, name: &str, most: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit("fit")?;
    let text = format!(
        ".version 8.8\n.target {sm}\n.address_size 64\n.visible .entry {name}(.param .u64 p) .maxntid {most} {{
  .reg .b64 %d; .reg .b32 %r<3>; .shared .align 4 .b8 tile[512];
  ld.param.u64 %d, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile; st.shared.u32 [%r1], %r0; bar.sync 0;
  ld.shared.u32 %r2, [%r1+4]; st.global.u32 [%d], %r2; ret; }}\n"
    );
    let job = PtxasJob::new(&text, sm);
    let built = BuildCache::standard().ptxas(&toolkit.ptxas().expect("ptxas"), &job);
    Some(built.expect("ptxas takes it").cubin.to_vec())
}

fn winner(cubin: Vec<u8>) -> Winner {
    let class = LaunchClass::new([4, 1, 1], [256, 1, 1], 0, [0; 3]);
    Winner {
        kernel: "aa".repeat(32),
        gpu: "a GPU".into(),
        guard: class.expect("a grid").guard(),
        shape: Shape::SAME,
        symbol: "k".into(),
        recipe: "by-hand".into(),
        proof: "none".into(),
        original_ns: 2,
        winner_ns: 1,
        driver: "0".into(),
        date: "2026-11-22".into(),
        standing: Standing::Measured,
        cubin,
    }
}

/// A file that is changed in its tables.
struct Spoiled(Vec<u8>);

impl Spoiled {
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Writes so many bytes of a number.
    fn put(mut self, at: usize, number: u64, bytes: usize) -> Vec<u8> {
        self.0[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
        self.0
    }

    /// Where the header of a section begins.
    fn header(&self, wanted: &str) -> usize {
        let elf = Elf::parse(&self.0).expect("a cubin");
        let mut names = elf.sections.iter().map(|section| section.name.as_str());
        let at = names.position(|name| name == wanted);
        self.word(40) as usize + 64 * at.expect("such a section")
    }

    /// Where a section's bytes begin.
    fn contents(&self, name: &str) -> usize {
        self.word(self.header(name) + 24) as usize
    }

    /// Where the entry of the kernel's symbol begins.
    fn symbol(&self) -> usize {
        let elf = Elf::parse(&self.0).expect("a cubin");
        let kernel = elf.kernel("k").expect("a kernel");
        self.contents(".symtab") + 24 * kernel.symbol as usize
    }
}

#[test]
fn spoiled_cubins_are_named() {
    let Some(own) = build("sm_90", "k", "256, 1, 1") else {
        return;
    };
    let original = Original::new(&own).expect("a cubin");
    let verdict = |cubin: Vec<u8>| original.fits("k", &winner(cubin));
    assert!(verdict(own.clone()).is_ok());
    let new = || Spoiled(own.clone());
    let text = new().header(".text.k");
    let relocations = Elf::parse(&own).expect("a cubin").sections;
    let relocations = relocations.iter().find(|s| s.is_relocations());
    let relocations = relocations.expect("relocations").name.clone();
    let first = new().contents(&relocations);
    type Named = fn(&Unfit) -> bool;
    let cases: [(&str, Vec<u8>, Named); 10] = [
        (
            "no section is linked",
            new().put(text + 40, 9999, 4),
            |why| matches!(why, Unfit::Section(_)),
        ),
        (
            "a symbol beyond its section",
            {
                let at = new().symbol() + 16;
                new().put(at, 1 << 40, 8)
            },
            |why| matches!(why, Unfit::Symbol(_)),
        ),
        (
            "a symbol whose end is no number",
            {
                let at = new().symbol() + 8;
                new().put(at, u64::MAX, 8)
            },
            |why| matches!(why, Unfit::Symbol(_)),
        ),
        (
            "a symbol of no section",
            {
                let at = new().symbol() + 6;
                new().put(at, 500, 2)
            },
            |why| matches!(why, Unfit::Symbol(_) | Unfit::Elf(_)),
        ),
        (
            "a place beyond its section",
            new().put(first, 1 << 40, 8),
            |why| matches!(why, Unfit::Relocation(_)),
        ),
        (
            "a relocation of no symbol",
            new().put(first + 12, 1 << 20, 4),
            |why| matches!(why, Unfit::Relocation(_)),
        ),
        (
            "half an instruction",
            {
                let size = new().word(text + 32);
                new().put(text + 32, size - 8, 8)
            },
            |why| matches!(why, Unfit::Symbol(_) | Unfit::Code),
        ),
        (
            "a kernel in the middle of its section",
            {
                let at = new().symbol() + 8;
                let spoiled = Spoiled(new().put(at, 16, 8));
                let size = spoiled.word(at + 8);
                spoiled.put(at + 8, size - 16, 8)
            },
            |why| matches!(why, Unfit::Code),
        ),
        (
            "another architecture",
            build("sm_80", "k", "256, 1, 1").expect("a toolkit"),
            |why| matches!(why, Unfit::Target),
        ),
        (
            "another kernel",
            build("sm_90", "other", "256, 1, 1").expect("a toolkit"),
            |why| matches!(why, Unfit::Kernel(_)),
        ),
    ];
    for (what, cubin, is_named) in cases {
        let why = verdict(cubin).expect_err(what);
        assert!(is_named(&why), "{what}: {why:?}");
    }
}

/// A bound whose threads are no number bounds nothing; one below the launches' blocks is refused.
#[test]
fn bounds_of_blocks_are_those_of_the_launches() {
    let Some(own) = build("sm_90", "k", "256, 1, 1") else {
        return;
    };
    let original = Original::new(&own).expect("a cubin");
    let small = build("sm_90", "k", "128, 1, 1").expect("a toolkit");
    let verdict = original.fits("k", &winner(small));
    assert_eq!(verdict, Err(Unfit::Block));
    let spoiled = Spoiled(own.clone());
    let info = spoiled.contents(".nv.info.k");
    // EIATTR_MAX_THREADS: a format, a number, a size, three words.
    let record = [0x04u8, 0x05, 12, 0];
    let at = own[info..].windows(4).position(|four| four == record);
    let at = info + at.expect("a bound") + 4;
    let huge = Spoiled(spoiled.put(at, u64::MAX, 8)).put(at + 8, u64::MAX, 4);
    assert!(original.fits("k", &winner(huge)).is_ok());
}
