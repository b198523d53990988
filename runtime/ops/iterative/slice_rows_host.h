/*
** The host's walk over the rows of slices (slice_rows.h).
*/
#ifndef MB_OPS_SLICE_ROWS_HOST_H
#define MB_OPS_SLICE_ROWS_HOST_H

#include "ops/iterative/slice_rows.h"

/* What a row adds to the sum of its slice: pixels run.first ... run.end - 1 of row y. */
typedef double (*mb_slice_body)(const void *job, int64_t slice, int64_t y, mb_circle_run run);

/* Calls it for every row. `partials` has room for the sums of all segments; `sums`, an array of one
** f64 for each slice, receives those of the slices. Both may be NULL. */
void mb_slice_rows(const mb_op_call *call, const mb_slices *slices, mb_slice_body body,
                   const void *job, double *partials, const mb_array *sums);

#endif
