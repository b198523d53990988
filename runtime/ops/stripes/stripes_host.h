/*
** What the operators for stripes have in common on the host: checks, scratch, and the work on one
** sinogram after the other.
*/
#ifndef MB_OPS_STRIPES_HOST_H
#define MB_OPS_STRIPES_HOST_H

#include "ops/stripes/stripes_vo.h"

mb_status mb_stripes_infer(mb_spec *arrays);
void mb_stripes_plan(const mb_stripes_job *job, const mb_spec *arrays, mb_planner *planner);
mb_status mb_stripes_run(const mb_op_call *call, const mb_stripes_job *job);

#endif
