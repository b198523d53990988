/*
** Items of an operator's work on the threads of the host.
*/
#ifndef MB_OPS_EACH_ITEM_H
#define MB_OPS_EACH_ITEM_H

#include "ops/op.h"

/* Item 0 ... of `job`, on thread `thread` of those that the call's device has. */
typedef mb_status (*mb_item_body)(const void *job, int64_t item, int thread);

/* body(job, 0 ... count - 1), until one fails or the run is cancelled. */
mb_status mb_each_item(const mb_op_call *call, int64_t count, mb_item_body body, const void *job);

#endif
