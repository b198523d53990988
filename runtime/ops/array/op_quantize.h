/*
** quantize: what the host and the CUDA kernel share. Arrays: a (in), result (out), counts (out,
** f64[3]).
*/
#ifndef MB_OPS_OP_QUANTIZE_H
#define MB_OPS_OP_QUANTIZE_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

typedef struct mb_quantize_params {
    int dtype; /* index among the choices: mb_quantize_dtype */
    double low, high;
} mb_quantize_params;

enum { MB_QUANTIZE_A, MB_QUANTIZE_RESULT, MB_QUANTIZE_COUNTS };
enum { MB_QUANTIZE_BELOW, MB_QUANTIZE_ABOVE, MB_QUANTIZE_NAN, MB_QUANTIZE_COUNTERS };
enum { MB_QUANTIZE_TALLY }; /* slot: integers, one of each counter */

#define MB_QUANTIZE_TALLY_BYTES (MB_QUANTIZE_COUNTERS * sizeof(uint64_t))
#define MB_HALF_MAX 65504.0f

static inline mb_dtype mb_quantize_dtype(int choice)
{
    return choice == 0 ? MB_U8 : choice == 1 ? MB_U16 : MB_F16;
}

/* Steps between low and high. */
static inline double mb_quantize_steps(int choice)
{
    return choice == 0 ? 255 : choice == 1 ? 65535 : 1;
}

/* The step nearest to v, ties to even; NaN gives 0. `scale` is steps / (high - low). Notes what was
** outside. */
static MB_BOTH inline unsigned mb_quantize_step(float v, double low, double high, double scale,
                                                double steps, unsigned *outside)
{
    const double position = ((double)v - low) * scale;
    outside[MB_QUANTIZE_BELOW] += (double)v < low;
    outside[MB_QUANTIZE_ABOVE] += (double)v > high;
    outside[MB_QUANTIZE_NAN] += v != v;
    return position > 0 ? (unsigned)rint(position < steps ? position : steps) : 0u;
}

/* (v - low) * scale within the range of half floats; NaN stays. */
static MB_BOTH inline float mb_quantize_half(float v, double low, double scale, unsigned *outside)
{
    const float r = (float)(((double)v - low) * scale);
    const int below = r<-MB_HALF_MAX, above = r> MB_HALF_MAX;
    outside[MB_QUANTIZE_BELOW] += below;
    outside[MB_QUANTIZE_ABOVE] += above;
    outside[MB_QUANTIZE_NAN] += r != r;
    return below ? -MB_HALF_MAX : above ? MB_HALF_MAX : r;
}

#endif
