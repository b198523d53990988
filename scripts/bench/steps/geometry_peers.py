"""Peers of geometry.lua."""


def host(size, angles, slices):
    import numpy as np
    from scipy.ndimage import map_coordinates, rotate, shift, zoom
    from algotom.prep.conversion import stitch_image
    from algotom.prep.correction import unwarp_projection

    frame = np.random.default_rng(1).uniform(0, 1, (size, size)).astype(np.float32)
    factors = [1.0003, 5e-10, 3e-9]
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    return {
        "undistort": ("algotom", 1, lambda: unwarp_projection(frame, 0.52 * size, 0.49 * size,
                                                              factors)),
        "undistort splines": ("SciPy", 1, lambda: map_coordinates(frame, [y, x], order=3)),
        "rotate": ("SciPy", 1, lambda: rotate(frame, 0.57, reshape=False, order=1,
                                              mode="nearest")),
        "resample linear": ("SciPy", 1, lambda: zoom(frame, 0.99, order=1, grid_mode=True,
                                                     mode="nearest")),
        "horizontal_shift": ("SciPy", 1, lambda: shift(frame, (0, 2.3), order=1, mode="nearest")),
        "bin 2 x 2": ("NumPy", 1, lambda: frame.reshape(size // 2, 2, size // 2, 2).mean((1, 3))),
        "stitch_turn": ("algotom", 1, lambda: stitch_image(frame, np.fliplr(frame),
                                                           size // 8 // 2 * 2, 1, norm=False)),
    }
