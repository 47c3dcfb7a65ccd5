#!/usr/bin/env python3
"""Rewritten kernels of public repositories against plain ones: what `warpwright check --launch-a --launch-b` says.

    rewrites.py MIRRORS WORK --nvcc NVCC --warpwright BIN --out FILE [--only NAME] [--ptx-only]

MIRRORS has a bare clone of each repository in OWNER+NAME/repo. Sources are taken apart into WORK; nothing of them is
kept here. The file has for each pair its verdict at three sizes, the reasons, terms and seconds.
"""
import argparse, json, os, re, subprocess, time

SAMPLES = "NVIDIA+cuda-samples"
L1 = "deepreinforce-ai+CUDA-L1"
HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = "#include <cuda_runtime.h>\n#include <float.h>\n#include <math.h>\n#include <stdint.h>\n#include <cuda_fp16.h>\n#include <limits>\n"
ROWS = "g_idata {t} rows,n in; g_odata {t} rows out"


def pair(name, source, rewrite, plain, sizes):
    return dict(name=name, source=source, rewrite=rewrite, plain=plain, sizes=sizes)


def sizes(**lists):
    """Three sizes from lists of three values."""
    return [dict((k, v[i]) for k, v in lists.items()) for i in range(3)]


def names(kernel, template, ty):
    """As cu++filt writes the instance."""
    return kernel + template.format(ty=ty).replace(",128", ", (unsigned int)128").replace(",false", ", false")


def reductions():
    found = []
    for ty, t, ref in (("float", "f32", "row_sums"), ("int", "s32", "row_sums_int"), ("double", "f64", "row_sums_double")):
        plain = (ref, "ceil_div(rows,32)", "32", 0, ROWS.format(t=t) + "; rows s32 = rows; n s32 = n")
        args = "g_idata {t} n in; g_odata {t} 1 out; n u32 = n".format(t=t)
        plain_one = (ref, "1", "32", 0, "g_idata {t} n in; g_odata {t} 1 out; rows s32 = 1; n s32 = n".format(t=t))
        for k, template, per in (
            ("reduce0", "<{ty}>", 1), ("reduce1", "<{ty}>", 1), ("reduce2", "<{ty}>", 1), ("reduce3", "<{ty}>", 2),
            ("reduce4", "<{ty},128>", 2), ("reduce5", "<{ty},128>", 2), ("reduce6", "<{ty},128,false>", 9),
            ("reduce7", "<{ty},128,false>", 9), ("cg_reduce", "<{ty}>", 9),
        ):
            const = "const " if k == "reduce7" else ""
            inst = "template __global__ void %s%s(%s%s *, %s *, unsigned int);" % (
                k, template.format(ty=ty), const, ty, ty)
            most = {1: [128, 101, 33], 2: [256, 200, 129], 9: [256, 500, 1000]}[per]
            found.append(pair("samples/%s-%s" % (k, ty), ("reduction", inst), (names(k, template, ty), "1", "128", 128 * 8, args), plain_one,
                              sizes(n=most)))
    return found


def l1(task, kernel, inst, launch, plain, at):
    """A kernel of CUDA-L1's level 1."""
    return pair("cuda-l1/%d-%s" % (task, kernel), ("l1", task, inst), (kernel,) + launch, plain, at)


