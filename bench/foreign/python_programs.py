"""Python programs that use other people's kernels: what CuPy's modules, JAX, PyTorch's compiler and PyTorch itself compile
or bring along. The programs are ours, the kernels are not.

    python3 bench/foreign/python_programs.py NAME [TURNS]

Those whose name begins with `liger` want Liger's folder `src` (github.com/linkedin/Liger-Kernel) in LIGER.
Each works on arrays of a few million elements and prints what it computed; two runs print the same.
"""
import sys

N = 2048
PROGRAMS = {}


def program(body):
    PROGRAMS[body.__name__.replace('_', '-', 1)] = body
    return body


def image(cupy, shape=(N, N), kind='float32'):
    """Numbers that are no multiples of each other, by whole arithmetic: the same on every GPU."""
    count = 1
    for extent in shape:
        count *= extent
    numbers = (cupy.arange(count, dtype='uint64') * 2654435761 % 1000003) % 4096
    return (numbers.astype(kind) / 4096).reshape(shape)


def ndimage():
    import cupy
    from cupyx.scipy import ndimage as found
    return cupy, found


def signal():
    import cupy
    from cupyx.scipy import signal as found
    return cupy, found


def told(result):
    import cupy
    print(cupy.asnumpy(result.astype('float64').sum()).item(), cupy.asnumpy(result.ravel()[12345]).item())


def repeated(body):
    """A program of the call that the body gives back: made again and again, and told."""
    def run(turns):
        call = body()
        for _ in range(turns):
            result = call()
        told(result)
    run.__name__ = body.__name__
    return program(run)


@repeated
def cupy_spline():
    cupy, nd = ndimage()
    a = image(cupy)
    return lambda: nd.spline_filter(a, order=3)


@repeated
def cupy_zoom():
    cupy, nd = ndimage()
    a = image(cupy, (1024, 1024))
    return lambda: nd.zoom(a, 2.3, order=3, prefilter=False)


@repeated
def cupy_affine():
    cupy, nd = ndimage()
    a, m = image(cupy), cupy.array([[0.9, 0.1], [-0.1, 0.9]])
    return lambda: nd.affine_transform(a, m, order=1)


@repeated
def cupy_map():
    cupy, nd = ndimage()
    a = image(cupy)
    at = cupy.stack([image(cupy) * (N - 1), image(cupy)[::-1] * (N - 1)])
    return lambda: nd.map_coordinates(a, at, order=3, prefilter=False, mode='mirror')


@repeated
def cupy_correlate():
    cupy, nd = ndimage()
    a, w = image(cupy), image(cupy, (7, 7))
    return lambda: nd.correlate(a, w, mode='reflect')


@repeated
def cupy_gaussian():
    cupy, nd = ndimage()
    a = image(cupy, (160, 160, 160))
    return lambda: nd.gaussian_filter(a, 2.0)


@repeated
def cupy_median():
    cupy, nd = ndimage()
    a = image(cupy)
    return lambda: nd.median_filter(a, size=5)


@repeated
def cupy_erosion():
    cupy, nd = ndimage()
    a = image(cupy)
    return lambda: nd.grey_erosion(a, size=(5, 5))


@program
def cupy_label(turns):
    cupy, nd = ndimage()
    a = image(cupy) > 0.4
    for _ in range(turns):
        b, count = nd.label(a)
    print(count)
    told(b)


@repeated
def cupy_sosfilt():
    cupy, sp = signal()
    a, sos = image(cupy, (64, 65536)), sp.butter(4, 0.2, output='sos')
    return lambda: sp.sosfilt(sos, a)


@repeated
def cupy_upfirdn():
    cupy, sp = signal()
    a, h = image(cupy, (4 << 20,)), image(cupy, (63,))
    return lambda: sp.upfirdn(h, a, up=3, down=2)


@repeated
def cupy_convolve():
    cupy, sp = signal()
    a, w = image(cupy), image(cupy, (9, 9))
    return lambda: sp.convolve2d(a, w, mode='same', boundary='symm')


@program
def cupy_scatter(turns):
    """Sums in no fixed order: two runs differ in the last bits."""
    import cupy
    import cupyx
    values = image(cupy)
    at = (image(cupy).ravel() * 4095 * 1024).astype('int32')
    for _ in range(turns):
        b = cupy.zeros(4096 * 1024, 'float32')
        cupyx.scatter_add(b, at, values.ravel())
    print(round(cupy.asnumpy(b.astype('float64').sum()).item(), 1))


@repeated
def cupy_grid():
    import cupy
    from cupyx.scipy.interpolate import RegularGridInterpolator
    axes = [cupy.linspace(0, 1, 128)] * 3
    at = image(cupy, (2 << 20, 3), 'float64')
    of = RegularGridInterpolator(axes, image(cupy, (128, 128, 128), 'float64'))
    return lambda: of(at)


