"""Peers of stripe_filters.lua."""


def host(size, angles, slices):
    import numpy as np

    data = np.random.default_rng(1).uniform(0.1, 1, (slices, angles, size)).astype(np.float32)

    def titarenko(beta=0.022):
        gamma = beta * ((1 - beta) / (1 + beta)) ** np.abs(np.fft.fftfreq(size) * size)
        gamma[0] -= 1
        for sino in data:
            v = sino.mean(axis=0)
            v = v - v[0]
            sino += np.fft.irfft(np.fft.rfft(v) * np.fft.rfft(gamma)).astype(np.float32)

    return {"stripes, Titarenko": ("NumPy", slices, titarenko)}
