"""Deconvolves FOLDER/image.npy with FOLDER/psf.npy by packages that are installed.

Prints the name of each result; FOLDER/NAME.npy has it.
"""

import sys

import numpy as np

folder = sys.argv[1]
image = np.load(folder + "/image.npy")
psf = np.load(folder + "/psf.npy")


def store(name, result):
    """Keeps a result of the image's shape."""
    np.save(f"{folder}/{name}.npy", np.ascontiguousarray(result, np.float32))
    print(name)


try:
    from skimage.restoration import richardson_lucy

    # The default of 50 iterations. Values are clipped at 1 unless clip=False, so the image is scaled.
    top = max(image.max(), 1e-9)
    store("skimage", richardson_lucy(image / top, psf) * top)
    store("skimage-50", richardson_lucy(image / top, psf, num_iter=50, clip=False) * top)
except ImportError:
    pass
try:
    import RedLionfishDeconv

    for name, count in (("RedLionfish", 10), ("RedLionfish-50", 50)):
        store(name, RedLionfishDeconv.doRLDeconvolutionFromNpArrays(image, psf, niter=count,
                                                                   method="cpu"))
except ImportError:
    pass