@repeated
def cupy_medfilt():
    cupy, sp = signal()
    a = image(cupy)
    return lambda: sp.medfilt2d(a, kernel_size=3)


@program
def jax_heat(turns):
    import jax
    import jax.numpy as np

    @jax.jit
    def step(u):
        inner = 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + u[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(inner)
    u = np.arange(N * N, dtype=np.float32).reshape(N, N) % 97
    for _ in range(turns):
        u = step(u)
    print(float(u.astype(np.float64).sum()), float(u[100, 100]))


@program
def torch_inductor(turns):
    import torch

    @torch.compile
    def block(x, w):
        y = torch.nn.functional.layer_norm(x, (x.shape[-1],))
        return torch.softmax(torch.nn.functional.gelu(y * w), -1).sum(0)
    x = torch.arange(4 << 20, device='cuda').float().remainder(977).view(4096, 1024) / 977
    w = torch.linspace(0.5, 2, 1024, device='cuda')
    for _ in range(turns):
        y = block(x, w)
    print(y.double().sum().item(), y[5].item())


@program
def torch_step(turns):
    import torch
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, dropout=0.0, batch_first=True).cuda()
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    x = torch.randn(16, 256, 512).cuda()
    for _ in range(turns):
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())


def rows(torch, *shape):
    """As `image`, for PyTorch, between -1 and 1."""
    count = 1
    for extent in shape:
        count *= extent
    numbers = torch.arange(count, device='cuda') * 40503 % 1000003 % 2039
    return (numbers.float() / 1019.5 - 1).view(*shape)


def liger(body):
    """A step forward and back through a function of Liger's, whose arguments the body gives."""
    def run(turns):
        import importlib
        import os
        import torch
        sys.path.insert(0, os.environ['LIGER'])
        name, arguments = body(lambda *shape: rows(torch, *shape).requires_grad_(), torch)
        function = getattr(importlib.import_module(f'liger_kernel.ops.{run.__name__.removeprefix("liger_")}'), name)
        for _ in range(turns):
            # Some of them write into what they are given.
            given = [a.detach().clone().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in arguments]
            result = function.apply(*given)
            result = result[0] if isinstance(result, tuple) else result
            (result.double() ** 2).sum().backward()
        print(result.double().sum().item(), *(a.grad.double().abs().sum().item() for a in given if torch.is_tensor(a) and a.requires_grad))
    run.__name__ = body.__name__
    return program(run)


@liger
def liger_rms_norm(of, torch):
    return 'LigerRMSNormFunction', [of(4096, 4096), of(4096), 1e-6, 0.0, 'llama', True]


@liger
def liger_layer_norm(of, torch):
    return 'LigerLayerNormFunction', [of(4096, 4096), of(4096), of(4096), 1e-6]


@liger
def liger_cross_entropy(of, torch):
    return 'LigerCrossEntropyFunction', [of(2048, 32000), torch.arange(2048, device='cuda') * 13, None, -100, 0.0, 0.0, 'mean', None, False]


@liger
def liger_swiglu(of, torch):
    return 'LigerSiLUMulFunction', [of(4096, 4096), of(4096, 4096)]


@liger
def liger_geglu(of, torch):
    return 'LigerGELUMulFunction', [of(4096, 4096), of(4096, 4096)]


@liger
def liger_softmax(of, torch):
    return 'LigerSoftmaxFunction', [of(4096, 4096)]


@liger
def liger_kl_div(of, torch):
    return 'LigerKLDivLossFunction', [of(2048, 8192), of(2048, 8192).detach().softmax(-1), 'batchmean', False, 1e-10]


@liger
def liger_tvd(of, torch):
    return 'LigerTVDLossFunction', [of(2048, 8192), of(2048, 8192).detach().softmax(-1), None, 'batchmean', -100]


@liger
def liger_dyt(of, torch):
    return 'LigerDyTFunction', [of(4096, 4096), of(1), of(4096), of(4096)]


@liger
def liger_sparsemax(of, torch):
    return 'LigerSparsemaxFunction', [of(2048, 4096), -1]


@liger
def liger_poly_norm(of, torch):
    return 'LigerPolyNormFunction', [of(2048, 4096), of(3), of(1), 1e-6, True]


@liger
def liger_group_norm(of, torch):
    return 'LigerGroupNormFunction', [of(64, 64, 4096), of(64), of(64), 64, 8, 1e-6]


if __name__ == '__main__':
    if len(sys.argv) < 2 or sys.argv[1] not in PROGRAMS:
        sys.exit(f'one of {", ".join(PROGRAMS)} is wanted')
    PROGRAMS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 40)
