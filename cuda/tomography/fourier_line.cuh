/*
** Lines of images between pixels and a grid: what fourier_image.cuh, which makes pixels of a grid,
** shares with fourier_embed.cuh, which makes a grid of pixels.
*/
#ifndef MB_CUDA_FOURIER_LINE_CUH
#define MB_CUDA_FOURIER_LINE_CUH

#include "tomography/fourier_rows.cuh"

#define FOURIER_ALONG_THREADS                                                                      \
    1024 /* on a multiprocessor, at least: limits registers; in at most 16 blocks, which all hold */

struct fourier_image_job {
    const float2 *cells;
    float2 *lines; /* [pair][y1 - y0][G] */
    const float *deapodise;
    mb_parallel_geometry g;
    int grid, kept; /* kept = G / T */
    float reach;    /* of the samples in the grid, cells */
    float scale, outside;
    bool lone;
    fourier_rows to;
};

template <int T>
struct fourier_columns {
    static constexpr int W = MB_FOURIER_COLUMNS(T);
};

/* The pixels xa <= x < xb of row y of the slice that lie in the circular mask. */
__device__ static inline void fourier_chord(const mb_parallel_geometry &g, int64_t y, int *xa,
                                            int *xb)
{
    const double dy = (double)y - 0.5 * (double)(g.ny - 1), middle = 0.5 * (double)(g.nx - 1);
    const double rest = g.radius2 - dy * dy;
    *xa = 0;
    *xb = (int)g.nx;
    if (g.radius2 < 0)
        return;
    const double half = sqrt(fmax(rest, 0.0));
    *xa = (int)fmax(floor(middle - half), 0.0);
    *xb = (int)fmin(ceil(middle + half), (double)(g.nx - 1)) + 1;
    while (*xa < *xb && !mb_parallel_inside(&g, y, *xa))
        ++*xa;
    while (*xb > *xa && !mb_parallel_inside(&g, y, *xb - 1))
        --*xb;
}

/* What the pixels of a line are multiplied by, and which of them are made. */
struct fourier_line {
    float factor;
    int ys, xa, xb;

    __device__ fourier_line(const fourier_image_job &job, int i)
    {
        ys = i - (int)(job.g.y1 - job.g.y0) / 2;
        factor = job.scale * job.deapodise[ys < 0 ? -ys : ys];
        fourier_chord(job.g, job.g.y0 + i, &xa, &xb);
        xa -= (int)job.g.x0;
        xb -= (int)job.g.x0;
    }

    /* The same with its chord, as it was found before. */
    __device__ fourier_line(const fourier_image_job &job, int i, int xa_, int xb_)
        : ys(i - (int)(job.g.y1 - job.g.y0) / 2), xa(xa_), xb(xb_)
    {
        factor = job.scale * job.deapodise[ys < 0 ? -ys : ys];
    }

    /* Pixel x, xs from the middle. */
    __device__ float weight(int xs, float deapodise) const
    {
        const float w = factor * deapodise;
        return (xs + ys) & 1 ? -w : w;
    }

    __device__ bool has(int x) const { return x >= xa && x < xb; }
};

#endif
