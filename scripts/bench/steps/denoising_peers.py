"""Peers of denoising.lua."""


def host(size, angles, slices):
    import numpy as np
    from skimage.restoration import denoise_bilateral, denoise_tv_chambolle

    del angles
    iterations = 10
    data = np.random.default_rng(1).uniform(0, 1, (slices, size, size)).astype(np.float32)

    def flat():
        for image in data:
            denoise_tv_chambolle(image, weight=0.1, eps=0, max_num_iter=iterations)

    def volume():
        denoise_tv_chambolle(data, weight=0.1, eps=0, max_num_iter=iterations)

    def bilateral():
        for image in data:
            denoise_bilateral(image, sigma_color=0.3)

    return {
        "total_variation, 2-D": ("scikit-image", slices * iterations, flat),
        "total_variation, 3-D": ("scikit-image", slices * iterations, volume),
        "bilateral_filter, 2-D": ("scikit-image", slices, bilateral),
    }
