"""Peers of axis.lua: algotom, by one process."""


def host(size, angles, slices):
    import warnings

    import numpy as np
    from algotom.prep import calculation

    warnings.simplefilter("ignore")
    sino = np.random.default_rng(1).uniform(0, 1, (angles, size)).astype(np.float32)
    mirrored, filling = np.fliplr(sino), np.flipud(sino)
    mask = calculation.make_inverse_double_wedge_mask(2 * angles, size, 0.25 * size)

    def trial():
        calculation.calculate_center_metric((size - 1) / 2 + 3, sino, mirrored, filling, mask)

    return {
        "double_wedge": ("algotom", 1, trial),
        "find_center_vo": ("algotom", 1, lambda: calculation.find_center_vo(sino, ncore=1)),
        "overlap_metric": (
            "algotom",
            1,
            lambda: calculation.search_overlap(sino, sino, 20, 1, denoise=False, ncore=1),
        ),
    }
