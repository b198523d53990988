/*
** dezinger: what the host and the CUDA kernel share. Arrays: a (in), result (out, same type),
** counts (out f64[1]: values replaced), rows at any stride. Slots: on the host the steps of the
** window (median_window.h) and the threads' rows of keys, on CUDA the counter.
*/
#ifndef MB_OPS_OP_DEZINGER_H
#define MB_OPS_OP_DEZINGER_H

#include "ops/filter/median_window.h"

typedef enum mb_dezinger_which {
    MB_DEZINGER_BOTH,
    MB_DEZINGER_BRIGHT,
    MB_DEZINGER_DARK
} mb_dezinger_which;

typedef struct mb_dezinger_params {
    mb_vector size;
    double threshold;
    bool relative;
    int which; /* mb_dezinger_which */
    int mode;
    mb_vector counted;
} mb_dezinger_params;

enum { MB_DEZINGER_A, MB_DEZINGER_RESULT, MB_DEZINGER_COUNTS };
enum { MB_DEZINGER_STEPS, MB_DEZINGER_ROWS, MB_DEZINGER_TALLY };

/* How far a value may be from its median. */
MB_BOTH static inline float mb_dezinger_limit(float median, float threshold, bool relative)
{
    return relative ? threshold * (median < 0 ? -median : median) : threshold;
}

/* Whether the value is replaced. Never where the value or the median is NaN. */
MB_BOTH static inline bool mb_dezinger_replaces(float value, float median, float limit, int which)
{
    const float above = value - median, far = above < 0 ? -above : above;
    return (which == MB_DEZINGER_BOTH ? far : which == MB_DEZINGER_BRIGHT ? above : -above) > limit;
}

#endif
