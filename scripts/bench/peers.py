"""What peers take for the work of scripts/bench.lua: lines "name<TAB>seconds" (per slice in tomo).

Usage: peers.py GROUP KIND ARGUMENTS..., KIND being the kind of device that bench.lua times, cuda or host. A peer that is not
installed is left out. The kernels here have the shapes of the peers' own (their launch geometry and way of fetching), not
their code; libraries are called as their users call them.
"""
import multiprocessing
import os
import statistics
import sys
import time


def report(name, seconds):
    print(f"{name}\t{seconds:.9f}", flush=True)


def median(run, repeats, wait=lambda: None):
    """Median seconds of run(), warm; wait() ends what is still under way."""
    run()
    run()
    wait()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        wait()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


# One slice. ASTRA's shape: 2-D texture with linear filtering, 16 x 32 pixels a block, 16 angles a launch, volume += sum.
# tomocupy's: every thread one pixel, all angles, two loads and its own interpolation.
BACKPROJECTORS = r"""
extern "C" __global__ void texture_16_angles(cudaTextureObject_t sino, float *slice, const float4 *rays, int n, int a0, int a1)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x >= n || y >= n)
        return;
    float sum = 0;
    for (int a = a0; a < a1; a++)
        sum += tex2D<float>(sino, fmaf(x, rays[a].x, fmaf(y, rays[a].y, rays[a].z)) + 0.5f, a + 0.5f);
    slice[(size_t)y * n + x] += sum;
}

extern "C" __global__ void line_by_pixel(const float *sino, float *slice, const float4 *rays, int n, int angles)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n)
        return;
    float sum = 0;
    for (int a = 0; a < angles; a++) {
        float u = fmaf(x, rays[a].x, fmaf(y, rays[a].y, rays[a].z));
        int i = (int)floorf(u);
        if (i >= 0 && i < n - 1)
            sum += sino[(size_t)a * n + i] + (u - i) * (sino[(size_t)a * n + i + 1] - sino[(size_t)a * n + i]);
    }
    slice[(size_t)y * n + x] = sum;
}
"""


