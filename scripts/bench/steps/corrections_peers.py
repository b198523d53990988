"""Peers of corrections.lua."""


def host(size, angles, slices):
    import numpy as np

    rng = np.random.default_rng(3)
    raw = rng.integers(100, 60000, (angles, slices, size)).astype(np.uint16)
    flats = rng.integers(50000, 60000, (20, slices, size)).astype(np.uint16)

    def interpolated():
        first, last = flats[:10].mean(0, dtype=np.float32), flats[10:].mean(0, dtype=np.float32)
        result = np.empty(raw.shape, np.float32)
        for i in range(angles):
            part = np.float32((i + 0.5) / angles)
            result[i] = raw[i] / ((1 - part) * first + part * last) * np.float32(i + 0.5)
        return result

    data = np.random.default_rng(1).uniform(0.1, 1, (angles, slices, size)).astype(np.float32)
    volume = np.random.default_rng(2).uniform(0.1, 1, (slices, size, size)).astype(np.float32)
    coefficients = np.array([0, 1, 0.05, 0.001], np.float32)

    def background():
        left, right = data[:, :, :10].mean(2), data[:, :, -10:].mean(2)
        x = ((np.arange(size) - 4.5) / (size - 10)).astype(np.float32)
        return data / (left[:, :, None] + (right - left)[:, :, None] * x)

    frames = rng.integers(100, 60000, (slices, size, size)).astype(np.uint16)
    basis = rng.uniform(0, 1, (8, size, size)).astype(np.float32)
    strips = np.zeros((size, size), bool)
    strips[:, : size // 8] = strips[:, -(size // 8) :] = True
    matrix = np.stack([image[strips] for image in basis], axis=1)

    def eigen():
        result = np.empty(frames.shape, np.float32)
        for i, frame in enumerate(frames):
            rest = np.float32(10) - np.log(frame.astype(np.float32))
            fitted = np.linalg.lstsq(matrix, rest[strips], rcond=None)[0]
            result[i] = np.exp(np.einsum("kyx,k->yx", basis, fitted) - rest)
        return result

    def gram():
        flat = basis.reshape(8, -1).astype(float)
        return flat @ flat.T

    def mask():
        y, x = np.ogrid[:size, :size]
        middle = (size - 1) / 2
        volume[:, (y - middle) ** 2 + (x - middle) ** 2 > (size / 2) ** 2] = 0

    return {
        "flat_field": ("NumPy", slices, lambda: raw / flats.mean(0, dtype=np.float32)),
        "flat_field between two groups with currents": ("NumPy", slices, interpolated),
        "minus_log": ("NumPy", slices, lambda: -np.log(data)),
        "polynomial": (
            "NumPy",
            slices,
            lambda: np.polynomial.polynomial.polyval(data, coefficients),
        ),
        "normalize_background": ("NumPy", slices, background),
        "mean_projection of transmissions": ("NumPy", slices, lambda: np.exp(-data).mean(0)),
        "eigen_flat_field of 8 images": ("nabu's way", slices, eigen),
        "gram_matrix": ("NumPy", 8, gram),
        "circular_mask": ("NumPy", slices, mask),
    }
