/* See each_item.h. */
#include "ops/each_item.h"
#include <omp.h>

mb_status mb_each_item(const mb_op_call *call, int64_t count, mb_item_body body, const void *job)
{
    mb_status status = MB_STATUS_OK;
    mb_error error;
    /* A worker's error record is its own; the first failure is moved to the caller's. */
#pragma omp parallel for schedule(dynamic) num_threads(call->device->facts.threads)
    for (int64_t item = 0; item < count; item++) {
        mb_status seen, mine;
#pragma omp atomic read
        seen = status;
        if (seen != MB_STATUS_OK)
            continue;
        mine = mb_cancel_check();
        if (mine == MB_STATUS_OK)
            mine = body(job, item, omp_get_thread_num());
        if (mine == MB_STATUS_OK)
            continue;
#pragma omp critical(mb_each_item)
        if (status == MB_STATUS_OK) {
            error = *mb_error_last();
#pragma omp atomic write
            status = mine;
        }
    }
    if (status != MB_STATUS_OK)
        mb_error_put(&error);
    return status;
}
