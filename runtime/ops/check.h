/*
** The checks of a call beside mb_op_check, for the driver (run.c).
*/
#ifndef MB_OPS_CHECK_H
#define MB_OPS_CHECK_H

#include "ops/op.h"

/* Is the array of this argument on the device of the call? */
mb_status mb_op_check_device(const mb_op_arg *arg, const mb_array *array, const mb_device *device);
/* Given results have the inferred shapes and types, every array has a layout that the operator
** takes, and nothing that is written overlaps another array, but for what the descriptor allows. */
mb_status mb_op_check_places(const mb_operator *entry, mb_array *const *arrays,
                             const mb_spec *specs);

#endif
