#!/usr/bin/env python3
"""Attacks the store of winners and the library that programs load, on the driver that computes on the host.

  scripts/attack.py [--seconds N | --cases N] [--seed N] [--binary WARPWRIGHT] [--library LIB] [--only KIND]

Each case spoils something (records, guards, cubins under right digests, entries of the store, exports, logs, disks,
processes in the middle of their work, signals, memory, threads, graphs, other preloaded libraries) and runs a program with the
library: nothing may change what it prints, its exit code or the signals that it gets. Before each attack on a winner that winner
is launched: one that is not in place ends the case. The cases follow from the seed. Needs a toolkit and cc, no GPU.
"""
import argparse, collections, fcntl, hashlib, itertools, json, os, pty, random, re, resource, select, shlex, shutil, signal, socket, struct, subprocess, sys, tempfile, termios, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, "crates/inject/tests/program")
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n"
SCALE = """.visible .entry scale(.param .u64 p, .param .u32 n) {
    .reg .b64 %d<2>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [p]; ld.global.f32 %f0, [%d0];
    fma.rn.f32 %f0, %f0, 0f40000000, 0f3F800000; st.global.f32 [%d0], %f0; ret;
}
"""
SCENARIOS = ["plain", "library", "file", "enumerate", "attributes", "unload", "graph", "capture", "threads", "cooperative",
             "cluster", "node-cluster", "node-copy", "required-cluster", "preferred-cluster", "policy", "extra", "link",
             "fork-first", "fork-later", "contexts", "narrow", "coroutine", "coroutine-thread"]
DOORS = ["dlsym", "proc1", "proc2", "thread", "local", "linked"]
Run = collections.namedtuple("Run", "code out err")


# Numbers of named pipes.
FIFOS = itertools.count()


def ran(words, env=None, timeout=60, **more):
    try:
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, **more)
        return Run(done.returncode, done.stdout, done.stderr)
    except subprocess.TimeoutExpired:
        return Run("hangs", b"", b"")


def fat_binary(cubin, ptx):
    """One with a cubin and PTX, as nvcc makes it."""
    body = b""
    for kind, payload in [(2, cubin), (1, ptx.encode())]:
        payload += bytes(-len(payload) % 8)
        header = bytearray(64)
        struct.pack_into("<BxHIQ", header, 0, kind, 0x101, 64, len(payload))
        header[28], header[40] = 90, 0x11
        body += bytes(header) + payload
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(body)) + body


class Bench:
    def __init__(self, args):
        self.binary, self.library = os.path.abspath(args.binary), os.path.abspath(args.library)
        self.folder = tempfile.mkdtemp(prefix="attack-")
        self.dice = random.Random(args.seed)
        at = self.at
        for out, words in [("libcuda.so.1", ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "fake_driver.c"]),
                           ("host", ["host.c"]), ("host-linked", ["-DLINKED", "host.c", at("libcuda.so.1")]),
                           ("short.so", ["-shared", "-fPIC", "short.c"]), ("few", ["few.c"]), ("asks", ["asks.c"]),
                           ("terminal", ["terminal.c"]), ("chain", ["chain.c"]), ("deeds", ["deeds.c", "-Wl,--no-as-needed", "-lgcc_s"]), ("beyond", ["beyond.c"]),
                           ("amid", ["amid.c", "-lm"]), ("bears", [os.path.join(ROOT, "crates/cli/tests/program/bears.c")])]:
            subprocess.run(["cc", "-w", "-O1", "-o", at(out), *words, "-ldl", "-lpthread"], cwd=SOURCES, check=True)
        self.ptxas = self.find_ptxas()
        self.module = self.compile("", SCALE)
        self.original = self.write("scale.cubin", self.module)
        # With PTX of which faster versions can be made.
        self.fat = self.write("scale.fatbin", fat_binary(self.module, PTX + SCALE.replace("0f40000000", "0f4FFA7FA5")))
        self.env = {"LD_LIBRARY_PATH": self.folder, "PATH": os.environ.get("PATH", ""), "HOME": self.folder,
                    "TMPDIR": self.make("tmp"), "FAKE_LOG": at("fake.log"),
                    "WARPWRIGHT_INJECT": self.library,
                    # The folder of another user has none.
                    "WARPWRIGHT_TOOLKIT": os.path.dirname(os.path.dirname(self.ptxas))}
        if "WARPWRIGHT_CACHE" in os.environ:
            self.env["WARPWRIGHT_CACHE"] = os.environ["WARPWRIGHT_CACHE"]
        self.kernel = self.digest_of()
        self.fast = self.compile(".visible .global .u32 fake_fast = 1;\n", SCALE)
        self.wrong = self.compile(".visible .global .u32 fake_wrong = 1;\n", SCALE)
        self.expected = {}

    def at(self, name):
        return os.path.join(self.folder, name)

    def make(self, name):
        os.makedirs(self.at(name), mode=0o700, exist_ok=True)
        return self.at(name)

    def write(self, name, data):
        with open(self.at(name), "wb") as file:
            file.write(data)
        return self.at(name)

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.folder], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def find_ptxas(self):
        said = subprocess.run([self.binary, "toolkit", "--json"], stdout=subprocess.PIPE).stdout.decode()
        found = re.search(r'"(/[^"]*/ptxas)"', said)
        return found.group(1) if found else shutil.which("ptxas") or sys.exit("SKIPPED the attack: there is no ptxas")

    def compile(self, variables, kernels):
        path = self.write("one.ptx", (PTX + variables + kernels).encode())
        subprocess.run([self.ptxas, "-arch=sm_90", path, "-o", self.at("one.cubin")], check=True)
        with open(self.at("one.cubin"), "rb") as file:
            return file.read()

    def digest_of(self):
        """The kernel's digest, from a trace of the program."""
        env = dict(self.env, WARPWRIGHT_LOG="/dev/null")
        trace = ran([self.binary, "trace", "--json", "--", self.at("host"), "dlsym", "plain", self.original], env)
        # Modules have digests as well.
        found = re.search(rb'"launches": \[.*?"digest": "([0-9a-f]{64})"', trace.out, re.DOTALL)
        return found.group(1).decode() if found else sys.exit(f"no trace: {trace}")

    # Records.
    def facts(self, **more):
        facts = {"kernel": self.kernel, "gpu": "Fake GPU",
                 "guard": "block=256,1,1; grid.size>=4; grid.size<=7; cluster=1,1,1; smem=0", "shape": "same",
                 "symbol": "scale", "recipe": "maxnreg(64)", "proof": "by hand", "original-ns": "2000",
                 "winner-ns": "1000", "driver": "0", "date": "2026-11-22"}
        facts.update(more)
        return facts

    @staticmethod
    def signed(body, version=2):
        return b"warpwright-winner %d %d %s\n" % (version, len(body), hashlib.sha256(body).hexdigest().encode()) + body

    def record(self, cubin, **more):
        lines = "".join(f"{name} {value}\n" for name, value in self.facts(**more).items())
        return self.signed(lines.encode("utf-8", "surrogateescape") + b"\n" + cubin)

    def good(self, cubin=None):
        """A winner as a record, which the driver gets. An attack on anything else would be none."""
        cubin = cubin or self.fast
        record, folder, log = self.record(cubin), self.make("proof"), self.at("proof.log")
        with open(os.path.join(folder, f"{self.kernel[:32]}-0.winner"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(record)
        if os.path.exists(log):
            os.remove(log)
        done = ran(self.words("dlsym", "plain"), self.preloaded(WARPWRIGHT_DB=folder, WARPWRIGHT_LOG="/dev/null", FAKE_LOG=log))
        launched = ""
        if os.path.exists(log):
            with open(log) as file:
                launched = file.read()
        if f" image {len(cubin)} " not in launched:
            raise Difference(f"the winner that is to be attacked is not in place: {done} {launched}")
        return record

    def store(self, *records):
        folder = self.at("store")
        if os.path.isdir(folder):
            for name in os.listdir(os.fsencode(folder)):
                path = os.path.join(os.fsencode(folder), name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        for number, data in enumerate(records):
            self.entry(f"{number:016x}", data)
        return folder

    def entry(self, name, data):
        path = os.path.join(self.at("store"), f"{self.kernel[:32]}-{name}.winner")
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o600)
        return path

    # Programs.
    def words(self, door, scenario, image=None):
        host = "host-linked" if door == "linked" else "host"
        return [self.at(host), door, scenario, image or self.original]

    def plain(self, door, scenario):
        key = (door, scenario)
        if key not in self.expected:
            self.expected[key] = ran(self.words(door, scenario), dict(self.env))
        return self.expected[key]

    def preloaded(self, mode="with", **more):
        env = dict(self.env, LD_PRELOAD=self.library, WARPWRIGHT=mode, WARPWRIGHT_DB=self.at("store"),
                   WARPWRIGHT_LOG=self.at("log"), WARPWRIGHT_DIR=self.make("notes"))
        env.update(more)
        return env

    def check(self, what, env=None, scenario=None, door=None, **more):
        """Runs a program with the library; a difference from the plain run ends the attack."""
        scenario, door = scenario or self.dice.choice(SCENARIOS), door or self.dice.choice(DOORS)
        plain = self.plain(door, scenario)
        found = ran(self.words(door, scenario), env or self.preloaded(), **more)
        self.same(what, plain, found, (door, scenario))

    def same(self, what, plain, found, which=""):
        if (plain.code, plain.out) != (found.code, found.out):
            raise Difference(f"{what} {which}: {plain.code} {plain.out!r}, but then {found.code} {found.out!r} {found.err!r}")

    def command(self, *words, **more):
        return ran([self.binary, *words], dict(self.env, WARPWRIGHT_DB=self.at("store"), **more))

    def listed(self, what):
        """The store as a whole is read, whatever is in it."""
        done = self.command("db", "list", "--json")
        if done.code != 0:
            raise Difference(f"{what}: db list ends with {done.code}: {done.err!r}")


class Difference(Exception):
    pass


def spoiled(dice, data):
    """Data with something wrong in it."""
    data = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 5, 40])):
        if not data:
            break
        at = dice.randrange(len(data))
        kind = dice.randrange(7)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at] = dice.choice([0, 0xff, 0x7f, 0x80, 10, 32])
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at:at + dice.choice([1, 4, 8, 64])]
        elif kind == 4:
            data[at:at] = bytes(dice.randrange(256) for _ in range(dice.choice([1, 4, 16, 64])))
        elif kind == 5 and at + 8 <= len(data):
            data[at:at + 8] = struct.pack("<Q", dice.choice([0, 1, 2**16, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data)]))
        else:
            size = dice.choice([4, 24, 64])
            other = dice.randrange(len(data))
            data[at:at + size] = data[other:other + size]
    return bytes(data)


