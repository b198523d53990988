/* See parallel_image.h. */
#include "ops/tomography/parallel_image.h"

mb_status mb_parallel_check_count(const char *name, const mb_vector *vector, int64_t angles)
{
    if (vector->count != 0 && vector->count != angles)
        return mb_fail(MB_STATUS_ARGUMENT, name,
                       "%lld %s were given and the sinogram has %lld angles",
                       (long long)vector->count, name, (long long)angles);
    return MB_STATUS_OK;
}

mb_status mb_parallel_check_image(const mb_vector *size, const mb_vector *roi)
{
    if (size->count > 2)
        return mb_fail(MB_STATUS_ARGUMENT, "size", "size has %lld numbers; give {ny, nx} or one",
                       (long long)size->count);
    if (roi->count != 0 && roi->count != 4)
        return mb_fail(MB_STATUS_ARGUMENT, "roi", "roi has %lld numbers; give {y0, y1, x0, x1}",
                       (long long)roi->count);
    MB_TRY(mb_check_whole("size", size));
    return mb_check_whole("roi", roi);
}

mb_status mb_parallel_check_region(const mb_parallel_geometry *g)
{
    if (g->y0 >= g->y1 || g->x0 >= g->x1 || g->y1 > g->ny || g->x1 > g->nx)
        return mb_fail(MB_STATUS_ARGUMENT, "roi",
                       "roi {%lld, %lld, %lld, %lld} must be {y0, y1, x0, x1} with 0 <= y0 < y1 <= "
                       "%lld and 0 <= x0 < x1 <= %lld",
                       (long long)g->y0, (long long)g->y1, (long long)g->x0, (long long)g->x1,
                       (long long)g->ny, (long long)g->nx);
    return MB_STATUS_OK;
}
