"""robust-kbench: its optimised kernels against its plain ones where it has them, else against those of reference.cu."""

REPO = "SakanaAI+robust-kbench"
ACC = "namespace at { template <class T, bool> struct acc { using type = T; }; " \
      "template <class T, bool B> using acc_type = typename acc<T, B>::type; }\n"
# Pairs whose rewrite is faulty in its source, by reading it.
MASK = "shuffles from lanes that its member mask does not have, or that are elsewhere: what they give is undefined"
FAULTY = {
    "robust-kbench/layernorm_2d_grid_kernel": MASK,
    "robust-kbench/layer_norm_backward_kernel": "the means in the derivative by the input leave the weights out: right where all are 1",
    "robust-kbench/ce_backward_rowwise_fvec_kernel": "all 32 lanes shuffle under a mask of as many as there are classes: undefined",
    "robust-kbench/ce_backward_fusedvec_kernel": "the maximum and the sum of all warps reach the first one alone: others go on with "
                                                 "-FLT_MAX and 0",
}


def of(path, kernel, inst, rewrite, plain, sizes, before="", beside=None):
    """`inst`: what follows the name in its explicit instance; `beside`: the file and instances of its plain version."""
    source = lambda where, texts: ("file", REPO, where, "".join("template __global__ void %s;" % t for t in texts), before)
    return dict(name="robust-kbench/" + kernel, source=source(path, [kernel + inst] if inst else []), rewrite=(kernel,) + rewrite,
                plain=plain, sizes=sizes, **({"beside": source(*beside)} if beside else {}))


def sizes(**lists):
    return [dict((k, v[i]) for k, v in lists.items()) for i in range(3)]


def linear():
    """A linear layer forwards and backwards: the plain versions are those of the repository's own tests."""
    at = sizes(b=[5, 3, 2], k=[40, 300, 7], o=[9, 4, 33])
    to, back = "tests/linear/forward.cu", "tests/linear/backward.cu"
    sizes_of = "b s32 = b; k s32 = k; o s32 = o"
    layer = "x f32 b,k in; w f32 o,k in; bias f32 o in; y f32 b,o out; "
    forward = ("linear_forward_kernel<float>", "ceil_div(b*o,256)", "256", 0, layer + sizes_of)
    three = "(const float *, const float *, float *, int, int, int)"
    four = "(const float *, const float *, const float *, float *, int, int, int)"
    beside = lambda which, params: (back, ["linear_backward_%s_kernel<float>%s" % (which, params)])
    to_input = ("linear_backward_input_kernel<float>", "ceil_div(b*k,256)", "256", 0,
                "g f32 b,o in; w f32 o,k in; gx f32 b,k out; " + sizes_of)
    to_weight = ("linear_backward_weight_kernel<float>", "ceil_div(o*k,256)", "256", 0,
                 "g f32 b,o in; x f32 b,k in; gw f32 o,k out; " + sizes_of)
    to_bias = ("linear_backward_bias_kernel<float>", "ceil_div(o,256)", "256", 0, "g f32 b,o in; gb f32 o out; b s32 = b; o s32 = o")
    mnist, relu = "highlighted/mnist_linear/", "highlighted/mnist_linear_relu/"
    return [
        of(mnist + "forward/kernel.cu", "linear_forward_warp_kernel", "", ("o b", "32", 0, layer + "b s32 = b; o s32 = o; k s32 = k"),
           forward, at, beside=(to, ["linear_forward_kernel<float>" + four])),
        of(mnist + "backward/kernel.cu", "grad_input_adaptive_kernel", "<float>" + three,
           ("ceil_div(k,128) b", "128", 0, "g f32 b,o in; w f32 o,k in; gx f32 b,k out; b s32 = b; k s32 = k; o s32 = o"),
           to_input, at, beside=beside("input", three)),
        of(mnist + "backward/kernel.cu", "grad_weights_adaptive_kernel", "<float>" + three,
           ("ceil_div(k,64) ceil_div(o,4)", "64 4", 0, "g f32 b,o in; x f32 b,k in; gw f32 o,k out; b s32 = b; o s32 = o; k s32 = k"),
           to_weight, at, beside=beside("weight", three)),
        of(mnist + "backward/kernel.cu", "grad_bias_adaptive_kernel", "<float>(const float *, float *, int, int)",
           ("o", "256", 0, "g f32 b,o in; gb f32 o out; b s32 = b; o s32 = o"), to_bias, sizes(b=[300, 5, 256], o=[9, 4, 33]),
           beside=beside("bias", "(const float *, float *, int, int)")),
        of(relu + "backward/kernel.cu", "grad_weights_kernel", "", ("o", "256", 0, "x f32 b,k in; g f32 b,o in; gw f32 o,k out; " + sizes_of),
           to_weight, at, beside=beside("weight", three)),
        of(relu + "backward/kernel.cu", "grad_input_kernel", "", ("b", "256", 0, "g f32 b,o in; w f32 o,k in; gx f32 b,k out; " + sizes_of),
           to_input, at, beside=beside("input", three)),
        of(relu + "backward/kernel.cu", "masked_grad_bias_kernel", "",
           ("o", "256", 0, "x f32 b,k in; w f32 o,k in; bias f32 o in; g f32 b,o in; m f32 b,o out; gb f32 o zeros out; " + sizes_of),
           ("masked_bias", "ceil_div(o,32)", "32", 0,
            "x f32 b,k in; w f32 o,k in; bias f32 o in; g f32 b,o in; m f32 b,o out; gb f32 o out; " + sizes_of), at),
        of(relu + "forward/kernel.cu", "linear_relu_shfl_strideloop_kernel", "<float>" + four,
           ("4 2", "128", 0, layer + sizes_of), ("linear_relu", "ceil_div(b*o,64)", "64", 0, layer + sizes_of), at),
    ]


