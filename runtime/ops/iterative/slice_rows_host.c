/* See slice_rows_host.h. */
#include "ops/iterative/slice_rows_host.h"

enum { SERIAL = 32768 }; /* pixels that are not worth waking other threads for */

void mb_slice_rows(const mb_op_call *call, const mb_slices *slices, mb_slice_body body,
                   const void *job, double *partials, const mb_array *sums)
{
    const int64_t items = slices->count * slices->segments;
    const int threads =
        slices->count * slices->ny * slices->nx < SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t item = 0; item < items; item++) {
        const int64_t slice = item / slices->segments, segment = item % slices->segments;
        const int64_t end = mb_slice_first(segment + 1, slices->segments, slices->ny);
        double sum = 0;
        for (int64_t y = mb_slice_first(segment, slices->segments, slices->ny);
             y < end && !mb_cancelled(); y++)
            sum += body(job, slice, y, mb_circle_row(&slices->circle, y, slices->nx));
        if (partials)
            partials[item] = sum;
    }
    for (int64_t slice = 0; sums && slice < slices->count; slice++) {
        double sum = 0;
        for (int64_t i = 0; i < slices->segments; i++)
            sum += partials[slice * slices->segments + i];
        ((double *)sums->data)[slice * sums->strides[0]] = sum;
    }
}
