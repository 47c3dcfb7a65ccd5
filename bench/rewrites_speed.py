#!/usr/bin/env python3
"""How fast `warpwright check` compares kernels on terms, beside a prototype in Python.

    rewrites_speed.py PROTOTYPE WORK --nvcc NVCC --warpwright BIN --out FILE

PROTOTYPE takes A.ptx B.ptx A.toml B.toml and prints JSON with its `total` of terms. All seconds are those of the processor,
start included, so that a busy machine counts for little. `beside` has pairs whose blocks all belong to one group: every
term is made. `large` has sizes of which groups of blocks stand for others.
"""
import argparse, json, os, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
SOFTMAX = "x f32 rows,n; y f32 rows,n out; rows s32 = rows; n s32 = n"
NORM = "out f32 N,C out; mean f32 N out; rstd f32 N out; inp f32 N,C; weight f32 C; bias f32 C; N s32 = N; C s32 = C"
PRODUCT = "A f32 n,k; B f32 k,n; C f32 n,n out; n s32 = n; k s32 = k"
PAIRS = {
    "softmax": (SOFTMAX, ("softmax_plain", "ceil_div(rows,32)", "32"), ("softmax_block", "rows", "128")),
    "layer norm": (NORM, ("layernorm_plain", "ceil_div(N,128)", "128"), ("layernorm_warp", "ceil_div(N,4)", "128")),
    "product": (PRODUCT, ("product_plain", "ceil_div(n*n,1024)", "1024"), ("product_tiled", "n/16 n/16", "16 16")),
}
BESIDE = [("softmax", dict(rows=32, n=512)), ("layer norm", dict(N=128, C=192)), ("product", dict(n=32, k=1024))]
LARGE = [("softmax", dict(rows=256, n=1024)), ("layer norm", dict(N=8192, C=768)), ("product", dict(n=128, k=128))]


def description(launch, args, sizes):
    kernel, grid, block = launch
    quote = lambda text, by=None: ", ".join('"%s"' % e for e in text.split(by))
    text = 'kernel = "k"\n[sizes.small]\n' + "".join("%s = %d\n" % kv for kv in sizes.items())
    text += "[launch]\ngrid = [%s]\nblock = [%s]\n" % (quote(grid), block.replace(" ", ", "))
    for words in (arg.split() for arg in args.split(";")):
        text += '[[args]]\nname = "%s"\ntype = "%s"\n' % (words[0], words[1])
        if words[2] == "=":
            text += 'value = "%s"\n' % words[3]
        else:
            text += "shape = [%s]\n" % quote(words[2], ",")
            text += "output = true\n" if "out" in words else 'init = { kind = "normal" }\n'
    return text


def timed(command):
    """What a command prints, the processor's seconds and the most memory in MiB that it takes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return text, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prototype", "work"):
        parser.add_argument(name)
    for name in ("--nvcc", "--warpwright", "--out"):
        parser.add_argument(name, required=True)
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)

    def ptx(kernel):
        path = f"{o.work}/{kernel}.ptx"
        subprocess.check_call([o.nvcc, "-ptx", "-arch=sm_90", "-D" + kernel.upper(), "-o", path, HERE + "/rewrites/speed.cu"])
        return path

    kernels = {launch[0]: ptx(launch[0]) for _, a, b in PAIRS.values() for launch in (a, b)}

    def compared(name, sizes, prototype):
        args, *launches = PAIRS[name]
        tomls = []
        for side, launch in zip("ab", launches):
            tomls.append(f"{o.work}/{side}.toml")
            open(tomls[-1], "w").write(description(launch, args, sizes))
        files = [kernels[launch[0]] for launch in launches]
        text, seconds, memory = timed([o.warpwright, "check", *files, "--launch-a", tomls[0], "--launch-b", tomls[1],
                                       "--only-described", "--size", "small", "--json"])
        said = json.loads(text)
        terms = said["launches"][0]["terms"]
        found = dict(pair=name, sizes=sizes, verdict=said["verdict"], elements=said["launches"][0]["elements"], terms=terms,
                     seconds=round(seconds, 2), mib=memory)
        if prototype:
            text, theirs, their_memory = timed([sys.executable, o.prototype, *files, *tomls])
            total = json.loads(text)
            found["prototype"] = dict(verdict=total["verdict"], terms=total["total"], seconds=round(theirs, 2), mib=their_memory)
            # The work is the pair: its terms as the prototype counts them.
            found["times_as_fast"] = round(theirs / seconds, 1)
            found["terms_a_second"] = [round(terms / seconds), round(total["total"] / theirs)]
        print(json.dumps(found), flush=True)
        return found

    beside = [compared(name, sizes, True) for name, sizes in BESIDE]
    large = [compared(name, sizes, False) for name, sizes in LARGE]
    seconds = [sum(f["seconds"] for f in beside), sum(f["prototype"]["seconds"] for f in beside)]
    terms = [sum(f["terms"] for f in beside), sum(f["prototype"]["terms"] for f in beside)]
    document = dict(date=time.strftime("%Y-%m-%d"), terms_a_second=[round(t / s) for t, s in zip(terms, seconds)],
                    beside=beside, large=large)
    document["times"] = round(document["terms_a_second"][0] / document["terms_a_second"][1], 1)
    open(o.out, "w").write(json.dumps(document, indent=1) + "\n")
    print(document["terms_a_second"], document["times"])


if __name__ == "__main__":
    main()