def norms():
    rows = sizes(rows=[3, 2, 4], n=[64, 37, 300])
    layer = "x f32 rows,n in; w f32 n in; b f32 n in; y f32 rows,n out; "
    norm = ("layer_norm", "ceil_div(rows,32)", "32", 0, layer + "eps f32 = 0.00001; rows s32 = rows; n s32 = n")
    classes = "x f32 rows,n in; t s64 rows classes; "
    entropy = sizes(rows=[5, 3, 9], n=[10, 10, 10])
    flat = "gate f32 n in; up f32 n in; out f32 n out; n s32 = n"
    backward = "g f32 rows,n in; x f32 rows,n in; w f32 n in; mean f32 rows in; rstd f32 rows in; gx f32 rows,n out; "
    derivative = ("ce_backward", "ceil_div(rows,32)", "32", 0,
                  "scale f32 = 1; " + classes + "dx f32 rows,n out; rows s32 = rows; n s32 = n")
    return [
        of("highlighted/layernorm/forward/kernel.cu", "layernorm_2d_grid_kernel",
           "<128>(const float *, const float *, const float *, float *, float, int, int)",
           ("rows", "128", 0, layer + "eps f32 = 0.00001; rows s32 = rows; n s32 = n"), norm, rows),
        of("tasks/layernorm/forward.cu", "layernorm_streamed_kernel",
           "<float>(const float *, const float *, const float *, float, float *, int, int, int)",
           ("rows", "32 4", 1024, "x f32 rows,n in; w f32 n in; b f32 n in; eps f32 = 0.00001; y f32 rows,n out; n s32 = n; "
            "chunk s32 = rows; at s32 = 0"), norm, rows, ACC),
        of("tasks/layernorm/backward.cu", "layer_norm_backward_kernel",
           "<float>(const float *, const float *, const float *, const float *, const float *, float *, float *, float *, int, int, "
           "int, int, float)",
           ("1 rows", "128", 1536, backward + "gw f32 n zeros out; gb f32 n zeros out; rows s32 = rows; n s32 = n; one s32 = 1; "
            "uno s32 = 1; eps f32 = 0.00001"),
           ("layer_norm_backward", "1", "1", 0, backward + "gw f32 n out; gb f32 n out; rows s32 = rows; n s32 = n"), rows),
        of("highlighted/llama_rmsnorm/forward/kernel.cu", "strided_rms_norm_kernel",
           "<256>(const float *, const float *, float, float *, int, int)",
           ("rows", "256", 32, "x f32 rows,n in; w f32 n in; eps f32 = 0.00001; y f32 rows,n out; rows s32 = rows; n s32 = n"),
           ("rms_rows", "ceil_div(rows,32)", "32", 0,
            "x f32 rows,n in; w f32 n in; eps f32 = 0.00001; y f32 rows,n out; rows s32 = rows; n s32 = n"),
           sizes(rows=[3, 2, 4], n=[64, 36, 300])),
        of("highlighted/llama_ffw/forward/kernel.cu", "fused_silu_mul_predicate_kernel",
           "<2>(const float *, const float *, float *, int)", ("ceil_div(n,2048)", "256", 0, flat),
           ("silu_mul", "ceil_div(n,64)", "64", 0, flat), sizes(n=[1000, 36, 2052])),
        of("tasks/llama_ffw/forward.cu", "silu_kernel", "", ("ceil_div(n,256)", "256", 0, "input f32 n in; output f32 n out; n s32 = n"),
           ("swish", "ceil_div(n,64)", "64", 0, "input f32 n in; output f32 n out; n s32 = n"), sizes(n=[1000, 37, 2051])),
        of("tasks/llama_ffw/forward.cu", "matmul_kernel", "",
           ("ceil_div(n,16) ceil_div(m,16)", "16 16", 0, "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; k s32 = k; n s32 = n"),
           ("product", "ceil_div(m*n,64)", "64", 0, "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; n s32 = n; k s32 = k"),
           sizes(m=[33, 7, 16], n=[20, 5, 48], k=[12, 40, 9])),
        of("highlighted/mnist_cross_entropy/forward/kernel.cu", "cross_entropy_sharedwarp_unroll_kernel_dynamic", "",
           ("ceil_div(rows,8)", "256", 320, classes + "loss f32 1 zeros out; rows s32 = rows; n s32 = n"),
           ("ce_loss", "1", "1", 0, classes + "loss f32 1 out; rows s32 = rows; n s32 = n"), entropy),
        of("highlighted/mnist_cross_entropy/backward/kernel.cu", "ce_backward_rowwise_fvec_kernel",
           "<float>(float, const float *, const int64_t *, float *, int, int, int)",
           ("ceil_div(rows,4)", "128", 0, "scale f32 = 1; " + classes + "dx f32 rows,n out; rows s32 = rows; n s32 = n; warps s32 = 4"),
           derivative, entropy),
        of("highlighted/mnist_cross_entropy/backward/kernel.cu", "ce_backward_fusedvec_kernel",
           "<float>(float, const float *, const int64_t *, float *, int, int)",
           ("rows", "128", 0, "scale f32 = 1; " + classes + "dx f32 rows,n out; rows s32 = rows; n s32 = n"),
           derivative, sizes(rows=[3, 2, 4], n=[64, 37, 300])),
    ]