def pairs():
    flat = "input f32 n in; output f32 n out; n s32 = n"
    point = lambda ref: (ref, "ceil_div(n,64)", "64", 0, flat)
    n = sizes(n=[1000, 37, 2051])
    table = "input f32 rows,n in; output f32 rows,n out; rows s32 = rows; n s32 = n"
    rows = lambda ref: (ref, "ceil_div(rows,32)", "32", 0, table)
    middle = "input f32 a,n,b in; output f32 a,b out; a s32 = a; n s32 = n; b s32 = b"
    over = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0, middle)
    cube = sizes(a=[3, 2, 5], n=[70, 33, 300], b=[5, 4, 3])
    # The first and the last dimension are middle ones of arrays with an extent of 1.
    first = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0,
                         "input f32 n,a,b in; output f32 a,b out; one s32 = 1; n s32 = n; inner s32 = a*b")
    last = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0,
                        "input f32 a,b,n in; output f32 a,b out; outer s32 = a*b; n s32 = n; one s32 = 1")
    three = "a s32 = a; n s32 = n; b s32 = b"
    found = reductions()
    wide = sizes(n=[64, 32, 96], m=[32, 96, 64])
    for k in ("transposeNaive", "transposeCoalesced", "transposeNoBankConflicts", "transposeDiagonal"):
        found.append(pair("samples/" + k, ("transpose", ""), (k, "n/32 m/32", "32 16", 0,
                     "odata f32 n,m out; idata f32 m,n in; width s32 = n; height s32 = m"),
                     ("transposed", "ceil_div(n*m,64)", "64", 0,
                      "idata f32 m,n in; odata f32 n,m out; width s32 = n; height s32 = m"),
                     sizes(n=[64, 32, 64], m=[64, 32, 64]) if k == "transposeDiagonal" else wide))
    for k in ("copy", "copySharedMem"):
        found.append(pair("samples/" + k, ("transpose", ""), (k, "n/32 m/32", "32 16", 0,
                     "odata f32 m,n out; idata f32 m,n in; width s32 = n; height s32 = m"),
                     ("copied", "ceil_div(n*m,64)", "64", 0,
                      "idata f32 m,n in; odata f32 m,n out; width s32 = n; height s32 = m"),
                     sizes(n=[64, 32, 96], m=[64, 32, 96])))
    square = ("product", "ceil_div(m*n,64)", "64", 0,
              "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; n s32 = n; k s32 = k")
    for b in (16, 32):
        found.append(pair("samples/matrixMul%d" % b,
                     ("matrixMul", "template __global__ void MatrixMulCUDA<%d>(float *, float *, float *, int, int);" % b),
                     ("MatrixMulCUDA<%d>" % b, "n/%d m/%d" % (b, b), "%d %d" % (b, b), 0,
                      "C f32 m,n out; A f32 m,k in; B f32 k,n in; wA s32 = k; wB s32 = n"), square,
                     sizes(m=[32, 64, 32], n=[64, 32, 96], k=[32, 96, 64])))
    found += [
        l1(5, "matrix_scalar_mul_kernel", "", ("ceil_div(n,256)", "256", 0,
           "input f32 n,m in; output f32 n,m out; scalar f32 = 3.14; n s32 = n; m s32 = m"),
           ("scaled", "ceil_div(n*m,64)", "64", 0, "input f32 n,m in; output f32 n,m out; scalar f32 = 3.14; n s32 = n*m"),
           sizes(n=[40, 7, 300], m=[8, 13, 21])),
        l1(12, "diagonal_matmul_kernel", "", ("ceil_div(m,32) ceil_div(n,32)", "32 32", 0,
           "A f32 n in; B f32 n,m in; C f32 n,m out; n s32 = n; m s32 = m"),
           ("diagonal", "ceil_div(n*m,64)", "64", 0, "A f32 n in; B f32 n,m in; C f32 n,m out; n s32 = n; m s32 = m"),
           sizes(n=[40, 7, 65], m=[40, 13, 33])),
        l1(9, "tall_skinny_matmul_kernel", "", ("ceil_div(n,32) ceil_div(m,32)", "32 32", 0,
           "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; k s32 = k; n s32 = n"), square,
           sizes(m=[64, 32, 96], n=[64, 96, 32], k=[16, 9, 7])),
        l1(13, "matmul_kernel_fp32", "", ("n/16 n/16", "16 16", 0, "A f32 n,n in; B f32 n,n in; C f32 n,n out; n s32 = n"),
           ("product", "ceil_div(n*n,64)", "64", 0,
            "A f32 n,n in; B f32 n,n in; C f32 n,n out; m s32 = n; n s32 = n; k s32 = n"), sizes(n=[32, 16, 48])),
        l1(15, "triangular_matmul", "", ("ceil_div(n,32) ceil_div(n,32)", "32 32", 0,
           "A f32 n,n in; B f32 n,n in; C f32 n,n zeros out; n s32 = n"),
           ("lower_product", "ceil_div(n*n,64)", "64", 0, "A f32 n,n in; B f32 n,n in; C f32 n,n zeros out; n s32 = n"),
           sizes(n=[64, 32, 96])),
        l1(19, "optimized_relu_kernel", "", ("ceil_div(n,1024)", "256", 0, flat), point("relu"), n),
        l1(23, "softmax_vectorized_multiblock_kernel", "", ("rows*2", "256", 0, table), rows("softmax"),
           sizes(rows=[3, 2, 1], n=[64, 256, 2048])),
        l1(24, "log_softmax_forward_kernel", "<float>(const float *, float *, int, int)", ("rows", "128", 16, table),
           rows("log_softmax"), sizes(rows=[3, 2, 4], n=[64, 37, 300])),
        l1(25, "swish_forward_kernel", "", ("2", "256", 0, flat), point("swish"), n),
        l1(26, "fast_gelu_kernel", "", ("2", "256", 0, flat), point("gelu"), n),
        l1(27, "selu_kernel", "<float,8>(const float *, float *, int)", ("2", "256", 0, flat), point("selu"), n),
        l1(28, "hardsigmoid_kernel_coarse", "", ("1", "256", 0, flat), point("hardsigmoid"), n),
        l1(28, "hardsigmoid_kernel", "", ("3", "128", 0, flat), point("hardsigmoid"), n),
        l1(32, "hardtanh_kernel", "", ("2", "256", 0, "data f32 n in out; n s32 = n"),
           ("hardtanh", "ceil_div(n,64)", "64", 0, "data f32 n in out; n s32 = n"), n),
        l1(41, "max_pool1d_benchmark_kernel", "<float>(const float *, float *, int, int, int, int)",
           ("2 rows", "128", 0, "input f32 2,rows,n in; output f32 2,rows,(n-6)/2+1 out; batch s32 = 2; rows s32 = rows; "
            "n s32 = n; outs s32 = (n-6)/2+1"),
           ("pool1", "ceil_div(2*rows*n,64)", "64", 0, "input f32 2,rows,n in; output f32 2,rows,(n-6)/2+1 out; "
            "rows s32 = 2*rows; n s32 = n; outs s32 = (n-6)/2+1"), sizes(rows=[3, 2, 5], n=[40, 33, 300])),
        l1(42, "max_pool2d_optimized_kernel", "<float>(const float *, float *, int, int, int, int, int, int)",
           ("1 ceil_div(n/2,8) 2", "32 8", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; b s32 = 2; "
            "c s32 = 3; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"),
           ("pool2", "ceil_div(6*n*n,64)", "64", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; "
            "planes s32 = 6; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"), sizes(n=[16, 11, 30])),
        l1(42, "max_pool2d_kernel", "<float>(const float *, float *, int, int, int, int, int, int)",
           ("1 ceil_div(n/2,8) 6", "32 8", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; b s32 = 2; "
            "c s32 = 3; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"),
           ("pool2", "ceil_div(6*n*n,64)", "64", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; "
            "planes s32 = 6; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"), sizes(n=[16, 11, 30])),
        l1(47, "sum_dim1_kernel", "", ("b a", "256", 0, "input f32 a,n,b in; output f32 a,b out; n s32 = n; b s32 = b"),
           over("sum_middle"), cube),
        l1(48, "mean_dim1_kernel", "<float>(const float *, float *, int, int, int)",
           ("a b", "256", 1024, "input f32 a,n,b in; output f32 a,b out; " + three), over("mean_middle"), cube),
        l1(48, "mean_dim0_kernel", "<float>(const float *, float *, int, int, int)",
           ("a b", "64", 256, "input f32 n,a,b in; output f32 a,b out; n s32 = n; a s32 = a; b s32 = b"),
           first("mean_middle"), cube),
        l1(48, "mean_dim2_kernel", "<float>(const float *, float *, int, int, int)",
           ("a*b", "256", 1024, "input f32 a,b,n in; output f32 a,b out; a s32 = a; b s32 = b; n s32 = n"),
           last("mean_middle"), sizes(a=[3, 2, 5], n=[64, 32, 300], b=[5, 4, 3])),
        l1(50, "product_reduction_kernel", "<float>(const float *, float *, int, int, int)",
           ("ceil_div(b,8) 1 a", "32 8", 0, "input f32 a,n,b in; output f32 a,b out; " + three), over("product_middle"), cube),
        l1(88, "optimized_gelu_kernel", "<16>(const float *, float *, int)", ("1", "256", 0, flat), point("gelu"), n),
        l1(89, "cumsum_kernel", "<float>(const float *, float *, int, int)", ("rows", "256", 2048, table),
           rows("running_sum"), sizes(rows=[3, 2, 1], n=[64, 256, 500])),
    ]
    return found


