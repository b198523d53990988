/*
** dead_pixels: what the host and the CUDA kernel share. Arrays: frames (in), darks (in or NULL),
** mask (out u8), counts (out f64[1]), rows at any stride. Slot, on CUDA only: the counter.
*/
#ifndef MB_OPS_OP_DEAD_PIXELS_H
#define MB_OPS_OP_DEAD_PIXELS_H

#include "core/both.h"
#include "ops/op.h"

typedef enum mb_dead_pixels_rule {
    MB_DEAD_PIXELS_DIM,
    MB_DEAD_PIXELS_CONSTANT
} mb_dead_pixels_rule;

typedef struct mb_dead_pixels_params {
    int rule; /* mb_dead_pixels_rule */
    double least;
} mb_dead_pixels_params;

enum { MB_DEAD_PIXELS_FRAMES, MB_DEAD_PIXELS_DARKS, MB_DEAD_PIXELS_MASK, MB_DEAD_PIXELS_COUNTS };
enum { MB_DEAD_PIXELS_TALLY };

/* What the values of a pixel are, frame by frame. */
typedef struct mb_dead_pixel {
    double sum, first;
    int64_t count;
    bool changes;
} mb_dead_pixel;

MB_BOTH static inline void mb_dead_pixel_see(mb_dead_pixel *pixel, double value)
{
    if (pixel->count++ == 0)
        pixel->first = value;
    pixel->sum += value;
    pixel->changes |= value != pixel->first;
}

/* NaN is dead, too. */
MB_BOTH static inline bool mb_dead_pixel_is(const mb_dead_pixel *pixel, const mb_dead_pixel *dark,
                                            int rule, double least)
{
    const double base = dark->count > 0 ? dark->sum / (double)dark->count : 0;
    if (rule == MB_DEAD_PIXELS_CONSTANT)
        return pixel->count > 1 && !pixel->changes;
    return !(pixel->sum / (double)pixel->count - base > least);
}

#endif