def images():
    plain = "x f32 a,b,h,w in; g f32 a,b,h/2,w/2 in; gx f32 a,b,h,w zeros out; "
    at = sizes(a=[2, 1, 1], b=[3, 2, 1], h=[8, 4, 6], w=[10, 6, 2])
    conv = "x f32 n,ci,h,w in; k f32 co,ci,3,3 in; b f32 co in; y f32 n,co,(h-2)/2,(w-2)/2 out; n s32 = n; ci s32 = ci; co s32 = co; " \
           "h s32 = h; w s32 = w"
    return [
        of("highlighted/mnist_pool/backward/kernel.cu", "maxpool2d_ks2_backward_fast_kernel",
           "<float>(const float *, const float *, float *, int, int, int, int, int, int, long)",
           ("2", "64", 0, plain + "a s32 = a; b s32 = b; h s32 = h; w s32 = w; oh s32 = h/2; ow s32 = w/2; all s64 = a*b*(h/2)*(w/2)"),
           ("pool_backward", "ceil_div(a*b*h*w,64)", "64", 0, plain + "planes s32 = a*b; h s32 = h; w s32 = w"), at),
        of("highlighted/mnist_conv_relu_pool/forward/kernel.cu", "unrolled_threadmapped_kernel",
           "<3, 16, 8>(const float *, const float *, const float *, float *, int, int, int, int, int)",
           ("ceil_div((w-2)/2,16) ceil_div((h-2)/2,8) n*co", "16 8", 108, conv),
           ("conv_relu_pool", "ceil_div(n*co*h*w,64)", "64", 0, conv),
           sizes(n=[2, 1, 1], ci=[1, 2, 3], co=[3, 2, 1], h=[12, 9, 20], w=[14, 36, 8])),
    ]


def pairs():
    return linear() + norms() + images()