# ---- building

def show(mirrors, repo, path):
    return subprocess.check_output(["git", "-C", f"{mirrors}/{repo}/repo", "show", "HEAD:" + path], text=True)


def device(text):
    """Macros, constants, device functions and kernels of a text."""
    parts = []
    start = re.compile(
        r"^[ \t]*#define[^\n]*(?:\\\n[^\n]*)*"
        r"|^[ \t]*(?:__constant__|constexpr|static\s+constexpr|static\s+const)\s+(?:int|float)\s+\w+\s*=[^;]*;"
        r"|^const\s+(?:int|float)\s+\w+\s*=[^;]*;"
        r"|(?:template\s*<[^>]*>\s*)?(?:extern \"C\"\s*)?(?:static\s+)?(?:__device__|__global__)[^;{]*\{", re.M)
    at = 0
    while m := start.search(text, at):
        end = m.end()
        if m.group(0).rstrip().endswith("{"):
            depth = 1
            while depth and end < len(text):
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
        parts.append(text[m.start():end].replace('extern "C"', ""))
        at = end
    return "\n".join(parts)


def source(mirrors, what):
    kind = what[0]
    if kind == "reduction":
        text = show(mirrors, SAMPLES, "Samples/2_Concepts_and_Techniques/reduction/reduction_kernel.cu")
        head = text[: text.index('extern "C" bool isPow2')]
        head = re.sub(r"#include <stdio.h>|#include \"reduction.h\"|#ifndef _REDUCE_KERNEL_H_", "", head)
        return head + "\n" + "\n".join(p["source"][1] for p in reductions())
    if kind == "transpose":
        text = show(mirrors, SAMPLES, "Samples/6_Performance/transpose/transpose.cu")
        return "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n" + device(text)
    if kind == "matrixMul":
        text = show(mirrors, SAMPLES, "Samples/0_Introduction/matrixMul/matrixMul.cu")
        return PRELUDE + device(text) + "".join("\n" + p["source"][1] for p in pairs() if p["source"][0] == "matrixMul")
    lines = show(mirrors, L1, "optimized_cuda_code/h100.json").splitlines()
    for line in filter(str.strip, lines):
        entry = json.loads(line)
        if (entry["level_id"], entry["task_id"]) == (1, what[1]):
            return PRELUDE + device(entry["custom_code"])
    raise SystemExit("no task %d" % what[1])


