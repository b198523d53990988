/*
** ramp_filter: what the host and the CUDA kernel share. Arrays: sino (in), result (out; may be the
** same array).
**
** P = mb_ramp_filter_padded, left = (P - width) / 2. A padded row holds P reals in a pitch of P + 2
** (in-place R2C and C2R). Host: FFT batch 1, one row per thread at a pitch of
** mb_ramp_filter_host_pitch floats. CUDA, where mb_ramp_filter_fused: one kernel, no FFT, nothing
** but the response. Otherwise FFT batch = mb_ramp_filter_batch rows, dense rows of P + 2 floats. The
** batch depends on P alone, so that a row's result does not depend on how many there are; the last
** one may transform rows that hold rubbish, nobody reads them. The response table has P
** / 2 + 1 floats, real, and includes scale and 1/P (transforms are not normalized): entry k =
** mb_ramp_filter_response(filter, cutoff, scale, P, k); half of that where fused
** (cuda/tomography/ramp_row.cuh). slice_shifts: bin k of a row of slice z is multiplied by the
** phase mb_ramp_filter_phase(turn, k) as well. The host makes a table of response times phase a
** thread, for the slice it is at; CUDA computes phases where it multiplies, without scratch.
*/
#ifndef MB_OPS_OP_RAMP_FILTER_H
#define MB_OPS_OP_RAMP_FILTER_H

#include "core/both.h"
#include "ops/fft/fused_fft.h"
#include "ops/op.h"
#include <math.h>

typedef enum mb_ramp_filter_kind {
    MB_RAMP_RAM_LAK,
    MB_RAMP_SHEPP_LOGAN,
    MB_RAMP_COSINE,
    MB_RAMP_HAMMING,
    MB_RAMP_HANN,
    MB_RAMP_TUKEY, /* flat to half the cutoff, then a cosine to 0 */
    MB_RAMP_LANCZOS,
    MB_RAMP_PARZEN,
    MB_RAMP_NONE /* all ones: no ramp either */
} mb_ramp_filter_kind;

typedef enum mb_ramp_filter_padding { MB_RAMP_PAD_ZERO, MB_RAMP_PAD_EDGE } mb_ramp_filter_padding;

typedef struct mb_ramp_filter_params {
    int filter;
    double cutoff; /* fraction of the Nyquist frequency */
    int padding;
    int64_t pad_width; /* 0 = auto */
    double scale;
    mb_vector slice_shifts; /* px, one per slice, or absent */
    mb_vector weights;      /* one per angle, or absent = 1 */
} mb_ramp_filter_params;

enum { MB_RAMP_FILTER_SINO, MB_RAMP_FILTER_RESULT };
enum { MB_RAMP_FILTER_FORWARD, MB_RAMP_FILTER_INVERSE }; /* FFTs, unless fused */
enum {
    MB_RAMP_FILTER_RESPONSE, /* float[P / 2 + 1] */
    MB_RAMP_FILTER_ROWS,     /* the padded rows; fused: 0 bytes */
    MB_RAMP_FILTER_TURNED,   /* host, with slice_shifts: a pitch of floats a thread; else 0 bytes */
    MB_RAMP_FILTER_WEIGHTS,  /* CUDA, with weights: double[angles]; else 0 bytes */
    MB_RAMP_FILTER_FORWARD_WORK, /* FFT work areas; the two share bytes where they are not empty */
    MB_RAMP_FILTER_INVERSE_WORK
};

/* They stay in the second-level cache from step to step. */
#define MB_RAMP_FILTER_CUDA_BYTES (16u << 20)
#define MB_RAMP_FILTER_CUDA_ROWS 4096

/* Padded length: pad_width, or the power of two >= 2 * width (at least 4). */
static inline int64_t mb_ramp_filter_padded(const mb_ramp_filter_params *params, int64_t width)
{
    int64_t padded = 4;
    if (params->pad_width > 0)
        return params->pad_width;
    while (padded < 2 * width)
        padded *= 2;
    return padded;
}

/* Angles of a sinogram of any rank: rows of a slice. Filtered row i is of angle i % angles, and is
** multiplied by that angle's weight, rounded to float. */
static inline int64_t mb_ramp_filter_angles(const mb_shape *sino)
{
    return sino->rank > 1 ? sino->dims[sino->rank - 2] : 1;
}

/* Slices of a sinogram of any rank; all rows of one of less than three axes are one slice. */
static inline int64_t mb_ramp_filter_slices(const mb_shape *sino)
{
    return sino->rank == 3 ? sino->dims[0] : 1;
}

/*
** The phase that moves a row by `shift` columns, |shift| < P / 2: exp(2 pi i k shift / P). Per bin
** it turns by shift / P of a whole turn, kept as a fraction of 2^64: a multiple of it wraps by
** itself and is exact to 2^-33 turns. The phase itself is in half turns, -1 to 1. At frequency P /
** 2 only the cosine is taken: a row of reals has no more.
*/
static inline uint64_t mb_ramp_filter_turn(double shift, int64_t padded)
{
    return (uint64_t)(int64_t)ldexp(shift / (double)padded, 64);
}

