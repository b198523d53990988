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
    int rounding;
    double nonfinite; /* what values that are not finite count as; NAN: themselves */
} mb_quantize_params;

enum { MB_QUANTIZE_NEAREST, MB_QUANTIZE_DOWN };

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

/* How values become steps. */
typedef struct mb_quantize_scale {
    double low, high, scale, steps; /* scale: steps / (high - low) */
    float nonfinite;
    int replaces, down;
} mb_quantize_scale;

static inline mb_quantize_scale mb_quantize_scale_of(const mb_quantize_params *p)
{
    const double steps = mb_quantize_steps(p->dtype);
    return (mb_quantize_scale){p->low,
                               p->high,
                               steps / (p->high - p->low),
                               steps,
                               (float)p->nonfinite,
                               !isnan(p->nonfinite),
                               p->rounding == MB_QUANTIZE_DOWN};
}

/* The value itself, or what stands for one that is not finite. */
static MB_BOTH inline float mb_quantize_value(float v, const mb_quantize_scale *s,
                                              unsigned *outside)
{
    const int other = s->replaces && !(fabsf(v) <= 3.402823466e38f);
    outside[MB_QUANTIZE_NAN] += other;
    return other ? s->nonfinite : v;
}

/* The step nearest to v, ties to even, or the next one down; NaN gives 0. Notes what was
** outside. */
static MB_BOTH inline unsigned mb_quantize_step(float v, const mb_quantize_scale *s,
                                                unsigned *outside)
{
    const float value = mb_quantize_value(v, s, outside);
    const double position = ((double)value - s->low) * s->scale;
    const double least = position < s->steps ? position : s->steps;
    outside[MB_QUANTIZE_BELOW] += (double)value < s->low;
    outside[MB_QUANTIZE_ABOVE] += (double)value > s->high;
    outside[MB_QUANTIZE_NAN] += value != value;
    return position > 0 ? (unsigned)(s->down ? least : rint(least)) : 0u;
}

/* (v - low) * scale within the range of half floats; NaN stays. */
static MB_BOTH inline float mb_quantize_half(float v, const mb_quantize_scale *s, unsigned *outside)
{
    const float r = (float)(((double)mb_quantize_value(v, s, outside) - s->low) * s->scale);
    const int below = r<-MB_HALF_MAX, above = r> MB_HALF_MAX;
    outside[MB_QUANTIZE_BELOW] += below;
    outside[MB_QUANTIZE_ABOVE] += above;
    outside[MB_QUANTIZE_NAN] += r != r;
    return below ? -MB_HALF_MAX : above ? MB_HALF_MAX : r;
}

#endif
