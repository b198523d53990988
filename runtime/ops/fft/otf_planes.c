/*
** The product with a transfer function in planes, on the host. The transform along z of plane -p
** and plane p, with w = exp(-2 pi i p k / n):
**
**   plane[p] w + plane[-p] conj(w) = even[p] Re w + i odd[p] Im w
**
** with their sum `even` and their difference `odd`. Frequencies k and -k differ in the sign of the
** second term, so both come from the same two sums over p. A block of columns is taken at a time,
** with its sums and differences in the first-level cache.
*/
#include "ops/fft/otf_planes.h"
#include "core/status.h"
#include "core/multiversion.h"
#include "ops/fft/op_otf.h"
#include <math.h>
#include <string.h>

#define REACH (MB_OTF_MOST_PLANES / 2)
#define FLOATS 8192 /* of a block, all planes together */
#define AT_ONCE 32  /* floats, whose sums are in registers */

/* A block of the planes: that of z = 0, then even[p] and odd[p] in turn, `row` floats each, which
** are real and imaginary parts in turn. */
typedef struct block {
    int row;
    float values[FLOATS];
} block;

/* Columns of a block: many, so that runs of memory are long. */
static int64_t block_columns(int planes)
{
    return FLOATS / planes / AT_ONCE * AT_ONCE / 2;
}

/* n complex numbers in each plane, which are `columns` apart. */
static void load(block *b, const float *otf, int reach, int64_t columns, int64_t n)
{
    b->row = (int)(2 * n + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    memset(b->values, 0, (size_t)(2 * reach + 1) * (size_t)b->row * sizeof *b->values);
    memcpy(b->values, otf + 2 * reach * columns, (size_t)n * 2 * sizeof *otf);
    for (int p = 1; p <= reach; p++) {
        const float *above = otf + 2 * (reach + p) * columns,
                    *below = otf + 2 * (reach - p) * columns;
        float *even = b->values + (2 * p - 1) * b->row, *odd = even + b->row;
        for (int64_t i = 0; i < 2 * n; i++) {
            even[i] = above[i] + below[i];
            odd[i] = above[i] - below[i];
        }
    }
}

/* The two sums over planes of a frequency, whose roots are cosines and sines. */
MB_MULTIVERSION
static void add_up(const block *b, int reach, const float *cosines, const float *sines, float *even,
                   float *odd)
{
    for (int i = 0; i < b->row; i += AT_ONCE) {
        const float *at = b->values + i;
        float e[AT_ONCE], o[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++)
            e[j] = at[j], o[j] = 0;
        for (int p = 0; p < reach; p++) {
            const float c = cosines[p], s = sines[p], *next = at + (2 * p + 1) * b->row;
            for (int j = 0; j < AT_ONCE; j++) {
                e[j] += c * next[j];
                o[j] += s * next[b->row + j];
            }
        }
        memcpy(even + i, e, sizeof e);
        memcpy(odd + i, o, sizeof o);
    }
}

/* n complex numbers times even + i sign odd, or its conjugate. */
MB_MULTIVERSION
static void multiply(float *restrict a, const float *restrict even, const float *restrict odd,
                     int64_t n, float sign, float scale, float turn)
{
    for (int64_t i = 0; i < n; i++) {
        const float re = a[2 * i], im = a[2 * i + 1];
        const float x = scale * (even[2 * i] - sign * odd[2 * i + 1]);
        const float y = turn * (even[2 * i + 1] + sign * odd[2 * i]);
        a[2 * i] = re * x - im * y;
        a[2 * i + 1] = re * y + im * x;
    }
}

/* Roots of the next frequency, for all planes: exp(-2 pi i p k / nz). */
typedef struct turning {
    double at[REACH][2], step[REACH][2];
    float cosines[REACH], sines[REACH];
} turning;

static void turning_begin(turning *t, int reach, int64_t nz)
{
    for (int p = 0; p < reach; p++) {
        const double angle = -2 * acos(-1.0) * (p + 1) / (double)nz;
        t->step[p][0] = cos(angle), t->step[p][1] = sin(angle);
        t->at[p][0] = 1, t->at[p][1] = 0;
        t->cosines[p] = 1, t->sines[p] = 0;
    }
}

static void turning_next(turning *t, int reach)
{
    for (int p = 0; p < reach; p++) {
        double *at = t->at[p], *step = t->step[p];
        const double x = at[0] * step[0] - at[1] * step[1];
        at[1] = at[0] * step[1] + at[1] * step[0];
        at[0] = x;
        t->cosines[p] = (float)at[0], t->sines[p] = (float)at[1];
    }
}

/* All frequencies of a block of n columns. */
static void multiply_block(float *a, const float *otf, int reach, int64_t nz, int64_t columns,
                           int64_t n, float scale, float turn)
{
    block b;
    turning t;
    float even[FLOATS], odd[FLOATS];
    load(&b, otf, reach, columns, n);
    turning_begin(&t, reach, nz);
    for (int64_t k = 0; 2 * k <= nz; k++) {
        add_up(&b, reach, t.cosines, t.sines, even, odd);
        multiply(a + 2 * k * columns, even, odd, n, 1, scale, turn);
        if (k > 0 && 2 * k < nz)
            multiply(a + 2 * (nz - k) * columns, even, odd, n, -1, scale, turn);
        turning_next(&t, reach);
    }
}

void mb_otf_planes_multiply_host(mb_device *device, float *a, const float *otf, int planes,
                                 int64_t nz, int64_t columns, double scale, bool conj)
{
    const int64_t most = block_columns(planes), blocks = (columns + most - 1) / most;
    int threads = nz * columns < 32768 ? 1 : device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t first = i * most, left = columns - first;
        if (!mb_cancelled())
            multiply_block(a + 2 * first, otf + 2 * first, planes / 2, nz, columns,
                           left < most ? left : most, (float)scale, (float)(conj ? -scale : scale));
    }
}