def tomo_cuda(n, angles, slices, repeats):
    import cupy as cp
    from cupy.cuda import runtime, texture

    del slices
    theta = cp.arange(angles) * cp.pi / angles
    half = (n - 1) / 2
    cos, sin = cp.cos(theta), cp.sin(theta)
    rays = cp.ascontiguousarray(cp.stack([cos, -sin, half - half * cos + half * sin, 0 * cos], 1).astype(cp.float32))
    sino = cp.random.random((angles, n), dtype=cp.float32)
    result = cp.zeros((n, n), cp.float32)
    array = texture.CUDAarray(texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat), n, angles)
    array.copy_from(sino)
    border = (runtime.cudaAddressModeBorder, runtime.cudaAddressModeBorder)
    fetch = texture.TextureObject(
        texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array),
        texture.TextureDescriptor(border, runtime.cudaFilterModeLinear, runtime.cudaReadModeElementType))
    kernels = cp.RawModule(code=BACKPROJECTORS)
    by_texture, by_pixel = kernels.get_function("texture_16_angles"), kernels.get_function("line_by_pixel")

    def run_texture():
        for first in range(0, angles, 16):
            by_texture(((n + 15) // 16, (n + 31) // 32), (16, 32),
                       (fetch, result, rays, cp.int32(n), cp.int32(first), cp.int32(min(first + 16, angles))))

    def run_pixel():
        by_pixel(((n + 31) // 32, (n + 7) // 8), (32, 8), (sino, result, rays, cp.int32(n), cp.int32(angles)))

    wait = cp.cuda.Device().synchronize
    report("back-projection, texture kernel of ASTRA's shape", median(run_texture, repeats, wait))
    report("back-projection, line kernel of tomocupy's shape", median(run_pixel, repeats, wait))


def host_threads():
    """As many as Moonbeam takes."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def tomo_host(n, angles, slices, repeats):
    import numpy as np
    from skimage.transform import iradon

    del slices
    sino = np.random.default_rng(1).random((n, angles), dtype=np.float32)
    theta = np.arange(angles) * 180 / angles
    threads = host_threads()
    # It runs on one thread: as many slices side by side, in processes of their own.
    with multiprocessing.Pool(threads) as pool:
        seconds = median(lambda: pool.starmap(iradon, [(sino, theta)] * threads, 1), min(repeats, 3))
    report(f"FBP, scikit-image iradon, {threads} at a time", seconds / threads)


def iterations_of(run, repeats):
    """Seconds of one more iteration of run(iterations)."""
    return (median(lambda: run(11), repeats) - median(lambda: run(1), repeats)) / 10


def iterative_astra(n, angles, repeats):
    """{row of scripts/bench/iterative.lua: (what it is called, function that times it)}: ASTRA, one
    slice on one thread."""
    import astra
    import numpy as np

    rays = astra.create_proj_geom("parallel", 1.0, n, np.arange(angles) * np.pi / angles)
    sino = np.random.default_rng(1).random((angles, n), dtype=np.float32)
    image = np.random.default_rng(2).random((n, n), dtype=np.float32)

    def model(kind):
        return astra.OpTomo(astra.create_projector(kind, rays, astra.create_vol_geom(n, n)))

    linear, strip = model("linear"), model("strip")
    return {
        "project, pixel-driven": ("FP, linear", lambda: median(lambda: linear.FP(image), repeats)),
        "project, by distances": ("FP, strip", lambda: median(lambda: strip.FP(image), repeats)),
        "backproject, pixel-driven": ("BP, linear", lambda: median(lambda: linear.BP(sino), repeats)),
        "backproject, by distances": ("BP, strip", lambda: median(lambda: strip.BP(sino), repeats)),
        "sirt, pixel-driven, an iteration": ("SIRT, linear", lambda: iterations_of(
            lambda k: linear.reconstruct("SIRT", sino, k), repeats)),
        "cgls, an iteration": ("CGLS, linear", lambda: iterations_of(
            lambda k: linear.reconstruct("CGLS", sino, k), repeats)),
    }


def iterative_skimage(n, angles, repeats):
    """The same of scikit-image."""
    import numpy as np
    from skimage.transform import iradon, iradon_sart, radon

    theta = np.arange(angles) * 180 / angles
    sino = np.random.default_rng(1).random((n, angles), dtype=np.float32)
    image = np.random.default_rng(2).random((n, n), dtype=np.float32)
    return {
        "project, pixel-driven": ("radon", lambda: median(lambda: radon(image, theta, circle=False), repeats)),
        "fbp": ("iradon", lambda: median(lambda: iradon(sino, theta), repeats)),
        "sart, pixel-driven, a pass": ("iradon_sart", lambda: median(lambda: iradon_sart(sino, theta), repeats)),
    }


def iterative_times(package, n, angles, repeats, only):
    return {work: (name, run()) for work, (name, run) in package(n, angles, repeats).items() if only in work}


def iterative_host(n, angles, slices, repeats, only=""):
    """They run on one thread: as many slices side by side, in processes of their own."""
    del slices
    threads = host_threads()
    for package, peer in (("ASTRA", iterative_astra), ("scikit-image", iterative_skimage)):
        with multiprocessing.Pool(threads) as pool:
            try:
                found = pool.starmap(iterative_times, [(peer, n, angles, min(repeats, 3), only)] * threads, 1)
            except ImportError as missing:
                print(f"{package}: {missing}\tmissing", flush=True)
                continue
        for work, (name, _) in found[0].items():
            report(f"{work} by {package} {name}", statistics.median(f[work][1] for f in found) / threads)


def convolution_cuda(z, y, x, repeats):
    import cupy as cp

    image = cp.random.random((z, y, x), dtype=cp.float32)
    psf = cp.random.random((z, y, x), dtype=cp.float32)
    otf = cp.fft.rfftn(psf)
    wait = cp.cuda.Device().synchronize

    def convolve(transfer):
        return cp.fft.irfftn(cp.fft.rfftn(image) * transfer, s=image.shape)

    def made():
        return convolve(cp.fft.rfftn(psf))

    def richardson_lucy():
        ratio = image / cp.maximum(convolve(otf), 1e-6)
        return image * cp.fft.irfftn(cp.fft.rfftn(ratio) * cp.conj(otf), s=image.shape)

    report("convolve, transfer function cached, CuPy", median(lambda: convolve(otf), repeats, wait))
    report("convolve, transfer function made, CuPy", median(made, repeats, wait))
    report("richardson_lucy, one iteration, CuPy", median(richardson_lucy, repeats, wait))


def convolution_host(z, y, x, repeats):
    import numpy as np
    from scipy import fft

    image = np.random.default_rng(1).random((z, y, x), dtype=np.float32)
    threads = host_threads()
    otf = fft.rfftn(image, workers=threads)

    def run():
        return fft.irfftn(fft.rfftn(image, workers=threads) * otf, s=image.shape, workers=threads)

    report(f"convolve, transfer function cached, scipy.fft ({threads} threads)", median(run, repeats))


def pool_cuda(live, pairs, repeats):
    """A pair of allocation and release with so many blocks of 512 bytes to 8 KiB live, holes among them; and without a pool."""
    import cupy as cp
    from cupy.cuda import runtime

    def pairs_of(allocate, release):
        for i in range(pairs):
            release(allocate((i * 5 % 16 + 1) * 512))

    def drop(pointer):
        del pointer  # the last reference: the block goes back to the pool

    pool = cp.cuda.MemoryPool()
    blocks = [pool.malloc((i * 7 % 16 + 1) * 512) for i in range(2 * live)]
    blocks = blocks[1::2]
    report(f"CuPy pool, {live} live blocks", median(lambda: pairs_of(pool.malloc, drop), repeats) / pairs)
    del blocks
    stream = cp.cuda.Stream(non_blocking=True)

    def allocate_async(size):
        return runtime.mallocAsync(size, stream.ptr)

    def release_async(pointer):
        runtime.freeAsync(pointer, stream.ptr)

    report("cudaMallocAsync + cudaFreeAsync, from Python",
           median(lambda: pairs_of(allocate_async, release_async), repeats, stream.synchronize) / pairs)
    for size in (1 << 20, 1 << 30):
        count = 100 if size < 1 << 30 else 5

        def plain(size=size, count=count):
            for _ in range(count):
                runtime.free(runtime.malloc(size))

        report(f"cudaMalloc + cudaFree, {size >> 20} MiB, from Python", median(plain, repeats) / count)


def steps(kind, size, angles, slices, repeats, only):
    """The rows of scripts/bench/steps/: functions in the files beside them, by family."""
    import importlib.util

    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps")
    for entry in sorted(os.listdir(folder)):
        if not entry.endswith("_peers.py"):
            continue
        spec = importlib.util.spec_from_file_location(entry[:-3], os.path.join(folder, entry))
        family = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(family)
        # {name of the row: (name of the peer, how many units a run works on, function)}
        for work, (name, count, run) in getattr(family, kind, lambda *_: {})(size, angles, slices).items():
            if only in work:
                try:
                    report(f"{work} by {name}", median(run, repeats) / count)
                except ImportError:
                    pass


def steps_cuda(size, angles, slices, repeats, only=""):
    steps("cuda", size, angles, slices, repeats, only)


def steps_host(size, angles, slices, repeats, only=""):
    steps("host", size, angles, slices, repeats, only)


def main():
    group, kind, *arguments = sys.argv[1:]
    work = globals().get(f"{group}_{kind}")
    try:
        if work:
            work(*[int(a) if a.isdigit() else a for a in arguments])
    except ImportError as missing:
        print(f"no peer for {group}: {missing}", file=sys.stderr)


main()
