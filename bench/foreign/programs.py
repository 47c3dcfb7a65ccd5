"""Programs that nobody here wrote, for measurement only: where they come from, how they are built and run.

The repositories are public and lie beside each other in one folder (FOREIGN in collect.py); nothing of theirs is in this
one. The split by program is fixed here, by the digest of the name, before anything was fitted: half of the programs fit,
a quarter chooses (validation), a quarter is held out.
"""
import hashlib


def split(name):
    byte = hashlib.sha256(name.encode()).digest()[0] % 4
    return ['fit', 'fit', 'validation', 'held-out'][byte]


# Calls that the runtime no longer has, by their present names.
OLD = '-DcudaThreadSynchronize=cudaDeviceSynchronize -DcudaThreadExit=cudaDeviceReset'

POLYBENCH = 'PolyBench-ACC'   # github.com/cavazos-lab/PolyBench-ACC
SAMPLES = 'cuda-samples'      # github.com/NVIDIA/cuda-samples
RODINIA = 'gpu-rodinia'       # github.com/yuhc/gpu-rodinia
SHOC = 'shoc'                 # github.com/vetter/shoc
ALTIS = 'altis'               # github.com/utcs-scea/altis


class Program:
    def __init__(self, name, repo, folder, sources, flags='', args='', drop=(), needs=()):
        self.name, self.repo, self.folder = name, repo, folder
        self.sources, self.flags, self.args = sources, flags, args
        self.drop = drop      # lines of the sources that hold one of these are left out
        self.needs = needs    # input files made before the run: (file, maker, arguments)
        self.split = split(name)


def polybench():
    base = 'CUDA/'
    places = {
        'datamining': ['correlation', 'covariance'],
        'linear-algebra/solvers': ['gramschmidt', 'lu'],
        'linear-algebra/kernels': ['gemm', 'syrk', 'gemver', '2mm', 'bicg', 'atax', 'doitgen', 'gesummv', '3mm', 'syr2k',
                                   'mvt'],
        'stencils': ['adi', 'jacobi-2d-imper', 'fdtd-2d', 'jacobi-1d-imper', 'convolution-2d', 'convolution-3d'],
    }
    source = {'jacobi-2d-imper': 'jacobi2D', 'fdtd-2d': 'fdtd2d', 'jacobi-1d-imper': 'jacobi1D',
              'convolution-2d': '2DConvolution', 'convolution-3d': '3DConvolution'}
    slow = ['gramschmidt', 'adi', 'lu']
    for place, names in places.items():
        for name in names:
            folder = f'{base}{place}/{name}'
            size = '-DSTANDARD_DATASET' if name in slow else '-DLARGE_DATASET'
            yield Program(f'polybench/{name}', POLYBENCH, folder, [f'{source.get(name, name)}.cu'],
                          f'-I {{root}}/{base}utilities {size} {OLD}', drop=['#define RUN_ON_CPU'])


def samples():
    def one(section, name, args='', flags='', sources=None):
        return Program(f'samples/{name}', SAMPLES, f'Samples/{section}/{name}', sources or ['*.cu', '*.cpp'],
                       f'-std=c++17 --extended-lambda -I {{root}}/Common {flags}', args)
    intro, ideas, features = '0_Introduction', '2_Concepts_and_Techniques', '3_CUDA_Features'
    libraries, domain, speed = '4_CUDA_Libraries', '5_Domain_Specific', '6_Performance'
    for name in ['matrixMul', 'mergeSort', 'fp16ScalarProduct', 'simpleAWBarrier']:
        yield one(intro, name)
    for name in ['convolutionSeparable', 'convolutionTexture', 'dct8x8', 'eigenvalues', 'histogram', 'interval', 'scalarProd',
                 'scan', 'shfl_scan', 'sortingNetworks', 'threadFenceReduction', 'reduction', 'reductionMultiBlockCG']:
        yield one(ideas, name, flags='-rdc=true' if name == 'reductionMultiBlockCG' else '')
    for name in ['MC_EstimatePiInlineP', 'MC_EstimatePiInlineQ', 'MC_EstimatePiP', 'MC_EstimatePiQ', 'MC_SingleAsianOptionP']:
        yield one(ideas, name, flags='-lcurand -I inc', sources=['src/*.cu', 'src/*.cpp'])
    # The other tensor-core samples spend a minute on the host for each run.
    for name in ['cudaTensorCoreGemm', 'globalToShmemAsyncCopy', 'binaryPartitionCG', 'warpAggregatedAtomicsCG', 'jacobiCudaGraphs', 'newdelete']:
        yield one(features, name)
    for name in ['conjugateGradientMultiBlockCG', 'MersenneTwisterGP11213']:
        yield one(libraries, name, flags='-lcurand')
    for name in ['BlackScholes', 'FDTD3d', 'MonteCarloMultiGPU', 'SobolQRNG', 'binomialOptions', 'dxtc', 'fastWalshTransform',
                 'quasirandomGenerator', 'stereoDisparity', 'HSOpticalFlow', 'NV12toBGRandResize', 'convolutionFFT2D',
                 'dwtHaar1D']:
        flags = {'MonteCarloMultiGPU': '-I inc -lcurand', 'FDTD3d': '-I inc', 'convolutionFFT2D': '-lcufft'}.get(name, '')
        yield one(domain, name, flags=flags, sources=['src/*.cu', 'src/*.cpp'] if name == 'FDTD3d' else None)
    for name in ['transpose', 'alignedTypes', 'LargeKernelParameter']:
        yield one(speed, name)


