/*
** flat_field: what the host and the CUDA kernel share. Arrays: data (in), darks (in or NULL), flats
** (in or NULL), result (out f32), counts (out f64[3]). Step 0: the frames. slot
** MB_FLAT_FIELD_DARK[h*w] = mean or median dark, MB_FLAT_FIELD_DENOMINATOR[h*w] =
** mb_flat_field_denominator(flat - dark). Step 1: result = (data - dark) / denominator, non-finite
** replaced.
*/
#ifndef MB_OPS_OP_FLAT_FIELD_H
#define MB_OPS_OP_FLAT_FIELD_H

#include "core/both.h"
#include "ops/op.h"

typedef enum mb_flat_field_mode { MB_FLAT_FIELD_MEAN, MB_FLAT_FIELD_MEDIAN } mb_flat_field_mode;

typedef struct mb_flat_field_params {
    int mode;
    double floor;      /* least denominator, in counts */
    double nonfinite;  /* what replaces non-finite results */
    bool count_raised; /* whether MB_FLAT_FIELD_CLAMPED is counted; else 0 */
} mb_flat_field_params;

enum {
    MB_FLAT_FIELD_DATA,
    MB_FLAT_FIELD_DARKS,
    MB_FLAT_FIELD_FLATS,
    MB_FLAT_FIELD_RESULT,
    MB_FLAT_FIELD_COUNTS
};

enum {
    MB_FLAT_FIELD_DARK,        /* float[h * w]; 0 bytes without darks (dark = 0) */
    MB_FLAT_FIELD_DENOMINATOR, /* float[h * w]; 0 bytes without flats (denominator = 1) */
    MB_FLAT_FIELD_VALUES,      /* host, median: threads x max(nd, nf) floats; else 0 bytes */
    MB_FLAT_FIELD_TALLY        /* cuda: uint64_t[3], the counters; host: 0 bytes */
};

/* What the three counts are. */
enum {
    MB_FLAT_FIELD_NONFINITE, /* samples whose result was not finite and was replaced */
    MB_FLAT_FIELD_CLAMPED, /* detector pixels (not samples) whose flat - dark is below the floor */
    MB_FLAT_FIELD_NOT_POSITIVE /* samples with a transmission <= 0, not counting replaced ones */
};

/* A NaN stays, so that it shows up in the results that it spoils. */
MB_BOTH static inline float mb_flat_field_denominator(float difference, float floor_value,
                                                      int *clamped)
{
    *clamped = difference < floor_value;
    return *clamped ? floor_value : difference;
}

#endif