def damage(b):
    good = b.good()
    b.store(spoiled(b.dice, good), *([good] if b.dice.random() < .3 else []))
    b.check("a damaged record")


def cubins(b):
    """Other cubins under right digests; half of them differ in headers and tables, where most of the meaning is."""
    b.good()
    data = bytearray(b.fast)
    shoff, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    if b.dice.random() < .5:
        for _ in range(b.dice.choice([1, 2, 6])):
            at = b.dice.choice([b.dice.randrange(64), shoff + b.dice.randrange(64 * count)])
            data[at] = b.dice.choice([0, 1, 0xff, b.dice.randrange(256)])
        data = bytes(data)
    else:
        data = spoiled(b.dice, data)
    b.store(b.record(data))
    b.check("a cubin that was changed under a right digest")


def facts(b):
    d = b.dice
    odd = ["", "0", "-1", "18446744073709551616", "always", "never", "block=0,1,1", "block=1,1,1", "param0=0", "param9:4=1",
           "param1+4096:8>=1", "cluster=2,1,1", "smem>=0", "smem+4294967295", "block=1024,1,1; smem+4096",
           "block=4294967295,1,1", "same", "disjoint(param0[9],param1[9])", "../../../tmp/x", "\u202e", "%s%n", "a" * 5000,
           "trusted", "measured", "imported", "NaN", "1e999", "grid.x%0=0", "block.x%3=0", "param0%4=0"]
    names = list(b.facts())
    more = {name.replace("_", "-"): d.choice(odd) for name in d.sample(names, d.choice([1, 1, 2, 3])) if name != "kernel"}
    if d.random() < .4:
        more["shape"] = d.choice(["block=64,1,1", "block=32,2,1; smem+64", "smem+128", "block=7,1,1"])
    if d.random() < .3:
        more["standing"] = d.choice(["imported", "trusted", "proved", "blessed", ""])
    good, record = b.good(), b.record(b.fast, **more)
    if d.random() < .2:
        body = record[record.index(b"\n") + 1:]
        record = b.signed(body, d.choice([0, 1, 3, 99, 4294967295]))
    b.store(record, *([good] if d.random() < .3 else []))
    b.check(f"a record with {more}")
    if d.random() < .2:
        b.listed(f"a record with {more}")


def entries(b):
    d, good = b.dice, b.good()
    folder = b.store(good)
    start = os.path.join(folder, b.kernel[:32])
    for number in range(d.choice([1, 2, 4])):
        path = f"{start}-{number:x}{d.choice(['', 'a', '.winner', chr(10), ' ', chr(0x1f600)])}.{d.choice(['winner', 'winner', 'imported', 'part-1-1', 'x'])}"
        kind = d.randrange(9)
        try:
            if kind == 0:
                os.mkfifo(path)
            elif kind == 1:
                os.mkdir(path)
            elif kind == 2:
                os.symlink(d.choice(["/dev/zero", "/dev/tty", "/nowhere", path, "/proc/self/mem", "/etc/passwd", "."]), path)
            elif kind == 3:
                with open(path, "wb") as file:
                    file.truncate(d.choice([0, 1, 1 << 20, 1 << 30, 1 << 40]))
            elif kind == 4:
                with open(path, "wb") as file:
                    file.write(good + d.choice([b"", b"x", good]))
                os.chmod(path, d.choice([0o666, 0o000, 0o602, 0o4755]))
            elif kind == 5:
                os.link(f"{start}-{0:016x}.winner", path)
            elif kind == 6:
                os.rename(f"{start}-{0:016x}.winner", path)
            elif kind == 7:
                with open(os.fsencode(path[:-7]) + b"\xff\xfe.winner", "wb") as file:
                    file.write(b"x")
            else:
                os.chmod(folder, d.choice([0o777, 0o1777, 0o770, 0o000, 0o500]))
        except OSError:
            pass
    b.check("odd entries")
    if d.random() < .3 and not os.stat(folder).st_mode & 0o002:
        b.listed("odd entries")
    os.chmod(folder, 0o700)


def exports(b):
    """What somebody else made is not used, whatever it says; and it writes nowhere else."""
    d = b.dice
    b.good(b.wrong)
    b.store(*([b.good()] if d.random() < .3 else []))
    hostile = b.record(b.wrong, **{"winner-ns": "1", "standing": d.choice(["measured", "trusted"]),
                                   **({"kernel": d.choice(["../" * 9 + "tmp/x", "a" * 300, "/etc/x"])} if d.random() < .1 else {})})
    parts = [hostile, b.record(b.fast), spoiled(d, hostile), b"warpwright-winner 2 99999999999999999999 x\n"]
    records = [d.choice(parts[:2] if d.random() < .7 else parts) for _ in range(d.choice([1, 2, 3]))]
    data, is_whole = b"".join(records), True
    if d.random() < .5:
        body = b"records %d\n" % len(records) + data
        data = b"warpwright-export 1 %d %s\n" % (len(body), hashlib.sha256(body).hexdigest().encode()) + body
        if d.random() < .5:
            data, is_whole = data[:d.choice([d.randrange(20, len(data)), len(data) - len(records[-1])])], False
    path = b.write("export", data)
    before = sorted(os.listdir(b.folder))
    done = b.command("db", "import", path)
    if done.code not in ((0, 1) if is_whole else (1,)):
        raise Difference(f"an import ends with {done.code}: {done.err!r}")
    if sorted(os.listdir(b.folder)) != before:
        raise Difference("an import wrote outside of the store")
    b.check("an export of somebody else")


def kills(b):
    """Writers that are killed leave whole records or none."""
    b.store(b.good())
    path = b.write("export", b.record(b.fast) * b.dice.choice([1, 50]))
    shutil.rmtree(b.make("outputs"))
    out = os.path.join(b.make("outputs"), "out")
    words = b.dice.choice([["db", "import", "--trust", path], ["db", "export", out], ["db", "export", out],
                           ["trace", "--", *b.words("dlsym", "plain")]])
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null")
    process = subprocess.Popen([b.binary, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(b.dice.random() * .05)
    process.kill()
    process.wait()
    if set(os.listdir(b.at("outputs"))) - {"out"}:
        raise Difference(f"a killed export left {os.listdir(b.at('outputs'))}")
    for name in os.listdir(b.at("store")):
        data = os.stat(os.path.join(b.at("store"), name))
        if ".part-" in name and data.st_mode & 0o077:
            raise Difference(f"`{name}` can be read by others")
    b.check("after a writer was killed")


def disks(b):
    """Files that cannot grow: by a limit, or because nothing is free."""
    most = b.dice.choice([0, 1, 512, 4096])
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    b.store(b.good())
    kind = b.dice.randrange(3)
    if kind == 0:
        env = b.preloaded(b.dice.choice(["with", "trace", "trace+with"]), FAKE_LOG="/dev/null")
        b.check("files that cannot grow", env, preexec_fn=limit)
    elif kind == 1:
        path = b.write("export", b.record(b.fast))
        done = ran([b.binary, "db", "import", "--trust", path], dict(b.env, WARPWRIGHT_DB=b.at("store")), preexec_fn=limit)
        if done.code == "hangs":
            raise Difference("an import hangs where files cannot grow")
        b.check("after an import into a full store")
    else:
        b.check("a full device as log", b.preloaded(WARPWRIGHT_LOG="/dev/full"))


def memory(b):
    """So many bytes more than the program has, and no more."""
    d, good = b.dice, b.good()
    large = b.fast + bytes(d.choice([0, 1 << 16, 1 << 20, 1 << 23]))
    b.store(*d.choice([[good], [b.record(large)], [good, b.record(large)]]))
    room = str(d.choice([0, d.randrange(1 << 18), d.randrange(1 << 22), d.randrange(1 << 24), d.randrange(1 << 27)]))
    words = [*b.words(d.choice(DOORS), "short"), room]
    plain = ran(words, dict(b.env))
    found = ran(words, b.preloaded(d.choice(["with", "with", "trace", "trace+with"])))
    b.same(f"with {room} bytes left, a winner of {len(large)}", plain, found, words[1])


def short(b):
    """The disk of a command fills up, or its threads do not start."""
    d = b.dice
    b.store(*([b.good()] if d.random() < .5 else []))
    plain = b.plain("dlsym", "plain")
    limit = d.choice([{"SHORT_THREADS": "1"}, {"SHORT_DISK": str(d.choice([0, d.randrange(3000), d.randrange(50000)]))}])
    command = d.choice(["tune", "trace"])
    words = [b.binary, command, *(["--budget", "1"] if command == "tune" else []), "--", *b.words("dlsym", "plain")]
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), LD_PRELOAD=b.at("short.so"), FAKE_LOG="/dev/null", **limit)
    found = ran(words, env)
    is_refused = found.code == 1 and not found.out and "SHORT_DISK" in limit
    if found.code not in (0, 1) or not (is_refused or found.out.startswith(plain.out)):
        raise Difference(f"{command} with {limit}: {found}")


