"""Peers of stripes_vo.lua."""


def host(size, angles, slices):
    import numpy as np
    import algotom.prep.removal as removal

    data = np.random.default_rng(1).uniform(0.9, 1.1, (angles, size)).astype(np.float32)
    for column in (200, 201, 202, 203, 400):
        data[:, column % size] = 1

    def row(work):
        return ("algotom", 1, work)

    rows = {
        "stripes_large": row(lambda: removal.remove_large_stripe(data, 3, 51)),
        "stripes_dead": row(lambda: removal.remove_dead_stripe(data, 3, 51, residual=False)),
        "stripes_all": row(lambda: removal.remove_all_stripe(data, 3, 61, 21)),
    }
    for window in (11, 21, 61):
        rows["stripes_sorting, window %d" % window] = row(
            lambda window=window: removal.remove_stripe_based_sorting(data, window)
        )
    return rows
