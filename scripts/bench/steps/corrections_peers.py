"""Peers of corrections.lua."""


def host(size, angles, slices):
    import numpy as np

    data = np.random.default_rng(1).uniform(0.1, 1, (angles, slices, size)).astype(np.float32)
    volume = np.random.default_rng(2).uniform(0.1, 1, (slices, size, size)).astype(np.float32)
    coefficients = np.array([0, 1, 0.05, 0.001], np.float32)

    def mask():
        y, x = np.ogrid[:size, :size]
        middle = (size - 1) / 2
        volume[:, (y - middle) ** 2 + (x - middle) ** 2 > (size / 2) ** 2] = 0

    return {
        "minus_log": ("NumPy", slices, lambda: -np.log(data)),
        "polynomial": (
            "NumPy",
            slices,
            lambda: np.polynomial.polynomial.polyval(data, coefficients),
        ),
        "circular_mask": ("NumPy", slices, mask),
    }
