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

    def munch(wavelet, sigma, level, mode, rows=0, columns=0):
        import pywt

        for i, sino in enumerate(data):
            padded = np.pad(sino, ((rows, rows), (0, 0)))
            padded = np.pad(padded, ((0, 0), (columns, columns)), mode="edge")
            bands = pywt.wavedec2(padded, wavelet, level=level, mode=mode)
            for k in range(1, level + 1):
                h, v, d = bands[k]
                f = np.fft.fftfreq(v.shape[0]) * v.shape[0]
                damp = -np.expm1(-(f**2) / (2 * sigma**2)).astype(np.float32)
                v = np.fft.ifft(np.fft.fft(v, axis=0) * damp[:, None], axis=0).real
                bands[k] = h, v.astype(np.float32), d
            result = pywt.waverec2(bands, wavelet, mode=mode)
            data[i] = result[rows : rows + angles, columns : columns + size]

    def algotom():
        from algotom.prep.removal import remove_stripe_based_wavelet_fft

        for i, sino in enumerate(data):
            data[i] = remove_stripe_based_wavelet_fft(sino)

    def raven():
        from algotom.prep.removal import remove_stripe_based_fft

        for i, sino in enumerate(data):
            data[i] = remove_stripe_based_fft(sino, n=4, v=2)

    def mean():
        from scipy.ndimage import gaussian_filter1d

        for sino in data:
            v = sino.mean(axis=0)
            sino -= v - gaussian_filter1d(v, 30, mode="nearest")

    auto = int(np.ceil(np.log2(max(size, angles))))
    return {
        "stripes, Titarenko": ("NumPy", slices, titarenko),
        "stripes, Raven": ("algotom", slices, raven),
        "stripes, filtered mean": ("SciPy", slices, mean),
        "stripes, wavelet as httomo": (
            "PyWavelets", slices, lambda: munch("db5", 2, auto, "symmetric", angles // 16)),
        "stripes, wavelet as tomocupy": (
            "PyWavelets", slices, lambda: munch("sym16", 1, 7, "symmetric", angles // 16)),
        "stripes, wavelet as nabu": (
            "PyWavelets", slices, lambda: munch("db15", 1, 10, "periodization", 0, size // 2)),
        "stripes, wavelet as algotom": ("algotom", slices, algotom),
    }
