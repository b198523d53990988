/*
** normal_kernel: what the host and the CUDA kernels share. Array: result (out), the real spectrum
** [px / 2 + 1][py] of the kernel on a grid of py x px pixels, x first because normal_operator works
** along columns; at (-kx, -ky) it is that of (kx, ky).
**
** The model: a row of the projection at angle t has N samples around a circle (the detector, padded
** by zeros), and a pixel at distance u from sample 0 adds D(u - j) to sample j, where D is the sum
** over the frequencies |k| < N / 2 of exp(2 pi i k u / N) / N, the trigonometric interpolation of
** fourier_reconstruct. The sum over j of D(u - j) D(v - j) is D(u - v), so A'A is a convolution
** with the sum over angles of w D(dx cos t - dy sin t). Center and shifts drop out.
**
** Displacements of half the grid are left at 0: they would make the spectrum complex, and slices of
** at most half the grid do not have them. So any slice of at most py / 2 x px / 2 pixels fits.
*/
#ifndef MB_OPS_OP_NORMAL_KERNEL_H
#define MB_OPS_OP_NORMAL_KERNEL_H

#include "core/both.h"
#include "ops/op_args.h"

typedef struct mb_normal_kernel_params {
    mb_vector angles; /* rad; absent in estimates */
    int64_t cols;
    mb_vector size;    /* {ny, nx}, {n} or absent = cols x cols */
    mb_vector weights; /* one per angle, or absent = 1 */
    int64_t period;    /* N; 0 = 2 cols */
    double scale;
    mb_vector padded; /* {py, px}, {p} or absent = mb_normal_padded */
} mb_normal_kernel_params;

enum { MB_NORMAL_KERNEL_RESULT };
enum {
    MB_NORMAL_KERNEL_ANGLES, /* mb_normal_angle[angles] */
    MB_NORMAL_KERNEL_ROOTS,  /* complex double: host px + py; CUDA: 0 bytes */
    MB_NORMAL_KERNEL_VALUES, /* double; CUDA: [py / 2][px]; host: 0 bytes */
    MB_NORMAL_KERNEL_ROWS,   /* complex double [px / 2 + 1][py / 2]: rows transformed along x */
    MB_NORMAL_KERNEL_LINES   /* complex double, host: two lines of each thread */
};

#define MB_NORMAL_PI 3.14159265358979323846

typedef struct mb_normal_angle {
    double cosine, sine, weight;
} mb_normal_angle;

/* The extents of a grid for n pixels: the next 2^k or 3 2^k that is twice as long, which transforms
** of Moonbeam take on a GPU. */
static inline int64_t mb_normal_padded(int64_t n)
{
    int64_t size = 2;
    while (size < 2 * n)
        size = size % 3 == 0 ? size / 3 * 4 : size >= 4 ? size / 2 * 3 : 4;
    return size;
}

/* {y, x} of a vector of one or two numbers. */
static inline int64_t mb_normal_extent(const mb_vector *vector, int axis)
{
    return (int64_t)vector->values[vector->count > 1 ? axis : 0];
}

/* The grid of the options: {py, px}. */
static inline void mb_normal_grid(const mb_vector *size, const mb_vector *padded, int64_t cols,
                                  int64_t grid[2])
{
    for (int i = 0; i < 2; i++)
        grid[i] = padded->count ? mb_normal_extent(padded, i)
                                : mb_normal_padded(size->count ? mb_normal_extent(size, i) : cols);
}

static inline int64_t mb_normal_period(const mb_normal_kernel_params *p)
{
    return p->period ? p->period : 2 * p->cols;
}

static inline mb_normal_angle mb_normal_angle_of(const mb_normal_kernel_params *p, int64_t a)
{
    const mb_normal_angle angle = {cos(p->angles.values[a]), sin(p->angles.values[a]),
                                   p->weights.count ? p->weights.values[a] : 1.0};
    return angle;
}

/* D(u), also where its denominator is small. `period` is even. */
MB_BOTH static inline double mb_normal_sinc(double u, double period)
{
    const double rest = u - period * rint(u / period), x = MB_NORMAL_PI * rest / period;
    return fabs(rest) < 1e-7 ? (period - 1) / period : sin((period - 1) * x) / (period * sin(x));
}

#endif
