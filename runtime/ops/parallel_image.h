/*
** Checks of the options size and roi, which backproject and fourier_reconstruct have in common. Pure; a failure is recorded as
** that of the operator's argument.
*/
#ifndef MB_OPS_PARALLEL_IMAGE_H
#define MB_OPS_PARALLEL_IMAGE_H

#include "ops/op.h"
#include "ops/parallel_geometry.h"

/* The vectors by themselves: how many numbers, all whole. Comes before a geometry is made of them. */
mb_status mb_parallel_check_image(const mb_vector *size, const mb_vector *roi);

/* Does the region lie in the slice, and is it not empty? */
mb_status mb_parallel_check_region(const mb_parallel_geometry *g);

#endif
