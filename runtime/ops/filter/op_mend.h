/*
** mend: what the host and the CUDA kernel share. Arrays: a (in), mask (in or NULL), result (out,
** may be a), counts (out f64[2]), rows at any stride. Slots: MB_MEND_BROKEN, one bit for each
** value, rows of whole 32-bit words: set where the value is to be replaced; MB_MEND_TALLY, on CUDA
** the two counters. Values that are read are those whose bit is 0, and they are never written, so
** it may run in place.
*/
#ifndef MB_OPS_OP_MEND_H
#define MB_OPS_OP_MEND_H

#include "ops/filter/median_window.h"

#define MB_MEND_MOST_REACH 15

typedef enum mb_mend_method { MB_MEND_MEDIAN, MB_MEND_MEAN } mb_mend_method;

typedef struct mb_mend_params {
    int method; /* mb_mend_method */
    int64_t reach;
    bool nonfinite;
    mb_vector counted;
} mb_mend_params;

enum { MB_MEND_A, MB_MEND_MASK, MB_MEND_RESULT, MB_MEND_COUNTS };
enum { MB_MEND_BROKEN, MB_MEND_TALLY };
enum { MB_MEND_MENDED, MB_MEND_LEFT }; /* what the counts are */

/* Words of a row of bits. */
MB_BOTH static inline int64_t mb_mend_words(int64_t columns)
{
    return (columns + 31) / 32;
}

#endif