def together(b):
    """Processes that write, remove and read one store at a time."""
    b.store(b.good())
    path = b.write("export", b.record(b.fast))
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"))
    start = lambda words, env: subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                stderr=subprocess.DEVNULL)
    writers = [start([b.binary, *words], env) for words in
               [["db", "import", "--trust", path], ["db", "list"], ["db", "remove", "scale"], ["db", "export", b.at("out")]]]
    scenario = b.dice.choice(SCENARIOS)
    programs = [(door, start(b.words(door, scenario), b.preloaded())) for door in b.dice.sample(DOORS, 3)]
    for door, process in programs:
        out = process.communicate(timeout=60)[0]
        b.same("beside writers", b.plain(door, scenario), Run(process.returncode, out, b""), (door, scenario))
    for process in writers:
        process.communicate(timeout=60)


def logs(b):
    b.store(b.good())
    pipe = b.at("pipe")
    if os.path.exists(pipe):
        os.remove(pipe)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if b.dice.random() < .5 else None
    if reader is not None and b.dice.random() < .5:
        writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            pass
        os.close(writer)
    log = b.dice.choice([pipe, pipe, "/", "/nowhere/log", "/dev/null", b.folder, "log", "/proc/self/mem"])
    b.check(f"a log to {log}", b.preloaded(WARPWRIGHT_LOG=log, WARPWRIGHT=b.dice.choice(["with", "trace"])), cwd=b.make("tmp"))
    if reader is not None:
        os.close(reader)


def settings(b):
    b.store(b.good())
    odd = ["", "x", "/dev/null", "/dev/zero", "/", "a" * 5000, "../store", b.at("scale.cubin"), "/proc/self/fd/0", "with"]
    env = b.preloaded()
    for name in b.dice.sample(["WARPWRIGHT", "WARPWRIGHT_DB", "WARPWRIGHT_DIR", "WARPWRIGHT_LOG", "HOME", "XDG_DATA_HOME"], 2):
        env[name] = b.dice.choice(odd + ["trace", "try", "trace+with"] * (name == "WARPWRIGHT"))
    b.check("odd settings", env, cwd=b.make("tmp"))


def signals(b):
    """A signal to the command, or to its group, is one to the program, and the command ends as that does."""
    b.store(b.good())
    # What stops is handled here, and not in `stops`; two are the C library's.
    d, stopping = b.dice, [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU]
    idle = [signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, *stopping]
    number = d.choice([one for one in range(1, 65) if one not in [signal.SIGSTOP, 32, 33]])
    handled = (d.random() < .6 or number in idle) and number != signal.SIGKILL
    trap = f"trap 'echo got {number}; n=1$n' {number}; " if handled else ""
    script = trap + "echo ready >&3; i=0; while [ $i -lt 12 ]; do sleep 0.05; i=$((i+1)); done; echo late $n; exit 9"
    if not handled:  # a program that is no shell: those take some signals by themselves
        script = "echo ready >&3; exec sleep 5"
    send = d.choice([os.kill, os.killpg])
    results = []
    for before in [[], [b.binary, d.choice(["trace", "tune", "with"]), "--"]]:
        read, write = os.pipe()
        env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null")
        process = subprocess.Popen([*before, "bash", "-c", script.replace(">&3", f">&{write}")], env=env, pass_fds=[write],
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.close(write)
        os.read(read, 16)
        send(process.pid, number)
        out = process.communicate(timeout=60)[0]
        os.close(read)
        results.append(Run(process.returncode, out, b""))
    b.same(f"{number} to {before[1:2]}, {send.__name__}, handled: {handled}", *results)


def exits(b):
    """A command ends as its program, by a code or by a signal, and what it says itself is marked."""
    b.store()
    d = b.dice
    end = d.choice([f"exit {d.randrange(256)}", f"kill -{d.choice([1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 14, 15, 24, 31, 34, 64])} $$; echo after"])
    start = d.choice(["echo a", "echo a; echo b >&2", "echo a >&2 & wait", "exec 2>&1; echo a >&2", "(sleep 0.1; echo late) & wait"])
    env, command = dict(b.env, WARPWRIGHT_DB=b.at("store")), d.choice(["trace", "tune", "with"])
    plain, found = [ran([*before, "sh", "-c", f"{start}; {end}"], env) for before in [[], [b.binary, command, "--"]]]
    said = b"".join(line for line in found.err.splitlines(True) if not line.startswith(b"warpwright:"))
    if plain != Run(found.code, found.out, said):
        raise Difference(f"{command} {start}; {end}: {plain}, but then {found}")


def limits(b):
    """What a process may have is for the program to see, and costs it nothing, or is told before it starts."""
    b.store()
    d = b.dice
    kinds = {"AS": [1 << 28, 1 << 30, 4 << 30], "DATA": [1 << 24, 1 << 30], "STACK": [1 << 16, 1 << 20], "FSIZE": [0, 1, 4096], "CPU": [5],
             "NPROC": [1, 10], "NOFILE": [*range(4, 40), 64], "CORE": [0], "MEMLOCK": [0], "SIGPENDING": [0, 1]}
    chosen = {name: d.choice(kinds[name]) for name in d.sample(sorted(kinds), d.choice([1, 2, 3])) if hasattr(resource, f"RLIMIT_{name}")}

    def before():
        for name, soft in chosen.items():
            kind = getattr(resource, f"RLIMIT_{name}")
            resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))

    words = d.choice([["sh", "-c", "ulimit -a; ulimit -Ha; exit 7"], ["sh", "-c", "ls / | head -3; exit 4"], ["cat", "/proc/self/limits"]])
    env, command = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null"), d.choice(["trace", "tune", "with"])
    plain, found = [ran([*start, *words], env, preexec_fn=before) for start in [[], [b.binary, command, "--"]]]
    # What is not marked was said before the program started.
    is_refused = command != "with" and found.code == 1 and not found.out and found.err.startswith(b"error: ")
    if not is_refused and (found.code, found.out) != (plain.code, plain.out):
        raise Difference(f"{command} {words} with {chosen}: {plain}, but then {found}")


def forbids(b):
    """A program that forbids itself to open files is not ended by the library."""
    b.store(b.good())
    d, by = b.dice, b.dice.choice(["prctl", "syscall"])
    words = [*b.words(d.choice(DOORS), d.choice(["forbidden", "forbidden-first"])), by]
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"))
    del env["FAKE_LOG"]
    command = d.choice([["trace"], ["with"], ["tune", "--budget", "0.3"]])
    plain, found = [ran([*before, *words], env) for before in [[], [b.binary, *command, "--"]]]
    if found.code != plain.code or not found.out.startswith(plain.out):
        raise Difference(f"{command} {words}: {plain}, but then {found}")


def tunes(b):
    """Whatever lies in a store: `tune` and `db verify` give the program's output and exit code once, and nobody's code runs unproved."""
    d, good = b.dice, b.good()
    hostile = b.record(b.wrong, **{"winner-ns": "1", "standing": "imported"})
    folder = b.store(*d.sample([good, hostile, spoiled(d, good), spoiled(d, hostile), b"", b.record(b.fast, standing="imported")], d.choice([1, 2, 4])))
    if d.random() < .3:
        os.symlink(d.choice(["/dev/zero", "/nowhere", "."]), os.path.join(folder, f"{b.kernel[:32]}-ff.winner"))
    which, code = (d.choice(DOORS), d.choice(SCENARIOS)), d.choice([0, 3, 77])
    command = d.choice([["tune", "--budget", "0.3"], ["tune", "--budget", "0.3", "--json"], ["db", "verify"]])
    env = dict(b.env, WARPWRIGHT_DB=folder, FAKE_LOG="/dev/null", HOST_REPEAT=d.choice(["1", "3", "12"]))
    words = ["sh", "-c", f"{' '.join(b.words(*which, d.choice([b.original, b.fat])))}; echo told >&2; exit {code}"]
    plain, found = [ran([*before, *words], env, timeout=120) for before in [[], [b.binary, *command, "--"]]]
    is_refused = command[0] == "db" and code == 0 and found.code == 5
    if found.out[:len(plain.out)] != plain.out or found.err.count(b"told\n") != 1 or not (is_refused or found.code == plain.code):
        raise Difference(f"{command} {which}: {plain}, but then {found}")
    b.same(f"behind {command}", plain, ran(words, dict(env, **b.preloaded(FAKE_LOG="/dev/null"))), which)


def outputs(b):
    """What nobody takes costs no exit code of the program, and nothing is written over it or what it reads."""
    d, code = b.dice, b.dice.choice([0, 3, 255])
    b.store()
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="/dev/null", OWN=b.binary)
    command = d.choice(["trace", "trace --json", "tune --budget 0.3", "with"])
    program = f"sh -c '{' '.join(b.words('dlsym', 'plain'))}; exit {code}'"
    to = d.choice(["> /dev/full", "> /dev/full 2>&1", ">&-", ">&- 2>&-", "2>&-", "| :"])
    plain, found = [ran(["bash", "-c", f"{before} {program} {to}; exit ${{PIPESTATUS[0]}}"], env) for before in ["", f"$OWN {command} --"]]
    if found.code != plain.code and not (code == 0 and "full" in to and found.code == 1 and command != "with"):
        raise Difference(f"{command} {to}: {plain}, but then {found}")
    script = b.write("program", b"#!/bin/sh\ncat; touch $RAN\n")
    os.chmod(script, 0o755)
    data, other = b.write("read", b"data"), b.at("other")
    if os.path.lexists(other):
        os.remove(other)
    d.choice([os.link, os.symlink])(d.choice([script, data]), other)
    option, place = d.choice(["trace -o", "tune --keep", "tune --report-to"]), d.choice([script, data, other])
    words = d.choice([f"{script} {data}", f"{script} --from={data}", f"sh {script} {data}", f"env {script} {data}"])
    done = ran(["sh", "-c", f"$OWN {option} {place} -- {words} < {data}"], dict(env, RAN=b.at("ran")))
    with open(script, "rb") as one, open(data, "rb") as two:
        if done.code != 1 or os.path.exists(b.at("ran")) or (one.read(), two.read()) != (b"#!/bin/sh\ncat; touch $RAN\n", b"data"):
            raise Difference(f"{option} {place} -- {words}: {done}")


