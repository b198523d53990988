"""Peers of axis.lua."""


def host(size, angles, slices):
    import numpy as np
    from algotom.prep import calculation

    sino = np.random.default_rng(1).uniform(0, 1, (angles, size)).astype(np.float32)
    mirrored, filling = np.fliplr(sino), np.flipud(sino)
    mask = calculation.make_inverse_double_wedge_mask(2 * angles, size, 0.25 * size)

    def trial():
        calculation.calculate_center_metric((size - 1) / 2 + 3, sino, mirrored, filling, mask)

    return {"double_wedge": ("algotom", 1, trial)}