def rodinia():
    def one(name, sources, args, flags='', folder=None, needs=()):
        return Program(f'rodinia/{name}', RODINIA, f'cuda/{folder or name}', sources, f'{flags} {OLD}', args, needs=needs)
    yield one('backprop', ['backprop.c', 'backprop_cuda.cu', 'facetrain.c', 'imagenet.c'], '2097152')
    yield one('bfs', ['bfs.cu'], 'graph.txt', needs=[('graph.txt', 'graph', (1 << 20, 6))])
    yield one('gaussian', ['gaussian.cu'], '-s 1024')
    yield one('hotspot', ['hotspot.cu'], '1024 2 64 temp power output.out',
              needs=[('temp', 'numbers', (1 << 20, 320, 340)), ('power', 'numbers', (1 << 20, 0, 1))])
    yield one('hotspot3D', ['3D.cu'], '512 8 100 power temp output.out',
              needs=[('temp', 'numbers', (1 << 21, 320, 340)), ('power', 'numbers', (1 << 21, 0, 1))])
    yield one('lud', ['cuda/*.cu', 'common/common.c'], '-s 2048', '-I common -I cuda')
    yield one('myocyte', ['main.cu'], '100 1 0')
    yield one('nw', ['needle.cu'], '4096 10')
    yield one('particlefilter-float', ['ex_particle_CUDA_float_seq.cu'], '-x 128 -y 128 -z 10 -np 100000',
              folder='particlefilter')
    yield one('particlefilter-naive', ['ex_particle_CUDA_naive_seq.cu'], '-x 128 -y 128 -z 10 -np 1000',
              folder='particlefilter')
    yield one('pathfinder', ['pathfinder.cu'], '100000 1000 20')
    yield one('srad-v1', ['main.cu'], '100 0.5 502 458', folder='srad/srad_v1')
    yield one('srad-v2', ['srad.cu'], '2048 2048 0 127 0 127 0.5 20', '-DGPU', folder='srad/srad_v2')
    yield one('streamcluster', ['streamcluster_cuda_cpu.cpp', 'streamcluster_cuda.cu'],
              '10 20 256 65536 65536 1000 none output.txt 1')


# What SHOC and Altis want of a configured build, and what CUDA 13 no longer has (hints to managed memory, which they do
# not use by default).
CONFIGURED = [('config.h', 'text', ['#define HAVE_GETTIMEOFDAY 1']),
              ('before.h', 'text', ['#include <cuda_runtime.h>', '#define cudaMemPrefetchAsync(...) cudaSuccess',
                                    '#define cudaMemAdvise(...) cudaSuccess', '#define clockRate major'])]


def configured(suite, repo, name, own, args, flags='', main='cuda/common/main.cpp', std=17):
    """A program of SHOC or of Altis: its own sources beside the suite's."""
    place = own[0].rsplit('/', 1)[0]
    return Program(f'{suite}/{name}', repo, 'src', [*own, main, 'common/*Option*.cpp', 'common/*Timer.cpp', 'common/ProgressBar.cpp',
                                                    'common/ResultDatabase.cpp'],
                   f'-std=c++{std} -include before.h -I . -I common -I cuda/common -I {place} {OLD} {flags}', args, needs=CONFIGURED)


def shoc():
    own = {'reduction': ['Reduction.cu'], 'triad': ['Triad.cu'], 'scan': ['Scan.cu'], 'sort': ['Sort.cu', 'sort_kernel.cu'],
           'fft': ['FFT.cpp', 'fftlib.cu'], 'md5hash': ['MD5Hash.cu'], 'bfs': ['BFS.cu', 'bfs_kernel.cu', 'Graph']}
    for name, files in own.items():
        files = [f'cuda/level1/{name}/{file}' if file != 'Graph' else 'common/Graph.cpp' for file in files]
        yield configured('shoc', SHOC, name, files, '-s 3 --passes 4')


def altis():
    linked = '-rdc=true -lcudadevrt'
    own = [('gups', 'level1/gups', '*.cu', '-s 1', linked), ('pathfinder', 'level1/pathfinder', '*.cu', '-s 2', ''),
           ('sort', 'level1/sort', '*.cu', '-s 2', ''), ('fdtd2d', 'level2/fdtd2d', '*.cu', '-s 2', linked),
           ('mandelbrot', 'level2/mandelbrot', '*.cu', '-s 2', linked), ('nw', 'level2/nw', 'needle.cu', '-s 2', ''),
           ('raytracing', 'level2/raytracing/raytracing_cuda', '*.cu', '-s 1', ''),
           ('srad', 'level2/srad', 'srad.cu', '-s 2', linked), ('where', 'level2/where', '*.cu', '-s 2', ''),
           ('particlefilter-float', 'level2/particlefilter', 'ex_particle_CUDA_float_seq.cu', '-s 2', ''),
           ('particlefilter-naive', 'level2/particlefilter', 'ex_particle_CUDA_naive_seq.cu', '-s 2', '')]
    for name, place, sources, size, flags in own:
        # Some have names that later standards took.
        std = 14 if name in ('pathfinder', 'particlefilter-float') else 17
        yield configured('altis', ALTIS, name, [f'cuda/{place}/{sources}'], f'{size} -n 4', flags, 'cuda/common/main.cu', std)


PROGRAMS = [*polybench(), *rodinia(), *samples(), *shoc(), *altis()]

if __name__ == '__main__':
    for program in PROGRAMS:
        print(program.split, program.name, program.folder, sep='\t')