def number(d):
    return d.choice([0, 1, 2, 3, 4, 127, 128, 255, 256, 257, 999, 1000, 1001, 65536, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63,
                     2**64 - 2, 2**64 - 1, d.randrange(2**64), d.randrange(2048)])


# What conditions of guards may be about: the tests' launches have two parameters of 8 and 4 bytes.
KNOWN = ["block.x", "block.y", "block.z", "block.size", "grid.x", "grid.y", "grid.z", "grid.size", "cluster.x", "cluster.size",
         "smem", "param1:4", "param1:2", "param1+2:2", "param1:1", "param1+3:1"]
OTHERS = ["param0:8", "param0+4:4", "param0+7:1", "param1:8", "param1+1:4", "param0+8:8", "param2:4", "param4294967295:8",
          "param0+18446744073709551615:8"]
# The launches of the scenarios that a guard is held against: blocks of 256 and of 128 threads.
PLAIN = ["plain", "library", "file", "extra", "cooperative", "graph", "capture", "fork-first", "unload"]


def condition(d, about):
    kind = d.randrange(8)
    if kind < 5 or about is KNOWN:
        return f"{d.choice(about)}{d.choice(['=', '<=', '>='])}{number(d)}"
    if kind == 5:
        return f"{d.choice(about)}%{number(d)}={d.choice([0, 0, number(d)])}"
    if kind == 6:
        return f"disjoint(param{d.choice([0, 0, 1, 2])}[{number(d)}],param{d.choice(['0', '1', '0+8', '2'])}[{number(d)}])"
    return d.choice([f"align(param{d.choice([0, 1, 3])})={number(d)}", "block=0,0,0", "grid.w=1", "param0:3=1", "smem>=", ";", "\t"])


def is_met(text, block):
    """Does a condition hold for a launch of four such blocks with n = 1000? By a reading of its own."""
    what, how, wanted = re.fullmatch(r"([a-z0-9.:+]+)(=|<=|>=)(\d+)", text).groups()
    where = re.fullmatch(r"param1(?:\+(\d))?:(\d)", what)
    if where:
        value = 1000 >> 8 * int(where[1] or 0) & (1 << 8 * int(where[2])) - 1
    else:
        value = {"block.x": block, "block.size": block, "grid.x": 4, "grid.size": 4, "smem": 0}.get(what, 1)
    return {"=": value == int(wanted), "<=": value <= int(wanted), ">=": value >= int(wanted)}[how]


def guards(b):
    """Any guard and shape with right code; and wrong code whose guard does not hold, which must not run."""
    d = b.dice
    if d.random() < .5:
        text = "; ".join(condition(d, KNOWN + OTHERS) for _ in range(d.choice([1, 1, 2, 3, 6])))
        if d.random() < .02:
            text = "; ".join(f"disjoint(param0[{n + 1}],param{n % 900 + 1}[7])" for n in range(d.choice([100, 2000])))
        shape = d.choice(["same", "same", "block=1,1,1", "block=4294967295,1,1", "block=0,0,0", "smem+4294967295", "block=3,1,1"])
        b.good()
        b.store(b.record(b.fast, guard=text, shape=shape))
        return b.check(f"the guard {text[:200]} with {shape}")
    parts = [condition(d, KNOWN) for _ in range(d.choice([1, 1, 2, 3]))]
    if any(all(is_met(part, block) for part in parts) for block in (256, 128)):
        parts.append("smem>=1")
    b.good(b.wrong)
    b.store(b.record(b.wrong, guard="; ".join(parts)))
    b.check(f"wrong code under {parts}", scenario=d.choice(PLAIN))


def changing(b):
    """The store changes while programs and commands read it."""
    d, good = b.dice, b.good()
    folder, ends = b.store(good), threading.Event()
    away = folder + ".away"
    own = random.Random(d.random())

    def change():
        path = os.path.join(folder, f"{b.kernel[:32]}-{own.randrange(4):x}.winner")
        kind = own.randrange(7)
        if kind == 0:
            os.remove(path)
        elif kind == 1:
            os.truncate(path, own.randrange(len(good)))
        elif kind == 2:
            os.chmod(folder, own.choice([0o700, 0o777, 0o755, 0o000]))
        elif kind == 3:
            os.symlink(path, path)
        elif kind == 4:
            os.rename(folder, away)
            time.sleep(.001)
            os.rename(away, folder)
        elif kind == 5:
            os.mkfifo(path)
        else:
            with open(path + ".new", "wb") as file:
                file.write(good)
            os.chmod(path + ".new", 0o600)
            os.rename(path + ".new", path)

    def changes():
        while not ends.wait(.0005):
            try:
                change()
            except OSError:
                pass

    thread = threading.Thread(target=changes)
    thread.start()
    try:
        scenario = d.choice(SCENARIOS)
        for door in d.sample(DOORS, 2):
            b.check("a store that changes", b.preloaded(d.choice(["with", "trace+with"])), scenario, door)
        words = d.choice([["list"], ["export", b.at("out")], ["show", "scale"], ["import", b.write("export", good)]])
        done = b.command("db", *words)
        if done.code not in (0, 1):
            raise Difference(f"db {words} ends with {done.code} in a store that changes: {done.err!r}")
    finally:
        ends.set()
        thread.join()
        if os.path.isdir(folder):
            os.chmod(folder, 0o700)


def tools(b):
    """Other preloaded libraries, before ours and behind it."""
    d = b.dice
    for name, flags in [("hooks.so", []), ("exports.so", ["-DEXPORTS"])]:
        if not os.path.exists(b.at(name)):
            subprocess.run(["cc", "-w", "-shared", "-fPIC", *flags, "-o", b.at(name), "tool.c", "-ldl"], cwd=SOURCES, check=True)
    b.store(b.good())
    others = [b.at(d.choice(["hooks.so", "exports.so"]))] + d.choice([[], ["/nowhere.so"]])
    both = others + [b.library] * d.choice([1, 2])
    d.shuffle(both)
    which = (d.choice(DOORS), d.choice(["plain", "library", "threads", "capture"]))
    plain = ran(b.words(*which), dict(b.env, LD_PRELOAD=":".join(others)))
    found = ran(b.words(*which), b.preloaded(d.choice(["with", "trace", "off"]), LD_PRELOAD=":".join(both)))
    b.same(f"preloaded {[os.path.basename(path) for path in both]}", plain, found, which)


def starts(b):
    """A program starts with the signals held back and ignored, the limits and the closed descriptors of the command."""
    d = b.dice
    held = d.sample([1, 2, 3, 10, 12, 13, 15, 17, 25], d.choice([0, 1, 3]))
    ignored = d.sample([1, 2, 3, 10, 12, 13, 15, 17, 25], d.choice([0, 1, 3]))
    closed, stack = d.sample([0, 1, 2], d.choice([0, 0, 1, 2])), d.choice([8 << 20, 256 << 10, 64 << 10])

    def before():
        for one in [1, 2, 3, 10, 12, 13, 15, 17, 25]:
            signal.signal(one, signal.SIG_IGN if one in ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        for one in closed:
            os.close(one)

    b.store(b.good())
    script = "grep -E 'SigBlk|SigIgn' /proc/self/status; ulimit -n -f -s; exit 7"
    words = d.choice([["sh", "-c", script], ["grep", "-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"]])
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null")
    command = d.choice(["trace", "tune", "with"])
    plain, found = [ran([*start, *words], env, preexec_fn=before, restore_signals=False)
                    for start in ([], [b.binary, command, "--"])]
    b.same(f"{command} started with {held} held back, {ignored} ignored, {closed} closed, a stack of {stack}", plain, found)


def breaks(b):
    """The program breaks what the command works with: its output and its exit code stay."""
    d = b.dice
    b.store()
    code = d.choice([3, 7, 255])
    harm = d.choice(["rm -rf $DB; touch $DB", "rm -rf $DB; mkfifo $DB", "chmod 777 $DB", "rm -rf $TMPDIR/*", "rm -rf $WARPWRIGHT_DIR",
                     "chmod 000 $WARPWRIGHT_DIR", "rm -rf $DB; ln -s /dev/full $DB"])
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), DB=b.at("store"), FAKE_LOG="/dev/null", TMPDIR=b.make("own"))
    words = lambda harm: ["sh", "-c", f"{' '.join(b.words('dlsym', 'plain'))}; {harm}; exit {code}"]
    plain = ran(words("true"), env)
    found = ran([b.binary, d.choice(["tune", "trace"]), "--", *words(harm)], env, cwd=b.make("tmp"))
    if os.path.lexists(b.at("store")) and (os.path.islink(b.at("store")) or not os.path.isdir(b.at("store"))):
        os.remove(b.at("store"))
    if found.code != code or not found.out.startswith(plain.out):
        raise Difference(f"`{harm}`, exit {code}: {found}")


