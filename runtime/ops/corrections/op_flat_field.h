/*
** flat_field: what the host and the CUDA kernel share. Arrays: data (in), darks (in or NULL), flats
** (in or NULL), result (out f32), counts (out f64[3]). Step 0: the frames. slot
** MB_FLAT_FIELD_DARK[h*w] = mean or median dark, MB_FLAT_FIELD_DENOMINATOR[groups*h*w] =
** mb_flat_field_denominator(flat - dark). Step 1: result = (data - dark) / denominator, non-finite
** replaced.
**
** With groups of flats, or factors, the call is listed (mb_flat_field_listed): every flat has an
** entry that ends a group or not, every frame one that says between which groups it lies.
*/
#ifndef MB_OPS_OP_FLAT_FIELD_H
#define MB_OPS_OP_FLAT_FIELD_H

#include "core/both.h"
#include "ops/op.h"

typedef enum mb_flat_field_mode { MB_FLAT_FIELD_MEAN, MB_FLAT_FIELD_MEDIAN } mb_flat_field_mode;

/* Of darks: as flats, or one of the two. */
typedef enum mb_flat_field_dark_mode {
    MB_FLAT_FIELD_DARK_SAME,
    MB_FLAT_FIELD_DARK_MEAN,
    MB_FLAT_FIELD_DARK_MEDIAN
} mb_flat_field_dark_mode;

typedef struct mb_flat_field_params {
    int mode, dark_mode;
    double floor;                /* least denominator, in counts */
    double nonfinite;            /* what replaces non-finite results */
    bool count_raised;           /* whether MB_FLAT_FIELD_CLAMPED is counted; else 0 */
    mb_vector groups, positions; /* of flats: how many, and where in the scan */
    mb_vector frames;            /* where in the scan each frame of data lies */
    mb_vector scale, flat_scale; /* factors of the frames of data and of flats */
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
    MB_FLAT_FIELD_DENOMINATOR, /* float[groups * h * w]; 0 bytes without flats (it is 1) */
    MB_FLAT_FIELD_VALUES,      /* host, median: threads x max(nd, nf) floats; else 0 bytes */
    MB_FLAT_FIELD_TALLY,       /* cuda: uint64_t[3], the counters; host: 0 bytes */
    MB_FLAT_FIELD_FRAME_LIST,  /* listed: mb_flat_field_frame[n]; else 0 bytes */
    MB_FLAT_FIELD_FLAT_LIST    /* listed: mb_flat_field_flat[nf]; else 0 bytes */
};

typedef struct mb_flat_field_frame {
    int32_t group, next; /* between which groups, from 0 */
    float part;          /* how far from group to next, 0 to 1 */
    float scale;
} mb_flat_field_frame;

typedef struct mb_flat_field_flat {
    int32_t count; /* of the last flat of a group: how many the group has; else 0 */
    float scale;
} mb_flat_field_flat;

/* What the three counts are. */
enum {
    MB_FLAT_FIELD_NONFINITE, /* samples whose result was not finite and was replaced */
    MB_FLAT_FIELD_CLAMPED, /* detector pixels (not samples) whose flat - dark is below the floor */
    MB_FLAT_FIELD_NOT_POSITIVE /* samples with a transmission <= 0, not counting replaced ones */
};

static inline int mb_flat_field_mode_of_darks(const mb_flat_field_params *p)
{
    return p->dark_mode == MB_FLAT_FIELD_DARK_SAME ? p->mode
                                                   : p->dark_mode - MB_FLAT_FIELD_DARK_MEAN;
}

static inline bool mb_flat_field_listed(const mb_flat_field_params *p)
{
    return p->groups.count > 1 || p->scale.count > 0 || p->flat_scale.count > 0;
}

static inline int64_t mb_flat_field_groups(const mb_flat_field_params *p)
{
    return p->groups.count > 1 ? p->groups.count : 1;
}

/* Frames before the first group and after the last have the nearest one alone. */
static inline mb_flat_field_frame mb_flat_field_frame_at(const mb_flat_field_params *p, int64_t i)
{
    mb_flat_field_frame f = {0, 0, 0, p->scale.count ? (float)p->scale.values[i] : 1.0f};
    const double *positions = p->positions.values;
    if (p->groups.count > 1) {
        const double at = p->frames.values[i];
        int32_t g = (int32_t)p->groups.count - 1;
        while (g > 0 && at < positions[g])
            g--;
        f.group = f.next = g;
        if (at > positions[g] && g + 1 < p->groups.count) {
            f.next = g + 1;
            f.part = (float)((at - positions[g]) / (positions[g + 1] - positions[g]));
        }
    }
    return f;
}

/* The entry of flat j of `count`. */
static inline mb_flat_field_flat mb_flat_field_flat_at(const mb_flat_field_params *p, int64_t count,
                                                       int64_t j)
{
    mb_flat_field_flat flat = {0, p->flat_scale.count ? (float)p->flat_scale.values[j] : 1.0f};
    int64_t end = 0;
    for (int64_t group = 0; end <= j; group++) {
        const int64_t many = p->groups.count > 1 ? (int64_t)p->groups.values[group] : count;
        end += many;
        flat.count = end == j + 1 ? (int32_t)many : 0;
    }
    return flat;
}

/* A NaN stays, so that it shows up in the results that it spoils. */
MB_BOTH static inline float mb_flat_field_denominator(float difference, float floor_value,
                                                      int *clamped)
{
    *clamped = difference < floor_value;
    return *clamped ? floor_value : difference;
}

/* On the host: n samples of a row of an array (frame, row, column), from (frame, y, x) on. */
void mb_flat_field_read(const mb_array *array, int64_t frame, int64_t y, int64_t x, int64_t n,
                        float *to);

#endif
