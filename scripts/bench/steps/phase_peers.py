"""Peers of phase.lua: the filter of Paganin as nabu defines it, in SciPy, single precision."""


def paganin(fft, xp, data, padded):
    rows, columns = data.shape[1:]
    top, left = (padded - rows) // 2, (padded - columns) // 2
    around = ((top, padded - rows - top), (left, padded - columns - left))
    fy, fx = xp.fft.fftfreq(padded), xp.fft.rfftfreq(padded)
    response = (1 / (1 + 200 * 0.5 * xp.pi * xp.add.outer(fy**2, fx**2))).astype(xp.float32)

    def run():
        for frame in data:
            spectrum = fft.rfft2(xp.pad(frame, around, mode="edge"))
            spectrum *= response
            fft.irfft2(spectrum)[top : top + rows, left : left + columns].copy()

    return run


def extent(size):
    padded = 2
    while padded < 2 * size:
        padded *= 2
    return padded


def host(size, angles, slices):
    import numpy as np
    import scipy.fft

    count = min(slices, 2)
    data = np.random.default_rng(1).uniform(0.5, 1, (count, size, size)).astype(np.float32)
    return {"Paganin": ("SciPy", count, paganin(scipy.fft, np, data, extent(size)))}


def cuda(size, angles, slices):
    import cupy as cp

    data = cp.random.uniform(0.5, 1, (slices, size, size), dtype=cp.float32)
    run = paganin(cp.fft, cp, data, extent(size))

    def whole():
        run()
        cp.cuda.Device().synchronize()

    return {"Paganin": ("CuPy", slices, whole)}