MB_BOTH static inline float mb_ramp_filter_phase(uint64_t turn, int64_t k)
{
    return (float)(int32_t)(uint32_t)((turn * (uint64_t)k) >> 32) * 0x1p-31f;
}

/* Floats between the rows of two host threads: whole cache lines. */
static inline int64_t mb_ramp_filter_host_pitch(int64_t padded)
{
    return (padded + 2 + 15) / 16 * 16;
}

/* CUDA: padded rows per FFT batch. */
static inline int64_t mb_ramp_filter_batch(int64_t padded)
{
    const int64_t most = (int64_t)MB_RAMP_FILTER_CUDA_BYTES / ((padded + 2) * 4);
    return most < 1 ? 1 : most < MB_RAMP_FILTER_CUDA_ROWS ? most : MB_RAMP_FILTER_CUDA_ROWS;
}

/* CUDA: does one kernel take the rows? P / 2 complex numbers, a power of two, 16 for each of the
** threads of a block, 32 to 1024, which exchange them through shared memory. */
static inline bool mb_ramp_filter_fused(const mb_device_facts *facts, int64_t padded)
{
    const int64_t threads = padded / 32, points = padded / 2;
    return facts->compute_capability > 0 && threads >= 32 && threads <= 1024 &&
           (padded & (padded - 1)) == 0 && mb_fused_fft_fits(facts, points, 1);
}

/*
** Ramp: transform of the band-limited kernel h[0] = 1/4, h[odd n] = -1/(pi n)^2, h[even n] = 0 over
** n = -P/2 ... P/2 - 1 (Kak & Slaney, Principles of Computerized Tomographic Imaging, ch. 3.3.3,
** eq. 61), which unlike |f| itself has the right value at frequency 0. Summed from its small terms
** to its large ones. P is a multiple of 4, so n = -P/2 is even.
*/
MB_BOTH static inline double mb_ramp_filter_ramp(int64_t padded, int64_t k)
{
    const double pi = 3.14159265358979323846;
    double theta = 2.0 * pi * (double)k / (double)padded;
    int64_t last = padded / 2 - 1; /* odd */
    /* cos(n theta) for n = last, last - 2, ... by the three-term recurrence, restarted to keep
    ** rounding errors small */
    double twice = 2.0 * cos(2.0 * theta), sum = 0.0, here = 0.0, before = 0.0;
    int64_t step = 0;
    for (int64_t n = last; n >= 1; n -= 2, step++) {
        if (step % 64 == 0) {
            here = cos(theta * (double)n);
            before = cos(theta * (double)(n + 2));
        }
        sum += here / ((double)n * (double)n);
        double after = twice * here - before;
        before = here;
        here = after;
    }
    return 0.25 - 2.0 / (pi * pi) * sum;
}

/* Window on the ramp; q = frequency / cutoff frequency. */
MB_BOTH static inline double mb_ramp_filter_window(int filter, double q)
{
    const double pi = 3.14159265358979323846;
    if (q > 1.0)
        return 0.0;
    switch (filter) {
    case MB_RAMP_SHEPP_LOGAN: return q > 0.0 ? sin(pi * q / 2) / (pi * q / 2) : 1.0;
    case MB_RAMP_COSINE: return cos(pi * q / 2);
    case MB_RAMP_HAMMING: return 0.54 + 0.46 * cos(pi * q);
    case MB_RAMP_HANN: return 0.5 + 0.5 * cos(pi * q);
    case MB_RAMP_TUKEY: return q <= 0.5 ? 1.0 : 0.5 + 0.5 * cos(2 * pi * (q - 0.5));
    case MB_RAMP_LANCZOS: return q > 0.0 ? sin(pi * q) / (pi * q) : 1.0;
    case MB_RAMP_PARZEN: return (1 - q) * (1 - q) * (1 - q);
    default: return 1.0;
    }
}

/* Does entry k of the table need the ramp? */
MB_BOTH static inline bool mb_ramp_filter_is_ramp(int filter, double cutoff, int64_t padded,
                                                  int64_t k)
{
    return filter != MB_RAMP_NONE &&
           mb_ramp_filter_window(filter, 2.0 * (double)k / (double)padded / cutoff) != 0.0;
}

MB_BOTH static inline float mb_ramp_filter_entry(int filter, double cutoff, double scale,
                                                 int64_t padded, int64_t k, double ramp)
{
    double q = 2.0 * (double)k / (double)padded / cutoff;
    double value = filter == MB_RAMP_NONE ? 1.0 : ramp * mb_ramp_filter_window(filter, q);
    return (float)(value * scale / (double)padded);
}

/* Entry k, 0 <= k <= P / 2, of the response table. */
MB_BOTH static inline float mb_ramp_filter_response(int filter, double cutoff, double scale,
                                                    int64_t padded, int64_t k)
{
    const bool is_ramp = mb_ramp_filter_is_ramp(filter, cutoff, padded, k);
    return mb_ramp_filter_entry(filter, cutoff, scale, padded, k,
                                is_ramp ? mb_ramp_filter_ramp(padded, k) : 0.0);
}

#endif