def inputs(b):
    """Behind a command the standard input is where the program alone would have left it."""
    d = b.dice
    b.store(*([b.good()] if d.random() < .3 else []))
    data = bytes(d.randrange(256) for _ in range(1000)) * d.choice([0, 1, 60, 70, 300]) + b"end"
    take = d.choice(["", "read x; ", "cat > /dev/null; ", "".join(f"head -c {d.randrange(len(data) + 9)} | cksum; " for _ in range(d.choice([1, 3])))])
    program, kind, pause = " ".join(b.words("dlsym", "plain")), d.choice(["pipe", "socket", "file"]), d.choice([0, 0, .01])
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="/dev/null")
    commands = [[], d.choice([[b.binary, "trace", "--"], [b.binary, "tune", "--budget", "0.3", "--"]])]

    def feed(writer):
        for at in range(0, len(data), 30_000):
            time.sleep(pause)
            view = data[at:at + 30_000]
            while view:
                view = view[os.write(writer, view):]
        os.close(writer)

    results = []
    for before in commands:
        fed = None
        if kind == "file":
            reader = os.open(b.write("input", data), os.O_RDONLY)
        else:
            reader, writer = os.pipe() if kind == "pipe" else [one.detach() for one in socket.socketpair()]
            fed = threading.Thread(target=feed, args=(writer,))
            fed.start()
        done = subprocess.run([*before, "sh", "-c", f"{take}{program}; exit 5"], env=env, stdin=reader, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        rest = b""
        while piece := os.read(reader, 1 << 16):
            rest += piece
        os.close(reader)
        if fed:
            fed.join()
        results.append((done, rest))
    (plain, left), (found, rest) = results
    if found.returncode != plain.returncode or not found.stdout.startswith(plain.stdout) or rest != left:
        raise Difference(f"{commands[1][1]} with a {kind} of {len(data)} bytes and `{take}`: {len(left)} bytes are left, "
                         f"then {len(rest)}: {found}")


def descriptors(b):
    """Few files may be opened: a command says so before it starts the program, and leaves nothing behind."""
    d, limit = b.dice, b.dice.randrange(4, 48)
    b.store(b.good())
    shutil.rmtree(b.make("own"))
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="/dev/null", TMPDIR=b.make("own"))
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    command, which = d.choice(["with", "with", "trace", "tune"]), (d.choice(DOORS), d.choice(PLAIN))
    words = [b.binary, command, *(["--budget", "0.3"] if command == "tune" else []), "--"]
    plain, found = [ran([*start, *b.words(*which)], env, preexec_fn=few) for start in ([], words)]
    is_refused = command != "with" and found.code == 1 and not found.out and b"ulimit -n" in found.err
    if not is_refused and (found.code != plain.code or not found.out.startswith(plain.out)):
        raise Difference(f"{command} {which} with {limit} files: {plain}, but then {found}")
    if os.listdir(b.at("own")):
        raise Difference(f"{command} with {limit} files leaves {os.listdir(b.at('own'))}")


def opened_by(library):
    """The library that one opens, beside it."""
    return os.path.join(os.path.dirname(library), "libwarpwright_inplace.so")


