/*
** otf: what the host and the CUDA kernel share. Arrays: psf (in), result (out c64, last axis n/2 +
** 1), both dense. One FFT (R2C in place, in the memory of the result), one slot (its work area). By
** planes (mb_otf_by_planes) it is that of one plane, run for each plane that the PSF reaches, and a
** transform along the first axis follows. Steps: the samples of psf, times scale, are added to the
** zeroed padded rows of the result at index (i - whole(center)) modulo size; transform; where the
** center has a fraction f, multiply by exp(2 pi i k f / n) per axis (mb_otf_phase).
**
** The result may stop before the first axis (mb_otf_few): then it has the planes that the PSF
** reaches, as far below its center as above, each transformed by itself. What multiplies by it
** makes the transform along the first axis on the way, or convolves along that axis, with
** p = -reach ... reach:
**
**   H[k] = sum over p of plane[p + reach] exp(-2 pi i p k / n)
*/
#ifndef MB_OPS_OP_OTF_H
#define MB_OPS_OP_OTF_H

#include "ops/fft/fused_fft.h"
#include "ops/array/padded_grid.h"
#include <math.h>

typedef struct mb_otf_params {
    mb_vector size, center;
    double scale;
    int form;      /* MB_OTF_WHOLE ... */
    int64_t reach; /* planes on either side at least */
} mb_otf_params;

enum { MB_OTF_WHOLE, MB_OTF_PLANES, MB_OTF_AUTO };

/* The most planes of a transfer function in planes. With more of them the sums over planes take
** longer than reading a whole one. Up to there planes are kept for every grid that has more: so a
** larger grid never takes less memory, which plans of tiles rely on. */
#define MB_OTF_MOST_PLANES 31
static inline bool mb_otf_few_of(int64_t planes, int64_t nz)
{
    return planes <= MB_OTF_MOST_PLANES && planes < nz;
}

enum { MB_OTF_PSF, MB_OTF_RESULT };
enum { MB_OTF_FFT };
enum { MB_OTF_WORK };

/* Whether few planes of a grid of n samples have anything of a PSF of k, and a pass of our own can
** make all of them from those: then the others need never be zeroed and transformed. */
static inline bool mb_otf_by_planes(const mb_device_facts *facts, const int64_t k[3],
                                    const int64_t n[3])
{
    return 4 * k[0] <= n[0] && mb_fused_fft_depth(facts, n[0]);
}

/* The center per axis: whole part (nearest index) and the rest. Three axes. */
static inline void mb_otf_center(const mb_otf_params *params, const mb_shape *psf, int64_t whole[3],
                                 double rest[3])
{
    int64_t dims[3];
    mb_grid_dims(psf, dims);
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - psf->rank);
        bool given = params->center.count && own >= 0;
        whole[i] = given ? (int64_t)floor(params->center.values[own] + 0.5) : (dims[i] - 1) / 2;
        rest[i] = given ? params->center.values[own] - (double)whole[i] : 0;
        if (fabs(rest[i]) < 1e-9)
            rest[i] = 0;
    }
}

/* How many planes the result has along its first axis if it is in planes: as many below the center
** of the PSF as above. */
static inline int64_t mb_otf_reached(const mb_otf_params *params, const mb_shape *psf)
{
    int64_t whole[3], k[3];
    double rest[3];
    mb_otf_center(params, psf, whole, rest);
    mb_grid_dims(psf, k);
    int64_t reach = whole[0] > k[0] - 1 - whole[0] ? whole[0] : k[0] - 1 - whole[0];
    return 2 * (reach > params->reach ? reach : params->reach) + 1;
}

/* Whether the center is on a plane of the PSF: a shift by a fraction reaches all planes. */
static inline bool mb_otf_on_plane(const mb_otf_params *params, const mb_shape *psf)
{
    int64_t whole[3];
    double rest[3];
    mb_otf_center(params, psf, whole, rest);
    return rest[0] == 0;
}

/* The planes of the result, or 0 where it is whole. */
static inline int64_t mb_otf_few(const mb_otf_params *params, const mb_shape *psf)
{
    const int64_t planes = mb_otf_reached(params, psf);
    const bool few = psf->rank == 3 && mb_otf_on_plane(params, psf) &&
                     mb_otf_few_of(planes, (int64_t)params->size.values[0]);
    return params->form == MB_OTF_PLANES || (params->form == MB_OTF_AUTO && few) ? planes : 0;
}

/* The grid of a result in planes, and the center within it: plane 0 is the first that the PSF
** reaches. */
static inline void mb_otf_stop_at_planes(int64_t planes, int64_t n[3], int64_t center[3])
{
    n[0] = planes;
    center[0] -= (planes - 1) / 2;
}

/* Signed frequency of index k among n: 0, 1, ... -2, -1. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int64_t
    mb_otf_frequency(int64_t k, int64_t n)
{
    return k > n / 2 ? k - n : k;
}

#endif
