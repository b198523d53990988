/*
** median_filter: what the host and the CUDA kernel share. Arrays: a (in), result (out, same type),
** rows at any stride. Slots, on the host only: the steps of the window (median_window.h), and the
** threads' rows of keys.
*/
#ifndef MB_OPS_OP_MEDIAN_FILTER_H
#define MB_OPS_OP_MEDIAN_FILTER_H

#include "ops/filter/median_window.h"

typedef struct mb_median_filter_params {
    mb_vector size;
    int mode;
} mb_median_filter_params;

enum { MB_MEDIAN_FILTER_A, MB_MEDIAN_FILTER_RESULT };
enum { MB_MEDIAN_FILTER_STEPS, MB_MEDIAN_FILTER_ROWS };

#endif
