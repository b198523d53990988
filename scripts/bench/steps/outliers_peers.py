"""Peers of outliers.lua: SciPy's median filter, with the threshold as NumPy does it."""

SIZES = ((1, 3, 3), (3, 3, 3), (1, 5, 5), (5, 5, 5), (7, 7, 7))
ROWS = 64  # of the frames that a peer filters: SciPy takes the same time for each value


def host(size, angles, slices):
    import numpy as np
    from scipy.ndimage import median_filter

    rows = min(angles, ROWS)
    data = np.random.default_rng(1).uniform(0.97, 1.03, (slices, rows, size)).astype(np.float32)

    def median(extents):
        return lambda: median_filter(data, extents)

    def dezinger(extents):
        def run():
            middle = median_filter(data, extents)
            np.where(np.abs(data - middle) > 0.3, middle, data)

        return run

    frames = slices * rows / angles
    peers = {}
    for extents in SIZES:
        words = "x".join(str(extent) for extent in extents)
        peers["median " + words] = ("SciPy", frames, median(extents))
        peers["dezinger " + words] = ("SciPy", frames, dezinger(extents))
    return peers
