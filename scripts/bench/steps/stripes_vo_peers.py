"""Peers of stripes_vo.lua."""


def host(size, angles, slices):
    import numpy as np
    import algotom.prep.removal as removal

    data = np.random.default_rng(1).uniform(0.9, 1.1, (angles, size)).astype(np.float32)

    def sorting(window):
        return ("algotom", 1, lambda: removal.remove_stripe_based_sorting(data, window))

    return {"stripes_sorting, window %d" % window: sorting(window) for window in (11, 21, 61)}
