"""Peers of corrections.lua."""


def host(size, angles, slices):
    import numpy as np

    data = np.random.default_rng(1).uniform(0.1, 1, (angles, slices, size)).astype(np.float32)
    return {"minus_log": ("NumPy", slices, lambda: -np.log(data))}