def description(launch, at):
    kernel, grid, block, smem, args = launch
    quote = lambda text, by: ", ".join('"%s"' % e for e in text.split(by))
    text = 'kernel = "%s"\n' % kernel
    for number, one in enumerate(at):
        text += "[sizes.s%d]\n" % number + "".join("%s = %d\n" % kv for kv in one.items())
    text += "[launch]\ngrid = [%s]\nblock = [%s]\ndynamic_smem = %d\n" % (quote(grid, None), quote(block, None), smem)
    for arg in args.split(";"):
        words = arg.split()
        text += '[[args]]\nname = "%s"\ntype = "%s"\n' % (words[0], words[1])
        if words[2] == "=":
            text += 'value = "%s"\n' % words[3]
        else:
            text += "shape = [%s]\n" % quote(words[2], ",")
        fill = 'init = { kind = "%s" }\n' % ("normal" if words[1][0] == "f" else "bits")
        text += "".join({"in": fill, "zeros": 'init = "zeros"\n', "out": "output = true\n"}.get(w, "") for w in words[3:])
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("mirrors", "work"):
        parser.add_argument(name)
    for name in ("--nvcc", "--warpwright", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only")
    parser.add_argument("--ptx-only", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)

    def compiled(name, text):
        cu, ptx = f"{o.work}/{name}.cu", f"{o.work}/{name}.ptx"
        if os.path.exists(cu) and open(cu).read() == text and os.path.exists(ptx):
            return ptx, 0.0
        open(cu, "w").write(text)
        begin = time.time()
        done = subprocess.run([o.nvcc, "-ptx", "-arch=sm_90", "-lineinfo", "-std=c++17", "--expt-relaxed-constexpr", "-o", ptx, cu],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[:500])
        return ptx, time.time() - begin

    plain, _ = compiled("reference", open(HERE + "/rewrites/reference.cu").read())
    results = []
    for p in pairs():
        if o.only and o.only not in p["name"]:
            continue
        key = re.sub(r"\W", "_", p["name"])
        record = dict(name=p["name"])
        results.append(record)
        try:
            text = source(o.mirrors, p["source"])
            inst = p["source"][2] if p["source"][0] == "l1" else ""
            if inst:
                text += "\ntemplate __global__ void %s%s;" % (p["rewrite"][0], inst)
            ptx, seconds = compiled(key if inst or p["source"][0] == "l1" else p["source"][0], text)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            record.update(verdict="not-compiled", why=str(error)[:300])
            print(p["name"], "not compiled", str(error)[:200])
            continue
        record["nvcc_seconds"] = round(seconds, 2)
        if o.ptx_only:
            continue
        for side, launch in (("a", p["plain"]), ("b", p["rewrite"])):
            open(f"{o.work}/{key}.{side}.toml", "w").write(description(launch, p["sizes"]))
        begin = time.time()
        done = subprocess.run([o.warpwright, "check", plain, ptx, "--launch-a", f"{o.work}/{key}.a.toml", "--launch-b",
                               f"{o.work}/{key}.b.toml", "--only-described", "--json"], capture_output=True, text=True)
        record["seconds"] = round(time.time() - begin, 2)
        try:
            said = json.loads(done.stdout)
        except ValueError:
            said = {}
        record["verdict"] = said.get("verdict", "no verdict")
        record["launches"] = [dict(verdict=l["verdict"], elements=l["elements"], terms=l["terms"],
                                   why=sorted({w["code"] for w in l["why"]})) for l in said.get("launches", [])]
        if not said.get("launches"):
            record["why"] = (done.stderr or done.stdout)[:300]
        last = [w["text"] for l in said.get("launches", []) for w in l["why"]][-1:]
        print(p["name"], record["verdict"], record["seconds"], [l["verdict"] for l in record["launches"]],
              "" if record["verdict"] in ("equal-up-to-rounding", "proved-at-launches") else (last or record.get("why")),
              flush=True)
    table = {}
    for record in results:
        table[record.get("verdict", "?")] = table.get(record.get("verdict", "?"), 0) + 1
    commits = {repo: subprocess.check_output(["git", "-C", f"{o.mirrors}/{repo}/repo", "rev-parse", "HEAD"], text=True).strip()
               for repo in (SAMPLES, L1)}
    document = dict(date=time.strftime("%Y-%m-%d"), commits=commits, pairs=len(results), verdicts=table, results=results)
    open(o.out, "w").write(json.dumps(document, indent=1) + "\n")
    print(table)


if __name__ == "__main__":
    main()
