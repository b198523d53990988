/*
** The options that backproject and fourier_reconstruct have in common: numbers by angle, center,
** size, roi, circle, scale. Their checks, and what they come to. Pure; a failure is recorded as
** that of the operator's argument.
*/
#ifndef MB_OPS_PARALLEL_IMAGE_H
#define MB_OPS_PARALLEL_IMAGE_H

#include "ops/op_args.h"
#include "ops/tomography/parallel_geometry.h"

/* One number for every angle of the sinogram, or none: angles, shifts, weights. */
mb_status mb_parallel_check_count(const char *name, const mb_vector *vector, int64_t angles);

/* The vectors by themselves: how many numbers, all whole. Comes before a geometry is made of
** them. */
mb_status mb_parallel_check_image(const mb_vector *size, const mb_vector *roi);

/* What the options, checked, come to for a sinogram (rows, angles, cols), or (angles, cols), which
** is one row. Left out are: center NAN = (cols - 1) / 2, size = cols x cols or {n} = n x n, roi =
** all of it, circle 0, scale NAN = pi / angles. */
static inline mb_parallel_geometry mb_parallel_image_geometry(const mb_shape *sino, double center,
                                                              const mb_vector *size,
                                                              const mb_vector *roi, double circle,
                                                              double scale)
{
    mb_parallel_geometry g;
    g.rows = sino->rank == 3 ? sino->dims[0] : 1;
    g.angles = sino->dims[sino->rank - 2];
    g.cols = sino->dims[sino->rank - 1];
    g.ny = size->count > 0 ? (int64_t)size->values[0] : g.cols;
    g.nx = size->count > 1 ? (int64_t)size->values[1] : g.ny;
    g.y0 = roi->count ? (int64_t)roi->values[0] : 0;
    g.y1 = roi->count ? (int64_t)roi->values[1] : g.ny;
    g.x0 = roi->count ? (int64_t)roi->values[2] : 0;
    g.x1 = roi->count ? (int64_t)roi->values[3] : g.nx;
    g.center = isnan(center) ? 0.5 * (double)(g.cols - 1) : center;
    g.scale = !isnan(scale) ? scale : g.angles > 0 ? 3.14159265358979323846 / (double)g.angles : 0;
    g.radius2 = mb_parallel_radius2(circle, g.ny, g.nx);
    return g;
}

/* Does the region lie in the slice, and is it not empty? */
mb_status mb_parallel_check_region(const mb_parallel_geometry *g);

#endif
