/*
** total_variation on the host: see total_variation_host.c.
*/
#ifndef MB_OPS_TOTAL_VARIATION_HOST_H
#define MB_OPS_TOTAL_VARIATION_HOST_H

#include "ops/denoising/op_total_variation.h"
#include "ops/denoising/op_total_variation_sweep.h"

/* Bytes of the state for this many threads. */
uint64_t mb_tv_host_bytes(const mb_tv_extents *n, int threads);
mb_status mb_tv_host_run(const mb_op_call *call, const mb_tv_extents *n);

/* The same for a sweep of so many steps. */
uint64_t mb_tv_host_sweep_bytes(const mb_tv_extents *n, int threads);
mb_status mb_tv_host_sweep(const mb_op_call *call, const mb_tv_extents *n,
                           const mb_total_variation_params *p, int64_t steps);

#endif