def libraries(b):
    """A library that is cut short, or the one that it opens, is told, not passed over."""
    both, cut = [b.library, opened_by(b.library)], b.dice.randrange(2)
    b.make("cut")
    for number, path in enumerate(both):
        with open(path, "rb") as file:
            data = file.read()
        end = b.dice.choice([0, 1, 63, 64, 4096, len(data) // 2, len(data) - 1]) if number == cut else len(data)
        own = b.write(os.path.join("cut", os.path.basename(path)), data[:end])
    if cut and b.dice.random() < .2:
        os.remove(own)
    done = b.command("with", "--", *b.words("dlsym", "plain"), WARPWRIGHT_INJECT=os.path.join(b.at("cut"), os.path.basename(b.library)))
    if done.code != 3 or b"lib" not in done.err:
        raise Difference(f"{both[cut]} is cut short: {done}")


def stops(b):
    """What stops the group of a command, and has it go on, is heard by the program as if it were alone."""
    b.store()
    d, results = b.dice, []
    number = d.choice([signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
    does, times, gap = d.choice(["", f"trap '' {number};", f"trap 'echo stop' {number};"]), d.choice([1, 2, 3]), d.choice([.1, .25])
    script = f"{does} trap 'echo on' CONT; echo ready >&3; i=0; while [ $i -lt 40 ]; do sleep 0.05; i=$((i+1)); done; exit 9"
    for before in [[], [b.binary, d.choice(["trace", "tune", "with"]), "--"]]:
        read, write = os.pipe()
        process = subprocess.Popen([*before, "bash", "-c", script.replace(">&3", f">&{write}")], env=dict(b.env, WARPWRIGHT_DB=b.at("store")),
                                   pass_fds=[write], process_group=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.close(write)
        os.read(read, 16)
        for one in [number, signal.SIGCONT] * times:
            os.killpg(process.pid, one)
            time.sleep(gap)
        try:
            out, code = process.communicate(timeout=30)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, code = process.communicate()[0], "hangs"
        os.close(read)
        results.append(Run(code, b"\n".join(sorted(out.split(b"\n"))) if does else out, b""))
    b.same(f"{number} {does} {times} {gap} {before[1:2]}", *results)


def reach(b):
    """What a program starts beyond the library's reach says no more than it would."""
    b.store(b.good())
    d, near, others = b.dice, b.at("near.so"), b.dice.choice(["", "libm.so.6", "libm.so.6:libdl.so.2"])
    shut = d.choice([f"rm {near}", f"mv {near} {near}.away"])
    start = d.choice(["env echo a", "nice -n 0 sh -c 'exit 4'", "echo a | xargs echo", "awk 'BEGIN { system(\"echo a; exit 3\") }'", "find . -maxdepth 0 -exec echo a ';'",
                      "awk 'BEGIN { \"echo a\" | getline a; print a }'", "exec env sh -c 'sh -c \"exit 5\"'", " ".join(b.words("dlsym", "plain")), "sh -c 'echo a >&2' & wait"])

    def run(*before):
        shutil.copy(b.library, near)
        if not os.path.exists(opened_by(near)):
            shutil.copy(opened_by(b.library), opened_by(near))
        env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_INJECT=near, LD_PRELOAD=others)
        done = subprocess.run([*before, "sh", "-c", f"{shut}; {start}"], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        return Run(done.returncode, done.stdout, done.stderr)
    plain, found = run(), run(b.binary, "with", "--")
    if plain != found:
        raise Difference(f"{shut}; {start} {others}: {plain}, but then {found}")


def again(b):
    """A program whose later runs do something else than the first: `tune` gives the first one's output and exit code."""
    d, runs = b.dice, b.at("runs")
    b.store(*([b.good()] if d.random() < .4 else []))
    which, code = (d.choice(DOORS), d.choice(PLAIN)), d.choice([0, 0, 3, 255])
    program = " ".join(b.words(*which, b.fat))
    later = d.choice(["exit 9", "kill -9 $$", "kill -11 $$", "kill -15 $$", "echo other; exit 0", "echo other >&2", ":", "sleep 0.2", "exec true",
                      "exec >&- 2>&-", "rm -rf $WARPWRIGHT_DIR/*", "rm -rf $WARPWRIGHT_DIR", "unset LD_PRELOAD", "export WARPWRIGHT=off",
                      f"{program} > /dev/null & wait", "chmod 000 $WARPWRIGHT_DIR", f"{program}", "ulimit -n 12", "ulimit -v 200000", "trap '' TERM",
                      "exec 0< /dev/null", "cat > /dev/null", "echo x > $WARPWRIGHT_DIR/plan", "for f in $WARPWRIGHT_DIR/*; do : > $f; done"])
    at = d.choice([1, 1, 1, 2, 3])
    script = (f"n=$(cat {runs}); echo $((n + 1)) > {runs}; if [ $n -ge {at} ]; then {later}; fi; {program}; echo told >&2; "
              f"if [ $n -ge {at} ]; then exit 1; fi; exit {code}")
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="/dev/null", HOST_REPEAT=d.choice(["1", "12"]))
    # What was killed in an earlier case is swept later.
    there = os.listdir(b.at("tmp"))
    seen = []
    for before in [[], [b.binary, "tune", "--budget", d.choice(["0.1", "0.5"]), *d.choice([[], ["--json"]]), "--"]]:
        b.write("runs", b"0\n")
        seen.append(ran([*before, "sh", "-c", script], env, timeout=120))
    plain, found = seen
    if found.code != plain.code or not found.out.startswith(plain.out) or found.err.count(b"told\n") != 1 or b"\nother\n" in found.out:
        raise Difference(f"tune {which}, later runs `{later}` from {at}: {plain}, but then {found}")
    left = [name for name in os.listdir(b.at("tmp")) if name.startswith("warpwright-") and name not in there]
    if left:
        raise Difference(f"tune, later runs `{later}`: left {left}")


def scarce(b):
    """What a program starts has little of something: whatever never asks for the driver ends as it would alone."""
    d, more = b.dice, 0
    b.store()
    start = d.choice(["/bin/true", "sh -c 'exit 3'", "sh -c 'echo a; ls / | head -1; exit 4'", "bash -c 'echo $((1+1)); exit 5'", "cat /dev/null",
                      "awk 'BEGIN { print 1; exit 2 }'", f"{b.at('asks')} self | head -2", "env -i /bin/true"])
    kind = d.choice(["-v", "-v", "-v", "-d", "-s", "few", "-n"])
    if kind == "few":
        start = f"{b.at('few')} {d.choice(['files', 'prctl', 'syscall', 'vfork', 'none'])} {d.choice(['/bin/true', '/bin/echo a', '/bin/sh -c :'])}"
    scripts = [f"{start}; echo $?"] * 2
    if kind not in ("few", "-n"):
        size = {"-v": d.randrange(2_000, 14_000), "-d": d.choice([0, 100, 300, 1000, 5000]), "-s": d.choice([64, 100, 256])}[kind]
        more = 64 if kind == "-v" else 0
        scripts = [f"(ulimit {kind} {one}; {start}; echo $?); echo $?" for one in [size, size + more]]
    if kind == "-n":
        size = d.randrange(3, 12)
        scripts = [f"(exec 3</dev/null 4</dev/null; ulimit -n {size}; {start}; echo $?); echo $?"] * 2
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), LANG="C")
    command = d.choice(["with", "with", "trace"])
    plain, found = [ran([*before, "bash", "-c", script], env) for before, script in zip([[], [b.binary, command, "--"]], scripts)]
    said = b"".join(line for line in found.err.splitlines(True) if not line.startswith(b"warpwright:"))
    # With so much more than alone one may run that did not; numbers of processes differ.
    has_failed = any(word in plain.out + plain.err for word in (b"127", b"139", b"134", b"cannot", b"can't", b"memory"))
    same = lambda err: re.sub(rb" +\d+ +", b" ", err)
    if not (more and has_failed) and (plain.code, plain.out, same(plain.err)) != (found.code, found.out, same(said)):
        raise Difference(f"{command} {scripts}: {plain}, but then {found}")


def standards(b):
    """Standard input, output and error of every kind: a program sees the descriptors and the errors that it would alone."""
    d, path = b.dice, b.write("standard", b"data")
    b.store()
    reader, writer = os.pipe()
    pair, server = socket.socketpair(), socket.socket(socket.AF_UNIX)
    datagram = socket.socketpair(type=socket.SOCK_DGRAM)

    def fifo():
        """One of its own each time: what a command says on one is no input of the program."""
        path = b.at(f"standard-fifo-{next(FIFOS)}")
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)

    hung, other = socket.socketpair()
    other.close()
    polled = select.epoll()
    kinds = {"path": lambda: os.open(path, os.O_PATH), "folder-path": lambda: os.open("/", os.O_PATH), "folder": lambda: os.open("/", os.O_RDONLY),
             "write": lambda: os.open(path, os.O_WRONLY), "append": lambda: os.open(path, os.O_WRONLY | os.O_APPEND),
             "null": lambda: os.open("/dev/null", os.O_RDWR), "full": lambda: os.open("/dev/full", os.O_RDWR), "zero": lambda: os.open("/dev/zero", os.O_RDONLY),
             "pipe-writer": lambda: os.dup(writer), "socket": lambda: os.dup(hung.fileno()), "listening": lambda: os.dup(server.fileno()),
             "event": lambda: os.eventfd(1), "memory": lambda: os.memfd_create("x"), "fifo": fifo,
             "poll": lambda: os.dup(polled.fileno()),
             "closed": None, "process": lambda: os.pidfd_open(os.getpid()), "link": lambda: os.open("/proc/self/exe", os.O_PATH | os.O_NOFOLLOW)}
    chosen = [d.choice(sorted(kinds)), d.choice([None, None, None, *sorted(kinds)]), d.choice([None, None, *sorted(kinds)])]
    result = b.at("standard-result")

    def before():
        for number, one in enumerate(own):
            if one == -1:
                os.close(number)
            elif one is not None:
                os.dup2(one, number)

    words = ["sh", "-c", f"exec {b.at('asks')} input > {result}"] if chosen[1] else [b.at("asks"), "input"]
    env, command = dict(b.env, WARPWRIGHT_DB=b.at("store")), d.choice(["trace", "tune", "with"])
    seen = []
    for start in [[], [b.binary, command, "--"]]:
        if os.path.exists(result):
            os.remove(result)
        b.write("standard", b"data")
        own = [kind and (kinds[kind]() if kinds[kind] else -1) for kind in chosen]
        done = subprocess.run([*start, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              preexec_fn=before)
        for one in own:
            if one not in (None, -1):
                os.close(one)
        told = b""
        if os.path.exists(result):
            with open(result, "rb") as file:
                told = file.read()
        seen.append((done.returncode, done.stdout if chosen[1] is None else told, done.stderr))
    for one in [reader, writer]:
        os.close(one)
    for one in [*pair, *datagram, server, hung, polled]:
        one.close()
    (code, plain, _), (other_code, found, err) = seen
    # What a pipe or a file is for `tune` may be another one.
    is_refused = command != "with" and other_code == 1 and not found
    if not (code == other_code and found.startswith(plain)) and not is_refused:
        raise Difference(f"{command} with {chosen}: {code} {plain!r}, but then {other_code} {found!r} {err!r}")


def attributes(b):
    """What a program sees of itself is what it would see alone, and so is what the dynamic linker answers."""
    d = b.dice
    b.store(*([b.good()] if d.random() < .3 else []))
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null", **({"DEEP": "1"} if d.random() < .5 else {}))
    if d.random() < .2:
        env["LD_LIBRARY_PATH"] = f"/nowhere:{b.folder}"
    if d.random() < .2:
        env["LD_BIND_NOW"] = "1"
    what, start = d.choice(["self", "linker", "race"]), d.choice([[], [], ["nice", "-n", "5"], ["setsid", "-w"], ["sh", "-c", '"$@" & wait $!', "sh"],
                                                                  ["sh", "-c", 'umask 027; trap "" 10; ulimit -c 0; exec "$@"', "sh"]])
    command = d.choice(["trace", "tune", "with"])
    plain, found = [ran([*before, *start, b.at("asks"), what], env) for before in [[], [b.binary, command, "--"]]]
    if plain.code != found.code or not found.out.startswith(plain.out):
        raise Difference(f"{command} {start} asks {what}: {plain}, but then {found}")


def early(b):
    """A signal at any time: a command leaves no folder, and a file that is whole, or the older one."""
    d = b.dice
    b.store()
    shutil.rmtree(b.make("own"))
    out, older = b.write("early.json", b"older"), b"older"
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), TMPDIR=b.make("own"), FAKE_LOG="/dev/null")
    number = d.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
    command = d.choice([["trace", "-o", out], ["trace", "-o", out], ["tune", "--budget", "0.3"], ["tune", "--keep", b.at("early-kept")], ["trace", "--json"]])
    words = d.choice([["sleep", "0.03"], b.words("dlsym", "plain"), ["sh", "-c", " ".join(b.words("proc2", "plain")) + "; sleep 1"]])
    process = subprocess.Popen([b.binary, *command, "--", *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(d.random() * d.choice([.06, .06, .5]))
    for _ in range(d.choice([1, 1, 2])):
        process.send_signal(number)
        time.sleep(d.choice([0, .002]))
    said = process.communicate(timeout=60)
    with open(out, "rb") as file:
        data = file.read()
    if data != older:
        json.loads(data)
    if process.returncode not in (0, -number) or os.listdir(b.at("own")):
        raise Difference(f"{command} {words} and {number}: {process.returncode}, {os.listdir(b.at('own'))} {said}")


def beside(command, plain, found):
    """Is what a command ends with what the program alone did, or was it refused before that started?"""
    is_refused = command in ("trace", "tune") and found.code == 1 and not found.out and found.err.startswith(b"error: ")
    is_same = found.out == plain.out if command == "with" else found.out.startswith(plain.out)
    return is_refused or (found.code == plain.code and is_same)


# Ways in which a program starts itself, and what it does meanwhile.
WAYS = ["launch", "fork", "session", "exec", "exec-bare", "exec-odd", "exec-kernel", "exec-file", "exec-path", "vfork", "vfork-bare", "clone", "shared",
        "spawn", "spawn-closed", "daemon", "close", "block", "ignore", "root", "unset", "other", "privileges", "undumpable", "environment"]


def chains(b):
    """Programs that start programs, in every way, with every environment."""
    d = b.dice
    b.store(b.good())
    words = [b.at("chain"), b.original, *d.choices(WAYS, k=d.choice([1, 2, 3, 5, 8]))]
    env, command = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null", FAKE_LOG=""), d.choice(["with", "with", "trace", "tune"])
    plain, found = [ran([*start, *words], env) for start in [[], [b.binary, command, *(["--budget", "0.3"] if command == "tune" else []), "--"]]]
    if not beside(command, plain, found):
        raise Difference(f"{command} {words[2:]}: {plain}, but then {found}")


# What others start programs with.
STARTERS = ["timeout 60", "nohup", "nice -n 3", "setsid -w", "stdbuf -oL", "env X=1", "env -u HOME -u TMPDIR", "setarch -R", "setarch --addr-compat-layout",
            "strace -f -o /dev/null", "taskset 1", "ionice -c3", "prlimit --core=0", "unshare -m", "unshare -U", "unshare -Ur", "unshare -p --fork",
            "unshare -Urn", "setpriv --no-new-privs", "setpriv --pdeathsig TERM", "flock lock", "dash -c '\"$@\"; exit $?' x", "bash -c '\"$@\" & wait $!' x",
            "bash -c '( \"$@\" )' x", "bash -o pipefail -c '\"$@\" | cat' x", "bash -c 'exec -a \"\" \"$@\"' x", "sh -c 'mkdir gone; cd gone; rmdir ../gone; \"$@\"' x",
            "sh -c 'umask 777; \"$@\"' x", "perl -e 'my $r = system @ARGV; exit($r >> 8)'", "python3 -c 'import os, sys; sys.exit(os.spawnvp(0, sys.argv[1], sys.argv[1:]))'",
            "sh -c 'exec 3</dev/null 9>&1; \"$@\"' x", "chrt -b 0"]


def starters(b):
    """Behind and before what others start programs with."""
    d = b.dice
    b.store(b.good())
    start = shlex.split(d.choice([one for one in STARTERS if shutil.which(one.split()[0])]))
    program = d.choice([[*b.words(d.choice(DOORS), "plain")], [b.at("chain"), b.original, "spawn", "environment"], ["sh", "-c", "echo a; echo b >&2; exit 5"]])
    command = d.choice(["with", "trace", "tune"])
    own = [b.binary, command, *(["--budget", "0.3"] if command == "tune" else []), "--"]
    env, folder = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null", FAKE_LOG=""), b.make("tmp")
    orders = d.choice([[[*start, *program], [*start, *own, *program]], [[*start, *program], [*own, *start, *program]]])
    plain, found = [ran(words, env, cwd=folder) for words in orders]
    # What a shell sets for itself differs with what stands before it.
    same = lambda run: Run(run.code, re.sub(rb"(?m)^(_|SHLVL|PWD|OLDPWD)=.*\n", b"", run.out), run.err)
    if not beside(command, same(plain), same(found)):
        raise Difference(f"{orders[1]}: {plain}, but then {found}")


def places(b):
    """Folders that are missing, full, read-only or no folders: a program sees none of it."""
    d = b.dice
    b.store(b.good())
    odd = ["/no-such-folder", "/dev/null", "/proc", "/sys", "", ".", "relative", "/dev/full", "x" * 300, os.fsdecode(b"/tmp/\xff"), "a b", "a\nb", "~"]
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null", FAKE_LOG="")
    changed = d.sample(["TMPDIR", "HOME", "WARPWRIGHT_DB", "WARPWRIGHT_LOG", "XDG_DATA_HOME"], d.choice([1, 1, 2]))
    for name in changed:
        env[name] = d.choice(odd)
        if d.random() < .2:
            del env[name]
    command, code = d.choice(["with", "trace", "tune"]), d.choice([0, 3, 255])
    words = d.choice([["sh", "-c", f"{' '.join(b.words(d.choice(DOORS), 'plain'))}; exit {code}"], ["sh", "-c", f"pwd; ls -a; exit {code}"]])
    own, runs = [b.binary, command, *(["--budget", "0.3"] if command == "tune" else []), "--"], []
    for start in [[], own]:
        shutil.rmtree(b.make("place"))
        runs.append(ran([*start, *words], env, cwd=b.make("place")))
    is_without = command == "tune" and runs[1].code == 3 and not runs[1].out and b"no folder for winners" in runs[1].err
    # What lies in this folder because somebody named it is the user's.
    if not is_without and not beside(command, *runs) and not (b"ls -a" in words[2].encode() and runs[1].code == runs[0].code):
        raise Difference(f"{command} with { {name: env.get(name) for name in changed} }: {runs[0]}, but then {runs[1]}")


def running(mark):
    """Processes that have a variable."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except (OSError, ValueError):
            pass
    return found


def killed(b):
    """A command that is killed at any time, or stopped and killed, takes its program along."""
    d = b.dice
    b.store()
    mark = f"ATTACK={b.dice.random()}-{os.getpid()}"
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="", **dict([mark.split("=")]))
    own = [b.binary, d.choice(["trace", "tune"]), "--"]
    words = d.choice([["sleep", "20"], ["sh", "-c", "trap '' TERM HUP; sleep 20"], ["perl", "-e", "kill 9, getppid; sleep 20"]])
    process = subprocess.Popen([*own, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(d.random() * d.choice([.02, .1, .4]))
    if d.random() < .2:
        process.send_signal(signal.SIGSTOP)
    process.kill()
    process.wait()
    # The shell's own children are nobody's.
    limit = time.time() + 10
    while (left := [one for one in running(mark) if not is_orphan(one, words)]) and time.time() < limit:
        time.sleep(.01)
    for one in running(mark):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if left:
        raise Difference(f"{own[1]} {words}: {len(left)} live on")


def is_orphan(process, words):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return words[0] == "sh" and file.read().startswith(b"sleep")
    except OSError:
        return True


def terminals(b):
    """At a terminal, typed into a shell: what stops, goes on, resizes, interrupts and hangs up is heard as it would be alone."""
    d = b.dice
    b.store()
    does = d.choices(["interrupt", "stop", "back", "resize", "line", "several"], k=d.choice([1, 2, 3]))
    end = d.choice(["quit", "quit", "hangup"])
    command = d.choice(["trace", "tune", "with"])
    results = [at_terminal(b, before, does, end) for before in ["", f"{b.binary} {command} -- "]]
    if results[0][0] != results[1][0]:
        raise Difference(f"{command} at a terminal, {does}, {end}: {results[0]}, but then {results[1]}")


def at_terminal(b, before, does, end):
    log, shown = b.at("terminal.log"), b""
    if os.path.exists(log):
        os.remove(log)
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), LOG=log, PS1="> ", HISTFILE="/dev/null", TERM="dumb")
    shell, terminal = pty.fork()
    if not shell:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)

    def lines():
        if not os.path.exists(log):
            return []
        with open(log) as file:
            return file.read().splitlines()

    def until(more, patience=10):
        nonlocal shown
        limit = time.time() + patience
        while time.time() < limit and not more():
            if select.select([terminal], [], [], .01)[0]:
                try:
                    shown += os.read(terminal, 1 << 16)
                except OSError:
                    return

    def heard(what):
        return sum(line.startswith(what) for line in lines())

    def does_by(act, what):
        """Does something and waits until the program has heard of it, or the shell says so."""
        count = lambda: heard(what) if isinstance(what, str) else shown.count(what)
        before = count()
        act()
        until(lambda: count() > before)
        # What reads in the background stops once more, and the command with it.
        until(lambda: False, .4 if what == "front 0" else .05)

    typed = lambda text: lambda: os.write(terminal, text)
    resized = lambda: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20 + heard("signal 28"), 90, 0, 0))
    stopped, front = (typed(b"\x1a"), b"Stopped"), (typed(b"fg\n"), "front 1")
    steps = {"interrupt": [(typed(b"\x03"), "signal 2 ")], "stop": [stopped, front], "back": [stopped, (typed(b"bg\n"), "front 0"), front],
             "resize": [(resized, "signal 28 ")], "line": [(typed(b"hello\n"), "read")],
             "several": [(typed(b"\x03"), "signal 2 "), (typed(b"abc\n"), "read")]}
    until(lambda: shown.endswith(b"> "))
    does_by(typed(f"{before}{b.at('terminal')}\n".encode()), "ready")
    for act, what in (step for one in does for step in steps[one]):
        does_by(act, what)
    if end == "quit":
        does_by(typed(b"\x1c"), "signal 3 ")
        until(lambda: shown.endswith(b"> "))
        does_by(typed(b"echo code $? >> $LOG\n"), "code")
    os.close(terminal)
    if end == "hangup":
        limit = time.time() + 10
        while time.time() < limit and not heard("signal 1 "):
            time.sleep(.01)
    time.sleep(.05)
    try:
        os.kill(shell, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(shell, 0)
    all_heard = [re.sub(r"(signal 28) .*", r"\1", line) for line in lines()]
    # A terminal that hangs up has all go on, too, before or after.
    while end == "hangup" and len(all_heard) > 1 and all_heard[-2].split()[0:2] in (["signal", "18"], ["front", "0"], ["front", "1"]):
        del all_heard[-2]
    return all_heard, shown


def whole(words, env, before=None, cwd=None, timeout=60):
    """The wait status as the kernel has it, with the mark of a core, and what came out."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=before, start_new_session=True)
        limit, found = time.time() + timeout, (0, 0)
        while not found[0] and time.time() < limit:
            time.sleep(.002)
            found = os.waitpid(process.pid, os.WNOHANG)
        if not found[0]:
            os.killpg(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
        process.returncode = 0
        out.seek(0)
        err.seek(0)
        return Run(found[1] if found[0] else "hangs", out.read(), err.read())


def below(b, command):
    """The words of a command before those of its program."""
    return [b.binary, command, *(["--budget", "0.3"] if command == "tune" else []), "--"]


def alike(what, command, plain, found):
    """Is a program's end the same, with its mark, and what it says first of all?"""
    is_refused = command in ("trace", "tune") and found.code == 256 and not found.out and b"error: " in found.err
    if not is_refused and (plain.code != found.code or not found.out.startswith(plain.out)):
        raise Difference(f"{command} {what}: {plain}, but then {found}")


# What is done before the driver is asked for, behind that, and last.
FIRST = ["fork", "system", "popen", "files", "few-files", "fsize", "data", "nproc", "core", "memlock", "sigpending", "cwd", "gone", "umask", "nobody", "lowest", "descriptors",
         "stdin-own", "err-closed", "clearenv", "environ", "argv", "name", "new-privs", "subreaper", "children", "undumpable", "tsc", "block", "ignore", "default", "actions", "stderr"]
NEXT = [*FIRST, "launch", "many", "load", "unload", "threads", "atexit", "global", "timer", "profile", "fault", "altstack", "fork-crash", "fork-begin", "forks", "lock", "close-range",
        "cancel", "small-thread", "thread-64", "errno", "rounding", "info", "sleep", "chroot"]
LAST = ["main-gone", "thread-exec", "quick", "_exit", "abort", "null", "divide", "trap", "bus", "overflow", "kill", "running"]


def deeds(b):
    """Programs that limit, fork, crash, close, chroot and end themselves around their launches, with cores and without."""
    d = b.dice
    b.store(*([b.good()] if d.random() < .7 else []))
    words = [*d.sample(FIRST, d.choice([0, 0, 1, 2])), "begin", "launch", *d.sample(NEXT, d.choice([1, 2, 3, 5])), "launch", "show", *d.choice([[], [d.choice(LAST)]])]
    # What depends on timing is not shown.
    if {"forks", "cancel", "running"} & set(words):
        words = [one for one in words if one != "show"]
    most, command, runs = d.choice([0, resource.RLIM_INFINITY]), d.choice(["with", "with", "trace", "tune"]), []
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null", FAKE_LOG="")
    for own in [[], below(b, command)]:
        shutil.rmtree(b.make("place"))
        cores = lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        runs.append(whole([*own, b.at("deeds"), b.original, *words], env, cores, b.make("place")))
    alike(f"{words}, cores of {most}", command, *runs)


def beyond(b):
    """What is started in every way, by threads, handlers and between `vfork` and exec, while the library is out of reach."""
    d, near, place = b.dice, b.at("near-beyond.so"), b.make("place")
    b.store()
    ways = d.choices(["hide", "hide", "unhide", "cancel", "cancel-spawn", "small-spawn", "small-vfork", "spawn", "vfork", "handler", "many", "null-argv", "null-env", "no-environ", "bad", "system-null",
                      "popen-bad", "popen-e", "attributes", "script", "const", "list-20", "kept", "threads"], k=d.choice([2, 4, 7]))
    others, runs = d.choice(["", "libm.so.6", "libm.so.6 libdl.so.2"]), []
    if not os.path.exists(opened_by(near)):
        shutil.copy(opened_by(b.library), opened_by(near))
    for own in [[], below(b, "with")]:
        shutil.copy(b.library, near)
        env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_INJECT=near, LD_PRELOAD=others)
        done = whole([*own, b.at("beyond"), near, *ways], env, cwd=place)
        # Where the library is in reach it stands before the others.
        said = re.sub(rb" +\n", b"\n", done.out.replace(near.encode() + b":", b"").replace(near.encode(), b""))
        runs.append(Run(done.code, sorted(said.split(b"\n")) if "threads" in ways else said, done.err))
    if runs[0] != runs[1]:
        raise Difference(f"{ways} {others}: {runs[0]}, but then {runs[1]}")


def groups(b):
    """A program that signals its whole group: nobody beyond that hears of it."""
    d = b.dice
    b.store()
    number = d.choice([1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 17, 18, 24, 28, 31, 34, 64])
    does = d.choice(["", f"trap 'echo got; exit 5' {number};", f"trap '' {number};", f"trap 'echo got' {number};"])
    sends = d.choice([f"kill -{number} 0", f"(kill -{number} 0) & wait", f"perl -e 'kill -{number}, getpgrp'"])
    script = f"{does} echo a; {sends}; sleep 0.1; echo b; exit 6"
    env, command = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null"), d.choice(["trace", "tune", "with"])
    alike(f"`{script}`", command, *[whole([*own, "bash", "-c", script], env) for own in [[], below(b, command)]])


def middle(b):
    """A `tune` that is signalled or stopped while it builds and tries: it ends as its program or by that, and nothing lives on."""
    d = b.dice
    b.store(*d.choice([[], [b.good()], [b.record(b.fast, standing="imported")]]))
    mark, code = f"ATTACK={d.random()}-{os.getpid()}", d.choice([0, 3])
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="", HOST_REPEAT=d.choice(["1", "12"]), **dict([mark.split("=")]))
    words = ["sh", "-c", f"{' '.join(b.words(d.choice(['dlsym', 'proc2']), d.choice(['plain', 'graph', 'threads']), b.fat))}; exit {code}"]
    plain, send = ran(words, env), d.choice([os.kill, os.killpg])
    number = d.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGSTOP])
    process = subprocess.Popen([*below(b, "tune"), *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(d.random() * d.choice([.3, 1.5]))
    for one in [number, signal.SIGCONT] if number == signal.SIGSTOP else [number]:
        if process.poll() is None:
            send(process.pid, one)
            time.sleep(.2)
    out, err = process.communicate(timeout=90)
    is_same = process.returncode == code and out.startswith(plain.out)
    is_ended = process.returncode in (-number, code, 128 + number) and plain.out.startswith(out) and number != signal.SIGSTOP
    limit = time.time() + 10
    while (left := running(mark)) and time.time() < limit:
        time.sleep(.02)
    if not (is_same or is_ended) or left:
        raise Difference(f"{number} by {send.__name__}: {plain}, but then {process.returncode} {out!r} {err!r}, {left} live on")
    b.listed("behind a tune that was ended")


def several(b):
    """Several searches with one store, and whoever removes from it."""
    d, code = b.dice, b.dice.choice([0, 3])
    b.store(*d.choice([[], [b.good()]]))
    which, path = (d.choice(DOORS), d.choice(["plain", "library", "threads", "graph"])), b.write("export", b.record(b.fast))
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), FAKE_LOG="/dev/null", HOST_REPEAT=d.choice(["1", "12"]))
    words = ["sh", "-c", f"{' '.join(b.words(*which, d.choice([b.original, b.fat])))}; echo told >&2; exit {code}"]
    plain = ran(words, env)
    others = [[b.binary, "db", *d.choice([["remove", "scale"], ["import", "--trust", path], ["list"]])] for _ in range(d.choice([0, 3]))]
    all_words = [[*below(b, "tune"), *words]] * d.choice([2, 3]) + others
    started = [subprocess.Popen(one, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for one in all_words]
    for process in started:
        out, err = process.communicate(timeout=120)
        is_right = process.returncode in (0, 1)
        if process.args[1] == "tune":
            is_right = process.returncode == code and out.startswith(plain.out) and err.count(b"told\n") == 1
        if not is_right:
            raise Difference(f"{process.args[1:3]} beside others: {plain}, but then {process.returncode} {out!r} {err!r}")
    b.listed("behind several searches")
    b.same("behind several searches", b.plain(*which), ran(b.words(*which), b.preloaded()), which)


def scant(b):
    """A user who may have few processes and threads."""
    d = b.dice
    if os.getuid() or not shutil.which("setpriv"):
        return
    b.store()
    shutil.rmtree(b.make("scant"))
    place = b.make("scant")
    os.chmod(b.folder, 0o755)
    os.chown(place, 4321, 4321)
    words = d.choice([b.words(d.choice(DOORS), "plain"), ["sh", "-c", "echo a; exit 3"], ["sh", "-c", "kill -15 $$"]])
    env, command = dict(b.env, WARPWRIGHT_DB=f"{place}/db", TMPDIR=place, HOME=place, FAKE_LOG="", WARPWRIGHT_LOG="/dev/null"), d.choice(["with", "trace", "tune"])
    start = ["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups", "prlimit", f"--nproc={d.choice([1, 2, 3, 4, 5, 6, 8, 12])}"]
    alike(f"{start[5]} {words}", command, *[whole([*start, *own, *words], env, cwd=place) for own in [[], below(b, command)]])


# What comes in the middle of the library's work, and what a thread holds meanwhile.
AMID = ["handler", "stack", "jump", "cancel", "numbers", "error", "tsc", "vfork", "graph", "gone"]


def amid(b):
    """Handlers, jumps and cancellation at any instruction; graphs that the driver refuses for the winner in them."""
    d, deed, refused = b.dice, b.dice.choice(AMID), b.dice.choice(["unmade", "unstarted"])
    b.store(b.good())
    if deed in ("graph", "gone") and d.random() < .8:
        # What was made from a graph that is gone cannot be changed any more.
        name = "unmade" if deed == "gone" else refused
        b.store(b.record(b.compile(f".visible .global .u32 fake_{name} = 1;\n", SCALE)))
    words, free, mode = [b.at("amid"), b.original, deed], {"FAKE_LOG": "", "FAKE_FREE": "1"}, d.choice(["with", "with", "trace", "trace+with"])
    if d.random() < .3:
        free["LD_BIND_NOW"] = "1"
    plain, found = ran(words, dict(b.env, **free)), ran(words, b.preloaded(mode, **free))
    b.same(f"{mode}, in the middle", plain, found, deed)


def keeps(b):
    """What a process keeps when it becomes another program: all of it below `with`, and what a child can have below the others."""
    command = b.dice.choice(["with", "trace", "tune"])
    b.store()
    env = dict(b.env, WARPWRIGHT_DB=b.at("store"), WARPWRIGHT_LOG="/dev/null")
    plain, found = [ran([b.at("bears"), "set", b.at("bears.lock"), *own, b.at("bears"), "show", b.at("bears.lock")], env) for own in [[], below(b, command)]]
    seen = lambda run: (run.code, run.out if command == "with" else run.out.split(b"\n")[0])
    if seen(plain) != seen(found):
        raise Difference(f"{command}: {plain}, but then {found}")


def ages(b):
    """Stores that nobody can write, of later versions and dates; files that were written in days to come."""
    d = b.dice
    record = b.record(b.fast, date=d.choice(["2999-12-31", "1970-01-01", "0000-00-00", "-1", "2026-02-30"]))
    b.good()
    if d.random() < .3:
        record = b.signed(record[record.index(b"\n") + 1:], d.choice([1, 3, 2**32]))
    folder = b.store(record, *([b.good()] if d.random() < .5 else []))
    for name in os.listdir(folder):
        moment = d.choice([0, 1, 2**31, 2**33, time.time() + 10**7])
        os.utime(os.path.join(folder, name), (moment, moment))
    env, which, is_shut = dict(b.env, WARPWRIGHT_DB=folder, FAKE_LOG="/dev/null"), (d.choice(DOORS), d.choice(PLAIN)), d.random() < .5
    if is_shut:
        os.chmod(folder, 0o500)
    b.check("a store of another age", scenario=which[1], door=which[0])
    b.listed("a store of another age")
    command = d.choice(["tune", "trace", "with"])
    plain, found = [ran([*own, *b.words(*which, b.fat)], env, timeout=120) for own in [[], below(b, command)]]
    os.chmod(folder, 0o700)
    if not beside(command, plain, found):
        raise Difference(f"{command} with a store of another age: {plain}, but then {found}")


KINDS = [(amid, 6), (keeps, 3), (ages, 4), (damage, 25), (cubins, 30), (facts, 25), (guards, 30), (entries, 12), (exports, 8), (kills, 4), (disks, 6), (memory, 8),
         (short, 1), (together, 3), (changing, 3), (tools, 4), (logs, 6), (settings, 6), (signals, 2), (exits, 3), (limits, 2), (forbids, 1), (tunes, 2), (outputs, 2), (starts, 3), (breaks, 1),
         (inputs, 2), (descriptors, 3), (libraries, 1), (stops, 1), (reach, 2),
         (again, 2), (scarce, 6), (standards, 6), (attributes, 4), (early, 4), (deeds, 6), (beyond, 4), (groups, 2), (middle, 1), (several, 1), (scant, 2), (terminals, 1), (chains, 6), (starters, 5), (places, 5), (killed, 2)]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/warpwright"))
    parser.add_argument("--library", default=os.path.join(ROOT, "target/debug/libwarpwright_inject.so"))
    parser.add_argument("--only")
    parser.add_argument("--launches", type=int, default=2_000_000)
    return parser.parse_args()


def main():
    args = arguments()
    bench = Bench(args)
    kinds = [(kind, weight) for kind, weight in KINDS if args.only in (None, kind.__name__)]
    done, begun, failures = collections.Counter(), time.time(), []
    try:
        while (sum(done.values()) < args.cases if args.cases else time.time() - begun < args.seconds):
            case = sum(done.values())
            bench.dice = random.Random(f"{args.seed}/{case}")
            kind = bench.dice.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
            try:
                kind(bench)
            except Difference as difference:
                failures.append(f"case {case} ({kind.__name__}): {difference}")
                print(failures[-1])
            done[kind.__name__] += 1
            if len(failures) > 20:
                break
    finally:
        bench.remove()
    print(f"seed {args.seed}: {sum(done.values())} cases in {time.time() - begun:.0f} s, {len(failures)} of them changed something")
    print(", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
